%% SPDX-License-Identifier: Apache-2.0
%% Runs every workload under every tracer, interleaved, and prints ratios to the floor of the same round.
%%
%% A figure is the time that one event adds to the traced processes: (traced - untraced) / events. The table shows its
%% ratio to the floor in the same round: the median of all rounds with the quartiles. The nanoseconds hold for one
%% machine only. A run consists of slices of a few milliseconds, and its time is the lower quartile of the slices, so
%% that other users of the processor do not count.
%%
%% For tracers that deliver their events, the table also shows how many events arrive per second from the start of the
%% run to the last arrival, how much memory of the node an event takes at the end of the workload, and how many events
%% were lost.
%%
%% bench_side, bench_growth, bench_many and bench_app measure the rest: [{Workload, Name, Unit, Samples}]. The output ends with the
%% goals and with TAP. The TAP only says whether the client's shown and lost events add up to what happened.
-module(bench_run).
-export([main/1, sliced/2, quantile/2, shuffle/1]).

-define(SLICES, 8).

main([Dir, Rounds, Scale, Json, Etrace, Tools | Only]) ->
    ok = bench_floor:load(filename:join(Dir, "floor")),
    ok = bench_discard:load(filename:join(Dir, "discard")),
    ok = bench_etrace_nif0:load(filename:join(Dir, "etrace_0")),
    ok = bench_etrace_nif1:load(filename:join(Dir, "etrace_1")),
    ok = bench_etrace_nif2:load(filename:join(Dir, "etrace_2")),
    put(etrace, Etrace),
    put(tools, Tools),
    put(dir, Dir),
    case Only of
        ["--curves", Target | Which] ->
            bench_curves:draw(Target, max(2, list_to_integer(Rounds) div 2), Which),
            halt(0);
        _ -> all(list_to_integer(Rounds), Scale, Json, Etrace, Only)
    end.

