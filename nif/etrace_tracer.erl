%% SPDX-License-Identifier: Apache-2.0
%% The module of the companion, which runs on the traced node: the owner process, its helper processes, and stubs of the
%% erl_tracer callbacks, which the NIF replaces. Only the owner holds the trace session on its heap.
%%
%% The module name is a placeholder. The client and the janitor write the build's hash and a slot over it, so two builds
%% or two clients never reload each other's module. No literal may contain the module's own name, because the patch
%% would miss it. No function may match binaries, because OTP 29 does not load the code that OTP 25 makes of that.
%%
%% The owner never waits for another process: it sends with nosuspend and asks other processes through helpers. It ends
%% when its client is gone, silent for ten seconds, or satisfied. However it ends, the session dies with its heap.
%%
%% The client sends these messages. Each of them renews the lease:
%%   {pull, Seq, Credit}   the client has all batches up to Seq; later ones may have Credit bytes in all. 0 only renews.
%%   {request, Id, Bin}    Bin: a term, decoded safely; names in it are binaries, so that no typo becomes an atom
%%   {stop}                destroy the session, drain, send the batch marked last, end when the client acknowledges it
%% The owner sends binaries: $B a batch (etrace_wire.h) | $R u32 id, {ok, Term} | {error, Reason} | $G the reason |
%% $P {Done, All} functions, while the worker is busy with a request | $W, before the first answer, the name of the
%% process that the owner waits for.
%%
%% The build makes variants of this module, and the client loads the one that its command needs. All variants are made
%% of all files; the compiler leaves out the functions that nothing calls. So a variant is what it does not do:
%%   whole       does everything
%%   trace       NO_QUESTIONS: answers no question ({ask, …}, tracer_info.hrl, and {complete, …})
%%   questions   NO_TRACING: only answers questions that need no trace session; it has no NIF (tracer_questions.hrl)
%% Every variant exports owner/1, hello/0 and trace/5, because etraces recognize one another by them (companion/1).
-module(etrace_00000000_0).

-export([owner/1, worker/1, hello/0, trace/5]).

-ifdef(NO_QUESTIONS).
-define(QUESTIONS(Does), throw(bad_request)).
-else.
-define(QUESTIONS(Does), Does).
-endif.

-ifdef(NO_TRACING).
-define(BEGIN, questions_begin).
-define(TRACING(Does), throw(bad_request)).
-else.
-export([names/1, warden/1, asker/1, system/3, cleaner/1]).
-export([enabled/3, enabled_call/3, enabled_send/3, enabled_receive/3, enabled_procs/3, enabled_ports/3,
    enabled_running_procs/3, enabled_running_ports/3, enabled_garbage_collection/3]).
-export([open/1, exclude/1, gate/2, kinds/2, program/3, owing/2, unasked/2, ticks/0, drain/4, tally/2, tally/4, doze/1, renew/1, close/1]).
-define(BEGIN, tracing_begin).
-define(TRACING(Does), Does).
-endif.

-define(WHOLE(Does), ?TRACING(?QUESTIONS(Does))).

-define(LEASE, 10000).       % ms without a message from the client
-define(LATE, 1000).         % ms by which the lease timer may be late; more means that the whole node was stopped
-define(BUSY, 20).           % ms until a refused send is retried
-define(LINGER, 2000).       % us: the shortest time for which a small batch may grow
-define(LINGER_MOST, 5000).  % us: the longest time for which a small batch may grow, when few events come
-define(NAMES_WAIT, 100).     % ms for which a batch may wait for names, if it is one of the first or may be the last
%% Bytes that make a batch full, and its limit unless one event is larger; small batches suit slow lines
-define(BATCH, 262144).
-define(MAX_CREDIT, 2097152). % ETW_MAX_CREDIT
-define(META_ROOM, 24576).   % bytes of a batch that are reserved for names, notices and system events
-define(META_MOST, 8192).    % bytes of META_ROOM for names
-define(NOTICES_MOST, 65536). % bytes of notices about modules in a batch
-define(MIN_DRAIN, 4096).

