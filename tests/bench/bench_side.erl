%% SPDX-License-Identifier: Apache-2.0
%% Measures costs that the time of an event does not include: the client, the drain of the rings, an idle session, a
%% session whose client does not read, the age of events when they are printed, and how fast the client prints.
-module(bench_side).
-export([measure/2]).

-define(EVENTS, 400_000).
-define(RECORDED, 1_000_000).
-define(MB, 1048576).

measure(session, Rounds) ->
    Few = max(3, Rounds div 3),
    {Drains, Clients} = lists:unzip([{drain(), client_time()} || _ <- lists:seq(1, Few)]),
    Blocked = [blocked() || _ <- lists:seq(1, 3)],
    Idle = [idle() || _ <- lists:seq(1, 3)],
    Ages = [age() || _ <- lists:seq(1, Few)],
    Rows = [
        {"draining the rings for an event", "x the floor", Drains},
        {"the client's processor time for an event", "x the floor", Clients},
        {"memory beside the rings while the client is blocked", "MB", [M || {M, _} <- Blocked]},
        {"messages of the owner while the client is blocked", "", [N || {_, N} <- Blocked]},
        {"wake-ups by an idle session", "a second", [W || {W, _} <- Idle]},
        {"processor time of the node for an idle session", "% of a core", [C || {_, C} <- Idle]},
        {"age of the oldest event, median", "ms", [A || {A, _} <- Ages]},
        {"age of the oldest event, p99", "ms", [A || {_, A} <- Ages]}],
    [{session, Name, Unit, Samples} || {Name, Unit, Samples} <- Rows];
measure(client, Rounds) ->
    Calls = recording(w1, 4_000_000, "256"),
    Large = recording(w4, 20_000, "1024"),
    Traced = traced(20_000),
    Lines = filename:join(get(dir), "lines.json"),
    sh(["'", get(etrace), "' replay ", Calls, " --limit 100000 --json >", Lines]),
    Takes = [
        {"w1 to text", fun() -> print("text w1 4", "M events/s") end},
        {"w1 to json", fun() -> print("json w1 4", "M events/s") end},
        {"w3 to text", fun() -> print("text w3 4", "M events/s") end},
        {"w1 by dbg's text handler", fun() -> handled(Traced, 20_000) end},
        {"w1, lines of JSON read by jq", fun() -> jq(Lines, 100_000) end},
        {"w4 to text, output", fun() -> print(["text ", Large, " 0.1"], "MB/s out") / 1000 end},
        {"w4 to json, output", fun() -> print(["json ", Large, " 0.1"], "MB/s out") / 1000 end},
        {"w1, bytes of an event in a recording", fun() -> filelib:file_size(Calls) / 4_000_000 end},
        {"w1 to a summary, a recording into a pipe", fun() -> piped(Calls, "summary", 4_000_000) end},
        {"w1 to text, a recording into a pipe", fun() -> piped(Calls, "text", 4_000_000) end},
        {"w1 to json, a recording into a pipe", fun() -> piped(Calls, "json", 4_000_000) end}] ++
        [{replayed(View), fun() -> elapsed(Calls, View, 4_000_000) end} || View <- ["summary", "text", "json"]],
    Samples = [[{Name, Take()} || {Name, Take} <- bench_run:shuffle(Takes)] || _ <- lists:seq(1, max(3, Rounds div 3))],
    [{client, Name, unit(Name), [proplists:get_value(Name, S) || S <- Samples]} || {Name, _} <- Takes];
%% Short rounds, interleaved. Other work on the machine only makes a round slower, so the best round of each counts.
measure(record, Rounds) ->
    Samples = [[{How, recorded(How)} || How <- bench_run:shuffle([compressed, plain])] || _ <- lists:seq(1, 4 * Rounds)],
    Speeds = fun(How) -> [proplists:get_value(How, S) || S <- Samples] end,
    [{record, Name, Unit, Values} || {Name, Unit, Values} <- [
        {"w1 recorded, compressed", "M events/s", Speeds(compressed)},
        {"w1 recorded, not compressed", "M events/s", Speeds(plain)},
        {"w1 recorded, compressed: of not compressed, by rounds", "",
            [A / B || {A, B} <- lists:zip(Speeds(compressed), Speeds(plain))]},
        {"w1 recorded, compressed: of not compressed, best rounds", "",
            [lists:max(Speeds(compressed)) / lists:max(Speeds(plain))]}]].

unit("w1, bytes of an event in a recording") -> "bytes";
unit(Name) -> case lists:suffix(", output", Name) of true -> "GB/s"; false -> "M events/s" end.

%% ---- a session ----------------------------------------------------------------------------------------------------

%% Returns the current nanoseconds per event at the floor.
floor_ns() ->
    [Plain, Floor] = [run(T, 200_000) || T <- [untraced, floor]],
    max(1.0, Floor - Plain).

run(T, N) ->
    Pids = bench_work:prepare(w1),
    Stop = bench_tracers:start(T, w1, Pids),
    Ns = bench_run:sliced(Pids, N),
    Stop(),
    bench_work:finish(Pids),
    Ns.

