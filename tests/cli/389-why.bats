#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests `etrace why`: it follows what a process waits for, finds deadlocks, and says why a process does not answer.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live
load ../lib/ticker
load ../lib/terminal

setup_file() {
    live_begin why
    cat >"$(node_dir "$NODE")/calls.erl" <<'END'
-module(calls).
-behaviour(gen_server).
-export([start/1, start/2, init/1, handle_call/3, handle_cast/2, handle_info/2, never/0, busy/0, behind/0, take/0, hold/0, started/1, client/0, ports/0, sends/1, dies/0, jobs/0, matches/0]).
start(Name) -> {ok, P} = gen_server:start({local, Name}, ?MODULE, [], []), P.
start(normal, Name) -> {ok, spawn_link(fun() -> register(Name, self()), receive stop -> ok end end)}.
init([restarts]) -> {ok, {#{intensity => 1000000, period => 1}, [#{id => x, start => {?MODULE, dies, []}}]}};
init([]) -> {ok, []}.
dies() -> {ok, spawn_link(fun() -> timer:sleep(10) end)}.
jobs() -> receive {job, _} -> jobs() end.
matches() -> T = ets:new(numbers, []), ets:insert(T, [{N, N} || N <- lists:seq(1, 20000)]), matches(T).
matches(T) -> [] = ets:match_object(T, {'_', 0}), receive never -> ok after 1 -> matches(T) end.
handle_call({checkout, _}, _, S) -> {noreply, S};
handle_call(take, {P, _}, S) when length(S) < 2 -> {reply, ok, [monitor(process, P) | S]};
handle_call(take, _, S) -> {noreply, S};
handle_call(sleep, _, S) -> timer:sleep(infinity), {reply, ok, S};
handle_call(_, _, S) -> {reply, ok, S}.
handle_cast({call, Other, Request}, S) -> gen_server:call(Other, Request, infinity), {noreply, S};
handle_cast({give_up, Other, Next}, S) ->
    try gen_server:call(Other, stale, 50) catch exit:{timeout, _} -> ok end,
    gen_server:call(Next, checkout, infinity), {noreply, S};
handle_cast({monitor, Others}, S) -> [monitor(process, P) || P <- Others], {noreply, S};
handle_cast(wait, S) -> receive never -> ok end, {noreply, S}.
handle_info({db_connection, _, _}, S) -> {noreply, S}.
take() -> ok = gen_server:call(pool, take, infinity), hold().
client() -> receive ask -> gen_server:call(one, ask, infinity) end.
ports() -> P = open_port({spawn, "sleep 1000"}, [binary]), (fun F() -> port_command(P, binary:copy(<<0>>, 100000)), F() end)().
sends(Options) ->
    {ok, L} = gen_tcp:listen(0, Options ++ [{ip, {127, 0, 0, 1}}, {active, false}, binary]), {ok, Port} = inet:port(L),
    {ok, C} = gen_tcp:connect({127, 0, 0, 1}, Port, Options ++ [{active, false}, binary]), {ok, _} = gen_tcp:accept(L),
    (fun F() -> ok = gen_tcp:send(C, binary:copy(<<0>>, 100000)), F() end)().
hold() -> receive give_back -> ok end.
never() -> receive never -> ok end.
busy() -> lists:seq(1, 1000), busy().
behind() -> receive _ -> busy() end.
started([]) -> proc_lib:init_ack({ok, self()}), gen_server:enter_loop(?MODULE, [], []);
started(Name) -> register(Name, self()), never().
END
    # Waits like the module of this name in db_connection 2.
    cat >"$(node_dir "$NODE")/Elixir.DBConnection.Holder.erl" <<'END'
-module('Elixir.DBConnection.Holder').
-export([checkout/1]).
checkout(Pool) -> {ok, checkout_call(Pool)}.
checkout_call(Pool) ->
    Lock = monitor(process, Pool),
    Pool ! {db_connection, {self(), Lock}, {checkout, [self()], erlang:monotonic_time(), true}},
    receive {'ETS-TRANSFER', Holder, _, {Lock, _, _}} -> Holder; {'DOWN', Lock, _, _, Reason} -> exit(Reason) end.
END
    export CALLS
    CALLS=$(node_dir "$NODE")
    "$ETRACE_ERLC" -o "$CALLS" "$CALLS"/{calls,Elixir.DBConnection.Holder}.erl
    on_node "code:add_patha(\"$CALLS\"), [{module, M} = code:load_file(M) || M <- [calls, 'Elixir.DBConnection.Holder']]"
    # The first look loads modules and makes atoms.
    timeout 60 "$ETRACE_BIN" why --for 100ms -n "$NODE" w
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    terminal_end
    [[ -n $BATS_TEST_COMPLETED ]] || ended "${all[@]}" || true
    live_teardown
}

all=(one two three four pool lone leaks works looks)

why() { run --separate-stderr timeout 60 "$ETRACE_BIN" why --for 300ms -n "$NODE" "$@"; }
of() { jq -r "$1" <<<"$output"; }
# The names of the chain, and what ends it.
chain() { of '[.chain[].name] | join(" ")'; }

servers() { on_node "[calls:start(N) || N <- [$1]]"; }
process() { on_node "begin Me = self(), spawn(fun() -> register($1, self()), Me ! up, $2 end), receive up -> ok end end"; }
# fed NAME: the process gets messages as long as it lives. They go to its pid: sending to a name that is gone is an error.
fed() { on_node "begin P = whereis($1), spawn(fun() -> link(P), (fun F() -> P ! job, timer:sleep(1), F() end)() end), ok end"; }
# Ends processes, whether or not others of them still run: the end of one may end its callers.
ended() {
    local names
    names=$(printf '%s,' "$@")
    on_node "[begin R = monitor(process, P), exit(P, kill), receive {'DOWN', R, _, _, _} -> ok end end || N <- [${names%,}], P <- [whereis(N)], is_pid(P)]"
}
# Succeeds when the process w is traced.
watched() { [[ $(node_eval "$NODE" 'trace:session_info(whereis(w))') != *'[]'* ]]; }
# calling NAME: succeeds when the server is in a call.
calling() { [[ $(node_eval "$NODE" "begin {_, [{M, F, _, _} | _]} = process_info(whereis($1), current_stacktrace), {M, F} end") == '{gen,do_call}' ]]; }

@test "two servers that call each other are a deadlock, for them and for their callers" {
    servers 'one, two, three'
    on_node 'gen_server:cast(one, {call, two, a}), gen_server:cast(two, {call, one, {b, secret}}), ok'
    until_true 20 calling one
    until_true 20 calling two
    why one
    assert_success
    assert_regex "${lines[0]}" '^(<[0-9.]+>)\(one\) deadlock: <[0-9.]+>\(one\) -> <[0-9.]+>\(two\) -> <[0-9.]+>\(one\)$'
    assert_line --regexp "^waits for +<[0-9.]+>\(two\) .*etrace why -n $NODE '<[0-9.]+>'$"
    assert_line --regexp '^asked by +1 process: <[0-9.]+>\(two\) '
    assert_line --regexp '^queue +1 message: 1 call \{b,_\} from <[0-9.]+> '
    refute_output --partial secret
    why --json two
    assert_success
    assert_equal "$(of '"\(.cause) \(.cycle) \(.complete) \(.waiters)"') $(chain)" 'deadlock 0 true 1 two one'
    on_node 'gen_server:cast(three, {call, one, c}), ok'
    until_true 20 calling three
    why --json three
    assert_equal "$(of '"\(.cause) \(.cycle) \(.waiters)"') $(chain)" 'deadlock 1 0 three one two'
    ended one two three
}

@test "a chain is followed to the process that it ends at" {
    servers 'one, two, three'
    on_node 'gen_server:cast(three, wait), gen_server:cast(two, {call, three, a}), ok'
    until_true 20 calling two
    on_node 'gen_server:cast(one, {call, two, a}), ok'
    until_true 20 calling one
    why one
    assert_regex "${lines[0]}" '^<[0-9.]+>\(one\) waits for <[0-9.]+>\(two\) for at least [0-9.]+s, which waits for <[0-9.]+>\(three\), which waits in calls:handle_cast/2'
    why --json one
    assert_equal "$(of '"\(.cause) \(.cycle) \([.chain[].waits_for_one_of])"') $(chain)" 'waits null [1,1,null] one two three'
    why --json two
    assert_equal "$(of '"\(.waiters) \(.waiting[0].name)"') $(chain)" '1 one two three'
    ended one two three
}

@test "a caller that monitors several processes waits for the one with its request, else for one that is not idle" {
    servers 'one, two, three, four'
    on_node 'gen_server:cast(one, {monitor, [three, four]}), gen_server:cast(two, wait), gen_server:cast(one, {call, two, a}), ok'
    until_true 20 calling one
    why --json one
    assert_equal "$(of '.chain[0].waits_for_one_of') $(chain)" '1 one two'
    ended one
    # The pool has taken the request from its queue, and is as idle as the others: the answer is a guess.
    servers 'one, pool'
    on_node 'global:register_name(pool, whereis(pool)), gen_server:cast(one, {monitor, [three, four]}), gen_server:cast(one, {call, {global, pool}, {checkout, me}}), ok'
    until_true 20 calling one
    why --json one
    assert_equal "$(of '.chain[0].waits_for_one_of')" 3
    why one
    assert_regex "${lines[0]}" '^<[0-9.]+>\(one\) probably waits for '
    assert_line --regexp '^waits for .* \(one of 3 that it monitors\)'
    ended one two three four pool
}

@test "a server that calls a process while its clients wait is no deadlock" {
    servers 'one'
    on_node '[register(N, spawn(calls, client, [])) || N <- [two, three]], gen_server:cast(one, {monitor, [two, three]}), ok'
    servers 'four, pool'
    on_node 'gen_server:cast(one, {call, four, sleep}), two ! ask, three ! ask, ok'
    until_true 20 calling one
    until_true 20 calling two
    until_true 20 calling three
    why --json one
    assert_equal "$(of '"\(.cause) \(.chain[0].waits_for_one_of) \(.waiters)"') $(chain)" 'waits 1 2 one four'
    why --json two
    assert_equal "$(of .cause) $(chain)" 'waits two one four'
    why four
    assert_line --regexp '^asked by +1 process: <[0-9.]+>\(one\) '
    # The same if the name of the server that is called says nothing about its process.
    ended one four
    servers 'one, four'
    on_node 'global:register_name(four, whereis(four)), [N ! ask || N <- [two, three], register(N, spawn(calls, client, []))], gen_server:cast(one, {monitor, [two, three]}), gen_server:cast(one, {call, {global, four}, sleep}), ok'
    until_true 20 calling one
    why --json one
    assert_equal "$(of '"\(.cause) \(.chain[0].waits_for_one_of)"') $(chain)" 'waits 1 one four'
    why --json four
    assert_equal "$(of '"\(.waiters) \(.waiting[0].name)"')" '1 one'
    ended one two three four pool
}

@test "a deadlock with a guessed process is only probable" {
    servers one
    on_node '[register(N, spawn(calls, client, [])) || N <- [two, three]], Ps = [spawn(calls, client, []) || _ <- lists:seq(1, 25)], put(ps, Ps), gen_server:cast(one, {monitor, [two, three | Ps]}), ok'
    servers pool
    on_node 'global:register_name(pool, whereis(pool)), gen_server:cast(one, {call, {global, pool}, {checkout, me}}), {_, Ms} = process_info(whereis(one), monitors), [P ! ask || {process, P} <- Ms, P =/= whereis(pool)], ok'
    until_true 20 calling one
    until_true 20 calling two
    probable() { why --json one && [[ "$(of '"\(.cause) \(.cycle)"') $(chain)" == 'probable_deadlock 0 one two' ]]; }
    until_true 20 probable || fail "$output"
    why one
    assert_regex "${lines[0]}" '^<[0-9.]+>\(one\) probably a deadlock: <[0-9.]+>\(one\) -> <[0-9.]+>\(two\) -> <[0-9.]+>\(one\)$'
    assert_line --regexp '-> <[0-9.]+>\(one\): probably the deadlock$'
    why pool
    assert_line --regexp '^asked by +no process · 1 other monitors it, and may wait '
    ended one pool
}

@test "a caller counts only while it waits for this reply" {
    servers 'lone, four, two, one'
    on_node 'gen_server:cast(lone, wait), [spawn(fun() -> try gen_server:call(lone, {a, N}, 50) catch exit:_ -> ok end end) || N <- [1, 2, 3]], register(looks, spawn(fun() -> try gen_server:call(lone, b, 50) catch exit:_ -> ok end, calls:never() end)), gen_server:cast(two, {monitor, [lone]}), gen_server:cast(two, {give_up, lone, four}), gen_server:cast(four, wait), gen_server:cast(one, {call, lone, c}), ok'
    gave_up() { why --json lone && [[ $(of '"\(.chain[0].queue) \(.waiters) \(.waiting[0].name) \(has("monitors"))"') == '6 1 one false' ]]; }
    until_true 20 gave_up || fail "$output"
    why lone
    assert_line --regexp '^queue +6 messages: 3 call \{a,_\}'
    why --json two
    assert_equal "$(of '.chain[0].waits_for_one_of') $(chain)" '1 two four'
    why --json four
    assert_equal "$(of '"\(.waiters) \(.waiting[0].name)"')" '1 two'
    ended lone four two one looks
}

@test "a process whose reply another one may read later says who may wait" {
    servers 'one, two'
    on_node 'gen_server:cast(one, wait), gen_server:cast(two, wait), spawn(fun() -> register(four, self()), [A, _] = [gen_server:send_request(S, ask) || S <- [one, two]], gen_server:wait_response(A, infinity) end), ok'
    asked() { why one && [[ $output == *'asked by    1 process: '*'(four)'* ]]; }
    until_true 20 asked || fail "$output"
    why two
    assert_line --regexp '^asked by +no process · 1 other monitors it, and may wait '
    ended four one two
}

@test "a process that a busy port or a socket holds up says so" {
    process works 'calls:ports()'
    process looks 'calls:sends([])'
    process leaks 'calls:sends([{inet_backend, socket}])'
    told() { why "$1" && [[ ${lines[0]} =~ $2 ]]; }
    until_true 20 told works '^<[0-9.]+>\(works\) suspended: it sends to a busy port$' || fail "$output"
    until_true 20 told looks '^<[0-9.]+>\(looks\) waits until a socket takes its data: the peer does not read, or slowly, in prim_inet:send/4 < ' || fail "$output"
    until_true 20 told leaks '^<[0-9.]+>\(leaks\) waits until a socket takes its data: .* in socket:send[a-z]*_deadline(_cont)?/[0-9] < ' || fail "$output"
    why --json looks
    assert_equal "$(of .cause)" socket
    process lone '(fun() -> {ok, L} = gen_tcp:listen(0, [{ip, {127, 0, 0, 1}}]), gen_tcp:accept(L) end)()'
    until_true 20 told lone '^<[0-9.]+>\(lone\) waits for a socket in prim_inet:accept0/3 < ' || fail "$output"
    # A port with data stays until its program has ended.
    on_node 'begin {_, [Port | _]} = process_info(whereis(works), links), {_, P} = erlang:port_info(Port, os_pid), R = monitor(port, Port), exit(whereis(works), kill), os:cmd("kill -KILL " ++ integer_to_list(P)), receive {_, R, _, _, _} -> ok end end'
    ended looks leaks lone
}

@test "a process on another node is named with the command that goes on with it" {
    local there
    node_start far
    there=$NODE
    on_node "begin code:add_patha(\"$(node_dir "$LIVE_NODE")\"), calls:start(far), gen_server:cast(far, wait), ok end"
    pid=$(node_eval "$there" '{pid, pid_to_list(whereis(far))}' | sed 's/.*"\(.*\)".*/\1/')
    live_own near
    on_node "code:add_patha(\"$(node_dir "$LIVE_NODE")\")"
    servers 'one, two, three'
    on_node "gen_server:cast(one, {call, {far, '$there'}, a}), ok"
    on_node "gen_server:cast(two, {call, rpc:call('$there', erlang, whereis, [far]), b}), gen_server:cast(three, {call, two, c}), ok"
    until_true 20 calling one
    until_true 20 calling two
    until_true 20 calling three
    why one
    assert_success
    assert_regex "${lines[0]}" "^<[0-9.]+>\(one\) waits for far on $there for at least [0-9.]+s, not followed further$"
    assert_line --regexp "^waits for +far on $there, not followed further  etrace why -n $there far$"
    why three
    assert_line --regexp "^ +-> $pid on $there, not followed further  etrace why -n $there '$pid'$"
    why --json two
    assert_equal "$(of '.chain[1] | "\(.pid) \(.node) \(.answer)"')" "$pid $there elsewhere"
    # The command works: there, two processes wait for this one.
    run --separate-stderr timeout 60 "$ETRACE_BIN" why --for 300ms -n "$there" "$pid"
    assert_success
    assert_line --regexp "^queue +2 messages: 1 call a from <0\.[0-9.]+> on $NODE, 1 call b from <0\.[0-9.]+> on $NODE "
    assert_line --regexp "^asked by +2 processes: <0\.[0-9.]+> on $NODE <0\.[0-9.]+> on $NODE "
    two=$(node_eval "$NODE" '{pid, pid_to_list(whereis(two))}' | sed 's/.*"\(.*\)".*/\1/')
    run --separate-stderr timeout 60 "$ETRACE_BIN" why --for 300ms --json -n "$there" "$pid"
    assert_equal "$(of '.waiting[] | select(.pid == "'"$two"'") | .node')" "$NODE"
}

@test "callers of other nodes and those after the first 200 are counted as processes that may wait" {
    local there
    node_start far
    there=$NODE
    on_node "begin code:add_patha(\"$(node_dir "$LIVE_NODE")\"), calls:start(lent), ok end"
    live_own near
    on_node "begin spawn(fun() -> gen_server:call({lent, '$there'}, {checkout, a}, infinity) end), ok end"
    held() { NODE=$there why lent && assert_line --regexp '^asked by +no process · 1 other monitors it, and may wait '; }
    until_true 20 held || fail "$output"
    NODE=$there on_node "[spawn(fun() -> gen_server:call(lent, {checkout, a}, infinity) end) || _ <- lists:seq(1, 250)]"
    many() { NODE=$there why lent && [[ ${lines[0]} == *'(lent) idle, but at least 200 processes wait for its reply' ]]; }
    until_true 20 many || fail "$output"
    assert_line --regexp '^asked by +200 processes: .* · 51 others monitor it, and may wait '
    NODE=$there why --json lent
    assert_equal "$(of '"\(.waiters) \(.monitors)"')" '200 51'
}

@test "a pool that is exhausted is idle and owes replies" {
    servers pool
    on_node '[spawn(fun() -> gen_server:call(pool, {checkout, N}, infinity) end) || N <- lists:seq(1, 6)]'
    waited() { why --json pool && [[ $(of '"\(.cause) \(.waiters) \(.waiting | length)"') == 'owes 6 4' ]]; }
    until_true 20 waited
    why pool
    assert_regex "${lines[0]}" '^<[0-9.]+>\(pool\) idle, but 6 processes wait for its reply$'
    ended pool
}

@test "the clients of an exhausted pool are one group of stacks, and why names the pool for each of them" {
    local client
    groups() { # COUNTS FILTER
        run --separate-stderr timeout 60 "$ETRACE_BIN" stacks --json -n "$NODE"
        [[ $(jq -sc "[.[] | select(.type == \"stack\") | select($2) | .count]" <<<"$output") == "$1" ]]
    }
    servers pool
    # Two clients have the places of the pool.
    on_node '[spawn(calls, take, []) || _ <- lists:seq(1, 40)], ok'
    process one 'calls:take()'
    until_true 30 groups '[39,2]' 'any(.stack[]; .m == "calls") and (.stack[0].f == "do_call" or .stack[0].f == "hold")' || fail "$output"
    run --separate-stderr timeout 60 "$ETRACE_BIN" stacks -n "$NODE"
    assert_line --regexp '^ +39 waiting +gen:do_call/4 < .*calls:take/0$'
    assert_line --regexp '^ +2 waiting +calls:hold/0 '
    why one
    assert_regex "${lines[0]}" '^<[0-9.]+>\(one\) waits for <[0-9.]+>\(pool\) for at least [0-9.]+s, which is idle, and owes the reply$'
    owed() { why --json pool && [[ $(of '"\(.cause) \(.waiters)"') == "owes $1" ]]; }
    until_true 30 owed 39 || fail "$output"
    client=$(of '.waiting[0].pid')
    why --json "$client"
    assert_equal "$(of .cause) $(of '.chain[1].name')" 'waits pool'
    ended pool
    on_node '[begin R = monitor(process, P), exit(P, kill), receive {_, R, _, _, _} -> ok end end || P <- processes(), process_info(P, current_function) =:= {current_function, {calls, hold, 0}}]'
    # Clients of DBConnection wait without a call of gen_server.
    servers pool
    on_node "[spawn('Elixir.DBConnection.Holder', checkout, [whereis(pool)]) || _ <- lists:seq(1, 30)], ok"
    process one "'Elixir.DBConnection.Holder':checkout(whereis(pool))"
    until_true 30 groups '[31]' '.stack[0].f == "checkout_call"' || fail "$output"
    why one
    assert_regex "${lines[0]}" '^<[0-9.]+>\(one\) waits for <[0-9.]+>\(pool\) for at least [0-9.]+s, which is idle, and owes the reply$'
    until_true 30 owed 31 || fail "$output"
    why pool
    assert_regex "${lines[0]}" '^<[0-9.]+>\(pool\) idle, but 31 processes wait for its reply$'
    ended pool
}

@test "why counts the messages of a process by sender, and says when there are too many" {
    process leaks '(fun F() -> receive _ -> F() end end)()'
    on_node 'begin P = whereis(leaks), S = fun(Name, Ms) -> spawn(fun() -> link(P), register(Name, self()), (fun F() -> P ! job, timer:sleep(Ms), F() end)() end) end, S(works, 5), S(looks, 20), ok end'
    why --for 2s --json leaks
    assert_success
    assert_equal "$(of '[.senders[].name] | join(" ")')" 'works looks'
    run -0 jq -e '.received == ([.senders[].count] | add) and .senders[0].count > 2 * .senders[1].count and .received_us > 1000000' <<<"$output"
    why --for 1s leaks
    assert_line --regexp '^sent by +[0-9]+ messages in [0-9.]+s: [0-9]+ from <[0-9.]+>\(works\), [0-9]+ from <[0-9.]+>\(looks\)  etrace '
    # A sleeping sender has timeouts of its own receive, which are no messages.
    why --json looks
    assert_equal "$(of '"\(.received) \(.senders)"')" '0 []'
    # More than a thousand a second: only their number is known.
    on_node 'begin P = whereis(leaks), spawn(fun() -> link(P), (fun F() -> [P ! job || _ <- lists:seq(1, 20)], timer:sleep(1), F() end)() end), ok end'
    why --for 3s --json leaks
    assert_equal "$(of '"\(.received > 3000) \(has("senders"))"')" 'true false'
    why --for 1s leaks
    assert_line --regexp '^sent by +[0-9.]+k? messages in [0-9.]+s, too many to count them by sender '
    ended leaks
}

@test "Elixir: a task that is awaited leads to the pool that is exhausted" {
    live_own elixir -pa "${ETRACE_ERL%/bin/erl}/root/usr/lib/elixir/lib/elixir/ebin"
    cat >"$(node_dir "$NODE")/pool.exs" <<'END'
defmodule Pool do
  use GenServer
  def init(free), do: {:ok, free}
  def handle_call(:checkout, _, free) when free > 0, do: {:reply, :ok, free - 1}
  def handle_call(:checkout, _, 0), do: {:noreply, 0}
  def checkout, do: GenServer.call(Pool, :checkout, :infinity)
end
{:ok, _} = GenServer.start(Pool, 1, name: Pool)
:ok = Pool.checkout()
named = fn name, fun -> spawn(fn -> Process.register(self(), name); fun.(); :ok end) end
named.(:awaits, fn -> Task.await(Task.async(fn -> Pool.checkout() end), :infinity) end)
named.(:streams, fn -> Enum.to_list(Task.async_stream([1], fn _ -> Pool.checkout() end, timeout: :infinity)) end)
named.(:many, fn -> Task.await_many((for _ <- 1..2, do: Task.async(fn -> Process.sleep(:infinity) end)), :infinity) end)
named.(:sleeps, fn -> Process.sleep(:infinity) end)
END
    on_node "begin {ok, _} = application:ensure_all_started(elixir), 'Elixir.Code':eval_file(<<\"$(node_dir "$NODE")/pool.exs\">>) end"
    exhausted() { why --json Pool && [[ $(of '"\(.cause) \(.waiters)"') == 'owes 2' ]]; }
    until_true 20 exhausted || fail "$output"
    why awaits
    assert_regex "${lines[0]}" '^<[0-9.]+>\(awaits\) waits for <[0-9.]+>.* for at least [0-9.]+s, which waits for <[0-9.]+>\(Pool\), which is idle, and owes the reply$'
    why --json streams
    assert_equal "$(of '"\(.cause) \(has("cycle")) \(.chain | length) \(.chain[-1].name)"')" 'waits false 4 Pool'
    why "$(of '.chain[1].pid')"
    assert_regex "${lines[0]}" '^<[0-9.]+> waits for <[0-9.]+> for at least [0-9.]+s, which waits for <[0-9.]+>\(Pool\), '
    assert_line --regexp '^asked by +1 process: <[0-9.]+>\(streams\) '
    # The stack of a task has the reference that its owner waits for.
    why --json many
    assert_equal "$(of '.chain[0].waits_for_one_of')" 2
    why "$(of '.chain[1].pid')"
    assert_line --regexp '^asked by +1 process: <[0-9.]+>\(many\) '
    why --json sleeps
    assert_equal "$(of .cause)" sleeps
}

@test "why follows the waits for I/O, files, several servers and the start of a process" {
    waits() { why --json "$1" && [[ "$(of .cause) $(of '.chain[1].name')" == "waits $2" ]]; }
    process lone 'calls:never()'
    servers 'one'
    on_node 'gen_server:cast(one, wait), ok'
    process io_waits 'begin group_leader(whereis(lone), self()), io:format("hello~n") end'
    process file_waits 'file:pread(whereis(lone), 0, 10)'
    process multi_waits 'gen_server:multi_call([node()], one, request)'
    until_true 20 waits io_waits lone || fail "$output"
    until_true 20 waits file_waits lone || fail "$output"
    until_true 20 waits multi_waits one || fail "$output"
    why io_waits
    assert_regex "${lines[0]}" '^<[0-9.]+>\(io_waits\) waits for <[0-9.]+>\(lone\) for at least [0-9.]+s, which waits in calls:never/0'
    both_wait() { why --json lone && [[ $(of .waiters) == 2 ]]; }
    until_true 20 both_wait || fail "$output"
    # A supervisor waits for the child that it starts, and not for those that it has started before.
    process starts "begin process_flag(trap_exit, true), [{ok, _} = proc_lib:start_link(calls, started, [[]]) || _ <- [1, 2]], proc_lib:start_link(calls, started, [hangs]) end"
    process begins "proc_lib:start(calls, started, [hangs_too])"
    until_true 20 waits starts hangs || fail "$output"
    until_true 20 waits begins hangs_too || fail "$output"
    ended one io_waits file_waits multi_waits lone starts begins hangs hangs_too
}

@test "a server that sys:suspend has stopped is suspended, for itself and for its callers" {
    servers 'one, two'
    on_node 'sys:suspend(two), gen_server:cast(one, {call, two, a}), ok'
    until_true 20 calling one
    why two
    assert_regex "${lines[0]}" '^<[0-9.]+>\(two\) suspended \(sys:suspend\), and 1 process waits for its reply$'
    why --json two
    assert_equal "$(of '"\(.cause) \(.waiters)"')" 'suspended 1'
    why one
    assert_regex "${lines[0]}" 'waits for <[0-9.]+>\(two\) for at least [0-9.]+s, which is suspended \(sys:suspend\)$'
    ended one two
}

@test "no receive takes from the queue: why says so, and shows the shapes of a short queue" {
    process leaks 'calls:never()'
    on_node 'leaks ! {job, secret}, leaks ! tick, leaks ! #{a => secret}, leaks ! <<"secret">>, ok'
    why --json leaks
    assert_equal "$(of '"\(.cause) \([.messages[] | "\(.count) \(.shape)"] | join(", "))"')" 'unmatched 1 {job,_}, 1 tick, 1 #{}, 1 <<_>>'
    refute_output --partial secret
    why leaks
    assert_regex "${lines[0]}" '^<[0-9.]+>\(leaks\) no message of its queue matches the receive in calls:never/0$'
    on_node '[leaks ! {job, N} || N <- lists:seq(1, 1000)], ok'
    why --json leaks
    assert_equal "$(of '"\(.cause) \(.chain[0].queue) \(has("messages"))"')" 'unmatched 1004 false'
    fed leaks
    why leaks
    assert_regex "${lines[0]}" '; its queue grows by [0-9.]+k?/s$'
    ended leaks
}

@test "messages that take much memory are not read, because the node would have to copy them" {
    live_own whylarge -pa "$CALLS"
    process leaks 'calls:never()'
    process works "calls:behind()"
    servers 'one'
    on_node '[leaks ! lists:seq(1, 1000000) || _ <- lists:seq(1, 16)], gen_server:cast(one, {monitor, [whereis(leaks), whereis(works)]}), ok'
    on_node 'gen_server:cast(one, {call, leaks, x}), ok'
    until_true 20 calling one
    pid=$(<"$(node_dir "$NODE")/pid")
    # The queue has 256 MB, and the node can get 100 MB more.
    prlimit --pid "$pid" --as=$(($(awk '/^VmSize:/ { print $2 }' "/proc/$pid/status") * 1024 + 100 * 1024 * 1024))
    why leaks
    assert_success
    assert_line --regexp '^queue +17 messages \(too many or too large to read\)'
    why --json one
    assert_success
    assert_equal "$(of '.chain[0].name')" one
    on_node ok
}

# Starts on a node of its own: lone, whose label and ancestors are lists of ITEMS integers, 16 bytes each; a lock of global
# and an alarm of 96 MB; pool, with 100,000
# links and monitors in both directions; works, with BINARIES binaries; leaks, with MESSAGES messages of 16 MB; and one, which
# waits for any of them. The node can get 100 MB more.
large_processes() { # ITEMS BINARIES MESSAGES ERL-FLAG...
    local pid items=$1 binaries=$2 messages=$3
    live_own whyhuge -pa "$CALLS" "${@:4}"
    servers one
    # Room for the whole list saves the copies that a growing heap makes.
    process lone "process_flag(min_heap_size, 2 * $items + 15000000), erlang:garbage_collect(), L = lists:seq(1, $items), put('\$process_label', L), put('\$ancestors', L), put('\$callers', [self(), lists:seq(1, 6000000)]), fun F() -> receive M -> work:one(M), F() end end()"
    process pool 'Pool = self(), L = [spawn_opt(fun() -> monitor(process, Pool), calls:never() end, [link, monitor]) || _ <- lists:seq(1, 100000)], register(two, element(1, hd(L))), calls:never()'
    process works "put(all, [binary:copy(<<7>>, 80) || _ <- lists:seq(1, $binaries)]), calls:never()"
    process leaks 'calls:never()'
    process feeder "[leaks ! lists:seq(1, 1000000) || _ <- lists:seq(1, $messages)], gen_server:cast(one, {monitor, [P || P <- processes(), P =/= whereis(one)]}), gen_server:cast(one, {call, leaks, x})"
    # The alarm handler would also log the alarm.
    on_node 'logger:set_primary_config(level, none), {ok, _} = application:ensure_all_started(sasl), alarm_handler:set_alarm({large, lists:seq(1, 6000000)})'
    process holder 'global:set_lock({lists:seq(1, 6000000), self()}, [node()]), calls:never()'
    until_true 600 calling one
    # Each has built its terms, which it could not do with the limit.
    built() { [[ $(node_eval "$NODE" '[] =:= [N || N <- [lone, pool, works, leaks, holder], process_info(whereis(N), status) =/= {status, waiting}]') == true ]]; }
    until_true 600 built
    # Frees the garbage of the lock and of the alarm, so that no later message makes these heaps grow.
    on_node '[true = garbage_collect(whereis(N)) || N <- [global_name_server, alarm_handler]]'
    pid=$(<"$(node_dir "$NODE")/pid")
    prlimit --pid "$pid" --as=$(($(awk '/^VmSize:/ { print $2 }' "/proc/$pid/status") * 1024 + 100 * 1024 * 1024))
}

@test "no question makes a node copy what is large" {
    local name
    large_processes 6000000 300000 10
    for name in lone pool works leaks two; do
        why "$name"
        [[ $status -eq 0 ]] || fail "why $name: $stderr"
    done
    why one
    assert_success
    assert_line -n 0 --partial 'its links and monitors are too many to tell for which process it waits'
    why --json one
    assert_equal "$(of '"\(.chain[0].too_many_links) \(.complete)"')" 'true false'
    why pool
    assert_line --regexp '^asked by +unknown \(too many processes monitor it\)'
    for name in queue memory binaries reductions; do
        run timeout 60 "$ETRACE_BIN" ps -n "$NODE" --sort "$name" --rows 1000
        assert_success
    done
    run timeout 60 "$ETRACE_BIN" stacks -n "$NODE"
    assert_success
    run --separate-stderr timeout 60 "$ETRACE_BIN" ps --json -n "$NODE" -P lone
    assert_equal "$(of 'select(.name == "lone") | .ancestors | length')" 1
    run --separate-stderr timeout 60 "$ETRACE_BIN" check -n "$NODE"
    for name in alarms locks; do assert_line --regexp "^\. +the node's $name are unknown, because their copy might be large"; done
    trace --json --limit 2 work:one/1
    on_node 'lone ! 1, P = whereis(lone), unregister(lone), P ! 2'
    trace_wait
    assert_success
    # With its first event, the process had its name still, or only a label that is too large.
    [[ $(json_of call '.name // "none"' | sort -u) == @(lone|none) ]]
}

# One scheduler, so a question that keeps it busy delays the ticker. The sizes take 4 GB of memory at the most.
# bats test_tags=long
@test "a question about what is huge neither ends the node nor keeps a scheduler from its other processes" {
    local name
    [[ $(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo) -gt 8000000 ]] || skip 'less than 8 GB of memory are free'
    large_processes 64000000 3000000 64 +S 1
    ticking
    for name in lone pool works leaks two one; do undisturbed why --for 300ms "$name"; done
    for name in memory binaries; do undisturbed ps --sort "$name" --rows 1000; done
    undisturbed stacks
    undisturbed check --for 1s
    undisturbed requests --for 500ms
    undisturbed info lone
    undisturbed trace --for 500ms -P lone -P works 'work:one/1 -> return, caller'
    why leaks
    assert_line --regexp '^queue +65 messages \(too many or too large to read\)'
    why pool
    assert_line --regexp '^asked by +unknown \(too many processes monitor it\)'
    on_node ok
}

@test "a process that hibernates is idle in erlang:hibernate/3, and is no candidate beside one that runs" {
    process lone 'erlang:hibernate(calls, behind, [])'
    hibernates() { why --json lone && [[ $(of '"\(.cause) \(.chain[0].stack[0].f)"') == 'idle hibernate' ]]; }
    until_true 20 hibernates || fail "$output"
    # One that hibernates is not busy, so the guess is the process that is.
    servers 'one, pool'
    process works 'calls:busy()'
    on_node 'global:register_name(pool, whereis(pool)), gen_server:cast(one, {monitor, [lone, works]}), gen_server:cast(one, {call, {global, pool}, {checkout, me}}), ok'
    until_true 20 calling one
    why --json one
    assert_equal "$(chain)" 'one works'
    ended one pool works lone
}

@test "the busiest function is one that runs, not the receive at which the process answers" {
    process works 'calls:matches()'
    why works
    assert_regex "${lines[0]}" ' found running in [0-9]+% of the looks| runs all the time'
    # It waits in calls:matches/1, and answers there most times.
    refute_line -n 0 --regexp '(mostly|often) in calls:'
    ended works
}

@test "why tells a receive that scans a long queue from one that matches nothing" {
    process leaks 'calls:jobs()'
    on_node 'P = whereis(leaks), [P ! other || _ <- lists:seq(1, 20000)], spawn(fun() -> link(P), (fun F() -> P ! {job, 1}, timer:sleep(5), F() end)() end), ok'
    why --json leaks
    assert_success
    assert_equal "$(of .cause)" scans
    assert_regex "$(of .text)" '^each receive scans up to 2[0-9]{4} messages of its queue; [0-9]+/s match, in '
    ended leaks
}

@test "why tells a supervisor whose children exit again and again, and a process that runs a command, from idle ones" {
    on_node 'logger:set_primary_config(level, none), begin Me = self(), spawn(fun() -> {ok, P} = supervisor:start_link(calls, [restarts]), register(works, P), Me ! up, calls:never() end), receive up -> ok end end'
    why works
    assert_success
    assert_regex "${lines[0]}" ' idle: .*; gets [0-9]+ exits a second of processes that it is linked to$'
    why --json works
    [[ $(of .exits) -ge 3 ]]
    ended works
    on_node 'logger:set_primary_config(level, notice)'
    mkfifo "$BATS_TEST_TMPDIR/held"
    process lone "os:cmd(\"cat $BATS_TEST_TMPDIR/held\")"
    why lone
    : >"$BATS_TEST_TMPDIR/held" # ends the command
    assert_regex "${lines[0]}" ' waits for a command of the operating system in os:get_data/[67] < os:'
}

@test "a process that computes runs all the time, and its queue grows" {
    process works 'calls:busy()'
    why --json works
    assert_equal "$(of '"\(.cause) \(.looks > 5) \(.running == .looks) \(.growth.reductions > 100000)"')" 'runs true true true'
    fed works
    why works
    assert_regex "${lines[0]}" '^<[0-9.]+>\(works\) queue grows by [0-9.]+k?/s: running in 100% of the looks, '
    ended works
}

@test "a queue that grows and shrinks between the looks has a range, not a rate" {
    on_node "begin
        F = fun F() -> receive _ -> F() after 0 -> ok end end,
        G = fun G() -> receive after 200 -> F(), G() end end,
        P = spawn(G), register(bursty, P),
        S = fun S() -> P ! x, receive after 5 -> S() end end, spawn(fun() -> link(P), S() end) end"
    why bursty
    assert_success
    assert_line --regexp '^queue +[0-9]+ messages? \([0-9]+ to [0-9]+ in these looks\)'
    ended bursty
}

@test "why tells idle, suspended and sleeping processes apart" {
    servers lone
    why lone
    assert_success
    assert_regex "${lines[0]}" '^<[0-9.]+>\(lone\) idle: waits for a message$'
    assert_line --regexp '^process +<[0-9.]+>\(lone\) · calls:init/1 '
    assert_line --regexp '^queue +0 messages '
    assert_line --regexp '^works +running in 0 of [0-9]+ looks, 0 reductions/s, 0 minor collections'
    on_node 'w ! {self(), x}, spawn(fun() -> register(looks, self()), erlang:suspend_process(whereis(lone)), receive never -> ok end end), ok'
    suspended() { why --json lone && [[ $(of .cause) == suspended ]]; }
    until_true 20 suspended
    assert_equal "$(of .text)" 'suspended: it sends to a busy port or over a busy connection to another node, or another process called erlang:suspend_process/1'
    ended looks lone
    process lone 'timer:sleep(infinity)'
    why --json lone
    assert_equal "$(of '"\(.cause) \(.text)"')" 'sleeps sleeps in timer:sleep/1'
    ended lone
}

@test "why names the dirty NIF of a process; a process in another NIF does not answer" {
    cat >"$BATS_TEST_TMPDIR/slow.c" <<'END'
#include <erl_nif.h>
#include <unistd.h>
static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    usleep(1500000); /* loading code waits for its end, and so does the attaching */
    return enif_make_copy(env, argv[0]);
}
static ERL_NIF_TERM dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    sleep(10);
    return enif_make_copy(env, argv[0]);
}
/* The list of NIFs does not have this name. */
static ERL_NIF_TERM later(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return enif_schedule_nif(env, "later", ERL_NIF_DIRTY_JOB_IO_BOUND, dirty, argc, argv);
}
static ErlNifFunc functions[] = {{"nap", 1, nap, 0}, {"later_nif", 1, later, 0}, {"dirty", 1, dirty, ERL_NIF_DIRTY_JOB_IO_BOUND}};
ERL_NIF_INIT(slow, functions, NULL, NULL, NULL, NULL)
END
    live_own nif +S 3:3
    cc -shared -fPIC -I "$(node_eval "$NODE" '{dir, filename:join([code:root_dir(), "usr", "include"])}' | sed 's/^{dir,"\(.*\)"}$/\1/')" \
        -o "$(node_dir "$NODE")/slow.so" "$BATS_TEST_TMPDIR/slow.c"
    cat >"$(node_dir "$NODE")/slow.erl" <<END
-module(slow).
-export([load/0, nap/1, dirty/1, later_nif/1, later/1, nap_loop/0, dirty_loop/0, later_loop/0, tail_loop/0, tail_later_loop/0]).
load() -> erlang:load_nif("$(node_dir "$NODE")/slow", 0).
nap(_) -> erlang:nif_error(not_loaded).
dirty(_) -> erlang:nif_error(not_loaded).
later_nif(_) -> erlang:nif_error(not_loaded).
later(X) -> {ok, later_nif(X)}.
tail(X) -> dirty(X).
tail_later(X) -> later_nif(X).
nap_loop() -> nap(1), receive after 2 -> nap_loop() end.
dirty_loop() -> dirty(1), dirty_loop().
later_loop() -> {ok, _} = later(1), later_loop().
tail_loop() -> tail(1), tail_loop().
tail_later_loop() -> tail_later(1), tail_later_loop().
END
    on_node "begin {ok, slow, Code} = compile:file(\"$(node_dir "$NODE")/slow\", [binary]), {module, slow} = code:load_binary(slow, \"slow\", Code), ok = slow:load() end"
    why w
    on_node 'begin register(in_dirty, spawn(slow, dirty_loop, [])), ok end'
    dirty() { why "$1" && [[ ${lines[0]} =~ ^\<[0-9.]+\>\("$1"\)' in the dirty NIF slow:dirty/1'$ ]]; }
    until_true 30 dirty in_dirty || fail "$output"
    on_node 'begin exit(whereis(in_dirty), kill), register(in_later, spawn(slow, later_loop, [])), ok end'
    later() { why "$1" && [[ ${lines[0]} =~ ^\<[0-9.]+\>\("$1"\)" in a dirty NIF called by slow:$2"$ ]]; }
    until_true 30 later in_later later/1 || fail "$output"
    on_node 'begin exit(whereis(in_later), kill), register(in_tail, spawn(slow, tail_loop, [])), register(in_tail_later, spawn(slow, tail_later_loop, [])), ok end'
    until_true 30 dirty in_tail || fail "$output"
    until_true 30 later in_tail_later tail_later_loop/0 || fail "$output"
    on_node 'begin exit(whereis(in_tail), kill), exit(whereis(in_tail_later), kill), register(in_nif, spawn(slow, nap_loop, [])), ok end'
    # Between two naps the process may answer.
    silent() { why in_nif && [[ ${lines[0]} =~ ^\<[0-9.]+\>\(in_nif\)' did not answer in time: a long NIF or garbage collection keeps it busy'$ ]]; }
    until_true 60 silent || fail "$output"
    assert_line --regexp '^does +unknown'
    silent_json() { why --json in_nif && [[ $(of '"\(.cause) \(.chain[0].answer) \(has("waiters")) \(has("messages"))"') == 'silent silent false false' ]]; }
    until_true 60 silent_json || fail "$output"
}

