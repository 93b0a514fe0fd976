#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces a release of an Elixir application with Registry, DynamicSupervisor, Task, Agent, ETS and Mnesia
# (tests/apps/bank): the events match the requests of its clients.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/app

# The number of open accounts, and the number of transfers per load, a multiple of 500.
ACCOUNTS=20
BATCH=1000

setup_file() {
    export BANK=$BATS_FILE_TMPDIR/bank APP_PORT_FILE=$BATS_FILE_TMPDIR/port
    cp -r "$ETRACE_ROOT/tests/apps/bank" "$BANK"
    (cd "$BANK" && PATH=${ETRACE_ERL%/*}:$PATH MIX_ENV=prod mix release --quiet >log 2>&1) || { cat "$BANK/log" >&2 && return 1; }
    app_begin bank
    asked open "$ACCOUNTS"
    echo 0 >"$BATS_FILE_TMPDIR/last"
}
teardown_file() { app_end; }
setup() { app_setup; }
teardown() { app_teardown; }

bank() {
    RELEASE_DISTRIBUTION=name RELEASE_NODE=$NODE RELEASE_COOKIE=$(<"$HOME/.erlang.cookie") \
        ERL_FLAGS='-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}' "$BANK/_build/prod/rel/bank/bin/bank" "$@"
}

listens() { [[ -s $APP_PORT_FILE ]]; }

start_app() {
    rm -f "$APP_PORT_FILE"
    bank start </dev/null >>"$APP_LOG" 2>&1 3>&- &
    until_true 60 listens
}

# Makes N transfers with unused numbers; FIRST and LAST are their numbers.
app_load() {
    FIRST=$(($(<"$BATS_FILE_TMPDIR/last") + 1))
    LAST=$((FIRST + $1 - 1))
    echo "$LAST" >"$BATS_FILE_TMPDIR/last"
    assert_equal "$(asked transfer "$FIRST" "$LAST" "$ACCOUNTS")" "$(($1 - $1 / 50 - $1 / 125)) $(($1 / 50 + $1 / 125))"
}


ok() { echo $(($1 - $1 / 50 - $1 / 125)); }

@test "numbers of calls, results and exceptions equal those of the client and the bank" {
    trace --json --rate 0 'Bank.Transfer.run/2 -> return' 'Bank.Transfer.move/4 -> return' 'Bank.Ledger.record/4 -> return' \
        'ets:insert(bank_cache, _)' 'mnesia:transaction/1 -> caller' 'Bank.Figures.add(what)'
    app_load "$BATCH"
    trace_end
    assert_success
    assert_account any
    run app_counts call
    assert_line "$BATCH Elixir.Bank.Transfer:run/2"
    assert_line "$BATCH Elixir.Bank.Transfer:move/4"
    assert_line "$(ok "$BATCH") Elixir.Bank.Ledger:record/4"
    assert_line "$(ok "$BATCH") mnesia:transaction/1"
    assert_line "$BATCH Elixir.Bank.Figures:add/1"
    # A refused transfer ends before it reaches its second account.
    assert_line "$((2 * $(ok "$BATCH"))) ets:insert/2"
    run app_counts exception
    assert_output "$((BATCH / 125)) Elixir.Bank.Transfer:move/4"
    assert_equal "$(jq -r 'select(.type == "return" and .f == "run") | .value | capture("{(?<what>[a-z]*),").what' "$OUT" | sort | uniq -c | awk '{ print $2, $1 }')" \
        "error $((BATCH / 50 + BATCH / 125))
ok $(ok "$BATCH")"
    assert_equal "$(jq -r 'select(.f == "transaction") | .caller.m + "." + .caller.f' "$OUT" | sort -u)" Elixir.Bank.Ledger.record
    # Each number was transferred once, and Mnesia has a row for each call that writes one.
    assert_equal "$(jq -r 'select(.type == "call" and .f == "run") | .args[0]' "$OUT" | sort -n | sed -n '1p;$p' | tr '\n' ' ')" "$FIRST $LAST "
    assert_equal "$(asked ledger)" "$(ok "$LAST")"
    assert_equal "$(asked balances "$ACCOUNTS")" "$((ACCOUNTS * 1000000))"
}

@test "conditions select the transfers that fail and the calls that are slow" {
    trace --json --rate 0 'Bank.Transfer.run/2 -> return where ret = {:error, :insufficient}'
    app_load "$BATCH"
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of call '.args[0]' | sort -n)" "$(seq $((FIRST + 49)) 50 "$LAST")"
    # On a busy machine other calls may be slow, too.
    trace --json --rate 0 -e 'dur > 15ms' 'Bank.Transfer.authorize/1 -> return'
    app_load "$BATCH"
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of call '.args[0]' | grep '02$' | sort -n)" "$(seq $((FIRST + 1)) 100 "$LAST")"
    assert_equal "$(json_of return .f | wc -l)" "$(json_of call .f | wc -l)"
    assert_equal "$(json_of return 'select(.dur_us <= 15000)')" ''
}

# Prints the numbers of withdrawals and deposits that account 7 gets from the transfers FIRST to LAST.
account_7() {
    awk -v first="$FIRST" -v last="$LAST" -v n="$ACCOUNTS" 'BEGIN {
        for (i = first; i <= last; i++) if (i % 125 != 1) {
            if (i % n == 7) w++
            if (i % 50 && (i * 7 + 1) % n == 7) d++
        }
        print w + 0, d + 0
    }'
}

@test "receive events of an account name the task that sent each message" {
    trace --json --rate 0 -P '{:via, Registry, {Bank.Accounts, 7}}' "recv({'\$gen_call', _, _})"
    app_load "$BATCH"
    trace_end
    assert_success
    read -r withdrawn deposited < <(account_7)
    assert_account $((withdrawn + deposited))
    assert_equal "$(json_of receive .msg | grep -c '{withdraw,')" "$withdrawn"
    assert_equal "$(json_of receive .msg | grep -c '{deposit,')" "$deposited"
    # The sender is the process that the message names.
    assert_equal "$(json_of receive 'select(.from == (.msg | capture("gen_call.,{(?<pid><[0-9.]*>)").pid)) | .msg' | wc -l)" $((withdrawn + deposited))
    refute_regex "$(<"$OUT")" hunter2
}

@test "-c counts hundreds of functions of Elixir, Mnesia and the application" {
    # With results for all functions or for none, the node counts by itself at any rate.
    trace -c 'app(bank) | mnesia | mnesia_tm | mnesia_locker | Registry | DynamicSupervisor | Task.Supervisor | Task.Supervised | Agent | Agent.Server | GenServer -> return'
    functions=$(app_functions)
    [[ $functions -gt 450 ]] || fail "$talk"
    app_load "$BATCH"
    trace_end
    assert_success
    echo "# $functions functions, $(tail -n 1 <<<"$talk")" >&3
    assert_equal "$(app_figures Bank.Transfer.run/2)" "$BATCH 0"
    assert_equal "$(app_figures Bank.Transfer.move/4)" "$BATCH $((BATCH / 125))"
    assert_equal "$(app_figures Bank.Ledger.record/4)" "$(ok "$BATCH") 0"
    assert_equal "$(app_figures mnesia:transaction/1)" "$(ok "$BATCH") 0"
    assert_equal "$(app_figures Agent.update/2)" "$BATCH 0"
    assert_equal "$(app_figures Registry.whereis_name/1)" "$((2 * BATCH - 2 * (BATCH / 125) - BATCH / 50)) 0"
}

@test "top counts the transfers that the client requested" {
    COMMAND=top trace --json 'app(bank)' 'mnesia_tm' 'Agent'
    app_load "$BATCH"
    COMMAND=top trace_end
    assert_success
    assert_equal "$(jq -rs 'map(select(.type == "count" and .f == "run" and .m == "Elixir.Bank.Transfer")) | last | .calls' "$OUT")" "$BATCH"
    assert_equal "$(jq -rs 'map(select(.type == "count" and .f == "update" and .a == 2)) | last | .calls' "$OUT")" "$BATCH"
}

@test "the tree nests the calls of each transfer" {
    trace --as tree --rate 0 'app(bank) -> return' 'mnesia:transaction/1 -> return' 'GenServer.call/3 -> return'
    app_load 500
    trace_end
    assert_success
    assert_equal "$(grep -c 'Bank.Transfer.run(' "$OUT")" 500
    assert_equal "$(grep -c 'Bank.Transfer.move(' "$OUT")" 500
    # run calls move, move calls record, record calls Mnesia: each is deeper than its caller in its process.
    assert_equal "$(awk 'function depth(l) { sub(/:?(Bank|mnesia).*/, "", l); return length(l) }
        { pid = $2; sub(/\(.*/, "", pid); sub(/^[^ ]* [^ ]* /, "") }
        /Bank.Transfer.run\(/ { run[pid] = depth($0) } /Bank.Transfer.move\(/ { move[pid] = depth($0) }
        /Bank.Ledger.record\(/ { record[pid] = depth($0) }
        /mnesia[.:]transaction\(/ { if (depth($0) > record[pid] && record[pid] > move[pid] && move[pid] > run[pid]) good++; else bad++ }
        END { print good + 0, bad + 0 }' "$OUT")" "$(ok 500) 0"
}

@test "spawn and exit events show the accounts that their supervisor opens and closes" {
    trace --json --rate 0 -P Bank.AccountSupervisor --inherit spawn '@spawn' '@exit' 'Registry.register/3' 'Bank.Account.init/1 -> return'
    for id in 1000 1001 1002; do
        on_node "'Elixir.DynamicSupervisor':start_child('Elixir.Bank.AccountSupervisor', {'Elixir.Bank.Account', $id})"
        assert_equal "$(asked close "$id")" ok
    done
    trace_end
    assert_success
    assert_account any
    assert_equal "$(json_of spawn .child | wc -l)" 3
    assert_equal "$(json_of spawn .child)" "$(json_of exit .pid)"
    assert_equal "$(json_of exit .reason | sort -u)" normal
    assert_equal "$(json_of call 'select(.f == "init") | .args[0]' | tr '\n' ' ')" '1000 1001 1002 '
    assert_line --partial '*REDACTED*'
    refute_regex "$(<"$OUT")" hunter2
}

@test "a recording and a sequence page show every message of an account" {
    trace --as sequence --rate 0 -o "$BATS_TEST_TMPDIR/r.etr" -o "$BATS_TEST_TMPDIR/s.html" -P '{:via, Registry, {Bank.Accounts, 7}}' 'send(_, _)' 'recv(_)'
    app_load 500
    trace_end
    assert_success
    run "$ETRACE_BIN" replay -q --json "$BATS_TEST_TMPDIR/r.etr"
    assert_success
    read -r withdrawn deposited < <(account_7)
    messages=$(grep -c '"type":"\(send\|receive\)"' <<<"$output")
    # A message for each request and one for each answer.
    assert_equal "$messages" $((2 * (withdrawn + deposited)))
    grep -q '<script' "$BATS_TEST_TMPDIR/s.html"
    run "$ETRACE_BIN" replay -q --as sequence "$BATS_TEST_TMPDIR/r.etr"
    assert_equal "$(grep -cE "^    p[0-9]+-\)p1: .*gen_call" <<<"$output")" $((withdrawn + deposited))
    assert_equal "$(grep -cE "^    p1-\)other: to .*\{:ok," <<<"$output")" $((withdrawn + deposited))
    refute_line --regexp '^    other-'
}

@test "--reattach continues the trace after the application restarts" {
    trace --json --rate 0 --reattach 'Bank.Transfer.run/2 -> return'
    app_load 500
    app_restart bank stop
    until_true 60 grep -q '"type":"node_up"' "$OUT"
    assert_equal "$(asked open "$ACCOUNTS")" ok
    app_load 500
    trace_end
    assert_success
    # The events that a node has not sent when it goes down are unknown. The bank finishes its transfers before it
    # stops.
    assert_equal "$(json_of summary '"\(.seen) \(.shown) \(.lost | length) \(.missing) \(.complete)"')" '2000 2000 0 0 false'
    assert_equal "$(json_of call '.args[0]' | sort -n)" "$(seq $((FIRST - 500)) "$LAST")"
}

@test "check finds nothing under load" {
    app_quiet app_load "$BATCH"
}

@test "the load succeeds in alternating traced and untraced windows" {
    app_windows app_load "$BATCH" -- -c 'app(bank)' mnesia mnesia_tm mnesia_locker Registry GenServer
    app_windows app_load "$BATCH" -- -a -o "$BATS_TEST_TMPDIR/w.etr" 'app(bank) -> return' 'send(_, _)' 'recv(_)'
    assert_equal "$(asked balances "$ACCOUNTS")" "$((ACCOUNTS * 1000000))"
}
