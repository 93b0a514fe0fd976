#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# etrace refuses, or warns of, what some versions of the VM get wrong. The suite checks the companion's table for
# versions that are not installed, and the behaviour of the installed one.

load ../lib/assert
load ../lib/live

setup_file() {
    live_share gates
    export GATES=$BATS_FILE_TMPDIR
    live_companion "$GATES"
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Prints the lines of gates:run/1 for these versions.
gates() {
    local versions
    versions=$(printf ',"%s"' "$@")
    timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" "$GATES" -eval "gates:run([${versions#,}]), halt()." </dev/null 3>&-
}

@test "a gate covers the versions from the one with the fault to the one before the fix" {
    run gates 15.0 15.0.1 15.1 15.2.3 15.2.5.1 15.2.6 16.4 17.0-rc1 17.1
    assert_success
    local memory='call_memory counts wrongly from OTP 27.1 to 27.3.2' stops='reading times and memory stops all schedulers for a moment before OTP 29: once a second at most'
    local late='times of received messages may be late before OTP 27.3.3'
    assert_output "15.0 return_to refused: return_to is unreliable before OTP 27.1
15.0 trace refused: enable, disable and trace use the wrong tracer before OTP 27.1
15.0 meta refused: meta tracing goes to the wrong process before OTP 27.0.1
15.0 receive $late
15.0 calls allowed
15.0 memory [call_count,call_memory]; $stops
15.0 both [call_count,call_time,call_memory]; $stops
15.0 time [call_count,call_time]; $stops
15.0 count [call_count]
15.0.1 return_to refused: return_to is unreliable before OTP 27.1
15.0.1 trace refused: enable, disable and trace use the wrong tracer before OTP 27.1
15.0.1 meta allowed
15.0.1 receive $late
15.0.1 calls allowed
15.0.1 memory [call_count,call_memory]; $stops
15.0.1 both [call_count,call_time,call_memory]; $stops
15.0.1 time [call_count,call_time]; $stops
15.0.1 count [call_count]
$(mended 15.1 "$late" "refused: $memory" "[call_count,call_time]; $memory; $stops")
$(mended 15.2.3 "$late" "refused: $memory" "[call_count,call_time]; $memory; $stops")
$(mended 15.2.5.1 allowed "refused: $memory" "[call_count,call_time]; $memory; $stops")
$(mended 15.2.6 allowed "[call_count,call_memory]; $stops" "[call_count,call_time,call_memory]; $stops")
$(mended 16.4 allowed "[call_count,call_memory]; $stops" "[call_count,call_time,call_memory]; $stops")
$(stops='' mended 17.0-rc1 allowed '[call_count,call_memory]' '[call_count,call_time,call_memory]')
$(stops='' mended 17.1 allowed '[call_count,call_memory]' '[call_count,call_time,call_memory]')"
}

mended() { # VERSION RECEIVE MEMORY BOTH
    printf '%s\n' "$1 return_to allowed" "$1 trace allowed" "$1 meta allowed" "$1 receive $2" "$1 calls allowed" "$1 memory $3" "$1 both $4" \
        "$1 time [call_count,call_time]${stops:+; $stops}" "$1 count [call_count]"
}

@test "every row of the table of gates covers its versions" {
    rows='[io:format("~w: ~s~n", [Row, lists:join(" ", [V || V <- ["14.2", "15.0", "15.0.1", "15.1", "15.2", "15.2.4", "15.2.6", "15.2.7", "16.2", "17.0", "17.1"],
        lists:keymember(Row, 1, etrace_00000000_0:gates(V))])]) || {Row, _, _, _, _} <- etrace_00000000_0:all_gates()], halt().'
    run timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$GATES" -eval "$rows" </dev/null 3>&-
    assert_output 'garbage_collection: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6 15.2.7 16.2 17.0 17.1
