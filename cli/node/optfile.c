/* SPDX-License-Identifier: Apache-2.0 */
#include "optfile.h"

#include <stdio.h>
#include <string.h>

#include "../ground/small_file.h"

#define FILE_MAX ((size_t)256 << 10)
#define DEPTH_MAX 64

/* ---- tokens of Erlang terms ---- */

enum kind { KIND_END, KIND_OPEN, KIND_CLOSE, KIND_COMMA, KIND_TEXT, KIND_WORD /* any other token */, KIND_WRONG };

struct word {
    enum kind kind;
    char bracket;
    char text[OPTFILE_TEXT]; /* for KIND_TEXT: an atom, a string, or a binary that consists of one string */
};

struct reader {
    const char *at, *end;
    struct word word;
};

static void optfile_quoted(struct reader *r, char quote)
{
    size_t len = 0;

    r->word.kind = KIND_TEXT;
    for (; r->at < r->end && *r->at != quote; r->at++) {
        if (*r->at == '\\' && r->at + 1 < r->end)
            r->at++;
        if (len < OPTFILE_TEXT - 1)
            r->word.text[len++] = *r->at;
        else
            r->word.kind = KIND_WRONG;
    }
    r->word.text[len] = 0;
    if (r->at == r->end)
        r->word.kind = KIND_WRONG;
    else
        r->at++;
}

static bool in_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@' ||
           (c & 0x80);
}

static void optfile_next(struct reader *r)
{
    size_t len = 0;

    while (r->at < r->end && ((unsigned char)*r->at <= ' ' || *r->at == '%')) {
        if (*r->at == '%')
            while (r->at < r->end && *r->at != '\n')
                r->at++;
        else
            r->at++;
    }
    r->word.kind = KIND_END;
    if (r->at == r->end)
        return;
    char c = *r->at++;
    if (strchr("{[(", c)) {
        r->word.kind = KIND_OPEN;
        r->word.bracket = c == '{' ? '}' : c == '[' ? ']' : ')';
    } else if (strchr("}])", c)) {
        r->word.kind = KIND_CLOSE;
        r->word.bracket = c;
    } else if (c == ',') {
        r->word.kind = KIND_COMMA;
    } else if (c == '"' || c == '\'') {
        optfile_quoted(r, c);
    } else if (c == '<' && r->end - r->at >= 2 && r->at[0] == '<' && r->at[1] == '"') {
        r->at += 2;
        optfile_quoted(r, '"');
        while (r->at < r->end && *r->at != '>')
            r->at++;
        r->at = MIN(r->at + 2, r->end);
    } else if (in_name(c)) {
        for (r->at--; r->at < r->end && in_name(*r->at); r->at++)
            if (len < OPTFILE_TEXT - 1)
                r->word.text[len++] = *r->at;
        r->word.text[len] = 0;
        r->word.kind = KIND_TEXT;
    } else {
        r->word.kind = KIND_WORD;
    }
}

/* Skips the current element up to the comma or bracket after it. Returns false if the brackets do not match. */
static bool skip_element(struct reader *r)
{
    char open[DEPTH_MAX];
    size_t depth = 0;

    for (;; optfile_next(r)) {
        switch (r->word.kind) {
        case KIND_OPEN:
            if (depth == DEPTH_MAX)
                return false;
            open[depth++] = r->word.bracket;
            break;
        case KIND_CLOSE:
            if (!depth)
                return true;
            if (open[--depth] != r->word.bracket)
                return false;
            break;
        case KIND_COMMA:
            if (!depth)
                return true;
            break;
        case KIND_END:
        case KIND_WRONG:
            return false;
        case KIND_TEXT:
        case KIND_WORD:
            break;
        }
    }
}

static bool optfile_is(const struct reader *r, enum kind kind, char bracket)
{
    return r->word.kind == kind && (!bracket || r->word.bracket == bracket);
}

/* ---- the file ---- */

