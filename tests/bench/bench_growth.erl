%% SPDX-License-Identifier: Apache-2.0
%% Measures the cost of an event for growing numbers of processes, armed functions and probes: it must not grow. Also
%% measures how long a user waits for attaching, arming and leaving: these times may grow.
-module(bench_growth).
-export([measure/1, wait/2]).

-define(EVENTS, 200_000).
-define(MB, 1048576).

measure(Rounds) ->
    Times = max(3, Rounds div 3),
    load([filename:rootname(F) || App <- [kernel, stdlib, compiler], F <- filelib:wildcard(code:lib_dir(App) ++ "/ebin/*.beam")]),
    Functions = functions(Times),
    Probes = probes(Times),
    Processes = [processes(N, Times) || N <- [100, 10_000, 100_000, 1_000_000]],
    [{growth, Name, Unit, Samples} || {Name, Unit, Samples} <- [{"the node's functions", "", [count()]} | lists:append([Functions, Probes | Processes])]].

%% Loads modules until the node has 9,000 functions.
load([File | Files]) ->
    case count() < 9000 of
        true -> code:ensure_loaded(list_to_atom(filename:basename(File))), load(Files);
        false -> ok
    end;
load([]) -> ok.

count() -> lists:sum([length(erlang:get_module_info(M, functions)) || M <- erlang:loaded()]).

%% ---- the cost of an event -----------------------------------------------------------------------------------------

%% One process makes calls. All processes of the node may be traced.
processes(N, Times) ->
    Idle = [spawn_opt(fun() -> receive stop -> ok end end, [{min_heap_size, 10}]) || _ <- lists:seq(1, N)],
    Name = integer_to_list(N) ++ " processes",
    Cost = costs([{["an event, ", Name], fun everybody/1}], Times),
    Wait = case N of
        1_000_000 -> [];
        _ -> waits(["one function, " | Name], ["bench_work:f/2"], Times) ++ waits(["every function, " | Name], ["--force", "_"], Times)
    end,
    Left = [begin R = monitor(process, P), P ! stop, R end || P <- Idle],
    [receive {'DOWN', R, _, _, _} -> ok end || R <- Left],
    Cost ++ Wait.

everybody(Pids) ->
    fun(Tracer) ->
        S = trace:session_create(bench, Tracer, []),
        bench_work:arm(S, w1),
        trace:process(S, all, true, [call]),
        true = [] =/= Pids,
        destroy(S)
    end.

functions(Times) ->
    costs([{["an event, ", Name, " armed"], fun(Pids) -> armed(N, Pids) end} || {N, Name} <- [{1, "1 function"}, {1000, "1000 functions"}]] ++
        [{"an event, every function armed", fun(Pids) -> armed(all, Pids) end}], Times).

%% Arms N functions or all functions of the node, but only one of the workload's own module.
armed(N, Pids) ->
    fun(Tracer) ->
        S = trace:session_create(bench, Tracer, []),
        case N of
            all ->
                trace:function(S, {'_', '_', '_'}, true, [local]),
                trace:function(S, {bench_work, '_', '_'}, false, [local]);
            _ ->
                All = [{M, F, A} || M <- erlang:loaded(), M =/= bench_work, {F, A} <- M:module_info(functions)],
                [trace:function(S, MFA, true, [local]) || MFA <- lists:sublist(All, N - 1)]
        end,
        bench_work:arm(S, w1),
        [1 = trace:process(S, P, true, [call]) || P <- Pids],
        destroy(S)
    end.

destroy(S) -> fun() -> trace:session_destroy(S), 0 end.

