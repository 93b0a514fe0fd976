%% SPDX-License-Identifier: Apache-2.0
%% Measures what tracing costs a whole application (bench_broker) on a node of its own. A figure of this workload is
%% what the node keeps: the requests for each second of its processor time while it is traced, divided by the same of
%% the untraced windows before and after. The ways to trace are interleaved: each round runs all of them in random
%% order. Windows begin when the trace runs, so the time that arming takes is a figure of its own.
-module(bench_app).
-export([measure/1, hold/1, release/0]).
-export([open/1, close/1, call/4, added/2, kept/2]). % for bench_curves

-define(SEED, 1).
-define(WINDOW, 1000). % ms
-define(UNTRACED, 500).
-define(SETTLED, 4000). % until --overhead has found the hot functions
-define(PRINTING, 250). % of a tracer that prints on the node and whose mailbox may grow without limit

measure(Rounds) ->
    Node = open(200),
    call(Node, bench_broker, pause, []),
    Times = max(2, Rounds div 2),
    Armed = armed(Node, Times),
    call(Node, bench_broker, go, []),
    timer:sleep(500),
    {Share, Called} = call(Node, bench_broker, shares, []),
    Kept = [all_kept(Node, bench_run:shuffle(ways())) || _ <- lists:seq(1, Times)],
    close(Node),
    Rows = [{"calls of the 53 most called functions", "of all calls", [Share]},
        {"functions that are called at all", "", [Called]} | Armed]
        ++ [{"kept by " ++ Name, "of untraced", [proplists:get_value(Way, K) || K <- Kept]}
            || Way = {Name, _} <- ways()]
        ++ [{Name, "", [proplists:get_value(named(A), K) / proplists:get_value(named(B), K) || K <- Kept]}
            || {Name, A, B} <- [{"-c: of top, 450 functions", "-c, 450 functions", "top, 450 functions"},
                {"-c: of top, 6000 functions", "-c, 6000 functions", "top, 6000 functions"}]],
    [{app, Name, Unit, Samples} || {Name, Unit, Samples} <- Rows].

named(Name) -> lists:keyfind(Name, 1, ways()).

%% Starts a node with a busy application of so many processes.
open(Processes) ->
    Dir = filename:join(get(dir), "broker" ++ erlang:system_info(otp_release)),
    filelib:is_dir(Dir) orelse begin ok = file:make_dir(Dir), ok = bench_broker:make(Dir, ?SEED) end,
    Node = started(Dir),
    ok = call(Node, bench_broker, start, [Processes]),
    call(Node, bench_broker, go, []),
    Node.

close({Control, _, _}) -> peer:stop(Control).

%% Its schedulers do not spin when they are idle, so its processor time is work.
started(Dir) ->
    {ok, Control, Node} = peer:start(#{name => peer:random_name("broker"), host => "127.0.0.1", longnames => true,
        connection => standard_io, wait_boot => 60000, exec => filename:join([code:root_dir(), "bin", "erl"]),
        args => ["-start_epmd", "false", "-pa", Dir, "-pa", filename:dirname(code:which(?MODULE)),
            "+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"]}),
    {Control, Node, peer:call(Control, os, getpid, [])}.

call({Control, _, _}, M, F, A) -> peer:call(Control, M, F, A, 180000).

%% ---- what is kept -------------------------------------------------------------------------------------------------

%% {Name, {client, Arguments, ms until it is settled} | {holder | prints, what hold/1 starts}}
ways() ->
    Some = bench_broker:some(),
    All = ["--force" | bench_broker:everything()],
    [{"top, 450 functions", {client, ["top" | Some], 0}},
     {"top, only calls, 450 functions", {client, ["top" | only_calls(Some)], 0}},
     {"-c, 450 functions", {client, ["-c", "--force" | Some], 0}},
     {"-c with results, 450 functions", {client, ["-c", "--force" | results(Some)], 0}},
     {"top, 6000 functions", {client, ["top" | bench_broker:everything()], 0}},
     {"top, only calls, 6000 functions", {client, ["top" | only_calls(bench_broker:everything())], 0}},
     {"-c, 6000 functions", {client, ["-c" | All], 0}},
     {"-c with results, 6000 functions", {client, ["-c", "--force" | results(bench_broker:everything())], 0}}] ++
    [{"--overhead 5%, 6000 functions", {client, ["-c", "--overhead", "5%" | bench_broker:everything()], ?SETTLED}}
        || has("--overhead")] ++
    [{"one hot function, printed", {client, ["--rate", "0" | bench_broker:one()], 0}},
     {"one hot function, printed with results", {client, ["--rate", "0" | results(bench_broker:one())], 0}},
     {"450 functions, printed with the usual limits", {client, ["--force" | Some], 0}},
     {"call_count, 450 functions", {holder, {counters, [call_count], "am_chan_"}}},
     {"call_time, 450 functions", {holder, {counters, [call_time], "am_chan_"}}},
     {"call_count, 6000 functions", {holder, {counters, [call_count], "am_"}}},
     {"call_time, 6000 functions", {holder, {counters, [call_time], "am_"}}},
     {"dbg, one hot function, file port", {holder, dbg_file}},
     {"dbg, one hot function, text", {prints, dbg_text}}] ++
    [{"redbug, one hot function", {prints, redbug}} || code:which(redbug) =/= non_existing] ++
    [{"recon_trace, one hot function", {prints, recon}} || code:which(recon_trace) =/= non_existing].

