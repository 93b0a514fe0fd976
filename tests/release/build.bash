# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Builds a release for tests, and has what its tests need on a node.
#
#   release_build DIRECTORY [REPOSITORY]
#                             builds the release into DIRECTORY/dist, from a clone of the repository, or else from a new
#                             one with the tree that is tested. The clone is DIRECTORY/tree.
#   release_once              sets RELEASE to the directory of a release that the suites of a run share, VERSION, DIST
#                             (RELEASE/dist), and PROGRAM and ARM64, the two programs
#
# In a script of alone():
#
#   up_busy COMMAND...     starts a node as up() does, which calls lists:seq(1, 3) again and again
#   traces COMMAND...      succeeds if this etrace shows such a call; its output is in said
#   empty_root             makes a file system in root/ that has only the program, as root/etrace
#   within COMMAND...      runs a command there, with only the cookie and the port of epmd as variables
#   container              makes the file system of a container in root/: everything is read-only except a volume, /mnt,
#                          which has the program; from the other writable directories nothing can be executed
#   inside WORDS -- COMMAND...
#                          runs a command there as another user, with WORDS for its namespaces, with only PATH and the
#                          node's cookie as variables

release_build() {
    local dir=$1
    mkdir -p "$dir/tree"
    (
        set -e
        if [[ ${2:-} ]]; then
            git clone -q "$2" "$dir/tree"
        else
            cd "$ETRACE_ROOT"
            git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$dir/tree"
            cd "$dir/tree"
            git init -q
            git add -A
            GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' \
                git -c user.name='A B. Tester' -c user.email=tester@example.org commit -qm 'all of it'
        fi
        ETRACE_RELEASE_DIR=${ETRACE_OTP_DIR%/otp}/release "$dir/tree/share/release" "$dir/dist"
    ) >"$dir.log" 2>&1 || fail "$(tail -n 30 "$dir.log")"
}

release_once() {
    RELEASE=$(once release release_build) || return 1
    VERSION=$(sed -n "s/^  version: '\(.*\)',$/\1/p" "$ETRACE_ROOT/meson.build")
    DIST=$RELEASE/dist
    PROGRAM=$DIST/etrace-$VERSION-x86_64
    ARM64=$DIST/etrace-$VERSION-aarch64
    export RELEASE VERSION DIST PROGRAM ARM64
}

up_busy() {
    BEFORE='spawn(fun F() -> lists:seq(1, 3), timer:sleep(20), F() end)'
    up "$@"
}

traces() {
    "$@" --limit 1 lists:seq/2 >said 2>&1 || is "$(<said)" 'status 0'
    has "$(<said)" 'call lists:seq(1, 3)'
}

empty_root() {
    mkdir -p root
    mount -t tmpfs -o mode=755 empty root
    cp "$PROGRAM" root/etrace
}

within() { env -i RELEASE_COOKIE=homecookie ${ERL_EPMD_PORT:+"ERL_EPMD_PORT=$ERL_EPMD_PORT"} "$(type -P chroot)" root "$@"; }

container() {
    local otp=${ETRACE_ERL%/bin/erl} top='' part dir
    # The directory of the OTP must be below directories that everybody can search.
    mkdir otp root
    mount --bind "$otp" otp
    IFS=/ read -r -a parts <<<"${otp#/}"
    for part in "${parts[@]}"; do
        top+=/$part
        [[ $(stat -c %a "$top") == *[1357] ]] || break
    done
    [[ $top == "$otp" ]] || mount -t tmpfs -o mode=755 none "$top"
    mkdir -p "$otp"
    mount --bind otp "$otp"
    mount --rbind / root
    for dir in tmp var/tmp dev/shm run; do mount -t tmpfs -o noexec,mode=1777 none "root/$dir"; done
    mount -t tmpfs -o mode=1777 volume root/mnt
    cp "$PROGRAM" root/mnt/etrace
    printf '%s\n' '#!/bin/sh' 'ip link set lo up' 'exec setpriv --reuid 4242 --regid 4242 --clear-groups "$@"' >root/mnt/begin
    chmod 755 root/mnt/begin
    mount -o remount,bind,ro root
}

inside() {
    local words=()
    while [[ $1 != -- ]]; do
        words+=("$1")
        shift
    done
    shift
    env -i PATH="$PATH" RELEASE_COOKIE=homecookie "${words[@]}" chroot "$PWD/root" /mnt/begin "$@"
}
