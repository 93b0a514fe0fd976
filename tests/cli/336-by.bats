#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests probes with `by`: the table of counted events. Each trace also makes a recording of the same events, and the
# tests compare the table with what jq computes from all of them.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_share by; }
teardown_file() { live_end; }
setup() {
    TERMINAL=
    live_setup
}
teardown() {
    [[ ! $TERMINAL ]] || terminal_end
    live_teardown_all
}

# Traces the expressions during the calls: a table as JSON in $OUT, a recording, and its events as JSON in $EVENTS.
counted() {
    local recording=$BATS_TEST_TMPDIR/all.etr
    EVENTS=$BATS_TEST_TMPDIR/events
    rm -f "$recording"
    traced --json --rate 1000000 -o "$recording" "$@"
    assert_success
    "$ETRACE_BIN" replay -q --as json --terms "${TERMS:-json}" "$recording" >"$EVENTS"
    jq -e 'select(.type == "table") | .lost == {} and .missing == 0' "$OUT" >/dev/null
}

# Prints "COUNT KEY" for each row of the table in $OUT, or for each value that the filter makes of the events.
table() { jq -r 'select(.type == "row") | "\(.count) \(.key | tojson)"' "$OUT" | sort; }
events() { jq -r "$1" "$EVENTS" | sort | uniq -c | awk '{ n = $1; sub(/^ *[0-9]+ /, ""); print n, $0 }' | sort; }

same() {
    [[ -s $EVENTS && $(wc -l <"$OUT") -gt 1 ]]
    diff <(events "$1") <(table)
}

# Calls with keys of many kinds; some keys come often.
CALLS='[work:two(lists:nth(1 + N rem 7, [a, {b, N rem 3}, 1, 1.0, <<"x">>, [N rem 2], #{k => N rem 4}]), N rem 10) || N <- lists:seq(1, 2000)]'

@test "the counts of every key are those of sort and uniq" {
    TERMS=auto counted 'work:two(K, N) by K, N: count' -- "$CALLS"
    same 'select(.type == "call") | .args | tojson'
    assert_equal "$(jq -s '[.[] | select(.type == "row") | .count] | add' "$OUT")" 2000
    (($(table | wc -l) > 99))
    counted --terms json 'work:two(_, N) when N > 4 -> caller where N rem 2 == 0 by N' -- "$CALLS"
    same 'select(.type == "call") | [.args[1]] | tojson'
    assert_equal "$(table)" "$(printf '200 [%s]\n' 6 8)"
}

@test "a sum that no float can hold is null in JSON" {
    counted 'work:one(X) by f: sum(X), avg(X), max(X)' -- 'work:one(1.0e308), work:one(1.0e308)'
    run jq -c 'select(.type == "row") | .values | [.["sum(X)"], .["avg(X)"] == 1e308, .["max(X)"] == 1e308]' "$OUT"
    assert_output '[null,true,true]'
    run grep -ciE '[:,[](inf|nan)' "$OUT"
    assert_output 0
}

@test "expressions, properties, results and classes are keys" {
    counted --terms json 'work:two(#{k := K}, N) by K, N rem 3' -- "$CALLS"
    same 'select(.type == "call") | [.args[0].k, .args[1] % 3] | tojson'
    counted --terms json 'work:caught(_, R) | work:raise(_, R) -> return by class, ret' -- \
        '[work:caught(lists:nth(1 + N rem 3, [error, exit, throw]), x) || N <- lists:seq(1, 30)]'
    same 'select(.type == "return" or .type == "exception") | [.class, .value] | tojson'
    counted 'work:one/1 by caller, type, mfa' -- 'work:one(4), [work:one(1) || _ <- [1, 2]], lists:foreach(fun work:one/1, [1, 2])'
    same 'select(.type == "call") | [(.caller | "\(.m):\(.f)/\(.a)"), .type, "\(.m):\(.f)/\(.a)"] | tojson'
    counted 'work:one/1 by pid, node' -- '[spawn(fun() -> work:one(N), work:one(2) end) || N <- [1, 2, 3]], timer:sleep(50)'
    same 'select(.type == "call") | [.pid, .node] | tojson'
    assert_equal "$(table | wc -l)" 3
}

