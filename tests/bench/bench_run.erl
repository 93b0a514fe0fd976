%% Runs every workload under every tracer, interleaved, and prints ratios to the floor of the same round.
%%
%% Beside it, for tracers that bring the events somewhere: how many arrive there in a second of the whole run, until the last one
%% has, and how much memory of the node an event takes at the end of the workload, before that.
%%
%% A figure is the time added to the traced processes by one event: (traced - untraced) / events, and what is shown is its
%% ratio to the floor's in the same round, the median of all rounds with the quartiles. Nanoseconds are of one machine.
%% Ends with the goals as TAP.
-module(bench_run).
-export([main/1]).

-define(NIF, bench_etrace_nif0).
-define(SMALL, bench_etrace_nif1). % the same once more: a library keeps the size of its rings
-define(MB, 1048576).

main([Dir, Rounds, Scale, Json, Etrace | Only]) ->
    ok = bench_floor:load(filename:join(Dir, "floor")),
    ok = bench_discard:load(filename:join(Dir, "discard")),
    ok = ?NIF:load(filename:join(Dir, "etrace_0")),
    ok = ?SMALL:load(filename:join(Dir, "etrace_1")),
    put(etrace, Etrace),
    put(dir, Dir),
    N = list_to_integer(Rounds),
    Works = [W || W <- bench_work:all(), Only =:= [] orelse lists:member(atom_to_list(W), Only)],
    All = [{W, measure(W, N, list_to_float(Scale))} || W <- Works],
    Figures = [{W, T, figure(T, Samples)} || {W, Samples} <- All, T <- tracers(W), T =/= untraced],
    Goals = [goal(G, Samples) || {GW, _, _, _, _, _} = G <- goals(), {W, Samples} <- All, W =:= GW],
    io:put_chars(table(Works, Figures)),
    io:put_chars(["\n" | [L || {_, L} <- Goals]]),
    file:write_file(Json, json(N, Figures)),
    halt(0).

tracers(W) ->
    [untraced, floor, discard, pid, {etrace, 256}] ++
        [{etrace, 1024} || W =:= w4 orelse W =:= w5] ++
        [{live, 256} || get(etrace) =/= "none"] ++
        [full, closed] ++
        [tally || W =/= w3] ++
        [{peer, P} || P <- bench_peers:all(W)].

arrives({live, _}) -> true;
arrives({peer, _}) -> true;
arrives(_) -> false.

title(floor) -> "floor: an empty NIF tracer";
title(discard) -> "NIF tracer that discards";
title(pid) -> "empty process tracer";
title({etrace, B}) -> io_lib:format("etrace, ~b B an event, no client", [B]);
title({live, B}) -> io_lib:format("etrace, ~b B an event, to a client's text", [B]);
title(full) -> "etrace, rings full";
title(closed) -> "etrace, paused";
title(tally) -> "etrace, figures only";
title({peer, P}) -> bench_peers:title(P).

%% What the project holds itself to: workload, name, tracer, against what, at most, what it says.
goals() ->
    [{w1, "G1", {live, 256}, floor, 1.30, "a small call, live"},
     {w1, "G2", {etrace, 256}, floor, 1.20, "a small call, no client"},
     {w3, "G3", {live, 256}, floor, 1.45, "send and receive, live"},
     {w1, "G4", {etrace, 256}, pid, 0.55, "a small call, against a process tracer"},
     {w4, "G5", {etrace, 256}, floor, 3.0, "a large state, 256 bytes of it"},
     {w4, "G5", {etrace, 256}, pid, 0.12, "the same against a process tracer"},
     {w4, "G6", {etrace, 1024}, pid, 0.25, "a large state, 1 kB of it, against a process tracer"},
     {w5, "G6", {etrace, 256}, pid, 0.04, "100 kB, 256 bytes of it, against a process tracer"},
     {w1, "G8", {e2e, {peer, dbg_text}}, {live, 256}, 1 / 40, "events a second, dbg's text against etrace's"},
     {w1, "G8", {e2e, {peer, redbug}}, {live, 256}, 1 / 100, "events a second, redbug's text against etrace's"},
     {w1, "G8", {e2e, {peer, recon}}, {live, 256}, 1 / 100, "events a second, recon's text against etrace's"},
     {w1, "G9", {e2e, {peer, dbg_file}}, {live, 256}, 1 / 3, "events a second, dbg's file undecoded against etrace's text"},
     {w1, "G9", {e2e, {peer, dbg_ip}}, {live, 256}, 1 / 4, "events a second, dbg's ip port against etrace's text"},
     {w4, "7.5", tally, floor, 1.20, "calls and results that are only counted"},
     {w1, "G18", full, floor, 0.80, "a small call, rings full"},
     {w1, "G18", closed, floor, 0.80, "a small call, paused"}].

