#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Runs random programs and asks the node random questions about them: events, figures, tables of `by`, calls inside of roots,
# the flight recorder, alone and several at the same time. The answers must be those that a complete recording of the same
# program gives. A failure prints the seed of its program. ETRACE_SEED sets the seed of the first program with fresh seeds, and
# ETRACE_ROUNDS their number.

bats_require_minimum_version 1.5.0
load ../lib/assert
load ../lib/live

setup_file() {
    live_share random
    on_node 'code:ensure_loaded(programs)'
}
teardown_file() { live_end; }
setup() { live_setup; }
teardown() {
    [[ $NODE != "$LIVE_NODE" ]] || on_node 'programs:unload()'
    live_teardown
}

ALL='rnd_a:_/2 | rnd_b:_/2 | rnd_c:_/2 -> return'

answers() { /usr/bin/python3 "$BATS_TEST_DIRNAME/../lib/answers.py" "$@"; }

# Makes the programs of seeds, with loops of up to TURNS turns, in directories of these names.
make_programs() { # TURNS SEED...
    local turns=$1 seeds
    shift
    seeds=$(IFS=, && echo "$*")
    (cd "$BATS_TEST_TMPDIR" && "$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" \
        -eval "[programs:make(integer_to_list(S), S, $turns) || S <- [$seeds]], halt()." >made 2>&1 </dev/null 3>&-) || fail "$(tail -n 5 "$BATS_TEST_TMPDIR/made")"
}

MESSAGES=('send(_, {mark, _, _})' 'recv({mark, _, _})')

# Records a program completely: sets COMPLETE.
record_program() { # DIR
    COMPLETE=$1/complete
    OUT=$1/out ERR=$1/err
    on_node "programs:load(\"$1\", \"deep\")"
    traced -o "$1/complete.etr" --rate 0 "$ALL" "${MESSAGES[@]}" -- "programs:run(\"$1\", \"deep\")"
    assert_success
    "$ETRACE_BIN" replay -q --json "$1/complete.etr" >"$COMPLETE"
}

# Fails if the answer in OUT and ERR is wrong.
judge() { # SEED QUESTION
    local said
    said=$(answers judge "${2%%$'\t'*}" "$COMPLETE" "$OUT" "$ERR")
    [[ $status == 0 && ! $said ]] || fail "ETRACE_SEED=$1 ETRACE_ROUNDS=1, status $status: $2"$'\n'"$said"$'\n'"$(<"$ERR")"
}

