#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace doctor` and `etrace nodes`: they report each step and name the step that fails, and they do not change
# the node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_share doctored; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    live_teardown
}

etrace() { timeout 60 "$ETRACE_BIN" "$@"; }
steps() { awk '{ print $2 }' <<<"$output" | paste -sd' '; }

validate() {
    "$ETRACE_BIN" schema >"$BATS_TEST_TMPDIR/schema"
    echo "$output" >"$BATS_TEST_TMPDIR/lines"
    run /usr/bin/python3 "$ETRACE_ROOT/tests/lib/json_lines.py" "$BATS_TEST_TMPDIR/schema" "$BATS_TEST_TMPDIR/lines"
    assert_success
}

@test "doctor reports every step in order for a healthy node and leaves nothing on it" {
    run --separate-stderr etrace doctor -n "$NODE"
    assert_success
    assert_equal "$(steps)" 'host epmd node cookie handshake rex companion version NIF session event leaving residue'
    refute_line --regexp '^(FAIL|warn)'
    assert_line --regexp "^ok +node +$NODE listens on port [0-9]+"
    assert_line --regexp "^ok +version +OTP ${ETRACE_OTP}[0-9.]*, erts "
    assert_line --regexp '^ok +event +a call came back as an event'
    assert_line --regexp '^ok +residue +no module and no process'
    assert_equal "$stderr" ''
}

@test "doctor reports the fallback tracer as a warning, not as a failure" {
    run etrace doctor --fallback -n "$NODE"
    assert_success
    assert_line --regexp '^warn +NIF +not loaded, so at most 1000 events a second: asked for'
    assert_line --regexp '^ok +event '
}

@test "the JSON output of doctor conforms to the schema" {
    run etrace doctor --json -n "$NODE"
    assert_success
    assert_equal "$(jq -r .result <<<"$output" | sort -u)" ok
    validate
}

@test "doctor stops at the step that fails and prints a hint" {
    run etrace doctor -n nobody@127.0.0.1
    assert_failure 3
    assert_equal "$(steps | cut -d' ' -f1-3)" 'host epmd node'
    assert_line --regexp '^FAIL +node +.*knows no node of that name'
    assert_line --partial 'hint: it knows '

    run etrace doctor --port 1 -n "$NODE"
    assert_failure 3
    assert_line --regexp "^ok +node +$NODE is expected on port 1 \\(--port\\)"
    assert_line --regexp '^FAIL +handshake '

    # Without an epmd, etrace looks for a process of this host with the name.
    run env ERL_EPMD_PORT=1 "$ETRACE_BIN" doctor -n nobody@127.0.0.1
    assert_failure 3
    assert_line --regexp '^ok +epmd +none runs here \(port 1\)'
    assert_line --regexp '^FAIL +node +cannot connect to nobody@127.0.0.1: no epmd runs on 127.0.0.1 \(port 1\)'
    assert_line --partial 'hint: '
    run env ERL_EPMD_PORT=1 "$ETRACE_BIN" doctor -n "$NODE"
    assert_success

    run etrace doctor -n x@no-such-host.invalid
    assert_failure 3
    assert_line -n 0 --regexp '^FAIL +host '

    printf wrongcookie >"$BATS_TEST_TMPDIR/cookie"
    chmod 600 "$BATS_TEST_TMPDIR/cookie"
    run etrace doctor --cookie-file "$BATS_TEST_TMPDIR/cookie" -n "$NODE"
    assert_failure 3
    assert_line --regexp '^ok +cookie '
    assert_line --regexp '^FAIL +handshake +.*the cookie does not match'
    node_heard "$NODE" 'Invalid challenge reply'
    refute_line --regexp '^ok +rex'

    chmod 644 "$BATS_TEST_TMPDIR/cookie"
    run etrace doctor --cookie-file "$BATS_TEST_TMPDIR/cookie" -n "$NODE"
    assert_failure 3
    assert_line --regexp '^warn +cookie +read from .*; other users can access that file \(mode 0644\): chmod 400 '
    node_heard "$NODE" 'Invalid challenge reply'
}

@test "doctor reports a rex process that hangs" {
    on_node 'sys:suspend(rex)'
    run etrace doctor -n "$NODE"
    on_node 'sys:resume(rex)'
    assert_failure 3
    assert_line --regexp '^ok +handshake '
    assert_line --regexp '^FAIL +rex +its rex process does not answer'
}

