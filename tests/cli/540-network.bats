#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The network between etrace and the node fails, fails for a moment, or is slow. The client runs in a network
# namespace at the other end of a veth pair; the node listens on every address.

load ../lib/assert
load ../lib/live
load ../lib/line

setup_file() { line_begin network; }
teardown_file() { line_end; }
setup() { live_setup; }

teardown() {
    line_mend
    live_teardown
}

@test "after the network is cut for good, the lease cleans up the node and both clients end with a message" {
    on_node 'work:flood(2)'
    flooded=$(node_snapshot "$NODE")
    far --json work:three/3
    idle=$TRACER
    OUT=$OUT.flood ERR=$ERR.flood
    far --json --rate 0 work:one/1
    pause 0.3
    start=$(millis)
    line_cut
    assert_clean "$flooded" "$NODE" 40
    echo "# cut off: clean after $(($(millis) - start)) ms" >&3
    # Others can attach to the node while the clients still wait.
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 work:one/1 >/dev/null
    trace_wait 60
    [[ $status -eq 1 || $status -eq 4 ]] || fail "status $status: $talk"
    assert_equal "$(grep -c -e 'is silent' -e 'ended the tracing' -e 'stopped reading messages' -e 'closed the connection' "$ERR")" 1
    grep -v '"type":"summary"' "$OUT" | head -n 1000 | jq -e . >/dev/null
    TRACER=$idle OUT=${OUT%.flood} ERR=${ERR%.flood}
    trace_wait 60
    [[ $status -eq 1 || $status -eq 4 ]] || fail "status $status: $talk"
    echo "# the clients ended after $(($(millis) - start)) ms" >&3
    on_node 'work:calm(ok)'
    # The node logs no report either.
    run node_log "$NODE"
    refute_output --partial REPORT
}

@test "the trace survives three seconds without network and accounts for every event" {
    far --json --rate 0 work:one/1
    on_node 'work:loop(1000)'
    line_cut
    on_node 'work:loop(50000)'
    pause 3
    line_mend
    on_node 'work:loop(1000)'
    trace_end
    assert_success
    assert_account 52000
}

# The output does not grow for a while, because the ring on the node is empty.
quiet() {
    local was
    was=$(stat -c %s "$OUT")
    pause 0.5
    [[ $(stat -c %s "$OUT") == "$was" ]]
}

some_come() { [[ $(wc -l <"$OUT") -gt 20000 ]]; }

