%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in RabbitMQ: a worker runs a job in a callback, and monitors its client only until
%% the client submits the job.
-module(worker_pool_worker).
-export([start/2, next_job_from/2, submit/3, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start(Name, Pool) -> gen_server2:start(Name, ?MODULE, Pool).

next_job_from(Worker, Client) -> gen_server2:cast(Worker, {next_job_from, Client}).

submit(Worker, Fun, Model) -> gen_server2:call(Worker, {submit, Fun, self(), Model}, infinity).

init(Pool) ->
    ok = worker_pool:ready(Pool, self()),
    put(worker_pool_worker, true),
    put(worker_pool_name, Pool),
    {ok, undefined}.

%% The job and the client's name arrive in any order.
handle_call({submit, Fun, Client, reuse}, From, undefined) ->
    {noreply, {job, Client, From, Fun}};
handle_call({submit, Fun, Client, reuse}, From, {from, Client, Ref}) ->
    demonitor(Ref),
    finish(From, run(Fun, reuse)).

handle_cast({next_job_from, Client}, undefined) ->
    {noreply, {from, Client, monitor(process, Client)}};
handle_cast({next_job_from, Client}, {job, Client, From, Fun}) ->
    finish(From, run(Fun, reuse)).

handle_info(_, State) -> {noreply, State}.

run(Fun, reuse) -> Fun().

finish(From, Result) ->
    gen_server2:reply(From, Result),
    ok = worker_pool:idle(get(worker_pool_name), self()),
    {noreply, undefined}.
