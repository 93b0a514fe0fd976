/* SPDX-License-Identifier: Apache-2.0 */
#include "grid.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"

#define GAP 2
#define INDENT 4    /* indent of a text that wraps, if the text begins on a line of its own */
#define NARROWEST 8 /* least width to which a text is cut */

/* Returns the end of the character, or of the escape code of a colour, that begins at `at`. A colour has no width. */
static const char *grid_next(const char *at, const char *end, size_t *width)
{
    const char *next = *at == '\033' ? memchr(at, 'm', (size_t)(end - at)) : at;

    if (*at == '\033')
        return next ? next + 1 : end;
    utf8_next(&next, end);
    *width += utf8_width(at, (size_t)(next - at));
    return next;
}

size_t grid_width(struct str text)
{
    const char *end = text.at + text.len;
    size_t width = 0;

    for (const char *at = text.at; at < end;)
        at = grid_next(at, end, &width);
    return width;
}

void grid_plain(struct buf *to, struct str text)
{
    const char *at = text.at, *end = at + text.len, *code;

    while (at < end && (code = memchr(at, '\033', (size_t)(end - at)))) {
        buf_add(to, at, (size_t)(code - at));
        at = memchr(code, 'm', (size_t)(end - code));
        at = at ? at + 1 : end;
    }
    buf_add(to, at, (size_t)(end - at));
}

void grid_cut(struct buf *to, struct str text, size_t most)
{
    const char *end = text.at + text.len, *next;
    const size_t all = grid_width(text);
    size_t width = 0;
    bool cut = false;

    for (const char *at = text.at; at < end; at = next) {
        next = grid_next(at, end, &width);
        if (*at == '\033' || width + (all > most) <= most)
            buf_add(to, at, (size_t)(next - at));
        else if (!cut)
            buf_puts(to, most ? "…" : ""), cut = true;
    }
}

void grid_break(struct buf *to, struct str text, size_t most)
{
    const char *end = text.at + text.len, *next;
    size_t width = 0;

    for (const char *at = text.at; at < end; at = next) {
        size_t own = 0;
        if (*at == '\n') {
            next = at + 1;
            width = 0;
        } else {
            next = grid_next(at, end, &own);
            width += own;
        }
        if (width > most) {
            buf_char(to, '\n');
            width = own;
        }
        buf_add(to, at, (size_t)(next - at));
    }
}

/* ---- widths ---- */

void grid_release(struct grid *g)
{
    free(g->order);
    g->order = NULL;
}

void grid_make(const struct grid *g, size_t row, size_t column, struct grid_cell *cell)
{
    const struct grid_column *k = &g->columns[column];

    buf_clear(&cell->text);
    cell->paint = k->paint;
    cell->tail = 0;
    cell->ready = k->number;
    g->put(g->data, grid_row(g, row), column, cell);
    if (cell->as == GRID_TEXT && k->number && !cell->text.len)
        buf_char(&cell->text, '-');
}

/*
 * Returns the width of the table. With `kept`, a column of text counts only up to its `keep`. Columns of width 0 are
 * left out.
 */
static size_t grid_room(const struct grid *g, const size_t *widths, bool kept)
{
    size_t all = 0;

    for (size_t i = 0; i < g->ncolumns; i++) {
        const struct grid_column *k = &g->columns[i];
        const size_t keep = kept && !k->number ? k->keep ? k->keep : GRID_KEEP : SIZE_MAX;
        all += widths[i] ? MIN(widths[i], keep) + GAP : 0;
    }
    return all - MIN(all, GAP);
}

/* Returns the column to leave out next, or ncolumns if every column must stay. */
static size_t grid_spare(const struct grid *g, const size_t *widths)
{
    size_t spare = g->ncolumns;

    for (size_t i = 0; i < g->ncolumns; i++) {
        const struct grid_column *k = &g->columns[i];
        if (widths[i] && k->rank && i + 1 != g->sorted && (spare == g->ncolumns || k->rank < g->columns[spare].rank))
            spare = i;
    }
    return spare;
}

/* Returns the widest column that can be cut, or ncolumns if there is none. */
static size_t grid_widest(const struct grid *g, const size_t *widths)
{
    size_t widest = g->ncolumns;

    for (size_t i = 0; i < g->ncolumns; i++) {
        const bool cut = !g->columns[i].number && g->columns[i].keep != GRID_WHOLE;
        if (cut && widths[i] > (widest < g->ncolumns ? widths[widest] : NARROWEST))
            widest = i;
    }
    return widest;
}

static void grid_fit(const struct grid *g, size_t *widths)
{
    size_t i;

    while (g->width && grid_room(g, widths, true) > g->width && (i = grid_spare(g, widths)) < g->ncolumns)
        widths[i] = 0;
    while (g->width && grid_room(g, widths, false) > g->width && (i = grid_widest(g, widths)) < g->ncolumns)
        widths[i]--;
}

