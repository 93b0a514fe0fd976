#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace ps`: the figures equal those of process_info, the orders and the growth are right, and the table works on
# a terminal.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_share ps; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    [[ -n $BATS_TEST_COMPLETED ]] || node_eval "$LIVE_NODE" '[catch exit(whereis(N), kill) || N <- [leaks, hoards, grows, works, calm], is_pid(whereis(N))]' || true
    live_teardown
}

ps() { run --separate-stderr timeout 60 "$ETRACE_BIN" ps -n "$NODE" "$@"; }
row() { jq -r "select(.type == \"process\" and .name == \"$1\") | $2" <<<"$output"; }

# started NAME FUN: starts a process with that name and returns when it has called Up().
started() { on_node "begin Me = self(), spawn(fun() -> register($1, self()), ($2)(fun() -> Me ! up end) end), receive up -> ok end end"; }
ended() { on_node "begin R = monitor(process, $1), exit(whereis($1), kill), receive {_, R, _, _, _} -> ok end end"; }

@test "a process with a long queue comes first, with the exact number, and its messages hold the memory" {
    started leaks 'fun(Up) -> process_flag(message_queue_data, off_heap), Up(), receive never -> ok end end'
    on_node 'begin [leaks ! {job, lists:seq(1, 50)} || _ <- lists:seq(1, 5000)], ok end'
    ps --sort queue --json
    assert_success
    assert_equal "$(jq -r .name <<<"${lines[0]}")" leaks
    assert_equal "$(row leaks '"\(.queue) \(.holds) \(.status)"')" '5000 messages waiting'
    assert_equal "$(jq -s '.[-1] | [.type, .silent]' -c <<<"$output")" '["processes",[]]'
    ps --sort queue --rows 1
    assert_line --regexp '^ *5000 .* messages .*<[0-9.]+>\(leaks\) '
    assert_equal "${#lines[@]}" 2
    [[ $stderr == 'etrace: sorted by queue · '*' processes · '*' messages in queues' ]]
    ended leaks
}

# The VM would walk all of the messages to measure the memory.
@test "the memory of a process with more than 300,000 messages is the least that they take" {
    started leaks 'fun(Up) -> Up(), receive never -> ok end end'
    on_node 'begin [leaks ! N || N <- lists:seq(1, 300001)], ok end'
    for sort in queue memory binaries reductions; do
        ps --sort "$sort" --rows 1000 --json
        assert_success
        assert_equal "$(row leaks '"\(.queue) \(.memory) \(.memory_estimated) \(.holds) \(.binaries) \(.total_heap) \(.old_heap)"')" \
            "300001 $((300001 * 88)) true messages null null null"
    done
    ps --rows 1000
    assert_line --regexp ' 300k +>25 MB +- .* messages .*\(leaks\) '
    run --separate-stderr timeout 60 "$ETRACE_BIN" why -n "$NODE" leaks
    assert_success
    assert_line --regexp '^memory +>25 MB, mostly messages  '
    run --separate-stderr timeout 60 "$ETRACE_BIN" why -n "$NODE" --json leaks
    assert_equal "$(jq -c '[.chain[0].memory_estimated, .binaries]' <<<"$output")" '[true,null]'
    ended leaks
}

@test "the binaries of a process are counted once, and only large ones" {
    started hoards 'fun(Up) -> B = binary:copy(<<7>>, 20000000), put(all, [B, B, <<"small">>]), garbage_collect(), Up(), receive never -> ok end end'
    ps --sort binaries --json
    assert_equal "$(jq -r .name <<<"${lines[0]}")" hoards
    assert_equal "$(row hoards '"\(.binaries >= 20000000 and .binaries < 21000000) \(.holds)"')" 'true binaries'
    ended hoards
}

