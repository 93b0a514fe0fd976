/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a line: finds out what it is and whether it is complete, and splits it into label and words. */
#include "repl_syntax.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "../lang/lang.h"

static struct str without_blanks(struct str text)
{
    while (text.len && (*text.at == ' ' || *text.at == '\t'))
        text = (struct str){text.at + 1, text.len - 1};
    return text;
}

/* Returns true if the text begins with a module of Elixir and a full stop: :ets.lookup or :"my mod".f. */
static bool names_module(struct str text)
{
    size_t n = 1;

    if (text.len > 1 && (text.at[1] == '"' || text.at[1] == '\''))
        return true;
    while (n < text.len && (isalnum((unsigned char)text.at[n]) || strchr("_@*", text.at[n]) || text.at[n] < 0))
        n++;
    return n > 1 && n + 1 < text.len && text.at[n] == '.' && !isspace((unsigned char)text.at[n + 1]);
}

bool repl_is_command(struct str line)
{
    line = without_blanks(line);
    return line.len && *line.at == ':' && !names_module(line);
}

bool repl_is_open(struct str line)
{
    size_t label = repl_label_length(line);

    return lang_is_open((struct str){line.at + label, line.len - label});
}

void repl_join_lines(struct str line, struct buf *ret)
{
    size_t label = repl_label_length(line);

    buf_add(ret, line.at, label);
    lang_join_lines((struct str){line.at + label, line.len - label}, ret);
}

/* ---- words ---- */

char *repl_next_word(char **rest)
{
    char *at = *rest, *to, *begin, quote = 0;

    while (isspace((unsigned char)*at))
        at++;
    if (!*at)
        return NULL;
    for (begin = to = at; *at && (quote || !isspace((unsigned char)*at)); at++) {
        if (quote ? *at == quote : (*at == '\'' || *at == '"'))
            quote = quote ? 0 : *at;
        else
            *to++ = *at;
    }
    *rest = *at ? at + 1 : at;
    *to = 0;
    return begin;
}

char *repl_trimmed(char *text)
{
    size_t n;

    while (isspace((unsigned char)*text))
        text++;
    for (n = strlen(text); n && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = 0;
    return text;
}

const char *repl_file_name(struct arena *arena, const char *typed)
{
    const char *home = *typed == '~' && (typed[1] == '/' || !typed[1]) ? getenv("HOME") : NULL;

    return home && *home ? arena_printf(arena, "%s%s", home, typed + 1) : arena_strndup(arena, typed, strlen(typed));
}

static bool label_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* A blank must follow the colon, because `module:function` has no label. */
size_t repl_label_length(struct str line)
{
    size_t n = 0;

    while (n < line.len && label_char(line.at[n]))
        n++;
    return n && n < 32 && n + 1 < line.len && line.at[n] == ':' && (line.at[n + 1] == ' ' || line.at[n + 1] == '\t')
               ? n + 1
               : 0;
}
