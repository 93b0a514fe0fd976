#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace sessions` and `etrace info`: the trace sessions of a node, what each traces, and how to destroy one.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_share sessions; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown
}

etrace() {
    local command=$1
    shift
    "$ETRACE_BIN" "$command" -n "$NODE" "$@"
}

# theirs EXPR: evaluates EXPR in process w, with S bound to a new trace session of w that is not etrace's.
theirs() { on_node "work:ask(w, fun() -> S = trace:session_create(theirs, self(), []), put(theirs, S), $1 end)"; }
# Ends that session, and removes its trace messages from w. They contain what processes were started with, which can
# refer to our library.
theirs_end() {
    on_node "work:ask(w, fun() -> S = erase(theirs), trace:session_destroy(S),
        (fun Forget() -> receive M when element(1, M) =:= trace -> Forget() after 0 -> ok end end)(), catch erlang:garbage_collect() end)"
}
theirs_id() { node_eval "$NODE" 'element(2, lists:keyfind(theirs, 1, trace:session_info(all)))'; }

session() { jq -c "select(.name == \"$1\") | $2" <<<"$output"; }

# bats test_tags=each
@test "an untraced node has only the legacy session" {
    run etrace sessions
    assert_success
    assert_line --regexp '^ +-  legacy +erlang:trace/3 etc. · traces nothing$'
    assert_equal "${#lines[@]}" 1
}

# bats test_tags=each
@test "sessions lists the owner of each session and what it traces" {
    theirs "trace:function(S, {work, one, 1}, true, [local]), trace:process(S, self(), true, [call, send]),
        trace:send(S, [{['_', '_'], [], []}], []), trace:process(S, new_processes, true, [procs])"
    trace 'work:two/2' 'work:three/3'
    run etrace sessions --json
    assert_success
    assert_equal "$(session theirs '[.functions, .some_functions, .processes >= 1, .flags, .events]')" \
        '[1,["work:one/1"],true,["call","procs","send"],["send","new_processes"]]'
    assert_equal "$(session theirs '.tracer | test("<0.[0-9]+.0>\\(w\\)")')" true
    assert_equal "$(session theirs .id)" "$(theirs_id)"
    assert_equal "$(session theirs 'has("client")')" false
    assert_equal "$(session etrace '[.functions, (.processes > 20), .flags, (.client | length > 3), (.age_s >= 0)]')" '[2,true,["call"],true,true]'
    assert_equal "$(session legacy '[.id, .functions]')" '[null,0]'
    run etrace sessions
    assert_line --regexp "^ +$(theirs_id)  theirs +1 function: work:one/1 · [0-9]+ process(es)?(: .*)? · flags call procs send · send · new_processes · to <0.[0-9]+.0>\(w\)$"
    assert_line --regexp ' etrace +of [^ ]+@[^ ]+ · for .* · 2 functions: .* processes · flags call'
    trace_end
    theirs_end
}

@test "--as csv and tsv of sessions have a column for each member of --json" {
    theirs "trace:function(S, {work, one, 1}, true, [local]), trace:process(S, self(), true, [call, send])"
    run etrace sessions --as csv
    assert_success
    assert_line -n 0 node,id,name,client,age_s,functions,processes,ports,some_functions,some_processes,flags,events,tracer,complete
    assert_line --regexp "^$NODE,$(theirs_id),theirs,,,1,1,0,work:one/1,[^,]+,\"call, send\",send,<0\.[0-9]+\.0>\(w\),true$"
    assert_line --regexp "^$NODE,,legacy,,,0,0,0,,,,,,true$"
    run etrace sessions --as tsv
    assert_line -n 0 --regexp $'^node\tid\tname\t'
    theirs_end
}

@test "sessions breaks its lines at blanks on a narrow terminal" {
    terminal 40 24 "$ETRACE_BIN sessions -n $NODE; exec cat"
    await '^ +-  legacy +erlang:trace/3 etc. ·$'
    await '^ +traces nothing$'
}

@test "sessions counts ports, and shows the client of a session of system events" {
    theirs "[trace:port(S, P, true, [send]) || P <- lists:sublist(erlang:ports(), 2)]"
    run etrace sessions
    theirs_end
    assert_line --regexp "theirs +2 ports · flags send( · send)? · to "
    [[ $ETRACE_OTP -ge 28 ]] || return 0
    trace '@long_gc(5000)'
    run etrace sessions --json
    assert_equal "$(session etrace 'select(.events == ["system"]) | [(.client | length > 3), .age_s >= 0]')" '[true,true]'
    assert_equal "$(session etrace .client | sort -u | wc -l)" 1
    trace_end
}

