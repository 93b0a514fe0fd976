#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Compares every view of a recording with the file in tests/fixtures, and checks the formats with other tools.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/commands

fixtures=$ETRACE_ROOT/tests/fixtures
scene=$ETRACE_ROOT/build/tests/scene

replay() { "$ETRACE_BIN" replay -q "$@"; }

@test "the output of every view equals its file in tests/fixtures" {
    ETRACE_BIN=$ETRACE_BIN "$fixtures/renew" "$BATS_TEST_TMPDIR"
    for file in "$fixtures"/shop.* "$BATS_TEST_TMPDIR"/shop.*; do
        [[ $file != *.etr ]] || continue
        diff -u "$fixtures/${file##*/}" "$BATS_TEST_TMPDIR/${file##*/}" || fail "${file##*/} differs"
    done
}

@test "-o chooses the view by the extension of the file" {
    cd "$BATS_TEST_TMPDIR"
    replay "$fixtures/shop.etr" -o a.svg -o a.html -o a.folded -o a.speedscope.json -o a.pprof -o a.perfetto.json -o a.callgrind \
        -o a.mmd -o a.csv -o a.tsv -o a.json -o a.ndjson -o a.txt -o a.log -o a.etr >/dev/null
    for name in folded speedscope pprof perfetto callgrind; do
        cmp a.$name* "$fixtures/shop.$name"
    done
    cmp a.mmd "$fixtures/shop.mmd"
    run head -n 1 a.html
    assert_output '<!doctype html>'
    run grep -c 'etrace: flame graph' a.html
    assert_output 2
    replay a.etr --utc | cmp - "$fixtures/shop.text"
}

@test "--as chooses among the views of an extension, and its view goes to the file instead of standard output" {
    cd "$BATS_TEST_TMPDIR"
    run replay "$fixtures/shop.etr" --as sequence -o a.html
    assert_success
    assert_output ''
    run grep -c 'who sent what to whom' a.html
    assert_output 1
    run replay "$fixtures/shop.etr" --as flame -o b.html -o b.svg
    assert_output ''
    run grep -l 'etrace: flame graph' b.html b.svg
    assert_output $'b.html\nb.svg'
    # Both outputs get the lines: --as goes to standard output unless an -o file has the format of that view.
    replay "$fixtures/shop.etr" --json -o c.json >c.out
    cmp c.out c.json
    replay "$fixtures/shop.etr" --as summary -o d.svg | cmp - "$fixtures/shop.summary"
    run replay "$fixtures/shop.etr" --as json -o d.speedscope.json
    jq -e '.exporter == "etrace"' d.speedscope.json
}

@test "-o obeys --as where the extension leaves the view open" {
    cd "$BATS_TEST_TMPDIR"
    replay "$fixtures/shop.etr" --utc --as tree -o tree.txt | cmp - "$fixtures/shop.tree"
    cmp tree.txt "$fixtures/shop.tree"
    for view in perfetto speedscope requestjson; do
        replay "$fixtures/shop.etr" --as "$view" -o "$view.json" >"$view.out"
        replay "$fixtures/shop.etr" --as "$view" | cmp - "$view.json"
    done
    assert_equal "$(<perfetto.out)" ''
    # An extension that no view has.
    replay "$fixtures/shop.etr" -c -o summary.dat >out
    assert_equal "$(<out)" ''
    cmp summary.dat "$fixtures/shop.summary"
    run replay "$fixtures/shop.etr" -o open.dat
    assert_failure 2
    assert_line -n 0 'etrace: no view has the file extension of open.dat'
}

@test "a page in a file leaves a terminal empty unless a view is named" {
    for output in '-o page.svg' '-o page.html -o copy.etr'; do
        run script -qec "cd '$BATS_TEST_TMPDIR' && '$ETRACE_BIN' replay -q '$fixtures/shop.etr' $output" /dev/null
        assert_success
        assert_output ''
    done
    for output in '--as text -o page.svg' '-o copy.etr' '-o copy.csv'; do
        run script -qec "cd '$BATS_TEST_TMPDIR' && '$ETRACE_BIN' replay -q '$fixtures/shop.etr' $output" /dev/null
        assert_success
        assert_output --partial 'shop_orders:place(5'
    done
}

