/* SPDX-License-Identifier: Apache-2.0 */
#include "key_text.h"

#include "../erlang/term_print.h"

void stat_name(const struct stat *s, struct buf *to)
{
    if (s->node) {
        buf_safe(to, s->node->name);
        buf_char(to, ' ');
    }
    if (!s->fun) {
        buf_puts(to, s->kind ? event_kinds[s->kind].tag : "(all other functions)");
        return;
    }
    buf_str(to, fun_text(s->fun));
    buf_char(to, '/');
    print_u64(to, s->arity);
}

void process_list_label(const struct process_list *r, uint32_t number, struct buf *to)
{
    const struct process_list_entry *p = &r->items[number];

    if (number == PROCESS_LIST_MAX - 1) {
        buf_puts(to, "(other processes)");
        return;
    }
    to->len += print_tracee(buf_room(to, 40), p->tracee);
    if (p->name_len) {
        buf_char(to, '(');
        buf_add(to, p->name, p->name_len);
        buf_char(to, ')');
    }
    if (r->nodes) {
        buf_char(to, ' ');
        buf_safe(to, p->node->name);
    }
}
