#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the command line without a node: each error is one line with status 2. Suite 012 has the help.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/commands
load ../lib/nodeless

etrace() { "$ETRACE_BIN" "$@"; }

# Expects that a command rejects a file: unreadable STATUS FILE REASON ARGUMENT..., with the file as the last argument.
unreadable() {
    run etrace "${@:4}" "$2" </dev/null
    assert_failure "$1"
    assert_line -n 0 "etrace: cannot read $2: $3"
}

@test "a trace without an expression is refused with a hint" {
    run etrace trace
    assert_failure 2
    assert_line -n 0 "etrace: no expression to trace"
    assert_line -n 1 --partial "hint: "
}

@test "options may stand in front of a command or a view" {
    run -0 "$ETRACE_BIN" --format json explain lists:seq/2
    assert_output "$("$ETRACE_BIN" explain --format json lists:seq/2)"
    run -2 "$ETRACE_BIN" --for=1s -n why nodes
    assert_line -n 0 "etrace: unknown option '--for'"
    assert_line -n 1 'hint: etrace help nodes'
    # The value of an option is no command.
    run -2 "$ETRACE_BIN" -qn help 'x:y('
    assert_output --partial 'x:y('
    run -2 "$ETRACE_BIN" -e dur tree
    assert_line -n 0 'etrace: no expression to trace'
    run -2 "$ETRACE_BIN" trace why shop
    assert_output "etrace: 'why' is a command: etrace why ...
hint: why:_ selects the functions of a module with this name"
}

@test "an expression without quotes is refused, and the file that the shell wrote is named" {
    local command words hint="hint: quote the whole expression: etrace 'lists:seq/2 -> return'"
    cd "$BATS_TEST_TMPDIR"
    for command in trace explain top ls info tree flame; do
        "$ETRACE_BIN" "$command" lists:seq/2 -> "return" 2>err && fail "etrace $command succeeded"
        assert_equal "$(<err)" "etrace: the shell read the > of an arrow as a redirection, and wrote the file return"$'\n'"$hint"
        "$ETRACE_BIN" "$command" lists:seq/2-> "return" 2>err && fail "etrace $command succeeded"
        assert_equal "$(tail -n 1 err)" "$hint"
        for words in '- caller' '-> return' '->return' 'when true'; do
            # shellcheck disable=SC2086 # words
            run -2 "$ETRACE_BIN" "$command" lists:seq/2 $words
            assert_line -n 0 "etrace: '${words%% *}' is only a part of an expression"
            assert_line -n 1 "$hint"
        done
    done
    # A dash at the end is an ordinary mistake if the output is no file, and a dash is the standard input of replay.
    run -2 "$ETRACE_BIN" explain lists:seq/2-
    assert_line -n 0 "etrace: unexpected '-'"
    run -1 "$ETRACE_BIN" replay - </dev/null
    refute_output --partial expression
}

@test "an unknown option is refused and the nearest one is suggested" {
    run etrace --lmit 3 lists:seq/2
    assert_failure 2
    assert_line -n 0 "etrace: unknown option '--lmit'"
    assert_line -n 1 "hint: did you mean --limit?"
    run etrace -Z
    assert_failure 2
    assert_output --partial "unknown option '-Z'"
    # A prefix of an option, and options spelled as erl spells them.
    run etrace --cookie abc x:y/0
    assert_failure 2
    assert_line -n 1 "hint: did you mean --cookie-file?"
    run etrace -node shop x:y/0
    assert_failure 2
    assert_line -n 0 "etrace: unknown option '-node'"
    assert_line -n 1 "hint: did you mean --node?"
    run etrace -node=shop x:y/0
    assert_failure 2
    assert_line -n 0 "etrace: unknown option '-node=shop'"
}

