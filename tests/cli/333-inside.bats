#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests probes with `inside`: the node shows calls only inside of the calls of a root. The tests compare that with what
# a complete recording of the same calls says.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_begin inside
    "$ETRACE_ERLC" -o "$BATS_FILE_TMPDIR" "$BATS_TEST_DIRNAME/../lib/trees.erl"
    node_eval "$LIVE_NODE" "code:load_abs(\"$BATS_FILE_TMPDIR/trees\")"
    live_repl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown_all; }

ROOT='trees:b(_, Left) when Left < 4'

# Some calls are inside of roots, some of these in roots that are inside of roots.
CALLS='trees:run(7, 8, 60)'

insides() { /usr/bin/python3 "$BATS_TEST_DIRNAME/../lib/insides.py" "$1" <"$2"; }

# Records all calls and results, and the events of further probes, as JSON in $COMPLETE.
complete() {
    COMPLETE=$BATS_TEST_TMPDIR/complete
    traced --json --limit 1000000 'trees:a/2 | trees:b/2 | trees:c/2 -> return' "$@" -- "$CALLS"
    assert_success
    cp "$OUT" "$COMPLETE"
    (($(wc -l <"$COMPLETE") > 2000))
}

story() {
    jq -r 'select(.m) | "\(.type) \(.f)\(if .type == "call" then "(" + (.args | join(",")) + ")" else "" end)"' "$OUT" | tr '\n' ';'
}

# Asserts that no process of the node has a flag of a trace session of etrace.
no_flags() {
    on_node '[] = [P || P <- processes(), {etrace, _} = S <- trace:session_info(all), {flags, [_ | _]} <- [trace:info(S, P, flags)]]'
}

@test "calls inside of roots are the same as in a complete recording, with and without results" {
    complete
    traced --json --limit 1000000 "trees:a/2 | trees:b/2 | trees:c/2 -> return inside $ROOT" -- "$CALLS"
    assert_success
    insides all "$COMPLETE" >"$BATS_TEST_TMPDIR/want"
    insides shown "$OUT" >"$BATS_TEST_TMPDIR/got"
    (($(wc -l <"$BATS_TEST_TMPDIR/want") > 500))
    (($(wc -l <"$BATS_TEST_TMPDIR/want") < $(wc -l <"$COMPLETE")))
    diff "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
    traced --json --limit 1000000 "trees:a/2 | trees:b/2 | trees:c/2 inside ($ROOT)" -- "$CALLS"
    assert_success
    diff <(insides roots "$COMPLETE") <(insides shown "$OUT")
    # The root alone: its own calls make no flag necessary.
    traced --json --limit 1000000 "lists:seq/3 inside $ROOT" -- "$CALLS"
    assert_success
    diff <(insides roots "$COMPLETE" | grep -E ' b( [0-3])?$') <(insides shown "$OUT")
}

@test "messages and events inside of roots are the same as in a complete recording, also if the results decide" {
    local beside=('send(_, {said, _, _})' 'recv({said, _, _})' @spawn)
    complete "${beside[@]}"
    for how in all thrown leaf; do
        case $how in
        all) root=$ROOT ;;
        thrown) root="($ROOT where class == throw)" ;;
        leaf) root="($ROOT where ret = [leaf])" ;;
        esac
        traced --json --limit 1000000 -o "$BATS_TEST_TMPDIR/x.etr" "trees:a/2 | trees:b/2 | trees:c/2 -> return inside $root" "${beside[@]/%/ inside $root}" -- "$CALLS"
        assert_success
        assert_equal "$(jq -r 'select(.type == "summary") | .lost | length' "$OUT")" 0
        insides $how "$COMPLETE" >"$BATS_TEST_TMPDIR/want"
        for kind in send receive spawn; do
            grep -q " $kind" "$BATS_TEST_TMPDIR/want"
        done
        diff "$BATS_TEST_TMPDIR/want" <(insides shown "$OUT")
        run -0 --separate-stderr "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/x.etr"
        diff "$BATS_TEST_TMPDIR/want" <(insides shown /dev/stdin <<<"$output")
        rm "$BATS_TEST_TMPDIR/x.etr"
    done
    # Messages alone: the root's calls are shown with them.
    traced --json --limit 1000000 "${beside[@]/%/ inside $ROOT}" -- "$CALLS"
    assert_success
    diff <(insides roots "$COMPLETE" | grep -vE ' (call|return|exception) [ac]') <(insides shown "$OUT" | grep -vE ' (call|return|exception) [ac]')
}

