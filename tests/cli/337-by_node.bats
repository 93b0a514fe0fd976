#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `by` on the node: the node counts calls by keys and sends rows instead of events. A second client records the same
# calls, and its table must be the same.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_share bynode; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    [[ $NODE != "$LIVE_NODE" ]] || nodes_stop # those that a test started beside it
    live_teardown
}

# Counts on the node during the calls, while another client records them: a table as JSON in $OUT and in $ALL.
counted() {
    local counts=$BATS_TEST_TMPDIR/counts recorder
    ALL=$BATS_TEST_TMPDIR/all
    rm -f "$ALL.etr"
    [[ $("$ETRACE_BIN" explain --format json "${@:1:1}") == *'"on_node":true'* ]]
    OUT=$BATS_TEST_TMPDIR/recorded
    trace --rate 10000000 --size "${SIZE:-1024}" -o "$ALL.etr" "${@:1:1}"
    recorder=$TRACER
    OUT=$counts
    ERR=$BATS_TEST_TMPDIR/err.counts
    trace --rate "${RATE:-100}" --size "${SIZE:-1024}" --json "${@:1:1}" # a rate cuts events, not counts
    on_node "$2"
    trace_end
    assert_success
    TRACER=$recorder
    OUT=$BATS_TEST_TMPDIR/recorded
    ERR=$BATS_TEST_TMPDIR/err
    trace_end
    assert_success
    "$ETRACE_BIN" replay -q --as tablejson "$ALL.etr" >"$ALL"
    OUT=$counts
    ERR=$BATS_TEST_TMPDIR/err.counts
    jq -e 'select(.type == "table") | .lost == {} and .missing == 0' "$ALL" >/dev/null
}

rows() {
    jq -c 'if .type == "row" then . elif .type == "table" then {other, cut, skipped, without_result, without_call} else empty end' "$1" | sort
}

# The rows with numbers of values instead of durations, which differ between two clients.
untimed() {
    rows "$1" | jq -c '(.values // empty) |= with_entries(.value |= if type == "array" then map(.count) | add elif type == "object" then keys else type end)'
}

same_untimed() {
    [[ -s $ALL ]]
    (($(untimed "$ALL" | grep -c '"row"') == $1))
    diff <(untimed "$ALL") <(untimed "$OUT")
}

same() { # [ROWS]
    local all
    [[ -s $ALL ]]
    all=$(rows "$ALL")
    [[ $all == *'"row"'* && (! ${1:-} || $(grep -c '"row"' <<<"$all") == "$1") ]]
    diff <(rows "$OUT") - <<<"$all"
}

CALLS='[work:two(lists:nth(1 + N rem 9, [a, {b, N rem 4}, 1, 1.0, <<"x">>, [N rem 2], #{k => N rem 4}, self(), -7]), N rem 10) || N <- lists:seq(1, 2000)]'

# bats test_tags=long
@test "the node counts what a complete recording counts" {
    counted 'work:two(K, N) by K, N: count' "$CALLS"
    same 110
    counted 'work:two(K, _) by tag(K), element(1, K), pid, node' "$CALLS"
    same
    counted 'work:two({_, N}, M) by N: sum(M), max(M), count, min(M), avg(M), hist(M), quantiles(N)' "$CALLS"
    same 4
    # A term is another key than the same term as an element.
    counted 'work:two(K, _) by element(1, K): count' '[work:two(K, 1) || _ <- [1, 2, 3], K <- [b, {b, 1}, a, {b, 2}, {a}, b]]'
    same 3
    counted 'work:one/1 by caller' 'work:one(4), [work:one(1) || _ <- [1, 2]], lists:foreach(fun work:one/1, [1, 2])'
    same
}

