#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the flight recorder in etrace itself: the condition of --snapshot-when reads what the node does not decide, so all
# events travel, and etrace keeps the last ones.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin recorder; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown_all; }

calls() { jq -c 'select(.type == "call")' "$OUT"; }
snapshots() { jq -r 'select(.type == "notice") | .tag' "$OUT" | grep -c '^snapshot$'; }

# Ends with one call that the conditions accept. The buffers of the node hold all these calls, so none is lost on a busy host.
fault='work:ask(w, fun() -> work:loop(20000), work:two(fault, here), work:loop(10) end)'

# For more calls than the buffers hold: some may be lost, the fault among them.
strike() { until_true 60 struck; }
struck() {
    gone "$TRACER" || on_node 'work:ask(w, fun() -> work:two(fault, here) end)'
    gone "$TRACER"
}

@test "a snapshot has the last events before the condition held, in order, without a gap, and counts the others" {
    trace --json --rate 0 --ring 256kB --snapshot-when 'args[1] == fault' work:one/1 work:two/2
    assert_equal "$(grep -c 'etrace decides the condition of --snapshot-when' "$ERR")" 1
    on_node "$fault"
    trace_wait
    assert_success
    assert_account 20011
    assert [ "$(overwritten)" -gt 1000 ]
    run jq -c 'select(.type == "lost") | .reason' "$OUT"
    assert_output '"overwritten"'
    # The arguments of the calls fall by one from call to call, down to 1; the fault and what came after it follow.
    calls | jq -r '.args[0]' >"$BATS_TEST_TMPDIR/numbers"
    { seq "$(head -n 1 "$BATS_TEST_TMPDIR/numbers")" -1 1 && echo fault && seq 10 -1 1; } | cmp - "$BATS_TEST_TMPDIR/numbers"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/numbers")" -gt 1000 ]
    run cat "$ERR"
    assert_line --regexp '^etrace: a snapshot of the last [0-9.]+(us|ms|s)$'
}

@test "conditions read arguments, results, names, callers, sizes and regular expressions" {
    local when
    while IFS= read -r when; do
        trace --json --snapshot-when "$when" 'work:two/2 -> return' 'work:raise/2' '@exit'
        on_node 'work:ask(w, fun() -> work:two(0, 0), work:two(fault, lists:seq(1, 99)), work:caught(error, x) end), spawn(fun() -> exit(fault) end)'
        trace_wait || fail "$when"
        assert_success
        assert_account any
        assert_equal "$(snapshots)" 1
        assert_equal "$(calls | head -n 1 | jq -r '.args[0]')" 0
    done <<'END'
args[1] == fault
element(1, ret) == fault
ret =~ "fault"
name == w and is_atom(args[1])
size > 100
reason == fault
caller =~ "caught"
END
}

@test "the duration of an event that is no call triggers, also beside calls" {
    trace --json -P w --snapshot-when 'dur > 0ns' --snapshot-after 50ms @gc work:one/1
    on_node 'work:ask(w, fun() -> work:one(1), erlang:garbage_collect() end)'
    trace_wait
    assert_success
    assert_account any
    jq -se 'any(.[]; .type == "gc_major_end" and .dur_us > 0)' "$OUT" >/dev/null
}

@test "a condition that no event fulfils shows nothing, and counts every event as overwritten" {
    trace --json --rate 0 --snapshot-when 'args[1] == fault' 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(3000) end)'
    trace_end
    assert_success
    assert_account 6000
    assert_equal "$(overwritten)" 6000
}

@test "a hidden event does not trigger" {
    trace --json -e 'args[2] == 2' --snapshot-after 1ms --snapshot-when 'args[1] == fault' work:two/2
    on_node 'work:ask(w, fun() -> work:two(fault, 1), work:two(shown, 2) end)'
    gone "$TRACER" && fail 'the hidden call took a snapshot'
    on_node 'timer:sleep(300), work:ask(w, fun() -> work:two(fault, 2) end)'
    trace_wait
    assert_success
    assert_account 3
    assert_equal "$(calls | jq -r '.args | join(" ")')" $'shown 2\nfault 2'
}

@test "--ring with a time leaves out older events" {
    trace --json --ring 2s --snapshot-after 1ms --snapshot-when 'args[1] == fault' work:two/2
    on_node 'work:ask(w, fun() -> work:two(old, 1), timer:sleep(4000), work:two(new, 1), work:two(fault, 1) end)'
    trace_wait
    assert_success
    assert_account 3
    assert_equal "$(calls | jq -r '.args[0]')" $'new\nfault'
    assert_equal "$(overwritten)" 1
}

