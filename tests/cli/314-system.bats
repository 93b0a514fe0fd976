#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests system events: a session of their own traces them, they come in the same stream, and both sessions end together.

load ../lib/assert
load ../lib/live

setup_file() {
    live_share system
    # Start the tracer of system events once, so that the code that the node loads for it is in the snapshot.
    [[ $ETRACE_OTP == 27 ]] || "$ETRACE_BIN" -n "$NODE" -qq --for 200ms '@long_message_queue(0, 100000)' >/dev/null
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

only_from_28() { # EXPRESSION: on OTP 27 asserts that etrace refuses it, and returns 1
    [[ $ETRACE_OTP == 27 ]] || return 0
    run "$ETRACE_BIN" -n "$NODE" "$1"
    assert_failure 2
    assert_line -n 0 'etrace: system events need OTP 28'
    assert_output --partial 'this node has OTP 27'
    return 1
}

grow='fun F(0) -> ok; F(N) -> self() ! {filler, N}, F(N - 1) end'
empty='fun F() -> receive {filler, _} -> F() after 0 -> ok end end'

# bats test_tags=each
@test "long_message_queue reports on and off, in order with the other events of the process" {
    only_from_28 '@long_message_queue(2, 20)' || return 0
    trace --json -P w '@long_message_queue(2, 20)' work:one/1
    on_node "work:ask(w, fun() -> work:one(before), ($grow)(30), receive after 20 -> ok end, work:one(between), ($empty)(), receive after 20 -> ok end, work:one(behind) end)"
    trace_end
    assert_success
    assert_equal "$(jq -r 'select(.name == "w") | .event // .args[0]' "$OUT" | xargs)" 'before long_message_queue between long_message_queue behind'
    assert_equal "$(json_of system .info | xargs)" 'true false'
    jq -es '[.[] | select(.pid) | .mono_ns] | . == sort' "$OUT"
    assert_account any
}

# bats test_tags=each
@test "large_heap shows the heap in words, long_gc its duration" {
    only_from_28 '@large_heap(100000)' || return 0
    trace -P w '@large_heap(100000)' '@long_gc(1) where dur >= 1ms'
    on_node 'work:ask(w, fun() -> spawn_monitor(fun() -> L = lists:seq(1, 2000000), garbage_collect(), exit(length(L)) end), receive {_, _, _, _, 2000000} -> ok end end)'
    trace_end
    assert_success
    assert_output --regexp '> large_heap heap [0-9]+/[0-9]+, old [0-9]+/[0-9]+, stack [0-9]+'
    # Whether a collection takes 1 ms depends on the machine. If etrace shows the event, it must show the duration.
    run grep ' long_gc ' "$OUT"
    if [[ $output ]]; then refute_line --regexp 'long_gc.*stack [0-9]+$'; fi
}

# bats test_tags=long
@test "long_schedule shows how long the process ran" {
    only_from_28 '@long_schedule(1)' || return 0
    trace --json '@long_schedule(1)'
    # The VM cannot preempt a comparison of large terms.
    on_node 'work:ask(w, fun() -> L = lists:seq(1, 4000000), true = L =:= lists:seq(1, 4000000), ok end)'
    until_true 30 grep -q '"event":"long_schedule"' "$OUT"
    trace_end
    assert_success
    jq -es 'any(.[]; .event == "long_schedule" and .dur_us >= 1000 and .info.timeout * 1000 == .dur_us)' "$OUT"
}

# bats test_tags=each
@test "busy_port shows the port that suspended the process" {
    only_from_28 @busy_port || return 0
    trace --json @busy_port
    # Nobody reads the pipe, so it fills up and the port becomes busy.
    on_node 'register(writer, spawn(fun() -> P = open_port({spawn, "sleep 60"}, []), (fun F() -> port_command(P, lists:duplicate(10000, 0)), F() end)() end))'
    until_true 30 grep -q '"event":"busy_port"' "$OUT"
    trace_end
    sleeper=$(node_eval "$NODE" 'hd([N || P <- erlang:ports(), {name, "sleep 60"} =:= erlang:port_info(P, name), {_, N} <- [erlang:port_info(P, os_pid)]])')
    on_node 'case whereis(writer) of undefined -> ok; P -> R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end'
    # Until it runs the command, the program that starts it ignores SIGTERM.
    kill -KILL "$sleeper"
    assert_success
    assert_equal "$(json_of system '.info | test("^#Port<")' | sort -u)" true
}

@test "a flood of system events obeys the rate, and the losses are counted" {
    only_from_28 '@large_heap(20000)' || return 0
    trace --json --rate 50 '@long_message_queue(2, 3)'
    on_node 'work:ask(w, fun() -> [begin [self() ! x || _ <- lists:seq(1, 4)], receive after 0 -> ok end, [receive x -> ok end || _ <- lists:seq(1, 4)] end || _ <- lists:seq(1, 20000)], ok end)'
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of summary '.shown <= 500 and .shown >= 50 and .lost.rate > 0')" true
}

@test "a trace of system events alone traces no process, and --limit ends it" {
    only_from_28 '@long_message_queue(2, 20)' || return 0
    trace --json --limit 2 '@long_message_queue(2, 20)'
    assert_equal "$(node_eval "$NODE" 'lists:usort(lists:append([S || P <- processes(), S <- [trace:session_info(P)], is_list(S)]))')" '[]'
    on_node "work:ask(w, fun() -> [begin ($grow)(30), receive after 10 -> ok end, ($empty)(), receive after 10 -> ok end end || _ <- [1, 2, 3]] end)"
    trace_wait
    assert_success
    assert_equal "$(json_of system .event | wc -l)" 2
}

