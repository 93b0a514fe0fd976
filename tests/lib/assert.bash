# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Loads bats-support and bats-assert, and makes bats itself start fewer processes. bats loads a suite anew for each
# test, and the loaders of these libraries start a process for each of their files.

for file in "${BATS_LIB_PATH:?start the suite with tests/run}"/bats-{support,assert}/src/*.bash; do
    # shellcheck source=/dev/null
    . "$file"
done

# bats starts date for the time, twice in each test.
get_mills_since_epoch() { echo $((${EPOCHREALTIME/./} / 1000)); }

# bats records the stack before each command, which takes up to half a millisecond on a busy machine. This version
# does so only for commands in the test's own file. A failure in a helper is therefore reported at the line that calls
# the helper.
bats_debug_trap() {
    [[ $1 == "${BATS_TEST_SOURCE:-}" && ${BATS_INTERRUPTED-NOTSET} == NOTSET && ${BATS_TIMED_OUT-NOTSET} == NOTSET ]] || return 0
    BATS_DEBUG_LASTLAST_STACK_TRACE=("${BATS_DEBUG_LAST_STACK_TRACE[@]}")
    BATS_DEBUG_LAST_LINENO=("${BASH_LINENO[@]}")
    BATS_DEBUG_LAST_SOURCE=("${BASH_SOURCE[@]}")
    bats_capture_stack_trace
    bats_emit_trace
}

# bats starts a shell and sleep for the time limit of each test, and a sleep outlives a test that ends before the shell
# has set its trap. This shell waits by itself.
bats_start_timeout_countdown() { # SECONDS
    local target=$$
    # shellcheck disable=SC2064  # the process of the test
    trap "bats_timeout_trap $target" ABRT
    (
        set +eET
        trap - DEBUG ERR EXIT
        exec {quiet_fd}<> <(:)
        read -r -t "$1" -u "$quiet_fd" || true
        ! kill -ABRT "$target" || bats_kill_childprocesses_of "$target"
    ) </dev/null &>/dev/null 3>&- 4>&- &
}

bats_abort_timeout_countdown() { kill "$1" 2>/dev/null || true; } # PID
