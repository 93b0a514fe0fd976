# shellcheck shell=bash
# Processes that are started in the background: an epmd of one's own, on a free port of the
# loopback, so that the nodes that are started here neither meet nor disturb the nodes of the
# system; and waiting for what a process has to say once it is up. To be sourced.
#
# epmd_start EPMD      starts it, exports ERL_EPMD_PORT, sets epmd_pid; it dies with its shell
# epmd_stop            ends it
# await_line PID FD    sets LINE to the line that comes from FD, in 120 s or until the process is gone.
#                      FD is a fifo held open since before the start: what is written to a fifo that
#                      nobody holds is lost.

# pause SECONDS        starts nothing: each number that is taken comes again soon, and bash 5.2 has been seen to wait for ever for a
#                      process that had the number of one before

# child PID            whether it is a process that this shell has started and that still runs. A number by itself is soon
#                      that of another process: bash takes note of an end at once, and there are but 32768 of them.
# child_kill PID [SIGNAL]   sends it a signal (KILL) if it is one

LINE=
epmd_pid=

# Behind the name, in which anything may stand, are the state and the parent.
child() {
    local stat
    read -r -d '' stat 2>/dev/null <"/proc/$1/stat" || [[ ${stat:-} ]] || return 1
    stat=${stat##*) }
    [[ $stat != Z* && ($stat == ?" $BASHPID "* || $stat == ?" $$ "*) ]]
}

child_kill() { ! child "$1" || kill "-${2:-KILL}" "$1" 2>/dev/null || true; }

# Kills children of this shell that are still there, and waits until they are gone.
children_end() { # PID...
    local pid
    for pid; do
        child_kill "$pid"
        wait "$pid" 2>/dev/null || true
    done
}

pause() {
    [[ ${quiet_fd:-} ]] || exec {quiet_fd}<> <(:)
    read -r -t "$1" -u "$quiet_fd" || true
}

port_answers() { (: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

epmd_start() {
    local epmd=$1 attempt i
    for ((attempt = 0; attempt < 50; attempt++)); do
        # Below the ports that the kernel gives out by itself.
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
    echo "$epmd does not start" >&2
    return 1
}

epmd_stop() {
    [[ $epmd_pid ]] || return 0
    kill "$epmd_pid" 2>/dev/null || true
    wait "$epmd_pid" 2>/dev/null || true
    epmd_pid=
}

await_line() {
    local piece end=$((SECONDS + 120))
    LINE=
    while ((SECONDS < end)) && kill -0 "$1" 2>/dev/null; do
        # A line may be cut in two by the time limit.
        if read -r -t 0.2 -u "$2" piece; then
            LINE+=$piece
            return 0
        fi
        LINE+=$piece
    done
    return 1
}

# bats notes the stack before each command, which takes it longer than most commands do: half a millisecond on a busy machine.
# This one does so for the commands of a test's own file alone, so a failure in a helper is shown at the line that calls the helper.
bats_debug_trap() {
    [[ $1 == "${BATS_TEST_SOURCE:-}" && ${BATS_INTERRUPTED-NOTSET} == NOTSET && ${BATS_TIMED_OUT-NOTSET} == NOTSET ]] || return 0
    BATS_DEBUG_LASTLAST_STACK_TRACE=("${BATS_DEBUG_LAST_STACK_TRACE[@]}")
    BATS_DEBUG_LAST_LINENO=("${BASH_LINENO[@]}")
    BATS_DEBUG_LAST_SOURCE=("${BASH_SOURCE[@]}")
    bats_capture_stack_trace
    bats_emit_trace
}
