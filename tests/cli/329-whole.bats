#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Arms whole applications. Counts how often etrace asks the VM to set a pattern, and checks that functions which stay
# armed without being selected appear in no view. The node runs tests/lib/broker.erl: many modules, each with 15
# functions, one list comprehension and two funs.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

MODULES=60
[[ ! ${ETRACE_ALL:-} ]] || MODULES=400

setup_file() {
    live_begin whole
    on_node "broker:load($MODULES), broker:watch()"
}
teardown_file() { live_end; }
setup() {
    live_setup
    CALLS=$(calls)
}
teardown() { live_teardown; }

calls() { node_eval "$NODE" 'broker:calls()'; }

# Asserts that trace:function was called at least once, and at most MOST times, since CALLS was set.
assert_calls() { # MOST
    local now
    now=$(calls)
    ((now - CALLS <= $1)) || fail "$((now - CALLS)) calls of trace:function, and not at most $1"
    ((now > CALLS)) || fail 'no call of trace:function was counted'
}

# f1(4) calls f2(1) in a list comprehension, and f2 calls f3(2) in two funs. With f4 to f15 the call makes 15 calls of
# written functions and four of functions that the compiler generated.
RUN='[14] = made_000:f1(4)'
CALLED=15

functions() { json_of "$1" '"\(.m):\(.f)/\(.a // (.args | length))"' | sort; }
written() { for i in $(seq "$CALLED"); do echo "made_000:f$i/1"; done | sort; }

traced_is() { # FUNCTION VALUE
    on_node "[S] = [X || X = {etrace, _} <- trace:session_info(all)], {traced, $2} = trace:info(S, {made_000, $1}, traced)"
}

# Arms the expressions, and asserts that one call of trace:function per module was enough.
arms() {
    CALLS=$(calls)
    trace --force "$@"
    ! gone "$TRACER" || fail "not armed: $(cat "$ERR")"
    assert_calls $((MODULES + 20))
    trace_end
    assert_success
}

@test "etrace arms a whole application with one call of trace:function per module" {
    arms 'made_*:_'
    arms 'made_*:_ -> return'
    arms 'made_*:_/1 -> caller'
    arms 'made_*:_(X) when X > 1000000'
    arms 'made_*:_' 'work:one/1 -> return'
    arms 'made_*:_ -> return' 'made_000:f1/1 -> caller'
    arms 'made_*:_ -> stack'
    arms -c 'made_*:_'
    arms 'global made_*:_'
    arms 'meta made_*:_'
}

@test "calls of unselected functions are neither shown nor counted" {
    traced --force --json 'made_*:_ -> return' -- "$RUN"
    assert_success
    assert_account $((2 * CALLED))
    assert_equal "$(functions call)" "$(written)"
    assert_equal "$(functions return)" "$(written)"
    refute grep -q '"f":"-' "$OUT"
    # A summary and a tree show the same calls.
    traced --force -c 'made_*:_ -> return' -- "$RUN"
    assert_success
    assert_equal "$(awk 'NR > 1 { print $1, $NF }' "$OUT" | sort)" "$(written | sed 's/^/1 /' | sort)"
    traced --force --as tree 'made_*:_ -> return' -- "$RUN"
    assert_success
    refute_output --partial "'-f"
}

@test "--limit and --rate count only selected functions" {
    traced --force --json --limit $CALLED 'made_*:_' -- "$RUN"
    assert_success
    assert_account $CALLED
    assert_equal "$(functions call)" "$(written)"
    traced --force --json --rate $CALLED 'made_*:_' -- "$RUN"
    assert_account $CALLED
}

@test "a compiler-generated function is shown if an expression names it" {
    traced --force --json 'made_*:_ -> return' "made_000:'-f1/1-lc\$^0/1-0-'/1 -> return" -- "$RUN"
    assert_success
    assert_equal "$(functions call)" "$({ written; echo "made_000:-f1/1-lc\$^0/1-0-/1"; echo "made_000:-f1/1-lc\$^0/1-0-/1"; } | sort)"
    assert_equal "$(functions return)" "$(functions call)"
    assert_account $((2 * CALLED + 4))
}

