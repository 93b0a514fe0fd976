/* SPDX-License-Identifier: Apache-2.0 */
#include "line_info.h"

#include "../events/info.h"

static void line_info_put_number(struct buf *to, const char *before, int64_t n, const char *after)
{
    buf_puts(to, before);
    print_i64(to, n);
    buf_puts(to, after);
}

/* Prints `heap 210/233, old 0/0, stack 12`, where 210/233 are the used and the allocated words. */
static bool heap_line(struct buf *to, const struct event *e, const uint8_t *at)
{
    int64_t heap, block, old, old_block, stack, words;

    if (!info_number(e, at, "heap_size", &heap) || !info_number(e, at, "heap_block_size", &block) ||
        !info_number(e, at, "old_heap_size", &old) || !info_number(e, at, "old_heap_block_size", &old_block) ||
        !info_number(e, at, "stack_size", &stack))
        return false;
    if (info_reclaimed(e, &words))
        line_info_put_number(to, "reclaimed ", words, " words, ");
    else if (info_number(e, at, "wordsize", &words))
        line_info_put_number(to, "needs ", words, " words, ");
    line_info_put_number(to, "heap ", heap, "/");
    line_info_put_number(to, "", block, "");
    line_info_put_number(to, ", old ", old, "/");
    line_info_put_number(to, "", old_block, "");
    line_info_put_number(to, ", stack ", stack, "");
    return true;
}

/* Prints `in m:f/1 out m:g/2`. Leaves out the pair `timeout` if the event has a duration, which ends the line. */
static bool pairs_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *list)
{
    const uint8_t *el, *first;
    uint32_t arity;
    struct raw key;
    size_t from = to->len;

    if (*list != ETW_T_LIST || !wire_list(&list))
        return false;
    while ((el = wire_list_next(&list))) {
        if (wire_tuple(el, &arity, &first) != 2 || !wire_atom(&e->env, first, &key))
            break;
        if (wire_is_atom(&e->env, first, "timeout") && e->dur_ns >= 0)
            continue;
        if (to->len > from)
            buf_char(to, ' ');
        p->atom(to, key);
        buf_char(to, ' ');
        line_mfa(to, e, p, wire_skip(first));
    }
    if (!el && *list == ETW_T_END)
        return true;
    to->len = from;
    return false;
}

void info_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at)
{
    if (!heap_line(to, e, at) && !pairs_line(to, e, p, at))
        p->term(to, &e->env, at);
}
