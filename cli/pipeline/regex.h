/* SPDX-License-Identifier: Apache-2.0 */
/* Matches regular expressions (PCRE2) with limits on text length and effort, so that no pattern can stall etrace. */
#ifndef ETRACE_REGEX_H
#define ETRACE_REGEX_H

#include "../ground/err.h"

#define REGEX_SUBJECT 4096 /* number of bytes that are searched; the rest of a text is ignored */

struct regex;

struct regex *regex_new(struct str pattern, struct err *e); /* returns NULL and sets *e, with a caret, on failure */
void regex_free(struct regex *r);

enum regex_found { REGEX_NO, REGEX_YES, REGEX_GAVE_UP };
enum regex_found regex_search(struct regex *r, struct str text);
/* The same for the beginning of a longer text: `$` does not match at its end. */
enum regex_found regex_search_beginning(struct regex *r, struct str text);
/* Finds the first match that begins at byte `from` or later. Returns false if there is none. */
bool regex_span(struct regex *r, struct str text, size_t from, size_t *ret_begin, size_t *ret_end);

#endif