# Runs etrace for each line `WORDS => HINT` of standard input, and compares the hint.
hints() {
    local words hint
    while IFS= read -r line; do
        words=${line%% => *} hint=${line#* => }
        # shellcheck disable=SC2086 # words
        run -2 "$ETRACE_BIN" $words
        assert_line -n 1 "hint: $hint"
        assert_equal "${#lines[@]}" 2
    done
}

@test "each command, option and view of another tool in habits.def gets the hint of its row" {
    local place word means name rows=0
    while IFS='|' read -r place word means; do
        rows=$((rows + 1))
        name=$means
        case $place in
            COMMAND)
                [[ $means == *' '* ]] || name="did you mean etrace $means?"
                hints <<<"$word => $name ($word:_ selects the functions of a module with this name)"
                ;;
            OPTION)
                [[ $means == *' '* ]] || name="did you mean --$means?"
                # etrace has an option of this name, too.
                [[ $word != time ]] || name="one of local|utc|relative|delta, or $name"
                hints <<<"--$word x:y/0 => $name"
                ;;
            VIEW) hints <<<"--as $word x:y/0 => did you mean $means?" ;;
        esac
        # The right word is one of etrace.
        case $place in
            COMMAND) [[ $means == *' '* ]] || run -0 "$ETRACE_BIN" help "$means" ;;
            VIEW) grep -qx "$means" <<<"$(views_of_help)" || fail "no view $means" ;;
        esac
    done < <(sed -nE 's/^HABIT\((\w+), "([^"]*)", "([^"]*)"\)$/\1|\2|\3/p' "$ETRACE_ROOT/cli/trace/habits.def")
    assert_equal "$rows" "$(grep -c '^HABIT(' "$ETRACE_ROOT/cli/trace/habits.def")"
}

@test "the name of a view, an action, an extension or a node in the wrong place is recognized" {
    hints <<'END'
--tree x:y/0 => did you mean --as tree?
--flame x:y/0 => did you mean --as flame?
--csv x:y/0 => did you mean --as csv?
--svg x:y/0 => did you mean --as flame?
--as svg x:y/0 => did you mean flame?
--as ndjson x:y/0 => did you mean json?
--return x:y/0 => return is a part of an expression: 'lists:seq/2 -> return'
--caller x:y/0 => caller is a part of an expression: 'lists:seq/2 -> caller'
ps --tree => etrace help ps
top --return x:y/0 => etrace help top
-p shop x:y/0 => -n shop finds a node by its name
-p shop@h ps => -n shop@h finds a node by its name
-p $(id) x:y/0 => -n '$(id)' finds a node by its name
shop@host x:y/0 => -n shop@host attaches to it
top shop@host x:y/0 => -n shop@host attaches to it
help list => did you mean ls?
help stop => a trace ends with Ctrl-C, or after the time of --for
END
    # No row of top helps, and neither does --file, which looks similar.
    run -2 "$ETRACE_BIN" ps --filter x
    assert_line -n 1 'hint: etrace help ps'
    # A module may have the same form as a node.
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 -l x gleam@list gleam@dict
    assert_line -n 0 --partial -- '--limit does not take'
    run "$ETRACE_BIN" explain gleam@list
    assert_success
    for pid in 0 -3 99999999999; do
        run -2 "$ETRACE_BIN" -p "$pid" x:y/0
        assert_output "etrace: --pid takes the number of an operating system process, not '$pid'"
    done
    # If nothing runs, a shell makes this of -p "$(pidof beam.smp)".
    run -2 "$ETRACE_BIN" -p '' x:y/0
    assert_line -n 0 'etrace: --pid got an empty value, not the number of an operating system process'
    assert_line -n 1 --partial 'hint: '
}

