/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reasons of exits, and takes them apart. */
#ifndef ETRACE_EXIT_REASON_H
#define ETRACE_EXIT_REASON_H

#include "../events/event.h"

#define EXIT_REASON_HEAD 40

/* A digest by which two reasons are compared. */
struct exit_reason {
    uint32_t hash;
    uint8_t len; /* of the head */
    bool normal_atom;
    bool kill;      /* the atom kill: a process that gets it by a signal exits with killed */
    bool killed;    /* the atom killed */
    bool elsewhere; /* noproc or noconnection: the signal of a link to a process that is not there */
    uint8_t head[EXIT_REASON_HEAD];
};

struct exit_reason exit_reason_of(const struct term_env *env, const uint8_t *at);
/* Returns true if both were captured with the same parts. A reason that was cut elsewhere is another one. */
bool exit_reason_same(const struct exit_reason *a, const struct exit_reason *b);
/* Returns true if a signal with the reason `sent` makes a process exit with `died`. */
bool exit_reason_by_signal(const struct exit_reason *sent, const struct exit_reason *died);

/* The reason of an exit that nothing is wrong with: normal, shutdown, {shutdown,_}, or the answer of erpc. */
bool exit_reason_is_normal(const struct term_env *env, const uint8_t *at);

/*
 * Takes {What, [{M,F,A,Location} | _]} apart, the reason of a process that ended with an error. *ret_frames is the
 * list. False: another reason.
 */
bool exit_reason_error(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what,
                       const uint8_t **ret_frames);

/* Takes {What, {M,F,Args}} apart, the reason of a process that called another one in vain. False: another reason. */
bool exit_reason_call(const struct term_env *env, const uint8_t *at, const uint8_t **ret_what);

#endif
