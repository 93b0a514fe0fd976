%% SPDX-License-Identifier: Apache-2.0
%% Measures the start of a trace: the processor time that it takes on a node, and how long a user waits for one node and
%% for thirty nodes on this host. Each round measures one node and then all of them.
-module(bench_many).
-export([measure/1, started/1, spent/1]).

-define(NODES, 30).

measure(Rounds) ->
    Peers = [started(I) || I <- lists:seq(1, ?NODES)],
    timer:sleep(2000), % until the nodes are idle
    Times = min(?NODES div 2, max(3, Rounds div 3)),
    First = lists:unzip([traced([Peer]) || Peer <- lists:sublist(Peers, Times)]),
    _ = traced(lists:nthtail(Times, Peers)),
    {Ones, Alls} = lists:unzip([{traced([lists:nth(I, Peers)]), traced(Peers)} || I <- lists:seq(1, Times)]),
    [peer:stop(Control) || {Control, _, _} <- Peers],
    figures("one fresh node", First) ++ figures("one node", lists:unzip(Ones)) ++
        figures("30 nodes", lists:unzip(Alls)).

figures(What, {Waits, Spent}) ->
    [{many, "attach and arm " ++ What, "ms", Waits}, {many, "processor time of a node, " ++ What, "ms", Spent}].

%% The node is connected to this one only by its standard input and output. The benchmark runs in an OTP that may not be
%% the one in PATH.
started(I) ->
    {ok, Control, Node} = peer:start(#{name => "many" ++ integer_to_list(I), host => "127.0.0.1", longnames => true,
        connection => standard_io, args => ["-start_epmd", "false"],
        exec => filename:join([code:root_dir(), "bin", "erl"])}),
    {Control, Node, peer:call(Control, os, getpid, [])}.

%% {ms until the client reports that it traces, ms of processor time of each node until the client has ended}
traced(Peers) ->
    Before = spent(Peers),
    {Wait, _} = bench_growth:wait([Node || {_, Node, _} <- Peers], ["lists:seq/2"]),
    timer:sleep(300), % the nodes unload the companion
    {Wait, (spent(Peers) - Before) / length(Peers)}.

%% Does not ask the nodes, because that would take their time.
spent(Peers) ->
    Files = lists:flatmap(fun({_, _, OsPid}) -> filelib:wildcard("/proc/" ++ OsPid ++ "/task/*/schedstat") end, Peers),
    lists:sum(lists:map(fun nanoseconds/1, Files)) / 1.0e6.

nanoseconds(File) ->
    case file:read_file(File) of
        {ok, Text} -> binary_to_integer(hd(binary:split(Text, <<" ">>)));
        {error, _} -> 0 % the thread has ended
    end.
