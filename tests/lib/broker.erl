%% SPDX-License-Identifier: Apache-2.0
%% Makes a large program: hundreds of modules that are alike. Each module has fifteen functions; the compiler adds one
%% for a list comprehension and one for a fun.
-module(broker).

-export([load/1, reload/1, unload/1, busy/1, calm/0, functions/1]).
-export([watch/0, calls/0, unwatch/0]).

-define(FUNCTIONS, 15).

%% Loads made_000, made_001 and so on. The code is compiled once; each copy gets its own module name in place of
%% made_000.
load(Modules) ->
    Code = code(),
    lists:foreach(fun(N) -> {module, _} = load(N, Code) end, lists:seq(0, Modules - 1)).

%% Deletes and loads these modules again, which removes their trace patterns.
reload(Modules) -> unload(Modules), load(Modules).

unload(Modules) ->
    lists:foreach(fun(N) -> code:purge(name(N)), code:delete(name(N)), code:purge(name(N)) end, lists:seq(0, Modules - 1)).

load(N, Code) ->
    code:load_binary(name(N), "", binary:replace(Code, atom_to_binary(name(0)), atom_to_binary(name(N)), [global])).

%% Returns the number of functions in the source of that many modules. Functions that the compiler adds do not count.
functions(Modules) -> Modules * ?FUNCTIONS.

name(N) -> list_to_atom(lists:flatten(io_lib:format("made_~3..0b", [N]))).

code() ->
    Names = [{list_to_atom("f" ++ integer_to_list(I)), I} || I <- lists:seq(1, ?FUNCTIONS)],
    Text = ["-module(made_000). -export([", lists:join(", ", [[atom_to_list(F), "/1"] || {F, _} <- Names]), "]). ",
        [body(F, I) || {F, I} <- Names]],
    {ok, _, Code} = compile:forms(forms(lists:flatten(Text)), [no_auto_import]),
    Code.

body(F, 1) -> [atom_to_list(F), "(X) -> [f2(Y) || Y <- lists:seq(1, X rem 3)]. "];
body(F, 2) -> [atom_to_list(F), "(X) -> G = fun(Y) -> f3(X + Y) end, lists:foldl(fun(Y, A) -> A + G(Y) end, 0, [X]). "];
body(F, ?FUNCTIONS) -> [atom_to_list(F), "(X) -> X. "];
body(F, I) -> [atom_to_list(F), "(X) -> f", integer_to_list(I + 1), "(X) + 1. "].

forms(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text),
    forms(Tokens, []).

forms([], []) -> [];
forms([Dot = {dot, _} | Rest], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    [Parsed | forms(Rest, [])];
forms([Token | Rest], Form) -> forms(Rest, [Token | Form]).

%% Starts processes that call these functions without a pause. Nine of ten calls go to the same five modules.
busy(Processes) ->
    Made = list_to_tuple([M || M <- erlang:loaded(), lists:prefix("made_", atom_to_list(M))]),
    register(busy, spawn(fun() -> [spawn_link(fun() -> work(Made, I) end) || I <- lists:seq(1, Processes)], receive stop -> exit(stop) end end)).

calm() ->
    Busy = whereis(busy),
    Ref = monitor(process, Busy),
    Busy ! stop,
    receive {'DOWN', Ref, _, _, _} -> ok end.

work(Made, I) ->
    Next = (I * 1103515245 + 12345) band 16#7fffffff,
    M = case Next rem 10 of 0 -> element(Next rem tuple_size(Made) + 1, Made); _ -> element(Next rem 5 + 1, Made) end,
    M:f1(Next rem 100),
    M:f9(Next),
    work(Made, Next).

%% Counts the calls of trace:function/4 on the node from now on. The process keeps the session alive.
watch() ->
    Self = self(),
    register(watch, spawn(fun() ->
        Session = trace:session_create(watch, self(), []),
        trace:function(Session, {trace, function, 4}, true, [call_count]),
        Self ! watched,
        watch(Session)
    end)),
    receive watched -> ok end.

watch(Session) ->
    receive
        {calls, From} ->
            {call_count, N} = trace:info(Session, {trace, function, 4}, call_count),
            From ! {calls, N},
            watch(Session);
        {stop, From} ->
            trace:session_destroy(Session),
            From ! stopped
    end.

calls() ->
    watch ! {calls, self()},
    receive {calls, N} -> N end.

unwatch() ->
    Ref = monitor(process, watch),
    watch ! {stop, self()},
    receive stopped -> receive {'DOWN', Ref, _, _, _} -> ok end end.
