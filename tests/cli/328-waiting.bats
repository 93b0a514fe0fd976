#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests calls that wait on the node until their result decides a filter. The events are the same as when the node sends
# everything and etrace filters, and hidden calls cause no traffic.

load ../lib/assert
load ../lib/live
bats_require_minimum_version 1.5.0

setup_file() { live_share waiting; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints the events without the fields that differ between runs.
shown() { jq -c 'del(.ts, .mono_ns, .dur_us, .dur_ns, .name, .open) | select(.type != "attached")' "$1" | sed 's/#Ref<[0-9.]*>/#Ref<>/g'; }

# Traces one run with two clients. The second client records, so it gets every event. The first gets what the node's
# filter shows. Both must show the same events.
same_by_both() { # WORKLOAD ETRACE-ARGUMENTS...
    local workload=$1 first out=$OUT err=$ERR
    shift
    trace --json "$@"
    first=$TRACER
    OUT=$out.2 ERR=$err.2
    trace --json -o "$out.etr" "$@"
    on_node "$workload"
    trace_end
    assert_success
    assert_account any
    shown "$OUT" >"$out.all"
    TRACER=$first OUT=$out ERR=$err
    trace_end
    assert_success
    assert_account any
    # A few lines of the difference are enough for the message of a failure.
    shown "$OUT" | diff "$out.all" - | head -n 8 >"$out.diff"
    assert_equal "$(<"$out.diff")" ''
}

counts() { jq -r 'select(.type == "summary") | "\(.seen) \(.shown) \(.filtered) \(.incomplete)"' "$OUT"; }

FAILING='[work:caught(C, R) || C <- [error, exit, throw, error], R <- lists:seq(1, 20)], work:outer(30), work:burst(2, 10)'

# bats test_tags=long
@test "waiting calls give the same events when the node filters by class" {
    same_by_both "$FAILING" 'work:raise/2 | work:caught/2 | work:deep/1 | work:one/1 -> return where class == error'
    assert_equal "$(counts)" '422 142 280 0'
    same_by_both "$FAILING" 'work:raise/2 | work:deep/1 | work:one/1 -> return where dur > 1min orelse not (class == throw)'
    same_by_both "$FAILING" 'work:one/1 | work:raise/2 -> return, caller where class == error or dur >= 0ns'
    same_by_both "$FAILING" 'work:raise(C, R) -> return, msg({C, R}) where class == exit xor class == error'
}

# Terms of all types, and exceptions, which have no value.
VALUES='[work:one(V) || V <- [0, 1, 1.0, 2, -7, 1 bsl 70, 2.5, ok, error, true, [], {ok, 1}, {ok, 1, 2}, {error, enoent}, {error, {a, b}}, {},
    [ok], [ok, 2], [ok | 2], [1, 2, 3], <<>>, <<"x">>, <<3:2>>, #{}, #{reason => timeout}, #{reason => {a, b}, 1 => x}, self(), make_ref(), fun() -> ok end]],
    [catch work:raise(C, ok) || C <- [error, exit, throw]]'

# bats test_tags=long
@test "waiting calls give the same events when the node tests the value of the result" {
    local condition conditions=('ret = {error, {a, X}} or ret = #{reason := timeout} xor ret = #{}' 'is_number(ret) and dur < 1min or class == exit'
        'ret == nobody_knows_this or is_map(ret)')
    [[ ! ${ETRACE_ALL:-} ]] || conditions=('ret == ok' 'ret == 1 or ret = {error, _}' 'not (ret =:= 1) andalso not (ret = {ok, _})' 'ret > 1' '1 >= ret'
        'ret = [ok | T] or ret = [] or ret == <<"x">> or is_reference(ret)' "${conditions[@]}")
    for condition in "${conditions[@]}"; do
        same_by_both "$VALUES" "work:one/1 | work:raise/2 -> return where $condition"
    done
    assert_equal "$(counts)" '64 6 58 0'
}

@test "a filter by the value sends only the results that pass, so the others use no rate" {
    traced --rate 10 'work:one(N) where ret = {error, _} or ret == 77' -- 'work:loop(2000), work:one({error, x})'
    assert_success
    assert_equal "$(totals)" '4 events · 3998 filtered'
}

# bats test_tags=long
@test "waiting calls give the same events with recursion, tail calls and other events between" {
    local workload='work:fac(40), work:sum(50, 0), work:fib(9), work:even(31), work:outer(5), work:ping_pong(20)'
    same_by_both "$workload" 'work:fac/1 | work:sum/2 | work:fib/1 | work:odd/1 | work:deep/1 -> return where dur >= 0ns'
    same_by_both "$workload" 'work:fac/1 | work:sum/2 | work:fib/1 | work:even/1 | work:deep/1 -> return where class == error'
    same_by_both "$workload" --proc w 'work:deep/1 | work:fib/1 -> return where class == error or dur > 1min' 'send(_, {pong, _})' '@spawn'
    same_by_both "$workload" 'work:fib(N) when N > 4 -> return; (N) -> drop where dur < 1min' 'work:deep/1 | work:odd/1 -> return where dur < 1min'
}

# bats test_tags=long
@test "waiting calls give the same events when etrace filters a part itself" {
    same_by_both "$FAILING" 'work:raise(_, N) -> return where class =/= exit andalso args[2] rem 3 == 0 andalso text =~ "raise"'
    assert_equal "$(counts)" '160 36 124 0'
    same_by_both "$FAILING" -g 'throw|exit' -e 'class == exit or class == throw' 'work:raise/2 -> return' 'work:deep/1 -> return'
    same_by_both "$FAILING" -v -g exit --limit 1000 'work:raise/2 | work:one/1 -> return where class == exit or class == error'
}

# bats test_tags=long
@test "waiting calls keep names, secrets, cut terms and arities" {
    # One thread makes all events: the first event of a thread also has the names of its atoms, and they use room of a cut term.
    local workload='process_flag(scheduler, 1), [catch work:raise(C, R) || C <- [error, throw], R <- [work:secret(<<"x">>), [{password, "y"}, {token, 1}], a, <<0:3>>, self(), make_ref(),
        1.5, -1, 1 bsl 40, -(1 bsl 80), "text", [1 | 2], {}, #{}, #{a => #{b => [c, d, e]}}, list_to_atom("an atom"), lists:seq(1, 2000), work:dict(100),
        lists:duplicate(700, an_atom), binary:copy(<<"z">>, 5000), fun lists:map/2, [list_to_atom([$x, N]) || N <- lists:seq($a, $z)]]]'
    on_node "$workload" # create the atoms before the snapshot
    live_snapshot
    same_by_both "$workload" 'work:raise/2 -> return where class == error'
    same_by_both "$workload" --size 100 --depth 2 --items 7 'work:raise/2 -> return where class == throw'
    same_by_both "$workload" 'work:raise/2 -> return, arity where class == throw'
    same_by_both "$workload" 'work:raise/2 -> return, args(1) where class == throw'
    run -0 jq -r 'select(.type == "call") | .args[1]' "$OUT"
    refute_output --partial '"y"'
}

