%% SPDX-License-Identifier: Apache-2.0
%% Watches the node's memory during a trace. The rings have a fixed size, but tracing slows processes down, so their
%% message queues may grow, and each pending result takes space on a stack. If the node has grown too much since it was
%% armed, the owner ends the tracing or the counting.
%%
%% A process of its own, the warden, reads the memory each second. The worker cannot do this, because a job of the
%% worker may take long, for example when it asks a registry for a name. The owner cannot do it, because it must not
%% wait for a file.
%%
%% The allowed growth is an option: a number of bytes, `infinity`, or by default a quarter of the node's memory, but at
%% least half a gigabyte, and at most half of the memory that its host, its container and its own limits have left.

-define(MEMORY_LEAST, 536870912).
-define(MEMORY_TIGHT, 33554432). % bytes left below which memory counts as exhausted
-define(MEMORY_PLENTY, 1073741824). % bytes left, also of address space, that allow the largest rings
-define(MEMORY_LOOK, 1000).      % ms between two looks

%% ---- in the owner -------------------------------------------------------------------------------------------------

warden_start() ->
    {Warden, _} = spawn_opt(?MODULE, warden, [self()], [monitor, {priority, high} | bounds(1)]),
    Warden.

%% Starts a watch, which lasts until the session is disarmed. A late message of an earlier watch has another reference.
memory_watch(S) -> memory_watch_on(S#s{memory = make_ref()}).

%% Continues the watch in a new warden after the old warden was killed. The new warden measures growth from now on.
memory_watch_on(S = #s{memory = none}) -> S;
memory_watch_on(S = #s{options = #{memory := infinity}}) -> S;
memory_watch_on(S = #s{memory = Watch, warden = Warden}) -> Warden ! {watch, Watch, S#s.options}, S.

%% ---- in the warden ------------------------------------------------------------------------------------------------

warden(Owner) ->
    monitor(process, Owner),
    warden_loop(Owner, none).

warden_loop(Owner, Watched) ->
    receive
        {watch, Watch, Options} ->
            warden_loop(Owner, {Watch, memory_most(Options)});
        {'DOWN', _, _, Owner, _} ->
            ok;
        _ ->
            warden_loop(Owner, Watched)
    after case Watched of none -> infinity; _ -> ?MEMORY_LOOK end ->
        warden_loop(Owner, warden_look(Owner, Watched))
    end.

warden_look(Owner, Watched = {Watch, {Began, Most}}) ->
    case memory_used() - Began of
        Grown when Grown > Most -> Owner ! {memory, Watch, Grown}, none;
        _ -> Watched
    end.

%% Returns {the node's memory now, by how much it may grow}.
memory_most(Options) ->
    Used = memory_used(),
    {Used, case Options of
        #{memory := Most} -> Most;
        _ -> min(max(?MEMORY_LEAST, Used div 4), max(?MEMORY_TIGHT, memory_left(Used) div 2))
    end}.

%% Returns the memory of the VM without mapped files, from the operating system. erlang:memory/1 is only for systems
%% without /proc: it waits for every scheduler and may create atoms. Without the VM's own allocators it fails, and then
%% the result is 0: no growth.
memory_used() ->
    case memory_file("/proc/self/status") of
        <<>> -> try erlang:memory(total) catch error:_ -> 0 end;
        Text -> memory_field(Text, <<"\nRssAnon:">>, 0) + memory_field(Text, <<"\nVmSwap:">>, 0)
    end.

%% Returns the sizes of a ring in bytes, at first and when it has grown. Events fill the rings, and rings larger than
%% the free memory would terminate the node, not the trace. If memory is exhausted, the fallback could terminate the
%% node, too, by the messages that wait for it, so the trace is rejected: returns {memory_left, megabytes}.
%%
%% A ring grows when it is full, so that no event is lost during a second in which the owner or the client hardly runs.
%% The grown rings of all schedulers take at most a sixteenth of the free memory, and the mapping of all rings at most a
%% third.
memory_rings() ->
    case memory_left(memory_used()) of
        Left when Left < ?MEMORY_TIGHT -> {memory_left, max(0, Left) bsr 20};
        Left when Left < ?MEMORY_PLENTY -> #{buffer => 1048576, most => 0};
        Left -> #{buffer => 2097152, most => memory_power(min(Left div (3 * memory_threads()), Left div 16 div erlang:system_info(schedulers)), 16777216)}
    end.

%% Returns the number of rings: one for each thread that may have events, at most LANES_MAX (lane.h).
memory_threads() ->
    Schedulers = lists:sum([erlang:system_info(Which) || Which <- [schedulers, dirty_cpu_schedulers, dirty_io_schedulers]]),
    min(256, max(64, Schedulers + 8)). % a few threads of drivers and NIFs

memory_power(Room, Size) when Size > Room, Size > 2097152 -> memory_power(Room, Size div 2);
memory_power(_, Size) -> Size.

memory_left(Used) ->
    Host = memory_field(memory_file("/proc/meminfo"), <<"\nMemAvailable:">>, 1 bsl 50),
    Groups = [Most - Used || Most <- lists:map(fun memory_group/1, string:lexemes(memory_file("/proc/self/cgroup"), "\n")), is_integer(Most)],
    Space = case memory_number(memory_file("/proc/self/limits"), <<"\nMax address space">>) of
        Most when is_integer(Most) -> [Most - memory_field(memory_file("/proc/self/status"), <<"\nVmSize:">>, 0)];
        none -> []
    end,
    lists:min([Host | Space ++ Groups ++ memory_carrier()]).

%% Returns [the bytes that are left of the super carrier] if the VM has one of fixed size and takes no other memory from
%% the system, else []. Checks the VM's flags first, because asking the VM would create atoms.
memory_carrier() ->
    Flags = binary:split(memory_file("/proc/self/cmdline"), <<0>>, [global]),
    Only = lists:member(<<"-Musacfalse">>, Flags) orelse lists:member({<<"-Musac">>, <<"false">>}, lists:zip(Flags, tl(Flags) ++ [<<>>])),
    case Only andalso lists:any(fun(F) -> binary:match(F, <<"-MMscs">>) =:= {0, 6} end, Flags) of
        true ->
            {_, [_, {_, [{_, Sizes} | _]}]} = lists:keyfind(default_mmap, 1, erlang:system_info({allocator, erts_mmap})),
            [proplists:get_value(total, Sizes) - proplists:get_value(total_sa, Sizes) - proplists:get_value(total_sua, Sizes)];
        false -> []
    end.

%% Returns the memory limit of a control group, or none. Line: 0::/path for cgroup v2, 4:memory:/path for v1. In a
%% container the path may be that of the host. A path may contain colons.
memory_group(Line) ->
    case binary:split(Line, <<":">>, [global]) of
        [_, Kind | Rest] when Kind =:= <<>>; Kind =:= <<"memory">> ->
            Path = lists:join($:, Rest),
            {Root, Name} = case Kind of
                <<>> -> {<<"/sys/fs/cgroup">>, <<"/memory.max">>};
                _ -> {<<"/sys/fs/cgroup/memory">>, <<"/memory.limit_in_bytes">>}
            end,
            %% An atom is greater than any number
            lists:min([memory_number(memory_file([Root, P, Name]), <<>>) || P <- [Path, <<>>]]);
        _ -> none
    end.

%% Returns a field in kilobytes as bytes.
memory_field(Text, Name, Else) ->
    case memory_number(Text, Name) of none -> Else; N -> N * 1024 end.

memory_number(Text, Name) ->
    Rest = case Name of
        <<>> -> [<<>>, Text];
        _ -> binary:split(Text, Name)
    end,
    case Rest of
        [_, Behind] ->
            case string:to_integer(string:trim(part(Behind, 0, min(40, byte_size(Behind))), leading)) of
                {N, _} when is_integer(N) -> N;
                _ -> none
            end;
        _ -> none
    end.

%% Flattens the name, because the VM accepts no nested list with binaries as a file name.
memory_file(Name) ->
    case file:read_file(iolist_to_binary(Name), [raw]) of {ok, Text} -> Text; {error, _} -> <<>> end.
