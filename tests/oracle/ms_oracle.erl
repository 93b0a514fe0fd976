%% SPDX-License-Identifier: Apache-2.0
%% Compares expressions with Erlang itself. It writes random clauses as text, lets etrace compile them, and runs them on
%% random argument lists. It compares the results with
%%   funs      the result of dbg:fun2ms for the same fun: the same clause must match, with the same values in its body
%%   clauses   Erlang's own evaluation of the clauses: all kinds of heads, guards with `;` and `,`
%%   accepted  the specifications of the tables: trace:function, trace:send and trace:recv of this node must accept them
%% match_spec_test never runs a specification: the oracle wraps the heads and runs table specifications, whose bodies
%% only build terms. Prints TAP.
%%     ms_oracle:main(LangTool, TablesDir, Funs, Clauses, Seed)
-module(ms_oracle).
-export([main/5, run/2, tool/2, ask/2, clause/1, arg_lists/1, list_items/1, when_text/1, pp/1, flat/1, target/0, target/1, target/2, target/3]).

main(Tool, Tables, Funs, Clauses, Seed) ->
    rand:seed(exsss, Seed),
    Port = tool(Tool, []),
    compare(1, "clause sets mean what dbg:fun2ms makes of them", Funs, fun() -> fun_case(Port) end),
    compare(2, "clause sets mean what Erlang evaluates", Clauses, fun() -> clause_case(Port) end),
    accepted(3, Tool, Tables),
    io:format("1..3~n"),
    halt(0).

%% The targets of `accepted`: a pattern needs an existing function.
target() -> ok.
target(_) -> ok.
target(_, _) -> ok.
target(_, _, _) -> ok.

%% ---- talking to the compiler ----

tool(Tool, Args) ->
    Otp = "--otp=" ++ erlang:system_info(otp_release),
    open_port({spawn_executable, Tool}, [binary, use_stdio, exit_status, {line, 1000000}, {args, ["--lines", Otp | Args]}]).

ask(Port, Text) ->
    Port ! {self(), {command, [Text, $\n]}},
    answer(Port, []).

answer(Port, Lines) ->
    receive
        {Port, {data, {eol, <<>>}}} -> parse(lists:reverse(Lines));
        {Port, {data, {eol, Line}}} -> answer(Port, [Line | Lines]);
        {Port, {exit_status, Status}} -> exit({lang_tool, Status})
    after 20000 -> exit(no_answer)
    end.

parse([<<"error ", Text/binary>>]) -> {error, Text};
parse([<<"ok ", First/binary>> | Rest]) -> {ok, [term(L) || L <- [First | Rest]]}.

term(Line) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Line)),
    {ok, Expr} = case erl_parse:parse_exprs(Tokens) of
        {ok, [E]} -> {ok, E};
        Wrong -> exit({Wrong, Line})
    end,
    {value, Term, _} = erl_eval:expr(Expr, []),
    Term.

%% ---- running match specifications on argument lists ----

%% The only element of the table's tuple is the argument list, so '$_' becomes element(1, '$_').
run(Spec, Args) ->
    Clauses = [{{Head}, [inner(G) || G <- Guards], [[inner(B) || B <- Body]]} || {Head, Guards, Body} <- Spec],
    try ets:match_spec_compile(Clauses) of
        Compiled ->
            case ets:match_spec_run([{Args}], Compiled) of
                [] -> no_match;
                [Values] -> {match, [V || V <- Values, V =/= true]}
            end
    catch error:badarg -> {refused, Clauses}
    end.

inner('$_') -> {element, 1, '$_'};
inner({const, _} = Const) -> Const;
inner({Action}) when Action =:= return_trace; Action =:= exception_trace -> {const, Action};
inner({message, T}) -> {{message, inner(T)}};
inner(T) when is_tuple(T) -> list_to_tuple([inner(E) || E <- tuple_to_list(T)]);
inner([H | T]) -> [inner(H) | inner(T)];
inner(M) when is_map(M) -> maps:from_list([{inner(K), inner(V)} || {K, V} <- maps:to_list(M)]);
inner(T) -> T.

%% ---- comparing ----

