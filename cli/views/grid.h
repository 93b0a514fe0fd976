/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints tables. A table is a list of columns and a function that puts one cell:
 *
 *     static const struct grid_column columns[] = {
 *         {.title = "severity", .paint = PAINT_FAILURE},
 *         {.title = "since", .number = true, .rank = 1},
 *         {.title = "what"},
 *     };
 *     static void put_finding(const void *data, size_t row, size_t column, struct grid_cell *cell)
 *     {
 *         const struct finding *f = &((const struct findings *)data)->items[row];
 *         switch (column) {
 *         case 0: buf_puts(&cell->text, f->severity); break;
 *         case 1: print_duration(&cell->text, f->ns); break;
 *         case 2: buf_str(&cell->text, f->what); break;
 *         }
 *     }
 *     struct grid g = {columns, ARRAY_LEN(columns), put_finding, &findings, findings.n, .width = 80};
 *     grid_text(&g, "\n", out);
 *
 * A column is as wide as its title and its widest cell. If the terminal is too narrow, columns leave, the lowest rank
 * first, until each column of text has `keep`. Then the widest columns of text are cut; a cut cell ends in an ellipsis.
 * Numbers are never cut. The last column has the rest of the line; if it wraps, it has as many lines as it needs, in a
 * table that is no screen.
 */
#ifndef ETRACE_GRID_H
#define ETRACE_GRID_H

#include <limits.h>

#include "paint.h"

struct grid_column {
    const char *title;     /* "": the column has none; a table without titles has no header. NULL: not in text */
    const char *key;       /* its name for programs; NULL: only in text */
    bool number;           /* aligned to the right, and a dash if it is empty; a JSON value as it is */
    unsigned least;        /* the column is at least as wide: a table that refreshes does not move */
    unsigned keep;         /* of text: what it keeps while columns leave; 0: GRID_KEEP, GRID_WHOLE: it is never cut */
    unsigned rank;         /* 0: the column never leaves */
    enum paint_what paint; /* of its cells */
    bool sorted;           /* the rows have its order: its title is marked, and it never leaves */
    bool wraps;            /* the last column: never cut, but broken at blanks and line ends */
    bool hidden;           /* the table is without this column now */
};
#define GRID_KEEP 16
#define GRID_WHOLE UINT_MAX /* `least` is then at most half of the terminal */

enum grid_as { GRID_TEXT, GRID_JSON, GRID_CSV, GRID_TSV };
#define GRID_AS "text|json|csv|tsv" /* the argument of an option in that order */

struct grid_cell {
    enum grid_as as;       /* text is for people, the rest is for programs: whole names, numbers without units */
    struct buf text;       /* empty at first; safe to print */
    bool ready;            /* the text is a JSON value already */
    enum paint_what paint; /* that of the column at first */
    enum paint_what tail_paint;
    size_t tail; /* where the second part of the text begins; 0: it has one part */
};

/* Gives the rest of the text another colour. If both parts are long, each has half of the room. */
static inline void grid_tail(struct grid_cell *cell, enum paint_what paint)
{
    cell->tail = cell->text.len;
    cell->tail_paint = paint;
}

struct grid {
    const struct grid_column *columns;
    size_t ncolumns; /* at most 64 */
    void (*put)(const void *data, size_t row, size_t column, struct grid_cell *cell);
    const void *data;
    size_t nrows;
    unsigned width; /* of the terminal; 0: unlimited */
    struct paint paint;
    size_t marked;  /* a row in reverse, counted from 1; 0: none */
    bool continued; /* the rows follow those of another grid of this table: no titles and no keys */
};

/* Appends the header and the rows. Each line ends with `end`. Returns the columns that have not left, as bits. */
uint64_t grid_text(const struct grid *g, const char *end, struct buf *to);

/*
 * Appends the columns with a key for programs. JSON: an object of that type for each row, without empty cells. CSV
 * (RFC 4180) and TSV: the keys, and a line for each row.
 */
void grid_data(const struct grid *g, enum grid_as as, const char *type, struct buf *to);

/* Appends the table in that format. */
void grid_print(const struct grid *g, enum grid_as as, const char *type, struct buf *to);

/* Puts a name from the node, whose bytes are not safe to print. */
void grid_put_name(struct grid_cell *cell, struct raw name);

/* Appends the text, cut to the width. It may have colours, which take no room and are all kept. */
void grid_cut(struct buf *to, struct str text, size_t width);

/*
 * Appends the text and breaks it at blanks: its first line begins in the column `used`, and the next ones at `indent`.
 * Width 0: one line. Returns the column behind the text.
 */
size_t grid_wrap(struct buf *to, struct str text, size_t used, unsigned indent, unsigned width);

#endif
