#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces the XMPP server ejabberd under the clients of xmpp_load.py: the events match the messages that the clients
# sent. The server is Debian's, unpacked by tests/otp --apps and started by its own script: 24.12 on OTP 27, 26.07 on
# OTP 29.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/app

MESSAGES=300

setup_file() {
    local root dir=$BATS_FILE_TMPDIR
    root=$("$ETRACE_ROOT/tests/otp" --apps "$ETRACE_OTP") || return 1
    export XMPP_PORT EJABBERD=$dir/ejabberd APP_PORT_FILE=$dir/port
    XMPP_PORT=$(free_port)
    mkdir -p "$EJABBERD"/{conf,logs,spool}
    # The script has Debian's paths and its own user built in.
    sed "s#^ERL=.*#ERL=$ETRACE_ERL#; s#^EPMD=.*#EPMD=${ETRACE_ERL%/*}/epmd#; s#^INSTALLUSER=.*#INSTALLUSER=#; s#^ERL_LIBS=.*#ERL_LIBS=$(libraries "$root")#" \
        "$root/usr/sbin/ejabberdctl" >"$EJABBERD/ejabberdctl"
    chmod +x "$EJABBERD/ejabberdctl"
    : >"$EJABBERD/conf/inetrc"
    printf 'ERL_OPTIONS="-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false"\n' >"$EJABBERD/conf/ejabberdctl.cfg"
    cat >"$EJABBERD/conf/ejabberd.yml" <<CONF
hosts: [localhost]
loglevel: info
listen:
  - port: $XMPP_PORT
    ip: "127.0.0.1"
    module: ejabberd_c2s
    starttls: false
auth_password_format: plain
access_rules:
  c2s: [{allow: all}]
shaper_rules:
  max_user_sessions: 10
modules:
  mod_disco: {}
  mod_ping: {}
CONF
    app_begin ejabberd || return 1
    local name
    for name in anna bert carl; do
        assert_equal "$(node_eval "$NODE" "ejabberd_auth:try_register(<<\"$name\">>, <<\"localhost\">>, <<\"secret\">>)")" ok
    done
    /usr/bin/python3 "$ETRACE_ROOT/tests/apps/xmpp_load.py" "$XMPP_PORT" "$APP_PORT_FILE" </dev/null >"$dir/clients.log" 2>&1 3>&- &
    echo $! >"$dir/clients"
    until_true 60 test -s "$APP_PORT_FILE" || {
        cat "$dir/clients.log" >&2
        return 1
    }
    all_in
    app_load 20
}
teardown_file() {
    kill -KILL "$(<"$BATS_FILE_TMPDIR/clients")" 2>/dev/null || true
    app_end
}
setup() { app_setup; }
teardown() { app_teardown; }

libraries() { echo "$1/usr/lib/$(cd "$1/usr/lib" && echo *-linux-gnu):$1/usr/lib/erlang/lib"; }

ctl() { "$EJABBERD/ejabberdctl" --config-dir "$EJABBERD/conf" --ctl-config "$EJABBERD/conf/ejabberdctl.cfg" --logs "$EJABBERD/logs" --spool "$EJABBERD/spool" --node "$NODE" "$@"; }

started() { grep -q ' is started in the node ' "$APP_LOG" && port_answers "$XMPP_PORT"; }

start_app() {
    : >"$APP_LOG"
    ctl foreground </dev/null >>"$APP_LOG" 2>&1 3>&- &
    until_true 60 started || {
        cat "$APP_LOG" >&2
        return 1
    }
}

all_in() {
    local name
    for name in anna bert carl; do assert_equal "$(asked in "$name")" ok; done
}

app_load() { assert_equal "$(asked send anna bert "$1")" "$1"; }

# Prints the process of a user's connection.
connection() { node_eval "$NODE" "ejabberd_sm:get_session_pid(<<\"$1\">>, <<\"localhost\">>, <<\"r\">>)"; }

