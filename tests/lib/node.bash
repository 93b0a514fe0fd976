# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Starts and inspects nodes under test, for the bats suites. A .bats file that tests/run starts loads it: tests/run
# provides the OTP, the epmd, the cookie and the directories.
#
#   node_start NAME [ERL FLAGS]   starts a node with a unique name, waits until it is up, sets NODE
#   node_new NAME                 makes the directory and the name of a node that the caller starts itself, sets NODE
#   node_adopt PID                loads control into NODE, which the caller started as process PID
#   node_eval NODE 'Expr'         evaluates Erlang on it and prints the value; returns 1 if Expr raised
#   node_ask NODE 'Expr'          the same, but sets REPLY to the value and starts no process; for short values. Both wait
#                                 for ASK_SECONDS, by default 120.
#   node_snapshot NODE            prints everything that a tracer could leave on the node, one line each
#   assert_clean [--atoms N] [--names N] [--memory BYTES] BEFORE NODE [SECONDS]
#                                 fails unless the node equals the snapshot BEFORE within SECONDS, and has reported no
#                                 fault. SECONDS is 8 by default, which is less than the lease. It accepts N new atoms
#                                 (0; the words of node_eval's expressions do not count), N new names of clients and
#                                 their modules (40: there are sixteen places, and each concurrent client needs two
#                                 names), and BYTES of memory (1 MiB).
#   node_log NODE                 prints the node's output
#   node_heard NODE [TEXT]        accepts all reports that the node has logged; with TEXT first waits for a report that
#                                 matches
#   node_gone NODE                succeeds when its process has ended
#   erl_is LINE                   writes a replacement for erl, $BATS_FILE_TMPDIR/erl, to be used as ETRACE_ERL. LINE is
#                                 shell code, in which $ETRACE_ERL is the original.
#   node_stop NODE, nodes_stop    kills one node, or all that this test started; every test calls it at its end
#
# node_eval uses a socket of the module control instead of the distribution, so an inspection leaves no trace on the
# node. The modules work and control are in every node's code path.

# shellcheck source=tests/lib/process.bash
declare -F pause >/dev/null || . "${BASH_SOURCE[0]%/*}/process.bash"

NODE=
NODES=()

node_dir() { echo "${ETRACE_RUN_DIR:?start the suite with tests/run}/nodes/${1%@*}"; }

# Prints a directory that MAKE has filled. It is filled once for each OTP, by whichever suite needs it first.
once() { # NAME MAKE
    local dir=${ETRACE_MADE_DIR:-$ETRACE_RUN_DIR}/$1-$ETRACE_OTP lock
    if [[ ! -d $dir ]]; then
        exec {lock}>"$dir.lock"
        flock "$lock" || return 1
        if [[ ! -d $dir ]]; then
            rm -rf "$dir.new" && mkdir "$dir.new" && "$2" "$dir.new" && mv "$dir.new" "$dir" || return 1
        fi
        exec {lock}>&-
    fi
    echo "$dir"
}

# Prints the directory with the modules of tests/lib, compiled by the OTP under test.
node_lib() { once lib lib_make; }

lib_make() { "$ETRACE_ERLC" -o "$1" "$ETRACE_ROOT"/tests/lib/*.erl; } # DIR

# Makes a unique node name and the directory of the node.
node_new() { # NAME
    local dir
    mkdir -p "$ETRACE_RUN_DIR/nodes"
    dir=$(mktemp -d "$ETRACE_RUN_DIR/nodes/${1}_XXXXXX") || return 1
    NODE=${dir##*/}@127.0.0.1
    NODES+=("$NODE")
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$dir/secret"
    mkfifo "$dir/ready"
}

