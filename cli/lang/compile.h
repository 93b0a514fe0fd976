/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the unit: one probe on its way through the passes after the parser. lang.c lists the passes. */
#ifndef ETRACE_COMPILE_H
#define ETRACE_COMPILE_H

#include "actions.h"
#include "compile_where.h"
#include "lex.h"
#include "mspec.h"

struct unit {
    struct comp *c;
    size_t pos;  /* where the probe begins in the text; lex moves it past the probe */
    bool inside; /* the probe is a root; the word `inside` before it is at `pos` */
    struct tokens tokens;
    struct ast_probe *probe; /* set by parse; the later passes run for each probe of the list */
    struct check k;
    size_t width;      /* number of patterns in a head [To, Msg] or [Node, Sender, Msg]; 0 for calls and events */
    term_t raw;        /* set by check: the literal match specification, or NULL */
    struct ptrs where; /* set by the pass where: its conditions (struct where), which must all hold */
    unsigned needs;    /* PROPERTY_NEEDS_ bits, set by the passes inside, where and by */
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

bool compile_event(struct unit *u);      /* pass check: finds the event and checks its patterns */
bool compile_event_head(struct unit *u); /* pass where: makes a condition of the patterns */
/* Returns true if the head has only `_` and different variables. */
bool compile_takes_everything(const struct ast_clause *cl);
/* Returns true if a clause has an action with this `how` and this `fn`. FN_NONE stands for any function. */
bool compile_has_action(const struct ast_probe *p, enum action_how how, enum fn fn);
/* Pass ast: returns true if all probes of the list may be roots, else reports an error. */
bool compile_require_roots(struct comp *c, const struct ast_probe *p);
/* Appends the word `inside` and the root, as the user wrote it, to the text of the spec. */
void compile_inside_of(struct comp *c, struct spec *s, struct str root);
/*
 * Compiles the keys and aggregates of `p` (pass by). They may use the variables of `head`, which may be NULL. Returns
 * NULL after an error.
 */
const struct spec_by *compile_by(struct unit *u, const struct ast_probe *p, const struct ast_probe *head);
void compile_atoms(struct arena *a, struct spec *s);

#endif
