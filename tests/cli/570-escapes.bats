#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Hostile text from a node, its epmd or its code in a name, a term or a reason. No output of etrace steers a terminal,
# hides or reorders text, or begins a forged line, in any command or view.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/plain
load ../lib/commands
load ../lib/terminal

# Loads a module with a hostile name, function, variable and file, and registers processes with such names: w_ evaluates
# funs, and s_ answers calls. The compiler rejects the module, so its code is patched; the loader accepts it.
setup_file() {
    live_begin escapes
    local dir
    dir=$(node_dir "$LIVE_NODE")/evil
    mkdir "$dir"
    node_eval "$LIVE_NODE" "Evil = \"\\e]0;PWNED\\x{7}\\e[2J\\n\\x{202e}\\x{200b}\\x{9b}31m\", Module = list_to_atom(\"evil\" ++ Evil), Function = list_to_atom(\"f\" ++ Evil),
        Mild = lists:duplicate(byte_size(atom_to_binary(Module)), 120),
        {ok, _, Made} = compile:forms([{attribute, 1, module, list_to_atom(Mild)}, {attribute, 1, export, [{Function, 1}, {plain, 1}]},
            {attribute, 1, record, {Function, [{record_field, 1, {atom, 1, Module}}]}},
            {function, 1, Function, 1, [{clause, 1, [{var, 1, list_to_atom(\"V\" ++ Evil)}], [], [{call, 1, {remote, 1, {atom, 1, erlang}, {atom, 1, error}}, [{atom, 1, Module}]}]}]},
            {function, 1, plain, 1, [{clause, 1, [{var, 1, 'X'}], [], [{tuple, 1, [{var, 1, 'X'}, {string, 1, Evil}]}]}]}], [debug_info]),
        Bin = binary:replace(Made, list_to_binary(Mild), atom_to_binary(Module), [global]),
        ok = file:write_file(\"$dir/\" ++ atom_to_list(Module) ++ \".beam\", Bin), code:add_path(\"$dir\"), {module, Module} = code:load_file(Module),
        true = register(list_to_atom(\"w_\" ++ Evil), work:worker()), true = register('-w', work:worker()), work:warm(),
        true = register(list_to_atom(\"s_\" ++ Evil), spawn(fun Serve() -> receive {'\$gen_call', From, _} -> gen:reply(From, {Module, Evil}), Serve() end end))"
}
teardown_file() { live_end; }
setup() {
    live_setup
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
}
teardown() {
    [[ ! $TERMINAL ]] || terminal_end
    [[ ! ${FAKE:-} ]] || { kill "$FAKE" && wait "$FAKE"; } 2>/dev/null || true
    on_node '[begin R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end end || N <- [calls, asks, rival], P <- [whereis(N)], is_pid(P)]'
    live_teardown
}

# Runs a command. Its outputs must be plain text.
plain() {
    status=0
    timeout 30 "$ETRACE_BIN" "$@" </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
    assert_plain "etrace $*" "$OUT" "$ERR"
}

# Runs a command. Its outputs must be plain text, and must show the hostile name.
says() {
    plain "$@"
    grep -q -a PWNED "$OUT" "$ERR" || fail "etrace $* does not show the name: $(head -c 600 "$OUT" "$ERR")"
}

# Calls the hostile function and the hostile server again and again, until teardown.
busy() {
    on_node '[M] = [M || M <- erlang:loaded(), lists:prefix("evil", atom_to_list(M))], [F] = [N || {N, 1} <- M:module_info(exports), N =/= plain, N =/= module_info],
        [W, S] = [list_to_atom(Kind ++ lists:nthtail(4, atom_to_list(M))) || Kind <- ["w_", "s_"]],
        register(calls, spawn(fun() -> control:again(5, fun() -> catch M:F(M), M:plain(M) end) end)),
        register(asks, spawn(fun() -> control:again(5, fun() -> W ! {F, M}, gen:call(S, list_to_atom([$$ | "gen_call"]), {F, M}) end) end))'
}

# bats test_tags=long
@test "every view escapes control characters in events" {
    trace -o "$BATS_TEST_TMPDIR/r.etr" 'evil*:_/_ -> return, caller' 'send(_, _)' 'recv(_)' @register @exit
    on_node '[M] = [M || M <- erlang:loaded(), lists:prefix("evil", atom_to_list(M))], {_, [{F, 1}]} = {exports, [E || E = {N, 1} <- M:module_info(exports), N =/= plain, N =/= module_info]},
        [W, S] = [list_to_atom(Kind ++ lists:nthtail(4, atom_to_list(M))) || Kind <- ["w_", "s_"]],
        {ok, _} = gen:call(S, list_to_atom([$$ | "gen_call"]), {F, M}),
        work:ask(W, fun() -> catch M:F(M), M:plain(atom_to_list(M)), M:plain(#{M => [F, fun M:F/1, {M, <<"\e[2J">>}]}) end),
        {P, R} = spawn_monitor(fun() -> register(F, self()), M ! {F, M} end), receive {_, R, _, P, _} -> ok end'
    trace_end
    assert_success
    # A process that sends to an unregistered name fails, which the node logs.
    node_heard "$NODE" REPORT====
    assert_plain 'the trace' "$OUT" "$ERR"
    [[ $(grep -c PWNED "$OUT") -ge 8 ]] || fail "the output has too few hostile names: $(<"$OUT")"
    for view in $(views_of_help); do
        OUT=$BATS_TEST_TMPDIR/out${view/#*tsv/.tsv} # which may have tabs
        case $view in
            record | pprof) ;; # a recording, and a compressed file
            table*) says replay --as "$view" --by 'mfa, name, args[1]: count' "$BATS_TEST_TMPDIR/r.etr" ;;
            *) says replay --as "$view" "$BATS_TEST_TMPDIR/r.etr" ;;
        esac
    done
    says replay --elixir "$BATS_TEST_TMPDIR/r.etr"
    says replay --format '{pid} {name} {mfa} {args} {value} {reason}' "$BATS_TEST_TMPDIR/r.etr"
}

# The pid of the process with a hostile name.
evil_pid() { node_eval "$NODE" '[P] = [whereis(N) || N <- registered(), lists:prefix("w_", atom_to_list(N))], list_to_binary(pid_to_list(P))' | tr -d '<>"' | sed 's/.*/<&>/'; }

counted() { timeout 30 "$ETRACE_BIN" top -n "$NODE" --for 300ms "$@" 'evil*:_' </dev/null >"$OUT" 2>"$ERR" 3>&- && grep -q PWNED "$OUT"; }

@test "other commands escape control characters from the node and the command line" {
    says ls -n "$NODE" 'evil*:_'
    says info -n "$NODE" 'evil*:_'
    says info -n "$NODE" "$(evil_pid)"
    on_node '[M] = [M || M <- erlang:loaded(), lists:prefix("evil", atom_to_list(M))], register(calls, spawn(fun() -> control:again(5, fun() -> M:plain(1) end) end))'
    for view in '' --json; do
        # shellcheck disable=SC2086  # nothing, or a word
        until_true 30 counted $view || fail "top did not count the function: $(<"$OUT") $(<"$ERR")"
        assert_plain "top $view" "$OUT" "$ERR"
    done
    on_node 'R = monitor(process, calls), calls ! stop, receive {_, R, _, _, _} -> ok end'
    # Another session has this name.
    on_node '[M] = [M || M <- erlang:loaded(), lists:prefix("evil", atom_to_list(M))], register(rival, spawn(fun() -> S = trace:session_create(M, self(), []), receive stop -> trace:session_destroy(S) end end))'
    says sessions -n "$NODE"
    says sessions -n "$NODE" --json
    for how in '' --json; do
        # shellcheck disable=SC2086  # nothing, or a word
        {
            says ps -n "$NODE" $how --rows 1000
            says stacks -n "$NODE" $how -P "$(evil_pid)"
            says why -n "$NODE" --for 100ms $how "$(evil_pid)"
            plain requests -n "$NODE" --for 100ms $how
        }
    done
    on_node 'R = monitor(process, rival), rival ! stop, receive {_, R, _, _, _} -> ok end'
    # These errors suggest similar names.
    says -n "$NODE" "'evil]0;PWNED[2J31m':plain/1"
    says -n "$NODE" --for 50ms $'\'no\x1b]0;PWNED\x07\':plain/1'
    says explain $'a:b(\x1b]0;PWNED\x07'
    says -n "$NODE" -g $'\x1b]0;PWNED\x07(' a:b
    says -n "$NODE" -P $'\x1b]0;PWNED\x07' work:one/1
}

@test "every command that connects to a node escapes control characters" {
    for command in $(commands_of_help); do
        [[ $commands_without_node != *" $command "* ]] || continue
        command_args "$command"
        plain "$command" -n "$NODE" "${args[@]}"
    done
}

# Runs a command on a terminal, waits until it shows REGEX and the hostile name, and presses keys: after each of them the
# terminal must show the regex that follows it. Nothing that reaches the terminal may control it.
screened() { # COMMAND-LINE REGEX [KEY REGEX]...
    local tty=$BATS_TEST_TMPDIR/screen command=$1
    terminal 160 30 "script -qfc '$ETRACE_BIN $command' $tty; echo the end; sleep 100"
    await "$2"
    await PWNED
    shift 2
    while [[ $# -gt 0 ]]; do
        [[ ! $1 ]] || keys "$1"
        await "$2"
        shift 2
    done
    keys q
    await 'the end'
    terminal_end
    grep -q -a PWNED "$tty" || fail "$command does not show the name"
    assert_screen "etrace $command" "$tty"
}

@test "no screen, and no page of one, lets the node control the terminal" {
    busy
    local evil etr=$BATS_TEST_TMPDIR/r.etr
    evil=$(evil_pid)
    local details=("q quit +Enter" Enter "Esc back" "" PWNED Escape "q quit +Enter")
    local event=("h help" Enter "Esc back" "" PWNED Escape "h help" x "etrace -n" Escape "h help")
    screened "top -n $NODE --interval 200ms \"evil*:_\"" "${details[@]}"
    screened "ps -n $NODE --interval 200ms -P \"$evil\"" "${details[@]}"
    screened "stacks -n $NODE --interval 200ms -P \"$evil\"" "${details[@]}"
    screened "requests -n $NODE --interval 200ms" '^q quit'
    screened "-n $NODE \"evil*:_ by mfa, args: count\"" '^q quit'
    screened "-n $NODE --browse \"evil*:_/_ -> return, caller\" \"send(_, _)\"" "${event[@]}"
    plain -n "$NODE" --for 200ms -o "$etr" 'evil*:_/_ -> return, caller' 'send(_, _)'
    screened "browse $etr" "${event[@]}"
}

# Starts an epmd that lists nodes with hostile names, or with the names that are given.
fake_epmd() {
    rm -f "$BATS_TEST_TMPDIR/port"
    mkfifo "$BATS_TEST_TMPDIR/port"
    /usr/bin/python3 -c '
import os, socket, sys
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(9)
open(sys.argv[1], "w").write("%d\n" % s.getsockname()[1])
names = [os.fsencode(n) for n in sys.argv[2:]] or (b"a\x1b]0;PWNED\x07b", b"c\xe2\x80\xaePWNED", b"\xff\x9bPWNED", b"x_PWNED$(touch${IFS}owned)", b"--port=1", b"good")
while True:
    c, _ = s.accept()
    r = c.recv(300)
    c.sendall(b"\x00\x00\x11\x11" + b"".join(b"name %s at port 1\n" % n for n in names) if r[2:3] == b"n" else b"\x77\x01")
    c.close()' "$BATS_TEST_TMPDIR/port" "$@" </dev/null >/dev/null 2>&1 3>&- &
    FAKE=$!
    read -r -t 20 ERL_EPMD_PORT <>"$BATS_TEST_TMPDIR/port"
    export ERL_EPMD_PORT
}

@test "commands escape control characters in the names of an epmd" {
    fake_epmd
    says nodes
    says nodes --json
    says nodes --as csv
    says doctor
    says work:one/1
    says -n nosuch@127.0.0.1 work:one/1
}

@test "a node name with an invisible character is refused, also from an epmd" {
    for name in $'a\xe2\x80\xaePWNED@127.0.0.1' $'PWNED\xc2\x9b@127.0.0.1' $'PWNED@\xe2\x80\x8b'; do
        says ls -n "$name" work:_
        assert_equal "$status" 2
    done
    fake_epmd $'PWNED\xc2\x9b31m'
    for command in ls info trace; do
        says "$command" work:one/1
        assert_equal "$status" 3
    done
    grep -q 'is not a node name' "$ERR"
}

@test "the commands of hints quote the names of nodes and files for a shell" {
    /usr/bin/python3 "$ETRACE_ROOT/tests/lib/stranger.py" "$BATS_TEST_TMPDIR/heard" '$(touch${IFS}owned)' </dev/null 3>&- &
    FAKE=$!
    until_true 20 test -s "$BATS_TEST_TMPDIR/heard"
    plain -n other --port "$(<"$BATS_TEST_TMPDIR/heard")" work:one/1
    grep -qF "hint: -n '\$(touch\${IFS}owned)' is the node that listens there" "$ERR" || fail "$(<"$ERR")"
    plain ls -n "$NODE" "'\$(id)@x':_"
    grep -qF "as in -n '\$(id)@x'" "$ERR" || fail "$(<"$ERR")"
}

# Prints the candidates that a shell would get.
offered() { "$ETRACE_BIN" __complete "$@" 2>/dev/null; }

@test "completion offers only plain words, to a shell and at the prompt" {
    # Completion asks the node in the background, after its own answer, so repeat it.
    until_true 30 eval 'offered trace -n "$NODE" wor | grep -q "^work:"'
    until_true 30 eval '[[ -n $(offered trace -n "$NODE" work:o) ]]'
    run offered trace -n "$NODE" evil
    assert_output ''
    until_true 30 eval 'offered trace -n "$NODE" -P kernel | grep -q "^kernel_sup"'
    run offered trace -n "$NODE" -P -
    assert_output ''
    tty=$BATS_TEST_TMPDIR/tty
    # Press Tab where a process is expected, and where a module is; the second Tab has the node's answer.
    { until_true 20 grep -q -s 'etrace>' "$tty"; printf ':proc w\t'; pause 1; printf '\t\t\025evil\t'; pause 1; printf '\t\t\025\004'; } |
        timeout 60 script -qfc "$ETRACE_BIN repl -q -n $NODE" "$tty" >/dev/null 2>&1 || true
    run grep -c -a $'\x1b]0;' "$tty"
    assert_output 0
    fake_epmd
    run offered trace -n ''
    assert_line good
    refute_output --partial PWNED
    refute_output --partial port
}

@test "bash completion quotes a ! for the place where it is" {
    # shellcheck source=/dev/null
    source <("$ETRACE_BIN" completion bash)
    fake_epmd 'a!b'
    for line in '-n a' '-n "a' "-n 'a"; do
        COMP_LINE="$ETRACE_BIN $line" COMP_POINT=$((${#ETRACE_BIN} + 1 + ${#line})) COMPREPLY=()
        _etrace etrace a -n || true # it may ask the shell to add no space, and there is no shell
        printf '%s\n' "<${COMPREPLY[*]}>"
    done >"$OUT"
    assert_equal "$(<"$OUT")" $'<a\\!b>\n<>\n<a!b>'
}
