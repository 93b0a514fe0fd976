# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Lists the commands and views that `etrace help` names, for the tests that try every one of them.

commands_of_help() { "$ETRACE_BIN" help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; }

views_of_help() { "$ETRACE_BIN" help | sed -n '/^views/,/^$/p' | sed 1d | xargs; }
