/* SPDX-License-Identifier: Apache-2.0 */
#include "process_list.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

void process_list_release(struct process_list *r)
{
    free(r->items);
    free(r->slots);
    *r = (struct process_list){0};
}

static size_t process_list_slot_of(const struct process_list *r, uint64_t tracee, unsigned node)
{
    return (size_t)(((tracee ^ (uint64_t)node << 56) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (r->nslots - 1);
}

static void process_list_widen(struct process_list *r)
{
    r->nslots = r->nslots ? r->nslots * 2 : 256;
    free(r->slots);
    r->slots = mem_zalloc(r->nslots * sizeof(*r->slots));
    for (size_t i = 0; i < r->n; i++) {
        size_t at = process_list_slot_of(r, r->items[i].tracee, r->items[i].node->index);
        while (r->slots[at])
            at = (at + 1) & (r->nslots - 1);
        r->slots[at] = (uint32_t)i + 1;
    }
}

uint32_t process_list_number(struct process_list *r, const struct event *e, uint64_t tracee, const struct tracee *who)
{
    if (r->n * 2 >= r->nslots)
        process_list_widen(r);
    size_t at = process_list_slot_of(r, tracee, e->node->index);
    for (; r->slots[at]; at = (at + 1) & (r->nslots - 1)) {
        struct process_list_entry *p = &r->items[r->slots[at] - 1];
        if (p->tracee != tracee || p->node->index != e->node->index)
            continue;
        if (who && who->name_len && !p->who.name_len)
            p->who = *who;
        return r->slots[at] - 1;
    }
    if (r->n == PROCESS_LIST_MAX)
        return PROCESS_LIST_MAX - 1;
    r->items = mem_grow(r->items, &r->cap, r->n + 1, sizeof(*r->items));
    struct process_list_entry *p = &r->items[r->n++];
    *p = (struct process_list_entry){.tracee = tracee, .node = e->node};
    if (who)
        p->who = *who;
    else
        p->who.text_len = (uint8_t)print_tracee(p->who.text, tracee);
    r->nodes = MAX(r->nodes, e->node->index);
    r->slots[at] = (uint32_t)r->n;
    return (uint32_t)r->n - 1;
}

void process_list_label(const struct process_list *r, uint32_t number, struct buf *to)
{
    const struct process_list_entry *p = &r->items[number];

    if (number == PROCESS_LIST_MAX - 1) {
        buf_puts(to, "(other processes)");
        return;
    }
    buf_add(to, p->who.text, p->who.text_len);
    if (p->who.name_len) {
        buf_char(to, '(');
        buf_add(to, p->who.name, p->who.name_len);
        buf_char(to, ')');
    }
    if (r->nodes) {
        buf_char(to, ' ');
        buf_safe(to, p->node->name);
    }
}
