#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests --overhead: the node counts all calls, times as many of them as the budget allows, and says what tracing took.

load ../lib/assert
load ../lib/live
load ../lib/commands

setup_file() {
    live_begin overhead
    on_node 'broker:load(1)'
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# calls_of FUNCTION, untimed_of FUNCTION: a column of the summary
calls_of() { awk -v f="$1" '$NF == f { print $1 }' "$OUT"; }
untimed_of() { awk -v f="$1" 'NR == 1 { some = $3 == "untimed" } $NF == f { print some ? $3 : 0 }' "$OUT"; }

# The process `watch` counts the calls of work:one/1 in a session of its own.
watch() {
    on_node 'Self = self(), register(watch, spawn(fun() ->
        S = trace:session_create(watch, self(), []),
        1 = trace:function(S, {work, one, 1}, true, [call_count]),
        Self ! watched,
        receive {stop, From} -> From ! trace:info(S, {work, one, 1}, call_count), trace:session_destroy(S) end end)),
        receive watched -> ok end'
}
watched() { node_eval "$NODE" 'begin watch ! {stop, self()}, receive {call_count, N} -> N end end'; }

# A process that calls work:one/1 some hundred thousand times a second, until cool.
hot() {
    on_node 'register(hot, spawn(fun() -> control:again(1, fun() -> work:loop(300) end) end))'
}
cool() { on_node 'hot ! {stop, self()}, receive stopped -> ok end'; }

armed_is() { # VALUE
    on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, $1} = trace:info(S, {work, one, 1}, traced)"
}

# counted_is true|false: whether work:one/1 has a counter
counted_is() {
    on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {call_count, N} = trace:info(S, {work, one, 1}, call_count), $1 = is_integer(N)"
}

took() { grep -Eq "^etrace: tracing took [0-9.]+% of the schedulers' time \(limit $1\)" "$ERR"; }

@test "--overhead takes a share of more than 0% and up to 100%" {
    for wrong in 0 -1 101 100.1 abc '' 5%% 5x %; do
        run "$ETRACE_BIN" -n "$NODE" --dry-run --overhead="$wrong" work:one/1
        assert_failure 2
        assert_line "etrace: --overhead does not take '$wrong'"
        assert_line 'hint: a share such as 5% or 0.5%, up to 100%, not 0'
    done
    for right in 5 5% 0.5% 0.01 100 100%; do
        run "$ETRACE_BIN" -n "$NODE" --dry-run --overhead "$right" work:one/1
        assert_success
    done
}

@test "a trace within its budget has every call with its time" {
    traced -c --overhead 50% 'work:one/1 | work:fac/1 -> return' -- 'work:loop(500), work:fac(20)'
    assert_success
    took 50%
    assert_equal "$(calls_of work:one/1) $(untimed_of work:one/1)" '500 0'
    assert_equal "$(calls_of work:fac/1) $(untimed_of work:fac/1)" '21 0'
    refute_output --partial 'only counted'
}

@test "without --overhead a trace of named functions has no budget" {
    traced -c 'work:one/1 -> return' -- 'work:loop(500)'
    assert_success
    refute grep -q 'tracing took' "$ERR"
}

@test "calls are exact while a function becomes hot and cold again" {
    watch
    trace -c --overhead 2% 'work:one/1 | work:fac/1 -> return'
    on_node 'work:loop(10)'
    hot
    until_true 60 armed_is false
    cool
    until_true 60 armed_is local
    on_node 'work:fac(20)'
    trace_end
    counted=$(watched)
    assert_success
    took 2%
    assert grep -Eq "^etrace: 1 function is called too often for --overhead 2%: only counted; busiest: work:one/1 with [0-9]+ calls a second" "$ERR"
    assert_equal "$(calls_of work:one/1)" "$counted"
    assert [ "$(untimed_of work:one/1)" -gt 0 ]
    assert [ "$(untimed_of work:one/1)" -lt "$counted" ]
    assert_equal "$(calls_of work:fac/1)" 21
    assert grep -q '^untimed: calls that were only counted, because of --overhead' "$OUT"
}

