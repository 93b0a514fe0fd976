#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the companion on the node: how it is loaded, what ends it and how soon, and that it leaves nothing behind.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin companion; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# bats test_tags=long
@test "the module of the companion compiles without a warning on each OTP" {
    # The build's own compilation also warns of functions without a use.
    [[ ! -s $(once companion companion_make)/said ]] || fail "$(<"$(once companion companion_make)/said")"
}

# bats test_tags=each
@test "only the first attach to a node creates atoms" {
    for _ in 1 2 3 4 5; do
        traced 'work:one/1' -- 'ok'
        assert_success
    done
    assert_clean "$BEFORE" "$NODE"
}

@test "ETRACE_DEBUG=wire prints each message between the client and the companion, without the cookie" {
    ETRACE_DEBUG=wire run -0 --separate-stderr timeout -k 1 20 "$ETRACE_BIN" -n "$NODE" --for 100ms --json 'work:one/1 -> return'
    refute_output --partial '> {'
    log=$stderr
    for message in '< waits for tracer' '< reply 0: {ok,#{' '> {pull,' '> {request,' ',{select,#{' ',{arm,#{' '< batch 1: ' '> {stop}' '< gone normal'; do
        run grep -cF -- "$message" <<<"$log"
        assert_success
    done
    refute grep -qF -- "$(<"$HOME/.erlang.cookie")" <<<"$log"
}

@test "unknown names in an expression create no atoms" {
    before=$(node_snapshot "$NODE")
    for name in nonsuch wrok lits xyzzy; do
        run "$ETRACE_BIN" -n "$NODE" "$name:f/1"
        assert_failure 5
        run "$ETRACE_BIN" -n "$NODE" "work:$name/1"
        assert_failure 5
    done
    assert_clean "$before" "$NODE"
}

@test "the error about an unknown module or function suggests a similar name" {
    run "$ETRACE_BIN" -n "$NODE" 'wrok:one/1'
    assert_failure 5
    assert_line 'etrace: there is no module wrok on the node'
    assert_line 'hint: did you mean work?'
    run "$ETRACE_BIN" -n "$NODE" 'work:onne/1'
    assert_line 'etrace: work has no function onne/1'
    assert_line 'hint: did you mean one?'
    run "$ETRACE_BIN" -n "$NODE" 'work:two/1'
    assert_line 'hint: did you mean two/2?'
}

# bats test_tags=long
@test "etrace loads a named module from the code path if it is not loaded" {
    on_node '{code:purge(xmerl_ucs), code:delete(xmerl_ucs), code:purge(xmerl_ucs)}'
    traced 'xmerl_ucs:is_iso10646/1' -- 'xmerl_ucs:is_iso10646(65)'
    assert_success
    assert_equal "${#lines[@]}" 1
}

# bats test_tags=each
@test "etrace leaves nothing on the node after a kill during the attach or a flood" {
    on_node 'spawn(fun() -> register(flood, self()), work:spin(100000000000) end)'
    BEFORE=$(node_snapshot "$NODE")
    for i in 0 5 10 20 30 40 60 80 120 200; do
        "$ETRACE_BIN" -n "$NODE" 'work:_' </dev/null >/dev/null 2>&1 3>&- &
        pid=$!
        pause "0.$(printf %03d "$i")"
        kill -KILL "$pid"
        wait "$pid" 2>/dev/null || true
        assert_clean "$BEFORE" "$NODE"
    done
    on_node 'exit(whereis(flood), kill)'
    BEFORE=$(node_snapshot "$NODE")
}

# bats test_tags=long
@test "the node ends the session of a frozen client after ten seconds, and the client reports it" {
    trace 'work:one/1'
    freeze "$TRACER"
    start=$(millis)
    assert_clean "$BEFORE" "$NODE" 30
    (($(millis) - start > 8000))
    kill -CONT "$TRACER"
    trace_wait
    assert_equal "$status" 4
    assert_regex "$talk" 'ended the tracing: it received nothing from this etrace for 10 seconds'
}

@test "a trace ends with status 1 and leaves nothing if somebody kills the owner, the janitor or both" {
    for victims in 'control:companion(owner)' 'control:companion(janitor)' 'control:companion(owner) ++ control:companion(janitor)'; do
        trace 'work:one/1'
        on_node "[exit(P, kill) || P <- $victims]"
        trace_wait
        assert_equal "$status" 1
        assert_clean --atoms 10 "$BEFORE" "$NODE"
    done
}

# bats test_tags=long
@test "a trace continues after somebody kills the names and worker processes" {
    trace 'work:one/1'
    on_node "[exit(P, kill) || P <- control:companion(names) ++ control:companion(worker)]"
    on_node 'work:ask(w, fun() -> work:one(5) end)'
    until_true 30 grep -q 'work:one(5)' "$OUT"
    trace_end
    assert_equal "$status" 0
}

@test "a trace ends with status 1 if somebody purges the companion's module" {
    trace 'work:one/1'
    on_node '[begin code:purge(M), code:delete(M), code:purge(M) end || M <- control:companion_modules()]'
    trace_wait
    assert_equal "$status" 1
    assert_clean "$BEFORE" "$NODE"
}