@test "doctor finds a node by its process, and by its port without epmd" {
    local pid port
    pid=$(<"$(node_dir "$NODE")/pid")
    run etrace doctor -p "$pid"
    assert_success
    assert_line --partial "connected to $NODE"
    port=$(etrace nodes --json 127.0.0.1 | jq -r --arg n "$NODE" 'select(.node == $n) | .port')
    run env ERL_EPMD_PORT=1 "$ETRACE_BIN" doctor -n "$NODE" --port "$port"
    assert_success
    assert_line --partial 'skipped (--port)'
}

@test "doctor refuses words, several nodes and a malformed process number" {
    run etrace doctor "$NODE"
    assert_failure 2
    run etrace doctor -n a -n b
    assert_failure 2
    run etrace doctor -p nothing
    assert_failure 2
}

@test "etrace nodes lists reachable nodes and says why a node is not reachable" {
    # For a named host, etrace asks epmd only: the processes of this host include the nodes of other suites.
    run etrace nodes 127.0.0.1
    assert_success
    assert_line --regexp "^$NODE +[0-9]+ +- +-  ok$"

    printf wrongcookie >"$BATS_TEST_TMPDIR/cookie"
    chmod 600 "$BATS_TEST_TMPDIR/cookie"
    run etrace nodes --cookie-file "$BATS_TEST_TMPDIR/cookie" 127.0.0.1
    assert_success
    assert_line --regexp "^$NODE +[0-9]+ +- +-  the cookie does not match"
    node_heard "$NODE" 'Invalid challenge reply'
    assert_line --regexp '^ +hint: '
    # The node has logged the refused connection, which changes the snapshot.
    live_snapshot
}

@test "the JSON output of etrace nodes conforms to the schema, and a missing epmd is reported" {
    run etrace nodes --json 127.0.0.1
    assert_success
    jq -es --arg n "$NODE" 'map(select(.node == $n)) | length == 1 and .[0].reachable' <<<"$output"
    validate
    run etrace nodes --as csv 127.0.0.1
    assert_line -n 0 node,host,port,os_pid,otp,epmd,reachable,tls,attach,reason,hint
    assert_line --regexp "^$NODE,127.0.0.1,[0-9]+,,,true,true,false,-n $NODE,,$"
    run -2 etrace nodes --json --as tsv
    run --separate-stderr env ERL_EPMD_PORT=1 "$ETRACE_BIN" nodes 127.0.0.1
    assert_success
    assert_equal "$output" ''
    assert_regex "$stderr" 'no epmd runs there \(port 1\)'
    run --separate-stderr env ERL_EPMD_PORT=1 "$ETRACE_BIN" nodes --as csv 127.0.0.1 127.0.0.1
    assert_output node,host,port,os_pid,otp,epmd,reachable,tls,attach,reason,hint
    run etrace nodes no-such-host.invalid
    assert_failure 3
}

@test "completion caches the node's modules and functions in private files" {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    offers() { etrace __complete -n "$NODE" "$1" | grep -qxF -- "$2"; }
    # Completion does not wait for a slow node: it offers the node's answer at the next call.
    until_true 30 offers l lists:
    until_true 30 offers work:wa work:warm/0
    offers 'lists:seq(1, X) | work:wa' 'lists:seq(1, X) | work:warm/0'
    offers 'lists:seq(1, X) |l' 'lists:seq(1, X) |lists:'
    # The functions of the only module follow at once.
    until_true 30 offers wor work:warm/0
    run etrace __complete -n "${NODE%@*}" --no
    assert_output --partial -- '--node'
    run etrace __complete -n "${NODE%_*}"
    assert_line "${NODE%@*}"
    assert_equal "$(stat -c %a "$XDG_CACHE_HOME/etrace")" 700
    assert_equal "$(stat -c %a "$XDG_CACHE_HOME"/etrace/* | sort -u)" 600
    run find "$XDG_CACHE_HOME/etrace" -name '*.*'
    assert_output ''
    # The cache is separate for each node: an unreachable node without a cache offers nothing, and quickly.
    run etrace __complete -n nobody@127.0.0.1 list
    assert_success
    assert_output ''
}

