%% What the companion would refuse or warn of on other versions than the one it runs on: its table of gates, asked about them.
%% The companion is compiled with everything exported, under the name that stands in its source.
-module(gates).

-export([run/1]).

-define(M, etrace_00000000_0).

%% Prints a line for each version and request: the version, what was asked for, the answer.
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
    caught(fun() -> ?M:allowed(Probe, #{flags => Flags}, none, [G || G <- ?M:gates(V), element(1, G) =/= bif, element(1, G) =/= unload]) end).

asked(return_to) -> {[call, return_to], probe(call, local, true)};
asked(trace) -> {[call], probe(call, local, [{'_', [], [{trace, [], [call]}]}])};
asked(meta) -> {[call], probe(call, meta, true)};
asked('receive') -> {['receive'], probe(recv, local, true)};
asked(calls) -> {[call], probe(call, local, [{'_', [], [{return_trace}]}])}.

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
