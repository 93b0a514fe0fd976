#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests how etrace finds a node and connects to it. Each way to fail has its own message.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/node

FAKES=()

teardown() {
    children_end "${FAKES[@]}"
    nodes_stop
}

# attach ARGS...: traces for 50 ms; a run that takes more than 20 seconds fails.
attach() { run --separate-stderr timeout 20 "$ETRACE_BIN" "$@" --for 50ms 'lists:seq/2'; }

# attached NAME ARGS...: asserts that etrace attaches to the node NAME.
attached() {
    local name=$1
    shift
    attach "$@"
    assert_success
    assert_regex "${stderr_lines[0]}" "^etrace: $name · OTP $ETRACE_OTP"
}

# refused TEXT ARGS...: asserts that etrace fails with the message "etrace: TEXT" and prints no event.
refused() {
    local text=$1
    shift
    attach "$@"
    assert_failure 3
    assert_output ''
    assert_equal "${stderr_lines[0]}" "etrace: $text"
}

epmd_port_of() { "${ETRACE_ERL%/*}/epmd" -names | sed -n "s/^name ${1%@*} at port //p"; }

# fake EXPRESSION...: starts TCP servers that are no nodes, and sets PORTS, and PORT to the first one. Each evaluates its
# EXPRESSION for each connection, which is `Socket` there.
fake() {
    local fifo=$BATS_TEST_TMPDIR/fake servers
    rm -f "$fifo"
    mkfifo "$fifo"
    printf -v servers ', fun(Socket) -> receive go -> ok end, %s end' "$@"
    "$ETRACE_ERL" -noshell -noinput -boot start_clean -eval "
        Ports = [begin
            {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127,0,0,1}}, {reuseaddr, true}]),
            spawn(fun() -> (fun Accept() ->
                {ok, S} = gen_tcp:accept(L),
                H = spawn(fun() -> Serve(S) end),
                gen_tcp:controlling_process(S, H), H ! go, Accept()
            end)() end),
            {ok, P} = inet:port(L),
            [integer_to_list(P), \" \"]
        end || Serve <- [${servers#, }]],
        ok = file:write_file(\"$fifo\", [Ports, \"\n\"]),
        receive after infinity -> ok end." </dev/null >/dev/null 2>&1 3>&- &
    FAKES+=("$!")
    read -r -t 20 -a PORTS <>"$fifo"
    PORT=${PORTS[0]}
}

@test "etrace finds a node by full or short name, process, port, environment, or as the only one" {
    node_start found
    name=${NODE%@*} pid=$(<"$(node_dir "$NODE")/pid") port=$(epmd_port_of "$NODE")
    attached "$NODE" -n "$NODE"
    attached "$NODE" -n "$name"
    attached "$NODE" -p "$pid"
    attached "$NODE"
    export ETRACE_NODE=$NODE
    attached "$NODE"
    unset ETRACE_NODE
    export ERL_EPMD_PORT=1
    attached "$NODE" -n "$NODE" --port "$port"
    attached "$NODE" -p "$pid"
}

# bats test_tags=long
@test "etrace lists the local nodes instead of guessing if several run" {
    attach_without_proc() {
        run --separate-stderr without_proc timeout 20 "$ETRACE_BIN" lists:seq/2
        assert_failure 3
    }
    attach_without_proc
    assert_equal "${stderr_lines[0]}" 'etrace: no node was given, and none runs on this host'
    assert_regex "${stderr_lines[1]}" '^hint: give -n NODE'
    ERL_EPMD_PORT=1 attach_without_proc
    assert_equal "${stderr_lines[0]}" 'etrace: no node was given, and no epmd runs on this host (port 1)'
    node_start one
    one=${NODE%@*}
    node_start two
    attach
    assert_failure 3
    assert_regex "${stderr_lines[0]}" "several run on this host: .*$one"
    assert_regex "${stderr_lines[0]}" "several run on this host: .*${NODE%@*}"
}

# bats test_tags=long
@test "etrace connects over IPv6 and to nodes with short names" {
    [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
    "$ETRACE_ERL" -noshell -noinput -name six@::1 -proto_dist inet6_tcp -start_epmd false \
        -kernel inet_dist_use_interface '{0,0,0,0,0,0,0,1}' </dev/null >/dev/null 2>&1 3>&- &
    FAKES+=("$!")
    "$ETRACE_ERL" -noshell -noinput -sname short -start_epmd false </dev/null >/dev/null 2>&1 3>&- &
    FAKES+=("$!")
    for ((i = 0; i < 500; i++)); do
        [[ $(epmd_port_of six) && $(epmd_port_of short) ]] && break
        pause 0.02
    done
    attached six@::1 -n six@::1
    attached "short@$(hostname -s)" -n short
    attached "short@$(hostname -s)" -n "short@$(hostname -s)"
}

@test "a missing node, host, listener, process or epmd has its own message" {
    node_start there
    refused "cannot connect to nosuch@127.0.0.1: epmd on 127.0.0.1 knows no node of that name" -n nosuch@127.0.0.1
    assert_equal "${stderr_lines[1]}" "hint: it knows ${NODE%@*}"
    refused "cannot connect to a@no.such.host.invalid: there is no host named no.such.host.invalid" -n a@no.such.host.invalid
    refused "cannot connect to $NODE: nothing listens on port 1 of 127.0.0.1" -n "$NODE" --port 1
    refused 'there is no process 4194999' -p 4194999
    mkfifo "$BATS_TEST_TMPDIR/never"
    cat <>"$BATS_TEST_TMPDIR/never" >/dev/null 3>&- &
    FAKES+=("$!")
    attach -p "$!"
    assert_failure 3
    assert_regex "${stderr_lines[0]}" "^etrace: process $! listens on no TCP port"
    assert_equal "${stderr_lines[1]}" 'hint: it does not run Erlang; etrace nodes lists the processes that do'
    # Virtual machines that do not listen: Erlang, Elixir, and one that has a name but is still starting.
    local words hint
    while IFS='|' read -r words hint; do
        # shellcheck disable=SC2086 # words
        bash -c 'read -r' vm -root R -bindir B $words <>"$BATS_TEST_TMPDIR/never" >/dev/null 3>&- &
        FAKES+=("$!")
        has_words() { tr '\0' ' ' <"/proc/${FAKES[-1]}/cmdline" | grep -q -- '-bindir B'; }
        for ((i = 0; i < 500; i++)); do
            has_words && break
            pause 0.02
        done
        refused "process ${FAKES[-1]} listens on no TCP port, so it is not a distributed node" -p "${FAKES[-1]}"
        assert_regex "${stderr_lines[1]}" "^hint: $hint"
    done <<'END'
|in its shell: os:cmd.*start it with -sname$
-elixir_root /x|in its iex: :os.cmd.*a release with RELEASE_DISTRIBUTION=sname$
-name starting@127.0.0.1|is it still starting, or did it not get its name\?
-elixir ansi_enabled true -sname starting|is it still starting, or did it not get its name\?
END
    export ERL_EPMD_PORT=1
    refused "cannot connect to nosuch@127.0.0.1: no epmd runs on 127.0.0.1 (port 1)" -n nosuch@127.0.0.1
}

@test "-p fails with a message if /proc is not mounted" {
    run --separate-stderr without_proc timeout 60 "$ETRACE_BIN" -p $$ lists:seq/2
    assert_failure 3
    assert_equal "${stderr_lines[0]}" "etrace: cannot see the sockets of process $$: /proc is not there, or does not show it"
}

@test "the error about a node with -dist_listen false names that option" {
    "$ETRACE_ERL" -noshell -noinput -name deaf@127.0.0.1 -dist_listen false </dev/null >/dev/null 2>&1 3>&- &
    FAKES+=("$!")
    started() { tr '\0' ' ' <"/proc/${FAKES[-1]}/cmdline" | grep -q 'beam.* -dist_listen false'; }
    for ((i = 0; i < 500; i++)); do
        started && break
        pause 0.02
    done
    refused "process ${FAKES[-1]} is a node that accepts no connections: it was started with -dist_listen false" -p "${FAKES[-1]}"
}

@test "the error about another user's process suggests -n" {
    local dir
    dir=$(mktemp -d /tmp/somebody.XXXXXX)
    cp "$ETRACE_BIN" "$dir/etrace"
    (umask 077 && echo cookie >"$dir/cookie")
    chown 65534 "$dir/cookie"
    chmod 755 "$dir" "$dir/etrace"
    run --separate-stderr timeout 30 setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/etrace" -p $$ --cookie-file "$dir/cookie" lists:seq/2
    rm -r "$dir"
    assert_failure 3
    assert_equal "$stderr" "etrace: cannot see the sockets of process $$: Permission denied
hint: run etrace as that user or as root, sudo etrace -p $$, or use -n NODE with the cookie"
}

@test "a malformed node name is a usage error" {
    for name in @host name@ 'a b@host' a@b@c; do
        attach -n "$name"
        assert_failure 2
        assert_regex "${stderr_lines[0]}" "is not a node name"
    done
}

@test "a wrong cookie, net_kernel:allow and a suspended node have their own messages" {
    node_start strict
    (umask 077 && echo another >"$BATS_TEST_TMPDIR/cookie")
    refused "cannot connect to $NODE: the cookie does not match (read from $BATS_TEST_TMPDIR/cookie)" -n "$NODE" --cookie-file "$BATS_TEST_TMPDIR/cookie"
    node_eval "$NODE" 'net_kernel:allow([nobody@nowhere])'
    refused "cannot connect to $NODE: it does not allow connections from this node" -n "$NODE"
    freeze "$(<"$(node_dir "$NODE")/pid")"
    refused "cannot connect to $NODE: it accepts the connection but sends nothing" -n "$NODE"
    kill -CONT "$(<"$(node_dir "$NODE")/pid")"
}

@test "each kind of server that does not act as a node has its own message" {
    local says='gen_tcp:recv(Socket, 0), gen_tcp:send(Socket,' kinds i
    fake "$says \"HTTP/1.1 400 Bad Request\r\n\r\n\")" ok "$says <<16#15, 3, 3, 0, 2, 2, 10>>)" \
        "$says <<0, 6, \"salive\">>), timer:sleep(9000)" "$says <<0, 4, \"snok\">>), timer:sleep(9000)" "$says <<0, 3, \"sok\", 0, 64, \"N\">>)"
    kinds=("port ${PORTS[0]} of 127.0.0.1 answers, but not as an Erlang node"
        "port ${PORTS[1]} of 127.0.0.1 closes the connection without an answer"
        'it accepts only TLS connections'
        'it is already connected to a node with the same name as this etrace'
        'another node with the same name as this etrace is connecting to it'
        'the handshake failed')
    for i in "${!kinds[@]}"; do refused "cannot connect to x@127.0.0.1: ${kinds[i]}" -n x@127.0.0.1 --port "${PORTS[i]}"; done
    export ERL_EPMD_PORT=$PORT
    refused "cannot connect to x@127.0.0.1: port $PORT of 127.0.0.1 answers, but not as epmd" -n x@127.0.0.1
}

# Prints the expression of a fake node NAME that follows the handshake up to its challenge and then evaluates EXPRESSION.
begins() { # NAME EXPRESSION
    echo "gen_tcp:recv(Socket, 0), gen_tcp:send(Socket, [<<0, 24, \"snamed:\", 0, 11, \"a@127.0.0.1\", 1:32>>,
        <<0, 30, \"N\", 16#0d07fdff:32, 16#0d07fdff:32, 5:32, 6:32, 0, 11, \"$1@127.0.0.1\">>]), $2"
}

@test "the error distinguishes a node that leaves during the handshake from one that refuses the cookie" {
    local i left="cannot connect to x@127.0.0.1: it closed the connection in the middle of the handshake"
    # The second and the third one close the connection before they read our answer (with and without unread data), the
    # others after it.
    fake 'gen_tcp:recv(Socket, 0), gen_tcp:send(Socket, <<0, 24, "snamed:", 0, 11, "a@127.0.0.1", 1:32>>)' \
        "$(begins x ok)" "$(begins x 'timer:sleep(300)')" "$(begins x '{ok, _} = gen_tcp:recv(Socket, 23)')" "$(begins y '{ok, _} = gen_tcp:recv(Socket, 23)')"
    for i in 0 1 2; do
        refused "$left" -n x@127.0.0.1 --port "${PORTS[i]}"
        [[ $i -eq 0 ]] || assert_equal "${stderr_lines[1]}" 'hint: is it shutting down, or has it just started?'
    done
    refused "cannot connect to x@127.0.0.1: the cookie does not match (read from ~/.erlang.cookie)" -n x@127.0.0.1 --port "${PORTS[3]}"
    # The wrong name takes precedence over the refused cookie.
    refused "cannot connect to x@127.0.0.1: port ${PORTS[4]} of 127.0.0.1 belongs to y@127.0.0.1" -n x@127.0.0.1 --port "${PORTS[4]}"
}

@test "--port refuses a node with another name, but accepts another host part" {
    node_start here
    port=$(epmd_port_of "$NODE")
    # A host has several names, so the host part of a node name may differ.
    attached "$NODE" -n "${NODE%@*}@localhost" --port "$port"
    before=$(node_snapshot "$NODE")
    refused "cannot connect to other@127.0.0.1: port $port of 127.0.0.1 belongs to $NODE" -n other@127.0.0.1 --port "$port"
    assert_equal "${stderr_lines[1]}" "hint: -n ${NODE%@*} is the node that listens there"
    run "$ETRACE_BIN" doctor -n other@127.0.0.1 --port "$port"
    assert_failure 3
    assert_line --partial "port $port of 127.0.0.1 belongs to $NODE"
    assert_clean "$before" "$NODE"
}

# bats test_tags=long
@test "etrace gives up on a silent or slow node and on a silent epmd" {
    fake 'timer:sleep(9000)'
    refused "cannot connect to x@127.0.0.1: it accepts the connection but sends nothing" -n x@127.0.0.1 --port "$PORT"
    ERL_EPMD_PORT=$PORT refused "cannot connect to x@127.0.0.1: epmd on 127.0.0.1 does not answer" -n x@127.0.0.1
    fake '[begin timer:sleep(600), gen_tcp:send(Socket, <<B>>) end || <<B>> <= <<0, 3, "sok", 0, 64, "N">>]'
    attach -n x@127.0.0.1 --port "$PORT"
    assert_failure 3
}

# bats test_tags=long
@test "etrace ends with an error if a proxy holds back a part of the companion" {
    node_start behind
    fake "{ok, N} = gen_tcp:connect({127,0,0,1}, $(epmd_port_of "$NODE"), [binary]), inet:setopts(Socket, [{active, true}]),
        (fun Pass(Left) -> receive
            {tcp, Socket, B} -> gen_tcp:send(N, binary:part(B, 0, min(Left, byte_size(B)))), Pass(max(0, Left - byte_size(B)));
            {tcp, N, B} ->
                gen_tcp:send(Socket, B),
                case binary:match(B, <<\"companion\">>) of nomatch -> Pass(Left); _ -> file:write_file(\"$BATS_TEST_TMPDIR/said\", B) end
        after 20000 -> ok end end)(2000)"
    run --separate-stderr timeout 30 "$ETRACE_BIN" -n "$NODE" --port "$PORT" lists:seq/2
    assert_failure 1
    assert_equal "${stderr_lines[0]}" "etrace: $NODE: the node closed the connection"
    assert [ -s "$BATS_TEST_TMPDIR/said" ]
}

@test "a node with an OTP older than 27 is refused" {
    [[ -x /usr/bin/erl ]] || skip 'no other OTP here'
    release=$(/usr/bin/erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().')
    ((release < 27)) || skip 'the OTP of the system is not older than 27'
    /usr/bin/erl -noshell -noinput -name old@127.0.0.1 -start_epmd false </dev/null >/dev/null 2>&1 3>&- &
    FAKES+=("$!")
    for ((i = 0; i < 500; i++)); do
        [[ $(epmd_port_of old) ]] && break
        pause 0.02
    done
    refused "old@127.0.0.1: the node runs OTP $release; etrace needs OTP 27 or newer there" -n old@127.0.0.1
    assert_equal "${stderr_lines[1]}" 'hint: dbg of its runtime_tools, recon_trace and redbug trace there'
    run "$ETRACE_BIN" doctor -n old@127.0.0.1
    assert_failure 3
    assert_line --partial 'hint: dbg of its runtime_tools, recon_trace and redbug trace there'
}

# bats test_tags=long
@test "the client calls only the handshake of libei and no unsafe functions, and ignores EI_TRACELEVEL" {
    run bash -c "nm -u '$ETRACE_ROOT'/build/cli/lib*.a | sed -n 's/^ *U \(ei_[a-z_0-9]*\)\$/\1/p' | sort -u"
    assert_output 'ei_close_connection
ei_connect_xinit_ussi
ei_init
ei_self
ei_set_tracelevel
ei_xconnect_host_port_tmo'
    # Our own code must not call functions that write without a limit, or a shell.
    run bash -c "nm -u '$ETRACE_ROOT'/build/cli/lib*.a '$ETRACE_ROOT'/build/cli/etrace.p/*.o 2>/dev/null | grep -xE ' *U (strcpy|strcat|stpcpy|v?sprintf|gets|system|popen)'"
    assert_output ''
    node_start quiet
    export EI_TRACELEVEL=5 ERL_DEBUG_DIST=1
    attached "$NODE" -n "$NODE"
    assert_equal "$(printf '%s\n' "${stderr_lines[@]}" | grep -v '^etrace: ' || true)" ''
    assert_output ''
}
