/* SPDX-License-Identifier: Apache-2.0 */
#include "command_line.h"

#include <string.h>

#include "utf8.h"

static bool command_line_is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("_./:@,+-", c));
}

/* Returns true if a terminal may show every character of the word unescaped. */
static bool command_line_shows(struct str word)
{
    const char *at = word.at, *end = word.at + word.len;

    while (at < end) {
        uint32_t c = utf8_next(&at, end);
        if (c == UTF8_BAD || !utf8_shows(c))
            return false;
    }
    return true;
}

/* Writes the word as $'...', in which bash and zsh read escapes. */
static void command_line_put_escaped(struct buf *to, struct str word)
{
    const char *at = word.at, *end = word.at + word.len;

    buf_puts(to, "$'");
    while (at < end) {
        const char *from = at;
        uint32_t c = utf8_next(&at, end);
        if (c == '\'' || c == '\\')
            buf_printf(to, "\\%c", (char)c);
        else if (c != UTF8_BAD && utf8_shows(c))
            buf_add(to, from, (size_t)(at - from));
        else
            for (; from < at; from++)
                buf_printf(to, "\\%03o", (unsigned)(unsigned char)*from);
    }
    buf_char(to, '\'');
}

void command_line_word(struct command_line *c, const char *word)
{
    const struct str text = {word, strlen(word)};
    struct buf *to = &c->text;
    bool plain = text.len > 0;

    for (size_t i = 0; i < text.len; i++)
        plain = plain && command_line_is_plain(word[i]);
    buf_char(to, ' ');
    if (plain) {
        buf_str(to, text);
        return;
    }
    if (!command_line_shows(text)) {
        command_line_put_escaped(to, text);
        return;
    }
    buf_char(to, '\'');
    for (size_t i = 0; i < text.len; i++)
        if (word[i] == '\'')
            buf_puts(to, "'\\''");
        else
            buf_char(to, word[i]);
    buf_char(to, '\'');
}

const char *command_line_text(struct command_line *c)
{
    return buf_cstr(&c->text);
}

static const char *renamed, *renamed_to;

void command_line_rename(const char *node, const char *typed)
{
    renamed = node;
    renamed_to = typed;
}

void command_line_begin(struct command_line *c, const char *name, const char *ssh, const char *node)
{
    command_line_clear(c);
    command_line_add(c, "etrace");
    if (name)
        command_line_word(c, name);
    if (ssh) {
        command_line_add(c, " --ssh");
        command_line_word(c, ssh);
    }
    if (node) {
        command_line_add(c, " -n");
        command_line_word(c, renamed && !strcmp(node, renamed) ? renamed_to : node);
    }
}

void command_line_hint(struct err *e, const char *before, const char *word, const char *after)
{
    struct command_line c = {0};

    command_line_word(&c, word);
    err_hint(e, "%s%s%s", before, command_line_text(&c), after);
    command_line_release(&c);
}

void command_line_clear(struct command_line *c)
{
    buf_clear(&c->text);
}

void command_line_release(struct command_line *c)
{
    buf_release(&c->text);
}
