%% SPDX-License-Identifier: Apache-2.0
%% Compares programs (nif/program.c) with the match specifications that they implement. etrace compiles random
%% expressions. If the result has a program, the companion's library decides about calls with random arguments. The
%% calls that it counts must be those that the specification matches as a table's specification. A second test gives
%% random steps to the library: it must reject them or run them without a crash. Prints TAP.
%%     program_oracle:main(LangTool, [{Module, Library}], Expressions, Seed)    the last module is for random steps
-module(program_oracle).
-export([main/4]).

-define(CALLS, 32).     % argument lists per expression
-define(PROGRAMS, 900). % per library, because a library keeps all its programs

main(Tool, Nifs, Count, Seed) ->
    rand:seed(exsss, Seed),
    Port = open_port({spawn_executable, Tool}, [binary, use_stdio, exit_status, {line, 1000000}, {args, ["--lines", "--program"]}]),
    {module, target} = code:load_binary(target, "target", target()),
    {Judges, [Wild]} = lists:split(length(Nifs) - 1, Nifs),
    Results = lists:append([judged(Nif, Port, Count div length(Judges)) || Nif <- Judges]),
    Shown = length([x || {same, true} <- Results]),
    Hidden = length([x || {same, false} <- Results]),
    None = length([x || none <- Results]),
    Bad = [B || B = {differs, _, _, _, _} <- Results],
    say(1, Bad =:= [] andalso Shown > Count andalso Hidden > Count andalso None < Count div 2,
        io_lib:format("~w programs decide as their specifications do (OTP ~s)", [Count - None, erlang:system_info(otp_release)])),
    io:format("# ~w calls shown, ~w hidden; ~w expressions have no program~n", [Shown, Hidden, None]),
    [io:format("# ~0tp~n", [B]) || B <- lists:sublist(Bad, 5)],
    {Taken, Refused} = wild(Wild, Count),
    say(2, Taken > Count div 6 andalso Refused > Count div 6, io_lib:format("steps at random: ~w lists run, ~w refused", [Taken, Refused])),
    io:format("1..2~n"),
    halt(0).

say(N, Ok, Text) -> io:format("~s ~w - ~ts~n", [case Ok of true -> "ok"; false -> "not ok" end, N, Text]).

%% Makes a module with functions t1, t2, … of one to four arguments.
target() ->
    L = 1,
    Functions = [{name(I), A} || I <- lists:seq(1, ?CALLS), A <- lists:seq(1, 4)],
    {ok, target, Beam} = compile:forms([{attribute, L, module, target}, {attribute, L, export, Functions} |
        [{function, L, F, A, [{clause, L, [{var, L, '_'} || _ <- lists:seq(1, A)], [], [{atom, L, ok}]}]} || {F, A} <- Functions]]),
    Beam.

name(I) -> list_to_atom("t" ++ integer_to_list(I)).

%% ---- the library in its own session ----

begun({Nif, Library}) ->
    ok = Nif:load(Library),
    {ok, State} = Nif:open({65536, 16, 64, 4, 16, 0, 0, [], 0}),
    [ok = Nif:gate(State, G) || G <- [late, {tally, ?CALLS}]],
    Session = trace:session_create(oracle, {Nif, State}, []),
    Caller = spawn_link(fun caller/0),
    trace:function(Session, {target, '_', '_'}, true, [local]),
    1 = trace:process(Session, Caller, true, [call]),
    {Nif, State, Session, Caller}.

ended({Nif, State, Session, Caller}) ->
    trace:session_destroy(Session),
    unlink(Caller),
    exit(Caller, kill),
    ok = Nif:close(State).

caller() ->
    receive {From, Calls} -> [apply(target, F, Args) || {F, Args} <- Calls], From ! {self(), done} end,
    caller().

%% Returns which calls the library has counted.
shown({Nif, State, _, Caller}, ArgLists) ->
    Caller ! {self(), lists:zip([name(I) || I <- lists:seq(1, length(ArgLists))], ArgLists)},
    receive {Caller, done} -> ok end,
    Counted = [F || {<<"target">>, F} <- functions_of(figures(Nif, State))],
    [lists:member(name(I), Counted) || I <- lists:seq(1, length(ArgLists))].

figures(Nif, State) ->
    case Nif:tally(State, 65536) of
        {done, Frames} -> Frames;
        {more, Frames} -> <<Frames/binary, (figures(Nif, State))/binary>>
    end.

