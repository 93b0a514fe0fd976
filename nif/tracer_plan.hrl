%% SPDX-License-Identifier: Apache-2.0
%% Plans and makes the calls of trace:function that set the patterns of a session. Runs in the worker.
%%
%% Every call costs the same, whatever it names and even if it changes nothing, because the VM synchronises all
%% schedulers. So the plan has as few calls as possible: a default for all modules, then whole modules, then single
%% functions.
%%
%% A whole module includes functions that nobody asked for: module_info and compiler-generated functions. Most of the
%% calls of trace:function would be for clearing these functions, which are seldom called. If there are many of them,
%% the plan leaves them armed, and the NIF drops their events (unasked.h). The NIF reports those that are called often,
%% and the worker clears them.
%%
%% A value in a plan is the pattern that a function gets: a match specification, `false` for no pattern, or `free` if
%% any pattern will do.

-define(LEFT_LEAST, 20). % fewer unwanted functions than this are all cleared, so that the NIF need not drop events
-define(CLEARED_MOST, 50). % busy functions that are cleared in one job
-define(STEPS_MOST, 500). % most single functions to set while calls are traced already

%% Returns {[{Pattern, Specification}] in order, #{MFA => Specification} of the free functions that will be armed}. Map:
%% the wanted patterns. Has: the current patterns; unchanged functions are not touched. Free(MFA): true if the function may
%% stay armed. Fresh: calls make no events yet. Otherwise a pattern for all modules would briefly show the events of every
%% module, and a pattern for a whole module would briefly show the events of its unwanted functions. The plan then sets a
%% whole module only if no function in it differs, or if there are more than STEPS_MOST single functions.
plan(_, Map, Has, _, _) when map_size(Map) =:= 0, map_size(Has) =:= 0 -> {[], #{}};
plan(Scope, Map, Has, Fresh, Free) ->
    ByModule = fun(M) -> maps:groups_from_list(fun({{Module, _, _}, _}) -> Module end, maps:to_list(M)) end,
    {Wanted, Set} = {ByModule(Map), ByModule(Has)},
    Modules = lists:usort(maps:keys(Wanted) ++ maps:keys(Set)),
    Over = fun(Mods, Default, Whole) -> plan_over(Mods, {Wanted, Set, Scope, Default, Whole, Free}) end,
    Common = common(maps:values(Map)),
    Single = {Off, _, _} = Over(Modules, false, Fresh),
    Loaded = erlang:loaded(),
    All = case Fresh andalso Off > 20 andalso Off + 1 > length(Loaded) - length(Modules) of
        true -> Over(Loaded, Common, true);
        false -> {Off, [], #{}}
    end,
    case All of
        {On, Steps, Left} when On + 1 < Off -> {[{{'_', '_', '_'}, Common} | Steps], Left};
        _ when not Fresh, Off > ?STEPS_MOST -> {_, Steps, Left} = Over(Modules, false, true), {Steps, Left};
        _ -> {_, Steps, Left} = Single, {Steps, Left}
    end.

%% Returns {how many calls, the calls, the free functions that will be armed}. A whole module comes before the functions
%% that differ in it.
plan_over(Modules, Given) ->
    {N, Steps, Left} = lists:foldl(fun(M, {N, Steps, Left}) ->
        pace(),
        {Mine, Stays} = plan_module(M, Given),
        {N + length(Mine), lists:reverse(Mine, Steps), [Stays | Left]}
    end, {0, [], []}, Modules),
    {N, lists:reverse(Steps), maps:from_list(lists:append(Left))}.

plan_module(M, {Wanted, Set, Scope, Default, Whole, Free}) ->
    Want = maps:get(M, Wanted, []),
    Has = maps:from_list(maps:get(M, Set, [])),
    Rest = maps:from_list([{MFA, case Free(MFA) of true -> free; false -> false end} ||
        MFA <- [{M, F, A} || {F, A} <- listed(M, Scope)] ++ maps:keys(Has)]),
    All = lists:sort(maps:to_list(maps:merge(Rest, maps:from_list(Want)))),
    Named = by_name(All),
    Mine = common([V || {_, V} <- All, V =/= free]),
    Plain = steps_from(Named, fun(MFA) -> maps:get(MFA, Has, Default) end),
    Short = [{{M, '_', '_'}, Mine} | steps_from(Named, fun(_) -> Mine end)],
    Kept = [V || {MFA, V} <- All, is_map_key(MFA, Has), V =/= Mine, V =/= false, V =/= free],
    Allowed = Whole orelse Mine =:= false orelse tl(Short) =:= [],
    case length(Short) < length(Plain) andalso Kept =:= [] andalso Allowed of
        true -> {Short, [{MFA, Mine} || {MFA, free} <- All, Mine =/= false]};
        false -> {Plain, [{MFA, Now} || {MFA, free} <- All, Now <- [maps:get(MFA, Has, Default)], Now =/= false]}
    end.

%% Groups the functions of a module, which are sorted, by name.
by_name([]) -> [];
by_name([First = {{_, F, _}, _} | Rest]) ->
    {Same, Others} = lists:splitwith(fun({{_, G, _}, _}) -> G =:= F end, Rest),
    [[First | Same] | by_name(Others)].

steps_from(Named, Has) ->
    lists:flatmap(fun(Same) -> alike(Same, Has) end, Named).

%% Returns the steps for the functions of one name. One call sets all of them if each is to have the same new value.
alike(Same, Has) ->
    Steps = [Step || Step = {MFA, V} <- Same, V =/= free, V =/= Has(MFA)],
    case {Steps, lists:usort([V || {_, V} <- Steps])} of
        {[{{M, F, _}, _}, _ | _], [V]} when length(Steps) =:= length(Same) -> [{{M, F, '_'}, V}];
        _ -> Steps
    end.

common(List) ->
    Counts = lists:foldl(fun(X, Acc) -> Acc#{X => maps:get(X, Acc, 0) + 1} end, #{}, List),
    {_, Most} = maps:fold(fun(X, N, Best = {Max, _}) -> if N > Max -> {N, X}; true -> Best end end, {0, false}, Counts),
    Most.

%% Makes the planned calls. Functions: the total number, for the progress.
set(Session, Scope, Steps, Functions) ->
    Options = case Scope of {counters, List} -> List; _ -> [Scope] end,
    All = length(Steps),
    lists:foldl(fun({MFA, Ms}, N) ->
        progress(Functions * N div All, Functions),
        try trace:function(Session, MFA, Ms, Options) catch error:_ -> throw({bad_spec, mfa_text(MFA)}) end,
        progress_due(),
        rested(),
        N + 1
    end, 0, Steps),
    ok.

%% ---- functions that nobody asked for ------------------------------------------------------------------------------

-define(ACTING, [display, disable_trace, enable_trace, set_seq_token, set_tcw, silent, trace]).
-define(STACK_READING, [current_stacktrace, process_dump]).

%% Returns true if unwanted functions may stay armed. Returns false if their calls would have an effect, if return_to is
%% traced, or if match specifications read stacks: the frames that the VM keeps for pending results of unwanted
%% functions would show in a stack trace.
may_leave(fallback, _, _) -> false;
may_leave(_, #{flags := Flags, frames := Frames}, Read) ->
    Specs = each_spec([Ms || #{match_spec := {_, Ms}} <- Read]),
    Spoiled = ?ACTING ++ case Frames of true -> ?STACK_READING; false -> [] end,
    not lists:member(return_to, Flags)
        andalso not lists:any(fun({Name, _}) -> lists:member(Name, Spoiled) end, calls([Body || Ms <- Specs, {_, _, Body} <- clauses(Ms)])).

%% Adds the functions that a probe names although they are compiler-generated.
kept(Functions, Before) ->
    maps:merge(Before, maps:from_keys([MFA || MFA = {_, F, _} <- Functions, not written(F)], true)).

is_free(Kept) -> fun(MFA = {_, F, _}) -> not written(F) andalso not is_map_key(MFA, Kept) end.

%% Clears the functions that the NIF reports as busy. Ignores a function that was not left armed, because the NIF may
%% mix up two functions.
unasked_do({Session, Tracer}) ->
    case get(function) of
        {Session, Set, {left, Kept}} ->
            Free = is_free(Kept),
            Busy = lists:sublist([{Scope, MFA} || MFA <- lists:usort(unasked(Tracer, busy)), Free(MFA),
                Scope <- [local, global, meta], is_map_key({Scope, MFA}, Set)], ?CLEARED_MOST),
            [trace:function(Session, MFA, false, [Scope]) || {Scope, MFA} <- Busy],
            armed(Session, maps:without(Busy, Set), {left, Kept}),
            {ok, length(Busy)};
        _ ->
            unasked(Tracer, busy),
            {ok, 0}
    end.

%% ---- slices -------------------------------------------------------------------------------------------------------

-define(SLICE_US, 2000).
-define(PROGRESS_MS, 500).

%% Pauses the worker at the end of its time slice if other processes wait for a scheduler, so that they can run on a
%% node with one scheduler. The worker has priority high: at normal priority each of its steps would wait for every busy
%% process of the node. Every loop over modules, functions or processes calls this.
pace() ->
    case get(slice) of
        End when is_integer(End) -> erlang:monotonic_time(microsecond) < End orelse pause();
        undefined -> rested()
    end.

pause() ->
    progress_due(),
    erlang:statistics(total_run_queue_lengths) > 0 andalso receive after 1 -> ok end,
    rested().

%% Starts a new slice, because other processes have run: a call of trace:function suspends the worker too.
rested() -> put(slice, erlang:monotonic_time(microsecond) + ?SLICE_US).

%% Records the progress of the job. The worker reports it to the client every PROGRESS_MS.
progress(Done, All) -> put(progress, {Done, All}), ok.

progress_due() ->
    case {get(owner), now_ms(), get(progressed)} of
        {Owner, Now, Last} when is_pid(Owner), is_integer(Last), Now - Last >= ?PROGRESS_MS ->
            put(progressed, Now),
            Owner ! {progress, self(), get(progress)};
        _ ->
            ok
    end.
