%% SPDX-License-Identifier: Apache-2.0
%% Generates random overlapping expressions and random calls, and computes the expected events in plain Erlang.
%%
%% make(Dir, Seed, Functions) writes into Dir:
%%   crossed.erl  the module to be traced, with Functions functions of three arguments; run/0 makes the calls
%%   probes       the expressions, one per line: two to four for each function, and one that selects every tenth
%%   expected     a line for each event: `N call MESSAGE ARGUMENTS CALLER` and `N return` or `N exception`. N is the
%%                number of the call, which is its first argument. MESSAGE lists the matching clause of each expression
%%                by its number, which is above 1000, because a list of letters would be shown as a string.
%%
%% The computation does not use match specifications: each expression becomes an Erlang function with the same heads and
%% guards.
-module(overlap).
-export([make/3]).

-define(CALLS, 20). % for each function
-define(EVERY_TENTH, 9999). % the message of the expression that selects several functions

make(Dir, Seed, Functions) ->
    rand:seed(exsss, {Seed, Seed, Seed}),
    Probes = [{K, [probe(K, N) || N <- lists:seq(1, 1 + rand:uniform(3))]} || K <- lists:seq(1, Functions)],
    Calls = [{K, K * 100 + N, value(), value()} || K <- lists:seq(1, Functions), N <- lists:seq(1, ?CALLS)],
    write(Dir, "crossed.erl", crossed(Functions, Calls)),
    write(Dir, "plainly.erl", plainly(Probes)),
    {ok, plainly, Code} = compile:file(filename:join(Dir, "plainly"), [binary, report_errors]),
    {module, plainly} = code:load_binary(plainly, "plainly", Code),
    write(Dir, "probes", [[io_lib:format("crossed:f*0/3 -> msg(~w)~n", [?EVERY_TENTH])] | [expression(K, P) || {K, Ps} <- Probes, P <- Ps]]),
    write(Dir, "expected", lists:append([expected(Call, length(proplists:get_value(K, Probes))) || Call = {K, _, _, _} <- Calls])).

write(Dir, Name, Text) -> ok = file:write_file(filename:join(Dir, Name), unicode:characters_to_binary(Text)).

%% ---- expressions: {Number, [{Pattern of X, pattern of Y, guard | none, [action]}]} ---------------------------------

probe(K, N) ->
    {N, [clause(1000 + K * 100 + N * 10 + C) || C <- lists:seq(1, rand:uniform(2))]}.

clause(Number) ->
    {X, Bound} = pattern("A"),
    {Y, BoundY} = case rand:uniform(12) of 1 when Bound =/= [] -> {hd(Bound), []}; _ -> pattern("B") end,
    {X, Y, guard(Bound ++ BoundY), case rand:uniform(10) of 1 -> [drop]; _ -> actions(Number) end}.

actions(Number) ->
    [{msg, Number} || rand:uniform(5) > 1] ++ [return || rand:uniform(3) =:= 1] ++ [caller || rand:uniform(4) =:= 1]
        ++ [{args, one([[1], [1, 2], [1, 3]])} || rand:uniform(5) =:= 1].

%% {Text, variables that a guard may test}
pattern(V) ->
    one([{"_", []}, {"_", []}, {"_", []}, {V, [V]}, {V, [V]}, {V, [V]}, {V, [V]}, {V, [V]}, {"_", []}, {V, [V]}, {"a", []}, {"1", []}, {"1.0", []}, {"{a, _}", []}, {["{", V, ", 1}"], [V]},
        {["{", V, ", {", V, "2, _}}"], [V, V ++ "2"]}, {["{", V, ", ", V, "}"], [V]}, {["{_, ", V, "}"], [V]}, {["[", V, " | _]"], [V]},
        {["[1, ", V, "]"], [V]}, {["[_ | ", V, "]"], [V]}, {"[]", []}, {["#{k := ", V, "}"], [V]}, {"#{j := a}", []}, {"#{}", []},
        {"<<\"k\">>", []}, {["{a, _} = ", V], []}, {["#{k := _} = ", V], []}, {["{[", V, "], #{k := ", V, "2}}"], [V, V ++ "2"]}]).

