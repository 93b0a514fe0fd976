#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests a node on which etrace has never run: user modules with names like those of the companion, functions of every
# arity, and expressions with atoms that the node does not have.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

# No trace may run here in advance: it would create atoms that these tests need to be missing.
setup_file() {
    node_start fresh
    export LIVE_NODE=$NODE
}
teardown_file() { node_stop "$LIVE_NODE"; }
setup() { traces_begin; }
teardown() { traces_end; }

# knows NAME: prints whether the atom exists on the node. A binary carries the name, so the question does not create it.
knows() { node_eval "$NODE" "try binary_to_existing_atom(<<\"$1\">>), true catch error:_ -> false end"; }

# Compiles the module on standard input, in a directory that it adds to the code path of the node.
module() { # NAME
    local dir
    dir=$(node_dir "$NODE")
    cat >"$dir/$1.erl"
    "$ETRACE_ERLC" -o "$dir" "$dir/$1.erl"
    on_node "code:add_path(\"$dir\")"
}

# Makes user modules with a server each, which is registered as NAME_server and replies with go(MESSAGE).
servers() { # NAME...
    local dir name erl=()
    dir=$(node_dir "$NODE")
    for name; do
        erl+=("$dir/$name.erl")
        cat >"$dir/$name.erl" <<END
-module($name).
-export([start/0, go/1, loop/0, owner/1, hello/0]).
start() -> register(${name}_server, spawn(fun loop/0)).
loop() -> receive {From, X} -> From ! {$name, go(X)}, loop() end.
go(X) -> X + 1.
owner(_) -> ok.
hello() -> ok.
END
    done
    "$ETRACE_ERLC" -o "$dir" "${erl[@]}"
    on_node "code:add_path(\"$dir\")$(printf ', %s:start()' "$@")"
}

asked() { node_eval "$NODE" "$1_server ! {self(), 1}, receive {$1, N} -> N after 20000 -> timeout end"; }

# Starts a node on which no etrace has run, and runs etrace there once. NODE in the arguments is the node's name.
alone_on() { # NAME ARGUMENT...
    local LIVE_NODE NODE
    node_start "$1"
    shift
    run timeout 60 "$ETRACE_BIN" "${@//NODE/$NODE}" </dev/null
    node_stop "$NODE"
}

# Each variant of the companion's module brings only its own atoms, and a request may bring none. A node that has seen
# another command, and so another variant, would not show that an atom is missing.
@test "each command works on a node on which no other command has run" {
    local -A asks=([repl]='' [trace]='lists:seq/2 --for 10ms' [check]='' [stacks]='' [ps]='--once' [why]=init [top]='lists:seq/2 --for 10ms' [requests]='--for 10ms'
        [died]='--for 10ms' [ls]='lists:seq' [info]='lists:seq/2' [sessions]='' [doctor]='')
    local command
    for command in $("$ETRACE_BIN" help | sed -n '/^commands:/,/^$/{s/^  more: //p; s/^  \([a-z]*\)  .*/\1/p}'); do
        # mcp starts the other commands.
        [[ $command != mcp && $("$ETRACE_BIN" help "$command" --all) == *--node* ]] || continue
        [[ -v asks[$command] ]] || fail "no arguments for $command"
        # shellcheck disable=SC2086  # several words
        alone_on "alone_$command" "$command" -n NODE ${asks[$command]}
        [[ $status == 0 ]] || fail "$command: $output"
    done
    alone_on alone_check_for check -n NODE --for 100ms
    [[ $status == 0 ]] || fail "check --for: $output"
}

