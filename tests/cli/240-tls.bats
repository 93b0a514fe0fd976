#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests nodes that use TLS distribution: how the node and etrace verify each other's certificate, and the message for
# each certificate or file that one of them refuses.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/node
load ../lib/commands

PEM=${TLS_PEM:-}
SIX=

# key NAME: makes a private key.
# certificate NAME SUBJECT-ALT-NAMES [OPTIONS OF openssl ca]: makes a certificate that our ca signs.
key() { openssl ecparam -name prime256v1 -genkey -noout -out "$PEM/$1.key"; }

certificate() {
    local name=$1 names=$2
    shift 2
    key "$name"
    openssl req -new -key "$PEM/$name.key" -subj "/CN=$name" -out "$PEM/$name.csr"
    openssl ca -batch -config "$PEM/ca.conf" -in "$PEM/$name.csr" -out "$PEM/$name.pem" -notext \
        -extfile <(echo "subjectAltName=$names") "$@"
}

make_certificates() {
    cat >"$PEM/ca.conf" <<CONF
[ca]
default_ca = here
[here]
new_certs_dir = $PEM
database = $PEM/index
rand_serial = yes
certificate = $PEM/ca.pem
private_key = $PEM/ca.key
default_md = sha256
default_days = 2
policy = any
[any]
commonName = supplied
CONF
    : >"$PEM/index"
    key ca
    openssl req -x509 -new -key "$PEM/ca.key" -subj /CN=ca -days 2 -out "$PEM/ca.pem"
    key stranger
    openssl req -x509 -new -key "$PEM/stranger.key" -subj /CN=stranger -days 2 -out "$PEM/stranger.pem"
    certificate node 'IP:127.0.0.1,IP:::1'
    certificate other 'DNS:elsewhere.example,IP:10.1.2.3'
    certificate old 'IP:127.0.0.1' -startdate 20200101000000Z -enddate 20200102000000Z
    openssl ec -in "$PEM/node.key" -aes256 -passout pass:sesame -out "$PEM/locked.key"
}

# optfile NAME SERVER-OPTIONS CLIENT-OPTIONS: writes an ssl_dist_optfile. The client section has always the defaults.
optfile() {
    local ca="{cacertfile, \"$PEM/ca.pem\"}"
    cat >"$PEM/$1.conf" <<CONF
%% -*- erlang -*-
[{server, [$ca, {secure_renegotiate, true}, $2]},
 {'client', [
    $ca, {depth, 3},   % a comment, with "quotes"
    {customize_hostname_check, [{match_fun, fun(_, _) -> default end}]},
    $3]}].
CONF
}

own() { echo "{certfile, \"$PEM/$1.pem\"}, {keyfile, <<\"$PEM/${2:-$1}.key\">>}"; }

setup_file() {
    export TLS_PEM=$BATS_FILE_TMPDIR
    PEM=$TLS_PEM
    make_certificates >"$PEM/log" 2>&1 || { cat "$PEM/log" >&2; return 1; }
    optfile open "$(own node)" "$(own node), {verify, verify_peer}"
    optfile strict "$(own node), {verify, verify_peer}, {fail_if_no_peer_cert, true}" "$(own node), {verify, verify_peer}"
    optfile locked "$(own node)" "$(own node locked), {password, \"sesame\"}"
    optfile barred "$(own node)" "$(own node locked), {password, \"open\"}"
    optfile other "$(own other)" '{verify, verify_none}'
    optfile named "$(own other)" '{verify, verify_peer}, {server_name_indication, "elsewhere.example"}'
    optfile old "$(own old)" '{verify, verify_none}'
}

teardown() {
    [[ ! $SIX ]] || { kill -KILL "$SIX" && wait "$SIX"; } 2>/dev/null || true
    nodes_stop
}

tls_node() { node_start "$1" -proto_dist inet_tls -ssl_dist_optfile "$PEM/$2.conf"; }

attach() { run --separate-stderr timeout 20 "$ETRACE_BIN" --for 50ms 'lists:seq/2' "$@" </dev/null; }

attached() { # ARGS...
    attach -n "$NODE" "$@"
    assert_success
    assert_regex "${stderr_lines[0]}" "^etrace: $NODE · OTP $ETRACE_OTP"
    assert_regex "$stderr" $'\n''etrace: [0-9]+ events? in [0-9.]+ m?s('$'\n|$)'
}