@test "several snapshots, each in a file of its own, with the stacks of its moment" {
    cd "$BATS_TEST_TMPDIR"
    trace --json --rate 0 --ring 256kB --snapshots 3 --snapshot-after 50ms --snapshot-every 1ms --then stacks \
        --snapshot-when 'args[1] == fault' -o 'part-%n.etr' work:one/1 work:two/2
    for i in 1 2 3; do
        on_node "$fault"
        # A snapshot takes no stacks before those of the last one are complete.
        [[ $i == 3 ]] || { until_true 30 files_came "$i" && until_true 30 grep -q "^etrace: snapshot $i: the stacks" "$ERR"; }
    done
    trace_wait
    assert_success
    assert_account 60033
    assert_equal "$(snapshots)" 3
    for i in 1 2 3; do
        "$ETRACE_BIN" replay --json "part-$i.etr" >"part-$i.json"
        assert_equal "$(jq -c 'select(.type == "call" and .f == "two")' "part-$i.json" | wc -l)" 1
        run jq -c '.seen == .shown + .filtered + .missing + ([.lost[]] | add) and .missing == 0 and .lost.overwritten > 1000' \
            <<<"$(tail -n 1 "part-$i.json")"
        assert_output true
        assert [ -s "part-$i.stacks.txt" ]
    done
    # Together the files have the calls of the other output, with their times.
    diff <(jq -c 'select(.type == "call") | [.ts, .args]' part-1.json part-2.json part-3.json) <(jq -c 'select(.type == "call") | [.ts, .args]' "$OUT")
}
files_came() { [[ $(grep -c '^etrace: snapshot [0-9]*: [0-9]* event' "$ERR") -ge $1 ]]; }

@test "the figures of a key trigger, and count anew after a snapshot" {
    trace --json --rate 0 --snapshots 2 --snapshot-after 20ms --snapshot-every 1ms --snapshot-when 'count > 100' 'work:two(K, _) by K: count'
    on_node 'work:ask(w, fun() -> [work:two(K, 1) || _ <- lists:seq(1, 90), K <- [a, b]], [work:two(a, 2) || _ <- lists:seq(1, 20)] end)'
    until_true 30 came 1
    on_node 'timer:sleep(200), work:ask(w, fun() -> [work:two(b, 3) || _ <- lists:seq(1, 90)] end)' # 180 since the begin
    on_node 'work:ask(w, fun() -> [work:two(b, 4) || _ <- lists:seq(1, 20)] end)'
    trace_wait
    assert_success
    assert_account 310
    assert_equal "$(snapshots)" 2
    # The view is that of events, not the table. The first snapshot has everything until then.
    assert_equal "$(calls | head -n 200 | jq -r '.args[1]' | sort | uniq -c | xargs)" '180 1 20 2'
    assert_equal "$(calls | tail -n 1 | jq -r '.args[1]')" 4
}
came() { [[ $(snapshots) -ge $1 ]]; }

@test "--snapshot-within counts figures anew after a time, even if no event comes meanwhile" {
    trace --json --snapshot-within 2s --snapshot-when 'count > 10' 'work:two(K, _) by K'
    on_node 'work:ask(w, fun() -> [work:two(a, N) || N <- lists:seq(1, 10)] end)'
    on_node 'timer:sleep(2500), work:ask(w, fun() -> [work:two(a, N) || N <- lists:seq(11, 20)] end)'
    on_node 'timer:sleep(2500), work:ask(w, fun() -> [work:two(a, N) || N <- lists:seq(21, 31)] end)'
    trace_wait
    assert_success
    assert_account 31
    assert_equal "$(snapshots)" 1
    assert_equal "$(calls | tail -n 1 | jq -r '.args[1]')" 31
}

@test "an aggregate of durations triggers" {
    trace --json --snapshot-when 'max(dur) > 100ms' 'work:slow(_) -> return by pid: max(dur)'
    on_node 'work:ask(w, fun() -> work:slow(1), work:slow(2), work:slow(150) end)'
    trace_wait
    assert_success
    assert_account 6
    assert_equal "$(jq -r 'select(.type == "return") | .value' "$OUT" | xargs)" '1 2 150'
}

@test "a table of the last events, if --as asks for it" {
    trace --as table --snapshot-when 'count > 9' 'work:two(K, _) by K: count'
    on_node 'work:ask(w, fun() -> [work:two(a, N) || N <- lists:seq(1, 10)] end)'
    trace_wait
    assert_success
    run cat "$OUT"
    assert_output --regexp 'a +10'
}

