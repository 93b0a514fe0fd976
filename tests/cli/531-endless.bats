#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Functions that call themselves in loops: the node stops waiting for their results, and everything else continues. The suite
# needs only the module loops on the node; no test asserts a time.

load ../lib/assert
load ../lib/live

setup_file() { live_begin endless; }
teardown_file() { live_end; }
setup() {
    live_setup
    on_node 'code:ensure_loaded(loops), code:ensure_loaded(loops_too)'
    live_snapshot
}
teardown() {
    on_node '[loops:stop(N) || N <- [loop, many, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10], is_pid(whereis(N))]' || true
    live_teardown
}

said() { grep -q "$1" "$ERR"; }
# The buffers of the node hold the events of 20,000 nested calls. Waits until that many results are shown, so that more
# calls lose nothing even if etrace is slow.
returned() { until_true 60 many_results "$1"; }
many_results() { [[ $(grep -c '"type":"return"' "$OUT") -ge $1 ]]; }
loop() { on_node "loops:run(loop, fun() -> $1 end)"; }
words() { node_eval "$NODE" "loops:words(${1:-loop})"; }
# A process keeps at most a hundred pending results of a function, even on a busy node. Each takes four words.
few_frames() { # [NAME [FUNCTIONS]]
    local words
    words=$(words "${1:-loop}")
    [[ $words -lt $((460 * ${2:-1})) ]] || fail "the stack has $words words"
}

@test "etrace reports an endless loop once, keeps its stack short and still shows its calls" {
    local before
    loop 'loops:slow(0)'
    trace --json 'loops:_ -> return'
    until_true 30 said 'loops:slow/1 calls itself in a loop: its calls are traced without results from now on' || fail "etrace printed no message: $(<"$ERR")"
    few_frames
    before=$(words)
    until_true 30 eval '[[ $(grep -c "\"f\":\"slow\"" "$OUT") -ge 400 ]]'
    assert_equal "$(words)" "$before"
    trace_end
    assert_success
    assert_account any
    run jq -c 'select(.type == "notice") | [.tag, .m, .f, .a]' "$OUT"
    assert_output '["endless","loops","slow",1]'
    # Every call that returns has its result, before and after the switch.
    jq -s -e '([.[] | select(.f == "work" and .type == "call")] | length) as $calls | ([.[] | select(.f == "work" and .type == "return" and .dur_us)] | length) as $results
        | $calls - $results <= 1 and $results > 300' "$OUT"
    tail -n 1 "$OUT" | jq -e '.incomplete <= 1 and (.lost.guard // 0) == 0'
}

@test "etrace detects loops without a pause: one function, two functions, and above a deep stack" {
    local at
    for at in 'tail loops:tail(0)' 'one loops:one(0)' 'tail loops:below(200,fun()->loops:tail(0)end)'; do
        loop "${at#* }"
        trace -c --rate 0 "loops:_ -> return"
        until_true 30 said "loops:${at%% *}/1 calls itself in a loop" || fail "etrace printed no message about $at: $(<"$ERR")"
        [[ $at != one* ]] || until_true 30 said 'loops:two/1 calls itself in a loop' || fail "etrace printed no message about two: $(<"$ERR")"
        few_frames loop 2
        trace_end
        assert_success
        assert_regex "$output" 'functions? calls? (itself|themselves) in (a loop|loops)'
        on_node 'loops:stop(loop)'
    done
}

# calls_of FUNCTION: the calls in the printed table, and those that are reported as lost
calls_of() {
    local calls lost
    calls=$(sed -nE "s|^ *([0-9]+) .* $1\$|\1|p" "$OUT")
    lost=$(sed -nE 's|.* ([0-9]+) lost \(guard\).*|\1|p' "$ERR")
    echo $((${calls:-0} + ${lost:-0}))
}

# A counter of the VM counts the calls of a loop as soon as etrace knows it.
@test "the figures of a loop are exact: in one process, in several at once, and beside another function" {
    local turns=3000000 each
    for each in 1 4; do
        trace -c 'loops:times/1 -> return' 'loops:work/1 -> return'
        on_node "P = self(), [spawn(fun() -> loops:times($turns), 1 = loops:work(0), P ! done end) || _ <- lists:seq(1, $each)],
            [receive done -> ok end || _ <- lists:seq(1, $each)]"
        until_true 30 said 'loops:times/1 ' || fail "etrace printed no message: $(<"$ERR")"
        trace_end
        assert_success
        assert_equal "$(calls_of loops:times/1)" "$((each * (turns + 1)))"
        assert_regex "$output" " $each .* loops:work/1"
    done
}

