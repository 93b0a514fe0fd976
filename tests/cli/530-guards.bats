#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The limits that protect a node from any request: the time, the stack, the memory and the atoms that a trace may use.

load ../lib/assert
load ../lib/live

setup_file() { live_begin guards; }
teardown_file() { live_end; }
setup() { live_setup; }
# End these processes after a failure, too, so that the next test does not fail as well.
teardown() {
    idle
    on_node '[begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || N <- [loop, many, busy, slower], P <- [whereis(N)], is_pid(P)]' || true
    live_teardown
}

HOGS=()
hogs() { # COUNT: occupies the host's processors
    local i
    for ((i = 0; i < $1; i++)); do
        (while :; do :; done) 3>&- &
        HOGS+=($!)
    done
}
idle() {
    local i
    for i in "${HOGS[@]}"; do
        kill "$i" || true
        wait "$i" || true
    done
    HOGS=()
}

# Prints the number of events that the stream reports as lost for a reason.
lost() { jq -s --arg why "$1" '[.[] | select(.type == "lost") | .lost[$why] // 0] | add // 0' "$OUT" 2>/dev/null || echo 0; }

said() { grep -q -e "$1" "$ERR"; }

# Calls work:one/1 without end. The term takes some hundred microseconds to encode, to few bytes, so the encoding is
# the bottleneck and not a slow client.
costly() { on_node 'register(loop, spawn(fun() -> M = lists:duplicate(200, 1 bsl 70), F = fun F() -> work:one(M), F() end, F() end))'; }
enough() { on_node 'R = monitor(process, loop), exit(whereis(loop), kill), receive {_, R, _, _, _} -> ok end'; }

@test "events take at most a tenth of a scheduler's time; etrace counts and reports the others" {
    costly
    looping=$(node_snapshot "$NODE")
    # No event is shown, so losses happen on the node and not because of a slow reader.
    trace --json --size 4096 'work:one/1 where false'
    until_true 30 said 'guard time' || fail "etrace printed no message: $(<"$ERR")"
    trace_end
    assert_success
    tail -n 1 "$OUT" | jq -e '.type == "summary" and .complete and .lost.guard > 0 and .seen == .shown + .filtered + ([.lost[]] | add)' ||
        fail "$(tail -n 1 "$OUT" | cut -c1-500)"
    assert_equal "$(grep -c 'guard time' "$ERR")" 1
    assert_clean "$looping" "$NODE"
    enough
}

@test "--rate 0 switches off the guard of the scheduler's time" {
    costly
    trace --json --rate 0 --for 2s --size 4096 'work:one/1 where false'
    trace_wait 30
    enough
    assert_success
    tail -n 1 "$OUT" | jq -e '.type == "summary" and (.lost.guard // 0) == 0'
}

@test "calls whose result nobody wants do not count toward the limit of pending results" {
    trace --json --rate 0 'work:one(X) when X rem 2 == 0 -> return, msg(X)' 'work:one(X) when X rem 2 == 1' 'work:two(X, _) when X == 0 -> return' \
        'work:two(_, Y) -> msg({Y})'
    # One process makes more calls than the limit of pending results; half of them have no result.
    on_node '[work:ask(w, fun() -> [begin work:one(N), work:two(N, b) end || N <- lists:seq(1, 12000)] end), work:ask(w, fun() -> work:two(0, c) end)]'
    trace_end
    assert_success
    refute_regex "$talk" 'guard returns'
    jq -s -e '([.[] | select(.type == "lost") | .lost // {} | add] | add // 0) > 0' "$OUT" >/dev/null || assert_account 30002
    # An event has the parts that its expression asks for, and no internal term.
    run grep -c etrace_owes "$OUT"
    assert_output 0
    run jq -r 'select(.type == "call" and .f == "one" and (.args[0] == "2" or .args[0] == "3")) | "\(.args[0]) \(.message // "-")"' "$OUT"
    assert_output $'2 2\n3 -'
    run jq -r 'select(.type == "call" and .f == "two" and (.args[0] == "7" or .args[0] == "0")) | "\(.args[0]) \(.message // "-")"' "$OUT"
    assert_output $'7 {b}\n0 {c}'
}

