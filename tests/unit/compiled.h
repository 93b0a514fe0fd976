/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles probes and a filter, written as users write them, and shows the events of a scene with them. */
#ifndef ETRACE_COMPILED_H
#define ETRACE_COMPILED_H

#include "pipetest.h"

#include "ground/mem.h"
#include "lang/lang.h"

/*
 * Sets *ret to the output of the view, or returns false and sets it to the error. `filter` may be NULL. Releases the
 * writer.
 */
static bool shown_by(struct fw *w, const char *probes, const char *filter, const char *view, const struct look *look,
                     struct buf *ret)
{
    struct lang_options options = {0};
    struct spec_list specs = {0};
    const struct where *where = NULL;
    struct pt t = {0};
    struct arena a;
    bool is = false;

    arena_init(&a);
    buf_clear(ret);
    if (lang_compile(&options, (struct str){probes, strlen(probes)}, &a, &specs, &t.err) &&
        (!filter || lang_where(&options, (struct str){filter, strlen(filter)}, &a, &where, &t.err))) {
        pt_open(&t, (const char *const[]){view, NULL}, look,
                (struct pipeline_options){.specs = specs.items,
                                          .nspecs = specs.count,
                                          .wheres = &where,
                                          .nwheres = where != NULL});
        is = t.p != NULL;
    }
    if (is) {
        pt_feed(&t, 0, fw_batch(w, 10000000, 10000000, 10000000, ETW_BATCH_LAST));
        pt_close(&t);
        const struct totals *n = pipeline_totals(t.p);
        if (n->seen != n->shown + n->filtered || n->missing)
            ok(false, "seen %d = shown %d + filtered %d", (int)n->seen, (int)n->shown, (int)n->filtered);
        buf_str(ret, buf_view(&t.out[0]));
    } else {
        buf_puts(ret, t.err.text);
    }
    buf_cstr(ret);
    pt_free(&t);
    fw_release(w);
    arena_release(&a);
    return is;
}

#endif
