#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests records, whose definitions etrace reads from the debug information of the node's modules, and pids and ports in
# expressions.

load ../lib/assert
load ../lib/live

setup_file() {
    local dir
    live_begin records || return 1
    dir=$(node_dir "$NODE")
    mkdir "$dir/defs"
    cat >"$dir/defs/shelf.erl" <<'END'
-module(shelf).
-export([new/1, put/2]).
-record(item, {id :: integer(), name = "none" :: string(), tags = [{a, 1.5}], made = os:getpid(), price = -3, raw = <<"ab", 1>>}).
-record(empty, {}).
new(Id) -> #item{id = Id, made = now}.
put(#item{} = Item, #empty{}) -> Item.
END
    cat >"$dir/defs/crate.erl" <<'END'
-module(crate).
-export([new/0, same/1]).
-record(item, {other}).
new() -> #item{}.
same(Term) -> Term.
END
    sed 's/crate/stripped/' "$dir/defs/crate.erl" >"$dir/defs/stripped.erl"
    sed 's/crate/packed/' "$dir/defs/crate.erl" >"$dir/defs/packed.erl"
    (
        cd "$dir/defs"
        "$ETRACE_ERLC" +debug_info +nowarn_unused_record shelf.erl crate.erl &&
            "$ETRACE_ERLC" +debug_info +compressed packed.erl && "$ETRACE_ERLC" stripped.erl
    ) || return 1
    on_node "code:add_path(\"$dir/defs\"), [code:load_file(M) || M <- [shelf, crate, packed, stripped]]"
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

args() { json_of call '.args[0]' | tr '\n' ' '; }

@test "a record in a head has the fields of the selector's module" {
    traced --json 'shelf:put(#item{id = I}, #empty{}) when I > 2 -> msg(I)' -- \
        'shelf:put(shelf:new(2), {empty}), shelf:put(shelf:new(3), {empty})'
    assert_success
    assert_equal "$(json_of call '.args[0] | test("^{item,3,")')" true
    assert_equal "$(json_of call .message)" 3
    assert_account 1
}

@test "mod#rec{} has the fields of that module, also in messages" {
    traced --json 'work:one(shelf#item{id = 7})' -- 'work:one(shelf:new(6)), work:one(shelf:new(7)), work:one(7)'
    assert_success
    assert_equal "$(args | cut -c 1-8)" '{item,7,'
    assert_account 1
    traced --json 'send(_, shelf#item{id = 8})' -- 'self() ! shelf:new(8), self() ! shelf:new(9)'
    assert_equal "$(jq -r 'select(.type == "send") | .type' "$OUT")" send
    assert_account 1
}

@test "an omitted field has its default value" {
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'work:one(X) when X =:= shelf#item{id = 1}'
    assert_failure 2
    assert_line -n 0 'etrace: the default value of field made is not a literal term'
    traced --json 'work:one(X) when X =:= shelf#item{id = 1, made = now}' -- 'work:one(shelf:new(1)), work:one(shelf:new(2))'
    assert_success
    assert_equal "$(args)" '{item,1,"none",[{a,1.5}],now,-3,<<97,98,1>>} '
    assert_account 1
}

@test "records work in where, and a recording keeps their definitions" {
    traced --json -o "$BATS_TEST_TMPDIR/r.etr" 'shelf:new/1 where ret#item.id == 4' -- 'shelf:new(3), shelf:new(4)'
    assert_success
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '4 '
    run "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/r.etr"
    assert_success
    assert_equal "$(jq -r 'select(.type == "call") | .args[0]' <<<"$output")" 4
    # A filter of replay can use the record definitions that the recording contains.
    run bash -c "'$ETRACE_BIN' replay --json -e 'ret#item.id > 4' - <'$BATS_TEST_TMPDIR/r.etr'"
    assert_success
    refute_output --partial '"type":"call"'
    run bash -c "'$ETRACE_BIN' replay --json -e 'ret#item.id < 5' - <'$BATS_TEST_TMPDIR/r.etr'"
    assert_output --partial '"type":"call"'
    run "$ETRACE_BIN" replay -e 'ret#itm.id > 4' "$BATS_TEST_TMPDIR/r.etr"
    assert_failure 2
    assert_line -n 0 "etrace: unknown record 'itm'"
}

@test "a record of the node in --snapshot-when triggers a snapshot" {
    local condition
    for condition in 'ret == crate#item{other = 5}' 'ret = crate#item{other = 5}' 'class == error'; do
        trace --json --ring 1MB --snapshot-when "$condition" --snapshots 1 --snapshot-after 1ms \
            'crate:same/1 -> return' 'shelf:put(#item{}, _) -> return'
        on_node '[crate:same({item, N}) || N <- lists:seq(1, 5)], catch shelf:put(shelf:new(1), 2)'
        trace_wait
        assert_success
        assert_equal "$(jq -r 'select(.type == "return") | .value' "$OUT" | tail -n 1)" '{item,5}'
        # The node decides unless the condition itself depends on the record.
        assert_equal "$(grep -c 'etrace decides' "$ERR")" "$([[ $condition == ret* ]] && echo 1 || echo 0)"
    done
}

@test "an unknown record, field or module is refused and a similar name is suggested" {
    run "$ETRACE_BIN" -n "$NODE" 'shelf:put(#itme{id = 1}, _)'
    assert_failure 2
    assert_output - <<'END'
etrace: shelf has no record itme
  shelf:put(#itme{id = 1}, _)
            ^^^^^^^^^^^^^ did you mean 'item'?
END
    run "$ETRACE_BIN" -n "$NODE" 'shelf:put(#item{idd = 1}, _)'
    assert_failure 2
    assert_line -n 0 'etrace: record item has no field idd'
    run "$ETRACE_BIN" -n "$NODE" 'shlf:put(#item{id = 1}, _)'
    assert_failure 5
    assert_line -n 0 'etrace: there is no module shlf on the node'
    run "$ETRACE_BIN" -n "$NODE" 'send(_, #item{id = 1})'
    assert_failure 2
    assert_line -n 0 "etrace: unknown record 'item': name its module, as in mod#item{}"
}

@test "the error about a record without debug information suggests --hrl" {
    run "$ETRACE_BIN" -n "$NODE" 'stripped:new() when self() == #item{}'
    assert_failure 2
    assert_output - <<'END'
etrace: unknown record 'item': stripped on the node has no debug information
  stripped:new() when self() == #item{}
                                ^^^^^^^ define it with --hrl FILE
END
    run "$ETRACE_BIN" explain 'shelf:put(#item{})'
    assert_failure 2
    assert_line -n 0 "etrace: unknown record 'item'"
    assert_line -n 2 --partial -- 'define it with --hrl FILE'
}

@test "definitions in several modules must agree, and compressed beam files are read" {
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'shelf:new(_) | crate:new(#item{id = 1})'
    assert_failure 2
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'shelf:put(#item{id = 1}) | crate:new(#item{id = 1})'
    assert_failure 2
    run "$ETRACE_BIN" -n "$NODE" --dry-run --allow-empty 'local ~/^(shelf|crate)$/:_(#item{})'
    assert_failure 2
    assert_line -n 0 'etrace: record item is not the same in crate and shelf: write crate#item{}'
    run "$ETRACE_BIN" -n "$NODE" --dry-run --allow-empty 'local ~/^(packed|crate)$/:_(#item{other = 1})'
    assert_success
}

@test "--hrl reads a pipe only once" {
    traced --json --hrl <(echo '-record(other, {x, y}).') 'lists:seq(A, B) when #other{x = A, y = 5} =:= {other, 1, B}' -- \
        'lists:seq(1, 5), lists:seq(2, 5)'
    assert_success
    assert_account 1
}

@test "--hrl takes precedence over the modules of the node" {
    echo '-record(item, {a, b}).' >"$BATS_TEST_TMPDIR/own.hrl"
    traced --json --hrl "$BATS_TEST_TMPDIR/own.hrl" 'work:one(shelf#item{b = 1})' -- 'work:one({item, 0, 1}), work:one(shelf:new(1))'
    assert_success
    assert_equal "$(args)" '{item,0,1} '
}

# bats test_tags=each
@test "lookups of records create no atoms" {
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'shelf:put(#item{id = 1}, _)'
    live_snapshot
    for _ in 1 2 3; do
        run "$ETRACE_BIN" -n "$NODE" --dry-run 'shelf:put(#item{id = 1}, _)'
        assert_success
        run "$ETRACE_BIN" -n "$NODE" --dry-run 'lists:seq(#nonsuch_record{}, _)'
        assert_failure 2
    done
    assert_clean "$BEFORE" "$NODE"
}

# Loads a module whose functions f and g return native records with two different names.
native_module() {
    local dir
    dir=$(node_dir "$NODE")/defs
    printf '%s\n' '-module(kind).' '-export([f/1, g/1]).' '-record #it{id, password = <<"CaNaRy">>}.' "-record #'an other'{id}." \
        'f(X) -> #it{id = X}.' "g(X) -> #'an other'{id = X}." >"$dir/kind.erl"
    "$ETRACE_ERLC" +debug_info -o "$dir" "$dir/kind.erl"
    on_node 'code:purge(kind), {module, _} = code:load_file(kind)'
    live_snapshot
}

# Asserts which calls are shown. Their terms: f and g native records, t a tuple, m a map with a native record, l a list
# with one, n a number.
assert_shows() { # TERMS ETRACE-ARGUMENT...
    local shown
    shown=$1
    shift
    traced --json "$@" -- 'work:two(kind:f(7), f), work:two(kind:g(7), g), work:two({it, 7}, t), work:two(#{k => kind:f(7)}, m), work:two([kind:f(7)], l), work:two(1, n)'
    assert_success
    assert_equal "$*: $(jq -r 'select(.type == "call") | .args[1]' "$OUT" | tr -d '\n')" "$*: $shown"
}

@test "patterns, guards and filters test the names of native records" {
    if [[ $ETRACE_OTP -lt 29 ]]; then
        for expr in 'work:two(#kind:it{}, _)' 'work:two(#_{}, _)' 'work:two(X, _) when is_record(X)' \
            'work:two(X, _) when is_record(X, kind, it)' 'work:two(X, _) where is_record(X, kind, it)' 'work:two/2 where ret = #_{}'; do
            run "$ETRACE_BIN" -n "$NODE" --dry-run "$expr"
            assert_failure 2
            assert_line -n 0 'etrace: native records need OTP 29'
        done
        return
    fi
    native_module
    assert_shows f 'work:two(#kind:it{}, _)'
    assert_shows f 'work:two(kind#it{}, _)'
    assert_shows f 'work:two(X, _) when is_record(X, kind, it)'
    assert_shows f 'work:two(X, _) when is_record(X, kind#it)'
    assert_shows g "work:two(#kind:'an other'{} = X, _) when X =/= 1"
    assert_shows fg 'work:two(#_{}, _)'
    assert_shows fg 'work:two(X, _) when is_record(X)'
    assert_shows m 'work:two(#{k := #kind:it{}}, _)'
    assert_shows l 'work:two([#_{} | _], _)'
    assert_shows gtmln 'work:two(#kind:it{}, _) -> drop; (_, _)'
    assert_shows fgtmln 'work:two(X, _) when not is_record(X, kind, zzq_no_record)'
}

# bats test_tags=long
@test "etrace decides where by the type and the name of native records" {
    [[ $ETRACE_OTP -ge 29 ]] || return 0
    native_module
    assert_shows f 'work:two(X, _) where is_record(X, kind, it)'
    assert_shows g "work:two(X, _) where is_record(X, kind, 'an other')"
    assert_shows gtmln 'work:two(X, _) where not is_record(X, kind, it)'
    assert_shows fg 'work:two(X, _) where is_record(X)'
    assert_shows m 'work:two(X, _) where is_map(X)'
    assert_shows fgmln 'work:two(X, _) where not is_tuple(X)'
    assert_shows tn 'work:two(X, _) where X =< {it, 8}'
    assert_shows fgtml 'work:two(X, _) where X =/= 1'
    assert_equal "$(json_of summary .undecided)" 0
    assert_shows f 'work:two/2 where args[1] = #kind:it{}'
    # If a condition cannot be decided, the event is shown and counted as undecided.
    assert_shows fgtmln 'work:two(X, _) where X == X'
    assert_equal "$(json_of summary .undecided)" 4
    assert_shows fgtml 'work:two(X, _) where X =~ "7"'
    assert_equal "$(json_of summary .undecided)" 4
    assert_shows tmln 'work:two(X, _) where X !~ "kind:" or is_list(X) or is_map(X)'
    traced --json 'recv({tell, #kind:it{}, _})' -- 'w ! {tell, kind:f(1), x}, w ! {tell, kind:g(1), x}, work:ask(w, fun() -> ok end)'
    assert_account 1
}

# bats test_tags=long
@test "an expression that reads fields of a native record is refused and a working test is suggested" {
    [[ $ETRACE_OTP -ge 29 ]] || return 0
    native_module
    refused() { # EXPRESSION MESSAGE NOTE
        run "$ETRACE_BIN" -n "$NODE" --dry-run "$1"
        assert_failure 2
        assert_line -n 0 "etrace: $2"
        assert_line -n 2 --partial "$3"
    }
    for expr in 'work:one(kind#it{id = 7})' 'work:one(#kind:it{id = 7})' 'work:one([#kind:it{id = 7}])' 'kind:f(#it{id = 7})'; do
        refused "$expr" 'the fields of native records cannot be read' '^ write #kind:it{} for all of them'
    done
    refused 'work:one(#_{id = 7})' 'the fields of native records cannot be read' '^ write #_{} for all of them'
    refused 'work:one(X) when X#_.id == 7' 'the fields of native records cannot be read' '^ is_record(X) tests for one'
    for expr in 'work:one(X) when X#kind:it.id == 7' 'work:one(X) where X#kind:it.id == 7' 'work:one/1 where ret#kind:it.id == 7' 'kind:f(X) when X#it.id == 7'; do
        refused "$expr" 'the fields of native records cannot be read' '^ is_record(X, kind, it) tests for one'
    done
    for expr in 'work:one(X) when X == #kind:it{id = 7}' 'work:one(X) -> msg(#kind:it{id = 7})' 'work:one(X) where X == #kind:it{id = 7}' 'work:one(X) when X == kind#it{}'; do
        refused "$expr" 'a native record cannot be built here' '^ is_record(X, kind, it) tests for one'
    done
    refused 'work:one(X) where ret = {#kind:it{}}' 'a pattern of a filter can only contain literals and variables' '^ compare the rest'
}

# bats test_tags=long
@test "every view shows only the names of native records, with and without the NIF" {
    [[ $ETRACE_OTP -ge 29 ]] || return 0
    native_module
    local out=$BATS_TEST_TMPDIR/r
    for tracer in '' --fallback; do
        traced $tracer -o "$out.etr" -o "$out.json" -o "$out.csv" 'work:one/1 -> return' -- 'work:one([kind:f(7), kind:g(8)]), work:one(#{token => kind:f(1)})'
        assert_success
        assert_line -n 0 --partial "call work:one([#kind:it{...},#kind:'an other'{...}])"
        assert_line -n 2 --partial "call work:one(#{token => '*REDACTED*'})"
        refute_output --partial CaNaRy
        run grep -c CaNaRy "$out.json" "$out.csv"
        assert_failure 1
        refute_recorded "$out.etr" CaNaRy kind
        run "$ETRACE_BIN" replay "$out.etr" -e "is_list(args[1]) and is_record(hd(args[1]), kind, it)"
        assert_success
        assert_line -n 0 --partial "call work:one([#kind:it{...},#kind:'an other'{...}])"
        refute_output --partial token
        assert_equal "$(jq -r 'select(.type == "call") | .args[0]' "$out.json" | head -n 1)" "[#kind:it{...},#kind:'an other'{...}]"
        assert_equal "$(grep -c "#kind:'an other'{\.\.\.}" "$out.csv")" 2
    done
    traced --no-redact 'work:one/1' -- 'work:one(#{token => kind:f(1)})'
    assert_line -n 0 --partial 'call work:one(#{token => #kind:it{...}})'
    traced --depth 1 'work:one/1' -- 'work:one(kind:f(1)), work:one([kind:f(1)])'
    assert_line -n 0 --partial 'call work:one(#kind:it{...})'
    assert_line -n 1 --partial 'call work:one([#kind:it{...}])'
    traced --size 10 'work:one/1' -- 'work:one(kind:f(1))'
    assert_line -n 0 --partial 'call work:one(#kind:it{...})'
}

# bats test_tags=long
@test "expressions accept pids and ports in heads, guards and messages" {
    pid=$(node_eval "$NODE" 'whereis(w)')
    port=$(node_eval "$NODE" 'hd(erlang:ports())')
    both='work:one(self()), work:one(whereis(w)), work:one(hd(erlang:ports()))'
    traced --json "work:one($pid)" -- "$both"
    assert_success
    assert_equal "$(args)" "$pid "
    traced --json "work:one(X) when X =:= $pid" -- "$both"
    assert_equal "$(args)" "$pid "
    traced --json "work:one($port)" -- "$both"
    assert_equal "$(args)" "$port "
    traced --json "work:one(X) when {X} == {$port} -> msg($pid)" -- "$both"
    assert_equal "$(args)" "$port "
    traced --json "send($pid, {tell, _})" -- 'work:tell(whereis(w), fun() -> ok end), whereis(w) ! other, work:ask(w, fun() -> ok end)'
    assert_success
    assert_equal "$(jq -r 'select(.type == "send") | .to' "$OUT")" "$pid"
    traced --json "recv($pid, _)" -- 'work:ask(w, fun() -> ok end), self() ! own, receive own -> ok end'
    assert_success
    assert_equal "$(jq -r 'select(.type | test("rec")) | .from' "$OUT")" "$pid"
}
