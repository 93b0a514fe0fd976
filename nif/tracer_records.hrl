%% SPDX-License-Identifier: Apache-2.0
%% Finds the fields of records in the debug information of modules. Runs in the worker.
%%
%% Never decodes the debug information, because every variable of the source would become an atom for ever. Instead
%% searches the bytes for {record, {Name, Fields}} and sends the encoded Fields to the client.

-define(RECORD_FILE, 33554432).  % bytes: the largest .beam that is read
-define(RECORD_FORMS, 67108864). % bytes: the largest debug information, uncompressed
-define(RECORD_BYTES, 65536).    % bytes: the largest encoded fields of a record
-define(RECORD_MODULES, 64).     % the most modules that are searched

%% Returns {[{Module, Fields | <<>>}], names of the records in these modules, [Module without debug information]}; <<>>
%% for the native records of OTP 29, which are not tuples.
record_do({Patterns, Name}) ->
    Mods = lists:usort(lists:flatmap(fun modules/1, Patterns)),
    length(Mods) > ?RECORD_MODULES andalso throw({too_many_modules, length(Mods), ?RECORD_MODULES}),
    Read = [{atom_to_binary(M), records(M)} || M <- Mods],
    Found = [{M, Fields} || {M, {Forms, Records}} <- Read, {N, At} <- Records, N =:= Name,
        Fields <- [case At of native -> <<>>; _ -> part(Forms, At, min(?RECORD_BYTES, byte_size(Forms) - At)) end]],
    Names = lists:usort([N || {_, {_, Records}} <- Read, {N, _} <- Records]),
    Without = [M || {M, none} <- Read],
    {ok, {lists:sublist(Found, 8), lists:sublist(Names, 1000), Without}}.

%% Returns {Forms, [{Name, where its fields begin}]} or none.
records(M) ->
    try
        Forms = forms(M),
        Behind = fun(Marks) ->
            lists:flatmap(fun({At, Length}) -> record_at(Forms, At + Length) end, binary:matches(Forms, Marks))
        end,
        Native = [{Name, native} || {Name, _} <- Behind([<<119, 13, "native_record", 104, 2>>])],
        Records = Behind([<<119, 6, "record", 104, 2>>, <<100, 0, 6, "record", 104, 2>>]) ++ Native,
        case Records =:= [] andalso binary:match(Forms, <<"attribute">>) of
            nomatch -> none;
            _ -> {Forms, Records}
        end
    catch
        _:_ -> none
    end.

%% Returns [{Name, the place behind it}] if an encoded atom followed by a list is at this place, else [].
record_at(Forms, At) ->
    {From, Bytes} = case binary:at(Forms, At) of
        119 -> {At + 2, binary:at(Forms, At + 1)};
        Tag when Tag =:= 118; Tag =:= 100 -> {At + 3, big(Forms, At + 1, 2)};
        _ -> {At, 0}
    end,
    case Bytes > 0 andalso lists:member(binary:at(Forms, From + Bytes), [106, 108]) of
        true -> [{part(Forms, From, Bytes), From + Bytes}];
        false -> []
    end.

%% Returns the encoded abstract forms.
forms(M) ->
    Chunk = beam_chunk(<<"Dbgi">>, beam(M), 12),
    case binary:at(Chunk, 1) of
        80 ->
            true = big(Chunk, 2, 4) =< ?RECORD_FORMS,
            zlib:uncompress(part(Chunk, 6, byte_size(Chunk) - 6));
        _ -> Chunk
    end.

beam_chunk(Id, Beam, At) ->
    Size = big(Beam, At + 4, 4),
    case part(Beam, At, 4) of
        Id -> part(Beam, At + 8, Size);
        _ -> beam_chunk(Id, Beam, At + 8 + ((Size + 3) band -4))
    end.

%% Returns the file that the module was loaded from. If that file is in an archive or does not exist, returns the file
%% in the code path.
beam(M) ->
    Bytes = case code:which(M) of
        Path when is_list(Path), Path =/= [] -> beam_file(M, Path);
        _ -> beam_path(M)
    end,
    case part(Bytes, 0, 2) of
        <<31, 139>> -> zlib:gunzip(Bytes);
        _ -> Bytes
    end.

beam_file(M, Path) ->
    case file:read_file_info(Path, [raw]) of
        {ok, Info} when element(2, Info) =< ?RECORD_FILE -> {ok, Bytes} = file:read_file(Path, [raw]), Bytes;
        {error, _} -> beam_path(M)
    end.

beam_path(M) ->
    {_, Bytes, _} = code:get_object_code(M),
    Bytes.

big(Bytes, At, Length) -> binary:decode_unsigned(part(Bytes, At, Length)).
