%% SPDX-License-Identifier: Apache-2.0
%% Loads the NIF into the VM, from a file that exists only for a moment, in a private directory with an unpredictable
%% name. This code does not use the file server, which serves the whole node and may be blocked. It removes file and
%% directory in any case. If the owner is killed before that, the janitors remove them.

-define(MOUNTS_MOST, 64). % mounted directories that are tried

%% Loads the NIF from the first directory that allows it. Returns ok, or [{Directory, Reason}]: why each one failed, in
%% order.
nif_load(<<>>, _, _, _) ->
    [{<<"this etrace has no library for ", (list_to_binary(erlang:system_info(system_architecture)))/binary>>, <<>>}];
nif_load(So, Hash, Nonce, Janitors) ->
    case file_room(byte_size(So)) of
        true ->
            Mounts = mounts(),
            nif_try(local_first(candidates(), Mounts) ++ mounted(Mounts), fun(Dir) ->
                Info = dir_info(Dir),
                case Info =:= timeout orelse noexec(Dir, Info, Mounts) of
                    true when Info =:= timeout -> "does not answer";
                    true -> "noexec";
                    false -> nif_load(Dir, So, Hash, Nonce, Janitors)
                end
            end, []);
        Why ->
            [{Why, <<>>}]
    end.

%% Checks the limit of the file size: writing beyond it raises a signal that terminates the VM.
file_room(Size) ->
    Limits = memory_file("/proc/self/limits"),
    case memory_number(Limits, <<"\nMax file size">>) of
        _ when Limits =:= <<>> -> <<"how large a file may be is not known without /proc">>;
        Most when is_integer(Most), Most < Size -> <<"its files may not be as large as the library">>;
        _ -> true
    end.

nif_try([], _, Why) -> lists:reverse(Why);
nif_try([Dir | Dirs], Load, Why) ->
    case Load(Dir) of
        ok -> ok;
        %% If the VM mapped the library and rejected it, another directory does not help. Other errors may depend on the
        %% directory.
        {error, Text} -> lists:reverse(Why, [{bin(Dir), bin(Text)}]);
        Reason -> nif_try(Dirs, Load, [{bin(Dir), bin(Reason)} | Why])
    end.

candidates() ->
    Set = fun(Name, Below) -> case os:getenv(Name) of false -> []; "" -> []; D -> [filename:join(D, Below)] end end,
    Here = case prim_file:get_cwd() of {ok, D} -> [D]; _ -> [] end,
    Dirs = Set("XDG_RUNTIME_DIR", "") ++ Set("HOME", ".cache") ++ ["/dev/shm", "/tmp", "/var/tmp"] ++
        Set("RELEASE_TMP", "") ++ Set("TMPDIR", "") ++ Here,
    lists:uniq([D || D <- Dirs, filename:pathtype(D) =:= absolute]).

%% Returns every mounted directory, as the last resort, for example in a container with a read-only root. A memfd would
%% need no directory, but Erlang cannot make one.
mounted(Mounts) ->
    Points = [P || M = {P, _, false, Type} <- Mounts, is_local(M), Type =/= <<"devtmpfs">>, not lists:member($\\, P)],
    lists:sublist(lists:uniq(Points) -- candidates(), ?MOUNTS_MOST).

%% Returns the mounts as [{Point, "major:minor", NoExec, Type}] in the kernel's order; [] if they are unknown. Mounts
%% with noexec are skipped: a failed attempt to map the library from such a mount would leave a part of it mapped for
%% ever.
mounts() ->
    case file:open("/proc/self/mountinfo", [read, raw, binary]) of
        {ok, Handle} ->
            try lists:flatmap(fun mount/1, binary:split(iolist_to_binary(mounts(Handle, 64)), <<"\n">>, [global]))
            catch error:_ -> []
            after file:close(Handle)
            end;
        _ -> []
    end.

mounts(Handle, Times) when Times > 0 ->
    case file:read(Handle, 65536) of
        {ok, Text} -> [Text | mounts(Handle, Times - 1)];
        eof -> []
    end.

mount(Line) ->
    case binary:split(Line, <<" ">>, [global]) of
        [_, _, Device, _, Point, Options | Rest] ->
            [_, Type | _] = lists:dropwhile(fun(Field) -> Field =/= <<"-">> end, Rest) ++ [none, none],
            [{binary_to_list(Point), Device, lists:member(<<"noexec">>, binary:split(Options, <<",">>, [global])), Type}];
        _ -> []
    end.

%% Finds the mount of a directory: the last one with the longest matching path.
mount_of(Dir, Mounts) ->
    Path = binary_to_list(bin(Dir)) ++ "/",
    case lists:sort([{length(P), N, M} || {N, M = {P, _, _, _}} <- lists:enumerate(Mounts), P =:= "/" orelse lists:prefix(P ++ "/", Path)]) of
        [] -> none;
        Under -> element(3, lists:last(Under))
    end.

%% Returns true if a directory is on a mount with noexec. Compares the device, too, because a symbolic link may lead to
%% another mount.
noexec(Dir, Info, Mounts) ->
    case {mount_of(Dir, Mounts), Info} of
        {{_, Device, true, _}, {ok, I}} -> device(Device) =:= element(10, I);
        _ -> false
    end.

