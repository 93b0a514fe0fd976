#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Outputs that fail: a full disk, a closed pipe, files that etrace must not write to.

load ../lib/assert
load ../lib/live
load ../lib/commands

setup_file() { live_share output; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "every thread of etrace leaves signals to the main thread" {
    local mask signals=$((1 << 1 | 1 << 14)) # INT and TERM
    trace -o "$BATS_TEST_TMPDIR/x.etr" -o "$BATS_TEST_TMPDIR/x.json" work:one/1
    [[ $(cat "/proc/$TRACER"/task/*/status | grep -c '^SigBlk:') -ge 3 ]] || fail 'no thread writes the outputs'
    while read -r _ mask; do
        [[ $((0x$mask & signals)) -eq $signals ]] || fail "a thread blocks only $mask"
    done < <(grep -h '^SigBlk:' "/proc/$TRACER"/task/*/status)
    trace_end
    assert_success
}

@test "a full device ends the trace with an error of one line" {
    "$ETRACE_BIN" -n "$NODE" work:one/1 </dev/null >/dev/full 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 30 ready
    on_node 'work:loop(5)'
    : >"$OUT"
    trace_wait
    assert_failure 1
    assert_equal "$(grep -c 'cannot write standard output: No space left on device' "$ERR")" 1
    # doctor writes the reason of a failure to standard output, which is full.
    for words in '' --json; do
        status=0
        # shellcheck disable=SC2086
        timeout 60 "$ETRACE_BIN" doctor -n nobody_there@127.0.0.1 $words >/dev/full 2>"$ERR" </dev/null || status=$?
        assert_equal "$status,$(<"$ERR")" '1,etrace: cannot write standard output: No space left on device'
    done
}

@test "a closed standard output is an error, but a reader that leaves is none" {
    status=0
    timeout 10 "$ETRACE_BIN" -n "$NODE" --limit 1 work:one/1 >&- 2>"$ERR" </dev/null & pid=$!
    TRACERS+=("$pid")
    TRACER=$pid
    until_true 30 ready
    on_node 'work:loop(3)'
    wait "$pid" || status=$?
    assert_failure 1
    assert_equal "$(grep -c 'cannot write standard output' "$ERR")" 1
    # Use a socket as standard output; its reader closes it with unread data.
    on_node 'work:flood(2)'
    run timeout 60 /usr/bin/python3 - "$ETRACE_BIN" "$NODE" <<'END'
import socket, subprocess, sys
listener = socket.create_server(("127.0.0.1", 0))
writer = socket.create_connection(listener.getsockname())
reader = listener.accept()[0]
traced = subprocess.Popen([sys.argv[1], "-n", sys.argv[2], "-q", "work:one/1"], stdin=subprocess.DEVNULL, stdout=writer)
writer.close()
reader.recv(10)
reader.close()
sys.exit(traced.wait())
END
    on_node 'work:calm(ok)'
    assert_success
    refute_output
}

@test "a reader that leaves ends each command, though it has nothing to write" {
    local command reader args commands=()
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    is_attached() { node_ask "$NODE" 'nodes(hidden)' && [[ $REPLY != '[]' ]]; }
    is_detached() { ! is_attached; }
    for command in $(commands_of_help); do
        [[ $commands_without_node != *" $command "* && $command != repl && $("$ETRACE_BIN" help "$command") == *' --for '* ]] || continue
        command_args "$command"
        args=("${args[@]/#[0-9]*ms/1h}")
        [[ ${args[*]} == *--for* ]] || args+=(--for 1h)
        commands+=("$command ${args[*]}")
    done
    for command in "trace 'work:one(X) when X == nothing'" "trace -c work:one/1" "trace --json --ring 1MB work:one/1" \
        requests "top -i 1h work:one/1" "${commands[@]}"; do
        cat >"$OUT" <"$BATS_TEST_TMPDIR/pipe" 3>&- &
        reader=$!
        eval "set -- $command"
        "$ETRACE_BIN" "$1" -n "$NODE" "${@:2}" </dev/null >"$BATS_TEST_TMPDIR/pipe" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        until_true 30 is_attached || fail "etrace $command does not attach: $(<"$ERR")"
        child_kill "$reader"
        trace_wait
        assert_equal "$command: $status" "$command: 0"
        [[ $1 != trace ]] || assert_equal "$(grep -c '^etrace: 0 events' "$ERR")" 1
        until_true 30 is_detached
    done
}

@test "a blocked standard error does not block the trace, and every event is accounted for" {
    local full pid said=$BATS_TEST_TMPDIR/said
    mkfifo "$said"
    exec {full}<>"$said"
    dd if=/dev/zero of="$said" oflag=nonblock bs=4096 count=1024 2>/dev/null || true
    "$ETRACE_BIN" -n "$NODE" --json work:one/1 </dev/null >"$OUT" 2>"$said" 3>&- {full}>&- &
    pid=$!
    TRACERS+=("$pid")
    there() { [[ $(grep -c "\"type\":\"$1\"" "$OUT") -ge $2 ]]; }
    until_true 60 there attached 1
    # The node is armed soon after.
    until_true 60 eval 'on_node "work:loop(1)" && there call 1'
    until_true 60 eval 'on_node "work:loop(1)" && there call 6'
    kill -TERM "$pid"
    until_true 60 gone "$pid" || fail "etrace did not end"
    status=0
    wait "$pid" || status=$?
    assert_success
    assert_account any
    exec {full}>&-
}

@test "a full disk ends a recording with an error, and the recording is complete up to that point" {
    mkdir "$BATS_TEST_TMPDIR/small"
    # A mount namespace of its own leaves nothing mounted after any end.
    trace_in_small() {
        unshare -m bash -c "mount -t tmpfs -o size=512k small '$BATS_TEST_TMPDIR/small' &&
            { \"\$ETRACE_BIN\" -n $NODE -q --rate 0 -o '$BATS_TEST_TMPDIR/small/r.etr' 'work:one/1' >/dev/null 2>'$ERR'; echo \$? >'$OUT'; cp '$BATS_TEST_TMPDIR/small/r.etr' '$BATS_TEST_TMPDIR/r.etr'; }"
    }
    on_node 'work:flood(2)'
    trace_in_small 3>&-
    on_node 'work:calm(ok)'
    assert_equal "$(<"$OUT")" 1
    assert_regex "$(<"$ERR")" '^etrace: cannot write .*r.etr: No space left on device$'
    status=0
    "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/r.etr" >"$OUT" 2>"$ERR" || status=$?
    assert [ "$status" -le 1 ]
    assert [ "$(grep -c 'call work:one(flood)' "$OUT")" -gt 100 ]
    # Every line is complete.
    assert_equal "$(grep -vc -e 'call work:one(flood)$' -e 'events lost here' "$OUT" || true)" 0
}

@test "-o refuses symbolic links, directories and missing directories" {
    echo precious >"$BATS_TEST_TMPDIR/target"
    ln -s "$BATS_TEST_TMPDIR/target" "$BATS_TEST_TMPDIR/link.etr"
    ln -s "$BATS_TEST_TMPDIR/target" "$BATS_TEST_TMPDIR/link.json"
    for file in link.etr link.json; do
        run "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/$file" work:one/1
        assert_failure 1
        assert_line -n 0 --regexp "^etrace: .*$file: it is a symbolic link$"
        run "$ETRACE_BIN" -n "$NODE" --for 100ms -a -o "$BATS_TEST_TMPDIR/$file" work:one/1
        assert_failure 1
    done
    assert_equal "$(<"$BATS_TEST_TMPDIR/target")" precious
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/no/such/dir.etr" work:one/1
    assert_failure 1
    assert_line -n 0 --regexp '^etrace: cannot write .*dir\.etr: No such file or directory$'
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR" work:one/1
    assert_failure 2
    mkdir "$BATS_TEST_TMPDIR/dir.etr"
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/dir.etr" work:one/1
    assert_failure 1
    # etrace checks the file before it attaches.
    assert_clean "$BEFORE" "$NODE" 0
}

@test "-o refuses a pipe without a reader and a read-only file system, and survives the removal of its file" {
    mkfifo "$BATS_TEST_TMPDIR/fifo.etr" "$BATS_TEST_TMPDIR/fifo.json"
    for file in fifo.etr fifo.json; do
        run timeout -k 1 20 "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/$file" work:one/1
        assert_failure 1
        assert_line -n 0 --regexp "^etrace: cannot write .*$file: nobody reads this pipe$"
        run timeout -k 1 20 "$ETRACE_BIN" -n "$NODE" --for 100ms -a -o "$BATS_TEST_TMPDIR/$file" work:one/1
        assert_failure 1
    done
    # Root may write to a read-only file, so use a read-only file system.
    mkdir "$BATS_TEST_TMPDIR/fixed"
    for file in r.etr r.json; do
        run timeout 20 unshare -m bash -c "mount -t tmpfs -o ro fixed '$BATS_TEST_TMPDIR/fixed' && exec '$ETRACE_BIN' -n $NODE --for 100ms -o '$BATS_TEST_TMPDIR/fixed/$file' work:one/1"
        assert_failure 1
        assert_line -n 0 --regexp "^etrace: cannot write .*$file: Read-only file system$"
    done
    assert_clean "$BEFORE" "$NODE" 0
    trace --json -o "$BATS_TEST_TMPDIR/gone.etr" work:one/1
    rm "$BATS_TEST_TMPDIR/gone.etr"
    on_node 'work:loop(20)'
    trace_end
    assert_success
    assert_account 20
}

calls_in() { [[ $(grep -c '"type":"call"' "$2") -eq $1 ]]; }

@test "an output file that is truncated during the trace continues at its beginning" {
    local file=$BATS_TEST_TMPDIR/rotated.json
    trace --json -o "$file" work:one/1
    on_node 'work:loop(20)'
    until_true 30 calls_in 20 "$file" || fail "$(<"$file")"
    : >"$file"
    on_node 'work:loop(5)'
    trace_end
    assert_success
    assert_account 25
    assert_equal "$(tr -dc '\0' <"$file" | wc -c)" 0
    assert_equal "$(jq -r .type "$file" | sort | uniq -c | xargs)" '5 call 1 summary'
}

@test "etrace shows the same events with closed input, TERM unset or dumb, and a terminal of one column" {
    five() { "$ETRACE_BIN" -n "$NODE" --limit 5 --for 30s work:one/1; }
    # shellcheck disable=SC2016  # evaluated in there
    narrow='stty cols 1 rows 1; stty -g >"$BATS_TEST_TMPDIR/tty"; "$ETRACE_BIN" -n "$NODE" --limit 5 --for 30s work:one/1 2>"$ERR" | cat >"$OUT"; stty -g >>"$BATS_TEST_TMPDIR/tty"'
    for how in closed unset dumb narrow; do
        rm -f "$ERR" "$OUT"
        case $how in
            closed) five <&- ;;
            unset) env -u TERM "$ETRACE_BIN" -n "$NODE" --limit 5 --for 30s work:one/1 </dev/null ;;
            dumb) TERM=dumb five </dev/null ;;
            narrow) BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR NODE=$NODE ERR=$ERR OUT=$OUT script -qec "$narrow" /dev/null </dev/null >/dev/null ;;
        esac >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        until_true 30 ready
        on_node 'work:loop(5)'
        trace_wait
        assert_success
        assert_equal "$(grep -c 'call work:one([1-5])$' "$OUT")" 5
    done
    [[ $(sort -u "$BATS_TEST_TMPDIR/tty" | wc -l) -eq 1 && $(wc -l <"$BATS_TEST_TMPDIR/tty") -eq 2 ]]
}

