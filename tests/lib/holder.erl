%% SPDX-License-Identifier: Apache-2.0
%% Runs processes that hold sequential trace tokens. Timers control them, because a message from a timer does not
%% change the token of its receiver.
-module(holder).
-export([loop/0, ticking/0, calling/1, taker/1]). % entry functions of spawned processes
-export([start/1, stop/0, tell/2, stop_one/1, labels/0, count/1, tracers/1, cleaner/0, at_work/1]).

%% Starts registered holders.
start(Names) ->
    [true = register(Name, spawn(?MODULE, loop, [])) || Name <- Names],
    ok.

%% Kills all holders; the node is then as before start/1.
stop() ->
    Holders = [P || P <- processes(), is_holder(P)],
    [exit(P, kill) || P <- Holders],
    [receive after 1 -> ok end || P <- Holders, is_process_alive(P)],
    ok.

is_holder(P) ->
    case process_info(P, initial_call) of {_, {?MODULE, _, _}} -> true; _ -> false end.

tell(Name, What) ->
    erlang:send_after(0, Name, {What, self()}),
    receive {done, What} -> ok after 20000 -> error({What, process_info(whereis(Name))}) end.

loop() ->
    receive
        {What, From} when is_pid(From) ->
            do(What),
            %% The sender of the request must not get the token.
            Token = seq_trace:set_token([]),
            From ! {done, What},
            seq_trace:set_token(Token),
            loop();
        tick -> tick(), loop();
        _ -> loop()
    end.

do({call, X}) -> work:one(X);
do({own, Label}) -> seq_trace:set_token(label, Label);
do({send, To}) -> To ! hello;
do({spawn, N}) -> [spawn(?MODULE, loop, []) || _ <- lists:seq(1, N)]; % they inherit the token
do({ticking, N}) -> [spawn(?MODULE, ticking, []) || _ <- lists:seq(1, N)];
do({calling, F, N}) -> [spawn(?MODULE, calling, [F]) || _ <- lists:seq(1, N)];
do(tick) -> tick();
do(two) -> work:two(1, 2);
do({taker, Name, To}) -> register(Name, spawn(?MODULE, taker, [To])).

ticking() -> tick(), loop().

%% Sends a message every 50 ms for ever.
tick() ->
    erlang:send_after(50, self(), tick),
    try sink ! hello catch error:_ -> ok end.

%% A holder that calls work:one/1 or work:two/2 for ever and sends nothing.
calling(F) ->
    case F of one -> work:one(1); two -> work:two(1, 2) end,
    receive after 1 -> calling(F) end.

taker(To) -> seq_trace:set_token([]), take(To).

%% A holder that leaves its messages in the queue until a second session traces it: the session of the cleaner.
take(To) ->
    case tracers(self()) of
        0 -> receive after 1 -> take(To) end;
        _ -> receive hello -> To ! hello end, put(took, true), loop()
    end.

tracers(P) ->
    case trace:session_info(P) of undefined -> 0; Sessions -> length(Sessions) end.

%% labels/0 lists each label of a token on the node once; count/1 counts the processes whose token has that label.
labels() -> lists:usort([Label || {_, Label} <- all()]).
count(Label) -> length([P || {P, L} <- all(), L =:= Label]).

all() -> [{P, Label} || P <- processes(), {_, {_, Label, _, _, _}} <- [process_info(P, sequential_trace_token)]].

%% Finds the etrace process that removes tokens.
cleaner() ->
    hd(control:companion(cleaner)).


stop_one(Name) ->
    Monitor = monitor(process, Name),
    exit(whereis(Name), kill),
    receive {'DOWN', Monitor, _, _, _} -> ok end.

%% Waits until the cleaner traces an unregistered holder (no other session traces these), then kills or suspends the
%% cleaner.
at_work(What) ->
    case [P || P <- processes(), is_holder(P), process_info(P, registered_name) =:= [], tracers(P) > 0] of
        [] -> receive after 1 -> at_work(What) end;
        _ when What =:= kill -> exit(cleaner(), kill);
        _ ->
            Cleaner = cleaner(),
            erlang:suspend_process(Cleaner), % until this process ends
            Monitor = monitor(process, Cleaner),
            receive {'DOWN', Monitor, _, _, _} -> ok end
    end.
