%% SPDX-License-Identifier: Apache-2.0
%% Recognises sequential trace tokens that this trace has set, and removes them from the node at the end.
%%
%% The companion adds a mark to each specification that sets a token: two flags for time stamps. The VM uses only one of
%% them, so no other program sets both. The flags travel with the token through messages, spawned processes and other
%% nodes. A token with the mark and a label of this session is ours. A token of the user with the same label lacks the
%% mark.
%%
%% A process of its own, the cleaner, removes our tokens when the tracing ends. The cleaner outlives a killed owner: the
%% janitors wait for the cleaner. It has a session of its own. In that session it sets trace flags on each holder: a
%% process that has a token of ours, or a message in its queue that may bring one. When a holder sends a message, the
%% match specification of the session removes our token from the holder before the message gets the token. Spawned
%% processes inherit the flags. If the cleaner's second look still finds a holder, the cleaner sets the same match
%% specification on CLEAN_FUNCTIONS of the traced functions. A running process that sends nothing then loses its token
%% when it calls one of them. The token of a process that does nothing cannot be removed. After at most CLEAN_MOST ms,
%% the cleaner counts such processes.
%%
%% If two etraces set the same label, or both take labels from variables, the one that ends last removes these tokens.

-define(CLEAN_MOST, 500).  % ms that the cleaner looks for tokens
-define(CLEAN_LOOKS, 6).   % least number of looks: a starved node needs time to read its messages
-define(CLEAN_PAUSE, 10).  % ms: the shortest pause between two looks
-define(CLEAN_FUNCTIONS, 50). % functions whose calls remove a token; functions that set one come first
-define(CLEAN_SETTING, 200). % ms after which the cleaner stops setting these functions
-define(CLEAN_STUCK, 2000). % ms until the owner kills a cleaner that waits for a process (which may be in a NIF)
-define(TOKEN_HOLDERS, 10000). % processes whose tokens are compared with the labels at the start
-define(TOKEN_MARK, 48).   % strict_monotonic_timestamp (16) and monotonic_timestamp (32)

%% ---- in the specification -----------------------------------------------------------------------------------------

%% Returns at most CLEAN_FUNCTIONS traced functions, in whose calls the cleaner removes tokens; those whose specification
%% sets a token come first. Built-in functions are left out, because the end of a session that traces one can stop other
%% sessions from tracing it (the gate `bif` in tracer_gates.hrl).
token_functions(Found) ->
    Sets = fun(Ms) -> lists:any(fun({_, _, Body}) -> token_of(calls(Body)) =/= none end, clauses(Ms)) end,
    Order = lists:usort([{not Sets(Ms), MFA} || {_, Functions} <- Found, {MFA = {M, F, A}, Ms} <- Functions, not erlang:is_builtin(M, F, A)]),
    lists:sublist([MFA || {_, MFA} <- Order], ?CLEAN_FUNCTIONS).

%% Returns a warning for each label that tokens on the node already have. It knows only constant labels, and it does not
%% see tokens of messages in a queue.
tokens_met(Tokens) ->
    Own = case process_value(get(owner), {dictionary, tokens}) of #{} = Map -> Map; _ -> #{} end,
    case maps:from_list([{Label, 0} || {label, Label} <- Tokens, not is_map_key({label, Label}, Own)]) of
        None when map_size(None) =:= 0 -> [];
        Labels ->
            {Rows, _} = look_ask(lists:sublist(processes(), ?TOKEN_HOLDERS), fun(P) -> process_value(P, sequential_trace_token) end),
            Counted = lists:foldl(fun token_counted/2, Labels, Rows),
            [token_met(Label, N) || {Label, N} <- lists:sort(maps:to_list(Counted)), N > 0]
    end.

token_counted({_, {_, Label, _, _, _}}, Labels) when is_map_key(Label, Labels) -> Labels#{Label := map_get(Label, Labels) + 1};
token_counted(_, Labels) -> Labels.

