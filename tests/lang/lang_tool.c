/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles expressions from arguments or standard input and prints the results. The table tests and the oracles use it.
 *
 *   lang_tool [--format=text|erl|json] [--otp=N] [--unsafe] [--surface=elixir] [--hrl=FILE] [--let=NAME=TERM]
 *             [--dump=PASS] [--where] [--for=ARITY] EXPR
 *   lang_tool --lines --program      likewise, but prints {MatchSpecification, Program | none} for each expression
 *   lang_tool --lines [OPTIONS]      reads one expression per line; answers `ok TERMS` or `error TEXT`, and an empty
 *                                    line after each answer
 *   lang_tool --test FILE...         runs table files and prints TAP (see tests/lang/run)
 *   lang_tool --bench N EXPR
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../cli/ground/utf8.h"
#include "../../cli/lang/lang.h"

struct setup {
    struct lang_options opt;
    struct lang_let lets[16];
    enum lang_format format;
    bool where, program;
    const char *dump; /* a pass */
    int arity;
    struct arena arena;
};

static bool read_file(const char *name, struct buf *b)
{
    FILE *f = fopen(name, "rb");
    size_t n;

    if (!f)
        return false;
    while ((n = fread(buf_room(b, 4096), 1, 4096, f)) > 0)
        b->len += n;
    fclose(f);
    return true;
}

static struct str text_of(const char *s)
{
    return (struct str){s, strlen(s)};
}

static void print_err(const struct err *e, const char *prefix, struct buf *b)
{
    buf_printf(b, "%s%s\n", prefix, e->text);
    if (e->line[0]) {
        buf_printf(b, "  %s\n  ", e->line);
        for (size_t i = 0, n = utf8_width(e->line, e->from); i < n; i++)
            buf_char(b, ' ');
        size_t width = utf8_width(e->line + e->from, e->len);
        for (size_t i = 0; i < (width ? width : 1); i++)
            buf_char(b, '^');
        if (e->note[0])
            buf_printf(b, " %s", e->note);
        buf_char(b, '\n');
    }
    if (e->hint[0])
        buf_printf(b, "hint: %s\n", e->hint);
}

static void print_warnings(const struct spec *s, struct buf *b)
{
    for (size_t i = 0; i < s->nwarnings; i++)
        buf_printf(b, "%% %.*s: %.*s%s\n", (int)s->warnings[i].len, s->text.at + s->warnings[i].from,
                   (int)s->warnings[i].text.len, s->warnings[i].text.at, s->warnings[i].never ? " (never)" : "");
}

static void print_by(const struct spec_by *by, struct buf *b)
{
    for (size_t i = 0; i < by->nkeys; i++) {
        buf_puts(b, i ? ", " : by->late ? "by late " : "by ");
        buf_puts(b, by->keys[i].tag ? "tag of " : "");
        lang_print_where(by->keys[i].value, b);
    }
    for (size_t i = 0; i < by->naggregates; i++) {
        buf_printf(b, "%s%s%s", i ? ", " : ": ", by->aggregates[i].late ? "late " : "",
                   by_kind_names[by->aggregates[i].kind]);
        if (by->aggregates[i].value) {
            buf_puts(b, " of ");
            lang_print_where(by->aggregates[i].value, b);
        }
    }
    buf_char(b, '\n');
}

