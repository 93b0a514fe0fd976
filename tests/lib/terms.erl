%% SPDX-License-Identifier: Apache-2.0
%% Terms of every type that the VM has, and of every size at which it stores or encodes a type in another way.
-module(terms).
-export([all/0, nested/0]).

-if(?OTP_RELEASE >= 29).
-record #it{id}.
records() -> [#it{id = 1}, #it{id = [#it{id = 2}]}].
-else.
records() -> [].
-endif.

all() ->
    [a, '', 'an atom', true, list_to_atom(lists:duplicate(255, $x)),
        0, 127, 128, -1, 1 bsl 15, 1 bsl 31, -(1 bsl 31), 1 bsl 59, -(1 bsl 59), 1 bsl 63, -(1 bsl 63), 1 bsl 64, 1 bsl 2000, -(1 bsl 70), 1 bsl 4000,
        1.5, -0.0, 1.0e300,
        <<>>, <<"x">>, binary:copy(<<"y">>, 65), binary:copy(<<"z">>, 2000), part(),
        <<1:1>>, <<5, 1:3>>, <<0:7>>, <<1:520, 1:3>>, <<0:4001>>, bits(),
        [], [1], [a | b], "text", lists:seq(1, 500), [<<1:1>> | <<2:2>>],
        {}, {a}, {a, 1}, {{a}}, {[]}, {1, 2}, {<<1:1>>, []}, list_to_tuple(lists:seq(1, 300)),
        #{}, #{a => 1}, #{<<1:1>> => <<2:2>>}, maps:from_keys(lists:seq(1, 33), x), #{'__struct__' => work}, #{'__struct__' => 1},
        self(), hd(erlang:ports()), make_ref(), alias(), fun terms:all/0, fun(X) -> X end,
        foreign(<<88>>, <<0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3>>), foreign(<<89>>, <<0, 0, 0, 1, 0, 0, 0, 3>>),
        foreign(<<90, 0, 1>>, <<0, 0, 0, 3, 0, 0, 0, 1>>),
        {'$gen_call', {self(), make_ref()}, {get, 1}}, {'$gen_cast', <<1:1>>}, {'$gen_call', x, <<1:1>>}]
        ++ records().

%% Each of them inside of another one.
nested() ->
    lists:append([[{t, T}, {T, t}, [T], [T | T], #{k => T}, #{T => k}, {'$gen_cast', T}, {'$gen_call', {self(), make_ref()}, {T}}] || T <- all()]).

%% A binary inside of a larger one, which does not begin at a byte of it.
part() -> <<_:3, Part:1000/binary, _/bits>> = <<(binary:copy(<<170>>, 1001))/binary, 0:3>>, Part.
bits() -> <<_:3, Bits:70/bits, _/bits>> = binary:copy(<<170>>, 100), Bits.

%% A term of a node that does not exist.
foreign(Tag, Rest) -> binary_to_term(<<131, Tag/binary, 119, 7, "far@off", Rest/binary>>).
