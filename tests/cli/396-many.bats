#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests many nodes, some of them stopped or gone: when etrace attaches, arms, shows events or leaves, no node waits for
# another. ETRACE_DEBUG prints the state changes in order. With --all there are a hundred nodes, five of them stopped
# and five gone. Each node runs a process that calls lists:seq/2 again and again.
# tests/run: last

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/node
load ../lib/live

setup() {
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    NODE='' TRACER='' TRACERS=() NODES=() STOPPED=()
}

teardown() {
    local pid
    children_end "${TRACERS[@]}"
    for pid in "${STOPPED[@]}"; do kill -CONT "$pid" 2>/dev/null || true; done
    nodes_stop
}

left() { NODE=$1 nobody_there; }

pid_of() { cat "$(node_dir "$1")/pid"; }

# Prints the line number of the first MOVE of each node in the debug output.
moves() { # MOVE NODE...
    local move=$1 node
    shift
    for node in "$@"; do grep -nF "etrace: $node$move" "$ERR" | head -n 1; done | cut -d: -f1
}

@test "unresponsive nodes do not delay the others, and etrace attaches to them when they continue" {
    local node i count=8 live=() stopped=() gone=() before last first
    [[ ! ${ETRACE_ALL:-} ]] || count=100
    for ((i = 1; i <= count; i++)); do
        node_start "many$i"
        node_eval "$NODE" 'spawn(fun F() -> lists:seq(7777, 7777), timer:sleep(50), F() end), ok' >/dev/null
        case $((i > 20 ? 0 : i % 4)) in
            1) stopped+=("$NODE") ;;
            2) gone+=("$NODE") ;;
            *) live+=("$NODE") ;;
        esac
    done
    for node in "${stopped[@]}"; do
        STOPPED+=("$(pid_of "$node")")
        freeze "${STOPPED[-1]}"
    done
    for node in "${gone[@]}"; do node_stop "$node"; done
    # Attach once, so that the node has loaded what it loads for its first client.
    "$ETRACE_BIN" -n "${live[0]}" -qq --for 1ms 'lists:seq(7777, _)'
    until_true 30 left "${live[0]}"
    before=$(node_snapshot "${live[0]}")

    local names=()
    for node in "${stopped[@]}" "${gone[@]}" "${live[@]}"; do names+=(-n "$node"); done
    ETRACE_DEBUG=1 etrace_start "${names[@]}" --reattach --json --rate 0 'lists:seq(7777, _)'
    all_armed() { [[ $(moves ', traced: arming -> armed' "$@" | wc -l) -eq $# ]]; }
    until_true 60 all_armed "${live[@]}" || fail "$(<"$ERR")"
    until_true 60 grep -q 'the trace: beginning -> running' "$ERR" || fail "$(<"$ERR")"
    last=$(moves ', traced: arming -> armed' "${live[@]}" | sort -n | tail -n 1)
    first=$(moves ': connecting -> away' "${stopped[@]}" | sort -n | head -n 1)
    [[ $last -lt $first ]] || fail "etrace waited for a stopped node: $(<"$ERR")"
    shown() { [[ $(jq -r 'select(.type == "call").node' "$OUT" 2>/dev/null | sort -u | wc -l) -ge $1 ]]; }
    until_true 30 shown "${#live[@]}"

    for node in "${STOPPED[@]}"; do kill -CONT "$node"; done
    until_true 60 all_armed "${stopped[@]}" || fail "$(<"$ERR")"
    until_true 30 shown $((${#live[@]} + ${#stopped[@]}))

    # etrace gives up a node that is stopped now after five seconds.
    freeze "${STOPPED[0]}"
    kill -TERM "$TRACER"
    trace_wait 30
    last=$(moves ': leaving -> over' "${live[@]}" | wc -l)
    assert_equal "$last" "${#live[@]}"
    kill -CONT "${STOPPED[0]}"
    assert_clean --atoms 20 "$before" "${live[0]}" 20
}
