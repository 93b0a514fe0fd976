%% SPDX-License-Identifier: Apache-2.0
%% Has functions that call themselves in loops, and some that do, for the suite about results that never arrive.
-module(loops).

-export([tail/1, slow/1, one/1, two/1, serve/1, work/1, deep/1, below/2, thrower/1, caught/1, waits/1, sleeps/1, wake/1]).
-export([turn/1, back/1, hop/2, ping/1, deep_at/2, crowd/2, times/1]).
-export([rounds/1, round/2]).
-export([run/2, stop/1, words/1, dead/1, ask/2]).

tail(N) -> work(N), tail(N + 1).

%% rounds/1 is called after each fourteen turns of round/2, and each call is the last one of the other function.
rounds(0) -> done;
rounds(N) -> round(N, 14).
round(N, 0) -> rounds(N - 1);
round(N, Turns) -> round(N, Turns - 1).

slow(N) -> work(N), timer:sleep(1), slow(N + 1).

one(N) -> two(work(N)).
two(N) -> one(N + 1).

work(N) -> N + 1.

%% Like the loop of a gen_server: answers, then calls itself.
serve(N) ->
    receive {From, Ref} -> From ! {Ref, work(N)}, serve(N + 1) end.

ask(Name, Times) ->
    [begin Ref = make_ref(), Name ! {self(), Ref}, receive {Ref, _} -> ok end end || _ <- lists:seq(1, Times)],
    ok.

deep(0) -> 0;
deep(N) -> 1 + deep(N - 1).

%% Recursion in which turn/1 has no frame of its own.
turn(0) -> 0;
turn(N) -> back(N).
back(N) -> 1 + turn(N - 1).

%% Puts N frames on the stack before it calls F.
below(0, F) -> F();
below(N, F) -> [below(N - 1, F)].

thrower(N) -> throw(N).
caught(0) -> ok;
caught(N) -> try thrower(N) catch _ -> ok end, caught(N - 1).

waits(_) -> receive never -> ok end.

%% Hibernates again and again; each hibernation discards the stack of the call.
sleeps(N) -> erlang:hibernate(?MODULE, wake, [N]).
wake(N) -> receive {From, Ref} -> From ! {Ref, N} end, sleeps(N + 1).

%% Calls itself through apply, or through another module.
hop(apply, N) -> work(N), apply(element(1, {?MODULE}), hop, [apply, N + 1]);
hop(module, N) -> work(N), loops_too:hop(module, N + 1).

%% Alternates with loops_too:pong/1; neither returns.
ping(N) -> loops_too:pong(work(N)).

%% Calls itself N times and returns.
times(0) -> done;
times(N) -> times(N - 1).

%% Waits at a depth of N calls for the message `back`.
deep_at(0, To) -> To ! {self(), there}, receive back -> 0 end;
deep_at(N, To) -> 1 + deep_at(N - 1, To).

%% Runs Many processes at this depth at the same time, and returns the sum of their results.
crowd(Many, Depth) ->
    To = self(),
    Pids = [spawn_link(fun() -> To ! {self(), deep_at(Depth, To)} end) || _ <- lists:seq(1, Many)],
    [receive {Pid, there} -> ok end || Pid <- Pids],
    [Pid ! back || Pid <- Pids],
    lists:sum([receive {Pid, N} when is_integer(N) -> N end || Pid <- Pids]).

run(Name, F) ->
    register(Name, spawn(fun() -> receive go -> F() end end)),
    Name ! go,
    ok.

stop(Name) ->
    Ref = monitor(process, Name),
    exit(whereis(Name), kill),
    receive {'DOWN', Ref, _, _, _} -> ok end.

%% Returns the size of the stack in words. Each frame of a pending result takes four words.
words(Name) -> element(2, process_info(whereis(Name), stack_size)).

%% Kills N processes inside a traced call.
dead(N) ->
    [begin
        {Pid, Ref} = spawn_monitor(fun() -> waits(X) end),
        {current_function, {?MODULE, waits, 1}} = there(Pid),
        exit(Pid, kill),
        receive {'DOWN', Ref, _, _, _} -> ok end
    end || X <- lists:seq(1, N)],
    ok.

there(Pid) ->
    case process_info(Pid, current_function) of
        {_, {?MODULE, waits, 1}} = Here -> Here;
        _ -> erlang:yield(), there(Pid)
    end.
