#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the flight recorder: the rings of the node overwrite their oldest events, and the last events come at the end.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/commands

setup_file() { live_share recorder; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

calls() { jq -c 'select(.type == "call")' "$OUT"; }

# The arguments of the shown calls of work:one/1 count down to 1, without a gap.
assert_last_calls() { # CALLS
    local shown first
    shown=$(calls | wc -l)
    assert [ "$shown" -gt 0 ]
    calls | jq '.args[0] | tonumber' >"$BATS_TEST_TMPDIR/numbers"
    first=$(head -n 1 "$BATS_TEST_TMPDIR/numbers")
    seq "$first" -1 1 | cmp - "$BATS_TEST_TMPDIR/numbers" || fail "the numbers from $first on have a gap"
    assert_equal "$((shown + $(overwritten)))" "$1"
    assert_equal "$first" "$shown"
}

@test "the recorder shows the last calls in order, without a gap, and counts those that it has overwritten" {
    trace --json --ring 256kB work:one/1
    on_node 'work:ask(w, fun() -> work:loop(60000) end)'
    refute [ "$(calls | wc -l)" -gt 0 ] # nothing comes before the end
    trace_end
    assert_success
    assert_account 60000
    assert_last_calls 60000
    assert [ "$(overwritten)" -gt 30000 ]
    run jq -c 'select(.type == "lost") | [.reason, .count]' "$OUT"
    assert_output "[\"overwritten\",$(overwritten)]"
    run jq -r 'select(.type == "notice") | .tag' "$OUT"
    assert_output snapshot
    run cat "$ERR"
    assert_line --regexp '^etrace: a snapshot of the last [0-9.]+(us|ms|s)$'
    assert_line --regexp "^etrace: $(calls | wc -l) events in .* · $(overwritten) overwritten$"
}

@test "a recorder that has overwritten nothing shows every event" {
    trace --json --ring 8MB 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(500) end)'
    trace_end
    assert_success
    assert_account 1000
    assert_equal "$(overwritten)" 0
    assert_equal "$(jq -c 'select(.type == "return" and .dur_us == null)' "$OUT")" ''
    run grep 'snapshot' "$ERR"
    assert_output 'etrace: a snapshot of every event so far'
}

@test "a trace that the node refuses has no snapshot, and a time before the trace began is no reach" {
    run "$ETRACE_BIN" -n "$NODE" --ring 30s no_such_module:f/1
    assert_failure 5
    refute_output --partial snapshot
    trace --ring 1h work:one/1
    on_node 'work:ask(w, fun() -> work:loop(3) end)'
    trace_end
    assert_equal "$(grep snapshot "$ERR")" 'etrace: a snapshot of every event so far'
}

@test "--ring takes a size or a time, and no --limit" {
    for wrong in 5 30m 1kB 1GB 0s soon; do
        run "$ETRACE_BIN" -n "$NODE" --ring "$wrong" work:one/1
        assert_failure 2
        assert_output --partial -- '--ring'
    done
    run "$ETRACE_BIN" -n "$NODE" --ring 1MB -l 5 work:one/1
    assert_failure 2
    assert_output --partial 'cannot be combined'
    for recorder in '--ring 1MB' '--snapshot-when ret==5'; do
        # shellcheck disable=SC2086
        run "$ETRACE_BIN" -n "$NODE" $recorder 'work:one/1 inside (work:outer/1 where dur > 1ms)'
        assert_failure 2
        assert_line -n 0 'etrace: a recorder on the node does not go with a root whose result decides'
    done
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'max(dur) > 1s' 'work:one(X) by X: count'
    assert_failure 2
    assert_line -n 0 'etrace: no expression counts max(dur)'
    for option in '--snapshots 3' '--snapshot-every 1s' '--snapshot-after 1s' '--then-for 1s' '--then stacks'; do
        # shellcheck disable=SC2086
        run "$ETRACE_BIN" -n "$NODE" $option work:one/1
        assert_failure 2
        assert_line -n 0 "etrace: ${option% *} needs --ring or --snapshot-when"
    done
    run "$ETRACE_BIN" -n "$NODE" -o "$BATS_TEST_TMPDIR/crash-%n.etr" work:one/1
    assert_failure 2
    assert_line -n 0 "etrace: -o $BATS_TEST_TMPDIR/crash-%n.etr needs --ring or --snapshot-when"
}

# The other tests flood the node, wait for times or start many processes.
# bats file_tags=long

@test "a message says once which size holds more if the buffers hold less than half of --ring TIME" {
    trace --as summary --ring 10min work:one/1
    on_node 'work:ask(w, fun() -> work:loop(1000000) end)'
    kill -USR1 "$TRACER"
    until_true 30 grep -q 'a snapshot of the last' "$ERR"
    on_node 'work:ask(w, fun() -> work:loop(1000000) end)'
    trace_end
    assert_success
    assert_equal "$(grep -cE '^etrace: the events of [0-9.]+(ms|s) fill the buffers, not those of 600s: --ring 64MB would hold about [0-9.]+(ms|s)$' "$ERR")" 1
    trace --as summary --ring 256kB work:one/1
    on_node 'work:ask(w, fun() -> work:loop(60000) end)'
    trace_end
    run cat "$ERR"
    refute_output --partial 'fill the buffers'
}

