%% SPDX-License-Identifier: Apache-2.0
%% Makes random expressions for a live trace, and checks what etrace showed. `make` writes rounds of cases, each with
%% functions of its own, the calls to make, and the calls that Erlang or Elixir itself selects. `judge` compares these
%% with etrace's output. A case is one expression for one function, or several overlapping expressions for several
%% functions, with alternatives, globs and patterns. If several probes match an event, etrace must show the event once
%% if one of their `where` conditions holds, with the messages of all of them, and with its result if one of them asks
%% for it. A probe that drops hides the event.
%%     live_oracle:make(LangTool, Dir, Rounds, Probes, Seed)    Dir/elixir may hold cases of elixir_oracle.exs
%%     live_oracle:judge(Dir, Round, JsonFile)                  ok, or a text that says what differs
%% A round has the files gen_N.erl, the module to trace; gen_N.terms, the calls; gen_N.exprs, the probes;
%% gen_N.expected. The last argument of a call is its number. In a round of messages each call is a message. A pid in an
%% argument stands for self(): here the process that makes the cases, on the node the process that calls, sends or
%% receives.
-module(live_oracle).
-export([make/5, judge/3]).

%% Every atom that the expressions may need. The node must know them before the trace starts.
-define(ATOMS, [a, b, c, k, s, id, more, seen, 'odd atom', '$gen_call', nil, true, false, ret, 'Elixir.Foo', 'Elixir.Bar', '__struct__', '__exception__',
    'Elixir.Integer']).

