#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests filter programs: the NIF decides about calls by their arguments instead of a match specification. The events are
# the same, and a call that a program rejects is counted nowhere.

load ../lib/assert
load ../lib/live
bats_require_minimum_version 1.5.0

setup_file() { live_share programs; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Asserts that the NIF decides for these functions (true: the session has an empty specification), or that a match
# specification does (false).
decided_by() { # true|false NAME/ARITY...
    local by=$1 function
    shift
    for function in "$@"; do
        on_node "[_ | _] = [S || {S, _, _} <- [proplists:get_value(session, D) || P <- processes(), {dictionary, D} <- [process_info(P, dictionary)]],
            {_, Ms} <- [trace:info(S, {work, ${function%/*}, ${function#*/}}, match_spec)], is_list(Ms), (Ms =:= []) =:= $by]"
    done
}

calls() { json_of call '"\(.f)(\(.args | join(",")))"' | tr '\n' ' '; }

# bats test_tags=each
@test "the NIF decides about a call where it can, and shows the same calls as a match specification" {
    trace --json 'work:two({ok, [1, error | T], #{<<"k">> => V}}, _) when is_list(T), V < 3; V == "ab"' 'work:one(exit) -> drop; (X) when is_atom(X)' \
        'work:pair(error, ...)' 'work:fac(N) when N > 1.5'
    decided_by true two/2 one/1 pair/2 fac/1
    on_node '[work:two(A, ok) || A <- [{ok, [1, error], #{<<"k">> => 2}}, {ok, [1, error], #{<<"k">> => 3}}, {ok, [1, error | ok], #{<<"k">> => "ab"}},
        {ok, [1.0, error], #{<<"k">> => 2}}, {ok, [1], #{<<"k">> => 2}}, {ok, [1, error], #{}}, {ok, []}, ok]],
        [work:one(X) || X <- [exit, error, "c", {}, ok]], work:pair(ok, 1), work:pair(error, 2), work:fac(4)'
    trace_end
    assert_success
    assert_equal "$(calls)" 'two({ok,[1,error],#{<<"k">> => 2}},ok) two({ok,[1,error|ok],#{<<"k">> => "ab"}},ok) one(error) one(ok) pair(error,2) fac(4) fac(3) fac(2) '
    assert_equal "$(totals)" '8 events'
}

@test "a call that a program rejects is neither lost nor counted" {
    # The rate is far below the number of calls.
    traced --json --rate 10 'work:one(5000)' -- '[work:one(X) || X <- lists:seq(1, 20000)]'
    assert_success
    assert_equal "$(calls)" 'one(5000) '
    assert_equal "$(totals)" '1 event'
    traced --json --limit 3 'work:one(X) when X > 19990' -- '[work:one(X) || X <- lists:seq(1, 20000)]'
    assert_success
    assert_equal "$(calls)" 'one(19991) one(19992) one(19993) '
    # The node counts the calls instead of sending events.
    trace -c 'work:one(X) when X > 90' 'work:two(exit, _)'
    decided_by true one/1 two/2
    on_node '[work:one(X) || X <- lists:seq(1, 100)], work:two(exit, 1), work:two(1, exit), work:two(exit, 2)'
    trace_end
    assert_success
    assert_equal "$(awk 'NR > 1 && !/^[*]/ { print $NF, $1 }' "$OUT" | sort)" $'work:one/1 10\nwork:two/2 2'
}

@test "each function has its own program, whatever its arity" {
    trace --json 'work:_(exit, ...)' 'work:one(error)'
    # Two probes select one/1, so the specification must tell which probe an event belongs to.
    decided_by false one/1
    decided_by true two/2 three/3 pair/2
    on_node 'work:one(exit), work:one(error), work:one(ok), work:two(exit, 1), work:two(1, exit), work:three(exit, 1, 2), work:three(1, exit, 2), work:pair(exit, 1)'
    trace_end
    assert_success
    assert_equal "$(calls)" 'one(exit) one(error) two(exit,1) three(exit,1,2) local(exit,1,2) pair(exit,1) '
}

@test "a match specification decides about calls with return_to or arity" {
    trace --json 'work:two(exit, _) -> return_to'
    decided_by false two/2
    trace_end
    trace --json 'work:two(exit, _)' 'work:three(_, _, _) -> enable(return_to)'
    decided_by false two/2
    trace_end
    trace --json 'work:two(exit, _) -> arity'
    decided_by false two/2
    on_node 'work:two(exit, 1), work:two(1, exit)'
    trace_end
    assert_success
    assert_equal "$(json_of call .f)" two
}

# bats test_tags=each
@test "two clients have their own programs, and a reloaded module gets its program again" {
    trace --json 'work:one(exit)'
    local first=$TRACER out=$OUT err=$ERR
    OUT=$OUT.2 ERR=$ERR.2
    trace --json 'work:one(error)'
    on_node 'work:one(exit), work:one(error), work:one(ok)'
    trace_end
    assert_success
    assert_equal "$(calls)" 'one(error) '
    TRACER=$first OUT=$out ERR=$err
    on_node '{_, Binary, File} = code:get_object_code(work), code:purge(work), {module, work} = code:load_binary(work, File, Binary)'
    until_true 30 grep -q rearmed "$ERR"
    decided_by true one/1
    on_node 'work:one(error), work:one(exit), work:one(ok)'
    trace_end
    assert_success
    assert_equal "$(calls)" 'one(exit) one(exit) '
    # w still runs the old version of the module. Restart it.
    on_node 'work:stop(w), code:purge(work), work:worker(w)'
}

# bats test_tags=long
@test "a rejected call of a module that is loaded later uses neither --limit nor --rate" {
    local at compiled='Forms = [begin {ok, Ts, _} = erl_scan:string(L), {ok, F} = erl_parse:parse_form(Ts), F end ||
        L <- ["-module(later).", "-export([f/1]).", "f(X) -> X."]], {ok, later, Code} = compile:forms(Forms)'
    on_node "$compiled"
    live_snapshot # the node has loaded the compiler and keeps it
    for at in '--limit 2' '--rate 5'; do
        # shellcheck disable=SC2086
        trace --json --allow-empty $at 'work:one/1' 'later:f(X) when X > 100'
        on_node "$compiled"', {module, later} = code:load_binary(later, "later", Code)'
        until_true 30 grep -q 'rearmed later' "$ERR"
        on_node '[later:f(N) || N <- lists:seq(1, 20)], work:one(a), later:f(101)'
        [[ $at == --limit* ]] || kill -INT "$TRACER"
        trace_wait
        assert_success
        assert_equal "$(calls)" 'one(a) f(101) '
        assert_equal "$(totals)" '2 events · 1 reload (calls may be missing)'
        on_node 'code:purge(later), code:delete(later), code:purge(later)'
    done
}