@test "the tag of a term is its shape" {
    counted 'work:one(X) by tag(X)' -- \
        "[work:one(X) || X <- [a, {a}, {a, 1}, {1}, {}, 1, 1.0, <<\"b\">>, <<1:3>>, [], [1], #{}, #{'__struct__' => m}, self(), make_ref(), fun lists:seq/2, {'\$gen_call', {self(), x}, {get, 1}}, {'\$gen_cast', stop}, hd(erlang:ports())]]"
    assert_equal "$(table)" "$(printf '%s\n' '1 ["binary()"]' '1 ["bitstring()"]' '1 ["float()"]' '1 ["function()"]' \
        '1 ["get"]' '1 ["integer()"]' '1 ["m"]' '1 ["map()"]' '1 ["pid()"]' '1 ["port()"]' '1 ["reference()"]' '1 ["stop"]' \
        '2 ["list()"]' '2 ["tuple()"]' '3 ["a"]' | sort)"
}

@test "sums, extremes and averages are those of jq" {
    counted --terms json 'work:two(_, N) by N rem 3: sum(N), min(N), max(N), avg(N), sum(dur), max(dur), min(dur)' -- "$CALLS"
    jq -s -c 'def r: . * 1000 | round; [.[] | select(.type == "return")] | group_by(.args[1] % 3)[] |
        [.[0].args[1] % 3, length, (map(.args[1]) | add, min, max, (add / length * 1e6 | round)), (map(.dur_us) | (add | r), (max | r), (min | r))]' \
        <(jq -c -s '[.[] | select(.type == "call")] as $c | [.[] | select(.type == "return")] as $r |
            range($c | length) as $i | $r[$i] + {args: $c[$i].args}' "$EVENTS") | sort >"$BATS_TEST_TMPDIR/want"
    jq -c 'def r: . * 1000 | round; select(.type == "row") | .values as $v | [.key[0], .count, $v["sum(N)"], $v["min(N)"], $v["max(N)"],
        ($v["avg(N)"] * 1e6 | round), ($v["sum(dur)_us"] | r), ($v["max(dur)_us"] | r), ($v["min(dur)_us"] | r)]' "$OUT" |
        sort >"$BATS_TEST_TMPDIR/got"
    assert_equal "$(wc -l <"$BATS_TEST_TMPDIR/got")" 3
    diff "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
}

@test "histograms are those of jq, and quantiles are near" {
    counted --terms json 'work:two(_, N) by N > 4: hist(dur), quantiles(dur), hist(N - 3)' -- "$CALLS"
    jq -c -s '[.[] | select(.type == "call")] as $c | [.[] | select(.type == "return")] as $r |
        range($c | length) as $i | {n: $c[$i].args[1], ns: ($r[$i].dur_us * 1000 | round)}' "$EVENTS" >"$BATS_TEST_TMPDIR/pairs"
    jq -s -c 'group_by(.n > 4)[] | [.[0].n > 4, (map(.ns | log2 | floor) | group_by(.)[] | [.[0], length])]' \
        "$BATS_TEST_TMPDIR/pairs" | sort >"$BATS_TEST_TMPDIR/want"
    jq -c 'select(.type == "row") | [.key[0], (.values["hist(dur)_us"][] | [(.from * 1000 | log2 | round), .count])]' "$OUT" |
        sort >"$BATS_TEST_TMPDIR/got"
    diff "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
    jq -s 'map({key: (.n > 4 | tostring), ns}) | group_by(.key) | map({(.[0].key): (map(.ns) | sort)}) | add' "$BATS_TEST_TMPDIR/pairs" >"$BATS_TEST_TMPDIR/sorted"
    jq -s -e --slurpfile all "$BATS_TEST_TMPDIR/sorted" '[.[] | select(.type == "row") | $all[0][.key[0] | tostring] as $s |
        .values["quantiles(dur)_us"] | to_entries[] | (.key[1:] | tonumber) as $p |
        $s[(($s | length) * $p / 100 | ceil) - 1] as $exact | (.value * 1000 - $exact | fabs) <= $exact * 0.07 + 1] |
        length == 6 and all' "$OUT"
    assert_equal "$(jq -c 'select(.type == "row" and .key[0] == false) | .values["hist(N - 3)"] | map([.from, .below, .count])' "$OUT")" \
        '[[-4,-2,200],[-2,-1,200],[-1,0,200],[0,1,200],[1,2,200]]'
}

