# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# assert_plain WHAT FILE... fails unless every file is UTF-8 that cannot steer a terminal. A file may have no control
# character but the newline (and the tab in *.tsv), no character that formats, reorders or hides text, and no line that
# begins with PWNED.
assert_plain() {
    local what=$1 wrong
    shift
    wrong=$(/usr/bin/python3 -c '
import sys, unicodedata
for name in sys.argv[1:]:
    text = open(name, "rb").read().decode("utf-8")
    allowed = "\n\t" if name.endswith(".tsv") else "\n"
    bad = sorted({hex(ord(c)) for c in set(text) if c not in allowed and (unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))})
    if bad or any(line.startswith("PWNED") for line in text.split("\n")):
        sys.exit(name + " has " + " ".join(bad))' "$@" 2>&1) || fail "$what: $wrong"
}