@test "the page fits a terminal of 80 columns, and a registered name of Elixir is shown as in Elixir" {
    on_node "begin calls:start('Elixir.Shop.Stock') end"
    terminal 80 24 "$ETRACE_BIN why -n $NODE Shop.Stock; echo the end; sleep 100"
    await 'the end'
    run screen
    assert_line --regexp '^<[0-9.]+>\(Shop\.Stock\) idle: waits for a message$'
    assert_line --regexp '^works '
    terminal_end
    # foo is another name than Elixir.foo.
    process "'Elixir.foo'" 'calls:never()'
    why ':"Elixir.foo"'
    assert_regex "${lines[0]}" '^<[0-9.]+>\(:"Elixir\.foo"\) idle: '
    run --separate-stderr timeout 60 "$ETRACE_BIN" ps --json -P ':"Elixir.foo"' -n "$NODE"
    assert_equal "$(jq -r 'select(.type == "process") | .name' <<<"$output")" ':"Elixir.foo"'
    ended "'Elixir.foo'"
    on_node "begin R = monitor(process, 'Elixir.Shop.Stock'), exit(whereis('Elixir.Shop.Stock'), kill), receive {_, R, _, _, _} -> ok end end"
}

@test "the command of the line works counts a function of Elixir, too" {
    cat >"$(node_dir "$NODE")/Elixir.Shop.Busy.erl" <<'END'
-module('Elixir.Shop.Busy').
-export([wait/0]).
wait() -> receive never -> ok end.
END
    "$ETRACE_ERLC" -o "$(node_dir "$NODE")" "$(node_dir "$NODE")/Elixir.Shop.Busy.erl"
    process shop_waits "'Elixir.Shop.Busy':wait()"
    why shop_waits
    assert_line --regexp "^works .* etrace top -n $NODE -P '<[0-9.]+>' Shop.Busy.wait/0\$"
    ended shop_waits
}

