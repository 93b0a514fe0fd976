%% SPDX-License-Identifier: Apache-2.0
%% Finds names for completion. Runs in the worker. An answer is a page of at most COMPLETE_MOST names, sorted, starting
%% after the last name of the previous page.
%%
%% Request: {complete, modules | {functions, Module} | {record, Module} | processes | nodes, After}, names as binaries
%% Answer: {[Name], true if there are more names}; the name of a function is "name/arity"

-define(COMPLETE_MOST, 4000).
-define(COMPLETE_BYTES, 262144).

complete_do({What, After}) ->
    {ok, complete_page(lists:usort([N || N <- complete_all(What), N > After]), ?COMPLETE_MOST, ?COMPLETE_BYTES, [])}.

complete_page([], _, _, Acc) -> {lists:reverse(Acc), false};
complete_page([N | _], Most, Bytes, Acc) when Most =:= 0; byte_size(N) > Bytes -> {lists:reverse(Acc), true};
complete_page([N | Rest], Most, Bytes, Acc) -> complete_page(Rest, Most - 1, Bytes - byte_size(N), [N | Acc]).

complete_all(modules) ->
    [atom_to_binary(M) || M <- erlang:loaded(), not companion(M)];
complete_all({functions, Module}) when is_binary(Module) ->
    [fa(F, A) || M <- existing([Module]), not companion(M), {F, A} <- listed(M, local), written(F)];
complete_all({record, Module}) when is_binary(Module) ->
    [N || M <- existing([Module]), not companion(M), {_, Records} <- [records(M)], {N, _} <- Records];
complete_all(processes) ->
    [atom_to_binary(N) || N <- registered(), not companion(N)];
complete_all(nodes) ->
    [atom_to_binary(N) || N <- nodes()].