@test "the sender's connection routes each message" {
    trace --json --rate 0 "ejabberd_router:route(Packet) when element(1, Packet) =:= message -> msg(element(3, Packet)), arity" 'ejabberd_sm:route/1 -> arity'
    app_load "$MESSAGES"
    assert_equal "$(asked send carl anna 50)" 50
    trace_end
    assert_success
    assert_account any
    run app_counts call
    assert_output "$((MESSAGES + 50)) ejabberd_router:route/1
$((MESSAGES + 50)) ejabberd_sm:route/1"
    assert_equal "$(json_of call 'select(.m == "ejabberd_router") | .pid' | LC_ALL=C sort | uniq -c | awk '{ print $1, $2 }')" \
        "$(printf '%s\n' "$MESSAGES $(connection anna)" "50 $(connection carl)" | LC_ALL=C sort -k2)"
}

@test "-c counts every function of the session and router modules" {
    trace -c --force 'ejabberd_router | ejabberd_sm | ejabberd_c2s | xmpp_stream_in -> return'
    functions=$(app_functions)
    [[ $functions -gt 200 ]] || fail "$talk"
    app_load "$MESSAGES"
    trace_end
    assert_success
    refute_regex "$(totals)" ' lost'
    assert_equal "$(app_figures ejabberd_sm:route/1)" "$MESSAGES 0"
    echo "# $functions functions, $(tail -n 1 <<<"$talk")" >&3
}

@test "top counts the messages that the clients sent" {
    COMMAND=top trace --json ejabberd_sm ejabberd_router
    app_load "$MESSAGES"
    COMMAND=top trace_end
    assert_success
    assert_equal "$(jq -rs 'map(select(.type == "count" and .m == "ejabberd_sm" and .f == "route" and .a == 1)) | last | .calls' "$OUT")" "$MESSAGES"
}

@test "-P restricts the tree to one of several connections" {
    pid=$(connection anna)
    trace --as tree --rate 0 -P "$pid" 'xmpp_stream_in:handle_info/2 -> return' 'ejabberd_router:route/1 -> return'
    app_load 100
    assert_equal "$(asked send carl bert 50)" 50
    trace_end
    assert_success
    # Messages are routed inside the function that handles data from the socket.
    assert_equal "$(grep -c '^[^ ]* [^ ]*   *ejabberd_router:route(' "$OUT")" 100
    assert_equal "$(awk '{ print $2 }' "$OUT" | sed 's/(.*//' | sort -u)" "$pid"
}

@test "returns show the result of each password check" {
    assert_equal "$(asked out carl)" ok
    trace --json --rate 0 'ejabberd_auth:check_password_with_authmodule/_ -> arity, return'
    for _ in 1 2 3; do assert_equal "$(asked in carl wrong)" refused; done
    assert_equal "$(asked in carl)" ok
    trace_end
    assert_success
    assert_account any
    # The function with four arguments calls the one with six.
    assert_equal "$(json_of return 'select(.a == 6) | .value' | xargs)" 'false false false {true,ejabberd_auth_mnesia}'
    node_heard "$NODE" 'Failed c2s PLAIN authentication for carl'
}

@test "a condition on the duration shows only slow calls and counts the others" {
    app_slow 1 'xmpp_stream_in:_ -> return' 'ejabberd_router:route/1 -> return'
}

@test "--reattach continues the trace after the server restarts" {
    trace --json --rate 0 --reattach 'ejabberd_sm:route(Packet) when element(1, Packet) =:= message -> arity'
    app_load 100
    app_restart ctl stop
    until_true 60 grep -q '"type":"node_up"' "$OUT"
    all_in
    app_load 100
    trace_end
    assert_success
    assert_equal "$(json_of summary '"\(.seen) \(.shown) \(.lost | length) \(.missing)"')" '200 200 0 0'
}

@test "check finds nothing under load" {
    app_quiet app_load "$MESSAGES"
}

@test "the load succeeds in alternating traced and untraced windows" {
    app_windows app_load "$MESSAGES" -- -c 'ejabberd_router | ejabberd_sm | ejabberd_c2s | xmpp_stream_in'
    app_windows app_load "$MESSAGES" -- -a -o "$BATS_TEST_TMPDIR/w.etr" 'ejabberd_router -> return' 'send(_, _)' 'recv(_)'
}
