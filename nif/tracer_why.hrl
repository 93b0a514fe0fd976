%% SPDX-License-Identifier: Apache-2.0
%% Looks at one process and follows what it waits for: {ask, {look, #{what => why}}}.
%%
%% A process waits for another one if its innermost function is known to wait for a process that it monitors, or for one
%% that it has just started (why_waits/1). If it monitors several processes, why_choose/4 finds the one that it calls,
%% or guesses. Each question to a process has a helper with a limit of its time and its heap, because a process in a NIF
%% does not answer. A process on another node is not asked.
%%
%% Map: who      [Who]: one process (tracer_whom.hrl)
%%      anew     true: it is an error if the process has exited
%%      most     0: only the process itself, without the details
%%      patience ms for the answer of a process
%% Answer: a map of
%%      chain    [Row]: the process, the one that it waits for, the one that this waits for …
%%               Row: #{pid, name, answer => known | silent | gone | elsewhere, status, stack => [{M, F, A}], queue,
%%               reductions, memory, least, minor, nif, loop, among}: least: memory is a least value; minor: minor
%%               collections since the last major one; nif: the innermost function is a NIF; loop: it is the loop of a
%%               behaviour or of OTP; among: how many processes the process may wait for, 0 if it waits for none;
%%               untold: it waits, and the answer does not tell for which process: many: it has too many links or
%%               monitors, late: it did not list them in time, or only the process itself was asked.
%%               If answer is elsewhere, pid is a pid or a registered name of that node, and name is the node
%%      cycle    the index of the row that the last row waits for; -1: none
%%      sure     the processes of the cycle wait at the same time, and none of them is a guess
%%      deep     true: the chain was not followed to its end
%%      details  a row of `processes` (tracer_look.hrl); #{} if the process did not answer
%%      messages [{Shape, Count, [Sender]}] of the queue, or `none` if it is long, or its messages may be large
%%      waiters  {Count, [{Pid, Name, Elsewhere}], Others}: if Elsewhere is true, Pid is the pid on the other node, and
%%               Name is the node. Others: how many further processes monitor this one, and may wait for it or not

-define(WHY_DEEP, 16).      % most processes in a chain
-define(WHY_FRAMES, 12).
-define(WHY_CANDIDATES, 20). % most processes that are asked, of those that a process may wait for
-define(WHY_WAITERS, 200).  % most processes that monitor a process; the look leaves out further ones
-define(WHY_MS, 1500).      % ms for the whole answer, besides the last question
-define(WHY_TERM, 600).     % bytes of the text of a term; names, pids and references are shorter
-define(WHY_KNOWN, 1000).    % the most rows to keep of processes that have not run since they were asked
-define(WHY_STILL, 25).     % most reductions that our questions in why_is_sure/4 cost a process, with some room

why(#{who := Who, anew := Anew, most := Most, patience := Patience}, Ours) ->
    P = case lists:flatmap(fun why_who/1, Who) of
        [One] when is_pid(One) -> One;
        _ -> throw(bad_request)
    end,
    Begun = now_us(),
    How = {now_ms() + ?WHY_MS, min(Patience, 1000)},
    Answer = #{chain := [#{answer := Known} | _]} = case Most of
        0 ->
            case why_row(P, How) of
                {Row, none} -> #{chain => [Row]};
                {Row, _} -> #{chain => [Row#{untold => late}]}
            end;
        _ -> why_all(P, Ours, How)
    end,
    Anew andalso Known =:= gone andalso throw({noproc, text_of(P)}),
    Answer#{us => now_us() - Begun, looked => 1, left => 0}.

%% Finds a process without is_process_alive/1, which would wait for the end of a NIF.
why_who({pid, Text}) ->
    P = try list_to_pid(binary_to_list(Text)) catch error:_ -> throw({noproc, Text}) end,
    node(P) =:= node() orelse throw({noproc, Text}),
    [P];
why_who(Who) -> who(Who).

why_all(P, Ours, How) ->
    {Rows, Pids, Cycle, Deep} = why_chain(P, [], [], How),
    {Messages, Requests} = case hd(Rows) of
        #{queue := N} when N > 0 -> why_messages(P, How);
        #{queue := 0} -> {[], []};
        _ -> {none, []}
    end,
    #{chain => Rows, cycle => Cycle, sure => why_is_sure(Rows, Pids, Cycle, How), deep => Deep, messages => Messages,
        waiters => why_waiters(P, Requests, Ours, How), details => why_details(P, hd(Rows), How)}.

%% ---- the chain ----------------------------------------------------------------------------------------------------

%% Returns {[Row], the pids of the rows, Cycle, Deep}.
why_chain(P, Pids, Rows, How = {Until, _}) ->
    {Row, Next} = why_row(P, How),
    Seen = Pids ++ [P],
    case Next of
        none -> {lists:reverse([Row | Rows]), Seen, -1, false};
        Why when Why =:= many; Why =:= late -> {lists:reverse([Row#{untold => Why} | Rows]), Seen, -1, true};
        {Q, Among} ->
            All = [Row#{among => Among} | Rows],
            case why_index(Q, Seen, 0) of
                I when is_integer(I) -> {lists:reverse(All), Seen, I, false};
                none when not is_pid(Q) -> {lists:reverse([why_named(Q) | All]), Seen, -1, false};
                none ->
                    case length(Seen) < ?WHY_DEEP andalso now_ms() < Until of
                        true -> why_chain(Q, Seen, All, How);
                        false -> {lists:reverse(All), Seen, -1, true}
                    end
            end
    end.

%% Returns true if it is certain that the processes of a cycle wait for each other at the same time. They were asked one
%% after the other, so the cycle is searched once more, and their reductions are compared before and after: if no process
%% has run, all of them waited. Our questions cost a process fewer reductions than a call does.
why_is_sure(_, _, -1, _) -> false;
why_is_sure(Rows, Pids, Cycle, How) ->
    Members = lists:nthtail(Cycle, Pids),
    Reductions = fun() ->
        [case why_ask(fun() -> process_value(Q, reductions) end, How) of {ok, N} -> N; _ -> none end || Q <- Members]
    end,
    lists:all(fun(#{among := N}) -> N =:= 1 end, lists:nthtail(Cycle, Rows)) andalso begin
        Before = Reductions(),
        {_, Again, Index, _} = why_chain(hd(Members), [], [], How),
        {Again, Index} =:= {Members, 0} andalso
            lists:all(fun({N, M}) -> is_integer(N) andalso is_integer(M) andalso M - N =< ?WHY_STILL end, lists:zip(Before, Reductions()))
    end.

why_index(_, [], _) -> none;
why_index(Q, [Q | _], I) -> I;
why_index(Q, [_ | Rest], I) -> why_index(Q, Rest, I + 1).

%% Returns {Row, none | many | late | {the process that it waits for, among how many}}.
why_row(P, _) when node(P) =/= node() ->
    {#{pid => why_pid(P), name => atom_to_binary(node(P)), answer => elsewhere}, none};
why_row(P, How) ->
    Known = why_known(),
    case {why_ask(fun() -> why_state(P) end, How), Known} of
        {silent, _} -> {why_unknown(P, silent), none};
        {{ok, State = {waiting, _, _}}, #{P := {State, Row}}} -> Row;
        {{ok, {waiting, _, _}}, _} ->
            put(why_late, false),
            Row = why_row_asked(P, How),
            case {why_ask(fun() -> why_state(P) end, How), get(why_late)} of
                {{ok, State = {waiting, _, _}}, false} -> put(why, Known#{P => {State, Row}});
                _ -> ok
            end,
            Row;
        _ -> why_row_asked(P, How)
    end.

%% Returns the kept rows of processes. A row is used again if its process has not run since. Asking the process again
%% would cost it some reductions, and the reductions tell whether it runs. A row is not kept if an answer came late: it
%% lacks what the process would have told.
why_known() ->
    case get(why) of Known when map_size(Known) < ?WHY_KNOWN -> Known; _ -> #{} end.

%% Returns the state of a process. A process that waits answers this without running.
why_state(P) ->
    [{_, Status}, {_, Reductions}, {_, Queue}] = process_ask(P, [status, reductions, message_queue_len]),
    {Status, Reductions, Queue}.

why_row_asked(P, How) ->
    Items = name_items() ++ [status, current_stacktrace, message_queue_len, reductions, memory, garbage_collection,
        current_function],
    case why_ask(fun() -> process_ask(P, Items) end, How) of
        {ok, undefined} -> {why_unknown(P, gone), none};
        {ok, Values} ->
            {Name, [{_, Status}, {_, Trace}, {_, Queue}, {_, Reductions}, {_, Memory}, {_, Collected}, {_, Current}]} =
                lists:split(length(name_items()), Values),
            Stack = look_stack(Trace, Current, Status),
            {#{pid => text_of(P), name => look_text(name_of(P, Name)), answer => known, status => Status, queue => Queue,
                reductions => Reductions, memory => Memory, least => Queue > ?PROCESS_WALK, minor => proplists:get_value(minor_gcs, Collected, 0),
                nif => look_in_nif(Status, Current), loop => look_loop(Stack),
                stack => [{atom_to_binary(M), atom_to_binary(F), A} || {M, F, A} <- lists:sublist(Stack, ?WHY_FRAMES)]},
                case Status =:= waiting andalso why_waits(Stack) of
                    false -> none;
                    Waits -> why_next(P, Waits, How)
                end};
        _ -> {why_unknown(P, silent), none}
    end.

%% Returns the pid as its own node prints it.
why_pid(P) ->
    [_, Rest] = string:split(pid_to_list(P), "."),
    list_to_binary("<0." ++ Rest).

why_named({Name, Node}) -> #{pid => look_text(registered_as(Name)), name => atom_to_binary(Node), answer => elsewhere}.

why_unknown(P, Answer) -> #{pid => text_of(P), name => look_registered(P), answer => Answer}.

%% Returns `monitored` if the innermost function waits for a process that it monitors, `started` if it waits for a
%% process that it has just started, `tasks` for the process behind a stream of tasks; otherwise `false`. Names are
%% compared as text: the node need not have these atoms. A server's own loop is never here, because a server monitors
%% clients, too.
why_waits([{M, F, _} | _]) ->
    Name = atom_to_binary(F),
    Known = case atom_to_binary(M) of
        <<"gen">> -> [<<"do_call">>, <<"wait_response">>, <<"receive_response">>, <<"monitor_return">>];
        <<"gen_server">> -> [<<"mc_recv">>];
        <<"io">> -> [<<"execute_request">>];
        <<"file">> -> [<<"file_request">>];
        <<"file_io_server">> -> [<<"do_start">>];
        <<"file_server">> -> [<<"do_start_slave">>, <<"relay_start">>];
        <<"erpc">> -> [<<"call">>, <<"receive_response">>, <<"wait_response">>, <<"mcall_receive_replies">>];
        <<"rpc">> -> [<<"do_srv_call">>, <<"server_call">>];
        <<"supervisor">> -> [<<"shutdown">>, <<"wait_dynamic_children">>];
        <<"proc_lib">> -> [<<"stop">>, <<"await_DOWN">>];
        <<"application_master">> -> [<<"call">>];
        <<"code_server">> -> [<<"call">>];
        <<"net_kernel">> -> [<<"get_node_info">>, <<"multi_receive">>];
        <<"inet_gethost_native">> -> [<<"wait_reply">>];
        <<"logger_std_h">> -> [<<"file_ctrl_call">>];
        <<"prim_tty">> -> [<<"call">>];
        <<"disk_log">> -> [<<"monitor_request">>];
        <<"dets">> -> [<<"req">>];
        <<"epp">> -> [<<"wait_epp_reply">>];
        <<"qlc">> -> [<<"monitor_request">>];
        <<"Elixir.Task">> -> [Name];
        <<"Elixir.Task.Supervised">> -> [<<"stream_reduce">>, <<"stream_monitor_loop">>];
        <<"Elixir.DynamicSupervisor">> -> [<<"wait_children">>];
        <<"Elixir.DBConnection.Holder">> -> [<<"checkout_call">>];
        <<"Elixir.NimblePool">> -> [<<"checkout!">>];
        _ -> []
    end,
    Starts = [{<<"proc_lib">>, <<"sync_start">>}, {<<"proc_lib">>, <<"sync_start_monitor">>}, {<<"proc_lib">>, <<"sync_start_link">>},
        {<<"application_master">>, <<"init_loop">>}],
    case {lists:member(Name, Known), lists:member({atom_to_binary(M), Name}, Starts)} of
        {true, _} when Name =:= <<"stream_monitor_loop">> -> tasks;
        {true, _} -> monitored;
        {_, true} -> started;
        _ -> false
    end;
why_waits([]) -> false.

%% Returns {Process, Among}: among is 1 if no other process is possible. Returns none, many or late (why_candidates/3) if
%% no process can be told.
why_next(P, Waits, How) ->
    case why_candidates(P, Waits, How) of
        Why when is_atom(Why) -> Why;
        [] -> none;
        [Q] when Waits =:= started -> case why_is_busy(Q, How) of true -> {Q, 1}; false -> none end;
        [Q] -> {Q, 1};
        Several when Waits =:= started -> why_started(P, Several, How);
        Several -> why_choose(P, Several, why_clue(why_backtrace(P, How)), How)
    end.

%% Returns the processes that P may wait for: pids, or {Name, Node} for a process on another node; `many` if the VM
%% would have to copy too many links or monitors to tell, `late` if P does not answer in time. P is linked to a process that it has started, or monitors it.
%% The process behind a stream of tasks monitors the tasks and also the owner of the stream, and the owner monitors it.
why_candidates(P, started, How) ->
    why_read(P, [links, monitors], fun([Links, Monitors]) ->
        lists:reverse(lists:usort([Q || Q <- Links ++ [M || {process, M} <- Monitors], is_pid(Q), node(Q) =:= node()]))
    end, How);
why_candidates(P, tasks, How) ->
    why_read(P, [monitors, monitored_by], fun([Monitors, By]) -> why_monitored(Monitors) -- By end, How);
why_candidates(P, monitored, How) ->
    why_read(P, [monitors], fun([Monitors]) -> why_monitored(Monitors) end, How).

why_read(P, Items, Read, How) ->
    Ask = fun() ->
        Values = [Value || {_, Value} <- process_ask(P, Items)],
        case lists:member(?TOO_LARGE, Values) of true -> many; false -> Read(Values) end
    end,
    case why_ask(Ask, How) of {ok, Found} -> Found; silent -> late; failed -> [] end.

why_monitored(Monitors) ->
    [Q || Q <- lists:usort([why_local(Q) || {process, Q} <- Monitors]), Q =/= undefined].

%% Returns the process that P waits for, of the processes that P has started (Several, the newest first): the only one
%% that is a term of P's innermost function, and otherwise the newest, as a guess.
why_started(P, Several, How) ->
    {Q, Among} = case why_called(Several, why_clue(why_backtrace(P, How))) of
        [One] -> {One, 1};
        _ -> {hd(Several), length(Several)}
    end,
    case why_is_busy(Q, How) of true -> {Q, Among}; false -> none end.

%% Chooses the process that P calls, from Several. P calls a process if P's function has its name or pid, if the process
%% has the request in its queue, or if it has the reference of the request on its stack. A request without this
%% reference may belong to an earlier call. If none of this tells the process, the result is a guess, in this order: a
%% process that is not idle, a process on another node, an idle process, a process that itself waits for P.
why_choose(P, Several, Clue = {Refs, _}, How) ->
    Some = lists:sublist(Several, ?WHY_CANDIDATES),
    Local = [Q || Q <- Some, is_pid(Q), node(Q) =:= node()],
    case why_called(Several, Clue) of
        [Q] -> {Q, 1};
        _ ->
            case [Q || Q <- Local, why_has_request(Q, P, Refs, How)] of
                [Q | _] when Refs =/= [] -> {Q, 1};
                [Q | _] -> {Q, length(Several)};
                [] ->
                    case [Q || Refs =/= [], Q <- Local, why_has_any(why_backtrace(Q, How), Refs)] of
                        [Q] -> {Q, 1};
                        _ -> {_, Q} = lists:min([{why_rank(Q, P, How), Q} || Q <- Some]), {Q, length(Several)}
                    end
            end
    end.

why_rank(Q, P, How) when is_pid(Q), node(Q) =:= node() ->
    case why_ask(fun() -> process_ask(Q, [status, current_stacktrace]) end, How) of
        {ok, [{_, waiting}, {_, [{M, F, A, _} | _]}]} ->
            case why_waits_for(Q, P, [{M, F, A}], [], <<>>, How) of
                true -> case why_has_request(P, Q, [], How) of true -> 4; false -> 5 end;
                _ -> case why_is_busy(Q, How) of true -> 1; false -> 3 end
            end;
        _ -> case why_is_busy(Q, How) of true -> 1; false -> 3 end
    end;
why_rank(_, _, _) -> 2.

%% Returns true if Q waits for P, else false or `perhaps`. Requests: those in the queue of P. Text: the backtrace of P.
why_waits_for(Q, P, Stack, Requests, Text, How) ->
    Waits = why_waits(Stack),
    Candidates = case Waits of false -> []; _ -> why_candidates(Q, Waits, How) end,
    case {Waits, is_atom(Candidates) orelse lists:member(P, Candidates), Candidates} of
        {false, _, _} -> false;
        {_, _, Why} when is_atom(Why) -> perhaps;
        {_, false, _} -> false;
        {_, true, [P]} -> true;
        _ ->
            Clue = {Refs, _} = why_clue(why_backtrace(Q, How)),
            case why_called(Candidates, Clue) of
                [One] -> One =:= P;
                _ ->
                    case [R || {From, R} <- Requests, From =:= Q, lists:member(R, Refs)] =/= [] orelse why_has_any(Text, Refs) of
                        true -> true;
                        false -> perhaps
                    end
            end
    end.

why_local({Name, Node}) when Node =:= node() -> whereis(Name);
why_local(Q) -> Q.

%% Returns true if the queue of Q has a request of P with one of these references, or with any if there are none.
why_has_request(Q, P, Refs, How) ->
    Read = fun() ->
        L = why_queue(Q),
        L =/= none andalso
            lists:any(fun(M) -> {From, R} = why_request(M), From =:= P andalso (Refs =:= [] orelse lists:member(R, Refs)) end, L)
    end,
    why_ask(Read, How) =:= {ok, true}.

why_is_busy(Q, How) when is_pid(Q), node(Q) =:= node() ->
    case why_ask(fun() -> process_ask(Q, [status, current_stacktrace]) end, How) of
        {ok, [{_, waiting}, {_, []}]} -> false; % it hibernates
        {ok, [{_, waiting}, {_, [{M, F, A, _} | _]}]} -> not look_loop([{M, F, A}]);
        {ok, undefined} -> false;
        _ -> true
    end;
why_is_busy(_, _) -> false.

%% ---- the terms of a stack ------------------------------------------------------------------------------------------

%% Returns the terms of the stack as text; <<>> if the stack or the process is large. The text never leaves the node,
%% because it may have secrets.
why_backtrace(P, How) ->
    Read = fun() ->
        process_value(P, backtrace)
    end,
    case why_ask(Read, How) of {ok, Text} when is_binary(Text) -> Text; _ -> <<>> end.

%% Returns {References, Terms} from the stack of a process that waits. References: the references of its innermost
%% function. Terms: the terms of the function that called gen:call or starts a process; one of them is the called
%% process.
why_clue(Text) ->
    case [why_frame(F) || F <- lists:sublist(binary:split(Text, <<"\n\n">>, [global]), 2)] of
        [{Inner, Terms} | Rest] ->
            Refs = [R || T <- Terms, {match, Found} <- [re:run(T, <<"#Ref<[0-9.]+>">>, [global, {capture, first, binary}])], [R] <- Found],
            Calls = [<<"gen_server:call">>, <<"gen_statem:call">>, <<"gen_server2:call">>, <<"'Elixir.GenServer':call">>],
            Starts = [<<"proc_lib:sync_start">>, <<"proc_lib:sync_start_monitor">>, <<"proc_lib:sync_start_link">>],
            Called = [Outer || Inner =:= <<"gen:do_call">>, {F, Outer} <- Rest, lists:member(F, Calls)],
            {lists:usort(Refs), lists:append([Terms || lists:member(Inner, Starts)] ++ Called)};
        [] -> {[], []}
    end.

%% Returns {Module:Function, [Term]}.
why_frame(Text) ->
    [Head | Slots] = binary:split(Text, <<"\n">>, [global]),
    Function = case re:run(Head, <<"\\((.*)/[0-9]+ \\+ [0-9]+\\)$">>, [{capture, [1], binary}]) of {match, [F]} -> F; nomatch -> <<>> end,
    {Function, [string:trim(T, leading) || S <- Slots, byte_size(S) =< ?WHY_TERM, [Y, T] <- [binary:split(S, <<")">>)], string:prefix(Y, "y(") =/= nomatch]}.

%% Returns the candidates that are among the terms. The name of a registry may stand for any process.
why_called(Candidates, {_, Terms}) ->
    Via = lists:any(fun(T) -> lists:any(fun(B) -> string:prefix(T, B) =/= nomatch end, [<<"{via,">>, <<"{global,">>]) end, Terms),
    Named = [why_process(T) || not Via, T <- Terms],
    [Q || Q <- Candidates, lists:member(Q, Named)].

%% Uses no patterns such as <<"<", _/binary>>: OTP 29 does not load the code that the compiler of OTP 25 makes of them.
why_process(Text) ->
    case {string:prefix(Text, "<"), string:prefix(Text, "{")} of
        {nomatch, nomatch} -> why_local({why_atom(Text), node()});
        {nomatch, Pair} ->
            case [why_atom(A) || A <- binary:split(string:trim(Pair, trailing, "}"), <<",">>)] of
                [Name, Node] when Name =/= undefined -> why_local({Name, Node});
                _ -> undefined
            end;
        _ -> try list_to_pid(binary_to_list(Text)) catch error:_ -> undefined end
    end.

why_atom(Text) -> try binary_to_existing_atom(string:trim(Text, both, "'")) catch error:_ -> undefined end.

why_has_any(_, []) -> false;
why_has_any(Text, Refs) -> binary:match(Text, Refs) =/= nomatch.

%% ---- the process itself -------------------------------------------------------------------------------------------

%% Returns the row of `processes` (tracer_look.hrl), without growth.
why_details(P, #{answer := known, queue := Queue, reductions := Reductions, memory := Memory}, How) ->
    Read = fun() ->
        case process_ask(P, name_items() ++ look_details()) of
            undefined -> none;
            Values -> look_values(details, P, Values)
        end
    end,
    Details = case why_ask(Read, How) of {ok, Found} -> Found; _ -> none end,
    look_row(P, {Queue, Memory, 0, Reductions}, Details, #scan{});
why_details(_, _, _) -> #{}.

%% Returns the messages of P, or `none`.
why_queue(P) ->
    case process_value(P, messages) of L when is_list(L) -> L; _ -> none end.

%% Returns {[{Shape, Count, [Sender]}], [{Pid that has sent a request, its reference}]}, in the order of the queue.
why_messages(P, How) ->
    Read = fun() ->
        Messages = [{why_shape(M), why_request(M)} || M <- why_queue(P)],
        Shapes = lists:foldl(fun({S, _}, Acc) -> case lists:member(S, Acc) of true -> Acc; false -> Acc ++ [S] end end, [], Messages),
        {[{S, length([M || M = {T, _} <- Messages, T =:= S]), lists:sublist(lists:usort([why_sender_text(From) || {T, {From, _}} <- Messages, T =:= S, is_pid(From)]), 4)} ||
            S <- lists:sublist(Shapes, 8)], lists:usort([Request || {_, Request = {From, _}} <- Messages, is_pid(From)])}
    end,
    case why_ask(Read, How) of {ok, Found} -> Found; _ -> {none, []} end.

why_sender_text(P) when node(P) =:= node() -> text_of(P);
why_sender_text(P) -> iolist_to_binary([why_pid(P), <<" on ">>, atom_to_binary(node(P))]).

%% Returns {Sender, Reference}: the reference as text; `none` for each if the message is no request.
why_request({'$gen_call', {From, Tag}, _}) when is_pid(From) -> {From, why_ref(Tag)};
why_request({system, {From, Tag}, _}) when is_pid(From) -> {From, why_ref(Tag)};
why_request({io_request, From, Tag, _}) when is_pid(From) -> {From, why_ref(Tag)};
why_request({file_request, From, Tag, _}) when is_pid(From) -> {From, why_ref(Tag)};
why_request({code_call, From, _, _}) when is_pid(From) -> {From, none};
why_request({From, {Asker, Tag}, _}) when is_pid(From), From =:= Asker -> {From, why_ref(Tag)}; % gen_event
why_request(_) -> {none, none}.

why_ref(Ref) when is_reference(Ref) -> list_to_binary(ref_to_list(Ref));
why_ref([alias | Ref]) -> why_ref(Ref);
why_ref([Tag | _]) -> why_ref(Tag);
why_ref(_) -> none.

%% Returns the shape of a message, in the language of the node. It shows only tags, because a message may have secrets.
why_shape({'$gen_call', _, Request}) -> <<"call ", (why_shape(Request))/binary>>;
why_shape({'$gen_cast', Request}) -> <<"cast ", (why_shape(Request))/binary>>;
why_shape(A) when is_atom(A) ->
    case is_elixir() of true -> unicode:characters_to_binary(registry_term(A)); false -> look_text(registered_as(A)) end;
why_shape(T) when is_tuple(T), tuple_size(T) > 0, tuple_size(T) =< 8 ->
    Tag = case element(1, T) of A when is_atom(A) -> why_shape(A); _ -> <<"_">> end,
    Other = case is_elixir() of true -> <<", _">>; false -> <<",_">> end,
    iolist_to_binary([${, Tag, lists:duplicate(tuple_size(T) - 1, Other), $}]);
why_shape(T) when is_tuple(T) -> <<"{…}"/utf8>>;
why_shape(#{'__struct__' := S}) when is_atom(S) -> iolist_to_binary([$%, look_text(registered_as(S)), "{}"]);
why_shape(M) when is_map(M) -> case is_elixir() of true -> <<"%{}">>; false -> <<"#{}">> end;
why_shape(B) when is_binary(B) -> <<"<<_>>">>;
why_shape([]) -> <<"[]">>;
why_shape(L) when is_list(L) -> <<"[_]">>;
why_shape(_) -> <<"_">>.

%% Returns {Count, [{Pid, Name}], Others}: processes that wait for a reply of P, and how many others monitor it and may
%% wait: processes of other nodes, those after the first ?WHY_WAITERS, and those that wait for one of several processes.
%% A process on another node waits if its request is in the queue. A process that does not monitor P has given up or has
%% exited. Ours: our processes, which do not wait. Returns `none` if P does not tell who monitors it.
why_waiters(P, Requests, Ours, How = {Until, Patience}) ->
    Senders = lists:usort([From || {From, _} <- Requests]),
    Read = fun() ->
        Monitors = process_value(P, monitored_by),
        All = [Q || Q <- lists:usort(Monitors), is_pid(Q)] -- Ours, % usort fails if they are too many
        Asked = [Q || Q <- Senders, lists:member(Q, All)],
        {Here, There} = lists:partition(fun(Q) -> node(Q) =:= node() end, Asked),
        By = lists:sublist(Here ++ [Q || Q <- All -- Asked, node(Q) =:= node()], ?WHY_WAITERS),
        {By, There, length(All) - length(By) - length(There)}
    end,
    case why_ask(Read, How) of
        {ok, {By, There, Others}} ->
            Stacks = #scan{what = stacks, items = look_stack_items(), named = all, filters = []},
            {Rows, _} = look_at(look_start(), By, Stacks, 100, Patience),
            Text = why_backtrace(P, How),
            Found = [{Q, case {Status =:= waiting andalso why_waits(Stack), now_ms() < Until} of
                {false, _} -> lists:member(Q, Senders) andalso perhaps;
                {_, true} -> why_waits_for(Q, P, Stack, Requests, Text, How);
                {_, false} -> perhaps
            end} || {Q, {Status, Stack, _, _}} <- Rows],
            All = lists:usort(There ++ [Q || {Q, true} <- Found]),
            {length(All), [why_waiter(Q, How) || Q <- lists:sublist(All, 4)], Others + length([Q || {Q, perhaps} <- Found])};
        _ -> none
    end.

why_waiter(P, _) when node(P) =/= node() -> {why_pid(P), atom_to_binary(node(P)), true};
why_waiter(P, How) -> {text_of(P), look_text(why_name(P, How)), false}.

why_name(P, How) ->
    case why_ask(fun() -> process_ask(P, name_items()) end, How) of
        {ok, Values} when is_list(Values) -> name_of(P, Values);
        _ -> none
    end.

%% Calls a fun in a helper. Returns {ok, Result}; failed if the fun raises an error; silent if the helper does not
%% answer in time. The node does not log such errors.
why_ask(Fun, {_, Patience}) ->
    Worker = self(),
    Tag = make_ref(),
    {Helper, Ref} = spawn_opt(fun() -> look_apart(), try Worker ! {Tag, Fun()} catch error:_ -> failed end end,
        [monitor, {priority, high} | bounds(4)]),
    receive
        {Tag, Answer} ->
            demonitor(Ref, [flush]),
            {ok, Answer};
        {'DOWN', Ref, _, _, _} -> failed
    after Patience ->
        exit(Helper, kill),
        demonitor(Ref, [flush]),
        put(why_late, true),
        silent
    end.
