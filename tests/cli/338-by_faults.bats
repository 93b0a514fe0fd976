#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests faults while the node counts by keys (nif/by.h): each call is in the table once, each loss is counted, and nothing
# stays on the node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin byfaults; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# The calls wait for their results, with their key and with their row.
KEYS='work:two(K, _) by K, ret: count, sum(element(2, ret)), max(dur)'
FIGURES='work:two(K, _) by K: count, max(dur), hist(dur)'

calls() { on_node "[work:two(a, 1) || _ <- lists:seq(1, $1)]"; }

# flood and calm: a process that makes calls without end, and its end
flood() { on_node 'register(flood, spawn(fun F() -> receive calm -> ok after 0 -> work:two(b, 2), F() end end))'; }
calm() { on_node 'R = monitor(process, flood), flood ! calm, receive {_, R, _, _, normal} -> ok end'; }

# Prints how many calls with the key a the table counts.
counted() { jq -r 'select(.type == "row" and .key[0] == "a").count' "$OUT"; }

@test "kill -9 of the client amid calls leaves nothing on the node" {
    local probe
    for probe in "$KEYS" "$FIGURES" "$KEYS"; do
        trace --json "$probe"
        flood
        calls 500
        kill -KILL "$TRACER"
        wait "$TRACER" || true
        calm
        until_true 60 nobody_there
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "a client that is silent for too long loses its trace, and the node is clean" {
    trace --json "$KEYS"
    calls 300
    freeze "$TRACER"
    until_true 60 nobody_there
    kill -CONT "$TRACER"
    calls 300
    trace_wait 60
    assert_failure
    assert_clean "$BEFORE" "$NODE"
}

@test "calls that come while the client is stopped are counted" {
    trace --rate 1 --json "$KEYS"
    freeze "$TRACER"
    # The test renews the lease of the stopped client: {pull, 0, 0} gives no credit.
    on_node '[Owner] = control:companion(owner),
        [begin Owner ! {pull, 0, 0}, work:two(a, 1), timer:sleep(30) end || _ <- lists:seq(1, 100)],
        Owner ! {pull, 0, 1 bsl 20}'
    kill -CONT "$TRACER"
    trace_end
    assert_success
    assert_equal "$(counted)" 100
    refute grep -q lost "$ERR"
}

@test "killing the owner or the janitor ends the count with a message, and the node is clean" {
    local who
    for who in owner janitor; do
        trace --json "$FIGURES"
        calls 300
        on_node "[P] = control:companion($who), exit(P, kill)"
        trace_wait 60
        assert_failure
        assert_equal "$(grep -c '^etrace: .*\(was killed\|has ended\|was ended\)' "$ERR")" 1
        calls 300
        until_true 60 nobody_there
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "the count goes on when somebody kills the worker, the warden and the process of the names" {
    trace --rate 1 --json "$KEYS"
    calls 100
    on_node 'Killed = [P || Who <- [worker, warden, names], P <- control:companion(Who)],
        3 = length([begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Killed])'
    calls 200
    trace_end
    assert_success
    assert_equal "$(counted)" 300
    refute grep -q lost "$ERR"
}

@test "a destroyed session ends the count with a message, and the node is clean" {
    trace --json "$KEYS"
    on_node '[work:two(a, 1) || _ <- lists:seq(1, 300)], [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
    trace_wait 60
    assert_failure
    assert_regex "$talk" 'somebody on the node has destroyed the trace session'
    calls 300
}

@test "the memory limit ends the count with the calls until then" {
    watched() {
        on_node '[{P, M}] = [{P, M} || P <- processes(), {_, {M, warden, 1}} <- [process_info(P, initial_call)]],
            [{_, {M, _, _}}, {_, 0}] = process_info(P, [current_function, message_queue_len])' 2>/dev/null
    }
    trace --memory 64MB --rate 1 --json "$KEYS"
    calls 300
    until_true 60 watched || fail 'the warden did not measure the memory'
    on_node 'Me = self(), register(heavy, spawn(fun() -> K = binary:copy(<<"x">>, 1024),
        B = [binary:copy(K, 1024) || _ <- lists:seq(1, 100)], Me ! heavy, receive stop -> B end end)), receive heavy -> ok end'
    trace_wait 60
    on_node 'R = monitor(process, heavy), exit(whereis(heavy), kill), receive {_, R, _, _, _} -> ok end'
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_equal "$(counted)" 300
    refute grep -q lost "$ERR"
}

@test "processes that die in a call, and their successors with the same stacks, are counted" {
    trace --rate 1 --json 'work:slow(N) by N, ret: count'
    on_node 'lists:foreach(fun(_) ->
            Ps = [spawn_monitor(fun() -> work:slow(infinity) end) || _ <- lists:seq(1, 1500)],
            (fun W() -> case [P || {P, _} <- Ps, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> timer:sleep(5), W() end end)(),
            [begin exit(P, kill), receive {_, R, _, _, killed} -> ok end end || {P, R} <- Ps]
        end, lists:seq(1, 4))'
    on_node '[work:slow(0) || _ <- lists:seq(1, 50)]'
    trace_end
    assert_success
    assert_equal "$(jq -c 'select(.type == "row") | [.key, .count]' "$OUT")" '[["0","0"],50]'
    # A call without a free stack is sent, and the rate may reject it.
    jq -se 'map(select(.type == "table"))[0] | .without_result + (.lost | add // 0) == 6000 and .missing == 0' "$OUT"
}

@test "results beyond the rate that no row can have are counted as lost" {
    trace --rate 20 --json 'work:one(X) by node: count, sum(ret)'
    on_node '[work:one(1.5) || _ <- lists:seq(1, 500)], [work:one(1) || _ <- lists:seq(1, 500)]'
    trace_end
    assert_success
    jq -se 'map(select(.type == "table"))[0].lost.rate as $lost | map(select(.type == "row"))[0] |
        $lost >= 400 and .count == 1000 and .values["sum(ret)"] == 500 + 1.5 * (500 - $lost)' "$OUT"
    jq -se 'map(select(.type == "table"))[0].missing == 0' "$OUT"
}

@test "calls of a function that loops have no result, and are counted" {
    trace --rate 1 --json 'work:spin(_) by node: count, max(dur)'
    on_node 'work:spin(50000), work:spin(3)'
    trace_end
    assert_success
    # The node rejects some calls while it finds out that the function loops.
    jq -se '.[0].count + .[1].lost.guard == 50005 and .[1].missing == 0' "$OUT"
}
