/* SPDX-License-Identifier: Apache-2.0 */
/* Walks trees: dumps each probe as text for `explain --dump=ast`, and searches a tree for a variable. */
#include "comp.h"

static const char *const types[] = {"lit", "any", "var",   "pin", "tuple", "list", "map",   "record", "field", "native",
                                    "bin", "seg", "match", "op",  "call",  "dot",  "index", "unit",   "regex"};
static const char *const extra[] = {"++", "<>", "in", "not in", "..", "=~", "!~"};

static void dump(const struct ast *n, struct buf *b)
{
    if (n->type == A_LIT) {
        lang_print_term(n->value, b);
        return;
    }
    if (n->type == A_ANY) {
        buf_char(b, '_');
        return;
    }
    buf_printf(b, "(%s", types[n->type]);
    if (n->type == A_OP)
        buf_printf(b, " %s", n->op < FN_COUNT ? fn_row((enum fn)n->op)->name : extra[n->op - FN_COUNT]);
    if (n->type == A_UNIT) {
        buf_char(b, ' ');
        lang_print_term(n->value, b);
    }
    if (n->module.len)
        buf_printf(b, " " STR_FMT ":", STR_ARG(n->module));
    if (n->text.len)
        buf_printf(b, " " STR_FMT, STR_ARG(n->text));
    for (size_t i = 0; i < n->count; i++) {
        buf_char(b, ' ');
        if (n->items[i])
            dump(n->items[i], b);
        else
            buf_char(b, '-');
    }
    if (n->tail) {
        buf_puts(b, " | ");
        dump(n->tail, b);
    }
    buf_char(b, ')');
}

static void dump_clause(const struct ast_clause *cl, struct buf *b)
{
    buf_puts(b, "  clause\n");
    if (cl->whole) {
        buf_puts(b, "    whole ");
        dump(cl->whole, b);
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < cl->nhead; i++) {
        buf_puts(b, "    head ");
        dump(cl->head[i], b);
        buf_char(b, '\n');
    }
    if (cl->prefix)
        buf_puts(b, "    head ...\n");
    if (cl->tail) {
        buf_puts(b, "    tail ");
        dump(cl->tail, b);
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < cl->nguards; i++) {
        buf_puts(b, i ? "    or" : "    when");
        for (size_t j = 0; j < cl->guards[i].count; j++) {
            buf_char(b, ' ');
            dump(cl->guards[i].tests[j], b);
        }
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < cl->nbody; i++) {
        buf_puts(b, "    do ");
        dump(cl->body[i], b);
        buf_char(b, '\n');
    }
}

void ast_dump(const struct ast_probe *p, struct buf *b)
{
    static const char *const shapes[] = {"call", "send", "recv", "event"};

    buf_printf(b, "probe %s %s", shapes[p->shape], p->surface == SPEC_ELIXIR ? "elixir" : "erlang");
    if (p->event.len)
        buf_printf(b, " @" STR_FMT, STR_ARG(p->event));
    buf_char(b, '\n');
    for (size_t i = 0; i < p->nselectors; i++) {
        const struct selector *s = &p->selectors[i];
        buf_printf(b, "  select " STR_FMT " " STR_FMT " %d..%d\n", STR_ARG(s->module.text), STR_ARG(s->function.text),
                   s->arity_lo, s->arity_hi);
    }
    for (size_t i = 0; i < p->nclauses; i++)
        dump_clause(&p->clauses[i], b);
    if (p->raw) {
        buf_puts(b, "  ms ");
        dump(p->raw, b);
        buf_char(b, '\n');
    }
    if (p->where) {
        buf_puts(b, "  where ");
        dump(p->where, b);
        buf_char(b, '\n');
    }
}

size_t ast_place(const struct ast_probe *p, size_t at)
{
    if (!p->alternatives)
        return at - p->from;
    const size_t before = p->alternatives->own_from - p->from, own = p->own_to - p->own_from;
    if (at >= p->rest_from)
        return before + own + (at - p->rest_from);
    return at >= p->own_from ? before + MIN(at - p->own_from, own) : MIN(at - p->from, before);
}

bool ast_mentions(const struct ast *n, struct str var)
{
    if (n->type == A_VAR)
        return str_same(n->text, var);
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] && ast_mentions(n->items[i], var))
            return true;
    return n->tail && ast_mentions(n->tail, var);
}
