%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in RabbitMQ: a client asks the pool for a free worker, and then asks the worker to
%% run its job. The pool monitors its workers, and no client.
-module(worker_pool).
-export([start/1, submit/2, ready/2, idle/2, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start(Name) -> gen_server2:start(Name, ?MODULE, []).

submit(Pool, Fun) ->
    Worker = gen_server2:call(Pool, {next_free, self()}, infinity),
    worker_pool_worker:submit(Worker, Fun, reuse).

ready(Pool, Worker) -> gen_server2:cast(Pool, {ready, Worker}).

idle(Pool, Worker) -> gen_server2:cast(Pool, {idle, Worker}).

init([]) -> {ok, {[], queue:new()}}.

handle_call({next_free, Client}, From, {[], Pending}) ->
    {noreply, {[], queue:in({next_free, From, Client}, Pending)}};
handle_call({next_free, Client}, From, {[Worker | Free], Pending}) ->
    given(Worker, From, Client),
    {noreply, {Free, Pending}}.

handle_cast({ready, Worker}, State) ->
    monitor(process, Worker),
    handle_cast({idle, Worker}, State);
handle_cast({idle, Worker}, {Free, Pending}) ->
    case queue:out(Pending) of
        {empty, _} ->
            {noreply, {[Worker | Free], Pending}};
        {{value, {next_free, From, Client}}, Left} ->
            given(Worker, From, Client),
            {noreply, {Free, Left}}
    end.

handle_info(_, State) -> {noreply, State}.

given(Worker, From, Client) ->
    worker_pool_worker:next_job_from(Worker, Client),
    gen_server2:reply(From, Worker).
