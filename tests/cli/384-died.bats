#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace died` against processes that exit in known ways (tests/lib/dying.erl).

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

COMMAND=died

setup_file() {
    live_begin died -kernel logger_level critical
    on_node 'dying:start(), dying:crash()' # the first crash of a node loads code and makes persistent terms
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

pid='<[0-9.]+>'
time='[0-9:.]+'
after='\([0-9.]+[a-z]+\)'

# bats test_tags=each
@test "an exit tells its cause, and what it does by links and monitors" {
    traced -- 'dying:chain(oops)'
    assert_success
    assert_line --regexp "^$time $pid\(dying_first\) exit oops, own exit in dying:'-chain/1-fun-0-'/1 dying.erl:[0-9]+$"
    assert_line --regexp "^  [├└] link -> $pid\(dying_second\) $after$"
    assert_line --regexp "^  [│ ] └ link -> $pid $after$"
    assert_line --regexp "^  [├└] link -> $pid\(dying_trap\) $after, traps exits$"
    assert_line --regexp "^  [├└] monitor -> $pid\(dying_watch\) $after$"
}

# bats test_tags=each
@test "a crash has the function that failed, and the supervisor that starts the process again" {
    traced -- 'dying:crash(), dying:kill()'
    assert_success
    assert_line --regexp "^$time $pid\(dying_server\) exit badarg, error in dying:serve/1 dying.erl:[0-9]+$"
    assert_line --regexp "^$time $pid\(dying_server\) exit killed, by $pid"
    [ "$(grep -cE "^  └ restarted by $pid\(dying_sup\) $after$" "$OUT")" -eq 2 ] || fail "$(cat "$OUT")"
}

@test "exits of a process again and again are one line with their reasons" {
    traced -- 'dying:leave_often(12, {shutdown, lost}), dying:leave_often(3, other)'
    assert_success
    [ "$(grep -c '(dying_server) exit {shutdown,lost}, own exit' "$OUT")" -eq 1 ]
    [ "$(grep -c '(dying_server) exit other, own exit' "$OUT")" -eq 1 ]
    assert_line --regexp "^$time dying_server: 15 exits in [0-9.]+m?s, 12 x \{shutdown,lost\}, 3 x other; restarted by dying_sup$"
}

@test "a process that calls another one exits with it" {
    traced -- 'dying:call_a_killed_one()'
    assert_success
    assert_line --regexp "^$time $pid\(dying:wait/0\) exit killed, by $pid"
    assert_line --regexp "^  └ its call -> $pid $after exit \{killed,\{gen_server,call,\[$pid,question,infinity\]\}\}$"
}

@test "an exit is printed while the trace goes on, and a recording shows the same" {
    trace -o "$BATS_TEST_TMPDIR/x.etr"
    on_node 'dying:leave(oops)'
    until_true 30 grep -q '(dying_server) exit oops' "$OUT"
    trace_end
    assert_success
    run -0 diff "$OUT" <("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as died)
    run -0 "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as diedjson
    jq -es 'map(select(.name == "dying_server"))[0] | .type == "death" and .reason == "oops" and .cause == "exit" and (.normal | not) and
        .restarted.named and .restarted.by_name == "dying_sup"' <<<"$output"
}

@test "--json has the exits that an exit caused inside of it, and counts those of each process" {
    traced --json -- 'dying:chain(oops), dying:leave_often(3, lost)'
    assert_success
    jq -es 'map(select(.name == "dying_first"))[0] | [.caused[] | select(.name == "dying_second" and .cause == "link" and
        .reason == "oops")][0].caused[0].cause == "link" and ([.reached[].name] | sort) == ["dying_trap", "dying_watch"]' "$OUT"
    jq -es 'map(select(.type == "deaths" and .process == "dying_server"))[0] |
        .exits == 3 and .restarts == 3 and .by_name == "dying_sup" and .reasons == [{"reason": "lost", "exits": 3}]' "$OUT"
    jq -es '.[-1] | .type == "deaths_missing" and .lost == {} and .missing == 0 and .early == 0' "$OUT"
}

