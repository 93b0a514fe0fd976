#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests calls on a live node: which calls the expressions select, and what etrace shows of them and of their results.

load ../lib/assert
load ../lib/live
load ../lib/terminal
bats_require_minimum_version 1.5.0

setup_file() { live_share calls; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown
}

# Prints the calls in the JSON output as M:F(ARGS).
calls() { json_of call '"\(.m):\(.f)(\(.args | join(",")))"'; }

# bats test_tags=each
@test "the line of a call has time, process, name, function and arguments" {
    traced 'work:one/1' -- 'work:ask(w, fun() -> work:one({a, "text", <<"bin">>, 1.5, #{k => []}}) end)'
    assert_success
    assert_equal "${#lines[@]}" 1
    local name='\(w\)'
    [[ ! ${ETRACE_SLOW:-} ]] || name="($name)?" # the node may find the name too late for the first event
    assert_line -n 0 --regexp '^[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\.[0-9]{6} <0\.[0-9]+\.0>'"$name"' call work:one\(\{a,"text",<<"bin">>,1\.5,#\{k => \[\]\}\}\)$'
    run head -n 1 "$ERR"
    assert_output --regexp "^etrace: $NODE · OTP ${ETRACE_OTP}[0-9.]* · 1 function · [0-9]+ processes · Ctrl-C stops\$"
    assert_regex "$(tail -n 1 "$ERR")" '^etrace: 1 event in [0-9.]+ m?s$'
}

# bats test_tags=each
@test "literals, variables and guards select calls on the node" {
    # etrace refuses a pattern with an atom that the node does not have, so create these atoms.
    on_node '{a, b, x, y}'
    traced --json 'work:two(a, _)' 'work:one(N) when N > 8, N rem 2 =:= 0' 'work:pair(X, X)' 'work:three(_, [1 | T], {x, Y})' -- \
        'work:two(a, 1), work:two(b, 1), work:loop(12), work:pair(1, 1), work:pair(1, 1.0), work:three(0, [1, 2], {x, 3}), work:three(0, [2], {x, 3}), work:three(0, [1], {y, 3})'
    assert_success
    assert_equal "$(calls)" 'work:two(a,1)
work:one(12)
work:one(10)
work:pair(1,1)
work:three(0,[1,2],{x,3})'
    # The node rejected the other calls, so the summary does not count them.
    assert_account 5
}

@test "the first clause that matches decides, and drop hides the call" {
    traced --json 'work:one(3) -> drop; (N) when N < 5' -- 'work:loop(6)'
    assert_success
    assert_equal "$(calls)" 'work:one(4)
work:one(2)
work:one(1)'
}

@test "a selector takes one arity, all arities, all functions, or only global calls" {
    traced --json 'work:two' -- 'work:two(1, 2)'
    assert_equal "$(calls)" 'work:two(1,2)'
    traced --json 'work:_' -- 'work:three(1, 2, 3)'
    assert_equal "$(calls | grep -v control)" 'work:three(1,2,3)
work:local(1,2,3)'
    # fac/1 calls itself locally.
    traced --json 'global work:fac/1' -- 'work:fac(3)'
    assert_equal "$(calls)" 'work:fac(3)'
    run "$ETRACE_BIN" -n "$NODE" 'global work:local/3'
    assert_failure 5
    assert_output --partial 'work:local/3 is not exported'
}

# bats test_tags=each
@test "return shows the result and the duration" {
    traced 'work:slow/1 -> return' -- 'work:ask(w, fun() -> work:slow(30) end)'
    assert_success
    assert_line -n 0 --regexp ' <0\.[0-9]+\.0>\(w\) call work:slow\(30\)$'
    assert_line -n 1 --regexp ' <0\.[0-9]+\.0>\(w\) return work:slow/1 = 30 (3[0-9]|[4-9][0-9]|[1-9][0-9]{2})(\.[0-9]+)?ms$'
    assert_equal "${#lines[@]}" 2
}

