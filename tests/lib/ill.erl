%% SPDX-License-Identifier: Apache-2.0
%% Makes a node ill for the tests of `etrace check`, with one fault at a time, and heals it.
%%
%% make/1 starts the process ill_keeper, which runs fault/1 and starts everything else. It returns when the fault is
%% established. heal/1 ends everything that it started, and returns when it is gone. faults/0 lists the faults; each has a
%% clause of fault/1 with the same name.
%%
%% The pools are stand-ins in tests/lib/pools, which a suite adds to the code path of the node.
-module(ill).
-export([faults/0, expected/1, make/1, heal/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_event/2, start/2, dies/0, hangs/0, ignores/0]).

%% {Fault, Kind of the finding, names that the finding has to name}; none: etrace cannot attach.
faults() ->
    [
        %% A process waits for another one.
        {deadlock, deadlock, [ill_one, ill_two]},
        {deadlock3, deadlock, [ill_one, ill_two, ill_three]},
        {chain, waits, [ill_back]},
        {sleeping, waits, [ill_sleeper]},
        {forgot_reply, waits, [ill_forgetful]},
        {os_command, waits, [ill_server]},
        {event_handler, waits, [ill_events]},
        {supervisor_starts, waits, [ill_child]},
        {supervisor_stops, waits, [ill_child]},
        {io_device, waits, [ill_device]},
        {file_server, nif, [file_server_2]},
        {remote, waits, [ill_far]},
        {starting, starting, [ill_app]},

        %% A process is suspended.
        {sys_suspended, suspended, [ill_suspended]},
        {erl_suspended, suspended, [ill_suspended]},
        {many_suspects, suspended, []},
        {application_controller, suspended, [application_controller]},
        {code_server, none, []},

        %% A pool has no free member.
        {poolboy_like, pool, [ill_pool, ill_holder_1]},
        {pool_leaked, pool, [ill_pool, ill_holder_1]},
        {dbconnection_like, pool, [ill_pool, ill_holder_1]},
        {dbconnection_down, pool, [ill_pool]},
        {repositories, pool, [ill_holder_Repo, ill_holder_Store]},
        {two_pools, pool, [ill_pool_1, ill_pool_2]},
        {nimble_like, pool, [ill_pool, ill_holder_1]},
        {worker_pool, pool, [ill_pool, ill_worker_1]},

        %% A lock is held.
        {global_lock, lock, [ill_holder]},
        {global_crowd, lock, [ill_holder]},
        {global_name, lock, [ill_holder]},
        {mnesia_lock, lock, [ill_holder]},

        %% A queue is long.
        {queue_grows, queue, [ill_slow]},
        {queue_stuck, queue, [ill_busy]},
        {scan, unmatched, [ill_scanner]},
        {unmatched, unmatched, [ill_deaf]},

        %% A process takes memory.
        {memory_grows, memory, [ill_hoarder]},
        {memory_now_and_then, memory, [ill_hoarder]},
        {binaries, binaries, [ill_binaries]},
        {sub_binaries, binaries, [ill_binaries]},
        {collects, collects, [ill_collector]},
        {collects_now_and_then, collects, [ill_collector]},

        %% Processes take the processors.
        {spinner, busy, [ill_spinner]},
        {priority, busy, [ill_spinner]},
        {overload, overload, []},
        {blocked_scheduler, silent, [ill_blocker]},
        {held_scheduler, scheduler, [ill_comparer]},
        {dirty_cpu, dirty, []},
        {dirty_io, dirty, []},
        {restart_loop, restarts, [ill_supervisor]},
        {restart_among_many, none, []},
        {logger_flood, log, []},

        %% A table of the node grows, or is nearly full.
        {ets_grows, ets, [ill_table]},
        {ets_tables, ets, []},
        {atoms_grow, atoms, []},
        {atoms_full, none, []},
        {processes_grow, processes, []},
        {processes_full, processes, []},
        {ports_grow, ports, []},
        {ports_full, ports, []},

        %% Output that nobody takes.
        {port_busy, port, [ill_sender]},
        {port_slow, port, [ill_sender]},
        {socket_send, port, [ill_sender]},
        {socket_nowait, port, [ill_sender]},
        {dist_busy, connection, []},

        {alarm, alarm, [disk_almost_full]}
    ].

%% Returns [Kind | Names].
expected(Fault) ->
    {_, Kind, Names} = lists:keyfind(Fault, 1, faults()),
    [Kind | Names].

