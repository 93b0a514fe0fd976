#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Installs the package of a release in new systems of Debian 12 and 13, made by debootstrap, and attaches from there to a
# node of this host. Builds etrace from the source archive with only the packages that README.md names. The commands are
# those of README.md.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone
load ../lib/node
load build

setup_file() { release_once; }

# Sets SYSTEM to an archive of a new system, which debootstrap makes once.
system_of() { # SUITE NAME PACKAGES
    local dir=${ETRACE_OTP_DIR%/otp}/release new=$BATS_TEST_TMPDIR/new wanted
    IFS=, read -r -a wanted <<<"$3"
    SYSTEM=$dir/$2.tar
    export SYSTEM
    [[ ! -f $SYSTEM ]] || return 0
    mkdir -p "$dir"
    # apt installs the packages: debootstrap finds no order for packages that need a virtual one. TMPDIR is not there.
    {
        debootstrap --variant=minbase "$1" "$new" "$("$ETRACE_ROOT/share/debs" --mirror)" &&
            env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive \
                "$(type -P chroot)" "$new" apt-get --quiet --yes --no-install-recommends install "${wanted[@]}"
    } >"$BATS_TEST_TMPDIR/log" 2>&1 || fail "$(tail -n 20 "$BATS_TEST_TMPDIR/log")"
    tar -C "$new" --one-file-system --exclude=./var/cache/apt/archives/*.deb --exclude=./var/lib/apt/lists/* -cf "$SYSTEM.new" .
    env rm -rf --one-file-system "$new"
    mv "$SYSTEM.new" "$SYSTEM"
}

works_in() { # SUITE INSTALL: what installs the package in the new system, in a directory with the files of the release
    system_of "$1" "$1" man-db,bash-completion
    INSTALL=$2
    export INSTALL
    alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        mkdir root
        mount -t tmpfs -o mode=755 system root
        tar -C root -xf "$SYSTEM"
        mount -t proc proc root/proc
        mkdir root/tmp/dist
        cp "$DIST"/*.deb "$DIST"/Packages "$DIST"/Release root/tmp/dist/
        mkdir -m 700 keys
        export GNUPGHOME=$PWD/keys
        gpg --quiet --batch --passphrase "" --quick-generate-key tester@example.org >log.key 2>&1
        gpg --quiet --batch --export >root/tmp/dist/key.gpg
        gpg --quiet --batch --clearsign --output root/tmp/dist/InRelease root/tmp/dist/Release
        in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "ERL_EPMD_PORT=$ERL_EPMD_PORT" LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$(type -P chroot)" root "$@"; }
        in_root sh -c "cd /tmp/dist && $INSTALL" >log.install 2>&1 || is "$(<log.install)" installed
        in_root etrace --version >version
        has "$(<version)" "etrace $VERSION "
        in_root man etrace >page 2>log.man || is "$(<log.man)" "a page"
        has "$(<page)" "trace a running Erlang or Elixir node"
        in_root bash -c ". /usr/share/bash-completion/bash_completion; _completion_loader etrace; complete -p etrace" >complete
        has "$(<complete)" "etrace"
        up_busy erl
        cookie_file root/root/.erlang.cookie homecookie
        traces in_root etrace -n "$UP"
        traces in_root etrace -p "$PID"
        in_root apt-get --quiet --yes purge etrace >log.purge 2>&1 || is "$(<log.purge)" purged
        is "$(find root/usr -name "*etrace*")" ""'
}

@test "the package works in a new Debian 12" {
    install=$(grep -o 'apt install [^`]*amd64.deb' "$ETRACE_ROOT/README.md")
    works_in bookworm "${install//VERSION/$VERSION}"
}

@test "a signed release is a repository for apt, and its package works in a new Debian 13" {
    works_in trixie 'echo "deb [signed-by=/tmp/dist/key.gpg] file:/tmp/dist ./" >/etc/apt/sources.list.d/etrace.list &&
        apt-get update -o Dir::Etc::sourcelist=sources.list.d/etrace.list -o Dir::Etc::sourceparts=- && apt-get --yes install etrace'
}

@test "lintian has nothing to say about the packages" {
    system_of bookworm bookworm-lintian lintian
    alone '
        mkdir root
        mount -t tmpfs -o mode=755 system root
        tar -C root -xf "$SYSTEM"
        cp "$DIST/etrace_${VERSION}_amd64.deb" "$DIST/etrace_${VERSION}_arm64.deb" root/tmp/
        env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 "$(type -P chroot)" root setpriv --reuid 65534 --regid 65534 --clear-groups \
            sh -c "lintian --fail-on error,warning /tmp/*.deb" >log.lintian 2>&1 || is "$(<log.lintian)" "no complaint"'
}

@test "README.md names the packages and the command that build and install etrace" {
    # shellcheck source=tests/lib/pages.bash
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    packages=$(tr '\n' ' ' <"$ETRACE_ROOT/README.md" | sed -n 's/.*(Debian: `\([^`]*\)`).*/\1/p' | xargs | tr ' ' ,)
    COMMAND=$(page_blocks "$ETRACE_ROOT/README.md" Install | grep '^meson')
    export COMMAND
    system_of bookworm "bookworm-$(md5sum <<<"$packages" | cut -c -8)" "$packages"
    alone '
        mkdir root
        mount -t tmpfs -o mode=755 system root
        tar -C root -xf "$SYSTEM"
        mount -t proc proc root/proc
        tar -C root/tmp -xzf "$DIST/etrace-$VERSION.tar.gz"
        in_root() { env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$(type -P chroot)" root "$@"; }
        in_root sh -c "cd /tmp/etrace-$VERSION && $COMMAND" >log.build 2>&1 || is "$(tail -n 30 log.build)" built
        has "$(in_root etrace --version)" "etrace $VERSION "'
}