# bats test_tags=each
@test "an exception has its class and reason in every function that it leaves" {
    traced --json 'work:raise/2 -> return' 'work:deep/1 -> return' -- \
        'work:ask(w, fun() -> work:caught(error, oops), work:caught(exit, {a, b}), work:caught(throw, "x"), work:outer(2) end)'
    assert_success
    run json_of exception '"\(.f) \(.args) \(.class) \(.reason) \(.dur_us > 0)"'
    assert_output 'raise ["error","oops"] error oops true
raise ["exit","{a,b}"] exit {a,b} true
raise ["throw","\"x\""] throw "x" true
deep ["0"] error bottom true
deep ["1"] error bottom true
deep ["2"] error bottom true'
    assert_account 12
    traced 'work:raise/2 -> return' -- 'work:caught(error, {badmatch, 1})'
    assert_line -n 1 --regexp ' exception work:raise/2 error:\{badmatch,1\} [0-9.]+(ns|us|ms)$'
}

# bats test_tags=each
@test "each result of a recursion belongs to its own call, and durations are nested" {
    traced --json 'work:fac/1 -> return' 'work:fib/1 -> return' -- 'work:ask(w, fun() -> {work:fac(6), work:fib(7)} end)'
    assert_success
    run json_of return 'select(.f == "fac") | "\(.args[0])! = \(.value)"'
    assert_output '0! = 1
1! = 1
2! = 2
3! = 6
4! = 24
5! = 120
6! = 720'
    # 41 calls, and each result is the right one for its argument.
    run json_of return 'select(.f == "fib") | "\(.args[0])=\(.value)"'
    assert_equal "$(sort -u <<<"$output" | tr '\n' ' ')" '0=0 1=1 2=1 3=2 4=3 5=5 6=8 7=13 '
    assert_equal "$(wc -l <<<"$output")" 41
    # The time of a result is the time of its call plus the duration. Neither one child nor all children of a call
    # together last longer than the call.
    jq -es '[.[] | select(.type == "return" and .f == "fac") | .dur_us] | . == sort' "$OUT"
    jq -es '
        reduce (.[] | select(.f == "fib")) as $e ({open: [], ok: true};
            if $e.type == "call" then .open += [{at: $e.mono_ns, arg: $e.args[0], inner: 0}]
            else .open[-1] as $call | .open |= .[:-1]
                | .ok = (.ok and $call.arg == $e.args[0] and $call.inner <= $e.dur_us + 0.001
                    and (($e.mono_ns - $call.at) / 1000 - $e.dur_us | fabs) < 1)
                | if .open | length > 0 then .open[-1].inner += $e.dur_us else . end
            end)
        | .ok and .open == []' "$OUT"
}

# bats test_tags=each
@test "every tail call has a result when the last one returns" {
    traced --json 'work:sum/2 -> return' 'work:even/1 -> return' 'work:odd/1 -> return' -- \
        'work:ask(w, fun() -> {work:sum(4, 0), work:even(4)} end)'
    assert_success
    run json_of return '"\(.f)(\(.args[0])) \(.value)"'
    assert_output 'sum(0) 10
sum(1) 10
sum(2) 10
sum(3) 10
sum(4) 10
even(0) true
odd(1) true
even(2) true
odd(3) true
even(4) true'
    assert_account 20
}

@test "a call that does not return is counted as incomplete" {
    traced --json 'work:slow/1 -> return' -- 'work:tell(w, fun() -> work:slow(1500) end), work:within(w, slow)'
    assert_success
    assert_equal "$(json_of summary .incomplete)" 1
    assert_equal "$(json_of call .f)" slow
    # Wait until w has finished the slow call.
    on_node 'work:ask(w, fun() -> ok end)'
}

