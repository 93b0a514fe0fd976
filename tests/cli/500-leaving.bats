#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# etrace leaves nothing on the node, whether it ends by a signal, at any moment, is frozen, or is cut off.

load ../lib/assert
load ../lib/live

setup_file() { live_begin leaving; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Waits until the node is as in BEFORE, and adds the time in ms to cleanups.
cleaned() { # BEFORE NODE
    local start
    start=$(millis)
    assert_clean "$1" "$2" "$3" || return
    cleanups+=($(($(millis) - start)))
}

report() {
    printf '%s\n' "${cleanups[@]}" | sort -n >"$BATS_TEST_TMPDIR/cleanups"
    echo "# $1: clean after $(sed -n "$(((${#cleanups[@]} + 1) / 2))p" "$BATS_TEST_TMPDIR/cleanups") ms (median), $(tail -n 1 "$BATS_TEST_TMPDIR/cleanups") ms (max), ${#cleanups[@]} times" >&3
}

# --all runs a hundred repetitions of each.
flood_times=$((${ETRACE_ALL:+9}0 + 10))
attach_times=$((${ETRACE_ALL:+8}0 + 20))

@test "the node is clean at once after kill -9 at random moments of a flood" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    cleanups=()
    for ((i = 0; i < flood_times; i++)); do
        trace --json --rate 0 'work:one/1 -> return'
        pause "0.$(printf '%03d' $((RANDOM % 150)))"
        kill -KILL "$TRACER"
        cleaned "$flooded" "$NODE"
    done
    report 'kill -9 in a flood'
    on_node 'work:calm(ok)'
}

@test "the node is clean at once after kill -9 at random moments of attaching" {
    cleanups=()
    for ((i = 0; i < attach_times; i++)); do
        "$ETRACE_BIN" -n "$NODE" work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&- &
        pid=$!
        TRACERS+=("$pid")
        pause "0.$(printf '%03d' $((RANDOM % 60)))"
        kill -KILL "$pid" || fail "etrace has ended: $(<"$ERR")"
        cleaned "$BEFORE" "$NODE"
    done
    report 'kill -9 while attaching'
}

@test "INT, TERM and HUP end a trace with status 0 and a summary" {
    for signal in INT TERM HUP; do
        trace --json work:one/1
        on_node 'work:loop(10)'
        trace_end "$signal"
        assert_success
        assert_account 10
        refute_regex "$talk" ' session '
        assert_clean "$BEFORE" "$NODE"
    done
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    for signal in INT TERM HUP; do
        trace --json --rate 0 work:one/1
        pause 0.1
        trace_end "$signal"
        assert_success
        tail -n 1 "$OUT" | jq -e '.type == "summary" and .complete and .seen == .shown + .filtered + ([.lost[]] | add // 0)'
        assert_clean "$flooded" "$NODE"
    done
    on_node 'work:calm(ok)'
}

@test "repeated Ctrl-C ends etrace although its output is blocked" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec {reader}<>"$BATS_TEST_TMPDIR/pipe"
    # The pipe is full from the beginning.
    dd if=/dev/zero of="$BATS_TEST_TMPDIR/pipe" oflag=nonblock bs=4096 count=1024 2>/dev/null || true
    "$ETRACE_BIN" -n "$NODE" --rate 0 work:one/1 </dev/null >"$BATS_TEST_TMPDIR/pipe" 2>"$ERR" 3>&- {reader}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    # Nobody reads, so the remaining output keeps etrace from ending.
    pause 0.5
    kill -INT "$TRACER"
    pause 0.2
    kill -0 "$TRACER"
    # Two signals that are pending at the same time are delivered as one, so repeat.
    again() { child_kill "$TRACER" INT; gone "$TRACER"; }
    until_true 30 again
    : >"$OUT"
    trace_wait
    assert_failure 130
    assert_clean "$flooded" "$NODE"
    exec {reader}>&-
    on_node 'work:calm(ok)'
}

@test "a signal while etrace attaches ends it at once and leaves nothing on the node" {
    for _ in {1..10}; do
        etrace_start -n "$NODE" work:one/1
        pause "0.$(printf '%03d' $((RANDOM % 40)))"
        trace_end TERM
        # Before etrace installs its handlers, the signal kills it.
        [[ $status -eq 0 || $status -eq 143 ]] || fail "status $status: $talk"
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "the lease cleans up after a frozen client, which reports it, and the node can stop meanwhile" {
    # The test waits for two nodes at once to save time.
    node_start other
    other=$NODE
    node_eval "$other" 'work:worker(w)' >/dev/null
    node_eval "$other" 'work:flood(2)' >/dev/null
    "$ETRACE_BIN" -n "$other" --json --rate 0 work:one/1 </dev/null >"$OUT.other" 2>"$ERR.other" 3>&- &
    frozen=$!
    TRACERS+=("$frozen")
    until_true 30 grep -q 'Ctrl-C stops' "$ERR.other"
    NODE=$LIVE_NODE

    # Fill the channel before there is an event to send, so that a process that waits for a full channel does wait.
    # One message of any size does not fill it. At the end of the lease the channel holds more than the socket takes.
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    on_node 'work:calm(ok)'
    trace --json --rate 0 work:one/1
    freeze "$TRACER" "$frozen"
    start=$(millis)
    on_node '[Client] = nodes(hidden), {_, Port} = lists:keyfind(Client, 1, erlang:system_info(dist_ctrl)),
        F = fun F() -> case erlang:send({nobody, Client}, binary:copy(<<0>>, 1000000), [nosuspend, noconnect]) of ok -> F(); nosuspend -> ok end end, F(),
        {_, N} = erlang:port_info(Port, queue_size), true = N > 0, work:flood(2)'

    # The other node stops although its client does not read.
    pause 1
    began=$(millis)
    node_eval "$other" 'spawn(fun() -> init:stop() end)' >/dev/null
    until_true 30 node_gone "$other" # at the latest when the lease ends: the socket may not take all pending data
    echo "# init:stop() with a frozen client: $(($(millis) - began)) ms" >&3

    assert_clean "$flooded" "$NODE" 30
    took=$(($(millis) - start))
    echo "# frozen client: clean after $took ms" >&3
    assert [ "$took" -ge 8000 ]
    kill -0 "$TRACER"
    # This is longer than the time after which a node disconnects a silent node.
    [[ ! $ETRACE_ALL ]] || pause 80
    assert_clean "$flooded" "$NODE"
    kill -CONT "$TRACER" "$frozen"
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" 'ended the tracing: it received nothing from this etrace for 10 seconds'
    TRACER=$frozen OUT=$OUT.other ERR=$ERR.other
    trace_wait
    # The node has stopped and the lease has expired, so etrace may report either.
    [[ $status -eq 1 || $status -eq 4 ]] || fail "status $status: $talk"
    on_node 'work:calm(ok)'
}

