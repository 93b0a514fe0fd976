/* SPDX-License-Identifier: Apache-2.0 */
#include "process_list.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/mem.h"

void process_list_release(struct process_list *r)
{
    free(r->items);
    table_release(&r->by_tracee);
    *r = (struct process_list){0};
}

static void process_list_name(struct process_list_entry *p, const struct tracee *who)
{
    memcpy(p->name, who->name, who->name_len);
    p->name_len = who->name_len;
}

uint32_t process_list_number(struct process_list *r, const struct event *e, uint64_t tracee, const struct tracee *who)
{
    uint32_t hash = hash_tracee(tracee, e->node->index);

    for (uint32_t step = 0, i; (i = table_next(&r->by_tracee, hash, &step)) != TABLE_NONE;) {
        struct process_list_entry *p = &r->items[i];
        if (p->tracee != tracee || p->node->index != e->node->index)
            continue;
        if (who && !p->name_len)
            process_list_name(p, who);
        return i;
    }
    if (r->n == PROCESS_LIST_MAX)
        return PROCESS_LIST_NONE;
    r->items = mem_grow(r->items, &r->cap, r->n + 1, sizeof(*r->items));
    struct process_list_entry *p = &r->items[r->n++];
    *p = (struct process_list_entry){.tracee = tracee, .node = e->node};
    if (who)
        process_list_name(p, who);
    r->nodes = MAX(r->nodes, e->node->index);
    table_add(&r->by_tracee, hash, (uint32_t)r->n - 1);
    return (uint32_t)r->n - 1;
}

uint32_t process_list_own(struct process_list *r, const struct event *e)
{
    const uint32_t number = process_list_number(r, e, e->who->id, e->who);

    r->left_out += number == PROCESS_LIST_NONE;
    return number;
}