@test "a malformed or out-of-range value of an option is refused" {
    run etrace --limit=many x:y/0
    assert_failure 2
    assert_output --partial "--limit does not take 'many'"
    run etrace --for 0ms x:y/0
    assert_failure 2
    assert_output --partial "--for does not take '0ms'"
    run etrace --for later x:y/0
    assert_failure 2
    assert_output --partial "a duration such as"
    run etrace --size -4 x:y/0
    assert_failure 2
    run etrace -n nobody@127.0.0.1 --size 1MB x:y/0
    assert_failure 2
    assert_output 'etrace: --size takes 1 to 262144, not 1048576'
    # An option whose help does not say what 0 means takes no 0.
    for words in 'trace --keys' 'trace --limit' 'trace --items' 'trace --depth' 'trace --port' 'replay --limit' \
        'explain --otp'; do
        run etrace "${words% *}" "${words#* }" 0
        assert_failure 2
        assert_line -n 0 "etrace: ${words#* } does not take '0'"
        assert_line -n 1 'hint: a whole number, 1 or more'
    done
    run etrace -n nobody@127.0.0.1 --items 1048577 x:y/0
    assert_failure 2
    assert_output 'etrace: --items takes 1 to 1048576, not 1048577'
    run etrace -n nobody@127.0.0.1 --rate 4294967296 x:y/0
    assert_failure 2
    assert_output 'etrace: --rate takes a number up to 4294967295, not 4294967296'
    for name in output cookie-file file hrl; do
        run etrace "--$name" '' x:y/0
        assert_failure 2
        assert_line -n 0 "etrace: --$name does not take ''"
        assert_line -n 1 'hint: the name of a file'
    done
    run etrace replay ''
    assert_failure 2
    assert_line -n 0 'etrace: no recording given'
    # The empty string is similar to no name, so the hint lists the valid ones.
    run etrace -n nobody@127.0.0.1 --as csv --fields '' x:y/0
    assert_failure 2
    assert_line -n 1 --partial 'one of: time '
    run etrace explain --dump '' x:y/0
    assert_failure 2
    assert_line "etrace: unknown pass '' in --dump"
    run etrace explain -f - < <(head -c 100000 /dev/zero | tr '\0' a)
    assert_failure 2
    assert_output 'etrace: cannot read standard input: it is larger than 64 KiB'
    # An optfile whose beginning is valid, and comments that are valid everywhere.
    { echo '[{client, []}].'; head -c 300000 /dev/zero | tr '\0' '%'; } >"$BATS_TEST_TMPDIR/large"
    unreadable 3 "$BATS_TEST_TMPDIR/large" 'it is larger than 256 KiB' -n nobody@127.0.0.1 x:y/0 --tls-optfile
    unreadable 3 "$BATS_TEST_TMPDIR" 'it is not a regular file' -n nobody@127.0.0.1 x:y/0 --tls-optfile
    head -c 70000 /dev/zero | tr '\0' '#' >"$BATS_TEST_TMPDIR/large"
    unreadable 2 "$BATS_TEST_TMPDIR/large" 'it is larger than 64 KiB' mcp --allow
    unreadable 2 "$BATS_TEST_TMPDIR" 'it is not a regular file' mcp --allow
    unreadable 2 "$BATS_TEST_TMPDIR/large" 'it is larger than 64 KiB' explain -f
    unreadable 2 "$BATS_TEST_TMPDIR/large" 'it is larger than 64 KiB' explain a:b/0 --hrl
    run etrace -n nobody@127.0.0.1 --redact "a,$(printf '%032d' 0),b" x:y/0
    assert_failure 2
    assert_output --partial 'etrace: --redact takes keys of at most 31 bytes, not'
    run etrace -n nobody@127.0.0.1 --redact "$(seq -s , 65)" x:y/0
    assert_failure 2
    assert_output --regexp '^etrace: --redact takes at most [0-9]+ keys beside the default ones$'
    run etrace -n nobody@127.0.0.1 --no-redact --redact "$(seq -s , 65)" x:y/0
    assert_failure 2
    assert_output 'etrace: --redact takes at most 64 keys beside the default ones'
    run etrace --color sometimes x:y/0
    assert_failure 2
    assert_output --partial "one of auto|always|never"
    run etrace x:y/0 --limit
    assert_failure 2
    assert_output --partial "--limit needs a value"
    run etrace --json=yes x:y/0
    assert_failure 2
    assert_output --partial "--json takes no value"
}

@test "commands that start no program read every word after -- as an argument" {
    run etrace explain -- x:y/0 -- z:w/1
    assert_failure 2
    run etrace explain --format=erl x:y/0 -- z:w/1
    assert_success
    assert_line -n 1 '{call,{z,w,1},true,[local]}.'
    run etrace replay -- -no-such-file
    assert_failure 1
    assert_output 'etrace: cannot read -no-such-file: No such file or directory'
    run etrace version -- -v
    assert_failure 2
    assert_output "etrace: version takes no arguments, but got '-v'"
}

@test "trace refuses the counting actions and suggests top; explain accepts them" {
    for action in count 'time, return' memory; do
        run etrace -n nobody@127.0.0.1 "x:y/0 -> $action"
        assert_failure 2
        assert_line -n 0 'etrace: count, time and memory are counters, which only etrace top shows'
        assert_line -n 1 "hint: etrace top 'x:y/0 -> $action'"
    done
    run etrace 'x:y/0 -> count' -- /nonexistent
    assert_failure 2
    assert_line -n 0 --partial 'are counters'
    run etrace explain 'x:y/0 -> count'
    assert_success
}

@test "an unknown command, view or file type is refused with a hint" {
    run etrace help replya
    assert_failure 2
    assert_output --partial "did you mean replay?"
    run etrace --as jsno x:y/0
    assert_failure 2
    assert_output --partial "did you mean json?"
    run etrace -o out.docx x:y/0
    assert_failure 2
    assert_output --partial "no view has the file extension of out.docx"
}

@test "contradicting options are refused" {
    run etrace --as tree --json x:y/0
    assert_failure 2
    run etrace --json -c x:y/0
    assert_failure 2
}

