/* SPDX-License-Identifier: Apache-2.0 */
/* Checks guards, bodies and the values in a `where`: variables must be bound, functions must exist and be allowed. */
#include <string.h>

#include "check.h"
#include "meant.h"

static bool is_bound(struct check *k, struct str name)
{
    for (size_t i = 0; i < k->names.count; i++)
        if (str_same(((struct ast *)k->names.items[i])->text, name))
            return true;
    return false;
}

bool check_lacks(struct check *k, const struct ast *var)
{
    const struct ast_probe *p = k->probe;
    const struct ast_clause *own = p->clauses;
    bool bound = false;

    if (!p->alternatives || !own || (var->from >= own->from + own->len && (!p->where || var->from < p->where_from)))
        return false;
    for (const struct ast_probe *x = p->alternatives; x; x = x->next)
        for (size_t i = 0; i < x->clauses[0].nhead; i++)
            bound |= ast_mentions(x->clauses[0].head[i], var->text);
    if (!bound)
        return false;
    const size_t last = p->nselectors - 1;
    if (own->has_head)
        diag(k->c, own->head_from, own->head_len, "this alternative does not bind " STR_FMT, STR_ARG(var->text));
    else
        diag(k->c, p->selectors[last].from, p->selectors[last].len, "this alternative does not bind " STR_FMT,
             STR_ARG(var->text));
    return diag_note(k->c, "everything after the last alternative applies to all of them"), true;
}

static bool report_unbound(struct check *k, const struct ast *n)
{
    struct guess g;

    if (check_lacks(k, n))
        return false;
    guess_init(&g, n->text);
    for (size_t i = 0; i < k->names.count; i++)
        guess_offer(&g, ((struct ast *)k->names.items[i])->text);
    diag(k->c, n->from, n->len, "unbound variable " STR_FMT, STR_ARG(n->text));
    const char *property = k->place == k->guard ? meant_property(k->c, n->text) : NULL;
    if (property)
        return diag_note(k->c, "%s", property);
    if (k->probe->surface == SPEC_ELIXIR)
        diag_note(k->c, "bind it in the argument list; an atom is :" STR_FMT, STR_ARG(n->text));
    else
        diag_note(k->c, "bind it in the argument list");
    return diag_guess(k->c, &g);
}

static bool check_items(struct check *k, struct ast *n)
{
    for (size_t i = 0; i < n->count; i++)
        if (!(n->items[i] = check_expr(k, n->items[i])))
            return false;
    return !n->tail || (n->tail = check_expr(k, n->tail));
}

bool check_keys_differ(struct check *k, const struct ast *map, const struct ast *written)
{
    for (size_t i = 0; i < map->count; i += 2)
        for (size_t j = 0; map->items[i]->known && j < i; j += 2)
            if (map->items[j]->known && term_equal(map->items[i]->known, map->items[j]->known))
                return diag(k->c, written->items[i]->from, written->items[i]->len, "this key is given twice");
    return true;
}

void check_assigns(struct comp *c, const struct ast *map)
{
    if (map->assigns)
        warn(c, map->from, map->len, false, "':=' is read as '=>' in a term: the whole map must be equal");
}

void check_known(struct ast *n, struct arena *a)
{
    term_t *items = arena_alloc(a, n->count * sizeof(*items) + 1);

    for (size_t i = 0; i < n->count; i++)
        if (!(items[i] = n->items[i]->known))
            return;
    if (!n->tail || n->tail->known)
        n->known = ast_term(a, n, items, n->tail ? n->tail->known : NULL);
}

static struct ast *check_container(struct check *k, struct ast *n)
{
    struct ast *out = check_new(k, n->type, n);

    check_assigns(k->c, n);
    out->items = arena_alloc(k->c->arena, n->count * sizeof(*out->items) + 1);
    if (n->count)
        memcpy(out->items, n->items, n->count * sizeof(*out->items));
    out->count = n->count;
    out->tail = n->tail;
    out->paren = n->paren;
    if (!check_items(k, out))
        return NULL;
    out->types = n->type == A_TUPLE ? TY_TUPLE : n->type == A_MAP ? TY_MAP : TY_LIST;
    if (n->type == A_MAP && !check_keys_differ(k, out, n))
        return NULL;
    check_known(out, k->c->arena);
    return out;
}

/* ---- calls ---- */

static const char *where_allowed(unsigned places, unsigned place)
{
    if (!(place & PLACE_ANY_GUARD))
        return places & PLACE_BODY_CALL ? "it is only for probes of calls" : "it is not available here";
    return places & PLACE_ANY_GUARD ? "it is not available for this kind of event" : "it is only allowed after ->";
}

