#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests where a cookie may go (cli/node/trust.h). A stranger is a process of another user that pretends to be a node: it
# sends a challenge, and must get an answer only if the user gave the cookie or named its host. Needs root.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

# For scripts of alone(): begins a directory that other users can read, with what they need.
STRANGERS='
    mount -t tmpfs -o mode=777 none /mnt
    cp "$ETRACE_ROOT/tests/lib/stranger.py" /mnt/
    cp "$(type -P bash)" /mnt/beam.smp
    cd /mnt
    mkfifo -m 666 never
    export HOME=/mnt/our
    cookie_file our/.erlang.cookie ourcookie
    cookie_file ./given givencookie
    # stranger FILE NAME [ADDRESS [PORT [EPMD]]]: starts one as user 65534, and sets PORT.
    stranger() {
        setpriv --reuid 65534 --regid 65534 --clear-groups /usr/bin/python3 stranger.py "$@" 2>>log.stranger &
        await [ -s "$1" ]
        PORT=$(head -n 1 "$1")
    }
    # vm UID ARGUMENT...: starts a process that looks like a virtual machine with these arguments, and sets PID.
    vm() {
        local uid=$1
        shift
        setpriv --reuid "$uid" --regid "$uid" --clear-groups \
            ./beam.smp -c "read -r <never" beam -root /x -bindir /x/erts-17.0/bin "$@" &
        PID=$!
        runs() { [[ $(readlink "/proc/$PID/exe") == */beam.smp ]]; }
        await runs
    }
    # said OPTION...: sets SAID to what etrace says; it must fail.
    said() { SAID=$("$ETRACE_BIN" "$@" 2>&1 </dev/null) && is "$SAID" "a failure" || true; }
    # got FILE N: the stranger got N answers, and at least one connection. Forgets them.
    got() {
        heard() { [[ $(grep -c -e heard -e answered "$1") -gt 0 ]]; }
        await heard "$1"
        is "$1: $(grep -c answered "$1" || true)" "$1: $2"
        : >"$1"
    }
    # completed NODE: completion of a module, a function and a process connects to the stranger and gives it no answer.
    completed() {
        local word
        for word in li lists:s "-P w"; do
            # shellcheck disable=SC2086
            is "$("$ETRACE_BIN" __complete trace -n "$1" $word)" ""
            got heard 0
        done
    }
    # other_host: makes a host of its own, to which only the address 10.9.9.2 leads. `there` runs a command on it.
    other_host() {
        unshare --net sleep 1000 &
        other=$!
        apart() { [[ $(readlink /proc/$other/ns/net) != "$(readlink /proc/self/ns/net)" ]]; }
        await apart
        ip link add v0 type veth peer name v1 netns "$other"
        ip addr add 10.9.9.1/24 dev v0
        ip link set v0 up
        there="nsenter -t $other -n"
        $there ip link set lo up
        $there ip addr add 10.9.9.2/24 dev v1
        $there ip link set v1 up
        $there setpriv --reuid 65534 --regid 65534 --clear-groups \
            /usr/bin/python3 stranger.py heard shop 10.9.9.2 4411 "$ERL_EPMD_PORT" &
        await [ -s heard ]
    }'

@test "a name that another user registered with epmd gets no answer, whatever names it" {
    ALONE_NET=yes alone "$STRANGERS"'
        stranger heard shop
        host=$(hostname -s)
        for ways in "-n shop" "-n shop@$host" "-n shop@localhost" "-n shop@127.0.0.1" "--port $PORT" "-n shop --port $PORT" ""; do
            for own in "" mine; do
                # shellcheck disable=SC2086
                RELEASE_COOKIE=$own said trace $ways lists:seq/2
                has "$SAID" "port $PORT belongs to another user (uid 65534), who does not get your cookie"
                has "$SAID" "hint: --cookie-file FILE uses that cookie everywhere"
            done
        done
        ETRACE_NODE=shop said trace lists:seq/2
        for command in ps stacks sessions "info lists:seq/2" "top lists:seq/2" requests "why x" "ls lists:seq" doctor; do
            # shellcheck disable=SC2086
            said $command -n shop
            has "$SAID" "who does not get your cookie"
        done
        "$ETRACE_BIN" nodes >text
        grep -qE "^shop@$host +$PORT .* port $PORT belongs to another user" text
        is "$("$ETRACE_BIN" nodes --json | jq -c "[.reachable, .port]")" "[false,$PORT]"
        "$ETRACE_BIN" nodes 127.0.0.1 >text
        grep -q "belongs to another user" text
        RELEASE_NODE=shop said trace --reattach lists:seq/2
        got heard 0
        completed shop
        completed "shop@$host"
        said trace -n shop --cookie-file given lists:seq/2
        got heard 1'
}

@test "a process that only its arguments call by the name of a node gets no answer" {
    ALONE_NET=yes alone "$STRANGERS"'
        cp "$(readlink -f /usr/bin/python3)" /mnt/beam.python
        # It is registered with an epmd that nobody asks.
        ERL_EPMD_PORT=4400 epmd -daemon
        ERL_EPMD_PORT=4400 setpriv --reuid 65534 --regid 65534 --clear-groups ./beam.python stranger.py heard shop 127.0.0.1 0 0 \
            -root /x -bindir /x/erts-17.0/bin -sname shop 2>>log.stranger &
        await [ -s heard ]
        for way in shop "shop@$(hostname -s)" shop@localhost; do
            said trace -n "$way" lists:seq/2
            has "$SAID" "belongs to another user (uid 65534), who does not get your cookie"
            ERL_EPMD_PORT=1 said trace -n "$way" lists:seq/2
            has "$SAID" "belongs to another user (uid 65534), who does not get your cookie"
        done
        got heard 0'
}

