/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that a word of a printed command is one word for a shell, the same bytes, and harmless for a terminal. */
#include "ground/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"
#include "ground/utf8.h"

static const char *const words[] = {
    "shop@h1",
    "",
    "a b",
    "a';touch x;'",
    "$(id)@vm",
    "`id`",
    "\"quoted\"",
    "back\\slash",
    "-n",
    "~root",
    "*",
    "!event",
    "#comment",
    "=ls",
    "a\nb",
    "esc\033[31m",
    "caf\303\251",
    "\377\376",
    "r\342\200\256l",
    "'",
    "''",
    "\\'",
    "a\tb",
    "{1,2}",
    "<0.1.0>",
    "#PID<0.1.0>",
    "app('a\\';touch x;\\'')",
    "tab\\011",
    "\1771",
};

static const char *written(struct command_line *c, const char *word)
{
    command_line_clear(c);
    command_line_word(c, word);
    return command_line_text(c);
}

/* Returns what the shell makes of the words of a command: each in a line that ends with |. */
static void read_by(const char *shell, const char *command, char *ret, size_t size)
{
    struct buf script = {0};
    char path[] = "/tmp/etrace_words.XXXXXX";
    int fd = mkstemp(path);
    size_t len = 0;

    buf_printf(&script, "printf '%%s|' %s", command);
    if (fd < 0 || write(fd, script.data, script.len) != (ssize_t)script.len)
        exit(1);
    close(fd);
    buf_clear(&script);
    buf_printf(&script, "exec %s %s", shell, path);
    FILE *out = popen(buf_cstr(&script), "r");
    while (out && len + 1 < size && fread(ret + len, 1, 1, out) == 1)
        len++;
    ret[len] = 0;
    if (out)
        pclose(out);
    unlink(path);
    buf_release(&script);
}

static bool is_the_same(const char *shell, const char *word)
{
    struct command_line c = {0};
    char read[200], wanted[200];

    snprintf(wanted, sizeof wanted, "%s|", word);
    read_by(shell, written(&c, word), read, sizeof read);
    if (strcmp(read, wanted))
        printf("# %s reads%s as %s\n", shell, command_line_text(&c), read);
    command_line_release(&c);
    return !strcmp(read, wanted);
}

static bool is_shown(const char *word)
{
    struct command_line c = {0};
    const char *at = written(&c, word), *end = at + strlen(at);
    bool shows = true;

    while (at < end) {
        uint32_t code = utf8_next(&at, end);
        shows = shows && code != UTF8_BAD && utf8_shows(code);
    }
    command_line_release(&c);
    return shows;
}

static bool is_written(const char *word, const char *wanted)
{
    struct command_line c = {0};
    bool is = !strcmp(written(&c, word), wanted);

    command_line_release(&c);
    return is;
}

static bool is_hinted(const char *word, const char *wanted)
{
    struct err e = {0};

    command_line_hint(&e, "try -n", word, " now");
    return !strcmp(e.hint, wanted);
}

int main(void)
{
    bool same = true, shown = true;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        same = is_the_same("bash", words[i]) && same;
        shown = is_shown(words[i]) && shown;
    }
    ok(same, "bash reads each word as it was");
    ok(shown, "no word changes a terminal");
    ok(is_written("shop@h1", " shop@h1"), "a plain word has no quotes");
    ok(is_written("recv(_)", " 'recv(_)'"), "a word with a parenthesis has quotes");
    ok(is_written("it's", " 'it'\\''s'"), "a quote ends the quotes for a moment");
    ok(is_hinted("a", "try -n a now") && is_hinted("$(id)", "try -n '$(id)' now"), "a hint quotes the word");
    return tap_end();
}
