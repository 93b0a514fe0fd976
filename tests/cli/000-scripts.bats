#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Checks the project's scripts: shellcheck accepts them, and the scripts that install or unpack something do nothing,
# and need no network, when their work is already done. Checks that the READMEs and lists name things that exist.

load ../lib/assert

# Lists the files that are shell or bats scripts by their first line or their name, outside of .git and of builds.
scripts() {
    find . -name .git -prune -o -name 'build*' -type d -prune -o -type f -print0 |
        LC_ALL=C xargs -0 awk 'FNR == 1 && (/^#!.*(bash|bats|\/sh)/ || FILENAME ~ /\.(bash|sh|bats)$/) { print FILENAME } { nextfile }'
}

setup() {
    cd "$ETRACE_ROOT" || return
    # A test must not install packages: this apt-get always fails.
    mkdir "$BATS_TEST_TMPDIR/bin"
    printf '#!/bin/sh\necho "apt-get was called: $*" >&2\nexit 100\n' >"$BATS_TEST_TMPDIR/bin/apt-get"
    chmod +x "$BATS_TEST_TMPDIR/bin/apt-get"
    PATH=$BATS_TEST_TMPDIR/bin:$PATH
}

# The suites need a processor for half a minute.
# bats test_tags=long
@test "shellcheck reports no problem in any script" {
    mapfile -t files < <(scripts)
    [ "${#files[@]}" -gt 5 ]
    run shellcheck -x "${files[@]}"
    assert_success
}

@test "shellcheck reports no problem in a script that is no suite" {
    mapfile -t files < <(scripts | grep -vE '\.(bats|bash)$')
    [ "${#files[@]}" -gt 5 ]
    run shellcheck -x "${files[@]}"
    assert_success
}

@test "clang-format changes no C file, and no line has more than 120 characters" {
    local files
    [[ $(clang-format --version) == *' version 14.'* ]] || skip 'another clang-format than version 14'
    mapfile -t files < <(find cli nif tests -name 'build*' -prune -o -name '*.[ch]' -print)
    [ "${#files[@]}" -gt 250 ]
    run clang-format --dry-run --Werror "${files[@]}"
    assert_success
    run grep -nE '^.{121}' "${files[@]}"
    assert_failure 1
    # Version 14 takes a comparison before && and a pointer for a template.
    run grep -nE '&& \* [a-z]' "${files[@]}"
    assert_failure 1
}

@test "every source file and every script names its license in the first three lines" {
    mapfile -t files < <(scripts; find cli nif share tests -name 'build*' -prune -o \( -name '*.[ch]' -o -name '*.[eh]rl' -o -name '*.def' \) -print)
    [ "${#files[@]}" -gt 250 ]
    run awk '/SPDX-License-Identifier: Apache-2.0( \*\/)?$/ { nextfile } FNR == 3 { print FILENAME; nextfile }' "${files[@]}"
    assert_success
    assert_output ''
}

@test "only the JSON writer contains the text of a JSON key" {
    run grep -rnE '\\"[[:alnum:]_%]+\\":' cli nif --include='*.[ch]'
    assert_failure 1
}

@test "no message puts a name behind an option without quoting it for a shell" {
    # command_line.h quotes: a user pastes the command, and the name comes from a node, a file or another user.
    local names='-[nPp]|--(node|os-pid|process|ssh|cookie-file|tls-[a-z]+)|ssh|etrace (--ssh|replay|browse)'
    run grep -rnPo "\"[^\"]*(?<![\w-])($names) %[.*\d]*s" cli nif --include='*.[ch]'
    assert_output ''
}

@test "only these files open a file to write, each as a new file or not through a link" {
    local files=(cli/faces/repl_history.c cli/ground/out.c cli/trace/child.c cli/trace/demo_node.c)
    run grep -rlE 'O_CREAT|O_TRUNC|fopen\([^,]*, "[wa]' cli --include='*.[ch]'
    assert_equal "$(sort <<<"$output")" "$(printf '%s\n' "${files[@]}")"
    run grep -hE 'O_CREAT|O_TRUNC' "${files[@]}"
    assert_equal "$(grep -c O_NOFOLLOW <<<"$output")" "${#lines[@]}"
}

