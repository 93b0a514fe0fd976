%% SPDX-License-Identifier: Apache-2.0
%% Measures what a call costs whose events stay in a ring that overwrites its oldest ones (--ring), and what counting by
%% a key costs. Each figure is the time that tracing adds, as a multiple of the floor, which is the cost of one call event.
-module(bench_ring).
-export([measure/1]).

-define(CALLS, 200_000).

measure(Rounds) ->
    Samples = [round_of() || _ <- lists:seq(1, Rounds)],
    [{ring, Name, "x the floor", [proplists:get_value(Name, S) || S <- Samples]} || {Name, _} <- rows()].

rows() ->
    [{"a call into a ring that overwrites", ["--ring", "4MB", "bench_work:f/2"]},
     {"a call and its result into a ring that overwrites", ["--ring", "4MB", "bench_work:f/2 -> return"]},
     {"a call, sent to the client", ["bench_work:f/2"]},
     {"a call by one small key: count", ["bench_work:f(_, T) by element(1, T): count"]},
     {"a call and its result by one small key: count, hist(dur)", ["bench_work:f(_, T) by element(1, T): count, hist(dur)"]},
     {"a call and its result, an empty tracer", floor}].

round_of() ->
    Floor = bench_requests:floor_ns(),
    [{Name, cost(Args) / Floor} || {Name, Args} <- bench_run:shuffle(rows())].

%% Nanoseconds that tracing adds to one call.
cost(Args) ->
    [{_, Plain}, {_, Traced}] = lists:sort([{T, run(Args, T)} || T <- bench_run:shuffle([plain, traced])]),
    Traced - Plain.

run(Args, Traced) ->
    Self = self(),
    Caller = spawn_opt(fun() -> caller(Self) end, [link, {scheduler, 1}]),
    Stop = case Traced of plain -> fun() -> ok end; traced -> start(Args, Caller) end,
    Ns = bench_requests:slices(Caller, ?CALLS),
    Stop(),
    unlink(Caller),
    exit(Caller, kill),
    Ns.

start(floor, Caller) ->
    bench_tracers:session({bench_floor, 0}, w7, [Caller]);
start(Args, Caller) ->
    Client = bench_tracers:client(Args, " >/dev/null", []),
    bench_tracers:wait(fun() -> bench_work:is_armed(w1, [Caller]) end, Client),
    fun() -> bench_tracers:client_end(Client) end.

caller(To) ->
    receive {run, N} -> calls(N) end,
    To ! {done, self()},
    caller(To).

calls(0) -> ok;
calls(N) -> bench_work:f(N, {some, tuple, [1, 2, 3]}), calls(N - 1).