# bats test_tags=each
@test "caller shows the calling function with file and line" {
    traced --json 'work:raise/2 -> caller' -- 'work:caught(error, oops)'
    assert_success
    run json_of call '.caller | "\(.m):\(.f)/\(.a) \(.file | sub(".*/"; "")) \(.line > 0)"'
    assert_output 'work:caught/2 work.erl true'
    traced 'work:raise/2 -> return, caller' -- 'work:caught(error, oops)'
    assert_line -n 0 --regexp ' call work:raise\(error, oops\) by work:caught/2 [^ ]*work\.erl:[0-9]+$'
    assert_line -n 1 --regexp ' exception work:raise/2 error:oops '
}

@test "stack, args, arity and msg determine what a call shows" {
    traced --json 'work:raise/2 -> stack(2)' 'work:two/2 -> args(2)' 'work:one/1 -> arity' 'work:pair(X, Y) -> msg({Y, X})' -- \
        'work:caught(error, oops), work:two(1, 2), work:one(1), work:pair(1, 2)'
    assert_success
    assert_equal "$(json_of call 'select(.f == "raise") | [.stack[].f] | join(",")')" caught,do_apply
    assert_equal "$(json_of call 'select(.f == "pair") | .message')" '{2,1}'
    assert_equal "$(json_of call 'select(.f == "one") | "\(.a) \(.args)"')" '1 null'
    assert_equal "$(json_of call 'select(.f == "two") | .args | tojson')" '[null,"2"]'
}

@test "each of several probes has its own actions" {
    traced 'work:one(1) -> return' 'work:two/2' 'work:fac(N) when N =:= 2 -> caller' -- \
        'work:ask(w, fun() -> work:one(1), work:one(2), work:two(3, 4), work:fac(3) end)'
    assert_success
    assert_equal "${#lines[@]}" 4
    assert_line -n 0 --regexp ' call work:one\(1\)$'
    assert_line -n 1 --regexp ' return work:one/1 = 1 '
    assert_line -n 2 --regexp ' call work:two\(3, 4\)$'
    assert_line -n 3 --regexp ' call work:fac\(2\) by work:fac/1 '
}

@test "two probes of one function show a call once, with a result only for the probe that has return" {
    traced --json 'work:one(1) -> return' 'work:one(N) when N < 3' -- 'work:loop(4)'
    assert_success
    assert_equal "$(jq -r 'select(.m) | "\(.type) \(.args[0])"' "$OUT" | tr '\n' ' ')" 'call 2 call 1 return 1 '
}

@test "where, --where and --grep hide events, and the summary counts them as filtered" {
    traced --json 'work:slow(_) -> return where dur > 15ms' -- '[work:slow(Ms) || Ms <- [1, 30, 2, 40, 1, 2, 1, 2]]'
    assert_success
    # On a busy machine a short call may pass the filter too, so check the two long calls only.
    assert_equal "$(jq -r 'select(.m and .args[0] >= "3") | "\(.type) \(.args[0])"' "$OUT" | tr '\n' ' ')" 'call 30 return 30 call 40 return 40 '
    assert_equal "$(json_of return 'select(.dur_us <= 15000)')" ''
    assert_equal "$(json_of call .args[0])" "$(json_of return .args[0])"
    assert [ "$(json_of summary .filtered)" -ge 2 ]
    assert_account 16
    traced --json -e 'args[1] > 3' 'work:one/1' -- 'work:loop(5)'
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '5 4 '
    assert_account 5
    traced --json -g 'one\([24]\)' 'work:one/1' -- 'work:loop(5)'
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '4 2 '
    assert_account 5
    traced --json -v -g 'one\([24]\)' 'work:one/1' -- 'work:loop(5)'
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '5 3 1 '
    assert_account 5
}

@test "--let binds a name to a term with any text" {
    traced --json --let 'X={a, "b)"}' 'work:one(^X)' -- 'work:one({a, "b)"}), work:one(x)'
    assert_success
    assert_equal "$(json_of call '.args[0]')" '{a,"b)"}'
}

