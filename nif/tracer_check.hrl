%% The self-check: each second the worker looks whether what is armed is still traced, and arms anew what is loaded anew; what is gone
%% otherwise is said. The owner itself looks whether its session and its module are still there, and has one more look at the end.

-define(CHECK_MOST, 200). % modules whose patterns are looked at in one check
-define(BLIND_MOST, 50). % built-in functions that are armed again in one
-define(WHOM_MOST, 8). % processes that were chosen, and ports, that are looked at in one
-define(LATE_MOST, 10). % checks that are due while the worker is at something: then it is held up

%% ---- in the owner -------------------------------------------------------------------------------------------------

check(S0 = #s{armed = #armed{}}) ->
    case cut_off(S0) of
        none ->
            S0#s.namer ! {others, S0#s.key, false},
            S = tally_look(S0),
            Timer = erlang:start_timer(?CHECK, self(), check),
            case S#s.helper of
                none -> help(check, check, {weak(S), S#s.armed, {self(), get(ours), S#s.tracer, S#s.options}}, S#s{timer = Timer, late = 0});
                _ -> check_late(S#s{timer = Timer, late = S#s.late + 1})
            end;
        Why ->
            stop(S0#s{guard = Why})
    end;
check(S) ->
    S.

%% Somebody may have suspended the worker.
check_late(S = #s{late = ?LATE_MOST, unchecked = false}) -> meta(S#s{unchecked = true}, notice, [unchecked, timeout]);
check_late(S) -> S.

%% Anybody on the node may have destroyed the session, or have taken away the module: whoever asks for it by its name - the VM for
%% each event - does not find us any more.
cut_off(#s{session = none}) -> none;
cut_off(S) ->
    case lists:member(weak(S), trace:session_info(all)) of
        false -> destroyed;
        true ->
            case erlang:module_loaded(?MODULE) andalso not erlang:check_old_code(?MODULE) of
                true -> none;
                false -> gone
            end
    end.

there(S) ->
    case cut_off(S) of none -> ok; Why -> finish(Why, S) end.

%% Before the patterns are taken off: what has lost them since it was looked at is armed by nobody any more, and said. What the
%% worker is at may have changed them itself. Every module is looked at, at some microseconds each.
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

%% Who was chosen is not asked: one that collects its garbage would hold us up. That of others the worker may be at taking off.
parting_untraced(S = #s{armed = Armed = #armed{request = Request = #{flags := Flags}, whom = {Procs, Ports}}}) ->
    Chosen = {lists:filter(fun is_atom/1, Procs), lists:filter(fun is_atom/1, Ports)},
    {_, Stopped} = untraced(weak(S), Armed#armed{request = Request#{flags := without(Flags, [garbage_collection])}, whom = Chosen},
        {self(), [], S#s.tracer, S#s.options}),
    Stopped -- Armed#armed.untraced.

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% What must be looked at each second: code that is loaded anew has lost its patterns, and nobody tells us.
%%
%% `trace:function(Session, on_load, …)` is no help: what it is given holds for every function of every module that is
%% loaded from then on, whatever was selected; a specification cannot ask which function it is called for; and of several
%% probes it takes one. Between a load and the next look the node would report calls that nobody asked for. A module that
%% is named and lies in the code path is loaded before it is armed, so its first call is seen.
%%
%% The node may load code while it is being armed. So the checksum is that of before its functions were listed (Sums), and the
%% function is the first one that was set (tracer_plan.hrl): if that one is traced, none was lost while the others were set.
watched(Request, Calls, Sums) ->
    Modules = lists:foldl(fun({{M, F, A}, Scope, _}, Acc) ->
        case Acc of
            #{M := {_, FA, Scope}} when FA > {F, A} -> Acc#{M := setelement(2, maps:get(M, Acc), {F, A})};
            #{M := _} -> Acc;
            _ -> Acc#{M => {case Sums of #{M := Sum} when Sum =/= gone -> Sum; _ -> md5(M) end, {F, A}, Scope}} % or loaded for its name
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
    %% What came back without any function that was asked for is not looked for again.
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

%% A few hundred modules are looked at closely each time, in turn; every one's checksum always.
turn(#armed{turn = [], modules = Modules}) -> turn(maps:keys(Modules));
turn(#armed{turn = Turn}) -> turn(Turn);
turn(Turn) ->
    {Close, Later} = lists:split(min(?CHECK_MOST, length(Turn)), Turn),
    {maps:from_keys(Close, true), Later}.

%% The same code loaded again has the same checksum and no patterns.
changed(Session, M, {Md5, FA, Scope}, Close) ->
    pace(),
    md5(M) =/= Md5 orelse (Close andalso not traced(Session, M, FA, Scope)).

%% {Their #armed.modules, those that could not be armed}: one of them does not keep the others from it.
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
traced(Session, M, {F, A}, meta) ->
    trace:info(Session, {M, F, A}, meta) =/= {meta, false};
traced(Session, M, {F, A}, Scope) ->
    trace:info(Session, {M, F, A}, traced) =:= {traced, Scope}.

%% On the versions that need it: another session, or legacy tracing, that stops tracing a built-in function stops ours too, and
%% `info` still says that it is traced. Whoever did may be gone by now, so some are armed again each time, in turn.
blind(Session, #armed{builtins = Builtins}, Gates) ->
    case lists:keymember(bif, 1, Gates) of
        true ->
            {Now, Later} = lists:split(min(?BLIND_MOST, length(Builtins)), Builtins),
            [trace:function(Session, MFA, Ms, [Scope]) || {MFA, Scope, Ms} <- Now],
            Later ++ Now;
        false ->
            Builtins
    end.

%% Whoever on the node has a session's name can take off the flags of its processes, what it has of messages, and the system tracer:
%% {#armed.whom, [what somebody has taken off]}. Of all processes it shows in what those that come have, and in one that is always
%% there; of those that were chosen some are looked at each time, in turn. Who has ended has lost nothing.
untraced(Session, #armed{request = Request, whom = {Procs, Ports}, effects = #{stops := Stops}}, {Owner, Ours, Tracer, _}) ->
    {Some, Later} = lists:split(min(?WHOM_MOST, length(Procs)), Procs),
    {SomePorts, LaterPorts} = lists:split(min(?WHOM_MOST, length(Ports)), Ports),
    %% These go with what they are for.
    Flags = without(maps:get(flags, Request), [silent, set_on_first_spawn, set_on_first_link]),
    Lacks = fun(Whos, New, There, Wanted) ->
        lists:any(fun(Who) ->
            case trace:info(Session, Who, flags) of {flags, Has} -> without(Wanted, Has) =/= []; undefined -> false end
        end, lists:flatmap(fun(all) -> [New | There]; (new) -> [New]; (existing) -> There; (P) -> [P] -- Ours end, Whos))
    end,
    {{Later ++ Some, LaterPorts ++ SomePorts},
        [processes || not Stops andalso Lacks(Some, new_processes, [whereis(init)], Flags)] ++
        [ports || Lacks(SomePorts, new_ports, [], maps:get(port_flags, Request, []))] ++
        [What || {Type, Kind, What} <- [{send, send, sends}, {recv, 'receive', receives}],
            lists:any(fun(#{type := T}) -> T =:= Type end, maps:get(probes, Request)),
            trace:info(Session, Kind, match_spec) =:= {match_spec, false}] ++
        [seq_trace || maps:get(seq_trace, Request, false), erlang:system_info(sequential_tracer) =/= {sequential_tracer, seq_mine(Owner, Tracer)}]}.