@test "-v without --grep, -a without -o, and unexpected words are refused" {
    for command in 'trace x:y/0' "replay $ETRACE_ROOT/tests/fixtures/shop.etr"; do
        # shellcheck disable=SC2086
        run etrace $command -v
        assert_failure 2
        assert_output --partial '-v inverts --grep, but no --grep is given'
        # shellcheck disable=SC2086
        run etrace $command -a
        assert_failure 2
        assert_output --partial '-a appends to the files of -o, but no -o is given'
    done
    for command in doctor schema sessions version; do
        run etrace "$command" shop
        assert_failure 2
        assert_line -n 0 "etrace: $command takes no arguments, but got 'shop'"
    done
}

@test "a malformed expression is refused before etrace connects, with a caret at the error" {
    run etrace -n nobody@127.0.0.1 'lists:seq(_,N) when M > 10'
    assert_failure 2
    assert_line -n 0 "etrace: unbound variable M"
    assert_line -n 1 "  lists:seq(_,N) when M > 10"
    assert_line -n 2 --regexp '^ {22}\^'
}

@test "--version prints the version and the hash of the companion" {
    run etrace --version
    assert_success
    assert_output --regexp '^etrace [0-9]+\.[0-9]+\.[0-9]+ \(companion [0-9a-f]{8}, for OTP 27 and newer\)$'
}

@test "a full disk and a closed standard output are errors, a closed pipe is not" {
    run bash -c '"$ETRACE_BIN" help trace >/dev/full'
    assert_failure 1
    assert_output --partial "cannot write standard output: No space left on device"
    run bash -c '"$ETRACE_BIN" help trace >&-'
    assert_failure 1
    run bash -c 'set -o pipefail; "$ETRACE_BIN" help trace | true'
    assert_success
}

@test "etrace reports a closed standard input or output, and no other file takes its descriptor" {
    local fixture=$ETRACE_ROOT/tests/fixtures/shop.etr
    cd "$BATS_TEST_TMPDIR"
    closed() { # STATUS TEXT WHICH WORDS
        local status=0 which=$3
        (
            shift 3
            case $which in
                0) timeout 30 "$ETRACE_BIN" "$@" <&- >out 2>err 3>&- ;;
                1) timeout 30 "$ETRACE_BIN" "$@" </dev/null >&- 2>err 3>&- ;;
                2) timeout 30 "$ETRACE_BIN" "$@" </dev/null >out 2>&- 3>&- ;;
            esac
        ) || status=$?
        assert_equal "$status" "$1"
        assert_equal "$(<err)" "$2"
        rm out err
        # The command must not have created a file that took the place of the closed stream.
        assert_equal "$(ls)" ''
        touch out err
    }
    touch out err
    closed 1 'etrace: cannot read standard input: it is closed' 0 replay -
    closed 2 'etrace: cannot read standard input: it is closed' 0 explain -f -
    for command in "replay $fixture" 'explain lists:seq/2' version help schema recipes 'completion bash'; do
        # shellcheck disable=SC2086  # words
        closed 0 '' 0 $command
        # shellcheck disable=SC2086
        closed 1 'etrace: cannot write standard output: it is closed' 1 $command
        # shellcheck disable=SC2086
        closed 0 '' 2 $command
    done
}

@test "explain prints the match specification without a node" {
    run etrace explain --format=erl 'lists:seq(_, N) when N > 10 -> return'
    assert_success
    assert_output "{call,{lists,seq,2},[{['_','\$1'],[{'>','\$1',10}],[{exception_trace}]}],[local]}."
    run etrace explain
    assert_failure 2
}

@test "explain compares a thousand probes in little memory" {
    run bash -c 'ulimit -v 80000; exec "$1" explain -f -' many "$ETRACE_BIN" < <(seq 999 | sed 's,.*,m&:f&/1,'; echo '_:f7/1..2')
    assert_success
    assert_line '  m7:f7/1  probes 7 and 1000'
}

