%% SPDX-License-Identifier: Apache-2.0
%% The reference for etrace's events: a tracer process of the VM that records events as lines in the order of arrival.
-module(plain).

-export([start/1, stop/2, events/1, await/3, tokens/0]).

%% events(#{procs => [Who], flags => [Flag], ports => [Who], port_flags => [Flag], functions => [{MFA, Specification,
%% [Scope]}], receives => Specification, system => [{Event, Value}]}) traces exactly these, whereas start/1 traces the
%% calls of all processes. It returns the collector for stop/2. A line is "Who tag Terms", in the form that events_of
%% of tests/lib/live.bash makes from JSON. await(Collector, Tag, N) returns once N events with that tag have arrived.
events(Options) ->
    Self = self(),
    Pid = spawn(fun() ->
        Session = trace:session_create(plain, self(), []),
        [trace:function(Session, MFA, Ms, Flags) || {MFA, Ms, Flags} <- maps:get(functions, Options, [])],
        [trace:recv(Session, Ms, []) || {ok, Ms} <- [maps:find(receives, Options)]],
        [trace:process(Session, P, true, maps:get(flags, Options)) || P <- maps:get(procs, Options, [])],
        [trace:port(Session, P, true, maps:get(port_flags, Options)) || P <- maps:get(ports, Options, [])],
        [ok = trace:system(Session, Event, Value) || {Event, Value} <- maps:get(system, Options, [])],
        Self ! {started, self()},
        gather(Session, [], #{}, [])
    end),
    receive {started, Pid} -> Pid end.

await(Pid, Tag, N) ->
    Ref = monitor(process, Pid),
    Pid ! {await, self(), Tag, N},
    receive
        {Pid, Tag} -> demonitor(Ref, [flush]), ok;
        {'DOWN', Ref, process, _, Reason} -> exit(Reason)
    after 20000 -> exit({timeout, Tag, N})
    end.

gather(Session, Lines, Counts, Waiting) ->
    receive
        {await, From, Tag, N} ->
            gather(Session, Lines, Counts, told([{From, Tag, N} | Waiting], Counts));
        {stop, From, File} ->
            Ref = trace:delivered(Session, all),
            All = rest(Ref, Lines),
            trace:session_destroy(Session),
            ok = file:write_file(File, lists:reverse(All)),
            From ! {self(), length(All)};
        Event ->
            Tag = element(3, Event),
            Counts1 = Counts#{Tag => maps:get(Tag, Counts, 0) + 1},
            gather(Session, [event(Event) | Lines], Counts1, told(Waiting, Counts1))
    end.

told(Waiting, Counts) ->
    {Now, Later} = lists:partition(fun({_, Tag, N}) -> maps:get(Tag, Counts, 0) >= N end, Waiting),
    [From ! {self(), Tag} || {From, Tag, _} <- Now],
    Later.

rest(Ref, Lines) ->
    receive
        {trace_delivered, all, Ref} -> Lines;
        Event when element(1, Event) =:= trace; element(1, Event) =:= trace_ts; element(1, Event) =:= monitor -> rest(Ref, [event(Event) | Lines])
    end.

event({monitor, P, Tag, Info = [_ | _]}) -> text(P, Tag, [figures(Info)]);
event({monitor, P, Tag, Info}) -> text(P, Tag, [term(Info)]);
event({trace_ts, P, Tag, A, _}) -> event({trace, P, Tag, A}); % events of meta tracing have timestamps
event({trace_ts, P, Tag, A, B, _}) -> event({trace, P, Tag, A, B});
event({trace, P, call, {M, F, A}}) -> text(P, call, [mfa(M, F, A), terms(A)]);
event({trace, P, call, {M, F, A}, Result}) -> text(P, call, [mfa(M, F, A), terms(A), " -> ", term(Result)]);
event({trace, P, Tag, {M, F, A}, Value}) when Tag =:= return_from -> text(P, return, [mfa(M, F, A), " ", term(Value)]);
event({trace, P, exception_from, {M, F, A}, {C, R}}) -> text(P, exception, [mfa(M, F, A), " ", term(C), " ", term(R)]);
event({trace, P, return_to, {M, F, A}}) -> text(P, return_to, [mfa(M, F, A)]);
event({trace, P, return_to, undefined}) -> text(P, return_to, ["undefined"]);
event({trace, P, Tag, {M, F, A}}) when is_atom(M), is_integer(A), Tag =/= 'receive' -> text(P, Tag, [mfa(M, F, A)]);
event({trace, P, Tag, 0}) when Tag =/= 'receive', Tag =/= exit -> text(P, Tag, ["0"]);
event({trace, P, Tag, Msg, To}) when Tag =:= send; Tag =:= send_to_non_existing_process -> text(P, Tag, [term(To), " ", term(Msg)]);
event({trace, P, Tag, Other, {M, F, A}}) -> text(P, Tag, [term(Other), " ", mfa(M, F, A), terms(A)]);
event({trace, P, Tag, Info}) ->
    case lists:prefix("gc_", atom_to_list(Tag)) of
        true -> text(P, Tag, [figures(Info)]);
        false -> text(P, Tag, [term(Info)])
    end;
event({trace, P, Tag, A, B}) -> text(P, Tag, [term(A), " ", term(B)]).

figures(Info) -> lists:join(",", [[atom_to_list(K), "=", integer_to_list(V)] || {K, V} <- lists:sort(Info)]).

text(P, Tag, Texts) ->
    Who = if is_pid(P) -> pid_to_list(P); true -> port_to_list(P) end,
    unicode:characters_to_binary([Who, " ", atom_to_list(Tag), " ", Texts, "\n"]).

mfa(M, F, A) when is_list(A) -> mfa(M, F, length(A));
mfa(M, F, A) -> [atom_to_list(M), ":", atom_to_list(F), "/", integer_to_list(A)].

terms(A) when is_list(A) -> [[" ", term(T)] || T <- A];
terms(_) -> "".

term(T) -> unicode:characters_to_binary(io_lib:format("~0tp", [T])).

%% Becomes the system tracer of sequential tracing until stop/2. The lines are "what prev cur label from to message".
tokens() ->
    Pid = spawn(fun() -> passed([]) end),
    false = erlang:system_flag(sequential_tracer, Pid),
    Pid.

passed(Lines) ->
    receive
        {seq_trace, Label, {What, {Prev, Cur}, From, To, Msg}} ->
            Parts = [atom_to_list(What), integer_to_list(Prev), integer_to_list(Cur) | [term(T) || T <- [Label, From, To, Msg]]],
            passed([unicode:characters_to_binary([lists:join(" ", Parts), "\n"]) | Lines]);
        {stop, From, File} ->
            erlang:system_flag(sequential_tracer, false),
            ok = file:write_file(File, lists:reverse(Lines)),
            From ! {self(), length(Lines)}
    end.

%% Traces calls, results and exceptions of these functions in all processes as lines "Pid Tag M:F/A Terms". Returns
%% the collector.
start(Functions) ->
    Self = self(),
    Pid = spawn(fun() ->
        Session = trace:session_create(plain, self(), []),
        [1 = trace:function(Session, F, [{'_', [], [{exception_trace}]}], [local]) || F <- Functions],
        trace:process(Session, all, true, [call]),
        Self ! {started, self()},
        collect(Session, [])
    end),
    receive {started, Pid} -> Pid end.

%% Stops the collector, which writes the lines to the file. Returns their number.
stop(Pid, File) ->
    Ref = monitor(process, Pid),
    Pid ! {stop, self(), File},
    receive
        {Pid, Count} ->
            demonitor(Ref, [flush]),
            Count;
        {'DOWN', Ref, process, _, Reason} ->
            exit(Reason)
    end.

collect(Session, Lines) ->
    receive
        {trace, Pid, call, {M, F, Args}} ->
            collect(Session, [line(Pid, "call", M, F, length(Args), Args) | Lines]);
        {trace, Pid, return_from, {M, F, A}, Value} ->
            collect(Session, [line(Pid, "return", M, F, A, [Value]) | Lines]);
        {trace, Pid, exception_from, {M, F, A}, {Class, Reason}} ->
            collect(Session, [line(Pid, "exception", M, F, A, [Class, Reason]) | Lines]);
        {stop, From, File} ->
            trace:process(Session, all, false, [call]),
            Ref = trace:delivered(Session, all),
            finish(Session, Lines, Ref, From, File)
    end.

finish(Session, Lines, Ref, From, File) ->
    receive
        {trace_delivered, all, Ref} ->
            trace:session_destroy(Session),
            ok = file:write_file(File, lists:reverse(Lines)),
            From ! {self(), length(Lines)};
        {trace, Pid, call, {M, F, Args}} ->
            finish(Session, [line(Pid, "call", M, F, length(Args), Args) | Lines], Ref, From, File);
        {trace, Pid, return_from, {M, F, A}, Value} ->
            finish(Session, [line(Pid, "return", M, F, A, [Value]) | Lines], Ref, From, File);
        {trace, Pid, exception_from, {M, F, A}, {Class, Reason}} ->
            finish(Session, [line(Pid, "exception", M, F, A, [Class, Reason]) | Lines], Ref, From, File)
    end.

line(Pid, Tag, M, F, A, Terms) ->
    Texts = lists:join(" ", [unicode:characters_to_binary(io_lib:format("~0tp", [T])) || T <- Terms]),
    unicode:characters_to_binary([pid_to_list(Pid), " ", Tag, " ", atom_to_list(M), ":", atom_to_list(F), "/", integer_to_list(A), " ", Texts, "\n"]).
