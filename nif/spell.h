/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes as text the terms that no function of the VM's interface opens: references, funs, pids and ports of other
 * nodes, bit strings, native records. It uses the VM's own printing with enif_snprintf().
 */
#ifndef ETRACE_SPELL_H
#define ETRACE_SPELL_H

#include <erl_nif.h>

#include "encoder.h"
#include "etrace_wire.h"
#include "hidden.h"

/*
 * Encodes a term whose text is always short. Writes at `at`, which is before `end`, and returns the end of its output.
 * The text may cross `end`, because ENCODE_OVERRUN bytes after `end` are reserved.
 */
HIDDEN uint8_t *spell_term(struct encoder *e, uint8_t *at, const uint8_t *end, enum etw_text what, ERL_NIF_TERM t);

/* Encodes the first octets of a binary and an ellipsis, because reading the rest would cost too much. */
HIDDEN uint8_t *spell_begun(struct encoder *e, uint8_t *at, const uint8_t *octets, size_t n);

/* Encodes a bit string or a native record, in a time that does not depend on its size. */
HIDDEN uint8_t *spell_other(struct encoder *e, uint8_t *at, const uint8_t *end, ERL_NIF_TERM t);

#endif
