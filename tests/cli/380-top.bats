#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace top`, which reads the VM's counters: the values equal those of trace:info, the session ends cleanly, and
# the table works on a terminal.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

COMMAND=top

setup_file() { live_share top; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown
}

otp() { node_eval "$NODE" 'list_to_integer(erlang:system_info(otp_release))'; }

# Reads the counters in etrace's session with trace:info and prints one line for each function: name
# [calls,microseconds,words].
by_hand() { # {FUNCTION,ARITY},...
    node_eval "$NODE" "begin [S] = [X || X = {etrace, _} <- trace:session_info(all)],
        Sum = fun(I, N) -> {_, L} = trace:info(S, N, I), L end,
        {lines, [begin M = {work, F, A}, T = Sum(call_time, M), W = Sum(call_memory, M), {_, C} = trace:info(S, M, call_count),
            {io_lib:format(\"~s/~b\", [F, A]), [C, lists:sum([N || {_, N, _, _} <- T]), lists:sum([Se * 1000000 + U || {_, _, Se, U} <- T]),
            lists:sum([X || {_, _, X} <- W])]} end || {F, A} <- [$1]]} end"
}

counts() { jq -r 'select(.type == "count") | "\(.f)/\(.a) [\(.calls_all),\(.calls),\(.time_us),\(.words)]"' "$OUT" | sort; }

calls_of() { jq -r "select(.type == \"count\" and .f == \"$1\") | .calls" "$OUT" | tail -n 1; }

# bats test_tags=each
@test "calls, time and memory equal those of trace:info" {
    trace work --json
    local said
    said=$(node_eval "$NODE" '{lines, lists:sort([{io_lib:format("~s/~b", [F, A]), N} || {{F, A}, N} <- maps:to_list(work:run(#{seed => 7, procs => 3, calls => 300}))])}')
    by_hand '{one,1},{two,2},{three,3},{local,3},{fac,1},{sum,2},{caught,2},{raise,2}' | sort >"$BATS_TEST_TMPDIR/hand"
    trace_end
    assert_success
    diff "$BATS_TEST_TMPDIR/hand" <(counts | grep -E '^(one/1|two/2|three/3|local/3|fac/1|sum/2|caught/2|raise/2) ')
    # The counters also equal the counts of the workload.
    diff <(echo "$said") <(jq -r 'select(.type == "count") | "\(.f)/\(.a) \(.calls)"' "$OUT" |
        grep -E '^(one/1|two/2|three/3|fac/1|sum/2|caught/2|raise/2) ' | sort)
    # The calls of the rows add up to the total.
    run jq -se '([.[] | select(.type == "count") | .calls] | add) == (.[-1] | .calls) and (.[-1] | .type == "counted" and .begun_anew == 0)' "$OUT"
    assert_success
}

# bats test_tags=each
@test "-P with a name counts the next process that gets the name" {
    on_node 'work:worker(named)'
    trace -P named work:one/1 --json --by process --interval 500ms
    on_node 'work:ask(named, fun() -> work:one(first) end), work:stop(named), work:worker(named)'
    local now
    now=$(node_eval "$NODE" 'whereis(named)')
    until_true 20 grep -qF "named restarted: now $now" "$ERR" || fail "no message about $now"
    on_node 'work:ask(named, fun() -> work:one(second), work:one(third) end), work:ask(w, fun() -> work:one(no) end)'
    trace_end
    assert_success
    assert_equal "$(jq -c "select(.type == \"count\" and .pid == \"$now\") | .calls" "$OUT" | tail -n 1)" 2
    on_node 'work:stop(named)'
}

# bats test_tags=each
@test "--by process has a row for each function and process, alive or dead" {
    on_node 'work:begun(lives, [1, 2, 3]), work:begun(dies, [1, 2])'
    live_snapshot
    trace work:one/1 --by process --sort calls --json
    on_node 'begin R = monitor(process, dies), [P ! go || P <- [lives, dies]], dies ! stop, receive {_, R, _, _, _} -> ok end,
        {_, _} = process_info(whereis(lives), message_queue_len), work:one(me) end'
    until_true 30 node_eval "$NODE" "$(printf '%s' 'begin [S] = [X || X = {etrace, _} <- trace:session_info(all)],
        {_, 6} = trace:info(S, {work, one, 1}, call_count) end')"
    trace_end
    assert_success
    run jq -r 'select(.type == "count") | "\(.calls) \(.name // "-") \(.alive)"' "$OUT"
    assert_line -n 0 '3 lives true'
    assert_line -n 1 --regexp '^2 .* false$'
    on_node 'begin P = whereis(lives), R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end end'
    live_snapshot
}

