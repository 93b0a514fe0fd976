%% SPDX-License-Identifier: Apache-2.0
%% Other tracers on the same workloads: OTP's dbg in several forms, one message to another node per event, and redbug
%% and recon_trace if ERL_LIBS has them. start/3 returns a function that ends the tracing after all output has arrived
%% at its target (/dev/null), and returns the number of lost events.
-module(bench_peers).
-export([all/1, title/1, most/2, start/3, file/3, handler/2]).

-define(NOWHERE, "/dev/null").

all(W) ->
    [dbg_file, dbg_ip, dbg_text] ++
        [dbg_decoded || W =:= w1] ++
        [dist || W =:= w1] ++
        [redbug || W =/= w3, W =/= w6, code:which(redbug) =/= non_existing] ++
        [recon || W =/= w3, W =/= w4, W =/= w6, code:which(recon_trace) =/= non_existing].

title(dbg_file) -> "dbg, file port";
title(dbg_ip) -> "dbg, ip port, read and dropped";
title(dbg_text) -> "dbg, text";
title(dbg_decoded) -> "dbg, file port, then its text handler";
title(dist) -> "a message to another node for each event";
title(redbug) -> "redbug";
title(recon) -> "recon_trace".

%% The highest number of events in a round: mailboxes grow without bound, and a text of 100 kB takes long to format.
most(Port, w5) when Port =:= dbg_file; Port =:= dbg_ip -> 1000;
most(Port, _) when Port =:= dbg_file; Port =:= dbg_ip; Port =:= dist -> 100_000;
most(_, w4) -> 600;
most(_, w5) -> 80;
most(_, w6) -> 100_000;
most(_, _) -> 8000.

start(dbg_file, W, Pids) -> file(?NOWHERE, W, Pids);
start(dbg_ip, W, Pids) ->
    Port = (dbg:trace_port(ip, {0, 500000}))(),
    <<0, High, Low>> = iolist_to_binary(port_control(Port, $p, "")),
    Self = self(),
    Reader = spawn_opt(fun() ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, High * 256 + Low, [binary, {active, false}, {recbuf, 1048576}, {buffer, 1048576}]),
        Self ! {reads, self()},
        Self ! {dropped, self(), read(Socket, <<>>, 0)}
    end, []),
    receive {reads, Reader} -> ok end,
    port(Port, W, Pids, fun() -> receive {dropped, Reader, N} -> N end end);
start(dbg_decoded, W, Pids) ->
    File = filename:join(get(dir), "decoded"),
    Stop = file(File, W, Pids),
    fun() ->
        Stop(),
        {ok, Nowhere} = file:open(?NOWHERE, [write]),
        handler(File, Nowhere),
        file:close(Nowhere),
        0
    end;
start(dist, W, Pids) ->
    Sink = spawn_link(sink_node(), bench_work, sink, []),
    Relay = spawn_opt(fun Loop() ->
        receive
            {bench_done, From} -> Sink ! {bench_done, From, self()};
            Message -> Sink ! Message, Loop()
        end
    end, [{message_queue_data, off_heap}]),
    Session = session(Relay, W, Pids),
    fun() ->
        trace:session_destroy(Session),
        Relay ! {bench_done, self()},
        receive {bench_done, Relay} -> 0 end
    end;
start(dbg_text, W, Pids) ->
    {ok, Nowhere} = file:open(?NOWHERE, [write]),
    Tracer = spawn_opt(fun Loop() ->
        receive
            {bench_done, From} -> From ! {bench_done, self()};
            Message -> dbg:dhandler(Message, Nowhere), Loop()
        end
    end, [{message_queue_data, off_heap}]),
    Session = session(Tracer, W, Pids),
    fun() ->
        trace:session_destroy(Session),
        Tracer ! {bench_done, self()},
        receive {bench_done, Tracer} -> file:close(Nowhere), 0 end
    end;
