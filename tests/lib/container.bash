# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Containers of namespaces, for scripts of alone.bash, which source this file. A container has its own processes,
# network, host name and file system. Its root directory has the programs of this host and the OTP under test, and is
# read-only once the container runs; the test fills /app before, and only /tmp may be writable.
#
#   container_make NAME [TMP-OPTIONS]   makes the root directory of a container, and sets ROOT. TMP-OPTIONS are the mount
#                                       options of its /tmp, such as noexec; "none": /tmp is read-only, too
#   container_start NAME COMMAND...     runs the command as process 1 of the container, as user 65534 without HOME. Sets
#                                       CONTAINER_PID. The output goes to log.NAME
#   container_pid NAME                  prints the number of its process 1 as this host sees it
#   container_exec NAME UID COMMAND...  runs a command in it, as `docker exec` does
#   beside NAME UID COMMAND...          runs a command in its network and among its processes, with the file system of this host

export CONTAINERS=${CONTAINERS:-$PWD/containers}

container_bind() { # FILE
    if [[ -L $1 ]]; then
        cp -a "$1" "$ROOT$1"
    elif [[ -d $1 ]]; then
        mkdir -p "$ROOT$1"
        mount --bind "$1" "$ROOT$1"
        mount -o remount,bind,ro "$ROOT$1"
    else
        : >"$ROOT$1"
        mount --bind "$1" "$ROOT$1"
    fi
}

container_make() {
    local name=$1 options=${2:-exec} what otp=${ETRACE_ERL%/bin/erl}
    ROOT=$CONTAINERS/$name/root
    mkdir -p "$ROOT"
    mount -t tmpfs -o mode=755 none "$ROOT"
    mkdir -p "$ROOT"/{app,dev,proc,tmp}
    chmod 1777 "$ROOT/tmp"
    for what in /usr /bin /sbin /lib /lib64 /etc "$otp"; do
        [[ ! -e $what ]] || container_bind "$what"
    done
    for what in /dev/{null,zero,full,random,urandom,tty}; do container_bind "$what"; done
    mkdir "$ROOT/dev/shm"
    [[ $options == none ]] || mount -t tmpfs -o "mode=1777,$options" none "$ROOT/tmp"
}

container_start() {
    local name=$1 user=65534 i
    shift
    ROOT=$CONTAINERS/$name/root
    # shellcheck disable=SC2016
    env -u HOME -u TMPDIR -u XDG_RUNTIME_DIR unshare --mount --pid --net --uts --ipc --fork sh -c '
        root=$1 name=$2
        shift 2
        hostname "$name"
        ip link set lo up
        mount -o remount,bind,ro "$root"
        mount -t proc proc "$root/proc"
        exec "$@"' sh "$ROOT" "${name//_/-}" chroot "$ROOT" setpriv --reuid "$user" --regid "$user" --clear-groups "$@" \
        </dev/null >"log.$name" 2>&1 &
    echo $! >"$CONTAINERS/$name/unshare"
    for ((i = 0; i < 2000; i++)); do
        ! CONTAINER_PID=$(container_pid "$name") || [[ ! "/proc/$CONTAINER_PID/root" -ef $ROOT ]] || return 0
        pause 0.01
    done
    cat "log.$name" >&2
    return 1
}

container_pid() {
    local started pid
    started=$(<"$CONTAINERS/$1/unshare")
    pid=$(cat "/proc/$started/task/$started/children" 2>/dev/null)
    [[ $pid ]] && echo "${pid% }"
}

container_exec() {
    local name=$1 user=$2
    shift 2
    env -u HOME -u TMPDIR -u XDG_RUNTIME_DIR nsenter --target "$(container_pid "$name")" --all --root --wd setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}

beside() {
    local name=$1 user=$2
    shift 2
    env -u HOME -u TMPDIR -u XDG_RUNTIME_DIR nsenter --target "$(container_pid "$name")" --net --pid \
        unshare --mount sh -c 'mount -t proc proc /proc && exec "$@"' sh setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}
