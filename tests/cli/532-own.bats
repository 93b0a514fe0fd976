#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# No client sees events of etrace's own processes, or of those of other clients; otherwise two clients that trace
# messages would trace each other's messages without end. The suite also kills these processes during a trace.

load ../lib/assert
load ../lib/live

setup_file() { live_begin own; }
teardown_file() { live_end; }
setup() {
    live_setup
    marks=0
}
teardown() { live_teardown_all; }

# w sends itself a message that has not been sent before.
mark() {
    marks=$((marks + 1))
    on_node "work:ask(w, fun() -> self() ! {mark, $marks}, receive {mark, $marks} -> ok end end)"
}

has_mark() { grep -qF "{mark,$2}" "$1"; }

# Waits for two marks without a message of etrace between them.
quiet() { # FILE
    mark
    until_true 30 has_mark "$1" "$marks" || fail 'the trace does not show the mark'
    mark
    until_true 30 has_mark "$1" "$marks" || fail 'the trace does not show the mark'
    jq -r --arg from "{mark,$((marks - 1))}" --arg to "{mark,$marks}" 'select(.type == "send") | if .msg == $from then "from" elif .msg == $to then "to" else .name // "" end' "$1" |
        awk '/^from$/ { on = 1; next } /^to$/ { exit !on || seen } on && /^etrace_/ { seen = 1 }'
}

# Kills the processes with these functions in turn, TIMES over; each kill waits for the replacement.
killed() { # TIMES FUNCTION...
    local times=$1 function
    shift
    for function; do
        on_node "F = fun F() -> case control:companion($function) of [P] -> P; _ -> receive after 5 -> F() end end end,
            G = fun G(P) -> case F() of P -> receive after 5 -> G(P) end; _ -> ok end end,
            [begin P = F(), exit(P, kill), G(P) end || _ <- lists:seq(1, $times)]"
    done
}

@test "two clients that trace every message never see each other's messages" {
    trace --json --rate 0 'send(_, _)'
    local first=$TRACER all=$OUT mine
    mine=$(node_eval "$NODE" '[M] = control:companion_modules(), M')
    OUT=$BATS_TEST_TMPDIR/second ERR=$BATS_TEST_TMPDIR/second.err
    for _ in {1..18}; do
        trace --json --rate 0 'send(_, _)'
        mark
        trace_end
        assert_success
    done
    trace --json --rate 0 'send(_, _)'
    until_true 30 quiet "$OUT"
    until_true 30 quiet "$all"
    trace_end
    assert_success
    assert_account any
    OUT=$all ERR=$BATS_TEST_TMPDIR/err TRACER=$first
    trace_end
    assert_success
    assert_account any
    # No event of its own process was shown at any time.
    run jq -r --arg mine "$mine" 'select(.type == "send" and (.name // "" | startswith($mine))) | .name' "$OUT"
    assert_output ''
}

@test "a client without the NIF and another one never see each other's messages" {
    trace --json --fallback 'send(_, _)'
    local first=$TRACER all=$OUT
    OUT=$BATS_TEST_TMPDIR/second ERR=$BATS_TEST_TMPDIR/second.err
    trace --json 'send(_, _)'
    until_true 30 quiet "$OUT"
    until_true 30 quiet "$all"
    trace_end
    assert_success
    OUT=$all ERR=$BATS_TEST_TMPDIR/err TRACER=$first
    trace_end
    assert_success
}

@test "the processes that replace killed ones of the companion are not traced either" {
    trace --json --rate 0 'send(_, _)' work:one/1
    killed 18 worker names warden
    # Wait until the last replacement has answered its requests.
    checks() { on_node "[P] = control:companion(worker), {_, 0} = process_info(P, message_queue_len), {_, R} = process_info(P, reductions), R > 3000 orelse error(early)" 2>/dev/null; }
    until_true 30 checks || fail 'the worker did not run'
    until_true 30 quiet "$OUT"
    trace_end
    assert_success
    assert_account any
    run jq -r 'select(.type == "send" and (.name // "" | startswith("etrace_"))) | .name' "$OUT"
    assert_output ''
}