@test "replay reads a recording whose writer was killed" {
    on_node 'work:flood(2)'
    trace -o "$BATS_TEST_TMPDIR/r.etr" work:one/1
    written() { [[ $("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/r.etr" 2>/dev/null | grep -c 'call work:one(flood)') -gt 100 ]]; }
    until_true 30 written
    kill -KILL "$TRACER"
    on_node 'work:calm(ok)'
    run bash -c "'$ETRACE_BIN' replay '$BATS_TEST_TMPDIR/r.etr' 2>'$ERR' | grep -c 'call work:one(flood)'"
    assert [ "$output" -gt 100 ]
    assert [ "$(wc -l <"$ERR")" -le 2 ]
}

# Cut the recording at every 97th byte, and flip a bit there.
# bats test_tags=long
@test "replay of a cut or damaged recording shows what is readable and one error with the offset" {
    traced -o "$BATS_TEST_TMPDIR/r.etr" 'work:fac/1 -> return, caller' 'work:one/1' -- '[work:fac(3) || _ <- lists:seq(1, 20)], work:loop(200)'
    whole=${#lines[@]}
    size=$(stat -c %s "$BATS_TEST_TMPDIR/r.etr")
    bad=$BATS_TEST_TMPDIR/bad.etr
    checked=0
    for ((at = 0; at < size; at += 97)); do
        head -c "$at" "$BATS_TEST_TMPDIR/r.etr" >"$bad"
        check_bad cut
        cp "$BATS_TEST_TMPDIR/r.etr" "$bad"
        byte=$(od -An -tu1 -j "$at" -N 1 "$bad")
        printf '%b' "\\x$(printf %x $((byte ^ (1 << RANDOM % 8))))" | dd of="$bad" bs=1 seek="$at" conv=notrunc status=none
        check_bad flip
    done
    echo "# $checked damaged recordings of $size bytes" >&3
}

check_bad() {
    local n
    status=0
    "$ETRACE_BIN" replay "$bad" >"$OUT" 2>"$ERR" || status=$?
    n=$(wc -l <"$OUT")
    checked=$((checked + 1))
    [[ $n -le $whole ]] || fail "$1 at $at: more lines than in the complete recording"
    # A recording that is cut between two blocks is just shorter. Damage in a block that no event needs may have no
    # effect.
    case $status in
        0) [[ ! -s $ERR || $(grep -vc '^etrace: ' "$ERR") -eq 0 ]] || fail "$1 at $at: $(<"$ERR")" ;;
        1)
            [[ $(wc -l <"$ERR") -eq 1 ]] || fail "$1 at $at: $(<"$ERR")"
            [[ $at -lt 24 ]] || grep -qE ' at byte [0-9]+$' "$ERR" || fail "$1 at $at: $(<"$ERR")"
            ;;
        *) fail "$1 at $at: status $status: $(<"$ERR")" ;;
    esac
}

