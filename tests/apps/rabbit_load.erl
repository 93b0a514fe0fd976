%% SPDX-License-Identifier: Apache-2.0
%% Runs clients of a RabbitMQ broker with the broker's own amqp_client. A test sends one load per line over a loopback
%% socket, and compares the answer with the events of etrace. This code does not know etrace; its node has no name.
%%
%%   load QUEUE N       declares QUEUE (classic; quorum if its name begins with q), publishes N messages with confirms,
%%                      consumes and acknowledges each, and deletes the queue; answers
%%                      "PUBLISHED CONFIRMED DELIVERED ACKNOWLEDGED"
%%   hold QUEUE N       declares QUEUE and publishes N messages, and keeps the connection and the queue; answers "ok"
%%   more QUEUE N       publishes N more on the connection of hold
%%   drain QUEUE        consumes what hold and more have published, deletes the queue and closes the connection;
%%                      answers the number of messages
-module(rabbit_load).

-export([main/0]).

-include_lib("amqp_client/include/amqp_client.hrl").

main() ->
    [Port, File] = init:get_plain_arguments(),
    logger:set_primary_config(level, error),
    {ok, _} = application:ensure_all_started(amqp_client),
    {ok, Listen} = gen_tcp:listen(0, [binary, {packet, line}, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Own} = inet:port(Listen),
    ok = file:write_file(File ++ ".new", integer_to_list(Own) ++ "\n"),
    ok = file:rename(File ++ ".new", File),
    serve(Listen, list_to_integer(Port), #{}).

serve(Listen, Port, Held) ->
    {ok, Socket} = gen_tcp:accept(Listen),
    {ok, Line} = gen_tcp:recv(Socket, 0),
    {Answer, Held1} = answer(string:lexemes(binary_to_list(Line), " \n"), Port, Held),
    ok = gen_tcp:send(Socket, [Answer, "\n"]),
    gen_tcp:close(Socket),
    serve(Listen, Port, Held1).

answer(["load", Queue, N], Port, Held) ->
    Client = open(Port, Queue),
    Published = publish(Client, list_to_integer(N)),
    Got = consume(Client, Published),
    close(Client),
    {[integer_to_list(Published), " ", integer_to_list(Published), " ", integer_to_list(Got), " ", integer_to_list(Got)], Held};
answer(["hold", Queue, N], Port, Held) ->
    Client = open(Port, Queue),
    {"ok", Held#{Queue => {Client, publish(Client, list_to_integer(N))}}};
answer(["more", Queue, N], _, Held) ->
    {Client, Before} = map_get(Queue, Held),
    {"ok", Held#{Queue => {Client, Before + publish(Client, list_to_integer(N))}}};
answer(["drain", Queue], _, Held) ->
    {Client, N} = map_get(Queue, Held),
    Got = consume(Client, N),
    close(Client),
    {integer_to_list(Got), maps:remove(Queue, Held)}.

open(Port, Queue) ->
    {ok, Connection} = amqp_connection:start(#amqp_params_network{host = "127.0.0.1", port = Port}),
    {ok, Channel} = amqp_connection:open_channel(Connection),
    Name = list_to_binary(Queue),
    #'confirm.select_ok'{} = amqp_channel:call(Channel, #'confirm.select'{}),
    #'queue.declare_ok'{} = amqp_channel:call(Channel, #'queue.declare'{queue = Name, durable = true,
        arguments = [{<<"x-queue-type">>, longstr, case Name of <<"q", _/binary>> -> <<"quorum">>; _ -> <<"classic">> end}]}),
    {Connection, Channel, Name}.

%% Publishes N messages and waits until the broker has confirmed all of them.
publish({_, Channel, Name}, N) ->
    [ok = amqp_channel:cast(Channel, #'basic.publish'{exchange = <<>>, routing_key = Name},
        #amqp_msg{payload = <<"message ", (integer_to_binary(I))/binary>>}) || I <- lists:seq(1, N)],
    true = amqp_channel:wait_for_confirms(Channel, 60),
    N.

consume({_, Channel, Name}, N) ->
    #'basic.qos_ok'{} = amqp_channel:call(Channel, #'basic.qos'{prefetch_count = 50}),
    #'basic.consume_ok'{consumer_tag = Tag} = amqp_channel:subscribe(Channel, #'basic.consume'{queue = Name}, self()),
    receive #'basic.consume_ok'{} -> ok end,
    Got = deliveries(Channel, N, 0),
    #'basic.cancel_ok'{} = amqp_channel:call(Channel, #'basic.cancel'{consumer_tag = Tag}),
    receive #'basic.cancel_ok'{} -> ok end,
    Got.

deliveries(_, N, N) -> N;
deliveries(Channel, N, Got) ->
    receive
        {#'basic.deliver'{delivery_tag = Tag}, #amqp_msg{}} ->
            ok = amqp_channel:cast(Channel, #'basic.ack'{delivery_tag = Tag}),
            deliveries(Channel, N, Got + 1)
    after 60000 ->
        Got
    end.

%% The channel sends all acknowledgements before this request, so the queue is empty.
close({Connection, Channel, Name}) ->
    #'queue.delete_ok'{message_count = 0} = amqp_channel:call(Channel, #'queue.delete'{queue = Name}),
    ok = amqp_channel:close(Channel),
    ok = amqp_connection:close(Connection).
