# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Loads bats-support and bats-assert. bats loads a suite anew for each test, and the loaders of these libraries start a
# process for each of their files.

for file in "${BATS_LIB_PATH:?start the suite with tests/run}"/bats-{support,assert}/src/*.bash; do
    # shellcheck source=/dev/null
    . "$file"
done