@test "-P counts the calls of the given processes and also prints the number of all calls" {
    trace work:one/1 -P w --json
    on_node 'work:ask(w, fun() -> work:one(1), work:one(2) end), work:one(3)'
    trace_end
    assert_success
    run jq -r 'select(.type == "count") | "\(.calls) \(.calls_all)"' "$OUT"
    assert_output '2 3'
}

# bats test_tags=each
@test "actions select the counters, and before OTP 29 top warns of their cost" {
    trace 'work:fac/1 -> count' --json
    on_node 'work:fac(9)'
    trace_end
    assert_success
    run jq -c 'select(.type == "count") | [.calls, .calls_all, has("time_us"), has("words")]' "$OUT"
    assert_output '[10,10,false,false]'
    refute [ "$(grep -c 'stops all schedulers' <<<"$talk")" -gt 0 ]
    trace 'work:fac/1 -> count, memory' --json
    on_node 'work:fac(9)'
    trace_end
    run jq -c 'select(.type == "count") | [.calls, has("time_us"), has("words")]' "$OUT"
    assert_output '[10,false,true]'
    if [[ $(otp) -lt 29 ]]; then
        assert_regex "$talk" 'stops all schedulers'
    else
        refute [ "$(grep -c 'stops all schedulers' <<<"$talk")" -gt 0 ]
    fi
}

@test "--for prints one sorted table, with a last line for the remaining functions" {
    trace work --for 3s --sort calls --rows 2
    on_node 'work:fac(99), work:sum(49, 0), work:one(1)'
    trace_wait
    assert_success
    assert_line -n 0 --regexp '^ +calls +own time +% +per call +words +per call +function$'
    assert_line -n 1 --regexp '^ +100 .* work:fac/1$'
    assert_line -n 2 --regexp '^ +50 .* work:sum/2$'
    assert_line -n 3 --regexp '^1 more: 1 call, .*, [0-9]+ words$'
    assert_equal "${#lines[@]}" 4
}

# bats test_tags=long
@test "--as csv and tsv have a column for each member of --json" {
    trace work --for 3s --sort calls --rows 2 --as csv
    on_node 'work:fac(99), work:sum(49, 0), work:one(1)'
    trace_wait
    assert_success
    assert_line -n 0 node,m,f,a,calls,time_us,words,calls_all,elapsed_us
    assert_line -n 1 --regexp "^$NODE,work,fac,1,100,[0-9]+,[0-9]+,100,[0-9]+$"
    assert_line -n 2 --regexp "^$NODE,work,sum,2,50,[0-9]+,[0-9]+,50,[0-9]+$"
    assert_equal "${#lines[@]}" 3
    trace work:one/1 --for 1s --by process --as tsv
    trace_wait
    assert_success
    assert_output $'node\tm\tf\ta\tpid\tname\talive\tcalls\ttime_us\twords\telapsed_us'
    run -2 --separate-stderr "$ETRACE_BIN" top -n "$NODE" --json --as csv work:one/1
    assert_equal "$stderr" 'etrace: --json and --as exclude each other'
}

@test "top prints a table per interval without a terminal, and the last one at the end" {
    trace work:one/1 --interval 1s
    until_true 30 eval '[[ $(grep -c "own time.*function" "$OUT") -ge 2 ]]'
    on_node 'work:loop(7)'
    trace_end
    assert_success
    assert_regex "$output" ' 7 +[0-9.]+[nmu]?s .* work:one/1$'
}

@test "top ends with one message if its output fails" {
    # OTP 27 has a warning about the times, too.
    run bash -c '"$ETRACE_BIN" top -q -n "$0" work:one/1 --interval 200ms 2>&1 >/dev/full | grep -v ": warning: "; exit "${PIPESTATUS[0]}"' "$NODE"
    assert_failure 1
    assert_output 'etrace: cannot write standard output: No space left on device'
}

