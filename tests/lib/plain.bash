# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Output of an unknown origin must not steer a terminal.
#
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

# assert_screen WHAT FILE fails unless FILE, which `script` has written, is plain text and the sequences with which etrace
# itself paints and moves: it must have no other one, such as a title or an erased screen that the text of a node asks for.
assert_screen() {
    local wrong
    wrong=$(/usr/bin/python3 -c '
import re, sys, unicodedata
text = open(sys.argv[1], "rb").read().decode("utf-8")
text = re.sub(r"\AScript started on .*\n|\nScript done on .*\n\Z", "", text)
text = text.replace("\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J", "\n").replace("\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l", "\n")
text = re.sub(r"\x1b\[(H|[0-9]+;1H(\x1b\[2K)?)|\r\n?", "\n", text)
text = re.sub(r"\x1b\[([0-9;]*m|K|J)", "", text)
bad = sorted({hex(ord(c)) for c in set(text) if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")})
if bad or any(line.startswith("PWNED") for line in text.split("\n")):
    sys.exit("the screen has " + " ".join(bad) + ascii(re.findall(r".{0,40}\x1b.{0,40}", text)[:5]))' "$2" 2>&1) || fail "$1: $wrong"
}
