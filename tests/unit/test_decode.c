/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the decoding of frames to events: redefined names, flags, and malformed frames. */
#include "tap.h"

#include "erlang/term_print.h"
#include "events/decode.h"
#include "framewriter.h"

static struct fw w;
static struct event_node node;
static struct funs funs;
static struct decode_node shared;
static struct decode_ring ring;
static size_t at; /* offset of the next frame in the ring's bytes */

static const char *next(void)
{
    static struct buf out;
    struct decode_head head;
    struct decode_error bad;
    struct event e;
    const uint8_t *from = (const uint8_t *)w.r->bytes.data;

    buf_clear(&out);
    if (!decode_peek(&ring, from + at, from + w.r->bytes.len, &head, &bad) ||
        !decode_frame(&ring, &shared, from + at, &head, &e, &bad)) {
        buf_printf(&out, "bad: %s", bad.why);
        return buf_cstr(&out);
    }
    at += head.bytes;
    buf_printf(&out, "%s %.*s", event_kinds[e.kind].tag, (int)e.who->text_len, e.who->text);
    if (e.fun)
        buf_printf(&out, " %.*s|%.*s/%u", (int)e.fun->erl.len, e.fun->erl.at, (int)e.fun->elixir.len, e.fun->elixir.at,
                   e.arity);
    const uint8_t *t = e.terms.at;
    for (unsigned i = 0; i < e.nterms; i++) {
        buf_char(&out, ' ');
        t = erlang_print(&out, &e.env, t);
    }
    if (e.ms.at < e.ms.end) {
        buf_puts(&out, " ms ");
        erlang_print(&out, &e.env, e.ms.at);
    }
    return buf_cstr(&out);
}

static void start(void)
{
    decode_ring_release(&ring);
    decode_ring_init(&ring, 1);
    fw_release(&w);
    memset(&w, 0, sizeof(w));
    fw_ring(&w, 1);
    at = 0;
}

