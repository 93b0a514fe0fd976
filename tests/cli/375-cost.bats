#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the estimates before a trace: wildcards over hot functions get a budget, and etrace warns about functions that
# the tracing itself uses.

load ../lib/assert
load ../lib/live

setup_file() { live_begin cost; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

dry() { run "$ETRACE_BIN" -n "$NODE" --dry-run "$@"; }

@test "a wildcard over hot functions has a budget of 5% by default" {
    on_node 'work:flood(1)'
    traced -c '_:_' -- 'work:calm(ok)'
    assert_success
    assert grep -Eq "^etrace: tracing took [0-9.]+% of the schedulers' time \(limit 5%\)" "$ERR"
    assert grep -Eq 'only counted; busiest: ' "$ERR"
    assert grep -Eq '^ *~?[0-9]+ .* work:one/1$' "$OUT"
}

@test "--force, 100%, a name and -P have no budget by default" {
    for words in '--force maps:_' '--overhead 100% maps:_' 'work:one/1' 'work:_' '-P w maps:_' '_:handle_call/3'; do
        # shellcheck disable=SC2086  # options and an expression
        traced $words -- 'work:one(1)'
        assert_success
        refute grep -q 'tracing took' "$ERR"
    done
}

@test "a wildcard on an idle node is traced" {
    trace --json 'maps:_'
    on_node 'work:one(maps:from_keys([k], v))'
    trace_end
    assert_success
    assert_equal "$(json_of call 'select(.f == "from_keys") | .f' | head -n 1)" from_keys
    assert_account any
}

counting() {
    [[ $(node_eval "$NODE" 'length(trace:session_info(all))') -gt $1 ]]
}

@test "a kill during the first count leaves nothing" {
    sessions=$(node_eval "$NODE" 'length(trace:session_info(all))')
    "$ETRACE_BIN" -n "$NODE" '_:_' </dev/null >/dev/null 2>&1 3>&- &
    TRACERS+=("$!")
    until_true 30 counting "$sessions"
    kill -KILL "${TRACERS[-1]}"
    assert_clean "$BEFORE" "$NODE"
}

@test "wildcards exclude functions that the tracing itself uses" {
    dry '_:_'
    assert_success
    assert_line --regexp 'warning: left out, because etrace itself depends on them: [0-9]+ of .*code_server, .*\(--force selects them\)'
    all=$(sed -n 's/.* · \([0-9]*\) functions · .*/\1/p' <<<"$output")
    dry --force '_:_'
    assert_success
    assert_line --regexp 'warning: etrace itself depends on code_server, '
    forced=$(sed -n 's/.* · \([0-9]*\) functions · .*/\1/p' <<<"$output")
    assert [ "$forced" -gt "$all" ]
    dry 'erlang:trace*'
    assert_failure 4
    assert_line --regexp '^etrace: etrace itself depends on erlang:trace[a-z_]*/[0-9]: give its full name, or use --force$'
    dry 'prim_*:_'
    assert_failure 4
}

@test "a function that the tracing itself uses is traced by its name, with a warning" {
    dry 'prim_file:read_file/1'
    assert_success
    assert_line "etrace: $NODE: warning: etrace itself depends on prim_file"
    dry 'erlang:trace/3'
    assert_success
    dry 'code_server:_'
    assert_success
    assert_line "etrace: $NODE: warning: etrace itself depends on code_server"
}

@test "--dry-run prints the number of functions and processes" {
    dry 'work:_' 'lists:seq'
    assert_success
    assert_output --regexp "^etrace: $NODE · OTP ${ETRACE_OTP}[0-9.]* · [0-9]+ functions · [0-9]+ processes · not traced \(--dry-run\)$"
    # If no function matches, etrace prints no number of functions.
    dry 'work:nonesuch/1'
    assert_failure 5
    refute_output --partial 'functions ·'
}

@test "etrace reads expressions from standard input" {
    run "$ETRACE_BIN" -n "$NODE" --dry-run -f - <<<$'% two\nwork:one/1\nwork:two/2'
    assert_success
    assert_output --partial ' · 2 functions · '
}
