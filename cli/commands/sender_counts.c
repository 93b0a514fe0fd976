/* SPDX-License-Identifier: Apache-2.0 */
#include "sender_counts.h"

#include <stdlib.h>
#include <string.h>

/* Compares senders by pid, because names may come later. Senders without a pid are compared by name. */
static bool sender_is(const struct sender_count *x, const struct look_process *sender)
{
    return !strcmp(x->process.pid, sender->pid) && (sender->pid[0] || !strcmp(x->process.name, sender->name));
}

static struct sender_count *sender_find(struct sender_counts *s, const struct look_process *sender)
{
    struct sender_count *x = s->items;

    while (x < s->items + s->n && !sender_is(x, sender))
        x++;
    return x;
}

static struct sender_count *sender_fewest(struct sender_counts *s)
{
    struct sender_count *fewest = s->items;

    for (struct sender_count *x = s->items; x < s->items + s->n; x++)
        if (x->count < fewest->count)
            fewest = x;
    return fewest;
}

void sender_counts_add(struct sender_counts *s, const struct look_process *sender)
{
    struct sender_count *x = sender_find(s, sender);

    if (x == s->items + SENDERS_MOST) {
        x = sender_fewest(s);
        *x = (struct sender_count){*sender, x->count, x->count};
        s->lossy = true;
    } else if (x == s->items + s->n) {
        s->items[s->n++] = (struct sender_count){.process = *sender};
    }
    x->count++;
}

static int sender_order(const void *a, const void *b)
{
    const struct sender_count *x = a, *y = b;

    return x->count != y->count ? (x->count < y->count ? 1 : -1) : strcmp(x->process.pid, y->process.pid);
}

void sender_counts_sort(struct sender_counts *s)
{
    qsort(s->items, s->n, sizeof(*s->items), sender_order);
}

void sender_counts_name(struct sender_counts *s, const struct look_process *sender)
{
    struct sender_count *x = sender_find(s, sender);

    if (x < s->items + s->n)
        x->process = *sender;
}