compare(N, Name, Count, Case) ->
    Results = [Case() || _ <- lists:seq(1, Count)],
    Bad = [R || {differs, _} = R <- Results],
    Never = length([never || never <- Results]),
    Skipped = length([skipped || skipped <- Results]),
    Matches = lists:sum([M || {same, M, _} <- Results]),
    Runs = lists:sum([A || {same, _, A} <- Results]),
    io:format("~s ~w - ~w ~s (OTP ~s)~n", [case Bad =:= [] andalso Matches > Count div 2 of true -> "ok"; false -> "not ok" end,
        N, length(Results) - Skipped, Name, erlang:system_info(otp_release)]),
    io:format("# ~w argument lists, ~w of them matched; ~w sets were refused because they always fail~n", [Runs, Matches, Never]),
    [io:format("# ~0tp~n", [D]) || {differs, D} <- lists:sublist(Bad, 5)],
    ok.

judge(Text, Mine, Theirs, ArgLists) ->
    judge(Text, Mine, Theirs, ArgLists, 0, length(ArgLists)).

judge(_, _, _, [], Matches, Runs) -> {same, Matches, Runs};
judge(Text, Mine, Theirs, [Args | Rest], Matches, Runs) ->
    case {Mine(Args), Theirs(Args)} of
        {no_match, no_match} -> judge(Text, Mine, Theirs, Rest, Matches, Runs);
        {Same, Same} when element(1, Same) =:= match -> judge(Text, Mine, Theirs, Rest, Matches + 1, Runs);
        {A, B} -> {differs, {unicode:characters_to_binary(Text), {args, Args}, {etrace, A}, {erlang, B}}}
    end.

%% Checks a rejection: if etrace rejects the whole probe as never matching, Erlang must not match either.
refusal(Text, Error, Clauses, Theirs) ->
    Right = [<<"takes">>, <<"always fails">>, <<"a guard must be a test">>, <<"counted from 1">>, <<"can never match together">>],
    case [R || R <- Right, binary:match(Error, R) =/= nomatch] of
        [] -> {differs, {unicode:characters_to_binary(Text), {etrace, Error}}};
        _ -> refused_rightly(Text, Error, Clauses, Theirs)
    end.

refused_rightly(Text, Error, [{{clause, _, _, Guards, _}, _}] = Clauses, Theirs) when length(Guards) < 2 ->
    %% a failing operand may never be evaluated
    Dead = re:run(Text, "andalso|orelse", [{capture, none}, unicode]) =:= match,
    case [A || not Dead, A <- arg_lists(Clauses), is_match(Theirs(A))] of
        [] -> never;
        [A | _] -> {differs, {unicode:characters_to_binary(Text), {args, A}, {etrace, Error}, {erlang, Theirs(A)}}}
    end;
refused_rightly(_, _, _, _) -> never.

is_match({match, _}) -> true;
is_match(_) -> false.

%% ---- funs against ms_transform ----

fun_case(Port) ->
    Clauses = [clause(fun2ms) || _ <- lists:seq(1, rand:uniform(3))],
    Text = flat(["ms_oracle:target ", pp({'fun', 1, {clauses, [C || {C, _} <- Clauses]}})]),
    case fun2ms([C || {C, _} <- Clauses]) of
        {ok, Theirs} ->
            case ask(Port, Text) of
                {ok, [{call, _, Mine, [local]} | _]} ->
                    judge(Text, fun(A) -> run(full(Mine), A) end, fun(A) -> run(Theirs, A) end, arg_lists(Clauses));
                {error, Error} -> refusal(Text, Error, [], none) %% perhaps because of the body
            end;
        refused -> skipped
    end.

full(true) -> [{'_', [], []}];
full(Spec) -> Spec.

fun2ms(Clauses) ->
    try ms_transform:transform_from_shell(dbg, Clauses, []) of
        Spec when is_list(Spec) -> {ok, Spec};
        _ -> refused
    catch _:_ -> refused
    end.

%% ---- clauses against Erlang ----

clause_case(Port) ->
    Arity = rand:uniform(3),
    Clauses = [clause({call, Arity}) || _ <- lists:seq(1, rand:uniform(3))],
    Text = flat(["ms_oracle:target", lists:join("; ", [own(C) || {C, _} <- Clauses])]),
    {value, Fun, _} = erl_eval:expr({'fun', 1, {clauses, [whole(C) || {C, _} <- Clauses]}}, []),
    case ask(Port, Text) of
        {ok, [{call, _, Mine, [local]} | _]} ->
            Many = length(Clauses) > 1,
            judge(Text, fun(A) -> mine(run(full(Mine), A), Many) end, fun(A) -> evaluated(Fun, A) end, arg_lists(Clauses));
        {error, Error} -> refusal(Text, Error, Clauses, fun(A) -> evaluated(Fun, A) end)
    end.

