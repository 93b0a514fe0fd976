#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests that etrace removes the sequential trace tokens that its expressions set, and leaves those of others.
# The holders run on the node (tests/lib/holder.erl); timers drive them, so no message takes their tokens.

load ../lib/assert
load ../lib/live

# The cleaner gives a holder of a token half a second to send something. Timers belong to a scheduler, so on a busy host
# the cleaner may use up this time while the scheduler with a holder's timer does not run. With a single scheduler they
# run together.
setup_file() {
    if [[ ${ETRACE_ALL:-} ]]; then live_begin leftover; else live_begin leftover +S 1; fi
    # A holder that loads this module passes its token to the code server, which would then keep it while idle. Load it
    # now.
    node_eval "$LIVE_NODE" 'code:ensure_loaded(seq_trace)'
}
teardown_file() { live_end; }
setup() { live_setup; on_node 'holder:start([a, b, sink])'; }
teardown() {
    node_eval "$LIVE_NODE" 'holder:stop()' >/dev/null
    assert_equal "$(node_eval "$LIVE_NODE" 'holder:labels()')" '[]'
    live_teardown
}

labels() { node_eval "$NODE" 'holder:labels()'; }
count() { node_eval "$NODE" "holder:count($1)"; }
token_of() { node_eval "$NODE" "case process_info(whereis($1), sequential_trace_token) of {_, []} -> none; {_, T} -> element(2, T) end"; }
labels_are() { [[ $(labels) == "$1" ]]; }

seven='work:one(_) -> set_seq_token(label, 7)'

# Gives a the token. a passes it to b by a message, and both send messages for ever.
spread() { on_node 'holder:tell(a, {call, 1}), holder:tell(a, {send, b}), holder:tell(a, tick), holder:tell(b, tick)'; }

@test "no token stays, however the trace ends" {
    janitor='hd(control:companion(janitor))'
    owner='hd(control:companion(owner))'
    # A frozen client loses its lease after ten seconds.
    frozen='freeze "$TRACER"; until_true 30 nobody_there; assert_equal "$(labels)" "[]"; kill -CONT "$TRACER"'
    [[ ${ETRACE_ALL:-} ]] || frozen=
    for end in 'kill -INT "$TRACER"' 'kill -KILL "$TRACER"' 'on_node "exit($owner, kill)"' 'on_node "exit($janitor, kill)"' \
        'on_node "J = $janitor, O = $owner, exit(J, kill), exit(O, kill)"' ${frozen:+"$frozen"}; do
        trace "$seven"
        spread
        assert [ "$(count 7)" -ge 2 ]
        eval "$end"
        until_true 30 gone "$TRACER"
        until_true 30 nobody_there
        assert_equal "$(labels)" '[]'
    done
}

# bats test_tags=each
@test "an ordinary end removes the tokens before etrace exits, and prints nothing about them" {
    trace "$seven"
    spread
    trace_end
    assert_success
    assert_equal "$(labels)" '[]'
    refute_regex "$talk" token
}

@test "the next trace sees no token" {
    trace "$seven"
    spread
    trace_end
    trace --json -P a -P b 'send(_, _) when is_seq_trace()' 'work:one(X) when is_seq_trace()' 'work:two(_, _)'
    on_node 'holder:tell(a, {call, 1}), holder:tell(b, {call, 2})'
    trace_end
    assert_success
    assert_equal "$(json_of summary .shown)" 0
}

@test "the user's own tokens stay, even with the same label" {
    on_node 'holder:tell(b, {own, 7}), holder:start([c]), holder:tell(c, {own, mine})'
    trace "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, tick), holder:tell(b, tick), holder:tell(c, tick)'
    assert_equal "$(token_of a)" 7
    trace_end
    assert_success
    on_node 'holder:tell(b, {send, sink})'
    assert_equal "$(token_of a) $(token_of b) $(token_of c)" 'none 7 mine'
}

