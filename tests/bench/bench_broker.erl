%% SPDX-License-Identifier: Apache-2.0
%% Makes and runs a program with the shape of a message broker: 400 modules with 6,000 functions, 200 processes that
%% send each other messages, and 53 functions that make nine tenths of the calls. A seed decides which functions these
%% are and what each function does. make/2 compiles the program into a directory; the other functions run on a node that
%% has this directory in its code path.
%%
%% A request goes from a connection to a channel, a queue, a store and back. Each of them calls its own tree of hot
%% functions once, and some functions of the many that are seldom called.
-module(bench_broker).
-export([make/2, start/1, go/0, pause/0, done/0, watch/0, calls/0, shares/0, tick/1, ticked/2]).
-export([one/0, some/0, everything/0]).

-define(FUNCTIONS, 15). % of a module
-define(ROOTS, 750). % seldom called functions that a process may call; each calls one more

%% {Group, modules, hot functions, processes}
groups() -> [{conn, 40, 9, 20}, {chan, 30, 18, 60}, {queue, 60, 14, 80}, {store, 70, 12, 40}, {misc, 200, 0, 0}].

%% The bench traces one hot function, 450 functions (a third of the hot ones are among them), or all functions.
one() -> ["am_entry:chan/2"].
some() -> ["am_chan_*:_"].
everything() -> ["am_*_*:_"].

%% ---- making -------------------------------------------------------------------------------------------------------

make(Dir, Seed) ->
    rand:seed(exsss, Seed),
    Hot = [{Group, lists:sublist(shuffled(functions(Group, Modules)), N)} || {Group, Modules, N, _} <- groups()],
    Trees = maps:from_list([Node || {_, Tree} <- Hot, Node <- tree(Tree)]),
    All = lists:append([functions(Group, Modules) || {Group, Modules, _, _} <- groups()]),
    Cold = shuffled([F || F <- All, not is_map_key(F, Trees)]),
    {Roots, Others} = lists:split(?ROOTS, Cold),
    Calls = maps:merge(Trees, maps:from_list(lists:zip(Roots, [[F] || F <- lists:sublist(Others, ?ROOTS)]))),
    Texts = [entry(Hot, Roots) |
        [text(Group, N, Calls, Trees) || {Group, Modules, _, _} <- groups(), N <- lists:seq(0, Modules - 1)]],
    Makers = [spawn_monitor(fun() -> [compiled(Dir, Text) || Text <- Part] end)
        || Part <- parts(erlang:system_info(schedulers_online), Texts)],
    [receive {'DOWN', R, process, P, Why} -> normal = Why end || {P, R} <- Makers],
    ok.

parts(N, List) -> [[X || {I, X} <- lists:enumerate(List), I rem N =:= Part] || Part <- lists:seq(0, N - 1)].

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

functions(Group, Modules) -> functions(Group, 0, Modules - 1).
functions(Group, First, Last) -> [{Group, N, I} || N <- lists:seq(First, Last), I <- lists:seq(0, ?FUNCTIONS - 1)].

%% A binary tree: [{Function, functions that it calls}]. Leaves on the right are called twice.
tree(Functions) ->
    Nodes = list_to_tuple(Functions),
    Child = fun(I) when I =< tuple_size(Nodes) -> [element(I, Nodes)]; (_) -> [] end,
    [{F, Child(2 * I) ++ case 2 * I + 1 of
        Right when 2 * Right > tuple_size(Nodes) -> Child(Right) ++ Child(Right);
        Right -> Child(Right)
    end} || {I, F} <- lists:enumerate(Functions)].

module(Group, N) -> lists:flatten(io_lib:format("am_~s_~3..0b", [Group, N])).

text(Group, N, Calls, Hot) ->
    Names = [["f", integer_to_list(I), "/2"] || I <- lists:seq(0, ?FUNCTIONS - 1)],
    ["-module(", module(Group, N), "). -export([", lists:join(", ", Names), "]). ",
        [function(F, maps:get(F, Calls, []), is_map_key(F, Hot)) || F <- functions(Group, N, N)]].