# bats test_tags=each
@test "two concurrent clients do not disturb each other" {
    trace 'work:one/1'
    first=$TRACER first_out=$OUT
    OUT=$BATS_TEST_TMPDIR/second ERR=$BATS_TEST_TMPDIR/second_err
    trace 'work:_'
    run node_eval "$NODE" 'length(control:companion(janitor))'
    assert_output 2
    on_node 'work:ask(w, fun() -> work:one(1) end)'
    until_true 30 grep -q 'work:one(1)' "$OUT"
    until_true 30 grep -q 'work:one(1)' "$first_out"
    trace_end
    on_node 'work:ask(w, fun() -> work:one(2) end)'
    until_true 30 grep -q 'work:one(2)' "$first_out"
    run ! grep -q 'work:one(2)' "$OUT"
    kill -INT "$first"
    wait "$first"
}

# bats test_tags=each
@test "etrace arms a reloaded module again and reports it" {
    on_node 'begin {ok, M, B} = compile:forms([{attribute, 1, module, fresh}, {attribute, 1, export, [{f, 1}]}, {function, 1, f, 1, [{clause, 1, [{var, 1, a}], [], [{var, 1, a}]}]}]), code:load_binary(M, "", B), persistent_term:put(fresh, B) end'
    BEFORE=$(node_snapshot "$NODE")
    trace 'fresh:f/1'
    on_node 'begin code:purge(fresh), code:load_binary(fresh, "", persistent_term:get(fresh)) end'
    until_true 30 grep -q 'rearmed fresh' "$ERR"
    on_node 'work:ask(w, fun() -> fresh:f(again) end)'
    until_true 30 grep -q 'fresh:f(again)' "$OUT"
    trace_end
    assert_success
    on_node 'begin persistent_term:erase(fresh), code:purge(fresh), code:delete(fresh), code:purge(fresh) end'
    BEFORE=$(node_snapshot "$NODE")
}

# Writes a replacement for erl: a node that may write and execute nothing in any directory except VOLUME, if that is not
# empty.
hardened() { # VOLUME
    unshare -rm true 2>/dev/null || skip 'no mount namespaces here'
    wrapper=$BATS_TEST_TMPDIR/erl
    cat >"$BATS_TEST_TMPDIR/harden" <<'SH'
for dir in /dev/shm /tmp /var/tmp; do mount --bind "$dir" "$dir" && mount -o remount,bind,noexec "$dir"; done
while read -r _ _ _ _ dir _; do
    case $dir in /dev/shm | /tmp | /var/tmp | /proc*) ;; *) mount -o remount,bind,ro "$dir" ;; esac
done <<EOF 2>/dev/null
$(cat /proc/self/mountinfo)
EOF
[ ! "$1" ] || mount -t tmpfs none "$1"
shift
exec "$@"
SH
    printf '#!/bin/sh\nexec unshare -rm sh %q %q %q "$@"\n' "$BATS_TEST_TMPDIR/harden" "$1" "$ETRACE_ERL" >"$wrapper"
    chmod +x "$wrapper"
}

# bats test_tags=long
@test "a node whose only directory for programs is a volume loads the library from it" {
    mkdir "$BATS_TEST_TMPDIR/volume"
    hardened "$BATS_TEST_TMPDIR/volume"
    ordinary=$NODE
    ETRACE_ERL=$wrapper node_start volume
    on_node 'work:worker(w)'
    trace work:one/1
    refute_regex "$(<"$ERR")" 'without the NIF'
    trace_end
    assert_success
    run node_eval "$NODE" "file:list_dir(\"$BATS_TEST_TMPDIR/volume\")"
    assert_output '{ok,[]}'
    node_stop "$NODE"
    NODE=$ordinary
}

@test "without a directory for the library etrace says why and traces with the limits of the fallback" {
    hardened ''
    ordinary=$NODE
    ETRACE_ERL=$wrapper node_start noexec
    on_node 'work:worker(w)'
    trace 'work:one/1 -> return'
    assert_regex "$(<"$ERR")" '/dev/shm, /tmp, /var/tmp, .*: noexec; /.*: read-only'
    on_node 'work:ask(w, fun() -> work:one({a, [1, 2], "text", <<"bin">>, #{k => 1.5}}) end)'
    until_true 30 grep -q 'return work:one/1 = {a,\[1,2\],"text",<<"bin">>,#{k => 1.5}}' "$OUT"
    trace_end
    assert_success
    trace 'work:spin/1'
    on_node 'spawn(fun() -> work:spin(300000) end)'
    # The tracer without the NIF has hard limits: it drops events at the rate limit, or it ends.
    too_much() { grep -q 'lost here (rate)' "$OUT" || gone "$TRACER"; }
    until_true 60 too_much || fail 'no event was lost'
    trace_end
    assert_regex "$talk$(head -n 2000 "$OUT" | grep 'lost here')" '(queue|rate)'
    run node_eval "$NODE" 'trace:session_info(all)'
    assert_output '[{legacy,default}]'
    node_stop "$NODE"
    NODE=$ordinary
}

# bats test_tags=long
@test "a frozen client does not delay init:stop" {
    node_start halting
    on_node 'work:worker(w)'
    trace 'work:_'
    on_node 'spawn(fun() -> work:spin(100000000000) end)'
    freeze "$TRACER"
    start=$(millis)
    on_node 'init:stop()'
    until_true 8 node_gone "$NODE"
    (($(millis) - start < 9000)) # shorter than the lease: the node did not wait for it to expire
    kill -CONT "$TRACER"
    trace_wait
    assert_equal "$status" 1
    node_stop "$NODE"
    NODE=$LIVE_NODE
}