%% Many guards fail for values of another type.
guard([]) -> none;
guard(Bound) ->
    V = one(Bound),
    W = one(Bound),
    case rand:uniform(2) of
        1 -> none;
        2 -> one([[V, " > 1"], [V, " =:= a"], ["is_integer(", V, ")"], [V, " + 1 > 2"], ["element(1, ", V, ") =:= a"], ["hd(", V, ") =:= 1"],
            ["is_tuple(", V, "); is_list(", V, ")"], ["map_get(k, ", V, ") =:= 1"], [V, " =/= b"], [V, " == 1"],
            ["is_atom(", V, ") orelse ", V, " + 1 > 2"], [V, " < ", W], [V, " > 0; ", W, " =:= b"], ["not (", V, " =:= a)"]])
    end.

one(List) -> lists:nth(rand:uniform(length(List)), List).

expression(K, {_, Clauses}) ->
    [Head | Others] = [[["(_, ", X, ", ", Y, ")"], [[" when ", G] || G <- [Guard], G =/= none], text(Actions)] || {X, Y, Guard, Actions} <- Clauses],
    ["crossed:f", integer_to_list(K), Head, [["; ", O] || O <- Others], "\n"].

text([]) -> "";
text(Actions) -> [" -> ", lists:join(", ", [action(A) || A <- Actions])].

action({msg, N}) -> ["msg(", integer_to_list(N), ")"];
action({args, Shown}) -> ["args(", lists:join(",", [integer_to_list(N) || N <- Shown]), ")"];
action(Name) -> atom_to_list(Name).

%% ---- modules ------------------------------------------------------------------------------------------------------

crossed(Functions, Calls) ->
    ["-module(crossed).\n-compile([export_all, nowarn_export_all]).\n",
        [io_lib:format("f~w(N, crash, _) -> error(N);~nf~w(N, _, _) -> N.~n", [K, K]) || K <- lists:seq(1, Functions)],
        "run() ->\n", [io_lib:format("    try crossed:f~w(~w, ~w, ~w) catch error:_ -> ok end,~n", [K, N, X, Y]) || {K, N, X, Y} <- Calls], "    ok.\n"].

plainly(Probes) ->
    ["-module(plainly).\n-compile([export_all, nowarn_export_all]).\n",
        [[[io_lib:format("f~w_~w(_, ~ts, ~ts)~ts -> ~w;~n", [K, N, X, Y, [[" when ", G] || G <- [Guard], G =/= none], Actions])
            || {X, Y, Guard, Actions} <- Clauses], io_lib:format("f~w_~w(_, _, _) -> none.~n", [K, N])] || {K, Ps} <- Probes, {N, Clauses} <- Ps]].

value() ->
    one([a, a, a, b, crash, 1, 1, 2, 5, 1.0, {a, 1}, {b, 1}, {a, a}, {1, {2, 3}}, {a, {b, c}}, {{a, 1}, 1}, [], [1], [1, 2], [1, a], [a | b], <<"k">>,
        #{}, #{k => 1}, #{k => a, j => a}, #{k => #{k => 1}}, {[1], #{k => 1}}, {[a], #{k => 5}}]).

%% ---- what is expected ---------------------------------------------------------------------------------------------

expected({K, N, X, Y}, Probes) ->
    Name = fun(P) -> list_to_atom(lists:flatten(io_lib:format("f~w_~w", [K, P]))) end,
    Every = [[{msg, ?EVERY_TENTH}] || K rem 10 =:= 0],
    case Every ++ [Is || P <- lists:seq(1, Probes), Is <- [plainly:(Name(P))(N, X, Y)], Is =/= none] of
        [] -> [];
        Matching ->
            Dropped = lists:member([drop], Matching),
            Actions = lists:append(Matching),
            [[io_lib:format("~w call ~ts ~ts ~ts~n", [N, message([M || {msg, M} <- Actions]), [shown(At, Matching) || At <- [1, 2, 3]],
                case lists:member(caller, Actions) of true -> "caller"; false -> "-" end]),
                [io_lib:format("~w ~ts~n", [N, case X of crash -> "exception"; _ -> "return" end]) || lists:member(return, Actions)]]
                || not Dropped]
    end.

message([]) -> "-";
message([M]) -> integer_to_list(M);
message(Many) -> ["[", lists:join(",", [integer_to_list(M) || M <- Many]), "]"].

%% An argument is shown if any matching expression shows it.
shown(At, Matching) ->
    case lists:all(fun(Actions) -> case lists:keyfind(args, 1, Actions) of {args, Shown} -> not lists:member(At, Shown); false -> false end end, Matching) of
        true -> $0;
        false -> $1
    end.
