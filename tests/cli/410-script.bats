#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The interactive mode with a pipe as standard input: lines run in order, output is plain, and the exit status is that
# of the first failure.

load ../lib/assert
load ../lib/live

setup_file() {
    live_share script
    live_repl
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() { live_teardown_all; }

repl() { timeout 60 "$ETRACE_BIN" repl -n "$NODE" "$@"; }

armed() { [[ $(grep -c 'Ctrl-C stops' "$ERR") -ge $1 ]]; }

# Sends the lines BEFORE, waits until the node is armed ARMINGS times, evaluates EXPR on the node, and sends the lines
# AFTER.
script() { # ARGS... -- ARMINGS BEFORE EXPR AFTER
    local args=()
    : >"$ERR"
    while [[ $1 != -- ]]; do
        args+=("$1")
        shift
    done
    repl "${args[@]}" < <(
        printf '%b' "$3"
        until_true 30 armed "$2"
        on_node "$4" >&2
        printf '%b' "$5"
    ) >"$OUT" 2>"$ERR" 3>&-
}

@test "a script prints the events that are still in flight before it ends" {
    script -- 1 'work:two/2 -> return\n' 'work:two(a, b)' ''
    run cat "$OUT"
    assert_line --regexp 'call work:two\(a, ?b\)$'
    assert_line --regexp 'return work:two/2 = \{a,b\} '
    assert_equal "${#lines[@]}" 2
    grep -q 'nothing is left on the nodes' "$ERR"
}

@test "several probes have labels, and their events show them in text and JSON" {
    script --json -- 2 'work:one/1\nother: work:two(_, _)\n' 'work:two(work:one(7), b)' ':wait 2 events\n'
    run json_of call '[.probe, .f] | join(" ")'
    assert_line 'other two'
    assert_line '1 one'
    script -- 3 'work:one/1\nother: work:two(_, _)\n:drop 1\n' 'work:two(work:one(7), b)' ':wait 1 events\n:probes\n'
    run cat "$OUT"
    assert_line --regexp ' \[other\] .*call work:two\(7, ?b\)$'
    assert_line --regexp '^other +work:two\(_, _\)$'
    refute_output --partial 'work:one'
}

@test "a script accepts multi-line expressions, comments and empty lines" {
    script -- 1 '% what two gets\n\nwork:two(a,\n  b) ->\n  return\n' 'work:two(a, b)' ''
    run cat "$OUT"
    assert_equal "${#lines[@]}" 2
}

@test "brackets and quotes in characters, regular expressions and comments do not continue a line" {
    run repl --allow-empty <<'END'
MyApp.f(%{id: 1}) -> return
MyApp.g(?() # don't
MyApp.h(_) where text =~ ~/"/
:ets.lookup(some_table, _)
# no (
slow: work:two(a, % the first (
  b) -> % the second
return
:probes
END
    assert_success
    assert_line --regexp '^1 +MyApp\.f\(%\{id: 1}\) -> return$'
    assert_line --regexp "^2 +MyApp\.g\(\?\(\) # don't$"
    assert_line --regexp '^3 +MyApp\.h\(_\) where text =~ ~/"/$'
    assert_line --regexp '^4 +:ets\.lookup\(some_table, _\)$'
    assert_line --regexp '^slow +work:two\(a, +b\) -> +return$'
}

@test "the status is that of the first line that failed" {
    run repl <<<':nothing'
    assert_failure 2
    assert_output --partial "unknown command ':nothing'"
    run repl <<<$'work:two(_, N) when M > 1\nno_such_module:f/1'
    assert_failure 2
    assert_output --partial 'unbound variable M'
    assert_output --partial 'there is no module no_such_module'
    run repl <<<$'work:oen/1\n:probes'
    assert_failure 5
    assert_output --partial 'work has no function oen/1'
    assert_output --partial 'no probes'
    run repl <<<$':quit\n:nothing'
    assert_success
    run "$ETRACE_BIN" repl -n nobody@127.0.0.1 </dev/null
    assert_failure 3
}

@test "a probe that a node refuses leaves the other probes armed" {
    script -- 2 'work:two/2\nwork:no_such_function/1\n' 'work:two(a, b)' '' || assert_equal $? 5
    run cat "$OUT"
    assert_output --partial 'call work:two(a,'
}

@test "settings limit and filter the trace, and repl refuses invalid values" {
    script -- 1 ':limit 3\nwork:one/1\n' 'work:loop(10)' ':wait 3 events\n:set\n'
    assert_equal "$(grep -c 'call work:one' "$OUT")" 3
    run grep '^:limit' "$OUT"
    assert_output --regexp '^:limit +3$'
    script -- 1 ':where args[1] > 8\nwork:one/1\n' 'work:loop(10)' ':wait 10 events\n'
    assert_equal "$(grep -c 'call work:one' "$OUT")" 2
    script -- 1 ':proc w\nwork:one/1\n' 'work:loop(2), work:ask(w, fun() -> work:one(here) end)' ':wait 1 events\n'
    assert_equal "$(grep -o 'call work:one(.*' "$OUT")" 'call work:one(here)'
    run repl <<<':rate much'
    assert_failure 2
    assert_output --partial ":rate does not take 'much'"
    run repl <<<$':size 1MB\n:set'
    assert_failure 2
    assert_line 'etrace: :size takes 1 to 262144, not 1048576'
    assert_line --regexp '^:size +1024$'
    assert_equal "$(grep -c '· attached$' <<<"$output")" 1
}

# bats test_tags=long
@test "batch_message() appends names to the notices of a batch, or adds a section for them" {
    live_attempt <<'END'
begun() ->
    M = etrace_00000000_0,
    Meta = 16#ffffffff,
    None = {0, 0, 0, 0, 0, 0, 0, 0},
    Sections = [M:section(Meta, 0, None, [M:frame(51, 10, 0, [armed, 1])]), M:section(0, 1, None, [M:frame(1, 20, 0, [])])],
    Batch = fun(List) ->
        Bytes = iolist_to_binary(List),
        <<0:32, (56 + byte_size(Bytes)):32/little, 7:64/little, 0:256, (length(List)):32/little, 0:32, Bytes/binary>>
    end,
    {<<$B, With/binary>>, 7, false} = M:batch_message(Batch(Sections), [M:frame(50, 30, 0, [w])], 0),
    io:format("~w ~w", [kinds(With), byte_size(With) =:= M:field(With, 4, 4)]),
    {<<$B, Alone/binary>>, 7, false} = M:batch_message(Batch(tl(Sections)), [M:frame(50, 30, 0, [w])], 0),
    io:format(" ~w ~w", [kinds(Alone), byte_size(Alone) =:= M:field(Alone, 4, 4)]),
    halt().
kinds(<<_:48/binary, _:64, Sections/binary>>) -> sections(Sections).
sections(<<>>) -> [];
sections(<<Ring:32/little, Bytes:32/little, _:72/binary, Frames:Bytes/binary, Rest/binary>>) -> [{Ring band 1, frames(Frames)} | sections(Rest)].
frames(<<>>) -> [];
frames(<<Head:32/little, Rest/binary>>) ->
    Bytes = (Head band 16#fffff) - 4,
    <<_:Bytes/binary, More/binary>> = Rest,
    [(Head bsr 20) band 63 | frames(More)].
END
    assert_output '[{1,[51,50]},{0,[1]}] true [{1,[50]},{0,[1]}] true'
}

# bats test_tags=long
@test "the scrollback is bounded, drops the oldest events and counts them" {
    script --scrollback 1MB --rate 0 -- 1 'work:one/1\n' 'work:loop(40000)' ':wait 40000 events\n:scrollback\n:save '"$BATS_TEST_TMPDIR"'/x.etr\n'
    run grep ' events kept in ' "$OUT"
    assert_output --regexp '^[0-9]+ events kept in [0-9]+ kB · [0-9]+ older events were dropped$'
    kept=${output%% *}
    run "$ETRACE_BIN" replay --json "$BATS_TEST_TMPDIR/x.etr"
    assert_success
    assert_equal "$(grep -c '"type":"call"' <<<"$output")" "$kept"
    [[ $(tail -n 1 <<<"$output") == *'"missing":0,'* ]]
}

@test "shell commands work as :commands with the attached node" {
    run repl <<<$':version\n:explain --format=erl lists:seq(_, N) when N > 10 -> return\n:help drop'
    assert_success
    assert_line --regexp '^etrace [0-9]'
    assert_line --partial "{call,{lists,seq,2},"
    assert_line --partial ':drop LABEL'
    run repl <<<':help'
    assert_success
    for line in "${lines[@]}"; do [[ ${#line} -le 80 ]] || fail "the line is too wide: $line"; done
    run repl <<<$':why --for 100ms w\n:ps -P w\n:stacks -P w'
    assert_success
    assert_line --regexp '^<[0-9.]+>\(w\) idle: waits for a message in work:serve/0$'
    assert_line --regexp '^ +0 .*<[0-9.]+>\(w\) '
    assert_line --regexp '^ +1 waiting +work:serve/0'
    run repl <<<':trace --dry-run work:one/1'
    assert_success
    assert_output --partial 'not traced (--dry-run)'
}

# bats test_tags=long
@test "a :command that names a node is not about the current one" {
    local other option
    node_start other
    other=$NODE
    NODE=$LIVE_NODE
    for option in "-n $other" "-n$other" "--node $other" "--node=$other" "--pid $(<"$(node_dir "$other")/pid")"; do
        run repl -q <<<":ps $option --json"
        assert_success
        assert_output --partial "\"node\":\"$other\""
        refute_output --partial "$NODE"
    done
    node_stop "$other"
}

# It waits for longer than the lease.
# bats test_tags=long
@test "a pipe of records that is slower than the lease does not interrupt the trace" {
    mkfifo "$BATS_TEST_TMPDIR/records"
    {
        until_true 30 armed 1
        pause 12 # longer than the lease of ten seconds
        on_node 'work:one(late)'
        echo '-record(work, {id}).'
    } >"$BATS_TEST_TMPDIR/records" 3>&- &
    RETURNED+=("$!")
    repl >"$OUT" 2>"$ERR" 3>&- <<END
work:one/1
:hrl $BATS_TEST_TMPDIR/records
paid: work:two(#work{id = I}, _) when I > 7
:wait 1 events
:probes
END
    assert_equal "$(grep -c 'call work:one(late)' "$OUT")" 1
    assert grep -q '^paid .*#work' "$OUT"
    refute grep -q 'no longer attached' "$ERR"
}

@test "Ctrl-C ends the reading of a pipe of records, and the trace continues" {
    mkfifo "$BATS_TEST_TMPDIR/records"
    repl_start -n "$NODE"
    repl_line 'work:one/1' ":hrl $BATS_TEST_TMPDIR/records" ':version'
    exec {writer}>"$BATS_TEST_TMPDIR/records" # the open returns when etrace opens the pipe to read
    child_kill "$TRACER" INT
    until_true 30 grep -q '^etrace [0-9]' "$OUT"
    exec {writer}>&-
    assert grep -q "^etrace: cannot read $BATS_TEST_TMPDIR/records: Interrupted system call" "$ERR"
    on_node 'work:one(still)'
    until_true 30 grep -q 'call work:one(still)' "$OUT"
    repl_line ':quit'
    repl_end
    trace_wait 20
}

# bats test_tags=long
@test "a node can be detached, attached again and lost while another node is traced" {
    node_start other
    other=$NODE
    NODE=$LIVE_NODE
    node_eval "$other" 'work:worker(w)' >/dev/null
    repl_start -n "$NODE"
    repl_line ":attach $other" 'work:one/1'
    until_true 30 grep -q 'Ctrl-C stops' "$ERR"
    node_eval "$other" 'work:one(there)' >/dev/null
    on_node 'work:one(here)'
    until_true 30 grep -q "$other .*call work:one(there)" "$OUT"
    until_true 30 grep -q "$NODE .*call work:one(here)" "$OUT"
    repl_line ":detach ${other%@*}"
    until_true 30 grep -q "$other: detached" "$ERR"
    assert_equal "$(node_eval "$other" 'control:companion_modules()')" '[]'
    on_node 'work:one(still)'
    until_true 30 grep -q 'call work:one(still)' "$OUT"
    repl_line ":attach $other"
    until_true 30 grep -q "$other: 1 probe\|$other · OTP .* attached" "$ERR"
    again() {
        node_eval "$other" 'work:one(again)' >/dev/null
        grep -q "$other .*call work:one(again)" "$OUT"
    }
    until_true 30 again
    repl_line ':set reattach on' ':version'
    # The answer to the next line proves that etrace has read :reattach.
    until_true 30 grep -q '^etrace [0-9]' "$OUT"
    node_stop "$other"
    until_true 30 grep -q "$other: will be attached again" "$ERR"
    on_node 'work:one(alone)'
    until_true 30 grep -q 'call work:one(alone)' "$OUT"
    repl_end
    trace_wait 20
}

@test "INT, TERM and HUP end repl with status 0 and leave nothing on the node" {
    for signal in INT TERM HUP; do
        repl_start -n "$NODE"
        until_true 30 grep -qs attached "$ERR"
        trace_end "$signal"
        assert_success
        repl_end
        assert_clean "$BEFORE" "$NODE"
    done
}

# bats test_tags=long
@test "files of -o stay open and complete while views, limits, filters and probes change" {
    local file=$BATS_TEST_TMPDIR/all
    script -o "$file.etr" -o "$file.json" -o "$file.txt" -- 1 'work:one/1 -> return\n' 'work:loop(5)' \
        ":wait 10 events\n:limit 1000\n:grep two\n:as tree\n:as summary\nwork:two/2\n:save $file.etr\n:output $file.txt\n:output $file.csv\n" || true
    assert_equal "$(grep -xc "etrace: cannot write $file.\(etr\|txt\): this etrace already appends to it" "$ERR")" 2
    assert grep -qx 'hint: :output without a file closes the open one' "$ERR"
    run timeout 30 "$ETRACE_BIN" replay "$file.etr" --json
    assert_success
    assert_equal "$(grep -c '"type":"call"' <<<"$output")" 5
    assert_equal "$(jq -r .type "$file.json" | sort | uniq -c | tr -s ' \n' ' ')" ' 1 attached 5 call 5 return 1 summary '
    assert_equal "$(wc -l <"$file.txt")" 10
    # A file that is opened later has only later events.
    assert_equal "$(wc -l <"$file.csv")" 1
    # A summary is complete only if its file stayed open until the end of the session.
    script -o "$file.2.json" -- 1 'work:one/1\n' 'work:loop(5)' ':wait 5 events\n'
    assert_equal "$(tail -qn 1 "$file.json" "$file.2.json" | jq -c '[.seen, .complete]' | paste -sd ' ')" '[10,false] [5,true]'
}

# bats test_tags=long
@test "repl refuses unusable settings, extra words and a :wait for nothing at once" {
    local line said
    while IFS='|' read -r line said; do
        status=0
        repl -q <<<"$line" >"$OUT" 2>"$ERR" || status=$?
        assert_equal "$status" 2
        assert_equal "$(head -n 1 "$ERR")" "etrace: $said"
    done <<'LINES'
:let X|:let takes NAME=TERM, not 'X'
:hrl /nonexistent|cannot read /nonexistent: No such file or directory
:rate 4294967296|:rate takes a number up to 4294967295, not 4294967296
:scrollback 1MB|:scrollback takes no arguments, but got '1MB'
:wait -1 events|:wait takes a duration, or N events
:wait 1 event|no probe is running, so no event can arrive
LINES
    # :wait includes events that are on their way when the limit is reached, but no later ones.
    status=0
    script --limit 2 -- 1 'work:one/1\n' 'work:loop(5)' ':wait 2 events\n:wait 100 events\n' || status=$?
    assert_equal "$status" 2
    assert grep -qx 'etrace: no probe is running, so no event can arrive' "$ERR"
    assert_equal "$(grep -c 'call work:one' "$OUT")" 2
}

@test "a new value of a variable of :let replaces the old one" {
    script -- 1 ':let N=1\n:let M=7\n:let N=2\n:set\nwork:one(^N)\n' 'work:one(1), work:one(2)' ':wait 1 events\n'
    assert_equal "$(grep -o 'call work:one.*' "$OUT")" 'call work:one(2)'
    assert_equal "$(grep -o '[MN]=[0-9]' "$OUT" | paste -sd ' ')" 'M=7 N=2'
}

# bats test_tags=long
@test ":for stops probes that run already, and :for without a value does not" {
    script -- 1 'work:one/1\n' ok ':for 50ms\n:wait 1 event\n:start\n:for 1500ms\n:for\n:wait 1700ms\n:probes\n' || assert_equal $? 2
    assert_equal "$(grep -c 'stopped after the time of :for' "$ERR")" 1
    assert grep -qx 'etrace: no probe is running, so no event can arrive' "$ERR"
    assert grep -qx '1        work:one/1' "$OUT"
}

# bats test_tags=long
@test "a node that is attached later does not begin the time of :for again" {
    local other
    node_start other
    other=$NODE
    NODE=$LIVE_NODE
    repl_start -n "$NODE" --for 2s
    repl_line 'work:one/1'
    until_true 30 armed 1
    is_over() {
        repl_line ":attach $other" ':wait 300ms' ":detach $other"
        pause 0.5
        grep -q 'stopped after the time of :for' "$ERR"
    }
    until_true 30 is_over
    repl_end
    trace_wait
    node_stop "$other"
}

@test ":wait for events is an error without a node, and counts no event" {
    local status=0
    script -- 1 'work:one/1\n' 'work:loop(2)' ':wait 1 events\n:detach\n:wait 5 events\n:wait 3 events\n:wait 1 events\n' || status=$?
    assert_equal "$status" 3
    assert_equal "$(grep -cx 'etrace: no node is attached, so no event can arrive' "$ERR")" 2
}

# bats test_tags=long
@test "--format and --fields are valid if the view of any output uses them" {
    script -q --format '{mfa}' -o "$BATS_TEST_TMPDIR/x.etr" -- 0 'work:one/1\n:wait 50ms\n' ok ''
    assert_equal "$(<"$ERR")" ''
    script -q --as json --fields mfa -o "$BATS_TEST_TMPDIR/x.csv" -- 0 'work:one/1\n:wait 50ms\n' ok ''
    assert_equal "$(<"$ERR")" ''
    script -q --as json --fields mfa -o "$BATS_TEST_TMPDIR/x.json" -- 0 '' ok '' || status=$?
    assert_equal "$status" 2
    assert_equal "$(head -n 1 "$ERR")" 'etrace: :fields only works with the views text, csv and tsv'
}

many='[work:one(lists:duplicate(500, x)) || _ <- lists:seq(1, 3000)], ok'
big=(--rate 0 --size 8k --items 1000)

# bats test_tags=long
@test "a full output file does not block standard output" {
    local status=0
    mkdir "$BATS_TEST_TMPDIR/small"
    shown() { wc -l <"$OUT"; }
    more() { [[ $(shown) -gt $until_now ]]; }
    timeout 100 unshare -m bash -c 'mount -t tmpfs -o size=64k small "$1" && exec "$ETRACE_BIN" repl -n "${@:2}" -o "$1/x.txt"' - \
        "$BATS_TEST_TMPDIR/small" "$NODE" "${big[@]}" --format '{mfa}' < <(
        echo 'work:one/1'
        until_true 30 armed 1
        for _ in {1..6}; do
            until_now=$(shown)
            on_node "$many" >&2
            until_true 10 more || exit
        done
        : >"$BATS_TEST_TMPDIR/all"
    ) >"$OUT" 2>"$ERR" 3>&- || status=$?
    assert_equal "$status" 1
    assert_equal "$(grep -c 'cannot write .*x.txt: No space left on device' "$ERR")" 1
    assert [ -e "$BATS_TEST_TMPDIR/all" ]
}

came() { [[ $(wc -l <"$OUT") -gt 2000 ]]; }
# The node may lose some of so many events, so send them again until enough have arrived.
more_came() { on_node "$many" >&2 && came; }
# Events are shown in the order of time, so once this event is shown, no earlier one is on its way. It is sent again only
# if the node has lost it: a second one could still be on its way.
last_came() { on_node 'work:two(a, b)' >&2 && until_true 10 grep -q 'work:two' "$OUT"; }

@test "events reach a slow -o file before :clear forgets them" {
    local file=$BATS_TEST_TMPDIR/x.json hold reading status=0
    mkfifo "$file"
    exec {hold}<>"$file"
    timeout 100 "$ETRACE_BIN" repl -n "$NODE" "${big[@]}" --format '{mfa}' -o "$file" < <(
        printf 'work:one/1\nlast: work:two/2\n'
        until_true 30 armed 2
        until_true 60 more_came
        until_true 60 last_came
        printf ':stop\n:clear\n:version\n:scrollback\n'
    ) >"$OUT" 2>"$ERR" 3>&- {hold}>&- &
    TRACER=$!
    TRACERS+=("$TRACER")
    until_true 100 came
    # While nobody reads the pipe, no event may be removed from the scrollback.
    until_true 1 grep -q '^0 events kept' "$OUT" || true
    exec {reading}<"$file" {hold}<&-
    cat <&"$reading" >"$file.all"
    exec {reading}<&-
    wait "$TRACER" || status=$?
    assert_equal "$status" 0
    assert grep -q '^0 events kept' "$OUT"
    refute grep -q 'came too fast' "$ERR"
    # The file has as many events as were shown, which are all that the node did not lose.
    assert_equal "$(grep -c '"f":"one"' "$file.all")" "$(grep -cx 'work:one/1' "$OUT")"
}

# bats test_tags=long
@test "after :nodes and :doctor, Ctrl-C stops the trace and not etrace" {
    local word
    for word in :nodes :doctor; do
        repl_start -n "$NODE" -o "$BATS_TEST_TMPDIR/x.json"
        repl_line work:one/1 "$word" :version
        until_true 50 grep -q '^etrace [0-9]' "$OUT"
        kill -INT "$TRACER"
        until_true 30 grep -q 'stopped; :start resumes' "$ERR"
        repl_end
        trace_wait
        assert_success
        assert_equal "$(tail -n 1 "$BATS_TEST_TMPDIR/x.json" | jq -c '[.type, .complete]')" '["summary",true]'
    done
}

# bats test_tags=long
@test "Ctrl-C gives up an output file that nobody reads" {
    local hold pid status=0
    mkfifo "$BATS_TEST_TMPDIR/x.txt"
    exec {hold}<>"$BATS_TEST_TMPDIR/x.txt"
    "$ETRACE_BIN" repl -n "$NODE" "${big[@]}" -o "$BATS_TEST_TMPDIR/x.txt" < <(
        echo 'work:one/1'
        until_true 30 armed 1
        until_true 30 more_came
    ) >"$OUT" 2>"$ERR" 3>&- {hold}>&- &
    pid=$!
    until_true 60 came
    over() { child_kill "$pid" INT; ! child "$pid"; }
    until_true 20 over || child_kill "$pid"
    wait "$pid" || status=$?
    exec {hold}<&-
    assert_equal "$status" 1
    grep -q 'the files are incomplete: writing was interrupted' "$ERR"
}

# Runs the lines in one script without a probe, and fails unless standard error has the text.
says() { # TEXT LINE...
    local text=$1
    shift
    repl < <(printf '%s\n' "$@") >"$OUT" 2>"$ERR" || true
    grep -qxF -- "$text" "$ERR" || fail "$(<"$ERR")"
}

@test ":save says how many events the file has, which filters reduce except in a recording" {
    local file=$BATS_TEST_TMPDIR/x
    script -- 1 'work:one/1\n' 'work:loop(5)' ":wait 5 events\n:grep one.3\n:save $file.txt\n:as csv -o $file.csv\n:save $file.etr\n"
    assert grep -qx "etrace: $file.txt: 1 event" "$ERR"
    assert grep -qx "etrace: $file.csv: 1 event" "$ERR"
    assert grep -qx "etrace: $file.etr: 5 events" "$ERR"
    assert_equal "$(wc -l <"$file.txt")" 1
    assert_equal "$("$ETRACE_BIN" replay "$file.etr" --json | grep -c '"type":"call"')" 5
}

@test "Ctrl-C while :save writes is an error, and the session continues" {
    local file=$BATS_TEST_TMPDIR/x hold kind first
    repl_start -n "$NODE" "${big[@]}"
    repl_line 'work:one/1'
    until_true 30 armed 1
    until_true 60 more_came
    for kind in save as; do
        mkfifo "$file.$kind.txt"
        exec {hold}<>"$file.$kind.txt"
        [[ $kind == save ]] && repl_line ":save $file.save.txt" || repl_line ":as text -o $file.as.txt"
        read -rN 1 first <&"$hold" # the file has begun, and the pipe cannot hold all of it
        child_kill "$TRACER" INT
        until_true 30 grep -qE "^etrace: $file.$kind.txt is incomplete: interrupted, it has (at most )?[0-9]+ events$" "$ERR"
        exec {hold}<&-
    done
    repl_line :version
    until_true 30 grep -q '^etrace [0-9]' "$OUT"
    repl_end
    trace_wait
    assert_failure 1
}

# bats test_tags=long
@test "a command without its colon is explained, and a misspelt word of another tool, too" {
    local word
    for word in help quit exit q stop top; do
        says "etrace: '$word' is a command: :$word" "$word"
        grep -qx "hint: $word:_ selects the functions of a module with this name" "$ERR"
    done
    repl < <(printf ':exit\n:nonsense\n') 2>"$ERR"
    run ! grep nonsense "$ERR"
    while IFS='|' read -r word text; do
        says "hint: $text" ":$word"
    done <<'END'
list|did you mean :ls?
connect|did you mean :attach?
duration|did you mean :for?
svg|did you mean :flame?
filter|:where EXPR tests results and durations, :grep RE the printed lines
stopp|did you mean :stop?
END
}

@test ":help explains actions and properties" {
    repl < <(printf ':help return\n:help dur\n:help stack\n') >"$OUT"
    assert_equal "$(<"$OUT")" "$(cat <<'END'
EXPR -> return
the result, or the exception, with the duration
EXPR where dur
the duration of the call, the collection, the time slice
EXPR -> stack
the stack, at most N frames
EXPR by stack
the functions that stack collected; for a result, those of its call
END
)"
    says "hint: did you mean :save?" ':help savee'
}

@test "~ at the beginning of a file name is the home directory" {
    export HOME=$BATS_TEST_TMPDIR/home
    mkdir "$HOME"
    says "etrace: $HOME/a.txt: 0 events" ':save ~/a.txt'
    says "etrace: $HOME/b.json: 0 events" ':as json -o ~/b.json'
    says "etrace: cannot read $HOME/none.etr: No such file or directory" ':replay ~/none.etr'
    says "etrace: cannot read $HOME/none.txt: No such file or directory" ':ls -f ~/none.txt'
    says "etrace: cannot read $HOME/none.txt: No such file or directory" ':ls --file=~/none.txt'
    says 'etrace: ~/^no_such/ matches no function on the node' ':top --for 100ms ~/^no_such/:_'
    repl < <(printf ':hrl ~/none.hrl\nwork:one/1\n') 2>"$ERR" || true
    grep -qF "$HOME/none.hrl" "$ERR"
    [[ -e $HOME/a.txt && -e $HOME/b.json ]]
}
