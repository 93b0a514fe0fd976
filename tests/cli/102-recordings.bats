#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests recordings without a node: every version of the format, compressed blocks, and what replay reads of them.

bats_require_minimum_version 1.5.0
load ../lib/assert

fixtures=$ETRACE_ROOT/tests/fixtures

replay() { "$ETRACE_BIN" replay -q "$@"; }

@test "recordings of every version of the format replay to the same text as ever" {
    for file in "$fixtures"/recordings/*.etr; do
        name=${file##*/}
        replay --utc "$file" | diff "$fixtures/recordings/${name%%.*}.text" - || fail "$name differs"
    done
}

@test "a recording is compressed, and replays to the same text" {
    cd "$BATS_TEST_TMPDIR"
    "$ETRACE_ROOT/build/tests/scene" frames 3000 >plain.etr
    replay plain.etr -o small.etr --utc >plain.text
    assert [ "$(($(stat -c %s small.etr) * 5))" -lt "$(stat -c %s plain.etr)" ]
    replay small.etr --utc | cmp - plain.text
    replay plain.etr --as record >piped.etr
    cmp piped.etr small.etr
    replay - --utc <small.etr | cmp - plain.text
}

@test "a compressed run is appended to a recording of version 1 and after a cut" {
    cd "$BATS_TEST_TMPDIR"
    cp "$fixtures/recordings/runs.1.etr" a.etr
    replay "$fixtures/shop.etr" -a -o a.etr >/dev/null
    replay a.etr --utc | cmp - "$fixtures/recordings/mixed.text"
    size=$(stat -c %s a.etr)
    truncate -s -1 a.etr
    replay "$fixtures/shop.etr" -a -o a.etr >/dev/null
    assert [ "$(stat -c %s a.etr)" -gt "$size" ]
    run replay a.etr --utc
    assert_success
    assert_equal "$(grep -c 'Shop.Repo' <<<"$output")" "$(($(grep -c 'Shop.Repo' "$fixtures/recordings/mixed.text") + $(grep -c 'Shop.Repo' "$fixtures/shop.text")))"
}

times() { awk '{ print $1 }' | sort -u; }

