#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests faults while the node keeps what happens inside of roots: the memory is bounded, each loss is counted, and
# nothing stays behind.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_begin kept
    "${ETRACE_ERL%erl}erlc" -o "$BATS_FILE_TMPDIR" "$BATS_TEST_DIRNAME/../lib/trees.erl"
    trees
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

ROOT='(trees:request/2 where class == throw or ret = {slow, _} or dur > 400ms)'
KEPT="trees:part/2 -> return inside $ROOT"
TALKS=("$KEPT" "send(_, {begun, _}) inside $ROOT" "recv(_) inside $ROOT" "@gc inside $ROOT" "@running inside $ROOT")

# Loads trees.erl into the node. Its atoms are those that the expressions need.
trees() { node_eval "$NODE" "{module, trees} = code:load_abs(\"$BATS_FILE_TMPDIR/trees\"), ok"; }

# Makes requests without end; each fifth fails.
asks() { on_node 'register(asks, spawn(fun F() -> receive stop -> ok after 0 -> trees:requests(4, 50, [{N, fail} || N <- lists:seq(1, 50, 5)]), F() end end))'; }
asks_no_more() { on_node 'begin R = monitor(process, asks), asks ! stop, receive {_, R, _, _, normal} -> ok end end'; }

no_flags() { on_node '[] = [P || P <- processes(), {etrace, _} = S <- trace:session_info(all), {flags, [_ | _]} <- [trace:info(S, P, flags)]]'; }

# Calls request(1, Ms) in N processes at the same time, and waits for their ends.
at_once() { # N MS
    on_node "Refs = [element(2, spawn_monitor(fun() -> trees:request(1, $2) end)) || _ <- lists:seq(1, $1)],
        [receive {'DOWN', R, _, _, normal} -> ok end || R <- Refs], ok"
}

@test "the node is clean after a frozen client, a destroyed session, and the limit of memory" {
    # shellcheck disable=SC2016  # the ends are evaluated later
    for end in 'freeze "$TRACER"; until_true 60 nobody_there; kill -CONT "$TRACER"' \
        'on_node "[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]"' \
        'on_node "register(hoard, spawn(fun() -> _ = [binary:copy(<<0>>, 1000000) || _ <- lists:seq(1, 200)], receive stop -> ok end end))"'; do
        trace --json --memory 100MB "${TALKS[@]}"
        asks
        until_true 30 grep -q '"exception"' "$OUT"
        eval "$end"
        until_true 60 gone "$TRACER"
        asks_no_more
        on_node 'case whereis(hoard) of undefined -> ok; P -> R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end'
        until_true 30 nobody_there
        no_flags
        assert_clean "$BEFORE" "$NODE"
        jq -e . "$OUT" >/dev/null
    done
}

@test "a node stops while it keeps trees" {
    for how in 'init:stop()' 'halt(0)'; do
        live_own stops
        trees
        trace --json "${TALKS[@]}"
        asks
        until_true 30 grep -q '"exception"' "$OUT"
        on_node "spawn(fun() -> $how end)" || true
        until_true 30 node_gone "$NODE"
        trace_wait
        assert_failure 1
        jq -e . "$OUT" >/dev/null
        rm -f "$(node_dir "$NODE")/pid"
    done
}

@test "code that is loaded again inside of roots harms nobody, and every event is accounted for" {
    trace --json --rate 0 "${TALKS[@]}"
    asks
    on_node "[begin code:purge(trees), {module, trees} = code:load_abs(\"$BATS_FILE_TMPDIR/trees\"), timer:sleep(20) end || _ <- lists:seq(1, 30)], ok"
    until_true 30 grep -q '"exception"' "$OUT"
    asks_no_more
    on_node 'code:purge(trees)'
    trace_end
    assert_success
    assert_account any
}

@test "another session that traces the same functions sees all their calls" {
    on_node 'register(other, spawn(fun() ->
        Count = spawn(fun F() -> receive {stop, Who} -> Who ! {seen, element(2, process_info(self(), message_queue_len))} end end),
        S = trace:session_create(other, Count, []),
        trace:process(S, all, true, [call]),
        1 = trace:function(S, {trees, part, 2}, true, [local]),
        receive {stop, Who} -> R = trace:delivered(S, all), receive {trace_delivered, _, R} -> ok end, trace:session_destroy(S),
            Count ! {stop, self()}, receive {seen, N} -> Who ! {other, N} end end end)), ok'
    traced --json "$KEPT" -- 'trees:requests(4, 50, [{7, fail}])'
    assert_success
    assert_account 1200
    assert_equal "$(jq -r 'select(.m) | .type + .f' "$OUT" | sort | uniq -c | awk '{ print $1, $2 }' | tr '\n' ' ')" '8 callpart 4 callrequest 4 exceptionrequest 8 returnpart '
    assert_equal "$(node_eval "$NODE" 'other ! {stop, self()}, receive {other, N} -> N end')" 400
}

@test "processes that die inside of roots give their trees back" {
    trace --json "$KEPT" "send(_, {begun, _}) inside $ROOT" "recv({begun, _}) inside $ROOT"
    on_node 'lists:foreach(fun(_) ->
            Ps = [spawn_monitor(fun() -> trees:request(1, 60000) end) || _ <- lists:seq(1, 500)],
            (fun W() -> case [P || {P, _} <- Ps, process_info(P, current_function) =/= {current_function, {trees, part, 2}}] of [] -> ok; _ -> timer:sleep(5), W() end end)(),
            [begin exit(P, kill), receive {_, R, _, _, killed} -> ok end end || {P, R} <- Ps]
        end, lists:seq(1, 6))'
    on_node 'catch trees:request(77, fail)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(jq -r 'select(.mono_ns and .pid) | .type + .f + .args[0]' "$OUT" | tr '\n' ' ')" 'callrequest77 send receive callpart77 returnpart77 callpart77 returnpart77 exceptionrequest77 '
}

@test "roots beyond the number of trees are counted as lost, and the others are shown whole" {
    trace --json --rate 0 "$KEPT"
    at_once 700 1000
    trace_end
    assert_success
    assert_account any
    whole=$(jq -r 'select(.m) | .pid' "$OUT" | sort | uniq -c | awk '$1 == 6' | wc -l)
    assert_equal "$(jq -r 'select(.m) | .pid' "$OUT" | sort -u | wc -l)" "$whole"
    ((whole > 0))
    # The durations of the others are exact.
    assert_equal "$(jq -r 'select(.type == "return") | .dur_us > 0' "$OUT" | sort | uniq -c | xargs)" "$((whole * 3)) true"
    # The node sees nothing inside of a root that is lost.
    assert_equal "$(jq -r 'select(.type == "summary") | "\(.seen) \(.lost.request)"' "$OUT")" "$((whole * 6 + 700 - whole)) $((700 - whole))"
}

@test "a process that hibernates inside of a root, or waits there when the trace ends, shows nothing of it" {
    trace --json "$KEPT"
    on_node 'register(sleeps, spawn(fun() -> catch trees:request(5, 60000) end)), ok'
    on_node 'trees:request(1, 0), catch trees:request(77, fail)'
    until_true 30 grep -q '"exception"' "$OUT"
    trace_end
    assert_success
    assert_account any
    assert_equal "$(jq -r 'select(.m) | .args[0]' "$OUT" | sort -u)" 77
    assert_equal "$(jq -r 'select(.type == "summary") | .incomplete' "$OUT")" 1
    on_node 'R = monitor(process, sleeps), exit(whereis(sleeps), kill), receive {_, R, _, _, _} -> ok end'
    no_flags
}