function({_, _, I}, Called, Hot) ->
    Works = lists:sublist(shuffled(works() ++ [with_fun() || not Hot]), 4),
    Values = [io_lib:format("V~b = ~s, ", [V, Work]) || {V, Work} <- lists:enumerate(Works)],
    Results = [io_lib:format("{ok, R~b} = ~s, ", [R, call(F)]) || {R, F} <- lists:enumerate(Called)],
    Sum = lists:join(" bxor ", [["V", integer_to_list(V)] || {V, _} <- lists:enumerate(Works)]
        ++ [["R", integer_to_list(R)] || {R, _} <- lists:enumerate(Called)]),
    io_lib:format("f~b(X, S) -> ~s~s{ok, (~s) band 16#ffff}. ", [I, Values, Results, Sum]).

%% Work on a request X and a state S = {state, Map, Binary, List}.
works() ->
    ["maps:get(b, (element(2, S))#{b := X}) + map_size(element(2, S))",
     "begin <<A:16, B:32, _/binary>> = element(3, S), (A bxor B) + X end",
     "lists:sum(element(4, S)) + X",
     "length([X | lists:reverse(element(4, S))])",
     "erlang:phash2({X, element(4, S)}, 1000)",
     "element(1, list_to_tuple([X | element(4, S)]))"].

%% The compiler makes a function of the fun. Only functions that are seldom called have one.
with_fun() -> "lists:foldl(fun(Y, Sum) -> Sum + Y end, X, element(4, S))".

call({Group, N, I}) -> io_lib:format("~s:f~b(X, S)", [module(Group, N), I]).

%% The module through which the processes call the others. It is not traced with them, except chan/2.
entry(Hot, Roots) ->
    ["-module(am_entry). -export([conn/2, chan/2, queue/2, store/2, cold/3]). ",
        [io_lib:format("~s(X, S) -> {ok, V} = ~s, V. ", [Group, call(hd(Tree))]) || {Group, Tree = [_ | _]} <- Hot],
        lists:join("; ", [io_lib:format("cold(~b, X, S) -> ~s", [I, call(F)]) || {I, F} <- lists:enumerate(0, Roots)]),
        ". "].

compiled(Dir, Text) ->
    {ok, Module, Code} = compile:forms(forms(lists:flatten(Text)), [nowarn_unused_vars]),
    ok = file:write_file(filename:join(Dir, atom_to_list(Module) ++ ".beam"), Code).

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    forms(Tokens, []).

