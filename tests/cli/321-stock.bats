#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests nodes that are started as users start them: erl, iex, mix run, a mix release, and an embedded release. They have
# no module, atom or path of the tests. Each runs a process named ticker: every 20 ms it calls lists:sublist/2 and
# maps:with/2, sends itself a message, and starts a process that exits. Each test runs the common commands on one node.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup() {
    export PATH=${ETRACE_ERL%/*}:$PATH LOG=$BATS_TEST_TMPDIR/log
    unset ETRACE_NODE
    PID=
    cd "$BATS_TEST_TMPDIR" || return 1
}
teardown() {
    [[ ${BATS_TEST_COMPLETED:-} ]] || tail -n 30 "$LOG" || true
    [[ ! $PID ]] || { kill -KILL -- "-$PID" 2>/dev/null || true; }
}

dist="-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}"
erlang_ticker='P = spawn(fun() -> register(ticker, self()), F = fun F(N) -> maps:with([a], #{a => N, b => 2}), lists:sublist([N, 2, 3], 2),
    self() ! {tick, N}, receive {tick, _} -> ok end, spawn(fun() -> exit(done) end), timer:sleep(20), F(N + 1) end, F(1) end).'
elixir_ticker='spawn(fn -> Process.register(self(), :ticker); Stream.iterate(1, & &1 + 1) |> Enum.each(fn n -> :maps.with([:a], %{a: n, b: 2}); :lists.sublist([n, 2, 3], 2);
    send(self(), {:tick, n}); receive do {:tick, _} -> :ok end; spawn(fn -> exit(:done) end); Process.sleep(20) end) end)'

# Starts the command in its own process group, because these scripts start other programs.
start() { # COMMAND...
    set -m
    "$@" </dev/null >"$LOG" 2>&1 3>&- &
    PID=$!
    set +m
    known() { "${ETRACE_ERL%/*}/epmd" -names 2>/dev/null | grep -q "name ${NODE%@*} "; }
    until_true 100 known || fail "the node does not start"
    until_true 30 eval 'etrace info ticker >/dev/null 2>&1' || fail "the node has no process named ticker"
}

etrace() { timeout 60 "$ETRACE_BIN" "$1" -n "$NODE" "${@:2}"; }

# Runs the common commands on the node.
asked() {
    local old='' view
    run --separate-stderr etrace trace --json -l 2 'lists:sublist([A, B | C], N) when A > B, length(C) < N -> return, caller'
    assert_success
    jq -s -e '[.[] | select(.type == "return") | .value | test("^\\[[0-9]+,2\\]$")] | length == 2 and all' <<<"$output"
    run --separate-stderr etrace trace -l 1 'maps:with([a], #{a := A, b := B}) when A > B, is_map_key(a, #{a => A}) -> msg({A, B})'
    assert_success
    # The lines of a node that runs Elixir are in its language.
    assert_regex "$output" 'call (maps:with\(\[a\], #\{.*\}\).*\{[0-9]+,2\}|:maps\.with\(\[:a\], %\{.*\}\).*\{[0-9]+, 2\})'
    run --separate-stderr etrace trace --json -l 2 ':lists.sublist([a, b | _], n) when a > b and n == 2 -> return'
    assert_success
    assert_equal "$(jq -r 'select(.type == "return") | .f' <<<"$output" | sort -u)" sublist
    for view in '' --fallback; do
        # shellcheck disable=SC2086
        run --separate-stderr etrace trace --json -l 4 $view -P ticker 'send(_, {tick, N}) when N > 1' 'recv({tick, _})' @spawn
        assert_success
        assert_equal "$(jq -r 'select(.pid) | .type' <<<"$output" | sort -u | tr '\n' ' ')" 'receive send spawn '
    done
    run --separate-stderr etrace trace --json -l 2 @exit --inherit spawn -P ticker
    assert_success
    assert_equal "$(jq -r 'select(.type == "exit") | .reason' <<<"$output" | sort -u)" 'done'
    run --separate-stderr etrace trace -c -t 1s 'lists:sublist/2 -> return'
    assert_success
    assert_regex "$output" 'lists:sublist/2'
    run --separate-stderr etrace trace --as tree -t 500ms -e 'dur >= 0us' 'lists:sublist/2'
    assert_success
    assert_regex "$output" 'lists[:.]sublist\('
    run --separate-stderr etrace top --for 1s lists maps
    assert_success
    assert_output --partial 'lists:sublist/2'
    run --separate-stderr etrace why --json --for 200ms ticker
    assert_success
    assert_equal "$(jq -r '"\(.name) \(.chain | length)"' <<<"$output")" 'ticker 1'
    run --separate-stderr etrace ls 'lists:sublis?/2' --no-args
    assert_output lists:sublist/2
    run --separate-stderr etrace doctor
    assert_success
    typed() { echo 'lists:sublist/2 -> return' && until_true 60 grep -qs 'sublist/2 = ' seen && echo :quit; }
    timeout 100 "$ETRACE_BIN" repl -n "$NODE" < <(typed 3>&-) >seen
    assert_regex "$(<seen)" 'return :?lists[:.]sublist/2 = \['
    # The client's first line names the atom that the node does not have.
    run --separate-stderr etrace trace -l 1 'lists:sublist(etrace_lacks_this, _)'
    assert_failure 5
    assert_regex "${stderr_lines[0]}" "does not know the atom etrace_lacks_this"
    run --separate-stderr etrace trace -l 1 'lists:sublst/2'
    assert_failure 5
    assert_regex "$stderr" 'did you mean sublist '
    # etrace leaves no session and no module on the node.
    gone_all() { ! etrace sessions 2>/dev/null | grep -i etrace; }
    until_true 20 gone_all || fail "$(etrace sessions)"
    run --separate-stderr etrace ls 'etrace_*:owner/1'
    assert_failure 5
    run grep -iE 'error|crash|warning' "$LOG"
    assert_output ''
}

@test "the common commands work on a node of erl -sname" {
    NODE=stock_erl_$$@${HOSTNAME%%.*}
    # shellcheck disable=SC2086
    start erl -noinput -sname "${NODE%@*}" $dist -eval "$erlang_ticker"
    asked
}

@test "the common commands work on a node of iex --sname" {
    NODE=stock_iex_$$@${HOSTNAME%%.*}
    mkfifo typed
    exec 8<>typed
    set -m
    # shellcheck disable=SC2086
    iex --sname "${NODE%@*}" --erl "$dist" <&8 >"$LOG" 2>&1 3>&- &
    PID=$!
    set +m
    tr '\n' ' ' <<<"$elixir_ticker" >&8
    echo >&8
    until_true 100 eval 'etrace info ticker >/dev/null 2>&1' || fail "the node has no process named ticker"
    asked
    exec 8>&-
}

# Makes a mix project. `mix` must be Elixir's own script, because elixir -S mix reads it.
project() {
    PATH=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/bin:$PATH
    mix new stock --app stock >/dev/null
    cd stock || return 1
    cat >lib/stock.ex <<END
defmodule Stock do
  use Application
  def start(_, _) do
    Supervisor.start_link([%{id: :ticker, start: {Stock, :ticker, []}}], strategy: :one_for_one)
  end
  def ticker, do: {:ok, $elixir_ticker}
end
END
    sed -i 's/extra_applications: \[:logger\]/extra_applications: [:logger], mod: {Stock, []}/' mix.exs
}

@test "the common commands work on a node of mix run" {
    NODE=stock_mix_$$@${HOSTNAME%%.*}
    project
    start elixir --sname "${NODE%@*}" --erl "$dist" -S mix run --no-halt
    asked
}

@test "the common commands work on a release of mix" {
    NODE=stock_rel_$$@${HOSTNAME%%.*}
    project
    MIX_ENV=prod mix release --quiet >"$LOG" 2>&1
    cp _build/prod/rel/stock/releases/COOKIE cookie
    RELEASE_NODE=${NODE%@*} ELIXIR_ERL_OPTIONS=$dist RELEASE_COOKIE=$(<"$HOME/.erlang.cookie") start _build/prod/rel/stock/bin/stock start
    asked
}

@test "the common commands work on a release in embedded mode" {
    NODE=stock_embedded_$$@${HOSTNAME%%.*}
    mkdir -p lib/stock-1/ebin
    cat >stock.erl <<END
-module(stock).
-export([start/2, stop/1, init/1, ticker/0]).
start(_, _) -> supervisor:start_link(?MODULE, []).
stop(_) -> ok.
init(_) -> {ok, {#{}, [#{id => ticker, start => {?MODULE, ticker, []}}]}}.
ticker() -> ${erlang_ticker%.}, {ok, P}.
END
    erlc -o lib/stock-1/ebin stock.erl
    echo '{application, stock, [{description, ""}, {vsn, "1"}, {modules, [stock]}, {registered, []}, {applications, [kernel, stdlib]}, {mod, {stock, []}}]}.' \
        >lib/stock-1/ebin/stock.app
    erl -noinput -eval 'V = fun(A) -> application:load(A), {ok, N} = application:get_key(A, vsn), N end,
        ok = file:write_file("stock.rel", io_lib:format("~p.~n", [{release, {"stock", "1"}, {erts, erlang:system_info(version)},
            [{kernel, V(kernel)}, {stdlib, V(stdlib)}, {stock, "1"}]}])),
        ok = systools:make_script("stock", [no_warn_sasl, {path, ["lib/stock-1/ebin"]}, local]), halt().' </dev/null 3>&-
    # shellcheck disable=SC2086
    start erl -noinput -mode embedded -boot "$PWD/stock" -sname "${NODE%@*}" $dist
    asked
}
