#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Exhausted resources and deliberate damage: a node without room for atoms, processes or the heaps of new processes;
# etrace's processes killed together, its code unloaded, its session destroyed, messages that are not from the client;
# closed standard streams, files that may not grow, pipes without a process at the other end.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin limits; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Binds M to the companion's module, J to its janitor, and Ps to its processes with the functions that they began
# with.
companion='[M] = control:companion_modules(), J = whereis(M),
    Ps = [{element(2, element(2, process_info(P, initial_call))), P} || P <- processes(), {_, {X, _, _}} <- [process_info(P, initial_call)], X =:= M]'

reports() { node_log "$NODE" | grep -c REPORT || true; }

attach() {
    status=0
    timeout 60 "$ETRACE_BIN" -n "$NODE" --for 100ms 'work:one/1 -> return' </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
}

calls() { [[ $(grep -c '"type":"call"' "$OUT") -ge $1 ]]; }

@test "etrace refuses a node whose atom table is nearly full" {
    # The table grows in steps of 1024. The modules that the node loads by itself for a connection are loaded before.
    node_start atoms +t 40960
    on_node 'code:ensure_loaded(crypto), [code:ensure_loaded(M) || A <- [kernel, stdlib], {ok, Ms} <- [application:get_key(A, modules)], M <- Ms]'
    for left in 1000 2; do
        on_node "F = fun F(N) -> case erlang:system_info(atom_limit) - erlang:system_info(atom_count) of Left when Left > $left -> list_to_atom(\"fill\" ++ integer_to_list(N)), F(N + 1); _ -> ok end end, F($left * 1000000)"
        live_snapshot
        attach
        assert_equal "$status" 3
        assert_regex "$(<"$ERR")" "^etrace: $NODE: the node has room for only [0-9]+ more atoms; etrace does not attach, because a full atom table crashes the node\$"
        assert_clean --atoms 1 "$BEFORE" "$NODE" # the node makes an atom for the name of the client
    done
}

# A process takes all but Free of the places for processes, until File exists. It never takes the last places.
hog='register(hog, spawn(fun() -> G = fun G() -> receive {take, Free, File} ->
        F = fun F(L) -> case erlang:system_info(process_limit) - erlang:system_info(process_count) > Free of
            true -> F([spawn(fun() -> receive stop -> ok end end) | L]); false -> L end end, Keep = F([]),
        W = fun W() -> case file:read_file_info(File, [raw]) of {ok, _} -> ok; _ -> receive after 20 -> W() end end end, W(),
        [exit(P, kill) || P <- Keep], G() end end, G() end))'

@test "etrace refuses a node near its process limit, and attaches when there is room" {
    node_start processes +P 1024
    attach
    on_node "$hog"
    live_snapshot
    for free in 9 12; do
        on_node "hog ! {take, $free, \"$BATS_TEST_TMPDIR/go$free\"}"
        taken() { [[ $(node_eval "$NODE" 'erlang:system_info(process_limit) - erlang:system_info(process_count) < 14') == true ]]; }
        until_true 30 taken
        attach
        assert_equal "$status" 3
        assert_regex "$(<"$ERR")" "^etrace: $NODE: the node has room for only [0-9]+ more processes; etrace does not attach\$"
        : >"$BATS_TEST_TMPDIR/go$free"
        assert_clean --atoms 300 "$BEFORE" "$NODE" 30
    done
    attach
    assert_equal "$status" 0
    assert_equal "$(reports)" 0
}

@test "heap limits and minimum heap sizes of the node do not affect the companion" {
    node_start heaps
    attach
    live_snapshot
    # The flag applies only to processes that start from now on.
    on_node 'Old = erlang:system_flag(max_heap_size, #{size => 20000, kill => true, error_logger => true}), spawn(fun() -> register(bound, self()), receive stop -> erlang:system_flag(max_heap_size, Old) end end)'
    attach
    local first=$status said
    said=$(<"$ERR")
    "$ETRACE_BIN" ls -n "$NODE" work:one >/dev/null 2>&1 || true
    on_node 'bound ! stop'
    [[ $first -eq 0 ]] || fail "status $first: $said"
    # The default minimum heap is now larger than the maximum heap of etrace's processes.
    on_node 'spawn(fun() -> register(bound, self()), {_, Old} = erlang:system_info(min_heap_size), erlang:system_flag(min_heap_size, 3000000),
        receive stop -> erlang:system_flag(min_heap_size, Old) end end)'
    bound() { [[ $(node_eval "$NODE" 'erlang:system_info(min_heap_size)') == '{min_heap_size,3'* ]]; }
    until_true 30 bound
    attach
    first=$status said=$(<"$ERR")
    run "$ETRACE_BIN" ls -n "$NODE" work:one
    on_node 'bound ! stop'
    [[ $first -eq 0 ]] || fail "status $first: $said"
    assert_success
    assert_equal "$(reports)" 0
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "a node with more than 64 schedulers has a buffer for each" {
    node_start threads +S 80:80
    on_node 'register(many, spawn(fun() ->
        Ps = [spawn_opt(fun Loop() -> work:one(I), timer:sleep(20), Loop() end, [link, {scheduler, I}]) || I <- lists:seq(1, 80)],
        receive stop -> [exit(P, kill) || P <- Ps] end end))'
    trace --json --for 2s 'work:one/1 -> return'
    trace_wait
    assert_success
    assert_equal "$(tail -n 1 "$OUT" | jq -c .lost)" '{}'
    assert_equal "$(jq -r 'select(.type == "return") | .value' "$OUT" | sort -un | wc -l)" 80
    node_stop "$NODE"
}

