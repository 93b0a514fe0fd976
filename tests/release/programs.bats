#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Builds the release and tests its files: the static programs in an empty file system, in containers and for aarch64;
# how they find hosts; the packages; the sums and the lists of what is linked.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone
load ../lib/node
load build

setup_file() { release_once; }

@test "the programs are static, need no file, and have the same companion" {
    for file in "$PROGRAM" "$ARM64"; do
        run readelf --wide --program-headers --dynamic "$file"
        assert_success
        refute_output --regexp 'INTERP|NEEDED|RUNPATH'
    done
    assert_equal "$(readelf -h "$PROGRAM" "$ARM64" | sed -n 's/ *Machine: *//p' | xargs)" 'Advanced Micro Devices X86-64 AArch64'
    run "$PROGRAM" --version
    assert_success
    assert_output --regexp "^etrace $VERSION \(companion [0-9a-f]{8}, for OTP 27 and newer\)\$"
    assert_equal "$(qemu-aarch64-static "$ARM64" version -v)" "$("$PROGRAM" version -v)"
    run "$PROGRAM" version -v
    assert_line --partial 'NIF for x86_64 aarch64'
    assert_line --partial 'release, static'
}

@test "no program has the path of a directory of its build" {
    run grep -rlaF -e "$RELEASE" -e "$ETRACE_ROOT" -e "${ETRACE_OTP_DIR%/otp}" "$DIST"
    assert_failure 1
    assert_output ''
}

@test "in an empty file system the program attaches by the name of a node" {
    alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        empty_root
        up_busy erl
        traces within /etrace -n "$UP"
        is "$(find root -type f)" root/etrace'
}

@test "the interactive mode edits lines in UTF-8 without a locale and without a description of the terminal" {
    ALONE_NET=yes alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        empty_root
        screen() { tmux -u -S "$PWD/tmux" -f /dev/null "$@"; }
        screen new-session -d -x 100 -y 24 "env -i TERM=screen-256color RELEASE_COOKIE=none $(type -P chroot) root /etrace repl"
        shows() { screen capture-pane -p >log.screen && grep -qxF -- "$1" log.screen; }
        await shows "etrace>"
        screen send-keys -l "déjà"
        screen send-keys Left Left
        screen send-keys -l "über"
        await shows "etrace> déüberjà"
        screen send-keys BSpace BSpace C-a
        screen send-keys -l "é"
        await shows "etrace> édéübjà"
        ! grep -i "termcap\|dumb" log.screen'
}

@test "the program finds hosts in /etc/hosts, with IPv4 and IPv6" {
    ALONE_NET=yes alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        empty_root
        mkdir root/etc
        printf "%s\n" "# comment" "127.0.0.7 other shop.internal shop" "::1 six.internal" >root/etc/hosts
        dist="-start_epmd false -kernel inet_dist_use_interface {127,0,0,7}"
        NAME=four@shop.internal
        up_busy erl
        traces within /etrace -n four@shop.internal
        has "$(within /etrace doctor -n four@shop.internal)" "shop.internal has 1 address"
        dist="-start_epmd false -proto_dist inet6_tcp"
        NAME=six@six.internal
        up_busy erl
        traces within /etrace -n six@six.internal
        said=$(within /etrace -n four@missing.internal lists:seq/2 2>&1) || is "$?" 3
        has "$said" "no DNS server answers for the host name missing.internal"'
}

@test "the program asks the servers of /etc/resolv.conf, for A and AAAA, with its search list, and over TCP" {
    ALONE_NET=yes alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        empty_root
        mkdir root/etc
        printf "%s\n" "search other.example cluster.example" "nameserver 127.0.0.54" >root/etc/resolv.conf
        names="shop.cluster.example=127.0.0.7 six.cluster.example=::1 both.cluster.example=127.0.0.7 both.cluster.example=::1"
        # shellcheck disable=SC2086
        /usr/bin/python3 "$ETRACE_ROOT/tests/lib/dns.py" 127.0.0.54 "$PWD/ready" $names >log.dns 2>&1 &
        server=$!
        await [ -e ready ]
        dist="-start_epmd false -kernel inet_dist_use_interface {127,0,0,7}"
        NAME=four@shop.cluster.example
        up_busy erl
        traces within /etrace -n four@shop.cluster.example
        has "$(within /etrace doctor -n four@both || true)" "both has 2 addresses"
        has "$(within /etrace doctor -n four@six || true)" "six has 1 address"
        dist="-start_epmd false -proto_dist inet6_tcp"
        NAME=six@six.cluster.example
        up_busy erl
        traces within /etrace -n six@six.cluster.example
        said=$(within /etrace -n four@missing.example lists:seq/2 2>&1) || is "$?" 3
        has "$said" "there is no host named missing.example"
        said=$(within /etrace doctor -n four@missing.example 2>&1) || is "$?" 3
        has "$said" "there is no host named missing.example"
        # There is no first server, so the second one is asked.
        printf "%s\n" "nameserver 127.0.0.53" "nameserver 127.0.0.54" >root/etc/resolv.conf
        traces within /etrace -n four@shop.cluster.example
        kill "$server"
        wait "$server" || true
        said=$(within /etrace -n four@shop.cluster.example lists:seq/2 2>&1) || is "$?" 3
        has "$said" "no DNS server answers for the host name shop.cluster.example"
        # shellcheck disable=SC2086
        /usr/bin/python3 "$ETRACE_ROOT/tests/lib/dns.py" 127.0.0.54 "$PWD/again" truncate $names >log.tcp 2>&1 &
        await [ -e again ]
        traces within /etrace -n four@shop.cluster.example'
}