@test "a filter by duration sends only slow calls, and hidden calls use neither rate nor traffic" {
    traced --rate 10 --json 'work:slow/1 | work:one/1 where dur > 1s' -- 'work:loop(10000), work:slow(1500), work:slow(0), work:loop(10000)'
    assert_success
    assert_equal "$(json_of call '"\(.f) \(.args[0])"')" 'slow 1500'
    assert_equal "$(json_of return '"\(.f) \(.value) \(.dur_us > 1400000)"')" 'slow 1500 true'
    assert_equal "$(counts)" '40004 2 40002 0'
    # The time of a call is when it began, not when the node sent it.
    run -0 jq -s -e '(.[] | select(.type == "call") | .mono_ns) as $c | (.[] | select(.type == "return")) as $r | $r.mono_ns - $c - ($r.dur_us * 1000) | fabs < 2000' "$OUT"
}

# bats test_tags=long
@test "the rate limits shown calls, and a call is lost together with its result" {
    traced --rate 100 --json 'work:one/1 -> return where dur >= 0ns' -- 'work:loop(5000)'
    assert_success
    assert_account 10000
    run -0 jq -e '.lost.rate > 0 and .lost.rate % 2 == 0 and .incomplete == 0 and .filtered == 0 and .shown > 100' <<<"$(tail -n 1 "$OUT")"
    assert_equal "$(json_of call .args[0])" "$(json_of return .value)"
    # More than half of these calls find no room to wait on the node. The rate limits their results, too.
    traced --rate 100 --json 'work:fac/1 -> return where dur > 60min' -- '[begin work:fac(1000), ok end || _ <- lists:seq(1, 10)]'
    assert_success
    assert_account 20020
    run -0 jq -e '.lost.rate > 8000' <<<"$(tail -n 1 "$OUT")"
    # For calls that did not wait, the rate may drop only the call or only the result. A result without its call must
    # not be matched to another open call.
    traced --rate 1 --json 'work:climb/2 -> return where dur >= 0ns' -- 'work:climb(1000, {100, 2500})'
    assert_success
    assert_account 2002
    run -0 jq -es 'all(.[] | select(.type == "return"); .value == .args[0]) and .[-1].lost.rate > 1900 and .[-1].incomplete > 0' "$OUT"
    # If the filter shows a call by its arguments, the call does not wait. If the rate drops the call, its result is
    # dropped, too.
    traced --rate 100 --json 'work:one/1 -> return where size < 1kB or dur > 60min' -- 'work:loop(5000)'
    assert_success
    assert_account 10000
    run -0 jq -e '.lost.rate > 0 and .incomplete == 0 and .filtered == 0 and .shown > 100' <<<"$(tail -n 1 "$OUT")"
    # The result is dropped even if the rate has room again when the call returns.
    traced --rate 1 --json 'work:slow/1 -> return where size < 1kB or dur > 60min' -- 'work:slow(0), work:slow(0), work:slow(0), work:slow(2500)'
    assert_success
    assert_account 8
    run -0 jq -e '.lost.rate > 0 and .lost.rate % 2 == 0 and .incomplete == 0' <<<"$(tail -n 1 "$OUT")"
}

