#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests views that show only figures: the node counts, and the figures are the same as those computed from events.

load ../lib/assert
load ../lib/live

setup_file() { live_share figures; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints function, calls, errors, and `timed`, `untimed` or the number of untimed calls, for each line of a summary.
figures() {
    awk 'NR == 1 { some = $3 == "untimed" } NR > 1 { print $NF, $1, $2, some ? "untimed " $3 : $3 == "-" ? "untimed" : "timed" }' "$OUT" | sort
}

same_by_events() { # EXPRESSIONS WORKLOAD
    traced -c "$1" -- "$2"
    assert_success
    counted=$(figures) counted_totals=$(totals)
    # With a filter the node sends each event, and etrace computes the figures. Its buffers hold the events of each workload,
    # so a busy host loses none.
    traced -c --rate 0 -g . "$1" -- "$2"
    assert_success
    assert_equal "$counted" "$(figures)"
}

@test "the figures that the node counts equal those from events" {
    same_by_events 'work:_ -> return' 'work:run(#{seed => 7, procs => 4, calls => 300})'
    assert [ "$(figures | wc -l)" -gt 5 ]
    same_by_events 'work:_' 'work:run(#{seed => 8, procs => 4, calls => 300})'
    refute [ "$(figures | grep -c ' timed')" -gt 0 ]
}

@test "figures of recursion and of exceptions through many calls equal those from events" {
    # No deeper: on a busy host the asker may be late, and a process with more open results loses calls.
    same_by_events 'work:fac/1 | work:deep/1 | work:caught/2 -> return' 'work:fac(40), work:outer(40), work:caught(throw, x)'
    assert_equal "$(figures)" $'work:caught/2 1 0 timed\nwork:deep/1 41 41 timed\nwork:fac/1 41 0 timed'
    assert_equal "$counted_totals" '166 events'
}

# bats test_tags=long
@test "the summary names the counted call that has not returned for the longest time" {
    # The newer call counts, too, if the host was busy for a second.
    local since counted='(1 call has not returned|2 calls have not returned, the oldest) for [1-9][0-9.]*s: timer:sleep/1 by <[0-9.]+>\(stuck\)'
    "$ETRACE_BIN" -n "$NODE" --json --by 'args[1]: count, max(dur)' 'timer:sleep(_)' >"$OUT.by" 2>"$ERR.by" 3>&- &
    local by=$!
    TRACERS+=("$by")
    until_true 30 grep -q 'Ctrl-C' "$ERR.by"
    trace -c 'timer:sleep(_) -> return'
    on_node 'begin register(stuck, spawn(fun() -> timer:sleep(infinity) end)), timer:sleep(1) end'
    since=${EPOCHREALTIME/./}
    until_true 20 eval "((\${EPOCHREALTIME/./} - $since > 3000000))"
    on_node 'register(newer, spawn(fun() -> timer:sleep(100000) end))'
    trace_end
    assert_regex "$talk" "etrace: $counted"
    kill -INT "$by"
    wait "$by"
    assert_regex "$(<"$ERR.by")" "etrace: $counted"
    run -0 jq -ec 'select(.type == "table").open | .calls <= 2 and .m == "timer" and .f == "sleep" and .a == 1 and .name == "stuck"' "$OUT.by"
    # A call that the filter has not accepted is not shown, so it is not named either.
    since=${EPOCHREALTIME/./}
    trace -c -e 'dur > 1us' 'timer:sleep(_) -> return'
    on_node '[begin R = monitor(process, N), exit(whereis(N), kill), receive {_, R, _, _, _} -> ok end end || N <- [stuck, newer]],
        register(stuck, spawn(fun() -> timer:sleep(infinity) end))'
    until_true 20 eval "((\${EPOCHREALTIME/./} - $since > 2000000))"
    trace_end
    refute_regex "$talk" 'not returned'
    on_node 'begin R = monitor(process, stuck), exit(whereis(stuck), kill), receive {_, R, _, _, _} -> ok end end'
}

@test "--rate does not limit figures, because the node sends no events" {
    traced -c --rate 10 'work:one/1 -> return' -- 'work:burst(4, 25000)'
    assert_success
    assert_equal "$(totals)" '200000 events'
    assert_equal "$(figures)" 'work:one/1 100000 0 timed'
}

# bats test_tags=long
@test "the node counts calls with results beside calls without" {
    # Whole functions, single clauses, overlapping expressions, and expressions with messages.
    same_by_events $'work:_\nwork:two/2 -> return' 'work:run(#{seed => 9, procs => 4, calls => 300})'
    assert [ "$(figures | grep -c ' untimed$')" -gt 0 ]
    assert [ "$(figures | grep -c ' timed$')" -gt 0 ]
    same_by_events 'work:one(N) when N > 5 -> return; (_)' '[work:one(N) || N <- lists:seq(1, 10)]'
    assert_equal "$(figures)" 'work:one/1 10 0 untimed 5'
    same_by_events $'work:fac(N) when N rem 2 == 0 -> return, msg(N)\nwork:fac/1\nwork:deep(N) when N > 20 -> return, caller\nwork:outer/1' \
        'work:fac(40), work:outer(40), work:fac(3)'
    # Results are counted for exactly the calls that report one. The rate does not apply.
    traced -c --rate 10 'work:one(N) when N rem 4 == 0 -> return; (_)' work:two/2 -- '[begin work:one(N), work:two(N, N) end || N <- lists:seq(1, 20000)]'
    assert_success
    assert_equal "$(totals)" '45000 events'
    assert_equal "$(figures)" $'work:one/1 20000 0 untimed 15000\nwork:two/2 20000 0 untimed 20000'
    # If a call may be hidden and still leave a stack frame, the node sends events, and etrace counts them.
    traced -c 'work:one(N) when N > 5 -> return' 'work:one(N) when N > 8 -> silent(false), drop' 'work:two/2' -- '[work:one(N) || N <- lists:seq(1, 10)], work:two(1, 2)'
    assert_success
    assert_equal "$(figures)" $'work:one/1 3 0 timed\nwork:two/2 1 0 untimed'
    same_by_events "ms work:one/1 [{['\$1'],[{'>','\$1',5}],[{message,false},{return_trace}]},{'_',[],[{return_trace}]}]"$'\nwork:two/2' \
        '[work:one(N) || N <- lists:seq(1, 10)], work:two(1, 2)'
    assert_equal "$(figures | grep '^work')" $'work:one/1 10 0 untimed 5\nwork:two/2 1 0 untimed 1'
}

@test "calls of killed processes are incomplete, and their slots become free" {
    traced -c 'work:slow/1 | work:one/1 -> return' -- 'Ps = [spawn(work, slow, [100000000]) || _ <- lists:seq(1, 5000)],
        [begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Ps, {_, {work, slow, 1}} <- [begin erlang:yield(), process_info(P, current_function) end]],
        [exit(P, kill) || P <- Ps], work:loop(100)'
    assert_success
    assert_equal "$(figures | grep one)" 'work:one/1 100 0 timed'
    assert_regex "$talk" '· [1-9][0-9]* calls incomplete'
}

@test "histograms count several functions on several threads" {
    traced --as hist 'work:one/1 | work:two/2 -> return' -- 'work:burst(4, 500), work:two(1, 2)'
    assert_success
    assert_line --regexp '^work:one/1  2000, p50 '
    assert_line --regexp '^work:two/2  1, p50 '
    assert_equal "$(awk -F'[|] ' '/[|]/ { n += $NF } END { print n }' "$OUT")" 2001
}

# A client is frozen for five seconds.
# bats test_tags=long
@test "figures add up on the node while the client is stopped, and do not queue there" {
    trace -c 'work:one/1'
    freeze "$TRACER"
    # The client is stopped, so the test renews its lease: {pull, 0, 0} gives no credit. One thread makes all calls.
    on_node "[M] = control:companion_modules(),
        [Owner] = control:companion(owner),
        Waiting = fun() -> true = erlang:garbage_collect(Owner), {_, L} = process_info(Owner, binary), length(L) end,
        Calls = fun Calls(0) -> ok; Calls(N) -> Owner ! {pull, 0, 0}, work:one(N), timer:sleep(50), Calls(N - 1) end,
        Counted = fun(N) -> {_, R} = spawn_opt(fun() -> Calls(N) end, [monitor, {scheduler, 1}]), receive {_, R, _, _, Why} -> normal = Why end end,
        Counted(30),
        Before = Waiting(),
        Counted(70),
        After = Waiting(),
        true = After =< Before + 1,
        Owner ! {pull, 0, 1 bsl 20}" # a client that stops at once sends no pull of its own for three seconds
    kill -CONT "$TRACER"
    trace_end
    assert_success
    assert_equal "$(figures)" 'work:one/1 100 0 untimed'
}

# Generates the functions on a new node, calls each once on each scheduler, and checks the figures.
many_functions() { # FUNCTIONS SCHEDULERS
    live_own many +S "$2:$2"
    on_node "
        Name = fun(N) -> list_to_atom(\"many_f\" ++ integer_to_list(N)) end,
        A = fun erl_anno:new/1,
        Make = fun(M, Ns) ->
            {ok, M, Bin} = compile:forms([{attribute, A(1), module, M}, {attribute, A(1), export, [{Name(N), 1} || N <- Ns]}
                | [{function, A(1), Name(N), 1, [{clause, A(1), [{var, A(1), 'X'}], [], [{var, A(1), 'X'}]}]} || N <- Ns]], []),
            {module, M} = code:load_binary(M, \"\", Bin)
        end,
        [Make(list_to_atom(\"many_m\" ++ integer_to_list(I)), lists:seq(500 * (I - 1) + 1, 500 * I)) || I <- lists:seq(1, $1 div 500)]"
    live_snapshot
    traced -c --overhead 100% 'many_m*:_ -> return' -- "
        Fs = [{M, F} || {M, _} <- code:all_loaded(), lists:prefix(\"many_m\", atom_to_list(M)), {F, 1} <- M:module_info(exports), F =/= module_info],
        [R || {_, R} <- [spawn_opt(fun() -> [M:F(x) || {M, F} <- Fs] end, [monitor, {scheduler, I}]) || I <- lists:seq(1, $2)],
            receive {'DOWN', R, _, _, normal} -> true end]"
    assert_success
    assert_equal "$(totals)" "$((2 * $1 * $2)) events"
    assert_equal "$(figures | awk '{ $1 = ""; print }' | sort | uniq -c | xargs)" "$1 $2 0 timed"
}

# A stress: six thousand functions.
# bats test_tags=long
@test "thousands of functions have their own figures, whatever the number of schedulers" {
    local n functions=${ETRACE_SLOW:+1500} # an emulated node would need minutes for all
    for n in ${ETRACE_ALL:+1 16} 64; do
        many_functions "${functions:-6000}" "$n"
        nodes_stop
    done
}

# how_is TRACED COUNTED FUNCTION: whether the session has a pattern for the function (local or false) and a counter for it
how_is() {
    on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, $1} = trace:info(S, $3, traced),
        {call_count, N} = trace:info(S, $3, call_count), $2 = is_integer(N)"
}

@test "calls without results are counted by the virtual machine alone" {
    trace -c 'work:_'
    how_is false true '{work, one, 1}'
    on_node 'work:burst(4, 25000)'
    trace_end
    assert_success
    assert_equal "$(figures | grep one)" 'work:one/1 100000 0 untimed'
    refute_output --partial overhead
    same_by_events 'work:one/1 | work:two/2' 'work:burst(4, 5000), work:two(1, 2)'
    assert_equal "$counted_totals" '20001 events'
}

# bats test_tags=long
@test "calls are traced where a counter would count others, or where more than the calls is wanted" {
    local args
    for args in 'work:one(X) when X > 1' 'work:one/1 -> return' 'work:one/1 -> caller' $'work:one/1\nlists:seq/2' $'work:one/1\nlists:member/2'; do
        trace -c "$args"
        how_is local false '{work, one, 1}' || fail "$args"
        trace_end
    done
    trace -c -P w work:one/1
    how_is local false '{work, one, 1}'
    trace_end
    trace work:one/1
    how_is local false '{work, one, 1}'
    trace_end
}

# late [CALL]: loads another version of the module late_m, which has one function
late() {
    on_node "{ok, M, Bin} = compile:forms([{attribute, 1, module, late_m}, {attribute, 1, export, [{f, 1}]}, {attribute, 1, vsn, [$1]},
        {function, 1, f, 1, [{clause, 1, [{var, 1, 'X'}], [], [{var, 1, 'X'}]}]}], []), code:purge(M), {module, M} = code:load_binary(M, \"\", Bin)"
}

# bats test_tags=long
@test "counters count modules that are loaded later or again, and are set again after their process was killed" {
    live_own late
    trace -c --allow-empty 'late_*:_' work:one/1
    late 1
    until_true 60 how_is false true '{late_m, f, 1}'
    on_node '[late_m:f(N) || N <- lists:seq(1, 10)]'
    late 2
    until_true 60 how_is false true '{late_m, f, 1}'
    on_node '[late_m:f(N) || N <- lists:seq(1, 100)], work:loop(10)'
    on_node '[W] = control:companion(worker), R = monitor(process, W), exit(W, kill), receive {_, R, _, _, _} -> ok end, work:loop(10)'
    late 3
    until_true 60 how_is false true '{late_m, f, 1}'
    on_node '[late_m:f(N) || N <- lists:seq(1, 100)]'
    trace_end
    assert_success
    # The calls since the last reading go with the old code. A reading may come in the midst of the calls.
    run figures
    assert_line --regexp '^late_m:f/1 [0-9]+ 0 untimed$'
    counted=$(sed -n 's|^late_m:f/1 \([0-9]*\) .*|\1|p' <<<"$output")
    ((counted >= 100 && counted <= 210))
    assert_line 'work:one/1 20 0 untimed'
}

# The last notices are about open calls, and about the durations that the node has tested.
@test "a destroyed session ends a trace whose last notices are not empty" {
    local how
    for how in '-c' "-e dur>1h"; do
        # shellcheck disable=SC2086  # words
        trace $how 'work:two(_, _) -> return' 'work:slow(_) -> return'
        on_node 'work:two(a, 1), spawn(fun() -> work:slow(4000) end), timer:sleep(1500)'
        on_node '[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
        trace_wait 30
        assert_failure
        assert_regex "$talk" 'somebody on the node has destroyed the trace session'
    done
}

@test "a destroyed session ends the count with a message and the figures until then" {
    local options
    for options in '-c' '--by=f'; do
        trace "$options" 'work:two(_, _) -> return'
        on_node '[work:two(a, 1) || _ <- lists:seq(1, 300)], [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
        trace_wait 30
        assert_failure
        assert_regex "$talk" 'somebody on the node has destroyed the trace session'
        grep -qw 300 "$OUT"
    done
}
