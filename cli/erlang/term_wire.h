/*
 * Reading terms in the encoding of nif/etrace_wire.h, without building anything.
 *
 * A `struct wire` is a run of such bytes that somebody else owns. wire_check() looks at every length, id and nesting
 * once; everything else here, and every printer, takes only what it accepted and does not check again.
 * Atoms are ids into the table of the ring the bytes came from; wire_resolve() makes a copy that needs no table.
 */
#ifndef ETRACE_TERM_WIRE_H
#define ETRACE_TERM_WIRE_H

#include "../../nif/etrace_wire.h"
#include "../ground/buf.h"

#define WIRE_DEPTH 256 /* terms nested deeper are refused, so printers may recurse */

struct wire {
    const uint8_t *at, *end;
};

/* One name of the table, as it is printed and as it is. 16 bytes behind `erl` may always be read. */
struct wire_atom {
    const char *erl; /* owned; what Erlang prints, quoted where needed; NULL: not defined */
    const char *raw; /* the characters; equal to erl when no quotes are needed */
    uint16_t erl_len, raw_len;
    uint32_t seen; /* the last frame that had it, see wire_check() */
};

struct wire_atoms {
    struct wire_atom *table;
    uint32_t cap; /* ids below it are in the table */
    uint32_t frame;
    size_t bytes; /* memory of table and texts */
};

/* What a printer must know beside the bytes. */
struct term_env {
    const struct wire_atoms *atoms; /* may be NULL when no ids occur */
    bool latin1; /* the node's printable range is latin1: erl's default, unless it was started with +pc unicode */
    bool otp27;  /* its io_lib is older than OTP 28, where binaries that are almost text came to be printed as numbers */
};

void wire_atoms_release(struct wire_atoms *t);
void wire_atoms_define(struct wire_atoms *t, unsigned id, const char *name, size_t len); /* id < ETW_ATOMS, len <= 1020 */
void wire_atom_text(const struct term_env *env, const uint8_t *at, struct raw *ret_raw); /* at: any of the atom tags */

enum wire_found { WIRE_OK, WIRE_BAD, WIRE_DEFINES, WIRE_CONFLICT };

/*
 * Checks `terms` terms at `at`. WIRE_OK: all is well. WIRE_DEFINES: well, and atoms are defined in it, not yet applied.
 * WIRE_CONFLICT: as WIRE_DEFINES, but an id stands for two names within these bytes, so they must be resolved before
 * anything reads them. WIRE_BAD: *ret_end is the offending byte and *why says what is wrong with it. Else *ret_end is
 * the byte behind the last term. wire_frame() comes before the first run of each frame.
 */
enum wire_found wire_check(struct wire_atoms *t, const uint8_t *at, const uint8_t *end, unsigned terms,
                           const uint8_t **ret_end, const char **why);

/* A new frame begins: ids are compared within it alone. */
static inline void wire_frame(struct wire_atoms *t)
{
    if (unlikely(++t->frame == 0)) {
        for (uint32_t i = 0; i < t->cap; i++)
            t->table[i].seen = 0;
        t->frame = 1;
    }
}

/* Applies the definitions in checked bytes, in their order. */
void wire_define(struct wire_atoms *t, const uint8_t *at, const uint8_t *end);

/* Appends checked terms with every atom spelled out, applying definitions on the way. False over `max` bytes appended. */
bool wire_resolve(struct buf *to, struct wire_atoms *t, struct wire terms, size_t max);
/* The same for terms whose definitions were applied. */
bool wire_copy(struct buf *to, const struct term_env *env, struct wire terms, size_t max);

/*
 * Appends one term in which each {Mark, Binary} has become the atom with the name in the binary; false, and nothing is appended, where
 * the term has none. Mark is the name of an atom.
 */
bool wire_unmark(struct buf *to, const struct term_env *env, const uint8_t *at, const char *mark);

/* ---- looking into checked terms ---- */

const uint8_t *wire_skip(const uint8_t *at);  /* behind the term at `at` */
const uint8_t *wire_token(const uint8_t *at); /* behind a leaf, or behind the head of a container */
bool wire_is_atom(const struct term_env *env, const uint8_t *at, const char *name);
bool wire_atom(const struct term_env *env, const uint8_t *at, struct raw *ret_raw); /* false: no atom */
bool wire_int(const uint8_t *at, int64_t *ret);                                     /* false: no integer of 64 bits */
bool wire_pid(const uint8_t *at, uint64_t *ret_tracee);                             /* a local pid or port, as a tracee */
bool wire_bin(const uint8_t *at, struct raw *ret_bytes, uint64_t *ret_size);        /* the captured bytes of a binary */
/* The elements of a tuple: how many are there (fewer than *ret_arity when cut); -1: no tuple. */
int64_t wire_tuple(const uint8_t *at, uint32_t *ret_arity, const uint8_t **ret_first);
/* The elements of a list: moves *at into the list; wire_list_next() then gives each element, NULL at the end, tail or cut. */
bool wire_list(const uint8_t **at);
const uint8_t *wire_list_next(const uint8_t **at);
/* A map: *ret_first is the first key; how many pairs are there; -1: no map. */
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
