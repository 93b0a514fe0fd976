# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Traces a live node, for the suites that do. A .bats file loads it; it loads node.bash. One node serves a whole file,
# and each test proves that it left the node as it was.
#
#   setup_file() { live_begin NAME [ERL FLAGS]; }     starts a node with a worker called w, and traces it once,
#   teardown_file() { live_end; }                     because the first attach loads modules and makes atoms
#   setup_file() { live_share NAME; }                 in the core uses the node that the lane keeps for such suites; else
#                                                     calls live_begin. For a suite whose tests restore the node, and do
#                                                     not ask for new atoms
#   setup() { live_setup; }                           sets BEFORE to a snapshot of the node
#   live_snapshot                                     sets BEFORE again, after a test's own changes
#   teardown() { live_teardown; }                     ends running traces; asserts that the node is as in BEFORE, or
#                                                     stops the node that the test started for itself
#   live_teardown_all                                 also stops the nodes that the test started beside it
#   traces_begin, traces_end                          the parts of these two that concern no node: OUT, ERR and TRACERS;
#                                                     the traces that still run
#   live_own NAME [ERL FLAGS]                         starts a node for this test alone, traces it once, and sets NODE
#   live_companion DIR                                puts the companion's module into DIR, compiled with every function
#                                                     exported
#   live_attempt [FLAGS]                              compiles standard input as a module with begun(), and runs begun()
#                                                     in a separate emulator with the companion and BATS_TEST_TMPDIR in
#                                                     its path
#
#   trace ARGS...          starts etrace on NODE, and returns once it traces or has ended. Events go to OUT, messages to
#                          ERR, and TRACER is the process. COMMAND selects another command than trace.
#   trace_end [SIGNAL]     sends SIGNAL (INT) to it and calls trace_wait
#   trace_wait [SECONDS]   waits for its end; sets status and took_ms, and output, lines and talk for assertions
#   traced ARGS... -- EXPR trace, EXPR on the node, trace_end
#   etrace_start ARGS...   starts etrace in the background like trace, on any node, and returns at once
#   fed_start ARGS...      the same, and sets FED to the descriptor from which etrace reads standard input
#   repl_start ARGS...     the same for etrace repl, which reads lines from the test
#   repl_line LINE...      sends lines to it
#   repl_end               ends its input
#   on_node EXPR           evaluates EXPR on NODE and ignores its value
#   totals                 prints the last line of ERR about all events, without the elapsed time
#   overwritten            prints the number of overwritten events in the summary
#   events_of FILE         converts the JSON in FILE to the lines of plain:events/1, apart from the order among
#                          processes
#   between FILE WHO       prints the lines of FILE, those of each process together. For the process WHO it prints only
#                          those between the calls of work:one(start) and work:one(stop).
#   gone PID               succeeds when a process that the test started has ended
#   until_true SECONDS COMMAND...
#                          repeats COMMAND until it succeeds; returns 1 after SECONDS
#   pause SECONDS          sleeps; use it only when there is no condition to wait for
#   millis                 prints the time in milliseconds

load ../lib/node

NODE=${LIVE_NODE:-}

TRACER=
TRACERS=()
REPL=
OUT=
ERR=
BEFORE=
STARTED=
ENDING=
WAITS=
took_ms=
talk=
output=
status=
lines=()

totals() { sed -nE 's/^etrace: ([0-9]+ events?) in [0-9.]+ (ms|s|min|h)( [0-9]+ (s|min))?/\1/p' "$ERR"; }

millis() { echo $((${EPOCHREALTIME/./} / 1000)); }

gone() { ! child "$1"; }

on_node() {
    local REPLY
    node_ask "$NODE" "$1"
}

# Waits until an emulated node accepts a connection. It first translates the code for that, and a busy host may need
# longer than etrace waits.
live_awaken() {
    [[ ! ${ETRACE_SLOW:-} ]] || until_true 120 awake
}

awake() { "$ETRACE_BIN" ls -n "$NODE" work:one >/dev/null 2>&1; }

live_begin() {
    node_start "$@" || return 1
    live_awaken
    export LIVE_NODE=$NODE
    on_node 'work:worker(w), work:warm()'
    # The node gets the atoms of the words that the tests use.
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 --for 300ms 'work:warm/0 -> return, caller, stack' 'send(_, _)' 'recv(_)' '@exit' \
        >/dev/null || return 1
    live_whole || return 1
    until_true 30 nobody_there || true
    export LIVE_PACE
    [[ ! ${ETRACE_ALL:-} ]] || LIVE_PACE=$(node_eval "$NODE" 'control:pace(w)')
}

