#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the text of the recipes: they are listed, they are shown, and all have one format. 900-recipes runs them on a
# node.

bats_require_minimum_version 1.5.0
load ../lib/assert

@test "etrace recipes lists at least twenty recipes, each with a question on one line" {
    run "$ETRACE_BIN" recipes
    assert_success
    [ "${#lines[@]}" -ge 20 ]
    for line in "${lines[@]}"; do
        [[ $line =~ ^[a-z0-9-]+\ +[A-Z] ]] || fail "no question: $line"
        [ "${#line}" -le 80 ] || fail "too wide: $line"
    done
}

@test "every recipe has a question, a command, its output and an explanation" {
    for file in "$ETRACE_ROOT"/share/recipes/*.recipe; do
        name=${file##*/}
        name=${name%.recipe}
        "$ETRACE_BIN" recipes "$name" | cmp - "$file"
    done
    # The numbers are those of the lines that are not empty.
    run awk 'FNR == 1 { said(); file = FILENAME; n = good = explained = 0 }
        NF { good += (++n == 1 && /^# ./) + (n == 2 && /^    \$ etrace ./) + (n == 3 && /^    ./); explained += /^[^ #]/ && length > 20 }
        function said() { if (file && (good != 3 || !explained)) print file } END { said() }' "$ETRACE_ROOT"/share/recipes/*.recipe
    assert_success
    assert_output ''
}

@test "etrace recipes lists every file of share/recipes" {
    find "$ETRACE_ROOT/share/recipes" -name '*.recipe' -printf '%f\n' | sed 's/[.]recipe$//' | sort >"$BATS_TEST_TMPDIR/files"
    "$ETRACE_BIN" recipes | sed 's/ .*//' | sort >"$BATS_TEST_TMPDIR/listed"
    run diff "$BATS_TEST_TMPDIR/files" "$BATS_TEST_TMPDIR/listed"
    assert_success
}

@test "an unknown recipe is refused and the nearest one is suggested" {
    run "$ETRACE_BIN" recipes slow-cals
    assert_failure 2
    assert_line -n 0 "etrace: unknown recipe 'slow-cals'"
    assert_line -n 1 'hint: did you mean slow-calls?'
}