@test "etrace accepts and prints Elixir functions in Elixir syntax" {
    on_node '{ok, M, B} = compile:forms([{attribute, 1, module, '\''Elixir.My.App'\''}, {attribute, 1, export, [{get, 2}]}, {function, 1, get, 2, [{clause, 1, [{var, 1, '\''A'\''}, {var, 1, '\''B'\''}], [], [{tuple, 1, [{var, 1, '\''A'\''}, {var, 1, '\''B'\''}]}]}]}]), code:load_binary(M, "", B)'
    live_snapshot
    traced --json 'My.App.get(_, id) when id in [1, 2] -> return' -- "'Elixir.My.App':get(k, 1), 'Elixir.My.App':get(k, 3)"
    assert_success
    assert_equal "$(json_of call '"\(.m) \(.f) \(.a)"')" 'Elixir.My.App get 2'
    assert_account 2
    traced 'My.App.get/2 -> return' -- "'Elixir.My.App':get(k, 1)"
    assert_line -n 0 --partial ' call My.App.get('
    assert_line -n 1 --partial ' return My.App.get/2 = '
    on_node "code:delete('Elixir.My.App'), code:purge('Elixir.My.App')"
    live_snapshot
}

called_again() {
    trace --for 300ms 'work:one(N) when length(N) > 18' 'work:two(_, 0)'
    trace_wait
    [[ $talk =~ "but no call matched"$'\n'"etrace: such as work:one([{password,'*REDACTED*'},17]) by <"[0-9.]+'>(again)'$ ]]
}

@test "a trace without events says whether the functions were called" {
    traced 'work:one(N) when N > 2' -- 'work:one(1), work:one(2)'
    assert_success
    assert_regex "$talk" 'etrace: 0 events in [^·]*$'
    assert_regex "$talk" 'etrace: the traced functions were called 2 times, but no call matched$'
    traced 'work:one({a, _}) -> return' 'work:two(_, b)' -- 'work:loop(1500)'
    assert_regex "$talk" 'etrace: the traced functions were called at least 1000 times, but no call matched$'
    for expr in 'work:one(N) when N > 2' 'work:one/1 -> return'; do
        traced "$expr" -- 'work:two(1, 2)'
        assert_regex "$talk" 'etrace: no traced function was called$'
        traced -P w "$expr" -- 'work:one(7)'
        assert_regex "$talk" 'etrace: no traced function was called by the selected processes$'
    done
    traced -c 'work:one(N) when N > 2' -- 'work:one(1)'
    assert_regex "$talk" 'etrace: the traced functions were called 1 time, but no call matched$'
    # If calls go on, the message has one of them, and no secret.
    on_node 'begin register(again, spawn(fun() -> (fun F() -> work:one([{password, secret}, 17]), timer:sleep(5), F() end)() end)), ok end'
    until_true 20 called_again || fail "$talk"
    on_node 'begin R = monitor(process, again), exit(whereis(again), kill), receive {_, R, _, _, _} -> ok end end'
    # etrace says nothing if there is an event, or if it does not know.
    for how in 'work:one(N)' '@exit' 'send(_, nothing)' '--fallback work:one(N)when(N>2)'; do
        # shellcheck disable=SC2086 # options and an expression without spaces
        traced $how -- 'work:one(1)'
        refute_regex "$talk" 'called'
    done
    # The recording of such a trace has the same views.
    traced --json 'work:one(N) when N > 2' -- 'work:one(1)'
    assert_equal "$(json_of notice .tag)" ''
}

# bats test_tags=long
@test "on a terminal etrace says after ten seconds that there is no event, and what was rejected" {
    terminal 90 20 "$ETRACE_BIN -n $NODE -e 'args[1] > 100' work:one/1; exec sleep 100"
    await 'Ctrl-C stops'
    on_node 'work:one(7)'
    await "^etrace: 'args\\[1\\] > 100' rejected 1 call" 60
    await '^etrace: no event yet; Ctrl-C ends the trace and says what matched nothing$'
    on_node 'work:one(101)'
    await 'call work:one\(101\)'
    keys C-c
    await '^(\^C)?etrace: 1 event in .* · 1 filtered$'
}

