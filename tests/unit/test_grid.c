/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the widths, the cuts and the order in which columns leave a table. */
#include "views/grid_order.h"
#include "views/grid_window.h"

#include "tap.h"

static struct {
    const char *pid, *name, *does;
} rows[] = {
    {"1", "shop_orders", "waits for shop_stock"},
    {"22", "", "runs"},
    {"", "größe", "界界界 sorts"},
};

static const struct grid_column columns[] = {
    {.title = "calls", .number = true, .least = 6, .rank = 2},
    {.title = "name", .rank = 1},
    {.title = "does", .keep = 10},
};

static void put(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    (void)data;
    buf_puts(&cell->text, column == 0 ? rows[row].pid : column == 1 ? rows[row].name : rows[row].does);
}

static const char *drawn(struct grid g)
{
    static struct buf b;

    g.columns = g.columns ? g.columns : columns;
    g.ncolumns = ARRAY_LEN(columns);
    g.put = put;
    g.nrows = ARRAY_LEN(rows);
    buf_clear(&b);
    grid_text(&g, &b);
    return buf_cstr(&b);
}

static void widths(void)
{
    is_text(drawn((struct grid){0}),
            " calls  name         does\n"
            "     1  shop_orders  waits for shop_stock\n"
            "    22               runs\n"
            "     -  größe        界界界 sorts\n",
            "without a terminal each column is as wide as its widest cell");
    is_text(drawn((struct grid){.width = 41}), drawn((struct grid){0}), "the same if the terminal is wide enough");
    is_text(drawn((struct grid){.width = 36}),
            " calls  name         does\n"
            "     1  shop_orders  waits for shop…\n"
            "    22               runs\n"
            "     -  größe        界界界 sorts\n",
            "the widest text is cut");
    is_text(drawn((struct grid){.width = 31}),
            " calls  name        does\n"
            "     1  shop_orde…  waits for …\n"
            "    22              runs\n"
            "     -  größe       界界界 sor…\n",
            "texts that are equally wide are cut alike");
    is_text(drawn((struct grid){.width = 30}),
            " calls  does\n"
            "     1  waits for shop_stock\n"
            "    22  runs\n"
            "     -  界界界 sorts\n",
            "then the column with the lowest rank leaves");
    is_text(drawn((struct grid){.width = 17}),
            "does\n"
            "waits for shop_s…\n"
            "runs\n"
            "界界界 sorts\n",
            "then the next one");
    is_text(drawn((struct grid){.width = 3}),
            "does\n"
            "waits f…\n"
            "runs\n"
            "界界界 …\n",
            "a text keeps eight columns");
}

static void choices(void)
{
    struct grid_column own[ARRAY_LEN(columns)];

    memcpy(own, columns, sizeof(own));
    own[1].hidden = true;
    is_text(drawn((struct grid){.columns = own, .sorted = 1, .width = 10}),
            " calls  does\n"
            "     1  waits f…\n"
            "    22  runs\n"
            "     -  界界界 …\n",
            "the column of the order does not leave, and a hidden one is not there");
    memcpy(own, columns, sizeof(own));
    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        own[i].title = "";
    is_text(drawn((struct grid){.columns = own, .marked = 2}),
            "     1  shop_orders  waits for shop_stock\n"
            "\033[7m    22               runs\033[0m\n"
            "     -  größe        界界界 sorts\n",
            "columns without titles have no header, and the marked row is in reverse");
}

static void whole(void)
{
    struct grid_column own[ARRAY_LEN(columns)];

    memcpy(own, columns, sizeof(own));
    own[2].keep = GRID_WHOLE;
    is_text(drawn((struct grid){.columns = own, .width = 16}),
            "does\n"
            "waits for shop_stock\n"
            "runs\n"
            "界界界 sorts\n",
            "a text that is never cut is wider than the terminal when all other columns have left");
    rows[1].does = "";
    is_text(drawn((struct grid){.columns = own}),
            " calls  name         does\n"
            "     1  shop_orders  waits for shop_stock\n"
            "    22\n"
            "     -  größe        界界界 sorts\n",
            "a line has no blanks at its end");
    rows[1].does = "runs";
}

