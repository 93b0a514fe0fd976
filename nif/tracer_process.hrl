%% SPDX-License-Identifier: Apache-2.0
%% Asks processes of the node. No other file calls process_info/2 for a process that is not of the companion.
%%
%% The VM copies the whole answer before any limit of the asking process acts, and the other process makes the copy. So
%% each item has a row in process_copies/1 that says what its answer copies. If that may be large, process_ask/2 first
%% asks for sizes that cost nothing.

-define(TOO_LARGE, {?MODULE, too_large}).
-define(PROCESS_LINKS, 50000).   % most links, monitors and aliases
-define(PROCESS_LINK, 48).       % the least bytes of a link, monitor or alias
-define(PROCESS_MESSAGE, 88).    % bytes of a message besides its term
-define(PROCESS_HEAP, 4000000).  % words of the heap
-define(PROCESS_STACK, 200).     % words: the VM cuts each term of a stack at 100000 elements, which takes 10 ms
-define(PROCESS_MEMORY, 64 * 1024 * 1024). % most bytes of a process whose backtrace is read
-define(PROCESS_QUEUE, 100).     % most messages in the queue
-define(PROCESS_MESSAGES, 16 * 1024 * 1024). % most bytes of a process whose messages are read
-define(PROCESS_BINARIES, 200000). % most references to binaries; the list of them has six words for each

%% Returns the kind of copy that an answer makes.
process_copies(links) -> links;
process_copies(monitors) -> links;
process_copies(monitored_by) -> links;
process_copies(messages) -> queue;
process_copies(backtrace) -> stack;
process_copies(binary) -> binaries;
process_copies({dictionary, '$process_label'}) -> heap; % any term
process_copies({dictionary, '$callers'}) -> heap; % Elixir writes pids, but any program may write
process_copies({dictionary, '$ancestors'}) -> heap; % one more in each process of a chain in which each starts the next
process_copies({dictionary, '$initial_call'}) -> constant; % proc_lib writes {M, F, A}
process_copies(current_function) -> constant;
process_copies(current_stacktrace) -> constant;
process_copies(garbage_collection) -> constant;
process_copies(garbage_collection_info) -> constant;
process_copies(group_leader) -> constant;
process_copies(initial_call) -> constant;
process_copies(memory) -> constant;
process_copies(message_queue_len) -> constant;
process_copies(parent) -> constant;
process_copies(reductions) -> constant;
process_copies(registered_name) -> constant;
process_copies(sequential_trace_token) -> constant;
process_copies(stack_size) -> constant;
process_copies(status) -> constant;
process_copies(total_heap_size) -> constant;
process_copies({dictionary, Word}) when Word =:= at; Word =:= ours; Word =:= session; Word =:= tokens -> constant. % of the companion

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
%% has each of them in full.
process_ask(P, Items) ->
    case [{Item, Copies} || Item <- Items, Copies <- [process_copies(Item)], Copies =/= constant] of
        [] -> process_info(P, Items);
        Large ->
            Small = lists:usort(lists:append([process_sizes(Copies) || {_, Copies} <- Large])) ++ Items -- [Item || {Item, _} <- Large],
            process_ask(P, Items, Large, process_info(P, lists:usort(Small)))
    end.

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
