#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Rare actions on a node while it is traced: suspended processes of the tracer, counters that are removed, names of
# the maximum length.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin strange; }
teardown_file() { live_end; }
setup() {
    live_setup
    COMMAND=trace
}
teardown() { live_teardown; }

own='[S] = [S || {etrace, _} = S <- trace:session_info(all)]'

# code_is MODULE FORM...: loads a module with these functions, all exported.
code_is() {
    local dir
    dir=$(node_dir "$NODE")
    printf '%s\n' "-module($1)." '-compile([export_all, nowarn_export_all]).' "${@:2}" >"$dir/$1.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/$1.erl"
    on_node "code:purge($1), {module, $1} = code:load_abs(\"$dir/$1\")"
}
code_gone() { on_node "code:purge($1), code:delete($1), code:purge($1)"; }
is_held() { [[ $(node_eval "$NODE" 'is_pid(whereis(held))') == true ]]; }

@test "a node that ends during arming ends the trace with a summary and keeps the old output file" {
    local call file=$BATS_TEST_TMPDIR/kept.json
    # The first lookup is part of the client's question, the second is part of arming.
    for call in 1 2; do
        node_start held
        code_is registry "whereis_name(_) -> C = persistent_term:get(asked), counters:add(C, 1, 1), case counters:get(C, 1) of $call -> held(); _ -> whereis(w) end." \
            'held() -> register(held, self()), receive never -> ok end.'
        on_node 'work:worker(w), persistent_term:put(asked, counters:new(1, []))'
        echo kept >"$file"
        etrace_start trace -n "$NODE" --json -o "$file" -P '{via, registry, name}' work:one/1
        until_true 60 is_held
        [[ $call == 1 ]] || until_true 20 grep -q ' · OTP ' "$ERR"
        node_stop "$NODE"
        trace_wait
        [[ $status -eq 1 || $status -eq 3 ]] || fail "status $status: $talk"
        assert_regex "$(jq -r .type "$OUT" | paste -sd ' ')" '^attached( node_down)? summary$'
        assert_equal "$(json_of summary .complete)" false
        assert_equal "$(<"$file")" kept
    done
}

@test "etrace reports slow arming, and Ctrl-C ends it at once" {
    # A registry of names, which the arming process calls twice: the first lookup answers, the second one never does.
    code_is registry 'whereis_name(_) -> C = persistent_term:get(asked), counters:add(C, 1, 1), case counters:get(C, 1) of 1 -> whereis(w); _ -> held() end.' \
        'held() -> receive never -> ok end.'
    on_node 'persistent_term:put(asked, counters:new(1, []))'
    live_snapshot
    etrace_start trace -n "$NODE" -P '{via, registry, name}' work:one/1
    said() { grep -q 'has been arming' "$ERR" 2>/dev/null || gone "$TRACER"; }
    until_true 60 said
    trace_end
    assert_success
    assert_regex "$talk" "etrace: $NODE has been arming for 5 seconds; Ctrl-C cancels"
    assert_clean --atoms 300 "$BEFORE" "$NODE"
    on_node 'persistent_term:erase(asked)'
    code_gone registry
    live_snapshot
}

@test "events of meta probes during arming are also in the files of -o" {
    local file=$BATS_TEST_TMPDIR/new.json old=$BATS_TEST_TMPDIR/old.json
    code_is registry 'whereis_name(_) -> C = persistent_term:get(asked), counters:add(C, 1, 1), case counters:get(C, 1) of 1 -> whereis(w); _ -> held() end.' \
        'held() -> register(held, self()), receive never -> ok end.'
    on_node 'persistent_term:put(asked, counters:new(1, []))'
    echo kept >"$old"
    etrace_start trace -n "$NODE" --json -o "$file" -o "$old" -P '{via, registry, name}' 'meta work:one/1' work:two/2
    until_true 60 is_held
    assert_equal "$(<"$old")" kept
    on_node 'work:loop(20)'
    until_true 30 grep -q '"type":"call"' "$OUT"
    trace_end
    assert_success
    assert_account 20
    assert_equal "$(<"$file")" "$(<"$OUT")"
    assert_equal "$(<"$old")" "$(<"$OUT")"
    on_node 'persistent_term:erase(asked)'
    code_gone registry
    live_snapshot
}

@test "etrace reports that its worker is suspended, and checks everything when it continues" {
    code_is fresh 'f(X) -> X.'
    trace --json fresh:f/1
    on_node '[W] = control:companion(worker),
        Self = self(), spawn(fun() -> register(suspender, self()), erlang:suspend_process(W), Self ! done, receive never -> ok end end), receive done -> ok end'
    until_true 60 grep -q '^etrace: the self-check failed (timeout): until it works again, reloaded modules are not traced' "$ERR"
    code_is fresh 'f(X) -> {X}.'
    on_node 'R = monitor(process, suspender), exit(whereis(suspender), kill), receive {_, R, _, _, _} -> ok end'
    until_true 30 grep -q 'rearmed fresh' "$ERR"
    on_node 'fresh:f(a)'
    trace_end
    assert_success
    assert_equal "$(json_of call '.args[0]')" a
    assert_equal "$(json_of notice '"\(.tag) \(.info)"')" 'unchecked timeout'
    code_gone fresh
    live_snapshot
}

calls_of() { jq -r "select(.type == \"count\" and .f == \"$1\") | .calls" "$OUT" | tail -n 1; }
counted() { node_eval "$NODE" "$own, $(printf '[{_, true} = {%s, is_integer(element(2, trace:info(S, {fresh, %s, 1}, call_count)))}]' "$1" "$1")"; }