@test "random roots with random conditions show what they show of a complete recording" {
    local seed root made beside=('send(_, {said, _, _})' 'recv({said, _, _})' @spawn) seeds=4 kept=0
    [[ ! ${ETRACE_ALL:-} ]] || seeds=60
    complete "${beside[@]}"
    for ((seed = 1; seed <= seeds; seed++)); do
        { read -r root && read -r made; } < <(/usr/bin/python3 "$BATS_TEST_DIRNAME/../lib/insides.py" make "$seed")
        traced --json --limit 1000000 --rate 0 "trees:a/2 | trees:b/2 | trees:c/2 -> return inside $root" "${beside[@]/%/ inside $root}" -- "$CALLS"
        assert_success
        assert_equal "$(jq -r 'select(.type == "summary") | .lost | length' "$OUT")" 0
        insides "$made" "$COMPLETE" >"$BATS_TEST_TMPDIR/want"
        insides shown "$OUT" >"$BATS_TEST_TMPDIR/got"
        diff "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got" >"$BATS_TEST_TMPDIR/differs" || fail "seed $seed: $root$(echo; head -n 20 "$BATS_TEST_TMPDIR/differs")"
        kept=$((kept + $(wc -l <"$BATS_TEST_TMPDIR/want")))
    done
    ((kept > 1000))
}

@test "time slices and collections inside of a root have durations only if they began inside" {
    # Not the duration: on a busy host the others may take as long as these.
    local root='(trees:request/2 where ret = {3, _} or ret = {6, _} or ret = {9, _})'
    traced --json "@running inside $root" "@gc inside $root" "trees:part/2 -> return_to inside $root" -- \
        'work:ask(w, fun() -> [trees:request(N, if N rem 3 =:= 0 -> 20; true -> 0 end) || N <- lists:seq(1, 9)] end)'
    assert_success
    assert_equal "$(jq -r 'select(.f == "request" and .args) | "\(.type) \(.args[0])"' "$OUT" | tr '\n' ' ')" 'call 3 return 3 call 6 return 6 call 9 return 9 '
    # Each root waits in its part. The first slice that ends in a root began before it.
    assert_equal "$(jq -r 'select(.type == "call" and .f == "request" or .type == "in" or .type == "out")
        | "\(.type)\(if .dur_us then " for long" else "" end)"' "$OUT" | awk '
            /call/ { began = 0; roots++ } /^in/ { began = 1 }
            /^out/ { if ((!began) != ($0 == "out")) print "wrong"; began = 0; outs++ } END { print roots, (outs >= 3) }')" '3 1'
    assert_equal "$(jq -r 'select(.type == "return_to") | .f' "$OUT" | sort | uniq -c | awk '{ print $1, $2 }')" '6 request'
}

@test "a process that has left a root is not traced any more after its next message" {
    trace --json 'send(_, _) inside work:outer/1'
    on_node 'Me = self(), P = spawn(fun() -> work:outer(1), Me ! left, Me ! done, receive stop -> ok end end), register(was_inside, P), receive done -> ok end'
    on_node '[] = [S || {etrace, _} = S <- trace:session_info(all), {flags, [_ | _]} <- [trace:info(S, whereis(was_inside), flags)]]'
    on_node 'begin R = monitor(process, was_inside), was_inside ! stop, receive {_, R, _, _, _} -> ok end end'
    trace_end
    assert_success
    assert_equal "$(story)" 'call outer(1);return outer;'
    assert_account 2
}

@test "-c counts the calls inside of roots" {
    complete
    traced -c "trees:a/2 | trees:b/2 | trees:c/2 -> return inside $ROOT" -- "$CALLS"
    assert_success
    assert_equal "$(awk 'NR > 1 && !/^[*]/ { print $1, $NF }' "$OUT" | sort)" \
        "$(insides all "$COMPLETE" | awk '$2 == "call" { n[$3]++ } END { for (f in n) print n[f] " trees:" f "/2" }' | sort)"
}

