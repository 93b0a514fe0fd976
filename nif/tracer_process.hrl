%% SPDX-License-Identifier: Apache-2.0
%% Asks processes of the node. No other file calls process_info/2 for a process that is not of the companion.
%%
%% The VM copies the whole answer before any limit of the asking process acts, and the other process makes the copy. For
%% some items it walks the whole message queue, without a pause. So each item has a row in process_costs/1 that says what
%% its answer copies or walks. If that may be large, process_ask/2 first asks for sizes that cost nothing.

-define(TOO_LARGE, {?MODULE, too_large}).
-define(PROCESS_LINKS, 50000).   % most links, monitors and aliases
-define(PROCESS_LINK, 48).       % the least bytes of a link, monitor or alias
-define(PROCESS_MESSAGE, 88).    % bytes of a message besides its term
-define(PROCESS_HEAP, 4000000).  % words of the heap
-define(PROCESS_STACK, 200).     % words: the VM cuts each term of a stack at 100000 elements, which takes 10 ms
-define(PROCESS_MEMORY, 64 * 1024 * 1024). % most bytes of a process whose backtrace is read
-define(PROCESS_QUEUE, 100).     % most messages in a queue that is read
-define(PROCESS_WALK, 300000).   % most messages in a queue that the VM walks, which takes 3 ms for an item
-define(PROCESS_MESSAGES, 16 * 1024 * 1024). % most bytes of a process whose messages are read
-define(PROCESS_BINARIES, 200000). % most references to binaries; the list of them has six words for each

%% Returns what an answer copies; walk: it copies nothing, but the VM walks the queue, or the messages on the heap.
process_costs(links) -> links;
process_costs(monitors) -> links;
process_costs(monitored_by) -> links;
process_costs(messages) -> queue;
process_costs(backtrace) -> stack;
process_costs(binary) -> binaries;
process_costs({dictionary, '$process_label'}) -> heap; % any term
process_costs({dictionary, '$callers'}) -> heap; % Elixir writes pids, but any program may write
process_costs({dictionary, '$ancestors'}) -> heap; % one more in each process of a chain in which each starts the next
process_costs({dictionary, '$initial_call'}) -> constant; % proc_lib writes {M, F, A}
process_costs(current_function) -> constant;
process_costs(current_stacktrace) -> constant;
process_costs(garbage_collection) -> constant;
process_costs(garbage_collection_info) -> walk;
process_costs(group_leader) -> constant;
process_costs(initial_call) -> constant;
process_costs(memory) -> walk;
process_costs(message_queue_len) -> constant;
process_costs(parent) -> constant;
process_costs(reductions) -> constant;
process_costs(registered_name) -> constant;
process_costs(sequential_trace_token) -> constant;
process_costs(stack_size) -> constant;
process_costs(status) -> constant;
process_costs(total_heap_size) -> walk;
process_costs({dictionary, Word}) when Word =:= at; Word =:= ours; Word =:= session; Word =:= tokens -> constant. % of the companion

%% Returns true if the copy of an answer is small enough. `memory` includes all memory of the process; total_heap_size
%% includes the messages on the heap.
process_fits(links, #{memory := Memory, total_heap_size := Heap, message_queue_len := Queue}) ->
    Memory - Heap * erlang:system_info(wordsize) - Queue * ?PROCESS_MESSAGE =< ?PROCESS_LINKS * ?PROCESS_LINK;
process_fits(queue, #{memory := Memory, message_queue_len := Queue}) ->
    Queue =< ?PROCESS_QUEUE andalso Memory =< ?PROCESS_MESSAGES;
process_fits(stack, #{memory := Memory, stack_size := Stack}) ->
    Stack =< ?PROCESS_STACK andalso Memory =< ?PROCESS_MEMORY;
process_fits(heap, #{total_heap_size := Heap}) ->
    Heap =< ?PROCESS_HEAP;
process_fits(binaries, #{total_heap_size := Heap, garbage_collection_info := Heaps}) ->
    %% A reference takes at least three words of a heap, and its binary at least eight.
    Heap div 3 =< ?PROCESS_BINARIES orelse process_binaries(Heaps) div 8 =< ?PROCESS_BINARIES.

%% Returns the words of all binaries that the process refers to. A binary with two references counts twice. Binaries of
%% heap fragments do not count.
process_binaries(Heaps) ->
    proplists:get_value(bin_vheap_size, Heaps, 0) + proplists:get_value(bin_old_vheap_size, Heaps, 0).

process_sizes(links) -> [memory, total_heap_size, message_queue_len];
process_sizes(queue) -> [memory, message_queue_len];
process_sizes(stack) -> [memory, stack_size];
process_sizes(heap) -> [total_heap_size];
process_sizes(binaries) -> [total_heap_size, garbage_collection_info].

%% Answers as process_info(P, Items) does. An item whose answer may be too large has the value ?TOO_LARGE. The memory of
%% a process does not bound the copy of a term that contains another term several times, or a persistent term: the copy
%% has each of them in full. If the queue is too long to walk, `memory` is the least that its messages take.
process_ask(P, Items) ->
    case [{Item, Costs} || Item <- Items, Costs <- [process_costs(Item)], Costs =/= constant] of
        [] -> process_info(P, Items);
        Costly ->
            case process_info(P, message_queue_len) of
                undefined -> undefined;
                {_, Queue} when Queue > ?PROCESS_WALK -> process_ask_queued(P, Items, Queue);
                _ -> process_ask_short(P, Items, [Item || Item = {_, Costs} <- Costly, Costs =/= walk])
            end
    end.

process_ask_queued(P, Items, Queue) ->
    case process_info(P, [Item || Item <- Items, process_costs(Item) =:= constant]) of
        undefined -> undefined;
        Known ->
            Values = maps:from_list([{memory, Queue * ?PROCESS_MESSAGE} | Known]),
            [{Item, maps:get(Item, Values, ?TOO_LARGE)} || Item <- Items]
    end.

process_ask_short(P, Items, []) -> process_info(P, Items);
process_ask_short(P, Items, Large) ->
    Small = lists:usort(lists:append([process_sizes(Copies) || {_, Copies} <- Large])) ++ Items -- [Item || {Item, _} <- Large],
    process_ask(P, Items, Large, process_info(P, lists:usort(Small))).

process_ask(_, _, _, undefined) -> undefined;
process_ask(P, Items, Large, Known) ->
    Sizes = maps:from_list(Known),
    case process_info(P, [Item || {Item, Copies} <- Large, process_fits(Copies, Sizes)]) of
        undefined -> undefined;
        More ->
            Values = maps:merge(Sizes, maps:from_list(More)),
            [{Item, maps:get(Item, Values, ?TOO_LARGE)} || Item <- Items]
    end.

%% Returns the value of one item; undefined if the process has exited.
process_value(P, Item) ->
    case process_ask(P, [Item]) of
        [{_, Value}] -> Value;
        undefined -> undefined
    end.
