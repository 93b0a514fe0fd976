#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests bash completion without a node. Commands, options and their values come from the same tables as the help.

bats_require_minimum_version 1.5.0
load ../lib/assert

setup() {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    # shellcheck source=/dev/null
    source <("$ETRACE_BIN" completion bash)
}

# Sets output and lines to what Tab offers at the end of the command line.
tab() {
    export COMP_LINE="$ETRACE_BIN $1" COMP_POINT
    COMP_POINT=${#COMP_LINE}
    COMPREPLY=()
    _etrace etrace "${1##*[[:space:]:=]}" || true
    output=$(printf '%s\n' "${COMPREPLY[@]}")
    mapfile -t lines <<<"$output"
}

@test "completion offers commands and views, and no internal command" {
    tab ''
    assert_line trace
    assert_line doctor
    assert_line recipes
    assert_line tree
    refute_output --partial __complete
    tab 'do'
    assert_output doctor
}

@test "completion offers only the options of the command" {
    tab --lim
    assert_output --limit
    tab 'replay --red'
    assert_output ''
    tab 'explain --du'
    assert_output --dump
}

@test "completion offers the values of options" {
    tab '--as s'
    assert_line summary
    tab '--on-loss '
    assert_line warn
    assert_line stop
    tab '--color=al'
    assert_output always
    tab '--inherit first-l'
    assert_output first-link
    tab 'explain --dump=to'
    assert_output tokens
}

@test "completion offers the arguments of commands" {
    tab 'completion f'
    assert_output fish
    tab 'recipes slow-c'
    assert_output slow-calls
    tab 'help rep'
    assert_output $'repl\nreplay'
}

@test "the manual describes every word of where and every action" {
    local word manual
    manual=$(sed 's/\\//g' "$ETRACE_ROOT/man/etrace-expr.7.scd")
    for line in 'where ' '-> '; do
        tab "'x:y/0 $line" || true # it asks the shell to add no space, and there is no shell
        [[ ${#lines[@]} -ge 10 ]] || fail "fewer than ten words: $output"
        for word in "${lines[@]}"; do
            word=${word##* }
            grep -qE "\*${word%%[^a-z_]*}[^a-z_]" <<<"$manual" || fail "$word is not in etrace-expr(7)"
        done
    done
}

@test "the manual describes every event" {
    local event manual
    manual=$(sed 's/\\//g' "$ETRACE_ROOT/man/etrace-expr.7.scd")
    tab "'@" || true # it asks the shell to add no space, and there is no shell
    [[ ${#lines[@]} -ge 25 ]] || fail "fewer than 25 events: $output"
    for event in "${lines[@]}"; do
        event=${event##*@}
        grep -qE "\*@${event%%[^a-z_]*}[^a-z_]" <<<"$manual" || fail "@$event is not in etrace-expr(7)"
    done
}

@test "completion leaves file names and the command after -- to the shell" {
    tab 'x:y/0 -- e'
    assert_output ''
    tab 'replay sh'
    assert_output ''
    tab '-o sh'
    assert_output ''
}

@test "completion prints scripts for zsh and fish, and refuses other shells" {
    run "$ETRACE_BIN" completion zsh
    assert_success
    assert_line -n 0 '#compdef etrace'
    run "$ETRACE_BIN" completion fish
    assert_success
    run "$ETRACE_BIN" completion tcsh
    assert_failure 2
    run "$ETRACE_BIN" completion
    assert_failure 2
    assert_output --partial 'bash, zsh or fish'
}

@test "fish completes file names only where etrace offers nothing" {
    command -v fish || return 0 # skip the rest where fish is not installed
    "$ETRACE_BIN" completion fish >"$BATS_TEST_TMPDIR/etrace.fish"
    cd "$BATS_TEST_TMPDIR"
    : >doctor.etr
    PATH=$(dirname "$ETRACE_BIN"):$PATH HOME=$BATS_TEST_TMPDIR run fish -c 'source etrace.fish; complete -C "etrace do"'
    assert_output doctor
    PATH=$(dirname "$ETRACE_BIN"):$PATH HOME=$BATS_TEST_TMPDIR run fish -c 'source etrace.fish; complete -C "etrace replay do"'
    assert_output doctor.etr
}