int main(void)
{
    funs_init(&funs);
    shared.node = &node;
    shared.funs = &funs;
    tracees_init(&shared.tracees);

    start();
    fw_call(&w, 1, 84, "lists", "seq", 2), fw_int(&w, 1), fw_int(&w, 10), fw_frame_end(&w);
    fw_call(&w, 2, 84, "lists", "seq", 2), fw_int(&w, 1), fw_int(&w, 11), fw_frame_end(&w);
    fw_call(&w, 3, 85, "Elixir.MyApp.Repo", "get!", 1), fw_atom(&w, "a b"), w.flags |= ETW_F_MS, fw_atom(&w, "true"),
        fw_frame_end(&w);
    fw_call(&w, 4, 85, "my mod", "Fun", 3), w.flags |= ETW_F_ARITY, fw_frame_end(&w);
    fw_frame(&w, ETW_RETURN_TO, 5, 85), fw_u16(&w, ETW_NO_FUNCTION), fw_u8(&w, 0), fw_frame_end(&w);
    fw_frame(&w, ETW_EXIT, 6, ETW_TRACEE_PORT | 7), fw_atom(&w, "a b"), fw_frame_end(&w);
    is_text(next(), "call <0.84.0> lists:seq|:lists.seq/2 1 10", "a call that defines its function");
    is_text(next(), "call <0.84.0> lists:seq|:lists.seq/2 1 11", "a call that refers to a defined function");
    is_text(next(), "call <0.85.0> 'Elixir.MyApp.Repo':'get!'|MyApp.Repo.get!/1 'a b' ms true",
            "a call with the result of a match specification");
    is_text(next(), "call <0.85.0> 'my mod':'Fun'|:\"my mod\".\"Fun\"/3", "a call without its arguments");
    is_text(next(), "return_to <0.85.0>", "a return_to without a function");
    is_text(next(), "exit #Port<0.7> 'a b'", "an exit of a port");

    /* One frame defines the same id twice, with different names. */
    start();
    fw_call(&w, 1, 84, "m", "f", 4);
    fw_atom_as(&w, 5, "one"), fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 5), fw_atom_as(&w, 5, "two"), fw_u8(&w, ETW_T_ATOM),
        fw_u16(&w, 5);
    fw_frame_end(&w);
    fw_call(&w, 2, 84, "m", "f", 1), fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 5), fw_frame_end(&w);
    fw_call(&w, 3, 84, "m", "f", 2), fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 5), fw_atom_as(&w, 5, "three"), fw_frame_end(&w);
    fw_call(&w, 4, 84, "m", "f", 1), fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 5), fw_frame_end(&w);
    fw_call(&w, 5, 84, "m", "f", 1), fw_u8(&w, ETW_T_ATOM), fw_u16(&w, 5), w.flags |= ETW_F_MS,
        fw_atom_as(&w, 5, "four"), fw_frame_end(&w);
    is_text(next(), "call <0.84.0> m:f|:m.f/4 one one two two", "an atom whose id is defined twice in a frame");
    is_text(next(), "call <0.84.0> m:f|:m.f/1 two", "the id keeps its last name");
    is_text(next(), "call <0.84.0> m:f|:m.f/2 two three", "an id that is used and then redefined in the same frame");
    is_text(next(), "call <0.84.0> m:f|:m.f/1 three", "the id has the new name in later frames");
    is_text(next(), "call <0.84.0> m:f|:m.f/1 three ms four",
            "an id that is redefined between the arguments and the result");

    start();
    fw_call(&w, 1, 84, "m", "f", 1), fw_frame_end(&w);
    is_text(next(), "bad: a term is missing", "fewer arguments than the arity says");
    start();
    fw_call(&w, 1, 84, "m", "f", 1), fw_int(&w, 1), fw_int(&w, 2), fw_frame_end(&w);
    is_text(next(), "bad: unused bytes in a frame", "more arguments than the arity says");
    start();
    fw_frame(&w, ETW_CALL, 1, 84), fw_u16(&w, 3), fw_u8(&w, 0), fw_frame_end(&w);
    is_text(next(), "bad: an undefined function", "an unknown function");
    start();
    fw_frame(&w, ETW_CALL, 1, 84), fw_u16(&w, ETW_FUNCTIONS), fw_u8(&w, 0), fw_frame_end(&w);
    is_text(next(), "bad: a function's id out of range", "a function's id out of range");
    start();
    fw_frame(&w, 40, 1, 84), fw_frame_end(&w);
    is_text(next(), "bad: unknown kind of frame", "an unknown kind");
    start();
    fw_frame(&w, ETW_LOST, 1, 84), fw_u64(&w, 1), fw_frame_end(&w);
    is_text(next(), "bad: a loss count of the wrong length", "a short count of losses");
    start();
    fw_u32(&w, ETW_HEAD(7, ETW_CALL, 0)), fw_u32(&w, 0);
    is_text(next(), "bad: a frame shorter than its header", "a short frame");
    start();
    fw_u32(&w, ETW_HEAD(9, ETW_CALL, 0)), fw_u32(&w, 0);
    is_text(next(), "bad: a frame longer than its section", "a long frame");

    struct str written = funs_get(&funs, raw_text("Elixir.M"), raw_bytes("\0", 1))->elixir;
    ok(!memchr(written.at, 0, written.len), "a function with the name NUL is not written as an operator");
    written = funs_get(&funs, raw_text("Elixir.M"), raw_text("<>"))->elixir;
    ok(written.len == 4 && !memcmp(written.at, "M.<>", 4),
       "a function with the name of an operator is written as an operator");
    const struct fun *other = funs_get(&funs, raw_text("Elixir.foo"), raw_text("f"));
    ok(!other->is_elixir && str_is(other->elixir, ":\"Elixir.foo\".f"), "a module that is no alias keeps its prefix");

    /* More processes than the table keeps. The table grows meanwhile. */
    start();
    struct tracee *t = tracees_at(&shared.tracees, 1000000);
    tracee_name(t, SAFE("kept"));
    bool known = true;
    for (uint64_t i = 0; i < 200000; i++) {
        tracees_at(&shared.tracees, 2000000 + i);
        if (i % 10000 == 0)
            known &= tracees_at(&shared.tracees, 1000000)->name_len == 4;
    }
    ok(known, "the table keeps a process that is seen again");
    ok(!tracees_find(&shared.tracees, 2000000), "the table forgets a process that is not seen again");
    tracee_name(tracees_at(&shared.tracees, 5),
                SAFE("0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"));
    is_number(tracees_at(&shared.tracees, 5)->name_len, 80, "a long process name is cut");

    decode_ring_release(&ring);
    fw_release(&w);
    tracees_release(&shared.tracees);
    funs_release(&funs);
    return tap_end();
}
