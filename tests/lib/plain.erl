%% The reference that etrace is held against: a process tracer of the VM, which collects every call,
%% result and exception of some functions as lines "Pid Tag M:F/A Terms", in the order they came.
-module(plain).

-export([start/1, stop/2]).

%% Traces all processes; returns the collector.
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

%% Ends it; the lines are in the file then. Returns how many.
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
