#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests that etrace reaches nodes as people run them: where it finds their cookie, and how it finds nodes without epmd,
# without a name, in containers and of other users.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

@test "a cookie among the arguments of a node is found, also from ERL_FLAGS and vm.args" {
    alone '
        up erl -setcookie of_the_arguments
        is "$(source_of -p "$PID")" "-setcookie of process $PID"
        is "$(source_of -n "$UP")" "-setcookie of process $PID"
        for variable in ERL_AFLAGS ERL_FLAGS ERL_ZFLAGS; do
            up env "$variable=-setcookie of_the_flags" erl
            is "$(source_of -p "$PID")" "-setcookie of process $PID"
        done
        printf -- "-setcookie of_the_file\n+P 70000\n" >vm.args
        up erl -args_file vm.args
        is "$(source_of -p "$PID")" "-setcookie of process $PID"
        # OTP ignores -setcookie if it is there twice, and the form with two values.
        up erl -setcookie one -setcookie two
        is "$(source_of -p "$PID")" "$PWD/home/.erlang.cookie"
        up erl -setcookie another@node two
        is "$(source_of -p "$PID")" "$PWD/home/.erlang.cookie"
        refused 0'
}

@test "a cookie with spaces or other letters than ASCII works as the node takes it, in each locale" {
    alone '
        for locale in C.UTF-8 C; do
            for cookie in "a b " $'"'caf\303\251'"' " "; do
                up env LC_ALL=$locale erl -setcookie "$cookie"
                is "$(source_of -p "$PID")" "-setcookie of process $PID"
                cookie_file ./given "$cookie"
                is "$(source_of -p "$PID" --cookie-file given)" given
            done
        done
        # The text is tried first and then its bytes.
        up env LC_ALL=C erl -setcookie $'"'caf\303\251'"'
        said=$("$ETRACE_BIN" -p "$PID" --for 50ms lists:seq/2 2>&1) || is "$?" 0
        await refused 1
        cookie_file home/.erlang.cookie "home cookie "
        BEFORE="erlang:set_cookie(nobody_knows)"
        up erl
        said=$("$ETRACE_BIN" -p "$PID" --cookie-file given lists:seq/2 2>&1) || is "$?" 3
        has "$said" "the cookie does not match (read from given)"'
}

@test "a cookie of the environment, the release or the home of a node is found" {
    alone '
        BEFORE="erlang:set_cookie(in_the_environment)"
        up env RELEASE_COOKIE=in_the_environment erl
        is "$(source_of -p "$PID")" "RELEASE_COOKIE of process $PID"
        mkdir -p release/releases
        echo in_the_file >release/releases/COOKIE
        BEFORE="erlang:set_cookie(in_the_file)"
        up env RELEASE_ROOT="$PWD/release" erl
        is "$(source_of -p "$PID")" "$PWD/release/releases/COOKIE"
        # mix makes this file readable by all, so that is no reason for a warning.
        said=$("$ETRACE_BIN" -p "$PID" --for 50ms lists:seq/2 2>&1)
        [[ $said != *warning* ]] || is "$said" "no warning"
        cookie_file other/.config/erlang/.erlang.cookie in_the_config
        cookie_file xdg/erlang/.erlang.cookie in_the_xdg
        HOME_OF_NODE=$PWD/other
        up erl
        is "$(source_of -p "$PID")" "$PWD/other/.config/erlang/.erlang.cookie"
        HOME_OF_NODE=$PWD/other
        up env XDG_CONFIG_HOME="$PWD/xdg" erl
        is "$(source_of -p "$PID")" "$PWD/xdg/erlang/.erlang.cookie"'
}

