%% SPDX-License-Identifier: Apache-2.0
%% Finds the processes and ports that -P and --port-id select: [Pid | Port | all | existing | new]. Runs in the worker,
%% because asking every process or a registry of the user may take long.

whom(Whos) -> lists:usort(lists:flatmap(fun who/1, Whos)).

who(Who) when Who =:= all; Who =:= existing; Who =:= new -> [Who];
who({pid, Text}) ->
    P = try list_to_pid(binary_to_list(Text)) catch error:_ -> throw({noproc, Text}) end,
    node(P) =:= node() andalso is_process_alive(P) orelse throw({noproc, Text}),
    [P];
who({name, Text}) ->
    case [W || A <- existing([Text]), W <- [whereis(A)], is_pid(W)] of
        [] -> throw({noproc, Text, near(Text, [atom_to_binary(N) || N <- registered()])});
        Found -> Found
    end;
who({via, Module, Name, Text}) ->
    M = module(Module),
    erlang:function_exported(M, whereis_name, 1) orelse throw({no_registry, Module}),
    Known = try binary_to_term(Name, [safe]) catch error:_ -> throw({noproc, Text, []}) end,
    case try M:whereis_name(Known) catch _:_ -> throw({no_registry, Module}) end of
        P when is_pid(P), node(P) =:= node() -> [P];
        P when is_pid(P) -> throw({elsewhere, Text, atom_to_binary(node(P))});
        _ -> throw({noproc, Text, []})
    end;
who({application, Text}) ->
    Masters = [M || A <- existing([Text]), M <- [application_controller:get_master(A)], is_pid(M)],
    Masters =:= [] andalso throw({no_app, Text, []}),
    [P || P <- processes(), lists:member(process_value(P, group_leader), Masters)];
who({initial, MFA, Text}) ->
    case [P || P <- processes(), initial(P) =:= MFA] of
        [] -> throw({no_initial, Text});
        Found -> Found
    end;
who({port, Text}) ->
    P = try list_to_port(binary_to_list(Text)) catch error:_ -> throw({noport, Text}) end,
    node(P) =:= node() andalso erlang:port_info(P, id) =/= undefined orelse throw({noport, Text}),
    [P];
who({driver, Text}) ->
    Named = [{P, unicode:characters_to_binary(Name)} || P <- erlang:ports(), {_, Name} <- [erlang:port_info(P, name)]],
    case [P || {P, Name} <- Named, Name =:= Text] of
        [] -> throw({no_driver, Text, near(Text, lists:usort([Name || {_, Name} <- Named]))});
        Found -> Found
    end.

%% Returns {Module, Function, Arity} of the initial call, with names as text: the node need not have the atoms of a
%% question.
initial(P) ->
    case process_ask(P, [{dictionary, '$initial_call'}, initial_call]) of
        [{_, Proc}, {_, Spawned}] -> initial(Proc, Spawned);
        undefined -> none
    end.

initial(Proc, Spawned) ->
    {M, F, A} = began(Proc, Spawned),
    {atom_to_binary(M), atom_to_binary(F), A}.

%% Returns the function that a process began with: the one that proc_lib has stored, else the one of the VM.
began({M, F, A}, Spawned) when is_list(A) -> began({M, F, length(A)}, Spawned);
began({M, F, A}, _) when is_atom(M), is_atom(F), is_integer(A) -> {M, F, A};
began(_, Spawned) -> Spawned.
