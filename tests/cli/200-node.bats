#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the test library itself: nodes under test, and assert_clean, which compares a node with its earlier snapshot.

load ../lib/assert
load ../lib/node

teardown() { nodes_stop; }

@test "a node runs the OTP under test and evaluates expressions" {
    node_start plain
    run node_eval "$NODE" 'erlang:system_info(otp_release)'
    assert_output "\"$ETRACE_OTP\""
    run node_eval "$NODE" 'A = 20, {node(), A + 1, <<"é"/utf8>>}.'
    assert_output "{'$NODE',21,<<\"é\"/utf8>>}"
    # This line exceeds every buffer between the test and the node.
    run node_eval "$NODE" "length(\"$(printf 'y%.0s' {1..200000})\")"
    assert_output 200000
}

@test "node_eval fails for an expression that raises or does not parse" {
    node_start plain
    run node_eval "$NODE" 'error(oops)'
    assert_failure 1
    assert_output 'error: oops'
    run node_eval "$NODE" 'this is no (expression'
    assert_failure 1
    run node_eval "$NODE" '1 + 1'
    assert_output 2
}

@test "a node does not answer a request without the secret" {
    node_start plain
    echo wrong >"$(node_dir "$NODE")/secret"
    run node_eval "$NODE" '1 + 1'
    assert_failure 1
    assert_output "the node $NODE did not answer"
}

@test "node_start passes flags on, and nodes with different cookies do not connect" {
    node_start one -setcookie other
    one=$NODE
    node_start two
    run node_eval "$one" 'erlang:get_cookie()'
    assert_output other
    run node_eval "$NODE" "net_adm:ping('$one')"
    assert_output pang
    run node_eval "$NODE" 'list_to_binary(atom_to_list(erlang:get_cookie()))'
    assert_output "<<\"$(<"$HOME/.erlang.cookie")\">>"
}

@test "node_start reports a node that does not start" {
    run node_start bad -eval 'halt(7)'
    assert_failure 1
    assert_output --partial "did not start:"
}

@test "a snapshot does not change the node" {
    node_start still
    before=$(node_snapshot "$NODE")
    # Residue of a snapshot would accumulate; ten open connections at once would also leave what they allocate.
    port=$(<"$(node_dir "$NODE")/port")
    for _ in {0..9}; do
        exec {look}<>"/dev/tcp/127.0.0.1/$port"
        printf half >&"$look"
        looks+=("$look")
    done
    for look in "${looks[@]}"; do exec {look}>&-; done
    for _ in 1 2 3 4 5; do assert_clean --names 0 --memory 65536 "$before" "$NODE"; done
}

# bats test_tags=long
@test "assert_clean detects sessions, tables, names, persistent terms and files until they are removed" {
    node_start dirty
    # Create and remove everything once, so that what the node loads for it is already in the snapshot.
    residue=(
        "put(s, trace:session_create(left, self(), []))"
        "ets:new(left, [named_table, public, {heir, whereis(init), none}])"
        "register(etrace_left, spawn(fun() -> receive stop -> ok end end))"
        "persistent_term:put(left, 1)"
        "file:write_file(filename:join(os:getenv(\"TMPDIR\"), \"etrace_left\"), <<>>)"
    )
    node_eval "$NODE" "spawn(fun() -> ${residue[0]}, register(left_holder, self()), receive stop -> ok end end)"
    node_eval "$NODE" 'left_holder ! stop'
    for step in "${residue[@]:1}"; do node_eval "$NODE" "$step"; done
    node_eval "$NODE" "ets:delete(left), etrace_left ! stop, persistent_term:erase(left), file:delete(filename:join(os:getenv(\"TMPDIR\"), \"etrace_left\"))"
    before=$(node_snapshot "$NODE")
    assert_clean "$before" "$NODE"

    node_eval "$NODE" "spawn(fun() -> ${residue[0]}, register(left_holder, self()), receive stop -> ok end end)"
    run assert_clean "$before" "$NODE" 0
    assert_failure 1
    assert_output --regexp '> sessions .*left'
    node_eval "$NODE" 'left_holder ! stop'
    assert_clean "$before" "$NODE"

    seen=('' '> ets ' '> registered etrace_left' '> persistent_terms ' '> file .*etrace_left')
    undo=('' 'ets:delete(left)' 'etrace_left ! stop' 'persistent_term:erase(left)'
        'file:delete(filename:join(os:getenv("TMPDIR"), "etrace_left"))')
    for i in 1 2 3 4; do
        node_eval "$NODE" "${residue[i]}"
        run assert_clean "$before" "$NODE" 0
        assert_failure 1
        assert_output --regexp "${seen[i]}"
        node_eval "$NODE" "${undo[i]}"
        assert_clean "$before" "$NODE"
    done
}