refused() { # STATUS TEXT ARGS...
    local expected=$1 text=$2
    shift 2
    attach "$@"
    assert_failure "$expected"
    assert_output ''
    assert_equal "${stderr_lines[0]}" "etrace: $text"
}

@test "etrace and a TLS node verify each other's certificate" {
    tls_node strict strict
    name=$NODE
    attached --tls-optfile "$PEM/strict.conf"
    before=$(node_snapshot "$NODE" | grep -E "^(sessions|modules)")
    attached --tls-ca "$PEM/ca.pem" --tls-cert "$PEM/node.pem" --tls-key "$PEM/node.key"
    attached --tls-no-verify --tls-cert "$PEM/node.pem" --tls-key "$PEM/node.key"
    cat "$PEM/node.pem" "$PEM/node.key" >"$PEM/both.pem"
    attached --tls-ca "$PEM/ca.pem" --tls-cert "$PEM/both.pem"

    refused 3 "cannot connect to $name: it accepts only TLS connections" -n "$name"
    assert_equal "${stderr_lines[1]}" "hint: --tls-optfile $PEM/strict.conf is the file of the node"
    refused 3 "cannot connect to $name: etrace does not trust the issuer of its certificate" -n "$name" --tls
    assert_regex "${stderr_lines[1]}" '^hint: --tls-ca FILE'
    refused 3 "cannot connect to $name: etrace does not trust the issuer of its certificate" -n "$name" --tls-ca "$PEM/stranger.pem"
    attach -n "$name" --tls-ca "$PEM/ca.pem"
    assert_failure 3
    assert_regex "${stderr_lines[0]}" "^etrace: cannot connect to $name: it .*requires a client certificate"
    assert_regex "${stderr_lines[1]}" '^hint: use --tls-cert FILE'
    attach -n "$name" --tls-ca "$PEM/ca.pem" --tls-cert "$PEM/stranger.pem" --tls-key "$PEM/stranger.key"
    assert_failure 3
    assert_regex "${stderr_lines[0]}" "^etrace: cannot connect to $name: it does not (trust the issuer of|accept) the client certificate"
    (umask 077 && echo another >"$PEM/cookie")
    refused 3 "cannot connect to $name: the cookie does not match (read from $PEM/cookie)" -n "$name" --tls-optfile "$PEM/strict.conf" --cookie-file "$PEM/cookie"
    assert_equal "$(node_snapshot "$NODE" | grep -E "^(sessions|modules)")" "$before"
}

@test "the certificate must name the host and must not have expired" {
    tls_node other other
    refused 3 "cannot connect to $NODE: its certificate is for elsewhere.example, 10.1.2.3, not for 127.0.0.1" -n "$NODE" --tls-ca "$PEM/ca.pem"
    attached --tls-optfile "$PEM/other.conf"
    attached --tls-optfile "$PEM/named.conf"
    attached --tls-no-verify
    tls_node old old
    refused 3 "cannot connect to $NODE: its certificate, or one that signed it, has expired" -n "$NODE" --tls-ca "$PEM/ca.pem"
    attached --tls-optfile "$PEM/old.conf"
}

@test "an error about a TLS file names the file and shows no password" {
    tls_node open open
    at=(-n "$NODE")
    refused 3 "cannot read the CA certificates in $PEM/nosuch.pem: No such file or directory" "${at[@]}" --tls-ca "$PEM/nosuch.pem"
    refused 3 "$PEM/node.key holds no usable certificate (in PEM)" "${at[@]}" --tls-ca "$PEM/node.key"
    refused 3 "cannot read the private key in $PEM: it is not a regular file" "${at[@]}" --tls-cert "$PEM/node.pem" --tls-key "$PEM"
    refused 3 "$PEM/node.pem holds no usable private key (in PEM)" "${at[@]}" --tls-cert "$PEM/node.pem"
    refused 3 "the private key in $PEM/other.key does not belong to the certificate in $PEM/node.pem" "${at[@]}" --tls-cert "$PEM/node.pem" --tls-key "$PEM/other.key"
    refused 2 "--tls-key also needs --tls-cert FILE" "${at[@]}" --tls-key "$PEM/node.key"
    refused 3 "cannot read $PEM/nosuch.conf: No such file or directory" "${at[@]}" --tls-optfile "$PEM/nosuch.conf"
    refused 3 "$PEM/node.pem is not a file for -ssl_dist_optfile: it holds [{server, [...]}, {client, [...]}]." "${at[@]}" --tls-optfile "$PEM/node.pem"
    echo '[{client, [{verify, verify_none]}].' >"$PEM/brackets.conf"
    refused 3 "$PEM/brackets.conf is not a file for -ssl_dist_optfile: it holds [{server, [...]}, {client, [...]}]." "${at[@]}" --tls-optfile "$PEM/brackets.conf"
    attached --tls-optfile "$PEM/locked.conf"
    refused 3 "$PEM/locked.key holds no usable private key (in PEM)" "${at[@]}" --tls-optfile "$PEM/barred.conf"
    refute_regex "$stderr" 'open"|sesame'
}

