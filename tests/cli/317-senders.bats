#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the senders of received messages: etrace shows the same sender and node as the VM reports to its own tracer.

load ../lib/assert
load ../lib/live

setup_file() {
    live_begin senders
    node_start far
    export FAR=$NODE
    NODE=$LIVE_NODE
    on_node "true = net_kernel:connect_node('$FAR'), $(mail), work:warm()"
}
teardown_file() {
    node_stop "$FAR"
    live_end
}
setup() { live_setup; }
teardown() { live_teardown; }

# An expression that sends w messages, one after another: from a process, itself, timers, a port, the VM and another
# node.
mail() {
    echo "work:ask(w, fun() ->
        W = self(), Old = process_flag(trap_exit, true),
        Port = open_port({spawn, \"cat\"}, [binary]), A = alias(),
        spawn(fun() -> W ! {hi, near} end), receive {hi, near} -> ok end,
        W ! {hi, own}, receive {hi, own} -> ok end,
        erlang:send_after(1, W, {hi, timer}), receive {hi, timer} -> ok end,
        erlang:start_timer(1, W, hi), receive {timeout, _, hi} -> ok end,
        port_command(Port, <<\"hi\">>), receive {Port, {data, _}} -> ok end,
        {_, Ref} = spawn_monitor(fun() -> ok end), receive {'DOWN', Ref, _, _, _} -> ok end,
        spawn_link(fun() -> exit(bye) end), receive {'EXIT', _, bye} -> ok end,
        spawn(fun() -> A ! {hi, alias} end), receive {hi, alias} -> ok end,
        spawn('$FAR', erlang, send, [W, {hi, far}]), receive {hi, far} -> ok end,
        spawn('$FAR', erlang, send, [{w, node()}, {hi, far, name}]), receive {hi, far, name} -> ok end,
        port_close(Port), receive {'EXIT', Port, _} -> ok end,
        unalias(A), process_flag(trap_exit, Old) end)"
}

# Prints received messages of JSON lines as `Message {Node,Sender}`, without the requests of the test to w.
of_json() { jq -r 'select(.type == "receive") | "\(.msg) {\(.from_node),\(.from // "undefined")}"' "$1" | grep -v '^{ask,'; }

# Sends the mail while etrace and the VM's tracer trace it: OUT has the output of etrace, the file `expected` the VM's.
watched() {
    trace "$@"
    on_node "P = plain:events(#{procs => [whereis(w)], flags => ['receive'],
        receives => [{['\$1', '\$2', '_'], [], [{message, {{'\$1', '\$2'}}}]}]}), $(mail), plain:stop(P, \"$BATS_TEST_TMPDIR/plain\")"
    trace_end
    assert_success
    sed -n 's/^[^ ]* receive //p' "$BATS_TEST_TMPDIR/plain" | grep -v '^{ask,' >"$BATS_TEST_TMPDIR/expected"
    assert [ "$(wc -l <"$BATS_TEST_TMPDIR/expected")" -ge 11 ]
}

@test "the sender and its node equal those of the VM: processes, timers, ports, the VM, another node" {
    watched --json -P w 'recv(_)'
    of_json "$OUT" | diff "$BATS_TEST_TMPDIR/expected" -
    run cat "$BATS_TEST_TMPDIR/expected"
    assert_line --regexp "^\{hi,near\} \{'$NODE',<0\.[0-9]+\.0>\}$"
    assert_line "{hi,far} {'$FAR',undefined}"
    assert_line --regexp '^\{#Port<0\.[0-9]+>,\{data,<<"hi">>\}\} \{#Port<0\.[0-9]+>,undefined\}$'
    assert_line --regexp '^\{hi,timer\} \{[a-z_]+,undefined\}$'
}

@test "the sender is correct with several probes, guards and clauses" {
    for probes in "recv({hi, _}) recv(_)" "recv(_,M)when(is_tuple(M))or(is_atom(M))" "recv({hi,_});(_)" "recv(N,S,_)->msg({N,S})"; do
        # shellcheck disable=SC2086  # one expression a word
        IFS=' ' watched --json -P w ${probes//, /,}
        of_json "$OUT" | diff "$BATS_TEST_TMPDIR/expected" -
    done
    # The message action of the last expression shows node and sender a second time.
    jq -es '[.[] | select(.type == "receive") | .message == "{\(.from_node),\(.from // "undefined")}"] | all' "$OUT" >/dev/null
}

@test "an after that expires is from a timer, and a guard leaves it out" {
    local wait='work:ask(w, fun() -> self() ! one, receive two -> ok after 0 -> ok end, receive one -> ok end end)'
    traced -P w 'recv(_, M) when is_atom(M)' -- "$wait"
    run sed 's/.* receive //' "$OUT"
    assert_line 'from a timer timeout'
    traced -P w 'recv(Node, _, M) when is_atom(M), Node =/= clock_service' -- "$wait"
    run sed 's/.* receive //' "$OUT"
    refute_output --partial timeout
    assert_output --regexp '^from .* one$'
}

@test "a head selects messages by sender or node" {
    watched --json -P w "recv('$FAR', _, _)"
    of_json "$OUT" | diff <(grep " {'$FAR'," "$BATS_TEST_TMPDIR/expected") -
    for head in 'recv(undefined, _)' 'recv(F, _) when F == undefined' 'recv(F, _) where F == undefined' 'recv(_) where from == undefined'; do
        watched --json -P w "$head"
        of_json "$OUT" | diff <(grep ',undefined}$' "$BATS_TEST_TMPDIR/expected") - || fail "$head"
    done
    w=$(node_eval "$NODE" 'whereis(w)')
    watched --json -P w "recv($w, _)"
    of_json "$OUT" | diff <(grep ",$w}$" "$BATS_TEST_TMPDIR/expected") -
    assert_equal "$(json_of receive .msg)" '{hi,own}'
}

@test "the sender appears in text, in columns, in filters and in a replay" {
    watched -P w 'recv(_)' -o "$BATS_TEST_TMPDIR/all.etr"
    run "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/all.etr"
    of_json <(echo "$output") | diff "$BATS_TEST_TMPDIR/expected" -
    run "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/all.etr"
    assert_line --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive from <0\.[0-9]+\.0>[^ ]* \{hi,near\}$'
    assert_line --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive from <0\.[0-9]+\.0>\(w\) \{hi,own\}$'
    assert_line --regexp "^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive from '$FAR' \{hi,far\}\$"
    assert_line --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive from #Port<0\.[0-9]+> \{#Port<0\.[0-9]+>,\{data,<<"hi">>\}\}$'
    assert_line --regexp '^[0-9:.]+ <0\.[0-9]+\.0>\(w\) receive from a timer \{hi,timer\}$'
    run "$ETRACE_BIN" replay --as csv --fields from,msg -e 'from == pid' "$BATS_TEST_TMPDIR/all.etr"
    assert_line --index 0 from,msg
    assert_line --index 1 --regexp '^<0\.[0-9]+\.0>,"?\{hi,own\}"?$'
}

# Asserts which match specification for received messages the node has for these arguments of etrace: `true`, or the
# number of actions of each clause.
asks() { # WANTED ARGUMENTS
    local REPLY specification
    trace -P w "${@:2}"
    node_ask "$NODE" "[Session] = [S || S = {etrace, _} <- trace:session_info(all)],
        case trace:info(Session, 'receive', match_spec) of {_, Ms} when is_list(Ms), Ms =/= [] -> [length(B) || {_, _, B} <- Ms]; {_, All} -> All end"
    specification=$REPLY
    trace_end
    assert_equal "$specification for ${*:2}" "$1 for ${*:2}"
}

# bats test_tags=long
@test "etrace asks the node for the sender only if the output or a filter uses it" {
    local etr=$BATS_TEST_TMPDIR/some.etr fields=(--as csv --fields 'pid,msg')
    asks 'true' --format '{pid} {msg}' 'recv(_)'
    asks 'true' "${fields[@]}" 'recv(_)' -e 'msg =/= none'
    asks 'true' -c --expect 'msg == none' 'recv(_)'
    asks 'true' --as folded 'recv(_, M)' 'send(_)' '@exit'
    asks '[0]' --format '{msg}' 'recv({hi, _})'
    asks '[0]' --format '{msg}' 'recv({hi, _}) where size(msg) == 2'
    asks '[1]' --format '{msg}{message}' 'recv(_) -> msg(a)'
    # Each clause becomes three: for a sender on this node, for no sender, and for every other sender.
    asks '[1,1,1]' 'recv(_)'
    for options in '--json' '--as tree' '--as sequence' '--as perfetto' '--as csv' '--format {from}' '--fields text' '--format {size}' "-c -o $etr"; do
        # shellcheck disable=SC2086
        asks '[1,1,1]' $options 'recv(_)'
    done
    for options in -gnone -efrom=/=pid -etext=/=msg '-esize>0' '--expect=from==none' '--fail-on=msg==from'; do
        asks '[1,1,1]' "${fields[@]}" "$options" 'recv(_)'
    done
    asks '[1,1,1]' "${fields[@]}" 'recv(_) where from =/= pid'
}

@test "a trace without senders shows the same messages" {
    # shellcheck disable=SC2086  # words
    for options in '--fields type,msg' '--format {type}\t{msg}'; do
        watched -P w $options 'recv(_)'
        sed -n 's/^receive\t//p' "$OUT" | grep -v '^{ask,' | diff <(sed 's/ {[^{}]*}$//' "$BATS_TEST_TMPDIR/expected") -
        watched -P w $options 'recv({_, M}) when M =/= far' 'recv({hi, far})'
        sed -n 's/^receive\t//p' "$OUT" | diff <(sed 's/ {[^{}]*}$//' "$BATS_TEST_TMPDIR/expected" | grep '^{[^,]*,[^,]*}$\|^{#Port[^,]*,{') -
    done
}

@test "a head that matches everything selects only by the number of arguments" {
    trace --json -P w 'work:one(_)' 'work:two(_, _)'
    on_node 'work:ask(w, fun() -> work:one(1), work:two(2, 3), work:fac(1) end)'
    trace_end
    assert_success
    assert_equal "$(json_of call '"\(.f)/\(.a)"' | tr '\n' ' ')" 'one/1 two/2 '
    on_node "work:ask(w, fun() -> ok end)"
    trace --json -P w 'work:_(_, _)'
    on_node 'work:ask(w, fun() -> work:one(1), work:two(2, 3), work:fac(1) end)'
    trace_end
    assert_success
    assert_equal "$(json_of call '"\(.f)/\(.a)"' | sort -u)" 'two/2'
    trace --json -P w 'work:two(_, ...)' 'work:one(X)'
    session=$(node_eval "$NODE" '[S || S = {etrace, _} <- trace:session_info(all)]' | tr -d '[] \n')
    assert_equal "$(node_eval "$NODE" "[trace:info($session, {work, F, A}, match_spec) || {F, A} <- [{one, 1}, {two, 2}, {fac, 1}]]" | tr -d ' \n')" \
        '[{match_spec,[]},{match_spec,[]},{match_spec,false}]'
    trace_end
    assert_success
}
