#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the output of a live trace: the views, and that replay prints a recording of the trace in the same way.

load ../lib/assert
load ../lib/live

setup_file() { live_share views; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown; }

# Probes for each kind of event: calls, results, exceptions, messages and exits.
probes=('work:fac/1 -> return, caller' 'work:raise/2 -> return' 'work:one/1' -P w 'send(_, {ping, _, _})' 'recv({pong, _})' '@exit')
work='work:ask(w, fun() -> work:fac(3), work:caught(error, {oops, "é\x{1F600}"}), work:one([a, "b", <<"c", 0>>, 1.0e9, #{k => {}}]), work:ping_pong(2), work:one(make_ref()), work:one(fun lists:seq/2) end)'

@test "every JSON line is an object with the members of its type" {
    traced --json "${probes[@]}" -- "$work"
    assert_success
    while IFS= read -r line; do jq -e 'type == "object" and .v == 1 and (.type | type == "string")' <<<"$line" >/dev/null || fail "not JSON: $line"; done <"$OUT"
    # These members are common to all events.
    jq -es --arg node "$NODE" 'all(.[] | select(.pid);
        (.ts | test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{6}Z$"))
        and (.mono_ns | type == "number") and .node == $node and (.pid | test("^<0\\.[0-9]+\\.[0-9]+>$")))' "$OUT"
    jq -es 'all(.[] | select(.type == "call"); (.m | type == "string") and (.f | type == "string") and (.a | type == "number")
        and (.args | type == "array") and (.args | length) == .a)' "$OUT"
    jq -es 'all(.[] | select(.type == "return"); (.value | type == "string") and (.dur_us | type == "number") and (.args | length) == .a)' "$OUT"
    jq -es 'all(.[] | select(.type == "exception"); .class == "error" and (.reason | type == "string") and (.dur_us | type == "number"))' "$OUT"
    jq -es 'first(.[] | select(.f == "fac")) | .caller | .m and .f and (.a | type == "number")' "$OUT"
    assert_equal "$(jq -r .type "$OUT" | sed -n '1p;$p' | tr '\n' ' ')" 'attached summary '
    assert_equal "$(json_of attached .node)" "$NODE"
    assert_equal "$(json_of attached .otp | cut -d. -f1)" "$ETRACE_OTP"
    # The monotonic time and the wall clock time are both in the order of the events.
    jq -es '[.[] | select(.pid) | .mono_ns] | . == sort' "$OUT"
    jq -es '[.[] | select(.pid) | .ts] | . == sort' "$OUT"
    assert_account any
}

@test "everything on a node that runs Elixir is printed in Elixir, except JSON" {
    live_own elixir -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin"
    cat >"$(node_dir "$NODE")/bank.exs" <<'END'
defmodule Bank do
  defstruct [:owner]
  def boom(x), do: raise(ArgumentError, "bad #{x}")
  def run do
    {pid, ref} = spawn_monitor(fn -> receive do bank -> exit({:shutdown, bank}) end end)
    try do :lists.map(fn x -> Bank.boom(x) end, [3]) rescue _ -> :ok end
    send(pid, %Bank{owner: "Ann"})
    receive do {:DOWN, ^ref, _, _, _} -> :ok end
  end
end
END
    on_node "begin {ok, _} = application:ensure_all_started(elixir), 'Elixir.Code':eval_file(<<\"$(node_dir "$NODE")/bank.exs\">>) end"
    traced -o "$BATS_TEST_TMPDIR/bank.etr" ':lists.map(_, [3]) -> return' 'send(_, %Bank{})' 'recv(%Bank{})' @exit @spawn -- "'Elixir.Bank':run()"
    run cut -d' ' -f3- "$OUT"
    assert_line --regexp '^spawn <[0-9.]+>(\([^ ]*\))? :erlang\.apply\(#Function<[0-9.]+ in Bank>, \[\]\)$'
    assert_line --regexp '^call :lists\.map\(#Function<[0-9.]+ in Bank>, \[3\]\)$'
    assert_line --regexp '^exception :lists\.map/2 :error:%ArgumentError\{message: "bad 3"\} '
    assert_line --regexp '^send to <[0-9.]+>(\([^ ]*\))? %Bank\{owner: "Ann"\}$'
    assert_line --regexp '^receive from <[0-9.]+>(\([^ ]*\))? %Bank\{owner: "Ann"\}$'
    assert_line 'exit {:shutdown, %Bank{owner: "Ann"}}'
    replayed() { "$ETRACE_BIN" replay -q "$@" "$BATS_TEST_TMPDIR/bank.etr"; }
    replayed | cut -d' ' -f3- | diff - <(printf '%s\n' "${lines[@]}")
    run replayed --as tree
    assert_line --regexp ' :lists\.map\(#Function<[0-9.]+ in Bank>, \[3\]\) raised :error:%ArgumentError\{message: "bad 3"\} '
    assert_line --partial 'exit {:shutdown, %Bank{owner: "Ann"}}'
    run replayed --as sequence
    assert_line --partial 'Bank{owner: "Ann"}'
    refute_line --partial '__struct__'
    run replayed --format '{mfa} {msg} {reason}'
    assert_line --partial ':lists.map/2'
    assert_line --partial '%Bank{owner: "Ann"}'
    # The other language on request, and JSON for programs.
    run replayed --terms erlang
    assert_line --partial 'call lists:map(#Fun<Elixir.Bank.'
    refute_output --partial '%Bank'
    run replayed --json
    refute_output --partial '%Bank'
}