@test "the internal mark of a pending result never shows while other probes are armed" {
    local i
    on_node 'register(loop, spawn(fun() -> F = fun F(N) -> work:one(N), work:two(N, N), N rem 20 =:= 0 andalso timer:sleep(1), F(N + 1) end, F(0) end))'
    repl_start -n "$NODE"
    repl_line 'work:one/1 -> return'
    until_true 30 said '1 probe '
    repl_line 'work:two/2'
    until_true 30 said '2 probes '
    for i in 3 4 5; do
        repl_line "string:_"
        until_true 30 said "$i probes "
    done
    until_true 30 grep -q 'call work:two' "$OUT"
    repl_end
    trace_wait
    on_node 'exit(whereis(loop), kill)'
    run grep -c etrace_owes "$OUT"
    assert_output 0
}

@test "a trace of every call and message of the node is throttled, and the node answers" {
    trace --json '_:_' 'send(_, _)' 'recv(_)'
    on_node 'work:flood(2)'
    for _ in {1..20}; do
        start=$(millis)
        run node_eval "$NODE" 'lists:sum(lists:seq(1, 100))'
        assert_output 5050
        [[ $(($(millis) - start)) -lt 5000 ]] || fail "the node answered after $(($(millis) - start)) ms"
    done
    trace_end
    assert_success
    tail -n 1 "$OUT" | jq -e '.type == "summary" and .complete and .seen == .shown + .filtered + ([.lost[]] | add // 0)'
    jq -s -e '[.[] | select(.type == "call")] | length > 100' "$OUT" >/dev/null
    on_node 'work:calm(ok)'
}

@test "a hundred thousand processes and two thousand new ones are traced, and nothing remains" {
    on_node 'register(many, spawn(fun() -> Ps = [spawn_link(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 100000)], receive {stop, From} -> [P ! stop || P <- Ps], From ! stopped end end))'
    until_true 30 eval '[[ $(node_eval "$NODE" "erlang:system_info(process_count) > 100000") == true ]]'
    many=$(node_snapshot "$NODE")
    memory=$(node_eval "$NODE" 'erlang:memory(total)')
    trace --json --inherit spawn 'work:one/1'
    used=$(node_eval "$NODE" "erlang:memory(total) - $memory")
    echo "# memory for a hundred thousand traced processes: $((used / 1024)) KiB" >&3
    [[ $used -lt 100000000 ]] || fail "etrace uses $used bytes"
    on_node 'Me = self(), [spawn(fun() -> work:one(storm), Me ! done end) || _ <- lists:seq(1, 2000)], [receive done -> ok end || _ <- lists:seq(1, 2000)], ok'
    trace_end
    assert_success
    assert_account 2000
    assert_clean "$many" "$NODE"
    on_node 'many ! {stop, self()}, receive stopped -> ok end'
    until_true 30 eval '[[ $(node_eval "$NODE" "erlang:system_info(process_count) < 1000") == true ]]'
}

@test "exits are traced on a node with two hundred thousand registered names" {
    node_start names
    on_node 'lists:foreach(fun(N) -> register(list_to_atom("name_" ++ integer_to_list(N)), spawn(fun() -> receive stop -> ok end end)) end,
        lists:seq(1, 200000))'
    trace --json @exit
    on_node 'R = monitor(process, name_200000), name_200000 ! stop, receive {_, R, _, _, normal} -> ok end'
    trace_end
    assert_success
    assert_regex "$(json_of exit .reason)" normal
    node_stop "$NODE"
}

all_busy() { [[ $(node_eval "$NODE" 'length(element(2, process_info(whereis(busy), links)))') == 100 ]]; }

@test "etrace attaches to a node with busy schedulers, and the node is clean after kill -9" {
    on_node 'register(busy, spawn(fun() -> Ps = [spawn_link(fun() -> F = fun F() -> work:spin(1000), F() end, F() end) || _ <- lists:seq(1, 100)], receive {stop, From} -> process_flag(trap_exit, true), [exit(P, kill) || P <- Ps], [receive {_, P, _} -> ok end || P <- Ps], From ! stopped end end))'
    until_true 30 all_busy
    busy=$(node_snapshot "$NODE")
    trace --json 'work:one/1'
    start=$(millis)
    kill -KILL "$TRACER"
    assert_clean "$busy" "$NODE" 30
    echo "# clean after $(($(millis) - start)) ms on a busy node" >&3
    on_node 'busy ! {stop, self()}, receive stopped -> ok end'
}

