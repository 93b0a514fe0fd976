/* SPDX-License-Identifier: Apache-2.0 */
#include "recpack.h"

#include <zstd.h>

#include "../ground/mem.h"
#include "recfile.h"

/* Level 1 takes 30 ns for a small call. Levels below it make larger files, levels 2 to 5 no smaller ones. */
#define LEVEL 1

static void *recpack_open(void)
{
    return ZSTD_createCCtx();
}

static void recpack_close(void *zstd)
{
    ZSTD_freeCCtx(zstd);
}

static void pack_block(ZSTD_CCtx *zstd, struct etw_block b, const char *bytes, struct buf *to)
{
    const size_t room = sizeof(b) + ZSTD_compressBound(b.bytes);
    char *at = buf_room(to, room);
    size_t n =
        zstd && !b.whole ? ZSTD_compressCCtx(zstd, at + sizeof(b), room - sizeof(b), bytes, b.bytes, LEVEL) : b.bytes;

    if (!ZSTD_isError(n) && n < b.bytes) {
        b.whole = b.bytes;
        b.bytes = (uint32_t)n;
        b.crc = recfile_crc(&b, at + sizeof(b));
    } else {
        memcpy(at + sizeof(b), bytes, b.bytes);
    }
    memcpy(at, &b, sizeof(b));
    to->len += sizeof(b) + b.bytes;
}

static void recpack_bytes(void *zstd, struct str from, struct buf *to)
{
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
        pack_block(zstd, b, at + sizeof(b), to);
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
    *ret = (struct str){u->bytes.data, b->whole};
    return true;
}

void recunpack_release(struct recunpack *u)
{
    ZSTD_freeDCtx(u->zstd);
    buf_release(&u->bytes);
}
