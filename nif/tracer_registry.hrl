%% SPDX-License-Identifier: Apache-2.0
%% Finds names of processes in registries: Elixir's Registry with unique keys, and global. Both have a table with the
%% pid as its key, so no process is asked. A key of a registry is copied only if it is small: an atom, an integer, a
%% short text, or a tuple of two or three of them.

-define(REGISTRY_LISTED, 10000). % ms that the list of registries is used
-define(REGISTRY_MOST, 32).
-define(REGISTRY_TEXT, 64).      % bytes of a text in a key

%% Returns the name of a process as via tuples have it, or none.
registry_name(P) ->
    case registry_key(global_pid_names, [{P}]) of
        {key, Name} -> registry_text([<<"global,">>, io_lib:format("~0tp", [Name])]);
        none -> registry_name(P, registry_list())
    end.

registry_name(_, []) -> none;
registry_name(P, [{Registry, Partitions, Only} | Rest]) ->
    Table = case Partitions of
        1 -> Only;
        _ -> registry_one(Registry, [{{erlang:phash2(P, Partitions), '_', {'_', '$1'}}, [], ['$1']}])
    end,
    case registry_key(Table, [{P, '_'}, {P, '_', '_'}]) of
        {key, Key} -> registry_text([registry_term(Registry), <<", ">>, registry_term(Key)]);
        none -> registry_name(P, Rest)
    end.

registry_text(Text) -> unicode:characters_to_binary([${, Text, $}]).

%% Returns {key, Key} if a row {Pid, Key, ...} has a small key, else none.
registry_key(none, _) -> none;
registry_key(Table, Rows) ->
    Specs = [{erlang:insert_element(2, Row, Key), [registry_small(V) || V <- Vars], [{{key, Result}}]} ||
        Row <- Rows,
        {Key, Vars, Result} <- [{'$1', ['$1'], '$1'}, {{'$1', '$2'}, ['$1', '$2'], {{'$1', '$2'}}},
            {{'$1', '$2', '$3'}, ['$1', '$2', '$3'], {{'$1', '$2', '$3'}}}]],
    registry_one(Table, Specs).

registry_small(V) ->
    {'orelse', {is_atom, V}, {is_integer, V}, {'andalso', {is_binary, V}, {'=<', {byte_size, V}, ?REGISTRY_TEXT}}}.

%% Returns the result for the first row that matches a pattern. Returns none if there is no such row or no such table.
registry_one(Table, Specs) ->
    try ets:select(Table, Specs, 1) of
        {[Result], _} -> Result;
        _ -> none
    catch error:_ -> none
    end.

%% Returns [{Registry, Partitions, the table of its only partition}]. A registry has a name and a table with this name,
%% whose key -1 has all facts about the registry. Other named tables may be large, so only a set with the key first is
%% looked at.
registry_list() ->
    Now = now_ms(),
    case get(registries) of
        {Until, List} when Now < Until -> List;
        _ ->
            List = lists:sublist([{Name, Partitions, Table} || Name <- registered(), ets:whereis(Name) =/= undefined,
                {ets:info(Name, type), ets:info(Name, keypos)} =:= {set, 1},
                {Kind, Partitions, Table} <- [registry_about(Name)], atom_to_binary(Kind) =:= <<"unique">>], ?REGISTRY_MOST),
            put(registries, {Now + ?REGISTRY_LISTED, List}),
            List
    end.

registry_about(Name) ->
    Row = fun(Pids) -> {-1, {'$1', '$2', '_', Pids, '_'}} end,
    Known = [{is_atom, '$1'}, {is_integer, '$2'}],
    registry_one(Name, [{Row({'_', '$3'}), [{'orelse', {is_atom, '$3'}, {is_reference, '$3'}} | Known], [{{'$1', '$2', '$3'}}]},
        {Row('_'), Known, [{{'$1', '$2', none}}]}]).

%% Returns true if registry_term/1 writes the term, in a short text.
registry_is_small(Tuple, Deep) when is_tuple(Tuple), tuple_size(Tuple) =< 3, Deep > 0 ->
    lists:all(fun(T) -> registry_is_small(T, Deep - 1) end, tuple_to_list(Tuple));
registry_is_small(Term, _) ->
    is_atom(Term) orelse is_integer(Term) andalso abs(Term) < 1 bsl 64 orelse is_binary(Term) andalso byte_size(Term) =< 32 orelse
        Term =:= [] orelse is_pid(Term).

%% Writes a term in Elixir's notation. Only Elixir has these registries.
registry_term(Text) when is_binary(Text) ->
    case unicode:characters_to_list(Text) of
        L when is_list(L) -> [$", [case lists:member(C, "\"\\") of true -> [$\\, C]; false -> C end || C <- L], $"];
        _ -> io_lib:format("~0p", [Text])
    end;
registry_term(Tuple) when is_tuple(Tuple) ->
    [${, lists:join(<<", ">>, [registry_term(T) || T <- tuple_to_list(Tuple)]), $}];
registry_term(Atom) when is_atom(Atom) ->
    case registered_as(Atom) of
        Atom -> [$:, io_lib:format("~0tp", [Atom])];
        Alias -> Alias
    end;
registry_term([]) -> "[]";
registry_term(P) when is_pid(P) -> ["#PID", pid_to_list(P)];
registry_term(Integer) -> integer_to_list(Integer).