@test "a term in JSON is Erlang text that the node can read back" {
    traced --json work:one/1 -- 'work:one({a, '\''B c'\'', "str", [0, 255], <<"bin">>, 1.5, -0.0, 1 bsl 70, #{<<"k">> => [x | y]}, [], {}, $a, "é"})'
    text=$(json_of call '.args[0]')
    assert_equal "$text" "$(node_eval "$NODE" '{a, '\''B c'\'', "str", [0, 255], <<"bin">>, 1.5, -0.0, 1 bsl 70, #{<<"k">> => [x | y]}, [], {}, $a, "é"}')"
    run node_eval "$NODE" "$text =:= {a, 'B c', \"str\", [0, 255], <<\"bin\">>, 1.5, -0.0, 1 bsl 70, #{<<\"k\">> => [x | y]}, [], {}, \$a, \"é\"}"
    assert_output true
}

@test "text of a node cannot forge a line or move the cursor" {
    traced work:one/1 -- 'work:one("\e[2Jx\n12:00:00.000000 <0.1.0> call a:b()"), work:one(list_to_atom("\e]0;x\a")), work:one(<<"\x{202E}abc"/utf8>>), work:one([$a, 16#200B, $b])'
    assert_success
    assert_equal "${#lines[@]}" 4
    run grep -cP '[\x00-\x08\x0b-\x1f\x7f]|\x{202E}|\x{200B}' "$OUT"
    assert_output 0
    traced --json work:one/1 -- 'work:one("\e[2Jx\n"), work:one(list_to_atom("\e]0;x\a")), work:one(<<"\x{202E}abc"/utf8>>), work:one([$a, 16#200B, $b])'
    run grep -cP '[\x00-\x08\x0b-\x1f\x7f]|\x{202E}|\x{200B}' "$OUT"
    assert_output 0
    jq -e . "$OUT" >/dev/null
}

@test "times are local, in UTC, relative to the beginning, or relative to the previous line" {
    local before
    before=$(date -u +%H:%M)
    traced --utc work:one/1 -- 'work:loop(2)'
    assert_line -n 0 --regexp "^($before|$(date -u +%H:%M)):[0-5][0-9]\.[0-9]{6}Z? "
    TZ=Asia/Kathmandu traced work:one/1 -- 'work:loop(1)'
    assert_line -n 0 --regexp '^[0-9:]{8}\.[0-9]{6} '
    traced --relative work:one/1 -- 'work:one(1), work:slow(40), work:one(2)'
    assert_line -n 0 --regexp '^ *\+?0\.[0-9]{6} '
    traced --delta work:one/1 -- 'work:one(1), work:slow(40), work:one(2)'
    assert_line -n 1 --regexp '^ *\+?(0\.(0[4-9]|[1-9])|[1-9][0-9]*\.)[0-9]+ '
}

@test "standard output has only events, and -q prints nothing on standard error" {
    "$ETRACE_BIN" -n "$NODE" -q --for 200ms work:one/1 >"$OUT" 2>"$ERR"
    assert_equal "$(<"$OUT")" ''
    assert_equal "$(<"$ERR")" ''
    traced work:one/1 -- 'work:one(1)'
    assert_equal "${#lines[@]}" 1
    assert_equal "$(grep -vc '^etrace: ' "$ERR" || true)" 0
}

@test "output has colours only with --color always or on a terminal" {
    traced work:one/1 -- 'work:one(1)'
    run grep -c $'\e' "$OUT"
    assert_output 0
    traced --color always work:one/1 -- 'work:one(1)'
    run grep -c $'\e\[' "$OUT"
    assert_output 1
    NO_COLOR=1 traced --color auto work:one/1 -- 'work:one(1)'
    run grep -c $'\e' "$OUT"
    assert_output 0
}