@test "a self-check that fails is reported once, and the next one works" {
    local dir
    dir=$(node_dir "$NODE")
    printf -- '-module(fresh).\n-export([f/1]).\nf(X) -> X.\n' >"$dir/fresh.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/fresh.erl"
    on_node "code:add_path(\"$dir\"), code:load_file(fresh)"
    trace --json fresh:f/1
    # Suspend the worker, wait until the next self-check is queued, and kill it.
    on_node "W = control:worker_hold(),
        G = fun G() -> case process_info(W, message_queue_len) of {_, 0} -> receive after 5 -> G() end; _ -> ok end end, G(), exit(W, kill)"
    until_true 30 grep -q 'the self-check failed (killed): until it works again' "$ERR" || fail "etrace printed no message: $(<"$ERR")"
    on_node 'code:purge(fresh), code:load_file(fresh)'
    until_true 30 grep -q 'rearmed fresh' "$ERR" || fail "etrace did not arm the module again: $(<"$ERR")"
    on_node 'fresh:f(a)'
    trace_end
    assert_success
    assert_equal "$(json_of call '.args[0]')" a
    assert_equal "$(json_of notice '"\(.tag) \(.info)"')" 'unchecked killed'
    on_node "code:purge(fresh), code:delete(fresh), code:purge(fresh), code:del_path(\"$dir\")"
    live_snapshot
}

@test "etrace reports at the end which modules changed after the last self-check" {
    local dir module
    dir=$(node_dir "$NODE")
    for module in stays fresh away; do
        printf -- '-module(%s).\n-export([f/1]).\nf(X) -> X.\n' $module >"$dir/$module.erl"
        "$ETRACE_ERLC" -o "$dir" "$dir/$module.erl"
    done
    on_node "code:add_path(\"$dir\"), [code:load_file(M) || M <- [stays, fresh, away]]"
    trace --json stays:f/1 fresh:f/1 away:f/1
    # Suspend the worker from before the next self-check until the owner has ended.
    on_node "[W] = control:companion(worker), [O] = control:companion(owner), spawn(fun() -> Ref = monitor(process, O), control:worker_hold(),
        register(holder, self()), receive {_, Ref, _, _, _} -> ok end end),
        F = fun F() -> whereis(holder) =/= undefined orelse receive after 5 -> F() end end, F(),
        G = fun G() -> case process_info(W, [message_queue_len, current_function]) of
            [{_, 0}, {_, {_, _, 1}}] -> receive after 5 -> G() end; _ -> ok end end, G(),
        code:purge(fresh), code:load_file(fresh), code:purge(away), code:delete(away), code:purge(away)"
    trace_end
    assert_success
    assert_equal "$(json_of notice '"\(.tag) \(.info)"' | sort)" $'blind fresh\ngone away'
    assert_regex "$talk" 'etrace: blind fresh'
    on_node "[begin code:purge(M), code:delete(M), code:purge(M) end || M <- [stays, fresh]], code:del_path(\"$dir\")"
    live_snapshot
}

