%% SPDX-License-Identifier: Apache-2.0
%% Arms a session: turns a request to trace into patterns and flags.
%%
%% The worker sets the patterns through a weak handle, because that can take hundreds of milliseconds and the owner must
%% keep its lease. The owner then sets the trace flags of processes. Before that nothing is traced, so if the worker
%% fails half-way, no process is affected.
%%
%% If a session is armed already and the next request selects the same processes, the session stays. The worker changes
%% only the functions whose match specification differs, so no event of the other functions is lost or comes twice.
%%
%% Request: #{probes => [Probe], procs => [Who], ports => [Who], flags => [atom], port_flags => [atom], kinds => Mask,
%%            system => [{Event, Value}], seq_trace => boolean, allow_empty => boolean, unsafe => boolean,
%%            force => boolean, variables => the highest number of a variable, available => boolean, route => Route,
%%            filter => Bin, requests => Flags (enum etw_requests), mark => {First, Last}}
%% available: for a node that has not begun its work yet: wildcards also select modules in the code path and load them
%% Route: send
%%        tally: counts calls and results by function
%%        {by, [Key], [Value], Keys}: counts calls and messages by keys; a key or a value is a list of integers
%%        (enum etw_by)
%%        hold: sends a call together with its result, and only if the filter may show them. If some calls do not report
%%        their result, all calls and results are sent instead
%%        trees: with inside. Events inside of a root are sent when the filter accepts the result of the root (keep.h)
%% filter: which events the route counts or sends: an encoded {Steps, Programs} (struct etw_filter_step); <<>>: all
%% mark: optional, for a client that arms again and again. Every event of a match specification names its probe by id,
%%       and an id never gets another meaning. The notice {armed, First} precedes the first event of this request in the
%%       stream. The notice {armed, Last}, if Last differs from First, follows the last event of the previous request
%% inside => [Flag]: optional. Some probes are roots. The other probes of calls make events only in a process that is
%%       inside an open call of a root. Each call of a root sets these flags for its process (inside.h)
%% kinds_inside => Mask: with inside. The events of these kinds are shown only inside of roots
%% sample => N: with inside. One of N calls of roots is shown
%% Probe: #{id, type => call|send|recv, scope => local|global|meta, select => [Selector],
%%          match_spec => {any, Bin} | {arity, #{Arity => Bin}}, Bin: an encoded match specification, or `true`,
%%          root => true, optional: a call of it opens a root; its scope is meta
%%          program => Bin}, optional: the same condition as an encoded program for the NIF (tracer_program.hrl)
%% A process or port (Who): all, existing, new, {pid, Bin}, {name, Bin}, {via, Module, EncodedName, Text},
%%      {application, Bin}, {initial, {Module, Function, Arity}, Text}, {port, Bin}, {driver, Bin}
%% Mask: bit K is set if events of kind K (etrace_wire.h) are wanted; the NIF ignores other kinds that a flag brings
%% Answer: #{probes => [#{id, functions, modules}], functions => N in all, processes => N, ports => N, warning => [Bin],
%% loaded => [Name]}; loaded: some modules that were not loaded before
%% tracer_cost.hrl can estimate and measure a request before it is armed.

-record(armed, {
    request,
    worker,         % the worker that knows the patterns (armed/3)
    modules,        % #{Module => {md5, {F, A}, Scope}}: the self-check tests whether this function is still traced
    builtins = [],  % [{MFA, Scope, Specification}]: functions that another session can blind (gate `bif`)
    loaded = [],    % the node's loaded modules at the last self-check
    effects,        % effects of the request on the node (tracer_effects.hrl)
    plain,          % no specification adds a message to a call or to a message that is sent
    whom = {[], []}, % {processes, ports} to trace; {named, Name}: the process that has the name (tracer_follow.hrl)
    system = none,  % {the process that receives system events, its session}
    budget = none,  % #budgeted{}
    %% #{Module => md5}: reported modules that could not be armed again, or that have no wanted function left
    unarmed = #{},
    untraced = [],  % reported other parts of the trace that somebody on the node has stopped (tracer_check.hrl)
    turn = []       % modules whose patterns the next checks test
}).

-define(CHECK, 1000). % ms until the next self-check (tracer_check.hrl)