# Starts a shell with completion in a terminal, with the names of the node already cached.
completing() { # COMMAND PROMPT
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache XDG_CONFIG_HOME=$BATS_TEST_TMPDIR XDG_DATA_HOME=$BATS_TEST_TMPDIR
    export ETRACE_NODE=$NODE PATH=${ETRACE_BIN%/*}:$PATH
    knows() { etrace __complete "$@" | grep -q .; }
    until_true 30 knows work:wa
    until_true 30 knows -P kernel_su
    terminal 100 10 "$1"
    await "$2"
}

# Types TYPED and Tab, expects LINE, and clears the input.
completes() { # TYPED LINE
    typed "$1"
    keys Tab
    await "$2"
    keys C-u
    await_not "$2"
}

completes_expressions() {
    completes "etrace 'work:wa" "etrace 'work:warm/0"
    completes 'etrace "work:wa' 'etrace "work:warm/0'
    completes "etrace 'work:warm/0 -> call" "etrace 'work:warm/0 -> caller"
    completes "etrace 'work:warm/0 where rec" "etrace 'work:warm/0 where reclaimed"
    completes "etrace -P kernel_su" "etrace -P kernel_sup"
}

@test "bash completes expressions with and without quotes, and processes" {
    completing "PS1='ready> ' bash --norc --noprofile --rcfile /dev/null -i" 'ready>'
    entered 'bind "set bell-style none"; eval "$(etrace completion bash)"; PS1="on> "; clear'
    await_last '^on> *$'
    completes_expressions
    completes 'etrace work:wa' 'etrace work:warm/0'
}

# Types TYPED, in which each ^ is a Tab, and Enter. Expects that the shell calls etrace with WORDS, each in <>.
enters() { # TYPED WORDS
    local part first=yes
    while IFS= read -r -d '^' part; do
        [[ $first ]] || keys Tab
        first=
        [[ ! $part ]] || typed "$part"
    done <<<"$1^"
    keys Enter
    await '^GOT '
    await_last '^on> *$'
    screen | grep -qxF "GOT $2" || fail "not '$2': $(screen)"
    entered clear
    await_not '^GOT '
}

# bats test_tags=long
@test "bash leaves the quote of an expression open, so that no Tab makes shell syntax of the rest" {
    cd "$BATS_TEST_TMPDIR"
    : >work_notes.txt
    completing "PS1='ready> ' bash --norc --noprofile --rcfile /dev/null -i" 'ready>'
    entered 'bind "set bell-style none"; eval "$(etrace completion bash)"; bin=$(type -P etrace); PS1="on> "'
    entered 'etrace() { if [[ $1 == __complete ]]; then "$bin" "$@"; else printf "GOT"; printf " <%s>" "$@"; echo; fi; }; clear'
    await_last '^on> *$'
    enters "etrace 'work^^warm^-> return'" '<work:warm/0 -> return>'
    enters "etrace 'lists:seq/2 | work:wa^^'" '<lists:seq/2 | work:warm/0 >'
    enters 'etrace "work:wa^when true -> return"' '<work:warm/0 when true -> return>'
    enters "etrace 'work:'wa^" '<work:warm/0>'
    enters "etrace 'work:wa'^" "<work:warm/0>"
    enters "etrace work:warm/0\\ -^" '<work:warm/0 ->>'
    enters "etrace --as 'tre^-e 'dur > 1ms' work:wa^" '<--as> <tree> <-e> <dur > 1ms> <work:warm/0>'
    # No file name is part of an expression.
    enters "etrace 'work_n^ote'" '<work_note>'
}

# bats test_tags=long
@test "zsh completes expressions with and without quotes, and processes" {
    completing "PS1='ready> ' zsh -f -i" 'ready>'
    entered 'bindkey -e; autoload -U compinit; compinit -u -D; eval "$(etrace completion zsh)"; PS1="on> "; clear'
    await_last '^on> *$'
    completes_expressions
    completes 'etrace work:wa' 'etrace work:warm/0'
}

@test "fish completes expressions with and without quotes, and processes" {
    completing 'fish --no-config -i' '[>#] *$'
    entered 'etrace completion fish | source; function fish_prompt; echo "on> "; end; clear'
    await_last '^on> *$'
    completes_expressions
    completes 'etrace work:wa' 'etrace work:warm/0'
}
