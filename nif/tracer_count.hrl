%% Counting: the VM's own call_count, call_time and call_memory on the functions that a selector means. No event is made;
%% it costs what the counters cost. The session is the owner's, the selection and its patterns are those of arming.
%%
%% {count, Counters, {arm, Request}}   begins anew, in a fresh session: counters are never reset (gate: until 27.1.2 that
%%                                     could crash the VM while somebody called)
%% {read, By, Sort, Most, Whole}       By: function | process; Sort: calls | time | memory | name; at most Most rows;
%%                                     Whole: every counter is read, though its function was not called since
%%
%% The VM keeps one entry for each process that called a function, until the session ends: when there are too many of
%% them, what was counted is kept here, and a fresh session goes on. What is called in between is not counted.
%%
%% This state lives in the worker, which may have to be begun anew: then nothing is counted, and `read` says so.

-record(count, {
    session, counters, probes, lenient,
    functions = [],  % [MFA]
    loaded = [],     % the node's modules when they were last looked at
    waits = [],      % modules that had what the probes mean, and have nothing of it now
    anew = [],       % modules that have lost counters, as this read has found
    armed,           % whose processes they are, for those who look whether they still are (tracer_check.hrl)
    untraced = false, % somebody has stopped that
    since,           % native time
    by = function,
    seen = #{},      % #{MFA => {CallCount, Entries, Sum, [{Pid, Sum}]}}: as last read; Sum: {Calls, Micros, Words}
    base = #{},      % #{MFA => {CallCount, Sum}}: from before the present session, or the present code
    pairs = #{},     % #{{MFA, Pid} => Sum}: likewise; the largest ones
    turn = 0, begun = 0,
    anews = 0        % modules that were found to have lost their counters, each time
}).

-define(COUNT_ENTRIES, 200000). % of all functions together
-define(COUNT_BYTES, 500000).   % of an answer
-define(COUNT_TURNS, 8).        % a function that is not called is read in one of so many reads
-define(COUNT_NAMES, 200).      % rows whose process is named
-define(COUNT_QUEUE, 50).       % processes that wait to run, for each scheduler: then none is asked anything

%% ---- in the owner -------------------------------------------------------------------------------------------------

