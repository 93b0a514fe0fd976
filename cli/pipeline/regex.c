/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps PCRE2, for all regular expressions. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "regex.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"
#include "../ground/utf8.h"

/* With these limits, the search with a pathological pattern gives up within about 2 ms. */
#define MATCH_LIMIT 100000
#define DEPTH_LIMIT 10000
#define HEAP_LIMIT 1024 /* KiB */

struct regex {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

/* Returns true for a pattern with substring scans, with which PCRE2 10.45 may write out of bounds (CVE-2025-58050). */
static bool scans_substrings(struct str pattern)
{
    static const char *const words[] = {"(*scs:", "(*scan_substring:"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (memmem(pattern.at, pattern.len, words[i], strlen(words[i])))
            return true;
    return false;
}

struct regex *regex_new(struct str pattern, struct err *e)
{
    if (scans_substrings(pattern))
        return err_set(e, ERR_USAGE, "invalid regular expression: (*scan_substring:…) is not supported"), NULL;
    int number;
    size_t at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)pattern.at, pattern.len,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C, &number, &at, NULL);

    if (!code) {
        unsigned char text[256];
        pcre2_get_error_message(number, text, sizeof(text));
        err_set(e, ERR_USAGE, "invalid regular expression: %s", (const char *)text);
        size_t len = MIN(pattern.len, sizeof(e->line) - 1);
        at = MIN(at, len);
        memcpy(e->line, pattern.at, at);
        e->line[at] = 0;
        utf8_make_safe(e->line);
        e->from = strlen(e->line);
        e->len = 1;
        memcpy(e->line + e->from, pattern.at + at, len - at);
        e->line[e->from + len - at] = 0;
        utf8_make_safe(e->line + e->from);
        return NULL;
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* optional: without JIT, matching is slower */
    struct regex *r = mem_zalloc(sizeof(*r));
    r->code = code;
    r->match = pcre2_match_data_create(1, NULL);
    r->context = pcre2_match_context_create(NULL);
    if (!r->match || !r->context) {
        regex_free(r);
        err_set(e, ERR_RUN, "no memory for a pattern");
        return NULL;
    }
    pcre2_set_match_limit(r->context, MATCH_LIMIT);
    pcre2_set_depth_limit(r->context, DEPTH_LIMIT);
    pcre2_set_heap_limit(r->context, HEAP_LIMIT);
    return r;
}

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_match_context_free(r->context);
    pcre2_match_data_free(r->match);
    pcre2_code_free(r->code);
    free(r);
}

static int regex_match(struct regex *r, struct str text, size_t from, uint32_t options)
{
    return pcre2_match(r->code, (PCRE2_SPTR)(text.len ? text.at : ""), MIN(text.len, (size_t)REGEX_SUBJECT), from,
                       options, r->match, r->context);
}

static enum regex_found found_of(int n)
{
    return n >= 0 ? REGEX_YES : n == PCRE2_ERROR_NOMATCH ? REGEX_NO : REGEX_GAVE_UP;
}

enum regex_found regex_search(struct regex *r, struct str text)
{
    return found_of(regex_match(r, text, 0, 0));
}

enum regex_found regex_search_beginning(struct regex *r, struct str text)
{
    return found_of(regex_match(r, text, 0, PCRE2_NOTEOL));
}

bool regex_span(struct regex *r, struct str text, size_t from, size_t *ret_begin, size_t *ret_end)
{
    if (from > MIN(text.len, (size_t)REGEX_SUBJECT) || regex_match(r, text, from, 0) < 0)
        return false;
    const size_t *ends = pcre2_get_ovector_pointer(r->match);
    *ret_begin = ends[0];
    *ret_end = MAX(ends[0], ends[1]); /* \K in a lookahead can put the end before the beginning */
    return true;
}