@test "explain --dump prints what each pass of the compiler leaves" {
    local pass passes expression='lists:seq(_, N) when N > 5 + 5 -> return where dur > 5ms by N'
    mapfile -t passes < <(etrace explain --dump=list | cut -d' ' -f1)
    assert_equal "${passes[*]}" 'tokens ast checked folded inside where by spec fitted program'
    for pass in "${passes[@]}"; do
        run etrace explain --dump="$pass" "$expression"
        assert_success
        assert_output --regexp .
    done
    run etrace explain --dump=tokens "$expression"
    assert_line --regexp '^21\.\.22 +variable N$'
    run etrace explain --dump=ast "$expression"
    assert_line --regexp '^25\.\.30 +operator \+$'
    run etrace explain --dump=checked "$expression"
    assert_line --regexp '^25\.\.30 +operator \+: an integer = 10$'
    run etrace explain --dump=folded "$expression"
    assert_line --regexp '^25\.\.30 +literal 10$'
    run etrace explain --dump=where "$expression"
    assert_line --regexp '^47\.\.56 +function >, the tracer can decide$'
    run etrace explain --dump=by "$expression"
    assert_line --regexp '^60\.\.61 +key$'
    run etrace explain --dump=inside "$expression"
    assert_output --regexp '^0\.\.61 +everywhere$'
    run etrace explain --dump=spec --format=erl "$expression"
    assert_output "{call,{lists,seq,2},[{['_','\$1'],[{'>','\$1',{'+',5,5}}],[{exception_trace}]}],[local]}."
    run etrace explain --dump=fitted "$expression"
    assert_output "{call,{lists,seq,2},[{['_','\$1'],[{'>','\$1',{'+',5,5}}],[{exception_trace}]}],[local]}."
    run etrace explain --dump=program 'lists:seq(_, N) when N > 10'
    assert_line --index 0 --regexp '^1: .* -> .*, else .*$'
}

@test "explain --dump prints several passes with their names, and the passes before an error" {
    run etrace explain --dump=where,tokens 'x:y/0'
    assert_success
    assert_line --index 0 'pass tokens'
    assert_line --index 8 'pass where'
    run etrace explain --dump=program,spec 'x:y/0'
    assert_success
    assert_line --index 0 'pass spec'
    assert_line --index 1 'x:y/0'
    assert_line --index -2 'pass program'
    assert_line --index -1 'no program'
    run --separate-stderr etrace explain --dump=tokens,ast 'x:y(A) when'
    assert_failure 2
    assert_line --regexp '^7\.\.11 +word when$'
    # shellcheck disable=SC2154  # stderr is set by run
    assert_regex "$stderr" 'the expression ends too early'
    run etrace explain --dump=ast,everything x:y/0
    assert_failure 2
    assert_line "etrace: unknown pass 'everything' in --dump"
    assert_line 'hint: tokens, ast, checked, folded, inside, where, by, spec, fitted, program'
}

# Keeps the last part of the output of explain: the list of functions and events that several expressions select.
overlap() {
    run etrace explain "$@"
    assert_success
    output=$(sed -n '/^Several/,$p' <<<"$output" | tail -n +2)
    mapfile -t lines <<<"$output"
}

@test "explain lists overlapping expressions, their combined actions, and who evaluates their conditions" {
    overlap 'shop:_' 'shop:charge/2 -> return where dur > 5ms' 'shop:noise/1 -> drop' 'global shop:charge(X, _) when X > 1 -> caller, msg(X)'
    assert_output - <<'END'
  shop:charge/2  probes 1, 2 and 4: return, caller, msg
    probe 4 sees local calls, too
    probe 2 has a where: etrace checks it, for this probe only
  shop:noise/1  probes 1 and 3
    probe 3 has a drop: the events that it matches are not shown
END
    # The notes refer to the numbers in front of the expressions. A single expression has no number.
    run etrace explain shop:a shop:b
    assert_line '2. shop:b'
    refute_line --partial Several
    run etrace explain shop:a
    assert_line -n 0 'shop:a'
    # When all expressions for a function have the same condition, the node evaluates it.
    overlap 'a:f/1 where dur > 1ms' 'a:f(_) where dur > 1ms'
    assert_output - <<'END'
  a:f/1  probes 1 and 2: return
    probes 1 and 2 have the same where: the node checks dur, class, size and ret; etrace checks the rest
END
    overlap 'a:f/1 -> drop where dur > 1ms' 'a:f/1 where class == exit' 'a:f/1'
    assert_line '    probes 1 and 2 have a where: etrace checks each, for its own probe only'
    overlap 'send({a, _})' 'recv(_)' 'send(_, X) -> msg(X)' '@procs' '@exit where reason == a' '@gc'
    assert_output - <<'END'
  send  probes 1 and 3: msg
  @exit  probes 4 and 5
    probe 5 has a where: etrace checks it, for this probe only
END
    # Actions that only `etrace top` uses.
    overlap 'a:_ -> count' 'a:f -> time'
    assert_output '  a:f/_  probes 1 and 2: count, time'
}