@test "--as csv and tsv have a row for each exit, with the one that caused it" {
    traced --as csv -o "$BATS_TEST_TMPDIR/x.json" -o "$BATS_TEST_TMPDIR/x.etr" -- 'dying:chain(oops), dying:leave(lost), dying:crash()'
    assert_success
    python3 - "$OUT" <<'END'
import csv, sys
rows = {row["name"]: row for row in csv.DictReader(open(sys.argv[1]))}
first, second = rows["dying_first"], rows["dying_second"]
assert first["reason"] == second["reason"] == "oops" and first["cause"] == "exit" and second["cause"] == "link", rows
assert second["by"] == first["pid"] and second["by_name"] == "dying_first" and float(second["after_us"]) >= 0, rows
assert first["after_us"] == "" and int(first["reached"]) == 2 and first["normal"] == "false", rows
END
    diff "$OUT" <("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as diedcsv)
    run -0 "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as diedtsv
    assert_line -n 0 "$(head -n 1 "$OUT" | tr , '\t')"
    assert_equal "${#lines[@]}" "$(wc -l <"$OUT")"
}

@test "-o with an extension for programs writes the exits, and a recording the events" {
    traced -o "$BATS_TEST_TMPDIR/x.csv" -o "$BATS_TEST_TMPDIR/x.json" -o "$BATS_TEST_TMPDIR/x.etr" -- 'dying:leave(lost)'
    assert_success
    diff "$BATS_TEST_TMPDIR/x.csv" <("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as diedcsv)
    diff "$BATS_TEST_TMPDIR/x.json" <("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/x.etr" --as diedjson)
    grep -q '^[^,]*,[^,]*,[^,]*,dying_server,' "$BATS_TEST_TMPDIR/x.csv" || fail "$(<"$BATS_TEST_TMPDIR/x.csv")"
    # A replay of events still writes events.
    "$ETRACE_BIN" replay -q "$BATS_TEST_TMPDIR/x.etr" -o "$BATS_TEST_TMPDIR/y.csv" >/dev/null
    grep -q ',exit,' "$BATS_TEST_TMPDIR/y.csv"
}

@test "a replay selects exits as the trace does: --all, names and -l" {
    local etr=$BATS_TEST_TMPDIR/x.etr
    traced --all -o "$etr" -- 'dying:crash(), dying:chain(oops), dying:leave(one), dying:leave(two), dying:normal(3)'
    assert_success
    diff "$OUT" <("$ETRACE_BIN" replay "$etr" --as died --all)
    run -0 --separate-stderr "$ETRACE_BIN" replay "$etr" --as died --died dying_second --died nobody
    assert_line -n 0 --regexp "^$time $pid\(dying_first\) exit oops"
    refute_line --partial dying_server
    assert_regex "$stderr" '--died nobody: no exit of it was seen'
    run -0 "$ETRACE_BIN" replay "$etr" --as died --died dying_server -l 2
    [ "$(grep -c '(dying_server) exit ' <<<"$output")" -eq 2 ] || fail "$output"
    refute_line --partial 'exit two'
    run -2 "$ETRACE_BIN" replay "$etr" --all
    assert_line -n 0 'etrace: --all needs a view of exits: add --as died'
}

@test "normal exits are counted, and --all shows them" {
    traced -- 'dying:normal(50)'
    assert_success
    assert_line --regexp '^every exit was normal$'
    assert_line --regexp '^[0-9]+ normal exits not shown: 50 x processes of '
    traced --all -- 'dying:normal(1)'
    assert_success
    assert_line --regexp "^$time $pid exit normal$"
}

@test "a name shows only exits that take its process along, and -l ends the trace" {
    traced dying_second nobody -- 'dying:crash(), dying:chain(oops)'
    assert_success
    assert_line -n 0 --regexp "^$time $pid\(dying_first\) exit oops"
    refute_line --partial dying_server
    assert_regex "$talk" 'nobody: no exit of it was seen'
    trace -l 2 dying_server
    on_node 'dying:leave(one), dying:leave(two), dying:leave(three)'
    trace_wait
    assert_success
    assert_line --partial 'exit one, own exit'
    assert_line --partial 'exit two, own exit'
    refute_output --partial three
}

@test "--ring keeps the exits on the node and shows them at the end" {
    trace --ring 1min
    on_node 'dying:leave(oops)'
    pause 1
    [ ! -s "$OUT" ]
    trace_end
    assert_success
    assert_line --regexp "^$time $pid\(dying_server\) exit oops, own exit in dying:serve/1"
    assert_line --regexp "^  └ restarted by $pid\(dying_sup\) $after$"
}

@test "an exit signal through a port names who told the port to exit" {
    traced -- 'dying:port()'
    assert_success
    assert_line --regexp "^$time $pid\(dying_owner\) exit closed, exit signal of $pid\(dying_closer\) to #Port<0\.[0-9]+> in dying:"
}

# bats test_tags=each
@test "links, monitors and exit signals between two traced nodes name the nodes; with one, the other one is unknown" {
    local first=$NODE
    live_own other -kernel logger_level critical
    local tell="true = net_kernel:connect_node('$first')"
    traced -n "$first" -- "$tell, erpc:call('$first', dying, between, ['$NODE']), erpc:call('$first', dying, sent_between, ['$NODE'])"
    assert_success
    assert_line --regexp "^$time $NODE $pid\(dying_far\) exit oops, own exit in dying:"
    assert_line --regexp "^  [├└] link -> $first $pid\(dying_linked\) $after$"
    assert_line --regexp "^  [├└] link -> $first $pid\(dying_trap\) $after, traps exits$"
    assert_line --regexp "^  [├└] monitor -> $first $pid\(dying_watch\) $after$"
    assert_line --regexp "^  [├└] monitor -> $first $pid\(dying_reader\) $after$"
    assert_line --regexp "^$time $first $pid\(dying_victim\) exit sent, exit signal of $NODE $pid"
    traced --json -n "$first" -- "erpc:call('$first', dying, between, ['$NODE']), erpc:call('$first', dying, sent_between, ['$NODE'])"
    jq -es --arg first "$first" 'map(select(.name == "dying_far"))[0] | .caused[0].node == $first and .caused[0].name == "dying_linked" and
        ([.reached[] | select(.node == $first).name] | sort) == ["dying_reader", "dying_trap", "dying_watch"]' "$OUT"
    jq -es --arg node "$NODE" 'map(select(.name == "dying_victim"))[0] | .cause == "signal" and .by_node == $node' "$OUT"
    # Only the node on which they exit is traced.
    etrace_start died -n "$first"
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    node_eval "$first" "dying:between('$NODE'), dying:sent_between('$NODE')"
    until_true 30 grep -q dying_victim "$OUT"
    trace_end
    assert_line --regexp "^$time $pid\(dying_linked\) exit oops, cause unknown; it was linked to $pid of another node$"
    assert_line --regexp "^$time $pid\(dying_victim\) exit sent, cause unknown$"
}

@test "the exits of several nodes have the names of the nodes" {
    local first=$NODE
    live_own other -kernel logger_level critical
    run -2 "$ETRACE_BIN" died -n "$first" -e 'dur > 1s'
    assert_line -n 0 'etrace: -e selects single events, but an exit has several'
    run -2 "$ETRACE_BIN" died -n "$first" 'a b'
    assert_line -n 0 "etrace: died does not take 'a b'"
    etrace_start died -n "$first" -n "$NODE"
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    node_eval "$first" 'dying:leave(here)'
    node_eval "$NODE" 'dying:start(), dying:leave(there), dying:stop()'
    until_true 30 grep -q 'exit here' "$OUT"
    until_true 30 grep -q 'exit there' "$OUT"
    trace_end
    assert_success
    assert_line --regexp "^$time $first $pid\(dying_server\) exit here, own exit"
    assert_line --regexp "^$time $NODE $pid\(dying_server\) exit there, own exit"
}

# Starts a node with the application of tests/lib/dying_shop.ex.
elixir_shop() {
    local lib=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib
    live_own elixir -pa "$lib/elixir/ebin" "$lib/logger/ebin" -kernel logger_level critical
    on_node "{ok, _} = application:ensure_all_started(elixir),
        'Elixir.Code':compile_file(<<\"$ETRACE_ROOT/tests/lib/dying_shop.ex\">>), 'Elixir.Shop':start()"
    # The first exception of each kind loads code.
    on_node "'Elixir.Shop':ends('Elixir.Shop.Stock', raise)"
}

# bats test_tags=each
@test "died shows the exits of an Elixir application in Elixir: exceptions, terms, closures, names, functions" {
    local shop="'Elixir.Shop'" stock="'Elixir.Shop.Stock'"
    local done="$shop:ends($stock, raise), $shop:ends($stock, match), $shop:ends($stock, stop),
        Thé = $shop:open(<<\"thé\"/utf8>>), $shop:ends(Thé, gone),
        $shop:task_exits({noproc, Thé}), $shop:linked({lost, <<\"naïve\"/utf8>>, $stock}), P = whereis($stock), exit(P, kill)"
    elixir_shop
    traced -- "$done"
    assert_success
    assert_line --regexp "^$time $pid\(Shop\.Stock\) exit %Shop\.OutOfStock\{message: \"nothing left\", item: \"thé\"\}, error in Shop\.Stock\.handle_call/3 [^ ]*dying_shop\.ex:[0-9]+$"
    assert_line --regexp "^  [├└] restarted by $pid\(Shop\.Supervisor\) $after$"
    assert_line --regexp "^$time $pid\(Shop\.Stock\) exit \{:badmatch, \{:error, \[item: nil, stock: ~c\"empty\"\]\}\}, error in Shop\.Stock\.handle_call/3 "
    assert_line --regexp "^$time $pid\(Shop\.Stock\) exit \{#PID<[0-9.]+>, #Function<[0-9.]+ in Shop\.Stock>, &String\.upcase/1\}, own exit$"
    # Right after its start, a process is not in the registry yet.
    assert_line --regexp "^$time $pid\((\{Shop\.Names, \"thé\"\}|Shop\.Stock\.init/1)\) exit :gone, own exit$"
    assert_line --regexp "^  [├└] its call -> $pid $after exit \{:gone, \{GenServer, :call, \[\{:via, Registry, \{Shop\.Names, \"thé\"\}\}, :gone, 5000\]\}\}$"
    assert_line --regexp "^  [├└] $pid\(Shop\.Supervisor\) then started $pid(\((\{Shop\.Names, \"thé\"\}|Shop\.Stock\.init/1)\))? $after$"
    assert_line --regexp "^$time $pid\(Task\.Supervised\.noreply/4\) exit \{:noproc, \{:via, Registry, \{Shop\.Names, \"thé\"\}\}\}, own exit in Shop\.\"-task_exits/1-fun-0-\"/1 "
    assert_line --regexp "^$time $pid\(Shop\.First\) exit \{:lost, \"naïve\", Shop\.Stock\}, own exit in Shop\.leaves/2 "
    assert_line --regexp "^  └ link -> $pid $after$"
    assert_line --regexp "^$time $pid\(Shop\.Stock\) exit :killed, by $pid"
    trace
    named() {
        on_node "$shop:ends({via, 'Elixir.Registry', {'Elixir.Shop.Names', <<\"thé\"/utf8>>}}, gone)"
        grep -qE "^$time $pid\(\{Shop\.Names, \"thé\"\}\) exit :gone, own exit$" "$OUT"
    }
    until_true 30 named || fail "$(<"$OUT")"
    trace_end
    assert_success
    # Terms in JSON are in Erlang, as everywhere, unless --terms says otherwise.
    traced --json -- "$shop:ends($stock, match)"
    jq -es 'map(select(.name == "Shop.Stock"))[0] | (.reason | startswith("{{badmatch,{error,[{item,nil},{stock,")) and (.in | startswith("Shop.Stock.handle_call/3 "))' "$OUT"
    traced --json --terms elixir -- "$shop:ends($stock, stop)"
    jq -es 'map(select(.name == "Shop.Stock"))[0] | (.reason | endswith(" in Shop.Stock>, &String.upcase/1}"))' "$OUT"
}

@test "the last function that a process calls exit/1 in is named, not the next one of the module" {
    traced -- 'dying:last(oops)'
    assert_success
    assert_line --regexp "^$time $pid\(dying_last\) exit oops, own exit in dying:leave_last/1 dying.erl:[0-9]+$"
}
