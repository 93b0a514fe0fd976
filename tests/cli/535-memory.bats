#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The node's memory while it is traced: growth beyond the limit ends the trace with a reason and status 4, and leaves
# nothing behind.

load ../lib/assert
load ../lib/live

setup_file() { live_begin memory; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    [[ $NODE != "$LIVE_NODE" ]] || lighter || true
    live_teardown
}

# heavier N starts a process that keeps N megabytes; lighter ends it.
heavier() { on_node "Me = self(), register(heavy, spawn(fun() -> K = binary:copy(<<\"x\">>, 1024), B = [binary:copy(K, 1024) || _ <- lists:seq(1, $1)], Me ! heavy, receive stop -> B end end)), receive heavy -> ok end"; }
lighter() { on_node '[begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || N <- [heavy, loop], P <- [whereis(N)], is_pid(P)]'; }

# Waits for the first measurement of the warden, then calls heavier: growth before it does not count.
grows() {
    until_true 60 watched || fail 'the warden did not measure the memory'
    heavier "$1"
}
watched() {
    on_node '[{P, M}] = [{P, M} || P <- processes(), {_, {M, warden, 1}} <- [process_info(P, initial_call)]],
        [{_, {M, _, _}}, {_, 0}] = process_info(P, [current_function, message_queue_len])' 2>/dev/null
}

# The trace ended because of the node's memory, and every event is accounted for.
assert_grown() {
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_equal "$(grep -c "^etrace: $NODE ended the tracing: its memory has grown by [0-9]* MiB since the trace started\$" "$ERR")" 1
    assert_equal "$(grep -c '^hint: --memory BYTES raises the limit, --memory 0 removes it$' "$ERR")" 1
    assert_equal "$(jq -r 'select(.type == "notice") | .tag + " " + .info' "$OUT")" 'guard memory'
}

@test "the trace ends when the node's memory grows by more than --memory, and the node continues" {
    trace --json --memory 64MB work:one/1
    on_node 'work:loop(10)'
    grows 100
    trace_wait
    assert_grown
    assert_account 10
    on_node 'work:loop(10)'
    lighter
    assert_clean "$BEFORE" "$NODE"
    # Text output and a recording show the reason, too.
    trace --memory 64MB -o "$BATS_TEST_TMPDIR/r.etr" work:one/1
    grows 100
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    run "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/r.etr"
    assert_line '*** guard memory ***'
}

