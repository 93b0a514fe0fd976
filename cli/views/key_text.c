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
    buf_str(to, s->fun->is_elixir ? s->fun->elixir : s->fun->erl);
    buf_char(to, '/');
    print_u64(to, s->arity);
}