@test "several processes on all schedulers: each is shown without a gap" {
    trace --json --ring 256kB work:one/1
    on_node 'work:burst(8, 20000)'
    on_node 'work:burst(3, 2000)'
    trace_end
    assert_success
    assert_account 166000
    assert [ "$(overwritten)" -gt 0 ]
    assert [ "$(calls | wc -l)" -gt 1000 ]
    # For each process the arguments fall by one from call to call, and end with 1.
    run jq -sc '[.[] | select(.type == "call")] | group_by(.pid) | map(map(.args[0] | tonumber)) | map(. == [range(length; 0; -1)]) | all' "$OUT"
    assert_output true
}

@test "names of functions, atoms and processes that were defined in overwritten events are there" {
    trace --json --ring 256kB work:one/1 work:two/2
    # Each scheduler has a ring, so on another one the first call would stay.
    on_node 'work:ask(w, fun() -> process_flag(scheduler, 1), erlang:yield(), work:two(first, second), work:loop(20000), work:two(apple, pear), work:one(apple),
        process_flag(scheduler, 0) end)'
    trace_end
    assert_success
    assert_account any
    run jq -r 'select(.type == "call" and .f == "two") | "\(.m) \(.args | join(" ")) \(.name)"' "$OUT"
    assert_output 'work apple pear w'
}

@test "a snapshot is a recording that every view can replay" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 256kB -o last.etr 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    trace_end
    assert_success
    run -0 --separate-stderr "$ETRACE_BIN" replay --json last.etr
    diff <(jq -c 'del(.at)' "$OUT") <(jq -c 'del(.at)' <<<"$output") || fail 'the replay differs'
    run -0 --separate-stderr "$ETRACE_BIN" replay last.etr
    assert_line --index 0 --regexp '^\*\*\* a snapshot of the last [0-9.]+(us|ms|s) \*\*\*$'
    assert_line --index 1 --regexp '^\*\*\* [0-9]+ events before this were overwritten \*\*\*$'
    refute_output --partial lost
    for view in $(views_of_help); do
        case $view in
            table*) run -0 bash -c '"$ETRACE_BIN" replay --as "$1" --by f last.etr >out' - "$view" ;;
            *) run -0 bash -c '"$ETRACE_BIN" replay --as "$1" last.etr >out' - "$view" ;;
        esac
        [[ -s out ]] || fail "the view $view is empty"
    done
}

@test "--ring with a time leaves out older events" {
    trace --json --ring 100ms work:one/1
    on_node 'work:ask(w, fun() -> work:loop(10), timer:sleep(150) end)'
    trace_end
    assert_success
    assert_account 10
    assert_equal "$(overwritten)" 10
}

@test "--for ends the recording" {
    trace --json --ring 30s --for 300ms work:one/1
    on_node 'work:ask(w, fun() -> work:loop(10) end)'
    trace_wait
    assert_success
    assert_account any
}

@test "a client that is killed leaves nothing behind" {
    trace --ring 1MB work:one/1
    on_node 'work:ask(w, fun() -> work:loop(20000) end)'
    trace_end KILL
}

@test "a node that stops ends the recording" {
    live_own stops
    trace --ring 1MB work:one/1
    on_node 'work:ask(w, fun() -> work:loop(1000) end)'
    node_stop "$NODE"
    trace_wait
    assert_failure 1
}

@test "rings count as growth of the node, and the last events come when the memory limit ends the trace" {
    live_own grows
    trace --json --ring 64MB --memory 8MB 'work:one/1'
    on_node 'work:ask(w, fun() -> work:loop(800000) end)'
    trace_wait
    assert_failure 4
    # The limit may end the trace before the last call.
    calls | jq -r '.args[0]' >"$BATS_TEST_TMPDIR/numbers"
    seq "$(head -n 1 "$BATS_TEST_TMPDIR/numbers")" -1 "$(tail -n 1 "$BATS_TEST_TMPDIR/numbers")" | cmp - "$BATS_TEST_TMPDIR/numbers"
    assert_equal "$(($(head -n 1 "$BATS_TEST_TMPDIR/numbers") + $(overwritten)))" 800000
}

@test "events that nobody overwrites, of the rate and of a filter, are counted as before" {
    trace --json --ring 256kB --rate 1000 -e 'hd(args) rem 2 == 0' work:one/1
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    trace_end
    assert_success
    assert_account 30000
}

