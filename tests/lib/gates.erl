%% SPDX-License-Identifier: Apache-2.0
%% Asks the companion's table of gates what it refuses, and what it warns of, on other versions of OTP than this one.
%% The companion is compiled with every function exported, under the module name in its source.
-module(gates).

-export([run/1, routes/0]).

-define(M, etrace_00000000_0).

%% Prints a line for each version and request: the version, the request, the answer.
run(Versions) ->
    [line(V, What, answer(What, V)) || V <- Versions, What <- whats()],
    ok.

line(Version, What, Answer) ->
    io:format("~s ~s ~ts~n", [Version, What, Answer]).

whats() -> [return_to, trace, meta, 'receive', calls, memory, both, time, count].

answer(memory, V) -> counters([call_memory], V);
answer(both, V) -> counters([call_time, call_memory], V);
answer(time, V) -> counters([call_time], V);
answer(count, V) -> counters([call_count], V);
answer(What, V) ->
    {Flags, Probe} = asked(What),
    Request = #{flags => Flags},
    caught(fun() -> ?M:allowed(?M:effects(Request, [Probe]), Request, none, [G || G <- ?M:gates(V), element(1, G) =/= bif, element(1, G) =/= unload]) end).

asked(return_to) -> {[call, return_to], probe(call, local, true)};
asked(trace) -> {[call], probe(call, local, [{'_', [], [{trace, [], [call]}]}])};
asked(meta) -> {[call], probe(call, meta, true)};
asked('receive') -> {['receive'], probe(recv, local, true)};
asked(calls) -> {[call], probe(call, local, [{'_', [], [{return_trace}]}])}.

%% Prints a line for each request that reaches an effect: its name, and the gates and effects that the companion
%% finds.
routes() ->
    [io:format("~ts: ~ts~n", [Name, lists:join(" ", seen(Flags, Probes))]) || {Name, Flags, Probes} <- ways()],
    ok.

