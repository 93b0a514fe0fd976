%% SPDX-License-Identifier: Apache-2.0
%% Measures what `etrace requests` costs a request: a gen_server call of a small tuple between two processes. Each figure
%% is the time that tracing adds to the call, as a multiple of the floor, which is the cost of one call event. Both
%% processes run on one scheduler, because waking another one up takes longer than a request.
-module(bench_requests).
-behaviour(gen_server).
-export([measure/1, floor_ns/0, slices/2, init/1, handle_call/3, handle_cast/2]).

-define(REQUESTS, 40_000).
-define(CALLS, 200_000).
-define(BOUND, {scheduler, 1}).
-define(SLICES, 40).

measure(Rounds) ->
    Samples = [round_of() || _ <- lists:seq(1, Rounds)],
    [{requests, Name, Unit, [proplists:get_value(Name, S) || S <- Samples]} || {Name, Unit} <- rows()].

rows() ->
    [{"a request without a tracer", "ns"},
     {"a request, server traced", "x the floor"},
     {"a request, server and caller traced", "x the floor"},
     {"events lost of 40000 requests", ""}].

round_of() ->
    Floor = floor_ns(),
    Runs = [{T, run(T)} || T <- bench_run:shuffle([none, server, both])],
    {none, {Ns, 0}} = lists:keyfind(none, 1, Runs),
    Added = [begin {_, {Traced, _}} = lists:keyfind(Who, 1, Runs), (Traced - Ns) / Floor end || Who <- [server, both]],
    lists:zip([Name || {Name, _} <- rows()], [Ns] ++ Added ++ [lists:sum([Lost || {_, {_, Lost}} <- Runs])]).

%% Returns the nanoseconds of a request and how many events were lost. none: without a tracer; else which processes are
%% traced.
run(Which) ->
    {ok, Server} = gen_server:start_link(?MODULE, [], [{spawn_opt, [?BOUND]}]),
    Self = self(),
    Caller = spawn_opt(fun() -> caller(Self, Server) end, [link, ?BOUND]),
    Stop = start(Which, Server, Caller),
    Ns = slices(Caller, ?REQUESTS),
    Lost = Stop(),
    unlink(Caller),
    exit(Caller, kill),
    gen_server:stop(Server),
    {Ns, Lost}.

%% The nanoseconds of a call event at the floor, measured in the same way.
floor_ns() ->
    [Plain, Floor] = [calls(T) || T <- [untraced, floor]],
    max(1.0, Floor - Plain).

calls(Tracer) ->
    Self = self(),
    Caller = spawn_opt(fun() -> calls_of(Self) end, [link, ?BOUND]),
    Stop = case Tracer of
        untraced -> fun() -> 0 end;
        floor -> bench_tracers:session({bench_floor, 0}, w1, [Caller])
    end,
    Ns = slices(Caller, ?CALLS),
    Stop(),
    unlink(Caller),
    exit(Caller, kill),
    Ns.

calls_of(To) ->
    receive {run, N} -> call(N) end,
    To ! {done, self()},
    calls_of(To).

call(0) -> ok;
call(N) -> bench_work:f(N, {some, tuple, [1, 2, 3]}), call(N - 1).

start(none, _, _) -> fun() -> 0 end;
start(server, Server, _) -> traced([Server]);
start(both, Server, Caller) -> traced([Server, Caller]).

traced(Pids) ->
    Who = lists:append([["-P", pid_to_list(P)] || P <- Pids]),
    Client = bench_tracers:client([{command, "requests"} | Who], " >/dev/null", []),
    bench_tracers:wait(fun() -> bench_work:is_armed(w1, Pids) end, Client),
    fun() -> {_, Lost} = bench_tracers:client_end(Client), Lost end.

%% Returns the nanoseconds of a unit. Most slices are disturbed when other programs want the processors.
slices(Caller, Units) ->
    bench_run:quantile(0.1, lists:sort([slice(Caller, Units div ?SLICES) || _ <- lists:seq(1, ?SLICES)])).

slice(Caller, N) ->
    T0 = erlang:monotonic_time(nanosecond),
    Caller ! {run, N},
    receive {done, Caller} -> ok end,
    (erlang:monotonic_time(nanosecond) - T0) / N.

caller(To, Server) ->
    receive {run, N} -> ask(N, Server) end,
    To ! {done, self()},
    caller(To, Server).

ask(0, _) -> ok;
ask(N, Server) -> ok = gen_server:call(Server, {put, N, value}), ask(N - 1, Server).

init([]) -> {ok, 0}.
handle_call({put, N, _}, _, _) -> {reply, ok, N}.
handle_cast(_, State) -> {noreply, State}.