@test "recordings of more nodes than a replay can show are refused before it prints anything" {
    local -a files
    cd "$BATS_TEST_TMPDIR"
    for ((i = 0; i < 257; i++)); do ln -s "$fixtures/shop.etr" "$i.etr"; done
    run -1 --separate-stderr "$ETRACE_BIN" replay ./*.etr
    assert_output ''
    assert_equal "${stderr_lines[0]}" 'etrace: recordings of more than 256 nodes cannot be shown together'
    rm 0.etr
    recordings=(./*.etr)
    run -0 --separate-stderr "$ETRACE_BIN" replay -c "${recordings[@]}"
    # Some of fewer files have several nodes.
    replay "${recordings[@]:0:2}" -o two.etr >/dev/null
    run -1 --separate-stderr "$ETRACE_BIN" replay -c two.etr "${recordings[@]:0:255}"
    assert_equal "${stderr_lines[0]}" 'etrace: recordings of more than 256 nodes cannot be shown together'
}

@test "-a leaves a recording as it was if the trace cannot start, and one that is damaged" {
    local before at status
    cd "$BATS_TEST_TMPDIR"
    replay "$fixtures/shop.etr" -o sound.etr >/dev/null
    head -c -50 sound.etr >cut.etr
    for file in sound cut; do
        before=$(sha256sum $file.etr)
        run -3 --separate-stderr "$ETRACE_BIN" -n nobody@127.0.0.1 -a -o $file.etr lists:seq/2
        assert_equal "$(sha256sum $file.etr)" "$before"
    done
    # One byte of the first block, and one of its length.
    for at in 60 26; do
        cp sound.etr bad.etr
        printf '\x5a' | dd of=bad.etr bs=1 seek=$at conv=notrunc status=none
        before=$(sha256sum bad.etr)
        run -1 --separate-stderr "$ETRACE_BIN" replay "$fixtures/shop.etr" -a -o bad.etr
        assert_regex "$stderr" '^etrace: bad.etr: the recording is (damaged|truncated).* at byte [0-9]+'$'\n''hint: -a appends nothing'
        assert_equal "$(sha256sum bad.etr)" "$before"
    done
}

@test "--from and --to show a part of a recording, by time of day, date or distance" {
    local all=$BATS_TEST_TMPDIR/all.text
    replay "$fixtures/shop.etr" --utc >"$all"
    part() { # FROM TO OPTIONS...: compares with the lines of these times of day
        local from=$1 to=$2
        shift 2
        replay "$fixtures/shop.etr" --utc "$@" >"$BATS_TEST_TMPDIR/part.text"
        awk -v from="$from" -v to="$to" '$1 >= from && $1 <= to' "$all" | times | diff - <(times <"$BATS_TEST_TMPDIR/part.text") || fail "$* differs"
        assert [ -s "$BATS_TEST_TMPDIR/part.text" ]
    }
    part 23:45:29.497 24 --from +100ms
    part 0 23:45:29.407 --to +10ms
    part 23:45:29.4 24 --from 23:45:29.4
    part 23:45:29.4 23:45:29.499 --from 23:45:29.4 --to 23:45:29.499
    part 0 23:45:29.44 --to 23:45:29.44
    part 0 24 --from 23:45
    part 0 24 --to 00:10
    part 0 24 --from -1h --to +1h
    date=$(replay "$fixtures/shop.etr" --json | jq -r 'select(.type == "call") | .ts' | head -n 1)
    day=${date%T*}
    part 23:45:29.4 24 --from "${day}T23:45:29.4Z"
    part 23:45:29.4 24 --from "$day 21:45:29.4-02:00"
    part 0 23:45:29.44 --to "${day}T23:45:29.44"
    part 0 24 --from "$day"
    TZ=UTC-3 run "$ETRACE_BIN" replay -q "$fixtures/shop.etr" --from 02:45:29.4
    assert_line -n 0 --regexp '^02:45:29\.4'
    TZ=UTC-3 run "$ETRACE_BIN" replay -q "$fixtures/shop.etr" --from "${day}T23:45:29.4Z"
    assert_line -n 0 --regexp '^02:45:29\.4'
    run replay "$fixtures/shop.etr" --to "2001-01-01"
    assert_success
    assert_output ''
}

@test "a part from the end needs a file; other parts are shown from a pipe, too" {
    cd "$BATS_TEST_TMPDIR"
    local all
    replay "$fixtures/shop.etr" -o small.etr --utc >all.text
    for file in "$fixtures/shop.etr" small.etr; do
        replay "$file" --utc --from -10ms >end.text
        assert [ -s end.text ]
        tail -n "$(wc -l <end.text)" all.text | cmp - end.text
        assert [ "$(wc -l <end.text)" -lt "$(wc -l <all.text)" ]
        replay "$file" --utc --from +100ms | cmp - <(replay - --utc --from +100ms < <(cat "$file"))
    done
    run replay - --from -5ms < <(cat "$fixtures/shop.etr")
    assert_failure 2
    assert_line -n 0 'etrace: standard input is not a file, so its end is unknown before it is read'
    head -c 300 small.etr >cut.etr
    run replay cut.etr --from -1h
    assert_failure 1
    assert_line --regexp '^etrace: cut.etr: the recording is truncated'
}

@test "a part of several nodes and runs is shown, and counts the rest as filtered" {
    local nodes=$fixtures/recordings/nodes.1.etr
    run replay "$nodes" --from +500ms --to +560ms
    assert_success
    assert_output --partial 'duo:one(6)'
    refute_output --partial 'duo:one(1)'
    run bash -c "'$ETRACE_BIN' replay -q --json '$nodes' --from +200ms | jq -c 'select(.type == \"summary\") | [.seen, .shown + .filtered]'"
    assert_equal "$(jq '.[0] == .[1]' <<<"$output")" true
}

@test "a result whose call is before --from has no duration" {
    local from
    from=$(replay "$fixtures/shop.etr" --utc | awk '/ return shop_orders:place/ { print $1; exit }')
    run replay "$fixtures/shop.etr" --utc --from "$from"
    assert_line --regexp "^$from .* return shop_orders:place/3 = \{.*\}( \?)?$"
    run bash -c "'$ETRACE_BIN' replay -q --utc --json '$fixtures/shop.etr' --from $from | jq 'select(.type == \"return\") | .dur_ns' | head -n 1"
    assert_output null
}

@test "malformed times and a part that ends before it begins are refused" {
    for time in '' x 25:00 12:60 12 2026-13-01 2026-02-30 2026-01-01T 12:00:00x +x - +; do
        run "$ETRACE_BIN" replay "$fixtures/shop.etr" --from "$time"
        assert_failure 2
        assert_line -n 0 "etrace: --from does not take '$time'"
        assert_line -n 1 --partial 'hint: 18:26:50'
    done
    run "$ETRACE_BIN" replay "$fixtures/shop.etr" --from +2s --to +1s
    assert_failure 2
    assert_output 'etrace: --from +2s is after --to +1s'
}

@test "several recordings are shown in the order of time, like several nodes" {
    local both=$fixtures/recordings/nodes.text
    cd "$BATS_TEST_TMPDIR"
    cp "$fixtures/recordings/left.1.etr" left.etr
    replay "$fixtures/recordings/right.1.etr" -o right.etr >/dev/null
    replay --utc left.etr right.etr | diff - "$both"
    replay --utc right.etr left.etr -o both.etr | diff - "$both"
    replay --utc both.etr | diff - "$both"
    replay --utc left.etr - <right.etr | diff - "$both"
    replay --utc left.etr right.etr --from -300ms | grep -c ' call ' >calls
    assert [ "$(<calls)" -gt 2 ]
    replay --utc left.etr right.etr --from -300ms | grep ' call ' | cmp - <(tail -n 26 "$both" | grep ' call ' | tail -n "$(<calls)")
    run bash -c "'$ETRACE_BIN' replay -q --json left.etr right.etr | jq -c 'select(.type == \"summary\") | [.seen, (.nodes | length)]'"
    assert_output '[48,2]'
    run bash -c "'$ETRACE_BIN' replay -q left.etr left.etr | grep -c ' call '"
    assert_output 24
}

@test "a malformed recording does not hide the others, and its error comes at the end" {
    cd "$BATS_TEST_TMPDIR"
    local calls
    cp "$fixtures/recordings/right.1.etr" right.etr
    head -c 4000 "$fixtures/recordings/left.1.etr" >cut.etr
    run bash -c "'$ETRACE_BIN' replay -q --utc cut.etr right.etr 2>err | grep -c 'right@.* call '; exit \${PIPESTATUS[0]}"
    assert_failure 1
    assert_output 12
    run cat err
    assert_output --regexp '^etrace: cut.etr: the recording is truncated.* at byte [0-9]+$'
    run replay right.etr missing.etr
    assert_failure 1
    assert_output --partial 'cannot read missing.etr'
}

@test "recordings with different expressions, and standard input twice, are refused" {
    run replay "$fixtures/recordings/left.1.etr" "$fixtures/shop.etr"
    assert_failure 1
    assert_line -n 0 'etrace: the recordings have different expressions, so they cannot be shown together'
    assert_line -n 1 'hint: replay them one by one'
    assert_equal "${#lines[@]}" 2
    run replay - - <"$fixtures/shop.etr"
    assert_failure 2
    assert_line -n 0 'etrace: a file name is empty, or standard input is given twice'
    run replay "$fixtures/shop.etr" -o "$fixtures/shop.etr" "$fixtures/recordings/left.1.etr"
    assert_failure 2
    assert_output --partial 'is the recording that etrace reads'
}

# Makes recordings of several nodes, of one node, and of two, each with many checkpoints.
checkpoint_files() {
    local scene=$ETRACE_ROOT/build/tests/scene copy=$ETRACE_ROOT/build/tests/checkpoints
    "$scene" nodes 300 1 3 | "$copy" 20000 >three.etr
    "$scene" nodes 400 11 1 | "$copy" 20000 >one.etr
    "$scene" nodes 250 21 2 | "$copy" 20000 >two.etr
    for name in nodes.1 runs.1 left.1 right.1; do "$copy" 1 <"$fixtures/recordings/$name.etr" >"$name.etr"; done
    "$copy" 1 <"$fixtures/shop.etr" >shop.etr
}

# Compares a part with the same part of a replay that reads everything, because it also makes a recording.
same_part() { # FILES OPTIONS...
    local files=$1
    shift
    # shellcheck disable=SC2086
    "$ETRACE_BIN" replay $files --utc "$@" >part 2>part.err || echo "status $?" >>part.err
    # shellcheck disable=SC2086
    "$ETRACE_BIN" replay $files --utc "$@" -o whole.etr >whole 2>whole.err || echo "status $?" >>whole.err
    cmp part whole || fail "$files $*: the output differs"
    cmp part.err whole.err || fail "$files $*: the report differs"
}

@test "a part that begins at a checkpoint is the same as one that is read from the beginning" {
    cd "$BATS_TEST_TMPDIR"
    local views=(text json summary hist tree flame) files range from view to i
    checkpoint_files
    RANDOM=1
    while read -r range files; do
        for i in ${ETRACE_ALL:+2 3 5} 1 4; do
            from=$((RANDOM % range)) view=${views[RANDOM % 6]} to=()
            [[ $i -lt 4 ]] || to=(--to "+$((from + RANDOM % 100))ms")
            same_part "$files" --as "$view" --from "+${from}ms" "${to[@]}"
        done
    done <<END
300 three.etr
400 one.etr
250 two.etr
300 three.etr one.etr two.etr
300 two.etr three.etr
400 shop.etr
700 nodes.1.etr
500 runs.1.etr
500 left.1.etr right.1.etr
END
    same_part three.etr --from 18:26:50.200 --to 18:26:50.210
    same_part three.etr --from -50ms
    same_part three.etr --from +200ms --to 18:26:50.1
    same_part "three.etr one.etr" --from 2025-11-20T18:26:50.2Z -g atom_7
}

decompressed() { "$ETRACE_BIN" replay "$@" 2>&1 >/dev/null | sed -n 's/.* \([0-9]*\) blocks decompressed/\1/p'; }
read_bytes() { "$ETRACE_BIN" replay "$@" 2>&1 >/dev/null | sed -n 's/.*: \([0-9]*\) bytes read.*/\1/p'; }

@test "a part near the end of a recording is shown without reading what is before" {
    cd "$BATS_TEST_TMPDIR"
    export ETRACE_DEBUG=1
    local all
    "$ETRACE_ROOT/build/tests/scene" nodes 2000 11 1 | "$ETRACE_ROOT/build/tests/checkpoints" 100000 >one.etr
    all=$(decompressed one.etr)
    assert [ "$all" -gt 1500 ]
    assert [ "$(decompressed one.etr --from -30ms)" -lt $((all / 10)) ]
    assert [ "$(read_bytes one.etr --from -30ms)" -lt $(($(stat -c %s one.etr) / 2)) ]
    assert [ "$(decompressed one.etr --from +1s --to +1010ms)" -lt $((all / 2)) ]
    # without its end the recording has no index, and the headers of its blocks lead to the checkpoints
    truncate -s -60000 one.etr
    assert [ "$(decompressed one.etr --from +1.7s)" -lt $((all / 3)) ]
    run "$ETRACE_BIN" replay -q one.etr --from +1.7s
    assert_failure 1
    assert_output --partial 'mod:f'
    assert_line --regexp '^etrace: one.etr: the recording is truncated'
    unset ETRACE_DEBUG
    same_part one.etr --from +1.7s
}

@test "a damaged checkpoint or index is not used" {
    cd "$BATS_TEST_TMPDIR"
    checkpoint_files
    cp one.etr whole.etr
    local size at
    size=$(stat -c %s one.etr)
    # the footer is preceded by the end of the index: u64 run, u32 bytes, u32 magic
    for at in $((size - 120 - 16)) $((size - 120 - 8)) $((size - 120 - 1)) $((size - 120 - 30)); do
        cp whole.etr one.etr
        printf '\377' | dd of=one.etr bs=1 seek="$at" conv=notrunc status=none
        run "$ETRACE_BIN" replay -q one.etr --from +390ms --utc
        assert_output --partial 'mod:f'
        assert [ "$(grep -c '^etrace: ' <<<"$output")" -le 1 ]
    done
}

@test "a run that is appended to a recording is shown whole, and checkpoints before it are used" {
    cd "$BATS_TEST_TMPDIR"
    "$ETRACE_ROOT/build/tests/scene" nodes 200 11 1 | "$ETRACE_ROOT/build/tests/checkpoints" 20000 >one.etr
    "$ETRACE_ROOT/build/tests/scene" nodes 200 11 1 >next.etr
    replay next.etr -a -o one.etr >/dev/null
    for from in 50 100 150 190; do same_part one.etr --from "+${from}ms"; done
    same_part one.etr --from -20ms
}

@test "a recording gets checkpoints by itself, and a recording with them replays as ever" {
    cd "$BATS_TEST_TMPDIR"
    "$ETRACE_ROOT/build/tests/scene" frames 300000 >plain.etr
    replay plain.etr -o small.etr --as summary --utc >/dev/null
    export ETRACE_DEBUG=1
    assert [ "$(decompressed small.etr --from -1ms)" -lt "$(decompressed small.etr)" ]
    unset ETRACE_DEBUG
    same_part small.etr --from -1ms
    local old=$fixtures/recordings/checkpoints
    replay "$old/one.2.etr" --utc --from +28ms | diff "$old/one.text" -
    replay - --utc --from +28ms <"$old/one.2.etr" | diff "$old/one.text" -
}

@test "a replay that ends early leaves nothing behind, and reads a bounded part of the recording" {
    cd "$BATS_TEST_TMPDIR"
    local all early
    "$ETRACE_ROOT/build/tests/scene" nodes 3000 11 1 | "$ETRACE_ROOT/build/tests/checkpoints" 1000000 >one.etr
    export ETRACE_DEBUG=1
    all=$(decompressed one.etr)
    early=$(decompressed one.etr --to +1ms)
    assert [ "$early" -lt "$all" ]
    unset ETRACE_DEBUG
    run bash -c "'$ETRACE_BIN' replay -q one.etr | head -n 1; exit \${PIPESTATUS[0]}"
    assert_success
    assert_equal "${#lines[@]}" 1
    # the last block is cut off: its error comes after the events before it
    truncate -s -100 one.etr
    run bash -c "'$ETRACE_BIN' replay -q one.etr 2>&1 >out | cat; tail -n 1 out"
    assert_line -n 0 --regexp '^etrace: one.etr: the recording is truncated at byte [0-9]+$'
    assert_line -n 1 --partial 'mod:f'
}

@test "an interrupt ends a replay that waits for a pipe" {
    cd "$BATS_TEST_TMPDIR"
    mkfifo pipe
    local reader
    "$ETRACE_BIN" replay -q pipe --utc >out 2>err 3>&- &
    reader=$!
    exec 9>pipe
    head -c 9000 "$fixtures/shop.etr" >&9
    until [[ $(find "/proc/$reader/task" -mindepth 1 -maxdepth 1 | wc -l) -ge 2 ]]; do :; done # the writer has begun
    kill -INT "$reader"
    wait "$reader" || true
    exec 9>&-
    assert [ ! -d "/proc/$reader" ]
    run cat err
    assert_output ''
}

@test "a node of two recordings counts as two nodes, and as one if a recording is appended to the other" {
    cd "$BATS_TEST_TMPDIR"
    cp "$fixtures/shop.etr" later.etr
    replay "$fixtures/shop.etr" later.etr --as summary >two
    run grep -c 'shop@127.0.0.1 shop_orders:place/3' two
    assert_output 2
    replay "$fixtures/shop.etr" -o earlier.etr >/dev/null
    replay later.etr -a -o earlier.etr >/dev/null
    replay earlier.etr --as summary >one
    run grep shop_orders:place/3 one
    assert_equal "${#lines[@]}" 1
    assert_line --regexp '^ +4 .* shop_orders:place/3$'
}

@test "INT and TERM end the search for the end of a recording, or for a time in it" {
    local first
    first=$(od -An -tu4 -j24 -N4 "$fixtures/shop.etr") # bytes of the first block, which follow 24 of the file's header and 16 of its own
    head -c $((24 + 16 + first)) "$fixtures/shop.etr" >"$BATS_TEST_TMPDIR/x.etr"
    truncate -s 100G "$BATS_TEST_TMPDIR/x.etr" # zeros are empty blocks
    # Reading the recording alone takes a few thousand bytes.
    searches() { [[ $(awk '$1 == "rchar:" { print $2 }' "/proc/$1/io") -gt 1000000 ]]; }
    for option in --from=-1s --to=-1s --from=+1s; do
        for signal in INT TERM; do
            "$ETRACE_BIN" replay "$option" "$BATS_TEST_TMPDIR/x.etr" >/dev/null 2>&1 3>&- &
            until searches $!; do sleep 0.05; done
            status=0
            kill "-$signal" $!
            wait $! || status=$?
            assert_equal "$status" $((128 + $(kill -l "$signal")))
        done
    done
}
