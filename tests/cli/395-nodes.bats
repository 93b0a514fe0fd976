#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests a trace of several nodes as one stream: in the order of time, with an account for each node, while nodes go down
# and come back.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/node
load ../lib/live
load ../lib/commands
load ../lib/terminal

RETURNED=()

setup() {
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    TRACER=
    TRACERS=()
}

teardown() {
    local pid
    [[ ! $TERMINAL ]] || terminal_end
    children_end "${TRACERS[@]}"
    for pid in "${RETURNED[@]}"; do child_kill "$pid" CONT; done
    children_end "${RETURNED[@]}"
    nodes_stop
}

# Starts three nodes. NODES are their names.
three() {
    NODES=()
    node_start a
    node_start b
    node_start c
}

all_of() { local n; for n in "${NODES[@]}"; do printf -- '-n %s ' "$n"; done; }

attached() { [[ $(grep -cE '( · OTP .* process(es)?|Ctrl-C stops( and prints)?)$' "$ERR" || true) -ge $1 ]] || gone "$TRACER"; }

# begin COUNT ARGS...: like trace of live.bash, but waits until COUNT nodes are traced.
begin() {
    local count=$1
    shift
    etrace_start "$@"
    until_true 30 attached "$count" || fail "etrace does not begin: $(cat "$ERR")"
    gone "$TRACER" && fail "etrace has ended: $(cat "$ERR")"
    return 0
}

# work NODE COUNT: makes COUNT calls with different arguments, a few at a time, and returns when all were made.
work() { node_eval "$1" "[begin lists:seq(7777, 7777 + I), I rem 20 =:= 0 andalso timer:sleep(2) end || I <- lists:seq(1, $2)], ok" >/dev/null; }

has() { grep -q -- "$1" "$2"; }

# named NAME [EXPRESSION]: starts a node with exactly this name and a process `ticker`, or with what the expression starts.
# Adds its process id to RETURNED.
named() {
    (
        cd "$BATS_TEST_TMPDIR" || exit 1
        exec "$ETRACE_ERL" +Bi -noshell -noinput -name "$1" -start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' \
            -eval "${2:-register(ticker, spawn(fun F() -> lists:seq(7777, 7780), timer:sleep(10), F() end)).}" </dev/null >named.log 2>&1 3>&-
    ) &
    RETURNED+=("$!")
}

# up_twice: succeeds when etrace has attached to the node `late` for the second time.
up_twice() { [[ $(grep -c "^etrace: $late · OTP .* process" "$ERR") -eq 2 ]]; }

# left NODE: succeeds when no client is attached to NODE and nothing of the companion is left there.
left() { NODE=$1 nobody_there; }

# goes_on_without NODE: etrace waits for NODE, and shows all events of the node `here` until the trace ends.
goes_on_without() {
    until_true 30 has "^etrace: $1: .*; waiting for it" "$ERR" || fail "$(<"$ERR")"
    until_true 30 has "^etrace: $here · OTP .* process" "$ERR"
    work "$here" 20
    shown() { [[ $(grep -c "\"node\":\"$here\",\"pid\"" "$OUT") -eq 20 ]]; }
    until_true 8 shown || fail "$(<"$ERR")"
    trace_end
    assert_equal "$status" 0
}

# Times may go back only where an event was held back for the longest allowed time.
assert_ordered() { # RECORDING
    local back marks
    back=$(jq -r 'select(.pid) | .ts' "$OUT" | awk 'NR > 1 && $0 < last { n++ } { last = $0 } END { print n + 0 }')
    marks=$(perl -0777 -ne 'print scalar(() = /\x18\0\0\0\x04\0.\0.{8}\x02\0\0\0/gs)' "$1")
    ((back == 0 || marks > 0)) || fail "$back lines are older than the one before"
}

@test "a table counts the events of all nodes together, and those of each node if it is a key" {
    local rec=$BATS_TEST_TMPDIR/by.etr node n=20
    three
    # shellcheck disable=SC2046
    begin 3 --json --rate 0 $(all_of) -o "$rec" 'lists:seq(7777, To) by node, To rem 2' 'lists:seq(7777, To) by To rem 2: count, sum(To - 7777)'
    for node in "${NODES[@]}"; do
        work "$node" "$n"
        n=$((n + 20))
    done
    trace_end
    assert_equal "$status" 0
    assert_equal "$(jq -r 'select(.type == "row" and (.key | length) == 2) | "\(.key[0]) \(.key[1]) \(.count)"' "$OUT" | sort)" \
        "$(n=10 && for node in "${NODES[@]}"; do printf '%s %s %s\n' "$node" 0 "$n" "$node" 1 "$n" && n=$((n + 10)); done | sort)"
    # 1 + 2 + ... + 20, ... 40, ... 60; apart for odd and even numbers
    assert_equal "$(jq -c 'select(.type == "row" and (.key | length) == 1) | [.key[0], .count, (.values | to_entries[0].value)]' "$OUT" | sort)" \
        $'["0",60,1400]\n["1",60,1460]'
    "$ETRACE_BIN" replay --json "$rec" >"$BATS_TEST_TMPDIR/again"
    diff "$OUT" "$BATS_TEST_TMPDIR/again"
}

@test "the longest call of all nodes decides whether a condition on the duration has rejected the events" {
    local condition said=
    NODES=()
    node_start a
    node_start b
    for condition in '30ms' '1min'; do
        # shellcheck disable=SC2046
        begin 2 $(all_of) "timer:sleep(_) -> return where dur > $condition and ret == no"
        node_eval "${NODES[0]}" 'timer:sleep(1)'
        node_eval "${NODES[1]}" 'timer:sleep(40)'
        trace_end
        assert_equal "$status" 0
        assert_regex "$talk" '0 events in .* · 4 filtered'
        said+=$talk
    done
    # Each node sends an example, so etrace knows all of these calls.
    assert_regex "$said" "'dur > 1min' rejected 2 results: the longest took ([4-9][0-9]|[1-9][0-9]{2}|[0-9.]+s)"
    assert_regex "$said" "'dur > 30ms' rejected 1 result: the longest took [0-9.]+[mu]s"
    assert_regex "$said" "'ret == no' rejected 1 result, such as <[0-9.]+> return timer:sleep/1 = ok"
}

