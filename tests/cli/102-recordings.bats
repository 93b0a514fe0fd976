#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests recordings without a node: every version of the format, compressed blocks, and what replay reads of them.

bats_require_minimum_version 1.5.0
bats_load_library bats-support
bats_load_library bats-assert

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