@test "top counts new functions of a new module version and keeps the counts of removed ones" {
    COMMAND=top
    code_is fresh 'f(X) -> X.' 'g(X) -> X.'
    trace 'fresh:_' --interval 1s --json --sort calls
    on_node 'fresh:f(1), fresh:g(1), fresh:g(2)'
    # The last count is the one that was read before the code was removed.
    known() { [[ $(calls_of "$1") == "$2" ]]; }
    until_true 30 known g 2
    until_true 30 known f 1
    code_is fresh 'f(X) -> X.' 'h(X) -> X.'
    until_true 30 counted h
    on_node 'fresh:f(2), [fresh:h(X) || X <- [1, 2, 3]]'
    until_true 30 known f 2
    until_true 30 known h 3
    # The new version has none of the previous functions.
    code_is fresh 'i(X) -> X.'
    until_true 30 counted i
    on_node '[fresh:i(X) || X <- [1, 2, 3, 4]]'
    until_true 30 known i 4
    code_gone fresh
    forgotten() { [[ $(tail -n 1 "$OUT" | jq .functions) == 0 ]]; }
    until_true 30 forgotten
    code_is fresh 'f(X) -> X.'
    until_true 30 counted f
    on_node 'fresh:f(3)'
    trace_end
    assert_success
    assert_equal "$(calls_of f) $(calls_of g) $(calls_of h) $(calls_of i)" '3 2 3 4'
    code_gone fresh
    live_snapshot
}

@test "counts survive versions without the function and a version that is loaded during a read" {
    live_attempt <<'END'
begun() ->
    M = etrace_00000000_0,
    {_, Weak} = Session = trace:session_create(attempt, self(), []),
    code_is([f, g]),
    Probe = #{id => 1, type => call, scope => local, atoms => [], match_spec => {any, term_to_binary(true)},
        select => [{{name, <<"fresh">>}, {name, Name}, 1, 1} || Name <- [<<"f">>, <<"g">>]]},
    Read = fun() ->
        {ok, #{rows := Rows, functions := N}} = M:count_read(function, calls, 100, false, {[], #{}}),
        io:format("~p ~w~n", [N, lists:sort([{binary_to_atom(F), Calls} || {_, F, _, Calls, _, _, _} <- Rows])])
    end,
    {ok, _} = M:answer_to({Weak, {count, [call_count], {arm, #{probes => [Probe], flags => [], force => true}}}, [], #{}}),
    [fresh:f(X) || X <- [1, 2, 3]],
    {Called, C1} = M:count_called(get(count)),
    C2 = M:count_items(infinity, calls, 100, M:count_due(Called, true, false, C1)),
    code_is([f, g]),
    {_, C3} = M:count_called(C2),
    put(count, M:count_anew(C3)),
    [fresh:f(X) || X <- [1, 2]], fresh:g(1),
    Read(),
    %% Neither of them, which is known for a while; then one, and another one, and none.
    code_is([h]), Read(), Read(), Read(),
    code_is([f]), Read(), fresh:f(1), Read(),
    code_is([g]), Read(), Read(), fresh:g(1), Read(),
    code:purge(fresh), code:delete(fresh), Read(), Read(),
    code_is([f, g]), Read(), fresh:f(1), fresh:g(1), Read(),
    trace:session_destroy(Session),
    halt().
code_is(Functions) ->
    code:purge(fresh),
    {ok, fresh, Code} = compile:forms([{attribute, 1, module, fresh}, {attribute, 1, export, [{F, 1} || F <- Functions]} |
        [{function, 1, F, 1, [{clause, 1, [{var, 1, 'X'}], [], [{var, 1, 'X'}]}]} || F <- Functions]]),
    code:load_binary(fresh, "", Code).
END
    assert_success
    assert_output '2 [{f,5},{g,1}]
0 [{f,5},{g,1}]
0 [{f,5},{g,1}]
0 [{f,5},{g,1}]
1 [{f,5},{g,1}]
1 [{f,6},{g,1}]
1 [{f,6},{g,1}]
1 [{f,6},{g,1}]
1 [{f,6},{g,2}]
0 [{f,6},{g,2}]
0 [{f,6},{g,2}]
2 [{f,6},{g,2}]
2 [{f,7},{g,3}]'
}

@test "the longest function names are cut between two characters and marked" {
    trace --json work:one/1
    on_node 'A = list_to_atom(lists:duplicate(255, 16#1F600)), B = list_to_atom([$a | lists:duplicate(254, 16#1F600)]),
        C = list_to_atom("ab" ++ lists:duplicate(253, 16#1F600)), D = list_to_atom("abc" ++ lists:duplicate(252, 16#1F600)),
        [work:one(fun M:one/1) || M <- [A, B, C, D]]'
    trace_end
    assert_success
    assert_account 4
    assert_equal "$(json_of call '.args[0] | endswith("\ud83d\ude00...") | tostring')" $'true\ntrue\ntrue\ntrue'
    assert_equal "$(json_of summary .truncated)" 4
}

@test "a node at its process limit unloads the companion once it has room again" {
    live_own full +P 1024
    trace --json work:one/1
    # A process that exits frees a place, and the filler takes it at once, until the removal of the code has begun.
    on_node 'Fill = fun F(L) -> try F([spawn(fun() -> receive never -> ok end end) | L]) catch error:system_limit -> L end end,
        [M] = control:companion_modules(),
        First = Fill([]), exit(whereis(M), kill),
        Filler = fun F(L, 0) -> [exit(P, kill) || P <- L]; F(L, N) -> F(Fill(L), case erlang:module_loaded(M) of true -> N; false -> N - 1 end) end,
        Filler(First, 200)'
    trace_wait
    assert_failure 1
    until_true 60 nobody_there || fail "the node is not clean: $(node_eval "$NODE" 'control:near()')"
}
