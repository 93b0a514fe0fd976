%% SPDX-License-Identifier: Apache-2.0
%% A customer: regularly buys something, pays, and recommends an item to another customer.
%% The customer's number seeds the random choices, so every shop has the same sequence.
-module(shop_customer).

-export([start_link/3, visit/2, recommend/2]).
-export([init/4]).

start_link(Id, Count, Rate) ->
    proc_lib:start_link(?MODULE, init, [self(), Id, Count, Rate]).

init(Parent, Id, Count, Rate) ->
    true = register(name(Id), self()),
    rand:seed(exsss, Id),
    proc_lib:init_ack(Parent, {ok, self()}),
    %% The shortest interval is 10 ms. For higher rates a customer makes several purchases per interval.
    Every = max(10, 1000 * Count div Rate),
    Purchases = max(1, Rate * Every div (1000 * Count)),
    next_visit(rand:uniform(Every)),
    loop(#{id => Id, others => Count, every => Every, purchases => Purchases, wish => tea}).

loop(#{id := Id, others := Others, every := Every, purchases := Purchases, wish := Wish} = State) ->
    receive
        {recommend, _Friend, Item} ->
            loop(State#{wish := Item});
        visit ->
            next_visit(Every),
            _ = [visit(Id, Wish) || _ <- lists:seq(1, Purchases)],
            recommend(name(rand:uniform(Others)), pick(shop_stock:items())),
            loop(State)
    end.

next_visit(Milliseconds) ->
    erlang:send_after(Milliseconds, self(), visit).

visit(Id, Wish) ->
    case shop_orders:place(account(Id), basket(Wish), coupon(rand:uniform(12))) of
        {ok, #{id := Order, total := Total}} -> shop_orders:charge(Order, Total);
        {error, _Reason} -> refused
    end.

recommend(Friend, Item) ->
    case whereis(Friend) of
        undefined -> away;
        Pid -> Pid ! {recommend, self(), Item}
    end.

%% The shop has four accounts, which the customers share. Sometimes a customer uses a wrong account number.
account(Id) ->
    case rand:uniform(20) of
        1 -> 5;
        _ -> 1 + (Id - 1) rem 4
    end.

basket(Wish) ->
    case rand:uniform(15) of
        1 -> [{unicorn, 1}];
        N when N < 6 -> [{Wish, 1 + N div 3}, {biscuits, 1}];
        _ -> [{Wish, 1}]
    end.

coupon(1) -> <<"SPRING">>;
coupon(2) -> <<"FRIENDS">>;
coupon(3) -> <<"SPRNIG">>;
coupon(_) -> none.

pick(List) ->
    lists:nth(rand:uniform(length(List)), List).

name(1) -> anna;
name(2) -> bjorn;
name(3) -> chloe;
name(4) -> dmitri;
name(N) -> list_to_atom("customer_" ++ integer_to_list(N)).
