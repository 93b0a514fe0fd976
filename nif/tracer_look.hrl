%% SPDX-License-Identifier: Apache-2.0
%% Looks at processes for the commands that show what they do now: {ask, {look, Map}}.
%%
%% process_info/2 waits until the other process answers. A process in a NIF or in a large garbage collection answers
%% only when that has ended. So the worker does not ask itself: another process, the looker, asks LOOK_PART processes at
%% a time. If the looker waits for the same process for two times LOOK_STUCK, the worker kills the looker and puts that
%% process aside. Each process that was put aside gets a looker of its own and some more time. If it does not answer in
%% that time either, it is `silent`.
%%
%% A process must run to answer about its stack, but its status and reductions can be read while it waits. If a process
%% waits and its reductions have not changed since the last look, it has the same stack, so the looker does not ask
%% again.
%%
%% Map: what     stacks | processes | names | why (tracer_why.hrl) | check (tracer_health.hrl)
%%      who      [Who] (tracer_whom.hrl); [] for all processes
%%      anew     true: begins a new list of processes; false: goes on where the last question ended
%%      most     the most processes to look at for this answer
%%      share    percent of one core that looking may take
%%      patience ms that the answer may wait for processes that do not answer
%%   and for `stacks`
%%      pids     how many processes of each stack and initial call are in the answer
%%   and for `processes`
%%      sort     queue | memory | binaries | reductions: which processes are in the answer
%%      growth   true: sort by the growth since the last look
%%      rows     how many processes are in the answer
%% Answer: a map of
%%      looked, left           how many processes answered, and how many are left for the next question
%%      us                     microseconds that the looking took
%%      silent                 [{Pid, Name}]
%%   for `names`
%%      names                  [{Pid, Name}]
%%   for `stacks`
%%      functions              [{M, F, A}]
%%      stacks                 [{Status, [Function], Initial, Idle, Count, [Pid], Ms}]: Function: its place in
%%                             `functions`, from 0, innermost first; Initial: the function with which these processes
%%                             began, -1 for a fun; Idle: these processes wait for any message in the loop of a
%%                             behaviour or of OTP; [Pid]: some of these processes; Ms: at least so long the process
%%                             that waits longest has not run
%%   for `processes`, when nothing is left
%%      rows                   [#{...}], see look_row/3
%%      total                  {Processes, Queue, Memory, Binaries, Reductions}: sums; Binaries is 0 unless `sort` is
%%                             binaries
%%      since                  us between this look and the last one, -1 for none

-define(LOOK_PART, 256).
-define(LOOK_STUCK, 20).      % ms for which the worker waits for the looker
-define(LOOK_LISTED, 1000).   % the most ms for which a list of all processes is used
-define(LOOK_AHEAD, 5000).    % us that looking may take beyond its share before the worker sleeps
-define(LOOK_APART, 100).     % processes that are put aside for one answer
-define(LOOK_PAGE, #{stacks => 1000, names => 1000, processes => 20000, check => 20000}). % most for one answer
-define(LOOK_LONGEST, 1000).  % ms for one answer; the next answer has the rest of its processes
-define(LOOK_PIDS, 1000).     % most processes in the answer for a stack
-define(LOOK_ROWS, 1000).     % most processes in one answer
-define(LOOK_SEEN, 300000).   % most processes that are compared with the last look
-define(LOOK_MS, 3000).       % ms for one question to many processes, ports or functions
-define(LOOK_PATIENCE, 1000). % ms that look_ask/2 waits for processes that do not answer

%% Names are text: the node need not have these atoms.
-define(LOOK_LOOPS, [
    {<<"gen_server">>, <<"loop">>}, {<<"gen_server">>, <<"loop_hibernate">>}, {<<"gen_statem">>, <<"loop">>},
    {<<"gen_statem">>, <<"loop_receive">>}, {<<"gen_statem">>, <<"loop_hibernate">>}, {<<"gen_event">>, <<"fetch_msg">>},
    {<<"gen_server2">>, <<"process_next_msg">>}, {<<"gen_batch_server">>, <<"loop_wait">>}, {<<"erlang">>, <<"hibernate">>},
    {<<"application_master">>, <<"loop_it">>}, {<<"application_master">>, <<"main_loop">>}, {<<"code_server">>, <<"loop">>},
    {<<"dist_util">>, <<"con_loop">>}, {<<"erl_prim_loader">>, <<"loop">>}, {<<"erts_code_purger">>, <<"wait_for_request">>},
    {<<"erts_dirty_process_signal_handler">>, <<"msg_loop">>}, {<<"erts_literal_area_collector">>, <<"msg_loop">>},
    {<<"erts_trace_cleaner">>, <<"loop">>}, {<<"global">>, <<"loop_the_locker">>}, {<<"global">>, <<"loop_the_registrar">>},
    {<<"global_group">>, <<"global_group_check_dispatcher">>}, {<<"group">>, <<"server_loop">>}, {<<"init">>, <<"loop">>},
    {<<"logger_std_h">>, <<"file_ctrl_loop">>}, {<<"net_kernel">>, <<"ticker_loop">>}, {<<"prim_file">>, <<"helper_loop">>},
    {<<"prim_tty">>, <<"reader_loop">>}, {<<"prim_tty">>, <<"writer_loop">>}, {<<"rpc">>, <<"nodes_observer_loop">>},
    {<<"socket_registry">>, <<"loop">>}, {<<"standard_error">>, <<"server_loop">>}, {<<"user">>, <<"server_loop">>}]).

-record(scan, {
    what, items,
    named, filters,           % all | [Pid]: processes that the client named; what selects among the others
    pids = [],                % left to look at
    answered = 0,
    began, before = none,     % us: when this look began; when the last look began
    stuck = #{},              % processes that did not answer the last time
    %% #{Pid => Values}, from the last look and from this one. For stacks, Values is {the reductions that the process
    %% still has if it has not run, ms: since when it has not run, {Status, Stack, Initial, Hash} | other}.
    seen = #{}, now = #{},
    top = [],                 % [{Key, Pid, Values}]; for `check`, the result of check_found/2
    total = {0, 0, 0, 0, 0}
}).

%% ---- in the worker ------------------------------------------------------------------------------------------------

look(Map = #{what := why}, Ours) -> {ok, why(Map, Ours)};
look(Map, Ours) ->
    Looker = look_start(),
    try look(Map, Ours, Looker) after look_end(Looker) end.

look(Map = #{what := What, who := Who, anew := Anew, most := Most, share := Share, patience := Patience}, Ours, Looker) ->
    L0 = case {Anew, get(scan)} of
        {false, L} when is_record(L, scan), L#scan.what =:= What -> L;
        {_, Before} -> look_begin(Map, look_listing(Looker, Ours), Before)
    end,
    {Part, Rest} = look_split(min(Most, map_get(What, ?LOOK_PAGE)), L0#scan.pids, []),
    Begun = now_us(),
    Until = case What of names -> infinity; _ -> now_ms() + ?LOOK_LONGEST end,
    {Found, Silent, Left} = look_at(Looker, Part, L0, Share, Patience, Until),
    {Others, Rows} = lists:partition(fun(Row) -> look_is_other(Row, L0) end, Found),
    L1 = L0#scan{pids = Left ++ Rest, answered = L0#scan.answered + length(Rows) + length(Silent),
        now = lists:foldl(fun({P, {_, Reductions}}, Now) -> look_keep(P, {Reductions, 0, other}, Now) end, L0#scan.now, Others),
        stuck = maps:merge(maps:without(Part -- Left, L0#scan.stuck), maps:from_keys(Silent, true))},
    L1#scan.pids =:= [] andalso L1#scan.answered =:= 0 andalso look_none(Who),
    {Answer, L2} = look_answer(Map, Rows, L1),
    What =:= names orelse put(scan, L2),
    {ok, Answer#{looked => length(Rows), left => length(L1#scan.pids), us => now_us() - Begun,
        silent => [{text_of(P), look_registered(P)} || P <- lists:sublist(Silent, ?LOOK_APART)]}}.

look_begin(#{what := names, who := Who}, _, _) ->
    #scan{what = names, items = name_items(), named = all, filters = [], began = now_us(),
        pids = [P || {pid, Text} <- Who, P <- [list_to_pid(binary_to_list(Text))], node(P) =:= node()]};
look_begin(Map = #{what := What, who := Who}, List, Before) ->
    Named = [W || W <- Who, not look_filters(W)],
    Masters = [{group_leader, M} || {application, Text} <- Who, M <- look_masters(Text)],
    Filters = Masters ++ [{initial, MFA} || {initial, MFA, _} <- Who],
    All = Who =:= [] orelse lists:any(fun is_atom/1, Named),
    Chosen = case All of true -> all; false -> lists:usort(lists:flatmap(fun who/1, Named)) end,
    Pids = case All orelse Filters =/= [] of true -> List(); false -> Chosen end,
    L = #scan{what = What, items = look_items(Map, Filters), named = Chosen, filters = Filters, pids = look_mixed(Map, Pids), began = now_us()},
    case Before of
        %% Only a look with the same items can be compared with: one without binaries does not tell how much they grew.
        #scan{what = What, items = Items, now = Now, stuck = Stuck, began = Began} when Items =:= L#scan.items ->
            L#scan{seen = Now, stuck = Stuck, before = Began};
        _ -> L
    end.

%% Shuffles the processes if one answer has no room for all, so that the first answers have a random sample.
look_mixed(#{what := stacks, most := Most}, Pids) when length(Pids) > Most ->
    Salt = erlang:unique_integer(),
    [P || {_, P} <- lists:keysort(1, [{erlang:phash2({P, Salt}), P} || P <- Pids])];
look_mixed(_, Pids) -> Pids.

%% Returns a fun that lists the processes. Listing takes 0.6 ms even for few processes, because the VM reads its whole
%% table. The VM numbers processes in order until the table is full. So if this looker has the number after that of the
%% looker of the last list, no process has started in between, and the list is used again. When the table was full,
%% numbers are used again, so a list is used for at most a second.
look_listing({Looker, _}, Ours) ->
    fun() ->
        Number = look_number(Looker),
        {Pids, Until} = case get(listed) of
            {Last, L, Until0} when Number =:= Last + 1 -> {L, Until0};
            _ -> {processes() -- ([Looker | Ours] ++ look_others()), now_ms() + ?LOOK_LISTED}
        end,
        put(listed, {case now_ms() < Until of true -> Number; false -> none end, Pids, Until}),
        Pids
    end.

%% Returns the processes of all etraces on the node. Finds their lookers, too, because the workers monitor them. Does
%% not ask the owner, which may not know the other etraces yet.
look_others() ->
    Others = ours_of(owners()),
    Others ++ [P || W <- Others, is_pid(W), L <- [process_value(W, monitors)], is_list(L), {process, P} <- L,
        is_pid(P), node(P) =:= node(), {M, looker, 1} <- [process_value(P, {dictionary, '$initial_call'})], companion(M)].

look_number(P) ->
    [_, Number, _] = string:lexemes(pid_to_list(P), "."),
    list_to_integer(Number).

look_filters({application, _}) -> true;
look_filters({initial, _, _}) -> true;
look_filters(new) -> throw(bad_request);
look_filters(_) -> false.

look_masters(Text) ->
    case [M || A <- existing([Text]), M <- [application_controller:get_master(A)], is_pid(M)] of
        [] -> throw({no_app, Text, []});
        Masters -> Masters
    end.

look_none([{initial, _, Text} | _]) -> throw({no_initial, Text});
look_none(_) -> ok.

look_items(#{what := check}, _) -> check_items();
look_items(#{what := stacks}, Filters) -> look_stack_items() ++ look_filter_items(Filters);
look_items(#{sort := Sort}, Filters) ->
    [message_queue_len, memory, reductions] ++ [garbage_collection_info || Sort =:= binaries] ++
        look_filter_items(Filters).

look_stack_items() -> [current_stacktrace, current_function, status, reductions, {dictionary, '$initial_call'}, initial_call].

look_filter_items([]) -> [];
look_filter_items(_) -> [group_leader, {dictionary, '$initial_call'}, initial_call].

look_split(0, Rest, Acc) -> {lists:reverse(Acc), Rest};
look_split(_, [], Acc) -> {lists:reverse(Acc), []};
look_split(N, [P | Rest], Acc) -> look_split(N - 1, Rest, [P | Acc]).

%% ---- answers ------------------------------------------------------------------------------------------------------

look_answer(#{what := names}, Rows, L) ->
    {#{names => [{text_of(P), look_text(Name)} || {P, Name} <- Rows]}, L};
look_answer(#{what := check}, Rows, L) ->
    Found = check_found(Rows, L#scan.top),
    case L#scan.pids of
        [] -> {check_answer(Found), L#scan{top = []}};
        _ -> {#{}, L#scan{top = Found}}
    end;
look_answer(#{what := stacks, pids := Most}, Rows, L) ->
    {Groups, Now} = lists:foldl(fun(Row, Acc) -> look_group(Row, L, now_ms(), min(Most, ?LOOK_PIDS), Acc) end, {#{}, L#scan.now}, Rows),
    Functions = lists:usort([MFA || {{_, Stack, Initial, _}, _, _, _} <- maps:values(Groups), MFA <- [Initial | Stack], MFA =/= none]),
    Numbers = maps:from_list([{none, -1} | lists:zip(Functions, lists:seq(0, length(Functions) - 1))]),
    {#{functions => [look_function(MFA) || MFA <- Functions],
        stacks => [{Status, [map_get(MFA, Numbers) || MFA <- Stack], map_get(Initial, Numbers), Status =:= waiting andalso look_loop(Stack),
            Count, [text_of(P) || P <- lists:reverse(Pids)], Ms} || {{Status, Stack, Initial, _}, Count, Pids, Ms} <- maps:values(Groups)]}, L#scan{now = Now}};
look_answer(#{what := processes, sort := Sort, growth := Growth, rows := Most, patience := Patience}, Rows, L0) ->
    L = lists:foldl(fun(Row, A) -> look_rank(Row, Sort, Growth, A) end, L0, Rows),
    Top = lists:sublist(lists:reverse(lists:sort(L#scan.top)), min(Most, ?LOOK_ROWS)),
    case L#scan.pids of
        [] ->
            Details = L#scan{what = details, items = name_items() ++ look_details(), named = all, filters = []},
            {Found, _} = look_at(look_start(), [P || {_, P, _} <- Top], Details, 100, Patience),
            By = maps:from_list(Found),
            {#{rows => [look_row(P, Values, maps:get(P, By, none), L) || {_, P, Values} <- Top],
                total => L#scan.total, since => case L#scan.before of none -> -1; Before -> L#scan.began - Before end}, L#scan{top = []}};
        _ ->
            {#{}, L#scan{top = Top}}
    end.

look_is_other({_, {other, _}}, _) -> true;
look_is_other({P, {same, _}}, #scan{seen = Seen}) -> element(3, map_get(P, Seen)) =:= other;
look_is_other(_, _) -> false.

%% Adds a process to the group of its stack. Asking a process for its stack costs the process one reduction.
look_group({P, {same, Reductions}}, #scan{seen = Seen}, Ms, Most, Acc) ->
    {_, Since, Known} = map_get(P, Seen),
    look_count(P, Reductions, Since, Known, Ms, Most, Acc);
look_group({P, {Status, Stack, Initial, Reductions}}, #scan{seen = Seen}, Ms, Most, Acc) ->
    Since = case Seen of #{P := {Before, At, _}} when Reductions =< Before -> At; _ -> Ms end,
    look_count(P, Reductions + 1, Since, {Status, Stack, Initial, erlang:phash2({Status, Stack, Initial})}, Ms, Most, Acc).

%% Adds a process to the group of processes with its stack. Finds the group by a hash, because comparing stacks takes
%% long. Processes of a group share the memory of the stack, so that comparing their stacks ends at once.
look_count(P, Reductions, Since, Known = {_, _, _, Hash}, Ms, Most, {Groups, Now}) ->
    {Key, {Shared, N, Pids, Longest}} = case Groups of
        #{Hash := Group = {Known, _, _, _}} -> {Hash, Group};
        #{Hash := _} -> {Known, maps:get(Known, Groups, {Known, 0, [], 0})};
        _ -> {Hash, {Known, 0, [], 0}}
    end,
    {Groups#{Key => {Shared, N + 1, case N < Most of true -> [P | Pids]; false -> Pids end, max(Longest, Ms - Since)}},
        look_keep(P, {Reductions, Since, Shared}, Now)}.

look_keep(P, Values, Now) when map_size(Now) < ?LOOK_SEEN -> Now#{P => Values};
look_keep(_, _, Now) -> Now.

look_rank({P, Values = {Queue, Memory, Binaries, Reductions}}, Sort, Growth, L = #scan{top = Top, total = {N, Q, M, B, R}}) ->
    Key = element(look_column(Sort), case Growth of true -> look_growth(P, Values, L); false -> Values end),
    L#scan{top = [{Key, P, Values} | Top], now = look_keep(P, Values, L#scan.now),
        total = {N + 1, Q + Queue, M + Memory, B + Binaries, R + Reductions}}.

look_column(queue) -> 1;
look_column(memory) -> 2;
look_column(binaries) -> 3;
look_column(reductions) -> 4.

%% Returns the growth since the last look. A new process has grown from nothing.
look_growth(P, {Queue, Memory, Binaries, Reductions}, #scan{seen = Seen, before = Before}) when Before =/= none ->
    {Q, M, B, R} = maps:get(P, Seen, {0, 0, 0, 0}),
    {Queue - Q, Memory - M, Binaries - B, Reductions - R};
look_growth(_, _, _) -> {0, 0, 0, 0}.

look_details() ->
    [{dictionary, '$ancestors'}, parent, {dictionary, '$callers'}, group_leader, status, current_stacktrace, current_function, garbage_collection_info, total_heap_size].

%% Returns the row of a process, without the details if the process did not answer again. Sizes are bytes. growth:
%% {Queue, Memory, Binaries, Reductions}.
look_row(P, Values = {Queue, Memory, _, Reductions}, Details, L) ->
    Row = #{pid => text_of(P), queue => Queue, memory => Memory, least => Queue > ?PROCESS_WALK, reductions => Reductions, growth => look_growth(P, Values, L)},
    case Details of
        none -> Row#{name => look_registered(P)};
        {Name, Began, Ancestors, Callers, Leader, Status, Stack, Heaps, Words, {Binaries, About}} ->
            Bytes = erlang:system_info(wordsize),
            Heap = fun(Item) when is_list(Heaps) -> proplists:get_value(Item, Heaps, 0) * Bytes; (_) -> 0 end,
            Initial = maps:from_list([{initial, look_function(MFA)} || MFA <- [Began], MFA =/= none]),
            Known = maps:merge(Row, Initial),
            Known#{name => look_text(Name), idle => Status =:= waiting andalso Queue =:= 0 andalso look_loop(Stack),
                ancestors => Ancestors, callers => Callers, application => look_application(Leader), status => Status,
                stack => [look_function(MFA) || MFA <- lists:sublist(Stack, 4)],
                binaries => Binaries, about => About, total_heap => case Words of ?TOO_LARGE -> 0; _ -> Words * Bytes end,
                old_heap => Heap(old_heap_block_size), stack_size => Heap(stack_size), fragments => Heap(mbuf_size)}
    end.

look_application(Leader) ->
    try application_controller:get_application(Leader) of
        {ok, Name} -> atom_to_binary(Name);
        _ -> <<>>
    catch _:_ -> <<>>
    end.

look_text(none) -> <<>>;
look_text(Name) when is_atom(Name) -> atom_to_binary(Name);
look_text(Name) -> Name.

%% ---- asking the processes -----------------------------------------------------------------------------------------

%% Calls Ask(Pid) for each process, in a looker. Returns {[{Pid, Result}], the processes that did not answer in time},
%% without the processes for which Ask failed.
look_ask([], _) -> {[], []};
look_ask(Pids, Ask) ->
    L = #scan{what = ask, items = Ask, named = all, filters = []},
    {Rows, Silent, Left} = look_at(look_start(), Pids, L, 100, ?LOOK_PATIENCE, now_ms() + ?LOOK_MS),
    {Rows, Silent ++ Left}.

%% Returns {[{Pid, Values}], the processes that did not answer}.
look_at(Looker, Pids, L, Share, Patience) ->
    {Rows, Silent, []} = look_at(Looker, Pids, L, Share, Patience, infinity),
    {Rows, Silent}.

%% Like look_at/5, but stops at the time Until and also returns the processes that are left. Asking a process that waits
%% for a busy scheduler takes up to twice ?LOOK_STUCK. A thousand such processes would take 40 s, and the client gives
%% up after 30 s.
look_at(Looker, Pids, L, Share, Patience, Until) ->
    {Known, Rest} = lists:partition(fun(P) -> is_map_key(P, L#scan.stuck) end, Pids),
    {Late, Rows, Left} = look_each(Rest, L, Looker, {Share, now_us(), 0}, Until, {lists:sublist(Known, ?LOOK_APART), []}),
    Lookers = maps:from_list([begin look_send(Pid, Ref, [P], L), {Ref, {Pid, P}} end || P <- Late, {Pid, Ref} <- [look_start()]]),
    {More, Silent} = look_wait(Lookers, now_ms() + Patience, []),
    {More ++ Rows, Silent ++ lists:nthtail(min(?LOOK_APART, length(Known)), Known), Left}.

look_each([], _, Looker, _, _, {Late, Rows}) ->
    look_end(Looker),
    {Late, Rows, []};
look_each(Pids, L, Looker = {Pid, Ref}, Pace, Until, {Late, Rows}) ->
    {Part, Rest} = look_split(?LOOK_PART, Pids, []),
    look_send(Pid, Ref, Part, L),
    case look_heard(Looker, none) of
        {ok, New} -> look_next(Rest, L, Looker, look_rest(Pace), Until, {Late, New ++ Rows});
        {stuck, P} -> look_next(lists:delete(P, Pids), L, look_start(), Pace, Until, {[P | Late], Rows})
    end.

look_next(Pids = [_ | _], L, Looker, Pace, Until, Found = {Late, Rows}) ->
    case now_ms() > Until of % an atom is greater than a number
        true -> look_end(Looker), {Late, Rows, Pids};
        false -> look_each(Pids, L, Looker, Pace, Until, Found)
    end;
look_next([], L, Looker, Pace, Until, Found) -> look_each([], L, Looker, Pace, Until, Found).

%% Sleeps as long as is necessary to keep looking within its share of the time.
look_rest({Share, Since, Slept}) ->
    progress_due(),
    case (now_us() - Since - Slept) * (100 - Share) div Share - Slept of
        Ahead when Ahead > ?LOOK_AHEAD ->
            From = now_us(),
            receive after Ahead div 1000 -> {Share, Since, Slept + now_us() - From} end;
        _ -> {Share, Since, Slept}
    end.

%% Starts a looker by a fun: if the module goes before the looker has run, purging the module kills it. By its name, the
%% function would be undefined then, and the node would log that.
look_start() ->
    Worker = self(),
    spawn_opt(fun() -> look_apart(), looker(Worker) end, [monitor, {priority, high} | bounds(4)]).

%% Takes the calling process out of the traces of all processes, which would show what it finds out. No tracer excludes
%% a helper, and those of other etraces exclude the processes of an owner only when they have heard of it.
look_apart() ->
    [trace:process(S, self(), false, [all]) || S = {etrace, _} <- sessions_of(self())],
    ok.

look_send(Pid, Ref, Pids, L = #scan{what = What, items = Items, named = Named, filters = Filters}) ->
    Pid ! {look, Ref, [look_before(P, L) || P <- Pids], {What, Items, Named, Filters}},
    true.

look_before(P, #scan{what = stacks, seen = Seen}) ->
    case Seen of
        #{P := {Reductions, _, Known}} when Known =:= other; element(1, Known) =:= waiting -> {P, Reductions};
        _ -> P
    end;
look_before(P, _) -> P.

look_end({Pid, Ref}) ->
    exit(Pid, kill),
    demonitor(Ref, [flush]).

look_heard(Looker = {Pid, Ref}, At) ->
    receive
        {looked, Ref, Rows} -> {ok, Rows};
        {'DOWN', Ref, _, _, _} -> throw(killed)
    after ?LOOK_STUCK ->
        case process_value(Pid, {dictionary, at}) of
            P when is_pid(P), P =:= At ->
                exit(Pid, kill),
                receive
                    {'DOWN', Ref, _, _, _} -> {stuck, P};
                    {looked, Ref, Rows} -> demonitor(Ref, [flush]), {ok, Rows}
                end;
            P -> look_heard(Looker, P)
        end
    end.

look_wait(Lookers, _, Rows) when map_size(Lookers) =:= 0 -> {Rows, []};
look_wait(Lookers, Until, Rows) ->
    receive
        {looked, Ref, New} when is_map_key(Ref, Lookers) ->
            look_end({element(1, map_get(Ref, Lookers)), Ref}),
            look_wait(maps:remove(Ref, Lookers), Until, New ++ Rows)
    after max(0, Until - now_ms()) ->
        [look_end({Pid, Ref}) || {Ref, {Pid, _}} <- maps:to_list(Lookers)],
        {Rows, [P || {_, P} <- maps:values(Lookers)]}
    end.

%% Finds the registered name of a process that does not answer, in the table of names.
look_registered(P) ->
    case [N || N <- registered(), whereis(N) =:= P] of
        [N | _] -> atom_to_binary(N);
        [] -> <<>>
    end.

%% ---- in the looker ------------------------------------------------------------------------------------------------

looker(Worker) ->
    put('$initial_call', {?MODULE, looker, 1}), % look_others/0 reads it
    monitor(process, Worker),
    looker_loop(Worker).

looker_loop(Worker) ->
    receive
        {look, Ref, Pids, How} ->
            Worker ! {looked, Ref, looked(Pids, How)},
            looker_loop(Worker);
        {'DOWN', _, _, _, _} ->
            ok
    end.

looked([], _) -> [];
looked([{P, Before} | Rest], How) ->
    put(at, P),
    case process_ask(P, [status, reductions]) of
        [{_, waiting}, {_, Reductions}] when Reductions =< Before -> [{P, {same, Reductions}} | looked(Rest, How)];
        _ -> looked([P | Rest], How)
    end;
looked([P | Rest], How = {ask, Ask, _, _}) ->
    put(at, P),
    try Ask(P) of
        Result -> [{P, Result} | looked(Rest, How)]
    catch error:_ -> looked(Rest, How)
    end;
looked([P | Rest], How = {What, Items, Named, Filters}) ->
    put(at, P),
    case process_ask(P, Items) of
        undefined -> looked(Rest, How);
        Values ->
            case Named =:= all orelse lists:member(P, Named) orelse look_chosen(Filters, Values) of
                true -> [{P, look_values(What, P, Values)} | looked(Rest, How)];
                false when What =:= stacks -> [{P, {other, proplists:get_value(reductions, Values) + 1}} | looked(Rest, How)];
                false -> looked(Rest, How)
            end
    end.

look_chosen([], _) -> false;
look_chosen(Filters, Values) ->
    [{_, Leader}, {_, Proc}, {_, Spawned}] = lists:nthtail(length(Values) - 3, Values),
    Initial = initial(Proc, Spawned),
    lists:any(fun({group_leader, M}) -> M =:= Leader; ({initial, MFA}) -> MFA =:= Initial end, Filters).

look_values(plain, _, Values) -> Values;
look_values(check, _, Values) -> check_values(Values);
look_values(names, P, Values) -> name_of(P, Values);
look_values(stacks, _, [{_, Stack}, {_, Current}, {_, Status}, {_, Reductions}, {_, Proc}, {_, Spawned} | _]) ->
    {Status, look_stack(Stack, Current, Status), look_began(Proc, Spawned), Reductions};
look_values(processes, P, [{_, Queue}, {_, Memory}, {_, Reductions} | Rest]) ->
    Binaries = case Rest of [{garbage_collection_info, Heaps} | _] -> element(1, look_binaries(P, Heaps)); _ -> 0 end,
    {Queue, Memory, Binaries, Reductions};
look_values(details, P, Values) ->
    {Name = [_, _, {_, Proc}, {_, Spawned}], [{_, Known}, {_, Parent}, {_, Callers}, {_, Leader}, {_, Status}, {_, Stack}, {_, Current}, {_, Heaps}, {_, Words} | _]} =
        lists:split(length(name_items()), Values),
    Ancestors = case Known of ?TOO_LARGE -> [Parent]; _ -> Known end,
    {name_of(P, Name), look_began(Proc, Spawned), look_relatives(Ancestors), look_relatives(Callers), Leader, Status, look_stack(Stack, Current, Status), Heaps, Words,
        look_binaries(P, Heaps)}.

%% Returns the stack of a process. If the process is in a dirty NIF, Trace begins with the caller of the NIF, so the NIF
%% is added. A process that hibernates has no stack, so its current function is used as its stack.
look_stack(Trace, Current, Status) ->
    case [{M, F, A} || {M, F, A, _} <- Trace] of
        [Current | _] = Stack -> Stack;
        [] -> [Current || is_tuple(Current)];
        Stack -> [Current || look_in_nif(Status, Current)] ++ Stack
    end.

look_in_nif(Status, {M, F, A}) when Status =:= running; Status =:= runnable ->
    lists:member({F, A}, try erlang:get_module_info(M, nifs) catch error:_ -> [] end);
look_in_nif(_, _) -> false.

%% Returns the size of the binaries that the process refers to, and true if the size is an estimate.
look_binaries(_, ?TOO_LARGE) -> {0, true};
look_binaries(P, Heaps) ->
    case {process_binaries(Heaps), proplists:get_value(mbuf_size, Heaps, 0)} of
        {0, 0} -> {0, false};
        {Words, _} ->
            case process_value(P, binary) of
                L when is_list(L) -> {look_bytes(L), false};
                undefined -> {0, false};
                ?TOO_LARGE -> {Words * erlang:system_info(wordsize), true}
            end
    end.

%% Adds up the sizes of binaries. A binary that the process refers to twice counts once.
look_bytes(L) -> lists:sum([Size || {_, Size, _} <- lists:ukeysort(1, L)]).

%% Returns the function that a process began with, or none for a fun.
look_began(Proc, Spawned) ->
    case began(Proc, Spawned) of
        {erlang, apply, _} -> none;
        MFA -> MFA
    end.

%% Returns true if the innermost function is the loop of a behaviour or of a process of OTP, which waits for any
%% message.
look_loop([{M, F, _} | _]) -> lists:member({atom_to_binary(M), atom_to_binary(F)}, ?LOOK_LOOPS);
look_loop([]) -> false.

look_function({M, F, A}) -> {atom_to_binary(M), atom_to_binary(F), A}.

look_relatives(L) when is_list(L) -> [look_relative(P) || P <- lists:sublist(L, 8), is_pid(P) orelse is_atom(P)];
look_relatives(_) -> [].

look_relative(P) when is_pid(P) ->
    case look_names() of
        #{P := Name} -> look_text(registered_as(Name));
        _ -> text_of(P)
    end;
look_relative(Name) -> look_text(registered_as(Name)).

%% Returns the registered names of all processes, which each looker reads once.
look_names() ->
    case get(names) of
        undefined ->
            Names = names_registered(),
            put(names, Names),
            Names;
        Names -> Names
    end.
