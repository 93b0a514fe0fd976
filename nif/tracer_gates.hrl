%% SPDX-License-Identifier: Apache-2.0
%% Lists known bugs of VM versions, and warns about or rejects requests that would trigger them. Runs in the worker.

%% Returns the rows that apply to this VM: {What, error | warning, a text, or a key for which the client has the text}.
gates() -> gates(erlang:system_info(version)).

gates(Version) ->
    Erts = numbers(Version),
    [{What, How, Text} || {What, Since, Fixed, How, Text} <- all_gates(), Since =< Erts, Erts < Fixed].

%% {What, the first version of erts with the bug, the first version without it, …}
all_gates() -> [
    {garbage_collection, [15], [99], error, gc_taken},
    {label, [15], [99], error, bad_label},
    {return_to, [15], [15, 1], error, <<"return_to is unreliable before OTP 27.1">>},
    {trace, [15], [15, 1], error, <<"enable, disable and trace use the wrong tracer before OTP 27.1">>},
    {meta, [15], [15, 0, 1], error, <<"meta tracing goes to the wrong process before OTP 27.0.1">>},
    {emulator, [15], [15, 2], error, <<"an emulator without JIT before OTP 27.2 crashes when native code is loaded over traced functions">>},
    {'receive', [15], [15, 2, 4], warning, <<"times of received messages may be late before OTP 27.3.3">>},
    {unload, [15], [15, 2, 7], warning, <<"unloading a module may, rarely, crash an OTP before 27.3.4">>},
    {call_memory, [15, 1], [15, 2, 6], error, <<"call_memory counts wrongly from OTP 27.1 to 27.3.2">>},
    {call_time, [15], [17], warning, <<"reading times and memory stops all schedulers for a moment before OTP 29: once a second at most">>},
    {bif, [15], [16, 2], warning,
        <<"another tool that stops tracing a built-in function stops it here too; re-armed each second (fixed in OTP 28.3)">>}].

numbers(Version) ->
    [list_to_integer(N) || N <- string:lexemes(Version, ".-"), string:to_integer(N) =/= {error, no_integer}].

%% Returns the warnings; throws if a gate rejects the request.
allowed(Effects, Request, Session, Gates) ->
    lists:usort(lists:flatmap(fun({What, How, Text}) ->
        case concerned(What, Effects, Request, Session) of
            true when How =:= error, is_atom(Text) -> throw(Text);
            true when How =:= error -> throw({notsup, Text});
            true -> [Text];
            false -> []
        end
    end, Gates)).

