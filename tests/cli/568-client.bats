#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The environment of the client: limits of its stack and address space, ignored signals, output files that are also
# its input, a node that has nothing to trace beside one that has.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    export FAULT_SO=$BATS_FILE_TMPDIR/fault.so SANDBOX=$BATS_FILE_TMPDIR/sandbox
    cc -O1 -fPIC -shared -fno-builtin -o "$FAULT_SO" "$ETRACE_ROOT/tests/lib/fault.c" -ldl
    # The sandbox makes signalfd4 fail with ENOSYS; 289 is its number on x86-64.
    cat >"$SANDBOX" <<'END'
import ctypes, errno, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 289), (6, 0, 0, 0x50000 | errno.ENOSYS), (6, 0, 0, 0x7fff0000)]
text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None)
assert not libc.prctl(38, 1, 0, 0, 0) and not libc.prctl(22, 2, program)
os.execv(sys.argv[1], sys.argv[1:])
END
    live_begin client
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    if [[ $NODE == "$LIVE_NODE" ]]; then live_teardown; else nodes_stop; fi
}

assert_line_of_talk() { grep -qxF "$1" "$ERR" || fail "$talk"; }

# limited LIMITS ARGS...: runs etrace on NODE under these limits (options of prlimit).
limited() {
    local limits=$1
    shift
    # shellcheck disable=SC2086
    run timeout 60 prlimit $limits "$ETRACE_BIN" -n "$NODE" --for 100ms "$@"
}

@test "etrace runs with a small stack or address space, or says that it is too small" {
    # If etrace may not raise the limit, it says so. No case ends by a signal.
    limited --stack=65536:65536 'work:one/1 -> return'
    assert_failure 1
    assert_output 'etrace: the stack limit is 64 kB (ulimit -s), but etrace needs 256 kB'
    limited --stack=65536: 'work:one/1 -> return'
    assert_success
    limited --stack=262144:262144 'work:one/1 -> return'
    assert_success
    # etrace raises its own limit, not the limit of the command that it starts.
    run --separate-stderr timeout 60 prlimit --stack=262143: "$ETRACE_BIN" x:y/0 -- sh -c 'grep stack /proc/self/limits' </dev/null
    assert_output --regexp '^Max stack size +262143 '
    # The stacks of threads do not grow with that limit, so the address space has room for them.
    limited '--stack=1073741824: --as=900000000:900000000' work:one/1
    assert_success
}

@test "etrace names missing threads as the reason of a failed write or connection" {
    local dir
    dir=$(mktemp -d /tmp/nobody.XXXXXX)
    cp "$ETRACE_BIN" "$HOME/.erlang.cookie" "$dir"
    chown -R 65534 "$dir"
    # Root has no limit of processes, so run as another user.
    poor() { run timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups prlimit --nproc=0:0 "$dir/etrace" "$@"; }
    poor explain work:one/1
    assert_failure 1
    assert_output 'etrace: cannot write standard output: no thread or file descriptor is available'
    poor -n "$NODE" -q --cookie-file "$dir/.erlang.cookie" --for 20s work:one/1
    rm -r "$dir"
    assert_failure 1
    assert_output "etrace: cannot start a thread to connect to $NODE"
}

@test "a signal ends etrace in a sandbox without signalfd" {
    /usr/bin/python3 "$SANDBOX" "$ETRACE_BIN" -n "$NODE" work:one/1 </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 60 ready || fail "$(<"$ERR")"
    kill -TERM "$TRACER"
    trace_wait
    assert_equal "$status" 143
}

