%% SPDX-License-Identifier: Apache-2.0
%% The traced workloads. prepare/1 starts the processes, run/2 runs a number of rounds in them and returns the
%% nanoseconds, arm/2 sets the trace of each workload. Each workload makes an exactly known number of events per round.
-module(bench_work).
-behaviour(gen_server).
-export([all/0, title/1, events/1, extra/1, rounds/1, prepare/1, run/2, finish/1, arm/2, mfa/1, expressions/1, is_armed/2]).
-export([f/2, big/1, sink/0, init/1, handle_call/3, handle_cast/2]).

all() -> [w1, w2c, w2, w3, w4, w5, w6, w7].

title(w1) -> "calls, one process";
title(w2c) -> io_lib:format("calls, as many processes as cores (~b)", [processes(w2c)]);
title(w2) -> io_lib:format("calls, twice as many processes as cores (~b)", [processes(w2)]);
title(w3) -> "send and receive";
title(w4) -> "gen_server, 200-key map, 1 kB binary, call and return";
title(w5) -> "100 kB nested list";
title(w6) -> "calls that a match specification rejects, all of them";
title(w7) -> "calls and their results, one process".

processes(w2c) -> erlang:system_info(schedulers_online);
processes(w2) -> 2 * erlang:system_info(schedulers_online);
processes(_) -> 1.

%% Events per round, as the floor sees them.
events(w3) -> 4;
events(W) when W =:= w4; W =:= w7 -> 2;
events(W) -> processes(W).

%% Events of run/2 itself: it sends a message and gets an answer.
extra(w3) -> 2;
extra(_) -> 0.

%% Rounds that take some tens of milliseconds at the floor.
rounds(w2c) -> 120_000;
rounds(w2) -> 60_000;
rounds(w3) -> 20_000;
rounds(w4) -> 15_000;
rounds(w5) -> 100_000;
rounds(w7) -> 100_000;
rounds(_) -> 200_000.

prepare(w3) ->
    Other = spawn_link(fun pong/0),
    [spawn_worker(w3, Other), Other];
prepare(w4) ->
    {ok, Server} = gen_server:start_link(?MODULE, [], []),
    [spawn_worker(w4, Server), Server];
prepare(W) -> [spawn_worker(W, none) || _ <- lists:seq(1, processes(W))].

finish(Pids) ->
    [begin unlink(P), exit(P, kill) end || P <- Pids],
    [begin R = monitor(process, P), receive {'DOWN', R, _, _, _} -> ok end end || P <- Pids],
    ok.

%% Sets the patterns of the workload and returns the flags for its processes.
arm(_, w3) -> [send, 'receive'];
arm(Session, W) ->
    Spec = case W of
        _ when W =:= w4; W =:= w7 -> [{'_', [], [{return_trace}]}];
        w6 -> [{[none, '_'], [], []}];
        _ -> true
    end,
    trace:function(Session, mfa(W), Spec, [local]),
    [call].

mfa(w4) -> {?MODULE, handle_call, 3};
mfa(w5) -> {?MODULE, big, 1};
mfa(_) -> {?MODULE, f, 2}.

%% Returns the expressions of etrace that trace the workload.
expressions(w3) -> ["send(_, _)", "recv(_)"];
expressions(w4) -> ["bench_work:handle_call/3 -> return"];
expressions(w5) -> ["bench_work:big/1"];
expressions(w6) -> ["bench_work:f(none, _)"];
expressions(w7) -> ["bench_work:f/2 -> return"];
expressions(_) -> ["bench_work:f/2"].

%% True if a session traces all processes of the workload. Sessions set flags after patterns.
is_armed(W, Pids) ->
    Flag = case W of w3 -> send; _ -> call end,
    lists:all(fun(P) -> lists:any(fun(S) -> lists:member(Flag, flags(S, P)) end, trace:session_info(all)) end, Pids).

flags(Session, Pid) ->
    try trace:info(Session, Pid, flags) of
        {flags, Flags} -> Flags;
        undefined -> []
    catch error:badarg -> [] % the session has ended meanwhile
    end.

run(Pids, Rounds) ->
    Workers = [P || P <- Pids, worker(P)],
    T0 = erlang:monotonic_time(nanosecond),
    [P ! {run, self(), Rounds} || P <- Workers],
    [receive {done, P} -> ok end || P <- Workers],
    erlang:monotonic_time(nanosecond) - T0.

worker(P) -> {dictionary, D} = process_info(P, dictionary), lists:keymember(bench_worker, 1, D).

spawn_worker(W, Other) ->
    Self = self(),
    P = spawn_opt(fun() ->
        put(bench_worker, W),
        Data = data(W),
        Self ! {ready, self()},
        work(W, Other, Data)
    end, [link]),
    receive {ready, P} -> P end.

data(w4) -> binary:copy(<<"x">>, 1024);
data(w5) -> [[I, [I + 1, [I + 2, {I}]], [I, I]] || I <- lists:seq(1, 600)];
data(_) -> none.

work(W, Other, Data) ->
    receive
        {run, From, N} ->
            loop(W, N, Other, Data),
            From ! {done, self()},
            work(W, Other, Data)
    end.

loop(_, 0, _, _) -> ok;
loop(w3, N, O, D) -> O ! {ping, self(), N}, receive {pong, N} -> loop(w3, N - 1, O, D) end;
loop(w4, N, O, D) -> _ = gen_server:call(O, {put, N, D}), loop(w4, N - 1, O, D);
loop(w5, N, O, D) -> ?MODULE:big(D), loop(w5, N - 1, O, D);
loop(W, N, O, D) -> ?MODULE:f(N, {some, tuple, [1, 2, 3]}), loop(W, N - 1, O, D).

f(N, _) -> N.
big(_) -> ok.

%% Runs on another node and receives one message per event.
sink() ->
    receive
        {bench_done, To, Tag} -> To ! {bench_done, Tag};
        _ -> sink()
    end.

pong() -> receive {ping, P, N} -> P ! {pong, N}, pong() end.

init([]) -> {ok, maps:from_list([{I, {item, I, 1.5 * I}} || I <- lists:seq(1, 200)])}.
handle_call({put, N, Page}, _From, State) -> {reply, {ok, N, byte_size(Page)}, State}.
handle_cast(_, State) -> {noreply, State}.