seen(Flags, Probes) ->
    Effects = ?M:effects(#{flags => Flags}, Probes),
    Request = #{flags => Flags},
    Asked = fun(Gate) -> try ?M:concerned(Gate, Effects, Request, none) =:= true catch error:_ -> false end end,
    Yes = ["gc" || ?M:gc_asked(Effects)] ++ [atom_to_list(G) || G <- [return_to, trace, meta, 'receive', label], Asked(G)]
        ++ [atom_to_list(What) || What <- [stops, frames, hidden, accepts, plain], map_get(What, Effects)]
        ++ ["returns=" ++ atom_to_list(map_get(returns, Effects))]
        ++ [io_lib:format("tokens=~0p", [Tokens]) || #{tokens := Tokens} <- [Effects], Tokens =/= []],
    Yes.

ways() ->
    Call = fun(Name, Body) -> {Name, [call], [probe(call, local, [{['$1'], [], Body}])]} end,
    [{"call", [call], [probe(call, local, true)]},
        {"two probes", [call], [probe(call, local, true), probe(call, local, [{'_', [], [{return_trace}]}])]},
        {"for each arity", [call], [#{type => call, scope => local, match_spec => {arity, #{1 => true, 2 => [{'_', [], [{enable_trace, all}]}]}}}]},
        {"flag gc", [garbage_collection], []},
        {"flag all", [all], []},
        {"flag of ports", [running_ports], []},
        {"flag return_to", [call, return_to], [probe(call, local, true)]},
        {"flag silent", [call, silent], [probe(call, local, true)]},
        {"flag set_on_spawn and gc", [set_on_spawn, garbage_collection], []},
        {"meta", [call], [probe(call, meta, true)]},
        {"recv", ['receive'], [probe(recv, local, true)]},
        {"send", [send], [probe(send, local, [{'_', [], [{enable_trace, garbage_collection}]}])]},
        Call("enable gc", [{enable_trace, garbage_collection}]),
        Call("enable gc of another", [{enable_trace, '$1', garbage_collection}]),
        Call("enable all", [{enable_trace, all}]),
        Call("enable send", [{enable_trace, send}]),
        Call("enable return_to", [{enable_trace, return_to}]),
        Call("enable receive", [{enable_trace, 'receive'}]),
        Call("enable silent", [{enable_trace, silent}, {return_trace}]),
        Call("enable a variable", [{enable_trace, '$1'}]),
        Call("enable a constant", [{enable_trace, {const, garbage_collection}}]),
        Call("enable something else", [{enable_trace, {const, {garbage_collection}}}]),
        Call("enable what is computed", [{enable_trace, {hd, '$1'}}]),
        Call("disable gc", [{disable_trace, garbage_collection}]),
        Call("trace gc", [{trace, [], [garbage_collection]}]),
        Call("trace all", [{trace, [], [all]}]),
        Call("trace nothing on", [{trace, [all], []}]),
        Call("trace a variable", [{trace, [], '$1'}]),
        Call("trace a list with a variable", [{trace, [], [call, '$1']}]),
        Call("trace a list with a rest", [{trace, [], [call | '$1']}]),
        Call("trace a constant", [{trace, [], {const, [garbage_collection]}}]),
        Call("trace all arguments", [{trace, [], '$_'}]),
        Call("trace all variables", [{trace, [], '$$'}]),
        Call("trace another", [{trace, '$1', [], [garbage_collection]}]),
        Call("gc in a message", [{message, {{x, {enable_trace, garbage_collection}}}}]),
        Call("gc in a condition", [{'orelse', {'=:=', '$1', 1}, {enable_trace, garbage_collection}}]),
        Call("gc in a list", [{message, [1 | {enable_trace, garbage_collection}]}]),
        Call("gc in a map", [{message, #{x => {enable_trace, garbage_collection}}}]),
        Call("gc in a key", [{message, #{{enable_trace, garbage_collection} => 1}}]),
        Call("gc in what is constant", [{message, {const, {enable_trace, garbage_collection}}}]),
        Call("gc as a tuple", [{message, {{enable_trace, garbage_collection}}}]),
        Call("results", [{return_trace}]),
        Call("results with exceptions", [{exception_trace}]),
        Call("results in a message", [{message, {{x, {return_trace}}}}]),
        Call("results of what is not shown", [{message, false}, {return_trace}]),
        Call("results, and a message that may be false", [{message, '$1'}, {return_trace}]),
        Call("results, and a message in a condition", [{'andalso', '$1', {message, {const, false}}}, {exception_trace}]),
        Call("results, and silence", [{silent, true}, {return_trace}]),
        Call("label 7", [{set_seq_token, label, 7}]),
        Call("label a", [{set_seq_token, label, a}]),
        Call("label self", [{set_seq_token, label, {self}}]),
        Call("label of a variable", [{set_seq_token, label, '$1'}]),
        Call("label of a constant", [{set_seq_token, label, {const, 7}}])]
    ++ [Call(io_lib:format("label ~0p", [Label]), [{set_seq_token, label, Label}]) || Label <- [1 bsl 59, (1 bsl 59) - 1, 1.0, "a", {{a}}, ['$1'],
            '$_', '$$', {caller}, {const, {a}}, {'+', '$1', 1}, #{}, <<"a">>]]
    ++ [Call("label in a message", [{message, {{{set_seq_token, label, {{'$1', 1}}}}}}]),
        Call("a component that is computed", [{set_seq_token, '$1', {{'$1', 1}}}]),
        Call("a component that is computed, of a number", [{set_seq_token, '$1', 1}]),
        Call("serial", [{set_seq_token, serial, {{'$1', 1}}}]),
        {"label of a send", [send], [probe(send, local, [{['_', '$1'], [], [{set_seq_token, label, ['$1']}]}])]}].

probe(Type, Scope, Spec) -> #{type => Type, scope => Scope, match_spec => {any, Spec}}.

counters(Wanted, V) ->
    caught(fun() -> {Counted, Texts} = ?M:countable(Wanted, ?M:gates(V)), [io_lib:format("~w", [Counted]) | Texts] end).

caught(F) ->
    try F() of
        [] -> "allowed";
        Texts -> lists:join("; ", Texts)
    catch
        throw:{notsup, Text} -> ["refused: ", Text]
    end.
