/* SPDX-License-Identifier: Apache-2.0 */
#include "recpack.h"

#include <stdlib.h>
#include <zstd.h>

#include "../ground/mem.h"
#include "order.h"
#include "recfile.h"

/* Lower levels make larger files; levels 2 to 5 make no smaller files. */
#define LEVEL 1
#define ITEMS_MAX 65536 /* limit for the places of items that are kept for each node */
#define INDEX_MAX ((ETW_MAX_BLOCK - sizeof(struct etw_index_end)) / sizeof(struct etw_index))

/* The places of a node's batches and notes that no checkpoint covers yet, in bytes from the beginning of the run. */
struct places {
    uint64_t *items;
    size_t count, cap;
    uint64_t before; /* number of items before the first one in `items` */
};

struct recpack {
    ZSTD_CCtx *zstd;
    uint64_t at; /* number of bytes written since the beginning of the run */
    struct places nodes[EVENT_NODES];
    struct etw_index *index; /* here `back` counts from the beginning of the run; put_index() converts it */
    size_t nindex, index_cap;
    struct buf block;
};

static void *recpack_open(void)
{
    struct recpack *p = mem_zalloc(sizeof(*p));

    p->zstd = ZSTD_createCCtx();
    return p;
}

static void recpack_close(void *state)
{
    struct recpack *p = state;

    ZSTD_freeCCtx(p->zstd);
    for (size_t i = 0; i < EVENT_NODES; i++)
        free(p->nodes[i].items);
    free(p->index);
    buf_release(&p->block);
    free(p);
}

/* ---- where a reader can begin ---- */

static bool is_mark(const struct etw_block *b, const char *bytes)
{
    struct etw_note note;

    if (b->type != ETW_BLOCK_NOTE || b->bytes < sizeof(note))
        return false;
    memcpy(&note, bytes, sizeof(note));
    return note.what == ETW_NOTE_MARK;
}

static void forget_items(struct places *n, size_t count)
{
    memmove(n->items, n->items + count, (n->count - count) * sizeof(*n->items));
    n->count -= count;
    n->before += count;
}

static void keep_place(struct recpack *p, const struct etw_block *b, const char *bytes)
{
    if ((b->type != ETW_BLOCK_BATCH && b->type != ETW_BLOCK_NOTE) || b->node >= EVENT_NODES || is_mark(b, bytes))
        return;
    struct places *n = &p->nodes[b->node];
    if (n->count == ITEMS_MAX)
        forget_items(n, ITEMS_MAX / 2);
    n->items = mem_grow(n->items, &n->cap, n->count + 1, sizeof(*n->items));
    n->items[n->count++] = p->at;
}

/* Returns true if p->nodes still has the places of all items that came after the node's state was saved. */
static bool knows_place(const struct recpack *p, const struct etw_resume *r)
{
    return r->node < EVENT_NODES && r->items >= p->nodes[r->node].before &&
           r->items - p->nodes[r->node].before <= p->nodes[r->node].count;
}

/*
 * Finds where a reader of the checkpoint resumes: at the first item that is not covered by the saved state of its node.
 * Sets *ret_back to the distance back to this item, and resumes[].skip to the number of covered items of the node that
 * follow this place. Forgets the places of covered items. Returns false if a place is no longer known.
 */
static bool find_resume(struct recpack *p, struct etw_resume *resumes, uint32_t count, uint64_t *ret_back)
{
    uint64_t from = p->at;

    for (uint32_t i = 0; i < count; i++) {
        const struct etw_resume *r = &resumes[i];
        if (!knows_place(p, r))
            return false;
        const struct places *n = &p->nodes[r->node];
        const size_t covered = (size_t)(r->items - n->before);
        if (covered < n->count)
            from = MIN(from, n->items[covered]);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct places *n = &p->nodes[resumes[i].node];
        const size_t covered = (size_t)(resumes[i].items - n->before);
        for (size_t item = covered; item && n->items[item - 1] >= from; item--)
            resumes[i].skip++;
    }
    for (uint32_t i = 0; i < count; i++)
        forget_items(&p->nodes[resumes[i].node], (size_t)(resumes[i].items - p->nodes[resumes[i].node].before));
    *ret_back = p->at - from;
    return true;
}

static void add_index(struct recpack *p, const struct etw_checkpoint *c)
{
    if (p->nindex == INDEX_MAX) {
        for (size_t i = 0; i < INDEX_MAX / 2; i++)
            p->index[i] = p->index[2 * i + 1];
        p->nindex = INDEX_MAX / 2;
    }
    p->index = mem_grow(p->index, &p->index_cap, p->nindex + 1, sizeof(*p->index));
    p->index[p->nindex++] = (struct etw_index){.back = p->at, .newest = c->newest};
}

/*
 * Completes the header of a checkpoint and adds the checkpoint to the index. Returns the completed bytes, which are in
 * p->block. Returns `bytes` unchanged if they are too short.
 */
