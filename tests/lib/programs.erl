%% SPDX-License-Identifier: Apache-2.0
%% Random programs, for tests that compare what the node answers with a complete recording. A program has two versions of
%% the modules rnd_a, rnd_b and rnd_c. A process has a number, which is the first argument P of each of its calls, so two
%% runs of a program differ only in pids and times. A process makes a bounded number of calls: each call takes one from its
%% fuel, and a call without fuel returns at once.
%%     programs:make(Dir, Seed, Turns)  makes a program, in which a process makes at most 2 * Turns turns of loops
%%     programs:load(Dir, How)          loads the first version. How: "tail", or "deep", which makes the same calls with the
%%                                      same results, but no tail calls, so that the virtual machine reports each result
%%     programs:run(Dir, How)           runs the program, and returns when its processes have ended
%%     programs:unload()                removes it
%%     programs:halts(Dir, How)         runs it, and halts the node: at the instant of the plan, else at the end. The first
%%                                      version is in the path
-module(programs).
-export([make/3, load/2, unload/0, run/2, halts/2]).
%% The programs call these.
-export([spend/0, turns/1, mark/2, child/4, start/4, kill/4, same/1, wrap/1]).

-define(MODULES, [rnd_a, rnd_b, rnd_c]).
-define(FUNCTIONS, [a, b, c, d]).
-define(LOOPS, [l, k]).

%% ---- making ----

make(Dir, Seed, Turns) ->
    rand:seed(exsss, {Seed, Turns, 1}),
    [make_module(Dir, Version, M, Turns) || Version <- ["1", "2"], M <- ?MODULES],
    Fuel = 20 + rand:uniform(Turns * 2),
    Plan = #{fuel => Fuel, turns => 2 * Turns, tops => [call("1", integer_to_list(rand:uniform(6))) || _ <- lists:seq(1, 3 + rand:uniform(4))],
        reload => one_of([{2, none}, {1, {rand:uniform(Fuel), pick(?MODULES)}}]), halt => rand:uniform(Fuel)},
    ok = file:write_file(filename:join(Dir, "plan"), term_to_binary(Plan)).

make_module(Dir, Version, M, Turns) ->
    Text = [io_lib:format("-module(~s).~n-export([a/2, b/2, c/2, d/2, l/2, k/2]).~n", [M]),
        "-ifdef(DEEP).\n-define(TAIL(Call), programs:same(Call)).\n-else.\n-define(TAIL(Call), Call).\n-endif.\n",
        [["\n", function(F, Turns)] || F <- ?FUNCTIONS], [["\n", loop(F)] || F <- ?LOOPS]],
    File = filename:join([Dir, "tail" ++ Version, M]),
    [ok = filelib:ensure_dir(filename:join([Dir, How ++ Version, M])) || How <- ["tail", "deep"]],
    ok = file:write_file(File ++ ".erl", Text),
    {ok, M} = compile:file(File, [{outdir, filename:dirname(File)}]),
    {ok, M} = compile:file(File, [{outdir, filename:join(Dir, "deep" ++ Version)}, {d, 'DEEP'}]).

tail(Call) -> ["?TAIL(", Call, ")"].

function(F, Turns) ->
    Count = rand:uniform(4) - 1,
    [io_lib:format("~s(P, N) ->~n    case programs:spend() of~n    false -> ~s;~n    true ->~n", [F, value()]),
        [["        ", statement(I, Turns), ",\n"] || I <- lists:seq(1, Count)],
        "        ", final(Count, Turns), "\n    end.\n"].

%% A loop takes its turns off N. It may go on in the other module's loop, and do something in each turn.
loop(F) ->
    [io_lib:format("~s(P, N) when N =< 0 -> ~s;~n~s(P, N) ->~n", [F, one_of([{3, fun value/0}, {1, fun() -> tail(call("P", "3")) end}]), F]),
        one_of([{3, ""}, {1, fun() -> ["    X1 = try ", call("P", "N rem 5"), " catch C1:R1 -> {C1, R1} end,\n    programs:wrap(X1),\n"] end},
            {1, "    programs:mark(P, N),\n"}]),
        "    ", tail([one_of([{4, atom_to_list(F)}, {1, fun() -> [pick(["rnd_a:", "rnd_b:", "rnd_c:"]), pick(["l", "k"])] end}]), "(P, N - 1)"]), ".\n"].

