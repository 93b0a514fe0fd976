#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Other tools and code on the node during a trace: tools that trace the same functions and clear everything, two
# sessions that would trace garbage collection, code that is loaded and unloaded in bursts or fails to load, and
# attaches that are cut short.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

# Tag allocations with the library that made them.
setup_file() { live_begin tools +Muatags true; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    on_node 'erlang:trace(all, false, [all]), erlang:trace_pattern({work, one, 1}, false, [local]),
        [begin code:purge(M), code:delete(M), code:purge(M) end || M <- [fresh, sour], code:is_loaded(M) =/= false]' || true
    live_teardown
}

# Starts legacy tracing by a process that counts the calls it receives.
legacy() {
    on_node 'register(legacy, spawn(fun() ->
        erlang:trace_pattern({work, one, 1}, true, [local]),
        erlang:trace(whereis(w), true, [call, send]),
        F = fun F(N) -> receive {trace, _, call, {work, one, _}} -> F(N + 1); {get, P} -> P ! {count, N}, F(N); stop -> ok; _ -> F(N) end end,
        F(0) end))'
    until_true 30 legacy_traces
}
legacy_traces() { [[ $(node_eval "$NODE" 'erlang:trace_info(whereis(w), flags)') == *call* ]]; }
legacy_count() { node_eval "$NODE" 'legacy ! {get, self()}, receive {count, N} -> N end'; }
legacy_has() { [[ $(legacy_count) == "$1" ]]; }
legacy_ends() { on_node 'R = monitor(process, legacy), legacy ! stop, receive {_, R, _, _, _} -> ok end'; }

calls() { on_node "work:ask(w, fun() -> work:loop($1) end)"; }

# These calls reset tracing, as recon_trace:clear/0, dbg and a shell do.
clears=('erlang:trace(all, false, [all]), erlang:trace_pattern({'"'_', '_', '_'}"', false, [local]), erlang:trace_pattern({'"'_', '_', '_'}"', false, [])'
    'dbg:stop()'
    'dbg:tracer(), dbg:p(all, [c, m, p]), dbg:tpl(work, []), dbg:ctpl(), dbg:p(all, clear), dbg:stop()'
    'erlang:trace(whereis(w), true, [all]), erlang:trace(whereis(w), false, [all])'
    'erlang:trace_pattern({work, one, 1}, true, [local]), erlang:trace_pattern({work, one, 1}, false, [local])'
    'erlang:trace_pattern(send, false, []), erlang:trace_pattern(send, true, []), erlang:trace_pattern('"'receive'"', true, [])')

dbg_is_gone() { [[ $(node_eval "$NODE" '[garbage_collect(P) || P <- processes()], [S || {dbg, _} = S <- trace:session_info(all)]') == '[]' ]]; }

@test "clearing all legacy tracing and dbg leaves this session's trace complete" {
    trace --json 'work:one/1 -> return' 'send(_, _)'
    calls 10
    for clear in "${clears[@]}"; do
        on_node "$clear"
        calls 10
    done
    # dbg's session exists until the VM collects its last handle, which may stay in garbage for long.
    until_true 30 dbg_is_gone
    trace_end
    assert_success
    assert_account any
    assert_equal "$(jq -r 'select(.type == "call" and .name == "w") | .f' "$OUT" | wc -l)" 70
    assert_equal "$(jq -r 'select(.type == "return" and .name == "w") | .f' "$OUT" | wc -l)" 70
    [[ $(jq -r 'select(.type == "send" and .name == "w") | .to' "$OUT" | wc -l) -ge 7 ]] || fail 'the trace lacks sends'
}

@test "the start, the end and the kill of etrace leave legacy tracing unchanged" {
    legacy
    mine=$(node_snapshot "$NODE")
    calls 5
    trace --json work:one/1
    calls 5
    trace_end
    assert_account 5
    calls 5
    trace --json 'work:_ -> return' 'send(_, _)'
    calls 5
    kill -KILL "$TRACER"
    assert_clean "$mine" "$NODE"
    calls 5
    # Legacy tracing starts and ends during a trace.
    until_true 30 legacy_has 25 || fail "$(legacy_count)"
    legacy_ends
    trace --json work:one/1
    calls 5
    legacy
    calls 5
    legacy_ends
    calls 5
    trace_end
    assert_account 15
}

collects() { [[ $(jq -r 'select(.type == "gc_major_start") | .type' "$OUT" | wc -l) -gt 0 ]]; }

