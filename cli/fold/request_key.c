/* SPDX-License-Identifier: Apache-2.0 */
#include "request_key.h"

#include <stdlib.h>

#include "../events/mfa.h"
#include "../ground/mem.h"

#define DEPTH 3       /* limit for nested tuples of a shape */
#define ELEMENTS 10   /* limit for the elements of a tuple in a shape */
#define WIDTH_MAX 160 /* limit for a printed shape in bytes, without quotes; a longer shape keeps only its tag */
#define FUN_MAX 1024  /* limit for the text of a fun in bytes */

void request_keys_release(struct request_keys *s)
{
    free(s->items);
    buf_release(&s->bytes);
    buf_release(&s->next);
    table_release(&s->by_bytes);
    *s = (struct request_keys){0};
}

/* ---- terms ---- */

static void key_put_atom(struct buf *to, struct raw name)
{
    const uint16_t len = (uint16_t)name.len;

    buf_char(to, (char)ETW_T_ATOMTEXT);
    buf_add(to, &len, sizeof(len));
    buf_str(to, raw_view(name));
}

struct shape {
    struct buf *to;
    const struct term_env *env;
    bool coarse;  /* keep only the outermost tag */
    size_t width; /* bytes of the text so far */
};

static void key_put_shape(struct shape *s, const uint8_t *at, unsigned depth, bool is_tag);

static void key_put_elided(struct shape *s)
{
    buf_char(s->to, (char)ETW_T_ELIDED);
    s->width++;
}

/* Adds a tuple. A tuple with more than ELEMENTS elements ends with a mark after ELEMENTS elements: {a,_,…}. */
static void key_put_tuple(struct shape *s, const uint8_t *each, int64_t known, uint32_t arity, unsigned depth)
{
    const uint32_t shown = MIN(arity, ELEMENTS);

    buf_char(s->to, (char)(ETW_T_TUPLE0 + MIN(arity, ELEMENTS + 1)));
    s->width += 2 + MAX(shown, 1) - 1;
    for (uint32_t i = 0; i < shown; i++) {
        if (i >= known) {
            key_put_elided(s);
            continue;
        }
        if (i)
            each = wire_skip(each);
        key_put_shape(s, each, depth + 1, i == 0);
    }
    if (arity > ELEMENTS) {
        buf_char(s->to, (char)ETW_T_CUT);
        s->width += strlen(",…");
    }
}

/* Adds the shape of an Elixir struct, which is only its module. Returns false for another term. */
static bool key_put_struct(struct shape *s, const uint8_t *at)
{
    const uint32_t one = 1;
    uint32_t pairs;
    const uint8_t *key;
    struct raw module;
    const int64_t known = wire_map(at, &pairs, &key);

    for (int64_t i = 0; i < known; i++) {
        const uint8_t *value = wire_skip(key);
        if (wire_is_atom(s->env, key, "__struct__") && wire_atom(s->env, value, &module)) {
            buf_char(s->to, (char)ETW_T_MAP);
            buf_add(s->to, &one, sizeof(one));
            key_put_atom(s->to, raw_text("__struct__"));
            key_put_atom(s->to, module);
            s->width += module.len + strlen("%{}");
            return true;
        }
        key = wire_skip(value);
    }
    return false;
}

static void key_put_shape(struct shape *s, const uint8_t *at, unsigned depth, bool is_tag)
{
    uint32_t arity;
    const uint8_t *first;
    int64_t known;
    struct raw atom;

    if (is_tag && wire_atom(s->env, at, &atom)) {
        key_put_atom(s->to, atom);
        s->width += atom.len;
    } else if (depth < (s->coarse ? 1 : DEPTH) && (known = wire_tuple(at, &arity, &first)) >= 0) {
        key_put_tuple(s, first, known, arity, depth);
    } else if (!key_put_struct(s, at)) {
        key_put_elided(s);
    }
}

/* ---- the table ---- */

static uint32_t key_hash(enum request_key_kind kind, struct str bytes)
{
    return hash_text(hash_byte(HASH_BEGIN, (unsigned char)kind), bytes);
}

/* Finds the key of this kind with the bytes in s->next. */
static uint32_t key_find(const struct request_keys *s, enum request_key_kind kind)
{
    const struct str bytes = buf_view(&s->next);

    for (uint32_t step = 0, i; (i = table_next(&s->by_bytes, key_hash(kind, bytes), &step)) != TABLE_NONE;)
        if (s->items[i].kind == kind && str_same(bytes, request_key_bytes(s, i)))
            return i;
    return TABLE_NONE;
}

/* Adds a key with the bytes in s->next. Returns TABLE_NONE if the table is full. */
static uint32_t key_add(struct request_keys *s, enum request_key_kind kind)
{
    const struct str bytes = buf_view(&s->next);

    if (s->n == KEYS_MAX)
        return TABLE_NONE;
    s->items = mem_grow(s->items, &s->cap, s->n + 1, sizeof(*s->items));
    s->items[s->n] = (struct request_key){.kind = kind, .coarse = (uint32_t)s->n, .at = s->bytes.len, .len = bytes.len};
    buf_str(&s->bytes, bytes);
    table_add(&s->by_bytes, key_hash(kind, bytes), (uint32_t)s->n);
    return (uint32_t)s->n++;
}