concerned(garbage_collection, Effects, Request, Session) -> gc_guarded(Effects, Request) andalso (gc_named() orelse gc_elsewhere(Session));
concerned(label, #{tokens := Tokens}, _, _) -> lists:member(unsafe, Tokens);
concerned(return_to, #{flags := Flags}, _, _) -> lists:member(return_to, Flags);
concerned(trace, #{switches := Switches}, _, _) -> Switches;
concerned(meta, #{scopes := Scopes}, _, _) -> lists:member(meta, Scopes);
concerned(emulator, _, _, _) -> erlang:system_info(emu_flavor) =:= emu;
concerned('receive', #{flags := Flags}, _, _) -> lists:member('receive', Flags);
concerned(unload, _, _, _) -> true;
concerned(bif, #{types := Types}, _, Session) -> lists:member(call, Types) andalso length(others(Session)) > 1;
concerned(_, _, _, _) -> false.

%% Returns all other sessions. The session of legacy tracing always exists.
others(Session) -> trace:session_info(all) -- [Session].

gc_asked(#{flags := Flags}) -> lists:member(garbage_collection, Flags).

gc_guarded(Effects, Request) -> gc_asked(Effects) andalso not maps:get(unsafe, Request, false).

%% Takes the right to trace garbage collection: registers a name for the owner, which only one etrace on the node can
%% have. The owner keeps the name as long as an action may switch the flag on. A name is needed because two etraces that
%% begin at the same time do not see each other's flags. The VM unregisters the name when the owner ends.
gc_begin(Effects, Request) ->
    gc_asked(Effects) andalso
        try register(etrace_collects, get(owner))
        catch error:_ -> whereis(etrace_collects) =:= get(owner) orelse not gc_guarded(Effects, Request) orelse throw(gc_taken)
        end.

gc_named() -> not lists:member(whereis(etrace_collects), [undefined, get(owner)]).

%% Unregisters the name if the armed request does not need it. Runs in the owner whenever the armed request may have
%% changed. The name stays registered while the worker arms, because the worker may have registered it for its request.
gc_settle(S = #s{helper = none, armed = #armed{effects = Effects}}) -> gc_asked(Effects) orelse gc_end(), S;
gc_settle(S = #s{helper = none}) -> gc_end(), S;
gc_settle(S) -> S.

gc_end() -> whereis(etrace_collects) =:= self() andalso unregister(etrace_collects).

%% Returns true if another session has the flag of garbage collection on an existing process, or for new processes.
%% Throws if a process does not answer, because the VM would crash if that process had the flag.
gc_elsewhere(Session) ->
    {Rows, Silent} = look_ask(processes(), fun(P) -> gc_flagged(P, Session) end),
    case gc_new(Session) orelse lists:keymember(true, 2, Rows) of
        false when Silent =/= [] -> throw({silent, whom_text(hd(Silent))});
        Elsewhere -> Elsewhere
    end.

gc_new(Session) -> lists:any(fun(Other) -> gc_flag(Other, new) end, others(Session)).

gc_flagged(P, Session) -> lists:any(fun(Other) -> gc_flag(Other, P) end, [O || O <- sessions_of(P), O =/= Session]).

%% Returns true if another session has begun to trace garbage collection during our trace. Looks at the processes only
%% if there is another session. Asks them in the worker, because the trace would show the events of a looker.
gc_meets(Session, Request, Effects) ->
    gc_guarded(Effects, Request) andalso
        case length(others(Session)) > 1 of
            true -> gc_new(Session) orelse lists:any(fun(P) -> pace(), gc_flagged(P, Session) end, processes());
            false -> gc_listed(erlang:trace_info(new, flags))
        end.

%% Ends the tracing of garbage collection, while the rest of the trace goes on. Clears the flag at once, removes the
%% actions that could switch it on, and clears it again.
gc_left(Session, Request = #{flags := Flags, probes := Probes}) ->
    trace:process(Session, all, false, [garbage_collection]),
    Left = Request#{flags := [F || F <- Flags, F =/= garbage_collection, F =/= all],
        probes := [P#{match_spec := gc_without(Ms, fun(Bin) -> term_to_binary(gc_without(spec(Bin))) end)} || P = #{match_spec := Ms} <- Probes]},
    case get(function) of
        {Session, Set, Mode} ->
            Calm = maps:map(fun(_, Ms) -> gc_without(Ms) end, Set),
            [trace:function(Session, MFA, Ms, [Scope]) || {{Scope, MFA}, Ms} <- maps:to_list(Calm), Ms =/= map_get({Scope, MFA}, Set)],
            armed(Session, Calm, Mode);
        _ -> % a former worker set the patterns
            [trace:function(Session, {'_', '_', '_'}, false, [Scope]) || Scope <- [local, global, meta]]
    end,
    {Read, _} = wanted(Left),
    messages(Session, send, [P || P = #{type := send} <- Read], joins(Left)),
    trace:process(Session, all, false, [garbage_collection]),
    Left.

gc_without({any, Ms}, Of) -> {any, Of(Ms)};
gc_without({arity, Map}, Of) -> {arity, maps:map(fun(_, Ms) -> Of(Ms) end, Map)}.

%% Returns the match specification without the actions that can switch on the trace flag garbage_collection.
gc_without([Clause | Rest]) -> [gc_without(Clause) | gc_without(Rest)];
gc_without({Head, Guards, Body}) -> {Head, Guards, gc_calm(Body)};
gc_without(Ms) -> Ms.

gc_calm({const, T}) -> {const, T};
gc_calm({T}) when is_tuple(T) -> {list_to_tuple(gc_calm(tuple_to_list(T)))};
gc_calm(T) when is_tuple(T), tuple_size(T) > 0 ->
    [Name | Arguments] = tuple_to_list(T),
    case lists:member(garbage_collection, switched_on({Name, Arguments})) of
        true -> true;
        false -> list_to_tuple([Name | gc_calm(Arguments)])
    end;
gc_calm([H | T]) -> [gc_calm(H) | gc_calm(T)];
gc_calm(T) when is_map(T) -> maps:from_list([{gc_calm(Key), gc_calm(Value)} || {Key, Value} <- maps:to_list(T)]);
gc_calm(T) -> T.

sessions_of(P) -> try trace:session_info(P) of undefined -> []; Sessions -> Sessions catch error:_ -> [] end.

gc_flag({legacy, _}, Who) -> gc_listed(erlang:trace_info(Who, flags));
gc_flag(Session, Who) -> gc_listed(try trace:info(Session, Who, flags) catch error:_ -> undefined end). % it has ended

gc_listed({flags, Flags}) -> lists:member(garbage_collection, Flags);
gc_listed(_) -> false.