@test "a second session that traces garbage collection is refused, in both orders, and the node lives" {
    # etrace traces first: a second etrace is refused, and the first one continues.
    trace --json -P w @gc
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -P w @gc
    assert_failure 3
    assert_line -n 0 'etrace: another session traces garbage collection on the node, and two such sessions would crash it'
    run "$ETRACE_BIN" -n "$NODE" --for 100ms @gc_major_start
    assert_failure 3
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
    until_true 30 collects
    trace_end
    assert_success
    assert_account any
    # Another session traces first, and then ends.
    on_node 'register(rival, spawn(fun() -> S = trace:session_create(rival, self(), []), trace:process(S, whereis(w), true, [garbage_collection]),
        F = fun F() -> receive {trace, _, _, _} -> F(); done -> trace:session_destroy(S) end end, F() end))'
    until_true 30 rival_collects
    run "$ETRACE_BIN" -n "$NODE" --for 100ms @gc
    assert_failure 3
    on_node 'work:ask(w, fun() -> garbage_collect() end), R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> ok end'
    trace --json -P w @gc
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
    until_true 30 collects
    trace_end
    assert_success
    # These collections would crash the node if two sessions still traced them.
    on_node '[garbage_collect(P) || P <- processes()]'
}
rival_collects() { [[ $(node_eval "$NODE" '[S || {rival, _} = S <- trace:session_info(whereis(w)) -- []]') == *rival* ]]; }

# etrace looks for other sessions before it sets the flags. A registry of names pauses the first client between these
# steps.
@test "the second of two etraces that request garbage collection at the same time is refused" {
    local dir
    dir=$(node_dir "$NODE")
    printf '%s\n' '-module(registry).' '-export([whereis_name/1]).' \
        'whereis_name(_) -> C = persistent_term:get(asked), counters:add(C, 1, 1), counters:get(C, 1) =:= 1 orelse begin persistent_term:put(asking, self()), receive go -> ok end end, whereis(w).' \
        >"$dir/registry.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/registry.erl"
    on_node "{module, registry} = code:load_abs(\"$dir/registry\"), persistent_term:put(asked, counters:new(1, []))"
    live_snapshot
    etrace_start trace -n "$NODE" --json -P '{via, registry, name}' @gc
    asking() { [[ $(node_eval "$NODE" 'persistent_term:get(asking, none)') != none ]]; }
    until_true 30 asking
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -P w @gc
    on_node 'persistent_term:get(asking) ! go'
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
    until_true 30 collects
    assert_failure 3
    assert_line 'etrace: another session traces garbage collection on the node, and two such sessions would crash it'
    trace_end
    assert_success
    assert_account any
    # A client that is refused frees the name for the next one.
    run "$ETRACE_BIN" -n "$NODE" -P w @gc work:nobody/0
    assert_failure
    trace --json -P w @gc
    trace_end
    assert_success
    on_node 'persistent_term:erase(asked), persistent_term:erase(asking), code:purge(registry), code:delete(registry), code:purge(registry)'
    live_snapshot
}

# Makes a module with one function, f/1, that returns VALUE with its argument, and optionally an on_load function.
module() { # NAME VALUE [ON_LOAD RESULT]
    local load='' attribute=''
    [[ $# -lt 3 ]] || {
        attribute=', {attribute, 1, on_load, {begin_, 0}}'
        load=", {function, 1, begin_, 0, [{clause, 1, [], [], [{atom, 1, $3}]}]}"
    }
    echo "{ok, _, Bin} = compile:forms([{attribute, 1, module, $1}, {attribute, 1, export, [{f, 1}]}$attribute,
        {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{tuple, 1, [{integer, 1, $2}, {var, 1, 'X'}]}]}]}$load])"
}

rearmed() { [[ $(grep -c 'rearmed fresh' "$ERR") -ge $1 ]]; }

@test "a traced module that is loaded, purged and deleted a hundred times is armed in the end" {
    on_node "$(module fresh 1), {module, fresh} = code:load_binary(fresh, \"\", Bin), persistent_term:put(fresh, Bin)"
    loaded=$(node_snapshot "$NODE")
    trace --json 'fresh:f/1 -> return'
    on_node 'work:ask(w, fun() -> fresh:f(before) end)'
    for ((i = 0; i < ${ETRACE_ALL:+1}1; i++)); do
        on_node "Bin = persistent_term:get(fresh), Load = fun() -> code:purge(fresh), {module, fresh} = code:load_binary(fresh, \"\", Bin) end,
            [case N rem 4 of 0 -> Load(), Load(); 1 -> code:purge(fresh), code:delete(fresh), code:purge(fresh); 2 -> Load(), catch fresh:f(N); 3 -> Load(), receive after 20 -> ok end end
                || N <- lists:seq(1, 100)], Load()"
    done
    until_true 30 eval 'rearmed 1'
    heard() { on_node 'work:ask(w, fun() -> fresh:f(behind) end)'; grep -q '"{1,behind}"' "$OUT"; }
    until_true 30 heard
    trace_end
    assert_success
    assert_account any
    # etrace does not purge the old version of a module.
    on_node "code:purge(fresh)"
    assert_clean "$loaded" "$NODE"
    on_node 'persistent_term:erase(fresh)'
    # The compiler's atoms and memory are not etrace's, hence the new snapshot.
    on_node 'code:purge(fresh), code:delete(fresh), code:purge(fresh)'
    live_snapshot
}

