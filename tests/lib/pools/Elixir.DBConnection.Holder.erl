%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in db_connection 2: the client monitors the pool, asks it with a message that is
%% no call of gen_server, and gets a table with the connection. The owner of the table holds the connection.
-module('Elixir.DBConnection.Holder').
-export([update/2, checkout/3, handle_checkout/3]).

%% Called by a connection: gives a new table to the pool, which is its heir. The fields of the row are the process of
%% the connection, its module and state, the reference of the checkout, the time of the connect, the timer of the
%% checkout, and a status.
update(Pool, Ref) ->
    Holder = ets:new(?MODULE, [public, ordered_set, {decentralized_counters, true}]),
    ets:insert_new(Holder, {conn, self(), ?MODULE, state, nil, erlang:monotonic_time(), nil, ok}),
    ets:setopts(Holder, {heir, Pool, Ref}),
    ets:give_away(Holder, Pool, {checkin, Ref, erlang:monotonic_time()}).

checkout(Pool, Callers, Timeout) ->
    Now = erlang:monotonic_time(millisecond),
    case checkout(Pool, Callers, true, Now, Now + Timeout) of
        {ok, _, _} = Ok -> Ok;
        {error, _} = Error -> Error;
        {exit, Reason} -> exit(Reason)
    end.

checkout(Pool, Callers, Queue, Start, Timeout) ->
    checkout_call(if is_pid(Pool) -> Pool; true -> whereis(Pool) end, Callers, Queue, Start, Timeout).

checkout_call(Pid, Callers, Queue, Start, Timeout) ->
    Lock = monitor(process, Pid),
    Pid ! {db_connection, {self(), Lock}, {checkout, Callers, Start, Queue}},
    receive
        {'ETS-TRANSFER', Holder, Pool, {Lock, Ref, _}} ->
            demonitor(Lock, [flush]),
            Timer = erlang:start_timer(Timeout, Pool, {Ref, Holder, self(), Timeout - Start}, [{abs, true}]),
            ets:update_element(Holder, conn, [{5, Lock}, {7, Timer}]),
            {ok, Holder, Pool};
        {Lock, Reply} ->
            demonitor(Lock, [flush]),
            Reply;
        {'DOWN', Lock, _, _, Reason} ->
            {exit, Reason}
    end.

%% Called by the pool.
handle_checkout(Holder, {Pid, Lock}, Ref) ->
    ets:give_away(Holder, Pid, {Lock, Ref, erlang:monotonic_time()}).