@test "a flame graph is refused on a terminal, and -o writes it to a file" {
    run script -qec "'$ETRACE_BIN' replay -q '$fixtures/shop.etr' --as flame" /dev/null
    assert_failure 2
    assert_output --partial "the view 'flame' is not for a terminal: use -o FILE, or a pipe"
    run script -qec "'$ETRACE_BIN' replay -q '$fixtures/shop.etr' --as flame -o '$BATS_TEST_TMPDIR/a.svg'" /dev/null
    assert_success
}

@test "an unknown view has a hint with all views, and a command that is refused leaves no file" {
    local name
    run replay "$fixtures/shop.etr" --as qqqqqqqqq
    assert_failure 2
    for name in $(views_of_help); do [[ "${lines[1]} " == *" $name "* ]] || fail "$name is missing: ${lines[1]}"; done
    for name in new.svg new.etr new.json; do
        run replay "$fixtures/shop.etr" -o "$BATS_TEST_TMPDIR/$name" --as summary --sort nope
        assert_failure 2
        [[ ! -e $BATS_TEST_TMPDIR/$name ]] || fail "$name was made"
    done
    : >"$BATS_TEST_TMPDIR/old.json"
    run replay "$fixtures/shop.etr" -o "$BATS_TEST_TMPDIR/old.json" --as summary --sort nope
    [[ -e $BATS_TEST_TMPDIR/old.json ]]
}

@test "-a is refused for a file that is a single document" {
    run replay "$fixtures/shop.etr" -a -o "$BATS_TEST_TMPDIR/a.svg"
    assert_failure 2
    assert_line -n 0 "etrace: -a cannot append to $BATS_TEST_TMPDIR/a.svg: the file is a single document"
}

@test "every view reports lost events and incomplete calls" {
    "$scene" losses >"$BATS_TEST_TMPDIR/losses.etr"
    for name in $(views_of_help); do
        [[ $name != @(record|pprof|request*|died?sv|diedjson|table*) ]] || continue # binary, or without events that were lost
        run replay "$BATS_TEST_TMPDIR/losses.etr" --as "$name"
        assert_success
        assert_output --regexp '4 events lost|lost[,'$'\t''].*guard[,'$'\t''].*4|"count":4,"reason":"guard"'
    done
    for name in flame folded speedscope perfetto callgrind sequence summary hist; do
        run replay "$BATS_TEST_TMPDIR/losses.etr" --as "$name"
        assert_output --partial '2 calls incomplete'
    done
    # Only the two complete calls have a duration. The views leave out a call whose end may have been lost.
    run replay "$BATS_TEST_TMPDIR/losses.etr" --as folded
    assert_line 'shop:order/1 7000'
    assert_line 'shop:order/1;shop:price/1 5000'
    run -0 jq '[.profiles[].events[] | select(.type == "O")] | length' <(replay "$BATS_TEST_TMPDIR/losses.etr" --as speedscope)
    assert_output 2
}

@test "a pprof profile has the stacks and times of the folded view, and the number of calls" {
    replay "$fixtures/shop.etr" --as pprof >"$BATS_TEST_TMPDIR/a.pprof"
    /usr/bin/python3 "$ETRACE_ROOT/tests/lib/pprof_folded.py" <"$BATS_TEST_TMPDIR/a.pprof" >"$BATS_TEST_TMPDIR/decoded"
    diff <(sort "$fixtures/shop.folded") <(grep -v '^#' "$BATS_TEST_TMPDIR/decoded" | sort)
    run -0 grep '^#' "$BATS_TEST_TMPDIR/decoded"
    assert_output $'# calls count\n# time nanoseconds'
    # The losses are in a comment.
    "$scene" losses >"$BATS_TEST_TMPDIR/losses.etr"
    run -0 grep -ac '4 events lost (guard)' <(replay "$BATS_TEST_TMPDIR/losses.etr" --as pprof)
}

