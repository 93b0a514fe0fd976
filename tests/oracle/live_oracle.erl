%% Expressions at random for a live trace. `make` writes rounds of probes, each of a function of its own, with the calls to make and what
%% Erlang or Elixir itself selects of them; `judge` compares that with what etrace showed.
%%     live_oracle:make(LangTool, Dir, Rounds, Probes, Seed)    Dir/elixir may hold cases of elixir_oracle.exs
%%     live_oracle:judge(Dir, Round, JsonFile)
%% A round is gen_N.erl, the module to trace; gen_N.terms, its calls; gen_N.exprs, the probes; gen_N.expected. The calls carry a number as
%% their last argument. One is a message in a round of messages. The process in an argument is the one that self() means: of who makes the
%% cases here, of who calls, sends or receives on the node.
-module(live_oracle).
-export([make/5, judge/3]).

%% Every atom that the expressions may need. The node must have them before it is traced.
-define(ATOMS, [a, b, c, k, s, id, more, seen, 'odd atom', '$gen_call', nil, true, false, ret, 'Elixir.Foo', 'Elixir.Bar', '__struct__', '__exception__',
    'Elixir.Integer']).

make(Tool, Dir, Rounds, Probes, Seed) ->
    rand:seed(exsss, Seed),
    Port = ms_oracle:tool(Tool, []),
    Elixir = case file:read_file(filename:join(Dir, "elixir")) of {ok, Bin} -> binary_to_term(Bin); _ -> [] end,
    lists:foldl(fun(N, Left) ->
        {Mine, Rest} = lists:split(min(Probes div 3, length(Left)), Left),
        Cases = [case rand:uniform(4) of 1 -> where_case(Port); _ -> erlang_case(Port) end || _ <- lists:seq(1, Probes - length(Mine))] ++ Mine,
        write(Dir, N, calls, lists:enumerate(Cases)),
        Rest
    end, Elixir, lists:seq(1, Rounds)),
    [write(Dir, N, Kind, [{1, message_case(Port, Kind)}]) || N <- lists:seq(Rounds + 1, 4 * Rounds), Kind <- [pick([send, recv])]],
    halt(0).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

%% ---- cases: {Surface, Text with ~s for what is called, Arity, [{Arguments, no_match | {match, Shows, Value}}]} ----

erlang_case(Port) -> accepted(Port, rand:uniform(3), fun(Ps) -> ["(", lists:join(", ", Ps ++ ["_"]), ")"] end, "gen:f").
message_case(Port, send) -> accepted(Port, 1, fun([P]) -> ["(_, {", P, ", _})"] end, "send");
message_case(Port, recv) -> accepted(Port, 1, fun([P]) -> ["({", P, ", _})"] end, "recv").

%% The guard stands behind `where`. A condition is not a guard in two cases, which are left out: numbers of more than 64 bits, and
%% and, or, xor where one side fails.
where_case(Port) ->
    Arity = rand:uniform(3),
    {{clause, _, [List], Guards, [Value]}, Ps} = Clause = ms_oracle:clause({call, Arity}),
    Text = ms_oracle:flat(["(", lists:join(", ", [ms_oracle:pp(P) || P <- ms_oracle:list_items(List)] ++ ["_"]), ") -> msg(", ms_oracle:pp(Value), ")",
        [[" where ", ms_oracle:pp(Test)] || [Test] <- Guards]]),
    Strict = re:run(Text, " (and|or|xor) ", [{capture, none}]) =:= match,
    case not Strict andalso [length(G) || G <- Guards] =:= [1] andalso element(1, ms_oracle:ask(Port, ["gen:f" | Text])) of
        ok ->
            {value, Fun, _} = erl_eval:expr({'fun', 1, {clauses, [{clause, 1, [List], Guards, [{tuple, 1, [{integer, 1, 1}, Value]}]}]}}, []),
            {erlang, Text, length(Ps), [{Args, expected(Fun, Args, [msg])} || Args <- ms_oracle:arg_lists([Clause]), length(Args) =:= Arity, not is_large(Args)]};
        _ -> where_case(Port)
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
action(return, Value, "gen" ++ _) -> [" -> return, msg(", ms_oracle:pp(Value), ")"];
action(_, Value, _) -> [" -> msg(", ms_oracle:pp(Value), ")"].

expected(Fun, Args, Actions) ->
    try Fun(Args) of
        {N, Value} ->
            case lists:nth(N, Actions) of drop -> no_match; Action -> {match, Action, Value} end
    catch error:function_clause -> no_match
    end.

%% ---- the files of a round ----