@test "the default of the rate does not apply, but the same rate does when it is given" {
    trace --json --ring 8MB work:one/1
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    trace_end
    assert_success
    assert_account 30000
    assert_equal "$(jq '.lost.rate // 0' <<<"$(tail -n 1 "$OUT")")" 0
    # The node makes these calls in far less than the ten seconds that this rate allows for them.
    trace --json --ring 8MB --rate 10000 work:one/1
    on_node 'work:ask(w, fun() -> work:loop(100000) end)'
    trace_end
    assert_success
    assert_account 100000
    assert [ "$(jq '.lost.rate // 0' <<<"$(tail -n 1 "$OUT")")" -gt 0 ]
}

@test "the recorder needs the NIF" {
    run "$ETRACE_BIN" -n "$NODE" --fallback --ring 1MB work:one/1
    assert_failure 3
    assert_output --partial '--ring needs the NIF'
}

# A fault in the midst of other calls: the calls before and after it count down, and the fault has an argument of its own.
fault='work:ask(w, fun() -> work:loop(50000), work:caught(error, fault), work:loop(100) end)'

@test "--snapshot-when shows the calls before a fault without a gap, and some time after it" {
    trace --json --ring 256kB --snapshot-when 'class == error' --snapshot-after 200ms 'work:one/1' 'work:raise/2 -> return'
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    refute [ "$(calls | wc -l)" -gt 0 ]
    on_node "$fault"
    trace_wait
    assert_success
    assert_account any
    assert [ "$(overwritten)" -gt 40000 ]
    calls | jq -r '"\(.f) \(.args | join(" "))"' >"$BATS_TEST_TMPDIR/calls"
    first=$(sed -n '1s/one //p' "$BATS_TEST_TMPDIR/calls")
    { seq -f 'one %.0f' "$first" -1 1; echo 'raise error fault'; seq -f 'one %.0f' 100 -1 1; } | cmp - "$BATS_TEST_TMPDIR/calls"
    assert_equal "$(jq -r 'select(.type == "exception") | .reason' "$OUT")" fault
    assert_equal "$(grep -c 'a snapshot of the last' "$ERR")" 1
}

@test "a snapshot has the events of --snapshot-after, which come in later batches" {
    trace --json --ring 256kB --snapshot-when 'class == error' --snapshot-after 2s 'work:one/1' 'work:raise/2 -> return'
    on_node 'work:ask(w, fun() -> work:caught(error, fault), timer:sleep(300), work:loop(100) end)'
    trace_wait
    assert_success
    assert_account 202
    assert_equal "$(jq -c 'select(.type == "call" and .f == "one")' "$OUT" | wc -l)" 100
}

@test "the duration of a call and its value can ask for a snapshot" {
    for when in 'dur > 100ms' 'ret == 150'; do
        trace --json --ring 1MB --snapshot-when "$when" 'work:slow/1 -> return'
        on_node 'work:ask(w, fun() -> work:slow(1), work:slow(2), work:slow(150) end)'
        trace_wait
        assert_success
        assert_account 6
        assert_equal "$(jq -c 'select(.type == "return") | .value' "$OUT" | tail -n 1)" '"150"'
    done
}

@test "each snapshot has its events once, in order, and begins where the one before ended at the earliest" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 256kB --snapshot-when 'class == error' --snapshots 3 --snapshot-after 100ms --snapshot-every 1ms -o each-%n.json work:one/1 'work:raise/2 -> return'
    for i in 1 2 3; do
        on_node "$fault"
        [[ $i == 3 ]] || until_true 20 files_came "$i" # it has ended; its events come earlier
    done
    trace_wait
    assert_success
    assert_account any
    assert_equal "$(jq -r 'select(.type == "notice") | .tag' "$OUT" | grep -c '^snapshot$')" 3
    assert_equal "$(jq -c 'select(.type == "call" and .f == "raise")' "$OUT" | wc -l)" 3
    # A gap is only where events are reported as overwritten.
    run jq -n '[inputs | select(.type == "call" or .type == "lost")] | . as $all | [range(1; length) |
        select($all[.].f == "one" and $all[. - 1].f == "one" and ($all[. - 1].args[0] | tonumber) != 1
            and ($all[. - 1].args[0] | tonumber) != 1 + ($all[.].args[0] | tonumber))] | length' "$OUT"
    assert_output 0
}
snapshot_came() { [[ $(jq -c 'select(.type == "exception")' "$OUT" | wc -l) -ge $1 ]]; }

# The traced events of a file of JSON, or of standard input.
traced_events() { jq -c 'select(.type == "call" or .type == "return" or .type == "exception")' "$@"; }
# The pid of w. A snapshot may begin before the node has found the names of its processes.
worker() { node_eval "$NODE" 'list_to_atom(pid_to_list(whereis(w)))' | tr -d "'"; }
files_came() { [[ $(grep -c '^etrace: snapshot [0-9]*: ' "$ERR") -ge $1 ]]; }