%% Writes a clause in etrace's syntax: (P, …) when G -> msg({V, …}).
own({clause, _, [Head], Guards, [Value]}) ->
    [_ | _] = Ps = lists:join(", ", [pp(P) || P <- list_items(Head)]),
    ["(", Ps, ")", when_text(Guards), " -> msg(", pp(Value), ")"].

when_text([]) -> "";
when_text(Guards) -> [" when ", lists:join("; ", [lists:join(", ", [pp(T) || T <- G]) || G <- Guards])].

list_items({cons, _, H, T}) -> [H | list_items(T)];
list_items({nil, _}) -> [].

whole({clause, L, [Head], Guards, [Value]}) -> {clause, L, [Head], Guards, [{tuple, L, [{atom, L, value}, Value]}]}.

evaluated(Fun, Args) ->
    try Fun(Args) of
        {value, V} -> {match, V}
    catch
        error:function_clause -> no_match;
        error:_ -> body_failed
    end.

%% The pack is {User} or {Clause, User}. A body that raises gives 'EXIT' on both sides.
mine({match, [{message, {_, V}}]}, true) -> value(V);
mine({match, [{message, {V}}]}, false) -> value(V);
mine({match, [{message, V}]}, false) -> value(V);
mine(Other, _) -> Other.

value(V) -> {match, V}.

%% ---- making clauses ----

%% Returns {Clause, Patterns}: a clause of a fun with one argument, the argument list. {loose, N}: half of the N
%% patterns are variables.
clause(Kind) ->
    erase(vars),
    put(vars, []),
    Arity = case Kind of {_, N} -> N; _ -> rand:uniform(3) end,
    Ps = [case {Kind, rand:uniform(2)} of {{loose, _}, 1} -> bind(var()); _ -> pattern(2, Kind) end || _ <- lists:seq(1, Arity)],
    List = lists:foldr(fun(P, T) -> {cons, 1, P, T} end, {nil, 1}, Ps),
    Head = case {Kind, rand:uniform(8)} of
        {fun2ms, 1} -> put(vars, ['All' | get(vars)]), {match, 1, {var, 1, 'All'}, List};
        {fun2ms, 2} -> put(vars, ['All' | get(vars)]), {match, 1, List, {var, 1, 'All'}};
        _ -> List
    end,
    Guards = case rand:uniform(6) of
        1 -> [];
        2 -> [[test(2), test(2)]];
        3 -> [[test(2)], [test(1)]];
        4 -> [[test(2), test(1)], [test(2)], [test(1)]];
        _ -> [[test(3)]]
    end,
    Body = case Kind of
        fun2ms -> [pick([{call, 1, {atom, 1, message}, [value_expr(2)]}, value_expr(1), {call, 1, {atom, 1, return_trace}, []}])
                   || _ <- lists:seq(1, rand:uniform(2))];
        _ -> [safe_value()]
    end,
    {{clause, 1, [Head], Guards, Body}, Ps}.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

var() -> pick(['A', 'B', 'C', 'D']).

bind(V) -> put(vars, lists:usort([V | get(vars)])), {var, 1, V}.

pattern(0, _) ->
    case rand:uniform(10) of
        1 -> {var, 1, '_'};
        N when N < 6 -> bind(var());
        _ -> literal()
    end;
pattern(Depth, Kind) ->
    Sub = fun() -> pattern(Depth - 1, Kind) end,
    case rand:uniform(18) of
        1 -> {tuple, 1, [Sub() || _ <- lists:seq(1, rand:uniform(3))]};
        2 -> {cons, 1, Sub(), Sub()};
        3 -> {cons, 1, Sub(), {nil, 1}};
        4 -> {cons, 1, Sub(), {cons, 1, Sub(), tail(Depth - 1, Kind)}};
        5 -> {map, 1, [{map_field_exact, 1, K, Sub()} || K <- keys()]};
        6 -> {string, 1, "ab"};
        7 when Kind =/= fun2ms -> {op, 1, '++', {string, 1, pick(["a", "ab"])}, tail(0, Kind)};
        8 when Kind =/= fun2ms -> alias(Depth, Kind);
        9 when Kind =/= fun2ms -> binary();
        10 when Kind =/= fun2ms -> binary();
        11 -> {tuple, 1, []};
        _ -> pattern(0, Kind)
    end.

