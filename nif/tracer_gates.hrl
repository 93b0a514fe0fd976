%% What each version of the VM gets wrong, and what an arming is told of it or refused for. Runs in the worker.

%% {What, error | warning, Text or what the client has a text for}; the rows that hold for the VM we are in.
gates() -> gates(erlang:system_info(version)).

gates(Version) ->
    Erts = numbers(Version),
    [{What, How, Text} || {What, Since, Fixed, How, Text} <- all_gates(), Since =< Erts, Erts < Fixed].

%% {What, since this erts, fixed in this one, …}
all_gates() -> [
    {garbage_collection, [15], [99], error, gc_taken},
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

allowed(Probe, Request, Session, Gates) ->
    lists:flatmap(fun({What, How, Text}) ->
        case concerned(What, Probe, Request, Session) of
            true when How =:= error, is_atom(Text) -> throw(Text);
            true when How =:= error -> throw({notsup, Text});
            true -> [Text];
            false -> []
        end
    end, Gates).

concerned(garbage_collection, #{type := events}, Request, Session) ->
    gc_asked(Request) andalso gc_elsewhere(Session);
concerned(return_to, #{type := call}, #{flags := Flags}, _) -> lists:member(return_to, Flags);
concerned(trace, #{match_spec := {_, Specs}}, _, _) -> uses([enable_trace, disable_trace, trace], Specs);
concerned(meta, #{type := call, scope := Scope}, _, _) -> Scope =:= meta;
concerned(emulator, _, _, _) -> erlang:system_info(emu_flavor) =:= emu;
concerned('receive', #{type := Kind}, _, _) -> Kind =:= recv;
concerned(unload, _, _, _) -> true;
concerned(bif, #{type := call}, _, Session) -> length(others(Session)) > 1;
concerned(_, _, _, _) -> false.

%% Everybody else's sessions; the one of legacy tracing is always there.
others(Session) -> trace:session_info(all) -- [Session].

gc_asked(Request = #{flags := Flags}) ->
    lists:member(garbage_collection, Flags) andalso not maps:get(unsafe, Request, false).

%% Of two who begin at the same time neither sees flags of the other. So whoever is to set them looks under this name, of whatever
%% build it is, and has it until they are set, or will not be.
gc_begin(Request) ->
    gc_asked(Request) andalso try register(etrace_collects, self()) catch error:_ -> whereis(etrace_collects) =:= self() orelse throw(gc_taken) end.

gc_begun(#s{helper = none, worker = Worker}) ->
    whereis(etrace_collects) =:= Worker andalso try unregister(etrace_collects) catch error:_ -> false end; % it was killed just now
gc_begun(_) -> false.

%% Whether somebody else may trace the garbage collection of any process, now or one that is spawned.
gc_elsewhere(Session) ->
    Flagged = fun(Who) -> lists:any(fun(Other) -> gc_flag(Other, Who) end, [O || O <- sessions_of(Who), O =/= Session]) end,
    lists:any(fun(Other) -> gc_flag(Other, new) end, others(Session)) orelse lists:any(Flagged, processes()).

%% Somebody may begin to while we do. Every process is looked at only where there is another session.
gc_meets(Session, Request) ->
    gc_asked(Request) andalso
        case length(others(Session)) > 1 of
            true -> gc_elsewhere(Session);
            false -> gc_listed(erlang:trace_info(new, flags))
        end.

gc_left(_, Request, false) -> Request;
gc_left(Session, Request = #{flags := Flags}, true) ->
    trace:process(Session, all, false, [garbage_collection]),
    Request#{flags := Flags -- [garbage_collection]}.

sessions_of(P) -> try trace:session_info(P) of undefined -> []; Sessions -> Sessions catch error:_ -> [] end.

gc_flag({legacy, _}, Who) -> gc_listed(erlang:trace_info(Who, flags));
gc_flag(Session, Who) -> gc_listed(try trace:info(Session, Who, flags) catch error:_ -> undefined end). % gone meanwhile

gc_listed({flags, Flags}) -> lists:member(garbage_collection, Flags);
gc_listed(_) -> false.

%% Whether a specification (or a map of them) has such an action anywhere: {Action, …}.
uses(Actions, [H | T]) -> uses(Actions, H) orelse uses(Actions, T);
uses(Actions, T) when is_tuple(T), tuple_size(T) > 1 ->
    lists:member(element(1, T), Actions) orelse uses(Actions, tuple_to_list(T));
uses(Actions, T) when is_map(T) -> uses(Actions, maps:values(T));
uses(_, _) -> false.
