# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Runs a command where it finds no node: neither by epmd nor among the processes, which may be nodes of other suites.
nodeless() { # COMMAND...
    local hide=(unshare -rm sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)
    "${hide[@]}" true 2>/dev/null || hide=()
    env -u ETRACE_NODE ERL_EPMD_PORT=1 timeout 300 "${hide[@]}" "$@"
}