/* Prints the parts that the tables compare: the Erlang form, the pack, the `where`, the warnings. */
static void print_spec(struct setup *u, const struct spec *s, struct buf *b)
{
    static const char *const packs[] = {"clause", "node", "sender", "caller", "stack", "dump", "user"};

    if (u->arity >= 0) {
        struct spec one = *s;
        one.match_spec = spec_match_spec_for(s, u->arity, &u->arena);
        one.prefix = false;
        lang_explain(&one, LANG_ERL, b);
        return;
    }
    lang_explain(s, u->format, b);
    if (u->format != LANG_ERL)
        return;
    if (s->root)
        buf_puts(b, "root\n");
    if (s->inside.len)
        buf_printf(b, "inside %.*s\n", (int)s->inside.len, s->inside.at);
    if (s->npack) {
        buf_puts(b, "pack");
        for (size_t i = 0; i < s->npack; i++)
            buf_printf(b, " %s", packs[s->pack[i]]);
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < s->nwhere; i++) {
        buf_puts(b, s->where[i]->early ? "where early " : "where ");
        lang_print_where(s->where[i], b);
        buf_char(b, '\n');
    }
    for (size_t i = 0; i < s->nkeeps; i++) {
        buf_puts(b, "keeps ");
        lang_print_where(s->keeps[i], b);
        buf_char(b, '\n');
    }
    if (s->by)
        print_by(s->by, b);
    print_warnings(s, b);
}

static void answer(struct setup *u, struct str text, struct buf *b)
{
    struct err e = {0};
    struct buf dumped[LANG_PASSES] = {0}, *dumps[LANG_PASSES] = {0};

    for (size_t i = 0; i < LANG_PASSES; i++)
        if (u->dump && !strcmp(u->dump, lang_pass(i)->name))
            dumps[i] = &dumped[i];
    u->opt.dumps = dumps;
    if (u->where) {
        const struct where *w;
        if (lang_where(&u->opt, text, &u->arena, &w, &e)) {
            buf_puts(b, w->early ? "where early " : "where ");
            lang_print_where(w, b);
            buf_char(b, '\n');
        } else {
            print_err(&e, "etrace: ", b);
        }
    } else {
        struct spec_list list;
        if (lang_compile(&u->opt, text, &u->arena, &list, &e)) {
            for (size_t i = 0; i < LANG_PASSES; i++)
                buf_str(b, buf_view(&dumped[i]));
            for (size_t i = 0; i < list.count && !u->dump; i++)
                print_spec(u, list.items[i], b);
        } else {
            print_err(&e, "etrace: ", b);
        }
    }
    for (size_t i = 0; i < LANG_PASSES; i++)
        buf_release(&dumped[i]);
}

static bool option(struct setup *u, const char *arg)
{
    if (!strcmp(arg, "--format=text"))
        u->format = LANG_TEXT;
    else if (!strcmp(arg, "--format=erl"))
        u->format = LANG_ERL;
    else if (!strcmp(arg, "--format=json"))
        u->format = LANG_JSON;
    else if (!strncmp(arg, "--otp=", 6))
        u->opt.otp = atoi(arg + 6);
    else if (!strcmp(arg, "--unsafe"))
        u->opt.unsafe = true;
    else if (!strcmp(arg, "--surface=elixir"))
        u->opt.surface = SPEC_ELIXIR;
    else if (!strcmp(arg, "--where"))
        u->where = true;
    else if (!strncmp(arg, "--dump=", 7))
        u->dump = arena_printf(&u->arena, "%s", arg + 7);
    else if (!strcmp(arg, "--program"))
        u->program = true;
    else if (!strncmp(arg, "--for=", 6))
        u->arity = atoi(arg + 6);
    else if (!strncmp(arg, "--let=", 6)) {
        const char *eq = strchr(arg + 6, '=');
        struct err e;
        if (!eq || u->opt.nlets == 16)
            return false;
        struct lang_let *let = &u->lets[u->opt.nlets];
        let->name = (struct str){arena_strndup(&u->arena, arg + 6, (size_t)(eq - arg - 6)), (size_t)(eq - arg - 6)};
        if (!lang_term(text_of(arena_strndup(&u->arena, eq + 1, strlen(eq + 1))), u->opt.surface, &u->arena,
                       &let->value, &e)) {
            struct buf b = {0};
            print_err(&e, "", &b);
            fputs(buf_cstr(&b), stderr);
            buf_release(&b);
            return false;
        }
        u->opt.lets = u->lets;
        u->opt.nlets++;
    } else if (!strncmp(arg, "--hrl=", 6)) {
        struct buf file = {0};
        struct err e;
        if (!read_file(arg + 6, &file))
            return false;
        char *copy = arena_strndup(&u->arena, file.data, file.len);
        bool ok = lang_read_hrl((struct str){copy, file.len}, &u->arena, &u->opt.records, &u->opt.nrecords, &e);
        buf_release(&file);
        return ok;
    } else {
        return false;
    }
    return true;
}

