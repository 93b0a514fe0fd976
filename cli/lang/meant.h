/* SPDX-License-Identifier: Apache-2.0 */
/* Finds what a user means by a word that is unknown in its place (meant.def). near.h finds misspelled words. */
#ifndef ETRACE_MEANT_H
#define ETRACE_MEANT_H

#include "comp.h"

enum meant_place {
    MEANT_FUNCTION,
    MEANT_PROPERTY,
    MEANT_ACTION,
    MEANT_AGGREGATE,
    MEANT_EVENT,
    MEANT_OPERATOR,
    MEANT_ATOM,
};

/* Returns the right word or a sentence (see meant.def), or NULL. */
const char *meant(const struct comp *c, enum meant_place place, struct str written);

/* If the word in a guard is a property of the event, returns a sentence that refers the user to `where`; else NULL. */
const char *meant_property(struct comp *c, struct str written);

/*
 * Sets the note of the error to what the user means by the word. If meant.def has no row for the word, suggests the
 * best word of `guess`, if there is one. Returns false.
 */
bool meant_note(struct comp *c, enum meant_place place, struct str written, const struct guess *guess);

#endif