write(Dir, N, Kind, Cases) ->
    Module = "gen_" ++ integer_to_list(N),
    File = fun(Extension) -> filename:join(Dir, Module ++ Extension) end,
    Functions = [io_lib:format("f~w(~s) -> {ret, Id}.~n", [K, lists:join(", ", lists:duplicate(Arity, "_") ++ ["Id"])]) || {K, {_, _, Arity, _}} <- Cases],
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
    All = lists:enumerate([{K, Args, Expected} || {K, {_, _, _, Calls}} <- Cases, {Args, Expected} <- Calls]),
    ok = file:write_file(File(".terms"), term_to_binary([case Kind of
        calls -> {list_to_atom("f" ++ integer_to_list(K)), Args ++ [Id]};
        _ -> {Kind, hd(Args), Id}
    end || {Id, {K, Args, _}} <- All])),
    ok = file:write_file(File(".exprs"), unicode:characters_to_binary([[probe(Kind, Module, K, Case), $\n] || {K, Case} <- Cases])),
    ok = file:write_file(File(".kind"), atom_to_list(Kind)),
    ok = file:write_file(File(".expected"), term_to_binary({Kind, Cases, All})).

probe(calls, Module, K, {erlang, Text, _, _}) -> [Module, ":f", integer_to_list(K), Text];
probe(calls, Module, K, {elixir, {Patterns, Guard, Value}, _, _}) ->
    [":", Module, ".f", integer_to_list(K), "(", [[P, ", "] || P <- Patterns], "_)", Guard, " -> msg(", Value, ")"];
probe(Kind, _, _, {erlang, Text, _, _}) -> [atom_to_list(Kind), Text].

%% ---- judging ----

judge(Dir, N, Json) ->
    {ok, Bin} = file:read_file(filename:join(Dir, "gen_" ++ integer_to_list(N) ++ ".expected")),
    {Kind, Cases, All} = binary_to_term(Bin),
    {ok, Text} = file:read_file(Json),
    Events = [json:decode(Line) || Line <- binary:split(Text, <<"\n">>, [global]), Line =/= <<>>],
    Shown = lists:sort([{Id, event(Event)} || Event <- Events, (Id = id(Kind, Event)) =/= none]),
    Returns = lists:sort([Id || #{<<"type">> := <<"return">>, <<"value">> := <<"{ret,", R/binary>>} <- Events, {Id, _} <- [string:to_integer(R)]]),
    Expected = [{Id, Value} || {Id, {_, _, {match, _, Value}}} <- All],
    Bad = differences(Shown, Expected),
    Owed = [Id || Kind =:= calls, {Id, {_, _, {match, return, _}}} <- All],
    Wrong = [{K, Args, What} || {Id, What} <- lists:sublist(Bad ++ [{Id, no_return} || Id <- Owed -- Returns] ++ [{Id, odd_return} || Id <- Returns -- Owed], 5),
        {_, {K, Args, _}} <- [lists:keyfind(Id, 1, All)]],
    [io:format("~ts~n    args ~0tp~n    ~0tp~n", [probe(Kind, "gen_" ++ integer_to_list(N), K, element(2, lists:keyfind(K, 1, Cases))), Args, What])
        || {K, Args, What} <- Wrong],
    io:format("~w probes, ~w calls, ~w of them shown, ~w differences~n", [length(Cases), length(All), length(Expected), length(Wrong)]),
    halt(case Wrong of [] -> 0; _ -> 1 end).

differences([{Id, Event} | Shown], [{Id, Value} | Expected]) ->
    case Event of
        none -> differences(Shown, Expected); % no message was asked for
        {text, Text} -> [{Id, {shown, Text, wanted, Value}} || not is_text_of(Text, Value)] ++ differences(Shown, Expected)
    end;
differences([{Id, Event} | Shown], [{Later, _} | _] = Expected) when Id < Later -> [{Id, {shown, Event, wanted, nothing}} | differences(Shown, Expected)];
differences(Shown, [{Id, Value} | Expected]) -> [{Id, {not_shown, wanted, Value}} | differences(Shown, Expected)];
differences([{Id, Event} | Shown], []) -> [{Id, {shown, Event, wanted, nothing}} | differences(Shown, [])];
differences([], []) -> [].

id(calls, #{<<"type">> := <<"call">>, <<"args">> := Args}) -> binary_to_integer(lists:last(Args));
id(send, #{<<"type">> := <<"send">>, <<"msg">> := Text}) -> last_number(Text);
id(recv, #{<<"type">> := <<"receive">>, <<"msg">> := Text}) -> last_number(Text);
id(_, _) -> none.

%% The text is {Term,Id}.
last_number(Text) ->
    case re:run(Text, "([0-9]+)}$", [{capture, [1], binary}]) of {match, [Id]} -> binary_to_integer(Id); _ -> none end.

event(#{<<"message">> := Text}) -> {text, Text};
event(_) -> none.

%% As far as Erlang reads the text: it does not read processes.
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
