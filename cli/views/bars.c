/* SPDX-License-Identifier: Apache-2.0 */
#include "bars.h"

#include "../erlang/term_print.h"
#include "../ground/macros.h"
#include "../ground/utf8.h"

#define FLOOR 10     /* least width of the column with the lower bounds */
#define BAR 40       /* width of the longest bar, if the terminal is wide enough */
#define BAR_LEAST 8  /* least width of the longest bar */
#define AROUND 12    /* width of the marks around a bar, and of the number after it */
#define POWERS 46    /* rows of durations: one for each power of two in ns */
#define EMPTY_MOST 3 /* so many empty rows in a row are printed; an ellipsis replaces a longer run */

static void bars_label(struct buf *to, size_t columns, struct str text)
{
    for (size_t i = utf8_width(text.at, text.len); i < columns; i++)
        buf_char(to, ' ');
    buf_str(to, text);
}

static void bars_line(const struct bars *b, struct buf *to, uint64_t n, uint64_t most, size_t width)
{
    const uint64_t bar = (uint64_t)((double)n * (double)width / (double)most + 0.5);

    buf_puts(to, " |");
    paint_begin(b->paint, to, PAINT_DURATION);
    for (uint64_t i = 0; i < width; i++)
        buf_char(to, i < MAX(bar, (uint64_t)(n > 0)) ? '#' : ' ');
    paint_end(b->paint, to);
    buf_puts(to, "| ");
    print_u64(to, n);
    buf_char(to, '\n');
}

void bars_rows(const struct bars *b, struct buf *to, const struct bars_row *rows, size_t n, bars_floor *put_floor,
               const void *data)
{
    struct buf floor = {0};
    size_t columns = FLOOR;
    uint64_t most = 0;

    for (size_t i = 0; i < n; i++) {
        buf_clear(&floor);
        put_floor(&floor, rows[i].number, data);
        columns = MAX(columns, utf8_width(floor.data, floor.len));
        most = MAX(most, rows[i].n);
    }
    const size_t room = b->columns ? b->columns - MIN(b->columns, columns + AROUND) : BAR;
    const size_t width = MAX(MIN(room, (size_t)BAR), (size_t)BAR_LEAST);
    for (size_t i = 0; i < n; i++) {
        int number = i ? rows[i - 1].number + 1 : rows[i].number;
        if (rows[i].number - number > EMPTY_MOST) {
            bars_label(to, columns, STR("…"));
            buf_char(to, '\n');
            number = rows[i].number;
        }
        for (; number <= rows[i].number; number++) {
            buf_clear(&floor);
            put_floor(&floor, number, data);
            bars_label(to, columns, buf_view(&floor));
            bars_line(b, to, number == rows[i].number ? rows[i].n : 0, most, width);
        }
    }
    buf_release(&floor);
}

static uint64_t row_of(const struct stat *t, unsigned power)
{
    uint64_t n = 0, from = UINT64_C(1) << power;

    for (size_t b = 0; b < ETW_BUCKETS; b++) {
        uint64_t floor = stat_bucket_floor(b);
        if ((floor >= from && floor < from * 2) || (power == 0 && floor == 0))
            n += t->buckets[b];
    }
    return n;
}

static void put_percentiles(struct buf *to, const struct stat *t)
{
    buf_puts(to, ", p50 ");
    print_duration(to, (int64_t)stat_percentile(t, 50));
    buf_puts(to, ", p99 ");
    print_duration(to, (int64_t)stat_percentile(t, 99));
    buf_puts(to, ", max ");
    print_duration(to, (int64_t)t->max_ns);
    buf_char(to, '\n');
}

static void put_power(struct buf *to, int number, const void *data)
{
    (void)data;
    print_duration(to, INT64_C(1) << number);
}

void bars_durations(const struct bars *b, struct buf *to, const struct stat *t)
{
    struct bars_row rows[POWERS];
    size_t n = 0;

    put_percentiles(to, t);
    for (unsigned p = 0; p < POWERS; p++)
        if ((rows[n] = (struct bars_row){(int)p, row_of(t, p)}).n)
            n++;
    bars_rows(b, to, rows, n, put_power, NULL);
}
