#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests views that are written to files by a live trace: each file is complete however the trace ends, and replay of a
# recording writes the same bytes.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_share files; }
teardown_file() { live_end; }
setup() { live_setup; cd "$BATS_TEST_TMPDIR" || return; }
teardown() { live_teardown; }

probes=('work:fac/1 -> return, caller' 'work:raise/2 -> return' 'work:one/1' -P w 'send(_, {ping, _, _})' 'recv({pong, _})')
work='work:ask(w, fun() -> work:fac(3), work:caught(error, oops), work:one(1), work:ping_pong(2) end)'

@test "every file of a live trace equals the file that replay makes from the recording" {
    traced -o a.etr -o a.svg -o a.html -o a.folded -o a.speedscope.json -o a.perfetto.json -o a.callgrind -o a.mmd -o a.csv \
        "${probes[@]}" -- "$work"
    assert_success
    assert [ "${#lines[@]}" -ge 12 ]
    run -0 "$ETRACE_BIN" replay -q a.etr -o b.svg -o b.html -o b.folded -o b.speedscope.json -o b.perfetto.json -o b.callgrind -o b.mmd -o b.csv
    for file in a.*; do
        [[ $file == a.etr ]] || cmp "$file" "b.${file#a.}" || fail "$file differs"
    done
    run cat a.folded
    assert_line --regexp '^work:fac/1;work:fac/1;work:fac/1;work:fac/1 [0-9]+$'
    run -0 jq '[.profiles[].events[] | select(.type == "O")] | length' a.speedscope.json
    assert_output 5
    run grep -c -- '->>' a.mmd
    assert_output 0 # only one end of each message was traced
    run grep -c -- '-)' a.mmd
    assert_output 4
}

@test "the name of a view is a command, and a view with a file prints nothing on standard output" {
    run "$ETRACE_BIN" flame -n "$NODE" -q --for 200ms -o a.svg 'work:fac/1 -> return'
    assert_success
    assert_output ''
    run tail -n 1 a.svg
    assert_output '</svg>'
    trace --as flame -o a.svg 'work:fac/1 -> return'
    on_node 'work:fac(5)'
    trace_end INT
    assert_equal "$status" 0
    assert_equal "$output" ''
    run tail -n 1 a.svg
    assert_output '</svg>'
    run grep -c '"work:fac/1"' a.svg
    assert_output 1 # the name of the function in the data
    run grep -c '<text [^>]*>work:fac/1</text>' a.svg
    [[ $output -ge 1 ]] # the frames that are shown without a script, if they are wide enough
    trace --as sequence -o a.html 'send(_, {ping, _, _})' 'recv({ping, _, _})'
    on_node 'work:ask(w, fun() -> work:ping_pong(3) end)'
    trace_end TERM
    assert_equal "$output" ''
    run tail -n 1 a.html
    assert_output '</html>'
    run grep -c '^"{ping,' a.html
    assert_output 3
}

@test "an output file is complete if the node goes down" {
    local before=$NODE
    node_start lost
    trace -o a.svg -o a.speedscope.json 'work:fac/1 -> return' 'work:slow/1 -> return'
    on_node 'work:fac(1), spawn(fun() -> work:slow(60000) end)'
    until_true 30 grep -q 'call work:slow' "$OUT"
    node_stop "$NODE"
    NODE=$before
    trace_wait 30
    assert_equal "$status" 1
    run tail -n 1 a.svg
    assert_output '</svg>'
    run -0 jq -r .name a.speedscope.json
    assert_output --partial '1 call incomplete'
    run -0 jq '[.profiles[].events[] | select(.type == "O")] | length' a.speedscope.json
    assert_output 2
}

@test "an output file is complete after --limit" {
    trace -o a.svg -o a.perfetto.json --limit 3 'work:fac/1 -> return'
    on_node 'work:fac(1), work:fac(1)'
    trace_wait 20
    assert_equal "$status" 0
    run tail -n 1 a.svg
    assert_output '</svg>'
    run -0 jq '[.traceEvents[] | select(.cat == "call")] | length' a.perfetto.json
    assert_output 3
}

@test "folded stacks report an open call as incomplete and omit its time" {
    trace --as folded 'work:slow/1 -> return' 'work:fac/1 -> return'
    on_node 'work:tell(w, fun() -> work:slow(60000) end), work:fac(0), work:within(w, slow)'
    trace_end INT
    assert_line '# *** 1 call incomplete ***'
    refute_line --partial slow
    on_node 'exit(whereis(w), kill), work:stop(work:worker())'
    until_true 30 node_true 'whereis(w) =:= undefined'
    on_node 'work:worker(w)'
    live_snapshot
}

node_true() { [[ $(node_eval "$NODE" "$1") == true ]]; }

@test "perfetto and csv files contain events before the trace ends" {
    trace -o a.perfetto.json -o a.csv 'work:one/1'
    on_node 'work:loop(3)'
    until_true 30 grep -q '"name":"work:one/1"' a.perfetto.json
    until_true 30 grep -q ',call,work,one,1,' a.csv
    trace_end INT
    run -0 jq '[.traceEvents[] | select(.cat == "call")] | length' a.perfetto.json
    assert_output 3
}

@test "--fields, --format and --terms apply to a live trace" {
    traced --format '{type}:{mfa}={value}' 'work:one/1 -> return' -- 'work:one({a, 1})'
    assert_output $'call:work:one/1=\nreturn:work:one/1={a,1}'
    traced --as csv --fields mfa,args,value --terms json 'work:one/1 -> return' -- 'work:one({a, [1]})'
    assert_line -n 1 'work:one/1,"[{""tuple"":[""a"",[1]]}]",'
    traced --elixir work:one/1 -- 'work:one(#{a => nil})'
    assert_output --partial 'call :work.one(%{a: nil})'
    run "$ETRACE_BIN" -n nobody@127.0.0.1 --fields pid,nme work:one/1
    assert_failure 2
    assert_line -n 1 'hint: did you mean name?'
}
