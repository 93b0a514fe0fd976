/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_list.h"

/* Number of lines before the screen that a load keeps, so that small steps back do not need another load. */
#define MARGIN 4000
#define SCAN 4096 /* number of lines that one step of a search compares */

void browse_list_init(struct browse_list *l, const struct browse_recording *of, struct browse_window *window)
{
    *l = (struct browse_list){.of = of, .window = window, .height = 1};
}

void browse_list_release(struct browse_list *l)
{
    buf_release(&l->text);
}

/* ---- positions ---- */

static uint64_t list_end(const struct browse_list *l)
{
    return browse_window_end(l->window);
}

static uint64_t list_first(const struct browse_list *l)
{
    return browse_window_first(l->window);
}

static const struct browse_line *list_line(const struct browse_list *l, uint64_t index)
{
    return browse_window_line(l->window, index);
}

bool browse_list_has(const struct browse_list *l)
{
    return l->cursor >= list_first(l) && l->cursor < list_end(l);
}

const struct browse_line *browse_list_chosen(const struct browse_list *l)
{
    return list_line(l, l->cursor);
}

bool browse_list_searches(const struct browse_list *l)
{
    return l->goal == BROWSE_AHEAD || l->goal == BROWSE_BEHIND;
}

bool browse_list_waits(const struct browse_list *l)
{
    return l->goal >= BROWSE_BACK;
}

/*
 * Chooses a line, and scrolls so that the line is in the given row of the screen, if there are enough lines around it.
 */
static void put_cursor(struct browse_list *l, uint64_t cursor, uint64_t row)
{
    const uint64_t first = list_first(l), end = list_end(l);

    l->goal = BROWSE_FILL;
    if (first == end) {
        l->top = l->cursor = first;
        return;
    }
    l->cursor = MIN(MAX(cursor, first), end - 1);
    l->top = l->cursor - MIN(MIN(row, l->height - 1), l->cursor - first);
    if (browse_window_over(l->window) && end - l->top < l->height)
        l->top = MAX(first, end - MIN(end - first, (uint64_t)l->height));
}

static void list_load(struct browse_list *l, struct browse_spot from)
{
    l->stopped = false;
    l->top = l->cursor = 0;
    from.segment = MAX(from.segment, l->of->first);
    if (browse_window_load(l->window, from, &l->trouble))
        l->trouble.status = ERR_NONE;
    else
        l->goal = BROWSE_FILL;
}

void browse_list_begin(struct browse_list *l)
{
    l->goal = BROWSE_FILL;
    list_load(l, (struct browse_spot){l->of->first, 0});
}

/*
 * Reads the next item, and keeps the lines from the index `keep` on. If one batch has more lines than the window can
 * hold, loads the window again from the line `keep` and adjusts the indexes of the list.
 */
static enum browse_read read_on(struct browse_list *l, uint64_t keep)
{
    const enum browse_read got = browse_window_read(l->window, keep);
    const uint64_t base = MIN(keep, list_end(l) - MIN(list_end(l), 1u));
    const uint64_t top = l->top, cursor = l->cursor;

    if (got != BROWSE_FULL || base <= list_first(l))
        return got;
    list_load(l, list_line(l, base)->spot);
    l->top = top - MIN(top, base);
    l->cursor = cursor - MIN(cursor, base);
    l->at -= MIN(l->at, base);
    return BROWSE_READ;
}

/* ---- going back ---- */

/* Begins to show the line at spot `top` as the first line of the screen, with the cursor in the given row. */
static void show_spot(struct browse_list *l, struct browse_spot top, uint64_t row)
{
    uint64_t index;

    l->goal = BROWSE_SHOW;
    l->spot = top;
    l->row = row;
    if (!browse_window_find(l->window, top, &index))
        list_load(l, (struct browse_spot){top.segment, top.line - MIN(top.line, (uint64_t)MARGIN)});
}

/*
 * Begins to choose the line that is `lines` before the line at spot `from`, and to show it in the given row of the
 * screen. The first line of the screen may be in an earlier segment. step_back() then reads earlier segments until it
 * has counted enough lines.
 */