@test "a signal that kills etrace removes the directory of its command and ends the demo shop" {
    local dir how
    dir=$(mktemp -d /tmp/ended.XXXXXX)
    echo "$dir" >"$BATS_TEST_TMPDIR/dir"
    traces() { grep -q 'ends with the command' "$ERR" || gone "$TRACER"; }
    # begun WORDS...: starts etrace in the sandbox, and waits until it traces.
    begun() {
        rm -f "$ERR"
        PATH=${ETRACE_ERL%/*}:$PATH TMPDIR=$dir /usr/bin/python3 "$SANDBOX" "$ETRACE_BIN" "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        until_true 60 traces
        compgen -G "$dir/etrace-*" >/dev/null || fail "etrace made no directory: $(<"$ERR")"
    }
    # ended SIGNAL: ends etrace, and asserts that its directory is gone.
    ended() {
        kill -"$1" "$TRACER"
        status=0
        wait "$TRACER" || status=$?
        [[ $status -gt 128 ]] || fail "status $status: $(<"$ERR")"
        run compgen -G "$dir/*"
        assert_output ''
    }
    # Some process has the directory in its environment.
    shop() { grep -qzs "^ETRACE_DEMO=$dir/" /proc/[0-9]*/environ; }
    no_shop() { ! shop; }
    for how in TERM SEGV; do
        begun demo
        shop
        ended "$how"
        until_true 30 no_shop
        begun lists:seq/2 -- "$ETRACE_ERL" -noshell -eval 'receive after 5000 -> halt() end.'
        ended "$how"
    done
    rmdir "$dir"
}

@test "signals that arrive together end the trace normally" {
    # timeout(1) signals the process, and then its process group, which includes the process.
    trace --json work:one/1
    on_node 'work:loop(20)'
    freeze "$TRACER"
    kill -INT "$TRACER"
    kill -TERM "$TRACER"
    kill -CONT "$TRACER"
    trace_wait
    assert_success
    assert_account 20
}

@test "every terminating signal ends a trace, top and repl cleanly, and a fault restores the terminal" {
    local signal
    for signal in USR1 XCPU RTMAX; do
        trace --json work:one/1
        on_node 'work:loop(20)'
        trace_end "$signal"
        assert_success
        assert_account 20
    done
    run timeout 300 /usr/bin/python3 - "$ETRACE_BIN" "$NODE" <<'END'
import fcntl, os, select, signal, struct, sys, termios

def end(view, status, number=None, keys=b"", begin=[]):
    words, ready = view
    fd, tty = os.openpty()
    fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(tty)
    pid = os.fork()
    if not pid:
        os.setsid()
        fcntl.ioctl(tty, termios.TIOCSCTTY, 0)
        for standard in range(3):
            os.dup2(tty, standard)
        os.environ["TERM"] = "xterm"
        program = [*begin, sys.argv[1], *words.split(), "-n", sys.argv[2]]
        os.execv(program[0], program)
    seen = b""
    while ready not in seen or termios.tcgetattr(tty) == before:
        seen += os.read(fd, 65536)
    os.write(fd, keys)
    if number:
        os.kill(pid, number)
    ended = os.pidfd_open(pid)
    while not select.select([ended], [], [], 0.05)[0]:
        if select.select([fd], [], [], 0)[0]:
            seen += os.read(fd, 65536)
    _, got = os.waitpid(pid, 0)
    while select.select([fd], [], [], 0)[0]:
        seen += os.read(fd, 65536)
    assert termios.tcgetattr(tty) == before, (words, number, "another mode")
    assert seen.count(b"\33[?1049h") == seen.count(b"\33[?1049l"), (words, number, "another screen")
    assert got & ~0x80 == status, (words, number, got)
    for each in fd, tty, ended:
        os.close(each)

top, repl = ("top work:_", b"own time"), ("repl", b"etrace> ")
for view in top, repl:
    for s in [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR,
              16, signal.SIGRTMIN, signal.SIGTERM]:  # python has no name for SIGSTKFLT
        end(view, 0, s)
    for s in signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS:
        end(view, s, s)
    for s in signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGRTMIN, signal.SIGSEGV:
        end(view, s, s, begin=[sys.executable, os.environ["SANDBOX"]])
# The lookup raises the fault in a thread that is not the first.
end(repl, signal.SIGILL, keys=b":attach nobody@nowhere\r", begin=["/usr/bin/env", "FAULT=lookup", "LD_PRELOAD=" + os.environ["FAULT_SO"]])
END
    assert_success
}

@test "etrace with SIGCHLD ignored notices the end of its command and returns its status" {
    status=0
    (trap '' CHLD && exec "$ETRACE_BIN" -q lists:seq/2 -- sh -c "exec '$ETRACE_ERL' -noshell -eval 'halt(7).'") \
        </dev/null >"$OUT" 2>"$ERR" 3>&- &
    local pid=$!
    until_true 60 gone "$pid" || {
        kill -KILL "$pid"
        fail "etrace did not end: $(<"$ERR")"
    }
    wait "$pid" || status=$?
    assert_equal "$status" 7
}

@test "erl with its full path is not treated as a release" {
    status=0
    timeout 100 "$ETRACE_BIN" -q lists:seq/2 -- "$ETRACE_ERL" -noshell -eval \
        'io:format("~p~n", [application:get_env(kernel, sync_nodes_optional)]), halt(0).' </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
    assert_equal "$status" 0
    grep -qx undefined "$OUT" || fail "$(<"$OUT")"
}

@test "etrace refuses to write to the recording that it reads or to its own standard output" {
    local file=$BATS_TEST_TMPDIR/all.etr before
    traced -o "$file" work:one/1 -- 'work:loop(5)'
    before=$(cksum <"$file")
    ln -s all.etr "$BATS_TEST_TMPDIR/link.etr"
    for from in "$file" "$BATS_TEST_TMPDIR/link.etr" -; do
        # shellcheck disable=SC2094  # it is what must not do harm
        run timeout 30 "$ETRACE_BIN" replay "$from" -o "$file" <"$file"
        assert_failure 2
        assert_output "etrace: -o $file is the recording that etrace reads"
        assert_equal "$(cksum <"$file")" "$before"
    done
    status=0
    # shellcheck disable=SC2094
    timeout 30 "$ETRACE_BIN" replay "$file" >>"$file" 2>"$ERR" || status=$?
    assert_equal "$status" 2
    assert_equal "$(<"$ERR")" "etrace: standard output goes to the recording that etrace reads"
    assert_equal "$(cksum <"$file")" "$before"
    status=0
    # shellcheck disable=SC2094
    timeout 30 "$ETRACE_BIN" replay "$file" -o "$BATS_TEST_TMPDIR/x.json" >"$BATS_TEST_TMPDIR/x.json" 2>"$ERR" || status=$?
    assert_equal "$status" 2
    assert_equal "$(<"$ERR")" "etrace: standard output already goes to $BATS_TEST_TMPDIR/x.json"
}

@test "an error names the node that refuses, and the events of the other node are accounted for" {
    local other=$NODE
    node_start with
    on_node '{ok, M, B} = compile:forms([{attribute, 1, module, only_here}, {attribute, 1, export, [{f, 0}]}, {function, 1, f, 0, [{clause, 1, [], [], [{atom, 1, ok}]}]}]),
        {module, M} = code:load_binary(M, "", B), register(calls, spawn(fun() -> control:again(1, fun() -> M:f() end) end))'
    live_snapshot
    # The node in `other` looks up the module only after the node in NODE is traced.
    node_eval "$other" 'Me = self(), register(holder, spawn(fun() -> erlang:suspend_process(whereis(code_server)), Me ! held, receive go -> ok end end)), receive held -> ok end' >/dev/null
    etrace_start -n "$NODE" -n "$other" --json only_here:f/0
    until_true 30 grep -q '"type":"call"' "$OUT" || fail "$(<"$ERR")"
    node_eval "$other" 'holder ! go' >/dev/null
    trace_wait
    assert_equal "$status" 5
    assert_line_of_talk "etrace: $other: there is no module only_here on the node"
    [[ ${lines[-1]} == *'"type":"summary"'* ]] || fail "the output has no summary: $output"
    assert_equal "$(json_of summary .shown)" "$(grep -c '"type":"call"' "$OUT" || true)"
    # This node is traced for the first time.
    # shellcheck disable=SC2153
    assert_clean --atoms 2000 "$BEFORE" "$NODE"
}

@test "an output file keeps its content until the new trace has begun" {
    local file=$BATS_TEST_TMPDIR/kept.etr text=$BATS_TEST_TMPDIR/kept.txt before why
    traced -o "$file" -o "$text" work:one/1 -- 'work:loop(5)'
    before=$(cat "$file" "$text" | cksum)
    for why in '0 -n NODE --dry-run work:one/1' '3 -n nobody_there@127.0.0.1 work:one/1' '5 -n NODE no_such_module:f' '5 -n NODE --json work:no_such/7' \
        '5 -n NODE -P no_such_name work:one/1' '2 -n NODE work:one('; do
        # shellcheck disable=SC2086
        set -- ${why/NODE/"$NODE"}
        run timeout 60 "$ETRACE_BIN" "${@:2}" -o "$file" -o "$text"
        assert_equal "$status" "${why%% *}"
        assert_equal "$(cat "$file" "$text" | cksum)" "$before"
    done
    # A trace that has begun truncates the file, even if it shows no event.
    traced -o "$text" work:two/2 -- 'work:loop(5)'
    assert_success
    assert [ ! -s "$text" ]
    run timeout 30 "$ETRACE_BIN" replay "$file" -g 'nothing like it' -o "$text"
    assert [ ! -s "$text" ]
}

@test "etrace refuses a file that another etrace writes, but -a lets several append lines" {
    local file=$BATS_TEST_TMPDIR/one.etr log=$BATS_TEST_TMPDIR/all.json n added=()
    trace -o "$file" work:one/1
    for n in '' -a; do
        # shellcheck disable=SC2086
        run timeout 60 "$ETRACE_BIN" -n "$NODE" $n -o "$file" work:one/1
        assert_failure 1
        assert_output "etrace: cannot write $file: another process is writing it"
    done
    on_node 'work:loop(20)'
    trace_end
    assert_success
    run timeout 30 "$ETRACE_BIN" replay "$file" --json
    assert_success
    assert_equal "$(grep -c '"type":"call"' <<<"$output")" 20
    # A locked file is refused, even if it is etrace's own standard error.
    # shellcheck disable=SC2094  # one of them is refused: that is the point
    flock -o "$log" timeout 60 "$ETRACE_BIN" replay "$file" -o "$log" 2>>"$log" || true
    assert_equal "$(<"$log")" "etrace: cannot write $log: another process is writing it"
    rm "$log"
    for n in 1 2 3; do
        trace -a -o "$log" work:one/1
        added+=("$TRACER")
    done
    on_node 'work:loop(20)'
    for n in "${added[@]}"; do
        TRACER=$n
        trace_end
    done
    assert_equal "$(jq -r .type "$log" | grep -c call)" 60
}

# etrace waits for the network, and its signals are not blocked.
hears() { [[ $(awk '/^SigBlk/ { print $2 }' "/proc/$TRACER/status") == 0000000000000000 && $(ls -l "/proc/$TRACER/fd") == *socket* ]]; }

@test "a signal ends a command that waits for a node that does not answer" {
    local vm words
    live_own still
    vm=$(<"$(node_dir "$NODE")/pid")
    freeze "$vm"
    for COMMAND in trace ls doctor; do
        words=(-n "$NODE" work:one/1)
        [[ $COMMAND != doctor ]] || words=(-n "$NODE")
        etrace_start "$COMMAND" "${words[@]}"
        until_true 30 hears || fail "$(<"$ERR")"
        kill -INT "$TRACER"
        trace_wait
        assert_equal "$status,$talk" 130,
    done
    # A script in repl would continue without the node, so the signal must end it.
    COMMAND=repl
    "$ETRACE_BIN" repl -n "$NODE" < <(echo ':hist') >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    attaches() { [[ $(ls -l "/proc/$TRACER/fd") == *socket* ]]; }
    until_true 30 attaches || fail "$(<"$ERR")"
    kill -INT "$TRACER"
    trace_wait
    assert_equal "$status" 1
    grep -qx 'etrace: interrupted before all nodes were attached' "$ERR" || fail "$(<"$ERR")"
    kill -CONT "$vm"
    COMMAND=
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "a signal ends etrace as the first process of a container" {
    local vm init
    # first COMMAND...: runs COMMAND as process 1 of a namespace; INIT is its number outside.
    first() {
        unshare --pid --fork --mount-proc "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        first_is() { init=$(<"/proc/$TRACER/task/$TRACER/children") && init=${init% } && [[ $(readlink "/proc/$init/exe") == "$ETRACE_BIN" ]]; }
        until_true 30 first_is || fail "$(<"$ERR")"
    }
    live_own still
    vm=$(<"$(node_dir "$NODE")/pid")
    freeze "$vm"
    first "$ETRACE_BIN" -n "$NODE" work:one/1
    asks() { [[ $(ls -l "/proc/$init/fd") == *socket* ]]; }
    until_true 30 asks || fail "$(<"$ERR")"
    kill -INT "$init"
    trace_wait
    assert_equal "$status,$talk" 130,
    kill -CONT "$vm"
    first /usr/bin/python3 "$SANDBOX" "$ETRACE_BIN" -n "$NODE" work:one/1
    until_true 60 ready || fail "$(<"$ERR")"
    kill -TERM "$init"
    trace_wait
    assert_equal "$status" 143
    assert_clean --atoms 300 "$BEFORE" "$NODE"
}

@test "closing the terminal ends the command if etrace leads the terminal's session" {
    run timeout 100 /usr/bin/python3 - "$ETRACE_BIN" "$ETRACE_ERL" <<'END'
import os, pty, re, sys, time
pid, fd = pty.fork()
if not pid:
    os.execv(sys.argv[1], [sys.argv[1], "lists:seq/2", "--", sys.argv[2], "-noshell", "-noinput", "-eval", 'io:format("the node is ~s.~n", [os:getpid()]).'])
seen = b""
while not (node := re.search(rb"the node is (\d+)\.", seen)):
    seen += os.read(fd, 4096)
os.close(fd)
os.waitpid(pid, 0)
while os.path.exists("/proc/%s" % node[1].decode()):
    time.sleep(0.05)
END
    assert_success
}

@test "closing the terminal sends the command one hangup if another process leads its session" {
    run timeout 100 /usr/bin/python3 - "$ETRACE_BIN" <<'END'
import os, pty, signal, sys
told, tell = os.pipe()
os.set_inheritable(tell, True)
# In a process group of its own, the command gets only the signals that etrace forwards.
command = """import os, signal
both = {signal.SIGHUP, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
os.setpgid(0, 0)
os.write(%d, b"%%d\\n" %% os.getppid())
while True:
    got = signal.sigwait(both)
    os.write(%d, b"H" if got == signal.SIGHUP else b"T")
    if got == signal.SIGTERM:
        break
""" % (tell, tell)
pid, fd = pty.fork()
if not pid:
    os.execv("/bin/sh", ["sh", "-c", '"$@"; true', "sh", sys.argv[1], "lists:seq/2", "--", sys.executable, "-c", command])
os.close(tell)
told = os.fdopen(told, "rb", buffering=0)
etrace = int(told.readline())
os.close(fd)
os.waitpid(pid, 0)
# etrace forwards signals in order, so the command gets this one after every earlier one.
os.kill(etrace, signal.SIGTERM)
heard = told.readall()
sys.exit(0 if heard == b"T" else "the command heard %s" % heard)
END
    assert_success
}
