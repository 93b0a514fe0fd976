%% SPDX-License-Identifier: Apache-2.0
%% Waits like the module of this name in RabbitMQ: an idle server waits in process_next_msg/1 for a second, and then
%% hibernates. It has read all messages into a queue of its own.
-module(gen_server2).
-export([start/3, call/3, cast/2, reply/2, init_it/3, wake_hib/1]).

start(Name, Mod, Args) -> proc_lib:start(?MODULE, init_it, [Name, Mod, Args]).

call(Name, Request, Timeout) ->
    try gen:call(Name, '$gen_call', Request, Timeout) of
        {ok, Reply} -> Reply
    catch
        exit:Reason -> exit({Reason, {?MODULE, call, [Name, Request, Timeout]}})
    end.

cast(Name, Request) -> Name ! {'$gen_cast', Request}, ok.

reply({To, Tag}, Reply) -> To ! {Tag, Reply}.

init_it(Name, Mod, Args) ->
    register(Name, self()),
    {ok, State} = Mod:init(Args),
    proc_lib:init_ack({ok, self()}),
    loop({Mod, State, queue:new()}).

loop(Server) -> process_next_msg(drain(Server)).

drain({Mod, State, Queue} = Server) ->
    receive
        Input -> drain({Mod, State, queue:in(Input, Queue)})
    after 0 -> Server
    end.

process_next_msg({Mod, State, Queue}) ->
    case queue:out(Queue) of
        {{value, Msg}, Queue1} ->
            handle_msg(Msg, {Mod, State, Queue1});
        {empty, _} ->
            receive
                Input -> process_next_msg(drain({Mod, State, queue:in(Input, Queue)}))
            after 1000 -> proc_lib:hibernate(?MODULE, wake_hib, [{Mod, State, Queue}])
            end
    end.

wake_hib(Server) -> process_next_msg(drain(Server)).

handle_msg(Msg, {Mod, State, Queue}) ->
    {noreply, State1} = dispatch(Msg, Mod, State),
    loop({Mod, State1, Queue}).

dispatch({'$gen_call', From, Msg}, Mod, State) -> Mod:handle_call(Msg, From, State);
dispatch({'$gen_cast', Msg}, Mod, State) -> Mod:handle_cast(Msg, State);
dispatch(Msg, Mod, State) -> Mod:handle_info(Msg, State).
