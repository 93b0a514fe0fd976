%% SPDX-License-Identifier: Apache-2.0
%% The owner of the variant `questions`. It answers {ask, What} (tracer_info.hrl), and has no trace session, no NIF and no
%% helper process but the worker. It makes no events, so it sends no batches: {pull, Seq, Credit} only renews the lease,
%% and {stop} ends it at once.

questions_begin(S0, _) ->
    S = questions_ours(S0#s{worker = worker_start()}),
    S#s.worker ! {work, make_ref(), meet, none}, % other etraces must exclude our processes
    begun(node_info(S), S),
    questions_loop(S).

%% Lets other etraces find our processes (ours_of/1). Call it whenever they change.
questions_ours(S) ->
    put(ours, S#s.janitors ++ [self(), S#s.worker | channel(S)]),
    S.

questions_loop(S) ->
    receive
        Message ->
            try questions_handle(Message, S) of
                Next -> questions_loop(Next)
            catch
                error:Reason:Stack -> questions_there(S), erlang:raise(error, Reason, Stack)
            end
    end.

questions_handle({pull, _, _}, S) ->
    heard(S);
questions_handle({request, Id, Bin}, S) when is_integer(Id), is_binary(Bin) ->
    heard(questions_request(Id, Bin, S));
questions_handle({stop}, S) ->
    leave_node(normal, S);
questions_handle({timeout, Timer, {lease, Due}}, S = #s{lease = Timer}) ->
    case lease_left(Due, S) of
        Left when Left > 0 -> S#s{lease = lease_in(Left)};
        _ -> leave_node(lease, S)
    end;
questions_handle({nodedown, Node, _}, S = #s{node = Node}) ->
    leave_node(nodedown, S);
questions_handle({'EXIT', Client, _}, S = #s{client = Client}) ->
    leave_node(nodedown, S);
questions_handle({'DOWN', _, _, Janitor, _}, S = #s{janitors = [Janitor | _]}) ->
    leave_node(janitor, S);
questions_handle({'DOWN', _, _, Worker, _}, S0 = #s{worker = Worker, helper = Helper}) ->
    questions_there(S0), % without the module the new worker would fail at once, again and again
    S = questions_ours(S0#s{worker = worker_start(), helper = none}),
    case Helper of {_, {ask, Id, _}} -> reply(Id, {error, killed}, S); none -> S end;
questions_handle({done, Ref, Result}, S = #s{helper = {Ref, {ask, Id, _}}}) ->
    reply(Id, Result, S#s{helper = none});
questions_handle({progress, Worker, Done}, S = #s{worker = Worker, helper = {_, _}}) ->
    send(S, <<$P, (term_to_binary(Done))/binary>>),
    S;
questions_handle({retry, Id, Answer}, S) when is_integer(Id) ->
    reply(Id, Answer, S);
questions_handle({ask, Id, What}, S) when is_integer(Id) ->
    questions_ask(Id, What, S);
questions_handle(_, S) ->
    S.

%% Ends the owner if somebody has removed its module.
questions_there(S) -> is_current() orelse leave_node(gone, S).

questions_request(Id, Bin, S) ->
    try binary_to_term(Bin, [safe]) of
        ping -> reply(Id, {ok, pong}, S);
        nodes -> reply(Id, {ok, connected(S)}, S);
        {ask, What} -> questions_ask(Id, What, S);
        _ -> reply(Id, {error, bad_request}, S)
    catch
        error:_ -> reply(Id, {error, bad_request}, S)
    end.

%% The worker answers one question at a time.
questions_ask(Id, What, S = #s{helper = none}) ->
    questions_there(S),
    help({ask, Id, What}, ask, {none, What, get(ours), #{}}, S);
questions_ask(Id, What, S) ->
    erlang:send_after(?BUSY, self(), {ask, Id, What}),
    S.