@test "only ground/thread.c starts threads, so no thread takes signals" {
    run grep -rl 'pthread_create' "$ETRACE_ROOT/cli"
    assert_output "$ETRACE_ROOT/cli/ground/thread.c"
}

@test "only the table of items asks other processes of a node with process_info" {
    local calls='process_info\((?!self\(\))'
    run grep -PlR "^[^%]*$calls" "$ETRACE_ROOT/nif" --include=*.hrl --include=*.erl --include=*.eval
    assert_output "$ETRACE_ROOT/nif/tracer_process.hrl"
}

@test "the companion copies terms of tables and of other processes only after it knows their size" {
    # _fits() is a function that asks for the size.
    run awk '/ets:(tab2list|match|match_object|foldl)\(|:get_held_locks\(|gen_event:call\(|:which_children\(/ && !/^ *%/ {
        if ($0 !~ /_fits\(/ && before[1] !~ /_fits\(/ && before[2] !~ /_fits\(/ && before[3] !~ /_fits\(/) print FILENAME ": " $0
    } { before[3] = before[2]; before[2] = before[1]; before[1] = $0 }' "$ETRACE_ROOT"/nif/*.hrl "$ETRACE_ROOT"/nif/*.erl
    assert_success
    assert_output ''
}

# bats test_tags=long
@test "clang builds everything without a warning" {
    CC=clang meson setup "$BATS_TEST_TMPDIR/build" "$ETRACE_ROOT" -Dwerror=true >/dev/null
    run ninja -C "$BATS_TEST_TMPDIR/build"
    assert_success
}

@test "every script says below the license what it does" {
    mapfile -t files < <(scripts)
    run awk 'FNR == 3 && /^# ./ { print FILENAME } FNR == 3 { nextfile }' "${files[@]}"
    assert_success
    assert_output "$(printf '%s\n' "${files[@]}")"
}

@test "share/packages does nothing if the packages are installed" {
    for set in build try release test; do
        run share/packages "$set"
        assert_success
        assert_output ''
    done
}

@test "share/packages refuses an unknown set of packages" {
    run share/packages everything
    assert_failure 1
    assert_output 'share/packages: usage: share/packages build|try|release|test'
}

@test "share/packages prints the apt-get command for a user who is not root" {
    # Simulate a machine without any package and a user who is not root.
    printf '#!/bin/sh\nexit 1\n' >"$BATS_TEST_TMPDIR/bin/dpkg-query"
    printf '#!/bin/sh\necho 1000\n' >"$BATS_TEST_TMPDIR/bin/id"
    chmod +x "$BATS_TEST_TMPDIR/bin/dpkg-query" "$BATS_TEST_TMPDIR/bin/id"
    run share/packages build
    assert_failure 1
    assert_output --partial 'share/packages: missing: gcc '
    assert_output --partial '; run this as root: apt-get install --yes --no-install-recommends gcc '
    [ "${#lines[@]}" -eq 1 ]
}

@test "tests/otp prints the bin directory of an installed OTP" {
    run tests/otp "$ETRACE_OTP"
    assert_success
    assert_output "${ETRACE_ERL%/erl}"
}

@test "tests/otp refuses a release without a recipe, and prints its usage without arguments" {
    run tests/otp 28
    assert_failure 1
    assert_output 'tests/otp: there is no recipe for OTP 28, only for 27 and 29'
    run tests/otp
    assert_failure 1
    assert_output 'tests/otp: usage: tests/otp [--apps|--arm64] 27|29...'
}

@test "tests/otp leaves no directory that looks complete when it fails" {
    export ETRACE_OTP_DIR=$BATS_TEST_TMPDIR/otp
    run tests/otp 27
    assert_failure 1
    refute_output --partial "$ETRACE_OTP_DIR/27/bin"
    assert [ ! -e "$ETRACE_OTP_DIR/27" ]
    run find "$ETRACE_OTP_DIR" -mindepth 1 -type d
    assert_output ''
}

# tests/mutants builds each mutant and runs a test, which takes an hour. This test only finds the entries that no longer
# match the code.
@test "every entry of tests/mutants.list changes its file" {
    run /usr/bin/python3 - <<'END'
import subprocess
lines = [line for line in open("tests/mutants.list").read().split("\n") if line and line[0] != "#"]
for title, change, where in zip(lines[::3], lines[1::3], lines[2::3]):
    file, script = change.split(" ", 1)
    if not where or subprocess.run(["sed", "-E", script, file], capture_output=True).stdout == open(file, "rb").read():
        print(title)
if len(lines) % 3:
    print("a line is missing")
END
    assert_output ''
}

# Prints the lines of the entries of tests/mutants.list: a title, a change and a test for each.
mutants() { grep -v -e '^#' -e '^$' tests/mutants.list; }

@test "tests/README.md defines every number that tests/mutants.list cites" {
    mutants | awk 'NR % 3 == 1 { for (i = 1; $i ~ /^[TV]?[0-9]+$/; i++) print $i } NR % 3 == 1 && i == 1' | sort -u >"$BATS_TEST_TMPDIR/cited"
    sed -nE 's/^\| ([TV]?[0-9]+) \|.*/\1/p' tests/README.md | sort >"$BATS_TEST_TMPDIR/defined"
    run comm -23 "$BATS_TEST_TMPDIR/cited" "$BATS_TEST_TMPDIR/defined"
    assert_output ''
    run uniq -d "$BATS_TEST_TMPDIR/defined"
    assert_output ''
}

@test "every test that tests/mutants.list or tests/sanitized names exists" {
    run /usr/bin/python3 - <<'END'
import glob, re
lines = [line for line in open("tests/mutants.list").read().split("\n") if line and line[0] != "#"]
named = [(suite, name.split(" ", 1)[1]) for suite, name in (line.split(" ", 1) for line in lines[2::3])]
named += [("cli/" + suite, "^" + re.escape(name)) for suite, name in re.findall(r"(?m)^    '([0-9]{3}-[a-z]+): (.*)'$", open("tests/sanitized").read())]
titles = {f: re.findall(r'(?m)^@test "(.*)" \{$', open(f).read()) for f in glob.glob("tests/*/*.bats")}
for suite, name in named:
    files = [f for f in titles if f.startswith("tests/" + suite)]
    if files and not any(re.search(name, title) for f in files for title in titles[f]):
        print(f"{suite}: {name}")
END
    assert_output ''
}

@test "tests/README.md shows a test as it is" {
    shown=$(sed -n '/^    @test/,/^    }/s/^    //p' tests/README.md)
    [[ $shown == @test* && $(<tests/cli/535-memory.bats) == *"$shown"* ]]
}

# A name of a document: a file by its name or the end of its path, a suite by its number, and an identifier in backquotes
# as a word of the sources. NAME, and what a build makes, stand for no file.
@test "every file, suite and function that a README names exists" {
    run /usr/bin/python3 - <<'END'
import glob, re, subprocess
documents = ["README.md", "SECURITY.md", "cli/README.md", "nif/README.md", "tests/README.md", ".github/CONTRIBUTING.md", *glob.glob("share/doc/**/*.md", recursive=True)]
made = {"tracer_kinds.hrl", "times_of_suites", "times_of_tests", "bench.json", "enif_term_type", "unicode_util"}
made |= {"cli/views/sink_census.c", "sink_census", "cli/commands/cmd_tables.c", "cmd_tables", "property_wall_ns", "half_begin"}  # the examples of howto.md
found = subprocess.run("find . -path ./.git -prune -o -name 'build*' -prune -o -type f -print", shell=True, text=True, capture_output=True)
files = [f[2:] for f in found.stdout.split()]
words = set()
for f in files:
    if not f.endswith((".md", ".tar", ".etr")):
        words.update(re.findall(r"\w+", open(f, errors="replace").read()))
def is_file(name):
    end = re.compile("(^|/)" + re.escape(name.replace("../", "")).replace(r"\*", ".*") + "$")
    return any(end.search(f) for f in files)
for document in documents:
    for number, line in enumerate(open(document), 1):
        wrong = [f for f in re.findall(r"(?<![\w./*@:-])((?:[\w.-]+/)*[\w-]+\*?\.(?:c|h|def|erl|hrl|eval|escript|bash|py|md|list|names|json|scd))\b", line) if not is_file(f)]
        wrong += [s for s in re.findall(r"\bcli/[0-9]{3}\b|\bapps/[a-z]+\b", line) if not any(("tests/" + s) in f for f in files)]
        wrong += [w for quoted in re.findall(r"`([^`]+)`", line) if "/contributing/" in document or (document.count("/") == 1 and not document.startswith("share"))
                  for w in re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b(?=\(|$|/\d)|\b[A-Z]+_[A-Z0-9_]+\b", quoted) if w not in words]
        for name in wrong:
            if name not in made and "NAME" not in name:
                print(f"{document}:{number}: {name}")
END
    assert_output ''
}

@test "every link of a document leads to a file, and to a heading of it" {
    run /usr/bin/python3 - <<'END'
import glob, os, re
def headings(path):
    return {re.sub(r"[^a-z0-9 _-]", "", h.lower()).replace(" ", "-") for h in re.findall(r"(?m)^#+ (.*)$", open(path).read())}
links = 0
for document in ["README.md", "SECURITY.md", *glob.glob("*/README.md"), ".github/CONTRIBUTING.md", *glob.glob("share/doc/**/*.md", recursive=True)]:
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", open(document).read()):
        path = os.path.normpath(os.path.join(os.path.dirname(document), target)) if target else document
        links += 1
        if not os.path.exists(path) or (heading and heading not in headings(path)):
            print(f"{document}: {target}#{heading}")
assert links > 60, links
END
    assert_success
    assert_output ''
}

@test "every test that howto.md quotes exists in its suite" {
    run /usr/bin/python3 - <<'END'
import glob, re
quotes = re.findall(r'cli/([0-9]{3}),\s+"([^"]+)"', open("share/doc/contributing/howto.md").read())
assert len(quotes) > 8, quotes
for suite, title in quotes:
    titles = re.findall(r'(?m)^@test "(.*)" \{$', "".join(open(f).read() for f in glob.glob(f"tests/cli/{suite}-*.bats")))
    if not any(each.startswith(" ".join(title.split())) for each in titles):
        print(f"cli/{suite}: {title}")
END
    assert_success
    assert_output ''
}

@test "the files that howto.md shows compile" {
    local flags
    mapfile -t flags < <(jq -r '.[] | select(.file | endswith("cli/views/line.c")) | .command' build/compile_commands.json |
        grep -oE -- '-(std=[a-z0-9]+|W[a-z-]+(=[a-z0-9-]+)?|D_GNU_SOURCE)')
    [[ ${#flags[@]} -gt 5 ]]
    # A file begins with its license, and ends with the last line that has the indentation of a block.
    awk -v dir="$BATS_TEST_TMPDIR/" '
        /^ +\/\* SPDX/ { file = dir "shown_" ++n ".c"; from = index($0, "/") }
        file && NF && index($0, $1) < from { file = "" }
        file { print substr($0, from) >file }' share/doc/contributing/howto.md
    run ls "$BATS_TEST_TMPDIR"
    assert_line shown_2.c
    run "${CC:-cc}" -fsyntax-only -Werror "${flags[@]}" -I cli/views -I nif "$BATS_TEST_TMPDIR/shown_1.c"
    assert_success
    run "${CC:-cc}" -fsyntax-only -Werror "${flags[@]}" -iquote cli/commands -I nif "$BATS_TEST_TMPDIR/shown_2.c"
    assert_success
}

# A stranger finds a file by the word that it is about.
@test "the glossary names every file of nif, and no word twice" {
    local glossary=share/doc/contributing/glossary.md
    for file in nif/*.[ch] nif/*.[eh]rl nif/*.eval nif/*.escript; do
        file=${file#nif/}
        grep -qE "[\`/](${file%.*})\.[a-z]+" "$glossary" || fail "$file is not in $glossary"
    done
    run awk -F '|' 'NF > 4 && $2 !~ /---/ { n = split($2, words, ","); for (i = 1; i <= n; i++) { gsub(/^ +| +$/, "", words[i]); if (words[i] != "word") print words[i] } }' "$glossary"
    [[ ${#lines[@]} -gt 80 ]]
    assert_equal "$(printf '%s\n' "${lines[@]}" | sort | uniq -d)" ''
}

# Otherwise grep, gdb and cscope find the wrong one.
@test "no base name stands in two directories, and no name of a function in three files" {
    run /usr/bin/python3 - <<'END'
import collections, glob, os, re
places = collections.defaultdict(set)
for path in glob.glob("cli/*/*.[ch]") + glob.glob("nif/*.[ch]"):
    places[os.path.splitext(os.path.basename(path))[0]].add(os.path.dirname(path))
    for name in re.findall(r"^static (?!_Noreturn)[^=;(){}]*?\b(\w+)\(", open(path).read(), re.M):
        places[name + "()"].add(path)
for name, where in sorted(places.items()):
    if len(where) > (2 if name.endswith("()") else 1) and name not in ("__attribute__()", "PRINTF_LIKE()"):
        print(name, *sorted(where))
END
    assert_output ''
}

# One word is not enough for what a function does and to what: a reader must look up `took`, `about` and `hide`.
@test "no function that reports an error is named is_, has_, are_ or can_" {
    run /usr/bin/python3 - <<'END'
import glob, re
functions = [(name, path) for path in glob.glob("cli/*/*.c")
    for name, given in re.findall(r"^(?!\s|typedef|#)[\w \*()]*?\b(\w+)\(([^;{]*)\)\n\{", open(path).read(), re.M)
    if re.search(r"struct err \*", given)]
assert len(functions) > 500, len(functions)
for name, path in functions:
    if re.search(r"(^|_)(is|has|are|can)_", name):
        print(name, path)
END
    assert_success
    assert_output ''
}

@test "at most one function in a hundred has a name of one word" {
    run /usr/bin/python3 - <<'END'
import glob, re
names = [(name, path) for path in glob.glob("cli/*/*.c") + glob.glob("nif/*.c")
    for name in re.findall(r"^(?!\s|typedef|#)[\w \*()]*?\b(\w+)\([^;{]*\)\n\{", open(path).read(), re.M)]
short = [" ".join(each) for each in names if "_" not in each[0]]
assert len(names) > 4000, len(names)
if len(short) * 100 > len(names):
    print("\n".join(short))
END
    assert_success
    assert_output ''
}

# Two suites: bats itself waits for ever, and a test waits for what a program in another session prints. The tests run
# in a copy of the tree that has other limits.
@test "a suite that hangs ends at its limit, a test too, and nothing that they started runs on" {
    local tree=$BATS_TEST_TMPDIR/tree word seconds=$((1000000 + BASHPID))
    mkdir -p "$tree/tests/cli" "$tree/build"
    for word in share meson.build; do ln -s "$ETRACE_ROOT/$word" "$tree"; done
    for word in lib otp README.md; do ln -s "$ETRACE_ROOT/tests/$word" "$tree/tests"; done
    sed 's/suite_seconds=1800 test_seconds=600/suite_seconds=15 test_seconds=1/; s/^build build/true/' tests/run >"$tree/tests/run"
    chmod +x "$tree/tests/run"
    # bats would take @test for a test of this file.
    sed "s/TEST/@test/; s/SECONDS/$seconds/g" >"$tree/tests/cli/100-whole.bats" <<'END'
setup_file() { setsid sleep SECONDS 3>&- & sleep SECONDS; }
TEST "is never reached" { true; }
END
    sed "s/TEST/@test/; s/SECONDS/$seconds/g" >"$tree/tests/cli/101-test.bats" <<'END'
load ../lib/assert
TEST "waits for output" { word=$(setsid sleep SECONDS); }
TEST "waits without the descriptor of its result" { run sleep SECONDS 3>&-; }
TEST "runs after them" { true; }
END
    run env -i PATH="$BATS_TEST_TMPDIR/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME="$HOME" ETRACE_OTP_DIR="$ETRACE_OTP_DIR" ETRACE_SUITE="$ETRACE_SUITE" \
        "$tree/tests/run" --otp 29 --keep-going cli/1
    assert_failure 1
    assert_line --partial 'did not end within 15 seconds; the last test that ended: '
    assert_line --partial 'not ok 1 waits for output in '
    assert_line --partial "at the time limit: word=\$(setsid sleep $seconds)"
    assert_line --partial 'not ok 2 waits without the descriptor of its result in '
    assert_line --regexp '^cli/101-test +1 passed, 2 failed '
    run pgrep -fx "sleep $seconds"
    assert_failure 1
}
