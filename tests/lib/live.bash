# shellcheck shell=bash
# Tracing a live node, for the suites that do. To be loaded by a .bats file, behind which stands
# node.bash; one node serves a whole file, and each test proves that it left the node as it was.
#
#   setup_file() { live_begin NAME [ERL FLAGS]; }     a node with a worker called w, traced once,
#   teardown_file() { live_end; }                     for the first attach loads what it needs
#   setup() { live_setup; }                           BEFORE: the node as it is now
#   live_snapshot                                     sets BEFORE anew, after a test's own changes
#   teardown() { live_teardown; }                     ends what still runs; the node is as it was, or is gone where the
#                                                     test had one of its own
#   live_own NAME [ERL FLAGS]                         a node of this test alone, traced once; NODE from then on
#   live_companion DIR                                the companion's module there, all of it exported, for tests that call it
#   live_attempt [FLAGS]                              runs begun() of the Erlang that is the input, with that module and what else is
#                                                     in BATS_TEST_TMPDIR, in an emulator of its own
#
#   trace ARGS...          starts etrace on NODE and returns once it traces, or has ended; the
#                          output goes to OUT, the talk to ERR, the process is TRACER; a suite that
#                          is about another command sets COMMAND
#   trace_end [SIGNAL]     ends it (INT) and waits; see trace_wait
#   trace_wait [SECONDS]   waits for its end: status, took_ms; and output, lines, talk for asserts
#   traced ARGS... -- EXPR trace, EXPR on the node, trace_end
#   on_node EXPR           evaluates EXPR on NODE, its value does not matter
#   totals                 the last line of ERR about all events, without the time it took
#   events_of FILE         the lines that plain:events/1 would make of the JSON in FILE, but for the
#                          order among processes
#   between FILE WHO       of the lines of WHO only those between the calls of work:one(start) and
#                          work:one(stop), and all of others; each one's together
#   gone PID               whether a process that the test has started has ended
#   until_true SECONDS COMMAND...
#                          repeats COMMAND until it succeeds; 1 when SECONDS are over
#   pause SECONDS          for what happens at a time and in no other way can be waited for
#   millis                 the time in milliseconds

load ../lib/node

NODE=${LIVE_NODE:-}

TRACER=
TRACERS=()
OUT=
ERR=
BEFORE=
took_ms=
talk=
output=
status=
lines=()

totals() { sed -nE 's/^etrace: ([0-9]+ events?) in [0-9.]+ (ms|s|min|h)( [0-9]+ (s|min))?/\1/p' "$ERR"; }

millis() { echo $((${EPOCHREALTIME/./} / 1000)); }

# The longer it has waited, the less often it looks: looking costs processes, and lanes share the processors.
until_true() {
    local start=${EPOCHREALTIME/./} end waited between
    end=$((start + $1 * 1000000))
    shift
    until "$@"; do
        waited=$((${EPOCHREALTIME/./} - start))
        ((start + waited < end)) || return 1
        between=$((waited < 100000 ? 10000 : waited < 2000000 ? waited / 10 : 200000))
        printf -v between '0.%06d' "$between"
        pause "$between"
    done
}

gone() { ! child "$1"; }

on_node() { node_eval "$NODE" "$1" >/dev/null; }

live_begin() {
    node_start "$@" || return 1
    export LIVE_NODE=$NODE
    on_node 'work:worker(w), work:warm()'
    # Every word of the language that the tests use has been on the node once.
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 --for 300ms 'work:warm/0 -> return, caller, stack' 'send(_, _)' 'recv(_)' '@exit' \
        >/dev/null || return 1
    until_true 30 nobody_there || true
    export LIVE_PACE
    LIVE_PACE=$(node_eval "$NODE" 'control:pace(w)')
}

# A client has left altogether when its name and that of its module are free for the next one.
nobody_there() {
    local now
    now=$(node_eval "$NODE" 'control:near()')
    [[ $now == *$'\nmodules []\n'* && $now == *$'\nhidden []\n'* && $now == *$'\nconnections 0\n'* ]]
}

live_repl() { printf '\n' | "$ETRACE_BIN" repl -q -n "$LIVE_NODE"; }

live_end() { node_stop "$NODE"; }

live_setup() {
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    TRACER=
    TRACERS=()
    live_snapshot
}

live_snapshot() { BEFORE=$(node_snapshot "$NODE"); }

# What was traced is as fast as it was before, next to its twin that was not: of a process with a breakpoint or frames of
# ours left it takes twice the time and more.
at_pace() { (($(node_eval "$NODE" 'control:pace(w)') * 10 < LIVE_PACE * 17)); }

# Of a test that failed, what it may not have told: bats shows what a teardown prints then.
live_tell() {
    local file
    printf 'load %s; status %s, process %s\n' \
        "$(cut -d' ' -f1-4 /proc/loadavg)" "${status:-none}" "${TRACER:-none}"
    for file in "$OUT" "$ERR"; do
        [[ -s $file ]] || continue
        printf 'the end of %s, of %s lines:\n' "${file##*/}" "$(wc -l <"$file")"
        tail -n 8 "$file" | tail -c 3000 | cut -c 1-600
    done
    printf 'the end of the log of %s:\n' "$NODE"
    node_unheard "$NODE" | tail -n 12 | cut -c 1-600
}