static void go_back(struct browse_list *l, struct browse_spot from, uint64_t lines, uint64_t row)
{
    l->goal = BROWSE_BACK;
    l->spot = from;
    l->row = row;
    l->left = lines + row;
    l->passes = false;
}

static void step_back(struct browse_list *l)
{
    uint64_t count;

    while (l->left > l->spot.line && l->spot.segment > l->of->first) {
        if (!browse_window_count(l->window, l->spot.segment - 1, &count)) {
            if (!l->passes)
                list_load(l, (struct browse_spot){l->spot.segment - 1, 0});
            l->passes = true;
            browse_window_read(l->window, UINT64_MAX);
            return;
        }
        l->passes = false;
        l->left -= l->spot.line;
        l->spot = (struct browse_spot){l->spot.segment - 1, count};
    }
    const uint64_t back = MIN(l->left, l->spot.line), missing = l->left - back;
    l->spot.line -= back;
    show_spot(l, l->spot, l->row - MIN(missing, l->row));
}

static void step_show(struct browse_list *l)
{
    uint64_t top;
    const bool is_there = browse_window_find(l->window, l->spot, &top);

    if (is_there && (list_end(l) > top + l->row || browse_window_over(l->window)))
        put_cursor(l, top + l->row, l->row);
    else if (browse_window_over(l->window))
        put_cursor(l, list_end(l), l->height - 1);
    else if (browse_window_read(l->window, is_there ? top : list_first(l)) == BROWSE_FULL)
        list_load(l, l->spot);
}

/* ---- moving ---- */

/* Begins to follow the end of the recording if the chosen line is the last one. */
static void follow_if_last(struct browse_list *l)
{
    l->follows = l->goal == BROWSE_FILL && browse_window_over(l->window) && l->cursor + 1 >= list_end(l);
}

void browse_list_resize(struct browse_list *l, unsigned height)
{
    l->height = MAX(height, 1u);
    if (!browse_list_waits(l) && browse_list_has(l))
        put_cursor(l, l->cursor, l->cursor - l->top);
}

static void move_up(struct browse_list *l, uint64_t lines, uint64_t row)
{
    const struct browse_line *first = list_line(l, list_first(l));

    if (l->cursor - list_first(l) >= lines + row || (first->spot.segment <= l->of->first && !first->spot.line))
        put_cursor(l, l->cursor - MIN(lines, l->cursor - list_first(l)), row);
    else
        go_back(l, browse_list_chosen(l)->spot, lines, row);
}

void browse_list_move(struct browse_list *l, int64_t lines, bool scrolls)
{
    if (browse_list_waits(l) || !browse_list_has(l))
        return;
    const uint64_t row = l->cursor - l->top, far = (uint64_t)(lines < 0 ? -lines : lines);
    l->follows = false;
    if (lines < 0) {
        move_up(l, far, scrolls ? row : row - MIN(row, far));
        return;
    }
    l->stopped = false;
    l->at = l->goal == BROWSE_REACH ? l->at + far : l->cursor + far;
    l->row = scrolls ? row : MIN(row + far, (uint64_t)l->height - 1);
    l->goal = BROWSE_REACH;
    if (l->at < list_end(l))
        put_cursor(l, l->at, l->row);
    follow_if_last(l);
}

static void step_reach(struct browse_list *l)
{
    if (l->at < list_end(l) || browse_window_over(l->window) || l->stopped) {
        put_cursor(l, l->at, l->row);
        follow_if_last(l);
        return;
    }
    read_on(l, l->at - MIN(l->at, 2u * l->height));
}

void browse_list_home(struct browse_list *l)
{
    l->follows = false;
    go_back(l, (struct browse_spot){l->of->first, 0}, 0, 0);
}

void browse_list_last(struct browse_list *l)
{
    l->follows = true;
    go_back(l, (struct browse_spot){l->of->segments, 0}, 1, l->height - 1);
}

/* ---- searching ---- */

