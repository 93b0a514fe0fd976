#include "records.h"

#include <string.h>

#include "../node/arm.h"
#include "asked.h"

struct records_known {
    struct records_known *next;
    struct str question; /* the request that was answered */
    struct str text;     /* of the definition; empty: there is none */
    struct lang_lookup lookup;
};

void records_init(struct records *r, struct question *ask)
{
    *r = (struct records){.ask = ask};
    arena_init(&r->arena);
}

void records_release(struct records *r)
{
    arena_release(&r->arena);
    *r = (struct records){0};
}

void records_text(const struct records *r, struct buf *ret)
{
    for (const struct records_known *k = r->known; k; k = k->next)
        buf_str(ret, k->text);
}

/* ---- the answer ---- */

struct answer {
    struct records *r;
    struct str name, modules;
    bool plural;
    struct records_known *known;
};

static struct str kept(struct arena *a, struct str s)
{
    return (struct str){arena_strndup(a, s.at, s.len), s.len};
}

static struct str said(struct arena *a, const char *text)
{
    return kept(a, (struct str){text, strlen(text)});
}

#define TEXT(s) (int)(s).len, (s).at

/* One definition for each module: they have to be the same. */
static bool read_definitions(struct etf *r, struct answer *w, struct str *ret_text, struct str *ret_why)
{
    struct arena *a = &w->r->arena;
    struct str module, bytes, first = {0};
    struct buf b = {0};
    size_t n;
    bool ok = etf_get_list(r, &n);

    for (size_t i = 0; ok && i < n; i++) {
        struct etf fields;
        ok = etf_get_tuple(r, 2) && etf_get_bin(r, &module) && etf_get_bin(r, &bytes);
        if (!ok)
            break;
        etf_open(&fields, bytes.at, bytes.len);
        buf_clear(&b);
        if (!bytes.len)
            *ret_why = said(a, arena_printf(a, "%.*s is a native record of %.*s, which match specifications cannot look into", TEXT(w->name), TEXT(module)));
        else if (!lang_debug_record(w->name, fields, &b))
            *ret_why = said(a, arena_printf(a, "the definition of record %.*s in %.*s cannot be read", TEXT(w->name), TEXT(module)));
        else if (!first.len) {
            first = module;
            *ret_text = kept(a, buf_view(&b));
        } else if (ret_text->len != b.len || memcmp(ret_text->at, b.data, b.len))
            *ret_why = said(a, arena_printf(a, "record %.*s is not the same in %.*s and %.*s: write %.*s#%.*s{}", TEXT(w->name), TEXT(first),
                                            TEXT(module), TEXT(first), TEXT(w->name)));
    }
    buf_release(&b);
    return ok && (!n || etf_get_nil(r));
}

static bool read_names(struct etf *r, struct arena *a, const struct str **ret_names, size_t *ret_count)
{
    struct str name;
    size_t n;

    if (!etf_get_list(r, &n))
        return false;
    struct str *names = arena_alloc(a, n * sizeof(*names) + 1);
    for (size_t i = 0; i < n; i++) {
        if (!etf_get_bin(r, &name))
            return false;
        names[i] = kept(a, name);
    }
    *ret_names = names;
    *ret_count = n;
    return !n || etf_get_nil(r);
}

/* {[{Module, Fields}], [Name], [Module]} */
static bool read_answer(struct etf r, void *into, struct err *e)
{
    struct answer *w = into;
    struct lang_lookup *l = &w->known->lookup;
    struct arena *a = &w->r->arena;
    const struct str *without;
    size_t nwithout;

    if (!etf_get_tuple(&r, 3) || !read_definitions(&r, w, &w->known->text, &l->why) || !read_names(&r, a, &l->names, &l->nnames) ||
        !read_names(&r, a, &without, &nwithout))
        return err_set(e, ERR_RUN, "the node's answer about a record cannot be read");
    if (!w->known->text.len && !l->why.len && nwithout)
        l->why = said(a, arena_printf(a, "record %.*s is not known: %.*s%s on the node ha%s no debug information", TEXT(w->name), TEXT(without[0]),
                                      nwithout > 1 ? " and others" : "", nwithout > 1 ? "ve" : "s"));
    else if (!w->known->text.len && !l->why.len)
        l->why = said(a, arena_printf(a, "%.*s ha%s no record %.*s", TEXT(w->modules), w->plural ? "ve" : "s", TEXT(w->name)));
    return true;
}

/* ---- the question ---- */

static struct records_known *ask(struct records *r, struct str question, const struct sel_name *modules, size_t nmodules, struct str name)
{
    struct records_known *k = arena_alloc(&r->arena, sizeof(*k));
    bool one = nmodules == 1 && modules[0].how == SEL_ATOM;
    struct answer answer = {r, name, one ? modules[0].text : STR("these modules"), !one, k};

    if (!question_ask(r->ask, question, QUESTION_MS, read_answer, &answer, &r->err))
        return NULL;
    if (k->lookup.why.len)
        k->text = (struct str){0};
    k->question = kept(&r->arena, question);
    k->next = r->known;
    return r->known = k;
}

enum lang_found records_find(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                             struct lang_lookup *ret)
{
    struct records *r = data;
    struct buf request = {0};
    const struct lang_record *found;
    struct err ignored;
    size_t n;

    if (!nmodules) {
        ret->why = said(a, arena_printf(a, "record %.*s is not known: name its module, as in mod#%.*s{}", TEXT(name), TEXT(name)));
        return LANG_ABSENT;
    }
    struct arm_pattern *patterns = arena_alloc(a, nmodules * sizeof(*patterns));
    for (size_t i = 0; i < nmodules; i++)
        patterns[i] = asked_pattern(&modules[i]);
    arm_record(&request, patterns, nmodules, name);

    struct records_known *k = r->known;
    while (k && (k->question.len != request.len || memcmp(k->question.at, request.data, request.len)))
        k = k->next;
    if (!k)
        k = ask(r, buf_view(&request), modules, nmodules, name);
    buf_release(&request);
    if (!k)
        return LANG_ABSENT;
    *ret = k->lookup;
    if (!k->text.len || !lang_read_hrl(kept(a, k->text), a, &found, &n, &ignored) || n != 1)
        return LANG_ABSENT;
    ret->record = found[0];
    return LANG_FOUND;
}