@test "events of three busy nodes form one ordered stream with complete accounts, and replay prints the same" {
    three
    rec=$BATS_TEST_TMPDIR/all.etr
    # shellcheck disable=SC2046
    begin 3 $(all_of) --json --rate 0 -o "$rec" 'lists:seq(7777, _) -> return'
    for node in "${NODES[@]}"; do
        work "$node" 600 &
        works+=("$!")
    done
    wait "${works[@]}"
    trace_end
    assert_equal "$status" 0
    assert_account 3600
    assert_ordered "$rec"
    for node in "${NODES[@]}"; do
        # These calls come from one process, so they are in its order.
        run jq -c --arg node "$node" 'select(.node == $node and .type == "call") | .args[1] | tonumber - 7777' "$OUT"
        assert_output "$(seq 600)"
        run jq -c --arg node "$node" 'select(.type == "summary") | .nodes[] | select(.node == $node) | [.seen, .shown, .filtered, .missing, .complete, .lost]' "$OUT"
        assert_output '[1200,1200,0,0,true,{}]'
        assert_regex "$talk" "etrace: $node: 1200 events"$'\n'
    done
    "$ETRACE_BIN" replay --json "$rec" >"$BATS_TEST_TMPDIR/again"
    assert cmp "$OUT" "$BATS_TEST_TMPDIR/again"
    for view in text tree csv summary hist folded flame; do
        "$ETRACE_BIN" replay --as "$view" "$rec" >"$BATS_TEST_TMPDIR/$view"
        for node in "${NODES[@]}"; do
            assert grep -q -F "$node" "$BATS_TEST_TMPDIR/$view"
        done
    done
    # The root of each stack is the name of the node.
    run sed -E 's/ [0-9]+$//' "$BATS_TEST_TMPDIR/folded"
    assert_equal "$(sort <<<"$output")" "$(printf '%s;lists:seq/2\n' "${NODES[@]}" | sort)"
}

@test "the text of a replay equals that of the live trace of two nodes" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 $(all_of) --rate 0 -o "$BATS_TEST_TMPDIR/two.etr" 'lists:seq(7777, _) -> return'
    work "${NODES[0]}" 300 &
    one=$!
    work "${NODES[1]}" 300
    wait "$one"
    trace_end
    assert_equal "$status" 0
    assert_equal "$(wc -l <"$OUT")" 1200
    "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/two.etr" >"$BATS_TEST_TMPDIR/again"
    assert cmp "$OUT" "$BATS_TEST_TMPDIR/again"
}

@test "a node that is named twice counts as one node" {
    node_start a
    # shellcheck disable=SC2153  # of node.bash
    begin 1 -n "$NODE" -n "$NODE" --limit 1 'lists:seq(7777, _)'
    work "$NODE" 1
    trace_wait
    assert_success
    assert_equal "${#lines[@]}" 1
    refute_output --partial "$NODE"
    refute_regex "$talk" 'clock|events?.*events? in'
    run timeout 60 "$ETRACE_BIN" repl -n "$NODE" -n "$NODE" </dev/null
    assert_success
    assert_line --partial "$NODE · OTP"
}

@test "an idle or suspended node does not delay the others" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 $(all_of) 'lists:seq(7777, _)'
    work "${NODES[0]}" 1
    until_true 20 has 'seq(7777, 7778)' "$OUT"
    freeze "$(<"$(node_dir "${NODES[1]}")/pid")"
    node_eval "${NODES[0]}" 'lists:seq(7777, 7799)' >/dev/null
    until_true 20 has 'seq(7777, 7799)' "$OUT"
    kill -CONT "$(<"$(node_dir "${NODES[1]}")/pid")"
    trace_end
    assert_equal "$status" 0
}

@test "losses are reported for the node that lost the events" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 $(all_of) --json --rate 50 'lists:seq(7777, _)'
    node_eval "${NODES[1]}" '[lists:seq(7777, 7778) || _ <- lists:seq(1, 2000)], ok' >/dev/null
    work "${NODES[0]}" 10
    trace_end
    assert_equal "$status" 0
    assert_account 2010
    run jq -c --arg node "${NODES[0]}" 'select(.type == "summary") | .nodes[] | select(.node == $node) | [.seen, .shown, .lost]' "$OUT"
    assert_output '[10,10,{}]'
    run jq -c --arg node "${NODES[1]}" 'select(.type == "summary") | .nodes[] | select(.node == $node) | [.seen, .lost.rate > 0, .shown + .lost.rate, .complete]' "$OUT"
    assert_output '[2000,true,2000,true]'
    assert_regex "$talk" "etrace: ${NODES[1]}: [0-9]+ events · [0-9]+ lost \(rate\)"
}

@test "a node that goes down is an event, and the trace of the others continues" {
    three
    rec=$BATS_TEST_TMPDIR/down.etr
    # shellcheck disable=SC2046
    begin 3 $(all_of) --json --rate 0 -o "$rec" 'lists:seq(7777, _)'
    dead=${NODES[1]}
    work "$dead" 50
    until_true 20 has "\"node\":\"$dead\",\"pid\"" "$OUT"
    node_stop "$dead"
    until_true 20 has '"type":"node_down"' "$OUT"
    work "${NODES[0]}" 100
    work "${NODES[2]}" 100
    trace_end
    assert_equal "$status" 1
    assert_regex "$talk" "etrace: $dead: the node closed the connection"
    run jq -c 'select(.type == "node_down") | [.node, .reason]' "$OUT"
    assert_output "[\"$dead\",\"the node closed the connection\"]"
    run jq -c --arg dead "$dead" 'select(.type == "summary") | [.complete, (.seen == .shown + .filtered + .missing + ([.lost[]] | add // 0)), ([.nodes[] | select(.node != $dead) | [.shown, .complete]]), ([.nodes[] | select(.node == $dead) | .complete])]' "$OUT"
    assert_output '[false,true,[[100,true],[100,true]],[false]]'
    "$ETRACE_BIN" replay --json "$rec" >"$BATS_TEST_TMPDIR/again"
    assert cmp "$OUT" "$BATS_TEST_TMPDIR/again"
    run bash -c "'$ETRACE_BIN' replay '$rec' | grep -F '***'"
    assert_output "*** node $dead went down ***"
}

