%% Getting the NIF into the VM: as a file that exists for a moment, in a directory that nobody can foresee or share.
%% Every way out removes what was made; the janitor knows the directory meanwhile, for the case that we are killed here.

%% ok | [{Directory, Reason}]: why each candidate did not do, in their order
nif_load(<<>>, _, _, _) ->
    [{<<"no NIF in this build">>, <<>>}];
nif_load(So, Hash, Nonce, Janitor) ->
    Uid = uid(),
    nif_try(candidates(), fun(Dir) -> nif_load(Dir, So, Hash, Nonce, Janitor, Uid) end, []).

nif_try([], _, Why) -> lists:reverse(Why);
nif_try([Dir | Dirs], Load, Why) ->
    case Load(Dir) of
        ok -> ok;
        %% A library that was mapped and refused is refused everywhere; only the place could be better elsewhere.
        {error, Text} -> lists:reverse(Why, [{bin(Dir), bin(Text)}]);
        Reason -> nif_try(Dirs, Load, [{bin(Dir), bin(Reason)} | Why])
    end.

candidates() ->
    Home = case os:getenv("HOME") of false -> []; H -> [filename:join(H, ".cache")] end,
    Run = case os:getenv("XDG_RUNTIME_DIR") of false -> []; R -> [R] end,
    [D || D <- Run ++ Home ++ ["/dev/shm", "/tmp", "/var/tmp"], filename:pathtype(D) =:= absolute].

%% Our own user: whoever owns this VM's entry in /proc.
uid() ->
    case file:read_file_info("/proc/self", [raw]) of
        {ok, Info} -> element(13, Info);
        _ -> none
    end.

nif_load(Base, So, Hash, Nonce, Janitor, Uid) ->
    Dir = filename:join(Base, "etrace-" ++ hex(erlang:md5([Nonce, Base]))),
    File = filename:join(Dir, "etrace.so"),
    Janitor ! {directory, {Dir, File}},
    case file:make_dir(Dir) of
        ok ->
            try nif_write(Dir, File, So, Uid) of
                ok -> nif_take(filename:rootname(File, ".so"), Hash, Nonce);
                Reason -> Reason
            after
                file:delete(File, [raw]),
                file:del_dir(Dir),
                Janitor ! {directory, none}
            end;
        {error, Reason} ->
            Janitor ! {directory, none},
            atom_to_list(Reason)
    end.

%% The directory must be one, ours and closed before anything is written; what was written must be what is there.
nif_write(Dir, File, So, Uid) ->
    try
        ok = file:change_mode(Dir, 8#700),
        {ok, Info} = file:read_link_info(Dir, [raw]),
        {directory, Uid, 8#700} = {element(3, Info), element(13, Info), element(8, Info) band 8#777},
        {ok, Handle} = file:open(File, [write, exclusive, raw, binary]),
        ok = file:change_mode(File, 8#600),
        ok = file:write(Handle, So),
        ok = file:close(Handle),
        {ok, So} = file:read_file(File),
        ok
    catch
        error:{badmatch, {error, Reason}} -> atom_to_list(Reason);
        error:{badmatch, _} -> "somebody interferes with the files there"
    end.

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

%% One text of why there is no NIF: equal reasons once, the file's name not at all, directories that do not exist neither.
reasons(ok) -> <<>>;
reasons(Why) ->
    There = [{D, reason(R)} || {D, R} <- Why, R =/= <<"enoent">>],
    Texts = [[lists:join(<<", ">>, [D || {D, Same} <- There, Same =:= R]), case R of <<>> -> []; _ -> [<<": ">>, R] end]
        || R <- lists:uniq([R || {_, R} <- There])],
    case Texts of
        [] -> <<"no directory for its file exists">>;
        _ -> iolist_to_binary(lists:join(<<"; ">>, Texts))
    end.

reason(Text) ->
    case binary:split(Text, <<"etrace.so: ">>) of
        [_, Said] -> hd(binary:split(Said, <<"'">>));
        _ -> Text
    end.