@test "the companion reads the limits of control groups from their files" {
    live_companion "$BATS_TEST_TMPDIR"
    mkdir -p "$BATS_TEST_TMPDIR/a:b"
    echo 12345 >"$BATS_TEST_TMPDIR/a:b/memory.max"
    # The path makes the companion read the test's files as those of the node's group.
    run timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$BATS_TEST_TMPDIR" -eval "M = etrace_00000000_0,
        io:format(\"~p~n\", [{M:memory_group(<<\"0::/../../..$BATS_TEST_TMPDIR/a:b\">>),
            M:memory_group(<<\"3:cpuset:/../../..$BATS_TEST_TMPDIR/a:b\">>),
            M:memory_number(<<\"max\\n\">>, <<>>)}]), halt()." </dev/null 3>&-
    assert_success
    assert_output '{12345,none,none}'
}

@test "growth before the trace, with --memory 0 or below the limit does not end the trace" {
    heavier 100
    heavy=$(node_snapshot "$NODE")
    trace --json --memory 64MB --for 2s work:one/1
    trace_wait
    assert_success
    lighter
    for most in 0 1GB; do
        trace --json --memory "$most" --for 2s work:one/1
        heavier 100
        trace_wait
        assert_success
        lighter
    done
}

@test "growing stacks of calls that never return end the trace" {
    # No process has more pending results than the limit.
    on_node 'register(loop, spawn(fun() -> [spawn_link(fun() -> work:sum(1000000000000, 0) end) || _ <- lists:seq(1, 100)], receive stop -> ok end end))'
    looping=$(node_snapshot "$NODE")
    trace --json --rate 0 --memory 8MB 'work:sum(N, _) when N rem 2 == 0' 'work:sum(N, _) when N rem 2 == 1 -> return' -e false
    trace_wait 120
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" 'ended the tracing: its memory has grown'
    # The frames stay on the stacks until their processes end.
    assert_clean --memory 100000000 "$looping" "$NODE"
    lighter
}

@test "the memory limit also ends top and an arming that never finishes" {
    COMMAND=top trace --json --memory 64MB work:one/1
    on_node 'work:loop(10)'
    grows 100
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" "$NODE ended the tracing: its memory has grown by"
    assert_regex "$talk" 'hint: --memory BYTES raises the limit'
    lighter
    COMMAND=top trace --json --memory 0 --for 2s work:one/1
    heavier 100
    trace_wait
    assert_success
    lighter
    # A registry that never answers a second lookup of the name; the memory guard must work meanwhile.
    local dir
    dir=$(node_dir "$NODE")
    cat >"$dir/mutes.erl" <<'END'
-module(mutes).
-export([whereis_name/1]).
whereis_name(Name) ->
    case application:get_env(kernel, muted) of
        undefined -> application:set_env(kernel, muted, true), whereis(Name);
        _ -> receive never -> undefined end
    end.
END
    "$ETRACE_ERLC" -o "$dir" "$dir/mutes.erl"
    on_node "code:add_path(\"$dir\"), {module, mutes} = code:load_file(mutes)"
    etrace_start -n "$NODE" --json --memory 64MB -P '{via, mutes, w}' work:one/1
    asked() { on_node '[P] = [P || P <- processes(), {_, {mutes, whereis_name, 1}} <- [process_info(P, current_function)]]' 2>/dev/null; }
    until_true 30 asked || fail "etrace did not ask the registry: $(<"$ERR")"
    grows 100
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" "$NODE ended the tracing: its memory has grown by"
    lighter
    on_node "application:unset_env(kernel, muted), code:purge(mutes), code:delete(mutes), code:purge(mutes), code:del_path(\"$dir\")"
    live_snapshot
}

@test "a trace takes at most half of the memory that the node has left" {
    # The limit of the address space leaves two hundred megabytes.
    cat >"$BATS_TEST_TMPDIR/erl" <<END
#!/bin/sh
CONTROL_OTP=${ETRACE_ERL%/bin/*} exec "$ETRACE_ERL" "\$@"
END
    chmod +x "$BATS_TEST_TMPDIR/erl"
    node_start tight +MIscs 64
    on_node 'work:worker(w), work:warm()'
    "$ETRACE_BIN" -n "$NODE" -qq --for 50ms work:one/1 >/dev/null
    local pid size
    pid=$(node_eval "$NODE" 'list_to_integer(os:getpid())')
    size=$(awk '/^VmSize/ { print $2 }' "/proc/$pid/status")
    prlimit --pid "$pid" --as=$(((size + 300 * 1024) * 1024))
    live_snapshot
    trace --json work:one/1
    on_node 'work:loop(10)'
    grows 200
    trace_wait
    assert_grown
    assert_account 10
    run node_eval "$NODE" 'lists:sum(lists:seq(1, 100))'
    assert_output 5050
    lighter
    assert_clean "$BEFORE" "$NODE"
}

# A buffer of 2 MiB may grow to 8 MiB if the node has more than 1.5 GB of memory left. The events of this test take 4 MB.
@test "full buffers grow and hold a burst while the owner does not run" {
    trace --json --rate 0 work:one/1
    on_node '[Owner] = control:companion(owner), erlang:suspend_process(Owner), work:loop(200000), erlang:resume_process(Owner)'
    trace_end
    assert_success
    assert_account 200000
    assert_equal "$(json_of summary '.lost.ring // 0')" 0
}

@test "the tracer without the NIF ends the trace when it does not keep up, and accounts for every event" {
    trace --json --fallback work:one/1
    # Suspend the owner while twenty thousand messages arrive.
    on_node '[Owner] = control:companion(owner),
        erlang:suspend_process(Owner), work:loop(20000), erlang:resume_process(Owner)'
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    assert_regex "$talk" 'ended the tracing: the tracer without the NIF did not keep up, and lost [0-9]+ events'
    assert_equal "$(jq -r 'select(.type == "notice") | .tag + " " + .info' "$OUT")" 'guard queue'
    assert_account 20000
    assert_clean "$BEFORE" "$NODE"
}

@test "the tracer without the NIF reports a thousand events a second and counts the others" {
    trace --json --fallback --rate 0 work:one/1
    on_node 'work:loop(8000)'
    trace_end
    assert_success
    assert_account 8000
    [[ $(json_of summary '.lost.rate // 0') -gt 0 ]] || fail "$(tail -n 1 "$OUT")"
}

@test "etrace reports the memory limit although the janitor is suspended" {
    trace --json --memory 64MB work:one/1
    on_node '[J] = control:companion(janitor), Me = self(),
        register(loop, spawn(fun() -> erlang:suspend_process(J), Me ! suspended, receive stop -> ok end end)), receive suspended -> ok end'
    grows 100
    trace_wait
    assert_grown
    assert_account any
    # The janitor continues when the process that suspended it has ended.
    lighter
    assert_clean "$BEFORE" "$NODE"
}
