#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Faults of the system below etrace: no memory, no descriptors, interrupted calls, a clock that jumps, a kill at each
# step of attaching; and a hostile node. See tests/lib/fault.c.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_begin faults
    export FAULT_SO=$BATS_FILE_TMPDIR/fault.so RECORDING=$BATS_FILE_TMPDIR/recording.etr
    cc -O1 -fPIC -shared -fno-builtin -o "$FAULT_SO" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
    "$ETRACE_BIN" -n "$NODE" -qq --for 500ms -o "$RECORDING" 'work:_/_ -> return, caller' >/dev/null 3>&- &
    local recorder=$!
    until_true 30 test -s "$RECORDING"
    on_node 'work:run(#{procs => 2, calls => 20}), work:outer(2)'
    wait "$recorder"
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# faulty FAULT ARGS...: runs etrace with a fault; sets status, and writes OUT and ERR.
faulty() {
    local fault=$1
    shift
    status=0
    timeout -k 1 20 env FAULT="$fault" FAULT_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$FAULT_SO" "$ETRACE_BIN" "$@" <"${TYPED:-/dev/null}" >"$OUT" 2>"$ERR" 3>&- || status=$?
}

counted() { cut -d ' ' -f "$1" "$BATS_TEST_TMPDIR/count"; }

# Asserts a documented status, and one line of output after a failure.
assert_plain_end() {
    [[ $status -le 5 ]] || fail "$1: status $status: $(<"$ERR")"
    [[ $status -eq 0 || $(grep -c '^etrace: ' "$ERR") -ge 1 ]] || fail "$1: status $status without a message"
    [[ $(wc -l <"$ERR") -le 4 ]] || fail "$1: too many lines: $(<"$ERR")"
}

# Tests of the client alone do not run on OTP 27.
tested_elsewhere() { [[ $ETRACE_OTP == 27 ]]; }

@test "a failed allocation in explain or replay ends it with one message" {
    ! tested_elsewhere || return 0
    for command in 'explain lists:seq(_,[a|_])->return,caller' "replay $RECORDING" "replay --json $RECORDING" "replay --as hist $RECORDING"; do
        # shellcheck disable=SC2086  # words
        faulty count $command
        total=$(counted 1)
        [[ $total -gt 5 ]] || fail "$command: $total allocations"
        step=$((total / 60 + 1))
        for kind in memory nomemory; do
            for ((n = 1 + RANDOM % step; n <= total; n += step)); do
                # shellcheck disable=SC2086  # words
                faulty "$kind:$n" $command
                assert_plain_end "$kind:$n $command"
                [[ $kind == memory || $n -gt $((total / 2)) || $status -ne 0 ]] || fail "$kind:$n $command: status 0"
            done
        done
    done
}

@test "a failed allocation in a live trace ends it with one message, and the node is clean" {
    faulty count -n "$NODE" --for 50ms work:one/1
    assert_plain_end count
    total=$(counted 1)
    for ((i = 0; i < 30; i++)); do
        n=$((1 + i * total / 30))
        faulty "nomemory:$n" -n "$NODE" --for 50ms work:one/1
        [[ $status -ne 0 ]]
        assert_plain_end "nomemory:$n"
    done
    assert_clean "$BEFORE" "$NODE"
}

# For each tested allocation, it fails alone or together with all later ones, in turns. Tests PLACES allocations, with --all
# ten times as many, and other ones in each run: all of them would take half an hour.
without_memory() { # PLACES ARGS...
    local places=$(($1 * (${ETRACE_ALL:+9} + 1))) total step n kinds=(memory nomemory)
    shift
    faulty count "$@"
    assert_plain_end "count $*"
    total=$(counted 1)
    [[ $total -gt 2 ]] || fail "$*: $total allocations"
    step=$((total > places ? total / places : 1))
    for ((n = 1 + RANDOM % step; n <= total; n += step)); do
        faulty "${kinds[n / step % 2]}:$n" "$@"
        assert_plain_end "${kinds[n / step % 2]}:$n $*"
    done
}

