/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads immediate terms by their tag bits: small integers, atoms, local pids, local ports, and []. The word of such a
 * term (ERL_NIF_TERM) is its value, not a pointer.
 *
 * The tag bits are not part of the VM's public interface. imm_check() therefore verifies them on the running VM when
 * the library is loaded. If they differ, imm_known stays false, and all code uses enif_* instead. No code dereferences
 * a word that is a pointer. Comparing the words of two immediate terms is correct on any VM.
 */
#ifndef ETRACE_IMM_H
#define ETRACE_IMM_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

extern HIDDEN bool imm_known;
extern HIDDEN ERL_NIF_TERM imm_nil; /* the word of [] */
/*
 * Masks that save a test of imm_known for each term. If imm_known is false, the masks are 0. Then no term looks like a
 * small integer, and every term looks like a pointer.
 */
extern HIDDEN uint64_t imm_bytes; /* smaller nonnegative integers are encoded in one byte: 128, or 0 */
/* The bits of a word that distinguish immediates, lists and other pointers: 3, or 0 */
extern HIDDEN uint32_t imm_tags;
/* The bits that distinguish small integers (IMM_SMALL) and atoms from all terms but []: 15, or 0 */
extern HIDDEN uint32_t imm_kinds;

#define IMM_PID 0x3u
#define IMM_PORT 0x7u
#define IMM_SMALL 0xfu
#define IMM_ATOM 0x0bu

static inline bool imm_is_small(ERL_NIF_TERM t)
{
    return (t & 0xf) == IMM_SMALL;
}
static inline bool imm_is_pid(ERL_NIF_TERM t)
{
    return (t & 0xf) == IMM_PID;
}
static inline bool imm_is_port(ERL_NIF_TERM t)
{
    return (t & 0xf) == IMM_PORT;
}
static inline bool imm_is_atom(ERL_NIF_TERM t)
{
    return (t & 0x3f) == IMM_ATOM;
}
static inline bool imm_is_value(ERL_NIF_TERM t)
{
    return (t & 0x3) == 0x3;
}
static inline bool imm_is_list(ERL_NIF_TERM t)
{
    return (t & 0x3) == 0x1;
}
static inline int64_t imm_small(ERL_NIF_TERM t)
{
    return (int64_t)t >> 4;
}
static inline uint64_t imm_data(ERL_NIF_TERM t)
{
    return t >> 4;
}
/* Returns the value of a nonnegative small integer, or a very large number for any other term. */
static inline uint64_t imm_natural(ERL_NIF_TERM t)
{
    return (t - IMM_SMALL) >> 4 | (t - IMM_SMALL) << 60;
}

/*
 * The VM spreads consecutive numbers of processes and ports over its tables: it rotates the low bits of a number, as
 * many as the size of the table has. imm_check() finds how many bits the VM rotates, and by how many places.
 */
struct imm_turn {
    uint64_t mask;     /* the rotated bits */
    uint32_t by, rest; /* places to rotate left; places to rotate right for the same result */
};

extern HIDDEN struct imm_turn imm_pids, imm_ports;

static inline uint64_t imm_unturn(const struct imm_turn *turn, uint64_t data)
{
    uint64_t low = data & turn->mask;
    return (data ^ low) | low >> turn->by | (low << turn->rest & turn->mask);
}

/* Return the number of a local pid or port as ETW_T_PID and ETW_T_PORT encode it. */
static inline uint64_t imm_pid(ERL_NIF_TERM t)
{
    return imm_unturn(&imm_pids, imm_data(t));
}
static inline uint64_t imm_port(ERL_NIF_TERM t)
{
    return imm_unturn(&imm_ports, imm_data(t));
}

/* Verifies the tag bits. Called once, at load. */
void imm_check(ErlNifEnv *env);

/*
 * Returns a local pid or port as the tracee of a frame, a port with ETW_TRACEE_PORT. Returns 0 for another term. Does
 * not need imm_known.
 */
uint64_t imm_ask_tracee(ErlNifEnv *env, ERL_NIF_TERM t);

#endif