@test "explain compares names, arities and patterns to find overlapping expressions" {
    meets() { overlap "$1" "$2" && assert_line -n 0 "  $3  probes 1 and 2"; }
    apart() { overlap "$1" "$2" && assert_output ''; }
    meets a:f _:f/2 a:f/2
    meets 'a:f/1..3' 'a:f/2..5' a:f/2..3
    meets 'a*:_' 'ab?:f' 'a* & ab?:f/_'
    meets 'ab*c:_' 'abxxc:f/1' abxxc:f/1
    # shellcheck disable=SC2088  # no path
    meets '~/^a/:g*' ab:get/1 ab:get/1
    meets 'MyApp.*' 'MyApp.Repo.get(1)' "'Elixir.MyApp.Repo':get/1"
    meets 'app(x):f/1' 'a:f' a:f/1
    assert_line -n 1 '    only the node knows whether these probes have functions in common'
    meets 'a:f({_, 1})' 'a:f({x, Y}) when Y > 0' a:f/1
    meets 'a:f([1 | _])' 'a:f([_, 2])' a:f/1
    meets 'a:f(#{a := 1})' 'a:f(#{a := 2})' a:f/1
    meets 'a:f(1)' 'ms a:f/1 [{'"'_'"',[],[]}]' a:f/1
    apart a:f b:f
    apart a:f/1 a:f/2
    apart 'a:f/1..2' 'a:f/3.._'
    apart 'a*c:_' abd:f
    # shellcheck disable=SC2088
    apart '~/^a/:_' ba:f
    apart 'a:f(1)' 'a:f(2)'
    apart 'a:f(1, _)' 'a:f(1.0, _)'
    apart 'a:f({_, 1})' 'a:f({_, _, _})'
    apart 'a:f([1])' 'a:f([1, _])'
    apart 'a:f({x, [a | _]})' 'a:f({_, [b | _]})'
    apart '_:_ - a' a:f
    apart '_:_ - a*' ab:f
    apart 'send({a, _})' 'send({b, _})'
    apart '@gc' '@exit'
    apart 'send(_)' 'recv(_)'
    # Each alternative is a probe with its own number.
    overlap 'a:f(X, _) | a:f({X}, 2) -> return'
    assert_line -n 0 '  a:f/2  probes 1 and 2: return'
}

@test "explain refuses a malformed regular expression" {
    local expr
    for expr in 'm:f(X) where X =~ "(a"' 'm:~/(a/' 'a:b/1 | ~/[/:f' 'm:f(X) where dur > 1ms and (X == 1 or text =~ "(a")'; do
        run etrace explain "$expr"
        assert_failure 2
        assert_line -n 0 --partial 'invalid regular expression'
    done
    run etrace explain 'm:~/^get_(a|b)$/ where text =~ "(a)"'
    assert_success
}

@test "explain accepts a condition with 2,000 operators" {
    local i tests=()
    for ((i = 0; i < 2000; i++)); do tests+=("X == $i"); done
    for i in orelse or andalso and ';'; do
        run etrace explain "m:f(X) when $(printf "%s $i " "${tests[@]}") X == a"
        assert_success
    done
    run etrace explain "m:f(X) where $(printf '%s or ' "${tests[@]}") X == a"
    assert_success
}

@test "--node with --pid, and an out-of-range --port or --pid, are refused" {
    run "$ETRACE_BIN" -n some -p 3 lists:seq/2
    assert_failure 2
    assert_line -n 0 'etrace: --node and --pid both select a node: use only one'
    run "$ETRACE_BIN" -n some --port 65536 lists:seq/2
    assert_failure 2
    assert_line -n 0 'etrace: --port takes a number up to 65535, not 65536'
    run "$ETRACE_BIN" -p 4294967297 lists:seq/2
    assert_failure 2
    assert_output "etrace: --pid takes the number of an operating system process, not '4294967297'"
}

@test "a file that is not a recording is refused, and the output file does not change" {
    echo old >"$BATS_TEST_TMPDIR/kept.svg"
    run "$ETRACE_BIN" replay "$ETRACE_BIN" --as text -o "$BATS_TEST_TMPDIR/kept.svg"
    assert_failure 1
    assert_output "etrace: $ETRACE_BIN is not a recording of etrace"
    assert_equal "$(<"$BATS_TEST_TMPDIR/kept.svg")" old
}

