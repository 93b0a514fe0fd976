#!/usr/bin/env bats
# Every recipe, run on the shop as it is written, shows something.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
load ../lib/node

setup_file() {
    local ebin=$BATS_FILE_TMPDIR/ebin
    mkdir "$ebin"
    "$ETRACE_ERLC" -o "$ebin" "$ETRACE_ROOT"/share/demo/*.erl
    node_start shop +pc unicode -kernel logger_level critical -pa "$ebin" -s shop start
    export ETRACE_NODE=$NODE PATH=${ETRACE_ERL%/*}:$PATH
}

teardown_file() { node_stop "$ETRACE_NODE"; }

# As somebody would end it who has seen enough; the pipes behind it are left as they are.
etrace() {
    case " $* " in
        *' replay '* | *' -- '* | *' --fail-on '*) timeout 60 "$ETRACE_BIN" "$@" ;;
        *) timeout 60 "$ETRACE_BIN" --for 40s --limit 2 "${@/#5s/40s}" ;;
    esac
}
export -f etrace

recipe_shows() {
    local file=$ETRACE_ROOT/share/recipes/$1.recipe command
    command=$(sed -n '3{s/^    \$ //p;q}' "$file")
    [[ $command == etrace\ * ]] || fail "no command: $command"
    cd "$BATS_TEST_TMPDIR" || return
    run bash -c "$command"
    assert_success
    refute_output ''
    # Not only what was said on the side.
    run bash -c "{ $command; } 2>/dev/null"
    [[ $output ]] || fail "no event from: $command"
}

while IFS= read -r file; do
    name=${file##*/}
    name=${name%.recipe}
    bats_test_function --description "$name" -- recipe_shows "$name"
done < <(printf '%s\n' "$ETRACE_ROOT"/share/recipes/*.recipe)