@test "replay rejects bytes before or after a recording and a missing last byte" {
    local file=$BATS_TEST_TMPDIR/r.etr size
    traced -o "$file" work:one/1 -- 'work:loop(20)'
    size=$(stat -c %s "$file")
    for bad in 'cat r.etr r.etr' "head -c $((size - 1)) r.etr" '(head -c 100 r.etr; cat r.etr)'; do
        status=0
        (cd "$BATS_TEST_TMPDIR" && eval "$bad" | timeout 30 "$ETRACE_BIN" replay --json -) >"$OUT" 2>"$ERR" || status=$?
        assert_equal "$status" 1
        assert_regex "$(<"$ERR")" '^etrace: standard input: .* at byte [0-9]+$'
        [[ ! -s $OUT ]] || assert_equal "$(json_of summary .complete)" false
    done
    "$ETRACE_BIN" replay --json "$file" >"$OUT"
    assert_equal "$(json_of summary .complete)" true
}

@test "replay says that a file is not a recording" {
    head -c 100000 /dev/urandom >"$BATS_TEST_TMPDIR/random.etr"
    : >"$BATS_TEST_TMPDIR/empty.etr"
    for file in random.etr empty.etr; do
        run "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/$file"
        assert_failure 1
        assert_output --regexp "^etrace: .*$file is not a recording of etrace"
    done
    run "$ETRACE_BIN" replay /nowhere.etr
    assert_failure 1
    assert_output --partial 'cannot read /nowhere.etr'
}