@test "etrace says how many processes keep a token because they do nothing" {
    trace --json "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, {spawn, 2})'
    trace_end
    assert_success
    assert_equal "$(count 7)" 3
    assert_equal "$(json_of summary .tokens)" 3
    assert_equal "$(json_of notice '"\(.tag) \(.info)"')" 'tokens {3,0}'
    assert_regex "$talk" '3 processes kept a trace token of this trace; seq_trace:reset_trace\(\)'
}

# bats test_tags=each
@test "a process that sends nothing loses its token when it calls a traced function" {
    trace "$seven" 'work:two(_, _)'
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, {calling, one, 2}), holder:tell(a, {calling, two, 2}), holder:tell(a, tick)'
    assert [ "$(count 7)" -ge 5 ]
    trace_end
    assert_success
    assert_equal "$(labels)" '[]'
    refute_regex "$talk" 'trace token'
}

@test "etrace does not remove a user's token from a process that calls a traced function" {
    on_node 'holder:tell(b, {own, 7}), holder:tell(b, {calling, two, 1}), holder:stop_one(b)'
    trace "$seven" 'work:two(_, _)'
    on_node 'holder:tell(a, {call, 1})' # an idle holder keeps its token, so the cleaner has to set the functions
    trace_end
    assert_success
    assert_regex "$talk" '1 process kept a trace token of this trace'
    assert_equal "$(count 7)" 2
}

@test "text output does not repeat the message about tokens on standard error" {
    trace "$seven"
    on_node 'holder:tell(a, {call, 1})'
    trace_end
    assert_regex "$talk" '1 process kept a trace token of this trace'
    refute_regex "$output" 'trace token'
}

@test "etrace exits and says that tokens may be left if a suspended process delays their removal" {
    trace -P a "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, {spawn, 1}), holder:stop_one(a), spawn(holder, at_work, [suspend])'
    trace_end
    assert_success
    assert_regex "$talk" 'processes may still have trace tokens of this trace, because a process blocked the search for them; seq_trace:reset_trace\(\)'
}

# bats test_tags=long
@test "etrace removes tokens from each node that it traces, and from no other" {
    local other
    node_start second
    other=$NODE
    live_own first
    node_eval "$other" 'work:worker(w), holder:start([b, sink])' >/dev/null
    on_node 'holder:start([a, sink])'
    for nodes in '' "-n $other"; do
        # shellcheck disable=SC2086
        trace $nodes "$seven"
        on_node "holder:tell(a, {call, 1}), holder:tell(a, {send, {b, '$other'}}), holder:tell(a, tick)"
        node_eval "$other" 'holder:tell(b, tick)' >/dev/null
        until_true 30 eval '[[ $(node_eval "$other" "holder:count(7) > 0") == true ]]'
        trace_end
        assert_success
        assert_equal "$(labels)" '[]'
        [[ $nodes ]] || assert_equal "$(node_eval "$other" 'holder:labels()')" '[7]'
    done
    assert_equal "$(node_eval "$other" 'holder:labels()')" '[]'
}

@test "the interactive mode removes the tokens together with the expression that sets them" {
    repl_start -n "$NODE"
    for left in ':drop seven' 'seven: work:one(_)'; do
        repl_line 'other: work:two(_, _)' "seven: $seven"
        until_true 30 eval 'on_node "holder:tell(a, {call, 1})"; [[ $(token_of a) == 7 ]]'
        spread
        repl_line "$left"
        until_true 30 labels_are '[]'
    done
    repl_end
    trace_wait
    assert_success
}

@test "etrace warns at the start about a label that is in use on the node" {
    on_node 'holder:tell(b, {own, 7})'
    trace "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, tick)'
    trace_end
    assert_regex "$talk" '1 process has a trace token with the label 7 already: the trace cannot tell it from its own'
    trace 'work:one(_) -> set_seq_token(label, 8)'
    trace_end
    refute_regex "$talk" 'already'
}

