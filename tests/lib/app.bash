# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs real applications, which do not know etrace, for the suites in tests/apps. A .bats file loads it; it loads
# live.bash.
#
# A suite defines start_app. start_app starts the application on NODE in the background with the application's own
# script, writes its output to APP_LOG, and returns once the application serves its clients.
#
#   app_begin NAME         starts the application under a unique name, adopts its node and attaches to it once
#   app_end                ends the application
#   app_setup              sets BEFORE to a snapshot of the node
#   app_teardown           ends running traces; asserts that the node is as in BEFORE and that the application logged no
#                          fault
#   app_restart COMMAND... runs COMMAND to stop the application, and starts it again under the same name; a trace may
#                          go on
#   app_windows LOAD -- ARGS...
#                          runs the command LOAD three times untraced and three times traced by ARGS, in turns; prints
#                          times and memory and asserts neither
#   app_quiet LOAD         asserts that `etrace check` finds nothing, ten times, the last one with --for, while the
#                          command LOAD runs again and again
#   app_slow MS EXPR...    traces the calls that take longer while app_load runs; asserts that the rest was counted
#   asked WORDS...         sends a line to the clients or the application at the port in APP_PORT_FILE; prints the
#                          answer
#   free_port              prints a port that nobody listens on
#   app_figures NAME       prints the calls and errors of a function from the summary in OUT
#   app_functions          prints the number of traced functions from the banner in ERR
#   app_counts TYPE        prints the number of events of a type in OUT for each function: count, name and arity

load ../lib/live

# The application makes atoms itself, expressions add their words, and a test may load modules.
APP_ATOMS=${APP_ATOMS:-3000}
APP_MEMORY=${APP_MEMORY:-33554432}
# A fault in the log has one of these words. Lines from before the node is adopted do not count.
APP_FAULTS='\[(error|warning|critical|alert|emergency)\]|CRASH|REPORT'

# The port is below the range of ephemeral ports of the kernel.
free_port() {
    local port
    while port=$((20000 + RANDOM % 12000)) && port_answers "$port"; do :; done
    echo "$port"
}

asked() {
    local socket answer
    exec {socket}<>"/dev/tcp/127.0.0.1/$(<"$APP_PORT_FILE")"
    echo "$*" >&"$socket"
    read -r -t 120 -u "$socket" answer || answer='no answer'
    exec {socket}>&-
    echo "$answer"
}

app_quiet() { # COMMAND...
    local load round
    local -a longer=()
    while [[ ! -e $BATS_TEST_TMPDIR/enough ]]; do "$@"; done >"$BATS_TEST_TMPDIR/load" 2>&1 3>&- &
    load=$!
    for round in {1..10}; do # `run` changes i
        [[ $round -lt 10 ]] || longer=(--for 5s)
        run --separate-stderr timeout 60 "$ETRACE_BIN" check -n "$NODE" "${longer[@]}"
        [[ $status -eq 0 ]] || break
    done
    touch "$BATS_TEST_TMPDIR/enough"
    wait "$load" || fail "the load has failed: $(<"$BATS_TEST_TMPDIR/load")"
    [[ $status -eq 0 ]] || fail "run $round: status $status: $output $stderr"
    # The application keeps what the load has made, which is more on a slow machine. app_teardown therefore only checks
    # that nothing of etrace is left.
    BEFORE=
}

# The emulator is another process than the script that started it.
app_pid() {
    local pid
    for pid in /proc/[0-9]*; do
        if [[ $(readlink "$pid/exe" 2>/dev/null) == */beam.smp ]] && tr '\0' ' ' <"$pid/cmdline" 2>/dev/null | grep -qF -- " $NODE "; then
            echo "${pid##*/}"
            return 0
        fi
    done
    return 1
}

app_runs() { APP_PID=$(app_pid); }

app_up() {
    start_app || return 1
    until_true 60 app_runs || {
        cat "$APP_LOG" >&2
        return 1
    }
    node_adopt "$APP_PID" || {
        tail -n 40 "$APP_LOG" >&2
        return 1
    }
    node_heard "$NODE"
}

app_begin() {
    node_new "$1" || return 1
    export LIVE_NODE=$NODE APP_LOG
    APP_LOG=$(node_dir "$NODE")/log
    : >"$APP_LOG"
    app_up || return 1
    export APP_BARE
    APP_BARE=$(app_bare_lines)
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 --for 300ms 'lists:seq/2 -> return, caller, stack' 'send(_, _)' 'recv(_)' '@exit' >/dev/null || return 1
    live_whole || return 1
    until_true 30 nobody_there || true
}

# An application that failed to start may still run.
app_end() {
    NODE=$LIVE_NODE
    node_stop "$NODE"
    ! app_runs || kill -KILL "$APP_PID"
}

app_setup() {
    traces_begin
    APP_LOG=$(node_dir "$NODE")/log
    live_snapshot
}

app_teardown() {
    local faults
    traces_end
    if [[ $BEFORE ]]; then
        assert_clean --atoms "$APP_ATOMS" --memory "$APP_MEMORY" "$BEFORE" "$NODE" 20 || return 1
    else
        until_true 20 app_bare || fail "etrace left something on the node: $(node_snapshot "$NODE")"
    fi
    faults=$(node_unheard "$NODE" | grep -aE "$APP_FAULTS") || true
    [[ ! $faults ]] || fail "the application has logged: $faults"
}

# Asserts that etrace has left nothing on the node; other changes since its start do not matter. APP_BARE is the
# baseline, because an application may have old code, or libraries in a directory named etrace.
app_bare() { [[ $(app_bare_lines) == "$APP_BARE" ]]; }
app_bare_lines() { node_snapshot "$NODE" | grep -E '^(sessions|modules|old_code|hidden|connections|maps|breakpoints|file) '; }

app_restart() {
    "$@" || return 1
    until_true 60 node_gone "$NODE" || fail "$NODE did not stop"
    app_up
    # A trace may still run, so app_teardown only checks that nothing of etrace is left.
    BEFORE=
}

rss() { awk '/^VmRSS/ { print $2 }' "/proc/$(<"$(node_dir "$NODE")/pid")/status"; }

app_windows() {
    local work=() i from took=0 window
    while [[ $1 != -- ]]; do
        work+=("$1")
        shift
    done
    shift
    for i in 1 2 3; do
        for window in untraced traced; do
            [[ $window == untraced ]] || trace "$@"
            from=$(millis)
            "${work[@]}"
            took=$(($(millis) - from))
            [[ $window == untraced ]] || trace_end
            echo "# window $i, $window: $took ms, the node has $(($(rss) / 1024)) MiB" >&3
        done
    done
}

app_slow() {
    local ms=$1
    shift
    trace --json --rate 0 -e "dur > ${ms}ms" "$@"
    app_load "$MESSAGES"
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of return "select(.dur_us <= ${ms}000)")" ''
    jq -e --argjson n "$MESSAGES" 'select(.type == "summary") | .seen > 4 * $n' "$OUT" >/dev/null
}

app_figures() { awk -v name="$1" '$NF == name { print $1, $2 }' "$OUT"; }

app_functions() { sed -n 's/.* · \([0-9]*\) functions.*/\1/p' "$ERR"; }

app_counts() { jq -r --arg type "$1" 'select(.type == $type) | "\(.m):\(.f)/\(.a // (.args | length))"' "$OUT" | LC_ALL=C sort | uniq -c | awk '{ print $1, $2 }'; }
