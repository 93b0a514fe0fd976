#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests etrace browse on a terminal, without a node: the lines against those of replay at several widths, the keys, and
# the ends. unit browse compares every way to a line.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/process
load ../lib/terminal

setup_file() {
    local scene=$ETRACE_ROOT/build/tests/scene copy=$ETRACE_ROOT/build/tests/checkpoints
    cd "$BATS_FILE_TMPDIR" || return 1
    "$scene" messages 40000 | "$copy" 20000 >messages.etr
    "$scene" frames 20000 | "$copy" 20000 >frames.etr
    "$scene" losses >losses.etr
    cp "$ETRACE_ROOT/tests/fixtures/shop.etr" .
    head -c $(($(stat -c %s messages.etr) / 2)) messages.etr >cut.etr
}

setup() { cd "$BATS_FILE_TMPDIR" || return 1; }
teardown() { terminal_end; }

# Descriptor 7 is that of a writer (write_begin), whose lock the terminal must not inherit.
browse() { terminal "$1" "$2" "exec env TZ=UTC $ETRACE_BIN browse ${*:3}" 7>&-; }
# After the end, the terminal shows the status and whether it echoes.
browse_to_end() {
    terminal 80 20 "TZ=UTC $ETRACE_BIN browse $*
        echo \"status \$?\"
        stty -a | grep -ow -- '-*echo'
        exec sleep 1000" 7>&-
}
browse_pid() { pgrep -P "$(terminal_pid)" -f ' browse '; }

# Prints lines of the replay as a screen of this width shows them.
cut_lines() { # WIDTH FIRST COUNT FILE
    TZ=UTC "$ETRACE_BIN" replay -q "$4" | tail -n "+$2" | head -n "$3" | awk -v width="$1" '
        width < 60 { sub(/^[^ ]* /, "") }
        { print (length($0) > width ? substr($0, 1, width - 1) "…" : $0) }'
}

list_lines() { screen | sed -n '2,$p' | head -n "$1"; }

same_lines() { # WIDTH FIRST COUNT FILE
    local want
    want=$(cut_lines "$@")
    until_true 20 shows_lines "$3" "$want" || fail "the terminal shows $(screen); wanted: $want"
}
shows_lines() { [[ $(list_lines "$1") == "$2" ]]; }

@test "the lines are those of replay, cut to the width of the terminal" {
    for width in 30 40 80 120 200; do
        browse "$width" 22 messages.etr
        same_lines "$width" 1 20 messages.etr
        keys G
        same_lines "$width" 79981 20 messages.etr
        keys b
        same_lines "$width" 79961 20 messages.etr
        keys g Space
        same_lines "$width" 21 20 messages.etr
        terminal_end
    done
}

@test "a change of the size of the terminal shows as many lines as fit" {
    browse 100 22 messages.etr
    same_lines 100 1 20 messages.etr
    resized 40 12
    same_lines 40 1 10 messages.etr
    resized 70 40
    same_lines 70 1 38 messages.etr
    keys G
    same_lines 70 79963 38 messages.etr
    resized 25 3
    await '100.0%'
    resized 100 22
    same_lines 100 79981 20 messages.etr
}

@test "a call and its result share a line, with the duration at its end" {
    browse 100 22 frames.etr
    await '^18:26:50.000001 <0.1.0> call level6:work0\(1\) -> 2  1us$'
    await '^18:26:50.000001 <0.1.0> call level0:work0\(1\) -> …$'
    keys t
    await '^  0.000000 <0.1.0> call level6:work0\(1\) -> 2  1us$'
    keys t
    await '^  0.000001 <0.1.0> call level6:work1\(1\) -> 2  1.04us$'
    keys t
    await '^18:26:50.000001 '
    terminal_end
    browse 120 30 shop.etr
    await 'call shop_orders:place\(5, .* -> \{error,\{badmatch,nil\}\}  306us$'
}

@test "an event opens with a line for each field and the calls around it" {
    browse 100 30 shop.etr
    await 'event 1 '
    typed jjjjjjjj
    await 'event 9 '
    keys Enter
    await '^call shop_orders:take\($'
    await '^    next => 586,$'
    await '^return shop_orders:take/4 = '
    keys G
    await '^Open around it in this process, outermost first:$'
    await '^call shop_orders:handle_call\($'
    keys Escape
    await 'event 9 '
}

