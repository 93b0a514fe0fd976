%% SPDX-License-Identifier: Apache-2.0
%% Detects functions that call themselves in a loop. For each traced call whose result is wanted, the VM keeps a frame
%% on the stack until the call returns. A function that ends by calling itself returns only after its last turn, if
%% ever: its frames would pile up and slow the process down.
%%
%% The NIF counts the pending results of each process and function (owed.h) and asks about the function when there are
%% many. A process of its own, the asker, answers, because process_info/2 waits for the other process. The asker
%% compares the size of the stack with the size of the frames for pending results: real recursion keeps at least one
%% more word for each call, a loop keeps none. If the function loops, the worker stops tracing its results. Its calls
%% are still traced, and all other functions keep their results.

-define(FRAME_WORDS, 4).  % words that the VM keeps for one pending result
-define(OWED_APART, 32).  % fewest calls between two looks that are compared
-define(OWED_BLURRED, 4). % calls until the next look, if the process made too many calls during this look
-define(SAMPLES_MOST, 1000).
-define(CALLERS_MOST, 7). % entries of a stack trace; with more, the VM may have cut it

%% ---- in the owner -------------------------------------------------------------------------------------------------

asker_start() ->
    {Asker, _} = spawn_opt(?MODULE, asker, [self()], [monitor, {priority, high} | bounds(1)]),
    Asker.

