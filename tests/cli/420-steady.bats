#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The interactive mode while probes come and go: the remaining probes miss nothing, and each event is decoded as its
# probe requested it.

load ../lib/assert
load ../lib/live

setup_file() {
    live_begin steady
    live_repl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    NODE=$LIVE_NODE
    steady_end || true
    live_teardown_all
}

# Three workers count down from a million with one call of work:one/1 per step, until steady_end.
steady_begin() {
    on_node '[work:tell(work:worker(), fun() -> work:each(fun(N) -> work:one({I, N}), receive after 1 -> ok end end, 1000000) end)
        || I <- [1, 2, 3]]'
}
steady_end() { on_node '[exit(P, kill) || P <- processes(), {current_function, {work, each, 2}} <- [process_info(P, current_function)]] ++
    [exit(P, kill) || P <- processes(), {_, D} <- [process_info(P, current_stacktrace)], lists:keymember(each, 2, D)]'; }

COMMAND=repl

finish() {
    repl_end
    trace_wait 60
}

came() { [[ $(grep -c '"f":"one"' "$OUT") -ge $1 ]]; }
came_any() { [[ -s $OUT ]]; }
said() { [[ $(grep -c -e "$1" "$ERR") -ge $2 ]]; }

begin_steady() {
    repl_start -n "$NODE" --json --rate 0
    repl_line 'steady: work:one/1 -> return'
    until_true 30 said 'Ctrl-C stops' 1 || fail "$(cat "$ERR")"
    steady_begin
    until_true 30 came 100
}

# Each worker shows every number from a million down, once as a call and once as a return. Each of these events names
# the probe STEADY, alone or with others.
assert_whole() {
    grep '^{' "$OUT" >"$BATS_TEST_TMPDIR/events" # without the output of :commands
    jq -r 'select(.f == "one") | [.args[0] // .value, .type, (.probe | gsub(","; "+")), (.dur_us != null)] | map(tostring) | join(" ")' "$BATS_TEST_TMPDIR/events" |
        tr -d '{}' | tr ',' ' ' >"$BATS_TEST_TMPDIR/seen"
    awk '
        $4 !~ /^(steady$|steady\+)/ { print "line " NR ": the event belongs to no probe of this test: " $0; bad = 1 }
        $3 == "call" && !($1 in next_) { next_[$1] = 1000000 }
        $3 == "call" { if ($2 != next_[$1]) { print "line " NR ": " $0 " has the wrong argument, expected " next_[$1]; bad = 1 } next_[$1] = $2 - 1; calls++; open[$1] = $2 }
        $3 == "return" { if (open[$1] != $2 || $5 != "true") { print "line " NR ": a return without its call: " $0; bad = 1 } delete open[$1] }
        END { if (calls < 100 || length(next_) != 3) { print "only " calls " calls of " length(next_) " workers"; bad = 1 } exit bad }
    ' "$BATS_TEST_TMPDIR/seen" | head -n 20 >"$BATS_TEST_TMPDIR/wrong"
    [[ ! -s $BATS_TEST_TMPDIR/wrong ]] || fail "$(cat "$BATS_TEST_TMPDIR/wrong")"
}

@test "adding, changing, stopping and dropping probes neither loses nor repeats events of another probe" {
    begin_steady
    for round in 1 2 3 4 5; do
        repl_line 'other: work:two/2' 'again: work:one/1 -> caller' ':stop other' 'other: work:three/3 -> return' \
            'mail: send(_, _)' ':start all' ':drop again' 'whole: work:_/_ -> arity' '@exit' ':drop whole' ':drop mail' \
            'global work:two/2' 'lists:seq/2' ':drop other' "work:fac($round)"
    done
    repl_line ':probes' ':wait 100ms'
    until_true 60 said '21 probes' 1 || fail "$(cat "$ERR")"
    steady_end
    finish
    [[ $status == 0 ]] || fail "$(cat "$ERR")"
    assert_whole
    run grep -c '"type":"lost"' "$OUT"
    assert_output 0
}

@test "a refused setting or probe leaves the others unchanged" {
    begin_steady
    repl_line ':proc nobody_of_that_name' ':let X=[' ':hrl /nonexistent' 'work:no_such/7' 'x: work:one(#nothing{})' ':port-id driver:none' \
        ':set'
    until_true 30 grep -q '^:proc' "$OUT"
    kept=$(grep -c . "$OUT")
    further() { [[ $(grep -c . "$OUT") -gt $((kept + 100)) ]]; }
    until_true 30 further
    steady_end
    finish
    assert_equal "$(grep -E '^:(proc|let|hrl|port-id) ' "$OUT" | tr -d ' \n')" ':proc:port-id:let:hrl'
    for wrong in 'no process is registered as nobody_of_that_name' '/nonexistent' 'no function no_such/7' "unknown record 'nothing'"; do
        assert grep -q -e "$wrong" "$ERR"
    done
    assert_whole
}

@test "saved events of two nodes are in the order of time" {
    node_start second
    second=$NODE
    NODE=$LIVE_NODE
    repl_start -n "$NODE" -n "$second" --rate 0
    repl_line 'work:one/1'
    until_true 30 said 'Ctrl-C stops' 1 || fail "$(cat "$ERR")"
    works='[begin work:one(N), N rem 10 =:= 0 andalso receive after 1 -> ok end end || N <- lists:seq(1, 500)], ok'
    node_eval "$second" "$works" >/dev/null &
    other=$!
    on_node "$works"
    wait "$other"
    repl_line ':wait 1000 events' ":as json -o $BATS_TEST_TMPDIR/all.json" ":save $BATS_TEST_TMPDIR/all.etr" ':quit'
    finish
    [[ $status == 0 ]] || fail "$(cat "$ERR")"
    for events in "$BATS_TEST_TMPDIR/all.json" <("$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/all.etr"); do
        jq -r 'select(.type == "call") | .ts' "$events" >"$BATS_TEST_TMPDIR/times"
        assert_equal "$(wc -l <"$BATS_TEST_TMPDIR/times")" 1000
        # Without ordering, each of some fifty batches would step back in time. A few steps are allowed, because
        # etrace does not wait long for a slow node.
        back=$(awk '$1 < last { n++ } { last = $1 } END { print n + 0 }' "$BATS_TEST_TMPDIR/times")
        [[ $back -le 5 ]] || fail "the order of time is wrong $back times"
    done
    assert_equal "$(grep -c 'call work:one' "$OUT")" 1000
}

@test "a node can be attached again after a malformed batch, and its events are read" {
    repl_start -n "$NODE" --json
    repl_line 'work:one/1'
    until_true 30 said 'Ctrl-C stops' 1 || fail "$(cat "$ERR")"
    # Send a forged batch in the owner's name after the owner's last batch; it ends where its first section should
    # begin. Tracing does not report a send that is interrupted, so trace the call of send/3, and suspend the owner
    # where it is not inside of it.
    on_node '[O] = control:companion(owner), [M] = control:companion_modules(),
        erlang:trace_pattern({erlang, send, 3}, true, []), erlang:trace(O, true, [call]), work:one(before),
        First = receive {trace, O, call, {_, _, [_, <<$B, _/binary>> | _]}} = T -> T end,
        (fun Hold() -> erlang:suspend_process(O),
            case process_info(O, current_function) of {_, {M, _, _}} -> ok; _ -> erlang:resume_process(O), erlang:yield(), Hold() end end)(),
        R = erlang:trace_delivered(O), receive {trace_delivered, O, R} -> ok end,
        {_, _, _, {_, _, [Client, <<$B, Magic:32, _:32, Seq:64/little, Times:32/binary, _/binary>> | _]}} =
            (fun F(Last) -> receive {trace, O, call, {_, _, [_, <<$B, _/binary>> | _]}} = T -> F(T) after 0 -> Last end end)(First),
        Client ! <<$B, Magic:32, 56:32/little, (Seq + 1):64/little, Times/binary, 1:32/little, 0:32>>,
        erlang:trace_pattern({erlang, send, 3}, false, []), erlang:resume_process(O)'
    until_true 30 said 'is no longer attached' 1 || fail "$(cat "$ERR")"
    said 'malformed events: ' 1 || fail "$(cat "$ERR")"
    repl_line ":attach $NODE"
    until_true 30 said 'Ctrl-C stops' 2 || fail "$(cat "$ERR")"
    on_node 'work:one(behind)'
    until_true 30 grep -q behind "$OUT" || fail "$(cat "$ERR")"
    finish
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" 'before behind '
    assert_equal "$(grep -c 'malformed' "$ERR")" 1
}

@test "adding and dropping a wildcard probe shows no event of module_info" {
    repl_start -n "$NODE" --json --rate 0
    repl_line 'lists:keyfind/3'
    until_true 30 said 'Ctrl-C stops' 1 || fail "$(cat "$ERR")"
    on_node 'register(asker, spawn(fun() -> F = fun F() -> work:module_info(md5), F() end, F() end))'
    for round in 1 2 3 4 5; do
        repl_line "whole: work:_/_" ":drop whole"
    done
    until_true 60 said '1 probe ' 6 || fail "$(cat "$ERR")"
    on_node 'exit(whereis(asker), kill)'
    finish
    assert_equal "$(grep -c '"f":"module_info"' "$OUT")" 0
}

@test ":save writes the events so far and returns during a flood" {
    repl_start -n "$NODE" -q --rate 0 -o "$BATS_TEST_TMPDIR/all.json"
    repl_line 'work:one/1'
    on_node 'work:flood(2)'
    until_true 30 came_any
    repl_line ":save $BATS_TEST_TMPDIR/x.json" ":stop" ":version"
    until_true 60 grep -q '^etrace [0-9]' "$OUT" || fail "$(cat "$ERR")"
    on_node 'work:calm(ok)'
    finish
    assert_equal "$status" 0
    assert [ -s "$BATS_TEST_TMPDIR/x.json" ]
}
