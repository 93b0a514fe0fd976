#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A process is in a NIF that does not return before the test says so. etrace is attached already, because loading code
# waits for such a NIF, too.
#
# The NIF holds the last scheduler, on which a node with little work runs nothing else: timers of the held scheduler do not
# fire. Other work may wait there nevertheless, such as the port of a connection. It goes on when another scheduler takes it
# over, and a scheduler looks for such work before it sleeps. So a process of the second one wakes every five milliseconds.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_begin native +S 4:4
    dir=$(node_dir "$LIVE_NODE")
    cat >"$dir/native.c" <<'END'
#include <erl_nif.h>
#include <fcntl.h>
#include <unistd.h>
/* Makes the file and waits until it is gone, for two minutes at most. */
static ERL_NIF_TERM stay(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char file[4096];

    (void)argc;
    if (enif_get_string(env, argv[0], file, sizeof file, ERL_NIF_LATIN1) <= 0)
        return enif_make_badarg(env);
    close(open(file, O_WRONLY | O_CREAT, 0600));
    for (int turn = 0; turn < 12000 && !access(file, F_OK); turn++)
        usleep(10000);
    return enif_make_atom(env, "ok");
}
static ErlNifFunc functions[] = {{"stay", 1, stay, 0}};
ERL_NIF_INIT(native, functions, NULL, NULL, NULL, NULL)
END
    include=$(node_eval "$LIVE_NODE" 'list_to_binary(filename:join([code:root_dir(), "usr", "include"]))')
    include=${include#<<\"} include=${include%\">>}
    cc -shared -fPIC -I "$include" -o "$dir/native.so" "$dir/native.c"
    cat >"$dir/native.erl" <<'END'
-module(native).
-export([load/1, stay/1, start/2, init/1, tick/0]).
load(File) -> erlang:load_nif(File, 0).
stay(_) -> erlang:nif_error(not_loaded).
start(Name, File) ->
    {ok, P} = proc_lib:start(?MODULE, init, [{Name, File}], infinity, [{scheduler, case Name of in_nif -> 4; _ -> 0 end}]),
    P.
init({Name, File}) ->
    register(Name, self()),
    proc_lib:init_ack({ok, self()}),
    wait(File).
wait(File) ->
    receive
        go -> stay(File), wait(File);
        one -> work:one(1), wait(File);
        stop -> ok
    end.
tick() -> receive after 5 -> tick() end.
END
    "$ETRACE_ERLC" -o "$dir" "$dir/native.erl"
    node_eval "$LIVE_NODE" "code:add_path(\"$dir\"), {module, native} = code:load_file(native), ok = native:load(\"$dir/native\"),
        spawn_opt(native, tick, [], [{scheduler, 2}, {priority, high}])" || return 1
}
teardown_file() { live_end; }
setup() {
    live_setup
    here=$BATS_TEST_TMPDIR/here
}
teardown() {
    rm -f "$here"
    finish
    live_teardown
}

# The processes in_nif and other begin; in_nif is not in the NIF yet.
begin() { on_node "native:start(in_nif, \"$here\"), native:start(other, \"$here.other\"), ok"; }
is_here() { [[ -e $here ]]; }
enter() {
    on_node 'whereis(in_nif) ! go, ok'
    until_true 60 is_here
}
leave() { rm "$here"; }
finish() { on_node '[begin R = monitor(process, P), P ! stop, receive {_, R, _, _, _} -> ok end end || N <- [in_nif, other], P <- [whereis(N)], is_pid(P)], ok'; }
said() { grep -q "$1" "$ERR" || gone "$TRACER"; }
shown() { grep -q "$1" "$OUT" || gone "$TRACER"; }

# attached REPL-OPTION...: starts repl with a trace that ends, so everything that it needs is loaded.
attached() {
    repl_start -n "$NODE" "$@"
    until_true 60 said ' · OTP '
}
ended() { # STATUS
    repl_end
    trace_wait
    assert_equal "$status" "$1"
}

@test "-P refuses a process that is in a long NIF, and traces it once the NIF has returned" {
    begin
    attached -P in_nif
    enter
    repl_line @exit
    until_true 60 said 'does not answer'
    assert_regex "$(<"$ERR")" 'etrace: process <[0-9.]+>\(in_nif\) does not answer: it may be in a long native function'
    is_here || fail 'the NIF has returned meanwhile'
    leave
    repl_line @exit
    until_true 60 said '1 process'
    finish
    until_true 60 shown 'in_nif.* exit normal'
    ended 3
}

@test "-P initial() leaves out a process that is in a long NIF, says so, and traces the others" {
    begin
    attached -P 'initial(native:init/1)'
    enter
    repl_line @exit
    until_true 60 said 'not traced'
    assert_regex "$(<"$ERR")" 'process <[0-9.]+>\(in_nif\) does not answer and is not traced'
    is_here || fail 'the NIF has returned meanwhile'
    on_node 'R = monitor(process, other), other ! stop, receive {_, R, _, _, _} -> ok end'
    until_true 60 shown 'other.* exit normal'
    leave
    ended 0
}

