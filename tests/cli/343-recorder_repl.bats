#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The flight recorder in the interactive mode: the nodes keep their last events, and snapshots show them.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

COMMAND=repl

setup_file() {
    live_begin recorder_repl
    live_repl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown_all
}

repl() { timeout 60 "$ETRACE_BIN" repl -n "$NODE" "$@"; }

# Starts repl with these lines and waits until the node is armed.
recording() { # ARGS... -- LINE...
    local args=()
    while [[ $1 != -- ]]; do
        args+=("$1")
        shift
    done
    shift
    repl_start -n "$NODE" "${args[@]}"
    repl_line "$@"
    until_true 60 grep -qs 'Ctrl-C stops' "$ERR" || fail "not armed: $(cat "$ERR")"
}

armed() { [[ $(grep -c 'Ctrl-C stops' "$ERR") -ge $1 ]]; }

# The answer to :version proves that etrace has run the lines before it.
answered() {
    local before
    before=$(grep -c '^etrace [0-9]' "$OUT" || true)
    repl_line "$@" :version
    until_true 60 more_answers "$before" || fail "no answer: $(tail -n 3 "$ERR")"
}
more_answers() { [[ $(grep -c '^etrace [0-9]' "$OUT" || true) -gt $1 ]]; }

ended() {
    repl_end
    trace_wait
    assert_success
    assert grep -q 'nothing is left on the nodes' "$ERR"
}

# The events as JSON, without the answers to :version.
events() { grep '^{' "$OUT"; }
numbers() { events | jq -r 'select(.type == "call" and .f == "one") | .args[0]'; }
snapshots() { [[ $(events | jq -r 'select(.type == "notice") | .tag' | grep -c '^snapshot$' || true) -ge $1 ]]; }
faults() { [[ $(events | jq -c 'select(.type == "exception")' | wc -l) -ge $1 ]]; }

assert_sum() { # SEEN
    run jq -c '[.seen, .missing, .seen == .shown + .filtered + .missing + ([.lost[]] | add // 0)]' <<<"$(events | tail -n 1)"
    assert_output "[$1,0,true]"
    assert_equal "$(events | tail -n 1 | jq .shown)" "$(events | jq -c 'select(.type == "call" or .type == "return" or .type == "exception")' | wc -l)"
}

@test ":snapshot shows the last calls in order, and the recorder goes on" {
    recording --json --snapshot-after 50ms -- ':ring 256kB' 'work:one/1'
    on_node 'work:ask(w, fun() -> work:loop(60000) end)'
    answered
    assert_equal "$(numbers)" '' # nothing comes before the snapshot
    answered :snapshot
    numbers >"$BATS_TEST_TMPDIR/first"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/first")" -gt 1000 ]
    seq "$(head -n 1 "$BATS_TEST_TMPDIR/first")" -1 1 | cmp - "$BATS_TEST_TMPDIR/first"
    # The notice comes before the events.
    assert_equal "$(events | jq -r 'select(.type == "notice" or .type == "call") | .type' | head -n 1)" notice
    on_node 'work:ask(w, fun() -> work:loop(7) end)'
    answered :snapshot
    assert_equal "$(numbers | tail -n 7 | xargs)" '7 6 5 4 3 2 1'
    assert_equal "$(grep -c "a snapshot of" "$ERR")" 2
    repl_line ':stop'
    ended
    assert_sum 60007
    overwritten=$(events | tail -n 1 | jq '.lost.overwritten')
    assert [ "$overwritten" -gt 30000 ]
    assert grep -q "^etrace: 60007 events seen · $overwritten overwritten · " "$ERR"
}

@test ":stop keeps the events in the rings for a snapshot, and the end shows the last ones" {
    recording --json --snapshot-after 50ms --ring 1MB -- 'work:one/1'
    on_node 'work:ask(w, fun() -> work:loop(5) end)'
    answered :stop
    assert_equal "$(numbers)" ''
    on_node 'work:one(untraced)'
    answered :snapshot
    assert_equal "$(numbers | xargs)" '5 4 3 2 1'
    answered :start
    until_true 60 armed 2
    on_node 'work:ask(w, fun() -> work:loop(2) end)'
    repl_line ':stop'
    ended
    assert_equal "$(numbers | xargs)" '5 4 3 2 1 2 1'
    assert_sum 7
}