# traced_of M:F/A: {traced, How, whether a counter counts its calls}, in the session of etrace
traced_of() {
    node_eval "$NODE" "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, How} = trace:info(S, $1, traced),
        {call_count, N} = trace:info(S, $1, call_count), {traced, How, is_integer(N)}"
}

@test "the self-check accepts a loop that is only counted, and traces its module again after a reload" {
    trace -c 'loops:tail/1 -> return' 'loops_too:hop/2'
    loop 'loops:tail(0)'
    until_true 30 eval '[[ $(traced_of "{loops, tail, 1}") == "{traced,false,true}" ]]' || fail "$(traced_of '{loops, tail, 1}')"
    on_node 'code:purge(loops_too), {module, loops_too} = code:load_file(loops_too)'
    until_true 30 said 'rearmed loops_too' || fail "$(<"$ERR")"
    assert_equal "$(traced_of '{loops, tail, 1}')" '{traced,false,true}'
    on_node 'loops:stop(loop), code:purge(loops), {module, loops} = code:load_file(loops)'
    until_true 30 said 'rearmed loops$' || fail "$(<"$ERR")"
    assert_equal "$(traced_of '{loops, tail, 1}')" '{traced,local,false}'
    trace_end
    assert_success
    assert_equal "$(grep -c 'rearmed loops$' "$ERR")" 1
    on_node 'code:purge(loops), code:purge(loops_too)'
}

@test "etrace detects loops through apply and through two modules" {
    local at
    for at in 'loops:hop/2 loops:hop(apply,0)' 'loops_too:hop/2 loops:hop(module,0)' 'loops_too:pong/1 loops:ping(0)'; do
        loop "${at#* }"
        trace -c --rate 0 'loops:_ -> return' 'loops_too:_ -> return'
        until_true 30 said "${at%% *} calls itself in a loop" || fail "etrace printed no message about $at: $(<"$ERR")"
        [[ $at != *pong* ]] || until_true 30 said 'loops:ping/1 calls itself in a loop' || fail "etrace printed no message about ping: $(<"$ERR")"
        few_frames loop 2
        trace_end
        assert_success
        on_node 'loops:stop(loop)'
    done
}

@test "another process looks at stacks after the first one was killed" {
    trace -c --rate 0 'loops:_ -> return'
    loop 'loops:tail(0)'
    on_node '[P] = control:companion(asker), exit(P, kill)'
    until_true 30 said 'loops:tail/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    few_frames loop 2 # the question of the killed process is asked again, and each question lets some calls through
    trace_end
    assert_success
}

@test "call tracing ends if nobody can look at the stack of a loop, which stays short; other events continue" {
    trace --rate 0 'loops:tail/1 -> return' '@spawn'
    on_node 'Asker = hd(control:companion(asker)),
        Self = self(), spawn(fun() -> erlang:suspend_process(Asker), register(many, self()), Self ! suspended, receive stop -> ok end end),
        receive suspended -> ok end'
    loop 'loops:tail(0)'
    until_true 60 said 'calls are no longer traced: too many calls of a function in one process have not returned' || fail "etrace printed no message: $(<"$ERR")"
    few_frames
    on_node 'spawn(fun() -> ok end), loops:stop(many), loops:stop(loop)'
    trace_end
    assert_success
    assert_regex "$(tail -n 5 "$OUT")" 'spawn'
}

@test "recursion in more processes than the table holds is no loop" {
    local many=12000 depth=12
    trace -c --rate 0 'loops:deep_at/2 -> return'
    on_node "$((many * depth)) = loops:crowd($many, $depth), 20000 = loops:deep(20000)"
    trace_end
    assert_success
    refute_regex "$talk" 'calls itself in a loop|guard|10,000'
    assert_regex "$output" "$((many * (depth + 1)))"
}

@test "recursion in ten thousand processes at once is counted exactly, and some of its calls are untimed" {
    local many=10000 depth=60 calls lost
    trace -c --rate 0 'loops:deep_at/2 -> return'
    on_node "$((many * depth)) = loops:crowd($many, $depth)"
    trace_end
    assert_success
    refute_regex "$talk" 'calls itself in a loop|no longer traced|memory'
    assert_regex "$output" 'untimed'
    calls=$(sed -nE 's|^ *([0-9]+) .* loops:deep_at/2$|\1|p' "$OUT")
    lost=$(sed -nE 's|.* ([0-9]+) lost \(guard\).*|\1|p' "$ERR")
    assert_equal "$((calls + ${lost:-0}))" "$((many * (depth + 1)))"
}

