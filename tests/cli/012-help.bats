#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the help and the manual without a node: every command, option, view and word is explained, on one screen where
# possible, and etrace accepts every example.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/commands
load ../lib/nodeless

etrace() { "$ETRACE_BIN" "$@"; }

@test "the example with jq in the help prints no null" {
    local filter events='{"type":"call"}
{"type":"return","dur_us":12.5}
{"type":"summary"}'
    filter=$("$ETRACE_BIN" help | sed -n "s/.*jq '\(.*\)'$/\1/p")
    [[ $filter ]]
    assert_equal "$(jq "$filter" <<<"$events")" 12.5
}

@test "help explains topics, options, and every word of the language" {
    local topic words
    for topic in model expr events actions guards where by views json; do
        [[ " $("$ETRACE_BIN" help | tail -n 1 | xargs) " == *" $topic "* ]] || fail "the overview does not name $topic"
        run etrace help "$topic"
        assert_success
        [ "${#lines[@]}" -ge 10 ] || fail "no page: $topic"
        while IFS= read -r line; do [ "${#line}" -le 80 ] || fail "too wide in $topic: $line"; done <<<"$output"
        run etrace help model "$topic"
        assert_success
    done
    # Every word that completion knows in an expression, and every option of every command.
    mapfile -t words < <(
        sed -n 's/^\(ACTION\|EVENT\)([a-zA-Z_]*, "\([a-z_]*\)".*/\2/p; s/^PROPERTY(\([a-z_]*\),.*/\1/p' \
            "$ETRACE_ROOT"/cli/lang/{actions,events,properties}.def
        views_of_help
        # shellcheck disable=SC2046
        "$ETRACE_BIN" help --all $(commands_of_help) | sed -nE 's/^  (-[a-zA-Z],|   ) --([a-z-]+).*/\2/p' | sort -u
    )
    [ "${#words[@]}" -gt 150 ]
    run -0 etrace help "${words[@]}" is_atom @gc_major_end
    [ "${#lines[@]}" -ge "${#words[@]}" ]
    run etrace help stack
    assert_output 'EXPR -> stack
the stack, at most N frames
EXPR by stack
the functions that stack collected; for a result, those of its call'
    run etrace help -c
    assert_line -n 0 --partial -- '-c, --summary'
    run etrace help retrun
    assert_failure 2
    assert_output "etrace: no help for 'retrun'
hint: did you mean return?"
    run etrace help --bogus
    assert_failure 2
    assert_line -n 0 "etrace: no help for '--bogus'"
}

@test "the help of trace shows the options of every day, and with --all each of them" {
    run etrace help trace
    assert_success
    [ "${#lines[@]}" -le 60 ] || fail "${#lines[@]} lines"
    for option in node pid proc where grep limit for rate as json summary output by ring quiet help; do
        assert_output --regexp "--$option( |
)"
    done
    [ "$(grep -cE '^  (-[a-zA-Z], | {4})--' <<<"$output")" -eq 16 ]
    run etrace help trace
    shown=$(grep -cE '^  (-[a-zA-Z], | {4})--' <<<"$output")
    others=$(grep -oE 'also describes [0-9]+' <<<"$output" | grep -oE '[0-9]+')
    assert_equal "$(etrace help trace --all | grep -cE '^  (-[a-zA-Z], | {4})--')" $((shown + others))
}

@test "the overview lists commands and views on at most 40 lines, and all help fits into 80 columns" {
    run --keep-empty-lines etrace help
    assert_success
    [ "${#lines[@]}" -le 40 ]
    assert_equal "$(sed -n '/^views/,/^$/p' <<<"$output" | tail -n +2 | xargs -n 1 | sort)" "$(views_of_help | sort)"
    while IFS= read -r line; do [ "${#line}" -le 80 ] || fail "too wide: $line"; done <<<"$output"
    for c in $(commands_of_help); do
        run etrace help "$c"
        assert_success
        while IFS= read -r line; do [ "${#line}" -le 80 ] || fail "too wide in $c: $line"; done <<<"$output"
        run --separate-stderr etrace "$c" -h
        assert_success
        assert_line -n 0 --partial "usage: etrace $c"
        assert_equal "$stderr" ''
    done
}