token_met(Label, N) ->
    Has = case N of 1 -> "1 process has"; _ -> [integer_to_list(N), " processes have"] end,
    unicode:characters_to_binary([Has, io_lib:format(" a trace token with the label ~0tp already: the trace cannot tell it from its own", [Label])]).

%% Adds the mark to each body that can set a token.
token_marked(Ms) when is_list(Ms) -> [token_clause(Clause) || Clause <- Ms];
token_marked(Ms) -> Ms.

token_clause({Head, Guards, Body} = Clause) ->
    case token_of(calls(Body)) of
        none -> Clause;
        label -> {Head, Guards, Body ++ [{set_seq_token, Flag, true} || Flag <- token_flags()]};
        fresh -> {Head, Guards, token_fresh() ++ Body}
    end;
token_clause(Clause) -> Clause.

token_flags() -> [monotonic_timestamp, strict_monotonic_timestamp].

%% Returns the effect of a body on the token: none; label, if the body sets the label; fresh, if the body sets something
%% else. In the last case the VM makes a token with the label 0 if the process has none.
token_of(Calls) ->
    Components = [component(C) || {set_seq_token, [C, _]} <- Calls],
    hd([Is || Is <- [label, fresh], lists:member(Is, Components)] ++ [none]).

component(C) ->
    case constant(C) of
        {is, label} -> label;
        {is, Name} -> case lists:member(Name, [send, 'receive', print, timestamp, serial | token_flags()]) of true -> fresh; false -> none end;
        computed -> label
    end.