@test "searches go forward and backward" {
    browse 100 22 messages.etr
    await 'event 1 '
    entered '/job,3999\}'
    await 'event 7,999 · /job,3999'
    keys n
    await 'event 8,000 '
    keys n
    await '^not found'
    keys N
    await 'event 7,999 '
    entered '?\{job,(17|1)\}$'
    await 'event 36 '
    keys n
    await 'event 35 '
    keys n n n
    await '^not found'
    await 'event 3 '
    entered '/('
    await '^.*missing closing parenthesis'
    typed q
}

@test "the matches of a search are inverted, and upright in the inverted line that is chosen" {
    local code=$'(\033\\[[0-9;]*m)+'
    browse 100 22 messages.etr
    await 'event 1 '
    entered '/job,(3|99)'
    await 'event 7 '
    assert_equal "$(screen_codes | grep -cE "\{${code}job,3${code}\}")" 2
    assert_equal "$(screen_codes | grep -oE $'\033\\[7m(18:|job,3)' | xargs)" $'\033[7m18: \033[7mjob,3'
    entered '/x*|send' # matches nothing, everywhere
    await '/x\*'
    run -0 screen_codes
    assert_output --partial 'send'
}

@test "a filter is a regular expression or a condition, and nothing typed ends it" {
    browse 120 22 messages.etr
    await 'event 1 '
    entered '&job,39[0-9]5\}'
    await 'event 7,811 '
    await '· & job,39'
    diff <(list_lines 20) <(TZ=UTC "$ETRACE_BIN" replay -q messages.etr -g 'job,39[0-9]5\}')
    keys G
    await 'event 7,992 '
    entered '&'
    await_not '· & job'
    await 'event 7,992 '
    entered '&dur > 300us'
    await_not 'receive'
    terminal_end
    browse 120 22 shop.etr
    await 'event 1 '
    entered '&dur > 180us'
    await_not 'receive'
    await 'handle_call.* 189us$'
    entered '&dur > oops'
    await '^a duration needs a unit'
    entered '&to =~ oops'
    await_not '^a duration needs a unit'
}

@test "the next slow event, the result of a call and the next event of a process are found" {
    browse 120 22 shop.etr
    await 'event 1 '
    typed '>'
    entered 'soon'
    await 'not a duration'
    typed '>'
    entered '300us'
    await 'event 2 '
    typed '>'
    await 'event 94 '
    typed '>'
    await 'no slower event'
    typed 'g('
    await 'event 2 '
    terminal_end
    browse 120 22 frames.etr
    await 'event 1 '
    typed ')'
    await_not 'event 1 '
    await 'return level0:work0/1 = 2'
    typed ')'
    await 'event 1 '
}

# Event 3 is a call of a gen_server, with other events before it is received. Event 21 is a reply, to an alias. The reply
# of event 28 goes to a process whose events were not recorded.
@test "a sent message and the event that received it lead to each other" {
    browse 120 22 shop.etr
    await 'event 1 '
    typed 'jj'
    await 'event 3 '
    typed ')'
    await 'event 6 '
    typed ')'
    await 'event 3 '
    typed '/'
    entered 'send to #Ref'
    await 'event 21 '
    typed ')'
    await 'event 22 '
    typed ')'
    await 'event 21 '
    typed 'n'
    await 'event 28 '
    typed ')'
    await 'no event that received this message follows'
    typed 'g)'
    await 'the event that sent this message is not known here'
}

@test "x shows the commands that trace more of the same, and the end prints them" {
    browse_to_end "$ETRACE_ROOT/tests/fixtures/shop.etr"
    await 'event 1 '
    typed '>'
    entered '300us'
    await 'event 2 '
    typed x
    await "^1 this function     etrace -n [^ ]+ '[^ ]+/[0-9] -> return'$"
    await "^2 in this process   etrace -n [^ ]+ -P '<[0-9.]+>' '"
    await "^3 slower than this  etrace -n [^ ]+ -e 'dur > [0-9.]+[mu]s'"
    typed 2
    await '^a recording cannot change; the end prints the commands · Esc back'
    keys Escape
    await 'event 2 '
    typed q
    await "^etrace -n [^ ]+ '[^ ]+/[0-9] -> return'$"
    await "^etrace -n [^ ]+ -e 'dur > [0-9.]+[mu]s' '"
    await '^status 0$'
    run screen
    bash -nc "$(grep '^etrace -n' <<<"$output" | head -n 1)"
    terminal_end
    browse 90 20 messages.etr
    await 'event 1 '
    typed x
    await "^2 in this process   etrace .*-P '<[0-9.]+>' 'send\(_, _\)' 'recv\(_\)'$"
}

