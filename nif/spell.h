/*
 * Terms that nothing in the VM's interface opens, and that it prints: references, funs, what belongs to other nodes, bit strings,
 * native records.
 */
#ifndef ETRACE_SPELL_H
#define ETRACE_SPELL_H

#include <erl_nif.h>

#include "encoder.h"
#include "etrace_wire.h"
#include "hidden.h"

/* The text of a term that is short whatever it holds; returns behind the last byte. Begins before `end` and may go beyond it. */
HIDDEN uint8_t *spell(struct encoder *e, uint8_t *at, const uint8_t *end, enum etw_text what, ERL_NIF_TERM t);

/* The text of a binary whose rest would cost too much to read: its first octets and an ellipsis. */
HIDDEN uint8_t *spell_begun(struct encoder *e, uint8_t *at, const uint8_t *octets, size_t n);

/* The same of what no other test knew: what can be told of it in a time that does not depend on what it holds. */
HIDDEN uint8_t *spell_other(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t);

#endif