only_calls(Expressions) -> [E ++ " -> count" || E <- Expressions].

results(Expressions) -> [E ++ " -> return" || E <- Expressions].

has(Option) -> string:find(os:cmd("'" ++ get(etrace) ++ "' trace --help"), Option) =/= nomatch.

%% Measures one way once. Returns the share of its work that the node keeps.
kept(Node, How) ->
    Before = rate(Node, ?UNTRACED),
    {Traced, After} = windows(Node, How),
    2 * Traced / (Before + After).

%% [{Way, kept}]
all_kept(Node, Ways) ->
    {Kept, _} = lists:mapfoldl(fun(Way = {_, How}, Before) ->
        {Traced, After} = windows(Node, How),
        {{Way, 2 * Traced / (Before + After)}, After}
    end, rate(Node, ?UNTRACED), Ways),
    Kept.

windows(Node, How) ->
    Stop = start(Node, How),
    Traced = rate(Node, case How of {prints, _} -> ?PRINTING; _ -> ?WINDOW end),
    Stop(),
    {Traced, rate(Node, ?UNTRACED)}.

%% Makes so many calls a second. {percent of a core that tracing adds to the node, percent that the client takes}
added(Node = {_, Name, _}, Rate) ->
    call(Node, bench_broker, tick, [Rate]),
    Plain = busy([Node]),
    Client = {Port, OsPid, _} = client(Name, ["--rate", "0", "bench_broker:ticked/2"]),
    timer:sleep(200),
    {Traced, Own} = busy([Node, {none, none, integer_to_list(OsPid)}]),
    os:cmd("kill -INT " ++ integer_to_list(OsPid)),
    receive {Port, {exit_status, 0}} -> ok; {Port, {exit_status, _}} -> error({client, said(Client)}) end,
    call(Node, bench_broker, tick, [0]),
    unload(Node),
    {max(0.01, Traced - element(1, Plain)), max(0.01, Own)}.

%% The percents of a core that each of these processes takes.
busy(Nodes) ->
    Before = [bench_many:spent([N]) || N <- Nodes],
    timer:sleep(?WINDOW),
    list_to_tuple([(bench_many:spent([N]) - B) * 100 / ?WINDOW || {N, B} <- lists:zip(Nodes, Before)]).

%% Requests for each second of processor time of the node.
rate(Node, Ms) ->
    {Done0, Spent0} = spent(Node),
    timer:sleep(Ms),
    {Done1, Spent1} = spent(Node),
    (Done1 - Done0) * 1000 / (Spent1 - Spent0).

spent(Node) -> {call(Node, bench_broker, done, []), bench_many:spent([Node])}.

%% Returns a function that ends the tracing.
start(Node = {_, Name, _}, {client, Args, Settled}) ->
    Client = {Port, OsPid, _} = client(Name, Args),
    timer:sleep(Settled),
    fun() ->
        os:cmd("kill -INT " ++ integer_to_list(OsPid)),
        receive {Port, {exit_status, 0}} -> ok; {Port, {exit_status, _}} -> error({client, said(Client)}) end,
        unload(Node)
    end;
start(Node, {_, What}) ->
    ok = call(Node, ?MODULE, hold, [What]),
    fun() ->
        call(Node, bench_broker, pause, []), % until the tracer has printed the rest
        ok = call(Node, ?MODULE, release, []),
        call(Node, bench_broker, go, []),
        timer:sleep(100)
    end.

