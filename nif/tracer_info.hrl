%% SPDX-License-Identifier: Apache-2.0
%% Answers questions of the client that are not about its own trace: {ask, What}. The worker answers them, one at a
%% time. Names in questions and answers are binaries; the size of an answer is bounded.
%%
%%   {count, …}, {read, …}            tracer_count.hrl
%%   sessions                         [Session]: the trace sessions on this node, without our own
%%   {destroy, Number}                true
%%   {info, Target}                   [{Subject, [{Name, Number, Client, [{Item, Value}]}]}]
%%                                    Target: {arm, Request} | {pid, Bin} | {name, Bin} | send | 'receive' | new | …
%%   {ls, After, {arm, Request}}      {[{M, F, A, Exported}], All, More}: the functions that follow After, which is
%%                                    {M, F, A} | none
%%   {look, Map}                      tracer_look.hrl
%%   {health, Map}                    tracer_health.hrl
%%   {chunk, Module, From}            {Name, Size, Part} | none: debug information, see chunk/2

-define(ANSWER_MOST, 1000000). % bytes: the client accepts no more than a batch has
-define(PAGE, 4000).         % functions in one answer
-define(PAGE_BYTES, 400000).
-define(INFO_MOST, 200).     % functions in one answer of {info, Target}
-define(TEXT_MOST, 4000).    % characters of a term
-define(CHUNK_PART, 500000).
-define(CHUNK_MOST, 16000000).

%% ---- in the owner -------------------------------------------------------------------------------------------------

