/* Probes: expressions with their labels, and what the nodes are asked to trace for them. */
#include <stdio.h>
#include <stdlib.h>

#include "../commands/prepare.h"
#include "../events/recfile.h"
#include "../ground/mem.h"
#include "repl.h"

#define RECORD_MS 10000
#define PROMPT_MS 1000 /* then the next line can be typed, although a node has not answered */

/* ---- arming ---- */

static bool is_running(const struct probe *p)
{
    return !p->stopped && !p->gone;
}

static void words(const struct repl *r, struct texts *ret)
{
    size_t number = 0;

    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        if (!is_running(p))
            continue;
        for (; number < p->number; number++)
            texts_add(ret, NULL);
        texts_add(ret, p->text);
        number += p->nspecs;
    }
}

size_t repl_running(const struct repl *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->nprobes; i++)
        n += is_running(&r->probes[i]);
    return n;
}

/* Those who read it know no more than there is in it. */
static void put_probe(struct buf *to, const struct probe *p, bool labels, size_t *number)
{
    char text[24];

    if (labels || p->label[0] < '0' || p->label[0] > '9')
        recfile_spec_add(to, "label", (struct str){p->label, strlen(p->label)});
    if (p->number != *number) {
        snprintf(text, sizeof(text), "%zu", p->number);
        recfile_spec_add(to, "number", (struct str){text, strlen(text)});
    }
    recfile_spec_add(to, "expr", (struct str){p->text, strlen(p->text)});
    *number = p->number + p->nspecs;
}

/* As a recording has it: labels only where events could be mistaken. `told`: and those whose events may be on their way. */
static void put_specs(const struct repl *r, const struct asked *asked, bool told, struct buf *to)
{
    size_t count = 0, number = 0;

    for (size_t i = 0; i < asked->nheaders; i++)
        recfile_spec_add(to, "hrl", asked->headers[i]);
    recfile_spec_needs(to, r->base.options.what.needs);
    for (size_t i = 0; i < r->base.options.what.lets.count; i++)
        recfile_spec_add(to, "let", (struct str){r->base.options.what.lets.items[i], strlen(r->base.options.what.lets.items[i])});
    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        if (!is_running(p) && !(told && p->told))
            continue;
        count++;
        if (p->records)
            recfile_spec_add(to, "hrl", (struct str){p->records, strlen(p->records)});
    }
    for (size_t i = 0; i < r->nprobes; i++)
        if (is_running(&r->probes[i]) || (told && r->probes[i].told))
            put_probe(to, &r->probes[i], count > 1, &number);
}

static void forget(struct repl *r, size_t i)
{
    free(r->probes[i].label);
    free(r->probes[i].text);
    free(r->probes[i].records);
    memmove(&r->probes[i], &r->probes[i + 1], (r->nprobes - i - 1) * sizeof(*r->probes));
    r->nprobes--;
}

/* From here on, what is on its way is of those that run. */
static void forget_gone(struct repl *r)
{
    for (size_t i = r->nprobes; i-- > 0;) {
        r->probes[i].told = is_running(&r->probes[i]);
        if (r->probes[i].gone)
            forget(r, i);
    }
}

static struct arm_mark tell_scroll(struct repl *r, const struct asked *asked)
{
    struct arm_mark mark = {r->mark + 1, r->mark + 1};
    struct buf text = {0};

    for (size_t i = 0; i < r->nprobes; i++)
        if (r->probes[i].told && !is_running(&r->probes[i]))
            mark.last = mark.first + 1;
    put_specs(r, asked, true, &text);
    scroll_specs(r->base.scroll, mark.first, buf_view(&text));
    if (mark.last != mark.first) {
        buf_clear(&text);
        put_specs(r, asked, false, &text);
        scroll_specs(r->base.scroll, mark.last, buf_view(&text));
    }
    buf_release(&text);
    r->mark = mark.last;
    return mark;
}

static bool forget_fresh(struct repl *r);

/* What a node does not take is not asked for any more: the latest probe, or all of them. */
void repl_go_without(struct repl *r, const struct err *e)
{
    repl_fail(&r->base, e);
    if (!forget_fresh(r))
        for (size_t i = 0; i < r->nprobes; i++)
            r->probes[i].stopped = true;
    repl_arm(r);
}

static bool begin(struct repl *r, const struct texts *all, struct err *e)
{
    const struct texts none = {0};
    struct asked asked;
    bool later = false;

    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &r->base.options.what, all, &none, 0, e);
    if (ok) {
        struct arm_mark mark = tell_scroll(r, &asked);
        forget_gone(r);
        run_arm(&r->run, &r->base.options.what, all, mark);
    }
    asked_release(&asked);
    return ok;
}