static const char *complete_checkpoint(struct recpack *p, struct etw_block *b, const char *bytes)
{
    struct etw_checkpoint c;
    uint64_t back = 0;

    if (b->bytes < sizeof(c))
        return bytes;
    memcpy(&c, bytes, sizeof(c));
    buf_clear(&p->block);
    buf_add(&p->block, bytes, b->bytes);
    struct etw_resume *resumes = mem_zalloc((c.nodes + 1) * sizeof(*resumes));
    const size_t size = c.nodes * sizeof(*resumes);
    if (c.nodes <= EVENT_NODES && b->bytes - sizeof(c) >= size) {
        memcpy(resumes, bytes + sizeof(c), size);
        if (find_resume(p, resumes, c.nodes, &back))
            add_index(p, &c);
        else
            c.layout = 0;
        memcpy(p->block.data + sizeof(c), resumes, size);
    }
    free(resumes);
    c.run = p->at;
    c.back = back;
    memcpy(p->block.data, &c, sizeof(c));
    b->crc = recfile_crc(b, p->block.data);
    return p->block.data;
}

static void put_index(struct recpack *p, struct buf *to)
{
    struct buf bytes = {0};
    struct etw_index_end end = {.run = p->at, .magic = ETW_INDEX_MAGIC};

    for (size_t i = 0; i < p->nindex; i++) {
        const struct etw_index entry = {.back = p->at - p->index[i].back, .newest = p->index[i].newest};
        buf_add(&bytes, &entry, sizeof(entry));
    }
    end.bytes = (uint32_t)(bytes.len + sizeof(end));
    buf_add(&bytes, &end, sizeof(end));
    recfile_block(to, ETW_BLOCK_INDEX, 0, buf_view(&bytes));
    buf_release(&bytes);
}

/* ---- blocks ---- */

static void pack_block(struct recpack *p, struct etw_block b, const char *bytes, struct buf *to)
{
    const size_t begin = to->len;
    /* an index and its footer are found from the end of the file, so both keep their sizes */
    const bool plain = b.whole || (b.type == ETW_BLOCK_FOOTER && p->nindex);

    if (b.type == ETW_BLOCK_FOOTER && p->nindex)
        put_index(p, to);
    if (b.type == ETW_BLOCK_CHECKPOINT)
        bytes = complete_checkpoint(p, &b, bytes);
    keep_place(p, &b, bytes);
    const size_t room = sizeof(b) + ZSTD_compressBound(b.bytes);
    char *at = buf_room(to, room);
    size_t n = p->zstd && !plain ? ZSTD_compressCCtx(p->zstd, at + sizeof(b), room - sizeof(b), bytes, b.bytes, LEVEL)
                                 : b.bytes;

    if (!ZSTD_isError(n) && n < b.bytes) {
        b.whole = b.bytes;
        b.bytes = (uint32_t)n;
        b.crc = recfile_crc(&b, at + sizeof(b));
    } else {
        memcpy(at + sizeof(b), bytes, b.bytes);
    }
    memcpy(at, &b, sizeof(b));
    to->len += sizeof(b) + b.bytes;
    p->at += to->len - begin;
}

static void recpack_bytes(void *state, struct str from, struct buf *to)
{
    struct recpack *p = state;
    const char *at = from.at, *end = from.at + from.len;
    struct etw_file h;
    struct etw_block b;

    if (from.len >= sizeof(h) && !memcmp(at, ETW_FILE_MAGIC, sizeof(h.magic))) {
        buf_add(to, at, sizeof(h));
        at += sizeof(h);
    }
    for (; (size_t)(end - at) >= sizeof(b); at += sizeof(b) + b.bytes) {
        memcpy(&b, at, sizeof(b));
        if (b.bytes > ETW_MAX_BLOCK || (size_t)(end - at) - sizeof(b) < b.bytes)
            break;
        /* `at` advances by the size in the input, which pack_block() does not change */
        pack_block(p, b, at + sizeof(b), to);
    }
    buf_add(to, at, (size_t)(end - at));
}

const struct out_pack recpack = {.open = recpack_open, .bytes = recpack_bytes, .close = recpack_close};

bool recunpack_block(struct recunpack *u, const struct etw_block *b, const void *bytes, struct str *ret)
{
    if (!u->zstd)
        u->zstd = ZSTD_createDCtx();
    buf_clear(&u->bytes);
    buf_room(&u->bytes, b->whole);
    if (!u->zstd || ZSTD_decompressDCtx(u->zstd, u->bytes.data, b->whole, bytes, b->bytes) != b->whole)
        return false;
    u->blocks++;
    *ret = (struct str){u->bytes.data, b->whole};
    return true;
}

void recunpack_release(struct recunpack *u)
{
    ZSTD_freeDCtx(u->zstd);
    buf_release(&u->bytes);
}
