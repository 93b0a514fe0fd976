%% SPDX-License-Identifier: Apache-2.0
%% Follows the names of -P NAME, in the owner: when another process gets a name, the owner traces this process, too.
%%
%% The owner monitors the process that has the name. When the process exits, the owner looks the name up after 1, 2, 4,
%% … ms, and then once a second. The owner also looks once a second while the process lives, because the name may pass
%% to another process. Looking a name up takes less than a microsecond. The VM would report a registration only if every
%% process were traced.
%%
%% The owner does not set flags of a process that may be in a NIF (tracer_whom.hrl). So the namer asks the process first,
%% and the owner sets the flags when the process has answered.
%%
%% Processes without a name are not followed, but the owner tells the client when nothing is left to trace.

-record(named, {
    pid,               % the process that has the name | none
    monitor,           % the monitor of this process
    asked = false,     % the process has no flags yet, because it has not answered
    since,             % ms: when `pid` changed
    told, told_at}).   % the process that the client knows; ms: the time of that notice

-record(follow, {
    names = #{},       % #{Name => #named{}}
    timer,
    moved = []}).      % [{Name, Pid | none}]: changes that the next answer to {read, …} reports

-define(FOLLOW_MOST, 1000). % ms between two looks, and between two notices about a name

%% Begins with the names among the selected processes. The owner sets the flags afterwards, so no change is overlooked.
follow_begin(Procs, S0) ->
    S = follow_end(S0),
    case [A || {named, A} <- Procs] of
        [] -> S;
        Names ->
            Now = now_ms(),
            Begin = fun(A) ->
                P = follow_pid(A),
                follow_monitor(P, #named{since = Now, told = P, told_at = Now - ?FOLLOW_MOST})
            end,
            follow_later(?FOLLOW_MOST, S#s{follow = #follow{names = maps:from_list([{A, Begin(A)} || A <- Names])}})
    end.

follow_end(S = #s{follow = none}) -> S;
follow_end(S = #s{follow = {lives, Ref, _}}) -> demonitor(Ref, [flush]), S#s{follow = none};
follow_end(S = #s{follow = #follow{names = Names, timer = Timer}}) ->
    erlang:cancel_timer(Timer),
    [demonitor(Ref, [flush]) || #named{monitor = Ref} <- maps:values(Names), Ref =/= none],
    S#s{follow = none}.

follow_later(Wait, S = #s{follow = F}) ->
    S#s{follow = F#follow{timer = erlang:start_timer(Wait, self(), {follow, min(2 * Wait, ?FOLLOW_MOST)})}}.

follow_pid(Name) ->
    case whereis(Name) of P when is_pid(P) -> P; _ -> none end.

follow_monitor(none, N) -> N#named{pid = none, monitor = none};
follow_monitor(P, N) -> N#named{pid = P, monitor = monitor(process, P)}.

%% Returns #{Name => Pid | none}; none also for a process that has not answered, because it has no flags.
follow_pids(#s{follow = #follow{names = Names}}) ->
    maps:map(fun(_, #named{asked = true}) -> none; (_, #named{pid = P}) -> P end, Names);
follow_pids(_) -> #{}.

%% Replaces the names in a selection by their processes.
follow_whom(Procs, S) ->
    Pids = follow_pids(S),
    lists:usort([case Who of {named, A} -> maps:get(A, Pids, none); _ -> Who end || Who <- Procs]) -- [none].

%% Looks all names up. Wait: ms until the next look if a name has no process.
follow(Wait, S0 = #s{follow = #follow{names = Names, timer = Timer}}) ->
    erlang:cancel_timer(Timer),
    S = maps:fold(fun follow_name/3, S0, Names),
    follow_later(case lists:member(none, maps:values(follow_pids(S))) of true -> Wait; false -> ?FOLLOW_MOST end, S).

%% Looks one name up, and has a process asked that has got the name. The notice precedes the first event of that process.
follow_name(Name, N0 = #named{pid = Before, monitor = Ref}, S0) ->
    Now = now_ms(),
    P = follow_pid(Name),
    N = case P of
        Before -> N0;
        _ -> Ref =:= none orelse demonitor(Ref, [flush]), follow_monitor(P, N0#named{since = Now, asked = P =/= none})
    end,
    S = #s{follow = F = #follow{names = Names}} = follow_tell(Name, N, Now, S0),
    N#named.asked andalso (S#s.namer ! {follow, S#s.key, Name, P}),
    Known = case S of S0 -> N; _ -> N#named{told = P, told_at = Now} end,
    names_add(P, Name, S#s{follow = F#follow{names = Names#{Name := Known}}}).

%% Traces a process that has answered, if it still has the name.
follow_answered(Name, P, S = #s{follow = F = #follow{names = Names}}) ->
    case Names of
        #{Name := N = #named{pid = P, asked = true}} ->
            follow_trace(P, S),
            S#s{follow = F#follow{names = Names#{Name := N#named{asked = false}}}};
        _ -> S
    end;
follow_answered(_, _, S) -> S.

%% Tells the client which process has the name now. It reports a name without a process late, because most processes
%% start again at once.
follow_tell(Name, #named{pid = P, told = Told, since = Since, told_at = At}, Now, S = #s{follow = F}) ->
    case P =/= Told andalso Now - case P of none -> Since; _ -> At end >= ?FOLLOW_MOST of
        false -> S;
        true when is_record(S#s.armed, armed) ->
            meta(S, module, case P of none -> [exited, Name]; _ -> [restarted, {Name, P}] end);
        true -> S#s{follow = F#follow{moved = [{Name, P} | F#follow.moved]}}
    end.

follow_trace(P, S = #s{armed = #armed{request = Request = #{flags := Flags}, budget = Budget}}) ->
    case Budget of
        #budgeted{valve = shut} -> follow_flags(P, Request, without(Flags, [call]), S);
        _ -> follow_flags(P, Request, Flags, S)
    end,
    inside_follow(Request, P, S#s.tracer);
follow_trace(P, S = #s{armed = {count, Counters, Request}}) ->
    follow_flags(P, Request, count_flags(Counters, Request), S).

follow_flags(P, Request, Flags, S) ->
    flags(Request#{flags := Flags, port_flags => [], seq_trace => false}, #armed{whom = {[P], []}}, S).

%% Watches processes that were selected one by one, if nothing else can make an event: the client learns when the last
%% one has exited. Monitors one of them at a time, because an application may have very many.
follow_lives(#{flags := Flags}, #armed{whom = {[P | Procs], []}, system = none, effects = #{switched := []}}, S = #s{follow = none})
        when is_pid(P) ->
    case [F || F <- inherited(#{flags => Flags}), F =/= silent] of
        [] -> follow_life(P, Procs, S);
        _ -> S
    end;
follow_lives(_, _, S) -> S.

follow_life(P, Procs, S) -> S#s{follow = {lives, monitor(process, P), Procs}}.

follow_died(_, S = #s{follow = {lives, _, [P | Procs]}}) -> follow_life(P, Procs, S);
follow_died(P, S) -> meta(S#s{follow = none}, notice, [exited, P]).

%% Returns the processes that the client does not know yet, with their names as text, for the answer to {read, …}.
follow_moved(S = #s{follow = F = #follow{moved = Moved = [_ | _]}}) ->
    {[{atom_to_binary(Name), case P of none -> none; _ -> text_of(P) end} || {Name, P} <- lists:reverse(Moved)],
        S#s{follow = F#follow{moved = []}}};
follow_moved(S) -> {[], S}.