# bats test_tags=long
@test "the node counts results and durations as a complete recording does" {
    counted 'work:caught(_, _) | work:raise(_, _) by class, f: count' \
        '[work:caught(C, N) || C <- [error, exit, throw], N <- lists:seq(1, 50)]'
    same 4
    counted 'work:caught(_, _) | work:raise(_, _) by reason, tag(reason): count' \
        '[work:caught(error, R) || R <- [a, {b, 1}, {b, 2}, 3, badarg, <<"x">>]]'
    same
    counted 'work:two(K, N) by element(1, ret), N: count, sum(N)' "$CALLS"
    same
    counted 'work:fib(N) by ret, tag(ret), mfa, m, f, a: count, sum(ret), avg(ret), max(ret), hist(N)' '[work:fib(N) || N <- lists:seq(1, 14)]'
    same
    counted 'work:two(K, N) by K: sum(N), sum(element(2, ret)), hist(N), count' '[work:two(N rem 3, N) || N <- lists:seq(1, 50)]'
    same 3
    counted 'work:even(_) | work:odd(_) by f, ret' 'work:even(20), work:odd(20)'
    same 4
    counted 'work:two(_, _) by caller, ret: count' 'work:two(a, 1), [work:two(b, 1) || _ <- [1, 2]]'
    same
}

# Sends and receives the messages {mark, _, _} and {'$gen_cast', {mark, _}}, also by a name, to a name that nobody has, and
# from a timer.
MESSAGES='begin
    P = spawn(fun F() -> receive stop -> ok; _ -> F() end end),
    register(marked, P),
    [begin P ! {mark, K, N}, marked ! {mark, a, [N]} end || N <- lists:seq(1, 30), K <- [a, {b, N rem 3}, 1.0, self()]],
    [P ! {'"'\$gen_cast'"', {mark, N}} || N <- [1, 2, 3]],
    [catch erlang:send({nobody, node()}, {mark, none, N}) || N <- [1, 2]],
    erlang:send_after(0, self(), {mark, timer, 0}), receive {mark, timer, 0} -> ok end,
    R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end end'

@test "the node counts messages as a complete recording does" {
    counted 'send(To, {mark, K, N}) by To, tag(K), type: count, sum(N), max(N), hist(N)' "$MESSAGES"
    same
    counted 'send(_, M) when element(1, M) == mark; (_, {_, {mark, _}}) by pid, from, tag(msg), node' "$MESSAGES"
    same
    counted 'recv({mark, K, N}) by to, from, from_node, K: count, sum(N)' "$MESSAGES"
    same
    counted 'recv({mark, _, _}); ({_, {mark, _}}) by pid, tag(msg), element(2, msg), type: count' "$MESSAGES"
    same
    # Long messages are other keys, and are sent.
    RATE=0 counted 'send(_, M) when element(1, M) == mark by M' 'P = spawn(fun() -> receive stop -> ok end end),
        [P ! {mark, N rem 2, lists:seq(1, 800 * N)} || N <- [1, 2, 3, 1]], P ! stop'
    same
}

# bats test_tags=long
@test "durations are those of the results that came" {
    counted 'work:slow(N) by N: count, avg(dur), max(dur), hist(dur), quantiles(dur)' \
        '[work:slow(N) || N <- [1, 2, 2, 3, 3, 3]], P = spawn(fun() -> work:slow(infinity) end),
        (fun W() -> case process_info(P, current_function) of {_, {work, slow, 1}} -> ok; _ -> erlang:yield(), W() end end)(),
        R = monitor(process, P), exit(P, kill), receive {_, R, _, _, killed} -> ok end'
    same_untimed 4
    [[ $(untimed "$OUT") == *'"key":["3"],"count":3,"values":{"avg(dur)_us":"number","max(dur)_us":"number","hist(dur)_us":3,'* ]]
    counted 'work:caught(_, _) | work:raise(_, _) by class: max(dur)' '[work:caught(C, x) || C <- [error, exit, throw]]'
    same_untimed 4
}

