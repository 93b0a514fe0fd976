# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Starts and ends processes in the background. Source it.
#
# The tests use an epmd of their own on a free port of the loopback, so their nodes neither meet nor disturb the nodes
# of the system.
#
# epmd_start EPMD      starts an epmd, exports ERL_EPMD_PORT and sets epmd_pid; the epmd dies with its shell
# epmd_stop            ends it
# await_line PID FD    sets LINE to the next line from FD. Returns 1 after two minutes, or ten for an emulated node, or
#                      when process PID is gone. FD is a fifo that the caller opens before the start, because a fifo
#                      without a reader loses its data.
#
# pause SECONDS        sleeps without starting a process. Process numbers are reused soon, and bash 5.2 can wait for
#                      ever for a process whose number belonged to an earlier one. It reads from the fifo QUIET of
#                      tests/run, into which nothing writes.
#
# child PID            succeeds when PID is a running process that this shell started. The number alone proves nothing:
#                      bash reaps a process at once, and there are only 32768 numbers.
# child_kill PID [SIGNAL]
#                      sends SIGNAL (KILL) to PID if it is a child

# freeze PID...        stops processes (SIGSTOP), and returns when all of their threads have stopped

# without_proc COMMAND...
#                      runs the command, a program, as root where /proc is empty

LINE=
epmd_pid=

# The address sanitizer needs /proc to look for leaks.
without_proc() {
    ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 unshare -m sh -c 'mount -t tmpfs none /proc && exec "$@"' - "$@"
}

# The state and the parent follow the name, which may contain any character.
child() {
    local stat
    read -r -d '' stat 2>/dev/null <"/proc/$1/stat" || [[ ${stat:-} ]] || return 1
    stat=${stat##*) }
    [[ $stat != Z* && ($stat == ?" $BASHPID "* || $stat == ?" $$ "*) ]]
}

child_kill() { ! child "$1" || kill "-${2:-KILL}" "$1" 2>/dev/null || true; }

# Kills the children of this shell that still run, and waits until they are gone.
children_end() { # PID...
    local pid
    for pid; do
        child_kill "$pid"
        wait "$pid" 2>/dev/null || true
    done
}

quiet_open() {
    if [[ -p ${QUIET:-} ]]; then exec {quiet_fd}<>"$QUIET"; else exec {quiet_fd}<> <(:); fi
}

pause() {
    [[ ${quiet_fd:-} ]] || quiet_open
    read -r -t "$1" -u "$quiet_fd" || true
}

# On a busy host the other threads of a process run on for a while after the signal.
freeze() {
    kill -STOP "$@"
    until_true 10 frozen "$@"
}
frozen() {
    local pid stat
    for pid; do
        for stat in /proc/"$pid"/task/*/stat; do
            [[ $(<"$stat") == *') T '* ]] || return 1
        done
    done
}

port_answers() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

epmd_start() {
    local epmd=$1 attempt i
    for ((attempt = 0; attempt < 50; attempt++)); do
        # The port is below the range of ephemeral ports of the kernel.
        ERL_EPMD_PORT=$((20000 + RANDOM % 12000))
        port_answers "$ERL_EPMD_PORT" && continue
        setpriv --pdeathsig KILL \
            "$epmd" -port "$ERL_EPMD_PORT" -address 127.0.0.1 </dev/null >/dev/null 2>&1 3>&- &
        epmd_pid=$!
        for ((i = 0; i < 500; i++)); do
            kill -0 "$epmd_pid" 2>/dev/null || break
            if port_answers "$ERL_EPMD_PORT"; then
                export ERL_EPMD_PORT
                return 0
            fi
            pause 0.01
        done
        epmd_stop
    done
    echo "$epmd did not start" >&2
    return 1
}

epmd_stop() {
    [[ $epmd_pid ]] || return 0
    kill "$epmd_pid" 2>/dev/null || true
    wait "$epmd_pid" 2>/dev/null || true
    epmd_pid=
}

await_line() {
    local piece most=${ETRACE_SLOW:+600} end
    end=$((SECONDS + ${most:-120}))
    LINE=
    while ((SECONDS < end)) && kill -0 "$1" 2>/dev/null; do
        # The time limit of read may cut a line in two.
        if read -r -t 0.2 -u "$2" piece; then
            LINE+=$piece
            return 0
        fi
        LINE+=$piece
    done
    return 1
}

# The interval grows with the time waited: each check starts processes, and lanes of tests share the processors.
until_true() {
    local start=${EPOCHREALTIME/./} end waited between
    end=$((start + $1 * 1000000))
    shift
    WAITS="$*"
    until "$@"; do
        waited=$((${EPOCHREALTIME/./} - start))
        ((start + waited < end)) || return 1
        between=$((waited < 100000 ? 10000 : waited < 2000000 ? waited / 10 : 200000))
        printf -v between '0.%06d' "$between"
        pause "$between"
    done
    WAITS=
}