@test "with a fault in a hundred thousand to a million calls, each snapshot has the calls before it in order" {
    local n=0 made worker
    cd "$BATS_TEST_TMPDIR"
    worker=$(worker)
    # Another process fills the ring of its thread all the time.
    on_node 'work:flood(1)'
    trace --ring 1MB --as summary --snapshot-when 'class == error' --snapshots 4 --snapshot-after 1ms --snapshot-every 1ms \
        -o rare-%n.etr 'work:one/1' 'work:raise/2 -> return'
    for made in 100000 1000000 300000 500000; do
        on_node "work:ask(w, fun() -> work:loop($made), work:caught(error, fault$made) end)"
        until_true 30 files_came $((++n))
    done
    on_node 'work:calm(ok)'
    trace_wait
    assert_success
    n=0
    for made in 100000 1000000 300000 500000; do
        n=$((n + 1))
        "$ETRACE_BIN" replay -q --json "rare-$n.etr" | jq -c --arg worker "$worker" 'select(.pid == $worker)' >"part-$n"
        assert_equal "$(jq -r 'select(.type == "exception") | .reason' "part-$n")" "fault$made"
        jq -r 'select(.type == "call") | "\(.f) \(.args[0])"' "part-$n" >calls
        first=$(sed -n '1s/one //p' calls)
        [[ $first -gt 100 && $first -lt $made ]] || fail "snapshot $n begins with $first"
        { seq -f 'one %.0f' "$first" -1 1; echo 'raise error'; } | cmp - calls || fail "snapshot $n has a gap"
    done
}

@test "-o with %n writes each snapshot to a recording of its own, which defines its names again" {
    cd "$BATS_TEST_TMPDIR"
    echo old >crash-2.etr
    trace --json --ring 256kB --snapshot-when 'class == error' --snapshots 3 --snapshot-after 100ms --snapshot-every 1ms \
        -o crash-%n.etr work:one/1 'work:raise/2 -> return'
    for i in 1 2 3; do
        on_node "$fault"
        [[ $i == 3 ]] || until_true 20 files_came "$i"
    done
    trace_wait
    assert_success
    assert_account any
    assert_equal "$(ls crash-*)" $'crash-1.etr\ncrash-2.etr\ncrash-3.etr'
    for number in 1 2 3; do
        run -0 --separate-stderr "$ETRACE_BIN" replay --json "crash-$number.etr"
        printf '%s\n' "$output" >"part-$number"
        assert_equal "$(jq -r 'select(.type == "exception") | .reason' "part-$number")" fault
        assert_equal "$(jq -r 'select(.type == "exception") | .name' "part-$number")" w
        assert_equal "$(jq -r 'select(.type == "notice") | .tag' "part-$number")" snapshot
        run jq -c '.seen == .shown + .filtered + .missing + ([.lost[]] | add) and .missing == 0 and .lost.overwritten > 20000' \
            <<<"$(tail -n 1 "part-$number")"
        assert_output true
        run -0 "$ETRACE_BIN" replay "crash-$number.etr"
        assert_output --regexp "a snapshot of the last"
        assert_equal "$(grep -cE "^etrace: snapshot $number: [0-9]+ events, reaches back [0-9.]+(us|ms|s), crash-$number.etr$" "$ERR")" 1
    done
    # Together the files have the events of the other output, with their times.
    diff <(traced_events "$OUT") <(traced_events part-1 part-2 part-3) || fail 'the files differ from the output'
}

@test "the files of a snapshot can have any view, and a recorder without a condition has one" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --fields type,mfa --ring 256kB -o last-%n.etr -o last-%n.json -o last-%n.csv -o all.json 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    trace_end
    assert_success
    assert_equal "$(ls last-*)" $'last-1.csv\nlast-1.etr\nlast-1.json'
    diff <(traced_events "$OUT") <(traced_events last-1.json)
    run -0 --separate-stderr "$ETRACE_BIN" replay --json last-1.etr
    diff <(traced_events "$OUT") <(traced_events <<<"$output")
    diff <(traced_events "$OUT") <(traced_events all.json)
    assert_equal "$(sort last-1.csv | uniq -c | awk '{print $2}')" $'call,work:one/1\nlost,\nreturn,work:one/1\ntype,mfa'
    assert_equal "$(tail -n 1 last-1.json | jq .shown)" "$(tail -n 1 "$OUT" | jq .shown)"
    assert_equal "$(tail -n 1 last-1.json | jq .lost.overwritten)" "$(overwritten)"
}

@test "a recorder whose condition never holds writes no numbered file" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --snapshot-when 'class == error' -o never-%n.etr 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(100) end)'
    trace_end
    assert_success
    refute [ -e never-1.etr ]
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'class == error' -o never-%n.unknown 'work:one/1 -> return'
    assert_failure 2
    assert_output --partial 'no view has the file extension of never-1.unknown'
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'class == error' -o nowhere/never-%n.etr 'work:one/1 -> return'
    assert_failure 2
    assert_output --partial 'nowhere/never-1.etr: No such file'
}

