%% SPDX-License-Identifier: Apache-2.0
%% Measures what `inside` costs a call: outside of every root, inside of one, and the call of a root itself. Each figure
%% is the time that tracing adds, as a multiple of the floor, which is the cost of one call event.
-module(bench_inside).
-export([measure/1, root/1]).

-define(CALLS, 200_000).
-define(INNER, 100). % calls inside of one root

measure(Rounds) ->
    Samples = [round_of() || _ <- lists:seq(1, Rounds)],
    [{inside, Name, "x the floor", [proplists:get_value(Name, S) || S <- Samples]} || Name <- names()].

names() ->
    ["a call outside of every root",
     "a call inside of a root",
     "a call inside of a root whose result does not show it",
     "a root without calls inside"].

round_of() ->
    Floor = bench_requests:floor_ns(),
    [Out, In, Kept, Root] = [cost(What) / Floor || What <- [outside, inside, kept, root]],
    lists:zip(names(), [Out, In, Kept, Root]).

%% Nanoseconds that tracing adds to one call.
cost(What) ->
    [{_, Ns1}, {_, Ns2}] = lists:sort([{T, run(What, T)} || T <- bench_run:shuffle([plain, traced])]),
    Ns2 - Ns1.

run(What, Traced) ->
    Self = self(),
    Caller = spawn_opt(fun() -> caller(Self, What) end, [link, {scheduler, 1}]),
    Stop = case Traced of plain -> fun() -> ok end; traced -> start(What) end,
    Ns = bench_requests:slices(Caller, ?CALLS),
    Stop(),
    unlink(Caller),
    exit(Caller, kill),
    Ns.

start(What) ->
    Root = case What of kept -> "(bench_inside:root/1 where dur > 1min)"; _ -> "bench_inside:root/1" end,
    Client = bench_tracers:client(["bench_work:f/2 inside " ++ Root], " >/dev/null", []),
    bench_tracers:wait(fun() -> lists:any(fun armed/1, trace:session_info(all)) end, Client),
    fun() -> bench_tracers:client_end(Client) end.

armed(Session) ->
    try trace:info(Session, {?MODULE, root, 1}, meta) of {meta, Tracer} -> Tracer =/= false; _ -> false
    catch error:_ -> false end.

caller(To, What) ->
    receive {run, N} -> work(What, N) end,
    To ! {done, self()},
    caller(To, What).

work(outside, N) -> call(N);
work(root, N) -> roots(N);
work(_, N) when N > ?INNER -> root(?INNER), work(inside, N - ?INNER);
work(_, N) -> root(N).

roots(0) -> ok;
roots(N) -> root(0), roots(N - 1).

root(0) -> ok;
root(N) -> call(N), ok.

call(0) -> ok;
call(N) -> bench_work:f(N, {some, tuple, [1, 2, 3]}), call(N - 1).