@test "a failed allocation in any other command without a node ends it with one message" {
    ! tested_elsewhere || return 0
    cd "$BATS_TEST_TMPDIR"
    printf 'lists:seq/2 -> return\n' >probes
    printf -- '-record(r, {a = 1, b}).\n' >records.hrl
    export HOME=$BATS_TEST_TMPDIR
    without_memory 3 explain -f probes --hrl records.hrl --let N=5 --dump tokens,ast,spec --format json 'a:b(#r{a = ^N})'
    for view in tree summary flame sequence perfetto speedscope folded callgrind csv; do
        without_memory 3 replay --as "$view" "$RECORDING"
    done
    without_memory 3 replay "$RECORDING" -o page.html -o graph.svg -o copy.etr -e 'dur >= 0s' -g 'w(or)+k' --fail-on 'dur > 1h'
    for command in help 'help trace' version recipes 'recipes slow' schema 'completion zsh' nodes '__complete trace --as=' '__complete lists:se'; do
        # shellcheck disable=SC2086  # words
        without_memory 3 $command
    done
}

@test "a failed allocation in any other command with a node ends it with one message, and the node is clean" {
    local TYPED=
    without_memory 5 ls -n "$NODE" 'lists:*'
    without_memory 5 info -n "$NODE" lists
    without_memory 5 sessions -n "$NODE"
    without_memory 5 doctor -n "$NODE"
    without_memory 5 top -n "$NODE" --for 60ms 'work:_'
    without_memory 5 -n "$NODE" --for 50ms -c -e 'dur > 1us' 'work:one/1 -> return'
    without_memory 5 -n "$NODE" --for 50ms -o "$BATS_TEST_TMPDIR/a.etr" -o "$BATS_TEST_TMPDIR/a.html" 'work:two/2 -> return, caller'
    XDG_CACHE_HOME=$BATS_TEST_TMPDIR without_memory 5 __complete -n "$NODE" lists:se
    TYPED=$BATS_TEST_TMPDIR/typed
    printf ':set\na: work:one/1 -> return\n:hist\n:stop a\n:start\n:save %s/b.etr\n:drop all\n' "$BATS_TEST_TMPDIR" >"$TYPED"
    without_memory 8 repl -q -n "$NODE"
    assert_clean "$BEFORE" "$NODE"
}

@test "the node is clean after kill -9 of etrace at any of its network calls" {
    faulty count -n "$NODE" --for 20ms work:one/1
    total=$(counted 2)
    [[ $total -gt 10 ]]
    for ((n = 1; n <= total + 2 && n <= 60; n++)); do
        faulty "kill:$n" -n "$NODE" --for 20ms work:one/1
        [[ $status -eq 137 || $status -eq 0 ]] || fail "kill:$n: status $status: $(<"$ERR")"
        assert_clean "$BEFORE" "$NODE" || fail "killed at call $n of $total"
    done
}

@test "the node is clean after kill -9 of etrace at a step on the node: file, library, session, patterns" {
    for step in 'prim_file, make_dir, 1' 'file, delete, 2' 'trace, session_create, 3' 'trace, function, 4' 'trace, process, 4' 'code, load_binary, 3'; do
        # A process that sees the step through legacy tracing kills the client.
        on_node "Me = self(), register(killer, spawn(fun() ->
            erlang:trace_pattern({$step}, true, []),
            erlang:trace(new, true, [call]),
            Me ! watched,
            receive {client, Pid} -> ok end,
            receive {trace, _, call, _} -> os:cmd(\"kill -KILL \" ++ Pid) after 20000 -> missed end,
            erlang:trace(new, false, [call]),
            erlang:trace_pattern({$step}, false, []) end)), receive watched -> ok end"
        etrace_start -n "$NODE" --for 3s work:one/1
        on_node "killer ! {client, \"$TRACER\"}"
        trace_wait
        [[ $status -eq 137 ]] || fail "not killed at {$step}: status $status: $talk"
        until_true 30 eval '[[ $(node_eval "$NODE" "whereis(killer)") == undefined ]]'
        assert_clean "$BEFORE" "$NODE" || fail "killed at {$step}"
    done
}

