/* SPDX-License-Identifier: Apache-2.0 */
#include "record_lookup.h"

#include <string.h>

#include "../erlang/term_print.h"
#include "../node/arm.h"
#include "exprs.h"

struct record_lookup_known {
    struct record_lookup_known *next;
    struct str question;      /* the request to the node; the same request means the same record */
    struct str name, modules; /* names of the record and of its modules, for messages */
    bool plural;
    bool read;       /* the answer of the node has come */
    struct str text; /* text of the definition; empty: the modules have none */
    struct lang_lookup lookup;
};

void record_lookup_init(struct record_lookup *r)
{
    *r = (struct record_lookup){0};
    arena_init(&r->arena);
}

void record_lookup_release(struct record_lookup *r)
{
    arena_release(&r->arena);
    *r = (struct record_lookup){0};
}

void record_lookup_text(const struct record_lookup *r, struct buf *ret)
{
    for (const struct record_lookup_known *k = r->known; k; k = k->next)
        buf_str(ret, k->text);
}

/* ---- the answer ---- */

static struct str copy_str(struct arena *a, struct str s)
{
    return (struct str){arena_strndup(a, s.at, s.len), s.len};
}

static struct str kept_safe(struct arena *a, struct raw name)
{
    struct buf b = {0};
    struct str safe = copy_str(a, safe_view(safe_keep(&b, name)));

    buf_release(&b);
    return safe;
}

static struct str copy_cstr(struct arena *a, const char *text)
{
    return copy_str(a, (struct str){text, strlen(text)});
}

#define TEXT(s) (int)(s).len, (s).at

/* Appends a native record in the syntax that lang_read_hrl() reads. */
static void put_native(struct arena *a, struct str module, struct str name, struct buf *b)
{
    buf_puts(b, "-record #");
    lang_print_term(term_atom_n(a, module), b);
    buf_char(b, ':');
    lang_print_term(term_atom_n(a, name), b);
    buf_puts(b, "{}.\n");
}

/* Reads one definition for each module. All of them must be the same. */
static bool read_definitions(struct etf *r, struct arena *a, const struct record_lookup_known *w, struct str *ret_text,
                             struct str *ret_why)
{
    struct raw name, bytes;
    struct str module, first = {0};
    struct buf b = {0};
    size_t n;
    bool ok = etf_get_list(r, &n);

    for (size_t i = 0; ok && i < n; i++) {
        struct etf fields;
        ok = etf_get_tuple(r, 2) && etf_get_bin(r, &name) && etf_get_bin(r, &bytes);
        if (!ok)
            break;
        module = kept_safe(a, name);
        etf_open(&fields, bytes.at, bytes.len);
        buf_clear(&b);
        if (!bytes.len)
            put_native(a, module, w->name, &b);
        if (bytes.len && !lang_debug_record(w->name, fields, &b))
            *ret_why = copy_cstr(a, arena_printf(a, "the definition of record %.*s in %.*s is malformed", TEXT(w->name),
                                                 TEXT(module)));
        else if (!first.len) {
            first = module;
            *ret_text = copy_str(a, buf_view(&b));
        } else if (ret_text->len != b.len || memcmp(ret_text->at, b.data, b.len))
            *ret_why = copy_cstr(a, arena_printf(a, "record %.*s is not the same in %.*s and %.*s: write %.*s#%.*s{}",
                                                 TEXT(w->name), TEXT(first), TEXT(module), TEXT(first), TEXT(w->name)));
    }
    buf_release(&b);
    return ok && (!n || etf_get_nil(r));
}

static bool read_names(struct etf *r, struct arena *a, const struct str **ret_names, size_t *ret_count)
{
    struct raw name;
    size_t n;

    if (!etf_get_list(r, &n))
        return false;
    struct str *names = arena_alloc(a, n * sizeof(*names) + 1);
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_bin(r, &name))
            return false;
        names[i] = kept_safe(a, name);
    }
    *ret_names = names;
    *ret_count = n;
    return !n || etf_get_nil(r);
}

