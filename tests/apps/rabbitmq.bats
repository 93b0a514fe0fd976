#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces RabbitMQ under the publishers and consumers of rabbit_load.erl: the events match the actions of the clients.
# The broker is Debian's, unpacked by tests/otp --apps and started by its own script: 4.0 on OTP 27, 4.3 on OTP 29.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/app

MESSAGES=500

setup_file() {
    local root
    root=$("$ETRACE_ROOT/tests/otp" --apps "$ETRACE_OTP") || return 1
    RABBIT=$(echo "$root"/usr/lib/rabbitmq/lib/rabbitmq_server-*)
    export RABBIT RABBIT_LIBS=$RABBIT/plugins:$BATS_FILE_TMPDIR/libs OS_MON=$BATS_FILE_TMPDIR/libs APP_PORT_FILE=$BATS_FILE_TMPDIR/port
    # The tree has libraries of other applications as well, so link only the needed ones.
    mkdir "$BATS_FILE_TMPDIR/libs"
    ln -s "$root"/usr/lib/erlang/lib/{os_mon,eldap}-* "$BATS_FILE_TMPDIR/libs/"
    RABBIT_PORT=$(free_port) RABBIT_DIST_PORT=$(free_port)
    export RABBIT_PORT RABBIT_DIST_PORT
    app_begin rabbit || return 1
    start_clients
}
teardown_file() {
    kill -KILL "$(<"$BATS_FILE_TMPDIR/clients")" 2>/dev/null || true
    app_end
}
setup() { app_setup; }
teardown() { app_teardown; }

# shellcheck disable=SC2153  # ETRACE_ERL is of the environment
with_broker() { # COMMAND...
    local dir=$BATS_FILE_TMPDIR/broker
    mkdir -p "$dir/log" "$dir/data"
    printf 'listeners.tcp.local = 127.0.0.1:%s\n' "$RABBIT_PORT" >"$dir/rabbitmq.conf"
    echo '[].' >"$dir/plugins"
    # The settings keep the broker from reading files of a system broker. The emulator ignores its last argument, by
    # which the tests find the process.
    env PATH="${ETRACE_ERL%/*}:$PATH" ERL_LIBS="$OS_MON" RABBITMQ_NODENAME="$NODE" RABBITMQ_USE_LONGNAME=true RABBITMQ_BASE="$dir" \
        RABBITMQ_MNESIA_BASE="$dir/data" RABBITMQ_LOG_BASE="$dir/log" RABBITMQ_LOGS=- RABBITMQ_CONFIG_FILE="$dir/rabbitmq.conf" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$dir/advanced.config" RABBITMQ_ENABLED_PLUGINS_FILE="$dir/plugins" RABBITMQ_CONF_ENV_FILE="$dir/env.conf" \
        RABBITMQ_GENERATED_CONFIG_DIR="$dir/generated" RABBITMQ_SCHEMA_DIR="$dir/schema" RABBITMQ_DIST_PORT="$RABBIT_DIST_PORT" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1} -etrace_test $NODE " "$@"
}

started() { grep -q 'Server startup complete' "$APP_LOG"; }

start_app() {
    : >"$APP_LOG"
    (cd "$BATS_FILE_TMPDIR" && with_broker "$RABBIT/sbin/rabbitmq-server" </dev/null >>"$APP_LOG" 2>&1 3>&-) &
    until_true 120 started
}

start_clients() {
    local dir=$BATS_FILE_TMPDIR
    ERL_LIBS=$RABBIT_LIBS "$ETRACE_ERLC" -o "$dir" "$ETRACE_ROOT/tests/apps/rabbit_load.erl" || return 1
    rm -f "$APP_PORT_FILE"
    ERL_LIBS=$RABBIT_LIBS "$ETRACE_ERL" +Bi -noshell -noinput -pa "$dir" -s rabbit_load main -extra "$RABBIT_PORT" "$APP_PORT_FILE" \
        </dev/null >"$dir/clients.log" 2>&1 3>&- &
    echo $! >"$dir/clients"
    until_true 60 test -s "$APP_PORT_FILE" || {
        cat "$dir/clients.log" >&2
        return 1
    }
    asked load warm 20
    asked load quorum 20
}

app_load() { assert_equal "$(asked load "${2:-work}" "$1")" "$1 $1 $1 $1"; }

# The broker has as many connections as expected, none by default.
idle() { [[ $(node_eval "$NODE" 'length(rabbit_networking:connections())') == "${1:-0}" ]]; }

