#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace ls`, which lists the functions that a selector matches, with the names of their arguments.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() { live_begin ls; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

ls_() { "$ETRACE_BIN" ls -n "$NODE" "$@"; }

# Prints the first word of each output line.
names() { printf '%s ' "${lines[@]%% *}"; }

# Compiles a module with debug information into the code path of the node.
named() {
    local dir
    dir=$(node_dir "$NODE")
    cat >"$dir/named.erl" <<'END'
-module(named).
-export([f/2, g/3, 'odd name'/1, h/0]).
-record(state, {a}).
f(0, _) -> zero;
f(Count, _Rest) -> k(Count).
g([], #state{}, {_, _}) -> ok;
g(List = [_ | _], S, "ab") -> {List, S}.
'odd name'(Größe) -> Größe.
h() -> ok.
k(X) -> X.
END
    "$ETRACE_ERLC" "$@" -o "$dir" "$dir/named.erl"
    on_node "code:add_path(\"$dir\"), code:load_file(named)"
}

no_named() {
    on_node "code:purge(named), code:delete(named), code:purge(named), code:del_path(\"$(node_dir "$NODE")\")"
    live_snapshot
}

@test "ls shows argument names from the debug information and creates no atoms" {
    named +debug_info
    live_snapshot
    run ls_ named
    assert_success
    assert_line --regexp "^named:'odd name'/1 +\(Größe\)\$"
    assert_line --regexp '^named:f/2 +\(Count, Rest\)$'
    assert_line --regexp '^named:g/3 +\(List, #state, _\)$'
    assert_line --regexp '^named:h/0 +\(\)$'
    assert_line --regexp '^named:k/1 +local \(X\)$'
    assert_equal "${#lines[@]}" 5
    run ls_ named:f/2 --json
    assert_equal "$(jq -c '[.m, .f, .a, .exported, .args]' <<<"$output")" '["named","f",2,true,"Count, Rest"]'
    run ls_ named:f/2 --no-args
    assert_output 'named:f/2'
    node_eval "$NODE" "lists:foreach(fun(B) -> badarg = try binary_to_existing_atom(B) catch error:R -> R end end, [<<\"Gr\", 195, 182, 195, 159, 101>>])" >/dev/null
    no_named
}

@test "ls shows only the functions of a module without debug information" {
    named
    run ls_ named
    assert_success
    assert_line 'named:f/2'
    assert_line --regexp '^named:k/1 +local$'
    no_named
}

@test "ls accepts several selectors and lists each function once" {
    run ls_ 'work:f*/1' work:fac/1
    assert_success
    assert_equal "$(names)" 'work:fac/1 work:fib/1 work:flood/1 '
    run ls_ 'work:_/3'
    assert_equal "$(names)" "$(node_eval "$NODE" '{lines, [{io_lib:format("work:~s/3", [F]), x} || {F, 3} <- lists:sort(work:module_info(functions))]}' |
        sed 's/ x//' | tr '\n' ' ')"
}

@test "--as csv and tsv of ls have a column for each member of --json" {
    run ls_ work:fac/1 'lists:seq/_' --as csv --no-args
    assert_success
    assert_output "node,m,f,a,exported,args
$NODE,lists,seq,2,true,
$NODE,lists,seq,3,true,
$NODE,work,fac,1,true,"
    run ls_ work:fac/1 --as tsv --no-args
    assert_output "$(printf 'node\tm\tf\ta\texported\targs\n%s\twork\tfac\t1\ttrue\t' "$NODE")"
    run -2 ls_ work --json --as csv
}

@test "ls lists every function of the node" {
    local all
    all=$(node_eval "$NODE" 'length([x || M <- erlang:loaded(), {F, _} <- erlang:get_module_info(M, functions), F =/= module_info,
        not lists:prefix("-", atom_to_list(F)), not lists:prefix("etrace_", atom_to_list(M))])')
    ((all > 5000))
    ls_ _ >"$OUT"
    assert_equal "$(sort -u "$OUT" | wc -l)" "$(wc -l <"$OUT")"
    # The node may have loaded more modules between the two counts.
    (($(wc -l <"$OUT") >= all && $(wc -l <"$OUT") < all + 1000))
}

@test "ls ends at once without a message if its pipe closes" {
    run bash -c 'set -o pipefail; "$ETRACE_BIN" ls -n "$0" _ --args | head -n 3' "$NODE"
    assert_success
    assert_equal "${#lines[@]}" 3
}

@test "ls refuses unknown names and suggests a similar one" {
    run ls_ wrk
    assert_failure 5
    assert_output --partial 'there is no module wrk'
    assert_output --partial 'did you mean work?'
    run ls_ work:oen/1
    assert_failure 5
    run ls_ 'work:zz*'
    assert_failure 5
    run ls_ 'zz*:f'
    assert_failure 5
    assert_output --partial 'zz*:f matches no function on the node'
    run ls_ 'zz*:f' --allow-empty
    assert_success
    assert_output ''
    run ls_ 'work:one(1)'
    assert_failure 2
    run "$ETRACE_BIN" ls --no-args
    assert_failure 2
    assert_output --partial 'no functions to list'
}

@test "ls alone lists the nodes" {
    run -0 "$ETRACE_BIN" ls
    assert_line --index 0 --regexp '^NODE .* STATE$'
    assert_line --regexp "^$NODE .* ok" # other suites have other nodes
}

@test "a reader that waits, such as a pager, does not end the session" {
    local pipe
    node_start long # a list that is longer than what ls keeps in memory
    on_node '[code:ensure_loaded(list_to_atom(filename:basename(F, ".beam"))) || A <- [stdlib, compiler, kernel], F <- filelib:wildcard(filename:join([code:lib_dir(A), "ebin", "*.beam"]))], ok'
    mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec {pipe}<>"$BATS_TEST_TMPDIR/pipe"
    ETRACE_DEBUG=wire "$ETRACE_BIN" ls -n "$NODE" _ --json --args >"$BATS_TEST_TMPDIR/pipe" 2>"$ERR" 3>&- {pipe}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    # ls renews its lease while the pipe is full.
    until_true 60 grep -qaF '< reply 4294967295: {ok,pong}' "$ERR" || fail "ls asked for nothing more: $(tail -n 3 "$ERR")"
    child "$TRACER" || fail "ls has ended: $(tail -n 3 "$ERR")"
    exec {pipe}<&- {pipe}<"$BATS_TEST_TMPDIR/pipe"
    cat <&"$pipe" >"$OUT"
    exec {pipe}<&-
    trace_wait
    assert_equal "$status" 0
    assert_equal "$(tail -n 1 "$OUT" | jq -r .node)" "$NODE"
    node_stop "$NODE"
    NODE=$LIVE_NODE
}
