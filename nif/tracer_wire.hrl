%% SPDX-License-Identifier: Apache-2.0
%% Encodes terms and frames as etrace_wire.h describes: the frames that the owner makes itself (hello, names, notices),
%% and without the NIF all frames. Terms are appended to a binary. The binary has a limit, which it exceeds only a
%% little, because terms that do not fit are cut.

-define(T_TEXT, 16#8b).
-define(T_NIL, 16#8c).
-define(T_LIST, 16#8d).
-define(T_END, 16#8e).
-define(T_TAIL, 16#8f).
-define(T_CUT, 16#94).
-define(T_ELIDED, 16#95).
-define(T_REDACTED, 16#96).

-define(F_CUT, 8).

-define(META, 16#ffffffff).
-define(NO_LOSS, {0, 0, 0, 0, 0, 0, 0, 0}).

%% Makes a frame with its full tick and tracee, so that its meaning does not depend on the frame before it.
frame(Kind, Tick, Tracee, Terms) ->
    frame(Kind, 0, <<0:32, Tick:64/little, Tracee:64/little>>, <<>>, Terms, {4096, 8, 64, none}).

%% Makes a frame. Limits = {Bytes, Levels, Elements, secrets/1 | none}. Bytes: for all terms of the frame together.
frame(Kind, Flags0, Deltas, Function, Terms, Limits = {Bytes, _, _, _}) ->
    put(cut, 0),
    L = setelement(1, Limits, byte_size(Function) + Bytes),
    Body = without_cookie(lists:foldl(fun(T, A) -> term(T, A, 0, L) end, Function, Terms)),
    frame_of(Kind, Flags0 bor get(cut) bor case byte_size(Deltas) of 4 -> 0; 12 -> 2; 20 -> 3 end, Deltas, Body).

frame_of(Kind, Flags, Deltas, Body) ->
    Size = 4 + byte_size(Deltas) + byte_size(Body),
    <<(Size bor (Kind bsl 20) bor (Flags bsl 26)):32/little, Deltas/binary, Body/binary>>.

%% term(Term, A, Level, {End, Levels, Elements, Redacted}) -> A with the term appended.
term(T, A, _, _) when is_integer(T), T >= 0, T < 128 -> <<A/binary, T>>;
term(_, A, _, L) when byte_size(A) >= element(1, L) -> cut(A, ?T_ELIDED);
term([], A, _, _) -> <<A/binary, ?T_NIL>>;
term(T, A, _, L) when is_integer(T) -> integer(T, A, L);
term(T, A, _, _) when is_float(T) -> <<A/binary, 16#85, T:64/float-little>>;
term(T, A, _, _) when is_atom(T) ->
    Text = cookie_as_stars(atom_to_binary(T)),
    <<A/binary, 16#88, (byte_size(Text)):16/little, Text/binary>>;
term(T, A, _, _) when is_pid(T), node(T) =:= node() -> <<A/binary, 16#89, (word(T)):64/little>>;
term(T, A, _, _) when is_port(T), node(T) =:= node() -> <<A/binary, 16#8a, (word(T)):64/little>>;
term(T, A, _, _) when is_pid(T) -> text(2, pid_to_list(T), A);
term(T, A, _, _) when is_port(T) -> text(3, port_to_list(T), A);
term(T, A, _, _) when is_reference(T) -> text(0, ref_to_list(T), A);
term(T, A, _, _) when is_function(T) -> text(1, fun_text(T), A);
term(T, A, _, L) when is_bitstring(T) -> bits(T, A, L);
term(_, A, Level, {_, Levels, _, _}) when Level >= Levels -> cut(A, ?T_ELIDED);
term(T, A, Level, L = {End, _, Elements, _}) when is_list(T) ->
    case bytes(T, 0, min(65535, End - byte_size(A))) of
        none -> list(T, <<A/binary, ?T_LIST>>, Level + 1, L, Elements);
        N -> <<A/binary, 16#97, N:16/little, (cookie_as_stars(list_to_binary(T)))/binary>>
    end;
term({Key, Value}, A, Level, L = {_, _, _, Secrets}) ->
    pair(Key, Value, <<A/binary, 16#c2>>, Level + 1, L, is_secret(Key, Secrets));
term(T, A, Level, L = {_, _, Elements, _}) when is_tuple(T) ->
    N = tuple_size(T),
    Head = if N < 32 -> <<A/binary, (16#c0 + N)>>; true -> <<A/binary, 16#90, N:32/little>> end,
    tuple(T, 1, N, Head, Level + 1, L, Elements);
term(T, A, Level, L = {_, _, Elements, _}) when is_map(T) ->
    map(maps:next(maps:iterator(T)), T, <<A/binary, 16#91, (map_size(T)):32/little>>, Level + 1, L, Elements);
term(T, A, _, _) -> native(T, A).

cut(A, Tag) ->
    put(cut, ?F_CUT),
    <<A/binary, Tag>>.

integer(T, A, _) when T >= -16#8000, T < 16#8000 -> <<A/binary, 16#80, T:16/little>>;
integer(T, A, _) when T >= -16#80000000, T < 16#80000000 -> <<A/binary, 16#81, T:32/little>>;
integer(T, A, _) when T >= -16#8000000000000000, T < 16#8000000000000000 -> <<A/binary, 16#82, T:64/little>>;
integer(T, A, {End, _, _, _}) ->
    case erlang:external_size(T) of
        N when N > 4096; byte_size(A) + N > End ->
            put(cut, ?F_CUT),
            text(5, io_lib:format("integer of ~w bytes", [N]), A);
        _ ->
            Bytes = binary:encode_unsigned(abs(T), little),
            Tag = if T < 0 -> 16#84; true -> 16#83 end,
            <<A/binary, Tag, (byte_size(Bytes)):16/little, Bytes/binary>>
    end.

text(What, Text, A) ->
    Bytes = unicode:characters_to_binary(Text),
    <<A/binary, ?T_TEXT, What, (byte_size(Bytes)):16/little, Bytes/binary>>.

%% Returns the text of a fun, like that of io_lib, but never longer than two names and a number.
fun_text(T) ->
    {_, M} = erlang:fun_info(T, module),
    {_, F} = erlang:fun_info(T, name),
    {_, N} = erlang:fun_info(T, arity),
    case erlang:fun_info(T, type) of
        {_, external} -> io_lib:format("fun ~tw:~tw/~w", [M, F, N]);
        _ -> case {M, erlang:fun_info(T, index), erlang:fun_info(T, uniq)} of
            {erl_eval, _, _} -> io_lib:format("#Fun<erl_eval.~w>", [N]);
            {_, {_, Index}, {_, Uniq}} -> io_lib:format("#Fun<~tw.~w.~w>", [M, Index, Uniq])
        end
    end.

%% Appends the text of a native record: its names as the VM prints them, without its fields. "..." for a type that this
%% build does not know.
native(T, A) ->
    put(cut, ?F_CUT),
    Text = try [["#", native_name(apply(records, get_module, [T]))], ":", native_name(apply(records, get_name, [T])), "{...}"]
    catch
        _:_ -> "..."
    end,
    text(4, Text, A).

native_name(Name) ->
    case atom_to_list(Name) of
        Text = [C | _] when C >= $a, C =< $z ->
            case string:trim(Text, leading, [$_ | lists:seq($0, $9) ++ lists:seq($A, $Z) ++ lists:seq($a, $z)]) of
                [] -> Text;
                _ -> io_lib:write_string(Text, $')
            end;
        Text -> io_lib:write_string(Text, $')
    end.

bits(T, A, {End, _, _, _}) ->
    Size = bit_size(T),
    Room = max(End - byte_size(A), 0),
    Taken = min((Size + 7) div 8, Room),
    Whole = Taken * 8 >= Size,
    Whole orelse put(cut, ?F_CUT),
    Head = case Size rem 8 of 0 -> <<A/binary, 16#92>>; Last -> <<A/binary, 16#93, Last>> end,
    Bytes = if
        Whole -> Pad = (8 - Size rem 8) rem 8, cookie_as_stars(<<T/bitstring, 0:Pad>>);
        true -> without_begun_cookie(part(whole(T), 0, Taken))
    end,
    <<Head/binary, ((Size + 7) div 8):64/little, Taken:32/little, Bytes/binary>>.

%% Returns the bit string without the bits after its last whole byte.
whole(T) when is_binary(T) -> T;
whole(T) -> iolist_to_binary(lists:droplast(bitstring_to_list(T))).

%% Returns the length of a proper list of at most Max bytes, else none.
bytes([], N, _) -> N;
bytes([C | T], N, Max) when is_integer(C), C >= 0, C < 256, N < Max -> bytes(T, N + 1, Max);
bytes(_, _, _) -> none.

list([], A, _, _, _) -> <<A/binary, ?T_END>>;
list(_, A, _, L, Left) when Left =:= 0; byte_size(A) >= element(1, L) -> cut(A, ?T_CUT);
list([H | T], A, Level, L, Left) -> list(T, term(H, A, Level, L), Level, L, Left - 1);
list(T, A, Level, L, _) -> term(T, <<A/binary, ?T_TAIL>>, Level, L).

tuple(_, I, N, A, _, _, _) when I > N -> A;
tuple(_, _, _, A, _, L, Left) when Left =:= 0; byte_size(A) >= element(1, L) -> cut(A, ?T_CUT);
tuple(T, I, N, A, Level, L, Left) -> tuple(T, I + 1, N, term(element(I, T), A, Level, L), Level, L, Left - 1).

map(none, _, A, _, _, _) -> A;
map(_, _, A, _, L, Left) when Left =:= 0; byte_size(A) >= element(1, L) -> cut(A, ?T_CUT);
map({Key, Value, Next}, Map, A, Level, L = {_, _, _, Secrets}, Left) ->
    Hidden = is_secret(Key, Secrets) orelse (lists:member(Key, [value, <<"value">>]) andalso names_a_secret(Map, Secrets)),
    map(maps:next(Next), Map, pair(Key, Value, A, Level, L, Hidden), Level, L, Left - 1).

pair(Key, Value, A, Level, L, Hidden) ->
    Begun = term(Key, A, Level, L),
    case Hidden of
        true -> <<Begun/binary, ?T_REDACTED>>;
        false -> term(Value, Begun, Level, L)
    end.

%% ---- what is hidden: the rules of secret.c -------------------------------------------------------------------------

-define(SECRET_NAME_BYTES, 64).
-define(SECRET_COOKIE_LEAST, 4).
-define(SECRET_COOKIE_INSIDE, 8).

%% Returns {Pattern, Texts}, or none if no name has a word. Texts: for each name, its words in lower case. Pattern: finds
%% each of the texts.
secrets(Names) ->
    case [Text || {Text, _} <- lists:map(fun words/1, Names), Text =/= <<>>] of
        [] -> none;
        Texts -> {binary:compile_pattern(Texts), Texts}
    end.

is_secret(_, none) -> false;
is_secret(Key, {Pattern, Secrets}) ->
    {Text, Ends} = words(name_bytes(Key)),
    binary:match(Text, Pattern) =/= nomatch andalso lists:any(fun(Secret) -> stands_in(Secret, Text, Ends) end, Secrets).

%% Returns true if a map names a secret in one pair and has the value in another pair: #{name => password, value =>
%% ...}.
names_a_secret(Map, Secrets) ->
    lists:any(fun(Key) -> is_map_key(Key, Map) andalso is_secret(map_get(Key, Map), Secrets) end, [name, <<"name">>, key, <<"key">>]).

%% Returns the name of an atom, a binary or a string; <<>> for a key longer than SECRET_NAME_BYTES.
name_bytes(Key) when is_atom(Key) -> name_bytes(atom_to_binary(Key));
name_bytes(Key) when is_binary(Key), byte_size(Key) =< ?SECRET_NAME_BYTES -> Key;
name_bytes([_ | _] = Key) ->
    case bytes(Key, 0, ?SECRET_NAME_BYTES) of none -> <<>>; _ -> list_to_binary(Key) end;
name_bytes(_) -> <<>>.

%% Returns {letters and digits in lower case, positions where a word begins or ends}.
words(Name) -> words(binary_to_list(Name), other, [], 0, []).

words([], _, Text, N, Ends) -> {list_to_binary(lists:reverse(Text)), [N | Ends]};
words([C | Rest], Before, Text, N, Ends) ->
    case {Before, letter(C)} of
        {_, other} -> words(Rest, other, Text, N, Ends);
        {upper, lower} -> words(Rest, lower, [C | Text], N + 1, [N - 1 | Ends]); % the K of APIKey
        {_, Same} when Same =:= Before -> words(Rest, Same, [lower(C) | Text], N + 1, Ends);
        {_, Kind} -> words(Rest, Kind, [lower(C) | Text], N + 1, [N | Ends])
    end.

letter(C) when C >= $a, C =< $z; C >= 128 -> lower;
letter(C) when C >= $A, C =< $Z -> upper;
letter(C) when C >= $0, C =< $9 -> digit;
letter(_) -> other.

lower(C) when C >= $A, C =< $Z -> C + 32;
lower(C) -> C.

stands_in(Secret, Text, Ends) ->
    Bytes = byte_size(Secret),
    lists:any(fun(At) ->
        Behind = At + Bytes,
        Behind =< byte_size(Text) andalso part(Text, At, Bytes) =:= Secret andalso (lists:member(Behind, Ends) orelse
            (lists:member(Behind + 1, Ends) andalso binary:at(Text, Behind) =:= $s))
    end, Ends).

%% Stores the node's cookie, in the owner and in each helper that makes frames.
cookie_is(Cookie) -> put(cookie, Cookie).

stars(Bytes) -> binary:copy(<<"*">>, Bytes).

cookie_as_stars(Text) when byte_size(Text) >= ?SECRET_COOKIE_LEAST ->
    case get(cookie) of Text -> stars(byte_size(Text)); _ -> Text end;
cookie_as_stars(Text) -> Text.

%% Hides the cookie in encoded terms, which contain text unchanged.
without_cookie(Bytes) ->
    case get(cookie) of
        Cookie when is_binary(Cookie), byte_size(Cookie) >= ?SECRET_COOKIE_INSIDE ->
            Hidden = binary:replace(Bytes, Cookie, stars(byte_size(Cookie)), [global]),
            case get(cut) of 0 -> Hidden; _ -> lists:foldl(fun cut_cookie/2, Hidden, begun(Cookie)) end;
        _ -> Bytes
    end.

%% Returns the prefixes of the cookie, longest first.
begun(Cookie) -> [part(Cookie, 0, N) || N <- lists:seq(byte_size(Cookie) - 1, ?SECRET_COOKIE_LEAST, -1)].

cut_cookie(Begun, Bytes) ->
    binary:replace(Bytes, <<Begun/binary, ?T_CUT>>, <<(stars(byte_size(Begun)))/binary, ?T_CUT>>, [global]).

without_begun_cookie(Bytes) ->
    case get(cookie) of
        Cookie when is_binary(Cookie), byte_size(Cookie) >= ?SECRET_COOKIE_INSIDE ->
            case [N || B <- begun(Cookie), N <- [byte_size(B)], N =< byte_size(Bytes), part(Bytes, byte_size(Bytes), -N) =:= B] of
                [N | _] -> <<(part(Bytes, 0, byte_size(Bytes) - N))/binary, (stars(N))/binary>>;
                [] -> Bytes
            end;
        _ -> Bytes
    end.

%% Returns a pid or port as a tracee (etrace_wire.h): the number in the low 28 bits and the serial above; a port is its
%% number.
word(Pid) when is_pid(Pid) ->
    [_, Number, Serial] = string:lexemes(pid_to_list(Pid), "<.>"),
    list_to_integer(Number) bor (list_to_integer(Serial) bsl 28);
word(Port) ->
    [_, _, Number] = string:lexemes(port_to_list(Port), "<.>"),
    list_to_integer(Number).

tracee(Port) when is_port(Port) -> word(Port) bor (1 bsl 63);
tracee(Pid) when is_pid(Pid) -> word(Pid);
tracee(_) -> 0.

%% ---- the owner's own frames, and what becomes of a batch ----------------------------------------------------------

tick(#s{tracer = fallback}) -> fb_now();
tick(_) -> ticks().

%% Adds a frame of the owner to the next batch. A tick only makes a batch necessary, so it is left out if another frame
%% waits. Thousands of modules can each have a notice: if the next batch has no room for a notice, the notice is only
%% counted.
meta(S = #s{meta = []}, tick, []) -> keep(S, [frame(?ETW_TICK, tick(S), 0, [])]);
meta(S, tick, []) -> S;
meta(S, hello, [Hello]) -> keep(S, [frame(?ETW_HELLO, tick(S), 0, [Hello])]);
meta(S = #s{metasize = Size, omitted = N}, module, _) when Size > ?NOTICES_MOST -> S#s{omitted = N + 1};
meta(S, module, Terms) -> meta(S, notice, Terms);
meta(S, Loop, {Pid, MFA}) when Loop =:= endless; Loop =:= root_loops -> keep(S, [frame(?ETW_NOTICE, tick(S), tracee(Pid), [Loop, MFA])]);
meta(S, notice, Terms) -> keep(S, [frame(?ETW_NOTICE, tick(S), 0, Terms)]).

%% Adds a notice that says how many notices were left out of the batch.
meta_ready(S = #s{omitted = 0}) -> S;
meta_ready(S = #s{omitted = N}) -> meta(S#s{omitted = 0}, notice, [omitted, N]).

%% Makes a section of a batch. Seen and Lost: the counters since the session began.
section(Ring, Seen, Lost, Frames) ->
    Counts = << <<N:64/little>> || N <- tuple_to_list(Lost) >>,
    iolist_to_binary([<<Ring:32/little, (iolist_size(Frames)):32/little, Seen:64/little>>, Counts, Frames]).

%% Returns the sections that the owner adds to a batch before those of the rings. Its own frames are in the first one,
%% because batch_more/4 extends that one.
own_sections(S = #s{meta = []}) -> system_section(S);
own_sections(S = #s{meta = Frames}) -> <<(section(?META, S#s.offered, ?NO_LOSS, Frames))/binary, (system_section(S))/binary>>.

%% Keeps frames for the next batch.
keep(S = #s{meta = Meta, metasize = Size}, Frames) ->
    S#s{meta = [Meta | Frames], metasize = Size + iolist_size(Frames)}.

%% Drops names if the next batch has no room for them.
keep_names(S = #s{metasize = Size}, Frames) ->
    case Size + iolist_size(Frames) =< ?META_MOST of true -> keep(S, Frames); false -> S end.

%% Returns {Message, Seq, true if the batch is the last}. The message carries the batch, with Frames added at the end of
%% the owner's section. The frames of a section must be in the order of their ticks: otherwise the client would print a
%% notice too late.
batch_message(Batch, Frames, Offered) ->
    Seq = field(Batch, 8, 8),
    Last = field(Batch, 52, 4) band 2 =:= 2,
    case iolist_size(Frames) of
        0 -> {<<$B, Batch/binary>>, Seq, Last};
        More -> {iolist_to_binary(batch_more(Batch, Frames, More, Offered)), Seq, Last}
    end.

batch_more(Batch, Frames, More, Offered) ->
    Bytes = byte_size(Batch),
    Sections = field(Batch, 48, 4),
    {Begin, Grown, Count} = case Bytes > 56 andalso field(Batch, 56, 4) of
        ?META ->
            Own = field(Batch, 60, 4),
            {[<<?META:32/little, (Own + More):32/little>>, part(Batch, 64, 72 + Own), Frames, part(Batch, 136 + Own, Bytes - 136 - Own)], More,
                Sections};
        _ ->
            {[section(?META, Offered, ?NO_LOSS, Frames), part(Batch, 56, Bytes - 56)], More + 80, Sections + 1}
    end,
    [<<$B>>, part(Batch, 0, 4), <<(Bytes + Grown):32/little>>, part(Batch, 8, 40), <<Count:32/little>>, part(Batch, 52, 4), Begin].

part(Binary, At, Bytes) -> binary:part(Binary, At, Bytes).

field(Binary, At, Bytes) -> binary:decode_unsigned(part(Binary, At, Bytes), little).
