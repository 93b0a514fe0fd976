#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the variants of the companion's module: a command that only asks questions changes less on the node, leaves nothing
# behind however it ends, and runs beside a trace.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin variants; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Starts a command that asks questions for a minute.
asking() { etrace_start stacks -n "$NODE" --for 60s; }

# companions FUNCTIONS: the processes of companions began with these functions.
companions() {
    local REPLY
    node_ask "$NODE" 'control:companion_functions()'
    [[ $REPLY == "[${1// /,}]" ]]
}

# bats test_tags=each
@test "a command that only asks questions loads no NIF, and creates no trace session" {
    asking
    until_true 30 companions 'owner worker'
    refute grep -qF /etrace.so "/proc/$(<"$(node_dir "$NODE")/pid")/maps"
    assert_equal "$(node_eval "$NODE" '[N || {etrace, N} <- trace:session_info(all)]')" '[]'
    kill -INT "$TRACER"
    trace_wait
    assert_equal "$status" 0
    assert_clean "$BEFORE" "$NODE"
    # A trace has both, so the test would see them.
    trace work:one/1
    grep -qF /etrace.so "/proc/$(<"$(node_dir "$NODE")/pid")/maps"
    assert_regex "$(node_eval "$NODE" '[N || {etrace, N} <- trace:session_info(all)]')" '^\[[0-9]+\]$'
    trace_end
}

# bats test_tags=each
@test "each variant calls only functions that the OTP has" {
    local variant missing=''
    # The tracer calls these only on an OTP that has them, or catches the error.
    [[ $ETRACE_OTP != 27 ]] || missing='records:get_module/1 records:get_name/1 trace:system/3 '
    for variant in whole trace questions; do
        run "$ETRACE_ERL" -noshell -noinput -eval '
            [File] = init:get_plain_arguments(),
            {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(File, [imports]),
            [io:format("~s:~s/~w ", [M, F, A]) || {M, F, A} <- Imports, not erlang:is_builtin(M, F, A),
                code:ensure_loaded(M) =/= {module, M} orelse not erlang:function_exported(M, F, A)],
            halt().' -extra "$ETRACE_ROOT/build/nif/etrace_tracer_$variant.beam"
        assert_equal "$variant: $output" "$variant: $([[ $variant == questions ]] || echo "$missing")"
    done
}

@test "questions end with status 1 and leave nothing if somebody kills the owner, the janitor or both" {
    local victims
    for victims in 'control:companion(owner)' 'control:companion(janitor)' 'control:companion(owner) ++ control:companion(janitor)'; do
        asking
        until_true 30 companions 'owner worker'
        on_node "[exit(P, kill) || P <- $victims]"
        trace_wait
        assert_equal "$status" 1
        assert_clean --atoms 10 "$BEFORE" "$NODE"
    done
}

@test "questions end with status 1 if somebody deletes the companion's module" {
    asking
    until_true 30 companions 'owner worker'
    on_node '[code:delete(M) || M <- control:companion_modules()]'
    trace_wait
    assert_equal "$status" 1
    assert_regex "$talk" 'somebody on the node'
    assert_clean "$BEFORE" "$NODE"
}

@test "questions go on after somebody kills the worker" {
    local looks
    asking
    until_true 30 companions 'owner worker'
    on_node '[Worker] = control:companion(worker), exit(Worker, kill)'
    until_true 30 companions 'owner worker'
    kill -INT "$TRACER"
    trace_wait
    looks=${talk##*etrace: }
    [[ $status == 0 && ${looks%% looks*} -gt 0 || $status == 1 && $talk == *killed* ]] || fail "status $status: $talk"
    assert_clean "$BEFORE" "$NODE"
}

# Succeeds when the worker has worked between five calls of this function, so the client has sent questions.
looks() {
    local REPLY=''
    node_ask "$NODE" '[element(2, process_info(W, reductions)) || W <- control:companion(worker)]'
    [[ $REPLY =~ ^\[([0-9]+)\]$ ]] || return 1
    [[ ${BASH_REMATCH[1]} == "$reductions" ]] || grown=$((grown + 1))
    reductions=${BASH_REMATCH[1]}
    ((grown >= 5))
}

@test "questions leave nothing if the client is killed or frozen" {
    local start reductions=0 grown=0
    asking
    until_true 30 companions 'owner worker'
    child_kill "$TRACER"
    wait "$TRACER" || true
    assert_clean "$BEFORE" "$NODE"
    asking
    # The node closes only the connection of a client that has sent a message: it looks for this one.
    until_true 30 looks
    start=$(millis)
    freeze "$TRACER"
    assert_clean "$BEFORE" "$NODE" 30
    (($(millis) - start > 8000))
    kill -CONT "$TRACER"
    trace_wait
    assert_equal "$status" 4
}

@test "questions and a trace run at the same time, and each leaves the other alone" {
    local tracer out asker
    trace --json work:one/1
    tracer=$TRACER out=$OUT
    OUT=$OUT.asker ERR=$ERR.asker
    asking
    until_true 30 companions 'asker names owner owner warden worker worker'
    # Both have slots of the same build.
    assert_equal "$(node_eval "$NODE" 'length(lists:usort([lists:droplast(atom_to_list(M)) || M <- control:companion_modules()]))')" 1
    asker=$TRACER
    on_node 'work:loop(100)'
    kill -INT "$asker"
    trace_wait
    assert_equal "$status" 0
    on_node 'work:loop(10)'
    TRACER=$tracer OUT=$out
    trace_end
    assert_success
    assert_account 110
}
