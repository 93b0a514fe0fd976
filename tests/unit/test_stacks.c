/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which frames of the views of stacks are the same frame, and how a view names them. */
#include "compiled.h"

#define MS UINT64_C(1000000)

static const char *shown(struct fw *w, const char *probe, const char *view, enum terms_style terms)
{
    static struct buf got;
    const struct look look = {.terms = terms};

    shown_by(w, probe, NULL, view, &look, &got);
    *w = (struct fw){0};
    return buf_cstr(&got);
}

static void begin(struct fw *w)
{
    fw_begin(w);
    fw_hello(w, 1, "shop@h1");
    fw_ring(w, 1);
}

static void mfa(struct fw *w, const char *m, const char *f, int64_t arity)
{
    fw_tuple(w, 3), fw_atom(w, m), fw_atom(w, f), fw_int(w, arity);
}

/* A call m:f(1) from the function caller/1 of the same module. */
static void call(struct fw *w, uint64_t ms, const char *m, const char *f, const char *caller)
{
    fw_call(w, ms * MS, PID(1), m, f, 1);
    fw_int(w, 1);
    w->flags |= ETW_F_MS;
    fw_tuple(w, 1), mfa(w, m, caller, 1);
    fw_frame_end(w);
}

static void result(struct fw *w, uint64_t ms, const char *m, const char *f)
{
    fw_return_int(w, ms * MS, PID(1), m, f, 1);
}

/* run/1, which is not traced, calls order/1, and order/1 calls price/1 twice. */
static void order(struct fw *w, const char *m)
{
    begin(w);
    call(w, 1, m, "order", "run");
    call(w, 2, m, "price", "order"), result(w, 3, m, "price");
    call(w, 4, m, "price", "order"), result(w, 5, m, "price");
    result(w, 6, m, "order");
}

int main(void)
{
    static const char callers[] = "_:_/1 -> return, caller", traces[] = "_:_/1 -> stack";
    struct fw w = {0};

    order(&w, "shop");
    is_text(shown(&w, callers, "callgrind", TERMS_AUTO),
            "# callgrind format\nversion: 1\ncreator: etrace\npositions: line\nevents: ns\nsummary: 5000000\n"
            "\nfl=???\nfn=(17) shop:run/1\n0 0\ncfi=???\ncfn=(4) shop:order/1\ncalls=1 0\n0 5000000\n"
            "\nfl=???\nfn=(4)\n0 3000000\ncfi=???\ncfn=(28) shop:price/1\ncalls=2 0\n0 2000000\n"
            "\nfl=???\nfn=(28)\n0 2000000\n\ntotals: 5000000\n",
            "a caller and a call of the same function are one frame");

    order(&w, "Elixir.Shop");
    ok(strstr(shown(&w, callers, "callgrind", TERMS_AUTO), "fn=(17) Shop.run/1\n0 0\ncfi=???\ncfn=(4) Shop.order/1\n"),
       "a function of Elixir has the language of its module");
    order(&w, "Elixir.Shop");
    ok(strstr(shown(&w, callers, "callgrind", TERMS_ERLANG),
              "fn=(26) 'Elixir.Shop':run/1\n0 0\ncfi=???\ncfn=(4) 'Elixir.Shop':order/1\ncalls=1 0\n0 5000000\n"
              "\nfl=???\nfn=(4)\n0 3000000\ncfi=???\ncfn=(46) 'Elixir.Shop':price/1\n"),
       "callers and calls are named in the same style");

    begin(&w);
    call(&w, 1, "shop", "serve", "run");
    fw_ring(&w, ETW_META_RING);
    fw_frame(&w, ETW_NOTICE, 2 * MS, 0);
    fw_atom(&w, "endless"), mfa(&w, "shop", "serve", 1), fw_frame_end(&w);
    fw_ring(&w, 1);
    call(&w, 3, "shop", "price", "serve"), result(&w, 4, "shop", "price");
    ok(!strncmp(shown(&w, callers, "folded", TERMS_AUTO), "shop:price/1 1000000\n", 21),
       "an endless function is closed by its name");

    begin(&w);
    for (uint64_t i = 1; i <= 2; i++) {
        fw_call(&w, i * MS, PID(1), "shop", "price", 1);
        fw_int(&w, 1);
        w.flags |= ETW_F_MS;
        fw_tuple(&w, 1), fw_tag(&w, ETW_T_LIST), mfa(&w, "shop", "order", 1);
        fw_tuple(&w, 3), fw_atom(&w, "Elixir.Shop"), fw_atom(&w, "run");
        if (i == 1)
            fw_int(&w, 2);
        else
            fw_tag(&w, ETW_T_LIST), fw_atom(&w, "a"), fw_atom(&w, "b"), fw_tag(&w, ETW_T_END);
        fw_tag(&w, ETW_T_END);
        fw_frame_end(&w);
    }
    is_text(shown(&w, traces, "folded", TERMS_AUTO), "Shop.run/2;shop:order/1 2\n", "arguments count as an arity");

    return tap_end();
}
