%% SPDX-License-Identifier: Apache-2.0
%% Gives functions a program instead of their match specification. If a few tests of the arguments select a function's
%% calls, the NIF runs these tests as a program (program.h), and the function is armed with `true`. That is faster: the
%% VM takes longer to start a specification than the NIF takes for the whole program. The worker sets the specification
%% if the NIF has no room, or if the specification and the program could differ:
%%   - several probes share the function, or the request has a mark: each event must name its probe in a message;
%%   - the flag return_to is set: the VM records where a call returns to before it asks the NIF;
%%   - the flag arity is set, or an action may set it: then calls have no arguments.
%%
%% The worker sets programs before it arms the functions. It removes the previous programs first, while nothing is
%% armed.

-define(PROGRAM_BYTES, 8192). % ETW_PROGRAM_BYTES
-define(PROGRAM_MOST, 1024). % functions in one call of the NIF

program(Probe = #{program := Bin}) when byte_size(Bin) =< ?PROGRAM_BYTES -> Probe#{program := spec(Bin)};
program(Probe) -> maps:remove(program, Probe).

%% Gives programs to functions. Returns #{MFA => true}: the functions that got one. Sorts them: if the NIF has no room
%% for all, whole modules get programs, because a module with both kinds needs a call of trace:function for each
%% function.
decided(fallback, _, _, _, _, _) -> #{};
decided(Tracer, Request, Effects, Only, Read, Found) ->
    Only =:= all andalso program(Tracer, [], all),
    case [P || P = #{program := _} <- Read] =/= [] andalso decides(Request, Effects) of
        true ->
            BySteps = maps:groups_from_list(fun({_, Steps}) -> Steps end, fun({MFA, _}) -> MFA end, maps:to_list(steps(Found))),
            maps:from_keys(lists:append([program(Tracer, Steps, Some) || {Steps, MFAs} <- maps:to_list(BySteps), Some <- pieces(lists:sort(MFAs))]), true);
        false ->
            #{}
    end.

%% Splits the functions, because a NIF call blocks its scheduler.
pieces(MFAs) when length(MFAs) > ?PROGRAM_MOST ->
    {Some, Others} = lists:split(?PROGRAM_MOST, MFAs),
    [Some | pieces(Others)];
pieces(MFAs) -> [MFAs].

decides(Request, #{flags := Flags, switches := Switches}) ->
    not is_map_key(mark, Request) andalso not Switches
        andalso not lists:any(fun(F) -> lists:member(F, [arity, return_to]) end, Flags).

%% Returns #{MFA => Steps}; the steps are [] without a program.
steps(Found) ->
    lists:foldl(fun({Probe, Functions}, Acc) ->
        lists:foldl(fun({MFA = {_, _, Arity}, _}, A) ->
            A#{MFA => case Probe of
                #{program := {Least, Most, Steps}} when not is_map_key(MFA, A), Arity >= Least, Arity =< Most -> Steps;
                _ -> []
            end}
        end, Acc, Functions)
    end, #{}, Found).