@test "stacks do not depend on when a filter decides, and a hidden caller leaves no gap" {
    # The duration of a call is known only when it ends, after the calls inside it have ended.
    replay "$fixtures/shop.etr" --as folded -e 'dur > 1ns' | diff "$fixtures/shop.folded" -
    run replay "$fixtures/shop.etr" --as folded -e 'dur > 20us'
    assert_line --regexp '^shop_orders:handle_call/3;shop_orders:take/4;shop_orders:reserve/1 [0-9]+$'
    own=$output
    run replay "$fixtures/shop.etr" --as folded -v -g 'shop_orders:take'
    assert_line --regexp '^shop_orders:handle_call/3;shop_orders:reserve/1 [0-9]+$'
    refute_output --partial 'take'
    run replay "$fixtures/shop.etr" --as folded -g 'shop_orders:total'
    assert_line --regexp '^shop_orders:total/2 [0-9]+$'
    # No filter may make a view count the same time twice.
    all=$(awk '$NF ~ /^[0-9]+$/ { sum += $NF } END { print sum }' "$fixtures/shop.folded")
    ((all >= $(awk '$NF ~ /^[0-9]+$/ { sum += $NF } END { print sum }' <<<"$own")))
}

@test "speedscope output closes every call in order, and its times never decrease" {
    "$scene" frames 3000 >"$BATS_TEST_TMPDIR/frames.etr"
    for file in "$fixtures/shop.etr" "$BATS_TEST_TMPDIR/frames.etr"; do
        replay "$file" --as speedscope >"$BATS_TEST_TMPDIR/s.json"
        jq -e '
            (.shared.frames | length) as $frames
            | ."$schema" == "https://www.speedscope.app/file-format-schema.json"
            and (.profiles | length > 0)
            and all(.profiles[]; . as $p
                | .type == "evented" and .unit == "nanoseconds" and (.name | type == "string")
                and (reduce .events[] as $e ({ok: true, at: $p.startValue, open: []};
                    .ok = (.ok and $e.at >= .at and $e.frame < $frames and ($e.type == "O" or .open[-1] == $e.frame))
                    | .at = $e.at
                    | .open = (if $e.type == "O" then .open + [$e.frame] else .open[:-1] end))
                    | .ok and .open == [] and .at <= $p.endValue))' "$BATS_TEST_TMPDIR/s.json"
    done
}

@test "slices of perfetto output nest, and every arrow has both ends" {
    replay "$fixtures/shop.etr" --as perfetto >"$BATS_TEST_TMPDIR/p.json"
    jq -e '
        [.traceEvents[] | select(.ph == "X" and .cat == "call")] as $calls
        | ($calls | length) > 10
        and all(.traceEvents[]; (.pid | type == "number") and (.tid | type == "number") and (.ts | type == "number") and .name)
        and ([.traceEvents[] | select(.ph == "f") | .id] | length > 3 and (unique | length) == length)
        and ([.traceEvents[] | select(.ph == "f") | .id] - [.traceEvents[] | select(.ph == "s") | .id]) == []
        and ([.traceEvents[] | select(.ph == "M" and .name == "thread_name") | .args.name] | index("<0.92.0>(shop_orders)"))
        and ($calls | group_by(.tid) | all(.[]; . as $t | all(range(length); . as $i | all(range($i); . as $j
            | ($t[$i].ts >= $t[$j].ts + $t[$j].dur - 0.0005) or ($t[$j].ts >= $t[$i].ts + $t[$i].dur - 0.0005)
            or ($t[$i].ts >= $t[$j].ts - 0.0005 and $t[$i].ts + $t[$i].dur <= $t[$j].ts + $t[$j].dur + 0.0005)
            or ($t[$j].ts >= $t[$i].ts - 0.0005 and $t[$j].ts + $t[$j].dur <= $t[$i].ts + $t[$i].dur + 0.0005)))))
    ' "$BATS_TEST_TMPDIR/p.json" >/dev/null
}

