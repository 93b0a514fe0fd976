#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace EXPR -- COMMAND`: the node of the command is traced from its first call on, and the command keeps its
# output, its input, its signals and its status.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup() {
    export PATH=${ETRACE_ERL%/*}:$PATH
    OUT=$BATS_TEST_TMPDIR/out
    ERR=$BATS_TEST_TMPDIR/err
    unset ETRACE_NODE
}

# Asserts that etrace has left no directory, and that epmd has no node of a command.
teardown() {
    local left=0
    compgen -G "$TMPDIR/etrace-*" && left=1
    unnamed && left=1
    return "$left"
}

unnamed() { "${ETRACE_ERL%/*}/epmd" -names 2>/dev/null | grep -q ' etrace_[0-9]'; }

etrace() { timeout 100 "$ETRACE_BIN" "$@"; }

@test "etrace traces a command's unnamed node from its first call and exits with its status" {
    run --separate-stderr etrace 'lists:seq/2 -> return' -- \
        erl -noshell -eval 'io:format("said ~p~n", [lists:seq(1, 3)]), halt(7).'
    assert_failure 7
    assert_line 'said [1,2,3]'
    assert_line --partial ' call lists:seq(1, 3)'
    assert_line --partial ' return lists:seq/2 = [1,2,3]'
    assert_regex "$stderr" 'etrace_[0-9]+@127.0.0.1 · OTP .* · ends with the command'
    assert_regex "${stderr_lines[-1]}" '^etrace: 2 events in [0-9.]+ m?s$'
}

# Makes an erl whose epmd listens only a while after `epmd -daemon` has ended, and lets no epmd run.
late_epmd() { # DIRECTORY
    local bin
    bin=$("$ETRACE_ERL" -noshell -eval 'io:put_chars(os:getenv("BINDIR")), halt().')
    mkdir "$1"
    ln -s "$bin"/* "$1"
    rm -f "$1/epmd" "$1/erl"
    printf '#!/bin/sh\n(sleep 1; exec %s -address 127.0.0.1) >/dev/null 2>&1 3>&- & echo $! >%s\n' "$bin/epmd" "$1/pid" \
        >"$1/epmd"
    printf '#!/bin/sh\nexport BINDIR=%s ROOTDIR=%s EMU=beam PROGNAME=erl\nexec "$BINDIR/erlexec" "$@"\n' "$1" \
        "${bin%/*/*}" >"$1/erl"
    chmod +x "$1/epmd" "$1/erl"
    epmd_start "${ETRACE_ERL%/*}/epmd" # finds a free port
    epmd_stop
}

@test "a trace of --then reaches the node of a command" {
    cd "$BATS_TEST_TMPDIR"
    run --separate-stderr etrace --snapshot-when 'class == error' --snapshot-after 100ms -o crash-%n.etr --then 'trace lists:seq/2' --then-for 1h \
        'lists:nth/2 -> return' -- erl -noshell -eval 'catch lists:nth(9, []), [begin lists:seq(1, 3), timer:sleep(10) end || _ <- lists:seq(1, 300)], halt(7).'
    assert_failure 7
    refute_regex "$stderr" 'cookie|status 3'
    run -0 etrace replay crash-1.then.etr
    assert_output --partial 'call lists:seq(1, 3)'
}

@test "etrace waits for the epmd that a command's node starts" {
    late_epmd "$BATS_TEST_TMPDIR/bin"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH run --separate-stderr etrace lists:seq/2 -- \
        erl -noshell -eval 'lists:seq(1, 3), halt(7).'
    kill "$(<"$BATS_TEST_TMPDIR/bin/pid")"
    assert_failure 7
    assert_line --partial ' call lists:seq(1, 3)'
}

@test "-o writes events to a file, and standard output stays the command's" {
    run --separate-stderr etrace -q -o "$BATS_TEST_TMPDIR/events.json" --as summary 'lists:seq/2' -- \
        erl -noshell -eval 'lists:seq(1, 5), halt().'
    assert_success
    assert_equal "$stderr" ''
    run jq -r 'select(.type == "call") | .args | join(",")' "$BATS_TEST_TMPDIR/events.json"
    assert_output 1,5
}