@test "a condition takes snapshots on its own, with the calls before the fault" {
    recording --json --snapshot-after 50ms --snapshot-every 1ms -- ":set snapshot-when 'class == error'" 'work:one/1' 'work:raise/2 -> return'
    until_true 60 armed 2
    for number in 1 2; do
        on_node 'work:ask(w, fun() -> work:loop(3) end)'
        on_node "work:ask(w, fun() -> work:caught(exit, no), work:caught(error, fault$number) end)"
        until_true 30 faults $((2 * number)) || fail "no snapshot $number: $(tail -n 3 "$OUT")"
        pause 1 # the fault is shown before its snapshot has ended, and a fault in between takes none
    done
    assert_equal "$(events | jq -r 'select(.type == "call") | .f' | head -n 5 | xargs)" 'one one one raise raise'
    assert_equal "$(events | jq -r 'select(.type == "exception") | .reason' | xargs)" 'no fault1 no fault2'
    assert_equal "$(events | jq -r 'select(.type == "notice") | .tag' | grep -c '^snapshot$')" 2
    # The end takes no snapshot.
    on_node 'work:ask(w, fun() -> work:loop(9) end)'
    ended
    assert_equal "$(numbers | xargs)" '3 2 1 3 2 1'
    run jq -c '[.missing, .seen == .shown + .filtered + .missing + ([.lost[]] | add // 0), .lost.overwritten > 8]' <<<"$(events | tail -n 1)"
    assert_output '[0,true,true]'
}

@test "a system event takes snapshots, as a probe with the label trigger" {
    if [[ $ETRACE_OTP -lt 28 ]]; then
        run repl <<<$':snapshot-when @long_message_queue(10, 1000)\n:snapshot'
        assert_failure 2
        assert_line 'etrace: system events need OTP 28'
        assert_line 'etrace: no snapshot: the nodes do not record'
        return
    fi
    recording --json --snapshot-after 50ms -- ':snapshot-when @long_message_queue(10, 1000)' 'work:one/1'
    until_true 60 armed 2
    on_node 'work:ask(w, fun() -> work:loop(3) end)'
    on_node 'spawn(fun() -> [self() ! N || N <- lists:seq(1, 2000)], timer:sleep(300) end)'
    until_true 30 snapshots 1 || fail "no snapshot: $(tail -n 3 "$ERR")"
    answered ':probes' ':snapshot-when' ':probes'
    assert_equal "$(numbers | xargs)" '3 2 1'
    assert_equal "$(grep -c '^trigger  @long_message_queue' "$OUT")" 1
    ended
}

@test ":ring off sends the last events and streams again" {
    recording --json -- ':set ring 8MB' 'work:one/1'
    on_node 'work:ask(w, fun() -> work:loop(4) end)'
    answered ':set ring off'
    assert_equal "$(numbers | xargs)" '4 3 2 1'
    until_true 60 armed 2
    on_node 'work:one(streamed)'
    until_true 30 grep -q streamed "$OUT"
    answered ':snapshot'
    assert grep -q '^etrace: no snapshot: the nodes do not record$' "$ERR"
    answered ':snapshot-when class == error' ':ring off' ':set'
    assert grep -qE '^:snapshot-when *$' "$OUT"
    repl_end
    trace_wait
    assert_failure 2
    assert_sum 5
}

@test "probes come and go while the node records, and each event has the probe of its time" {
    recording --json --snapshot-after 50ms --ring 1MB -- 'a: work:one/1'
    on_node 'work:one(first)'
    answered 'b: work:two/2'
    on_node 'work:two(work:one(second), x)'
    answered ':drop a'
    on_node 'work:two(work:one(hidden), y)'
    answered ':snapshot'
    run jq -r 'select(.type == "call") | "\(.probe // "-") \(.f) \(.args[0])"' < <(events)
    assert_output $'a one first\na one second\nb two second\nb two hidden' || fail "$(events)"
    ended
}

@test "captured snapshots can be filtered, shown in another view and saved" {
    local file=$BATS_TEST_TMPDIR/last
    recording --snapshot-after 50ms --ring 256kB -- 'work:one/1 -> return'
    on_node 'work:ask(w, fun() -> work:loop(30000) end)'
    answered :snapshot ":save $file.etr" ":save $file.json" ':as summary' ':where args == [3]'
    run -0 --separate-stderr "$ETRACE_BIN" replay --json "$file.etr"
    printf '%s\n' "$output" >"$file.replayed"
    assert_equal "$(jq -c 'select(.type == "call") | .args' "$file.replayed" | tail -n 3 | xargs)" '[3] [2] [1]'
    diff <(jq -c 'select(.type == "call" or .type == "return") | del(.at)' "$file.json") \
        <(jq -c 'select(.type == "call" or .type == "return") | del(.at)' "$file.replayed")
    for each in "$file.json" "$file.replayed"; do
        run jq -c '[.seen, .missing, .seen == .shown + .filtered + .missing + ([.lost[]] | add), .lost.overwritten > 10000]' <<<"$(tail -n 1 "$each")"
        assert_output '[60000,0,true,true]'
    done
    assert_equal "$(tail -n 1 "$OUT" | grep -c '^etrace')" 1
    assert_equal "$(grep -cE 'call work:one\(3\)$' "$OUT")" 2 # shown as it came, and by :where
    ended
}

