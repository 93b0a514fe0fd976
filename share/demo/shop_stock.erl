%% SPDX-License-Identifier: Apache-2.0
%% Keeps the stock. The prices are in an ETS table that every process reads. The levels are in the
%% state of the server, so two orders never get the same item.
-module(shop_stock).
-behaviour(gen_server).

-export([start_link/0, items/0, price/1, level/1, reserve/2, restock/2, recount/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

-define(PRICES, shop_prices).
-define(SHELF, 25).
-define(RECOUNT_MS, 3000).

start_link() ->
    gen_server:start_link({local, ?MODULE}, ?MODULE, [], []).

items() ->
    [biscuits, coffee, mug, tea, teapot].

%% Returns the price in cents. Raises an error for an unknown item.
price(Item) ->
    case ets:lookup(?PRICES, Item) of
        [{Item, Price}] -> Price;
        [] -> error({unknown_item, Item})
    end.

level(Item) ->
    gen_server:call(?MODULE, {level, Item}).

reserve(Item, Count) ->
    gen_server:call(?MODULE, {reserve, Item, Count}).

restock(Item, Count) ->
    gen_server:cast(?MODULE, {restock, Item, Count}).

recount() ->
    gen_server:call(?MODULE, recount).

init([]) ->
    ?PRICES = ets:new(?PRICES, [named_table, {read_concurrency, true}]),
    true = ets:insert(?PRICES, lists:zip(items(), [250, 890, 1200, 450, 3900])),
    {ok, _} = timer:send_interval(?RECOUNT_MS, recount),
    {ok, maps:from_list([{Item, ?SHELF} || Item <- items()])}.

handle_call({level, Item}, _From, Levels) ->
    {reply, maps:get(Item, Levels, 0), Levels};
handle_call({reserve, Item, Count}, _From, Levels) ->
    case Levels of
        #{Item := Level} when Level >= Count ->
            {reply, {ok, Level - Count}, Levels#{Item := Level - Count}};
        #{Item := Level} ->
            {reply, {error, {out_of_stock, Item, Level}}, Levels}
    end;
handle_call(recount, _From, Levels) ->
    {reply, count(Levels), Levels}.

handle_cast({restock, Item, Count}, Levels) ->
    {noreply, Levels#{Item := maps:get(Item, Levels) + Count}}.

handle_info(recount, Levels) ->
    _ = count(Levels),
    {noreply, Levels}.

%% A slow call: counts the items on the shelves.
count(Levels) ->
    timer:sleep(5),
    lists:sum(maps:values(Levels)).