tail(Depth, Kind) ->
    case rand:uniform(4) of
        1 -> {nil, 1};
        2 -> {var, 1, '_'};
        3 -> bind(var());
        _ -> pattern(max(Depth, 0), Kind)
    end.

%% Makes V = P or P = V. The variable is new: for a bound variable Erlang's own reading is the same.
alias(Depth, Kind) ->
    P = pattern(Depth - 1, Kind),
    V = bind(pick(['X', 'Y'])),
    pick([{match, 1, V, P}, {match, 1, P, V}]).

binary() ->
    Type = pick([default, [binary], [bytes]]),
    Rest = case {Type, rand:uniform(2)} of
        {default, _} -> [];
        {_, 1} -> [{bin_element, 1, {var, 1, '_'}, default, Type}];
        _ -> [{bin_element, 1, bind(pick(['R', 'S'])), default, Type}]
    end,
    Front = case rand:uniform(3) of
        1 -> [];
        2 -> [{bin_element, 1, {var, 1, '_'}, {integer, 1, rand:uniform(2)}, [binary]}];
        _ -> [{bin_element, 1, bind(pick(['T', 'U'])), {integer, 1, rand:uniform(2)}, [binary]}]
    end,
    {bin, 1, Front ++ [{bin_element, 1, pick([{string, 1, "a"}, {string, 1, "GET"}, {integer, 1, $b}]), default, default}] ++ Rest}.

keys() ->
    All = [{atom, 1, a}, {atom, 1, b}, {integer, 1, 1}, {string, 1, "k"}],
    [K || K <- All, rand:uniform(3) =:= 1].

literal() ->
    pick([{atom, 1, a}, {atom, 1, b}, {atom, 1, true}, {atom, 1, false}, {integer, 1, 0}, {integer, 1, 1}, {integer, 1, 2},
        {integer, 1, rand:uniform(300)}, {float, 1, 1.0}, {float, 1, 2.5}, {nil, 1}, {string, 1, "ab"}, {char, 1, $a},
        {bin, 1, [{bin_element, 1, {string, 1, "ab"}, default, default}]}, {atom, 1, 'odd atom'}, {atom, 1, '$gen_call'}]).

%% Makes a boolean expression of the bound variables.
test(Depth) when Depth =< 0 ->
    case rand:uniform(8) of
        1 -> {atom, 1, pick([true, false])};
        2 -> bound(literal());
        N when N < 6 -> {op, 1, pick(['<', '>', '=<', '>=', '==', '/=', '=:=', '=/=']), number(0), number(0)};
        _ -> {call, 1, {atom, 1, pick([is_atom, is_float, is_integer, is_list, is_number, is_pid, is_tuple, is_map, is_binary,
            is_function, is_reference, is_port])}, [bound(literal())]}
    end;
test(Depth) ->
    case rand:uniform(9) of
        1 -> {op, 1, 'not', test(Depth - 1)};
        2 -> {op, 1, 'andalso', test(Depth - 1), test(Depth - 1)};
        3 -> {op, 1, 'orelse', test(Depth - 1), test(Depth - 1)};
        4 -> {op, 1, pick(['and', 'or', 'xor']), test(Depth - 1), test(Depth - 1)};
        5 -> {op, 1, pick(['==', '/=', '=:=', '=/=', '<', '>']), any(Depth - 1), any(Depth - 1)};
        6 -> {op, 1, pick(['<', '>', '=<', '>=', '==', '=:=']), number(Depth - 1), number(Depth - 1)};
        7 -> {call, 1, {atom, 1, is_map_key}, [literal(), bound({map, 1, []})]};
        _ -> test(0)
    end.

%% Returns a bound variable in most cases, otherwise Else.
bound(Else) ->
    case get(vars) of
        [] -> Else;
        Vars ->
            case rand:uniform(6) of
                1 -> Else;
                _ -> {var, 1, pick(Vars)}
            end
    end.

