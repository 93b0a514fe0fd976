#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the readers of the output: closed pipes, slow pipes, several clients; and measures the latency.

load ../lib/assert
load ../lib/live

setup_file() { live_begin readers; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# piped 'ARGS' 'READER': runs `etrace ARGS | READER` while the node makes many calls.
piped() {
    local start
    on_node 'work:flood(2)'
    start=$(millis)
    status=0
    timeout 20 bash -o pipefail -c "\"\$ETRACE_BIN\" -n $NODE $1 2>\"$ERR\" | $2" >"$OUT" 3>&- || status=$?
    took_ms=$(($(millis) - start))
    on_node 'work:calm(ok)'
    output=$(<"$OUT")
}

@test "head -3 ends etrace after three lines with status 0" {
    piped 'work:one/1' 'head -n 3'
    assert_success
    assert_equal "$(wc -l <"$OUT")" 3
    assert_equal "$(grep -c -i -e error -e pipe "$ERR" || true)" 0
    echo "# head -3 took $took_ms ms" >&3
}

@test "jq reads every JSON line of a running trace" {
    piped '--json --limit 200 work:one/1' "jq -c 'select(.type == \"call\") | .args'"
    assert_success
    assert_equal "$(sort "$OUT" | uniq -c | tr -s ' ')" ' 200 ["flood"]'
}

@test "a reader that exits early, even before the first event, ends etrace with status 0" {
    piped 'work:one/1' "grep -m1 flood"
    assert_success
    assert_equal "$(wc -l <"$OUT")" 1
    piped 'work:one/1' 'true'
    assert_success
}

memory_of() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }

@test "a reader that stops for longer than the lease neither ends the trace nor makes memory grow" {
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec {reader}<>"$BATS_TEST_TMPDIR/pipe"
    on_node 'work:flood(2)'
    "$ETRACE_BIN" -n "$NODE" --json --rate 0 work:one/1 </dev/null >"$BATS_TEST_TMPDIR/pipe" 2>"$ERR" 3>&- {reader}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    # Measures the memory of the client and of the node. The sizes are stable once all buffers are full.
    sized() {
        before=$(memory_of "$TRACER")
        used=$(node_eval "$NODE" 'erlang:memory(total)')
        since=$(millis)
    }
    same_for_long() {
        pause 0.5
        child "$TRACER" || fail "etrace has ended: $(<"$ERR")"
        after=$(memory_of "$TRACER")
        later=$(node_eval "$NODE" 'erlang:memory(total)')
        ((after < before + 4096 && later < used + 16777216)) || sized
        (($(millis) - since > 9000))
    }
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    sized
    until_true 90 same_for_long || fail "the memory of the client ($before to $after kB) or of the node ($used to $later bytes) still grows"
    echo "# RSS of the client $before kB, 9 s later $after kB; node $((used / 1024)) kB, $((later / 1024)) kB" >&3
    assert [ "$after" -lt 65536 ]
    # The reader has stopped for longer than a lease. The session must still exist, and new events must be shown.
    assert_equal "$(node_eval "$NODE" 'length(trace:session_info(all))')" 2
    on_node 'work:calm(ok)'
    # Do not inherit the descriptor that is open for writing, or cat would never see the end of the pipe.
    cat "$BATS_TEST_TMPDIR/pipe" >"$OUT" 3>&- {reader}>&- &
    cat=$!
    until_true 30 test -s "$OUT"
    exec {reader}>&-
    # The node drops events until its ring has room again, so repeat the call until it is shown.
    late() { on_node 'work:one(late)' && grep -q '"late"' "$OUT"; }
    until_true 30 late
    trace_end
    wait "$cat"
    assert_success
    trace_read
    assert_account any
    assert [ "$(json_of summary .lost.ring)" -gt 0 ]
}