@test "the cookie of a process goes only to a socket of that process" {
    ALONE_NET=yes alone "$STRANGERS"'
        # A stranger owns the port that the epmd gives, and another user the process with the name.
        vm 65533 -sname shop -setcookie of_shop
        stranger heard shop 127.0.0.1 0 4400
        for command in "trace -n shop lists:seq/2" "ps -n shop" nodes; do
            # shellcheck disable=SC2086
            ERL_EPMD_PORT=4400 "$ETRACE_BIN" $command >text 2>&1 </dev/null || true
            has "$command: $(<text)" "belongs to another user (uid 65534)"
        done
        # A process says at which port it listens, and does not.
        vm 65534 -name lone@127.0.0.1 -setcookie of_lone -erl_epmd_port "$PORT"
        said trace -p "$PID" lists:seq/2
        said trace -n lone --port "$PORT" lists:seq/2
        got heard 0'
}

@test "our own cookie goes to another host only if the user named the host" {
    ALONE_NET=yes alone "$STRANGERS"'
        other_host
        # A process names another host, as -p and as the only node.
        vm 65534 -name shop@10.9.9.2 -setcookie of_shop -erl_epmd_port 4411
        said trace -p "$PID" lists:seq/2
        has "$SAID" "it answers, but you did not name its host, so it gets no cookie"
        # nodes connects to the names that it finds, and completion to a name that is being typed.
        "$ETRACE_BIN" nodes 10.9.9.2 >text
        grep -q "shop@10.9.9.2 .* it answers, but you did not name its host, so it gets no cookie" text
        got heard 0
        completed shop@10.9.9.2
        said trace -n shop@10.9.9.2 lists:seq/2
        got heard 1'
}

# Needs root and other_host. cluster WITH N SAID: a node that accepts the cookie of the words WITH lists shop@10.9.9.2, where a
# stranger listens. --cluster gives the stranger N answers and says SAID.
CLUSTER='
    other_host
    dist=
    # The real shop registers with an epmd that only its own host reaches, so etrace finds the stranger in its place.
    ERL_EPMD_ADDRESS=127.0.0.1 $there epmd -daemon
    cluster() {
        local w
        # shellcheck disable=SC2086
        HOME_OF_NODE=/mnt/our NAME=w@10.9.9.1 up erl $1
        w=$PID
        # shellcheck disable=SC2086
        HOME_OF_NODE=/mnt/our NAME=shop@10.9.9.2 AS=$there BEFORE="pong = net_adm:ping(list_to_atom(\"w@10.9.9.1\"))" up erl $1
        "$ETRACE_BIN" trace -n w@10.9.9.1 --cluster --for 100ms lists:seq/2 >text 2>&1 </dev/null
        has "$(<text)" "$3"
        got heard "$2"
        kill "$w" "$PID"
        wait "$w" "$PID" || true
    }'

@test "--cluster sends our own cookie to a listed host only if the node that lists it accepted that cookie" {
    ALONE_NET=yes alone "$STRANGERS$CLUSTER"'
        cluster "-setcookie of_w" 0 "shop@10.9.9.2: it answers, but you did not name its host, so it gets no cookie"
        cluster "" 1 "shop@10.9.9.2"'
}

@test "only a process of the command or of our user is the node of a command" {
    ALONE_NET=yes alone "$STRANGERS"'
        stranger heard shop
        # This iex tells where its node would be, and starts none.
        printf "%s\n" "#!/bin/sh" "echo \"\$ETRACE_HOLD\" >/mnt/told" "exec sleep 3" >iex
        chmod 755 iex
        "$ETRACE_BIN" -q lists:seq/2 -- ./iex --sname shop >text 2>&1 </dev/null &
        etrace=$!
        await [ -s told ]
        export ETRACE_HOLD=$(<told)
        vm 65534 -sname shop
        wait "$etrace" || true
        grep -q . text
        is "$(wc -l <heard)" 1'
}

@test "while the node of a command boots, a stranger in its place gets neither our cookie nor that of the command" {
    ALONE_NET=yes alone "$STRANGERS"'
        cp "$(readlink -f /usr/bin/python3)" /mnt/beam.python
        other_host
        stranger near shop
        # This iex becomes the process of a node that listens, and that is not registered.
        printf "%s\n" "#!/bin/sh" "exec ./beam.python stranger.py booting \"\" 127.0.0.1 0 0 -root /x -bindir /x/erts-17.0/bin \"\$@\"" >iex
        chmod 755 iex
        reached() { [[ $(grep -c -e heard -e answered "$@") == *:[1-9]* ]]; }
        for cookie in "" "-setcookie of_shop"; do
            for name in "-sname shop" "-name shop@10.9.9.2"; do
                tee near heard booting </dev/null
                # shellcheck disable=SC2086
                "$ETRACE_BIN" -q lists:seq/2 -- ./iex $name $cookie >text 2>&1 </dev/null &
                etrace=$!
                await reached booting near heard
                is "$name: $(cat near heard | grep -c answered || true)" "$name: 0"
                kill -KILL "$etrace"
                wait "$etrace" || true
            done
        done'
}