@test "a flood over TLS arrives complete, and a trace of all messages omits those of the channel" {
    tls_node flood open
    timeout --foreground 60 "$ETRACE_BIN" -n "$NODE" --tls-ca "$PEM/ca.pem" --rate 0 --json 'lists:seq(7777, _) -> return' >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    tracer=$!
    for ((i = 0; i < 1000; i++)); do
        grep -q 'Ctrl-C stops' "$BATS_TEST_TMPDIR/err" && break
        pause 0.02
    done
    node_eval "$NODE" '[begin [lists:seq(7777, 7790) || _ <- lists:seq(1, 500)], timer:sleep(5) end || _ <- lists:seq(1, 40)], ok'
    kill -INT "$tracer"
    wait "$tracer"
    run jq -s '.[-1] | [.seen, .missing, .complete, .seen == .shown + .filtered + ([.lost[]] | add // 0)] | tostring' "$BATS_TEST_TMPDIR/out"
    assert_output '"[40000,0,true,true]"'

    run --separate-stderr timeout 20 "$ETRACE_BIN" -n "$NODE" --tls-ca "$PEM/ca.pem" --for 1s --json 'send(_, _)' 'recv(_)' '@link' '@exit'
    assert_success
    # Another etrace on this host, which looks for nodes, may begin a handshake without TLS. All else is of our channel.
    run jq -r '.msg // "" | select(test("^{tcp,") and (test("^{tcp,#Port<[0-9.]+>,<<0,[0-9]+,78,") | not))' <<<"$output"
    assert_output ''
}

@test "every command that connects to a node accepts the TLS options" {
    tls_node all strict
    export HOME
    tls=(--tls-optfile "$PEM/strict.conf")
    etrace() { timeout 60 "$ETRACE_BIN" "$@" </dev/null; }
    run etrace nodes "${tls[@]}" 127.0.0.1
    assert_success
    assert_line --regexp "^$NODE +[0-9]+ +- +-  ok$"
    run etrace nodes 127.0.0.1
    assert_line --regexp "^$NODE +[0-9]+ +- +-  it accepts only TLS connections$"
    for command in $(commands_of_help); do
        [[ $commands_without_node != *" $command "* ]] || continue
        command_args "$command"
        run etrace "$command" -n "$NODE" "${tls[@]}" "${args[@]}"
        [[ $status -eq 0 || ($command == check && $status -eq 12) ]] || fail "etrace $command: $status, $output"
    done
    run timeout 60 "$ETRACE_BIN" repl -n "$NODE" "${tls[@]}" <<<$':nodes\n:ls lists:seq/2'
    assert_success
    assert_output --partial "$NODE"
    assert_output --partial 'lists:seq'
    offered() { etrace __complete -n "$NODE" --tls-optfile "$PEM/strict.conf" lists:se | grep -qxF 'lists:seq/2'; }
    for ((i = 0; i < 200; i++)); do
        offered && break
        pause 0.05
    done
    assert offered
}

@test "etrace traces a command whose node uses TLS" {
    name=tlschild$RANDOM$RANDOM@127.0.0.1
    run --separate-stderr timeout 60 "$ETRACE_BIN" --tls-ca "$PEM/ca.pem" 'lists:seq(7777, _)' -- "$ETRACE_ERL" -noshell -noinput -name "$name" \
        -start_epmd false -kernel inet_dist_use_interface '{127,0,0,1}' -proto_dist inet_tls -ssl_dist_optfile "$PEM/open.conf" \
        -eval 'lists:seq(7777, 7778), timer:sleep(500), halt().' </dev/null
    assert_success
    assert_output --partial 'lists:seq(7777, 7778)'
}

