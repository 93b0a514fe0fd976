/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes expressions, probe files, `where` conditions, terms and headers with arbitrary bytes: nothing may crash, hang
 * or leak. Each error has a text and a span inside its line, and each accepted input can be explained in every format.
 * The first byte selects the options.
 */
#include <stdlib.h>
#include <string.h>

#include "../../cli/erlang/term_print.h"
#include "../../cli/erlang/term_wire.h"
#include "../../cli/lang/lang.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void check_err(const struct err *e)
{
    must(e->status == ERR_USAGE && e->text[0]);
    must(e->from + e->len <= strlen(e->line) + 1);
}

/* Prints a term directly, and in the encoding of a node. Both must give the same text. */
static void print_both(term_t t, struct buf *out)
{
    const struct term_env env = {.atoms = NULL};
    struct buf wire = {0};
    struct wire_atoms none = {0};
    const uint8_t *end;
    const char *why;

    lang_print_term(t, out);
    term_to_wire(&wire, t);
    wire_frame(&none);
    const uint8_t *at = (const uint8_t *)wire.data;
    enum wire_found found = wire_check(&none, at, at + wire.len, 1, &end, &why);
    must(found != WIRE_BAD || wire.len > 65536 || strstr(why, "deep"));
    if (found != WIRE_BAD) {
        must(end == at + wire.len);
        erlang_print(out, &env, at);
    }
    wire_atoms_release(&none);
    buf_release(&wire);
}

static enum lang_found a_record(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                struct arena *a, struct lang_lookup *ret)
{
    static const struct str fields[] = {{"id", 2}, {"name", 4}};
    term_t *defaults = arena_alloc(a, 2 * sizeof(*defaults));

    (void)data;
    (void)modules;
    (void)nmodules;
    defaults[0] = term_int(a, 1);
    defaults[1] = NULL;
    ret->record = (struct lang_record){.name = name,
                                       .native = name.len == 3 ? STR("m") : STR(""),
                                       .fields = fields,
                                       .defaults = defaults,
                                       .nfields = 2};
    return name.len < 4 ? LANG_FOUND : name.len < 6 ? LANG_LATER : LANG_ABSENT;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int otps[] = {0, 25, 27, 29};
    struct lang_options opt = {.find_record = a_record};
    struct buf dumped[LANG_PASSES] = {0}, *dumps[LANG_PASSES], out = {0};
    struct spec_list list;
    struct arena a;
    struct err e;
    const struct where *w;
    const struct lang_record *records;
    size_t count;
    struct etf fields;
    term_t t;

    if (!size)
        return 0;
    arena_init(&a);
    opt.otp = otps[data[0] & 3];
    opt.unsafe = data[0] & 4;
    opt.surface = data[0] & 16 ? SPEC_ELIXIR : SPEC_ERLANG;
    struct lang_let lets[] = {{STR("N"), term_int(&a, 5)},
                              {STR("m"), term_map(&a, 1, (term_t[]){term_int(&a, 1), term_int(&a, 2)})}};
    opt.lets = lets;
    opt.nlets = 2;
    if (data[0] & 32) {
        for (size_t i = 0; i < LANG_PASSES; i++)
            dumps[i] = &dumped[i];
        opt.dumps = dumps;
    }
    /* An exact copy, so that the sanitizer reports a read past its end. */
    char *copy = malloc(size);
    memcpy(copy, data + 1, size - 1);
    copy = realloc(copy, size - 1 ? size - 1 : 1);
    struct str text = {copy, size - 1};

    if (lang_compile(&opt, text, &a, &list, &e)) {
        must(list.count > 0);
        for (size_t i = 0; i < list.count; i++) {
            const struct spec *s = list.items[i];
            for (int f = LANG_TEXT; f <= LANG_JSON; f++)
                lang_explain(s, (enum lang_format)f, &out);
            must(s->kind == SPEC_EVENT || s->match_spec);
            must((s->kind == SPEC_CALL) == (s->nselectors > 0));
            for (size_t j = 0; j < s->nwarnings; j++)
                must(s->warnings[j].from + s->warnings[j].len <= s->text.len);
            for (size_t j = 0; j < s->nselectors; j++)
                must(s->selectors[j].from + s->selectors[j].len <= s->text.len && s->selectors[j].arity_lo >= 0 &&
                     s->selectors[j].arity_hi <= SPEC_ARITY_MAX);
            if (s->kind == SPEC_CALL && s->match_spec->type == TERM_LIST) {
                buf_clear(&out);
                term_to_etf(&out, lang_localize(spec_match_spec_for(s, 3, &a), STR("n@h"), 7, &a));
            }
            buf_clear(&out);
        }
    } else {
        check_err(&e);
    }
    if (!lang_where(&opt, text, &a, &w, &e))
        check_err(&e);
    else
        lang_print_where(w, &out);
    if (!lang_term(text, opt.surface, &a, &t, &e))
        check_err(&e);
    else
        print_both(t, &out);
    lang_read_hrl(text, &a, &records, &count, &e);
    etf_open(&fields, data, size);
    buf_clear(&out);
    if (lang_debug_record(STR("r"), fields, &out))
        must(lang_read_hrl(buf_view(&out), &a, &records, &count, &e));

    free(copy);
    for (size_t i = 0; i < LANG_PASSES; i++)
        buf_release(&dumped[i]);
    buf_release(&out);
    arena_release(&a);
    return 0;
}