# bats test_tags=long
@test "top counts reloaded modules and modules that are loaded later" {
    local dir
    dir=$(node_dir "$NODE")
    printf '%s\n' '-module(fresh).' '-export([f/1]).' 'f(X) -> X.' >"$dir/fresh.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/fresh.erl"
    trace 'fres*:f/1' work:one/1 --allow-empty --interval 1s --json
    on_node "code:add_path(\"$dir\"), code:load_file(fresh)"
    until_true 30 node_eval "$NODE" 'begin [S] = [X || X = {etrace, _} <- trace:session_info(all)], {_, true} = {x, is_integer(element(2, trace:info(S, {fresh, f, 1}, call_count)))} end'
    on_node 'fresh:f(1), fresh:f(2)'
    until_true 30 eval '[[ $(calls_of f) == 2 ]]'
    on_node 'code:purge(fresh), code:load_file(fresh)'
    until_true 30 node_eval "$NODE" 'begin [S] = [X || X = {etrace, _} <- trace:session_info(all)], {_, true} = {x, is_integer(element(2, trace:info(S, {fresh, f, 1}, call_count)))} end'
    on_node 'fresh:f(3)'
    trace_end
    assert_success
    assert_equal "$(calls_of f)" 3
    # Reloading the module discarded the calls since the last read.
    assert_equal "$(jq -s '[.[] | select(.type == "counted")] | last | .loaded_anew' "$OUT")" 1
    assert_regex "$talk" 'modules were reloaded or removed 1 time;'
    on_node "code:purge(fresh), code:delete(fresh), code:purge(fresh), code:del_path(\"$dir\")"
    live_snapshot
}

# On the node, the companion's local functions have the name owner. The specification makes those with five arguments
# take milliseconds, because it compares two long lists. One of them reads one function (count_item), so a read does not
# finish all functions. Another begins a read (count_read). The test suspends the worker at the second request for the
# last figures, which proves that the client has the answer to the first.
slow_worker() { # THEN
    on_node "Me = self(), spawn(fun() ->
        process_flag(priority, max),
        [{W, M}] = [{P, M} || P <- processes(), {_, {M, worker, 1}} <- [process_info(P, initial_call)]],
        Mine = trace:session_create(mine, self(), []),
        Long = {'=/=', {const, lists:seq(1, 1000000)}, {const, lists:seq(1, 1000000)}},
        true = 0 < trace:function(Mine, {M, owner, 5}, [{[function, '_', '_', true, '_'], [], []}, {'_', [Long], []}], [local]),
        1 = trace:process(Mine, W, true, [call]),
        Me ! slow,
        [receive {trace, W, call, {M, owner, [function | _]}} -> ok end || _ <- [first, second]],
        erlang:suspend_process(W),
        $1 end), receive slow -> ok end"
}

# bats test_tags=long
@test "top reports the functions whose last figures it could not read" {
    local behaviour
    # The node ends; with --all, also a node that does not answer for half a minute.
    for behaviour in 'halt()' ${ETRACE_ALL:+'receive stop -> ok end'}; do
        live_own late
        on_node 'broker:load(100)'
        trace 'made_*:_' --interval 1m --json
        on_node '[M:f1(1) || M <- erlang:loaded(), lists:prefix("made_", atom_to_list(M))]'
        slow_worker "$behaviour"
        trace_end
        assert_regex "$talk" 'the last figures of [1-9][0-9]* functions could not be read; those shown are older'
        assert_equal "$(jq -s '[.[] | select(.type == "counted")] | last | .functions' "$OUT")" 1500
        nodes_stop
    done
}

# bats test_tags=long
@test "top restarts the counters if they cover too many processes" {
    trace work --json --interval 1s
    on_node 'work:burst(60000, 1)'
    until_true 30 eval '[[ $(jq -s "[.[] | select(.type == \"counted\")] | last | .begun_anew // 0" "$OUT") -ge 1 ]]'
    on_node 'work:one(1)'
    trace_end
    assert_success
    assert_regex "$talk" 'counting restarted [0-9]+ times? because'
    run jq -se '[.[] | select(.type == "count" and .f == "one")] | last | .calls <= 60001 and .calls > 0' "$OUT"
    assert_success
}

# bats test_tags=long
@test "two nodes share one table" {
    local first=$NODE second
    node_start top_two
    second=$NODE
    NODE=$first
    trace -n "$second" work:one/1 --json
    until_true 30 eval '[[ $(grep -c "Ctrl-C stops" "$ERR") -eq 2 ]]'
    node_eval "$second" 'work:loop(5)' >/dev/null
    on_node 'work:loop(3)'
    trace_end
    assert_success
    run jq -r 'select(.type == "count") | "\(.node) \(.calls)"' "$OUT"
    assert_line "$first 3"
    assert_line "$second 5"
    trace -n "$second" work:one/1 --interval 1s
    until_true 30 eval '[[ $(grep -c "Ctrl-C stops" "$ERR") -eq 2 ]]'
    on_node 'work:loop(3)'
    trace_end
    node_stop "$second"
    assert_line --regexp '^ +calls .* node +function$'
    assert_line --regexp "^ +3 .* $first +work:one/1\$"
}

