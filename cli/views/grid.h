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
 *     grid_text(&g, out);
 *
 * A column is as wide as its title and its widest cell. If the terminal is too narrow, columns of the table are left
 * out, the lowest rank first, until each column of text can have the width `keep`. Then the widest columns of text are
 * cut; a cut cell ends in an ellipsis. Numbers are never cut. The last column gets the rest of the line. With `wraps`,
 * the last column gets as many lines as it needs, but a table that covers the screen must not have such a column.
 */
#ifndef ETRACE_GRID_H
#define ETRACE_GRID_H

#include <limits.h>

#include "paint.h"

struct grid_column {
    const char *title; /* "": no title; a table without any title has no header. NULL: the column is not in text */
    const char *key;   /* the name for programs; NULL: the column is only in text */
    const char *also;  /* another name for --sort; NULL: none */
    bool number;       /* aligned to the right, with a dash for an empty cell; in JSON written unchanged */
    unsigned least;    /* least width, so that a table that refreshes does not move */
    /*
     * texts are cut below this width only when no other column can be left out; 0: GRID_KEEP; GRID_WHOLE: texts are
     * never cut
     */
    unsigned keep;
    unsigned rank;         /* columns with lower ranks are left out first; 0: never left out */
    enum paint_what paint; /* colour of the cells */
    bool wraps;            /* for the last column: never cut, but broken at blanks and line ends */
    bool hidden;           /* the table does not have this column now */
};
#define GRID_COLUMNS 64 /* limit for the columns of a table */
#define GRID_KEEP 16
#define GRID_WHOLE UINT_MAX /* with this `keep`, `least` is at most half of the width of the terminal */

/*
 * GRID_ORDER: the text by which grid_order() sorts. Most cells put the same text as for GRID_CSV; others put one that
 * sorts better.
 */
enum grid_as { GRID_TEXT, GRID_JSON, GRID_CSV, GRID_TSV, GRID_ORDER };
#define GRID_AS "text|json|csv|tsv" /* the values of the option for the format, in the order of enum grid_as */

struct grid_cell {
    enum grid_as as; /* GRID_TEXT is for people; the others are for programs: whole names, numbers without units */
    struct buf text; /* empty at first; safe to print */
    bool ready;      /* `text` is a JSON value already */
    enum paint_what paint; /* colour of the text; set to that of the column before put() is called */
    enum paint_what tail_paint;
    size_t tail; /* offset of the second part of the text, which has the colour tail_paint; 0: only one part */
};

/* Gives the text that put() appends from now on another colour. If both parts are long, each gets half of the width. */
static inline void grid_tail(struct grid_cell *cell, enum paint_what paint)
{
    cell->tail = cell->text.len;
    cell->tail_paint = paint;
}

struct grid {
    const struct grid_column *columns;
    size_t ncolumns; /* at most GRID_COLUMNS */
    void (*put)(const void *data, size_t row, size_t column, struct grid_cell *cell);
    const void *data;
    size_t nrows;
    unsigned width; /* width of the terminal; 0: unlimited */
    struct paint paint;
    /* only the rows from `first` on are printed, at most `most` of them; `most` 0: all */
    size_t first, most;
    size_t marked;  /* the row that is printed in reverse, counted from 1; 0: none */
    bool continued; /* the rows continue those of another grid: no titles and no keys */
    bool rest;      /* the last row sums up the keys that had no room, and is not sorted */
    /* Prints what tells the row from all others, and does not change. NULL: the table has no screen of its own. */
    void (*name)(const void *data, size_t row, struct buf *to);
    /* Set by grid_order(), and `order` also by grid_show(). */
    size_t *order; /* the index for put() of each row; NULL: the rows are in the order of their indices */
    /* The column of the order, counted from 1; 0: none. Its title is marked, and it is never left out. */
    size_t sorted;
    bool descends; /* the largest value of that column comes first */
};

/* Returns the index for put() of a row. */
static inline size_t grid_row(const struct grid *g, size_t row)
{
    return g->order ? g->order[row] : row;
}

/* Returns the index after that of the last row that is printed. */
static inline size_t grid_end(const struct grid *g)
{
    return g->most ? MIN(g->nrows, g->first + g->most) : g->nrows;
}

void grid_release(struct grid *g); /* frees the order */

/* Makes a cell of a row, as put() prints it for cell->as. */
void grid_make(const struct grid *g, size_t row, size_t column, struct grid_cell *cell);

/* Prints the titles and the rows. Returns a bit for each column that was not left out. */
uint64_t grid_text(const struct grid *g, struct buf *to);

/*
 * Prints the columns that have a key, for programs. JSON: an object with the type `type` for each row, without members
 * for empty cells. CSV (RFC 4180) and TSV: a line with the keys, and a line for each row.
 */
void grid_data(const struct grid *g, enum grid_as as, const char *type, struct buf *to);

/* Prints the table in the format `as`, by grid_text() or grid_data(). */
void grid_print(const struct grid *g, enum grid_as as, const char *type, struct buf *to);

/* Adds a name from a node, whose bytes are not safe to print. */
void grid_put_name(struct grid_cell *cell, struct raw name);

/* Returns the width of the text on a terminal. Colour codes have no width. */
size_t grid_width(struct str text);
/* Appends the text without its colour codes. */
void grid_plain(struct buf *to, struct str text);
/* Appends the text, cut to the width. Colour codes have no width, and the cut keeps all of them. */
void grid_cut(struct buf *to, struct str text, size_t width);

/* Appends the lines of the text, each broken into lines of at most `width`. Colour codes have no width. */
void grid_break(struct buf *to, struct str text, size_t width);

/*
 * Appends the text, broken at blanks into lines of at most `width`; width 0: unbroken. The first line begins in column
 * `used`, the other lines in column `indent`. Returns the column after the end of the text.
 */
size_t grid_wrap(struct buf *to, struct str text, size_t used, unsigned indent, unsigned width);

#endif