@test "interrupted system calls lose no event" {
    LD_PRELOAD=$FAULT_SO FAULT=eintr trace --json work:one/1
    on_node 'work:loop(500)'
    trace_end
    assert_success
    assert_account 500
}

@test "a connection reset while etrace writes a regular file is an error" {
    faulty reset explain lists:seq/2
    assert_equal "$status,$(<"$ERR")" '1,etrace: cannot write standard output: Connection reset by peer'
}

@test "an error of close() makes etrace fail, for standard output and each -o file" {
    faulty late explain lists:seq/2
    assert_equal "$status,$(<"$ERR")" '1,etrace: cannot write standard output: Disk quota exceeded'
    for file in late.etr late.json; do
        LD_PRELOAD=$FAULT_SO FAULT=late trace --as summary -o "$BATS_TEST_TMPDIR/$file" work:one/1
        on_node 'work:loop(10)'
        # Standard output is a regular file, too.
        trace_end
        assert_equal "$status" 1
        assert_equal "$(grep -c 'cannot write' "$ERR")" 1
        LD_PRELOAD=$FAULT_SO FAULT=late trace --as summary -o "$BATS_TEST_TMPDIR/$file" work:one/1 > >(cat >/dev/null)
        trace_end
        assert_equal "$status" 1
    done
}

@test "a wall clock that jumps by an hour does not end the trace" {
    LD_PRELOAD=$FAULT_SO FAULT=clock:3600 trace --json --for 15s work:one/1
    on_node 'work:loop(10)'
    pause 4
    on_node 'work:loop(10)'
    trace_end
    assert_success
    assert_account 20
}

@test "etrace reports the difference between the clocks of node and host" {
    # Each reading of the client's clock is off by an hour, forward and backward in turns.
    LD_PRELOAD=$FAULT_SO FAULT=clock:3600 trace --json --for 15s work:one/1
    trace_end
    assert_success
    assert_equal "$(grep -cE "^etrace: $NODE: its clock is (59|60) min (ahead|behind) of this host's; times are those of the node\$" "$ERR")" 1
    trace --json --for 15s work:one/1
    trace_end
    refute_regex "$talk" 'its clock is'
}

@test "etrace with too few descriptors fails with one message, and the node is clean" {
    for n in 3 4 5 6 7 8 9 10 12 16; do
        status=0
        (ulimit -n "$n" && exec timeout 20 "$ETRACE_BIN" -n "$NODE" --for 50ms -o "$BATS_TEST_TMPDIR/$n.etr" work:one/1) </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
        # With fewer than five descriptors, the loader may fail to read the libraries, and prints its own message.
        [[ $status -eq 127 && $n -lt 5 ]] || assert_plain_end "$n descriptors"
    done
    assert_equal "$status" 0
    assert_clean "$BEFORE" "$NODE"
}

@test "valgrind finds no leak and no error in explain, replay and a live trace" {
    local grind=(valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite --show-leak-kinds=definite)
    "${grind[@]}" "$ETRACE_BIN" explain 'lists:seq(_, N) when N > 1 -> return' >/dev/null
    "${grind[@]}" "$ETRACE_BIN" replay --json "$RECORDING" >/dev/null
    "${grind[@]}" "$ETRACE_BIN" -n "$NODE" --json --limit 20 --for 120s 'work:one/1 -> return' </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 120 ready
    on_node 'work:loop(20)'
    trace_wait 150
    assert_success
    assert_equal "$(grep -c '"type":"call"' "$OUT")" 20
}

