# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Puts a network link between a node and its client, for the suites about the network: a veth pair with one end in a
# network namespace of its own. Load it after live.bash.
#
#   line_begin NAME   calls live_begin for a node that listens on every address. Sets and exports NET (the namespace),
#                     NET_HOST (the node's address), NET_PEER (the client's address) and NET_PORT (the node's port). The
#                     interfaces are h$NET here and p$NET in the namespace.
#   line_end          calls live_end and deletes the link
#   line_cut          sets the link down; line_mend sets it up again and makes it fast
#   line_slow         makes the link slow
#   line_far          prints the name of the node from the other end
#   far ARGS...       calls trace from the other end of the link
#   carries           succeeds when the link works, which takes some time after the interface is set up again

line_begin() {
    local n=$((RANDOM % 250 + 1)) m=$((RANDOM % 60 * 4))
    export NET=et$$ NET_HOST=10.$((RANDOM % 100 + 100)).$n.$((m + 1)) NET_PEER NET_PORT
    NET_PEER=${NET_HOST%.*}.$((m + 2))
    ip netns add "$NET"
    ip link add "h$NET" type veth peer name "p$NET" netns "$NET"
    ip addr add "$NET_HOST/30" dev "h$NET"
    ip link set "h$NET" up
    ip -n "$NET" addr add "$NET_PEER/30" dev "p$NET"
    ip -n "$NET" link set "p$NET" up
    ip -n "$NET" link set lo up
    # For a repeated -kernel parameter the first value holds.
    erl_is 'exec "$ETRACE_ERL" -kernel inet_dist_use_interface "{0,0,0,0}" "$@"'
    ETRACE_ERL=$BATS_FILE_TMPDIR/erl live_begin "$1"
    NET_PORT=$("${ETRACE_ERL%/*}/epmd" -names | sed -n "s/^name ${LIVE_NODE%@*} at port //p")
}

line_far() { echo "${NODE%@*}@$NET_HOST"; }

line_cut() { ip link set "h$NET" down; }

line_mend() {
    ip link set "h$NET" up
    tc qdisc del dev "h$NET" root 2>/dev/null || true
}

line_slow() { tc qdisc add dev "h$NET" root tbf rate 1mbit burst 16k latency 100ms; }

far() {
    local near=$NODE bin=$ETRACE_BIN
    until_true 20 carries || fail 'the link does not work'
    printf '#!/bin/sh\ncommand=$1\nshift\nexec ip netns exec %s "%s" "$command" --port %s "$@"\n' "$NET" "$ETRACE_BIN" "$NET_PORT" >"$BATS_TEST_TMPDIR/far"
    chmod +x "$BATS_TEST_TMPDIR/far"
    NODE=$(line_far) ETRACE_BIN=$BATS_TEST_TMPDIR/far
    trace "$@"
    NODE=$near ETRACE_BIN=$bin
    ! gone "$TRACER" || fail "etrace ended: $(cat "$ERR")"
}

line_end() {
    live_end
    ip link del "h$NET" 2>/dev/null || true
    ip netns del "$NET" || true
}

carries() { timeout 1 ip netns exec "$NET" bash -c "exec 4<>/dev/tcp/$NET_HOST/$NET_PORT" 2>/dev/null; }