# bats test_tags=each
@test "a trace names its expressions that had no event" {
    silent() { assert_regex "$talk"$'\n' "etrace: $1"$'\n'; }
    traced work:one/1 work:fac/1 'work:two(_, 7)' 'send(_, {71, _})' -- 'work:one(1), work:two(1, 2)'
    assert_success
    silent "no call matched 'work:fac/1'"
    silent "no call matched 'work:two\\(_, 7\\)'"
    silent "no message matched 'send\\(_, \\{71, _})'"
    refute_regex "$talk" "work:one"
    # An expression whose events are filtered had events.
    traced 'work:one(N) where N > 9' 'work:two/2' -- 'work:one(1)'
    silent "'N > 9' rejected 1 call: the largest was 1"
    silent "no call matched 'work:two/2'"
    refute_regex "$talk" "matched 'work:one"
    # There was no event at all.
    traced 'send(_, {72, _})' '@link' work:one/1 -P w -- 'work:one(1)'
    silent "no message of the selected processes matched 'send\\(_, \\{72, _})'"
    silent "no event of the selected processes matched '@link'"
    silent "no call of the selected processes matched 'work:one/1'"
    traced 'work:two/2 inside work:one/1' -- 'work:two(1, 2)'
    silent "the root 'work:one/1' was not called"
    refute_regex "$talk" "matched"
    traced 'work:two/2 inside (work:one(N) when N > 2)' -- 'work:one(1)'
    silent "no call matched the root 'work:one\\(N\\) when N > 2'"
    # etrace names nothing that it does not know: the node filters, or counts.
    for how in '-e dur>1min' '-c' '--fallback'; do
        # shellcheck disable=SC2086 # options without spaces
        traced $how 'work:one/1 -> return' 'work:two/2 -> return' -- 'work:one(2), work:one(2)' # the first call is an example
        refute_regex "$talk" ' matched'
    done
}

# bats test_tags=each
@test "a trace whose events are all filtered says which condition rejected them, and the nearest value" {
    local took='[0-9.]+[nmu]?s$' long='([4-9][0-9]|[1-9][0-9]{2})(\.[0-9]+)?ms$|[0-9.]+s$' # 40ms or more
    says() { assert_regex "$talk" "etrace: $1"; }
    # The node filters, except for the tree.
    for how in '' '-c' '--by mfa' '--as tree'; do
        # shellcheck disable=SC2086 # options without spaces
        traced $how 'work:slow/1 -> return where dur > 1min' -- 'work:slow(1), work:slow(40)'
        assert_success
        says "'dur > 1min' rejected ([0-9]+ )?results: the longest took ($long)"
        # shellcheck disable=SC2086
        traced $how -e '1ns > dur' 'work:one/1 -> return' -- 'work:loop(5)'
        says "'1ns > dur' rejected ([0-9]+ )?results: the shortest took $took"
    done
    # The node sends an example.
    traced -e 'ret =:= 7' 'work:one/1 -> return' -- 'work:loop(5)'
    says "'ret =:= 7' rejected results, such as <[0-9.]+>.* return work:one/1 = 5"
    assert_regex "$talk" '0 events.* · 10 filtered'
    assert_equal "$out" ''
    # The nearest value is unknown, because the node has rejected further results.
    traced -e 'ret > 100' 'work:one/1 -> return' -- 'work:one(5), work:one(50)'
    says "'ret > 100' rejected results, such as <[0-9.]+>.* return work:one/1 = 5 "
    traced -e 'class == error and dur > 1ns' 'work:one/1 -> return' -- 'work:loop(5)'
    says "'class == error' rejected results, such as <[0-9.]+>.* return work:one/1 = 5"
    traced 'work:one/1 inside (work:slow/1 where dur > 1min)' -- 'work:slow(40)'
    says "'dur > 1min' rejected results: the longest took ($long)"
    # etrace filters.
    traced 'work:one(N) where N > 7 and N < 9' -- 'work:loop(5)'
    says "'N > 7' rejected 5 calls: the largest was 5$"
    traced 'work:one(N) where N < 0' -- 'work:one(4), work:one(3.5), work:one(a)'
    says "'N < 0' rejected 3 calls: the smallest was 3.5$"
    traced -e 'size > 1MB' 'send(_, {71, _})' -- 'self() ! {71, 1}'
    says "'size > 1MB' rejected 1 message: the largest was [0-9]+ bytes$"
    traced -e 'args[1] =:= 7 and size > 0' work:one/1 -- 'work:one([{password, secret}]), work:one(8)'
    says "'args\\[1] =:= 7' rejected 2 calls, such as <[0-9.]+>.* call work:one\\(\\[\\{password,'\\*REDACTED\\*'\\}]\\)$"
    traced -g nobody work:one/1 -- 'work:loop(2)'
    says "--grep 'nobody' rejected 2 calls, such as <[0-9.]+>.* call work:one\\(2\\)$"
    traced --as tree 'work:one/1 -> return where ret = {error, _}' -- 'work:one(x)'
    says "'ret = \\{error, _}' rejected 1 result, such as <[0-9.]+>.* return work:one/1 = x"
    # Each probe has its conditions.
    traced 'work:one(N) where N > 9' 'work:one(M) where M > 8' -- 'work:one(1)'
    says "'N > 9' rejected 1 call: the largest was 1"$'\n'
    says "'M > 8' rejected 1 call: the largest was 1$"
    # etrace says nothing if there is an event, or if it does not know.
    for how in '-e args[1]>1' '-e dur>0ns' '-c -e ret==x'; do
        # shellcheck disable=SC2086
        traced $how 'work:one/1 -> return' -- 'work:one(2)'
        refute_regex "$talk" 'rejected'
    done
    traced -o "$BATS_TEST_TMPDIR/x.etr" 'work:one/1' -- 'work:loop(3)'
    run -0 --separate-stderr "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" -e 'args[1] > 3'
    assert_equal "$stderr" "etrace: 'args[1] > 3' rejected 3 calls: the largest was 3"
}

