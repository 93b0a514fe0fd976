#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace trace --browse` on a terminal: events appear in the list as they come, every end gives the terminal back
# and leaves the last lines and the summary, and nothing stays on the node or the disk.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_share browse; }
teardown_file() { live_end; }
setup() {
    FILES=$BATS_TEST_TMPDIR/files
    mkdir "$FILES"
    live_setup
}
teardown() {
    terminal_end
    live_teardown
}

# Starts a trace in the list. After its end, the terminal shows the status and whether it echoes.
browsed() { # COLUMNS ROWS ARGS...
    terminal "$1" "$2" "TMPDIR=$FILES $ETRACE_BIN -n $NODE --browse ${*:3}
        echo \"status \$?\"
        stty -a | grep -ow -- '-*echo'
        exec sleep 1000"
    await 'h help *$'
}
browsed_pid() { pgrep -P "$(terminal_pid)" -f -- ' --browse '; }

twos() { on_node "[work:two($1, N) || N <- lists:seq(1, $2)]"; }

@test "the list follows the events of a trace, pauses, and leaves its last lines and the summary" {
    browsed 100 12 "'work:two/2 -> return'"
    await '^following · no event · h help'
    twos a 30
    await 'call work:two\(a, 30\) -> \{a,30\}  [0-9.]+[mnu]?s$'
    await '^following · .* · event 59 · h help'
    await '^etrace browse · work:two/2 -> return · 60 events'
    keys Space
    await '^paused · 0 new · .* · event 59 '
    twos b 5
    await '^paused · 10 new · '
    await_not 'two\(b'
    keys Enter
    await '^call work:two\($|^call work:two\(a'
    keys Escape
    keys Space
    await '^following · .* · event 69 '
    await 'call work:two\(b, 5\) -> '
    entered '&a, 1[0-9]'
    await_not 'two\(b'
    await 'call work:two\(a, 19\)'
    twos a 11
    await '^following · .* · event 91 '
    entered '&'
    await 'call work:two\(a, 9\)'
    typed q
    await '^status 0$'
    await '^echo$'
    await '^etrace: 92 events in '
    await 'call work:two\(a, 11\) -> '
    [[ -z $(ls "$FILES") ]]
}

@test "x traces a probe of an event instead, with the same options, and X what was traced before" {
    local pid
    on_node 'register(twos, spawn(fun() -> (fun Loop() -> receive X -> work:two(X, X), Loop() end end)() end))'
    browsed 140 12 "-e 'dur < 100s'" "'work:_ -> return'"
    on_node 'twos ! a'
    await 'call work:two\(a, a\) -> '
    typed X
    await '^nothing else was traced before · '
    typed x
    await '1 2 3 trace this instead$'
    pid=$(screen | sed -n "s/^2 in this process .* -P '\([^']*\)' .*/\1/p")
    typed 2
    await "^etrace browse · work:two/2 -> return  -P '$pid'  -e 'dur < 100s' · 0 events"
    twos b 2
    on_node 'twos ! d'
    await '^following .* event 1 '
    await 'call work:two\(d, d\) -> '
    await_not 'two\(b'
    on_node 'exit(whereis(twos), kill)'
    typed X
    await "^etrace browse · work:_ -> return  -e 'dur < 100s' · 0 events"
    on_node 'work:one(7)'
    await 'call work:one\(7\) -> '
    typed x
    await '1 2 3 trace this instead$'
    typed 1
    await "^etrace browse · work:one/1 -> return  -e 'dur < 100s' · 0 events"
    twos c 2
    on_node 'work:one(8)'
    await 'call work:one\(8\) -> '
    await_not 'two\(c'
    typed x
    await '1 2 3 trace this instead$'
    typed 3
    await "^etrace browse · work:one/1 -> return  -e 'dur < 100s'  -e 'dur > [0-9.]+[mun]?s' · 0 events"
    typed q
    await '^etrace: 0 events in '
    await '^status 0$'
    [[ -z $(ls "$FILES") ]]
}

