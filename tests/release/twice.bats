#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checks that the release is reproducible: the directories, the user's settings and the time of a build do not change
# what it makes.

load ../lib/assert
load ../lib/node
load build

@test "two builds of a release in different directories have the same bytes" {
    local dir=$BATS_TEST_TMPDIR
    release_once
    mkdir -p "$dir/elsewhere/tmp"
    (
        umask 077
        export TMPDIR=$dir/elsewhere/tmp HOME=$dir/elsewhere TZ=Asia/Tokyo LC_ALL=C LANG=de_DE.UTF-8 CFLAGS=-O0
        release_build "$dir/elsewhere/two" "$RELEASE/tree"
    )
    assert_equal "$(cd "$dir/elsewhere/two/dist" && sha256sum -- *)" "$(cd "$DIST" && sha256sum -- *)"
    assert_equal "$(find "$dir/elsewhere/two/dist" -printf '%P %m\n' | sort)" "$(find "$DIST" -printf '%P %m\n' | sort)"
}