goal({W, Name, T0, Base, Most, What}, Samples) ->
    {How, T} = case T0 of {e2e, X} -> {e2e, X}; _ -> {added, T0} end,
    case lists:keymember(T, 1, hd(Samples)) andalso lists:keymember(Base, 1, hd(Samples)) of
        false ->
            {true, io_lib:format("ok - ~s ~s: ~s # SKIP not there\n", [Name, W, What])};
        true ->
            Ratio = case How of
                e2e -> rate(T, Samples) / rate(Base, Samples);
                added -> quantile(0.5, ratios(T, Base, Samples))
            end,
            %% what is lost is cheap: a figure with losses is none
            Lost = case T of {live, _} -> get({lost, W}); _ -> 0 end,
            Good = Ratio =< Most andalso Lost =:= 0,
            {Good, io_lib:format("~sok - ~s ~s: ~s: ~.3f (at most ~.3f), ~b lost\n",
                [case Good of true -> ""; false -> "not " end, Name, W, What, Ratio, Most, Lost])}
    end.

measure(W, Rounds, Scale) ->
    N = max(100, round(bench_work:rounds(W) * Scale)),
    Tracers = tracers(W),
    _ = [once(W, T, max(100, N div 10)) || T <- Tracers],
    [[{T, once(W, T, N)} || T <- shuffle(Tracers)] || _ <- lists:seq(1, Rounds)].

shuffle(L) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