# A new worker has nothing that a suite before has left in its dictionary or its mailbox. The programs that the node
# starts belong to this suite.
live_share() {
    local kept=$ETRACE_RUN_DIR/kept
    if [[ ! ${ETRACE_SHARE:-} ]]; then
        live_begin "$@"
        return
    fi
    export LIVE_SHARED=yes
    if [[ ! -s $kept ]]; then
        # tests/run ends every process of a suite after the suite, except this node. bats waits for processes that have
        # its descriptors 3 and 4.
        ETRACE_SUITE='' live_begin shared 4>&- || return 1
        echo "$NODE $ETRACE_OTP" >"$kept"
    fi
    read -r NODE _ <"$kept"
    export LIVE_NODE=$NODE
    on_node "os:putenv(\"ETRACE_SUITE\", \"$ETRACE_SUITE\"), work:stop(w), work:worker(w)"
}

# A client is gone when its node name and the name of its module are free for the next client.
nobody_there() {
    local REPLY
    node_ask "$NODE" 'control:near()'
    [[ $REPLY == *$'\nmodules []\n'* && $REPLY == *$'\nhidden []\n'* && $REPLY == *$'\nconnections 0\n'* ]]
}

# Loads the whole companion once, which has the atoms of every variant. A later command creates no atoms then.
live_whole() { "$ETRACE_BIN" repl -q -n "$NODE" </dev/null >/dev/null; }

live_repl() { printf '\n' | "$ETRACE_BIN" repl -q -n "$LIVE_NODE"; }

live_end() { [[ ${LIVE_SHARED:-} ]] || node_stop "$NODE"; }

traces_begin() {
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    TRACER=
    TRACERS=()
}

traces_end() {
    local left
    [[ ${BATS_TEST_COMPLETED:-} ]] || live_tell || true
    for left in "${TRACERS[@]}"; do
        child_kill "$left"
        wait "$left" 2>/dev/null || true
    done
}

live_setup() {
    traces_begin
    live_snapshot
}

live_snapshot() {
    local REPLY
    node_ask "$NODE" 'control:snapshot()'
    BEFORE=$REPLY
}

# Calls of a traced function are as fast as before, relative to an untraced twin. A process with a leftover breakpoint
# or leftover frames of etrace needs at least twice the time. Only --all looks at times; assert_clean asks the VM for
# breakpoints.
at_pace() { (($(node_eval "$NODE" 'control:pace(w)') * 10 < LIVE_PACE * 17)); }

# Prints diagnostics of a failed test; bats shows the output of its teardown.
live_tell() {
    local file
    printf 'load %s; status %s, process %s\n' \
        "$(cut -d' ' -f1-4 /proc/loadavg)" "${status:-none}" "${TRACER:-none}"
    [[ ! $STARTED ]] || printf 'started: etrace %s\n' "$STARTED"
    [[ ! $WAITS ]] || printf 'waited for: %s\n' "$WAITS"
    for file in "$OUT" "$ERR"; do
        [[ -s $file ]] || continue
        printf 'the last lines of %s, which has %s:\n' "${file##*/}" "$(wc -l <"$file")"
        tail -n 8 "$file" | tail -c 3000 | cut -c 1-600
    done
    printf 'the last lines of the log of %s:\n' "$NODE"
    node_unheard "$NODE" | tail -n 12 | cut -c 1-600
}

live_own() {
    node_start "$@"
    live_awaken
    on_node 'work:worker(w), work:warm()'
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 --for 100ms 'work:warm/0 -> return, caller' >/dev/null
    live_whole
    live_snapshot
}

