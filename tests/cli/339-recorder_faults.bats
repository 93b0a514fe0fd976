#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests faults of the client and of its connection while the flight recorder overwrites, and during a snapshot: each event
# is shown once or is counted, and nothing stays on the node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/recorder

setup_file() { live_begin recorderfaults; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { recorder_teardown; }

killed() {
    kill -KILL "$TRACER"
    wait "$TRACER" || true
}

@test "kill -9 of the client in a flood leaves nothing on the node" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    for args in '--ring 256kB' '--ring 1s' '--ring 256kB --snapshot-when dur>1s'; do
        # shellcheck disable=SC2086
        trace $args --json work:one/1 'work:raise/2 -> return'
        on_node 'work:ask(w, fun() -> work:loop(50000) end)'
        killed
        assert_clean "$flooded" "$NODE"
    done
    on_node 'work:calm(ok)'
}

@test "kill -9 of the client during a snapshot in a flood leaves nothing on the node" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    for frozen in '' yes; do
        trace --as summary "${RECORDER[@]}"
        # A stopped client leaves the first batches of the snapshot in the connection.
        [[ ! $frozen ]] || freeze "$TRACER"
        fault
        [[ $frozen ]] || until_true 30 grep -q 'a snapshot of' "$ERR"
        killed
        assert_clean "$flooded" "$NODE"
    done
    on_node 'work:calm(ok)'
}

@test "kill -9 of the client at random moments of attaching and of the last snapshot leaves nothing on the node" {
    for _ in {1..5}; do
        etrace_start -n "$NODE" "${RECORDER[@]}"
        pause "0.$(printf '%03d' $((RANDOM % 60)))"
        killed
        assert_clean "$BEFORE" "$NODE"
    done
    for _ in {1..5}; do
        trace --json --ring 8MB work:one/1
        on_node 'work:ask(w, fun() -> work:loop(100000) end)'
        kill -INT "$TRACER"
        pause "0.$(printf '%03d' $((RANDOM % 200)))"
        child_kill "$TRACER" # it may have ended
        wait "$TRACER" || true
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "a client that is stopped for longer than its lease loses its trace, also during a snapshot, and the node is clean" {
    local recording
    on_node 'work:flood(1)'
    flooded=$(node_snapshot "$NODE")
    trace --as summary --ring 256kB work:one/1
    recording=$TRACER
    OUT=$OUT.snapshot ERR=$ERR.snapshot
    trace --as summary "${RECORDER[@]}"
    freeze "$TRACER" "$recording"
    fault
    assert_clean "$flooded" "$NODE" 60
    kill -CONT "$TRACER" "$recording"
    trace_wait
    assert_failure 4
    assert_regex "$talk" 'ended the tracing: it received nothing from this etrace for 10 seconds'
    TRACER=$recording OUT=${OUT%.snapshot} ERR=${ERR%.snapshot}
    trace_wait
    assert_failure 4
    assert_regex "$talk" 'ended the tracing: it received nothing from this etrace for 10 seconds'
    on_node 'work:calm(ok)'
}

by_hand() {
    kill -USR1 "$TRACER"
    until_true 30 grep -q '"call"' "$OUT" || fail 'the snapshot did not begin'
}

@test "events that come while the client is stopped are accounted for" {
    local stage
    for stage in recording snapshot; do
        trace --json --ring 256kB --snapshot-after 1h work:one/1
        makes
        [[ $stage == recording ]] || by_hand
        freeze "$TRACER"
        # The test renews the lease of the stopped client: {pull, 0, 0} gives no credit.
        on_node '[Owner] = control:companion(owner),
            [begin Owner ! {pull, 0, 0}, timer:sleep(20) end || _ <- lists:seq(1, 50)], Owner ! {pull, 0, 1 bsl 20}'
        kill -CONT "$TRACER"
        [[ $stage == snapshot ]] || by_hand
        made
        trace_end
        assert_success
        assert_account "$MADE"
        assert_rising
    done
}

@test "INT, TERM and HUP during a snapshot end it with an exact account" {
    local signal
    for signal in INT TERM HUP; do
        trace --json "${RECORDER[@]}"
        makes
        snaps
        made
        trace_end "$signal"
        assert_success
        assert_made 2
        assert_rising
        assert [ "$(overwritten)" -gt 10000 ]
        assert_last
        assert_clean "$BEFORE" "$NODE"
    done
    # The flood goes on when the trace ends.
    on_node 'work:flood(1)'
    flooded=$(node_snapshot "$NODE")
    trace --json "${RECORDER[@]}"
    on_node 'work:ask(w, fun() -> work:loop(20000) end)'
    fault
    until_true 30 grep -q 'a snapshot of the last' "$ERR"
    trace_end TERM
    assert_success
    assert_account any
    assert [ "$(overwritten)" -gt 0 ]
    assert_clean "$flooded" "$NODE"
    on_node 'work:calm(ok)'
}

@test "repeated Ctrl-C ends etrace although the output of its snapshot is blocked" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec {reader}<>"$BATS_TEST_TMPDIR/pipe"
    dd if=/dev/zero of="$BATS_TEST_TMPDIR/pipe" oflag=nonblock bs=4096 count=1024 2>/dev/null || true
    "$ETRACE_BIN" -n "$NODE" "${RECORDER[@]}" </dev/null >"$BATS_TEST_TMPDIR/pipe" 2>"$ERR" 3>&- {reader}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    fault
    # Nobody reads, so the lines of the snapshot keep etrace from ending. Two signals that are pending at the same time
    # are delivered as one, so repeat.
    again() { child_kill "$TRACER" INT; gone "$TRACER"; }
    until_true 30 again
    : >"$OUT"
    trace_wait
    assert_failure 130
    assert_clean "$flooded" "$NODE"
    exec {reader}>&-
    on_node 'work:calm(ok)'
}