# bats test_tags=long
@test "the node counts what a filter on results shows, as a complete recording does" {
    counted 'work:two(K, N) where ret = {_, 3} by K: count, sum(N), max(element(2, ret))' "$CALLS"
    same
    counted 'work:two(K, _) where ret = {b, _} or ret = {_, 7} by tag(ret), K: count' "$CALLS"
    same
    counted 'work:caught(_, _) | work:raise(_, _) where class == error or class == throw by f, class' \
        '[work:caught(C, N) || C <- [error, exit, throw], N <- lists:seq(1, 50)]'
    same 2
    counted 'work:fib(N) where ret > 5 by mfa: count, sum(ret), hist(N)' '[work:fib(N) || N <- lists:seq(1, 12)]'
    same 1
    counted 'work:even(_) | work:odd(_) where ret == false by f' 'work:even(20), work:odd(20)'
    same 2
    counted 'work:slow(N) where dur > 50ms by N' '[work:slow(N) || N <- [0, 200, 0, 200]]'
    same 1
    # Nobody waits for the result of a call that a filter hides or whose process ends.
    counted 'work:slow(N) where dur >= 0us by N' 'work:slow(1), P = spawn(fun() -> work:slow(infinity) end),
        (fun W() -> case process_info(P, current_function) of {_, {work, slow, 1}} -> ok; _ -> erlang:yield(), W() end end)(),
        R = monitor(process, P), exit(P, kill), receive {_, R, _, _, killed} -> ok end'
    same 1
    grep -q '^etrace: 2 events in .* · 1 filtered$' "$ERR"
    # Values that no row can have, and calls that are too deep, are sent.
    counted 'work:two(K, _) where ret = {a, _} by K: count, sum(element(2, ret))' \
        '[work:two(K, N) || K <- [a, b], N <- [1, 2.5, x, 1 bsl 60, 1 bsl 80]]'
    same 1
    RATE=0 counted 'work:fac(N) where ret > 100 by tag(ret): count, max(N)' 'work:fac(600), work:fac(3)'
    same 1
}

@test "a filter of the view is one of the node, too" {
    trace --json --where 'dur > 50ms' 'work:slow(N) by N: count'
    on_node '[work:slow(N) || N <- [0, 200, 0, 200]]'
    trace_end
    assert_success
    run jq -c 'select(.type == "row") | [.key, .count]' "$OUT"
    assert_output '[["200"],2]'
    grep -q '^etrace: 4 events in .* · 4 filtered$' "$ERR"
}

@test "calls whose process ends have no result" {
    counted 'work:slow(N) by N, ret' 'work:slow(1), P = spawn(fun() -> work:slow(infinity) end),
        (fun W() -> case process_info(P, current_function) of {_, {work, slow, 1}} -> ok; _ -> erlang:yield(), W() end end)(),
        R = monitor(process, P), exit(P, kill), receive {_, R, _, _, killed} -> ok end'
    same 1
    jq -e 'select(.type == "table") | .without_result == 1' "$OUT"
}

# bats test_tags=long
@test "results that a row cannot have are sent, and so are calls that are too deep" {
    counted 'work:two(K, _) by K: count, sum(element(2, ret)), avg(element(2, ret)), hist(element(2, ret))' \
        '[work:two(K, N) || K <- [a, b], N <- [1, 2.5, x, -3, 1 bsl 60, 1 bsl 80, 0]]'
    same 2
    counted 'work:two(K, N) by element(2, ret), K: sum(N), max(element(2, ret))' '[work:two(K, N) || K <- [a, b], N <- [1, 2.5, x, 1 bsl 60, 2.5]]'
    same 8
    counted 'work:two(K, _) by ret, K' \
        'X = [list_to_atom("key" ++ integer_to_list(N rem 9)) || N <- lists:seq(1, 200)], [work:two(K, X) || K <- [a, b, a]]'
    same 2
    RATE=0 counted 'work:fac(N) by N: sum(ret), count' 'work:fac(600), work:fac(3)'
    same 601
    RATE=0 counted 'work:fac(N) by ret, N' 'work:fac(600), work:fac(3)'
    same 601
    counted 'work:sum(N, _) by ret: count, hist(N), sum(ret)' 'work:sum(15, 0), work:sum(10, 0)'
    same 2
}

