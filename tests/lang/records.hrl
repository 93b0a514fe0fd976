%% SPDX-License-Identifier: Apache-2.0
%% Records for the tables: default values, types, comments and strings that look like code.
-ifndef(RECORDS_HRL).
-define(RECORDS_HRL, true).
-record(user, {id, name = "a, b} -record(no, {x})" :: string(), address = undefined}).
-record(address, {
    street,        % the street, {with} brackets
    city = 'Be,rn' :: atom() | binary(),
    zip = [1, {2, "}"}]
}).
-record('odd rec', {'a b', c = $,}).
-record(empty, {}).
-type t() :: #user{}.
-record(typed, {a = #{x => 1} :: #{x := integer()}, b = fun(_) -> ok end, c :: t()}).
-record(macro, {a = ?X, b, bytes = <<1, 2>> :: <<_:16>>, sum = 1 + 2}).
-record(broken, ?FIELDS).
-record(first, {a}). -record(second, {b = "."}).  -record(third, {c}). % the reader's apostrophe, -record(no, {x}).
-record(after_it, {d}).
f() -> "-record(not_me, {x}).".
-endif.