# processes() walks the whole table of processes, and each look at a node calls it, so the table is small.
node_start() {
    local lib dir ready
    lib=$(node_lib) || return 1
    node_new "$1" || return 1
    dir=$(node_dir "$NODE")
    shift
    exec {ready}<>"$dir/ready"
    (
        cd "$dir" || exit 1
        CONTROL_DIR=$dir CONTROL_OTP=${ETRACE_ERL%/bin/*} \
            exec "$ETRACE_ERL" +Bi +P 262144 -noshell -noinput -name "$NODE" -start_epmd false \
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
    echo "the node $NODE did not start:" >&2
    cat "$dir/log" >&2
    return 1
}

node_adopt() {
    local dir lib ready
    dir=$(node_dir "$NODE")
    lib=$(node_lib) || return 1
    echo "$1" >"$dir/pid"
    rm -f "$dir/ready" && mkfifo "$dir/ready"
    exec {ready}<>"$dir/ready"
    # This node exits at once, so it is not connected while a test inspects the other node.
    if timeout 120 "$ETRACE_ERL" +Bi -noshell -noinput -hidden -name "adopt_$BASHPID@127.0.0.1" -start_epmd false \
        -kernel inet_dist_use_interface '{127,0,0,1}' -pa "$lib" -run control adopt "$NODE" "$dir" "${ETRACE_ERL%/bin/*}" \
        </dev/null >"$dir/adopt" 2>&1 3>&- {ready}>&- && await_line "$1" "$ready"; then
        echo "$LINE" >"$dir/port"
        exec {ready}>&-
        return 0
    fi
    exec {ready}>&-
    echo "cannot load the module control into the node $NODE:" >&2
    cat "$dir/adopt" >&2
    return 1
}

# Sends an expression to a node, and sets `answer` to the descriptor from which the caller reads the value and which it
# closes, and `status`.
node_request() { # NODE EXPR
    local dir=$ETRACE_RUN_DIR/nodes/${1%@*} expr=${2//$'\n'/ } port='' secret=''
    [[ $expr == *. ]] || expr+=.
    read -r port 2>/dev/null <"$dir/port" || true
    read -r secret 2>/dev/null <"$dir/secret" || true # it has no newline
    if ! { exec {answer}<>"/dev/tcp/127.0.0.1/$port"; } 2>/dev/null; then
        echo "cannot connect to the node $1" >&2
        return 1
    fi
    printf '%s\n%s\n' "$secret" "$expr" >&"$answer"
    IFS= read -r -t "${ASK_SECONDS:-120}" -u "$answer" status 2>/dev/null || status='no answer'
    [[ $status == ok || $status == error ]] || echo "the node $1 did not answer" >&2
}

node_eval() {
    local answer status=''
    node_request "$@" || return 1
    case $status in
        ok) cat <&"$answer" ;;
        error) cat <&"$answer" >&2 ;;
    esac
    exec {answer}>&-
    [[ $status == ok ]]
}

node_ask() {
    local answer status=''
    REPLY=
    node_request "$@" || return 1
    # A node that has not answered by now may never close the connection.
    [[ $status == 'no answer' ]] || IFS= read -r -d '' -u "$answer" REPLY || true
    exec {answer}>&-
    REPLY=${REPLY%$'\n'}
    [[ $status != error ]] || printf '%s\n' "$REPLY" >&2
    [[ $status == ok ]]
}

node_snapshot() { node_eval "$1" 'control:snapshot()'; }

# Sets REPLY to the number after NAME in a snapshot.
number() { # NAME SNAPSHOT
    REPLY=${2#*$'\n'"$1" }
    REPLY=${REPLY%%$'\n'*}
}

# For assert_clean: replaces the number in AFTER by that of BEFORE unless it has grown by more than N.
accept() { # NAME N
    local old
    number "$1" "$before"
    old=$REPLY
    number "$1" "$after"
    ((REPLY - old > $2)) || after=${after/$'\n'"$1 $REPLY"/$'\n'"$1 $old"}
}

assert_no_report() { # NODE
    local said log
    mapfile log <"$ETRACE_RUN_DIR/nodes/${1%@*}/log" 2>/dev/null
    [[ ${log[*]} == *'REPORT===='* ]] || return 0
    said=$(node_unheard "$1")
    [[ $said == *'REPORT===='* ]] || return 0
    echo "the node $1 logged a report:" >&2
    grep -A 20 'REPORT====' <<<"$said" >&2
    node_heard "$1"
    return 1
}

assert_clean() {
    local atoms=0 names=40 memory=1048576 nobody=$'\nhidden []\n' before node end shared after near deep was files left='' first=yes new what parts now=
    while [[ $1 == --* ]]; do
        case $1 in
            --atoms) atoms=$2 ;;
            --names) names=$2 ;;
            --memory) memory=$2 ;;
        esac
        shift 2
    done
    before=$1 node=$2
    # The parts of memory are diagnostics for a difference; they are not compared.
    parts=${before##*$'\n'parts }
    before=${before%$'\n'parts *}
    shared=$((${EPOCHREALTIME/./} + 8000000))
    end=$((shared + (${3:-8} - 8) * 1000000))
    near=${before%$'\n'breakpoints *}
    deep=${before#"$near"}
    was=
    [[ $near != *$'\nfile '* ]] || was=$(grep '^file ' <<<"$near") || true
    near=${near%%$'\nfile '*}
    while node_ask "$node" 'control:near()'; do
        after=$REPLY
        accept atoms "$atoms"
        accept names "$names"
        # The snapshot BEFORE may include processes that have exited since, so lower numbers are accepted.
        for what in processes ports ets connections; do accept "$what" 0; done
        number hidden "$before"
        after=${after/"$nobody"/$'\n'"hidden $REPLY"$'\n'}
        # Other tests attach to other nodes meanwhile, so their directories come and go. A leftover is there at every
        # look.
        files=
        [[ $after != *$'\nfile '* ]] || files=$(grep '^file ' <<<"$after" | grep -vxF -e "$was") || true
        [[ $first || ! $files ]] || files=$(grep -xF -e "$files" <<<"$left") || true
        left=$files first=
        after=${after%%$'\nfile '*}
        if [[ $after == "$near" && ! $left ]]; then
            node_ask "$node" 'control:deep()' || return 1
            after+=$'\n'$REPLY
            now=${after##*$'\n'parts }
            after=${after%$'\n'parts *}
            # How much live memory a node has depends on when its processes run, so only --all compares it.
            if [[ ${ETRACE_ALL:-} ]]; then accept memory "$memory"; else accept memory $((1 << 60)); fi
            [[ $after != "$near$deep" ]] || break
        fi
        # A leftover directory gets the full 8 seconds, because it may belong to another test that is about to remove
        # it.
        [[ ! $left || $end -ge $shared ]] || end=$shared
        if ((${EPOCHREALTIME/./} > end)); then
            [[ $after == *$'\n'breakpoints* ]] || deep=
            echo "the node $node differs from the snapshot:" >&2
            diff <(echo "$near$deep") <(echo "$after${left:+$'\n'$left}") >&2 || true
            [[ ! $deep || ${after##*$'\n'memory } == "${deep##*$'\n'memory }" ]] || printf 'memory was %s\nmemory is %s\n' "$parts" "$now" >&2
            number atoms "$before"
            new=$REPLY
            number atoms "$after"
            new=$((REPLY - new))
            ((new == 0)) || node_eval "$node" "{atoms, control:newest($new)}" | cut -c 1-2000 >&2
            return 1
        fi
        after=
        pause 0.02
    done
    [[ $after ]] && assert_no_report "$node"
}

erl_is() {
    printf '#!/bin/sh\nexport CONTROL_OTP=%s ETRACE_ERL=%s\n%s\n' "${ETRACE_ERL%/bin/*}" "$ETRACE_ERL" "$1" >"$BATS_FILE_TMPDIR/erl"
    chmod +x "$BATS_FILE_TMPDIR/erl"
}

node_unheard() {
    local dir read=0
    dir=$(node_dir "$1")
    [[ ! -f $dir/heard ]] || read=$(<"$dir/heard")
    tail -c "+$((read + 1))" "$dir/log" | tr -d '\0'
}

node_heard() {
    local dir
    # shellcheck disable=SC2317
    reported() { node_unheard "$1" | grep -e "$2" >/dev/null; }
    [[ ! ${2:-} ]] || until_true 30 reported "$1" "$2" || fail "the node $1 logged no report that matches: $2"
    dir=$(node_dir "$1")
    stat -c %s "$dir/log" >"$dir/heard"
}

node_log() { cat "$(node_dir "$1")/log"; }

# The process may be a child of another shell, and another process may have its number by now.
node_gone() {
    local file
    file=$(node_dir "$1")/pid
    [[ ! -f $file ]] || ! grep -qF "${1%@*}" "/proc/$(<"$file")/cmdline" 2>/dev/null
}

node_stop() {
    local dir pid i
    dir=$(node_dir "$1")
    [[ -f $dir/pid ]] || return 0
    pid=$(<"$dir/pid")
    node_gone "$1" || kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
    for ((i = 0; i < 500; i++)); do
        ! node_gone "$1" || break
        pause 0.01
    done
    rm -f "$dir/pid"
}

nodes_stop() {
    local node
    for node in "${NODES[@]}"; do node_stop "$node"; done
    NODES=()
}
