#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests expressions that overlap. An event goes to every expression that it satisfies; it is shown once, with all that
# these expressions ask for. A function that several expressions select counts as one function.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_share overlap
    live_repl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown_all; }

# Prints all events in order, as one line: calls with their arguments and what actions add, and results.
story() {
    jq -r 'select(.m) | if .type == "call"
        then "\(.f)(\([.args[]? // "_"] | join(","))\(if .args then "" else "/\(.a)" end))\(if .message then " -> " + .message else "" end)\(if .caller then " by" else "" end)\(if .stack then " stack" else "" end)"
        else "\(.type) \(.f) \(.value // .reason)" end' "$OUT" | tr '\n' ';'
}

# bats test_tags=each
@test "two expressions for one function both have their actions, in either order" {
    local -a order
    for order in 0 1; do
        set -- work:two/2 'work:two/2 -> return'
        ((order)) && set -- "$2" "$1"
        traced --json "$@" -- 'work:two(a, 1)'
        assert_success
        assert_equal "$(story)" 'two(a,1);return two {a,1};'
        assert_equal "$(grep -c ' · 1 function · ' "$ERR")" 1
        assert_account 2
    done
}

@test "an expression for a function refines those for its module, and drop hides calls" {
    traced --json 'work:_' 'work:one(N) when N > 3 -> return' 'work:two/2 -> drop' 'work:fac(N) when N < 2 -> drop' -- \
        'work:one(1), work:one(4), work:two(a, b), work:fac(3), work:three(1, 2, 3)'
    assert_success
    assert_equal "$(story)" 'one(1);one(4);return one 4;fac(3);fac(2);three(1,2,3);local(1,2,3);'
    assert_account 7
    # `drop` applies only if no earlier clause of its expression matches; otherwise the call is shown.
    traced --json 'work:one(X) when X =:= 7 -> msg(seven); (_) -> drop' 'work:one(_) -> msg(any), return' -- 'work:one(7), work:one(8)'
    assert_success
    assert_equal "$(story)" 'one(7) -> [seven,any];return one 7;'
    assert_account 2
    # A dropped call has no stack frame, so it reports no result, and the actions of the other expressions do not run.
    traced --json 'work:one/1 -> drop' 'work:one/1 -> return, silent(true)' work:two/2 -- 'work:one(1), work:two(a, b)'
    assert_success
    assert_equal "$(story)" 'two(a,b);'
    assert_account 1
}

@test "an event has the actions of all expressions that it satisfies, and no others" {
    traced --json 'work:two({ok, X}, _) -> msg(X), caller' 'work:two({_, Y}, Z) when Y > Z -> msg({Y, Z}), return' 'work:two(_, 2) -> stack' -- \
        '[work:two(A, B) || A <- [{ok, 1}, {ok, 3}, {no, 3}], B <- [1, 2]]'
    assert_success
    assert_equal "$(story)" "two({ok,1},1) -> 1 by;two({ok,1},2) -> 1 by stack;two({ok,3},1) -> [3,{3,1}] by;return two {{ok,3},1};two({ok,3},2) -> [3,{3,2}] by stack;return two {{ok,3},2};two({no,3},1) -> {3,1};return two {{no,3},1};two({no,3},2) -> {3,2} stack;return two {{no,3},2};"
    # An argument is shown if one of the matching expressions shows it.
    traced --json 'work:three(_, _, _) -> args(1)' 'work:three(_, b, _) -> args(3)' 'work:three(_, _, c) -> arity' 'work:two/2 -> arity' 'work:two(_, _) -> arity' -- \
        'work:three(1, 2, 3), work:three(1, b, 3), work:three(1, b, c), work:two(1, 2)'
    assert_success
    assert_equal "$(json_of call '[.f, .args, .a] | tostring' | grep -v local)" '["three",["1",null,null],3]
["three",["1",null,"3"],3]
["three",["1",null,"c"],3]
["two",null,2]'
}

@test "the same message of several expressions is shown once" {
    traced --json 'work:two(X, _) -> msg({lists, X})' 'work:two(X, Y) when Y > 0 -> msg({lists, X})' 'work:_ -> msg({1.0, lists})' -- 'work:two(b, 1), work:two(a, 0)'
    assert_success
    # The first occurrence of an atom has another encoding than the next ones; both must be read right.
    assert_equal "$(story)" 'two(b,1) -> [{lists,b},{1.0,lists}];two(a,0) -> [{lists,a},{1.0,lists}];'
}