@test "two concurrent clients trace the same function and different functions" {
    trace --json work:one/1
    first=$TRACER
    mv "$OUT" "$OUT.1"
    mv "$ERR" "$ERR.1"
    TRACER=
    trace --json 'work:one/1 -> return' work:two/2
    second=$TRACER
    assert_equal "$(node_eval "$NODE" 'length(trace:session_info(all))')" 3
    on_node 'work:loop(50), work:two(1, 2)'
    # When one client leaves, the other one goes on.
    kill -INT "$second"
    trace_wait
    assert_success
    assert_equal "$(jq -r 'select(.m) | "\(.type) \(.f)"' "$OUT" | sort | uniq -c | tr -s ' ' | tr '\n' ';')" ' 50 call one; 1 call two; 50 return one;'
    on_node 'work:loop(20)'
    TRACER="$first"
    mv "$OUT.1" "$OUT"
    mv "$ERR.1" "$ERR"
    kill -INT "$first"
    trace_wait
    assert_success
    assert_equal "$(json_of call .f | wc -l)" 70
    assert_account 70
}

@test "four concurrent clients with different limits do not affect each other" {
    pids=()
    for i in 1 2 3 4; do
        "$ETRACE_BIN" -n "$NODE" --json --limit $((i * 10)) work:one/1 </dev/null >"$OUT.$i" 2>"$ERR.$i" 3>&- &
        pids+=($!)
    done
    for i in 1 2 3 4; do
        until_true 30 grep -q 'Ctrl-C stops' "$ERR.$i"
    done
    on_node 'work:loop(40)'
    for i in 1 2 3 4; do
        wait "${pids[i - 1]}"
        OUT=$OUT.$i assert_equal "$(grep -c '"type":"call"' "$OUT.$i")" $((i * 10))
    done
}

@test "the median latency from event to line is below two seconds at a low rate" {
    mkfifo "$BATS_TEST_TMPDIR/lines"
    exec {reader}<>"$BATS_TEST_TMPDIR/lines"
    "$ETRACE_BIN" -n "$NODE" work:stamp/1 </dev/null >"$BATS_TEST_TMPDIR/lines" 2>"$ERR" 3>&- {reader}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    on_node 'spawn(work, pace, [200, 7])'
    for ((i = 0; i < 200; i++)); do
        read -r -t 5 -u "$reader" line
        now=${EPOCHREALTIME/./}
        stamp=${line##*[!0-9)]}
        echo $((now - ${stamp%')'}))
    done | sort -n >"$BATS_TEST_TMPDIR/latency"
    exec {reader}>&-
    kill -INT "$TRACER"
    wait "$TRACER"
    TRACER=
    median=$(sed -n 100p "$BATS_TEST_TMPDIR/latency")
    echo "# event to line: median $median us, p90 $(sed -n 180p "$BATS_TEST_TMPDIR/latency") us, max $(tail -n 1 "$BATS_TEST_TMPDIR/latency") us" >&3
    assert [ "$median" -lt 2000000 ]
}

@test "repeated attaches create no atoms" {
    "$ETRACE_BIN" -n "$NODE" -q --dry-run 'work:one/1 -> return'
    before=$(node_snapshot "$NODE")
    for i in {1..15}; do
        start=${EPOCHREALTIME/./}
        trace 'work:one/1 -> return'
        armed=${EPOCHREALTIME/./}
        trace_end
        assert_success
        echo $((armed - start)) >>"$BATS_TEST_TMPDIR/attach"
        echo $((${EPOCHREALTIME/./} - armed)) >>"$BATS_TEST_TMPDIR/leave"
        assert_clean --names 0 "$before" "$NODE"
    done
    echo "# attach: median $(sort -n "$BATS_TEST_TMPDIR/attach" | sed -n 8p) us, max $(sort -n "$BATS_TEST_TMPDIR/attach" | tail -n 1) us;" \
        "leave: median $(sort -n "$BATS_TEST_TMPDIR/leave" | sed -n 8p) us" >&3
}
