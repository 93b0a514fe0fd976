/* SPDX-License-Identifier: Apache-2.0 */
#include "request_text.h"

#include "../erlang/term_print.h"
#include "../events/names.h"

static const struct term_env no_env = {0}; /* keys need no environment, because their atoms are spelled out */

static void shape_put(struct buf *to, const struct printer *p, const uint8_t *at);

static void shape_put_tuple(struct buf *to, const struct printer *p, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *each;
    const int64_t known = wire_tuple(at, &arity, &each);

    buf_char(to, '{');
    for (int64_t i = 0; i < known; i++) {
        if (i)
            buf_puts(to, p == &printer_elixir ? ", " : ",");
        shape_put(to, p, each);
        each = wire_skip(each);
    }
    buf_puts(to, known < arity ? ",…}" : "}");
}

/* Prints %Module{}, in both languages. */
static void shape_put_struct(struct buf *to, const uint8_t *key)
{
    struct raw module;

    buf_char(to, '%');
    if (wire_atom(&no_env, wire_skip(key), &module))
        printer_elixir.atom(to, module);
    buf_puts(to, "{}");
}

static void shape_put(struct buf *to, const struct printer *p, const uint8_t *at)
{
    uint32_t n;
    const uint8_t *first;
    struct raw atom;

    if (wire_atom(&no_env, at, &atom))
        p->atom(to, atom);
    else if (wire_tuple(at, &n, &first) >= 0)
        shape_put_tuple(to, p, at);
    else if (wire_map(at, &n, &first) > 0)
        shape_put_struct(to, first);
    else
        buf_char(to, '_');
}

/* Prints {Module, Function, Arity} as a function, and a fun as a term. */
static void function_put(struct buf *to, const uint8_t *at)
{
    uint32_t elements;
    const uint8_t *module, *function;
    struct raw m, f;
    int64_t arity;

    if (wire_tuple(at, &elements, &module) < 0) {
        printer_elixir.term(to, &no_env, at);
        return;
    }
    function = wire_skip(module);
    if (wire_atom(&no_env, module, &m) && wire_atom(&no_env, function, &f) && wire_int(wire_skip(function), &arity)) {
        fun_elixir(to, m, f);
        buf_char(to, '/');
        print_i64(to, arity);
    }
}

void request_put_key(struct buf *to, const struct request_keys *keys, uint32_t key, bool elixir)
{
    const struct printer *p = elixir ? &printer_elixir : &printer_erlang;
    const struct str bytes = request_key_bytes(keys, key);
    const uint8_t *term = (const uint8_t *)bytes.at;

    switch (keys->items[key].kind) {
    case KEY_REST:
        buf_puts(to, "(other requests)");
        break;
    case KEY_SHAPE:
        shape_put(to, p, term);
        break;
    case KEY_FUNCTION:
        function_put(to, term);
        break;
    case KEY_PID:
        buf_puts(to, "(other processes)");
        break;
    case KEY_SERVER:
        if (keys->items[key].is_atom)
            p->atom(to, raw_of(bytes));
        else
            print_safe(to, raw_of(bytes));
        break;
    }
}

void request_put_busy(struct buf *to, const struct request_keys *keys, const struct request_busy *b, bool elixir)
{
    static const char *const names[][2] = {[WORK_CALL] = {"handle_call", "call"},
                                           [WORK_CAST] = {"handle_cast", "cast"},
                                           [WORK_INFO] = {"handle_info", "info"},
                                           [WORK_CONTINUE] = {"handle_continue", "continue"}};

    if (b->times > 1) {
        print_u64(to, b->times);
        buf_puts(to, " x ");
    }
    if (b->work != WORK_EVENT) {
        buf_puts(to, names[b->work][b->statem]);
        buf_char(to, '(');
    }
    request_put_key(to, keys, request_key_now(keys, b->shape), elixir);
    if (b->work != WORK_EVENT)
        buf_char(to, ')');
}

void request_put_process(struct buf *to, const struct tracee *t)
{
    buf_add(to, t->text, t->text_len);
    if (t->name_len) {
        buf_char(to, '(');
        buf_add(to, t->name, t->name_len);
        buf_char(to, ')');
    }
}

void request_put_ns(struct buf *to, int64_t ns)
{
    if (ns < 0)
        buf_char(to, '-');
    else
        print_duration(to, ns);
}
