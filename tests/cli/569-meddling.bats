#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Other processes on the node disturb etrace's parts while they work: they fill a mailbox, destroy sessions that are
# being armed, or clear trace flags and patterns.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin meddling; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    on_node '[exit(P, kill) || P <- [whereis(destroyer)], is_pid(P)]' || true
    live_teardown
}

destroyed='somebody on the node has destroyed the trace session'

@test "the janitor cleans up although its mailbox is flooded" {
    trace --json work:one/1
    # The janitor is registered under this name. The messages exceed its maximum heap, and it takes a while to read
    # them all.
    on_node '[J] = control:companion(janitor), erlang:suspend_process(J),
        [J ! {flood, lists:seq(1, 100)} || _ <- lists:seq(1, 20000)], erlang:resume_process(J)'
    on_node 'work:loop(5)'
    trace_end
    assert_success
    assert_account 5
    assert_clean --atoms 300 "$BEFORE" "$NODE" 60
}

@test "forged messages to every process of the companion do not disturb the trace" {
    trace --json work:one/1
    on_node 'work:loop(2)'
    on_node 'Ours = control:companion(all),
        true = length(Ours) >= 5,
        R = make_ref(),
        [P ! M || P <- Ours, M <- [bad, [], {names, x, [bad]}, {names, R, bad, 1}, {names, R, R, [bad]}, {names, R, R, bad, 1}, {others, bad},
            {others, x}, {others, R, bad}, {others, R, [bad]}, others, {timeout, R, {lease, 0}}, {timeout, R, check}, {timeout, R, trace_delivered},
            {done, R, bad}, {memory, R, bad}, {system, P, bad, bad, bad}, {pull, bad, 0}, {request, bad, bad}, {request, 7, bad}, {retry, bad, bad},
            {ask, bad, bad}, {trace_delivered, bad, bad}, {nodedown, bad, bad}, {watch, R, bad}, owing, {'"'EXIT'"', self(), bad}]]'
    on_node 'work:loop(3)'
    # If a forged message started a timer of the lease, each timer would start the next one.
    pause 1
    on_node 'work:loop(1)'
    trace_end
    assert_success
    assert_account 6
    refute_regex "$(node_log "$NODE")" 'etrace'
}

@test "the node is clean after its code server or kernel stops, and new clients are refused" {
    local stop
    # The library stays mapped until the old code is purged. The list of loaded modules does not include old code.
    left() {
        node_eval "$NODE" '{[], [_]} = {control:companion_modules(), trace:session_info(all)}' >/dev/null 2>&1 &&
            ! grep -q etrace- "/proc/$(<"$(node_dir "$NODE")/pid")/maps"
    }
    for stop in 'supervisor:terminate_child(kernel_sup, code_server)' 'spawn(fun() -> application:stop(kernel) end)' \
        'supervisor:terminate_child(kernel_sup, code_server), [exit(P, kill) || P <- control:companion(janitor)]' \
        'supervisor:terminate_child(kernel_sup, code_server), [exit(P, kill) || J <- control:companion(janitor), {_, L} <- [process_info(J, monitored_by)], P <- [J | L]]'; do
        node_start meddled
        node_eval "$NODE" 'work:worker(w), work:warm()' >/dev/null
        trace --json 'work:one/1 -> return'
        on_node 'work:flood(1)'
        until_true 30 grep -q '"type":"return"' "$OUT"
        on_node "$stop"
        if [[ $stop == *code_server\) ]]; then
            trace_end
            assert_success
            run --separate-stderr timeout 60 "$ETRACE_BIN" -n "$NODE" --for 1s work:one/1
            assert_failure 3
            assert_regex "$stderr" 'does not load the companion'
        else
            trace_wait
            assert_equal "$status" 1
        fi
        until_true 8 left ||
            fail "$(node_eval "$NODE" 'control:companion_modules()') $(grep etrace- "/proc/$(<"$(node_dir "$NODE")/pid")/maps")"
        refute_regex "$(node_log "$NODE")" 'etrace'
        node_stop "$NODE"
    done
}

