/* SPDX-License-Identifier: Apache-2.0 */
#include "recseek.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "recfile.h"

#define PLACES_MAX 65536
#define PIECE 4096
#define GROW_BLOCKS 65536
#define BAD_MAX 16 /* limit for the damaged checkpoints that a search reads; each has up to ETW_MAX_BLOCK bytes */

/* ---- reading blocks ---- */

static bool read_at(struct recseek *s, void *to, size_t bytes, uint64_t at)
{
    const ssize_t n = at < s->size ? pread(s->fd, to, bytes, (off_t)at) : -1;

    s->bytes += n > 0 ? (uint64_t)n : 0;
    return n == (ssize_t)bytes;
}

static bool is_whole(const struct recseek *s, uint64_t at, const struct etw_block *b)
{
    return b->bytes <= ETW_MAX_BLOCK && b->whole <= ETW_MAX_BLOCK && s->size - at - sizeof(*b) >= b->bytes;
}

/* Reads the header of a block. Returns false if the block is not whole. */
static bool read_head(struct recseek *s, uint64_t at, struct etw_block *ret)
{
    return read_at(s, ret, sizeof(*ret), at) && is_whole(s, at, ret);
}

/* A piece of the file. If headers are read in their order, one piece contains the headers of many small blocks. */
struct piece {
    uint64_t at;
    size_t len;
    char bytes[PIECE];
};

static bool piece_head(struct recseek *s, struct piece *p, uint64_t at, struct etw_block *ret)
{
    if (at < p->at || at - p->at + sizeof(*ret) > p->len) {
        p->at = at;
        p->len = at < s->size ? (size_t)MIN(s->size - at, (uint64_t)PIECE) : 0;
        if (p->len < sizeof(*ret) || !read_at(s, p->bytes, p->len, at))
            return false;
    }
    memcpy(ret, p->bytes + (at - p->at), sizeof(*ret));
    return is_whole(s, at, ret);
}

/*
 * Reads and decompresses a block of this type. The bytes are valid until the next read. Returns false if there is no
 * such block, or if it is damaged.
 */
static bool read_block(struct recseek *s, uint64_t at, unsigned type, struct str *ret)
{
    struct etw_block b;

    if (!read_head(s, at, &b) || b.type != type)
        return false;
    buf_clear(&s->in);
    if (!read_at(s, buf_room(&s->in, b.bytes + 1), b.bytes, at + sizeof(b)))
        return false;
    *ret = (struct str){s->in.data, b.bytes};
    return recfile_crc(&b, ret->at) == b.crc && (!b.whole || recunpack_block(&s->unpack, &b, ret->at, ret));
}

/* ---- where the checkpoints are ---- */

static void add_place(struct recseek *s, uint64_t at)
{
    if (s->count == PLACES_MAX) { /* keep every second place */
        for (size_t i = 0; i < PLACES_MAX / 2; i++)
            s->places[i] = s->places[2 * i + 1];
        s->count = PLACES_MAX / 2;
    }
    s->places = mem_grow(s->places, &s->cap, s->count + 1, sizeof(*s->places));
    s->places[s->count++] = at;
}

/*
 * Reads the index of the last run, and adds its checkpoints to s->places. Returns the offset where this run begins, or
 * 0 if there is no index.
 */
static uint64_t read_index(struct recseek *s)
{
    const uint64_t tail = sizeof(struct etw_index_end) + sizeof(struct etw_block) + sizeof(struct etw_footer);
    struct etw_index_end end;
    struct etw_index entry;
    struct etw_block footer;
    struct str bytes;

    if (s->size < tail || !read_at(s, &end, sizeof(end), s->size - tail) ||
        !read_head(s, s->size - tail + sizeof(end), &footer) || footer.type != ETW_BLOCK_FOOTER ||
        footer.bytes != sizeof(struct etw_footer) || end.magic != ETW_INDEX_MAGIC || end.bytes > ETW_MAX_BLOCK ||
        end.bytes < sizeof(end))
        return 0;
    const uint64_t behind = s->size - tail + sizeof(end);
    if (behind < end.bytes + sizeof(struct etw_block))
        return 0;
    const uint64_t at = behind - end.bytes - sizeof(struct etw_block);
    if (end.run > at || !read_block(s, at, ETW_BLOCK_INDEX, &bytes) || bytes.len != end.bytes)
        return 0;
    for (size_t i = 0; i + sizeof(end) + sizeof(entry) <= bytes.len; i += sizeof(entry)) {
        memcpy(&entry, bytes.at + i, sizeof(entry));
        if (entry.back <= at && (!s->count || at - entry.back > s->places[s->count - 1]))
            add_place(s, at - entry.back);
    }
    return at - end.run;
}

