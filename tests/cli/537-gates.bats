#!/usr/bin/env bats
# What some versions of the virtual machine get wrong is refused there, or said: the table in the companion, asked about versions
# that are not at hand, and what the version that is at hand does.

bats_load_library bats-support
bats_load_library bats-assert
load ../lib/live

setup_file() {
    live_begin gates
    export GATES=$BATS_FILE_TMPDIR
    live_companion "$GATES"
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# The lines of gates:run/1 about these versions.
gates() {
    local versions
    versions=$(printf ',"%s"' "$@")
    timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" "$GATES" -eval "gates:run([${versions#,}]), halt()." </dev/null 3>&-
}

@test "a gate holds from the version that brought the fault, and up to the one that mended it" {
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

@test "every row of the table: which versions it names" {
    rows='[io:format("~w: ~s~n", [Row, lists:join(" ", [V || V <- ["14.2", "15.0", "15.0.1", "15.1", "15.2", "15.2.4", "15.2.6", "15.2.7", "16.2", "17.0", "17.1"],
        lists:keymember(Row, 1, etrace_00000000_0:gates(V))])]) || {Row, _, _, _, _} <- etrace_00000000_0:all_gates()], halt().'
    run timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$GATES" -eval "$rows" </dev/null 3>&-
    assert_output 'garbage_collection: 15.0 15.0.1 15.1 15.2 15.2.4 15.2.6 15.2.7 16.2 17.0 17.1
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

@test "what this version warns of stands in front of the trace" {
    # Another session is what makes another tool's trace-off matter.
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

@test "a built-in function that others blind is heard again, though they are gone" {
    trace --json 'lists:reverse/2'
    heard 1
    # At once where it is mended, with the next self-check where it is not.
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

# never PATTERN [BUT]: no line of the companion has it, unless it has BUT
never() { assert_equal "$(grep -nE -e "$1" "$ETRACE_ROOT"/nif/*.{erl,hrl,eval} | grep -vE -e "${2:-^$}" || true)" ''; }

@test "what could crash some version is not done in any" {
    # A counter is not reset while its function is called, until 27.1.2: a fresh session, always.
    never restart
    # A large message that is sent with priority, or to an alias, until 29.0.6.
    never '\[priority|, priority|alias\('
    # A term that was made to be read, and atoms that nobody has: until 29.0.6, and for ever.
    never 'binary_to_term\(' '\[safe\]'
    # What is erased there has its terms copied behind everybody's back, until 27.3.4.
    never 'persistent_term:(put|erase)'
}

# Compiled code calls it: by apply it is heard all the time.
hears() {
    on_node "work:ask(w, fun() -> lists:reverse([x, y, heard_$1]) end)"
    grep -q "\"\[heard_$1\]\"" "$OUT"
}
heard() { until_true 30 hears "$1" || fail "not heard: $1"; }