@test "the notice is true of a loop that ends: all its calls are shown, without results" {
    trace --json --rate 0 'loops:times/1 -> return'
    on_node 'done = loops:times(300), done = loops:times(10)'
    until_true 30 said 'loops:times/1 calls itself in a loop: its calls' || fail "etrace printed no message: $(<"$ERR")"
    trace_end
    assert_success
    assert_account any
    jq -s -e '([.[] | select(.type == "call")] | length) + (.[-1].lost.guard // 0) == 312 and ([.[] | select(.type == "return")] == [])
        and .[-1].filtered <= 100' "$OUT" || fail "$(tail -n 1 "$OUT")"
}

@test "etrace detects ten loops at the same time" {
    on_node '[loops:run(N, fun() -> loops:slow(0) end) || N <- [a1, a2, a3, a4, a5]], [loops:run(N, fun() -> loops:serve(0) end) || N <- [a6, a7, a8, a9, a10]]'
    trace -c --rate 0 'loops:_ -> return'
    on_node '[loops:ask(N, 200) || N <- [a6, a7, a8, a9, a10]]'
    until_true 30 said 'loops:slow/1 calls itself in a loop'
    until_true 30 said 'loops:serve/1 calls itself in a loop'
    for at in a1 a5 a6 a10; do few_frames "$at"; done
    trace_end
    assert_success
    assert_equal "$(grep -c 'calls itself in a loop: its calls' "$ERR")" 2
}

@test "many processes in one loop leave short stacks, however long the worker takes" {
    on_node '[loops:run(N, fun() -> loops:tail(0) end) || N <- [a1, a2, a3, a4, a5, a6, a7, a8]]'
    trace --json --rate 0 'loops:tail/1 -> return'
    until_true 30 said 'loops:tail/1 calls itself in a loop'
    for at in a1 a2 a3 a4 a5 a6 a7 a8; do few_frames "$at"; done
    trace_end
    assert_success
    assert_account any
}

@test "recursion is no loop: etrace shows every result of 20,000 nested calls, twice" {
    local n=20000
    [[ -z ${ETRACE_ALL:-} ]] || n=1000000
    trace --json --memory 0 --rate 0 'loops:deep/1 -> return'
    on_node "loops:deep($n)"
    returned $((n + 1))
    on_node "loops:deep($n)"
    trace_end
    assert_success
    refute_regex "$talk" 'calls itself in a loop|guard'
    tail -n 1 "$OUT" | jq -e --argjson n "$n" '.seen == 4 * ($n + 1) and (.lost.guard // 0) == 0'
}

# The first recursion is so short that etrace looks at its stack once. The second look sees the stack of another one.
@test "recursion above a short stack is no loop after the same recursion above a deep stack" {
    trace --json --rate 0 'loops:deep/1 -> return'
    on_node 'loops:below(400, fun() -> loops:deep(50) end), loops:deep(1000), ok'
    returned 1052
    trace_end
    assert_success
    refute_regex "$talk" 'calls itself in a loop|guard'
    tail -n 1 "$OUT" | jq -e '.seen == 2104 and (.lost.guard // 0) == 0'
}

# The other session keeps frames of its own for the same calls. deep/1 has a frame on the stack, too, which shows that it
# nests. turn/1 has none, so the limit applies.
@test "while another session traces the same function, every call of deep recursion is shown or counted" {
    local function theirs depth=20000 calls shown heard
    calls=$((2 * (depth + 1) + 101))
    for function in deep turn; do for theirs in "[{return_trace}] [call]" "[] [call,return_to]"; do
        # Counts the calls and results that the other session receives.
        on_node "Me = self(), register(many, spawn(fun() ->
            Count = fun Count(Calls, Results) -> receive
                {trace, _, call, _} -> Count(Calls + 1, Results);
                {trace, _, return_from, _, _} -> Count(Calls, Results + 1);
                {trace, _, return_to, _} -> Count(Calls, Results);
                {told, To} -> To ! {heard, Calls, Results}
            end end,
            S = trace:session_create(theirs, self(), []),
            trace:function(S, {loops, $function, 1}, [{'_', [], ${theirs% *}}], [local]),
            trace:process(S, all, true, ${theirs#* }),
            Me ! on,
            Count(0, 0),
            trace:session_destroy(S) end)), receive on -> ok end"
        trace --json --memory 0 --rate 0 "loops:$function/1 -> return"
        on_node "$depth = loops:$function($depth)"
        [[ $function != deep ]] || returned $((depth + 1))
        on_node "$depth = loops:$function($depth), 100 = loops:$function(100)"
        trace_end
        assert_success
        assert_account any
        refute_regex "$talk" 'calls itself in a loop'
        shown=$(grep -c '"type":"call"' "$OUT")
        if [[ $function == deep ]]; then
            assert_equal "$shown" "$calls"
        else
            assert_regex "$talk" 'too many calls of a function in one process have not returned'
            [[ $shown -gt 10000 && $shown -lt $depth ]] || fail "etrace showed $shown calls"
            assert_equal "$(json_of summary .lost.guard)" "$((calls - shown))"
        fi
        assert_equal "$(grep -c '"type":"return"' "$OUT")" "$shown"
        # Wait for the process to end: the next one takes its name.
        heard=$(node_eval "$NODE" "R = monitor(process, many), many ! {told, self()},
            receive {heard, Calls, Results} -> receive {'DOWN', R, _, _, _} -> {Calls, Results} end end")
        case $theirs in
            *return_trace*) assert_equal "$heard" "{$calls,$calls}" ;;
            *) assert_equal "$heard" "{$calls,0}" ;;
        esac
    done; done
}

