%% SPDX-License-Identifier: Apache-2.0
%% The performance goals of the project, each with the figure that it limits.
-module(bench_goals).
-export([all/2, ratios/3, rate/2]).

%% {Name, description, figure, comparison, goal}. A figure is {added, Workload, Tracer, Of}: the added time, as a
%% multiple of the tracer Of; {rate, Workload, Tracer, Of}: events per second from end to end, as a multiple of Of;
%% {lost, Workload, Tracer}: lost events; {measure, Workload, Name}; or {first, Workload, Name, Of}: the measure Name
%% divided by the measure Of.
goals() ->
    [{"G1", "a small call, live to text: of the floor", {added, w1, {live, 256}, floor}, '=<', 1.30},
     {"G2", "a small call, no client: of the floor", {added, w1, {etrace, 256}, floor}, '=<', 1.20},
     {"G3", "send and receive, live: of the floor", {added, w3, {live, 256}, floor}, '=<', 1.45},
     {"G3", "the same without who sent it: of the floor", {added, w3, {asked, anonymous}, floor}, '=<', 1.45},
     {"G4", "a small call, live: of an empty process tracer", {added, w1, {live, 256}, pid}, '=<', 0.55},
     {"G4", "a small call, live: of dbg's file port", {added, w1, {live, 256}, {peer, dbg_file}}, '=<', 0.30},
     {"G5", "a large state, 256 bytes of it: of the floor", {added, w4, {etrace, 256}, floor}, '=<', 3.0},
     {"G5", "a large state, 256 bytes of it: of a process tracer", {added, w4, {etrace, 256}, pid}, '=<', 0.12},
     {"G6", "a large state, 1 kB of it: of a process tracer", {added, w4, {etrace, 1024}, pid}, '=<', 0.25},
     {"G6", "100 kB, 256 bytes of it: of a process tracer", {added, w5, {etrace, 256}, pid}, '=<', 0.04},
     {"G7", "a large state, whole terms: of a process tracer", {added, w4, {etrace, whole}, pid}, '=<', 1.2},
     {"G7", "100 kB, whole terms: of a process tracer", {added, w5, {etrace, whole}, pid}, '=<', 1.2},
     {"G8", "events/s until printed: of dbg's text", {rate, w1, {live, 256}, {peer, dbg_text}}, '>=', 40},
     {"G8", "events/s until printed: of redbug's", {rate, w1, {live, 256}, {peer, redbug}}, '>=', 100},
     {"G8", "events/s until printed: of recon_trace's", {rate, w1, {live, 256}, {peer, recon}}, '>=', 100},
     {"G9", "events/s until printed: of dbg's file, undecoded", {rate, w1, {live, 256}, {peer, dbg_file}}, '>=', 3},
     {"G9", "events/s until printed: of dbg's ip port", {rate, w1, {live, 256}, {peer, dbg_ip}}, '>=', 4},
     {"G9", "events/s until printed: of dbg's file, decoded", {rate, w1, {live, 256}, {peer, dbg_decoded}}, '>=', 60},
     {"G10", "whole terms printed, events/s: of dbg's text", {rate, w4, {live, whole}, {peer, dbg_text}}, '>=', 50},
     {"G10", "whole terms printed, events/s: of redbug's", {rate, w4, {live, whole}, {peer, redbug}}, '>=', 100},
     {"G10", "whole terms printed, events/s: of dbg's file, undecoded", {rate, w4, {live, whole}, {peer, dbg_file}}, '>=', 1.5},
     {"G11", "events/s until printed: of a message for each event", {rate, w1, {live, 256}, {peer, dist}}, '>=', 5},
     {"G12", "small calls to text, from memory", {measure, client, "w1 to text"}, '>=', 8.0},
     {"G12", "small calls to JSON, from memory", {measure, client, "w1 to json"}, '>=', 8.0},
     {"G12", "small calls to text: of dbg's handler on its file", {first, client, "w1 to text", "w1 by dbg's text handler"}, '>=', 150},
     {"G13", "a recording to text, through a pipe", {measure, client, "w1 to text, a recording into a pipe"}, '>=', 5.0},
     {"G13", "a recording to JSON, through a pipe", {measure, client, "w1 to json, a recording into a pipe"}, '>=', 4.0},
     {"G14", "events of 1 kB to text, bytes written", {measure, client, "w4 to text, output"}, '>=', 0.5},
     {"G14", "events of 1 kB to JSON, bytes written", {measure, client, "w4 to json, output"}, '>=', 0.5},
     {"G15", "processor time of the client, an event: of the floor", {measure, session, "the client's processor time for an event"}, '=<', 0.6},
     {"G15", "draining the rings, an event: of the floor", {measure, session, "draining the rings for an event"}, '=<', 0.08}] ++
    [{"G16", io_lib:format("lost on the way to the client, ~s", [W]), {lost, W, {live, 256}}, '=<', 0} || W <- [w1, w2c, w2, w3, w4]] ++
    [{"G17", "the node's memory while the client is blocked, beside the rings", {measure, session, "memory beside the rings while the client is blocked"}, '=<', 4.0},
     {"G17", "the owner's mailbox while the client is blocked", {measure, session, "messages of the owner while the client is blocked"}, '=<', 8},
     {"G18", "a small call, rings full: of the floor", {added, w1, full, floor}, '=<', 0.80},
     {"G18", "a small call, paused: of the floor", {added, w1, closed, floor}, '=<', 0.80},
     {"G19", "a call that is rejected: of the floor", {added, w6, {live, 256}, floor}, '=<', 1.08},
     {"G19", "a small call that a guard accepts: of the floor", {added, w1, {asked, guard}, floor}, '=<', 1.45},
     {"G19", "a call and its result, hidden by duration: of the floor", {added, w7, {asked, hidden}, floor}, '=<', 1.40},
     {"G19", "the same of a large state: of the floor", {added, w4, {asked, hidden}, floor}, '=<', 1.80},
     {"G20", "wake-ups of the node by an idle session", {measure, session, "wake-ups by an idle session"}, '=<', 0},
     {"G21", "age of the oldest event when printed, p99", {measure, session, "age of the oldest event, p99"}, '=<', 10.0},
     {"G26", "attach and arm 30 nodes on one host: of one node", {first, many, "attach and arm 30 nodes", "attach and arm one node"}, '=<', 3.0},
     {"G22", "-c on 450 functions, kept: of top on the same", {measure, app, "-c: of top, 450 functions"}, '>=', 1.0},
     {"G23", "--overhead 5% on 6,000 functions, kept: of untraced", {measure, app, "kept by --overhead 5%, 6000 functions"}, '>=', 0.93},
     {"G24", "arming 6,000 functions of a busy node", {measure, app, "arm 6000 functions, busy node"}, '=<', 1000},
     {"G24", "arming 6,000 functions of an idle node", {measure, app, "arm 6000 functions, idle node"}, '=<', 100},
     {"G24", "calls of trace:function beyond one a module, busy", {measure, app, "trace:function calls beyond one a module, busy node"}, '=<', 20},
     {"G24", "calls of trace:function beyond one a module, idle", {measure, app, "trace:function calls beyond one a module, idle node"}, '=<', 20},
     {"G27", "stacks of 100,000 processes, ms", {measure, look, "stacks of 100,000 processes, attach included"}, '=<', 2000},
     {"G27", "sampling 200 processes 20 times a second, percent of a core", {measure, look, "sampling 200 processes 20 times a second, of a core"}, '=<', 2.0},
     {"G28", "a request, server: of the floor", {measure, requests, "a request, server traced"}, '=<', 5.0},
     {"G29", "a call outside of every root: of the floor", {measure, inside, "a call outside of every root"}, '=<', 0.10},
     {"G29", "a call inside of a root: of the floor", {measure, inside, "a call inside of a root"}, '=<', 1.35},
     {"G29", "a root without calls inside: of the floor", {measure, inside, "a root without calls inside"}, '=<', 4.0},
     {"G30", "a call counted by one small key: of the floor", {measure, ring, "a call by one small key: count"}, '=<', 1.30},
     {"G30", "call and result by one small key: of an empty tracer",
         {first, ring, "a call and its result by one small key: count, hist(dur)", "a call and its result, an empty tracer"}, '=<', 1.25},
     {"G31", "a call into a ring that overwrites: of the floor", {measure, ring, "a call into a ring that overwrites"}, '=<', 1.20},
     {"G25", "a small call in a recording, bytes", {measure, client, "w1, bytes of an event in a recording"}, '=<', 4.0},
     {"G25", "recording speed: of the speed without compression", {measure, record, "w1 recorded, compressed: of not compressed, best rounds"}, '>=', 0.9},
     {"G32", "a recording to a summary", {measure, client, "w1 to summary, a recording into a pipe, in real time"}, '>=', 15.0},
     {"G32", "a recording to JSON", {measure, client, "w1 to json, a recording into a pipe, in real time"}, '>=', 5.0},
     {"G32", "a recording to text", {measure, client, "w1 to text, a recording into a pipe, in real time"}, '>=', 10.0},
     {"tally", "calls and results that are only counted: of the floor", {added, w4, tally, floor}, '=<', 1.20},
     {"grow", "attach and arm one function, 100,000 processes", {measure, growth, "attach and arm one function, 100000 processes"}, '=<', 300},
     {"grow", "attach and arm every function, 100,000 processes", {measure, growth, "attach and arm every function, 100000 processes"}, '=<', 300}].