@test "etrace reports that its session was destroyed while arming or counting" {
    # The destroyer runs at several intervals, so that it interrupts arming at different steps.
    for pause in 0 1 3; do
        on_node "spawn(fun() -> register(destroyer, self()), (fun F() -> [catch trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)],
            receive after $pause -> F() end end)() end)"
        for how in 'trace work:one/1 send(_,_)' 'trace lists:_/_' 'top work:_'; do
            read -ra words <<<"$how"
            status=0
            timeout 60 "$ETRACE_BIN" "${words[0]}" -n "$NODE" --for 30s "${words[@]:1}" </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
            assert_equal "$status" 1
            grep -q "^etrace: $NODE: $destroyed\$" "$ERR" || fail "$how: $(<"$ERR")"
        done
        on_node 'R = monitor(process, destroyer), exit(whereis(destroyer), kill), receive {_, R, _, _, _} -> ok end'
    done
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "etrace reports lost system events and continues to trace calls" {
    [[ $ETRACE_OTP -ge 28 ]] || return 0
    told() { [[ $(json_of notice '.tag + " " + .info') == 'guard system' ]]; }
    for how in 'trace:session_destroy(S)' 'trace:system(S, long_schedule, false)'; do
        trace --json '@long_schedule(5000)' work:one/1
        on_node "Of = fun(S) -> trace:info(S, system, all) end, [_] = [$how || {etrace, _} = S <- trace:session_info(all), {_, [_ | _]} <- [Of(S)]]"
        until_true 30 told || fail "etrace printed no message: $(<"$ERR")"
        on_node 'work:loop(5)'
        trace_end
        assert_success
        assert_account 5
    done
}

# etrace reports when it arms a reloaded module again. The report proves that a self-check has begun after the reload
# and has looked at everything.
fresh_load() {
    local dir
    dir=$(node_dir "$NODE")
    printf -- '-module(fresh).\n-export([f/1]).\nf(X) -> X.\n' >"$dir/fresh.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/fresh.erl"
    on_node "{module, fresh} = code:load_abs(\"$dir/fresh\"), persistent_term:put(fresh, \"$dir/fresh\")"
}
fresh_unload() { on_node 'persistent_term:erase(fresh), code:purge(fresh), code:delete(fresh), code:purge(fresh)'; }
checked() {
    local had
    had=$(grep -c 'rearmed fresh' "$ERR" || true)
    rearmed() { [[ $(grep -c 'rearmed fresh' "$ERR") -gt $had ]]; }
    on_node 'code:purge(fresh), {module, fresh} = code:load_abs(persistent_term:get(fresh))'
    until_true 60 rearmed || fail "etrace ran no self-check: $(<"$ERR")"
}
take_off() { on_node "[S] = [S || {etrace, _} = S <- trace:session_info(all)], $1"; }
untraced() { json_of notice 'select(.tag == "untraced").info' | sort | tr '\n' ' '; }

@test "etrace reports once each trace flag beside functions that another process removes" {
    fresh_load
    trace --json --rate 0 fresh:f/1 'send(_, {never, _})' 'recv({never, _})' @open @seq_trace
    checked
    take_off 'trace:process(S, all, false, [send])'
    checked
    assert_equal "$(untraced)" 'processes '
    take_off 'trace:process(S, all, false, [all]), trace:port(S, all, false, [ports]), trace:send(S, false, []), trace:recv(S, false, []),
        erlang:system_flag(sequential_tracer, false)'
    checked
    assert_equal "$(untraced)" 'ports processes receives sends seq_trace '
    trace_end
    assert_success
    assert_equal "$(untraced)" 'ports processes receives sends seq_trace '
    assert_regex "$talk" 'etrace: untraced seq_trace'
    # If no self-check has run since, the last check finds the missing flags at the end.
    local of
    for of in new existing; do
        trace --json -P $of fresh:f/1
        take_off "trace:process(S, $of, false, [call])"
        trace_end
        assert_success
        assert_equal "$(untraced)" 'processes '
    done
    fresh_unload
}