@test "a message about a node that went down appears when the table on the terminal is closed" {
    local second
    node_start top_gone && second=$NODE
    NODE=$LIVE_NODE
    terminal 120 24 "$ETRACE_BIN top -n $NODE -n $second work:one/1; echo the end: \$?; sleep 100"
    await '^etrace top · 2 nodes'
    node_stop "$second"
    await '^etrace top · 2 nodes .* · 1 error'
    keys q
    await "^etrace: $second: the node closed the connection"
    await 'the end: 1'
    terminal_end
}

@test "top counts on the other nodes when a node cannot be attached, and the status is 3" {
    run --separate-stderr timeout 60 "$ETRACE_BIN" top -n nobody@127.0.0.1 -n "$NODE" --for 100ms --json work:one/1
    assert_failure 3
    assert_equal "$(jq -r 'select(.type == "counted") | .node' <<<"$output")" "$NODE"
    assert_regex "$stderr" 'nobody@127.0.0.1'
    run --separate-stderr timeout 60 "$ETRACE_BIN" top -n nobody@127.0.0.1 --for 100ms work:one/1
    assert_failure 3
    assert_output ''
}

@test "top reports a node that goes down and continues with the others" {
    local first=$NODE second
    node_start top_gone
    second=$NODE
    NODE=$first
    trace -n "$second" work:one/1 --interval 1s --json
    until_true 30 eval '[[ $(grep -c "Ctrl-C stops" "$ERR") -eq 2 ]]'
    node_stop "$second"
    until_true 30 grep -q "$second.*closed\|$second.*gone\|$second.*down\|$second.*connection" "$ERR"
    on_node 'work:loop(3)'
    trace_end
    assert_failure 1
    run jq -r --arg node "$first" 'select(.type == "count" and .node == $node) | .calls' "$OUT"
    assert_line 3
}

# bats test_tags=each
@test "top counts with the fallback tracer" {
    trace --fallback work:one/1 --json
    on_node 'work:loop(3)'
    trace_end
    assert_success
    assert_equal "$(calls_of one)" 3
}

@test "top refuses unknown functions and expressions that it cannot count" {
    run etrace_top nosuchmodule
    assert_failure 5
    assert_output --partial 'there is no module nosuchmodule'
    run etrace_top 'lists:zz*'
    assert_failure 5
    run etrace_top 'zz*:*'
    assert_failure 5
    assert_output --partial 'zz* matches no function on the node'
    run etrace_top 'lists:seq(_, N) when N > 3'
    assert_failure 2
    run etrace_top 'send(_, _)'
    assert_failure 2
    run etrace_top 'lists:seq/2 -> return'
    assert_failure 2
    run etrace_top lists -P nosuchprocess
    assert_failure 5
    run etrace_top 'lists:seq(_, _)' --dry-run
    assert_success
    assert_output --partial '1 function'
    run "$ETRACE_BIN" top
    assert_failure 2
}

etrace_top() { "$ETRACE_BIN" top -n "$NODE" "$@"; }

@test "a kill of top leaves nothing on the node" {
    trace work
    on_node 'work:flood(2)'
    kill -KILL "$TRACER"
    wait "$TRACER" || true
    # teardown() checks that nothing is left.
}

# bats test_tags=long
@test "top says what it costs to count the times of very many functions" {
    run --separate-stderr "$ETRACE_BIN" top --for 10ms -n "$NODE" 'app(kernel)' 'app(stdlib)'
    assert_success
    assert_regex "$stderr" 'etrace: times and words of [0-9]{4,} functions may take half of the node.*--overhead'
    for few in work 'app(kernel) | app(stdlib) -> count'; do
        run --separate-stderr "$ETRACE_BIN" top --for 10ms -n "$NODE" "$few"
        assert_success
        refute_regex "$stderr" 'may take half'
    done
}

@test "top ends with a message if somebody destroys its session" {
    trace work --interval 1s
    on_node '[trace:session_destroy(S) || S = {etrace, _} <- trace:session_info(all)]'
    trace_wait
    assert_failure 1
    assert_regex "$talk" 'somebody on the node has destroyed the trace session'
}