static void setup_init(struct setup *u)
{
    *u = (struct setup){.format = LANG_ERL, .arity = -1};
    arena_init(&u->arena);
}

/* ---- tables ---- */

struct tally {
    int number, failed;
};

static void report(struct tally *t, const char *file, int line, struct str expr, struct str want, struct str got)
{
    bool ok = want.len == got.len && (!want.len || !memcmp(want.at, got.at, want.len));

    t->number++;
    t->failed += !ok;
    printf("%sok %d - %s:%d ", ok ? "" : "not ", t->number, file, line);
    for (size_t i = 0; i < expr.len && i < 60; i++)
        putchar(expr.at[i] == '\n' || expr.at[i] == '#' ? ' ' : expr.at[i]);
    putchar('\n');
    if (ok)
        return;
    printf("# wanted:\n");
    for (size_t i = 0; i < want.len;) {
        const char *nl = memchr(want.at + i, '\n', want.len - i);
        size_t n = nl ? (size_t)(nl - want.at) - i : want.len - i;
        printf("#   %.*s\n", (int)n, want.at + i);
        i += n + 1;
    }
    printf("# got:\n");
    for (size_t i = 0; i < got.len;) {
        const char *nl = memchr(got.at + i, '\n', got.len - i);
        size_t n = nl ? (size_t)(nl - got.at) - i : got.len - i;
        printf("#   %.*s\n", (int)n, got.at + i);
        i += n + 1;
    }
}

struct lines {
    const char *at, *end;
    int number;
};

static bool next_line(struct lines *l, struct str *ret)
{
    if (l->at >= l->end)
        return false;
    const char *nl = memchr(l->at, '\n', (size_t)(l->end - l->at));
    *ret = (struct str){l->at, (size_t)((nl ? nl : l->end) - l->at)};
    l->at = nl ? nl + 1 : l->end;
    l->number++;
    return true;
}

static bool starts(struct str s, const char *with)
{
    return s.len >= strlen(with) && !memcmp(s.at, with, strlen(with));
}

static bool whole(struct str s, const char *text)
{
    return s.len == strlen(text) && starts(s, text);
}

/*
 * Runs a table: blocks that are separated by empty lines. `#` starts a comment, `%% OPTIONS` sets the options of all
 * following blocks. A block is an expression and its expected output. A first line `%%FAIL` means that the output is an
 * error. An expression of several lines stands between the lines `<<<` and `>>>`. A line `= OPTIONS` after the
 * expression adds options for this block only.
 */
static void table(const char *file, struct tally *t)
{
    struct buf data = {0}, expr = {0}, want = {0}, got = {0}, options = {0}, own = {0};
    struct str line;

    if (!read_file(file, &data)) {
        printf("Bail out! cannot read %s\n", file);
        exit(1);
    }
    struct lines l = {data.data, data.data + data.len, 0};
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    while (next_line(&l, &line)) {
        if (!line.len || line.at[0] == '#')
            continue;
        if (starts(line, "%% ")) {
            buf_clear(&options);
            buf_add(&options, line.at + 3, line.len - 3);
            continue;
        }
        bool fail = whole(line, "%%FAIL");
        if (fail && !next_line(&l, &line))
            break;
        int number = l.number;
        buf_clear(&expr);
        buf_clear(&want);
        buf_clear(&got);
        buf_clear(&own);
        if (whole(line, "<<<")) {
            while (next_line(&l, &line) && !whole(line, ">>>")) {
                if (expr.len)
                    buf_char(&expr, '\n');
                buf_str(&expr, line);
            }
        } else {
            buf_str(&expr, line);
        }
        while (next_line(&l, &line) && line.len) {
            if (starts(line, "= ")) {
                buf_add(&own, line.at + 2, line.len - 2);
                continue;
            }
            buf_str(&want, line);
            buf_char(&want, '\n');
        }
        struct setup u;
        setup_init(&u);
        char *all = arena_printf(&u.arena, "%.*s %.*s", (int)options.len, options.data ? options.data : "",
                                 (int)own.len, own.data ? own.data : "");
        for (char *save = NULL, *word = strtok_r(all, " ", &save); word; word = strtok_r(NULL, " ", &save))
            if (!option(&u, word))
                buf_printf(&got, "bad option %s\n", word);
        answer(&u, buf_view(&expr), &got);
        bool failed = got.len > 8 && !memcmp(got.data, "etrace: ", 8);
        if (fail != failed)
            buf_puts(&got, fail ? "(did not fail)\n" : "(failed)\n");
        report(t, base, number, buf_view(&expr), buf_view(&want), buf_view(&got));
        arena_release(&u.arena);
    }
    buf_release(&data);
    buf_release(&expr);
    buf_release(&want);
    buf_release(&got);
    buf_release(&options);
    buf_release(&own);
}

