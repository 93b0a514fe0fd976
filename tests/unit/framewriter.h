/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds frames and batches in memory, as the node would send them. Tests feed them to the decoder and the pipeline.
 *
 *     struct fw w = {0}; fw_begin(&w);
 *     fw_ring(&w, 1);                        the next frames go into the section of ring 1
 *     fw_call(&w, tick, pid, "m", "f", 1);   then fw_int(), fw_atom(), …: one call for each term of the kind
 *     fw_frame_end(&w);
 *     struct str batch = fw_batch(&w, tick, mono_ns, watermark, flags);    valid until the next fw_batch()
 */
#ifndef ETRACE_FRAMEWRITER_H
#define ETRACE_FRAMEWRITER_H

#include <stdio.h>
#include <stdlib.h>

#include "../../nif/etrace_wire.h"
#include "ground/buf.h"

#define FW_RINGS 8
#define FW_NAMES 512

struct fw_ring {
    uint32_t id;
    struct buf bytes;
    uint64_t tick, tracee, seen, lost[ETW_LOSSES];
    bool begun;
    char *funs[FW_NAMES], *atoms[FW_NAMES];
    unsigned nfuns, natoms;
};

struct fw {
    struct fw_ring rings[FW_RINGS];
    unsigned nrings;
    struct fw_ring *r;
    struct buf batch;
    uint64_t seq;
    size_t frame;
    unsigned kind, flags;
    int64_t wall_offset;
};

__attribute__((unused)) static void fw_raw(struct fw *w, const void *bytes, size_t len)
{
    buf_add(&w->r->bytes, bytes, len);
}

#define FW_PUT(name, type)                                                                                             \
    __attribute__((unused)) static void name(struct fw *w, type v)                                                     \
    {                                                                                                                  \
        fw_raw(w, &v, sizeof(v));                                                                                      \
    }
FW_PUT(fw_u8, uint8_t)
FW_PUT(fw_u16, uint16_t)
FW_PUT(fw_u32, uint32_t)
FW_PUT(fw_u64, uint64_t)

__attribute__((unused)) static void fw_begin(struct fw *w)
{
    w->wall_offset = INT64_C(1763663210000000000); /* 2025-11-20T18:26:50Z */
}

__attribute__((unused)) static void fw_ring(struct fw *w, uint32_t id)
{
    for (unsigned i = 0; i < w->nrings; i++)
        if (w->rings[i].id == id) {
            w->r = &w->rings[i];
            return;
        }
    w->r = &w->rings[w->nrings++];
    w->r->id = id;
}

__attribute__((unused)) static void fw_frame(struct fw *w, unsigned kind, uint64_t tick, uint64_t tracee)
{
    struct fw_ring *r = w->r;
    uint64_t passed = tick - r->tick;

    w->frame = r->bytes.len;
    w->kind = kind;
    w->flags = 0;
    fw_u32(w, 0);
    if (!r->begun || passed > UINT32_MAX) {
        w->flags |= ETW_F_TICK;
        fw_u32(w, 0);
        fw_u64(w, tick);
    } else {
        fw_u32(w, (uint32_t)passed);
    }
    if (!r->begun || tracee != r->tracee) {
        w->flags |= ETW_F_TRACEE;
        fw_u64(w, tracee);
    }
    r->begun = true;
    r->tick = tick;
    r->tracee = tracee;
}

__attribute__((unused)) static void fw_frame_end(struct fw *w)
{
    uint32_t head = ETW_HEAD(w->r->bytes.len - w->frame, w->kind, w->flags);

    memcpy(w->r->bytes.data + w->frame, &head, sizeof(head));
    if (w->kind < ETW_LOST)
        w->r->seen++;
}

__attribute__((unused)) static void fw_fun(struct fw *w, const char *module, const char *name, unsigned arity)
{
    struct fw_ring *r = w->r;
    char key[600];
    unsigned i;

    snprintf(key, sizeof(key), "%s:%s", module, name);
    for (i = 0; i < r->nfuns; i++)
        if (!strcmp(r->funs[i], key))
            break;
    fw_u16(w, (uint16_t)(i | (i == r->nfuns ? ETW_DEF : 0)));
    fw_u8(w, (uint8_t)arity);
    if (i == r->nfuns) {
        r->funs[r->nfuns++] = strdup(key);
        fw_u16(w, (uint16_t)strlen(module));
        fw_u16(w, (uint16_t)strlen(name));
        fw_raw(w, module, strlen(module));
        fw_raw(w, name, strlen(name));
    }
}