@test "redacted results are those of events" {
    counted 'work:two(K, _) by element(2, ret), K: count, sum(element(2, ret))' 'work:two(password, 4711), work:two(user, a)'
    same 2
    refute grep -q 4711 "$OUT"
}

# bats test_tags=long
@test "the node sends the calls whose values or keys a row cannot have" {
    counted 'work:two(K, N) by K: sum(N), avg(N), min(N), max(N)' \
        'work:two(a, 1.5), work:two(a, 2), work:two(a, x), work:two(a, 1 bsl 60), work:two(a, 1 bsl 80), work:two(b, -3)'
    same 2
    counted 'work:two(K, N) by K: hist(N)' '[work:two(a, N) || N <- [1, -5, 2.5, 0, 100]]'
    same 1
    counted 'work:two(K, N) by K: hist(N), quantiles(N), count' \
        '[work:two(a, N) || N <- [(1 bsl 46) - 1, 1 bsl 46, 1 bsl 53, 1 bsl 62, -1, -(1 bsl 62), 1 bsl 70, 1.0e308, x]]'
    same 1
    assert_equal "$(jq -c 'select(.type == "row") | .values["hist(N)"] | map(.count)' "$OUT")" '[1,1,1,1,1,1,1,1]'
    counted 'work:one(X) by X' 'X = [list_to_atom("key" ++ integer_to_list(N rem 9)) || N <- lists:seq(1, 200)], [work:one(X) || _ <- [1, 2]]'
    same 1
}

@test "redacted and cut keys are those of events" {
    counted 'work:one({_, X}) by X' 'work:one({password, "hunter2"}), work:one({password, 1}), work:one({user, a})'
    same 2
    refute grep -q hunter2 "$OUT"
    counted 'work:one(X) by X' 'work:one(#{user => a, password => hunter2}), work:one(#{user => a, password => hunter3})'
    same 1
    refute grep -q hunter "$OUT"
}

@test "terms of every type are keys, tags, elements and values" {
    local SIZE=16384 calls='[work:two(X, {t, X}) || X <- terms:all() ++ terms:nested()]'
    counted 'work:two(X, Y) by tag(X), tag(Y), element(1, Y), pid: sum(X), hist(X)' "$calls"
    same
    # The client takes an element that is a long bit string for unknown, because it has only the beginning of it.
    counted 'work:two(_, Y) by tag(element(2, Y))' "${calls/terms:all() ++/(terms:all() -- [<<0:4001>>]) ++}"
    same
    counted 'work:two(X, _) by X' '[work:two(X, 1) || X <- terms:all() ++ terms:all()]'
    same
}

# bats test_tags=long
@test "a million keys take a fixed number of rows" {
    trace --rate 1 --json 'work:one(X) by X'
    on_node '[work:one(N) || N <- lists:seq(1, 1000000)], [work:one(7) || _ <- lists:seq(1, 1000)]'
    trace_end
    assert_success
    assert_equal "$(jq -s 'map(select(.type == "row").count) | add' "$OUT")" 1001000
    assert_equal "$(jq -c 'select(.other == true).count' "$OUT")" "$(jq 'select(.type == "table").other' "$OUT")"
    assert_equal "$(jq -c 'select(.type == "row" and .key == ["7"]).count' "$OUT")" 1001
    # Each key after the first ones counts in one row.
    assert_equal "$(jq -c 'select(.other == true).count' "$OUT")" $((1000000 - 4095))
    jq -e 'select(.type == "table") | .rows == 4095 and .lost == {} and .missing == 0' "$OUT"
}

