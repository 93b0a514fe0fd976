#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the JSON Schema of the JSON lines: it is valid, and it lists the events and losses that the source defines.

bats_require_minimum_version 1.5.0
load ../lib/assert

validate() { /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" "$BATS_TEST_TMPDIR/schema" "$@"; }

setup() { "$ETRACE_BIN" schema >"$BATS_TEST_TMPDIR/schema"; }

@test "the schema lists every kind of event and every reason of a loss" {
    "$ETRACE_ROOT/build/tests/foreign" --types | sort >"$BATS_TEST_TMPDIR/kinds"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/kinds")" -gt 25 ]
    jq -r '.properties.type.enum[]' "$BATS_TEST_TMPDIR/schema" | sort >"$BATS_TEST_TMPDIR/types"
    run comm -23 "$BATS_TEST_TMPDIR/kinds" "$BATS_TEST_TMPDIR/types"
    assert_output ''
    run comm -13 "$BATS_TEST_TMPDIR/kinds" "$BATS_TEST_TMPDIR/types"
    assert_output "$(printf '%s\n' check count counted death deaths deaths_missing finding function info node only_counted process processes rearmed request requests requests_missing row session stack stacks step summary table unchecked why)"
    sed -n 's/.*\] = "\([a-z_0-9]*\)".*\] = "\([a-z_0-9]*\)".*\] = "\([a-z_0-9]*\)".*/\1\n\2\n\3/p; s/.*\] = "\([a-z_0-9]*\)".*/\1/p' \
        "$ETRACE_ROOT/cli/events/event.c" | sort -u >"$BATS_TEST_TMPDIR/losses"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/losses")" -ge 3 ]
    jq -r '."$defs".loss.enum[]' "$BATS_TEST_TMPDIR/schema" | sort >"$BATS_TEST_TMPDIR/known"
    run comm -23 "$BATS_TEST_TMPDIR/losses" "$BATS_TEST_TMPDIR/known"
    assert_output ''
}

@test "the schema lists every cause of why" {
    run jq -r '[.. | .cause? | objects | .enum? // empty][0] | .[]' "$BATS_TEST_TMPDIR/schema"
    assert_success
    assert_equal "$(sed -n '/^const char \*const why_causes/,/^};/p' "$ETRACE_ROOT/cli/commands/why_look.c" | grep -o '"[a-z_]*"' | tr -d '"')" "$output"
}

@test "the schema rejects malformed lines and accepts a valid one" {
    base='"v":1,"ts":"2026-01-01T00:00:00.000000Z","mono_ns":1,"node":"n@h","pid":"<0.1.0>"'
    wrong=('{"v":1}' '{"v":2,"type":"summary"}' '{"v":1,"type":"call"}'
        "{$base,\"type\":\"call\",\"m\":\"a\",\"f\":\"b\"}"
        "{$base,\"type\":\"call\",\"m\":\"a\",\"f\":\"b\",\"a\":1,\"unknown\":2}"
        "{$base,\"type\":\"return\",\"m\":\"a\",\"f\":\"b\",\"a\":1}"
        "{$base,\"type\":\"exit\"}" "{$base,\"type\":\"teleport\"}"
        "{$base,\"type\":\"lost\",\"count\":0,\"reason\":\"rate\"}")
    printf '%s\n' "${wrong[@]}" >"$BATS_TEST_TMPDIR/line"
    run validate "$BATS_TEST_TMPDIR/line"
    assert_failure 1
    assert_line "${#wrong[@]} lines, ${#wrong[@]} wrong"
    echo "{$base,\"type\":\"call\",\"m\":\"a\",\"f\":\"b\",\"a\":1,\"args\":[\"x\"]}" >"$BATS_TEST_TMPDIR/line"
    run validate "$BATS_TEST_TMPDIR/line"
    assert_success
}
