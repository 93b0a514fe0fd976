#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests faults while requests are traced: each request is in the table once, with all its parts or not at all, the account
# of events adds up, and nothing stays on the node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

COMMAND=requests

setup_file() {
    live_begin requestfaults
    on_node 'asks:start()'
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints how many requests with this shape the table counts.
counted() { sed -nE "s/^(asks +)?$1  +([0-9]+) .*/\2/p" "$OUT"; }

@test "the memory limit ends the trace with the requests until then" {
    watched() {
        on_node '[{P, M}] = [{P, M} || P <- processes(), {_, {M, warden, 1}} <- [process_info(P, initial_call)]],
            [{_, {M, _, _}}, {_, 0}] = process_info(P, [current_function, message_queue_len])' 2>/dev/null
    }
    trace --memory 64MB -P asks
    on_node 'asks:calls({sleep, 0}, 300)'
    until_true 60 watched || fail 'the warden did not measure the memory'
    on_node 'Me = self(), register(heavy, spawn(fun() -> K = binary:copy(<<"x">>, 1024),
        B = [binary:copy(K, 1024) || _ <- lists:seq(1, 100)], Me ! heavy, receive stop -> B end end)), receive heavy -> ok end'
    trace_wait 60
    on_node 'R = monitor(process, heavy), exit(whereis(heavy), kill), receive {_, R, _, _, _} -> ok end'
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" 'its memory has grown by [0-9]+ MiB since the trace started'
    assert_equal "$(counted '\{sleep,_\}')" 300
    refute grep -q lost "$ERR"
}

@test "requests that come while the client is stopped are counted" {
    trace -P asks
    freeze "$TRACER"
    # The test renews the lease of the stopped client: {pull, 0, 0} gives no credit.
    on_node '[Owner] = control:companion(owner),
        [begin Owner ! {pull, 0, 0}, ok = asks:call({sleep, 0}), timer:sleep(30) end || _ <- lists:seq(1, 100)],
        Owner ! {pull, 0, 1 bsl 20}'
    kill -CONT "$TRACER"
    trace_end
    assert_success
    assert_equal "$(counted '\{sleep,_\}')" 100
    refute grep -q lost "$ERR"
}

# The default size of the buffers depends on the free memory: half of all of them holds fewer requests than this test makes.
@test "requests that begin while the buffers are more than half full are left out whole" {
    trace --json --rate 0
    freeze "$TRACER"
    on_node '[Owner] = control:companion(owner),
        [begin Owner ! {pull, 0, 0}, ok = asks:calls(count, 10000) end || _ <- lists:seq(1, 40)],
        Owner ! {pull, 0, 1 bsl 20}'
    kill -CONT "$TRACER"
    on_node 'asks:calls({sleep, 0}, 10)'
    trace_end
    assert_success
    run jq -es '[.[] | select(.type == "request" and .shape == "count")] as $shown |
        ($shown | length > 1000 and length < 400000 and
            all(.[]; .waited_us >= 0 and .worked_us >= 0 and .reply_us >= 0 and .answered)) and
        ([.[] | select(.type == "requests_missing")][0] | .lost.ring == null and .lost.request == (400000 - ($shown | length)) * 5) and
        ([.[] | select(.type == "request" and .shape == "{sleep,_}")] | length) == 10' "$OUT"
    assert_output true
}

@test "a client that is silent for too long loses its trace, and the node is clean" {
    trace -P asks
    on_node 'asks:calls({sleep, 0}, 300)'
    freeze "$TRACER"
    until_true 60 nobody_there
    kill -CONT "$TRACER"
    on_node 'asks:calls({sleep, 0}, 300)'
    trace_wait 60
    assert_failure
    assert_clean "$BEFORE" "$NODE"
}

@test "kill -9 of the client amid requests leaves nothing on the node" {
    local n
    for n in 1 2 3; do
        trace -P all
        on_node 'register(flood, spawn(fun F() -> receive calm -> ok after 0 -> asks:call(count), F() end end)), asks:calls({sleep, 0}, 100)'
        kill -KILL "$TRACER"
        wait "$TRACER" || true
        on_node 'R = monitor(process, flood), flood ! calm, receive {_, R, _, _, normal} -> ok end'
        until_true 60 nobody_there
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "killing the owner or the janitor ends the trace with a message, and the node is clean" {
    local who
    for who in owner janitor; do
        trace -P asks
        on_node 'asks:calls({sleep, 0}, 300)'
        on_node "[P] = control:companion($who), exit(P, kill)"
        trace_wait 60
        assert_failure
        assert_equal "$(grep -c '^etrace: .*\(was killed\|has ended\|was ended\)' "$ERR")" 1
        on_node 'asks:calls({sleep, 0}, 300)'
        until_true 60 nobody_there
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "the trace goes on when somebody kills the worker, the warden and the process of the names" {
    trace -P asks
    on_node 'asks:calls({sleep, 0}, 100)'
    on_node 'Killed = [P || Who <- [worker, warden, names], P <- control:companion(Who)],
        3 = length([begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Killed]),
        asks:calls({sleep, 0}, 200)'
    trace_end
    assert_success
    assert_equal "$(counted '\{sleep,_\}')" 300
    refute grep -q lost "$ERR"
}

@test "a destroyed session ends the trace with a message, and the node is clean" {
    trace -P asks
    on_node 'asks:calls({sleep, 0}, 300), [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
    trace_wait 60
    assert_failure
    assert_regex "$talk" 'somebody on the node has destroyed the trace session'
    on_node 'asks:calls({sleep, 0}, 300)'
}