@test "every section that a manual page names in another page is there, and every page is built" {
    cd "$ETRACE_ROOT/man"
    while IFS='|' read -r title page; do
        grep -qx "# $title" "$page.scd" || fail "no section $title in $page"
    done < <(cat ./*.scd | tr '\n\t' '  ' | sed 's/  */ /g' | grep -oE '\*[A-Z][A-Z ]+\* in \*etrace[a-z-]*\*\([0-9]\)' |
        sed -E 's/^\*([A-Z ]+)\* in \*([a-z-]+)\*\(([0-9])\)/\1|\2.\3/')
    for page in *.scd; do
        grep -q "'$page\|'${page%.scd}'" meson.build || fail "$page is not built"
    done
}

@test "every file of a view or a command is built, and the manual describes each" {
    cd "$ETRACE_ROOT/cli"
    for file in views/sink_*.c commands/cmd_*.c; do
        name=${file##*/*_} && name=${name%.c}
        grep -q "($name)" views/sinks.def commands/cmds.def || fail "$file is in no table"
    done
    for title in commands views; do
        sed -n "/^# ${title^^}/,/^# /{s/ (.*//; /^\\*/p}" ../man/etrace.1.scd ../man/etrace-views.7.scd | grep -o '\*[a-z]*\*' | tr -d '*' | sort >"$BATS_TEST_TMPDIR/man"
        diff <("${title}_of_help" | sort) "$BATS_TEST_TMPDIR/man"
    done
}

@test "the manual describes every option of every command, and no other" {
    for c in $(commands_of_help); do
        "$ETRACE_BIN" help --all "$c" | grep -o -- '--[a-z][a-z-]*' || true
    done | sort -u >"$BATS_TEST_TMPDIR/rows"
    grep -ho -- '\*--[a-z][a-z-]*\*' "$ETRACE_ROOT"/man/*.scd | tr -d '*' | sort -u >"$BATS_TEST_TMPDIR/man"
    run diff "$BATS_TEST_TMPDIR/rows" "$BATS_TEST_TMPDIR/man"
    assert_success
}

# Runs the pasted commands from standard input where no node exists, to be called by nodeless. etrace parses the
# expressions before it looks for the node, so a wrong expression is still reported.
# shellcheck disable=SC2317  # a shell that nodeless starts calls it
paste() {
    local line
    export ETRACE_NODE=nobody_there@127.0.0.1
    jq() { cat >/dev/null; }
    fzf() { cat >/dev/null; }
    etrace() {
        local args=() status=0
        [[ ${1:-} != demo ]] || set -- trace 'shop_orders:_' "${@:2}"
        while (($#)); do
            args+=("$1")
            [[ $1 != -- ]] || set -- -- /nonexistent/command
            shift
        done
        "$ETRACE_BIN" "${args[@]}" >/dev/null 2>err || status=$?
        [[ $status != 2 || $(<err) == *'cannot start /nonexistent/command'* ]] || echo "$line: $(<err)" >>wrong
        echo "$line" >>tried
    }
    while read -r line; do
        line=${line//@h1/@127.0.0.1}
        (eval "$line") >/dev/null </dev/null || true
    done
}

@test "etrace accepts every example of the README, the manual and the help" {
    cd "$BATS_TEST_TMPDIR"
    local command
    nodeless bash -c "$(declare -f paste) && paste" < <(
        sed -nE 's/^    \$ (etrace .*)/\1/p' "$ETRACE_ROOT/README.md" "$ETRACE_ROOT"/share/doc/*.md
        sed -nE 's/^\$ (.*etrace .*)/\1/p' "$ETRACE_ROOT"/man/*.scd | sed 's/\\\\/\\/g' # scdoc reads \\ as a backslash
        for command in $(commands_of_help); do
            "$ETRACE_BIN" help "$command" | sed -nE "s/^  (etrace .*)/\1/p" | sed -E 's/ {2,}.*//'
        done
    )
    [[ $(sort -u tried | wc -l) -ge 30 ]] || fail "fewer than 30 examples: $(sort -u tried)"
    [[ ! -e wrong ]] || fail "$(<wrong)"
    while read -r line; do
        run "$ETRACE_BIN" explain "$line"
        assert_success
    done < <(
        sed -nE 's/^ *etrace> ([a-z]+: )?([^:].*)/\2/p' "$ETRACE_ROOT/README.md" "$ETRACE_ROOT"/share/doc/*.md "$ETRACE_ROOT"/man/*.scd
        # The first block has words instead of expressions. A line may have several expressions, and a comment.
        awk '/^```/ { block++; next } block > 1 && block % 2' "$ETRACE_ROOT/man/etrace-expr.7.scd" |
            sed -E "s/ +% .*//; s/ {2,}/\n/g" | sed -E "s/^'(.*)'$/\1/"
    )
}