# two_trace EXPR: traces EXPR twice; the files of the second etrace end in .2
two_trace() {
    trace --json --memory 0 --rate 0 "$1"
    first=$TRACER
    OUT+=.2 ERR+=.2
    trace --json --memory 0 --rate 0 "$1"
    second=$TRACER
}

@test "two etraces both show every call of recursion deeper than 10,000" {
    local depth=20000 first second
    two_trace 'loops:deep/1 -> return'
    on_node "$depth = loops:deep($depth)"
    for TRACER in "$second" "$first"; do
        trace_end
        assert_success
        assert_account any
        assert_equal "$(grep -c '"type":"call"' "$OUT")" "$((depth + 1))"
        assert_equal "$(grep -c '"type":"return"' "$OUT")" "$((depth + 1))"
        OUT=${OUT%.2} ERR=${ERR%.2}
    done
}

@test "two etraces both detect a loop, although each keeps frames on its stack" {
    local first second
    two_trace 'loops:tail/1 -> return'
    loop 'loops:tail(0)'
    for TRACER in "$second" "$first"; do
        until_true 30 said 'loops:tail/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
        OUT=${OUT%.2} ERR=${ERR%.2}
    done
    # An etrace may look a third time, if the other one changes the function between its first two looks.
    few_frames loop 4
    OUT+=.2 ERR+=.2
    for TRACER in "$second" "$first"; do
        trace_end
        assert_success
        assert_account any
        OUT=${OUT%.2} ERR=${ERR%.2}
    done
}

@test "two etraces count the same loop, each of them exactly" {
    local turns=2000000 first second
    trace -c 'loops:times/1 -> return'
    first=$TRACER
    OUT+=.2 ERR+=.2
    trace -c 'loops:times/1 -> return'
    second=$TRACER
    on_node "P = self(), [spawn(fun() -> loops:times($turns), P ! done end) || _ <- [1, 2]], [receive done -> ok end || _ <- [1, 2]]"
    for TRACER in "$second" "$first"; do
        until_true 30 said 'loops:times/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
        trace_end
        assert_success
        assert_equal "$(calls_of loops:times/1)" "$((2 * (turns + 1)))"
        OUT=${OUT%.2} ERR=${ERR%.2}
    done
}

@test "while the worker is busy, a loop collects no more frames, and its calls are counted as lost" {
    trace --json --rate 0 'loops:serve/1 -> return'
    on_node 'Self = self(), spawn(fun() -> control:worker_hold(), register(many, self()), Self ! suspended, receive stop -> ok end end),
        receive suspended -> ok end'
    loop 'loops:serve(0)'
    on_node 'loops:ask(loop, 200)'
    until_true 30 said 'loops:serve/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    on_node 'loops:ask(loop, 200)'
    few_frames
    on_node 'exit(whereis(many), kill)'
    ask_on() { on_node 'loops:ask(loop, 10)' && [[ $(grep -c '"f":"serve"' "$OUT") -ge 200 ]]; }
    until_true 30 ask_on || fail 'etrace showed no more calls'
    few_frames
    trace_end
    assert_success
    assert_account any
    tail -n 1 "$OUT" | jq -e '.lost.guard > 100'
}

@test "unreported throws, hibernation and exits leave no count that looks like a loop" {
    on_node 'loops:run(many, fun() -> loops:sleeps(0) end)'
    trace -c --rate 0 "ms loops:thrower/1 [{'_',[],[{return_trace}]}]" "ms loops:sleeps/1 [{'_',[],[{return_trace}]}]" 'loops:deep/1 -> return'
    on_node 'loops:caught(1000), loops:ask(many, 500), loops:deep(200)'
    trace_end
    assert_success
    refute_regex "$talk" 'calls itself in a loop|guard'
}