@test "nodes that count by keys go down and come back, and the others count each call" {
    NODES=()
    node_start a
    here=${NODES[0]}
    late=late$RANDOM$RANDOM@127.0.0.1
    begin 1 -n "$here" -n "$late" --reattach --json --rate 1 'lists:seq(7777, To) by node: count, sum(To), hist(dur)'
    work "$here" 20
    named "$late"
    until_true 30 has "^etrace: $late · OTP .* process" "$ERR"
    kill -KILL "${RETURNED[0]}"
    wait "${RETURNED[0]}" || true
    until_true 30 has "^etrace: $late.*waiting for it" "$ERR"
    work "$here" 20
    named "$late"
    until_true 30 up_twice
    trace_end
    assert_equal "$status" 0
    assert_equal "$(jq -c --arg node "$here" 'select(.type == "row" and .key == [$node]) | [.count, .values["sum(To)"]]' "$OUT")" \
        "[40,$((40 * 7777 + 2 * 210))]"
}

@test "a node that counts requests goes down, comes back and counts again" {
    late=late$RANDOM$RANDOM@127.0.0.1
    asks() { # REQUEST: makes it again and again, and writes how often to a file
        named "$late" "spawn(fun() -> (fun F(N) -> supervisor:$1(kernel_sup), timer:sleep(5),
            ok = file:write_file(\"$1.new\", integer_to_list(N)), ok = file:rename(\"$1.new\", \"$1\"), F(N + 1) end)(1) end)."
    }
    more() { [[ $(cat "$BATS_TEST_TMPDIR/$1" 2>/dev/null || echo 0) -gt $2 ]]; }
    has_asked() { # REQUEST: waits until it was made 20 times more
        local before
        before=$(cat "$BATS_TEST_TMPDIR/$1" 2>/dev/null || echo 0)
        until_true 30 more "$1" $((${before:-0} + 20))
    }
    asks count_children
    has_asked count_children
    begin 1 requests -n "$late" --reattach -P kernel_sup
    has_asked count_children
    kill -KILL "${RETURNED[0]}"
    wait "${RETURNED[0]}" || true
    until_true 30 has "^etrace: $late.*waiting for it" "$ERR"
    asks which_children
    until_true 30 up_twice
    has_asked which_children
    trace_end
    assert_equal "$status" 0
    run awk '/which_children/ { print ($2 >= 20) }' "$OUT"
    assert_output 1 || fail "$(<"$OUT")"
}

@test "--reattach waits for a missing node, and again after it goes down" {
    NODES=()
    node_start a
    here=${NODES[0]}
    late=late$RANDOM$RANDOM@127.0.0.1
    rec=$BATS_TEST_TMPDIR/late.etr
    begin 1 -n "$here" -n "$late" --reattach --json --rate 0 -o "$rec" 'lists:seq(7777, _)'
    assert grep -q "^etrace: cannot connect to $late: .*; waiting for it" "$ERR"
    work "$here" 20
    named "$late"
    until_true 30 has "\"node\":\"$late\",\"pid\"" "$OUT"
    kill -KILL "${RETURNED[0]}"
    wait "${RETURNED[0]}" || true
    until_true 30 has '"type":"node_down"' "$OUT"
    work "$here" 20
    named "$late"
    back() { [[ $(grep -c '"type":"node_up"' "$OUT") -eq 2 ]] && [[ $(tail -n 5 "$OUT") == *"\"node\":\"$late\",\"pid\""* ]]; }
    until_true 30 back
    trace_end
    assert_equal "$status" 0
    run jq -r --arg late "$late" 'select(.node == $late and (.type | startswith("node_"))) | .type' "$OUT"
    assert_output 'node_up
node_down
node_up'
    run jq -r --arg node "$here" 'select(.type == "summary") | .nodes[] | select(.node == $node) | [.shown, .missing, .complete] | tostring' "$OUT"
    assert_output '[40,0,true]'
    # The last batch before the kill may be lost, so the account of the killed node is incomplete.
    run jq -r --arg node "$late" 'select(.type == "summary") | [.complete, (.nodes[] | select(.node == $node) | .complete)] | tostring' "$OUT"
    assert_output '[false,false]'
    jq -e 'select(.type == "summary") | .seen == .shown + .filtered + .missing + ([.lost[]] | add // 0)' "$OUT"
    "$ETRACE_BIN" replay --json "$rec" >"$BATS_TEST_TMPDIR/again"
    assert cmp "$OUT" "$BATS_TEST_TMPDIR/again"
}

@test "events of other nodes appear while a node that came back does not answer" {
    NODES=()
    node_start a
    here=${NODES[0]}
    late=late$RANDOM$RANDOM@127.0.0.1
    # This name registry answers only once the file exists whose path is in SLOW_NAMES.
    cat >"$BATS_TEST_TMPDIR/slow_names.erl" <<'END'
-module(slow_names).
-export([whereis_name/1]).
whereis_name(Name) -> wait(os:getenv("SLOW_NAMES")), whereis(Name).
wait(false) -> ok;
wait(Path) -> file:write_file(Path ++ ".asked", ""), timer:sleep(10), filelib:is_file(Path) orelse wait(Path).
END
    (cd "$BATS_TEST_TMPDIR" && "$ETRACE_ERLC" slow_names.erl)
    node_eval "$here" "code:load_abs(\"$BATS_TEST_TMPDIR/slow_names\")" >/dev/null
    begin 1 -n "$here" -n "$late" --reattach --json --rate 0 -P all -P '{via,slow_names,init}' 'lists:seq(7777, _)'
    (
        cd "$BATS_TEST_TMPDIR" || exit 1
        export SLOW_NAMES=$BATS_TEST_TMPDIR/let
        exec "$ETRACE_ERL" +Bi -noshell -noinput -start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' \
            -eval "code:load_file(slow_names), {ok, _} = net_kernel:start(list_to_atom(\"$late\"), #{name_domain => longnames}),
                register(ticker, spawn(fun F() -> lists:seq(7777, 7780), timer:sleep(10), F() end))." </dev/null >named.log 2>&1 3>&-
    ) &
    RETURNED+=("$!")
    until_true 30 [ -e "$BATS_TEST_TMPDIR/let.asked" ]
    work "$here" 20
    shown() { [[ $(grep -c "\"node\":\"$here\",\"pid\"" "$OUT") -eq 20 ]]; }
    until_true 8 shown || fail 'etrace shows no event of the other node'
    : >"$BATS_TEST_TMPDIR/let"
    until_true 30 has "\"node\":\"$late\",\"pid\"" "$OUT"
    trace_end
    assert_equal "$status" 0
}

@test "--reattach waits for a node that goes down while it loads the companion or looks up a process" {
    local step
    NODES=()
    node_start a
    here=$NODE
    printf '%s\n' '-module(slow_names).' '-export([whereis_name/1]).' \
        'whereis_name(Name) -> os:getenv("SLOW_NAMES") =/= false andalso begin register(asked, self()), timer:sleep(infinity) end, whereis(Name).' \
        >"$BATS_TEST_TMPDIR/slow_names.erl"
    (cd "$BATS_TEST_TMPDIR" && "$ETRACE_ERLC" slow_names.erl)
    for step in loads asked; do
        node_start b
        for node in "$here" "$NODE"; do node_eval "$node" "code:load_abs(\"$BATS_TEST_TMPDIR/slow_names\")" >/dev/null; done
        # Attach once, so that the node has loaded what it loads for its first client.
        "$ETRACE_BIN" -n "$NODE" -qq --for 1ms 'lists:seq(7777, _)'
        until_true 30 left "$NODE"
        # A suspended process resumes when the process that suspended it exits, so that process must stay.
        [[ $step == asked ]] || node_eval "$NODE" 'Me = self(), spawn(fun() -> erlang:suspend_process(whereis(code_server)), Me ! held, timer:sleep(infinity) end), receive held -> ok end' >/dev/null
        [[ $step == loads ]] || node_eval "$NODE" 'os:putenv("SLOW_NAMES", "yes")' >/dev/null
        etrace_start -n "$here" -n "$NODE" --reattach --json --rate 0 -P all -P '{via,slow_names,init}' 'lists:seq(7777, _)'
        until_true 30 node_eval "$NODE" "case $step of loads -> [_] = nodes(hidden), [_ | _] = control:companion(janitor);
            asked -> true = is_pid(whereis(asked)) end" 2>/dev/null
        node_stop "$NODE"
        goes_on_without "$NODE"
    done
}

@test "a node that goes down during the attach of another one ends the trace, or --reattach waits for it" {
    local dying how
    NODES=()
    node_start a
    here=$NODE
    for how in '' --cluster --reattach '--reattach --cluster'; do
        node_start b
        dying=$NODE
        "$ETRACE_BIN" -n "$here" -n "$dying" -qq --for 1ms 'lists:seq(7777, _)'
        until_true 30 left "$here"
        node_eval "$here" 'Me = self(), register(holder, spawn(fun() -> erlang:suspend_process(whereis(code_server)), Me ! held, receive go -> ok end end)), receive held -> ok end' >/dev/null
        # shellcheck disable=SC2086
        etrace_start -n "$dying" -n "$here" $how --json 'lists:seq(7777, _)'
        until_true 30 node_eval "$here" '[_] = nodes(hidden)' 2>/dev/null
        until_true 30 node_eval "$dying" '[_] = nodes(hidden)' 2>/dev/null
        node_stop "$dying"
        node_eval "$here" 'holder ! go' >/dev/null
        if [[ $how != --reattach* ]]; then
            trace_wait
            assert_equal "$status" 1
            grep -qE "^etrace: $dying: the (node closed the connection|node has stopped reading messages)$" "$ERR"
            continue
        fi
        goes_on_without "$dying"
    done
}

@test "a node that takes longer than a lease to start does not end the sessions of the others" {
    local slow=$BATS_TEST_TMPDIR/slow ms
    NODES=()
    for ms in 0 13000; do
        node_start a
        printf -- '-module(slow).\n-export([whereis_name/1]).\nwhereis_name(_) -> receive after %d -> whereis(init) end.\n' "$ms" >"$slow.erl"
        "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$slow.erl"
        node_eval "$NODE" "{module, slow} = code:load_abs(\"$slow\")" >/dev/null
    done
    run --separate-stderr timeout 100 "$ETRACE_BIN" top --json -n "${NODES[0]}" -n "${NODES[1]}" --for 10ms -P '{via, slow, name}' lists:seq/2
    assert_success
    assert_equal "$(jq -r .node <<<"$output")" "$(printf '%s\n' "${NODES[@]}")"
}

@test "the trace of a node continues after a suspension longer than the lease" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 $(all_of) --json --rate 0 'lists:seq(7777, _)'
    work "${NODES[1]}" 5
    freeze "$(<"$(node_dir "${NODES[1]}")/pid")"
    work "${NODES[0]}" 20 # etrace asks the stopped node for the time before it shows these calls
    pause 13
    kill -CONT "$(<"$(node_dir "${NODES[1]}")/pid")"
    work "${NODES[1]}" 5
    trace_end
    assert_equal "$status" 0
    assert_account 30
}