%% Measures how long the owner takes to copy the rings into a batch; the owner does not decode the batch. Returns the
%% median, as a multiple of the floor.
drain() ->
    Floor = floor_ns(),
    Self = self(),
    Pids = bench_work:prepare(w1),
    Stop = bench_tracers:etrace(bench_tracers:nif(), 2 * ?MB, 256, {w1, Pids}, fun(_, State) -> at_request(State, Self) end, []),
    Owner = receive {drains, P} -> P end,
    Times = [begin
        bench_work:run(Pids, 10_000),
        Owner ! drain,
        receive {drained, Ns} -> Ns / 10_000 end
    end || _ <- lists:seq(1, 30)],
    Stop(),
    bench_work:finish(Pids),
    bench_run:quantile(0.5, lists:sort(Times)) / Floor.

at_request(State, To) ->
    To ! {drains, self()},
    (fun Loop() ->
        receive
            drain ->
                Begun = erlang:monotonic_time(nanosecond),
                empty(State),
                To ! {drained, erlang:monotonic_time(nanosecond) - Begun},
                Loop();
            stop -> 0
        end
    end)().

empty(State) ->
    case (bench_tracers:nif()):drain(State, ?MB, <<>>, false) of
        {Batch, _, Status} when Batch =/= none, Status band 1 =:= 1 -> empty(State);
        _ -> ok
    end.

%% Runs Do while a client traces a process of w1.
with_client(Args, Where, Env, Do) ->
    Pids = bench_work:prepare(w1),
    Client = bench_tracers:client(["-P", pid_to_list(hd(Pids)), "bench_work:f/2" | Args], Where, Env),
    bench_tracers:armed(Client, Pids),
    Result = Do(Pids, Client),
    {_, _} = bench_tracers:client_end(Client),
    bench_work:finish(Pids),
    Result.

client_time() ->
    Floor = floor_ns(),
    with_client([], " >/dev/null", [], fun(Pids, Client) ->
        Pid = bench_tracers:client_pid(Client),
        Before = quiet(Pid),
        bench_work:run(Pids, ?EVENTS),
        (quiet(Pid) - Before) / ?EVENTS / Floor
    end).

%% Waits until the client is idle and returns its processor time.
quiet(Pid) -> quiet(Pid, -1, 0).
quiet(Pid, Time, 3) -> _ = Pid, Time;
quiet(Pid, Before, N) ->
    timer:sleep(20),
    case cpu(Pid) of
        Before -> quiet(Pid, Before, N + 1);
        Now -> quiet(Pid, Now, 0)
    end.

%% Returns the processor time of all threads, in nanoseconds.
cpu(Pid) -> lists:sum([Ns || File <- tasks(Pid, "schedstat"), {ok, Text} <- [file:read_file(File)], {Ns, _} <- [string:to_integer(Text)]]).

wakeups(Pid) ->
    lists:sum([N || File <- tasks(Pid, "status"), {ok, Text} <- [file:read_file(File)],
        {match, [Digits]} <- [re:run(Text, "^voluntary_ctxt_switches:\\s+([0-9]+)", [multiline, {capture, all_but_first, list}])],
        N <- [list_to_integer(Digits)]]).

tasks(Pid, File) -> filelib:wildcard(lists:flatten(["/proc/", case Pid of self -> "self"; _ -> integer_to_list(Pid) end, "/task/*/", File])).

%% Returns {megabytes that the node has grown by, without the rings of the traced threads; messages in the owner's
%% queue}.
blocked() ->
    Fifo = filename:join(get(dir), "fifo"),
    os:cmd(["mkfifo ", Fifo]),
    Reader = open_port({spawn_executable, "/bin/sh"}, [{args, ["-c", ["exec sleep 600 <", Fifo]]}]),
    {os_pid, Sleeps} = erlang:port_info(Reader, os_pid),
    erlang:garbage_collect(),
    Before = memory(),
    Result = with_client([], [" >", Fifo], [], fun(Pids, _) ->
        [Owner] = [P || P <- processes(), {_, D} <- [process_info(P, dictionary)], lists:keymember(session, 1, D)],
        Seen = [begin
            bench_work:run(Pids, 200_000),
            {message_queue_len, N} = process_info(Owner, message_queue_len),
            {memory() - Before, N}
        end || _ <- lists:seq(1, 10)],
        os:cmd(["kill ", integer_to_list(Sleeps)]),
        {Grown, Waits} = lists:unzip(Seen),
        {lists:max(Grown) - 2 * erlang:system_info(schedulers_online), lists:max(Waits)} % a ring has 2 MB
    end),
    file:delete(Fifo),
    Result.

%% Returns the node's proportional memory in megabytes: shared pages count by share.
memory() ->
    {ok, Text} = file:read_file("/proc/self/smaps_rollup"),
    {match, [Kb]} = re:run(Text, "^Pss:\\s+([0-9]+)", [multiline, {capture, all_but_first, list}]),
    list_to_integer(Kb) / 1024.