@test "a usage error is reported before the command starts" {
    for args in "'lists:seq(' --" "lists:seq/2 -- " "-n x lists:seq/2 --" "--port 3 lists:seq/2 --"; do
        run bash -c "timeout 60 '$ETRACE_BIN' ${args/% /} $([[ $args == *'-- ' ]] || echo "touch '$BATS_TEST_TMPDIR/started'")"
        assert_failure 2
        [ ! -e "$BATS_TEST_TMPDIR/started" ]
    done
}

# The other tests start many nodes or wait for times.
# bats file_tags=long

# ending HOW OPTION...: traces four processes that call functions 250 times each and end the node like HOW right then.
ending() {
    local how=$1
    shift
    printf '%s\n' '-module(ends).' '-export([all/1, one/1, two/1, spin/1]).' 'two(X) -> X.' 'one(X) -> two(X) + 1.' \
        'spin(0) -> ok;' 'spin(N) -> spin(N - 1).' \
        'all(End) -> [spawn_monitor(fun() -> [one(N rem 10) || N <- lists:seq(1, 250)], spin(20000) end) || _ <- lists:seq(1, 4)],' \
        '    [receive {_, _, _, _, normal} -> ok end || _ <- lists:seq(1, 4)], End().' >"$BATS_TEST_TMPDIR/ends.erl"
    [[ -e $BATS_TEST_TMPDIR/ends.beam ]] || (cd "$BATS_TEST_TMPDIR" && erlc ends.erl)
    run --separate-stderr etrace "$@" -- erl -noshell -pa "$BATS_TEST_TMPDIR" -eval "ends:all(fun() -> $how end)."
}

@test "a node that ends at once loses no event and no figure" {
    local how
    for how in 'halt()' 'init:stop()' 'begin spawn(fun halt/0), timer:sleep(infinity) end'; do
        ending "$how" 'ends:one/1 -> return' 'ends:two/1'
        assert_success
        assert_equal "$(grep -c ' call ends:one' <<<"$output") $(grep -c ' return ends:one' <<<"$output") $(grep -c ' call ends:two' <<<"$output")" '1000 1000 1000'
        assert_regex "${stderr_lines[-1]}" '^etrace: 3000 events in [0-9.]+ m?s$'
        ending "$how" -o "$BATS_TEST_TMPDIR/ends.etr" 'ends:all/1' 'ends:one/1' 'ends:two/1'
        assert_success
        assert_equal "$("$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/ends.etr" --json | jq -r 'select(.type == "call") | .f' | sort | uniq -c | awk '{ print $1, $2 }' | xargs)" \
            '1 all 1000 one 1000 two'
        ending "$how" -c 'ends:_'
        assert_equal "$(awk '/ends:/ { print $1, $NF }' <<<"$output" | sort | xargs)" '1 ends:all/1 1000 ends:one/1 1000 ends:two/1 80004 ends:spin/1'
        ending "$how" -c 'ends:spin/1 -> return' # a loop, whose results are not traced any more; calls may be lost until then
        assert_equal "$(awk '/ends:spin/ { n += $1 } / events lost / { n += $2 } END { print n }' <<<"$output")" 80004
        ending "$how" -c 'ends:one/1 -> return'
        assert_equal "$(awk '/ends:/ && $3 != "-" { print $1, $NF }' <<<"$output")" '1000 ends:one/1'
        ending "$how" 'ends:one(N) by N: count'
        assert_equal "$(awk '$1 ~ /^[0-9]$/ { print $1, $2 }' <<<"$output" | sort | xargs)" "$(for ((i = 0; i < 10; i++)); do echo "$i 100"; done | xargs)"
        ending "$how" --ring 30s 'ends:two/1'
        assert_equal "$(grep -c ' call ends:two' <<<"$output")" 1000
        assert_line --partial 'a snapshot of every event so far'
    done
}

@test "a condition that holds right before the node ends has its snapshot, its file and its command" {
    local how
    for how in 'halt()' 'init:stop()' 'begin timer:sleep(100), halt() end' 'begin timer:sleep(100), init:stop() end'; do
        rm -f "$BATS_TEST_TMPDIR"/end-*
        ending "$how" --snapshot-when 'ret == 10' -o "$BATS_TEST_TMPDIR/end-%n.json" --then 'exec echo snapped %n' 'ends:one/1 -> return'
        assert_success
        assert_regex "$stderr" $'etrace: snapshot 1: 2000 events, reaches back to the beginning, [^\n]*/end-1\\.json\nsnapped 1\n'
        assert_regex "${stderr_lines[-1]}" '^etrace: 2000 events in [0-9.]+ m?s$'
        assert_equal "$(grep -c '"type":"return"' "$BATS_TEST_TMPDIR/end-1.json")" 1000
        refute [ -e "$BATS_TEST_TMPDIR/end-2.json" ]
    done
}

