#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The network, the system and its files are unlike what a program expects: a link that is very slow or changes bytes,
# a node that was stopped, the network of a container, an epmd that lies, files that do not answer.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/line

setup_file() {
    export FAULT_SO=$BATS_FILE_TMPDIR/fault.so
    cc -O1 -fPIC -shared -fno-builtin -o "$FAULT_SO" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
    line_begin borders
}

teardown_file() { line_end; }

setup() { live_setup; }

teardown() {
    ip netns exec "$NET" tc qdisc del dev "p$NET" root 2>/dev/null || true
    live_teardown
}

@test "a trace works over a slow link, and on a node that was stopped for longer than the lease" {
    local slow_before=$BEFORE slow
    until_true 20 carries || fail 'the link does not work'
    ip netns exec "$NET" tc qdisc add dev "p$NET" root tbf rate 144kbit burst 3k latency 400ms
    ip netns exec "$NET" "$ETRACE_BIN" -n "${LIVE_NODE%@*}@$NET_HOST" --port "$NET_PORT" --json work:one/1 </dev/null >"$OUT.slow" 2>"$ERR.slow" 3>&- &
    slow=$!
    TRACERS+=("$slow")

    live_own stopped
    local pid
    pid=$(node_eval "$NODE" 'list_to_integer(os:getpid())')
    trace --json work:one/1
    freeze "$pid"
    pause 11.5
    kill -CONT "$pid"
    # The messages of the client that arrived while the node was stopped renew the lease.
    on_node 'work:loop(10)'
    trace_end
    assert_success
    assert_account 10
    assert_clean "$BEFORE" "$NODE"

    # The companion has two hundred thousand bytes, which takes longer than the write timeout and than the time that a
    # node may be silent.
    OUT=$OUT.slow ERR=$ERR.slow TRACER=$slow
    until_true 60 ready
    ! gone "$TRACER" || fail "$(<"$ERR")"
    ip netns exec "$NET" tc qdisc del dev "p$NET" root
    node_eval "$LIVE_NODE" 'work:loop(10)' >/dev/null
    trace_end
    assert_success
    assert_account 10
    assert_clean "$slow_before" "$LIVE_NODE"
}

@test "an interrupt while the companion is on its way ends etrace at once" {
    until_true 20 carries || fail 'the link does not work'
    ip netns exec "$NET" tc qdisc add dev "p$NET" root tbf rate 40kbit burst 3k latency 400ms
    ip netns exec "$NET" "$ETRACE_BIN" -n "${LIVE_NODE%@*}@$NET_HOST" --port "$NET_PORT" --json work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 20 attached
    kill -INT "$TRACER"
    until_true 5 gone "$TRACER" || fail 'etrace did not end'
    status=0
    wait "$TRACER" || status=$?
    assert_equal "$status" 130
    ip netns exec "$NET" tc qdisc del dev "p$NET" root
    assert_clean "$BEFORE" "$LIVE_NODE" 40
}

attached() { [[ $(node_eval "$LIVE_NODE" 'nodes(hidden)') != '[]' ]]; }

