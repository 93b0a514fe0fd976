#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the pages in share/doc about places where people run nodes, as they are written, on releases of
# mix. Containers are namespaces; docker, kubectl and others are tests/lib/page_tool.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

setup_file() {
    # shellcheck source=tests/lib/pages.bash
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    export RELEASES=$BATS_FILE_TMPDIR
    { app_release "$RELEASES" && app_release "$RELEASES/tls" ', :ssl'; } >"$RELEASES/log" 2>&1 || {
        cat "$RELEASES/log" >&2
        return 1
    }
}

# Functions for the scripts.
PAGES='
    . "$ETRACE_ROOT/tests/lib/container.bash"
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    page_begin
'

@test "containers: the host" {
    alone "$PAGES"'
        release_in none epmd
        page_run containers.md "The host"'
}

@test "containers: docker exec" {
    alone "$PAGES"'
        release_in exec epmd
        page_run containers.md "docker exec"'
}

@test "containers: beside a read-only container" {
    alone "$PAGES"'
        release_in none none
        page_run containers.md "Beside a read-only container"'
}

@test "containers: kubectl exec" {
    alone "$PAGES"'
        release_in exec none
        page_run containers.md "kubectl exec"'
}

# Two commands reach a stock release in a read-only container without epmd. tests/release does it for aarch64.
@test "containers: kubectl port-forward" {
    alone "$PAGES"'
        release_in none none
        page_run containers.md "kubectl port-forward"
        is "$(grep -o "kubectl port-forward\|etrace --port" page.ran | xargs)" \
            "kubectl port-forward etrace --port kubectl port-forward etrace --port"'
}

@test "containers: kubectl debug" {
    alone "$PAGES"'
        release_in none none
        page_run containers.md "kubectl debug"'
}

@test "containers: a sidecar" {
    alone "$PAGES"'
        release_in none none
        cp etrace "$CONTAINERS/beside/root/tmp/etrace"
        export PAGE_SIDECAR_USER=65534
        page_run containers.md "A sidecar"'
}

# Functions for the pages on releases and on the network: their commands run in the container, beside the release.
INSIDE='
    # Makes the container my_app with a release, and the names of hosts.
    made() { # RELEASE
        container_make my_app exec
        cp -r "$RELEASES/$1/." "$ROOT/app"
        { cat /etc/hosts && echo "127.0.0.1 my-app app.example.com"; } >hosts
        mount --bind hosts "$ROOT/etc/hosts"
        export PAGE_CONTAINER=my_app
    }
    # Starts the release with variables, and waits for it.
    started() { # ASSIGNMENTS
        container_start my_app env HOME=/ "$@" /app/bin/my_app start
        page_inside
        up_there() { container_exec my_app 65534 /tmp/tools/etrace nodes 2>&1 | grep -qE "^my_app.*  (ok|it accepts only TLS)"; }
        await up_there
    }
'

@test "releases: the host, another host, and no epmd" {
    alone "$PAGES$INSIDE"'
        made my_app.release
        started
        page_run releases.md "On the host of the release"
        kill -KILL "$CONTAINER_PID"
        made my_app.release
        started RELEASE_DISTRIBUTION=name RELEASE_NODE=my_app@app.example.com
        RELEASE_NODE=my_app@app.example.com
        page_run releases.md "The cookie"
        kill -KILL "$CONTAINER_PID"
        made my_app.release
        tee -a "$ROOT"/app/releases/*/vm.args "$ROOT"/app/releases/*/remote.vm.args <<<"$without_epmd" >/dev/null
        started
        page_run releases.md "Without epmd"'
}

@test "releases: without distribution, in Elixir and in Erlang" {
    alone "$PAGES$INSIDE"'
        for language in "Node.start" "net_kernel:start"; do
            made my_app.release
            mkfifo -m 666 "$ROOT/tmp/typed"
            exec 9<>"$ROOT/tmp/typed"
            if [[ $language == Node.start ]]; then
                start="RELEASE_DISTRIBUTION=none exec /app/bin/my_app start_iex"
            else
                start="cd /tmp; ERL_LIBS=/app/lib exec erl -eval \"application:ensure_all_started(my_app).\""
            fi
            container_start my_app sh -c "HOME=/tmp PATH=$PATH; export HOME PATH; { $start; } <>/tmp/typed"
            page_inside
            listed() { container_exec my_app 65534 /tmp/tools/etrace nodes 2>&1 | grep -q "no distribution: "; }
            await listed
            page_data "$ETRACE_ROOT/share/doc/releases.md" "Without distribution" | grep -F "$language" >&9
            up_there() { container_exec my_app 65534 /tmp/tools/etrace nodes 2>&1 | grep -q "^my_app.*  ok"; }
            await up_there
            page_run releases.md "Without distribution"
            kill -KILL "$CONTAINER_PID"
        done'
}