static bool is_sought(struct browse_list *l, const struct browse_line *line)
{
    const struct browse_seek *s = &l->seek;

    switch (s->what) {
    case BROWSE_TEXT:
        buf_clear(&l->text);
        browse_line_text(line, &l->text);
        return regex_search(s->regex, buf_view(&l->text)) == REGEX_YES;
    case BROWSE_SLOW:
        return line->row.dur_ns >= s->slow_ns;
    case BROWSE_PROCESS:
        return line->row.who == s->who && line->row.node == s->node && !line->row.own;
    case BROWSE_RESULT:
    case BROWSE_RECEIPT:
        return line->row.cause == s->number;
    case BROWSE_CAUSE:
        return line->row.number == s->number && !line->row.own;
    case BROWSE_NUMBER:
        break;
    }
    return line->row.number >= s->number && !line->row.own;
}

void browse_list_seek(struct browse_list *l, const struct browse_seek *seek)
{
    if (browse_list_waits(l) || !browse_list_has(l))
        return;
    l->follows = false;
    l->seek = *seek;
    l->origin = browse_list_chosen(l)->spot;
    l->origin_row = l->cursor - l->top;
    l->at = seek->backward ? l->cursor : l->cursor + 1;
    l->goal = seek->backward ? BROWSE_BEHIND : BROWSE_AHEAD;
    l->passes = l->hits = false;
}

void browse_list_again(struct browse_list *l, struct browse_spot near, uint64_t number)
{
    if (l->follows && l->of->grows) {
        browse_list_last(l);
        return;
    }
    l->follows = false;
    l->seek = (struct browse_seek){.what = BROWSE_NUMBER, .number = number};
    l->origin = (struct browse_spot){l->of->segments, 0};
    l->at = 0;
    l->goal = BROWSE_AHEAD;
    list_load(l, (struct browse_spot){near.segment, 0});
}

static void not_found(struct browse_list *l)
{
    static const char *const messages[] = {
        [BROWSE_TEXT] = "not found",
        [BROWSE_SLOW] = "no slower event follows",
        [BROWSE_PROCESS] = "no other event of this process follows",
        [BROWSE_RESULT] = "the recording has no result of this call",
        [BROWSE_RECEIPT] = "no event that received this message follows",
        [BROWSE_CAUSE] = "the recording does not have what this event belongs to",
    };

    if (l->seek.what == BROWSE_NUMBER) {
        browse_list_last(l);
        return;
    }
    l->message = messages[l->seek.what];
    go_back(l, l->origin, 0, l->origin_row);
}

static void take_hit(struct browse_list *l, uint64_t index)
{
    const bool is_visible = index >= l->top && index < l->top + l->height && l->top >= list_first(l);

    put_cursor(l, index, is_visible ? index - l->top : l->height / 3);
}

static void step_ahead(struct browse_list *l)
{
    const uint64_t settled = browse_window_settled(l->window), until = MIN(settled, l->at + SCAN);

    for (; l->at < until; l->at++)
        if (is_sought(l, list_line(l, l->at))) {
            take_hit(l, l->at);
            return;
        }
    if (l->at < settled)
        return;
    if (browse_window_over(l->window)) {
        not_found(l);
    } else {
        read_on(l, l->at - MIN(l->at, (uint64_t)l->height));
    }
}

/*
 * Begins to search the lines before the spot `behind`: those in its segment, or else those of the previous segment.
 * Returns false if there are no lines before it.
 */
static bool enter_before(struct browse_list *l, struct browse_spot behind)
{
    if (!behind.line && behind.segment <= l->of->first)
        return false;
    l->spot = behind.line ? behind : (struct browse_spot){behind.segment - 1, UINT64_MAX};
    l->passes = true;
    list_load(l, (struct browse_spot){l->spot.segment, 0});
    l->at = 0;
    return true;
}

/*
 * Searches some lines of a segment, up to l->spot, and remembers the last match in it. At l->spot, goes to the match or
 * enters the previous segment.
 */