make(Tool, Dir, Rounds, Probes, Seed) ->
    rand:seed(exsss, Seed),
    Port = ms_oracle:tool(Tool, []),
    Elixir = case file:read_file(filename:join(Dir, "elixir")) of {ok, Bin} -> binary_to_term(Bin); _ -> [] end,
    lists:foldl(fun(N, Left) ->
        {Mine, Rest} = lists:split(min(Probes div 3, length(Left)), Left),
        Cases = [case rand:uniform(5) of 1 -> where_case(Port); 2 -> several_case(Port, calls); _ -> erlang_case(Port) end
            || _ <- lists:seq(1, Probes - length(Mine))] ++ Mine,
        write(Dir, N, calls, lists:enumerate(Cases)),
        Rest
    end, Elixir, lists:seq(1, Rounds)),
    [write(Dir, N, Kind, [{1, case rand:uniform(2) of 1 -> message_case(Port, Kind); 2 -> several_case(Port, Kind) end}])
        || N <- lists:seq(Rounds + 1, 4 * Rounds), Kind <- [pick([send, recv])]],
    [{ok, _} = compile:file(filename:join(Dir, File), [{outdir, Dir}]) || File <- filelib:wildcard("gen_*.erl", Dir)],
    ok.

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% ---- cases: {Surface, text after the function's name, Arity, [{Arguments, no_match | {match, Shows, Value}}]} ----

erlang_case(Port) -> accepted(Port, rand:uniform(3), fun(Ps) -> ["(", lists:join(", ", Ps ++ ["_"]), ")"] end, "gen:f").
message_case(Port, send) -> accepted(Port, 1, fun([P]) -> ["(_, {", P, ", _})"] end, "send");
message_case(Port, recv) -> accepted(Port, 1, fun([P]) -> ["({", P, ", _})"] end, "recv").

%% Writes the guard as a `where` condition. Numbers of more than 64 bits are left out, because `where` cannot decide them.
where_case(Port) ->
    Arity = rand:uniform(3),
    {{clause, _, [_], Guards, [Value]}, Ps} = Clause = ms_oracle:clause({call, Arity}),
    Text = ms_oracle:flat(["(", lists:join(", ", [ms_oracle:pp(P) || P <- Ps] ++ ["_"]), ") -> msg(", ms_oracle:pp(Value), ")",
        [[" where ", ms_oracle:pp(Test)] || [Test] <- Guards]]),
    case [length(G) || G <- Guards] =:= [1] andalso element(1, ms_oracle:ask(Port, ["gen:f" | Text])) of
        ok ->
            [[Test]] = Guards,
            {erlang, Text, length(Ps), [{Args, case chosen_where(Ps, Test, Value, Args) of {true, V} -> {match, msg, V}; _ -> no_match end}
                || Args <- ms_oracle:arg_lists([Clause]), length(Args) =:= Arity, not is_large(Args)]};
        _ -> where_case(Port)
    end.

%% Returns none | {Whether the condition holds, Value}.
chosen_where(Ps, Test, Value, Args) ->
    try erl_eval:expr({match, 1, list(Ps), {var, 1, 'Args'}}, [{'Args', Args}]) of
        {value, _, Bindings} ->
            {value, V, _} = erl_eval:expr(Value, Bindings),
            {where(Test, Bindings) =:= true, V}
    catch error:{badmatch, _} -> none
    end.

list(Ps) -> lists:foldr(fun(P, T) -> {cons, 1, P, T} end, {nil, 1}, Ps).

%% Evaluates a condition as etrace-expr(7) defines it. It differs from a guard: an operand that fails does not end it.
where({op, _, Or, A, B}, Bs) when Or =:= 'or'; Or =:= 'orelse' ->
    case [V || V <- [where(A, Bs), where(B, Bs)], is_boolean(V)] of
        [] -> failed;
        Known -> lists:member(true, Known)
    end;
where({op, _, And, A, B}, Bs) when And =:= 'and'; And =:= 'andalso' ->
    case where(A, Bs) of
        false -> false;
        true -> case where(B, Bs) of V when is_boolean(V) -> V; _ -> failed end;
        _ -> failed
    end;
where({op, _, Op, A}, Bs) -> where_apply(Op, [A], Bs);
where({op, _, Op, A, B}, Bs) -> where_apply(Op, [A, B], Bs);
where({call, _, {atom, _, F}, Args}, Bs) -> where_apply(F, Args, Bs);
where({tuple, _, Items}, Bs) -> where_made(fun list_to_tuple/1, Items, Bs);
where({cons, _, H, T}, Bs) -> where_made(fun([Head, Tail]) -> [Head | Tail] end, [H, T], Bs);
where(E, Bs) ->
    try erl_eval:expr(E, Bs) of {value, V, _} -> V
    catch error:_ -> failed
    end.

where_apply(F, Args, Bs) -> where_made(fun(Values) -> apply(erlang, F, Values) end, Args, Bs).

where_made(Make, Parts, Bs) ->
    Values = [where(P, Bs) || P <- Parts],
    try lists:member(failed, Values) orelse {made, Make(Values)} of
        true -> failed;
        {made, V} -> V
    catch error:_ -> failed
    end.

is_large(N) when is_integer(N) -> N bsr 63 > 0;
is_large([H | T]) -> is_large(H) orelse is_large(T);
is_large(T) when is_tuple(T) -> is_large(tuple_to_list(T));
is_large(M) when is_map(M) -> is_large(maps:to_list(M));
is_large(_) -> false.

accepted(Port, Arity, Head, Name) ->
    Clauses = [ms_oracle:clause({call, Arity}) || _ <- lists:seq(1, rand:uniform(3))],
    Actions = [pick([msg, msg, msg, plain, return, drop]) || _ <- Clauses],
    Text = lists:join("; ", [[Head([ms_oracle:pp(P) || P <- ms_oracle:list_items(List)]), ms_oracle:when_text(Guards), action(Action, Value, Name)]
        || {{{clause, _, [List], Guards, [Value]}, _}, Action} <- lists:zip(Clauses, Actions)]),
    case ms_oracle:ask(Port, ms_oracle:flat([Name, Text])) of
        {ok, _} ->
            Whole = [{clause, L, [List], Guards, [{tuple, L, [{integer, L, N}, Value]}]}
                || {N, {{clause, L, [List], Guards, [Value]}, _}} <- lists:enumerate(Clauses)],
            {value, Fun, _} = erl_eval:expr({'fun', 1, {clauses, Whole}}, []),
            {erlang, ms_oracle:flat(Text), Arity, [{Args, expected(Fun, Args, Actions)} || Args <- ms_oracle:arg_lists(Clauses), length(Args) =:= Arity]};
        {error, _} -> accepted(Port, Arity, Head, Name)
    end.

action(plain, _, _) -> "";
action(drop, _, _) -> " -> drop";
action(quiet_return, _, _) -> " -> return";
action(return, Value, "gen" ++ _) -> [" -> return, msg(", ms_oracle:pp(Value), ")"];
action(_, Value, _) -> [" -> msg(", ms_oracle:pp(Value), ")"].

expected(Fun, Args, Actions) ->
    try Fun(Args) of
        {N, Value} ->
            case lists:nth(N, Actions) of drop -> no_match; Action -> {match, Action, Value} end
    catch error:function_clause -> no_match
    end.

%% ---- several expressions: {several, [Text], [{Suffix of a function, Arity}], Calls, Met} ----
%%
%% Calls is [{Suffix, Arguments, no_match | {match, Returns, Message}}]. Met is [{Suffix, Arity}]: the functions with a
%% call that several probes match. `etrace explain` has to name them.
%%
%% A probe is {[Suffix] | all, Arity | any, Clauses, Where}. A clause is {Patterns, Guards, Value, Action}; a clause
%% without patterns matches every call. Message is none | {value, Term}. In a text "gen:f" stands for the module and the
%% number of the case.

-define(COMBINED_MOST, 250). % limit of clauses that the tracer sets on one function
-define(SEVERAL_CALLS, 15). % per case: without the library a node sends only a thousand events per second

several_case(Port, Kind) ->
    Functions = case Kind of calls -> [{[$_, C], rand:uniform(3)} || C <- lists:sublist("abc", rand:uniform(3))]; _ -> [{"", 1}] end,
    {Texts, Probes, Sizes} = lists:unzip3([expression(Port, Kind, Functions) || _ <- lists:seq(1, 1 + rand:uniform(3))]),
    All = lists:append(Probes),
    Clauses = [{{clause, 1, [], [], []}, Ps} || {_, _, Cs, _} <- All, {Ps, _, _, _} <- Cs, is_list(Ps)],
    case lists:foldl(fun(N, Product) -> (N + 1) * Product end, 1, lists:append(Sizes)) of
        Most when Most > ?COMBINED_MOST; Clauses =:= [] -> several_case(Port, Kind);
        _ ->
            Lists = ms_oracle:arg_lists(Clauses),
            Made = [{F, Args} || {F, Arity} <- Functions, Args <- Lists, length(Args) =:= Arity,
                not is_large(Args) orelse [W || {_, _, _, W} <- All, W =/= []] =:= []],
            Calls = [{F, Args, [C || P <- All, (C = chosen(P, F, Args)) =/= none]} || {F, Args} <- lists:sublist(shuffled(Made), ?SEVERAL_CALLS)],
            {several, Texts, Functions, [{F, Args, together(Each)} || {F, Args, Each} <- Calls],
                lists:usort([{F, length(Args)} || {F, Args, [_, _ | _]} <- Calls])}
    end.

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

%% Returns {Text, Probes, number of clauses of each specification}.
expression(Port, Kind, Functions) ->
    {Text, Probes} = case Kind of
        calls -> case rand:uniform(5) of 1 -> plain(Functions); N when N < 4 -> alternatives(Functions); _ -> single(Functions) end;
        _ -> message(Kind)
    end,
    case ms_oracle:ask(Port, ms_oracle:flat(Text)) of
        {ok, Specs} -> {ms_oracle:flat(Text), Probes, [case Ms of true -> 1; _ -> length(Ms) end || {_, _, Ms, _} <- Specs]};
        {error, _} -> expression(Port, Kind, Functions)
    end.

%% Whole functions: they match every call.
plain(Functions) ->
    {F, _} = pick(Functions),
    Action = pick([plain, plain, quiet_return]),
    {Selector, Suffixes} = selected(F),
    {[Selector, action(Action, none, "gen:f")], [{Suffixes, any, [{all, [], none, Action}], []}]}.

selected(F) -> pick([{["gen:f", F], [F]}, {["gen:f", F], [F]}, {"gen:f_*", all}]).

single(Functions) ->
    {F, Arity} = pick(Functions),
    {Name, Suffixes} = selected(F),
    {Rest, Clauses, Where} = clauses(Arity, [], 2),
    {[Name, head(hd(Clauses)), Rest], [{Suffixes, Arity, Clauses, Where}]}.

message(Kind) ->
    {Rest, Clauses, _} = clauses(1, [], 2, Kind),
    {[atom_to_list(Kind), head(hd(Clauses), Kind), Rest], [{[""], 1, Clauses, []}]}.

%% The guard, the actions and further clauses follow the last head. They use the variables of the first head, so the
%% other heads bind the same variables with their own arguments. Each further clause has as many patterns as each
%% alternative.
alternatives(Functions) ->
    {Fs, Arities} = lists:unzip([pick(Functions) || _ <- lists:seq(1, 1 + rand:uniform(2))]),
    Arity = hd(Arities),
    Same = lists:usort(Arities) =:= [Arity],
    {Rest, [{Ps, Guards, Value, Action} | More], Where} = clauses(Arity, Arities, if Same -> 2; true -> 1 end),
    Names = lists:usort(variables(Ps)),
    Heads = [Ps | [binding(Names, A) || A <- tl(Arities)]],
    case lists:member(none, Heads) of
        true -> alternatives(Functions);
        false ->
            Probes = [{[F], A, [{P, Guards, Value, Action} | More], Where} || {F, A, P} <- lists:zip3(Fs, Arities, Heads)],
            {Parts, Meant} = written(Probes),
            {[lists:join(" | ", Parts), Rest], Meant}
    end.

%% In one of six texts the first function has no patterns. It then shares the patterns of the second function, and both
%% form one probe.
written(Probes = [_ | Others]) ->
    case {rand:uniform(6), Probes} of
        {1, [{[F], Arity, _, Where}, {[Next], Arity, Second, _} | More]} ->
            {[["gen:f", F] | [part(P) || P <- Others]], [{[F, Next], Arity, Second, Where} | More]};
        _ -> {[part(P) || P <- Probes], Probes}
    end.

part({[F], _, [Clause | _], _}) -> ["gen:f", F, head(Clause)].

%% Returns patterns that bind all these variables, or none if there are too few arguments.
binding(Names, Arity) when length(Names) > Arity -> none;
binding(Names, Arity) ->
    {_, Ps} = ms_oracle:clause({loose, Arity}),
    case Names -- lists:usort(variables(Ps)) of
        [] -> Ps;
        Missing ->
            Kept = lists:nthtail(length(Missing), Ps),
            case Names -- (Missing ++ lists:usort(variables(Kept))) of
                [] -> [{var, 1, V} || V <- Missing] ++ Kept;
                _ -> [{var, 1, V} || V <- Names] ++ [{var, 1, '_'} || _ <- lists:seq(1, Arity - length(Names))]
            end
    end.

variables({var, _, '_'}) -> [];
variables({var, _, V}) -> [V];
variables(T) when is_tuple(T) -> variables(tuple_to_list(T));
variables([H | T]) -> variables(H) ++ variables(T);
variables(_) -> [].

%% Returns {text after the first head, clauses, `where` condition or []}.
clauses(Arity, Arities, Most) -> clauses(Arity, Arities, Most, calls).
clauses(Arity, Arities, Most, Kind) ->
    Clauses = [clause(Arity, Kind) || _ <- lists:seq(1, rand:uniform(Most))],
    {First, More} = {hd(Clauses), tl(Clauses)},
    Bindable = length(lists:usort(variables(element(1, First)))) =< lists:min([Arity | Arities]),
    case {Clauses, rand:uniform(4)} of
        _ when Arities =/= [], not Bindable -> clauses(Arity, Arities, Most, Kind);
        {[{Ps, [Guard], Value, Action}], 1} when Kind =:= calls, length(Guard) =:= 1, Action =/= drop ->
            {[action(Action, Value, "gen:f"), " where ", ms_oracle:pp(hd(Guard))], [{Ps, [], Value, Action}], hd(Guard)};
        _ ->
            Text = fun({_, Guards, Value, Action}) -> [ms_oracle:when_text(Guards), action(Action, Value, name(Kind))] end,
            {[Text(First), [["; ", head(C, Kind), Text(C)] || C <- More]], Clauses, []}
    end.

name(calls) -> "gen:f";
name(_) -> "".

clause(Arity, Kind) ->
    {{clause, _, _, Guards, [Value]}, Ps} = ms_oracle:clause({loose, Arity}),
    {Ps, Guards, Value, pick([msg, msg, msg, plain, drop | [A || Kind =:= calls, A <- [return, quiet_return]]])}.

head(Clause) -> head(Clause, calls).
head({Ps, _, _, _}, calls) -> ["(", lists:join(", ", [ms_oracle:pp(P) || P <- Ps] ++ ["_"]), ")"];
head({[P], _, _, _}, send) -> ["(_, {", ms_oracle:pp(P), ", _})"];
head({[P], _, _, _}, recv) -> ["({", ms_oracle:pp(P), ", _})"].

%% Returns the result of one probe alone: none | {Action, Value, Holds}. Holds is the result of its `where` condition.
chosen({Suffixes, Arity, Clauses, Where}, F, Args) ->
    case (Suffixes =:= all orelse lists:member(F, Suffixes)) andalso (Arity =:= any orelse Arity =:= length(Args)) of
        true -> first(Clauses, Where, Args);
        false -> none
    end.

first([], _, _) -> none;
first([{all, _, _, Action} | _], _, _) -> {Action, none, true};
first([{Ps, Guards, Value, Action} | Rest], [], Args) ->
    {value, Fun, _} = erl_eval:expr({'fun', 1, {clauses, [{clause, 1, [list(Ps)], Guards, [{tuple, 1, [{atom, 1, value}, Value]}]}]}}, []),
    try Fun(Args) of {value, V} -> {Action, V, true}
    catch error:function_clause -> first(Rest, [], Args)
    end;
first([{Ps, [], Value, Action}], Where, Args) ->
    case chosen_where(Ps, Where, Value, Args) of {Holds, V} -> {Action, V, Holds}; none -> none end.

together(Each) ->
    Actions = [A || {A, _, _} <- Each],
    Messages = lists:uniq([V || {A, V, _} <- Each, A =:= msg orelse A =:= return]),
    case lists:member(drop, Actions) orelse not lists:keymember(true, 3, Each) of
        true -> no_match;
        false -> {match, [A || A <- Actions, A =:= return orelse A =:= quiet_return] =/= [],
            case Messages of [] -> none; [V] -> {value, V}; _ -> {value, Messages} end}
    end.

%% ---- the files of a round ----

write(Dir, N, Kind, Cases) ->
    Module = "gen_" ++ integer_to_list(N),
    File = fun(Extension) -> filename:join(Dir, Module ++ Extension) end,
    Functions = [io_lib:format("f~w~s(~s) -> {ret, Id}.~n", [K, F, lists:join(", ", lists:duplicate(Arity, "_") ++ ["Id"])])
        || {K, Case} <- Cases, {F, Arity} <- functions(Case)],
    ok = file:write_file(File(".erl"), ["-module(", Module, ").\n-compile([export_all, nowarn_export_all]).\natoms() -> ", io_lib:format("~0tp", [?ATOMS]), ".\n"
        "load(File) -> {ok, Bin} = file:read_file(File), Calls = binary_to_term(Bin), Me = self(),\n"
        "    register(?MODULE, spawn(fun() -> Sink = spawn(fun sink/0), register(", Module, "_sink, Sink), Me ! loaded, loop(Sink, Calls) end)),\n"
        "    receive loaded -> ok end.\n"
        "loop(Sink, Calls) -> receive {go, From} -> [go(Sink, Call) || Call <- Calls], Sink ! {done, From}, loop(Sink, Calls); stop -> Sink ! stop end.\n"
        "sink() -> receive {done, From} -> From ! done, sink(); stop -> ok; _ -> sink() end.\n"
        "go(Sink, {send, Arg, Id}) -> Sink ! {own(Arg, self()), Id};\n"
        "go(Sink, {recv, Arg, Id}) -> Sink ! {own(Arg, Sink), Id};\n"
        "go(_, {F, Args}) -> apply(?MODULE, F, own(Args, self())).\n"
        "own(T, Pid) when is_pid(T) -> Pid;\n"
        "own([H | T], Pid) -> [own(H, Pid) | own(T, Pid)];\n"
        "own(T, Pid) when is_tuple(T) -> list_to_tuple(own(tuple_to_list(T), Pid));\n"
        "own(T, Pid) when is_map(T) -> maps:from_list(own(maps:to_list(T), Pid));\n"
        "own(T, _) -> T.\n", Functions]),
    All = lists:enumerate([{{K, F}, Args, Expected} || {K, Case} <- Cases, {F, Args, Expected} <- calls(Case)]),
    ok = file:write_file(File(".terms"), term_to_binary([case Kind of
        calls -> {list_to_atom("f" ++ integer_to_list(K) ++ F), Args ++ [Id]};
        _ -> {Kind, hd(Args), Id}
    end || {Id, {{K, F}, Args, _}} <- All])),
    ok = file:write_file(File(".exprs"), unicode:characters_to_binary([[Probe, $\n] || {K, Case} <- Cases, Probe <- probes(Kind, Module, K, Case)])),
    ok = file:write_file(File(".kind"), atom_to_list(Kind)),
    ok = file:write_file(File(".expected"), term_to_binary({Kind, Cases, All})).

functions({several, _, Functions, _, _}) -> Functions;
functions({_, _, Arity, _}) -> [{"", Arity}].

%% Returns [{suffix of the function, Arguments, no_match | {match, Returns, Message}}].
calls({several, _, _, Calls, _}) -> Calls;
calls({_, _, _, Calls}) ->
    [{"", Args, case Expected of
        no_match -> no_match;
        {match, Action, Value} -> {match, Action =:= return, case Action of plain -> none; _ -> {value, Value} end}
    end} || {Args, Expected} <- Calls].

probes(calls, Module, K, {erlang, Text, _, _}) -> [[Module, ":f", integer_to_list(K), Text]];
probes(calls, Module, K, {elixir, {Patterns, Guard, Value}, _, _}) ->
    [[":", Module, ".f", integer_to_list(K), "(", [[P, ", "] || P <- Patterns], "_)", Guard, " -> msg(", Value, ")"]];
probes(_, Module, K, {several, Texts, _, _, _}) -> [string:replace(Text, "gen:f", [Module, ":f", integer_to_list(K)], all) || Text <- Texts];
probes(Kind, _, _, {erlang, Text, _, _}) -> [[atom_to_list(Kind), Text]].

%% ---- judging ----

judge(Dir, N, Json) ->
    {ok, Bin} = file:read_file(filename:join(Dir, "gen_" ++ integer_to_list(N) ++ ".expected")),
    {Kind, Cases, All} = binary_to_term(Bin),
    {ok, Text} = file:read_file(Json),
    Events = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global]), Line =/= <<>>],
    Shown = lists:sort([{Id, event(Event)} || Event <- Events, (Id = id(Kind, Event)) =/= none]),
    Returns = lists:sort([Id || #{<<"type">> := <<"return">>, <<"value">> := <<"{ret,", R/binary>>} <- Events, {Id, _} <- [string:to_integer(R)]]),
    Expected = [{Id, Message} || {Id, {_, _, {match, _, Message}}} <- All],
    Bad = differences(Shown, Expected),
    Owed = [Id || Kind =:= calls, {Id, {_, _, {match, true, _}}} <- All],
    Wrong = [{At, Args, What} || {Id, What} <- Bad ++ [{Id, no_return} || Id <- Owed -- Returns] ++ [{Id, odd_return} || Id <- Returns -- Owed],
        {_, {At, Args, _}} <- [lists:keyfind(Id, 1, All)]],
    Wrongs = [io_lib:format("~ts~n    f~w~s ~0tp~n    ~0tp~n", [lists:join($\n, probes(Kind, "gen_" ++ integer_to_list(N), K, element(2, lists:keyfind(K, 1, Cases)))),
        K, F, Args, What]) || {{K, F}, Args, What} <- lists:sublist(lists:uniq(fun({{K, _}, _, _}) -> K end, Wrong), 5)],
    Unsaid = [{K, Probes, F} || {K, Case = {several, _, _, _, Met}} <- Cases, Kind =:= calls, Met =/= [],
        Probes <- [[unicode:characters_to_list(P) || P <- probes(Kind, "gen_" ++ integer_to_list(N), K, Case)]], F <- unsaid(K, Probes, Met)],
    Unsaids = [io_lib:format("~ts~n    explain does not say that probes meet at f~w~s/~w~n", [lists:join($\n, Probes), K, F, Arity + 1])
        || {K, Probes, {F, Arity}} <- lists:sublist(Unsaid, 3)],
    case Wrongs ++ Unsaids of
        [] -> ok;
        Said -> unicode:characters_to_list([Said, io_lib:format("~w cases, ~w calls, ~w of them shown, ~w differences~n", [length(Cases), length(All), length(Expected), length(Wrong)])])
    end.

%% Returns the functions where probes overlap and that explain does not name. explain names a function by a glob if its
%% probes do.
unsaid(K, Probes, Met) ->
    Port = open_port({spawn_executable, os:getenv("ETRACE_BIN")}, [binary, {line, 100000}, exit_status, stderr_to_stdout, {args, ["explain" | Probes]}]),
    Said = [L || L = <<"  gen_", _/binary>> <- lines(Port)],
    Named = fun({F, Arity}) ->
        Name = io_lib:format("^  gen_[0-9]+:f~w(~s|_\\*)/(~w|_)  probes ", [K, F, Arity + 1]),
        lists:any(fun(L) -> re:run(L, Name, [{capture, none}]) =:= match end, Said)
    end,
    [At || At <- Met, not Named(At)].

lines(Port) ->
    receive
        {Port, {data, {eol, Line}}} -> [Line | lines(Port)];
        {Port, {exit_status, 0}} -> []
    after 20000 -> exit(no_answer)
    end.

differences([{Id, Event} | Shown], [{Id, Wanted} | Expected]) ->
    Right = case {Event, Wanted} of
        {none, none} -> true;
        {{text, Text}, {value, Value}} -> is_text_of(Text, Value);
        _ -> false
    end,
    [{Id, {shown, Event, wanted, Wanted}} || not Right] ++ differences(Shown, Expected);
differences([{Id, Event} | Shown], [{Later, _} | _] = Expected) when Id < Later -> [{Id, {shown, Event, wanted, nothing}} | differences(Shown, Expected)];
differences(Shown, [{Id, Value} | Expected]) -> [{Id, {not_shown, wanted, Value}} | differences(Shown, Expected)];
differences([{Id, Event} | Shown], []) -> [{Id, {shown, Event, wanted, nothing}} | differences(Shown, [])];
differences([], []) -> [].

id(calls, #{<<"type">> := <<"call">>, <<"args">> := Args}) -> binary_to_integer(lists:last(Args));
id(send, #{<<"type">> := <<"send">>, <<"msg">> := Text}) -> last_number(Text);
id(recv, #{<<"type">> := <<"receive">>, <<"msg">> := Text}) -> last_number(Text);
id(_, _) -> none.

%% The text has the form {Term,Id}.
last_number(Text) ->
    case re:run(Text, "([0-9]+)}$", [{capture, [1], binary}]) of {match, [Id]} -> binary_to_integer(Id); _ -> none end.

event(#{<<"message">> := Text}) -> {text, Text};
event(_) -> none.

%% Compares only texts that Erlang can parse: it cannot parse pids.
is_text_of(Text, Value) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list([Text, "."])),
    case erl_parse:parse_exprs(Tokens) of
        {ok, [Expr]} -> {value, Term, _} = erl_eval:expr(Expr, []), Term =:= Value;
        _ -> has_process(Value)
    end.

has_process(T) when is_pid(T); is_reference(T); is_port(T) -> true;
has_process(T) when is_tuple(T) -> has_process(tuple_to_list(T));
has_process(T) when is_map(T) -> has_process(maps:to_list(T));
has_process([H | T]) -> has_process(H) orelse has_process(T);
has_process(_) -> false.
