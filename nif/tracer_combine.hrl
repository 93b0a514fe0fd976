%% SPDX-License-Identifier: Apache-2.0
%% Combines the match specifications of probes that apply to the same function, to all sent messages, or to all received
%% messages. Runs in the worker.
%%
%% The virtual machine keeps one specification for a function and runs the first clause that matches. A combined
%% specification therefore has a clause for each combination of clauses that can match together, with one clause or none
%% of each probe. The combinations are in lexicographic order, "none" last. So the first combination that matches a call
%% consists of the clauses that each probe alone would run, and it has the actions of all these clauses. A clause with
%% `drop` hides the event from every probe, so a combination with such clauses has only the actions of these.
%%
%% A probe that shares no function with others keeps its own specification.
%%
%% The message of an event names its probes: {etrace_probe, Id}, {etrace_probe, Id, Term}, or with several
%% {etrace_probe, {Id, ...}, Term, ...}, where `true` stands for no term.

-define(COMBINED_MOST, 256). % clauses, which the VM tries one after the other at each call

%% Returns fun(Named, Where, [{Id, Specification}]), which returns the specification to set. Named: each event names its
%% probe even if there is only one. Where: {M, F, A} | send | recv.
joins(Request) ->
    Marks = is_map_key(mark, Request),
    fun(Named, Where, Many) -> joined(Named orelse Marks, Where, Many) end.

joined(false, _, [{_, Ms}]) -> Ms;
joined(true, _, [{Id, Ms}]) -> [{Head, Guards, shown([{Id, Body}])} || {Head, Guards, Body} <- clauses(Ms)];
joined(_, Where, Many) -> combined(Where, Many).

