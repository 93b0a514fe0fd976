%% SPDX-License-Identifier: Apache-2.0
%% Exercises rare parts of the VM: dirty schedulers, ports, and many linked processes that exit together.
-module(stress).

-export([run/2, start/1, stop/0]).

%% Runs Procs processes for so many milliseconds; returns the number of rounds.
run(Procs, Milliseconds) ->
    Until = erlang:monotonic_time(millisecond) + Milliseconds,
    while(Procs, fun() -> erlang:monotonic_time(millisecond) < Until end).

%% Runs until stop/0; each process then finishes its round.
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

%% Dirty schedulers: input and output, computation, garbage collection of a large heap.
once(1) -> file:list_dir(".");
once(2) -> file:read_file("/proc/self/status", [raw]);
once(3) -> erlang:md5(binary:copy(<<"x">>, 200000));
once(4) -> child(fun() -> L = lists:seq(1, 200000), garbage_collect(), length(L) end);
%% Ports: one that echoes, one that closes with data in transit, and one whose owner exits.
once(5) -> work:reader(3);
once(6) ->
    child(fun() ->
        Port = open_port({spawn, "cat"}, [stream, binary]),
        port_command(Port, <<"on its way">>),
        link(Port),
        exit(with_a_port)
    end);
%% Linked processes that exit because one of them does; then messages to the dead processes.
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