@test "one trace can have 4096 expressions" {
    local many
    mapfile -t many < <(yes work:one/1 | head -n 4096)
    trace --json "${many[@]}"
    on_node 'work:loop(5)'
    trace_end
    assert_success
    assert_account 5
}

@test "killing all processes of the companion ends the trace with a message, and the node is clean" {
    for how in '[exit(P, kill) || {_, P} <- Ps], exit(J, kill)' 'exit(J, kill), [exit(P, kill) || {_, P} <- lists:reverse(Ps)]' \
        '[exit(P, kill) || {names, P} <- Ps], receive after 50 -> ok end, exit(J, kill), [exit(P, kill) || {owner, P} <- Ps]'; do
        trace --json work:one/1
        on_node 'work:loop(5)'
        until_true 30 calls 5
        on_node "$companion, $how"
        # The trace ends by itself, because the client detects that the tracer is gone.
        trace_wait 30
        assert_equal "$status" 1
        assert_regex "$talk" 'the tracer process was killed, by somebody or for using too much memory'
        assert_clean --atoms 300 "$BEFORE" "$NODE"
    done
}

@test "unloading the tracer's code or destroying its session ends the trace with status 1 and a message" {
    on_node '{ok, _, _} = compile:forms([{attribute, 1, module, warm}])'
    live_snapshot
    for how in 'erlang:delete_module(M)' '{ok, _, B} = compile:forms([{attribute, 1, module, M}]), code:load_binary(M, "", B)' \
        '[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'; do
        for when in wait INT; do
            trace --json work:one/1
            on_node 'work:loop(5)'
            until_true 30 calls 5
            on_node "$companion, $how"
            on_node 'work:loop(5)'
            [[ $when == wait ]] || kill -INT "$TRACER"
            trace_wait 30
            assert_equal "$status" 1
            assert_regex "$talk" "somebody on the node has (unloaded the tracer's code|destroyed the trace session)"
            assert_equal "$(json_of summary .complete)" false
            # Events from before are shown.
            calls 5 || fail "$(<"$OUT")"
            assert_clean --atoms 300 "$BEFORE" "$NODE"
        done
    done
}

@test "an unregistered janitor and forged messages cause no report on the node" {
    trace --json work:one/1
    on_node "$companion, unregister(M)"
    trace_end
    assert_success
    assert_clean --atoms 300 "$BEFORE" "$NODE"
    trace --json work:one/1
    on_node "$companion, [P ! X || {_, P} <- Ps, X <- [junk, {pull, -5, -7}, {request, 1, <<131, 1, 2>>}, {timeout, x, lease}, {timeout, x, {lease, 0}}, {timeout, x, last}, {done, x, y},
        {system, none, <<1, 2, 3>>, [x]}, {trace_delivered, x, y}, {retry, x, y}, {retry, x, y, z}, {ask, x, y}, ready_input, {'DOWN', a, b, c, d}, {work, x}]],
        J ! {directory, none}"
    on_node 'work:loop(10)'
    trace_end
    assert_success
    assert_account 10
    assert_clean --atoms 300 "$BEFORE" "$NODE"
    assert_equal "$(reports)" 0
}