# bats test_tags=long
@test "user modules with names like those of the companion keep running and can be traced" {
    local own names name
    own=etrace_$("$ETRACE_BIN" version | sed -n 's/.*(companion \([0-9a-f]*\),.*/\1/p')
    names=(etrace_exporter_1 etrace_deadbeef_1 etrace_deadbeef_G "${own}_0" "${own}_1" "${own}_G")
    # etrace recognizes a companion by three exported functions. These modules export two of them.
    servers "${names[@]}"
    # A slot of the companion is a registered name and a module. Here a process of the user has a name like that of a
    # slot.
    on_node 'register(etrace_deadbeef_2, spawn(fun() -> monitor(process, etrace_exporter_1_server), receive after infinity -> ok end end))'
    run "$ETRACE_BIN" ls -n "$NODE" 'etrace_*:go/1' --no-args
    assert_success
    for name in "${names[@]}"; do assert_line "$name:go/1"; done
    assert_equal "${#lines[@]}" "${#names[@]}"
    trace --json "${names[@]/%/:go/1 -> return}"
    for name in "${names[@]}"; do assert_equal "$(asked "$name")" 2; done
    trace_end
    assert_success
    assert_equal "$(json_of return '.m + " " + .value' | sort | tr '\n' ,)" "$(printf '%s 2\n' "${names[@]}" | sort | tr '\n' ,)"
    # Kill the companion together with all processes that would clean up. The client then sends the sweep.
    trace work:one/1
    # J: the janitor, O: the owner, M: the companion. All: J, the processes that monitor J (as the heir does), and those
    # of M.
    alone() { [[ $(node_eval "$NODE" '[N || N <- registered(), lists:prefix("etrace_", atom_to_list(N)), N =/= etrace_deadbeef_2, lists:member(hd(lists:reverse(atom_to_list(N))), "0123456789ABCDEF")]') == '['etrace_*[!,]']' ]]; }
    until_true 30 alone
    on_node '[{J, O, M}] = [{J, O, M} || N <- registered(), lists:prefix("etrace_", atom_to_list(N)), J <- [whereis(N)], is_pid(J),
            {_, L} <- [process_info(J, monitors)], {process, O} <- L, is_pid(O), {_, {M, owner, 1}} <- [process_info(O, initial_call)]],
        {_, Watch} = process_info(J, monitored_by),
        All = lists:usort([J | [P || P <- Watch, is_pid(P)]] ++ [P || P <- processes(), {_, {C, _, _}} <- [process_info(P, initial_call)], C =:= M]),
        [erlang:suspend_process(P) || P <- All], [exit(P, kill) || P <- All]'
    trace_end
    left() { [[ $(node_eval "$NODE" "[M || M <- erlang:loaded(), lists:prefix(\"$own\", atom_to_list(M)), not erlang:function_exported(M, go, 1)]") == "$1" ]]; }
    until_true 30 left '[]' || fail "$(node_eval "$NODE" 'erlang:loaded()')"
    # The sweep must not touch the modules and processes of the user.
    for name in "${names[@]}"; do assert_equal "$(asked "$name")" 2; done
    assert_equal "$(node_eval "$NODE" 'process_info(whereis(etrace_deadbeef_2), messages)')" '{messages,[]}'
    assert_no_report "$NODE"
}

# bats test_tags=each
@test "functions of every arity can be listed and traced" {
    local arity args
    module wide < <(
        echo '-module(wide).'
        echo '-export([call/1]).'
        echo '-compile([export_all, nowarn_export_all]).'
        echo 'call(N) -> apply(?MODULE, f, lists:seq(1, N)).'
        for arity in 0 11 12 16 17 100 255; do
            echo "f($(for ((i = 1; i <= arity; i++)); do printf '%s_' "${comma:-}"; comma=,; done; comma=)) -> $arity."
        done
    )
    on_node 'code:load_file(wide)'
    local probes=()
    for arity in 0 11 12 16 17 100 255; do probes+=("wide:f/$arity"); done
    run "$ETRACE_BIN" ls -n "$NODE" "${probes[@]}" --no-args
    assert_equal "$output" "$(printf '%s\n' "${probes[@]}")"
    trace --json "${probes[@]/%/ -> return}"
    on_node '[wide:call(A) || A <- [0, 11, 12, 16, 17, 100, 255]]'
    trace_end
    assert_success
    assert_equal "$(json_of call '"\(.f)/\(.args | length)"' | tr '\n' ' ')$(json_of return .value | tr '\n' ' ')" \
        'f/0 f/11 f/12 f/16 f/17 f/100 f/255 0 11 12 16 17 100 255 '
}