live_own() {
    node_start "$@"
    on_node 'work:worker(w), work:warm()'
    "$ETRACE_BIN" -n "$NODE" -qq --limit 1 --for 100ms 'work:warm/0 -> return, caller' >/dev/null
    live_snapshot
}

live_companion() {
    "$ETRACE_ERLC" +export_all +nowarn_export_all +no_error_module_mismatch -o "$1" "$ETRACE_ROOT/nif/etrace_tracer.erl"
    mv "$1/etrace_tracer.beam" "$1/etrace_00000000_0.beam"
}

live_attempt() {
    local dir=$BATS_TEST_TMPDIR
    live_companion "$dir"
    { printf -- '-module(attempt).\n-export([begun/0]).\n' && cat; } >"$dir/attempt.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/attempt.erl"
    run timeout 60 "$ETRACE_ERL" +Bi "$@" -noshell -noinput -pa "$dir" -eval 'attempt:begun()' </dev/null 3>&-
}

live_teardown() {
    local left
    [[ ${BATS_TEST_COMPLETED:-} ]] || live_tell || true
    for left in "${TRACERS[@]}"; do
        child_kill "$left"
        wait "$left" 2>/dev/null || true
    done
    # Of one that the test started for itself, whether anything was left there was for the test to look at.
    [[ $NODE == "$LIVE_NODE" ]] || {
        nodes_stop
        return
    }
    node_eval "$NODE" 'whereis(flood) =:= undefined orelse work:calm(ok)' >/dev/null || true
    # In a teardown bats goes on behind what fails. What the tests have the node load brings its atoms along; that etrace
    # brings none is a test of its own.
    assert_clean --atoms 300 "$BEFORE" "$NODE" || return 1
    until_true 20 at_pace || fail "slower than before: $(node_eval "$NODE" 'control:pace(w)') percent of its twin's time, not $LIVE_PACE"
}

ready() { grep -q -e 'Ctrl-C stops' "$ERR" 2>/dev/null || gone "$TRACER"; }

trace() {
    rm -f "$OUT" "$ERR"
    "$ETRACE_BIN" "${COMMAND:-trace}" -n "$NODE" "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    # On a busy node it waits for its own answer for two minutes.
    until_true 130 ready || fail "etrace does not begin: $(cat "$ERR")"
}

trace_wait() {
    local start=${EPOCHREALTIME/./}
    until_true "${1:-60}" gone "$TRACER" || {
        child_kill "$TRACER"
        wait "$TRACER" || true
        fail "etrace does not end within ${1:-60} s"
    }
    took_ms=$(((${EPOCHREALTIME/./} - start) / 1000))
    status=0
    wait "$TRACER" || status=$?
    TRACER=
    trace_read
    assert_end
}

# However it ends: with a status that is documented, or by a signal; after a failure with a word; no line is half, and every
# event is accounted for.
assert_end() {
    [[ $status -le 5 || $status -eq 10 || $status -eq 11 || $status -gt 128 ]] || fail "status $status is not documented: $talk"
    [[ $status -eq 0 || $status -gt 5 ]] || grep -q '^etrace: ' "$ERR" || fail "status $status, and not a word: $talk"
    [[ $status -le 128 && -s $OUT ]] || return 0
    [[ ! $(tail -c 1 "$OUT") ]] || fail "half a line: $(tail -n 1 "$OUT")"
    local last
    last=$(tail -n 1 "$OUT")
    [[ $last != '{"v":1,'*'"type":"summary"'* ]] ||
        jq -e '.seen == .shown + .filtered + .missing + ([.lost[]] | add // 0)' <<<"$last" >/dev/null || fail "does not add up: $last"
}

trace_read() {
    output=
    lines=()
    talk=$(<"$ERR")
    # A flood is looked at in its file.
    [[ -s $OUT && $(stat -c %s "$OUT") -lt 1000000 ]] || return 0
    output=$(<"$OUT")
    mapfile -t lines <<<"$output"
    # All that any suite has printed is held against the schema in the end, but for what repl has beside events.
    [[ ${lines[0]} != '{"v":1,'* || ${COMMAND:-} == repl ]] || head -n 200 "$OUT" >>"$ETRACE_RUN_DIR/json_lines"
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

# The members of the JSON lines of a type, as jq says: json_of call '.args[0]'
json_of() { jq -r --arg type "$1" "select(.type == \$type) | $2" "$OUT"; }

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

# The closing object holds what was seen, and every event is accounted for.
assert_account() { # SEEN | any
    local sum
    sum=$(jq -c 'select(.type == "summary")' "$OUT")
    [[ $sum ]] || fail "no summary in $(tail -n 3 "$OUT")"
    jq -e '.complete and .missing == 0 and .seen == .shown + .filtered + ([.lost[]] | add // 0)' <<<"$sum" >/dev/null ||
        fail "does not add up: $sum"
    [[ $1 == any ]] || jq -e --argjson seen "$1" '.seen == $seen' <<<"$sum" >/dev/null || fail "not $1 events: $sum"
    # What was shown stands in the output.
    jq -e --argjson shown "$(grep -vcE '"type":"(attached|rearmed|notice|lost|node_down|node_up|summary)"' "$OUT" || true)" '.shown == $shown' \
        <<<"$sum" >/dev/null || fail "other lines than were shown: $sum"
}
