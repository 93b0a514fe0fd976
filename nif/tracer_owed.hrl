%% SPDX-License-Identifier: Apache-2.0
%% Detects functions that do not return. For each traced call whose result is wanted, the VM keeps a frame on the stack
%% until the call returns. A function that ends by calling itself never returns: its frames would pile up and slow the
%% process down.
%%
%% The NIF counts the pending results of each process and function (owed.h) and asks when there are many. A process of
%% its own answers, the asker, because process_info/2 waits for the other process. It compares the size of the stack
%% with the size of the frames: real recursion keeps at least one more word for each call, a loop keeps none. The worker
%% then arms the loop's function without results. Its calls are still traced, and all other functions keep their
%% results.

-define(FRAME_WORDS, 4).  % words that the VM keeps for one pending result
-define(OWED_APART, 32).  % the fewest calls between two looks that are compared
-define(SAMPLES_MOST, 1000).

%% ---- in the owner -------------------------------------------------------------------------------------------------

asker_start() ->
    {Asker, _} = spawn_opt(?MODULE, asker, [self()], [monitor, {priority, high} | bounds(1)]),
    Asker.

%% Call it whenever the session, the asker or the worker has been replaced.
asker_tell(S = #s{session = none}) -> S;
asker_tell(S = #s{asker = Asker, tracer = Tracer, worker = Worker}) -> Asker ! {watch, Tracer, weak(S), Worker}, S.

endless(Pid, MFA, S = #s{ended = Ended}) ->
    case lists:member(MFA, Ended) of
        true -> S;
        false -> meta(S#s{ended = [MFA | Ended]}, endless, {Pid, MFA})
    end.

%% ---- in the owner, where it is the tracer itself --------------------------------------------------------------------

%% The owner counts as owed.h does, and asks the same process. Its messages are late, so it finds a loop late; it never takes recursion
%% for a loop. It counts for ?FB_OWED processes and functions at a time.
-define(FB_OWED, 20000).
-define(FB_ASK, 24). % OWED_ASK

fb_owed(Event, S = #s{armed = #armed{effects = #{frames := true}}, fb = Fb = #fb{owed = Owed}}) ->
    case {element(3, Event), element(4, Event)} of
        {call, {M, F, As}} when map_size(Owed) < ?FB_OWED ->
            MFA = {M, F, case As of _ when is_list(As) -> length(As); _ -> As end},
            Key = {element(2, Event), MFA},
            {N, Ask} = maps:get(Key, Owed, {0, ?FB_ASK}),
            Asked = case N + 1 >= Ask andalso not lists:member(MFA, S#s.ended) of
                true ->
                    Total = lists:sum([C || {{P, _}, {C, _}} <- maps:to_list(Owed), P =:= element(1, Key)]) + 1,
                    S#s.asker ! {owing, element(1, Key), MFA, {N + 1, Total, 0}},
                    infinity;
                false -> Ask
            end,
            S#s{fb = Fb#fb{owed = Owed#{Key => {N + 1, Asked}}}};
        {Tag, MFA} when Tag =:= return_from; Tag =:= exception_from ->
            Key = {element(2, Event), MFA},
            S#s{fb = Fb#fb{owed = case Owed of
                #{Key := {1, ?FB_ASK}} -> maps:remove(Key, Owed);
                #{Key := {N, Ask}} when N > 0 -> Owed#{Key := {N - 1, Ask}};
                _ -> Owed
            end}};
        _ -> S
    end;
fb_owed(_, S) -> S.

fb_answered(Pid, MFA, Answer, S = #s{fb = Fb = #fb{owed = Owed}}) ->
    Key = {Pid, MFA},
    S#s{fb = Fb#fb{owed = case Owed of
        #{Key := {N, _}} when is_integer(Answer) -> Owed#{Key := {N, N + Answer}};
        #{Key := {N, _}} when Answer =:= nests -> Owed#{Key := {N, 2 * N}};
        _ -> maps:filter(fun({P, _}, _) -> P =/= Pid end, Owed)
    end}}.

%% ---- in the asker -------------------------------------------------------------------------------------------------

asker(Owner) ->
    monitor(process, Owner),
    asker_loop(Owner, none, #{}).

%% Samples: #{{Process, Function} => the earlier look, for comparison with the next one}
asker_loop(Owner, Watched, Samples) ->
    receive
        {watch, Tracer, Session, Worker} ->
            Now = {Tracer, Session, Worker},
            asker_loop(Owner, Now, owed_ask(Owner, Now, #{}));
        owing ->
            asker_loop(Owner, Watched, owed_ask(Owner, Watched, Samples));
        {owing, Pid, MFA, Counts} ->
            asker_loop(Owner, Watched, owed_look(Owner, Watched, {Pid, MFA}, Counts, Samples));
        {'DOWN', _, _, Owner, _} ->
            ok;
        _ ->
            asker_loop(Owner, Watched, Samples)
    end.

owed_ask(_, {fallback, _, _}, Samples) -> Samples;
owed_ask(Owner, Watched = {State, _, _}, Samples) ->
    try owing(State, questions) of
        Questions ->
            lists:foldl(fun(Question, Acc) ->
                case owing(State, Question) of
                    none -> Acc;
                    Counts -> owed_look(Owner, Watched, Question, Counts, Acc)
                end
            end, Samples, Questions)
    catch
        error:badarg -> Samples % the session has ended
    end.

owed_look(Owner, Watched, Question = {Pid, MFA}, Before, Samples0) ->
    Samples = case map_size(Samples0) < ?SAMPLES_MOST of true -> Samples0; false -> #{} end,
    case process_info(Pid, [stack_size, current_function]) of
        undefined -> maps:remove(Question, Samples);
        [{_, Words}, {_, Current}] ->
            Look = {Before, owed_again(Watched, Question, Before), Words, Current =:= MFA},
            case owed_judge(Look, maps:get(Question, Samples, none)) of
                {again, More, Sample} -> owed_answer(Owner, Watched, Question, More), Samples#{Question => Sample};
                Answer -> owed_answer(Owner, Watched, Question, Answer), maps:remove(Question, Samples)
            end
    end.

owed_again({fallback, _, _}, _, Before) -> Before;
owed_again({State, _, _}, Question, _) -> case owing(State, Question) of none -> {0, 0, 0}; Counts -> Counts end.

%% Judges a look at a stack. The process may run meanwhile, so there are counts from before and after it: {of the
%% function, of the process, results}. Comparing two looks cancels older content of the stack and wrong counts (a call
%% that raised without an event). Only if the process is at the beginning of the function, the stack holds nothing else.
owed_judge({{N1, T1, R}, {N2, T2, R}, Words, AtBegin}, Sample) ->
    N = min(N1, N2),
    T = min(T1, T2),
    Rest = Words - ?FRAME_WORDS * T, % words of all other frames
    Now = {N, Rest, AtBegin},
    case Sample of
        _ when Rest < -8 - T div 8 -> forget;
        {N0, Rest0, AtBegin0} when N - N0 >= ?OWED_APART div 2 ->
            if
                Rest - Rest0 >= (N - N0) div 2 -> nests;
                10 * Rest < 9 * N; AtBegin, AtBegin0 -> endless;
                true -> {again, N, Now}
            end;
        _ -> {again, ?OWED_APART, Now}
    end;
owed_judge(_, _) -> {again, ?OWED_APART, none}.

%% If another session traces the results of the function too, its frames look like recursion, so the calls are not
%% trusted.
owed_answer(_, {State, Session, _}, {Pid, MFA}, nests) when State =/= fallback ->
    Alone = case trace:session_info(MFA) of L when is_list(L) -> L -- [Session] =:= []; _ -> true end,
    owing(State, {Pid, MFA, case Alone of true -> trusted; false -> 2 * ?OWED_APART end});
owed_answer(Owner, {State, Session, Worker}, {Pid, MFA}, endless) ->
    State =:= fallback orelse owing(State, {Pid, MFA, endless}),
    Owner ! {endless, Pid, MFA},
    Worker ! {endless, State, Session, MFA};
owed_answer(Owner, {fallback, _, _}, {Pid, MFA}, Answer) -> Owner ! {owed, Pid, MFA, Answer};
owed_answer(_, {State, _, _}, {Pid, MFA}, Answer) -> owing(State, {Pid, MFA, Answer}).

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% The function stays endless in all later sessions of this owner. A halted process goes on once its function has the new specification.
endless_do(State, Session, MFA) ->
    Ended = ended(),
    put(endless, Ended#{MFA => true}),
    case get(function) of
        {Session, Set, Mode} when not is_map_key(MFA, Ended) ->
            Changed = [{Key, New} || Scope <- [local, global, meta], Key <- [{Scope, MFA}],
                {ok, Ms} <- [maps:find(Key, Set)], New <- [resultless(Ms)], New =/= Ms],
            [try trace:function(Session, MFA, New, [Scope]) catch error:_ -> 0 end || {{Scope, _}, New} <- Changed],
            armed(Session, maps:merge(Set, maps:from_list(Changed)), Mode);
        _ -> ok
    end,
    State =:= fallback orelse try owing(State, MFA) catch error:_ -> ok end.

ended() -> case get(endless) of undefined -> #{}; Ended -> Ended end.

%% Removes the wish for results of functions that do not return from patterns that are about to be set.
without_results(Map) ->
    maps:merge(Map, maps:map(fun(_, Ms) -> resultless(Ms) end, maps:with(maps:keys(ended()), Map))).

resultless(Clauses) when is_list(Clauses) ->
    [{Head, Guards, lists:flatmap(fun
        ({message, etrace_owes}) -> [];
        ({message, {{etrace_owes, Term}}}) -> [{message, Term}];
        (Action) -> case does([Action]) of #{frames := true} -> []; _ -> [Action] end
    end, Body)} || {Head, Guards, Body} <- Clauses];
resultless(Ms) -> Ms.
