%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in poolboy 1.5: a gen_server that monitors the clients that have a member, and
%% those that wait. It has three private tables of the members that are taken.
-module(poolboy).
-behaviour(gen_server).
-export([start/2, checkout/1, transaction/2, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start(Name, Members) -> gen_server:start({local, Name}, ?MODULE, Members, []).

checkout(Pool) -> gen_server:call(Pool, {checkout, make_ref(), true}, infinity).

transaction(Pool, Fun) ->
    Member = checkout(Pool),
    try
        Fun(Member)
    after
        gen_server:cast(Pool, {checkin, Member})
    end.

init(Members) ->
    process_flag(trap_exit, true),
    {ok, {Members, queue:new(), [ets:new(Name, [private]) || Name <- [monitors, mrefs, crefs]]}}.

handle_call({checkout, CRef, true}, {Pid, _}, {[Member | Left], Waiting, [Monitors, MRefs, CRefs] = Tables}) ->
    MRef = monitor(process, Pid),
    ets:insert(Monitors, {Member, CRef, MRef}),
    ets:insert(MRefs, {MRef, Member}),
    ets:insert(CRefs, {CRef, Member}),
    {reply, Member, {Left, Waiting, Tables}};
handle_call({checkout, CRef, true}, {Pid, _} = From, {[], Waiting, Tables}) ->
    {noreply, {[], queue:in({From, CRef, monitor(process, Pid)}, Waiting), Tables}}.

handle_cast(_, State) -> {noreply, State}.

handle_info(_, State) -> {noreply, State}.