%% Starts a client and waits until it traces.
client(Name, Args) ->
    Log = filename:join(get(dir), "app.log"),
    file:delete(Log),
    {Command, Rest} = case Args of ["top" | More] -> {["top"], More}; _ -> {[], Args} end,
    Words = lists:join(" ", [["'", A, "'"] || A <- [get(etrace) | Command] ++ ["-n", atom_to_list(Name) | Rest]]),
    Line = lists:flatten(["exec ", Words, " 2>'", Log, "' >/dev/null"]),
    Port = open_port({spawn_executable, "/bin/bash"}, [exit_status, {args, ["-c", Line]}]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    Client = {Port, OsPid, Log},
    traces(Client),
    Client.

traces(Client = {Port, _, _}) ->
    case binary:match(said(Client), <<"Ctrl-C stops">>) of
        nomatch -> receive {Port, {exit_status, _}} -> error({client, said(Client)}) after 5 -> traces(Client) end;
        _ -> ok
    end.

said({_, _, Log}) ->
    case file:read_file(Log) of {ok, Text} -> Text; {error, enoent} -> <<>> end.

%% Waits until the node has unloaded the companion.
unload(Node) ->
    case [M || {M, _} <- call(Node, code, all_loaded, []), lists:prefix("etrace_", atom_to_list(M))] of
        [] -> ok;
        _ -> timer:sleep(20), unload(Node)
    end.

%% ---- tracers of the node itself -----------------------------------------------------------------------------------

%% Runs on the node: starts a tracer and keeps it until release/0.
hold(What) ->
    Self = self(),
    spawn(fun() ->
        register(bench_hold, self()),
        {ok, Nowhere} = file:open("/dev/null", [write]),
        group_leader(Nowhere, self()), % redbug prints its last message to the group leader
        Stop = begun(What, Nowhere),
        Self ! held,
        receive {release, From} -> Stop(), From ! released end
    end),
    receive held -> ok end.

release() ->
    bench_hold ! {release, self()},
    receive released -> ok end.

begun({counters, Which, Prefix}, _) ->
    Session = trace:session_create(bench, self(), []),
    process_flag(priority, max), % a call waits for several time slices of the busy processes otherwise
    [trace:function(Session, {M, '_', '_'}, true, Which)
        || M <- erlang:loaded(), lists:prefix(Prefix, atom_to_list(M)), M =/= am_entry],
    trace:process(Session, all, true, [call]),
    fun() -> trace:session_destroy(Session) end;
begun(dbg_file, _) ->
    Port = (dbg:trace_port(file, "/dev/null"))(),
    Session = hot(Port),
    fun() -> trace:session_destroy(Session), port_close(Port) end;
begun(dbg_text, Nowhere) ->
    Print = fun Loop() -> receive Message -> dbg:dhandler(Message, Nowhere), Loop() end end,
    Tracer = spawn_opt(Print, [{message_queue_data, off_heap}]),
    Session = hot(Tracer),
    fun() -> trace:session_destroy(Session), exit(Tracer, kill) end;
begun(redbug, _) ->
    {Name, _, _} = redbug:start("am_entry:chan/2",
        [{msgs, 1 bsl 40}, {time, 1 bsl 31}, {print_file, "/dev/null"}, {max_queue, 1 bsl 40}]),
    fun() -> redbug:stop(), gone(Name) end;
begun(recon, Nowhere) ->
    1 = recon_trace:calls({am_entry, chan, 2}, 1 bsl 40, [{scope, local}, {io_server, Nowhere}]),
    fun() -> recon_trace:clear(), gone(recon_trace_tracer) end.

hot(Tracer) ->
    Session = trace:session_create(bench, Tracer, []),
    1 = trace:function(Session, {am_entry, chan, 2}, true, [local]),
    trace:process(Session, all, true, [call, timestamp]),
    Session.

gone(Name) -> whereis(Name) =:= undefined orelse begin timer:sleep(1), gone(Name) end.

%% ---- arming -------------------------------------------------------------------------------------------------------

%% How long a user waits until all functions are armed, without what one function takes, and how often trace:function/4
%% is called. In a busy node all schedulers have work.
armed(Node, Times) ->
    call(Node, bench_broker, watch, []),
    Idle = [arming(Node) || _ <- lists:seq(1, Times)],
    call(Node, bench_broker, go, []),
    timer:sleep(500),
    Busy = [arming(Node) || _ <- lists:seq(1, Times)],
    call(Node, bench_broker, pause, []),
    Modules = 400,
    lists:append([[{"arm 6000 functions, " ++ Name ++ " node", "ms", [Ms || {Ms, _, _} <- All]},
            {"attach and arm one function, " ++ Name ++ " node", "ms", [Ms || {_, Ms, _} <- All]},
            {"trace:function calls beyond one a module, " ++ Name ++ " node", "", [N - Modules || {_, _, N} <- All]}]
        || {Name, All} <- [{"idle", Idle}, {"busy", Busy}]]).

%% {ms, ms for one function, calls}
arming(Node = {_, Name, _}) ->
    {One, _} = bench_growth:wait([Name], bench_broker:one()),
    unload(Node),
    Before = call(Node, bench_broker, calls, []),
    {All, _} = bench_growth:wait([Name], ["-c", "--force" | bench_broker:everything()]),
    Calls = call(Node, bench_broker, calls, []) - Before,
    unload(Node),
    {All - One, One, Calls}.
