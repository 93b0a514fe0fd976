#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of README.md and share/doc/questions.md on the shop, as they are written. Suite 257 runs those of the
# other pages, and tests/release those that install a release or build etrace.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/alone

# Starts the shop as the only node, in a network of its own.
SHOP='
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    page_begin
    page_where=()
    mkdir ebin
    "$ETRACE_ERLC" -o ebin "$ETRACE_ROOT"/share/demo/*.erl
    NAME=shop@127.0.0.1
    up erl +pc unicode -kernel logger_level critical -pa "$PWD/ebin" -s shop start
    # A limit on events replaces the time, so what a command prints does not depend on the speed of the host.
    PAGE_EDIT="/ (top|requests|died|--ring|--snapshot-when) /! s/--for [0-9]+[sm]/--for 40s --limit 20/"
    # Runs the commands of a section. Each must print something, and the last one TEXT. A trace without a limit gets Ctrl-C
    # after its first line; the other commands end by themselves.
    section() { # FILE HEADING [TEXT]
        local command
        PAGE_EVENT=""
        while IFS= read -r command; do
            PAGE_UNTIL="it ends by itself"
            [[ $command == "etrace "[a-z]* || $command == *--limit* || $command == *--ring* || $command == *--snapshot-when* || $command == *" -- "* ]] || PAGE_UNTIL=${3:-}
            page_command "$command"
            [[ -s page.out || $command == *" -o "* || $command != *etrace* ]] || is "no output" "output of $command"
        done < <(page_blocks "$(page_file "$1")" "$2" | sed -n "s/^\$ //p" | sed -E "$PAGE_EDIT")
        has "$(<page.out)" "${3:-}"
    }
'

# bats test_tags=long
@test "README: each command prints something on the shop" {
    ALONE_NET=yes alone "$SHOP"'
        # Ctrl-C would end jq before it prints.
        PAGE_EDIT="s/ --json / --json --limit 200 /"
        section README.md "Examples"
        [[ $(grep -c "etrace " page.ran) -ge 4 ]]'
}

@test "README: the commands for your own node work on the shop" {
    ALONE_NET=yes alone "$SHOP"'
        PAGE_EVENT="" PAGE_STATUS="0|12" # 12: check found something
        ran=0
        while IFS= read -r command; do
            PAGE_UNTIL="it ends by itself"
            [[ $command != *return* ]] || PAGE_UNTIL=" call "
            page_command "$command"
            [[ -s page.out ]] || is "no output" "output of $command"
            ran=$((ran + 1))
        done < <(page_blocks "$ETRACE_ROOT/README.md" "Your own node" |
            sed "/^\$/d; s/NODE/shop@127.0.0.1/; s/my_app/shop_stock/; s/MyApp.Accounts/Shop.Repo/")
        is "$ran" 4'
}

# The text that the last command of a section must print; of the other sections, anything.
texts='
What is everything doing now?|(anna)
What fails, and why?|exception
Who sends what to this server?|receive from
Which functions take the time?|shop_
Where does the time of a request go?|reserve
Can I look at it later?|shop_orders:
What does an expression mean?|exception_trace
Can CI fail on it?|call Shop.Repo.
'

# bats test_tags=long
@test "questions: each command prints something on the shop" {
    export texts
    ALONE_NET=yes alone "$SHOP"'
        questions=$ETRACE_ROOT/share/doc/questions.md
        ran=0
        while IFS= read -r heading <&8; do
            [[ $(page_blocks "$questions" "$heading") == *"$ "* ]] || continue
            [[ $heading != "What happens while my program starts?" && $heading != "Can I stay on the node?" ]] || continue
            PAGE_STATUS=0
            [[ $heading != "Can CI fail on it?" ]] || PAGE_STATUS="0|10"
            text=${texts#*$'\''\n'\''"$heading|"}
            if [[ $text == "$texts" ]]; then text=""; else text=${text%%$'\''\n'\''*}; fi
            section questions.md "$heading" "$text"
            ran=$((ran + 1))
        done 8< <(sed -n "s/^## //p" "$questions")
        [[ $ran -ge 9 ]]
        for file in shop.etr shop.svg shop.txt shop.html; do [[ -s $file ]] || is "$file" "a file with something in it"; done'
}

# bats test_tags=long
@test "questions: a program is traced while it starts" {
    ALONE_NET=yes alone "$SHOP"'
        (
            PATH=${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/bin:$PATH
            mix new my_app
            cd my_app
            mkdir src
            printf "%s\n" "-module(my_app)." "-export([one/0])." "one() -> 1." >src/my_app.erl
            printf "%s\n" "ExUnit.start()" "defmodule MyTest do" "  use ExUnit.Case" "  test \"one\", do: assert(:my_app.one() == 1)" end >test/my_test.exs
            section questions.md "What happens while my program starts?" "call :my_app.one()"
        ) >log.mix 2>&1 || is "$(<log.mix)" "a trace"'
}

# bats test_tags=long
@test "questions: the interactive mode accepts the lines of the page" {
    ALONE_NET=yes alone "$SHOP"'
        page_blocks "$ETRACE_ROOT/share/doc/questions.md" "Can I stay on the node?" | sed -n "s/^etrace> //p" >lines
        is "$(wc -l <lines)" 5
        command=$(page_blocks "$ETRACE_ROOT/share/doc/questions.md" "Can I stay on the node?" | sed -n "s/^\\$ //p")
        # One order in ten takes longer than the filter asks for, so the next lines wait for its event.
        mkfifo typed
        $command <typed >out 2>&1 &
        repl=$!
        exec 9>typed
        head -n 2 lines >&9
        await grep -qF "[orders]" out
        tail -n +3 lines >&9
        exec 9>&-
        wait "$repl" || is "$(<out)" "success"
        has "$(<out)" "  function"
        [[ -s shop.etr ]]
        pipe=$(sed -n "s/^\`\(printf .*\)\`[.]$/\1/p" "$ETRACE_ROOT/share/doc/questions.md")
        bash -c "$pipe" >out 2>&1 || is "$(<out)" "success"
        has "$(<out)" "shop_stock:"'
}

# Every command between backquotes, except the names of commands that need a word more.
# bats test_tags=long
@test "README and questions: each command within the text runs on the shop" {
    ALONE_NET=yes alone "$SHOP"'
        grep -ohE "\`etrace [^\`]+\`" "$ETRACE_ROOT/README.md" "$ETRACE_ROOT/share/doc/questions.md" | tr -d "\`" | sort -u >commands
        while IFS= read -r command; do
            [[ ! $command =~ ^etrace\ (explain|replay|repl|top|why)$ ]] || continue
            PAGE_EVENT="" PAGE_UNTIL="it ends by itself"
            case $command in
                "etrace demo") PAGE_UNTIL=" call " ;;
                "etrace requests" | "etrace top "*) command+=" --for 2s" ;;
                "etrace --ssh "*) continue ;; # needs another host, which suite 257 has
                "etrace -n demo "*) PAGE_UNTIL=" return " ;;
                "etrace mcp")
                    echo "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}" >ping
                    command+=" <ping"
                    ;;
                "etrace died"*) command+=" --for 5s" ;;
                # The list of browse needs a terminal. q leaves it, and with the list of a live trace the trace.
                "etrace --browse"*) command="script -qec \"$command\" /dev/null <<<q" ;;
                "etrace browse"*)
                    etrace -q --for 1s -o shop.etr "shop_stock:_"
                    command="script -qec \"$command\" /dev/null <<<q"
                    ;;
            esac
            page_command "$command"
            [[ -s page.out ]] || is "no output" "output of $command"
        done <commands
        has "$(<page.ran)" "etrace info shop_stock:count/1"'
}

# Prints the commands of a picture, one a line.
commands_of() { # FILE
    python3 -c 'import sys, xml.dom.minidom as m
for text in m.parse(sys.argv[1]).getElementsByTagName("text"):
    line = "".join(part.firstChild.data for part in text.getElementsByTagName("tspan") if part.firstChild)
    line[:2] == "$ " and print(line)' "$1"
}

# bats test_tags=long
@test "share/picture makes the picture of the README, whose commands the committed one shows" {
    local picture=$BATS_TEST_TMPDIR/session.svg
    PATH=${ETRACE_ERL%/*}:$PATH run -0 "$ETRACE_ROOT/share/picture" "$picture"
    commands_of "$picture" >"$BATS_TEST_TMPDIR/made"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/made")" -eq 6 ]
    commands_of "$ETRACE_ROOT/share/doc/session.svg" | diff "$BATS_TEST_TMPDIR/made" -
    grep -q 'prefers-reduced-motion:no-preference' "$picture"
}

# bats test_tags=long
@test "share/try traces the shop, and the commands that share/try --keep prints work" {
    ALONE_NET=yes alone '
        . "$ETRACE_ROOT/tests/lib/pages.bash"
        page_begin
        page_where=()
        cd "$ETRACE_ROOT"
        page_start "$(page_blocks README.md Install | grep "^share/try")" "$BATS_TEST_TMPDIR/try"
        wait "$PAGE_PID" || is "$(cat "$BATS_TEST_TMPDIR"/try*)" success
        has "$(<"$BATS_TEST_TMPDIR/try")" "call shop_stock:reserve("
        has "$(<"$BATS_TEST_TMPDIR/try")" "call Shop.Repo.get(Shop.User, "
        has "$(<"$BATS_TEST_TMPDIR/try")" "calls  errors"
        cd "$BATS_TEST_TMPDIR"
        mkfifo enter
        exec 9<>enter
        (cd "$ETRACE_ROOT" && exec share/try --keep <&9 >"$BATS_TEST_TMPDIR/kept" 2>"$BATS_TEST_TMPDIR/log.kept") &
        kept=$!
        await grep -q "stays open" kept
        sed -n "/stays open/,\$s/^    //p" kept >commands
        is "$(wc -l <commands)" 4
        eval "$(head -n 1 commands)"
        PAGE_EVENT=shop
        while IFS= read -r command; do
            [[ $command == build/etrace* ]] || is "$command" "a command of build/etrace"
            page_command "cd \"$ETRACE_ROOT\" && exec $command"
            has "$(<page.out)" shop
        done < <(tail -n +2 commands)
        echo >&9
        wait "$kept"'
}

# Blocks that are run elsewhere, by their first line.
blocks='
etrace nodes                                  # what runs here, and whether etrace can attach|the test of your own node
sha256sum --ignore-missing -c SHA256SUMS|tests/release/programs.bats
meson setup build && ninja -C build && meson install -C build|tests/release/debian.bats
share/try|the test above
tests/run|this run
$ etrace repl -n shop|the test of the interactive mode
'

@test "the suite runs every section of the two pages, and knows every other block" {
    local file heading first
    # shellcheck source=tests/lib/pages.bash
    . "$ETRACE_ROOT/tests/lib/pages.bash"
    for file in README.md questions.md; do
        while IFS= read -r heading; do
            [[ $file == README.md || $heading == "Can I stay"* ]] || continue
            grep -qF -e "section $file \"$heading\"" -e "section $file $heading " "$BATS_TEST_FILENAME" && continue
            while IFS= read -r first; do
                [[ $blocks == *$'\n'"$first|"* ]] || fail "$file: a block in $heading is not run: $first"
            done < <(page_blocks "$(page_file "$file")" "$heading" | awk 'new != "no" { print } { new = $0 == "" ? "" : "no" }')
        done < <(sed -n 's/^#* //p' "$(page_file "$file")")
    done
}