# bats test_tags=each
@test "a queued message does not carry its token further" {
    on_node 'holder:tell(b, {taker, taker, sink})'
    trace -P a "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, {send, taker}), holder:stop_one(a)'
    trace_end
    assert_success
    assert_equal "$(node_eval "$NODE" 'process_info(whereis(taker), {dictionary, took})')" '{{dictionary,took},true}'
    assert_equal "$(labels)" '[]'
}

# bats test_tags=long
@test "thousands of processes lose their tokens" {
    local n=2000
    [[ ${ETRACE_ALL:-} ]] && n=20000
    trace "$seven"
    on_node "holder:tell(a, {call, 1}), holder:tell(a, {ticking, $n}), holder:tell(a, tick)"
    assert [ "$(count 7)" -ge "$n" ]
    trace_end
    assert_success
    # The search has two seconds, which may not suffice for twenty thousand processes that get no processor.
    ((n > 2000)) && grep -q 'may still have trace tokens' "$ERR" && return
    until_true 30 labels_are '[]'
}

# bats test_tags=long
@test "two clients with different labels remove only their own tokens" {
    trace "$seven"
    first=$TRACER
    spread
    on_node 'holder:start([d])'
    trace 'work:two(_, _) -> set_seq_token(label, 17)'
    on_node 'holder:tell(d, two), holder:tell(d, tick)'
    assert_equal "$(token_of d)" 17
    kill -INT "$first"
    until_true 30 gone "$first"
    assert_equal "$(labels)" '[17]'
    trace_end
    assert_equal "$(labels)" '[]'
}

@test "the last of two clients with the same label removes the tokens" {
    trace "$seven"
    first=$TRACER
    trace "$seven"
    spread
    kill -INT "$first"
    until_true 30 gone "$first"
    assert_equal "$(labels)" '[7]'
    trace_end
    assert_equal "$(labels)" '[]'
}

# bats test_tags=long
@test "etrace removes tokens with labels from variables, and tokens without a label" {
    on_node 'holder:tell(b, {own, 5}), holder:tell(b, tick)'
    trace 'work:one(X) -> set_seq_token(label, X)' 'work:two(_, _) -> set_seq_token(send, true)'
    on_node 'holder:tell(a, {call, {order, 12}}), holder:tell(a, tick), holder:start([d]), holder:tell(d, two), holder:tell(d, tick)'
    assert_regex "$(labels)" '^\[0,5,\{order,12\}\]$'
    trace_end
    assert_success
    on_node 'holder:tell(b, {send, sink})'
    assert_equal "$(labels)" '[5]'
}

@test "etrace does not remove a user's token that gets a flag" {
    on_node 'holder:tell(b, {own, 0}), holder:tell(b, tick)'
    trace 'work:one(_) -> set_seq_token(send, true)'
    on_node 'holder:tell(b, {call, 1})'
    trace_end
    on_node 'holder:tell(b, {send, sink})'
    assert_equal "$(labels)" '[0]'
}

# bats test_tags=long
@test "another process takes over if somebody kills the one that removes the tokens" {
    trace "$seven"
    spread
    on_node 'P = holder:cleaner(), R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end'
    until_true 30 node_eval "$NODE" 'is_pid(holder:cleaner())' >/dev/null
    trace_end
    assert_success
    assert_equal "$(labels)" '[]'
}

@test "etrace says that tokens may be left if somebody kills that process at work" {
    trace -P a "$seven"
    on_node 'holder:tell(a, {call, 1}), holder:tell(a, {spawn, 1}), holder:stop_one(a), spawn(holder, at_work, [kill])'
    trace_end
    assert_success
    assert_regex "$talk" 'processes may still have trace tokens of this trace'
}

# bats test_tags=each
@test "the fallback tracer removes the tokens" {
    trace --fallback "$seven"
    spread
    trace_end
    assert_success
    assert_equal "$(labels)" '[]'
}