@test "a process outside of roots has no flag and costs nothing" {
    trace --json 'work:_ inside work:outer/1'
    on_node 'Me = self(), P = spawn(fun() -> work:one(1), work:outer(2), work:one(3), Me ! done, receive stop -> ok end end), register(was_inside, P), receive done -> ok end'
    on_node '[] = [S || {etrace, _} = S <- trace:session_info(all), {flags, [_ | _]} <- [trace:info(S, whereis(was_inside), flags)]]'
    no_flags
    on_node 'begin R = monitor(process, was_inside), was_inside ! stop, receive {_, R, _, _, _} -> ok end end'
    trace_end
    assert_success
    assert_equal "$(story)" 'call outer(2);call deep(2);call deep(1);call deep(0);return outer;'
    assert_account 5
}

@test "several roots, patterns, and exceptions" {
    traced --json 'work:one/1 inside (work:outer(1) | work:deep(_) | work:two(_, 4))' -- \
        'work:one(1), work:two(1, 3), work:outer(1), work:outer(2), work:two(1, 4), work:one(2)'
    assert_success
    assert_equal "$(story)" 'call outer(1);call deep(1);call deep(0);exception deep;exception deep;return outer;call deep(2);call deep(1);call deep(0);exception deep;exception deep;exception deep;call two(1,4);return two;'
}

@test "a process that is killed inside of a root takes nothing with it" {
    trace --json 'work:one/1 inside work:slow/1'
    on_node '[begin {P, R} = spawn_monitor(fun() -> work:slow(infinity) end), timer:sleep(20), exit(P, kill), receive {_, R, _, _, _} -> ok end end || _ <- [1, 2, 3]]'
    on_node 'work:one(1), work:slow(1), work:one(2)'
    trace_end
    assert_success
    assert_equal "$(story)" 'call slow(infinity);call slow(infinity);call slow(infinity);call slow(1);return slow;'
}

@test "a root that runs when the trace begins is not a root, and its result is not shown" {
    on_node 'register(runs, spawn(fun() -> work:climb(1, {0, 600}) end))'
    trace --json 'work:one/1 inside work:climb/2'
    on_node 'R = monitor(process, runs), receive {_, R, _, _, _} -> ok end'
    trace_end
    assert_success
    assert_equal "$(story)" ''
}

# bats test_tags=long
@test "a recording of a trace with inside shows the same again" {
    traced -o "$BATS_TEST_TMPDIR/x.etr" 'work:_ -> return inside work:outer/1' -- 'work:one(1), work:outer(1), work:one(2)'
    assert_success
    run -0 --separate-stderr "$ETRACE_BIN" replay --as tree "$BATS_TEST_TMPDIR/x.etr"
    assert_equal "$(cut -d' ' -f3- <<<"$output" | sed -E 's/ [0-9.]+(ns|us|ms)$//')" 'work:outer(1)
  work:deep(1)
    work:deep(0) raised error:bottom
  └ work:deep/1 raised error:bottom
└ work:outer/1 = 1'
}