/* Returns the widths of the columns; 0: the column is left out. The caller frees the array. */
static size_t *grid_widths(const struct grid *g, struct grid_cell *cell)
{
    size_t *widths = mem_zalloc((g->ncolumns + 1) * sizeof(*widths));

    for (size_t i = 0; i < g->ncolumns; i++) {
        const struct grid_column *k = &g->columns[i];
        if (k->hidden || !k->title)
            continue;
        const unsigned most = g->width && k->keep == GRID_WHOLE ? g->width / 2 : UINT_MAX;
        widths[i] = MAX(MIN(k->least, most), utf8_width(k->title, strlen(k->title)));
        for (size_t row = 0; row < grid_end(g); row++) {
            grid_make(g, row, i, cell);
            widths[i] = MAX(widths[i], utf8_width(cell->text.data, cell->text.len));
        }
    }
    grid_fit(g, widths);
    return widths;
}

/* ---- text ---- */

static void grid_pad(struct buf *to, size_t n)
{
    if (!n)
        return; /* an empty buffer may have no memory */
    memset(buf_room(to, n), ' ', n);
    to->len += n;
}

static void grid_part(const struct paint *paint, enum paint_what what, struct str text, size_t width, struct buf *to)
{
    if (what)
        paint_begin(paint, to, what);
    grid_cut(to, text, width);
    if (what)
        paint_end(paint, to);
}

static void grid_parts(size_t width, const struct paint *paint, const struct grid_cell *cell, struct buf *to)
{
    const size_t split = cell->tail ? cell->tail : cell->text.len;
    const struct str head = {buf_view(&cell->text).at, split}, tail = {head.at + split, cell->text.len - split};
    const size_t head_width = utf8_width(head.at, head.len), least = MIN(head_width, width - width / 2);
    const size_t tail_width = MIN(utf8_width(tail.at, tail.len), width - least);

    grid_part(paint, cell->paint, head, width - tail_width, to);
    if (tail.len)
        grid_part(paint, cell->tail_paint, tail, width - MIN(head_width, width - tail_width), to);
}

/* Prints a cell. `last`: no cell follows in the line. */
static void grid_cell_text(const struct grid_column *k, size_t width, bool last, const struct paint *paint,
                           const struct grid_cell *cell, struct buf *to)
{
    const struct str text = buf_view(&cell->text);
    const size_t used = utf8_width(text.at, text.len), pad = width - MIN(used, width);

    if (k->number)
        grid_pad(to, pad);
    grid_parts(width, paint, cell, to);
    if (!last)
        grid_pad(to, (k->number ? 0 : pad) + GAP);
}

/*
 * Returns true if the columns before a text that wraps leave no room for the text, so that it begins on the next line.
 */
static bool grid_is_below(const struct grid *g, size_t used)
{
    return g->width && used + GRID_KEEP > g->width;
}

static void grid_trim(struct buf *to, size_t begin)
{
    while (to->len > begin && to->data[to->len - 1] == ' ')
        to->len--;
}

static void grid_next_line(struct buf *to, size_t begin, unsigned indent)
{
    grid_trim(to, begin);
    buf_printf(to, "\n%*s", (int)indent, "");
}

/* Prints a cell that wraps, after `used` columns of the line that begins at `begin`. */
static void grid_lines(const struct grid *g, size_t begin, size_t used, const struct grid_cell *cell, struct buf *to)
{
    const unsigned indent = grid_is_below(g, used) ? INDENT : (unsigned)used;
    struct str left = buf_view(&cell->text), line;

    if (grid_is_below(g, used) && left.len)
        grid_next_line(to, begin, indent);
    if (cell->paint)
        paint_begin(&g->paint, to, cell->paint);
    while (str_line(&left, &line)) {
        grid_wrap(to, line, indent, indent, g->width);
        if (left.len)
            grid_next_line(to, begin, indent);
    }
    if (cell->paint)
        paint_end(&g->paint, to);
}

/* Prints a row, or the titles if `row` is nrows. */
static void grid_line(const struct grid *g, const size_t *widths, size_t row, struct grid_cell *cell, struct buf *to)
{
    /* A row in reverse has no colours, because the end of a colour would also end the reverse. */
    const struct paint plain = {0};
    const bool titles = row == g->nrows, marked = !titles && row + 1 == g->marked;
    const size_t begin = to->len;
    size_t last = g->ncolumns;
    size_t used = 0;

    while (last && !widths[last - 1])
        last--;
    buf_puts(to, marked ? "\033[7m" : "");
    for (size_t i = 0; i < last; i++) {
        const struct grid_column *k = &g->columns[i];
        if (!widths[i])
            continue;
        if (titles) {
            buf_clear(&cell->text);
            buf_puts(&cell->text, k->title);
            cell->paint = i + 1 == g->sorted ? PAINT_FUN : PAINT_TITLE;
            cell->tail = 0;
        } else {
            grid_make(g, row, i, cell);
        }
        if (k->wraps && !titles)
            grid_lines(g, begin, used, cell, to);
        else if (!k->wraps || !grid_is_below(g, used))
            grid_cell_text(k, widths[i], i + 1 == last, marked ? &plain : &g->paint, cell, to);
        used += widths[i] + GAP;
    }
    if (!marked)
        grid_trim(to, begin);
    buf_puts(to, marked ? "\033[0m" : "");
}

