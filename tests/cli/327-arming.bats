#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests requests to arm that arrive while the worker is busy with another one: each request gets an answer.

load ../lib/assert
load ../lib/live
bats_require_minimum_version 1.5.0

setup_file() { live_share arming; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Sets Owner and Session. Send() suspends the worker until the owner has read all requests that Send() sends.
OWNER='{Owner, Session} = hd([{P, S} || P <- processes(), {dictionary, D} <- [process_info(P, dictionary)],
    {S, _, _} <- [proplists:get_value(session, D)]])'
REQUESTS='Arm = fun(Function) -> {arm, #{flags => [call], probes => [#{id => 0, type => call, scope => local, match_spec => {any, term_to_binary(true)},
        select => [{{name, <<"work">>}, {name, Function}, 0, -1}]}]}} end,
    Read = fun Read() -> process_info(Owner, [message_queue_len, status]) =:= [{message_queue_len, 0}, {status, waiting}]
        orelse begin timer:sleep(1), Read() end end,
    Send = fun(Requests) -> Worker = control:worker_hold(),
        [Owner ! {request, 4000000000 + N, term_to_binary(R)} || {N, R} <- lists:enumerate(Requests)], Read(),
        erlang:resume_process(Worker) end'

traced_is() { on_node "$OWNER, {traced, $2} = trace:info(Session, {work, $1, 1}, traced)"; }

@test "a request that waits behind a refused one is armed" {
    trace work:one/1
    on_node "$OWNER, $REQUESTS, Send([Arm(<<\"no_such_function\">>), Arm(<<\"fac\">>)])"
    until_true 10 traced_is fac local
    trace_end
}

@test "a disarm cancels waiting requests, and a later request is armed" {
    trace work:one/1
    on_node "$OWNER, $REQUESTS, Send([Arm(<<\"fac\">>), Arm(<<\"one\">>), disarm])"
    until_true 10 traced_is one false
    traced_is fac false
    on_node "$OWNER, $REQUESTS, Send([Arm(<<\"fac\">>)])"
    until_true 10 traced_is fac local
    traced_is one false
    trace_end
}

@test "the tracer rejects the state of a disarmed session, and the next session is another one" {
    trace work:one/1
    run -0 node_eval "$NODE" "$OWNER, {tracer, {M, State}} = trace:info(Session, whereis(w), tracer),
        trace = M:enabled(trace_status, State, whereis(w)),
        Owner ! {request, 4000000001, term_to_binary(disarm)},
        (fun Go() -> case M:enabled(trace_status, State, whereis(w)) of remove -> ok; trace -> erlang:yield(), Go() end end)(),
        {_, _, Weak} = lists:keyfind(Owner, 1, [{P, D, S} || P <- processes(), {dictionary, D} <- [process_info(P, dictionary)], {S, _, _} <- [proplists:get_value(session, D)]]),
        Weak =/= Session"
    assert_output true
    trace_end
}
