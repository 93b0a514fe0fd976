# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Another host with sshd, for scripts of alone.bash, which source this file. It is a container of container.bash, which
# its own processes, network, name and file system make another host. Nothing listens for ssh: ssh runs `sshd -i` in the
# container (ProxyCommand). A script `ssh` in front of PATH passes the configuration of the test to the system's ssh.
#
#   far_begin [SSHD-OPTION...]   starts the host far, whose users are root, app and other; with a line of sshd_config each.
#                                With BUSYBOX, the path of a busybox, their shell and all its programs are of busybox
#   far_node USER ERL-OPTIONS    starts a node there, with epmd. `far_dist` has options for all, and
#                                HOME_OF_NODE is the home directory of the next one
#   far USER COMMAND...          runs a command there
#   far_mux                      succeeds if an ssh of etrace runs; far_no_mux: if none does, and no socket of one is left
#
# The home directories there are /app/USER; each .erlang.cookie has "cookie_of_USER".

# shellcheck source=tests/lib/container.bash
. "$ETRACE_ROOT/tests/lib/container.bash"
FAR_HOME=$PWD/ssh
far_dist=

far_user() { case $1 in root) echo 0 ;; app) echo 64001 ;; other) echo 64002 ;; esac; }

far_begin() {
    local user uid option sshd=$ETRACE_SSHD shell=/bin/sh
    mkdir -p "$FAR_HOME/bin" tmp
    ssh-keygen -q -t ed25519 -N '' -f "$FAR_HOME/host"
    ssh-keygen -q -t ed25519 -N '' -f "$FAR_HOME/key"
    container_make far
    [[ $sshd == /usr/sbin ]] || container_bind "${sshd%/usr/sbin}"
    mkdir -p "$ROOT/run/sshd"
    if [[ ${BUSYBOX:-} ]]; then
        mkdir "$ROOT/app/busybox"
        cp "$BUSYBOX" "$ROOT/app/busybox/busybox"
        "$BUSYBOX" --install -s "$ROOT/app/busybox"
        for option in "$ROOT/app/busybox"/*; do [[ ! -L $option ]] || ln -sf busybox "$option"; done
        set -- "$@" 'SetEnv PATH=/app/busybox'
        shell=/app/busybox/sh
    fi
    for user in root app other; do
        uid=$(far_user "$user")
        mkdir "$ROOT/app/$user"
        (umask 077 && printf 'cookie_of_%s' "$user" >"$ROOT/app/$user/.erlang.cookie")
        chown -R "$uid:$uid" "$ROOT/app/$user"
        echo "$user:x:$uid:$uid::/app/$user:$shell" >>"$FAR_HOME/passwd"
        echo "$user:*:1::::::" >>"$FAR_HOME/shadow"
    done
    echo 'sshd:x:64000:64000::/:/bin/false' >>"$FAR_HOME/passwd"
    cp "$FAR_HOME/key.pub" "$ROOT/app/keys"
    mount --bind "$FAR_HOME/passwd" "$ROOT/etc/passwd"
    mount --bind "$FAR_HOME/shadow" "$ROOT/etc/shadow"
    cp "$FAR_HOME/host" "$ROOT/app/host"
    chmod 600 "$ROOT/app/host"
    {
        for option in "$@"; do echo "$option"; done
        printf '%s\n' 'HostKey /app/host' 'AuthorizedKeysFile /app/keys' 'StrictModes no' 'UsePAM no' 'PidFile none'
    } >"$ROOT/app/sshd_config"
    container_start far sh -c 'while :; do sleep 1; done' # reaps what sshd leaves
    echo "far $(<"$FAR_HOME/host.pub")" >"$FAR_HOME/known_hosts"
    cat >"$FAR_HOME/config" <<CONFIG
Host far
    HostKeyAlias far
    UserKnownHostsFile $FAR_HOME/known_hosts
    IdentityFile $FAR_HOME/key
    IdentitiesOnly yes
    ProxyCommand nsenter --target $CONTAINER_PID --all --root --wd $sshd/sshd -i -f /app/sshd_config -E /tmp/sshd.log
CONFIG
    printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$FAR_HOME/config" >"$FAR_HOME/bin/ssh"
    chmod 755 "$FAR_HOME/bin/ssh"
    PATH=$FAR_HOME/bin:$PATH
    export TMPDIR=$PWD/tmp HOME=$PWD/home
}

far() {
    local user=$1
    shift
    container_exec far "$(far_user "$user")" env HOME="/app/$user" "$@"
}

far_node() {
    local user=$1 file
    shift
    started=$((started + 1))
    file=/tmp/up.$started
    # shellcheck disable=SC2086
    far "$user" env HOME="${HOME_OF_NODE:-/app/$user}" "$ETRACE_ERL" -noinput $far_dist "$@" -eval "ok = file:write_file(\"$file\", \"\")." \
        </dev/null >"log.$started" 2>&1 &
    await far root test -e "$file"
    HOME_OF_NODE=
}

far_mux() { compgen -G "$TMPDIR/etrace-ssh-*" >/dev/null; }
far_no_mux() { ! far_mux && ! grep -qzs 'etrace-ssh-' /proc/[0-9]*/cmdline; }