@test "the program for aarch64 attaches by name and by host, in qemu" {
    ALONE_NET=yes alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        /usr/bin/python3 "$ETRACE_ROOT/tests/lib/dns.py" 127.0.0.54 "$PWD/ready" shop.cluster.example=127.0.0.7 >log.dns 2>&1 &
        await [ -e ready ]
        echo "nameserver 127.0.0.54" >resolv
        mount --bind resolv /etc/resolv.conf
        dist="-start_epmd false -kernel inet_dist_use_interface {127,0,0,7}"
        NAME=four@shop.cluster.example
        up_busy erl
        export RELEASE_COOKIE=homecookie
        traces qemu-aarch64-static "$ARM64" -n four@shop.cluster.example
        dist="-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
        up_busy erl
        traces qemu-aarch64-static "$ARM64" -n "$UP"
        traces qemu-aarch64-static "$ARM64" -p "$PID"'
}

@test "the program attaches from the host and inside, if a container is read-only, without epmd, HOME and root" {
    alone '
        . "$ETRACE_ROOT/tests/release/build.bash"
        container
        inside unshare --net --pid --fork --kill-child --mount-proc="$PWD/root/proc" -- "$ETRACE_ERL" -noinput -name shop@127.0.0.1 \
            -setcookie homecookie -start_epmd false -erl_epmd_port 4444 -kernel inet_dist_use_interface "{127,0,0,1}" \
            -eval "spawn(fun F() -> lists:seq(1, 3), timer:sleep(20), F() end), ok = file:write_file(\"/mnt/up\", \"\")." \
            </dev/null >log.node 2>&1 &
        await [ -e root/mnt/up ]
        PID=$(pgrep -x beam.smp)
        has "$(tr "\\0" " " <"/proc/$PID/environ")" "RELEASE_COOKIE=homecookie"
        native() {
            traces "$@"
            [[ $(<said) != *NIF* ]] || is "$(<said)" "no word about the NIF"
        }
        native env -i "$PROGRAM" -p "$PID"
        enter() { inside nsenter --target "$PID" --mount --net --pid -- "$@"; }
        native enter /mnt/etrace
        native enter /mnt/etrace -n shop@127.0.0.1 --port 4444
        is "$(find root/mnt -newer root/mnt/up | grep -v "^root/mnt\$")" ""'
}

# Runs a stock release of mix for aarch64 in qemu, without epmd, in a container with a read-only root directory. Neither
# the user of the release nor that of etrace has a home directory. The host is an x86_64.
in_arm64() { # SCRIPT
    ARM64_ERL=$("$ETRACE_ROOT/tests/otp" --arm64 27)/erl
    MIX_ERL=$("$ETRACE_ROOT/tests/otp" 27)/erl
    export ARM64_ERL MIX_ERL
    ETRACE_BIN=$PROGRAM alone '
        . "$ETRACE_ROOT/tests/lib/container.bash"
        . "$ETRACE_ROOT/tests/lib/pages.bash"
        export RELEASES=$PWD ERL_AFLAGS="+S 1:1 +A 1 +JMsingle true" # as in tests/arm64
        erts=$(echo "${ARM64_ERL%/bin/erl}"/root/usr/lib/erlang/erts-*)
        ETRACE_ERL=$MIX_ERL app_release "$RELEASES" "" "$erts" >log.mix 2>&1 || is "$(<log.mix)" "a release"
        ETRACE_ERL=$ARM64_ERL
        page_begin
        unset HOME
    '"$1"
}