__attribute__((unused)) static void fw_call(struct fw *w, uint64_t tick, uint64_t tracee, const char *m, const char *f,
                                            unsigned arity)
{
    fw_frame(w, ETW_CALL, tick, tracee);
    fw_fun(w, m, f, arity);
}

__attribute__((unused)) static void fw_return(struct fw *w, uint64_t tick, uint64_t tracee, const char *m,
                                              const char *f, unsigned arity)
{
    fw_frame(w, ETW_RETURN_FROM, tick, tracee);
    fw_fun(w, m, f, arity);
}

/* ---- terms ---- */

__attribute__((unused)) static void fw_int(struct fw *w, int64_t v)
{
    if (v >= 0 && v < 128) {
        fw_u8(w, (uint8_t)v);
    } else if (v >= INT16_MIN && v <= INT16_MAX) {
        fw_u8(w, ETW_T_INT16);
        fw_u16(w, (uint16_t)v);
    } else if (v >= INT32_MIN && v <= INT32_MAX) {
        fw_u8(w, ETW_T_INT32);
        fw_u32(w, (uint32_t)v);
    } else {
        fw_u8(w, ETW_T_INT64);
        fw_u64(w, (uint64_t)v);
    }
}

/* A call of m:f/1 in ring 1, with an integer as its argument. */
__attribute__((unused)) static void fw_call_int(struct fw *w, uint64_t tick, uint64_t tracee, const char *m,
                                                const char *f, int64_t argument)
{
    fw_ring(w, 1);
    fw_call(w, tick, tracee, m, f, 1);
    fw_int(w, argument);
    fw_frame_end(w);
}

/* The result of a call of m:f/1 in ring 1. */
__attribute__((unused)) static void fw_return_int(struct fw *w, uint64_t tick, uint64_t tracee, const char *m,
                                                  const char *f, int64_t value)
{
    fw_ring(w, 1);
    fw_return(w, tick, tracee, m, f, 1);
    fw_int(w, value);
    fw_frame_end(w);
}

__attribute__((unused)) static void fw_atom_as(struct fw *w, unsigned id, const char *name) /* defines the atom id */
{
    fw_u8(w, ETW_T_ATOMDEF);
    fw_u16(w, (uint16_t)id);
    fw_u16(w, (uint16_t)strlen(name));
    fw_raw(w, name, strlen(name));
}

__attribute__((unused)) static void fw_atom(struct fw *w, const char *name)
{
    struct fw_ring *r = w->r;
    unsigned i;

    for (i = 0; i < r->natoms; i++)
        if (!strcmp(r->atoms[i], name)) {
            fw_u8(w, ETW_T_ATOM);
            fw_u16(w, (uint16_t)i);
            return;
        }
    r->atoms[r->natoms++] = strdup(name);
    fw_atom_as(w, i, name);
}

__attribute__((unused)) static void fw_atom_text(struct fw *w, const char *name)
{
    fw_u8(w, ETW_T_ATOMTEXT);
    fw_u16(w, (uint16_t)strlen(name));
    fw_raw(w, name, strlen(name));
}

__attribute__((unused)) static void fw_tuple(struct fw *w, unsigned arity)
{
    if (arity < 32) {
        fw_u8(w, (uint8_t)(ETW_T_TUPLE0 + arity));
    } else {
        fw_u8(w, ETW_T_TUPLE);
        fw_u32(w, arity);
    }
}

__attribute__((unused)) static void fw_map(struct fw *w, unsigned pairs)
{
    fw_u8(w, ETW_T_MAP);
    fw_u32(w, pairs);
}

__attribute__((unused)) static void fw_tag(struct fw *w, enum etw_tag tag)
{
    fw_u8(w, (uint8_t)tag);
}

__attribute__((unused)) static void fw_pid(struct fw *w, uint64_t pid)
{
    fw_u8(w, ETW_T_PID);
    fw_u64(w, pid);
}

