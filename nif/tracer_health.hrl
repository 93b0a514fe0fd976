%% SPDX-License-Identifier: Apache-2.0
%% Looks at the whole node for `etrace check`, without tracing. The client asks {look, #{what => check}} first, which
%% looks at every process in pages (tracer_look.hrl). Then it looks at the suspects with `why`, and asks {health, Map}
%% several times.
%%
%% Answer of the look, when nothing is left:
%%      suspects [{Pid, Reason}]: Reason is queue | memory | running | garbage_collecting | suspended | paused |
%%               exiting; paused: by sys:suspend
%%      reasons  #{Reason => N}: how many processes have each reason. Only the first of them are in `suspects`
%%      total    {Processes, Queue, Memory, Running, Calling}; Calling: how many wait for a process that they call
%%
%% A list of the answer below has at most CHECK_GROUPS rows and one more, which tells the client that there are others.
%%
%% Map of {health, Map}: patience (ms); again: true asks also for the changes since the look
%% Answer: a map of
%%      figures  {Processes, Most, Ports, Most, Atoms, Most, Tables, Most, Modules, the node's memory, the bytes by
%%               which the memory may grow}; Most: the limit of the number before it
%%      busy     {run queue, schedulers, dirty CPU tasks, schedulers, dirty I/O tasks, schedulers}
%%      clock    {the VM's time, the system's time}, us
%%      cpu      ms of processor time that the VM has used; -1: unknown
%%      tables   [#{name, owner, owner_name, memory, size}]: the largest ones of ets, in bytes and objects
%%      ports    [#{port, name, owner, owner_name, queue, node}]: ports with many waiting bytes of output; node: the
%%               node at the other end, if the port is a connection to a node
%%      alarms   [#{text, type, node, pid, name, used, limit, where}] of sasl and RabbitMQ. type: memory or disk, an alarm of
%%               RabbitMQ on a node; system: the memory of the host; process: the memory of pid; other. used, limit: bytes,
%%               if type is memory or disk and the alarm is one of this node; used by a disk is what is free in `where`
%%      log      [#{name, process, mode, drops}]: handlers; drops: more events come in a second than the handler writes
%%      starting [Application]: the node has not started it yet
%%      locks    [#{type, name, owner, owner_name}] of global and mnesia
%%      pools    [#{pid, name, size, taken, owners, count, waiting, ms}]: pools of DBConnection in which clients wait. size:
%%               the connections that the pool has; taken: how many of them clients own; owners: [{Pid, Name}] of some of
%%               these clients; count, waiting: the same of the clients that wait; ms: how long the first of them has waited
%%      unknown  the parts of this answer that are missing, because the node did not answer in time
%%      large    the parts that are missing, because their copy might be large, or the process that has them has exited
%%    and with `again`
%%      waits    [#{pid, name, elsewhere, count, waiting, ends, task, owners, owned}]: processes for which others have
%%               waited since the look. count: how many processes wait; waiting: [{Pid, Name}] of some of them; ends:
%%               one of their calls has a timeout; task: all wait for a task; owners: [{Pid, Name}] of some processes
%%               that may hold what is waited for, such as a connection; owned: the number of such processes
%%      locked   [#{type, pid, name}]: processes that wait for a lock
%%      started  how many processes have started since the look and still live
%%      starts   [#{count, owner, owner_name, initial}] of some of them
%%      restarts [#{owner, owner_name, name, pid}]: children of a supervisor that have started since the look

-define(CHECK_QUEUE, 100).      % messages in a queue from which on a process is reported
-define(CHECK_MEMORY, 33554432). % bytes from which on a process is reported
-define(CHECK_CALLS, 5000).     % most processes that wait in a call
-define(CHECK_SOME, 300).       % most processes of one kind that are asked for more
%% The most reductions of a process that has not run between two looks: our question costs one, a call of its own 22.
-define(CHECK_STILL, 20).
-define(CHECK_LATER, 60).       % the same limit for processes that have waited since the look: they get more questions
-define(CHECK_GROUPS, 8).
-define(CHECK_MS, 1000).        % ms for one answer
-define(CHECK_THINGS, 20000).   % check looks at no more tables or ports
-define(CHECK_PORT, 65536).     % bytes of waiting output from which on a port is reported
-define(CHECK_CONNECTION, 4096). % less for a connection to another node, because the VM holds further output back
-define(CHECK_LOCKS, 1000).
-define(CHECK_CHILDREN, 200).

%% Returns for each reason the number of processes that the client looks at.
check_most() -> [{queue, 6}, {memory, 3}, {running, 12}, {garbage_collecting, 2}, {suspended, 4}, {paused, 4}, {exiting, 2}].

%% ---- the look: in the looker --------------------------------------------------------------------------------------

check_items() -> [status, current_function, message_queue_len, memory, reductions].

check_values([{_, Status}, {_, Current}, {_, Queue}, {_, Memory}, {_, Reductions}]) ->
    Reasons = case Status of
        running -> [{running, Reductions}];
        runnable -> [{running, Reductions}];
        garbage_collecting -> [{Status, Memory}];
        waiting -> [{Does, case Does of calls -> Reductions; _ -> Queue end} || Does <- check_waits(Current)];
        _ -> [{Status, Queue}] % suspended, exiting
    end,
    {[{queue, Queue} || Queue >= ?CHECK_QUEUE] ++ [{memory, Memory} || Memory >= ?CHECK_MEMORY] ++ Reasons, Queue, Memory}.

check_waits(MFA = {M, F, _}) ->
    case {atom_to_binary(M), atom_to_binary(F)} of
        {<<"sys">>, <<"suspend_loop">>} -> [paused];
        {<<"timer">>, <<"sleep">>} -> [locks]; % mnesia sleeps before it tries again
        {<<"global">>, <<"random_sleep">>} -> [locks];
        {<<"mnesia_locker">>, Name} when Name =/= <<"loop">> -> [locks];
        _ -> [calls || why_waits([MFA]) =/= false]
    end;
check_waits(_) -> [].

%% ---- the look: in the worker --------------------------------------------------------------------------------------

%% Adds the rows of a page to Found: {#{Reason => {Count, [{Rank, Pid}]}}, {Processes, Queue, Memory}} of the pages so
%% far. Count is of all processes with the reason, and the list has some of them.
check_found(Rows, []) -> check_found(Rows, {#{}, {0, 0, 0}});
check_found(Rows, {Found0, Total0}) ->
    {Found, Total} = lists:foldl(fun({P, {Reasons, Queue, Memory}}, {Found1, {N, Q, M}}) ->
        {lists:foldl(fun({Reason, Rank}, Acc) ->
            {Count, L} = maps:get(Reason, Acc, {0, []}),
            Acc#{Reason => {Count + 1, [{Rank, P} | L]}}
        end, Found1, Reasons), {N + 1, Q + Queue, M + Memory}}
    end, {Found0, Total0}, Rows),
    {maps:map(fun(Reason, {Count, L}) -> {Count, check_first(Reason, L)} end, Found), Total}.

%% Keeps some of the processes with a reason, those that rank highest.
check_first(calls, L) -> lists:sublist(L, ?CHECK_CALLS);
check_first(locks, L) -> lists:sublist(L, ?CHECK_SOME);
check_first(running, L) -> lists:sublist(lists:reverse(lists:sort(L)), ?CHECK_SOME);
check_first(_, L) -> lists:sublist(lists:reverse(lists:sort(L)), ?CHECK_GROUPS).

check_answer({Found, {N, Queue, Memory}}) ->
    Count = fun(Reason) -> element(1, maps:get(Reason, Found, {0, []})) end,
    Of = fun(Reason) -> element(2, maps:get(Reason, Found, {0, []})) end,
    {_, Listed, _} = get(listed),
    put(check, {Of(calls), ?CHECK_STILL, [P || {_, P} <- Of(locks)], lists:sort(Listed)}),
    #{suspects => [{text_of(P), atom_to_binary(Reason)} || {Reason, Most} <- check_most(), {_, P} <- lists:sublist(Of(Reason), Most)],
        reasons => maps:from_list([{Reason, Count(Reason)} || {Reason, _} <- check_most()]),
        total => {N, Queue, Memory, Count(running), Count(calls)}}.

%% ---- the node -----------------------------------------------------------------------------------------------------

health(#{patience := Patience, again := Again}, Ours) ->
    Begun = now_us(),
    How = {now_ms() + ?CHECK_MS, min(Patience, ?CHECK_MS)},
    Busy = health_busy(), % before our helpers run
    Names = names_registered(),
    Parts = [{Key, why_ask(fun() -> try Ask() catch throw:?TOO_LARGE -> ?TOO_LARGE end end, How)} || {Key, Ask} <- [
        {memory, fun() -> Used = memory_used(), {Used, max(0, memory_left(Used))} end}, % reads files
        {tables, fun() -> health_tables(Names) end},
        {ports, fun() -> health_ports(Names) end},
        {alarms, fun health_alarms/0},
        {log, fun health_log/0},
        {starting, fun health_starting/0},
        {locks, fun() -> health_locks(Names) end},
        {pools, fun health_pools/0},
        {cpu, fun health_cpu/0}]],
    Known = maps:from_list([case Found of {ok, Value} when Value =/= ?TOO_LARGE -> {Key, Value}; _ -> {Key, []} end || {Key, Found} <- Parts]),
    More = case {Again, get(check)} of
        {true, Before = {_, _, _, _}} -> health_again(Before, Names, Ours, {now_ms() + ?CHECK_MS, element(2, How)});
        _ -> #{}
    end,
    Logs = [health_drops(Log, How) || Log <- maps:get(log, Known)],
    {ok, maps:merge(maps:merge(Known, health_figures(maps:get(memory, Known))), More#{
        cpu => case maps:get(cpu, Known) of [] -> -1; Cpu -> Cpu end,
        alarms => [health_alarm(Alarm, How) || Alarm <- maps:get(alarms, Known)],
        pools => [health_pool(Pool, How) || Pool <- maps:get(pools, Known)],
        log => [Log || {Log, _} <- Logs],
        busy => Busy, unknown => [atom_to_binary(Key) || {Key, silent} <- Parts ++ [{log, silent} || lists:keymember(silent, 2, Logs)]],
        large => [atom_to_binary(Key) || {Key, Found} <- Parts, Found =:= failed orelse Found =:= {ok, ?TOO_LARGE}], us => now_us() - Begun})}.

%% Throws if the copy of a table, or of a term that a process has, might be large. An object of a table is copied to the
%% process that reads it. A term that another process sends is copied first, so the limits of the reader come too late.
health_table_fits(T) ->
    Size = ets:info(T, size),
    is_integer(Size) andalso (Size =< ?CHECK_LOCKS andalso ets:info(T, memory) =< ?PROCESS_HEAP orelse throw(?TOO_LARGE)).

health_process_fits(P) ->
    case process_ask(P, [total_heap_size]) of
        undefined -> false;
        Sizes -> process_fits(heap, maps:from_list(Sizes)) orelse throw(?TOO_LARGE)
    end.

health_busy() ->
    Queues = erlang:statistics(run_queue_lengths_all),
    Tasks = erlang:statistics(active_tasks_all),
    {Runnable, _} = lists:split(length(Queues) - 2, Queues),
    {_, [Cpu, Io]} = lists:split(length(Tasks) - 2, Tasks),
    {lists:sum(Runnable), erlang:system_info(schedulers_online), Cpu, erlang:system_info(dirty_cpu_schedulers_online),
        Io, erlang:system_info(dirty_io_schedulers)}.

%% Returns the ms of processor time that the VM has used; -1: unknown, without /proc. Fields 14 and 15 of the file, in
%% hundredths of a second, come after the name of the program, which may have blanks and parentheses.
health_cpu() ->
    case string:split(memory_file("/proc/self/stat"), ")", trailing) of
        [_, Rest] ->
            Fields = string:lexemes(Rest, " "),
            10 * lists:sum([binary_to_integer(lists:nth(N, Fields)) || N <- [12, 13]]);
        _ -> -1
    end.

health_figures(Memory) ->
    {Used, Left} = case Memory of [] -> {0, 0}; _ -> Memory end,
    #{figures => {erlang:system_info(process_count), erlang:system_info(process_limit),
            erlang:system_info(port_count), erlang:system_info(port_limit),
            erlang:system_info(atom_count), erlang:system_info(atom_limit),
            erlang:system_info(ets_count), erlang:system_info(ets_limit),
            length(erlang:loaded()), Used, Left},
        clock => {erlang:system_time(microsecond), os:system_time(microsecond)}}.

%% Returns the registered name of a process as text. The map has the name, so the process need not answer.
health_name(P, Names) ->
    case Names of #{P := Name} -> look_text(registered_as(Name)); _ -> <<>> end.

health_tables(Names) ->
    Sized = [{Words, T} || T <- lists:sublist(ets:all(), ?CHECK_THINGS), Words <- [ets:info(T, memory)], is_integer(Words)],
    Bytes = erlang:system_info(wordsize),
    [#{name => look_text(registered_as(ets:info(T, name))), owner => text_of(Owner), owner_name => health_name(Owner, Names),
        memory => Words * Bytes, size => Size} ||
        {Words, T} <- lists:sublist(lists:reverse(lists:sort(Sized)), ?CHECK_GROUPS),
        Owner <- [ets:info(T, owner)], is_pid(Owner), Size <- [ets:info(T, size)], is_integer(Size)].

health_ports(Names) ->
    Nodes = maps:from_list([{P, Node} || {Node, P} <- erlang:system_info(dist_ctrl)]),
    Long = [{Bytes, P} || P <- lists:sublist(erlang:ports(), ?CHECK_THINGS), {_, Bytes} <- [erlang:port_info(P, queue_size)],
        Bytes >= case Nodes of #{P := _} -> ?CHECK_CONNECTION; _ -> ?CHECK_PORT end],
    [#{port => text_of(P), name => unicode:characters_to_binary(Driver), owner => text_of(Owner),
        owner_name => health_name(Owner, Names), queue => Bytes, node => case Nodes of #{P := Node} -> atom_to_binary(Node); _ -> <<>> end} ||
        {Bytes, P} <- lists:sublist(lists:reverse(lists:sort(Long)), ?CHECK_GROUPS + 1),
        {_, Owner} <- [erlang:port_info(P, connected)], {_, Driver} <- [erlang:port_info(P, name)]].

%% Returns the alarms of sasl, and those of RabbitMQ, of all nodes of its cluster.
health_alarms() ->
    lists:append([lists:sublist(L, ?CHECK_GROUPS + 1) || Name <- existing([<<"alarm_handler">>, <<"rabbit_alarm">>]), P <- [whereis(Name)],
        is_pid(P), health_process_fits(P), L <- [gen_event:call(P, Name, get_alarms)], is_list(L)]).

health_alarm(Alarm, How) ->
    About = case Alarm of
        {{Name, Type, Node}, _} when is_atom(Name), is_atom(Type), is_atom(Node) ->
            case {atom_to_binary(Name), atom_to_binary(Type)} of
                {<<"resource_limit">>, Resource} -> maps:merge(#{type => Resource, node => atom_to_binary(Node)}, health_limit(Resource, Node, How));
                _ -> #{}
            end;
        {Name, P} when is_atom(Name) ->
            case atom_to_binary(Name) of
                <<"system_memory_high_watermark">> -> #{type => <<"system">>};
                <<"process_memory_high_watermark">> when is_pid(P), node(P) =:= node() ->
                    #{type => <<"process">>, pid => text_of(P), name => look_text(why_name(P, How))};
                _ -> #{}
            end;
        _ -> #{}
    end,
    maps:merge(#{text => short(Alarm), type => <<"other">>}, About).

%% Returns what RabbitMQ uses of a resource of this node, and its limit, if it answers in time.
health_limit(Resource, Node, How) when Node =:= node() ->
    Asked = why_ask(fun() ->
        case {Resource, existing([<<"vm_memory_monitor">>]), existing([<<"rabbit_disk_monitor">>])} of
            {<<"memory">>, [M], _} -> {M:get_memory_use(bytes), <<>>};
            {<<"disk">>, _, [M]} -> {{M:get_disk_free(), M:get_disk_free_limit()}, health_directory()};
            _ -> none
        end
    end, How),
    case Asked of
        {ok, {{Used, Limit}, Where}} when is_number(Used), is_number(Limit) -> #{used => round(Used), limit => round(Limit), where => Where};
        _ -> #{}
    end;
health_limit(_, _, _) -> #{}.

health_directory() ->
    [Rabbit] = existing([<<"rabbit">>]),
    try unicode:characters_to_binary(Rabbit:data_dir()) of Text when is_binary(Text) -> Text; _ -> <<>> catch error:_ -> <<>> end.

%% Returns the log handlers of OTP. The process of a handler keeps its mode in a table that every process can read.
health_log() ->
    [#{name => atom_to_binary(Id), process => Process, mode => Mode} ||
        #{id := Id, module := M} <- logger:get_handler_config(),
        Process <- [iolist_to_binary([atom_to_binary(M), $_, atom_to_binary(Id)])], Name <- existing([Process]),
        is_pid(whereis(Name)), Mode <- [persistent_term:get({logger_olp, Name}, none)], Mode =/= none].

%% Adds whether the handler drops what is above its limit for bursts. An overloaded handler may be too late to answer, but
%% its mode tells enough then.
health_drops(Log = #{process := Process, mode := Mode}, How) ->
    case why_ask(fun() -> gen_server:call(binary_to_existing_atom(Process), info) end, How) of
        {ok, #{burst_limit_enable := true, burst_msg_count := N, burst_limit_max_count := Most}} -> {Log#{drops => N >= Most}, known};
        silent when Mode =:= async -> {Log#{drops => false}, silent};
        _ -> {Log#{drops => false}, known}
    end.

health_starting() -> [atom_to_binary(element(1, A)) || {starting, L} <- application:info(), A <- L].

health_locks(Names) ->
    Global = [{<<"global">>, short(Resource), P} ||
        health_table_fits(global_locks), {Resource, _, Held} <- ets:tab2list(global_locks), P <- lists:usort([element(1, H) || H <- Held])],
    Mnesia = case {existing([<<"mnesia_locker">>]), existing([<<"mnesia_held_locks">>])} of
        {[M], [T]} -> [{<<"mnesia">>, short(Oid), element(3, Tid)} || health_table_fits(T), ets:info(T, size) > 0, {Oid, _, Tid} <- M:get_held_locks()];
        _ -> []
    end,
    [#{type => Kind, name => Text, owner => text_of(P), owner_name => health_name(P, Names)} ||
        {Kind, Text, P} <- lists:sublist(Global ++ Mnesia, ?CHECK_SOME), is_pid(P)].

%% Returns [{Pool, Size, [Owner], Count, [Client], Ms}] of the pools of DBConnection in which clients wait. Each connection
%% has a table. Its heir is the pool, and its owner is the pool or the client that has the connection now. The pool has a
%% table of the clients that wait, the first one first, or of its free connections. The pool drops clients that wait for
%% long, so other clients may wait at each look.
health_pools() ->
    case existing([<<"Elixir.DBConnection.Holder">>, <<"Elixir.DBConnection.ConnectionPool.Queue">>]) of
        [Holder, Queue] ->
            Tables = [{Name, T} || T <- lists:sublist(ets:all(), ?CHECK_THINGS), Name <- [ets:info(T, name)]],
            Held = [{ets:info(T, heir), ets:info(T, owner)} || {Name, T} <- Tables, Name =:= Holder],
            Pools = [Found || {Name, T} <- Tables, Name =:= Queue, Found <- health_pool_found(T, ets:info(T, owner), Held)],
            lists:sublist(lists:reverse(lists:keysort(4, Pools)), ?CHECK_GROUPS + 1);
        _ -> []
    end.

health_pool_found(T, Pool, Held) ->
    try ets:first(T) of
        {Sent, _, {_, _}} when is_integer(Sent), is_pid(Pool) ->
            Owners = [Owner || {Heir, Owner} <- Held, Heir =:= Pool],
            Clients = ets:select(T, [{{{'_', '_', {'$1', '_'}}}, [{is_pid, '$1'}], ['$1']}], 4),
            [{Pool, length(Owners), [Owner || Owner <- Owners, Owner =/= Pool, is_pid(Owner), not health_is_connection(Owner)],
                ets:info(T, size), case Clients of {Pids, _} -> Pids; _ -> [] end, max(0, now_ms() - Sent)}];
        _ -> []
    catch error:badarg -> [] % the pool has exited
    end.

health_is_connection(P) ->
    case process_value(P, {dictionary, '$initial_call'}) of
        {M, _, _} -> atom_to_binary(M) =:= <<"Elixir.DBConnection.Connection">>;
        _ -> false
    end.

health_pool({Pool, Size, Owners, Count, Clients, Ms}, How) ->
    #{pid => text_of(Pool), name => look_text(why_name(Pool, How)), size => Size, taken => length(Owners), count => Count, ms => Ms,
        owners => health_named(lists:sublist(Owners, 4), How), waiting => health_named(Clients, How)}.

%% ---- what has changed since the look ------------------------------------------------------------------------------

health_again({Calls, Most, Locks, Listed}, Names, Ours, How) ->
    Still = health_still(Calls, Most, How),
    New = ordsets:subtract(lists:sort(processes() -- Ours), Listed),
    Groups = health_started(New, How),
    Waits = health_waits(lists:sublist(Still, ?CHECK_SOME), How),
    Answer = #{waits => Waits,
        waits_more => length(Calls) >= ?CHECK_CALLS orelse length(Still) > ?CHECK_SOME orelse now_ms() >= element(1, How),
        locked_more => length(Locks) >= ?CHECK_SOME,
        locked => [#{type => Kind, pid => text_of(P), name => look_text(why_name(P, How))} ||
            {P, [{_, Stack}]} <- health_ask(Locks, [current_stacktrace], How), Kind <- health_locked([{M, F} || {M, F, _, _} <- Stack])],
        started => length(New),
        starts => [health_start(N, Parent, Initial, Names) || {N, {Parent, Initial}} <- Groups],
        restarts => [Restart ||
            Parent <- lists:usort([P || {_, {P, _}} <- Groups]), Restart <- health_restarts(Parent, Listed, Names, How)]},
    Later = health_still([{R, P} || {P, R, _, _} <- Still], Most, How), % with the reductions of our questions
    put(check, {[{R, P} || {P, R, _, _} <- Later], ?CHECK_LATER, Locks, Listed}),
    Answer.

%% Returns [{Pid, Reductions, Waits, MFA}] of the processes that still wait in the same call.
health_still(Calls, Most, How) ->
    Before = maps:from_list([{P, Reductions} || {Reductions, P} <- Calls]),
    [{P, R, Waits, MFA} ||
        {P, [{_, waiting}, {_, R}, {_, MFA = {_, _, _}}]} <- health_ask(maps:keys(Before), [status, reductions, current_function], How),
        R - map_get(P, Before) =< Most, Waits <- [why_waits([MFA])], Waits =/= false].

%% Returns [{Pid, Values}] of the processes that answer.
health_ask(Pids, Items, {_, Patience}) ->
    {Rows, _} = look_at(look_start(), Pids, #scan{what = plain, items = Items, named = all, filters = []}, 100, Patience),
    Rows.

health_locked([{global, random_sleep} | _]) -> [<<"global">>];
health_locked([{timer, sleep}, {M, _} | _]) -> [<<"mnesia">> || atom_to_binary(M) =:= <<"mnesia_tm">>];
health_locked([{M, _} | _]) -> [<<"mnesia">> || atom_to_binary(M) =:= <<"mnesia_locker">>];
health_locked([]) -> [].

%% ---- processes that others wait for

health_waits(Still, How = {Until, _}) ->
    Pairs = [{Q, {P, MFA}} || {P, _, Waits, MFA} <- Still, now_ms() < Until, {Q, _} <- [why_next(P, Waits, How)]],
    Groups = maps:groups_from_list(fun({Q, _}) -> Q end, fun({_, Waiter}) -> Waiter end, Pairs),
    Sorted = lists:reverse(lists:keysort(1, [{length(Waiters), Q, Waiters} || {Q, Waiters} <- maps:to_list(Groups)])),
    [health_wait(Q, N, Waiters, How) || {N, Q, Waiters} <- lists:sublist(Sorted, ?CHECK_GROUPS + 1)].

health_wait(Q, N, Waiters, How) ->
    #{pid := Pid, name := Name} = case Q of
        _ when is_pid(Q), node(Q) =:= node() -> #{pid => text_of(Q), name => look_text(why_name(Q, How))};
        _ when is_pid(Q) -> element(1, why_row(Q, How));
        _ -> why_named(Q)
    end,
    Some = [P || {P, _} <- lists:sublist(Waiters, 4)],
    Held = health_held(Q, [P || {P, _} <- Waiters], How),
    #{pid => Pid, name => Name, count => N, elsewhere => not (is_pid(Q) andalso node(Q) =:= node()), waiting => health_named(Some, How),
        ends => lists:any(fun(P) -> health_ends(P, How) end, Some),
        task => lists:all(fun({_, {M, _, _}}) -> atom_to_binary(M) =:= <<"Elixir.Task">> end, Waiters),
        owners => health_named(lists:sublist(Held, 4), How), owned => length(Held)}.

health_named(Pids, How) -> [{text_of(P), look_text(why_name(P, How))} || P <- Pids].

%% Returns true if the call has a timeout: then gen:do_call/4 has it on the stack of the process.
health_ends(P, How) ->
    case [why_frame(F) || F <- lists:sublist(binary:split(why_backtrace(P, How), <<"\n\n">>, [global]), 1)] of
        [{<<"gen:do_call">>, Terms}] -> lists:any(fun(T) -> case string:to_integer(T) of {_, <<>>} -> true; _ -> false end end, Terms);
        _ -> false
    end.

%% Returns the processes that may hold what the waiting processes need, such as a worker of a pool. Q is the process for
%% which they wait. A pool monitors the clients to which it has given a worker, and is linked to its workers: those that
%% are busy count, too.
health_held(Q, Waiters, How) when is_pid(Q), node(Q) =:= node() ->
    Related = why_read(Q, [monitors, links], fun([Monitors, Links]) ->
        {why_monitored(Monitors), [L || L <- lists:sublist(Links, ?WHY_CANDIDATES), is_pid(L), node(L) =:= node()]}
    end, How),
    case Related of
        {Monitored, Linked} -> lists:usort(Monitored ++ [L || L <- Linked, why_is_busy(L, How)]) -- Waiters;
        _ -> []
    end;
health_held(_, _, _) -> [].

%% ---- what starts

%% Returns [{Count, {Parent, Initial}}] of some of the new processes.
health_started(New, How) ->
    Rows = health_ask(lists:sublist(New, ?CHECK_SOME), [parent, {dictionary, '$initial_call'}, initial_call], How),
    Groups = maps:groups_from_list(fun(Key) -> Key end, [{Parent, look_began(Proc, Spawned)} ||
        {_, [{_, Parent}, {_, Proc}, {_, Spawned}]} <- Rows, is_pid(Parent), node(Parent) =:= node()]),
    lists:sublist(lists:reverse(lists:sort([{length(L), Key} || {Key, L} <- maps:to_list(Groups)])), ?CHECK_GROUPS).

health_start(N, Parent, Initial, Names) ->
    maps:merge(#{count => N, owner => text_of(Parent), owner_name => health_name(Parent, Names)},
        case Initial of none -> #{}; _ -> #{initial => look_function(Initial)} end).

%% Returns the children of a supervisor that have started since the look. Leaves out children of simple_one_for_one,
%% because they have no names and are therefore no restarts. A supervisor with many children is not asked. Its function
%% count_children would wait for a child in a long NIF.
health_restarts(Parent, Listed, Names, How) ->
    Read = fun() ->
        {supervisor, _, 1} = process_value(Parent, {dictionary, '$initial_call'}),
        Links = process_value(Parent, links),
        true = is_list(Links) andalso length(Links) =< ?CHECK_CHILDREN andalso health_process_fits(Parent),
        [#{owner => text_of(Parent), owner_name => health_name(Parent, Names), name => short(Id),
            pid => case P of restarting -> <<>>; _ -> text_of(P) end} ||
            {Id, P, _, _} <- supervisor:which_children(Parent), Id =/= undefined,
            P =:= restarting orelse is_pid(P) andalso not ordsets:is_element(P, Listed)]
    end,
    case why_ask(fun() -> try Read() catch throw:?TOO_LARGE -> [] end end, How) of
        {ok, Restarts} -> lists:sublist(Restarts, ?CHECK_GROUPS);
        _ -> []
    end.