static struct ast *report_wrong_count(struct check *k, const struct ast *n)
{
    enum fn fn = fn_named(n->text, FN_NONE), other = fn_named(n->text, fn);
    const struct fn_row *row = fn_row(fn);

    diag(k->c, n->from, n->len, "%s takes %d argument%s, not %zu", row->name, row->least, PLURAL(row->least), n->count);
    if (other != FN_NONE)
        diag_note(k->c, "or %d", fn_row(other)->least);
    else if (row->most != row->least)
        diag_note(k->c, row->most > 9 ? "or more" : "or %d", row->most);
    return NULL;
}

static struct ast *report_unknown_function(struct check *k, const struct ast *n)
{
    struct guess g;

    guess_init(&g, n->text);
    for (int i = 0; i < FN_COUNT; i++)
        if (fn_row((enum fn)i)->places & k->place && fn_row((enum fn)i)->name[0] >= 'a')
            guess_offer(&g, str_of(fn_row((enum fn)i)->name));
    if (n->module.len) {
        const struct str called = {k->c->text.at + n->from, n->called ? n->called : n->len};
        diag(k->c, n->from, n->len, STR_FMT "/%zu cannot be called by a match specification", STR_ARG(called),
             n->count);
        return NULL;
    }
    if (k->probe->surface == SPEC_ELIXIR)
        check_elixir_names(&g);
    diag(k->c, n->from, n->len, STR_FMT "/%zu is not a match specification function", STR_ARG(n->text), n->count);
    meant_note(k->c, MEANT_FUNCTION, n->text, &g);
    return NULL;
}

/* Parses pid(0,84,0), the notation of the shells. */
static struct ast *pid_literal(struct check *k, const struct ast *n)
{
    uint64_t v[3];

    for (size_t i = 0; i < 3; i++) {
        const struct ast *arg = n->items[i];
        if (arg->type != A_LIT || arg->value->type != TERM_INT || arg->value->integer < 0 ||
            arg->value->integer > UINT32_MAX) {
            diag(k->c, arg->from, arg->len, "pid(0, Id, Serial) takes numbers");
            return NULL;
        }
        v[i] = (uint64_t)arg->value->integer;
    }
    if (v[0]) {
        diag(k->c, n->from, n->len, "this identifier belongs to another node");
        diag_note(k->c, "only pid(0, …) is valid on the traced node");
        return NULL;
    }
    struct term *t = arena_alloc(k->c->arena, sizeof(*t));
    t->type = TERM_PID;
    t->id = v[1];
    t->serial = (uint32_t)v[2];
    return check_lit(k, t, n);
}

/* Reads a record name as an argument of is_record: rec, mod#rec or #rec{}. */
static bool record_name(const struct ast *n, struct str *ret_module, struct str *ret_name)
{
    if (n->type == A_LIT && n->value->type == TERM_ATOM) {
        *ret_name = n->value->text;
        return true;
    }
    if (n->type == A_RECORD && !n->count) {
        *ret_module = n->module;
        *ret_name = n->text;
        return true;
    }
    return false;
}

/*
 * Expands is_record(T, rec) with the size from the definition. It also accepts redbug's order, with the record first.
 */
static struct ast *is_record(struct check *k, const struct ast *n)
{
    struct str module = {0}, name;
    struct lang_record record;
    bool later;
    bool first = n->items[0]->type == A_RECORD ||
                 (n->items[0]->type == A_LIT && n->items[1]->type != A_LIT && n->items[1]->type != A_RECORD);
    const struct ast *named = n->items[first ? 0 : 1];

    if (!record_name(named, &module, &name)) {
        diag(k->c, named->from, named->len, "is_record takes the name of a record");
        return NULL;
    }
    if (!check_record_of(k, module, name, named, &record, &later))
        return NULL;
    struct ast *value = check_expr(k, n->items[first ? 1 : 0]);
    if (!value)
        return NULL;
    struct ast *tag = check_lit(k, term_atom_n(k->c->arena, name), named);
    if (record.native.len)
        return CHECK_OP(k, FN_IS_RECORD, n, value, check_lit(k, term_atom_n(k->c->arena, record.native), named), tag);
    return CHECK_OP(k, FN_IS_RECORD, n, value, tag,
                    check_lit(k, term_int(k->c->arena, (int64_t)record.nfields + 1), named));
}

/* Expands is_record(T): in the term order, native records come after tuples and before maps. */
static struct ast *is_native(struct check *k, const struct ast *n)
{
    struct arena *a = k->c->arena;
    struct ast *value = check_native(k, n) ? check_expr(k, n->items[0]) : NULL;

