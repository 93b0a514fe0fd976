%% The companion: what runs inside the traced node. The callbacks of the erl_tracer behaviour (the NIF replaces them), the
%% owner process that alone holds the trace session on its heap, and short-lived helpers of the owner.
%%
%% The name below is a placeholder: the build's hash and a slot are written over it, so that no two builds and no two
%% clients ever reload each other's module. Nothing here may put the module's own name into a literal (the patch would
%% miss it), nor match binaries (an OTP 29 does not load what an OTP 25 compiles that to).
%%
%% The owner never waits for anybody: it sends with nosuspend, it asks other processes through helpers, and it ends when
%% its client is gone, silent for ten seconds, or satisfied. Whoever ends it, the session dies with its heap.
%%
%% Messages from the client, each of which renews the lease:
%%   {pull, Seq, Credit}   has every batch up to Seq; batches after Seq may be Credit bytes in all. 0 only renews.
%%   {request, Id, Bin}    Bin: a term, decoded safely; names in it are binaries, so that no typo becomes an atom
%%   {stop}                destroys the session, drains; the batch marked last; ends when that is acknowledged
%% Messages to it are binaries: $B a batch (etrace_wire.h) | $R u32 id, {ok, Term} | {error, Reason} | $G the reason | $P {Done, All}
%% functions, while the worker is at a request | $W, before the first answer, the name of the process that is waited for.
-module(etrace_00000000_0).

-export([owner/1, names/1, worker/1, warden/1, asker/1, system/3, cleaner/1]).
-export([enabled/3, enabled_call/3, enabled_send/3, enabled_receive/3, enabled_procs/3, enabled_ports/3,
    enabled_running_procs/3, enabled_running_ports/3, enabled_garbage_collection/3, trace/5]).
-export([hello/0, open/1, exclude/1, gate/2, kinds/2, program/3, owing/2, unasked/2, ticks/0, drain/4, tally/1, doze/1, renew/1, close/1]).

-define(LEASE, 10000).       % ms without a word from the client
-define(LATE, 1000).         % ms that its end may come late, unless the whole node was stopped
-define(BUSY, 20).           % ms until a refused send is tried retry
-define(LINGER, 2000).       % us at least, for a small batch to grow
-define(LINGER_MOST, 5000).  % at most, where little comes
-define(BATCH, 262144).      % bytes that are worth one, and that it has at most unless an event is larger: on a slow line the next tells more
-define(MAX_CREDIT, 2097152). % ETW_MAX_CREDIT
-define(META_ROOM, 24576).   % of a batch, for names, notices and system events
-define(META_MOST, 8192).    % of these, for each
-define(NOTICES_MOST, 65536). % of a batch that something happened to many modules before
-define(MIN_DRAIN, 4096).

