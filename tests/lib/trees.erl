%% SPDX-License-Identifier: Apache-2.0
%% Random trees of calls, for tests of `inside`. run(Seed, Processes, Trees) returns when all processes have ended; it
%% makes the same calls each time. The first argument of each call is the number of its process, the second one the
%% depth that is left.
%%
%% requests(Processes, Count, Odd) makes Count requests in each process. Odd: [{Number, Milliseconds | fail}], the
%% requests that wait or raise an exception. Each sends itself a message.
-module(trees).
-export([run/3, a/2, b/2, c/2]).
-export([requests/3, request/2, part/2, many/1, nested/1, turns/1]).

run(Seed, Processes, Trees) ->
    Refs = [element(2, spawn_monitor(fun() ->
        rand:seed(exsss, {Seed, N, Trees}),
        [caught(fun() -> some(N, 5) end) || _ <- lists:seq(1, Trees)]
    end)) || N <- lists:seq(1, Processes)],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || Ref <- Refs],
    ok.

caught(F) -> try F() catch throw:up -> caught end.

some(N, Left) ->
    case rand:uniform(3) of
        1 -> a(N, Left);
        2 -> b(N, Left);
        3 -> c(N, Left)
    end.

%% Each sends a message to itself and receives it; with 2 levels left it spawns a process. Then it does at random:
%% nothing, calls with or without a catch, an exception, a tail call.
a(N, Left) -> does(N, Left).
b(N, Left) -> X = does(N, Left), [X].
c(N, Left) -> caught(fun() -> does(N, Left) end).

does(_, 0) -> leaf;
does(N, Left) ->
    self() ! {said, N, Left},
    receive {said, N, Left} -> ok end,
    Left =:= 2 andalso spawn(fun() -> ok end),
    case rand:uniform(8) of
        1 -> throw(up);
        2 -> leaf;
        3 -> some(N, Left - 1);
        4 -> [caught(fun() -> some(N, Left - 1) end), caught(fun() -> some(N, Left - 1) end)];
        _ -> [some(N, Left - 1) || _ <- lists:seq(1, rand:uniform(2))]
    end.

requests(Processes, Count, Odd) ->
    Refs = [element(2, spawn_monitor(fun() -> request_each(1, Count, Odd) end)) || _ <- lists:seq(1, Processes)],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || Ref <- Refs],
    ok.

request_each(N, Count, _) when N > Count -> ok;
request_each(N, Count, Odd) ->
    caught(fun() -> request(N, proplists:get_value(N, Odd, 0)) end),
    request_each(N + 1, Count, Odd).

request(N, Wait) ->
    self() ! {begun, N},
    receive {begun, N} -> ok end,
    Parts = {part(N, one), part(N, [two, Wait])},
    Wait =:= fail andalso throw(up),
    Parts.

part(N, [two, Wait]) when is_integer(Wait), Wait > 0 -> receive after Wait -> N end;
part(N, _) -> N.

%% Waits for N calls of itself.
nested(0) -> part(0, end_of_all), 0;
nested(N) -> 1 + nested(N - 1).

%% Its last call is one of itself, N times.
turns(0) -> part(0, turn);
turns(N) -> part(N, turn), turns(N - 1).

%% A root with N calls inside.
many(N) -> [part(I, <<I:800>>) || I <- lists:seq(1, N)], receive after 60 -> ok end.