# bats test_tags=each
@test "sessions and info show what the legacy functions trace" {
    on_node 'erlang:trace_pattern({work, one, 1}, true, [local]), erlang:trace(whereis(w), true, [call, {tracer, whereis(w)}])'
    run etrace sessions --json
    assert_equal "$(session legacy '[.functions, .processes, .flags]')" '[1,1,["call"]]'
    run etrace info work:one/1 w
    assert_success
    assert_line --regexp '^work:one/1$'
    assert_line --regexp '^  session legacy$'
    assert_line --regexp '^    traced +local$'
    assert_line --regexp '^    flags +call$'
    on_node 'erlang:trace(all, false, [all]), erlang:trace_pattern({work, one, 1}, false, [local])'
}

# bats test_tags=each
@test "--destroy ends one session, and its etrace reports it" {
    local id
    trace work:one/1
    id=$(node_eval "$NODE" 'hd([N || {etrace, N} <- trace:session_info(all)])')
    run etrace sessions --destroy "$id"
    assert_failure 2
    assert_output --partial 'there is no terminal'
    run etrace sessions --destroy "$id" --yes
    assert_success
    assert_output --partial "session $id on $NODE is destroyed"
    trace_wait
    assert_failure 1
    assert_regex "$talk" 'somebody on the node has destroyed the trace session'
    run etrace sessions --destroy "$id" --yes
    assert_failure 5
    assert_output --partial "there is no trace session $id on $NODE"
    run etrace sessions --destroy legacy --yes
    assert_failure 2
    run etrace sessions --destroy zero --yes
    assert_failure 2
    run etrace sessions words
    assert_failure 2
}

@test "--destroy asks on a terminal, and only y confirms" {
    local id answer
    theirs 'ok'
    id=$(theirs_id)
    terminal 120 24 "PS1='ready> ' exec bash --norc --noprofile"
    for answer in n y; do
        await 'ready>'
        entered clear
        await_not status
        entered "$ETRACE_BIN sessions -n $NODE --destroy $id; echo st''atus \$?"
        await 'destroy it\? \[y/N\]'
        entered "$answer"
        await 'status 0'
        if [[ $answer == n ]]; then
            assert_equal "$(theirs_id)" "$id"
        else
            assert_equal "$(node_eval "$NODE" 'lists:keyfind(theirs, 1, trace:session_info(all))')" false
        fi
    done
    theirs_end
}

@test "the question of --destroy keeps its connection, and Ctrl-C or the end of the node answers it" {
    local id
    theirs 'ok'
    id=$(theirs_id)
    terminal 160 24 "PS1='ready> ' exec bash --norc --noprofile"
    await 'ready>'
    entered "ETRACE_DEBUG=wire $ETRACE_BIN sessions -n $NODE --destroy $id; echo st''atus \$?"
    await 'destroy it\? \[y/N\]'
    await '< reply 4294967295: \{ok,pong\}' # etrace renews its lease while the question waits
    keys C-c
    await 'etrace: interrupted: the session was not destroyed'
    await 'status 1'
    assert_equal "$(theirs_id)" "$id"
    entered clear
    await_not status
    entered "$ETRACE_BIN sessions -n $NODE --destroy $id; echo st''atus \$?"
    await 'destroy it\? \[y/N\]'
    keys C-d
    await 'etrace: the session was not destroyed'
    await 'status 0'
    assert_equal "$(theirs_id)" "$id"
    theirs_end
    live_own gone
    theirs 'ok'
    entered clear
    await_not status
    entered "$ETRACE_BIN sessions -n $NODE --destroy $(theirs_id); echo st''atus \$?"
    await 'destroy it\? \[y/N\]'
    node_stop "$NODE"
    await "^etrace: $NODE: the node closed the connection"
    await 'status 1'
}