@test "SIGUSR1 takes a snapshot by hand at once, and the recorder goes on" {
    trace --json --rate 0 --snapshots 0 --snapshot-after 1ms --snapshot-when 'args[1] == fault' work:one/1 work:two/2
    on_node 'work:ask(w, fun() -> work:loop(50) end)'
    until_true 30 by_hand
    assert_equal "$(calls | wc -l)" 50
    until_true 30 grep -q 'a snapshot of' "$ERR"
    pause 0.2
    on_node 'work:ask(w, fun() -> work:loop(20) end)'
    trace_end
    assert_success
    assert_account 70
    assert_equal "$(calls | wc -l)" 50
}
# Events may be on their way when the signal comes.
by_hand() {
    kill -USR1 "$TRACER"
    pause 0.1
    [[ $(calls | wc -l) -ge 50 ]]
}

@test "a snapshot is one of all nodes, in the order of time" {
    node_start second
    on_node 'work:worker(w)'
    local names=(-n "$LIVE_NODE" -n "$NODE") first=$LIVE_NODE second=$NODE
    NODE=$first
    etrace_start trace "${names[@]}" --json --snapshot-when 'args[1] == fault' work:two/2
    until_true 60 grep -q '^etrace: 2 nodes' "$ERR"
    node_eval "$first" 'work:ask(w, fun() -> [begin work:two(N, 1), timer:sleep(2) end || N <- lists:seq(1, 30)] end)' >/dev/null
    node_eval "$second" 'work:ask(w, fun() -> [begin work:two(N, 2), timer:sleep(2) end || N <- lists:seq(1, 30)], work:two(fault, 2) end)' >/dev/null
    trace_wait
    assert_success
    assert_account 61
    assert_equal "$(snapshots)" 2 # one for each node
    assert_equal "$(calls | jq -r .node | sort | uniq -c | awk '{ print $1 }' | xargs)" '30 31'
    calls | jq -r .ts | sort -c
}

@test "the events of a node that is killed are counted, and the snapshots of the others go on" {
    node_start second
    on_node 'work:worker(w)'
    local second=$NODE
    NODE=$LIVE_NODE
    etrace_start trace -n "$LIVE_NODE" -n "$second" --json --reattach --snapshots 0 --snapshot-after 1ms --snapshot-every 1ms --snapshot-when 'args[1] == fault' work:two/2
    until_true 60 grep -q '^etrace: 2 nodes' "$ERR"
    node_eval "$second" 'work:ask(w, fun() -> [work:two(N, 2) || N <- lists:seq(1, 30)] end)' >/dev/null
    on_node 'work:ask(w, fun() -> [work:two(N, 1) || N <- lists:seq(1, 30)], work:two(fault, 1) end)'
    until_true 30 came 2 # one notice for each node
    node_eval "$second" 'work:ask(w, fun() -> [work:two(N, 2) || N <- lists:seq(31, 40)] end)' >/dev/null
    # The clock of a node tells when its events have arrived.
    on_node 'timer:sleep(500)'
    node_stop "$second"
    until_true 30 grep -q 'waiting for it' "$ERR"
    on_node 'work:ask(w, fun() -> [work:two(N, 1) || N <- lists:seq(31, 40)], work:two(fault, 1) end)'
    until_true 30 came 4 # the second snapshot has the last events of the node that is down
    on_node 'timer:sleep(300), work:ask(w, fun() -> work:two(fault, 1) end)'
    until_true 30 came 5
    trace_end
    assert_success
    assert_equal "$(snapshots)" 5
    assert_equal "$(jq -c 'select(.type == "node_down")' "$OUT" | wc -l)" 1
    jq -e '.seen == 83 and .missing == 0 and .seen == .shown + ([.lost[]] | add // 0)' <<<"$(tail -n 1 "$OUT")"
    refute grep -q 'last 0ns' "$ERR"
}

