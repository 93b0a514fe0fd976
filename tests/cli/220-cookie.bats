#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests where etrace reads the cookie, which cookie files it refuses, and that the cookie appears nowhere afterwards. In
# most tests /proc is hidden, so etrace cannot ask the node's process: that is the subject of suite 215.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/node

setup_file() {
    node_start cookies
    export COOKIE_NODE=$NODE
}
teardown_file() { node_stop "$COOKIE_NODE"; }

setup() {
    NODE=$COOKIE_NODE
    OWN=$BATS_TEST_TMPDIR/cookie
    GOOD=$HOME/.erlang.cookie
    umask 077
}

attach() {
    run --separate-stderr without_proc timeout 20 "$ETRACE_BIN" -n "$NODE" "$@" --for 50ms 'lists:seq/2'
}

refused() {
    local text=$1
    shift
    attach "$@"
    assert_failure 3
    assert_equal "${stderr_lines[0]}" "etrace: $text"
}

@test "the cookie comes from --cookie-file, else from HOME, else from the XDG directory" {
    cp "$GOOD" "$OWN"
    attach --cookie-file "$OWN"
    assert_success
    HOME=$BATS_TEST_TMPDIR/home
    mkdir -p "$HOME/.config/erlang" "$BATS_TEST_TMPDIR/xdg/erlang"
    refused 'no cookie: neither ~/.erlang.cookie nor the XDG one exists'
    cp "$GOOD" "$HOME/.config/erlang/.erlang.cookie"
    attach
    assert_success
    export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/xdg
    refused 'no cookie: neither ~/.erlang.cookie nor the XDG one exists'
    cp "$GOOD" "$XDG_CONFIG_HOME/erlang/.erlang.cookie"
    attach
    assert_success
    echo wrong >"$HOME/.erlang.cookie"
    refused "cannot connect to $NODE: the cookie does not match (read from ~/.erlang.cookie)"
}

@test "every fault of the cookie file has its own message" {
    refused "there is no cookie file $OWN" --cookie-file "$OWN"
    : >"$OWN"
    refused "the cookie in $OWN is empty" --cookie-file "$OWN"
    printf '\n' >"$OWN"
    refused "the cookie in $OWN is empty" --cookie-file "$OWN"
    printf 'a\0b' >"$OWN"
    refused "the cookie in $OWN has a NUL character in it" --cookie-file "$OWN"
    printf 'a\nb' >"$OWN"
    refused "the cookie in $OWN has a control character in it" --cookie-file "$OWN"
    printf 'a%.0s' {1..512} >"$OWN"
    refused "the cookie in $OWN is longer than 511 bytes" --cookie-file "$OWN"
    refused "the cookie file $BATS_TEST_TMPDIR is not a regular file" --cookie-file "$BATS_TEST_TMPDIR"
    mkfifo "$BATS_TEST_TMPDIR/fifo"
    refused "the cookie file $BATS_TEST_TMPDIR/fifo is not a regular file" --cookie-file "$BATS_TEST_TMPDIR/fifo"
    head -c 1000000 /dev/zero | tr '\0' a >"$OWN"
    refused "the cookie in $OWN is longer than 511 bytes" --cookie-file "$OWN"
}

@test "a cookie file that other users can access works, with a warning" {
    cp "$GOOD" "$OWN"
    chmod 640 "$OWN"
    attach --cookie-file "$OWN"
    assert_success
    assert_equal "${stderr_lines[0]}" "etrace: warning: other users can access the cookie file $OWN (mode 0640): chmod 400 $OWN"
    attach -qq --cookie-file "$OWN"
    assert_success
    assert_equal "$stderr" ''
    HOME=$BATS_TEST_TMPDIR/open
    mkdir "$HOME"
    cp "$OWN" "$HOME/.erlang.cookie"
    chmod 644 "$HOME/.erlang.cookie"
    attach
    assert_success
    assert_equal "${stderr_lines[0]}" 'etrace: warning: other users can access the cookie file ~/.erlang.cookie (mode 0644): chmod 400 ~/.erlang.cookie'
}