%% One trace session on this node as the owner knows it.
-record(s, {
    key,                     % a reference in messages of the namer, which nobody else knows
    lease,                   % the timer of the lease
    client, node, janitors,  % pid, its node, the process that cleans up behind us and its heir
    tracer,                  % the NIF's state (an integer) | fallback
    fb,                      % the fallback tracer's state (tracer_fallback.hrl)
    session = none,          % the only strong handle there is
    heard, spoke = false,    % when the client last spoke, monotonic ms; whether it ever did
    credit = 0, sent = [],   % bytes it allows; [{Seq, Bytes}] that it has not acknowledged
    unsent = none,           % {Seq, Message} that the channel refused
    meta = [], metasize = 0, % frames of our own for the next batch
    omitted = 0,             % notices that it has no room for
    hears = none,            % {the process that hears system events, its session}
    tokens = none,           % {idle | busy, the process that removes our trace tokens, #{Token => [Function]}} (tracer_tokens.hrl)
    system = none,           % {Section, [Tracee], Told}: what it has for the next batch
    system_told = {0, {0, 0, 0, 0, 0, 0, 0, 0}, 0}, % seen and lost of these events, as the client has them; how many of them it has not
    dozing = false, wait = 0,
    until = none, linger = ?LINGER, % a batch is given time to grow until then, monotonic us; how long the last one was given
    min,                     % bytes: the room below which draining is not worth it
    options, why,            % of the boot message; why there is no NIF
    armed = none,            % what is traced (tracer_arm.hrl)
    timer = none,            % of the next self-check
    worker, helper = none,   % the process for what may take long; {Ref, What} that it is at
    next = none,             % {Id, Request}: an arming that waits for it
    unasked = false,         % functions that nobody asked for are busy: the worker is to clear them
    namer,                   % the process that looks up names
    warden, memory = none,   % the process that watches the node's memory; what it watches for (tracer_memory.hrl)
    asker,                   % the process that looks at the stacks of those who owe many results (tracer_owed.hrl)
    ended = [],              % [MFA]: functions that do not return
    others = [],             % the processes and ports of other etraces
    unchecked = false,       % the last self-check failed, or is long due
    late = 0,                % self-checks that were due since the last one began
    tally = off,             % off | {whether a round is going on, frames of figures that wait for the next batches} (tracer_tally.hrl)
    told = 0,                % bits of the NIF's status that the client was told of
    guard = none,            % {What, HowMuch}: what has ended the tracing, instead of the client | destroyed | gone: somebody else has
    last = none              % after stop: trace_delivered (awaited), delivered, flush, then {sent, Seq}
}).

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
-include("tracer_combine.hrl").
-include("tracer_check.hrl").
-include("tracer_owed.hrl").
-include("tracer_program.hrl").
-include("tracer_gates.hrl").
-include("tracer_system.hrl").
-include("tracer_names.hrl").
-include("tracer_complete.hrl").
-include("tracer_count.hrl").
-include("tracer_info.hrl").

%% ---- replaced by the NIF ------------------------------------------------------------------------------------------

%% Callbacks, as erl_tracer says. No trace_call/5 and no other trace_*/5: the VM would call them with too few arguments
%% for meta tracing, and abort.
%%
%% hello() -> {Hash, Nonce}: the build's, as it stands in the file, and what load_nif was given: that this is our file.
%% open({RingBytes, Rings, Bytes, Levels, Terms, Limit, Rate, [RedactedName]}) -> {ok, State} | {error, memory | bell}
%%     begins a session; State, a small integer, is the tracer's state in the VM and names the session below.
%%     RingBytes a power of two, Rings at most 256; 0 is no limit, no rate.
%% exclude([PidOrPort]): never an event of these, and none that is sent to them; of no others any longer. The first 128.
%% gate(State, fresh | open | closed | early | late | plain | answered | returns | owing | no_returns | {tally, Functions} |
%%     {hold, 0} | events | {labels, [Label]} | Filter): fresh: nothing is owed, as the session has just been created. closed counts
%%     calls as lost (guard). early decides before the match specification and before the VM makes the arguments: only where no
%%     specification can reject a call. plain: no specification has a message for a call or what is sent. returns: every call that is
%%     shown has its return traced, so those that are owed can be counted. owing: calls whose return is traced say so, in the
%%     message of their specification: etrace_owes, or {etrace_owes, Message}; nobody sees that.
%%     tally: calls and results are counted and not sent, whatever the rate. Begins with nothing, and with room for the figures of so
%%     many functions and a quarter more. more: ask again, the memory of the figures before is being cleared. Filter: which of them, a binary
%%     (struct etw_filter_step; <<>>: all); badarg when it is none. hold: calls wait for their results, and are sent with them where
%%     the filter may show them; what is hidden, and how many are open, tally/1 tells of undefined. labels: the events of sequential
%%     tracing that are wanted, all with [].
%% kinds(State, Mask): bit K is set when events of kind K are wanted; others are neither made nor counted.
%% program(State, [Step], [MFA] | all) -> [MFA]: those functions whose calls are from now on decided about by these steps
%%     (etrace_wire.h), instead of by others; the others have none. No steps: none of them has any, which `all` is for.
%% owing(State, questions) -> [{Pid, MFA}]: calls of a function that have not returned in a process, whose number asks for a look at
%%     its stack; each once. The caller is sent the atom owing when there are more.
%% owing(State, {Pid, MFA}) -> {Count, Total, Returns} | none: calls of the function that have not returned in the process; those of all
%%     functions; results of the function so far.
%% owing(State, {Pid, MFA, Answer}): N: ask again after N more. trusted: the calls nest, ask again when there are twice as many.
%%     forget: the stack holds no such frames. endless: the function does not return, and its calls in the process pause until
%% owing(State, MFA): the function has lost its wish for results.
%% unasked(State, [MFA] | none | busy) -> boolean() | [MFA]: drops the events of module_info and of functions that the compiler
%%     generates, except these and those of earlier lists; false: no room for the list. none: drops nothing, and forgets the lists.
%%     busy: the functions whose events were dropped often since the last time.
%% ticks() -> the clock of the frames
%% drain(State, MaxBytes, OwnSections, Last) -> {Batch | none, [NewTracee], Status}: one whole batch (etrace_wire.h), or none
%%     when there is nothing new, not even a watermark that something waits for. Status: 1 more in the rings, or more new tracees, 2 events are
%%     held back by the watermark, 4 the limit was reached, 8 a process owes too many returns, 16 a scheduler has spent the
%%     time that events may take, 32 unasked/2 has busy functions. A frame larger than MaxBytes comes alone. A tracee may be told more than once. Last only
%%     after the session is destroyed: ETW_BATCH_LAST is set when nothing is left, and nothing was counted since the last round of tally/1 began.
%% tally(State) -> {more | done, [{{M, F, Arity} | undefined, Figures}]}: the growth of the figures of some functions since the
%%     last round (struct etw_tally and its buckets). undefined: functions without a place of their own, together. `done` ends
%%     a round, in which the NIF has looked at every function.
%% doze(State) -> armed | busy: a message ready_input will come at the next event (or without need) | drain first. It comes
%%     without having dozed, too, when half of a ring waits to be drained.
%% renew(State) -> another State, in the place of this one: for a new trace session. Events that still come from the old one are ignored.
%% close(State): callbacks do nothing from here on; drain still works.

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
tally(_) -> erlang:nif_error(undef).
doze(_) -> erlang:nif_error(undef).
renew(_) -> erlang:nif_error(undef).
close(_) -> erlang:nif_error(undef).

%% ---- life ---------------------------------------------------------------------------------------------------------

owner(Boot) ->
    try start(Boot)
    catch
        exit:Reason -> exit(Reason);
        error:Reason:Stack -> exit({error, {Reason, Stack}}); % an exit is not logged on the node, an error would be
        throw:Reason -> exit({error, Reason})
    end.

start({Client, So, Hash, Nonce, Options, Janitors = [Janitor | _]}) ->
    Node = node(Client),
    net_kernel:monitor_nodes(true, [{node_type, hidden}]), % monitor_node/2 would connect to a client that is gone
    lists:member(Node, nodes(hidden)) orelse exit(nodedown),
    monitor(process, Janitor),
    process_flag(trap_exit, true), % the client links itself to us
    Lease = lease_in(?LEASE),
    has_sessions() orelse refuse(Client, no_sessions),
    Ring = memory_ring(),
    is_integer(Ring) orelse refuse(Client, Ring),
    Why = case Options of
        #{fallback := true} -> [{<<"asked for">>, <<>>}];
        _ ->
            send(#s{client = Client}, <<$W, (term_to_binary(tracer))/binary>>),
            nif_load(So, Hash, Nonce, Janitors)
    end,
    cookie_is(atom_to_binary(erlang:get_cookie())),
    Key = make_ref(),
    S0 = #s{client = Client, node = Node, janitors = Janitors, key = Key, lease = Lease, heard = now_ms(), options = maps:merge(#{buffer => Ring}, Options), why = Why,
        namer = names_start(Key), worker = worker_start(), warden = warden_start(), asker = asker_start(),
        min = maps:get(size, Options, 1024) * 2 + ?MIN_DRAIN},
    S1 = session(excluded(tracer(S0))),
    S1#s.namer ! {others, Key, true},
    Hello = info(S1),
    send(S1, <<$R, 0:32, (term_to_binary({ok, Hello#{pid => self()}}))/binary>>),
    S2 = meta(S1, hello, [Hello]),
    S2#s.worker ! {work, make_ref(), sweep, none}, % it may have to wait for the code server
    loop(S2).

refuse(Client, Why) ->
    send(#s{client = Client}, <<$R, 0:32, (term_to_binary({error, Why}))/binary>>),
    exit(normal).

%% A program of before OTP 27 may have a module of that name, which its code path has first; a release may have been stripped of it.
has_sessions() ->
    try [{function, 4}, {process, 4}, {session_create, 3}, {session_info, 1}] -- trace:module_info(exports) =:= []
    catch error:undef -> false
    end.

tracer(S = #s{why = ok, options = O}) ->
    case open({maps:get(buffer, O), maps:get(count, O, 64), maps:get(size, O, 1024),
            maps:get(depth, O, 16), maps:get(items, O, 1024), maps:get(limit, O, 0), maps:get(rate, O, 0),
            [get(cookie) | maps:get(redact, O, [])]}) of
        {ok, State} -> S#s{tracer = State};
        {error, memory} -> tracer(S#s{why = [{<<"no memory for its buffers">>, <<>>}]});
        {error, bell} -> tracer(S#s{why = [{<<"no thread for it">>, <<>>}]})
    end;
tracer(S = #s{options = O}) ->
    S#s{tracer = fallback, fb = fb_new(O)}.

%% Processes and ports that belong to the tracing.
ours(S) -> S#s.janitors ++ [self(), S#s.namer, S#s.worker, S#s.warden, S#s.asker] ++ [P || {P, _} <- [S#s.hears]] ++ [P || {_, P, _} <- [S#s.tokens]] ++ channel(S).

%% Whenever one of them has changed, ours or others'. That two who trace messages see each other's would never end.
excluded(S) ->
    Ours = ours(S),
    put(ours, Ours), % for the others
    S#s.tracer =:= fallback orelse exclude(Ours ++ S#s.others),
    S.

%% What carries the distribution to the client: tracing it would trace the tracing.
channel(#s{node = Node}) ->
    case lists:keyfind(Node, 1, erlang:system_info(dist_ctrl)) of
        {_, P} when is_pid(P) -> [P | [X || Sup <- tls_supervisors(P), X <- tls_processes(Sup)]];
        {_, P} -> [P];
        false -> []
    end.

%% With TLS it is the process that sends; beside it, below a supervisor of their own, is one that receives.
tls_supervisors(P) ->
    [L || L <- links(P), began(L) =:= {supervisor, tls_dyn_connection_sup, 1}].

tls_processes(Sup) ->
    Pids = [P || P <- links(Sup), is_pid(P), element(1, began(P)) =/= supervisor],
    lists:usort([Sup | Pids] ++ [Port || P <- Pids, Port <- links(P), is_port(Port)]).

links(P) ->
    case is_pid(P) andalso process_info(P, links) of {links, L} -> L; _ -> [] end.

began(P) ->
    case is_pid(P) andalso process_info(P, dictionary) of
        {dictionary, D} -> proplists:get_value('$initial_call', D, {none});
        _ -> {none}
    end.

session(S = #s{tracer = Tracer, node = Node}) ->
    Session = {_, Weak} = trace:session_create(etrace, case Tracer of fallback -> self(); State -> {?MODULE, State} end, []),
    put(session, {Weak, Node, os:system_time(second)}), % for those who ask whose it is
    asker_tell(gated([fresh], S#s{session = Session})).

destroy(S = #s{session = none}) -> S;
destroy(S = #s{session = Session}) ->
    seq_stop(S),
    trace:session_destroy(Session),
    gc_end(),
    tokens_end(system_stop(S#s{session = none, armed = none})).

-spec finish(term(), #s{}) -> no_return().
finish(Reason, S0) ->
    %% First the callbacks learn that it is over: whoever inherited flags meanwhile is let go at the next event.
    case S0#s.tracer of fallback -> ok; State -> close(State) end,
    S = destroy(S0),
    %% Unread output for a frozen client would hold up init:stop/0. A client that never spoke may have left its name to
    %% another one by now, whose connection is none of ours.
    Reason =:= lease andalso S#s.spoke andalso hang_up(S),
    case Reason of janitor -> tokens_wait(S), unload(?MODULE, S#s.client); _ -> ok end,
    exit(Reason).

%% What the system has not taken yet would keep the port, and whoever stops the node, until the client reads it or the network
%% gives it up, a quarter of an hour later.
hang_up(S) ->
    lists:foreach(fun(P) -> is_port(P) andalso exit(P, kill) end, channel(S)),
    erlang:disconnect_node(S#s.node).

%% For the janitor, who was killed, where its heir has not taken its place: the module is passed as data, and this process ends
%% before its code is purged. Whoever holds the name is the one who may; then somebody else is at it.
unload(M, Client) ->
    case take(M) of
        true ->
            Purger = delete(M),
            erlang:system_info(sequential_tracer), % as it is no more, the VM forgets it
            erlang:send(Client, <<$G, (term_to_binary(killed))/binary>>, [nosuspend, noconnect]),
            unloaded(Purger, M);
        false ->
            ok
    end.

%% On a node that has no room for one more process there will be some.
unloaded(Purger, M) ->
    try spawn(Purger, purge, [M])
    catch error:system_limit -> receive after 100 -> unloaded(Purger, M) end
    end.

%% And who is to purge it then: the purger itself only where there is no code server any more (janitor.eval).
delete(M) ->
    try code:purge(M), code:delete(M), code
    catch _:_ -> erts_code_purger:purge(M), erlang:delete_module(M), erts_code_purger
    end.

take(M) -> try register(M, self()) catch error:_ -> false end.

%% Modules of etrace that nobody answers for any more: their processes were killed together.
sweep() ->
    lists:foreach(fun(M) ->
        case companion(M) of
            true -> take(M) andalso begin (delete(M)):purge(M), unregister(M) end;
            false -> is_slot(M) andalso not erlang:module_loaded(M) andalso code:soft_purge(M) % deleted, whoever's it was
        end
    end, erlang:loaded() -- [?MODULE]).

info(#s{why = Why, tracer = Tracer}) ->
    Release = erlang:system_info(otp_release),
    {_, _} = Memory = {wordsize, erlang:system_info(wordsize)},
    maps:from_list([Memory,
        {node, atom_to_binary(node())}, % of the events, to whoever reads them
        {otp_release, list_to_binary(Release)},
        {otp, version(Release)},
        {version, list_to_binary(erlang:system_info(version))},
        {system_architecture, list_to_binary(erlang:system_info(system_architecture))},
        {creation, erlang:system_info(creation)},
        {schedulers, erlang:system_info(schedulers_online)},
        {process_count, erlang:system_info(process_count)},
        {uptime, element(1, erlang:statistics(wall_clock))},
        {os_pid, list_to_binary(os:getpid())},
        {encoding, io:printable_range()},
        {load_nif, Tracer =/= fallback},
        {reason, reasons(Why)}]).

version(Release) ->
    Root = case os:getenv("ROOTDIR") of false -> ""; Dir -> Dir end, % code:root_dir/0 would wait for the code server
    case file:read_file(filename:join([Root, "releases", Release, "OTP_VERSION"]), [raw]) of
        {ok, Text} when byte_size(Text) < 32 -> string:trim(Text);
        _ -> list_to_binary(Release)
    end.

%% ---- the loop -----------------------------------------------------------------------------------------------------

loop(S0) ->
    S = pump(S0),
    receive
        Message ->
            try handle(Message, S) of
                Next -> loop(Next)
            catch
                error:Reason:Stack -> there(S), erlang:raise(error, Reason, Stack)
            end
    after S#s.wait -> loop(S)
    end.

handle({pull, Seq, Credit}, S) when is_integer(Seq), is_integer(Credit) ->
    Sent = [X || X = {N, _} <- S#s.sent, N > Seq],
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
    Now = now_ms(),
    case S#s.heard + ?LEASE - Now of
        Left when Left > 0 -> S#s{lease = lease_in(Left)};
        _ when Now - Due > ?LATE -> S#s{lease = lease_in(?LATE)}; % what the client has said meanwhile has yet to be read
        _ -> finish(lease, S)
    end;
handle({timeout, Timer, check}, S = #s{timer = Timer}) ->
    check(S);
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
            unasked_next(arm_next(S1));
        Why ->
            stop(gc_settle(S#s{guard = Why})) % what the VM then refused is the session, and not what was asked of it
    end;
handle({done, _, Result}, S) ->
    unheard(Result, S),
    gc_settle(S);
handle({progress, Worker, Done}, S = #s{worker = Worker, helper = {_, What}}) when is_tuple(What), element(2, What) =/= none ->
    send(S, <<$P, (term_to_binary(Done))/binary>>),
    S;
handle({system, Pid, Section, Tracees, Counts}, S = #s{hears = {Pid, _}}) ->
    S#s{system = {Section, Tracees, Counts}};
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
handle({memory, Watch, Grown}, S = #s{memory = Watch, last = none}) ->
    case S#s.armed of
        #armed{} -> guard(memory, Grown, S);
        _ -> finish({guard, {memory, Grown}}, S) % it only counts, or is being armed: there is nothing to be shown yet
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
    there(S), % else whoever takes its place would have no code to begin with, again and again
    replace(Pid, S);
handle({retry, Id, Answer}, S) when is_integer(Id) ->
    reply(Id, Answer, S);
handle({ask, Id, What}, S) when is_integer(Id) ->
    ask(Id, What, S);
handle({retry, Id, Function, Argument}, S) when is_integer(Id) ->
    ask_worker(Id, Function, Argument, S);
handle({names, Key, _, Frames}, S = #s{key = Key}) -> % too late for the batch that they belong to
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
    arm_next(case Helper of {_, What} -> helped(What, killed, S); none -> S end).

lease_in(Ms) ->
    erlang:start_timer(Ms, self(), {lease, now_ms() + Ms}).

heard(S) ->
    S#s{heard = now_ms(), spoke = true}.

%% What there is is sent at once.
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
    S1 = destroy((parting(S))#s{last = stopping}),
    %% For a tracer in a NIF it means that every scheduler has passed a safe point; for a process, that all has come.
    trace_delivered(S),
    erlang:start_timer(1000, self(), trace_delivered),
    awake(S1#s{last = trace_delivered});
stop_now(S) ->
    S.

%% As if the client had asked for it: what was traced is still sent, and the last word says what it was.
guard(What, HowMuch, S = #s{last = none}) ->
    stop((meta(S, notice, [guard, What]))#s{guard = {What, HowMuch}});
guard(_, _, S) ->
    S.

done(#s{guard = none}) -> normal;
done(#s{guard = Guard}) ->
    case is_cut_off(Guard) of true -> Guard; false -> {guard, Guard} end.

is_cut_off(Guard) -> Guard =:= destroyed orelse Guard =:= gone.

%% All that was traced is in the rings, or has been given to us: nothing comes any more.
flush(S = #s{last = delivered, hears = none, tokens = Tokens}) when Tokens =:= none; element(1, Tokens) =:= idle -> awake(S#s{last = flush});
flush(S) -> S.

trace_delivered(#s{session = none}) -> self() ! {trace_delivered, all, none};
trace_delivered(#s{session = Session}) -> trace:delivered(Session, all).

%% ---- batches ------------------------------------------------------------------------------------------------------

%% Sends what may be sent and says in `wait` how long there is nothing to do unless a message comes. At most one batch
%% that the channel refused is kept; everything else stays in the rings, whose memory is bounded.
pump(S = #s{unsent = {Seq, Message}}) ->
    case send(S, Message) of
        ok -> pump(batch_sent(Seq, byte_size(Message) - 1, S#s{unsent = none}));
        nosuspend -> S#s{wait = ?BUSY};
        noconnect -> finish(nodedown, S)
    end;
pump(S = #s{last = {sent, _}}) ->
    S#s{wait = infinity};
pump(S = #s{dozing = true, meta = [], system = none, tally = Tally}) when Tally =:= off; Tally =:= ?NOTHING ->
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
    New = lists:usort(system_tracees(S0) ++ Met),
    case Batch of
        none ->
            S2 = limit(Status, S1),
            %% Nobody knows what has not been seen: none is the last one.
            End andalso CutOff andalso Status band 3 =:= 0 andalso finish(done(S2), S2),
            idle(Status, keep_names(S2, names_of(New, S2)));
        _ ->
            S3 = limit(Status, system_sent(S1#s{meta = [], metasize = 0})),
            {Message, Seq, IsLast} = batch_message(Batch, names_of(New, S3)),
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

%% A full batch is followed at once; a small one is given time to grow, for each batch costs both sides the same: the less
%% there was the more time, within bounds. What the client says meanwhile is no reason for a smaller one.
wait_after(Status, _, S) when Status band 1 =:= 1 -> S#s{wait = 0};
wait_after(_, Bytes, S = #s{linger = Before}) ->
    case tally_done(S) of
        false -> S#s{wait = 0};
        true -> linger(S#s{linger = max(?LINGER, min(?LINGER_MOST, Before * ?BATCH div Bytes))})
    end.

linger(S = #s{linger = Us}) ->
    S#s{until = now_us() + Us, wait = in_ms(Us)}.

in_ms(Us) -> (Us + 999) div 1000.

idle(Status, S) when Status band 3 =/= 0; S#s.last =:= flush ->
    linger(S);
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

%% The limit was reached (4), a process owes so many returns that calling on would fill its stack (8), events take too much
%% of a scheduler (16): told once for what is armed.
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
request_do(time, Id, S) -> % and soon a batch, which says up to when all was told
    reply(Id, {ok, {erlang:monotonic_time(nanosecond), erlang:system_time(nanosecond)}}, meta(S, tick, []));
request_do(nodes, Id, S) ->
    reply(Id, {ok, {[atom_to_binary(N) || N <- nodes(visible)], [atom_to_binary(N) || N <- nodes(hidden), N =/= S#s.node]}}, S);
request_do({atoms, Names}, Id, S) when is_list(Names) -> reply(Id, {ok, [N || N <- lists:usort(Names), existing([N]) =:= []]}, S);
request_do(info, Id, S) -> reply(Id, {ok, info(S)}, S);
request_do({arm, Map}, Id, S) when is_map(Map) -> arm(Id, Map, S);
request_do({complete, What, After}, Id, S) when is_binary(After) -> ask_worker(Id, complete, {What, After}, S);
request_do({record, Modules, Name}, Id, S) when is_list(Modules), is_binary(Name) -> ask_worker(Id, record, {Modules, Name}, S);
request_do({select, Map}, Id, S = #s{session = {_, Weak}}) when is_map(Map) -> ask_worker(Id, select, {Weak, Map}, S);
request_do({call_count, Map}, Id, S = #s{session = {_, Weak}}) when is_map(Map) ->
    ask_worker(Id, call_count, {self(), Weak, Map}, S);
request_do(disarm, Id, S) -> reply(Id, {ok, true}, disarm(given_up(S)));
request_do({ask, What}, Id, S) -> ask(Id, What, S);
request_do(_, Id, S) -> reply(Id, {error, bad_request}, S).

%% The worker answers these requests. While it answers one, another is refused; its other work is short, and the request waits for it.
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

%% What may take long, or much memory, or wait for others is done by a process of its own, through a weak handle, which
%% cannot keep the session alive. There is one such process and one job at a time.
worker_start() ->
    {Worker, _} = spawn_opt(?MODULE, worker, [self()], [monitor, {priority, high} | bounds(16)]),
    Worker.

help(What, Function, Argument, S = #s{helper = none}) ->
    Ref = make_ref(),
    S#s.worker ! {work, Ref, Function, Argument},
    S#s{helper = {Ref, What}}.

worker(Owner) ->
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
            endless_do(State, Session, MFA),
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
            arm -> arm_do(Argument);
            ask -> ask_do(Argument);
            check -> check_do(Argument);
            complete -> complete_do(Argument);
            record -> record_do(Argument);
            select -> select_do(Argument);
            sweep -> sweep();
            unasked -> unasked_do(Argument);
            call_count -> call_count_do(Argument)
        end
    catch
        throw:Reason -> {error, Reason};
        error:Reason:Stack -> {error, {crash, {Reason, Stack}}}
    end.

%% What anybody may send them stays outside of their heaps: nobody is to be killed for a mailbox that others fill. A most that is
%% below the least of the node's own the VM does not take.
bounds(Times) ->
    {_, Least} = erlang:system_info(min_heap_size),
    [{message_queue_data, off_heap}, {max_heap_size, #{size => max(Times * 1048576, 4 * Least), kill => true, error_logger => false}}].