statement(I, Turns) ->
    X = io_lib:format("X~b", [I]),
    one_of([
        {6, fun() -> [X, " = ", called(Turns)] end},
        {4, fun() -> io_lib:format("X~b = try ~s catch C~b:R~b -> {C~b, R~b} end", [I, called(Turns), I, I, I, I]) end},
        {1, fun() -> [X, " = try ", called(Turns), " after programs:mark(P, N) end"] end},
        {1, fun() -> [X, " = lists:foldl(fun ", pick(["rnd_a:", "rnd_b:", "rnd_c:"]), pick(["a", "b", "c", "d"]), "/2, N, [P])"] end},
        {2, fun() -> [X, " = programs:mark(P, N)"] end},
        {1, fun() -> [X, " = programs:child(P, ", spawned(), ")"] end},
        {1, fun() -> [X, " = programs:start(P, ", spawned(), ")"] end},
        {1, fun() -> [X, " = programs:kill(P, ", spawned(), ")"] end}]).

final(Count, Turns) ->
    one_of([
        {3, fun value/0},
        {4, fun() -> tail(called(Turns)) end},
        {2 * min(Count, 1), fun() -> io_lib:format("X~b", [rand:uniform(Count)]) end},
        {min(Count, 1), fun() -> io_lib:format("programs:wrap(X~b)", [rand:uniform(Count)]) end},
        {1, "throw({up, N rem 3})"},
        {1, "exit(N rem 3)"},
        {1, "error(fault)"},
        {1, "error({bad, N rem 3})"}]).

value() -> pick(["N", "{ok, N}", "{error, N rem 3}", "leaf", "[N]", "-N", "N * 1.5", "<<N>>", "{P, [N]}", "ok"]).

called(Turns) ->
    one_of([
        {5, fun() -> call("P", number()) end},
        {2, fun() -> io_lib:format("~s~s(P, programs:turns(~b))", [pick(["", "rnd_a:", "rnd_b:", "rnd_c:"]), pick(["l", "k"]), rand:uniform(Turns)]) end}]).

call(P, N) -> io_lib:format("~s:~s(~s, ~s)", [pick(?MODULES), pick(?FUNCTIONS), P, N]).

spawned() -> io_lib:format("~s, ~s, ~s", [pick(?MODULES), pick(?FUNCTIONS), number()]).

number() -> pick(["N", "(N + 1) rem 7", "N * 3 rem 7", "abs(N - 2)", integer_to_list(rand:uniform(6) - 1)]).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

one_of(Weighted) -> one_of(Weighted, rand:uniform(lists:sum([W || {W, _} <- Weighted]))).

one_of([{W, _} | More], At) when At > W -> one_of(More, At - W);
one_of([{_, F} | _], _) when is_function(F, 0) -> F();
one_of([{_, Value} | _], _) -> Value.

%% ---- running ----

load(Dir, How) -> [load(Dir, How, "1", M) || M <- ?MODULES], ok.

load(Dir, How, Version, M) ->
    code:purge(M),
    File = filename:join([Dir, How ++ Version, atom_to_list(M) ++ ".beam"]),
    {ok, Beam} = file:read_file(File),
    {module, M} = code:load_binary(M, File, Beam).

unload() -> [begin code:purge(M), code:delete(M), code:purge(M) end || M <- ?MODULES], ok.

run(Dir, How) -> run(Dir, How, []).

halts(Dir, How) ->
    [{module, M} = code:ensure_loaded(M) || M <- ?MODULES],
    #{halt := At} = plan(Dir),
    run(Dir, How, [{At, halt}]),
    halt(0).

plan(Dir) ->
    {ok, Bin} = file:read_file(filename:join(Dir, "plan")),
    binary_to_term(Bin).

