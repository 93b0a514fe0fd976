%% SPDX-License-Identifier: Apache-2.0
%% Keeps a trace within a budget: the share of all schedulers' time that tracing may take (--overhead).
%%
%% With a budget the VM counts the calls of every selected function (call_count) from the first moment to the last, so
%% the number of calls is exact whatever else changes. In addition the worker arms as many functions as the budget
%% allows, the least called functions first. About once a second the worker makes a *look*: it reads the counters and
%% moves functions between "armed" and "only counted". A move is one call of trace:function. It does not touch the
%% counter, so no call is missed or counted twice.
%%
%% On a node that makes millions of calls a second, counting all of them takes more than the budget. The most called
%% functions then lose their counter too. Each look counts some of them for a moment, in turn, and estimates their calls
%% from their last rate. Those figures are marked as estimates everywhere. A function gets its counter back as soon as
%% there is room for it.
%%
%% Between two looks the NIF limits the calls (gate_affords()). It rejects a call before the VM builds the event, but
%% that still costs half of a traced call. When the NIF has rejected calls, the owner therefore begins a pause: it
%% clears the flag `call` of all processes, until the budget has paid for the rejected calls. A process without the flag
%% costs nearly nothing, and all its calls are counted. A call that returns in a pause is counted and not timed, because
%% its result is missed. After the pause a result is timed only if it can belong to only one open call (stack.h, and the
%% notice `resumed` for the client).
%%
%% If probes select calls by arguments or processes, the counters include calls that no probe wants. They then only rank
%% the functions, and the client gets no counts.
%%
%% If the client wants nothing but the numbers of calls, the counters count alone (budget_alone()), also without a
%% budget: no function is armed, and a call costs a tenth of what a traced call costs.
%%
%% The cost of a call is measured on this node: the worker traces itself in a session of its own, whose events the NIF
%% ignores, and multiplies the cost by a factor for the work of the NIF. That is the cost for a busy function. The
%% breakpoint, the counter and the figures of a function that is seldom called are not in the processor's cache, so each
%% of its calls costs more (budget_ns()). This matters in large programs, because the budget traces the functions that
%% are seldom called. Measured on OTP 27 and 29: a traced call took 0.23 to 0.29 us for 53 busy functions, and 0.6 to
%% 1.2 us for 1,500 seldom called functions. A counted call took 8 to 10 ns and 30 to 60 ns.
%%
%% If the plan has set whole modules (tracer_plan.hrl), their compiler-generated functions have a counter and a pattern,
%% too. These cost as much as for other functions, so a look removes them from generated functions that are called.

-define(OVERHEAD, 500).       % hundredths of a percent: the budget of wildcards that select busy functions
-define(BUDGET_BRIEF, 30).    % ms: the first count
-define(BUDGET_FIRST, 250).   % ms: the first count if the calls would take much of the budget
-define(BUDGET_LEAST, 200).   % ms between two looks
-define(BUDGET_MOVES, 40).    % functions that one look arms, and that it samples
-define(BUDGET_LESS, 200).    % the most calls of trace:function that remove patterns or counters in one look
%% ms that removing may take in one look, and that adding may take. On a busy host, a call of trace:function takes up to
%% 50 ms, in which the worker only waits.
-define(BUDGET_MOVING, 500).
-define(BUDGET_CALLS, 70).    % percent of the budget that counters and traced calls may take together
-define(BUDGET_TRACED, 20).   % percent of the budget that traced calls may take, however much the counters take
-define(BUDGET_LOOKS, 20).    % percent of the budget that looks may take: long looks become rarer
-define(BUDGET_OFF, 80).      % percent of their room that armed functions or counters may take after some were removed
-define(BUDGET_ON, 60).       % percent that armed functions or counters may take after some were added
-define(BUDGET_IDLE, 4).      % with many functions, a look reads one in so many of the functions that were never called
-define(BUDGET_COUNTING, 50). % percent of the budget that the counters may take
-define(SAMPLES, 4).          % least number of functions without a counter that a look counts for a moment
-define(SAMPLED_IN, 10).      % number of looks in which all functions without a counter are counted once
-define(SAMPLE, 50).          % ms for which a look counts functions without a counter
-define(WARM, 2000).          % calls a second at which half of the calls find their function in the cache
-define(COLD, 4).             % a traced call that misses the cache costs so many times as much as one that hits
-define(COLD_COUNTER, 6).     % a counted call that misses the cache costs so many times as much as one that hits
-define(SHARED_COUNTER, 2).   % a counter that several schedulers change costs so many times as much as another one
-define(STRAY, 100).          % calls a second above which a function that nobody selected is cleared
-define(STRAY_BUSY, 20000).   % calls a second above which it is cleared already before the patterns are set
%% The estimated duration of a look, in us. A clock would also count the time in which the worker waits for a processor.
-define(READ_US, 2).          % us for each counter that a look reads
-define(GROWN_US, 5).         % us for each function that was called since the last look
-define(MOVE_US, 200).        % us for each call of trace:function
-define(BUDGET_AIM, 85).      % percent of the budget at which the scale stays as it is
-define(BUDGET_SCALE, 5).     % the smallest scale
-define(PAUSE, 100).          % ms: the shortest pause
-define(PAUSE_MOST, 5000).
-define(OWN_MOST, 5000000).   % ns of the owner's work between two messages; more means that the thread ran other processes
-define(TRIAL_CALLS, 300).
-define(TRIAL_ROUNDS, 5).
-define(COUNTED_BATCHES, 5).  % looks until all grown counts are sent, if there are many
-define(COUNTED_FEW, 300).

%% The worker's state.
-record(budget, {
    session,
    alone = false,       % the counters count alone: no function is ever armed
    %% Cost of a traced call, cost of a counted call: {ns if the function is busy, ns if it is seldom called}
    cost, counting,
    calls, counts,       % ns a second that counters and traced calls may take together; that counters may take
    wanted,              % #{MFA => [{Scope, Specification}]}: what to set for the selected functions
    off = #{},           % #{MFA => true}: functions that are only counted
    gone = #{},          % #{MFA => {Calls a second, us}}: functions without a counter; when they were last estimated
    estimates = [],      % [{MFA, Calls}] that the owner does not know yet
    sampled = none,      % the function of `gone` that was counted last
    unsteady = false,    % true if the samples of the last look differed much from the earlier estimates
    last = #{},          % #{MFA => count} of the last look; functions without an entry have not been called
    strays = #{},        % #{MFA => count}: functions that nobody selected, and that have a counter
    cleared = #{},       % #{MFA => true}: functions that nobody selected, and that have no counter any more
    at,                  % us: the time of the last look
    %% #{MFA => {Calls, OnlyCounted, count}}: new calls that the owner does not know yet; OnlyCounted: those of these
    %% calls that came while the function was disarmed
    unsent = #{},
    turn = 0
}).