static void optfile_take(struct optfile *o, const char *key, const char *value)
{
    const struct {
        const char *key;
        char *to;
        const char **field;
    } texts[] = {
        {"cacertfile", o->ca, &o->options.ca},
        {"certfile", o->cert, &o->options.cert},
        {"keyfile", o->key, &o->options.key},
        {"password", o->password, &o->options.password},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!strcmp(key, texts[i].key)) {
            snprintf(texts[i].to, OPTFILE_TEXT, "%s", value);
            *texts[i].field = texts[i].to;
        }
    if (!strcmp(key, "verify"))
        o->options.no_verify = !strcmp(value, "verify_none");
    if (!strcmp(key, "server_name_indication")) {
        o->options.any_host = !strcmp(value, "disable");
        if (!o->options.any_host) {
            snprintf(o->host, sizeof o->host, "%s", value);
            o->options.host = o->host;
        }
    }
}

/* Calls `element` for each remaining element of a list or tuple, up to the closing bracket `closing`. */
static bool read_elements(struct reader *r, char closing, bool (*element)(struct reader *r, struct optfile *o),
                          struct optfile *o)
{
    while (!optfile_is(r, KIND_CLOSE, closing)) {
        if (!element(r, o))
            return false;
        if (optfile_is(r, KIND_COMMA, 0))
            optfile_next(r);
        else if (!optfile_is(r, KIND_CLOSE, closing))
            return false;
    }
    return true;
}

static bool pass_over(struct reader *r, struct optfile *o UNUSED)
{
    return skip_element(r);
}

/* Takes an option {Key, Value}. Skips an element of another form. */
static bool read_tls_option(struct reader *r, struct optfile *o)
{
    char key[OPTFILE_TEXT];

    if (!optfile_is(r, KIND_OPEN, '}'))
        return skip_element(r);
    optfile_next(r);
    if (!optfile_is(r, KIND_TEXT, 0))
        return false;
    snprintf(key, sizeof key, "%s", r->word.text);
    optfile_next(r);
    if (optfile_is(r, KIND_COMMA, 0)) {
        optfile_next(r);
        if (optfile_is(r, KIND_TEXT, 0))
            optfile_take(o, key, r->word.text);
    }
    if (!read_elements(r, '}', pass_over, o))
        return false;
    optfile_next(r);
    return true;
}

static bool read_tls_section(struct reader *r, struct optfile *o)
{
    if (!optfile_is(r, KIND_OPEN, '}'))
        return false;
    optfile_next(r);
    bool client = optfile_is(r, KIND_TEXT, 0) && !strcmp(r->word.text, "client");
    optfile_next(r);
    if (!optfile_is(r, KIND_COMMA, 0))
        return false;
    optfile_next(r);
    if (client) {
        if (!optfile_is(r, KIND_OPEN, ']'))
            return false;
        optfile_next(r);
        if (!read_elements(r, ']', read_tls_option, o))
            return false;
        optfile_next(r);
    } else if (!skip_element(r)) {
        return false;
    }
    if (!optfile_is(r, KIND_CLOSE, '}'))
        return false;
    optfile_next(r);
    return true;
}

bool optfile_read(const char *path, struct optfile *ret, struct err *e)
{
    static const struct optfile none;
    struct buf text = {0};
    bool ok = small_file_read(path, path, FILE_MAX, &text, ERR_NODE, e);

    if (ok) {
        struct reader r = {.at = text.data, .end = text.data + text.len};
        *ret = none;
        optfile_next(&r);
        ok = optfile_is(&r, KIND_OPEN, ']');
        optfile_next(&r);
        ok = ok && read_elements(&r, ']', read_tls_section, ret);
        if (!ok) {
            err_set(e, ERR_NODE, "%s is not a file for -ssl_dist_optfile: it holds [{server, [...]}, {client, [...]}].",
                    path);
            optfile_wipe(ret);
        }
    }
    if (text.data)
        explicit_bzero(text.data, text.cap);
    buf_release(&text);
    return ok;
}

void optfile_wipe(struct optfile *o)
{
    explicit_bzero(o, sizeof *o);
}