# bats test_tags=long
@test "--keys sets how many keys the node counts" {
    local n
    for n in 3 20000; do
        trace --rate 1 --keys "$n" --json 'work:one(X) by X: count, sum(X), hist(dur)'
        on_node '[work:one(N) || N <- lists:seq(1, 30000)], [work:one(2) || _ <- lists:seq(1, 100)]'
        trace_end
        assert_success
        jq -e --argjson n "$n" 'select(.type == "table") | .rows == $n and .other == 30000 - $n and .lost == {} and .missing == 0' "$OUT"
        assert_equal "$(jq -s 'map(select(.type == "row") | .count) | add' "$OUT")" 30100
        assert_equal "$(jq -s 'map(select(.type == "row") | .values["sum(X)"]) | add' "$OUT")" $((30000 * 30001 / 2 + 200))
        assert_equal "$(jq -c 'select(.type == "row" and .key == ["2"]) | [.count, .values["sum(X)"]]' "$OUT")" '[101,202]'
    done
    # A few keys may be long, and their values spread.
    trace --rate 1 --size 4096 --keys 2 --json 'work:two(K, N) by K: count, hist(N)'
    on_node '[work:two({K, lists:seq(1, 250)}, 1 bsl N) || K <- [a, b], N <- lists:seq(0, 45)]'
    trace_end
    assert_success
    jq -e 'select(.type == "table") | .rows == 2 and .other == 0 and .lost == {}' "$OUT"
    run "$ETRACE_BIN" trace -n "$NODE" --keys 70000 'work:one(X) by X'
    assert_failure 2
    assert_line -n 0 'etrace: --keys takes a number up to 65535'
    run "$ETRACE_BIN" trace -n "$NODE" --keys 10 'work:one(X)'
    assert_failure 2
    assert_line -n 0 'etrace: --keys needs a probe with by'
}

# A stress: memory.
# bats test_tags=long
@test "ten times as many keys take no more memory of the node and of the client" {
    local emulator was now
    live_own keys
    # The node may have had more memory at its start. The client has started only now.
    memory() { echo "$(awk '/^VmRSS:/ { print $2 }' "/proc/$emulator/status") $(awk '/^VmHWM:/ { print $2 }' "/proc/$TRACER/status")"; }
    emulator=$(node_eval "$NODE" 'list_to_integer(os:getpid())')
    trace --rate 1 --json 'work:one(X) by X: count, sum(X), max(dur)'
    # The rows are full. The worker makes the calls without garbage, and keys begin with the largest.
    on_node 'work:ask(w, fun() -> work:loop(100000) end)'
    was=$(memory)
    on_node 'work:ask(w, fun() -> work:loop(1000000) end)'
    now=$(memory)
    trace_end
    assert_success
    # A row takes more than a kilobyte, so a row for each key would take a gigabyte.
    awk '{ exit !($3 - $1 < 64000 && $4 - $2 < 64000) }' <<<"$was $now" || fail "kB of the node and the client: $was, then $now"
    assert_equal "$(jq -s 'map(select(.type == "row").count) | add' "$OUT")" 1100000
    assert_equal "$(jq -c 'select(.other == true).count' "$OUT")" $((1100000 - 2 * 4095))
    jq -e 'select(.type == "table") | .rows == 4095 and .lost == {} and .missing == 0' "$OUT"
}

