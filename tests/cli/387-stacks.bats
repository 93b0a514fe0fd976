#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace stacks`: it shows every process once, with the state and the stack that the node itself reports, and is
# done with processes that do not answer.
# tests/run: last

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

setup_file() { live_begin stacks; }
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    [[ -n $BATS_TEST_COMPLETED ]] || node_eval "$LIVE_NODE" 'catch exit(whereis(group), kill)' || true
    live_teardown
}

stacks() { run --separate-stderr timeout 60 "$ETRACE_BIN" stacks -n "$NODE" "$@"; }

# text EXPR: prints a string of the node.
text() { node_eval "$NODE" "{lines, [{$1, end_of_line}]}" | sed 's/ end_of_line$//'; }

# group N FUN: starts N processes that run FUN, and one that ends them, which is registered as group.
group() {
    on_node "begin Me = self(), spawn(fun() -> register(group, self()), Pids = [spawn($2) || _ <- lists:seq(1, $1)], Me ! up,
        [link(P) || P <- Pids],
        receive {stop, From} -> [begin unlink(P), exit(P, kill) end || P <- Pids], From ! {ended, [P || P <- Pids, is_process_alive(P)]} end end), receive up -> ok end end"
}
group_end() { on_node 'begin group ! {stop, self()}, receive {ended, []} -> ok end end'; }

@test "every process is in one line, with the state and the stack that the node reports" {
    group 300 'fun() -> timer:sleep(infinity) end'
    stacks --json
    assert_success
    assert_equal "$(jq -s '[.[] | select(.type == "stack") | .count] | add' <<<"$output")" \
        "$(jq -s '.[-1].looks' <<<"$output")"
    assert_equal "$(jq -sc '[.[] | select(.stack[0].f == "sleep" and .stack[0].m == "timer") | [.status, .count, (.processes | length)]]' <<<"$output")" \
        '[["waiting",300,4]]'
    # Processes of etrace are left out.
    run -0 jq -se 'all(.[] | .stack[]?.m; startswith("etrace_") | not)' <<<"$output"
    stacks --json
    run -0 jq -se '(.[-1] | .type == "stacks" and .silent == []) and ([.[].type] | sort | unique) == ["stack","stacks"]' <<<"$output"
    group_end
}

