#!/usr/bin/env bats
# Whoever builds the same source gets the same program: nothing of the place, the time or the machine's name is in it.

bats_load_library bats-support
bats_load_library bats-assert

# Without what names the places of the sources for a debugger.
bare() { objcopy --strip-debug --remove-section=.note.gnu.build-id "$1/build/etrace" "$1/etrace"; }

@test "built twice, in two places: the same companion, and the same program" {
    local erl dir
    erl=$(command -v erl)
    for dir in one two/three; do
        dir=$BATS_TEST_TMPDIR/$dir
        mkdir -p "$dir"
        cp -r "$ETRACE_ROOT"/{cli,nif,man,share,tests,meson.build,meson_options.txt} "$dir/"
        # What a compiler makes of it is as much the same with more effort.
        (cd "$dir" && meson setup build -Derl="$erl" -Doptimization=0 && ninja -j 2 -C build etrace) >"$BATS_TEST_TMPDIR/log" 2>&1 || fail "$(tail -n 20 "$BATS_TEST_TMPDIR/log")"
        bare "$dir"
    done
    cmp "$BATS_TEST_TMPDIR"/{one,two/three}/build/nif/companion_data.c
    cmp "$BATS_TEST_TMPDIR"/{one,two/three}/etrace
    # It says what it carries.
    run "$BATS_TEST_TMPDIR/one/etrace" version -v
    assert_line --regexp '^companion  SHA-256 [0-9a-f]{64}$'
    assert_equal "$("$BATS_TEST_TMPDIR/two/three/etrace" version -v)" "$output"
}