    if (!value)
        return NULL;
    return CHECK_OP(k, FN_ANDALSO, n, CHECK_OP(k, FN_GT, n, value, check_lit(k, term_tuple(a, 0, NULL), n)),
                    CHECK_OP(k, FN_LT, n, value, check_lit(k, term_map(a, 0, NULL), n)),
                    CHECK_OP(k, FN_NOT, n, CHECK_OP(k, FN_IS_TUPLE, n, value)));
}

bool check_label(term_t t)
{
    if (t->type == TERM_INT)
        return t->integer >= -CHECK_SMALL && t->integer < CHECK_SMALL;
    return t->type == TERM_ATOM && !str_is(t->text, "$_") && !str_is(t->text, "$$");
}

bool check_label_wrong(struct check *k, size_t from, size_t len)
{
    diag(k->c, from, len, "a label must be a small integer, an atom, self or a variable");
    return diag_note(k->c, "the node crashes if it stores a computed label");
}

/* Rejects computed labels: the VM keeps a token's label without copying it, and a computed one crashes the node. */
static bool token_fits(struct check *k, struct ast *const *args)
{
    const struct ast *component = args[0], *label = args[1];

    if (component->type != A_LIT || !component->known || component->known->type != TERM_ATOM) {
        diag(k->c, component->from, component->len, "set_seq_token takes the name of a component");
        return diag_note(k->c, "a literal: label, serial, send, 'receive', print or timestamp");
    }
    if (!str_is(component->known->text, "label"))
        return true;
    if (label->type == A_VAR  ? !str_is(label->text, "$_") && !str_is(label->text, "$$")
        : label->type == A_OP ? label->op == FN_SELF
                              : (label->type == A_LIT || label->type == A_PIN) && check_label(label->value))
        return true;
    return check_label_wrong(k, label->from, label->len);
}

static struct ast *check_call(struct check *k, struct ast *n)
{
    const bool elixir = k->probe->surface == SPEC_ELIXIR;
    bool done = false;

    if (elixir) {
        struct ast *own = check_elixir(k, n, &done);
        if (done)
            return own;
    }
    if (n->module.len && !str_is(n->module, "erlang"))
        return report_unknown_function(k, n);
    if (str_is(n->text, "pid") && n->count == 3)
        return pid_literal(k, n);
    if (str_is(n->text, "is_record") && n->count == 2)
        return is_record(k, n);
    if (str_is(n->text, "is_record") && n->count == 1 && !elixir)
        return is_native(k, n);
    if (k->literal_dollars && !n->count && (str_is(n->text, "object") || str_is(n->text, "bindings"))) {
        struct ast *all = check_new(k, A_VAR, n);
        all->text = str_of(str_is(n->text, "object") ? "$_" : "$$");
        return all;
    }
    enum fn fn = fn_find(n->text, n->count);
    if (fn == FN_NONE)
        return fn_named(n->text, FN_NONE) != FN_NONE ? report_wrong_count(k, n) : report_unknown_function(k, n);
    if (!(fn_row(fn)->places & k->place)) {
        diag(k->c, n->from, n->len, "%s/%zu is not allowed here", fn_row(fn)->name, n->count);
        diag_note(k->c, "%s", where_allowed(fn_row(fn)->places, k->place));
        return NULL;
    }
    if ((fn == FN_DISPLAY || fn == FN_SET_TCW) && !k->c->opt->unsafe) {
        diag(k->c, n->from, n->len, "'%s' acts on the whole node", fn_row(fn)->name);
        diag_note(k->c, "--unsafe allows it");
        return NULL;
    }
    struct ast *items[4];
    struct ast **args = n->count > ARRAY_LEN(items) ? arena_alloc(k->c->arena, n->count * sizeof(*args)) : items;
    for (size_t i = 0; i < n->count; i++)
        if (!(args[i] = check_expr(k, n->items[i])))
            return NULL;
    if (fn == FN_SET_SEQ_TOKEN && !token_fits(k, args))
        return NULL;
    return check_op(k, (int)fn, n, n->count, args);
}

/* ---- operators that are only syntax ---- */

/* Joins [A] ++ [B] or "ab" ++ T to one list. The left list must be written out. */
struct ast *check_concat(struct check *k, struct ast *n, struct ast *left, struct ast *right)
{
    struct ast *out = check_new(k, A_LIST, n);
    struct ptrs items = {0};

