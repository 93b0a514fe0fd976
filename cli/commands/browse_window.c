/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_window.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "../ground/number.h"
#include "../views/paint.h"
#include "../views/grid.h"

#define PAGES 48 /* number of pages of memory for the lines of the window */
#define PAGE_BYTES ((size_t)256 << 10)
#define NOT_KEPT UINT64_MAX

/*
 * A part of the memory of the window. Lines are added at the beginning of `bytes`, and their texts from its end
 * backward.
 */
struct page {
    uint64_t first;     /* index of the first line in this page */
    size_t count, text; /* `count`: number of lines; `text`: offset of the text that was added last */
    char bytes[PAGE_BYTES];
};

struct browse_window {
    const struct browse_recording *of;
    struct view view;
    struct browse_reader *reader; /* NULL: nothing is loaded, or the recording was read to its end */
    struct page *pages[PAGES];    /* a ring of `npages` pages, beginning at `oldest` */
    size_t oldest, npages;
    struct page *spares[PAGES]; /* dropped pages for reuse, because new memory costs as much time as filling it */
    size_t nspares;
    struct page *near; /* the page of the line that was looked up last; NULL: none */
    uint64_t first, end;

    struct browse_spot next; /* spot of the next line that is read */
    uint64_t kept_from;      /* lines of segment `kept_segment` before this one are read, but not kept */
    size_t kept_segment;
    uint64_t keep; /* index of the line that must not be dropped while an item is read */
    bool full;     /* lines were lost, because `keep` left no room for them */
    bool over;
    struct soon {
        uint64_t number, index; /* index: NOT_KEPT if the line of the call is not in the window */
    } soon[BROWSE_SOON];        /* soon[N % BROWSE_SOON]: the line of call N, unless a later call has overwritten it */
    uint64_t settled;           /* the result of browse_window_settled(): lines before this index never change again */

    uint64_t *counts; /* number of lines of each segment, plus 1; 0: unknown */
    size_t ncounts;
    struct err damage;
};

/* ---- pages ---- */

static struct page *page_at(const struct browse_window *w, size_t n)
{
    return w->pages[(w->oldest + n) % PAGES];
}

static struct browse_line *page_lines(struct page *p)
{
    return (struct browse_line *)(void *)p->bytes;
}

static void drop_page(struct browse_window *w)
{
    struct page *p = page_at(w, 0);

    w->first = p->first + p->count;
    w->spares[w->nspares++] = p;
    w->near = NULL;
    w->oldest = (w->oldest + 1) % PAGES;
    w->npages--;
}

static struct page *add_page(struct browse_window *w)
{
    if (w->npages == PAGES) {
        const struct page *p = page_at(w, 0);
        if (w->keep < p->first + p->count)
            return NULL;
        drop_page(w);
    }
    struct page *p = w->nspares ? w->spares[--w->nspares] : mem_alloc(sizeof(*p));
    p->first = w->end;
    p->count = 0;
    p->text = PAGE_BYTES;
    w->pages[(w->oldest + w->npages++) % PAGES] = p;
    return p;
}

/* Returns a page that has room for a text and `lines` lines. Returns NULL if there is none. */
static struct page *page_with_room(struct browse_window *w, size_t text, size_t lines)
{
    struct page *p = w->npages ? page_at(w, w->npages - 1) : NULL;

    if (p && (p->count + lines) * sizeof(struct browse_line) + text <= p->text)
        return p;
    return add_page(w);
}

static const char *keep_text(struct page *p, struct str text)
{
    p->text -= text.len;
    memcpy(p->bytes + p->text, text.at, text.len);
    return p->bytes + p->text;
}

static struct page *find_page(const struct browse_window *w, uint64_t index)
{
    size_t from = 0, to = w->npages;

    while (to - from > 1) {
        const size_t middle = from + (to - from) / 2;
        if (page_at(w, middle)->first <= index)
            from = middle;
        else
            to = middle;
    }
    return page_at(w, from);
}

static struct browse_line *line_at(struct browse_window *w, uint64_t index)
{
    if (!w->near || index - w->near->first >= w->near->count)
        w->near = find_page(w, index);
    return &page_lines(w->near)[index - w->near->first];
}

/* ---- lines ---- */

static bool is_kept(const struct browse_window *w)
{
    return w->next.segment > w->kept_segment || (w->next.segment == w->kept_segment && w->next.line >= w->kept_from);
}

/* Adds a line. Returns its index, or NOT_KEPT. */
static uint64_t add_line(struct browse_window *w, const struct event_row *row, struct str text)
{
    const struct browse_spot spot = w->next;
    struct page *p = NULL;

    const bool kept = is_kept(w);
    w->next.line++;
    if (!kept || w->full)
        return NOT_KEPT;
    if (!(p = page_with_room(w, text.len, 1))) {
        w->full = true;
        return NOT_KEPT;
    }
    page_lines(p)[p->count++] = (struct browse_line){
        .row = *row,
        .spot = spot,
        .place = w->reader ? browse_reader_place(w->reader) : 0,
        .text = keep_text(p, text),
    };
    return w->end++;
}

