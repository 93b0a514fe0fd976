#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the selection of processes (registries, applications, inheritance, muted processes), that no event before the
# end of the trace is lost, and that tracing leaves no flag on a process.

load ../lib/assert
load ../lib/live

setup_file() { live_share whom; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

args() { json_of call '.args[0]' | tr '\n' ' '; }

@test "-P {via, Module, Name} and -P {global, Name} look up the process in the registry" {
    on_node 'work:ask(w, fun() -> yes = global:register_name({shop, 1}, self()) end)'
    for who in '{via, global, {shop, 1}}' '{global, {shop, 1}}'; do
        traced --json -P "$who" work:one/1 -- 'work:ask(w, fun() -> work:one(yes) end), work:one(no)'
        assert_success
        assert_equal "$(args)" 'yes '
    done
    for who in '{via, global, {shop, 2}}' '{global, never_heard_of_it}'; do
        run "$ETRACE_BIN" -n "$NODE" -P "$who" work:one/1
        assert_failure 5
        assert_line -n 0 "etrace: no process is registered as $who on the node"
    done
    # The name did not become an atom on the node.
    assert_equal "$(node_eval "$NODE" 'try binary_to_existing_atom(<<"never_heard", "_of_it">>) catch error:_ -> none end')" none
    run "$ETRACE_BIN" -n "$NODE" -P '{via, lists, w}' work:one/1
    assert_failure 5
    assert_line -n 0 'etrace: lists is not a name registry on the node: it has no working whereis_name/1'
    run "$ETRACE_BIN" -n "$NODE" -P '{via, no_such_module, w}' work:one/1
    assert_failure 5
    assert_line -n 0 'etrace: there is no module no_such_module on the node'
    on_node 'global:unregister_name({shop, 1})'
}

@test "-P app(A) traces the processes of an application" {
    trace --json -P 'app(kernel)' 'gen_server:handle_msg/_' 'gen_server:try_handle_call/_' 'code_server:handle_call/_'
    on_node 'code:which(lists), global:whereis_name(nobody), gen_server:call(kernel_sup, which_children)'
    trace_end
    assert_success
    assert [ "$(json_of call .pid | wc -l)" -ge 1 ]
    pids=$(node_eval "$NODE" '[P || P <- processes(), process_info(P, group_leader) =:= {group_leader, application_controller:get_master(kernel)}]')
    for pid in $(json_of call .pid | sort -u); do
        [[ $pids == *"$pid"* ]] || fail "$pid is not of kernel: $pids"
    done
    run --separate-stderr "$ETRACE_BIN" ps --json -n "$NODE" -P 'app(:kernel)'
    assert_success
    assert_output --partial '"name":"kernel_sup"'
    run "$ETRACE_BIN" -n "$NODE" -P 'app(no_such_app)' work:one/1
    assert_failure 5
}

# w spawns first, first spawns second, and w links to friend, which existed before the trace.
family='work:ask(w, fun() -> work:one(w), work:ask_child(work:worker(first), fun() -> ok end),
    link(whereis(friend)), work:ask(friend, fun() -> work:one(friend) end), unlink(whereis(friend)),
    work:ask(first, fun() -> work:one(child), work:worker(second), work:ask(second, fun() -> work:one(grandchild) end) end) end)'

@test "--inherit and --follow select which new and linked processes are traced" {
    on_node 'work:worker(friend)'
    while read -r how expected; do
        [[ $how == --follow ]] || how="--inherit $how"
        # shellcheck disable=SC2086
        traced --json -P w $how work:one/1 -- "$family, work:stop(first), work:stop(second)"
        assert_success
        assert_equal "$how: $(json_of call '.args[0]' | sort | xargs)" "$how: $expected"
    done <<'END'
none w
spawn child grandchild w
first-spawn child w
link friend w
first-link friend w
--follow child friend grandchild w
END
    on_node 'work:stop(friend)'
}

