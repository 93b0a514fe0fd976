#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests --ssh with a real sshd on another host, which is a container with its own network (tests/lib/far.bash).

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

setup_file() {
    ETRACE_SSHD=$("$ETRACE_ROOT/tests/sshd")
    ETRACE_BUSYBOX=$("$ETRACE_ROOT/tests/busybox")
    export ETRACE_SSHD ETRACE_BUSYBOX
}

FAR='
    . "$ETRACE_ROOT/tests/lib/far.bash"
    e() { "$ETRACE_BIN" --ssh "$@" 2>&1 </dev/null || echo "status $?"; }
    beat="spawn(fun F() -> timer:sleep(20), lists:seq(1, 3), F() end)"
'

# bats test_tags=long
@test "one call of a node on another host is traced through ssh, with its own cookie" {
    alone "$FAR"'
        far_begin
        far_dist="-kernel inet_dist_use_interface {127,0,0,1}"
        far_node app -sname shop -eval "$beat."
        has "$(e app@far -n shop --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        has "$(e app@far --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        # The whole name, its first part, the process, the port.
        said=$(e app@far nodes)
        has "$said" "shop@far "
        has "$said" "  ok"
        json=$("$ETRACE_BIN" --ssh app@far nodes --json)
        pid=$(jq .os_pid <<<"$json") port=$(jq .port <<<"$json")
        is "$(jq -r .attach <<<"$json")" "--ssh app@far -n shop@far"
        for which in "-n shop@far" "-n shop@nowhere.example" "-p $pid" "--port $port"; do
            has "$(e app@far $which --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        done
        far_no_mux
        # Nothing is left there: only the first process, epmd and the node run, and no file is new.
        left() { ! far root sh -c "exec cat /proc/[0-9]*/comm" | grep -vx "cat\|epmd\|beam.*\|sleep\|erl_child_setup\|inet_gethost\|sh"; }
        await left
        is "$(far root find /tmp /app -mindepth 1 -newer /tmp/up.1 ! -name up.1 ! -name sshd.log -print)" ""'
}

# bats test_tags=long
@test "several nodes, and names that this host cannot resolve" {
    alone "$FAR"'
        far_begin
        far_node app -name shop@h1.shop.internal -eval "$beat."
        far_node app -sname two -eval "$beat."
        has "$(e app@far --limit 1 lists:seq/2)" "no node was given, and several run on app@far: "
        for name in shop shop@h1.shop.internal two; do
            has "$(e app@far -n "$name" --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        done
        said=$(e app@far -n shop -n two --expect "node == '\''shop@h1.shop.internal'\''" --expect "node == '\''two@far'\''" lists:seq/2)
        has "$said" "shop@h1.shop.internal"
        has "$said" "two@far"
        said=$(e app@far nodes)
        has "$said" "shop@h1.shop.internal "
        has "$said" "two@far "
        has "$(e app@far -n three lists:seq/2)" "epmd on app@far knows no node of that name"
        # An assistant may use the whole name of a node that -n names without a host.
        coproc MCP { "$ETRACE_BIN" mcp --ssh app@far -n shop; }
        ask() { printf "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n" "$1" "$2" >&"${MCP[1]}" && read -r -u "${MCP[0]}" said; }
        ask initialize "{\"protocolVersion\":\"2025-11-25\"}"
        ask tools/call "{\"name\":\"nodes\"}"
        has "$said" "shop@h1.shop.internal"
        ask tools/call "{\"name\":\"why\",\"arguments\":{\"node\":\"shop@h1.shop.internal\",\"process\":\"init\"}}"
        has "$said" "idle: waits for a message"
        ask tools/call "{\"name\":\"why\",\"arguments\":{\"node\":\"two@far\",\"process\":\"init\"}}"
        has "$said" "does not allow the node two@far"'
}

# bats test_tags=long
@test "cookies go to the nodes of the user of ssh only" {
    alone "$FAR"'
        far_begin
        far_node app -sname shop
        far_node other -sname theirs
        e app@far doctor -n shop >said
        has "$(<said)" "the cookie is accepted (from /app/app/.erlang.cookie on app@far)"
        # The node of another user: neither our cookie nor that of the user of ssh.
        said=$(e app@far -n theirs lists:seq/2)
        has "$said" "who does not get your cookie"
        has "$said" "belongs to another user (uid 64002)"
        is "$(grep -c "Connection attempt" log.2 || true)" 0
        # That user and root find its cookie, and --cookie-file goes everywhere.
        has "$(e other@far doctor -n theirs)" "the cookie is accepted (from /app/other/.erlang.cookie on other@far)"
        has "$(e root@far doctor -n theirs)" "the cookie is accepted (from /app/other/.erlang.cookie on root@far)"
        cookie_file ./given cookie_of_other
        has "$(e app@far doctor -n theirs --cookie-file ./given)" "the cookie is accepted (from ./given)"
        # A process may name a file that only root reads: etrace reads it with the rights of the process.
        far other mkdir /tmp/theirs
        HOME_OF_NODE=/tmp/theirs far_node other -sname liar
        has "$(e root@far doctor -n liar)" "the cookie is accepted (from /tmp/theirs/.erlang.cookie on root@far)"
        far other ln -sf /app/root/.erlang.cookie /tmp/theirs/.erlang.cookie
        said=$(e root@far doctor -n liar)
        has "$said" "read from ~/.erlang.cookie on root@far"
        [[ $said != */tmp/theirs* ]] || is "$said" "nothing from /tmp/theirs"'
}

# bats test_tags=long
@test "our own cookie goes to a node of the user of ssh" {
    alone "$FAR"'
        far_begin
        far_node app -sname args -setcookie in_the_arguments
        has "$(e app@far doctor -n args)" "the cookie is accepted (from -setcookie of process"
        cookie_file "$HOME/.erlang.cookie" mine
        far_node app -sname mine -eval "erlang:set_cookie(mine)."
        has "$(e app@far doctor -n mine)" "the cookie is accepted (from ~/.erlang.cookie)"'
}

# bats test_tags=long
@test "a login that fails is one line" {
    alone "$FAR"'
        far_begin "PasswordAuthentication yes"
        far_node app -sname shop
        lines() { [[ $(grep -c "^etrace: " <<<"$1") == 1 && $1 == *"status 3" ]] || is "$1" "one line of etrace, and status 3"; }
        mv "$FAR_HOME/key" "$FAR_HOME/no_key"
        said=$(e app@far lists:seq/2)
        lines "$said"
        has "$said" "ssh cannot log in to app@far: app@far: Permission denied"
        has "$said" "hint: without a terminal ssh cannot ask for a password"
        mv "$FAR_HOME/no_key" "$FAR_HOME/key"
        mv "$FAR_HOME/known_hosts" "$FAR_HOME/known"
        said=$(e app@far lists:seq/2)
        lines "$said"
        has "$said" "Host key verification failed"
        mv "$FAR_HOME/known" "$FAR_HOME/known_hosts"
        said=$(e no.such.host lists:seq/2)
        lines "$said"
        has "$said" "ssh cannot log in to no.such.host: Could not resolve hostname"
        has "$(e -oProxyCommand=x lists:seq/2)" "--ssh takes [USER@]HOST"
        (PATH=/nowhere; has "$(e app@far lists:seq/2)" "--ssh needs the program ssh, which is not installed here")
        far_no_mux'
}

# bats test_tags=long
@test "an sshd that forbids forwarding, and a user without a shell, are named" {
    alone "$FAR"'
        far_begin "AllowTcpForwarding no"
        far_node app -sname shop
        said=$(e app@far -n shop lists:seq/2)
        has "$said" "cannot connect to shop@far: sshd on app@far does not connect to port"
        has "$said" "administratively prohibited"
        has "$said" "hint: AllowTcpForwarding"
        passwd=$(sed "s|^app:\(.*\):/bin/sh$|app:\1:/bin/false|" "$FAR_HOME/passwd")
        echo "$passwd" >"$FAR_HOME/passwd"
        said=$(e app@far lists:seq/2)
        has "$said" "ssh logs in to app@far, but no shell starts there"'
}

# bats test_tags=long
@test "Ctrl-C, a signal and the end of ssh leave no process and no socket" {
    alone "$FAR"'
        far_begin
        far_node app -sname shop -eval "$beat."
        # The file of an earlier trace must not be taken for that of this one, whose process empties it later.
        traces() { rm -f out; "$ETRACE_BIN" --ssh app@far "$@" lists:seq/2 </dev/null >out 2>err & E=$!; await grep -qs "lists:seq" out; }
        ends() { wait "$E" && status=0 || status=$?; }
        for signal in INT TERM HUP; do
            traces
            kill -"$signal" "$E"
            ends
            has "$(<err)" " in "
            far_no_mux
        done
        # The whole group, as timeout and a terminal send it.
        set -m
        traces
        kill -INT -- "-$E"
        ends
        set +m
        has "$(<err)" " in "
        [[ $(<err) != *lost* ]] || is "$(<err)" "no loss"
        far_no_mux
        # etrace is killed: everything ends by itself.
        traces
        kill -KILL "$E"
        ends
        await far_no_mux
        # The first ssh is killed: the node is lost.
        traces
        kill -KILL "$(pgrep -o -x ssh)"
        ends
        has "$(<err)" "shop@far"
        is "$(grep -c "ssh to app@far has ended" err)" 1
        is "$status" 1
        await far_no_mux
        clean() { [[ $(far app "$ETRACE_ERL" -noinput -eval "io:write(1), halt().") == 1 ]]; }
        clean'
}

# bats test_tags=long
@test "commands, the interactive mode and what they print go through ssh" {
    alone "$FAR"'
        far_begin
        far_node app -sname shop -eval "register(waits, spawn(fun() -> receive never -> ok end end)), $beat."
        has "$(e app@far ps)" "code_server"
        has "$(e app@far -n shop why waits)" "etrace ps --ssh app@far -n shop@far -P"
        printf "%s\\n" ":detach shop@far" ":attach shop" ":ps" >script
        said=$("$ETRACE_BIN" repl --ssh app@far <script 2>&1) || is "$?" 0
        has "$said" "code_server"
        # One login, and commands in the interactive mode use it, too.
        is "$(far root grep -c "Accepted publickey" /tmp/sshd.log)" 3
        # A key in the shell logs in to no other host.
        "$ETRACE_BIN" __complete trace --ssh app@far "lists:s" || true
        is "$(far root grep -c "Accepted publickey" /tmp/sshd.log)" 3
        has "$(e app@far lists:seq/2 -- true)" "--ssh does not go with -- COMMAND: etrace starts the command on this host"
        # A node that comes back is reached through the same ssh.
        "$ETRACE_BIN" --ssh app@far -n shop --reattach lists:seq/2 >out 2>err </dev/null &
        E=$!
        await grep -q "lists:seq" out
        far root pkill -x beam.smp
        await grep -q "waiting for it" err
        far_node app -sname shop -eval "$beat."
        : >out
        await grep -q "lists:seq" out
        kill -INT "$E"
        wait "$E" || true
        await far_no_mux'
}

# bats test_tags=long
@test "--cluster traces the nodes of the host of ssh, and names those of other hosts" {
    alone "$FAR"'
        far_begin
        far_dist="-connect_all false" # no node of the cluster connects to three, whose host has no address
        far_node app -sname one -eval "$beat."
        far_node app -sname two -eval "true = net_kernel:connect_node(one@far), $beat."
        far_node app -sname three@elsewhere -eval "true = net_kernel:connect_node(one@far)."
        said=$(e app@far -n one --cluster --expect "node == one@far" --expect "node == two@far" lists:seq/2)
        has "$said" "two@far "
        has "$said" "not traced: three@elsewhere is on another host than one@far"
        is "$(grep -c elsewhere <<<"$said")" 1
        far_no_mux'
}

# bats test_tags=long
@test "a configuration with ControlMaster, and a jump host, work" {
    alone "$FAR"'
        far_begin
        far_node app -sname shop -eval "$beat."
        own=$(mktemp -d /tmp/own.XXXXXX) # ssh adds to this path, and the path of a socket has a limit
        printf "    %s\n" "ControlMaster auto" "ControlPath $own/%n" "ControlPersist 60" >>"$FAR_HOME/config"
        # The connections of etrace are its own: it leaves no master behind, and one of the user stays.
        has "$(e app@far --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        [[ -z $(ls "$own") ]]
        ssh app@far true
        has "$(e app@far --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        far_no_mux
        ssh -O check app@far
        ssh -O exit app@far
        nsenter --target "$CONTAINER_PID" --all --root --wd "$ETRACE_SSHD/sshd" -f /app/sshd_config -o Port=2222 -o ListenAddress=127.0.0.1
        printf "%s\n" "Host behind" "    HostName 127.0.0.1" "    Port 2222" "    HostKeyAlias far" "    UserKnownHostsFile $FAR_HOME/known_hosts" \
            "    IdentityFile $FAR_HOME/key" "    IdentitiesOnly yes" "    ProxyJump app@far" >>"$FAR_HOME/config"
        has "$(e app@behind --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        ssh -O exit app@far || true # the master of the jump
        rm -r "$own"
        far_no_mux'
}

# bats test_tags=long
@test "the other host may have only the shell and the programs of busybox" {
    alone "$FAR"'
        BUSYBOX=$ETRACE_BUSYBOX
        far_begin
        has "$(ssh app@far "readlink /proc/\$\$/exe; grep --help 2>&1")" "/app/busybox/busybox"
        far_node app -sname shop -eval "$beat."
        far_node app -sname two -eval "$beat."
        has "$(e app@far -n shop --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        said=$(e app@far nodes)
        has "$said" "shop@far "
        has "$said" "two@far "
        far_no_mux'
}

# bats test_tags=long
@test "TLS goes through ssh" {
    alone "$FAR"'
        far_begin
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=far -addext subjectAltName=DNS:far \
            -keyout key.pem -out cert.pem 2>/dev/null
        cat key.pem cert.pem | far app sh -c "cat >/tmp/both.pem; echo \"[{server,[{certfile,\\\"/tmp/both.pem\\\"}]},{client,[{verify,verify_none}]}].\" >/tmp/tls.conf"
        far_node app -sname shop -proto_dist inet_tls -ssl_dist_optfile /tmp/tls.conf -eval "$beat."
        has "$(e app@far -n shop --tls-ca cert.pem --limit 1 lists:seq/2)" "lists:seq(1, 3)"
        has "$(e app@far nodes --tls-ca cert.pem)" "  ok"
        has "$(e app@far -n shop lists:seq/2)" "it accepts only TLS connections"'
}

# bats test_tags=long
@test "ssh asks for a password on the terminal, and Ctrl-C there ends everything" {
    alone "$FAR"'
        far_begin "PasswordAuthentication yes"
        far_node app -sname shop -eval "$beat."
        shadow=$(sed "s|^app:[*]:|app:$(openssl passwd -6 secret):|" "$FAR_HOME/shadow")
        echo "$shadow" >"$FAR_HOME/shadow"
        rm "$FAR_HOME/key"
        tty() { python3 "$ETRACE_ROOT/tests/lib/on_tty.py" "$@" || echo "status $?"; }
        # Asked once, although etrace opens several connections. Later Ctrl-C ends etrace only, as without ssh.
        said=$(tty "password:" "secret\\n" "lists:seq(1, 3)" "\\x03" -- "$ETRACE_BIN" --ssh app@far lists:seq/2)
        is "$(grep -c "password:" <<<"$said")" 1
        has "$said" " in "
        has "$said" "echo on"
        [[ $said != *status* && $said != *lost* ]] || is "$said" "status 0 and nothing lost"
        await far_no_mux
        said=$(tty "password:" "wrong\\n" "password:" "\\x03" -- "$ETRACE_BIN" --ssh app@far lists:seq/2)
        has "$said" "echo on"
        has "$said" "status"
        await far_no_mux'
}
