#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The node and its machine in unusual states: the node is stopped for a while, its clock jumps, its schedulers are all
# busy, it has no descriptors left, its channel to another node is full, it is a minimal release, its processes exit
# in crowds.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_begin machine
    export FAULT_SO=$BATS_FILE_TMPDIR/fault.so
    cc -O1 -fPIC -shared -fno-builtin -o "$FAULT_SO" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    [[ $NODE != "$LIVE_NODE" ]] || node_eval "$NODE" 'whereis(stress) =:= undefined orelse stress:stop()' >/dev/null || true
    live_teardown
}

# Prints the process number of a node in the operating system.
os_pid() { node_eval "$1" 'list_to_integer(os:getpid())'; }

busy() {
    node_eval "$1" 'register(busy, spawn(fun() -> [spawn_link(fun() -> F = fun F() -> work:spin(1000), F() end, F() end) || _ <- lists:seq(1, 50)], receive stop -> ok end end))' >/dev/null
    until_true 30 all_busy "$1"
}
all_busy() { [[ $(node_eval "$1" 'length(element(2, process_info(whereis(busy), links)))') == 50 ]]; }

other_lines() { [[ $(grep -c '"type":"call"' "$OUT") -ge $1 ]]; }

@test "a trace survives a short stop of its node and a jumping clock; a long stop or a frozen client ends it" {
    local stopped busy_node jumps stopped_before busy_before jumps_before
    live_own stopped
    stopped=$NODE stopped_before=$BEFORE
    live_own busy
    busy_node=$NODE
    # Each reading of the wall clock is off by an hour, forward and backward in turns.
    erl_is "FAULT=clock:3600 LD_PRELOAD=$FAULT_SO exec \"\$ETRACE_ERL\" +C multi_time_warp \"\$@\""
    ETRACE_ERL=$BATS_FILE_TMPDIR/erl live_own jumps
    jumps=$NODE jumps_before=$BEFORE
    busy "$busy_node"
    busy_before=$(node_snapshot "$busy_node")

    # A node that is stopped for less than the lease is just late.
    NODE=$stopped trace --json work:one/1
    local pid
    pid=$(os_pid "$stopped")
    freeze "$pid"
    pause 3
    kill -CONT "$pid"
    node_eval "$stopped" 'work:loop(10)' >/dev/null
    trace_end
    assert_success
    assert_account 10
    assert_clean "$stopped_before" "$stopped"

    OUT=$BATS_TEST_TMPDIR/jumps.out ERR=$BATS_TEST_TMPDIR/jumps.err NODE=$jumps trace --json work:one/1
    local jumps_tracer=$TRACER
    node_eval "$jumps" 'work:loop(10)' >/dev/null
    OUT=$BATS_TEST_TMPDIR/busy.out ERR=$BATS_TEST_TMPDIR/busy.err NODE=$busy_node trace --json work:one/1
    local busy_tracer=$TRACER
    NODE=$stopped trace --json work:one/1
    node_eval "$stopped" 'work:loop(10)' >/dev/null
    until_true 30 other_lines 10
    freeze "$pid" "$busy_tracer"
    local start
    start=$(millis)

    # The lease cleans up. The companion's processes share the schedulers with fifty busy ones.
    assert_clean "$busy_before" "$busy_node" 40
    echo "# a busy node with a frozen client: clean after $(($(millis) - start)) ms" >&3

    # The client of the stopped node reports the silence; the node cleans up once it continues.
    trace_wait 60
    [[ $status -eq 1 ]] || fail "status $status: $talk"
    assert_equal "$(grep -c "^etrace: $stopped is silent: etrace received nothing from it for 20 seconds\$" "$ERR")" 1
    assert_equal "$(grep -c '"type":"call"' "$OUT")" 10
    echo "# a stopped node: said after $(($(millis) - start)) ms" >&3
    [[ ! $ETRACE_ALL ]] || pause 40
    kill -CONT "$pid"
    assert_clean "$stopped_before" "$stopped" 30

    # The node whose clock jumps has kept its lease, and its monotonic clock has not gone back.
    ! gone "$jumps_tracer" || fail "$(<"$BATS_TEST_TMPDIR/jumps.err")"
    node_eval "$jumps" 'work:loop(10)' >/dev/null
    TRACER=$jumps_tracer OUT=$BATS_TEST_TMPDIR/jumps.out ERR=$BATS_TEST_TMPDIR/jumps.err
    trace_end
    assert_success
    assert_account 20
    jq -s -e '[.[] | select(.type == "call") | .mono_ns] | . == sort' "$OUT" >/dev/null
    assert_clean "$jumps_before" "$jumps"

    kill -CONT "$busy_tracer"
    TRACER=$busy_tracer OUT=$BATS_TEST_TMPDIR/busy.out ERR=$BATS_TEST_TMPDIR/busy.err
    trace_wait
    [[ $status -eq 4 ]] || fail "status $status: $talk"
    NODE=$stopped
}

