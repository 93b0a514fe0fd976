#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace check`: it finds each fault of tests/lib/ill.erl, names the processes, and reports nothing else; and
# nothing once the node is healed.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/ticker

setup_file() {
    live_begin check
    export POOLS
    POOLS=$(node_dir "$NODE")
    "$ETRACE_ERLC" -o "$POOLS" "$ETRACE_ROOT"/tests/lib/pools/*.erl
    on_node "code:add_patha(\"$POOLS\")"
    # These faults load modules, make atoms, and start a resolver of the kernel that stays.
    on_node '[ill:heal(ill:make(F)) || F <- [remote, mnesia_lock, alarm, starting, poolboy_like, dbconnection_like, repositories, two_pools, nimble_like, worker_pool]]'
    node_heard "$NODE"
    timeout 60 "$ETRACE_BIN" check -n "$NODE" >/dev/null
}
teardown_file() { live_end; }
setup() {
    longer=()
    live_setup
}
teardown() {
    NODE=$LIVE_NODE on_node 'whereis(ill_keeper) =:= undefined orelse ill:heal(ill_keeper)' || true
    node_heard "$LIVE_NODE"
    live_teardown
}

check() { run --separate-stderr timeout 60 "$ETRACE_BIN" check -n "$NODE" "${longer[@]}" "$@"; }

# check as JSON, until it has a finding of the KIND, or else knows all that it asked for. A busy machine may keep the node
# from answering in time.
check_known() { until_true 20 knows "$1" || true; } # [KIND]
knows() {
    check --json
    [[ ($1 && $output == *"\"kind\":\"$1\""*) || ! $output =~ ' did not answer in time about its '|' suspects were not looked at in time' ]]
}

# found FAULT [KIND...]: check reports the fault with the kind and the names of ill:faults(), and no finding of another
# kind except the KINDs, which are consequences of the fault.
found() {
    local fault=$1 kind name others
    local -a expected
    shift
    # The answer is an Erlang list of atoms: [Kind | Names].
    read -ra expected < <(node_eval "$NODE" "ill:expected($fault)" | tr ',[]' '   ')
    kind=${expected[0]}
    check_known "$kind"
    [[ $status -eq 12 ]] || fail "$fault: status $status, expected a finding of the kind $kind: $output $stderr"
    for name in "${expected[@]:1}"; do
        jq -se --arg kind "$kind" --arg name "$name" \
            'any(.[]; .type == "finding" and .kind == $kind and ("\(.name) \(.text)" | contains($name)))' <<<"$output" >/dev/null ||
            fail "$fault: no finding of the kind $kind names $name: $output"
    done
    jq -se --arg kind "$kind" 'any(.[]; .type == "finding" and .kind == $kind)' <<<"$output" >/dev/null ||
        fail "$fault: no finding of the kind $kind: $output"
    others=$(jq -r 'select(.type == "finding" and .severity != "note") | .kind' <<<"$output" | grep -vxF "$(printf '%s\n' "$kind" "$@")") || true
    [[ ! $others ]] || fail "$fault: findings of other kinds: $output"
    jq -se '.[-1] as $sum | $sum.type == "check" and $sum.findings == (map(select(.type == "finding" and .severity != "note")) | length)' <<<"$output" >/dev/null ||
        fail "$fault: the last line does not count the findings: $output"
}

healthy() {
    local notes='"vm"'
    # OTP 27 does not trace what a longer check traces.
    [[ $ETRACE_OTP != 27 || ! ${longer[*]} ]] || notes+=', "unknown"'
    check_known ''
    [[ $status -eq 0 ]] || fail "the node is healthy, but the status is $status: $output $stderr"
    jq -se "map(select(.kind | IN($notes) | not)) | length == 1 and .[0].type == \"check\" and .[0].findings == 0" <<<"$output" >/dev/null ||
        fail "the node is healthy: $output"
}

# ill FAULT [KIND...]: the fault is found, and nothing once the node is healed. KINDs are its consequences.
ill() {
    on_node "ill:make($1)"
    found "$@"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}

# now_and_then FAULT [KIND...]: a check does not find the fault, and a longer one does. KINDs are its consequences.
now_and_then() {
    local kind
    kind=$(node_eval "$NODE" "hd(ill:expected($1))")
    on_node "ill:make($1)"
    check_known ''
    jq -se --arg kind "$kind" 'all(.[]; .kind != $kind)' <<<"$output" >/dev/null || fail "a short check finds $1: $output"
    longer=(--for 5s)
    if [[ $ETRACE_OTP == 27 ]]; then
        check_known ''
        jq -se 'any(.[]; .kind == "unknown" and (.text | contains("need OTP 28")))' <<<"$output" >/dev/null || fail "$output"
    else
        found "$@"
    fi
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}

# own FAULT [FLAGS...]: the same on a node with these flags. Its atoms stay, so the node is not healed.
own() {
    local fault=$1
    shift
    live_own "$fault" "$@"
    on_node "ill:make($fault)"
    found "$fault"
}

# The fault keeps etrace from attaching to the node. The message says so.
unreachable() { # FAULT MESSAGE
    on_node "ill:make($1)"
    check
    assert_failure 3
    assert_regex "$stderr" "$2"
}
ill_unreachable() {
    unreachable "$@"
    on_node 'ill:heal(ill_keeper)'
    healthy
}
own_unreachable() { # FAULT MESSAGE FLAG...
    live_own "$1" "${@:3}"
    unreachable "$1" "$2"
}

@test "a node without a fault has no finding" {
    healthy
    check
    assert_success
    refute_line --regexp '^!'
}

@test "a longer check traces a healthy node, finds nothing, and leaves the sessions of others alone" {
    longer=(--for 1s)
    on_node 'register(foreign, spawn(fun() ->
        S = trace:session_create(foreign, self(), []),
        trace:process(S, all, true, [garbage_collection, '"'receive'"']),
        (fun Drain() -> receive stop -> trace:session_destroy(S); _ -> Drain() end end)()
    end))'
    foreign() { on_node 'S = [S || {foreign, _} = S <- trace:session_info(all)], [{flags, [_, _]}] = [trace:info(X, whereis(code_server), flags) || X <- S]'; }
    until_true 20 foreign
    healthy
    foreign
    jq -se ".[-1].traced_us >= $([[ $ETRACE_OTP == 27 ]] && echo 0 || echo 1000000)" <<<"$output" >/dev/null || fail "$output"
    on_node 'R = monitor(process, foreign), foreign ! stop, receive {_, R, _, _, _} -> ok end'
}

@test "a version of the VM with known faults is a note" {
    local REPLY fault=GH-10651
    node_ask "$NODE" '[list_to_integer(N) || N <- string:lexemes(erlang:system_info(version), ".")] < [15, 2, 7, 6]'
    check
    assert_success
    if [[ $REPLY == true ]]; then assert_line --regexp "^\. .*$fault"; else refute_output --partial 'known faults'; fi
    check --json
    assert_success
    assert_equal "$(jq -s 'any(.[]; .kind == "vm" and .severity == "note")' <<<"$output")" "$REPLY"
}

@test "notes say how many suspects there are beside those that check looks at" {
    on_node 'ill:make(many_suspects)'
    check
    assert_failure 12
    assert_line --regexp '^\. +20 processes have at least 100 messages: the 6 with the most messages were looked at +etrace ps .*--sort queue$'
    assert_line --regexp '^\. +20 processes are suspended by sys: the 4 with the most messages were looked at +etrace ps '
    assert_line --regexp '^\. +more than 8 processes keep others waiting: only those for which most wait were looked at$'
    check --json
    assert_failure 12
    assert_equal "$(jq -rs 'map(select(.severity == "note" and (.text | contains("were looked at"))) | .kind) | unique | join(" ")' <<<"$output")" unknown
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}

# bats test_tags=long
@test "a hundred thousand processes at work are no finding, and the questions delay no other process" {
    live_own crowd +S 1 +P 300000
    on_node '[spawn(work, pace, [1000000, 3600000]) || _ <- lists:seq(1, 80000)],
        [spawn(work, pace, [1000000, 2000 + N rem 1000]) || N <- lists:seq(1, 20000)], ok'
    # The node grows until each process has its heap.
    calm() { check --json && [[ $(jq -s '.[-1].findings' <<<"$output") == 0 ]]; }
    until_true 60 calm || fail "$output$stderr"
    ticking
    live_snapshot
    undisturbed check --json
    [[ $status -eq 0 ]] || fail "$output"
    jq -se 'all(.[]; .type == "check" or .severity == "note") and .[-1].processes > 100000' <<<"$output" >/dev/null || fail "$output"
    assert_clean --atoms 0 "$BEFORE" "$NODE"
    on_node 'Me = self(), Deaf = [spawn(fun() -> Me ! up, receive never -> ok end end) || _ <- lists:seq(1, 20)],
        [receive up -> ok end || _ <- Deaf], [P ! N || P <- Deaf, N <- lists:seq(1, 200)], ok'
    check --json
    assert_failure 12
    jq -se 'map(select(.kind == "unmatched")) | length == 6' <<<"$output" >/dev/null || fail "$output"
    jq -se 'any(.[]; .kind == "unknown" and (.text | startswith("20 processes have at least 100 messages: the 6 ")))' <<<"$output" >/dev/null || fail "$output"
}

@test "a critical finding begins with two exclamation marks, a warning with one, and a command can be pasted" {
    on_node 'ill:make(deadlock)'
    check
    assert_failure 12
    assert_line --regexp '^!! .*ill_one.*ill_two.* etrace why '
    on_node 'ill:heal(ill_keeper), ill:make(unmatched)'
    check
    assert_failure 12
    assert_line --regexp '^! .*ill_deaf.* etrace '
}

@test "CSV has the findings only, and check takes no word" {
    on_node 'ill:make(alarm)'
    check --as csv
    assert_failure 12
    assert_line -n 0 node,severity,kind,pid,name,text,command
    assert_line -n 1 --regexp "^$NODE,critical,alarm,,,.*disk_almost_full"
    assert_equal "$(grep -vc ',note,' <<<"$output")" 2
    on_node 'ill:heal(ill_keeper)'
    check ill_one
    assert_failure 2
    assert_regex "$stderr" "etrace why looks at one process"
}

# bats test_tags=long
# Prints the ms of processor time that the node has used.
cpu_ms() { sed 's/.*) //' "/proc/$(<"$(node_dir "$NODE")/pid")/stat" | awk '{ print ($12 + $13) * 10 }'; }

@test "check says how many processors the node uses, at most what the system counts" {
    local before
    on_node 'spawn(fun() -> register(busy, self()), (fun F() -> F() end)() end), ok'
    before=$(cpu_ms)
    check --json
    # The looks of check may last longer than from its first answer to its last one.
    jq -ne --argjson ms "$(($(cpu_ms) - before))" --argjson check "$(jq -c 'select(.type == "check")' <<<"$output")" \
        '$check.processors > 0 and $check.processors * $check.elapsed_us / 1000 <= $ms + 50' || fail "$before, $(cpu_ms): $output"
    check
    assert_line --regexp ' uses [0-9]+\.[0-9] processors · run queue '
    on_node 'exit(whereis(busy), kill)'
}

@test "check looks at two nodes together, and fails if a node is not there" {
    check -n nobody@127.0.0.1
    assert_failure 3
    live_own second
    check -n "$LIVE_NODE" --json
    assert_success
    assert_equal "$(jq -rs 'map(select(.type == "check").node) | sort | join(" ")' <<<"$output")" "$(printf '%s\n' "$NODE" "$LIVE_NODE" | sort | paste -sd ' ')"
    check -n "$LIVE_NODE" --as csv
    assert_success
    assert_equal "$(grep -c '^node,severity,' <<<"$output")" 1
}

# unchecked NODE: prints why check has not looked at the node, from its JSON.
unchecked() { jq -r --arg node "$1" 'select(.type == "unchecked" and .node == $node).error' <<<"$output"; }

@test "nodes that are not there or refuse the cookie do not hide the findings about the others" {
    local named=(-n nobody@127.0.0.1 -n "$LIVE_NODE")
    on_node 'ill:make(alarm)'
    live_own refuses
    on_node 'erlang:set_cookie(node(), other)'
    check "${named[@]}"
    assert_failure 3
    assert_line --regexp "^$LIVE_NODE · OTP "
    assert_line --regexp '^!! alarm: '
    assert_regex "$stderr" 'cannot connect to nobody@127.0.0.1: epmd '
    assert_regex "$stderr" "cannot connect to $NODE: the cookie does not match"
    check "${named[@]}" --json
    assert_failure 3
    assert_equal "$(jq -r 'select(.type == "check") | "\(.node) \(.findings)"' <<<"$output")" "$LIVE_NODE 1"
    assert_regex "$(unchecked nobody@127.0.0.1)" 'cannot connect to nobody@127.0.0.1: epmd '
    assert_regex "$(unchecked "$NODE")" 'the cookie does not match'
    check "${named[@]}" --as csv
    assert_failure 3
    assert_line -n 0 node,severity,kind,pid,name,text,command
    assert_line -n 1 --regexp "^$LIVE_NODE,critical,alarm,"
    NODE=$LIVE_NODE on_node 'ill:heal(ill_keeper)'
}

# bats test_tags=long
@test "with --cluster, nodes that freeze, leave or refuse the cookie do not hide the findings about the others" {
    local here frozen freezes leaves refuses name check ended=0
    node_start frozen && frozen=$NODE
    node_start freezes && freezes=$NODE
    node_start leaves && leaves=$NODE
    node_start refuses && refuses=$NODE
    live_own here
    here=$NODE
    node_eval "$here" "[true = net_kernel:connect_node(N) || N <- ['$frozen', '$freezes', '$leaves', '$refuses']], ill:make(alarm), ok"
    node_eval "$refuses" 'erlang:set_cookie(node(), other)'
    freeze "$(<"$(node_dir "$frozen")/pid")"
    ETRACE_DEBUG=1 "$ETRACE_BIN" check -n "$here" --cluster --for 4s --json >"$OUT" 2>"$ERR" 3>&- &
    check=$!
    TRACERS+=("$check")
    three_looked() { [[ $(grep -c 'phase 1 is over' "$ERR") -eq 3 ]]; }
    until_true 30 three_looked || fail "$(<"$ERR")"
    kill -KILL "$(<"$(node_dir "$leaves")/pid")"
    freeze "$(<"$(node_dir "$freezes")/pid")"
    wait "$check" || ended=$?
    output=$(<"$OUT")
    assert_equal "$ended" 3
    assert_equal "$(jq -r 'select(.type == "check") | "\(.node) \(.findings)"' <<<"$output")" "$here 1"
    assert_regex "$(unchecked "$frozen")" 'accepts the connection but sends nothing'
    assert_regex "$(unchecked "$refuses")" 'the cookie does not match'
    assert_equal "$(unchecked "$leaves")" "$leaves: the node closed the connection"
    assert_regex "$(unchecked "$freezes")" "^$freezes is silent: "
    for name in "$frozen" "$refuses" "$leaves" "$freezes"; do
        grep -qxF "etrace: $(unchecked "$name")" "$ERR" || fail "no message about $name: $(<"$ERR")"
    done
}

# bats test_tags=long
@test "a node that goes away in the midst fails alone" {
    live_own second
    ETRACE_DEBUG=1 "$ETRACE_BIN" check -n "$LIVE_NODE" -n "$NODE" --for 4s --json >"$OUT" 2>"$ERR" 3>&- &
    local check=$!
    TRACERS+=("$check")
    looking() { [[ $(grep -c 'phase 1 is over' "$ERR") -eq 2 ]]; }
    until_true 20 looking
    kill -KILL "$(<"$(node_dir "$NODE")/pid")"
    local ended=0
    wait "$check" || ended=$?
    assert_equal "$ended" 1
    assert_equal "$(jq -r 'select(.type == "check").node' "$OUT")" "$LIVE_NODE"
    assert_equal "$(jq -r 'select(.type == "unchecked").node' "$OUT")" "$NODE"
    run grep -c "^etrace: $NODE: the node closed the connection" "$ERR"
    assert_output 1
}

# exits STATUS MESSAGE ARG...: check with these arguments has this status, as text, JSON and CSV. MESSAGE is empty, or a
# part of what it says.
exits() {
    local wanted=$1 message=$2 as
    shift 2
    for as in text json csv; do
        check --as "$as" "$@"
        [[ $status -eq $wanted ]] || fail "$as: status $status, expected $wanted: $output $stderr"
        if [[ $message ]]; then [[ $stderr == *"$message"* ]]; else [[ ! $stderr ]]; fi || fail "$as: $stderr"
    done
}

# unwritten STATUS MESSAGE COMMAND: the same if check writes to what the shell command makes of its output.
unwritten() {
    local as
    for as in text json csv; do
        run bash -c "$3" - "$ETRACE_BIN" check -n "$NODE" --as "$as"
        [[ $status -eq $1 ]] || fail "$as: status $status, expected $1: $output"
        [[ $output == *"$2"* ]] || fail "$as: $output"
    done
}

# bats test_tags=long
@test "the exit status says what the manual says, as text, JSON and CSV" {
    local how
    # shellcheck disable=SC2016 # the inner shell expands them
    local full='"$@" >/dev/full' closed='"$@" >&-' gone='{ "$@"; status=$?; } > >(exec true); exit $status'
    exits 0 ''
    for how in "$full" "$closed"; do unwritten 1 'etrace: cannot write standard output: ' "$how"; done
    unwritten 1 'the check was stopped before its end' "$gone"
    exits 2 'unknown option' --nope
    exits 2 'check takes no arguments' ill_one
    exits 2 "no column 'nope'" --sort nope
    exits 2 "--for does not take '0'" --for 0
    exits 3 'knows no node of that name' -n nobody@127.0.0.1
    # Notes alone are no finding.
    on_node 'ill:make(alarm), alarm_handler:clear_alarm({disk_almost_full, "/"}), alarm_handler:set_alarm({system_memory_high_watermark, []})'
    exits 0 ''
    on_node 'alarm_handler:clear_alarm(system_memory_high_watermark), alarm_handler:set_alarm({disk_almost_full, "/"})'
    exits 12 ''
    for how in "$full" "$closed"; do unwritten 1 'etrace: cannot write standard output: ' "$how"; done
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
}

# Runs check, sends it INT when one of the phases is over, and sets `ended` to its status.
interrupted() { # PHASES ARG...
    local phases=$1 check
    shift
    ETRACE_DEBUG=1 "$ETRACE_BIN" check -n "$NODE" "$@" >"$OUT" 2>"$ERR" 3>&- &
    check=$!
    TRACERS+=("$check")
    begun() { grep -q "phase [$phases] is over" "$ERR"; }
    until_true 20 begun
    child_kill "$check" INT
    ended=0
    wait "$check" || ended=$?
}

@test "a check that Ctrl-C stops has no status that says that nothing is wrong" {
    interrupted 01
    assert_equal "$ended" 1
    [[ ! -s $OUT ]] || fail "$(<"$OUT")"
    grep -qF "etrace: $NODE: the check was stopped before its end, so nothing is known about the node" "$ERR" || fail "$(<"$ERR")"
}

# bats test_tags=long
@test "Ctrl-C ends the wait of a longer check, which prints what it has found" {
    on_node 'ill:make(alarm)'
    interrupted 12 --for 10min --json
    assert_equal "$ended" 12
    assert_equal "$(jq -rs 'map(.kind // .type) | map(select(. != "vm" and . != "unknown")) | join(" ")' "$OUT")" 'alarm check'
    on_node 'ill:heal(ill_keeper)'
}

@test "this suite tests each fault" {
    local fault
    for fault in $(node_eval "$NODE" '[F || {F, _, _} <- ill:faults()]' | tr ',[]' '   '); do
        grep -qE "((ill|own|now_and_then)(_unreachable)? |ill:make\()${fault}[ ;)]" "$BATS_TEST_FILENAME" || fail "no test of the fault $fault"
    done
}

@test "two servers call each other" { ill deadlock; }
@test "late answers of a node that stops again and again do not become a cause" {
    local pid stalls i
    pid=$(<"$(node_dir "$NODE")/pid")
    on_node 'ill:make(deadlock)'
    for i in 1 2 3; do
        while kill -STOP "$pid"; do pause 0.25; kill -CONT "$pid"; pause 0.1; done 3>&- &
        stalls=$!
        check --json
        kill "$stalls"
        wait "$stalls" || true
        kill -CONT "$pid"
        refute_output --partial 'matches the receive in gen:do_call'
    done
    on_node 'ill:heal(ill_keeper)'
}
# bats test_tags=long
@test "a deadlock is found over a slow connection, where the time does not suffice for all suspects" {
    local link port at
    at=$("$ETRACE_BIN" nodes --json | jq -r --arg node "$NODE" 'select(.node == $node) | .port')
    exec 4< <(exec /usr/bin/python3 "$ETRACE_ROOT/tests/lib/slow_link.py" "$at" 150 3>&-)
    link=$!
    read -r port <&4
    on_node 'ill:make(deadlock),
        Deaf = [spawn(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 6)],
        [P ! N || P <- Deaf, N <- lists:seq(1, 200)], persistent_term:put(deaf, Deaf)'
    check --port "$port" --json
    on_node '[exit(P, kill) || P <- persistent_term:get(deaf)], persistent_term:erase(deaf), ill:heal(ill_keeper)'
    kill "$link"
    exec 4<&-
    jq -se 'map(select(.kind == "deadlock" and .name == "ill_one")) | length == 1' <<<"$output" >/dev/null || fail "$output$stderr"
    jq -se 'all(.[]; .pid != "" or .type != "finding" or .severity == "note")' <<<"$output" >/dev/null || fail "$output"
}
# bats test_tags=long
@test "a node that answers late has this in its first line and in JSON" {
    local pid stalls late="^$NODE · .* · looked at in [0-9.]+s, answered late: after up to [0-9.]+s$"
    pid=$(<"$(node_dir "$NODE")/pid")
    on_node 'ill:make(deadlock)' # check asks about its processes all the time
    while kill -STOP "$pid"; do pause 1.5; kill -CONT "$pid"; pause 0.2; done 3>&- &
    stalls=$!
    check
    assert_line --regexp "$late"
    check --json
    kill "$stalls"
    wait "$stalls" || true
    kill -CONT "$pid"
    jq -se '.[-1] | .type == "check" and .slowest_us >= 1000000 and .slowest_us <= .elapsed_us' <<<"$output" || fail "$output"
    on_node 'ill:heal(ill_keeper)'
}

# bats test_tags=long
@test "a chain of calls ends at a server that waits in its own code" { ill chain; }
@test "sys has suspended a server with a caller" { ill sys_suspended; }
# bats test_tags=long
@test "a process has suspended a server with a caller" { ill erl_suspended; }
# bats test_tags=long
@test "processes hold all members of a pool like poolboy" { ill poolboy_like; }
# bats test_tags=long
@test "processes hold all connections of a pool like DBConnection" { ill dbconnection_like; }
# bats test_tags=long
@test "a pool like DBConnection has no connection" { ill dbconnection_down; }
@test "each pool has a finding of its own, with the supervisor of a pool without a name, and its holder" {
    on_node 'ill:make(repositories)'
    found repositories
    local name
    for name in Repo Store; do
        assert_equal "$(jq -r 'select(.kind == "pool") | .text' <<<"$output" | grep -cE \
            "^<[0-9.]+>\(DBConnection.ConnectionPool.init/1\) of Ill.$name has no free connection; 3 processes wait .*; its 1 connection is held by <[0-9.]+>\(ill_holder_$name\); ")" 1
    done
    assert_equal "$(jq -s 'map(select(.kind == "pool")) | length' <<<"$output")" 2
    on_node 'ill:heal(ill_keeper), ill:make(two_pools)'
    found two_pools
    assert_equal "$(jq -r 'select(.kind == "pool") | .text' <<<"$output" | grep -cE '\(ill_pool_([12])\) .* 1 other may have .*\(ill_holder_\1\)')" 2
    assert_equal "$(jq -s 'map(select(.kind == "pool")) | length' <<<"$output")" 2
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}
# bats test_tags=long
@test "processes hold all members of a pool like NimblePool" { ill nimble_like; }
# bats test_tags=long
@test "all workers of a pool like worker_pool run jobs" { ill worker_pool waits; }
# bats test_tags=long
@test "a process holds a lock of global" { ill global_lock; }
# bats test_tags=long
@test "a transaction of mnesia holds a lock" { ill mnesia_lock; }
# bats test_tags=long
@test "check says at least if more processes wait for a lock than it counts" {
    on_node 'ill:make(global_crowd)'
    found global_crowd
    [[ $output == *'at least 32 processes wait for a lock'* ]] || fail "$output"
    on_node 'ill:heal(ill_keeper)'
    healthy
}
@test "a process does not take the messages of its queue" { ill unmatched queue; }
@test "a longer check names who fills a queue" {
    on_node 'ill:make(queue_grows)'
    longer=(--for 2s)
    check
    assert_failure 12
    assert_line --regexp '^! .*\(ill_slow\) has .* messages/s come from <[0-9.]+>\(ill_producer\)'
    check --fallback # without the NIF, messages are not traced
    assert_failure 12
    refute_output --partial ill_producer
    on_node 'ill:heal(ill_keeper)'
    healthy
}
# bats test_tags=long
@test "a longer check finds a queue that begins to grow while it looks, and who fills it" {
    ETRACE_DEBUG=1 "$ETRACE_BIN" check -n "$NODE" --for 8s >"$OUT" 2>"$ERR" 3>&- &
    local check=$! ended=0
    TRACERS+=("$check")
    # Without system events, there is nothing to trace at first, so no phase 2.
    watched() { grep -q "check: phase $([[ $ETRACE_OTP == 27 ]] && echo 1 || echo 2) is over" "$ERR"; }
    until_true 20 watched
    on_node 'ill:make(queue_grows)'
    wait "$check" || ended=$?
    assert_equal "$ended" 12
    grep -qE '^! .*\(ill_slow\) has .* messages/s come from <[0-9.]+>\(ill_producer\)' "$OUT" || fail "$(<"$OUT")"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}
# bats test_tags=long
@test "a process with a long queue that exits does not end the counts of other queues" {
    on_node 'P = spawn(fun() -> receive never -> ok end end), register(doomed, P), [P ! N || N <- lists:seq(1, 150)]'
    ETRACE_DEBUG=1 "$ETRACE_BIN" check -n "$NODE" --for 8s >"$OUT" 2>"$ERR" 3>&- &
    local check=$! ended=0
    TRACERS+=("$check")
    armed() { grep -q 'check: phase 2 is over' "$ERR"; }
    until_true 20 armed
    on_node 'R = monitor(process, doomed), exit(whereis(doomed), kill), receive {_, R, _, _, _} -> ok end'
    on_node 'ill:make(queue_grows)'
    wait "$check" || ended=$?
    assert_equal "$ended" 12
    grep -qE '^! .*\(ill_slow\) has .* messages/s come from <[0-9.]+>\(ill_producer\)' "$OUT" || fail "$(<"$OUT")"
    on_node 'ill:heal(ill_keeper)'
}
@test "an alarm is set" { ill alarm; }
@test "an alarm about the memory of the host is a note while there is room, and one about a process names it" {
    on_node 'ill:make(alarm), alarm_handler:clear_alarm({disk_almost_full, "/"}), alarm_handler:set_alarm({system_memory_high_watermark, []})'
    check
    assert_success
    assert_line --regexp '^\. .*system_memory_high_watermark.* counts the cache of the system as used, and the node may still take .* etrace ps '
    on_node 'alarm_handler:clear_alarm(system_memory_high_watermark), alarm_handler:set_alarm({process_memory_high_watermark, whereis(code_server)})'
    check
    assert_failure 12
    assert_line --regexp '^!! alarm: \{process_memory_high_watermark.* etrace ps .*-P '
    on_node 'alarm_handler:clear_alarm(process_memory_high_watermark), ill:heal(ill_keeper)'
    node_heard "$NODE"
}

# The other faults take their time, or depend on that of the machine.
# bats file_tags=long

# A process waits for another one.
@test "three servers call each other in a cycle" { ill deadlock3; }
@test "a server sleeps, and three callers wait" { ill sleeping; }
@test "a server forgot to reply" { ill forgot_reply pool; }
@test "a server waits for a command of the operating system" { ill os_command; }
@test "a handler of a gen_event does not return" { ill event_handler; }
@test "a supervisor waits for the start of a child" { ill supervisor_starts; }
@test "a supervisor waits for the end of a child" { ill supervisor_stops; }
@test "the device of an output does not answer" { ill io_device; }
@test "the file server opens a file that does not open" { ill file_server; }
@test "a caller waits for a server of another node" { ill remote; }
@test "an application does not start" { ill starting waits; }

# A process is suspended.
@test "the application controller is suspended" { ill application_controller waits; }
@test "the code server is suspended" { ill_unreachable code_server 'its code_server process does not answer'; }

# A pool has no free member.
@test "idle servers hold all members of a pool like poolboy" { ill pool_leaked; }

# A lock is held.
@test "a process holds the lock with which global registers names" { ill global_name waits pool; }

# A queue is long.
@test "a queue grows" { ill queue_grows; }
@test "a process computes, and messages wait" { ill queue_stuck busy; }
@test "each receive of a process scans a long queue" { ill scan; }

# A process takes memory.
@test "the heap of a process grows" { longer=(--for 4s) && ill memory_grows collects; } # the VM adds to it in steps
@test "the heap of a process is large now and then" {
    [[ $ETRACE_OTP != 27 ]] || return 0
    on_node 'ill:make(memory_now_and_then)'
    longer=(--for 5s)
    check --json
    assert_failure 12
    [[ $output == *' had a heap of up to '[3-9]??' MB at its collections'* ]] || fail "$output"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}
@test "a process holds large binaries" { ill binaries; }
@test "a process holds small parts of large binaries" { ill sub_binaries; }
@test "a process collects a large heap again and again" { ill collects memory busy dirty; }
@test "a process collects a large heap now and then" { now_and_then collects_now_and_then memory; }

# Processes take the processors.
@test "a process never waits" { ill spinner; }
@test "a process with a high priority never waits" { ill priority; }
@test "many processes are runnable" { ill overload busy; }
# Now and then it blocks all that etrace needs for so long that etrace gives up.
@test "a process blocks its scheduler" {
    on_node 'ill:make(blocked_scheduler)'
    check
    if [[ $status -eq 3 ]]; then
        assert_regex "$stderr" 'is the node suspended or overloaded|its [a-z_]+ process does not answer'
    elif [[ $status -eq 1 ]]; then
        assert_regex "$stderr" 'is silent: etrace received nothing from it'
    else
        assert_failure 12
        assert_line --regexp '^!! .*\(ill_blocker\) did not answer in time'
    fi
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}
@test "a process holds its scheduler now and then" { now_and_then held_scheduler; }
@test "all dirty schedulers for computations are taken" { ill dirty_cpu; }
@test "all dirty schedulers for input and output are taken" { ill dirty_io; }
@test "a supervisor starts a child again and again" {
    on_node 'ill:make(restart_loop)'
    found restart_loop
    [[ $output == *'restarts its child Ill.Child again and again'* ]] || fail "$output"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    healthy
}
# Succeeds if check has asked the supervisor for its children.
asks() {
    on_node 'begin ok = sys:log(ill_supervisor, {true, 10000}), ok end'
    check
    log=$(node_eval "$NODE" 'begin {ok, L} = sys:log(ill_supervisor, get), L end')
    [[ $log == *"'EXIT'"* ]] || fail "$log"
    [[ $log == *_children* ]]
}
@test "check asks a supervisor for its children only if it has few, and never counts them" {
    local log
    on_node 'ill:make(restart_loop)'
    asks
    [[ $log != *count_children* ]] || fail "$log"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
    on_node 'ill:make(restart_among_many)'
    ! asks || fail "$log"
    on_node 'ill:heal(ill_keeper)'
    node_heard "$NODE"
}
@test "processes log thousands of events a second" { ill logger_flood queue; }

# A table of the node grows, or is nearly full.
@test "a table grows" { ill ets_grows; }
@test "the number of tables grows" { ill ets_tables; }
@test "the number of atoms grows" { own atoms_grow; }
@test "the table of atoms is nearly full" { own_unreachable atoms_full 'room for only [0-9]* more atoms' +t 32768; }
@test "the number of processes grows" { ill processes_grow; }
@test "the table of processes is nearly full" { own processes_full +P 1024; }
@test "the number of ports grows" { ill ports_grow; }
@test "the table of ports is nearly full" { own ports_full +Q 1024; }

# Output that nobody takes.
@test "a process is suspended because its port is busy" { ill port_busy suspended; }
@test "a process is suspended again and again because its port is slow" { now_and_then port_slow; }
@test "a process waits until its socket takes the data" { ill socket_send waits; }
@test "the queue of a socket is long, and its owner does not wait" { ill socket_nowait binaries; }
@test "a process is suspended because the connection to another node is busy" { ill dist_busy suspended; }