@test "a snapshot that is larger than a batch is complete in its file" {
    cd "$BATS_TEST_TMPDIR"
    trace --as summary --rate 0 --ring 10min --snapshot-after 1ms --snapshot-when 'args[1] == fault' -o large-%n.etr work:one/1 work:two/2
    on_node 'work:ask(w, fun() -> work:loop(1500000) end)'
    strike
    trace_wait
    assert_success
    run cat "$ERR"
    refute_output --partial 'came too fast'
    local events
    events=$(sed -n 's/^etrace: snapshot 1: \([0-9]*\) events.*/\1/p' "$ERR")
    assert [ "$events" -gt 300000 ]
    run -0 --separate-stderr "$ETRACE_BIN" replay --json -e 'args[1] == fault' large-1.etr
    assert_output --partial '"fault"'
    jq -e --argjson events "$events" '.complete and .missing == 0 and .seen > 1500000 and .shown + .filtered == $events
        and .seen == $events + (.lost.ring // 0)' <<<"${lines[-1]}"
}

@test "a program that fails at its end is a snapshot of its last events" {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' '-module(ends).' '-export([run/0, step/1]).' 'run() -> [step(N) || N <- lists:seq(1, 100)], step(fault), halt(3).' 'step(N) -> N.' >ends.erl
    "$ETRACE_ERLC" +debug_info ends.erl
    run --separate-stderr timeout 100 "$ETRACE_BIN" --json --snapshot-when 'args[1] == fault' 'ends:step/1' -- "$ETRACE_ERL" -noinput -pa . -s ends run </dev/null 3>&-
    assert_equal "$status" 3
    assert_equal "$(jq -c 'select(.type == "call")' <<<"$output" | wc -l)" 101
    assert_equal "$(jq -r 'select(.type == "call") | .args[0]' <<<"$output" | tail -n 1)" fault
    jq -e '.complete and .seen == 101 and .shown == 101' <<<"$(tail -n 1 <<<"$output")"
}

@test "conditions that hold too soon after a snapshot are counted" {
    trace --json --snapshots 0 --snapshot-after 50ms --snapshot-every 1h --snapshot-when 'args[1] == fault' work:two/2
    on_node 'work:ask(w, fun() -> work:two(fault, 1) end)'
    until_true 20 came 1
    on_node 'timer:sleep(200), work:ask(w, fun() -> work:two(fault, 2), work:two(fault, 3) end)'
    trace_end
    assert_success
    assert_account 3
    assert_equal "$(calls | wc -l)" 1
    assert_equal "$(overwritten)" 2
    run cat "$ERR"
    assert_line 'etrace: the condition of a snapshot held 2 more times too soon after the last one'
}

@test "events that were kept for a snapshot that never came are in no snapshot" {
    traced --snapshot-when 'ret =~ "never"' 'work:one/1 -> return' -- 'work:one(1), work:one(2)'
    assert_success
    assert_output '*** 4 events are in no snapshot ***'
}

@test "the default of --rate applies, and its losses are counted apart from overwritten events" {
    trace --json --snapshot-when 'args[1] == fault' work:one/1
    on_node 'work:ask(w, fun() -> work:loop(200000) end)'
    trace_end
    assert_success
    assert_account 200000
    assert [ "$(json_of summary '.lost.rate')" -gt 1000 ]
    assert [ "$(overwritten)" -gt 1000 ]
}

@test "the tracer without the NIF has a recorder, too" {
    trace --json --fallback --snapshot-when 'class == error' 'work:two/2' 'work:raise/2 -> return'
    on_node 'work:ask(w, fun() -> work:two(0, 0), work:caught(error, fault) end)'
    trace_wait
    assert_success
    assert_account 4
    assert_equal "$(jq -r 'select(.type == "exception") | .reason' "$OUT")" fault
}

@test "a client that is killed while it keeps events, or during a snapshot, leaves nothing behind" {
    trace --json --rate 0 --snapshot-after 1h --snapshot-when 'args[1] == fault' work:one/1 work:two/2
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    trace_end KILL
    until_true 60 nobody_there
    trace --json --rate 0 --snapshot-after 1h --snapshot-when 'args[1] == fault' work:one/1 work:two/2
    on_node "$fault"
    until_true 20 came 1
    trace_end KILL
}

@test "conditions that cannot hold are refused" {
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'count > 10' work:one/1
    assert_failure 2
    assert_output --partial "no expression counts with 'by'"
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'max(dur) > 10ms' 'work:one/1 by pid: count'
    assert_failure 2
    assert_output --partial 'no expression counts max(dur)'
    run "$ETRACE_BIN" -n "$NODE" --snapshot-within 1s --snapshot-when 'dur > 1s' 'work:one/1 -> return'
    assert_failure 2
    assert_output --partial -- '--snapshot-within is for conditions on figures'
    run "$ETRACE_BIN" -n "$NODE" --ring 1MB --snapshot-within 1s work:one/1
    assert_failure 2
    assert_output --partial -- '--snapshot-within'
    run "$ETRACE_BIN" -n "$NODE" --snapshot-when 'ret =~ "("' work:one/1
    assert_failure 2
    assert_output --partial 'regular expression'
}