@test "assert_clean detects new atoms unless --atoms accepts them" {
    node_start atoms
    before=$(node_snapshot "$NODE")
    node_eval "$NODE" '[list_to_atom("fresh_" ++ integer_to_list(N)) || N <- [1, 2, 3]]'
    run assert_clean "$before" "$NODE" 0
    assert_failure 1
    assert_output --partial '> atoms '
    assert_line --regexp '^\{atoms,\[fresh_[123],fresh_[123],fresh_[123]\]\}$'
    # --atoms accepts the three new atoms.
    assert_clean --atoms 3 "$before" "$NODE" 0
}

@test "assert_clean detects a module and a mapped library called etrace" {
    node_start loaded
    before=$(node_snapshot "$NODE")
    node_eval "$NODE" '{ok, M, B} = compile:forms([{attribute, 1, module, etrace_left}]), code:load_binary(M, "", B)'
    run assert_clean "$before" "$NODE" 0
    assert_output --partial '> modules [etrace_left]'

    # The compiler has created atoms and keeps memory, so accept both.
    node_eval "$NODE" 'code:delete(etrace_left), code:purge(etrace_left)'
    assert_clean --atoms 10000 --memory 10000000 "$before" "$NODE"

    # erl_ddll refuses the library because it is not a driver, but -z nodelete keeps it mapped.
    lib=$BATS_TEST_TMPDIR/etrace_left.so
    gcc -shared -fPIC -Wl,-z,nodelete -x c -o "$lib" - <<<'int nothing;'
    node_eval "$NODE" "{error, _} = erl_ddll:try_load(\"${lib%/*}\", etrace_left, [])"
    run assert_clean --atoms 10000 "$before" "$NODE" 0
    assert_failure 1
    assert_output --partial "> maps [\"$lib\"]"
}

# bats test_tags=long
@test "assert_clean detects a connected node until the node stops" {
    node_start watched
    watched=$NODE
    before=$(node_snapshot "$watched")
    node_start peer -hidden
    # The first connection loads code, so accept its atoms.
    node_eval "$NODE" "pong = net_adm:ping('$watched')"
    run assert_clean --atoms 1000 "$before" "$watched" 0
    assert_failure 1
    assert_output --partial "> hidden ['$NODE']"
    node_stop "$NODE"
    assert_clean --atoms 1000 "$before" "$watched"
}

@test "the workload reports how often it calls each function" {
    node_start work
    node_eval "$NODE" 'code:ensure_loaded(work), [1 = erlang:trace_pattern({work, F, A}, true, [local, call_count]) || {F, A} <- [{one, 1}, {fac, 1}, {raise, 2}]]'
    run node_eval "$NODE" 'Counts = work:run(#{seed => 7, procs => 4, calls => 250}), lists:all(fun({F, A}) -> {call_count, N} = erlang:trace_info({work, F, A}, call_count), N =:= maps:get({F, A}, Counts) end, [{one, 1}, {fac, 1}, {raise, 2}])'
    assert_output true
    run node_eval "$NODE" 'C = work:run(#{seed => 7, procs => 4, calls => 250}), C =:= work:run(#{seed => 7, procs => 4, calls => 250})'
    assert_output true
    run node_eval "$NODE" '{work:burst(8, 100), work:ping_pong(50), work:start_server(), work:put(k, v), work:get(k), work:outer(3)}'
    assert_output --regexp '^\{800,ok,<0\.[0-9]+\.0>,ok,v,3\}$'
}
