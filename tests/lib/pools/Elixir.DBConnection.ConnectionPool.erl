%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in db_connection 2: a gen_server with a table of its free connections, or of the
%% clients that wait. It does not monitor the clients, and drops those that wait for long: the first one every 400 ms.
-module('Elixir.DBConnection.ConnectionPool').
-behaviour(gen_server).
-export([start/1, start_link/0, queue/1, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start(Name) -> gen_server:start({local, Name}, ?MODULE, [], []).

%% As for a repository of Ecto: the pool has no name.
start_link() -> gen_server:start_link(?MODULE, [], []).

%% Returns the reference with which a connection registers.
queue(Pool) -> gen_server:call(Pool, queue).

init([]) ->
    Options = [protected, ordered_set, {decentralized_counters, true}],
    Queue = ets:new('Elixir.DBConnection.ConnectionPool.Queue', Options),
    erlang:start_timer(400, self(), poll),
    {ok, {busy, Queue}}.

handle_call(queue, _, {_, Queue} = State) -> {reply, Queue, State}.

handle_cast(_, State) -> {noreply, State}.

handle_info({db_connection, From, {checkout, _, Now, true}}, {busy, Queue} = State) ->
    ets:insert(Queue, {{Now, erlang:unique_integer(), From}}),
    {noreply, State};
handle_info({db_connection, From, {checkout, _, _, true}} = Checkout, {ready, Queue} = State) ->
    case ets:first(Queue) of
        {_, Holder} = Key ->
            'Elixir.DBConnection.Holder':handle_checkout(Holder, From, Queue),
            ets:delete(Queue, Key),
            {noreply, State};
        '$end_of_table' ->
            handle_info(Checkout, {busy, Queue})
    end;
handle_info({'ETS-TRANSFER', Holder, _, {checkin, Queue, Now}}, {Status, Queue}) ->
    case Status =:= busy andalso ets:first(Queue) of
        {_, _, From} = Key ->
            ets:delete(Queue, Key),
            'Elixir.DBConnection.Holder':handle_checkout(Holder, From, Queue),
            {noreply, {busy, Queue}};
        _ ->
            ets:insert(Queue, {{Now, Holder}}),
            {noreply, {ready, Queue}}
    end;
handle_info({timeout, _, poll}, {Status, Queue} = State) ->
    erlang:start_timer(400, self(), poll),
    case Status =:= busy andalso ets:first(Queue) of
        {_, _, From} = Key ->
            ets:delete(Queue, Key),
            gen_server:reply(From, {error, dropped});
        _ -> ok
    end,
    {noreply, State};
handle_info(_, State) ->
    {noreply, State}.