@test "a module that cannot be armed again is reported once and does not affect the others" {
    local dir=$BATS_TEST_TMPDIR
    printf -- '-module(good).\n-export([f/1]).\nf(X) -> X.\n' >"$dir/good.erl"
    printf -- '-module(bad).\n-export([f/2]).\nf(X, _) -> X.\n' >"$dir/bad.erl"
    printf -- '-module(less).\n-export([f/1]).\nf(X) -> X.\n' >"$dir/less.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/good.erl" "$dir/bad.erl" "$dir/less.erl"
    # The match specification for functions of two arguments is invalid; only `bad`, which is loaded later, has such a
    # function.
    live_attempt <<'END'
begun() ->
    M = etrace_00000000_0,
    {_, Weak} = Session = trace:session_create(attempt, self(), []),
    code:load_file(good),
    code:load_file(less),
    Probe = #{id => 1, type => call, scope => local, atoms => [],
        select => [{{name, <<"good">>}, {name, <<"f">>}, 1, 1}, {{name, <<"less">>}, {name, <<"f">>}, 1, 1}, {any, {name, <<"f">>}, 2, 2}],
        match_spec => {arity, #{1 => term_to_binary(true), 2 => term_to_binary([{['_', '_'], [{nonsense}], []}])}}},
    Boot = {self(), [], fallback, #{}},
    {ok, Armed, _} = M:arm_do({Weak, #{probes => [Probe], procs => [], flags => [call], force => true}, all, Boot, none}),
    {ok, Same, []} = M:check_do({Weak, Armed, Boot}),
    code:load_file(bad),
    code:purge(good), code:load_file(good),
    {ok, less, Less} = compile:forms([{attribute, 1, module, less}]),
    code:purge(less), code:load_binary(less, "", Less),
    {ok, Other, Said} = M:check_do({Weak, Same, Boot}),
    {ok, _, Later} = M:check_do({Weak, Other, Boot}),
    io:format("~p ~p ~p~n", [lists:sort(Said), Later, trace:info(Weak, {good, f, 1}, traced)]),
    trace:session_destroy(Session),
    halt().
END
    assert_success
    assert_output '[{rearmed,good},{unarmed,bad},{unarmed,less}] [] {traced,local}'
}

@test "code that is loaded while its module is armed again is armed, too" {
    # With one scheduler, each process runs whenever the other one waits for it.
    live_attempt +S 1:1 <<'END'
begun() ->
    {_, Weak} = Session = trace:session_create(attempt, self(), []),
    Names = [list_to_atom([$f | integer_to_list(N)]) || N <- lists:seq(40, 10, -1)], % of which the first atom has the last name
    ok = erlang:finish_loading([code(half, Names)]),
    Probe = #{id => 1, type => call, scope => local, atoms => [], match_spec => {any, term_to_binary(true)},
        select => [{{name, <<"half">>}, any, 0, 255}, {any, {name, <<"new">>}, 0, 0}]},
    Boot = {self(), [], fallback, #{}},
    {ok, Armed, _} = in_worker(arm_do, {Weak, #{probes => [Probe], flags => [call], force => true}, all, Boot, none}, fun() -> ok end),
    trace:process(Session, all, true, [call]), % as the owner does then
    Untraced = fun(M, Functions) -> [F || F <- Functions, trace:info(Weak, {M, F, 0}, traced) =/= {traced, local}] end,
    %% A version comes, and another one as soon as some of its functions have been set.
    During = fun(Before, Next) ->
        reload([code(half, Names)]),
        Some = fun Some() ->
            case length(Untraced(half, Names)) < length(Names) of
                true -> reload(Next);
                false -> erlang:yield(), Some()
            end
        end,
        {ok, After, Said} = in_worker(check_do, {Weak, Before, Boot}, Some),
        {ok, Last, Later} = in_worker(check_do, {Weak, After, Boot}, fun() -> ok end),
        {Last, lists:sort(Said ++ Later)}
    end,
    {Again, Said1} = During(Armed, [code(half, Names)]),
    io:format("~p ~p~n", [Said1, Untraced(half, Names)]),
    {_, Said2} = During(Again, [code(half, Names ++ [new]), code(late, [new])]),
    io:format("~p ~p~n", [Said2, Untraced(half, Names ++ [new]) ++ Untraced(late, [new])]),
    trace:session_destroy(Session),
    halt().
%% Each goes on where the one before has ended.
in_worker(Function, Argument, Meanwhile) ->
    Had = get(function),
    {_, Ref} = spawn_monitor(fun() -> put(function, Had), exit({etrace_00000000_0:Function(Argument), get(function)}) end),
    Meanwhile(),
    receive {'DOWN', Ref, _, _, {Result, Has}} -> put(function, Has), Result end.
reload(Prepared) ->
    ok = erlang:finish_loading(Prepared),
    erlang:purge_module(half).
code(Module, Functions) ->
    {ok, Module, Bin} = compile:forms([{attribute, 1, module, Module}, {attribute, 1, export, [{F, 0} || F <- Functions]}] ++
        [{function, 1, F, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]} || F <- Functions]),
    erlang:prepare_loading(Module, Bin).
END
    assert_success
    assert_output $'[{rearmed,half},{rearmed,half}] []\n[{rearmed,half},{rearmed,half},{rearmed,late}] []'
}

@test "figures keep their counts when code is loaded again before a read by another key" {
    live_attempt <<'END'
begun() ->
    {_, Weak} = Session = trace:session_create(attempt, self(), []),
    {ok, fresh, Bin} = compile:forms([{attribute, 1, module, fresh}, {attribute, 1, export, [{f, 0}]},
        {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}]),
    Load = fun() -> ok = erlang:finish_loading([erlang:prepare_loading(fresh, Bin)]) end,
    Load(),
    Probe = #{id => 1, type => call, scope => local, atoms => [], match_spec => {any, term_to_binary(true)},
        select => [{{name, <<"fresh">>}, any, 0, 255}]},
    Ask = fun(What) -> {ok, Answer} = etrace_00000000_0:ask_do({Weak, What, [], #{}}), Answer end,
    Ask({count, [call_count, call_time], {arm, #{probes => [Probe], flags => [call], force => true}}}),
    trace:process(Session, self(), true, [call]),
    [fresh:f() || _ <- lists:seq(1, 20)],
    Calls = fun(By) -> #{total := {_, N, _, _}, anew := Anew} = Ask({read, By, calls, 10, false}), {N, Anew} end,
    io:format("~p ", [[Calls(By) || By <- [function, process, function]]]),
    Load(),
    Calls(process),
    io:format("~p~n", [Calls(function)]),
    trace:session_destroy(Session),
    halt().
END
    assert_success
    assert_output '[{20,0},{20,0},{20,0}] {20,1}'
}