@test "20,000 processes that died inside a traced call do not hide a loop" {
    trace -c --rate 0 'loops:_ -> return'
    on_node 'loops:dead(20000)'
    loop 'loops:slow(0)'
    until_true 30 said 'loops:slow/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    few_frames
    trace_end
    assert_success
}

@test "a call that a specification does not show also counts as pending" {
    loop 'loops:tail(0)'
    trace --json --rate 0 "ms loops:tail/1 [{['_'],[],[{message,false},{return_trace}]}]"
    until_true 30 said 'loops:tail/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    few_frames
    trace_end
    assert_success
    # On a busy host the guard rejects calls until the question about the loop is answered, whether they would be shown or not.
    tail -n 1 "$OUT" | jq -e '.shown == 0 and (.lost | del(.guard)) == {} and .seen == (.lost.guard // 0)' || fail "$(tail -n 1 "$OUT")"
}

@test "etrace detects a loop if only some calls have results: by probe, by clause, by function" {
    local at
    for at in "'loops:tail(N) when N rem 2 == 0' 'loops:tail(N) when N rem 2 == 1 -> return'" \
        "'loops:tail(N) when N rem 2 == 0 -> msg(N); (N) -> return, msg({N}), caller'" "'loops:work/1' 'loops:tail/1 -> return'"; do
        loop 'loops:tail(0)'
        eval "trace --json --rate 1000 $at"
        until_true 30 said 'loops:tail/1 calls itself in a loop' || fail "etrace printed no message about $at: $(<"$ERR")"
        few_frames
        trace_end
        assert_success
        assert_account any
        run grep -c etrace_owes "$OUT"
        assert_output 0
        on_node 'loops:stop(loop)'
    done
}

@test "a condition on a result that never comes filters the call and does not lose it" {
    local as
    for as in text tree; do
        loop 'loops:slow(0)'
        trace --as "$as" -e 'dur > 500us' 'loops:slow/1 -> return'
        until_true 30 said 'loops:slow/1 calls itself in a loop' || fail "etrace --as $as printed no message: $(<"$ERR")"
        trace_end
        assert_success
        assert_regex "$talk" ' 0 events in [0-9.]+ m?s · [0-9]+ filtered'
        on_node 'loops:stop(loop)'
    done
}

@test "the views of a recording mark a function that loops" {
    loop 'loops:slow(0)'
    trace -o "$BATS_TEST_TMPDIR/x.etr" -o "$BATS_TEST_TMPDIR/x.folded" 'loops:_ -> return'
    until_true 30 said 'loops:slow/1 calls itself in a loop'
    trace_end
    assert_success
    run "$ETRACE_BIN" replay --as summary "$BATS_TEST_TMPDIR/x.etr"
    assert_success
    assert_line --partial '1 function calls itself in a loop: its later calls have no duration'
    run "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr"
    assert_line --partial 'loops:slow/1 calls itself in a loop: its calls are traced without results from now on'
    # The open calls of the loop are not nested in each other.
    run grep -c 'slow/1;loops:slow/1;.*loops:slow/1;.*loops:slow/1;' "$BATS_TEST_TMPDIR/x.folded"
    assert_output 0
}

@test "repl reports a loop once and shows results of a probe that is added later" {
    loop 'loops:slow(0)'
    repl_start -n "$NODE" --rate 0
    repl_line 'loops:slow/1 -> return'
    until_true 30 said 'loops:slow/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    repl_line 'loops:work/1 -> return'
    until_true 30 grep -q 'return loops:work' "$OUT"
    few_frames
    repl_end
    trace_wait
    assert_equal "$(grep -c 'calls itself in a loop: its calls' "$ERR")" 1
}

@test "etrace detects a loop without the NIF, also after 20,000 processes have died inside a traced call" {
    trace --fallback 'loops:waits/1 -> return' 'loops:slow/1 -> return'
    on_node '[begin loops:dead(100), timer:sleep(20) end || _ <- lists:seq(1, 201)], ok'
    loop 'loops:slow(0)'
    until_true 30 said 'loops:slow/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    few_frames loop 5
    trace_end
    assert_success
}

@test "etrace detects a loop without the NIF" {
    loop 'loops:slow(0)'
    trace --fallback 'loops:_ -> return'
    until_true 30 said 'loops:slow/1 calls itself in a loop' || fail "etrace printed no message: $(<"$ERR")"
    few_frames loop 5 # the owner hears of calls late
    trace_end
    assert_success
}
