#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests code that is loaded, reloaded and removed during a trace, names that do not exist, and the tracer without the
# NIF.

load ../lib/assert
load ../lib/live

setup_file() { live_begin code; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Compiles a module `fresh`, whose f/1 returns {VERSION, X}, into a directory in the code path of the node.
fresh() { # VERSION
    local dir
    dir=$(node_dir "$NODE")
    cat >"$dir/fresh.erl" <<END
-module(fresh).
-export([f/1, g/0]).
f(X) -> {$1, X}.
g() -> ok.
END
    "$ETRACE_ERLC" -o "$dir" "$dir/fresh.erl"
    on_node "code:add_path(\"$dir\")"
}

no_fresh() {
    on_node "code:purge(fresh), code:delete(fresh), code:purge(fresh), code:del_path(\"$(node_dir "$NODE")\")"
    live_snapshot
}

rearmed() { grep -q rearmed "$ERR"; }
values() { json_of return .value | tr '\n' ' '; }

@test "etrace finds a module that is in the code path but not loaded" {
    fresh 1
    traced --json 'fresh:f/1 -> return' -- 'fresh:f(a)'
    assert_success
    assert_equal "$(values)" '{1,a} '
    no_fresh
}

@test "a trace without calls names the modules that were not loaded before" {
    fresh 1
    traced 'fresh:f/1' 'fresh:g/0' 'work:one/1' -- 'ok'
    assert_success
    assert_regex "$talk" 'etrace: no traced function was called; not loaded before the trace: fresh$'
    # It is loaded now.
    traced 'fresh:f/1' -- 'ok'
    assert_success
    assert_regex "$talk" 'etrace: no traced function was called$'
    no_fresh
}

@test "etrace arms a reloaded module again and reports it" {
    fresh 1
    trace --json 'fresh:f/1 -> return'
    on_node 'fresh:f(a)'
    fresh 2
    on_node 'code:purge(fresh), code:load_file(fresh), fresh:f(unseen)'
    until_true 30 rearmed
    on_node 'fresh:f(b)'
    # Load the same code a second time.
    rm "$ERR.1" 2>/dev/null || true
    on_node 'code:purge(fresh), code:load_file(fresh)'
    until_true 30 eval '[[ $(grep -c rearmed "$ERR") -ge 2 ]]'
    on_node 'fresh:f(c)'
    trace_end
    assert_success
    assert_regex "$(values)" '^\{1,a\} (\{2,unseen\} )?\{2,b\} \{2,c\} $'
    assert_equal "$(json_of rearmed .info | sort -u)" fresh
    assert_account any
    assert_equal "$(json_of summary .reloads)" "$(grep -c rearmed "$ERR")"
    [[ $(totals) == *' reloads (calls may be missing)' ]]
    no_fresh
}

# bats test_tags=long
@test "a trace of a module that is reloaded all the time says that calls may be missing" {
    fresh 1
    trace --json 'fresh:f/1'
    on_node '[begin code:purge(fresh), code:load_file(fresh), [fresh:f(N) || N <- lists:seq(1, 20)] end || _ <- lists:seq(1, 40)], code:purge(fresh)'
    trace_end
    assert_success
    assert_account any
    # The module is found at a look, or at the end.
    jq -e '.seen == 800 or .reloads > 0' <<<"$(tail -n 1 "$OUT")"
    trace 'fresh:f(N) by N: count'
    on_node 'code:load_file(fresh), fresh:f(1), code:purge(fresh)'
    trace_end
    assert_success
    assert_output --partial 'reload of a module (calls until the next look were not seen)'
    refute_regex "$talk" 'no traced function'
    no_fresh
}

# bats test_tags=long
@test "etrace reports an unloaded module and arms it when it is loaded again" {
    fresh 1
    trace --json 'fresh:f/1 -> return'
    on_node 'fresh:f(a), code:purge(fresh), code:delete(fresh), code:purge(fresh)'
    until_true 30 grep -q gone "$ERR"
    on_node 'code:load_file(fresh)'
    until_true 30 rearmed
    on_node 'fresh:f(b)'
    trace_end
    assert_success
    assert_equal "$(values)" '{1,a} {1,b} '
    no_fresh
}

@test "an unknown function or module is refused and a similar name is suggested" {
    run "$ETRACE_BIN" -n "$NODE" work:onne/1
    assert_failure 5
    assert_line -n 0 'etrace: work has no function onne/1'
    assert_line -n 1 'hint: did you mean one?'
    run "$ETRACE_BIN" -n "$NODE" work:one/3
    assert_failure 5
    assert_line -n 0 'etrace: work has no function one/3'
    assert_line -n 1 'hint: did you mean one/1?'
    run "$ETRACE_BIN" -n "$NODE" lits:seq/2
    assert_failure 5
    assert_line -n 0 'etrace: there is no module lits on the node'
    assert_line -n 1 --partial 'hint: did you mean lists'
    run "$ETRACE_BIN" -n "$NODE" lists:sq/2
    assert_line -n 1 'hint: did you mean seq?'
    run "$ETRACE_BIN" -n "$NODE" lists:sequence/2
    assert_line -n 0 'etrace: lists has no function sequence/2'
    assert_line -n 1 'hint: did you mean seq?'
    run "$ETRACE_BIN" -n "$NODE" shop@host lists:seq/2
    assert_line -n 0 "etrace: there is no module shop@host on the node"
    assert_line -n 1 "hint: the name of a node follows -n, as in -n shop@host"
    local dir
    dir=$(node_dir "$NODE")
    echo "-module('Elixir.Work.Till')." >"$dir/Elixir.Work.Till.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/Elixir.Work.Till.erl"
    on_node "code:load_abs(\"$dir/Elixir.Work.Till\")"
    run "$ETRACE_BIN" -n "$NODE" 'Work.Till.*'
    on_node "code:delete('Elixir.Work.Till'), code:purge('Elixir.Work.Till')"
    live_snapshot
    assert_line -n 0 'etrace: Work.Till.* matches no function on the node'
    assert_line -n 1 'hint: did you mean Work.Till?'
    run "$ETRACE_BIN" -n "$NODE" Work.Modul.get/1
    assert_line -n 0 'etrace: there is no module Work.Modul on the node'
    run "$ETRACE_BIN" -n "$NODE" 'qqqqqq*:f/1..2 | ~/^qqqq/:f'
    assert_failure 5
    assert_output 'etrace: qqqqqq*:f/1..2 | ~/^qqqq/:f matches no function on the node'
    run "$ETRACE_BIN" -n "$NODE" 'Qqqq.*'
    assert_output 'etrace: Qqqq.* matches no function on the node'
}

left() { until_true 30 nobody_there; }

# bats test_tags=long
@test "unknown names and consecutive clients create no atoms" {
    "$ETRACE_BIN" -n "$NODE" --dry-run 'work:one(X) when X > 1 -> return' 2>/dev/null
    left
    before=$(node_snapshot "$NODE")
    for i in {1..10}; do
        run "$ETRACE_BIN" -n "$NODE" "no_module_$i:f" "lists:no_fun_$i/1"
        assert_failure 5
        left
        run "$ETRACE_BIN" -n "$NODE" "work:one(no_atom_$i)"
        assert_failure 5
        assert_output --partial "the node does not know the atom no_atom_$i"
        left
        run "$ETRACE_BIN" -n "$NODE" -P "no_proc_$i" work:one/1
        assert_failure 5
        left
    done
    assert_clean --names 0 "$before" "$NODE"
}

# bats test_tags=long
@test "concurrent clients reuse the atoms of earlier client names" {
    three() {
        for OUT in "$BATS_TEST_TMPDIR"/{1,2,3}; do ERR=$OUT.err trace work:one/1; done
        for TRACER in "${TRACERS[@]}"; do kill -INT "$TRACER"; wait "$TRACER"; done
        TRACERS=()
        left
    }
    three
    before=$(node_snapshot "$NODE")
    number names "$before"
    [[ $REPLY -ge 6 ]] # three nodes and three modules
    three
    three
    assert_clean --names 0 "$before" "$NODE"
}

@test "--allow-empty waits for a module that does not exist yet" {
    trace --json --allow-empty 'fresh:f/1 -> return'
    fresh 1
    on_node 'code:load_file(fresh)'
    until_true 30 rearmed
    on_node 'fresh:f(late)'
    trace_end
    assert_success
    assert_equal "$(values)" '{1,late} '
    no_fresh
}

@test "--dry-run prints what etrace would trace, and traces nothing" {
    run "$ETRACE_BIN" -n "$NODE" --dry-run work:one/1 work:two/2
    assert_success
    assert_output --regexp "^etrace: $NODE · OTP ${ETRACE_OTP}[0-9.]* · 2 functions · [0-9]+ processes · not traced \(--dry-run\)$"
}

@test "wildcards select written functions, not those that the compiler generated" {
    traced --json 'work:_' -- 'work:burst(1, 2)'
    assert_success
    assert_equal "$(json_of call '.f' | sort | uniq -c | tr -s ' \n' ' ')" ' 1 burst 3 each 1 loop 2 one '
    assert_account any
}

@test "_ selects every function of a module, and _:_ every function of the node" {
    traced --json --limit 1000 'work:_' -- 'work:fac(2)'
    assert_success
    assert_equal "$(json_of call 'select(.f == "fac") | .f' | wc -l)" 3
    assert_account any
    start=$(millis)
    trace --json --rate 2000 '_:_'
    functions=$(sed -n 's/.* · \([0-9]*\) functions · .*/\1/p' "$ERR")
    assert [ "$functions" -gt 3000 ]
    echo "# all $functions functions of the node armed in $(($(millis) - start)) ms" >&3
    on_node 'work:burst(2, 20000)'
    trace_end
    assert_success
    assert_account any
}

shape() { sed -E 's/^[0-9:.]+ //; s/<0\.[0-9]+\.0>/P/g; s/ [0-9.]+(ns|us|ms)$/ TIME/' "$1"; }

@test "the fallback tracer prints the same lines" {
    probes=('work:fac/1 -> return' 'work:raise/2 -> return, caller' 'work:one/1' -P w 'send(_, {ping, _, _})' 'recv({pong, _})')
    work='work:ask(w, fun() -> work:fac(3), work:caught(error, oops), work:one(#{password => secret, k => [1, 2.5, <<"b">>]}), work:ping_pong(2), work:one(list_to_tuple(work:seq(20))) end)'
    traced "${probes[@]}" -- "$work"
    assert_success
    shape "$OUT" >"$BATS_TEST_TMPDIR/nif"
    trace --fallback "${probes[@]}"
    on_node "$work"
    trace_end
    assert_success
    shape "$OUT" >"$BATS_TEST_TMPDIR/fallback"
    diff "$BATS_TEST_TMPDIR/nif" "$BATS_TEST_TMPDIR/fallback"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/nif")" -ge 15 ]
    assert_equal "$(grep -c 'tracing without the NIF' "$ERR")" 1
}

@test "the fallback tracer limits a flood, counts every event, and the node survives" {
    trace --json --fallback work:one/1
    on_node 'work:burst(2, 3000)'
    trace_end
    assert_success
    assert_account 6000
    trace --json --fallback work:one/1
    on_node 'work:flood(2)'
    pause 1
    on_node 'work:calm(ok)'
    trace_end
    # The trace may end early or go on. The node survives in both cases, and the accounting is right.
    assert_account any
}
