/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <stdlib.h>

#include "../erlang/term_json.h"
#include "../ground/utf8.h"

#define FUNS_BYTES ((size_t)64 << 20)
#define NAME_BYTES (3 * 1020) /* limit for an atom in bytes: U+FFFD, three bytes, replaces each invalid byte */
#define FIRST 64u             /* initial capacity of each half of the table of processes; doubles up to HALF */
#define HALF 32768u           /* largest capacity of each half */

/* ---- functions ---- */

void funs_init(struct funs *f)
{
    *f = (struct funs){0};
    arena_init(&f->arena);
}

void funs_release(struct funs *f)
{
    free(f->items);
    table_release(&f->by_name);
    arena_release(&f->arena);
    *f = (struct funs){0};
}

static struct str names_keep(struct funs *f, struct buf *b)
{
    f->bytes += b->len + BUF_SHORT;
    memset(buf_room(b, BUF_SHORT), 0, BUF_SHORT);
    return (struct str){arena_strndup(&f->arena, b->data, b->len + BUF_SHORT), b->len};
}

static struct raw keep_raw(struct funs *f, struct raw s)
{
    f->bytes += s.len + 16;
    return raw_bytes(arena_strndup(&f->arena, raw_view(s).at, s.len), s.len);
}

/* Returns true if Elixir writes this function name without quotes: an identifier or an operator. */
static bool plain_elixir_name(struct str s)
{
    static const char operators[] = "+-*/<>=!&|^~@.%";
    size_t n = s.len, marks = 0;

    while (marks < n && memchr(operators, s.at[marks], sizeof(operators) - 1))
        marks++;
    if (marks || !n)
        return n && marks == n;
    if (n > 1 && (s.at[n - 1] == '?' || s.at[n - 1] == '!'))
        n--;
    for (size_t i = 0; i < n; i++) {
        char c = s.at[i];
        if (!((c >= 'a' && c <= 'z') || c == '_' || (i && ((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')))))
            return false;
    }
    return true;
}

static void put_elixir_name(struct buf *b, struct raw name)
{
    if (plain_elixir_name(raw_view(name)))
        buf_str(b, raw_view(name));
    else
        erlang_print_string(b, name, '"');
}

void module_elixir(struct buf *b, struct raw module)
{
    static const struct str prefix = {"Elixir.", 7};

    if (elixir_is_module(module)) {
        print_safe(b, raw_bytes(raw_view(module).at + prefix.len, module.len - prefix.len));
    } else {
        buf_char(b, ':');
        put_elixir_name(b, module);
    }
}

void fun_elixir(struct buf *b, struct raw module, struct raw name)
{
    module_elixir(b, module);
    buf_char(b, '.');
    put_elixir_name(b, name);
}

static struct raw replace_bad_utf8(struct buf *b, struct raw s)
{
    const char *at = raw_view(s).at, *end = at + s.len;

    buf_clear(b);
    while (at < end) {
        const char *from = at;
        if (utf8_next(&at, end) == UTF8_BAD)
            buf_utf8(b, 0xfffd);
        else
            buf_add(b, from, (size_t)(at - from));
    }
    return raw_of(buf_view(b));
}

static const struct fun *names_make(struct funs *f, uint32_t hash, struct raw module, struct raw name)
{
    struct fun *fun = arena_alloc(&f->arena, sizeof(*fun));
    struct buf b = {0};

    fun->hash = hash;
    fun->serial = (uint32_t)f->count;
    fun->module = keep_raw(f, module);
    fun->name = keep_raw(f, name);
    fun->is_elixir = f->elixir || elixir_is_module(module);

    erlang_print_atom(&b, module);
    buf_char(&b, ':');
    erlang_print_atom(&b, name);
    fun->erl = names_keep(f, &b);
    buf_clear(&b);
    fun_elixir(&b, module, name);
    fun->elixir = names_keep(f, &b);
    buf_clear(&b);
    json_put_string(&b, "m", module);
    json_put_string(&b, "f", name);
    fun->json = names_keep(f, &b);
    buf_release(&b);
    f->bytes += sizeof(*fun);

    f->items = mem_grow(f->items, &f->cap, f->count + 1, sizeof(*f->items));
    f->items[f->count++] = fun;
    table_add(&f->by_name, hash, fun->serial);
    return fun;
}

const struct fun *funs_get(struct funs *f, struct raw module, struct raw name)
{
    struct buf m = {0}, n = {0};
    bool bad = !utf8_valid(raw_view(module).at, module.len) || !utf8_valid(raw_view(name).at, name.len);

    if (bad) {
        module = replace_bad_utf8(&m, module);
        name = replace_bad_utf8(&n, name);
    }
    uint32_t hash = fun_hash(module, name);
    const struct fun *found = NULL;
    for (uint32_t step = 0, i; !found && (i = table_next(&f->by_name, hash, &step)) != TABLE_NONE;)
        if (raw_same(f->items[i]->module, module) && raw_same(f->items[i]->name, name))
            found = f->items[i];
    if (!found && f->bytes < FUNS_BYTES)
        found = names_make(f, hash, module, name);
    buf_release(&m);
    buf_release(&n);
    return found;
}

void funs_save(const struct funs *f, struct buf *to)
{
    state_number(to, f->count);
    for (size_t i = 0; i < f->count; i++) {
        state_text(to, raw_view(f->items[i]->module));
        state_text(to, raw_view(f->items[i]->name));
    }
}

bool funs_load(struct funs *f, struct state_in *in, const struct fun ***ret, size_t *ret_count)
{
    const size_t count = (size_t)state_read_count(in, (uint64_t)(in->end - in->at));
    const struct fun **funs = mem_alloc((count + 1) * sizeof(struct fun *));

    for (size_t i = 0; i < count && !in->bad; i++) {
        struct str module = state_read_text(in, NAME_BYTES), name = state_read_text(in, NAME_BYTES);
        funs[i] = in->bad ? NULL : funs_get(f, raw_of(module), raw_of(name));
        in->bad |= !funs[i];
    }
    *ret = funs;
    *ret_count = in->bad ? 0 : count;
    return !in->bad;
}

/* ---- processes and ports ---- */

static void half_init(struct tracees_half *h)
{
    *h = (struct tracees_half){.cap = FIRST};
    h->items = mem_alloc(h->cap * sizeof(*h->items));
}

void tracees_init(struct tracees *t)
{
    *t = (struct tracees){.generation = 1};
    half_init(&t->young);
}

void tracees_release(struct tracees *t)
{
    free(t->young.items);
    table_release(&t->young.by_id);
    free(t->old.items);
    table_release(&t->old.by_id);
    *t = (struct tracees){0};
}

static struct tracee *half_find(const struct tracees_half *h, uint64_t id)
{
    for (uint32_t step = 0, i; (i = table_next(&h->by_id, hash_u64(id), &step)) != TABLE_NONE;)
        if (h->items[i].id == id)
            return &h->items[i];
    return NULL;
}

struct tracee *tracees_at(struct tracees *t, uint64_t id)
{
    struct tracee *found = half_find(&t->young, id);
    struct tracee known;

    if (found)
        return found;
    const struct tracee *before = half_find(&t->old, id);
    if (before)
        known = *before;
    if (t->young.count == t->young.cap) {
        if (t->young.cap < HALF) {
            t->young.cap *= 2;
            t->young.items = mem_realloc(t->young.items, t->young.cap * sizeof(*t->young.items));
        } else {
            struct tracees_half oldest = t->old;
            t->old = t->young;
            t->young = oldest;
            if (t->young.items) {
                table_clear(&t->young.by_id);
                t->young.count = 0;
            } else {
                half_init(&t->young);
            }
        }
        t->generation++;
    }
    found = &t->young.items[t->young.count++];
    found->id = id;
    table_add(&t->young.by_id, hash_u64(id), t->young.count - 1);
    if (before) {
        *found = known;
    } else {
        found->text_len = (uint8_t)print_tracee(found->text, id);
        found->name_len = 0;
    }
    return found;
}

const struct tracee *tracees_find(const struct tracees *t, uint64_t id)
{
    const struct tracee *found = half_find(&t->young, id);

    return found ? found : half_find(&t->old, id);
}

static uint8_t fit_name(char to[TRACEE_NAME], struct safe name)
{
    size_t len = name.len;

    if (len > TRACEE_NAME) {
        len = TRACEE_NAME - 3;
        while (len && ((unsigned char)name.at[len] & 0xc0) == 0x80)
            len--;
    }
    memcpy(to, name.at, len);
    if (len < name.len) {
        memcpy(to + len, "…", 3);
        len += 3;
    }
    return (uint8_t)len;
}

void tracee_name(struct tracee *t, struct safe name)
{
    t->name_len = fit_name(t->name, name);
}

void registered_print(struct buf *to, struct raw name)
{
    static const char elixir[] = "Elixir.";

    if (name.len > strlen(elixir) && !memcmp(raw_view(name).at, elixir, strlen(elixir)))
        printer_elixir.atom(to, name);
    else
        erlang_print_atom(to, name);
}

uint8_t tracee_registered(char to[TRACEE_NAME], struct raw name)
{
    struct buf text = {0}, kept = {0};

    registered_print(&text, name);
    const uint8_t len = fit_name(to, safe_keep(&kept, raw_of(buf_view(&text))));
    buf_release(&text);
    buf_release(&kept);
    return len;
}

static void half_save(const struct tracees_half *h, struct buf *to)
{
    state_number(to, h->count);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct tracee *t = &h->items[i];
        state_number(to, t->id);
        state_text(to, (struct str){t->name, t->name_len});
    }
}

void tracees_save(const struct tracees *t, struct buf *to)
{
    half_save(&t->young, to);
    half_save(&t->old, to);
}

static void half_load(struct tracees_half *h, struct state_in *in)
{
    const uint32_t count = (uint32_t)state_read_count(in, MIN(HALF, (uint64_t)(in->end - in->at)));
    struct buf name = {0};

    if (count && !h->items)
        half_init(h);
    while (h->cap < count)
        h->cap *= 2;
    h->items = count ? mem_realloc(h->items, h->cap * sizeof(*h->items)) : h->items;
    while (h->count < count && !in->bad) {
        struct tracee *t = &h->items[h->count];
        t->id = state_read_number(in);
        t->text_len = (uint8_t)print_tracee(t->text, t->id);
        tracee_name(t, safe_keep(&name, raw_of(state_read_text(in, sizeof(t->name)))));
        table_add(&h->by_id, hash_u64(t->id), h->count++);
    }
    buf_release(&name);
}

bool tracees_load(struct tracees *t, struct state_in *in)
{
    half_load(&t->young, in);
    half_load(&t->old, in);
    t->generation++;
    return !in->bad;
}