label: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6 15.2.7 16.2 17.0 17.1
return_to: 15.0 15.0.1
trace: 15.0 15.0.1
meta: 15.0
emulator: 15.0 15.0.1 15.1
'\''receive'\'': 15.0 15.0.1 15.1 15.2
unload: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6
call_memory: 15.1 15.2 15.2.4
call_time: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6 15.2.7 16.2
bif: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6 15.2.7'
}

# This needs no node: it calls the companion's functions. A line is a way to reach an effect, and the gates and
# effects that the companion finds.
# bats test_tags=each
@test "every way to reach an effect triggers every gate for it" {
    timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" "$GATES" -eval 'gates:routes(), halt().' \
        </dev/null >"$BATS_TEST_TMPDIR/seen" 3>&-
    diff - "$BATS_TEST_TMPDIR/seen" <<'EXPECTED'
call: accepts plain returns=none
two probes: frames accepts returns=some
for each arity: gc return_to trace receive plain returns=some
flag gc: gc accepts plain returns=no_calls
flag all: gc return_to receive plain returns=no_calls
flag of ports: accepts plain returns=no_calls
flag return_to: return_to accepts plain returns=none
flag silent: plain returns=some
flag set_on_spawn and gc: gc accepts plain returns=no_calls
meta: meta accepts plain returns=none
recv: receive accepts plain returns=no_calls
send: gc trace accepts plain returns=no_calls
enable gc: gc trace accepts plain returns=none
enable gc of another: gc trace accepts plain returns=none
enable all: gc return_to trace receive plain returns=some
enable send: trace accepts plain returns=none
enable return_to: return_to trace accepts plain returns=none
enable receive: trace receive accepts plain returns=none
enable silent: trace frames hidden plain returns=some
enable a variable: gc return_to trace receive plain returns=some
enable a constant: gc trace accepts plain returns=none
enable something else: trace accepts plain returns=none
enable what is computed: gc return_to trace receive plain returns=some
disable gc: trace stops accepts plain returns=none
trace gc: gc trace stops accepts plain returns=none
trace all: gc return_to trace receive stops plain returns=some
trace nothing on: trace stops accepts plain returns=none
trace a variable: gc return_to trace receive stops plain returns=some
trace a list with a variable: gc return_to trace receive stops plain returns=some
trace a list with a rest: gc return_to trace receive stops plain returns=some
trace a constant: gc trace stops accepts plain returns=none
trace all arguments: gc return_to trace receive stops plain returns=some
trace all variables: gc return_to trace receive stops plain returns=some
trace another: gc trace stops accepts plain returns=none
gc in a message: gc trace accepts returns=none
gc in a condition: gc trace accepts plain returns=none
gc in a list: gc trace accepts returns=none
gc in a map: gc trace accepts returns=none
gc in a key: gc trace accepts returns=none
gc in what is constant: accepts returns=none
gc as a tuple: accepts returns=none
results: frames accepts plain returns=all
results with exceptions: frames accepts plain returns=all
results in a message: frames accepts returns=all
results of what is not shown: frames hidden returns=some
results, and a message that may be false: frames hidden returns=some
results, and a message in a condition: frames hidden returns=some
results, and silence: frames hidden plain returns=some
label 7: accepts plain returns=none tokens=[{label,7}]
label a: accepts plain returns=none tokens=[{label,a}]
label self: accepts plain returns=none tokens=[computed]
label of a variable: accepts plain returns=none tokens=[computed]
label of a constant: accepts plain returns=none tokens=[{label,7}]
label 576460752303423488: label accepts plain returns=none tokens=[unsafe]
label 576460752303423487: accepts plain returns=none tokens=[{label,576460752303423487}]
label 1.0: label accepts plain returns=none tokens=[unsafe]
label "a": label accepts plain returns=none tokens=[unsafe]
label {{a}}: label accepts plain returns=none tokens=[unsafe]
label ['$1']: label accepts plain returns=none tokens=[unsafe]
label '$_': label accepts plain returns=none tokens=[unsafe]
label '$$': label accepts plain returns=none tokens=[unsafe]
label {caller}: label accepts plain returns=none tokens=[unsafe]
label {const,{a}}: label accepts plain returns=none tokens=[unsafe]
label {'+','$1',1}: label accepts plain returns=none tokens=[unsafe]
label #{}: label accepts plain returns=none tokens=[unsafe]
label <<"a">>: label accepts plain returns=none tokens=[unsafe]
label in a message: label accepts returns=none tokens=[unsafe]
a component that is computed: label accepts plain returns=none tokens=[unsafe]
a component that is computed, of a number: accepts plain returns=none tokens=[{label,1}]
serial: accepts plain returns=none tokens=[{label,0}]
label of a send: label accepts plain returns=no_calls tokens=[unsafe]
EXPECTED
}