@test "a trace survives that its node and client are stopped together, and later names its real end" {
    local pid
    live_own paused
    pid=$(os_pid "$NODE")
    trace --json work:one/1
    freeze "$pid" "$TRACER"
    pause 12
    kill -CONT "$pid" "$TRACER"
    on_node 'work:loop(10)'
    until_true 30 other_lines 10
    pause 11
    node_stop "$NODE"
    trace_wait
    assert_equal "$status" 1
    grep -qxF "etrace: $NODE: the node closed the connection" "$ERR" || fail "$talk"
}

@test "a trace works, and kill -9 leaves a clean node, while the channel to another node is full" {
    node_start other
    local other=$NODE pid
    node_eval "$other" 'register(sink, spawn(fun() -> receive stop -> ok end end))' >/dev/null
    live_own full
    on_node "pong = net_adm:ping('$other')"
    pid=$(os_pid "$other")
    freeze "$pid"
    on_node "register(flood, spawn(fun() -> Ps = [spawn_link(fun() -> B = binary:copy(<<\"x\">>, 100000), F = fun F() -> work:one(sent), {sink, '$other'} ! B, F() end, F() end) || _ <- lists:seq(1, 4)], receive stop -> Ps end end))"
    until_true 30 senders_wait
    full=$(node_snapshot "$NODE")
    # With --all the trace outlives the lease.
    trace --json work:one/1 'send(_, _)'
    on_node 'work:ask(w, fun() -> work:loop(50) end)'
    [[ ! $ETRACE_ALL ]] || pause 15
    until_true 30 other_lines 50
    on_node 'work:ask(w, fun() -> work:loop(50) end)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(jq -r 'select(.type == "call" and .name == "w") | .f' "$OUT" | wc -l)" 100
    assert_clean "$full" "$NODE"
    # Repeat this with a client that is killed.
    trace --json work:one/1 'send(_, _)'
    kill -KILL "$TRACER"
    assert_clean "$full" "$NODE"
    kill -CONT "$pid"
}
senders_wait() { [[ $(node_eval "$NODE" 'lists:all(fun(P) -> process_info(P, status) =:= {status, suspended} end, [P || P <- element(2, process_info(whereis(flood), links)), is_pid(P)])') == true ]]; }