all(N, Scale, Json, Etrace, Only) ->
    Wanted = fun(W) -> Only =:= [] orelse lists:member(atom_to_list(W), Only) end,
    All = [{W, table(W, measure(W, N, list_to_float(Scale)))} || W <- bench_work:all(), Wanted(W)],
    Sides = [{W, table(W, Take(N))} || {W, Take} <- sides(), Etrace =/= "none", Wanted(W)],
    Measures = [{W, Name, Unit, spread(Samples)} || {_, Side} <- Sides, {W, Name, Unit, Samples} <- Side],
    Goals = bench_goals:all(All, Measures),
    io:put_chars(goals(Goals)),
    io:put_chars(checks()),
    ok = file:write_file(Json, json:encode(#{otp => list_to_binary(erlang:system_info(otp_release)), rounds => N,
        cores => erlang:system_info(schedulers_online),
        figures => [maps:merge(#{workload => W, tracer => text(bench_tracers:title(T))}, figure(T, Samples))
            || {W, Samples} <- All, {T, _} <- lists:sort(hd(Samples)), T =/= untraced],
        measures => [maps:merge(#{workload => W, name => text(Name), unit => text(Unit)}, S) || {W, Name, Unit, S} <- Measures],
        goals => [G#{name := text(Name), what := text(What)} || G = #{name := Name, what := What} <- Goals]})),
    halt(0).

sides() -> [{W, fun(N) -> bench_side:measure(W, N) end} || W <- [session, client, record]]
    ++ [{growth, fun bench_growth:measure/1}, {many, fun bench_many:measure/1}, {app, fun bench_app:measure/1},
        {requests, fun bench_requests:measure/1}, {inside, fun bench_inside:measure/1}, {ring, fun bench_ring:measure/1}, {look, fun bench_look:measure/1}].

text(Chars) -> unicode:characters_to_binary(Chars).

measure(W, Rounds, Scale) ->
    Tracers = bench_tracers:all(W),
    Count = fun(T) -> bench_tracers:rounds(T, W, round(bench_work:rounds(W) * Scale)) end,
    _ = [once(W, T, Count(T) div 10) || T <- Tracers],
    [[{T, once(W, T, Count(T))} || T <- shuffle(Tracers)] || _ <- lists:seq(1, Rounds)].

shuffle(L) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

%% Returns {nanoseconds per event, nanoseconds per arrived event until all have arrived, bytes of the node's memory per
%% event before that, lost events, whether more than 1 % were lost}. The processes are new, so no run inherits the heap
%% of another.
once(W, T, Count) ->
    N = ?SLICES * max(5, Count div ?SLICES),
    alone(),
    Pids = bench_work:prepare(W),
    Stop = bench_tracers:start(T, W, Pids),
    erlang:garbage_collect(),
    Before = erlang:memory(total),
    Begun = erlang:monotonic_time(nanosecond),
    Ns = sliced(Pids, N),
    Grown = erlang:memory(total) - Before,
    Ended = Stop(),
    All = erlang:monotonic_time(nanosecond) - Begun,
    bench_work:finish(Pids),
    Events = N * bench_work:events(W),
    Lost = lost(W, T, Events, Ended),
    {Ns * N / Events, All / max(1, Events - Lost), Grown / Events, Lost, Lost * 100 > Events}.

%% Loads code to clear the VM's cache of tracer libraries, in which several tracers may share a slot. Without this a
%% tracer may come second in its slot, which costs 2 % of the floor.
alone() ->
    code:purge(bench_goals),
    {module, _} = code:load_file(bench_goals).

%% Returns the nanoseconds of a round.
sliced(Pids, N) ->
    Each = N div ?SLICES,
    quantile(0.25, lists:sort([bench_work:run(Pids, Each) / Each || _ <- lists:seq(1, ?SLICES)])).

%% The client's shown and lost events must add up to all events. One exception: a rejected call has no result, because
%% the VM makes none.
lost(W, T, Events, {Shown, Lost}) ->
    Expected = case W =:= w6 orelse T =:= {asked, hidden} of true -> 0; false -> Events + ?SLICES * bench_work:extra(W) end,
    Missing = Expected - Shown - Lost,
    check(W, Missing =:= 0 orelse (bench_work:events(W) =:= 2 andalso Missing > 0 andalso Missing =< Lost), [Expected, Shown, Lost]),
    Lost;
lost(_, _, _, Lost) -> Lost.

check(W, Good, Seen) ->
    {Runs, Wrong} = case get({checked, W}) of undefined -> {0, []}; Before -> Before end,
    put({checked, W}, {Runs + 1, [Seen || not Good] ++ Wrong}).

checks() ->
    [io_lib:format("~sok - OTP ~s ~s: shown and lost are what has happened, in ~b runs~n~s",
        [["not " || Wrong =/= []], erlang:system_info(otp_release), W, Runs,
            [io_lib:format("# of ~b events ~b were shown and ~b lost~n", X) || X <- Wrong]])
     || {{checked, W}, {Runs, Wrong}} <- lists:sort(get())].

%% ---- figures ------------------------------------------------------------------------------------------------------

figure(T, Rounds) ->
    Ratios = ratios(T, floor, Rounds),
    Sample = fun(I) -> lists:sort([element(I, proplists:get_value(T, R)) || R <- Rounds]) end,
    #{ratio => quantile(0.5, Ratios), low => quantile(0.25, Ratios), high => quantile(0.75, Ratios),
      ns => quantile(0.5, lists:sort([ns(T, R) - ns(untraced, R) || R <- Rounds])),
      events_per_second => case bench_tracers:arrives(T) of true -> round(bench_goals:rate(T, Rounds)); false -> 0 end,
      bytes => quantile(0.5, Sample(3)), lost => lists:sum(Sample(4))}.

ratios(T, Base, Rounds) -> bench_goals:ratios(T, Base, Rounds).

ns(T, Round) -> element(1, proplists:get_value(T, Round)).

spread(Samples) ->
    Sorted = lists:sort([float(S) || S <- Samples]),
    #{median => quantile(0.5, Sorted), low => quantile(0.25, Sorted), high => quantile(0.75, Sorted)}.

quantile(Q, Sorted) -> lists:nth(max(1, min(length(Sorted), round(Q * (length(Sorted) - 1)) + 1)), Sorted).

%% ---- tables -------------------------------------------------------------------------------------------------------

%% Prints a table immediately, and returns the samples.
table(W, Samples = [[{_, _} | _] | _]) ->
    io:format("~n~-46ts x the floor (quartiles)          added  of memory      events/s  lost~n~ts~n",
        [string:uppercase(atom_to_list(W)), bench_work:title(W)]),
    lists:foreach(fun(T) ->
        #{ratio := R, low := L, high := H, ns := Ns, events_per_second := Rate, bytes := Bytes, lost := Lost} = figure(T, Samples),
        io:format("  ~-52ts ~7.2f (~.2f .. ~.2f) ~11.1f ns ~8.1f B ~12ts ~5ts~n", [bench_tracers:title(T), R, L, H, Ns, Bytes,
            case Rate of 0 -> "-"; _ -> integer_to_list(Rate) end, case bench_tracers:counts(T) of true -> integer_to_list(Lost); false -> "-" end])
    end, [T || T <- bench_tracers:all(W), T =/= untraced]),
    Samples;
table(W, Measures) ->
    io:format("~n~ts: ~ts~n", [string:uppercase(atom_to_list(W)), title(W)]),
    lists:foreach(fun({_, Name, Unit, Samples}) ->
        #{median := M, low := L, high := H} = spread(Samples),
        io:format("  ~-72ts ~10.3f ~-14ts (~.3f .. ~.3f)~n", [Name, M, Unit, L, H])
    end, Measures),
    Measures.

title(session) -> "what a session costs beside its events";
title(client) -> "what the client does, on one core";
title(record) -> "recordings";
title(growth) -> "what grows with the node, and what does not";
title(app) -> "the work of a busy application for each second of its processor time, of that without tracing";
title(look) -> "what looking at processes costs";
title(inside) -> "what inside costs a call";
title(ring) -> "what a call costs in a ring that overwrites, and counted by a key";
title(requests) -> "what etrace requests costs a gen_server call";
title(many) -> "what the start of a trace costs the nodes of one host".

goals(Goals) ->
    ["\nGoals                                                                         figure       goal\n" |
        [io_lib:format("  ~-5ts ~-62ts ~12ts  ~ts ~-8ts ~ts~n", [Name, What, number(Figure), atom_to_list(Dir), number(Bound),
            case Met of true -> "met"; false -> "not met"; none -> "not measured"; lost -> "no figure: events were lost" end])
            || #{name := Name, what := What, figure := Figure, must_be := Dir, goal := Bound, met := Met} <- Goals]] ++ "\n".

number(null) -> "-";
number(X) when X == 0 -> "0";
number(X) when X >= 1000 -> integer_to_list(round(X));
number(X) -> io_lib:format("~.3f", [float(X)]).
