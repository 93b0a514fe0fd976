%% Arming: from the request to patterns and flags in the session.
%%
%% The patterns are set by the worker through a weak handle (it may take hundreds of milliseconds for a node's every
%% function, and the owner has a lease to keep); the flags of processes come last, from the owner: until then nothing
%% is traced, and a failure half-way has traced nobody.
%%
%% Who is armed already and asks for other probes, but of the same processes, keeps the session: only the functions whose
%% specification changes are touched, and no event of the others is lost or comes twice.
%%
%% Request: #{probes => [Probe], procs => [Who], ports => [Who], flags => [atom], port_flags => [atom], kinds => Mask,
%%            system => [{Event, Value}], seq_trace => boolean, allow_empty => boolean, unsafe => boolean, force => boolean,
%%            tally => boolean, hold => boolean, filter => Bin, mark => {First, Last}}
%% filter: which calls a tally counts (struct etw_filter_step), <<>>: all
%% hold: calls and results are sent where the filter may come to showing them, and not before the result comes; only where every
%%       call reports it, else they are all sent
%% mark: optional, for who arms again and again: every event of a match specification says whose it is, by the probe's id,
%% which goes on meaning what it meant. The notice {armed, First} stands in the stream in front of the first event that
%% answers the request, {armed, Last}, where that is another number, behind the last one that does not.
%% Probe: #{id, type => call|send|recv, scope => local|global|meta, select => [Selector], atoms => [Bin],
%%          match_spec => {any, Bin} | {arity, #{Arity => Bin}}}, Bin: an encoded match specification, or `true`; and perhaps
%%          program => Bin, encoded: the same for the NIF (tracer_program.hrl)
%% Who: all | existing | new | {pid, Bin} | {name, Bin} | {via, Module, EncodedName, Text} | {application, Bin} | {initial, Bin}
%%      | {port, Bin} | {driver, Bin}
%% Mask: bit K is set when events of kind K (etrace_wire.h) are wanted; those that a flag brings besides are never made.
%% Answer: #{probes => [#{id, functions, modules}], processes => N, ports => N, warning => [Bin]}; what is asked for can be
%% looked at and measured before: tracer_cost.hrl

-record(armed, {
    request,
    worker,         % that knows the patterns: armed/2
    modules,        % #{Module => {md5, {F, A}, local | global}}: one function of each shows whether it is still traced
    builtins = [],  % [{MFA, Scope, Specification}]: what another session's trace-off could blind (gate `bif`)
    loaded = [],    % the node's modules when they were last looked at
    early,          % no specification can reject a call
    plain,          % none has a message for one, nor for what is sent
    returns,        % whose calls have their return traced: all | none | some | no_calls
    whom = {[], []}, % processes and ports
    system = none,  % {the process that hears system events, its session}
    unarmed = #{},  % #{Module => md5}: that could not be armed again, or has nothing left of what was asked for, which was said
    steady = true,  % no specification changes what is traced of a process
    untraced = [],  % what else somebody has stopped, as it was said (tracer_check.hrl)
    turn = []       % modules that the next check looks at more closely
}).

-define(CHECK, 1000). % ms until the next self-check (tracer_check.hrl)
-define(STEPS_MOST, 500). % functions that are set one by one where calls are traced already; each takes some 0.14 ms

arm(Id, _, S = #s{last = Last}) when Last =/= none -> reply(Id, {error, stopping}, S);
arm(Id, Request, S = #s{helper = {_, _}, next = none}) -> S#s{next = {Id, Request}};
arm(Id, Request, S = #s{helper = {_, _}, next = {Before, _}}) -> reply(Before, {error, busy}, S#s{next = {Id, Request}});
arm(Id, Request, S0) ->
    S1 = leave(Request, S0),
    case tally_filter(maps:get(filter, Request, <<>>), S1) of
        ok ->
            S = announce(first, Request, case S1#s.armed of #armed{} -> S1; _ -> memory_watch(S1) end),
            Boot = {self(), ours(S), S#s.tracer, (S#s.options)#{heard => S#s.system_told}},
            help({arm, Id, Request}, arm, {weak(S), Request, all, Boot, S#s.armed}, S);
        wrong ->
            reply(Id, {error, bad_request}, S1)
    end.

%% What had to wait for the worker.
arm_next(S = #s{next = {Id, Request}, helper = none}) -> arm(Id, Request, S#s{next = none});
arm_next(S) -> S.

weak(#s{session = {_, Weak}}) -> Weak.

announce(first, #{mark := {N, _}}, S) -> meta(S, notice, [armed, N]);
announce(last, #{mark := {First, Last}}, S) when First =/= Last -> meta(S, notice, [armed, Last]);
announce(_, _, S) -> S.

%% A fresh session is the surest way to clear everything: patterns of every scope, flags, counters, breakpoints.
disarm(S = #s{armed = none, helper = none}) -> S;
disarm(S = #s{last = Last}) when Last =/= none -> S;
disarm(S) -> session((destroy(parting(S)))#s{helper = none, timer = none, memory = none, unchecked = false, late = 0}).

%% Before the client has everything disarmed: what the worker is at, and what waits for it, comes to nothing, and is answered so.
given_up(S = #s{last = Last}) when Last =/= none -> S;
given_up(S = #s{helper = Helper, next = Next}) ->
    lists:foldl(fun(Id, Acc) -> reply(Id, {error, busy}, Acc) end, S#s{next = none},
        case Helper of
            {_, {_, Id, _}} when Id =/= none -> [Id];
            {_, {answer, Id}} -> [Id];
            _ -> []
        end ++ case Next of {Id2, _} -> [Id2]; none -> [] end).

%% Before others are armed: where they may stand beside what is armed, only what is asked for no more is left off.
leave(Request = #{flags := Flags}, S0 = #s{armed = #armed{request = Before = #{flags := Had}}}) ->
    case beside(Request, Before) andalso S0#s.worker =:= (S0#s.armed)#armed.worker of
        true ->
            S = case same([system], Request, Before) andalso S0#s.hears =:= (S0#s.armed)#armed.system of
                true -> S0;
                false -> (system_stop(S0))#s{armed = (S0#s.armed)#armed{system = none}}
            end,
            Off = without(Had, Flags),
            PortsHad = maps:get(port_flags, Before, []),
            PortsOff = without(PortsHad, maps:get(port_flags, Request, [])),
            SeqOff = maps:get(seq_trace, Before, false) andalso not maps:get(seq_trace, Request, false),
            SeqOff andalso seq_stop(S),
            [trace:process(S#s.session, all, false, Off) || Off =/= []],
            [trace:port(S#s.session, all, false, PortsOff) || PortsOff =/= []],
            Left = Before#{flags := without(Had, Off), port_flags => without(PortsHad, PortsOff), seq_trace => not SeqOff andalso maps:get(seq_trace, Before, false)},
            %% What stays armed until the worker comes to it may say that it owes a result, which only this gate takes off.
            gated([late, owing], S#s{armed = (S#s.armed)#armed{request = Left}});
        false ->
            disarm(S0)
    end;
leave(_, S) -> disarm(S).

beside(Request, Before) ->
    is_map_key(mark, Request) andalso is_map_key(mark, Before) andalso same([procs, tally, hold, filter], Request, Before)
        andalso (same([ports], Request, Before) orelse lists:member([], [maps:get(ports, R, []) || R <- [Request, Before]]))
        andalso inherited(Request) =:= inherited(Before).

%% A flag that several ask for is in a request more than once.
without(These, Those) -> [Flag || Flag <- These, not lists:member(Flag, Those)].

same(Keys, A, B) -> maps:with(Keys, A) =:= maps:with(Keys, B).

%% The flags that change what becomes of processes, and not which of their events are seen.
inherited(#{flags := Flags}) -> [F || F <- Flags, lists:member(F, [silent, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link])].

helped({arm, Id, _}, Result, S = #s{last = Last}) when Last =/= none -> % it was told to stop meanwhile
    unheard(Result, S),
    reply(Id, {error, stopping}, S);
helped({arm, Id, Request}, {ok, Armed, Answer}, S0) ->
    S = tally_begin(Request, Armed#armed.returns, nif_gates(Armed, kinds_of(Request, hears(Armed, S0)))),
    try flags(Request, Armed, S) of
        {Processes, Ports} ->
            Timer = erlang:start_timer(?CHECK, self(), check),
            reply(Id, {ok, Answer#{processes => Processes, ports => Ports}}, announce(last, Request, S#s{armed = Armed, timer = Timer}))
    catch
        throw:Reason -> reply(Id, {error, Reason}, refused(S))
    end;
helped({arm, Id, _}, {error, Reason}, S) ->
    reply(Id, {error, Reason}, refused(S));
helped({arm, Id, _}, killed, S) ->
    reply(Id, {error, killed}, disarm(S#s{armed = failed}));
helped({answer, Id}, killed, S) ->
    reply(Id, {error, killed}, S);
helped({answer, Id}, Answer, S) ->
    reply(Id, Answer, S);
helped(check, {ok, Armed, Notices}, S = #s{armed = #armed{}}) ->
    lists:foldl(fun({Tag, M}, Acc) -> meta(Acc, module, [Tag, M]) end, S#s{armed = Armed, unchecked = false}, Notices);
helped(check, Failed, S = #s{armed = #armed{}, unchecked = false}) -> % it is tried again each second, and said once
    meta(S#s{unchecked = true}, notice, [unchecked, case Failed of
        {error, {crash, {Reason, _}}} -> short(Reason);
        {error, Reason} -> short(Reason);
        killed -> killed
    end]);
helped({ask, Id, What}, Result, S) ->
    asked(Id, What, Result, S);
helped(_, _, S) ->
    S.

%% Where no specification can reject a call, the NIF may turn calls away before the VM has built their arguments. The gate of the
%% results has those that are owed, and the time that was spent, counted from nothing: what becomes too much again is said again.
nif_gates(#armed{early = Early, plain = Plain, returns = Returns}, S = #s{told = Told}) ->
    gated([case Early of true -> early; false -> late end, case Plain of true -> plain; false -> answered end,
        case Returns of all -> returns; some -> owing; _ -> no_returns end], S#s{told = Told band bnot 24}).

gated(_, S = #s{tracer = fallback}) -> S;
gated(Gates, S = #s{tracer = State}) -> [gate(State, Gate) || Gate <- Gates], S.

%% An arming that nobody waits for any more may have begun to hear system events.
unheard({ok, #armed{system = System}, _}, #s{hears = Hears}) when System =/= none, System =/= Hears -> system_end(System);
unheard(_, _) -> ok.

%% What is not taken leaves the others armed as they were, but for flags and system events that only they had, which leave/2 took off:
%% who is refused asks again for what is left.
refused(S = #s{armed = Armed = #armed{}}) -> nif_gates(Armed, S);
refused(S) -> disarm(S#s{armed = failed}).

hears(#armed{system = Hears}, S = #s{hears = Hears}) -> S;
hears(#armed{system = none}, S) -> S;
hears(#armed{system = Hears = {Pid, _}}, S) ->
    monitor(process, Pid),
    excluded(S#s{hears = Hears}).

kinds_of(Request, S) ->
    Kinds = maps:get(kinds, Request, -1) band ((1 bsl 64) - 1),
    case S#s.tracer of
        fallback -> S#s{fb = (S#s.fb)#fb{kinds = Kinds}};
        State -> kinds(State, Kinds), S
    end.

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% Only: all, or the modules that are to be armed again. Before: what is armed, or none.
arm_do({Session, Request, Only, Boot = {_, _, Tracer, _}, Before}) ->
    Only =:= all andalso gc_begin(Request),
    Sums = sums(case Only of all -> erlang:loaded(); _ -> Only end),
    {Read, Found, Warnings} = chosen(Session, Request, Only),
    Join = case is_map_key(mark, Request) of true -> fun marked/1; false -> fun joined/1 end,
    Specs = each_spec([Ms || #{type := call, match_spec := {_, Ms}} <- Read]),
    Returns = returns(Request, Specs),
    Owing = Returns =:= some andalso Tracer =/= fallback andalso lists:any(fun asks_return/1, bodies(Specs)),
    Calls = call_patterns(Session, Found, Only, case Owing of true -> fun(Many) -> owing(Join(Many)) end; false -> Join end,
        decided(Tracer, Request, Only, Read, Found)),
    Only =:= all andalso lists:foreach(fun(Kind) -> messages(Session, Kind, [P || P = #{type := K} <- Read, K =:= Kind], Join) end, [send, recv]),
    More = case Tracer of fallback -> [<<"without a NIF: at most 1000 events a second">>]; _ -> [] end,
    Plain = not Owing andalso not is_map_key(mark, Request) andalso
        lists:all(fun(Kind) -> is_plain([Ms || #{type := K, match_spec := {_, Ms}} <- Read, K =:= Kind]) end, [call, send]),
    %% By what each asks for, not by what was found of it: a module that comes later may have what another one rejects.
    Early = not mute(Request) andalso lists:all(fun accepts/1, Specs),
    Steady = not uses([trace, disable_trace], [Ms || #{match_spec := {_, Ms}} <- Read]),
    Watched = (watched(Request, Calls, Sums))#armed{early = Early, plain = Plain, returns = Returns, steady = Steady},
    Armed = case Only of
        all ->
            Watched#armed{whom = whom_of(Request), system = system_of(Request, Boot, Before)};
        _ -> Watched
    end,
    {ok, Armed, (counted(Found))#{warning => More ++ Warnings}}.

system_of(#{system := Events}, _, #armed{system = Hears, request = #{system := Events}}) when Hears =/= none -> Hears;
system_of(Request, Boot, _) -> system_start(maps:get(system, Request, []), Boot).

%% {Processes, ports}
whom_of(Request) -> {whom(maps:get(procs, Request, [all])), whom(maps:get(ports, Request, []))}.

%% {The probes, [{Probe, [{MFA, Specification}]}], warnings}
chosen(Session, Request = #{probes := Probes}, Only) ->
    Gates = gates(),
    Read = [probe(P) || P <- Probes],
    Warnings = lists:usort(lists:flatmap(fun(P) -> allowed(P, Request, Session, Gates) end, [#{type => events} | Read])),
    Lenient = maps:get(allow_empty, Request, false),
    Chosen = [{P, found(P, Only, Lenient, Request)} || P <- Read],
    case [{P, Left} || {P = #{type := call}, {[], Left}} <- Chosen, not Lenient] of
        [{_, [MFA | _]} | _] -> throw({dangerous, mfa_text(MFA)});
        [{Empty, []} | _] -> none(Empty);
        [] -> ok
    end,
    Found = [{P, Functions} || {P, {Functions, _}} <- Chosen],
    {Read, Found, Warnings ++ dangers(lists:usort(lists:append([Left || {_, {_, Left}} <- Chosen])), Found)}.

counted(Found) ->
    #{probes => [#{id => Id, functions => length(Fs), modules => length(lists:usort([M || {{M, _, _}, _} <- Fs]))}
        || {#{id := Id}, Fs} <- Found]}.

%% The probe with its specifications decoded. Atoms in them must exist: a specification that names none of this node's
%% atoms cannot match, and making them would be ours for ever.
probe(Probe = #{match_spec := Spec}) ->
    lists:foreach(fun(A) -> existing([A]) =:= [] andalso throw({no_atom, A}) end, maps:get(atoms, Probe, [])),
    (program(Probe))#{match_spec := case Spec of
        {any, Bin} -> {any, spec(Bin)};
        {arity, Map} -> {arity, maps:map(fun(_, Bin) -> spec(Bin) end, Map)}
    end}.

spec(Bin) ->
    try binary_to_term(Bin, [safe]) catch error:_ -> throw(bad_spec) end.

%% {[{MFA, Specification}], [MFA that is too dangerous]}
found(#{type := call, scope := Scope, select := Selectors, match_spec := Spec}, Only, Lenient, Request) ->
    {Takes, Leaves} = lists:unzip([
        try wanted(Selector, Only) andalso taken(Selector, Scope, Request) of
            false -> {[], []};
            Taken -> Taken
        catch
            throw:Reason when Lenient, element(1, Reason) =/= bad_pattern -> {[], []}
        end || Selector <- Selectors]),
    All = lists:usort(lists:append(Takes)),
    Found = lists:flatmap(fun(MFA = {M, _, A}) ->
        Here = Only =:= all orelse lists:member(M, Only),
        case Spec of
            {any, Ms} when Here -> [{MFA, Ms}];
            {arity, #{A := Ms}} when Here -> [{MFA, Ms}];
            _ -> []
        end
    end, All),
    {Found, lists:usort(lists:append(Leaves)) -- All};
found(_, _, _, _) -> {[], []}.

wanted(_, all) -> true;
wanted({{name, Name}, _, _, _}, Only) -> lists:any(fun(M) -> atom_to_binary(M) =:= Name end, Only);
wanted(_, _) -> true.

%% Sets what was found and returns it: [{MFA, Scope, Specification}]. Where it is decided by others than the specification, `true` is set.
call_patterns(Session, Found, Only, Join, Decided) ->
    Of = fun(Scope) -> maps:map(fun(_, L) -> Join(L) end, merge([{Id, F} || {#{id := Id, scope := S}, F} <- Found, S =:= Scope])) end,
    Local0 = merge([{Id, F} || {#{id := Id, scope := local}, F} <- Found]),
    Global0 = merge([{Id, F} || {#{id := Id, scope := global}, F} <- Found]),
    %% One function cannot have both kinds of breakpoint; the local one sees every call.
    Local = maps:map(fun(_, L) -> Join(L) end, maps:merge_with(fun(_, A, B) -> A ++ B end, Local0, maps:with(maps:keys(Local0), Global0))),
    Meant = [{local, Local}, {global, maps:without(maps:keys(Local), Of(global))}, {meta, Of(meta)}],
    Scopes = [{Scope, maps:merge(Map, maps:map(fun(_, _) -> true end, maps:with(maps:keys(Decided), Map)))} || {Scope, Map} <- Meant],
    Calls = [{MFA, Scope, Ms} || {Scope, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)],
    Wanted = maps:from_list([{{Scope, MFA}, Ms} || {Scope, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)]),
    Set = already(Session, Only),
    %% While they are being set nobody knows which of them are.
    armed(Session, maps:merge(Set, maps:map(fun(_, _) -> undefined end, Wanted))),
    Other = [{Scope, MFA} || {Scope, MFA} <- maps:keys(Set), {Instead, S} <- [{local, global}, {global, local}], S =:= Scope,
        is_map_key({Instead, MFA}, Wanted)],
    [trace:function(Session, MFA, false, [Scope]) || {Scope, MFA} <- Other],
    Here = case Only of all -> maps:without(Other, Set); _ -> #{} end,
    Fresh = Only =:= all andalso map_size(Set) =:= 0, % nobody is traced yet
    lists:foreach(fun({Scope, Map}) ->
        patterns(Session, Scope, Map, maps:from_list([{MFA, Ms} || {{S, MFA}, Ms} <- maps:to_list(Here), S =:= Scope]), Fresh)
    end, Scopes),
    armed(Session, case Only of all -> Wanted; _ -> maps:merge(Set, Wanted) end),
    Calls.

%% The patterns of the session, #{{Scope, MFA} => Specification}: what the worker has set and nobody else does. Modules that
%% are to be armed again have none.
already(Session, Only) ->
    case get(function) of
        {Session, Set} when Only =:= all -> Set;
        {Session, Set} -> maps:filter(fun({_, {M, _, _}}, _) -> not lists:member(M, Only) end, Set);
        _ -> #{}
    end.

armed(Session, Set) -> put(function, {Session, Set}).

merge(Probes) ->
    lists:foldr(fun({Id, Found}, Acc) ->
        lists:foldl(fun({MFA, Ms}, A) -> A#{MFA => [{Id, Ms} | maps:get(MFA, A, [])]} end, Acc, Found)
    end, #{}, Probes).

%% One probe: its own specification. Several: the clauses of all in their order, each saying whose it is, for the client
%% reads an event as the probe asked that it answers.
joined([{_, Ms}]) -> Ms;
joined(Many) -> marked(Many).

marked(Many) -> [marked(Id, Clause) || {Id, Ms} <- Many, Clause <- clauses(Ms)].

clauses(true) -> [{'_', [], []}];
clauses(Ms) -> Ms.

marked(Id, {Head, Guards, Body}) ->
    case [M || M = {message, _} <- Body] of
        [] -> {Head, Guards, Body ++ [{message, {{etrace_probe, Id}}}]};
        _ -> {Head, Guards, [mark(Id, Action) || Action <- Body]}
    end.

mark(_, {message, false}) -> {message, false};
mark(Id, {message, Term}) -> {message, {{etrace_probe, Id, Term}}};
mark(_, Action) -> Action.

%% Where the return of some calls is traced and that of others is not: the NIF is told which, to count those that are owed. It
%% makes what is shown of the call as if this were not there.
owing(true) -> true;
owing(Ms) -> [owing_clause(Clause) || Clause <- Ms].

owing_clause(Clause = {Head, Guards, Body}) ->
    case asks_return(Body) of
        false -> Clause;
        true -> {Head, Guards, case lists:keymember(message, 1, Body) of
            false -> Body ++ [{message, etrace_owes}];
            true -> [case Action of
                {message, false} -> Action;
                {message, Term} -> {message, {{etrace_owes, Term}}};
                _ -> Action
            end || Action <- Body]
        end}
    end.

%% Each call costs the VM a round through all schedulers, so few calls: a default for every module together, then for
%% a module, then single functions, whichever sum is least.
%% Already: what is set there; what stays as it is is not touched, not even for a moment. Fresh: no event comes yet; else a
%% default would show those of every module, and a module as a whole what differs in it, so that is done only where there were
%% too many functions.
patterns(_, _, Map, Already, _) when map_size(Map) =:= 0, map_size(Already) =:= 0 -> ok;
patterns(Session, Scope, Map, Already, Fresh) ->
    ByModule = fun(M) -> maps:groups_from_list(fun({{Module, _, _}, _}) -> Module end, maps:to_list(M)) end,
    Wanted = ByModule(Map),
    Has = ByModule(Already),
    Modules = lists:usort(maps:keys(Wanted) ++ maps:keys(Has)),
    Set = fun(MFA, Ms) ->
        try trace:function(Session, MFA, Ms, case Scope of {counters, List} -> List; _ -> [Scope] end)
        catch error:_ -> throw({bad_spec, mfa_text(MFA)})
        end
    end,
    Common = common([Ms || {_, Ms} <- maps:to_list(Map)]),
    {Off, Single} = plan(Wanted, Has, Modules, Scope, false, Fresh),
    {On, _} = case Fresh andalso length(Modules) > 20 of
        true -> plan(Wanted, Has, erlang:loaded(), Scope, Common, true);
        false -> {Off + 1, []}
    end,
    {Default, Over} = if On + 1 < Off -> {Common, erlang:loaded()}; true -> {false, Modules} end,
    Default =:= false orelse Set({'_', '_', '_'}, Default),
    {_, Steps} = case Fresh orelse Off > ?STEPS_MOST of
        true -> plan(Wanted, Has, Over, Scope, Default, true);
        false -> {Off, Single}
    end,
    lists:foreach(fun({MFA, Ms}) -> Set(MFA, Ms) end, lists:reverse(Steps)). % a whole module before what differs in it

%% {How many calls, the calls with the last one first}, when every function has what it has already, else `Default`; of each
%% module in the order of its functions. Whole: also such that set for a moment what is not wanted.
plan(Wanted, Already, Over, Scope, Default, Whole) ->
    lists:foldl(fun(M, {N, Steps}) ->
        Want = maps:get(M, Wanted, []),
        Has = maps:from_list(maps:get(M, Already, [])),
        None = maps:from_keys([{M, F, A} || {F, A} <- listed(M, Scope)] ++ maps:keys(Has), false),
        All = lists:sort(maps:to_list(maps:merge(None, maps:from_list(Want)))),
        Named = [Same || {_, Same} <- lists:sort(maps:to_list(maps:groups_from_list(fun({{_, F, _}, _}) -> F end, All)))],
        Plain = lists:flatmap(fun(Same) -> alike(Same, Has, Default) end, Named),
        Mine = common([Ms || {_, Ms} <- All]),
        Short = [{{M, '_', '_'}, Mine} | lists:flatmap(fun(Same) -> alike(Same, #{}, Mine) end, Named)],
        Kept = [Ms || {MFA, Ms} <- All, is_map_key(MFA, Has), Ms =/= Mine, Ms =/= false],
        Best = case length(Short) < length(Plain) andalso Kept =:= [] andalso (Whole orelse Mine =:= false) of true -> Short; false -> Plain end,
        {N + length(Best), lists:reverse(Best, Steps)}
    end, {0, []}, Over).

%% The functions of a name that are to have something else. Where all of them are, and all the same, one call serves, as for the
%% two module_info of every module.
alike(Same, Has, Default) ->
    Steps = [Step || Step = {MFA, Ms} <- Same, Ms =/= maps:get(MFA, Has, Default)],
    case {Steps, lists:usort([Ms || {_, Ms} <- Steps])} of
        {[{{M, F, _}, _}, _ | _], [Ms]} when length(Steps) =:= length(Same) -> [{{M, F, '_'}, Ms}];
        _ -> Steps
    end.

common(List) ->
    Counts = lists:foldl(fun(X, Acc) -> Acc#{X => maps:get(X, Acc, 0) + 1} end, #{}, List),
    {_, Most} = maps:fold(fun(X, N, Best = {Max, _}) -> if N > Max -> {N, X}; true -> Best end end, {0, false}, Counts),
    Most.

messages(_, _, [], _) -> ok;
messages(Session, Kind, Probes, Join) ->
    Ms = Join([{Id, here(M)} || #{id := Id, match_spec := {any, M}} <- Probes]),
    try trace:Kind(Session, Ms, []) catch error:_ -> throw({bad_spec, atom_to_binary(Kind)}) end.

%% That something is this node is decided sooner by its name in the head than by a guard, and of all that is received.
here(true) -> true;
here(Clauses) ->
    [case Clause of
        {Head, [{'=:=', V, {node}} | Guards], Body} ->
            case is_variable(V) of true -> replaced(V, node(), {Head, Guards, Body}); false -> Clause end;
        _ -> Clause
    end || Clause <- Clauses].

replaced(V, By, V) -> By;
replaced(_, _, {const, T}) -> {const, T};
replaced(V, By, [H | T]) -> [replaced(V, By, H) | replaced(V, By, T)];
replaced(V, By, T) when is_tuple(T) -> list_to_tuple(replaced(V, By, tuple_to_list(T)));
replaced(V, By, T) when is_map(T) -> maps:map(fun(_, Value) -> replaced(V, By, Value) end, T);
replaced(_, _, T) -> T.

mfa_text({M, F, A}) ->
    unicode:characters_to_binary(io_lib:format("~ts:~ts/~w", [M, F, A])).

%% ---- processes and ports (in the owner) ---------------------------------------------------------------------------

flags(Request = #{flags := Proc}, #armed{whom = {Procs, Ports}}, S) ->
    Time = case S#s.tracer of fallback -> [monotonic_timestamp]; _ -> [] end,
    Port = maps:get(port_flags, Request, []),
    Session = S#s.session,
    maps:get(seq_trace, Request, false) andalso seq_start(S),
    {flags(fun(P, On) -> trace:process(Session, P, On, Proc ++ Time) end, Proc, Procs, [P || P <- ours(S), is_pid(P)]),
        flags(fun(P, On) -> trace:port(Session, P, On, Port ++ Time) end, Port, Ports, [P || P <- ours(S), is_port(P)])}.

flags(_, [], _, _) -> 0;
flags(Set, _, Whom, Ours) ->
    N = each(Whom, fun(W) -> Set(W, true) end),
    each(Ours, fun(W) -> Set(W, false) end),
    N.

%% How a flag is set on each of them; one that has ended meanwhile needs none.
each(Whom, Set) ->
    lists:sum([try Set(W) catch error:badarg when is_pid(W); is_port(W) -> 0 end || W <- Whom]).

%% ---- what the specifications may do -------------------------------------------------------------------------------

%% A process may be so from the beginning.
mute(#{flags := Flags}) -> lists:member(silent, Flags).

%% Now and whatever module comes later: where several probes meet, each marks what answers it with a message.
is_plain([_, _ | _]) -> false;
is_plain(Specs) -> not uses([message], Specs).

accepts(true) -> true;
accepts(Clauses) ->
    lists:any(fun({Head, Guards, _}) -> Guards =:= [] andalso takes_all(Head, []) end, Clauses)
        andalso not uses([message, silent], [Body || {_, _, Body} <- Clauses, muted(Body)]).

%% Of all clauses; and where some of them, or some processes, show nothing, nobody knows.
returns(Request, Specs) ->
    Bodies = bodies(Specs),
    case lists:usort([asks_return(Body) || Body <- Bodies]) of
        [] -> no_calls;
        [Same] -> case mute(Request) orelse (Same andalso lists:any(fun muted/1, Bodies)) of
            true -> some;
            false when Same -> all;
            false -> none
        end;
        _ -> some
    end.

bodies(Specs) ->
    [Body || Ms <- Specs, {_, _, Body} <- clauses(Ms)].

%% Where there is one for each number of arguments, these.
each_spec(Given) -> lists:append([case Ms of #{} -> maps:values(Ms); _ -> [Ms] end || Ms <- Given]).

asks_return(Body) ->
    lists:any(fun({A}) -> lists:member(A, [exception_trace, return_trace]); (_) -> false end, Body).

%% Variables, each once.
takes_all('_', _) -> true;
takes_all([], _) -> true;
takes_all(['_' | T], Seen) -> takes_all(T, Seen);
takes_all([V | T], Seen) -> is_variable(V) andalso not lists:member(V, Seen) andalso takes_all(T, [V | Seen]);
takes_all(_, _) -> false.

is_variable(V) when is_atom(V) ->
    case atom_to_list(V) of
        [$$, C | _] -> C >= $0 andalso C =< $9;
        _ -> false
    end;
is_variable(_) -> false.

muted(Body) ->
    lists:any(fun({message, false}) -> true; ({silent, _}) -> true; (_) -> false end, Body).
