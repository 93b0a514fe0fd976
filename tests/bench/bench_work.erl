%% What is traced: the workloads. prepare/1 makes the processes, run/2 does so many rounds in them and returns the
%% nanoseconds that took; arm/2 sets what each workload is traced for. A workload's events a round are known exactly.
-module(bench_work).
-behaviour(gen_server).
-export([all/0, title/1, events/1, rounds/1, prepare/1, run/2, finish/1, arm/2, expressions/1, is_armed/2]).
-export([f/2, big/1, init/1, handle_call/3, handle_cast/2]).

all() -> [w1, w2, w3, w4, w5].

title(w1) -> "calls, one process";
title(w2) -> "calls, four processes";
title(w3) -> "send and receive";
title(w4) -> "gen_server, 200-key map, 1 kB binary, call and return";
title(w5) -> "100 kB nested list".

events(w1) -> 1;
events(w2) -> 4;
events(w3) -> 4;
events(w4) -> 2;
events(w5) -> 1.

%% Rounds that take some tens of milliseconds at the floor.
rounds(w1) -> 200_000;
rounds(w2) -> 60_000;
rounds(w3) -> 20_000;
rounds(w4) -> 15_000;
rounds(w5) -> 100_000.

prepare(w2) -> [spawn_worker(w2, none) || _ <- lists:seq(1, 4)];
prepare(w3) ->
    Other = spawn_link(fun pong/0),
    [spawn_worker(w3, Other), Other];
prepare(w4) ->
    {ok, Server} = gen_server:start_link(?MODULE, [], []),
    [spawn_worker(w4, Server), Server];
prepare(W) -> [spawn_worker(W, none)].

finish(Pids) ->
    [begin unlink(P), exit(P, kill) end || P <- Pids],
    [begin R = monitor(process, P), receive {'DOWN', R, _, _, _} -> ok end end || P <- Pids],
    ok.

%% The processes to be traced are all of them.
arm(Session, W) when W =:= w1; W =:= w2 -> trace:function(Session, {?MODULE, f, 2}, true, [local]), [call];
arm(_, w3) -> [send, 'receive'];
arm(Session, w4) -> trace:function(Session, {?MODULE, handle_call, 3}, [{'_', [], [{return_trace}]}], [local]), [call];
arm(Session, w5) -> trace:function(Session, {?MODULE, big, 1}, true, [local]), [call].

%% The same for etrace.
expressions(W) when W =:= w1; W =:= w2 -> ["bench_work:f/2"];
expressions(w3) -> ["send(_, _)", "recv(_)"];
expressions(w4) -> ["bench_work:handle_call/3 -> return"];
expressions(w5) -> ["bench_work:big/1"].

%% Somebody traces all of them for it; flags are set after patterns.
is_armed(W, Pids) ->
    Flag = case W of w3 -> send; _ -> call end,
    lists:all(fun(P) -> lists:any(fun(S) -> lists:member(Flag, flags(S, P)) end, trace:session_info(all)) end, Pids).

flags(Session, Pid) ->
    try trace:info(Session, Pid, flags) of
        {flags, Flags} -> Flags;
        undefined -> []
    catch error:badarg -> [] % the session has gone meanwhile
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
loop(W, N, O, D) when W =:= w1; W =:= w2 -> ?MODULE:f(N, {some, tuple, [1, 2, 3]}), loop(W, N - 1, O, D);
loop(w3, N, O, D) -> O ! {ping, self(), N}, receive {pong, N} -> loop(w3, N - 1, O, D) end;
loop(w4, N, O, D) -> _ = gen_server:call(O, {put, N, D}), loop(w4, N - 1, O, D);
loop(w5, N, O, D) -> ?MODULE:big(D), loop(w5, N - 1, O, D).

f(N, _) -> N.
big(_) -> ok.

pong() -> receive {ping, P, N} -> P ! {pong, N}, pong() end.

init([]) -> {ok, maps:from_list([{I, {item, I, 1.5 * I}} || I <- lists:seq(1, 200)])}.
handle_call({put, N, Page}, _From, State) -> {reply, {ok, N, byte_size(Page)}, State}.
handle_cast(_, State) -> {noreply, State}.