@test "a fault right before the node ends is in its snapshot, two hundred times of two hundred" {
    local how round
    for ((round = 0; round < 100; round++)); do
        for how in 'halt()' 'init:stop()'; do
            rm -f "$BATS_TEST_TMPDIR"/fault-*
            ending "begin ends:one(99), $how end" --snapshot-when 'ret == 100' -o "$BATS_TEST_TMPDIR/fault-%n.json" 'ends:one/1 -> return'
            [[ $(grep -c '"type":"return".*"value":"100"' "$BATS_TEST_TMPDIR/fault-1.json") == 1 && ! -e $BATS_TEST_TMPDIR/fault-2.json ]] ||
                fail "round $round, $how, status $status: $stderr"
        done
    done
}

@test "a condition that never holds has no snapshot when the node ends, and every event is counted" {
    local how
    for how in 'halt()' 'init:stop()'; do
        ending "$how" --snapshot-when 'ret == 99' -o "$BATS_TEST_TMPDIR/never-%n.json" 'ends:one/1 -> return'
        assert_success
        refute_output
        refute [ -e "$BATS_TEST_TMPDIR/never-1.json" ]
        assert_regex "${stderr_lines[-1]}" '^etrace: 0 events in [0-9.]+ m?s · 2000 overwritten$'
    done
}

@test "etrace says that events may be missing if the node ends without notice" {
    local how
    for how in 'erlang:halt(0, [{flush, false}])' 'os:cmd([107,105,108,108,32,45,57,32|os:getpid()])'; do
        ending "$how" 'ends:one/1'
        assert_regex "${stderr_lines[-1]}" '^etrace: [0-9]+ events? in .* · session ended without confirmation: the last events may be missing$'
    done
    assert_equal "$status" 137
}

@test "a command's node keeps its name and its cookie" {
    run --separate-stderr etrace 'lists:seq/2' -- \
        erl -noshell -name "commanded_$$@127.0.0.1" -setcookie other -eval 'lists:seq(1, 4), halt().'
    assert_success
    assert_line --partial ' call lists:seq(1, 4)'
    assert_regex "$stderr" "commanded_$$@127.0.0.1 · OTP"
}

@test "the command reads the user's standard input" {
    run --separate-stderr bash -c 'echo 6 |
        timeout 100 "$ETRACE_BIN" "lists:seq(2, _)" -- erl -noshell -eval "{ok, [N]} = io:fread([], \"~d\"), lists:seq(2, N), halt(3)."'
    assert_failure 3
    assert_output --partial ' call lists:seq(2, 6)'
}

@test "programs that the node starts see the original environment" {
    export ERL_AFLAGS='-kernel shell_history disabled'
    run --separate-stderr etrace 'x:y/0' -- \
        erl -noshell -eval 'io:format("~ts~p", [os:cmd("env | grep -e ETRACE_ -e FLAGS"), init:get_argument(kernel)]), halt().'
    assert_success
    assert_line --partial 'ERL_AFLAGS=-kernel shell_history disabled'
    refute_line --partial ETRACE_HOLD
    refute_line --partial ETRACE_AFLAGS
    assert_output --partial '["shell_history","disabled"]'
}

@test "etrace traces a module that the node loads later" {
    mkdir "$BATS_TEST_TMPDIR/ebin"
    printf '%s\n' '-module(later_on).' '-export([f/1]).' 'f(N) -> N.' >"$BATS_TEST_TMPDIR/later_on.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR/ebin" "$BATS_TEST_TMPDIR/later_on.erl"
    # The module is in the code path at the start, so etrace sees the first call.
    run --separate-stderr etrace 'later_on:f/1' -- \
        erl -noshell -pa "$BATS_TEST_TMPDIR/ebin" -eval 'later_on:f(1), halt().'
    assert_line --partial ' call later_on:f(1)'
    # The module is not yet in the code path. etrace traces it from the moment at which it notices the module.
    run --separate-stderr etrace 'later_on:f/1' -- erl -noshell -eval "true = code:add_path(\"$BATS_TEST_TMPDIR/ebin\"), \
        [begin later_on:f(N), timer:sleep(100) end || N <- lists:seq(1, 60)], halt()."
    assert_line --partial ' call later_on:f(60)'
}