all(Works, Measures) ->
    [#{name => Name, what => What, figure => Value, must_be => Dir, goal => Bound, met => met(Value, Dir, Bound, Lossy)}
        || {Name, What, Figure, Dir, Bound} <- goals(), lists:member(element(2, Figure), [W || {W, _} <- Works] ++ [W || {W, _, _, _} <- Measures]),
           Value <- [value(Figure, Works, Measures)], Lossy <- [lossy(Figure, Works)]].

met(null, _, _, _) -> none;
met(_, _, _, true) -> lost;
met(Value, Dir, Bound, false) -> erlang:Dir(Value, Bound).

%% A lost event is cheap, so the time per event means nothing if most rounds have lost more than 1 % of their events.
lossy({added, W, T, _}, Works) ->
    true =:= with(W, [T], Works, fun(Rounds) -> bench_run:quantile(0.5, lists:sort([element(5, proplists:get_value(T, R)) || R <- Rounds])) end);
lossy(_, _) -> false.

value({measure, W, Name}, _, Measures) ->
    case [M || {W1, N, _, #{median := M}} <- Measures, W1 =:= W, N =:= Name] of [M] -> M; [] -> null end;
value({first, W, Name, Of}, _, Measures) ->
    case {value({measure, W, Name}, [], Measures), value({measure, W, Of}, [], Measures)} of
        {A, B} when A =:= null; B =:= null -> null;
        {A, B} -> A / B
    end;
value({lost, W, T}, Works, _) -> with(W, [T], Works, fun(Rounds) -> lists:sum([element(4, proplists:get_value(T, R)) || R <- Rounds]) end);
value({added, W, T, Of}, Works, _) -> with(W, [T, Of], Works, fun(Rounds) -> bench_run:quantile(0.5, ratios(T, Of, Rounds)) end);
value({rate, W, T, Of}, Works, _) -> with(W, [T, Of], Works, fun(Rounds) -> rate(T, Rounds) / rate(Of, Rounds) end).

with(W, Tracers, Works, Take) ->
    case [Rounds || {W1, Rounds} <- Works, W1 =:= W, lists:all(fun(T) -> lists:keymember(T, 1, hd(Rounds)) end, Tracers)] of
        [Rounds] -> Take(Rounds);
        [] -> null
    end.

ratios(T, Of, Rounds) ->
    lists:sort([added(T, R) / max(1.0, added(Of, R)) || R <- Rounds]).

added(T, Round) -> element(1, proplists:get_value(T, Round)) - element(1, proplists:get_value(untraced, Round)).

%% Events per second, from end to end.
rate(T, Rounds) -> 1.0e9 / bench_run:quantile(0.5, lists:sort([element(2, proplists:get_value(T, R)) || R <- Rounds])).