@test "etrace connects to a TLS node over IPv6" {
    [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
    "$ETRACE_ERL" -noshell -noinput -name "sixtls$ETRACE_OTP@::1" -proto_dist inet6_tls -ssl_dist_optfile "$PEM/open.conf" -start_epmd false \
        -kernel inet_dist_use_interface '{0,0,0,0,0,0,0,1}' </dev/null >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
    SIX=$!
    for ((i = 0; i < 1000; i++)); do
        "${ETRACE_ERL%/*}/epmd" -names | grep -q "name sixtls$ETRACE_OTP " && break
        pause 0.02
    done
    NODE=sixtls$ETRACE_OTP@::1
    attached --tls-ca "$PEM/ca.pem"
    refused 3 "cannot connect to $NODE: it accepts only TLS connections" -n "$NODE"
}

@test "--tls fails with a message for a node without TLS" {
    node_start plain
    attach -n "$NODE" --tls
    assert_failure 3
    assert_regex "${stderr_lines[0]}" "^etrace: cannot connect to $NODE: (port [0-9]+ of 127.0.0.1 does not answer the TLS handshake|port [0-9]+ of 127.0.0.1 closes the connection without an answer|the port answers, but not with TLS)"
}

@test "the lease ends a client that freezes in a flood over TLS, and the node logs nothing" {
    tls_node frozen open
    timeout 60 "$ETRACE_BIN" -n "$NODE" --tls-ca "$PEM/ca.pem" --for 50ms 'lists:seq(7777, _)' </dev/null >/dev/null 2>&1 3>&-
    before=$(node_snapshot "$NODE")
    "$ETRACE_BIN" -n "$NODE" --tls-ca "$PEM/ca.pem" --rate 0 'lists:seq(7777, _) -> return' </dev/null >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
    tracer=$!
    for ((i = 0; i < 1000; i++)); do
        grep -q 'Ctrl-C stops' "$BATS_TEST_TMPDIR/err" && break
        pause 0.02
    done
    freeze "$tracer"
    node_eval "$NODE" '[lists:seq(7777, 7790) || _ <- lists:seq(1, 100000)], ok'
    assert_clean "$before" "$NODE" 30
    kill -CONT "$tracer"
    status=0
    wait "$tracer" || status=$?
    assert_equal "$status" 4
    run node_log "$NODE"
    assert_output ''
}

# The host in the node's name is an address, not the name of this host, and the certificate is for addresses only.
@test "-p, a short name and the only node connect by the full name that the certificate requires" {
    tls_node alone open
    local pid
    pid=$(<"$(node_dir "$NODE")/pid")
    for where in "-p $pid" "-n ${NODE%@*}" ''; do
        # shellcheck disable=SC2086  # words
        attach $where --tls-ca "$PEM/ca.pem"
        assert_success
        assert_regex "${stderr_lines[0]}" "^etrace: $NODE · OTP $ETRACE_OTP"
    done
    refused 3 "cannot connect to ${NODE%@*}@localhost: its certificate is for 127.0.0.1, ::1, not for localhost" -n "${NODE%@*}@localhost" --tls-ca "$PEM/ca.pem"
    assert_equal "${stderr_lines[1]}" "hint: the host in the node's name must match the certificate: try -n NAME@HOST with the full host name"
}

@test "etrace nodes tries all nodes at the same time, with TLS first and then without" {
    tls_node secure open
    local secure=$NODE plain=() name
    for name in a b c; do
        node_start "$name"
        plain+=("$NODE")
    done
    run --separate-stderr timeout 30 "$ETRACE_BIN" nodes --tls-ca "$PEM/ca.pem" 127.0.0.1
    assert_success
    assert_line --regexp "^$secure +[0-9]+ +- +-  ok$"
    for name in "${plain[@]}"; do assert_line --regexp "^$name +[0-9]+ +- +-  ok, without TLS$"; done
    run --separate-stderr timeout 30 "$ETRACE_BIN" nodes --json --tls-ca "$PEM/ca.pem" 127.0.0.1
    assert_equal "$(jq -r 'select(.reachable) | "\(.node) \(.tls)"' <<<"$output" | sort)" "$(printf '%s false\n' "${plain[@]}" | cat - <(echo "$secure true") | sort)"
    # If a node has a certificate that is not trusted, etrace must not try it without TLS.
    run --separate-stderr timeout 30 "$ETRACE_BIN" nodes --tls-ca "$PEM/stranger.pem" 127.0.0.1
    assert_line --regexp "^$secure +[0-9]+ +- +-  etrace does not trust the issuer of its certificate$"
}
