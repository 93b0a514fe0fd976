#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests how `etrace stacks`, `ps` and `why` name processes: by the modules of the user, in the language of the module.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/terminal

# Compiles four callback modules into BANK.
setup_file() {
    local module dir=$BATS_FILE_TMPDIR
    for module in Elixir.Bank.Account Elixir.Bank.Ledger; do
        cat >"$dir/$module.erl" <<END
-module('$module').
-export([init/1, handle_call/3, handle_cast/2]).
init(X) -> {ok, X}.
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast(_, S) -> {noreply, S}.
END
    done
    cat >"$dir/bank_door.erl" <<'END'
-module(bank_door).
-export([callback_mode/0, init/1, handle_event/4]).
callback_mode() -> handle_event_function.
init(X) -> {ok, shut, X}.
handle_event(_, _, _, _) -> keep_state_and_data.
END
    printf '%s\n' '-module(bank_sup).' '-export([init/1]).' 'init(_) -> {ok, {#{}, []}}.' >"$dir/bank_sup.erl"
    # They wait like the behaviours of these names in RabbitMQ.
    local behaviour loop
    while read -r behaviour loop; do
        cat >"$dir/$behaviour.erl" <<END
-module($behaviour).
-export([start/2, init_it/6]).
start(Name, Module) -> gen:start(?MODULE, nolink, {local, Name}, Module, x, []).
init_it(Starter, _, _, Module, X, _) -> {ok, S} = Module:init(X), proc_lib:init_ack(Starter, {ok, self()}), $loop({Module, S}).
$loop(Server) -> receive stop -> ok; _ -> $loop(Server) end.
END
    done <<<$'gen_server2 process_next_msg\ngen_batch_server loop_wait'
    "$ETRACE_ERLC" -o "$dir" "$dir"/*.erl
    export BANK=$dir
    live_share words
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    [[ -n $BATS_TEST_COMPLETED ]] || bank_end || true
    live_teardown
}

asks() { run --separate-stderr timeout 60 "$ETRACE_BIN" "$1" -n "$NODE" "${@:2}"; }

# Starts a supervisor, three accounts, a ledger, a machine, an event manager and twenty workers, all linked to the process
# bank.
bank_begin() {
    on_node "begin Me = self(),
        [{module, M} = code:load_abs(filename:join(\"$BANK\", M)) || M <- ['Elixir.Bank.Account', 'Elixir.Bank.Ledger', bank_door, bank_sup]],
        register(bank, spawn(fun() ->
            [{ok, _} = gen_server:start_link(M, x, []) || M <- ['Elixir.Bank.Account', 'Elixir.Bank.Account', 'Elixir.Bank.Account', 'Elixir.Bank.Ledger']],
            {ok, _} = gen_statem:start_link(bank_door, x, []), {ok, _} = supervisor:start_link(bank_sup, x),
            {ok, _} = gen_event:start_link({local, bank_bell}),
            [proc_lib:spawn_link(timer, sleep, [infinity]) || _ <- lists:seq(1, 20)], Me ! up, receive stop -> exit(shutdown) end end)),
        receive up -> ok end end"
}

bank_end() {
    on_node "case whereis(bank) of undefined -> ok; P -> R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end end"
    until_true 20 bank_is_gone
    on_node "[begin code:purge(M), code:delete(M), code:purge(M) end || M <- ['Elixir.Bank.Account', 'Elixir.Bank.Ledger', bank_door, bank_sup]]"
}

bank_is_gone() {
    local REPLY
    node_ask "$NODE" "[Q || Q <- processes(), {_, M} <- [process_info(Q, {dictionary, '\$initial_call'})], is_tuple(M),
        lists:member(element(1, M), [timer, 'Elixir.Bank.Account', 'Elixir.Bank.Ledger', bank_door]) orelse M =:= {supervisor, bank_sup, 1}]"
    [[ $REPLY == '[]' ]]
}

@test "what is idle is one line for each behaviour, and names the modules of the user first" {
    bank_begin
    asks stacks
    assert_success
    assert_line --regexp '^ +[0-9]+ idle     gen_server  Bank\.Account ×3, Bank\.Ledger, '
    assert_line --regexp '^ +[0-9]+ idle     gen_statem  bank_door(, |$)'
    assert_line --regexp '^ +[0-9]+ idle     supervisor  bank_sup, kernel'
    assert_line --regexp '^ +[0-9]+ idle     gen_event  .*bank_bell'
    assert_line --regexp '^ +[0-9]+ idle     other  .*code_server'
    assert_line --regexp '^ +20 waiting  timer:sleep/1 < proc_lib:init_p_do_apply/3  timer:sleep/1 ×20$'
    refute_output --partial 'gen_server:loop'
    # Lines of idle processes come last.
    run -0 awk '$2 == "idle" { idle++; next } idle { bad = 1 } END { exit bad || !idle }' <<<"$output"
    bank_end
}

@test "-v has a line for each stack and lists its processes, JSON has the initial calls" {
    bank_begin
    asks stacks -v
    assert_success
    refute_output --partial ' idle '
    assert_line --regexp '^ +[0-9]+ waiting +gen_server:loop/[0-9]+ < '
    run -0 awk '$3 == "timer:sleep/1" { print gsub(/<[0-9.]+>/, "") }' <<<"$output"
    assert_output 20
    asks stacks --json
    assert_success
    run -0 jq -sc '([.[] | select(.type == "stack" and .idle) | .initial[] | select(.m | startswith("Elixir.Bank")) | [.m, .f, .a, .count]] | sort),
        ([.[] | select(.stack[0].f? == "sleep" and .stack[0].m == "timer") | [.idle, .count, .initial, (.processes | length)]])' <<<"$output"
    assert_line '[["Elixir.Bank.Account","init",1,3],["Elixir.Bank.Ledger","init",1,1]]'
    assert_line '[[false,20,[{"m":"timer","f":"sleep","a":1,"count":20}],4]]'
    bank_end
}

@test "--running leaves out what waits, also from the shares and the views" {
    on_node 'begin register(spinner, spawn(fun() -> (fun F() -> work:spin(1000), F() end)() end)), ok end'
    asks stacks --running --for 1s --overhead 50% --json -P spinner -P w -P kernel_sup
    assert_success
    run -0 jq -se '[.[] | select(.type == "stack")] | length > 0 and all(.status != "waiting" and .processes[0].name == "spinner")' <<<"$output"
    asks stacks --running --for 1s --overhead 50% --as folded -P spinner -P w -P kernel_sup
    assert_success
    [[ $output == *work:spin* && $output != *work:serve* ]] || fail "$output"
    asks stacks --running -P w
    assert_success
    assert_output ''
    on_node 'begin R = monitor(process, spinner), exit(whereis(spinner), kill), receive {_, R, _, _, _} -> ok end end'
}

@test "ps and why say what an idle process serves" {
    bank_begin
    asks ps -P 'initial(Bank.Account.init/1)' -P 'initial(supervisor:bank_sup/1)' -P bank_bell -P code_server
    assert_success
    assert_line --regexp '> +idle Bank\.Account \(gen_server\)$|\(Bank\.Account\.init/1\) +idle Bank\.Account \(gen_server\)$'
    assert_line --regexp ' idle bank_sup \(supervisor\)$'
    assert_line --regexp '\(bank_bell\) +idle \(gen_event\)$'
    assert_line --regexp '\(code_server\) +idle code_server$'
    asks why code_server
    assert_success
    assert_line --regexp '^does +idle code_server: waiting in code_server:loop/1'
    asks ps --json -P 'initial(Bank.Account.init/1)'
    run -0 jq -sre '[.[] | select(.type == "process") | .initial] | unique[]' <<<"$output"
    assert_output 'Bank.Account.init/1'
    bank_end
}

@test "servers of RabbitMQ's behaviours are idle, too" {
    local modules="['Elixir.Bank.Account', gen_server2, gen_batch_server]"
    on_node "begin [{module, M} = code:load_abs(filename:join(\"$BANK\", M)) || M <- $modules],
        [{ok, _} = M:start(list_to_atom(\"one_\" ++ atom_to_list(M)), 'Elixir.Bank.Account') || M <- tl($modules)], ok end"
    asks stacks
    for behaviour in gen_server2 gen_batch_server; do
        assert_line --regexp "^ +1 idle     $behaviour  Bank\.Account  <[0-9.]+>\(one_$behaviour\)\$"
    done
    asks ps -P one_gen_server2 -P one_gen_batch_server
    assert_line --regexp '\(one_gen_server2\) +idle Bank\.Account \(gen_server2\)$'
    assert_line --regexp '\(one_gen_batch_server\) +idle Bank\.Account \(gen_batch_server\)$'
    on_node "[begin R = monitor(process, N), N ! stop, receive {_, R, _, _, _} -> ok end end || N <- [one_gen_server2, one_gen_batch_server]]"
    on_node "[begin code:purge(M), code:delete(M), code:purge(M) end || M <- $modules]"
}

@test "on a terminal t on an idle line, and v, show the stacks, and Enter shows them below the line" {
    bank_begin
    terminal 100 40 "$ETRACE_BIN stacks -n $NODE -i 500ms; echo the end; sleep 100"
    await 'idle +gen_server +Bank\.Account ×3, Bank\.Ledger'
    keys / L E D G E R Enter
    await 'stacks · (growth in [0-9]+s · )?/LEDGER$'
    await_not 'timer:sleep/1'
    keys Enter
    await '^[0-9]+ processes · idle · gen_server$'
    await '^  gen_server:loop/[0-9]+$'
    await '^3 processes started as Bank\.Account\.init/1'
    keys Escape
    await 'idle +gen_server +Bank\.Account ×3, Bank\.Ledger'
    keys t
    await 'waiting +gen_server:loop/[0-9]+ .*'
    keys v
    await 'idle +gen_server +Bank\.Account'
    keys q
    await 'the end'
    terminal_end
    bank_end
}

# bats test_tags=long
@test "a process has its name in a registry of Elixir or in global, if its key is small" {
    live_own registry -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin"
    # The last processes have tables with their name that are no registries: one is private, one has another key.
    on_node "begin Me = self(), {module, M} = code:load_abs(filename:join(\"$BANK\", 'Elixir.Bank.Account')),
        R = 'Elixir.Registry', register(bank, spawn(fun() ->
            [{ok, _} = R:start_link([{keys, Kind}, {name, N}, {partitions, P}]) || {N, Kind, P} <- [{'Elixir.Bank.One', unique, 1}, {'Elixir.Bank.Four', unique, 4}, {bank_topics, duplicate, 1}]],
            {ok, Topic} = gen_server:start_link(M, x, []),
            [{ok, _} = gen_server:start_link({via, R, {N, K}}, M, x, []) || {N, K} <- [{'Elixir.Bank.One', <<\"acct \\\"1\\\"\"/utf8>>},
                {'Elixir.Bank.Four', {acct, 'Elixir.Bank.Account', 9}}, {'Elixir.Bank.One', lists:seq(1, 100000)}, {'Elixir.Bank.One', binary:copy(<<0>>, 100000)}]],
            {ok, _} = gen_server:start_link({global, {acct, 11}}, M, x, []),
            Me ! up, receive stop -> ok end end)), receive up -> ok end,
        [begin spawn(fun() -> register(N, self()), ets:new(N, [named_table | Options]), [ets:insert(N, {X, -1}) || X <- lists:seq(1, 1000)], Me ! up, receive stop -> ok end end), receive up -> ok end end ||
            {N, Options} <- [{a_private_table, [private]}, {a_table, [public, {keypos, 2}, bag]}]], ok end"
    asks ps --json -P 'initial(Bank.Account.init/1)'
    assert_success
    run -0 jq -r 'select(.type == "process").name' <<<"$output"
    assert_equal "$(sort <<<"$output")" "$(sort <<'END'
{Bank.One, "acct \"1\""}
{Bank.Four, {:acct, Bank.Account, 9}}
{global,{acct,11}}
Bank.Account.init/1
Bank.Account.init/1
Bank.Account.init/1
END
)"
    traced 'Bank.Account.handle_call(_, _, _)' -- "gen_server:call({via, 'Elixir.Registry', {'Elixir.Bank.Four', {acct, 'Elixir.Bank.Account', 9}}}, hello)"
    assert_output --regexp '>\(\{Bank\.Four, \{:acct, Bank\.Account, 9\}\}\) call Bank\.Account\.handle_call'
    # -P takes the names as they are printed.
    for name in '{Bank.One, "acct \"1\""}' '{Bank.Four, {:acct, Bank.Account, 9}}' '{global,{acct,11}}'; do
        asks ps --json -P "$name"
        assert_success
        assert_equal "$(jq -r 'select(.type == "process").name' <<<"$output")" "$name"
    done
    asks ps -P '{Bank.One, "no such key"}'
    assert_failure 5
    assert_equal "$stderr" 'etrace: no process is registered as {Bank.One, "no such key"} on the node'
    asks ps -P '{Bank.None, 1}'
    assert_failure 5
    # --server takes them, too.
    COMMAND=requests traced --as requestlog --server '{Bank.Four, {:acct, Bank.Account, 9}}' -- \
        "gen_server:call({via, 'Elixir.Registry', {'Elixir.Bank.Four', {acct, 'Elixir.Bank.Account', 9}}}, hello), gen_server:call({global, {acct, 11}}, other)"
    refute_regex "$talk" 'no request to it was seen'
    assert_output --partial hello
    refute_output --partial other
}

@test "on a node that runs Elixir, the looks print functions, modules, messages and names in Elixir" {
    live_own spelling -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin"
    on_node "begin Me = self(), {module, _} = code:ensure_loaded(elixir),
        Deaf = spawn(fun() -> register(deaf, self()), Me ! up, receive never -> ok end end), receive up -> ok end,
        [Deaf ! {job, 1} || _ <- lists:seq(1, 50)],
        spawn(fun() -> proc_lib:set_label({'Elixir.Bank.Worker', <<\"b\">>, 3}), global:set_lock({{res, 'Elixir.Bank'}, self()}), register(holds, self()), Me ! up, timer:sleep(infinity) end), receive up -> ok end,
        spawn(fun() -> Me ! up, global:set_lock({{res, 'Elixir.Bank'}, self()}) end), receive up -> ok end,
        spawn(fun() -> register(labelled, self()), unregister(labelled), proc_lib:set_label({'Elixir.Bank.Worker', <<\"a\">>, 3}), Me ! up, timer:sleep(infinity) end), receive up -> ok end end"
    asks stacks
    assert_success
    assert_line --regexp '1 waiting +:timer\.sleep/1 < .* <[0-9.]+>\(holds\)|2 waiting +:timer\.sleep/1'
    assert_line --regexp '^ +[0-9]+ idle +gen_server .*:rpc'
    refute_output --regexp '[ <][a-z_]+:[a-z_]+/[0-9]'
    asks ps -P code_server
    assert_line --regexp ' idle :code_server$'
    asks ps --json
    assert_equal "$(jq -r 'select(.name // "" | startswith("{Bank.Worker")).name' <<<"$output")" '{Bank.Worker, "a", 3}'
    asks why deaf
    assert_line --regexp '^queue +50 messages: 50 \{:job, _\}  '
    assert_line --regexp '^does +waiting in :prim_eval\.receive/2'
    asks check
    assert_failure 12
    assert_line --regexp '^! .*\(holds\) has held the lock \{:res, Bank\} of global'
}

# bats test_tags=long
@test "why and ps say for which processes a task of Elixir works" {
    live_own tasks -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin"
    on_node "begin Me = self(), register(owner, spawn(fun() ->
        {ok, Sup} = 'Elixir.Task.Supervisor':start_link([]),
        Task = 'Elixir.Task.Supervisor':async(Sup, timer, sleep, [infinity]), register(task, maps:get(pid, Task)), Me ! up, receive stop -> ok end end)), receive up -> ok end end"
    asks why task
    assert_success
    assert_line --regexp '^process +<[0-9.]+>\(task\) · .* · started by <[0-9.]+> < owner · works for owner  etrace ps '
    asks ps --json -P task -P owner
    run -0 jq -c 'select(.type == "process") | [.name, .callers]' <<<"$output"
    assert_line '["task",["owner"]]'
    assert_line '["owner",null]'
}
