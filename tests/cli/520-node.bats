#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Events on the node while it is traced: it dies, it stops, somebody kills etrace's processes, other tools trace as
# well, or no directory accepts a library.

load ../lib/assert
load ../lib/live

setup_file() {
    cc -O1 -fPIC -shared -o "$BATS_FILE_TMPDIR/held.so" "$ETRACE_ROOT/tests/lib/held.c" -ldl
    erl_is "LD_PRELOAD=$BATS_FILE_TMPDIR/held.so exec \"\$ETRACE_ERL\" \"\$@\""
    live_begin node
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Starts a node of its own, because the test ends it.
mortal() { live_own mortal "$@"; }

@test "a killed node ends the trace with status 1 and one message" {
    mortal
    trace --json work:one/1
    on_node 'work:loop(10)'
    until_true 30 eval '[[ $(grep -c call "$OUT") -eq 10 ]]'
    node_stop "$NODE"
    trace_wait
    assert_failure 1
    assert_equal "$(grep -c "^etrace: $NODE: the node closed the connection$" "$ERR")" 1
    assert_equal "$(grep -c '"type":"call"' "$OUT")" 10
    jq -e . "$OUT" >/dev/null
}

# A flood.
# bats test_tags=long
@test "a node that is killed in a flood ends the trace with status 1 and complete lines" {
    mortal
    on_node 'work:flood(2)'
    trace --json --rate 0 work:one/1
    pause 0.2
    node_stop "$NODE"
    trace_wait
    assert_failure 1
    jq -e . "$OUT" >/dev/null
}

stopped() { node_gone "$NODE"; }

# bats test_tags=long
@test "a trace does not prevent init:stop() and halt(), and ends with status 1" {
    for how in 'init:stop()' 'halt(0)'; do
        mortal
        on_node 'work:flood(1)'
        trace work:one/1
        start=$(millis)
        on_node "spawn(fun() -> $how end)" || true
        until_true 30 stopped
        echo "# $how: $(($(millis) - start)) ms" >&3
        trace_wait
        assert_failure 1
        rm -f "$(node_dir "$NODE")/pid"
    done
}

# Starts a node that pauses while the companion's library exists as a file. PLACE selects its directory. Sets LIBRARY.
loading() { # PLACE
    local library=$BATS_TEST_TMPDIR/library-$1
    unset XDG_RUNTIME_DIR
    case $1 in
        run) export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR/run ;;
        home) export HOME=$BATS_TEST_TMPDIR/home ;;
    esac
    HELD=$library ETRACE_ERL=$BATS_FILE_TMPDIR/erl node_start held
    etrace_start -n "$NODE" work:one/1
    until_true 30 test -s "$library" || fail "$(<"$ERR")"
    LIBRARY=$(<"$library")
}

