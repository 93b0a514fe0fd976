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

void process_list_missing(const struct process_list *r, const char *what, struct buf *to)
{
    if (r->left_out)
        buf_printf(to, "*** %llu %s%s left out: only the first %d processes are shown ***\n",
                   (unsigned long long)r->left_out, what, PLURAL(r->left_out), PROCESS_LIST_MAX);
}