@test "-P selects the processes whose calls of the root count" {
    on_node 'work:worker(friend)'
    local pid calls='work:ask(w, fun() -> work:outer(1) end), work:ask(friend, fun() -> work:outer(2) end),
        {P, R} = spawn_monitor(fun() -> work:outer(3) end), receive {_, R, process, P, normal} -> ok end'
    pid=$(node_eval "$NODE" 'whereis(w)')
    while read -r who expected; do
        IFS=, read -ra whom <<<"$who"
        traced --json "${whom[@]/#/-P}" 'work:_ -> return inside work:outer/1' 'send(_, _) inside work:outer/1' -- "$calls"
        assert_success
        # Calls of the root by other processes are neither shown nor lost.
        run jq -sr '[.[] | select(.type == "call" and .f == "outer")] as $in | ($in | map(.args[0]) | sort | join(" ")) + "; "
            + (map(select(.f == "outer" and .type != "call").type) | unique | join(" ")) + ", \(last.lost | length) lost, "
            + (if all(.[] | select(.m); .pid | IN($in[].pid)) then "nothing" else "something" end) + " elsewhere"' "$OUT"
        assert_output "$expected; return, 0 lost, nothing elsewhere"
    done <<END
$pid 1
w,friend 1 2
existing 1 2
new,w 1 3
all 1 2 3
END
    # The same with trees, with a root that is also traced inside of roots, and with figures.
    traced --json -P friend 'work:_ inside (work:outer/1 | work:deep/1 where dur >= 0s)' -- "$calls"
    assert_success
    assert_equal "$(jq -r 'select(.type == "call") | "\(.f) \(.args[0])"' "$OUT" | tr '\n' ';')" 'outer 2;deep 2;deep 1;deep 0;'
    traced -c -P friend 'work:deep/1 inside work:outer/1' -- "$calls"
    assert_success
    assert_equal "$(awk 'NR > 1 && !/^[*]/ { print $1, $NF }' "$OUT" | sort)" '1 work:outer/1
3 work:deep/1'
    no_flags
    on_node 'work:stop(friend)'
    run -5 "$ETRACE_BIN" -n "$NODE" -P friend 'work:one/1 inside work:outer/1'
    assert_line -n 0 'etrace: no process is registered as friend on the node'
    run -0 "$ETRACE_BIN" explain -P w -P new 'work:one/1 inside work:outer/1'
    assert_line '  processes    w, new: the node rejects calls of the root by others before it tests the match spec'
}

@test "what does not go with inside is refused before a node is asked" {
    refused() {
        run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 "${@:2}"
        assert_line --index 0 --partial "$1"
    }
    refused "'send(_, x)' is not inside of a root, but 'send(_, y) inside work:outer/1' is" 'send(_, y) inside work:outer/1' 'send(_, x)'
    refused "'@exit' is not inside of a root, but '@spawn inside work:outer/1' is" '@spawn inside work:outer/1' @exit
    refused "'work:two/2' is not inside of a root, but 'send(_, y) inside work:outer/1' is" 'send(_, y) inside work:outer/1' work:two/2
    refused "'work:two/2' is not inside of a root, but 'work:one/1 inside work:outer/1' is" 'work:one/1 inside work:outer/1' 'work:two/2'
    refused "the probes of a trace have the same roots, not 'work:outer/1' and 'work:slow/1'" 'work:one/1 inside work:outer/1' 'work:two/2 inside work:slow/1'
    refused 'processes cannot inherit flags, nor be silent, with inside' --follow 'work:one/1 inside work:outer/1'
    refused '65 roots are too many for one trace' "work:one/1 inside ($(printf 'work:fib(%d) | ' {1..64}) work:fib(65))"
}

# bats test_tags=long
@test "several probes with the same root, messages beside them, and a tracer without the NIF" {
    traced --json 'work:one/1 inside work:slow/1' 'work:two/2 -> return inside work:slow/1' 'send(_, done)' -- \
        'self() ! done, work:slow(1), work:one(1)'
    assert_success
    assert_equal "$(jq -r 'select(.type == "send" or .type == "call" or .type == "return") | .type' "$OUT" | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" '1 call 1 return 1 send '
    refused_root() {
        run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 "work:one/1 inside (work:outer/1 where $1)"
        assert_line --index 0 --partial 'the node cannot evaluate the filter of the root'
    }
    refused_root 'element(1, ret) == error'
    refused_root 'ret = {X, X}'
    refused_root 'dur > 1s and name == x'
    refused_root 'size > 7'
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 ':work.one(_) inside (:work.outer(_) where elem(ret, 0) == :error)'
    assert_line --partial 'class == :error or ret = {:error, _}'
    run -3 "$ETRACE_BIN" -n "$NODE" --fallback 'work:one/1 inside work:slow/1'
    assert_output --partial 'inside needs the NIF'
}

