%% SPDX-License-Identifier: Apache-2.0
%% Delivers parcels. Each parcel has its own process, which reads a file (the map), sleeps a moment, and sometimes
%% loses the parcel; the courier receives the exit reason. After a dozen parcels the courier stops, and the
%% supervisor starts a new one.
-module(shop_courier).
-behaviour(gen_server).

-export([start_link/0, deliver/1]).
-export([init/1, handle_cast/2, handle_call/3, handle_info/2]).

-define(DELIVERIES, shop_deliveries).
-define(PARCELS, 12).
-define(EVERY_MS, 400).

start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Runs in the parcel's process.
deliver(Parcel) ->
    {ok, Map} = file:read_file(code:which(lists)),
    timer:sleep(3),
    Parcel rem 3 =:= 0 andalso exit({lost, Parcel}),
    {delivered, Parcel, byte_size(Map)}.

init([]) ->
    ?DELIVERIES = ets:new(?DELIVERIES, [named_table]),
    erlang:send_after(?EVERY_MS, self(), next),
    {ok, 1}.

handle_info(next, Parcel) when Parcel > ?PARCELS ->
    {stop, {shutdown, tired}, Parcel};
handle_info(next, Parcel) ->
    {_Pid, _Monitor} = spawn_monitor(?MODULE, deliver, [Parcel]),
    erlang:send_after(?EVERY_MS, self(), next),
    {noreply, Parcel + 1};
handle_info({'DOWN', _, process, _, {lost, Parcel}}, State) ->
    logger:warning("lost: ~p", [{parcel, Parcel}]),
    {noreply, State};
handle_info({'DOWN', _, process, Pid, normal}, State) ->
    true = ets:insert(?DELIVERIES, {Pid, delivered}),
    {noreply, State}.

handle_cast(_, State) -> {noreply, State}.
handle_call(_, _From, State) -> {reply, ok, State}.
