#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The interactive mode at a terminal: output that streams past does not disturb the line being typed, keys work as
# documented, and nothing is left on the node after any end.

load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() {
    live_begin repl
    dir=$(node_dir "$LIVE_NODE")
    mkdir "$dir/defs"
    cat >"$dir/defs/shelf.erl" <<'END'
-module(shelf).
-export([new/1, put/2]).
-record(item, {id, name = "none"}).
-record(empty, {}).
new(Id) -> #item{id = Id}.
put(#item{} = Item, #empty{}) -> Item.
END
    printf '%s\n' '-module(crate).' '-export([pack/1]).' '-record(box, {weight}).' 'pack(#box{} = Box) -> Box.' >"$dir/defs/crate.erl"
    for name in odd-shelf Elixir.Odd.Shelf; do
        printf -- "-module('%s').\n-export([put/1, 'put away'/2]).\nput(X) -> X.\n'put away'(X, Y) -> {X, Y}.\n" "$name" >"$dir/defs/$name.erl"
    done
    (cd "$dir/defs" && "$ETRACE_ERLC" +debug_info ./*.erl) || return 1
    node_eval "$LIVE_NODE" "code:add_path(\"$dir/defs\"), [{module, M} = code:load_file(M) || M <- [shelf, crate, 'odd-shelf', 'Elixir.Odd.Shelf']], ok"
    # Run repl once, so that the words of its completion requests are already atoms on the node.
    live_repl
}
teardown_file() { live_end; }
setup() {
    live_setup
    export XDG_STATE_HOME=$BATS_TEST_TMPDIR/state
}
teardown() {
    terminal_end
    live_teardown_all
}

# Starts repl attached to the node, and waits for the prompt.
repl() {
    terminal 100 30 "exec $ETRACE_BIN repl -n $NODE $*"
    await '^etrace> *$'
}

# Starts PROCESSES workers that call work:stamp/1 every MILLISECONDS. The function paces ends them.
streaming() { # PROCESSES MILLISECONDS
    on_node "[work:tell(work:worker(), fun() -> work:pace(1000000, $2) end) || _ <- lists:seq(1, $1)]"
}

paces() { on_node '[exit(P, kill) || P <- processes(), {current_function, {work, pace, 2}} <- [process_info(P, current_function)]]'; }

@test "repl traces an expression and prints its events above the prompt" {
    repl
    entered 'work:two/2 -> return'
    await '1 probe · 1 function'
    on_node 'work:two(a, b)'
    await 'call work:two\(a, ?b\)'
    await 'return work:two/2 = \{a,b\}'
    await_last '^etrace>$'
    keys C-d
    until_true 30 terminal_gone
}

@test "slow output does not change the line being typed" {
    repl
    entered 'work:stamp/1'
    await 'Ctrl-C stops'
    streaming 1 50
    await 'call work:stamp'
    text='work:two(a, X) when X > 10 -> return'
    for ((i = 0; i < ${#text}; i++)); do
        typed "${text:i:1}"
        pause 0.02
    done
    await_last '^etrace> work:two\(a, X\) when X > 10 -> return$'
    keys Home
    typed 'second: '
    await_last '^etrace> second: work:two\(a, X\) when X > 10 -> return$'
    keys Enter
    await '2 probes'
    await '\[1\].* call work:stamp'
    on_node 'work:two(a, 11)'
    await '\[second\].* call work:two\(a, ?11\)'
    paces
    keys C-c
    await 'stopped;'
    entered ':probes'
    await '^second +work:two.*\(stopped\)$'
}

@test "a flood of events does not change a typed line that is wider than the terminal" {
    terminal 60 20 "exec $ETRACE_BIN repl -n $NODE"
    await '^etrace> *$'
    entered 'work:stamp/1'
    await 'Ctrl-C stops'
    streaming 5 1
    await 'call work:stamp'
    text='work:two(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb) -> return'
    for ((i = 0; i < ${#text}; i += 7)); do
        typed "${text:i:7}"
        pause 0.02
    done
    keys C-a
    typed 'x: '
    keys C-e
    paces
    keys C-c
    await 'stopped;'
    shown() { [[ $(screen | tr -d '\n ') == *"etrace>x:${text// /}" ]]; }
    until_true 30 shown || fail "$(screen)"
    keys Enter
    await 'aaaaaaaaaa' 5
    await '1 probe ·|2 probes|no function|etrace: '
}

@test "Ctrl-C stops the trace, then clears the line, then leaves" {
    repl
    entered 'work:one/1'
    await 'Ctrl-C stops'
    typed 'half a li'
    await_last '^etrace> half a li$'
    keys C-c
    await 'stopped;'
    await_last '^etrace> half a li$'
    traced_nobody() { node_eval "$NODE" 'length([S || S = {etrace, _} <- trace:session_info(all)])' | grep -qx '[01]'; }
    until_true 30 traced_nobody
    typed 'ne'
    await_last '^etrace> half a line$'
    keys C-c
    await_last '^etrace>$'
    keys C-c
    until_true 30 terminal_gone
}

@test "Ctrl-Z and fg keep the typed line and the trace, and leaving restores the terminal" {
    terminal 100 30 "PS1='shell: ' bash --norc --noprofile"
    await '^shell:'
    entered "$ETRACE_BIN repl -n $NODE"
    await '^etrace> *$'
    entered 'work:two/2'
    await 'Ctrl-C stops'
    typed 'work:on'
    await_last '^etrace> work:on$'
    keys C-z
    await 'Stopped'
    entered 'echo it is a $((6 * 7))'
    await '^it is a 42$'
    entered 'fg'
    await_last '^etrace> work:on$'
    typed 'e/1'
    keys Enter
    await '2 probes'
    on_node 'work:two(again, b)'
    await 'call work:two\(again'
    keys C-d
    await_last '^shell:$'
    entered 'stty -a | grep -ow -e "-*echo" -e "-*icanon"'
    await '^echo$'
    await '^icanon$'
}

@test "resizing the terminal redraws the typed line" {
    repl
    typed 'work:two(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbb)'
    await_last 'bbbb\)$'
    resized 50 20
    await '^etrace> work:two\(a{33}$'
    resized 110 30
    await_last '^etrace> work:two\(a{40}, b{24}\)$'
    typed ' -> return'
    await_last '^etrace> work:two\(a{40}, b{24}\) -> return$'
}

@test "Tab completes modules, functions with arity, actions, where words, commands and nodes" {
    repl
    typed 'wor'
    keys Tab
    await_last '^etrace> work:$'
    typed 'wor'
    keys Tab
    await_last '^etrace> work:worker/$'
    keys Tab
    await '^worker/0 +worker/1'
    await_last '^etrace> work:worker/$'
    typed '0 -> cal'
    keys Tab
    await_last '^etrace> work:worker/0 -> caller$'
    typed ' where cla'
    keys Tab
    await_last '^etrace> work:worker/0 -> caller where class$'
    keys C-a C-k
    await_last '^etrace>$'
    typed ':reat'
    keys Tab
    await_last '^etrace> :reattach$'
    typed 'of'
    keys Tab
    await_last '^etrace> :reattach off$'
    keys C-a C-k
    typed ':set utc of'
    keys Tab
    await_last '^etrace> :set utc off$'
    keys C-a C-k
    typed ':why kernel_su'
    keys Tab
    await_last '^etrace> :why kernel_sup$'
    keys C-a C-k
    await_last '^etrace>$'
    typed ':node repl_'
    keys Tab
    await_last "^etrace> :node ${NODE//./\\.}$"
}

@test "Tab completes modules and functions in quotes" {
    repl
    typed "'odd-"
    keys Tab
    await_last "^etrace> 'odd-shelf':$"
    typed 'pu'
    keys Tab
    await_last "^etrace> 'odd-shelf':put/1$"
    keys C-a C-k
    typed "'odd-shelf':"
    keys Tab
    await "^'put away'/2 .*put/1"
    typed "'put a"
    keys Tab
    await_last "^etrace> 'odd-shelf':'put away'/2$"
    keys C-a C-k
    typed "'Elixir.Odd.She"
    keys Tab
    await_last "^etrace> 'Elixir.Odd.Shelf':$"
    keys C-a C-k
    typed 'Odd.Shelf."put a'
    keys Tab
    await_last '^etrace> Odd.Shelf."put away"/2$'
    keys C-a C-k
    typed ':lists.keyfi'
    keys Tab
    await_last '^etrace> :lists.keyfind/3$'
    keys C-a C-k
    # A character that looks like a quote.
    typed "work:one(\$') | wor"
    keys Tab
    await_last "^etrace> work:one\(\\\$'\) \| work:$"
}

@test "Tab completes the records of the named module, and a probe can use them" {
    repl
    typed 'shelf:put(#'
    keys Tab Tab
    await '^empty +item'
    typed 'i'
    keys Tab
    await_last '^etrace> shelf:put\(#item\{$'
    typed 'id = Id}, _) when Id > 1; work:one(shelf#em'
    keys Tab
    await_last 'work:one\(shelf#empty\{$'
    keys C-a C-k
    entered 'shelf:put(#item{id = Id}, _) when Id > 1 -> return'
    await '1 probe'
    on_node 'shelf:put(shelf:new(1), {empty}), shelf:put(shelf:new(2), {empty})'
    await 'return shelf:put/2 = \{item,2,"none"\}'
    await_not 'item,1'
    entered ':as tree'
    await 'shelf:put\(\{item,2,"none"\}, ?\{empty\}\) = \{item'
}

# bats test_tags=long
@test "Tab completes the records of the alternative at the cursor" {
    repl
    typed 'crate:pack(_) | shelf:put(#'
    keys Tab Tab
    await '^empty +item'
    typed 'i'
    keys Tab
    await_last 'crate:pack\(_\) \| shelf:put\(#item\{$'
    typed '}, _) | crate:pack(#'
    keys Tab
    await_last 'shelf:put\(#item\{\}, _\) \| crate:pack\(#box\{$'
    keys C-a C-k
    # The | of a list does not begin an alternative.
    typed 'shelf:put([a | #'
    keys Tab Tab
    typed 'e'
    keys Tab
    await_last '^etrace> shelf:put\(\[a \| #empty\{$'
    keys C-a C-k
    entered 'crate:pack(#box{weight = W}) | shelf:put(#item{id = W}, _) when W > 1'
    await '1 probe · 2 functions'
    on_node 'crate:pack({box, 1}), crate:pack({box, 2}), shelf:put(shelf:new(1), {empty}), shelf:put(shelf:new(3), {empty})'
    await 'call shelf:put\(\{item,3,'
    await 'call crate:pack\(\{box,2\}\)'
    await_not 'box,1|item,1'
}

# bats test_tags=long
@test "Tab completes native records, and a probe can use them" {
    [[ $ETRACE_OTP -ge 29 ]] || return 0
    local dir
    dir=$(node_dir "$NODE")/defs
    printf '%s\n' '-module(kind).' '-export([f/1, g/1, h/1]).' '-record #it{id}.' '-record(odd, {id}).' 'f(X) -> #it{id = X}.' 'g(X) -> #odd{id = X}.' 'h(X) -> X.' >"$dir/kind.erl"
    "$ETRACE_ERLC" +debug_info -o "$dir" "$dir/kind.erl"
    on_node '{module, _} = code:load_file(kind)'
    live_snapshot
    repl
    typed 'crate:pack(_) | kind:h(#'
    keys Tab Tab
    await '^it +odd'
    typed 'i'
    keys Tab
    await_last 'kind:h\(#it\{$'
    keys C-a C-k
    entered 'kind:h(#it{}) -> return'
    await '1 probe'
    on_node 'kind:h(kind:g(1)), kind:h(kind:f(1))'
    await 'return kind:h/1 = #kind:it\{\.\.\.\}'
    await_not 'odd,1'
}

@test "repl runs every pasted line in order and hides the bracketed-paste marks" {
    repl
    typed $'\e[200~one: work:one/1\rwork:two(a,\r  b)\r\r:probes\rwork:three/3\rwork:fac\e[201~'
    await '3 probes · 3 functions'
    await '^1 +work:two\(a, +b\)$'
    await_last '^etrace> work:fac$'
    on_node 'work:two(a, b), work:three(work:one(1), 2, 3)'
    await '\[one\] .*call work:one\(1\)'
    await '\[1\] .*call work:two\(a'
    await '\[2\] .*call work:three\(1'
    await_last '^etrace> work:fac$'
}

# bats test_tags=long
@test "attaching to a node that does not answer blocks neither the prompt nor the trace" {
    node_start silent
    silent=$NODE
    NODE=$LIVE_NODE
    freeze "$(cat "$(node_dir "$silent")/pid")"
    repl
    entered ":attach $silent"
    entered ':node'
    await "^  $silent +\(connecting\)$"
    entered 'work:one/1'
    await '1 probe · 1 function'
    on_node 'work:one(meanwhile)'
    await 'call work:one\(meanwhile\)'
    entered ":node $silent"
    entered ':ls work:one'
    await "cannot connect to $silent" 30
    kill -CONT "$(cat "$(node_dir "$silent")/pid")"
    entered ":attach ${silent%@*}"
    await "$silent: 1 probe"
    node_eval "$silent" 'work:one(there)' >/dev/null
    await "$silent .*call work:one\(there\)"
    keys C-d
    until_true 30 terminal_gone
    node_stop "$silent"
}

# Starts repl on two nodes and stops the process of the second one, SILENT.
with_silent() {
    node_start silent
    SILENT=$NODE
    NODE=$LIVE_NODE
    terminal 140 40 "exec $ETRACE_BIN repl -n $NODE -n $SILENT"
    await '^etrace> *$'
    freeze "$(<"$(node_dir "$SILENT")/pid")"
}

silent_goes_on() { kill -CONT "$(<"$(node_dir "$SILENT")/pid")"; }

# above FIRST SECOND: asserts that some line matches FIRST, and that every line that matches SECOND is below it.
above() {
    screen | awk -v one="$1" -v other="$2" '$0 ~ one { found = 1 } $0 ~ other && !found { bad = 1 } END { exit bad || !found }' ||
        fail "$1 is not above $2: $(screen)"
}

# bats test_tags=long
@test "repl runs the next line while one of its nodes does not answer" {
    with_silent
    entered 'first: work:one/1'
    await "etrace: $NODE: 1 function"
    entered ':probes'
    await '^first +work:one/1$'
    entered 'second: work:two/2'
    entered ':probes'
    await '^second +work:two/2$'
    on_node 'work:two(work:one(a), b)'
    await 'call work:two\(a'
    above '^second +work:two/2$' "$SILENT is no longer attached|probes? ·"
    silent_goes_on
    await '2 probes ·' 30
    keys C-d
    until_true 30 terminal_gone
    node_stop "$SILENT"
}

# bats test_tags=long
@test "a refused probe leaves the other probes intact while a node does not answer" {
    with_silent
    entered 'first: work:one/1'
    await "etrace: $NODE: 1 function"
    entered 'second: work:nothing/3'
    await 'work has no function nothing/3'
    entered ':probes'
    await '^first +work:one/1$'
    await_last '^etrace>$'
    above '^first +work:one/1$' "$SILENT is no longer attached"
    run screen
    refute_line --regexp '^second '
    on_node 'work:one(still)'
    await 'call work:one\(still'
    silent_goes_on
    await '1 probe ·' 30
    keys C-d
    until_true 30 terminal_gone
    node_stop "$SILENT"
}

@test "an open clause continues on the next line, and a caret below the line marks an error" {
    repl
    entered 'work:two(a,'
    await_last '^   \.\.\.>$'
    entered 'b) ->'
    await_last '^   \.\.\.>$'
    entered 'return'
    await '1 probe'
    on_node 'work:two(a, b)'
    await 'return work:two/2'
    entered 'work:two(_,N) when M > 10'
    await '^ {27}\^ '
    await '^etrace: unbound variable M$'
}

@test "the history persists with mode 600 and omits lines that begin with a space" {
    repl
    entered 'work:one(warm) -> return'
    await '1 probe'
    entered ' work:two(b, _)'
    await '2 probes'
    on_node 'work:one(answered)'
    keys C-d
    until_true 30 terminal_gone
    terminal_end
    history=$XDG_STATE_HOME/etrace/history
    assert_equal "$(cat "$history")" 'work:one(warm) -> return'
    assert_equal "$(stat -c %a "$history")" 600
    repl
    keys C-r
    typed 'warm'
    await 'work:one\(warm\)'
    keys C-a C-k
    await_last '^etrace>$'
    keys C-p C-n Up
    await_last '^etrace> work:one\(warm\) -> return$'
}

@test "a recalled expression of several lines has no comments between its parts" {
    repl
    entered 'work:two(a, % the first'
    await_last '^   \.\.\.>$'
    entered '  _) -> return'
    await '1 probe'
    entered ':drop all'
    keys Up Up
    await_last '^etrace> work:two\(a, +_\) -> return$'
    keys Enter
    await_last '^etrace>$'
    entered ':probes'
    await '^2 +work:two\(a, +_\) -> return$'
}

@test "hist redraws in place while events arrive, and q returns to the prompt" {
    repl
    entered 'work:stamp/1 -> return'
    await 'Ctrl-C stops'
    streaming 1 20
    await 'return work:stamp/1'
    entered ':hist'
    await '^work:stamp/1 .*p50'
    await_last '^q returns$'
    typed 'q'
    await_not 'q returns'
    await 'return work:stamp/1'
    await_last '^etrace>$'
    # The view takes q; the prompt takes the rest of the input.
    typed $':hist\nq:version\n'
    await '^etrace [0-9]'
    paces
}

@test "Ctrl-Z does not stop a view in place, and a signal that ends it restores the screen" {
    terminal 100 30 "PS1='shell: ' bash --norc --noprofile"
    await '^shell:'
    entered "ulimit -c 0; $ETRACE_BIN repl -n $NODE"
    await '^etrace> *$'
    entered 'work:stamp/1 -> return'
    await 'Ctrl-C stops'
    streaming 1 20
    await 'return work:stamp/1'
    entered ':hist'
    await_last '^q returns$'
    keys C-z
    typed 'q'
    await_last '^etrace>$'
    until_true 30 terminal_is 0 1
    entered ':hist'
    await_last '^q returns$'
    until_true 30 terminal_is 1 0
    typed $'\x1c'
    await_last '^shell:$'
    until_true 30 terminal_is 0 1
    entered 'stty -a | grep -ow -e "-*echo" -e "-*icanon"'
    await '^echo$'
    await '^icanon$'
    paces
}

@test "browse covers the screen while a trace runs, and q returns to the prompt" {
    repl
    entered 'work:one/1'
    await '1 probe · 1 function'
    entered ":browse $ETRACE_ROOT/tests/fixtures/shop.etr"
    await 'event 1 '
    on_node 'work:one(7)'
    typed j
    await 'event 2 '
    await_not 'work:one'
    typed q
    await 'call work:one\(7\)'
    await_last '^etrace>$'
    keys C-d
    until_true 30 terminal_gone
}

# Clears the screen, and returns when no line matches, so that a later match is not the text of an earlier command.
cleared() { # REGEX
    keys C-l
    await_not "$1"
}

@test ":check ends by itself and with Ctrl-C, its arguments are checked, and the probes go on" {
    terminal 120 40 "ETRACE_DEBUG=1 exec $ETRACE_BIN repl -n $NODE"
    await_last '^etrace> *$'
    entered 'work:one/1'
    await 'Ctrl-C stops'
    entered ':check'
    await ' run queue [0-9]+ on '
    await_last '^etrace> *$'
    cleared 'phase 1 is over'
    entered ':check --for 10min'
    await 'check: phase 1 is over'
    keys C-c
    await ' run queue [0-9]+ on '
    await_last '^etrace> *$'
    on_node 'work:one(still)'
    await 'call work:one\(still\)'
    entered ':check here'
    await "check takes no arguments, but got 'here'"
    entered ':check --nope'
    await "unknown option '--nope'"
    entered ':check -n nobody@127.0.0.1'
    await 'cannot connect to nobody@127.0.0.1'
    await_last '^etrace> *$'
}

@test ":died alone shows captured exits, and with arguments it traces them until Ctrl-C or its end" {
    on_node 'register(doomed, spawn(fun() -> receive never -> ok end end))'
    repl
    entered ':died'
    await ':died alone shows captured events; with arguments'
    await_last '^etrace> *$'
    entered ':died --for 500ms'
    await 'events? in '
    await_last '^etrace> *$'
    cleared 'Ctrl-C stops'
    entered ':died doomed'
    await 'Ctrl-C stops'
    on_node 'exit(whereis(doomed), oops)'
    await '\(doomed\) exit oops'
    keys C-c
    await 'events? in '
    await_last '^etrace> *$'
    entered ':died --nope'
    await "unknown option '--nope'"
    entered ":died 'a b'"
    await "died does not take 'a b'"
    await_last '^etrace> *$'
}

@test "without a node and after the node has left, :check and :died ask no other node" {
    terminal 120 40 "ETRACE_NODE=nobody@127.0.0.1 exec $ETRACE_BIN repl -n $NODE"
    await_last '^etrace> *$'
    entered ':detach'
    await ': detached'
    entered ':check'
    await 'cannot connect to nobody@127.0.0.1'
    await_last '^etrace> *$'
    cleared 'cannot connect'
    entered ':died --for 1s'
    await 'cannot connect to nobody@127.0.0.1'
    terminal_end
    node_start left
    terminal 120 40 "ETRACE_NODE=$LIVE_NODE exec $ETRACE_BIN repl -n $NODE"
    await_last '^etrace> *$'
    kill -KILL "$(<"$(node_dir "$NODE")/pid")"
    await 'is no longer attached'
    entered ':check'
    await "cannot connect to $NODE"
    await_last '^etrace> *$'
    entered ':node'
    await "^\* $NODE +\(not attached\)"
    cleared 'cannot connect'
    entered ':died --for 1s'
    await "cannot connect to $NODE"
    terminal_hides "$LIVE_NODE" || fail "$(screen)"
}

@test "a filter on results makes the probes trace results" {
    repl
    entered 'work:stamp/1'
    await 'Ctrl-C stops'
    streaming 1 50
    await 'call work:stamp'
    entered ':where dur >= 0ns'
    await 'return work:stamp/1'
    paces
}

# bats test_tags=long
@test "repl filters the scrollback, shows it in other views and saves it to files" {
    repl
    entered 'work:fac/1 -> return'
    await 'Ctrl-C stops'
    on_node 'work:fac(3)'
    await 'return work:fac/1 = 6'
    keys C-c
    await 'stopped;'
    entered ':clear'
    entered ':start'
    traced_again() { [[ $(screen | grep -c 'Ctrl-C stops') -ge 2 ]]; }
    until_true 30 traced_again
    on_node 'work:fac(4)'
    await 'return work:fac/1 = 24'
    entered ':stop'
    entered ":save $BATS_TEST_TMPDIR/x.etr"
    await 'x.etr: 10 events'
    entered ":as folded -o $BATS_TEST_TMPDIR/x.folded"
    await 'x.folded: 10 events'
    keys C-l
    entered ':grep fac.4.'
    await 'call work:fac\(4\)'
    entered ':grep'
    entered ':as summary'
    await '^ +5 +0 .* work:fac/1$'
    keys C-d
    until_true 30 terminal_gone
    run "$ETRACE_BIN" replay --as summary "$BATS_TEST_TMPDIR/x.etr"
    assert_success
    assert_line --regexp '^ +5 +0 .* work:fac/1$'
    run cat "$BATS_TEST_TMPDIR/x.folded"
    assert_output --partial 'work:fac/1;work:fac/1;work:fac/1;work:fac/1;work:fac/1'
}

@test "nothing remains on the node after kill -9 or after the terminal closes" {
    repl
    entered 'work:one/1'
    await 'Ctrl-C stops'
    kill -KILL "$(terminal_pid)"
    until_true 30 terminal_gone
    assert_clean "$BEFORE" "$NODE"
    terminal_end
    repl
    entered 'work:one/1'
    await 'Ctrl-C stops'
    pid=$(terminal_pid)
    terminal_end
    ended() { ! grep -qF etrace "/proc/$pid/cmdline" 2>/dev/null; }
    until_true 10 ended
    assert_clean "$BEFORE" "$NODE"
}