@test "an unselected function is disarmed once it is called often, and a rare one stays armed" {
    trace --force --json 'made_*:_ -> return'
    traced_is "'-f1/1-lc\$^0/1-0-', 1" local
    on_node "[$RUN || _ <- lists:seq(1, 100)], ok"
    until_true 30 traced_is "'-f1/1-lc\$^0/1-0-', 1" false
    traced_is "module_info, 0" local
    on_node "$RUN"
    trace_end
    assert_success
    assert_account $((101 * 2 * CALLED))
}

@test "no unselected function stays armed under silent or return_to" {
    trace --force 'ms made_*:_ [{'"'_'"', [], [{silent, false}]}]'
    traced_is "f1, 1" local
    traced_is "'-f1/1-lc\$^0/1-0-', 1" false
    trace_end
    trace --force 'made_*:_ -> return_to'
    traced_is "'-f1/1-lc\$^0/1-0-', 1" false
    trace_end
}

# f2 calls f3 in a fun, as its last call. The VM keeps a frame for the fun's result, which must not be visible.
@test "callers, stacks, results and the tree do not show unselected functions" {
    local what expression
    for expression in '-> return, caller' '-> return, stack'; do
        for what in made_000 'made_*'; do
            traced --force --json "$what:_ $expression" -- "$RUN"
            assert_success
            json_of call '"\(.f) \(.args) \(.caller) \(.stack)"' >"$BATS_TEST_TMPDIR/$what"
            json_of return '"\(.f) \(.value)"' >>"$BATS_TEST_TMPDIR/$what"
        done
        assert_equal "$(<"$BATS_TEST_TMPDIR/made_*")" "$(<"$BATS_TEST_TMPDIR/made_000")"
        assert_equal "$(grep -c '^f3 ' "$BATS_TEST_TMPDIR/made_*")" 2
    done
    for what in made_000 'made_*'; do
        traced --force --as tree "$what:_ -> return" -- "$RUN"
        grep -o '[├└│ ]*made_.*' "$OUT" | sed -E 's/ [0-9.]+[num]?s$//' >"$BATS_TEST_TMPDIR/$what"
    done
    assert_equal "$(<"$BATS_TEST_TMPDIR/made_*")" "$(<"$BATS_TEST_TMPDIR/made_000")"
}

rearmed() { [[ $(grep -c rearmed "$ERR") -ge $1 ]]; }

@test "reloaded modules are armed again with one call per module" {
    trace --force --json 'made_*:_ -> return'
    CALLS=$(calls)
    on_node "broker:reload(20)"
    until_true 30 rearmed 20
    assert_calls 40
    on_node "$RUN"
    trace_end
    assert_success
    assert_equal "$(functions return)" "$(written)"
    refute grep -q '"f":"-' "$OUT"
    live_snapshot
}