@test "calls that never return are hidden and counted as incomplete" {
    traced --json 'work:slow/1 | work:one/1 -> return where dur < 1min' -- 'Ps = [spawn(work, slow, [100000000]) || _ <- lists:seq(1, 50)],
        (fun Go() -> case [P || P <- Ps, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> erlang:yield(), Go() end end)(),
        [begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Ps], work:loop(100)'
    assert_success
    assert_equal "$(counts)" '250 200 50 50'
    # The stacks of killed processes must become free for others: the node has two thousand.
    traced --json 'work:slow/1 | work:raise/2 -> return where class == error' -- 'lists:foreach(fun(_) ->
        Ps = [spawn(work, slow, [100000000]) || _ <- lists:seq(1, 500)],
        (fun Go() -> case [P || P <- Ps, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> erlang:yield(), Go() end end)(),
        [begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Ps] end, lists:seq(1, 8)), work:caught(error, late)'
    assert_success
    assert_equal "$(counts)" '4002 2 4000 4000'
}

# A stress: six thousand processes.
# bats test_tags=long
@test "etrace filters the calls that find no room on the node" {
    local workload='work:fac(3000), work:outer(2000), work:fac(10)'
    same_by_both "$workload" --rate 0 'work:fac/1 | work:deep/1 -> return where class == error'
    assert_equal "$(counts)" '10026 4002 6024 0'
    same_by_both "$workload" --rate 0 'work:fac/1 -> return where dur >= 0ns'
    assert_equal "$(counts)" '6024 6024 0 0'
    # More processes have an open call at the same time than the node has stacks.
    same_by_both 'Self = self(), Ps = [spawn(fun() -> receive go -> catch work:deep(1), Self ! done end end) || _ <- lists:seq(1, 3000)],
        Qs = [spawn(work, slow, [100000000]) || _ <- lists:seq(1, 3000)],
        (fun Go() -> case [P || P <- Qs, process_info(P, current_function) =/= {current_function, {work, slow, 1}}] of [] -> ok; _ -> erlang:yield(), Go() end end)(),
        [begin P ! go, receive done -> ok end end || P <- Ps],
        [begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- Qs]' \
        --rate 0 'work:slow/1 | work:deep/1 -> return where class == error'
    assert_equal "$(counts)" '15000 12000 3000 3000'
}

@test "calls of processes that migrate between threads come with their results" {
    traced --json --rate 0 'work:raise/2 | work:outer/1 | work:deep/1 -> return where class == throw' -- 'Ps = [spawn_monitor(fun() ->
        [begin catch work:outer(3), erlang:yield(), catch work:raise(throw, {seen, N, list_to_atom([$a + N rem 20])}), erlang:yield() end || N <- lists:seq(1, 200)] end)
            || _ <- lists:seq(1, 20)], [receive {_, R, _, _, _} -> ok end || {_, R} <- Ps]'
    assert_success
    assert_equal "$(counts)" '48000 8000 40000 0'
    # Each call comes directly before its own exception.
    run -0 jq -n -e '[inputs | select(.type == "call" or .type == "exception")] | [range(0; length; 2) as $i | [.[$i], .[$i + 1]]]
        | all(.[0].type == "call" and .[1].type == "exception" and .[0].pid == .[1].pid and .[0].args[1] == .[1].reason)' "$OUT"
}

