%% SPDX-License-Identifier: Apache-2.0
%% Implements the flight recorder. Until a snapshot begins, the rings overwrite their oldest frames, and the owner sends
%% only the names of processes. When a snapshot begins, the rings hold the last events. The owner sends these events and
%% the events of some time after that. Without a trigger the snapshot begins when the trace ends.

-define(RING_LOOK, 1000). % ms until the owner looks for new processes, whose names it sends

%% #s.ring: off | {on, Ms}: the rings overwrite | {sends, Ms}: a snapshot is sent. The option `ring` gives Ms: the age
%% of the oldest event to send; 0: any age. A snapshot ends `after` ms after it began. The option `trigger` is
%% {Interval, System}. The next snapshot begins at the earliest Interval ms after the end of the last. System: system
%% events trigger a snapshot, too.
ring_begin(#s{options = #{ring := _}, tracer = fallback, client = Client}) ->
    refuse(Client, {notsup, <<"--ring needs the NIF">>});
ring_begin(S = #s{options = O = #{ring := Ms}, tracer = State}) ->
    gate(State, overwrite),
    case O of
        #{trigger := _} -> gate(State, {at_trigger, Ms}), ring_trigger(State);
        _ -> gate(State, {at_end, Ms})
    end,
    S#s{ring = {on, Ms}};
ring_begin(S) -> S.

%% Repeats the call while the NIF clears old stacks of calls.
ring_trigger(State) ->
    case gate(State, trigger) of
        more -> ring_trigger(State);
        _ -> gate(State, watch)
    end.

%% Ends the recording with the trace. Without a trigger, begins the last snapshot. With a trigger, does so only if the
%% condition held a moment ago and ring_fired/1 has not run yet; otherwise the client ignores all events before now.
ring_snapshot(S = #s{ring = {on, _}, recorded = true, tracer = State, options = #{trigger := _}}) ->
    case gate(State, fired) of
        true -> ring_fired(S);
        false -> ring_last(S)
    end;
ring_snapshot(S) -> ring_last(S).

ring_last(S = #s{ring = {on, Ms}, tracer = State, options = O}) ->
    Reach = gate(State, {snapshot, Ms, 0}),
    case O of
        _ when not S#s.recorded -> S#s{ring = off};
        #{trigger := _} -> meta(ring_told(S#s{ring = off}), notice, [snapshot_none, {ticks(), 0}]);
        _ -> meta(S#s{ring = off}, notice, [snapshot, Reach])
    end;
ring_last(S) -> S.

%% Begins a snapshot, because a result or a system event asks for one. The notice {snapshot, {From, Us}} comes before
%% the first event: the client has all events since the tick From, and ignores older ones, because other rings have
%% overwritten theirs.
ring_fired(S = #s{ring = {on, Ms}, tracer = State, options = #{'after' := After}}) ->
    Reach = gate(State, {snapshot, Ms, After}),
    erlang:send_after(After + 1, self(), ready_input), % there may be no event that wakes the owner
    meta(S#s{ring = {sends, Ms}}, notice, [snapshot, Reach]);
ring_fired(S) -> S.

%% Begins a snapshot because the client asks for one. Returns true if a snapshot begins or is already being sent. No
%% trigger can begin another snapshot before the end of this one. After a disarm the rings still hold events.
ring_asked(S = #s{ring = {on, _}, recorded = true, last = none, tracer = State}) ->
    gate(State, unwatch),
    {true, ring_fired(S)};
ring_asked(S = #s{ring = {Sends, _}}) -> {Sends =:= sends, S};
ring_asked(S) -> {false, S}.

ring_system(S = #s{ring = {on, _}, tracer = State, options = #{trigger := {_, true}}}) ->
    gate(State, fire),
    S;
ring_system(S) -> S.

%% Ends a snapshot. The notice `snapshot_end` makes the client show the last events, too.
ring_complete(S = #s{ring = {sends, Ms}, tracer = State, options = O, last = none}) ->
    gate(State, overwrite),
    case O of
        #{trigger := {Interval, _}} -> erlang:start_timer(Interval, self(), ring);
        _ -> ok
    end,
    meta(S#s{ring = {on, Ms}}, notice, [snapshot_end, 0]);
ring_complete(S) -> S.

ring_watch(S = #s{ring = {on, _}}) -> ring_told(S);
ring_watch(S) -> S.

%% Waits for the next trigger. Tells the client how many triggers came too soon after a snapshot.
ring_told(S = #s{tracer = State}) ->
    case gate(State, watch) of
        Fired when Fired > 1 -> meta(S, notice, [snapshot_skipped, Fired - 1]);
        _ -> S
    end.