@test "where after a root shows only trees whose root it accepts, as in a complete recording" {
    complete
    traced --json --limit 1000000 "trees:a/2 | trees:b/2 | trees:c/2 -> return inside ($ROOT where class == throw)" -- "$CALLS"
    assert_success
    assert_account "$(insides all "$COMPLETE" | wc -l)"
    insides thrown "$COMPLETE" >"$BATS_TEST_TMPDIR/want"
    insides shown "$OUT" >"$BATS_TEST_TMPDIR/got"
    (($(wc -l <"$BATS_TEST_TMPDIR/want") > 50))
    (($(wc -l <"$BATS_TEST_TMPDIR/want") < $(insides all "$COMPLETE" | wc -l)))
    diff "$BATS_TEST_TMPDIR/want" "$BATS_TEST_TMPDIR/got"
}

# bats test_tags=long
@test "where after a root tests the result's value, by a pattern, a constant, and an atom that the node does not have" {
    complete
    traced --json --limit 1000000 "trees:a/2 | trees:b/2 | trees:c/2 -> return inside ($ROOT where ret = [leaf])" -- "$CALLS"
    assert_success
    assert_account "$(insides all "$COMPLETE" | wc -l)"
    insides leaf "$COMPLETE" >"$BATS_TEST_TMPDIR/want"
    (($(wc -l <"$BATS_TEST_TMPDIR/want") > 50))
    diff "$BATS_TEST_TMPDIR/want" <(insides shown "$OUT")
    atom=unheard_$RANDOM$RANDOM
    traced --json --limit 100 "work:two/2 inside (work:one/1 where ret == 7 or ret = {error, #{reason := $atom}} or ret == $atom)" -- \
        "work:one(6), work:one(7), [A] = [list_to_atom(\"un\" ++ T) || T <- [\"${atom#un}\"]], [work:one(V) || V <- [A, {error, A}, {error, #{reason => A, at => 1}}, {A}]]"
    assert_success
    assert_equal "$(jq -r 'select(.type == "return") | .value' "$OUT" | tr '\n' ' ')" "7 $atom {error,#{reason => $atom,at => 1}} "
}

# bats test_tags=long
@test "of 100,000 requests the 10 that fail are shown, whole" {
    traced --json 'trees:part/2 -> return inside (trees:request/2 where class == throw)' -- 'trees:requests(10, 10000, [{5000, fail}])'
    assert_success
    assert_account 600000
    assert_equal "$(jq -r 'select(.m) | "\(.type) \(.f) \(.args[0])"' "$OUT" | sort | uniq -c | awk '{ print $1, $2, $3, $4 }')" \
        '20 call part 5000
10 call request 5000
10 exception request 5000
20 return part 5000'
}

# On a busy host other requests are slow, too.
# bats test_tags=long
@test "slow requests are shown whole, with the times of all events inside" {
    traced --json 'trees:part/2 -> return inside (trees:request/2 where dur > 50ms)' -- 'trees:requests(10, 1000, [{500, 60}])'
    assert_success
    assert_account 60000
    assert_equal "$(jq -r 'select(.type == "return" and .f == "request" and .args[0] == "500") | .pid' "$OUT" | sort -u | wc -l)" 10
    # The node's clock and that of this host differ a little.
    jq -se '[.[] | select(.type == "return" and .f == "request")] | all(.dur_us > 49000)' "$OUT"
    jq -se 'group_by(.pid)[] | map(select(.m) | .f + .type) | select(length > 0) | . as $all
        | [range(0; length; 6)] | all($all[.:. + 6] == ["requestcall", "partcall", "partreturn", "partcall", "partreturn", "requestreturn"])' "$OUT"
    jq -se '[.[] | select(.type == "return" and .f == "part" and .args == ["500", "[two,60]"])] | length == 10 and all(.dur_us > 59000)' "$OUT"
    jq -se 'group_by(.pid)[] | [.[] | select(.m)] | select(length > 0) | [.[].mono_ns] == ([.[].mono_ns] | sort)' "$OUT"
}