@test "heads, guards and results of all expressions combine as in plain evaluation" {
    local seed seeds=1 functions=30 dir=$BATS_TEST_TMPDIR lib
    lib=$(node_lib)
    node_start crossed # a node that has seen neither these expressions nor the companion
    [[ ! ${ETRACE_ALL:-} ]] || seeds=12 functions=60
    for ((seed = 1; seed <= seeds; seed++)); do
        mkdir "$dir/$seed"
        "${ETRACE_ERL:?}" -noshell -pa "$lib" -eval "overlap:make(\"$dir/$seed\", $seed, $functions), halt()." >"$dir/said" 2>&1 </dev/null 3>&- || fail "$(tail -n 5 "$dir/said")"
        "$ETRACE_ERLC" +nowarn_export_all -o "$dir/$seed" "$dir/$seed/crossed.erl" >/dev/null
        on_node "code:add_patha(\"$dir/$seed\"), {module, _} = code:ensure_loaded(crossed)"
        trace --json -f "$dir/$seed/probes"
        grep -q " · $functions functions · " "$ERR" || fail "$(cat "$ERR")"
        on_node 'crossed:run()'
        trace_end
        assert_success
        jq -r 'def n: if .type == "exception" then .reason else .value end; select(.m == "crossed") | if .type == "call"
            then "\(.args[0]) call \(.message // "-") \([.args[] | if . == null then "0" else "1" end] | join("")) \(if .caller then "caller" else "-" end)"
            else "\(n) \(.type)" end' "$OUT" >"$dir/$seed/shown"
        diff "$dir/$seed/expected" "$dir/$seed/shown" >"$dir/differs" || fail "seed $seed: $(head -n 20 "$dir/differs")"
        assert_account "$(wc -l <"$dir/$seed/expected")"
        on_node 'code:purge(crossed), code:delete(crossed), code:purge(crossed)'
    done
    # Some calls must satisfy three expressions. The message lists the matching clause of each.
    grep -q ',.*,' "$dir"/*/expected
}

@test "match specifications of the user combine with other expressions and keep their variables" {
    traced --json "ms work:two/2 [{['\$2','\$1'],[],[{message,'\$\$'}]}]" 'work:two({Y, Z}, X) -> msg({X, Y, Z})' \
        "ms work:two/2 [{['_',b],[],[{message,{hd,'\$_'}},{return_trace}]}]" -- 'work:two(a, b), work:two({1, 2}, c)'
    assert_success
    assert_equal "$(story)" 'two(a,b) -> [[b,a],a];return two {a,b};two({1,2},c) -> [[c,{1,2}],{c,1,2}];'
}

# bats test_tags=long
@test "alternatives have their own patterns and share the guards and actions after the last one" {
    traced --json 'work:two(X, b) | work:one(X) when X > 2 -> msg(X), return' -- \
        'work:one(2), work:one(3), work:two(4, a), work:two(4, b), work:two(1, b)'
    assert_success
    assert_equal "$(story)" 'one(3) -> 3;return one 3;two(4,b) -> 4;return two {4,b};'
    traced -o "$BATS_TEST_TMPDIR/alternatives.etr" --json 'work:two(X, _) | work:two(_, X) | work:one(_, ...) where size > 0' -- 'work:two(1, 2), work:one(7)'
    assert_success
    assert_equal "$(story)" 'two(1,2);one(7);'
    assert_account 2
    local live
    live=$(story)
    # The recording has each alternative as a separate expression, which must only match what that alternative matches.
    run -0 --separate-stderr "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/alternatives.etr"
    printf '%s\n' "$output" >"$OUT"
    assert_equal "$(story)" "$live"
    # The alternatives must not shift the condition of the next expression in the recording.
    traced -o "$BATS_TEST_TMPDIR/behind.etr" --json 'work:two(X, _) | work:one(X) where X > 5' 'work:one(Y) where Y < 3' -- \
        'work:two(6, 1), work:one(7), work:one(1), work:one(4)'
    assert_success
    assert_equal "$(story)" 'two(6,1);one(7);one(1);'
    run -0 --separate-stderr "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/behind.etr"
    printf '%s\n' "$output" >"$OUT"
    assert_equal "$(story)" 'two(6,1);one(7);one(1);'
    # The part after the last alternative belongs to all alternatives. A warning about it is printed once.
    traced 'work:two(X, _) | work:one(X) when 2 > 1' -- 'work:one(1)'
    assert_success
    assert_equal "$(grep -c 'this is always true' <<<"$talk")" 1
    # An expression may span several lines of a file.
    printf '%s\n' '%% two ways in' 'work:two(X, 1)' '| work:one(X) % comment' '  when X =:= 5 -> msg({five, X})' 'work:fac/1' >"$BATS_TEST_TMPDIR/probes"
    traced --json -f "$BATS_TEST_TMPDIR/probes" -- 'work:one(5), work:one(1), work:two(5, 1), work:two(5, 2), work:fac(1)'
    assert_success
    assert_equal "$(story)" 'one(5) -> {five,5};two(5,1) -> {five,5};fac(1);fac(0);'
    # The interactive mode gives all alternatives one label.
    : >"$ERR"
    # shellcheck disable=SC2317  # until_true calls it
    armed() { grep -q " $1 · " "$ERR"; }
    timeout 60 "$ETRACE_BIN" repl -n "$NODE" --json < <(
        echo 'alt: work:one(7) | work:two(_, 9) | work:two(9, _)'
        until_true 30 armed '2 functions'
        on_node 'work:one(6), work:one(7), work:two(9, 9)' >&2
        echo ':drop alt'
        echo 'work:one/1'
        until_true 30 armed '1 function'
        on_node 'work:one(7), work:two(9, 9)' >&2
        echo ':wait 3 events'
    ) >"$OUT" 2>"$ERR" 3>&-
    run jq -r 'select(.m) | "\(.f) \(.args[0]) \(.probe)"' "$OUT"
    assert_output 'one 7 alt
two 9 alt
one 7 null'
}

@test "a message or an event has the actions of every expression that it satisfies" {
    on_node 'register(overlap, spawn(fun F() -> receive stop -> ok; _ -> F() end end))'
    traced --json 'send({_, X}) -> msg(X)' 'send(To, {a, _}) -> msg(To)' 'send({_, drop}) -> drop' 'recv({A, _}) -> msg(A)' 'recv(_, {_, 2}) -> msg(two)' \
        -P w -P overlap -- 'R = monitor(process, overlap), work:ask(w, fun() -> [overlap ! M || M <- [{a, 1}, {b, 2}, {c, drop}, stop]] end),
            receive {_, R, _, _, _} -> ok end' # the receiver must have received everything when the trace ends
    assert_success
    assert_equal "$(jq -r 'select(.type == "send" and (.msg | test("^.[abc],"))) | "\(.msg) \(.message | sub("<[0-9.]+>"; "pid"))"' "$OUT" | tr '\n' ';')" \
        '{a,1} [1,overlap];{b,2} 2;'
    assert_equal "$(jq -r 'select(.type == "receive" and (.msg | test("^.[abc],"))) | "\(.msg) \(.message) \(.from | test("^<"))"' "$OUT" | tr '\n' ';')" \
        '{a,1} a true;{b,2} [b,two] true;{c,drop} c true;'
    traced --json '@exit where reason == overlap' '@exit where reason == normal' '@procs where reason =:= other' -- \
        '[begin {_, R} = spawn_monitor(fun() -> exit(X) end), receive {_, R, _, _, _} -> ok end end || X <- [overlap, normal, other, neither]]'
    assert_success
    assert_equal "$(json_of exit .reason | sort -u | tr '\n' ';')" 'normal;other;overlap;'
}

@test "each expression has its own condition, and a call is counted once" {
    traced --json 'work:one(X) where X > 3' 'work:one(_) -> return where ret < 2' -- '[work:one(N) || N <- [1, 2, 3, 4]]'
    assert_success
    # The second expression filters by the result, so the decision about a call waits until it returns.
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '1 4 '
    assert_equal "$(json_of return .value | tr '\n' ' ')" '1 4 '
    traced -c work:one/1 'work:one(X) when X > 2' 'work:_' 'work:two/2 -> drop' -- '[work:one(N) || N <- [1, 2, 3, 4]], work:two(1, 2)'
    assert_success
    assert_equal "$(awk '/work:/ { print $1, $NF }' "$OUT")" '4 work:one/1'
    trace --json --limit 2 work:one/1 'work:one(_) -> return'
    on_node '[work:one(N) || N <- [1, 2, 3, 4]]'
    trace_wait
    assert_success
    assert_equal "$(story)" 'one(1);return one 1;one(2);return one 2;'
}

# bats test_tags=each
@test "a meta trace and a local trace of one function show a call once" {
    traced --json 'work:one(_) -> caller' 'meta work:one(X) when X > 1 -> return' -- 'work:one(1), work:one(2)'
    assert_success
    assert_equal "$(story)" 'one(1) by;one(2) by;return one 2;'
}

# bats test_tags=each
@test "the interactive mode refines a function during a trace without a lost or repeated event" {
    : >"$ERR"
    armed() { [[ $(grep -c 'Ctrl-C stops' "$ERR") -ge $1 ]]; }
    timeout 60 "$ETRACE_BIN" repl -n "$NODE" --json < <(
        echo 'work:_'
        until_true 30 armed 1
        on_node 'work:one(1)' >&2
        echo 'fine: work:one(X) when X > 1 -> return'
        until_true 30 armed 2
        on_node 'work:one(1), work:one(2), work:two(a, b)' >&2
        echo 'no: work:two/2 -> drop'
        until_true 30 armed 3
        on_node 'work:one(3), work:two(a, b)' >&2
        echo ':drop fine no'
        until_true 30 armed 4
        on_node 'work:one(4), work:two(c, d)' >&2
        echo ':wait 9 events'
    ) >"$OUT" 2>"$ERR" 3>&-
    run jq -r 'select(.m) | "\(.type) \(.f) \(.args[0] // "") \(.probe // "")"' "$OUT"
    assert_output "call one 1 
call one 1 1
call one 2 1,fine
return one 2 1,fine
call two a 1
call one 3 1,fine
return one 3 1,fine
call one 4 
call two c "
    assert_equal "$(grep -c '2 probes · ' "$ERR")" 1
    # After the third probe the number of functions is the same.
    assert_equal "$(grep -o '[0-9]* functions' "$ERR" | sort -u | wc -l)" 1
}

@test "overlapping expressions work in files, on several nodes and in recordings" {
    local first=$NODE
    printf 'work:one/1\n# and\nwork:one(X) when X > 1 -> return\n' >"$BATS_TEST_TMPDIR/probes"
    node_start second
    trace --json -n "$first" -f "$BATS_TEST_TMPDIR/probes" 'work:one(3) -> msg(three)' -o "$BATS_TEST_TMPDIR/it.etr"
    on_node 'work:one(1), work:one(2)'
    node_eval "$first" 'work:one(3)' >/dev/null
    trace_end
    assert_success
    assert_equal "$(story | tr ';' '\n' | sort | tr '\n' ';')" 'one(1);one(2);one(3) -> three;return one 2;return one 3;'
    assert_equal "$(grep -c ' · 1 function · ' "$ERR")" 2
    "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/it.etr" --json >"$BATS_TEST_TMPDIR/again" 2>/dev/null
    diff <(jq -c 'select(.m)' "$OUT") <(jq -c 'select(.m)' "$BATS_TEST_TMPDIR/again")
    node_stop "$NODE"
    NODE=$first
}

@test "expressions that overlap in too many ways are refused with the name of the function" {
    local n
    local -a many=()
    for n in {1..9}; do many+=("work:one(X) when X > $n"); done
    trace "${many[@]}"
    trace_wait
    assert_equal "$status" 2
    assert_regex "$talk" 'the expressions that select work:one/1 overlap in more than 256 ways'
    # Patterns that exclude each other do not multiply.
    many=()
    for n in {1..60}; do many+=("work:one($n) -> msg($n)"); done
    traced --json "${many[@]}" -- 'work:one(1), work:one(60), work:one(61)'
    assert_success
    assert_equal "$(story)" 'one(1) -> 1;one(60) -> 60;'
}

@test "what etrace ps and why find out is in no trace of another etrace" {
    trace --json @exit 'send(_, _)'
    run -0 timeout 60 "$ETRACE_BIN" why -n "$NODE" w
    run -0 timeout 60 "$ETRACE_BIN" ps -n "$NODE" --once
    on_node 'exit(spawn(fun() -> receive stop -> ok end end), the_end)'
    until_true 30 grep -q the_end "$OUT"
    trace_end
    assert_success
    run grep -E 'answer|looked|current_stacktrace' "$OUT"
    assert_output ''
}
