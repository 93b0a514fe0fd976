#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The network fails for a moment, or is slow, while the node keeps or counts events: tables by keys, trees, and rings that
# overwrite. All of it is exact afterwards. The client is at the other end of a link (line.bash).

load ../lib/assert
load ../lib/live
load ../lib/line
load ../lib/recorder

setup_file() { line_begin kept; }
teardown_file() { line_end; }
setup() { live_setup; }

teardown() {
    line_mend
    recorder_teardown
}

# Runs the expression on the node while the link is down, for two seconds at least.
without_network() {
    line_cut
    on_node "$1"
    pause 2
    line_mend
}

@test "a table by keys counts the calls of two seconds without network" {
    far --json 'work:two(K, _) by K, ret: count, max(dur)'
    on_node '[work:two(a, N rem 2) || N <- lists:seq(1, 500)]'
    without_network '[work:two(a, N rem 2) || N <- lists:seq(1, 20000)]'
    on_node '[work:two(c, 0) || _ <- lists:seq(1, 500)]'
    trace_end
    assert_success
    assert_equal "$(jq -rc 'select(.type == "row") | "\(.key) \(.count)"' "$OUT" | sort)" \
        "$(printf '%s\n' '["a","{a,0}"] 10250' '["a","{a,1}"] 10250' '["c","{c,0}"] 500')"
    refute grep -q lost "$ERR"
}

@test "trees that are complete while there is no network come whole" {
    far --json 'trees:part/2 -> return inside (trees:request/2 where class == throw)'
    without_network 'trees:requests(10, 1000, [{500, fail}])'
    on_node 'trees:requests(1, 1000, [{7, fail}])'
    trace_end
    assert_success
    assert_account 66000
    assert_equal "$(jq -r 'select(.m) | "\(.type) \(.f) \(.args[0])"' "$OUT" | sort | uniq -c | awk '{ print $1, $2, $3, $4 }')" \
        '20 call part 500
2 call part 7
10 call request 500
1 call request 7
10 exception request 500
1 exception request 7
20 return part 500
2 return part 7'
}

# Ends a trace during its snapshot: the output has the last call, and each event is shown once or is counted.
ends_whole() {
    made
    shows_last
    trace_end
    assert_success
    assert_made 2
    assert_rising
    assert_last
}

# Each snapshot begins while there is no network, and goes on until the trace ends.
interrupted() { # ARGS...
    far --json "$@"
    makes
    line_cut
    fault
    pause 2
    line_mend
    until_true 120 grep -q '"raise"' "$OUT" || fail 'the snapshot did not come' # it may have a million events
    ends_whole
}

@test "a snapshot that begins while there is no network comes whole, and every event is accounted for" {
    interrupted "${RECORDER[@]}"
    assert [ "$(overwritten)" -gt 10000 ]
}

@test "a snapshot that etrace decides on comes whole after two seconds without network" {
    interrupted --rate 0 --ring 256kB --snapshot-when 'args[1] == error' --snapshot-after 1h 'work:one/1 -> return' 'work:raise/2 -> return'
}

@test "a snapshot over a slow network comes whole, and every event is accounted for" {
    line_slow
    far --json "${RECORDER[@]}"
    makes
    snaps
    line_mend
    ends_whole
    assert [ "$(overwritten)" -gt 10000 ]
}
