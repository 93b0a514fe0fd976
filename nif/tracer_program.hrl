%% Programs: where a few tests of its arguments say which calls of a function are shown, the NIF makes them (program.h) and the
%% function is armed with `true`, for the VM takes longer to begin with a specification than the NIF to end with the program. What a
%% function is meant to show is its specification all the same; where the two could differ, or the NIF has no room, the
%% specification is what is set:
%%   - where several probes meet, or one arms again and again: each event has to say whose it is, which takes a message;
%%   - with the flag return_to: the VM notes where a call returns to before the NIF is asked;
%%   - with the flag arity, now or by the action of some probe: there are no arguments then.
%%
%% The worker gives programs to functions before it arms these; those of what was armed before are taken away first, while
%% nothing is armed.

-define(PROGRAM_BYTES, 8192). % ETW_PROGRAM_BYTES
-define(PROGRAM_MOST, 1024). % functions in one call of the NIF

program(Probe = #{program := Bin}) when byte_size(Bin) =< ?PROGRAM_BYTES -> Probe#{program := spec(Bin)};
program(Probe) -> maps:remove(program, Probe).

%% #{MFA => true}: whose calls the NIF decides about.
decided(fallback, _, _, _, _, _) -> #{};
decided(Tracer, Request, Effects, Only, Read, Found) ->
    Only =:= all andalso program(Tracer, [], all),
    case [P || P = #{program := _} <- Read] =/= [] andalso decides(Request, Effects) of
        true ->
            BySteps = maps:groups_from_list(fun({_, Steps}) -> Steps end, fun({MFA, _}) -> MFA end, maps:to_list(steps(Found))),
            maps:from_keys(lists:append([program(Tracer, Steps, Some) || {Steps, MFAs} <- maps:to_list(BySteps), Some <- pieces(MFAs)]), true);
        false ->
            #{}
    end.

%% A NIF call holds up its scheduler: it gets no more than so many functions.
pieces(MFAs) when length(MFAs) > ?PROGRAM_MOST ->
    {Some, Others} = lists:split(?PROGRAM_MOST, MFAs),
    [Some | pieces(Others)];
pieces(MFAs) -> [MFAs].

decides(Request, #{flags := Flags, switches := Switches}) ->
    not is_map_key(mark, Request) andalso not Switches
        andalso not lists:any(fun(F) -> lists:member(F, [arity, return_to]) end, Flags).

%% #{MFA => Steps}; none: []
steps(Found) ->
    lists:foldl(fun({Probe, Functions}, Acc) ->
        lists:foldl(fun({MFA = {_, _, Arity}, _}, A) ->
            A#{MFA => case Probe of
                #{program := {Least, Most, Steps}} when not is_map_key(MFA, A), Arity >= Least, Arity =< Most -> Steps;
                _ -> []
            end}
        end, Acc, Functions)
    end, #{}, Found).
