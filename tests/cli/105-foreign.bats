#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Replays a recording with hostile text in every field of every block and frame (written by tests/cli/foreign.c). Each
# view must print plain text and keep its own format. No node is needed.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/plain
load ../lib/commands

setup_file() { "$ETRACE_ROOT/build/tests/foreign" >"$BATS_FILE_TMPDIR/foreign.etr"; }

setup() {
    recording=$BATS_FILE_TMPDIR/foreign.etr
    cd "$BATS_TEST_TMPDIR" || return
}

# shown FILE OPTION...: replays the recording into FILE, and asserts that the output is plain and not almost empty.
shown() {
    local file=$1
    shift
    "$ETRACE_BIN" replay "$recording" "$@" >"$file" 2>err || fail "replay $* ends with $?: $(head -c 400 err)"
    assert_plain "replay $*" "$file" err
    [[ $(wc -c <"$file") -gt 1000 ]] || fail "the output of replay $* is too short: $(<"$file")"
}

@test "text views print hostile names without control characters or forged lines" {
    shown text
    grep -q 'node PWN.* is back' text
    grep -q 'node PWN.* went down' text
    # A line shows the label of the probe, in brackets, in front of the process.
    grep -q '\[PWN.*\] <0' text
    shown elixir --elixir --relative
    shown folded --as folded
    # Each line of a folded stack ends in a number, so no name contains a frame separator or a newline.
    run grep -vcE '^#| [0-9]+$' folded
    assert_output 0
}

@test "every view prints hostile names without control characters or forged lines" {
    local view by
    for view in $(views_of_help); do
        by=()
        case $view in
            record | pprof) continue ;; # a recording, which is copied below, and a compressed file
            table*) by=(--by 'mfa, name, args[1]: count') ;;
        esac
        shown "every${view/#*tsv/.tsv}" --as "$view" "${by[@]}" # a .tsv may have tabs
        grep -q PWN "every${view/#*tsv/.tsv}" || fail "the view $view shows no hostile name"
    done
}

@test "every JSON line conforms to the schema" {
    shown json --json
    shown terms --json --terms json
    "$ETRACE_BIN" schema >rules
    run /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" rules json terms
    assert_success
    # Every kind of event has a line here, so the schema was checked against all of them.
    { "$ETRACE_ROOT/build/tests/foreign" --types && echo rearmed; } | sort >kinds
    assert_equal "$(jq -r .type json | sort -u | grep -vx summary)" "$(<kinds)"
    for view in perfetto speedscope; do
        shown "$view" --as "$view"
        jq -e . "$view" >/dev/null
    done
    run jq -s -r '[.[] | select(.type == "node_up" or .type == "node_down") | .node, .reason? | strings | select(startswith("PWN"))] | length' json
    assert_output 10
}

# columns FILE SEPARATOR: prints whether each line is one record, and the set of column counts.
columns() {
    /usr/bin/python3 -c '
import csv, sys
csv.field_size_limit(1 << 30)
lines = open(sys.argv[1], newline="", encoding="utf-8").read().split("\n")
records = list(csv.reader(lines[:-1], delimiter=sys.argv[2]))
print(len(lines) - 1 == len(records), sorted({len(r) for r in records}))' "$@"
}

@test "csv and tsv have one record per line, with all columns" {
    fields=time,ts,mono_ns,node,pid,name,who,type,m,f,a,mfa,call,args,value,class,reason,dur,msg,to,from,caller,message,depth,size,text
    shown a.csv --as csv
    shown a.tsv --as tsv
    shown all.csv --as csv --fields "$fields"
    shown all.tsv --as tsv --fields "$fields"
    run columns a.csv ,
    assert_output 'True [17]'
    run columns a.tsv $'\t'
    assert_output 'True [17]'
    run columns all.csv ,
    assert_output 'True [26]'
    run columns all.tsv $'\t'
    assert_output 'True [26]'
    shown format --format "{${fields//,/\} \{}}"
}

@test "hostile names add no tag and no script to a page" {
    "$ETRACE_BIN" replay -q "$recording" --as flame -o flame.svg -o flame.html >/dev/null
    "$ETRACE_BIN" replay -q "$recording" --as sequence -o sequence.html >/dev/null
    assert_plain 'pages' flame.svg flame.html sequence.html
    for file in flame.svg flame.html sequence.html; do
        for tag in '<script' '</script'; do
            run grep -c "$tag" "$file"
            assert_output 1
        done
    done
    /usr/bin/python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' flame.svg
    shown mermaid --as sequence
    run grep -c '<' mermaid
    assert_output 0
}

# fails STATUS ARG...: asserts that the message of a failing replay is plain and quotes the hostile text.
fails() {
    local status=0
    "$ETRACE_BIN" replay -q "${@:2}" >/dev/null 2>err || status=$?
    assert_equal "$status" "$1"
    assert_plain "replay ${*:2}" err
    grep -q PWNED err || fail "the message of replay ${*:2} does not quote the hostile text: $(<err)"
}