@test "two commands trace a stock release in a read-only container for aarch64 without epmd" {
    in_arm64 '
        release_in none none
        has "$(tr "\0" " " <"/proc/$CONTAINER_PID/cmdline")" "/beam.smp.aarch64 "
        page_run containers.md "kubectl port-forward"
        is "$(grep -o "kubectl port-forward\|etrace --port" page.ran | xargs)" \
            "kubectl port-forward etrace --port kubectl port-forward etrace --port"'
}

@test "with one writable volume the release for aarch64 loads the NIF, and the program for aarch64 traces beside it" {
    in_arm64 '
        release_in exec none
        has "$(tr "\0" " " <"/proc/$CONTAINER_PID/cmdline")" "/beam.smp.aarch64 "
        has "$("$PROGRAM" doctor -p "$CONTAINER_PID" 2>&1)" "ok   NIF        loaded"
        cp "$ARM64" "$CONTAINERS/beside/root/app/etrace"
        printf "#!/bin/sh\nexec qemu-aarch64-static /app/etrace \"\$@\"\n" >etrace
        page_run containers.md "Beside a read-only container"
        is "$(find "$ROOT/tmp" -name "etrace*")" ""'
}

@test "the commands of README.md install the program" {
    # shellcheck source=/dev/null
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    COMMANDS=$(page_blocks "$ETRACE_ROOT/README.md" Install | sed '/^$/q')
    export COMMANDS=${COMMANDS//VERSION/$VERSION}
    alone '
        mount -t tmpfs none /usr/local/bin
        (cd "$DIST" && bash -e -c "$COMMANDS") >log.install 2>&1 || is "$(<log.install)" installed
        is "$(wc -l <<<"$COMMANDS")" 2
        has "$(env -i /usr/local/bin/etrace --version)" "etrace $VERSION "'
}

# Checks that a directory has SECURITY.md and the pages of share/doc, and each file that they refer to.
has_pages() { # DIRECTORY
    local page link
    for page in "$ETRACE_ROOT"/{SECURITY,CHANGELOG}.md "$ETRACE_ROOT"/share/doc/*.*; do
        [[ -f $1/${page##*/} ]] || fail "$1 lacks ${page##*/}"
        while IFS= read -r link; do
            [[ $link == http*:* || -f $1/$link ]] || fail "${page##*/} refers to $link, which $1 lacks"
        done < <(grep -oE '\]\([^)#]+' "$1/${page##*/}" | cut -c 3-)
    done
    grep -qF '(network.md)' "$1/SECURITY.md"
}

@test "the packages for Debian install the program, its manual and completions, for both architectures" {
    for arch in amd64 arm64; do
        deb=$DIST/etrace_${VERSION}_$arch.deb
        assert_equal "$(dpkg-deb -f "$deb" Package Version Architecture | sed 's/.*: //' | xargs)" "etrace $VERSION $arch"
        assert_equal "$(dpkg-deb -f "$deb" Depends)" ''
        dpkg-deb --fsys-tarfile "$deb" | tar -tv >"$BATS_TEST_TMPDIR/list"
        run awk '$2 != "root/root" || $1 !~ /^(drwxr-xr-x|-rwxr-xr-x|-rw-r--r--)$/' "$BATS_TEST_TMPDIR/list"
        assert_output ''
        dpkg-deb -x "$deb" "$BATS_TEST_TMPDIR/$arch"
        for page in "$ETRACE_ROOT"/man/*.scd; do
            page=${page##*/} page=${page%.scd}
            gzip -dc "$BATS_TEST_TMPDIR/$arch/usr/share/man/man${page##*.}/$page.gz" | mandoc -T lint -W error
        done
        (cd "$BATS_TEST_TMPDIR/$arch" && dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./md5sums | md5sum --quiet -c)
        assert_equal "$(dpkg-deb -f "$deb" Maintainer)" 'A B. Tester <tester@example.org>'
        has_pages "$BATS_TEST_TMPDIR/$arch/usr/share/doc/etrace"
    done
    cmp "$BATS_TEST_TMPDIR/amd64/usr/bin/etrace" "$PROGRAM"
    cmp "$BATS_TEST_TMPDIR/arm64/usr/bin/etrace" "$ARM64"
    root=$BATS_TEST_TMPDIR/amd64
    cmp "$root/usr/share/bash-completion/completions/etrace" <("$PROGRAM" completion bash)
    cmp "$root/usr/share/zsh/vendor-completions/_etrace" <("$PROGRAM" completion zsh)
    cmp "$root/usr/share/fish/vendor_completions.d/etrace.fish" <("$PROGRAM" completion fish)
    # A system without any other package takes the package.
    mkdir -p "$BATS_TEST_TMPDIR"/system/var/lib/dpkg/{info,updates,triggers}
    : >"$BATS_TEST_TMPDIR/system/var/lib/dpkg/status"
    run dpkg --root="$BATS_TEST_TMPDIR/system" --log=/dev/null --install "$DIST/etrace_${VERSION}_amd64.deb"
    assert_success
    run chroot "$BATS_TEST_TMPDIR/system" /usr/bin/etrace --version
    assert_success
    run dpkg --root="$BATS_TEST_TMPDIR/system" --log=/dev/null --purge etrace
    assert_success
    assert_equal "$(find "$BATS_TEST_TMPDIR/system/usr" -type f 2>/dev/null)" ''
}

