#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Nodes that lack a resource or are held up: room for a file, memory for the buffers, a code server that does not
# answer.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin scarce; }
teardown_file() { live_end; }
setup() { live_setup; }
# A test stops the node that it started itself.
teardown() {
    if [[ $NODE == "$LIVE_NODE" ]]; then
        on_node '[exit(P, kill) || P <- [whereis(holder)], is_pid(P)]' || true
        live_teardown
    else
        nodes_stop
        [[ ! -e $BATS_TEST_TMPDIR/group ]] || until_true 30 rmdir "$(<"$BATS_TEST_TMPDIR/group")"
    fi
}

# Starts a node of this test through COMMANDS, shell code in which "$@" starts the node.
odd_node() { # NAME COMMANDS
    erl_is "set -- \"\$ETRACE_ERL\" \"\$@\"
$2"
    ETRACE_ERL=$BATS_FILE_TMPDIR/erl node_start "$1"
    on_node 'work:worker(w), work:warm()'
}

@test "a node that limits file sizes or has no /proc is traced without the NIF" {
    odd_node files 'exec "$@"'
    # The limit must leave room for the node's log.
    local pid most
    pid=$(node_eval "$NODE" 'list_to_integer(os:getpid())')
    most=$(prlimit --pid "$pid" --fsize --noheadings --output SOFT | tr -d ' ')
    prlimit --pid "$pid" --fsize=20000:
    traced --json 'work:one/1 -> return' -- 'work:loop(5)'
    assert_success
    assert_account 10
    assert_regex "$talk" 'tracing without the NIF, at most 1000 events a second: its files may not be as large as the library'
    prlimit --pid "$pid" --fsize="$most":
    traced --json 'work:one/1 -> return' -- 'work:loop(5)'
    assert_success
    refute_regex "$talk" 'without the NIF'
    # With the allocators of the system, the node does not know its memory either.
    local flags
    for flags in '' '+Mea min'; do
        nodes_stop
        odd_node proc "exec unshare -m sh -c 'mount -t tmpfs none /proc && exec \"\$@\"' sh \"\$@\" $flags"
        traced --json 'work:one/1 -> return' -- 'work:loop(5)'
        assert_success
        assert_account 10
        assert_regex "$talk" 'tracing without the NIF, at most 1000 events a second: how large a file may be is not known without /proc'
    done
}

@test "the library loads from a home directory with any name" {
    local home=$BATS_TEST_TMPDIR/homes/$'дом 家\n"x'
    mkdir -p "$home/.cache"
    odd_node home 'exec "$@"'
    # The name uses the node's encoding of file names.
    on_node "{ok, [Home]} = file:list_dir_all(\"$BATS_TEST_TMPDIR/homes\"), os:putenv(\"HOME\", filename:join(\"$BATS_TEST_TMPDIR/homes\", Home))"
    traced --json 'work:one/1 -> return' -- 'work:loop(5)'
    assert_success
    assert_account 10
    refute_regex "$talk" 'without the NIF'
    assert_equal "$(ls -A "$home/.cache")" ''
}

