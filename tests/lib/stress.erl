%% What the virtual machine does in its corners: work on dirty schedulers, ports, processes that die in crowds.
-module(stress).

-export([run/2, start/1, stop/0]).

%% For so many milliseconds, in Procs processes at a time; returns how many rounds they have done.
run(Procs, Milliseconds) ->
    Until = erlang:monotonic_time(millisecond) + Milliseconds,
    while(Procs, fun() -> erlang:monotonic_time(millisecond) < Until end).

%% The same until it is told to stop; then each finishes what it is at.
start(Procs) ->
    true = register(stress, spawn(fun() ->
        Done = spawn_monitor(fun() -> while(Procs, fun() -> whereis(stress) =/= undefined end) end),
        receive {stop, From} -> unregister(stress), From ! {self(), over(Done)} end
    end)),
    ok.

stop() ->
    Pid = whereis(stress),
    Pid ! {stop, self()},
    receive {Pid, ok} -> ok end.

over({Pid, Ref}) ->
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

while(Procs, Go) ->
    Refs = [element(2, spawn_monitor(fun() ->
        process_flag(trap_exit, true),
        rand:seed(exsss, {I, I, I}),
        exit({rounds, rounds(Go, 0)})
    end)) || I <- lists:seq(1, Procs)],
    lists:sum([receive {'DOWN', Ref, process, _, {rounds, N}} -> N end || Ref <- Refs]).

rounds(Go, N) ->
    case Go() of
        false -> N;
        true ->
            _ = once(rand:uniform(8)),
            _ = work:one(N),
            rounds(Go, N + 1)
    end.

%% Dirty: input and output, computing, the collection of a large heap.
once(1) -> file:list_dir(".");
once(2) -> file:read_file("/proc/self/status", [raw]);
once(3) -> erlang:md5(binary:copy(<<"x">>, 200000));
once(4) -> child(fun() -> L = lists:seq(1, 200000), garbage_collect(), length(L) end);
%% A port that echoes, one that is closed with data on its way, and one whose owner dies.
once(5) -> work:reader(3);
once(6) ->
    child(fun() ->
        Port = open_port({spawn, "cat"}, [stream, binary]),
        port_command(Port, <<"on its way">>),
        link(Port),
        exit(with_a_port)
    end);
%% A crowd that is linked, and dies of one of them; with names and messages for the dead.
once(7) ->
    child(fun() ->
        Pids = [spawn_link(fun() -> receive {after_all, _} -> ok end end) || _ <- lists:seq(1, 50)],
        exit(hd(Pids), crowd),
        [P ! {after_all, self()} || P <- Pids],
        exit(crowd)
    end);
once(8) ->
    {Pid, Ref} = spawn_monitor(fun() -> child(fun() -> exit(inner) end), exit(outer) end),
    Pid ! early,
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> Pid ! late end.

child(Fun) -> over(spawn_monitor(Fun)).
