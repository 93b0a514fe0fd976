#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests --sort of the commands on a node, for every command and every column. cli/106 tests the views.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_begin sort; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown
}

# Prints the commands that have --sort in their help and print a table of their own.
commands() {
    local name
    while read -r name; do
        [[ $("$ETRACE_BIN" help "$name" --all) != *columns:* ]] || echo "$name"
    done < <("$ETRACE_BIN" help --all | sed -n '/^commands:/,/^$/p' | awk '/^  [a-z]/ {print $1}')
}

# Sets words to what the command needs to print its table quickly.
words_of() {
    words=(-n "$NODE")
    case $1 in
    top) words+=(--for 100ms lists) ;;
    check) words+=(--for 100ms) ;;
    ls) words+=('gen:_') ;;
    stacks) words+=(-1) ;;
    nodes) words=("127.0.0.1") ;;
    esac
}

# bats test_tags=long
@test "every command that prints a table sorts by each of its columns in both directions" {
    local sorted='' name column way
    for name in $(commands); do
        words_of "$name"
        sorted+=" $name"
        while read -r column; do
            for way in asc desc; do
                if [[ $name == stacks ]]; then
                    # One look shows no growth.
                    [[ $column != growth ]] || continue
                    run --separate-stderr "$ETRACE_BIN" "$name" -q "${words[@]}" --sort "$column:$way"
                    assert_success
                    continue
                fi
                run --separate-stderr "$ETRACE_BIN" "$name" -q "${words[@]}" --as csv --sort "$column:$way"
                [[ $name == check || $status == 0 ]] || fail "$name $column:$way: $stderr"
                # The order of the severities is that of harm.
                [[ $name$column == checkseverity ]] ||
                    "$ETRACE_ROOT/tests/lib/sorted_rows.py" "$column" "$way" <<<"$output" || fail "$name"
            done
        done < <("$ETRACE_BIN" "$name" --sort no_such_column 2>&1 | sed -n "s/.*; the columns are //p" | sed 's/, /\n/g')
    done
    assert_equal "$sorted" ' check stacks ps top ls sessions nodes'
}

@test "stacks sorts its JSON by count, status and time" {
    for column in count waited_ms; do
        run --separate-stderr "$ETRACE_BIN" stacks -n "$NODE" --json --sort "$column:asc"
        assert_success
        counts=$(jq "select(.type == \"stack\").$column" <<<"$output")
        assert_equal "$counts" "$(sort -n <<<"$counts")"
    done
}

@test "--rows has the first rows of the order, and old names of columns work" {
    run --separate-stderr "$ETRACE_BIN" ps -n "$NODE" --as csv --sort name:desc --rows 1000
    assert_success
    whole=$(head -n 4 <<<"$output" | cut -d, -f 1-3)
    run --separate-stderr "$ETRACE_BIN" ps -n "$NODE" --as csv --sort name:desc --rows 3
    assert_equal "$(cut -d, -f 1-3 <<<"$output")" "$whole"
    run --separate-stderr "$ETRACE_BIN" top -n "$NODE" --for 200ms 'gen:_' lists --as csv --sort calls:asc --rows 2
    assert_success
    assert_equal "${#lines[@]}" 3
    # 0 is all rows, in every table with --rows.
    for command in ps stacks 'top --for 200ms lists'; do
        # shellcheck disable=SC2086 # the words of a command
        run --separate-stderr "$ETRACE_BIN" $command -n "$NODE" --rows 0
        assert_success
    done
    for sort in memory queue binaries reductions; do "$ETRACE_BIN" ps -q -n "$NODE" --sort "$sort" >/dev/null; done
    for sort in time calls memory name; do "$ETRACE_BIN" top -q -n "$NODE" --for 50ms lists --sort "$sort" >/dev/null; done
}

@test "keys of a screen go to the next column and reverse the order" {
    terminal 120 24 "$ETRACE_BIN ps -n $NODE"
    await '^etrace ps · sorted by memory · '
    typed s
    await '^etrace ps · sorted by binaries · '
    keys Left
    keys Left
    await '^etrace ps · sorted by queue · '
    keys Left
    await '^etrace ps · sorted by does · '
    typed q
    terminal_end
}

@test "the table of a trace sorts live, by the option and by keys" {
    on_node 'spawn(fun() -> register(sorter, self()), control:again(20, fun() -> lists:seq(1, 3), lists:seq(1, 3), lists:max([1]) end) end)'
    terminal 100 24 "$ETRACE_BIN -n $NODE 'lists:seq/2 by mfa: count' 'lists:max/1 by mfa: count' --sort mfa"
    await '^lists:max/1 '
    typed q
    terminal_end
    terminal 100 24 "$ETRACE_BIN -n $NODE -P sorter 'lists:_ by mfa: count' --sort count:asc"
    await '^etrace trace · '
    typed o
    await 'lists:seq/2'
    typed q
    terminal_end
    on_node 'sorter ! stop'
}

@test "the interactive mode has :sort for its tables, and other views stay as they are" {
    repl() { run timeout 60 "$ETRACE_BIN" repl -n "$NODE" <<<"$1"; }
    repl $':sort total:asc\n:as text\n:as summary'
    assert_success
    assert_line --partial function
    repl $':sort total:asc\n:set'
    assert_success
    assert_output --partial 'total:asc'
    repl $':sort nothing\n:as summary'
    assert_failure 2
    assert_output --partial "no column 'nothing'; the columns are calls, errors,"
}