@test "a node without memory for the buffers is traced without the NIF, and etrace says so" {
    odd_node tight 'exec "$@"'
    local used
    used=$(awk '/^VmSize/ { print $2 }' "/proc/$(node_eval "$NODE" 'list_to_integer(os:getpid())')/status")
    # This limit leaves two thirds of the memory that the buffers take.
    prlimit --pid "$(node_eval "$NODE" 'list_to_integer(os:getpid())')" --as=$(((used + 65536) * 1024))
    traced --json 'work:one/1 -> return' -- 'work:loop(5)'
    assert_success
    assert_account 10
    assert_regex "$talk" 'tracing without the NIF, at most 1000 events a second: no memory for its buffers'
    live_snapshot
    traced --json work:one/1 -- 'work:loop(5)'
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "etrace refuses a node with next to no memory left" {
    refused() {
        live_snapshot
        run --separate-stderr timeout 60 "$ETRACE_BIN" -n "$NODE" --for 1s "$@" work:one/1 </dev/null 3>&-
        assert_failure 3
        assert_regex "$stderr" "^etrace: $NODE: the node has only [0-9]+ MiB of memory left; etrace does not attach\$"
        assert_clean --atoms 700 "$BEFORE" "$NODE" # the first client of a node makes these
    }
    # The address space has room, but the machine has hardly any free memory.
    printf '%s kB\n' 'MemTotal: 24000000' 'MemAvailable: 20000' >"$BATS_TEST_TMPDIR/meminfo"
    odd_node full "exec unshare -m sh -c 'mount --bind $BATS_TEST_TMPDIR/meminfo /proc/meminfo && exec \"\$@\"' sh \"\$@\""
    refused
    nodes_stop
    # The node reserves all its memory at its start. A mailbox that fills at full speed would crash it.
    node_start carrier +MMscs 200 +Musac false
    on_node 'work:worker(w), work:warm(), Left = fun() -> {_, [_, {_, [{_, S} | _]}]} = lists:keyfind(default_mmap, 1, erlang:system_info({allocator, erts_mmap})),
            proplists:get_value(total, S) - proplists:get_value(total_sa, S) - proplists:get_value(total_sua, S) end,
        work:flood(1), Me = self(),
        spawn(fun() -> T = ets:new(full, []), (fun F(N) -> case Left() > 25165824 of true -> ets:insert(T, {N, binary:copy(<<1>>, 600000)}), F(N + 1);
            false -> Me ! full, receive never -> ok end end end)(0) end),
        receive full -> ok end'
    refused
    refused --fallback
}

@test "a node without threads left is traced without the NIF, and etrace says so" {
    local group=/sys/fs/cgroup/pids pid
    [[ -d $group ]] || group=/sys/fs/cgroup
    group+=/etrace-$$
    # Without permission to make a control group, the test has nothing to do.
    mkdir "$group" 2>/dev/null || return 0
    echo "$group" >"$BATS_TEST_TMPDIR/group"
    odd_node threads 'exec "$@"'
    pid=$(node_eval "$NODE" 'list_to_integer(os:getpid())')
    if echo "$pid" >"$group/cgroup.procs" && [[ -e $group/pids.max ]]; then
        cat "$group/pids.current" >"$group/pids.max"
        traced --json work:one/1 -- 'work:loop(5)'
        assert_success
        assert_account 5
        assert_regex "$talk" 'tracing without the NIF, at most 1000 events a second: no thread for it'
    fi
}

# hold suspends the code server until release ends the holder.
hold() { on_node 'Me = self(), spawn(fun() -> register(holder, self()), erlang:suspend_process(whereis(code_server)), Me ! held, receive after infinity -> ok end end), receive held -> ok end'; }
release() { on_node 'R = monitor(process, holder), exit(whereis(holder), kill), receive {_, R, _, _, _} -> ok end'; }

@test "with a blocked code server no trace begins, and a trace that ends says that its code remains" {
    trace --json work:one/1
    on_node 'work:loop(5)'
    hold
    # Meanwhile a second client attaches and gives up.
    "$ETRACE_BIN" -n "$NODE" work:one/1 </dev/null >"$OUT.second" 2>"$ERR.second" 3>&- &
    local second=$!
    TRACERS+=("$second")
    trace_end
    assert_success
    assert_account 5
    assert_regex "$talk" '· session destroyed, but the node has not unloaded the tracer yet$'
    status=0
    wait "$second" || status=$?
    assert_equal "$status" 3
    assert_equal "$(<"$ERR.second")" "etrace: $NODE accepts the connection, but its code_server process does not answer for 10 seconds"
    release
    assert_clean "$BEFORE" "$NODE" 30
}

@test "requests of a killed janitor to the code server do not harm the next client" {
    # Succeeds when N live processes of etrace wait for the code server.
    waiting() {
        [[ $(node_eval "$NODE" '{messages, L} = process_info(whereis(code_server), messages),
            length([P || {code_call, P, {_, M}} <- L, is_atom(M), lists:prefix("etrace_", atom_to_list(M)), is_process_alive(P)])') == "$1" ]]
    }
    local second
    trace --json work:one/1
    hold
    child_kill "${TRACERS[0]}" INT
    until_true 30 waiting 1
    # Kill all processes that would clean up for the janitor, too.
    child_kill "${TRACERS[0]}"
    on_node '[exit(P, kill) || J <- control:companion(janitor), {_, L} <- [process_info(J, monitored_by)], P <- L ++ [J]]'
    until_true 30 waiting 0
    "$ETRACE_BIN" -n "$NODE" --for 100ms work:one/1 </dev/null >"$OUT.second" 2>"$ERR.second" 3>&- &
    second=$!
    TRACERS+=("$second")
    until_true 30 waiting 1
    release
    wait "$second" || fail "$(<"$ERR.second")"
    # The node's log, which assert_clean checks, would show a complaint of the code server.
    assert_clean "$BEFORE" "$NODE" 30
}