%% Returns the process to be given to heal/1. Its name ill_keeper serves as well.
make(Fault) ->
    Maker = self(),
    {Keeper, Ref} = spawn_monitor(fun() -> keep(Fault, Maker) end),
    receive
        {Keeper, made} -> demonitor(Ref, [flush]), Keeper;
        {'DOWN', Ref, _, _, Reason} -> error({Fault, Reason})
    end.

heal(Keeper) ->
    Ref = monitor(process, Keeper),
    Keeper ! heal,
    receive {'DOWN', Ref, _, _, Reason} -> normal = Reason end,
    ok.

keep(Fault, Maker) ->
    register(ill_keeper, self()),
    put(patients, []),
    put(undo, []),
    try
        fault(Fault),
        Maker ! {self(), made},
        receive heal -> ok end
    after
        end_patients([Pid || Pid <- get(patients), is_process_alive(Pid)]),
        [Undo() || Undo <- get(undo)]
    end.

%% heal/1 first kills all patients. They are suspended before, so none of them sees the end of another one and logs it.
end_patients(Pids) ->
    [try erlang:suspend_process(Pid, [asynchronous]) catch error:badarg -> dead end || Pid <- Pids],
    [exit(Pid, kill) || Pid <- Pids],
    [gone(Pid) || Pid <- Pids].

patient(Pid) -> put(patients, [Pid | get(patients)]), Pid.

%% Then heal/1 runs these steps, the last one first.
undo(Fun) -> put(undo, [Fun | get(undo)]).

%% --- processes that wait for others

fault(deadlock) -> cycle([ill_one, ill_two]);
fault(deadlock3) -> cycle([ill_one, ill_two, ill_three]);
fault(chain) ->
    server(ill_back, fun stuck/0),
    server(ill_front, fun() -> ask(ill_back) end),
    waiters(1, fun() -> ask(ill_front) end);
fault(sleeping) ->
    server(ill_sleeper, fun() -> timer:sleep(infinity) end),
    waiters(3, fun() -> ask(ill_sleeper) end);
fault(forgot_reply) ->
    server(ill_forgetful),
    waiters(1, fun() -> gen_server:call(ill_forgetful, forget, 60000) end);
fault(os_command) ->
    Fifo = fifo(),
    server(ill_server, fun() -> os:cmd("exec cat " ++ Fifo) end),
    waiters(1, fun() -> ask(ill_server) end);
fault(event_handler) ->
    {ok, Manager} = gen_event:start({local, ill_events}),
    patient(Manager),
    ok = gen_event:add_handler(Manager, ?MODULE, event_handler),
    waiters(1, fun() -> gen_event:sync_notify(ill_events, hang) end);
fault(supervisor_starts) ->
    supervisor([]),
    undo(fun() -> kill(whereis(ill_child)) end),
    Child = #{id => child, start => {?MODULE, hangs, []}},
    waiters(1, fun() -> supervisor:start_child(ill_supervisor, Child) end),
    until(fun() -> whereis(ill_child) =/= undefined end);
