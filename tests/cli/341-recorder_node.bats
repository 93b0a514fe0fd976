#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests faults of the node and of the companion while the flight recorder overwrites, and during a snapshot: each event is
# shown once or is counted, and nothing stays on the node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/recorder

setup_file() { live_begin recordernode; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { recorder_teardown; }

@test "killing the owner or the janitor ends the recording and the snapshot with a message, and the node is clean" {
    local who stage
    for who in owner janitor; do
        for stage in recording snapshot; do
            reaches "$stage"
            on_node "[P] = control:companion($who), exit(P, kill)"
            trace_wait
            assert_failure
            assert_equal "$(grep -c '^etrace: .*\(was killed\|has ended\|was ended\)' "$ERR")" 1
            assert_rising
            made
            until_true 60 nobody_there
            assert_clean "$BEFORE" "$NODE"
        done
    done
}

@test "the recorder goes on when somebody kills the other processes of the companion" {
    local stage
    for stage in recording snapshot; do
        reaches "$stage"
        on_node 'Killed = [P || Who <- [worker, warden, names, asker, heir], P <- control:companion(Who)],
            5 = length([begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Killed])'
        [[ $stage == snapshot ]] || snaps
        made
        trace_end
        assert_success
        assert_made 2
        assert_rising
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "a destroyed session ends the recording and the snapshot with a message, and the node is clean" {
    local stage
    for stage in recording snapshot; do
        reaches "$stage"
        on_node '[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
        trace_wait
        assert_failure
        assert_regex "$talk" 'somebody on the node has destroyed the trace session'
        assert_rising
        made
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "a node that stops or is killed during a snapshot ends the trace, and the events until then are in its file" {
    local how
    cd "$BATS_TEST_TMPDIR"
    for how in 'init:stop()' 'halt(0)' 'os:cmd("kill -9 " ++ os:getpid())'; do
        node_start stops
        trace --json "${RECORDER[@]}" -o "last-%n.etr"
        makes
        snaps
        on_node "spawn(fun() -> $how end)" || true
        until_true 30 node_gone "$NODE" || fail "the node did not stop: $how"
        trace_wait
        assert_failure 1
        assert_rising
        run -0 --separate-stderr "$ETRACE_BIN" replay --json last-1.etr
        assert_equal "$(jq -r 'select(.type == "exception") | .reason' <<<"$output")" fault
        diff <(calls "$OUT") <(calls <<<"$output")
        rm -f "$(node_dir "$NODE")/pid"
    done
}

@test "a node that is lost during a snapshot of two nodes does not hold up the other, whose events are accounted for" {
    local here=$NODE other how number
    cd "$BATS_TEST_TMPDIR"
    for how in node owner; do
        node_start other
        other=$NODE NODE=$here
        trace --json -n "$other" --ring 256kB --snapshot-when 'class == error' --snapshot-after 1s --snapshots 0 --snapshot-every 1ms \
            -o "$how-%n.json" work:one/1 'work:raise/2 -> return'
        until_true 30 grep -q '2 nodes' "$ERR"
        node_eval "$other" '[work:caught(throw, N) || N <- lists:seq(1, 1000)]' >/dev/null
        makes
        fault
        until_true 30 came_from "$other"
        if [[ $how == node ]]; then
            node_stop "$other"
        else
            node_eval "$other" '[P] = control:companion(owner), exit(P, kill)' >/dev/null
        fi
        until_true 30 files_came 1 || fail 'the snapshot waits for the node that was lost'
        fault
        until_true 30 files_came 2 || fail 'the next snapshot waits for the node that was lost'
        made
        trace_end
        assert_failure 1
        assert_rising
        tail -n 1 "$OUT" | jq -e --arg here "$here" --argjson events $((2 * MADE + 4)) '.nodes[] | select(.node == $here) |
            .seen <= $events and .seen + (.lost.ring // 0) >= $events and .seen == .shown + .filtered + ([.lost[]] | add)'
        for number in 1 2; do
            assert_rising "$how-$number.json"
            jq -e '.seen == .shown + .filtered + .missing + ([.lost[]] | add)' <<<"$(tail -n 1 "$how-$number.json")"
        done
        assert_equal "$(jq -c 'select(.type == "exception" and .reason == "fault")' "$how"-[12].json | wc -l)" 2
        node_stop "$other"
    done
}
files_came() { [[ $(grep -c '^etrace: snapshot [0-9]*: ' "$ERR") -ge $1 ]]; }
came_from() { grep '"notice"' "$OUT" | grep -q "\"node\":\"$1\""; }

@test "the memory limit ends the recording and the snapshot with an exact account" {
    local stage
    watched() {
        on_node '[{P, M}] = [{P, M} || P <- processes(), {_, {M, warden, 1}} <- [process_info(P, initial_call)]],
            [{_, {M, _, _}}, {_, 0}] = process_info(P, [current_function, message_queue_len])' 2>/dev/null
    }
    for stage in recording snapshot; do
        trace --json --memory 64MB "${RECORDER[@]}"
        makes
        until_true 60 watched || fail 'the warden did not measure the memory'
        [[ $stage == recording ]] || snaps
        made
        on_node 'Me = self(), register(heavy, spawn(fun() -> K = binary:copy(<<"x">>, 1024),
            B = [binary:copy(K, 1024) || _ <- lists:seq(1, 100)], Me ! heavy, receive stop -> B end end)), receive heavy -> ok end'
        trace_wait
        on_node 'R = monitor(process, heavy), exit(whereis(heavy), kill), receive {_, R, _, _, _} -> ok end'
        assert_failure 4
        assert_regex "$talk" 'its memory has grown by [0-9]+ MiB since the trace started'
        assert_made "$([[ $stage == recording ]] && echo 0 || echo 2)"
        assert_rising
    done
}

# Loads the module with the function one/1.
loads() { # MODULE
    printf -- '-module(%s).\n-export([one/1]).\none(X) -> {leaves, X}.\n' "$1" >"$BATS_TEST_TMPDIR/$1.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/$1.erl"
    on_node "{module, $1} = code:load_abs(\"$BATS_TEST_TMPDIR/$1\")"
}

@test "a module that is loaded again and again while the recorder runs is armed again, and every event is accounted for" {
    local stage
    loads again
    for stage in recording snapshot; do
        trace --json "${RECORDER[@]}" again:one/1
        makes again
        [[ $stage == recording ]] || snaps
        on_node "[begin code:purge(again), {module, again} = code:load_abs(\"$BATS_TEST_TMPDIR/again\"), timer:sleep(20) end || _ <- lists:seq(1, 10)]"
        made
        [[ $stage == snapshot ]] || snaps
        armed() {
            on_node 'again:one(70000000)'
            [[ $(calls "$OUT" | tail -n 1) == 70000000 ]]
        }
        until_true 60 armed || fail 'again:one/1 is not armed'
        trace_end
        assert_success
        assert_account any
        calls "$OUT" | sed '/^70000000$/d' | sort -nuc
        on_node 'code:purge(again)'
    done
}

@test "the events of a module that is deleted and purged are in the snapshot, with its names" {
    loads passing
    trace --json --ring 256kB 'passing:one/1 -> return'
    makes passing
    made
    on_node 'true = code:delete(passing), code:purge(passing)'
    trace_end
    assert_success
    assert_made 0
    assert [ "$(overwritten)" -gt 0 ]
    assert_equal "$(jq -c 'select(.type == "return") | [.m, .f, .value]' "$OUT" | tail -n 1)" "[\"passing\",\"one\",\"{leaves,$MADE}\"]"
}

@test "processes that die in a call, with their names, are in the snapshot, and every event is accounted for" {
    trace --json --ring 1MB 'work:slow(_) -> return' 'work:one/1'
    on_node 'lists:foreach(fun(_) ->
            Ps = [spawn_monitor(fun() -> work:slow(infinity) end) || _ <- lists:seq(1, 1500)],
            (fun W() -> case [P || {P, _} <- Ps, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> timer:sleep(5), W() end end)(),
            [begin exit(P, kill), receive {_, R, _, _, killed} -> ok end end || {P, R} <- Ps]
        end, lists:seq(1, 4)), {P, R} = spawn_monitor(fun() -> register(heavy, self()), work:one(7) end), receive {_, R, _, _, normal} -> ok end'
    trace_end
    assert_success
    assert_account 6001
    assert_equal "$(overwritten)" 0
    assert_equal "$(jq -r 'select(.type == "call" and .f == "slow") | .pid' "$OUT" | sort -u | wc -l)" 6000
}