@test "a function that is hot from the beginning is only counted" {
    hot
    trace -c --overhead 2% 'work:one/1 | work:fac/1 -> return'
    until_true 60 armed_is false # a hot process that did not run during the first count is armed for a moment
    on_node 'work:fac(20)'
    cool
    trace_end
    assert_success
    assert [ "$(untimed_of work:one/1)" -gt 0 ]
    assert_equal "$(calls_of work:fac/1)" 21
}

@test "events beyond the budget are not shown, and JSON says so" {
    trace --json --overhead 2% 'work:one/1 | work:fac/1 -> return'
    hot
    until_true 60 armed_is false
    cool
    on_node 'work:fac(3)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of notice 'select(.tag == "overhead" and .functions) | "\(.m):\(.f)/\(.a) \(.functions) \(.limit)"' | head -n 1)" 'work:one/1 1 2'
    assert_equal "$(json_of notice 'select(.tag == "overhead" and .share) | .share > 0 and .limit == 2 and .rejected >= 0')" true
}

# The calls that made events, and those that the line of this type says made none, are all calls. An estimate is near.
all_counted() { # TYPE MADE
    jq -se --arg type "$1" --argjson made "$2" --argjson all "$counted" 'map(select(.type == $type))[0].not_traced
        | (.calls + $made - $all | fabs) <= (if .estimated then $all / 2 else 0 end) and .calls > 0' "$OUT" ||
        fail "$2 calls made events, of $counted: $(tail -n 1 "$OUT")"
}

# Traces a hot function until its calls are only counted. Sets `counted` to all of its calls.
over_budget() { # WORDS...
    watch
    trace --rate 0 --overhead 1% "$@"
    hot
    until_true 60 armed_is false
    cool
    trace_end
    counted=$(watched)
    assert_success
}

@test "every view says how many calls made no event because of the budget" {
    over_budget --json 'work:one/1 -> return'
    all_counted summary "$(grep -c '"type":"call"' "$OUT")"

    over_budget --json 'work:one(_) by f: count'
    all_counted table "$(json_of row .count)"
    [[ $(totals) =~ \ ~?[0-9]+\ not\ traced\ \(--overhead\)$ ]]

    # The counters include calls of other processes and other arguments, so nobody knows the number.
    trace --overhead 2% 'work:one(X) when is_integer(X)'
    hot
    until_true 60 armed_is false
    cool
    trace_end
    assert_success
    assert grep -q 'made no event (--overhead), and an unknown number of others' "$OUT"
    [[ $(totals) == *' · calls not traced (--overhead), their number is unknown' ]]

    # A trace within its budget has every call.
    traced --json --overhead 50% 'work:fac/1 -> return' -- 'work:fac(20)'
    assert_success
    assert_equal "$(json_of summary '.not_traced | "\(.calls) \(.estimated)"')" '0 false'
}

# The second burst comes when the function may have no counter, because it counted too many calls.
@test "a number of calls that is not estimated is exact" {
    local gap
    for gap in 0 100 300 600 1500; do
        traced --json --overhead 1% 'work:one(_) by f: count' -- "work:loop(1000000), receive after $gap -> ok end, work:loop(1000000)"
        assert_success
        jq -es '(map(select(.type == "row") | .count) | add // 0) as $count | .[-1].not_traced | .estimated or .calls + $count == 2000000' "$OUT" || fail "gap $gap: $(tail -n 2 "$OUT")"
    done
}

@test "a reloaded module is counted and traced again" {
    trace -c --overhead 20% 'made_000:f15/1 -> return'
    on_node 'broker:reload(1)'
    until_true 60 on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, local} = trace:info(S, {made_000, f15, 1}, traced)"
    on_node '[made_000:f15(N) || N <- lists:seq(1, 100)]'
    trace_end
    assert_success
    assert_equal "$(calls_of made_000:f15/1) $(untimed_of made_000:f15/1)" '100 0'
}

