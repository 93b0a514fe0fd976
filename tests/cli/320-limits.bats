#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the limits of a trace (numbers, times, rates, sizes) and that secrets are never shown.

load ../lib/assert
load ../lib/live

setup_file() { live_share limits; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

@test "--limit N shows exactly N events and then ends the trace" {
    trace --json --limit 7 work:one/1
    on_node 'work:loop(1000)'
    trace_wait
    assert_success
    assert_equal "$(json_of call '.args[0]' | wc -l)" 7
    assert_equal "$(json_of call '.args[0]' | head -n 1)" 1000
    assert_account any
    assert_equal "$(json_of summary .shown)" 7
}

@test "--limit counts a call and its result once" {
    trace --json --limit 4 'work:fac/1 -> return'
    on_node 'work:fac(3)'
    trace_wait
    assert_success
    assert_equal "$(json_of call .f | wc -l)" 4
    assert_equal "$(json_of return .f | wc -l)" 4
    assert_account any
    # etrace shows the results of the calls within the limit, and of no others.
    trace --json --limit 2 'work:fac/1 -> return'
    on_node 'work:fac(3)'
    trace_wait
    assert_success
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '3 2 '
    assert_equal "$(json_of return '.args[0]' | tr '\n' ' ')" '2 3 '
    assert_account any
}

# bats test_tags=long
@test "--limit is exact in a flood of many processes" {
    trace --json --limit 500 work:one/1
    on_node 'work:burst(4, 5000)'
    trace_wait
    assert_success
    assert_equal "$(json_of call .f | wc -l)" 500
    assert_account any
}

@test "--limit counts shown events, not filtered ones" {
    trace --json --limit 3 -e 'args[1] < 50' work:one/1
    on_node 'work:loop(100)'
    trace_wait
    assert_success
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '49 48 47 '
    assert_account any
}

@test "--for ends the trace after the given time" {
    start=$(millis)
    trace --json --for 600ms work:one/1
    trace_wait
    took=$(($(millis) - start))
    assert_success
    assert [ "$took" -ge 600 ]
    assert_account 0
}

@test "--rate counts the excess events as lost, in the stream and in the summary" {
    trace --json --rate 500 work:one/1
    on_node 'work:burst(2, 20000)'
    trace_end
    assert_success
    assert_account 40000
    assert_equal "$(json_of summary '.lost | keys[]')" rate
    # The rate allows the events of one second at once. The burst took less than a few seconds.
    shown=$(json_of summary .shown)
    assert [ "$shown" -ge 500 ]
    assert [ "$shown" -le 5000 ]
    # The losses in the stream add up to the loss in the summary.
    jq -es '([.[] | select(.type == "lost") | .count] | add) == (.[-1].lost.rate)' "$OUT"
    assert_equal "$(json_of lost .reason | sort -u)" rate
    trace --rate 500 work:one/1
    on_node 'work:burst(2, 5000)'
    trace_end
    assert_output --regexp '\*\*\* [0-9]+ events lost here \(rate\) \*\*\*'
}

@test "--on-loss stop ends with status 4" {
    trace --json --rate 100 --on-loss stop work:one/1
    on_node 'work:burst(2, 5000)'
    trace_wait
    assert_failure 4
    assert_equal "$(grep -c 'stopped: events were lost (rate)' "$ERR")" 1
    # etrace reports the last loss also when the trace ends at the same time.
    traced --json --rate 1 --on-loss stop work:one/1 -- 'work:loop(3)'
    assert_failure 4
    assert_equal "$(grep -c 'events were lost (rate)' "$ERR")" 1
    assert_account 3
}

# bats test_tags=each
@test "views of figures have no rate by default, and one that is given applies" {
    local view expr
    # With -g the node sends the events.
    for view in summary hist folded table; do
        expr='work:one/1 -> return'
        [[ $view != table ]] || expr+=' by pid'
        trace --as "$view" -g one "$expr"
        on_node 'work:loop(15000)'
        trace_end
        assert_success
        assert_regex "$(totals)" '^30000 events$'
    done
    trace -c --rate 1000 -g one 'work:one/1 -> return'
    on_node 'work:loop(15000)'
    trace_end
    assert_regex "$(totals)" '^[0-9]+ events · [0-9]+ lost \(rate\)'
}

@test "the rate limits calls together with their results, so pairs stay complete" {
    trace --json --rate 300 'work:fac/1 -> return'
    on_node '[work:fac(3) || _ <- lists:seq(1, 2000)]'
    trace_end
    assert_success
    assert_account any
    # Each result belongs to a shown call. After a loss inside an open call etrace may not know the call's duration.
    jq -es '([.[] | select(.type == "return" and .dur_us == null)] | length) <= 4 * ([.[] | select(.type == "lost")] | length)' "$OUT"
    jq -es '([.[] | select(.type == "return")] | length) == ([.[] | select(.type == "call")] | length)' "$OUT"
}

@test "--size, --depth and --items cut terms, with an ellipsis, and the summary counts the cuts" {
    traced --size 64 'work:one/1' -- 'work:one(work:blob(5000))'
    assert_success
    assert_line -n 0 --regexp ' call work:one\(<<"(0123456789abcdef)+[0-9a-f]*"?…( \([0-9]+ bytes\))?.*\)$'
    assert [ "${#lines[0]}" -lt 200 ]
    assert_regex "$talk" ' · 1 cut \(--size, --depth, --items\)'
    traced --items 3 'work:one/1' -- 'work:one(work:seq(1000)), work:one(list_to_tuple(work:seq(50))), work:one(work:dict(40))'
    assert_line -n 0 --regexp ' call work:one\(\[1,2,3,…\]\)$'
    assert_line -n 1 --regexp ' call work:one\(\{1,2,3,…(\+47)?\}\)$'
    assert_line -n 2 --regexp ' call work:one\(#\{([0-9]+ => <<"[0-9]+">>,){3}…(\+37)?\}\)$'
    assert_regex "$talk" ' · 3 cut '
    traced --depth 2 'work:one/1' -- 'work:one(work:nested(6)), work:one({1, {2, {3}}}), work:one(#{a => #{b => #{c => d}}})'
    assert_line -n 0 --regexp ' call work:one\(\[+…\]+\)$'
    assert_line -n 1 --regexp ' call work:one\(\{1,\{2,…\}\}\)$'
    assert_line -n 2 --regexp ' call work:one\(#\{a => #\{b => …\}\}\)$'
    assert_regex "$talk" ' · 3 cut '
    # The default limits do not cut this list of 100 numbers.
    traced 'work:one/1' -- 'work:one(work:seq(100))'
    refute_regex "$talk" ' cut '
}

@test "a filter shows an event that it cannot decide because of a cut term, and counts it" {
    # work:seq(N) returns 1..N. The node sends only the first 50 elements.
    trace --json --items 50 'work:seq(N) -> return where N =:= 20 or length(ret) =:= 100'
    on_node '[work:seq(N) || N <- [20, 30, 100, 200]]'
    trace_end
    assert_success
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '20 100 200 '
    assert_equal "$(json_of summary '[.shown, .filtered, .undecided]' | jq -c .)" '[6,2,2]'
    assert_account any
    [[ $talk == *'2 events shown because the filter could not decide'* ]]
    # Without --items the node sends whole results, and the filter can decide.
    trace --json 'work:seq(N) where N =:= 20 or length(ret) =:= 100'
    on_node '[work:seq(N) || N <- [20, 30, 100, 200]]'
    trace_end
    assert_equal "$(json_of call '.args[0]' | tr '\n' ' ')" '20 100 '
    assert_equal "$(json_of summary .undecided)" 0
}

# bats test_tags=each
@test "the node cuts a large term before it sends the event" {
    traced --json 'work:pair/2 -> return' -- 'work:ask(w, fun() -> work:pair(ok, work:blob(20000000)), ok end)'
    assert_success
    assert_account 2
    assert [ "$(wc -c <"$OUT")" -lt 8192 ]
    assert_equal "$(json_of summary .truncated)" 1
    on_node 'work:ask(w, fun() -> garbage_collect() end)'
}

# bats test_tags=each
@test "large bit strings are cut, and native records show only their names" {
    said='work:one(<<5:3>>), work:one(<<1, 200, 5:3>>), work:one(<<0:2048, 1:1>>), work:one(<<0:2040, 1:1>>), <<_:3, Off/bits>> = binary:copy(<<16#55>>, 20000000), work:one(Off), ok'
    traced --json work:one/1 -- "$said"
    assert_success
    zeroes() { printf '0,%.0s' $(seq "$1"); }
    assert_equal "$(json_of call '.args[0]')" "<<5:3>>
<<1,200,5:3>>
<<$(zeroes 256)1:1>>
<<$(zeroes 255)1:1>>
<<$(printf '170,%.0s' $(seq 16)).../bits>>"
    assert_equal "$(json_of summary .truncated)" 1
    traced --terms json --json work:one/1 -- 'work:one(<<255, 5:3>>)'
    assert_equal "$(json_of call '.args[0] | tojson')" '{"b64":"/6A=","bits":3}'
    traced --size 20 work:one/1 -- 'work:one(<<0:2040, 1:1>>)'
    assert_output --partial 'work:one(<<0,0,0,0,0,0,…'
    [[ $ETRACE_OTP -ge 29 ]] || return 0
    printf '%s\n' '-module(kind).' '-export([f/1]).' '-record #it{id}.' "-record #'a:{.\\' b'{id}." 'f(X) -> [#it{id = X}, #'"'a:{.\\' b'"'{id = X}].' >"$BATS_TEST_TMPDIR/kind.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/kind.erl"
    traced --json work:one/1 -- "code:add_path(\"$BATS_TEST_TMPDIR\"), work:one(kind:f(binary:copy(<<\"a\">>, 20000000))), ok"
    assert_equal "$(json_of call '.args[0]')" "[#kind:it{...},#kind:'a:{.\\' b'{...}]"
    # The second name does not fit into the buffer, so nothing of that record is shown. The node must not read the
    # contents of the record over and over.
    local name
    name=$(printf '\\001%.0s' $(seq 255))
    printf '%s\n' '-module(kinds).' '-export([f/1]).' "-record #''{id}." "-record #'$name'{id}." "f(X) -> [#''{id = X}, #'$name'{id = X}]." >"$BATS_TEST_TMPDIR/kinds.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/kinds.erl"
    traced --json work:one/1 -- "work:one(kinds:f(lists:duplicate(1000000, \$a))), ok"
    assert_equal "$(json_of call '.args[0]')" "[#kinds:''{...},...]"
}

# The secret occurs nowhere else. It stands under each kind of secret key, in each shape of term.
secrets='work:ask(w, fun() -> work:one(#{password => "CaNaRy", <<"token">> => <<"CaNaRy">>, user => anna}), work:one([{secret, "CaNaRy"}, {<<"api_key">>, <<"CaNaRy">>}, {port, 80}]), work:one({[{"password", "CaNaRy"}]}), work:secret(<<"CaNaRy">>), ok end)'

# bats test_tags=each
@test "the node hides secrets from text, JSON and recordings" {
    traced -o "$BATS_TEST_TMPDIR/r.etr" -o "$BATS_TEST_TMPDIR/r.json" 'work:one/1' 'work:secret/1 -> return' -- "${secrets/work:secret(<<\"CaNaRy\">>)/work:secret(1)}"
    assert_success
    assert_equal "${#lines[@]}" 5
    refute_output --partial CaNaRy
    assert_output --partial anna
    assert_output --partial '{port,80}'
    run grep -c CaNaRy "$BATS_TEST_TMPDIR/r.json"
    assert_output 0
    refute_recorded "$BATS_TEST_TMPDIR/r.etr" CaNaRy anna
    run "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/r.etr"
    refute_output --partial CaNaRy
    # The secret in the nested map of the result is hidden, too.
    traced --json 'work:secret/1 -> return' -- 'work:secret(hush)'
    assert_equal "$(json_of return .value | grep -o hush | wc -l)" 0
}

# bats test_tags=long
@test "secrets in messages and under keys of --redact are hidden" {
    traced --redact pin,iban 'work:one/1' -P w 'send(_, {reply, _})' -- \
        'work:ask(w, fun() -> work:one(#{pin => canary_pin, iban => <<"CaNaRy">>, bic => shown}), self() ! {reply, #{passwd => "CaNaRy", ok => "seen"}}, receive {reply, _} -> ok end end)'
    assert_success
    refute_output --partial CaNaRy
    refute_output --partial canary_pin
    assert_output --partial shown
    assert_output --partial seen
}

@test "the fallback tracer hides secrets" {
    traced --fallback -o "$BATS_TEST_TMPDIR/r.etr" 'work:one/1' 'work:secret/1 -> return' -- "${secrets/work:secret(<<\"CaNaRy\">>)/work:secret(1)}"
    assert_success
    assert_equal "${#lines[@]}" 5
    refute_output --partial CaNaRy
    assert_output --partial anna
    assert_output --partial '{port,80}'
    refute_recorded "$BATS_TEST_TMPDIR/r.etr" CaNaRy anna
}

@test "--no-redact shows secrets" {
    traced --no-redact 'work:one/1' -- "$secrets"
    assert_success
    assert_equal "$(grep -o CaNaRy "$OUT" | wc -l)" 5
}

# Uses each name of tests/secrets.names as an atom, a binary and a string, as the key of a map and in a pair, and
# asserts that etrace hides the values of secret names and shows the others.
named_by() { # ARGS...
    local secrets names="$BATS_TEST_DIRNAME/../secrets.names"
    secrets=$(sed -n 's/^# The secrets of these cases are: //p' "$names" | tr ' ' ,)
    local cases="[{V, N} || L <- string:lexemes(element(2, file:read_file(\"$names\")), [10]), [V, N] <- [string:split(L, \" \")], V =/= <<\"#\">>]"
    on_node "[binary_to_atom(N) || {_, N} <- $cases]" # create the atoms before the snapshot
    live_snapshot
    traced "$@" --no-redact --redact "$secrets" work:one/1 -- \
        "[work:one({V, K, #{K => canary}, {K, canary}}) || {V, N} <- $cases, K <- [binary_to_atom(N), N, binary_to_list(N)]]"
    assert_success
    assert_equal "$(grep -c '{<<"yes">>' "$OUT") $(grep -c '{<<"no">>' "$OUT")" "$((3 * $(grep -c '^yes' "$names"))) $((3 * $(grep -c '^no' "$names")))"
    run grep '{<<"yes">>.*canary' "$OUT"
    assert_output ''
    run grep -v '{<<"yes">>\|{<<"no">>.*canary.*canary' "$OUT"
    assert_output ''
}

@test "a name with a secret word makes its value a secret, in every spelling" {
    named_by
}

# bats test_tags=long
@test "a name with a secret word makes its value a secret without the NIF, too" {
    named_by --fallback
}

# bats test_tags=long
@test "the value of a map is hidden if a secret name is beside it under name or key" {
    local by workload='work:one(#{name => password, value => canary}), work:one(#{<<"key">> => <<"X-Api-Key">>, <<"value">> => canary}), work:one(#{value => canary, key => "token"}),
        work:one(#{name => user, value => shown, x => #{value => shown}})'
    for by in --size=1024 --fallback; do
        traced "$by" work:one/1 -- "$workload"
        assert_success
        refute_output --partial canary
        assert_equal "$(grep -o shown "$OUT" | wc -l)" 2
    done
}

# The workload puts the cookie into atoms, strings, binaries, results, messages and exceptions, and into binaries and
# lists that the tracer cuts in the middle of the cookie.
# bats test_tags=each
@test "the cookie of the node is hidden in every kind of term" {
    local cookie by
    cookie=$(<"$HOME/.erlang.cookie")
    local workload='C = erlang:get_cookie(), S = atom_to_list(C), B = atom_to_binary(C), Z = fun(N) -> binary:copy(<<"z">>, N) end, work:one(C), work:one({a, C, #{C => [C | C]}}),
        work:one(S), work:one({state, "-setcookie " ++ S ++ " -x"}), work:one(<<"-setcookie ", B/binary, 0, B/binary>>), work:one(list_to_atom("x_" ++ S)),
        [work:one(<<(Z(N))/binary, B/binary, B/binary>>) || N <- lists:seq(930, 1020)], [work:one(lists:duplicate(N, $q) ++ S) || N <- lists:seq(210, 255)],
        work:one(element(2, split_binary(<<1, B/binary, (Z(7000))/binary>>, 1))), catch work:raise(error, {bad, S}), self() ! {reply, C}, receive {reply, _} -> ok end, ok'
    on_node 'list_to_atom("x_" ++ atom_to_list(erlang:get_cookie()))' # create the atom before the snapshot
    live_snapshot
    for by in --size=1024 --fallback; do
        traced "$by" --no-redact -o "$BATS_TEST_TMPDIR/r.etr" 'work:one/1 -> return' 'work:raise/2 -> return' 'send(_, {reply, _})' -- "$workload"
        assert_success
        refute_output --partial "${cookie:0:6}"
        assert_output --partial "call work:one('${cookie//?/*}')"
        assert_output --partial "\"-setcookie ${cookie//?/*} -x\""
        assert_output --partial "{bad,\"${cookie//?/*}\"}"
        refute_recorded "$BATS_TEST_TMPDIR/r.etr" "${cookie:0:6}" setcookie
        rm "$BATS_TEST_TMPDIR/r.etr"
    done
}
