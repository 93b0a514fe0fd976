%% SPDX-License-Identifier: Apache-2.0
%% The self-check: each second the worker checks that the armed functions and processes are still traced. It arms
%% reloaded modules again, and reports everything else that somebody on the node has stopped. The owner checks that its
%% session and its module still exist, and checks the patterns once more at the end.

-define(CHECK_MOST, 200). % modules whose patterns one check tests
-define(BLIND_MOST, 50). % built-in functions that one check arms again
-define(WHOM_MOST, 8). % selected processes, and selected ports, that one check looks at
-define(LATE_MOST, 10). % if so many checks become due while the worker is busy, it counts as stuck

%% ---- in the owner -------------------------------------------------------------------------------------------------

check(S0 = #s{armed = #armed{}}) ->
    case cut_off(S0) of
        none ->
            S0#s.namer ! {others, S0#s.key, false},
            S = budget_mark(budget_tally(counters_read(S0#s{checks = S0#s.checks + 1}))),
            Timer = erlang:start_timer(?CHECK, self(), check),
            case S#s.helper of
                none -> help(check, check, {weak(S), S#s.armed, {self(), get(ours), S#s.tracer, (S#s.options)#{followed => follow_pids(S)}}}, S#s{timer = Timer, late = 0});
                _ -> check_late(S#s{timer = Timer, late = S#s.late + 1})
            end;
        Why ->
            stop(S0#s{guard = Why})
    end;
check(S) ->
    S.

%% Reports a stuck worker, for example one that somebody has suspended.
check_late(S = #s{late = ?LATE_MOST, unchecked = false}) -> meta(S#s{unchecked = true}, notice, [unchecked, timeout]);
check_late(S) -> S.

%% Returns `destroyed` if somebody on the node has destroyed the session, `gone` if somebody has removed the module,
%% else none. The VM looks up the module by name for each event, so a module that is not the current one gets no events.
cut_off(#s{session = none}) -> none;
cut_off(S) ->
    case lists:member(weak(S), trace:session_info(all)) of
        false -> destroyed;
        true ->
            case is_current() of
                true -> none;
                false -> gone
            end
    end.

is_current() -> erlang:module_loaded(?MODULE) andalso not erlang:check_old_code(?MODULE).

there(S) ->
    case cut_off(S) of none -> ok; Why -> finish(Why, S) end.

%% Makes the last check before the owner destroys the session: reports modules that have lost their patterns since the
%% last self-check. Skips modules while the worker may be changing patterns. Looks at every module, which takes some
%% microseconds each.
parting(S = #s{armed = #armed{modules = Modules, unarmed = Unarmed}, helper = Helper}) ->
    case cut_off(S) of
        none ->
            Close = case Helper of {_, {arm, _, _}} -> false; _ -> true end,
            Last = maps:fold(fun(M, Seen = {Before, _, _}, Acc) ->
                case md5(M) of
                    gone when Before =:= gone -> Acc;
                    gone -> meta(Acc, module, [gone, M]);
                    Md5 when map_get(M, Unarmed) =:= Md5 -> Acc;
                    _ ->
                        case changed(weak(S), M, Seen, Close) of
                            true -> meta(Acc, module, [blind, M]);
                            false -> Acc
                        end
                end
            end, S, Modules),
            lists:foldl(fun(What, Acc) -> meta(Acc, notice, [untraced, What]) end, Last, case Close of true -> parting_untraced(S); false -> [] end);
        _ ->
            S
    end;
parting(S) -> S.

%% Checks processes and messages before the session is destroyed. Does not ask selected processes, because a process
%% that collects garbage would block the owner.
parting_untraced(S = #s{armed = Armed = #armed{request = Request = #{flags := Flags}, whom = {Procs, Ports}}}) ->
    Chosen = {lists:filter(fun is_atom/1, Procs), lists:filter(fun is_atom/1, Ports)},
    {_, Stopped} = untraced(weak(S), Armed#armed{request = Request#{flags := without(Flags, [garbage_collection])}, whom = Chosen},
        {self(), [], S#s.tracer, S#s.options}),
    Stopped -- Armed#armed.untraced.

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% Returns the modules to check each second: reloaded code has no patterns, and the VM does not report that.
%%
%% `trace:function(Session, on_load, …)` does not help. Its specification applies to every function of every module that
%% is loaded later, and a specification cannot ask for the function's name. There is also only one such specification,
%% not one for each probe. Until the next check, the node would report calls that nobody asked for. If a probe names a
%% module in the code path, the module is loaded before it is armed, so its first call is seen.
%%
%% The node may load code during the arming. So a module's checksum is the one from before its functions were listed
%% (Sums), and its function is the first function that was set (tracer_plan.hrl). If that function is still traced, no
%% pattern was lost during the arming.
watched(Request, Calls, Sums) ->
    Modules = lists:foldl(fun({{M, F, A}, Scope, _}, Acc) ->
        case Acc of
            #{M := {_, FA, Scope}} when FA > {F, A} -> Acc#{M := setelement(2, maps:get(M, Acc), {F, A})};
            #{M := _} -> Acc;
            %% Loaded because a probe names it
            _ -> Acc#{M => {case Sums of #{M := Sum} when Sum =/= gone -> Sum; _ -> md5(M) end, {F, A}, Scope}}
        end
    end, #{}, Calls),
    Builtins = [Call || Call = {{M, F, A}, _, _} <- Calls, erlang:is_builtin(M, F, A)],
    #armed{request = Request, worker = self(), modules = Modules, loaded = lists:usort(maps:keys(Modules) ++ maps:keys(Sums)), builtins = Builtins}.

md5(M) -> try erlang:get_module_info(M, md5) catch error:_ -> gone end.

sums(Modules) -> maps:from_list([begin pace(), {M, md5(M)} end || M <- Modules]).

check_do({Session, Armed = #armed{request = Request0, effects = Effects, modules = Modules}, Boot}) ->
    Meets = gc_meets(Session, Request0, Effects),
    Request = case Meets of true -> gc_left(Session, Request0); false -> Request0 end,
    Loaded = lists:usort(erlang:loaded()),
    {Close, Later} = turn(Armed),
    Gone = [M || {M, {Md5, _, _}} <- maps:to_list(Modules), Md5 =/= gone, md5(M) =:= gone],
    Changed = [M || {M, Seen} <- maps:to_list(Modules), md5(M) =/= gone, changed(Session, M, Seen, is_map_key(M, Close))],
    Builtins = blind(Session, Armed, gates()),
    {Whom, Stopped} = untraced(Session, Armed#armed{request = Request}, Boot),
    Untraced = Stopped -- Armed#armed.untraced,
    Known = maps:merge(Modules, maps:from_list([{M, setelement(1, maps:get(M, Modules), gone)} || M <- Gone])),
    ToArm = Changed ++ ordsets:subtract(Loaded, Armed#armed.loaded),
    Sums = sums(ToArm),
    {Again, Failed} = again(Session, Request, ToArm, Boot),
    %% A reloaded module without any wanted function is checked only for its checksum.
    Without = (Changed -- maps:keys(Again)) -- Failed,
    Other = maps:map(fun(M, {_, FA, Scope}) -> {maps:get(M, Sums), case lists:member(M, Without) of true -> none; false -> FA end, Scope} end,
        maps:without(maps:keys(Again), maps:with(Changed, Known))),
    Unarmed = maps:with(Failed ++ Without, Sums),
    New = Armed#armed{effects = case Meets of true -> exactly(mode(Session), element(2, wanted(Request))); false -> Effects end, loaded = Loaded, turn = Later, request = Request, builtins = Builtins, whom = Whom,
        untraced = Armed#armed.untraced ++ Untraced,
        modules = maps:merge(maps:merge(Known, Other), Again), unarmed = maps:merge(maps:without(maps:keys(Again), Armed#armed.unarmed), Unarmed)},
    {ok, New, [{guard, garbage_collection} || Meets] ++ [{untraced, What} || What <- Untraced] ++ [{gone, M} || M <- Gone] ++
        [{rearmed, M} || M <- maps:keys(Again)] ++
        [{unarmed, M} || {M, Md5} <- maps:to_list(Unarmed), maps:get(M, Armed#armed.unarmed, none) =/= Md5]}.

%% Chooses the modules whose patterns this check tests: CHECK_MOST of them, in turn. Each check compares the checksums
%% of all modules.
turn(#armed{turn = [], modules = Modules}) -> turn(maps:keys(Modules));
turn(#armed{turn = Turn}) -> turn(Turn);
turn(Turn) ->
    {Close, Later} = lists:split(min(?CHECK_MOST, length(Turn)), Turn),
    {maps:from_keys(Close, true), Later}.

%% Returns true if a module was reloaded. The same code loaded again has the same checksum, so a close look also tests a
%% pattern.
changed(Session, M, {Md5, FA, Scope}, Close) ->
    pace(),
    md5(M) =/= Md5 orelse (Close andalso not traced(Session, M, FA, Scope)).

%% Arms reloaded modules again. Returns {their #armed.modules, those that failed}. A module that fails does not stop the
%% others.
again(_, _, [], _) -> {#{}, []};
again(Session, Request, Mods, Boot) ->
    try arm_do({Session, Request#{allow_empty => true}, Mods, Boot, none}) of
        {ok, #armed{modules = Modules}, _} -> {Modules, []}
    catch
        _:_ when tl(Mods) =/= [] ->
            {Armed, Failed} = lists:unzip([again(Session, Request, [M], Boot) || M <- Mods]),
            {lists:foldl(fun maps:merge/2, #{}, Armed), lists:append(Failed)};
        _:_ ->
            {#{}, Mods}
    end.

traced(_, _, none, _) -> true;
traced(Session, M, {F, A}, call_count) ->
    %% If the budget has removed the counter of this function, it has set one on module_info/0.
    budget_is_counted(Session, {M, F, A}) orelse budget_is_counted(Session, {M, module_info, 0});
traced(Session, M, {F, A}, meta) ->
    trace:info(Session, {M, F, A}, meta) =/= {meta, false};
traced(Session, M, {F, A}, Scope) ->
    trace:info(Session, {M, F, A}, traced) =:= {traced, Scope}
        orelse budget_is_counted(Session, {M, F, A}). % counter_do/2 has replaced its pattern

%% Arms some built-in functions again in each check, in turn. On some versions of the VM (gate `bif`), a session that
%% stops tracing a built-in function also stops our tracing of it, and trace:info/3 still reports it as traced. The
%% other session may be gone by now.
blind(Session, #armed{builtins = Builtins}, Gates) ->
    case lists:keymember(bif, 1, Gates) of
        true ->
            {Now, Later} = lists:split(min(?BLIND_MOST, length(Builtins)), Builtins),
            [trace:function(Session, MFA, Ms, [Scope]) || Call = {MFA, _, _} <- Now, {Scope, Ms} <- armed_now(Session, Call)],
            Later ++ Now;
        false ->
            Builtins
    end.

%% Returns the patterns that a function has now. With a budget the counter is not among them, because setting it again
%% would reset it.
armed_now(Session, {MFA, call_count, _}) -> budget_armed(Session, MFA);
armed_now(_, {_, Scope, Ms}) -> [{Scope, Ms}].

%% Finds flags, message tracing and system tracing that another process on the node has stopped; a process needs only
%% a weak handle of the session for this. Returns {Processes, Ports} in the order of the next checks, and a list of the
%% parts that were stopped. If all processes are traced, checks the flags of new processes and of one process that
%% always exists. Otherwise checks a few selected processes each time, in turn. A process that has ended counts as
%% unchanged. Without `asks` this waits for each process, in the worker: a trace would show the events of a looker.
untraced(Session, #armed{request = Request, whom = {Procs, Ports}, effects = #{stops := Stops}, budget = Budget}, {Owner, Ours, Tracer, Options}) ->
    {Some, Later} = lists:split(min(?WHOM_MOST, length(Procs)), Procs),
    {SomePorts, LaterPorts} = lists:split(min(?WHOM_MOST, length(Ports)), Ports),
    %% These flags change during a trace: an action changes `silent`, and the VM clears the others after use.
    Flags = without(maps:get(flags, Request), [silent, set_on_first_spawn, set_on_first_link]),
    Followed = maps:get(followed, Options, #{}),
    Asks = maps:get(asks, Options, fun(Whos, Ask) -> {[{Who, Ask(Who)} || Who <- Whos], []} end),
    Lacks = fun(Whos, New, There, Wanted) ->
        {Rows, _} = Asks(lists:flatmap(fun(all) -> [New | There]; (new) -> [New]; (existing) -> There; ({named, A}) -> [maps:get(A, Followed, none)] -- [none | Ours]; (P) -> [P] -- Ours end, Whos),
            fun(Who) -> case trace:info(Session, Who, flags) of {flags, Has} -> without(Wanted, Has) =/= []; undefined -> false end end),
        lists:keymember(true, 2, Rows)
    end,
    {{Later ++ Some, LaterPorts ++ SomePorts},
        [processes || not Stops andalso Budget =:= none andalso Lacks(Some, new_processes, [whereis(init)], Flags)] ++
        [ports || Lacks(SomePorts, new_ports, [], maps:get(port_flags, Request, []))] ++
        [What || {Type, Kind, What} <- [{send, send, sends}, {recv, 'receive', receives}],
            lists:any(fun(#{type := T}) -> T =:= Type end, maps:get(probes, Request)),
            trace:info(Session, Kind, match_spec) =:= {match_spec, false}] ++
        [seq_trace || maps:get(seq_trace, Request, false), erlang:system_info(sequential_tracer) =/= {sequential_tracer, seq_mine(Owner, Tracer)}]}.