@test "the stacks equal those of process_info, process by process" {
    on_node 'begin register(deep, spawn(fun() -> work:begun(inner, [1]), receive stop -> ok end end)), ok end'
    for name in deep w rex code_server; do # not supervisors: they hibernate after a second
        by_hand=$(text "begin {_, T} = process_info(whereis($name), current_stacktrace), {_, S} = process_info(whereis($name), status),
            lists:flatten([atom_to_list(S), [[\" \", atom_to_list(M), \":\", atom_to_list(F), \"/\", integer_to_list(A)] || {M, F, A, _} <- T]]) end")
        stacks --json -P "$name"
        assert_success
        assert_equal "$(jq -r 'select(.type == "stack") | .status + " " + ([.stack[] | "\(.m):\(.f)/\(.a)"] | join(" "))' <<<"$output")" "$by_hand"
        assert_equal "$(jq -r 'select(.type == "stack") | .processes[0].name' <<<"$output")" "$name"
    done
    on_node 'begin [begin R = monitor(process, N), exit(whereis(N), kill), receive {_, R, _, _, _} -> ok end end || N <- [deep, inner], whereis(N) =/= undefined] end'
}

@test "two servers that call each other show as two processes in gen:do_call" {
    on_node 'begin F = fun(Me, Other) -> spawn(fun() -> register(Me, self()), receive go -> gen_server:call(Other, go, infinity) end end) end,
        A = F(one_of_two, other_of_two), B = F(other_of_two, one_of_two), timer:sleep(100), A ! go, B ! go, timer:sleep(200) end'
    stacks
    assert_success
    assert_line --regexp '^ +2 waiting +gen:do_call/4 < gen_server:call/3 .* <[0-9.]+>\((one|other)_of_two\) <[0-9.]+>\((one|other)_of_two\)$'
    # The end of one ends the other: its call fails.
    on_node 'begin R = monitor(process, other_of_two), exit(whereis(one_of_two), kill), receive {_, R, _, _, _} -> ok end end'
}

@test "-P selects by name, pid, application and initial call, and reports what is not there" {
    group 20 'fun() -> timer:sleep(infinity) end'
    stacks --json -P group -P kernel_sup
    assert_equal "$(jq -s '.[-1].looks' <<<"$output")" 2
    pid=$(text 'pid_to_list(whereis(group))')
    stacks --json -P "$pid"
    assert_equal "$(jq -r 'select(.type == "stack") | .processes[0] | .pid + .name' <<<"$output")" "${pid}group"
    expected=$(node_eval "$NODE" 'begin M = application_controller:get_master(kernel), length([P || P <- processes(), process_info(P, group_leader) =:= {group_leader, M}]) end')
    stacks --json -P 'app(kernel)'
    # The processes of the connection to etrace belong to kernel, too.
    ((expected > 5 && $(jq -s '.[-1].looks' <<<"$output") >= expected - 2))
    stacks --json -P 'app(kernel)' -P group
    ((expected > 5 && $(jq -s '.[-1].looks' <<<"$output") >= expected - 1))
    stacks -P 'initial(no:where/7)'
    assert_failure 5
    assert_equal "$stderr" 'etrace: no process on the node has the initial call no:where/7'
    stacks -P nobody_is_called_so
    assert_failure 5
    assert_equal "$stderr" 'etrace: no process is registered as nobody_is_called_so on the node'
    stacks -P 'app(no_app)'
    assert_failure 5
    group_end
}

@test "-o writes a file that only the user can read, and follows no link" {
    local dir=$BATS_TEST_TMPDIR
    printf '%01000d' 0 >"$dir/old.folded"
    stacks --for 100ms -P init -o "$dir/new.folded" -o "$dir/old.folded"
    assert_success
    assert_equal "$(stat -c %a "$dir/new.folded")" 600
    run -0 cmp "$dir/new.folded" "$dir/old.folded"
    ln -s old.folded "$dir/link.folded"
    stacks --for 100ms -P init -o "$dir/link.folded"
    assert_failure 1
    assert_equal "$stderr" "etrace: will not write $dir/link.folded: it is a symbolic link"
    mkfifo "$dir/pipe.folded"
    stacks --for 100ms -P init -o "$dir/pipe.folded"
    assert_failure 1
    assert_equal "$stderr" "etrace: cannot write $dir/pipe.folded: nobody reads this pipe"
}

@test "with --for it looks again, shows shares, and finds how long processes have waited" {
    group 50 'fun() -> timer:sleep(infinity) end'
    stacks --for 2s --overhead 50% --json -o "$BATS_TEST_TMPDIR/a.folded" -o "$BATS_TEST_TMPDIR/a.svg" -o "$BATS_TEST_TMPDIR/a.speedscope.json" \
        -o "$BATS_TEST_TMPDIR/a.pprof"
    assert_success
    run -0 jq -se '([.[] | select(.type == "stack") | .samples] | add) == .[-1].looks and .[-1].passes > 3' <<<"$output"
    assert_equal "$(stat -c %a "$BATS_TEST_TMPDIR"/a.* | sort -u)" 600
    ln -s "$BATS_TEST_TMPDIR/a.folded" "$BATS_TEST_TMPDIR/link.folded"
    run -1 timeout 60 "$ETRACE_BIN" stacks -n "$NODE" --for 100ms -P init -o "$BATS_TEST_TMPDIR/link.folded"
    assert_output --partial 'is a symbolic link'
    stacks --for 2s --overhead 50%
    assert_success
    assert_line --regexp '^ +[0-9.]+% +waiting +timer:sleep/1 .*for [1-9][0-9.]*s'
    # The weights of the views are the looks.
    run -0 awk '{ sum += $NF } /timer:sleep/ { found = 1 } END { exit !(found && sum > 150) }' "$BATS_TEST_TMPDIR/a.folded"
    run -0 awk -v all="$(awk '{ sum += $NF } END { print sum }' "$BATS_TEST_TMPDIR/a.folded")" '!/^#/ { sum += $NF } END { exit sum != all }' \
        <(/usr/bin/python3 "$ETRACE_ROOT/tests/lib/pprof_folded.py" <"$BATS_TEST_TMPDIR/a.pprof")
    # Each weight has a stack, whose frames exist.
    run -0 jq -e '.profiles[0] as $p | (.shared.frames | length) as $n | $p.type == "sampled" and ($p.samples | length) == ($p.weights | length)
        and ($p.weights | add) == $p.endValue and ([$p.samples[][]] | max) < $n and ($p.samples | length) > 5' "$BATS_TEST_TMPDIR/a.speedscope.json"
    run -0 grep -q '<svg' "$BATS_TEST_TMPDIR/a.svg"
    run -0 grep -q 'timer:sleep/1' "$BATS_TEST_TMPDIR/a.svg"
    group_end
}

@test "with --for, groups say how they have grown from the first to the last look, and can be sorted by it" {
    # Each 10 ms one group gets a process, and another one loses one.
    on_node 'begin Me = self(), register(group, spawn(fun() ->
        Ends = [spawn(timer, sleep, [infinity]) || _ <- lists:seq(1, 2000)], Me ! up,
        (fun Each(New, Left) ->
            receive {stop, From} -> [exit(P, kill) || P <- New ++ Left], From ! {ended, []}
            after 10 -> case Left of [P | Rest] -> exit(P, kill), Each([spawn(work, serve, []) | New], Rest); [] -> Each(New, []) end
            end
        end)([], Ends) end)), receive up -> ok end end'
    stacks --for 2s --overhead 50% --json --sort growth
    assert_success
    growth() { jq -r --arg f "$1" 'select(.type == "stack" and .stack[0].f == $f and .stack[0].m == $m).growth' --arg m "$2" <<<"$output"; }
    [[ $(growth serve work) -gt 0 && $(growth sleep timer) -lt 0 && $(growth loop code_server) == 0 ]] || fail "$output"
    assert_equal "$(jq -rs 'map(select(.type == "stack").growth) == (map(select(.type == "stack").growth) | sort | reverse)' <<<"$output")" true
    stacks --for 2s --overhead 50% --sort growth
    assert_line -n 0 --regexp '^ +[0-9.]+% +\+[0-9]+ waiting +work:serve/0'
    stacks --sort growth -1
    assert_failure 2
    assert_regex "$stderr" '--sort growth also needs --for'
    stacks --for 1ms --sort growth
    assert_success
    assert_regex "$stderr" 'the growth is unknown'
    group_end
}

@test "sampling asks a process for its stack only if it has run since the last look" {
    on_node 'begin register(idle, spawn(timer, sleep, [infinity])), [spawn(timer, sleep, [infinity]) || _ <- lists:seq(1, 4)],
        register(other, spawn(fun() -> receive stop -> ok end end)) end'
    # reductions NAME: the work of a process. Reading it does not wake the process.
    reductions() { node_eval "$NODE" "element(2, process_info(whereis($1), reductions))"; }
    idle=$(reductions idle)
    other=$(reductions other)
    stacks --for 2s --overhead 50% --json -P 'initial(timer:sleep/1)'
    assert_success
    looks=$(jq -s '.[-1].looks / 5 | floor' <<<"$output")
    # The first look and the question for its name cost a process a few reductions.
    idle=$(($(reductions idle) - idle)) other=$(($(reductions other) - other))
    ((idle * 2 < looks && other * 2 < looks)) || fail "$looks looks; $idle and $other reductions"
    assert_equal "$(jq -sc '[.[] | select(.type == "stack") | [.status, .stack[0].f]]' <<<"$output")" '[["waiting","sleep"]]'
    on_node '[exit(P, kill) || P <- processes(), P =:= whereis(other) orelse process_info(P, initial_call) =:= {initial_call, {timer, sleep, 1}}]'
}

@test "sampling shows each stack of a process that runs between the looks" {
    on_node 'begin register(turns, spawn(fun() -> (fun F() -> timer:sleep(200), receive never -> ok after 200 -> ok end, F() end)() end)), ok end'
    stacks --for 3s --overhead 50% --json -P turns
    assert_success
    assert_equal "$(jq -sc '[.[] | select(.type == "stack" and .samples > 3) | .stack[0].f == "sleep"] | sort' <<<"$output")" '[false,true]'
    on_node 'begin R = monitor(process, turns), exit(whereis(turns), kill), receive {_, R, _, _, _} -> ok end end'
}

@test "sampling finds processes that start between the looks" {
    on_node 'begin register(starter, spawn(fun() -> timer:sleep(1500), [spawn_link(timer, sleep, [infinity]) || _ <- lists:seq(1, 20)], timer:sleep(infinity) end)), ok end'
    stacks --for 4s --overhead 50% --json -P 'initial(timer:sleep/1)' -P starter
    assert_success
    run -0 jq -se '[.[] | select(.type == "stack" and .stack == [{"m": "timer", "f": "sleep", "a": 1}]) | .samples] | add > 20' <<<"$output"
    on_node 'begin R = monitor(process, starter), exit(whereis(starter), kill), receive {_, R, _, _, _} -> ok end end'
}

@test "stacks --for says when it has not looked at all processes, and the looks are at old and new ones" {
    # Half of the processes are older than the other half.
    group 10000 'fun() -> timer:sleep(infinity) end'
    on_node 'begin Me = self(), register(younger, spawn(fun() -> [spawn_link(fun() -> receive never -> ok end end) || _ <- lists:seq(1, 10000)], Me ! up, receive stop -> ok end end)), receive up -> ok end end'
    stacks --for 500ms --overhead 1% --json
    assert_success
    assert_regex "$stderr" 'the time sufficed for [0-9]+ of 20[0-9]{3} processes, and the shares are theirs'
    run -0 jq -se '[.[] | select(.type == "stack")] | ([.[] | select(.stack[0].f == "sleep") | .samples] | add) as $old | ([.[].samples] | add) as $all | $old > $all / 4 and $old < $all * 3 / 4' <<<"$output"
    on_node 'begin R = monitor(process, younger), exit(whereis(younger), kill), receive {_, R, _, _, _} -> ok end end'
    group_end
}

@test "a smaller share of a core gives fewer looks" {
    group 2000 'fun() -> timer:sleep(infinity) end'
    stacks --for 2s --overhead 50% --json
    much=$(jq -s '.[-1].looks' <<<"$output")
    stacks --for 2s --overhead 0.5% --json
    little=$(jq -s '.[-1].looks' <<<"$output")
    ((little > 0 && much > 4 * little)) || fail "$much and $little looks"
    group_end
}

@test "a process in a NIF does not answer in time and is listed; one in a dirty NIF answers" {
    cat >"$BATS_TEST_TMPDIR/slow.c" <<'END'
#include <erl_nif.h>
#include <unistd.h>
static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    usleep(700000);
    return enif_make_copy(env, argv[0]);
}
static ErlNifFunc functions[] = {{"nap", 1, nap, 0}, {"dirty", 1, nap, ERL_NIF_DIRTY_JOB_IO_BOUND}};
ERL_NIF_INIT(slow, functions, NULL, NULL, NULL, NULL)
END
    include=$(text 'filename:join([code:root_dir(), "usr", "include"])')
    cc -shared -fPIC -I "$include" -o "$BATS_TEST_TMPDIR/slow.so" "$BATS_TEST_TMPDIR/slow.c"
    cat >"$BATS_TEST_TMPDIR/slow.erl" <<'END'
-module(slow).
-export([load/1, nap/1, dirty/1, busy/0, dirty/0, wakes/0]).
load(File) -> erlang:load_nif(File, 0).
nap(_) -> erlang:nif_error(not_loaded).
dirty(_) -> erlang:nif_error(not_loaded).
busy() -> nap(1), receive after 2 -> busy() end.
dirty() -> dirty(1), receive after 10 -> dirty() end.
wakes() -> receive after 5 -> wakes() end.
END
    live_own nif +S 3:3
    cp "$BATS_TEST_TMPDIR/slow.erl" "$BATS_TEST_TMPDIR/slow.so" "$(node_dir "$NODE")"
    on_node "begin {ok, slow, Code} = compile:file(\"$(node_dir "$NODE")/slow\", [binary]), {module, slow} = code:load_binary(slow, \"slow\", Code),
        ok = slow:load(\"$(node_dir "$NODE")/slow\") end"
    stacks --json
    assert_success
    # A node with little work runs all of it on one scheduler, where etrace would wait for the NIF.
    on_node 'begin [spawn_opt(slow, wakes, [], [{scheduler, N}]) || N <- [1, 2]],
        register(in_nif, spawn_opt(slow, busy, [], [{scheduler, 3}])), register(in_dirty, spawn(slow, dirty, [])), ok end'
    # Between two naps the process may answer.
    listed() {
        stacks --json
        [[ $(jq -sr '[.[-1].silent[].name] | join(" ")' <<<"$output") == in_nif ]]
    }
    until_true 60 listed
    # Between two calls of the dirty NIF the process waits for a moment.
    in_dirty() {
        stacks --json
        [[ $(jq -r 'select(.type == "stack" and .processes[0].name == "in_dirty") | [.stack[] | "\(.f)/\(.a)"] | join(" ")' <<<"$output") == 'dirty/1 dirty/0' ]]
    }
    until_true 60 in_dirty || fail "$output"
    in_dirty_text() {
        stacks -P in_dirty
        [[ $output =~ 'slow:dirty/1 < slow:dirty/0  <'[0-9.]+'>(in_dirty)' ]]
    }
    until_true 60 in_dirty_text || fail "$output"
    in_dirty_folded() {
        stacks -P in_dirty --as folded
        [[ $output == *'slow:dirty/0;slow:dirty/1 1' ]]
    }
    until_true 60 in_dirty_folded || fail "$output"
    in_dirty_ps() {
        run --separate-stderr timeout 60 "$ETRACE_BIN" ps -n "$NODE" --json -P in_dirty
        [[ $(jq -r 'select(.type == "process") | .stack[0] | "\(.m):\(.f)/\(.a)"' <<<"$output") == slow:dirty/1 ]]
    }
    until_true 60 in_dirty_ps || fail "$output"
    in_nif_ps() {
        run --separate-stderr timeout 60 "$ETRACE_BIN" ps -n "$NODE" --json
        [[ $(jq -sr '[.[-1].silent[].name] | join(" ")' <<<"$output") == in_nif ]]
    }
    until_true 60 in_nif_ps || fail "$output"
    [[ $(jq -r 'select(.type == "process" and .name == "in_nif").pid' <<<"$output") == '' ]]
    said() {
        stacks
        [[ $output =~ ' 1 no answer <'[0-9.]+'>(in_nif)' ]]
    }
    until_true 60 said
    [[ $stderr == *'1 process did not answer in time: a long NIF or garbage collection keeps it busy'* ]]
    narrow() {
        run script -qec "stty cols 16; NO_COLOR=1 timeout 60 '$ETRACE_BIN' stacks --once -n '$NODE'" /dev/null
        [[ $output == *' 1 no answer'* ]]
    }
    until_true 60 narrow
    [[ $output != *'no answer <'* ]] || fail "$output"
    sampled() {
        stacks --for 2s --json
        [[ $(jq -sr '[.[-1].silent[].name] | join(" ")' <<<"$output") == *in_nif* ]]
    }
    until_true 60 sampled
}

@test "40,000 processes are counted exactly" {
    group 40000 'fun() -> timer:sleep(infinity) end'
    stacks --json
    assert_success
    run -0 jq -se '([.[] | select(.count >= 40000)] | length == 1) and .[0].count == 40000' <<<"$output"
    group_end
}

@test "under load ps and stacks look at twenty thousand processes, with --all a hundred thousand, in the right groups" {
    local scale=${ETRACE_ALL:+5} alive started many='.stack[0].m == "timer" and .stack[0].f == "sleep"' waits='.stack == [{"m": "work", "f": "serve", "a": 0}]'
    local sleeping=$((12000 * ${scale:-1})) serving=$((8000 * ${scale:-1}))
    group "$sleeping" 'fun() -> timer:sleep(infinity) end'
    # Two processes compute, and others begin and end all the time. The state of the counter is how many have begun.
    on_node "begin Me = self(), spawn(fun() -> register(load, self()), Begun = counters:new(1, []),
        [spawn_link(work, serve, []) || _ <- lists:seq(1, $serving)], [spawn_link(fun() -> (fun F() -> work:spin(1000), F() end)() end) || _ <- [1, 2]],
        spawn_link(fun() -> (fun F() -> spawn(fun() -> receive after 50 -> ok end end), counters:add(Begun, 1, 1), receive after 1 -> F() end end)() end),
        Me ! up, (fun F() -> receive {begun, From} -> From ! {begun, counters:get(Begun, 1)}, F() end end)() end), receive up -> ok end end"
    begun() { node_eval "$NODE" 'begin load ! {begun, self()}, receive {begun, N} -> N end end'; }
    alive=$(node_eval "$NODE" 'erlang:system_info(process_count)')
    started=$(begun)
    run --separate-stderr timeout 120 "$ETRACE_BIN" stacks -n "$NODE" --json --overhead 100%
    [[ $status -eq 0 ]] || fail "status $status: $stderr"
    started=$(($(begun) - started))
    # On a host that is too busy some processes do not answer in time. work:worker(w) waits like the others.
    run -0 jq -se --argjson alive "$alive" --argjson started "$started" --argjson groups "[$sleeping, $((serving + 1))]" 'def count(f): [.[] | select(.type == "stack") | select(f) | .count] | add;
        (.[-1].silent | length) as $silent | count(true) as $sum | $sum == .[-1].looks
        and $sum + $silent > ($groups | add) and $sum + $silent <= $alive + $started
        and ([$groups, [count('"$many"'), count('"$waits"')]] | transpose | map(.[0] - .[1]) | all(. >= 0) and add <= $silent)' <<<"$output"
    alive=$(node_eval "$NODE" 'erlang:system_info(process_count)')
    started=$(begun)
    run --separate-stderr timeout 120 "$ETRACE_BIN" ps -n "$NODE" --json --sort reductions --rows 4 --overhead 100%
    [[ $status -eq 0 ]] || fail "status $status: $stderr"
    started=$(($(begun) - started))
    run -0 jq -se --argjson alive "$alive" --argjson started "$started" --argjson all "$((sleeping + serving))" '.[-1].count > $all and .[-1].count <= $alive + $started' <<<"$output"
    on_node 'begin R = monitor(process, load), exit(whereis(load), kill), receive {_, R, _, _, _} -> ok end end'
    group_end
    few() { [[ $(node_eval "$NODE" 'erlang:system_info(process_count) < 1000') == true ]]; }
    until_true 30 few
}

@test "on a terminal no line is wider than the terminal" {
    group 3 'fun() -> timer:sleep(infinity) end'
    terminal 60 40 "$ETRACE_BIN stacks -1 -n $NODE -P group -P w -P kernel_sup -P code_server; sleep 100"
    await 'processes · [0-9]+ stacks'
    run screen
    assert_line --regexp '^ +1 waiting +.*<0\.[0-9]+\.0>\(kernel_sup\)|…'
    terminal_end
    group_end
}

@test "on a terminal the stacks refresh, / filters them, and q leaves them there" {
    on_node 'begin register(deep, spawn(fun() -> work:begun(inner, [1]), receive stop -> ok end end)), ok end'
    live_snapshot
    terminal 100 40 "$ETRACE_BIN stacks -n $NODE -i 500ms; echo the end; sleep 100"
    await 'etrace stacks · .* processes · [0-9]+ stacks'
    await '^q quit  Enter details  t trace  s sort  o order  / filter'
    on_node 'begin [register(N, spawn(fun() -> timer:sleep(infinity) end)) || N <- [early, later]], ok end'
    await '^ +2 +\+2 waiting +timer:sleep/1 .*\((early|later)\)'
    await ' stacks · growth in [0-9]+s'
    await 'idle +gen_server '
    keys / L A T E
    await '^/LATE'
    await_not 'idle +gen_server '
    await '\(later\)'
    keys Enter
    await 'stacks · (growth in [0-9]+s · )?/LATE$'
    keys / Escape
    await 'idle +gen_server '
    # The name of the only node is not shown, so it does not match.
    keys / @ 1 2 7
    await_not 'idle +gen_server '
    keys Escape
    await 'idle +gen_server '
    keys p
    await '· paused$'
    keys p
    await_not '· paused$'
    keys h
    await 'choose a stack'
    keys q
    await 'the end'
    terminal_shows 'timer:sleep/1 .*\((early|later)\)'
    terminal_end
    on_node 'begin [begin R = monitor(process, N), exit(whereis(N), kill), receive {_, R, _, _, _} -> ok end end || N <- [early, later, deep, inner], whereis(N) =/= undefined] end'
    live_snapshot
}

@test "t traces the innermost function of the chosen stack that is not of OTP, or the messages of its processes" {
    terminal 160 24 "$ETRACE_BIN stacks -n $NODE; echo the end; sleep 100"
    await '^q quit'
    keys / w o r k : s e r v e Enter
    await 'stacks · (growth in [0-9]+s · )?/work:serve$'
    keys t
    await "etrace: etrace -n $NODE -P '<[0-9.]+>' 'work:serve/0 -> return'"
    await 'Ctrl-C stops'
    keys C-c
    await 'the end'
    terminal_end
    terminal 160 24 "$ETRACE_BIN stacks -n $NODE -P kernel_sup; echo the end; sleep 100"
    await '^q quit'
    await 'kernel_sup'
    keys Enter
    await '^1 process · idle · supervisor$'
    await '^  gen_server:loop(_hibernate)?/[0-9]+$' # a supervisor of OTP 29 hibernates when it has been idle for a second
    await '^1 process started as supervisor:kernel/1'
    await '^  <[0-9.]+>\(kernel_sup\)$'
    await '^q quit  Esc back'
    keys t
    await "etrace: etrace -n $NODE -P '<[0-9.]+>' 'recv\(_\)' 'send\(_, _\)'"
    await 'Ctrl-C stops'
    keys C-c
    await 'the end'
    terminal_end
}

@test "etrace looks at several nodes side by side, and keeps their stacks apart" {
    node_start other
    other=$NODE
    NODE=$LIVE_NODE
    run --separate-stderr timeout 60 "$ETRACE_BIN" stacks -n "$NODE" -n "$other" --json -P kernel_sup
    node_stop "$other"
    assert_success
    assert_equal "$(jq -r 'select(.type == "stack") | .node' <<<"$output" | sort)" "$(printf '%s\n' "$NODE" "$other" | sort)"
}

@test "mistakes are reported before anything is asked" {
    refused() { # MESSAGE ARGS...
        local message=$1
        shift
        stacks "$@"
        assert_failure 2
        assert_equal "${stderr_lines[0]}" "etrace: $message"
    }
    refused '-P new selects processes that do not exist yet, so there is nothing to look at' -P new
    refused 'x.txt has no extension of a view of stacks' -o x.txt
    refused 'json is not a view of stacks' --as json
    refused 'requests is not a view of stacks' --as requests
    refused 'no such view is not a view of stacks' --as 'no such view'
    refused '--json and --as exclude each other' --json --as folded
    refused '--interval also needs --for DURATION' -i 1s
    stacks lists:seq/2
    assert_failure 2
    stacks -o /no/such/place.svg
    assert_failure
    assert_equal "$stderr" 'etrace: cannot write /no/such/place.svg: No such file or directory'
}

noticed() { grep -qaxF "etrace: $1: the node closed the connection" "$ERR"; }

@test "stacks --for writes the samples of all nodes when a node goes down" {
    local other
    node_start other && other=$NODE
    NODE=$LIVE_NODE
    ETRACE_DEBUG=wire etrace_start stacks -n "$NODE" -n "$other" --for 1h -P kernel_sup -o "$BATS_TEST_TMPDIR/s.folded" --json
    looked() { [[ $(grep -ac ' < reply 1: {ok,' "$ERR") -eq 2 ]]; }
    until_true 30 looked || fail "$(<"$ERR")"
    node_stop "$other"
    until_true 30 noticed "$other" || fail "$(<"$ERR")"
    child_kill "$TRACER" INT
    trace_wait
    assert_equal "$status" 1
    assert_equal "$(jq -r 'select(.type == "stack" and .samples > 0) | .node' "$OUT" | sort)" "$(printf '%s\n' "$NODE" "$other" | sort)"
    grep -q 'gen_server:loop' "$BATS_TEST_TMPDIR/s.folded"
}

@test "stacks shows the other nodes when a node cannot be attached or refuses, and the status says why" {
    stacks -n nobody@127.0.0.1 -P kernel_sup --json
    assert_failure 3
    assert_equal "$(jq -r '"\(.type) \(.node)"' <<<"$output")" "$(printf '%s\n' "stack $NODE" "stacks $NODE")"
    assert_regex "$stderr" 'nobody@127.0.0.1'
    run --separate-stderr "$ETRACE_BIN" stacks -n nobody@127.0.0.1
    assert_failure 3
    assert_equal "$output" ''
    assert_equal "${#stderr_lines[@]}" 2
    node_start other
    stacks -n "$LIVE_NODE" -P w --json
    node_stop "$NODE"
    NODE=$LIVE_NODE
    assert_failure 5
    assert_equal "$(jq -r '"\(.type) \(.node)"' <<<"$output")" "$(printf '%s\n' "stack $NODE" "stacks $NODE")"
    assert_regex "$stderr" 'no process is registered as w on the node'
}

@test "stacks on a terminal goes on with the other nodes when a node goes down, and t still traces" {
    local other
    node_start other && other=$NODE
    NODE=$LIVE_NODE
    terminal 160 24 "$ETRACE_BIN stacks -n $NODE -n $other -P kernel_sup -v --interval 500ms; echo the end: \$?; sleep 100"
    await "$other .*\(kernel_sup\)"
    node_stop "$other"
    await ' · 1 error$'
    await_not "$other .*\(kernel_sup\)"
    await "$NODE .*\(kernel_sup\)"
    keys t
    await "etrace: etrace -n $NODE -P '<[0-9.]+>' 'recv\(_\)' 'send\(_, _\)'"
    await 'Ctrl-C stops'
    keys C-c
    await 'the end: 1'
    terminal_end
}