@test "a numbered file that cannot be written ends the trace with an error" {
    cd "$BATS_TEST_TMPDIR"
    mkdir crash-1.etr
    trace --json --snapshot-when 'class == error' -o crash-%n.etr 'work:raise/2 -> return'
    on_node 'work:caught(error, fault)'
    trace_wait
    assert_failure 1
    run cat "$ERR"
    assert_line 'etrace: cannot write crash-1.etr: Is a directory'
}

@test "SIGUSR1 takes a snapshot by hand, and the recorder goes on" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 256kB --snapshot-after 50ms -o hand-%n.json work:one/1
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    for number in 1 2; do
        on_node 'work:ask(w, fun() -> work:loop(100) end)'
        kill -USR1 "$TRACER"
        until_true 20 files_came "$number"
    done
    on_node 'work:ask(w, fun() -> work:loop(7) end)'
    trace_end
    assert_success
    assert_account 30207
    assert_equal "$(ls hand-*)" $'hand-1.json\nhand-2.json\nhand-3.json'
    assert [ "$(traced_events hand-1.json | wc -l)" -gt 1000 ]
    assert_equal "$(traced_events hand-1.json | tail -n 100 | jq -r '.args[0]' | head -n 1)" 100
    assert_equal "$(traced_events hand-2.json | wc -l)" 100
    assert_equal "$(traced_events hand-3.json | wc -l)" 7
    diff <(traced_events "$OUT") <(traced_events hand-*.json)
    assert_equal "$(jq -r 'select(.type == "notice") | .tag' "$OUT" | xargs)" 'snapshot snapshot snapshot'
}

@test "SIGUSR1 does not wait for the condition nor for the time between snapshots" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshots 3 --snapshot-after 50ms --snapshot-every 1h \
        -o hand-%n.json 'work:raise/2 -> return'
    on_node 'work:caught(exit, a)'
    kill -USR1 "$TRACER"
    until_true 20 files_came 1
    on_node 'work:caught(error, b)' # the condition holds, but too soon
    kill -USR1 "$TRACER"
    until_true 20 files_came 2
    on_node 'work:caught(exit, c)'
    kill -USR1 "$TRACER"
    trace_wait
    assert_success
    assert_account 6
    assert_equal "$(jq -r 'select(.type == "exception") | .reason' "$OUT" | tr '\n' ' ')" 'a b c '
}

@test "a snapshot of one node is a snapshot of all nodes, in one file" {
    cd "$BATS_TEST_TMPDIR"
    local here=$NODE other
    node_start other
    other=$NODE NODE=$here
    node_eval "$other" 'work:worker(w), work:warm()' >/dev/null
    trace --json -n "$other" --ring 256kB --snapshot-when 'class == error' --snapshots 3 --snapshot-after 100ms \
        --snapshot-every 1ms -o all-%n.etr work:one/1 'work:raise/2 -> return'
    until_true 20 grep -q '2 nodes' "$ERR"
    for number in 1 2 3; do
        node_eval "$other" "work:ask(w, fun() -> work:one(other$number) end)" >/dev/null
        on_node "work:ask(w, fun() -> work:loop(30000), work:one(here$number) end)"
        if [[ $number == 2 ]]; then
            kill -USR1 "$TRACER"
        else
            on_node "work:ask(w, fun() -> work:caught(error, fault) end)"
        fi
        [[ $number == 3 ]] || until_true 20 files_came "$number"
    done
    trace_wait
    assert_success
    assert_equal "$(ls all-*)" $'all-1.etr\nall-2.etr\nall-3.etr'
    for number in 1 2 3; do
        run -0 --separate-stderr "$ETRACE_BIN" replay --json "all-$number.etr"
        printf '%s\n' "$output" >"part-$number"
        run jq -r 'select(.type == "call" and .f == "one" and (.args[0] | test("^[0-9]") | not)) | .args[0]' "part-$number"
        assert_output "other$number"$'\n'"here$number"
        assert_equal "$(jq -r 'select(.type == "notice") | .node' "part-$number" | sort)" "$(printf '%s\n' "$here" "$other" | sort)"
        run jq -c '.seen == .shown + .filtered + ([.lost[]] | add) and .missing == 0 and .complete' <<<"$(tail -n 1 "part-$number")"
        assert_output true
    done
    assert_equal "$(grep -c '^etrace: snapshot [0-9]*: ' "$ERR")" 3
    node_stop "$other"
}

@test "several nodes without a condition have one snapshot at the end" {
    cd "$BATS_TEST_TMPDIR"
    local here=$NODE other
    node_start other
    other=$NODE NODE=$here
    node_eval "$other" 'work:worker(w), work:warm()' >/dev/null
    trace --json -n "$other" --ring 256kB -o all-%n.json work:one/1
    until_true 20 grep -q '2 nodes' "$ERR"
    for number in 1 2 3; do
        node_eval "$other" "work:ask(w, fun() -> work:loop(3000), work:one(other$number) end)" >/dev/null
        on_node "work:ask(w, fun() -> work:loop(3000), work:one(here$number) end)"
    done
    trace_end
    assert_success
    assert_account 18006
    assert_equal "$(ls all-*)" all-1.json
    diff <(traced_events "$OUT") <(traced_events all-1.json)
    node_stop "$other"
}