forms([], []) -> [];
forms([Dot = {dot, _} | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    [Parsed | forms(Rest, [])];
forms([Token | Rest], Form) -> forms(Rest, [Token | Form]).

%% ---- running ------------------------------------------------------------------------------------------------------

%% Loads all modules and starts about so many processes. They wait until go/0.
start(Processes) ->
    [_, _ | _] = Files = filelib:wildcard(filename:join(filename:dirname(code:which(am_entry)), "am_*.beam")),
    [{module, _} = code:ensure_loaded(list_to_atom(filename:basename(File, ".beam"))) || File <- Files],
    Switch = atomics:new(1, []),
    Done = counters:new(1, [write_concurrency]),
    Self = self(),
    register(?MODULE, spawn(fun() ->
        Stores = many(store, Processes, fun(S) -> store(S) end),
        Queues = many(queue, Processes, fun(S) -> queue(S, Stores) end),
        Chans = many(chan, Processes, fun(S) -> chan(S, Queues) end),
        Conns = many(conn, Processes, fun(S) -> conn(S, Chans, Switch, Done, erlang:unique_integer([positive])) end),
        Self ! started,
        broker(tuple_to_list(Conns), Switch, Done)
    end)),
    receive started -> ok end.

many(Group, Processes, Run) ->
    {_, _, _, Of200} = lists:keyfind(Group, 1, groups()),
    N = max(1, Of200 * Processes div 200),
    list_to_tuple([spawn_link(fun() -> Run(state(I)) end) || I <- lists:seq(1, N)]).

state(I) ->
    {state, #{a => I, b => 0, c => queue, d => [], e => <<"topic">>}, binary:copy(<<I:16>>, 30), lists:seq(I, I + 5)}.

broker(Conns, Switch, Done) ->
    receive
        {From, go} -> atomics:put(Switch, 1, 1), [C ! go || C <- Conns], From ! {?MODULE, ok};
        {From, pause} -> atomics:put(Switch, 1, 0), From ! {?MODULE, ok};
        {From, done} -> From ! {?MODULE, counters:get(Done, 1)}
    end,
    broker(Conns, Switch, Done).

go() -> ask(go).
pause() -> ask(pause).
done() -> ask(done). % the requests so far

ask(What) ->
    ?MODULE ! {self(), What},
    receive {?MODULE, Answer} -> Answer end.

%% Keeps four requests on their way.
conn(S, Chans, Switch, Done, X) ->
    receive
        go ->
            conn(S, Chans, Switch, Done, lists:foldl(fun(_, N) -> publish(N, Chans) end, X, lists:seq(1, 4)));
        {confirm, N} ->
            am_entry:conn(N, S),
            N rem 2 =:= 0 andalso cold(N, 1, S),
            counters:add(Done, 1, 1),
            conn(S, Chans, Switch, Done, case atomics:get(Switch, 1) of 1 -> publish(X, Chans); 0 -> X end)
    end.

publish(X, Chans) ->
    pick(X, Chans) ! {publish, self(), X, <<"a message of some forty bytes, like many">>},
    X + 7919.

chan(S, Queues) ->
    receive {publish, Conn, X, Text} ->
        am_entry:chan(X, S),
        cold(X, 2, S),
        pick(X, Queues) ! {enqueue, Conn, X, Text}
    end,
    chan(S, Queues).

queue(S, Stores) ->
    receive {enqueue, Conn, X, Text} ->
        am_entry:queue(X, S),
        cold(X, 3, S),
        pick(X, Stores) ! {store, Conn, X, Text}
    end,
    queue(S, Stores).

store(S) ->
    receive {store, Conn, X, _} ->
        am_entry:store(X, S),
        cold(X, 4, S),
        Conn ! {confirm, X}
    end,
    store(S).

pick(X, Pids) -> element(X rem tuple_size(Pids) + 1, Pids).

cold(X, I, S) -> am_entry:cold(erlang:phash2({X, I}, ?ROOTS), X, S).

%% ---- what is traced -----------------------------------------------------------------------------------------------

%% Counts the calls of trace:function/4 on this node from now on. The process keeps the session alive.
watch() ->
    Self = self(),
    spawn(fun() ->
        register(bench_watch, self()),
        Session = trace:session_create(watch, self(), []),
        trace:function(Session, {trace, function, 4}, true, [call_count]),
        Self ! watched,
        watched(Session)
    end),
    receive watched -> ok end.

watched(Session) ->
    receive {calls, From} ->
        {call_count, N} = trace:info(Session, {trace, function, 4}, call_count),
        From ! {calls, N}
    end,
    watched(Session).

calls() ->
    bench_watch ! {calls, self()},
    receive {calls, N} -> N end.

%% In half a second: {the part of the calls that the 53 most called functions make, how many functions are called}
shares() ->
    Session = trace:session_create(shares, self(), []),
    Modules = [M || M <- erlang:loaded(), lists:prefix("am_", atom_to_list(M)), M =/= am_entry],
    [trace:function(Session, {M, '_', '_'}, true, [call_count]) || M <- Modules],
    timer:sleep(500),
    trace:function(Session, {'_', '_', '_'}, pause, [call_count]),
    Functions = [{M, F, A} || M <- Modules, {F, A} <- M:module_info(functions), hd(atom_to_list(F)) =:= $f],
    Counts = lists:reverse(lists:sort([N || MFA <- Functions,
        {call_count, N} <- [trace:info(Session, MFA, call_count)], is_integer(N), N > 0])),
    trace:session_destroy(Session),
    {lists:sum(lists:sublist(Counts, 53)) / lists:sum(Counts), length(Counts)}.

%% Calls ticked/2 so many times a second from now on.
tick(Rate) ->
    [exit(P, kill) || P <- [whereis(bench_tick)], is_pid(P)],
    Rate =:= 0 orelse spawn(fun() ->
        register(bench_tick, self()),
        timer:send_interval(10, tick),
        ticks(Rate div 100)
    end),
    ok.

ticks(N) ->
    receive tick -> ok end,
    [?MODULE:ticked(I, {some, tuple, [1, 2, 3]}) || I <- lists:seq(1, N)],
    ticks(N).

ticked(I, _) -> I.
