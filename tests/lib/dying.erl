%% SPDX-License-Identifier: Apache-2.0
%% Processes that exit in known ways, for `etrace died`: a server that a supervisor starts again (dying_server), and a
%% chain of linked processes with a monitor.
-module(dying).
-behaviour(supervisor).
-export([start/0, stop/0, crash/0, leave/1, leave_often/2, kill/0, chain/1, call_a_killed_one/0, normal/1, port/0, between/1, sent_between/1, last/1]).
-export([far/0]). % called from another node
-export([init/1, start_server/0, serve/1, wait/0]).

start() ->
    {ok, Pid} = supervisor:start_link({local, dying_sup}, ?MODULE, []),
    unlink(Pid),
    ok.

stop() ->
    Ref = monitor(process, dying_sup),
    exit(whereis(dying_sup), shutdown),
    receive {'DOWN', Ref, process, _, _} -> ok end.

init([]) ->
    Child = #{id => server, start => {?MODULE, start_server, []}},
    {ok, {#{strategy => one_for_one, intensity => 1000, period => 1}, [Child]}}.

start_server() -> proc_lib:start_link(?MODULE, serve, [self()]).

serve(Parent) ->
    register(dying_server, self()),
    proc_lib:init_ack(Parent, {ok, self()}),
    receive
        {crash, Number} -> {number, binary_to_integer(Number)};
        {leave, Reason} -> exit(Reason)
    end.

%% Sends a message to the server, and returns when the next one has its name.
next(Message) ->
    Old = whereis(dying_server),
    Old ! Message,
    replaced(Old).

replaced(Old) ->
    case whereis(dying_server) of
        New when is_pid(New), New =/= Old -> ok;
        _ -> timer:sleep(1), replaced(Old)
    end.

crash() -> next({crash, <<"no number">>}).
leave(Reason) -> next({leave, Reason}).
leave_often(N, Reason) -> [leave(Reason) || _ <- lists:seq(1, N)], ok.

kill() ->
    Old = whereis(dying_server),
    exit(Old, kill),
    replaced(Old).

%% A process exits; the second is linked to it, the third to the second; one traps the exit, and one monitors it.
chain(Reason) ->
    Self = self(),
    First = spawn(fun() -> register(dying_first, self()), receive leave -> exit(Reason) end end),
    Second = spawn(fun() -> register(dying_second, self()), link(First), Self ! ready, wait() end),
    receive ready -> ok end,
    Third = spawn(fun() -> link(Second), Self ! ready, wait() end),
    Trap = spawn(fun() ->
        process_flag(trap_exit, true), register(dying_trap, self()), link(First), Self ! ready,
        receive {'EXIT', First, Reason} -> Self ! reached end
    end),
    Watch = spawn(fun() ->
        register(dying_watch, self()), Ref = monitor(process, First, [{tag, mine}]), Self ! ready,
        receive {mine, Ref, process, First, Reason} -> Self ! reached end
    end),
    [receive ready -> ok end || _ <- [Third, Trap, Watch]],
    First ! leave,
    [receive reached -> ok end || _ <- [Trap, Watch]],
    gone([Second, Third, Trap, Watch]).

wait() -> receive never -> ok end.

gone(Pids) ->
    case lists:any(fun is_process_alive/1, Pids) of
        true -> timer:sleep(1), gone(Pids);
        false -> ok
    end.

%% A process exits because the one that it calls is killed.
call_a_killed_one() ->
    Server = spawn(?MODULE, wait, []),
    Caller = spawn(fun() -> gen_server:call(Server, question, infinity) end),
    asked(Server),
    exit(Server, kill),
    gone([Server, Caller]).

asked(Server) ->
    case process_info(Server, message_queue_len) of
        {_, 1} -> ok;
        _ -> timer:sleep(1), asked(Server)
    end.

%% A process opens a port, and another one tells the port to exit.
port() ->
    Self = self(),
    Owner = spawn(fun() -> register(dying_owner, self()), Self ! {port, open_port({spawn, "cat"}, [])}, wait() end),
    receive {port, Port} -> ok end,
    spawn(fun() -> register(dying_closer, self()), exit(Port, closed), wait_for(Owner) end),
    wait_for(Owner).

wait_for(Pid) ->
    Ref = monitor(process, Pid),
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% A process on another node exits. One is linked to it here, one traps the exit, and two monitor it, by its pid and name.
between(Node) ->
    Far = erpc:call(Node, ?MODULE, far, []),
    Self = self(),
    Begin = fun(Name, Fun) ->
        Pid = spawn(fun() -> register(Name, self()), Fun(), Self ! ready, receive never -> ok; M when element(1, M) =/= ready -> ok end end),
        receive ready -> Pid end
    end,
    Pids = [Begin(dying_linked, fun() -> link(Far) end), Begin(dying_trap, fun() -> process_flag(trap_exit, true), link(Far) end),
        Begin(dying_watch, fun() -> monitor(process, Far) end), Begin(dying_reader, fun() -> monitor(process, {dying_far, Node}) end)],
    Far ! {leave, oops},
    gone(Pids).

far() ->
    Self = self(),
    Pid = spawn(fun() -> register(dying_far, self()), Self ! ready, receive {leave, Reason} -> exit(Reason) end end),
    receive ready -> Pid end.

%% A process on another node sends an exit signal to one here.
sent_between(Node) ->
    Self = self(),
    Victim = spawn(fun() -> register(dying_victim, self()), Self ! ready, wait() end),
    receive ready -> ok end,
    erpc:call(Node, erlang, apply, [fun erlang:exit/2, [Victim, sent]]),
    gone([Victim]).

%% A process calls exit/1 at the end of a function. Another function follows it in the module.
last(Reason) ->
    Self = self(),
    Pid = spawn(fun() -> register(dying_last, self()), Self ! ready, receive leave -> leave_last(Reason), ok end end),
    receive ready -> ok end,
    Pid ! leave,
    gone([Pid]).

leave_last(Reason) -> exit(Reason).

normal(N) -> gone([spawn(fun() -> ok end) || _ <- lists:seq(1, N)]).