# ---- on a terminal

# Starts a shell in a terminal, and saves the settings of the terminal.
shell() { # COLUMNS ROWS
    terminal "$1" "$2" "PS1='ready> ' exec bash --norc --noprofile"
    await 'ready>'
    entered "stty -a >$BATS_TEST_TMPDIR/before; echo sa''ved"
    await saved
}

# Asserts that the terminal has the saved settings when the shell has the prompt again.
restored() {
    await '^ready> *$'
    entered "stty -a >$BATS_TEST_TMPDIR/after; echo do''ne"
    await '^done'
    diff "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
}

@test "the live table fits a new size of the terminal at once" {
    shell 100 16
    entered "clear; $ETRACE_BIN top -i 1h -n $NODE work"
    await '^q quit'
    resized 100 30
    until_true 30 eval '[[ $(screen | sed -n 30p) == "q quit"* ]]'
    keys q
}

@test "the live table sorts, resizes, pauses and restarts, and top restores the terminal" {
    shell 100 16
    entered "clear; $ETRACE_BIN top -n $NODE work"
    await '^etrace top .*functions'
    on_node 'work:fac(99), work:one(1)'
    await ' 100 .* work:fac/1$'
    await '^q quit'
    keys t
    await 'process +function'
    keys t
    await 'per call +function'
    # Sort by name: two columns to the left of time, which is the last column.
    keys Left
    keys Left
    until_true 30 eval '[[ $(screen | grep -E "work:(fac|one)/1" | head -n 1) == *fac* ]]'
    # On a narrow terminal columns disappear before the function's name is cut.
    resized 50 12
    await ' 100 .* work:fac/1$'
    await_not 'words'
    resized 100 16
    await 'words'
    keys p
    await 'etrace top .* · paused'
    on_node 'work:sum(5, 0)'
    keys p
    await ' 6 .* work:sum/2$'
    keys h
    await 'restart from zero'
    keys h
    await ' 6 .* work:sum/2$'
    keys r
    # The table is empty only after the counting has begun again.
    await_not 'work:fac/1'
    on_node 'work:two(1, 2)'
    await ' 1 .* work:two/2$'
    keys q
    restored
    # The last table stays on the screen after etrace has ended.
    terminal_shows ' 1 .* work:two/2$'
}

@test "the live table filters, scrolls, and shows all figures of a row with the commands that show more" {
    shell 100 20
    entered "clear; $ETRACE_BIN top -n $NODE work"
    await '^q quit'
    on_node 'work:fac(99), work:sum(5, 0), work:two(1, 2)'
    await ' 100 .* work:fac/1$'
    keys / S U M Enter
    await '^etrace top .*/SUM$'
    await_not 'work:fac/1'
    await ' 6 .* work:sum/2$'
    keys Enter
    await '^calls +6$'
    await '^words +[0-9]+$'
    await '^function +work:sum/2$'
    await "^etrace -n $NODE -l 10 'work:sum/2 -> return'"
    await "^etrace -n $NODE --for 10s 'work:sum/2 by caller: count'"
    keys Escape
    await ' 6 .* work:sum/2$'
    keys Escape
    await ' 100 .* work:fac/1$'
    keys q
    restored
    terminal_shows ' 100 .* work:fac/1$'
}

@test "top restores the terminal after Ctrl-C, TERM and HUP" {
    local signal
    shell 80 20
    for signal in C-c TERM HUP; do
        entered "clear; $ETRACE_BIN top -n $NODE work"
        await '^q quit'
        if [[ $signal == C-* ]]; then
            keys "$signal"
        else
            kill "-$signal" "$(pgrep -P "$(terminal_pid)")"
        fi
        restored
        entered clear
    done
}

# bats test_tags=long
@test "another process that removes the flags of the counted processes is reported once" {
    local who
    for who in w all; do
        trace work:one/1 -P $who --interval 1s --json
        on_node "[S] = [S || {etrace, _} = S <- trace:session_info(all)],
            trace:process(S, $([[ $who == all ]] && echo all || echo "whereis($who)"), false, [call])"
        warned() { grep -q untraced "$ERR"; }
        until_true 30 warned
        trace_end
        assert_success
        assert_equal "$(grep -c 'somebody on the node has untraced processes' "$ERR")" 1
    done
}
