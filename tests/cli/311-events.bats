#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs seeded workloads and compares the events of processes with those of the VM's own process tracer, which traces at
# the same time: the events and their order within each process must be the same.

# bats file_tags=each

load ../lib/assert
load ../lib/live

setup_file() { live_share events; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# same FLAGS AWAITED WORKLOAD ETRACE-EXPRESSIONS...: traces WORKLOAD with etrace and with the VM's FLAGS, and compares.
# AWAITED is an Erlang expression that waits for the last events.
same() {
    local flags=$1 awaited=$2 work=$3 w
    shift 3
    w=$(node_eval "$NODE" 'whereis(w)')
    trace --json --rate 0 --size 16kB --items 4000 --depth 60 -P w --inherit spawn "$@" work:one/1
    on_node "P = plain:events(#{procs => [whereis(w)], flags => [call, set_on_spawn | $flags], functions => [{{work, one, 1}, true, [local]}${FUNCTIONS-}]}),
        N = work:ask(w, fun() -> work:one(start), N = $work, work:one(stop), N end),
        $awaited, plain:stop(P, \"$BATS_TEST_TMPDIR/plain\")"
    trace_end
    assert_success
    events_of "$OUT" >"$BATS_TEST_TMPDIR/etrace"
    between "$BATS_TEST_TMPDIR/plain" "$w" >"$BATS_TEST_TMPDIR/expected"
    between "$BATS_TEST_TMPDIR/etrace" "$w" >"$BATS_TEST_TMPDIR/seen"
    assert [ -s "$BATS_TEST_TMPDIR/expected" ]
    echo "# $flags: $(wc -l <"$BATS_TEST_TMPDIR/expected") events" >&3
    diff "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/seen"
    jq -es '[.[] | select(.pid) | .mono_ns] | . == sort' "$OUT" >/dev/null
    assert_account any
    jq -e 'select(.type == "summary") | .lost == {}' "$OUT" >/dev/null
}

has() { # TAG...: asserts that the workload had each of these events
    local tag
    for tag; do
        grep -q "^[^ ]* $tag " "$BATS_TEST_TMPDIR/expected" || fail "the workload has no $tag event"
    done
}

@test "process events equal those of the VM's own tracer" {
    for seed in 1 ${ETRACE_ALL:+2 3}; do
        same '[procs]' 'plain:await(P, exit, N)' "work:life($seed, 60)" @procs
        has spawn spawned exit register unregister link unlink getting_linked getting_unlinked
    done
}

@test "message events equal those of the VM's own tracer" {
    for seed in 4 ${ETRACE_ALL:+5}; do
        same "[send, 'receive']" ok "work:life($seed, 60)" 'send(_, _)' 'recv(_)'
        has send send_to_non_existing_process receive
    done
}

@test "scheduler events equal those of the VM's own tracer" {
    same '[running, exiting]' 'plain:await(P, out_exited, N)' 'work:life(6, 40)' @running @exiting
    has in out out_exited
    # The cleanup of a large table takes long enough for the exiting process to be scheduled out.
    same '[exiting]' 'plain:await(P, out_exited, N)' \
        'begin {Q, R} = spawn_monitor(fun() -> T = ets:new(t, []), ets:insert(T, [{I} || I <- lists:seq(1, 200000)]) end),
            receive {_, R, _, Q, _} -> 1 end end' @exiting
    has in_exiting out_exiting out_exited
}

@test "calls, results, exceptions and return_to events equal those of the VM's own tracer" {
    FUNCTIONS=', {{work, two, 2}, [{'\''_'\'', [], [{exception_trace}]}], [local]}, {{work, raise, 2}, [{'\''_'\'', [], [{exception_trace}]}], [local]},
        {{work, deep, 1}, true, [local]}, {{work, sum, 2}, true, [local]}'
    same '[return_to]' ok 'begin work:two(1, 2), (catch work:raise(error, x)), (catch work:deep(3)), work:outer(2), work:sum(4, 0), 0 end' \
        'work:two/2 -> return, return_to' 'work:raise/2 -> return, return_to' 'work:deep/1 -> return_to' 'work:sum/2 -> return_to'
    has call return exception return_to
}

@test "only the requested kinds of events are shown, counted and limited, unless an action sets a flag" {
    traced --json -P w @exit @link -- 'work:ask(w, fun() -> work:life(3, 50) end)'
    assert_success
    assert_equal "$(jq -r 'select(.pid) | .type' "$OUT" | sort -u | tr '\n' ' ')" 'link '
    assert_account "$(jq -r 'select(.pid) | .type' "$OUT" | wc -l)"
    assert_equal "$(json_of summary .filtered)" 0
    # --limit counts the requested kind only.
    trace --json --limit 3 -P w --inherit spawn @register
    on_node 'work:ask(w, fun() -> work:life(3, 50) end)'
    trace_wait
    assert_success
    assert_equal "$(json_of register .as | wc -l)" 3
    # A flag that an action sets is not limited to the requested kinds: etrace shows all its events.
    traced --json -P w 'work:one/1 -> enable(procs)' @exit -- 'work:ask(w, fun() -> work:one(1), over, {P, R} = spawn_monitor(fun() -> ok end), receive {_, R, _, P, _} -> ok end end)'
    assert_success
    assert_equal "$(json_of spawn .child | wc -l)" 1
}

@test "events of all kinds form one stream, in the same order as in the VM's own tracer" {
    same "[procs, running, exiting, send, 'receive']" 'plain:await(P, out_exited, N)' 'work:life(8, 60)' \
        @procs @running @exiting 'send(_, _)' 'recv(_)'
    has spawn exit in out send receive out_exited
}