@test "a registered name of 255 bytes is shown whole" {
    local name
    name=n$(printf 'a%.0s' {1..254})
    process "$name" 'receive never -> ok end'
    why --json "$name"
    assert_equal "$(of .name)" "$name"
    ended "$name"
}

@test "Ctrl-C ends the time of why, and the page is printed" {
    etrace_start why --for 100s -n "$NODE" w
    until_true 60 watched
    child_kill "$TRACER" INT
    trace_wait
    assert_success
    assert_regex "${lines[0]}" '^<[0-9.]+>\(w\) '
    assert_line --regexp '^works '
}

@test "a session that ends early is reported with its reason" {
    etrace_start why --for 100s -n "$NODE" w
    until_true 60 watched
    on_node '[trace:session_destroy(S) || {etrace, _} = S <- trace:session_info(all)]'
    trace_wait
    assert_failure 1
    assert_regex "$talk" "etrace: $NODE: somebody on the node has destroyed the trace session"
}

@test "completion offers the registered names of processes" {
    # The names of a slow node are there for a later completion.
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR
    offered() { [[ $(timeout 60 "$ETRACE_BIN" __complete "$@" -n "$NODE" kernel_su) == kernel_sup ]]; }
    until_true 60 offered why
    until_true 60 offered died
}

@test "mistakes are reported" {
    refused() { # STATUS MESSAGE ARGS...
        local code=$1 message=$2
        shift 2
        why "$@"
        assert_failure "$code"
        assert_equal "${stderr_lines[0]}" "etrace: $message"
    }
    refused 2 'no process to look at'
    refused 2 'why looks at one process' one two
    refused 2 'why looks at one process, and all may be several' all
    refused 2 'why looks at one process, and app(kernel) may be several' 'app(kernel)'
    refused 2 "'' is neither a pid nor a name" ''
    refused 2 "'foo bar' is neither a pid nor a name" 'foo bar'
    refused 2 "'init:x/1' is neither a pid nor a name" init:x/1
    refused 5 'no process is registered as nobody_is_called_so on the node' nobody_is_called_so
    pid=$(node_eval "$NODE" '{pid, begin {P, R} = spawn_monitor(fun() -> ok end), receive {_, R, _, _, _} -> pid_to_list(P) end end}' | tr -d '"{}' | sed 's/pid,//')
    refused 5 "there is no process $pid on the node" "$pid"
    refused 5 "there is no process $pid on the node" "#PID$pid"
    pid=$(node_eval "$NODE" '{pid, pid_to_list(whereis(kernel_sup))}' | tr -d '"{}' | sed 's/pid,//')
    why --json "#PID$pid"
    assert_success
    assert_equal "$(of .pid)" "$pid"
}