# Prints the lines sorted, as one line.
line() { LC_ALL=C sort | tr '\n' ' '; }

# bats test_tags=long
@test "an expression may have up to 1,023 variables, and the node creates only the atoms that it reads" {
    local before five many i
    for i in 5 6 255; do assert_equal "$(knows "\$$i")" false; done
    # A variable that the expression does not read needs no atom.
    for five in 'erpc:call(N,M,F,A,T) when T > 1000' ':erpc.call(n, m, f, a, t) when t > 1000' 'send(To, {A,B,C,D}) when D > 1' 'recv({A,B,C,D,E}) when E > 1' \
        'erpc:call("N",M,F,A,T,V) when T > 1000 -> return' "ms erpc:call/5 [{['\$5','\$6','\$7','\$8','\$9'],[{'>','\$9',1}],[]}]"; do
        run "$ETRACE_BIN" -n "$NODE" -q --dry-run --allow-empty "$five"
        assert_success
    done
    run "$ETRACE_BIN" -n "$NODE" -q --dry-run --fallback 'erpc:call(N,M,F,A,T) when T > 1000'
    assert_success
    for i in 5 6 9; do assert_equal "$(knows "\$$i")" false; done
    on_node 'code:ensure_loaded(work)'
    for five in 'work:three({A,B,C,D,E}, F, _) when A < B, B < C, C < D, D < E, E < F -> msg([F,E,D,C,B,A])' \
        'work.three({a, b, c, d, e}, f, _) when a < b and b < c and c < d and d < e and e < f -> msg([f, e, d, c, b, a])' \
        "ms work:three/3 [{[{'\$20','\$30','\$40','\$50','\$60'},'\$70','_'],[{'<','\$60','\$70'}],[{message,{{'\$70','\$\$'}}}]}]"; do
        trace --json "${five/work.three/:work.three}"
        on_node 'work:three({1,2,3,4,5}, 6, x), work:three({1,2,3,4,5}, 5, x)'
        trace_end
        assert_success
        assert_regex "$(json_of call .message)" '^(\[6,5,4,3,2,1\]|\{6,\[1,2,3,4,5,6\]\})$'
    done
    assert_equal "$(knows "\$6") $(knows "\$7") $(knows "\$20")" 'true false false'
    many=$(for ((i = 1; i <= 255; i++)); do printf '%sV%s' "${comma:-}" "$i"; comma=,; done)
    for _ in first again; do
        before=$(node_eval "$NODE" 'erlang:system_info(atom_count)')
        trace --json "wide:f($many) when V1 < V255 -> msg([$many])"
        on_node 'wide:call(255)'
        trace_end
        assert_success
        assert_equal "$(json_of call .message | tail -c 17)" '252,253,254,255]'
    done
    assert_equal "$(knows "\$255") $(knows "\$256")" 'true false'
    assert_equal "$(node_eval "$NODE" 'erlang:system_info(atom_count)')" "$before"
    # The number of variables has a limit.
    many=$(for ((i = 0; i < 1024; i++)); do printf '%sV%s' "${comma2:-}" "$i"; comma2=,; done)
    run "$ETRACE_BIN" -n "$NODE" --dry-run "work:one({$many}) -> msg([$many])"
    assert_failure 2
    assert_output --partial 'more than 1023 variables'
    assert_equal "$(knows "\$256")" false
}