@test "Ctrl-C stops a search, and then ends the program" {
    browse_to_end messages.etr
    await 'event 1 '
    entered '/(.+)+(.+)+(.+)+[~^]{3}'
    await '^searching'
    keys C-c
    await '^stopped'
    await 'event 1 '
    keys C-c
    await '^status 0$'
    await '^echo$'
}

@test "the terminal is as before after every end" {
    browse_to_end messages.etr
    await 'event 1 '
    typed q
    await '^status 0$'
    await '^echo$'
    terminal_end
    for signal in TERM INT HUP; do
        browse_to_end messages.etr
        await 'event 1 '
        kill "-$signal" "$(browse_pid)"
        await '^status 0$'
        await '^echo$'
        terminal_end
    done
}

@test "INT and TERM end browse while it looks for the checkpoints of a recording" {
    local first pid
    first=$(od -An -tu4 -j24 -N4 shop.etr) # bytes of the first block, which follow 24 of the file's header and 16 of its own
    head -c $((24 + 16 + first)) shop.etr >long.etr
    truncate -s 100G long.etr # zeros are empty blocks
    # Reading the recording alone takes a few thousand bytes.
    looks() { pid=$(browse_pid) && [[ $(awk '$1 == "rchar:" { print $2 }' "/proc/$pid/io") -gt 1000000 ]]; }
    for signal in INT TERM; do
        browse_to_end long.etr
        until_true 20 looks
        kill "-$signal" "$pid"
        await "^status $((128 + $(kill -l "$signal")))$"
        terminal_end
    done
}

@test "a damaged recording shows what is sound, and the end says what is wrong" {
    browse_to_end cut.etr
    await 'event 1 '
    typed G
    await '^ *\*\*\* .*the recording is truncated'
    typed q
    await '^etrace: cut.etr: the recording is truncated'
    await '^status 1$'
    await '^echo$'
}

@test "without a terminal, or with a pipe, browse names replay" {
    run "$ETRACE_BIN" browse messages.etr </dev/null
    assert_failure 2
    assert_output 'etrace: browse needs a terminal; etrace replay shows recordings without one'
    run "$ETRACE_BIN" browse
    assert_failure 2
    assert_line -n 0 'etrace: no recording given'
    terminal 80 20 "TERM=dumb $ETRACE_BIN browse messages.etr
        ln -sf /dev/zero 'a;b'
        for file in - /dev/zero 'a;b' $ETRACE_BIN; do $ETRACE_BIN browse \"\$file\"; done
        echo end
        exec sleep 1000"
    await '^end$'
    run screen
    assert_line 'etrace: browse needs a terminal; etrace replay shows recordings without one'
    assert_line 'etrace: /dev/zero is no file that can be read more than once'
    assert_line 'hint: etrace replay /dev/zero'
    assert_line "hint: etrace replay 'a;b'"
    assert_line 'etrace: standard input is no file that can be read more than once'
    assert_line --partial 'is not a recording of etrace'
}

@test "browse says in one line what is no recording" {
    : >empty.etr
    mkdir -p dir.etr
    head -c 10 messages.etr >short.etr
    head -c 24 messages.etr >header.etr
    terminal 100 20 "for file in empty.etr dir.etr short.etr header.etr; do $ETRACE_BIN browse \$file; done; echo end; exec sleep 1000"
    await '^end$'
    run screen
    assert_line -n 0 'etrace: empty.etr is not a recording of etrace'
    assert_line -n 1 'etrace: dir.etr is a directory'
    assert_line -n 2 'etrace: short.etr: the recording is truncated in its header, at byte 10'
    assert_line -n 3 'etrace: header.etr: the recording is truncated: its end is missing at byte 24'
    assert_line -n 4 end
}

