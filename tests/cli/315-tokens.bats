#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests sequential tracing: the chain equals what the VM's own tracer sees. The VM has one system tracer for it: etrace
# takes that place only when it is free, and frees it however the trace ends.

load ../lib/assert
load ../lib/live

setup_file() { live_share tokens; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    live_teardown
    assert_equal "$(tracer)" '{sequential_tracer,false}'
}

tracer() { node_eval "$NODE" 'erlang:system_info(sequential_tracer)'; }
free() { [[ $(tracer) == '{sequential_tracer,false}' ]]; }

# Sorts a chain, and numbers the processes by their first appearance, because two runs have different pids.
chain() {
    sort -k2,2n -k3,3n -k1,1r "$1" | sed -E 's/#(Ref|Fun)<[^>]*>/#\1/g' | awk '{
        line = ""
        while (match($0, /<0\.[0-9]+\.[0-9]+>/)) {
            pid = substr($0, RSTART, RLENGTH)
            if (!(pid in known)) known[pid] = "P" ++n
            line = line substr($0, 1, RSTART - 1) known[pid]
            $0 = substr($0, RSTART + RLENGTH)
        }
        print line $0 }'
}

label='{order, 12}'

# bats test_tags=each
@test "the chain of a token equals that of the VM's own tracer" {
    on_node "P = plain:tokens(), work:ask_child(w, fun() -> work:tokens($label) end), receive after 20 -> plain:stop(P, \"$BATS_TEST_TMPDIR/plain\") end"
    trace --json @seq_trace
    on_node "work:ask_child(w, fun() -> work:tokens($label) end)"
    until_true 30 eval '[[ $(grep -c seq_trace "$OUT") -ge $(wc -l <"$BATS_TEST_TMPDIR/plain") ]]'
    trace_end
    assert_success
    jq -r 'select(.type == "seq_trace") | "\(.what) \(.prev) \(.cur) \(.label) \(.from) \(.to // "[]") \(.msg)"' "$OUT" >"$BATS_TEST_TMPDIR/etrace"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/plain")" -ge 5 ]
    diff <(chain "$BATS_TEST_TMPDIR/plain") <(chain "$BATS_TEST_TMPDIR/etrace")
    # The event belongs to the process that sent, received or printed.
    jq -es 'all(.[] | select(.type == "seq_trace"); .pid == if .what == "receive" then .to else .from end)' "$OUT"
    assert_account any
}

@test "a seq_trace line shows label, kind, serial numbers, process and message" {
    trace @seq_trace
    on_node "work:ask_child(w, fun() -> work:tokens($label) end)"
    until_true 30 grep -q 'echoed$' "$OUT"
    trace_end
    assert_success
    assert_output --regexp '<0\.[0-9]+\.0>[^ ]* seq_trace \{order,12\} send [0-9]+>[0-9]+ to <0\.[0-9]+\.0>[^ ]* \{echo,<0\.[0-9]+\.0>\}'
    assert_output --regexp '<0\.[0-9]+\.0>[^ ]* seq_trace \{order,12\} receive [0-9]+>[0-9]+ from <0\.[0-9]+\.0>[^ ]* \{echo,<0\.[0-9]+\.0>\}'
    assert_output --regexp '<0\.[0-9]+\.0>[^ ]* seq_trace \{order,12\} print [0-9]+>[0-9]+ heard'
}

# bats test_tags=each
@test "set_seq_token sets a token, and get_seq_token shows all its fields" {
    trace --json -P w --inherit spawn @seq_trace "work:one(go) -> set_seq_token(label, 17), set_seq_token(send, true), set_seq_token('receive', true)" \
        'work:two(_, _) -> get_seq_token, is_seq_trace()'
    on_node 'work:ask_child(w, fun() -> E = spawn(fun() -> receive F -> F ! back end end), work:two(0, 0), work:one(go), work:two(1, 1), E ! self(), receive back -> seq_trace:set_token([]) end end)'
    until_true 30 grep -q '"msg":"back"' "$OUT"
    trace_end
    assert_success
    assert_equal "$(jq -r 'select(.type == "seq_trace" and (.msg | test("^back$|^<"))) | "\(.what) \(.label) \(.cur - .prev)"' "$OUT" | xargs)" \
        'send 17 1 receive 17 1 send 17 1 receive 17 1'
    # The token: flags, label, serial, the process that set it, and the last serial that it has seen.
    assert_regex "$(json_of call 'select(.args == ["1","1"]) | .message')" '^\[\{[0-9]+,17,[0-9]+,<0\.[0-9]+\.0>,[0-9]+\},true\]$'
    assert_equal "$(json_of call 'select(.args == ["0","0"]) | .message')" '[[],false]'
}