static bool grid_has_titles(const struct grid *g)
{
    for (size_t i = 0; i < g->ncolumns; i++)
        if (!g->columns[i].hidden && g->columns[i].title && *g->columns[i].title)
            return true;
    return false;
}

uint64_t grid_text(const struct grid *g, struct buf *to)
{
    struct grid_cell cell = {0};
    size_t *widths = grid_widths(g, &cell);
    uint64_t shown = 0;

    for (size_t i = 0; i < g->ncolumns; i++)
        shown |= (uint64_t)(widths[i] > 0) << i;
    if (!g->continued && grid_has_titles(g)) {
        grid_line(g, widths, g->nrows, &cell, to);
        buf_char(to, '\n');
    }
    for (size_t row = g->first; row < grid_end(g); row++) {
        grid_line(g, widths, row, &cell, to);
        buf_char(to, '\n');
    }
    buf_release(&cell.text);
    free(widths);
    return shown;
}

/* ---- for programs ---- */

static void grid_quote(struct str text, char between, struct buf *to)
{
    bool quotes = false;

    for (size_t i = 0; i < text.len; i++)
        quotes = quotes || text.at[i] == between || memchr("\"\r\n,", text.at[i], 4);
    buf_puts(to, quotes ? "\"" : "");
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '"')
            buf_char(to, '"');
        buf_char(to, text.at[i]);
    }
    buf_puts(to, quotes ? "\"" : "");
}

static bool grid_has_key(const struct grid_column *k)
{
    return k->key && !k->hidden;
}

/* Prints a row, or the keys if `row` is nrows. */
static void grid_csv_line(const struct grid *g, size_t row, char between, struct grid_cell *cell, struct buf *to)
{
    bool first = true;

    for (size_t i = 0; i < g->ncolumns; i++) {
        const char *key = g->columns[i].key;
        if (!grid_has_key(&g->columns[i]))
            continue;
        if (!first)
            buf_char(to, between);
        first = false;
        if (row < g->nrows)
            grid_make(g, row, i, cell);
        grid_quote(row < g->nrows ? buf_view(&cell->text) : (struct str){key, strlen(key)}, between, to);
    }
    buf_char(to, '\n');
}

static void grid_json_line(const struct grid *g, size_t row, const char *type, struct grid_cell *cell, struct buf *to)
{
    json_begin_record(to, type);
    for (size_t i = 0; i < g->ncolumns; i++) {
        if (!grid_has_key(&g->columns[i]))
            continue;
        grid_make(g, row, i, cell);
        if (!cell->text.len)
            continue;
        json_key(to, g->columns[i].key);
        if (cell->ready)
            json_ready(to, buf_view(&cell->text));
        else
            json_string(to, raw_of(buf_view(&cell->text)));
    }
    json_end_record(to);
}

void grid_data(const struct grid *g, enum grid_as as, const char *type, struct buf *to)
{
    const char between = as == GRID_TSV ? '\t' : ',';
    struct grid_cell cell = {.as = as};

    if (as != GRID_JSON && !g->continued)
        grid_csv_line(g, g->nrows, between, &cell, to);
    for (size_t row = g->first; row < grid_end(g); row++)
        if (as == GRID_JSON)
            grid_json_line(g, row, type, &cell, to);
        else
            grid_csv_line(g, row, between, &cell, to);
    buf_release(&cell.text);
}

void grid_print(const struct grid *g, enum grid_as as, const char *type, struct buf *to)
{
    if (as == GRID_TEXT)
        grid_text(g, to);
    else
        grid_data(g, as, type, to);
}

void grid_put_name(struct grid_cell *cell, struct raw name)
{
    cell->ready = cell->as == GRID_JSON;
    if (cell->ready)
        json_quote(&cell->text, name);
    else
        print_safe(&cell->text, name);
}

size_t grid_wrap(struct buf *to, struct str text, size_t used, unsigned indent, unsigned width)
{
    while (width > indent && used + utf8_width(text.at, text.len) > width) {
        size_t at = 0;
        for (size_t i = 1; i < text.len && used + utf8_width(text.at, i) <= width; i++)
            if (text.at[i] == ' ')
                at = i;
        if (!at)
            break;
        buf_add(to, text.at, at);
        buf_printf(to, "\n%*s", (int)indent, "");
        used = indent;
        text.at += at + 1;
        text.len -= at + 1;
    }
    buf_str(to, text);
    return used + utf8_width(text.at, text.len);
}
