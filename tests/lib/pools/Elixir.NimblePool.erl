%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in nimble_pool 1: the client waits in checkout!/4 itself, and runs its function
%% there. The pool monitors each client from its request to its checkin.
-module('Elixir.NimblePool').
-behaviour(gen_server).
-export([start/2, 'checkout!'/4, init/1, handle_call/3, handle_cast/2, handle_info/2]).

start(Name, Resources) -> gen_server:start({local, Name}, ?MODULE, Resources, []).

'checkout!'(Pool, Command, Function, Timeout) ->
    Pid = whereis(Pool),
    Ref = monitor(process, Pid),
    erlang:send(Pid, {'$gen_call', {self(), Ref}, {checkout, Command, deadline(Timeout)}}, [noconnect]),
    receive
        {Ref, Resource} ->
            demonitor(Ref, [flush]),
            try Function({Pid, Ref}, Resource) of
                {Result, Resource1} ->
                    Pid ! {?MODULE, checkin, Ref, Resource1},
                    Result
            catch
                Class:Reason ->
                    Pid ! {?MODULE, cancel, Ref, Class},
                    erlang:raise(Class, Reason, [])
            end;
        {'DOWN', Ref, _, _, Reason} ->
            exit({Reason, {?MODULE, checkout, [Pool]}})
    after Timeout ->
        Pid ! {?MODULE, cancel, Ref, timeout},
        demonitor(Ref, [flush]),
        exit({timeout, {?MODULE, checkout, [Pool]}})
    end.

deadline(infinity) -> infinity;
deadline(Timeout) -> erlang:monotonic_time() + erlang:convert_time_unit(Timeout, millisecond, native).

init(Resources) ->
    process_flag(trap_exit, true),
    {ok, {queue:from_list(Resources), queue:new(), #{}}}.

handle_call({checkout, _, _}, {Pid, Ref} = From, {Resources, Queue, Requests}) ->
    Requests1 = Requests#{Ref => {Pid, monitor(process, Pid)}},
    case queue:out(Resources) of
        {{value, Resource}, Left} ->
            gen_server:reply(From, Resource),
            {noreply, {Left, Queue, Requests1}};
        {empty, _} ->
            {noreply, {Resources, queue:in(From, Queue), Requests1}}
    end.

handle_cast(_, State) -> {noreply, State}.

handle_info(_, State) -> {noreply, State}.