@test "a reloaded module is traced again beside built-in functions" {
    trace -c --overhead 50% 'lists:_ | made_000:f15/1 -> return'
    on_node 'broker:reload(1)'
    until_true 60 on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, local} = trace:info(S, {made_000, f15, 1}, traced)" ||
        fail "$(<"$ERR")"
    trace_end
    assert_success
    refute grep -q self-check "$ERR"
}

@test "patterns and guards keep the budget, and no count is shown for them" {
    trace -c --overhead 2% 'work:one(X) when is_atom(X) -> return'
    hot
    until_true 60 armed_is false
    cool
    until_true 60 armed_is local
    trace_end
    assert_success
    took 2%
    assert_equal "$(calls_of work:one/1)" ''
}

@test "a kill of etrace leaves nothing of the counters and the flags" {
    hot
    trace -c --overhead 2% 'work:one/1 | work:fac/1 -> return'
    until_true 60 armed_is false
    kill -KILL "$TRACER"
    until_true 60 gone "$TRACER"
    cool
    assert_clean "$BEFORE" "$NODE"
}

@test "the calls of a function whose counter takes too much are estimated" {
    on_node 'work:flood(2)'
    trace -c --overhead 0.1% 'work:one/1 -> return'
    until_true 60 counted_is false
    on_node 'work:calm(ok)'
    until_true 60 counted_is true
    trace_end
    assert_success
    assert grep -Eq '^ *~[0-9]+ .* work:one/1$' "$OUT"
    assert grep -q '^~: estimated, ' "$OUT"
    # Without results, calls that a counter counts are seen, and estimated ones are not.
    on_node 'work:flood(2)'
    trace -c --overhead 0.1% 'work:one/1'
    until_true 60 counted_is false
    on_node 'work:calm(ok)'
    trace_end
    assert_success
    [[ $(totals) =~ ' · ~'[0-9]+' not traced (--overhead)' ]]
    refute_regex "$talk" 'no traced function was called'
}

@test "a busy function that the compiler made is cleared" {
    trace -c --overhead 10% 'made_000:_ -> return'
    on_node 'register(lists, spawn(fun Loop() -> made_000:f1(5), Loop() end))'
    until_true 60 on_node '[S] = [X || X = {etrace, _} <- trace:session_info(all)],
        [F] = [{made_000, F, A} || {F, A} <- made_000:module_info(functions), lists:prefix("-f1/1", atom_to_list(F))],
        {call_count, false} = trace:info(S, F, call_count), {traced, false} = trace:info(S, F, traced)'
    on_node 'exit(whereis(lists), kill)'
    trace_end
    assert_success
}

@test "functions move on, and calls are exact, after the process that moves them was killed" {
    watch
    trace -c --overhead 2% 'work:one/1 | work:fac/1 -> return'
    on_node 'work:loop(10)'
    on_node '[W] = control:companion(worker), R = monitor(process, W), exit(W, kill), receive {_, R, _, _, _} -> ok end'
    hot
    until_true 60 armed_is false
    on_node '[W] = control:companion(worker), R = monitor(process, W), exit(W, kill), receive {_, R, _, _, _} -> ok end'
    cool
    until_true 60 armed_is local
    on_node 'work:fac(20)'
    trace_end
    counted=$(watched)
    assert_success
    assert_equal "$(calls_of work:one/1)" "$counted"
    assert_equal "$(calls_of work:fac/1)" 21
}

@test "the fallback tracer says that it has no budget" {
    trace -c --fallback --overhead 2% 'work:one/1 -> return'
    trace_end
    assert_success
    assert grep -q 'warning: --overhead has no effect without the NIF' "$ERR"
}

