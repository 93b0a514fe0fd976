#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs every command against nodes and epmds that follow the protocol up to some phase and then flood, trickle or fall
# silent. Each command must end by itself with a message and within a fixed amount of memory. No Erlang runs here:
# tests/lib/hostile_node.py plays the node. The lengths of the timeouts are tested in unit session, with a fake clock.

bats_require_minimum_version 1.5.0
load ../lib/assert

# Commands that ask no node. A new command is in one of the lists, or fails as an unknown one of hostile_node.py.
no_node=' replay browse explain mcp demo recipes schema completion help version '
# Their questions take the same way as those of info, so the core tries them only on nodes that fall silent.
looking=' check stacks ps why requests died ls sessions check-for stacks-for ps-for why-for '
load ../lib/commands
all=
# Commands that watch a node for some time: repl, and each command with --for, as COMMAND-for.
watching=repl
for command in $(commands_of_help); do
    [[ $no_node == *" $command "* || $command == nodes ]] || all+=${all:+,}$command
    [[ $no_node == *" $command "* || $command == nodes || $command == repl || $("$ETRACE_BIN" help "$command") != *' --for '* ]] || watching+=,$command-for
done

# Runs all cases in parallel. Cases in which a client waits for 20 seconds are left out; unit session covers them.
setup_file() {
    local case phase kind command cases=()
    export MET=$BATS_FILE_TMPDIR/met CASES
    for case in epmd:silent,bytes,slowly:$all,nodes handshake:silent,bytes,slowly:$all,nodes \
        attach:silent,bytes,ticks,messages,terms,slowly,batches,ends:$all \
        arm:silent,ticks,slowly,steps:${all/,top/} arm:bytes,messages,terms,ends:$all \
        stream:silent,bytes,ticks,messages,terms,batches,ends:$watching \
        leave:silent,bytes,ticks,messages,terms,slowly,batches,ends:$watching; do
        IFS=: read -r phase kinds commands <<<"$case"
        for kind in ${kinds//,/ }; do
            for command in ${commands//,/ }; do
                [[ ${ETRACE_ALL:-} || $looking != *" $command "* || $kind == silent ]] || continue
                cases+=("$phase:$kind:$command")
            done
        done
    done
    CASES=${#cases[@]}
    cc -O1 -fPIC -shared -fno-builtin -o "$BATS_FILE_TMPDIR/fault.so" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
    COUNTS=$BATS_FILE_TMPDIR/counts FAULT_SO=$BATS_FILE_TMPDIR/fault.so
    mkdir "$COUNTS"
    COUNTS=$COUNTS FAULT_SO=$FAULT_SO /usr/bin/python3 "$ETRACE_ROOT/tests/lib/hostile_node.py" "$ETRACE_BIN" "${cases[@]}" >"$MET" 3>&-
}

# of PHASE KIND COMMAND: prints the result lines of the cases that match all three regular expressions.
of() { awk -v phase="$1" -v kind="$2" -v command="$3" '$1 ~ phase && $2 ~ kind && $3 ~ command' "$MET"; }

# said PHASE KIND COMMAND TEXT: asserts that at least one case matches and that each of their lines contains TEXT.
said() {
    [[ $(of "$@") ]] || fail "no case matches $1 $2 $3"
    ! of "$@" | grep -vF -- "$4" || fail "a result does not contain: $4"
}

@test "every command ends by itself, with a documented status and message, in less than 64 MiB" {
    assert_equal "$(wc -l <"$MET")" "$CASES"
    run awk '$4 > 4 || $5 >= 65536 || ($4 && !/etrace: |FAIL/)' "$MET"
    assert_output ''
    run awk '{ n = gsub(/ \/ etrace: /, ""); if (n > 6) print }' "$MET"
    assert_output ''
}

@test "etrace gives up on an epmd or a node that never finishes the handshake" {
    said epmd silent trace 'epmd on 127.0.0.1 does not answer'
    said epmd bytes nodes 'answers, but not as epmd'
    said handshake silent '^(trace|ls|info|sessions|top|nodes)$' 'it accepts the connection but sends nothing'
    said handshake 'bytes|slowly' '^(trace|ls|info|sessions|top|nodes)$' 'the handshake failed'
}

@test "etrace gives up on a node that is silent or violates the protocol while etrace attaches" {
    said attach silent '^(trace|ls|info|sessions|top)$' 'its rex process does not answer for 5 seconds'
    said attach 'ticks|slowly' '^(trace|ls|info|sessions|top|repl)$' 'its rex process does not answer for 5 seconds'
    said attach bytes . 'the node violates the protocol: it sends only ticks'
    said attach 'messages|terms|ends' . 'the node violates the protocol: too many unexpected messages'
    said attach batches '^(trace|ls|info|sessions|top|repl)$' 'malformed batch: bad magic or length'
}

@test "etrace gives up on a node that answers no request, even if it sends other data" {
    said arm 'silent|ticks|slowly|steps' '^(ls|info|sessions)$' 'is silent: etrace received nothing from it for 5 seconds'
    said arm 'silent|ticks|slowly|steps' '^(trace|repl)$' 'has not answered a request for 10 seconds'
    said arm bytes '^[^d]' 'it sends only ticks'
    said arm 'messages|terms|ends' '^[^d]' 'too many unexpected messages'
    # Each client reports the error once.
    run of arm . '^trace$'
    [[ $(grep -c -E 'has not answered|violates' <<<"$output") -eq 8 && $(grep -o -E 'has not answered|violates' <<<"$output" | wc -l) -eq 8 ]] || fail "$output"
}

@test "a node that violates the protocol ends the trace; a silent node does not delay --for or the end of the input" {
    said stream 'bytes' '^(trace|top|requests|died)-for$' 'it sends only ticks'
    said stream 'messages|ends' '^(trace|top|requests|died)-for$' 'too many unexpected messages'
    [[ $(of 'stream|leave' 'silent|ticks|slowly|batches' '^((trace|top|requests|died)-for|repl)$' | awk '$4 == 0' | wc -l) -eq 35 ]] || fail "$(of 'stream|leave' 'silent|ticks|slowly|batches' .)"
}