static void pass_segment(struct browse_list *l)
{
    const uint64_t settled = browse_window_settled(l->window), until = MIN(settled, l->at + SCAN);
    bool over = false;

    for (; l->at < until && !over; l->at++) {
        const struct browse_line *line = list_line(l, l->at);
        over = line->spot.segment > l->spot.segment || line->spot.line >= l->spot.line;
        if (!over && is_sought(l, line)) {
            l->hit = line->spot;
            l->hits = true;
        }
    }
    over |= l->at == settled && browse_window_segment(l->window) > l->spot.segment;
    if (over && l->hits)
        go_back(l, l->hit, 0, l->height / 3);
    else if (over && !enter_before(l, (struct browse_spot){l->spot.segment, 0}))
        not_found(l);
    else if (!over && l->at == settled)
        read_on(l, l->at);
}

static void step_behind(struct browse_list *l)
{
    if (l->passes) {
        pass_segment(l);
        return;
    }
    for (unsigned i = 0; i < SCAN && l->at > list_first(l); i++)
        if (is_sought(l, list_line(l, --l->at))) {
            take_hit(l, l->at);
            return;
        }
    if (l->at == list_first(l) && !enter_before(l, list_line(l, l->at)->spot))
        not_found(l);
}

/* ---- growing ---- */

void browse_list_grown(struct browse_list *l)
{
    const struct browse_spot near = browse_list_has(l) ? browse_list_chosen(l)->spot : (struct browse_spot){0};
    const uint64_t number = browse_list_has(l) ? browse_list_chosen(l)->row.number : 0;

    l->follows |= l->goal == BROWSE_FILL && list_first(l) == list_end(l);
    if (!browse_window_grown(l->window))
        browse_list_again(l, near, number);
}

void browse_list_pause(struct browse_list *l)
{
    l->follows = false;
}

/*
 * Returns true if the recording has grown so much since the window was at its end that most of the lines in between
 * would scroll away unseen; reading them is then useless. Returns false if there are conditions: matching lines are
 * then rare, and the last screen of them may begin far back.
 */
static bool is_far_behind(const struct browse_list *l)
{
    return l->was_over && browse_window_segment(l->window) + 2 < l->of->segments && !l->of->filter.ngreps &&
           !l->of->filter.nwheres;
}

/* Reads new lines at the end, and chooses the last one. Skips to the end if it is far away. */
static void step_follow(struct browse_list *l)
{
    if (is_far_behind(l)) {
        l->was_over = false;
        browse_list_last(l);
        return;
    }
    l->was_over |= read_on(l, list_end(l) - MIN(list_end(l), (uint64_t)l->height)) == BROWSE_OVER;
    if (l->goal == BROWSE_FILL)
        put_cursor(l, list_end(l) - MIN(list_end(l), 1u), l->height - 1);
}

/* ---- steps ---- */

/*
 * Returns true if lines for the screen are not read yet or may still change. Also wants one line more than the screen
 * has, to find out whether the window is at the end.
 */
static bool must_fill(struct browse_list *l)
{
    return !l->stopped && !browse_window_over(l->window) && browse_window_settled(l->window) <= l->top + l->height;
}

static bool step_fill(struct browse_list *l)
{
    if (l->follows && !l->stopped && !browse_window_over(l->window)) {
        step_follow(l);
        return true;
    }
    return must_fill(l) && read_on(l, l->top) != BROWSE_FULL;
}

bool browse_list_step(struct browse_list *l)
{
    if (l->trouble.status)
        return false;
    switch (l->goal) {
    case BROWSE_FILL:
        return step_fill(l);
    case BROWSE_REACH:
        step_reach(l);
        break;
    case BROWSE_BACK:
        step_back(l);
        break;
    case BROWSE_SHOW:
        step_show(l);
        break;
    case BROWSE_AHEAD:
        step_ahead(l);
        break;
    case BROWSE_BEHIND:
        step_behind(l);
        break;
    }
    return true;
}

bool browse_list_stop(struct browse_list *l)
{
    if (l->goal == BROWSE_FILL && (l->follows || !must_fill(l)))
        return false;
    l->message = "stopped";
    if (browse_list_searches(l) && l->seek.what != BROWSE_NUMBER)
        show_spot(l, l->origin, 0);
    else if (browse_list_waits(l))
        put_cursor(l, list_end(l), l->height - 1);
    l->stopped = !browse_list_waits(l);
    return true;
}