    bool known = left->known && left->known->type == TERM_LIST && !left->known->tail;
    if (!known && (left->type != A_LIST || left->tail)) {
        diag(k->c, left->from, left->len, "'++' needs an explicit list before it");
        return NULL;
    }
    const size_t count = left->type == A_LIST ? left->count : left->known->count;
    for (size_t i = 0; i < count; i++)
        ptrs_add(&items, k->c->arena,
                 left->type == A_LIST ? left->items[i] : check_lit(k, left->known->items[i], left));
    if (!count)
        return right;
    if (right->type == A_LIST) {
        for (size_t i = 0; i < right->count; i++)
            ptrs_add(&items, k->c->arena, right->items[i]);
        out->tail = right->tail;
    } else if (!(right->known && right->known->type == TERM_LIST && !right->known->count)) {
        out->tail = right;
    }
    out->items = (struct ast **)(void *)items.items;
    out->count = items.count;
    out->types = TY_LIST;
    check_known(out, k->c->arena);
    return out->known ? check_lit(k, out->known, n) : out;
}

static struct ast *negate_if_not_in(struct check *k, const struct ast *n, struct ast *result)
{
    return result && n->op == OP_NOT_IN ? CHECK_OP(k, FN_NOT, n, result) : result;
}

/* Expands x in [a, b], x in 1..9//2 and x in ~w(a b) to comparisons. */
static struct ast *check_in(struct check *k, struct ast *n)
{
    struct ast *of = n->items[1], *value = check_expr(k, n->items[0]), *result;

    if (!value)
        return NULL;
    if (of->type == A_OP && of->op == OP_RANGE) {
        struct ast *low = check_expr(k, of->items[0]), *high = low ? check_expr(k, of->items[1]) : NULL;
        if (!high)
            return NULL;
        int64_t step;
        if (!check_step(k, of, &step))
            return NULL;
        struct ast *first = low;
        if (step ? step < 0
                 : low->known && high->known && low->known->type == TERM_INT && high->known->type == TERM_INT &&
                       low->known->integer > high->known->integer) {
            low = high;
            high = first;
        }
        struct ast *is_int = CHECK_OP(k, FN_IS_INTEGER, n, value);
        struct ast *above = CHECK_OP(k, FN_GE, n, value, low), *below = CHECK_OP(k, FN_LE, n, value, high);
        if (step == 0 || step == 1 || step == -1)
            return negate_if_not_in(k, n, CHECK_OP(k, FN_ANDALSO, n, is_int, above, below));
        struct ast *rest =
            CHECK_OP(k, FN_REM, n, CHECK_OP(k, FN_SUB, n, value, first), check_lit(k, term_int(k->c->arena, step), of));
        result = CHECK_OP(k, FN_ANDALSO, n, is_int, above, below,
                          CHECK_OP(k, FN_EQ_EXACT, n, rest, check_lit(k, term_int(k->c->arena, 0), of)));
    } else {
        struct ast *list = check_expr(k, of);
        if (!list)
            return NULL;
        size_t count = list->known && list->known->type == TERM_LIST ? list->known->count : list->count;
        if ((list->type != A_LIST && !(list->known && list->known->type == TERM_LIST)) || list->tail ||
            (list->known && list->known->tail)) {
            diag(k->c, of->from, of->len, "'in' needs an explicit list or range");
            return NULL;
        }
        struct ast **tests = arena_alloc(k->c->arena, count * sizeof(*tests) + 1);
        for (size_t i = 0; i < count; i++) {
            struct ast *item = list->type == A_LIST ? list->items[i] : check_lit(k, list->known->items[i], list);
            if (!(tests[i] = CHECK_OP(k, FN_EQ_EXACT, n, value, item)))
                return NULL;
        }
        result = !count       ? check_lit(k, term_bool(k->c->arena, false), n)
                 : count == 1 ? tests[0]
                              : check_op(k, FN_ORELSE, n, count, tests);
    }
    return negate_if_not_in(k, n, result);
}

