%% SPDX-License-Identifier: Apache-2.0
%% Sends figures instead of events, for clients that show only how often functions are called and how long they take.
%% The NIF counts (tally.h) and makes the frames (figures.h). Once a second the owner sends the growth, one frame for
%% each function or key. A call of the NIF reports a bounded number of functions, and the owner asks for more when a batch has
%% room. So neither the time of a call nor the owner's heap grows with the number of functions.

-define(TALLY_MOST, 262144). % bytes of frames in one batch
-define(FILTER_MOST, 65536). % bytes of an encoded filter

%% The owner sends the numbers of hidden and open held calls (hold.h) in the same way.

%% Starts counting on the node if the figures are exact. If only some calls report their results, the match
%% specifications of these calls say so (owing/1). A hidden call that still reports its result would make a result
%% without a call. In that case, and if the node has no memory for the figures, the client counts events.
tally_begin(#{route := trees}, _, _, S) -> S; % trees_begin/2
tally_begin(#{route := tally}, #{returns := Returns, hidden := Hidden}, Functions, S = #s{tracer = State})
        when State =/= fallback, Returns =/= no_calls, Returns =/= some orelse not Hidden ->
    tally_open({tally, Functions}, S);
tally_begin(#{route := By = {by, _, _, _}}, #{returns := Returns, hidden := Hidden}, _, S = #s{tracer = State})
        when State =/= fallback, Returns =/= some orelse not Hidden ->
    try tally_open(By, S) catch error:_ -> tally_end(S) end;
tally_begin(#{route := hold}, #{returns := all}, _, S = #s{tracer = State}) when State =/= fallback ->
    tally_open(hold, S);
tally_begin(_, _, _, S) -> tally_end(S).

%% Makes the trees (tree.h) before the patterns are set, because a root makes events as soon as its pattern is set.
trees_begin(#{route := trees}, S = #s{tracer = State}) when State =/= fallback -> tally_open(trees, S);
trees_begin(_, S) -> S.

%% Repeats the call while the NIF clears old figures.
tally_open(Gate, S = #s{tracer = State}) ->
    case gate(State, Gate) of
        more -> tally_open(Gate, S);
        ok -> S#s{tally = idle};
        {error, memory} -> tally_end(S)
    end.

%% Sets the filter for counted and held calls, while nothing is traced. Without the NIF the client counts and filters.
tally_filter(_, #s{tracer = fallback}) -> ok;
tally_filter(<<>>, #s{tracer = State}) -> gate(State, {filter, <<>>, []});
tally_filter(Filter, #s{tracer = State}) when is_binary(Filter), byte_size(Filter) =< ?FILTER_MOST ->
    try
        {Steps, Programs} = binary_to_term(Filter, [safe]),
        gate(State, {filter, Steps, Programs})
    catch error:_ -> wrong
    end;
tally_filter(_, _) -> wrong.

tally_end(S = #s{tally = off}) -> S;
tally_end(S = #s{tracer = State}) -> gate(State, events), S#s{tally = off}.

%% Begins a round if the previous round has ended. So a slow line or a paused client costs no memory: until then the NIF
%% goes on adding up.
tally_look(S = #s{tally = idle}) -> awake(S#s{tally = round});
tally_look(S) -> S.

%% Begins another round at the end. A thread may count an event after the tracing has ended, so the owner repeats rounds
%% until there is nothing new.
tally_last(S = #s{last = flush}) -> tally_look(S);
tally_last(S) -> S.

%% Adds as many frames of counts and figures to the next batch as fit.
tally_ready(S = #s{counted = [Frame | Rest], metasize = Size}, Max)
        when Size =:= 0; Size + byte_size(Frame) =< ?TALLY_MOST, Size + byte_size(Frame) =< Max div 2 ->
    tally_ready(tally_add(Frame, S#s{counted = Rest}), Max);
tally_ready(S = #s{tally = round, tracer = State, metasize = Size}, Max)
        when Size =:= 0; Size < ?TALLY_MOST, Size < Max div 2 ->
    {More, Frames} = tally(State, max(1, min(?TALLY_MOST, Max div 2) - Size)),
    tally_ready(tally_took(More, tally_add(Frames, S)), Max);
tally_ready(S, _) -> S.

tally_took(more, S) -> S;
tally_took(done, S = #s{last = flush, said = false}) -> tally_waits(S#s{tally = idle, said = true}); % once: see tally_add/2
tally_took(done, S) -> S#s{tally = idle}.

%% Tells the client which durations the filter has tested: a trace that shows nothing says how near they came.
tally_times(S = #s{tracer = State}) ->
    case gate(State, times) of
        none -> S;
        Times -> meta(S, notice, [times, Times])
    end.

%% Tells the client, last of all, about the calls that have not returned, with the name of the process.
tally_waits(S0 = #s{tracer = State}) ->
    S = tally_times(S0),
    case gate(State, waits) of
        none -> S;
        {Notice, P} ->
            {Names, S1} = names_of([P], ?META_MOST, S),
            tally_add(iolist_to_binary([Names, Notice]), S1)
    end.

tally_add(<<>>, S) -> S; % a batch without news would never let the owner rest or end
tally_add(Frames, S = #s{meta = Meta, metasize = Size}) -> S#s{meta = [Meta | Frames], metasize = Size + byte_size(Frames)}.

tally_done(#s{counted = Counted, tally = Tally}) -> Counted =:= [] andalso Tally =/= round.