# Prints the row of the table in $OUT as its values.
values() { jq -c 'select(.type == "row") | .values' "$OUT"; }

@test "histograms and quantiles have negative and large numbers" {
    counted 'work:one(X) by f: quantiles(X), hist(X)' -- '[work:one(N) || N <- [-1000, -10, -9, -8, -7]]'
    run values
    assert_output '{"quantiles(X)":{"p50":-9,"p90":-7,"p99":-7},"hist(X)":[{"from":-1024,"below":-512,"count":1},{"from":-16,"below":-8,"count":2},{"from":-8,"below":-4,"count":2}]}'
    counted 'work:one(X) by f: hist(X)' -- '[work:one(N) || N <- [1 bsl 46, 1 bsl 62, 1 bsl 70, 1.0e308, -(1 bsl 70), -1.5]]'
    run jq -c 'select(.type == "row") | .values["hist(X)"] | map([.from, .below] | map(if . then (fabs | log2) else . end))' "$OUT"
    assert_output '[[70,69],[1,0],[46,47],[62,63],[70,71],[1023,null]]'
    counted 'work:one(X) by f: quantiles(X)' -- 'work:one(1.0e308), work:one(1.0e308), work:one(-3)'
    run -10 --separate-stderr "$ETRACE_BIN" replay -q --as tablejson --by 'f: quantiles(args[1])' \
        --fail-on 'p50(args[1]) > 1000000000000000000' "$BATS_TEST_TMPDIR/all.etr"
}

# bats test_tags=long
@test "histograms and quantiles have fractions" {
    counted 'work:one(X) by f: quantiles(X)' -- '[work:one(N / 100) || N <- lists:seq(1, 100)], [work:one(-N / 100) || N <- lists:seq(1, 100)]'
    run jq -c 'select(.type == "row") | .values["quantiles(X)"] | [.p50, .p90, .p99] | map(. * 100 | round)' "$OUT"
    assert_output '[-1,78,97]'
    traced 'work:one(X) by f: quantiles(X), hist(X)' -- '[work:one(N) || N <- [0, 0.01, 0.3, 0.3, 1]]'
    assert_success
    assert_output 'f    p50(X)  p90(X)  p99(X)
one   0.297       1       1

one  hist(X)  5
         0 |####################                    | 1
   0.00781 |####################                    | 1
         …
      0.25 |########################################| 2
       0.5 |                                        | 0
         1 |####################                    | 1'
}

# bats test_tags=long
@test "a histogram is aligned whatever its labels are, and skips runs of empty rows" {
    traced 'work:one(X) by f: hist(X), max(X)' -- '[work:one(N) || N <- [1, 2, 1 bsl 54, 1.0e308]]'
    assert_success
    assert_output 'f     max(X)
one  1.0e308

one  hist(X)  4
                   1 |########################################| 1
                   2 |########################################| 1
                   …
   18014398509481984 |########################################| 1
                   …
8.98846567431158e307 |########################################| 1'
}

@test "messages are counted by sender, receiver and tag" {
    counted 'send(To, {reply, N}) by To, N: count' -- '[self() ! {reply, N rem 2} || N <- [1, 2, 3]], [register(by_sink, spawn(fun() -> receive stop -> ok end end)), by_sink ! {reply, 7}, by_sink ! stop]'
    assert_equal "$(table | sed -E 's/<[0-9.]+>/PID/')" "$(printf '%s\n' '1 ["PID","0"]' '1 ["by_sink","7"]' '2 ["PID","1"]')"
    same 'select(.type == "send") | [.to, (.msg | .tuple[1] | tostring)] | map(if type == "object" then .pid else . end) | tojson'
}

