%% SPDX-License-Identifier: Apache-2.0
%% Looks at one process and follows what it waits for: {ask, {look, #{what => why}}}.
%%
%% A process waits for another one if its innermost function is known to wait for a process that it monitors (why_waits/1).
%% If it monitors several processes, it waits for the one that has its request in its queue, or else probably for the only
%% one that is not idle. Each question to a process has a helper with a limit of its time and its heap, because a process in a NIF does
%% not answer, and because its queue or its monitors may be large. A process on another node is not asked.
%%
%% Map: who      [Who]: one process (tracer_whom.hrl)
%%      anew     true: it is an error if the process has exited
%%      most     0: only the process itself, without the details
%%      patience ms for the answer of a process
%% Answer: a map of
%%      chain    [Row]: the process, the one that it waits for, the one that this waits for …
%%               Row: #{pid, name, answer => known | silent | gone | elsewhere, status, stack => [{M, F, A}], queue,
%%               reductions, memory, minor, nif, among}: minor: minor collections since the last major one; nif: the
%%               innermost function is a NIF; among: how many processes it may wait for, 0 if it waits for none.
%%               If answer is elsewhere, pid is a pid or a registered name of that node, and name is the node
%%      cycle    the index of the row that the last row waits for; -1: none
%%      deep     true: the chain was not followed to its end
%%      details  a row of `processes` (tracer_look.hrl); #{} if the process did not answer
%%      messages [{Shape, Count, [Sender]}] of the queue, or `none` if it is long, or its messages may be large
%%      waiters  {Count, [{Pid, Name, Elsewhere}]}: if Elsewhere is true, pid is that of the other node, and name is the node

-define(WHY_DEEP, 16).      % processes of a chain
-define(WHY_FRAMES, 12).
-define(WHY_QUEUE, 100).    % a longer queue is not read
-define(WHY_BYTES, 16 * 1024 * 1024). % the queue of a process with more memory is not read
-define(WHY_CANDIDATES, 20).
-define(WHY_WAITERS, 200).  % processes that monitor it; the look leaves out further ones
-define(WHY_MS, 1500).      % for the whole answer, besides the last question

why(#{who := Who, anew := Anew, most := Most, patience := Patience}) ->
    P = case lists:flatmap(fun why_who/1, Who) of
        [One] when is_pid(One) -> One;
        _ -> throw(bad_request)
    end,
    Begun = now_us(),
    How = {now_ms() + ?WHY_MS, min(Patience, 1000)},
    Answer = #{chain := [#{answer := Known} | _]} = case Most of
        0 -> #{chain => [element(1, why_row(P, How))]};
        _ -> why_all(P, How)
    end,
    Anew andalso Known =:= gone andalso throw({noproc, text_of(P)}),
    Answer#{us => now_us() - Begun, looked => 1, left => 0}.

%% is_process_alive/1 would wait for the end of a NIF.
why_who({pid, Text}) ->
    P = try list_to_pid(binary_to_list(Text)) catch error:_ -> throw({noproc, Text}) end,
    node(P) =:= node() orelse throw({noproc, Text}),
    [P];
why_who(Who) -> who(Who).

why_all(P, How) ->
    {Rows, Cycle, Deep} = why_chain(P, [], [], How),
    {Messages, Senders} = case hd(Rows) of
        #{queue := N} when N > 0, N =< ?WHY_QUEUE -> why_messages(P, How);
        #{queue := 0} -> {[], []};
        _ -> {none, []}
    end,
    #{chain => Rows, cycle => Cycle, deep => Deep, messages => Messages, waiters => why_waiters(P, Senders, How),
        details => why_details(P, hd(Rows), How)}.

%% ---- the chain ----------------------------------------------------------------------------------------------------

why_chain(P, Pids, Rows, How = {Until, _}) ->
    {Row, Next} = why_row(P, How),
    Seen = Pids ++ [P],
    case Next of
        none -> {lists:reverse([Row | Rows]), -1, false};
        {Q, Among} ->
            All = [Row#{among => Among} | Rows],
            case why_index(Q, Seen, 0) of
                I when is_integer(I) -> {lists:reverse(All), I, false};
                none when not is_pid(Q) -> {lists:reverse([why_named(Q) | All]), -1, false};
                none ->
                    case length(Seen) < ?WHY_DEEP andalso now_ms() < Until of
                        true -> why_chain(Q, Seen, All, How);
                        false -> {lists:reverse(All), -1, true}
                    end
            end
    end.

why_index(_, [], _) -> none;
why_index(Q, [Q | _], I) -> I;
why_index(Q, [_ | Rest], I) -> why_index(Q, Rest, I + 1).

%% {Row, none | {the process that it waits for, among how many}}
why_row(P, _) when node(P) =/= node() ->
    {#{pid => why_pid(P), name => atom_to_binary(node(P)), answer => elsewhere}, none};
why_row(P, How) ->
    Items = name_items() ++ [status, current_stacktrace, message_queue_len, reductions, memory, garbage_collection,
        current_function],
    case why_ask(fun() -> process_info(P, Items) end, How) of
        {ok, undefined} -> {why_unknown(P, gone), none};
        {ok, Values} ->
            {Name, [{_, Status}, {_, Trace}, {_, Queue}, {_, Reductions}, {_, Memory}, {_, Collected}, {_, Current}]} =
                lists:split(length(name_items()), Values),
            Stack = look_stack(Trace, Current, Status),
            {#{pid => text_of(P), name => look_text(name_of(Name)), answer => known, status => Status, queue => Queue,
                reductions => Reductions, memory => Memory, minor => proplists:get_value(minor_gcs, Collected, 0),
                nif => look_in_nif(Status, Current),
                stack => [{atom_to_binary(M), atom_to_binary(F), A} || {M, F, A} <- lists:sublist(Stack, ?WHY_FRAMES)]},
                case Status =:= waiting andalso why_waits(Stack) of true -> why_next(P, How); false -> none end};
        _ -> {why_unknown(P, silent), none}
    end.

%% The pid as its own node prints it.
why_pid(P) ->
    [_, Rest] = string:split(pid_to_list(P), "."),
    list_to_binary("<0." ++ Rest).

why_named({Name, Node}) -> #{pid => look_text(registered_as(Name)), name => atom_to_binary(Node), answer => elsewhere}.

why_unknown(P, Answer) -> #{pid => text_of(P), name => look_registered(P), answer => Answer}.

%% Whether the innermost function waits for a process that it monitors. Names are compared as text: the node need not
%% have these atoms.
why_waits([{M, F, _} | _]) ->
    case {atom_to_binary(M), atom_to_binary(F)} of
        {<<"gen">>, Name} -> lists:member(Name, [<<"do_call">>, <<"wait_response">>, <<"receive_response">>]);
        {<<"io">>, <<"wait_io_mon_reply">>} -> true;
        {<<"erpc">>, Name} -> lists:member(Name, [<<"call">>, <<"receive_response">>, <<"wait_response">>]);
        {<<"supervisor">>, Name} -> lists:member(Name, [<<"shutdown">>, <<"do_terminate">>, <<"wait_children">>, <<"wait_dynamic_children">>]);
        {<<"proc_lib">>, Name} -> lists:member(Name, [<<"stop">>, <<"do_stop">>]);
        {<<"Elixir.Task">>, _} -> true;
        {<<"Elixir.Task.Supervised">>, <<"stream_reduce">>} -> true;
        {<<"Elixir.DBConnection.Holder">>, <<"checkout_call">>} -> true;
        _ -> false
    end;
why_waits([]) -> false.

why_next(P, How) ->
    case why_monitored(P, How) of
        [] -> none;
        [Q] -> {Q, 1};
        Several ->
            Asked = [Q || Q <- Several, why_has_request(Q, P, How)],
            Busy = [Q || Asked =:= [], Q <- Several, why_is_busy(Q, How)],
            Elsewhere = [Q || Q <- Several, not is_pid(Q) orelse node(Q) =/= node()],
            case {Asked, Busy ++ Elsewhere} of
                {[Q | _], _} -> {Q, 1};
                {[], [Q | _]} -> {Q, length(Several)};
                {[], []} -> {hd(Several), length(Several)}
            end
    end.

%% The processes that it monitors: pids, or {Name, Node} for one on another node.
why_monitored(P, How) ->
    Read = fun() ->
        {_, Monitors} = process_info(P, monitors),
        lists:sublist(lists:usort([why_local(Q) || {process, Q} <- Monitors]), ?WHY_CANDIDATES)
    end,
    case why_ask(Read, How) of {ok, Found} -> Found -- [undefined]; _ -> [] end.

why_local({Name, Node}) when Node =:= node() -> whereis(Name);
why_local(Q) -> Q.

why_has_request(Q, P, How) when is_pid(Q), node(Q) =:= node() ->
    Read = fun() ->
        L = why_queue(Q),
        L =/= none andalso lists:any(fun(Message) -> why_sender(Message) =:= P end, L)
    end,
    why_ask(Read, How) =:= {ok, true};
why_has_request(_, _, _) -> false.

why_is_busy(Q, How) when is_pid(Q), node(Q) =:= node() ->
    case why_ask(fun() -> process_info(Q, [status, current_stacktrace]) end, How) of
        {ok, [{_, waiting}, {_, []}]} -> false; % it hibernates
        {ok, [{_, waiting}, {_, [{M, F, _, _} | _]}]} ->
            not lists:member({atom_to_binary(M), atom_to_binary(F)}, [{<<"gen_server">>, <<"loop">>},
                {<<"gen_server">>, <<"loop_hibernate">>}, {<<"gen_statem">>, <<"loop">>}, {<<"gen_statem">>, <<"loop_receive">>},
                {<<"gen_statem">>, <<"loop_hibernate">>}, {<<"gen_event">>, <<"fetch_msg">>}]);
        {ok, undefined} -> false;
        _ -> true
    end;
why_is_busy(_, _) -> false.

%% ---- the process itself -------------------------------------------------------------------------------------------

%% The row of `processes` (tracer_look.hrl), without growth.
why_details(P, #{answer := known, queue := Queue, reductions := Reductions, memory := Memory}, How) ->
    Read = fun() ->
        case process_info(P, name_items() ++ look_details()) of
            undefined -> none;
            Values -> look_values(details, Values)
        end
    end,
    Details = case why_ask(Read, How) of {ok, Found} -> Found; _ -> none end,
    look_row(P, {Queue, Memory, 0, Reductions}, Details, #scan{});
why_details(_, _, _) -> #{}.

%% Returns the messages of P, or `none`. The node copies all of them before a limit of our heap acts, so this asks first how
%% many there are, and how much memory P has, because that includes the messages. The memory is no bound for a message that
%% contains a term several times, or a persistent term: the copy has each of them in full.
why_queue(P) ->
    case process_info(P, [message_queue_len, memory]) of
        [{_, N}, {_, Bytes}] when N =< ?WHY_QUEUE, Bytes =< ?WHY_BYTES ->
            {_, L} = process_info(P, messages),
            L;
        _ -> none
    end.

%% {[{Shape, Count, [Sender]}], [Pid that waits for a reply]}, in the order of the queue.
why_messages(P, How) ->
    Read = fun() ->
        Messages = [{why_shape(M), why_sender(M)} || M <- why_queue(P)],
        Shapes = lists:foldl(fun({S, _}, Acc) -> case lists:member(S, Acc) of true -> Acc; false -> Acc ++ [S] end end, [], Messages),
        {[{S, length([M || M = {T, _} <- Messages, T =:= S]), lists:sublist(lists:usort([why_sender_text(From) || {T, From} <- Messages, T =:= S, is_pid(From)]), 4)} ||
            S <- lists:sublist(Shapes, 8)], lists:usort([From || {_, From} <- Messages, is_pid(From)])}
    end,
    case why_ask(Read, How) of {ok, Found} -> Found; _ -> {none, []} end.

why_sender_text(P) when node(P) =:= node() -> text_of(P);
why_sender_text(P) -> iolist_to_binary([why_pid(P), <<" on ">>, atom_to_binary(node(P))]).

why_sender({'$gen_call', {From, _}, _}) when is_pid(From) -> From;
why_sender({system, {From, _}, _}) when is_pid(From) -> From;
why_sender({io_request, From, _, _}) when is_pid(From) -> From;
why_sender({From, {Asker, _}, _}) when is_pid(From), From =:= Asker -> From; % gen_event
why_sender(_) -> none.

%% Only tags are shown, because a message may have secrets.
why_shape({'$gen_call', _, Request}) -> <<"call ", (why_shape(Request))/binary>>;
why_shape({'$gen_cast', Request}) -> <<"cast ", (why_shape(Request))/binary>>;
why_shape(A) when is_atom(A) -> look_text(registered_as(A));
why_shape(T) when is_tuple(T), tuple_size(T) > 0, tuple_size(T) =< 8 ->
    Tag = case element(1, T) of A when is_atom(A) -> why_shape(A); _ -> <<"_">> end,
    iolist_to_binary([${, Tag, lists:duplicate(tuple_size(T) - 1, <<",_">>), $}]);
why_shape(T) when is_tuple(T) -> <<"{…}"/utf8>>;
why_shape(#{'__struct__' := S}) when is_atom(S) -> iolist_to_binary([$%, look_text(registered_as(S)), "{}"]);
why_shape(M) when is_map(M) -> <<"#{}">>;
why_shape(B) when is_binary(B) -> <<"<<_>>">>;
why_shape([]) -> <<"[]">>;
why_shape(L) when is_list(L) -> <<"[_]">>;
why_shape(_) -> <<"_">>.

%% {Count, [{Pid, Name}]}: processes that wait for a reply of P. `none` if P does not tell who monitors it.
why_waiters(P, Senders, How = {Until, Patience}) ->
    Read = fun() -> {_, By} = process_info(P, monitored_by), lists:sublist([Q || Q <- lists:usort(By), is_pid(Q), node(Q) =:= node()], ?WHY_WAITERS) end,
    case why_ask(Read, How) of
        {ok, By} ->
            Stacks = #scan{what = stacks, items = look_stack_items(), named = all, filters = []},
            {Rows, _} = look_at(look_start(), By -- Senders, Stacks, 100, Patience),
            Waits = [Q || {Q, {waiting, Stack, _}} <- Rows, now_ms() < Until, why_waits(Stack), why_monitored(Q, How) =:= [P]],
            All = lists:usort(Senders ++ Waits),
            {length(All), [why_waiter(Q, How) || Q <- lists:sublist(All, 4)]};
        _ -> none
    end.

why_waiter(P, _) when node(P) =/= node() -> {why_pid(P), atom_to_binary(node(P)), true};
why_waiter(P, How) -> {text_of(P), look_text(why_name(P, How)), false}.

why_name(P, How) ->
    case why_ask(fun() -> process_info(P, name_items()) end, How) of
        {ok, Values} when is_list(Values) -> name_of(Values);
        _ -> none
    end.

%% Calls a fun in a helper: {ok, Result}, or why there is none. An error, such as of a process that has exited, is not logged.
why_ask(Fun, {_, Patience}) ->
    {Helper, Ref} = spawn_opt(fun() -> exit(try {answer, Fun()} catch error:_ -> failed end) end, [monitor, {priority, high} | bounds(4)]),
    receive
        {'DOWN', Ref, _, _, {answer, Answer}} -> {ok, Answer};
        {'DOWN', Ref, _, _, _} -> failed
    after Patience ->
        exit(Helper, kill),
        demonitor(Ref, [flush]),
        silent
    end.