# pasted N [WORD]: evaluates the commands in the standard input, at least N with the name of the node and one with this
# word. They create no file x.
pasted() {
    local command
    # shellcheck disable=SC2317  # eval calls it
    etrace() { printf '%s\n' "$@" >>said; }
    : >said
    while read -r command; do eval "$command"; done < <(grep -v '^etrace [a-z]* · ' | grep -oE '\betrace (why|top|ps|stacks|requests|check|-n) .*')
    unset -f etrace
    assert [ ! -e x ]
    [[ $(grep -cxF -e "$NODE" said) -ge $1 ]] || fail "fewer than $1 commands: $(<said)"
    [[ $# -lt 2 ]] || grep -qxF -e "$2" said || fail "no word is $2: $(<said)"
}

@test "printed commands can be pasted, whatever names the node has" {
    on_node "A = list_to_atom(\"a';touch x;'\"), ok = application:load({application, A, [{vsn, \"1\"}, {description, \"\"}, {modules, []}, {registered, []},
        {applications, [kernel, stdlib]}, {mod, {calls, odd}}]}), ok = application:start(A)"
    cd "$BATS_TEST_TMPDIR"
    run --separate-stderr "$ETRACE_BIN" why -n "$NODE" odd
    assert_success
    pasted 5 "app('a\\';touch x;\\'')" <<<"$output"
    on_node "A = list_to_atom(\"a';touch x;'\"), ok = application:stop(A), ok = application:unload(A)"
    node_heard "$NODE" "touch x"
}

