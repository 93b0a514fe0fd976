%% What else there is to trace with, on the same workloads: OTP's own dbg in its three forms, and redbug and recon_trace where
%% ERL_LIBS has them. start/3 returns a function that ends the tracing once everything has arrived where it goes (/dev/null).
-module(bench_peers).
-export([all/1, title/1, start/3]).

-define(NOWHERE, "/dev/null").

all(W) ->
    [dbg_file, dbg_ip, dbg_text] ++
        [redbug || W =/= w3, code:which(redbug) =/= non_existing] ++
        [recon || W =/= w3, W =/= w4, code:which(recon_trace) =/= non_existing].

title(dbg_file) -> "dbg, file port";
title(dbg_ip) -> "dbg, ip port, read and dropped";
title(dbg_text) -> "dbg, text";
title(redbug) -> "redbug";
title(recon) -> "recon_trace".

start(dbg_file, W, Pids) ->
    Port = (dbg:trace_port(file, ?NOWHERE))(),
    port(Port, W, Pids, fun() -> ok end);
start(dbg_ip, W, Pids) ->
    Port = (dbg:trace_port(ip, {0, 500000}))(),
    <<0, High, Low>> = iolist_to_binary(port_control(Port, $p, "")),
    Reader = spawn_opt(fun() ->
        {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, High * 256 + Low, [binary, {active, false}, {recbuf, 1048576}]),
        drop(Socket)
    end, []),
    port(Port, W, Pids, fun() -> exit(Reader, kill) end);
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
        receive {bench_done, Tracer} -> file:close(Nowhere) end
    end;
start(redbug, W, Pids) ->
    redbug:start(expression(W), [{procs, Pids}, {msgs, 1 bsl 40}, {time, 1 bsl 31}, {print_file, ?NOWHERE}, {max_queue, 1 bsl 40}]),
    fun() -> redbug:stop(), gone(redbug) end;
start(recon, W, Pids) ->
    {ok, Nowhere} = file:open(?NOWHERE, [write]),
    {M, F, A} = mfa(W),
    recon_trace:calls({M, F, A}, 1 bsl 40, [{pid, Pids}, {scope, local}, {io_server, Nowhere}]),
    fun() ->
        Formatter = whereis(recon_trace_formatter),
        wait(fun() -> queue(whereis(recon_trace_tracer)) =:= 0 andalso queue(Formatter) =:= 0 end),
        recon_trace:clear(),
        gone(recon_trace_tracer),
        file:close(Nowhere)
    end.

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
        catch port_control(Port, $f, ""), % written; the ip port knows no such thing
        port_close(Port),
        Then()
    end.

drop(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, _} -> drop(Socket);
        _ -> ok
    end.

mfa(W) when W =:= w1; W =:= w2 -> {bench_work, f, 2};
mfa(w5) -> {bench_work, big, 1}.

expression(w4) -> "bench_work:handle_call/3 -> return";
expression(W) -> {M, F, A} = mfa(W), lists:flatten(io_lib:format("~w:~w/~w", [M, F, A])).

queue(undefined) -> 0;
queue(P) -> case process_info(P, message_queue_len) of {_, N} -> N; undefined -> 0 end.

gone(Name) -> wait(fun() -> whereis(Name) =:= undefined end).

wait(Until) -> Until() orelse begin timer:sleep(1), wait(Until) end.