%% The functions of frames of figures (etrace_wire.h). All have a full tick and tracee, and define their function.
functions_of(<<>>) -> [];
functions_of(All = <<Head:32/little, _/binary>>) ->
    Size = Head band 16#fffff - 24,
    <<_:24/binary, Frame:Size/binary, Rest/binary>> = All,
    case Frame of
        <<16#8000:16/little, _, M:16/little, N:16/little, Module:M/binary, Name:N/binary, _/binary>> ->
            [{Module, binary_to_atom(Name)} | functions_of(Rest)];
        _ ->
            functions_of(Rest)
    end.

functions(Arity) -> [{target, name(I), Arity} || I <- lists:seq(1, ?CALLS)].

%% ---- expressions ----

judged(Nif, Port, Count) ->
    It = begun(Nif),
    true = Count =< ?PROGRAMS,
    Results = [judge(It, Port) || _ <- lists:seq(1, Count)],
    ended(It),
    lists:append(Results).

judge(It = {Nif, State, _, _}, Port) ->
    Arity = rand:uniform(3),
    Clauses = [clause(Arity) || _ <- lists:seq(1, rand:uniform(3))],
    case compiled(Port, lists:flatten(["target:t1", lists:join("; ", [text(C) || C <- Clauses])])) of
        {_, none} ->
            [none];
        {Spec, {Least, Most, Steps}} ->
            true = Least =< Arity andalso Arity =< Most,
            Called = case Most > Arity of true -> Arity + rand:uniform(2) - 1; false -> Arity end,
            Functions = functions(Called),
            Functions = lists:reverse(Nif:program(State, Steps, Functions)),
            ArgLists = [args(Clauses, Called) || _ <- Functions],
            Shown = shown(It, ArgLists),
            [] = Nif:program(State, [], Functions),
            [verdict(S, match(Spec, Args), Spec, Args, Steps) || {S, Args} <- lists:zip(Shown, ArgLists)]
    end.

verdict(Same, Same, _, _, _) -> {same, Same};
verdict(Shown, Matches, Spec, Args, Steps) -> {differs, Spec, Args, {shown, Shown, matches, Matches}, Steps}.

match(Spec, Args) ->
    case ms_oracle:run(Spec, Args) of
        no_match -> false;
        {match, [{message, false}]} -> false;
        {match, []} -> true
    end.

compiled(Port, Text) ->
    Port ! {self(), {command, [unicode:characters_to_binary(Text), $\n]}},
    Answer = receive {Port, {data, {eol, Line}}} -> Line end,
    receive {Port, {data, {eol, <<>>}}} -> ok end,
    case Answer of
        <<"ok ", Terms/binary>> ->
            {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Terms) ++ "."),
            {ok, Expr} = erl_parse:parse_exprs(Tokens),
            {value, Term, _} = erl_eval:exprs(Expr, []),
            Term;
        <<"error ", _/binary>> ->
            {refused, none} % it can never match
    end.

%% ---- as text ----

text({Head, Guards, Body}) ->
    [items(Head, "(", ", ...", ")"), case Guards of [] -> ""; _ -> [" when ", lists:join(", ", [expr(G) || G <- Guards])] end,
        case Body of [] -> ""; drop -> " -> drop" end].

items([], Open, _, Close) -> [Open, Close];
items(L, Open, Rest, Close) -> [Open, lists:join(", ", [pattern_text(P) || P <- proper(L)]), case improper(L) of [] -> ""; _ -> Rest end, Close].

proper([H | T]) -> [H | proper(T)];
proper(_) -> [].

improper([_ | T]) -> improper(T);
improper(T) -> T.

pattern_text('_') -> "_";
pattern_text([]) -> "[]";
pattern_text({var, N}) -> ["V", integer_to_list(N)];
pattern_text(L = [_ | _]) -> items(L, "[", [" | ", pattern_text(improper(L))], "]");
pattern_text({tuple, L}) -> ["{", lists:join(", ", [pattern_text(P) || P <- L]), "}"];
pattern_text(M) when is_map(M) -> ["#{", lists:join(", ", [[pattern_text(K), " => ", pattern_text(V)] || {K, V} <- maps:to_list(M)]), "}"];
pattern_text(T) -> io_lib:format("~0tp", [T]).