@test "--silent mutes a process until silent(false) runs, and silent(true) mutes it again" {
    trace --json --silent -P w work:one/1 'work:two(on, _) -> silent(false)' 'work:two(off, _) -> silent(true)'
    on_node 'work:ask(w, fun() -> work:one(1), work:two(on, 1), work:one(2), work:one(3), work:two(off, 1), work:one(4), work:two(on, 2), work:one(5) end)'
    trace_end
    assert_success
    assert_equal "$(json_of call 'select(.f == "one") | .args[0]' | xargs)" '2 3 5'
    assert_account any
    # A muted call neither uses up the rate nor is counted.
    traced --json --silent --rate 10 -P w work:one/1 -- 'work:ask(w, fun() -> work:loop(500) end)'
    assert_success
    assert_account 0
}

@test "meta calls equal those of the VM's own tracer, with specifications and results" {
    trace --json --rate 0 -P w 'meta work:one(N) when N > 30 -> msg({over, N})' 'meta work:fac/1 -> return'
    on_node "P = plain:events(#{functions => [{{work, one, 1}, [{['\$1'], [{'>', '\$1', 30}], [{message, {{over, '\$1'}}}]}], [meta]},
        {{work, fac, 1}, [{'_', [], [{exception_trace}]}], [meta]}]}), work:run(#{seed => 5, procs => 6, calls => 200}), plain:stop(P, \"$BATS_TEST_TMPDIR/plain\")"
    trace_end
    assert_success
    events_of "$OUT" | LC_ALL=C sort -s -k1,1 >"$BATS_TEST_TMPDIR/seen"
    LC_ALL=C sort -s -k1,1 "$BATS_TEST_TMPDIR/plain" >"$BATS_TEST_TMPDIR/expected"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/expected")" -gt 300 ]
    diff "$BATS_TEST_TMPDIR/expected" "$BATS_TEST_TMPDIR/seen"
    assert_account "$(wc -l <"$BATS_TEST_TMPDIR/expected")"
}

@test "the result of a meta call from an ended trace does not appear in the next trace" {
    trace --json 'meta work:slow/1 -> return'
    on_node 'spawn(fun() -> register(sleeper, self()), work:slow(1500), receive stop -> ok end end)'
    until_true 30 grep -q '"f":"slow"' "$OUT"
    trace_end
    assert_success
    trace --json 'meta work:slow/1 -> return'
    slept() { [[ $(node_eval "$NODE" 'element(2, process_info(whereis(sleeper), current_function))') != *slow* ]]; }
    until_true 30 slept
    on_node 'work:slow(1)'
    until_true 30 grep -q '"type":"return"' "$OUT"
    trace_end
    assert_success
    assert_equal "$(json_of return .value | xargs)" 1
    on_node 'work:stop(sleeper)'
}

@test "caller, stack, dump and arity determine what a call shows" {
    traced --json --size 8kB -P w 'work:one/1 -> caller, stack(3), dump' 'work:fac/1 -> arity' -- 'work:ask(w, fun() -> work:loop(1), work:fac(0) end)'
    assert_success
    assert_equal "$(json_of call 'select(.f == "one") | "\(.caller.m):\(.caller.f)/\(.caller.a) \(.caller.file | test("work.erl$")) \(.caller.line > 0)"')" 'work:each/2 true true'
    assert_equal "$(json_of call 'select(.f == "one") | .stack | length')" 3
    assert_equal "$(json_of call 'select(.f == "one") | .dump | test("^=proc:<") and test("work:each/2")')" true
    assert_equal "$(json_of call 'select(.f == "fac") | .a, has("args")' | xargs)" '1 false'
    traced --json -P w 'work:fac/1 -> arity' -- 'work:ask(w, fun() -> work:fac(2) end)'
    assert_equal "$(json_of call '.a, has("args")' | sort | uniq -c | xargs)" '3 1 3 false'
}