@test "etrace reports code that fails to load or disappears, and traces it again when it returns" {
    on_node "$(module sour 1), {module, sour} = code:load_binary(sour, \"\", Bin), persistent_term:put(sour, Bin)"
    trace --json --allow-empty 'sour:f/1 -> return' 'bitter:f/1'
    # The on_load function of the new version fails.
    on_node "$(module sour 2 refused), {error, on_load_failure} = code:load_binary(sour, \"\", Bin)"
    on_node "$(module bitter 2 refused), {error, on_load_failure} = code:load_binary(bitter, \"\", Bin)"
    said() { grep -q -e 'gone sour' -e 'rearmed sour' "$ERR"; }
    still() { on_node 'work:ask(w, fun() -> catch sour:f(still) end)'; grep -q '"{1,still}"' "$OUT"; }
    until_true 30 eval 'said || still' || fail "etrace neither traced nor reported the module: $(<"$ERR")"
    on_node 'code:purge(sour), code:delete(sour), code:purge(sour)'
    until_true 30 grep -q 'gone sour' "$ERR"
    on_node '{module, sour} = code:load_binary(sour, "", persistent_term:get(sour))'
    until_true 30 grep -q 'rearmed sour' "$ERR"
    again() { on_node 'work:ask(w, fun() -> sour:f(again) end)'; grep -q '"{1,again}"' "$OUT"; }
    until_true 30 again
    trace_end
    assert_success
    assert_account any
    on_node 'persistent_term:erase(sour), code:purge(sour), code:delete(sour), code:purge(sour)'
    live_snapshot
}

@test "etrace reports each of 400 modules that are loaded at once, or counts it as omitted" {
    # With names of the maximum length, few modules exceed the room for notices.
    on_node "{ok, _, Bin} = compile:forms([{attribute, 1, module, list_to_atom(lists:duplicate(255, \$x))}, {attribute, 1, export, [{crowd, 0}]},
            {function, 1, crowd, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}]),
        persistent_term:put(crowd, [{list_to_atom(Name), binary:replace(Bin, list_to_binary(lists:duplicate(255, \$x)), list_to_binary(Name))}
            || N <- lists:seq(1000, 1399), Name <- [lists:duplicate(251, \$c) ++ integer_to_list(N)]])"
    live_snapshot
    trace --json --allow-empty 'c*:crowd/0'
    # The worker is suspended meanwhile, so one self-check finds all modules.
    on_node 'Worker = control:worker_hold(),
        [{module, M} = code:load_binary(M, "", Bin) || {M, Bin} <- persistent_term:get(crowd)],
        erlang:resume_process(Worker)'
    until_true 30 crowd_said
    trace_end
    assert_success
    assert_account any
    assert_equal "$(($(json_of rearmed .info | wc -l) + $(json_of notice 'select(.tag == "omitted").info')))" 400
    on_node '[begin code:purge(M), code:delete(M), code:purge(M) end || {M, _} <- persistent_term:get(crowd)], persistent_term:erase(crowd)'
    live_snapshot
}
crowd_said() { grep -q omitted "$ERR"; }

@test "memory stays flat over many traces that end in every way" {
    "$ETRACE_BIN" -n "$NODE" -qq --for 20ms 'work:one/1 -> return' 'send(_, _)' >/dev/null
    blocks='{ok, {_, _, All}} = instrument:allocations(),
        lists:sum([lists:sum(tuple_to_list(H)) || {Who, Types} <- maps:to_list(All), lists:prefix("etrace", atom_to_list(Who)), {_, H} <- maps:to_list(Types)])'
    on_node "$blocks"
    companion='[M] = control:companion_modules()'
    ends=("code:purge(M), code:delete(M), code:purge(M)" "exit(whereis(M), kill)" "[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]"
        "exit(element(2, hd(element(2, process_info(whereis(M), monitors)))), kill)" "ok")
    used=$(node_eval "$NODE" '[garbage_collect(P) || P <- processes()], erlang:memory(total)')
    live_snapshot
    for ((i = 0; i < ${ETRACE_ALL:+2}15; i++)); do
        trace 'work:one/1 -> return' 'send(_, _)'
        on_node "$companion, ${ends[i % 5]}" || true
        case $((i % 3)) in
            0) child_kill "$TRACER" ;;
            1) trace_end ;;
            2) trace_end TERM ;;
        esac
        # The next trace starts only after this one is gone, because the test expects a single companion.
        assert_clean "$BEFORE" "$NODE"
    done
    assert_equal "$(node_eval "$NODE" "$blocks")" 0
    until_true 30 flat || fail "the memory has grown by $grown bytes"
}
flat() {
    grown=$(node_eval "$NODE" "[garbage_collect(P) || P <- processes()], erlang:memory(total) - $used")
    [[ $grown -lt 2097152 ]]
}