static void parts(void)
{
    struct grid_column own[ARRAY_LEN(columns)];

    memcpy(own, columns, sizeof(own));
    own[2].wraps = true;
    own[0].hidden = true;
    rows[0].does = "waits for shop_stock\nsince noon";
    is_text(drawn((struct grid){.columns = own, .width = 30}),
            "name         does\n"
            "shop_orders  waits for\n"
            "             shop_stock\n"
            "             since noon\n"
            "             runs\n"
            "größe        界界界 sorts\n",
            "a text that wraps is broken at blanks, and below its beginning");
    own[1].rank = 0;
    own[1].keep = GRID_WHOLE;
    is_text(drawn((struct grid){.columns = own, .width = 20}),
            "name\n"
            "shop_orders\n"
            "    waits for\n"
            "    shop_stock\n"
            "    since noon\n"
            "\n"
            "    runs\n"
            "größe\n"
            "    界界界 sorts\n",
            "a text without room begins on the next line");
    is_text(drawn((struct grid){.columns = own, .continued = true}),
            "shop_orders  waits for shop_stock\n"
            "             since noon\n"
            "             runs\n"
            "größe        界界界 sorts\n",
            "without a terminal only at line ends; rows that follow others have no titles");
    rows[0].does = "waits for shop_stock";
}

static void data(void)
{
    struct grid_column own[ARRAY_LEN(columns)];
    struct buf b = {0};

    memcpy(own, columns, sizeof(own));
    own[0].key = "calls";
    own[2].title = NULL;
    own[2].key = "does, or waits for";
    const struct grid g = {own, ARRAY_LEN(own), put, NULL, ARRAY_LEN(rows), .width = 10};
    grid_data(&g, GRID_CSV, NULL, &b);
    is_text(buf_cstr(&b),
            "calls,\"does, or waits for\"\n"
            "1,waits for shop_stock\n"
            "22,runs\n"
            ",界界界 sorts\n",
            "CSV has the columns with a key, whole, and an empty number stays empty");
    own[2].key = "does";
    buf_clear(&b);
    grid_data(&g, GRID_TSV, NULL, &b);
    is_text(buf_cstr(&b), "calls\tdoes\n1\twaits for shop_stock\n22\truns\n\t界界界 sorts\n", "TSV has tabs");
    struct grid more = g;
    more.continued = true;
    buf_clear(&b);
    grid_print(&more, GRID_TSV, NULL, &b);
    is_text(buf_cstr(&b), "1\twaits for shop_stock\n22\truns\n\t界界界 sorts\n",
            "rows that follow others have no keys");
    buf_clear(&b);
    grid_data(&g, GRID_JSON, "row", &b);
    is_text(buf_cstr(&b),
            "{\"v\":1,\"type\":\"row\",\"calls\":1,\"does\":\"waits for shop_stock\"}\n"
            "{\"v\":1,\"type\":\"row\",\"calls\":22,\"does\":\"runs\"}\n"
            "{\"v\":1,\"type\":\"row\",\"does\":\"界界界 sorts\"}\n",
            "JSON has an object for each row, without empty cells");
    buf_release(&b);
}

static void colours(void)
{
    struct grid_column own[ARRAY_LEN(columns)];

    memcpy(own, columns, sizeof(own));
    own[0].paint = PAINT_DURATION;
    own[1].hidden = true;
    is_text(drawn((struct grid){.columns = own, .sorted = 1, .paint.on = true, .marked = 3}),
            " \033[1mcalls\033[0m  \033[4mdoes\033[0m\n"
            "     \033[35m1\033[0m  waits for shop_stock\n"
            "    \033[35m22\033[0m  runs\n"
            "\033[7m     -  界界界 sorts\033[0m\n",
            "cells and titles have colours, and a row in reverse has none");
}

static void cuts(void)
{
    static const struct {
        const char *text, *want;
        size_t width;
    } cases[] = {
        {"\033[1msh\033[0mop", "\033[1msh\033[0m…", 3},
        {"shop", "shop", 4},
        {"shop", "sh…", 3},
        {"shop", "…", 1},
        {"shop", "", 0},
        {"界界", "界…", 3},
        {"界界", "…", 2},
    };
    struct buf b = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_clear(&b);
        grid_cut(&b, raw_view(raw_text(cases[i].text)), cases[i].width);
        ok(!strcmp(buf_cstr(&b), cases[i].want), "%s in %zu columns", cases[i].text, cases[i].width);
    }
    buf_release(&b);
}

static void breaks(void)
{
    static const struct {
        const char *text, *want;
        size_t width;
    } cases[] = {
        {"", "", 3},
        {"abc", "abc", 3},
        {"abcd\nef", "abc\nd\nef", 3},
        {"abc\n", "abc\n", 3},
        {"a\033[1mbcd\033[0m", "a\033[1mbc\nd\033[0m", 3},
        {"界界", "界\n界", 3},
        {"界", "\n界", 1},
    };
    struct buf b = {0};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_clear(&b);
        grid_break(&b, raw_view(raw_text(cases[i].text)), cases[i].width);
        ok(!strcmp(buf_cstr(&b), cases[i].want), "a text is broken in %zu columns (%zu)", cases[i].width, i);
    }
    buf_release(&b);
}

/* ---- order ---- */

