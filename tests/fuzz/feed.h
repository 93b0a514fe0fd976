/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds batches into a pipeline. The input is a sequence of batches, each after a u32 with its length in the lower 16
 * bits. feed() repairs the head of each batch, so that the fuzzer tests the code that reads the rest.
 */
#ifndef ETRACE_FUZZ_FEED_H
#define ETRACE_FUZZ_FEED_H

#include <stdlib.h>
#include <string.h>

#include "pipeline/pipeline.h"

static inline void feed(struct pipeline *p, const uint8_t *data, size_t size)
{
    struct err e;
    uint64_t seq = 0;

    while (size >= 4) {
        uint32_t len;
        memcpy(&len, data, 4);
        data += 4, size -= 4;
        len = MIN(len & 0xffff, (uint32_t)size);
        char *copy = malloc(len ? len : 1);
        memcpy(copy, data, len);
        data += len, size -= len;
        if (len >= sizeof(struct etw_batch)) {
            struct etw_batch h;
            memcpy(&h, copy, sizeof(h));
            h.magic = ETW_BATCH_MAGIC;
            h.bytes = len;
            h.seq = ++seq;
            memcpy(copy, &h, sizeof(h));
        }
        pipeline_batch(p, 0, (struct str){copy, len}, &e);
        free(copy);
    }
}

#endif