@test "if the probe of an event cannot be traced, the list goes on with the one before" {
    browsed 120 12 work:two/2
    twos a 1
    await 'call work:two\(a, 1\)'
    typed x
    await '1 2 3 trace this instead$'
    typed 2
    await '^that cannot be traced; the end shows why · following · no event'
    await '^etrace browse · work:two/2 · 0 events'
    twos b 1
    await 'call work:two\(b, 1\)'
    typed q
    await '^etrace: there is no process <'
    await '^etrace: 1 event in '
    await '^status 0$'
}

@test "a trace that also writes a file keeps its probes" {
    browsed 120 12 "-o $BATS_TEST_TMPDIR/x.json" work:two/2
    twos a 1
    await 'call work:two\(a, 1\)'
    typed x
    await '1 2 3 trace this instead$'
    typed 1
    await '^with -o, the probes cannot change · Esc back'
    keys Escape
    typed q
    await '^etrace: 1 event in '
    await '^status 0$'
}

@test "signals end the trace, and the terminal is as before" {
    for signal in INT TERM; do
        browsed 80 10 work:two/2
        twos a 3
        await 'call work:two\(a, 3\)'
        kill "-$signal" "$(browsed_pid)"
        await '^etrace: 3 events in '
        await '^status 0$'
        await '^echo$'
        terminal_end
    done
    browsed 80 10 work:two/2
    keys C-c
    await '^status 0$'
    await '^echo$'
}

@test "a trace that ends by itself leaves its list until the user does" {
    browsed 80 10 -l 3 work:two/2
    twos a 5
    await '^the trace has ended · '
    await 'call work:two\(a, 3\)'
    keys g
    await 'event 1 '
    resized 40 6
    await '^the trace has ended · '
    resized 120 20
    await 'event 1 · h help'
    typed q
    await '^etrace: 3 events in '
    await '^status 0$'
}

@test "a node that dies ends the trace, and the list says so" {
    live_own browsed
    browsed 160 14 work:two/2
    twos a 5
    await 'call work:two\(a, 5\)'
    node_stop "$NODE"
    await '^ *\*\*\* node browsed_.* went down \*\*\*'
    await '^the trace has ended · browsed_.*: the node closed the connection'
    typed k
    await '^the trace has ended · .* · event 5 '
    typed q
    await 'etrace: browsed_.*: the node closed the connection'
    await '^status 1$'
    await '^echo$'
}

@test "a killed etrace leaves neither a file nor a trace" {
    browsed 80 10 work:two/2
    twos a 5
    await 'call work:two\(a, 5\)'
    kill -KILL "$(browsed_pid)"
    await '^status 137$'
    [[ -z $(ls "$FILES") ]]
}

@test "in a flood the list serves the keys, and tells what is lost" {
    browsed 100 12 -r 1000 work:one/1
    on_node 'work:loop(100000)'
    await '^etrace browse · work:one/1 · [0-9,]+ events · [0-9,]+ lost'
    keys Space
    await '^paused · '
    keys g
    await 'event 1 '
    entered '/one\(9950[0-9]\)'
    await '^[^n].* · event 4[0-9]{2} · /one'
    keys G
    await '^following · '
    typed q
    await '^etrace: [0-9]+ events in .* lost \(rate\)'
    await '^status 0$'
}

@test "without a terminal, or with options that need another output, one line says why not" {
    run "$ETRACE_BIN" -n "$NODE" --browse work:two/2 </dev/null
    assert_failure 2
    assert_output 'etrace: --browse needs a terminal; without it, the events are lines of text'
    for option in '--as tree' --json -c '--by mfa:count' '--fields mfa' '--format {mfa}'; do
        # shellcheck disable=SC2086 # an option and its value
        run "$ETRACE_BIN" -n "$NODE" --browse $option work:two/2
        assert_failure 2
        assert_line -n 0 "etrace: --browse shows events in a list, so it cannot be combined with ${option%% *}"
    done
    run "$ETRACE_BIN" -n "$NODE" --browse --ring 1MB work:two/2
    assert_failure 2
    assert_line --partial 'etrace: --browse cannot be combined with --ring'
    run "$ETRACE_BIN" --browse work:two/2 -- true
    assert_failure 2
    assert_line --partial 'etrace: --browse cannot be combined with -- COMMAND'
}
