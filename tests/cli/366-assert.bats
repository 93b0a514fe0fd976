#!/usr/bin/env bats
# --expect and --fail-on on a live node: the trace stops when the verdict is in.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
load ../lib/live

setup_file() { live_begin asserted; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "--fail-on stops at the event that it holds for" {
    trace --fail-on 'ret == [1, 2]' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 1)'
    on_node 'lists:seq(1, 2)'
    trace_wait 30
    assert_equal "$status" 10
    assert_regex "$talk" "etrace: --fail-on 'ret == \[1, 2\]' holds: .* return lists:seq/2 = \[1,2\]"
    assert_regex "$talk" 'session destroyed'
}

@test "--expect stops as soon as all have held" {
    trace --expect 'ret == [1, 2]' --expect 'args[1] == 3' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 2)'
    on_node 'lists:seq(3, 4)'
    trace_wait 30
    assert_equal "$status" 0
}

@test "with both, it goes on to the end" {
    trace --expect 'ret == [1, 2]' --fail-on 'class == error' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 2)'
    on_node 'catch lists:seq(a, b)'
    trace_wait 30
    assert_equal "$status" 10
}

@test "what never came is said in the end, with what comes before it" {
    traced --expect 'ret == [9]' --expect 'ret == [1]' 'lists:seq/2 -> return' -- 'lists:seq(1, 1)'
    assert_equal "$status" 11
    assert_regex "$talk" "etrace: --expect 'ret == \[9\]' held for no event"
    refute_regex "$talk" "--expect 'ret == \[1\]'"
    # A node that goes away is the greater trouble.
    run timeout 60 "$ETRACE_BIN" -n nobody@127.0.0.1 --expect 'dur > 1s' lists:seq/2
    assert_failure 3
}

@test "--limit with events of a flag that brings more than was asked for" {
    trace --limit 2 '@spawn'
    on_node '[begin {P, M} = spawn_monitor(fun() -> ok end), receive {_, M, _, P, _} -> ok end end || _ <- [1, 2, 3]]'
    trace_wait 30
    assert_equal "$(grep -c ' spawn ' <<<"$output")" 2
}
