%% SPDX-License-Identifier: Apache-2.0
%% Computes the effects of a request on the node, from the request and the decoded match specifications. The code that
%% decides by an effect uses only the result of effects/2. So it need not know whether a flag, an event, an action or a
%% raw specification has that effect. These functions are pure.
%%
%% #{flags => [Flag],         each trace flag that the request can switch on, of any process or port
%%   switched => [Flag],      the flags among these that match specifications switch on
%%   switches => boolean(),   a specification changes flags
%%   stops => boolean(),      a specification can switch a flag off
%%   silences => boolean(),   a specification calls silent/1
%%   frames => boolean(),     calls leave frames on the stack, which stay there until they return
%%   hidden => boolean(),     there may be calls that leave a frame and make no event
%%   returns => all | none | some | no_calls,  which of the calls that make an event also leave a frame
%%   accepts => boolean(),    every specification of calls shows every call, in every process
%%   plain => boolean(),      no specification adds a message to a call or to a message that is sent
%%   tokens => [{label, Label} | computed | unsafe],  labels of the sequential trace tokens that calls and messages set
%%   types => [call | send | recv], scopes => [local | global | meta]}
%%
%% For an argument that is not a constant, the functions assume all its possible values.

%% The flags of `all` without those for time stamps, which no gate needs.
-define(EVERY_FLAG, [arity, call, exiting, garbage_collection, ports, procs, 'receive', return_to, running, running_ports,
    running_procs, send, set_on_first_link, set_on_first_spawn, set_on_link, set_on_spawn, silent]).

