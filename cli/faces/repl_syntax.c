/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a line: splits it into label and words, and finds out whether it is complete. */
#include "repl_syntax.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(struct str text, const char *what)
{
    size_t n = strlen(what);

    return text.len >= n && !memcmp(text.at + text.len - n, what, n);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@';
}

static bool ends_in_word(struct str text, const char *word)
{
    size_t n = strlen(word);

    return ends_in(text, word) && (text.len == n || !is_word(text.at[text.len - n - 1]));
}

bool repl_is_open(struct str text)
{
    long depth = 0;
    char quote = 0;
    size_t end = 0; /* offset after the last character of code, not of white space or a comment */

    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (quote) {
            if (c == '\\')
                i++;
            else if (c == quote)
                quote = 0;
            end = i + 1;
            continue;
        }
        if (c == '%') {
            while (i + 1 < text.len && text.at[i + 1] != '\n')
                i++;
            continue;
        }
        if (c == '$' && i + 1 < text.len) {
            i += text.at[i + 1] == '\\' && i + 2 < text.len ? 2 : 1;
            end = i + 1;
            continue;
        }
        if (c == '"' || c == '\'')
            quote = c;
        else if (c == '(' || c == '[' || c == '{')
            depth++;
        else if (c == ')' || c == ']' || c == '}')
            depth--;
        if (c != ' ' && c != '\t' && c != '\n')
            end = i + 1;
    }
    if (quote || depth > 0)
        return true;
    struct str said = {text.at, MIN(end, text.len)};
    static const char *const signs[] = {"->", ";", "|", ",", "&&", "||"};
    static const char *const words[] = {"when", "where", "by", "inside", "and", "or", "andalso", "orelse"};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (ends_in(said, signs[i]))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (ends_in_word(said, words[i]) && said.len > strlen(words[i]))
            return true;
    return false;
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
size_t repl_label_length(const char *line)
{
    size_t n = 0;

    while (label_char(line[n]))
        n++;
    return n && n < 32 && line[n] == ':' && (line[n + 1] == ' ' || line[n + 1] == '\t') ? n : 0;
}