@test "a snapshot is one of all nodes, in the order of time" {
    local here=$NODE other
    node_start other
    other=$NODE NODE=$here
    node_eval "$other" 'work:worker(w), work:warm()' >/dev/null
    recording --json -n "$other" --snapshot-after 50ms --snapshot-every 1ms --snapshot-when 'class == error' -- work:one/1 'work:raise/2 -> return'
    until_true 60 grep -q '2 probes' "$ERR"
    for number in 1 2; do
        node_eval "$other" "work:ask(w, fun() -> work:one(other$number) end)" >/dev/null
        on_node "work:ask(w, fun() -> work:one(here$number) end)"
        if [[ $number == 2 ]]; then
            answered :snapshot
        else
            on_node 'work:ask(w, fun() -> work:caught(error, fault) end)'
            until_true 30 snapshots 2 || fail "no snapshot of both nodes: $(tail -n 5 "$ERR")"
        fi
    done
    answered ":save $BATS_TEST_TMPDIR/both.json"
    run jq -r 'select(.type == "call" and .f == "one") | .args[0]' "$BATS_TEST_TMPDIR/both.json"
    assert_output $'other1\nhere1\nother2\nhere2'
    ended
    node_stop "$other"
}

@test "a client that is killed leaves nothing on the node" {
    recording --ring 1MB -- work:one/1
    on_node 'work:ask(w, fun() -> work:loop(20000) end)'
    trace_end KILL
    repl_end
}

@test "settings that are wrong, and options of etrace trace, are refused in one line" {
    for wrong in 5 30m 1kB 1GB 0s soon; do
        run repl <<<":ring $wrong"
        assert_failure 2
        assert_line --partial 'etrace: :ring '
    done
    run repl <<<':snapshot-when name == x'
    assert_failure 2
    assert_line --partial "etrace: the node cannot decide the condition of :snapshot-when 'name == x'"
    run repl <<<':snapshot-when @exit'
    assert_failure 2
    assert_line "etrace: :snapshot-when does not take '@exit'"
    run repl --ring 1MB <<<':limit 5'
    assert_failure 2
    assert_line --partial ':ring and :limit cannot be combined'
    run repl --limit 5 <<<':ring 1MB'
    assert_failure 2
    assert_line --partial ':ring and :limit cannot be combined'
    run repl --ring 1MB <<<':output crash-%n.etr'
    assert_failure 2
    assert_line --partial "'crash-%n.etr': only etrace trace writes a file for each snapshot"
    run repl --ring 1MB <<<'work:one/1 inside (work:outer/1 where dur > 1ms)'
    assert_failure 2
    assert_line --partial 'a recorder on the node does not go with a root whose result decides'
    for option in 'then stacks' 'then-for 3s' 'snapshots 3' 'snapshot-within 1s'; do
        run repl <<<":$option"
        assert_failure 2
        assert_line "etrace: --${option% *} is an option of etrace trace only"
        run repl "--${option% *}" "${option#* }" </dev/null
        assert_failure 2
        assert_line "etrace: --${option% *} is an option of etrace trace only"
    done
    run repl <<<':set rings 3'
    assert_failure 2
    assert_line "etrace: unknown setting ':rings'"
    run repl --ring 1MB <<<':snapshot'
    assert_failure 1
    assert_line 'etrace: no snapshot: no node has traced anything yet'
    run repl --fallback --ring 1MB </dev/null
    assert_failure 3
    assert_output --partial ':ring needs the NIF'
}

@test "Tab completes settings, and a snapshot comes above the line that is being typed" {
    terminal 100 30 "exec $ETRACE_BIN repl -n $NODE --snapshot-after 50ms"
    await '^etrace> *$'
    typed ':set rin'
    keys Tab
    await_last '^etrace> :set ring *$'
    typed '1MB'
    keys Enter
    await 'the nodes record'
    entered 'work:one/1'
    await '1 probe · 1 function'
    on_node 'work:one(seen)'
    typed ':snaps'
    keys Tab
    await_last '^etrace> :snapshot'
    keys C-u
    entered ':snapshot'
    await 'a snapshot of every event so far'
    await 'call work:one\(seen\)'
    await_last '^etrace>$'
    keys C-d
    until_true 30 terminal_gone
}
