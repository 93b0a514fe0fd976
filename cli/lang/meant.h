/* SPDX-License-Identifier: Apache-2.0 */
/* Says what a user means by a word that is unknown in its place (meant.def).
 * Nothing here compares letters: see near.h. */
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

/* Returns the right word, or a sentence, or NULL. */
const char *meant(const struct comp *c, enum meant_place place, struct str written);

/* Returns a sentence that sends a word of a guard to `where`, if the word is a property of the event; else NULL. */
const char *meant_property(struct comp *c, struct str written);

/*
 * Sets the note of the error to what the user means. Without a row in the table, offers the guess, or nothing if it is
 * NULL. Returns false.
 */
bool meant_note(struct comp *c, enum meant_place place, struct str written, const struct guess *guess);

#endif
