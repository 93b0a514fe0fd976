/* SPDX-License-Identifier: Apache-2.0 */
/* One probe on its way through the passes after the parser. lang.c has the list of the passes. */
#ifndef ETRACE_COMPILE_H
#define ETRACE_COMPILE_H

#include "actions.h"
#include "compile_where.h"
#include "lex.h"
#include "mspec.h"

struct unit {
    struct comp *c;
    size_t pos;  /* where the probe begins in the text; lex moves it past the probe */
    bool inside; /* the probe is the root behind the word `inside`, which is at `pos` */
    struct tokens tokens;
    struct ast_probe *probe; /* set by parse; the later passes run for each probe of the list */
    struct check k;
    size_t width;      /* patterns of a message: [To, Msg], [Node, Sender, Msg]; 0: not a message */
    term_t raw;        /* set by check: the literal match specification, or NULL */
    struct ptrs where; /* set by where: struct where, all must hold */
    unsigned needs;    /* set by inside, where and by: the PROPERTY_NEEDS_ bits */
    struct spec *spec;
};

void unit_begin(struct unit *u, struct comp *c, struct ast_probe *p);

/* The passes. They return false after an error. */
bool unit_check(struct unit *u);
bool unit_fold(struct unit *u);
bool unit_inside(struct unit *u);
bool unit_where(struct unit *u);
bool unit_by(struct unit *u);
bool unit_spec(struct unit *u);

/* ---- parts ---- */

bool compile_event(struct unit *u);                         /* check: finds the event and checks its patterns */
bool compile_event_head(struct unit *u);                    /* where: the patterns become a condition */
bool compile_takes_everything(const struct ast_clause *cl); /* whether the head has only `_` and different variables */
/* Whether a clause has an action of that kind, and of that function if it is not FN_NONE. */
bool compile_has_action(const struct ast_probe *p, enum action_how how, enum fn fn);
bool compile_are_roots(struct comp *c,
                       const struct ast_probe *p); /* ast: whether all probes of the list may be roots */
void compile_inside_of(struct comp *c, struct spec *s, struct str root); /* adds the root as written to the text */
/*
 * by: compiles the keys and aggregates of p. `head` is the probe whose variables they may use; NULL: none. NULL: an
 * error.
 */
const struct spec_by *compile_by(struct unit *u, const struct ast_probe *p, const struct ast_probe *head);
void compile_atoms(struct arena *a, struct spec *s);

#endif