@test "the sums are right, and the source archive has every file of the commit" {
    (cd "$DIST" && sha256sum --quiet -c SHA256SUMS)
    assert_equal "$(cut -c 67- "$DIST/SHA256SUMS")" "$(cd "$DIST" && LC_ALL=C printf '%s\n' Packages Release etrace*)"
    assert_equal "$(tar -tzf "$DIST/etrace-$VERSION.tar.gz" | grep -v '/$' | sort)" \
        "$(git -C "$DIST/../tree" ls-files | sed "s#^#etrace-$VERSION/#" | sort)"
    assert_equal "$(tar -tvzf "$DIST/etrace-$VERSION.tar.gz" | awk '{ print $2, $4, $5 }' | sort -u)" \
        "root/root $(date -d @1700000000 '+%F %H:%M')"
    run tar -tzf "$DIST/etrace-$VERSION-doc.tar.gz"
    assert_line "etrace-$VERSION-doc/man/etrace.1"
    assert_line "etrace-$VERSION-doc/completions/_etrace"
    assert_line "etrace-$VERSION-doc/licenses/openssl"
    tar -xzf "$DIST/etrace-$VERSION-doc.tar.gz" -C "$BATS_TEST_TMPDIR"
    has_pages "$BATS_TEST_TMPDIR/etrace-$VERSION-doc"
}

@test "a list says which libraries each program contains, with versions and licenses" {
    for file in "$PROGRAM" "$ARM64"; do
        list=$file.cdx.json
        assert_equal "$(jq -r '.bomFormat, .metadata.component.version, .metadata.component.hashes[0].content' "$list" | xargs)" \
            "CycloneDX $VERSION $(sha256sum <"$file" | cut -d ' ' -f 1)"
        assert_equal "$(jq -r '.components[].name' "$list" | sort | xargs)" \
            'c-ares erlang gcc-12 glibc libbsd libedit libzstd ncurses openssl pcre2'
        assert_equal "$(jq -r '.components[] | select(.version == "" or (.licenses | length) != 1) | .name' "$list")" ''
        assert_equal "$(jq -c '[.components[]."bom-ref"] == .dependencies[0].dependsOn' "$list")" true
        # The version of OpenSSL that is listed is the one in the program.
        openssl=$(jq -r '.components[] | select(.name == "openssl") | .version' "$list")
        grep -qzaxF "${openssl%%-*}" "$file"
    done
    # The cross compiler is a package of its own, so its libgcc may have another version.
    versions='[.components[] | select(.name != "gcc-12") | [.name, .version]]'
    assert_equal "$(jq -c "$versions" "$PROGRAM.cdx.json")" "$(jq -c "$versions" "$ARM64.cdx.json")"
}

@test "share/release refuses changes that are not committed, a directory that is no checkout, and a maintainer without an address" {
    cp -r "$DIST/../tree" "$BATS_TEST_TMPDIR/tree"
    echo >>"$BATS_TEST_TMPDIR/tree/README.md"
    run "$BATS_TEST_TMPDIR/tree/share/release" "$BATS_TEST_TMPDIR/dist"
    assert_failure 1
    assert_output 'share/release: the checkout has changes that are not committed'
    rm -rf "$BATS_TEST_TMPDIR/tree/.git"
    run "$BATS_TEST_TMPDIR/tree/share/release" "$BATS_TEST_TMPDIR/dist"
    assert_failure 1
    assert_output 'share/release: this is no checkout: releases are built from a commit'
    cd "$DIST/../tree"
    ETRACE_MAINTAINER=nobody run share/release "$BATS_TEST_TMPDIR/dist"
    assert_failure 1
    assert_output 'share/release: no maintainer, NAME <ADDRESS>: nobody'
    refute [ -e "$BATS_TEST_TMPDIR/dist" ]
}
