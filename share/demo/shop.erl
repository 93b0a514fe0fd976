%% SPDX-License-Identifier: Apache-2.0
%% Starts the demo node: a small shop with constant light load. shop:start() starts the stock, the
%% orders, the courier and the customers. shop:start(#{rate => N}) makes the customers do N purchases per second.
%% The shop exists to be traced: some calls are slow, some fail, and some are refused. It needs
%% only kernel and stdlib.
-module(shop).
-behaviour(supervisor).

-export([start/0, start/1, stop/0]).
-export([init/1]).

-define(RATE, 6).

start() ->
    start(#{}).

start(Options) ->
    Rate = maps:get(rate, Options, ?RATE),
    {ok, Pid} = supervisor:start_link({local, ?MODULE}, ?MODULE, Rate),
    %% The shop keeps running when its starter exits.
    unlink(Pid),
    {ok, Pid}.

stop() ->
    Ref = monitor(process, ?MODULE),
    exit(whereis(?MODULE), shutdown),
    receive
        {'DOWN', Ref, process, _, _} -> ok
    end.

init(Rate) when is_integer(Rate), Rate > 0 ->
    Count = min(200, max(4, Rate div 20)),
    Customers = [customer(Id, Count, Rate) || Id <- lists:seq(1, Count)],
    Flags = #{strategy => one_for_one, intensity => 10, period => 1},
    {ok, {Flags, [worker(shop_stock, []), worker(shop_orders, []), worker(shop_courier, []) | Customers]}}.

worker(Module, Args) ->
    #{id => Module, start => {Module, start_link, Args}}.

customer(Id, Count, Rate) ->
    #{id => {customer, Id}, start => {shop_customer, start_link, [Id, Count, Rate]}}.