@test "views of events end with the calls that were only counted" {
    hot
    trace --overhead 2% -o "$BATS_TEST_TMPDIR/it.json" -o "$BATS_TEST_TMPDIR/it.txt" -o "$BATS_TEST_TMPDIR/it.csv" -o "$BATS_TEST_TMPDIR/it.etr" 'work:one/1 | work:fac/1 -> return'
    until_true 60 armed_is false # a hot process that did not run during the first count is armed for a moment
    cool
    on_node 'work:fac(3)'
    trace_end
    assert_success
    assert grep -Eq '^\*\*\* [0-9]+ calls of work:one/1 were only counted \(--overhead\) \*\*\*$' "$BATS_TEST_TMPDIR/it.txt"
    for view in $(views_of_help); do
        [[ $view != @(record|pprof|table*) ]] || continue # a recording, a compressed file, and views that need `by`
        run "$ETRACE_BIN" replay --as "$view" "$BATS_TEST_TMPDIR/it.etr"
        assert_success
        case $view in
            request* | died*) ;; # views of other events
            summary | hist) assert_output --partial work:one/1 ;; # these calls count there, without a time
            json) assert_output --partial '"type":"only_counted"' ;;
            csv | tsv) assert_output --partial only_counted ;;
            *) assert_output --partial ' calls of work:one/1 were only counted (--overhead)' ;;
        esac
    done
    assert grep -Eq '^,,,,only_counted,work,one,1,.*,[0-9]+$' "$BATS_TEST_TMPDIR/it.csv"
    OUT=$BATS_TEST_TMPDIR/it.json
    assert_equal "$(json_of only_counted '"\(.m):\(.f)/\(.a) \(.calls > 0) \(.estimated)"')" 'work:one/1 true false'
    refute grep -q 'work:fac/1 were only counted' "$BATS_TEST_TMPDIR/it.txt"
}

@test "estimates are between half and twice the calls, while the load changes" {
    on_node 'work:flood(2)'
    trace -c --overhead 0.1% 'work:one/1 -> return'
    watch
    until_true 60 counted_is false
    on_node 'receive after 5000 -> ok end, work:calm(ok), receive after 3000 -> ok end, work:flood(1), receive after 5000 -> ok end, work:calm(ok)'
    until_true 60 counted_is true
    trace_end
    counted=$(watched)
    assert_success
    estimated=$(calls_of work:one/1)
    assert grep -Eq '^ *~[0-9]+ .* work:one/1$' "$OUT"
    assert [ "${estimated#\~}" -gt $((counted / 2)) ]
    assert [ "${estimated#\~}" -lt $((counted * 2)) ]
}

# pauses_and_resumes: a process makes nested calls of work:steps/2. Some of them return while etrace traces no calls. The
# worker is suspended, so the budget cannot give up work:one/1, and the suspended owner does not end the pause.
pauses_and_resumes() {
    on_node '[S] = [X || X = {etrace, _} <- trace:session_info(all)], Self = self(),
        [Owner] = control:companion(owner),
        Up = fun(P, What) -> P ! up, receive {waits, What} -> ok end end,
        P = spawn(fun() -> Time = work:alone(Self), work:steps(1, Self), Self ! {took, Time} end),
        receive {waits, 1} -> ok end,
        Traced = fun() -> {flags, Flags} = trace:info(S, P, flags), lists:member(call, Flags) end,
        Worker = control:worker_hold(),
        (fun Pause() ->
            work:loop(1000),
            erlang:suspend_process(Owner),
            Traced() andalso begin erlang:resume_process(Owner), receive after 10 -> Pause() end end
        end)(),
        Up(P, 2), Up(P, 3),
        erlang:resume_process(Owner),
        (fun Resume() -> Traced() orelse receive after 10 -> Resume() end end)(),
        erlang:resume_process(Worker),
        Up(P, alone), Up(P, 1), P ! up,
        receive {took, _} -> ok end'
}

# The results of work:alone/1 and work:steps/2: the function, its first argument if it is a number, whether the duration is
# known, and whether it is right
results_of() {
    jq -r 'select(.type == "return" and .f != "one") | .f + (if .f == "steps" then " \(.args[0])" else "" end) +
        " \(.dur_us != null) \(.dur_us == null or .dur_us * 1000 >= (.value | tonumber))"' "$1"
}