# bats test_tags=long
@test "roots in hundreds of other roots are shown if only they are accepted" {
    traced --json --rate 0 'trees:part/2 -> return inside (trees:nested/1 where ret == 5)' -- 'trees:nested(10), trees:nested(300), trees:nested(1000)'
    assert_success
    assert_account $((1313 * 2 + 6))
    assert_equal "$(jq -r 'select(.m) | .type + .f + .args[0]' "$OUT" | sort | uniq -c | awk '{ print $1, $2 }' | xargs)" \
        "$(for n in 0 1 2 3 4 5; do echo 3 callnested$n; done | xargs) 3 callpart0 $(for n in 0 1 2 3 4 5; do echo 3 returnnested$n; done | xargs) 3 returnpart0"
    # The tree has no room for the innermost calls, so it counts as lost, not as filtered.
    traced --json --rate 0 'trees:part/2 -> return inside (trees:nested/1 where ret == 5)' -- 'trees:nested(10000)'
    assert_success
    assert_account 20004
    jq -e '.lost.guard > 10000' <<<"$(tail -n 1 "$OUT")"
}

@test "the rate admits whole trees" {
    local limit
    for limit in 100 1000; do
        traced --json --rate "$limit" 'trees:part/2 -> return inside (trees:request/2 where dur > 0ns)' -- 'trees:requests(4, 1000, [])'
        assert_success
        assert_account 24000
        jq -e '.lost.rate > 1000 and .lost.rate % 6 == 0 and .shown % 6 == 0 and .shown > 0' <<<"$(tail -n 1 "$OUT")"
        jq -se 'group_by(.pid)[] | map(select(.m) | .f + .type) | select(length > 0) | . as $all
            | [range(0; length; 6)] | all($all[.:. + 6] == ["requestcall", "partcall", "partreturn", "partcall", "partreturn", "requestreturn"])' "$OUT"
    done
}

@test "a root that calls itself in a loop ends with its first call" {
    local root
    for root in trees:turns/1 '(trees:turns/1 where dur > 0ns)'; do
        traced --json --rate 0 "trees:part/2 inside $root" -- \
            '[begin work:ask(w, fun() -> trees:turns(N), trees:part(outside, N) end), timer:sleep(100) end || N <- [300, 400, 500]]'
        assert_success
        assert_equal "$(jq -r 'select(.f == "part") | .args[0]' "$OUT" | grep -c outside || true)" 0
        assert_equal "$(jq -r 'select(.type == "notice") | [.tag, .f, .a] | join(" ")' "$OUT")" 'root_loops turns 1'
        # Calls may be lost while the node looks at the loop, but none of the later roots. These show only their first call.
        assert_equal "$(jq -r 'select(.f == "part") | .args[0]' "$OUT" | tail -n 501 | xargs)" "$(seq 500 -1 0 | xargs)"
        run jq -rs '[.[] | select(.f == "turns" and .type == "call") | .args[0]] as $calls | [.[] | select(.f == "turns" and .type == "return")]
            | length == ($calls | length) and all(.dur_us > 0)' "$OUT"
        assert_output true
        assert_equal "$(jq -r 'select(.f == "turns" and .type == "call") | .args[0]' "$OUT" | tail -n 2 | xargs)" '400 500'
    done
    no_flags
}

@test "--sample shows one of N roots with everything inside, also if their results decide" {
    for root in trees:request/2 '(trees:request/2 where class == throw)'; do
        traced --json --sample 1/100 "trees:part/2 -> return inside $root" -- 'trees:requests(4, 1000, [{N, fail} || N <- lists:seq(1, 1000)])'
        assert_success
        assert_account 240
        assert_equal "$(jq -r 'select(.m) | .type + .f' "$OUT" | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" \
            '80 callpart 40 callrequest 40 exceptionrequest 80 returnpart '
    done
    run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 --sample 1/10 work:one/1
    assert_line --index 0 'etrace: --sample needs a probe with inside'
    for wrong in 0 1/0 2/3 1/x 1/-1 ''; do
        run -2 "$ETRACE_BIN" -n nobody@127.0.0.1 --sample "$wrong" 'work:one/1 inside work:outer/1'
        assert_line --index 0 "etrace: --sample does not take '$wrong'"
    done
}