/* Collects the checkpoints of the first run. Reads only the headers of the blocks. */
static void collect_checkpoints(struct recseek *s)
{
    struct piece piece = {0};
    struct etw_block b;

    s->count = 0;
    for (uint64_t at = s->begin; piece_head(s, &piece, at, &b) && b.type != ETW_BLOCK_FOOTER; at += sizeof(b) + b.bytes)
        if (b.type == ETW_BLOCK_CHECKPOINT)
            add_place(s, at);
}

void recseek_open(struct recseek *s, int fd, uint64_t begin)
{
    struct stat st;

    *s = (struct recseek){.fd = fd, .begin = begin, .size = fstat(fd, &st) ? 0 : (uint64_t)st.st_size};
}

/* Sets s->places, once. A caller that knows the offset of its checkpoint does not need this. */
static void find_places(struct recseek *s)
{
    if (!s->found && read_index(s) != s->begin)
        collect_checkpoints(s);
    s->found = true;
}

/*
 * Sets where recseek_grow() begins to look at blocks: at the end of the file if the file has an index of all its
 * checkpoints, otherwise at the first block.
 */
static void begin_growth(struct recseek *s)
{
    s->found = true;
    s->whole = s->begin;
    if (read_index(s) == s->begin) {
        s->whole = s->size;
        s->finished = s->run_over = true;
    } else {
        s->count = 0;
    }
}

bool recseek_grow(struct recseek *s)
{
    struct piece piece = {0};
    struct etw_block b;
    struct stat st;

    s->size = fstat(s->fd, &st) ? s->size : (uint64_t)st.st_size;
    if (!s->found)
        begin_growth(s);
    for (size_t i = 0; i < GROW_BLOCKS; i++) {
        if (!piece_head(s, &piece, s->whole, &b))
            return true;
        if (b.type == ETW_BLOCK_CHECKPOINT && !s->run_over)
            add_place(s, s->whole);
        s->finished = b.type == ETW_BLOCK_FOOTER;
        s->run_over |= s->finished;
        s->whole += sizeof(b) + b.bytes;
    }
    return false;
}

size_t recseek_places(struct recseek *s, const uint64_t **ret)
{
    find_places(s);
    *ret = s->places;
    return s->count;
}

void recseek_close(struct recseek *s)
{
    free(s->places);
    recunpack_release(&s->unpack);
    buf_release(&s->in);
}

/* ---- the checkpoint for a time ---- */

bool recseek_read(struct recseek *s, uint64_t at, struct recseek_place *ret)
{
    struct etw_block b;
    struct str bytes;

    if (!read_head(s, at, &b) || !read_block(s, at, ETW_BLOCK_CHECKPOINT, &bytes) || bytes.len < sizeof(ret->head))
        return false;
    memcpy(&ret->head, bytes.at, sizeof(ret->head));
    const size_t nodes = ret->head.nodes;
    if (ret->head.layout != ETW_CHECKPOINT_LAYOUT || !nodes || nodes > EVENT_NODES ||
        bytes.len - sizeof(ret->head) < nodes * sizeof(ret->nodes[0]) || ret->head.run != at - s->begin ||
        ret->head.back > ret->head.run || ret->head.first_key == INT64_MIN)
        return false;
    memcpy(ret->nodes, bytes.at + sizeof(ret->head), nodes * sizeof(ret->nodes[0]));
    ret->at = at;
    ret->behind = at + sizeof(b) + b.bytes;
    for (size_t i = 0; i < nodes; i++) {
        if (ret->nodes[i].node >= EVENT_NODES || !read_head(s, ret->behind, &b) || b.type != ETW_BLOCK_STATE)
            return false;
        ret->behind += sizeof(b) + b.bytes;
    }
    ret->resume = ret->head.back ? at - ret->head.back : ret->behind;
    return true;
}

bool recseek_find(struct recseek *s, int64_t newest, struct recseek_place *ret)
{
    unsigned bad = 0;
    bool found = false;

    find_places(s);
    size_t from = 0, to = s->count; /* places before `from` are early enough; places from `to` on are too late */
    while (from < to && bad < BAD_MAX) {
        const size_t middle = from + (to - from) / 2;
        struct recseek_place place;
        if (!recseek_read(s, s->places[middle], &place)) {
            /* drop the damaged checkpoint */
            bad++;
            memmove(s->places + middle, s->places + middle + 1, (s->count - middle - 1) * sizeof(*s->places));
            s->count--;
            to--;
        } else if (place.head.newest <= newest) {
            *ret = place;
            found = true;
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return found;
}

uint64_t recseek_last_batch(struct recseek *s)
{
    uint64_t last = 0, behind = s->size;
    struct etw_block b;

    find_places(s);
    for (size_t i = s->count + 1; i-- && !last;) {
        const uint64_t from = i ? s->places[i - 1] : s->begin;
        for (uint64_t at = from; at < behind && read_head(s, at, &b); at += sizeof(b) + b.bytes)
            if (b.type == ETW_BLOCK_BATCH)
                last = at;
        behind = from; /* the blocks from `from` on have no batch */
    }
    return last;
}
