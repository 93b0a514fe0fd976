/* SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"

#define CHECKPOINT_BYTES ((size_t)4 << 20)
#define CHECKPOINT_ITEMS 8192
#define APART 32 /* checkpoints take at most 1/APART of a recording, unless its batches are very small */

void checkpoints_init(struct checkpoints *c, bool records, size_t apart)
{
    *c = (struct checkpoints){.state = records ? CHECKPOINT_WAITS : CHECKPOINT_NEVER,
                              .apart = apart ? apart : CHECKPOINT_BYTES};
    c->next = c->apart;
}

void checkpoints_release(struct checkpoints *c)
{
    buf_release(&c->request);
    buf_release(&c->text);
}

void checkpoints_request(struct checkpoints *c, unsigned node, struct str request)
{
    if (c->state == CHECKPOINT_NEVER)
        return;
    c->state = CHECKPOINT_WAITS;
    if (node && c->request.len)
        return;
    buf_clear(&c->request);
    buf_str(&c->request, request);
}

static void write_checkpoint(struct checkpoints *c, struct order *order, checkpoint_put_fn *put, void *data)
{
    struct str state;

    buf_clear(&c->text);
    if (!order_checkpoint(order, buf_view(&c->request), &c->text))
        return;
    size_t size = c->text.len;
    put(data, ETW_BLOCK_CHECKPOINT, 0, buf_view(&c->text));
    for (unsigned i = 0; i < order_nodes(order); i++)
        if (order_state(order, i, &state)) {
            put(data, ETW_BLOCK_STATE, i, state);
            size += state.len;
        }
    c->next = c->apart < CHECKPOINT_BYTES ? c->apart : MAX(c->apart, size * APART);
}

void checkpoints_batch(struct checkpoints *c, struct order *order, size_t bytes, checkpoint_put_fn *put, void *data)
{
    if (c->state == CHECKPOINT_NEVER)
        return;
    c->bytes += bytes;
    c->items++;
    if (c->state == CHECKPOINT_WAITS) {
        if (c->bytes < c->next && c->items < CHECKPOINT_ITEMS)
            return;
        order_save(order);
        c->state = CHECKPOINT_SAVING;
    }
    if (!order_saved(order))
        return;
    c->state = CHECKPOINT_WAITS;
    c->bytes = c->items = 0;
    write_checkpoint(c, order, put, data);
}
