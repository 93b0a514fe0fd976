%% SPDX-License-Identifier: Apache-2.0
%% Estimates the cost of a trace before anything is traced. Runs in the worker.
%%
%% Dangerous functions are functions that tracing itself uses. A wildcard selects them only if the request is forced. A
%% probe that names a dangerous function gets it with a warning. Hot functions are functions that a busy node calls all
%% the time. If a wildcard selects hot functions, the trace gets a budget (tracer_budget.hrl).

-define(MANY, 1000). % a wildcard that selects at least so many functions counts as hot

%% Returns the answer that arming would give, and why a probe matches no function.
select_do({Session, Request, Tracer}) ->
    Wanted = {_, #{tokens := Tokens}} = wanted(Request),
    {Found, Warnings} = chosen(Session, Request, Wanted, all),
    {Whom = {Processes, Ports}, Unknown} = whom_of(Request),
    whom_passes(Request, Whom), % here, because a failed arming destroys the session, which waits for a NIF
    Counted = #{probes := Probes} = counted(Found),
    {ok, Counted#{probes := [maps:merge(C, missing(P, Fs)) || {C, {P, Fs}} <- lists:zip(Probes, Found)],
        processes => how_many(maps:get(flags, Request), Processes, process_count),
        ports => how_many(maps:get(port_flags, Request, []), Ports, port_count), warning => no_budget(Request, Tracer) ++ Unknown ++ Warnings ++ tokens_met(Tokens)}}.

no_budget(#{overhead := Limit}, fallback) when Limit > 0 -> [<<"--overhead has no effect without the NIF">>];
no_budget(_, _) -> [].

%% If a probe matches no function, returns the reason. Called when that is not an error.
missing(Probe = #{type := call, select := Selectors, scope := Scope}, []) ->
    try lists:foreach(fun(S) -> select(S, Scope) end, Selectors), none(Probe)
    catch throw:Reason -> #{missing => Reason}
    end;
missing(_, _) -> #{}.

how_many([], _, _) -> 0;
how_many(_, Whom, Count) ->
    lists:sum([case W of new -> 0; _ when is_atom(W) -> erlang:system_info(Count); _ -> 1 end || W <- Whom]).

%% Returns the hot functions that wildcards select. Returns none if the request names single processes, because then no
%% other process bears the cost.
hot(Read, Found, Request) ->
    Single = lists:all(fun({Who, _}) -> Who =/= application; (_) -> false end, maps:get(procs, Request, [all])),
    Wild = [{Scope, S} || #{type := call, scope := Scope, select := Selectors} <- Read, S <- Selectors, wild(S)],
    case Single orelse Wild =:= [] of
        true -> [];
        false ->
            Functions = [MFA || {_, Functions} <- Found, {MFA, _} <- Functions],
            Hot = maps:from_keys([M || M <- lists:usort([M || {M, _, _} <- Functions]), is_hot(atom_to_binary(M))], true),
            case length(Functions) >= ?MANY orelse map_size(Hot) > 0 of
                false -> [];
                true ->
                    Taken = lists:usort(lists:flatmap(fun({Scope, S}) -> element(1, taken(S, Scope, Request)) end, Wild)),
                    case length(Taken) >= ?MANY of
                        true -> Taken;
                        false -> [MFA || MFA = {M, F, _} <- Taken, is_map_key(M, Hot), not is_callback(atom_to_binary(F))]
                    end
            end
    end.

is_hot(Name) -> is_dangerous(Name) orelse lists:member(Name, [<<"atomics">>, <<"binary">>, <<"code">>, <<"counters">>, <<"dist_util">>,
    <<"erl_internal">>, <<"erlang">>, <<"error_handler">>, <<"ets">>, <<"gen">>, <<"gen_event">>, <<"gen_server">>, <<"gen_statem">>,
    <<"gen_tcp">>, <<"gen_udp">>, <<"inet">>, <<"inet_tcp">>, <<"inet_tcp_dist">>, <<"init">>, <<"io_lib">>, <<"lists">>, <<"logger">>,
    <<"maps">>, <<"net_kernel">>, <<"persistent_term">>, <<"proc_lib">>, <<"proplists">>, <<"queue">>, <<"re">>, <<"socket">>, <<"sys">>,
    <<"timer">>, <<"unicode">>, <<"Elixir.Access">>, <<"Elixir.Enum">>, <<"Elixir.Keyword">>, <<"Elixir.Map">>, <<"Elixir.String">>]).

%% Returns true for callbacks of behaviours. Many modules have such functions, but they are not hot: _:handle_call/3
%% needs no budget.
is_callback(Name) -> lists:member(Name, [<<"code_change">>, <<"format_status">>, <<"handle_call">>, <<"handle_cast">>,
    <<"handle_continue">>, <<"handle_event">>, <<"handle_info">>, <<"init">>, <<"start_link">>, <<"terminate">>]).

is_dangerous(<<"code_server">>) -> true;
is_dangerous(<<"erl_tracer">>) -> true;
is_dangerous(<<"erts_code_purger">>) -> true; % it unloads companions; tracing it would delay the next trace
is_dangerous(<<"erts_literal_area_collector">>) -> true;
is_dangerous(<<"erts_internal">>) -> true;
is_dangerous(<<"trace">>) -> true;
is_dangerous(Name) -> string:prefix(Name, <<"prim_">>) =/= nomatch.

wild({{name, _}, {name, _}, _, _}) -> false;
wild(_) -> true.

%% Returns {functions that the selector selects, dangerous functions that it leaves out}.
taken(Selector, Scope, Request) ->
    All = select(Selector, Scope),
    case maps:get(force, Request, false) orelse not wild(Selector) of
        true -> {All, []};
        false -> lists:partition(fun(MFA) -> not denied(MFA, Selector) end, All)
    end.

denied(_, {{name, _}, {name, _}, _, _}) -> false;
denied({erlang, F, _}, {_, Function, _, _}) when not is_tuple(Function); element(1, Function) =/= name ->
    lists:prefix("trace", atom_to_list(F));
denied(_, {{name, _}, _, _, _}) -> false;
denied({M, _, _}, _) -> is_dangerous(atom_to_binary(M)).

%% Returns warnings about dangerous functions that are left out, and about those that are traced.
dangers(Left, Found) ->
    Taken = lists:usort([Name || {_, Functions} <- Found, {{M, _, _}, _} <- Functions, Name <- [atom_to_binary(M)], is_dangerous(Name)]),
    [<<"etrace itself depends on ", (some(Taken))/binary>> || Taken =/= []] ++
        [<<"left out, because etrace itself depends on them: ", (integer_to_binary(length(Left)))/binary, " of ",
            (some(lists:usort([atom_to_binary(M) || {M, _, _} <- Left])))/binary, " (--force selects them)">> || Left =/= []].

some(Names) ->
    iolist_to_binary(lists:join(<<", ">>, lists:sublist(Names, 5) ++ [<<"...">> || length(Names) > 5])).
