#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests --sort of views in a replay, for every view and every column, and its mistakes. cli/397 tests the commands.

bats_require_minimum_version 1.5.0
load ../lib/assert

recording=$ETRACE_ROOT/tests/fixtures/shop.etr
by='mfa, pid: count, max(dur), sum(dur), quantiles(dur), hist(dur)'

replay() { "$ETRACE_BIN" replay -q --utc "$recording" "$@"; }

# Prints the names of the views in `etrace help`.
views() { "$ETRACE_BIN" help | sed -n '/^views, for --as:/,/^$/p' | sed 's/^views, for --as://'; }

# Sets options to those that the view needs.
options_of() {
    options=(--as "$1")
    [[ $1 != table* ]] || options+=(--by "$by")
}

# Prints the columns of the view, one in a line, as the error about a wrong name lists them.
columns_of() {
    options_of "$1"
    replay "${options[@]}" --sort no_such_column 2>&1 | sed -n "s/.*; the columns are //p" | sed 's/, /\n/g'
}

# Prints the columns of the tables of `by`, whose keys have commas.
columns_of_by() {
    replay --by "$by" --as tablecsv | head -n 1 | python3 -c 'import csv, sys; print("\n".join(next(csv.reader(sys.stdin))))'
}

@test "every view that prints a table sorts by each of its columns in both directions, and no other view takes --sort" {
    local sorted='' view column way
    for view in $(views); do
        options_of "$view"
        [[ $view != record && $view != pprof ]] || continue
        run replay "${options[@]}" --sort no_such_column
        assert_failure 2
        if [[ $output != *'; the columns are '* ]]; then
            assert_output --partial '--sort only works with tables'
            continue
        fi
        sorted+=" $view"
        replay "${options[@]}" >"$BATS_TEST_TMPDIR/usual"
        while read -r column; do
            for way in asc desc; do
                replay "${options[@]}" --sort "$column:$way" >"$BATS_TEST_TMPDIR/rows" || fail "$view $column:$way"
                cmp <(sort "$BATS_TEST_TMPDIR/usual") <(sort "$BATS_TEST_TMPDIR/rows") || fail "$view $column:$way has other lines"
                [[ $view != *csv ]] ||
                    "$ETRACE_ROOT/tests/lib/sorted_rows.py" "$column" "$way" <"$BATS_TEST_TMPDIR/rows" || fail "$view"
            done
        done < <(if [[ $view == table* ]]; then columns_of_by; else columns_of "$view"; fi)
    done
    assert_equal "$sorted" ' summary requests requestjson requesthist requestcsv requesttsv table tablejson tablecsv tabletsv'
}

@test "text and JSON have the order of CSV" {
    for way in asc desc; do
        run -0 bash -c '"$0" replay -q "$1" --as tablecsv --by "mfa: count" --sort "count:$2" | sed 1d | sed "s/.*,//"' \
            "$ETRACE_BIN" "$recording" "$way"
        csv=$output
        assert_equal "$(replay --as tablejson --by 'mfa: count' --sort "count:$way" | jq 'select(.type == "row").count')" "$csv"
        assert_equal "$(replay --as table --by 'mfa: count' --sort "count:$way" | sed -n '2,/^\*/p' | grep -v '^\*' | awk '{print $NF}')" "$csv"
    done
    assert_equal "$(replay --as requestjson --sort calls:asc | jq -c 'select(.type == "requests").calls')" \
        "$(replay --as requestcsv --sort calls:asc | sed 1d | python3 -c 'import csv, sys; [print(r[3]) for r in csv.reader(sys.stdin)]')"
}

@test "the summary sorts by the values behind its durations, and by names" {
    run -0 replay -c --sort max
    [[ ${lines[0]} == *calls*function* ]]
    run -0 bash -c '"$0" replay -q "$1" -c --sort calls:asc | sed 1d | awk "NF > 5 {print \$1}"' "$ETRACE_BIN" "$recording"
    assert_equal "$output" "$(sort -n <<<"$output")"
    run -0 bash -c '"$0" replay -q "$1" -c --sort function | sed 1d | awk "NF > 5 {print \$NF}"' "$ETRACE_BIN" "$recording"
    assert_equal "$output" "$(LC_ALL=C sort <<<"$output")"
}

@test "a wrong column is one line that lists the columns, before etrace attaches" {
    for command in ps top stacks check nodes ls sessions; do
        run "$ETRACE_BIN" "$command" -q --sort no_such_column
        assert_failure 2
        [[ ${lines[0]} == "etrace: --sort: no column 'no_such_column'; the columns are "* ]] || fail "$command: $output"
    done
    for sort in '' :asc calls:up calls: 'calls:asc:asc'; do
        run "$ETRACE_BIN" -n nobody@127.0.0.1 'lists:_' -c --sort "$sort"
        assert_failure 2
        assert_equal "${lines[-1]}" \
            "etrace: --sort: no column '$sort'; the columns are calls, errors, untimed, total, mean, p50, p99, max, function"
    done
    run "$ETRACE_BIN" -n nobody@127.0.0.1 'lists:seq(A, _) by A: count, max(dur)' --sort total
    assert_failure 2
    assert_output "etrace: --sort: no column 'total'; the columns are node, A, count, max(dur)_us"
    run "$ETRACE_BIN" requests -n nobody@127.0.0.1 --sort total
    assert_failure 2
    assert_output --partial "--sort: no column 'total'; the columns are node, server, shape, calls, "
    run "$ETRACE_BIN" -n nobody@127.0.0.1 'lists:_' --sort total
    assert_failure 2
    assert_output --partial '--sort only works with tables'
}

@test "completion and help have the names of the columns" {
    run -0 "$ETRACE_BIN" __complete ps --sort ''
    assert_line reductions
    assert_line stack
    run -0 "$ETRACE_BIN" __complete top --sort ti
    assert_output $'time_us\ntime_each'
    run -0 "$ETRACE_BIN" __complete 'lists:_' -c --sort ''
    assert_line p99
    run -0 "$ETRACE_BIN" __complete replay --as requestcsv --sort oldest
    assert_output oldest_us
    run -0 "$ETRACE_BIN" ps -h
    [[ $(tr -s '\n ' ' ' <<<"$output") == *'columns: node, pid, name, queue, memory, binaries, reductions, holds, '* ]]
}