@test "numbers of publish, acknowledge and deliver calls equal the clients' messages" {
    trace --json --rate 0 "rabbit_channel:handle_method(#'basic.publish'{routing_key = Key}, _, _) -> msg(Key)" \
        "rabbit_channel:handle_method(#'basic.ack'{multiple = false}, _, _) -> args(2)" 'rabbit_writer:send_command_and_notify/5 -> arity' 'rabbit_channel:deliver_to_queues/3 -> arity'
    app_load "$MESSAGES"
    until_true 20 idle
    trace_end
    assert_success
    assert_account any
    run app_counts call
    assert_line "$((2 * MESSAGES)) rabbit_channel:handle_method/3"
    assert_line "$MESSAGES rabbit_channel:deliver_to_queues/3"
    assert_line "$MESSAGES rabbit_writer:send_command_and_notify/5"
    assert_equal "$(json_of call 'select(.message) | .message' | sort | uniq -c | awk '{ print $1, $2 }')" "$MESSAGES <<\"work\">>"
}

@test "-c counts hundreds of functions of the broker, with results" {
    local which='rabbit_channel | rabbit_reader | rabbit_writer | rabbit_queue_type | rabbit_classic_queue | rabbit_variable_queue | rabbit_amqqueue_process'
    # The whole broker has some six thousand functions, which take a while to arm.
    [[ ! $ETRACE_ALL ]] || which='app(rabbit) | rabbit_writer'
    trace -c --force "$which -> return"
    functions=$(app_functions)
    [[ $functions -gt 450 ]] || fail "$talk"
    app_load "$MESSAGES"
    trace_end
    assert_success
    # rabbit_reader:recvloop/4 calls itself in a loop. Until the node has found that out, it may reject calls of that process.
    refute_regex "$(totals)" ' lost \([^g]'
    assert_equal "$(app_figures rabbit_channel:deliver_to_queues/3)" "$MESSAGES 0"
    assert_equal "$(app_figures rabbit_writer:send_command_and_notify/5)" "$MESSAGES 0"
    echo "# $functions functions, $(tail -n 1 <<<"$talk")" >&3
}

@test "top counts the clients' messages to a classic and a quorum queue" {
    COMMAND=top trace --json rabbit_channel rabbit_writer rabbit_fifo_client
    app_load "$MESSAGES"
    app_load 100 quorum
    COMMAND=top trace_end
    assert_success
    assert_equal "$(jq -rs 'map(select(.type == "count" and .f == "deliver_to_queues" and .a == 3)) | last | .calls' "$OUT")" $((MESSAGES + 100))
    # The broker keeps a table of a deleted quorum queue, with or without a trace, so the comparison with BEFORE is
    # skipped.
    BEFORE=
}

@test "-P restricts the tree to one of several connections and its channel" {
    assert_equal "$(asked hold other 1)" ok
    other=$(node_eval "$NODE" 'rabbit_networking:connections()' | tr -d '[]')
    assert_equal "$(asked hold held 1)" ok
    pid=$(node_eval "$NODE" "hd(rabbit_networking:connections() -- [list_to_pid(\"$other\")])")
    channel=$(node_eval "$NODE" "[{pid, P}] = [V || V = {pid, _} <- hd([I || I <- rabbit_channel:info_all([pid, connection]), lists:member({connection, list_to_pid(\"$pid\")}, I)])], P")
    trace --as tree --rate 0 -P "$pid" -P "$channel" 'rabbit_channel:handle_method/3 -> return' 'rabbit_channel:deliver_to_queues/3 -> return' 'rabbit_reader:handle_input/3'
    assert_equal "$(asked more held 100)" ok
    assert_equal "$(asked more other 50)" ok
    trace_end
    assert_success
    # The channel publishes a message inside the function that handles its method.
    assert_equal "$(grep -c 'handle_method({.basic.publish' "$OUT")" 100
    assert_equal "$(grep -c '^[^ ]* [^ ]*   *rabbit_channel:deliver_to_queues(' "$OUT")" 100
    assert_equal "$(awk '{ sub(/\(.*/, "", $2); print $2 }' "$OUT" | sort -u)" "$(printf '%s\n' "$pid" "$channel" | sort)"
    assert_equal "$(asked drain held)" 101
    assert_equal "$(asked drain other)" 51
}

@test "a recording and a sequence page show every message that fills a queue" {
    assert_equal "$(asked hold held 1)" ok
    trace --as sequence --rate 0 -o "$BATS_TEST_TMPDIR/r.etr" -o "$BATS_TEST_TMPDIR/s.html" -P 'initial(rabbit_amqqueue_process:init/1)' "recv({'\$gen_cast', {deliver, _, _}})"
    assert_equal "$(asked more held 200)" ok
    trace_end
    assert_success
    run "$ETRACE_BIN" replay -q --json "$BATS_TEST_TMPDIR/r.etr"
    assert_success
    assert_equal "$(grep -c '"type":"receive"' <<<"$output")" 200
    assert_equal "$(jq -r 'select(.type == "receive") | .name + " " + .from' <<<"$output" | sort -u | wc -l)" 1
    grep -q '<script' "$BATS_TEST_TMPDIR/s.html"
    assert_equal "$(asked drain held)" 201
}

