# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Loads bats-support and bats-assert, and makes bats itself start fewer processes. bats loads a suite anew for each
# test, and the loaders of these libraries start a process for each of their files.

# shellcheck source=tests/lib/process.bash
. "${BASH_SOURCE[0]%/*}/process.bash"

for file in "${BATS_LIB_PATH:?start the suite with tests/run}"/bats-{support,assert}/src/*.bash; do
    # shellcheck source=/dev/null
    . "$file"
done

# The programs that a test starts get no builtins (builtins.bash).
[[ ! ${BATS_TEST_NAME:-} ]] || unset BASH_ENV

# A program needs no shell of its own beside that of run.
bats_merge_stdout_and_stderr() {
    [[ $1 != */* ]] || exec "$@" 2>&1
    "$@" 2>&1
}

# bats starts date for the time, twice in each test.
get_mills_since_epoch() { echo $((${EPOCHREALTIME/./} / 1000)); }

# bats records the stack before each command, which takes up to half a millisecond on a busy machine. Here the trap of
# the failure records it. A time limit and a teardown have no such trap, so the line of each command of the test itself is
# recorded, too. For setup_file, bats has set the trap of commands before it reads this file.
trap - DEBUG
bats_setup_tracing() {
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=
    BATS_ERROR_SUFFIX=
    exec 4<&1 # as bats does
    set +T
    declare -ft "$BATS_TEST_NAME" bats_teardown_trap teardown
    trap record_line DEBUG
    trap bats_error_trap ERR
}

# In the trap of a signal the line is 1.
record_line() {
    [[ ${BASH_SOURCE[1]} == "$BATS_TEST_SOURCE" && ${BASH_LINENO[0]} != 1 && ! $BATS_DEBUG_LAST_STACK_TRACE_IS_VALID ]] ||
        return 0
    BATS_DEBUG_LAST_STACK_TRACE=("${BASH_LINENO[0]} ${FUNCNAME[1]} ${BASH_SOURCE[1]}")
}

bats_error_trap() {
    bats_check_status_from_trap
    [[ $BATS_DEBUG_LAST_STACK_TRACE_IS_VALID ]] || bats_capture_stack_trace
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
}

# The trap of a signal knows the lines of all functions but the innermost.
bats_timeout_trap() {
    local last=("${BATS_DEBUG_LAST_STACK_TRACE[@]}")
    BATS_TIMED_OUT=1
    # bats prints the result to descriptor 3, which a command with 3>&- has closed.
    [[ -e /proc/$$/fd/3 ]] || exec 3>>"/proc/$PPID/fd/1"
    echo "at the time limit: $BASH_COMMAND"
    bats_capture_stack_trace
    BATS_DEBUG_LAST_STACK_TRACE=("${BATS_DEBUG_LAST_STACK_TRACE[@]:1}")
    [[ ${#BATS_DEBUG_LAST_STACK_TRACE[@]} -gt 0 ]] || BATS_DEBUG_LAST_STACK_TRACE=("${last[@]}")
    BATS_DEBUG_LAST_STACK_TRACE_IS_VALID=1
    exit 1
}

# bats starts a shell and sleep for the time limit of each test, and a sleep outlives a test that ends before the shell
# has set its trap. This shell waits by itself. It ends the children of the test as bats does. A test that still waits
# after five seconds more, for example for the output of a grandchild, loses every program that it has started.
bats_start_timeout_countdown() { # SECONDS
    local target=$$
    # shellcheck disable=SC2064  # the process of the test
    trap "bats_timeout_trap $target" ABRT
    (
        set +eET
        trap - DEBUG ERR EXIT
        trap '' TERM # this shell is a child of the test, too
        pause "$1"
        kill -ABRT "$target" || exit
        bats_kill_childprocesses_of "$target"
        pause 5
        # bats ends this shell when the test has ended.
        grep -lzsxF "BATS_TEST_TMPDIR=$BATS_TEST_TMPDIR" /proc/[0-9]*/environ |
            while IFS=/ read -r _ _ pid _; do kill -KILL "$pid"; done
    ) </dev/null &>/dev/null 3>&- 4>&- &
    disown
}

bats_abort_timeout_countdown() { kill -KILL "$1" 2>/dev/null || true; } # PID