%% Returns the actions that mark a new token. An existing token stays unmarked: map_get fails, and the VM ignores the
%% failed action.
token_fresh() ->
    [First, Second] = token_flags(),
    [{set_seq_token, {map_get, {get_seq_token}, {const, #{[] => First}}}, true},
     {set_seq_token, {map_get, {element, 1, {get_seq_token}}, {const, #{32 => Second}}}, true}].

%% Returns the specification for sends and calls that removes our tokens and shows no event.
token_remover({Is, Labels}) ->
    Class = {{{'band', {element, 1, {get_seq_token}}, ?TOKEN_MARK}, {is_map_key, {element, 2, {get_seq_token}}, {const, Labels}}}},
    [{'_', [{is_seq_trace}],
        [{message, false}, {set_seq_token, {map_get, Class, {const, #{{?TOKEN_MARK, Is} => sequential_trace_token}}}, []}]}].

token_wanted([], _) -> false;
token_wanted({Flags, Label, _, _, _}, {Is, Labels}) -> Flags band ?TOKEN_MARK =:= ?TOKEN_MARK andalso is_map_key(Label, Labels) =:= Is.

%% Returns which labels are ours: {true, these labels} | {false, all labels but these}.
tokens_wanted(Own, Others) ->
    All = lists:foldl(fun maps:merge/2, #{}, Others),
    Labels = fun(Tokens) -> maps:from_list([{Label, []} || {label, Label} <- maps:keys(Tokens)]) end,
    case is_map_key(computed, Own) andalso not is_map_key(computed, All) of
        true -> {false, Labels(All)};
        false -> {true, maps:without(maps:keys(Labels(All)), Labels(Own))}
    end.

%% ---- in the owner -------------------------------------------------------------------------------------------------

%% Takes over the tokens of a request, which the worker sends before it sets the first specification. Functions: what
%% the cleaner may use (token_functions/1).
tokens_begin(Tokens, Functions, S) -> tokens_own(maps:from_keys(Tokens, Functions), S).

tokens_own(New, S) when map_size(New) =:= 0 -> S;
tokens_own(New, S0) ->
    S = #s{tokens = {_, Cleaner, Own0}} = tokens_start(S0),
    Own = maps:merge(Own0, New),
    Cleaner ! {tokens, Own},
    put(tokens, Own), % other etraces read it
    S#s{tokens = {idle, Cleaner, Own}}.

tokens_start(S = #s{tokens = none, janitors = Janitors}) ->
    {Cleaner, _} = spawn_opt(?MODULE, cleaner, [self()], [monitor, {priority, high} | bounds(64)]),
    tell(Janitors, {seq_trace, Cleaner}),
    excluded(S#s{tokens = {idle, Cleaner, #{}}});
tokens_start(S) -> S.

%% Selects the sequential tracing to show. A trace that sets constant labels shows the sequential tracing of these
%% labels. A trace that sets none, or takes them from variables, shows all of it.
tokens_shown(#{tokens := Tokens}, S) ->
    Labels = case lists:member(computed, Tokens) of true -> []; false -> [Label || {label, Label} <- Tokens] end,
    case S#s.tracer of
        fallback -> S#s{fb = (S#s.fb)#fb{labels = maps:from_keys(Labels, [])}};
        State -> gate(State, {labels, Labels}), S
    end.

%% Starts the cleaner, because the probes that set tokens are gone.
tokens_end(S = #s{tokens = {idle, Cleaner, Own}}) when map_size(Own) > 0 ->
    Cleaner ! clean,
    erlang:start_timer(?CLEAN_STUCK, self(), {cleaned, Cleaner}),
    S#s{tokens = {busy, Cleaner, Own}};
tokens_end(S) -> S.

%% Starts the cleaner if the new probes set no token, but earlier ones did.
tokens_kept(#{tokens := []}, S) -> tokens_end(S);
tokens_kept(_, S) -> S.

%% Handles the end of a cleaning. Left: {processes with a token of ours, processes with messages that may bring one} |
%% unknown. A later end of tracing cleans these again.
tokens_cleaned(Left, S = #s{tokens = {_, Cleaner, Own}}) ->
    Kept = case Left of {0, 0} -> #{}; _ -> Own end,
    put(tokens, Kept),
    tokens_said(Left, S#s{tokens = case Left of unknown -> none; _ -> {idle, Cleaner, Kept} end}).

tokens_said({0, 0}, S) -> flush(S);
tokens_said(Left, S) -> flush(meta(S, notice, [tokens, Left])).

%% Handles the end of the cleaner: it was killed, or waited for a process that does not answer.
tokens_lost(S = #s{tokens = {busy, _, _}}) -> tokens_cleaned(unknown, S);
tokens_lost(S = #s{tokens = {idle, _, Own}}) -> tokens_own(Own, S#s{tokens = none}).

%% Waits for the cleaner, for an owner that unloads its own module because the janitor is gone.
tokens_wait(#s{tokens = {busy, Cleaner, _}}) ->
    receive {cleaned, Cleaner, _} -> ok; {'DOWN', _, _, Cleaner, _} -> ok after ?CLEAN_STUCK -> ok end;
tokens_wait(_) -> ok.

%% ---- in the cleaner -----------------------------------------------------------------------------------------------

-record(look, {
    session, wanted,   % the cleaning session; which tokens are ours (token_wanted/2)
    functions,         % functions whose calls remove tokens; [] once they are set
    until, looks = 1,  % when the cleaner may end, monotonic ms; number of this look
    flagged = #{},     % processes with the flags
    queues = #{},      % flagged processes whose queue may hold a message sent before its sender was flagged
    fresh = true,      % the previous look found an unflagged holder, which may have sent its token to any queue
    held = 0, found = false % in this look: the number of holders; true if one of them had no flags
}).

cleaner(Owner) ->
    monitor(process, Owner),
    cleaner_loop(Owner, #{}).

cleaner_loop(Owner, Own) ->
    receive
        {tokens, Now} -> cleaner_loop(Owner, Now);
        clean -> clean_tell(Owner, clean(Owner, Own), Own);
        {'DOWN', _, _, Owner, _} -> clean(Owner, Own);
        _ -> cleaner_loop(Owner, Own)
    end.

clean_tell(Owner, {again, Own}, _) -> cleaner_loop(Owner, Own);
clean_tell(Owner, Left, Own) ->
    Owner ! {cleaned, self(), Left},
    cleaner_loop(Owner, case Left of {0, 0} -> #{}; _ -> Own end).

clean(_, Own) when map_size(Own) =:= 0 -> {0, 0};
clean(Owner, Own) ->
    Others = [Tokens || P <- owners(), P =/= Owner, #{} = Tokens <- [process_value(P, {dictionary, tokens})]],
    case tokens_wanted(Own, Others) of
        {true, None} when map_size(None) =:= 0 -> {0, 0};
        Wanted ->
            Session = {_, Weak} = trace:session_create(etrace, self(), []),
            put(session, {Weak, os:system_time(second)}), % tracer_info.hrl reads it to tell whose session it is
            1 = trace:send(Session, token_remover(Wanted), []),
            Left = clean_look(#look{session = Session, wanted = Wanted, functions = lists:append(lists:usort(maps:values(Own))), until = now_ms() + ?CLEAN_MOST}),
            trace:session_destroy(Session),
            erase(session),
            Left
    end.

%% Looks at all processes until none of them holds a token of ours or can get one, or the time is up. Once every holder
%% is flagged, a process with an empty queue can get no token any more.
clean_look(Look0) ->
    Began = now_ms(),
    Look = lists:foldl(fun(P, Acc) -> clean_at(P, Look0, Acc) end, Look0#look{queues = #{}, held = 0, found = false}, processes() -- [self()]),
    #look{held = Held, queues = Queues, found = Found, until = Until, looks = Looks} = Look,
    Now = now_ms(),
    case {Held, map_size(Queues)} of
        {0, 0} when not Look0#look.fresh -> {0, 0};
        Left when Now >= Until, Looks >= ?CLEAN_LOOKS -> Left;
        _ ->
            receive {tokens, Own} -> {again, Own}
            after max(?CLEAN_PAUSE, Now - Began) -> clean_look(clean_calls(Look#look{fresh = Found, looks = Looks + 1}))
            end
    end.

%% Sets the specification on traced functions. Most traces end without this, because their holders send a message before
%% the second look.
clean_calls(Look = #look{session = Session, wanted = Wanted, functions = Functions, held = Held, looks = Looks}) when Held > 0, Looks > 2 ->
    Until = now_ms() + ?CLEAN_SETTING,
    Set = fun(MFA) -> now_ms() < Until andalso trace:function(Session, MFA, token_remover(Wanted), [local]) end,
    lists:foreach(Set, lists:sublist(Functions, ?CLEAN_FUNCTIONS)),
    Look#look{functions = []};
clean_calls(Look) -> Look.

clean_at(P, #look{queues = Before, fresh = Fresh}, Look = #look{wanted = Wanted, held = Held, queues = Queues, found = Found}) ->
    case process_ask(P, [sequential_trace_token, message_queue_len]) of
        [{_, Token}, {_, Length}] ->
            Holds = token_wanted(Token, Wanted),
            Waits = Length > 0 andalso (Fresh orelse is_map_key(P, Before)),
            Now = case Waits of true -> Look#look{queues = Queues#{P => []}}; false -> Look end,
            if
                Holds -> clean_flag(P, Now#look{held = Held + 1, found = Found orelse not is_map_key(P, Look#look.flagged)});
                Waits -> clean_flag(P, Now);
                true -> Now
            end;
        undefined -> Look
    end.

clean_flag(P, Look = #look{flagged = Flagged}) when is_map_key(P, Flagged) -> Look;
clean_flag(P, Look = #look{session = Session, flagged = Flagged}) ->
    try trace:process(Session, P, true, [send, call, set_on_spawn]) catch error:badarg -> gone end, % it has ended
    Look#look{flagged = Flagged#{P => []}}.