arm(Id, _, S = #s{last = Last}) when Last =/= none -> reply(Id, {error, {stopping, done(S)}}, S);
arm(Id, Request, S = #s{helper = {_, _}, next = none}) -> S#s{next = {Id, Request}};
arm(Id, Request, S = #s{helper = {_, _}, next = {Before, _}}) -> reply(Before, {error, busy}, S#s{next = {Id, Request}});
arm(Id, Request0, S0) ->
    Request = briefly(Request0, S0#s.tracer),
    S1 = leave(Request, S0),
    case filter_set(Request, S1) of
        ok ->
            S = announce(first, Request, case S1#s.armed of #armed{} -> S1; _ -> memory_watch(S1) end),
            S2 = trees_begin(Request, S),
            Boot = {self(), ours(S2), S#s.tracer, (S#s.options)#{heard => S#s.system_told}},
            help({arm, Id, Request}, arm, {weak(S2), Request, all, Boot, S2#s.armed}, S2);
        wrong ->
            reply(Id, {error, bad_request}, S1)
    end.

%% Sets the filter. If the request shares the session with the previous request, it has the same filter (beside/2). Then
%% this does nothing, because threads may be reading the filter.
filter_set(_, #s{armed = #armed{}}) -> ok;
filter_set(Request, S) -> tally_filter(maps:get(filter, Request, <<>>), S).

%% For the views of requests, replaces the match specifications of calls by `true`. The NIF finds in the arguments what
%% the specifications would collect. That costs less, because the VM does not run the specifications.
briefly(Request = #{requests := Asked, probes := Probes, flags := Flags}, Tracer) when Asked =/= 0, Tracer =/= fallback ->
    Request#{probes := [case P of #{type := call} -> P#{match_spec := {any, term_to_binary(true)}}; _ -> P end || P <- Probes],
        flags := without(Flags, [arity])};
briefly(Request, _) -> Request.

%% Starts the request that waited for the worker.
arm_next(S = #s{next = {Id, Request}, helper = none}) -> arm(Id, Request, S#s{next = none});
arm_next(S) -> S.

%% Lets the worker clear functions that nobody asked for and that are called often, as soon as it is idle.
unasked_next(S = #s{unasked = true, helper = none, armed = #armed{}, last = none}) ->
    help(unasked, unasked, {weak(S), S#s.tracer}, S#s{unasked = false});
unasked_next(S) -> S.

weak(#s{session = {_, Weak}}) -> Weak.

announce(first, #{mark := {N, _}}, S) -> meta(S, notice, [armed, N]);
announce(last, #{mark := {First, Last}}, S) when First =/= Last -> meta(S, notice, [armed, Last]);
announce(_, _, S) -> S.

%% Replaces the session with a new one, because that surely clears all patterns, flags, counters and breakpoints.
disarm(S = #s{armed = none, helper = none}) -> S;
disarm(S = #s{last = Last}) when Last =/= none -> S;
disarm(S0) ->
    S = renewed(destroy(counters_end(budget_end(parting(S0))))),
    session((names_end(S))#s{helper = none, timer = none, memory = none, unchecked = false, late = 0}).

renewed(S = #s{tracer = fallback}) -> S;
renewed(S = #s{tracer = State}) -> S#s{tracer = renew(State)}.

%% Answers the request of the worker and the waiting request with an error before a disarm, which cancels both.
given_up(S = #s{last = Last}) when Last =/= none -> S;
given_up(S = #s{helper = Helper, next = Next}) ->
    lists:foldl(fun(Id, Acc) -> reply(Id, {error, busy}, Acc) end, S#s{next = none},
        case Helper of
            {_, {_, Id, _}} when Id =/= none -> [Id];
            {_, {answer, Id}} -> [Id];
            _ -> []
        end ++ case Next of {Id2, _} -> [Id2]; none -> [] end).

%% Called before the next request is armed. If that request can share the session, removes only the flags and system
%% events that it does not want. Otherwise disarms the session.
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
            %% The old patterns stay until the worker changes them. The events of their calls may contain etrace_owes,
            %% which the NIF removes only after the verb `owing`.
            gated([late, owing], S#s{armed = (S#s.armed)#armed{request = Left}});
        false ->
            disarm(S0)
    end;
leave(_, S) -> disarm(S).

beside(Request, Before) ->
    is_map_key(mark, Request) andalso is_map_key(mark, Before)
        andalso same([procs, route, filter, overhead], Request, Before)
        andalso not is_map_key(inside, Request) andalso not is_map_key(inside, Before)
        andalso (same([ports], Request, Before) orelse lists:member([], [maps:get(ports, R, []) || R <- [Request, Before]]))
        andalso inherited(Request) =:= inherited(Before).

%% Returns the flags of These that are not in Those. `--` would not do: it removes only one of several equal flags.
without(These, Those) -> [Flag || Flag <- These, not lists:member(Flag, Those)].

same(Keys, A, B) -> maps:with(Keys, A) =:= maps:with(Keys, B).

%% Returns the flags that change how processes behave or spawn, not which of their events are seen.
inherited(#{flags := Flags}) -> [F || F <- Flags, lists:member(F, [silent, set_on_spawn, set_on_first_spawn, set_on_link, set_on_first_link])].

helped({arm, Id, _}, Result, S = #s{last = Last}) when Last =/= none -> % the client has stopped the trace meanwhile
    unheard(Result, S),
    reply(Id, {error, {stopping, done(S)}}, S);
helped({arm, Id, Request}, {ok, Armed, Answer}, S0) ->
    S1 = tokens_kept(Armed#armed.effects, S0),
    S2 = budget_set(Armed#armed.budget, tally_begin(Request, Armed#armed.effects, map_get(functions, Answer), nif_gates(Armed, kinds_of(Request, hears(Armed, S1))))),
    S = follow_begin(element(1, Armed#armed.whom), S2),
    [inside_follow(Request, P, S#s.tracer) || P <- maps:values(follow_pids(S)), P =/= none],
    try flags(Request, Armed, S) of
        {Processes, Ports} ->
            unswitched(S, Armed),
            Timer = erlang:start_timer(?CHECK, self(), check),
            reply(Id, {ok, Answer#{processes => Processes, ports => Ports}}, announce(last, Request, (names_begin(Request, follow_lives(Request, Armed, S)))#s{armed = Armed, timer = Timer, recorded = true}))
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
%% The self-check runs again each second. Report only its first failure.
helped(check, Failed, S = #s{armed = #armed{}, unchecked = false}) ->
    meta(S#s{unchecked = true}, notice, [unchecked, case Failed of
        {error, {crash, {Reason, _}}} -> short(Reason);
        {error, Reason} -> short(Reason);
        killed -> killed
    end]);
helped(budget, {ok, Looked}, S) ->
    budget_looked(Looked, S);
helped({ask, Id, What}, Result, S) ->
    asked(Id, What, Result, S);
helped(_, _, S) ->
    S.

%% Sets the rules of the NIF (gate.h). If no match specification can reject a call, the NIF may reject calls before the
%% VM builds their arguments. The verbs for results also reset the owed results and the spent time, so the owner reports
%% again if there are too many owed results, or if a thread spends too much time.
nif_gates(#armed{effects = Effects, plain = Plain}, S = #s{told = Told}) ->
    gated(gates_of(Effects, Plain) ++ [ask || not map_get(accepts, Effects)], tokens_shown(Effects, S#s{told = Told band bnot 24})).

gates_of(#{accepts := Early, returns := Returns}, Plain) ->
    [case Early of true -> early; false -> late end, case Plain of true -> plain; false -> answered end,
        case Returns of all -> returns; some -> owing; _ -> no_returns end].

%% Tells the client how many calls there were, if match specifications may reject calls. A trace without events does not
%% show whether the functions were called at all.
asked_told(S = #s{tracer = State, armed = #armed{effects = #{accepts := false}}}) when State =/= fallback ->
    meta(S, notice, [asked, gate(State, asked)]);
asked_told(S) -> S.

gated(_, S = #s{tracer = fallback}) -> S;
gated(Gates, S = #s{tracer = State}) -> [gate(State, Gate) || Gate <- Gates], S.

%% Clears the flags that only actions of the previous probes may have switched on.
unswitched(#s{session = Session, armed = #armed{effects = #{switched := Had}}}, #armed{effects = #{flags := Flags}}) ->
    Off = without(Had, Flags),
    [trace:process(Session, all, false, Off) || Off =/= []];
unswitched(_, _) -> [].

%% Ends the process that receives system events if a cancelled arming has started one.
unheard({ok, #armed{system = System}, _}, #s{hears = Hears}) when System =/= none, System =/= Hears -> system_end(System);
unheard(_, _) -> ok.

%% After a request was rejected, the previous request stays armed, but without the flags and system events that leave/2
%% has removed. This restores the rules of the NIF for it. The client then sends a request for the remaining probes.
refused(S = #s{armed = Armed = #armed{}}) -> nif_gates(Armed, S);
refused(S) -> disarm(S#s{armed = failed}).

hears(#armed{system = Hears}, S = #s{hears = Hears}) -> S;
hears(#armed{system = none}, S) -> S;
hears(#armed{system = Hears = {Pid, _}}, S) ->
    monitor(process, Pid),
    Pid ! next, % not earlier: the owner would not take a piece of a process that it does not know
    excluded(S#s{hears = Hears}).

kinds_of(Request, S) ->
    Kinds = maps:get(kinds, Request, -1) band ((1 bsl 64) - 1),
    case S#s.tracer of
        fallback -> S#s{fb = (S#s.fb)#fb{kinds = Kinds}};
        State -> kinds(State, Kinds), gate(State, {requests, maps:get(requests, Request, 0)}), S
    end.

%% ---- in the worker ------------------------------------------------------------------------------------------------

%% Arms a request. Only: all, or the modules to arm again. Before: the current #armed{}, or none.
arm_do({Session, Request, Only, Boot = {Owner, _, Tracer, Options}, Before}) ->
    Wanted = {Read, Effects} = wanted(Request),
    Only =:= all andalso gc_begin(Effects, Request),
    is_map_key(inside, Request) andalso Tracer =:= fallback andalso throw({notsup, <<"inside needs the NIF">>}),
    Only =:= all andalso put(inside, is_map_key(inside, Request)),
    Sums = sums(case Only of all -> erlang:loaded(); _ -> Only end),
    {Found, Warnings} = chosen(Session, Request, Wanted, Only),
    Tokens = map_get(tokens, Effects),
    %% Before the first specification, because meta tracing needs no flag: a function may set a token at once.
    Only =:= all andalso Tokens =/= [] andalso (Owner ! {tokens, self(), Tokens, token_functions(Found)}),
    Join = joins(Request),
    Plain = map_get(plain, Effects),
    Owing = owes(Effects, Tracer),
    Scopes = found_scopes(Found, Join, Request, Wanted, Only, Tracer),
    {Now, Budget} = case Only of
        all when is_map_key(inside, Request) -> budget_begin(none, false, Session, Tracer, Scopes, Effects, Request);
        all -> budget_begin(budget_of(Read, Found, Request, Tracer), Tracer =/= fallback andalso budget_alone(Read, Found, Effects, Request, Options), Session, Tracer, Scopes, Effects, Request);
        _ -> {budget_again(Session, Scopes), none}
    end,
    Only =:= all andalso Tracer =/= fallback andalso begin
        [gate(Tracer, Gate) || Gate <- inside_gates(Request, Effects)],
        inside_chosen(Request, Tracer)
    end,
    {Armed0, Mode} = call_patterns(Session, Now, Only, may_leave(Tracer, Effects, Read), Tracer),
    Calls = case get(budget) of
        undefined -> Armed0;
        _ -> [{MFA, call_count, Ms} || {_, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)] % functions may be disarmed, but never their counters
    end,
    Only =:= all andalso lists:foreach(fun(Kind) -> messages(Session, Kind, [P || P = #{type := K} <- Read, K =:= Kind], Join) end, [send, recv]),
    More = case Tracer of fallback -> [<<"without a NIF: at most 1000 events a second">> | no_budget(Request, Tracer)]; _ -> [] end,
    Watched = (watched(Request, Calls, Sums))#armed{effects = exactly(Mode, Effects),
        plain = Plain andalso not Owing andalso not is_map_key(mark, Request) andalso not is_map_key(inside, Request)},
    {Whom, Unknown} = case Only of all -> whom_of(Request); _ -> {none, []} end,
    Only =:= all andalso whom_passes(Request, Whom),
    Armed = case Only of
        all ->
            Watched#armed{whom = Whom, system = system_of(Request, Boot, Before), budget = Budget};
        _ -> Watched
    end,
    {ok, Armed, (counted(Found))#{warning => More ++ Unknown ++ Warnings, overhead => budget_limit(Budget)}}.

%% Returns true if the NIF counts owed results although only some calls owe a result (RULE_OWES).
owes(#{returns := Returns, frames := Frames}, Tracer) -> Returns =:= some andalso Frames andalso Tracer =/= fallback.

%% Returns the patterns of the found functions (scopes/4).
found_scopes(Found, Join, Request, {Read, Effects}, Only, Tracer) ->
    OfCalls = case owes(Effects, Tracer) of true -> fun(Named, Where, Many) -> owing(Join(Named, Where, Many)) end; false -> Join end,
    scopes(Found, OfCalls, decided(Tracer, Request, Effects, Only, Read, Found), everybody(Request, Effects)).

%% If the NIF drops the events of some functions, sets `accepts` to false, so that the NIF does not reject calls early.
%% Early rejection does not know the function and would count calls of these functions as lost.
exactly(exact, Effects) -> Effects;
exactly({left, _}, Effects) -> Effects#{accepts := false}.

system_of(#{system := Events}, _, #armed{system = Hears, request = #{system := Events}}) when Hears =/= none -> Hears;
system_of(Request, Boot, _) -> system_start(maps:get(system, Request, []), Boot).

%% Returns {the probes with decoded specifications, their effects on the node}.
wanted(Request = #{probes := Probes}) ->
    variables(maps:get(variables, Request, 0)),
    Read = [rooted(probe(P), Request) || P <- Probes],
    {Read, effects(Request, Read)}.

%% Adds to the match specification of a root the actions that set the flags for tracing inside of it. enable_trace is
%% cheaper than trace.
rooted(Probe = #{root := true, match_spec := {How, Given}}, #{inside := Flags}) ->
    Opens = fun(Ms) -> [{Head, Guards, Body ++ [{enable_trace, Flag} || message_of(Body) =/= false, Flag <- Flags]} || {Head, Guards, Body} <- clauses(Ms)] end,
    Probe#{match_spec := {How, case Given of #{} -> maps:map(fun(_, Ms) -> Opens(Ms) end, Given); _ -> Opens(Given) end}};
rooted(Probe, _) -> Probe.

%% Returns the verbs for the NIF to use before a pattern of a root is set, because a root makes events from then on.
%% They say which probes are roots, and whether a process outside of roots loses all flags of the session. A process
%% keeps the flags if the session has flags for other events.
inside_gates(Request = #{inside := _, kinds_inside := Kinds, probes := Probes, flags := Flags}, Effects) ->
    [{inside, [Id || #{id := Id, root := true} <- Probes], Flags =:= [], maps:get(sample, Request, 1), Kinds} | gates_of(Effects, false)];
inside_gates(_, _) -> [outside].

%% Lets only the selected processes open roots. The NIF gets a table of these processes. If only new processes are
%% selected, it gets a table of the existing processes, which may not open roots.
inside_chosen(#{inside := _, procs := Procs}, Tracer) ->
    {Words, Listed} = lists:partition(fun is_atom/1, whom(Procs)),
    case {lists:member(all, Words) orelse Words =:= [existing, new], Words} of
        {true, _} -> ok;
        {_, []} -> inside_choose(false, Listed, Tracer);
        {_, [existing]} -> inside_choose(false, lists:usort(processes() ++ Listed), Tracer);
        {_, [new]} -> inside_choose(true, processes() -- Listed, Tracer)
    end;
inside_chosen(_, _) -> ok.

%% Called when a process has got a name of -P and is now traced. If the NIF has a table of the processes that may open
%% roots, adds the process to the table.
inside_follow(#{inside := _, procs := Procs}, Pid, Tracer) ->
    case lists:filter(fun is_atom/1, Procs) -- [existing] of
        [] -> gate(Tracer, {choose, false, [Pid]}); % if the table is full, the roots of this process are not shown
        _ -> ok
    end;
inside_follow(_, _, _) -> ok.

inside_choose(Others, Pids, Tracer) ->
    case gate(Tracer, {choose, Others, Pids}) of
        {many, Most} -> throw({many_processes, Most});
        [] -> ok;
        Later -> pace(), inside_choose(Others, Later, Tracer)
    end.

%% Returns {[{Probe, [{MFA, Specification}]}], Warnings}.
chosen(Session, Request, {Read, Effects}, Only) ->
    Only =:= all andalso maps:get(available, Request, false) andalso load_available(Read),
    Warnings = allowed(Effects, Request, Session, gates()),
    Lenient = maps:get(allow_empty, Request, false),
    Chosen = [{P, found(P, Only, Lenient, Request)} || P <- Read],
    case [{P, Left} || {P = #{type := call}, {[], Left}} <- Chosen, not Lenient] of
        [{_, [MFA | _]} | _] -> throw({dangerous, mfa_text(MFA)});
        [{Empty, []} | _] -> none(Empty);
        [] -> ok
    end,
    Found = [{P, Functions} || {P, {Functions, _}} <- Chosen],
    {Found, Warnings ++ dangers(lists:usort(lists:append([Left || {_, {_, Left}} <- Chosen])), Found)}.

%% Returns the numbers of functions. The total counts each function once, even if several probes select it.
counted(Found) ->
    Modules = lists:usort([M || {_, Fs} <- Found, {{M, _, _}, _} <- Fs]),
    #{loaded => [atom_to_binary(M) || M <- lists:sublist(loaded_for_trace(), 8), lists:member(M, Modules)],
        functions => length(lists:usort([MFA || {_, Fs} <- Found, {MFA, _} <- Fs])), probes => [#{id => Id, functions => length(Fs), modules => length(lists:usort([M || {{M, _, _}, _} <- Fs]))}
        || {#{id := Id}, Fs} <- Found]}.

%% Decodes the specifications of a probe. The client has replaced atoms that the node lacks, so decoding makes no atoms.
probe(Probe = #{match_spec := Spec}) ->
    (program(Probe))#{match_spec := case Spec of
        {any, Bin} -> {any, token_marked(spec(Bin))};
        {arity, Map} -> {arity, maps:map(fun(_, Bin) -> token_marked(spec(Bin)) end, Map)}
    end}.

%% Limits the number of variables, because each variable is an atom that stays for ever. A fresh node has '$1' to '$4'.
-define(VARIABLES_MOST, 1023). % FIT_VARIABLES_MAX

variables(Most) ->
    [etrace_atom | % in a message, it marks an atom that the node lacks (SPEC_ATOM_MARK)
        [binary_to_atom(<<$$, (integer_to_binary(N))/binary>>) || N <- lists:seq(1, min(Most, ?VARIABLES_MOST))]].

spec(Bin) ->
    try binary_to_term(Bin, [safe]) catch error:_ -> throw(bad_spec) end.

%% Returns {[{MFA, Specification}], [MFA]}: the functions to trace, and the functions that are too dangerous to trace.
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

%% Sets the wanted trace patterns. Returns {[{MFA, Scope, Specification}], Mode}. Mode is exact if only these functions
%% are armed. Mode is {left, Asked} if also functions are armed that nobody asked for (tracer_plan.hrl); this happens
%% only with May. If a program in the NIF tests the arguments of a function, its pattern is `true` instead of the
%% specification.
call_patterns(Session, Scopes, Only, May, Tracer) ->
    Calls = [{MFA, Scope, Ms} || {Scope, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)],
    Wanted = keyed(Scopes),
    {Set, Mode} = already(Session, Only),
    Other = [{Scope, MFA} || {Scope, MFA} <- maps:keys(Set), {Instead, S} <- [{local, global}, {global, local}], S =:= Scope,
        is_map_key({Instead, MFA}, Wanted)],
    Here = case Only of all -> maps:without(Other, Set); _ -> #{} end,
    Fresh = Only =:= all andalso map_size(Set) =:= 0, % nobody is traced yet
    Fresh andalso Tracer =/= fallback andalso unasked(Tracer, none),
    Plans = fun(Free) ->
        [{Scope, map_size(Map), plan(Scope, Map, maps:from_list([{MFA, Ms} || {{S, MFA}, Ms} <- maps:to_list(Here), S =:= Scope]), Fresh, Free)}
            || {Scope, Map} <- Scopes]
    end,
    Asked = kept([MFA || {MFA, _, _} <- Calls], maps:merge(budget_cleared(Session),
        case Mode of {left, Before} -> Before; exact -> kept([MFA || {_, MFA} <- maps:keys(Set)], #{}) end)),
    {New, Planned} = case May andalso (Only =:= all orelse Mode =/= exact) andalso Plans(is_free(Asked)) of
        false -> {exact, Plans(fun(_) -> false end)};
        Leaving ->
            Many = lists:sum([map_size(Left) || {_, _, {_, Left}} <- Leaving]) > ?LEFT_LEAST,
            case (Mode =/= exact orelse Many) andalso unasked(Tracer, maps:keys(Asked)) of
                true -> {{left, Asked}, Leaving};
                false when Fresh -> {exact, [{Scope, N, {Steps ++ [{MFA, false} || MFA <- lists:sort(maps:keys(Left))], #{}}} || {Scope, N, {Steps, Left}} <- Leaving]};
                false -> {exact, Plans(fun(_) -> false end)}
            end
    end,
    Left = keyed([{Scope, L} || {Scope, _, {_, L}} <- Planned]),
    %% Mark the patterns as undefined: if the worker is killed while it sets them, nobody knows which ones are set.
    armed(Session, maps:merge(Set, maps:map(fun(_, _) -> undefined end, maps:merge(Left, Wanted))), New),
    %% The NIF may have no room for the names of functions in modules that are armed again. Then it cannot drop the
    %% events of unwanted functions, so the other modules must not keep such functions armed.
    Stray = case Mode of
        {left, Kept} when New =:= exact, Only =/= all -> lists:filter(fun({_, MFA}) -> (is_free(Kept))(MFA) end, maps:keys(Set));
        _ -> []
    end,
    [trace:function(Session, MFA, false, [Scope]) || {Scope, MFA} <- Other ++ Stray],
    lists:foreach(fun({Scope, N, {Steps, _}}) -> set(Session, Scope, Steps, N) end, Planned),
    New =:= exact andalso Mode =/= exact andalso unasked(Tracer, none),
    armed(Session, maps:merge(case Only of all -> Left; _ -> maps:merge(maps:without(Stray, Set), Left) end, Wanted), New),
    {Calls, New}.

%% Returns the wanted patterns of each scope: [{Scope, #{MFA => Specification}}]. Everybody: see everybody/2.
scopes(Found, Join, Decided, Everybody) ->
    Of = fun(Scope) -> merge([{Id, F} || {#{id := Id, scope := S}, F} <- Found, S =:= Scope]) end,
    {Local0, Global0, Meta0} = {Of(local), Of(global), Of(meta)},
    %% A function cannot have a local and a global breakpoint. The local one sees every call, so it takes the clauses of
    %% both. If every process is traced, a meta trace sees every call too, and one event is enough. Otherwise a call
    %% makes two events, and each names its probes.
    Local1 = together(Local0, maps:with(maps:keys(Local0), Global0)),
    Global1 = maps:without(maps:keys(Local0), Global0),
    Both = maps:with(maps:keys(Meta0), maps:merge(Local1, Global1)),
    {Local, Global, Meta, Named} = case Everybody of
        inside -> {maps:without(maps:keys(Both), Local1), maps:without(maps:keys(Both), Global1), together(Meta0, Both), Both};
        true -> {maps:without(maps:keys(Both), Local1), maps:without(maps:keys(Both), Global1), together(Meta0, Both), #{}};
        false -> {Local1, Global1, Meta0, Both}
    end,
    Meant = [{Scope, joined_all(Join, Map, Named)} || {Scope, Map} <- [{local, Local}, {global, Global}, {meta, Meta}]],
    [{Scope, without_results(Scope, Everybody =:= inside, maps:merge(Map, maps:map(fun(_, _) -> true end, maps:with(maps:keys(Decided), Map))))}
        || {Scope, Map} <- Meant].

together(A, B) -> maps:merge_with(fun(_, X, Y) -> lists:keysort(1, X ++ Y) end, A, B).

%% Returns true if every process is traced, so that a meta trace sees the same calls as a local trace. Returns false if
%% an action may stop tracing a process, or if there is a flag `silent` or `return_to`, which a meta trace ignores.
%% Returns `inside` if the request has roots: the calls of functions that are also traced inside of roots must then name
%% their probes, so that the NIF knows which calls open a root.
everybody(#{inside := _}, _) -> inside;
everybody(Request = #{flags := Flags}, #{switches := Switches, silences := Silences}) ->
    maps:get(procs, Request, [all]) =:= [all] andalso not Switches andalso not Silences
        andalso not lists:any(fun(F) -> lists:member(F, [silent, return_to]) end, Flags).

keyed(Scopes) -> maps:from_list([{{Scope, MFA}, Ms} || {Scope, Map} <- Scopes, {MFA, Ms} <- maps:to_list(Map)]).

%% Returns the patterns of the session as the worker has set them: {#{{Scope, MFA} => Specification}, exact | {left,
%% Kept}}. Leaves out the modules to arm again, because their new code has no patterns.
already(Session, Only) ->
    case get(function) of
        {Session, Set, Mode} when Only =:= all -> {Set, Mode};
        {Session, Set, Mode} ->
            Again = maps:from_keys(Only, true),
            {maps:filter(fun({_, {M, _, _}}, _) -> not is_map_key(M, Again) end, Set), Mode};
        _ -> {#{}, exact}
    end.

mode(Session) -> case get(function) of {Session, _, Mode} -> Mode; _ -> exact end.

armed(Session, Set, Mode) -> put(function, {Session, Set, Mode}).

merge(Probes) ->
    lists:foldr(fun({Id, Found}, Acc) ->
        lists:foldl(fun({MFA, Ms}, A) -> A#{MFA => [{Id, Ms} | maps:get(MFA, A, [])]} end, Acc, Found)
    end, #{}, Probes).

%% Adds etrace_owes to the message of each clause that traces the return. So the NIF can count the owed results if only
%% some calls have their return traced. The NIF removes etrace_owes from the event.
owing(true) -> true;
owing(Ms) -> [owing_clause(Clause) || Clause <- Ms].

owing_clause(Clause = {Head, Guards, Body}) ->
    case does(Body) of
        #{frames := false} -> Clause;
        _ -> {Head, Guards, case lists:keymember(message, 1, Body) of
            false -> Body ++ [{message, etrace_owes}];
            true -> [case Action of
                {message, Term} -> {message, {{etrace_owes, Term}}};
                _ -> Action
            end || Action <- Body]
        end}
    end.

messages(_, _, [], _) -> ok;
messages(Session, Kind, Probes, Join) ->
    Ms = Join(false, Kind, [{Id, here(M)} || #{id := Id, match_spec := {any, M}} <- Probes]),
    try trace:Kind(Session, Ms, []) catch error:_ -> throw({bad_spec, atom_to_binary(Kind)}) end.

%% Replaces a guard `Variable =:= node()` by the node's name in the head. The VM tests the head first, and it tests
%% every received message.
here(true) -> true;
here(Clauses) ->
    [case Clause of
        {Head, [{'=:=', V, {node}} | Guards], Body} ->
            case is_variable(V) of
                true ->
                    Node = fun(A) when A =:= V -> node(); (A) -> A end,
                    {in_head(Node, Head), in_code(Node, Guards), in_code(Node, Body)};
                false -> Clause
            end;
        _ -> Clause
    end || Clause <- Clauses].

mfa_text({M, F, A}) ->
    unicode:characters_to_binary(io_lib:format("~ts:~ts/~w", [M, F, A])).

%% ---- processes and ports (in the owner) ---------------------------------------------------------------------------

flags(Request = #{flags := Proc}, #armed{whom = {Procs, Ports}}, S) ->
    Time = case S#s.tracer of fallback -> [monotonic_timestamp]; _ -> [] end,
    Port = maps:get(port_flags, Request, []),
    Session = S#s.session,
    maps:get(seq_trace, Request, false) andalso seq_start(S),
    {flags(fun(P, On) -> trace:process(Session, P, On, Proc ++ Time) end, Proc, follow_whom(Procs, S), [P || P <- ours(S), is_pid(P)]),
        flags(fun(P, On) -> trace:port(Session, P, On, Port ++ Time) end, Port, Ports, [P || P <- ours(S), is_port(P)])}.

flags(_, [], _, _) -> 0;
flags(Set, _, Whom, Ours) ->
    N = each(Whom, fun(W) -> Set(W, true) end),
    each(Ours, fun(W) -> Set(W, false) end),
    N.

%% Calls Set for each process and port and adds up the results; ignores those that have ended.
each(Whom, Set) ->
    lists:sum([try Set(W) catch error:badarg when is_pid(W); is_port(W) -> 0 end || W <- Whom]).