/* Reads the answer {[{Module, Fields}], [Name], [Module]}. */
bool record_lookup_read(struct record_lookup *r, struct etf t, struct err *e)
{
    struct record_lookup_known *w = r->wanted;
    struct lang_lookup *l = &w->lookup;
    struct arena *a = &r->arena;
    const struct str *without;
    size_t nwithout;

    r->wanted = NULL;
    if (!etf_get_tuple(&t, 3) || !read_definitions(&t, a, w, &w->text, &l->why) ||
        !read_names(&t, a, &l->names, &l->nnames) || !read_names(&t, a, &without, &nwithout))
        return err_set(e, ERR_RUN, "the node's answer about a record is malformed");
    if (!w->text.len && !l->why.len && nwithout)
        l->why = copy_cstr(a, arena_printf(a, "unknown record '%.*s': %.*s%s on the node ha%s no debug information",
                                           TEXT(w->name), TEXT(without[0]), nwithout > 1 ? " and others" : "",
                                           nwithout > 1 ? "ve" : "s"));
    else if (!w->text.len && !l->why.len)
        l->why = copy_cstr(a, arena_printf(a, "%.*s ha%s no record %.*s", TEXT(w->modules), w->plural ? "ve" : "s",
                                           TEXT(w->name)));
    if (l->why.len)
        w->text = (struct str){0};
    w->read = true;
    return true;
}

/* ---- the question ---- */

static struct record_lookup_known *new_question(struct record_lookup *r, struct str question,
                                                const struct sel_name *modules, size_t nmodules, struct str name)
{
    struct record_lookup_known *k = arena_alloc(&r->arena, sizeof(*k));
    bool one = nmodules == 1 && modules[0].how == SEL_ATOM;

    *k = (struct record_lookup_known){.next = r->known,
                                      .question = copy_str(&r->arena, question),
                                      .name = copy_str(&r->arena, name),
                                      .plural = !one};
    k->modules = one ? copy_str(&r->arena, modules[0].text) : STR("these modules");
    return r->known = k;
}

enum lang_found record_lookup_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                   struct arena *a, struct lang_lookup *ret)
{
    struct record_lookup *r = data;
    struct buf request = {0};
    const struct lang_record *found;
    struct err ignored;
    size_t n;

    if (!nmodules) {
        ret->why = copy_cstr(a, arena_printf(a, "unknown record '%.*s': name its module, as in mod#%.*s{}", TEXT(name),
                                             TEXT(name)));
        return LANG_ABSENT;
    }
    struct arm_pattern *patterns = arena_alloc(a, nmodules * sizeof(*patterns));
    for (size_t i = 0; i < nmodules; i++)
        patterns[i] = exprs_pattern(&modules[i]);
    arm_record(&request, patterns, nmodules, name);

    struct record_lookup_known *k = r->known;
    while (k && !str_same(k->question, buf_view(&request)))
        k = k->next;
    if (!k)
        k = new_question(r, buf_view(&request), modules, nmodules, name);
    buf_release(&request);
    if (!k->read) {
        r->wanted = r->wanted ? r->wanted : k;
        return LANG_LATER;
    }
    *ret = k->lookup;
    if (!k->text.len || !lang_read_hrl(copy_str(a, k->text), a, &found, &n, &ignored) || n != 1)
        return LANG_ABSENT;
    ret->record = found[0];
    return LANG_FOUND;
}

bool record_lookup_compile(struct record_lookup *r, struct exprs *exprs, const struct what_opts *what,
                           const struct texts *texts, const struct texts *wheres, int otp, struct str *ret_wanted,
                           struct err *e)
{
    const char *by = exprs->by_text;

    exprs_release(exprs);
    exprs_init(exprs);
    exprs->by_text = by;
    exprs->find_record = record_lookup_find;
    exprs->find_data = r;
    bool ok = exprs_compile(exprs, what, texts, wheres, otp, e);
    *ret_wanted = r->wanted ? r->wanted->question : (struct str){0};
    return ok;
}