@test "the node loads no part of a companion that changed on its way" {
    local library command etrace=$BATS_TEST_TMPDIR/etrace
    local -a modules
    # In the executable these are the compressed library, as a term behind its architecture, and the modules. Each command
    # loads one of the modules; those that only ask need no library.
    library=$(LC_ALL=C grep -aboP 'k\x00.(x86_64|aarch64)m\x00' "$ETRACE_BIN" | sed -n '1s/:.*//p')
    mapfile -t modules < <(LC_ALL=C grep -aboP 'FOR1\x00' "$ETRACE_BIN" | awk -F: '{ print $1 + 30000 }')
    [[ $library -gt 0 && ${#modules[@]} -eq 3 ]]
    refused() { # OFFSET... -- COMMAND
        cp "$ETRACE_BIN" "$etrace"
        while [[ $1 != -- ]]; do
            printf 'x' | dd of="$etrace" bs=1 seek="$1" conv=notrunc status=none
            ! cmp -s "$etrace" "$ETRACE_BIN" || printf 'y' | dd of="$etrace" bs=1 seek="$1" conv=notrunc status=none
            shift
        done
        run --separate-stderr "$etrace" "${@:2}"
        assert_failure 3
        # shellcheck disable=SC2154  # of run
        assert_equal "$stderr" "etrace: $NODE: the node does not load the companion: it was changed on its way"
    }
    refused $((library + 20000)) -- -n "$NODE" --for 1ms work:one/1
    for command in "trace --for 1ms work:one/1" "ps -1" "why init"; do
        # shellcheck disable=SC2086
        refused "${modules[@]}" -- $command -n "$NODE"
    done
    assert_clean "$BEFORE" "$NODE"
}

@test "-p enters the network namespace of a process and ignores the node on the same port outside" {
    erl_is "exec ip netns exec $NET \"\$ETRACE_ERL\" -erl_epmd_port $NET_PORT \"\$@\""
    # The control port of a node is on its own loopback and cannot be reached from here, so the node writes a file
    # when it is up.
    (
        cd "$BATS_TEST_TMPDIR" || exit 1
        exec "$BATS_FILE_TMPDIR/erl" +Bi -noshell -noinput -name inside@box -start_epmd false -pa "$(node_lib)" \
            -eval 'file:write_file("up", os:getpid()), F = fun F() -> work:one(1), timer:sleep(20), F() end, F().' \
            </dev/null >"$BATS_TEST_TMPDIR/log" 2>&1 3>&-
    ) &
    inside=$!
    TRACERS+=("$inside")
    until_true 60 test -s "$BATS_TEST_TMPDIR/up" || fail "$(<"$BATS_TEST_TMPDIR/log")"
    run --separate-stderr "$ETRACE_BIN" -p "$(<"$BATS_TEST_TMPDIR/up")" --limit 3 --json work:one/1
    assert_success
    assert_equal "$(jq -r 'select(.type == "attached").node' <<<"$output")" inside@box
    assert_equal "$(jq -r 'select(.type == "summary").shown' <<<"$output")" 3
    # etrace looks for the epmd in that network as well, where none runs, and not for the one here.
    run --separate-stderr "$ETRACE_BIN" doctor -p "$(<"$BATS_TEST_TMPDIR/up")"
    assert_success
    assert_line --regexp '^ok +epmd +in its own network namespace; does not answer on port [0-9]+, but --pid does not need it$'
    assert_line --partial 'connected to inside@box'
    # A process in this network gets the epmd of this host.
    run --separate-stderr "$ETRACE_BIN" -p "$(node_eval "$NODE" 'list_to_integer(os:getpid())')" --for 1ms --json work:one/1
    assert_equal "$(jq -r 'select(.type == "attached").node' <<<"$output")" "$NODE"
    child_kill "$inside"
}

# Starts an epmd that answers PORT for every node, and does not close the connection. Sets liar to its own port.
epmd_says() { # PORT NAME
    local fifo=$BATS_TEST_TMPDIR/epmd
    rm -f "$fifo"
    mkfifo "$fifo"
    exec {said}<>"$fifo"
    "$ETRACE_ERL" +Bi -noshell -noinput -eval "
        {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127,0,0,1}}]), {ok, Port} = inet:port(L),
        ok = file:write_file(\"$fifo\", [integer_to_list(Port), 10]),
        F = fun F(Kept) -> {ok, S} = gen_tcp:accept(L), {ok, _} = gen_tcp:recv(S, 0),
            [gen_tcp:send(S, <<B>>) || <<B>> <= <<119, 0, $1:16, 77, 0, 0, 6, 0, 5, 0, ${#2}, \"$2\", 0, 0>>], F([S | Kept]) end, F([])." \
        </dev/null >/dev/null 2>&1 3>&- {said}>&- &
    TRACERS+=("$!")
    await_line "$!" "$said"
    exec {said}>&-
    liar=$LINE
}

@test "etrace accepts an epmd that keeps its connection open, and rejects a node with another name" {
    epmd_says "$NET_PORT" "${NODE%@*}"
    ERL_EPMD_PORT=$liar run --separate-stderr "$ETRACE_BIN" -n "$NODE" --for 1ms --json work:one/1
    assert_success
    ERL_EPMD_PORT=$liar run --separate-stderr "$ETRACE_BIN" -n other@127.0.0.1 --for 1ms --json work:one/1
    assert_failure 3
    assert_equal "$stderr" "etrace: cannot connect to other@127.0.0.1: port $NET_PORT of 127.0.0.1, the one that epmd reports, belongs to $NODE"
    assert_clean "$BEFORE" "$NODE"
}

@test "the node skips a directory on a dead file server, and a signal ends a client that waits for one" {
    mkdir -p "$BATS_TEST_TMPDIR/hangs/.cache"
    cp "$HOME/.erlang.cookie" "$BATS_TEST_TMPDIR/hangs/"
    # The node is up before HOME is set to the dead directory.
    erl_is "export FAULT=hang LD_PRELOAD=$FAULT_SO; exec \"\$ETRACE_ERL\" \"\$@\""
    ETRACE_ERL=$BATS_FILE_TMPDIR/erl live_own away
    on_node "os:putenv(\"HOME\", \"$BATS_TEST_TMPDIR/hangs\"), spawn(fun() -> file:read_file_info(\"$BATS_TEST_TMPDIR/hangs/asked\", [raw]), register(given, self()), receive stop -> ok end end)"
    live_snapshot
    trace --json work:one/1
    refute_regex "$(<"$ERR")" 'without the NIF'
    on_node 'work:loop(10)'
    trace_end
    assert_success
    assert_account 10
    assert_equal "$(node_eval "$NODE" 'whereis(given)')" undefined
    # No process waits for the dead server any more, and the node's file server still works.
    assert_clean --atoms 300 "$BEFORE" "$NODE"
    on_node '{ok, _} = file:list_dir("/")'

    FAULT=hang LD_PRELOAD=$FAULT_SO etrace_start -n "$NODE" --cookie-file "$BATS_TEST_TMPDIR/hangs/.erlang.cookie" work:one/1
    until_true 20 waits || fail "etrace did not wait for the cookie: $(<"$ERR")"
    kill -TERM "$TRACER"
    until_true 5 gone "$TRACER" || fail 'etrace did not end'
    status=0
    wait "$TRACER" || status=$?
    assert_equal "$status" 143
}

# A thread is in pause(): system call 34 on x86-64, or ppoll() elsewhere.
waits() { grep -qE '^(34|73) ' /proc/"$TRACER"/task/*/syscall; }

@test "etrace ignores a hangup under nohup" {
    (
        trap '' HUP
        exec "$ETRACE_BIN" -n "$NODE" --json work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&-
    ) &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 60 ready
    kill -HUP "$TRACER"
    on_node 'work:loop(10)'
    until_true 30 seen_all
    trace_end
    assert_success
    assert_account 10
}

seen_all() { [[ $(grep -c '"type":"call"' "$OUT") == 10 ]]; }