@test "callgrind_annotate reads the exclusive and the inclusive costs" {
    cd "$BATS_TEST_TMPDIR"
    replay "$fixtures/shop.etr" -o shop.callgrind >/dev/null
    run --separate-stderr callgrind_annotate --threshold=100 shop.callgrind
    assert_success
    assert_equal "$stderr" ''
    total=$(awk '{ sum += $NF } END { print sum }' "$fixtures/shop.folded")
    assert_equal "$(tr -d , <<<"$output" | awk '/PROGRAM TOTALS/ { print $1 }')" "$total"
    own=$(awk '$1 ~ /take\/4$/ { print $NF }' "$fixtures/shop.folded")
    assert_equal "$(tr -d , <<<"$output" | awk '/shop_orders:take\/4/ { print $1 }')" "$own"
    run --separate-stderr callgrind_annotate --threshold=100 --inclusive=yes --tree=caller shop.callgrind
    assert_success
    inclusive=$(awk '$1 ~ /take\/4/ { sum += $NF } END { print sum }' "$fixtures/shop.folded")
    assert_equal "$(tr -d , <<<"$output" | awk '/\* .*shop_orders:take\/4/ { print $1 }')" "$inclusive"
    # callgrind_annotate prints the caller above the function, with the number of calls.
    assert_output --regexp 'gen_server:try_handle_call/4 \(5x\)'
}

@test "the sequence view connects every message to its receiver, also a reply to an alias" {
    run replay "$fixtures/shop.etr" --as sequence
    assert_line --regexp "^    p1->>p2: \{'\\\$gen_call',"
    assert_line --regexp '^    p2->>p1: \{\[alias'
    "$scene" messages 2000 >"$BATS_TEST_TMPDIR/m.etr"
    run bash -c '"$ETRACE_BIN" replay -q "$1" --as sequence | grep -c -- "->>"' - "$BATS_TEST_TMPDIR/m.etr"
    assert_output 2000
}

@test "text of a node cannot add markup to a page" {
    "$scene" hostile >"$BATS_TEST_TMPDIR/hostile.etr"
    cd "$BATS_TEST_TMPDIR"
    replay hostile.etr --as flame -o a.svg -o a.html
    replay hostile.etr --as sequence -o b.html
    # The text of the node must not add a script, end one early, or add a tag to the page.
    for file in a.svg a.html b.html; do
        run grep -c '<script' "$file"
        assert_output 1
        run grep -c '</script' "$file"
        assert_output 1
        run grep -c '<img' "$file"
        assert_output 0
    done
    run grep -o ']]>' a.svg
    assert_output $']]>\n]]>'
    run replay hostile.etr --as sequence
    refute_output --partial '<'
}

@test "a sequence diagram keeps only the first 200,000 messages" {
    "$scene" messages 210000 >"$BATS_TEST_TMPDIR/m.etr"
    run bash -c '"$ETRACE_BIN" replay -q "$1" --as sequence | tail -n 1' - "$BATS_TEST_TMPDIR/m.etr"
    assert_output --regexp '^    Note over p1: [0-9]+ left out#?:? ?.*only the first 200000 are kept$'
}

@test "20,000 concurrent processes have complete stacks; for 40,000 etrace prints a warning" {
    "$scene" processes 20000 >"$BATS_TEST_TMPDIR/p.etr"
    run replay "$BATS_TEST_TMPDIR/p.etr" --as folded
    assert_success
    assert_equal "${#lines[@]}" 2
    assert_line 'shop:outer/1;shop:inner/1 20000000'
    "$scene" processes 40000 >"$BATS_TEST_TMPDIR/p.etr"
    # Limits the processor time: the reader must not search all of its slots for each process that has none.
    in_time() { (ulimit -t 10 && replay "$@"); }
    run in_time "$BATS_TEST_TMPDIR/p.etr" --as folded
    assert_line --regexp '^shop:outer/1;shop:inner/1 [0-9]+$'
    assert_line '# *** too many stacks or processes: some calls are missing or counted in their callers ***'
}

@test "a page refers to no address that a browser would fetch" {
    cd "$BATS_TEST_TMPDIR"
    replay "$fixtures/shop.etr" --as flame -o a.svg -o a.html
    replay "$fixtures/shop.etr" --as sequence -o b.html
    run grep -hoE "(src|href)=|url\(|@import|https?://[^\"' ]*" a.svg a.html b.html
    assert_success
    for line in "${lines[@]}"; do
        [[ $line == http://www.w3.org/* ]] || fail "$line"
    done
}