@test "on a busy node of a busy host, a trace of every call arms, lasts and ends, and the node answers" {
    local i what
    on_node 'register(busy, spawn(fun() -> Ps = [spawn_link(fun() -> F = fun F() -> work:spin(1000), F() end, F() end) || _ <- lists:seq(1, 10)], receive {stop, From} -> process_flag(trap_exit, true), [exit(P, kill) || P <- Ps], [receive {_, P, _} -> ok end || P <- Ps], From ! stopped end end))'
    hogs 2
    busy=$(node_snapshot "$NODE")
    # The second expression makes every loop of the node a question.
    for what in '_:_' '_:_ -> return'; do
        trace --json --force "$what"
        for i in {1..5}; do
            run node_eval "$NODE" 'lists:sum(lists:seq(1, 100))'
            assert_output 5050
        done
        kill -0 "$TRACER" || fail "the trace of $what ended early: $(<"$ERR")"
        [[ $what == '_:_' ]] || until_true 60 grep -q 'calls itself in a loop' "$ERR" || fail "etrace named no loop: $(<"$ERR")"
        trace_end
        assert_success
        assert_account any
        jq -s -e '[.[] | select(.type == "call")] | length > 100' "$OUT" >/dev/null
    done
    idle
    assert_clean --atoms 300 "$busy" "$NODE"
    on_node 'busy ! {stop, self()}, receive stopped -> ok end'
}

# A client whose predecessor is not gone yet gets another name, which is a new atom; it counts as a name.
@test "ten thousand typos create no atom" {
    local REPLY atoms new
    trace --json work:one/1
    node_ask "$NODE" 'control:near()'
    number atoms "$REPLY"
    atoms=$REPLY
    trace_end
    expressions=()
    for ((i = 0; i < 10000; i++)); do expressions+=("nosuch_${RANDOM}_$i:f_$i/1"); done
    for ((i = 0; i < 10000; i += 500)); do
        # Five hundred expressions at a time: each matches nothing, so etrace refuses all of them.
        status=0
        "$ETRACE_BIN" -n "$NODE" --allow-empty --dry-run "${expressions[@]:i:500}" >"$OUT" 2>"$ERR" </dev/null || status=$?
        [[ $status -eq 0 || $status -eq 5 ]] || fail "status $status: $(head -n 3 "$ERR")"
    done
    node_ask "$NODE" 'control:near()'
    number atoms "$REPLY"
    new=$((REPLY - atoms))
    [[ $new -eq 0 ]] || fail "$new new atoms: $(node_eval "$NODE" "control:newest($new)")"
}

@test "etrace waits for a node that looks up modules slowly as long as it makes progress" {
    # The code server answers about one question a second; it may answer two before it is suspended again.
    on_node 'spawn(fun() ->
        register(slower, self()),
        process_flag(priority, high),
        Server = whereis(code_server),
        Answered = fun Answered() ->
            case process_info(Server, [message_queue_len, status]) of
                [{message_queue_len, 0}, {status, waiting}] -> ok;
                _ -> Answered()
            end
        end,
        (fun Slow() ->
            true = erlang:suspend_process(Server),
            receive stop -> ok
            after 1000 ->
                true = erlang:resume_process(Server),
                Answered(),
                Slow()
            end
        end)()
    end), ok'
    local expressions=() i
    for i in {1..12}; do expressions+=("nosuch_$i:f/1"); done
    timeout 300 "$ETRACE_BIN" -n "$NODE" --allow-empty --dry-run "${expressions[@]}" </dev/null >"$OUT" 2>"$ERR" || fail "status $?: $(<"$ERR")"
    on_node 'slower ! stop'
    assert grep -q 'has been arming for 5 seconds; Ctrl-C cancels' "$ERR"
    assert grep -q '· 0 functions · ' "$ERR"
}

@test "the owner has a heap limit, and exceeding it is not logged" {
    trace --json work:one/1
    run node_eval "$NODE" '[Owner] = control:companion(owner),
        [{process_flag, maps:get(size, H) > 0, maps:get(kill, H), maps:get(error_logger, H)} || {max_heap_size, H} <- [process_info(Owner, max_heap_size)]]'
    assert_output '[{process_flag,true,true,false}]'
    trace_end
}
