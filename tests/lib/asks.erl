%% SPDX-License-Identifier: Apache-2.0
%% Servers with a known answer for the tests of `etrace requests`: a gen_server (asks) and callers. The server measures
%% its own work and keeps a list of {Request, Nanoseconds}.
-module(asks).
-behaviour(gen_server).
-export([start/0, start/1, stop/0, call/1, call/2, calls/2, timed_call/1, variants/1, requests/1, later/1, behind/2,
    given_up/0]).
-export([work/0, client/1, pool/2, many/1, open/2, deadlock/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, handle_continue/2]).

start() -> start(asks).
start(Name) -> {ok, Pid} = gen_server:start({local, Name}, ?MODULE, [], []), Pid.
stop() -> gen_server:stop(asks).

call(Request) -> gen_server:call(asks, Request).
%% In a process of its own. Returns the reply, or timeout.
call(Request, Timeout) -> client(fun() -> gen_server:call(asks, Request, Timeout) end).

%% A request that the server handles until its caller has given up.
given_up() ->
    timeout = call({sleep, awaited}, 5),
    asks ! awaited,
    timeout.

calls(Request, N) -> [ok = call(Request) || _ <- lists:seq(1, N)], ok.

%% The nanoseconds that the caller measures.
timed_call(Request) ->
    Begin = erlang:monotonic_time(nanosecond),
    _ = call(Request),
    erlang:monotonic_time(nanosecond) - Begin.

%% N requests that differ in the tag of a tuple.
variants(N) ->
    [ok = call({get, {binary_to_atom(<<"key", (integer_to_binary(I))/binary>>), I}}) || I <- lists:seq(1, N)],
    ok.

%% The same request with each kind of tag in From, and without waiting for the first reply.
requests(Request) ->
    ok = gen_server:call(asks, Request, infinity),
    Id = gen_server:send_request(asks, Request),
    timeout = gen_server:wait_response(Id, 0),
    {reply, ok} = gen_server:receive_response(Id, infinity),
    {[{_, ok}], []} = gen_server:multi_call([node()], asks, Request),
    ok.

%% Runs a function in a new process with the name `client` and returns its value, or the reason why it exits.
client(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> proc_lib:set_label(client), exit({value, Fun()}) end),
    receive
        {'DOWN', Ref, process, Pid, {value, Value}} -> Value;
        {'DOWN', Ref, process, Pid, {Reason, {gen_server, call, _}}} -> Reason;
        {'DOWN', Ref, process, Pid, Reason} -> Reason
    end.

%% Leaves N requests open: returns when each is sent and its process waits for the reply.
open(Request, N) ->
    [in_call(P) || P <- [spawn(fun() -> call(Request) end) || _ <- lists:seq(1, N)]],
    ok.

in_call(P) ->
    case process_info(P, [status, current_function]) of
        [{status, waiting}, {current_function, {gen, do_call, _}}] -> ok;
        [_, _] -> timer:sleep(1), in_call(P)
    end.

%% Two servers wait for each other. Returns when both do.
deadlock(A, B) ->
    spawn(fun() -> gen_server:call(A, {ask, B, {ask, A, count}}, infinity) end),
    [in_call(whereis(S)) || S <- [A, B]],
    ok.

%% A request whose reply comes from another process after Ms milliseconds.
later(Ms) -> call({later, Ms}).

%% A request that waits behind a message that the server handles for Ms milliseconds.
behind(Ms, Request) ->
    asks ! {recount, Ms},
    call(Request).

%% N clients check out the only place of a pool one after the other, and keep it for Ms milliseconds.
pool(N, Ms) ->
    Clients = [spawn_monitor(fun() ->
        ok = call(checkout),
        timer:sleep(Ms),
        gen_server:cast(asks, checkin)
    end) || _ <- lists:seq(1, N)],
    [receive {'DOWN', Ref, _, _, normal} -> ok end || {_, Ref} <- Clients],
    ok = call(settled).

%% The same request to several nodes at once.
many(Nodes) -> gen_server:multi_call(Nodes, asks, {sleep, 1}).

%% [{Request, Nanoseconds}] of the requests so far, as the server measured them.
work() -> call(work).

init([]) -> {ok, []}.

handle_call(work, _, Work) -> {reply, lists:reverse(Work), Work};
handle_call({sleep, Ms} = Request, _, Work) ->
    {Time, ok} = timed(Ms),
    {reply, ok, [{Request, Time} | Work]};
handle_call({later, Ms}, From, Work) ->
    spawn(fun() -> timer:sleep(Ms), gen_server:reply(From, ok) end),
    {noreply, Work};
handle_call({early, Ms}, From, Work) ->
    gen_server:reply(From, ok),
    timer:sleep(Ms),
    {noreply, Work};
handle_call({ask, Server, Request}, _, Work) -> {reply, gen_server:call(Server, Request, infinity), Work};
handle_call(checkout, From, Work) ->
    case put(pool, get_pool() ++ [From]) of
        [_ | _] -> {noreply, Work};
        _ -> {reply, ok, Work}
    end;
handle_call(never, _, Work) -> {noreply, Work};
handle_call(crash, _, _) -> exit(crash);
handle_call(stop_later, _, Work) -> {stop, normal, ok, Work};
handle_call(_, _, Work) -> {reply, ok, Work}.

handle_cast(checkin, Work) ->
    [_ | Waiting] = get_pool(),
    [gen_server:reply(Next, ok) || Next <- lists:sublist(Waiting, 1)],
    put(pool, Waiting),
    {noreply, Work};
handle_cast({sleep, Ms}, Work) -> timer:sleep(Ms), {noreply, Work};
handle_cast(_, Work) -> {noreply, Work}.

handle_info({recount, Ms}, Work) -> timer:sleep(Ms), {noreply, Work};
handle_info(_, Work) -> {noreply, Work}.

handle_continue(_, Work) -> {noreply, Work}.

timed(Ms) ->
    Begin = erlang:monotonic_time(nanosecond),
    Result = case Ms of awaited -> receive awaited -> ok end; _ -> timer:sleep(Ms) end,
    {erlang:monotonic_time(nanosecond) - Begin, Result}.

%% The clients of the pool: the one that has the place, then those that wait.
get_pool() ->
    case get(pool) of
        undefined -> [];
        Clients -> Clients
    end.
