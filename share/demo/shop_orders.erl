%% SPDX-License-Identifier: Apache-2.0
%% Takes orders: finds the customer, computes the price, reserves the items and counts the sales.
%% For a failed order this module catches the exception and replies with an error.
-module(shop_orders).
-behaviour(gen_server).

-export([start_link/0, place/3, charge/2, discount/1, total/2]).
-export([init/1, handle_call/3, handle_cast/2]).

start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

%% Items is a list of {Item, Count}.
place(CustomerId, Items, Coupon) ->
    gen_server:call(?MODULE, {place, CustomerId, Items, Coupon}).

%% One payment in ten is slow. Runs in the customer's process.
charge(OrderId, Cents) when Cents > 0 ->
    OrderId rem 10 =:= 0 andalso timer:sleep(4),
    {paid, OrderId, Cents}.

%% Returns a percentage. An unknown coupon has no clause and raises function_clause.
discount(none) -> 0;
discount(<<"SPRING">>) -> 10;
discount(<<"FRIENDS">>) -> 15.

total(Items, Coupon) ->
    Full = lists:sum([Count * shop_stock:price(Item) || {Item, Count} <- Items]),
    Full * (100 - discount(Coupon)) div 100.

init([]) ->
    {ok, #{next => 1, sold => #{}}}.

handle_call({place, CustomerId, Items, Coupon}, _From, State) ->
    try take(CustomerId, Items, Coupon, State) of
        {Order, NewState} -> {reply, {ok, Order}, NewState}
    catch
        error:Reason -> {reply, {error, Reason}, State}
    end.

handle_cast({refund, Items}, State) ->
    [shop_stock:restock(Item, Count) || {Item, Count} <- Items],
    {noreply, State}.

take(CustomerId, Items, Coupon, #{next := Id, sold := Sold} = State) ->
    #{name := Name} = 'Elixir.Shop.Repo':get('Elixir.Shop.User', CustomerId),
    Total = total(Items, Coupon),
    lists:foreach(fun reserve/1, Items),
    Order = #{id => Id, customer => Name, items => Items, total => Total},
    {Order, State#{next := Id + 1, sold := lists:foldl(fun add/2, Sold, Items)}}.

%% An empty shelf raises badmatch in the caller, after this function has ordered more items.
reserve({Item, Count}) ->
    Reserved = shop_stock:reserve(Item, Count),
    is_tuple(Reserved) andalso element(1, Reserved) =:= error andalso shop_stock:restock(Item, 20),
    {ok, _Left} = Reserved.

add({Item, Count}, Sold) ->
    maps:update_with(Item, fun(N) -> N + Count end, Count, Sold).
