/*
 * Any expression behind `where` about any events: the expression, a NUL, and batches as in fz_batch.c. Whatever stands in
 * the one and in the others, nothing may crash, hang or leak.
 */
#include <stdlib.h>
#include <string.h>

#include "lang/lang.h"
#include "views/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool drop(void *output, struct buf *bytes)
{
    (void)output;
    bytes->len = 0;
    return true;
}

static void feed(struct pipeline *p, const uint8_t *data, size_t size)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct view view = {.type = sink_by_name("text"), .write = drop};
    const struct lang_options options = {.otp = 29};
    const struct where *where;
    struct arena a;
    struct err e;
    size_t len = strnlen((const char *)data, size);

    if (len == size)
        return 0;
    arena_init(&a);
    if (lang_where(&options, (struct str){(const char *)data, len}, &a, &where, &e)) {
        struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = &view, .nviews = 1, .wheres = &where, .nwheres = 1}, &e);
        if (p) {
            feed(p, data + len + 1, size - len - 1);
            pipeline_end(p);
            pipeline_free(p);
        }
    }
    arena_release(&a);
    return 0;
}
