#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the choice of processes (-P, --inherit) and the other events of processes: messages and process events.

load ../lib/assert
load ../lib/live

setup_file() { live_share procs; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

args() { json_of call '.args[0]' | tr '\n' ' '; }

@test "-P with a name or a pid traces only that process" {
    both='work:ask(w, fun() -> work:one(yes) end), work:one(no)'
    traced --json -P w work:one/1 -- "$both"
    assert_success
    assert_equal "$(args)" 'yes '
    assert_equal "$(json_of call .name)" w
    pid=$(node_eval "$NODE" 'whereis(w)')
    traced --json -P "$pid" work:one/1 -- "$both"
    assert_equal "$(args)" 'yes '
    assert_equal "$(json_of call .pid)" "$pid"
    assert_account 1
}

@test "a repeated -P traces each of the processes" {
    on_node 'work:begun(second, [two])'
    traced --json -P w -P second work:one/1 -- 'work:ask(w, fun() -> work:one(one) end), second ! go, work:one(no), process_info(whereis(second), status)'
    assert_success
    assert_equal "$(json_of call '.args[0]' | sort | tr '\n' ' ')" 'one two '
    on_node 'work:stop(second)'
}

@test "-P existing traces the processes of the beginning, -P new those that start later" {
    on_node 'work:begun(old, [old])'
    go='old ! go, work:ask_child(w, fun() -> work:one(new) end)'
    traced --json -P existing work:one/1 -- "$go, work:ask(w, fun() -> work:one(w) end)"
    assert_success
    assert_equal "$(json_of call '.args[0]' | sort | tr '\n' ' ')" 'old w '
    on_node 'work:stop(old), work:begun(old, [old])'
    traced --json -P new work:one/1 -- "$go, work:ask(w, fun() -> work:one(w) end)"
    assert_equal "$(args)" 'new '
    on_node 'work:stop(old)'
}

@test "-P initial(M:F/A) traces the processes that began in this function" {
    on_node 'work:start_server()'
    traced --json -P 'initial(work:init/1)' work:handle_call/3 -- 'work:get(k), work:handle_call({get, k}, from, #{})'
    on_node 'work:stop_server()'
    assert_success
    assert_equal "$(json_of call '.name')" work_server
    for who in ':work.init/1' "'work':init/1"; do
        on_node 'work:start_server()'
        traced --json -P "initial($who)" work:handle_call/3 -- 'work:get(k)'
        on_node 'work:stop_server()'
        assert_equal "$(json_of call '.name')" work_server
    done
    on_node "begin Me = self(), spawn(fun() -> put('\$initial_call', {'Elixir.Shop.Cart', init, 1}), register(cart, self()), Me ! up, receive stop -> ok end end), receive up -> ok end end"
    for who in 'Shop.Cart.init/1' "'Elixir.Shop.Cart':init/1"; do
        run --separate-stderr "$ETRACE_BIN" ps --json -n "$NODE" -P "initial($who)"
        assert_success
        assert_equal "$(jq -r 'select(.type == "process") | .name' <<<"$output")" cart
        run "$ETRACE_BIN" -n "$NODE" -P "initial($who)" --for 1ms work:one/1
        assert_success
    done
    on_node 'cart ! stop'
    # A fun of a module is a function with a name of the compiler.
    on_node "begin Me = self(), spawn(fun() -> put('\$initial_call', {work, '-f/0-fun-2-', 0}), register(baker, self()), Me ! up, receive stop -> ok end end), receive up -> ok end end"
    for who in "work:'-f/0-fun-2-'/0" ":work.\"-f/0-fun-2-\"/0"; do
        run --separate-stderr "$ETRACE_BIN" ps --json -n "$NODE" -P "initial($who)"
        assert_success
        assert_equal "$(jq -r 'select(.type == "process") | .name' <<<"$output")" baker
    done
    on_node 'baker ! stop'
    for who in x 'Shop.Cart:init/1' 'work:init' 'work:init/1 -> return'; do
        run "$ETRACE_BIN" -n "$NODE" -P "initial($who)" work:one/1
        assert_failure 2
        assert_line -n 0 "etrace: --proc does not take 'initial($who)'"
    done
    run "$ETRACE_BIN" -n "$NODE" -P 'initial(work:nowhere/1)' work:one/1
    assert_failure 5
    assert_output 'etrace: no process on the node has the initial call work:nowhere/1'
}

says() { grep -qF -- "$1" "$ERR"; }

# Ends the process with the name NAME and starts another one, as a supervisor does.
again() { # NAME
    on_node "work:stop($1), work:worker($1)"
    NOW=$(node_eval "$NODE" "whereis($1)")
}

@test "-P with a name traces the next process that gets the name" {
    on_node 'work:worker(named), work:worker(other)'
    for how in '' --fallback; do
        # shellcheck disable=SC2086 # no word or one
        trace --json $how -P named -P other --inherit spawn work:one/1
        on_node 'work:ask(named, fun() -> work:one(first) end)'
        again named
        until_true 20 says "named restarted: now $NOW" || fail "no message about $NOW"
        on_node 'work:ask(named, fun() -> work:one(second) end), work:ask_child(named, fun() -> work:one(child) end)'
        on_node 'work:ask(w, fun() -> work:one(no) end), work:ask(other, fun() -> work:one(other) end)'
        trace_end
        assert_success
        assert_equal "$(json_of call '.args[0]' | sort | tr '\n' ' ')" 'child first other second '
        assert_equal "$(json_of call 'select(.args[0] == "second") | .pid')" "$NOW"
        assert_equal "$(json_of notice '.tag + " " + .info')" "restarted {named,$NOW}"
        assert_account 4
    done
    on_node 'work:stop(named), work:stop(other)'
}

@test "a name without a process is reported, and followed when it has one" {
    on_node 'work:worker(named)'
    trace -P named work:one/1
    on_node 'work:stop(named)'
    until_true 20 says 'named has exited: etrace traces the next process with this name' || fail 'no message'
    on_node 'work:worker(named)'
    until_true 20 says "named restarted: now $(node_eval "$NODE" 'whereis(named)')" || fail 'no message'
    on_node 'work:ask(named, fun() -> work:one(late) end)'
    # The name passes to a process while the one that had it lives.
    on_node 'unregister(named), work:worker(named)'
    until_true 20 says "named restarted: now $(node_eval "$NODE" 'whereis(named)')" || fail 'no message'
    on_node 'work:ask(named, fun() -> work:one(passed) end)'
    trace_end
    assert_success
    assert_line --partial 'work:one(late)'
    assert_line --partial 'work:one(passed)'
    on_node "[work:stop(P) || P <- processes(), P =/= whereis(w), {current_function, {work, serve, 0}} =:= process_info(P, current_function)]"
}

# bats test_tags=each
@test "etrace says when the last of the chosen processes has exited, and only then" {
    local first second how
    first=$(node_eval "$NODE" 'begin work:worker(first), whereis(first) end')
    second=$(node_eval "$NODE" 'begin work:worker(second), whereis(second) end')
    trace -P "$first" -P "$second" work:one/1
    on_node 'work:stop(first)'
    on_node 'work:ask(second, fun() -> work:one(still) end)'
    until_true 20 grep -q 'one(still)' "$OUT" || fail 'no event'
    refute says 'nothing is left to trace'
    on_node 'work:stop(second)'
    until_true 20 says "process $second has exited: nothing is left to trace" || fail 'no message'
    trace_end
    assert_success
    # A process that is spawned, that gets a name, or that is new, may still make events.
    for how in '--follow -P named' '-P named -P new'; do
        on_node 'work:worker(named)'
        # shellcheck disable=SC2086
        trace --json ${how//named/$(node_eval "$NODE" 'whereis(named)')} work:one/1
        on_node 'work:stop(named)'
        trace_end
        assert_success
        assert_equal "$(json_of notice .tag)" ''
    done
    on_node 'work:worker(named)'
    trace --json -P "$(node_eval "$NODE" 'whereis(named)')" work:one/1
    on_node 'work:stop(named)'
    until_true 20 says 'nothing is left to trace' || fail 'no message with --json'
    trace_end
    assert_success
    assert_equal "$(json_of notice '.tag + " " + .info' | cut -d '<' -f 1)" 'exited '
}

# bats test_tags=long
@test "views, roots and budgets follow a name" {
    on_node 'work:worker(named)'
    for how in '-c' '--as tree' '--by f:count()' '--overhead 90%' '--ring 1MB'; do
        # shellcheck disable=SC2086 # an option and its value
        trace $how -P named 'work:one/1 -> return'
        again named
        until_true 20 says "named restarted: now $NOW" || fail "no message with $how"
        on_node 'work:ask(named, fun() -> work:one(seen) end), work:ask(w, fun() -> work:one(no) end)'
        trace_end
        assert_success
        assert_output --partial one
        assert_equal "$(totals)" '2 events'
    done
    trace --json -P named 'work:one/1 inside work:loop/1'
    again named
    until_true 20 says "named restarted: now $NOW" || fail 'no message with a root'
    on_node '[work:ask(P, fun() -> work:loop(2) end) || P <- [named, w]]'
    trace_end
    assert_success
    assert_equal "$(json_of call '.pid' | sort -u)" "$NOW"
    assert_account 4
    on_node 'work:stop(named)'
}

# bats test_tags=each
@test "the interactive mode follows a name, also for further expressions" {
    on_node 'work:worker(named)'
    repl_start -n "$NODE" -P named
    repl_line 'work:one/1'
    until_true 60 says 'Ctrl-C stops' || fail 'not armed'
    again named
    until_true 20 says "named restarted: now $NOW" || fail 'no message'
    repl_line 'work:two/2' :probes
    until_true 60 grep -q 'work:two/2' "$OUT" || fail 'not armed'
    on_node 'work:ask(named, fun() -> work:one(1), work:two(2, 3) end)'
    until_true 20 grep -q 'call work:two(2, 3)' "$OUT" || fail 'no event'
    again named
    until_true 20 says "named restarted: now $NOW" || fail 'no second message'
    on_node 'work:ask(named, fun() -> work:two(4, 5) end), work:ask(w, fun() -> work:two(no, no) end)'
    until_true 20 grep -q 'call work:two(4, 5)' "$OUT" || fail 'no event of the last process'
    repl_end
    trace_wait
    refute_regex "$output" 'no, no'
    on_node 'work:stop(named)'
}

@test "an unknown process is refused and the nearest name is suggested" {
    on_node 'work:worker(shop_server)'
    run "$ETRACE_BIN" -n "$NODE" -P shop_sever work:one/1
    assert_failure 5
    assert_line -n 0 'etrace: no process is registered as shop_sever on the node'
    assert_line -n 1 'hint: did you mean shop_server?'
    on_node 'work:stop(shop_server)'
    run "$ETRACE_BIN" -n "$NODE" -P '<0.99999.0>' work:one/1
    assert_failure 5
    assert_output 'etrace: there is no process <0.99999.0> on the node'
    run "$ETRACE_BIN" -n "$NODE" -P '{via, x}' work:one/1
    assert_failure 2
    assert_line -n 0 "etrace: --proc does not take '{via, x}'"
}

# bats test_tags=each
@test "--inherit spawn traces children and their children" {
    nest='work:ask_child(w, fun() -> work:one(child), work:ask_child(work:worker(), fun() -> work:one(deeper) end) end)'
    traced --json -P w work:one/1 -- "work:ask_child(w, fun() -> work:one(child) end), work:ask(w, fun() -> work:one(w) end)"
    assert_equal "$(args)" 'w '
    traced --json -P w --inherit spawn work:one/1 -- "work:ask_child(w, fun() -> work:one(child) end), work:ask(w, fun() -> work:one(w) end)"
    assert_success
    assert_equal "$(args)" 'child w '
    traced --json -P w --inherit spawn work:one/1 -- "$nest, work:ask(w, fun() -> work:one(w) end)"
    assert_success
    assert_equal "$(args)" 'child deeper w '
    # The workload has started a worker for the inner call. Stop it: it is the only other process in work:serve/0.
    on_node '[work:stop(P) || P <- processes(), P =/= whereis(w), {current_function, {work, serve, 0}} =:= process_info(P, current_function)]'
}

# bats test_tags=each
@test "a sent message has its receiver" {
    traced --json -P w 'send(To, {ping, _, N}) when N > 1' -- 'work:ask(w, fun() -> work:ping_pong(3) end)'
    assert_success
    assert_equal "$(json_of send '.msg | sub("<[0-9.]+>"; "P")' | tr '\n' ' ')" '{ping,P,3} {ping,P,2} '
    assert_equal "$(json_of send '.to | test("^<0\\.[0-9]+\\.0>$")' | sort -u)" true
    assert_account 2
    traced -P w 'send(_, {ping, _, 1})' -- 'work:ask(w, fun() -> work:ping_pong(1) end)'
    assert_line -n 0 --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) send to <0\.[0-9]+\.0>[^ ]* \{ping,<0\.[0-9]+\.0>,1\}$'
}

@test "a received message has its sender" {
    traced --json -P w 'recv({pong, _})' -- 'work:ask(w, fun() -> work:ping_pong(2) end)'
    assert_success
    assert_equal "$(json_of receive .msg | tr '\n' ' ')" '{pong,2} {pong,1} '
    assert_equal "$(json_of receive '.from | test("^<0\\.[0-9]+\\.0>$")' | sort -u)" true
    assert_account 2
    traced -P w 'recv({pong, _})' -- 'work:ask(w, fun() -> work:ping_pong(1) end)'
    assert_line -n 0 --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive (from <0\.[0-9]+\.0>[^ ]* )?\{pong,1\}( from <0\.[0-9]+\.0>[^ ]*)?$'
}

# bats test_tags=each
@test "a message to a dead process is a send_to_non_existing_process event" {
    traced --json -P w 'send(_, hello)' -- 'work:ask(w, fun() -> P = spawn(fun() -> ok end), R = monitor(process, P), receive {_, R, _, _, _} -> P ! hello end end)'
    assert_success
    assert_equal "$(jq -r 'select(.msg == "hello") | .type' "$OUT")" send_to_non_existing_process
}

@test "a process that has ended is named after its registration or its initial function" {
    local spawn='{P, R} = spawn_monitor(lists, seq, [1, 2]), receive {_, R, _, P, _} -> ok end'
    traced --json @spawn @exit @register -- "$spawn, {Q, S} = spawn_monitor(fun() -> register(brief_one, self()) end), \
        receive {_, S, _, Q, _} -> ok end, proc_lib:start(proc_lib, init_ack, [x])"
    assert_success
    run json_of exit '.name // "none"'
    assert_line lists:seq/2
    assert_line brief_one
    assert_line proc_lib:init_ack/1
}

# bats test_tags=each
@test "a process that is first seen when it exits has the name that it was registered by" {
    local how names="[late_one, 'Elixir.Late.Two']"
    for how in '' --fallback '--limit 2' '--rate 2'; do
        on_node "[register(N, spawn(fun() -> receive stop -> exit(N) end end)) || N <- $names]"
        # shellcheck disable=SC2086 # no option, or an option with its value
        traced --json $how -o "$BATS_TEST_TMPDIR/exits.etr" @exit -- "[begin R = monitor(process, N), N ! stop, receive {_, R, _, _, _} -> ok end end || N <- $names]"
        assert_account any
        run json_of exit 'select(.reason != "normal") | "\(.reason) \(.name)"'
        assert_output "late_one late_one
'Elixir.Late.Two' Late.Two"
        "$ETRACE_BIN" replay -q --json "$BATS_TEST_TMPDIR/exits.etr" | cmp - "$OUT"
    done
}

# The VM frees the tables of a process before it unregisters the process.
# bats test_tags=long
@test "a process has its name at its exit even if the exit takes long or comes right after the registration" {
    local how
    for how in '' --fallback '--limit 1' '--rate 1'; do
        on_node 'register(late_owner, spawn(fun() -> T = ets:new(t, []), [ets:insert(T, {I}) || I <- lists:seq(1, 300000)], receive stop -> exit(owned) end end))'
        # shellcheck disable=SC2086 # no option, or an option with its value
        traced --json $how '@exit(owned)' -- "begin R = monitor(process, late_owner), late_owner ! stop, receive {_, R, _, _, _} -> ok end end"
        assert_account any
        assert_equal "$(json_of exit .name)" late_owner
    done
    for how in '' --fallback; do
        traced --json $how '@exit(young)' -- "begin {_, R} = spawn_monitor(fun() -> register(late_young, self()), exit(young) end), receive {_, R, _, _, _} -> ok end end"
        assert_account any
        assert_equal "$(json_of exit .name)" late_young
    done
}

# bats test_tags=long
@test "each of many named processes that exit at once has its name" {
    # Names of functions, because these atoms exist.
    local names='lists:sublist([F || {F, _} <- lists:ukeysort(1, lists:append([M:module_info(exports) || M <- [erlang, lists, file, ets]])), F =/= undefined], 400)'
    on_node "[register(N, spawn(fun() -> receive {stop, Why} -> exit(Why) end end)) || N <- $names]"
    traced --json --rate 0 '@exit({many, _})' -- "[N ! {stop, {many, N}} || N <- $names]"
    assert_account any
    assert_equal "$(json_of exit 'select(.reason == "{many,\(.name)}") | .name' | wc -l)" 400
}

# bats test_tags=long
@test "a process has its name at its exit after more registrations than the tracer keeps" {
    trace --json '@exit(_) where reason =/= normal'
    on_node 'begin
        register(late_crowd, P = spawn(fun() -> receive stop -> exit(crowded) end end)),
        [begin unregister(late_crowd), register(late_crowd, P) end || _ <- lists:seq(1, 20000)],
        unregister(late_crowd), register(late_last, P) end'
    on_node 'spawn(fun() -> exit(drained) end)'
    until_true 20 grep -q drained "$OUT"
    on_node 'late_last ! stop'
    until_true 20 grep -q crowded "$OUT"
    trace_end
    assert_equal "$(json_of exit 'select(.reason == "crowded") | .name')" late_last
}

# bats test_tags=each
@test "@exit and @spawn select these events and no others" {
    traced --json -P w --inherit spawn '@exit' -- 'work:ask(w, fun() -> {P, R} = spawn_monitor(fun() -> exit({shutdown, "x"}) end), receive {_, R, _, P, _} -> ok end end)'
    assert_success
    assert_equal "$(jq -r 'select(.pid) | "\(.type) \(.reason)"' "$OUT")" 'exit {shutdown,"x"}'
    assert_account any
    traced --json -P w '@spawn' -- 'work:ask(w, fun() -> {P, R} = spawn_monitor(lists, seq, [1, 2]), receive {_, R, _, P, _} -> ok end end)'
    assert_success
    assert_equal "$(jq -r 'select(.pid) | "\(.type) \(.m):\(.f) \(.args)"' "$OUT")" 'spawn lists:seq ["1","2"]'
    assert_account any
}

@test "calls, messages and events form one stream in the order of the process" {
    traced --json -P w work:one/1 'send(_, {ping, _, _})' 'recv({pong, _})' '@spawn' -- \
        'work:ask(w, fun() -> work:one(1), work:ping_pong(2), work:one(2) end)'
    assert_success
    assert_equal "$(jq -r 'select(.pid) | .type' "$OUT" | tr '\n' ' ')" 'call spawn send receive send receive call '
    jq -es '[.[] | select(.pid) | .mono_ns] | . == sort' "$OUT"
}

@test "a process has its registered name, else that of its initial function" {
    trace --json work:one/1
    # The worker lives on until the node has asked for its name.
    on_node 'begin P = work:worker(), work:ask(w, fun() -> put(worker, P), work:one(1) end), work:ask(P, fun() -> work:one(2) end) end'
    trace_end
    on_node 'work:ask(w, fun() -> work:stop(erase(worker)) end)'
    assert_success
    assert_equal "$(json_of call 'select(.args == ["1"]) | .name')" w
    run json_of call 'select(.args == ["2"]) | .name'
    assert_output work:serve/0
}

@test "a registered name that is an Elixir module is printed in Elixir syntax" {
    trace --json @register work:one/1
    # The first events have no name, until the node has looked it up.
    on_node "spawn(fun() -> register('Elixir.Work.Clerk', self()),
        control:again(10, fun() -> work:one(7) end) end)"
    until_true 30 grep -q '"name":"Work.Clerk"' "$OUT" || fail "$(tail -n 2 "$OUT")"
    on_node "P = whereis('Elixir.Work.Clerk'), R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end"
    trace_end
    assert_success
    assert_equal "$(jq -r '.name // empty' "$OUT" | sort -u)" Work.Clerk
}