@test "the library's file is removed if the node is killed while it loads the library" {
    mkdir -p "$BATS_TEST_TMPDIR/run" "$BATS_TEST_TMPDIR/home/.cache"
    cp -p "$HOME/.erlang.cookie" "$BATS_TEST_TMPDIR/home"
    # All places have one list, so in the core one of them is enough.
    for place in run ${ETRACE_ALL:+fixed home}; do
        loading "$place"
        [[ -f $LIBRARY ]] || fail "the file $LIBRARY does not exist"
        [[ $place == fixed || $LIBRARY == "$BATS_TEST_TMPDIR/$place"/* ]] || fail "the library is not in $place: $LIBRARY"
        node_stop "$NODE"
        trace_wait
        assert_failure
        [[ ! -e ${LIBRARY%/*} ]] || fail "$place: $(ls -d "$LIBRARY")"
    done
}

# Processes of the companion. The heir takes over when the janitor dies.
janitor='hd(control:companion(janitor))'
owner='hd(control:companion(owner))'
heir='hd(control:companion(heir))'

@test "the library's directory is removed if the janitor and the owner are killed while it is written" {
    local told=$BATS_TEST_TMPDIR/told victims made
    removed() { [[ ! -e $made ]]; }
    HELD_DIR=$told ETRACE_ERL=$BATS_FILE_TMPDIR/erl live_own written
    for victims in "$janitor" "$janitor, $owner"; do
        : >"$told"
        etrace_start -n "$NODE" work:one/1
        until_true 30 test -s "$told" || fail "$(<"$ERR")"
        made=$(<"$told")
        [[ -d $made ]] || fail "the directory $made does not exist"
        freeze "$TRACER"
        on_node "[exit(P, kill) || P <- [$victims]]" # a process inside such a call cannot be suspended
        kill -KILL "$TRACER"
        wait "$TRACER" || true
        run "$ETRACE_BIN" -n "$NODE" -q --dry-run work:one/1
        assert_success
        rm "$told"
        until_true 30 removed || fail "the directory $made still exists"
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "the client reports that the janitor was killed before the owner started" {
    on_node 'Me = self(), spawn(fun() -> register(holder, self()), erlang:suspend_process(whereis(code_server)), Me ! held, receive after infinity -> ok end end), receive held -> ok end'
    etrace_start -n "$NODE" work:one/1
    there() { [[ $(node_eval "$NODE" 'control:companion(janitor)') != '[]' ]]; }
    until_true 30 there
    on_node "exit($janitor, kill)"
    status=0
    wait "$TRACER" || status=$?
    on_node 'R = monitor(process, holder), exit(whereis(holder), kill), receive {_, R, _, _, _} -> ok end'
    assert_equal "$(<"$ERR")" "etrace: $NODE: the tracer process was killed, by somebody or for using too much memory"
    assert_equal "$status" 1
    assert_clean "$BEFORE" "$NODE"
}

@test "killing the owner or the janitor ends the trace with one message, and the node is clean" {
    for who in "$owner" "$janitor"; do
        trace --json work:one/1
        on_node 'work:loop(5)'
        on_node "exit($who, kill)"
        trace_wait
        assert_failure 1
        assert_equal "$(grep -c -e 'the tracer process was killed' -e 'the tracer has ended' -e 'the tracer on the node was ended' "$ERR")" 1
        assert_clean "$BEFORE" "$NODE"
    done
    # Kill both at once: at most the module stays, and the next attach removes it.
    trace work:one/1
    on_node "J = $janitor, O = $owner, exit(J, kill), exit(O, kill)"
    trace_wait
    assert_failure 1
    "$ETRACE_BIN" -n "$NODE" -q --dry-run work:one/1
    assert_clean "$BEFORE" "$NODE"
}

@test "a surviving process of the companion removes its module, or else the next attach does" {
    local first=$OUT module victims
    trace --json work:one/1
    first=$TRACER
    ours='control:companion_modules()'
    module=$(node_eval "$NODE" "[M] = $ours, M")
    OUT=$OUT.second ERR=$ERR.second
    trace --json work:one/1
    # Neither the companion's last process nor the client gets a chance to clean up.
    freeze "$TRACER"
    on_node "[M] = $ours -- [$module], J = whereis(M), {_, Watch} = process_info(J, monitored_by),
        All = lists:usort([J | Watch] ++ [P || P <- processes(), {_, {N, _, _}} <- [process_info(P, initial_call)], N =:= M]),
        [erlang:suspend_process(P) || P <- All], [exit(P, kill) || P <- All]"
    kill -KILL "$TRACER"
    wait "$TRACER" || true
    TRACER=$first OUT=${OUT%.second} ERR=${ERR%.second}
    trace_end
    assert_success
    left() { [[ $(node_eval "$NODE" "length($ours)") == "$1" ]]; }
    until_true 30 left 1
    "$ETRACE_BIN" -n "$NODE" -q --dry-run work:one/1
    assert_clean "$BEFORE" "$NODE"
    # One process of the companion survives and cleans up without a client.
    for victims in "[$janitor, $owner]" \
        'control:companion(all)' \
        "[$janitor, $heir]"; do
        trace --json work:one/1
        freeze "$TRACER"
        on_node "All = $victims, [erlang:suspend_process(P) || P <- All], [exit(P, kill) || P <- All]"
        kill -KILL "$TRACER"
        wait "$TRACER" || true
        until_true 30 left 0 || fail "$victims: $(node_eval "$NODE" "$ours")"
    done
}

@test "the companion's module is removed through the code server, which alone uses the purger" {
    # The janitor, its heir, the owner and the client remove the module in turn, as their predecessors are killed.
    local victims all
    # The library stays mapped until the last code that uses it is purged.
    unloaded() { nobody_there && ! grep -q etrace- "/proc/$(<"$(node_dir "$NODE")/pid")/maps"; }
    all="[$heir | control:companion(all)]"
    for victims in '[]' "[$janitor]" "[$janitor, $heir]" "$all"; do
        on_node 'Me = self(), spawn(fun() ->
            register(purges, self()),
            S = trace:session_create(purges, self(), []),
            1 = trace:process(S, whereis(erts_code_purger), true, ['"'receive'"']),
            Me ! on,
            (fun Heard(For) -> receive
                {trace, _, _, {purge, _, P, _}} -> Heard([P | For]);
                {tell, To} -> trace:session_destroy(S), To ! {purged, lists:usort(For)};
                _ -> Heard(For)
            end end)([])
        end), receive on -> ok end'
        trace work:one/1
        on_node "All = $victims, [erlang:suspend_process(P) || P <- All], [exit(P, kill) || P <- All]"
        trace_end
        until_true 30 unloaded
        assert_equal "$(node_eval "$NODE" 'purges ! {tell, self()}, receive {purged, For} -> [process_info(P, registered_name) || P <- For] end')" \
            '[{registered_name,code_server}]'
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "the session ends with its owner, because no other heap has the strong handle" {
    trace --json 'work:one/1 -> return' 'send(_, _)'
    on_node 'work:loop(5)'
    # The other processes of the companion are suspended. The owner has collected its garbage, so it keeps only
    # handles that are in variables.
    on_node "J = $janitor, O = $owner, M = element(1, element(2, process_info(O, initial_call))), garbage_collect(O), work:loop(5),
        [_, _ | _] = Others = [P || P <- processes(), P =/= O, {_, {N, _, _}} <- [process_info(P, initial_call)], N =:= M],
        [erlang:suspend_process(P) || P <- [J | Others]],
        [_] = [S || {etrace, _} = S <- trace:session_info(all)],
        exit(O, kill),
        (fun F(N) when N > 0 -> [] =:= [S || {etrace, _} = S <- trace:session_info(all)] orelse receive after 10 -> F(N - 1) end end)(1000)"
    trace_wait
    assert_failure 1
}

@test "the trace ends with a message when another process destroys the session" {
    trace --json work:one/1
    on_node 'work:loop(5), [trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
    trace_wait 30
    assert_failure 1
    assert_equal "$(grep -c "^etrace: $NODE: .*session" "$ERR")" 1
    assert_clean "$BEFORE" "$NODE"
}

@test "the node is clean after another process deletes or purges the companion's module" {
    for how in 'code:delete(M)' 'code:delete(M), code:purge(M)' 'code:purge(M), code:delete(M), code:purge(M), code:purge(M)'; do
        trace work:one/1
        on_node "[M] = control:companion_modules(), $how"
        on_node 'work:loop(5)'
        kill -INT "$TRACER" 2>/dev/null || true
        trace_wait
        assert [ "$status" -le 4 ]
        assert_clean "$BEFORE" "$NODE"
    done
}

@test "etrace, another session and legacy tracing of the same function do not disturb each other" {
    # The other tools are dbg, another session, and legacy tracing; each counts the events that it receives.
    on_node 'register(others, spawn(fun() ->
        S = trace:session_create(other, self(), []),
        1 = trace:function(S, {work, one, 1}, true, [local]),
        trace:process(S, all, true, [call]),
        F = fun F(N) -> receive {trace, _, call, {work, one, _}} -> F(N + 1); {get, P} -> P ! {count, N}, F(N); stop -> trace:session_destroy(S) end end,
        F(0) end)),
      register(legacy, spawn(fun() ->
        erlang:trace_pattern({work, one, 1}, true, [local]),
        erlang:trace(all, true, [call]),
        F = fun F(N) -> receive {trace, _, call, {work, one, _}} -> F(N + 1); {get, P} -> P ! {count, N}, F(N);
            stop -> erlang:trace(all, false, [call]), erlang:trace_pattern({work, one, 1}, false, [local]) end end,
        F(0) end))'
    counts='[begin P ! {get, self()}, receive {count, N} -> N end end || P <- [others, legacy]]'
    until_true 30 others_trace
    first=$(node_eval "$NODE" "$counts")
    traced --json 'work:one/1 -> return' -- 'work:loop(50)'
    assert_success
    assert_equal "$(json_of call .f | wc -l)" 50
    assert_equal "$(json_of return .f | wc -l)" 50
    run node_eval "$NODE" "work:loop(7), list_to_tuple([A - B || {A, B} <- lists:zip($counts, $first)])"
    assert_output '{57,57}'
    # The other tools end while etrace traces.
    trace --json work:one/1
    on_node 'work:loop(5), R = [monitor(process, P) || P <- [others, legacy]], others ! stop, legacy ! stop, [receive {_, X, _, _, _} -> ok end || X <- R], work:loop(6)'
    trace_end
    assert_success
    assert_account 11
}
others_trace() { [[ $(node_eval "$NODE" 'work:one(0), work:one(0), lists:all(fun(P) -> P ! {get, self()}, receive {count, N} -> N > 0 end end, [others, legacy])') == true ]]; }

dbg_has() { [[ $(node_eval "$NODE" 'dbg_sink ! {get, self()}, receive {count, N} -> N end') == "$1" ]]; }

@test "etrace and dbg on the same function do not disturb each other" {
    on_node 'register(dbg_sink, spawn(fun() -> F = fun F(N) -> receive hit -> F(N + 1); {get, P} -> P ! {count, N}, F(N); stop -> ok end end, F(0) end)),
        dbg:tracer(process, {fun({trace, _, call, _}, S) -> dbg_sink ! hit, S; (_, S) -> S end, none}), dbg:p(all, [c]), dbg:tpl(work, one, 1, [])'
    traced --json work:one/1 -- 'work:loop(20)'
    assert_success
    assert_account 20
    on_node 'work:loop(4)'
    until_true 30 dbg_has 24
    trace --json work:one/1
    on_node 'work:loop(3), dbg:stop(), work:loop(5)'
    trace_end
    assert_account 8
    on_node 'R = monitor(process, dbg_sink), dbg_sink ! stop, receive {_, R, _, _, _} -> ok end'
}

# A stress: memory.
# bats test_tags=long
@test "arguments of a hundred megabytes or five million elements do not delay the caller" {
    on_node 'persistent_term:put(big, {binary:copy(<<"x">>, 100000000), lists:seq(1, 5000000)})'
    warm=$(node_snapshot "$NODE")
    trace --json --rate 0 work:pair/2
    run node_eval "$NODE" '{B, L} = persistent_term:get(big),
        Time = fun(T) -> {Us, _} = timer:tc(fun() -> [work:pair(1, T) || _ <- lists:seq(1, 200)] end), Us div 200 end,
        [Time(small), Time(B), Time(L), Time([B, B]), Time(#{k => L}), Time({L, B})]'
    assert_success
    echo "# microseconds a call with a small term, 100 MB, 5 M elements, two binaries, in a map, in a tuple: $output" >&3
    # Only the largest time is asserted. The limit allows for a scheduler that lost its processor for a while.
    assert [ "$(tr -d '[]' <<<"$output" | tr ',' '\n' | sort -n | tail -n 1)" -lt 20000 ]
    trace_end
    assert_success
    assert_account 1200
    assert_equal "$(json_of summary .truncated)" 1000
    assert_clean "$warm" "$NODE"
    on_node 'persistent_term:erase(big)'
}

# bats test_tags=long
@test "etrace cuts and prints deep terms, shared terms, strange atoms and terms of every type" {
    # Make the test's own atoms before the snapshot.
    on_node '[list_to_atom([255]), list_to_atom(lists:duplicate(255, 16#1F600)), list_to_atom("a\n\"b\\")]'
    live_snapshot
    on_node 'Deep = lists:foldl(fun(_, A) -> {A} end, x, lists:seq(1, 1000000)), List = lists:foldl(fun(_, A) -> [A] end, x, lists:seq(1, 1000000)), persistent_term:put(big, [Deep, List, lists:foldl(fun(_, A) -> {A, A} end, x, lists:seq(1, 60))])'
    warm=$(node_snapshot "$NODE")
    trace --json work:one/1
    # Pass the terms by reference, because a flat copy of the shared term would not fit into memory.
    on_node 'begin [D, L, S] = persistent_term:get(big), work:one(D), work:one(L), work:one(S) end, ok'
    on_node 'work:one(list_to_atom([255])), work:one(list_to_atom(lists:duplicate(255, 16#1F600))), work:one(list_to_atom("a\n\"b\\")), work:one(<<255, 254, 0>>), work:one([16#10FFFF, 16#D7FF]), work:one(fun work:one/1), work:one(self()), work:one(make_ref()), work:one(hd(erlang:ports())), work:one(1 bsl 20000), work:one(-(1 bsl 64)), work:one(<<1:1>>), work:one([a | b]), work:one(#{#{} => #{}})'
    trace_end
    assert_success
    assert_account 17
    jq -e . "$OUT" >/dev/null
    assert_clean "$warm" "$NODE"
    on_node 'persistent_term:erase(big)'
}

# bats test_tags=long
@test "terms of every type are arguments, results, exceptions, messages and requests, whole and cut" {
    local n how words
    live_own terms
    on_node '[work:one(X) || X <- terms:all()], work:start_server(), register(sink, spawn(fun F() -> receive stop -> ok; _ -> F() end end))' # makes atoms
    live_snapshot
    n=$(node_eval "$NODE" 'length(terms:all() ++ terms:nested())')
    # each HOW EVENTS WORDS... -- CALL: traces a call for each term.
    each() {
        local events=$1 words=()
        shift
        for (( ; ; )); do
            [[ $1 != -- ]] || break
            words+=("$1")
            shift
        done
        trace --json --rate 0 "${words[@]}"
        on_node "begin {_, R} = spawn_monitor(fun() -> [$2 || X <- terms:all() ++ terms:nested()] end), receive {'DOWN', R, _, _, _} -> ok end end"
        trace_end
        assert_success
        assert_account "$((n * events))"
    }
    for how in '' '--size 64' '--depth 1 --items 1'; do
        read -ra words <<<"$how"
        each 2 "${words[@]}" 'work:one/1 -> return' -- 'work:one(X)'
        each 2 "${words[@]}" 'work:raise/2 -> return' -- 'catch work:raise(throw, X)'
        each 1 "${words[@]}" 'work:one(X) -> msg({X, [X]})' -- 'work:one(X)'
        each 1 "${words[@]}" -P sink 'recv(_)' -- 'begin sink ! X, process_info(whereis(sink), dictionary) end' # which follows X
        each 2 "${words[@]}" --ring 64MB 'work:one/1 -> return' -- 'work:one(X)'
        each 4 "${words[@]}" 'work:raise/2 -> return inside work:caught/2' -- 'work:caught(exit, X)'
    done
    for how in 'ret == never' 'ret = {t, _}' 'args[1] == 1' 'reason == x'; do
        each 2 "work:caught/2 -> return where $how" -- 'work:caught(error, X)'
    done
    COMMAND=requests trace --json
    on_node '[work:get(X) || X <- terms:all() ++ terms:nested()], ok'
    trace_end
    assert_success
    assert_equal "$(jq -rs 'map(select(.type == "requests") | .calls) | add' "$OUT")" "$n"
    on_node 'work:stop_server(), sink ! stop'
}

# bats test_tags=long
@test "etrace refuses hostile expressions with a message, and the node stays unchanged" {
    deep=$(printf '[%.0s' {1..5000})
    long=$(printf 'x%.0s' {1..2000})
    for expr in "lists:seq($deep" "lists:$long(_)" 'lists:seq(' "'" '"' "lists:seq(_) when" 'lists:seq(_,N) when N > 99999999999999999999999999999999999999999' \
        '::::' 'a:b(_) -> return,' $'lists:seq(\x01)' $'\xff\xfe' 'ms lists:seq/2 [{[],[],[{trace,[],[call]}]}' '@nothing' 'lists:/(((/f' \
        'lists:seq(#{a=>#{b=>^X}})' 'send(((((' 'when when when' '-> ->' '%' ''; do
        status=0
        timeout 20 "$ETRACE_BIN" -n "$NODE" --for 50ms "$expr" >"$OUT" 2>"$ERR" </dev/null || status=$?
        [[ $status -eq 0 || $status -eq 2 || $status -eq 5 ]] || fail "status $status for $(head -c 60 <<<"$expr"): $(head -c 500 "$ERR")"
        [[ $status -eq 0 ]] || grep -q '^etrace: ' "$ERR" || fail "etrace printed no message for $(head -c 60 <<<"$expr")"
        [[ $(wc -l <"$ERR") -le 5 ]] || fail "etrace printed too many lines for $(head -c 60 <<<"$expr")"
    done
    assert_clean "$BEFORE" "$NODE"
}
