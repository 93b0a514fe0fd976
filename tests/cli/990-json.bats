#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Validates all JSON lines that the previous suites printed, and those of its own traces, against the schema.
# tests/run: last

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_share schema; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "two traces print JSON lines of every common type" {
    trace --json 'lists:seq/2 -> return, caller, stack(3), msg({a, 1})' 'send(_, _)' 'recv(_)' '@spawn' '@exit' '@link' '@register' '@in' '@out'
    on_node 'lists:seq(1, 3), catch lists:seq(a, b), P = spawn_link(fun() -> register(for_schema, self()), receive stop -> ok end end),
        P ! stop, timer:sleep(50)'
    trace_end
    trace --json --rate 2 'lists:seq/2'
    on_node '[lists:seq(1, N) || N <- lists:seq(1, 200)]'
    trace_end
    for type in call return exception send receive spawn exit link register in out attached lost summary; do
        grep -q "\"type\":\"$type\"" "$ETRACE_RUN_DIR/json_lines" || fail "the output has no $type"
    done
}

# These commands print types of lines that are no events. The trace has a return_to without a function.
@test "the JSON lines of all commands, and a return_to without a function, match the schema" {
    local printed=$BATS_TEST_TMPDIR/commands type
    on_node 'register(for_sessions, spawn(fun() -> S = trace:session_create(theirs, self(), []), trace:process(S, whereis(w), true, [call]),
        [trace:port(S, P, true, [send]) || P <- lists:sublist(erlang:ports(), 1)], receive stop -> trace:session_destroy(S) end end))'
    {
        "$ETRACE_BIN" ls -n "$NODE" --json 'work:*'
        "$ETRACE_BIN" info -n "$NODE" --json 'work:one/1'
        "$ETRACE_BIN" info -n "$NODE" --json w
        "$ETRACE_BIN" sessions -n "$NODE" --json
        "$ETRACE_BIN" nodes --json 127.0.0.1
        "$ETRACE_BIN" doctor -n "$NODE" --json
        "$ETRACE_BIN" top -n "$NODE" --json --for 300ms -i 100ms 'work:_'
    } >"$printed" 2>/dev/null
    on_node 'for_sessions ! stop'
    trace --json --limit 3 'work:one/1 -> return_to'
    on_node '[spawn(work, one, [N]) || N <- [1, 2]]'
    trace_end
    # The processes begin with that function, so it returns to no other function.
    jq -e -s 'map(select(.type == "return_to")) | length > 0 and all(has("m") | not)' "$OUT" >/dev/null || fail "$(<"$OUT")"
    cat "$OUT" >>"$printed"
    for type in function info session node step counted return_to; do
        grep -q "\"type\":\"$type\"" "$printed" || fail "the output has no $type in $(cut -c 1-100 "$printed")"
    done
    "$ETRACE_BIN" schema >"$BATS_TEST_TMPDIR/schema"
    run /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" "$BATS_TEST_TMPDIR/schema" "$printed"
    assert_success
    live_snapshot
}

@test "all JSON lines that the suites printed match the schema" {
    "$ETRACE_BIN" schema >"$BATS_TEST_TMPDIR/schema"
    # The schema does not distinguish lines that differ only in digits.
    awk '{ key = $0; gsub(/[0-9]+/, "0", key) } !seen[key]++' "$ETRACE_RUN_DIR/json_lines" >"$BATS_TEST_TMPDIR/lines"
    run /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" "$BATS_TEST_TMPDIR/schema" "$BATS_TEST_TMPDIR/lines"
    assert_success
}