@test "--then runs a command without a shell after each snapshot" {
    cd "$BATS_TEST_TMPDIR"
    printf '#!/bin/sh\necho "$# $1 $2 $ETRACE_SNAPSHOT $ETRACE_FILE" >>said\ntest -s "$ETRACE_FILE"\n' >tell
    chmod +x tell
    trace --json --snapshot-when 'class == error' --snapshots 2 --snapshot-after 50ms --snapshot-every 1ms -o crash-%n.etr \
        --then 'exec ./tell  file-%n ;$(true)' 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 test -s said
    on_node 'work:caught(error, b)'
    trace_wait
    assert_success
    assert_equal "$(cat said)" $'2 file-1 ;$(true) 1 crash-1.etr\n2 file-2 ;$(true) 2 crash-2.etr'
    refute grep -q command "$ERR"
}

@test "--then tells when the command fails or cannot start, and the exit status stays" {
    cd "$BATS_TEST_TMPDIR"
    for command in 'false' './nothing' 'sh broken'; do
        echo 'kill -9 $$' >broken
        trace --json --snapshot-when 'class == error' --then "exec $command" 'work:raise/2 -> return'
        on_node 'work:caught(error, a)'
        trace_wait
        assert_success
        grep ' command of ' "$ERR" >>messages
    done
    run cat messages
    assert_line --index 0 'etrace: the command of snapshot 1 failed with status 1'
    assert_line --index 1 'etrace: cannot run the command of snapshot 1: ./nothing: No such file or directory'
    assert_line --index 2 'etrace: the command of snapshot 1 was ended by signal 9'
}

@test "--then starts no second command beside one that runs, and etrace ends without it" {
    cd "$BATS_TEST_TMPDIR"
    mkfifo hangs
    printf '#!/bin/sh\necho $$ >pid\nread -r line <hangs\n' >hang
    trace --json --snapshot-when 'class == error' --snapshots 0 --snapshot-after 10ms --snapshot-every 1ms \
        -o crash-%n.etr --then 'exec sh hang' 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 test -s pid
    kill -USR1 "$TRACER"
    until_true 20 grep -q 'no command for snapshot 2: that of snapshot 1 still runs' "$ERR"
    kill -INT "$TRACER"
    trace_wait
    assert_success
    run tail -n 2 "$ERR"
    assert_line --index 0 'etrace: the command of snapshot 1 still runs'
    echo go >hangs
}

@test "--then stacks prints the stacks of the moment in which the snapshot begins" {
    # When the call fails, w waits in work:slow/1; when the snapshot ends, it does not.
    trace --json --snapshot-when 'class == error' --snapshot-after 4s --then stacks 'work:raise/2 -> return'
    on_node 'spawn(fun() -> timer:sleep(500), work:caught(error, a) end), work:ask(w, fun() -> work:slow(3000) end)'
    trace_wait
    assert_success
    assert_account any
    run grep -E '^ +[0-9]+ +waiting +work:slow/1 < .*\(w\)$' "$ERR"
    assert_success
    run grep -cE '^etrace: snapshot 1: the stacks of [0-9]+ processes$' "$ERR"
    assert_output 1
    refute grep -q incomplete "$ERR"
}

@test "the stacks of a snapshot that SIGUSR1 takes have its number" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 256kB --snapshot-after 50ms -o hand-%n.json --then stacks work:one/1
    for number in 1 2; do
        on_node 'work:ask(w, fun() -> work:loop(10) end)'
        kill -USR1 "$TRACER"
        until_true 20 grep -q "snapshot $number: [0-9]* events" "$ERR"
        until_true 20 grep -q "snapshot $number: the stacks of .*, hand-$number.stacks.txt" "$ERR"
    done
    trace_end
    assert_success
    refute [ -e hand-3.stacks.txt ]
    assert_equal "$(grep -oE 'snapshot [0-9]+: the stacks' "$ERR" | xargs)" 'snapshot 1: the stacks snapshot 2: the stacks'
}

@test "--then stacks and a trace write to files beside the snapshot" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --snapshot-when 'class == error' --snapshots 2 --snapshot-after 50ms --snapshot-every 1ms -o crash-%n.json \
        --then stacks --then 'trace work:one/1 when true -> return' --then 'trace work:two/2' --then-for 1h 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 files_came 1
    until_true 20 has_then work:two
    kill -INT "$TRACER"
    trace_wait
    assert_success
    assert_equal "$(ls crash-*)" $'crash-1.json\ncrash-1.stacks.txt\ncrash-1.then.etr'
    run grep -E '^ +[0-9]+ waiting +' crash-1.stacks.txt
    assert_success
    run -0 --separate-stderr "$ETRACE_BIN" replay --json crash-1.then.etr
    run jq -r 'select(.type == "call" or .type == "return") | "\(.type) \(.f)"' <<<"$output"
    assert_equal "$(sort -u <<<"$output")" $'call one\ncall two\nreturn one'
    run cat "$ERR"
    assert_line --regexp '^etrace: snapshot 1: the stacks of [0-9]+ processes, crash-1.stacks.txt$'
    refute_output --partial 'still runs'
    refute_output --partial 'work:one(then)'
}