static uint32_t key_get(struct request_keys *s, enum request_key_kind kind)
{
    const uint32_t found = key_find(s, kind);

    return found != TABLE_NONE ? found : key_add(s, kind);
}

/* Clears s->next for a new key. Adds the key 0, KEY_REST, if the table is empty. */
static void key_begin(struct request_keys *s)
{
    buf_clear(&s->next);
    if (!s->n)
        key_add(s, KEY_REST);
}

/* ---- keys ---- */

/* Returns the key of the coarse shape of a request, or TABLE_NONE. */
static uint32_t coarse_get(struct request_keys *s, const struct term_env *env, const uint8_t *at)
{
    struct shape shape = {.to = &s->next, .env = env, .coarse = true};

    key_begin(s);
    key_put_shape(&shape, at, 0, true);
    return key_get(s, KEY_SHAPE);
}

/* Writes the shape of a request to s->next. Returns the width of the shape when it is printed. */
static size_t key_begin_shape(struct request_keys *s, const struct term_env *env, const uint8_t *at)
{
    struct shape shape = {.to = &s->next, .env = env};

    key_begin(s);
    key_put_shape(&shape, at, 0, true);
    return shape.width;
}

uint32_t request_key_shape(struct request_keys *s, const struct term_env *env, const uint8_t *at)
{
    const size_t width = key_begin_shape(s, env, at);
    uint32_t key = key_find(s, KEY_SHAPE);

    if (key != TABLE_NONE)
        return request_key_now(s, key);
    const uint32_t coarse = coarse_get(s, env, at);
    if (coarse == TABLE_NONE)
        return 0;
    /* The coarse key counts very wide shapes and further variants, because otherwise each request could add a key. */
    if (width > WIDTH_MAX || s->items[coarse].variants > KEY_VARIANTS)
        return coarse;
    key_begin_shape(s, env, at);
    key = key_get(s, KEY_SHAPE);
    if (key == TABLE_NONE)
        return coarse;
    s->items[key].coarse = coarse;
    s->items[coarse].variants += key != coarse;
    return request_key_now(s, key);
}

uint32_t request_key_task(struct request_keys *s, const struct event *e, const uint8_t *mfa)
{
    struct mfa m;
    bool cut;

    if (!mfa_read(e, mfa, &m, NULL))
        return 0;
    const uint8_t *args = m.args, *first = args && wire_list(&args) ? wire_list_next(&args) : NULL;
    key_begin(s);
    if (raw_is(m.function, "apply") && first && *first == ETW_T_TEXT && first[1] == ETW_TEXT_FUN) {
        if (wire_u16(first + 2) > FUN_MAX)
            return 0;
        buf_add(&s->next, first, (size_t)(wire_token(first) - first));
    } else {
        const int64_t arity = mfa_arity(&m, &cut);
        buf_char(&s->next, (char)(ETW_T_TUPLE0 + 3));
        key_put_atom(&s->next, m.module);
        key_put_atom(&s->next, m.function);
        buf_char(&s->next, (char)ETW_T_INT64);
        buf_add(&s->next, &arity, sizeof(arity));
    }
    const uint32_t key = key_get(s, KEY_FUNCTION);
    return key == TABLE_NONE ? 0 : key;
}

static uint32_t server_get(struct request_keys *s, struct str name, bool is_atom)
{
    key_begin(s);
    buf_str(&s->next, name);
    const uint32_t key = key_get(s, KEY_SERVER);
    if (key == TABLE_NONE)
        return 0;
    s->items[key].is_atom |= is_atom;
    return key;
}

uint32_t request_key_module(struct request_keys *s, struct raw name)
{
    return server_get(s, raw_view(name), true);
}

uint32_t request_key_name(struct request_keys *s, struct safe name)
{
    struct str text = safe_view(name);
    const bool quoted = text.len > 2 && text.at[0] == '\'' && text.at[text.len - 1] == '\'';

    if (!quoted || memchr(text.at, '\\', text.len))
        return server_get(s, text, false);
    return server_get(s, (struct str){text.at + 1, text.len - 2}, true);
}

uint32_t request_key_pid(struct request_keys *s, struct safe pid)
{
    key_begin(s);
    buf_str(&s->next, safe_view(pid));
    uint32_t key = key_find(s, KEY_SERVER);
    if (key == TABLE_NONE && s->pids < KEY_PIDS) {
        s->pids++;
        key = key_add(s, KEY_SERVER);
    } else if (key == TABLE_NONE) {
        key_begin(s);
        key = key_get(s, KEY_PID);
    }
    return key == TABLE_NONE ? 0 : key;
}

uint32_t request_key_now(const struct request_keys *s, uint32_t key)
{
    const uint32_t coarse = s->items[key].coarse;

    return s->items[coarse].variants > KEY_VARIANTS ? coarse : key;
}

struct str request_key_bytes(const struct request_keys *s, uint32_t key)
{
    return (struct str){buf_view(&s->bytes).at + s->items[key].at, s->items[key].len};
}