@test "a replay shows the same table, from a recording with by and from one without" {
    counted 'work:two(K, N) by tag(K), N: count, hist(dur), max(N)' -- "$CALLS"
    "$ETRACE_BIN" replay -q --json "$BATS_TEST_TMPDIR/all.etr" | cmp - "$OUT"
    table >"$BATS_TEST_TMPDIR/live"
    traced -o "$BATS_TEST_TMPDIR/plain.etr" --rate 1000000 'work:two(K, N) -> return' -- "$CALLS"
    assert_success
    "$ETRACE_BIN" replay -q --as tablejson --by 'tag(args[1]), args[2]: count, hist(dur), max(args[2])' "$BATS_TEST_TMPDIR/plain.etr" >"$BATS_TEST_TMPDIR/by"
    OUT=$BATS_TEST_TMPDIR/by
    diff "$BATS_TEST_TMPDIR/live" <(table)
    run -0 "$ETRACE_BIN" replay -q "$BATS_TEST_TMPDIR/all.etr"
    assert_line --index 0 --regexp '^tag\(K\) +N +count +max\(N\)$'
    run -0 "$ETRACE_BIN" replay -q --as text --limit 1 "$BATS_TEST_TMPDIR/all.etr"
    assert_output --partial 'work:two('
    for view in table tablejson tablecsv tabletsv; do
        run -2 "$ETRACE_BIN" replay -q --as "$view" "$BATS_TEST_TMPDIR/plain.etr"
        assert_line -n 0 "etrace: --as $view shows what 'by' counts, but no expression has 'by'"
    done
    "$ETRACE_BIN" replay -q -o "$BATS_TEST_TMPDIR/a.csv" -o "$BATS_TEST_TMPDIR/a.tsv" "$BATS_TEST_TMPDIR/all.etr" >"$BATS_TEST_TMPDIR/a.text"
    run -0 head -n 1 "$BATS_TEST_TMPDIR/a.csv"
    assert_output 'tag(K),N,count,hist(dur)_us,max(N)'
    diff "$BATS_TEST_TMPDIR/a.csv" <(tr '\t' ',' <"$BATS_TEST_TMPDIR/a.tsv")
    assert_equal "$(tail -n +2 "$BATS_TEST_TMPDIR/a.csv" | awk -F, '{ n += $3 } END { print n }')" 2000
}

@test "a table is aligned, sorted by its first aggregate, and says what it could not count" {
    traced 'work:two(K, N) by K: sum(N), count, hist(N)' -- \
        'work:two(small, 2), work:two(big, 40), work:two(big, 3), work:two({a, none}, x)'
    assert_success
    assert_output 'K         sum(N)  count
big           43      2
small          2      1
{a,none}       -      1

big  hist(N)  2
         2 |########################################| 1
         4 |                                        | 0
         8 |                                        | 0
        16 |                                        | 0
        32 |########################################| 1

small  hist(N)  1
         2 |########################################| 1
*** sum(N): 1 event without a number ***
*** hist(N): 1 event without a number ***'
    trace 'work:slow(N) by ret'
    on_node 'register(by_slow, spawn(fun() -> work:slow(1), work:slow(infinity) end)), work:slow(2)'
    trace_end
    on_node 'begin R = monitor(process, by_slow), exit(whereis(by_slow), kill), receive {_, R, _, _, _} -> ok end end'
    assert_line '*** 1 call without a result, not counted ***'
}

@test "cut keys are marked, and redacted parts stay redacted" {
    traced --size 40 'work:one(X) by X' -- '[work:one(binary:copy(<<"x">>, N)) || N <- [5, 600, 700]]'
    assert_success
    assert_output --partial '…'
    assert_output --partial 'cut: --size, --depth and --items keep more ***'
    traced --json 'work:one(X) by X' -- 'work:one(#{user => a, password => "hunter2"})'
    assert_success
    refute_output --partial hunter2
    assert_output --partial password
}

@test "probes with the same clause share a table; others have their own" {
    traced 'work:one(X) by X' 'work:two(_, X) by X' 'work:fac(X) by X: count, max(X)' -- 'work:one(1), work:two(a, 1), work:two(a, 2), work:fac(1)'
    assert_success
    assert_output 'by X: count
X  count
1      2
2      1

by X: count, max(X)
X  count  max(X)
0      1       0
1      1       1'
    traced 'work:one(X) | work:two(_, X) by X' 'work:one(X) by X' -- 'work:one(1), work:two(a, 1)'
    assert_success
    assert_output 'X  count
1      2'
}

@test "by works inside of roots and in Elixir" {
    traced 'work:deep(N) by N inside work:outer/1' -- 'work:outer(2), work:outer(1), catch work:deep(5)'
    assert_success
    assert_output 'N  count
0      2
1      2
2      1'
    traced ':work.two(k, n) by elem(k, 0), n: count, avg(n)' -- 'work:two({a, 1}, 3), work:two({a, 2}, 3)'
    assert_success
    assert_output 'elem(k, 0)  n  count  avg(n)
:a          3      2       3'
}