static const char *const figures[][3] = {
    {"b", "10", "z"},
    {"a", "-3", ""},
    {"c", "", "ä"},
    {"d", "10", "a"},
    {"(other)", "99", ""},
    {"e", "2.5", "10"},
    {"f", "9007199254740993", "Z"},
    {"g", "9007199254740992", "9"},
};
static const struct grid_column sorted_columns[] = {
    {.title = "key", .key = "key"},
    {.title = "own time", .key = "time_us", .also = "spent", .number = true},
    {.title = "text", .key = "text"},
};
static const struct grid_table sorted_table = GRID_TABLE(sorted_columns);

static const char *const numbered[][3] = {
    {"a", "", "<0.10.0>(w_2)"},
    {"b", "", "<0.9.0>(w)"},
    {"c", "", "<0.9.10>"},
    {"d", "", "<0.9.9>"},
    {"e", "", "<0.10.0>"},
    {"f", "", "<0.010.0>"},
    {"g", "", "f/2"},
    {"h", "", "f/10"},
    {"i", "", "f/"},
    {"j", "", "<0.9>"},
    {"k", "", "99999999999999999999999"},
};
static const char *const (*cells)[3] = figures;

static void put_figure(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    (void)data;
    buf_puts(&cell->text, cells[row][column]);
}

/* Returns the first cells of the rows, in their order. */
static const char *ordered(const char *given, struct grid_turn turn, size_t n, bool rest)
{
    static struct buf b;
    struct grid g = {sorted_columns, ARRAY_LEN(sorted_columns), put_figure, NULL, n, .rest = rest};

    buf_clear(&b);
    grid_order(&g, &(struct grid_sort){given, &turn});
    for (size_t i = 0; i < g.nrows; i++)
        buf_puts(&b, cells[grid_row(&g, i)][0]);
    grid_release(&g);
    return buf_cstr(&b);
}

static void order(void)
{
    static const struct {
        const char *given, *want, *about;
    } cases[] = {
        {NULL, "bacd", "without a column the rows stay as they are"},
        {"time_us", "bdac", "the largest number comes first, a negative one last, and an unknown one behind it"},
        {"time", "bdac", "the unit of a name may be missing"},
        {"spent", "bdac", "a column has another name"},
        {"own time", "bdac", "the title is a name, too"},
        {"time_us:asc", "abdc", "equal rows keep their order in the other direction, and unknown ones stay last"},
        {"time_us:desc", "bdac", "a direction that is the usual one"},
        {"key", "abcd", "texts begin with the first"},
        {"key:desc", "dcba", "and with the last"},
        {"text", "dbca", "texts are in the order of Unicode"},
        {"text:desc", "cbda", "and in the other one"},
    };
    struct grid_turn still = {0};
    struct err e;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        is_text(ordered(cases[i].given, still, 4, false), cases[i].want, cases[i].about);
    is_text(ordered("time:asc", still, 5, true), "abdc(other)", "the row of all others stays the last one");
    is_text(ordered("time", still, ARRAY_LEN(figures), false), "fg(other)bdeac", "large numbers and fractions");
    is_text(ordered("text:asc", still, ARRAY_LEN(figures), false), "gefdbca(other)",
            "numbers come before texts, by value");

    cells = numbered;
    is_text(ordered("text", still, ARRAY_LEN(numbered), false), "kbdcjfeaigh",
            "numbers in texts are in order of value");
    cells = figures;

    is_text(ordered("key", (struct grid_turn){1, false}, 4, false), "bdac", "a key goes to the next column");
    is_text(ordered("key", (struct grid_turn){-1, false}, 4, false), "dbca", "and from the first to the last one");
    is_text(ordered("key", (struct grid_turn){3, false}, 4, false), "abcd", "and around");
    is_text(ordered("key", (struct grid_turn){0, true}, 4, false), "dcba", "a key reverses");
    is_text(ordered(NULL, (struct grid_turn){1, true}, 4, false), "dcba",
            "without a column the keys begin at the first");
    is_text(ordered(NULL, (struct grid_turn){4, false}, 4, false), "bacd", "and come back to the usual order");

    ok(grid_order_check(&sorted_table, "time:asc", &e), "a column and a direction are right");
    ok(!grid_order_check(&sorted_table, "tim", &e), "another name is an error");
    is_text(e.text, "--sort: no column 'tim'; the columns are key, time_us, text", "that lists the columns");
    ok(!grid_order_check(&sorted_table, "key:up", &e), "another direction is an error");
    ok(!grid_order_check(&sorted_table, "", &e) && !grid_order_check(&sorted_table, ":asc", &e), "so is no name");
}

/* ---- the window of a screen ---- */

static void put_key(const void *data, size_t row, struct buf *to)
{
    (void)data;
    buf_puts(to, cells[row][0]);
}

