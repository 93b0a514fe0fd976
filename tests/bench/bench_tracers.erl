%% SPDX-License-Identifier: Apache-2.0
%% The tracers: none, the floor, an empty process, the VM's own counters, etrace's NIF alone in its modes, and etrace as
%% users run it, with a client on the same machine. start/3 arms for a workload and returns a function that ends the
%% tracing after everything has arrived. This function returns the number of lost events, or {Shown, Lost} for a client.
-module(bench_tracers).
-export([all/1, title/1, rounds/3, arrives/1, counts/1, start/3, session/3, etrace/6, drain/2, nif/0]).
-export([client/3, client_end/1, client_pid/1, said/1, armed/2, wait/2]).

-define(NIF, bench_etrace_nif0).
-define(SMALL, bench_etrace_nif1). % a copy, because a library keeps the size of its rings
-define(LARGE, bench_etrace_nif2). % a copy for whole terms: a ring of the usual size holds only a few of them
-define(MB, 1048576).
-define(RING, (2 * ?MB)). % the size that a client uses

nif() -> ?NIF.

all(W) ->
    [untraced, floor, discard, pid] ++
        [rejects || W =:= w6] ++
        [{counters, C} || W =:= w1 orelse W =:= w2 orelse W =:= w4, C <- [[call_count], [call_count, call_time, call_memory]]] ++
        [{etrace, B} || B <- budgets(W)] ++
        [{live, B} || get(etrace) =/= "none", B <- budgets(W), B =/= 1024] ++
        [{asked, A} || get(etrace) =/= "none", A <- asked(W)] ++
        [full || W =/= w6] ++ [closed] ++
        [tally || W =/= w3, W =/= w6] ++
        [{peer, P} || W =/= w7, P <- bench_peers:all(W)].

%% More requests to a client: a guard that accepts every call; messages without their senders; calls that wait on the
%% node for their results, with none or all of them shown.
asked(w1) -> [guard];
asked(w3) -> [anonymous];
asked(W) when W =:= w4; W =:= w7 -> [hidden, held];
asked(_) -> [].

budgets(W) when W =:= w4; W =:= w5 -> [256, 1024, whole];
budgets(_) -> [256].

title(untraced) -> "untraced";
title(floor) -> "floor: an empty NIF tracer";
title(rejects) -> "empty NIF tracer, calls that the specification rejects";
title(discard) -> "NIF tracer that discards";
title(pid) -> "empty process tracer";
title({counters, C}) -> lists:flatten(["no tracer: " | lists:join(", ", [atom_to_list(A) || A <- C])]);
title({etrace, whole}) -> "etrace, whole terms, no client";
title({etrace, B}) -> lists:flatten(io_lib:format("etrace, ~b B an event, no client", [B]));
title({live, whole}) -> "etrace, whole terms, to a client's text";
title({live, B}) -> lists:flatten(io_lib:format("etrace, ~b B an event, to a client's text", [B]));
title({asked, guard}) -> "etrace, to a client's text, with a guard";
title({asked, anonymous}) -> "etrace, to a client's text, without who sent it";
title({asked, hidden}) -> "etrace, to a client's text, all hidden by duration";
title({asked, held}) -> "etrace, to a client's text, none hidden by duration";
title(full) -> "etrace, rings full";
title(closed) -> "etrace, paused";
title(tally) -> "etrace, figures only";
title({peer, P}) -> bench_peers:title(P).

%% True if the tracer delivers the events.
arrives({live, _}) -> true;
arrives({asked, Which}) -> Which =/= hidden;
arrives({peer, _}) -> true;
arrives(_) -> false.

%% True if the tracer reports lost events.
counts({etrace, _}) -> true;
counts({asked, _}) -> true;
counts(T) -> arrives(T).

%% The rounds of a workload for a tracer. A client gets more, because leaving takes some milliseconds regardless of the
%% number. A tracer that lets mailboxes grow gets fewer.
rounds({live, 256}, W, N) when W =:= w1; W =:= w2c; W =:= w2 -> 4 * N;
rounds({asked, guard}, _, N) -> 4 * N;
rounds({_, whole}, w5, N) -> min(N, 1000);
rounds(pid, w5, N) -> min(N, 1000);
rounds({peer, P}, W, N) -> min(N, bench_peers:most(P, W) div bench_work:events(W));
rounds(_, _, N) -> N.