/* From here on the nodes go their ways; what they refuse comes to repl_settle(). */
static bool arm(struct repl *r, struct err *e)
{
    struct texts all = {0};

    r->until = -1;
    r->refused = false;
    for (size_t i = 0; i < PEERS_MAX; i++)
        r->nodes[i].alone = false;
    r->armed = r->arming = repl_running(r);
    if (!r->armed) {
        run_disarm(&r->run);
        forget_gone(r);
        return true;
    }
    words(r, &all);
    bool ok = begin(r, &all, e);
    texts_release(&all);
    return ok;
}

bool repl_arm_all(struct repl *r, int64_t patience_ms, struct err *e)
{
    int64_t until = patience_ms < 0 ? -1 : loop_now() + patience_ms;
    bool interrupted = false;

    r->asking = true;
    bool ok = arm(r, e);
    while (ok && run_preparing(&r->run) && !r->refused && !r->base.leaving && !interrupted && (until < 0 || loop_now() < until)) {
        repl_step(&r->base, until);
        interrupted = repl_interrupted(&r->base);
    }
    r->asking = false;
    repl_wake(&r->base); /* what came meanwhile */
    if (interrupted)
        return err_set(e, ERR_RUN, "interrupted before every node has answered");
    if (ok && r->refused)
        *e = r->refusal;
    ok = ok && !r->refused;
    r->refused = false;
    return ok;
}

void repl_arm(struct repl *r)
{
    struct err e;

    if (!arm(r, &e))
        repl_go_without(r, &e);
}

/* What no node has taken yet is what a refusal is about. */
static bool forget_fresh(struct repl *r)
{
    bool any = false;

    for (size_t i = 0; i < r->nprobes; i++) {
        struct probe *p = &r->probes[i];
        any |= p->fresh && !p->gone;
        p->gone |= p->fresh;
    }
    return any;
}

void repl_arm_peer(struct repl *r, struct peer *p)
{
    struct texts all = {0};

    words(r, &all);
    r->nodes[p->index].alone = true;
    if (all.count && r->armed)
        run_arm_peer(&r->run, p, &r->base.options.what, &all, (struct arm_mark){r->mark, r->mark});
    texts_release(&all);
}

/* ---- probes ---- */

static struct probe *find(struct repl *r, const char *label)
{
    for (size_t i = 0; i < r->nprobes; i++)
        if (!r->probes[i].gone && !strcmp(r->probes[i].label, label))
            return &r->probes[i];
    return NULL;
}

/* The carets stand under the line as it was typed, where that is one line of the terminal. */
static void wrong(struct repl *r, const char *expr, struct err *e)
{
    static const char prompt[] = "etrace> ";
    const char *line = buf_cstr(&r->typed);
    size_t skipped = (size_t)(expr - r->typed_at);

    if (!r->base.line || !e->line[0] || strcmp(e->line, expr) || strchr(line, '\n') ||
        line_column(r->base.line, prompt, line, strlen(line)) >= line_width(r->base.line)) {
        repl_fail(&r->base, e);
        return;
    }
    struct buf b = {0};
    repl_options_reword(e);
    size_t from = line_column(r->base.line, prompt, line, skipped + MIN(e->from, strlen(expr)));
    size_t to = line_column(r->base.line, prompt, line, MIN(skipped + e->from + e->len, strlen(line)));
    bool colour = r->base.ctx->color_talk;
    buf_printf(&b, "%*s%s", (int)from, "", colour ? "\033[1;31m" : "");
    for (size_t i = from; i < MAX(to, from + 1); i++)
        buf_char(&b, '^');
    buf_printf(&b, "%s%s%s\n", colour ? "\033[m" : "", e->note[0] ? " " : "", e->note);
    line_above(r->base.line, buf_view(&b));
    buf_release(&b);
    e->line[0] = 0;
    repl_fail(&r->base, e);
}

static bool ask_for_record(struct repl *r, struct peer *p, struct records *records, struct str request, struct err *e)
{
    struct buf told = {0};
    struct etf answer;

    while (run_arming(&r->run) && !r->base.leaving && !r->base.ctx->interrupts) /* a node is asked one thing at a time */
        repl_step(&r->base, -1);
    bool ok = peer_request(p, request, RECORD_MS, &told, e);
    while (ok && peer_waits(p) && !r->base.leaving && !r->base.ctx->interrupts)
        repl_step(&r->base, -1);
    if (ok && repl_interrupted(&r->base))
        ok = err_set(e, ERR_RUN, "%s has not answered yet", peer_name(p));
    etf_open(&answer, told.data, told.len);
    ok = ok && peer_answer(p, e) && records_read(records, answer, e);
    p->into = NULL;
    buf_release(&told);
    return ok;
}