static void add_event(struct browse_window *w, const struct event_row *row, struct str text)
{
    struct soon *soon = &w->soon[row->number % BROWSE_SOON];
    const uint64_t index = add_line(w, row, text);

    /* A call that was held until its result is added late. Then a newer call may already use its place in `soon`. */
    if (row->returns && soon->number < row->number)
        *soon = (struct soon){row->number, index};
}

/*
 * Returns true if the result belongs on the line of its call. The call may have no line, because the filter needed the
 * result, and the call was too large to be kept until then.
 */
static bool is_joined(const struct browse_window *w, const struct event_row *row)
{
    return row->cause && row->tail && row->number - row->cause < BROWSE_SOON &&
           w->soon[row->cause % BROWSE_SOON].number == row->cause;
}

/* Puts a result on the line of its call. Does nothing if the line is not in the window. */
static void join_result(struct browse_window *w, const struct event_row *row, struct str text)
{
    const uint64_t index = w->soon[row->cause % BROWSE_SOON].index;
    const size_t begin = MIN(text.len, row->tail + (row->kind == ETW_RETURN_FROM ? strlen(" = ") : 0));
    const struct str tail = {text.at + begin, text.len - begin};
    struct page *p;

    if (index == NOT_KEPT || index < w->first || w->full)
        return;
    if (!(p = page_with_room(w, tail.len, 0))) {
        w->full = true;
        return;
    }
    if (index < w->first) /* adding a page has dropped the line */
        return;
    struct browse_line *l = line_at(w, index);
    l->more = keep_text(p, tail);
    l->more_len = (uint16_t)tail.len;
    l->more_kind = row->kind;
    l->row.dur_ns = row->dur_ns;
}

static void pass_segments(struct browse_window *w, size_t segment)
{
    while (w->next.segment < segment) {
        w->counts[w->next.segment] = w->next.line + 1;
        w->next = (struct browse_spot){w->next.segment + 1, 0};
        memset(w->soon, 0, sizeof(w->soon));
    }
}

static bool take_rows(void *data, struct buf *bytes)
{
    struct browse_window *w = data;
    struct str rest = buf_view(bytes), text;
    struct event_row row;

    pass_segments(w, browse_reader_segment(w->reader));
    while (event_rows_next(&rest, &row, &text))
        if (is_joined(w, &row))
            join_result(w, &row, text);
        else
            add_event(w, &row, text);
    bytes->len = 0;
    return true;
}

/* Adds a line that describes the damage of the recording. */
static void add_trouble(struct browse_window *w, const struct err *e)
{
    const struct paint paint = {.on = w->of->look.colour};
    struct event_row row = {.own = true, .dur_ns = -1, .number = browse_reader_number(w->reader)};
    struct buf text = {0};

    paint_begin(&paint, &text, PAINT_LOSS);
    buf_printf(&text, "*** %s ***", e->text);
    paint_end(&paint, &text);
    row.len = (uint16_t)text.len;
    add_line(w, &row, buf_view(&text));
    buf_release(&text);
}

/* ---- reading ---- */

struct browse_window *browse_window_new(const struct browse_recording *of)
{
    struct browse_window *w = mem_zalloc(sizeof(*w));

    w->of = of;
    w->ncounts = of->segments;
    w->counts = mem_zalloc(w->ncounts * sizeof(*w->counts));
    w->view = (struct view){.type = &event_rows, .look = of->look, .write = take_rows, .output = w};
    return w;
}

static void forget_lines(struct browse_window *w)
{
    browse_reader_close(w->reader);
    w->reader = NULL;
    while (w->npages)
        drop_page(w);
    w->first = w->end = w->settled = 0;
    memset(w->soon, 0, sizeof(w->soon));
    w->full = w->over = false;
}

void browse_window_forget(struct browse_window *w)
{
    forget_lines(w);
    memset(w->counts, 0, w->ncounts * sizeof(*w->counts));
}

bool browse_window_grown(struct browse_window *w)
{
    const size_t n = w->of->segments;

    if (n > w->ncounts) {
        w->counts = mem_realloc(w->counts, n * sizeof(*w->counts));
        memset(w->counts + w->ncounts, 0, (n - w->ncounts) * sizeof(*w->counts));
        w->ncounts = n;
    }
    const bool ends = w->reader ? w->of->grows && !browse_reader_grows(w->reader) : w->over;
    if (!ends) {
        w->over = false;
        return true;
    }
    w->damage.status = ERR_NONE;
    browse_window_forget(w);
    return false;
}

void browse_window_free(struct browse_window *w)
{
    if (!w)
        return;
    forget_lines(w);
    while (w->nspares)
        free(w->spares[--w->nspares]);
    free(w->counts);
    free(w);
}

