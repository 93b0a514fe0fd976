#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the accounting: each event is shown, filtered or counted as lost; the order within each process is kept; and the
# events are those that the VM's own tracer sees.

load ../lib/assert
load ../lib/live

setup_file() { live_begin truth; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Does not wait inside node_eval, because millions of calls can exceed its time limit on a busy machine.
burst() { # PROCESSES CALLS-OF-EACH
    on_node "register(burst, spawn(fun() -> work:burst($1, $2) end))"
    until_true 120 burst_over
}
burst_over() { [[ $(node_eval "$NODE" 'whereis(burst)') == undefined ]]; }

flood() { # CALLS PROCESSES ETRACE ARGS...
    local calls=$1 procs=$2 start took
    shift 2
    trace --json "$@"
    start=$(millis)
    burst "$procs" $((calls / procs))
    took=$(($(millis) - start))
    trace_end
    assert_success
    echo "# $*: $calls calls in $took ms, shown $(json_of summary .shown), lost $(json_of summary '.lost | tostring')" >&3
}

# assert_flood SEEN: checks the summary, and deletes the output, which is too long to keep.
assert_flood() {
    local sum
    sum=$(tail -n 1 "$OUT")
    jq -e --argjson seen "$1" '.type == "summary" and .complete and .missing == 0 and .seen == $seen
        and .seen == .shown + .filtered + ([.lost[]] | add // 0)' <<<"$sum" >/dev/null || fail "the summary does not add up: $sum"
    jq -e --argjson lines "$(grep -c '"type":"call"' "$OUT")" '.shown == $lines' <<<"$sum" >/dev/null ||
        fail "$(grep -c '"type":"call"' "$OUT") lines: $sum"
    # The losses that the stream reports add up to those in the summary, for each reason.
    jq -es --argjson sum "$sum" 'group_by(.reason) | map({key: .[0].reason, value: map(.count) | add}) | from_entries == $sum.lost' \
        < <(grep '"type":"lost"' "$OUT") || fail "the losses in the stream differ from those in the summary: $sum"
    rm -f "$OUT"
}

# Three million calls, or ten million with --all.
many=$((${ETRACE_ALL:+7}000000 + 3000000))

@test "the account of three million calls at the default rate adds up" {
    flood "$many" 4 work:one/1
    assert_flood "$many"
}

@test "the account of three million calls without a rate limit adds up" {
    flood "$many" 4 --rate 0 work:one/1
    assert_flood "$many"
}

@test "the account of a million calls adds up if a guard selects some of them" {
    flood 1000000 2 --rate 0 'work:one(N) when N rem 4 =:= 0'
    assert_flood 250000
}

@test "the account of a flood of results counts calls and results" {
    trace --json --rate 0 'work:one/1 -> return'
    burst 2 100000
    trace_end
    assert_success
    assert_account any
    jq -e '.seen <= 400000 and .seen >= 200000 and .shown > 0' < <(tail -n 1 "$OUT")
}

@test "the events of a workload equal those of the VM's own tracer, in the order of each process" {
    functions='[{work, one, 1}, {work, two, 2}, {work, three, 3}, {work, fac, 1}, {work, sum, 2}, {work, caught, 2}, {work, raise, 2}]'
    for seed in 1 2 3; do
        trace --json --rate 0 'work:one/1 -> return' 'work:two/2 -> return' 'work:three/3 -> return' 'work:fac/1 -> return' \
            'work:sum/2 -> return' 'work:caught/2 -> return' 'work:raise/2 -> return'
        on_node "P = plain:start($functions), work:run(#{seed => $seed, procs => 5, calls => 300}), plain:stop(P, \"$BATS_TEST_TMPDIR/plain\")"
        trace_end
        assert_success
        jq -r 'select(.m) | "\(.pid) \(.type) \(.m):\(.f)/\(.a) " +
            (if .type == "call" then .args | join(" ") elif .type == "return" then .value else "\(.class) \(.reason)" end)' "$OUT" \
            >"$BATS_TEST_TMPDIR/etrace"
        assert [ "$(wc -l <"$BATS_TEST_TMPDIR/etrace")" -gt 4000 ]
        # sort -s is stable, so it keeps the order within each process.
        diff <(sort -s -k1,1 "$BATS_TEST_TMPDIR/plain") <(sort -s -k1,1 "$BATS_TEST_TMPDIR/etrace")
        jq -es '[.[] | select(.m) | .mono_ns] | . == sort' "$OUT"
        assert_account "$(wc -l <"$BATS_TEST_TMPDIR/plain")"
    done
}

@test "system events equal those of a plain tracer, in the order of each process" {
    [[ $ETRACE_OTP != 27 ]] || return 0 # OTP 27 has no system events
    trace --json --rate 0 '@long_message_queue(2, 20)' '@large_heap(100000)'
    # The VM checks the length of the queue when a process waits.
    node_eval "$NODE" "P = plain:events(#{system => [{long_message_queue, {2, 20}}, {large_heap, 100000}]}),
        Grow = fun F(0) -> ok; F(N) -> self() ! {filler, N}, F(N - 1) end, Empty = fun F() -> receive {filler, _} -> F() after 0 -> ok end end,
        Work = fun(Heap) -> [begin Grow(30), timer:sleep(2), Empty(), timer:sleep(2) end || _ <- [1, 2, 3]],
            L = lists:seq(1, Heap), garbage_collect(), exit({did, length(L)}) end,
        Of = [spawn_monitor(fun() -> Work(300000 + I) end) || I <- lists:seq(1, 5)],
        [receive {_, R, _, _, {did, _}} -> ok end || {_, R} <- Of],
        plain:stop(P, \"$BATS_TEST_TMPDIR/all\"),
        file:write_file(\"$BATS_TEST_TMPDIR/pids\", [[pid_to_list(Q), 32, 10] || {Q, _} <- Of])" >/dev/null
    trace_end
    assert_success
    grep -F -f "$BATS_TEST_TMPDIR/pids" "$BATS_TEST_TMPDIR/all" | sort -s -k1,1 >"$BATS_TEST_TMPDIR/plain"
    jq -r 'select(.type == "system") | "\(.pid) \(.event) " +
        (.info | if type == "object" then to_entries | sort_by(.key) | map("\(.key)=\(.value)") | join(",") else tostring end)' "$OUT" |
        grep -F -f "$BATS_TEST_TMPDIR/pids" | sort -s -k1,1 >"$BATS_TEST_TMPDIR/etrace"
    assert [ "$(grep -c ' long_message_queue true$' "$BATS_TEST_TMPDIR/plain")" -eq 15 ]
    assert [ "$(cut -d ' ' -f 1,2 "$BATS_TEST_TMPDIR/plain" | sort -u | grep -c large_heap)" -eq 5 ]
    diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/etrace"
    assert_account any
}

@test "the number of shown calls equals the workload's own count" {
    trace --json --rate 0 work:one/1 work:two/2 work:three/3 work:fac/1 work:sum/2 work:caught/2 work:raise/2
    counts=$(node_eval "$NODE" 'lists:sort([{F, N} || {{F, _}, N} <- maps:to_list(work:run(#{seed => 9, procs => 8, calls => 500}))])')
    trace_end
    assert_success
    assert_equal "[$(json_of call .f | sort | uniq -c | awk '{ printf "%s{%s,%s}", sep, $2, $1; sep = "," }')]" "$counts"
}

@test "no event is lost while a stopped client leaves 1.5 MB of events on the node" {
    trace --json --rate 0 work:one/1
    freeze "$TRACER"
    # Pauses let the owner drain the ring, which cannot hold all of these events.
    on_node 'B = binary:copy(<<"x">>, 1000), [begin [work:one(B) || _ <- lists:seq(1, 300)], receive after 50 -> ok end end || _ <- lists:seq(1, 5)]'
    kill -CONT "$TRACER"
    trace_end
    assert_success
    jq -e '.seen == 1500 and .shown == 1500' < <(tail -n 1 "$OUT") || fail "$talk"
}
