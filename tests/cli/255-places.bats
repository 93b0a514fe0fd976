#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests what `etrace doctor` says in each place where people run nodes: the step that fails, and the command that helps.
# Suites 210, 215 and 240 have nodes of old releases, without distribution, and with TLS.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

# Functions for the scripts.
PLACES='
    . "$ETRACE_ROOT/tests/lib/container.bash"
    mount -t tmpfs -o mode=755 none /mnt
    cp "$ETRACE_BIN" /mnt/etrace
    doctor() { "$ETRACE_BIN" doctor "$@" 2>&1 || true; }
    # Runs etrace as another user without HOME, or as a root that lacks capabilities.
    somebody() { env -u HOME setpriv --reuid 65533 --regid 65533 --clear-groups /mnt/etrace "$@" 2>&1 || true; }
    weak_root() { env -u HOME setpriv --bounding-set -sys_ptrace,-sys_admin /mnt/etrace "$@" 2>&1 || true; }
    healthy() { [[ $1 == *"residue "* && $1 != *FAIL* ]] || is "$1" "no failure"; }
    # Starts a node without epmd in the container pod: its first process is a script.
    pod() { # TMP-OPTIONS
        container_make pod "$1"
        printf "#!/bin/sh\nHOME=/tmp %s -noinput -start_epmd false -erl_epmd_port %s -name my_app@127.0.0.1\n" "$ETRACE_ERL" "${POD_PORT:-0}" >"$ROOT/app/start"
        chmod 755 "$ROOT/app/start"
        container_start pod /app/start
        runs() { "$ETRACE_BIN" nodes 2>&1 | grep -q "^my_app@127.0.0.1 .*  ok, with -p"; }
        await runs
        NODE_PID=$("$ETRACE_BIN" nodes --json | jq .os_pid)
    }
'