%% Returns the specification of each function; functions with the same probes share it.
joined_all(Join, Map, Named) ->
    {Joined, _} = maps:fold(fun(MFA = {_, _, Arity}, Many, {Acc, Known}) ->
        Key = {Arity, Many},
        case Known of
            #{Key := Ms} -> {Acc#{MFA => Ms}, Known};
            _ ->
                Ms = Join(is_map_key(MFA, Named), MFA, Many),
                {Acc#{MFA => Ms}, case Many of [_] -> Known; _ -> Known#{Key => Ms} end}
        end
    end, {#{}, #{}}, Map),
    Joined.

clauses(true) -> [{'_', [], []}];
clauses(Ms) -> Ms.

combined(Where, Many) ->
    Arity = case Where of {_, _, A} -> A; send -> 2; recv -> 3 end,
    Partial = lists:foldl(fun({Id, Ms}, Acc) -> extended(Where, Acc, Id, reached(clauses(Ms), Arity)) end, [{'_', [], []}], Many),
    [{Head, Guards, body(lists:reverse(Chosen))} || {Head, Guards, Chosen = [_ | _]} <- Partial].

%% Returns {the clauses up to the first one that matches every call, true if there is such a clause}.
reached([], _) -> {[], false};
reached([Clause = {Head, Guards, _} | Rest], Arity) ->
    case lists:all(fun(Guard) -> Guard =:= true end, Guards) andalso takes_all(Head, []) andalso fits(Head, Arity) of
        true -> {[Clause], true};
        false ->
            {Clauses, Total} = reached(Rest, Arity),
            {[Clause | Clauses], Total}
    end.

fits([_ | T], Arity) when Arity > 0 -> fits(T, Arity - 1);
fits([], Arity) -> Arity =:= 0;
fits(Tail, _) -> not is_list(Tail).

%% Adds one probe to every combination.
extended(Where, Partial, Id, {Clauses, Total}) ->
    More = lists:flatmap(fun(Before) ->
        pace(),
        lists:flatmap(fun(Clause) -> meeting(Before, Id, Clause) end, Clauses) ++ [Before || not Total]
    end, Partial),
    length(More) > ?COMBINED_MOST andalso throw({overlap, case Where of {_, _, _} -> mfa_text(Where); _ -> atom_to_binary(Where) end, ?COMBINED_MOST}),
    More.

%% Combines a combination and a clause. Returns [the combination that matches if both match], or [] if no call matches
%% both heads.
meeting({Head, Guards, Chosen}, Id, Clause) ->
    {Head2, Guards2, Body} = apart(highest(Head), Clause),
    try both(Head, Head2, []) of
        {Both, Found} ->
            {Values, Tests} = settled(variables_of(Both, []), lists:reverse(Found)),
            Code = fun(T) -> in_code(fun(V) -> maps:get(V, Values, V) end, T) end,
            [{Both, Code(Tests ++ Guards ++ Guards2), [{Id, Code(Body)} | [{I, Code(B)} || {I, B} <- Chosen]]}]
    catch
        throw:exclusive -> []
    end.

%% ---- bodies -------------------------------------------------------------------------------------------------------

body(Chosen) ->
    case [Body || {_, Body} <- Chosen, message_of(Body) =:= false] of
        [] -> shown(Chosen);
        Hiding -> united(Hiding) ++ [{message, false}]
    end.

%% Returns the actions of the chosen clauses, each once, and the message.
shown([{Id, Body}]) ->
    case message_of(Body) of
        none -> Body ++ [{message, {{etrace_probe, Id}}}];
        false -> Body;
        Term -> united([Body]) ++ [{message, {{etrace_probe, Id, Term}}}]
    end;
shown(Chosen) ->
    Terms = [case message_of(Body) of none -> true; Term -> Term end || {_, Body} <- Chosen],
    united([Body || {_, Body} <- Chosen]) ++ [{message, {list_to_tuple([etrace_probe, {list_to_tuple([Id || {Id, _} <- Chosen])} | Terms])}}].

%% Returns the last message of a body, which is the one that counts, or none.
message_of(Body) ->
    case [Term || {message, Term} <- Body] of [] -> none; Terms -> lists:last(Terms) end.

united(Bodies) ->
    lists:foldl(fun(Action, Acc) -> case Action of {message, _} -> Acc; _ -> Acc ++ ([Action] -- Acc) end end, [], lists:append(Bodies)).

%% ---- heads --------------------------------------------------------------------------------------------------------

%% Unifies two heads. Returns {Head, [{is, Variable, Expression} | Guard]}: the list, in reverse order, has the
%% conditions that Head cannot express. If one head has a variable where the other head has a pattern, Head gets the
%% variable, and guards test the pattern.
both('_', B, Found) -> {B, Found};
both(A, '_', Found) -> {A, Found};
both(A, B, Found) ->
    case {is_variable(A), is_variable(B)} of
        {true, true} -> {A, [{is, B, A} | Found]};
        {true, false} -> {A, tests(B, A, Found)};
        {false, true} -> {B, tests(A, B, Found)};
        {false, false} -> parts(A, B, Found)
    end.

parts([A | As], [B | Bs], Found0) ->
    {Head, Found1} = both(A, B, Found0),
    {Tail, Found} = both(As, Bs, Found1),
    {[Head | Tail], Found};
parts(A, B, Found0) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) ->
    {List, Found} = parts(tuple_to_list(A), tuple_to_list(B), Found0),
    {list_to_tuple(List), Found};
parts(A, B, Found) when is_map(A), is_map(B) ->
    maps:fold(fun(Key, Value, {Map, Acc0}) ->
        {Both, Acc} = both(maps:get(Key, Map, '_'), Value, Acc0),
        {Map#{Key => Both}, Acc}
    end, {A, Found}, B);
parts(A, B, Found) when A =:= B -> {A, Found};
parts(_, _, _) -> throw(exclusive).

%% Adds guards that test whether the value of the expression matches the pattern.
tests('_', _, Found) -> Found;
tests(Pattern, At, Found) ->
    case is_variable(Pattern) of
        true -> [{is, Pattern, At} | Found];
        false -> case is_literal(Pattern) of true -> [{'=:=', At, {const, Pattern}} | Found]; false -> inner(Pattern, At, Found) end
    end.

inner([Head | Tail], At, Found) ->
    tests(Tail, {tl, At}, tests(Head, {hd, At}, [{'=/=', At, []}, {is_list, At} | Found]));
inner(Tuple, At, Found) when is_tuple(Tuple) ->
    lists:foldl(fun(N, Acc) -> tests(element(N, Tuple), {element, N, At}, Acc) end,
        [{'=:=', {size, At}, tuple_size(Tuple)}, {is_tuple, At} | Found], lists:seq(1, tuple_size(Tuple)));
inner(Map, At, Found) ->
    maps:fold(fun(Key, Value, Acc) -> tests(Value, {map_get, {const, Key}, At}, [{is_map_key, {const, Key}, At} | Acc]) end,
        [{is_map, At} | Found], Map).

%% Returns true if the pattern matches only itself. A map in a pattern matches other maps, too.
is_literal('_') -> false;
is_literal([H | T]) -> is_literal(H) andalso is_literal(T);
is_literal(T) when is_tuple(T) -> is_literal(tuple_to_list(T));
is_literal(T) -> not is_map(T) andalso not is_variable(T).

%% Returns {#{Variable => Expression}, Guards}. A variable that is no longer in the head gets the expression of its
%% first position as its value.
settled(InHead, Found) ->
    {Values, Tests} = lists:foldl(fun
        ({is, V, At}, {Values, Tests}) ->
            case lists:member(V, InHead) orelse is_map_key(V, Values) of
                true -> {Values, [{'=:=', V, At} | Tests]};
                false -> {Values#{V => At}, Tests}
            end;
        (Test, {Values, Tests}) -> {Values, [Test | Tests]}
    end, {#{}, []}, Found),
    {Values, lists:reverse(Tests)}.

%% ---- variables ----------------------------------------------------------------------------------------------------

%% Renumbers the variables of a clause so that they follow those of other clauses. '$$' becomes the list of the clause's
%% own variables.
apart(Shift, {Head, Guards, Body}) ->
    Own = lists:sort(fun(A, B) -> number(A) =< number(B) end, lists:usort(variables_of(Head, []))),
    Listed = fun('$$') -> Own; (A) -> A end,
    Moved = fun(A) -> case is_variable(A) of true -> numbered(number(A) + Shift); false -> A end end,
    Code = fun(T) -> in_code(Moved, in_code(Listed, T)) end,
    {in_head(Moved, Head), Code(Guards), Code(Body)}.

number(V) -> list_to_integer(tl(atom_to_list(V))).

numbered(N) when N =< ?VARIABLES_MOST -> binary_to_atom(<<$$, (integer_to_binary(N))/binary>>);
numbered(_) -> throw({many_variables, ?VARIABLES_MOST}).

highest(Head) -> lists:max([0 | [number(V) || V <- variables_of(Head, [])]]).

variables_of([H | T], Acc) -> variables_of(T, variables_of(H, Acc));
variables_of(T, Acc) when is_tuple(T) -> variables_of(tuple_to_list(T), Acc);
variables_of(T, Acc) when is_map(T) -> variables_of(maps:values(T), Acc);
variables_of(T, Acc) -> case is_variable(T) of true -> [T | Acc]; false -> Acc end.

%% Replace each atom: in_head/2 in a head, in_code/2 in guards or a body, except inside {const, Term}.
in_head(To, [H | T]) -> [in_head(To, H) | in_head(To, T)];
in_head(To, T) when is_tuple(T) -> list_to_tuple(in_head(To, tuple_to_list(T)));
in_head(To, T) when is_map(T) -> maps:map(fun(_, Value) -> in_head(To, Value) end, T);
in_head(To, T) when is_atom(T) -> To(T);
in_head(_, T) -> T.

in_code(_, {const, T}) -> {const, T};
in_code(To, {T}) when is_tuple(T) -> {list_to_tuple(in_code(To, tuple_to_list(T)))};
in_code(To, [H | T]) -> [in_code(To, H) | in_code(To, T)];
in_code(To, T) when is_tuple(T) -> list_to_tuple(in_code(To, tuple_to_list(T)));
in_code(To, T) when is_map(T) -> maps:from_list([{in_code(To, Key), in_code(To, Value)} || {Key, Value} <- maps:to_list(T)]);
in_code(To, T) when is_atom(T) -> To(T);
in_code(_, T) -> T.