@test "a signal ends trace and top while a node does not answer a request" {
    local command
    printf '%s\n' '-module(slow_names).' '-export([whereis_name/1]).' 'whereis_name(_) -> register(asked, self()), timer:sleep(infinity).' >"$BATS_TEST_TMPDIR/slow_names.erl"
    (cd "$BATS_TEST_TMPDIR" && "$ETRACE_ERLC" slow_names.erl)
    for command in trace top; do
        node_start a
        node_eval "$NODE" "code:load_abs(\"$BATS_TEST_TMPDIR/slow_names\")" >/dev/null
        etrace_start "$command" -n "$NODE" -P '{via,slow_names,init}' lists:seq/2
        until_true 30 node_eval "$NODE" 'true = is_pid(whereis(asked))' 2>/dev/null
        trace_end
        case $command in
            trace) assert_equal "$status" 0 ;;
            top)
                assert_equal "$status" 1
                assert_equal "${talk##*$'\n'}" "etrace: $NODE has not answered yet"
                ;;
        esac
    done
}

@test "unresponsive nodes do not delay the removal of the tracer from another node" {
    local node slow=$BATS_TEST_TMPDIR/slow_names
    NODES=()
    cat >"$slow.erl" <<'END'
-module(slow_names).
-export([whereis_name/1]).
whereis_name(Name) -> wait(os:getenv("SLOW_NAMES"), Name).
wait(false, Name) -> whereis(Name);
wait(Path, Name) -> file:write_file(Path ++ ".asked", ""), timer:sleep(10), filelib:is_file(Path) andalso exit(none), wait(Path, Name).
END
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$slow.erl"
    for node in a b c d; do
        node_start "$node"
        node_eval "$NODE" "code:load_abs(\"$slow\")" >/dev/null
    done
    node_eval "$NODE" "os:putenv(\"SLOW_NAMES\", \"$slow.let\")" >/dev/null
    # shellcheck disable=SC2046
    etrace_start top --json $(all_of) -P '{via,slow_names,init}' lists:seq/2
    until_true 30 [ -e "$slow.let.asked" ]
    for node in "${NODES[@]:0:3}"; do freeze "$(<"$(node_dir "$node")/pid")"; done
    : >"$slow.let"
    let_go() { node_eval "$NODE" '[{legacy, default}] = trace:session_info(all), [] = nodes(hidden)' >/dev/null 2>&1; }
    until_true 8 let_go || fail "$(<"$ERR")"
    trace_wait 20
    assert_equal "$status" 5
    for node in "${NODES[@]:0:3}"; do kill -CONT "$(<"$(node_dir "$node")/pid")"; done
}

