# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Lists the commands and views that `etrace help` names, for the tests that try every one of them. Load it after assert.bash.

commands_of_help() { "$ETRACE_BIN" help --all | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }

views_of_help() { "$ETRACE_BIN" help views | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p'; }

# The commands that connect to no node, and nodes, which takes hosts.
commands_without_node=' replay browse explain nodes mcp demo recipes schema completion help version '

# Sets args to arguments with which a command that connects to a node ends by itself. A new command must be named here, or above.
command_args() { # COMMAND
    case $1 in
        trace | top) args=(--for 300ms lists:seq/2) ;;
        check | requests | died) args=(--for 300ms) ;;
        why) args=(--for 100ms init) ;;
        info) args=(init) ;;
        ls) args=(lists:seq/2) ;;
        repl | stacks | ps | sessions | doctor) args=() ;;
        *) fail "commands.bash does not know the command $1" ;;
    esac
}