@test "etrace never replaces a system tracer of somebody else" {
    on_node 'register(other, spawn(fun() -> false = erlang:system_flag(sequential_tracer, self()), receive done -> ok end end))'
    until_true 30 eval '! free'
    theirs=$(tracer)
    run "$ETRACE_BIN" -n "$NODE" @seq_trace
    assert_failure 3
    assert_line 'etrace: another system tracer of sequential tracing is already set on the node'
    assert_equal "$(tracer)" "$theirs"
    # Expressions that need no system tracer still work.
    traced --json work:one/1 -- 'work:one(1)'
    assert_success
    assert_equal "$(tracer)" "$theirs"
    # If another process takes the place while etrace has it, etrace leaves it there at the end.
    on_node 'R = monitor(process, other), other ! done, receive {_, R, _, _, _} -> erlang:system_info(sequential_tracer) end'
    trace @seq_trace
    on_node 'register(other, spawn(fun() -> erlang:system_flag(sequential_tracer, self()), receive done -> ok end end))'
    until_true 30 eval '[[ $(tracer) == *"<0."* ]]'
    theirs=$(tracer)
    trace_end
    assert_equal "$(tracer)" "$theirs"
    on_node 'R = monitor(process, other), other ! done, receive {_, R, _, _, _} -> erlang:system_info(sequential_tracer) end'
}

@test "etrace frees the place of the system tracer however the trace ends" {
    janitor='hd(control:companion(janitor))'
    owner='hd(control:companion(owner))'
    for end in 'kill -INT "$TRACER"' 'kill -KILL "$TRACER"' 'on_node "exit($owner, kill)"' 'on_node "exit($janitor, kill)"' \
        'on_node "J = $janitor, O = $owner, exit(J, kill), exit(O, kill)"'; do
        trace @seq_trace
        [[ $(tracer) == *etrace_* ]] || fail "the companion is not the system tracer: $(tracer)"
        eval "$end"
        until_true 30 gone "$TRACER"
        until_true 30 free || fail "$end: $(tracer)"
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "a purge of the companion does no harm, and the next trace inherits nothing from it" {
    trace @seq_trace
    on_node '[M] = control:companion_modules(), code:purge(M), code:delete(M), code:purge(M)'
    on_node "work:ask_child(w, fun() -> work:tokens(none) end)"
    kill -INT "$TRACER" 2>/dev/null || true
    trace_wait
    until_true 30 free
    trace --json work:one/1
    on_node "work:ask_child(w, fun() -> work:tokens(none) end), work:one(1)"
    trace_end
    assert_success
    assert_account 1
}

# bats test_tags=each
@test "the fallback tracer shows seq_trace events" {
    trace --json --fallback @seq_trace
    on_node "work:ask_child(w, fun() -> work:tokens($label) end)"
    until_true 30 grep -q '"msg":"echoed"' "$OUT"
    trace_end
    assert_success
    assert_equal "$(json_of seq_trace .label | sort -u)" '{order,12}'
    assert_account any
}

# bats test_tags=long
@test "a trace that sets labels shows only the chains of these labels, with and without the NIF" {
    for how in '' --fallback; do
        trace --json $how @seq_trace 'work:one(_) -> set_seq_token(label, 17), set_seq_token(send, true)'
        on_node "work:ask_child(w, fun() -> work:tokens($label), work:one(1), w ! hello, seq_trace:set_token([]) end)"
        until_true 30 grep -q '"label":"17"' "$OUT"
        trace_end
        assert_success
        assert_equal "$(json_of seq_trace .label | sort -u)" 17
        assert_account any
    done
}

@test "the sequence view draws messages with tokens" {
    trace --as sequence -o "$BATS_TEST_TMPDIR/s.mmd" @seq_trace
    on_node "work:ask_child(w, fun() -> work:tokens($label) end)"
    trace_end
    assert_success
    run grep -cE '^ +p[0-9]+->>p[0-9]+: (echoed|\{echo,)' "$BATS_TEST_TMPDIR/s.mmd"
    assert_output 2
    refute grep -q -- '-)' "$BATS_TEST_TMPDIR/s.mmd"
}