@test "top continues to print the counters of other nodes while one node does not answer" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 top $(all_of) --json -i 1s lists:seq/2
    counted() { grep -q "\"type\":\"counted\",\"node\":\"${NODES[1]}\"" "$OUT"; }
    until_true 20 counted
    freeze "$(<"$(node_dir "${NODES[1]}")/pid")"
    work "${NODES[0]}" 70
    said() { grep -F "\"node\":\"${NODES[0]}\"" "$OUT" | grep -q '"calls":7[0-9]'; }
    until_true 12 said || fail "$(tail -n 3 "$OUT")"
    kill -CONT "$(<"$(node_dir "${NODES[1]}")/pid")"
    trace_end
    assert_equal "$status" 0
}

@test "--reattach waits for a node that is lost during a record lookup, and etrace asks the next node" {
    local defs=$BATS_TEST_TMPDIR/defs dying how
    NODES=()
    node_start a
    here=$NODE
    node_start b
    dying=$NODE
    mkdir "$defs"
    printf '%s\n' '-module(shelf).' '-export([put/1]).' '-record(item, {id, name}).' 'put(#item{} = Item) -> Item.' >"$defs/shelf.erl"
    (cd "$defs" && "$ETRACE_ERLC" +debug_info shelf.erl && mkdir other && cp shelf.beam other)
    node_eval "$here" "code:load_abs(\"$defs/shelf\")" >/dev/null
    node_eval "$dying" "code:load_abs(\"$defs/other/shelf\")" >/dev/null
    # The module's file becomes a pipe, so a process that reads it waits.
    rm "$defs/other/shelf.beam"
    mkfifo "$defs/other/shelf.beam"
    one_shown() { [[ $(grep -c "\"node\":\"$here\",\"pid\"" "$OUT") -eq 1 ]]; }
    reading() { node_eval "$dying" "$1 = [P || P <- processes(), {current_function, {prim_file, F, _}} <- [process_info(P, current_function)], F =/= helper_loop]" 2>/dev/null; }
    # Opens and closes the pipe, so that each reader gets an end of file, and waits until none is left.
    all_read() { : <>"$defs/other/shelf.beam" && reading '[]' && left "$dying"; }
    # Neither a silent node nor a node that is down may affect the other node.
    for how in silent down; do
        etrace_start -n "$dying" -n "$here" --reattach --json 'shelf:put(#item{id = 7})'
        if [[ $how == down ]]; then
            # Once etrace is attached to the second node, only the reader of the module uses prim_file on the first
            # node, apart from prim_file's own helper process.
            until_true 30 node_eval "$here" '[_] = nodes(hidden)' 2>/dev/null
            until_true 30 reading '[_]'
            node_stop "$dying"
        fi
        until_true 30 has "^etrace: ${dying}[: ].*; waiting for it" "$ERR" || fail "$(<"$ERR")"
        until_true 30 attached 1
        node_eval "$here" '[shelf:put({item, N, none}) || N <- [6, 7, 8]]' >/dev/null
        until_true 8 one_shown || fail "$(<"$ERR") $(<"$OUT")"
        trace_end
        assert_equal "$status" 0
        [[ $how == down ]] || until_true 30 all_read
        until_true 30 left "$here"
    done
}

@test "a signal ends etrace while it waits for its only node" {
    local file=$BATS_TEST_TMPDIR/nothing.etr
    "$ETRACE_BIN" -n "nobody$RANDOM@127.0.0.1" --reattach -o "$file" 'lists:seq(7777, _)' >"$OUT" 2>"$ERR" </dev/null 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 20 has 'waiting for it' "$ERR"
    trace_end
    assert_equal "$status" 3
    assert_equal "$output" ''
    assert_regex "$talk" 'etrace: nothing was traced: etrace could not attach to any node'
    assert_regex "$talk" '· session never started$'
    # A recording without events is valid.
    run timeout 30 "$ETRACE_BIN" replay --json "$file"
    assert_success
    assert_equal "$(jq -r .type <<<"$output")" summary
}

