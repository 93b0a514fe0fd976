#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every recipe, run on the shop as it is written, shows something.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/commands
load ../lib/node

setup_file() {
    local ebin=$BATS_FILE_TMPDIR/ebin
    mkdir "$ebin"
    "$ETRACE_ERLC" -o "$ebin" "$ETRACE_ROOT"/share/demo/*.erl
    node_start shop +pc unicode -kernel logger_level critical -pa "$ebin" -s shop start
    COMMANDS=" $(commands_of_help | xargs) "
    export COMMANDS ETRACE_NODE=$NODE PATH=${ETRACE_ERL%/*}:$PATH
}

teardown_file() { node_stop "$ETRACE_NODE"; }

# Limits each trace, as a user does who has seen enough. The rest of the pipeline is unchanged.
etrace() {
    local limits=(--for 40s --limit 2)
    [[ $COMMANDS != *" $1 "* || $1 == @(trace|died) ]] || limits=()
    [[ " $* " != *@(' -- '|' --fail-on '|' --snapshot-when ')* ]] || limits=()
    if [[ ${#limits[@]} -gt 0 ]]; then set -- "${limits[@]}" "${@/#5s/40s}"; fi
    timeout 60 "$ETRACE_BIN" "$@"
}
export -f etrace

# Runs the command of a recipe as written, and succeeds if it prints anything to standard output.
shows() { # FILE
    local command
    command=$(sed -n '3{s/^    \$ //p;q}' "$1")
    [[ $command == etrace\ * ]] || return 1
    (cd "$BATS_TEST_TMPDIR" && bash -c "$command" >out 2>err </dev/null 3>&-) && [[ -s $BATS_TEST_TMPDIR/out ]]
}

@test "each recipe prints something on the demo shop" {
    local failed=() file count=0
    for file in "$ETRACE_ROOT"/share/recipes/*.recipe; do
        count=$((count + 1))
        shows "$file" || failed+=("${file##*/}: $(cat "$BATS_TEST_TMPDIR/err")")
    done
    [ "$count" -ge 20 ]
    [ "${#failed[@]}" -eq 0 ] || fail "$(printf '%s\n' "${failed[@]}")"
}