@test "the session of system events ends with the tracer, whatever ends the tracer" {
    only_from_28 @busy_port || return 0
    for end in 'kill -KILL "$TRACER"' 'on_node "exit(hd(control:companion(owner)), kill)"' \
        'on_node "exit(hd(control:companion(janitor)), kill)"'; do
        trace @busy_port @exit
        [[ $(node_eval "$NODE" 'length(trace:session_info(all))') == 3 ]] || fail "the node does not have two sessions of etrace"
        eval "$end"
        until_true 30 gone "$TRACER"
        assert_clean "$BEFORE" "$NODE"
    done
}

# If a tracer of system events ends while its session waits to be destroyed, the next event crashes the VM. The storm
# provides events all the time, and hog keeps changing trace patterns, so that sessions have to wait.
# bats test_tags=long
@test "the session of system events ends before its tracer and the node survives, whichever process dies" {
    only_from_28 '@long_message_queue(1, 2)' || return 0
    local which
    on_node 'work:worker(storm), work:tell(storm, fun() -> Empty = fun E() -> receive filler -> E() after 0 -> ok end end,
        (fun L() -> [self() ! filler || _ <- [1, 2, 3, 4]], Empty(), erlang:yield(), whereis(storm) =:= undefined orelse L() end)() end)'
    on_node 'work:worker(hog), work:tell(hog, fun() -> S = trace:session_create(hog, self(), []),
        (fun L() -> [trace:function(S, {lists, '\''_'\'', '\''_'\''}, On, [local]) || On <- [true, false]], L() end)() end)'
    for which in none client 'control:companion(system)' 'control:companion(owner)' 'control:companion(all) -- control:companion(janitor)'; do
        trace --rate 50 '@long_message_queue(1, 2)'
        case $which in
            none) child_kill "$TRACER" INT ;;
            client) child_kill "$TRACER" ;;
            *) on_node "[exit(P, kill) || P <- $which]" ;;
        esac
        [[ $which != 'control:companion(system)' ]] || child_kill "$TRACER" INT
        until_true 60 gone "$TRACER"
        until_true 30 nobody_there || fail "$which: $(node_eval "$NODE" 'control:near()')"
    done
    # Also kill the janitor and the heir, so that nothing cleans up. The next attach removes the code that is left.
    for which in 1 2 3; do
        trace --rate 50 '@long_message_queue(1, 2)'
        on_node '[exit(P, kill) || P <- control:companion(heir) ++ control:companion(all)]'
        until_true 60 gone "$TRACER"
    done
    traced --rate 50 work:one/1 -- 'ok'
    on_node '[begin R = monitor(process, N), exit(whereis(N), kill), receive {_, R, _, _, _} -> ok end end || N <- [storm, hog]]'
    unheld() { on_node '[] = [S || {etrace, _} = S <- trace:session_info(all)]'; }
    until_true 60 unheld || fail 'a session of etrace remains'
    assert_clean "$BEFORE" "$NODE"
}

@test "system events continue when the interactive mode adds a probe" {
    only_from_28 '@long_message_queue(1, 2)' || return 0
    local queue='work:ask(w, fun() -> [self() ! filler || _ <- [1, 2, 3]], (fun E() -> receive filler -> E() after 0 -> ok end end)() end)'
    probes() { [[ $(grep -c 'Ctrl-C stops' "$ERR") -ge $1 ]]; }
    heard() { [[ $(grep -c '(w) long_message_queue true' "$OUT") -ge $1 ]]; }
    : >"$ERR"
    timeout 120 "$ETRACE_BIN" repl --rate 0 -n "$NODE" < <(
        for probe in '@long_message_queue(1, 2)' '@long_schedule(5000)' work:one/1 '@busy_port'; do
            echo "$probe"
            until_true 30 probes $((++many))
            on_node "$queue" >&2
            until_true 30 heard "$many"
        done
    ) >"$OUT" 2>"$ERR" 3>&-
    assert_equal "$(grep -c '(w) long_message_queue true' "$OUT")" 4
    grep -q 'nothing is left on the nodes' "$ERR" || fail "$(<"$ERR")"
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

# The owner does not know the system process before the worker has armed the request, and would drop what it gets.
@test "the owner gets no system events before it has asked for them" {
    [[ $ETRACE_OTP != 27 ]] || return 0
    live_attempt <<'END'
begun() ->
    {module, trace} = code:ensure_loaded(trace),
    Me = self(),
    Many = spawn(fun() -> receive go -> [self() ! filler || _ <- [1, 2, 3]] end, receive stop -> ok end end),
    Heard = {0, {0, 0, 0, 0, 0, 0, 0, 0}, 0},
    {Pid, _} = etrace_00000000_0:system_start([{long_message_queue, {1, 2}}], {Me, [Me, Me], fallback, #{heard => Heard}}),
    Many ! go,
    Early = receive {system, Pid, _, _, _} -> early after 1000 -> later end,
    Pid ! next,
    receive {system, Pid, _, _, {Seen, _, _}} when Seen > 0 -> io:format("~p~n", [Early]) end,
    halt().
END
    assert_success
    assert_output later
}

@test "@system, the family of all system events, is refused" {
    run "$ETRACE_BIN" -n "$NODE" @system
    assert_failure 2
    assert_line -n 0 'etrace: system events must be named one by one'
}