@test "the end of a trace loses no earlier event" {
    for n in 1 ${ETRACE_ALL:+17} 300 ${ETRACE_ALL:+4000} 9000; do
        trace --json --rate 0 -P w work:one/1 'send(_, {ping, _})'
        on_node "work:ask(w, fun() -> work:loop($n), w ! {ping, $n} end)"
        trace_end
        assert_success
        assert_equal "$(json_of call .f | wc -l)" "$n"
        assert_equal "$(json_of send .msg)" "{ping,$n}"
        assert_account $((n + 1))
        on_node 'work:ask(w, fun() -> receive {ping, _} -> ok end end)'
    done
}

@test "no process is traced after the end, also none that inherited flags" {
    for end in INT KILL; do
        trace -P w --follow work:one/1 @procs @running 'send(_, _)'
        on_node 'work:ask(w, fun() -> work:worker(heir), ok end), work:ask(heir, fun() -> work:worker(grandheir), ok end)'
        assert_regex "$(node_eval "$NODE" '[length(trace:session_info(whereis(N))) || N <- [w, heir, grandheir]]')" '^\[1,1,1\]$'
        kill "-$end" "$TRACER"
        until_true 30 gone "$TRACER"
        until_true 30 all_free
        on_node 'work:ask(heir, fun() -> work:one(1), spawn(fun() -> ok end) end)'
        all_free || fail 'a process is still traced'
        on_node 'work:stop(grandheir), work:stop(heir)'
        assert_clean "$BEFORE" "$NODE"
    done
}
all_free() { [[ $(node_eval "$NODE" 'lists:append([case trace:session_info(P) of undefined -> []; L -> L end || P <- processes()])') == '[]' ]]; }

@test "the order within each process equals that of the VM's own tracer under load" {
    on_node 'work:flood(2)'
    functions='[{{work, F, A}, true, [local]} || {F, A} <- [{two, 2}, {three, 3}, {fac, 1}, {sum, 2}, {caught, 2}]]'
    trace --json --rate 0 -P new work:two/2 work:three/3 work:fac/1 work:sum/2 work:caught/2
    on_node "P = plain:events(#{procs => [new], flags => [call], functions => $functions}), work:run(#{seed => 11, procs => 20, calls => 150}), plain:stop(P, \"$BATS_TEST_TMPDIR/plain\")"
    on_node 'work:calm(ok)'
    trace_end
    assert_success
    diff <(LC_ALL=C sort -s -k1,1 "$BATS_TEST_TMPDIR/plain") <(events_of "$OUT" | LC_ALL=C sort -s -k1,1)
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/plain")" -gt 2000 ]
    jq -es '[.[] | select(.pid) | .mono_ns] | . == sort' "$OUT"
}

# Succeeds when fewer than 100 events come in two seconds. If etrace traced its own messages, each batch would cause
# another one, some hundred a second.
idles() {
    local was
    was=$(wc -l <"$OUT")
    pause 2
    idle=$(($(wc -l <"$OUT") - was))
    [[ $idle -lt 100 ]]
}

# A flood.
# bats test_tags=long
@test "a trace of every message of every process and port causes no further messages" {
    memory=$(node_eval "$NODE" 'erlang:memory(total)')
    trace --json --rate 0 -P all --port-id all 'send(_, _)' 'recv(_)'
    start=$(millis)
    while (($(millis) - start < 3000)); do
        on_node 'work:ping_pong(300)'
    done
    busy=$(wc -l <"$OUT")
    # The workload is over. If events keep coming after its last ones, etrace traces its own messages.
    until_true 60 idles || fail "etrace traces its own messages: $idle events in two seconds"
    after=$(node_eval "$NODE" 'erlang:memory(total)')
    trace_end
    assert_success
    assert_account any
    echo "# $busy events while it worked, $idle while it idled, memory $(((after - memory) / 1024)) kB" >&3
    assert [ "$busy" -gt 1000 ]
    assert [ $((after - memory)) -lt 30000000 ]
}
