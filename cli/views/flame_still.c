/* SPDX-License-Identifier: Apache-2.0 */
#include "flame_still.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/utf8.h"
#include "grid.h"

#define WIDTH 1200
#define ROW 19
#define LINE 18     /* height of a line of the heading */
#define MOST 2000   /* limit for the frames */
#define LETTER 7.3  /* width of a character */
#define NARROWEST 1 /* least width of a frame */
#define FEW 3       /* least number of characters that are shown of a name */

struct still_frame {
    uint32_t node, depth;
    double x;
};

struct still {
    const struct stacks *s;
    const struct stack_texts *texts;
    uint64_t *totals;
    struct still_frame *frames; /* in the order of their depth */
    size_t n;
    bool narrow; /* some frames are not drawn */
    int top;     /* height of the heading */
};

/* ---- which frames ---- */

struct still_child {
    uint32_t node;
    uint64_t total;
};

static int child_order(const void *a, const void *b)
{
    const struct still_child *x = a, *y = b;

    if (x->total != y->total)
        return x->total < y->total ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static double still_width(const struct still *f, uint32_t node)
{
    const uint64_t all = f->totals[f->s->top];

    return node == f->s->top ? WIDTH : all ? (double)f->totals[node] * WIDTH / (double)all : 0;
}

/* Adds the frames below a frame, the largest first, from left to right. */
static void add_children(struct still *f, const struct still_frame *above)
{
    const struct stacks *s = f->s;
    struct still_child *children = mem_alloc(s->n * sizeof(*children));
    double x = above->x;
    size_t n = 0;

    for (uint32_t i = s->nodes[above->node].child; i; i = s->nodes[i].sibling)
        children[n++] = (struct still_child){i, f->totals[i]};
    qsort(children, n, sizeof(*children), child_order);
    for (size_t i = 0; i < n; i++) {
        const double width = still_width(f, children[i].node);
        if (width < NARROWEST || f->n == MOST) {
            f->narrow |= children[i].total > 0;
            break;
        }
        f->frames[f->n++] = (struct still_frame){children[i].node, above->depth + 1, x};
        x += width;
    }
    free(children);
}

static void choose_frames(struct still *f)
{
    f->frames = mem_alloc(MOST * sizeof(*f->frames));
    f->frames[f->n++] = (struct still_frame){f->s->top, 0, 0};
    for (size_t i = 0; i < f->n; i++) {
        const struct still_frame above = f->frames[i];
        add_children(f, &above);
    }
}

/* ---- shapes ---- */

static void put_xml(struct buf *to, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        switch (text.at[i]) {
        case '<':
            buf_puts(to, "&lt;");
            break;
        case '>':
            buf_puts(to, "&gt;");
            break;
        case '&':
            buf_puts(to, "&amp;");
            break;
        case '"':
            buf_puts(to, "&quot;");
            break;
        default:
            buf_char(to, text.at[i]);
            break;
        }
}

static struct str name_of(const struct still *f, uint32_t node)
{
    const char *name = node == f->s->top ? "all" : stack_text(f->texts, f->s->nodes[node].key);

    return (struct str){name, strlen(name)};
}

/* Returns the hue of a function, which is that of its module, as flame.js computes it. */
static int hue_of(struct str name)
{
    size_t module = name.len;
    uint32_t hash = 7;

    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] == '.' || name.at[i] == ':')
            module = i;
    for (const char *at = name.at, *end = name.at + module; at < end;)
        hash = (hash * 31 + utf8_next(&at, end)) % 65521;
    return (int)(hash * 137.508 + 0.5) % 360;
}

static void put_amount(const struct still *f, uint64_t amount, struct buf *to)
{
    if (f->s->traces)
        buf_printf(to, "%llu time%s", (unsigned long long)amount, PLURAL(amount));
    else
        print_duration(to, (int64_t)amount);
}

static void put_about(const struct still *f, uint32_t node, struct buf *to)
{
    const uint64_t total = f->totals[node], all = f->totals[f->s->top], count = f->s->nodes[node].count;

    put_xml(to, name_of(f, node));
    buf_puts(to, " · ");
    put_amount(f, total, to);
    if (all)
        buf_printf(to, " · %.3g%%", 100.0 * (double)total / (double)all);
    if (f->s->traces || node == f->s->top)
        return;
    buf_puts(to, " · own ");
    put_amount(f, stacks_own(f->s, node), to);
    buf_printf(to, " · %llu call%s", (unsigned long long)count, PLURAL(count));
}

static void put_frame(const struct still *f, const struct still_frame *x, struct buf *to)
{
    const struct str name = name_of(f, x->node);
    const double width = still_width(f, x->node);
    const int y = f->top + (int)x->depth * ROW, hue = x->node == f->s->top ? 45 : hue_of(name);
    const size_t room = width > 6 ? (size_t)((width - 6) / LETTER) : 0;
    struct buf cut = {0};

    buf_puts(to, "<g><title>");
    put_about(f, x->node, to);
    buf_printf(to,
               "</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%d,62%%,78%%)\" "
               "style=\"--h:%d\"/>",
               x->x, y, width, ROW - 1, hue, hue);
    if (room >= FEW) {
        grid_cut(&cut, name, room);
        buf_printf(to, "<text x=\"%.2f\" y=\"%.1f\">", x->x + 3, y + 13.5);
        put_xml(to, buf_view(&cut));
        buf_puts(to, "</text>");
    }
    buf_puts(to, "</g>\n");
    buf_release(&cut);
}

/* Prints a paragraph above the frames, in as many lines as it needs. */
static void put_heading(struct still *f, struct str text, struct buf *to)
{
    struct buf lines = {0};
    struct str left, line;

    grid_wrap(&lines, text, 0, 0, (unsigned)(WIDTH / LETTER) - 1);
    for (left = buf_view(&lines); str_line(&left, &line);) {
        f->top += LINE;
        buf_printf(to, "<text x=\"3\" y=\"%d\">", f->top - 2);
        put_xml(to, line);
        buf_puts(to, "</text>\n");
    }
    buf_release(&lines);
}

static void put_headings(struct still *f, struct str title, struct str missing, struct buf *to)
{
    struct buf b = {0};

    buf_puts(to, "<g id=\"still\">");
    put_heading(f, title.len ? title : STR("etrace"), to);
    if (missing.len) {
        buf_puts(&b, "Missing: ");
        buf_str(&b, missing);
        buf_puts(&b, " · ");
    }
    buf_puts(&b, f->narrow ? "some frames are too narrow to be drawn · " : "");
    buf_puts(&b, "open this file in a browser to zoom and to search");
    put_heading(f, buf_view(&b), to);
    buf_puts(to, "</g>\n");
    f->top += ROW / 2;
    buf_release(&b);
}

void flame_still(struct page_still *still, const struct stacks *s, const struct stack_texts *texts, struct str title,
                 struct str missing)
{
    struct still f = {.s = s, .texts = texts, .totals = stacks_totals(s)};

    choose_frames(&f);
    put_headings(&f, title, missing, &still->shapes);
    buf_puts(&still->shapes, "<g id=\"frames\" role=\"tree\" aria-label=\"frames\">\n");
    for (size_t i = 0; i < f.n; i++)
        put_frame(&f, &f.frames[i], &still->shapes);
    buf_puts(&still->shapes, "</g>\n");
    still->width = WIDTH;
    still->height = f.top + ((int)f.frames[f.n - 1].depth + 1) * ROW + 2;
    free(f.frames);
    free(f.totals);
}
