%% SPDX-License-Identifier: Apache-2.0
%% Receives system events (since OTP 28). The VM does not give system events to a tracer module, so they need a session
%% whose tracer is a process. That process, the system process, ends with the owner. It gives the owner one piece of
%% frames at a time. The owner asks for the first piece once the request is armed, and for the next one when the last
%% piece is in a batch. Events that do not fit count as lost.
%%
%% The session must be destroyed before its tracer ends: an event without a tracer and without a handle of the session
%% crashes the VM (at least up to erts 17.1). So the system process, the owner and the janitors each have a handle, and
%% the last survivor destroys the session. If all of them are killed together, a timer still holds a handle until the VM
%% has noticed the end of the tracer.
%%
%% For the client, the frames are a ring of their own (ETW_SYSTEM_RING), which it merges with the others by their ticks.

-define(SYSTEM_RING, 4095).
-define(SYSTEM_PIECE, 4096).   % bytes of frames in a piece; a frame has at most twice as many
-define(SYSTEM_MOST, 262144).  % bytes of waiting frames
-define(SYSTEM_QUEUE, 10000).  % messages in the mailbox
-define(SYSTEM_KEEP, 4000).    % ms that a timer holds a handle; the next timer starts after half of that

-record(sys, {
    owner, session, ours, % ours: processes whose events are dropped
    as,                   % the system events that the session traces, as trace:info/3 returns them
    now, limits,          % fun() -> tick; limits of frame/6
    rate, left, second,   % events per second; events left in this second of monotonic time
    asked = false,        % the owner waits for a piece
    frames = [], bytes = 0, % the newest first
    new = [],             % tracees of these frames
    seen, lost,           % counters; they continue those of earlier system processes
    told                  % the {seen, lost} that the owner got last
}).

%% Starts the system process, in the worker. Returns the process, once it receives events, and its session.
system_start([], _) -> none;
system_start(Events, Boot) ->
    erlang:function_exported(trace, system, 3) orelse
        throw({notsup, <<"system events need OTP 28, and this node has OTP ", (list_to_binary(erlang:system_info(otp_release)))/binary>>}),
    {Pid, Monitor} = spawn_opt(?MODULE, system, [self(), Events, Boot],
        [monitor, {priority, high} | bounds(2)]),
    receive
        {hears, Pid, Session} -> demonitor(Monitor, [flush]), {Pid, Session};
        {'DOWN', Monitor, _, _, Why} -> throw({notsup, unicode:characters_to_binary(io_lib:format("system events: ~0tp", [Why]))})
    end.

system(Worker, Events, {Owner, Ours = [Janitor, Second | _], Tracer, Options}) ->
    monitor(process, Owner),
    Session = {_, Weak} = trace:session_create(etrace, self(), []),
    put(session, {Weak, os:system_time(second)}), % tracer_info.hrl reads it to tell whose session it is
    system_keep(Session),
    try
        [ok = trace:system(Session, Event, Value) || {Event, Value} <- Events]
    catch
        error:Why -> trace:session_destroy(Session), exit(Why) % an error would be logged
    end,
    tell([Janitor, Second], {exit, {trace, session_destroy, [Session]}}),
    Worker ! {hears, self(), Session},
    {Seen, Lost, Left} = maps:get(heard, Options),
    system_loop(#sys{seen = Seen, lost = setelement(5, Lost, element(5, Lost) + Left), told = {Seen, Lost},
        owner = Owner, session = Session, as = trace:info(Session, system, all), ours = [self() | Ours],
        now = case Tracer of fallback -> fun fb_now/0; _ -> fun ticks/0 end,
        rate = case maps:get(rate, Options, 0) of 0 -> infinity; Rate -> Rate end,
        limits = {min(maps:get(size, Options, 1024), 4096), maps:get(depth, Options, 16), maps:get(items, Options, 1024), none}}).

