/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes `where` with events. The input is the expression, a NUL, and batches as in fz_batch.c. Nothing may crash,
 * hang or leak.
 */
#include "lang/lang.h"
#include "feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool drop(void *output, struct buf *bytes)
{
    (void)output;
    bytes->len = 0;
    return true;
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
        struct pipeline *p =
            pipeline_new(&(struct pipeline_options){.views = &view, .nviews = 1, .wheres = &where, .nwheres = 1}, &e);
        if (p) {
            feed(p, data + len + 1, size - len - 1);
            pipeline_end(p);
            pipeline_free(p);
        }
    }
    arena_release(&a);
    return 0;
}