@test "a stripped release of kernel and stdlib in embedded mode supports every feature" {
    local bin root modules
    # shellcheck disable=SC2153  # of tests/run
    read -r bin root < <("$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" -eval "small:make(\"$BATS_TEST_TMPDIR/release\", \"$(node_lib)\"), halt()." </dev/null 3>&- | tail -n 1)
    erl_is "ROOTDIR=$root BINDIR=$bin EMU=beam PROGNAME=erl exec $bin/erlexec -boot $root/releases/1/start -mode embedded \"\$@\""
    ETRACE_ERL=$BATS_FILE_TMPDIR/erl live_own embedded
    # The node is such a release.
    run node_eval "$NODE" '{code:get_mode(), code:ensure_loaded(compile), code:ensure_loaded(runtime_tools), element(1, hd(lists:keysort(1, application:loaded_applications())))}'
    assert_output '{embedded,{error,embedded},{error,embedded},kernel}'
    run node_eval "$NODE" 'beam_lib:chunks(code:which(lists), ["Dbgi"])'
    assert_output --partial missing_chunk
    live_snapshot
    modules=$(node_eval "$NODE" 'lists:sort([M || {M, _} <- code:all_loaded()])')

    trace --json 'work:fac/1 -> return, caller, stack' 'send(_, _)' 'recv(_)' @spawn @exit @gc
    on_node 'work:fac(4), work:ping_pong(3), work:ask_child(w, fun() -> garbage_collect() end)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of call .f | wc -l)" 5
    assert_equal "$(json_of return .value | xargs)" '1 1 2 6 24'
    for type in send receive spawn exit gc_major_start; do
        [[ $(json_of "$type" .pid) ]] || fail "the output has no $type"
    done
    run "$ETRACE_BIN" ls -n "$NODE" work
    assert_success
    assert_line --partial fac
    run "$ETRACE_BIN" top -n "$NODE" --for 200ms work:_
    assert_success
    run "$ETRACE_BIN" info -n "$NODE" work:fac/1
    assert_success
    run "$ETRACE_BIN" doctor -n "$NODE"
    assert_success
    "$ETRACE_BIN" -n "$NODE" -q --for 200ms -c 'lists:_' >/dev/null
    assert_clean "$BEFORE" "$NODE"
    assert_equal "$(node_eval "$NODE" 'lists:sort([M || {M, _} <- code:all_loaded()])')" "$modules"
}

@test "the node survives a trace of everything with dirty schedulers, ports and many exits" {
    on_node 'stress:run(4, 200)'
    live_snapshot
    on_node 'stress:start(8)'
    # The state of the stress processes changes all the time, so compare the node only when they are gone.
    local i
    for ((i = 2; i < ${ETRACE_ALL:+3}4; i++)); do
        trace --json --rate $((i % 2 * 18000 + 2000)) --inherit spawn 'stress:_ -> return' work:one/1 'file:_/_ -> return' 'erlang:garbage_collect/_' 'send(_, _)' 'recv(_)' \
            @spawn @spawned @exit @link @unlink @register @in @out @gc @ports @open @closed
        until_true 30 seen exit && until_true 30 seen open || fail 'the workload did not run'
        if ((i % 4 == 3)); then
            kill -KILL "$TRACER"
            continue
        fi
        trace_end
        assert_success
        assert_account any
    done
    on_node 'stress:stop()'
    until_true 30 as_before
    assert_equal "$(on_node 'ok' && echo alive)" alive
}
seen() { grep -q "\"type\":\"$1\"" "$OUT"; }
as_before() { assert_clean "$BEFORE" "$NODE" 1 2>/dev/null; }

@test "etrace attaches to a node with few descriptors or fails with one message, and leaves nothing" {
    live_own descriptors
    local pid spare opened
    pid=$(os_pid "$NODE")
    for spare in 0 1 2 3 4 6; do
        # The limit is relative to the highest open descriptor of the node.
        opened=$(find "/proc/$pid/fd" -mindepth 1 | sed 's,.*/,,' | sort -n | tail -n 1)
        prlimit --pid "$pid" --nofile=$((opened + 1 + spare)):4096
        status=0
        timeout 30 "$ETRACE_BIN" -n "$NODE" --for 100ms work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
        prlimit --pid "$pid" --nofile=4096:4096
        [[ $status -le 4 && $status -ne 2 ]] || fail "with $spare: status $status: $(<"$ERR")"
        [[ $status -eq 0 ]] || assert_equal "$(grep -c '^etrace: ' "$ERR")" 1
        assert_clean "$BEFORE" "$NODE" || fail "with $spare descriptors"
    done
    traced --json work:one/1 -- 'work:loop(10)'
    assert_success
    assert_account 10
}

@test "etrace traces a node with dist_auto_connect never, which is clean after kill -9" {
    live_own never -kernel dist_auto_connect never
    trace --json 'work:one/1 -> return' 'send(_, _)'
    on_node 'work:ask(w, fun() -> work:loop(10) end)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of return .f | wc -l)" 10
    trace --json work:one/1
    kill -KILL "$TRACER"
    assert_clean "$BEFORE" "$NODE"
}