@test "closed standard streams do not mix messages into a recording" {
    local etrace=("$ETRACE_BIN" -n "$NODE" --for 300ms 'work:one/1 -> return')
    "${etrace[@]}" -o "$BATS_TEST_TMPDIR/all.etr" 0<&- 1>&- 2>&- 3>&- &
    local pid=$!
    on_node 'work:worker(pacer), work:tell(pacer, fun() -> work:pace(50, 10) end)' || true
    status=0
    wait "$pid" || status=$?
    assert [ "$status" -le 1 ]
    # The recording is complete and contains none of etrace's messages.
    run "$ETRACE_BIN" replay --as json "$BATS_TEST_TMPDIR/all.etr"
    assert_success
    status=0
    "${etrace[@]}" 1>&- 2>"$ERR" 0<&- 3>&- || status=$?
    ! grep -v -e '^etrace: ' "$ERR" || fail "$(<"$ERR")"
    ! grep -q 'Invalid argument' "$ERR" || fail "$(<"$ERR")"
    on_node 'work:stop(pacer)' || true
}

@test "a file size limit causes an error of one line and not a signal" {
    on_node 'work:flood(2)'
    status=0
    (ulimit -f 1 && exec timeout 60 "$ETRACE_BIN" -n "$NODE" --json --for 30s --rate 0 work:one/1 -o "$BATS_TEST_TMPDIR/x.etr") \
        </dev/null >/dev/null 2>"$ERR" 3>&- || status=$?
    assert_equal "$status" 1
    grep -q "^etrace: cannot write $BATS_TEST_TMPDIR/x.etr: File too large\$" "$ERR" || fail "$(<"$ERR")"
    on_node 'work:calm(ok)'
}

# Runs a command that waits for the other end of a pipe, and ends it by a signal.
interrupted() { # ARGS...
    "$ETRACE_BIN" "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    local pid=$!
    # Wait until etrace handles the signal, because the default action would kill it, and no second signal follows.
    takes_signals() {
        local blocked
        blocked=$(awk '/^SigBlk/ { print $2 }' "/proc/$pid/status" 2>/dev/null)
        [[ $blocked && $((0x${blocked: -4} & 0x4007)) -eq $((0x4007)) ]]
    }
    until_true 30 takes_signals
    kill -INT "$pid"
    until_true 30 gone "$pid" || {
        child_kill "$pid"
        fail "$* did not end"
    }
    wait "$pid" || true
}

@test "etrace refuses an output pipe without a reader, and Ctrl-C ends its wait for a writer" {
    mkfifo "$BATS_TEST_TMPDIR/expressions" "$BATS_TEST_TMPDIR/pipe.etr" "$BATS_TEST_TMPDIR/pipe.json"
    interrupted -n "$NODE" -f "$BATS_TEST_TMPDIR/expressions"
    interrupted replay "$BATS_TEST_TMPDIR/pipe.etr"
    for file in pipe.etr pipe.json; do
        run timeout 30 "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/$file" work:one/1
        assert_failure 1
        assert_output "etrace: cannot write $BATS_TEST_TMPDIR/$file: nobody reads this pipe"
    done
    run timeout 30 "$ETRACE_BIN" -n "$NODE" --tls --tls-cert "$BATS_TEST_TMPDIR/expressions" work:one/1
    assert_failure 3
    assert_output --partial 'it is not a regular file'
    # -f waits for a late writer.
    (pause 0.3 && echo work:one/1 >"$BATS_TEST_TMPDIR/expressions") 3>&- &
    run timeout 30 "$ETRACE_BIN" -n "$NODE" -q --for 100ms -f "$BATS_TEST_TMPDIR/expressions"
    assert_success
    run "$ETRACE_BIN" -n "$NODE" --for 100ms -o "$BATS_TEST_TMPDIR/a.json" -o "$BATS_TEST_TMPDIR/./a.json" work:one/1
    assert_failure 2
    assert_output "etrace: -o $BATS_TEST_TMPDIR/./a.json is given twice"
}

@test "etrace refuses a node that replaces the module of trace sessions" {
    local dir=$BATS_TEST_TMPDIR/own
    mkdir "$dir"
    printf -- '-module(trace).\n-export([begun/1]).\nbegun(X) -> X.\n' >"$dir/trace.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/trace.erl"
    # The module control needs the real module `trace`: load it before the test replaces it, and again afterwards.
    live_own shadowed
    on_node "code:unstick_mod(trace), code:purge(trace), code:delete(trace), code:purge(trace), code:add_patha(\"$dir\"), begun = trace:begun(begun)"
    for command in trace ls; do
        run --separate-stderr timeout 60 "$ETRACE_BIN" $command -n "$NODE" work:one/1 </dev/null 3>&-
        assert_failure 3
        assert_regex "$stderr" "^etrace: $NODE: the module trace on the node is not the one of OTP: see code:which\(trace\) there\$"
    done
    on_node "code:del_path(\"$dir\"), code:purge(trace), code:delete(trace), code:purge(trace), {module, trace} = code:load_file(trace), code:stick_mod(trace)"
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}