@test "etrace reports flags removed from chosen processes, but not those that its own expressions change" {
    fresh_load
    local mortal
    mortal=$(node_eval "$NODE" 'spawn(fun() -> register(destroyer, self()), receive never -> ok end end)')
    trace --json -P w -P "$mortal" fresh:f/1
    on_node 'R = monitor(process, destroyer), exit(whereis(destroyer), kill), receive {_, R, _, _, _} -> ok end'
    checked
    assert_equal "$(untraced)" ''
    take_off 'trace:process(S, whereis(w), false, [call])'
    checked
    assert_equal "$(untraced)" 'processes '
    trace_end
    assert_success
    trace --fallback --json -P w fresh:f/1
    take_off 'trace:process(S, whereis(w), false, [call])'
    checked
    assert_equal "$(untraced)" 'processes '
    trace_end
    assert_success
    trace --json -P w 'fresh:f/1 -> disable(call)'
    on_node 'work:ask(w, fun() -> fresh:f(1) end)'
    checked
    assert_equal "$(node_eval "$NODE" '[trace:info(S, whereis(w), flags) || {etrace, _} = S <- trace:session_info(all)]')" '[{flags,[]}]'
    trace_end
    assert_success
    assert_equal "$(untraced)" ''
    trace --json -P w --silent --inherit first-spawn 'fresh:f/1 -> silent(false)'
    on_node 'work:ask(w, fun() -> spawn(fun() -> ok end), fresh:f(1) end)'
    checked
    assert_equal "$(node_eval "$NODE" '[trace:info(S, whereis(w), flags) || {etrace, _} = S <- trace:session_info(all)]')" '[{flags,[call]}]'
    trace_end
    assert_success
    assert_equal "$(untraced)" ''
    fresh_unload
}

@test "etrace reports that its worker was killed during a slow request" {
    local dir
    dir=$(node_dir "$NODE")
    # This registry of names kills its caller, which is the process for slow requests.
    printf -- '-module(registry).\n-export([whereis_name/1]).\nwhereis_name(_) -> exit(self(), kill), receive never -> ok end.\n' >"$dir/registry.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/registry.erl"
    on_node "{module, registry} = code:load_abs(\"$dir/registry\")"
    local command
    for command in trace top; do
        run --separate-stderr timeout 60 "$ETRACE_BIN" $command -n "$NODE" --for 30s -P '{via, registry, name}' work:one/1 </dev/null 3>&-
        assert_failure 4
        assert_regex "$stderr" "^etrace: the worker process on the node was killed, by somebody or for using too much memory"
    done
    on_node 'code:purge(registry), code:delete(registry), code:purge(registry)'
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "the tracer without the NIF counts forged trace messages as lost and continues" {
    trace --fallback --json work:one/1
    on_node '[O] = control:companion(owner),
        [O ! E || E <- [{trace_ts, self(), call, {work, one, [1]}, never}, {trace_ts, self(), call, {work, one, [1 | 2]}, erlang:monotonic_time()},
            {trace_ts, self(), call, nothing, erlang:monotonic_time()}, {trace_ts, self(), nothing, nothing, erlang:monotonic_time()},
            {trace_ts, here, spawn, {}, {}, [], erlang:monotonic_time()}, {trace_ts, 1, 2, 3, 4, 5, 6, 7}]]'
    on_node 'work:loop(5)'
    shown() { [[ $(json_of call .f | wc -l) -eq 5 ]]; }
    until_true 30 shown
    trace_end
    assert_success
    assert_equal "$(json_of summary '[.seen, .shown, .lost.guard, .missing] | tostring')" '[11,5,6,0]'
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}
