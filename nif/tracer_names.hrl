%% SPDX-License-Identifier: Apache-2.0
%% Finds the names of processes: the registered name, else the label, else the name in a registry (tracer_registry.hrl),
%% else the initial function. Asking a process may block, so a process of its own, the namer, asks. The owner delays a
%% batch until the names arrive, but only for a bounded time; late names go into a later batch. Each time that names are
%% late, the bound becomes smaller. The namer also asks the other etraces for their processes.

-define(NAMES_WAIT_LEAST, 5). % ms: the least time that a batch waits for names
-define(NAMES_MOST, 256).  % most names for one batch
-define(NAMES_REGISTERED, 32768).

%% ---- registered names, if exits are traced -------------------------------------------------------------------------
%%
%% A process that exits answers no question, and its exit may be its first event. So the owner knows the registered
%% names beforehand: it looks all of them up when the flags are set, and then the tracer reports each name that a
%% process gets or loses.

names_begin(Request = #{flags := Flags}, S) ->
    case lists:member(procs, Flags) andalso maps:get(kinds, Request, -1) band (1 bsl ?ETW_EXIT) =/= 0 of
        true -> S#s{registered = names_registered(), parted = []};
        false -> names_end(S)
    end.

names_end(S) -> S#s{registered = none, parted = []}.

%% Returns the names of at most NAMES_REGISTERED processes: a map of all would not fit into a bounded heap on a node that
%% registers each of its processes.
names_registered() ->
    maps:from_list([{P, Name} || Name <- lists:sublist(registered(), ?NAMES_REGISTERED), P <- [whereis(Name)], is_pid(P)]).

%% Adds the name of a process that is traced from now on.
names_add(P, _, S = #s{registered = Names}) when P =:= none; Names =:= none -> S;
names_add(P, Name, S = #s{registered = Names}) -> S#s{registered = Names#{P => Name}}.

%% Takes the new tracees and the {Pid, Name} of a drain (drain/4). Returns the tracees, as {Pid, Name} if the name is
%% known.
names_met(Met, _, S = #s{registered = none}) -> {lists:usort([P || P <- Met, not is_tuple(P)]), S};
names_met(Met, Status, S = #s{registered = Before, parted = Parted}) ->
    Moved = [Move || Move = {_, _} <- Met],
    {All, Stale} = case Status band 512 of
        512 -> {maps:merge(Before, names_registered()), maps:to_list(Before)}; % the tracer had no room to report a name
        0 -> {Before, []}
    end,
    Names = maps:merge(All, maps:from_list(Moved)),
    New = lists:usort([case Names of #{P := Name} -> {P, Name}; _ -> P end || P <- Met, not is_tuple(P)]),
    %% The names that processes have lost stay until the next drain: another thread may have met such a process
    %% meanwhile.
    {New, S#s{registered = lists:foldl(fun names_remove/2, Names, Parted),
        parted = [Move || Move = {P, Name} <- Stale ++ Moved, whereis(Name) =/= P]}}.

names_remove({P, Name}, Names) ->
    case Names of
        #{P := Name} -> case whereis(Name) of P -> Names; _ -> maps:remove(P, Names) end;
        _ -> Names
    end.

%% ---- names of tracees -----------------------------------------------------------------------------------------------

%% Returns frames of at most Room bytes with the names of tracees.
names_of([], _, S) -> {[], S};
names_of(New, Room, S) ->
    {Known, Asked} = lists:partition(fun is_tuple/1, New),
    Frames = name_frames(Known, tick(S), Room),
    {More, S1} = names_ask(Asked, min(?META_MOST, Room - iolist_size(Frames)), S),
    {[Frames | More], S1}.

names_ask([], _, S) -> {[], S};
names_ask(New, Room, S = #s{namer = Namer, key = Key, names_wait = Wait}) ->
    Ref = make_ref(),
    Namer ! {names, Key, Ref, lists:sublist(New, ?NAMES_MOST), tick(S), Room},
    receive {names, Key, Ref, Frames} -> {Frames, S}
    after names_wait(S) -> {[], S#s{names_wait = max(Wait div 2, ?NAMES_WAIT_LEAST)}}
    end.

names_wait(#s{last = none, ring = {sends, _}}) -> ?NAMES_WAIT;
names_wait(#s{last = none, names_wait = Wait}) -> Wait;
names_wait(_) -> ?NAMES_WAIT.

names_start(Key) ->
    {Namer, _} = spawn_opt(?MODULE, names, [{self(), Key, get(cookie)}], [monitor | bounds(1)]),
    Namer.

names({Owner, Key, Cookie}) ->
    look_apart(),
    cookie_is(Cookie),
    monitor(process, Owner),
    names_loop(Owner, Key).

%% Serves the questions of the owner. Ignores messages without the key, because messages of other processes could crash
%% the namer.
names_loop(Owner, Key) ->
    receive
        {names, Key, Ref, New, Tick, Room} ->
            Owner ! {names, Key, Ref, name_frames(New, Tick, Room)},
            names_loop(Owner, Key);
        {follow, Key, Name, P} ->
            process_value(P, status),
            Owner ! {follow, Key, Name, P},
            names_loop(Owner, Key);
        {others, Key, First} ->
            Others = names_others(Owner),
            First andalso names_tell(Others),
            Owner ! {others, Key, ours_of(Others)},
            names_loop(Owner, Key);
        {'DOWN', _, _, Owner, _} ->
            ok;
        _ ->
            names_loop(Owner, Key)
    end.

%% Returns the owners of all other companions.
names_others(Owner) -> [P || P <- owners(), P =/= Owner].

%% Makes the other etraces exclude our processes, too.
names_tell(Others) -> [P ! others || P <- Others].

%% Returns the processes and ports of the sessions with these owners.
ours_of(Owners) ->
    lists:usort([P || Owner <- Owners, Ours <- [process_value(Owner, {dictionary, ours})], is_list(Ours),
        P <- Ours, is_pid(P) orelse is_port(P), node(P) =:= node()]).

name_frames([], _, _) -> [];
name_frames(_, _, Room) when Room < 300 -> [];
name_frames([New | Rest], Tick, Room) ->
    case name(New) of
        none -> name_frames(Rest, Tick, Room);
        Name ->
            P = case New of {Pid, _} -> Pid; _ -> New end,
            Frame = frame(?ETW_NAME, Tick, tracee(P), [Name]),
            [Frame | name_frames(Rest, Tick, Room - byte_size(Frame))]
    end.

name({_, Name}) -> registered_as(Name);
name(Port) when is_port(Port) ->
    case erlang:port_info(Port, registered_name) of
        {_, Name} -> Name;
        _ -> case erlang:port_info(Port, name) of {_, Text} -> short(Text); undefined -> none end
    end;
name(Pid) ->
    case process_ask(Pid, name_items()) of
        undefined -> none;
        Values -> name_of(Pid, Values)
    end.

name_items() -> [registered_name, {dictionary, '$process_label'}, {dictionary, '$initial_call'}, initial_call].

name_of(_, [{_, Name}, _, _, _]) when is_atom(Name) -> registered_as(Name);
name_of(_, [_, {_, Label}, _, _]) when Label =/= undefined, Label =/= ?TOO_LARGE -> short(Label);
name_of(P, [_, _, {_, Proc}, {_, Spawned}]) ->
    case registry_name(P) of
        none when is_tuple(Proc) -> mfa(Proc);
        none -> mfa(Spawned);
        Name -> Name
    end.

%% Returns the registered name, in Elixir's notation if it begins with Elixir. But 'Elixir.foo' is no alias, so it keeps
%% the prefix: foo is another name.
registered_as(Name) ->
    case atom_to_list(Name) of
        "Elixir." ++ [_ | _] = Text ->
            Alias = lists:nthtail(7, Text),
            case is_elixir_name(Alias, true) of
                true -> unicode:characters_to_binary(Alias);
                false -> unicode:characters_to_binary([":\"", [case C of _ when C =:= $"; C =:= $\\ -> [$\\, C]; _ -> C end || C <- Text], "\""])
            end;
        _ -> Name
    end.

%% Returns true for words of Latin letters, digits and _ between dots, each with a capital letter first.
is_elixir_name([C | Rest], true) -> C >= $A andalso C =< $Z andalso is_elixir_name(Rest, false);
is_elixir_name([$. | Rest], false) -> is_elixir_name(Rest, true);
is_elixir_name([C | Rest], false) ->
    (C =:= $_ orelse C >= $0 andalso C =< $9 orelse C >= $A andalso C =< $Z orelse C >= $a andalso C =< $z) andalso is_elixir_name(Rest, false);
is_elixir_name([], Begin) -> not Begin.

mfa({erlang, apply, _}) -> none; % a fun, which has no useful name
mfa({M, F, A}) when is_list(A) -> mfa({M, F, length(A)});
mfa({M, F, A}) when is_atom(M), is_atom(F), is_integer(A) ->
    case registered_as(M) of
        M -> iolist_to_binary([atom_to_binary(M), $:, atom_to_binary(F), $/, integer_to_binary(A)]);
        Module -> iolist_to_binary([Module, $., atom_to_binary(F), $/, integer_to_binary(A)])
    end;
mfa(_) -> none.

short(Text) when is_atom(Text) -> look_text(registered_as(Text));
short(Text) when is_binary(Text), byte_size(Text) =< 64 -> Text;
short(Term) ->
    case is_elixir() andalso registry_is_small(Term, 3) of
        true -> unicode:characters_to_binary(registry_term(Term));
        false -> unicode:characters_to_binary(io_lib:format("~0tp", [Term], [{chars_limit, 64}]))
    end.

is_elixir() -> erlang:module_loaded(elixir).