@test "etrace holds a release before its first application starts" {
    local rel=$BATS_TEST_TMPDIR/rel
    mkdir -p "$rel/bin" "$rel/releases/1" "$rel/ebin"
    cat >"$rel/early.erl" <<'ERL'
-module(early).
-behaviour(application).
-export([start/2, stop/1, work/1, init/1]).
start(_, _) -> work(first), supervisor:start_link(?MODULE, []).
stop(_) -> ok.
init([]) -> spawn(fun() -> halt(6) end), {ok, {#{}, []}}.
work(What) -> What.
ERL
    "$ETRACE_ERLC" -o "$rel/ebin" "$rel/early.erl"
    echo '{application, early, [{description, "early"}, {vsn, "1"}, {modules, [early]}, {registered, []},
        {applications, [kernel, stdlib]}, {mod, {early, []}}]}.' >"$rel/ebin/early.app"
    (cd "$rel" && "$ETRACE_ERL" -noshell -pa ebin -eval 'V = fun(A) -> application:load(A), {ok, X} = application:get_key(A, vsn), X end,
        ok = file:write_file("releases/1/early.rel", io_lib:format("~p.~n", [{release, {"early", "1"}, {erts, erlang:system_info(version)},
            [{A, V(A)} || A <- [kernel, stdlib, early]]}])),
        ok = systools:make_script("releases/1/early", [silent, local, {path, ["ebin"]}]) =:= ok orelse element(1, ok), halt().' \
        </dev/null >log 2>&1) || true
    [ -f "$rel/releases/1/early.boot" ] || fail "no boot script: $(cat "$rel/log")"
    echo '15 1' >"$rel/releases/start_erl.data"
    # shellcheck disable=SC2016  # for the script
    printf '#!/bin/sh\nexec erl -boot "${0%%/*}/../releases/1/early" -mode embedded -noshell -name "$NAME" -setcookie its_own\n' >"$rel/bin/early"
    chmod +x "$rel/bin/early"
    export NAME=early_$$@127.0.0.1
    run --separate-stderr etrace 'early:work/1' -- "$rel/bin/early"
    assert_failure 6
    assert_line --partial ' call early:work(first)'
    assert_regex "$stderr" "early_$$@127.0.0.1 · OTP"
}

@test "etrace traces elixir scripts and iex" {
    command -v iex || fail 'no iex beside erl'
    run --separate-stderr etrace 'Enum.sum/1 -> return' -- elixir -e 'IO.inspect(Enum.sum([1, 2])); Process.sleep(500); System.halt(4)'
    assert_failure 4
    assert_line --partial ' call Enum.sum([1, 2])'
    run --separate-stderr bash -c 'echo "Enum.sum([3, 4]); Process.sleep(500); System.halt(5)" | timeout 100 "$ETRACE_BIN" Enum.sum/1 -- iex --dot-iex ""'
    assert_failure 5
    assert_output --partial ' call Enum.sum([3, 4])'
    # Elixir does not run yet when the trace begins.
    run --separate-stderr etrace 'recv({:hello, _})' -- elixir -e 'send(self(), {:hello, nil}); receive do x -> x end; Process.sleep(500)'
    assert_success
    assert_line --partial ' {:hello, nil}'
}

# Makes and compiles a mix project whose application calls a module of the project when it starts. `mix` must be
# Elixir's own script, because elixir -S mix and iex -S mix read it.
make_project() {
    PATH=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/bin:$PATH
    mkdir -p "$BATS_TEST_TMPDIR/proj/lib"
    cd "$BATS_TEST_TMPDIR/proj" || return 1
    cat >mix.exs <<'EX'
defmodule Proj.MixProject do
  use Mix.Project
  def project, do: [app: :proj, version: "1.0.0"]
  def application, do: [mod: {Proj.App, []}]
end
EX
    cat >lib/proj.ex <<'EX'
defmodule Proj.App do
  use Application
  def start(_, _), do: (Proj.Relay.boot(:first); Supervisor.start_link([], strategy: :one_for_one))
end
defmodule Proj.Relay do
  def boot(x), do: {:booted, x}
end
defmodule Proj do
  def hello(who), do: {:hello, who}
end
EX
    timeout 100 mix compile >log 2>&1 || fail "$(cat log)"
}

@test "etrace traces a project's modules from their first call" {
    make_project
    run --separate-stderr etrace 'Proj.hello/1' -- mix run -e 'Proj.hello(:first); Process.sleep(500)'
    assert_success
    assert_line --partial ' call Proj.hello(:first)'
    # A wildcard and app() also select modules that the node has not loaded yet.
    run --separate-stderr etrace 'Proj.R*' 'app(proj):start/2' -- mix run -e 'Process.sleep(500)'
    assert_success
    assert_line --partial ' call Proj.App.start(:normal, [])'
    assert_line --partial ' call Proj.Relay.boot(:first)'
}

@test "etrace reports a probe that never matched, with similar names" {
    make_project
    run --separate-stderr etrace 'Prooj.hello/1' Proj.helo/1 'Prj.*' Proj.Relay.boot/1 Proj.hello/1 -- mix run -e 'Process.sleep(500)'
    assert_success
    assert_regex "$stderr" "nothing matched 'Prooj.hello/1': there is no module Prooj on the node; did you mean Proj"
    assert_regex "$stderr" "nothing matched 'Proj.helo/1': Proj has no function helo/1; did you mean hello\\?"
    assert_regex "$stderr" "nothing matched 'Prj.\\*': .*; compile before you trace: a module that the command compiles is traced up to a second late"
    # Functions that exist but were not called cause no warning.
    refute_regex "$stderr" "nothing matched 'Proj.(hello|Relay)"
    # The node loads this module after the trace begins. etrace then traces it, so its probe counts as matched.
    echo -e '-module(later_on).\n-export([f/0]).\nf() -> ok.' >later_on.erl
    run --separate-stderr etrace 'later_on:f/0' -- erl -noshell -eval 'compile:file(later_on), timer:sleep(100), code:load_file(later_on),
        timer:sleep(3000), later_on:f(), halt().'
    assert_success
    assert_line --partial ' call later_on:f()'
    refute_regex "$stderr" 'nothing matched'
}

@test "etrace traces a project that env, a shell, a script or elixir -S mix starts" {
    make_project
    local sleep='Process.sleep(500)'
    printf '#!/bin/sh\ncd "%s" && exec mix run -e "%s"\n' "$PWD" "$sleep" >run.sh
    chmod +x run.sh
    local -a with
    for with in "env X=1 mix run -e $sleep" "elixir -S mix run -e $sleep" './run.sh'; do
        # shellcheck disable=SC2086  # a list of words
        run --separate-stderr etrace 'Proj.Relay.boot/1' -- $with
        assert_success
        assert_line --partial ' call Proj.Relay.boot(:first)'
    done
    cd /
    run --separate-stderr etrace 'Proj.Rel*' -- sh -c "$BATS_TEST_TMPDIR/proj/run.sh"
    assert_success
    assert_line --partial ' call Proj.Relay.boot(:first)'
}

@test "etrace traces iex -S mix, from the application's start to typed expressions" {
    make_project
    local with
    for with in 'iex -S mix' 'sh -c "exec iex -S mix"'; do
        run --separate-stderr bash -c "echo 'Proj.hello(:typed); Process.sleep(500); System.halt(5)' | timeout 100 '$ETRACE_BIN' 'Proj.Relay' Proj.hello/1 -- $with"
        assert_failure 5
        assert_line --partial ' call Proj.Relay.boot(:first)'
        assert_output --partial ' call Proj.hello(:typed)'
    done
}

up() { grep -q '^up$' "$OUT"; }

@test "etrace forwards signals to the command, and exits with 128 plus the signal that kills it" {
    for signal in TERM HUP; do
        "$ETRACE_BIN" -q 'lists:seq/2' -- sh -c 'erl -noshell -noinput -eval "io:put_chars(\"up\n\")." & trap "kill -KILL $!; exit 33" TERM HUP; wait' \
            </dev/null >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        until_true 30 up || fail "$(cat "$ERR")"
        kill "-$signal" "$TRACER"
        until_true 30 gone "$TRACER" || fail "etrace does not end with $signal"
        status=0
        wait "$TRACER" || status=$?
        assert_equal "$status" 33
        : >"$OUT"
    done
    run etrace 'lists:seq/2' -- sh -c 'erl -noshell -eval "timer:sleep(200), halt()." ; kill -KILL $$'
    assert_failure 137
}

@test "etrace forwards a signal while the node does not answer a request" {
    printf '%s\n' '-module(slow_names).' '-export([whereis_name/1]).' "whereis_name(_) -> file:write_file(\"$BATS_TEST_TMPDIR/asked\", \"\"), timer:sleep(infinity)." >"$BATS_TEST_TMPDIR/slow_names.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/slow_names.erl"
    "$ETRACE_BIN" -q -P '{via,slow_names,init}' 'lists:seq/2' -- erl -noshell -noinput -pa "$BATS_TEST_TMPDIR" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    until_true 30 test -e "$BATS_TEST_TMPDIR/asked" || fail "$(<"$ERR")"
    kill -USR2 "$TRACER"
    status=0
    wait "$TRACER" || status=$?
    refute_regex "$(<"$ERR")" 'has not answered'
    assert_equal "$status" 1 # its node was lost before anything was traced
}

@test "a stranger on the connection for the last events of a node delays the end only for some time" {
    # The stranger connects before the node does, and sends nothing.
    cat >"$BATS_TEST_TMPDIR/command" <<'END'
/usr/bin/python3 -c 'import os, socket, time
s = socket.socket(socket.AF_UNIX)
s.connect(os.environ["ETRACE_HOLD"][:-4] + "leftover")
open(os.environ["BATS_TEST_TMPDIR"] + "/connected", "w")
time.sleep(100)' &
echo $! >"$BATS_TEST_TMPDIR/stranger"
until [ -e "$BATS_TEST_TMPDIR/connected" ]; do sleep 0.02; done
exec erl -noshell -noinput -eval 'io:put_chars("up\n"), [lists:seq(1, 2) || _ <- lists:seq(1, 1000)], halt().'
END
    export BATS_TEST_TMPDIR
    for signal in '' TERM; do
        rm -f "$BATS_TEST_TMPDIR/connected"
        new_output
        "$ETRACE_BIN" --rate 0 'lists:seq/2' -- sh "$BATS_TEST_TMPDIR/command" </dev/null >"$OUT" 2>"$ERR" 3>&- &
        TRACER=$!
        TRACERS+=("$TRACER")
        until_true 30 up
        command_ended() { [[ ! $(pgrep -P "$TRACER") ]]; }
        until_true 30 command_ended
        # On a busy host the time may be over by now.
        [[ ! $signal ]] || kill "-$signal" "$TRACER" || gone "$TRACER"
        trace_wait 20
        kill "$(<"$BATS_TEST_TMPDIR/stranger")"
    done
}

# bats test_tags=long
@test "a stopped client delays the end of its command's node only for some time" {
    # The node has more events to write at its end than the socket takes.
    local pid=$BATS_TEST_TMPDIR/pid go=$BATS_TEST_TMPDIR/go program
    program="ok = file:write_file(\"$pid\", os:getpid()),
        (fun F() -> filelib:is_file(\"$go\") orelse begin timer:sleep(20), F() end end)(),
        L = lists:seq(1, 1000), [lists:nth(1, L) || _ <- lists:seq(1, 20000)], halt()."
    "$ETRACE_BIN" --rate 0 --items 2000 --size 20000 'lists:nth(1, _)' -- erl -noshell -noinput -eval "$program" </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 30 test -s "$pid"
    freeze "$TRACER"
    : >"$go"
    ended() { [[ ! -e /proc/$(<"$pid") || $(</proc/"$(<"$pid")"/stat) == *') Z '* ]]; }
    until_true 60 ended
    kill -CONT "$TRACER"
    trace_wait 20
}

@test "a new client removes the directory of a killed client, but not those of live clients" {
    local killed lives
    "$ETRACE_BIN" -q 'lists:seq/2' -- erl -noshell -noinput -eval 'io:put_chars("up\n"), timer:sleep(1000), halt().' \
        </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    until_true 30 up
    kill -KILL "$TRACER"
    wait "$TRACER" || true
    until_true 30 gone "$TRACER"
    # The killed client leaves its directory. The next client removes it, but not the directories of live clients or of
    # other programs.
    killed=$(compgen -G "$TMPDIR/etrace-*") || fail 'the killed client left no directory'
    mkdir "$TMPDIR/etrace-others"
    "$ETRACE_BIN" -q 'lists:seq/2' -- sleep 100 </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    lives() { [[ ! -e $killed ]] && compgen -G "$TMPDIR/etrace-*/node"; }
    until_true 30 lives || fail "$(ls "$TMPDIR"/etrace-*)"
    lives=$(lives)
    run etrace 'lists:seq/2' -- true
    assert_failure 3
    assert_equal "$(lives)" "$lives"
    kill -TERM "$TRACER"
    wait "$TRACER" || true
    rmdir "$TMPDIR/etrace-others"
    until_true 30 not unnamed
}

not() { ! "$@"; }

@test "--limit ends the trace, not the command" {
    run --separate-stderr etrace --limit 1 'lists:seq/2' -- \
        erl -noshell -eval '[begin lists:seq(1, N), timer:sleep(100) end || N <- [1, 2, 3, 4, 5]], io:put_chars("all done\n"), halt(8).'
    assert_failure 8
    assert_line 'all done'
    assert_equal "$(grep -c ' call ' <<<"$output")" 1
}

@test "--fail-on ends the trace and the command, and an unmet --expect gives status 11" {
    run --separate-stderr etrace --fail-on 'args[2] == 3' 'lists:seq/2' -- \
        erl -noshell -noinput -eval '[begin lists:seq(1, N), timer:sleep(100) end || N <- lists:seq(1, 1000)], io:put_chars("all done\n").'
    assert_failure 10
    refute_line 'all done'
    assert_regex "$stderr" "etrace: --fail-on 'args\[2\] == 3' holds: .* call lists:seq\(1, 3\)"
    run --separate-stderr etrace --expect 'args[2] > 2' 'lists:seq/2' -- erl -noshell -eval 'lists:seq(1, 2), halt().'
    assert_failure 11
}

@test "etrace reports a command that starts no node" {
    run --separate-stderr etrace 'lists:seq/2' -- true
    assert_failure 3
    assert_regex "$stderr" '^etrace: true exited without starting a node'
    run etrace 'lists:seq/2' -- sh -c 'exit 9'
    assert_failure 9
    run etrace 'lists:seq/2' -- /no/such/command
    assert_failure 2
    assert_line 'etrace: cannot start /no/such/command: No such file or directory'
}

@test "etrace warns about a node without a cookie, the node runs on, and demo does not wait for it" {
    local untold='etrace: a node of the command did not report its name and is not traced; it needs HOME for its cookie, and epmd'
    # The node waits in a read until the test has seen the message. If it starts later, it finds the line in the pipe.
    local go
    mkfifo "$BATS_TEST_TMPDIR/go"
    exec {go}<>"$BATS_TEST_TMPDIR/go"
    env -u HOME timeout 100 "$ETRACE_BIN" lists:seq/2 -- erl -noshell -eval \
        "{ok, F} = file:open(\"$BATS_TEST_TMPDIR/go\", [read, raw]), {ok, _} = file:read(F, 1), io:format(\"ran~n\"), halt(4)." </dev/null >"$OUT" 2>"$ERR" 3>&- {go}>&- &
    local pid=$!
    local told=yes
    until_true 60 grep -qxF "$untold" "$ERR" || told=no
    echo >&"$go"
    status=0
    wait "$pid" || status=$?
    exec {go}>&-
    assert_equal "$told,$status" yes,4
    grep -qx ran "$OUT" || fail "$(<"$ERR")"
    run env HOME=/nonexistent timeout 60 "$ETRACE_BIN" demo
    assert_failure 3
    assert_line "$untold"
    assert_line 'etrace: the demo node does not start'
}

@test "demo traces the shop from its first order and leaves nothing" {
    run --separate-stderr etrace demo --limit 2
    assert_success
    assert_line -n 0 --partial ' call shop_orders:place('
    assert_regex "$stderr" ' · 1 function · '
    run --separate-stderr etrace demo --for 2s -c 'shop_stock:_ -> return'
    assert_success
    assert_output --partial 'shop_stock:price/1'
    run env PATH=/nonexistent "$ETRACE_BIN" demo
    assert_failure 2
    assert_line 'hint: the demo needs an erl of OTP 27 or newer in $PATH'
}

@test "the shop of a killed demo closes at once, and the next client removes its files" {
    local shop
    "$ETRACE_BIN" demo </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    opens() { [[ -s $OUT ]] || gone "$TRACER"; }
    until_true 60 opens
    shop=$(<"/proc/$TRACER/task/$TRACER/children")
    [[ $(tr '\0' ' ' <"/proc/${shop% }/cmdline") == *beam* ]] || fail "demo has no child process that is a node: $(<"$ERR")"
    kill -KILL "$TRACER"
    wait "$TRACER" || true
    closed() { ! grep -q . "/proc/${shop% }/cmdline" 2>/dev/null; } # a zombie has an empty cmdline
    until_true 30 closed || { kill -KILL "${shop% }"; fail 'the shop is still open'; }
    compgen -G "$TMPDIR/etrace-*/shop_stock.erl" >/dev/null || fail 'the killed client left no directory'
    run etrace 'lists:seq/2' -- true
    assert_failure 3
    until_true 30 not unnamed
}

@test "-n demo runs any command on a shop of its own, which ends with it" {
    run --separate-stderr etrace -n demo ps -P shop_stock --json
    assert_success
    assert_output --partial '"name":"shop_stock"'
    run --separate-stderr etrace why -n demo shop_stock
    assert_success
    assert_output --partial "etrace ps -n demo -P"
    refute_output --partial 'ps -n etrace_'
    run --separate-stderr etrace -n demo --limit 1 'shop_orders:place/3'
    assert_success
    assert_line -n 0 --partial ' call shop_orders:place('
    # The commands of the interactive mode use the same shop.
    run --separate-stderr etrace -n demo repl <<<$':why shop_stock\n:ls shop_stock:price/1\n:ls -n demo shop_stock:price/1'
    assert_success
    assert_line --partial '(shop_stock) '
    assert_equal "$(grep -c '^shop_stock:price' <<<"$output")" 2
    # The modules have debug_info.
    assert_line --regexp '^shop_stock:price/1 +\(Item\)'
    unnamed && fail 'a shop is left'
    run env PATH=/nonexistent "$ETRACE_BIN" -n demo ps
    assert_failure 2
    assert_line 'hint: the demo needs an erl of OTP 27 or newer in $PATH'
    run env HOME=/nonexistent timeout 60 "$ETRACE_BIN" -n demo ps
    assert_failure 3
    assert_line 'etrace: the demo node does not start'
}

@test "-n demo is the local node of that name, if there is one" {
    erl -noinput -sname demo@localhost 3>&- &
    local pid=$!
    there() { "${ETRACE_ERL%/*}/epmd" -names 2>/dev/null | grep -q ' demo '; }
    until_true 30 there
    run --separate-stderr etrace -n demo ps -P init --json
    kill "$pid"
    wait "$pid" || true
    assert_success
    assert_output --partial '"node":"demo@localhost"'
}

@test "a signal ends -n demo and its shop" {
    local shop
    "$ETRACE_BIN" -n demo 'shop_orders:place/3' </dev/null >"$OUT" 2>"$ERR" 3>&- &
    TRACER=$!
    ordered() { [[ -s $OUT ]] || gone "$TRACER"; }
    until_true 60 ordered
    shop=$(<"/proc/$TRACER/task/$TRACER/children")
    kill -TERM "$TRACER"
    wait "$TRACER" || true
    is_shut() { ! grep -q . "/proc/${shop% }/cmdline" 2>/dev/null; }
    until_true 30 is_shut || fail 'the shop is still open'
}

@test "demo sends the output of its emulator to standard error" {
    mkdir "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\necho WARNING\nexec "%s" "$@"\n' "$ETRACE_ERL" >"$BATS_TEST_TMPDIR/bin/erl"
    chmod +x "$BATS_TEST_TMPDIR/bin/erl"
    run --separate-stderr env PATH="$BATS_TEST_TMPDIR/bin:$PATH" "$ETRACE_BIN" demo --json --limit 1
    assert_success
    assert_line -n 0 --partial '"type":"attached"'
    assert_regex "$stderr" WARNING
}
