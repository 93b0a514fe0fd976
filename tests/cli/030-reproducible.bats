#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checks that the build is reproducible: the path, the time and the host name of a build do not change the program.

load ../lib/assert

# Removes the debug information and the build id, which depend on the path of the sources.
bare() { objcopy --strip-debug --remove-section=.note.gnu.build-id "$1/build/etrace" "$1/etrace"; }

@test "two builds in different directories produce the same companion and the same program" {
    local erl dir
    erl=$(command -v erl)
    for dir in one two/three; do
        dir=$BATS_TEST_TMPDIR/$dir
        mkdir -p "$dir"
        cp -r "$ETRACE_ROOT"/{cli,nif,man,share,tests,meson.build,meson_options.txt} "$dir/"
        # Optimization takes time and does not change what this test checks.
        (cd "$dir" && meson setup build -Derl="$erl" -Doptimization=0 && ninja -j 2 -C build etrace) >"$BATS_TEST_TMPDIR/log" 2>&1 || fail "$(tail -n 20 "$BATS_TEST_TMPDIR/log")"
        bare "$dir"
    done
    cmp "$BATS_TEST_TMPDIR"/{one,two/three}/build/nif/companion_data.c
    cmp "$BATS_TEST_TMPDIR"/{one,two/three}/etrace
    run "$BATS_TEST_TMPDIR/one/etrace" version -v
    assert_line --regexp '^companion  SHA-256 [0-9a-f]{64}$'
    assert_equal "$("$BATS_TEST_TMPDIR/two/three/etrace" version -v)" "$output"
}