# The client resolves a variable only when it makes the specification, so the node checks this label.
# bats test_tags=each
@test "the node also refuses a computed label" {
    run "$ETRACE_BIN" -n "$NODE" 'work:one({_, _} = X) -> set_seq_token(label, X)'
    assert_failure 3
    assert_line -n 0 'etrace: this label of a sequential trace token would crash the node'
}

# bats test_tags=each
@test "etrace warns of a fault of this OTP version before the trace begins" {
    # Another tool's trace-off only matters if another session exists.
    on_node 'register(rival, spawn(fun() -> S = trace:session_create(rival, self(), []), receive done -> trace:session_destroy(S) end end))'
    until_true 30 eval '[[ $(node_eval "$NODE" "length(trace:session_info(all))") == 2 ]]'
    run "$ETRACE_BIN" -n "$NODE" --dry-run lists:reverse/2
    assert_success
    if [[ $ETRACE_OTP == 27 ]]; then
        assert_line --partial 'warning: another tool that stops tracing a built-in function stops it here too'
    else
        refute_line --partial warning
    fi
    on_node 'R = monitor(process, rival), rival ! done, receive {_, R, _, _, _} -> ok end'
}

# bats test_tags=each
@test "a built-in function is traced again after other tracers blind it" {
    trace --json 'lists:reverse/2'
    heard 1
    # etrace traces the function again at once on versions with the fix, and with the next self-check on others.
    on_node 'S = trace:session_create(rival, self(), []), trace:function(S, {lists, reverse, 2}, true, [local]), trace:process(S, all, true, [call]),
        trace:function(S, {lists, reverse, 2}, false, [local]), trace:session_destroy(S)'
    heard 2
    on_node 'erlang:trace_pattern({lists, reverse, 2}, true, [local]), erlang:trace(all, true, [call]),
        erlang:trace_pattern({lists, reverse, 2}, false, [local]), erlang:trace(all, false, [all])'
    heard 3
    trace_end
    assert_success
    assert_account any
}

# never PATTERN [BUT]: asserts that no line of the companion matches PATTERN, except lines that match BUT.
never() { assert_equal "$(grep -nE -e "$1" "$ETRACE_ROOT"/nif/*.{erl,hrl,eval} | grep -vE -e "${2:-^$}" || true)" ''; }

# bats test_tags=each
@test "the companion does nothing that could crash some version" {
    # Until 27.1.2, resetting a counter while its function is called can crash the VM, so etrace uses a fresh session.
    never '\brestart\b'
    # Until 29.0.6, a large message that is sent with priority, or to an alias, can crash the VM.
    never '\[priority|, priority|alias\('
    # Until 29.0.6, decoding a crafted term can crash the VM. On every version, decoding without `safe` can fill the
    # table of atoms.
    never 'binary_to_term\(' '\[safe\]'
    # Until 27.3.4, erasing a persistent term can crash the VM, because the VM copies its value concurrently.
    never 'persistent_term:(put|erase)'
}

# Compiled code makes this call, because a call through apply is always reported.
hears() {
    on_node "work:ask(w, fun() -> lists:reverse([x, y, heard_$1]) end)"
    grep -q "\"\[heard_$1\]\"" "$OUT"
}
heard() { until_true 30 hears "$1" || fail "etrace did not trace call $1"; }
