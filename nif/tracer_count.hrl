%% SPDX-License-Identifier: Apache-2.0
%% Counts calls with the VM's own call_count, call_time and call_memory. There are no events; only the counters cost
%% time. Counting uses the owner's session and selects functions like arming.
%%
%% {count, Counters, {arm, Request}}   starts counting in a fresh session. Never resets counters, because before 27.1.2
%%                                     that could crash the VM during a call
%% {read, By, Sort, Most, Whole}       By: function | process; Sort: calls | time | memory | name; at most Most rows.
%%                                     Whole: this read is the last; it reads every counter of called functions and ends
%%                                     the counting
%%
%% A read takes at most READ_MS. It reads every call_count, which takes a microsecond for each function. Reading times
%% and words takes a thousand times as long on a busy node. So a read takes times and words only of called functions,
%% those with the most new calls first, until its time is up. If a whole read is not finished, the next read continues
%% it: `more` says how many functions are left.
%%
%% A read does not pause the counters, because starting them again would reset them and miss the calls in between. A
%% whole read is the last one, so it pauses them first: a paused counter takes microseconds to read, and all figures are
%% of the same moment.
%%
%% In a module that is counted as a whole, the VM also counts compiler-generated functions. They have no row, because
%% nobody asked for them. Their time and words are added to the function that they were generated for, because the
%% counters of that function do not include them.
%%
%% The VM keeps an entry for each pair of function and calling process until the session ends. If there are too many,
%% the worker saves the figures and a fresh session continues. Calls in between are not counted. A whole read starts no
%% fresh session, because the client ends this one.
%%
%% The worker holds this state. A new worker has counted nothing, and `read` says so.

-record(count, {
    session, counters, probes, lenient,
    functions = [],  % [MFA]
    generated = #{}, % #{MFA => MFA}: compiler-generated functions, and the function that each was generated for
    left = {part, []}, % {part | by | whole, [{MFA, CallCount}]}: functions that the current read has yet to read
    ended = false,   % a whole read has paused the counters
    loaded = [],     % the node's modules at the last look
    waits = [],      % modules that had selected functions and have none now
    anew = [],       % modules whose counters are lost, found by this read
    armed,           % an #armed{} with the traced processes, for the self-check (tracer_check.hrl)
    untraced = false, % somebody has stopped the tracing of these processes
    since,           % native time
    by = function,
    seen = #{},      % #{MFA => {CallCount, Entries, Sum, [{Pid, Sum}]}}: the last read; Sum: {Calls, Micros, Words}
    base = #{},      % #{MFA => {CallCount, Sum}}: figures of earlier sessions and of earlier code
    pairs = #{},     % #{{MFA, Pid} => Sum}: figures of base by process, only the largest
    turn = 0, begun = 0,
    anews = 0        % how many times a module has lost its counters
}).

-define(COUNT_ENTRIES, 200000). % entries of all functions together
-define(COUNT_BYTES, 500000).   % bytes of an answer
-define(READ_MS, 500).          % ms of one read
-define(COUNT_SLICES, 5).       % WHOM_SLICEs for which a read waits for the schedulers
-define(COUNT_TURNS, 8).        % a function without new calls is read in one of so many reads
-define(COUNT_NAMES, 200).      % rows that get the name of their process
-define(COUNT_QUEUE, 50).       % runnable processes per scheduler above which the read asks no process

%% ---- in the owner -------------------------------------------------------------------------------------------------