@test "the trace of --then hides and captures what the trace itself does" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --redact iban,card --no-redact --items 3 --snapshot-when 'class == error' -o crash-%n.json \
        --then 'trace work:one/1' --then-for 1h 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    shows() {
        on_node 'work:ask(w, fun() -> work:one([{iban, 17}, {password, 18}, c, d]) end)'
        "$ETRACE_BIN" replay crash-1.then.etr 2>/dev/null | grep work:one
    }
    until_true 20 shows
    kill -INT "$TRACER"
    trace_wait
    run -0 "$ETRACE_BIN" replay crash-1.then.etr
    assert_output --partial "work:one([{iban,'*REDACTED*'},{password,18},c,…])"
}

@test "--then stacks refuses a symbolic link, and only the user reads its files" {
    cd "$BATS_TEST_TMPDIR"
    echo precious >target
    ln -s target crash-1.stacks.txt
    trace --json --snapshot-when 'class == error' --snapshots 2 --snapshot-after 10ms --snapshot-every 1ms -o crash-%n.json \
        --then stacks 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 files_came 1
    until_true 20 grep -q '^etrace: will not write crash-1.stacks.txt: it is a symbolic link$' "$ERR"
    on_node 'work:caught(error, b)'
    trace_wait
    assert_equal "$(<target)" precious
    assert_equal "$(stat -c %a crash-2.json crash-2.stacks.txt)" $'600\n600'
    assert [ -s crash-2.stacks.txt ]
}

# Calls the functions, and returns whether the trace of --then has shown such calls.
has_then() {
    on_node 'work:ask(w, fun() -> work:one(then), work:two(1, 2) end)'
    "$ETRACE_BIN" replay crash-1.then.etr 2>/dev/null | grep -q "$1"
}
prints_then() {
    on_node 'work:ask(w, fun() -> work:one(then) end)'
    grep -q 'work:one(then)' "$ERR"
}

@test "a snapshot whose predecessor is still traced has no trace, and the trace without a file prints lines" {
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshots 0 --snapshot-after 10ms --snapshot-every 1ms \
        --then 'trace work:one/1' --then-for 1h 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 prints_then
    kill -USR1 "$TRACER"
    until_true 20 grep -q 'no trace for snapshot 2: that of snapshot 1 still runs' "$ERR"
    trace_end
    assert_success
}

@test "a client that is killed takes the trace of --then with it" {
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshots 0 --snapshot-after 10ms \
        --then 'trace work:one/1' --then-for 1h 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    until_true 20 prints_then
    trace_end KILL
}

@test "the command of --then finds the node" {
    cd "$BATS_TEST_TMPDIR"
    printf '#!/bin/sh\necho "$ETRACE_NODE" >node\n' >tell
    trace --json --snapshot-when 'class == error' --then 'exec sh tell' 'work:raise/2 -> return'
    on_node 'work:caught(error, a)'
    trace_wait
    assert_success
    assert_equal "$(cat node)" "$NODE"
}

@test "other actions of --then are refused" {
    for action in stack exec 'exec ' 'trace' 'probes work:one/1'; do
        run "$ETRACE_BIN" -n "$NODE" --ring 1MB --then "$action" work:one/1
        assert_failure 2
        assert_output --partial -- "--then does not take '$action'"
        assert_output --partial "stacks, 'trace PROBE', or exec"
    done
    run "$ETRACE_BIN" -n "$NODE" --ring 1MB --then 'exec true' --then 'exec false' work:one/1
    assert_failure 2
    assert_output --partial 'exec is given twice'
    run "$ETRACE_BIN" -n "$NODE" --ring 1MB --then 'trace work:one(' work:one/1
    assert_failure 2
    assert_output --partial 'work:one('
    run "$ETRACE_BIN" -n "$NODE" --ring 1MB --cookie-file - --then 'trace work:one/1' work:one/1 </dev/null
    assert_failure 2
    assert_output --partial 'not --cookie-file -'
    run "$ETRACE_BIN" -n "$NODE" --then 'exec true' work:one/1
    assert_failure 2
    assert_output --partial -- '--then needs --ring or --snapshot-when'
}

@test "a client that is killed during a snapshot leaves nothing behind, and its file can be replayed" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshot-after 1h -o crash-%n.etr work:one/1 'work:raise/2 -> return'
    on_node "$fault"
    until_true 20 snapshot_came 1
    until_true 20 has_events crash-1.etr
    on_node 'work:ask(w, fun() -> work:loop(1000) end)'
    trace_end KILL
    run -1 --separate-stderr "$ETRACE_BIN" replay --json crash-1.etr # the file has no end
    assert_output --partial '"f":"raise"'
}
has_events() { "$ETRACE_BIN" replay "$1" 2>/dev/null | grep -q raise; }