# Writes a part of messages.etr like a trace: to a file that is locked.
write_begin() { : >grow.etr; exec 7>>grow.etr; flock 7; }
write_until() { # BYTES
    local size
    size=$(stat -c %s grow.etr)
    tail -c "+$((size + 1))" messages.etr | head -c "$(($1 - size))" >&7
}
write_end() { write_until "$(stat -c %s messages.etr)"; exec 7>&-; }

@test "the list of a recording that is being written follows its end while the last line is chosen" {
    local size
    size=$(stat -c %s messages.etr)
    write_begin
    write_until $((size / 4))
    browse 100 22 grow.etr
    await '^0 new · [0-9.]+% · .* · event 1 '
    same_lines 100 1 20 messages.etr
    keys G
    await '^following · .* · event [0-9,]+ '
    await_not '\*\*\*'
    write_until $((size / 2 + 3))
    await '^following · .* · event [34][0-9],[0-9]+ '
    await_not '\*\*\*'
    keys k
    await '^0 new · '
    write_until $((size * 3 / 4))
    await '^[12][0-9],[0-9]+ new · .* · event [34][0-9],[0-9]+ '
    keys G
    await '^following · .* · event [56][0-9],[0-9]+ '
    keys Space
    await '^paused · 0 new · '
    write_until $((size - 5000))
    await '^paused · 1?[0-9],[0-9]+ new · '
    keys Space
    await '^following · .* · event 7[0-9],[0-9]+ '
    entered '&job,39[0-9]5\}'
    await '^following · .* · event [57],[0-9]+ '
    entered '&'
    write_end
    await '^100.0% · .* · event 80,000 '
    same_lines 100 79981 20 messages.etr
    keys g
    same_lines 100 1 20 messages.etr
}

@test "a run that is appended to a recording is shown, too" {
    cp messages.etr grow.etr
    browse 100 22 grow.etr
    await 'event 1 '
    keys G
    await 'event 80,000 '
    exec 7>>grow.etr
    flock 7
    tail -c +25 messages.etr | head -c 100000 >&7
    await '^following · .* · event (8[0-9]|9[0-9]|1[0-9]{2}),[0-9]+ '
    tail -c +100025 messages.etr >&7
    exec 7>&-
    await '^100.0% · .* · event 160,000 '
    await_not '\*\*\*'
}

@test "a recording that is killed, truncated or replaced while it is shown gives one line" {
    write_begin
    write_until 100000
    browse 100 22 grow.etr
    await '^0 new · .* event 1 '
    keys G
    await '^following'
    exec 7>&-
    await '^ *\*\*\* .*the recording is truncated'
    terminal_end
    for change in ': >grow.etr' 'mv grow.etr other.etr' 'cp messages.etr other.etr; mv other.etr grow.etr'; do
        write_begin
        write_until 100000
        browse_to_end grow.etr
        await 'event 1 '
        eval "$change"
        await '^etrace: grow.etr was (truncated|removed or replaced) while it was shown$'
        await '^status 1$'
        await '^echo$'
        terminal_end
        exec 7>&-
    done
}

@test "several recordings, a part of one, and its conditions are shown" {
    local other=$ETRACE_ROOT/tests/fixtures/recordings
    browse 150 30 --utc "$other/left.1.etr" "$other/right.1.etr"
    await 'left@'
    await 'right@'
    terminal_end
    browse 120 22 --from +2ms --utc messages.etr
    await "^$("$ETRACE_BIN" replay -q --utc --from +2ms messages.etr | head -n 1 | sed 's/[{}]/\\&/g')$"
    terminal_end
    browse 120 22 -g job,77 --utc messages.etr
    await "^$("$ETRACE_BIN" replay -q --utc -g job,77 messages.etr | tail -n +3 | head -n 1 | sed 's/[{}]/\\&/g')$"
}

@test "NO_COLOR shows no colours" {
    terminal 80 20 "NO_COLOR=1 exec $ETRACE_BIN browse messages.etr"
    await 'event 1 '
    run terminal_tmux capture-pane -e -p -t t
    refute_output --regexp $'\033\\[[0-9;]*3[1-7]m'
}
