#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the formats of replay: columns, --format, and the syntax of terms.

bats_require_minimum_version 1.5.0
load ../lib/assert

shop=$ETRACE_ROOT/tests/fixtures/shop.etr

replay() { "$ETRACE_BIN" replay -q "$shop" "$@"; }

@test "--fields chooses the columns of csv, tsv and text" {
    run replay --as csv --fields pid,mfa
    assert_line -n 0 'pid,mfa'
    assert_line -n 2 '<0.93.0>,shop_orders:place/3'
    run replay --as tsv --fields type,name
    assert_line -n 0 $'type\tname'
    assert_line -n 1 $'receive\tanna'
    run replay --fields type,name
    assert_line -n 0 $'receive\tanna'
    run replay --fields node,type -o "$BATS_TEST_TMPDIR/a.csv"
    run head -n 2 "$BATS_TEST_TMPDIR/a.csv"
    assert_output $'node,type\nshop@127.0.0.1,receive'
}

@test "--format defines the lines of the text view" {
    run replay --format '{type}|{name}|{{{a}}}\t{dur}'
    assert_line -n 0 $'receive|anna|{}\t'
    assert_line --regexp $'^return\\|shop_orders\\|\\{4\\}\t[0-9.]+us$'
    run replay --format '{call} -> {value}{class}:{reason}' -g 'exception'
    assert_line --regexp '^shop_orders:take\(.*\) -> error:\{badmatch,nil\}$'
}

@test "fields and conditions have the same properties: depth, from and to of messages, args[N]" {
    run replay -e 'depth == 3' --fields type,depth
    assert_line $'send\t3'
    assert_line $'call\t3'
    refute_line --regexp '[^3]$'
    run replay -e 'from == pid' --fields type,pid,from
    assert_line --regexp $'^send\t(<[0-9.]+>)\t\\1$'
    run replay -e 'to =/= pid and from =/= pid' --fields to
    assert_output ''
    run replay -e 'args[1] == {tea,1}' --format '{args[1]}'
    assert_line '{tea,1}'
    refute_line --regexp '^[^{]'
    run replay --fields 'args[0]'
    assert_failure 2
}

@test "an unknown field is refused and the nearest name is suggested" {
    run replay --format '{tme}'
    assert_failure 2
    assert_output $'etrace: unknown field \'tme\'\nhint: did you mean time?'
    run replay --as csv --fields pid,mffa
    assert_failure 2
    assert_output $'etrace: unknown field \'mffa\'\nhint: did you mean mfa?'
    run replay --fields ,
    assert_failure 2
    run replay --as csv --fields qqqqqqqqq
    assert_line -n 1 --partial 'hint: one of: time ts'
    run replay --format '{time'
    assert_failure 2
    assert_output --partial 'missing } in the format'
}

@test "the manual describes every field, and no other" {
    run replay --as csv --fields qqqqqqqqq
    sed -n 's/^hint: one of: //p' <<<"$output" | tr ' ' '\n' | sort >"$BATS_TEST_TMPDIR/fields"
    sed -n '/^# FIELDS/,/^# CUT TERMS/{s/\\//g; s/^\*\(.*\)\*$/\1/p}' "$ETRACE_ROOT/man/etrace-views.7.scd" | sort >"$BATS_TEST_TMPDIR/man"
    diff "$BATS_TEST_TMPDIR/fields" "$BATS_TEST_TMPDIR/man"
}

@test "an option that the view does not use, and a word that an option does not know, are refused" {
    run replay --json --fields pid
    assert_failure 2
    assert_line -n 0 'etrace: --fields only works with the views text, csv and tsv'
    run replay --as csv --format '{pid}'
    assert_failure 2
    assert_line -n 0 'etrace: --format only works with the view text'
    run replay --terms elixr
    assert_failure 2
    assert_line -n 1 'hint: one of auto|erlang|elixir|json'
    run replay --time UTC
    assert_failure 2
    assert_line -n 1 'hint: one of local|utc|relative|delta, or did you mean --for?'
}

@test "--utc, --relative, --delta and --elixir are short for a word of --time or --terms, and the last one counts" {
    local pair
    for pair in '--utc|--time utc' '--relative|--time relative' '--delta|--time delta' '--elixir|--terms elixir' \
        '|--time relative --time local' '--delta|--utc --delta' '--utc|--delta --time utc' '--elixir|--terms json --elixir'; do
        # shellcheck disable=SC2086
        assert_equal "$(TZ=UTC-3 replay ${pair%|*})" "$(TZ=UTC-3 replay ${pair#*|})"
        # shellcheck disable=SC2086
        [[ $pair != --* ]] || assert_not_equal "$(TZ=UTC-3 replay ${pair%|*})" "$(TZ=UTC-3 replay)"
    done
}

@test "--terms json prints terms as JSON in JSON lines, in --format and in csv" {
    run bash -c '"$ETRACE_BIN" replay -q "$1" --json --terms json | jq -c "select(.f == \"place\" and .type == \"call\") | .args" | head -n 1' - "$shop"
    assert_output --regexp '^\[[0-9],\[\{"tuple":\["[a-z]+",[0-9]\]\}'
    run bash -c '"$ETRACE_BIN" replay -q "$1" --format "{args}" --terms json -g "call shop_orders:place" | jq -c ".[0] | type" | head -n 1' - "$shop"
    assert_output '"number"'
    run replay --as csv --fields type,value --terms json -g 'return shop_orders:reserve'
    assert_line 'return,"{""tuple"":[""ok"",17]}"'
}

@test "--elixir prints all terms in Elixir syntax, --terms erlang all in Erlang syntax" {
    run replay --elixir -g 'place'
    assert_line -n 0 --regexp '(:"\$gen_call"|:shop_orders\.place\(1?[0-9]*, \[\{?)'
    refute_output --partial "'\$gen_call'"
    run replay --terms erlang -g 'Repo'
    assert_output --partial "'Elixir.Shop.Repo':get("
    refute_output --partial 'call Shop.Repo.get'
    run replay --elixir --as folded
    assert_output --partial ':shop_orders.take/4'
}

@test "chosen columns show a loss differently from an event" {
    "$ETRACE_ROOT/build/tests/scene" losses >"$BATS_TEST_TMPDIR/l.etr"
    run "$ETRACE_BIN" replay -q "$BATS_TEST_TMPDIR/l.etr" --as csv --fields type,count,reason
    assert_line 'lost,4,guard'
    run "$ETRACE_BIN" replay -q "$BATS_TEST_TMPDIR/l.etr" --as csv --fields pid,mfa
    assert_line '*** 4 events lost here (guard) ***,'
}
