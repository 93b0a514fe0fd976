# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Helpers for the suites about faults of the flight recorder. Load it after live.bash.
#
#   RECORDER            the arguments of a trace whose rings overwrite until a call of work:raise/2 fails. The snapshot
#                       goes on until the trace ends. The condition needs the results of work:one/1, too.
#   makes [MODULE]      starts a process, the maker, that calls one(N) of the module (work) for N = 1, 2, ... until made.
#                       More calls than a ring holds come at once, then some in each millisecond.
#   made                ends the maker, and sets MADE to the number of its calls
#   shows_last          makes one more call, and again until one is shown: the rings of a busy node may have no room
#   fault               makes the call that fails
#   snaps               calls fault, and waits until the client has events of the snapshot
#   reaches STAGE       traces with RECORDER, with a maker; STAGE is recording, or snapshot, which also calls snaps
#   calls FILE          prints the numbers of the shown calls
#   assert_rising [FILE]
#                       the shown calls have rising numbers: none is shown twice, and none is out of order
#   assert_last         the last call is shown
#   assert_made OTHERS  the summary counts the call and the result of each call of the maker, and OTHERS other events. The
#                       result of a call that was lost is not seen.
#   recorder_teardown   for teardown: ends what a failed test has left, and calls live_teardown

MADE=

RECORDER=(--ring 256kB --snapshot-when 'class == error' --snapshot-after 1h work:one/1 'work:raise/2 -> return')

makes() { # [MODULE]
    on_node "Me = self(), Make = fun(From, To) -> lists:foreach(fun ${1:-work}:one/1, lists:seq(From, To)) end,
        register(maker, spawn(fun() -> Make(1, 20000), Me ! up,
            control:again(1, fun(N) -> Make(N + 1, N + 50), N + 50 end, 20000) end)),
        receive up -> ok end"
}
made() { MADE=$(node_eval "$NODE" 'R = monitor(process, maker), maker ! {stop, self()}, receive {stopped, N} -> receive {_, R, _, _, normal} -> N end end'); }

another() {
    MADE=$((MADE + 1))
    on_node "work:one($MADE)"
    until_true 1 grep -q "\"args\":\[\"$MADE\"\]" "$OUT"
}
shows_last() { until_true 60 another || fail 'no call is shown any more'; }

calls() { jq -r 'select(.type == "call" and .f == "one") | .args[0]' "$@"; }

assert_rising() { calls "${1:-$OUT}" | sort -nuc || fail "the calls in ${1:-$OUT} are not in order"; }

assert_last() { [[ $(calls "$OUT" | tail -n 1) == "$MADE" ]] || fail 'the last call is missing'; }

assert_made() { # OTHERS
    local unseen
    assert_account any
    unseen=$((2 * MADE + $1 - $(tail -n 1 "$OUT" | jq .seen)))
    tail -n 1 "$OUT" | jq -e --argjson unseen "$unseen" '0 <= $unseen and $unseen <= (.lost.ring // 0)' ||
        fail "$unseen events are not counted: $(tail -n 1 "$OUT")"
}

fault() { on_node 'work:caught(error, fault)'; }
snaps() {
    fault
    until_true 30 grep -q '"exception"' "$OUT" || fail 'the snapshot did not begin'
}

reaches() { # recording | snapshot
    trace --json "${RECORDER[@]}"
    makes
    [[ $1 == recording ]] || snaps
}

recorder_teardown() {
    [[ ${BATS_TEST_COMPLETED:-} ]] || node_eval "$LIVE_NODE" '[exit(whereis(N), kill) || N <- [maker, heavy], is_pid(whereis(N))]' >/dev/null || true
    [[ $NODE != "$LIVE_NODE" ]] || nodes_stop # the other node of the test
    live_teardown
}