run(Dir, How, Stops) ->
    #{fuel := Fuel, turns := Turns, tops := Tops, reload := Reload} = plan(Dir),
    Calls = [call_of(lists:flatten(Top)) || Top <- Tops],
    Reloads = [{At, {reload, Dir, How, M}} || {At, M} <- [Reload]],
    {_, Ref} = spawn_monitor(fun() -> life(Fuel, Turns, Reloads ++ Stops, 0, fun() -> [caught(M, F, 1, N) || {M, F, N} <- Calls] end) end),
    receive {'DOWN', Ref, process, _, _} -> ok end.

%% "m:f(1, N)"
call_of(Text) ->
    [M, F, "1", N] = string:lexemes(Text, ":(), "),
    {list_to_atom(M), list_to_atom(F), list_to_integer(N)}.

caught(M, F, P, N) -> try M:F(P, N) catch C:R -> {C, R} end.

%% An exit ends the process. Before, its children end.
life(Fuel, Turns, Stops, Children, Does) ->
    put(fuel, Fuel), put(turns, Turns), put(stops, Stops), put(children, Children), put(started, []),
    try Does() catch throw:_ -> ok; error:_ -> ok; exit:R -> join(), exit({over, R}) end,
    join().

join() -> [ended(Child) || Child <- put(started, [])], ok.

ended({_, Ref}) -> receive {'DOWN', Ref, process, _, _} -> ok end.

%% ---- what programs call ----

spend() ->
    case get(fuel) of
        0 -> false;
        Left ->
            put(fuel, Left - 1),
            [stop(What) || {At, What} <- get(stops), At =:= Left],
            true
    end.

%% No other process runs then.
stop({reload, Dir, How, M}) ->
    join(),
    Was = armed(M),
    load(Dir, How, "2", M),
    rearmed(M, Was);
stop(halt) -> join(), halt(0);
stop({block, Who}) -> Who ! {blocked, self()}, receive never -> ok end.

%% Lists the functions of the module that trace sessions of etrace use, and for what.
armed(M) ->
    [{S, F, [Item || Item <- [traced, meta, call_count], {_, Is} <- [trace:info(S, {M, F, 2}, Item)], Is =/= false, Is =/= undefined]}
        || {etrace, _} = S <- trace:session_info(all), F <- ?FUNCTIONS ++ ?LOOPS].

rearmed(M, Was) ->
    case armed(M) of
        Was -> ok;
        _ -> receive after 2 -> rearmed(M, Was) end
    end.

%% As many turns as are left, up to N.
turns(N) ->
    Left = get(turns),
    Turns = min(N, Left),
    put(turns, Left - Turns),
    Turns.

mark(P, N) ->
    self() ! {mark, P, N},
    receive {mark, P, N} -> N end.

child(P, M, F, N) ->
    [ended(Child) || Child <- begun(P, M, F, N, [], 10)],
    spawned.

start(P, M, F, N) ->
    put(started, begun(P, M, F, N, [], 10) ++ get(started)),
    started.

%% The child is killed when it has made as many calls as N says, unless it has ended before.
kill(P, M, F, N) ->
    [receive
        {blocked, Pid} -> exit(Pid, kill), ended(Child);
        {'DOWN', Ref, process, _, _} -> ok
    end || {Pid, Ref} = Child <- begun(P, M, F, N, [{10 - max(0, min(N, 7)), {block, self()}}], 10)],
    killed.

begun(P, M, F, N, Stops, Fuel) ->
    case get(children) of
        K when K < 3, P < 64 ->
            put(children, K + 1),
            Q = 4 * P + K,
            Children = if Stops =:= [] -> 0; true -> 3 end,
            [spawn_monitor(fun() -> life(Fuel, 60, Stops, Children, fun() -> M:F(Q, N) end) end)];
        _ -> []
    end.

same(X) -> X.

%% Bounds what results are made of.
wrap(X) when is_list(X) -> nested;
wrap(X) -> [X].