@test "releases: the start of a release" {
    alone "$PAGES$INSIDE"'
        made my_app.release
        container_start my_app sleep infinity
        page_inside
        # The release ends by the signal, and etrace exits with its status.
        PAGE_SIGNAL=TERM PAGE_STATUS=143
        page_run releases.md "The start of a release"'
}

@test "network: TLS" {
    alone "$PAGES$INSIDE"'
        made tls/my_app.release
        new="openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
        (
            cd "$ROOT/app"
            $new -x509 -keyout ca.key -out ca.pem -days 2 -subj /CN=ca
            echo "subjectAltName=DNS:app.example.com" >names
            for who in server client; do
                $new -keyout $who.key -out $who.csr -subj /CN=$who
                openssl x509 -req -in $who.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out $who.pem
            done
            chmod 644 ./*.key
        ) >log.openssl 2>&1
        cat >"$ROOT/app/ssl_dist.conf" <<END
[{server, [{certfile, "/app/server.pem"}, {keyfile, "/app/server.key"}, {verify, verify_none}]},
 {client, [{cacertfile, "/app/ca.pem"}, {verify, verify_peer}]}].
END
        echo "-proto_dist inet_tls -ssl_dist_optfile /app/ssl_dist.conf" | tee -a "$ROOT"/app/releases/*/vm.args >/dev/null
        started RELEASE_DISTRIBUTION=name RELEASE_NODE=my_app@app.example.com
        has "$(container_exec my_app 65534 /tmp/tools/etrace doctor 2>&1)" "hint: --tls-optfile /app/ssl_dist.conf is the file of the node"
        page_run network.md "TLS"'
}

@test "network: IPv6 only" {
    [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
    alone "$PAGES$INSIDE"'
        made my_app.release
        page_data "$ETRACE_ROOT/share/doc/network.md" "IPv6 only" | tee -a "$ROOT"/app/releases/*/env.sh >/dev/null
        container_start my_app env HOME=/ FLY_PRIVATE_IP=fdaa:0:1::3 /app/bin/my_app start
        nsenter --net --target "$CONTAINER_PID" ip -6 addr add fdaa:0:1::3/128 dev lo nodad
        page_inside
        up_there() { container_exec my_app 65534 /tmp/tools/etrace nodes 2>&1 | grep -q "^my_app@fdaa:0:1::3.*  ok"; }
        await up_there
        page_run network.md "IPv6 only"'
}

# The host of the page is that of tests/lib/far.bash, whose user is app.
@test "network: another host with ssh" {
    ETRACE_SSHD=$("$ETRACE_ROOT/tests/sshd")
    export ETRACE_SSHD
    alone ". \"\$ETRACE_ROOT/tests/lib/far.bash\"; far_begin; $PAGES"'
        PATH=$FAR_HOME/bin:$PATH
        orders="{ok, M, B} = compile:forms([{attribute, 1, module, list_to_atom(\"Elixir.MyApp.Orders\")}, {attribute, 1, export, [{place, 1}]},
            {function, 1, place, 1, [{clause, 1, [{var, 1, list_to_atom(\"N\")}], [], [{atom, 1, ok}]}]}]),
            code:load_binary(M, [], B), spawn(fun F() -> M:place(1), timer:sleep(10), F() end)."
        far_node app -sname my_app -eval "$orders"
        page_where=()
        PAGE_EDIT="s/deploy@app1/app@far/"
        page_run network.md "Another host with ssh"'
}

# Blocks without commands, by their first line, and what uses them.
blocks='
spec:|the sidecar of the test has the same processes and the same user
export ERL_AFLAGS="-proto_dist inet6_tcp"|the test appends it to env.sh
-start_epmd false -erl_epmd_port 6789|all tests without epmd append it to vm.args
:os.cmd(~c"epmd -daemon; sleep 1"); Node.start(:my_app, :shortnames)|the test types both into a shell
'

@test "the suite runs every section of the pages, and knows every other block" {
    local page heading first known
    # shellcheck source=tests/lib/pages.bash
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    for page in containers releases network; do
        while IFS= read -r heading; do
            [[ $(page_blocks "$ETRACE_ROOT/share/doc/$page.md" "$heading" | grep -c '^\$ ') == 0 ]] ||
                grep -qF "page_run $page.md \"$heading\"" "$BATS_TEST_FILENAME" || fail "$page.md: the section $heading is not run"
            known=$(page_data "$ETRACE_ROOT/share/doc/$page.md" "$heading")
            first=${known%%$'\n'*}
            [[ ! $known || $blocks == *$'\n'"$first|"* ]] || fail "$page.md: a block in $heading is not in the list: $first"
        done < <(sed -n 's/^#* //p' "$ETRACE_ROOT/share/doc/$page.md")
    done
}