counting(Id, Counters, Request, {ok, Counting}, S0) ->
    S = S0#s{armed = {count, Counters, Request}},
    {Whom, Answer} = maps:take(whom, Counting),
    try flags(Request#{flags := count_flags(Counters, Request)}, #armed{whom = Whom}, S) of
        {Processes, _} -> answered(Id, {ok, Answer#{processes => Processes}}, S)
    catch
        throw:Reason -> answered(Id, {error, Reason}, disarm(S))
    end;
counting(Id, _, _, {error, Reason}, S) ->
    answered(Id, {error, Reason}, disarm(S#s{armed = failed})).

answered(none, _, S) -> S;
answered(Id, Answer, S) -> reply(Id, Answer, S).

%% A fresh session in the same place.
recount(S = #s{armed = {count, Counters, Request}}) ->
    S1 = (disarm(S))#s{memory = S#s.memory},
    What = {count, Counters, {arm, Request}},
    help({ask, none, What}, ask, {weak(S1), {count_on, Counters, {arm, Request}}, get(ours)}, S1).

%% ---- in the worker ------------------------------------------------------------------------------------------------

count_start(Session, Wanted, Request = #{probes := Probes}, Old) ->
    Gates = gates(),
    {Counters, Refused} = countable(Wanted, Gates),
    Read = [probe(P) || P <- Probes],
    Warnings = lists:usort(lists:flatmap(fun(P) -> allowed(P, Request, Session, Gates) end, Read)),
    Lenient = maps:get(allow_empty, Request, false),
    Whom = whom_of(Request),
    C = Old#count{session = Session, counters = Counters, probes = Read, lenient = Lenient, loaded = lists:usort(erlang:loaded()), seen = #{},
        armed = #armed{request = Request#{flags := count_flags(Counters, Request)}, whom = Whom}},
    Functions = count_set(C, all, Lenient),
    put(count, C#count{functions = Functions}),
    {ok, #{functions => length(Functions), modules => length(count_modules(Functions)),
        whom => Whom, counters => Counters, warning => Refused ++ Warnings}}.

%% Times and memory are counted for processes with the call flag only.
count_flags([call_count], _) -> [];
count_flags(_, #{flags := Flags}) -> Flags -- [arity].

%% Sets the counters of what the probes mean there.
count_set(C, Only, Lenient) ->
    count_on(count_found(C, Only, Lenient), Only =:= all, C).

count_found(#count{probes = Probes}, Only, Lenient) ->
    Found = [{P, [MFA || {MFA, _} <- element(1, found(P, Only, Lenient, #{force => true}))]} || P <- Probes],
    [none(P) || {P, []} <- Found, not Lenient],
    lists:usort(lists:append([F || {_, F} <- Found])).

count_on(Functions, Fresh, #count{session = Session, counters = Counters}) ->
    patterns(Session, {counters, Counters}, maps:from_keys(Functions, true), #{}, Fresh),
    Functions.

%% {What may be counted on this VM, why the rest may not}
countable(Wanted, Gates) ->
    All = [call_count | lists:delete(call_count, Wanted)],
    {Counters, Wrong} = case lists:member(call_memory, All) andalso lists:keyfind(call_memory, 1, Gates) of
        {_, _, Text} -> {All -- [call_memory], [Text]};
        false -> {All, []}
    end,
    [throw({notsup, Text1}) || Text1 <- Wrong, Counters =:= [call_count]],
    {Counters, Wrong ++ [Stops || {call_time, _, Stops} <- Gates, Counters =/= [call_count]]}.

count_read(By, Sort, Most, Whole, Ours) ->
    case get(count) of
        undefined -> throw(not_counting);
        C0 ->
            All = Whole orelse By =/= C0#count.by,
            C1 = count_more(C0#count{by = By}),
            C = count_whose(Ours, count_anew(lists:foldl(fun(MFA, Acc) -> count_look(MFA, All, Sort, Most, Acc) end,
                C1#count{turn = C1#count.turn + 1}, C1#count.functions))),
            Entries = maps:fold(fun(_, {_, N, _, _}, Sum) -> N + Sum end, 0, C#count.seen),
            Answer = count_answer(C, Sort, Most),
            case Entries > ?COUNT_ENTRIES of
                true -> put(count, count_kept(C, Sort, Most)), {full, Answer};
                false -> put(count, C), {ok, Answer}
            end
    end.

%% Modules that were loaded since, and those that have lost what was counted, which may have it again.
count_more(C = #count{loaded = Old, waits = Waits, functions = Functions}) ->
    Loaded = lists:usort(erlang:loaded()),
    %% To set a counter that counts would put it back to zero: not in a module that selecting has loaded.
    Counted = maps:from_list([{M, true} || {M, _, _} <- Functions]),
    case [M || M <- ordsets:subtract(Loaded, ordsets:subtract(Old, Waits)), not is_map_key(M, Counted)] of
        [] -> C#count{loaded = Loaded};
        New ->
            Found = count_set(C, New, true),
            C#count{loaded = Loaded, waits = ordsets:subtract(Waits, count_modules(Found)), functions = lists:umerge(Functions, Found)}
    end.

count_modules(Functions) -> lists:usort([M || {M, _, _} <- Functions]).

%% What is cheap says whether what is not has to be read. A call that has not returned yet gets its time later.
count_look(MFA = {M, _, _}, Whole, Sort, Most, C = #count{session = Session, seen = Seen, turn = Turn, anew = Anew}) ->
    {Before, _, _, _} = count_seen(MFA, C),
    case trace:info(Session, MFA, call_count) of
        {call_count, N} when is_integer(N), N > 0 ->
            Due = Whole orelse N =/= Before orelse erlang:phash2(MFA, ?COUNT_TURNS) =:= Turn rem ?COUNT_TURNS,
            case Due andalso count_item(MFA, N, Sort, Most, C) of
                false -> C;
                gone -> C#count{anew = [M | Anew]};
                Item -> C#count{seen = Seen#{MFA => Item}}
            end;
        {call_count, 0} -> C;
        _ -> C#count{anew = [M | Anew]} % its code was loaded anew, or is gone
    end.

count_seen(MFA, #count{seen = Seen}) -> maps:get(MFA, Seen, {0, 0, {0, 0, 0}, []}).

%% What code that was loaded anew has of what the probes mean, be it new. What has its counters is left alone: to set them would put
%% them back to zero. A module that has nothing of it now, or is gone, which is not loaded for us, is one to wait for. That some of a
%% module was read before it was loaded anew makes no difference: what its old code had is kept.
count_anew(C = #count{anew = []}) -> C;
count_anew(C0 = #count{session = Session, anew = Anew, anews = Anews, functions = Functions, waits = Waits}) ->
    Modules = lists:usort(Anew),
    Found = count_found(C0, [M || M <- Modules, erlang:module_loaded(M)], true),
    New = [MFA || MFA <- Found, trace:info(Session, MFA, call_count) =:= {call_count, false}],
    {Old, Others} = lists:partition(fun({M, _, _}) -> ordsets:is_element(M, Modules) end, Functions),
    C = lists:foldl(fun(MFA, Acc) -> count_moved(MFA, count_seen(MFA, Acc), Acc) end, C0,
        ordsets:subtract(Old, ordsets:subtract(Found, New))),
    count_on(New, false, C),
    C#count{functions = lists:umerge(Others, Found), anew = [], anews = Anews + length(Modules),
        waits = ordsets:union(Waits, ordsets:subtract(Modules, count_modules(Found)))}.

%% Each who is asked has to wait for its turn, and the figures with it: not where that is far off.
count_whose(Ours, C = #count{session = Session, armed = Armed, untraced = false}) ->
    case erlang:statistics(total_run_queue_lengths) > ?COUNT_QUEUE * erlang:system_info(schedulers_online) of
        true -> C;
        false ->
            {Whom, Stopped} = untraced(Session, Armed, {self(), Ours, none, none}),
            C#count{armed = Armed#armed{whom = Whom}, untraced = Stopped =/= []}
    end;
count_whose(_, C) -> C.

%% `gone`: since it was asked whether it was called, its code was loaded anew.
count_item(_, N, _, _, #count{counters = [call_count]}) -> {N, 0, {N, 0, 0}, []};
count_item(MFA, N, Sort, Most, #count{session = Session, counters = Counters, by = By}) ->
    Items = case Counters of % each reading may stop the schedulers: one, then
        [_, Only] -> [trace:info(Session, MFA, Only)];
        _ -> case trace:info(Session, MFA, all) of {all, L} when is_list(L) -> L; _ -> [] end
    end,
    case {[T || {call_time, T} <- Items, is_list(T)], [W || {call_memory, W} <- Items, is_list(W)]} of
        {[], []} -> gone;
        {T, W} -> count_item(proplists:get_value(call_count, Items, N), lists:append(T), lists:append(W), Sort, Most, By)
    end.

count_item(N, Times, Words, Sort, Most, By) ->
    Sum = {count_sum(2, case Times of [] -> Words; _ -> Times end),
        lists:foldl(fun({_, _, S, U}, A) -> S * 1000000 + U + A end, 0, Times), count_sum(3, Words)},
    Pairs = case By of function -> []; process -> count_pairs(Times, Words, Sort, Most) end,
    {N, length(Times) + length(Words), Sum, Pairs}.

count_sum(At, List) -> lists:foldl(fun(T, A) -> element(At, T) + A end, 0, List).

%% The largest.
count_pairs(Times, Words, Sort, Most) ->
    Timed = maps:from_list([{P, {N, S * 1000000 + U, 0}} || {P, N, S, U} <- Times]),
    Both = lists:foldl(fun({P, N, W}, Acc) ->
        case Acc of
            #{P := {_, U, _}} -> Acc#{P := {N, U, W}};
            _ -> Acc#{P => {N, 0, W}}
        end
    end, Timed, Words),
    All = [X || X = {_, {N, _, _}} <- maps:to_list(Both), N > 0],
    case length(All) > Most of
        true -> [X || {_, X} <- lists:sublist(lists:sort([{count_rank(Sort, none, Sum), X} || X = {_, Sum} <- All]), Most)];
        false -> All
    end.

%% Small comes first.
count_rank(calls, _, {N, _, _}) -> -N;
count_rank(time, _, {_, U, _}) -> -U;
count_rank(memory, _, {_, _, W}) -> -W;
count_rank(name, Name, _) -> Name.

count_add({N, U, W}, {N1, U1, W1}) -> {N + N1, U + U1, W + W1}.

count_to(Key, Sum, Map) ->
    Map#{Key => count_add(Sum, maps:get(Key, Map, {0, 0, 0}))}.

%% What was counted so far for code or a session that is no more.
count_moved(_, {0, _, _, _}, C) -> C;
count_moved(MFA, {N, _, Sum, Pairs}, C = #count{base = Base, pairs = Kept, seen = Seen}) ->
    {N0, Sum0} = maps:get(MFA, Base, {0, {0, 0, 0}}),
    C#count{base = Base#{MFA => {N + N0, count_add(Sum, Sum0)}}, seen = maps:remove(MFA, Seen),
        pairs = lists:foldl(fun({P, S}, Acc) -> count_to({MFA, P}, S, Acc) end, Kept, Pairs)}.

count_kept(C0 = #count{begun = Begun}, Sort, Most) ->
    C = maps:fold(fun count_moved/3, C0, C0#count.seen),
    Ranked = lists:sort([{count_rank(Sort, Key, Sum), Key, Sum} || {Key = {_, P}, Sum} <- maps:to_list(C#count.pairs), is_process_alive(P)]),
    C#count{pairs = maps:from_list([{Key, Sum} || {_, Key, Sum} <- lists:sublist(Ranked, Most)]), begun = Begun + 1}.

%% ---- the answer ---------------------------------------------------------------------------------------------------

%% #{rows => [{M, F, A, Calls, Micros, Words, CallCount} | {M, F, A, Calls, Micros, Words, Pid, Name, Alive}],
%%   total => {Rows, Calls, Micros, Words}, functions => N, time => Micros, begun => N, anew => N,
%%   untraced => boolean()}
count_answer(C = #count{seen = Seen, base = Base, by = By}, Sort, Most) ->
    Sums = maps:fold(fun(MFA, {N, _, Sum, _}, Acc) ->
        {N0, Sum0} = maps:get(MFA, Acc, {0, {0, 0, 0}}),
        Acc#{MFA => {N + N0, count_add(Sum, Sum0)}}
    end, Base, Seen),
    {Calls, Micros, Words} = maps:fold(fun(_, {_, Sum}, Acc) -> count_add(Sum, Acc) end, {0, 0, 0}, Sums),
    All = case By of
        function -> [{count_rank(Sort, MFA, Sum), MFA, Sum, N} || {MFA, {N, Sum = {Calls1, _, _}}} <- maps:to_list(Sums), Calls1 > 0];
        process -> [{count_rank(Sort, Key, Sum), Key, Sum, 0} || {Key, Sum} <- maps:to_list(count_processes(C))]
    end,
    Rows = count_rows(lists:sublist(lists:sort(All), Most), By, 0, 0),
    #{rows => Rows, total => {length(All), Calls, Micros, Words}, functions => length(C#count.functions),
        time => erlang:convert_time_unit(erlang:monotonic_time() - C#count.since, native, microsecond), begun => C#count.begun,
        anew => C#count.anews, untraced => C#count.untraced}.

count_processes(#count{seen = Seen, pairs = Pairs}) ->
    maps:fold(fun(MFA, {_, _, _, L}, Acc) ->
        lists:foldl(fun({P, Sum}, A) -> count_to({MFA, P}, Sum, A) end, Acc, L)
    end, Pairs, Seen).

count_rows([], _, _, _) -> [];
count_rows(_, _, Bytes, _) when Bytes > ?COUNT_BYTES -> [];
count_rows([{_, Key, {N, U, W}, All} | Rest], By, Bytes, I) ->
    {M, F, A} = case Key of {MFA, _} -> MFA; _ -> Key end,
    {Mb, Fb} = {atom_to_binary(M), atom_to_binary(F)},
    Row = case Key of
        {_, P} -> {Mb, Fb, A, N, U, W, list_to_binary(pid_to_list(P)), count_name(P, I), is_process_alive(P)};
        _ -> {Mb, Fb, A, N, U, W, All}
    end,
    [Row | count_rows(Rest, By, Bytes + byte_size(Mb) + byte_size(Fb) + 150, I + 1)].

count_name(P, I) when I < ?COUNT_NAMES ->
    case name(P) of none -> <<>>; Name when is_atom(Name) -> atom_to_binary(Name); Name -> Name end;
count_name(_, _) -> <<>>.