counting(Id, Counters, Request, {ok, Counting}, S0) ->
    {Whom, Answer} = maps:take(whom, Counting),
    S = follow_begin(element(1, Whom), S0#s{armed = {count, Counters, Request}}),
    try flags(Request#{flags := count_flags(Counters, Request)}, #armed{whom = Whom}, S) of
        {Processes, _} -> answered(Id, {ok, Answer#{processes => Processes}}, S)
    catch
        throw:Reason -> answered(Id, {error, Reason}, disarm(S))
    end;
counting(Id, _, _, {error, Reason}, S) ->
    answered(Id, {error, Reason}, disarm(S#s{armed = failed})).

answered(none, _, S) -> S;
answered(Id, Answer, S) -> reply(Id, Answer, S).

%% Continues the counting in a fresh session.
recount(S = #s{armed = {count, Counters, Request}}) ->
    S1 = (disarm(S))#s{memory = S#s.memory},
    What = {count, Counters, {arm, Request}},
    help({ask, none, What}, ask, {weak(S1), {count_on, Counters, {arm, Request}}, get(ours), #{}}, S1).

%% ---- in the worker ------------------------------------------------------------------------------------------------

count_new() -> #count{since = erlang:monotonic_time()}.

count_start(Session, Wanted, Request = #{probes := Probes}, Old) ->
    Gates = gates(),
    {Counters, Refused} = countable(Wanted, Gates),
    Read = [probe(P) || P <- Probes],
    Counted = Request#{flags := count_flags(Counters, Request)},
    Effects = effects(Counted, [P#{match_spec := {any, true}} || P <- Read]), % counters have no specification
    Warnings = allowed(Effects, Counted, Session, Gates),
    Lenient = maps:get(allow_empty, Request, false),
    C = Old#count{session = Session, counters = Counters, probes = Read, lenient = Lenient, loaded = lists:usort(erlang:loaded()), seen = #{}, left = {part, []}, ended = false,
        armed = #armed{request = Counted, effects = Effects}},
    {Functions, Set} = count_set(C#count{functions = [], generated = #{}}, all, Lenient),
    {Whom, Unknown} = whom_of(Request),
    whom_passes(Counted, Whom),
    put(count, Set#count{armed = (Set#count.armed)#armed{whom = Whom}}),
    {ok, #{functions => length(Functions), modules => length(count_modules(Functions)),
        whom => Whom, counters => Counters, warning => Refused ++ Unknown ++ Warnings}}.

%% Returns the flags for counting. The VM counts times and memory only for processes with the flag call. No flag that
%% would make an event is set.
count_flags([call_count], _) -> [];
count_flags(_, #{flags := Flags}) ->
    [F || F <- Flags, lists:member(F, [call, silent, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link])].

%% Sets the counters of the selected functions. Returns {[MFA], #count{}}.
count_set(C, Only, Lenient) ->
    Found = count_found(C, Only, Lenient),
    {Found, count_on(Found, Found, Only =:= all, C)}.

count_found(#count{probes = Probes}, Only, Lenient) ->
    Found = [{P, [MFA || {MFA, _} <- element(1, found(P, Only, Lenient, #{force => true}))]} || P <- Probes],
    [none(P) || {P, []} <- Found, not Lenient],
    lists:usort(lists:append([F || {_, F} <- Found])).

%% Sets the counters of New, the functions of Found that have none. Setting an existing counter would reset it.
count_on(Found, New, Fresh, C = #count{session = Session, counters = Counters, functions = Before, generated = Generated}) ->
    Scope = {counters, Counters},
    Functions = lists:umerge(Before, Found),
    All = maps:from_keys(Functions, true),
    Has = maps:from_keys(Found -- New, counted),
    {Steps, Left} = plan(Scope, maps:merge(maps:from_keys(New, true), Has), Has, Fresh, count_free(Counters, All)),
    Leave = not Fresh orelse map_size(Left) > ?LEFT_LEAST,
    set(Session, Scope, Steps ++ [{MFA, false} || not Leave, MFA <- lists:sort(maps:keys(Left))], length(New)),
    For = [{MFA, Origin} || Leave, Counters =/= [call_count], MFA <- maps:keys(Left), Origin <- [origin(MFA, All)], Origin =/= none],
    C#count{functions = Functions, generated = maps:merge(Generated, maps:from_list(For))}.

%% Returns a fun that returns true for unwanted functions that may have counters, too: module_info, whose time is
%% negligible, and functions that were generated for a counted function.
count_free(Counters, All) ->
    fun(MFA = {_, F, _}) ->
        not is_map_key(MFA, All) andalso not written(F)
            andalso (Counters =:= [call_count] orelse F =:= module_info orelse origin(MFA, All) =/= none)
    end.

%% Returns the function that another function was generated for, or none: '-f/1-fun-0-' was generated for f/1.
origin({M, F, _}, All) -> origin(M, atom_to_list(F), [], All).

origin(M, [$- | Text], [], All) when Text =/= [] -> origin(M, tl(Text), [hd(Text)], All);
origin(M, [$/ | Text], Name, All) ->
    case string:to_integer(Text) of
        {A, [$- | _]} when is_integer(A) ->
            case [MFA || F <- existing([unicode:characters_to_binary(lists:reverse(Name))]), MFA <- [{M, F, A}], is_map_key(MFA, All)] of
                [MFA] -> MFA;
                [] -> origin(M, Text, [$/ | Name], All)
            end;
        _ -> origin(M, Text, [$/ | Name], All)
    end;
origin(M, [C | Text], Name = [_ | _], All) -> origin(M, Text, [C | Name], All);
origin(_, _, _, _) -> none.

%% Returns {counters that this VM supports safely, reasons why the others are left out}.
countable(Wanted, Gates) ->
    All = [call_count | lists:delete(call_count, Wanted)],
    {Counters, Wrong} = case lists:member(call_memory, All) andalso lists:keyfind(call_memory, 1, Gates) of
        {_, _, Text} -> {All -- [call_memory], [Text]};
        false -> {All, []}
    end,
    [throw({notsup, Text1}) || Text1 <- Wrong, Counters =:= [call_count]],
    {Counters, Wrong ++ [Stops || {call_time, _, Stops} <- Gates, Counters =/= [call_count]]}.

count_read(By, Sort, Most, Whole, Who) ->
    case get(count) of
        undefined -> throw(not_counting);
        C0 ->
            C1 = count_end(Whole, (count_more(C0))#count{by = By, turn = C0#count.turn + 1}),
            {Called, C2} = count_called(C1),
            C3 = count_due(Called, Whole, By =/= C0#count.by, C2),
            C = count_whose(Who, count_anew(case count_passes(C3) of
                true -> count_items(now_ms() + ?READ_MS, Sort, Most, C3);
                false -> C3 % the next read has these functions
            end)),
            Entries = maps:fold(fun(_, {_, N, _, _}, Sum) -> N + Sum end, 0, C#count.seen),
            Answer = count_answer(C, Sort, Most),
            case not Whole andalso Entries > ?COUNT_ENTRIES of
                true -> put(count, count_kept(C, Sort, Most)), {full, Answer};
                false -> put(count, C), {ok, Answer}
            end
    end.

%% Returns true if no scheduler is held. Reading times and memory waits for all schedulers, and blocks them all on OTPs
%% with the gate `call_time`. Reading call_count waits for none.
count_passes(#count{counters = Counters}) -> Counters =:= [call_count] orelse whom_pass(?COUNT_SLICES).

count_end(true, C = #count{ended = false, session = Session, counters = Counters}) ->
    trace:function(Session, {'_', '_', '_'}, pause, Counters),
    C#count{ended = true};
count_end(_, C) -> C.

%% Returns {[{MFA, CallCount}] of the functions that were called, #count{}}.
count_called(C = #count{session = Session, functions = Functions, generated = Generated}) ->
    lists:foldl(fun(MFA = {M, _, _}, {Called, Acc = #count{anew = Anew}}) ->
        pace(),
        case trace:info(Session, MFA, call_count) of
            {call_count, 0} -> {Called, Acc};
            {call_count, N} when is_integer(N) -> {[{MFA, N} | Called], Acc};
            _ -> {Called, Acc#count{anew = [M | Anew]}} % its code was reloaded, or is gone
        end
    end, {[], C}, Functions ++ maps:keys(Generated)).

%% Chooses the functions to read, in their order. A whole read, or a read with another By than before, takes all called
%% functions. Another read takes first the functions with the most new calls. The VM adds a call's time when the call
%% returns, so a function without new calls is still read in one of COUNT_TURNS reads.
count_due(_, true, _, C = #count{left = {whole, [_ | _]}}) -> C;
count_due(Called, true, _, C) -> C#count{left = {whole, Called}};
count_due(Called, false, true, C) -> C#count{left = {by, Called}};
count_due(_, false, false, C = #count{left = {by, [_ | _]}}) -> C;
count_due(Called, false, false, C = #count{turn = Turn}) ->
    Grown = lists:sort([{count_before(MFA, C) - N, MFA, N} || {MFA, N} <- Called,
        N =/= count_before(MFA, C) orelse erlang:phash2(MFA, ?COUNT_TURNS) =:= Turn rem ?COUNT_TURNS]),
    C#count{left = {part, [{MFA, N} || {_, MFA, N} <- Grown]}}.

count_before(MFA, C) -> element(1, count_seen(MFA, C)).

%% Reads functions until the time is up, at least one.
count_items(_, _, _, C = #count{left = {_, []}}) -> C;
count_items(Until, Sort, Most, C0 = #count{left = {Kind, [{MFA = {M, _, _}, N} | Left]}, seen = Seen, anew = Anew}) ->
    pace(),
    C = case count_item(MFA, N, Sort, Most, C0) of
        gone -> C0#count{left = {Kind, Left}, anew = [M | Anew]};
        Item -> C0#count{left = {Kind, Left}, seen = Seen#{MFA => Item}}
    end,
    case now_ms() < Until of
        true -> count_items(Until, Sort, Most, C);
        false -> C
    end.

%% Sets counters in modules that were loaded since the last look, and in modules that wait for selected functions.
count_more(C = #count{ended = true}) -> C;
count_more(C = #count{loaded = Old, waits = Waits, functions = Functions}) ->
    Loaded = lists:usort(erlang:loaded()),
    %% Setting an existing counter would reset it, so leave out modules that are counted already.
    Counted = maps:from_list([{M, true} || {M, _, _} <- Functions]),
    case [M || M <- ordsets:subtract(Loaded, ordsets:subtract(Old, Waits)), not is_map_key(M, Counted)] of
        [] -> C#count{loaded = Loaded};
        New ->
            {Found, Set} = count_set(C, New, true),
            Set#count{loaded = Loaded, waits = ordsets:subtract(Waits, count_modules(Found))}
    end.

count_modules(Functions) -> lists:usort([M || {M, _, _} <- Functions]).

count_seen(MFA, #count{seen = Seen}) -> maps:get(MFA, Seen, {0, 0, {0, 0, 0}, []}).

%% Sets counters in reloaded modules, also on selected functions that are new in them. Leaves existing counters alone,
%% because setting a counter again would reset it. A module that has no selected functions, or that is no longer loaded,
%% goes to #count.waits. Figures that were read from the old code are kept.
count_anew(C = #count{anew = []}) -> C;
count_anew(C0 = #count{session = Session, anew = Anew, anews = Anews, functions = Functions, generated = Generated, waits = Waits}) ->
    Modules = lists:usort(Anew),
    Found = count_found(C0, [M || M <- Modules, erlang:module_loaded(M)], true),
    New = [MFA || MFA <- Found, trace:info(Session, MFA, call_count) =:= {call_count, false}],
    {Old, Others} = lists:partition(fun({M, _, _}) -> ordsets:is_element(M, Modules) end, Functions),
    Lost = [MFA || MFA = {M, _, _} <- maps:keys(Generated), ordsets:is_element(M, Modules),
        case trace:info(Session, MFA, call_count) of {call_count, N} -> not is_integer(N); _ -> true end],
    C1 = lists:foldl(fun(MFA, Acc) -> count_moved(MFA, count_seen(MFA, Acc), Acc) end, C0,
        Lost ++ ordsets:subtract(Old, ordsets:subtract(Found, New))),
    C = count_on(Found, New, false, C1#count{functions = Others, generated = maps:without(Lost, Generated)}),
    C#count{anew = [], anews = Anews + length(Modules), waits = ordsets:union(Waits, ordsets:subtract(Modules, count_modules(Found)))}.

%% Checks whether the selected processes are still traced. Does nothing if the run queues are long, because a process
%% can only answer when it runs.
count_whose({Ours, Followed}, C = #count{session = Session, armed = Armed, untraced = false}) ->
    case erlang:statistics(total_run_queue_lengths) > ?COUNT_QUEUE * erlang:system_info(schedulers_online) of
        true -> C;
        false ->
            {Whom, Stopped} = untraced(Session, Armed, {self(), Ours, none, #{followed => Followed, asks => fun look_ask/2}}),
            C#count{armed = Armed#armed{whom = Whom}, untraced = Stopped =/= []}
    end;
count_whose(_, C) -> C.

%% Reads the figures of a function; returns `gone` if its code was reloaded since call_count was read. The calls of a
%% generated function do not count for any row.
count_item(MFA, N, Sort, Most, C = #count{generated = Generated}) when is_map_key(MFA, Generated) ->
    case count_item(MFA, N, Sort, Most, C#count{generated = #{}}) of
        {_, Entries, Sum, Pairs} -> {N, Entries, uncalled(Sum), [{P, uncalled(S)} || {P, S} <- Pairs]};
        gone -> gone
    end;
count_item(_, N, _, _, #count{counters = [call_count]}) -> {N, 0, {N, 0, 0}, []};
count_item(MFA, N, Sort, Most, #count{session = Session, counters = Counters, by = By}) ->
    Items = case Counters of % each call may stop the schedulers, so make only one
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

uncalled({_, U, W}) -> {0, U, W}.

count_sum(At, List) -> lists:foldl(fun(T, A) -> element(At, T) + A end, 0, List).

%% Returns the sums of the processes that rank highest.
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

%% Returns the sort key of a row; the smallest key comes first.
count_rank(calls, _, {N, _, _}) -> -N;
count_rank(time, _, {_, U, _}) -> -U;
count_rank(memory, _, {_, _, W}) -> -W;
count_rank(name, Name, _) -> Name.

count_add({N, U, W}, {N1, U1, W1}) -> {N + N1, U + U1, W + W1}.

count_to(Key, Sum, Map) ->
    Map#{Key => count_add(Sum, maps:get(Key, Map, {0, 0, 0}))}.

%% Moves figures of old code or of an old session to `base` and `pairs`.
count_moved(_, {0, _, _, _}, C) -> C;
count_moved(MFA, {N, _, Sum, Pairs}, C = #count{base = Base, pairs = Kept, seen = Seen}) ->
    {Row, Calls} = count_row(MFA, N, C),
    {N0, Sum0} = maps:get(Row, Base, {0, {0, 0, 0}}),
    C#count{base = Base#{Row => {Calls + N0, count_add(Sum, Sum0)}}, seen = maps:remove(MFA, Seen),
        pairs = lists:foldl(fun({P, S}, Acc) -> count_to({Row, P}, S, Acc) end, Kept, Pairs)}.

%% Returns {the function whose row has the figures, how many calls count there}.
count_row(MFA, N, #count{generated = Generated}) ->
    case Generated of #{MFA := Row} -> {Row, 0}; _ -> {MFA, N} end.

count_kept(C0 = #count{begun = Begun}, Sort, Most) ->
    C = maps:fold(fun count_moved/3, C0, C0#count.seen),
    {Answers, _} = look_ask(lists:usort([P || {_, P} <- maps:keys(C#count.pairs)]), fun is_process_alive/1),
    Gone = maps:from_list([Answer || Answer = {_, false} <- Answers]),
    Ranked = lists:sort([{count_rank(Sort, Key, Sum), Key, Sum} || {Key = {_, P}, Sum} <- maps:to_list(C#count.pairs), not is_map_key(P, Gone)]),
    C#count{pairs = maps:from_list([{Key, Sum} || {_, Key, Sum} <- lists:sublist(Ranked, Most)]), begun = Begun + 1}.

%% ---- the answer ---------------------------------------------------------------------------------------------------

%% Returns #{rows => [{M, F, A, Calls, Micros, Words, CallCount} | {M, F, A, Calls, Micros, Words, Pid, Name, Alive}],
%% total => {Rows, Calls, Micros, Words}, functions => N, time => Micros, begun => N, anew => N, untraced => boolean(),
%% more => N}.
count_answer(C = #count{seen = Seen, base = Base, by = By}, Sort, Most) ->
    Sums = maps:fold(fun(MFA, {N, _, Sum, _}, Acc) ->
        {Row, Calls} = count_row(MFA, N, C),
        {N0, Sum0} = maps:get(Row, Acc, {0, {0, 0, 0}}),
        Acc#{Row => {Calls + N0, count_add(Sum, Sum0)}}
    end, Base, Seen),
    {AllCalls, Micros, Words} = maps:fold(fun(_, {_, Sum}, Acc) -> count_add(Sum, Acc) end, {0, 0, 0}, Sums),
    All = case By of
        function -> [{count_rank(Sort, MFA, Sum), MFA, Sum, N} || {MFA, {N, Sum = {Calls1, _, _}}} <- maps:to_list(Sums), Calls1 > 0];
        process -> [{count_rank(Sort, Key, Sum), Key, Sum, 0} || {Key, Sum} <- maps:to_list(count_processes(C))]
    end,
    Top = lists:sublist(lists:sort(All), Most),
    Rows = count_rows(Top, count_known([P || {_, {{_, _, _}, P}, _, _} <- Top]), 0),
    #{rows => Rows, total => {length(All), AllCalls, Micros, Words}, functions => length(C#count.functions),
        time => erlang:convert_time_unit(erlang:monotonic_time() - C#count.since, native, microsecond), begun => C#count.begun,
        anew => C#count.anews, more => length(element(2, C#count.left)), untraced => C#count.untraced}.

count_processes(C = #count{seen = Seen, pairs = Pairs}) ->
    maps:fold(fun(MFA, {_, _, _, L}, Acc) ->
        {Row, _} = count_row(MFA, 0, C),
        lists:foldl(fun({P, Sum}, A) -> count_to({Row, P}, Sum, A) end, Acc, L)
    end, Pairs, Seen).

%% Returns #{Pid => {Name, whether the process lives}}. A process that does not answer lives. The first ones have names.
count_known(Pids) ->
    Named = maps:from_keys(lists:sublist(Pids, ?COUNT_NAMES), true),
    {Answers, _} = look_ask(lists:usort(Pids), fun(P) ->
        case is_process_alive(P) of
            true when is_map_key(P, Named) -> {look_text(name(P)), true};
            Lives -> {<<>>, Lives}
        end
    end),
    maps:from_list(Answers).

count_rows([], _, _) -> [];
count_rows(_, _, Bytes) when Bytes > ?COUNT_BYTES -> [];
count_rows([{_, Key, {N, U, W}, All} | Rest], Known, Bytes) ->
    {M, F, A} = case Key of {MFA, _} -> MFA; _ -> Key end,
    {Mb, Fb} = {atom_to_binary(M), atom_to_binary(F)},
    Row = case Key of
        {_, P} -> {Name, Lives} = maps:get(P, Known, {look_registered(P), true}), {Mb, Fb, A, N, U, W, text_of(P), Name, Lives};
        _ -> {Mb, Fb, A, N, U, W, All}
    end,
    [Row | count_rows(Rest, Known, Bytes + byte_size(Mb) + byte_size(Fb) + 150)].
