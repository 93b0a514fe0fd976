%% SPDX-License-Identifier: Apache-2.0
%% Draws how the cost of tracing grows with events, functions, processes and nodes: a picture for each, and a page that
%% shows all of them.
%% Every value is a ratio.
-module(bench_curves).
-export([draw/3]).

draw(Target, Rounds, Only) ->
    ok = filelib:ensure_path(Target),
    All = [{"rate", fun by_rate/1}, {"functions", fun by_functions/1}, {"processes", fun by_processes/1},
        {"nodes", fun by_nodes/1}],
    Names = [begin
        ok = file:write_file(filename:join(Target, Name ++ ".svg"), bench_svg:chart(Measure(Rounds))),
        Name
    end || {Name, Measure} <- All, Only =:= [] orelse lists:member(Name, Only)],
    ok = file:write_file(filename:join(Target, "curves.md"), page(Names, Rounds)).

page(Names, Rounds) ->
    {ok, Load} = file:read_file("/proc/loadavg"),
    ["# What tracing costs, in pictures\n\nOTP ", erlang:system_info(otp_release), ", ",
        integer_to_list(erlang:system_info(schedulers_online)), " cores, ", integer_to_list(Rounds),
        " rounds; load of the machine at the end: ", hd(binary:split(Load, <<" ">>)),
        ". Lines go through medians, bars contain the middle three fifths.\n" | [["\n![", N, "](", N, ".svg)\n"] || N <- Names]].

%% Measure returns a sample of Name at X; all samples of a round are taken in random order.
series(Names, Xs, Rounds, Measure) ->
    Samples = [{Name, X, Measure(Name, X)} || _ <- lists:seq(1, Rounds),
        {Name, X} <- bench_run:shuffle([{Name, X} || Name <- Names, X <- Xs])],
    [{Name, [point(X, [V || {N, X1, V} <- Samples, N =:= Name, X1 =:= X]) || X <- Xs]} || Name <- Names].

%% A fifth and four fifths are the lowest and the highest of three values.
point(X, Values) ->
    Sorted = lists:sort(Values),
    {X, bench_run:quantile(0.5, Sorted), bench_run:quantile(0.2, Sorted), bench_run:quantile(0.8, Sorted)}.

%% The processor time that tracing adds to a node and that the client takes, with a given number of calls a second.
by_rate(Rounds) ->
    Node = bench_app:open(10),
    bench_app:call(Node, bench_broker, pause, []),
    Xs = [100, 1000, 10_000, 100_000],
    Samples = [{X, bench_app:added(Node, X)} || _ <- lists:seq(1, Rounds), X <- bench_run:shuffle(Xs)],
    bench_app:close(Node),
    Line = fun(I) -> [point(X, [element(I, V) || {X1, V} <- Samples, X1 =:= X]) || X <- Xs] end,
    #{title => "Processor time of a live trace, by events", x => "calls a second, printed", y => "% of a core",
        series => [{"added to the node", Line(1)}, {"the client", Line(2)}]}.

%% The work that a busy application keeps while so many of its functions are traced. All hot functions are in the last
%% selection; the others have a part of them.
by_functions(Rounds) ->
    Node = bench_app:open(200),
    Selections = [{15, ["am_chan_000:_"]}, {150, ["am_chan_00*:_"]}, {450, ["am_chan_*:_"]},
        {1500, ["am_conn_*:_", "am_queue_*:_"]}, {6000, ["am_*_*:_"]}],
    Names = ["-c", "-c with results", "-c --overhead 5%", "top", "top, only calls"],
    Series = series(Names, [X || {X, _} <- Selections], Rounds, fun(Name, X) ->
        {X, Selection} = lists:keyfind(X, 1, Selections),
        100 * bench_app:kept(Node, case Name of
            "-c" -> {client, ["-c", "--force" | Selection], 0};
            "-c with results" -> {client, ["-c", "--force" | [S ++ " -> return" || S <- Selection]], 0};
            "-c --overhead 5%" -> {client, ["-c", "--overhead", "5%" | Selection], 6000};
            "top" -> {client, ["top" | Selection], 0};
            "top, only calls" -> {client, ["top" | [S ++ " -> count" || S <- Selection]], 0}
        end)
    end),
    bench_app:close(Node),
    #{title => "Work that a busy application keeps, by traced functions", x => "functions", y => "% of the untraced work",
        series => Series}.

%% The same with so many busy processes. Each number of processes has a node of its own.
by_processes(Rounds) ->
    Ways = [{"one hot function, printed", {client, ["--rate", "0" | bench_broker:one()], 0}},
        {"450 functions, counted", {client, ["-c", "--force" | bench_broker:some()], 0}}],
    Xs = [20, 60, 200, 600, 2000],
    Samples = lists:append([begin
        Node = bench_app:open(X),
        timer:sleep(1000),
        Kept = [{Name, X, 100 * bench_app:kept(Node, How)} || _ <- lists:seq(1, Rounds), {Name, How} <- bench_run:shuffle(Ways)],
        bench_app:close(Node),
        Kept
    end || X <- Xs]),
    #{title => "Work that a busy application keeps, by traced processes", x => "busy processes, all traced",
        y => "% of the untraced work",
        series => [{Name, [point(X, [V || {N, X1, V} <- Samples, N =:= Name, X1 =:= X]) || X <- Xs]} || {Name, _} <- Ways]}.

by_nodes(Rounds) ->
    Peers = [bench_many:started(I) || I <- lists:seq(1, 30)],
    Names = [Name || {_, Name, _} <- Peers],
    Wait = fun(N) -> element(1, bench_growth:wait(lists:sublist(Names, N), ["lists:seq/2"])) end,
    _ = Wait(30),
    Series = series(["attach and arm"], [1, 2, 4, 8, 16, 30], Rounds, fun(_, N) -> Wait(N) / Wait(1) end),
    [peer:stop(Control) || {Control, _, _} <- Peers],
    #{title => "Time until a trace runs, by nodes of one host", x => "nodes", y => "of one node", series => Series}.
