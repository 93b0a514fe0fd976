#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests events of ports, the selection of ports, and the messages for ports that do not exist.

load ../lib/assert
load ../lib/live

setup_file() {
    live_share ports
    on_node 'work:ask(w, fun() -> work:reader(1) end)'
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

of_ports="[ports, running_ports, send, 'receive']"

# Prints the events of one port. The connection of the test to the node is a port too.
of_port() { grep -F "$1 " "$2" | LC_ALL=C sort -s -k1,1; }

# bats test_tags=each
@test "events of a port equal those of the VM's own tracer, in the same order" {
    trace --json --rate 0 --size 4kB --port-id new @ports @in @out 'send(_, _)' 'recv(_)'
    port=$(node_eval "$NODE" "P = plain:events(#{ports => [new], port_flags => $of_ports}),
        Port = work:ask(w, fun() -> work:reader(30) end), plain:await(P, closed, 1), plain:stop(P, \"$BATS_TEST_TMPDIR/plain\"), Port")
    trace_end
    assert_success
    events_of "$OUT" >"$BATS_TEST_TMPDIR/etrace"
    of_port "$port" "$BATS_TEST_TMPDIR/plain" >"$BATS_TEST_TMPDIR/expected"
    of_port "$port" "$BATS_TEST_TMPDIR/etrace" >"$BATS_TEST_TMPDIR/seen"
    for tag in open closed in out send receive; do
        grep -q " $tag " "$BATS_TEST_TMPDIR/expected" || fail "the port has no $tag event"
    done
    # The rest of the port's last schedule comes after `closed`, and varies.
    diff <(sed '/ closed /,$d' "$BATS_TEST_TMPDIR/expected") <(sed '/ closed /,$d' "$BATS_TEST_TMPDIR/seen")
    assert_equal "$(grep ' closed ' "$BATS_TEST_TMPDIR/seen")" "$(grep ' closed ' "$BATS_TEST_TMPDIR/expected")"
    assert_account any
    # `out` has the time that the port ran on the scheduler.
    jq -es 'any(.[]; .type == "out" and .dur_us > 0)' "$OUT"
}

# bats test_tags=each
@test "@open shows the command and the process that opened the port, @closed the reason" {
    trace -P w @open @closed
    on_node 'work:ask(w, fun() -> work:reader(1) end)'
    trace_end
    assert_success
    assert_output --regexp '#Port<0\.[0-9]+>(\("cat"\))? open cat by <0\.[0-9]+\.0>(\(w\))?'
    assert_output --regexp '#Port<0\.[0-9]+>(\("cat"\))? closed normal'
}

@test "links and registrations of a port are events" {
    trace --json @ports @procs -P w --port-id new
    on_node 'work:ask(w, fun() -> P = open_port({spawn, "cat"}, []), unlink(P), register(puss, P), unregister(puss), link(P), port_close(P) end)'
    trace_end
    assert_success
    port=$(json_of open .pid)
    run jq -r --arg port "$port" 'select(.pid == $port) | .type' "$OUT"
    for type in open getting_unlinked register unregister getting_linked closed; do
        assert_line "$type"
    done
    # Both expressions set the same flag of the port, which must not cause a notice.
    assert_equal "$(json_of notice .tag)" ''
}

# bats test_tags=each
@test "--port-id selects a port by number, the ports of a driver, existing ports or new ports" {
    ports='[P || P <- erlang:ports(), {name, "cat"} =:= erlang:port_info(P, name)]'
    on_node 'work:ask(w, fun() -> put(cats, [open_port({spawn, "cat"}, [stream, binary]) || _ <- [1, 2]]) end)'
    mapfile -t cats < <(node_eval "$NODE" "$ports" | grep -oE '#Port<[0-9.]+>')
    purr='work:ask(w, fun() -> [begin port_command(P, <<"purr">>), receive {P, {data, _}} -> ok end end || P <- get(cats)] end)'
    assert_equal "${#cats[@]}" 2
    for who in "${cats[1]}" driver:cat existing; do
        traced --json --port-id "$who" 'send(_, _) where text =~ "purr"' -- "$purr"
        assert_success
        assert_equal "$(json_of send .pid | sort -u | wc -l)" "$([[ $who == '#Port'* ]] && echo 1 || echo 2)"
        run json_of send .pid
        assert_line "${cats[1]}"
        [[ $who == '#Port'* ]] || assert_line "${cats[0]}"
    done
    traced --json --port-id new 'send(_, _) where text =~ "purr"' -- "$purr"
    run json_of send .pid
    refute_line "${cats[0]}"
    refute_line "${cats[1]}"
    on_node 'work:ask(w, fun() -> [port_close(P) || P <- erase(cats)] end)'
}

@test "--port-id alone traces only ports, and with -P ports and processes" {
    chat='work:ask(w, fun() -> self() ! own, receive own -> work:reader(1) end end)'
    traced --json --port-id new 'send(_, _)' -- "$chat"
    assert_success
    assert_equal "$(json_of send .pid | grep -vc '^#Port' || true)" 0
    assert [ "$(json_of send .pid | grep -c '^#Port')" -ge 1 ]
    traced --json -P w --port-id new 'send(_, _)' -- "$chat"
    run json_of send .msg
    assert_line own
    run json_of send .pid
    assert_line --regexp '^#Port'
    traced --json -P w 'send(_, _)' -- "$chat"
    assert_equal "$(json_of send .pid | grep -c '^#Port' || true)" 0
}

@test "an unknown port is refused with a hint" {
    run "$ETRACE_BIN" -n "$NODE" --port-id '#Port<0.99999>' @in
    assert_failure 5
    assert_line -n 0 'etrace: there is no port #Port<0.99999> on the node'
    assert_line -n 1 --partial 'hint: '
    run "$ETRACE_BIN" -n "$NODE" --port-id driver:tcp_inte @in
    assert_failure 5
    assert_line -n 0 'etrace: no port of the node has the driver tcp_inte'
    assert_line -n 1 'hint: did you mean tcp_inet?'
    run "$ETRACE_BIN" -n "$NODE" --port-id tcp @in
    assert_failure 2
    assert_line -n 0 "etrace: --port-id does not take 'tcp'"
}

@test "a driver that sends to a dead process does no harm" {
    # For this event the VM calls the wrong callback. The tracer must leave that callback out (nif/tracer.h).
    trace --json --port-id new 'send(_, _)' @ports
    on_node 'work:ask(w, fun() ->
        Me = self(),
        {Q, R} = spawn_monitor(fun() ->
            {ok, L} = gen_tcp:listen(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]), {ok, N} = inet:port(L),
            {ok, C} = gen_tcp:connect({127, 0, 0, 1}, N, [binary, {active, true}]), {ok, A} = gen_tcp:accept(L),
            P = open_port({spawn, "cat"}, [stream, binary]),
            [unlink(X) || X <- [P, C, A]],
            Me ! {orphans, [P, C, A]},
            [begin port_command(P, <<"to nobody">>), gen_tcp:send(A, <<"to nobody">>) end || _ <- lists:seq(1, 50)] end),
        receive {_, R, _, Q, _} -> receive {orphans, Ports} -> put(orphans, Ports) end end, work:reader(20) end)'
    trace_end
    assert_success
    assert_account any
    assert [ "$(json_of closed .pid | wc -l)" -ge 1 ]
    on_node 'work:ask(w, fun() -> [catch port_close(P) || P <- erase(orphans)] end)'
}