effects(Request = #{flags := Flags}, Read) ->
    Specs = [{Type, clauses(Spec)} || #{type := Type, match_spec := {_, Given}} <- Read, Spec <- each_spec([Given])],
    Bodies = [{Type, does(Body)} || {Type, Clauses} <- Specs, {_, _, Body} <- Clauses],
    Switched = lists:usort(lists:append([On || {_, #{on := On}} <- Bodies])),
    Can = lists:usort(expanded(Flags ++ maps:get(port_flags, Request, [])) ++ Switched),
    Any = fun(What, Types) -> lists:any(fun({Type, Does}) -> map_get(What, Does) andalso lists:member(Type, Types) end, Bodies) end,
    Every = [call, send, recv],
    Silent = lists:member(silent, Can) orelse Any(silences, Every),
    Calls = [Does || {call, Does} <- Bodies],
    #{flags => Can,
        switched => Switched,
        switches => Any(switches, Every),
        stops => Any(stops, Every),
        silences => Any(silences, Every),
        frames => Any(frames, [call]),
        hidden => lists:any(fun(#{frames := Frames, drops := Drops}) -> Frames andalso (Silent orelse Drops) end, Calls),
        returns => case lists:usort([Frames || #{frames := Frames} <- Calls]) of
            [] -> no_calls;
            [true] -> case Silent orelse Any(drops, [call]) of true -> some; false -> all end;
            [false] -> case lists:member(silent, Can) of true -> some; false -> none end;
            _ -> some
        end,
        %% `accepts` depends on the probes, not on the functions that they select now: a module may be loaded later.
        accepts => not is_map_key(inside, Request) andalso not lists:member(silent, Can) andalso lists:all(fun accepts/1, [Clauses || {call, Clauses} <- Specs]),
        %% If several probes share a function, each marks its events with a message.
        plain => lists:all(fun(Type) -> length([P || P = #{type := T} <- Read, T =:= Type]) < 2 end, [call, send])
            andalso not Any(messages, [call, send]),
        tokens => lists:usort(lists:append([Labels || {_, #{labels := Labels}} <- Bodies])),
        types => lists:usort([Type || #{type := Type} <- Read]),
        scopes => lists:usort([Scope || #{type := call, scope := Scope} <- Read])}.

%% Returns the effects of one body.
does(Body) ->
    Calls = calls(Body),
    Has = fun(Names) -> lists:any(fun({Name, _}) -> lists:member(Name, Names) end, Calls) end,
    #{on => lists:flatmap(fun switched_on/1, Calls),
        switches => Has([enable_trace, disable_trace, trace]),
        stops => Has([disable_trace, trace]),
        frames => Has([return_trace, exception_trace]),
        messages => Has([message]),
        drops => lists:any(fun({message, [Term]}) -> may_be_false(Term); (_) -> false end, Calls),
        silences => Has([silent]),
        labels => case token_of(Calls) of fresh -> [{label, 0}]; _ -> lists:flatmap(fun token_label/1, Calls) end}.

%% Returns every {Function, Arguments} in a body. {{...}} stands for a tuple as a value.
calls({const, _}) -> [];
calls({T}) when is_tuple(T) -> calls(tuple_to_list(T));
calls(T) when is_tuple(T), tuple_size(T) > 0 ->
    [Name | Arguments] = tuple_to_list(T),
    case is_atom(Name) of true -> [{Name, Arguments} | calls(Arguments)]; false -> calls([Name | Arguments]) end;
calls([H | T]) -> calls(H) ++ calls(T);
calls(T) when is_map(T) -> calls(maps:keys(T)) ++ calls(maps:values(T));
calls(_) -> [].

%% Returns {is, Term} for a constant, else computed.
constant({const, T}) -> {is, T};
constant(T) when is_atom(T) ->
    case T =:= '$_' orelse T =:= '$$' orelse is_variable(T) of true -> computed; false -> {is, T} end;
constant(T) when is_tuple(T); is_map(T) -> computed;
constant([H | T]) ->
    case {constant(H), constant(T)} of {{is, A}, {is, B}} -> {is, [A | B]}; _ -> computed end;
constant(T) -> {is, T}.

switched_on({enable_trace, Arguments}) when Arguments =/= [] ->
    case constant(lists:last(Arguments)) of {is, Flag} -> expanded([Flag]); computed -> ?EVERY_FLAG end;
switched_on({trace, Arguments}) when Arguments =/= [] ->
    case constant(lists:last(Arguments)) of
        {is, Flags} when is_list(Flags), length(Flags) >= 0 -> expanded(Flags);
        {is, _} -> [];
        computed -> ?EVERY_FLAG
    end;
switched_on(_) -> [].

expanded(Flags) ->
    lists:flatmap(fun(all) -> ?EVERY_FLAG; (Flag) -> [Flag || lists:member(Flag, ?EVERY_FLAG)] end, Flags).

may_be_false(Term) ->
    case Term of
        {T} when is_tuple(T) -> false;
        _ when is_list(Term); is_map(Term) -> false;
        _ -> case constant(Term) of {is, Value} -> Value =:= false; computed -> true end
    end.

%% Classifies the label of a token. The VM keeps a label without copying it. That is safe for a small integer or an
%% atom, and for the value of a variable, which is on the heap of the process. But the VM frees a term that the
%% specification builds, and the node crashes later. The VM does not keep values of the other components.
token_label({set_seq_token, [Component, Value]}) ->
    case constant(Component) of
        {is, label} -> [kept(Value)];
        {is, _} -> [];
        computed -> [kept(Value)]
    end;
token_label(_) -> [].

kept(Value) ->
    case constant(Value) of
        {is, Label} when is_atom(Label) -> {label, Label};
        {is, Label} when is_integer(Label) -> case is_small(Label) of true -> {label, Label}; false -> unsafe end;
        {is, _} -> unsafe;
        computed -> case Value =:= {self} orelse is_variable(Value) of true -> computed; false -> unsafe end
    end.

is_small(Integer) ->
    Most = 1 bsl (8 * erlang:system_info(wordsize) - 5),
    Integer >= -Most andalso Integer < Most.

accepts(Clauses) ->
    lists:any(fun({Head, Guards, _}) -> Guards =:= [] andalso takes_all(Head, []) end, Clauses)
        andalso not lists:any(fun({_, _, Body}) -> #{drops := Drops, silences := Silences} = does(Body), Drops orelse Silences end, Clauses).

%% Returns the specifications of probes; a probe may have one for each arity.
each_spec(Given) -> lists:append([case Ms of #{} -> maps:values(Ms); _ -> [Ms] end || Ms <- Given]).

%% Returns true if a head matches all arguments: it has only distinct variables.
takes_all('_', _) -> true;
takes_all([], _) -> true;
takes_all(['_' | T], Seen) -> takes_all(T, Seen);
takes_all([V | T], Seen) -> is_variable(V) andalso not lists:member(V, Seen) andalso takes_all(T, [V | Seen]);
takes_all(_, _) -> false.

%% Returns true if the VM takes the atom for a variable: '$' followed by a number.
is_variable(V) when is_atom(V) ->
    case atom_to_list(V) of
        "$0" -> true;
        [$$, First | Rest] -> First >= $1 andalso First =< $9 andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Rest);
        _ -> false
    end;
is_variable(_) -> false.
