%% SPDX-License-Identifier: Apache-2.0
%% Traces without the NIF: the owner itself is the tracer and makes the same frames from its messages. That is expensive
%% for the node, so the limits are strict. At most 1000 events per second become frames; the others count as lost. If
%% the mailbox exceeds 10,000 messages, the tracing ends, and the messages in it count as lost.

-define(FB_RATE, 1000).
-define(FB_QUEUE, 10000).
-define(FB_LATE, 10000000). % ns: every trace message that is older than this has arrived

-record(fb, {
    limits, limit,            % limits of frame/6; events left until the limit, or infinity
    rate, tokens, filled,     % the token bucket of the rate, and when it was refilled, ns
    frames = [], bytes = 0,   % newest first
    most,                     % the most bytes of frames that wait for the client
    seen = 0, lost = {0, 0, 0, 0, 0, 0, 0, 0}, told = {0, 0, 0, 0, 0, 0, 0, 0},
    tick = 0, tracee = -1,    % tick and tracee of the last frame
    latest = 0,               % the latest tick of all frames, including those of other sections
    kinds = -1,               % mask of the wanted kinds
    labels = #{},             % report only trace tokens with these labels; #{}: all
    functions = #{},          % {M, F} => id
    known = #{}, new = [],    % known: set of tracees; new: tracees without a name yet, and {Pid, Name} (fb_named/2)
    owed = #{},               % {Process, Function} => {calls that have not returned, the number at which to ask}
    seq = 0, watermark = 0
}).

fb_new(Options) ->
    Rate = case maps:get(rate, Options, 0) of 0 -> ?FB_RATE; R -> min(R, ?FB_RATE) end,
    #fb{rate = Rate, tokens = Rate, filled = erlang:monotonic_time(nanosecond),
        most = maps:get(buffer, Options, 1048576),
        limit = case maps:get(limit, Options, 0) of 0 -> infinity; N -> N end,
        limits = {maps:get(size, Options, 1024), maps:get(depth, Options, 16), maps:get(items, Options, 1024),
            secrets(maps:get(redact, Options, []))}}.

%% Ticks are nanoseconds of the monotonic clock, plus FB_LIFT, because that clock starts far below 0.
-define(FB_LIFT, (1 bsl 60)).

fb_now() -> erlang:monotonic_time(nanosecond) + ?FB_LIFT.

