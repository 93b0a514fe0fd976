/* Regular expressions (PCRE2) with limits, so that no pattern and no text can take a reader's time. */
#ifndef ETRACE_REGEX_H
#define ETRACE_REGEX_H

#include "../ground/err.h"

#define REGEX_SUBJECT 4096 /* bytes of a text that are looked at */

struct regex;

struct regex *regex_new(struct str pattern, struct err *e); /* NULL: e is filled, with a caret under the place */
void regex_free(struct regex *r);

enum regex_found { REGEX_NO, REGEX_YES, REGEX_GAVE_UP };
enum regex_found regex_search(struct regex *r, struct str text);

#endif