start(untraced, _, _) -> fun() -> 0 end;
start(floor, w6, Pids) -> session({bench_floor, 0}, w1, Pids);
start(floor, W, Pids) -> session({bench_floor, 0}, W, Pids);
start(rejects, W, Pids) -> session({bench_floor, 0}, W, Pids);
start(discard, W, Pids) -> session({bench_discard, 0}, W, Pids);
start(pid, W, Pids) ->
    P = spawn_opt(fun Loop() -> receive stop -> ok; _ -> Loop() end end, [{message_queue_data, off_heap}]),
    Stop = session(P, W, Pids),
    fun() -> N = Stop(), exit(P, kill), N end;
start({counters, Which}, W, Pids) ->
    S = trace:session_create(bench, self(), []),
    trace:function(S, bench_work:mfa(W), true, Which),
    [1 = trace:process(S, P, true, [call]) || P <- Pids],
    fun() -> trace:session_destroy(S), 0 end;
start({etrace, whole}, W, Pids) -> etrace(?LARGE, 64 * ?MB, whole, {W, Pids}, fun drain/2, []);
start({etrace, Bytes}, W, Pids) -> etrace(?NIF, ?RING, Bytes, {W, Pids}, fun drain/2, []);
start({live, Bytes}, W, Pids) -> live(budget(Bytes) ++ bench_work:expressions(W), W, Pids);
start({asked, Which}, W, Pids) -> live(budget(256) ++ ask(Which, bench_work:expressions(W)), W, Pids);
start(full, W, Pids) -> etrace(?SMALL, 32768, 256, {W, Pids}, fun idle/2, []);
start(tally, W, Pids) -> etrace(?NIF, ?RING, 256, {W, Pids}, fun idle/2, [returns || W =:= w4 orelse W =:= w7] ++ [{tally, 1000}]);
start({peer, P}, W, Pids) -> bench_peers:start(P, W, Pids);
start(closed, W, Pids) -> etrace(?SMALL, 32768, 256, {W, Pids}, fun idle/2, [closed]).

session(Tracer, W, Pids) ->
    S = trace:session_create(bench, Tracer, []),
    Flags = bench_work:arm(S, W),
    [1 = trace:process(S, P, true, Flags) || P <- Pids],
    fun() -> true = trace:session_destroy(S), 0 end.

gate(Nif, State, Gate) ->
    case Nif:gate(State, Gate) of ok -> ok; more -> gate(Nif, State, Gate) end.

%% The owner opens the session and discards the batches, with the timing of a client: it drains at once after a full
%% batch, otherwise after 2 ms, the shortest interval of a client. Armed is {Workload, Pids} or a function that arms a
%% session.
etrace(Nif, Ring, Bytes, Armed, Loop, Gates) ->
    Self = self(),
    {Budget, Depth, Items} = case Bytes of whole -> {262144, 64, 65536}; _ -> {Bytes, 16, 4096} end,
    {Pid, Ref} = spawn_opt(fun() ->
        {ok, Opened} = Nif:open({Ring, 64, Budget, Depth, Items, 0, 0, [], 0}),
        [gate(Nif, Opened, G) || G <- [events, no_returns, early, plain | Gates]],
        Self ! {state, Opened},
        exit({lost, Loop(Nif, Opened)})
    end, [{priority, high}, monitor]),
    State = receive {state, S} -> S; {'DOWN', Ref, process, Pid, Why} -> error(Why) end,
    Stop = case Armed of
        {w6, Pids} ->
            [_] = Nif:program(State, [{0, 0, 0, 0, 1, 2, none}], [bench_work:mfa(w6)]), % A1 =:= none -> shown, else hidden
            session({Nif, State}, w1, Pids);
        {W, Pids} -> session({Nif, State}, W, Pids);
        Arm -> Arm({Nif, State})
    end,
    fun() ->
        Stop(),
        ok = Nif:close(State),
        Pid ! stop,
        receive {'DOWN', Ref, process, Pid, {lost, N}} -> N end
    end.