# bats test_tags=each
@test "info shows the session and the counters of a function" {
    theirs 'trace:function(S, {work, one, 1}, true, [local]),
        trace:function(S, {work, one, 1}, true, [call_count, call_time]), trace:process(S, self(), true, [call]), work:one(1), work:one(2)'
    run etrace info work:one/1
    assert_success
    assert_line -n 0 'work:one/1'
    assert_line -n 1 "  session theirs $(theirs_id)"
    assert_line --regexp '^    traced +local$'
    assert_line --regexp '^    call_count +2$'
    assert_line --regexp '^    call_time +2 calls, [0-9.]+[nmu]?s in 1 process$'
    refute_line --partial 'meta'
    run etrace info --json work:one/1
    assert_equal "$(jq -c '[.target, .session, .m, .f, .a, .traced, .meta, .call_count, .call_memory, .call_time.calls, .call_time.largest[0].name]' <<<"$output")" \
        '["work:one/1","theirs","work","one",1,"local",false,2,false,2,"w"]'
    theirs_end
}

@test "info takes a pid in the syntax of Elixir" {
    local pid
    pid=$(node_eval "$NODE" 'whereis(w)')
    run etrace info "#PID$pid"
    assert_success
    assert_output --partial "$pid"
}

@test "info prints match specifications as terms" {
    theirs "trace:function(S, {work, one, 1}, [{['\$1'], [{is_atom, '\$1'}], [{return_trace}]}], [local]),
        trace:function(S, {work, two, 2}, [], [meta]), trace:recv(S, [{['_', '_', {a, '_'}], [], []}], [])"
    run etrace info work:one/1 receive work:two/2
    assert_success
    assert_line "    match_spec       [{['\$1'],[{is_atom,'\$1'}],[{return_trace}]}]"
    assert_line "    match_spec       [{['_','_',{a,'_'}],[],[]}]"
    assert_line --regexp '^    meta +<0\.[0-9]+\.0>\(w\)$'
    run etrace info 'work:t*'
    assert_success
    assert_line 'work:two/2'
    assert_line 'work:three/3  nothing traces it'
    theirs_end
}

@test "info shows send and receive only for a session whose flags trace messages" {
    theirs 'trace:process(S, self(), true, [send])'
    run etrace sessions --json
    assert_equal "$(session theirs .events)" '["send"]'
    run etrace info send receive
    assert_line --regexp '^    match_spec +true$'
    assert_line 'receive  nothing traces it'
    theirs_end
    theirs 'trace:process(S, self(), true, [call])'
    run etrace sessions --json
    assert_equal "$(session theirs .events)" "[]"
    run etrace info send
    assert_line 'send  nothing traces it'
    theirs_end
}

@test "info shows processes, ports, messages, new processes, on_load and system events" {
    theirs 'trace:process(S, self(), true, [call, procs]), trace:process(S, new, true, [send]), trace:function(S, on_load, true, [local]),
        trace:port(S, hd(erlang:ports()), true, [ports])'
    local pid port
    pid=$(node_eval "$NODE" 'whereis(w)')
    port=$(node_eval "$NODE" 'hd(erlang:ports())')
    run etrace info "$pid" "$port" new new_processes new_ports on_load send receive
    assert_success
    assert_line "$pid(w)"
    assert_line --regexp '^    flags +(call procs|procs call)$'
    assert_line --regexp '^    tracer +<0\.[0-9]+\.0>\(w\)$'
    assert_line --regexp '^    flags +ports$'
    assert_line new
    assert_line --regexp '^    flags +send$'
    assert_line on_load
    assert_line --regexp '^    traced +local$'
    # The flags of the session are shown. The specification of `send` is the default of every session.
    assert_line send
    assert_line --regexp '^    match_spec +true$'
    assert_line 'receive  nothing traces it'
    if node_eval "$NODE" 'true = erlang:function_exported(trace, system, 3)' >/dev/null 2>&1; then
        on_node 'work:ask(w, fun() -> trace:system(get(theirs), long_gc, 500) end)'
        run etrace info system
        assert_line --regexp '^    long_gc +500$'
    else
        run etrace info system
        assert_success
        assert_line 'system  nothing traces it'
    fi
    theirs_end
}

@test "info refuses bad targets, with a hint for processes and ports" {
    local target
    for target in '<0.99999.0>' '#Port<0.99999>' nosuchname; do
        run etrace info "$target"
        assert_failure 5
        assert_line -n 1 --regexp '^hint: '
    done
    for target in nosuchmodule:f/1 'work:nosuch/1' 'zz*:f/1'; do
        run etrace info "$target"
        assert_failure 5
        assert_equal "${#lines[@]}" 1
    done
    run etrace info '_:_'
    assert_failure 2
    assert_output --partial 'functions are selected'
    run etrace info 'work:one(X) when X > 1'
    assert_failure 2
    run "$ETRACE_BIN" info
    assert_failure 2
}