static int lines_mode(struct setup *u)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    struct buf out = {0};

    while ((n = getline(&line, &cap, stdin)) > 0) {
        struct spec_list list;
        struct err e;
        struct arena a;
        arena_init(&a);
        buf_clear(&out);
        if (line[n - 1] == '\n')
            n--;
        if (lang_compile(&u->opt, (struct str){line, (size_t)n}, &a, &list, &e)) {
            buf_puts(&out, "ok ");
            for (size_t i = 0; i < list.count && !u->program; i++)
                lang_explain(list.items[i], LANG_ERL, &out);
            if (u->program) {
                const term_t program = spec_program(list.items[0], &a);
                lang_print_term(TUPLE(&a, list.items[0]->match_spec, program ? program : term_atom(&a, "none")), &out);
                buf_char(&out, '\n');
            }
        } else {
            buf_printf(&out, "error %s\n", e.text);
        }
        buf_char(&out, '\n');
        fwrite(out.data, 1, out.len, stdout);
        fflush(stdout);
        arena_release(&a);
    }
    buf_release(&out);
    free(line);
    return 0;
}

static int bench(struct setup *u, int rounds, const char *expr)
{
    struct timespec from, to;
    struct spec_list list;
    struct err e;

    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < rounds; i++) {
        struct arena a;
        arena_init(&a);
        if (!lang_compile(&u->opt, text_of(expr), &a, &list, &e)) {
            puts(e.text);
            arena_release(&a);
            return 1;
        }
        arena_release(&a);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double us = (double)(to.tv_sec - from.tv_sec) * 1e6 + (double)(to.tv_nsec - from.tv_nsec) / 1e3;
    printf("%.2f us each\n", us / rounds);
    return 0;
}

int main(int argc, char **argv)
{
    struct setup u;
    struct buf b = {0};
    int status = 0;

    if (argc > 2 && !strcmp(argv[1], "--test")) {
        struct tally t = {0};
        for (int i = 2; i < argc; i++)
            table(argv[i], &t);
        printf("1..%d\n", t.number);
        return t.failed != 0;
    }
    setup_init(&u);
    bool lines = false;
    int rounds = 0, i = 1;
    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--lines"))
            lines = true;
        else if (!strcmp(argv[i], "--bench") && i + 1 < argc)
            rounds = atoi(argv[++i]);
        else if (!option(&u, argv[i])) {
            fprintf(stderr, "lang_tool: bad option %s\n", argv[i]);
            return 2;
        }
    }
    if (lines) {
        status = lines_mode(&u);
    } else if (i < argc && rounds) {
        status = bench(&u, rounds, argv[i]);
    } else if (i < argc) {
        answer(&u, text_of(argv[i]), &b);
        fwrite(b.data, 1, b.len, stdout);
        status = b.len > 8 && !memcmp(b.data, "etrace: ", 8) ? 2 : 0;
    }
    buf_release(&b);
    arena_release(&u.arena);
    return status;
}