@test "the times of requests to queues lie within those that their callers measure" {
    local elapsed
    asked hold measured 20
    COMMAND=requests trace --json --rate 0
    elapsed=$(node_eval "$NODE" '{ok, Q} = rabbit_amqqueue:lookup(rabbit_misc:r(<<"/">>, queue, <<"measured">>)),
        {Us, [{messages, 20}]} = timer:tc(fun() -> rabbit_amqqueue:info(Q, [messages]) end), Us')
    asked load others 50
    trace_end
    assert_success
    run jq -es --argjson elapsed "$elapsed" '[.[] | select(.type == "request" and .server == "rabbit_amqqueue_process")] |
        (map(select(.shape == "{info,_}" and .request == "{info,[messages]}"))[0] |
            .waited_us > 0 and .worked_us > 0 and .reply_us > 0 and .waited_us + .worked_us + .reply_us < $elapsed + 1000) and
        (map(select(.shape | startswith("{basic_consume,"))) | length == 1) and
        all(.[]; .answered and .waited_us != null and .worked_us != null)' "$OUT"
    assert_output true
    assert_equal "$(asked drain measured)" 20
}

@test "a condition on the duration shows only slow calls and counts the others" {
    app_slow 2 'rabbit_channel:handle_method/3 -> return' 'rabbit_variable_queue:_ -> return'
}

@test "--reattach continues the trace after the broker restarts" {
    trace --json --rate 0 --reattach "rabbit_channel:handle_method(#'basic.publish'{}, _, _)"
    app_load 100
    app_restart with_broker "$RABBIT/sbin/rabbitmqctl" -q stop
    until_true 60 grep -q '"type":"node_up"' "$OUT"
    app_load 100
    trace_end
    assert_success
    assert_equal "$(json_of summary '"\(.seen) \(.shown) \(.lost | length) \(.missing)"')" '200 200 0 0'
}

# The broker sets an alarm when it next looks, and logs each alarm.
alarms() { [[ $(node_eval "$NODE" 'length(rabbit_alarm:get_alarms())') == "$1" ]]; }
limits() { # MEMORY DISK
    on_node "vm_memory_monitor:set_vm_memory_high_watermark($1), rabbit_disk_monitor:set_disk_free_limit($2)"
}

@test "check reports the alarms of the broker, with what it uses, its limits and the node" {
    local -a before
    read -ra before < <(node_eval "$NODE" '[round(vm_memory_monitor:get_vm_memory_high_watermark() * 1000), rabbit_disk_monitor:get_disk_free_limit()]' | tr ',[]' '   ')
    limits '{absolute, 10485760}' '1 bsl 60'
    until_true 60 alarms 2
    # Each node has the alarms of all nodes of its cluster.
    on_node "rabbit_alarm:set_alarm({{resource_limit, disk, 'other@127.0.0.1'}, []})"
    until_true 60 alarms 3
    run --separate-stderr timeout 60 "$ETRACE_BIN" check -n "$NODE"
    on_node "rabbit_alarm:clear_alarm({resource_limit, disk, 'other@127.0.0.1'})"
    limits "${before[0]} / 1000" "${before[1]}"
    until_true 60 alarms 0
    assert_failure 12
    assert_equal "$(grep -c '^!! ' <<<"$output")" 3
    assert_line --regexp "^!! RabbitMQ's memory alarm is set; it uses [0-9.]+ MB, and its limit is 10 MB; .*block .* etrace ps -n $NODE"
    assert_line --regexp "^!! RabbitMQ's disk alarm is set; [0-9.]+ [GT]B are free in /.*, and its limit is .*; .*block .*rabbitmqctl list_queues"
    assert_line --regexp "^!! RabbitMQ's disk alarm is set on other@127.0.0.1; .*block .* etrace check -n other@127.0.0.1"
    node_heard "$NODE"
    # The broker keeps a persistent term since its first alarm, so the comparison with BEFORE is skipped.
    BEFORE=
}

@test "check finds nothing under load" {
    app_quiet app_load "$MESSAGES"
}

@test "the load succeeds in alternating traced and untraced windows" {
    app_windows app_load "$MESSAGES" -- -c 'rabbit_channel | rabbit_reader | rabbit_writer | rabbit_queue_type | rabbit_classic_queue | rabbit_variable_queue'
    app_windows app_load "$MESSAGES" -- -a -o "$BATS_TEST_TMPDIR/w.etr" 'rabbit_channel -> return' 'send(_, _)' 'recv(_)'
}
