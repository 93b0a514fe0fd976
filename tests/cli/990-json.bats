#!/usr/bin/env bats
# The JSON lines that all suites before this one have printed, every one, by the schema; and a trace of its own.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
load ../lib/live

setup_file() { live_begin schema; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "calls, messages, processes, schedules, losses and notices" {
    trace --json 'lists:seq/2 -> return, caller, stack(3), msg({a, 1})' 'send(_, _)' 'recv(_)' '@spawn' '@exit' '@link' '@register' '@in' '@out'
    on_node 'lists:seq(1, 3), catch lists:seq(a, b), P = spawn_link(fun() -> register(for_schema, self()), receive stop -> ok end end),
        P ! stop, timer:sleep(50)'
    trace_end
    trace --json --rate 2 'lists:seq/2'
    on_node '[lists:seq(1, N) || N <- lists:seq(1, 200)]'
    trace_end
    for type in call return exception send receive spawn exit link register in out attached lost summary; do
        grep -q "\"type\":\"$type\"" "$ETRACE_RUN_DIR/json_lines" || fail "no $type"
    done
}

@test "all that was printed is valid" {
    "$ETRACE_BIN" schema >"$BATS_TEST_TMPDIR/schema"
    # Lines that differ in digits alone are the same to the schema.
    awk '{ key = $0; gsub(/[0-9]+/, "0", key) } !seen[key]++' "$ETRACE_RUN_DIR/json_lines" >"$BATS_TEST_TMPDIR/lines"
    run /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" "$BATS_TEST_TMPDIR/schema" "$BATS_TEST_TMPDIR/lines"
    assert_success
}