# bats test_tags=long
@test "a root with more inside than its tree holds shows the beginning and the end, and counts the gap" {
    traced --json 'trees:part/2 inside (trees:many/1 where dur > 50ms)' -- 'trees:many(3000)'
    assert_success
    assert_account 3002
    numbers=$(jq -s '[.[] | select(.f == "part") | .args[0] | tonumber]' "$OUT")
    jq -e '.[0] == 1 and .[-1] == 3000 and . == sort and length > 100 and length < 3000' <<<"$numbers"
    assert_equal "$(jq -r 'select(.type == "summary") | .lost.guard' "$OUT")" "$((3000 - $(jq length <<<"$numbers")))"
    assert_equal "$(jq -r 'select(.f == "many") | .type' "$OUT" | tr '\n' ' ')" 'call return '
    # The loss is where the events are missing: there the numbers jump.
    run jq -rs '[.[] | select(.f == "part" or .type == "lost") | if .type == "lost" then "lost" else (.args[0] | tonumber) end] | index("lost") as $at
        | .[$at - 1] + 1 < .[$at + 1] and .[:$at] == [range(1; $at + 1)] and .[$at + 1:] == [range(.[$at + 1]; 3001)]' "$OUT"
    assert_output true
    # A root that is not shown loses nothing.
    traced --json 'trees:part/2 inside (trees:many/1 where dur > 5s)' -- 'trees:many(3000)'
    assert_success
    assert_account 3002
    assert_equal "$(totals)" '0 events · 3002 filtered'
}

# bats test_tags=long
@test "trees are the same in a recording, in the interactive mode, and from a process that is killed" {
    traced -o "$BATS_TEST_TMPDIR/x.etr" 'trees:part/2 -> return inside (trees:request/2 where ret = {2, _})' -- \
        'trees:request(1, 0), trees:request(2, 60), trees:request(3, 0), {P, R} = spawn_monitor(fun() -> trees:request(4, 60000) end), timer:sleep(20), exit(P, kill), receive {_, R, _, _, _} -> ok end'
    assert_success
    run -0 --separate-stderr "$ETRACE_BIN" replay --as tree "$BATS_TEST_TMPDIR/x.etr"
    assert_equal "$(cut -d' ' -f3- <<<"$output" | sed -E 's/ [0-9.]+(ns|us|ms)$//')" 'trees:request(2, 60)
  trees:part(2, one) = 2
  trees:part(2, [two,60]) = 2
└ trees:request/2 = {2,2}'
    repl_start -n "$NODE"
    repl_line 'trees:part/2 -> return inside (trees:request/2 where dur > 50ms)'
    until_true 30 grep -q 'inside of roots\|functions' "$ERR" "$OUT"
    on_node 'trees:request(1, 0), trees:request(2, 60)'
    until_true 30 grep -q 'return trees:request/2' "$OUT"
    # The node reports once a second how many events it did not send.
    on_node 'trees:request(2, 1200), trees:request(3, 0), trees:request(2, 1200)'
    repl_end
    trace_wait
    refute_regex "$(<"$ERR")" malformed
    assert_equal "$(grep -c 'trees:part(2' "$OUT")" 6
    grep -E 'return trees:part/2 = 2 [0-9.]+ms' "$OUT"
    grep -E 'return trees:part/2 = 2 1[.0-9]+s' "$OUT"
}

@test "however a trace ends while trees are kept, nothing stays and no traced process is harmed" {
    # shellcheck disable=SC2016  # the ends are evaluated later
    for end in 'kill -INT "$TRACER"' 'kill -KILL "$TRACER"' 'on_node "exit(hd(control:companion(owner)), kill)"' \
        'on_node "exit(hd(control:companion(janitor)), kill)"' 'on_node "[M] = control:companion_modules(), code:purge(M), code:delete(M), code:purge(M)"'; do
        on_node 'register(asks, spawn(fun F() -> receive stop -> ok after 0 -> trees:requests(4, 200, [{N, fail} || N <- lists:seq(1, 200)]), F() end end))'
        trace --json 'trees:part/2 -> return inside (trees:request/2 where class == throw or dur > 1min)'
        until_true 30 grep -q '"exception"' "$OUT"
        eval "$end"
        until_true 30 gone "$TRACER"
        on_node 'begin R = monitor(process, asks), asks ! stop, receive {_, R, _, _, normal} -> ok end end'
        until_true 30 nobody_there
        no_flags
        assert_clean "$BEFORE" "$NODE"
    done
}