%% {Nanoseconds, nanoseconds until all has arrived, bytes of the node's memory before that} an event; the processes are new, so that no run inherits another's heap.
once(W, T, N) ->
    Pids = bench_work:prepare(W),
    Stop = start(T, W, Pids),
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    Begun = erlang:monotonic_time(nanosecond),
    Ns = bench_work:run(Pids, N),
    Grown = erlang:memory(total) - Before,
    Stop(),
    All = erlang:monotonic_time(nanosecond) - Begun,
    bench_work:finish(Pids),
    Events = N * bench_work:events(W),
    {Ns / Events, All / Events, Grown / Events}.

start(untraced, _, _) -> fun() -> ok end;
start(floor, W, Pids) -> session({bench_floor, 0}, W, Pids);
start(discard, W, Pids) -> session({bench_discard, 0}, W, Pids);
start(pid, W, Pids) ->
    P = spawn_opt(fun Loop() -> receive stop -> ok; _ -> Loop() end end, [{message_queue_data, off_heap}]),
    Stop = session(P, W, Pids),
    fun() -> Stop(), exit(P, kill) end;
start({etrace, Bytes}, W, Pids) -> etrace(?NIF, ?MB, Bytes, W, Pids, fun drain/1, []);
start({live, Bytes}, W, Pids) -> live(Bytes, W, Pids);
start(full, W, Pids) -> etrace(?SMALL, 32768, 256, W, Pids, fun idle/1, []);
start(tally, W, Pids) -> etrace(?NIF, ?MB, 256, W, Pids, fun idle/1, [returns || W =:= w4] ++ [tally]);
start({peer, P}, W, Pids) -> bench_peers:start(P, W, Pids);
start(closed, W, Pids) -> etrace(?SMALL, 32768, 256, W, Pids, fun idle/1, [closed]).

session(Tracer, W, Pids) ->
    S = trace:session_create(bench, Tracer, []),
    Flags = bench_work:arm(S, W),
    [1 = trace:process(S, P, true, Flags) || P <- Pids],
    fun() -> true = trace:session_destroy(S), ok end.

%% The owner opens the session and drains it to nowhere, as it does for a client: at once after a full batch, else after 2 ms.
etrace(Nif, Ring, Bytes, W, Pids, Loop, Gates) ->
    Self = self(),
    {Pid, Ref} = spawn_opt(fun() ->
        {ok, Opened} = Nif:open({Ring, 64, Bytes, 16, 4096, 0, 0, []}),
        [ok = Nif:gate(Opened, G) || G <- [events, no_returns, early, plain | Gates]],
        Self ! {state, Opened},
        Loop(Opened)
    end, [{priority, high}, monitor]),
    State = receive {state, S} -> S; {'DOWN', Ref, process, Pid, Why} -> error(Why) end,
    Stop = session({Nif, State}, W, Pids),
    fun() ->
        Stop(),
        ok = Nif:close(State),
        Pid ! stop,
        receive {'DOWN', Ref, process, Pid, normal} -> ok end
    end.

idle(_) -> receive stop -> ok end.

drain(State) ->
    {Batch, _, Status} = ?NIF:drain(State, ?MB, <<>>, false),
    Wait = if Status band 1 =:= 1, Batch =/= none -> 0; true -> 2 end,
    receive stop -> ok after Wait -> drain(State) end.

%% The real thing, on this very machine: a client attaches, and prints to nowhere.
live(Bytes, W, Pids) ->
    Args = ["--rate", "0", "--size", integer_to_list(Bytes)] ++ lists:append([["-P", pid_to_list(P)] || P <- Pids]) ++ bench_work:expressions(W),
    Command = lists:join(" ", [get(etrace), "-n", atom_to_list(node()) | [[$', A, $'] || A <- Args]]),
    Port = open_port({spawn, lists:flatten(["sh -c \"exec ", Command, " >/dev/null 2>", get(dir), "/live.log\""])}, [exit_status]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    wait(fun() -> bench_work:is_armed(W, Pids) end, 20000),
    fun() ->
        os:cmd("kill -INT " ++ integer_to_list(OsPid)),
        receive {Port, {exit_status, _}} -> ok end,
        add({lost, W}, dropped(filename:join(get(dir), "live.log"))),
        wait(fun() -> trace:session_info(all) =:= [{legacy, default}] orelse trace:session_info(all) =:= [] end, 20000)
    end.

%% The client's own closing line says what was lost.
dropped(Log) ->
    {ok, Text} = file:read_file(Log),
    case re:run(Text, "([0-9]+) dropped", [{capture, all_but_first, list}]) of
        {match, [N]} -> list_to_integer(N);
        nomatch -> error({client, Text})
    end.

add(Key, N) -> put(Key, case get(Key) of undefined -> N; M -> M + N end).

wait(_, Left) when Left =< 0 -> error({client, file:read_file(filename:join(get(dir), "live.log"))});
wait(Until, Left) -> Until() orelse begin timer:sleep(5), wait(Until, Left - 5) end.

%% ---- figures ----

figure(T, Rounds) ->
    Ratios = ratios(T, floor, Rounds),
    Added = lists:sort([ns(T, R) - ns(untraced, R) || R <- Rounds]),
    #{ratio => quantile(0.5, Ratios), low => quantile(0.25, Ratios), high => quantile(0.75, Ratios),
      ns => quantile(0.5, Added), rate => case arrives(T) of true -> rate(T, Rounds); false -> 0.0 end,
      bytes => quantile(0.5, lists:sort([element(3, proplists:get_value(T, R)) || R <- Rounds]))}.

%% Events a second, end to end.
rate(T, Rounds) -> 1.0e9 / quantile(0.5, lists:sort([element(2, proplists:get_value(T, R)) || R <- Rounds])).

ratios(T, Base, Rounds) ->
    lists:sort([(ns(T, R) - ns(untraced, R)) / max(1.0, ns(Base, R) - ns(untraced, R)) || R <- Rounds]).

ns(T, Round) -> element(1, proplists:get_value(T, Round)).

quantile(Q, Sorted) -> lists:nth(max(1, min(length(Sorted), round(Q * (length(Sorted) - 1)) + 1)), Sorted).

table(Works, Figures) ->
    [[io_lib:format("~n~ts: ~ts~n", [string:uppercase(atom_to_list(W)), bench_work:title(W)]),
      [io_lib:format("  ~-46ts ~7.2f  (~.2f .. ~.2f)  ~9.1f ns  ~8.1f B~ts~n",
            [title(T), R, L, H, Ns, Bytes, [io_lib:format("  ~11b events/s", [round(Rate)]) || Rate > 0]])
       || {W1, T, #{ratio := R, low := L, high := H, ns := Ns, rate := Rate, bytes := Bytes}} <- Figures, W1 =:= W],
      [io_lib:format("  lost on the way to the client: ~b~n", [Lost]) || Lost <- [get({lost, W})], is_integer(Lost)]] || W <- Works].

json(Rounds, Figures) ->
    Rows = [io_lib:format("  {\"otp\": ~tp, \"workload\": \"~s\", \"tracer\": \"~ts\", \"ratio\": ~.3f, \"low\": ~.3f, \"high\": ~.3f, \"ns\": ~.1f, \"bytes\": ~.1f, \"rate\": ~b}",
                [erlang:system_info(otp_release), W, title(T), R, L, H, Ns, Bytes, round(Rate)])
            || {W, T, #{ratio := R, low := L, high := H, ns := Ns, rate := Rate, bytes := Bytes}} <- Figures],
    [io_lib:format("{\"rounds\": ~b, \"figures\": [~n", [Rounds]), lists:join(",\n", Rows), "\n]}\n"].