# 300 processes call 750 functions once each: more counter entries than a session may have (COUNT_ENTRIES).
@test "the last read of the counters ends the counting, reads everything and starts no counter again" {
    cp "$ETRACE_ROOT/tests/lib/broker.erl" "$BATS_TEST_TMPDIR"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/broker.erl"
    live_attempt <<'END'
-define(M, etrace_00000000_0).

begun() ->
    broker:load(50),
    Kept = {_, Session} = trace:session_create(mine, self(), []),
    Probe = #{id => 0, type => call, scope => local, select => [{{glob, <<"made_*">>}, any, 0, -1}], match_spec => {any, term_to_binary(true)}},
    Request = #{probes => [Probe], flags => [call], force => true},
    {ok, #{functions := 750}} = ?M:count_start(Session, [call_count, call_time], Request, ?M:count_new()),
    trace:process(Session, all, true, [call]),
    Made = [M || M <- erlang:loaded(), lists:prefix("made_", atom_to_list(M))],
    Functions = [{M, list_to_atom("f" ++ integer_to_list(I))} || M <- Made, I <- lists:seq(1, 15)],
    Self = self(),
    Processes = [spawn(fun() -> [M:F(1) || {M, F} <- Functions], Self ! {done, self()}, receive stop -> ok end end) || _ <- lists:seq(1, 300)],
    [receive {done, P} -> ok end || P <- Processes],
    #{begun := 0, total := {Rows, Calls, _, _}} = read_all(),
    {call_count, N} = trace:info(Session, {made_000, f15, 1}, call_count),
    [made_000:f15(1) || _ <- lists:seq(1, 10)],
    {call_count, N} = trace:info(Session, {made_000, f15, 1}, call_count),
    #{begun := 0, total := {Rows, Calls, _, _}} = read_all(),
    750 = Rows,
    trace:session_destroy(Kept),
    halt().

read_all() ->
    case ?M:count_read(function, calls, 10, true, {[], #{}}) of
        {ok, Answer = #{more := 0}} -> Answer;
        {ok, _} -> read_all()
    end.
END
    assert_success
}

# `progressed` makes the worker believe that its last report is old, so it reports with the first pattern that it sets.
@test "the worker reports progress and the number of functions" {
    live_attempt <<'END'
-define(M, etrace_00000000_0).

begun() ->
    Kept = {_, Session} = trace:session_create(mine, self(), []),
    Functions = [{lists, F, A} || {F, A} <- lists:module_info(exports), F =/= module_info],
    [put(Key, Value) || {Key, Value} <- [{owner, self()}, {progressed, erlang:monotonic_time(millisecond) - 10000}]],
    ok = ?M:set(Session, local, [{MFA, true} || MFA <- Functions], length(Functions)),
    Self = self(),
    All = length(Functions),
    receive {progress, Self, {0, All}} -> ok after 0 -> io:format("no progress~n"), halt(1) end,
    trace:session_destroy(Kept),
    halt().
END
    assert_success
}

# The node has one scheduler. A process of high priority, as the worker is, runs each step. Without pauses, a process of
# normal priority could not run at all. The test counts what that process did, and measures no time.
@test "the worker lets other processes run on a node with one scheduler" {
    cp "$ETRACE_ROOT/tests/lib/broker.erl" "$BATS_TEST_TMPDIR"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/broker.erl"
    live_attempt +S 1 <<'END'
-define(M, etrace_00000000_0).
-define(LEAST, 3).

begun() ->
    broker:load(100),
    [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 20000)],
    [Mine, Other] = [trace:session_create(Name, self(), []) || Name <- [mine, other]],
    {_, Session} = Mine,
    Selector = {{glob, <<"made_*">>}, any, 0, -1},
    Probe = #{id => 0, type => call, scope => local, select => [Selector], match_spec => {any, term_to_binary(true)}},
    Request = #{probes => [Probe], flags => [call], force => true, allow_empty => true},
    Functions = ?M:select(Selector, local),
    Map = maps:from_keys(Functions, true),
    Free = ?M:is_free(#{}),
    [meanwhile(What, Fun) || {What, Fun} <- [
        {gates, fun() -> ?M:gc_elsewhere(Session) end},
        {sessions, fun() -> ?M:sessions(Session) end},
        {plan, fun() -> [?M:plan(local, Map, #{}, true, Free) || _ <- lists:seq(1, 5)] end},
        {select, fun() -> Wanted = ?M:wanted(Request), [?M:chosen(Session, Request, Wanted, all) || _ <- lists:seq(1, 20)] end},
        {check, fun() -> [?M:sums(erlang:loaded()) || _ <- lists:seq(1, 100)] end},
        {count, fun() ->
            {ok, _} = ?M:count_start(Session, [call_count, call_time], Request, ?M:count_new()),
            [?M:count_read(function, calls, 10, true, {[], #{}}) || _ <- lists:seq(1, 5)] end}]],
    [trace:session_destroy(S) || S <- [Mine, Other]],
    halt().

meanwhile(What, Fun) ->
    Counter = counters:new(1, []),
    Other = spawn(fun() -> turn(Counter) end),
    process_flag(priority, high),
    Before = counters:get(Counter, 1),
    Fun(),
    Turns = counters:get(Counter, 1) - Before,
    process_flag(priority, normal),
    exit(Other, kill),
    Turns >= ?LEAST orelse begin io:format("~p: ~p turns~n", [What, Turns]), halt(1) end.

turn(Counter) ->
    counters:add(Counter, 1, 1),
    erlang:yield(),
    turn(Counter).
END
    assert_success
}
