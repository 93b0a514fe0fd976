#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the file from which the node loads the companion's library: its directory, its owner and mode, and how the
# companion treats files that somebody has put there before.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_share library
    export COMPANION=$BATS_FILE_TMPDIR
    live_companion "$COMPANION"
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Evaluates ERLANG with the companion module M. Write() writes File into the directory Dir, which must exist.
companion() { # ERLANG
    run timeout 60 "$ETRACE_ERL" +Bi -noshell -noinput -pa "$COMPANION" -eval "M = etrace_00000000_0,
        Base = \"$BATS_TEST_TMPDIR\", Dir = Base ++ \"/dir\", File = Dir ++ \"/etrace.so\", Victim = Base ++ \"/victim\",
        Write = fun() -> M:nif_write(Dir, File, <<\"library\">>) end,
        io:format(\"~0p~n\", [begin $1 end]), halt()." </dev/null 3>&-
    assert_success
}

@test "the companion overwrites no file, follows no link, and uses no directory of another user" {
    local others=Dir wrong='"somebody interferes with the files there"'
    ((EUID == 0)) || others='"/usr"'
    echo precious >"$BATS_TEST_TMPDIR/victim"
    # The file is new, exists already, and is a symbolic link. The directory belongs to another user, is a link to a
    # directory, and is a link to a file.
    companion "ok = file:make_dir(Dir), Others = $others, [
        {Write(), file:read_file(File), element(8, element(2, file:read_file_info(Dir))) band 8#777},
        Write(),
        begin ok = file:delete(File), ok = file:make_symlink(Victim, File), Write() end,
        begin ok = file:delete(File), file:change_owner(Others, 4711), M:nif_write(Others, filename:join(Others, \"etrace.so\"), <<\"library\">>) end,
        begin
            file:delete(File), file:change_owner(Dir, element(13, element(2, file:read_file_info(Base)))), ok = file:rename(Dir, Base ++ \"/elsewhere\"),
            ok = file:make_symlink(Base ++ \"/elsewhere\", Dir), {Write(), file:list_dir(Base ++ \"/elsewhere\")}
        end,
        begin ok = file:delete(Dir), ok = file:make_symlink(Victim, Dir), Write() end]"
    assert_output "[{ok,{ok,<<\"library\">>},448},\"eexist\",\"eexist\",$wrong,{$wrong,{ok,[]}},$wrong]"
    assert_equal "$(<"$BATS_TEST_TMPDIR/victim")" precious
}

@test "the companion neither uses nor changes a directory that already exists" {
    # Simulate an attacker who has guessed the random bytes.
    companion 'os:putenv("XDG_RUNTIME_DIR", Base), os:putenv("HOME", Base ++ "/home"), Nonce = <<1:128>>,
        Taken = filename:join(Base, "etrace-" ++ M:hex(erlang:md5([Nonce, Base]))), ok = file:make_dir(Taken), ok = file:write_file(Taken ++ "/etrace.so", "his"),
        {M:nif_load(Base, <<"library">>, <<>>, Nonce, [self()]), file:read_file(Taken ++ "/etrace.so"), lists:sublist(M:candidates(), 2) =:= [Base, Base ++ "/home/.cache"]}'
    assert_output '{"eexist",{ok,<<"his">>},true}'
}

@test "the companion accepts a library only if it reports the expected build" {
    local so=${ETRACE_BIN%/*}/nif/etrace_tracer
    companion "{catch M:nif_take(\"$so\", <<\"another\">>, <<2:128>>)}"
    assert_output '{{'\''EXIT'\'',{error,load_failed}}}'
    companion "{catch M:nif_take(\"$so\", element(1, begin catch M:nif_take(\"$so\", <<>>, <<2:128>>), M:hello() end), <<2:128>>)}"
    refute_output --partial load_failed
}

@test "directories on network file systems come last, because a lost server blocks a thread of the node" {
    companion 'Mounts = lists:append([M:mount(list_to_binary(L)) || L <- [
        "21 1 8:1 / / rw - ext4 /dev/sda1 rw", "22 21 0:30 / /home rw shared:1 master:2 - nfs4 far:/home rw", "23 22 0:31 / /home/me rw - tmpfs none rw",
        "24 21 0:32 / /run/user/1 rw - fuse.far far rw", "25 21 0:33 / /dev/shm rw,noexec - tmpfs none rw", "26 21 0:34 / /odd rw"]]),
        {M:local_first(["/run/user/1", "/home/you/.cache", "/home/me/.cache", "/odd/x", "/dev/shm", "/tmp", "/homeless"], Mounts),
            M:local_first(["/b", "/a"], [])}'
    assert_output '{["/home/me/.cache","/dev/shm","/tmp","/homeless","/run/user/1","/home/you/.cache","/odd/x"],["/b","/a"]}'
}

@test "the companion also tries the release's directory, the working directory, and every mounted directory that may hold programs" {
    companion 'os:putenv("XDG_RUNTIME_DIR", ""), os:putenv("HOME", "/nowhere"), os:putenv("RELEASE_TMP", Base), os:putenv("TMPDIR", "relative"),
        file:set_cwd("/usr"),
        Mounts = lists:append([M:mount(list_to_binary(L)) || L <- [
        "21 1 8:1 / / ro - ext4 /dev/sda1 rw", "22 21 0:30 / /far rw - nfs4 far:/home rw", "23 22 0:31 / /data rw - tmpfs none rw", "24 21 0:32 / /proc rw - proc proc rw",
        "25 21 0:33 / /tmp rw - tmpfs none rw", "26 21 0:34 / /logs rw,noexec - tmpfs none rw", "27 21 8:2 / /with\\040blank rw - ext4 /dev/sdb rw"]]),
        {M:candidates() =:= ["/nowhere/.cache", "/dev/shm", "/tmp", "/var/tmp", Base, "/usr"], M:mounted(Mounts)}'
    assert_output '{true,["/","/data"]}'
}

# Records the directories and files that an attach creates, with their modes.
directories() {
    on_node 'register(watch, spawn(fun() ->
        Steps = [{prim_file, make_dir, 1}, {file, write_file_info, 3}, {file, open, 2}],
        [erlang:trace_pattern(Step, true, []) || Step <- Steps],
        erlang:trace(new, true, [call]),
        F = fun F(Seen) -> receive
            {trace, _, call, {file, write_file_info, [Path, Info, [raw]]}} -> F([{mode, Path, [element(8, Info)]} || string:find(Path, "/etrace-") =/= nomatch] ++ Seen);
            {trace, _, call, {_, Name, [Path | Rest]}} -> F([{Name, Path, Rest} || string:find(Path, "/etrace-") =/= nomatch] ++ Seen);
            {get, P} -> P ! {seen, lists:reverse(Seen)}, erlang:trace(new, false, [call]),
                [erlang:trace_pattern(Step, false, []) || Step <- Steps] end end,
        F([]) end))'
}

@test "the directory has a random name and mode 700 before the library is in it" {
    directories
    for _ in 1 2 3; do "$ETRACE_BIN" -n "$NODE" -qq --for 1ms work:one/1 >/dev/null; done
    run node_eval "$NODE" 'R = monitor(process, watch), watch ! {get, self()}, Seen = receive {seen, S} -> S end, receive {_, R, _, _, _} -> ok end,
        Steps = [[{N, R1} || {N, Q, R1} <- Seen, string:prefix(Q, P) =/= nomatch] || {make_dir, P, _} <- Seen],
        Made = [lists:last(string:lexemes(P, "/")) || {mode, P, [8#700]} <- Seen],
        {length(lists:usort(Made)), list_to_tuple(lists:usort([length(D) || D <- Made])), lists:usort([S || S = [_, _ | _] <- Steps])}'
    # Three attaches make three directories, whose names have 128 random bits in hexadecimal. The directory gets mode
    # 700 before the file is created exclusively, and the file gets mode 600. If a place fails, the node tries the next
    # one.
    assert_output '{3,{39},[[{make_dir,[]},{mode,[448]},{open,[[write,exclusive,raw,binary]]},{mode,[384]}]]}'
}

# bats test_tags=long
@test "a node with umask 0 loads the library" {
    umask 0
    node_start open
    umask 022
    on_node 'work:worker(w), work:warm()'
    trace --json work:one/1
    refute_regex "$(<"$ERR")" 'without the NIF'
    on_node 'work:loop(3)'
    trace_end
    assert_account 3
    node_stop "$NODE"
    NODE=$LIVE_NODE
}