%% Returns {wake-ups per second, percent of a core} of the node while a client is attached and nothing happens, minus
%% the values without a client.
idle() ->
    {Woken, Busy} = with_client([], " >/dev/null", [], fun(_, _) -> timer:sleep(200), still() end),
    {Alone, Own} = still(),
    {Woken - Alone, Busy - Own}.

still() ->
    {W0, C0} = {wakeups(self), cpu(self)},
    timer:sleep(4000),
    {W1, C1} = {wakeups(self), cpu(self)},
    {(W1 - W0) / 4, (C1 - C0) / 4.0e7}.

%% Returns {median, p99} in milliseconds of the age of the oldest line in each read, at full rate.
age() ->
    File = filename:join(get(dir), "ages"),
    with_client(["--utc", "--format", "{time}"], [" > >(", filename:join(get(dir), "age"), " >", File, ")"], [], fun(Pids, Client) ->
        bench_work:run(Pids, ?EVENTS),
        quiet(bench_tracers:client_pid(Client))
    end),
    ages(File).

ages(File) ->
    case file:read_file(File) of
        {ok, Text} when byte_size(Text) > 0 -> [Median, P99] = [binary_to_float(W) || W <- string:lexemes(Text, " \n")], {Median, P99};
        _ -> timer:sleep(5), ages(File)
    end.

%% ---- the client ---------------------------------------------------------------------------------------------------

sh(Command) -> os:cmd(lists:flatten(Command)).

%% Runs bench_print and returns its figure What, in processor time.
print(Args, What) ->
    Said = sh([filename:join(get(tools), "bench_print"), " ", Args]),
    {match, [Number]} = re:run(Said, ["([0-9.]+) ", What], [{capture, all_but_first, list}]),
    case string:to_float(Number) of
        {error, _} -> float(list_to_integer(Number));
        {F, _} -> F
    end.

%% Makes a recording of this many rounds with a client.
recording(W, Rounds, Size) ->
    File = filename:join(get(dir), atom_to_list(W) ++ ".etr"),
    Pids = bench_work:prepare(W),
    Client = bench_tracers:client(["--size", Size, "-o", File | lists:append([["-P", pid_to_list(P)] || P <- Pids])]
        ++ bench_work:expressions(W), " >/dev/null", []),
    bench_tracers:wait(fun() -> bench_work:is_armed(W, Pids) end, Client),
    bench_work:run(Pids, Rounds),
    bench_tracers:client_end(Client),
    bench_work:finish(Pids),
    File.

%% Returns millions of events per second from the start until the recording is complete. etrace_plain is etrace without
%% the compression of recordings.
recorded(How) ->
    Etrace = get(etrace),
    How =:= compressed orelse put(etrace, filename:join(get(tools), "etrace_plain")),
    File = filename:join(get(dir), "recorded.etr"),
    file:delete(File),
    Pids = bench_work:prepare(w1),
    Client = bench_tracers:client(["--size", "256", "-P", pid_to_list(hd(Pids)), "-o", File, "bench_work:f/2"], " >/dev/null", []),
    bench_tracers:armed(Client, Pids),
    Begun = erlang:monotonic_time(microsecond),
    bench_work:run(Pids, ?RECORDED),
    {Shown, _} = bench_tracers:client_end(Client),
    Time = erlang:monotonic_time(microsecond) - Begun,
    bench_work:finish(Pids),
    put(etrace, Etrace),
    Shown / Time.

%% Makes a file with the same calls with dbg.
traced(N) ->
    File = filename:join(get(dir), "traced"),
    Pids = bench_work:prepare(w1),
    Stop = bench_peers:file(File, w1, Pids),
    bench_work:run(Pids, N),
    Stop(),
    bench_work:finish(Pids),
    File.

%% Returns millions of events per second of processor time.
handled(File, N) ->
    {ok, Nowhere} = file:open("/dev/null", [write]),
    Before = cpu(self),
    bench_peers:handler(File, Nowhere),
    Time = cpu(self) - Before,
    file:close(Nowhere),
    N * 1000 / Time.

jq(File, N) -> timed(["jq -c . ", File], ">/dev/null", N).

piped(File, View, N) -> timed(["'", get(etrace), "' replay ", File, " --as ", View, " -qq"], "| cat >/dev/null", N).

replayed(View) -> "w1 to " ++ View ++ ", a recording into a pipe, in real time".

%% Returns millions of events per second of real time, because a replay uses two threads.
elapsed(File, View, N) ->
    Command = lists:flatten(["'", get(etrace), "' replay ", File, " --as ", View, " -qq | cat >/dev/null"]),
    Begun = erlang:monotonic_time(microsecond),
    [] = os:cmd(Command),
    N / (erlang:monotonic_time(microsecond) - Begun).

timed(Command, Where, N) ->
    Times = filename:join(get(dir), "times"),
    Script = filename:join(get(dir), "timed"),
    ok = file:write_file(Script, ["TIMEFORMAT='%U %S'\n{ time ", Command, "; } 2>", Times, " ", Where, "\n"]),
    sh(["bash ", Script]),
    {ok, Text} = file:read_file(Times),
    [User, System] = [binary_to_float(W) || W <- string:lexemes(Text, " \n")],
    N / (User + System) / 1.0e6.
