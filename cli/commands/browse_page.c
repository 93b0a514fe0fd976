/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_page.h"

#include "../views/grid.h"
#include "../views/term_layout.h"

#define PATIENCE 1000000 /* number of events after a call that are searched for its result */

static bool browse_page_write(void *output, struct buf *bytes)
{
    struct browse_page *p = output;

    buf_str(&p->text, buf_view(bytes));
    bytes->len = 0;
    return true;
}

static void begin_page(struct browse_page *p, const char *title)
{
    browse_page_close(p);
    buf_clear(&p->text);
    p->title = title;
    p->top = p->columns = 0;
}

void browse_page_text(struct browse_page *p, const char *title, const char *text)
{
    begin_page(p, title);
    p->terms = false;
    buf_puts(&p->text, text);
}

bool browse_page_event(struct browse_page *p, const char *title, const struct browse_recording *of,
                       const struct browse_line *line, const struct sink_type *view, struct err *e)
{
    begin_page(p, title);
    p->terms = view == &event_page;
    p->of = *of;
    p->of.filter = (struct pipeline_options){0};
    p->sought =
        (struct event_sought){line->row.number, line->row.who, line->row.node, PATIENCE, line->row.dur_ns, &p->again};
    again_clear(&p->again);
    p->view = (struct view){.type = view, .look = of->look, .write = browse_page_write, .output = p};
    p->view.look.colour = false;
    p->view.look.sought = &p->sought;
    p->reader = browse_reader_open(&p->of, &p->view, line->spot.segment, e);
    return p->reader;
}

bool browse_page_step(struct browse_page *p)
{
    struct err ignored;

    if (!p->reader)
        return false;
    const enum browse_got got = browse_reader_next(p->reader, &ignored);
    if (got >= BROWSE_END)
        browse_page_close(p);
    return got != BROWSE_WAITS; /* waits for the file to grow: it may get the result of the call */
}

void browse_page_close(struct browse_page *p)
{
    browse_reader_close(p->reader);
    p->reader = NULL;
    p->columns = 0;
}

void browse_page_release(struct browse_page *p)
{
    browse_page_close(p);
    buf_release(&p->text);
    buf_release(&p->lines);
    again_release(&p->again);
}

/* ---- lines ---- */

static void lay_out(struct browse_page *p, unsigned columns)
{
    buf_clear(&p->lines);
    p->columns = columns;
    for (const char *at = p->text.data, *end = at + p->text.len, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop ? stop : end;
        const struct str line = {at, (size_t)(stop - at)};
        if (p->terms) {
            term_layout(&p->lines, line, columns);
        } else {
            grid_wrap(&p->lines, line, 0, MIN((unsigned)BROWSE_PAGE_INDENT, columns / 2), columns);
            buf_char(&p->lines, '\n');
        }
    }
    p->count = 0;
    for (size_t i = 0; i < p->lines.len; i++)
        p->count += p->lines.data[i] == '\n';
}

void browse_page_scroll(struct browse_page *p, int64_t lines)
{
    const size_t last = p->count > p->height ? p->count - p->height : 0;

    if (lines < 0)
        p->top -= MIN(p->top, (size_t)-lines);
    else
        p->top = MIN(last, p->top + (size_t)lines);
}

void browse_page_draw(struct browse_page *p, const struct browse_draw *d, unsigned line, unsigned height,
                      struct buf *to)
{
    if (p->columns != d->columns)
        lay_out(p, d->columns);
    p->height = height;
    browse_page_scroll(p, 0);
    const char *at = p->lines.data, *end = at + p->lines.len;
    for (size_t i = 0; i < p->top && at < end; i++)
        at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
    for (unsigned i = 0; i < height; i++) {
        browse_draw_begin(to, line + i);
        if (at >= end)
            continue;
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        browse_draw_text(d, to, (struct str){at, (size_t)(stop - at)}, false);
        at = stop + 1;
    }
}
