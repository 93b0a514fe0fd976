%% SPDX-License-Identifier: Apache-2.0
%% Compares the printers of terms. It makes random terms of every type, encodes them like the tracer, and prints them
%% with etrace and io_lib. The texts must be equal, except that etrace writes characters that it never shows as \x{..}.
%% Prints TAP.
%%     print:main(Driver, Cases, Floats, Seed)      with io_lib
%%     print:inspect(Driver, Cases, Seed)           with Elixir's inspect/2, on a system with Elixir
-module(print).
-export([main/4, inspect/3, wire/1, term/1]).

main(Driver, Cases, Floats, Seed) ->
    rand:seed(exsss, Seed),
    Hidden = hidden(Driver),
    Fixed = fixed(),
    Random = [term(4) || _ <- lists:seq(1, Cases)],
    Groups = [{"terms that were chosen", narrow(Fixed)},
              {io_lib:format("~w random terms", [Cases]), narrow(Random)},
              {io_lib:format("~w random floats", [Floats]), [float_of(I) || I <- lists:seq(1, Floats)]}],
    unicode = io:printable_range(),
    [compare(I, Driver, "~0tp", Hidden, Name, Terms) || {I, {Name, Terms}} <- lists:zip(lists:seq(1, length(Groups)), Groups)],
    Wide = [[300], [16#10ffff, 1], "ж", "aж" | [T || T <- Random, is_list(T), is_wide(T), is_flat(T)]],
    compare(length(Groups) + 1, Driver, "~w", Hidden, "lists beyond Latin-1", Wide),
    order(length(Groups) + 2, Driver, Cases),
    io:format("1..~w~n", [length(Groups) + 2]),
    halt(0).

inspect(Driver, Cases, Seed) ->
    rand:seed(exsss, Seed),
    put(elixir, true),
    Hidden = hidden(Driver),
    Groups = [{"terms that were chosen", [T || T <- fixed(), not is_function(T) orelse element(2, erlang:fun_info(T, type)) =:= external]
                  ++ elixir_fixed()},
              {io_lib:format("~w random terms", [Cases]), [term(4) || _ <- lists:seq(1, Cases)]}],
    [begin
        Got = printed(Driver, ["elixir"], Terms),
        Options = [{limit, infinity}, {width, infinity}, {printable_limit, infinity}],
        Bad = [{G, W} || {T, G} <- lists:zip(Terms, Got),
            W <- [show_elixir('Elixir.Kernel':inspect(T, Options), Hidden)], G =/= W],
        io:format("~s ~w - ~s print as inspect does (Elixir ~s)~n",
            [case Bad of [] -> "ok"; _ -> "not ok" end, I, Name, 'Elixir.System':version()]),
        [io:format("# got  ~ts~n# want ~ts~n", [short(G), short(W)]) || {G, W} <- lists:sublist(Bad, 12)]
    end || {I, {Name, Terms}} <- lists:zip(lists:seq(1, length(Groups)), Groups)],
    io:format("1..~w~n", [length(Groups)]),
    halt(0).

show_elixir(Text, Hidden) ->
    unicode:characters_to_binary([case C >= 127 andalso lists:any(fun({A, B}) -> C >= A andalso C =< B end, Hidden) of
        false -> C;
        true when C < 256 -> io_lib:format("\\x~2.16.0B", [C]);
        true when C < 65536 -> io_lib:format("\\u~4.16.0B", [C]);
        true -> io_lib:format("\\u{~.16B}", [C])
    end || C <- unicode:characters_to_list(Text)]).

elixir_fixed() ->
    [nil, 'Elixir.Foo', 'Elixir.Foo.Bar', 'Elixir', 'Elixir.foo', 'Foo', foo, 'foo?', 'foo!', 'foo?x', 'Elixir.Foo.', 'Elixir.', 'a@b',
     '@a', '1a', '+', '==', '<<>>', '%{}', '{}', '%', '..', '...', '->', '=>', '//', 'and', 'not', 'in', 'when', 'do', 'end', 'fn', '::',
     [{a, 1}, {b, 2}], [{a, 1}, {'b c', 2}], [{'Elixir.Foo', 1}], [{a, 1} | b], [{a, 1}, b], [{nil, 1}, {'foo?', 2}, {'+', 3}, {'Foo', 4}],
     #{a => 1}, #{a => 1, 'b c' => 2}, #{a => 1, <<"b">> => 2}, #{'Elixir.Foo' => 1}, #{1 => 2}, #{nil => 1}, #{},
     <<"a#{b">>, <<"a\\b\"c">>, <<"\a\b\t\n\v\f\r\e\d">>, <<0>>, <<"a", 0>>, <<1:3>>, <<"a", 1:3>>, "abc", "a\"b", [7], [0], [127], [233],
     #{'__struct__' => 'Elixir.ArgumentError', message => <<"x">>, '__exception__' => true}, #{'__struct__' => x, a => 1}] ++ structs().

%% Structs for which Elixir has its own Inspect implementations.
structs() ->
    {Structs, _} = 'Elixir.Code':eval_string(<<"[
        ~D[2024-02-03], ~D[-0001-01-01], ~T[01:02:03], ~T[01:02:03.000450], ~T[23:59:59.9], ~N[2024-01-02 03:04:05],
        ~N[2024-01-02 03:04:05.60], ~U[2024-01-02 03:04:05Z], ~U[2024-01-02 03:04:05.123456Z],
        %DateTime{year: 2024, month: 1, day: 2, zone_abbr: \"CET\", hour: 1, minute: 2, second: 3, microsecond: {0, 0},
            utc_offset: 3600, std_offset: 0, time_zone: \"Europe/Warsaw\"},
        %DateTime{year: 2024, month: 7, day: 2, zone_abbr: \"NST\", hour: 1, minute: 2, second: 3, microsecond: {5000, 3},
            utc_offset: -12600, std_offset: 3600, time_zone: \"America/St_Johns\"},
        MapSet.new([3, 1, 2]), MapSet.new(), MapSet.new(a: 1, b: 2), MapSet.new([:x, {:a, 1}]), MapSet.new([~D[2024-02-03]]),
        MapSet.new(~c\"abc\"), 1..2, 2..1//1, 1..10//3, 3..1//-1, -5..-1, 0..0, [1..2, %{r: 1..3}],
        Date.range(~D[2024-01-01], ~D[2024-01-05]), Date.range(~D[2024-01-05], ~D[2024-01-01], -2),
        Regex.compile!(\"x\"), Regex.compile!(\"a/b[\\\"x]\", \"iu\"), Regex.compile!(\"a\\\\/b\\\\d\\n\", \"msx\"), Regex.compile!(\"\\t\", \"U\"),
        Version.parse!(\"1.2.3-rc.1+b\"), Version.parse!(\"1.2.3\"), Version.parse_requirement!(\"~> 1.0 or 2.0.0\"),
        URI.parse(\"http://u@a.b:8080/c?d#e\"), URI.parse(\"/x\"), %URI{}, %KeyError{key: :a, term: %{}},
        %File.Error{reason: :enoent, path: \"x\", action: \"open\"}, %RuntimeError{}, %UndefinedFunctionError{module: A, function: :b, arity: 1},
        {:ok, [at: ~D[2024-02-03], of: %{1..2 => MapSet.new([1])}]}]">>),
    Structs.

%% With +pc unicode, io_lib prints lists beyond Latin-1 as text, which etrace never does.
narrow(Terms) -> [T || T <- Terms, not is_wide(T)].

%% Whether a term has such a list.
is_wide([H | T]) -> is_wide(H) orelse (is_integer(H) andalso H > 255) orelse is_wide(T);
is_wide(T) when is_tuple(T) -> lists:any(fun is_wide/1, tuple_to_list(T));
is_wide(T) when is_map(T) -> is_wide(maps:keys(T)) orelse is_wide(maps:values(T));
is_wide(_) -> false.

is_flat([H | T]) -> is_integer(H) andalso is_flat(T);
is_flat(T) -> T =:= [].

compare(I, Driver, Format, Hidden, Name, Terms) ->
    Got = printed(Driver, ["erlang ", erlang:system_info(otp_release)], Terms),
    Bad = [{T, G, W} || {T, G} <- lists:zip(Terms, Got), W <- [want(Format, T, Hidden)], G =/= W],
    io:format("~s ~w - ~s print as io_lib does (OTP ~s)~n",
        [case Bad of [] -> "ok"; _ -> "not ok" end, I, Name, erlang:system_info(otp_release)]),
    [io:format("# got  ~ts~n# want ~ts~n", [short(G), short(W)]) || {_, G, W} <- lists:sublist(Bad, 5)],
    ok.

%% Compares the order of random terms, which are alike, and of all pairs of their smallest parts.
order(I, Driver, Cases) ->
    Small = smallest(),
    Pairs = [{A, B} || A <- Small, B <- Small] ++ [{alike(3), alike(3)} || _ <- lists:seq(1, Cases)],
    Got = orders(driven(Driver, ["order"], lists:append([[A, B] || {A, B} <- Pairs]))),
    Bad = [{A, B, G} || {{A, B}, G} <- lists:zip(Pairs, Got), not is_order(G, A, B)],
    io:format("~s ~w - ~w pairs of terms compare as in the VM (OTP ~s)~n",
        [case Bad of [] -> "ok"; _ -> "not ok" end, I, length(Pairs), erlang:system_info(otp_release)]),
    [io:format("# got ~s for ~0tp and ~0tp~n", [G, A, B]) || {A, B, G} <- lists:sublist(Bad, 12)],
    ok.

orders(<<G:2/binary, Rest/binary>>) -> [G | orders(Rest)];
orders(<<>>) -> [].

is_order(<<"!!">>, A, B) -> A /= B andalso lists:any(fun(T) -> has_text(T) orelse has_map_key(T) end, [A, B]);
is_order(<<$=, $=>>, A, B) -> A =:= B;
is_order(<<$=, _>>, A, B) -> A == B andalso A =/= B;
is_order(<<$<, Exact>>, A, B) -> A < B andalso Exact =/= $=;
is_order(<<$>, Exact>>, A, B) -> A > B andalso Exact =/= $=;
is_order(_, _, _) -> false.

%% Whether the tracer encodes a part of the term as a text, which has no known order.
has_text(T) when is_reference(T); is_function(T) -> true;
has_text([H | T]) -> has_text(H) orelse has_text(T);
has_text(T) when is_tuple(T) -> has_text(tuple_to_list(T));
has_text(T) when is_map(T) -> has_text(maps:to_list(T));
has_text(_) -> false.

%% Whether a key of a map contains a map with several atoms as keys. OTP 29 compares such keys by when their atoms were
%% made, which the tracer does not know.
has_map_key(M) when is_map(M) -> lists:any(fun has_atom_keys/1, maps:keys(M)) orelse has_map_key(maps:to_list(M));
has_map_key([H | T]) -> has_map_key(H) orelse has_map_key(T);
has_map_key(T) when is_tuple(T) -> has_map_key(tuple_to_list(T));
has_map_key(_) -> false.

has_atom_keys(M) when is_map(M) -> length([K || K <- maps:keys(M), is_atom(K)]) > 1 orelse has_atom_keys(maps:to_list(M));
has_atom_keys([H | T]) -> has_atom_keys(H) orelse has_atom_keys(T);
has_atom_keys(T) when is_tuple(T) -> has_atom_keys(tuple_to_list(T));
has_atom_keys(_) -> false.

alike(0) -> pick(smallest());
alike(N) ->
    case rand:uniform(7) of
        1 -> {alike(N - 1)};
        2 -> [alike(N - 1) | pick([[], alike(N - 1)])];
        3 -> maps:from_list([{K, alike(N - 1)} || K <- [a, b, "c"]]);
        4 -> maps:from_list([{I, pick([a, 1, 1.0])} || I <- lists:seq(1, 34), I =/= 7] ++ [{pick([7, 7.0]), pick([a, b])}]);
        5 -> #{alike(N - 1) => alike(N - 1)};
        _ -> maps:from_list([{pick(smallest()), pick(smallest())} || _ <- some_of(4)])
    end.

smallest() ->
    [0, 1, 2, -1, 255, 0.0, -0.0, 1.0, 1.5, 2.0, -1.0, 1 bsl 53, (1 bsl 53) + 1, float(1 bsl 53), 1 bsl 62, float(1 bsl 62),
        (1 bsl 63) - 1, 1 bsl 63, float(1 bsl 63), (1 bsl 63) + 1, -(1 bsl 63), float(-(1 bsl 63)), -(1 bsl 63) - 1, 1 bsl 70,
        (1 bsl 70) + 1, float(1 bsl 70), (1 bsl 70) - 1, 1.7976931348623157e308, -1.7976931348623157e308, 1 bsl 1100,
        -(1 bsl 1100), a, b, aa, 'é', 'ж', '', <<>>, <<1>>, <<1:1>>, <<128>>, <<1:1, 0:8>>, <<"abc">>, {}, [], #{}, "a", [a | b],
        [a | {}], [a | <<>>], [a | 1], pid(1, 2), pid(2, 1), pid(3, 0), hd(ports()), lists:last(ports()), fun lists:seq/2,
        fun lists:map/2].

pid(N, Serial) -> list_to_pid(lists:flatten(io_lib:format("<0.~w.~w>", [N, Serial]))).

pick(List) -> lists:nth(rand:uniform(length(List)), List).

short(Text) -> string:slice(Text, 0, 300).

want(Format, T, Hidden) ->
    unicode:characters_to_binary([show(C, Hidden) || C <- lists:flatten(io_lib:format(Format, [T]))]).

show(C, _) when C < 127 -> C;
show(C, Hidden) ->
    case lists:any(fun({A, B}) -> C >= A andalso C =< B end, Hidden) of
        true -> io_lib:format("\\x{~.16B}", [C]);
        false -> C
    end.

hidden(Driver) ->
    [begin [A, B] = string:split(L, "-"), {list_to_integer(A), list_to_integer(B)} end
        || L <- string:lexemes(os:cmd(Driver ++ " hidden"), "\n")].

%% ---- the driver reads and writes files, because a port cannot signal the end of the input ----

printed(Driver, Args, Terms) -> [T || <<N:32/little, T:N/binary>> <= driven(Driver, Args, Terms)].

driven(Driver, Args, Terms) ->
    Base = filename:join(case os:getenv("TMPDIR") of false -> "/tmp"; D -> D end,
        "print-" ++ os:getpid() ++ "-" ++ integer_to_list(erlang:unique_integer([positive]))),
    In = Base ++ ".in", Out = Base ++ ".out",
    ok = file:write_file(In, [begin W = wire(T), [<<(byte_size(W)):32/little>>, W] end || T <- Terms]),
    "" = os:cmd(lists:flatten([Driver, " ", Args, " < ", In, " > ", Out])),
    {ok, Written} = file:read_file(Out),
    file:delete(In), file:delete(Out),
    Written.

%% ---- the encoding ----

wire(T) -> iolist_to_binary([w(T)]).

w(T) when is_integer(T), T >= 0, T < 128 -> T;
w(T) when is_integer(T), T >= -16#8000, T < 16#8000 -> <<16#80, T:16/little>>;
w(T) when is_integer(T), T >= -16#80000000, T < 16#80000000 -> <<16#81, T:32/little>>;
w(T) when is_integer(T), T >= -16#8000000000000000, T < 16#8000000000000000 -> <<16#82, T:64/little>>;
w(T) when is_integer(T) ->
    B = binary:encode_unsigned(abs(T), little),
    [if T < 0 -> 16#84; true -> 16#83 end, <<(byte_size(B)):16/little>>, B];
w(T) when is_float(T) -> <<16#85, T:64/float-little>>;
w(T) when is_atom(T) ->
    B = atom_to_binary(T),
    [16#88, <<(byte_size(B)):16/little>>, B];
w(T) when is_pid(T) -> pid(pid_to_list(T));
w(T) when is_port(T) -> "#Port<0." ++ N = port_to_list(T), <<16#8a, (list_to_integer(lists:droplast(N))):64/little>>;
w(T) when is_reference(T) -> text(0, io_lib:format("~0tp", [T]));
w(T) when is_function(T) -> text(1, io_lib:format("~0tp", [T]));
w(T) when is_bitstring(T) ->
    Bits = bit_size(T) rem 8,
    Pad = (8 - Bits) rem 8,
    B = <<T/bitstring, 0:Pad>>,
    [if Bits =:= 0 -> 16#92; true -> [16#93, Bits] end, <<(byte_size(B)):64/little, (byte_size(B)):32/little>>, B];
w([]) -> 16#8c;
w(T) when is_list(T) ->
    case rand:uniform(2) =:= 1 andalso is_bytes(T) of
        true -> [16#97, <<(length(T)):16/little>>, T];
        false -> [16#8d, elements(T)]
    end;
w(T) when is_tuple(T), tuple_size(T) < 32 -> [16#c0 + tuple_size(T), [w(E) || E <- tuple_to_list(T)]];
w(T) when is_tuple(T) -> [16#90, <<(tuple_size(T)):32/little>>, [w(E) || E <- tuple_to_list(T)]];
w(T) when is_map(T) ->
    [16#91, <<(map_size(T)):32/little>>, case get(elixir) of true -> [[w(K), w(V)] || {K, V} <- maps:to_list(T)]; _ -> pairs(maps:next(maps:iterator(T))) end].

%% the pairs of a map, in the order of io_lib
pairs(none) -> [];
pairs({K, V, I}) -> [w(K), w(V), pairs(maps:next(I))].

elements([]) -> 16#8e;
elements([H | T]) -> [w(H), elements(T)];
elements(T) -> [16#8f, w(T)].

is_bytes(L) -> try lists:all(fun(C) -> is_integer(C) andalso C >= 0 andalso C < 256 end, L) catch _:_ -> false end.

pid("<0." ++ Rest) ->
    [N, S] = string:split(lists:droplast(Rest), "."),
    <<16#89, (list_to_integer(N) bor (list_to_integer(S) bsl 28)):64/little>>.

text(What, Text) ->
    B = unicode:characters_to_binary(Text),
    [16#8b, What, <<(byte_size(B)):16/little>>, B].

%% ---- terms ----

term(0) -> leaf();
term(N) ->
    case rand:uniform(12) of
        1 -> list_to_tuple(some(N));
        2 -> some(N);
        3 -> case some(N) of [] -> []; L -> L ++ leaf() end;
        4 -> maps:from_list([{term(N - 1), term(N - 1)} || _ <- some_of(6)]);
        5 -> maps:from_list([{atom(), term(N - 1)} || _ <- some_of(6)]);
        6 when N =:= 4 -> list_to_tuple([leaf() || _ <- lists:seq(1, 20 + rand:uniform(40))]);
        7 when N =:= 4 -> maps:from_list([{leaf(), leaf()} || _ <- lists:seq(1, 20 + rand:uniform(40))]);
        _ -> leaf()
    end.

some(N) -> [term(N - 1) || _ <- some_of(6)].
some_of(N) -> lists:seq(1, rand:uniform(N) - 1).

leaf() ->
    case rand:uniform(16) of
        1 -> integer();
        2 -> rand:uniform(300) - 150;
        3 -> float_of(rand:uniform(1000));
        4 -> atom();
        5 -> atom();
        6 -> chars(16#7f);
        7 -> chars(16#ff);
        8 -> chars(16#10ffff);
        9 -> unicode:characters_to_binary(chars(16#7f));
        10 -> unicode:characters_to_binary(chars(16#2fff));
        11 -> list_to_binary(chars(16#ff));
        12 -> rand:bytes(rand:uniform(8) - 1);
        13 -> N = rand:uniform(30), <<B:N/bitstring, _/bitstring>> = rand:bytes(4), B;
        14 -> [];
        15 -> hd(shuffle(case get(elixir) of true -> [self(), hd(ports()), make_ref(), fun lists:seq/2]; _ ->
            [self(), hd(ports()), make_ref(), fun lists:seq/2, fun() -> ok end, fun main/4] end));
        16 -> [rand:uniform(64) + 31 || _ <- some_of(10)]
    end.

ports() -> erlang:ports().

shuffle(L) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- L])].

integer() ->
    N = case rand:uniform(3) of
        1 -> 1 bsl rand:uniform(200);
        2 -> rand:uniform(1 bsl 70);
        3 -> binary:decode_unsigned(rand:bytes(rand:uniform(300)))
    end + rand:uniform(3) - 2,
    case rand:uniform(2) of 1 -> N; 2 -> -N end.

char(Max) ->
    case rand:uniform(20) of
        1 -> rand:uniform(40) - 1;
        2 -> lists:nth(rand:uniform(7), "\"'\\\e\t\n ");
        3 -> 126 + rand:uniform(40);
        _ -> rand:uniform(Max)
    end.

chars(Max) ->
    Only = rand:uniform(2),
    [C || _ <- some_of(12), C0 <- [char(Max)],
        C <- [if Only =:= 1, C0 < 32 -> $a; C0 > Max -> $b; C0 >= 16#d800, C0 < 16#e000 -> $c; true -> C0 end]].

atom() ->
    Elixir = get(elixir) =:= true,
    case rand:uniform(4) of
        1 when Elixir -> hd(shuffle([ok, nil, true, 'Elixir.Foo.Bar', 'a b', 'x?', 'X', 'é', '+']));
        1 -> hd(shuffle([ok, error, 'after', 'maybe', 'else', 'and', 'div', '', 'Elixir.Foo', 'a b', x@y, a1_B, 'don\'t', '_x',
            'é', 'éÀ', '÷', 'x÷', 'x×', 'ÿ', 'ß', 'Àb', 'ж', 'aж', 'cond', 'let', 'of', 'query', 'fun', 'end', 'maybe_not']));
        2 -> list_to_atom(lists:sublist(chars(16#7f), 20));
        3 -> list_to_atom(chars(case get(elixir) of true -> 16#ff; _ -> 16#2fff end));
        4 -> list_to_atom([$a + rand:uniform(26) - 1 || _ <- some_of(9)])
    end.

float_of(I) when I rem 10 =:= 0 -> any_float();
float_of(I) when I rem 10 =:= 1 -> rand:uniform(1000000) / 1000;
float_of(I) when I rem 10 =:= 2 -> math:pow(10, rand:uniform(40) - 20);
float_of(I) when I rem 10 =:= 3 -> math:pow(2, rand:uniform(2000) - 1040);
float_of(I) when I rem 10 =:= 4 -> float(rand:uniform(1 bsl 60));
float_of(I) when I rem 10 =:= 5 -> (rand:uniform(200) - 100) / 8;
float_of(I) when I rem 10 =:= 6 -> rand:uniform() * math:pow(10, rand:uniform(30) - 15);
float_of(I) when I rem 10 =:= 7 -> float(rand:uniform(3000));
float_of(I) when I rem 10 =:= 8 -> rand:uniform(1 bsl rand:uniform(45)) / math:pow(10, rand:uniform(7) - 1);
float_of(_) -> -rand:uniform(1 bsl 30) * math:pow(10, rand:uniform(20) - 10).

any_float() ->
    try <<F/float>> = rand:bytes(8), F catch error:{badmatch, _} -> any_float() end.

fixed() ->
    [0.0, -0.0, 1.0, 0.1, 0.3, 1.0e22, 1.0e23, 5.0e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 9007199254740991.0,
     9007199254740992.0, 9007199254740993.0, 123456789012345680.0, 0.001, 0.0001, 0.00001, 1.5e-5, 100.0, 1.0e5, 123400.0,
     1.0e15, 1.0e16, math:pow(2, -44), math:pow(2, 89), math:pow(2, -1022), 4.35, 4.349999999999999, 2.0e-3, 1.0e10,
     <<>>, [], {}, #{}, "", "abc", [0], "a\0", [1114111], [55296], [$a, -1], [$a | b], [[]], [[], []], {[]}, <<1:1>>, <<"a", 1:1>>,
     <<"abc"/utf8>>, <<"åäö"/utf8>>, <<229, 228, 246>>, <<"å", 200>>, <<16#e2, 16#80, 16#8b>>, <<16#c2, 16#a0>>, <<127>>, <<"\d">>,
     <<"ж"/utf8>>, "ж", [1078, 200], "\x{200b}", "\x{202e}", <<"\x{202e}"/utf8>>, 'a\x{202e}', "\x{ad}", [16#fffe], [16#ffff],
     [16#e000], [16#10ffff], "\b\t\n\v\f\r\e\s\d", [7], [14], "\"", <<"\"\\">>, '\'', '\\', '"', "'", '\n', '\x{80}', '\x{9f}',
     '\x{a0}', [160], [159], <<159>>, <<160>>, <<"a", 160>>, <<"a\e">>, #{a => "b", "c" => <<"d">>}, #{1 => 2, 1.0 => 3},
     list_to_tuple(lists:seq(1, 31)), list_to_tuple(lists:seq(1, 32)), list_to_tuple(lists:seq(1, 300)),
     maps:from_list([{I, I} || I <- lists:seq(1, 40)]), lists:seq(1, 300), lists:duplicate(300, $x), [[[[[[a]]]]]],
     127, 128, -1, 32767, 32768, -32768, -32769, 1 bsl 31, -(1 bsl 31), -(1 bsl 31) - 1, 1 bsl 63, -(1 bsl 63), -(1 bsl 63) - 1,
     1 bsl 64, 1 bsl 59, 1000000000, 999999999, 1000000000000000000, math_pow(10, 18), math_pow(10, 27), math_pow(10, 400) - 1,
     self(), hd(ports()), make_ref(), fun lists:seq/2, fun main/4,
     'after', 'and', 'andalso', 'band', 'begin', 'bnot', 'bor', 'bsl', 'bsr', 'bxor', 'case', 'catch', 'cond', 'div', 'else',
     'end', 'fun', 'if', 'let', 'maybe', 'not', 'of', 'or', 'orelse', 'receive', 'rem', 'try', 'when', 'xor', query, spec, record].

math_pow(B, E) -> lists:foldl(fun(_, A) -> A * B end, 1, lists:seq(1, E)).