# bats test_tags=long
@test "a selector does not arm the modules that it excludes" {
    local name
    for name in part_a part_b part_c; do
        module "$name" <<<"-module($name). -export([go/1]). go(X) -> X."
        on_node "code:load_file($name)"
    done
    traced 'part_*:go(_) - part_b' -- '[M:go(1) || M <- [part_a, part_b, part_c]]'
    assert_equal "$(grep -o ' call [a-z_]*:go' <<<"$output" | tr '\n' ,)" ' call part_a:go, call part_c:go,'
    traced --json 'part_*:go/1 - *_b, ~/_c$/' 'part_b:go/1 -> return' -- '[M:go(1) || M <- [part_a, part_b, part_c]]'
    assert_equal "$(json_of call .m | tr '\n' ,)" 'part_a,part_b,'
    assert_equal "$(json_of return .m)" part_b
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'part_*:go/1 - part_*'
    assert_failure 5
    assert_output --partial 'part_* - part_*:go/1'
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'app(kernel) - app(stdlib), app(nonsuch)'
    assert_failure 5
}

@test "maps as keys, large maps and computed constants match on the node" {
    local i big=''
    for ((i = 0; i < 40; i++)); do big+="$i => 1, "; done
    traced "maps:get(_, #{#{1 => 2} := 3})" -- "maps:get(1, #{1 => 1, #{1 => 2} => 3}), maps:get(1, #{1 => 1, #{1 => 3} => 3})"
    assert_equal "$(grep -c ' call ' <<<"$output")" 1
    traced "maps:get(_, #{$big {1, 1} => 0})" -- "maps:get(1, #{$big {1, 1} => 0}), maps:get(1, #{$big {1, 1} => 1})"
    assert_equal "$(grep -c ' call ' <<<"$output")" 1
    traced 'lists:reverse([1 bsl 70, 1 bsl 70 - 1], _)' -- 'lists:reverse([1 bsl 70, (1 bsl 70) - 1], []), lists:reverse([1 bsl 70, 1 bsl 70], [])'
    assert_equal "$(grep -c ' call ' <<<"$output")" 1
}

@test "a part that always fails does not stop the rest of an expression from matching" {
    traced 'lists:seq(X, Y) when length(5) == X; X == 1 orelse hd([]) == Y; X div 0 == 1 -> return; (X, _) when X > 5' -- \
        'lists:seq(1, 1), lists:seq(2, 2), lists:seq(7, 7)'
    assert_equal "$(grep -o ' call .*)' <<<"$output" | tr '\n' ,)" ' call lists:seq(1, 1), call lists:seq(7, 7),'
    assert_regex "$talk" 'warning: .* this always fails'
}

