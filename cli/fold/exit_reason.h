/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reasons of exits, and takes them apart. */
#ifndef ETRACE_EXIT_REASON_H
#define ETRACE_EXIT_REASON_H

#include "../events/event.h"

#define EXIT_REASON_HEAD 40

/* A digest of a reason, for comparing reasons. */
struct exit_reason {
    uint32_t hash;
    uint8_t len; /* of the head */
    bool normal_atom;
    bool kill;      /* the atom kill: a signal with it makes a process exit with killed */
    bool killed;    /* the atom killed */
    bool elsewhere; /* noproc or noconnection: a link to a process that does not exist */
    uint8_t head[EXIT_REASON_HEAD];
};

struct exit_reason exit_reason_of(const struct term_env *env, const uint8_t *at);
/* Returns true if both reasons are equal as captured. Reasons that were cut at different places differ. */
bool exit_reason_same(const struct exit_reason *a, const struct exit_reason *b);
/* Returns true if a signal with the reason `sent` makes a process exit with `died`. */
bool exit_reason_by_signal(const struct exit_reason *sent, const struct exit_reason *died);

/* Returns true if the reason says that nothing is wrong: normal, shutdown, {shutdown,_}, or the answer of erpc. */
bool exit_reason_is_normal(const struct term_env *env, const uint8_t *at);

/*
 * Takes apart {What, [{M,F,A,Location} | _]}, the reason of a process that ended with an error. *ret_frames is the
 * list. Returns false for another reason.
 */
bool exit_reason_error(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what,
                       const uint8_t **ret_frames);

/*
 * Takes apart {What, {M,F,Args}}, the reason of a process whose call of another process failed. Returns false for
 * another reason.
 */
bool exit_reason_call(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what);

#endif
