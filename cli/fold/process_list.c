/* SPDX-License-Identifier: Apache-2.0 */
#include "process_list.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"

void process_list_release(struct process_list *r)
{
    free(r->items);
    table_release(&r->by_tracee);
    *r = (struct process_list){0};
}

uint32_t process_list_number(struct process_list *r, const struct event *e, uint64_t tracee, const struct tracee *who)
{
    uint32_t hash = hash_tracee(tracee, e->node->index);

    for (uint32_t step = 0, i; (i = table_next(&r->by_tracee, hash, &step)) != TABLE_NONE;) {
        struct process_list_entry *p = &r->items[i];
        if (p->tracee != tracee || p->node->index != e->node->index)
            continue;
        if (who && who->name_len && !p->who.name_len)
            p->who = *who;
        return i;
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
    table_add(&r->by_tracee, hash, (uint32_t)r->n - 1);
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