# Runs etrace against a node whose `rex` answers the first message with EXPR. Client is the process of the client.
hostile() { # EXPR
    node_eval "$NODE" "Was = whereis(rex), unregister(rex), register(rex_was, Was), register(rex, spawn(fun() ->
        receive {_, {cast, erl_eval, exprs, [_, [{_, Boot}], _], _}} ->
            Client = element(1, Boot), Hello = fun(M) -> [Client ! <<\$R, 0:32, (term_to_binary({ok, M}))/binary>>] end,
            $1,
            receive after 500 -> erlang:disconnect_node(node(Client)) end
        end end))" >/dev/null
    status=0
    start=$(millis)
    # The limit of the address space is half a gigabyte.
    (ulimit -v 524288 && exec timeout 30 env FAULT=count FAULT_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$FAULT_SO" \
        "$ETRACE_BIN" -n "$NODE" --json --for 20s work:one/1) </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
    took_ms=$(($(millis) - start))
    [[ $(counted 3) -lt 65536 ]] || fail "etrace used $(counted 3) KiB for $1"
    node_eval "$NODE" 'R = monitor(process, rex), catch exit(whereis(rex), kill), receive {_, R, _, _, _} -> ok end,
        Was = whereis(rex_was), unregister(rex_was), register(rex, Was)' >/dev/null || fail "cannot restore rex"
}

@test "etrace fails in time with one message and little memory, whatever a hostile node sends" {
    live_own hostile -kernel dist_auto_connect never # it goes on sending to clients that are gone
    hello='#{pid => self(), node => <<"a@b">>, otp => <<"27">>, otp_release => <<"27">>}'
    for say in \
        'Client ! <<$R, 0:32>>' \
        'Client ! <<$R, 0:32, 131, 104, 255>>' \
        'Client ! <<$R, 0:32, 131, 108, 16#7fffffff:32>>' \
        'Client ! <<$B, 0:4096>>' \
        'Hello([])' \
        'Client ! <<$R, 0:32, 131, (binary:copy(<<108, 1:32>>, 200000))/binary>>' \
        'Client ! <<$R, 0:32, (term_to_binary({error, lists:foldl(fun(_, A) -> {A} end, x, lists:seq(1, 100000))}))/binary>>' \
        'Client ! <<$R, 0:32, (term_to_binary({error, {no_module, <<27, "[2J", 16#202e/utf8, 10, "forged">>, []}}))/binary>>' \
        'Client ! binary:copy(<<"x">>, 50000000)' \
        "Hello($hello), [Client ! binary:copy(<<\"x\">>, 1000) || _ <- lists:seq(1, 20000)]" \
        "Hello($hello), Client ! <<\$B, 16#42575445:32/little, 56:32/little, 1:64/little, 0:64, 0:64, 0:64, 0:64, 16#ffffffff:32, 0:32>>" \
        "Hello($hello), [Client ! lists:seq(1, N) || N <- lists:seq(1, 500)]" \
        "[{nobody, node(Client)} ! N || N <- lists:seq(1, 1000)], receive after 20000 -> ok end" \
        "Hello(#{pid => self(), node => <<\"a@b\", 27, \"[2J\">>, otp => <<\"27\", 27, \"]0;x\", 7>>, otp_release => <<\"27\">>}), receive {request, Id, _} ->
            Client ! <<\$R, Id:32/little, (term_to_binary({ok, #{probes => [], processes => 1, ports => 0, warning => [<<\"w\", 27, \"[2J\">>]}}))/binary>> end" \
        'erlang:disconnect_node(node(Client))' \
        "Hello($hello), Client ! <<\$G, (term_to_binary({a, <<0>>, <<27, 91>>}))/binary>>"; do
        hostile "$say"
        [[ $status -ge 1 && $status -le 5 ]] || fail "status $status after $took_ms ms for $say: $(head -c 1000 "$ERR")"
        [[ $took_ms -lt 15000 ]] || fail "etrace took $took_ms ms for $say"
        assert_plain_end "$say"
        # The output has no bytes that control a terminal, and no forged line.
        LC_ALL=C grep -q -P '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae' "$ERR" && fail "control characters in $(cat -v "$ERR")"
        run ! grep -q '^forged' "$ERR"
    done
    assert_clean "$BEFORE" "$NODE"
}

@test "doctor shows no escape sequence of a hostile node" {
    node_eval "$NODE" 'Was = whereis(rex), unregister(rex), register(rex_was, Was), register(rex, spawn(fun Rex() ->
        receive {_, {cast, erl_eval, exprs, [_, [{_, Boot}], _], _}} ->
            case Boot of
                {Client, Id, _, _, _} -> Client ! {Id, []}, Rex();
                _ ->
                    Bad = <<"29", 27, "]0;x", 7, 16#202e/utf8>>,
                    element(1, Boot) ! <<$R, 0:32, (term_to_binary({ok, #{pid => self(), otp => Bad, version => Bad, otp_release => <<"29">>,
                        load_nif => false, reason => Bad}}))/binary>>,
                    receive after 500 -> erlang:disconnect_node(node(element(1, Boot))) end
            end
        end end))' >/dev/null
    run timeout 60 "$ETRACE_BIN" doctor -n "$NODE"
    node_eval "$NODE" 'R = monitor(process, rex), catch exit(whereis(rex), kill), receive {_, R, _, _, _} -> ok end,
        Was = whereis(rex_was), unregister(rex_was), register(rex, Was)' >/dev/null
    assert_output --partial 'OTP 29\x{1B}]0;x\x{7}\x{202E}'
    ! LC_ALL=C grep -q -P '[\x00-\x08\x0b-\x1f\x7f]|\xe2\x80\xae' <<<"$output" || fail "$(cat -v <<<"$output")"
}