@test "-P with a name waits for a process that has got the name and is in a long NIF, and traces the others" {
    begin
    repl_start -n "$NODE" -P in_nif -P other
    until_true 60 said ' · OTP '
    repl_line @exit
    until_true 60 said '2 processes'
    on_node 'R = monitor(process, in_nif), in_nif ! stop, receive {_, R, _, _, _} -> ok end,
        spawn_opt(fun() -> register(in_nif, self()), native:stay("'"$here"'"), receive stop -> ok end end, [{scheduler, 4}]), ok'
    until_true 60 is_here
    # Its exit makes the owner look all names up. The timer for that may belong to the held scheduler.
    on_node 'R = monitor(process, other), other ! stop, receive {_, R, _, _, _} -> ok end'
    until_true 60 shown '(other) exit normal'
    until_true 60 said 'in_nif restarted'
    is_here || fail 'the NIF has returned meanwhile'
    leave
    traced() { [[ $(node_eval "$NODE" '[S] = [S || S = {etrace, _} <- trace:session_info(all)], trace:info(S, whereis(in_nif), flags)') == *procs* ]]; }
    until_true 60 traced
    finish
    both() { (($(grep -c '(in_nif) exit normal' "$OUT") == 2)) || gone "$TRACER"; }
    until_true 60 both || fail "$(<"$OUT")"
    ended 0
}

@test "all processes are not traced while a NIF holds a scheduler" {
    begin
    attached
    enter
    repl_line @exit
    until_true 60 said 'holds a scheduler'
    is_here || fail 'the NIF has returned meanwhile'
    leave
    repl_line @exit
    until_true 60 said '· 0 functions ·'
    finish
    until_true 60 shown 'in_nif.* exit normal'
    ended 3
}

@test "top by process goes on while a counted process is in a long NIF" {
    begin
    COMMAND=top
    trace work:one/1 --by process --interval 500ms --json
    on_node 'whereis(in_nif) ! one, ok'
    until_true 60 shown '"name":"in_nif"'
    enter
    lines() { grep -c '"type":"counted"' "$OUT"; }
    before=$(lines)
    more() { (($(lines) >= before + 3)) || gone "$TRACER"; }
    until_true 60 more
    is_here || fail 'the NIF has returned meanwhile'
    jq -se 'map(select(.type == "count" and .name == "in_nif")) | .[-1].alive == true' "$OUT" || fail "$(<"$OUT")"
    leave
    trace_end
    assert_success
}

@test "no question about sessions, flags or tokens waits for a process in a long NIF" {
    live_attempt +S 4:4 -pa "$(node_dir "$NODE")" <<END
begun() ->
    spawn_opt(native, tick, [], [{scheduler, 3}]),
    {_, R} = spawn_opt(fun asked/0, [monitor, {scheduler, 2}]),
    receive {'DOWN', R, _, _, Why} -> file:delete("$here", [raw]), io:format("~0p~n", [Why]), halt(case Why of normal -> 0; _ -> 1 end) end.
asked() ->
    M = etrace_00000000_0,
    ok = native:load("$(node_dir "$NODE")/native"),
    P = native:start(in_nif, "$here"),
    Other = trace:session_create(other, self(), []),
    1 = trace:process(Other, P, true, [call]),
    1 = trace:process(Other, self(), true, [call]),
    Ask = fun(What) -> try M:ask_do({none, What, [], #{}}) catch throw:Why -> Why end end,
    Pid = list_to_binary(pid_to_list(P)),
    Function = #{probes => [#{id => 1, type => call, scope => local, atoms => [], match_spec => {any, term_to_binary(true)},
        select => [{{name, <<"lists">>}, {name, <<"seq">>}, 2, 2}]}]},
    [{ok, _} = Ask(What) || What <- [sessions, {info, send}, {info, {pid, Pid}}, {info, {arm, Function}}]], % loads what the questions need
    P ! go,
    here(),
    {ok, Rows} = Ask(sessions),
    [{1, [_], false}] = [{element(7, Row), element(8, Row), element(13, Row)} || Row <- Rows, element(1, Row) =:= <<"other">>],
    Named = <<Pid/binary, "(in_nif)">>,
    {silent, Named} = Ask({info, {pid, Pid}}),
    {ok, [{<<"send">>, _}]} = Ask({info, send}),
    {silent, _} = try M:gc_elsewhere(none) catch throw:Taken -> Taken end,
    put(owner, self()),
    [] = M:tokens_met([{label, 17}]),
    held = try M:whom_passes(#{flags => [procs]}, {[all], []}) catch throw:Held -> Held end,
    held = Ask({info, {arm, Function}}),
    ok = file:delete("$here"),
    M:whom_passes(#{flags => [procs]}, {[all], []}),
    trace:session_destroy(Other).
here() -> element(1, file:read_file_info("$here", [raw])) =:= ok orelse receive after 5 -> here() end.
END
    assert_success
}