@test "an atom that the node lacks equals nothing there, as in plain evaluation" {
    local guards wanted i=0 probes=() args=()
    guards=('X =/= zzqx' 'X =:= zzqx orelse X > 5' 'X == zzqx; X == 7' 'not is_map_key(zzqx, X)' 'is_map_key(zzqx, X) =:= false' 'X =/= {zzqx, 1}'
        'X == {zzqx}; is_tuple(X)' 'not (X =:= zzqx)' 'hd(X) =/= zzqx' 'X =:= zzqx orelse hd(X) == 1' 'is_atom(X), X /= zzqx, X /= zzqy' '{X, zzqx} =:= {a, zzqx}'
        '{X, zzqx} == {X, zzqx}' '{X, zzqx} =/= {X, zzqy}' '[zzqx, X] =/= [zzqy, 7]' 'X == #{zzqx => 1}; is_map(X)' 'not is_record(X, zzqx, 2)'
        'N > 3, X =/= zzqx')
    for guard in "${guards[@]}"; do
        i=$((i + 1))
        probes+=("lacks:g$i(N, X) when $guard")
    done
    probes+=('lacks:h(_, zzqx) -> drop; (_, _)' 'lacks:k(_, zzqx) -> msg(never); (_, X) -> msg({zzqx, [X | zzqy], #{zzqx => X}})')
    # plain_lacks, in a separate VM, evaluates the same guards, because evaluation there creates atoms that the node
    # must not get.
    {
        echo '-module(lacks).'
        echo '-compile([export_all, nowarn_export_all]).'
        echo 'values() -> lists:enumerate([1, 7, a, node, [], [1], [a | b], {x}, {x, 1}, {a, b}, #{}, #{k => 1}, "text", 1.5, <<1>>]).'
        for ((i = 0; i < ${#guards[@]}; i++)); do echo "g$((i + 1))(_, _) -> ok."; done
        echo 'h(_, _) -> ok. k(_, _) -> ok.'
        echo "all() -> [apply(?MODULE, F, [N, X]) || F <- [h, k | [list_to_atom([\$g | integer_to_list(I)]) || I <- lists:seq(1, ${#guards[@]})]], {N, X} <- values()], ok."
    } | module lacks
    {
        echo '-module(plain_lacks). -compile([export_all, nowarn_export_all, nowarn_unused_vars]).'
        for ((i = 0; i < ${#guards[@]}; i++)); do echo "g$((i + 1))(N, X) when ${guards[i]} -> true; g$((i + 1))(_, _) -> false."; done
        echo "all() -> [io:format(\"g~b ~b~n\", [I, N]) || I <- lists:seq(1, ${#guards[@]}), {N, X} <- lacks:values(), apply(?MODULE, list_to_atom([\$g | integer_to_list(I)]), [N, X])]."
    } >"$BATS_TEST_TMPDIR/plain_lacks.erl"
    "$ETRACE_ERLC" -o "$BATS_TEST_TMPDIR" "$BATS_TEST_TMPDIR/plain_lacks.erl"
    wanted=$("$ETRACE_ERL" -noinput -noshell -pa "$BATS_TEST_TMPDIR" -pa "$(node_dir "$NODE")" -eval 'plain_lacks:all(), halt().' </dev/null 3>&- | line)
    [[ $(wc -w <<<"$wanted") -gt 200 ]] || fail "$wanted"
    trace --json "${probes[@]}"
    on_node 'lacks:all()'
    trace_end
    assert_success
    assert_equal "$(json_of call 'select(.f | startswith("g")) | "\(.f) \(.args[0])"' | line)" "$wanted"
    assert_equal "$(json_of call 'select(.f == "h") | .args[0]' | wc -l)" 15
    assert_equal "$(json_of call 'select(.f == "k") | .message' | head -n 2 | line)" '{zzqx,[1|zzqy],#{zzqx => 1}} {zzqx,[7|zzqy],#{zzqx => 7}} '
    assert_equal "$(grep -c 'warning: .* does not know the atom zzq[xy]: nothing there equals it' "$ERR")" 2
    # etrace refuses an expression that cannot match, and an expression that needs the atom itself.
    for i in 'lacks:h(zzqx, _)' 'lacks:h(_, X) when X =:= zzqx' 'lacks:h(_, X) when N =:= {zzqx}, X > 1' 'lacks:h(N, X) when X == zzqx; N == zzqy -> return'; do
        i=${i/N =:=/X =:=}
        run "$ETRACE_BIN" -n "$NODE" --dry-run "$i"
        assert_failure 5
        assert_output --partial 'does not know the atom zzqx, so nothing can match it'
        run "$ETRACE_BIN" -n "$NODE" --dry-run --allow-empty "$i"
        assert_success
    done
    for i in 'lacks:h(_, X) when X < zzqx' 'lacks:h(_, X) -> set_seq_token(label, zzqx)'; do
        run "$ETRACE_BIN" -n "$NODE" --dry-run --allow-empty "$i"
        assert_failure 5
        assert_output --partial 'so the expression cannot use it like this'
    done
    for i in zzqx zzqy etrace_unknown; do assert_equal "$(knows "$i")" false; done
    # Once the atom exists on the node, the expression is accepted without a warning.
    on_node 'list_to_atom("zzqx"), lacks:all()'
    run "$ETRACE_BIN" -n "$NODE" --dry-run 'lacks:h(_, zzqx)'
    assert_success
    refute_output --partial warning
}