@test "--by counts the events of all probes" {
    traced --by 'mfa: count' 'work:one/1' 'work:two/2' -- 'work:one(1), work:two(1, 2), work:one(2)'
    assert_success
    assert_output 'mfa         count
work:one/1      2
work:two/2      1'
}

# bats test_tags=long
@test "--by replaces the tables of a recording" {
    local etr=$BATS_TEST_TMPDIR/r.etr
    traced -o "$etr" 'work:two(K, _) by K: count' -- 'work:two(a, 1), work:two(b, 1)'
    run -0 --separate-stderr "$ETRACE_BIN" replay --by 'args[2]: sum(args[2])' "$etr"
    assert_output 'args[2]  sum(args[2])
1                   2'
    run -0 --separate-stderr "$ETRACE_BIN" replay "$etr"
    assert_output 'K  count
a      1
b      1'
}

@test "what does not go with by is refused before a node is asked" {
    refused() {
        run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 "${@:2}"
        assert_line --index 0 --partial "$1"
    }
    refused "'work:two/2' counts by nothing, but another expression does" 'work:one/1 by pid' 'work:two/2'
    refused "'callr' is not a property of an event" --by callr 'work:one/1'
    refused 'this is not an aggregate' 'work:one/1 by pid: total(dur)'
    refused "--as tablejson shows what 'by' counts, but no expression has 'by'" --as tablejson 'work:one/1'
}

@test "blanks in an aggregate make no difference to a condition" {
    traced --expect 'sum( args[ 1 ] ) > 1' --expect "p50(element(1,{X, 'a b'})) == 2" --fail-on 'max( args[1]) > 2' \
        "work:one(X) by f: sum(args[1]), quantiles(element(1, {X,'a b'})), max(args[1])" -- 'work:one(2)'
    assert_success
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 --expect "p50(element(1, {X, 'ab'})) == 2" \
        "work:one(X) by f: quantiles(element(1, {X, 'a b'}))"
    assert_line -n 0 "etrace: no expression counts p50(element(1, {X, 'ab'}))"
}

# bats test_tags=long
@test "--fail-on and --expect judge each key" {
    trace --fail-on 'count > 3' 'work:one(X) by X: count, max(dur)'
    on_node '[work:one(N rem 3) || N <- lists:seq(1, 20)]'
    trace_wait
    [ "$status" -eq 10 ]
    [[ $talk == *"--fail-on 'count > 3' holds: "[012]': count '[4-7]', max(dur) '* ]]
    traced --fail-on 'count > 30' --expect 'max(N) == 7 and count =:= 2' 'work:two(K, N) by K: max(N)' -- \
        'work:two(a, 7), work:two(b, 6), work:two(a, 1)'
    assert_success
    traced --expect 'avg(N) > 3' 'work:two(K, N) by K: avg(N)' -- 'work:two(a, 7), work:two(a, -7)'
    [ "$status" -eq 11 ]
    [[ $talk == *"--expect 'avg(N) > 3' held for no key"* ]]
    traced --fail-on 'count < 2' -o "$BATS_TEST_TMPDIR/f.etr" 'work:two(K, N) by K' -- 'work:two(a, 7), work:two(b, 6), work:two(a, 1)'
    [ "$status" -eq 10 ]
    [[ $talk == *"--fail-on 'count < 2' holds: b: count 1"* ]]
    run -10 "$ETRACE_BIN" replay --fail-on 'count > 1' "$BATS_TEST_TMPDIR/f.etr"
    assert_output --partial "--fail-on 'count > 1' holds: a: count 2"
    run -2 "$ETRACE_BIN" replay --fail-on 'max(N) > 1' "$BATS_TEST_TMPDIR/f.etr"
    assert_line --index 0 'etrace: no expression counts max(N)'
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 --fail-on 'count > 10' 'work:one/1'
    assert_line --index 0 "etrace: count is a figure of keys, and no expression counts with 'by'"
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 -e 'count > 10' 'work:one/1 by pid'
    assert_line --index 0 'etrace: aggregates are for --expect and --fail-on, not for filters'
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 --fail-on 'max(dur) > 10' 'work:one/1 by pid: max(dur)'
    assert_line --index 0 'etrace: a duration needs a unit'
}