# Starts a proxy between etrace and the node. It forwards the handshake. Then it sends the items of Says instead of
# the node's data: bytes, {bytes, count} (ever: until the client disconnects), or a pause in milliseconds. Sets PORT.
between() { # ERLANG LIST
    rm -f "$BATS_TEST_TMPDIR/port"
    mkfifo "$BATS_TEST_TMPDIR/port"
    # shellcheck disable=SC2153  # of tests/run
    "$ETRACE_ERL" -noshell -noinput -boot start_clean -eval "Says = $1,
        {ok, L} = gen_tcp:listen(0, [binary, {active, true}, {ip, {127, 0, 0, 1}}]),
        {ok, P} = inet:port(L),
        ok = file:write_file(\"$BATS_TEST_TMPDIR/port\", integer_to_list(P) ++ \"\n\"),
        {ok, C} = gen_tcp:accept(L),
        {ok, S} = gen_tcp:connect({127, 0, 0, 1}, $(node_port), [binary, {active, true}]),
        %% The last of the handshake is the node's answer: 17 bytes that begin with a.
        Pass = fun F() -> receive
            {tcp, C, B} -> gen_tcp:send(S, B), F();
            {tcp, S, B = <<17:16, \$a, _:16/binary>>} -> gen_tcp:send(C, B);
            {tcp, S, B} -> gen_tcp:send(C, B), F() end end,
        Pass(),
        Bytes = fun F({Bin, ever}) -> case F(Bin) of ok -> F({Bin, ever}); _ -> ok end;
            F({Bin, Times}) -> [F(Bin) || _ <- lists:seq(1, Times)]; F(Bin) -> gen_tcp:send(C, Bin) end,
        lists:foreach(fun(Ms) when is_integer(Ms) -> receive after Ms -> ok end; (Bin) -> Bytes(Bin) end, Says),
        receive {tcp_closed, C} -> ok after 20000 -> ok end, halt()." </dev/null >/dev/null 2>&1 3>&- &
    TRACERS+=("$!")
    # Opened for both directions, because without a writer the shell would wait for ever in open().
    read -r -t 30 PORT <>"$BATS_TEST_TMPDIR/port" || fail 'the proxy did not start'
}
node_port() { "${ETRACE_ERL%/*}/epmd" -names | sed -n "s/^name ${NODE%@*} at port //p"; }

# A node that follows the handshake only: etrace prints the sentence at once, and allocates nothing for the announced
# sizes. Without --cookie-file, etrace would connect once with each cookie that it knows, and the proxy accepts one
# connection.
@test "hostile frames after the handshake end etrace with one message that names the fault" {
    # Meanwhile, one node sends an incomplete frame, a byte at a time.
    between '[<<1000:32>>] ++ lists:append([[<<0>>, 100] || _ <- lists:seq(1, 300)])'
    timeout 30 "$ETRACE_BIN" -n "$NODE" --cookie-file "$HOME/.erlang.cookie" --port "$PORT" --for 20s work:one/1 </dev/null >"$OUT.slow" 2>"$ERR.slow" 3>&- &
    local slow=$! here=$NODE stuck
    # Another node sends ticks, too few to be an error.
    between 'lists:append([[<<0:32>>, 100] || _ <- lists:seq(1, 300)])'
    timeout 60 "$ETRACE_BIN" doctor -n "$NODE" --cookie-file "$HOME/.erlang.cookie" --port "$PORT" </dev/null >"$OUT.ticks" 2>"$ERR.ticks" 3>&- &
    local ticks=$!
    # Two more nodes have a suspended process. The sentence names this process if etrace needs it.
    node_start stuck
    stuck=$NODE NODE=$here
    held() { node_eval "$1" "register(holder, spawn(fun() -> erlang:suspend_process($2), receive go -> ok end end))" >/dev/null; }
    held "$here" 'whereis(code_server)'
    held "$stuck" 'whereis(file_server_2)'
    timeout 30 "$ETRACE_BIN" -n "$here" --for 20s work:one/1 </dev/null >"$OUT.code" 2>"$ERR.code" 3>&- &
    local code=$!
    timeout 30 "$ETRACE_BIN" -n "$stuck" --for 100ms lists:seq/2 </dev/null >"$OUT.file" 2>"$ERR.file" 3>&- &
    local file=$!
    while IFS='|' read -r says sentence; do
        between "$says"
        status=0
        timeout 30 env FAULT=count FAULT_COUNT="$BATS_TEST_TMPDIR/count" LD_PRELOAD="$FAULT_SO" \
            "$ETRACE_BIN" -n "$NODE" --cookie-file "$HOME/.erlang.cookie" --port "$PORT" --for 20s work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
        [[ $status -eq 1 ]] || fail "status $status for $says: $(<"$ERR")"
        assert_equal "$(<"$ERR")" "etrace: $NODE: $sentence"
        [[ $(counted 3) -lt 65536 ]] || fail "etrace used $(counted 3) KiB for $says"
    done <<'END'
[<<16#7fffff00:32>>]|the node violates the protocol: frame too large
[<<16#ffffffff:32, 0:80000>>]|the node violates the protocol: frame too large
[{<<0:8000>>, 3}, <<4:32, "q", 131, 104, 0>>]|the node violates the protocol: unknown kind of frame
[<<3:32, $p, 131, 104>>]|the node violates the protocol: malformed control message
[<<8:32, $p, 131, 108, 16#7fffffff:32, 106>>]|the node violates the protocol: malformed control message
[<<1000002:32, $p, 131>>, {binary:copy(<<104, 1>>, 500), 1000}]|the node violates the protocol: malformed control message
[<<1:32>>, 200, <<"G">>, <<"ET / HTTP/1.1">>]|the node violates the protocol: unknown kind of frame
[{<<0:8000>>, ever}]|the node violates the protocol: it sends only ticks
[{<<8:32, $p, 131, 104, 2, 97, 99, 97, 1>>, 101}]|the node violates the protocol: too many unexpected messages
END
    status=0
    wait "$slow" || status=$?
    assert_equal "$status" 3
    assert_equal "$(<"$ERR.slow")" "etrace: $NODE accepts the connection, but its rex process does not answer for 5 seconds"
    wait "$ticks" || status=$?
    assert_equal "$status" 3
    grep -q "its rex process does not answer" "$OUT.ticks" || fail "$(<"$OUT.ticks")"
    wait "$code" || status=$?
    assert_equal "$status" 3
    assert_equal "$(<"$ERR.code")" "etrace: $here accepts the connection, but its code_server process does not answer for 10 seconds"
    # etrace does not need the file server.
    status=0
    wait "$file" || status=$?
    assert_equal "$status" 0
    grep -qE 'events? in [0-9.]+ m?s$' "$ERR.file" && ! grep -q 'without the NIF' "$ERR.file" || fail "$(<"$ERR.file")"
    node_eval "$here" 'holder ! go' >/dev/null
    node_stop "$stuck"
}
