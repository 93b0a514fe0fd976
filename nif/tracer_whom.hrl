%% SPDX-License-Identifier: Apache-2.0
%% Finds the processes and ports that -P and --port-id select: [Pid | Port | all | existing | new]. Runs in the worker,
%% because asking every process or a registry of the user may take long.
%%
%% trace:process/4 takes the lock of a process. While the process is in a NIF, that blocks the scheduler of the caller, and
%% nothing can end the wait. With `all` or `existing` it blocks all schedulers. So the worker asks first, and the owner
%% sets no flag of a process that did not answer.

-define(WHOM_SLICE, 100).  % ms
-define(WHOM_SLICES, 30).  % slices to wait for the schedulers. If the node itself was stopped, only one of them is over

%% Returns {{Processes, Ports}, Warnings} for the flags of a request; {named, Name}: the process that has the name. Throws
%% if a process that the client named does not answer. Found processes answered when the worker looked for them.
whom_of(Request) ->
    Asked = [{Who, whom_asked(Who)} || Who <- maps:get(procs, Request, [all])],
    Procs = lists:append([case Who of {name, Text} -> [{named, A} || A <- existing([Text])]; _ -> Found end || {Who, {Found, _}} <- Asked]),
    Silent = lists:usort([P || {_, {_, Some}} <- Asked, P <- Some]),
    {{lists:usort(Procs), whom(maps:get(ports, Request, []))}, whom_unknown(Silent)}.

whom_unknown([]) -> [];
whom_unknown(Silent = [P | _]) ->
    [iolist_to_binary([case length(Silent) of
        1 -> ["process ", whom_text(P), " does not answer and is"];
        N -> [integer_to_list(N), " processes do not answer and are"]
    end, " not traced: a long native function or garbage collection keeps ", case Silent of [_] -> "it"; _ -> ["them, as ", whom_text(P), ","] end, " busy"])].

whom_text(P) ->
    case look_registered(P) of
        <<>> -> text_of(P);
        Name -> <<(text_of(P))/binary, $(, Name/binary, $)>>
    end.

whom(Whos) -> lists:usort(lists:append([element(1, whom_asked(Who)) || Who <- Whos])).

%% Returns {what Who selects, the processes that did not tell whether Who selects them}.
whom_asked({application, Text}) ->
    Masters = look_masters(Text),
    whom_found(fun(P) -> lists:member(process_value(P, group_leader), Masters) end, {no_app, Text, []});
whom_asked({initial, MFA, Text}) ->
    whom_found(fun(P) -> initial(P) =:= MFA end, {no_initial, Text});
whom_asked(Who) ->
    Found = who(Who),
    case look_ask(lists:filter(fun is_pid/1, Found), fun(P) -> process_value(P, status) end) of
        {_, []} -> {Found, []};
        {_, [P | _]} -> throw({silent, whom_text(P)})
    end.

whom_found(Selects, None) ->
    {Rows, Silent} = look_ask(processes(), Selects),
    case {[P || {P, true} <- Rows], Silent} of
        {[], [P | _]} -> throw({silent, whom_text(P)});
        {[], []} -> throw(None);
        {Found, _} -> {Found, Silent}
    end.

%% Throws if a scheduler is held and the flags of all processes are to be set.
whom_passes(#{flags := []}, _) -> ok;
whom_passes(_, {Procs, _}) ->
    case lists:member(all, Procs) orelse lists:member(existing, Procs) of
        true -> whom_pass(?WHOM_SLICES) orelse throw(held);
        false -> ok
    end.

%% Returns true once each scheduler has finished what it runs, false if a long NIF holds one. Any function that blocks the
%% schedulers would wait for this NIF.
whom_pass(Slices) -> whom_passed(erlang:trace_delivered(all), Slices).

whom_passed(_, 0) -> false;
whom_passed(Ref, N) ->
    receive {trace_delivered, all, Ref} -> true
    after ?WHOM_SLICE -> whom_passed(Ref, N - 1)
    end.

%% Returns what Who selects without asking a process.
who(Who) when Who =:= all; Who =:= existing; Who =:= new -> [Who];
who({pid, Text}) ->
    P = try list_to_pid(binary_to_list(Text)) catch error:_ -> throw({noproc, Text}) end,
    %% is_process_alive/1 may wait for the process.
    node(P) =:= node() andalso lists:member(P, processes()) orelse throw({noproc, Text}),
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