%% Handles {trace_ts, Tracee, Tag, … , Time} and ignores other messages. After the limit it takes only results of
%% earlier calls, and does not count other events, because nobody asked for them.
fb_event(Event, S = #s{fb = #fb{limit = 0}}) when element(3, Event) =/= return_from, element(3, Event) =/= exception_from ->
    S;
fb_event({seq_trace, Label, Info, _}, S) -> % our tokens have flags for time stamps (tracer_tokens.hrl)
    fb_event({seq_trace, Label, Info}, S);
fb_event({seq_trace, Label, _}, S = #s{fb = #fb{labels = Labels}}) when map_size(Labels) > 0, not is_map_key(Label, Labels) ->
    S;
fb_event({seq_trace, Label, Info}, S) ->
    Who = case Info of {'receive', _, _, To, _} -> To; {_, _, From, _, _} -> From; _ -> none end,
    fb_event({trace_ts, Who, seq_trace, Label, Info, erlang:monotonic_time()}, S);
fb_event(Event, S0 = #s{}) when element(1, Event) =:= trace_ts, tuple_size(Event) >= 5 ->
    S = #s{fb = Fb} = fb_owed(Event, S0),
    case not fb_others(Event, S#s.others) andalso fb_wants(fb_kind(element(3, Event)), Fb) of
        true -> fb_wanted(Event, Fb#fb.seen + 1, fb_named(Event, S));
        false -> fb_named(Event, S)
    end;
fb_event(_, S) ->
    S.

%% Keeps the name that a process gets or loses (tracer_names.hrl).
fb_named(Event = {_, P, Tag, Name, _}, S = #s{fb = Fb, others = Others}) when is_pid(P), is_atom(Name), Tag =:= register orelse Tag =:= unregister ->
    case fb_wants(?ETW_EXIT, Fb) andalso not fb_others(Event, Others) of
        true -> S#s{fb = Fb#fb{new = [{P, Name} | Fb#fb.new]}};
        false -> S
    end;
fb_named(_, S) -> S.

%% Returns true if the event is from a process of another etrace, or is a message to such a process.
fb_others(_, []) -> false;
fb_others(Event, Others) ->
    lists:member(element(2, Event), Others) orelse
        (lists:member(element(3, Event), [send, send_to_non_existing_process]) andalso lists:member(element(5, Event), Others)).

fb_wants(none, _) -> true;
fb_wants(Kind, #fb{kinds = Kinds}) -> Kinds band (1 bsl Kind) =/= 0.

fb_wanted(Event, N, S = #s{fb = Fb}) ->
    case N band 63 =:= 0 andalso process_info(self(), message_queue_len) of
        {_, Queue} when Queue > ?FB_QUEUE -> fb_flooded(S#s{fb = fb_lost(5, Fb#fb{seen = N})});
        _ -> S#s{fb = fb_admit(Event, Fb#fb{seen = N})}
    end.

fb_flooded(S0) ->
    S = destroy(S0),
    Fb = fb_count(S#s.fb),
    guard(queue, element(5, Fb#fb.lost), S#s{fb = Fb}).

fb_count(Fb) ->
    receive Event when element(1, Event) =:= trace_ts -> fb_count(fb_lost(5, Fb#fb{seen = Fb#fb.seen + 1}))
    after 0 -> Fb
    end.

fb_lost(Reason, Fb = #fb{lost = Lost}) ->
    Fb#fb{lost = setelement(Reason, Lost, element(Reason, Lost) + 1)}.

fb_admit(_, Fb = #fb{bytes = Bytes, most = Most}) when Bytes > Most -> fb_lost(1, Fb);
fb_admit(Event, Fb = #fb{tokens = Tokens}) when Tokens >= 1 ->
    try fb_frame(fb_parse(element(3, Event), Event), fb_time(element(tuple_size(Event), Event)), element(2, Event), Fb#fb{tokens = Tokens - 1})
    catch error:_ -> fb_lost(3, Fb) % not from the VM: any process may send us such a message
    end;
fb_admit(Event, Fb = #fb{rate = Rate, filled = Filled}) ->
    Now = erlang:monotonic_time(nanosecond),
    case min(Rate, (Now - Filled) * Rate div 1000000000) of
        0 -> fb_lost(6, Fb);
        More -> fb_admit(Event, Fb#fb{tokens = More, filled = Now})
    end.

fb_time(Native) when is_integer(Native) -> erlang:convert_time_unit(Native, native, nanosecond) + ?FB_LIFT;
fb_time({Mega, Sec, Micro}) -> ((Mega * 1000000 + Sec) * 1000000 + Micro) * 1000 - erlang:time_offset(nanosecond) + ?FB_LIFT.

%% fb_kind/1 and fb_parse/2 are made of event_kinds.def. fb_parse/2 calls the function of the kind's layout. The
%% functions below return {Kind, {M, F, Arity} | none, Terms, Result}, with the terms as in etw_layout. Result: [] |
%% [Term], of the match specification.
fb_call(Kind, {_, _, _, MFA, _}) -> fb_call(Kind, MFA, []);
fb_call(Kind, {_, _, _, MFA, Result, _}) -> fb_call(Kind, MFA, [Result]).

fb_call(Kind, {M, F, Args}, Result) when is_list(Args) -> {Kind, {M, F, length(Args)}, Args, Result};
fb_call(Kind, MFA, Result) -> {Kind, MFA, arity, Result}.

fb_return(Kind, {_, _, _, MFA, Value, _}) -> {Kind, MFA, [Value], []}.

fb_return_to(Kind, {_, _, _, MFA = {_, _, _}, _}) -> {Kind, MFA, [], []};
fb_return_to(Kind, {_, _, _, _, _}) -> {Kind, undefined, [], []}.

fb_term(Kind, {_, _, _, Term, _}) -> {Kind, none, [Term], []};
fb_term(Kind, {_, _, _, Term, Result, _}) -> {Kind, none, [Term], [Result]}.

fb_extra_term(Kind, {_, _, _, Term, Extra, _}) -> {Kind, none, [Extra, Term], []};
fb_extra_term(Kind, {_, _, _, Term, Extra, Result, _}) -> {Kind, none, [Extra, Term], [Result]}.

fb_term_extra(Kind, {_, _, _, Term, Extra, _}) -> {Kind, none, [Term, Extra], []}.

fb_label(Kind, {_, _, _, Label, Info, _}) -> {Kind, none, [Label, Info], []}.

fb_frame({Kind, MFA, Terms, Result}, Time, P, Fb0) ->
    Fb1 = fb_tell(Fb0),
    Tick = max(Time, Fb1#fb.watermark + 1), % a late event gets a later tick, so the order holds
    {Deltas, Fb2} = fb_deltas(Tick, tracee(P), Fb1),
    {Function, Fb3} = fb_function(MFA, Fb2),
    {Flag, List} = case Terms of arity -> {16, []}; _ -> {0, Terms} end,
    Flags = Flag bor case Result of [] -> 0; _ -> 4 end,
    Fb4 = fb_push(frame(Kind, Flags, Deltas, Function, List ++ Result, Fb3#fb.limits), Fb3),
    Fb5 = case Fb4#fb.limit of
        Left when is_integer(Left), Kind =/= ?ETW_RETURN_FROM, Kind =/= ?ETW_EXCEPTION_FROM -> Fb4#fb{limit = Left - 1};
        _ -> Fb4
    end,
    case Fb5#fb.known of
        #{P := _} -> Fb5;
        Known when map_size(Known) > 10000 -> Fb5#fb{known = #{P => true}, new = [P | Fb5#fb.new]};
        Known -> Fb5#fb{known = Known#{P => true}, new = [P | Fb5#fb.new]}
    end.

fb_push(Frame, Fb) ->
    Fb#fb{frames = [Frame | Fb#fb.frames], bytes = Fb#fb.bytes + byte_size(Frame)}.

%% Writes an ETW_LOST frame if events were lost since the last one, so losses appear at their place in the stream.
fb_tell(Fb = #fb{lost = Lost, told = Lost}) -> Fb;
fb_tell(Fb = #fb{lost = Lost}) ->
    Counts = << <<N:64/little>> || N <- tuple_to_list(Lost) >>,
    fb_push(<<(72 bor (?ETW_LOST bsl 20)):32/little, 0:32, Counts/binary>>, Fb#fb{told = Lost}).

fb_deltas(Tick, Tracee, Fb = #fb{tick = Before, tracee = Same}) ->
    Now = Fb#fb{tick = Tick, tracee = Tracee},
    case Tick - Before of
        Delta when Delta >= 0, Delta < 16#100000000, Tracee =:= Same -> {<<Delta:32/little>>, Now};
        _ -> {<<0:32, Tick:64/little, Tracee:64/little>>, Now}
    end.

fb_function(none, Fb) -> {<<>>, Fb};
fb_function(undefined, Fb) -> {<<16#7fff:16/little, 0>>, Fb};
fb_function({M, F, Arity}, Fb = #fb{functions = Ids}) ->
    case Ids of
        #{{M, F} := Id} -> {<<Id:16/little, Arity>>, Fb};
        _ ->
            Id = map_size(Ids) rem 1024,
            Kept = case map_size(Ids) of 1024 -> #{}; _ -> Ids end,
            {Mod, Fun} = {atom_to_binary(M), atom_to_binary(F)},
            {<<(Id bor 16#8000):16/little, Arity, (byte_size(Mod)):16/little, (byte_size(Fun)):16/little, Mod/binary, Fun/binary>>,
                Fb#fb{functions = Kept#{{M, F} => Id}}}
    end.

%% Makes a batch, like drain/4 of the NIF.
fb_drain(Max, Own, Last, S = #s{fb = Fb0}) ->
    Now = fb_now(),
    Fb = case Last of true -> fb_tell(Fb0); false -> Fb0 end,
    {Now1, Later} = fb_fit(lists:reverse(Fb#fb.frames), Max - 56 - 80 - byte_size(Own), []),
    Empty = Later =:= [],
    Mark = if Empty, Last -> Now; Empty -> Now - ?FB_LATE; true -> Fb#fb.watermark end,
    %% Frames in the owner's sections are not later than now
    Latest = case Own of <<>> -> max(Fb#fb.tick, Fb#fb.latest); _ -> Now end,
    Held = Latest > Mark,
    Waited = Latest > Fb#fb.watermark andalso not Held,
    Status = case Empty of true -> 0; false -> 1 end bor case Held of true -> 2; false -> 0 end
        bor case Fb#fb.limit of 0 -> 4; _ -> 0 end,
    case Now1 =:= [] andalso Own =:= <<>> andalso not Last andalso not Waited of
        true ->
            {none, lists:reverse(Fb#fb.new), Status, S#s{fb = Fb#fb{new = []}}};
        false ->
            Done = Last andalso Empty,
            Frames = iolist_to_binary(Now1),
            Ring = section(0, Fb#fb.seen, Fb#fb.lost, Frames),
            Sections = 1 + sections(Own, 0),
            Size = 56 + byte_size(Own) + byte_size(Ring),
            Flags = case Empty of true -> 0; false -> 1 end bor case Done of true -> 2; false -> 0 end,
            Watermark = max(Mark, Fb#fb.watermark),
            Mono = Now - ?FB_LIFT,
            Batch = iolist_to_binary([<<16#42575445:32/little, Size:32/little, (Fb#fb.seq + 1):64/little, Now:64/little, Mono:64/little,
                (Mono + erlang:time_offset(nanosecond)):64/little, Watermark:64/little, Sections:32/little, Flags:32/little>>, Own, Ring]),
            {Batch, lists:reverse(Fb#fb.new), Status, S#s{fb = Fb#fb{frames = lists:reverse(Later), bytes = Fb#fb.bytes - byte_size(Frames),
                seq = Fb#fb.seq + 1, watermark = Watermark, latest = Latest, new = []}}}
    end.

sections(Own, At) when At >= byte_size(Own) -> 0;
sections(Own, At) -> 1 + sections(Own, At + 80 + field(Own, At + 4, 4)).

fb_fit([Frame | Rest], Room, Taken) when byte_size(Frame) =< Room -> fb_fit(Rest, Room - byte_size(Frame), [Frame | Taken]);
fb_fit(Rest, _, Taken) -> {lists:reverse(Taken), Rest}.