fault(supervisor_stops) ->
    supervisor([#{id => child, start => {?MODULE, ignores, []}, shutdown => infinity}]),
    undo(fun() -> kill(whereis(ill_child)) end),
    waiters(1, fun() -> supervisor:terminate_child(ill_supervisor, child) end);
fault(io_device) ->
    Device = sick(ill_device, fun stuck/0),
    Printer = sick(ill_printer, fun() -> io:put_chars(Device, "x") end),
    waits(Printer);
fault(file_server) ->
    Fifo = fifo(),
    waits(sick(ill_opener, fun() -> file:open(Fifo, [read]) end)),
    waiters(1, fun() -> file:read_file_info("ill") end);
fault(remote) ->
    Node = far(),
    erpc:call(Node, fun() -> {ok, _} = gen_server:start({local, ill_far}, ?MODULE, server, []) end),
    gen_server:cast({ill_far, Node}, fun stuck/0),
    waiters(1, fun() -> gen_server:call({ill_far, Node}, ask, 600000) end); % a call without a timeout may be meant to wait
fault(starting) ->
    Keys = [{vsn, "1"}, {description, ""}, {modules, []}, {registered, []}, {applications, [kernel, stdlib]}],
    ok = application:load({application, ill_app, [{mod, {?MODULE, hangs}} | Keys]}),
    undo(fun() -> ok = application:unload(ill_app) end),
    sick(ill_starter, fun() -> application:start(ill_app) end),
    undo(fun() -> kill(whereis(ill_start)), until(fun() -> not is_starting(ill_app) end) end),
    until(fun() -> whereis(ill_start) =/= undefined end);

%% --- suspended processes

fault(sys_suspended) ->
    server(ill_suspended),
    sys:suspend(ill_suspended),
    waiters(1, fun() -> ask(ill_suspended) end);
fault(erl_suspended) ->
    server(ill_suspended),
    suspend(ill_suspended),
    waiters(1, fun() -> ask(ill_suspended) end);
fault(many_suspects) ->
    Servers = [server(list_to_atom("ill_suspended_" ++ integer_to_list(N))) || N <- lists:seq(1, 20)],
    [ok = sys:suspend(Server) || Server <- Servers],
    [waits(sick(fun() -> ask(Server) end)) || Server <- Servers],
    Deaf = [sick(fun stuck/0) || _ <- Servers],
    [Pid ! {other, N} || Pid <- Deaf, N <- lists:seq(1, 200)];
fault(application_controller) ->
    suspend(application_controller),
    waiters(1, fun() -> application:start(ill_app) end);
fault(code_server) ->
    suspend(code_server),
    waits(sick(ill_waiter_1, fun() -> code:ensure_loaded(ill_missing) end));

%% --- pools without a free member

fault(poolboy_like) ->
    {ok, Pool} = poolboy:start(ill_pool, [member_1, member_2]),
    patient(Pool),
    holders(fun() -> poolboy:transaction(ill_pool, fun(_) -> stuck() end) end),
    waiters(3, fun() -> poolboy:transaction(ill_pool, fun(_) -> ok end) end);
fault(pool_leaked) ->
    {ok, Pool} = poolboy:start(ill_pool, [member_1, member_2]),
    patient(Pool),
    [server(Name, fun() -> poolboy:checkout(ill_pool) end) || Name <- [ill_holder_1, ill_holder_2]],
    [until(fun() -> gen_server:call(Name, done) =:= done end) || Name <- [ill_holder_1, ill_holder_2]],
    waiters(3, fun() -> poolboy:checkout(ill_pool) end);
fault(dbconnection_like) ->
    {ok, Pool} = 'Elixir.DBConnection.ConnectionPool':start(ill_pool),
    connections(patient(Pool), [ill_db_1, ill_db_2]),
    holders(fun() -> connection(ill_pool), stuck() end),
    waiters(3, fun() -> connection(ill_pool) end);
fault(dbconnection_down) ->
    {ok, Pool} = 'Elixir.DBConnection.ConnectionPool':start(ill_pool),
    patient(Pool),
    waiters(3, fun() -> connection(ill_pool) end);
fault(repositories) ->
    [begin
        Pool = repository(list_to_atom("Elixir.Ill." ++ Name)),
        connections(Pool, [list_to_atom("ill_db_" ++ Name)]),
        holder(list_to_atom("ill_holder_" ++ Name), fun() -> connection(Pool), stuck() end),
        [waits(sick(fun() -> connection(Pool) end)) || _ <- [1, 2, 3]]
    end || Name <- ["Repo", "Store"]];
fault(two_pools) ->
    [begin
        Pool = list_to_atom("ill_pool_" ++ N),
        {ok, Pid} = poolboy:start(Pool, [member]),
        patient(Pid),
        holder(list_to_atom("ill_holder_" ++ N), fun() -> poolboy:transaction(Pool, fun(_) -> stuck() end) end),
        waits(sick(fun() -> poolboy:checkout(Pool) end))
    end || N <- ["1", "2"]];
fault(nimble_like) ->
    {ok, Pool} = 'Elixir.NimblePool':start(ill_pool, [member_1, member_2]),
    patient(Pool),
    holders(fun() -> 'Elixir.NimblePool':'checkout!'(ill_pool, checkout, fun(_, _) -> stuck() end, 5000) end),
    waiters(3, fun() -> 'Elixir.NimblePool':'checkout!'(ill_pool, checkout, fun(_, M) -> {ok, M} end, 60000) end);
fault(worker_pool) ->
    {ok, Pool} = worker_pool:start(ill_pool),
    patient(Pool),
    [begin {ok, Worker} = worker_pool_worker:start(Name, ill_pool), patient(Worker) end
        || Name <- [ill_worker_1, ill_worker_2]],
    [waits(sick(Name, fun() -> worker_pool:submit(ill_pool, fun stuck/0) end)) || Name <- [ill_client_1, ill_client_2]],
    [until(fun() -> is_in(whereis(Name), stuck) end) || Name <- [ill_worker_1, ill_worker_2]],
    waiters(3, fun() -> worker_pool:submit(ill_pool, fun() -> ok end) end);

%% --- locks

fault(global_lock) ->
    holder(fun() -> global:set_lock({ill_lock, self()}, [node()]) end),
    waits(sick(ill_waiter_1, fun() -> global:set_lock({ill_lock, self()}, [node()]) end));
fault(global_crowd) ->
    %% Four more processes wait than check lists (CHECK_LOCKS in check_node.h).
    holder(fun() -> global:set_lock({ill_lock, self()}, [node()]) end),
    waiters(36, fun() -> global:set_lock({ill_lock, self()}, [node()]) end);
fault(global_name) ->
    %% global takes this lock to register a name.
    holder(fun() -> global:set_lock({global, self()}, [node()]) end),
    waits(sick(ill_waiter_1, fun() -> global:register_name(ill_waiter, self()) end));
fault(mnesia_lock) ->
    ok = application:load(mnesia),
    application:set_env(mnesia, schema_location, ram),
    started(mnesia),
    {atomic, ok} = mnesia:create_table(ill_table, [{ram_copies, [node()]}]),
    Read = fun() -> mnesia:read(ill_table, key) end,
    Older = sick(ill_waiter_1, fun() -> mnesia:transaction(fun() -> ready(), Read() end) end),
    until(fun() -> is_in(Older, ready) end),
    holder(fun() -> mnesia:transaction(fun() -> mnesia:write({ill_table, key, 1}), stuck() end) end),
    %% A transaction that is older than the holder waits in a queue; a younger one sleeps and starts again.
    Older ! ready,
    waits(Older),
    waits(sick(ill_waiter_2, fun() -> mnesia:transaction(Read) end));

%% --- queues

fault(queue_grows) ->
    Slow = sick(ill_slow, fun() -> each(20, fun() -> receive _ -> ok end end) end),
    sick(ill_producer, fun() -> paced(10, fun() -> [Slow ! {event, N} || N <- lists:seq(1, 20)] end) end),
    until(fun() -> queue(Slow) > 2000 end);
fault(queue_stuck) ->
    Busy = sick(ill_busy, fun spin/0),
    [Busy ! {job, N} || N <- lists:seq(1, 20000)];
fault(scan) ->
    Scanner = sick(ill_scanner, fun jobs/0),
    [Scanner ! {other, N} || N <- lists:seq(1, 150000)],
    sick(ill_producer, fun() -> each(5, fun() -> Scanner ! job end) end);
fault(unmatched) ->
    Deaf = sick(ill_deaf, fun stuck/0),
    [Deaf ! {other, N} || N <- lists:seq(1, 5000)];

%% --- memory

fault(memory_grows) ->
    Hoarder = sick(ill_hoarder, fun() -> hoard([], 400) end),
    until(fun() -> memory(Hoarder) > 50 bsl 20 end);
fault(memory_now_and_then) ->
    sick(ill_hoarder, fun() -> each(1000, fun() -> 20000000 = length(lists:seq(1, 20000000)), garbage_collect() end) end);
fault(binaries) ->
    holds(ill_binaries, fun() -> [binary:copy(<<7>>, 1 bsl 20) || _ <- lists:seq(1, 400)] end);
fault(sub_binaries) ->
    %% Each part of 100 bytes keeps a whole binary.
    holds(ill_binaries, fun() -> [binary:part(binary:copy(<<7>>, 4 bsl 20), 0, 100) || _ <- lists:seq(1, 100)] end);
fault(collects) ->
    Collector = sick(ill_collector, fun() -> collect(lists:seq(1, 10000000)) end),
    until(fun() -> is_in(Collector, collect) end);
fault(collects_now_and_then) ->
    Collector = sick(ill_collector, fun() -> collect_each(300, lists:seq(1, slow_length(120))) end),
    until(fun() -> is_in(Collector, collect_each) end);

%% --- processors

fault(spinner) ->
    sick(ill_spinner, fun spin/0);
fault(priority) ->
    sick(ill_spinner, fun() -> process_flag(priority, high), spin() end);
fault(overload) ->
    [sick(fun spin/0) || _ <- lists:seq(1, 300)];
fault(blocked_scheduler) ->
    Depth = slow_depth(1000),
    sick(ill_blocker, fun() -> compare(1, shared(Depth), shared(Depth)) end);
fault(held_scheduler) ->
    Depth = slow_depth(80),
    sick(ill_comparer, fun() -> compare(400, shared(Depth), shared(Depth)) end);
fault(dirty_cpu) ->
    dirty(erlang:system_info(dirty_cpu_schedulers) + 2, fun() -> erts_debug:dirty_cpu(wait, 1000) end),
    until(fun() -> [_, Cpu, _] = run_queues(), Cpu > 0 end);
fault(dirty_io) ->
    dirty(erlang:system_info(dirty_io_schedulers) + 2, fun() -> erts_debug:dirty_io(wait, 1000) end),
    until(fun() -> [_, _, Io] = run_queues(), Io > 0 end);
fault(restart_loop) ->
    ok = logger:set_module_level(supervisor, none),
    undo(fun() -> logger:unset_module_level(supervisor) end),
    supervisor([#{id => 'Elixir.Ill.Child', start => {?MODULE, dies, []}}]);
fault(restart_among_many) ->
    ok = logger:set_module_level(supervisor, none),
    undo(fun() -> logger:unset_module_level(supervisor) end),
    supervisor([#{id => N, start => {gen_server, start_link, [?MODULE, server, []]}} || N <- lists:seq(1, 300)]),
    Pids = [Pid || {_, Pid, _, _} <- supervisor:which_children(ill_supervisor)],
    sick(fun() -> [begin exit(Pid, kill), receive after 50 -> ok end end || Pid <- Pids], stuck() end);
fault(logger_flood) ->
    [sick(fun() -> paced(10, fun() -> [logger:error("ill ~p", [N]) || N <- lists:seq(1, 10)] end) end)
        || _ <- lists:seq(1, 5)],
    %% The handler writes at most 500 events a second, and drops the others.
    Handler = whereis(logger_std_h_default),
    Before = reductions(Handler),
    %% It counts the events of a burst until it has been idle for 100 ms; a question ends that time.
    undo_until(fun() -> receive after 300 -> maps:get(idle, gen_server:call(Handler, info)) end end),
    until(fun() -> reductions(Handler) > Before + 100000 end);

%% --- tables of the node

fault(ets_grows) ->
    sick(ill_table, fun() ->
        ets:new(ill_table, [named_table, public]),
        paced(10, fun() -> [ets:insert(ill_table, {make_ref(), lists:seq(1, 64)}) || _ <- lists:seq(1, 400)] end)
    end),
    undo_until(fun() -> ets:whereis(ill_table) =:= undefined end),
    until(fun() -> ets:whereis(ill_table) =/= undefined andalso ets:info(ill_table, size) > 500 end);
fault(ets_tables) ->
    Before = length(ets:all()),
    undo_until(fun() -> length(ets:all()) =< Before end),
    sick(ill_tables, fun() -> paced(10000, 10, fun() -> [ets:new(ill, []) || _ <- lists:seq(1, 5)] end) end),
    until(fun() -> length(ets:all()) > Before + 500 end);
fault(atoms_grow) ->
    Before = erlang:system_info(atom_count),
    sick(fun() -> paced(10, fun() -> [new_atom() || _ <- lists:seq(1, 30)] end) end),
    until(fun() -> erlang:system_info(atom_count) > Before + 1000 end);
fault(atoms_full) ->
    [new_atom() || _ <- lists:seq(erlang:system_info(atom_count), part(atom_limit))];
fault(processes_grow) ->
    Before = erlang:system_info(process_count),
    undo_until(fun() -> erlang:system_info(process_count) < Before + 100 end),
    Spawn = fun() -> [spawn_link(fun stuck/0) || _ <- lists:seq(1, 20)] end,
    sick(ill_spawner, fun() -> paced(3000, 10, Spawn) end),
    until(fun() -> erlang:system_info(process_count) > Before + 2000 end);
fault(processes_full) ->
    undo_until(fun() -> erlang:system_info(process_count) < 200 end),
    sick(ill_spawner, fun() ->
        [spawn_link(fun stuck/0) || _ <- lists:seq(erlang:system_info(process_count), part(process_limit))],
        stuck()
    end),
    until(fun() -> erlang:system_info(process_count) >= part(process_limit) end);
fault(ports_grow) ->
    Before = erlang:system_info(port_count),
    sick(ill_opener, fun() -> paced(2000, 10, fun() -> [{ok, _} = gen_udp:open(0) || _ <- [1, 2]] end) end),
    undo_until(fun() -> erlang:system_info(port_count) =< Before end),
    until(fun() -> erlang:system_info(port_count) > Before + 200 end);
fault(ports_full) ->
    %% Ports of this driver need no file descriptor.
    Open = fun() -> open_port({spawn_driver, "ram_file_drv"}, []) end,
    sick(ill_opener, fun() ->
        [Open() || _ <- lists:seq(erlang:system_info(port_count), part(port_limit))],
        stuck()
    end),
    undo_until(fun() -> erlang:system_info(port_count) < 100 end),
    until(fun() -> erlang:system_info(port_count) >= part(port_limit) end);

%% --- output

fault(port_busy) -> pushes("sleep 100000");
fault(port_slow) -> pushes("sh -c 'while head -c 300000 >/dev/null; do sleep 0.3; done'");
fault(socket_send) ->
    Sender = sick(ill_sender, fun() ->
        Socket = unread([]),
        each(0, fun() -> ok = gen_tcp:send(Socket, binary:copy(<<7>>, 100000)) end)
    end),
    until(fun() -> is_in(Sender, {prim_inet, send}) end),
    waits(Sender);
fault(socket_nowait) ->
    Sender = sick(ill_sender, fun() ->
        Socket = unread([{high_watermark, 1 bsl 28}]),
        ok = gen_tcp:send(Socket, binary:copy(<<7>>, 50 bsl 20)),
        stuck()
    end),
    until(fun() -> is_in(Sender, stuck) end);
fault(dist_busy) ->
    Node = far(),
    Program = erpc:call(Node, os, getpid, []),
    os:cmd("kill -STOP " ++ Program),
    undo(fun() -> os:cmd("kill -CONT " ++ Program) end),
    Sender = sick(ill_sender, fun() -> each(0, fun() -> {ill_far, Node} ! binary:copy(<<7>>, 1 bsl 20) end) end),
    until(fun() -> is_suspended(Sender) end);

fault(alarm) ->
    started(sasl),
    alarm_handler:set_alarm({{disk_almost_full, "/"}, []}),
    undo(fun() -> alarm_handler:clear_alarm({disk_almost_full, "/"}) end),
    until(fun() -> alarm_handler:get_alarms() =/= [] end).

%% --- how a fault begins and ends

sick(Fun) -> patient(spawn(Fun)).

%% Starts a process with a registered name.
sick(Name, Fun) ->
    Keeper = self(),
    Pid = sick(fun() -> register(Name, self()), Keeper ! {up, self()}, Fun() end),
    receive {up, Pid} -> Pid end.

kill(undefined) ->
    ok;
kill(Pid) ->
    exit(Pid, kill),
    gone(Pid).

gone(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, _, _, _} -> ok end.

%% Starts a gen_server.
server(Name) ->
    {ok, Pid} = gen_server:start({local, Name}, ?MODULE, server, []),
    patient(Pid).

%% Starts a gen_server that runs Fun in a callback.
server(Name, Fun) ->
    Pid = server(Name),
    gen_server:cast(Pid, Fun),
    Pid.

%% Each server gets its order before any request of another one: all are suspended meanwhile.
cycle([First | Others] = Names) ->
    Pids = [server(Name) || Name <- Names],
    [erlang:suspend_process(Pid) || Pid <- Pids],
    [gen_server:cast(Name, fun() -> ask(Next) end) || {Name, Next} <- lists:zip(Names, Others ++ [First])],
    [erlang:resume_process(Pid) || Pid <- Pids],
    [waits(Pid) || Pid <- Pids].

supervisor(Children) ->
    {ok, Pid} = supervisor:start_link({local, ill_supervisor}, ?MODULE, {supervisor, Children}),
    unlink(Pid),
    patient(Pid).

ask(Server) -> gen_server:call(Server, ask, infinity).

%% Starts N processes that wait in Fun for another process.
waiters(N, Fun) ->
    [waits(sick(list_to_atom("ill_waiter_" ++ integer_to_list(I)), Fun)) || I <- lists:seq(1, N)].

%% Starts two processes that hold the members of a pool.
holders(Fun) -> [holder(Name, Fun) || Name <- [ill_holder_1, ill_holder_2]].

%% Starts a process that holds something in Fun, and then is in stuck/0.
holder(Name, Fun) ->
    Pid = sick(Name, Fun),
    until(fun() -> is_in(Pid, stuck) end).

%% Gives connections to a pool of DBConnection.
connections(Pool, Names) ->
    Queue = 'Elixir.DBConnection.ConnectionPool':queue(Pool),
    [server(Name, fun() -> 'Elixir.DBConnection.Holder':update(Pool, Queue) end) || Name <- Names].

%% Takes a connection. Waits again if the pool drops it.
connection(Pool) ->
    case 'Elixir.DBConnection.Holder':checkout(Pool, [self()], 60000) of
        {error, dropped} -> connection(Pool);
        Taken -> Taken
    end.

%% Starts a pool without a name, under a supervisor with this name. Returns the pool.
repository(Name) ->
    Child = #{id => pool, start => {'Elixir.DBConnection.ConnectionPool', start_link, []}},
    {ok, Pid} = supervisor:start_link({local, Name}, ?MODULE, {supervisor, [Child]}),
    unlink(Pid),
    patient(Pid),
    [{pool, Pool, _, _}] = supervisor:which_children(Pid),
    patient(Pool).

%% Starts a process that holds a lock.
holder(Lock) -> holder(ill_holder, fun() -> Lock(), stuck() end).

%% Starts N processes on dirty schedulers. The scheduler of a killed one stays busy, so each is asked to end.
dirty(N, Fun) ->
    Pids = [spawn(fun() -> until_stopped(Fun) end) || _ <- lists:seq(1, N)],
    undo(fun() -> [Pid ! stop || Pid <- Pids], [gone(Pid) || Pid <- Pids] end).

%% Starts a process that holds a term, and no garbage.
holds(Name, Fun) ->
    Pid = sick(Name, fun() -> put(held, Fun()), garbage_collect(), stuck() end),
    until(fun() -> is_in(Pid, stuck) end).

%% The suspension ends with the process that asked for it.
suspend(Name) ->
    sick(ill_suspender, fun() -> erlang:suspend_process(whereis(Name)), stuck() end),
    until(fun() -> is_suspended(whereis(Name)) end).

started(Application) ->
    {ok, Started} = application:ensure_all_started(Application),
    undo(fun() ->
        [begin ok = application:stop(A), ok = application:unload(A) end || A <- lists:reverse(Started)],
        logger_std_h:filesync(default) % the reports of the ends are written
    end).

is_starting(Application) ->
    lists:keymember(Application, 1, proplists:get_value(starting, application:info())).

%% Returns the name of a fifo. Its opening for writing ends every wait to open or read it.
fifo() ->
    Fifo = filename:absname("ill_fifo_" ++ os:getpid()),
    [] = os:cmd("mkfifo " ++ Fifo),
    undo(fun() -> os:cmd("timeout 10 sh -c ': >" ++ Fifo ++ "'; rm " ++ Fifo) end),
    Fifo.

%% Starts another node that knows this module.
far() ->
    {ok, Peer, Node} = peer:start(#{
        name => peer:random_name("ill_far"), host => "127.0.0.1", connection => standard_io,
        args => ["-hidden", "-start_epmd", "false", "-kernel", "inet_dist_use_interface", "{127,0,0,1}",
            "-pa", filename:dirname(code:which(?MODULE))]}),
    undo(fun() -> peer:stop(Peer), until(fun() -> not lists:member(Node, nodes(hidden)) end) end),
    true = peer:call(Peer, erlang, set_cookie, [erlang:get_cookie()]),
    true = net_kernel:connect_node(Node),
    Node.

%% Returns a socket whose peer never reads.
unread(Options) ->
    Inet = [{inet_backend, inet}, binary, {active, false}],
    {ok, Listener} = gen_tcp:listen(0, Inet ++ [{ip, {127, 0, 0, 1}}]),
    {ok, Number} = inet:port(Listener),
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, Number, Inet ++ Options),
    {ok, _} = gen_tcp:accept(Listener),
    Socket.

%% A process gives a program more than it takes, so that the port suspends the process.
pushes(Command) ->
    Sender = sick(ill_sender, fun() ->
        Port = open_port({spawn, Command}, [binary]),
        each(0, fun() -> port_command(Port, binary:copy(<<7>>, 100000)) end)
    end),
    until(fun() -> is_suspended(Sender) end),
    %% The port keeps its data until the program has ended.
    {links, [Port]} = process_info(Sender, links),
    {os_pid, Program} = erlang:port_info(Port, os_pid),
    undo(fun() ->
        os:cmd("kill -KILL " ++ integer_to_list(Program)),
        until(fun() -> erlang:port_info(Port) =:= undefined end)
    end).

%% --- how a fault shows

until(Effect) -> until(Effect, erlang:monotonic_time(second) + 100).

until(Effect, End) ->
    case Effect() of
        true -> ok;
        false ->
            erlang:monotonic_time(second) < End orelse error(no_effect),
            receive after 5 -> until(Effect, End) end
    end.

%% heal/1 waits for Effect.
undo_until(Effect) -> undo(fun() -> until(Effect) end).

%% Returns when the process waits outside of this module, for another process.
waits(Pid) ->
    until(fun() ->
        [{_, Status}, {_, {Module, _, _}}] = process_info(Pid, [status, current_function]),
        Status =:= waiting andalso Module =/= ?MODULE
    end).

is_in(Pid, {Module, Function}) ->
    {_, {M, F, _}} = process_info(Pid, current_function),
    {M, F} =:= {Module, Function};
is_in(Pid, Function) ->
    is_in(Pid, {?MODULE, Function}).

is_suspended(Pid) -> process_info(Pid, status) =:= {status, suspended}.

queue(Pid) -> element(2, process_info(Pid, message_queue_len)).
reductions(Pid) -> element(2, process_info(Pid, reductions)).
memory(Pid) -> element(2, process_info(Pid, memory)).

%% Returns the lengths of three run queues: of a normal scheduler, and of the dirty ones.
run_queues() -> lists:nthtail(erlang:system_info(schedulers) - 1, statistics(run_queue_lengths_all)).

%% Returns 95 percent of a limit of the node. The rest is for the tests.
part(Limit) -> erlang:system_info(Limit) * 95 div 100.

%% --- what sick processes do

stuck() -> receive never -> ok end.

ready() -> receive ready -> ok end.

spin() -> spin().

%% Runs Fun for ever, every Time milliseconds.
each(Time, Fun) ->
    Fun(),
    receive after Time -> each(Time, Fun) end.

%% Runs Fun for ever, or N times and then stays, every Time milliseconds by the clock: it makes up for the time in which
%% the node had no processor, so that what Fun does keeps its rate on a busy machine.
paced(Time, Fun) -> paced(infinity, Time, Fun).
paced(N, Time, Fun) -> paced(N, Time, Fun, erlang:monotonic_time(millisecond)).

paced(0, _, _, _) -> stuck();
paced(N, Time, Fun, Due) ->
    Fun(),
    Next = Due + Time,
    Left = case N of infinity -> infinity; _ -> N - 1 end,
    receive after max(0, Next - erlang:monotonic_time(millisecond)) -> paced(Left, Time, Fun, Next) end.

until_stopped(Fun) ->
    Fun(),
    receive stop -> ok after 0 -> until_stopped(Fun) end.

jobs() -> receive job -> jobs() end.

%% Keeps N MB, 20 more each second.
hoard(Kept, 0) -> stuck(), Kept;
hoard(Kept, N) ->
    More = lists:seq(1, 1 bsl 16),
    receive after 50 -> hoard([More | Kept], N - 1) end.

collect(Kept) ->
    garbage_collect(),
    collect(Kept).

%% Returns the length of a list whose collection takes at least Ms, unless it were a large part of the node's memory.
slow_length(Ms) ->
    Kept = lists:seq(1, 5000000),
    Took = lists:min([element(1, timer:tc(fun garbage_collect/0)) || _ <- lists:seq(1, 3)]),
    min(12000000, Ms * 1000 * length(Kept) div Took).

collect_each(Time, Kept) ->
    garbage_collect(),
    receive after Time -> collect_each(Time, Kept) end.

%% Takes no more memory than its depth, and is 2^N large for functions that visit each element.
shared(0) -> [];
shared(N) ->
    Half = shared(N - 1),
    [Half | Half].

%% Returns the depth at which the comparison of two such terms takes at least Ms. It does not yield to other processes.
slow_depth(Ms) ->
    Times = [element(1, timer:tc(fun() -> shared(20) =:= shared(20) end)) || _ <- lists:seq(1, 5)],
    20 + ceil(math:log2(Ms * 1000 / lists:min(Times))).

compare(Pause, A, B) ->
    true = A =:= B,
    receive after Pause -> compare(Pause, A, B) end.

new_atom() -> list_to_atom("ill_" ++ integer_to_list(erlang:unique_integer([positive]))).

%% --- callbacks of gen_server, gen_event, supervisor and application

init(server) -> {ok, idle};
init(event_handler) -> {ok, idle};
init(hangs) -> {ok, stuck()};
init({supervisor, Children}) -> {ok, {#{intensity => 1000000, period => 1}, Children}}.

handle_call(ask, _, State) -> {reply, ok, State};
handle_call(done, _, State) -> {reply, State, State};
handle_call(forget, _, State) -> {noreply, State}.

handle_cast(Fun, _) -> Fun(), {noreply, done}.

handle_info(_, State) -> {noreply, State}.

handle_event(hang, State) -> stuck(), {ok, State}.

start(normal, hangs) ->
    register(ill_start, self()),
    stuck().

%% Children of the supervisor.
dies() -> {ok, spawn_link(fun() -> timer:sleep(30) end)}.

hangs() -> gen_server:start_link({local, ill_child}, ?MODULE, hangs, []).

ignores() ->
    Supervisor = self(),
    Pid = spawn_link(fun() ->
        process_flag(trap_exit, true), register(ill_child, self()), Supervisor ! {up, self()}, stuck()
    end),
    receive {up, Pid} -> {ok, Pid} end.
