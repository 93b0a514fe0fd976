#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Traces calls and messages on a live node with random expressions, with and without the NIF, and compares the events
# with what Erlang and Elixir select, clause by clause. One case in five is a set of overlapping expressions with
# alternatives. With CI=true the seed is fixed. ETRACE_SEED sets the seed, which a failure prints; ETRACE_ROUNDS sets
# the number of rounds; --all runs for an hour. The node loads the generated modules and the atoms of the calls before
# the trace begins.

load ../lib/assert
load ../lib/live

setup_file() {
    local tool=$ETRACE_ROOT/${BUILD_DIR:-build}/tests/lang_tool
    export SEED=${ETRACE_SEED:-$((RANDOM * 32768 + RANDOM))} ROUNDS=${ETRACE_ROUNDS:-2} GEN=$BATS_FILE_TMPDIR
    [[ ${CI:-} != true || ${ETRACE_SEED:-} ]] || SEED=1
    [[ -z ${ETRACE_ALL:-} ]] || ROUNDS=${ETRACE_ROUNDS:-500}
    "$ETRACE_ERLC" -o "$GEN" "$ETRACE_ROOT"/tests/oracle/{ms,live}_oracle.erl
    # shellcheck disable=SC2153  # of tests/run
    CASES=$((ROUNDS * 50)) ELIXIR_ERL_OPTIONS=+fnu "${ETRACE_ERL%/*}/elixir" -pa "$GEN" "$ETRACE_ROOT/tests/oracle/elixir_oracle.exs" \
        "$tool" "$SEED" "$GEN/elixir" </dev/null >/dev/null 2>"$GEN/warnings" 3>&- || { tail -n 5 "$GEN/warnings" && return 1; }
    live_begin generated
    ASK_SECONDS=3000 on_node "code:add_path(\"$GEN\"), live_oracle:make(\"$tool\", \"$GEN\", $ROUNDS, 120, $SEED)"
}
teardown_file() { live_end; }
setup() { traces_begin; }
teardown() { traces_end; }

round() { # NUMBER ETRACE-OPTION...
    local n=$1 kind REPLY
    shift
    kind=$(<"$GEN/gen_$n.kind")
    on_node "gen_$n:load(\"$GEN/gen_$n.terms\")"
    case $kind in
        send) set -- -P "gen_$n" "$@" ;;
        recv) set -- -P "gen_${n}_sink" "$@" ;;
    esac
    # The oracle compares whole terms.
    trace --json --rate 0 --memory 0 --size 64k "$@" -f "$GEN/gen_$n.exprs"
    on_node "gen_$n ! {go, self()}, receive done -> ok end"
    trace_end
    on_node "gen_$n ! stop"
    assert_success
    refute_regex "$(totals)" ' lost'
    node_ask "$NODE" "live_oracle:judge(\"$GEN\", $n, \"$OUT\")" || fail "seed $SEED, round $n $*"
    [[ $REPLY == ok ]] || fail "seed $SEED, round $n $*: $REPLY"
}

# bats test_tags=each
@test "calls and their results equal what Erlang and Elixir select" {
    local n
    for ((n = 1; n <= ROUNDS; n++)); do round "$n"; done
}

# bats test_tags=each
@test "calls equal what Erlang and Elixir select without the NIF, too" {
    local n
    for ((n = 1; n <= ROUNDS; n += 4)); do round "$n" --fallback; done
}

@test "sent and received messages equal what Erlang and Elixir select" {
    local n
    for ((n = ROUNDS + 1; n <= 4 * ROUNDS; n++)); do round "$n"; done
}