static struct ast *check_operator(struct check *k, struct ast *n)
{
    switch (n->op) {
    case OP_CONCAT: {
        struct ast *left = check_expr(k, n->items[0]), *right = left ? check_expr(k, n->items[1]) : NULL;
        return right ? check_concat(k, n, left, right) : NULL;
    }
    case OP_IN:
    case OP_NOT_IN:
        return check_in(k, n);
    case OP_BINCAT: {
        struct ast *left = check_expr(k, n->items[0]), *right = left ? check_expr(k, n->items[1]) : NULL;
        if (!right)
            return NULL;
        if (left->known && right->known && left->known->type == TERM_BIN && right->known->type == TERM_BIN) {
            struct buf b = {0};
            buf_str(&b, left->known->text);
            buf_str(&b, right->known->text);
            struct ast *out = check_lit(k, term_bin(k->c->arena, b.data, b.len), n);
            buf_release(&b);
            return out;
        }
        diag(k->c, n->from, n->len, "a match specification cannot build a binary");
        return NULL;
    }
    case OP_LIKE:
    case OP_UNLIKE:
        diag(k->c, n->from, n->len, "regular expressions are not allowed in guards");
        diag_note(k->c, "put it after 'where'");
        return NULL;
    case OP_RANGE: {
        struct ast *map = check_range(k, n);
        if (map && map->count < 8) {
            diag(k->c, n->from, n->len, "a range of variables needs a step");
            diag_note(k->c, "as in first..last//1");
            return NULL;
        }
        return map ? check_expr(k, map) : NULL;
    }
    }
    if (!(fn_row((enum fn)n->op)->places & k->place)) {
        diag(k->c, n->from, n->len, "'%s' is not allowed here", fn_row((enum fn)n->op)->name);
        return NULL;
    }
    const bool lazy = n->op == FN_ANDALSO || n->op == FN_ORELSE;
    struct ast **args = arena_alloc(k->c->arena, n->count * sizeof(*args));
    for (size_t i = 0; i < n->count; i++) {
        k->spare += lazy && i;
        args[i] = check_expr(k, n->items[i]);
        k->spare -= lazy && i;
        if (!args[i])
            return NULL;
    }
    if ((n->op == FN_MINUS || n->op == FN_PLUS) && args[0]->type == A_LIT && args[0]->known) {
        struct ast *folded = check_op(k, n->op, n, 1, args);
        return folded && folded->known ? check_lit(k, folded->known, n) : folded;
    }
    return check_op(k, n->op, n, n->count, args);
}

/* Rejects a number with a unit outside of a filter. 1e5 and 0x10 look like such numbers and get a hint. */
bool check_unit(struct check *k, const struct ast *n)
{
    const struct str unit = n->text;
    const char *digits = k->c->text.at + n->from;

    diag(k->c, n->from, n->len, "a number with a unit is only allowed after 'where'");
    if (unit.len > 1 && (unit.at[0] | 32) == 'e' && unit.at[1] >= '0' && unit.at[1] <= '9')
        diag_note(k->c, "write " STR_FMT ".0" STR_FMT " for a float", (int)(n->len - unit.len), digits, STR_ARG(unit));
    else if (unit.len > 1 && (unit.at[0] | 32) == 'x' && n->value->type == TERM_INT && !n->value->integer)
        diag_note(k->c, "write 16#" STR_FMT, (int)unit.len - 1, unit.at + 1);
    return false;
}

struct ast *check_expr(struct check *k, struct ast *n)
{
    struct ast *out;

    switch (n->type) {
    case A_LIT:
        out = check_lit(k, n->value, n);
        if (n->value->type == TERM_ATOM && !k->literal_dollars && check_special(n->value) &&
            !str_is(n->value->text, "_")) {
            out->known = NULL; /* '$_', '$$' and '$1' are variables of the match specification */
            out->types = TY_ANY;
        }
        return out;
    case A_ANY:
        diag(k->c, n->from, n->len, "'_' has no value");
        diag_note(k->c, "name it in the argument list");
        return NULL;
    case A_VAR:
        if (!is_bound(k, n->text)) {
            report_unbound(k, n);
            return NULL;
        }
        out = check_new(k, A_VAR, n);
        out->text = n->text;
        return out;
    case A_PIN:
        out = check_new(k, A_PIN, n);
        out->text = n->text;
        if (!check_let(k, n, &out->value))
            return NULL;
        out->known = out->value;
        out->types = term_types(out->value);
        return out;
    case A_TUPLE:
    case A_LIST:
    case A_MAP:
        return check_container(k, n);
    case A_RECORD:
    case A_RECFIELD:
        return check_record(k, n, false);
    case A_BIN:
        return check_bin(k, n, false);
    case A_OP:
        return check_operator(k, n);
    case A_CALL:
        return check_call(k, n);
    case A_DOT: {
        struct ast *map = check_expr(k, n->items[0]);
        struct ast *key = check_lit(k, term_atom_n(k->c->arena, n->text), n);
        return map ? CHECK_OP(k, FN_MAP_GET, n, key, map) : NULL;
    }
    case A_MATCH:
        diag(k->c, n->from, n->len, "'=' does not compare");
        diag_note(k->c, "write == or =:=");
        return NULL;
    case A_UNIT:
        check_unit(k, n);
        return NULL;
    case A_NATIVE:
    case A_INDEX:
    case A_REGEX:
    case A_SEG:
        break;
    }
    diag(k->c, n->from, n->len, "this is not allowed here");
    return NULL;
}