number(0) -> bound({integer, 1, rand:uniform(5)});
number(Depth) ->
    case rand:uniform(12) of
        1 -> {op, 1, pick(['+', '-', '*']), number(Depth - 1), number(Depth - 1)};
        2 -> {op, 1, pick(['div', 'rem', 'band', 'bor', 'bxor']), number(Depth - 1), {integer, 1, rand:uniform(5)}};
        3 -> {op, 1, '-', number(Depth - 1)};
        4 -> {op, 1, '/', number(Depth - 1), {integer, 1, rand:uniform(4)}};
        5 -> {call, 1, {atom, 1, pick([abs, round, trunc, float])}, [number(Depth - 1)]};
        6 -> {call, 1, {atom, 1, length}, [bound({nil, 1})]};
        7 -> {call, 1, {atom, 1, pick([size, map_size, bit_size])}, [bound(literal())]};
        8 -> {op, 1, 'bnot', number(Depth - 1)};
        9 -> {op, 1, pick(['bsl', 'bsr']), number(Depth - 1), {integer, 1, rand:uniform(3)}};
        _ -> number(0)
    end.

any(0) -> bound(literal());
any(Depth) ->
    case rand:uniform(10) of
        1 -> {tuple, 1, [any(Depth - 1) || _ <- lists:seq(1, rand:uniform(2))]};
        2 -> {cons, 1, any(Depth - 1), pick([{nil, 1}, any(Depth - 1)])};
        3 -> {call, 1, {atom, 1, pick([hd, tl])}, [bound({string, 1, "ab"})]};
        4 -> {call, 1, {atom, 1, element}, [{integer, 1, rand:uniform(2)}, bound({tuple, 1, [{atom, 1, a}, {atom, 1, b}]})]};
        5 -> {call, 1, {atom, 1, map_get}, [literal(), bound({map, 1, []})]};
        6 -> {call, 1, {atom, 1, pick([self, node])}, []};
        7 -> number(Depth - 1);
        _ -> bound(literal())
    end.

value_expr(Depth) -> any(Depth).

%% The value of a clause: it contains every variable, so that a wrong binding becomes visible.
safe_value() -> {tuple, 1, [{var, 1, V} || V <- get(vars)] ++ [{atom, 1, seen}]}.

%% ---- arguments ----

arg_lists(Clauses) ->
    lists:append([[mutate([instance(P, [], 3) || P <- Ps]) || _ <- lists:seq(1, 6)] || {_, Ps} <- Clauses])
        ++ [[random(2) || _ <- lists:seq(1, rand:uniform(3))] || _ <- lists:seq(1, 3)].

mutate(Args) ->
    case rand:uniform(4) of
        1 ->
            N = rand:uniform(length(Args)),
            lists:sublist(Args, N - 1) ++ [random(2)] ++ lists:nthtail(N, Args);
        2 when length(Args) > 1 -> %% equal arguments, for variables that occur twice
            [hd(Args) | [pick([hd(Args), A]) || A <- tl(Args)]];
        _ -> Args
    end.

%% Makes a term that matches the pattern, unless a variable occurs twice.
instance({var, _, _}, _, D) -> random(min(D, 2));
instance({tuple, _, Ps}, B, D) -> list_to_tuple([instance(P, B, D) || P <- Ps]);
instance({cons, _, H, T}, B, D) -> [instance(H, B, D) | instance_tail(T, B, D)];
instance({nil, _}, _, _) -> [];
instance({string, _, S}, _, _) -> S;
instance({map, _, Fields}, B, D) ->
    More = case rand:uniform(2) of 1 -> #{more => 1}; _ -> #{} end,
    maps:merge(More, maps:from_list([{erl_parse:normalise(K), instance(V, B, D)} || {_, _, K, V} <- Fields]));
instance({match, _, {var, _, _}, P}, B, D) -> instance(P, B, D);
instance({match, _, P, {var, _, _}}, B, D) -> instance(P, B, D);
instance({op, _, '++', L, T}, B, D) -> erl_parse:normalise(L) ++ instance_tail(T, B, D);
instance({bin, _, Segs}, _, _) -> iolist_to_binary([segment(S) || S <- Segs]);
instance(Literal, _, _) -> erl_parse:normalise(Literal).

instance_tail({var, _, _}, _, _) -> pick([[], [1], "b", [a | b]]);
instance_tail(P, B, D) -> instance(P, B, D).

segment({bin_element, _, {var, _, _}, {integer, _, N}, _}) -> lists:duplicate(N, $b);
segment({bin_element, _, {var, _, _}, default, _}) -> pick([<<>>, <<"x">>, <<"rest">>]);
segment({bin_element, _, {string, _, S}, default, _}) -> S;
segment({bin_element, _, {integer, _, I}, default, _}) -> [I].