# The tables of `etrace requests` have the same screen, and 382 tests it in the core.
# bats test_tags=long
@test "on a terminal the table refreshes in place, and the whole table stays at the end" {
    terminal 90 14 "PS1='ready> ' exec sh"
    await '^ready>'
    entered "clear; $ETRACE_BIN -n $NODE 'work:two(K, N) by K: count, sum(N)'"
    await '^q quit'
    on_node '[work:two(a, N) || N <- [1, 2, 3]], work:two(b, 10)'
    await '^b +1 +10'
    await '^a +3 +6'
    await '^etrace trace · .* events'
    on_node '[work:two(a, N) || N <- [4, 5]]'
    await '^a +5 +15'
    keys q
    await '^etrace: [0-9]+ events in '
    await_last '^ready> *$'
    await '^K +count +sum\(N\)'
    await '^a +5 +15'
    # A trace that counts nothing prints its events.
    entered "clear; $ETRACE_BIN -n $NODE --limit 1 'work:two/2'"
    await 'Ctrl-C stops'
    on_node 'work:two(a, 1)'
    await 'call work:two\(a, 1\)'
    await_last '^ready> *$'
}

@test "on a terminal Enter shows the histograms of a row, and the whole text stays at the end" {
    terminal 90 16 "$ETRACE_BIN -n $NODE 'work:two(K, N) by K: count, hist(N)'; exec sleep 100"
    await '^q quit  Enter details'
    on_node '[work:two(a, N) || N <- [1, 2, 3]], work:two(b, 10)'
    await '^a +3$'
    await '^b +1$'
    await_not 'hist\(N\)'
    keys Down
    keys Enter
    await '^b  hist\(N\)  1$'
    await '^ +8 \|#+\| 1$'
    await_not '^a '
    on_node 'work:two(b, 11)'
    await '^count +2$'
    keys Escape
    await '^a +3$'
    await '^b +2$'
    keys q
    await '^a  hist\(N\)  3$'
    await '^b  hist\(N\)  2$'
    terminal_end
    # Several tables are one text, which scrolls.
    terminal 60 10 "$ETRACE_BIN -n $NODE 'work:two(K, _) by K: count' 'work:one(X) by X: count'; exec sleep 100"
    await '^q quit'
    on_node '[work:two(a, N) || N <- [1, 2]], work:one(7)'
    await '^a +2$'
    keys Enter
    await_not '^count '
    keys End
    await '^7 +1$'
    keys q
    await '^etrace: 3 events in '
}

@test "on a narrow terminal the table leaves out the last aggregates, and the bars are shorter" {
    local etr="$BATS_TEST_DIRNAME/../fixtures/shop.etr" by='mfa, tag(args[1]): count, sum(dur), avg(dur), quantiles(dur)'
    terminal 80 40 "$ETRACE_BIN replay -q --by '$by' '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line -n 0 --regexp '^mfa +tag\(args\[1\]\) +count +sum\(dur\) +avg\(dur\) +p50\(dur\)$'
    assert_line --regexp '^Shop\.Repo\.get/2 .* 4 .*[0-9]us$'
    terminal_end
    terminal 40 300 "$ETRACE_BIN replay -q --by '$by, hist(dur)' '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line -n 0 --regexp '^mfa +tag\(args\[1\]\) +count$'
    assert_line --regexp '^ +1.02us \|#+ *\| [0-9]+$'
    terminal_end
    # A title without rows has to fit, too.
    terminal 40 24 "$ETRACE_BIN replay -q -c -g nothing_has_this '$etr'; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line -n 0 'calls  errors  total  p99  max  function'
}

@test "in interactive mode, :table shows the table of the captured events" {
    COMMAND=repl
    repl_start -n "$NODE"
    repl_line 'work:two(K, N) by K: count, max(N)'
    until_true 60 grep -q 'Ctrl-C stops' "$ERR"
    on_node 'work:two(a, 7), work:two(b, 1), work:two(a, 3)'
    until_true 60 grep -q 'two(a, 3)' "$OUT"
    repl_line ':table' ':tablejson' ':by mfa' ':table'
    repl_end
    trace_wait
    assert_line --regexp '^K +count +max\(N\)$'
    assert_line --regexp '^a +2 +7$'
    assert_line --regexp '^work:two/2 +3$'
    assert_line --partial '"key":["a"],"count":2,"values":{"max(N)":7}}'
}