@test "a copy, filters and error messages print hostile text safely" {
    "$ETRACE_BIN" replay -q "$recording" -o copy.etr >/dev/null
    "$ETRACE_BIN" replay copy.etr >copied 2>err
    assert_plain 'a copy' copied err
    shown where --where 'node == node'
    shown grep --grep PWNED
    # A recording with a hostile name that is also truncated.
    name=$'\e]0;PWNED\a\n\xe2\x80\xae.etr'
    head -c 100000 "$recording" >"$name"
    fails 1 "$name"
    fails 1 "no$name"
    fails 2 "$recording" "--$name"
    fails 2 "$recording" --where "$name"
    fails 2 "$recording" --grep "($name"
    fails 2 "$recording" --as "$name"
    fails 2 "$recording" --fields "$name"
    fails 2 "$recording" --hrl "$name"
}

# Compiles each STATEMENT with the flags of the project, in a function with raw, safe and plain text and a buffer as
# arguments. Sets refused to the numbers of the statements with errors, from 1.
compiles() { # STATEMENT...
    local n=0 arguments='(struct ctx *c, struct err *e, struct event_node *n, struct buf *b, struct raw raw, struct safe safe, struct str str)'
    {
        printf '#include "%s"\n' erlang/term_json.h events/event.h ground/err.h trace/ctx.h
        for statement; do
            n=$((n + 1))
            printf '#line %d "statement"\nvoid use_%d%s; void use_%d%s { (void)c, (void)e, (void)n, (void)b, (void)raw, (void)safe, (void)str; %s; }\n' \
                "$n" "$n" "$arguments" "$n" "$arguments" "$statement"
        done
    } >use.c
    "${CC:-cc}" -fsyntax-only "${flags[@]}" -I "$ETRACE_ROOT/cli" use.c 2>cc.log || true
    # An error in a macro has the place of the statement in a note.
    refused=$(awk '/: (fatal )?error: / { wrong = 1 } /: warning: / { wrong = 0 } wrong && match($0, /statement:[0-9]+/) { print substr($0, RSTART + 10, RLENGTH - 10) }' cc.log |
        sort -nu | xargs)
}

@test "code that prints unescaped text does not compile" {
    mapfile -t flags < <(jq -r '.[] | select(.file | endswith("cli/views/line.c")) | .command' "$ETRACE_ROOT/build/compile_commands.json" |
        grep -oE -- '-(std=[a-z0-9]+|W[a-z-]+(=[a-z0-9-]+)?|D_GNU_SOURCE)')
    [[ ${#flags[@]} -gt 5 ]]
    compiles 'print_safe(b, raw)' 'json_string(b, raw)' 'printer_erlang.atom(b, raw)' 'n->name = safe_keep(b, raw)' 'buf_safe(b, n->name)' \
        'n->name = SAFE("literal")' 'buf_str(b, str)' 'buf_add(b, str.at, str.len)' 'print_safe(b, raw_of(str))'
    [[ ! -s cc.log ]] || fail "does not compile: $(<cc.log)"
    local wrong=('buf_str(b, raw)' 'buf_safe(b, raw)' 'buf_puts(b, raw.at)' 'buf_add(b, raw.at, raw.len)' 'buf_char(b, raw.at[0])'
        'buf_printf(b, "%s", raw.at)' 'buf_printf(b, "%.*s", (int)raw.len, raw.at)' 'err_set(e, ERR_RUN, "%s", raw.at)'
        'err_hint(e, "%.*s", (int)raw.len, raw.at)' 'ctx_say(c, "%s", raw.at)' 'ctx_warn(c, "%s", raw.at)' 'n->name = raw' 'n->name = str'
        'n->name = buf_view(b)' 'buf_safe(b, str)' 'str = raw' 'safe = raw' 'str.at = raw.at' 'const uint8_t *at = 0; wire_bin(at, &str, 0)'
        'const uint8_t *at = 0; wire_atom(0, at, &str)')
    compiles "${wrong[@]}"
    assert_equal "$refused" "$(seq "${#wrong[@]}" | xargs)"
}

@test "only the listed files bypass the types for unescaped text" {
    cd "$ETRACE_ROOT/cli"
    # Only these make a struct safe: safe_keep(), SAFE(), what reads a struct tracee, and typed_text(), whose value was
    # made of a struct safe.
    run grep -rlE '\(struct safe\)' --include=*.[ch] .
    assert_equal "$(sort <<<"$output")" $'./erlang/term_print.c\n./events/event.h\n./fold/property.h\n./ground/macros.h'
    # raw_view() is for parsers. The listed files copy its text into a buffer that is not printed: a recording, names
    # that were checked to be plain, input of our own parser or of a regular expression, names and chunks kept for
    # comparison, names that are encoded as a term for the views.
    run grep -rlE '(buf_(str|add|puts|printf)|err_(set|hint)|ctx_(say|warn)|paint_str|talk_say)\(.*raw_view\(' --include=*.[ch] .
    assert_equal "$(sort <<<"$output")" $'./commands/cmd_ls.c\n./commands/stack_groups.c\n./erlang/term_print.c\n./erlang/wire_normal.c\n./events/names.c\n./events/rebatch.c\n./fold/request_key.c\n./lang/debug_info.c\n./pipeline/where.c'
}
