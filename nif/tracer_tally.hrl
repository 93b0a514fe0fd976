%% Figures instead of events: when a client shows nothing but how often and how long, the NIF counts (tally.h), and once a second
%% the owner sends what was added, a frame for each function. The NIF tells of a bounded number of functions in one call, and the owner
%% asks for more when it has room for them in a batch. So neither a call nor the owner's heap grows with the number of functions.

-define(TALLY_MOST, 262144). % bytes of frames in one batch
-define(NOTHING, {false, []}). % #s.tally where no round has begun and no frame waits
-define(FILTER_MOST, 1024).  % bytes of a filter: ETW_FILTER_MOST of struct etw_filter_step

%% Where calls wait for the result that decides about them (hold.h), how many are hidden, and how many are open, is told likewise.

%% Where some calls report results and others do not, those that do say so (owing/1). A call that is hidden and still reports its result
%% would make a result without a call, so then the client counts events. It also does without memory here.
tally_begin(#{tally := true}, #{returns := Returns, hidden := Hidden}, Functions, S = #s{tracer = State})
        when State =/= fallback, Returns =/= no_calls, Returns =/= some orelse not Hidden ->
    tally_open({tally, Functions}, S);
tally_begin(#{hold := true}, #{returns := all}, _, S = #s{tracer = State}) when State =/= fallback ->
    tally_open({hold, 0}, S);
tally_begin(_, _, _, S) -> tally_end(S).

%% Clearing the figures before takes several calls.
tally_open(Gate, S = #s{tracer = State}) ->
    case gate(State, Gate) of
        more -> tally_open(Gate, S);
        ok -> S#s{tally = ?NOTHING};
        {error, memory} -> tally_end(S)
    end.

%% Of what is counted, or waits; set while nothing is traced. Without the NIF nothing is counted here, so nothing is filtered.
tally_filter(_, #s{tracer = fallback}) -> ok;
tally_filter(Steps, #s{tracer = State}) when is_binary(Steps), byte_size(Steps) =< ?FILTER_MOST ->
    try gate(State, Steps) catch error:badarg -> wrong end;
tally_filter(_, _) -> wrong.

tally_end(S = #s{tally = off}) -> S;
tally_end(S = #s{tracer = State}) -> gate(State, events), S#s{tally = off}.

%% Begins a round, unless the one before is not over yet: then a slow line or a paused client costs no memory, for the NIF goes on
%% adding up.
tally_look(S = #s{tally = ?NOTHING}) -> awake(S#s{tally = {true, []}});
tally_look(S) -> S.

%% A thread that is at an event while the tracing ends counts the event later. So the owner looks until nothing comes any more.
tally_last(S = #s{last = flush}) -> tally_look(S);
tally_last(S) -> S.

tally_frame(Function, Figures, Tick) ->
    Named = case Function of
        undefined -> <<16#7fff:16/little, 0>>; % ETW_NO_FUNCTION
        {M, F, A} ->
            Module = atom_to_binary(M),
            Name = atom_to_binary(F),
            <<16#8000:16/little, A, (byte_size(Module)):16/little, (byte_size(Name)):16/little, Module/binary, Name/binary>>
    end,
    frame_of(52, 3, <<0:32, Tick:64/little, 0:64>>, <<Named/binary, Figures/binary>>).

%% As many as fit go into the next batch.
tally_ready(S = #s{tally = {Round, [Frame | Rest]}, meta = Meta, metasize = Size}, Max)
        when Size =:= 0; Size + byte_size(Frame) =< ?TALLY_MOST, Size + byte_size(Frame) =< Max div 2 ->
    tally_ready(S#s{tally = {Round, Rest}, meta = [Meta | Frame], metasize = Size + byte_size(Frame)}, Max);
tally_ready(S = #s{tally = {true, []}, tracer = State}, Max) ->
    {More, Found} = tally(State),
    Tick = tick(S),
    tally_ready(S#s{tally = {More =:= more, [tally_frame(F, Figures, Tick) || {F, Figures} <- Found]}}, Max);
tally_ready(S, _) -> S.

tally_done(#s{tally = Tally}) -> Tally =:= off orelse Tally =:= ?NOTHING.