@test "a cut connection ends the recording and the snapshot, and the node is clean" {
    local stage
    for stage in recording snapshot; do
        reaches "$stage"
        on_node '[true = erlang:disconnect_node(N) || N <- nodes(hidden)]'
        trace_wait
        assert_failure 1
        assert_rising
        made
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "with --reattach the recorder goes on after a cut connection, and takes its next snapshot" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --reattach --ring 256kB --snapshot-when 'class == error' --snapshot-after 50ms --snapshots 0 --snapshot-every 1ms \
        -o cut-%n.json work:one/1 'work:raise/2 -> return'
    makes
    cut() { on_node '[true = erlang:disconnect_node(N) || N <- nodes(hidden)]'; }
    cut
    until_true 30 begun_again 1
    snaps
    cut
    until_true 30 begun_again 2
    failed_again() {
        fault
        [[ $(grep -c '"exception"' cut-2.json 2>/dev/null) -ge 1 ]]
    }
    until_true 30 failed_again
    made
    trace_end
    assert_success
    assert_rising
    assert_rising cut-1.json
    assert_rising cut-2.json
    # Overwritten events of a connection that was cut are missing.
    jq -e '.seen == .shown + .filtered + .missing + ([.lost[]] | add)' <<<"$(tail -n 1 "$OUT")"
}
begun_again() { [[ $(grep -c '"node_up"' "$OUT") -ge $1 ]]; }

@test "several recorders and another trace of the same calls each have an exact account, and one that is killed disturbs no other" {
    local i tracers=() out=$OUT err=$ERR
    for i in 1 2 3 4; do
        OUT=$out.$i ERR=$err.$i
        case $i in
            1 | 2) trace --json "${RECORDER[@]}" ;;
            3) trace --json --rate 0 'work:one/1 -> return' 'work:raise/2 -> return' ;;
            4) trace --json --ring 256kB work:one/1 ;;
        esac
        tracers+=("$TRACER")
    done
    makes
    OUT=$out.1
    snaps
    kill -KILL "${tracers[3]}"
    made
    for i in 1 2 3; do
        OUT=$out.$i ERR=$err.$i TRACER=${tracers[i - 1]}
        trace_end
        assert_success
        assert_made 2
        assert_rising
    done
}

@test "conditions, SIGUSR1 and calls at the same time give each event once, and an exact account" {
    local file
    cd "$BATS_TEST_TMPDIR"
    signals() {
        until [[ -e over ]]; do
            kill -USR1 "$TRACER" || true
            pause 0.01
        done
    }
    trace --json --ring 256kB --snapshot-when 'class == error' --snapshot-after 1ms --snapshots 0 --snapshot-every 1ms \
        -o each-%n.etr work:one/1 'work:raise/2 -> return'
    makes
    signals 3>&- &
    on_node '[begin work:caught(error, N), timer:sleep(7) end || N <- lists:seq(1, 60)]'
    made
    touch over
    wait $!
    trace_end
    assert_success
    assert_made 120
    assert_rising
    for file in each-*.etr; do "$ETRACE_BIN" replay -q --json "$file"; done | jq -r 'select(.type == "call" or .type == "exception")' >all
    assert_equal "$(calls all | sort -n | uniq -d)" ''
    diff <(calls "$OUT") <(calls all | sort -n)
}
