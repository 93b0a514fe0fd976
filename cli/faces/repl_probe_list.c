/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the list of probes. */
#include "repl_probe_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../events/recfile.h"
#include "../ground/mem.h"

static bool is_running(const struct probe *p)
{
    return !p->stopped && !p->gone;
}

size_t probe_list_running(const struct probe_list *l)
{
    size_t n = 0;

    for (size_t i = 0; i < l->count; i++)
        n += is_running(&l->items[i]);
    return n;
}

static struct probe *repl_probe_list_find(const struct probe_list *l, const char *label)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->items[i].gone && !strcmp(l->items[i].label, label))
            return &l->items[i];
    return NULL;
}

/* ---- adding and dropping ---- */

void probe_list_add(struct probe_list *l, const char *line, size_t labelled, const char *expr, size_t nspecs,
                    const struct buf *records)
{
    char label[32];

    if (labelled)
        snprintf(label, sizeof(label), "%.*s", (int)labelled - 1, line);
    else
        do
            snprintf(label, sizeof(label), "%u", ++l->labels);
        while (repl_probe_list_find(l, label));
    struct probe *p = repl_probe_list_find(l, label);
    if (p)
        p->gone = true;
    l->items = mem_grow(l->items, &l->cap, l->count + 1, sizeof(*l->items));
    p = &l->items[l->count++];
    *p = (struct probe){.label = mem_strndup(label, strlen(label)),
                        .text = mem_strndup(expr, strlen(expr)),
                        .records = records->len ? mem_strndup(records->data, records->len) : NULL,
                        .number = l->numbers,
                        .nspecs = nspecs,
                        .since = NO_REQUEST,
                        .fresh = true};
    l->numbers += nspecs;
}

static void repl_probe_list_forget(struct probe_list *l, size_t i)
{
    free(l->items[i].label);
    free(l->items[i].text);
    free(l->items[i].records);
    memmove(&l->items[i], &l->items[i + 1], (l->count - i - 1) * sizeof(*l->items));
    l->count--;
}

bool probe_list_drop(struct probe_list *l, const char *label)
{
    struct probe *p = label ? repl_probe_list_find(l, label) : NULL;

    if (label && !p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < l->count; i++)
        l->items[i].gone |= !p || p == &l->items[i];
    return true;
}

bool probe_list_stop(struct probe_list *l, const char *label, bool stopped)
{
    struct probe *p = label ? repl_probe_list_find(l, label) : NULL;

    if (label && !p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < l->count; i++)
        if (!p || p == &l->items[i])
            l->items[i].stopped = stopped;
    return true;
}

bool probe_list_drop_fresh(struct probe_list *l, uint64_t mark)
{
    bool any = false;

    for (size_t i = 0; i < l->count; i++) {
        struct probe *p = &l->items[i];
        bool dropped = p->fresh && !p->gone && p->since > mark;
        any |= dropped;
        p->gone |= dropped;
    }
    return any;
}

void probe_list_accept(struct probe_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        l->items[i].fresh = false;
}

void probe_list_release(struct probe_list *l)
{
    while (l->count)
        repl_probe_list_forget(l, 0);
    free(l->items);
}

/* ---- requests ---- */

void probe_list_texts(const struct probe_list *l, struct texts *ret)
{
    size_t number = 0;

    for (size_t i = 0; i < l->count; i++) {
        const struct probe *p = &l->items[i];
        if (!is_running(p))
            continue;
        for (; number < p->number; number++)
            texts_add(ret, NULL);
        texts_add(ret, p->text);
        number += p->nspecs;
    }
}

void probe_list_begin(struct probe_list *l, uint64_t mark, bool keep)
{
    for (size_t i = l->count; i-- > 0;) {
        struct probe *p = &l->items[i];
        p->told = is_running(p) || (keep && p->told);
        if (is_running(p) && p->since == NO_REQUEST)
            p->since = mark;
        if (p->gone && !p->told)
            repl_probe_list_forget(l, i);
    }
}

bool probe_list_has_ended(const struct probe_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->items[i].told && !is_running(&l->items[i]))
            return true;
    return false;
}

/*
 * Appends a probe in the format of a recording. Leaves out its number if it equals *number, which the reader computes
 * itself.
 */
static void put_probe(struct buf *to, const struct probe *p, bool labels, size_t *number)
{
    char text[24];

    if (labels || p->label[0] < '0' || p->label[0] > '9')
        recfile_spec_add(to, "label", (struct str){p->label, strlen(p->label)});
    if (p->number != *number) {
        snprintf(text, sizeof(text), "%zu", p->number);
        recfile_spec_add(to, "number", (struct str){text, strlen(text)});
    }
    recfile_spec_add(to, "expr", (struct str){p->text, strlen(p->text)});
    *number = p->number + p->nspecs;
}

/* Adds a label to a single probe only if the user has chosen it. */
void probe_list_specs(const struct probe_list *l, const struct what_opts *what, const struct exprs *exprs, bool told,
                      struct buf *to)
{
    size_t count = 0, number = 0;

    for (size_t i = 0; i < exprs->nheaders; i++)
        recfile_spec_add(to, "hrl", exprs->headers[i]);
    recfile_spec_needs(to, what->needs);
    for (size_t i = 0; i < what->lets.count; i++)
        recfile_spec_add(to, "let", (struct str){what->lets.items[i], strlen(what->lets.items[i])});
    for (size_t i = 0; i < l->count; i++) {
        const struct probe *p = &l->items[i];
        if (!is_running(p) && !(told && p->told))
            continue;
        count++;
        if (p->records)
            recfile_spec_add(to, "hrl", (struct str){p->records, strlen(p->records)});
    }
    for (size_t i = 0; i < l->count; i++)
        if (is_running(&l->items[i]) || (told && l->items[i].told))
            put_probe(to, &l->items[i], count > 1, &number);
}

/* ---- printing ---- */

void probe_list_print(const struct probe_list *l, struct buf *to)
{
    bool any = false;

    for (size_t i = 0; i < l->count; i++) {
        const struct probe *p = &l->items[i];
        any |= !p->gone;
        if (p->gone)
            continue;
        buf_printf(to, "%-8s ", p->label);
        lang_join_lines((struct str){p->text, strlen(p->text)}, to); /* in one line, like the history */
        buf_printf(to, "%s\n", p->stopped ? "   (stopped)" : "");
    }
    if (!any)
        buf_puts(to, "no probes: type an expression to make one\n");
}

void probe_list_labels(const struct probe_list *l, void (*each)(void *data, const char *label), void *data)
{
    for (size_t i = 0; i < l->count; i++)
        if (!l->items[i].gone)
            each(data, l->items[i].label);
}