%% Puts directories on network file systems last. If their server is down, an access blocks one of the VM's few dirty IO
%% threads until the server answers, even if the process is killed.
local_first(Dirs, Mounts) ->
    {Local, Far} = lists:partition(fun(Dir) -> is_local(mount_of(Dir, Mounts)) end, Dirs),
    Local ++ Far.

%% Returns true if a mount is local: it has a block device, or a type that is known to need none.
is_local({_, Device, _, Type}) ->
    hd(binary:split(Device, <<":">>)) =/= <<"0">> orelse
        lists:member(Type, [<<"tmpfs">>, <<"ramfs">>, <<"devtmpfs">>, <<"overlay">>, <<"btrfs">>, <<"zfs">>, <<"bcachefs">>]);
is_local(none) ->
    true.

%% Reads the file info in a helper with a timeout, because a file system whose server is down may block for ever.
dir_info(Dir) ->
    {Helper, Ref} = spawn_opt(fun() -> exit({ok, file:read_file_info(Dir, [raw])}) end, [monitor, {priority, high} | bounds(1)]),
    receive {'DOWN', Ref, _, _, Info} -> case Info of {ok, I} -> I; _ -> Info end
    after 2000 ->
        demonitor(Ref, [flush]),
        exit(Helper, kill),
        timeout
    end.

%% Returns the device number of "major:minor", encoded as in stat(2).
device(Text) ->
    [Major, Minor] = [binary_to_integer(B) || B <- binary:split(Text, <<":">>)],
    (Minor band 16#ff) bor (Major bsl 8) bor ((Minor bsr 8) bsl 20).

nif_load(Base, So, Hash, Nonce, Janitors) ->
    Dir = filename:join(Base, "etrace-" ++ hex(erlang:md5([Nonce, bin(Base)]))),
    File = filename:join(Dir, "etrace.so"),
    tell(Janitors, {directory, {Dir, File}}),
    case prim_file:make_dir(Dir) of
        ok ->
            try nif_write(Dir, File, So) of
                ok -> nif_take(filename:rootname(File, ".so"), Hash, Nonce);
                Reason -> Reason
            after
                file:delete(File, [raw]),
                prim_file:del_dir(Dir),
                tell(Janitors, {directory, none})
            end;
        {error, Reason} ->
            tell(Janitors, {directory, none}),
            atom_to_list(Reason)
    end.

tell(Janitors, Message) -> [Janitor ! Message || Janitor <- Janitors], ok.

%% Writes the library. Before it creates the file, checks that the path is a directory with mode 0700. Before it writes,
%% checks that the directory belongs to our user. Afterwards checks that the file has the written content. The owner of
%% the new file tells which user that is, because a file server may map our user to another one.
nif_write(Dir, File, So) ->
    try
        ok = change_mode(Dir, 8#700),
        {ok, Info} = file:read_link_info(Dir, [raw]),
        {directory, 8#700} = {element(3, Info), element(8, Info) band 8#777},
        {ok, Handle} = file:open(File, [write, exclusive, raw, binary]),
        {ok, Made} = file:read_file_info(Handle, [raw]),
        true = element(13, Info) =:= element(13, Made),
        ok = change_mode(File, 8#600),
        ok = file:write(Handle, So),
        ok = file:close(Handle),
        {ok, So} = file:read_file(File, [raw]),
        ok
    catch
        error:{badmatch, {error, Reason}} -> atom_to_list(Reason);
        error:{badmatch, _} -> "somebody interferes with the files there"
    end.

change_mode(Name, Mode) ->
    file:write_file_info(Name, setelement(8, erlang:make_tuple(14, undefined, [{1, file_info}]), Mode), [raw]).

nif_take(Path, Hash, Nonce) ->
    case erlang:load_nif(Path, Nonce) of
        ok ->
            case hello() of
                {Hash, Nonce} -> ok;
                _ -> exit({error, load_failed})
            end;
        {error, {load_failed, Text}} -> Text;
        {error, {_, Text}} -> {error, Text}
    end.

hex(Bytes) ->
    lists:flatten([io_lib:format("~2.16.0b", [B]) || B <- binary_to_list(Bytes)]).

bin(Text) ->
    case unicode:characters_to_binary(Text) of
        B when is_binary(B) -> B;
        _ -> <<"?">>
    end.

%% Returns one text that says why the NIF could not be loaded. It has each reason once, without the file's name, and
%% leaves out directories that do not exist.
reasons(ok) -> <<>>;
reasons(Why) ->
    There = [{D, reason(R)} || {D, R} <- Why, not lists:member(R, [<<"enoent">>, <<"enotdir">>])],
    Texts = [[lists:join(<<", ">>, [D || {D, Same} <- There, Same =:= R]), case R of <<>> -> []; _ -> [<<": ">>, R] end]
        || R <- lists:uniq([R || {_, R} <- There])],
    case Texts of
        [] -> <<"no directory for its file exists">>;
        _ -> iolist_to_binary(lists:join(<<"; ">>, Texts))
    end.

reason(<<"erofs">>) -> <<"read-only">>;
reason(<<"eacces">>) -> <<"not writable">>;
reason(<<"enospc">>) -> <<"full">>;
reason(Text) ->
    case binary:split(Text, <<"etrace.so: ">>) of
        [_, Said] -> hd(binary:split(Said, <<"'">>));
        _ -> Text
    end.