/* What the node that commands ask knows of the records in it, as text of a header; later on each node is asked for itself. */
static bool find_records(struct repl *r, const struct texts *one, struct buf *ret, struct err *e)
{
    struct peer *p = repl_current(r);
    const struct texts none = {0};
    struct records records;
    struct asked asked;
    struct str wanted;
    bool ok;

    if (!p || p->state != PEER_UP)
        return err_set(e, ERR_NODE, "no node is attached that could be asked for the record");
    records_init(&records);
    asked_init(&asked);
    do {
        ok = records_compile(&records, &asked, &r->base.options.what, one, &none, session_node(p->session)->otp, &wanted, e);
        if (wanted.len)
            ok = ask_for_record(r, p, &records, wanted, e);
    } while (ok && wanted.len);
    asked_release(&asked);
    records_text(&records, ret);
    records_release(&records);
    return ok;
}

static struct probe *add(struct repl *r, const char *line, size_t labelled)
{
    char label[32];

    if (labelled)
        snprintf(label, sizeof(label), "%.*s", (int)labelled, line);
    else
        do
            snprintf(label, sizeof(label), "%u", ++r->labels);
        while (find(r, label));
    struct probe *p = find(r, label);
    if (p)
        p->gone = true;
    r->probes = mem_grow(r->probes, &r->probes_cap, r->nprobes + 1, sizeof(*r->probes));
    p = &r->probes[r->nprobes++];
    *p = (struct probe){.label = mem_strndup(label, strlen(label)), .number = r->numbers, .fresh = true};
    return p;
}

bool repl_probe(struct repl *r, const char *line)
{
    size_t labelled = repl_label_length(line);
    const char *expr = line + (labelled ? labelled + 1 : 0);
    struct texts one = {0}, none = {0};
    struct buf records = {0};
    struct asked asked;
    bool later = false;
    struct err e;

    repl_settle(r); /* it was about those before this one */
    while (*expr == ' ' || *expr == '\t')
        expr++;
    texts_add(&one, expr);
    asked_init(&asked);
    asked.find_record = asked_later;
    asked.find_data = &later;
    bool ok = asked_compile(&asked, &r->base.options.what, &one, &none, 0, &e);
    if (ok && !repl_attached(r) && !repl_attaching(r)) {
        ok = err_set(&e, ERR_NODE, "no node is attached");
        err_hint(&e, ":attach NODE attaches one");
    }
    ok = ok && (!later || find_records(r, &one, &records, &e));
    if (ok) {
        asked_warn(&asked, r->base.ctx);
        struct probe *p = add(r, line, labelled);
        p->text = mem_strndup(expr, strlen(expr));
        p->records = records.len ? mem_strndup(records.data, records.len) : NULL;
        p->nspecs = asked.count;
        r->numbers += asked.count;
    }
    asked_release(&asked);
    texts_release(&one);
    buf_release(&records);
    if (!ok) {
        wrong(r, expr, &e);
        return false;
    }
    if (r->live->done)
        repl_show_live(r, true);
    ok = repl_arm_all(r, PROMPT_MS, &e);
    if (!ok)
        repl_go_without(r, &e);
    return ok;
}

bool repl_drop(struct repl *r, const char *label)
{
    struct probe *p = find(r, label);

    if (!p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < r->nprobes; i++)
        r->probes[i].gone |= !p || p == &r->probes[i];
    repl_arm(r);
    return true;
}

static bool set_stopped(struct repl *r, const char *label, bool stopped)
{
    struct probe *p = label ? find(r, label) : NULL;

    if (label && !p && strcmp(label, "all") != 0)
        return false;
    for (size_t i = 0; i < r->nprobes; i++)
        if (!p || p == &r->probes[i])
            r->probes[i].stopped = stopped;
    return true;
}

bool repl_start(struct repl *r, const char *label)
{
    if (!set_stopped(r, label, false))
        return false;
    if (r->live->done)
        repl_show_live(r, true);
    repl_arm(r);
    return true;
}

bool repl_stop(struct repl *r, const char *label)
{
    if (!set_stopped(r, label, true))
        return false;
    repl_arm(r);
    return true;
}

void repl_list(struct repl *r, struct buf *to)
{
    bool any = false;

    for (size_t i = 0; i < r->nprobes; i++) {
        const struct probe *p = &r->probes[i];
        any |= !p->gone;
        if (p->gone)
            continue;
        buf_printf(to, "%-8s ", p->label);
        for (const char *at = p->text; *at; at++) /* on one line, as the history has it */
            buf_char(to, *at == '\n' ? ' ' : *at);
        buf_printf(to, "%s\n", p->stopped ? "   (stopped)" : "");
    }
    if (!any)
        buf_puts(to, "no probes: an expression makes one\n");
}

void repl_release(struct repl *r)
{
    while (r->nprobes)
        forget(r, 0);
    free(r->probes);
}