replayed() { "$ETRACE_BIN" replay "$BATS_TEST_TMPDIR/all.etr" "$@" >"$BATS_TEST_TMPDIR/replayed"; }

@test "a recording replays to the same bytes as text and as JSON" {
    traced -o "$BATS_TEST_TMPDIR/all.etr" -o "$BATS_TEST_TMPDIR/live.json" "${probes[@]}" -- "$work"
    assert_success
    assert [ "${#lines[@]}" -ge 15 ]
    replayed
    cmp "$OUT" "$BATS_TEST_TMPDIR/replayed"
    replayed --json
    cmp "$BATS_TEST_TMPDIR/live.json" "$BATS_TEST_TMPDIR/replayed"
    assert_equal "$(stat -c %a "$BATS_TEST_TMPDIR/all.etr")" 600
    run "$ETRACE_BIN" replay - <"$BATS_TEST_TMPDIR/all.etr"
    assert_success
    assert_output "$(<"$OUT")"
}

# bats test_tags=long
@test "a recording replays to the same bytes with options, filters and losses" {
    for options in --utc --relative --delta '--color=always' '--grep=fac' '--where=dur > 1us'; do
        rm -f "$BATS_TEST_TMPDIR/all.etr"
        traced -o "$BATS_TEST_TMPDIR/all.etr" "$options" "${probes[@]}" -- "$work"
        assert_success
        replayed "$options"
        cmp "$OUT" "$BATS_TEST_TMPDIR/replayed" || fail "differs with $options: $(diff "$OUT" "$BATS_TEST_TMPDIR/replayed")"
    done
    rm -f "$BATS_TEST_TMPDIR/all.etr"
    traced -o "$BATS_TEST_TMPDIR/all.etr" --rate 200 --json work:one/1 -- 'work:burst(3, 3000)'
    assert_account 9000
    replayed --json
    cmp "$OUT" "$BATS_TEST_TMPDIR/replayed"
}

@test "a recording contains the events that filters hide" {
    traced -o "$BATS_TEST_TMPDIR/all.etr" -g nothing work:one/1 -- 'work:loop(5)'
    assert_equal "$output" ''
    replayed
    assert_equal "$(wc -l <"$BATS_TEST_TMPDIR/replayed")" 5
    replayed -g 'one\(3\)'
    assert_equal "$(wc -l <"$BATS_TEST_TMPDIR/replayed")" 1
}

@test "-a appends to a recording" {
    traced -o "$BATS_TEST_TMPDIR/all.etr" work:one/1 -- 'work:loop(2)'
    first=$output
    traced -a -o "$BATS_TEST_TMPDIR/all.etr" work:one/1 -- 'work:loop(3)'
    replayed
    assert_equal "$(<"$BATS_TEST_TMPDIR/replayed")" "$first"$'\n'"$output"
}

@test "several outputs of one trace have the same events" {
    traced -o "$BATS_TEST_TMPDIR/a.json" -o "$BATS_TEST_TMPDIR/a.txt" work:one/1 -- 'work:loop(20)'
    assert_equal "$(<"$BATS_TEST_TMPDIR/a.txt")" "$output"
    assert_equal "$(jq -r 'select(.type == "call") | .args[0]' "$BATS_TEST_TMPDIR/a.json" | wc -l)" 20
}

# Prints a tree without the time of day and without durations.
branches() { sed -E 's/^[0-9:.]+ <[0-9.]+>(\([a-z]+\))? //; s/ [0-9.]+(ns|us|ms)$//' "$OUT"; }

@test "a tree with a filter shows passing calls below their callers" {
    traced --as tree -e 'args[1] == 1' 'work:fac/1 -> return' -- 'work:ask(w, fun() -> work:fac(4), work:fac(0) end)'
    assert_success
    assert_equal "$(branches)" 'work:fac(4)
  work:fac(3)
    work:fac(2)
      work:fac(1) = 1
    └ work:fac/1 = 2
  └ work:fac/1 = 6
└ work:fac/1 = 24'
    assert_regex "$talk" ' 8 events in [0-9.]+ m?s · 4 filtered'
    # This call passes by its result, which comes while the calls of its callers are still open.
    traced --as tree -e 'ret == 2' 'work:fac/1 -> return' -- 'work:ask(w, fun() -> work:fac(4) end)'
    assert_success
    assert_equal "$(branches)" 'work:fac(4)
  work:fac(3)
    work:fac(2) = 2
  └ work:fac/1 = 6
└ work:fac/1 = 24'
    # Other views show the passing calls without their callers.
    traced -e 'args[1] == 1' 'work:fac/1 -> return' -- 'work:ask(w, fun() -> work:fac(4) end)'
    assert_success
    assert_equal "$(grep -c . "$OUT")" 2
}
