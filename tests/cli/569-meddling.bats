#!/usr/bin/env bats
# What others on the node do to what is ours while it works: a mailbox that is filled, sessions that are destroyed while they
# are armed.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert
load ../lib/live

setup_file() { live_begin meddling; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    on_node '[exit(P, kill) || P <- [whereis(destroyer)], is_pid(P)]' || true
    live_teardown
}

destroyed='somebody on the node has destroyed the trace session'

@test "a mailbox that somebody fills: the janitor gets to its end, and nothing stays" {
    trace --json work:one/1
    # The janitor has that name; what it is sent is more than its heap may be. It looks at each, which takes its time.
    on_node '[J] = [P || M <- registered(), lists:prefix("etrace_", atom_to_list(M)), P <- [whereis(M)]], erlang:suspend_process(J),
        [J ! {flood, lists:seq(1, 100)} || _ <- lists:seq(1, 20000)], erlang:resume_process(J)'
    on_node 'work:loop(5)'
    trace_end
    assert_success
    assert_account 5
    assert_clean --atoms 300 "$BEFORE" "$NODE" 60
}

@test "a session that is destroyed while it is armed, or counts: that is what is said, and not what the VM refuses of it" {
    # At once, and again and again, whatever step it is at.
    for pause in 0 1 3; do
        on_node "spawn(fun() -> register(destroyer, self()), (fun F() -> [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)],
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

@test "the session of system events is destroyed: said, and the rest goes on" {
    [[ $ETRACE_OTP -ge 28 ]] || return 0
    trace --json '@long_schedule(5000)' work:one/1
    on_node 'Of = fun(S) -> trace:info(S, system, all) end, [_] = [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all), {_, [_ | _]} <- [Of(S)]]'
    told() { [[ $(json_of notice '.tag + " " + .info') == 'guard system' ]]; }
    until_true 30 told
    on_node 'work:loop(5)'
    trace_end
    assert_success
    assert_account 5
}

@test "the tracer without the NIF: what somebody else sends it as if it were the VM is counted, and the rest goes on" {
    trace --fallback --json work:one/1
    on_node '[O] = [P || P <- processes(), {initial_call, {M, owner, _}} <- [process_info(P, initial_call)], lists:prefix("etrace_", atom_to_list(M))],
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