start(redbug, W, Pids) ->
    {ok, Nowhere} = file:open(?NOWHERE, [write]),
    Ours = group_leader(),
    group_leader(Nowhere, self()), % redbug prints its last message to the group leader
    {Name, _, _} = redbug:start(expression(W),
        [{procs, Pids}, {msgs, 1 bsl 40}, {time, 1 bsl 31}, {print_file, ?NOWHERE}, {max_queue, 1 bsl 40}]),
    group_leader(Ours, self()),
    fun() -> redbug:stop(), gone(Name), file:close(Nowhere), 0 end;
start(recon, W, Pids) ->
    {ok, Nowhere} = file:open(?NOWHERE, [write]),
    recon_trace:calls(bench_work:mfa(W), 1 bsl 40, [{pid, Pids}, {scope, local}, {io_server, Nowhere}]),
    fun() ->
        Formatter = whereis(recon_trace_formatter),
        wait(fun() -> queue(whereis(recon_trace_tracer)) =:= 0 andalso queue(Formatter) =:= 0 end),
        recon_trace:clear(),
        gone(recon_trace_tracer),
        file:close(Nowhere),
        0
    end.

%% Runs dbg's trace port into a file.
file(File, W, Pids) ->
    port((dbg:trace_port(file, File))(), W, Pids, fun() -> 0 end).

session(Tracer, W, Pids) ->
    Session = trace:session_create(bench, Tracer, []),
    Flags = bench_work:arm(Session, W) ++ [timestamp],
    [1 = trace:process(Session, P, true, Flags) || P <- Pids],
    Session.

port(Port, W, Pids, Then) ->
    Session = session(Port, W, Pids),
    fun() ->
        Ref = trace:delivered(Session, all),
        receive {trace_delivered, all, Ref} -> ok end,
        trace:session_destroy(Session),
        _ = try port_control(Port, $f, "") catch error:_ -> ok end, % flushes the file; the ip port does not support it
        port_close(Port),
        Then()
    end.

%% All rounds share one node. It is linked to this process.
sink_node() ->
    case get(sink_node) of
        undefined ->
            {ok, _, Node} = peer:start_link(#{name => peer:random_name(), host => "127.0.0.1", longnames => true,
                wait_boot => 60000, args => ["-start_epmd", "false", "-pa", filename:dirname(code:which(?MODULE))]}),
            put(sink_node, Node),
            Node;
        Node -> Node
    end.

%% Counts the events that the port dropped. The port sends a byte 1 and the number of dropped events, or a byte 0, the
%% size and the bytes of an event.
read(Socket, Rest, Dropped) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, More} -> {Left, N} = frames(<<Rest/binary, More/binary>>, Dropped), read(Socket, Left, N);
        _ -> Dropped
    end.

frames(<<0, Size:32, _:Size/binary, Rest/binary>>, N) -> frames(Rest, N);
frames(<<1, Count:32, Rest/binary>>, N) -> frames(Rest, N + Count);
frames(Rest, N) -> {Rest, N}.

%% Converts dbg's file to text with dbg itself.
handler(File, Device) ->
    Self = self(),
    Client = dbg:trace_client(file, File, {fun
        (end_of_trace, _) -> Self ! {decoded, self()}, Device;
        (Message, State) -> dbg:dhandler(Message, State)
    end, Device}),
    receive {decoded, Client} -> ok end.

expression(w4) -> "bench_work:handle_call/3 -> return";
expression(W) -> {M, F, A} = bench_work:mfa(W), lists:flatten(io_lib:format("~w:~w/~w", [M, F, A])).

queue(undefined) -> 0;
queue(P) -> case process_info(P, message_queue_len) of {_, N} -> N; undefined -> 0 end.

gone(Name) -> wait(fun() -> whereis(Name) =:= undefined end).

wait(Until) -> Until() orelse begin timer:sleep(1), wait(Until) end.