# bats test_tags=long
@test "commands of check, of the screens and of browse can be pasted, whatever the code is called" {
    local function="'a\\';touch x;\\'':'a\\';touch x;\\''"
    local pid odd='A = list_to_atom("a" ++ [39] ++ ";touch x;" ++ [39])'
    cd "$BATS_TEST_TMPDIR"
    "$ETRACE_ERL" -noshell -eval "$odd, {ok, A, Code} = compile:forms([{attribute, 1, module, A}, {attribute, 1, export, [{A, 0}]}, {function, 1, A, 0, [{clause, 1, [], [],
        [{call, 1, {remote, 1, {atom, 1, lists}, {atom, 1, seq}}, [{integer, 1, 1}, {integer, 1, 100}]}, {call, 1, {remote, 1, {atom, 1, A}, {atom, 1, A}}, []}]}]}]),
        ok = file:write_file(\"odd.beam\", Code), halt()."
    on_node "$odd, {ok, Code} = file:read_file(\"$PWD/odd.beam\"), {module, A} = code:load_binary(A, \"odd\", Code), Me = self(),
        spawn(fun() -> register(A, self()), Me ! up, A:A() end), receive up -> ok end"
    pid=$(node_eval "$NODE" "$odd, {pid, pid_to_list(whereis(A))}" | tr -d '"{}' | sed 's/pid,//')
    run --separate-stderr "$ETRACE_BIN" check --json -n "$NODE"
    jq -r 'select(.command).command' <<<"$output" >commands
    pasted 1 <commands
    terminal 250 40 "$ETRACE_BIN top -n $NODE \"$function/0\"; echo the end; sleep 100"
    await '^ +[0-9]+ .*touch x'
    keys Enter
    await 'Esc back'
    pasted 2 "$function/0 -> return" < <(screen)
    keys q
    terminal_end
    for command in stacks ps; do
        # The trace that t begins scrolls its command away.
        terminal 250 40 "script -qfc \"$ETRACE_BIN $command -n $NODE -P '$pid'\" $command; echo the end; sleep 100"
        await '[0-9] .*touch x'
        keys t
        until_true 30 grep -aq 'etrace: .*etrace -n' "$command" || fail "$(screen)"
        pasted 1 < <(tr -d '\r' <"$command" | grep -a 'etrace: .*etrace -n')
        keys C-c
        await 'the end'
        terminal_end
    done
    timeout 60 "$ETRACE_BIN" -n "$NODE" -l 5 -o odd.etr "$function/0" >text 2>&1 || fail "$(<text)"
    terminal 250 40 "$ETRACE_BIN browse odd.etr; echo the end; sleep 100"
    await 'h help'
    keys x
    await 'Esc back'
    pasted 2 "$function/0 -> return" < <(screen)
    keys q q
    terminal_end
    on_node "$odd, R = monitor(process, A), exit(whereis(A), kill), receive {_, R, _, _, _} -> ok end, code:purge(A), code:delete(A), code:purge(A)"
}