__attribute__((unused)) static void fw_bin_n(struct fw *w, const void *bytes, size_t len, uint64_t size)
{
    fw_u8(w, ETW_T_BIN);
    fw_u64(w, size);
    fw_u32(w, (uint32_t)len);
    fw_raw(w, bytes, len);
}

__attribute__((unused)) static void fw_bin(struct fw *w, const char *text)
{
    fw_bin_n(w, text, strlen(text), strlen(text));
}

__attribute__((unused)) static void fw_float(struct fw *w, double v)
{
    fw_u8(w, ETW_T_FLOAT);
    fw_raw(w, &v, sizeof(v));
}

__attribute__((unused)) static void fw_text(struct fw *w, enum etw_text what, const char *text)
{
    fw_u8(w, ETW_T_TEXT);
    fw_u8(w, (uint8_t)what);
    fw_u16(w, (uint16_t)strlen(text));
    fw_raw(w, text, strlen(text));
}

__attribute__((unused)) static void fw_string(struct fw *w, const char *text)
{
    fw_u8(w, ETW_T_STRING);
    fw_u16(w, (uint16_t)strlen(text));
    fw_raw(w, text, strlen(text));
}

/* ---- whole frames ---- */

__attribute__((unused)) static void fw_lost(struct fw *w, uint64_t tick, enum etw_loss reason, uint64_t more)
{
    w->r->lost[reason] += more;
    w->r->seen += more;
    fw_frame(w, ETW_LOST, tick, w->r->tracee);
    fw_raw(w, w->r->lost, sizeof(w->r->lost));
    fw_frame_end(w);
}

__attribute__((unused)) static void fw_name(struct fw *w, uint64_t tick, uint64_t tracee, const char *name)
{
    struct fw_ring *before = w->r;

    fw_ring(w, ETW_META_RING);
    fw_frame(w, ETW_NAME, tick, tracee);
    fw_atom_text(w, name);
    fw_frame_end(w);
    w->r = before;
}

__attribute__((unused)) static void fw_hello(struct fw *w, uint64_t tick, const char *node)
{
    struct fw_ring *before = w->r;

    fw_ring(w, ETW_META_RING);
    fw_frame(w, ETW_HELLO, tick, 0);
    fw_map(w, 2);
    fw_atom_text(w, "node");
    fw_atom_text(w, node);
    fw_atom_text(w, "otp");
    fw_bin(w, "29");
    fw_frame_end(w);
    w->r = before;
}

/* ---- batches ---- */

__attribute__((unused)) static struct str fw_batch(struct fw *w, uint64_t tick, int64_t mono_ns, uint64_t watermark,
                                                   uint32_t flags)
{
    struct etw_batch h = {
        .magic = ETW_BATCH_MAGIC,
        .seq = ++w->seq,
        .tick = tick,
        .mono_ns = mono_ns,
        .wall_ns = w->wall_offset + mono_ns,
        .watermark = watermark,
        .flags = flags,
    };

    buf_clear(&w->batch);
    buf_add(&w->batch, &h, sizeof(h));
    for (unsigned i = 0; i < w->nrings; i++) {
        struct fw_ring *r = &w->rings[i];
        struct etw_section s = {.ring = r->id, .bytes = (uint32_t)r->bytes.len, .seen = r->seen};
        memcpy(s.lost, r->lost, sizeof(s.lost));
        buf_add(&w->batch, &s, sizeof(s));
        buf_str(&w->batch, buf_view(&r->bytes));
        buf_clear(&r->bytes);
        h.sections++;
    }
    h.bytes = (uint32_t)w->batch.len;
    memcpy(w->batch.data, &h, sizeof(h));
    return buf_view(&w->batch);
}

__attribute__((unused)) static void fw_release(struct fw *w)
{
    for (unsigned i = 0; i < w->nrings; i++) {
        for (unsigned k = 0; k < w->rings[i].nfuns; k++)
            free(w->rings[i].funs[k]);
        for (unsigned k = 0; k < w->rings[i].natoms; k++)
            free(w->rings[i].atoms[k]);
        buf_release(&w->rings[i].bytes);
    }
    buf_release(&w->batch);
}

#endif