@test "a client that is killed while it waits for the condition leaves nothing behind" {
    trace --json --ring 1MB --snapshot-when 'class == error' work:one/1 'work:raise/2 -> return'
    on_node 'work:ask(w, fun() -> work:loop(50000) end)'
    trace_end KILL
}

@test "a trace that ends just after the condition has held shows the snapshot" {
    local owner='hd(control:companion(owner))'
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshot-after 1h 'work:raise/2 -> return'
    # The owner does not run between the end that etrace asks for and the error, so it sees the end first.
    on_node "Me = self(), work:caught(exit, a), register(holder, spawn(fun() -> erlang:suspend_process($owner), Me ! held, receive go -> ok end end)), receive held -> ok end"
    kill -INT "$TRACER"
    asked() { [[ $(node_eval "$NODE" "element(2, process_info($owner, message_queue_len))") -gt 0 ]]; }
    until_true 20 asked
    on_node 'work:caught(error, b), work:caught(exit, c), holder ! go'
    trace_wait
    assert_success
    assert_account 6
    assert_equal "$(jq -r 'select(.type == "exception") | .reason' "$OUT" | tr '\n' ' ')" 'a b c '
}

@test "triggers soon after a snapshot are counted, and the trace ends without one" {
    trace --json --ring 1MB --snapshot-when 'class == error' --snapshots 0 --snapshot-after 50ms --snapshot-every 1h 'work:raise/2 -> return'
    on_node 'work:caught(error, a), work:caught(error, b)'
    until_true 20 snapshot_came 1
    on_node 'timer:sleep(200), work:caught(error, c), work:caught(exit, d)'
    trace_end
    assert_success
    assert_account 8
    assert_equal "$(jq -r 'select(.type == "exception") | .reason' "$OUT" | tr '\n' ' ')" 'a b '
    assert_equal "$(overwritten)" 4
    run cat "$ERR"
    assert_line 'etrace: the condition of a snapshot held 2 more times too soon after the last one'
}

@test "a trace whose condition never holds shows nothing" {
    trace --json --snapshot-when 'class == error' 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(1000) end)'
    trace_end
    assert_success
    assert_account 2000
    assert_equal "$(overwritten)" 2000
}

@test "explain says who decides the condition of a snapshot" {
    run "$ETRACE_BIN" explain --snapshot-when 'class == error or dur > 1s' 'work:one/1 -> return'
    assert_success
    assert_line 'snapshot when class == error or dur > 1s'
    assert_line '  decided by the tracer on the node, at the end of each call whose result is traced'
    for events in @gc @out '@long_gc(100)'; do
        run "$ETRACE_BIN" explain --snapshot-when 'dur > 1us' "$events" 'work:one/1 -> return'
        assert_success
        assert_line '  decided by etrace on this host, for each event that passes the filters'
    done
    run "$ETRACE_BIN" explain --snapshot-when 'dur > 1us' @exit 'work:one/1 -> return'
    assert_line '  decided by the tracer on the node, at the end of each call whose result is traced'
    run "$ETRACE_BIN" explain --snapshot-when '@long_gc(100)' 'work:one/1 -> return'
    assert_success
    assert_line '  decided by the system monitor of the node, for each system event of these probes'
    run "$ETRACE_BIN" explain --snapshot-when 'name == w' 'work:one/1 -> return'
    assert_success
    assert_line '  decided by etrace on this host, for each event that passes the filters'
    run "$ETRACE_BIN" explain --snapshot-when 'max(dur) > 1ms' 'work:one/1 by pid: max(dur)'
    assert_success
    assert_line '  decided by etrace on this host, which then also counts the keys, whenever a figure changes'
    run "$ETRACE_BIN" explain --snapshot-when '@exit' 'work:one/1 -> return'
    assert_failure 2
    assert_output --partial '@long_message_queue'
}

@test "a system event can ask for a snapshot" {
    [[ $ETRACE_OTP == 27 ]] && return
    grow='fun F(0) -> ok; F(N) -> self() ! {filler, N}, F(N - 1) end'
    empty='fun F() -> receive {filler, _} -> F() after 0 -> ok end end'
    trace --json -P w --snapshot-when '@long_message_queue(2, 20)' work:one/1
    on_node "work:ask(w, fun() -> work:one(before), ($grow)(30), receive after 20 -> ok end, ($empty)() end)"
    trace_wait
    assert_success
    assert_account any
    assert_equal "$(jq -r --arg worker "$(worker)" 'select(.pid == $worker) | .event // .args[0]' "$OUT" | head -n 2 | xargs)" 'before long_message_queue'
}

@test "other events cannot ask for a snapshot" {
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when '@exit' 'work:one/1 -> return'
    assert_failure 2
    assert_output --partial '@long_message_queue'
}
