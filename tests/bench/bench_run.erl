%% Runs every workload under every tracer, interleaved, and prints ratios to the floor of the same round.
%%
%% A figure is the time added to the traced processes by one event: (traced - untraced) / events, and what is shown is its
%% ratio to the floor's in the same round, the median of all rounds with the quartiles. Nanoseconds are of one machine.
-module(bench_run).
-export([main/1]).

-define(NIF, etrace_000bench_0).
-define(MB, 1048576).

main([Dir, Rounds, Scale, Json | Only]) ->
    ok = bench_floor:load(filename:join(Dir, "floor")),
    ok = bench_discard:load(filename:join(Dir, "discard")),
    ok = ?NIF:load(filename:join(Dir, "etrace")),
    N = list_to_integer(Rounds),
    Works = [W || W <- bench_work:all(), Only =:= [] orelse lists:member(atom_to_list(W), Only)],
    All = [{W, measure(W, N, list_to_float(Scale))} || W <- Works],
    Figures = [{W, T, figure(T, Samples)} || {W, Samples} <- All, T <- tracers(W), T =/= untraced],
    io:put_chars(table(Works, Figures)),
    file:write_file(Json, json(N, Figures)),
    halt(0).

tracers(W) ->
    [untraced, floor, discard, pid, {etrace, 256}] ++
        [{etrace, 1024} || W =:= w4 orelse W =:= w5] ++
        [full, closed].

title(floor) -> "floor: an empty NIF tracer";
title(discard) -> "NIF tracer that discards";
title(pid) -> "empty process tracer";
title({etrace, B}) -> io_lib:format("etrace, ~b B of an event, drained", [B]);
title(full) -> "etrace, rings full";
title(closed) -> "etrace, paused".

measure(W, Rounds, Scale) ->
    N = max(100, round(bench_work:rounds(W) * Scale)),
    Tracers = tracers(W),
    _ = [once(W, T, max(100, N div 10)) || T <- Tracers],
    [[{T, once(W, T, N)} || T <- shuffle(Tracers)] || _ <- lists:seq(1, Rounds)].

shuffle(L) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

%% Nanoseconds an event of one run; the processes are new, so that no run inherits another's heap.
once(W, T, N) ->
    Pids = bench_work:prepare(W),
    Stop = start(T, W, Pids),
    erlang:garbage_collect(),
    Ns = bench_work:run(Pids, N),
    Stop(),
    bench_work:finish(Pids),
    Ns / (N * bench_work:events(W)).

start(untraced, _, _) -> fun() -> ok end;
start(floor, W, Pids) -> session({bench_floor, 0}, W, Pids);
start(discard, W, Pids) -> session({bench_discard, 0}, W, Pids);
start(pid, W, Pids) ->
    P = spawn_opt(fun Loop() -> receive stop -> ok; _ -> Loop() end end, [{message_queue_data, off_heap}]),
    Stop = session(P, W, Pids),
    fun() -> Stop(), exit(P, kill) end;
start({etrace, Bytes}, W, Pids) -> etrace(Bytes, W, Pids, fun drain/1, []);
start(full, W, Pids) -> etrace(256, W, Pids, fun idle/1, []);
start(closed, W, Pids) -> etrace(256, W, Pids, fun idle/1, [closed]).

session(Tracer, W, Pids) ->
    S = trace:session_create(bench, Tracer, []),
    Flags = bench_work:arm(S, W),
    [1 = trace:process(S, P, true, Flags) || P <- Pids],
    fun() -> true = trace:session_destroy(S), ok end.

%% The owner opens the session and drains it to nowhere, as it does for a client: at once after a full batch, else after 2 ms.
etrace(Bytes, W, Pids, Loop, Gates) ->
    Self = self(),
    Ring = case Loop =:= fun idle/1 of true -> 32768; false -> ?MB end,
    Owner = spawn_opt(fun() ->
        {ok, State} = ?NIF:open({?MB, 16, Bytes, 16, 4096, 0, 0, [], []}),
        [ok = ?NIF:gate(State, G) || G <- [early | Gates]],
        Self ! {state, State},
        _ = Ring,
        Loop(State)
    end, [{priority, high}, monitor]),
    {Pid, Ref} = Owner,
    State = receive {state, S} -> S end,
    Stop = session({?NIF, State}, W, Pids),
    fun() ->
        Stop(),
        ok = ?NIF:close(State),
        Pid ! stop,
        receive {'DOWN', Ref, process, Pid, normal} -> ok end
    end.

idle(_) -> receive stop -> ok end.

drain(State) ->
    {Batch, _, Status} = ?NIF:drain(State, ?MB, <<>>, false),
    Wait = if Status band 1 =:= 1, Batch =/= none -> 0; true -> 2 end,
    receive stop -> ok after Wait -> drain(State) end.

%% ---- figures ----

figure(T, Rounds) ->
    Ratios = lists:sort([(ns(T, R) - ns(untraced, R)) / max(1.0, ns(floor, R) - ns(untraced, R)) || R <- Rounds]),
    Added = lists:sort([ns(T, R) - ns(untraced, R) || R <- Rounds]),
    #{ratio => quantile(0.5, Ratios), low => quantile(0.25, Ratios), high => quantile(0.75, Ratios),
      ns => quantile(0.5, Added)}.

ns(T, Round) -> proplists:get_value(T, Round).

quantile(Q, Sorted) -> lists:nth(max(1, min(length(Sorted), round(Q * (length(Sorted) - 1)) + 1)), Sorted).

table(Works, Figures) ->
    [[io_lib:format("~n~ts: ~ts~n", [string:uppercase(atom_to_list(W)), bench_work:title(W)]),
      [io_lib:format("  ~-40ts ~7.2f  (~.2f .. ~.2f)  ~9.1f ns~n", [title(T), R, L, H, Ns])
       || {W1, T, #{ratio := R, low := L, high := H, ns := Ns}} <- Figures, W1 =:= W]] || W <- Works].

json(Rounds, Figures) ->
    Rows = [io_lib:format("  {\"otp\": ~tp, \"workload\": \"~s\", \"tracer\": \"~ts\", \"ratio\": ~.3f, \"low\": ~.3f, \"high\": ~.3f, \"ns\": ~.1f}",
                [erlang:system_info(otp_release), W, title(T), R, L, H, Ns])
            || {W, T, #{ratio := R, low := L, high := H, ns := Ns}} <- Figures],
    [io_lib:format("{\"rounds\": ~b, \"figures\": [~n", [Rounds]), lists:join(",\n", Rows), "\n]}\n"].
