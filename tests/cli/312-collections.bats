#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests garbage collection events: they match those of the VM's own tracer, with pause and reclaimed words. Two sessions
# that trace garbage collection crash the VM, so etrace must never trace it together with another session.

load ../lib/assert
load ../lib/live

setup_file() { live_share collections; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    node_eval "$NODE" '[begin R = monitor(process, P), P ! done, receive {_, R, _, _, _} -> ok end end || P <- [whereis(rival)], is_pid(P)]' >/dev/null
    live_teardown
}

# heap N: starts a process that waits for `go`, and then does the same work each time. Sets PID.
heap() { PID=$(node_eval "$NODE" "work:heap($1)"); }
collected() { # waits until the process has done its work and waits for the next message
    on_node "(fun F() -> {_, N} = process_info(list_to_pid(\"$PID\"), message_queue_len),
        {_, W} = process_info(list_to_pid(\"$PID\"), status), case {N, W} of {0, waiting} -> ok; _ -> receive after 5 -> F() end end end)()"
}
run_it() {
    on_node "list_to_pid(\"$PID\") ! go"
    collected
}

# bats test_tags=each
@test "collections of a process equal those of the VM's own tracer, number by number" {
    # The two tracers run one after the other, because two at once would crash the node.
    heap 120
    on_node "register(rival, spawn(fun() -> P = plain:events(#{procs => [list_to_pid(\"$PID\")], flags => [garbage_collection]}),
        receive done -> plain:stop(P, \"$BATS_TEST_TMPDIR/plain\") end end))"
    until_true 30 rival_traces
    run_it
    on_node "R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> list_to_pid(\"$PID\") ! stop end"
    heap 120
    trace --json --rate 0 -P "$PID" @gc
    run_it
    trace_end
    on_node "list_to_pid(\"$PID\") ! stop"
    assert_success
    cut -d ' ' -f 2- "$BATS_TEST_TMPDIR/plain" >"$BATS_TEST_TMPDIR/expected"
    events_of "$OUT" | cut -d ' ' -f 2- >"$BATS_TEST_TMPDIR/seen"
    assert [ "$(grep -c '^gc_major_end' "$BATS_TEST_TMPDIR/seen")" -ge 10 ]
    grep -q '^gc_minor_start' "$BATS_TEST_TMPDIR/seen"
    diff "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/seen"
    assert_account "$(wc -l <"$BATS_TEST_TMPDIR/seen")"
}
rival_traces() { [[ $(node_eval "$NODE" "trace:session_info(list_to_pid(\"$PID\"))") == *plain* ]]; }

@test "the end of a collection has the pause and the reclaimed words" {
    heap 60
    trace --json -P "$PID" @gc
    run_it
    trace_end
    assert_success
    # Each end has a pause, equal to the time since its start within the precision of jq's numbers.
    jq -es '[.[] | select(.pid)] | . as $all | [range(length) | select($all[.].type | endswith("_end"))] | length > 5 and
        all(.[]; $all[.] as $e | $all[. - 1] as $b | ($b.type | endswith("_start")) and
            ($e.dur_us * 1000 - ($e.mono_ns - $b.mono_ns) | fabs) < 200 and $e.reclaimed == $e.info.wordsize)' "$OUT"
    run jq -r 'select(.dur_us and (.type | endswith("_start")))' "$OUT"
    assert_output ''
    on_node "list_to_pid(\"$PID\") ! stop"
    heap 60
    trace -P "$PID" '@gc_major_end where reclaimed > 0 and dur > 0ns'
    run_it
    trace_end
    on_node "list_to_pid(\"$PID\") ! stop"
    assert_success
    assert [ "${#lines[@]}" -ge 3 ]
    assert_line -n 0 --regexp '^[0-9:.]+ <[0-9.]+> gc_major_end reclaimed [1-9][0-9]* words, heap [0-9]+/[0-9]+, old [0-9]+/[0-9]+, stack [0-9]+ [0-9.]+(ns|us|ms|s)$'
    # --limit counts only the ends. etrace also traces the starts, which it needs for the pauses.
    heap 60
    trace --json --limit 2 -P "$PID" @gc_major_end
    run_it
    trace_wait
    on_node "list_to_pid(\"$PID\") ! stop"
    assert_success
    assert_equal "$(jq -r 'select(.pid) | "\(.type) \(.dur_us > 0)"' "$OUT" | sort | uniq -c | xargs)" '2 gc_major_end true'
    assert_account any
}

@test "a filter that hides every collection still accounts for all of them" {
    heap 30
    trace --json -P "$PID" '@gc where dur > 3600s'
    run_it
    trace_end
    on_node "list_to_pid(\"$PID\") ! stop"
    assert_success
    assert_account any
    assert_equal "$(json_of summary .shown)" 0
    assert [ "$(json_of summary .filtered)" -gt 10 ]
}

# bats test_tags=each
@test "gc_max_heap_size reports a heap that exceeds its limit" {
    trace --json -P w --inherit spawn @gc_max_heap_size
    on_node 'work:ask(w, fun() ->
        {P, R} = spawn_opt(fun() -> lists:seq(1, 100000) end, [monitor, {max_heap_size, #{size => 5000, kill => true, error_logger => false}}]),
        receive {_, R, _, P, _} -> ok end end)'
    trace_end
    assert_success
    assert_equal "$(json_of gc_max_heap_size '.info | has("heap_size")')" true
    assert_account 1
}

rival() { # BODY: starts a process that traces with its own session S until it receives `done`
    on_node "Me = self(), register(rival, spawn(fun() -> S = trace:session_create(rival, self(), []), $1, Me ! traces,
        F = fun F() -> receive done -> S; _ -> F() end end, F() end)), receive traces -> ok end"
}
refused() { # [ARG...]: the default is -P w @gc
    (($#)) || set -- -P w @gc
    run timeout 30 "$ETRACE_BIN" -n "$NODE" "$@"
    assert_failure 3
    assert_line -n 0 'etrace: another session traces garbage collection on the node, and two such sessions would crash it'
    assert_line -n 1 'hint: --unsafe traces it anyway'
}

# bats test_tags=each
@test "@gc is refused while another session traces garbage collection" {
    rival 'trace:process(S, whereis(w), true, [garbage_collection])'
    refused
}

# bats test_tags=each
@test "@gc is refused while another session traces garbage collection of new processes" {
    rival 'trace:process(S, new, true, [garbage_collection])'
    refused
}

# bats test_tags=each
@test "@gc is refused while legacy tracing traces garbage collection" {
    rival 'erlang:trace(whereis(w), true, [garbage_collection])'
    refused
    on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> ok end, erlang:trace(all, false, [all])'
    rival 'erlang:trace(new_processes, true, [garbage_collection])'
    refused
    on_node 'erlang:trace(all, false, [all])'
}

# bats test_tags=each
@test "etrace stops its own @gc and reports it when another session begins later" {
    on_node 'work:worker(idle)'
    trace --json -P w @gc work:one/1
    rival 'trace:process(S, whereis(idle), true, [garbage_collection])'
    until_true 30 grep -q 'guard garbage_collection' "$ERR"
    on_node 'work:ask(w, fun() -> work:one(before), garbage_collect(), work:one(behind) end)'
    assert_equal "$(node_eval "$NODE" 'lists:append([[F || F = garbage_collection <- Fs] || S <- trace:session_info(whereis(w)), {flags, Fs} <- [trace:info(S, whereis(w), flags)]])')" '[]'
    trace_end
    on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> work:stop(idle) end'
    assert_success
    # The flag was cleared, so the forced collection between the two calls is not an event.
    assert_equal "$(jq -r 'select(.name == "w") | .args[0] // .type' "$OUT" | sed -n '/before/,$p' | xargs)" 'before behind'
}

ways=("work:one/1 -> enable(garbage_collection)" "work:one/1 -> enable(all)" "work:one(X) -> enable(X)" "work:one/1 -> trace([], [all])"
    "work:one(X) -> trace([], [X])" "work:one/1 -> trace(self(), [], [garbage_collection])"
    "ms work:one/1 [{['\$1'],[],[{message,{{{enable_trace,'\$1',garbage_collection}}}}]}]" "ms send [{'_',[],[{enable_trace,garbage_collection}]}]" '@gc inside work:one/1')

# Runs on a node of its own, because two sessions with the flag crash the node. No action runs before etrace refuses it.
@test "every way to switch on garbage collection events is refused while another tracer has them" {
    local way other tried=("${ways[@]}")
    live_own ways
    for other in 'S = trace:session_create(rival, self(), []), trace:process(S, whereis(w), true, [garbage_collection])' \
        'S = [], erlang:trace(whereis(w), true, [garbage_collection])' \
        'S = [], dbg:tracer(process, {fun(_, A) -> A end, []}), dbg:p(whereis(w), [garbage_collection])'; do
        on_node "Me = self(), register(rival, spawn(fun() -> $other, Me ! traces, F = fun F() -> receive done -> S; _ -> F() end end, F() end)), receive traces -> ok end"
        for way in "${tried[@]}"; do refused "$way"; done
        if [[ ${#tried[@]} -gt 1 ]]; then
            refused --inherit spawn -P new @gc
            refused --inherit link -P w @gc
            # The repl refuses the probe and keeps the one it has.
            run timeout 30 "$ETRACE_BIN" repl -n "$NODE" < <(printf '%s\n' 'work:two/2' "${ways[0]}")
            assert_line --partial 'two such sessions would crash it'
            assert_equal "$(grep -c '1 probe · 1 function' <<<"$output")" 2
            refused --fallback "${ways[0]}"
            refused "${ways[0]}" --dry-run
        fi
        on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> dbg:stop(), erlang:trace(all, false, [all]) end'
        # All ways meet the same check, so in the core the second and the third tracer meet one of them.
        [[ ${ETRACE_ALL:-} ]] || tried=("${ways[0]}")
    done
    # The action of the first etrace has not run yet, so the flag is set on no process. Others are refused nevertheless.
    trace --json "${ways[0]}"
    for way in "${tried[@]}" @gc; do refused "$way"; done
    on_node 'work:ask(w, fun() -> work:one(1), garbage_collect() end)'
    refused @gc
    trace_end
    assert_success
    assert [ "$(json_of call .pid | wc -l)" -ge 1 ]
    trace --json -P w @gc
    trace_end
    assert_success
}

gc_flags() { node_eval "$NODE" 'lists:append([[F || F = garbage_collection <- Fs] || S <- trace:session_info(whereis(w)), {flags, Fs} <- [trace:info(S, whereis(w), flags)]])'; }

# bats test_tags=each
@test "etrace clears the flag of an action when another session begins, and the action no longer sets it" {
    on_node 'code:ensure_loaded(loops)'
    live_snapshot
    on_node 'work:worker(idle)'
    trace --json -P w 'loops:work/1 -> enable(garbage_collection), caller'
    on_node 'work:ask(w, fun() -> loops:work(1) end)'
    until_true 30 eval '[[ $(gc_flags) == "[garbage_collection]" ]]'
    rival 'trace:process(S, whereis(idle), true, [garbage_collection])'
    until_true 30 grep -q 'guard garbage_collection' "$ERR"
    assert_equal "$(gc_flags)" '[]'
    on_node 'work:ask(w, fun() -> loops:work(2) end)'
    assert_equal "$(gc_flags)" '[]'
    # Loading the module again arms its functions again, but must not restore the action's flag.
    on_node 'code:purge(loops), {module, loops} = code:load_file(loops), code:purge(loops)'
    again() { on_node 'work:ask(w, fun() -> loops:work(3) end)'; json_of call '.args[0]' | grep -q 3; }
    until_true 30 again
    assert_equal "$(gc_flags)" '[]'
    trace_end
    on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> work:stop(idle) end'
    assert_success
    assert_equal "$(json_of call '.args[0]' | uniq | xargs)" '1 2 3'
}

# bats test_tags=each
@test "@gc is accepted while another session traces other events" {
    rival 'trace:process(S, all, true, [procs])'
    trace --json -P w @gc
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
    trace_end
    assert_success
    assert [ "$(json_of gc_major_end .pid | wc -l)" -ge 1 ]
}

@test "--unsafe traces garbage collection beside another session" {
    # Each session traces another process, so that the node does not crash.
    on_node 'work:worker(idle)'
    rival 'trace:process(S, whereis(idle), true, [garbage_collection])'
    trace --json --unsafe -P w @gc
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
    trace_end
    on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> work:stop(idle) end'
    assert_success
    assert [ "$(json_of gc_major_end .pid | wc -l)" -ge 1 ]
}