@test "etrace tries the places in order, equal cookies once, and names all of them if none matches" {
    alone '
        mkdir -p release/releases
        printf same >release/releases/COOKIE
        BEFORE="erlang:set_cookie(nobody_knows)"
        up env RELEASE_COOKIE=same RELEASE_ROOT="$PWD/release" erl -setcookie first
        export RELEASE_COOKIE=mine
        said=$("$ETRACE_BIN" -p "$PID" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "no cookie matches (tried: -setcookie of process $PID, RELEASE_COOKIE of process $PID, $PWD/home/.erlang.cookie, \$RELEASE_COOKIE)"
        has "$said" "hint: erlang:get_cookie() in the node"
        await refused 4
        said+=$("$ETRACE_BIN" doctor -p "$PID" || true)
        has "$said" "read from -setcookie of process $PID; then RELEASE_COOKIE of process $PID; then $PWD/home/.erlang.cookie; then \$RELEASE_COOKIE"
        await refused 8
        # With --cookie-file nothing else is tried.
        cookie_file ./wrong wrong
        said+=$("$ETRACE_BIN" -p "$PID" --cookie-file wrong lists:seq/2 2>&1) || is "$?" 3
        has "$said" "the cookie does not match (read from wrong)"
        has "$said" "hint: without --cookie-file, etrace takes the cookie of process $PID"
        await refused 9
        RELEASE_COOKIE=nobody_knows
        is "$(source_of -n "$UP")" "\$RELEASE_COOKIE"
        for secret in first same mine nobody_knows homecookie; do
            [[ $said != *"$secret"* ]] || is "$said" "no $secret"
        done'
}

@test "for a node whose process is hidden, RELEASE_COOKIE comes before the own cookie file" {
    alone '
        up erl
        said=$(without_proc "$ETRACE_BIN" -n "$UP" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "the cookie does not match (read from ~/.erlang.cookie)"
        has "$said" "hint: --cookie-file or \$RELEASE_COOKIE gives another one"
        RELEASE_COOKIE=homecookie without_proc "$ETRACE_BIN" -n "$UP" --for 50ms lists:seq/2'
}

@test "root reads the cookie of another user, but no file that this user cannot read" {
    alone '
        # For this user, the directory of the OTP must be below directories that everybody can search.
        otp=${ETRACE_ERL%/bin/erl} top=
        IFS=/ read -r -a parts <<<"${otp#/}"
        for part in "${parts[@]}"; do
            top+=/$part
            [[ $(stat -c %a "$top") == *[1357] ]] || break
        done
        # The tree of etrace may be below the same directory.
        mkdir otp tree
        mount --bind "$otp" otp
        mount --bind "$ETRACE_ROOT" tree
        [[ $top == "$otp" ]] || mount -t tmpfs -o mode=755 none "$top"
        mkdir -p "$otp" "$ETRACE_ROOT"
        mount --bind otp "$otp"
        mount --bind tree "$ETRACE_ROOT"
        other="setpriv --reuid 65534 --regid 65534 --clear-groups"
        mount -t tmpfs -o mode=777 none /mnt
        cd /mnt
        cookie_file theirs/.erlang.cookie of_another_user
        chown 65534 theirs/.erlang.cookie
        AS=$other HOME_OF_NODE=$PWD/theirs
        up erl
        is "$(source_of -p "$PID")" "$PWD/theirs/.erlang.cookie"
        cookie_file roots/.erlang.cookie of_root
        AS=$other HOME_OF_NODE=$PWD/roots BEFORE="erlang:set_cookie(of_root)"
        up erl -setcookie of_the_arguments
        said=$("$ETRACE_BIN" -p "$PID" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "the cookie does not match (read from -setcookie of process $PID)"
        has "$said" "belongs to uid 65534, so your own cookie was not tried"
        # Everybody may read this file, and only root may enter its directory.
        cookie_file closed/inner/.erlang.cookie of_root
        chmod 644 closed/inner/.erlang.cookie
        chmod 755 closed/inner
        chmod 700 closed
        ln -s closed/inner link
        for home in closed/inner link; do
            AS=$other HOME_OF_NODE=$PWD/$home BEFORE="erlang:set_cookie(of_root)"
            up erl -setcookie of_the_arguments
            said=$("$ETRACE_BIN" -p "$PID" lists:seq/2 2>&1) || is "$?" 3
            has "$said" "the cookie does not match (read from -setcookie of process $PID)"
        done
        # A group of the user counts, too.
        cookie_file shared/.erlang.cookie of_the_group
        chown 0:1234 shared/.erlang.cookie
        chmod 640 shared/.erlang.cookie
        AS="setpriv --reuid 65534 --regid 65534 --groups 1234" HOME_OF_NODE=$PWD/shared BEFORE="erlang:set_cookie(of_the_group)"
        up erl -setcookie of_the_arguments
        is "$(source_of -p "$PID")" "$PWD/shared/.erlang.cookie"
        # A process with two users, such as su, has the rights of one of them only.
        cp /usr/bin/python3 beam.smp
        PYTHONHOME=/usr setpriv --ruid 65534 ./beam.smp -c "import time; time.sleep(1000)" beam -root /x -bindir /x/erts-17.0/bin \
            -name two@127.0.0.1 -erl_epmd_port 4411 -home "$PWD/roots" &
        PID=$!
        runs() { [[ $(readlink "/proc/$PID/exe") == */beam.smp ]]; }
        await runs
        said=$("$ETRACE_BIN" doctor -p "$PID" 2>&1) || true
        has "$said" "read from ~/.erlang.cookie"
        [[ $said != *roots* ]] || is "$said" "nothing of roots"'
}

@test "etrace says that the process of a node belongs to another user" {
    alone '
        dir=$(mktemp -d /tmp/somebody.XXXXXX)
        trap "rm -r \"$dir\"" EXIT
        cp "$ETRACE_BIN" "$dir/etrace"
        cookie_file "$dir/.erlang.cookie" wrong
        chown 65534 "$dir/.erlang.cookie"
        chmod 755 "$dir" "$dir/etrace"
        somebody() { HOME=$dir setpriv --reuid 65534 --regid 65534 --clear-groups "$dir/etrace" "$@"; }
        up erl
        said=$(somebody -n "$UP" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "hint: process $PID belongs to another user: run etrace as that user or as root, or use --cookie-file"
        export ERL_EPMD_PORT=1
        dist="-start_epmd false -erl_epmd_port 0"
        up erl
        has "$(somebody nodes)" "its sockets are hidden, because it belongs to another user (uid 0)"'
}

@test "the cookie of a container is read in the file system of the container" {
    alone '
        mkdir root
        mount --rbind / root
        mount -t tmpfs inside root/mnt
        # For the node, the link leads to a file of the container.
        cookie_file root/mnt/real in_the_container
        ln -s /mnt/real root/mnt/.erlang.cookie
        HOME_OF_NODE=/mnt AS="chroot root"
        up erl
        [[ ! -e /mnt/real ]]
        is "$(source_of -p "$PID")" "/mnt/.erlang.cookie of process $PID"'
}

@test "etrace nodes lists processes beside those of epmd, says how to attach, and why it cannot" {
    alone '
        up erl
        known=$UP known_pid=$PID
        printf "#!/bin/sh\nip link set lo up\nexec \"\$@\"\n" >lo
        chmod 755 lo
        local_epmd=$ERL_EPMD_PORT dist="-start_epmd false -erl_epmd_port $((20000 + RANDOM % 12000)) -kernel inet_dist_use_interface {127,0,0,1}"
        export ERL_EPMD_PORT=1
        NAME=lonely@127.0.0.1
        up erl
        lonely=$PID
        NAME=apart@127.0.0.1 AS="unshare -n $PWD/lo"
        up erl
        apart=$PID
        ERL_EPMD_PORT=$local_epmd
        erl -noinput -eval "ok = file:write_file(\"nameless\", \"\")." </dev/null >log.nameless 2>&1 &
        nameless=$!
        erl -noinput -name deaf@127.0.0.1 -dist_listen false -start_epmd false -eval "ok = file:write_file(\"deaf\", \"\")." \
            </dev/null >log.deaf 2>&1 &
        deaf=$!
        mkfifo never
        cp "$(type -P bash)" beam.smp
        ./beam.smp -c "read -r <never" beam -root /x -bindir /x/erts-14.2.5/bin -name old@127.0.0.1 &
        old=$!
        await [ -e nameless ]
        await [ -e deaf ]
        "$ETRACE_BIN" nodes --json >json
        "$ETRACE_BIN" schema >schema
        /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" schema json >&2
        of() { jq -r --argjson pid "$1" "select(.os_pid == \$pid) | [$2] | map(tostring) | join(\" \")" json; }
        is "$(of "$known_pid" ".node, .otp, .epmd, .reachable, .attach")" "$known $ETRACE_OTP true true -n $known"
        is "$(of "$lonely" ".node, .otp, .epmd, .reachable, .attach")" "lonely@127.0.0.1 $ETRACE_OTP false true -p $lonely"
        is "$(of "$apart" ".node, .reachable, .attach")" "apart@127.0.0.1 true -p $apart"
        is "$(of "$nameless" ".node, .port, .reachable, .reason")" " 0 false no distribution: it was started without -sname and -name"
        is "$(of "$deaf" ".reachable, .reason")" "false it accepts no connections: it was started with -dist_listen false"
        is "$(of "$old" ".otp, .reachable, .reason")" "26 false the node runs OTP 26; etrace needs OTP 27 or newer there"
        is "$(jq -s length json)" 6
        "$ETRACE_BIN" nodes >text
        is "$(head -n 1 text | xargs)" "NODE PORT PID OTP STATE"
        grep -qE "^$known +[0-9]+ +$known_pid +$ETRACE_OTP  ok\$" text
        grep -qE "^lonely@127.0.0.1 +[0-9]+ +$lonely +$ETRACE_OTP  ok, with -p $lonely\$" text
        grep -qE "^- +- +$nameless +$ETRACE_OTP  no distribution: " text
        # Several nodes have the same hint, which is printed once.
        for _ in 1 2; do
            ./beam.smp -c "read -r <never" beam -root /x -bindir /x/erts-17.1/bin &
        done
        several() { "$ETRACE_BIN" nodes >text && [[ $(grep -c "  no distribution: " text) == 3 ]]; }
        await several
        is "$(grep -c "hint: in its shell: " text)" 1
        # Each way to attach works.
        jq -r "select(.reachable) | .attach" json | while read -r options; do
            # shellcheck disable=SC2086
            "$ETRACE_BIN" $options --for 50ms lists:seq/2 2>>attached </dev/null
        done
        is "$(grep -c "Ctrl-C stops" attached)" 3'
}

@test "a node without a name is refused with the expression that gives it one, and that expression works" {
    alone '
        mkfifo typed
        exec 8<>typed
        HOME=$PWD/home erl <typed >log 2>&1 &
        PID=$!
        listed() { "$ETRACE_BIN" nodes --json | jq -e "select(.os_pid == $PID)" >/dev/null; }
        await listed
        said=$("$ETRACE_BIN" -p "$PID" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "process $PID listens on no TCP port, so it is not a distributed node"
        hint=$(sed -n "s/^hint: in its shell: \(.*\); or start it with -sname$/\1/p" <<<"$said")
        # With a port of its own, it is still not a node.
        echo "{ok, L} = gen_tcp:listen(0, [{ip, {127,0,0,1}}])." >&8
        listens() { said=$("$ETRACE_BIN" -p "$PID" lists:seq/2 2>&1) || [[ $said != *"listens on no TCP port"* ]]; }
        await listens
        has "$said" "process $PID has no distribution: it was started without -sname and -name"
        echo "${hint/shop/shop$PID}." >&8
        named() { "$ETRACE_BIN" nodes | grep -q "^shop$PID@.*  ok\$"; }
        await named
        "$ETRACE_BIN" -n "shop$PID" --for 50ms lists:seq/2
        "$ETRACE_BIN" -p "$PID" --for 50ms lists:seq/2'
}

@test "etrace takes the only node among the processes, or the one at a port" {
    alone '
        export ERL_EPMD_PORT=1
        port=$((20000 + RANDOM % 12000))
        dist="-start_epmd false -erl_epmd_port $port -kernel inet_dist_use_interface {127,0,0,1}"
        up erl -setcookie its_own
        first=$UP
        attached() {
            local said
            said=$("$ETRACE_BIN" "$@" --for 50ms lists:seq/2 2>&1) || is "$said" attached
            has "$said" "etrace: $first · OTP"
        }
        attached
        attached --port "$port"
        attached -p "$PID"
        ERL_DIST_PORT=$port attached
        ERL_DIST_PORT=$port attached -n "$first"
        ERL_DIST_PORT=$port RELEASE_NODE=$first attached
        said=$(ERL_DIST_PORT=$port RELEASE_NODE=another@127.0.0.1 "$ETRACE_BIN" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "port $port of 127.0.0.1 belongs to $first"
        ERL_DIST_PORT=$port RELEASE_NODE=another@127.0.0.1 RELEASE_DISTRIBUTION=none attached
        said=$("$ETRACE_BIN" --port 1 lists:seq/2 2>&1) || is "$?" 3
        has "$said" "nothing listens on port 1 of"
        dist=${dist/$port/0}
        up erl
        said=$("$ETRACE_BIN" lists:seq/2 2>&1) || is "$?" 3
        has "$said" "several run on this host: "
        has "$said" "$first (process "
        has "$said" "$UP (process $PID)"'
}

@test "-p takes a process that started a node: a script, run_erl, or the first process" {
    alone '
        printf "#!/bin/sh\nerl \"\$@\"\nexit\n" >script
        chmod 755 script
        # Sets NODE_PID.
        attached() { # OSPID
            local said
            said=$("$ETRACE_BIN" -p "$1" --for 50ms lists:seq/2 2>&1) || is "$said" attached
            has "$said" "etrace: $UP · OTP"
            [[ $said =~ "etrace: process "([0-9]+)" is the node, which process $1 started" ]] || is "$said" "a process"
            NODE_PID=${BASH_REMATCH[1]}
            has "$(tr "\0" " " <"/proc/$NODE_PID/cmdline")" " -name $UP "
            has "$("$ETRACE_BIN" doctor -p "$1")" "process $NODE_PID is the node, which process $1 started; $UP listens on port"
        }
        up ./script
        attached "$PID"
        attached $$
        kill -KILL "$NODE_PID"
        # A node that a node started does not count.
        cat >inner <<END
#!/bin/sh
echo \$\$ >inner.pid
exec erl -noinput -name inner@127.0.0.1 $dist -eval "ok = file:write_file(\"inner.up\", [])."
END
        chmod 755 inner
        BEFORE="open_port({spawn, \"./inner\"}, [])"
        up ./script
        await [ -e inner.up ]
        attached "$PID"
        attached $$
        kill -KILL "$NODE_PID" "$(<inner.pid)"
        # A virtual machine without a name does not count beside a node.
        HOME=$PWD/home erl -noinput -eval "ok = file:write_file(\"nameless\", \"\")." </dev/null >log.nameless 2>&1 &
        await [ -e nameless ]
        mkdir pipes
        cat >in_run_erl <<END
#!/bin/sh
HOME=$PWD/home exec erl -name run@127.0.0.1 $dist -eval "ok = file:write_file(\"run.up\", [])."
END
        chmod 755 in_run_erl
        "${ETRACE_ERL%/*}/run_erl" pipes/ . ./in_run_erl </dev/null >log.run_erl 2>&1 &
        PID=$! UP=run@127.0.0.1
        await [ -e run.up ]
        attached "$PID"
        attached $$
        UP=
        up ./script
        said=$("$ETRACE_BIN" -p $$ lists:seq/2 2>&1) || is "$?" 3
        has "$said" "process $$ started several nodes: "
        has "$said" "(run@127.0.0.1)"
        has "$said" "($UP)"
        has "$said" "hint: choose one with -p OSPID"
        attached "$PID"
        # Without a node below it, the process itself is wrong.
        mkfifo never
        (read -r <never) &
        said=$("$ETRACE_BIN" -p $! lists:seq/2 2>&1) || is "$?" 3
        has "$said" "process $! listens on no TCP port, so it is not a distributed node"'
}

@test "a stock release of mix is traced at once by its process and by its name" {
    alone '
        (
            PATH=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/bin:$PATH
            mix new stock >/dev/null
            cd stock
            MIX_ENV=prod mix release --quiet
        ) >log.mix 2>&1 || is "$(<log.mix)" "a release"
        name=stock$RANDOM$RANDOM
        release=stock/_build/prod/rel/stock
        is "$(stat -c %a "$release/releases/COOKIE")" 644
        RELEASE_NODE=$name ELIXIR_ERL_OPTIONS=$dist "$release/bin/stock" start </dev/null >log.release 2>&1 &
        pid=$!
        named() { "$ETRACE_BIN" nodes | grep -q "^$name@.*  ok\$"; }
        await named
        "$ETRACE_BIN" -p "$pid" --for 50ms lists:seq/2
        "$ETRACE_BIN" -n "$name" --for 50ms lists:seq/2
        is "$(source_of -n "$name")" "-setcookie of process $pid"
        said=$("$ETRACE_BIN" -n "$name" --cookie-file "$release/releases/COOKIE" --for 50ms lists:seq/2 2>&1)
        has "$said" "warning: other users can access the cookie file $release/releases/COOKIE (mode 0644)"
        is "$(grep -ciE "error|rejected" log.release || true)" 0'
}

@test "nodes of erl and iex with short names are traced at once by their process and their name" {
    alone '
        for program in erl iex; do
            name=short$RANDOM$RANDOM
            mkfifo "typed.$name"
            exec 7<>"typed.$name"
            if [[ $program == erl ]]; then
                # shellcheck disable=SC2086
                HOME=$PWD/home erl -noinput -sname "$name" $dist <&7 >"log.$name" 2>&1 &
            else
                HOME=$PWD/home iex --sname "$name" --erl "$dist" <&7 >"log.$name" 2>&1 &
            fi
            pid=$!
            named() { "$ETRACE_BIN" nodes | grep -q "^$name@.*  ok\$"; }
            await named
            "$ETRACE_BIN" -p "$pid" --for 50ms lists:seq/2
            "$ETRACE_BIN" -n "$name" --for 50ms lists:seq/2
            # Without epmd, the process is known, and its name only by the handshake.
            said=$(ERL_EPMD_PORT=1 "$ETRACE_BIN" doctor -p "$pid")
            has "$said" "process $pid listens on port"
            has "$said" "connected to $name@"
        done'
}
