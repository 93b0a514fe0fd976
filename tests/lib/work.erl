%% SPDX-License-Identifier: Apache-2.0
%% The workload of the tests: functions to be traced, and functions that call them a known number of times. run/1
%% depends on its seed alone and returns how often it called each function, so a test can compare its events with
%% that.
-module(work).
-behaviour(gen_server).

%% Functions to be traced.
-export([one/1, two/2, three/3, fac/1, climb/2, sum/2, fib/1, even/1, odd/1, spin/1, slow/1]).
-export([raise/2, caught/2, deep/1, outer/1, alone/1, steps/2]).
-export([blob/1, seq/1, dict/1, nested/1, pair/2, secret/1]).
%% Functions that call the functions to be traced.
-export([run/1, loop/1, each/2, ping_pong/1, worker/0, worker/1, serve/0, ask/2, tell/2, within/2, stop/1, burst/2, flood/1, calm/1]).
-export([life/2, heap/1, reader/1, tokens/1]).
-export([warm/0, pace/2, stamp/1, begun/2, ask_child/2]).
%% A gen_server.
-export([start_server/0, stop_server/0, put/2, get/1, crash/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% --- calls of every shape

one(X) -> X.
two(X, Y) -> {X, Y}.
three(X, Y, Z) -> local(X, Y, Z).

%% Not exported, so only local tracing reports it.
local(X, Y, Z) -> [X, Y, Z].

%% Not tail recursive: N + 1 calls and as many returns on a deep stack.
fac(0) -> 1;
fac(N) -> N * fac(N - 1).

%% Not tail recursive; on the way back it waits before the call with Stop returns.
climb(0, _) -> 0;
climb(N, Pause = {Stop, Milliseconds}) ->
    Below = climb(N - 1, Pause),
    N =:= Stop andalso slow(Milliseconds),
    Below + 1.

%% Calls steps/2, waits for `up`, and returns the nanoseconds that this took. Tells Who when steps/2 has returned.
alone(Who) ->
    Begun = erlang:monotonic_time(nanosecond),
    steps(3, Who),
    Who ! {waits, alone},
    receive up -> erlang:monotonic_time(nanosecond) - Begun end.

%% The same with N nested calls, which begin some time after each other.
steps(0, _) -> 0;
steps(N, Who) ->
    Begun = erlang:monotonic_time(nanosecond),
    slow(20),
    steps(N - 1, Who),
    Who ! {waits, N},
    receive up -> erlang:monotonic_time(nanosecond) - Begun end.

%% Tail recursive: N + 1 calls on a flat stack.
sum(0, Acc) -> Acc;
sum(N, Acc) -> sum(N - 1, Acc + N).

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).

even(0) -> true;
even(N) -> odd(N - 1).

odd(0) -> false;
odd(N) -> even(N - 1).

%% Busy for about N reductions without a message.
spin(0) -> ok;
spin(N) -> spin(N - 1).

slow(Milliseconds) ->
    receive after Milliseconds -> Milliseconds end.

%% --- exceptions

raise(error, Reason) -> error(Reason);
raise(exit, Reason) -> exit(Reason);
raise(throw, Reason) -> throw(Reason).

caught(Class, Reason) ->
    try
        raise(Class, Reason)
    catch
        Class:Reason -> {caught, Class, Reason}
    end.

%% Raises an exception that unwinds N frames before the caller catches it. The compiler must not see that no call
%% returns, or it makes the recursion a loop.
deep(0) -> Erlang = list_to_existing_atom("erlang"), Erlang:error(bottom);
deep(N) -> 1 + deep(N - 1).

outer(N) ->
    try
        deep(N)
    catch
        error:bottom -> N
    end.

%% --- terms of every size

blob(Bytes) -> binary:copy(<<"0123456789abcdef">>, Bytes div 16 + 1).
seq(N) -> lists:seq(1, N).
dict(N) -> maps:from_list([{K, integer_to_binary(K)} || K <- lists:seq(1, N)]).
nested(0) -> [];
nested(N) -> [nested(N - 1)].
pair(X, _Big) -> X.
secret(Word) -> #{user => <<"anna">>, password => Word, nested => #{token => Word}}.

%% --- ways to call them

%% run(#{seed => S, procs => P, calls => N}): P processes make N calls each.
%% Returns #{{Function, Arity} => Count} for the exported leaf functions that were called.
run(Options) ->
    #{seed := Seed, procs := Procs, calls := Calls} =
        maps:merge(#{seed => 1, procs => 1, calls => 100}, Options),
    Run = fun(Id) ->
        rand:seed(exsss, {Seed, Id, Procs}),
        exit({counts, lists:foldl(fun(_, Counts) -> leaf(rand:uniform(6), Counts) end, #{}, lists:seq(1, Calls))})
    end,
    Refs = [element(2, spawn_monitor(fun() -> Run(Id) end)) || Id <- lists:seq(1, Procs)],
    lists:foldl(
        fun(Ref, Sum) ->
            receive
                {'DOWN', Ref, process, _, {counts, Counts}} -> add(Counts, Sum)
            end
        end,
        #{},
        Refs
    ).

leaf(1, Counts) -> _ = one(rand:uniform(100)), count({one, 1}, 1, Counts);
leaf(2, Counts) -> _ = two(a, <<"b">>), count({two, 2}, 1, Counts);
leaf(3, Counts) -> _ = three(1, 2.5, [c]), count({three, 3}, 1, Counts);
leaf(4, Counts) -> N = rand:uniform(5), _ = fac(N), count({fac, 1}, N + 1, Counts);
leaf(5, Counts) -> N = rand:uniform(5), _ = sum(N, 0), count({sum, 2}, N + 1, Counts);
leaf(6, Counts) -> _ = caught(error, oops), count({caught, 2}, 1, count({raise, 2}, 1, Counts)).

count(Key, N, Counts) ->
    maps:update_with(Key, fun(Old) -> Old + N end, N, Counts).

add(Counts, Sum) ->
    maps:fold(fun count/3, Sum, Counts).

%% Calls one/1 N times, with N down to 1.
loop(N) -> each(fun ?MODULE:one/1, N).

each(_Fun, 0) -> ok;
each(Fun, N) ->
    _ = Fun(N),
    each(Fun, N - 1).

%% Sends N messages to another process and receives N answers.
ping_pong(N) ->
    Self = self(),
    Pong = spawn_link(fun() -> pong(Self, N) end),
    ping(Pong, N).

ping(_Pong, 0) -> ok;
ping(Pong, N) ->
    Pong ! {ping, self(), N},
    receive {pong, N} -> ping(Pong, N - 1) end.

pong(_Ping, 0) -> ok;
pong(Ping, N) ->
    receive {ping, Ping, N} -> Ping ! {pong, N} end,
    pong(Ping, N - 1).

%% Starts a process that runs requests. ask/2 waits for the value, tell/2 does not.
worker() ->
    spawn(?MODULE, serve, []).

worker(Name) ->
    Pid = worker(),
    true = register(Name, Pid),
    Pid.

serve() ->
    receive
        {ask, From, Ref, Fun} ->
            From ! {Ref, Fun()},
            serve();
        {tell, Fun} ->
            _ = Fun(),
            serve();
        stop ->
            ok
    end.

ask(Worker, Fun) ->
    Ref = monitor(process, Worker),
    Worker ! {ask, self(), Ref, Fun},
    receive
        {Ref, Value} ->
            demonitor(Ref, [flush]),
            Value;
        {'DOWN', Ref, process, _, Reason} ->
            exit(Reason)
    end.

tell(Worker, Fun) ->
    Worker ! {tell, Fun},
    ok.

%% Waits until a named process is in a function: of this module, or of another one as {Module, Name}.
within(Process, {Module, Name}) ->
    case process_info(whereis(Process), current_function) of
        {_, {Module, Name, _}} -> ok;
        _ -> receive after 1 -> within(Process, {Module, Name}) end
    end;
within(Process, Name) ->
    within(Process, {?MODULE, Name}).

stop(Worker) ->
    Pid = case Worker of Name when is_atom(Name) -> whereis(Name); P -> P end,
    Ref = monitor(process, Pid),
    Pid ! stop,
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% Runs Fun in a process that the worker spawns for it.
ask_child(Worker, Fun) ->
    ask(Worker, fun() ->
        Self = self(),
        Pid = spawn(fun() -> Self ! {self(), Fun()} end),
        receive {Pid, Value} -> Value end
    end).

%% Runs Steps random interactions of processes. All spawned processes have exited when it returns their number.
life(Seed, Steps) ->
    rand:seed(exsss, {Seed, Steps, 7}),
    lists:sum([live(rand:uniform(7), rand:uniform(1000)) || _ <- lists:seq(1, Steps)]).

live(1, N) -> over(spawn_monitor(fun() -> exit({reason, N}) end));
live(2, N) -> over(spawn_monitor(lists, seq, [1, N]));
live(3, N) ->
    {Pid, _} = Child = spawn_monitor(fun() -> receive go -> N end end),
    true = link(Pid),
    true = unlink(Pid),
    Pid ! go,
    over(Child);
live(4, N) ->
    Pid = spawn_link(fun() -> receive go -> N end end),
    Ref = monitor(process, Pid),
    true = register(somebody, Pid),
    true = unregister(somebody),
    true = register(somebody, Pid),
    somebody ! go,
    over({Pid, Ref});
live(5, N) ->
    ping_pong(N rem 5),
    {Pid, _} = Child = spawn_monitor(fun() -> ok end),
    over(Child),
    Pid ! {nobody, N},
    2;
live(6, N) ->
    {Pid, _} = Child = spawn_monitor(fun() -> receive never -> N end end),
    exit(Pid, kill),
    over(Child);
live(7, N) ->
    _ = one(N),
    _ = fac(N rem 4),
    0.

over({Pid, Ref}) ->
    receive {'DOWN', Ref, process, Pid, _} -> 1 end.

%% Starts a process that waits for `go`, makes and collects the same garbage in every run, and then waits for `stop`.
heap(Steps) ->
    spawn_opt(fun() ->
        receive go -> garbage(Steps, []) end,
        receive stop -> ok end
    end, [{min_heap_size, 233}, {fullsweep_after, 4}]).

garbage(0, Kept) -> length(Kept);
garbage(N, Kept) when N rem 10 =:= 0 ->
    garbage_collect(),
    garbage(N - 1, [lists:seq(1, N) | Kept]);
garbage(N, Kept) ->
    _ = lists:seq(1, N * 3),
    garbage(N - 1, Kept).

%% Opens cat as a port, sends it lines, and reads them back.
reader(Lines) ->
    Port = open_port({spawn, "cat"}, [stream, binary]),
    [begin
        Line = <<"line ", (integer_to_binary(N))/binary, "\n">>,
        true = port_command(Port, Line),
        receive {Port, {data, Line}} -> ok end
    end || N <- lists:seq(1, Lines)],
    true = port_close(Port),
    Port.

%% Sends a message and receives one under a token with that label; clears the token afterwards.
tokens(Label) ->
    Echo = spawn(fun() -> receive {echo, From} -> seq_trace:print(heard), From ! echoed end end),
    seq_trace:set_token(label, Label),
    seq_trace:set_token(send, true),
    seq_trace:set_token('receive', true),
    seq_trace:set_token(print, true),
    Echo ! {echo, self()},
    receive echoed -> seq_trace:set_token([]) end,
    Echo.

%% Runs the code that the tests evaluate once, so that later runs load no code and make no atoms.
warm() ->
    _ = run(#{procs => 2, calls => 20}),
    _ = burst(2, 10),
    _ = {ask(w, fun() -> caught(exit, oops) end), fac(3), outer(2), fib(3), even(2), dict(2), secret(<<"x">>)},
    _ = ask_child(w, fun() -> ok end),
    _ = (catch erlang:memory(total)), % the names of its parts become atoms
    stop(worker()),
    ok.

%% Procs processes call one/1 without a pause until calm/1.
flood(Procs) ->
    Pids = [spawn(fun flood_loop/0) || _ <- lists:seq(1, Procs)],
    register(flood, spawn(fun() -> receive {calm, From} -> [exit(P, kill) || P <- Pids], From ! calmed end end)),
    ok.

flood_loop() ->
    _ = one(flood),
    flood_loop().

%% Ends a flood, and returns Value when it is over.
calm(Value) ->
    Pid = whereis(flood),
    Ref = monitor(process, Pid),
    Pid ! {calm, self()},
    receive calmed -> ok end,
    receive {'DOWN', Ref, process, _, _} -> Value end.

%% Calls stamp/1 N times with the wall clock in microseconds, one call every Ms milliseconds.
pace(0, _) -> ok;
pace(N, Ms) ->
    _ = stamp(os:system_time(microsecond)),
    receive after Ms -> pace(N - 1, Ms) end.

stamp(Micros) -> Micros.

%% Starts a registered process that calls one/1 with each of Values after the message `go`.
begun(Name, Values) ->
    Pid = spawn(fun() -> receive go -> [one(V) || V <- Values], receive stop -> ok end end end),
    true = register(Name, Pid),
    Pid.

%% Procs processes call one/1 N times each, concurrently; returns when all are done.
burst(Procs, N) ->
    Started = [spawn_monitor(fun() -> receive go -> loop(N) end end) || _ <- lists:seq(1, Procs)],
    [Pid ! go || {Pid, _} <- Started],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || {_, Ref} <- Started],
    Procs * N.

%% --- a server with a map as its state

start_server() ->
    {ok, Pid} = gen_server:start({local, work_server}, ?MODULE, [], []),
    Pid.

stop_server() -> gen_server:stop(work_server).
put(Key, Value) -> gen_server:cast(work_server, {put, Key, Value}).
get(Key) -> gen_server:call(work_server, {get, Key}).
crash(Reason) -> gen_server:cast(work_server, {crash, Reason}).

init([]) -> {ok, #{}}.

handle_call({get, Key}, _From, State) -> {reply, maps:get(Key, State, undefined), State}.

handle_cast({put, Key, Value}, State) -> {noreply, State#{Key => Value}};
handle_cast({crash, Reason}, _State) -> exit(Reason).

handle_info(_Info, State) -> {noreply, State}.
