/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads terms in the encoding of nif/etrace_wire.h without building anything.
 *
 * A `struct wire` is a run of encoded bytes; it does not own them. wire_check() checks every length, id and nesting
 * level once. All other functions here, and all printers, require bytes that wire_check() accepted, and do not check
 * again. An atom is encoded as an id in an atom table; each ring of the node has its own table. wire_resolve() makes a
 * copy that needs no table.
 */
#ifndef ETRACE_TERM_WIRE_H
#define ETRACE_TERM_WIRE_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"

#define WIRE_DEPTH 256 /* wire_check() rejects deeper nesting, so printers may recurse */

struct wire {
    const uint8_t *at, *end;
};

/* An atom of the table. At least 16 bytes from `erl` on are readable. */
struct wire_atom {
    const char *erl; /* the atom as Erlang prints it, in quotes if needed; owned; NULL if the id is not defined */
    const char *raw; /* the characters of the atom; the same pointer as `erl` if no quotes are needed */
    uint16_t erl_len, raw_len;
    uint32_t seen; /* number of the last frame that used the id; wire_check() detects conflicts by it */
};

struct wire_atoms {
    struct wire_atom *table;
    uint32_t cap;   /* number of entries in `table`; a larger id has no entry yet */
    uint32_t frame; /* number of the current frame, see wire_frame() */
    size_t bytes;   /* memory that the table and its texts take */
};

/*
 * Properties of the node that change how its terms are printed. The node's flag +pc changes nothing: the same term
 * looks the same everywhere.
 */
struct term_env {
    const struct wire_atoms *atoms; /* the atom table; may be NULL if the bytes contain no ids */
    bool otp27; /* OTP 27 or older: OTP 28 changed io_lib to print binaries that are almost text as numbers */
};

void wire_atoms_release(struct wire_atoms *t);
/* Defines an atom. `id` is below ETW_ATOMS, and `len` at most 1020. */
void wire_atoms_define(struct wire_atoms *t, unsigned id, const char *name, size_t len);
/* Reads an atom; `at` has any of the atom tags. */
void wire_atom_text(const struct term_env *env, const uint8_t *at, struct raw *ret_raw);

enum wire_found { WIRE_OK, WIRE_BAD, WIRE_DEFINES, WIRE_CONFLICT };

/*
 * Checks `terms` terms at `at`. Call wire_frame() before the first check in each frame. Sets *ret_end to the byte after
 * the last term, or after WIRE_BAD to the malformed byte.
 *
 *   WIRE_OK        the terms are valid
 *   WIRE_DEFINES   the terms are valid, and define atoms that the table does not have yet
 *   WIRE_CONFLICT  like WIRE_DEFINES, but an id changes its meaning within the frame, so use only wire_resolve()'s copy
 *   WIRE_BAD       a term is malformed; *why describes the error
 */
enum wire_found wire_check(struct wire_atoms *t, const uint8_t *at, const uint8_t *end, unsigned terms,
                           const uint8_t **ret_end, const char **why);

/* Begins a new frame. wire_check() detects conflicts of ids only within one frame. */
static inline void wire_frame(struct wire_atoms *t)
{
    if (unlikely(++t->frame == 0)) {
        for (uint32_t i = 0; i < t->cap; i++)
            t->table[i].seen = 0;
        t->frame = 1;
    }
}

/* Enters the atom definitions in checked bytes into the table, in their order. */
void wire_define(struct wire_atoms *t, const uint8_t *at, const uint8_t *end);

/*
 * Appends checked terms with the name of each atom instead of its id. Enters definitions in the terms into the table.
 * Returns false if it appended more than `max` bytes.
 */
bool wire_resolve(struct buf *to, struct wire_atoms *t, struct wire terms, size_t max);
/* Works like wire_resolve(), for terms whose definitions are already in the table. */
bool wire_copy(struct buf *to, const struct term_env *env, struct wire terms, size_t max);

/*
 * Appends one term, with each tuple {Mark, Binary} replaced by the atom that the binary names. `mark` is the name of an
 * atom. Returns false and appends nothing if the term contains no such tuple.
 */
bool wire_unmark(struct buf *to, const struct term_env *env, const uint8_t *at, const char *mark);

/* ---- reading checked terms ---- */

const uint8_t *wire_skip(const uint8_t *at);  /* returns the byte after the term */
const uint8_t *wire_token(const uint8_t *at); /* returns the byte after a leaf or after the head of a container */
bool wire_is_atom(const struct term_env *env, const uint8_t *at, const char *name);
bool wire_atom(const struct term_env *env, const uint8_t *at, struct raw *ret_raw); /* returns false if it is no atom */
bool wire_int(const uint8_t *at, int64_t *ret);         /* returns false if it is no int64_t */
bool wire_pid(const uint8_t *at, uint64_t *ret_tracee); /* returns false if it is no local pid or port */
bool wire_bin(const uint8_t *at, struct raw *ret_bytes, uint64_t *ret_size); /* reads the captured bytes of a binary */
/* Returns the number of captured elements of a tuple (fewer than *ret_arity if it was cut), or -1 if it is no tuple. */
int64_t wire_tuple(const uint8_t *at, uint32_t *ret_arity, const uint8_t **ret_first);
/*
 * Moves *at to the first element of a list. Returns false if the term is no list. wire_list_next() then returns each
 * element, and NULL at the end, at a tail or at a cut.
 */
bool wire_list(const uint8_t **at);
const uint8_t *wire_list_next(const uint8_t **at);
/* Returns the number of captured pairs of a map, or -1 if it is no map. *ret_first is the first key. */
int64_t wire_map(const uint8_t *at, uint32_t *ret_pairs, const uint8_t **ret_first);

static inline bool wire_is_atom_tag(uint8_t tag)
{
    return tag == ETW_T_ATOM || tag == ETW_T_ATOMDEF || tag == ETW_T_ATOMTEXT;
}

static inline uint16_t wire_u16(const uint8_t *at)
{
    uint16_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint32_t wire_u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

static inline uint64_t wire_u64(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof(v));
    return v;
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian and read as it stands");

#endif