%% Tells the asker what to watch. Call it whenever the session, the asker or the worker has been replaced.
asker_tell(S = #s{session = none}) -> S;
asker_tell(S = #s{asker = Asker, tracer = Tracer, worker = Worker}) -> Asker ! {watch, Tracer, weak(S), Worker}, S.

endless(Pid, MFA, S = #s{ended = Ended}) ->
    case lists:member(MFA, Ended) of
        true -> S;
        false -> counter_begin(MFA, meta(S#s{ended = [MFA | Ended]}, case in_meta(MFA, S) of true -> root_loops; false -> endless end, {Pid, MFA}))
    end.

%% Returns true if the request has `inside` and the function has meta tracing. The functions behind `inside`, the roots,
%% always have it.
in_meta(MFA, #s{session = {_, Weak}, armed = #armed{request = #{inside := _}}}) ->
    try trace:info(Weak, MFA, meta) of {meta, Tracer} -> Tracer =/= false; _ -> false catch error:_ -> false end;
in_meta(_, _) -> false.

%% Lets a counter of the VM count the calls of the loop from now on, if the client wants only figures: a call that the
%% NIF counts costs twenty times as much. The counter must count the same calls: all of them, by all processes. The
%% owner reads the counter whether or not the worker has set it yet. A command of etrace gets no counter, because the
%% NIF cannot read it when the node halts.
counter_begin(MFA, S = #s{tally = Tally, budget = none, counters = Counters, session = {_, Weak}, options = Options,
        armed = #armed{request = Request = #{route := tally}, effects = #{flags := Flags, switches := false, silences := false}}}) when Tally =/= off ->
    case maps:get(procs, Request, [all]) =:= [all] andalso maps:get(filter, Request, <<>>) =:= <<>> andalso maps:get(limit, Options, 0) =:= 0
            andalso not is_map_key(mark, Request) andalso not is_map_key(leftover, Options) andalso not lists:member(silent, Flags) of
        true ->
            S#s.worker ! {counter, S#s.tracer, Weak, MFA},
            S#s{counters = Counters#{MFA => 0}};
        false -> S
    end;
counter_begin(_, S) -> S.

%% Adds the calls since the last reading to the next batches. If the count is lower, the code was reloaded.
counters_read(S = #s{counters = Counters}) when map_size(Counters) =:= 0 -> S;
counters_read(S = #s{counters = Counters, session = {_, Weak}}) ->
    Grown = [{MFA, N, case N >= Last of true -> N - Last; false -> N end} ||
        {MFA, Last} <- maps:to_list(Counters), {call_count, N} <- [trace:info(Weak, MFA, call_count)], is_integer(N), N =/= Last],
    lists:foldl(fun({MFA, N, Calls}, Acc = #s{counted = Frames, offered = Offered}) ->
        Acc#s{counters = (Acc#s.counters)#{MFA => N}, counted = [tally(MFA, Calls, Calls, 0) | Frames], offered = Offered + Calls}
    end, S, Grown).

%% Reads the counters once more, before the session is destroyed.
counters_end(S = #s{session = none}) -> S;
counters_end(S) ->
    Read = case cut_off(S) of none -> counters_read(S); _ -> S end,
    Read#s{counters = #{}}.

%% ---- in the owner, where it is the tracer itself --------------------------------------------------------------------

%% Counts the owed results as owed.h does, and asks the asker. Trace messages reach the owner late, so a loop is found
%% late; but recursion is never taken for a loop. Counts for at most ?FB_OWED processes and functions at a time.
-define(FB_OWED, 20000).
-define(FB_ASK, 24). % OWED_ASK

fb_owed(Event, S = #s{armed = #armed{effects = #{frames := true}}, fb = Fb = #fb{owed = Owed}}) ->
    case {element(3, Event), element(4, Event)} of
        {call, {M, F, As}} ->
            MFA = {M, F, case As of _ when is_list(As) -> length(As); _ -> As end},
            Key = {element(2, Event), MFA},
            {N, Ask, Lowest} = maps:get(Key, Owed, {0, ?FB_ASK, 0}),
            Now = case N + 1 >= Ask andalso not lists:member(MFA, S#s.ended) of
                true ->
                    Total = lists:sum([C || {{P, _}, {C, _, _}} <- maps:to_list(Owed), P =:= element(1, Key)]) + 1,
                    S#s.asker ! {owing, element(1, Key), MFA, {N + 1, Total, 0, Lowest}},
                    {N + 1, infinity, N + 1};
                false -> {N + 1, Ask, Lowest}
            end,
            S#s{fb = Fb#fb{owed = (fb_room(Key, Owed))#{Key => Now}}};
        {Tag, MFA} when Tag =:= return_from; Tag =:= exception_from ->
            Key = {element(2, Event), MFA},
            S#s{fb = Fb#fb{owed = case Owed of
                #{Key := {1, ?FB_ASK, _}} -> maps:remove(Key, Owed);
                #{Key := {N, Ask, Lowest}} when N > 0 -> Owed#{Key := {N - 1, Ask, min(N - 1, Lowest)}};
                _ -> Owed
            end}};
        _ -> S
    end;
fb_owed(_, S) -> S.

%% Makes room for a new count by forgetting any other one, because most belong to dead processes. If the forgotten one
%% belongs to a loop, its count begins again with its next call.
fb_room(Key, Owed) when map_size(Owed) < ?FB_OWED; is_map_key(Key, Owed) -> Owed;
fb_room(_, Owed) ->
    {Other, _, _} = maps:next(maps:iterator(Owed)),
    maps:remove(Other, Owed).

fb_answered(Pid, MFA, Answer, S = #s{fb = Fb = #fb{owed = Owed}}) ->
    Key = {Pid, MFA},
    S#s{fb = Fb#fb{owed = case Owed of
        #{Key := {N, _, Lowest}} when is_integer(Answer) -> Owed#{Key := {N, N + Answer, Lowest}};
        #{Key := {N, _, Lowest}} when Answer =:= nests -> Owed#{Key := {N, 2 * N, Lowest}};
        _ -> maps:filter(fun({P, _}, _) -> P =/= Pid end, Owed)
    end}}.

%% ---- in the asker -------------------------------------------------------------------------------------------------

asker(Owner) ->
    look_apart(),
    monitor(process, Owner),
    asker_loop(Owner, none, #{}).

%% Answers the questions of the NIF. Samples: #{{Process, Function} => an earlier look at the stack, to compare with the
%% next look}
asker_loop(Owner, Watched, Samples) ->
    receive
        {watch, Tracer, Session, Worker} ->
            Now = {Tracer, Session, Worker},
            asker_loop(Owner, Now, owed_begin(Owner, Now));
        owing ->
            asker_loop(Owner, Watched, owed_ask(Owner, Watched, Samples));
        {owing, Pid, MFA, Counts} ->
            asker_loop(Owner, Watched, owed_look(Owner, Watched, {Pid, MFA}, Counts, Samples));
        {'DOWN', _, _, Owner, _} ->
            ok;
        _ ->
            asker_loop(Owner, Watched, Samples)
    end.

%% Asks all questions without an answer again: an earlier asker may have been killed before it answered.
owed_begin(_, {fallback, _, _}) -> #{};
owed_begin(Owner, Watched) -> owed_ask(Owner, Watched, all_questions, [], #{}).

owed_ask(_, {fallback, _, _}, Samples) -> Samples;
owed_ask(Owner, Watched, Samples) -> owed_ask(Owner, Watched, questions, [], Samples).

%% Answers the open questions. Each look at a stack waits until its process is scheduled; new questions may open during
%% that time. Functions with an earlier look come first: a second look may show recursion, and that answers the
%% questions about the same function in all other processes.
owed_ask(Owner, Watched, Which, Left, Samples) ->
    case try owed_next(Owner, Watched, Which, Left, Samples) catch error:badarg -> Samples end of % the session has ended
        {Rest, Now} -> owed_ask(Owner, Watched, questions, Rest, Now);
        Now -> Now
    end.

%% Answers one question. Returns {the questions that are left, Samples}, or Samples if there is no question.
owed_next(Owner, Watched = {State, _, _}, Which, Left, Samples) ->
    {Second, First} = lists:partition(fun(Question) -> is_map_key(Question, Samples) end, owing(State, Which)),
    case Second ++ Left ++ First of
        [] -> Samples;
        [Question | Rest] -> {Rest, owed_asked(Owner, Watched, Question, Samples)}
    end.

owed_asked(Owner, Watched = {State, _, _}, Question, Samples) ->
    case owing(State, Question) of
        none -> owed_answer(Owner, Watched, Question, ?OWED_APART), Samples;
        Counts -> owed_look(Owner, Watched, Question, Counts, Samples)
    end.

owed_look(Owner, Watched, Question = {Pid, MFA}, Before, Samples0) ->
    Samples = case map_size(Samples0) < ?SAMPLES_MOST of true -> Samples0; false -> #{} end,
    Others = owed_others(Watched, MFA),
    case process_ask(Pid, [stack_size, current_function | [current_stacktrace || Others =/= []]]) of
        undefined ->
            owed_answer(Owner, Watched, Question, ?OWED_APART),
            maps:remove(Question, Samples);
        [{_, Words}, {_, Current} | Stack] ->
            Look = {Before, owed_again(Watched, Question, Before), Words, Current =:= MFA},
            Sample = maps:get(Question, Samples, none),
            case owed_judge(Look, Sample) of
                {again, More, Now} ->
                    owed_answer(Owner, Watched, Question, More),
                    Samples#{Question => Now};
                nests when Others =/= [] ->
                    owed_answer(Owner, Watched, Question, owed_beside(owed_theirs(Others, MFA), Look, Sample, Stack, MFA)),
                    maps:remove(Question, Samples);
                Answer ->
                    owed_answer(Owner, Watched, Question, Answer),
                    maps:remove(Question, Samples)
            end
    end.

owed_again({fallback, _, _}, _, Before) -> Before;
owed_again({State, _, _}, Question, _) -> case owing(State, Question) of none -> {0, 0, 0, 0}; Counts -> Counts end.

%% Judges a look at a stack. The process may run during the look, so there are counts from before and after the look:
%% {pending results of the function, pending results of the process, results, the lowest count of the function since the
%% last reading}. From these follow the highest and the lowest possible size of all other frames. The difference of two
%% looks does not depend on older content of the stack or on wrong counts (a call that raised without an event). But
%% this holds only while the calls of the first look are open: another recursion has other content below it. AtBegin:
%% the process is at the beginning of the function, so its stack holds nothing else.
owed_judge({{N1, T1, R, L1}, {N2, T2, R, L2}, Words, AtBegin}, Sample) ->
    N = min(N1, N2),
    High = Words - ?FRAME_WORDS * min(T1, T2),
    Low = Words - ?FRAME_WORDS * max(T1, T2),
    Now = {N, min(T1, T2), High, Low, AtBegin},
    case Sample of
        _ when High < -8 - T1 div 8 -> forget;
        {N0, _, High0, Low0, AtBegin0} when N - N0 >= ?OWED_APART div 2 ->
            Open = min(L1, L2) >= N0 - 1, % the calls of the first look are open, except perhaps the newest
            if
                Open, Low - High0 >= (N - N0) div 2 -> nests;
                10 * High < 9 * N -> endless;
                not Open -> {again, ?OWED_APART, Now};
                High - Low0 >= (N - N0) div 2 -> {again, ?OWED_BLURRED, Sample};
                AtBegin, AtBegin0 -> endless;
                true -> {again, N, Now}
            end;
        _ -> {again, ?OWED_APART, Now}
    end;
owed_judge(_, _) -> {again, ?OWED_APART, none}.

%% ---- beside other sessions ------------------------------------------------------------------------------------------

%% Judges a look if other sessions trace the function, too. The VM also keeps frames for these sessions, so a loop may
%% look like recursion. Two more signs tell a loop from recursion: the most words that the other sessions can keep, and
%% whether the function itself has a frame on the stack, as it has for each call that it waits for. If the signs
%% disagree, the calls are not trusted, and OWED_MOST limits them. Theirs: words that the other sessions keep for a
%% call.
owed_beside(Theirs, {{N1, T1, _, _}, {N2, T2, _, _}, Words, AtBegin}, {N0, T0, High0, Low0, _}, [{_, Stack}], MFA) ->
    Others = fun(T) -> Words - ?FRAME_WORDS * T - Theirs * (T - T0) end,
    Half = (min(N1, N2) - N0) div 2,
    Callers = [{M, F, A} || {M, F, A, _} <- tl(Stack)],
    case lists:member(MFA, Callers) of
        true -> case Others(max(T1, T2)) - High0 >= Half of true -> nests; false -> 2 * ?OWED_APART end;
        false when AtBegin, length(Callers) < ?CALLERS_MOST ->
            case Others(min(T1, T2)) - Low0 < Half of true -> endless; false -> 2 * ?OWED_APART end;
        false -> 2 * ?OWED_APART
    end.

owed_others({_, Session, _}, MFA) ->
    case trace:session_info(MFA) of L when is_list(L) -> L -- [Session]; _ -> [] end.

owed_theirs(Others, MFA) -> lists:sum([owed_theirs_of(Session, MFA) || Session <- Others]).

owed_theirs_of(Session, MFA) ->
    try case Session of {legacy, _} -> erlang:trace_info(MFA, match_spec); _ -> trace:info(Session, MFA, match_spec) end of
        {_, Clauses} when is_list(Clauses) ->
            case lists:any(fun({_, _, Body}) -> map_get(frames, does(Body)) end, Clauses) of true -> ?FRAME_WORDS; false -> 0 end;
        _ -> ?FRAME_WORDS % it may measure times
    catch
        error:_ -> ?FRAME_WORDS % the session has ended
    end.

owed_answer(_, {State, _, _}, {Pid, MFA}, nests) when State =/= fallback -> owing(State, {Pid, MFA, trusted});
owed_answer(Owner, {State, Session, Worker}, {Pid, MFA}, endless) ->
    State =:= fallback orelse owing(State, {Pid, MFA, endless}),
    Owner ! {endless, Pid, MFA},
    Worker ! {endless, State, Session, MFA};
owed_answer(Owner, {fallback, _, _}, {Pid, MFA}, Answer) -> Owner ! {owed, Pid, MFA, Answer};
owed_answer(_, {State, _, _}, {Pid, MFA}, Answer) -> owing(State, {Pid, MFA, Answer}).

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% Arms a function that loops without results. It stays endless in all later sessions of this owner. A halted process
%% goes on once its function has the new specification.
endless_do(State, Session, MFA) ->
    Ended = ended(),
    put(endless, Ended#{MFA => true}),
    case get(function) of
        {Session, Set, Mode} when not is_map_key(MFA, Ended) ->
            Inside = get(inside) =:= true,
            Changed = [{Key, New} || Scope <- [local, global, meta], Key <- [{Scope, MFA}],
                {ok, Ms} <- [maps:find(Key, Set)], New <- [resultless(Scope, Inside, MFA, Ms)], New =/= Ms],
            [try trace:function(Session, MFA, New, [Scope]) catch error:_ -> 0 end || {{Scope, _}, New} <- Changed],
            armed(Session, maps:merge(Set, maps:from_list(Changed)), Mode);
        _ -> ok
    end,
    State =:= fallback orelse try owing(State, MFA) catch error:_ -> ok end.

ended() -> case get(endless) of undefined -> #{}; Ended -> Ended end.

%% Changes patterns that are about to be set so that endless functions report no results. Inside: the session has roots.
without_results(Scope, Inside, Map) ->
    maps:merge(Map, maps:map(fun(MFA, Ms) -> resultless(Scope, Inside, MFA, Ms) end, maps:with(maps:keys(ended()), Map))).

%% Removes from a match specification the actions that trace the return. A root keeps them, because its result tells
%% that it has ended. The NIF rejects the further calls of such a root (inside.h).
resultless(Scope, Inside, {_, _, Arity}, Clauses) when is_list(Clauses) ->
    IsRoot = fun(Body) -> Inside andalso Scope =:= meta andalso lists:keymember(enable_trace, 1, Body) end,
    Left = [{Head, Guards, case IsRoot(Body) of true -> Body; false -> lists:flatmap(fun resultless/1, Body) end} || {Head, Guards, Body} <- Clauses],
    case Left of
        [{Head, [], []} | _] -> case takes_every(Head, Arity) of true -> true; false -> Left end; % the VM evaluates no specification
        _ -> Left
    end;
resultless(_, _, _, Ms) -> Ms.

resultless({message, etrace_owes}) -> [];
resultless({message, {{etrace_owes, Term}}}) -> [{message, Term}];
resultless(Action) -> case does([Action]) of #{frames := true} -> []; _ -> [Action] end.

takes_every(Head, Arity) -> takes_all(Head, []) andalso fits(Head, Arity).

%% Lets a counter of the VM count the calls. The first step hides the calls from the NIF and sets the counter at the
%% same time, so no call is missed or counted twice.
counter_do(Session, MFA) ->
    case get(function) of
        {Session, Set = #{{local, MFA} := Ms}, Mode} when not is_map_key({meta, MFA}, Set) ->
            case counts_every(MFA, Ms) of
                true ->
                    try
                        trace:function(Session, MFA, [{'_', [], [{message, false}]}], [local, call_count]),
                        trace:function(Session, MFA, false, [local]),
                        armed(Session, maps:remove({local, MFA}, Set), Mode)
                    catch
                        error:_ -> ok % the session has ended
                    end;
                false -> ok
            end;
        _ -> ok
    end.

counts_every(_, true) -> true;
counts_every({_, _, Arity}, Ms) when is_list(Ms) ->
    accepts(Ms) andalso lists:any(fun({Head, Guards, _}) -> Guards =:= [] andalso takes_every(Head, Arity) end, Ms);
counts_every(_, _) -> false.
