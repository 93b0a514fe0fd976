%% Figures instead of events: when a client shows nothing but how often and how long, the NIF counts (tally.h), and once a second
%% the owner sends what was added. A frame for each function and thread; the frames of one look go into as many batches as
%% they need.

-define(TALLY_MOST, 262144). % bytes of frames in one batch
-define(FILTER_MOST, 1024).  % bytes of a filter: ETW_FILTER_MOST of struct etw_filter_step

%% Where calls wait for the result that decides about them (hold.h), how many are hidden, and how many are open, is told likewise.

%% Not where some of the calls report results and others do not: then only the frames tell which is which. Nor without the memory.
tally_begin(#{tally := true}, Returns, S = #s{tracer = State}) when State =/= fallback, Returns =:= all orelse Returns =:= none ->
    case gate(State, tally) of
        ok -> S#s{tally = []};
        {error, memory} -> tally_end(S)
    end;
tally_begin(#{hold := true}, all, S = #s{tracer = State}) when State =/= fallback ->
    case gate(State, hold) of
        ok -> S#s{tally = []};
        {error, memory} -> tally_end(S)
    end;
tally_begin(_, _, S) -> tally_end(S).

%% Of what is counted, or waits; set while nothing is traced. Without the NIF nothing is counted here, so nothing is filtered.
tally_filter(_, #s{tracer = fallback}) -> ok;
tally_filter(Steps, #s{tracer = State}) when is_binary(Steps), byte_size(Steps) =< ?FILTER_MOST ->
    try gate(State, Steps) catch error:badarg -> wrong end;
tally_filter(_, _) -> wrong.

tally_end(S = #s{tally = off}) -> S;
tally_end(S = #s{tracer = State}) -> gate(State, events), S#s{tally = off}.

%% While some wait the NIF goes on adding up: a slow line or a client that is paused does not make them more.
tally_look(S = #s{tally = [], tracer = State}) ->
    Tick = tick(S),
    awake(S#s{tally = [tally_frame(F, Figures, Tick) || {F, Figures} <- tally(State)]});
tally_look(S) -> S.

%% Who is at an event while the tracing ends counts it behind our back: in the end it is looked until nothing comes any more.
tally_last(S = #s{last = flush, tally = []}) -> tally_look(S);
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
tally_ready(S = #s{tally = [Frame | Rest], meta = Meta, metasize = Size}, Max)
        when Size =:= 0; Size + byte_size(Frame) =< ?TALLY_MOST, Size + byte_size(Frame) =< Max div 2 ->
    tally_ready(S#s{tally = Rest, meta = [Meta | Frame], metasize = Size + byte_size(Frame)}, Max);
tally_ready(S, _) -> S.

tally_done(#s{tally = [_ | _]}) -> false;
tally_done(_) -> true.