# Runs the program while clients ask its questions: a line of answers.py for each.
ask_program() { # DIR QUESTION...
    local dir=$1 i
    local -a clients=() args
    shift
    on_node "programs:load(\"$dir\", \"tail\")"
    for ((i = 1; i <= $#; i++)); do
        IFS=$'\t' read -ra args <<<"${!i}"
        OUT=$dir/out.$i ERR=$dir/err.$i
        trace "${args[@]:1}"
        clients+=("$TRACER")
    done
    on_node "programs:run(\"$dir\", \"tail\")"
    for ((i = 1; i <= $#; i++)); do
        TRACER=${clients[i - 1]} OUT=$dir/out.$i ERR=$dir/err.$i
        trace_end
        judge "${dir##*/}" "${!i}"
    done
}

# Asks about each program COUNT questions, some of them at the same time. SNAPSHOTS: also about snapshots. ONLY: leaves out
# questions without this text.
ask_programs() { # TURNS COUNT SEED...
    local turns=$1 count=$2 seed at n
    local -a questions
    shift 2
    make_programs "$turns" "$@"
    for seed; do
        record_program "$BATS_TEST_TMPDIR/$seed"
        mapfile -t questions < <(answers make "$seed" "$count" ${SNAPSHOTS:+snapshots} | grep -F -e "${ONLY:-}")
        for ((at = 0; at < ${#questions[@]}; at += n)); do
            n=$((1 + (seed + at) % 3))
            ask_program "$BATS_TEST_TMPDIR/$seed" "${questions[@]:at:n}"
        done
    done
}

# Runs the command's node, which halts at the instant of the program. Sets status.
halting() { # DIR HOW ETRACE-ARGUMENT...
    local dir=$1 how=$2
    shift 2
    OUT=$dir/out ERR=$dir/err status=0
    timeout 100 "$ETRACE_BIN" "$@" -- "$ETRACE_ERL" +Bi -noshell -noinput -pa "$(node_lib)" -pa "$dir/${how}1" \
        -eval "programs:halts(\"$dir\", \"$how\")." </dev/null >"$OUT" 2>"$ERR" 3>&- || status=$?
}

# Asks COUNT questions about each program, whose node halts.
ask_halting() { # TURNS COUNT SEED...
    local turns=$1 count=$2 seed dir question
    local -a questions args
    shift 2
    make_programs "$turns" "$@"
    for seed; do
        dir=$BATS_TEST_TMPDIR/$seed
        halting "$dir" deep -o "$dir/complete.etr" --rate 0 "$ALL" "${MESSAGES[@]}"
        assert_equal "$status" 0
        COMPLETE=$dir/complete
        "$ETRACE_BIN" replay -q --json "$dir/complete.etr" >"$COMPLETE"
        mapfile -t questions < <(answers make "$seed" "$count" snapshots)
        for question in "${questions[@]}"; do
            IFS=$'\t' read -ra args <<<"$question"
            halting "$dir" tail "${args[@]:1}"
            judge "$seed" "$question"
        done
    done
}

# Prints seeds that no run had before, or those that a run is to repeat.
fresh_seeds() { # COUNT
    local first=${ETRACE_SEED:-$((RANDOM * 32768 + RANDOM))}
    seq "$first" $((first + ${ETRACE_ROUNDS:-$1} - 1))
}

# Seed 2: calls between those of a loop.
@test "the node answers as complete recordings of random programs do" {
    ask_programs 25 8 2 12
}

# Seed 126: a deep recursion above a short stack, after one above a deep stack.
# bats test_tags=long
@test "the node answers so about loops of a thousand turns, with fresh seeds, too" {
    local -a seeds
    local SNAPSHOTS=yes
    mapfile -t seeds < <(fresh_seeds 6)
    echo "ETRACE_SEED=${seeds[0]}"
    ask_programs 1000 8 126 "${seeds[@]}"
}

# Such programs fill the smallest ring.
# bats test_tags=long
@test "the smallest ring has the last events of random programs" {
    local -a seeds
    local ONLY=256kB
    mapfile -t seeds < <(fresh_seeds 3)
    echo "ETRACE_SEED=${seeds[0]}"
    ask_programs 20000 60 "${seeds[@]}"
}

# Such programs fill the trees of roots.
# bats test_tags=long
@test "roots that were kept until their results have no gap that is not declared" {
    local -a seeds
    local ONLY='"keep": ['
    mapfile -t seeds < <(fresh_seeds 3)
    echo "ETRACE_SEED=${seeds[0]}"
    ask_programs 5000 30 "${seeds[@]}"
}

# bats test_tags=long
@test "the node answers so, too, when it halts in the midst of a program" {
    ask_halting 25 2 203
}

# bats test_tags=long
@test "the node answers so about programs with fresh seeds" {
    local -a seeds
    local SNAPSHOTS=yes
    mapfile -t seeds < <(fresh_seeds 20)
    echo "ETRACE_SEED=${seeds[0]}"
    ask_programs 25 12 "${seeds[@]}"
}

# bats test_tags=long
@test "the node answers so when it halts in the midst of programs with fresh seeds" {
    local -a seeds
    mapfile -t seeds < <(fresh_seeds 8)
    echo "ETRACE_SEED=${seeds[0]}"
    ask_halting 25 6 "${seeds[@]}"
}