live_companion() {
    local made
    made=$(once companion companion_make) || return 1
    cp "$made"/*.beam "$1"
}

companion_make() { # DIR
    "$ETRACE_ERLC" -Werror +export_all +nowarn_export_all +no_ssa_opt +no_error_module_mismatch -I "$ETRACE_ROOT/build/nif" -o "$1" "$ETRACE_ROOT/nif/etrace_tracer.erl" >"$1/said" || return 1
    mv "$1/etrace_tracer.beam" "$1/etrace_00000000_0.beam"
}

live_attempt() {
    local dir=$BATS_TEST_TMPDIR
    live_companion "$dir"
    { printf -- '-module(attempt).\n-export([begun/0]).\n' && cat; } >"$dir/attempt.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/attempt.erl"
    run timeout 60 "$ETRACE_ERL" +Bi "$@" -noshell -noinput -pa "$dir" -eval 'attempt:begun()' </dev/null 3>&-
}

live_teardown_all() {
    nodes_stop
    NODE=$LIVE_NODE
    live_teardown
}

live_teardown() {
    traces_end
    # A test checks its own node by itself.
    [[ $NODE == "$LIVE_NODE" ]] || {
        nodes_stop
        return
    }
    on_node 'whereis(flood) =:= undefined orelse work:calm(ok)' || true
    # bats goes on after a failed command in a teardown, hence the return. Code that a test loads makes atoms; a
    # separate test proves that etrace makes none.
    assert_clean --atoms 300 "$BEFORE" "$NODE" || { live_tell && return 1; }
    [[ ! ${ETRACE_ALL:-} ]] || until_true 20 at_pace || fail "calls take $(node_eval "$NODE" 'control:pace(w)') percent of the time of the untraced twin, but $LIVE_PACE at first"
}

ready() {
    local said=
    IFS= read -r -d '' said 2>/dev/null <"$ERR" || true
    [[ $said == *'Ctrl-C stops'* ]] || gone "$TRACER"
}

# Makes the files for the output anew. The shell would do it only when the background command runs; a test that waits for a line
# could find it in the output of the previous etrace. That etrace may still run and write into the old files.
new_output() {
    [[ ! -e $OUT && ! -e $ERR ]] || rm -f "$OUT" "$ERR"
    : >"$OUT"
    : >"$ERR"
}

etrace_start() {
    new_output
    printf -v STARTED '%q ' "$@"
    "$ETRACE_BIN" "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
}

fed_start() {
    local pipe=$BATS_TEST_TMPDIR/lines
    rm -f "$pipe"
    mkfifo "$pipe"
    new_output
    printf -v STARTED '%q ' "$@"
    "$ETRACE_BIN" "$@" <"$pipe" >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    exec {FED}>"$pipe"
}

repl_start() {
    fed_start repl "$@"
    REPL=$FED
}

repl_line() { printf '%s\n' "$@" >&"$REPL"; }

repl_end() { exec {REPL}>&-; }

trace() {
    etrace_start "${COMMAND:-trace}" -n "$NODE" "$@"
    # On a busy node, etrace waits up to two minutes for the answer of the node.
    until_true 130 ready || fail "etrace did not begin to trace: $(cat "$ERR")"
}

trace_wait() {
    local start=${EPOCHREALTIME/./}
    until_true "${1:-60}" gone "$TRACER" || {
        child_kill "$TRACER"
        wait "$TRACER" || true
        fail "etrace did not end within ${1:-60} s"
    }
    took_ms=$(((${EPOCHREALTIME/./} - start) / 1000))
    status=0
    wait "$TRACER" || status=$?
    TRACER=
    trace_read
    assert_end
}

# Checks that hold for every end: a documented status or a signal; a message after a failure; no partial line; a sum
# of events that adds up.
assert_end() {
    [[ $status -le 5 || $status -eq 10 || $status -eq 11 || $status -gt 128 ]] || fail "status $status is not documented: $talk"
    [[ $status -eq 0 || $status -gt 5 || $'\n'$talk == *$'\netrace: '* ]] || fail "status $status without a message: $talk"
    [[ $status -le 128 && $ENDING ]] || return 0
    [[ $ENDING == *$'\n' ]] || fail "the last line is partial: $ENDING"
    [[ $ENDING != '{"v":1,"type":"summary"'* ]] || assert_adds_up "$ENDING"
}

# Sets REPLY to the number NAME of a summary.
number_of() { # NAME SUMMARY
    [[ $2 =~ \"$1\":([0-9]+) ]] || fail "the summary has no number $1: $2"
    REPLY=${BASH_REMATCH[1]}
}

# jq needs 40 ms to start, and most traces end with a summary.
assert_adds_up() { # SUMMARY
    local REPLY sum=0 part
    for part in shown filtered missing; do
        number_of "$part" "$1"
        ((sum += REPLY, 1))
    done
    [[ $1 =~ \"lost\":\{([^}]*)\} ]] || fail "the summary has no losses: $1"
    while IFS=: read -r -d , _ part; do ((sum += part, 1)); done <<<"${BASH_REMATCH[1]:-none:0},"
    number_of seen "$1"
    [[ $sum -eq $REPLY ]] || fail "the summary does not add up: $1"
}

# Sets REPLY to a file's text without the newlines at its end, as $(<FILE) is, but starts no process.
file_text() { # FILE
    REPLY=
    IFS= read -r -d '' REPLY 2>/dev/null <"$1" || true
    while [[ $REPLY == *$'\n' ]]; do REPLY=${REPLY%$'\n'}; done
}

# Reads ERR into talk, and OUT into output and lines. A test with a flood of events reads OUT itself.
trace_read() {
    local REPLY
    output=
    lines=()
    ENDING=
    file_text "$ERR"
    talk=$REPLY
    [[ -s $OUT ]] || return 0
    mapfile -n 8001 lines <"$OUT"
    if [[ ${#lines[@]} -gt 8000 ]]; then
        lines=()
        ENDING=$(tail -n 1 "$OUT" && echo .)
        ENDING=${ENDING%.}
        return 0
    fi
    ENDING=${lines[-1]}
    printf -v output '%s' "${lines[@]}"
    while [[ $output == *$'\n' ]]; do output=${output%$'\n'}; done
    mapfile -t lines <<<"$output"
    # The suite 990-json checks these lines of all suites against the schema. Lines of repl that are no events are
    # left out.
    [[ ${lines[0]} != '{"v":1,'* || ${COMMAND:-} == repl ]] || printf '%s\n' "${lines[@]:0:200}" >>"$ETRACE_RUN_DIR/json_lines"
}

trace_end() {
    child_kill "$TRACER" "${1:-INT}"
    trace_wait
}

traced() {
    local args=()
    while [[ $1 != -- ]]; do
        args+=("$1")
        shift
    done
    trace "${args[@]}"
    gone "$TRACER" || on_node "$2"
    trace_end
}

# json_of TYPE JQ: prints a member of each JSON line of a type, for example: json_of call '.args[0]'
json_of() { jq -r --arg type "$1" "select(.type == \$type) | $2" "$OUT"; }

overwritten() { jq '.lost.overwritten // 0' <<<"$(tail -n 1 "$OUT")"; }

# Checks the decompressed blocks of a recording: they contain the text $3, and not the secret $2.
refute_recorded() {
    "$ETRACE_ROOT/build/tests/unpack" "$1" >"$BATS_TEST_TMPDIR/unpacked"
    grep -qaF "$3" "$BATS_TEST_TMPDIR/unpacked" || fail "$1 does not contain $3"
    ! grep -qaF "$2" "$BATS_TEST_TMPDIR/unpacked" || fail "$1 contains $2"
}

events_of() {
    jq -r 'def place: "\(.m):\(.f)/\(.a // (.args | length))";
        select(.pid) | "\(.pid) \(.type) " + (
        if .type == "call" then place + ([(.args // [])[] | " " + .] | add // "") + (if .message then " -> " + .message else "" end)
        elif .type == "return" then "\(place) \(.value)"
        elif .type == "exception" then "\(place) \(.class) \(.reason)"
        elif .type == "return_to" then if .m then place else "undefined" end
        elif .to and .type != "seq_trace" then "\(.to) \(.msg)"
        elif .type == "receive" then .msg
        elif .type == "spawn" or .type == "spawned" then "\(.child // .parent) \(place)" + ([.args[] | " " + .] | add // "")
        elif .type == "open" then "\(.owner) \(.driver)"
        elif .info then .info | to_entries | sort_by(.key) | map("\(.key)=\(.value)") | join(",")
        elif .m then place
        else .reason // .as // .other // .mfa // "0" end)' "$1"
}

between() {
    awk -v who="$2" '$1 != who { print; next }
        $2 == "call" && /work:one\/1 stop$/ { on = 0 }
        on { print }
        $2 == "call" && /work:one\/1 start$/ { on = 1 }' "$1" | LC_ALL=C sort -s -k1,1
}

# The summary counts every event that was seen, and its sum adds up. The output has as many events as it counts as shown.
# jq would need 30 ms of a processor to start.
assert_account() { # SEEN | any
    local REPLY last events
    last=$(tail -n 1 "$OUT")
    [[ $last == '{"v":1,"type":"summary",'*'}' ]] || fail "the output has no summary: $last"
    ! grep -nvE '^\{"v":1,"type":"[a-z_]+",.*\}$' "$OUT" || fail "the output has a line that is no event"
    assert_adds_up "$last"
    number_of missing "$last"
    [[ $REPLY -eq 0 && $last == *',"complete":true'* ]] || fail "the summary is incomplete: $last"
    number_of seen "$last"
    [[ $1 == any || $1 -eq $REPLY ]] || fail "the summary does not count $1 events: $last"
    events=$(grep -cvE '^\{"v":1,"type":"(attached|rearmed|notice|lost|node_down|node_up|only_counted|summary)"' "$OUT") || true
    number_of shown "$last"
    [[ $events -eq $REPLY ]] || fail "the output has $events events, and the summary counts others as shown: $last"
}