@test "each call of a loop is counted, lost, or without a result" {
    local how
    for how in --rate=0 --limit=1000000; do # the node counts, or the client does
        traced --json --rate 0 "$how" 'work:sum(_, _) by f, ret: count' -- 'work:ask(w, fun() -> work:sum(100000, 0), ok end)'
        assert_success
        assert_equal "$(jq -s 'map(select(.type == "row").count) as $rows | map(select(.type == "table"))[0]
            | ($rows | add // 0) + .without_result + (.lost | add // 0)' "$OUT")" 100001
    done
}

@test "calls between those of a loop keep their results" {
    local run='work:ask(w, fun() -> loops:rounds(10), ok end)'
    traced --json 'loops:rounds(_) | loops:round(_, _) by f, ret: count' -- "$run"
    assert_success
    assert_equal "$(jq -s 'map(select(.type == "row").count) as $rows | map(select(.type == "table"))[0]
        | ($rows | add // 0) + .without_result + (.lost | add // 0)' "$OUT")" 161
    assert_equal "$(jq -rc 'select(.type == "row") | .key | join(" ")' "$OUT")" 'rounds done'
}

# bats test_tags=long
@test "many processes count in one table" {
    counted 'work:two(K, N) by K: count, sum(N)' \
        'S = self(), P = [spawn(fun() -> [work:two(X, N) || N <- lists:seq(1, 3000)], S ! {done, X} end) || X <- [1, 2, 3, 1, 2, 3, 4, 4]], [receive {done, X} -> ok end || X <- [1, 2, 3, 1, 2, 3, 4, 4]], P'
    same 4
    counted 'work:two(_, N) by pid: sum(N)' \
        'S = self(), [spawn(fun() -> [work:two(X, N) || N <- lists:seq(1, 100 * X)], S ! done end) || X <- [1, 2, 3]], [receive done -> ok end || _ <- [1, 2, 3]]'
    same 3
}

@test "assertions judge the rows of the node" {
    trace --rate 1 --fail-on 'count > 300' 'work:one(X) by X'
    on_node '[work:one(N rem 3) || N <- lists:seq(1, 2000)]'
    trace_wait
    [ "$status" -eq 10 ]
    [[ $talk == *"--fail-on 'count > 300' holds: "[012]': count '* ]]
    traced --rate 1 --expect 'sum(N) == 45' 'work:two(K, N) by K: sum(N)' -- '[work:two(a, N) || N <- lists:seq(0, 9)]'
    assert_success
}

@test "the client counts what the node cannot" {
    why() {
        run -0 "$ETRACE_BIN" explain "$2"
        assert_output --partial ", by the client: $1"
    }
    why 'a key is computed' 'work:two(_, N) by N rem 2'
    why 'a value is computed' 'work:two(K, N) by K: sum(N + 1)'
    why 'the node has no such key' 'work:two(K, _) by name'
    why 'the node has no such key' 'work:two(K, _) by type, K: max(dur)'
    why 'the node has no such value' 'work:two(K, _) by K: max(size)'
    why 'it has an action' 'work:two(K, _) -> return by K'
    why 'the node cannot evaluate its filter after where' 'work:two(K, N) where N > 2 by K'
    why 'the node cannot evaluate its filter after where' 'work:two(K, _) where size > 100 by K'
    why 'only calls and messages are counted on the node' '@exit by reason'
    why 'it is traced inside of roots' 'send(_, M) by M inside work:one/1'
    why 'the node cannot evaluate its filter after where' 'send(_, M) where to == self by M'
    run -0 "$ETRACE_BIN" explain 'work:two(K, N) by K: sum(N)'
    assert_output --partial ', by the node: 4095 keys at most, then (other)'
    run -0 "$ETRACE_BIN" explain --keys 60000 'ets:lookup(T, _) by T'
    assert_output --partial ', by the node: 60000 keys at most, then (other)'
    run -0 "$ETRACE_BIN" explain --keys 60000 --format json 'ets:lookup(T, _) by T'
    assert_output --partial '"most_keys":60000'
    # A limit, a filter and a view of events need the events.
    traced --limit 3 'work:one(X) by X' -- '[work:one(1) || _ <- [1, 2, 3, 4, 5]]'
    assert_output --regexp '^X +count
1 +3'
    traced --as text 'work:one(X) by X' -- 'work:one(1)'
    assert_output --partial 'call work:one(1)'
}
