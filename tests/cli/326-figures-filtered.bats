#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests figures with a filter: the node evaluates `where` on duration, class, size and result while it counts, and the figures
# are the same as those computed from events.

load ../lib/assert
load ../lib/live
bats_require_minimum_version 1.5.0

setup_file() { live_share filtered; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints function, calls, errors, and `timed` or `untimed`, for each line of a summary.
figures() { awk 'NR > 1 && !/^[*]/ { print $NF, $1, $2, $3 == "-" ? "untimed" : "timed" }' "$OUT" | sort; }

# Compares the figures that the node counts (the rate does not apply) with those from events: -g makes the node send
# each event, and etrace evaluates the filter.
same_by_events() { # WORKLOAD ETRACE-ARGUMENTS...
    local workload=$1
    shift
    traced -c --rate 10 "$@" -- "$workload"
    assert_success
    counted=$(figures) counted_totals=$(totals)
    refute_regex "$counted_totals" ' lost'
    traced -c --rate 0 -g . "$@" -- "$workload"
    assert_success
    assert_equal "$counted" "$(figures)"
    # Counting only measures the terms, so the summary reports no cut terms.
    assert_equal "$counted_totals" "$(totals | sed 's/ · [0-9]* cut ([^)]*)//')"
}

FAILING='[work:caught(C, R) || C <- [error, exit, throw, error], R <- lists:seq(1, 20)], work:outer(30), work:burst(2, 10)'

# The suite on waiting calls tests the same condition of the node.
# bats test_tags=long
@test "the node filters figures by the class of the exception" {
    same_by_events "$FAILING" 'work:raise/2 | work:caught/2 | work:deep/1 | work:one/1 -> return where class == error'
    assert_equal "$counted" $'work:deep/1 31 31 timed\nwork:raise/2 40 40 timed'
    assert_equal "$counted_totals" '142 events · 280 filtered'
    same_by_events "$FAILING" 'work:raise/2 | work:deep/1 | work:one/1 -> return where dur > 1min orelse not (class == throw)'
    assert_equal "$counted" $'work:deep/1 31 31 timed\nwork:raise/2 60 60 timed'
    # A return has no class: a test of it fails, which hides the call, except as an operand of `or`.
    same_by_events "$FAILING" 'work:one/1 | work:raise/2 -> return where class == error or dur >= 0ns'
    assert_equal "$counted" $'work:one/1 20 0 timed\nwork:raise/2 80 80 timed'
    same_by_events "$FAILING" 'work:one/1 | work:raise/2 -> return where not (class == error)'
    assert_equal "$counted" 'work:raise/2 40 40 timed'
}

@test "the node filters figures by the value of the result" {
    same_by_events '[work:one(V) || V <- [1, 2, {error, x}, {ok, x}, error]], [catch work:raise(error, {error, x})]' 'work:one/1 | work:raise/2 -> return where ret = {error, _} or ret == 1'
    assert_equal "$counted" 'work:one/1 2 0 timed'
    assert_equal "$counted_totals" '4 events · 8 filtered'
}

# bats test_tags=long
@test "the node filters figures by duration" {
    same_by_events '[work:slow(Ms) || Ms <- [0, 1500, 0, 0, 0]], work:one(1)' --where 'dur > 1s' 'work:slow/1 -> return' 'work:one/1 -> return'
    assert_equal "$counted" 'work:slow/1 1 0 timed'
    assert_equal "$counted_totals" '2 events · 10 filtered'
    same_by_events 'work:run(#{seed => 9, procs => 4, calls => 300})' 'work:_ -> return where dur < 1min andalso not (dur < 0s)'
    assert [ "$(grep -c . <<<"$counted")" -gt 5 ]
    # The filter on durations makes the expression trace results.
    same_by_events 'work:loop(20)' --where 'dur >= 0ns' 'work:one/1'
    assert_equal "$counted_totals" '40 events'
}

# bats test_tags=long
@test "the node filters figures by the size of the call, or of the result if only the result decides" {
    local workload='[work:pair(x, lists:duplicate(N, 1000)) || N <- [1, 300, 2, 300, 300]], [work:blob(N) || N <- [16, 900, 900]]'
    same_by_events "$workload" 'work:pair/2 | work:blob/1 where size > 500'
    assert_equal "$counted" 'work:pair/2 3 0 untimed'
    assert_equal "$counted_totals" '3 events · 5 filtered'
    same_by_events "$workload" 'work:pair/2 | work:blob/1 -> return where dur > 1min or size > 500'
    assert_equal "$counted" $'work:blob/1 2 0 timed\nwork:pair/2 3 0 timed'
    same_by_events "$workload" 'work:pair/2 -> caller where size > 0.75kB'
    assert_equal "$counted" 'work:pair/2 3 0 untimed'
}

@test "the node filters histograms" {
    traced --as hist --rate 10 'work:raise/2 | work:one/1 -> return where class == exit' -- "$FAILING"
    assert_success
    assert_line --regexp '^work:raise/2  20, p50 '
    assert_equal "$(awk -F'[|] ' '/[|]/ { n += $NF } END { print n }' "$OUT")" 20
    assert_equal "$(totals)" '40 events · 160 filtered'
}

@test "a filter by the result hides calls that never return" {
    traced -c --rate 10 'work:slow/1 | work:one/1 -> return where dur < 1min' -- 'Ps = [spawn(work, slow, [100000000]) || _ <- lists:seq(1, 50)],
        (fun Go() -> case [P || P <- Ps, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> erlang:yield(), Go() end end)(),
        [begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Ps], work:loop(100)'
    assert_success
    assert_equal "$(figures)" 'work:one/1 100 0 timed'
    assert_equal "$(totals)" '200 events · 50 filtered · 50 calls incomplete'
}

@test "calls too deep for the node's stack count as lost" {
    traced -c 'work:fac/1 -> return where dur >= 0ns' -- 'work:fac(600)'
    assert_success
    assert_equal "$(figures)" 'work:fac/1 510 0 timed'
    assert_equal "$(totals)" '1020 events · 182 lost (guard)'
    assert_regex "$talk" 'etrace: lost \(guard\): tracing reached a limit of the node'
}

@test "etrace filters events itself if the node cannot decide" {
    traced -c 'work:one(N) -> return where N > 5 and dur >= 0ns' -- 'work:loop(10)'
    assert_success
    assert_equal "$(figures)" 'work:one/1 5 0 timed'
    assert_equal "$(totals)" '10 events · 10 filtered'
    traced -c 'work:one/1 -> return where dur >= 0ns' 'work:raise/2 -> return where class == exit' -- "$FAILING"
    assert_success
    assert_equal "$(figures)" $'work:one/1 20 0 timed\nwork:raise/2 20 20 timed'
}

# Sets Owner to the owner process on the node, and Session to its trace session.
OWNER='{Owner, Session} = hd([{P, S} || P <- processes(), {dictionary, D} <- [process_info(P, dictionary)], {S, _, _} <- [proplists:get_value(session, D)]])'

@test "a malformed filter is refused and changes nothing" {
    trace -c --rate 10 'work:raise/2 | work:one/1 -> return where class == exit'
    run -0 node_eval "$NODE" "$OWNER"', {tracer, {M, State}} = trace:info(Session, whereis(w), tracer), rand:seed(exsss, 5),
        Refused = fun(Bin) -> try M:gate(State, {filter, Bin, []}) of ok -> false catch error:badarg -> true end end,
        {is_pid(Owner), lists:all(Refused, [rand:bytes(N) || N <- lists:seq(1, 2000), N rem 16 =/= 0]),
            lists:all(Refused, [<<255, (rand:bytes(16 * N - 1))/binary>> || N <- lists:seq(1, 100)]),
            lists:all(Refused, [binary:copy(<<0:128>>, N) || N <- lists:seq(2, 100)]),
            lists:all(fun(P) -> try M:gate(State, {filter, <<3, 0:120>>, P}) of ok -> false catch error:badarg -> true end end,
                [[], none, [none], [[]], [[{0, 1, 0, 0, 1, 2, x}]], [[{2, 0, 0, 0, 1, 2, {etrace_atom, <<"x">>}}]], [[{0, 0, 0, 0, 1, 2, {etrace_atom, x}}]],
                    lists:duplicate(9, [{0, 0, 0, 0, 1, 2, x}])])}'
    assert_output '{true,true,true,true,true}'
    on_node "$FAILING"
    trace_end
    assert_success
    assert_equal "$(figures)" 'work:raise/2 20 20 timed'
}

@test "a request with a malformed filter arms nothing" {
    trace -c --rate 10 'work:one/1 -> return where dur >= 0ns'
    run -0 node_eval "$NODE" "$OWNER"', [Owner ! {request, 4000000000 + N, term_to_binary({arm, #{probes => [], flags => [call], filter => Filter}})}
            || {N, Filter} <- lists:enumerate([<<1>>, <<255, 0:120>>, <<0:16384>>, none, [], term_to_binary({<<255, 0:120>>, []}), term_to_binary({<<>>, none}), term_to_binary(none)])],
        Owner ! {request, 4000000009, term_to_binary(ping)},
        work:loop(10), is_process_alive(Owner)'
    assert_output true
    until_true 10 on_node "$OWNER"', true = is_pid(Owner), {flags, []} = trace:info(Session, whereis(w), flags)'
    trace_end
    assert_success
}
