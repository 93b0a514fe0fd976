/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the exit reasons of processes, and reads their parts. */
#ifndef ETRACE_EXIT_REASON_H
#define ETRACE_EXIT_REASON_H

#include "../events/event.h"

#define EXIT_REASON_HEAD 40

/* A digest of a reason, for comparing reasons. */
struct exit_reason {
    uint32_t hash;
    uint8_t len;      /* number of bytes in `head` */
    bool normal_atom; /* the reason is the atom normal */
    bool kill;        /* the reason is the atom kill; a signal with this reason makes a process exit with killed */
    bool killed;      /* the reason is the atom killed */
    bool elsewhere;   /* the reason is noproc or noconnection, as after a link to a process that does not exist */
    uint8_t head[EXIT_REASON_HEAD]; /* the first bytes of the reason in the normal form (wire_normal()) */
};

struct exit_reason exit_reason_of(const struct term_env *env, const uint8_t *at);
/* Returns true if both reasons are equal as captured. Reasons that were cut at different places differ. */
bool exit_reason_same(const struct exit_reason *a, const struct exit_reason *b);
/* Returns true if a signal with the reason `sent` makes a process exit with `died`. */
bool exit_reason_by_signal(const struct exit_reason *sent, const struct exit_reason *died);

/* Returns true if the reason is no failure: normal, shutdown, {shutdown,_}, or the answer of an erpc process. */
bool exit_reason_is_normal(const struct term_env *env, const uint8_t *at);

/*
 * Reads {What, [{M,F,A,Location} | _]}, the reason of a process that ended with an error. *ret_frames is the list.
 * Returns false for another reason.
 */
bool exit_reason_error(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what,
                       const uint8_t **ret_frames);

/*
 * Reads {What, {M,F,Args}}, the reason of a process whose call of another process failed. Returns false for another
 * reason.
 */
bool exit_reason_call(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what);

#endif