%% Cases are [{Name, Pids -> function that arms a session}]. Returns the cost of each as a multiple of the floor, which
%% is armed in the same way. The runs are interleaved.
costs(Cases, Times) ->
    Once = fun(Start) ->
        Pids = bench_work:prepare(w1),
        Stop = Start(Pids),
        Ns = bench_run:sliced(Pids, ?EVENTS),
        Stop(),
        bench_work:finish(Pids),
        Ns
    end,
    Samples = [{Name, begin
        Plain = Once(fun(_) -> fun() -> 0 end end),
        Floor = Once(fun(Pids) -> (Arm(Pids))({bench_floor, 0}) end),
        Etrace = Once(fun(Pids) -> bench_tracers:etrace(bench_tracers:nif(), ?MB, 256, Arm(Pids), fun bench_tracers:drain/2, []) end),
        {(Etrace - Plain) / max(1.0, Floor - Plain), Etrace - Plain}
    end} || _ <- lists:seq(1, Times), {Name, Arm} <- bench_run:shuffle(Cases)],
    lists:append([[{text(Name), "x the floor", [R || {N, {R, _}} <- Samples, N =:= Name]},
        {text([Name, ", added"]), "ns", [Ns || {N, {_, Ns}} <- Samples, N =:= Name]}] || {Name, _} <- Cases]).

text(Chars) -> lists:flatten(Chars).

%% Uses a client, because the companion combines the probes. The VM tries all probes of one function until one matches
%% the call.
probes(Times) ->
    Others = [lists:concat(["lists:", F, "/", A]) || {F, A} <- lists:sublist(lists:sort(lists:module_info(exports)), 31), F =/= module_info],
    Same = ["bench_work:f(" ++ integer_to_list(-I) ++ ", _)" || I <- lists:seq(1, 31)],
    Cases = [{"an event, 1 probe", []}, {"an event, 8 probes", lists:sublist(Others, 7)}, {"an event, 32 probes", Others},
        {"an event that the last of 32 probes takes", Same}],
    Samples = [{Name, begin
        Plain = run([]),
        (run([live | Exprs]) - Plain) / max(1.0, run([floor]) - Plain)
    end} || _ <- lists:seq(1, Times), {Name, Exprs} <- bench_run:shuffle(Cases)],
    [{Name, "x the floor", [R || {N, R} <- Samples, N =:= Name]} || {Name, _} <- Cases].

run(How) ->
    Pids = bench_work:prepare(w1),
    Stop = case How of
        [] -> bench_tracers:start(untraced, w1, Pids);
        [floor] -> bench_tracers:start(floor, w1, Pids);
        [live | Exprs] ->
            Client = bench_tracers:client(["--size", "256", "-P", pid_to_list(hd(Pids)) | Exprs] ++ ["bench_work:f/2"], " >/dev/null", []),
            bench_tracers:armed(Client, Pids),
            fun() -> bench_tracers:client_end(Client) end
    end,
    Ns = bench_run:sliced(Pids, ?EVENTS),
    Stop(),
    bench_work:finish(Pids),
    Ns.

%% ---- waiting times ------------------------------------------------------------------------------------------------

%% With a wildcard for everything the client would first count all calls for a second; --force skips that.
waits(Name, Args, Times) ->
    {Begins, Ends} = lists:unzip([wait([node()], Args) || _ <- lists:seq(1, Times)]),
    [{text(["attach and arm ", Name]), "ms", Begins}, {text(["leave, ", Name]), "ms", Ends}].

%% Traces these nodes. {ms from the start of the command until it reports that it traces, ms from Ctrl-C until it has
%% ended}
wait(Nodes, Args) ->
    T0 = erlang:monotonic_time(microsecond),
    Port = open_port({spawn_executable, get(etrace)}, [exit_status, stderr_to_stdout, binary,
        {args, lists:append([["-n", atom_to_list(Node)] || Node <- Nodes]) ++ ["--rate", "1" | Args]}]),
    {os_pid, OsPid} = erlang:port_info(Port, os_pid),
    said(Port, <<>>),
    T1 = erlang:monotonic_time(microsecond),
    os:cmd("kill -INT " ++ integer_to_list(OsPid)),
    ended(Port),
    {(T1 - T0) / 1000, (erlang:monotonic_time(microsecond) - T1) / 1000}.

said(Port, Before) ->
    receive
        {Port, {data, More}} ->
            Text = <<Before/binary, More/binary>>,
            binary:match(Text, <<"Ctrl-C stops">>) =/= nomatch orelse said(Port, Text);
        {Port, {exit_status, _}} -> error({client, Before})
    end.

ended(Port) ->
    receive
        {Port, {data, _}} -> ended(Port);
        {Port, {exit_status, _}} -> ok
    end.
