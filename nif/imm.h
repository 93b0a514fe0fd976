/*
 * Immediate terms: small integers, atoms, local pids and ports, [] - the words that are values and point nowhere.
 *
 * Their tag bits are not part of the VM's public interface, so imm_check() proves at load, on this very VM, that they are
 * what this file says; where they are not, imm_known stays false and everybody asks enif_* instead. Words that point into
 * a heap are never looked behind. As keys for comparison the words of immediates are good on any VM.
 */
#ifndef ETRACE_IMM_H
#define ETRACE_IMM_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"

extern HIDDEN bool imm_known;
extern HIDDEN ERL_NIF_TERM imm_nil; /* the one word of [] */
/*
 * So that nothing has to be asked before each term: where immediates are not known there are no small ones, and every word
 * has the tag of a pointer.
 */
extern HIDDEN uint64_t imm_bytes; /* small integers below it have one byte: 128, or 0 */
extern HIDDEN uint32_t imm_tags;  /* the bits of a word that tell immediates, lists and other pointers apart: 3, or 0 */
extern HIDDEN uint32_t imm_kinds; /* those that tell small integers (IMM_SMALL) and atoms from everything but []: 15, or 0 */

#define IMM_PID 0x3u
#define IMM_PORT 0x7u
#define IMM_SMALL 0xfu
#define IMM_ATOM 0x0bu

static inline bool imm_is_small(ERL_NIF_TERM t) { return (t & 0xf) == IMM_SMALL; }
static inline bool imm_is_pid(ERL_NIF_TERM t) { return (t & 0xf) == IMM_PID; }
static inline bool imm_is_port(ERL_NIF_TERM t) { return (t & 0xf) == IMM_PORT; }
static inline bool imm_is_atom(ERL_NIF_TERM t) { return (t & 0x3f) == IMM_ATOM; }
static inline bool imm_is_value(ERL_NIF_TERM t) { return (t & 0x3) == 0x3; }
static inline bool imm_is_list(ERL_NIF_TERM t) { return (t & 0x3) == 0x1; }
static inline int64_t imm_small(ERL_NIF_TERM t) { return (int64_t)t >> 4; }
static inline uint64_t imm_data(ERL_NIF_TERM t) { return t >> 4; }
/* Of a small integer that is not negative its value, of everything else something very large. */
static inline uint64_t imm_natural(ERL_NIF_TERM t) { return (t - IMM_SMALL) >> 4 | (t - IMM_SMALL) << 60; }

/*
 * The VM spreads neighbouring numbers over its table of processes: the low bits of the number, as many as the table needs,
 * are turned by some places. imm_check() learns both.
 */
struct imm_turn {
    uint64_t mask;     /* of the bits that are turned */
    uint32_t by, rest; /* their places to the left; as many as to the right */
};

extern HIDDEN struct imm_turn imm_pids, imm_ports;

static inline uint64_t imm_unturn(const struct imm_turn *turn, uint64_t data)
{
    uint64_t low = data & turn->mask;
    return (data ^ low) | low >> turn->by | (low << turn->rest & turn->mask);
}

/* As ETW_T_PID and ETW_T_PORT have them. */
static inline uint64_t imm_pid(ERL_NIF_TERM t) { return imm_unturn(&imm_pids, imm_data(t)); }
static inline uint64_t imm_port(ERL_NIF_TERM t) { return imm_unturn(&imm_ports, imm_data(t)); }

/* Called once, at load. */
void imm_check(ErlNifEnv *env);

/* The tracee as a frame has it: a local pid's or port's data, with ETW_TRACEE_PORT; 0 for anything else. Any VM. */
uint64_t imm_ask_tracee(ErlNifEnv *env, ERL_NIF_TERM t);

#endif
