%% SPDX-License-Identifier: Apache-2.0
%% The repo of the shop, as a compiled Elixir module would look: modules, structs and exceptions
%% have the form that Elixir gives them. There is no database behind it.
-module('Elixir.Shop.Repo').

-export([get/2, 'get!'/2, all/1]).

%% Shop.Repo.get(Shop.User, 3). Returns nil for an unknown id, and sometimes raises a connection error.
get('Elixir.Shop.User' = Schema, Id) when is_integer(Id) ->
    case rand:uniform(25) of
        1 -> raise('Elixir.Shop.Repo.ConnectionError', <<"connection is closed">>);
        2 -> timer:sleep(3);
        _ -> ok
    end,
    case lists:keyfind(Id, 1, users()) of
        {Id, Name, Hash} -> #{'__struct__' => Schema, id => Id, name => Name, password_hash => Hash};
        false -> nil
    end.

%% Shop.Repo.get!(Shop.User, 99)
'get!'(Schema, Id) ->
    case get(Schema, Id) of
        nil -> raise('Elixir.Shop.Repo.NoResultsError', <<"expected a result, got none">>);
        Struct -> Struct
    end.

all('Elixir.Shop.User' = Schema) ->
    ['get!'(Schema, Id) || {Id, _Name, _Hash} <- users()].

users() ->
    [
        {1, <<"Anna"/utf8>>, <<"$2b$12$Yq0aXr">>},
        {2, <<"Björn"/utf8>>, <<"$2b$12$kP1msZ">>},
        {3, <<"Chloé"/utf8>>, <<"$2b$12$Tn7cEu">>},
        {4, <<"Дмитрий"/utf8>>, <<"$2b$12$Vb4wOi">>}
    ].

raise(Exception, Message) ->
    error(#{'__struct__' => Exception, '__exception__' => true, message => Message}).