%% Serves events and the owner's requests, and ends once the owner has everything.
system_loop(#sys{session = none, frames = [], seen = Seen, lost = Lost, told = {Seen, Lost}}) -> ok;
system_loop(S) ->
    receive
        {monitor, P, Tag, Info} -> system_loop(system_give(system_event(P, Tag, Info, S)));
        next -> system_loop(system_give(S#sys{asked = true}));
        last -> system_loop(system_give(system_last(S)));
        keep -> S#sys.session =:= none orelse system_keep(S#sys.session), system_loop(S);
        {'DOWN', _, _, Owner, _} when Owner =:= S#sys.owner -> S#sys.session =:= none orelse trace:session_destroy(S#sys.session);
        _ -> system_loop(S)
    after ?CHECK ->
        system_loop(system_there(S))
    end.

%% Keeps a handle in a timer. No process can have the name `undefined`, so nobody gets the message. A timer for a pid
%% would end with that process.
system_keep(Session) ->
    erlang:send_after(?SYSTEM_KEEP, undefined, Session),
    erlang:send_after(?SYSTEM_KEEP div 2, self(), keep).

%% Checks whether somebody on the node has destroyed the session or removed events from it. If so, the owner still gets
%% the earlier events, and learns of it from the end of this process.
system_there(S = #sys{session = none}) -> S;
system_there(S = #sys{session = Session, as = As}) ->
    case try trace:info(Session, system, all) catch error:_ -> destroyed end of
        As -> S;
        _ -> system_give(system_last(S))
    end.

%% Destroys the session and waits until all its events have arrived.
system_last(S = #sys{session = none}) -> S;
system_last(S = #sys{session = Session}) ->
    trace:session_destroy(Session),
    Ref = trace:delivered(Session, all),
    receive {trace_delivered, all, Ref} -> ok after 1000 -> ok end,
    system_rest(S#sys{session = none}).

system_rest(S) ->
    receive {monitor, P, Tag, Info} -> system_rest(system_event(P, Tag, Info, S)) after 0 -> S end.

system_event(P, Tag, Info, S = #sys{seen = Seen, bytes = Bytes}) ->
    case lists:member(P, S#sys.ours) of
        true -> S;
        false when Bytes > ?SYSTEM_MOST -> system_lost(1, S);
        false when Seen band 63 =:= 0 ->
            case process_info(self(), message_queue_len) of
                {_, Queue} when Queue > ?SYSTEM_QUEUE -> system_flood(system_lost(5, S));
                _ -> system_rate(P, Tag, Info, S)
            end;
        false -> system_rate(P, Tag, Info, S)
    end.

system_rate(P, Tag, Info, S = #sys{rate = Rate, left = Left, second = Second}) ->
    case erlang:monotonic_time(second) of
        _ when Rate =:= infinity -> system_frame(P, Tag, Info, S);
        Second when Left > 0 -> system_frame(P, Tag, Info, S#sys{left = Left - 1});
        Second -> system_lost(2, S);
        Now -> system_frame(P, Tag, Info, S#sys{second = Now, left = Rate - 1})
    end.

system_flood(S) ->
    receive {monitor, _, _, _} -> system_flood(system_lost(5, S)) after 0 -> S end.

system_lost(Reason, S = #sys{seen = Seen, lost = Lost}) ->
    S#sys{seen = Seen + 1, lost = setelement(Reason, Lost, element(Reason, Lost) + 1)}.

system_frame(P, Tag, Info, S = #sys{now = Now}) ->
    Frame = frame(?ETW_SYSTEM, 0, <<0:32, (Now()):64/little, (tracee(P)):64/little>>, <<>>, [Tag, Info], S#sys.limits),
    S#sys{seen = S#sys.seen + 1, frames = [Frame | S#sys.frames], bytes = S#sys.bytes + byte_size(Frame), new = [P | S#sys.new]}.

system_give(S = #sys{asked = false}) -> S;
system_give(S = #sys{frames = [], seen = Seen, lost = Lost, told = {Seen, Lost}}) -> S;
system_give(S) ->
    {Now, Later} = system_piece(lists:reverse(S#sys.frames), 0, []),
    Told = {Seen, Lost} = {S#sys.seen, S#sys.lost},
    S#sys.owner ! {system, self(), section(?SYSTEM_RING, Seen, Lost, Now), lists:usort(S#sys.new), {Seen, Lost, length(Later)}},
    S#sys{asked = false, frames = lists:reverse(Later), bytes = iolist_size(Later), new = [], told = Told}.

system_piece([Frame | Rest], Bytes, Taken) when Bytes < ?SYSTEM_PIECE -> system_piece(Rest, Bytes + byte_size(Frame), [Frame | Taken]);
system_piece(Rest, _, Taken) -> {lists:reverse(Taken), Rest}.

%% ---- in the owner -------------------------------------------------------------------------------------------------

%% Stops the system process. It gives the owner the rest of its frames, and its 'DOWN' message says that there are no
%% more.
system_stop(S = #s{hears = none, last = none}) -> S#s{system = none};
system_stop(S = #s{hears = none}) -> S;
system_stop(S = #s{hears = Hears, last = none}) -> system_end(Hears), S#s{hears = none, system = none};
system_stop(S = #s{hears = {Pid, _}}) -> Pid ! last, S.

system_end({Pid, Session}) ->
    trace:session_destroy(Session),
    exit(Pid, kill).

%% Asks for the next piece, because a batch has the last one.
system_sent(S = #s{system = none}) -> S;
system_sent(S = #s{hears = Hears, system = {_, _, Counts}}) ->
    [Pid ! next || {Pid, _} <- [Hears]],
    S#s{system = none, system_told = Counts}.

system_section(#s{system = none}) -> <<>>;
system_section(#s{system = {Section, _, _}}) -> Section.

system_tracees(#s{system = none}) -> [];
system_tracees(#s{system = {_, Tracees, _}}) -> Tracees.

%% ---- sequential tracing -------------------------------------------------------------------------------------------

%% Takes the system tracer. The node has only one, which any program may use, so etrace takes it only if it is free.
seq_start(S) ->
    Mine = seq_mine(self(), S#s.tracer),
    case erlang:system_info(sequential_tracer) of
        {_, Mine} -> ok;
        {_, false} ->
            case erlang:system_flag(sequential_tracer, Mine) of
                false -> ok;
                Other -> erlang:system_flag(sequential_tracer, Other), throw(seq_taken)
            end;
        _ -> throw(seq_taken)
    end.

%% Releases the system tracer. If the owner cannot, the VM does it when it next looks for a tracer that is gone. Code
%% that unloads the module triggers that at once with erlang:system_info/1, so that a later module of the same name does
%% not become the tracer.
seq_stop(S) ->
    Mine = seq_mine(self(), S#s.tracer),
    case erlang:system_info(sequential_tracer) of
        {_, Mine} -> erlang:system_flag(sequential_tracer, false);
        _ -> ok
    end.

seq_mine(Owner, fallback) -> Owner;
seq_mine(_, State) -> {?MODULE, State}.
