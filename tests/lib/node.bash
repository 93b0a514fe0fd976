# shellcheck shell=bash
# Nodes under test, for the bats suites. To be loaded by a .bats file that tests/run starts:
# the OTP, the epmd, the cookie and the directories come from there.
#
#   node_start NAME [ERL FLAGS]   starts a node with a unique name, waits until it is up, sets NODE
#   node_eval NODE 'Expr'         evaluates Erlang on it and prints the value; 1 if it raised
#   node_snapshot NODE            everything a tracer could leave on it, one line each
#   assert_clean [--atoms N] BEFORE NODE [SECONDS]
#                                 nothing differs from the snapshot BEFORE, at once or within SECONDS
#                                 (8: less than the lease), for what goes away by itself; N atoms more are accepted (0)
#   node_log NODE                 what it printed
#   node_stop NODE, nodes_stop    kills it, or all that this test started; every test ends with it
#
# node_eval goes through a socket of the module control, not through the distribution, so looking
# at a node leaves no trace on it. The modules work and control are in every node's code path.

# shellcheck source=tests/lib/process.bash
. "${BASH_SOURCE[0]%/*}/process.bash"

NODE=
NODES=()

node_dir() { echo "${ETRACE_RUN_DIR:?start the suite with tests/run}/nodes/${1%@*}"; }

# The modules of tests/lib, compiled by the OTP under test.
node_lib() {
    local lib=$ETRACE_RUN_DIR/lib-$ETRACE_OTP new
    if [[ ! -d $lib ]]; then
        new=$(mktemp -d "$lib.XXXXXX")
        "$ETRACE_ERLC" -o "$new" "$ETRACE_ROOT"/tests/lib/*.erl || return 1
        mv -T "$new" "$lib" 2>/dev/null || rm -rf "$new"
    fi
    echo "$lib"
}

node_start() {
    local name=$1 lib dir ready
    shift
    lib=$(node_lib) || return 1
    mkdir -p "$ETRACE_RUN_DIR/nodes"
    dir=$(mktemp -d "$ETRACE_RUN_DIR/nodes/${name}_XXXXXX") || return 1
    NODE=${dir##*/}@127.0.0.1
    NODES+=("$NODE")
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$dir/secret"
    mkfifo "$dir/ready"
    exec {ready}<>"$dir/ready"
    (
        cd "$dir" || exit 1
        CONTROL_DIR=$dir CONTROL_OTP=${ETRACE_ERL%/bin/*} \
            exec "$ETRACE_ERL" +Bi -noshell -noinput -name "$NODE" -start_epmd false \
            -kernel inet_dist_use_interface '{127,0,0,1}' -pa "$lib" -s control "$@" \
            </dev/null >"$dir/log" 2>&1 3>&- {ready}>&-
    ) &
    echo $! >"$dir/pid"
    if await_line "$!" "$ready"; then
        echo "$LINE" >"$dir/port"
        exec {ready}>&-
        return 0
    fi
    exec {ready}>&-
    echo "the node $NODE does not start:" >&2
    cat "$dir/log" >&2
    return 1
}

node_eval() {
    local dir expr=${2//$'\n'/ } status='' socket
    dir=$(node_dir "$1")
    [[ $expr == *. ]] || expr+=.
    if ! { exec {socket}<>"/dev/tcp/127.0.0.1/$(<"$dir/port")"; } 2>/dev/null; then
        echo "the node $1 is not there" >&2
        return 1
    fi
    printf '%s\n%s\n' "$(<"$dir/secret")" "$expr" >&"$socket"
    IFS= read -r -t 30 -u "$socket" status 2>/dev/null || status='no answer'
    case $status in
        ok) cat <&"$socket" ;;
        error) cat <&"$socket" >&2 ;;
        *) echo "the node $1 does not answer" >&2 ;;
    esac
    exec {socket}>&-
    [[ $status == ok ]]
}

node_snapshot() { node_eval "$1" 'control:snapshot()'; }

assert_clean() {
    local allowed=0 before node after end old new
    if [[ $1 == --atoms ]]; then
        allowed=$2
        shift 2
    fi
    before=$1 node=$2
    end=$((${EPOCHREALTIME/./} + ${3:-8} * 1000000))
    old=$(sed -n 's/^atoms //p' <<<"$before")
    while after=$(node_snapshot "$node"); do
        new=$(sed -n 's/^atoms //p' <<<"$after")
        ((new - old > allowed)) || after=${after/"atoms $new"/"atoms $old"}
        [[ $after != "$before" ]] || return 0
        if ((${EPOCHREALTIME/./} > end)); then
            echo "the node $node is not as it was:" >&2
            diff <(echo "$before") <(echo "$after") >&2 || true
            return 1
        fi
        read -r -t 0.02 <> <(:) || true
    done
    return 1
}

node_log() { cat "$(node_dir "$1")/log"; }

# The process is a child of the shell that started it, which need not be this one.
node_stop() {
    local dir pid i
    dir=$(node_dir "$1")
    [[ -f $dir/pid ]] || return 0
    pid=$(<"$dir/pid")
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    for ((i = 0; i < 500; i++)); do
        [[ $(ps -o stat= -p "$pid") == [!Z]* ]] || break
        read -r -t 0.01 <> <(:) || true
    done
    rm -f "$dir/pid"
}

nodes_stop() {
    local node
    for node in "${NODES[@]}"; do node_stop "$node"; done
    NODES=()
}