@test "the error about a compressed recording shows how to decompress it" {
    for packed in '\x1f\x8b\x08' '\x28\xb5\x2f\xfd' '\xfd7zXZ' BZh9; do
        run etrace replay - < <(printf '%b' "$packed" && head -c 100 /dev/zero)
        assert_failure 1
        assert_line -n 0 'etrace: standard input is not a recording of etrace'
        assert_line -n 1 --regexp '^hint: it is compressed: (gzip|zstd|xz|bzip2) -dc FILE \| etrace replay -$'
    done
}

@test "an error in a file of expressions shows the file and the line" {
    printf '#!/usr/bin/env -S etrace -f\nlists:seq/2\n%% more\nlists:seq(_, N) when M > 1\nlists:seq/1\n' >"$BATS_TEST_TMPDIR/probes"
    run "$ETRACE_BIN" explain -f "$BATS_TEST_TMPDIR/probes" lists:seq/2
    assert_failure 2
    assert_line -n 0 "etrace: $BATS_TEST_TMPDIR/probes:4: unbound variable M"
    assert_line -n 1 '  lists:seq(_, N) when M > 1'
    run bash -c '"$ETRACE_BIN" explain -f - <<<"lists:seq("'
    assert_output $'etrace: standard input:1: the expression ends too early\n  lists:seq(\n            ^ expected a term'
    : >"$BATS_TEST_TMPDIR/empty"
    run "$ETRACE_BIN" explain -f "$BATS_TEST_TMPDIR/empty"
    assert_line -n 0 "etrace: $BATS_TEST_TMPDIR/empty: the expression is empty"
}

@test "more than 4,096 expressions are refused before etrace connects" {
    local many
    mapfile -t many < <(yes lists:seq/2 | head -n 4097)
    for command in trace top; do
        run timeout 60 "$ETRACE_BIN" "$command" -n nobody@127.0.0.1 "${many[@]}"
        assert_failure 2
        assert_line --index 0 'etrace: 4097 expressions that name 4097 functions are too many for one trace'
        assert_line --index 1 --partial 'hint: '
        assert_equal "${#lines[@]}" 2
    done
    run timeout 60 "$ETRACE_BIN" explain "${many[@]:1}"
    assert_success
}

@test "more than 256 nodes are refused before etrace connects; a repeated node counts once" {
    local many
    mapfile -t many < <(seq -f '-nx%g@127.0.0.1' 300)
    for command in 'trace work:one/1' 'top work:one/1' 'info work:one/1' repl; do
        # shellcheck disable=SC2086  # words
        run timeout 60 "$ETRACE_BIN" $command "${many[@]}" </dev/null
        assert_failure 2
        assert_output 'etrace: 300 nodes are given, but one command takes at most 256'
    done
    run timeout 60 "$ETRACE_BIN" work:one/1 --port 1 "${many[@]:0:256}"
    assert_failure 2
    assert_output --partial '256 nodes are given'
    # shellcheck disable=SC2046  # words
    run timeout 60 "$ETRACE_BIN" work:one/1 --port 1 $(yes -- -nx@127.0.0.1 | head -n 5000)
    assert_failure 3
    assert_output --partial 'x@127.0.0.1'
    assert_equal "${#lines[@]}" 1
}

@test "a script does not wait for output that is already printed" {
    run nodeless "$ETRACE_BIN" repl < <(for _ in {1..60}; do printf ':set\n:hist\n'; done)
    assert_success
    assert_output --partial 'nothing is left on the nodes'
}

@test ":set prints a default value in words and a duration as the user typed it" {
    run nodeless "$ETRACE_BIN" repl <<<$':set\n:for 1500us\n:memory 0\n:set'
    assert_success
    assert_equal "$(grep -E '^:(limit|for|memory) ' <<<"$output" | sed -E 's/ +/ /; s/ $//')" ':limit
:for
:memory a quarter, at least 512MB
:limit
:for 1500us
:memory 0'
    refute_line --regexp '^:[a-z-]+ +-'
}

@test ":reattach is a setting" {
    run nodeless "$ETRACE_BIN" repl <<<$':set reattach on\n:set\n:reattach off\n:set\n:help reattach'
    assert_success
    assert_line --regexp '^:reattach +on$'
    assert_line --regexp '^:reattach +off$'
    assert_line ':reattach on|off'
    run nodeless "$ETRACE_BIN" repl <<<':reattach maybe'
    assert_failure 2
    assert_line "etrace: :reattach takes on or off, not 'maybe'"
}