/* Returns the first cells of the rows that the window shows, with a star before the marked one. */
static const char *shown(struct grid_window *w, const char *given, size_t n)
{
    static struct buf b;
    struct grid g = {sorted_columns, ARRAY_LEN(sorted_columns), put_figure, NULL, n, .name = put_key};

    buf_clear(&b);
    grid_order(&g, &(struct grid_sort){given, NULL});
    grid_show(&g, w);
    for (size_t i = g.first; i < grid_end(&g); i++)
        buf_printf(&b, "%s%s", i + 1 == g.marked ? "*" : "", cells[grid_row(&g, i)][0]);
    grid_release(&g);
    return buf_cstr(&b);
}

static void windows(void)
{
    struct grid_window w = {.room = 2, .scrolls = true, .chooses = true}, print = {.room = 2},
                       text = {.room = 2, .scrolls = true};
    static const struct grid_column two[] = {{.title = "n", .number = true},
                                             {.title = "whole text"},
                                             {.key = "hidden"}};

    is_text(shown(&w, "key", 4), "*ab", "a window shows the first rows, and marks the first one");
    is_text(shown(&w, "key:desc", 4), "*dc", "the mark stays at the top when the order changes");
    grid_window_down(&w, 2);
    is_text(shown(&w, "key", 4), "b*c", "the window follows the mark down");
    is_text(shown(&w, "key:desc", 4), "*cb", "the chosen row stays chosen when the order changes");
    grid_window_up(&w, 1);
    is_text(shown(&w, "key:desc", 4), "*dc", "and up");
    grid_window_last(&w);
    is_text(shown(&w, "key", 4), "c*d", "the last row");
    is_text(shown(&w, "key", 7), "e*f", "which stays the last one when there are more");
    ok(grid_window_needs(&w) == SIZE_MAX, "and needs all rows");
    is_text(shown(&w, "key", 3), "b*c", "or fewer");
    grid_window_up(&w, GRID_WINDOW_HOME);
    is_text(shown(&w, "key", 4), "*ab", "and home");
    ok(grid_window_needs(&w) == 4, "the first rows and as many again are needed");
    grid_window_down(&w, SIZE_MAX);
    grid_window_down(&w, 1);
    is_text(shown(&w, "key", 4), "c*d", "far down is the last row");
    is_text(shown(&w, "key", 3), "b*c", "if the chosen row is gone, its place is marked");
    is_text(shown(&w, "key:desc", 3), "*cb", "from then on it is the one in this place");
    is_text(shown(&w, "key", 0), "", "a table without rows");
    is_text(shown(&w, "key", 4), "*ab", "and with rows again");
    w.pins = true;
    is_text(shown(&w, "key", 4), "*ab", "the first row is pinned");
    is_text(shown(&w, "key:desc", 4), "b*a", "and stays chosen when the order changes");
    grid_window_up(&w, GRID_WINDOW_HOME);
    is_text(shown(&w, "key:desc", 4), "*dc", "another row is pinned");
    is_text(shown(&w, "key:desc", 3), "cb", "a pinned row that is gone leaves no mark");
    is_text(shown(&w, "key:desc", 4), "*dc", "and is marked when it is back");
    w.pins = false;
    w.filter = "Z";
    is_text(shown(&w, "key", 7), "*bf", "a filter matches in upper and lower case");
    w.filter = "10 ";
    is_text(shown(&w, "key", 7), "*bd", "in all columns");
    w.filter = "nothing";
    is_text(shown(&w, "key", 7), "", "or nothing");
    ok(!w.rows && grid_window_needs(&w) == SIZE_MAX, "and then all rows are needed");
    grid_window_release(&w);

    is_text(shown(&print, "key", 4), "ab", "a table that is printed has a limit and no mark");
    print.room = 0;
    print.filter = "1";
    is_text(shown(&print, "key", 7), "bdef", "or a filter");
    is_text(shown(NULL, "key", 4), "abcd", "or nothing of this");
    grid_window_down(&text, 9);
    is_text(shown(&text, "key", 4), "cd", "without a mark the window itself scrolls");
    grid_window_up(&text, 1);
    is_text(shown(&text, "key", 4), "bc", "and back");

    struct buf b = {0};
    const struct grid g = {.columns = two, .ncolumns = ARRAY_LEN(two), .put = put_figure, .nrows = 2};
    grid_row_text(&g, 0, &b);
    is_text(buf_cstr(&b), "n           b\nwhole text  10\n", "a row alone has a line for each column with a title");
    buf_release(&b);
}

int main(void)
{
    widths();
    choices();
    whole();
    parts();
    data();
    colours();
    cuts();
    breaks();
    order();
    windows();
    return tap_end();
}