expr({var, N}) -> ["V", integer_to_list(N)];
expr({const, T}) -> io_lib:format("~0tp", [T]);
expr({'not', G}) -> ["not (", expr(G), ")"];
expr({test, Name, V}) -> [atom_to_list(Name), "(", expr(V), ")"];
expr({op, Op, A, B}) -> [expr(A), " ", atom_to_list(Op), " ", expr(B)];
expr({all, Word, Gs}) -> lists:join([" ", atom_to_list(Word), " "], [["(", expr(G), ")"] || G <- Gs]);
expr(T) -> atom_to_list(T).

%% ---- making them ----

pick(L) -> lists:nth(rand:uniform(length(L)), L).

oneof(Funs) -> (pick(Funs))().

clause(Arity) ->
    put(vars, []),
    Head = patterns(Arity, case rand:uniform(10) of 1 -> '_'; _ -> [] end),
    Guards = [guard(3) || _ <- lists:seq(1, pick([0, 0, 1, 1, 2]))],
    {Head, Guards, case rand:uniform(8) of 1 -> drop; _ -> [] end}.

patterns(0, Tail) -> Tail;
patterns(N, Tail) -> [pattern(2) | patterns(N - 1, Tail)].

pattern(Depth) ->
    Flat = [fun() -> '_' end, fun fresh/0, fun fresh/0, fun() -> key() end, fun() -> pick([0, 1, -1, 2, 10, 1 bsl 59, -(1 bsl 59), 1 bsl 62]) end,
        fun() -> [] end],
    case Depth of
        0 -> oneof(Flat);
        _ -> oneof(Flat ++ [
            fun() -> {tuple, [pattern(Depth - 1) || _ <- lists:seq(1, rand:uniform(4) - 1)]} end,
            fun() -> patterns(rand:uniform(3), pick([[], [], '_', b])) end,
            fun() -> maps:from_list([{key(), pattern(Depth - 1)} || _ <- lists:seq(1, rand:uniform(3) - 1)]) end])
    end.

key() -> pick([a, b, ok, true, false, nil, 'a b', <<>>, <<"ab">>, <<0, 255>>, 3]).

fresh() ->
    Var = {var, length(get(vars)) + 1},
    put(vars, [Var | get(vars)]),
    Var.

guard(Depth) ->
    case {get(vars), Depth} of
        {[], _} -> pick([true, true, false]);
        {Vars, 0} -> test(Vars);
        {Vars, _} -> oneof([fun() -> test(Vars) end, fun() -> test(Vars) end,
            fun() -> {'not', guard(Depth - 1)} end,
            fun() -> {all, pick(['and', 'or']), [guard(Depth - 1), guard(Depth - 1)]} end,
            fun() -> {all, pick(['andalso', 'orelse']), [guard(Depth - 1) || _ <- lists:seq(1, 1 + rand:uniform(2))]} end,
            fun() -> pick([true, false]) end])
    end.

test(Vars) ->
    oneof([
        fun() -> {test, pick([is_atom, is_binary, is_boolean, is_float, is_function, is_integer, is_list, is_map, is_number, is_pid, is_port,
            is_reference, is_tuple]), pick(Vars)} end,
        fun() -> {op, pick(ops()), pick(Vars), {const, constant()}} end,
        fun() -> {op, pick(ops()), pick(Vars), {const, constant()}} end,
        fun() -> {op, pick(ops()), {const, constant()}, pick(Vars)} end]).

ops() -> ['=:=', '=/=', '==', '/=', '<', '=<', '>', '>='].

constant() ->
    oneof([fun() -> pick(numbers()) end, fun() -> key() end, fun() -> pick([[], "ab", [1, 2.0], [a | b], {a, 1}, {}, {a, {1.0, []}}]) end]).

numbers() -> [0, 1, -1, 2, 3, 10, 0.0, -0.0, 1.0, 1.5, -1.0, 1.0e30, 1 bsl 59, (1 bsl 59) - 1, -(1 bsl 59), -(1 bsl 59) - 1, 1 bsl 62, 1 bsl 63,
    1 bsl 64, -(1 bsl 64), 1 bsl 200, 576460752303423488.0, 1.8446744073709552e19].

%% ---- arguments: matching, nearly matching, and arbitrary ones ----