# sized COLUMNS ROWS [COLUMNS ROWS]: runs the interactive mode in a terminal of the first size, which changes to the
# second size before anything is typed.
sized() {
    TERM=xterm run nodeless bash -c 'ulimit -v 1000000; exec /usr/bin/python3 - "$@"' sized "$ETRACE_BIN" "$@" <<'END'
import fcntl, os, pty, struct, sys, termios
def size(n): fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", int(sys.argv[n + 1]), int(sys.argv[n]), 0, 0))
def until(text):
    seen = b""
    while text not in seen:
        seen += os.read(fd, 4096)
ready, go = os.pipe()
pid, fd = pty.fork()
if not pid:
    os.read(ready, 1)
    os.execv(sys.argv[1], [sys.argv[1], "repl"])
size(2)
os.write(go, b".")
if len(sys.argv) > 4:
    until(b"etrace> ")
    size(4)
if "65535" in sys.argv[4:]:
    until(b"the terminal reports 65535 columns and 65535 rows: no line can be typed in this size")
else:
    os.write(fd, b":set\r")
    until(b":color")
    os.write(fd, b":quit\r")
    until(b"nothing is left on the nodes")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
    assert_success
}

@test "the interactive mode allocates no memory for a terminal with an impossible size" {
    sized 80 24
    sized 1 1
    sized 65535 65535
    sized 80 24 1 1
    sized 80 24 65535 65535
}

@test "etrace does not block on a pipe as .editrc or history, and a signal ends a read of the TZ file" {
    mkfifo "$BATS_TEST_TMPDIR/.editrc" "$BATS_TEST_TMPDIR/zone"
    HOME=$BATS_TEST_TMPDIR sized 80 24
    # libc reads the file that TZ names and blocks on a pipe. A signal must still end etrace.
    run timeout -k 20 1 env TZ="$BATS_TEST_TMPDIR/zone" "$ETRACE_BIN" version
    [[ $status -eq 124 || $status -eq 0 ]] || fail "status $status: $output"
    mkdir -p "$BATS_TEST_TMPDIR/state/etrace"
    mkfifo "$BATS_TEST_TMPDIR/state/etrace/history"
    XDG_STATE_HOME=$BATS_TEST_TMPDIR/state sized 80 24
}

@test "a script line with a NUL byte is refused, and the other lines run" {
    run --separate-stderr nodeless "$ETRACE_BIN" repl < <(printf ':limit 7\0x\n:set\n:limit 8\0')
    assert_failure 2
    assert_line --regexp '^:limit *$'
    # shellcheck disable=SC2154  # run sets it
    assert_equal "$(grep -cx 'etrace: a line of the script has a NUL in it' <<<"$stderr")" 2
}

@test "files and scripts may begin with a byte order mark and end lines with CRLF" {
    cd "$BATS_TEST_TMPDIR"
    printf '\xef\xbb\xbfa:f/1\r\n%% b:(\r\nb:g(#r{x = 1})\r\n' >probes
    printf '\xef\xbb\xbf-record(r, {\r\n  x %% (\r\n}).\r\n' >records.hrl
    run "$ETRACE_BIN" explain --format=erl -f probes --hrl records.hrl
    assert_success
    assert_output --partial '{a,f,1}'
    assert_output --partial '[{[{r,1}],'
    run --separate-stderr nodeless "$ETRACE_BIN" repl < <(printf '\xef\xbb\xbf%% (\r\n:limit 7\r\n\xef\xbb\xbf:set\r\n')
    assert_success
    assert_line --regexp '^:limit +7$'
}

@test "INT and TERM end the wait for a file that says nothing" {
    cd "$BATS_TEST_TMPDIR"
    mkfifo silent
    local options
    for options in '--hrl silent lists:seq/2' '-f silent' 'explain --hrl silent lists:seq/2' 'replay silent'; do
        # shellcheck disable=SC2086 # words
        run -0 /usr/bin/python3 -c '
import os, signal, subprocess, sys
writer = os.open("silent", os.O_RDWR)
def reads(pid):
    fds = "/proc/%d/fd/" % pid
    try:
        return any(os.readlink(fds + fd).endswith("/silent") for fd in os.listdir(fds))
    except OSError:  # it has closed one meanwhile
        return False
for end in signal.SIGINT, signal.SIGTERM:
    p = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    while not reads(p.pid):
        if p.poll() is not None:
            sys.exit(p.stdout.read())
    p.send_signal(end)
    p.wait(30)' "$ETRACE_BIN" $options
    done
    # The other options take regular files only.
    for options in '--tls-optfile' '--tls-ca' '--tls-cert'; do
        run -3 timeout 30 "$ETRACE_BIN" "$options" silent -n nobody@127.0.0.1 lists:seq/2
        assert_output --partial 'it is not a regular file'
    done
}