@test "a result after a pause has the right duration or none, live and from a recording" {
    trace --json --rate 0 --overhead 0.1% -o "$BATS_TEST_TMPDIR/it.etr" 'work:one/1 | work:alone/1 | work:steps/2 -> return'
    pauses_and_resumes
    trace_end
    assert_success
    assert_account any
    run results_of "$OUT"
    assert_output "$(printf '%s\n' 'steps 0 true true' 'steps null false true' 'alone true true' 'steps 0 true true' 'steps 1 true true')"
    refute grep -q resumed "$OUT" "$ERR"
    "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/it.etr" >"$BATS_TEST_TMPDIR/replayed"
    run diff <(results_of "$OUT") <(results_of "$BATS_TEST_TMPDIR/replayed")
    assert_success
}

@test "the node times a result after a pause right or not at all" {
    trace -c --overhead 0.1% 'work:one/1 | work:alone/1 | work:steps/2 -> return'
    pauses_and_resumes
    trace_end
    assert_success
    assert_equal "$(calls_of work:steps/2) $(untimed_of work:steps/2)" '6 3'
    assert_equal "$(calls_of work:alone/1) $(untimed_of work:alone/1)" '1 0'
}

@test "a filter on the duration hides a result after a pause whose call is not certain" {
    trace --json --rate 0 --overhead 0.1% 'work:one/1 | work:alone/1 | work:steps/2 -> return where dur > 0ms'
    pauses_and_resumes
    trace_end
    assert_success
    assert_account any
    run results_of "$OUT"
    assert_output "$(printf '%s\n' 'steps 0 true true' 'alone true true' 'steps 0 true true' 'steps 1 true true')"
}

# share_of: the share that tracing took, in percent
share_of() { sed -n 's/^etrace: tracing took \([0-9.]*\)% .*/\1/p' "$ERR"; }

@test "the share that is reported is between half and twice the processor time that tracing took" {
    local load='{A, _} = statistics(runtime), work:loop(3000000), {B, _} = statistics(runtime), B - A' untraced traced from
    untraced=$(node_eval "$NODE" "begin $load end")
    trace -c --overhead 95% 'work:one/1 -> return'
    from=$(millis)
    traced=$(node_eval "$NODE" "begin $load end")
    trace_end
    assert_success
    run awk -v ms=$((traced - untraced)) -v share="$(share_of)" -v elapsed=$(($(millis) - from)) \
        -v schedulers="$(node_eval "$NODE" 'erlang:system_info(schedulers_online)')" \
        'BEGIN { took = share / 100 * elapsed * schedulers; print took, ms; exit took < ms / 2 || took > ms * 2 }'
    assert_success
}

# chaos ROUNDS: in each round the load changes, modules are purged and loaded anew, and processes begin and end. A purge may
# kill processes in the middle of a call.
chaos() {
    on_node "Caller = fun() -> [begin catch made_000:f9(N), catch made_001:f1(N) end || N <- lists:seq(1, 1000)], work:loop(1000), work:fac(20) end,
        (fun Round(0) -> ok; Round(N) ->
            Hot = spawn(fun() -> control:again(1, fun() -> work:loop(N rem 4 * 200) end) end),
            Callers = [spawn_monitor(Caller) || _ <- lists:seq(1, 10)],
            broker:reload(3),
            [receive {'DOWN', Ref, _, _, _} -> ok end || {_, Ref} <- Callers],
            receive after 500 -> ok end,
            Ref = monitor(process, Hot), Hot ! stop, receive {'DOWN', Ref, _, _, _} -> ok end,
            Round(N - 1)
        end)($1)"
}

@test "the budget holds, and calls are exact, while load, modules and processes change" {
    local results counted
    on_node 'broker:reload(3)'
    live_snapshot
    for results in '' ' -> return'; do
        trace -c --overhead 5% "made_*:_ | work:one/1 | work:fac/1$results"
        watch
        chaos 15
        trace_end
        counted=$(watched)
        assert_success
        assert_equal "$(calls_of work:one/1)" "$counted"
        run awk -v share="$(share_of)" 'BEGIN { exit share > 5 }'
        assert_success
    done
}
