#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests --expect and --fail-on: the verdict on a recording, and on a live trace, which stops once the verdict is known.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_share asserted
    # Record one call that returns and one that raises.
    "$ETRACE_BIN" -n "$LIVE_NODE" -qq -o "$BATS_FILE_TMPDIR/scene.etr" --limit 2 --for 60s 'lists:seq/2 -> return' \
        </dev/null >"$BATS_FILE_TMPDIR/out" 2>&1 3>&- &
    until_true 30 recorded || return 1
    wait "$!"
}

recorded() {
    on_node 'lists:seq(1, 3), catch lists:seq(a, b)'
    [[ $(wc -l <"$BATS_FILE_TMPDIR/out") -ge 3 ]]
}

scene() { timeout 60 "$ETRACE_BIN" replay "$@" "$BATS_FILE_TMPDIR/scene.etr"; }

teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "--fail-on stops the trace at the first event that satisfies it" {
    trace --fail-on 'ret == [1, 2]' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 1)'
    on_node 'lists:seq(1, 2)'
    trace_wait 30
    assert_equal "$status" 10
    assert_regex "$talk" "etrace: --fail-on 'ret == \[1, 2\]' holds: .* return lists:seq/2 = \[1,2\]"
    assert_regex "$(totals)" '^4 events$'
}

@test "--expect stops the trace as soon as every expectation is met" {
    trace --expect 'ret == [1, 2]' --expect 'args[1] == 3' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 2)'
    on_node 'lists:seq(3, 4)'
    trace_wait 30
    assert_equal "$status" 0
}

@test "--expect does not stop a trace that also has --fail-on" {
    trace --expect 'ret == [1, 2]' --fail-on 'class == error' 'lists:seq/2 -> return'
    on_node 'lists:seq(1, 2)'
    on_node 'catch lists:seq(a, b)'
    trace_wait 30
    assert_equal "$status" 10
}

@test "an unmet --expect ends with status 11 and a message, unless etrace cannot connect" {
    traced --expect 'ret == [9]' --expect 'ret == [1]' 'lists:seq/2 -> return' -- 'lists:seq(1, 1)'
    assert_equal "$status" 11
    assert_regex "$talk" "etrace: --expect 'ret == \[9\]' held for no event"
    refute_regex "$talk" "--expect 'ret == \[1\]'"
    # Failing to connect takes precedence over the verdict.
    run timeout 60 "$ETRACE_BIN" -n nobody@127.0.0.1 --expect 'dur > 1s' lists:seq/2
    assert_failure 3
}

@test "a replay without assertions succeeds" {
    run scene
    assert_success
}

@test "--fail-on of a replay names the event" {
    run --separate-stderr scene --fail-on 'dur > 100s' --fail-on 'class == error'
    assert_failure 10
    assert_regex "$stderr" "^etrace: --fail-on 'class == error' holds: .* exception lists:seq/2 error:"
    run scene --fail-on 'dur > 100s'
    assert_success
}

@test "a replay succeeds only if every --expect holds for an event" {
    run scene --expect 'ret == [1, 2, 3]'
    assert_success
    run --separate-stderr scene --expect 'ret == [1, 2, 3]' --expect 'dur > 100s'
    assert_failure 11
    assert_equal "$stderr" "etrace: --expect 'dur > 100s' held for no event"
}

@test "assertions ignore events that a filter hides" {
    run scene -e 'ret == [1, 2, 3]' --fail-on 'class == error'
    assert_success
    run scene -e 'class == error' --expect 'ret == [1, 2, 3]'
    assert_failure 11
}

@test "a malformed assertion is refused like a filter" {
    run scene --expect 'size >'
    assert_failure 2
    run scene --fail-on 'text =~ "("'
    assert_failure 2
}

@test "filters and assertions make the trace include the results and callers that they read" {
    traced -e 'dur >= 0ns' 'lists:seq/2' -- 'lists:seq(1, 3)'
    assert_regex "$output" 'return lists:seq/2 = \[1,2,3\]'
    refute_regex "$talk" warning
    traced -e 'ret = [_, _]' 'lists:seq(_, N) when N < 9; (_, _) -> drop' -- 'lists:seq(1, 2), lists:seq(1, 3), lists:seq(8, 9)'
    assert_equal "$(grep -c ' call ' <<<"$output")" 1
    traced --fail-on 'class == error' 'lists:seq/2' -- 'catch lists:seq(a, b)'
    assert_equal "$status" 10
    traced --expect 'ret == [7]' 'lists:seq/2' -- 'lists:seq(7, 7)'
    assert_equal "$status" 0
    # The recording contains the callers, which etrace traced because the filter reads them.
    traced -e 'caller =~ "lists"' -o "$BATS_TEST_TMPDIR/x.etr" 'lists:reverse/2' 'lists:reverse/1 -> stack' -- 'lists:reverse([a, b, c, d])'
    refute_regex "$talk" warning
    run timeout 60 "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/x.etr"
    assert_regex "$output" '"caller":'
}

@test "a condition on results that no expression requests causes a warning" {
    traced --fail-on 'dur >= 0ns' 'ms lists:seq/2 [{_, [], []}]' -- 'lists:seq(1, 1)'
    assert_equal "$status" 0
    assert_regex "$talk" "etrace: warning: --fail-on 'dur >= 0ns' needs results, but no expression asks for them"
    traced --as tree 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_regex "$talk" 'etrace: warning: the view tree shows the calls as a list, because no expression asks for results'
    traced --as tree 'lists:seq/2 -> return' -- 'lists:seq(1, 1)'
    refute_regex "$talk" warning
    traced -c 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_regex "$talk" 'etrace: the view summary has no durations, because no expression asks for results \(-> return\)'
    assert_regex "$talk" 'Ctrl-C stops and prints'
    traced -c 'lists:seq/2 -> return' -- 'lists:seq(1, 1)'
    refute_regex "$talk" durations
    traced 'lists:seq/2' -- 'lists:seq(1, 1)'
    refute_regex "$talk" 'and prints'
    traced --as csv --fields time,mfa,dur -o "$BATS_TEST_TMPDIR/x.tsv" 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_equal "$(grep -c 'warning: --fields' <<<"$talk")" 1
    assert_regex "$talk" "etrace: warning: --fields 'time,mfa,dur' needs results, but no expression asks for them \(-> return\)"
    traced --format '{mfa} {ret}' 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_regex "$talk" "etrace: warning: --format '\{mfa\} \{ret\}' needs results"
    traced --format '{mfa} {ret}' 'lists:seq/2 -> return' -- 'lists:seq(1, 1)'
    refute_regex "$talk" warning
    # Without results these views are empty, as on an idle node. The warning gives the reason.
    traced --as folded -o "$BATS_TEST_TMPDIR/x.html" 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_regex "$talk" 'etrace: warning: the view flame shows nothing, because no expression asks for results'
    assert_regex "$talk" 'etrace: warning: the view folded shows nothing, because no expression asks for results'
    traced --as perfetto 'lists:seq/2' -- 'lists:seq(1, 1)'
    assert_regex "$talk" 'etrace: warning: the view perfetto shows the calls as instants, because no expression asks for results'
    traced --as folded 'lists:seq/2 -> stack' -- 'lists:seq(1, 1)'
    refute_regex "$talk" warning
}

@test "--limit counts only the requested events of a flag" {
    trace --limit 2 '@spawn'
    on_node '[begin {P, M} = spawn_monitor(fun() -> ok end), receive {_, M, _, P, _} -> ok end end || _ <- [1, 2, 3]]'
    trace_wait 30
    assert_equal "$(grep -c ' spawn ' <<<"$output")" 2
}