# bats test_tags=long
@test "text and numbers look the same whatever the flag +pc of the node is" {
    assert_equal "$(node_eval "$NODE" 'io:printable_range()')" latin1
    traced work:one/1 -- 'work:one(<<195,169>>), work:one([1078]), work:one([233]), work:one(<<255,0>>)'
    assert_success
    assert_line -n 0 --partial 'work:one(<<"é"/utf8>>)'
    assert_line -n 1 --partial 'work:one([1078])'
    assert_line -n 2 --partial 'work:one("é")'
    assert_line -n 3 --partial 'work:one(<<255,0>>)'
}

@test "the summary names the call that has not returned for the longest time" {
    local since
    trace --json 'timer:sleep(_) -> return' 'work:one/1 -> return'
    # The second process begins when the first one is in its call.
    on_node 'begin [begin register(N, spawn(fun() -> timer:sleep(infinity) end)), work:within(N, {timer, sleep}) end || N <- [stuck, stuck_too]], work:one(1) end'
    since=${EPOCHREALTIME/./}
    # The call is open for as long as this test lets it.
    until_true 20 eval "((\${EPOCHREALTIME/./} - $since > 3000000))"
    trace_end
    assert_regex "$talk" 'etrace: 2 calls have not returned, the oldest for [1-9][0-9.]*s: timer:sleep/1 by <[0-9.]+>\(stuck\)'
    run -0 jq -ec 'select(.type == "summary").open | .calls == 2 and .oldest_ns >= 1000000000 and .m == "timer" and .f == "sleep" and .a == 1 and .name == "stuck"' "$OUT"
    on_node 'begin [begin R = monitor(process, N), exit(whereis(N), kill), receive {_, R, _, _, _} -> ok end end || N <- [stuck, stuck_too]] end'
    traced 'timer:sleep(_) -> return' -- 'timer:sleep(1)'
    refute_regex "$talk" 'not returned'
}
