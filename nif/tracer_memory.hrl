%% The node's memory while it is traced. The rings are of a fixed size, but tracing holds up who is traced, so messages may pile
%% up before him, and results that are asked for lie on his stack until he returns. Where the node has grown by more than it may
%% since it was armed, the tracing or the counting is ended.
%%
%% A process of its own looks, each second: the worker may be at something for long (a registry that is asked who a name is may
%% take any time), and the owner waits for no file.
%%
%% How much is an option: a number of bytes, `infinity`, or by default a quarter of what the node had, half a gigabyte at least,
%% and at most half of what its host, its container and its own limits have left.

-define(MEMORY_LEAST, 536870912).
-define(MEMORY_TIGHT, 33554432). % where next to nothing is left
-define(MEMORY_PLENTY, 1073741824). % where there is room, also of addresses, for the largest rings
-define(MEMORY_LOOK, 1000).      % ms

%% ---- in the owner -------------------------------------------------------------------------------------------------

warden_start() ->
    {Warden, _} = spawn_opt(?MODULE, warden, [self()], [monitor, {priority, high} | bounds(1)]),
    Warden.

%% From now on, until it is disarmed. What comes of an earlier watch names another one.
memory_watch(S) -> memory_watch_on(S#s{memory = make_ref()}).

%% Who watched was killed: the growth until now is forgotten.
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

%% {What it has, by how much it may grow}
memory_most(Options) ->
    Used = memory_used(),
    {Used, case Options of
        #{memory := Most} -> Most;
        _ -> min(max(?MEMORY_LEAST, Used div 4), max(?MEMORY_TIGHT, memory_left(Used) div 2))
    end}.

%% What the operating system has given it, not counting files: erlang:memory/1 would wait for every scheduler, and its words for
%% the allocators are atoms that a node may never have needed. With the allocators of the system it cannot tell: nothing grows then.
memory_used() ->
    case memory_file("/proc/self/status") of
        <<>> -> try erlang:memory(total) catch error:_ -> 0 end;
        Text -> memory_field(Text, <<"\nRssAnon:">>, 0) + memory_field(Text, <<"\nVmSwap:">>, 0)
    end.

%% Bytes of a ring. They are in use as soon as there are events: more than is left would be the end of the node, not of the tracing.
%% So would be, where next to nothing is left, what is made for a tracer that is a process, before it takes it.
memory_ring() ->
    case memory_left(memory_used()) of
        Left when Left < ?MEMORY_TIGHT -> {memory_left, max(0, Left) bsr 20};
        Left when Left < ?MEMORY_PLENTY -> 1048576;
        _ -> 2097152
    end.

memory_left(Used) ->
    Host = memory_field(memory_file("/proc/meminfo"), <<"\nMemAvailable:">>, 1 bsl 50),
    Groups = [Most - Used || Most <- lists:map(fun memory_group/1, string:lexemes(memory_file("/proc/self/cgroup"), "\n")), is_integer(Most)],
    Space = case memory_number(memory_file("/proc/self/limits"), <<"\nMax address space">>) of
        Most when is_integer(Most) -> [Most - memory_field(memory_file("/proc/self/status"), <<"\nVmSize:">>, 0)];
        none -> []
    end,
    lists:min([Host | Space ++ Groups ++ memory_carrier()]).

%% Where the VM takes all of its memory out of one piece of a fixed size, and none of the system: what is left of that. (Its
%% flags are looked at first: the words of the answer are atoms.)
memory_carrier() ->
    Flags = binary:split(memory_file("/proc/self/cmdline"), <<0>>, [global]),
    Only = lists:member(<<"-Musacfalse">>, Flags) orelse lists:member({<<"-Musac">>, <<"false">>}, lists:zip(Flags, tl(Flags) ++ [<<>>])),
    case Only andalso lists:any(fun(F) -> binary:match(F, <<"-MMscs">>) =:= {0, 6} end, Flags) of
        true ->
            {_, [_, {_, [{_, Sizes} | _]}]} = lists:keyfind(default_mmap, 1, erlang:system_info({allocator, erts_mmap})),
            [proplists:get_value(total, Sizes) - proplists:get_value(total_sa, Sizes) - proplists:get_value(total_sua, Sizes)];
        false -> []
    end.

%% 0::/path of the second version, 4:memory:/path of the first; in a container the path may be one of the host's. Colons may be in it.
memory_group(Line) ->
    case binary:split(Line, <<":">>, [global]) of
        [_, Kind | Rest] when Kind =:= <<>>; Kind =:= <<"memory">> ->
            Path = lists:join($:, Rest),
            {Root, Name} = case Kind of
                <<>> -> {<<"/sys/fs/cgroup">>, <<"/memory.max">>};
                _ -> {<<"/sys/fs/cgroup/memory">>, <<"/memory.limit_in_bytes">>}
            end,
            lists:min([memory_number(memory_file([Root, P, Name]), <<>>) || P <- [Path, <<>>]]); % an atom is more than any number
        _ -> none
    end.

%% Kilobytes.
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

%% The VM takes no list with binaries in it for a name.
memory_file(Name) ->
    case file:read_file(iolist_to_binary(Name), [raw]) of {ok, Text} -> Text; {error, _} -> <<>> end.