# Registers NAME in epmd with the port of a server that is not a node. FILE gets a line for each connection.
refusing() { # NAME FILE
    "$ETRACE_ERL" +Bi -noshell -noinput -eval "{ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}, binary, {active, false}]), {ok, P} = inet:port(L),
        {ok, E} = gen_tcp:connect({127, 0, 0, 1}, list_to_integer(os:getenv(\"ERL_EPMD_PORT\")), [binary, {active, false}]),
        Name = list_to_binary(hd(string:lexemes(\"$1\", \"@\"))), N = byte_size(Name),
        ok = gen_tcp:send(E, <<(13 + N):16, 120, P:16, 77, 0, 6:16, 5:16, N:16, Name/binary, 0:16>>), {ok, _} = gen_tcp:recv(E, 0),
        F = fun F() -> {ok, C} = gen_tcp:accept(L), gen_tcp:send(C, \"HTTP/1.1 400 Bad Request\r\n\r\n\"), gen_tcp:close(C), io:put_chars(\"refused\\n\"), F() end, F()." </dev/null >"$2" 2>&1 3>&- &
    RETURNED+=("$!")
}

@test "--reattach does not wait for a node that refuses, and later gives up after five attempts" {
    NODES=()
    node_start a
    here=${NODES[0]}
    printf 'another' >"$BATS_TEST_TMPDIR/cookie"
    chmod 600 "$BATS_TEST_TMPDIR/cookie"
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$here" --reattach --cookie-file "$BATS_TEST_TMPDIR/cookie" 'lists:seq(7777, _)'
    assert_failure 3
    assert_regex "$stderr" 'the cookie does not match'
    refute_regex "$stderr" 'waited for'
    node_heard "$here" 'Invalid challenge reply'

    late=late$RANDOM$RANDOM@127.0.0.1
    begin 1 -n "$here" -n "$late" --reattach --json --rate 0 'lists:seq(7777, _)'
    refusing "$late" "$BATS_TEST_TMPDIR/refused"
    until_true 60 has 'gave up after 5 attempts' "$ERR" || fail "$(<"$ERR")"
    work "$here" 20
    # After five attempts etrace does not try again while it traces the other node.
    pause 1.5
    trace_end
    assert_equal "$status" 3
    assert_equal "$(grep -c refused "$BATS_TEST_TMPDIR/refused")" 5
    run jq -r 'select(.type == "summary") | .complete' "$OUT"
    assert_equal "$(grep -c '"type":"call"' "$OUT")" 20
}

@test "an unreachable named node ends the command before it traces anything" {
    NODES=()
    node_start a
    here=${NODES[0]}
    before=$(node_snapshot "$here" | grep -E '^(sessions|modules)')
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$here" -n nobody@127.0.0.1 --for 1s 'lists:seq(7777, _)'
    assert_failure 3
    assert_output ''
    assert_equal "${stderr_lines[0]}" 'etrace: cannot connect to nobody@127.0.0.1: epmd on 127.0.0.1 knows no node of that name'
    unchanged() { [[ $(node_snapshot "$here" | grep -E '^(sessions|modules)') == "$before" ]]; }
    until_true 10 unchanged
    run timeout 20 "$ETRACE_BIN" -n "$here" -n other --port 1 'lists:seq(7777, _)'
    assert_failure 2
    assert_line -n 0 'etrace: --port is the port of one node, but 2 nodes are given'
}

@test "--cluster traces all connected nodes and warns about those that it cannot trace" {
    three
    node_eval "${NODES[0]}" "[net_kernel:connect_node(N) || N <- ['${NODES[1]}', '${NODES[2]}']]" >/dev/null
    # This connected node is stopped, so it answers nobody.
    "$ETRACE_ERL" -noshell -noinput -name "ghost$RANDOM@127.0.0.1" -start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' \
        -eval "true = net_kernel:connect_node('${NODES[0]}')." </dev/null >/dev/null 2>&1 3>&- &
    RETURNED+=("$!")
    connected() { [[ $(node_eval "${NODES[0]}" 'length(nodes())') == 3 ]]; }
    until_true 20 connected
    freeze "${RETURNED[0]}"
    begin 3 -n "${NODES[0]}" --cluster --json 'lists:seq(7777, _)'
    for node in "${NODES[@]}"; do work "$node" 5; done
    trace_end
    assert_equal "$status" 0
    assert_regex "$talk" 'etrace: not traced: (cannot connect to )?ghost'
    run jq -c 'select(.type == "summary") | [.shown, (.nodes | map(.shown))]' "$OUT"
    assert_output '[15,[5,5,5]]'

    # etrace accepts a cluster in which only one node has the module.
    node_eval "${NODES[2]}" 'code:is_loaded(work) =/= false orelse code:load_file(work)' >/dev/null
    for node in "${NODES[@]:0:2}"; do node_eval "$node" 'code:del_path(filename:dirname(code:which(control))), code:purge(work), code:delete(work)' >/dev/null; done
    begin 1 -n "${NODES[0]}" --cluster --json 'work:one/1'
    for node in "${NODES[@]:0:2}"; do
        until_true 30 has "^etrace: $node: not traced: there is no module work on the node" "$ERR" || fail "$(<"$ERR")"
    done
    node_eval "${NODES[2]}" 'work:one(1)' >/dev/null
    trace_end
    assert_equal "$status" 0
    assert_account 1
    run --separate-stderr timeout 60 "$ETRACE_BIN" -n "${NODES[0]}" --cluster --for 1s 'nosuch:one/1'
    assert_failure 5
    assert_output ''
}

# Starts an epmd on each host 127.0.0.N that accepts connections and never answers.
silent_epmd() { # N...
    local hosts
    printf -v hosts ', {127, 0, 0, %d}' "$@"
    "$ETRACE_ERL" +Bi -noshell -noinput -eval "Port = list_to_integer(os:getenv(\"ERL_EPMD_PORT\")),
        [{ok, _} = gen_tcp:listen(Port, [{ip, H}, {backlog, 100}]) || H <- [${hosts#, }]], io:put_chars(\"listening\n\"), receive after infinity -> ok end." </dev/null >"$BATS_TEST_TMPDIR/epmd" 2>&1 3>&- &
    RETURNED+=("$!")
    until_true 60 has listening "$BATS_TEST_TMPDIR/epmd" || fail "$(<"$BATS_TEST_TMPDIR/epmd")"
}

@test "with --cluster, commands leave out the nodes on which nothing matches, and fail if none is left" {
    local here there command
    NODES=()
    node_start a
    node_start b
    here=${NODES[0]} there=${NODES[1]}
    node_eval "$here" "net_kernel:connect_node('$there'), code:del_path(filename:dirname(code:which(control))), code:purge(work), code:delete(work)" >/dev/null
    node_eval "$there" 'code:ensure_loaded(work), begin register(only, spawn(fun() -> receive stop -> ok end end)), ok end' >/dev/null
    cluster() { run --separate-stderr timeout 60 "$ETRACE_BIN" "$1" -n "$here" --cluster "${@:2}"; }
    for command in 'ls --json work:one/1' 'info work:one/1' 'info only' 'top --for 1s --json work:one/1' 'ps --json -P only' \
        'ps --json --for 1s -P only' 'stacks --json -P only' 'stacks --json --for 1s -P only'; do
        # shellcheck disable=SC2086
        cluster $command
        assert_equal "$command: $status" "$command: 0"
        assert_regex "$stderr" "etrace: left out: .*$here"
        assert_regex "$output" "$there"
        refute_regex "$output" "$here"
    done
    for command in 'ls work:nosuch/1' 'info nosuch' 'top --for 1s work:nosuch/1' 'ps -P nosuch' 'ps --for 1s -P nosuch' 'stacks -P nosuch'; do
        # shellcheck disable=SC2086
        cluster $command
        assert_equal "$command: $status $output" "$command: 5 "
        assert_regex "$stderr" "etrace: left out: .*$here"
        assert_regex "$stderr" "etrace: left out: .*$there"
    done
    # Without --cluster each named node must have it.
    run --separate-stderr timeout 60 "$ETRACE_BIN" top -n "$there" -n "$here" --for 1s work:one/1
    assert_failure 5
    assert_output ''
    assert_regex "$stderr" "$here"
}

@test "hidden nodes with a silent epmd do not end the sessions of the cluster" {
    local i
    NODES=()
    node_start a
    silent_epmd 77
    for i in 1 2 3; do
        "$ETRACE_ERL" +Bi -noshell -noinput -name "ghost$i@127.0.0.77" -hidden -start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' \
            -eval "true = net_kernel:connect_node('$NODE')." </dev/null >/dev/null 2>&1 3>&- &
        RETURNED+=("$!")
    done
    ghosts() { [[ $(node_eval "$NODE" 'length(nodes(hidden))') == 3 ]]; }
    until_true 20 ghosts
    begin 1 -n "$NODE" --cluster --json 'lists:seq(7777, _)'
    work "$NODE" 5
    trace_end
    assert_equal "$status" 0
    assert_equal "$(grep -c '"type":"call"' "$OUT")" 5
}

@test "a slow command of the interactive mode does not end the sessions of traced nodes" {
    local hosts=({71..77})
    NODES=()
    node_start a
    silent_epmd "${hosts[@]}"
    printf 'lists:seq(7777, _)\n:nodes%s\n:wait 5 events\n:quit\n' "$(printf ' 127.0.0.%d' "${hosts[@]}")" >"$BATS_TEST_TMPDIR/in"
    "$ETRACE_BIN" repl -n "$NODE" <"$BATS_TEST_TMPDIR/in" >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 60 has '127\.0\.0\.77' "$ERR" || fail "$(<"$ERR")"
    work "$NODE" 5
    trace_wait 20
    [[ $(grep -c 'lists:seq' "$OUT") -eq 5 ]] || fail "$(cat "$OUT" "$ERR")"
}

@test "a summary shows the figures of each node separately" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    begin 2 $(all_of) --summary 'lists:seq(7777, _)'
    work "${NODES[0]}" 5
    work "${NODES[1]}" 7
    trace_end
    assert_equal "$status" 0
    assert grep -q -E "^ *5 .*  ${NODES[0]} lists:seq/2$" "$OUT"
    assert grep -q -E "^ *7 .*  ${NODES[1]} lists:seq/2$" "$OUT"
    assert_regex "$talk" "etrace: ${NODES[0]}: 5 events"$'\n'
    assert_regex "$talk" "etrace: ${NODES[1]}: 7 events"$'\n'
}

@test "the interactive mode retries a lost node while it attaches to another one" {
    NODES=()
    node_start a
    node_start b
    late=late$RANDOM$RANDOM@127.0.0.1
    named "$late"
    there() { timeout 20 "$ETRACE_BIN" ls -n "$late" lists:seq/2; }
    until_true 30 there
    repl_start -n "${NODES[0]}" --reattach
    repl_line ":attach $late"
    until_true 30 has "^etrace: $late · OTP" "$ERR"
    kill -KILL "${RETURNED[0]}"
    wait "${RETURNED[0]}" || true
    until_true 30 has "$late: will be attached again" "$ERR"
    repl_line ':wait 2500ms' ":attach ${NODES[1]}" ':node' # one attempt a second fails during the wait
    until_true 30 has "^etrace: ${NODES[1]} · OTP" "$ERR"
    until_true 30 has "^  $late   (" "$OUT"
    repl_line ":attach $late" # an attempt by hand also fails, and the retries go on
    refused() { grep -q "^etrace: cannot connect to $late" "$ERR"; }
    until_true 30 refused
    named "$late"
    again() { [[ $(grep -c "^etrace: $late · OTP" "$ERR") -eq 2 ]]; }
    until_true 30 again
    repl_line ':quit' # the node that was started last has inherited the pipe and keeps it open
    repl_end
    trace_wait 20
    assert_equal "$status" 1 # a node went down
}

# interactive ARGS...: starts the interactive mode, which reads the lines of repl_line.
interactive() {
    repl_start --json "$@"
}

# Leaves the interactive mode. The status is 1, because a node was lost.
left_without_one() {
    repl_line ':quit'
    repl_end
    COMMAND=repl trace_wait 20
    assert_equal "$status" 1
}

@test "the interactive mode continues to trace the other nodes when a node stops answering" {
    NODES=()
    node_start a
    node_start b
    # shellcheck disable=SC2046
    interactive $(all_of)
    repl_line 'lists:seq(7777, _)'
    until_true 30 attached 1
    freeze "$(<"$(node_dir "${NODES[1]}")/pid")"
    repl_line 'lists:duplicate(_, _)'
    until_true 30 has "${NODES[1]} is no longer attached" "$ERR"
    until_true 30 has '^etrace: 2 probes' "$ERR" || fail "$(<"$ERR")"
    node_eval "${NODES[0]}" '{lists:seq(7777, 7778), lists:duplicate(2, a)}' >/dev/null
    until_true 30 has '"f":"duplicate"' "$OUT"
    until_true 30 has '"f":"seq"' "$OUT"
    # The node stops before or after it gets the request for the second probe.
    [[ $(grep -cE "${NODES[1]} (has not answered a request|is silent)" "$ERR") -eq 1 ]] || fail "$(<"$ERR")"
    kill -CONT "$(<"$(node_dir "${NODES[1]}")/pid")"
    left_without_one
}

@test "the interactive mode with --reattach starts although a node goes down during the attach" {
    local node
    NODES=()
    node_start a
    here=$NODE
    node_start b
    for node in "${NODES[@]}"; do "$ETRACE_BIN" -n "$node" -qq --for 1ms 'lists:seq(7777, _)'; done
    node_eval "$here" 'Me = self(), register(holder, spawn(fun() -> erlang:suspend_process(whereis(code_server)), Me ! held, receive go -> ok end end)), receive held -> ok end' >/dev/null
    # shellcheck disable=SC2046
    interactive $(all_of) --reattach
    until_true 30 has "^etrace: $NODE · OTP" "$ERR"
    node_stop "$NODE"
    until_true 30 has "^etrace: $NODE: will be attached again" "$ERR"
    node_eval "$here" 'holder ! go' >/dev/null
    repl_line 'lists:seq(7777, _)'
    until_true 30 attached 1
    work "$here" 1
    until_true 30 has '"f":"seq"' "$OUT" || fail "$(<"$ERR")"
    left_without_one
}

@test "a table of a cluster traces the node of the chosen row, and the commands that it shows name that node" {
    local here there
    NODES=()
    node_start a
    node_start b
    here=${NODES[0]} there=${NODES[1]}
    node_eval "$here" "net_kernel:connect_node('$there')" >/dev/null
    node_eval "$there" 'begin register(leaks, P = spawn(fun() -> receive stop -> ok end end)), [P ! x || _ <- lists:seq(1, 300)], ok end' >/dev/null
    # Without -n, the first node is the one of the environment.
    terminal 160 24 "ETRACE_NODE=$here $ETRACE_BIN ps --cluster --sort queue; echo the end; sleep 100"
    await '^q quit'
    await '300 .*\(leaks\)'
    keys Enter
    await "etrace -n $there -P '<[0-9.]+>'"
    keys Escape
    await '^q quit  Enter details'
    keys t
    await "etrace: etrace -n $there -P '<[0-9.]+>' 'recv\(_\)' 'send\(_, _\)'"
    await 'Ctrl-C stops'
    node_eval "$there" 'leaks ! hello_there' >/dev/null
    await 'leaks. receive .*hello_there'
    keys C-c
    await 'the end'
    terminal_end
    terminal 160 24 "ETRACE_NODE=$here $ETRACE_BIN stacks --cluster; echo the end; sleep 100"
    await '^q quit'
    keys / l e a k s Enter
    await 'stacks · .*/leaks$'
    keys t
    await "etrace: etrace -n $there -P '<[0-9.]+>'"
    await 'Ctrl-C stops'
    keys C-c
    await 'the end'
    terminal_end
    terminal 160 24 "ETRACE_NODE=$here $ETRACE_BIN top --cluster lists:seq/2; echo the end; sleep 100"
    await '^q quit'
    work "$there" 5
    await '^.* lists:seq/2'
    keys Enter
    await "^etrace -n $there -l 10 'lists:seq/2 -> return'"
    terminal_end
}

# The second name is the same node, so it gets no place of its own, as a node of a cluster that cannot be reached.
@test "commands for several nodes leave out a node that has no session" {
    NODES=()
    node_start twice
    local other=${NODES[0]/@127.0.0.1/@localhost} command
    for command in 'ls lists:seq/2' 'ps --json --once' 'top --json --for 1s lists:seq/2' 'sessions' 'sessions --json'; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 "$ETRACE_BIN" ${command%% *} -n "${NODES[0]}" -n "$other" ${command#"${command%% *}"}
        assert_success
        refute_regex "$output$stderr" '\(null\)|"node":null|not traced'
    done
}

@test "ls accepts --cluster, and commands for a single node refuse it" {
    NODES=()
    node_start a
    node_start b
    node_eval "${NODES[0]}" "net_kernel:connect_node('${NODES[1]}')" >/dev/null
    run --separate-stderr timeout 60 "$ETRACE_BIN" ls -n "${NODES[0]}" --cluster lists:seq/2
    assert_success
    assert_output --partial "${NODES[0]}"
    assert_output --partial "${NODES[1]}"
    for command in doctor repl 'sessions --destroy 1'; do
        # shellcheck disable=SC2086
        run timeout 20 "$ETRACE_BIN" $command -n "${NODES[0]}" --cluster </dev/null
        assert_failure 2
    done
    run timeout 20 "$ETRACE_BIN" --cluster lists:seq/2 -- true
    assert_failure 2
    assert_output --partial 'are not allowed'
}

@test "every command shows each of several nodes, looks at one only and says so, or takes no node" {
    local command node args
    NODES=()
    node_start a
    node_start b
    for command in $(commands_of_help); do
        [[ $command != @(mcp|demo) ]] || continue # they go on until their input or the demo ends
        if [[ $commands_without_node == *" $command "* ]]; then
            # shellcheck disable=SC2046
            run timeout 60 "$ETRACE_BIN" "$command" $(all_of) </dev/null
            assert_failure 2
            assert_line -n 0 "etrace: unknown option '-n'"
            continue
        fi
        command_args "$command"
        # shellcheck disable=SC2046
        run timeout 60 "$ETRACE_BIN" "$command" $(all_of) "${args[@]}" </dev/null
        if [[ $command == @(why|doctor) ]]; then
            assert_failure 2
            assert_line -n 0 --regexp "^etrace: $command (looks at|checks) one node"
            continue
        fi
        [[ $status -eq 0 || ($command == check && $status -eq 12) ]] || fail "etrace $command: $status, $output"
        for node in "${NODES[@]}"; do [[ $output == *"$node"* ]] || fail "etrace $command does not show $node: $output"; done
    done
}
