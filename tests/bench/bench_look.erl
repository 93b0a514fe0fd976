%% SPDX-License-Identifier: Apache-2.0
%% Measures what looking at processes costs: `etrace stacks`, `ps` and `check` on a node with 100,000 processes, and the
%% share of a core that `etrace stacks --for` takes when it looks at 200 processes 20 times a second.
-module(bench_look).
-export([measure/1, work/1]).

-define(MANY, 100000).
-define(FEW, 200).
-define(SECONDS, 4).

measure(Rounds) ->
    Times = max(3, Rounds div 3),
    Many = node_with(look_many, ?MANY),
    Few = node_with(look_few, ?FEW),
    _ = {looked(Many, ["stacks"]), looked(Few, ["stacks"])}, % the first attach loads modules
    Samples = [round_of(Many, Few) || _ <- lists:seq(1, Times)],
    [peer:stop(Control) || {Control, _, _} <- [Many, Few]],
    [{look, Name, Unit, [lists:nth(I, S) || S <- Samples]} || {I, {Name, Unit}} <- lists:enumerate(rows())].

rows() ->
    [{"stacks of 100,000 processes, attach included", "ms"},
     {"processor time of the node for that", "ms"},
     {"ps of 100,000 processes, attach included", "ms"},
     {"check of 100,000 processes beside ps, processor time of the node", "x"},
     {"stacks of 200 processes, attach included", "ms"},
     {"sampling 200 processes 20 times a second, of a core", "%"}].

%% The time of one look at few processes is mostly that of the attach, so the difference is that of the samples.
round_of(Many, Few) ->
    {Stacks, Spent} = looked(Many, ["stacks"]),
    {Ps, Listed} = looked(Many, ["ps", "--sort", "queue"]),
    {_, Checked} = looked(Many, ["check"]),
    {Attach, Once} = looked(Few, ["stacks"]),
    {_, Sampled} = looked(Few, ["stacks", "--for", integer_to_list(?SECONDS) ++ "s", "-P", "initial(bench_look:work/1)"]),
    [Stacks, Spent, Ps, Checked / Listed, Attach, (Sampled - Once) / ?SECONDS / 10].

node_with(Name, Count) ->
    {ok, Control, Node} = peer:start(#{name => Name, host => "127.0.0.1", longnames => true, connection => standard_io,
        args => ["-start_epmd", "false", "+P", "500000", "-pa", filename:dirname(code:which(?MODULE))],
        exec => filename:join([code:root_dir(), "bin", "erl"])}),
    peer:call(Control, ?MODULE, work, [{start, Count}]),
    timer:sleep(1000), % until the node is idle
    {Control, Node, peer:call(Control, os, getpid, [])}.

%% Waits below some functions, so that the processes have 26 different stacks.
work({start, Count}) -> [spawn(?MODULE, work, [I rem 26]) || I <- lists:seq(1, Count)], ok;
work(0) -> receive never -> ok end;
work(N) when N < 8 -> [work(N - 1)];
work(N) -> {N, work(N rem 8)}.

%% {ms that the command takes, ms of processor time of the node until the companion is unloaded}
looked(Peer = {_, Node, _}, [Command | Args]) ->
    Before = bench_many:spent([Peer]),
    T0 = erlang:monotonic_time(microsecond),
    Port = open_port({spawn_executable, get(etrace)}, [exit_status, binary, {args, [Command, "-qq", "-n", atom_to_list(Node) | Args]}]),
    true = lists:member(ended(Port), [0, 12]), % 12: check has found something, such as a busy host
    Ms = (erlang:monotonic_time(microsecond) - T0) / 1000,
    timer:sleep(300),
    {Ms, bench_many:spent([Peer]) - Before}.

ended(Port) ->
    receive
        {Port, {data, _}} -> ended(Port);
        {Port, {exit_status, Status}} -> Status
    end.
