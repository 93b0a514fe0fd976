#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Concurrent clients, different builds in turns, many attaches in sequence; and other code that takes etrace's names
# and directories.
# tests/run: last

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

# Tag allocations with the library that made them.
setup_file() { live_begin many +Muatags true; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints the number of blocks that etrace's libraries hold in the node's allocators.
nif_blocks() {
    node_eval "$NODE" '{ok, {_, _, All}} = instrument:allocations(),
        lists:sum([lists:sum(tuple_to_list(H)) || {Who, Types} <- maps:to_list(All), lists:prefix("etrace", atom_to_list(Who)), {_, H} <- maps:to_list(Types)])'
}

@test "forty attaches leak neither memory nor blocks of the library" {
    # The first attach and the first measurement allocate memory that stays, so run each once.
    "$ETRACE_BIN" -n "$NODE" -qq --for 20ms 'work:one/1 -> return' 'send(_, _)' >/dev/null
    nif_blocks >/dev/null
    used=$(node_eval "$NODE" '[garbage_collect(P) || P <- processes()], erlang:memory(total)')
    live_snapshot
    for ((i = 0; i < ${ETRACE_ALL:+1}40; i++)); do
        "$ETRACE_BIN" -n "$NODE" -qq --for 1ms 'work:one/1 -> return' 'send(_, _)' >/dev/null
    done
    assert_clean "$BEFORE" "$NODE"
    assert_equal "$(nif_blocks)" 0
    # The allocators release memory after a delay.
    until_true 30 as_before || fail "the memory has grown by $grown bytes"
    echo "# memory after so many attaches: $grown bytes more" >&3
}
as_before() {
    grown=$(node_eval "$NODE" "[garbage_collect(P) || P <- processes()], erlang:memory(total) - $used")
    [[ $grown -lt 2097152 ]]
}

@test "the node is unchanged after eight clients come, go and are killed" {
    on_node 'work:flood(1)'
    flooded=$(node_snapshot "$NODE")
    end=$(($(millis) + ${ETRACE_ALL:+6}8000))
    for i in {1..8}; do
        (
            RANDOM=$i
            while [[ $(millis) -lt $end ]]; do
                "$ETRACE_BIN" -n "$NODE" -qq --for "$((RANDOM % 400 + 1))ms" 'work:one/1 -> return' >/dev/null 2>"$ERR.$i" </dev/null &
                mine=$!
                if ((RANDOM % 3 == 0)); then
                    pause "0.$((RANDOM % 4))"
                    child_kill "$mine"
                    wait "$mine" 2>/dev/null || true
                else
                    wait "$mine" || { status=$? && [[ $status -le 4 ]] || echo "status $status" >>"$BATS_TEST_TMPDIR/bad"; }
                fi
            done
        ) 3>&- &
        clients[i]=$!
    done
    wait "${clients[@]}"
    [[ ! -e $BATS_TEST_TMPDIR/bad ]] || fail "$(cat "$BATS_TEST_TMPDIR/bad" "$ERR".*)"
    # Each slot leaves entries of functions in the VM, up to 64 kB, and killed clients take slots until their lease ends.
    assert_clean --memory 2097152 "$flooded" "$NODE"
    on_node 'work:calm(ok)'
    live_snapshot
}

# A build is identified by its hash. A copy of the binary with other eight digits in place of the hash is another
# build.
other_build() {
    local hash
    hash=$("$ETRACE_BIN" version | sed -n 's/.*companion \([0-9a-f]\{8\}\).*/\1/p')
    [[ $hash ]]
    LC_ALL=C sed "s/$hash/$(tr 0-9a-f 1-9a-f0 <<<"$hash")/g" "$ETRACE_BIN" >"$BATS_TEST_TMPDIR/etrace"
    chmod +x "$BATS_TEST_TMPDIR/etrace"
    run ! cmp -s "$ETRACE_BIN" "$BATS_TEST_TMPDIR/etrace"
}

@test "two builds of etrace trace in alternation and at the same time" {
    other_build
    for _ in 1 2 3 4 5; do
        "$BATS_TEST_TMPDIR/etrace" -n "$NODE" -qq --for 5ms work:one/1 >/dev/null
        "$ETRACE_BIN" -n "$NODE" -qq --for 5ms work:one/1 >/dev/null
        "$BATS_TEST_TMPDIR/etrace" ls -n "$NODE" work:one/1 >/dev/null
        "$ETRACE_BIN" ls -n "$NODE" work:one/1 >/dev/null
    done
    assert_clean "$BEFORE" "$NODE"
    trace --json work:one/1
    mine=$TRACER mine_out=$OUT
    OUT=$OUT.other ERR=$ERR.other
    ETRACE_BIN=$BATS_TEST_TMPDIR/etrace trace --json work:one/1
    assert_equal "$(node_eval "$NODE" 'length(control:companion_modules())')" 2
    # Questions of either build run beside them and leave them alone.
    "$BATS_TEST_TMPDIR/etrace" ls -n "$NODE" work:one/1 >/dev/null
    "$ETRACE_BIN" ls -n "$NODE" work:one/1 >/dev/null
    on_node 'work:loop(100)'
    trace_end
    assert_success
    assert_account 100
    on_node 'work:loop(10)'
    TRACER=$mine OUT=$mine_out
    trace_end
    assert_success
    assert_account 110
}

@test "another module under the companion's name leaves a clean node, and the next trace works" {
    trace --json work:one/1
    on_node '[M] = control:companion_modules(),
        {ok, _, Bin} = compile:forms([{attribute, 1, module, M}, {attribute, 1, export, [{x, 0}]}, {function, 1, x, 0, [{clause, 1, [], [], [{atom, 1, x}]}]}]),
        {module, M} = code:load_binary(M, "junk", Bin), work:loop(10)'
    kill -INT "$TRACER" 2>/dev/null || true
    trace_wait
    [[ $status -le 4 ]] || fail "status $status: $talk"
    # The compiler, not etrace, made these atoms and used this memory.
    assert_clean --atoms 8000 --memory 10000000 "$BEFORE" "$NODE"
    live_snapshot
    traced --json work:one/1 -- 'work:loop(3)'
    assert_success
    assert_account 3
}

@test "a stranger on the node's host cannot reach the files that the node loads" {
    [[ $EUID -eq 0 ]] || skip 'needs another user'
    mkdir -m 777 "$BATS_TEST_TMPDIR/won"
    chmod 755 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" 2>/dev/null || true
    # The other user creates a name like etrace's first, and puts files and links into each directory of etrace that
    # appears.
    setpriv --reuid 65534 --regid 65534 --clear-groups bash -c '
        for dir in /tmp /dev/shm /var/tmp; do mkdir -p "$dir/etrace-0000000000000000"; done
        while [[ -d $1 ]]; do
            for it in /tmp/etrace-* /dev/shm/etrace-* /var/tmp/etrace-*; do
                [[ $it =~ -[0-9a-f]{32}$ ]] || continue
                { echo x >"$it/etrace.so" || ln -s /etc/passwd "$it/x" || chmod 777 "$it" || mv "$it" "$it.mine" || ls "$it"; } 2>/dev/null >/dev/null &&
                    touch "$1/won"
            done
        done' - "$BATS_TEST_TMPDIR/won" </dev/null >/dev/null 2>&1 3>&- &
    stranger=$!
    TRACERS+=("$stranger")
    for ((i = 0; i < ${ETRACE_ALL:+4}15; i++)); do "$ETRACE_BIN" -n "$NODE" --for 1ms work:one/1 >/dev/null 2>"$ERR"; done
    won=$(ls "$BATS_TEST_TMPDIR/won")
    rm -rf "$BATS_TEST_TMPDIR/won"
    wait "$stranger"
    rm -rf /tmp/etrace-0000000000000000 /dev/shm/etrace-0000000000000000 /var/tmp/etrace-0000000000000000
    assert_equal "$won" ''
    run ! grep -q 'without the NIF' "$ERR"
}
