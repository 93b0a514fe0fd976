# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs scripts in a process namespace of their own, for tests of commands that look at all processes of the host.
#
#   alone SCRIPT   runs SCRIPT in $BATS_TEST_TMPDIR, where /proc shows only what SCRIPT starts, and fails if it fails.
#                  All processes of SCRIPT end with it. SCRIPT sources this file, and uses the functions below. With
#                  ALONE_NET it also has a network of its own, with a loopback only and an own epmd.
#
#   await COMMAND...     repeats COMMAND until it succeeds; fails after 100 s
#   up COMMAND...        starts a node with a command such as erl, and waits until it is up. Sets PID and UP (its name). The variables
#                        NAME, HOME_OF_NODE, AS (words before the command) and BEFORE (an expression that the node
#                        evaluates) apply to the next node, and `dist` to all.
#   cookie_file F TEXT   makes a cookie file that only the user can read
#   source_of OPTIONS    prints the place of the cookie that the node accepts
#   refused N            succeeds if the last node has reported that it refused N connections; it reports them later
#   is GOT WANT, has TEXT PART
#                        end the script unless they hold

alone() {
    cd "$BATS_TEST_TMPDIR" || return 1
    run --separate-stderr timeout 500 unshare ${ALONE_NET:+--net} --pid --fork --kill-child --mount-proc \
        bash -c '. "$ETRACE_ROOT/tests/lib/alone.bash"; alone_begin'$'\n'"$1" </dev/null 3>&-
    [[ $status -eq 0 ]] || fail "status $status: $stderr"
}

alone_begin() {
    set -euo pipefail
    # shellcheck source=tests/lib/process.bash
    . "$ETRACE_ROOT/tests/lib/process.bash"
    PATH=${ETRACE_ERL%/*}:$PATH
    if [[ ${ALONE_NET:-} ]]; then
        ip link set lo up
        epmd -daemon
    fi
    unset ETRACE_NODE RELEASE_COOKIE RELEASE_NODE RELEASE_ROOT RELEASE_DISTRIBUTION ERL_DIST_PORT
    dist='-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}'
    started=0
    NAME='' PID='' HOME_OF_NODE='' AS='' BEFORE=''
    cookie_file home/.erlang.cookie homecookie
}

await() {
    local i
    for ((i = 0; i < 2000; i++)); do
        ! "$@" || return 0
        pause 0.05
    done
    tail -n 30 log* >&2
    echo "this never succeeded: $*" >&2
    exit 99
}

up() {
    started=$((started + 1))
    local file=$PWD/up.$started
    NAME=${NAME:-n$started$RANDOM$RANDOM@127.0.0.1}
    # shellcheck disable=SC2086
    HOME=${HOME_OF_NODE:-$PWD/home} $AS "$@" $dist -noinput -name "$NAME" \
        -eval "${BEFORE:-ok}, ok = file:write_file(\"$file\", \"\")." </dev/null >"log.$started" 2>&1 &
    PID=$!
    await [ -e "$file" ]
    UP=$NAME
    NAME='' HOME_OF_NODE='' AS='' BEFORE=''
}

cookie_file() {
    mkdir -p "${1%/*}"
    (umask 077 && printf %s "$2" >"$1")
}

source_of() { "$ETRACE_BIN" doctor "$@" | sed -n 's/.*the cookie is accepted (from \(.*\))$/\1/p'; }

refused() { [[ $(grep -c 'Connection attempt from' "log.$started") == "$1" ]]; }

is() {
    [[ $1 == "$2" ]] && return
    printf 'got:  %s\nwant: %s\n' "$1" "$2" >&2
    exit 98
}

has() {
    [[ $1 == *"$2"* ]] && return
    printf 'got:  %s\nwant: ... %s ...\n' "$1" "$2" >&2
    exit 98
}