ask(Id, _, S = #s{last = Last}) when Last =/= none ->
    reply(Id, {error, {stopping, done(S)}}, S);
ask(Id, What = {count, _, _}, S0 = #s{helper = none}) ->
    S = memory_watch(disarm(S0)),
    help({ask, Id, What}, ask, {weak(S), What, get(ours), #{}}, S);
ask(Id, {read, _, _, _, _}, S = #s{armed = Armed, helper = none}) when not is_tuple(Armed); element(1, Armed) =/= count ->
    reply(Id, {error, not_counting}, S);
ask(Id, What, S = #s{helper = none}) ->
    there(S),
    help({ask, Id, What}, ask, {weak(S), What, get(ours), follow_pids(S)}, S);
ask(Id, What, S) ->
    erlang:send_after(?BUSY, self(), {ask, Id, What}),
    S.

asked(Id, What, killed, S) -> asked(Id, What, {error, killed}, S);
asked(Id, {count, Counters, {arm, Request}}, Result, S) -> counting(Id, Counters, Request, Result, S);
asked(Id, {read, _, _, _, _}, {full, Answer}, S) -> recount(read_answer(Id, Answer, S));
asked(Id, {read, _, _, _, _}, {ok, Answer}, S) -> read_answer(Id, Answer, S);
asked(Id, _, Result, S) -> reply(Id, Result, S).

read_answer(Id, Answer, S0) ->
    {Moved, S} = follow_moved(S0),
    reply(Id, {ok, Answer#{moved => Moved}}, S).

%% ---- in the worker ------------------------------------------------------------------------------------------------

ask_do(Argument) ->
    case answer_to(Argument) of
        {ok, Answer} = Ok ->
            case erlang:external_size(Answer) > ?ANSWER_MOST of true -> throw(too_large); false -> Ok end;
        Full -> Full
    end.

%% Answers a question. Ours: the processes of this tracer. Followed: see follow_pids().
answer_to({Session, What, Ours, Followed}) ->
    case What of
        {count, Counters, {arm, Request}} -> ?WHOLE(count_start(Session, Counters, Request, count_new()));
        {count_on, Counters, {arm, Request}} -> ?WHOLE(count_start(Session, Counters, Request#{allow_empty => true}, get(count)));
        {read, By, Sort, Most, Whole} -> ?WHOLE(count_read(By, Sort, min(Most, 1000), Whole, {Ours, Followed}));
        sessions -> {ok, sessions(Session)};
        {destroy, Number} -> {ok, session_destroy(Session, Number)};
        {info, Target} -> put(named, #{}), {ok, about(Target, Session)};
        {ls, After, {arm, Request}} -> {ok, ls(After, Request)};
        {look, Map} -> look(Map, Ours);
        {health, Map} -> health(Map, Ours);
        {chunk, Name, From} -> {ok, chunk(Name, From)}
    end.

%% ---- everybody's sessions -----------------------------------------------------------------------------------------

%% Returns a row for each session: {Name, Number, Client, Age, Functions, [MFA], Processes, [Pid], Ports, [Flag],
%% [Event], Tracer, Complete}.
sessions(Own) ->
    Clients = clients(),
    Until = now_ms() + ?LOOK_MS,
    {Asked, Silent} = look_ask(processes(), fun sessions_of/1),
    Processes = lists:foldl(fun({P, In}, Acc) -> whose_add(P, In, Acc) end, #{}, Asked),
    {Ports, Seen2} = whose(erlang:ports(), Until),
    {Functions, Seen3} = whose([{M, F, A} || M <- erlang:loaded(), not companion(M), {F, A} <- listed(M, local)], Until + ?LOOK_MS),
    Others = [S || S <- trace:session_info(all), S =/= Own],
    [session_row(S, Clients, {Functions, Processes, Ports}, Silent =:= [] andalso Seen2 andalso Seen3) || S <- lists:sublist(Others, 500)].

session_row(S = {Name, Number}, Clients, {Functions, Processes, Ports}, Complete) ->
    {Client, Age} = maps:get(S, Clients, {<<>>, -1}),
    Of = fun(Map) -> maps:get(S, Map, {0, []}) end,
    {{F, Fs}, {P, Ps}, {Q, Qs}} = {Of(Functions), Of(Processes), Of(Ports)},
    New = [new_processes, new_ports],
    Flags = lists:usort(lists:append([L || T <- Ps ++ Qs ++ New, L <- [item(S, T, flags)], is_list(L)])),
    Tracers = [T || X <- Ps ++ Qs ++ New, T <- [item(S, X, tracer)], T =/= [], T =/= undefined],
    {atom_to_binary(Name), case Number of default -> -1; _ -> Number end, Client, Age,
        F, [mfa_text(X) || X <- lists:reverse(Fs)], P, [text_of(X) || X <- lists:reverse(Ps)], Q,
        [atom_to_binary(X) || X <- Flags], [atom_to_binary(E) || E <- events(S, Flags)],
        case Tracers of [T | _] -> text_tracer(T); [] -> <<>> end, Complete}.

%% Returns {#{Session => {the number of Things that it traces, some of them}}, true if there was time for all Things
%% before Until}. Things: ports or functions.
whose(Things, Until) -> whose(Things, Until, 0, #{}).

whose([], _, _, Acc) -> {Acc, true};
whose([T | Rest], Until, I, Acc) ->
    case I rem 100 =:= 99 andalso now_ms() > Until of
        true -> {Acc, false};
        false ->
            pace(),
            Sessions = case trace:session_info(T) of L when is_list(L) -> L; _ -> [] end,
            whose(Rest, Until, I + 1, whose_add(T, Sessions, Acc))
    end.

whose_add(T, Sessions, Map) ->
    lists:foldl(fun(S, Acc) ->
        {N, Some} = maps:get(S, Acc, {0, []}),
        Acc#{S => {N + 1, case N < 5 of true -> [T | Some]; false -> Some end}}
    end, Map, Sessions).

%% Returns the sessions of every etrace on this node: #{Session => {the client's node, age in seconds}}; #{} if a process
%% of another etrace does not answer.
clients() -> case why_ask(fun clients_asked/0, {none, ?LOOK_PATIENCE}) of {ok, Clients} -> Clients; _ -> #{} end.

clients_asked() ->
    Now = os:system_time(second),
    maps:from_list(lists:append([[{Session, {atom_to_binary(Node), Now - Since}} || {Session, Since} <- [{Own, Begun} | systems(Owner)]] ||
        Owner <- owners(), {Own, Node, Begun} <- [process_value(Owner, {dictionary, session})]])).

%% Returns the sessions of an owner's system process and cleaner.
systems(Owner) ->
    [Session || L <- [process_value(Owner, monitored_by)], is_list(L), P <- L, is_pid(P), node(P) =:= node(),
        {M, F, _} <- [process_value(P, initial_call)], F =:= system orelse F =:= cleaner, companion(M),
        {_, _} = Session <- [process_value(P, {dictionary, session})]].

%% Returns the owner of every companion on this node. A janitor is registered under the name of the companion's module
%% and monitors the owner, whose initial function is owner/1 of that module.
owners() ->
    [Owner || N <- registered(), companion(N), Janitor <- [whereis(N)], is_pid(Janitor),
        L <- [process_value(Janitor, monitors)], is_list(L), {process, Owner} <- L, is_pid(Owner),
        {M, owner, 1} <- [process_value(Owner, initial_call)], M =:= N].

%% Returns what else a session traces, besides processes, ports and functions. Flags: the flags of its processes and
%% ports.
events(S, Flags) ->
    [E || E <- [send, 'receive', new_processes, new_ports, on_load, system], event_traced(E, S, fun() -> lists:member(E, Flags) end)].

%% Returns true if a session traces E. A new session has the specification `true` for messages, so if nobody has set
%% another specification, only the flags tell (Flagged).
event_traced(E, S, Flagged) when E =:= send; E =:= 'receive' ->
    case item(S, E, match_spec) of
        none -> false;
        true -> Flagged();
        _ -> true
    end;
event_traced(E, S, _) -> event_traced(E, S).

event_traced(on_load, S) ->
    lists:any(fun(I) -> not lists:member(item(S, on_load, I), [false, none]) end, [traced, meta, call_count]);
event_traced(system, S) ->
    not lists:member(item(S, system, all), [[], none]);
event_traced(E, S) ->
    not lists:member(item(S, E, flags), [[], none]).

%% Returns the value of an item; none if there is none, or if the process does not answer.
item(S, P, Item) when is_pid(P) ->
    case why_ask(fun() -> item_read(S, P, Item) end, {none, ?LOOK_PATIENCE}) of {ok, V} -> V; _ -> none end;
item(S, T, Item) -> item_read(S, T, Item).

%% Legacy tracing is listed like a session, but only the legacy functions can ask about it. Waits for a process.
item_read({legacy, _}, system, _) ->
    case erlang:system_monitor() of {P, L} -> [{tracer, P} | L]; undefined -> [] end;
item_read({legacy, _}, T, Item) ->
    try erlang:trace_info(T, Item) of {_, V} -> V; undefined -> none catch error:_ -> none end;
item_read(S, T, Item) ->
    try trace:info(S, T, Item) of {_, V} -> V; undefined -> none catch error:_ -> none end.

session_destroy(Own, Number) ->
    case [S || S = {_, N} <- trace:session_info(all), N =:= Number, S =/= Own] of
        [S] -> trace:session_destroy(S);
        [] -> throw({no_session, Number})
    end.

%% ---- what traces it -----------------------------------------------------------------------------------------------

about({arm, #{probes := Probes}}, Own) ->
    case lists:usort([MFA || P <- Probes, {MFA, _} <- functions_of(P, false)]) of
        [] -> none(hd(Probes));
        Found when length(Found) > ?INFO_MOST -> throw({too_many, length(Found), ?INFO_MOST});
        Found ->
            whom_pass(?WHOM_SLICES) orelse throw(held), % the values include times
            Clients = clients(),
            [about_one(MFA, Own, Clients) || MFA <- Found]
    end;
about(Target, Own) when is_tuple(Target) ->
    Clients = clients(),
    [case why_ask(fun() -> about_one(P, Own, Clients) end, {none, ?LOOK_PATIENCE}) of
        {ok, Row} -> Row;
        failed -> throw({noproc, text_of(P)});
        silent -> throw({silent, whom_text(P)})
    end || P <- who(Target)];
about(system, Own) ->
    [about_one(system, Own, clients())];
about(Event, Own) when Event =:= send; Event =:= 'receive'; Event =:= new; Event =:= new_processes; Event =:= new_ports; Event =:= on_load ->
    [about_one(Event, Own, clients())];
about(_, _) ->
    throw(bad_request).

about_one(T, Own, Clients) ->
    Sessions = [S || S <- knowing(T), S =/= Own],
    {subject(T), [begin
        {Client, _} = maps:get(S, Clients, {<<>>, -1}),
        {atom_to_binary(Name), case Number of default -> -1; _ -> Number end, Client, items(S, T)}
    end || S = {Name, Number} <- Sessions]}.

knowing(system) -> [S || S <- trace:session_info(all), event_traced(system, S)];
knowing(E) when E =:= send; E =:= 'receive' ->
    Flagged = flagged(E),
    [S || S <- trace:session_info(all), event_traced(E, S, fun() -> lists:member(S, Flagged) end)];
knowing(T) -> case trace:session_info(T) of L when is_list(L) -> L; _ -> [] end.

%% Returns the sessions that have a flag on a process that answers, or for new processes.
flagged(Flag) ->
    Of = fun(Sessions, Who) -> [S || S <- Sessions, Has <- [item_read(S, Who, flags)], is_list(Has), lists:member(Flag, Has)] end,
    {Rows, _} = look_ask(processes(), fun(P) -> Of(sessions_of(P), P) end),
    lists:usort(lists:append([Of(trace:session_info(all), new_processes) | [Some || {_, Some} <- Rows]])).

subject({M, F, A}) -> {atom_to_binary(M), atom_to_binary(F), A};
subject(E) when is_atom(E) -> atom_to_binary(E);
subject(P) ->
    {text_of(P), case name(P) of none -> <<>>; N when is_atom(N) -> atom_to_binary(N); N -> N end}.

items(S, T = {_, _, _}) ->
    %% Ask for `all`: the legacy functions support it in every version, but call_memory only since OTP 26.
    case item(S, T, all) of L when is_list(L) -> [{I, value(I, V)} || {I, V} <- L]; _ -> [] end;
items(S, on_load) ->
    case item(S, on_load, all) of L when is_list(L) -> [{I, value(I, V)} || {I, V} <- L]; _ -> [] end;
items(S, system) ->
    case item(S, system, all) of
        L when is_list(L) -> [{case I of {K, _} -> K; K -> K end, value(I, case I of {_, V} -> V; _ -> true end)} || I <- L];
        _ -> []
    end;
items(S, E) when E =:= send; E =:= 'receive' ->
    [{match_spec, value(match_spec, item(S, E, match_spec))}];
items(S, T) ->
    [{I, value(I, item(S, T, I))} || I <- [flags, tracer]].

%% Returns the value for the answer: false | true | an integer | text | {Calls, Sum, Processes, [{Pid, Name, Calls,
%% Sum}]} | [text] for flags.
value(_, V) when is_boolean(V); is_integer(V) -> V;
value(Counter, L) when Counter =:= call_time; Counter =:= call_memory ->
    All = lists:sort([case X of {P, N, S, U} -> {-(S * 1000000 + U), N, P}; {P, N, W} -> {-W, N, P} end || X <- L]),
    {lists:sum([N || {_, N, _} <- All]), -lists:sum([V || {V, _, _} <- All]), length(All),
        [{text_of(P), Name, N, -V} || {{V, N, P}, Name} <- value_names(lists:sublist(All, 20))]};
value(flags, L) when is_list(L) -> [atom_to_binary(F) || F <- L];
value(Tracer, T) when Tracer =:= tracer; Tracer =:= meta -> text_tracer(T);
value(_, T) -> text_term(T).

%% Adds the names of the processes. Asks each process once for an answer, because many functions may have the same ones.
value_names(Rows) ->
    Known = get(named),
    {New, Silent} = look_ask([P || {_, _, P} <- Rows, not is_map_key(P, Known)], fun(P) -> look_text(name(P)) end),
    Names = maps:merge(Known, maps:from_list(New ++ [{P, look_registered(P)} || P <- Silent])),
    put(named, Names),
    [{Row, maps:get(P, Names, <<>>)} || Row = {_, _, P} <- Rows].

text_tracer(P) when is_pid(P); is_port(P) ->
    case case is_pid(P) of true -> why_name(P, {none, ?LOOK_PATIENCE}); false -> name(P) end of
        none -> text_of(P);
        N -> iolist_to_binary([text_of(P), $(, case is_atom(N) of true -> atom_to_binary(N); false -> N end, $)])
    end;
text_tracer({M, _}) when is_atom(M) -> atom_to_binary(M);
text_tracer(T) -> text_term(T).

text_of(P) when is_pid(P) -> list_to_binary(pid_to_list(P));
text_of(P) when is_port(P) -> list_to_binary(port_to_list(P)).

text_term(T) ->
    unicode:characters_to_binary(io_lib:format("~0tp", [T], [{chars_limit, ?TEXT_MOST}])).

%% Returns [{MFA, Specification}]. Uses `force`, because looking at dangerous functions is harmless.
functions_of(Probe, Lenient) -> element(1, found(probe(Probe), all, Lenient, #{force => true})).

%% ---- functions ----------------------------------------------------------------------------------------------------

ls(After, #{probes := Probes, allow_empty := Lenient}) ->
    All = lists:usort(lists:flatmap(fun(P) ->
        case functions_of(P, Lenient) of
            [] when not Lenient -> none(P);
            Found -> [MFA || {MFA, _} <- Found]
        end
    end, Probes)),
    Rest = case After of
        none -> All;
        {Mb, Fb, A} -> [M] = existing([Mb]), [F] = existing([Fb]), lists:dropwhile(fun(MFA) -> MFA =< {M, F, A} end, All)
    end,
    Rows = ls_rows(Rest, ?PAGE, ?PAGE_BYTES, none, []),
    {Rows, length(All), length(Rest) > length(Rows)}.

ls_rows([], _, _, _, _) -> [];
ls_rows(_, N, Bytes, _, _) when N =:= 0; Bytes < 0 -> [];
ls_rows(All = [{M, _, _} | _], N, Bytes, Module, _) when M =/= Module ->
    ls_rows(All, N, Bytes, M, maps:from_keys(listed(M, global), true));
ls_rows([{M, F, A} | Rest], N, Bytes, M, Exports) ->
    {Mb, Fb} = {atom_to_binary(M), atom_to_binary(F)},
    Exported = is_map_key({F, A}, Exports) orelse erlang:is_builtin(M, F, A),
    [{Mb, Fb, A, Exported} | ls_rows(Rest, N - 1, Bytes - byte_size(Mb) - byte_size(Fb) - 30, M, Exports)].

%% Returns debug information from a module's file: a part of the encoded term in its chunk Dbgi, else in Docs. The node
%% does not decode the term, because the names of its variables would become atoms.
chunk(Name, From) ->
    File = case existing([Name]) of [M] -> code:which(M); [] -> none end,
    Bytes = case is_list(File) andalso File =/= [] andalso erl_prim_loader:get_file(File) of
        {ok, Beam, _} -> unzipped(Beam);
        _ -> <<>>
    end,
    case [{Id, Term} || byte_size(Bytes) > 12, Id <- [<<"Dbgi">>, <<"Docs">>], Term <- chunk_term(Id, Bytes, 12)] of
        [{Id, Term} | _] when From =< byte_size(Term) ->
            {Id, byte_size(Term), part(Term, From, min(?CHUNK_PART, byte_size(Term) - From))};
        _ -> none
    end.

unzipped(Bytes) ->
    case byte_size(Bytes) > 2 andalso part(Bytes, 0, 2) of
        <<31, 139>> -> zlib:gunzip(Bytes);
        _ -> Bytes
    end.

%% Finds a chunk. The file starts with "FOR1", its size and "BEAM". Each chunk has a name, a size, and bytes padded to a
%% multiple of four.
chunk_term(Id, Bytes, At) when At + 8 =< byte_size(Bytes) ->
    Size = binary:decode_unsigned(part(Bytes, At + 4, 4)),
    case part(Bytes, At, 4) of
        Id when At + 8 + Size =< byte_size(Bytes) -> term_bytes(part(Bytes, At + 8, Size));
        _ -> chunk_term(Id, Bytes, At + 8 + (Size + 3) band (bnot 3))
    end;
chunk_term(_, _, _) -> [].

%% Returns [the term without its version byte, uncompressed], or [] if it is too large or holds no debug information.
term_bytes(Bytes) when byte_size(Bytes) < 100 -> [];
term_bytes(Bytes) ->
    case binary:at(Bytes, 1) of
        80 ->
            Size = binary:decode_unsigned(part(Bytes, 2, 4)),
            case Size =< ?CHUNK_MOST of true -> [zlib:uncompress(part(Bytes, 6, byte_size(Bytes) - 6))]; false -> [] end;
        _ when byte_size(Bytes) =< ?CHUNK_MOST -> [part(Bytes, 1, byte_size(Bytes) - 1)];
        _ -> []
    end.