@test "a slow network loses events on the node, and every event is accounted for" {
    line_slow
    far --json --rate 0 'work:one/1'
    # The events are more than the buffer of a thread and the link can take: it carries a hundred kilobytes a second.
    on_node 'work:loop(2000000)'
    line_mend
    until_true 60 quiet
    trace_end
    assert_success
    assert_account 2000000
    run -0 jq -e 'select(.type == "summary") | .lost.ring > 0' < <(tail -n 1 "$OUT")
    # The link stays slow, and breaks at the end. The summary counts the events that were still on the node, as far as it
    # knows of them, as missing.
    line_slow
    far --json --rate 0 'work:one/1'
    on_node 'work:loop(200000)'
    until_true 30 some_come
    line_cut
    trace_end
    line_mend
    assert_success
    jq -e 'select(.type == "summary") | .seen <= 200000 and (.complete | not) and .missing > 0 and
        .seen == .shown + .filtered + .missing + ([.lost[]] | add // 0)' "$OUT" || fail "$(tail -n 1 "$OUT")"
}

@test "etrace tries the next address of a host if the first one does not answer" {
    printf '2001:db8::7 several\n%s several\n' "$NET_HOST" >"$BATS_TEST_TMPDIR/hosts"
    # The system prefers IPv6, and no host has this address.
    ip -n "$NET" -6 addr add 2001:db8::1/64 dev "p$NET" nodad
    ip -n "$NET" -6 neigh replace 2001:db8::7 lladdr 02:00:00:00:00:07 dev "p$NET"
    # etrace asks the host's epmd at every address; here an epmd listens only on the loopback.
    cat >"$BATS_TEST_TMPDIR/sh" <<END
mount --bind "$BATS_TEST_TMPDIR/hosts" /etc/hosts
getent ahosts several | sed -n 1p
"\$1" -n several@several work:one/1
"\$1" -n "${NODE%@*}@several" --port $NET_PORT --for 100ms work:one/1
END
    run timeout 60 ip netns exec "$NET" sh "$BATS_TEST_TMPDIR/sh" "$ETRACE_BIN"
    ip -n "$NET" -6 addr del 2001:db8::1/64 dev "p$NET"
    assert_success
    assert_line --index 0 --regexp '^2001:db8::7 '
    assert_line --index 1 "etrace: cannot connect to several@several: no epmd runs on several (port $ERL_EPMD_PORT)"
    assert_line --partial "etrace: $NODE · OTP"
}

@test "etrace tries a dead address of a host once and not for each node" {
    printf '2001:db8::7 several\n127.0.0.1 several\n' >"$BATS_TEST_TMPDIR/hosts"
    ip -n "$NET" -6 addr add 2001:db8::1/64 dev "p$NET" nodad
    ip -n "$NET" -6 neigh replace 2001:db8::7 lladdr 02:00:00:00:00:07 dev "p$NET"
    # An epmd that lists thirty nodes, all at one port that accepts no node.
    cat >"$BATS_TEST_TMPDIR/epmd" <<'END'
import socket, struct, subprocess, sys, threading
epmd, node = socket.create_server(("127.0.0.1", int(sys.argv[1]))), socket.create_server(("127.0.0.1", 0))
port = node.getsockname()[1]
def refuse():
    while True:
        with node.accept()[0] as c:
            c.recv(1000)
            c.sendall(b"\0\x0csnot_allowed")
            c.recv(1000)
def tell():
    while True:
        with epmd.accept()[0] as c:
            names = "".join("name n%d at port %d\n" % (i, port) for i in range(30)).encode()
            c.sendall(b"\0\0\0\0" + names if c.recv(1000)[2] == 110 else struct.pack(">BBH", 119, 0, port) + bytes(20))
for each in refuse, tell:
    threading.Thread(target=each, daemon=True).start()
sys.exit(subprocess.call(sys.argv[2:]))
END
    cat >"$BATS_TEST_TMPDIR/sh" <<END
mount --bind "$BATS_TEST_TMPDIR/hosts" /etc/hosts
getent ahosts several | sed -n 1p
/usr/bin/python3 "$BATS_TEST_TMPDIR/epmd" $ERL_EPMD_PORT "\$1" nodes several
END
    # If each node tried the dead address for its share of the connection timeout, this would take more than a minute.
    run timeout 50 ip netns exec "$NET" sh "$BATS_TEST_TMPDIR/sh" "$ETRACE_BIN"
    ip -n "$NET" -6 addr del 2001:db8::1/64 dev "p$NET"
    assert_success
    assert_line --index 0 --regexp '^2001:db8::7 '
    assert_equal "$(grep -c 'it does not allow connections from this node' <<<"$output")" 30
}

@test "a connection that fails for lack of local ports names this host as the reason" {
    # This side opened these connections, so it keeps their ports even when the node closes them.
    cat >"$BATS_TEST_TMPDIR/sh" <<END
read -r before </proc/sys/net/ipv4/ip_local_port_range
trap 'echo "\$before" >/proc/sys/net/ipv4/ip_local_port_range' EXIT
echo 50000 50001 >/proc/sys/net/ipv4/ip_local_port_range
exec 4<>/dev/tcp/$NET_HOST/$NET_PORT 5<>/dev/tcp/$NET_HOST/$NET_PORT
"\$1" -n "$(line_far)" --port $NET_PORT work:one/1 4>&- 5>&-
END
    until_true 20 carries || fail 'the link does not work'
    run timeout 60 ip netns exec "$NET" bash "$BATS_TEST_TMPDIR/sh" "$ETRACE_BIN"
    assert_failure 3
    assert_line --index 0 "etrace: cannot connect to $(line_far): all local ports of this host are in use"
}
