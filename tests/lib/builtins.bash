# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Makes mkdir, mkfifo and rm builtins of bash, from the package bash-builtins. bats and its suites call them several
# times in each test, and the start of a process takes longer than their work. With BASH_ENV tests/run lets bats read
# this file.

for word in mkdir mkfifo rm; do
    [[ ! -e /usr/lib/bash/$word ]] || enable -f "/usr/lib/bash/$word" "$word"
done
unset word