@test "--cookie-file - reads the first line of standard input, once for all nodes" {
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - --for 50ms lists:seq/2 < <(cat "$GOOD"; printf '\nmore\n')
    assert_success
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" -n "${NODE%@*}@localhost" --cookie-file - --for 50ms lists:seq/2 <"$GOOD"
    assert_success
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - lists:seq/2 <<<wrong
    assert_failure 3
    assert_equal "${stderr_lines[0]}" "etrace: cannot connect to $NODE: the cookie does not match (read from standard input)"
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - lists:seq/2 </dev/null
    assert_failure 3
    assert_equal "$stderr" 'etrace: the cookie in standard input is empty'
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - lists:seq/2 <<<$'a\tb'
    assert_failure 3
    assert_equal "$stderr" 'etrace: the cookie in standard input has a control character in it'
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - lists:seq/2 <"$BATS_TEST_TMPDIR"
    assert_failure 3
    assert_equal "$stderr" 'etrace: cannot read the cookie file standard input: Is a directory'
    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --cookie-file - -f - <"$GOOD"
    assert_failure 2
    assert_equal "$stderr" 'etrace: --cookie-file - and --file - both read standard input: use only one'
    run --separate-stderr timeout 20 "$ETRACE_BIN" repl -n "$NODE" --cookie-file - <"$GOOD"
    assert_failure 2
    run timeout 20 script -qec "'$ETRACE_BIN' -n $NODE --cookie-file - lists:seq/2" /dev/null
    assert_failure 2
    assert_output --partial '--cookie-file - reads the cookie from standard input, which is a terminal'
}

@test "a symbolic link as ~/.erlang.cookie is refused" {
    HOME=$BATS_TEST_TMPDIR/linked
    mkdir "$HOME"
    ln -s "$GOOD" "$HOME/.erlang.cookie"
    refused 'the cookie file ~/.erlang.cookie is a symbolic link, which is not followed'
}

@test "the cookie is nowhere in memory, arguments, environment or output after the handshake" {
    cookie=$(<"$GOOD")
    "$ETRACE_BIN" -n "$NODE" 'lists:seq/2' >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    pid=$!
    for ((i = 0; i < 500; i++)); do
        grep -q 'Ctrl-C stops' "$BATS_TEST_TMPDIR/err" && break
        pause 0.02
    done
    while IFS='- ' read -r from to mode _; do
        [[ $mode == rw* ]] || continue
        dd if="/proc/$pid/mem" bs=4096 skip=$((0x$from / 4096)) count=$(((0x$to - 0x$from) / 4096)) status=none 2>/dev/null || true
    done <"/proc/$pid/maps" >"$BATS_TEST_TMPDIR/memory"
    run tr '\0' '\n' <"/proc/$pid/cmdline"
    refute_output --partial "$cookie"
    run tr '\0' '\n' <"/proc/$pid/environ"
    refute_output --partial "$cookie"
    kill -INT "$pid"
    wait "$pid"
    [[ $(stat -c %s "$BATS_TEST_TMPDIR/memory") -gt 100000 ]]
    run grep -c -a -F "${cookie:4}" "$BATS_TEST_TMPDIR/memory"
    assert_output 0
    run cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"
    refute_output --partial "$cookie"
}

@test "etrace disables core dumps and takes no cookie from arguments or from other variables" {
    cc -O1 -fPIC -shared -fno-builtin -o "$BATS_TEST_TMPDIR/fault.so" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
    run timeout 20 env FAULT=count FAULT_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$BATS_TEST_TMPDIR/fault.so" \
        "$ETRACE_BIN" -n "$NODE" --for 50ms 'lists:seq/2'
    assert_success
    assert_equal "$(cut -d ' ' -f 4 "$BATS_TEST_TMPDIR/count")" 0
    attach --cookie "$(<"$GOOD")"
    assert_failure 2
    HOME=$BATS_TEST_TMPDIR/empty
    mkdir "$HOME"
    ERLANG_COOKIE=$(<"$GOOD") ETRACE_COOKIE=$(<"$GOOD") COOKIE=$(<"$GOOD") refused 'no cookie: neither ~/.erlang.cookie nor the XDG one exists'
}