%% The owner's state.
-record(s, {
    key,                     % a secret reference that authenticates messages of the namer
    lease,                   % the timer of the lease
    client, node, janitors,  % the client's pid, its node, [the janitor and its heir]
    tracer,                  % the NIF's state (an integer) | fallback
    fb,                      % the fallback tracer's state (tracer_fallback.hrl)
    session = none,          % the only strong handle of the session
    heard, spoke = false,    % monotonic ms of the client's last message; whether it sent any
    credit = 0, sent = [],   % bytes that the client allows; batches in flight: [{Seq, Bytes}]
    unsent = none,           % {Seq, Message}: a batch that the channel refused
    meta = [], metasize = 0, % the owner's frames for the next batch, and their bytes
    omitted = 0,             % notices that the next batch has no room for
    hears = none,            % {the process that receives system events, its session}
    tokens = none,           % {idle | busy, the process that removes our trace tokens, #{Token => [Function]}}
    system = none,           % {Section, [Tracee], Told}: system events for the next batch
    %% {seen, lost, missing}: the counters of system events that the client has, and how many events it lacks
    system_told = {0, {0, 0, 0, 0, 0, 0, 0, 0}, 0},
    dozing = false, wait = 0,
    until = none, linger = ?LINGER, % monotonic us until which a batch may grow; us for which it may grow
    min,                     % bytes: if the credit leaves less than this for a batch, the owner does not drain
    options, why,            % options of the boot message; why the NIF was not loaded
    armed = none,            % what is traced (tracer_arm.hrl)
    %% the names of -P, or {lives, Monitor, [Pid]}: a monitored process, and the other selected ones (tracer_follow.hrl)
    follow = none,
    timer = none,            % the timer of the next self-check
    worker, helper = none,   % the process for long jobs; {Ref, What}: its current job
    next = none,             % {Id, Request}: a request to trace that waits for the worker
    unasked = false,         % functions that nobody asked for are busy: the worker must clear them
    namer,                   % the process that looks up names
    names_wait = ?NAMES_WAIT, % ms that the next batch may wait for names (tracer_names.hrl)
    registered = none,       % #{Pid => Name}, for exits | none
    parted = [],             % names that processes had lost at the last drain: [{Pid, Name}]
    warden, memory = none,   % the process that watches the node's memory; its current watch (tracer_memory.hrl)
    asker,                   % the process that reads the stacks of processes that owe many results (tracer_owed.hrl)
    ended = [],              % [MFA]: functions that call themselves in a loop
    others = [],             % the processes and ports of other etraces
    unchecked = false,       % the last self-check failed or is overdue
    late = 0,                % self-checks that became due since the last one began
    %% off: the NIF counts no figures; idle, round: it does, and whether a round reports them now (tracer_tally.hrl)
    tally = off,
    ring = off,              % the flight recorder (tracer_ring.hrl)
    recorded = false,        % something was armed, so the rings may hold events
    budget = none,           % the budget of the trace (tracer_budget.hrl)
    checks = 0,              % self-checks so far
    counted = [],            % frames of counts for the next batches
    counters = #{},          % #{MFA => count}: looping functions that a counter of the VM counts, as reported
    offered = 0,             % calls that these counters have reported so far
    told = 0,                % bits of the NIF's status that the owner has reported to the client
    %% {What, HowMuch}: the guard that ended the tracing | destroyed | gone: somebody on the node ended it
    guard = none,
    said = false,            % true: a batch has the last notices about figures (tally_waits/1)
    last = none              % steps after stop: trace_delivered (awaited), delivered, flush, {sent, Seq}
}).

-include("tracer_kinds.hrl"). % made of event_kinds.def
-include("tracer_wire.hrl").
-include("tracer_files.hrl").
-include("tracer_select.hrl").
-include("tracer_whom.hrl").
-include("tracer_records.hrl").
-include("tracer_cost.hrl").
-include("tracer_memory.hrl").
-include("tracer_fallback.hrl").
-include("tracer_tally.hrl").
-include("tracer_effects.hrl").
-include("tracer_tokens.hrl").
-include("tracer_plan.hrl").
-include("tracer_arm.hrl").
-include("tracer_ring.hrl").
-include("tracer_combine.hrl").
-include("tracer_check.hrl").
-include("tracer_owed.hrl").
-include("tracer_program.hrl").
-include("tracer_gates.hrl").
-include("tracer_system.hrl").
-include("tracer_process.hrl").
-include("tracer_names.hrl").
-include("tracer_registry.hrl").
-include("tracer_complete.hrl").
-include("tracer_count.hrl").
-include("tracer_budget.hrl").
-include("tracer_look.hrl").
-include("tracer_follow.hrl").
-include("tracer_why.hrl").
-include("tracer_health.hrl").
-include("tracer_info.hrl").
-ifdef(NO_TRACING).
-include("tracer_questions.hrl").
-endif.

%% ---- replaced by the NIF ------------------------------------------------------------------------------------------

%% The callbacks of erl_tracer. trace_call/5 and the other trace_*/5 are left out: for meta tracing the VM would call
%% them with too few arguments and abort.
%%
%% hello() -> {Hash, Nonce}: the hash of the build, from the file, and the argument of load_nif. They prove that the
%%     file is ours.
%% open({RingBytes, Rings, Bytes, Levels, Terms, Limit, Rate, [Cookie | RedactedNames], RingMost}) -> {ok, State} |
%%     {error, memory | bell | redact | open}: begins a session. State is a small integer: the tracer state in the VM,
%%     and the first argument of the functions below. RingBytes: a power of two. RingMost: the size to which a full ring
%%     grows, or 0. Rings: at most 256. Limit, Rate: 0 for none.
%% exclude([PidOrPort]): drops all events of these processes and ports, and all messages to them. Replaces the previous
%%     list. Uses the first 128 of the list.
%% gate(State, Verb): tells the callbacks what to do (verbs.c). The verbs are:
%%     fresh: nothing is owed, because the session is new.
%%     open, closed: closed counts all new events as lost (guard).
%%     early: reject calls before the VM runs the match specification and builds the arguments; only if no specification
%%         can reject a call. late: reject them after that.
%%     plain: no specification adds a message to a call or to a message that is sent. answered: a specification may add
%%         one.
%%     returns: every call that makes an event has its return traced, so the NIF counts owed results. owing: calls whose
%%         return is traced say so in the message of their specification, with etrace_owes or {etrace_owes, Message},
%%         which the NIF removes. no_returns: neither.
%%     {tally, Functions}: count calls and results instead of sending them, without a rate. Resets the figures, with
%%         room for so many functions and a quarter more. Returns `more` while it still clears old figures: call it
%%         again.
%%     {by, Keys, Values, N}: count calls by these keys, with these values (enum etw_by), instead of sending them, with
%%         room for N keys. Returns `more` like tally.
%%     hold: hold calls until their result, and send both if the filter may show them. tally/2 reports the hidden and
%%         open calls without a function.
%%     trees: keep what happens inside of a root until its result, and send it if the filter accepts that result.
%%         tally/2 reports the hidden events and the open roots without a function.
%%     events: send all calls and results.
%%     {inside, Roots, Leaves, N, Kinds}: Roots are the ids of the probes that are roots. Show calls, and events of
%%         these kinds (a mask), only inside of one of N calls of roots. With Leaves a process outside of them loses all
%%         flags.
%%     outside: show calls everywhere.
%%     {choose, Others, Pids} -> Left | {many, Most}: after inside. Only these processes open roots, or with Others all
%%         but these. One call takes 1000 processes and returns the rest of them. many: the table has no room for them.
%%     {budget, N}: reject calls beyond N a second early, without counting them as lost. no_budget: do not.
%%     ask: count the calls that come to a match specification or a program, up to a thousand, until `early`. asked ->
%%         the number of these calls.
%%     times -> {Least, Most} | none: the shortest and the longest duration in ns that the filter has tested.
%%     spent -> {calls that the budget admitted, calls that it rejected}, of all sessions. Clears bit 64 of the status.
%%     worked -> processor time of the calling thread in ns.
%%     resume: the processes get the flag `call` again, after a pause in which results of open calls were missed.
%%     {requests, Flags}: encode only what the views of requests read, and ignore all other messages (enum
%%         etw_requests); 0: encode everything.
%%     trial -> trial: the atom is the state of a session whose events the NIF ignores without ending the session, and
%%         the name of the function that this session traces (trial_cost/2).
%%     {leftover, Path}: the socket to which the NIF sends what the client has not got, when the node halts; <<>>: none.
%%         leftover: sends it now.
%%     {got, Seq}: the client has this batch and all before it.
%%     {at_end, Ms}: the leftover includes the flight recorder's events of the last Ms milliseconds; 0: all its events.
%%         {at_trigger, Ms}: the leftover includes them only after a trigger.
%%     overwrite: the rings overwrite their oldest frames, and drain/4 takes none.
%%     {snapshot, Ms, After} -> {From, Us}: ends the overwriting. The rings hold every event after the tick From, which
%%         was Us microseconds ago; with Ms, at most Ms milliseconds ago. From = 0: every event.
%%     trigger: a result that the filter accepts asks for a snapshot. The rings then overwrite nothing. Returns `more`
%%         like tally.
%%     watch -> the number of such results since the last watch. The next such result asks for a snapshot. fire: acts
%%         like such a result. unwatch -> boolean(): true if a result could still have asked for a snapshot; from now on
%%         no result asks. fired -> boolean(): true if a result has asked for a snapshot.
%%     {labels, [Label]}: report only sequential tracing with these labels; []: with all labels.
%%     {filter, Steps, [Program]}: the filter for tally, hold and trees (struct etw_filter_step), and its programs
%%         (lists of steps, enum etw_step); <<>>: no filter. badarg if the filter is invalid.
%% kinds(State, Mask): bit K: events of kind K are wanted. The callbacks ignore other kinds without counting them.
%% program(State, [Step], [MFA] | all) -> [MFA]: gives these functions the program of these steps (etrace_wire.h) in
%%     place of their previous one, and returns the functions that took it; the others have none then. No steps: removes
%%     the programs of these functions. all: removes all programs.
%% owing(State, questions) -> [{Pid, MFA}]: processes that owe so many results of a function that the asker should look
%%     at their stack, each once. The NIF sends the caller `owing` when there are new ones. all_questions: also those
%%     that it has returned and that have no answer.
%% owing(State, {Pid, MFA}) -> {Count, Total, Returns} | none: calls of the function that have not returned in the
%%     process, such calls of all functions, and results of the function so far.
%% owing(State, {Pid, MFA, Answer}): N: ask again after N more calls. trusted: the calls nest; ask again at twice as
%%     many calls. forget: the stack has no such frames. endless: the function loops; its calls in the process pause
%%     until owing(State, MFA).
%% owing(State, MFA): the worker has stopped tracing the results of the function.
%% unasked(State, [MFA] | none | busy) -> boolean() | [MFA]: a list: drops the events of module_info and of
%%     compiler-generated functions, except the functions of this list and of earlier ones; false: no room for the list.
%%     none: drops nothing, and forgets the lists. busy: returns the functions whose events were dropped often since the
%%     last call.
%% ticks() -> the clock of the frames
%% drain(State, MaxBytes, OwnSections, Last) -> {Batch | none, [NewTracee | {Pid, Name}], Status}: one complete batch
%%     (etrace_wire.h), or none if there is no news, not even a watermark that the client waits for. A frame larger than
%%     MaxBytes comes alone. A tracee may be reported more than once. {Pid, Name}: the process has got or lost the name.
%%     Last: true only after the session is destroyed; ETW_BATCH_LAST is then set when nothing is left and nothing was
%%     counted since the last round of tally/2 began. Bits of Status:
%%         1: the rings have more frames or more new tracees
%%         2: events wait for the watermark
%%         4: the limit was reached
%%         8: a process owes too many results
%%         16: a thread has spent its time for events
%%         32: unasked/2 has busy functions
%%         64: the budget has rejected calls
%%         128: a snapshot is asked for
%%         256: all events up to After milliseconds after the snapshot began are in this batch or an earlier one
%%         512: a name was not reported
%% tally(State, Bytes) -> {more | done, Frames}: by how much the figures of some functions and keys grew since the last
%%     round. The frames have at most so many bytes, except for the last frame. `done` ends a round, in which the NIF
%%     has looked at every function and key.
%% tally(MFA, Calls, Seen, Counted) -> Frame: for calls that a counter of the VM has counted (struct etw_tally).
%% doze(State) -> armed | busy: armed: the NIF sends ready_input at the next event, or without one. busy: drain first.
%%     The NIF also sends ready_input, without doze/1, when half of a ring waits to be drained.
%% renew(State) -> NewState: for a new trace session. Late events of the old one are ignored.
%% close(State): from now on the callbacks do nothing; drain still works.

enabled(_, _, _) -> erlang:nif_error(undef).
enabled_call(_, _, _) -> erlang:nif_error(undef).
enabled_send(_, _, _) -> erlang:nif_error(undef).
enabled_receive(_, _, _) -> erlang:nif_error(undef).
enabled_procs(_, _, _) -> erlang:nif_error(undef).
enabled_ports(_, _, _) -> erlang:nif_error(undef).
enabled_running_procs(_, _, _) -> erlang:nif_error(undef).
enabled_running_ports(_, _, _) -> erlang:nif_error(undef).
enabled_garbage_collection(_, _, _) -> erlang:nif_error(undef).
trace(_, _, _, _, _) -> erlang:nif_error(undef).
hello() -> erlang:nif_error(undef).
open(_) -> erlang:nif_error(undef).
exclude(_) -> erlang:nif_error(undef).
gate(_, _) -> erlang:nif_error(undef).
kinds(_, _) -> erlang:nif_error(undef).
program(_, _, _) -> erlang:nif_error(undef).
owing(_, _) -> erlang:nif_error(undef).
unasked(_, _) -> erlang:nif_error(undef).
ticks() -> erlang:nif_error(undef).
drain(_, _, _, _) -> erlang:nif_error(undef).
tally(_, _) -> erlang:nif_error(undef).
tally(_, _, _, _) -> erlang:nif_error(undef).
doze(_) -> erlang:nif_error(undef).
renew(_) -> erlang:nif_error(undef).
close(_) -> erlang:nif_error(undef).

%% ---- life ---------------------------------------------------------------------------------------------------------

owner(Boot) ->
    try start(Boot)
    catch
        exit:Reason -> exit(Reason);
        error:Reason:Stack -> exit({error, {Reason, Stack}}); % the node would log an error, but not an exit
        throw:Reason -> exit({error, Reason})
    end.

start({Client, So, Hash, Nonce, Options, Janitors = [Janitor | _]}) ->
    Node = node(Client),
    net_kernel:monitor_nodes(true, [{node_type, hidden}]), % monitor_node/2 would try to reconnect to a lost client
    lists:member(Node, nodes(hidden)) orelse exit(nodedown),
    monitor(process, Janitor),
    process_flag(trap_exit, true), % the client links itself to us
    Lease = lease_in(?LEASE),
    has_sessions() orelse refuse(Client, no_sessions),
    look_apart(), % other etraces learn only later that we exist
    Rings = memory_rings(),
    is_map(Rings) orelse refuse(Client, Rings),
    S = #s{client = Client, node = Node, janitors = Janitors, lease = Lease, heard = now_ms(), options = maps:merge(Rings, Options)},
    ?BEGIN(S, {So, Hash, Nonce}).

tracing_begin(S = #s{janitors = Janitors, options = Options}, {So, Hash, Nonce}) ->
    Why = case Options of
        #{fallback := true} -> [{<<"asked for">>, <<>>}];
        _ ->
            send(S, <<$W, (term_to_binary(tracer))/binary>>),
            nif_load(So, Hash, Nonce, Janitors)
    end,
    cookie_is(atom_to_binary(erlang:get_cookie())),
    Key = make_ref(),
    S0 = S#s{key = Key, why = Why, namer = names_start(Key), worker = worker_start(), warden = warden_start(), asker = asker_start(),
        min = maps:get(size, Options, 1024) * 2 + ?MIN_DRAIN},
    S1 = session(ring_begin(excluded(tracer(S0)))),
    S1#s.namer ! {others, Key, true},
    Hello = info(S1),
    begun(Hello, S1),
    loop(meta(S1, hello, [Hello])).

%% Sends the first answer, which says what the node is.
begun(Hello, S) ->
    send(S, <<$R, 0:32, (term_to_binary({ok, Hello#{pid => self()}}))/binary>>),
    S#s.worker ! {work, make_ref(), sweep, none}. % in the worker, because it may wait for the code server

refuse(Client, Why) ->
    send(#s{client = Client}, <<$R, 0:32, (term_to_binary({error, Why}))/binary>>),
    exit(normal).

%% Returns true if the node has the module `trace` of OTP 27. An older program may shadow it with a module of that name,
%% and a release may lack it.
has_sessions() ->
    try [{function, 4}, {process, 4}, {session_create, 3}, {session_info, 1}] -- trace:module_info(exports) =:= []
    catch error:undef -> false
    end.

tracer(S = #s{why = ok, options = O}) ->
    case open({maps:get(buffer, O), maps:get(count, O, memory_threads()), maps:get(size, O, 1024),
            maps:get(depth, O, 16), maps:get(items, O, 1024), maps:get(limit, O, 0), maps:get(rate, O, 0),
            [get(cookie) | maps:get(redact, O, [])], maps:get(most, O)}) of
        {ok, State} ->
            ok = gate(State, {leftover, maps:get(leftover, O, <<>>)}),
            S#s{tracer = State};
        {error, memory} -> tracer(S#s{why = [{<<"no memory for its buffers">>, <<>>}]});
        {error, bell} -> tracer(S#s{why = [{<<"no thread for it">>, <<>>}]})
    end;
tracer(S = #s{options = O}) ->
    S#s{tracer = fallback, fb = fb_new(O)}.

%% Returns the processes and ports of this trace session.
ours(S) -> S#s.janitors ++ [self(), S#s.namer, S#s.worker, S#s.warden, S#s.asker] ++ [P || {P, _} <- [S#s.hears]] ++ [P || {_, P, _} <- [S#s.tokens]] ++ channel(S).

%% Excludes our processes and those of other etraces from tracing. Call it whenever they change: two etraces that traced
%% each other's messages would never stop.
excluded(S) ->
    Ours = ours(S),
    put(ours, Ours), % other etraces read it
    S#s.tracer =:= fallback orelse exclude(Ours ++ S#s.others),
    S.

%% Returns the processes and ports of the connection to the client. Tracing them would make new events for each batch.
channel(#s{node = Node}) ->
    case lists:keyfind(Node, 1, erlang:system_info(dist_ctrl)) of
        {_, P} when is_pid(P) -> [P | [X || Sup <- tls_supervisors(P), X <- tls_processes(Sup)]];
        {_, P} -> [P];
        false -> []
    end.

%% Returns the supervisors of a TLS connection: the distribution controller P is its sending process, and has a
%% supervisor together with the receiving process.
tls_supervisors(P) ->
    [L || L <- links(P), began(L) =:= {supervisor, tls_dyn_connection_sup, 1}].

tls_processes(Sup) ->
    Pids = [P || P <- links(Sup), is_pid(P), element(1, began(P)) =/= supervisor],
    lists:usort([Sup | Pids] ++ [Port || P <- Pids, Port <- links(P), is_port(Port)]).

links(P) ->
    case is_pid(P) andalso process_value(P, links) of L when is_list(L) -> L; _ -> [] end.

began(P) ->
    case is_pid(P) andalso process_value(P, {dictionary, '$initial_call'}) of
        MFA when is_tuple(MFA) -> MFA;
        _ -> {none}
    end.

session(S = #s{tracer = Tracer, node = Node}) ->
    Session = {_, Weak} = trace:session_create(etrace, case Tracer of fallback -> self(); State -> {?MODULE, State} end, []),
    put(session, {Weak, Node, os:system_time(second)}), % tracer_info.hrl reads it to tell whose session it is
    asker_tell(gated([fresh], S#s{session = Session})).

destroy(S = #s{session = none}) -> S;
destroy(S = #s{session = Session}) ->
    seq_stop(S),
    trace:session_destroy(Session),
    gc_end(),
    tokens_end(system_stop((follow_end(S))#s{session = none, armed = none})).

-spec finish(term(), #s{}) -> no_return().
finish(Reason, S0) ->
    %% Close first: the VM then removes the flags of processes that inherit them meanwhile, at their next event.
    case S0#s.tracer of
        fallback -> ok;
        State ->
            Reason =:= nodedown andalso gate(State, leftover), % init:stop/0 has closed the distribution
            close(State)
    end,
    S = destroy(S0),
    Reason =:= janitor andalso tokens_wait(S),
    leave_node(Reason, S).

-spec leave_node(term(), #s{}) -> no_return().
leave_node(Reason, S) ->
    %% Unread output for a frozen client would block init:stop/0. If the client never sent a message, another client may
    %% have its name by now, and that connection is not ours to close.
    Reason =:= lease andalso S#s.spoke andalso hang_up(S),
    Reason =:= janitor andalso unload(?MODULE, S#s.client),
    exit(Reason).

%% Kills the port of the connection. Unsent output would otherwise keep the port open and block a stop of the node,
%% until the client reads it or TCP gives up after a quarter of an hour.
hang_up(S) ->
    lists:foreach(fun(P) -> is_port(P) andalso exit(P, kill) end, channel(S)),
    erlang:disconnect_node(S#s.node).

%% Unloads the module if the janitor was killed and its heir has not taken over. Only the process that registers the
%% slot's name may do that. This process must end before its own code is purged, so another process does that and gets
%% the module name as data.
unload(M, Client) ->
    case take(M) of
        true ->
            Purger = delete(M),
            erlang:system_info(sequential_tracer), % the VM notices here that its system tracer is gone
            erlang:send(Client, <<$G, (term_to_binary(killed))/binary>>, [nosuspend, noconnect]),
            unloaded(Purger, M);
        false ->
            ok
    end.

%% Retries while the node has no room for another process.
unloaded(Purger, M) ->
    try spawn(Purger, purge, [M])
    catch error:system_limit -> receive after 100 -> unloaded(Purger, M) end
    end.

%% Returns the module that must purge the code afterwards: erts_code_purger only if there is no code server
%% (janitor.eval).
delete(M) ->
    try code:purge(M), code:delete(M), code
    catch _:_ -> erts_code_purger:purge(M), erlang:delete_module(M), erts_code_purger
    end.

take(M) -> try register(M, self()) catch error:_ -> false end.

%% Unloads modules of etraces whose processes were all killed together.
sweep() ->
    lists:foreach(fun(M) ->
        case companion(M) of
            true -> take(M) andalso begin (delete(M)):purge(M), unregister(M) end;
            %% Old code of a deleted companion
            false -> is_slot(M) andalso not erlang:module_loaded(M) andalso code:soft_purge(M)
        end
    end, erlang:loaded() -- [?MODULE]).

info(S = #s{why = Why, tracer = Tracer}) ->
    (node_info(S))#{load_nif => Tracer =/= fallback, reason => reasons(Why)}.

node_info(S) ->
    Release = erlang:system_info(otp_release),
    {_, _} = Memory = {wordsize, erlang:system_info(wordsize)},
    maps:from_list([Memory,
        {node, atom_to_binary(node())}, % the node's name in the stream
        {otp_release, list_to_binary(Release)},
        {otp, version(Release)},
        {version, list_to_binary(erlang:system_info(version))},
        {system_architecture, list_to_binary(erlang:system_info(system_architecture))},
        {creation, erlang:system_info(creation)},
        {schedulers, erlang:system_info(schedulers_online)},
        {process_count, erlang:system_info(process_count)},
        {uptime, element(1, erlang:statistics(wall_clock))},
        {os_pid, list_to_binary(os:getpid())},
        {elixir, is_elixir() orelse begins_elixir(S)}]).

%% Returns true if the node of a command is about to start Elixir. The node has not loaded Elixir yet, but Elixir's
%% scripts pass an argument on the command line. Waits only shortly for `init`, which may be busy.
begins_elixir(#s{options = #{leftover := Path}}) when Path =/= <<>> ->
    init ! {self(), {get_argument, elixir_root}},
    receive {init, Answer} -> Answer =/= error
    after ?NAMES_WAIT -> false
    end;
begins_elixir(_) -> false.

version(Release) ->
    Root = case os:getenv("ROOTDIR") of false -> ""; Dir -> Dir end, % code:root_dir/0 would wait for the code server
    case file:read_file(filename:join([Root, "releases", Release, "OTP_VERSION"]), [raw]) of
        {ok, Text} when byte_size(Text) < 32 -> string:trim(Text);
        _ -> list_to_binary(Release)
    end.

%% ---- the loop -----------------------------------------------------------------------------------------------------

loop(S0) ->
    S = budget_rests(pump(S0)),
    receive
        Message ->
            try handle(Message, budget_works(S)) of
                Next -> loop(Next)
            catch
                error:Reason:Stack -> there(S), erlang:raise(error, Reason, Stack)
            end
    after S#s.wait -> loop(budget_works(S))
    end.

handle({pull, Seq, Credit}, S) when is_integer(Seq), is_integer(Credit) ->
    Sent = [X || X = {N, _} <- S#s.sent, N > Seq],
    is_map_key(leftover, S#s.options) andalso S#s.tracer =/= fallback andalso gate(S#s.tracer, {got, Seq}),
    case S#s.last of
        {sent, Last} when Seq >= Last -> finish(done(S), S);
        _ -> heard(S#s{credit = min(Credit, ?MAX_CREDIT), sent = Sent})
    end;
handle({request, Id, Bin}, S) when is_integer(Id), is_binary(Bin) ->
    heard(request(Id, Bin, S));
handle({stop}, S) ->
    heard(stop(S));
handle(ready_input, S) ->
    awake(S);
handle({timeout, Timer, {lease, Due}}, S = #s{lease = Timer}) ->
    case lease_left(Due, S) of
        Left when Left > 0 -> S#s{lease = lease_in(Left)};
        _ -> finish(lease, S)
    end;
handle({timeout, Timer, check}, S = #s{timer = Timer}) ->
    check(S);
handle({timeout, _, ring}, S) ->
    ring_watch(S);
handle({timeout, Timer, {follow, Wait}}, S = #s{follow = #follow{timer = Timer}}) ->
    follow(Wait, S);
handle({timeout, _, budget}, S) ->
    budget_resume(S);
handle({timeout, _, last}, S) ->
    case S#s.last of {sent, _} -> finish(done(S), S); _ -> S end;
handle({trace_delivered, _, _}, S = #s{last = trace_delivered}) ->
    flush(S#s{last = delivered});
handle({timeout, _, trace_delivered}, S = #s{last = trace_delivered}) ->
    flush(S#s{last = delivered});
handle({nodedown, Node, _}, S = #s{node = Node}) ->
    finish(nodedown, S);
handle({'EXIT', Client, _}, S = #s{client = Client}) ->
    finish(nodedown, S);
handle({'DOWN', _, _, Janitor, _}, S = #s{janitors = [Janitor | _]}) ->
    finish(janitor, S);
handle({done, Ref, Result}, S0 = #s{helper = {Ref, What}}) ->
    S = S0#s{helper = none},
    case cut_off(S) of
        none ->
            S1 = gc_settle(helped(What, Result, S)),
            budget_next(unasked_next(arm_next(S1)));
        Why ->
            stop(gc_settle(S#s{guard = Why})) % the VM refused the session, not the request
    end;
handle({done, _, Result}, S) ->
    unheard(Result, S),
    gc_settle(S);
handle({progress, Worker, Done}, S = #s{worker = Worker, helper = {_, What}}) when is_tuple(What), element(2, What) =/= none ->
    send(S, <<$P, (term_to_binary(Done))/binary>>),
    S;
handle({system, Pid, Section, Tracees, Counts}, S = #s{hears = {Pid, _}}) ->
    ring_system(S#s{system = {Section, Tracees, Counts}});
handle({'DOWN', _, _, Pid, _}, S = #s{hears = Hears = {Pid, _}}) ->
    system_end(Hears),
    S1 = S#s{hears = none},
    case S#s.last of none -> meta(S1, notice, [guard, system]); _ -> flush(S1) end;
handle({tokens, Worker, Tokens, Functions}, S = #s{worker = Worker}) when is_list(Tokens) ->
    tokens_begin(Tokens, Functions, S);
handle({cleaned, Cleaner, Left}, S = #s{tokens = {busy, Cleaner, _}}) ->
    tokens_cleaned(Left, S);
handle({timeout, _, {cleaned, Cleaner}}, S = #s{tokens = {busy, Cleaner, _}}) ->
    exit(Cleaner, kill),
    S;
handle({'DOWN', _, _, Cleaner, _}, S = #s{tokens = {_, Cleaner, _}}) ->
    tokens_lost(S);
handle({counted, Functions}, S) when is_list(Functions) ->
    budget_added(Functions, S);
handle({memory, Watch, Grown}, S = #s{memory = Watch, last = none}) ->
    case S#s.armed of
        #armed{} -> guard(memory, Grown, S);
        _ -> finish({guard, {memory, Grown}}, S) % no events to send: it only counts, or is not armed yet
    end;
handle(others, S) ->
    S#s.namer ! {others, S#s.key, false},
    S;
handle({others, Key, Others}, S = #s{key = Key}) when Others =/= S#s.others ->
    excluded(S#s{others = Others});
handle({endless, Pid, {_, _, _} = MFA}, S) ->
    endless(Pid, MFA, S);
handle({owed, Pid, {_, _, _} = MFA, Answer}, S = #s{tracer = fallback}) ->
    fb_answered(Pid, MFA, Answer, S);
handle({'DOWN', _, _, Pid, _}, S = #s{warden = Warden, namer = Namer, worker = Worker, asker = Asker})
        when Pid =:= Warden; Pid =:= Namer; Pid =:= Worker; Pid =:= Asker ->
    there(S), % without the module each replacement would fail at once, again and again
    replace(Pid, S);
handle({'DOWN', Ref, _, P, _}, S = #s{follow = {lives, Ref, _}}) ->
    follow_died(P, S);
handle({'DOWN', _, _, _, _}, S = #s{follow = #follow{}}) ->
    follow(1, S);
handle({retry, Id, Answer}, S) when is_integer(Id) ->
    reply(Id, Answer, S);
handle({ask, Id, What}, S) when is_integer(Id) ->
    ask(Id, What, S);
handle({retry, Id, Function, Argument}, S) when is_integer(Id) ->
    ask_worker(Id, Function, Argument, S);
handle({follow, Key, Name, P}, S = #s{key = Key}) ->
    follow_answered(Name, P, S);
handle({names, Key, _, Frames}, S = #s{key = Key}) -> % too late for their batch
    keep_names(S, Frames);
handle(Event, S = #s{tracer = fallback}) ->
    fb_event(Event, S);
handle(_, S) ->
    S.

replace(Warden, S = #s{warden = Warden}) ->
    memory_watch_on(excluded(S#s{warden = warden_start()}));
replace(Namer, S = #s{namer = Namer}) ->
    excluded(S#s{namer = names_start(S#s.key)});
replace(Asker, S = #s{asker = Asker}) ->
    asker_tell(excluded(S#s{asker = asker_start()}));
replace(_, S0 = #s{helper = Helper}) ->
    S = asker_tell(excluded(S0#s{worker = worker_start(), helper = none})),
    [S#s.worker ! {endless, S#s.tracer, none, MFA} || MFA <- S#s.ended],
    arm_next(budget_renew(case Helper of {_, What} -> helped(What, killed, S); none -> S end)).

%% Returns the ms until the end of the lease, whose timer was due at the time Due.
lease_left(Due, S) ->
    Now = now_ms(),
    case S#s.heard + ?LEASE - Now of
        Left when Left =< 0, Now - Due > ?LATE -> ?LATE; % the node was stopped: read the client's messages first
        Left -> Left
    end.

lease_in(Ms) ->
    erlang:start_timer(Ms, self(), {lease, now_ms() + Ms}).

heard(S) ->
    S#s{heard = now_ms(), spoke = true}.

%% Ends dozing and lets the next batch go at once.
awake(S) ->
    S#s{dozing = false, until = none}.

now_ms() ->
    erlang:monotonic_time(millisecond).

now_us() ->
    erlang:monotonic_time(microsecond).

send(#s{client = Client}, Message) ->
    erlang:send(Client, Message, [nosuspend, noconnect]).

stop(S = #s{last = none, guard = none}) ->
    stop_now(S#s{guard = cut_off(S)});
stop(S) ->
    stop_now(S).

stop_now(S = #s{last = none}) ->
    S1 = destroy((counters_end(budget_end(parting(asked_told(S)))))#s{last = stopping}),
    %% With the NIF the answer of trace:delivered/2 means that every scheduler has passed a safe point; with the
    %% fallback, that all events have arrived.
    trace_delivered(S),
    erlang:start_timer(1000, self(), trace_delivered),
    awake(ring_snapshot(S1#s{last = trace_delivered}));
stop_now(S) ->
    S.

%% Stops as if the client had asked for it: the owner still sends all events, and its last message names the guard.
guard(What, HowMuch, S = #s{last = none}) ->
    stop((meta(S, notice, [guard, What]))#s{guard = {What, HowMuch}});
guard(_, _, S) ->
    S.

done(#s{guard = none}) -> normal;
done(#s{guard = Guard}) ->
    case is_cut_off(Guard) of true -> Guard; false -> {guard, Guard} end.

is_cut_off(Guard) -> Guard =:= destroyed orelse Guard =:= gone.

%% Continues with the last batches when no more events can come: all of them are in the rings or with the owner.
flush(S = #s{last = delivered, hears = none, tokens = Tokens}) when Tokens =:= none; element(1, Tokens) =:= idle -> awake(S#s{last = flush});
flush(S) -> S.

trace_delivered(#s{session = none}) -> self() ! {trace_delivered, all, none};
trace_delivered(#s{session = Session}) -> trace:delivered(Session, all).

%% ---- batches ------------------------------------------------------------------------------------------------------

%% Sends as many batches as the credit allows and sets `wait`: the time until it must run again if no message comes. The
%% owner keeps at most one batch that the channel refused; all other events stay in the rings, whose memory is bounded.
pump(S = #s{unsent = {Seq, Message}}) ->
    case send(S, Message) of
        ok -> pump(batch_sent(Seq, byte_size(Message) - 1, S#s{unsent = none}));
        nosuspend -> S#s{wait = ?BUSY};
        noconnect -> finish(nodedown, S)
    end;
pump(S = #s{last = {sent, _}}) ->
    S#s{wait = infinity};
pump(S = #s{dozing = true, meta = [], counted = [], system = none, tally = Tally}) when Tally =/= round ->
    S#s{wait = infinity};
pump(S = #s{until = Until}) when is_integer(Until) ->
    case Until - now_us() of
        Left when Left > 0 -> S#s{wait = in_ms(Left)};
        _ -> pump(S#s{until = none})
    end;
pump(S) ->
    Room = S#s.credit - lists:sum([N || {_, N} <- S#s.sent]) - ?META_ROOM,
    case Room >= S#s.min orelse (S#s.sent =:= [] andalso S#s.credit > 0) of
        true -> pump(S, max(min(Room, ?BATCH), S#s.min));
        false -> S#s{wait = infinity}
    end.

pump(Before, Max) ->
    S0 = tally_ready(meta_ready(tally_last(Before)), Max),
    End = S0#s.last =:= flush andalso tally_done(S0),
    CutOff = is_cut_off(S0#s.guard),
    Last = End andalso not CutOff,
    Own = own_sections(S0),
    case S0#s.tracer of
        fallback -> {Batch, Met, Status, S1} = fb_drain(Max, Own, Last, S0);
        State -> {Batch, Met, Status} = drain(State, Max, Own, Last), S1 = S0
    end,
    {New, S2} = names_met(system_tracees(S0) ++ Met, Status, S1),
    case Batch of
        none ->
            S3 = limit(Status, S2),
            %% Somebody cut the session off, so events may be missing: no batch is marked as the last.
            End andalso CutOff andalso Status band 3 =:= 0 andalso finish(done(S3), S3),
            {Names, S4} = names_of(New, ?META_MOST, S3),
            idle(Status, keep_names(S4, Names));
        _ ->
            Room = ?META_MOST + max(0, Max - byte_size(Batch)),
            {Names, S3} = names_of(New, Room, limit(Status, system_sent(S2#s{meta = [], metasize = 0}))),
            {Message, Seq, IsLast} = batch_message(Batch, Names, S3#s.offered),
            S4 = case IsLast of
                true -> erlang:start_timer(2000, self(), last), S3#s{last = {sent, Seq}};
                false -> S3
            end,
            S5 = case send(S4, Message) of
                ok -> batch_sent(Seq, byte_size(Message) - 1, S4);
                nosuspend -> S4#s{unsent = {Seq, Message}};
                noconnect -> finish(nodedown, S4)
            end,
            wait_after(Status, byte_size(Batch), S5)
    end.

%% Sends the next batch at once if the last one was full. Otherwise the next one gets time to grow, because each batch
%% has a fixed cost for both sides: the smaller the last one was, the more time, within bounds. A message of the client
%% does not shorten this time.
wait_after(Status, _, S) when Status band 1 =:= 1 -> S#s{wait = 0};
wait_after(_, Bytes, S = #s{linger = Before}) ->
    case tally_done(S) of
        false -> S#s{wait = 0};
        true -> linger(S#s{linger = max(?LINGER, min(?LINGER_MOST, Before * ?BATCH div Bytes))})
    end.

linger(S = #s{linger = Us}) ->
    S#s{until = now_us() + Us, wait = in_ms(Us)}.

in_ms(Us) -> (Us + 999) div 1000.

idle(Status, S) when Status band (3 bor 384) =/= 0; S#s.last =:= flush -> % 384: a snapshot begins or ends
    linger(S);
idle(_, S = #s{ring = {on, _}}) ->
    S#s{wait = ?RING_LOOK};
idle(_, S = #s{tracer = fallback, meta = []}) ->
    S#s{wait = infinity};
idle(_, S = #s{tracer = fallback}) ->
    linger(S);
idle(_, S = #s{tracer = State}) ->
    case doze(State) of
        armed when S#s.meta =:= [] -> S#s{dozing = true, wait = infinity};
        armed -> linger(S#s{dozing = true});
        busy -> linger(S)
    end.

batch_sent(Seq, Bytes, S) ->
    S#s{sent = [{Seq, Bytes} | S#s.sent]}.

%% Handles bits of the NIF's status: the limit was reached (4), a process owes so many results that its stack would fill
%% up (8), events take too much of a thread's time (16). The owner reports each once for each arming.
limit(Status, S) when Status band 512 =:= 512 -> limit(Status - 512, S); % names_met/3
limit(Status, S) when Status band 128 =:= 128 -> limit(Status - 128, ring_fired(S));
limit(Status, S) when Status band 256 =:= 256 -> limit(Status - 256, ring_complete(S));
limit(Status, S) when Status band 64 =:= 64 -> limit(Status - 64, budget_short(S));
limit(Status, S) when Status band 32 =:= 32 -> limit(Status - 32, unasked_next(S#s{unasked = true}));
limit(Status, S = #s{told = Told}) when Status band 28 band (bnot Told) =:= 0 -> S;
limit(Status, S = #s{told = Told}) ->
    New = Status band 28 band (bnot Told),
    S1 = case New band 4 of 4 -> meta(S, notice, [limit, maps:get(limit, S#s.options, 0)]); _ -> S end,
    S2 = case New band 8 of 8 -> meta(S1, notice, [guard, returns]); _ -> S1 end,
    S3 = case New band 16 of 16 -> meta(S2, notice, [guard, time]); _ -> S2 end,
    S3#s{told = Told bor New}.

%% ---- requests -----------------------------------------------------------------------------------------------------

request(Id, Bin, S) ->
    try binary_to_term(Bin, [safe]) of
        Request -> request_do(Request, Id, S)
    catch
        error:_ -> reply(Id, {error, bad_request}, S)
    end.

request_do(ping, Id, S) -> reply(Id, {ok, pong}, S);
request_do(time, Id, S) -> % the tick brings a batch, whose watermark says up to when all events were sent
    Now = erlang:monotonic_time(nanosecond),
    reply(Id, {ok, {Now, Now + erlang:time_offset(nanosecond)}}, meta(S, tick, []));
request_do(nodes, Id, S) -> reply(Id, {ok, connected(S)}, S);
request_do({atoms, Names}, Id, S) when is_list(Names) -> reply(Id, {ok, [N || N <- lists:usort(Names), existing([N]) =:= []]}, S);
request_do(info, Id, S) -> reply(Id, {ok, info(S)}, S);
request_do({arm, Map}, Id, S) when is_map(Map) -> arm(Id, Map, S);
request_do({complete, What, After}, Id, S) when is_binary(After) -> ask_worker(Id, complete, {What, After}, S);
request_do({record, Modules, Name}, Id, S) when is_list(Modules), is_binary(Name) -> ask_worker(Id, record, {Modules, Name}, S);
request_do({select, Map}, Id, S = #s{session = {_, Weak}}) when is_map(Map) -> ask_worker(Id, select, {Weak, Map, S#s.tracer}, S);
request_do(snapshot, Id, S0) ->
    {Begins, S} = ring_asked(S0),
    reply(Id, {ok, Begins}, awake(S));
request_do(disarm, Id, S) -> reply(Id, {ok, true}, disarm(given_up(S)));
request_do({ask, What}, Id, S) -> ask(Id, What, S);
request_do(_, Id, S) -> reply(Id, {error, bad_request}, S).

%% Returns the names of the visible and of the hidden nodes to which this node is connected, without the client's.
connected(S) ->
    {[atom_to_binary(N) || N <- nodes(visible)], [atom_to_binary(N) || N <- nodes(hidden), N =/= S#s.node]}.

%% Requests that the worker answers. The owner rejects one while the worker answers another. Other work of the worker is
%% short, so the request waits for it.
ask_worker(Id, _, _, S = #s{helper = {_, What}}) when is_tuple(What), element(1, What) =/= arm -> reply(Id, {error, busy}, S);
ask_worker(Id, Function, Argument, S = #s{helper = {_, _}}) ->
    erlang:send_after(?BUSY, self(), {retry, Id, Function, Argument}),
    S;
ask_worker(Id, Function, Argument, S) -> help({answer, Id}, Function, Argument, S).

reply(Id, Answer, S) ->
    Message = <<$R, Id:32/little, (term_to_binary(Answer))/binary>>,
    case send(S, Message) of
        ok -> S;
        noconnect -> finish(nodedown, S);
        nosuspend -> erlang:send_after(?BUSY, self(), {retry, Id, Answer}), S
    end.

%% ---- the worker ---------------------------------------------------------------------------------------------------

%% Starts the worker. It runs jobs that may take long, need much memory, or wait for other processes, one job at a time.
%% It has a weak handle of the session, which cannot keep the session alive.
worker_start() ->
    {Worker, _} = spawn_opt(?MODULE, worker, [self()], [monitor, {priority, high} | bounds(16)]),
    Worker.

help(What, Function, Argument, S = #s{helper = none}) ->
    Ref = make_ref(),
    S#s.worker ! {work, Ref, Function, Argument},
    S#s{helper = {Ref, What}}.

worker(Owner) ->
    look_apart(),
    monitor(process, Owner),
    put(owner, Owner),
    worker_loop(Owner).

worker_loop(Owner) ->
    receive
        {work, Ref, Function, Argument} ->
            Owner ! {done, Ref, work(Function, Argument)},
            garbage_collect(),
            worker_loop(Owner);
        {endless, State, Session, MFA} ->
            ?TRACING(endless_do(State, Session, MFA)),
            worker_loop(Owner);
        {counter, State, Session, MFA} ->
            ?TRACING(endless_do(State, Session, MFA)),
            ?TRACING(counter_do(Session, MFA)),
            worker_loop(Owner);
        {'DOWN', _, _, _, _} ->
            ok;
        _ ->
            worker_loop(Owner)
    end.

work(Function, Argument) ->
    put(progressed, now_ms()),
    progress(0, 0),
    try
        case Function of
            arm -> ?TRACING(arm_do(Argument));
            ask -> ?QUESTIONS(ask_do(Argument));
            check -> ?TRACING(check_do(Argument));
            complete -> ?WHOLE(complete_do(Argument));
            meet -> names_tell(names_others(get(owner)));
            record -> ?TRACING(record_do(Argument));
            select -> ?TRACING(select_do(Argument));
            sweep -> sweep();
            unasked -> ?TRACING(unasked_do(Argument));
            budget -> ?TRACING(budget_do(Argument));
            budget_restore -> ?TRACING(budget_restore(Argument))
        end
    catch
        throw:Reason -> {error, Reason};
        error:Reason:Stack -> {error, {crash, {Reason, Stack}}}
    end.

%% Returns options with heap limits for a helper. Messages stay off the heap, so a process that fills the mailbox of a
%% helper does not get it killed. The VM rejects a limit below the node's min_heap_size.
bounds(Times) ->
    {_, Least} = erlang:system_info(min_heap_size),
    [{message_queue_data, off_heap}, {max_heap_size, #{size => max(Times * 1048576, 4 * Least), kill => true, error_logger => false}}].