%% The owner's state.
-record(budgeted, {
    limit,               % hundredths of a percent; 0: no limit, because the counters count alone
    alone = false,       % #budget.alone
    costs,               % {#budget.cost, #budget.counting}
    cost,                % ns of a traced call, on average
    room,                % ns a second that traced calls may take
    scale = 100,         % percent of `room` that they may take now: less if the trace took more than its budget
    held,                % {us, ns}: when the scale was last set; how much time the trace had taken until then
    exact,               % the counters are the number of calls
    functions,           % the selected functions
    last,                % #{MFA => count} as reported to the client
    begun = 0,           % us: since when the counters count
    works = none,        % {scheduler, ns of processor time of its thread} since the owner works
    own = 0,             % ns that the owner has worked since the last look
    %% gate_spent() of the NIF at the last look; ns that the trace had taken until then
    spent = {0, 0}, taken = 0,
    off = 0,             % functions that are only counted
    gone = #{},          % #budget.gone
    told = 0,            % the number of only counted functions that the client was last told
    share,               % the budget in ns a second
    valve = none,        % open | shut: whether processes have the flag `call`; none: the flag must not change
    rejected = 0,        % calls that the NIF had rejected when the valve was shut
    before = {0, 0},     % gate_spent() of the NIF before this trace
    calls = 0,           % all calls that were reported
    guessed = 0,         % those of them that are estimated
    estimated = false,   % true if some of `calls` are an estimate
    busiest = none,      % {calls a second, function}: the busiest function at the beginning of the trace
    took = 0,            % us of the last look
    due = false, looked = 0 % a look is due; ms: when the last look began
}).

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% Returns the budget of a request in hundredths of a percent, or none. Without a budget in the request, wildcards over
%% functions that are called often get the default.
budget_of(_, _, _, fallback) -> none;
budget_of(Read, Found, Request, _) ->
    case maps:get(overhead, Request, 0) of
        N when N > 0 -> case [P || P = #{type := call} <- Read] of [] -> none; _ -> N end;
        0 -> none;
        _ -> case hot(Read, Found, Request) of [] -> none; _ -> ?OVERHEAD end
    end.

%% Sets the counters, measures, and returns {the patterns to arm now, #budgeted{}}. Alone: from budget_alone().
budget_begin(none, false, _, _, Scopes, _, _) ->
    erase(budget),
    {Scopes, none};
budget_begin(none, true, Session, _, Scopes, _, _) ->
    Wanted = budget_wanted(Scopes),
    {Steps, Left} = plan({counters, [call_count]}, maps:map(fun(_, _) -> true end, Wanted), #{}, true, fun(MFA) -> not is_map_key(MFA, Wanted) end),
    set(Session, {counters, [call_count]}, Steps, map_size(Wanted)),
    Functions = maps:keys(Wanted),
    case lists:all(fun(MFA) -> pace(), budget_is_counted(Session, MFA) end, Functions) of
        true ->
            Last = budget_read(Session, Functions),
            Now = now_us(),
            put(budget, #budget{session = Session, alone = true, cost = {0, 0}, counting = {0, 0}, calls = 0, counts = 0, wanted = Wanted,
                off = maps:from_keys(Functions, true), last = Last, strays = maps:map(fun(_, _) -> 0 end, Left), at = Now}),
            {[{S, #{}} || {S, _} <- Scopes], #budgeted{limit = 0, alone = true, share = budget_share(?OVERHEAD), begun = Now, held = {Now, 0}, costs = {{0, 0}, {0, 0}},
                cost = 0, room = 0, functions = Functions, last = Last, exact = true}};
        false -> % the VM has no counter for some function
            trace:function(Session, {'_', '_', '_'}, false, [call_count]),
            erase(budget),
            {Scopes, none}
    end;
budget_begin(Limit, Alone, Session, Tracer, Scopes, Effects, Request) ->
    Wanted = budget_wanted(Scopes),
    Has = case get(budget) of
        #budget{session = Session, wanted = Had, gone = Without} -> maps:from_keys(maps:keys(maps:with(maps:keys(Wanted), maps:without(maps:keys(Without), Had))), counted);
        _ -> #{}
    end,
    Fresh = map_size(Has) =:= 0,
    Scope = {counters, [call_count]},
    {Steps, Left} = plan(Scope, maps:merge(maps:map(fun(_, _) -> true end, Wanted), Has), Has, Fresh, fun(MFA) -> not is_map_key(MFA, Wanted) end),
    {Cost, Counting} = budget_cost(Tracer, Effects, Request),
    set(Session, Scope, Steps, map_size(Wanted)),
    Functions = maps:keys(Wanted),
    Share = budget_share(Limit),
    B0 = #budget{session = Session, alone = Alone, cost = Cost, counting = Counting, calls = Share * ?BUDGET_CALLS div 100,
        counts = Share * ?BUDGET_COUNTING div 100, wanted = Wanted},
    First = budget_read(Session, Functions),
    Begun = now_us(),
    budget_wait(?BUDGET_BRIEF),
    {Rates0, Last0} = budget_rates(Session, Functions, First, Begun),
    Counts0 = budget_sum(Counting, Rates0),
    %% If the counters alone take too much, the brief count has seen enough calls.
    {Rates, Last} = case (budget_sum(Cost, Rates0) + Counts0) * 4 > B0#budget.calls andalso Counts0 =< B0#budget.counts of
        true -> budget_wait(?BUDGET_FIRST - ?BUDGET_BRIEF), budget_rates(Session, Functions, First, Begun);
        false -> {Rates0, Last0}
    end,
    At = now_us(),
    Room = budget_room(min(budget_sum(Counting, Rates), B0#budget.counts), B0),
    Off = maps:from_keys(case Alone of true -> Functions; false -> budget_over(lists:sort(Rates), Room * ?BUDGET_OFF div 100, Cost) end, true),
    {Strays, B1} = budget_strays(B0#budget{strays = maps:map(fun(_, _) -> 0 end, Left), off = Off, last = Last, at = Begun}),
    Less = budget_uncounted(Rates, B1) ++ [{budget_ns(Counting, Rate), {clear, MFA}} || {Rate, MFA} <- Strays, Rate > ?STRAY_BUSY],
    {B, _} = budget_remove(Less, length(Less), now_us() + 4 * ?BUDGET_MOVING * 1000, B1),
    put(budget, B#budget{unsent = #{}, at = At}),
    {[{S, maps:without(maps:keys(Off), Map)} || {S, Map} <- Scopes],
        #budgeted{limit = Limit, alone = Alone, share = Share, begun = At, held = {At, 0}, costs = {Cost, Counting}, cost = budget_mean(Cost, budget_armed_of(Rates, Off)), room = Room, functions = Functions,
            last = B#budget.last, gone = B#budget.gone, exact = budget_exact(Effects, Request), off = map_size(Off),
            busiest = case Alone of true -> none; false -> budget_busiest(Rates, Off) end, valve = budget_valve(Effects, Request)}}.

budget_share(Limit) -> Limit * 100000 * erlang:system_info(schedulers_online). % ns a second

budget_wanted(Scopes) ->
    maps:groups_from_list(fun({MFA, _}) -> MFA end, fun({_, Set}) -> Set end,
        [{MFA, {Scope, Ms}} || {Scope, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)]).

%% Returns the ns a second that Rate calls a second of one function take. A call is fast if the function was called
%% shortly before, because its data are still in the cache. So the share of slow calls falls as the rate grows.
budget_ns({Busy, Seldom}, Rate) -> Rate * Busy + Rate * ?WARM div (?WARM + Rate) * (Seldom - Busy).

budget_sum(Cost, Rates) -> lists:sum([budget_ns(Cost, Rate) || {Rate, _} <- Rates]).

%% Returns the ns a second for traced calls, if the counters take Counted.
budget_room(Counted, #budget{calls = Calls}) -> max(1, max(Calls - Counted, Calls * ?BUDGET_TRACED div ?BUDGET_CALLS)).

%% Returns the ns of a call on average.
budget_mean(Cost = {Busy, Seldom}, Rates) ->
    case lists:sum([Rate || {Rate, _} <- Rates]) of
        0 -> (Busy + Seldom) div 2;
        Calls -> budget_sum(Cost, Rates) div Calls
    end.

budget_was(Cost, Rates) -> case lists:any(fun({Rate, _}) -> Rate > 0 end, Rates) of true -> budget_mean(Cost, Rates); false -> none end.

budget_armed_of(Rates, Off) -> [Rate || Rate = {_, MFA} <- Rates, not is_map_key(MFA, Off)].

budget_wait(Ms) -> receive {'DOWN', _, _, _, _} -> exit(normal) after Ms -> ok end.

%% Returns true if the counters count exactly the calls that the probes want.
budget_exact(#{accepts := Accepts, scopes := Scopes}, Request = #{flags := Flags}) ->
    Accepts andalso not lists:member(global, Scopes) andalso not lists:member(silent, Flags)
        andalso maps:get(procs, Request, [all]) =:= [all] andalso maps:get(filter, Request, <<>>) =:= <<>>.

%% Returns true if the counters can replace the tracing of calls: the client wants only figures, without results and
%% other events, no match specification has actions, and the counters are exact. The counters count the calls of all
%% processes, so etrace's own processes must not call a selected function. The NIF cannot read counters when the node
%% halts, so they do not replace the tracing for a node that a command of etrace has started.
budget_alone(Read, Found, Effects = #{scopes := Scopes, types := Types, returns := Returns}, Request = #{flags := Flags}, Options) ->
    maps:get(route, Request, send) =:= tally andalso not is_map_key(leftover, Options) andalso Scopes =:= [local] andalso Types =:= [call] andalso Returns =:= none
        andalso Flags -- [call, arity] =:= [] andalso maps:get(port_flags, Request, []) =:= [] andalso maps:get(system, Request, []) =:= []
        andalso not maps:get(seq_trace, Request, false) andalso not is_map_key(mark, Request) andalso maps:get(limit, Options, 0) =:= 0
        andalso budget_exact(Effects, Request)
        andalso lists:all(fun(Ms) -> lists:all(fun({_, _, Body}) -> Body =:= [] end, clauses(Ms)) end, each_spec([Ms || #{match_spec := {_, Ms}} <- Read]))
        andalso not budget_calls_own([M || {_, Functions} <- Found, {{M, _, _}, _} <- Functions]).

-define(OWN_APPLICATIONS, [kernel, stdlib, crypto, public_key, asn1, ssl]). % from crypto on: for TLS

%% Returns true if etrace's own processes call functions of some of these modules.
budget_calls_own(Modules) ->
    Own = lists:append([erlang:pre_loaded() | [Ms || A <- ?OWN_APPLICATIONS, {ok, Ms} <- [application:get_key(A, modules)]]]),
    not ordsets:is_disjoint(ordsets:from_list(Own), ordsets:from_list(Modules)).

%% Returns `open` if the owner may clear and set the flag `call`. Returns none if the owner cannot know which processes
%% have the flag, or if the flag `silent` is used too.
budget_valve(#{switches := Switches, silences := Silences}, Request = #{flags := Flags}) ->
    case maps:get(procs, Request, [all]) =:= [all] andalso not Switches andalso not Silences
            andalso Flags -- [call, arity, send, 'receive', procs, running, garbage_collection] =:= [] of
        true -> open;
        false -> none
    end.

%% Returns {#budget.cost, #budget.counting}. Adds a part for the NIF to the measured cost of the VM: more for an event
%% with its terms than for figures.
budget_cost(Tracer, #{frames := Frames}, Request) ->
    Ms = case Frames of true -> [{'_', [], [{exception_trace}]}]; false -> true end,
    {Call, Counting} = trial_cost(Tracer, Ms),
    Traced = max(50, case maps:get(route, Request, send) of tally -> Call * 5 div 4; _ -> Call * 2 end),
    Counted = max(1, Counting),
    Busy = case erlang:system_info(schedulers_online) of 1 -> Counted; _ -> Counted * ?SHARED_COUNTER end,
    {{Traced, Traced * ?COLD}, {Busy, Counted * ?COLD_COUNTER}}.

%% Returns the functions to remove so that the rest takes at most Most ns a second. Keeps the least called functions.
budget_over([], _, _) -> [];
budget_over(Sorted = [{Rate, _} | Rest], Most, Cost) ->
    case budget_ns(Cost, Rate) of
        Ns when Ns =< Most -> budget_over(Rest, Most - Ns, Cost);
        _ -> [MFA || {_, MFA} <- Sorted]
    end.

%% Returns #{MFA => count} of the functions that were called.
budget_read(Session, Functions) ->
    maps:from_list([{MFA, N} || MFA <- Functions, N <- [budget_count(Session, MFA)], N > 0]).

budget_counted_at(Session, MFA) ->
    N = budget_count(Session, MFA),
    {N, now_us()}.

budget_count(Session, MFA) ->
    pace(),
    case trace:info(Session, MFA, call_count) of {call_count, N} when is_integer(N) -> N; _ -> 0 end.

%% Returns {[{Calls a second, MFA}] of the called functions, #{MFA => count}}.
budget_rates(Session, Functions, Before, Since) ->
    Now = budget_read(Session, Functions),
    Time = max(1, now_us() - Since),
    {[{(N - N0) * 1000000 div Time, MFA} || {MFA, N} <- maps:to_list(Now), N0 <- [maps:get(MFA, Before, 0)], N > N0], Now}.

%% Returns {[{Calls a second, MFA}] of the called functions that nobody selected, #budget{}}.
budget_strays(B = #budget{session = Session, strays = Strays, turn = Turn, at = At}) ->
    Idle = fun(MFA, 0) -> Turn > 0 andalso erlang:phash2(MFA, ?BUDGET_IDLE) =/= Turn rem ?BUDGET_IDLE; (_, _) -> false end,
    {Rates, Now} = budget_rates(Session, [MFA || {MFA, N} <- maps:to_list(Strays), not Idle(MFA, N)], Strays, At),
    {Rates, B#budget{strays = maps:merge(Strays, Now)}}.

%% Returns the functions that the plan must not leave armed.
budget_cleared(Session) ->
    case get(budget) of #budget{session = Session, cleared = Cleared} -> Cleared; _ -> #{} end.

%% Gives the functions of modules that are armed again new counters, because their code is new. Returns the trace
%% patterns to set.
budget_again(Session, Scopes) ->
    case get(budget) of
        B = #budget{session = Session, alone = Alone, wanted = Wanted, last = Last, unsent = Unsent, off = Off0, gone = Gone, estimates = Estimates,
                strays = Strays, cleared = Cleared} ->
            New = budget_wanted(Scopes),
            Functions = maps:keys(New),
            Off = case Alone of true -> maps:merge(Off0, maps:from_keys(Functions, true)); false -> Off0 end,
            get(owner) ! {counted, maps:keys(maps:without(maps:keys(Wanted), New))},
            budget_set_counters(Session, Functions),
            Others = [{M, F, A} || M <- lists:usort([M || {M, _, _} <- Functions]), {F, A} <- listed(M, local), not is_map_key({M, F, A}, New)],
            Beside = [MFA || MFA <- Others, budget_is_counted(Session, MFA)],
            {More, _} = budget_estimate(now_us(), maps:with(Functions, Gone)),
            put(budget, B#budget{off = Off, wanted = maps:merge(Wanted, New), last = maps:without(Functions, Last), gone = maps:without(Functions, Gone),
                estimates = More ++ Estimates, strays = maps:merge(Strays, maps:from_keys(Beside, 0)), cleared = maps:without(Beside, Cleared),
                unsent = lists:foldl(fun(MFA, Acc) -> budget_reset(MFA, 0, Acc) end, Unsent, Functions)}),
            [{Scope, maps:without(maps:keys(Off), Map)} || {Scope, Map} <- Scopes];
        _ -> Scopes
    end.

%% Sets the missing counters. Setting an existing counter would reset it.
budget_set_counters(Session, Functions) ->
    maps:foreach(fun(M, In) ->
        case [MFA || MFA <- In, not budget_is_counted(Session, MFA)] of
            In -> case budget_is_counted(Session, {M, module_info, 0}) of
                false -> trace:function(Session, {M, '_', '_'}, true, [call_count]);
                true -> [trace:function(Session, MFA, true, [call_count]) || MFA <- In]
            end;
            Some -> [trace:function(Session, MFA, true, [call_count]) || MFA <- Some]
        end
    end, maps:groups_from_list(fun({M, _, _}) -> M end, Functions)).

budget_is_counted(Session, MFA) ->
    case trace:info(Session, MFA, call_count) of {call_count, N} -> is_integer(N); _ -> false end.

%% Makes a look: reads the counters, moves functions, and returns the new counts for the owner. Scale: #budgeted.scale.
%% Sent: the client has all earlier counts. Otherwise the new counts stay in the worker, which adds them up, so that
%% they do not take more and more memory.
budget_do({Session, Tracer, Scale, Sent}) ->
    case get(budget) of
        B = #budget{session = Session} -> budget_look(Tracer, Scale, Sent, B);
        _ -> {ok, none} % a new worker
    end.

%% Runs in a worker that replaces a killed one: finds out which functions are counted or armed. The owner knows what was
%% counted and estimated.
budget_restore({Session, #armed{request = Request}, Tracer, #budgeted{alone = Alone, share = Share, costs = {Cost, Counting}, last = Last, gone = Known}}) ->
    Wanted = wanted(Request),
    {Found, _} = chosen(Session, Request#{allow_empty => true}, Wanted, all),
    Scopes = found_scopes(Found, joins(Request), Request, Wanted, restored, Tracer), % programs stay
    Functions = budget_wanted(Scopes),
    Now = now_us(),
    IsCounted = fun(MFA) -> pace(), budget_is_counted(Session, MFA) end,
    {Counted, Gone} = lists:partition(IsCounted, maps:keys(Functions)),
    Armed = maps:filter(fun({Scope, MFA}, _) -> budget_traces(Session, MFA, Scope) end, keyed(Scopes)),
    Beside = [MFA || M <- lists:usort([M || {M, _, _} <- maps:keys(Functions)]), {F, A} <- listed(M, local), MFA <- [{M, F, A}],
        not is_map_key(MFA, Functions), IsCounted(MFA)],
    Left = maps:from_list([{{Scope, MFA}, true} || MFA <- Beside, Scope <- [local, global], budget_traces(Session, MFA, Scope)]),
    armed(Session, maps:merge(Armed, Left), case map_size(Left) of 0 -> exact; _ -> {left, kept(maps:keys(Functions), #{})} end),
    {Estimates, _} = budget_estimate(Now, maps:with(Counted, Known)),
    put(budget, #budget{session = Session, alone = Alone, cost = Cost, counting = Counting, calls = Share * ?BUDGET_CALLS div 100, counts = Share * ?BUDGET_COUNTING div 100,
        wanted = Functions, off = maps:without([MFA || {_, MFA} <- maps:keys(Armed)], maps:map(fun(_, _) -> true end, Functions)),
        gone = maps:from_list([{MFA, maps:get(MFA, Known, {0, Now})} || MFA <- Gone]), estimates = Estimates,
        last = maps:merge(maps:with(Counted, Last), budget_read(Session, maps:keys(maps:with(Counted, Known)))),
        strays = maps:from_keys(Beside, 0), at = Now}),
    {ok, restored}.

budget_look(Tracer, Scale, Sent, B0 = #budget{session = Session, cost = Cost, counting = Counting, counts = Counts, wanted = Wanted, last = Before,
        at = At, unsent = Unsent, turn = Turn, gone = Gone0, estimates = Early}) ->
    Begun = now_us(),
    gate(Tracer, spent), % the NIF asks again if it still has to reject calls
    Functions = [MFA || MFA <- maps:keys(Wanted), not is_map_key(MFA, Gone0),
        is_map_key(MFA, Before) orelse map_size(Wanted) =< ?COUNTED_FEW orelse erlang:phash2(MFA, ?BUDGET_IDLE) =:= Turn rem ?BUDGET_IDLE],
    {Rates, Last} = budget_rates(Session, Functions, Before, At),
    {Estimates, Gone} = budget_estimate(Begun, Gone0),
    %% Functions without an earlier count may have been called over several looks, so their computed rate is too high.
    Steady = [Rate || Rate = {_, MFA} <- Rates, is_map_key(MFA, Before)],
    Room = budget_room(min(budget_sum(Counting, Steady), Counts), B0),
    {Called, B1} = budget_strays(B0),
    Less = budget_less(Rates, Steady, Called, Room * Scale div 100, B1),
    {B2, Removed} = budget_remove(Less, ?BUDGET_LESS, now_us() + ?BUDGET_MOVING * 1000, B1#budget{gone = Gone, last = Last, at = Begun, turn = Turn + 1,
        estimates = [], unsent = lists:foldl(fun({_, MFA}, Acc) -> budget_grown(MFA, map_get(MFA, Last), Before, B0#budget.off, Acc) end, Unsent, Rates)}),
    {B3, Moved} = budget_more(Rates, Room * Scale div 100, now_us() + ?BUDGET_MOVING * 1000, B2),
    #budget{off = Off, strays = Strays} = B3,
    {B, Samples} = budget_sample(budget_sum(Counting, Steady), B3),
    Sends = map_size(B#budget.gone) > map_size(Gone0) orelse
        (Sent andalso (map_size(B#budget.unsent) =< ?COUNTED_FEW orelse Turn rem ?COUNTED_BATCHES =:= 0)),
    {Now, Later} = case Sends of true -> {maps:to_list(B#budget.unsent), #{}}; false -> {[], B#budget.unsent} end,
    Estimated = B#budget.estimates ++ Estimates ++ Early,
    {EstimatedNow, EstimatedLater} = case Sent orelse Sends of true -> {Estimated, []}; false -> {[], budget_summed(Estimated)} end,
    put(budget, B#budget{unsent = Later, estimates = EstimatedLater}),
    {ok, #{counts => Now,
        estimates => EstimatedNow, gone => B#budget.gone, off => map_size(Off),
        counted => budget_sum(Counting, Called ++ Rates) * (Begun - At) div 1000000, room => Room, cost => budget_mean(Cost, [Stray || Stray = {_, MFA} <- Called, is_map_key(MFA, Strays)] ++ budget_armed_of(Rates, Off)),
        was => budget_was(Cost, Called ++ budget_armed_of(Rates, B0#budget.off)),
        busiest => budget_busiest(Rates ++ [{Rate, MFA} || {MFA, {Rate, _}} <- maps:to_list(Gone)], Off),
        time => ?READ_US * length(Functions) + ?GROWN_US * length(Rates) + ?MOVE_US * (Moved + Removed + 2 * Samples)}}.

%% Adds the calls since Before to the calls that the owner does not know yet (#budget.unsent).
budget_grown(MFA, N, Before, Off, Unsent) ->
    Grown = case maps:get(MFA, Before, 0) of N0 when N >= N0 -> N - N0; _ -> N end,
    {Calls, OnlyCounted, _} = maps:get(MFA, Unsent, {0, 0, 0}),
    Unsent#{MFA => case is_map_key(MFA, Off) of true -> {Calls, OnlyCounted + Grown, N}; false -> {Calls + Grown, OnlyCounted, N} end}.

%% Notes that the counter of a function continues from N.
budget_reset(MFA, N, Unsent) ->
    {Calls, OnlyCounted, _} = maps:get(MFA, Unsent, {0, 0, 0}),
    Unsent#{MFA => {Calls, OnlyCounted, N}}.

%% Returns {[{MFA, estimated calls since the last estimate}], #budget.gone}.
budget_estimate(Now, Gone) ->
    {[{MFA, Rate * (Now - Since) div 1000000} || {MFA, {Rate, Since}} <- maps:to_list(Gone)],
        maps:map(fun(_, {Rate, _}) -> {Rate, Now} end, Gone)}.

%% Adds up the estimates of each function.
budget_summed(Estimates) ->
    maps:to_list(maps:map(fun(_, All) -> lists:sum(All) end, maps:groups_from_list(fun({MFA, _}) -> MFA end, fun({_, N}) -> N end, Estimates))).

%% Returns true if the function has a pattern. OTP 27 answers {meta, []} for a function that has only a counter.
budget_traces(Session, MFA, meta) -> trace:info(Session, MFA, meta_match_spec) =/= {meta_match_spec, false};
budget_traces(Session, MFA, Scope) -> trace:info(Session, MFA, traced) =:= {traced, Scope}.

%% Returns [{Ns a second, Removal}]: the counters to remove if all of them take too much.
budget_uncounted(Rates, #budget{counting = Counting, counts = Counts}) ->
    Over = case budget_sum(Counting, Rates) > Counts of true -> budget_over(lists:sort(Rates), Counts * ?BUDGET_OFF div 100, Counting); false -> [] end,
    ByMFA = maps:from_list([{MFA, Rate} || {Rate, MFA} <- Rates]),
    [{budget_ns(Counting, map_get(MFA, ByMFA)), {uncount, MFA, map_get(MFA, ByMFA)}} || MFA <- Over].

%% Returns [{Ns a second, Removal}]: the removals of budget_uncounted/2, the functions to disarm if all armed ones take more
%% than Most, and the functions to clear that nobody selected.
budget_less(Rates, Steady, Called, Most, B = #budget{cost = Cost, counting = Counting, off = Off}) ->
    Uncounted = budget_uncounted(Steady, B),
    Going = maps:from_list([{MFA, true} || {_, {uncount, MFA, _}} <- Uncounted]),
    Armed = lists:sort(budget_armed_of(Rates, Off)),
    Over = maps:from_keys(case budget_sum(Cost, Armed) > Most of true -> budget_over(Armed, Most * ?BUDGET_OFF div 100, Cost); false -> [] end, true),
    Uncounted ++ [{budget_ns(Cost, Rate), {disarm, MFA}} || {Rate, MFA} <- Armed, is_map_key(MFA, Over), not is_map_key(MFA, Going)] ++
        [{budget_ns(Counting, Rate) + budget_ns(Cost, Rate), {clear, MFA}} || {Rate, MFA} <- Called, Rate > ?STRAY].

%% Makes the removals that save most. Returns {#budget{}, how many}.
budget_remove(Less, Most, Until, B) ->
    budget_removing(lists:sublist(lists:reverse(lists:sort(Less)), Most), Until, 0, B).

budget_removing([{_, How} | Rest], Until, N, B) ->
    case N > 0 andalso now_us() > Until of
        true -> {B, N};
        false -> budget_removing(Rest, Until, N + 1, budget_removed(How, B))
    end;
budget_removing([], _, N, B) -> {B, N}.

budget_removed({clear, MFA}, B = #budget{session = Session, strays = Strays, cleared = Cleared}) ->
    budget_disarm(Session, MFA, [call_count]),
    B#budget{strays = maps:remove(MFA, Strays), cleared = Cleared#{MFA => true}};
budget_removed({disarm, MFA}, B = #budget{session = Session, off = Off}) ->
    budget_disarm(Session, MFA, []),
    B#budget{off = Off#{MFA => true}};
budget_removed({uncount, MFA = {M, _, _}, Rate}, B = #budget{session = Session, off = Off, last = Last, gone = Gone, unsent = Unsent}) ->
    Always = {M, module_info, 0}, % for the self-check
    budget_is_counted(Session, Always) orelse trace:function(Session, Always, true, [call_count]),
    {Count, At} = budget_counted_at(Session, MFA),
    budget_disarm(Session, MFA, [call_count]),
    B#budget{off = Off#{MFA => true}, gone = Gone#{MFA => {Rate, At}}, last = maps:remove(MFA, Last),
        unsent = budget_reset(MFA, 0, budget_grown(MFA, Count, Last, Off, Unsent))}.

%% Removes the patterns of a function, and the given counters with the same call of trace:function.
budget_disarm(Session, MFA, Counters) ->
    {Set, Mode} = case get(function) of {Session, Patterns, How} -> {Patterns, How}; _ -> {#{}, none} end,
    Scopes = [Scope || Scope <- [local, global, meta], is_map_key({Scope, MFA}, Set)],
    Alone = [[Scope] || Scope <- Scopes -- [local]],
    Local = Counters ++ [local || lists:member(local, Scopes)],
    [try trace:function(Session, MFA, false, Options) catch error:_ -> 0 end || Options <- Alone ++ [Local || Local =/= []]],
    Scopes =:= [] orelse armed(Session, maps:without([{Scope, MFA} || Scope <- Scopes], Set), Mode).

%% Sets counters for some of the functions without a counter, in turn; for more of them while their rates change. Taken:
%% ns a second that the other counters take. A function keeps its counter if the budget has room for it. Returns
%% {#budget{}, how many functions}.
budget_sample(_, B = #budget{gone = Gone}) when map_size(Gone) =:= 0 -> {B, 0};
budget_sample(Taken, B = #budget{session = Session, gone = Gone, sampled = Before, unsteady = Unsteady}) ->
    {Later, Earlier} = lists:partition(fun(MFA) -> MFA > Before end, lists:sort(maps:keys(Gone))),
    Most = max(?SAMPLES, map_size(Gone) div ?SAMPLED_IN) * case Unsteady of true -> 3; false -> 1 end,
    Some = lists:sublist(Later ++ Earlier, min(?BUDGET_MOVES, Most)),
    %% A counter counts before trace:function returns.
    Since = [{MFA, begin trace:function(Session, MFA, true, [call_count]), budget_counted_at(Session, MFA) end} || MFA <- Some],
    budget_wait(?SAMPLE),
    Sampled = [begin {N, Now} = budget_counted_at(Session, MFA), {(N - N0) * 1000000 div max(1, Now - At), MFA, {N0, At}} end || {MFA, {N0, At}} <- Since],
    Changes = [MFA || {Rate, MFA, _} <- Sampled, {Was, _} <- [map_get(MFA, Gone)], abs(Rate - Was) > max(Rate, Was) div 2, max(Rate, Was) > ?WARM],
    {budget_sampled(lists:sort(Sampled), Taken, B#budget{sampled = lists:last(Some), unsteady = Changes =/= []}), length(Some)}.

budget_sampled([{Rate, MFA, {N, At}} | Rest], Taken, B = #budget{session = Session, gone = Gone, counting = Counting, counts = Counts, last = Last, estimates = Estimates, unsent = Unsent}) ->
    {_, Since} = map_get(MFA, Gone),
    case Taken + budget_ns(Counting, Rate) of
        Ns when Ns =< Counts * ?BUDGET_ON div 100 ->
            budget_sampled(Rest, Ns, B#budget{gone = maps:remove(MFA, Gone), last = Last#{MFA => N}, unsent = budget_reset(MFA, N, Unsent), estimates = [{MFA, max(1, Rate * (At - Since) div 1000000)} | Estimates]});
        _ ->
            trace:function(Session, MFA, false, [call_count]),
            budget_sampled(Rest, Taken, B#budget{gone = Gone#{MFA := {Rate, Since}}})
    end;
budget_sampled([], _, B) -> B.

budget_busiest(Rates, Off) ->
    case lists:reverse(lists:sort([Rate || Rate = {_, MFA} <- Rates, is_map_key(MFA, Off)])) of
        [Most | _] -> Most;
        [] -> none
    end.

%% Arms the least called functions if there is room for them. Returns {#budget{}, how many}.
budget_more(_, _, _, B = #budget{alone = true}) -> {B, 0};
budget_more(Rates, Most, Until, B = #budget{cost = Cost, off = Off, gone = Gone}) ->
    case Most * ?BUDGET_ON div 100 - budget_sum(Cost, budget_armed_of(Rates, Off)) of
        Room when Room > 0 ->
            Not = [Rate || Rate = {_, MFA} <- Rates, is_map_key(MFA, Off), not is_map_key(MFA, Gone)],
            Silent = [{0, MFA} || MFA <- maps:keys(maps:without([MFA || {_, MFA} <- Not], maps:without(maps:keys(Gone), Off)))],
            Ranked = Silent ++ lists:sort(Not),
            Stay = maps:from_keys(budget_over(Ranked, Room, Cost), true),
            budget_arm(lists:sublist([MFA || {_, MFA} <- Ranked, not is_map_key(MFA, Stay)], ?BUDGET_MOVES), Until, 0, B);
        _ -> {B, 0}
    end.

budget_arm([MFA | Rest], Until, N, B = #budget{session = Session, wanted = Wanted, off = Off}) ->
    case N > 0 andalso now_us() > Until of
        true -> {B, N};
        false ->
            Set = budget_patterns(MFA, Wanted),
            [try trace:function(Session, MFA, Ms, [Scope]) catch error:_ -> 0 end || {Scope, Ms} <- Set],
            case get(function) of
                {Session, Patterns, Mode} -> armed(Session, maps:merge(Patterns, maps:from_list([{{Scope, MFA}, Ms} || {Scope, Ms} <- Set])), Mode);
                _ -> ok
            end,
            budget_arm(Rest, Until, N + 1, B#budget{off = maps:remove(MFA, Off)})
    end;
budget_arm([], _, N, B) -> {B, N}.

budget_patterns(MFA, Wanted) ->
    [{Scope, map_get(MFA, without_results(Scope, false, #{MFA => Ms}))} || {Scope, Ms} <- map_get(MFA, Wanted)].

%% Returns the patterns that a function has now: none if it is only counted.
budget_armed(Session, MFA) ->
    case get(budget) of
        #budget{session = Session, wanted = Wanted, off = Off} when is_map_key(MFA, Wanted), not is_map_key(MFA, Off) ->
            budget_patterns(MFA, Wanted);
        _ -> []
    end.

%% ---- the cost of a call -------------------------------------------------------------------------------------------

%% Returns {Ns that the VM takes for a traced call, for a counted call}. The names come from the NIF, because a literal
%% must not contain the module's name. The shortest of several rounds is one without interruption.
trial_cost(Tracer, Ms) ->
    Trial = gate(Tracer, trial),
    Session = trace:session_create(etrace, {?MODULE, Trial}, []),
    try
        Plain = trial_rounds(),
        trace:function(Session, {?MODULE, Trial, 1}, true, [call_count]),
        Counted = trial_rounds(),
        trace:function(Session, {?MODULE, Trial, 1}, Ms, [local]),
        trace:process(Session, self(), true, [call]),
        {max(0, trial_rounds() - Counted) div ?TRIAL_CALLS, max(0, Counted - Plain) div ?TRIAL_CALLS}
    after
        trace:session_destroy(Session)
    end.

trial_rounds() -> lists:min([trial_time() || _ <- lists:seq(1, ?TRIAL_ROUNDS)]).

trial_time() ->
    Begun = erlang:monotonic_time(nanosecond),
    trials(?TRIAL_CALLS),
    erlang:monotonic_time(nanosecond) - Begun.

trials(0) -> ok;
trials(N) -> trial(N), trials(N - 1).

trial(N) -> N.

%% ---- in the owner -------------------------------------------------------------------------------------------------

budget_limit(none) -> 0;
budget_limit(#budgeted{limit = Limit}) -> Limit.

%% Applies the budget of a request that has just been armed.
budget_set(_, S = #s{tracer = fallback}) -> S;
budget_set(none, S = #s{tracer = State}) ->
    gate(State, no_budget),
    S#s{budget = none};
%% The first look comes at once, because one pattern set the counters of all modules, and those of busy functions that
%% nobody selected cost as much as the others.
budget_set(B = #budgeted{limit = 0}, S = #s{tracer = State}) ->
    gate(State, no_budget),
    Spent = {_, Rejected} = gate(State, spent),
    S#s{budget = B#budgeted{due = true, looked = now_ms(), spent = Spent, rejected = Rejected, before = Spent}};
budget_set(B, S = #s{tracer = State}) ->
    Spent = {_, Rejected} = gate(State, spent),
    Set = B#budgeted{looked = now_ms(), spent = Spent, rejected = Rejected, before = Spent},
    gate(State, {budget, budget_calls(Set)}),
    budget_told(B#budgeted.busiest, S#s{budget = Set}).

%% Notes that a look is due, unless the last look is too recent. Called after the self-check, and when the NIF reports
%% that it has rejected calls.
budget_mark(S = #s{budget = B = #budgeted{took = Took, looked = Looked, share = Share}}) ->
    S#s{budget = B#budgeted{due = now_ms() - Looked >= max(?BUDGET_LEAST, Took * 100000000 div (Share * ?BUDGET_LOOKS))}};
budget_mark(S) -> S.

%% Sends the figures of many functions less often.
budget_tally(S = #s{budget = #budgeted{last = Last}, checks = N}) when map_size(Last) > ?COUNTED_FEW, N rem ?COUNTED_BATCHES =/= 0 -> S;
budget_tally(S) -> tally_look(S).

%% Pauses, and lets the worker look: the NIF has rejected calls.
budget_short(S) -> budget_next(budget_mark(budget_pause(S))).

budget_pause(S = #s{tracer = State, session = Session, last = none, armed = #armed{},
        budget = B = #budgeted{valve = open, rejected = Before, cost = Cost, room = Room, limit = Limit}}) ->
    {Stood, Own} = budget_stood(State, fun() -> trace:process(Session, all, false, [call]) end),
    {_, Rejected} = gate(State, spent),
    Wait = min(?PAUSE_MOST, max(budget_wait(Stood, Limit), ?PAUSE + (Rejected - Before) * Cost * 600 div Room)),
    erlang:start_timer(Wait, self(), budget),
    S#s{budget = B#budgeted{valve = shut, rejected = Rejected, own = B#budgeted.own + Own}};
budget_pause(S) -> S.

%% Returns how many ms a pause must last so that its beginning and its end take no more than the limit. The VM blocks all
%% schedulers then, for 70 ms each with 200,000 processes.
budget_wait(Stood, Limit) -> 2 * Stood * 10 div max(1, Limit).

%% Calls a function that blocks all schedulers. Returns {us, ns}: how long the function took, and the processor time that
%% all schedulers together lost. Derives the second figure from the processor time of this thread, because a busy host
%% takes the processor from this thread, too.
budget_stood(State, Fun) ->
    {Scheduler, Worked, Begun} = {erlang:system_info(scheduler_id), gate(State, worked), now_us()},
    Fun(),
    Ns = case erlang:system_info(scheduler_id) of Scheduler -> gate(State, worked) - Worked; _ -> 0 end,
    {now_us() - Begun, Ns * erlang:system_info(schedulers_online)}.

%% Ends a pause. Waits longer while no batch goes to the client, because the notices would take memory without limit. If
%% pauses would have to be too long for the limit, this one was the last: the NIF alone rejects calls from now on.
budget_resume(S = #s{budget = #budgeted{valve = shut}, metasize = Size}) when Size > ?NOTICES_MOST ->
    erlang:start_timer(?PAUSE_MOST, self(), budget),
    S;
budget_resume(S = #s{tracer = State, budget = B = #budgeted{valve = shut, limit = Limit}, armed = Armed = #armed{request = Request, whom = {Procs, _}}, last = none}) ->
    gate(State, spent),
    gate(State, resume),
    Told = meta(S, notice, [resumed, call]), % before the first event, because the client pairs calls with results, too
    {Stood, Own} = budget_stood(State, fun() ->
        flags(Request#{flags := [call], port_flags => [], seq_trace => false}, Armed#armed{whom = {Procs, []}}, S)
    end),
    Valve = case budget_wait(Stood, Limit) > ?PAUSE_MOST of true -> none; false -> open end,
    Told#s{budget = B#budgeted{valve = Valve, own = B#budgeted.own + Own}};
budget_resume(S) -> S.

%% Lets the worker look as soon as it is idle.
budget_next(S = #s{budget = B = #budgeted{due = true}, helper = none, armed = #armed{}, last = none}) ->
    help(budget, budget, {weak(S), S#s.tracer, B#budgeted.scale, S#s.counted =:= []}, S#s{budget = B#budgeted{due = false, looked = now_ms()}});
budget_next(S) -> S.

budget_looked(#{counts := Counts, counted := Counted, estimates := Estimates, gone := Gone, off := Off, busiest := Busiest, time := Time, room := Room, cost := Cost, was := Was},
        S0 = #s{tracer = State, budget = B0 = #budgeted{last = Last0}}) ->
    Last = maps:merge(Last0, maps:from_list([{MFA, N} || {MFA, {_, _, N}} <- Counts])),
    {ForCalls, Spent} = case Was of none -> {budget_taken_but_calls(S0), B0#budgeted.spent}; _ -> {budget_spent(budget_cost_was(Was, S0)), gate(State, spent)} end,
    Taken = ForCalls + Counted + Time * 1000,
    S = #s{budget = B} = budget_counts(only, [{MFA, Calls} || {MFA, {_, Calls, _}} <- Counts], budget_counts(all, [{MFA, Calls} || {MFA, {Calls, _, _}} <- Counts], S0)),
    S1 = S#s{budget = B#budgeted{last = Last, gone = Gone, off = Off, took = Time, taken = Taken, own = 0, spent = Spent, room = Room, cost = Cost}},
    budget_told(Busiest, budget_scale(budget_counts(estimated, Estimates, S1)));
budget_looked(none, S) -> budget_renew(S);
budget_looked(_, S) -> S. % also after the end

%% Lets a new worker find out which functions are counted or armed. It must know that before it checks modules, because
%% their expected patterns depend on it.
budget_renew(S = #s{helper = none, armed = Armed = #armed{}, budget = B = #budgeted{}, last = none}) ->
    help(budget, budget_restore, {weak(S), Armed, S#s.tracer, B}, S);
budget_renew(S) -> S.

%% Returns the calls a second that the gate of the NIF admits.
budget_calls(#budgeted{room = Room, cost = Cost, scale = Scale}) -> min(16#ffffffff, max(1, Room * Scale div (100 * Cost))).

%% Changes the number of calls that the NIF admits, according to the time that the whole trace has taken since the last
%% change.
budget_scale(S = #s{budget = #budgeted{limit = 0}}) -> S;
budget_scale(S = #s{tracer = State, budget = B = #budgeted{scale = Scale, held = {Since, Before}, share = Share, taken = Taken}}) ->
    Now = now_us(),
    Scaled = case Now - Since of
        Time when Time < 500000 -> B;
        Time ->
            Percent = (Taken - Before) * 100000000 div (Share * Time),
            New = max(?BUDGET_SCALE, min(100, Scale * min(2 * max(1, Percent), ?BUDGET_AIM) div max(1, Percent) + 1)),
            B#budgeted{scale = New, held = {Now, Taken}}
    end,
    gate(State, {budget, budget_calls(Scaled)}),
    S#s{budget = Scaled}.

%% Tells the client once that functions are only counted, and again when their number has doubled.
budget_told({Rate, MFA}, S = #s{budget = B = #budgeted{alone = false, off = Off, told = Told, limit = Limit}}) when Off > 2 * Told ->
    meta(S#s{budget = B#budgeted{told = Off}}, notice, [overhead, {Off, Limit, Rate, MFA}]);
budget_told(_, S) -> S.

%% Adds calls to the next batches. Which: all (all calls of functions that were traced), only (calls that were only
%% counted) or estimated. An estimate of 0 calls is an estimate, too. If the counters count alone, the calls count as
%% seen, because the NIF would have seen them.
budget_counts(Which, Calls, S = #s{budget = B = #budgeted{exact = Exact, calls = All, guessed = Guessed, estimated = Estimated}, counted = Frames, offered = Offered}) ->
    How = budget_how(Which, B),
    Sum = lists:sum([N || {_, N} <- Calls]),
    Seen = fun(N) -> case How < 2 andalso B#budgeted.alone of true -> N; false -> 0 end end,
    S#s{counted = [tally(MFA, N, Seen(N), How) || Exact, {MFA, N} <- Calls, N > 0] ++ Frames,
        offered = Offered + lists:sum([Seen(N) || Exact, {_, N} <- Calls]),
        budget = B#budgeted{calls = All + Sum, guessed = Guessed + case Which of estimated -> Sum; _ -> 0 end,
            estimated = Estimated orelse Which =:= estimated andalso Calls =/= []}}.

%% Returns `counted` of struct etw_tally.
budget_how(estimated, _) -> 2;
budget_how(_, #budgeted{limit = 0}) -> 0;
budget_how(_, #budgeted{alone = true}) -> 1; % a part of the calls may be estimated
budget_how(all, _) -> 1;
budget_how(only, _) -> 3.

%% Adds functions of modules that were loaded later.
budget_added(More, S = #s{budget = B = #budgeted{functions = Functions}}) -> S#s{budget = B#budgeted{functions = More ++ Functions}};
budget_added(_, S) -> S.

%% Reads every counter once more before the session is destroyed. Ends the tracing of calls first, so that every timed
%% call is counted.
budget_end(S = #s{budget = none}) -> S;
budget_end(S) -> case cut_off(S) of none -> budget_last(S); _ -> S#s{budget = none} end.

budget_last(S = #s{session = none}) -> S#s{budget = none};
budget_last(S0 = #s{session = {_, Weak}, budget = #budgeted{alone = Alone, functions = Functions, last = Last, gone = Gone, limit = Limit, costs = Costs, looked = Looked}}) ->
    trace:process(Weak, all, false, [call]),
    Calls = [{MFA, case maps:get(MFA, Last, 0) of L when N >= L -> N - L; _ -> N end} ||
        MFA <- lists:usort(Functions ++ maps:keys(Last)), not is_map_key(MFA, Gone), {call_count, N} <- [trace:info(Weak, MFA, call_count)], is_integer(N), N > 0],
    {Estimates, _} = budget_estimate(now_us(), Gone),
    {Off, On} = lists:partition(fun({MFA, _}) -> Alone orelse not lists:any(fun(Scope) -> budget_traces(Weak, MFA, Scope) end, [local, global, meta]) end, Calls),
    S = budget_counts(estimated, Estimates, budget_counts(only, Off, budget_counts(all, On, S0))),
    Time = max(1, now_ms() - Looked),
    {Taken, Rejected} = budget_taken(case budget_was(element(1, Costs), [{N * 1000 div Time, MFA} || {MFA, N} <- On]) of none -> S; Was -> budget_cost_was(Was, S) end),
    (case Limit of 0 -> S; _ -> meta(S, notice, [overhead, {Taken, Limit, Rejected, budget_untraced(S)}]) end)#s{budget = none}.

%% Returns the calls that made no event because of the budget: {exact | estimated, Calls}, or unknown if the counters
%% include calls that no probe wants.
budget_untraced(#s{budget = #budgeted{alone = true, guessed = Guessed, estimated = Estimated}}) ->
    {case Estimated of true -> estimated; false -> exact end, Guessed};
budget_untraced(#s{tracer = State, budget = #budgeted{exact = true, calls = Calls, before = {A0, _}, estimated = Estimated}}) ->
    {A, _} = gate(State, spent),
    {case Estimated of true -> estimated; false -> exact end, max(0, Calls - (A - A0))};
budget_untraced(#s{tracer = State, budget = #budgeted{told = 0, before = {_, R0}}}) ->
    case gate(State, spent) of {_, R0} -> {exact, 0}; _ -> unknown end;
budget_untraced(_) -> unknown.

%% Returns {Hundredths of a percent of all schedulers' time that the trace has taken so far, calls that the NIF
%% rejected}.
budget_taken(S = #s{tracer = State, budget = #budgeted{begun = Begun, before = {_, Refused}}}) ->
    {_, Rejected} = gate(State, spent),
    {budget_spent(S) * 10 div (max(1, now_us() - Begun) * erlang:system_info(schedulers_online)), Rejected - Refused}.

%% Sets the mean cost of a call since the last look. The cost depends on the rates of the functions, which only a look
%% finds out. If a look has not read the functions that were called, the next look charges for their calls.
budget_cost_was(Cost, S = #s{budget = B}) -> S#s{budget = B#budgeted{cost = Cost}}.

%% Measures the processor time in which the owner drains, makes batches and sends them. Uses the time of its thread: the
%% thread runs only the owner between two messages, unless the owner is scheduled out.
budget_works(S = #s{tracer = State, budget = B = #budgeted{}}) -> S#s{budget = B#budgeted{works = {erlang:system_info(scheduler_id), gate(State, worked)}}};
budget_works(S) -> S.

budget_rests(S = #s{tracer = State, budget = B = #budgeted{works = {Scheduler, Since}, own = Own}}) ->
    Ns = case erlang:system_info(scheduler_id) of Scheduler -> min(?OWN_MOST, gate(State, worked) - Since); _ -> 0 end,
    S#s{budget = B#budgeted{works = none, own = Own + Ns}};
budget_rests(S) -> S.

budget_taken_but_calls(#s{budget = #budgeted{own = Own, taken = Taken}}) -> Taken + Own.

%% Returns the ns that the trace has taken so far. A rejected call costs more than half of an admitted one.
budget_spent(#s{tracer = State, budget = #budgeted{cost = Cost, own = Own, spent = {A0, R0}, taken = Taken}}) ->
    {A, R} = gate(State, spent),
    Taken + Own + (A - A0) * Cost + (R - R0) * Cost * 3 div 5.
