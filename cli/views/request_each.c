/* SPDX-License-Identifier: Apache-2.0 */
#include "request_each.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

#define TEXT_MAX 200 /* limit for the text of a request, in bytes */

struct request_text {
    bool elixir;
    size_t len;
    char at[];
};

void request_keep_text(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request)
{
    struct request_view *q = ctx;
    const bool elixir = request_view_in_elixir(q, r->elixir);
    struct buf *text = &q->cell;
    struct request_text *kept = r->kept;

    if (kept && kept->elixir == elixir)
        return;
    buf_clear(text);
    (elixir ? &printer_elixir : &printer_erlang)->term(text, env, request);
    if (text->len > TEXT_MAX) {
        text->len = TEXT_MAX;
        while (text->len && ((unsigned char)text->data[text->len] & 0xc0) == 0x80)
            text->len--;
        buf_puts(text, "…");
    }
    free(kept);
    r->kept = kept = mem_alloc(sizeof(*kept) + text->len);
    kept->elixir = elixir;
    kept->len = text->len;
    memcpy(kept->at, text->data, text->len);
}

struct str request_kept_text(const struct request *r)
{
    const struct request_text *kept = r->kept;

    return kept ? (struct str){kept->at, kept->len} : (struct str){NULL, 0};
}

static const struct request_time *first_seen(const struct request *r)
{
    const struct request_time *start = request_start(r);

    return start->known ? start : r->begun.known ? &r->begun : r->sent.known ? &r->sent : &r->got;
}

struct event request_moment(const struct request *r)
{
    const struct request_time *at = first_seen(r);

    return (struct event){.mono_ns = at->mono_ns, .wall_ns = at->wall_ns, .shift_ns = at->shift_ns, .node = r->node};
}

bool request_is_far(const struct request *r)
{
    return r->caller_on && r->caller_on != r->node;
}