bool browse_window_load(struct browse_window *w, struct browse_spot from, struct err *e)
{
    forget_lines(w);
    w->next = (struct browse_spot){from.segment, 0};
    w->kept_segment = from.segment;
    w->kept_from = from.line;
    w->reader = browse_reader_open(w->of, &w->view, from.segment, e);
    return w->reader;
}

static void end_reading(struct browse_window *w)
{
    pass_segments(w, w->of->segments);
    browse_reader_close(w->reader);
    w->reader = NULL;
    w->over = true;
}

/*
 * Continues after damage, at the next checkpoint. The line about the damage belongs to the segment of the last item
 * before the damage. A reader that finds the damage before the first item of its segment adds no line.
 */
static enum browse_read read_behind(struct browse_window *w, const struct err *e)
{
    const size_t segment = browse_reader_segment(w->reader);
    size_t damaged = MAX(browse_reader_from(w->reader), w->next.segment - MIN(w->next.segment, 1u));
    struct err ignored;

    if (!w->damage.status)
        w->damage = *e;
    if (segment >= w->next.segment) {
        pass_segments(w, segment);
        add_trouble(w, e);
        damaged = segment;
    }
    struct browse_reader *behind = browse_reader_behind(w->of, &w->view, damaged, &ignored);
    if (!behind) {
        end_reading(w);
        return BROWSE_OVER;
    }
    browse_reader_close(w->reader);
    w->reader = behind;
    pass_segments(w, browse_reader_from(behind));
    return BROWSE_READ;
}

enum browse_read browse_window_read(struct browse_window *w, uint64_t keep)
{
    struct err e;

    if (!w->reader)
        return BROWSE_OVER;
    if (w->full)
        return BROWSE_FULL;
    w->keep = keep;
    switch (browse_reader_next(w->reader, &e)) {
    case BROWSE_MORE:
        pass_segments(w, browse_reader_segment(w->reader));
        return w->full ? BROWSE_FULL : BROWSE_READ;
    case BROWSE_NOTHING:
        return BROWSE_IDLE;
    case BROWSE_WAITS:
        pass_segments(w, browse_reader_segment(w->reader));
        w->over = true;
        return BROWSE_OVER;
    case BROWSE_END:
        end_reading(w);
        return BROWSE_OVER;
    case BROWSE_FAILED:
        break;
    }
    return read_behind(w, &e);
}

/* ---- the lines ---- */

uint64_t browse_window_first(const struct browse_window *w)
{
    return w->first;
}

uint64_t browse_window_end(const struct browse_window *w)
{
    return w->end;
}

bool browse_window_over(const struct browse_window *w)
{
    return w->over;
}

const struct browse_line *browse_window_line(struct browse_window *w, uint64_t index)
{
    return line_at(w, index);
}

static bool may_change(const struct browse_window *w, const struct browse_line *l)
{
    return w->reader && l->row.returns && !l->more && l->spot.segment == w->next.segment &&
           browse_reader_number(w->reader) - l->row.number < BROWSE_SOON;
}

uint64_t browse_window_settled(struct browse_window *w)
{
    uint64_t at = MAX(w->settled, w->first);

    if (w->over)
        return w->end;
    while (at < w->end && !may_change(w, line_at(w, at)))
        at++;
    w->settled = at;
    return at;
}

static bool is_before(struct browse_spot a, struct browse_spot b)
{
    return a.segment < b.segment || (a.segment == b.segment && a.line < b.line);
}

bool browse_window_find(struct browse_window *w, struct browse_spot spot, uint64_t *ret)
{
    uint64_t from = w->first, to = w->end;

    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        if (is_before(line_at(w, middle)->spot, spot))
            from = middle + 1;
        else
            to = middle;
    }
    if (from == w->end || is_before(spot, line_at(w, from)->spot))
        return false;
    *ret = from;
    return true;
}

bool browse_window_count(const struct browse_window *w, size_t segment, uint64_t *ret)
{
    /* the number of lines of this segment is not final */
    const bool is_last = w->over && w->reader && segment == w->next.segment;

    if (!is_last && !w->counts[segment])
        return false;
    *ret = is_last ? w->next.line : w->counts[segment] - 1;
    return true;
}

size_t browse_window_segment(const struct browse_window *w)
{
    return w->over ? w->of->segments : w->next.segment;
}

uint64_t browse_window_place(const struct browse_window *w)
{
    return w->reader ? browse_reader_place(w->reader) : w->of->bytes;
}

const struct err *browse_window_damage(const struct browse_window *w)
{
    return &w->damage;
}

void browse_line_text(const struct browse_line *l, struct buf *to)
{
    grid_plain(to, (struct str){l->text, l->row.len});
    if (l->more) {
        buf_puts(to, l->more_kind == ETW_EXCEPTION_FROM ? " -> exception" : " -> ");
        grid_plain(to, (struct str){l->more, l->more_len});
    }
    if (l->row.dur_ns >= 0 && (l->more || l->row.tail)) {
        buf_puts(to, "  ");
        print_duration(to, l->row.dur_ns);
    }
}