# bats test_tags=long
@test "the node sends every call if the output or another expression needs more than the filter" {
    local view
    for view in '--as tree' '--as csv --fields mfa,depth' '--format {mfa}{depth}' "-o $OUT.etr" '--as folded'; do
        # shellcheck disable=SC2086
        traced $view --rate 10 'work:one/1 -> return where dur > 1min' -- 'work:loop(2000)'
        assert_success
        assert_regex "$(totals)" ' · [0-9]+ lost \(rate\)'
    done
    for view in 'work:one/1 -> return_trace() where dur > 1min' 'work:one(N) when N > 5; (_) -> silent(false) where dur > 1min' 'work:one/1 where dur > 1min or element(1, ret) == 0'; do
        traced --rate 10 "$view" -- 'work:loop(2000)'
        assert_success
        assert_regex "$(totals)" ' · [0-9]+ lost \(rate\)'
    done
    traced --rate 10 'work:one/1 -> return where dur > 1min' 'work:two/2 -> return' -- 'work:loop(2000)'
    assert_regex "$(totals)" ' · [0-9]+ lost \(rate\)'
    for view in '--as csv' '--fields time,mfa,dur' '--format {mfa}'; do
        # shellcheck disable=SC2086
        traced $view --rate 10 'work:one/1 -> return where dur > 1min' -- 'work:loop(2000)'
        assert_success
        assert_equal "$(totals)" '0 events · 4000 filtered'
    done
}

@test "a filter by size decides at the call if it can, and otherwise at the result" {
    local workload='[work:pair(x, lists:duplicate(N, 1000)) || N <- [1, 300, 2, 300, 300]], [work:blob(N) || N <- [16, 900, 900]]'
    same_by_both "$workload" 'work:pair/2 | work:blob/1 -> return where dur > 1min or size > 500'
    assert_equal "$(counts)" '16 10 6 0'
    same_by_both "$workload" 'work:pair/2 | work:blob/1 -> return where size > 500'
    traced --rate 10 'work:one/1 -> return where size > 500' -- 'work:loop(2000)'
    assert_success
    assert_equal "$(totals)" '0 events · 4000 filtered'
}