args(Clauses, Arity) ->
    {Head, Guards, _} = pick(Clauses),
    put(near, constants(Guards)),
    lists:sublist(like_list(Head) ++ [any() || _ <- lists:seq(1, Arity)], Arity).

constants({const, T}) -> [T];
constants({_, G}) -> constants(G);
constants({all, _, Gs}) -> constants(Gs);
constants({op, _, A, B}) -> constants(A) ++ constants(B);
constants([G | Gs]) -> constants(G) ++ constants(Gs);
constants(_) -> [].

like_list([H | T]) -> [like(H) | like_list(T)];
like_list(_) -> [].

like(P) ->
    case rand:uniform(10) of
        1 -> any();
        _ -> like_this(P)
    end.

like_this('_') -> any();
like_this([H | T]) -> [like(H) | case T of '_' -> pick([[], [x], any()]); _ -> like_this(T) end];
like_this({var, _}) -> any();
like_this({tuple, L}) -> list_to_tuple([like(E) || E <- L]);
like_this(P) when is_map(P) -> maps:merge(maps:map(fun(_, V) -> like(V) end, P), pick([#{}, #{}, #{x => y, 3 => 4}, #{3.0 => 1, a => 0}]));
like_this(P) when is_integer(P) -> pick([P, P, P, P, P + 1, P - 1, float(P)]);
like_this(P) when is_binary(P) -> pick([P, P, P, P, <<P/binary, 0>>, <<P/bitstring, 1:1>>, part(P)]);
like_this(P) -> P.

%% Makes a sub-binary with the same bytes.
part(B) -> <<_:3, C:(byte_size(B))/binary, _/bitstring>> = <<5:3, B/binary, 1:5>>, C.

any() ->
    case get(near) of
        [_ | _] = Near -> case rand:uniform(2) of 1 -> any_term(); 2 -> close(pick(Near)) end;
        _ -> any_term()
    end.

close(N) when is_integer(N) -> pick([N, N, N + 1, N - 1, float_of(N)]);
close(N) when is_float(N) -> pick([N, N, trunc(N), -N, N + 0.5]);
close(T) -> T.

float_of(N) when N < 1 bsl 300 -> float(N).

any_term() ->
    pick(numbers() ++ [key(), key(), key(), self(), make_ref(), hd(erlang:ports()), fun erlang:self/0, fun() -> N = key(), N end,
        {}, {a, 1}, {a, 1.0}, {a, {1.0, []}}, {ok, key(), [key()]}, "ab", "abc", [a | b], [[]], [1, 2], [1, 2.0], lists:seq(1, 2000), #{}, #{a => 1},
        #{a => 1.0, <<"ab">> => key()}, maps:from_list([{N, N} || N <- lists:seq(1, 100)]), <<1:1>>, <<5:7>>, binary:copy(<<"ab">>, 100),
        list_to_tuple(lists:seq(1, 300)), 1 bsl 100000, -(1 bsl 100000)]).

%% ---- steps at random ----

wild(Nif, Count) ->
    It = begun(Nif),
    Results = [wild_one(It) || _ <- lists:seq(1, Count)],
    ended(It),
    {length([x || true <- Results]), length([x || false <- Results])}.

wild_one(It = {Nif, State, _, _}) ->
    Arity = rand:uniform(4),
    Functions = lists:sublist(functions(Arity), 4),
    N = pick([0, 1, 1, 2, 3, 5, 10, 127, 128, 129]),
    Steps = [wild_step(I, N) || I <- lists:seq(0, N - 1)] ++ pick([[], [], [], [], [], junk, [x]]),
    Taken = Nif:program(State, Steps, Functions),
    _ = shown(It, [[any_term() || _ <- lists:seq(1, Arity)] || _ <- lists:seq(1, 4)]),
    Taken =/= [].

%% Mostly valid kinds of steps.
wild_step(I, N) ->
    Number = fun(Least, Most) ->
        case rand:uniform(200) of 1 -> any_term(); 2 -> pick([-1, 63, 64, 65, 255, 256, N, N + 1, N + 2, 0, I]); _ -> Least + rand:uniform(max(1, Most - Least + 1)) - 1 end
    end,
    Step = {Number(0, 7), Number(0, 2), Number(0, 3), Number(2, 60), Number(I + 1, N + 1), Number(I + 1, N + 1), any_term()},
    case rand:uniform(500) of 1 -> any_term(); 2 -> erlang:append_element(Step, x); _ -> Step end.