# bats test_tags=long
@test "without epmd etrace and doctor look at the processes, and -n takes the only one of that name" {
    alone "$PLACES"'
        export ERL_EPMD_PORT=1
        said=$(doctor)
        has "$said" "none runs here (port 1), so etrace looks at the processes of this host"
        has "$said" "FAIL node       no node was given, and no epmd runs on this host (port 1)"
        has "$said" "hint: give -n NODE, or -p OSPID"
        dist="-start_epmd false -erl_epmd_port 0 -kernel inet_dist_use_interface {127,0,0,1}"
        up erl
        said=$(doctor)
        healthy "$said"
        has "$said" "none runs here (port 1), so etrace looks at the processes of this host"
        has "$said" "$UP listens on port"
        for name in "$UP" "${UP%@*}"; do
            said=$(doctor -n "$name")
            healthy "$said"
            has "$said" "none runs here (port 1), so etrace looks at the processes of this host"
            said=$("$ETRACE_BIN" -n "$name" --for 50ms lists:seq/2 2>&1)
            has "$said" "etrace: $UP · OTP"
        done
        healthy "$(doctor -p "$PID")"
        has "$(doctor -n another)" "FAIL node       cannot connect to another@$(hostname -s): no epmd runs on"
        # Several processes have the name.
        NAME=${UP%@*}@localhost
        up erl
        said=$("$ETRACE_BIN" -n "${UP%@*}" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "hint: process"
        has "$said" "has this name, and this epmd does not know it: try -p"'
}

@test "doctor says how to reach a node of another user" {
    alone "$PLACES"'
        up erl -setcookie in_the_arguments
        # The arguments have the cookie, and the name, which epmd knows.
        healthy "$(somebody doctor -p "$PID")"
        said=$(ERL_EPMD_PORT=1 somebody doctor -p "$PID")
        has "$said" "FAIL node       cannot see the sockets of process $PID: Permission denied"
        has "$said" "hint: run etrace as that user or as root, sudo etrace -p $PID, or use -n NODE with the cookie"
        healthy "$(somebody doctor -n "$UP")"
        kill -KILL "$PID"
        # The port of a node without epmd is among its arguments.
        export ERL_EPMD_PORT=1
        port=$((20000 + RANDOM % 12000))
        dist="-start_epmd false -erl_epmd_port $port -kernel inet_dist_use_interface {127,0,0,1}"
        up erl -setcookie in_the_arguments
        said=$(somebody doctor)
        healthy "$said"
        has "$said" "$UP listens on port $port"
        healthy "$(somebody doctor -p "$PID")"
        has "$(somebody nodes)" "  ok, with -p $PID"
        kill -KILL "$PID"
        up erl
        said=$(somebody doctor)
        has "$said" "FAIL cookie     no cookie: "
        hint="hint: the cookie of process $PID is hidden: run etrace as its user or as root, with sudo; or use --cookie-file"
        has "$said" "$hint"
        has "$(somebody -p "$PID" lists:seq/2)" "$hint"
        # Our own cookie, which we cannot read, changes nothing.
        (umask 077 && mkdir /mnt/home && echo of_root >/mnt/home/.erlang.cookie)
        chmod 711 /mnt/home
        said=$(setpriv --reuid 65533 --regid 65533 --clear-groups env HOME=/mnt/home /mnt/etrace -p "$PID" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "etrace: cannot open the cookie file ~/.erlang.cookie: Permission denied"
        has "$said" "$hint"'
}

# bats test_tags=long
@test "doctor reaches a container as root, and says what else is needed" {
    alone "$PLACES"'
        pod exec
        for pid in "$NODE_PID" "$CONTAINER_PID"; do
            said=$(doctor -p "$pid")
            healthy "$said"
            has "$said" "in its own network namespace"
            has "$said" "the cookie is accepted (from /tmp/.erlang.cookie of process $NODE_PID)"
            has "$said" "ok   NIF        loaded"
        done
        has "$(doctor)" "hint: process $NODE_PID runs Erlang: -p $NODE_PID attaches to it, or says why it cannot"
        has "$(doctor -n my_app)" "hint: process $NODE_PID has this name"
        has "$(somebody doctor -p "$CONTAINER_PID")" "hint: run etrace as that user or as root, sudo etrace -p $NODE_PID, or use"
        said=$(setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/etrace doctor -p "$CONTAINER_PID" 2>&1) || is "$?" 3
        has "$said" "process $NODE_PID is in another network namespace, as in a container, and etrace cannot enter it"
        has "$said" "hint: run etrace as root, sudo etrace -p $NODE_PID, or inside the container"
        # Inside, as the same user, and beside it with the file system of another container.
        healthy "$(beside pod 65534 /mnt/etrace doctor)"
        cp "$ETRACE_BIN" "$ROOT/tmp/etrace"
        healthy "$(container_exec pod 65534 /tmp/etrace doctor)"
        rm "$ROOT/tmp/etrace"'
}

@test "doctor says how an ordinary user reaches a node in a rootless container" {
    alone "$PLACES"'
        CONTAINERS=/mnt/containers
        container_make own exec
        printf "#!/bin/sh\nHOME=/tmp exec %s -noinput -start_epmd false -erl_epmd_port 0 -name my_app@127.0.0.1\n" "$ETRACE_ERL" >"$ROOT/app/start"
        chmod 755 "$ROOT/app/start"
        user="env -u HOME setpriv --reuid 65533 --regid 65533 --clear-groups"
        $user unshare --user --map-root-user --net --fork sh -c "ip link set lo up && exec chroot $ROOT /app/start" </dev/null >log.own 2>&1 &
        runs() { "$ETRACE_BIN" nodes 2>&1 | grep -q "^my_app@127.0.0.1 .*  ok, with -p"; }
        await runs
        NODE_PID=$("$ETRACE_BIN" nodes --json | jq .os_pid)
        said=$(somebody doctor -p "$NODE_PID")
        has "$said" "process $NODE_PID is in another network namespace, as in a container, and etrace cannot enter it"
        enter="nsenter --user --preserve-credentials --target $NODE_PID"
        has "$said" "hint: enter its user namespace: $enter etrace -p $NODE_PID"
        healthy "$($user $enter /mnt/etrace doctor -p "$NODE_PID" 2>&1)"
        # It does not belong to this user.
        said=$(setpriv --reuid 65532 --regid 65532 --clear-groups /mnt/etrace doctor -p "$NODE_PID" 2>&1) || is "$?" 3
        [[ $said != *"user namespace"* ]] || is "$said" "no hint at the user namespace"
        kill -KILL "$NODE_PID"'
}

@test "doctor says that a node of another user may be in a container" {
    ALONE_NET=yes alone "$PLACES"'
        POD_PORT="6789 -setcookie its_own"
        pod exec
        said=$(somebody doctor -p "$NODE_PID")
        has "$said" "FAIL handshake  cannot connect to my_app@127.0.0.1: nothing listens on port 6789 of 127.0.0.1"
        has "$said" "hint: process $NODE_PID may be in a container, which only its user and root see: run etrace with sudo"
        has "$(somebody nodes)" "hint: process $NODE_PID may be in a container"'
}

# bats test_tags=long
@test "doctor says when root lacks the capability to see a process" {
    alone "$PLACES"'
        pod exec
        weak() { beside pod 0 setpriv --bounding-set -sys_ptrace,-sys_admin /mnt/etrace "$@" 2>&1 || true; }
        said=$(weak doctor -p 1)
        has "$said" "FAIL node       cannot see the sockets of process "
        has "$said" "hint: root needs the capability SYS_PTRACE: docker run --cap-add=SYS_PTRACE, kubectl debug --profile=sysadmin; or use --port"
        has "$(weak nodes)" "its sockets are hidden, although etrace runs as root"
        port=$(jq .port <("$ETRACE_BIN" nodes --json))
        (umask 077 && tr -d "\n" <"$ROOT/tmp/.erlang.cookie" >/mnt/cookie)
        healthy "$(weak doctor --port "$port" --cookie-file /mnt/cookie)"'
}

# bats test_tags=long
@test "doctor says which directory a read-only container needs, and traces without it" {
    alone "$PLACES"'
        pod noexec
        said=$(doctor -p "$CONTAINER_PID")
        healthy "$said"
        has "$said" "warn NIF        not loaded, so at most 1000 events a second: "
        has "$said" "/tmp: noexec"
        has "$said" "hint: give the node a writable directory without noexec: a tmpfs or an emptyDir at /tmp, or RELEASE_TMP"
        "$ETRACE_BIN" doctor --json -p "$CONTAINER_PID" >lines
        has "$(jq -r "select(.step == \"NIF\") | .result + \" \" + .hint" lines)" "warning give the node a writable directory"
        "$ETRACE_BIN" schema >schema
        /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" schema lines >&2
        is "$(find "$ROOT/tmp" -name "etrace*")" ""'
}

# bats test_tags=long
@test "doctor names the architecture of a node that no NIF was built for" {
    alone "$PLACES"'
        erl -noshell -eval "io:put_chars([os:getenv(\"ROOTDIR\"), \" \", os:getenv(\"BINDIR\")]), halt()." >dirs
        read -r root bin <dirs || [[ $root ]]
        cp -r "$bin" bin
        sed -i "s/x86_64-pc-linux-gnu/riscv64-pc-linuxgnu/g" bin/beam.smp
        printf "#!/bin/sh\nROOTDIR=%s BINDIR=%s EMU=beam PROGNAME=erl exec %s/bin/erlexec \"\$@\"\n" "$root" "$PWD/bin" "$PWD" >foreign
        chmod 755 foreign
        up ./foreign
        said=$(doctor)
        healthy "$said"
        has "$said" "warn NIF        not loaded, so at most 1000 events a second: this etrace has no library for riscv64-pc-linuxgnu"
        has "$said" "hint: etrace version -v lists the architectures of this etrace; a build for that one loads its NIF"
        said=$("$ETRACE_BIN" -p "$PID" --for 50ms lists:seq/2 2>&1)
        has "$said" "this etrace has no library for riscv64-pc-linuxgnu"'
}

@test "doctor finds another directory when those of the node have vanished, and nothing stays behind" {
    alone "$PLACES"'
        mkdir gone
        mount -t tmpfs none /dev/shm
        printf "#!/bin/sh\ncd gone\nexport RELEASE_TMP=\$PWD TMPDIR=\$PWD XDG_RUNTIME_DIR=\$PWD\nexec erl \"\$@\"\n" >run
        chmod 755 run
        up ./run
        rmdir gone
        said=$(doctor)
        healthy "$said"
        has "$said" "ok   NIF        loaded"
        has "$(tr "\0" "\n" <"/proc/$PID/environ")" "TMPDIR=$PWD/gone"
        is "$(ls -A gone /dev/shm home/.cache 2>/dev/null)" "/dev/shm:"
        # The virtual machine unmaps the library when it has purged the module.
        unmapped() { ! grep -q "/etrace-[0-9a-f]*/" "/proc/$PID/maps"; }
        await unmapped'
}

# bats test_tags=long
@test "doctor reaches a node that speaks IPv6 only, with and without epmd" {
    [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
    alone "$PLACES"'
        dist="-proto_dist inet6_tcp -start_epmd false -kernel inet_dist_use_interface {0,0,0,0,0,0,0,1}"
        NAME=six$RANDOM$RANDOM@::1
        up erl
        six=$UP
        for where in "" "-p $PID" "-n $six" "-n ${six%@*}"; do
            # shellcheck disable=SC2086
            said=$(doctor $where)
            healthy "$said"
            has "$said" "connected to $six as a hidden node"
        done
        kill -KILL "$PID"
        export ERL_EPMD_PORT=1
        port=$((20000 + RANDOM % 12000))
        dist+=" -erl_epmd_port $port"
        NAME=$six
        up erl
        for where in "" "-p $PID" "--port $port" "--port $port -n $six"; do
            # shellcheck disable=SC2086
            said=$(doctor $where)
            healthy "$said"
            has "$said" "connected to $six as a hidden node"
        done'
}