idle(_, _) -> receive stop -> 0 end.

%% Returns the number of events that the rings have lost.
drain(Nif, State) -> drain(Nif, State, #{}).

drain(Nif, State, Lost) ->
    {Batch, _, Status} = Nif:drain(State, ?MB, <<>>, false),
    New = losses(Batch, Lost),
    Full = Status band 1 =:= 1 andalso Batch =/= none,
    receive
        ready_input -> drain(Nif, State, New);
        stop when not Full -> lists:sum(maps:values(New))
    after if Full -> 0; true -> 2 end -> drain(Nif, State, New)
    end.

%% Reads the losses of each section of a batch (etrace_wire.h). They are totals since the start.
losses(none, Lost) -> Lost;
losses(<<_:56/binary, Sections/binary>>, Lost) -> sections(Sections, Lost).

sections(<<Ring:32/little, Bytes:32/little, _Seen:64, Counts:64/binary, _:Bytes/binary, Rest/binary>>, Lost) ->
    sections(Rest, Lost#{Ring => lists:sum([N || <<N:64/little>> <= Counts])});
sections(_, Lost) -> Lost.

%% ---- etrace with a client ----------------------------------------------------------------------------------------

live(Args, W, Pids) ->
    Client = client(processes(Pids) ++ Args, " >/dev/null", []),
    wait(fun() -> bench_work:is_armed(W, Pids) end, Client),
    fun() -> client_end(Client) end.

ask(guard, _) -> ["bench_work:f(N, _) when N > 0"];
ask(anonymous, Expressions) -> ["--format", "{time} {pid} {type} {to} {msg}" | Expressions];
ask(hidden, Expressions) -> [E ++ " where dur > 1min" || E <- Expressions];
ask(held, Expressions) -> [E ++ " where dur >= 0ns" || E <- Expressions].

budget(whole) -> ["--size", "262144", "--depth", "64", "--items", "65536"];
budget(Bytes) -> ["--size", integer_to_list(Bytes)].

processes(Pids) -> lists:append([["-P", pid_to_list(P)] || P <- Pids]).

%% Starts a client that attaches to this node. Where is the shell redirection of its output. The command is trace, or
%% that of a first argument {command, Name}.
client([{command, Command} | Args], Where, Env) -> client(Command, Args, Where, Env);
client(Args, Where, Env) -> client("trace", Args, Where, Env).

client(Command, Args, Where, Env) ->
    Log = filename:join(get(dir), "live.log"),
    file:delete(Log),
    Words = lists:join(" ", [[$', A, $'] || A <- [get(etrace), Command, "-n", atom_to_list(node()), "--rate", "0" | Args]]),
    Port = open_port({spawn_executable, "/bin/bash"},
        [exit_status, {env, Env}, {args, ["-c", lists:flatten(["exec ", Words, " 2>'", Log, "'", Where])]}]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    {Port, OsPid, Log}.

client_pid({_, OsPid, _}) -> OsPid.

said({_, _, Log}) -> {ok, Text} = file:read_file(Log), Text.

armed(Client, Pids) -> wait(fun() -> bench_work:is_armed(w1, Pids) end, Client).

wait(Until, Client) -> wait(Until, Client, 30000).
wait(_, Client, Left) when Left =< 0 -> error({client, said(Client)});
wait(Until, Client, Left) -> Until() orelse begin timer:sleep(5), wait(Until, Client, Left - 5) end.

%% Returns {Shown, Lost} from the last line of the client.
client_end(Client = {Port, OsPid, _}) ->
    os:cmd("kill -INT " ++ integer_to_list(OsPid)),
    receive {Port, {exit_status, _}} -> ok end,
    Text = said(Client),
    wait(fun() -> trace:session_info(all) -- [{legacy, default}] =:= [] end, Client),
    case re:run(Text, "([0-9]+) events? in .*?(?: ([0-9]+) lost|$)", [{capture, all_but_first, list}, multiline]) of
        {match, [Shown]} -> {list_to_integer(Shown), 0};
        {match, [Shown, Lost]} -> {list_to_integer(Shown), list_to_integer(Lost)};
        nomatch -> error({client, Text})
    end.