random(0) ->
    pick([a, b, true, false, 0, 1, 2, 3, -1, rand:uniform(300), 1.0, 2.5, 0.5, [], "ab", "abc", <<>>, <<"ab">>, <<"a">>,
        <<"GETx">>, <<"xab">>, <<5:3>>, <<"ab", 1:2>>, self(), 'odd atom', '$gen_call', 1 bsl 70, $a]);
random(Depth) ->
    case rand:uniform(8) of
        1 -> list_to_tuple([random(Depth - 1) || _ <- lists:seq(1, rand:uniform(3))]);
        2 -> [random(Depth - 1) || _ <- lists:seq(1, rand:uniform(3))];
        3 -> [random(Depth - 1) | random(Depth - 1)];
        4 -> maps:from_list([{pick([a, b, 1, "k", more]), random(Depth - 1)} || _ <- lists:seq(1, rand:uniform(3))]);
        5 -> {};
        _ -> random(0)
    end.

%% ---- what the tables say, given to this node ----

accepted(N, Tool, Dir) ->
    Files = filelib:wildcard(filename:join(Dir, "[1-4]*.test")),
    Port = tool(Tool, ["--unsafe"]),
    Exprs = lists:append([expressions(F) || F <- Files]),
    Results = [accept(Port, E) || E <- Exprs],
    Given = length([R || R <- Results, R =/= skipped]),
    Bad = [R || {bad, _} = R <- Results],
    io:format("~s ~w - ~w specifications of the tables are accepted by OTP ~s~n",
        [case Bad =:= [] andalso Given > 300 of true -> "ok"; false -> "not ok" end, N, Given, erlang:system_info(otp_release)]),
    [io:format("# ~0tp~n", [B]) || {bad, B} <- Bad],
    ok.

expressions(File) ->
    {ok, Bin} = file:read_file(File),
    [L || [<<C, _/binary>> = L | _] <- blocks(binary:split(Bin, <<"\n">>, [global])), C =/= $#, C =/= $%, C =/= $<].

blocks(Lines) ->
    {Block, Rest} = lists:splitwith(fun(L) -> L =/= <<>> end, Lines),
    case Rest of
        [] -> [Block];
        [_ | More] -> [Block | blocks(More)]
    end.

accept(Port, Text) ->
    try ask(Port, Text) of
        {ok, Specs} -> lists:foldl(fun(S, skipped) -> give(Text, S); (_, R) -> R end, skipped, Specs);
        {error, _} -> skipped %% the oracle does not pass the options of the block
    catch error:{badmatch, _} -> skipped; exit:{_, _} -> skipped %% pids and similar terms cannot be parsed
    end.

give(Text, {Kind, {_, _, Arity}, Spec, Flags}) when Kind =/= event ->
    try arm(Kind, Arity, Spec, Flags) of
        _ -> ok
    catch _:Reason -> {bad, {Text, Reason, Spec}}
    end;
give(_, _) -> skipped.

%% On OTP 27 and newer the patterns belong to a session, on older ones to the node. OTP 29 and newer accept improper
%% heads.
arm(call, Arity, Spec, Flags) ->
    Improper = is_list(Spec) andalso lists:any(fun({H, _, _}) -> is_list(H) andalso not is_proper(H) end, Spec),
    A = case Arity of N when is_integer(N), N =< 3 -> N; _ -> '_' end,
    case Improper andalso release() < 29 of
        true -> skipped;
        false -> pattern({?MODULE, target, A}, Spec, [F || F <- Flags, lists:member(F, [local, global])])
    end;
arm(Kind, _, Spec, []) ->
    pattern(case Kind of send -> send; recv -> 'receive' end, Spec, []).

is_proper(L) -> try length(L) of _ -> true catch error:badarg -> false end.

release() -> list_to_integer(erlang:system_info(otp_release)).

pattern(What, Spec, Flags) ->
    case release() >= 27 of
        false -> true = is_integer(erlang:trace_pattern(What, Spec, Flags));
        true ->
            Session = trace:session_create(oracle, self(), []),
            Result = case What of
                send -> trace:send(Session, Spec, []);
                'receive' -> trace:recv(Session, Spec, []);
                MFA -> trace:function(Session, MFA, Spec, Flags)
            end,
            trace:session_destroy(Session),
            true = is_integer(Result)
    end.

%% ---- text ----

pp(Expr) -> erl_pp:expr(Expr, [{encoding, unicode}]).

flat(Text) -> [case C of $\n -> $\s; _ -> C end || C <- unicode:characters_to_list(Text)].