# A list of these binaries would have six words for each, more than the process that looks may have.
# bats test_tags=long
@test "a process with 300,000 binaries is listed with an estimate, and the others are exact" {
    started hoards 'fun(Up) -> put(all, [binary:copy(<<7>>, 80) || _ <- lists:seq(1, 300000)]), Up(), receive never -> ok end end'
    started calm 'fun(Up) -> put(all, [binary:copy(<<7>>, 1000) || _ <- lists:seq(1, 1000)]), Up(), receive never -> ok end end'
    for sort in memory binaries; do
        ps --sort "$sort" --json
        assert_success
        assert_equal "$(row hoards '"\(.binaries >= 20000000 and .binaries < 30000000) \(.binaries_estimated) \(.status)"')" 'true true waiting'
        assert_equal "$(row calm '"\(.binaries >= 1000000 and .binaries < 1100000) \(.binaries_estimated)"')" 'true null'
    done
    ps --rows 1000
    assert_line --regexp ' ~2[0-9] MB .*\(hoards\) '
    run --separate-stderr timeout 60 "$ETRACE_BIN" why -n "$NODE" hoards
    assert_success
    assert_line --regexp '^memory .*, binaries ~2[0-9] MB'
    ended hoards
    ended calm
}

@test "the figures of a process equal those of process_info" {
    started calm 'fun(Up) -> put(some, lists:seq(1, 1000)), Up(), receive never -> ok end end'
    on_node 'begin [calm ! x || _ <- [1, 2, 3]], ok end'
    by_hand=$(node_eval "$NODE" 'begin W = erlang:system_info(wordsize), [{_, Q}, {_, M}, {_, H}, {_, S}] =
        process_info(whereis(calm), [message_queue_len, memory, total_heap_size, stack_size]), {Q, M, H * W, S * W} end')
    ps -P calm --json
    assert_equal "{$(row calm '"\(.queue),\(.memory),\(.total_heap),\(.stack_size)"')}" "$by_hand"
    ended calm
    ps -P kernel_sup --json
    assert_equal "$(row kernel_sup '"\(.initial) \(.application) \(.stack[0].m) \(.status)"')" 'supervisor:kernel/1 kernel gen_server waiting'
    assert_equal "$(row kernel_sup '.ancestors | length')" 1
    assert_equal "$(jq -s length <<<"$output")" 2
}

# bats test_tags=long
@test "with --for the process that grows comes first, by what it has grown" {
    started grows '(fun(Up) -> Up(), (fun G() -> self() ! x, timer:sleep(2), G() end)() end)'
    started works '(fun(Up) -> Up(), (fun G() -> lists:seq(1, 1000), receive after 1 -> G() end end)() end)'
    ps --sort queue --for 2s --json
    assert_success
    assert_equal "$(jq -r .name <<<"${lines[0]}")" grows
    run -0 jq -e '.growth.queue > 20 and .growth.queue < .queue + 1' <<<"${lines[0]}"
    ps --sort reductions --for 1s --rows 3
    assert_line --regexp '^ *\+queue +\+memory +\+binaries +\+reductions  holds'
    [[ $stderr == 'etrace: sorted by growth of reductions in '[0-9]*.[0-9]s' · '* ]]
    ended grows
    ended works
}

@test "--rows 0 lists all processes, and without a terminal the columns are as wide as their texts" {
    local name width
    name=$(printf 'long%.0s' {1..15})
    started "$name" 'fun(Up) -> Up(), receive never -> ok end end'
    ps --rows 0
    assert_success
    assert [ "${#lines[@]}" -gt 21 ]
    width=$(awk 'NR == 1 { print index($0, "does") }' <<<"$output")
    run awk -v at="$width" -v name="$name" 'index($0, name) { print substr($0, at - 2, 2) == "  " && substr($0, at, 1) != " " }' <<<"$output"
    assert_output 1
    ended "$name"
}

@test "--as csv and tsv have whole numbers and a column for each part of a row" {
    started calm 'fun(Up) -> Up(), receive never -> ok end end'
    on_node 'begin [calm ! x || _ <- [1, 2, 3]], ok end'
    ps -P calm --as csv
    assert_success
    assert_line -n 0 node,pid,name,queue,memory,binaries,reductions,holds,application,initial,status,stack
    assert_line -n 1 --regexp "^$NODE,<[0-9.]+>,calm,3,[0-9]+,0,[0-9]+,heap,,,waiting,.*erl_eval:.*"
    assert_equal "${#lines[@]}" 2
    ps -P calm --for 1s --as tsv
    assert_line -n 0 --partial $'\tname\tqueue_growth\tmemory_growth\tbinaries_growth\treductions_growth\tholds\t'
    assert_line -n 1 --partial $'\tcalm\t0\t0\t'
    ended calm
}

@test "the processes of other etraces are left out" {
    local command
    etrace_start trace -n "$NODE" --allow-empty 'lists:nonono/2'
    until_true 60 grep -q 'Ctrl-C stops' "$ERR"
    for command in 'ps --rows 0' stacks 'stacks --for 300ms'; do
        # shellcheck disable=SC2086
        run --separate-stderr timeout 60 "$ETRACE_BIN" $command -n "$NODE"
        assert_success
        refute_output --regexp 'etrace_[0-9a-f]{8}_'
    done
    child_kill "$TRACER" INT
    trace_wait
}

@test "ancestors are written like the names of processes" {
    started "'Elixir.Shop.Sup'" 'fun(Up) -> {ok, _} = proc_lib:start_link(erlang, apply, [fun() -> register(kept, self()), proc_lib:init_ack({ok, self()}), receive never -> ok end end, []]), Up(), receive never -> ok end end'
    ps -P kept --json
    assert_equal "$(row kept '.ancestors[0]')" Shop.Sup
    ended "'Elixir.Shop.Sup'" # kept is linked to it
}

@test "on a terminal the table refreshes, sorts, and leads to a trace of the chosen process" {
    started leaks 'fun(Up) -> [self() ! x || _ <- lists:seq(1, 300)], Up(), (fun L() -> receive {to, P, M} -> P ! M, L() end end)() end'
    live_snapshot
    terminal 160 24 "$ETRACE_BIN ps -n $NODE --interval 500ms; echo the end; sleep 100"
    await 'etrace ps · .* processes · '
    await 'q quit  Enter details'
    keys Left
    await '^ +300 .*\(leaks\)'
    keys g
    await '\+queue +\+memory'
    keys h
    await 'choose a process'
    keys h
    await_not 'choose a process'
    keys g
    await '^ +300 .*\(leaks\)'
    keys t
    await "etrace: etrace -n $NODE -P '<[0-9.]+>' 'recv\(_\)' 'send\(_, _\)'"
    await 'Ctrl-C stops'
    on_node 'leaks ! {to, self(), hello_there}'
    await 'leaks. receive .*hello_there'
    keys C-c
    await 'the end'
    terminal_end
    ended leaks
    live_snapshot
}

@test "Enter shows what the chosen process does, again and again, and Esc goes back" {
    started leaks 'fun(Up) -> Up(), receive never -> ok end end'
    terminal 120 24 "$ETRACE_BIN ps -n $NODE --sort queue --interval 500ms; echo the end; sleep 100"
    await 'q quit  Enter details'
    on_node 'begin [leaks ! {job, N} || N <- lists:seq(1, 50)], ok end'
    await '^ +50 .*\(leaks\)'
    keys Enter
    await '^<[0-9.]+>\(leaks\) no message of its queue matches the receive in '
    await '^queue +50 messages: 50 \{job,'
    await '^q quit  Esc back'
    # The page is about the same process when another one is first in the table.
    started grows 'fun(Up) -> [self() ! x || _ <- lists:seq(1, 100)], Up(), receive never -> ok end end'
    on_node 'begin [leaks ! {job, N} || N <- lists:seq(1, 10)], ok end'
    await '^queue +60 messages'
    keys Escape
    await '^ +100 .*\(grows\)'
    await '^ +60 .*\(leaks\)'
    keys Home Enter
    await '^<[0-9.]+>\(grows\) no message'
    ended grows
    await '^<[0-9.]+>\(grows\) has exited'
    # A pause of the table does not keep the details from asking.
    keys Escape
    await_not '^ +100 .*\(grows\)' # the table has the rows of before until the next look
    await '^ +60 .*\(leaks\)'
    keys p Home Enter
    await '^<[0-9.]+>\(leaks\) no message'
    on_node 'begin [leaks ! {job, N} || N <- lists:seq(1, 10)], ok end'
    await '^queue +70 messages'
    keys Escape
    await '· paused$'
    await '^ +60 .*\(leaks\)'
    # A terminal that is too low for a row shows one.
    resized 120 4
    await '^q quit'
    keys q
    await 'the end'
    terminal_end
    ended leaks
}

# marked: prints the pid in the row that the screen marks.
marked() { screen_codes | sed -nE 's/^.*\x1b\[(0;)?7m[^<]*(<[0-9.]+>).*/\2/p'; }
marks() { [[ $(marked) == "$1" ]]; }

@test "the arrows, Page Up and Down, Home and End move through all processes, and the mark stays at its process" {
    local pid
    terminal 130 12 "$ETRACE_BIN ps -n $NODE --sort process:asc --interval 500ms; echo the end; sleep 100"
    await '<0\.0\.0>\(init\)'
    until_true 30 marks '<0.0.0>'
    keys End
    await_not '\(init\)'
    until_true 30 eval '[[ $(marked) && $(marked) != "<0.0.0>" ]]'
    keys Home
    await '\(init\)'
    until_true 30 marks '<0.0.0>'
    keys NPage
    await_not '\(init\)'
    keys PPage
    await '\(init\)'
    keys Down Down Down
    until_true 30 eval '[[ $(marked) && $(marked) != "<0.0.0>" ]]'
    pid=$(marked)
    # In the other order the process has another place.
    keys o
    until_true 30 eval '[[ $(screen | grep -oE "<[0-9.]+>" | head -n 1) != "<0.0.0>" ]]'
    until_true 30 marks "$pid"
    keys q
    await 'the end'
    terminal_end
}

# bats test_tags=long
@test "a look that takes long tells how many processes are left, and Ctrl-C ends it" {
    started many "fun(Up) -> Pids = [spawn(fun() -> receive stop -> ok end end) || _ <- lists:seq(1, 60000)], Up(),
        receive stop -> [P ! stop || P <- Pids] end end"
    for command in ps stacks; do
        terminal 100 24 "$ETRACE_BIN $command -1 -n $NODE --overhead 1%; echo the end: \$?; sleep 100"
        await '^etrace: [0-9]+ processes left to look at'
        keys C-c
        await '^(.C)?the end: 1'
        await_not 'left to look at'
        await "^(.C)?etrace: $NODE: the look was stopped before it reached all processes"
        terminal_end
    done
    # Without a terminal a part of the processes must not look like all of them either.
    for command in 'ps --json' ps 'stacks --json' stacks 'stacks --as folded'; do
        : >"$ERR" # the one before has attached, too
        # shellcheck disable=SC2086
        ETRACE_DEBUG=1 "$ETRACE_BIN" $command -n "$NODE" --overhead 1% >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        until_true 20 grep -q -- '-> up' "$ERR"
        child_kill "$TRACER" INT
        trace_wait
        assert_equal "$command: $status" "$command: 1"
        [[ ! -s $OUT ]] || fail "$command: $(<"$OUT")"
        grep -q "^etrace: $NODE: the look was stopped before it reached all processes" "$ERR" || fail "$(<"$ERR")"
    done
    on_node 'R = monitor(process, many), many ! stop, receive {_, R, _, _, _} -> ok end'
}

@test "/ shows only the rows with a text, and finds rows that are not among the first" {
    terminal 130 8 "$ETRACE_BIN ps -n $NODE --interval 500ms; echo the end; sleep 100"
    await 'q quit  Enter details  t trace  s sort  o order  g growth  / filter'
    keys / K e r n e l _ s u
    await '^/Kernel_su'
    await '\(kernel_sup\)'
    keys p Enter
    await '^etrace ps · sorted by memory · .* in queues · /Kernel_sup$'
    await '\(kernel_sup\)'
    keys Escape
    await '^etrace ps · sorted by memory · .* in queues$'
    await '<[0-9.]+>\(code_server\)'
    keys / x Escape
    await '^etrace ps · sorted by memory · .* in queues$'
    await '<[0-9.]+>\(code_server\)'
    # The name of the only node is not shown, so it does not match.
    keys / @ 1 2 7
    await_not '<[0-9.]+>'
    keys Escape
    await '<[0-9.]+>\(code_server\)'
    keys / K e r n e l _ s u p Enter
    await '· /Kernel_sup$'
    keys q
    await 'the end'
    run screen
    assert_line --regexp '<[0-9.]+>\(kernel_sup\)'
    refute_line --regexp '<[0-9.]+>\(code_server\)'
    terminal_end
}

@test "q leaves the table on the terminal, and -1 prints it once" {
    terminal 100 24 "$ETRACE_BIN ps -n $NODE --rows 4; echo the end; sleep 100"
    await 'q quit  Enter details'
    keys q
    await 'the end'
    await 'queue +memory +binaries'
    terminal_end
    terminal 100 24 "$ETRACE_BIN ps -1 -n $NODE --rows 4; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^ +queue +memory +binaries +reductions  holds'
    terminal_end
}

@test "on a narrow terminal the table leaves out columns, and keeps the names of processes in lines that fit" {
    terminal 80 24 "$ETRACE_BIN ps -1 -n $NODE -P code_server -P kernel_sup; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^ +queue +memory +binaries +reductions  holds +process$'
    assert_line --regexp '^ +0 .*<[0-9.]+>\(code_server\)$'
    assert_line --regexp '^ +0 .*<[0-9.]+>\(kernel_sup\)$'
    terminal_end
    terminal 60 24 "$ETRACE_BIN ps -1 -n $NODE -P init; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^ +queue +memory +binaries +reductions  process$'
    assert_line --regexp '^ +0 .*<0.0.0>\(init\)$'
    terminal_end
    terminal 40 24 "$ETRACE_BIN ps -1 --sort reductions -n $NODE -P init; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^ +memory +reductions  process$'
    assert_line --regexp '^ .*<0.0.0>\(init\)$'
    terminal_end
}

@test "mistakes are reported" {
    ps -P new
    assert_failure 2
    assert_equal "$stderr" 'etrace: -P new selects processes that do not exist yet, so there is nothing to list'
    ps --rows 5000
    assert_failure 2
    ps --sort nonsense
    assert_failure 2
    ps lists
    assert_failure 2
    ps -P nobody_is_called_so
    assert_failure 5
    assert_equal "$stderr" 'etrace: no process is registered as nobody_is_called_so on the node'
}

@test "a dumb terminal gets lines and no screen" {
    run -0 script -qec "TERM=dumb timeout 60 '$ETRACE_BIN' ps -n $NODE" /dev/null </dev/null
    assert_output --partial init
    refute_output --partial $'\033[?1049h'
}

# looked: both nodes have answered the first look. noticed NODE: etrace has reported the end of the node.
looked() { [[ $(grep -ac " < reply 1: {ok," "$ERR") -eq 2 ]]; }
noticed() { grep -qaxF "etrace: $1: the node closed the connection" "$ERR"; }

@test "ps --for shows the growth on the other nodes when a node goes down" {
    local other
    node_start other && other=$NODE
    NODE=$LIVE_NODE
    ETRACE_DEBUG=wire etrace_start ps -n "$NODE" -n "$other" --for 1h --json
    until_true 30 looked || fail "$(<"$ERR")"
    node_stop "$other"
    until_true 30 noticed "$other" || fail "$(<"$ERR")"
    child_kill "$TRACER" INT
    trace_wait
    assert_equal "$status" 1
    assert_equal "$(jq -r 'select(.type == "process") | "\(.node) \(has("growth"))"' "$OUT" | sort -u)" "$NODE true"
    assert_equal "$(jq -r 'select(.type == "processes") | .node' "$OUT")" "$NODE"
}

@test "ps shows the other nodes when a node cannot be attached, and the status is 3" {
    ps -n nobody@127.0.0.1 -P kernel_sup --json
    assert_failure 3
    assert_equal "$(jq -r '"\(.type) \(.node)"' <<<"$output")" "$(printf '%s\n' "process $NODE" "processes $NODE")"
    assert_regex "$stderr" 'nobody@127.0.0.1'
    # No table stands for a node without an answer.
    run --separate-stderr "$ETRACE_BIN" ps -n nobody@127.0.0.1
    assert_failure 3
    assert_equal "$output" ''
    assert_equal "${#stderr_lines[@]}" 2
}

@test "a table on a terminal goes on with the other nodes when a node goes down" {
    local other
    node_start other && other=$NODE
    NODE=$LIVE_NODE
    terminal 150 24 "$ETRACE_BIN ps -n $NODE -n $other -P kernel_sup --interval 500ms; echo the end: \$?; sleep 100"
    await "^.*$other <[0-9.]+>\(kernel_sup\)"
    node_stop "$other"
    await " · $NODE · 1 process .* · 1 error$"
    await_not "$other <"
    await "$NODE <[0-9.]+>\(kernel_sup\)"
    keys q
    await "^etrace: $other: the node closed the connection"
    await 'the end: 1'
    terminal_shows "$NODE <[0-9.]+>\(kernel_sup\)"
    terminal_end
}
