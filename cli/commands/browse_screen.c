/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_screen.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/screen.h"
#include "../ground/utf8.h"
#include "../views/event_again.h"
#include "../views/grid.h"
#include "browse_page.h"
#include "opts.h"

#define SLICE_MS 30 /* how long the screen reads before it looks for keys again */
/* How often the screen checks the size of the terminal. A change of the size does not wake the loop. */
#define RESIZE_MS 200
#define LOOK_MS 100 /* how often the screen checks whether the file has grown */
/* Limit for reading the last lines at the end. It may take long if few events match a filter. */
#define LAST_MS 2000
#define BACKLOG_FULL (256u << 10)
#define QUEUED 32 /* limit for the keys that wait until the lines of the screen are known */
#define TYPED 400 /* limit for the bytes that a user types at a prompt */
#define KEY_ESCAPE 27
#define CTRL(c) ((c)&31)
#define KEY_DELETE 127

/* The lines of the help. Long lines are wrapped and indented by BROWSE_PAGE_INDENT. */
static const char help[] =
    "j k  arrows      one line down, up\n"
    "space b  PgDn    one screen down, up; d u: half a screen\n"
    "g G  Home End    the first line, the last line\n"
    "space            while the list follows new events: pause, and go on\n"
    "Enter            open the event: all its terms, its result, and the calls that were open around it\n"
    "/ ?              search forward, backward: a regular expression (PCRE2)\n"
    "n N              the next match, in the same direction and in the other one\n"
    "&                show only lines that match: a regular expression, or a condition such as dur > 5ms; "
    "nothing: all lines\n"
    ">                the next slow event; the first time it asks how slow\n"
    ")                from a call to its result, from a sent message to the event that received it, and back\n"
    "(                the next event of the same process\n"
    "x                commands that trace more of the same: this function, in this process, slower; the end prints "
    "them; in a live trace, 1 2 3 trace this instead\n"
    "X                in a live trace: trace again what was traced before x\n"
    "t                times: of day, since the first event, since the line before\n"
    "Ctrl-C           stop a search; otherwise end\n"
    "Esc q            back; q ends the program, and a live trace\n"
    "\n"
    "-> …             the result comes later, or never: ) looks for it\n";

struct browse_screen {
    struct ctx *ctx;
    struct browse_recording *of;
    struct browse_filter *filter;
    const struct browse_options *o;
    struct browse_window *window;
    struct browse_list list;
    struct browse_draw draw;
    struct browse_page page;
    bool paged; /* a page covers the list */
    bool again; /* the page shows the commands that trace more (open_again()) */
    unsigned lines;
    int queued[QUEUED];
    size_t nqueued;
    int interrupts; /* number of interrupts that are not handled yet */
    /* value of ctx->interrupts that `interrupts` already includes; the interactive mode increments it */
    int counted;
    int64_t look_at; /* loop_now() time of the next look at the file */
    bool paused;     /* the user has paused following */
    bool dirty, done;
    struct err lost; /* why the file can no longer be shown; status 0: it can */

    int prompt; /* the key that opened the prompt; 0: there is no prompt */
    char typed[TYPED + 1];
    struct regex *regex;
    char *pattern; /* the text of `regex` */
    bool backward; /* the direction of the last search */
    int64_t slow_ns;
    struct buf message; /* the error to show in the last line */
    const char *title;
    struct buf note;     /* the text that browse_screen_note() has set */
    struct buf commands; /* commands to print when the screen is freed */
};

/* ---- drawing ---- */

static unsigned list_height(const struct browse_screen *s)
{
    return s->lines > 3 ? s->lines - 2 : 1;
}

static void draw_title(struct browse_screen *s, struct buf *to)
{
    struct buf b = {0};

    buf_printf(&b, "etrace browse · %s", s->paged ? s->page.title : s->title);
    if (s->filter->text && !s->paged)
        buf_printf(&b, " · & %s", s->filter->text);
    utf8_make_safe((char *)(uintptr_t)buf_cstr(&b));
    browse_draw_begin(to, 1);
    browse_draw_text(&s->draw, to, buf_view(&b), true);
    buf_release(&b);
}

/* Separates the next part of the last line from the previous one. */
static void begin_part(struct buf *to)
{
    buf_puts(to, to->len ? " · " : "");
}

/* Appends the position of an offset in the file, in percent. Appends nothing if there are several files. */
static void put_share(const struct browse_screen *s, uint64_t place, struct buf *to)
{
    const uint64_t tenths = s->of->bytes ? MIN(place, s->of->bytes) * 1000 / s->of->bytes : 0;

    if (s->of->bytes)
        buf_printf(to, "%llu.%llu%%", (unsigned long long)(tenths / 10), (unsigned long long)(tenths % 10));
}

static bool is_growing(const struct browse_screen *s)
{
    return s->o->growth && s->of->grows;
}

static bool is_following(const struct browse_screen *s)
{
    return is_growing(s) && s->list.follows;
}

/* Appends "following", or the number of events that were added since the list stopped following. */
static void put_growth(struct browse_screen *s, struct buf *to)
{
    if (!is_growing(s) || s->note.len)
        return;
    const uint64_t new = browse_growth_new(s->o->growth, s->list.follows);
    begin_part(to);
    if (s->list.follows) {
        buf_puts(to, "following");
        return;
    }
    buf_puts(to, s->paused ? "paused · " : "");
    browse_draw_number(to, new);
    buf_puts(to, " new");
}

static void put_position(struct browse_screen *s, struct buf *to)
{
    const struct browse_line *line = browse_list_chosen(&s->list);
    const bool last = browse_window_over(s->window) && s->list.cursor + 1 == browse_window_end(s->window);

    if (s->of->bytes && !is_following(s)) {
        begin_part(to);
        put_share(s, last ? s->of->bytes : line->place, to);
    }
    if (line->row.own)
        return;
    begin_part(to);
    browse_draw_time(&s->draw, &line->row, to);
    buf_puts(to, " · event ");
    browse_draw_number(to, line->row.number);
}

static void put_busy(struct browse_screen *s, struct buf *to)
{
    begin_part(to);
    buf_puts(to, browse_list_searches(&s->list) ? "searching " : "reading ");
    put_share(s, browse_window_place(s->window), to);
    buf_puts(to, " · Ctrl-C stops");
}

static void put_message(struct browse_screen *s, struct buf *to)
{
    if (s->list.trouble.status)
        buf_printf(to, "%s", s->list.trouble.text);
    else if (s->message.len)
        buf_str(to, buf_view(&s->message));
    else if (s->list.message)
        buf_puts(to, s->list.message);
    if (!s->note.len)
        return;
    begin_part(to);
    buf_str(to, buf_view(&s->note));
}

static void put_status(struct browse_screen *s, bool busy, struct buf *to)
{
    const bool waits = busy && !is_following(s);

    put_message(s, to);
    if (s->paged) {
        begin_part(to);
        buf_puts(to, s->page.reader ? "reading · Esc back" : "Esc back");
        if (s->again && s->o->refine && s->page.again.found)
            buf_puts(to, " · 1 2 3 trace this instead");
        return;
    }
    put_growth(s, to);
    if (waits) {
        put_busy(s, to);
    } else if (browse_list_has(&s->list)) {
        put_position(s, to);
    } else {
        begin_part(to);
        buf_puts(to, s->filter->text ? "no event matches" : "no event");
    }
    if (s->pattern)
        buf_printf(to, " · %c%s", s->backward ? '?' : '/', s->pattern);
    buf_puts(to, waits ? "" : " · h help");
}

static void put_prompt(const struct browse_screen *s, struct buf *to)
{
    buf_puts(to, s->prompt == '>' ? "slower than, for example 10ms: " : "");
    if (s->prompt != '>')
        buf_char(to, (char)s->prompt);
    buf_puts(to, s->typed);
}

/* Draws the last line. If the text at a prompt is too long, draws its end. */
static void draw_foot(struct browse_screen *s, bool busy, struct buf *to)
{
    struct buf b = {0};

    browse_draw_begin(to, s->lines);
    if (s->prompt)
        put_prompt(s, &b);
    else
        put_status(s, busy, &b);
    utf8_make_safe((char *)(uintptr_t)buf_cstr(&b));
    struct str text = {b.data, strlen(b.data)};
    if (s->prompt) {
        while (text.len && utf8_width(text.at, text.len) >= s->draw.columns) {
            const char *next = text.at;
            utf8_next(&next, text.at + text.len);
            text = (struct str){next, text.len - (size_t)(next - text.at)};
        }
        buf_str(to, text);
        buf_puts(to, "\033[7m \033[0m");
    } else {
        browse_draw_text(&s->draw, to, text, false);
    }
    buf_release(&b);
}

static void note_first(struct browse_screen *s)
{
    const uint64_t first = browse_window_first(s->window);

    if (s->draw.begun || first == browse_window_end(s->window))
        return;
    const struct browse_line *line = browse_window_line(s->window, first);
    if (line->row.own || line->spot.line || line->spot.segment != s->of->first)
        return;
    s->draw.begin = line->row.steady_ns;
    s->draw.begun = true;
}

/* Takes over a changed size of the terminal. Must precede reading, because the list reads as many lines as fit. */
static void resize_screen(struct browse_screen *s)
{
    unsigned columns, lines;

    screen_size(&columns, &lines);
    if (columns == s->draw.columns && lines == s->lines)
        return;
    s->draw.columns = columns;
    s->lines = lines;
    browse_list_resize(&s->list, list_height(s));
    s->dirty = true;
}

static void draw_screen(struct browse_screen *s, bool busy)
{
    struct buf b = {0};

    if (!s->dirty)
        return;
    note_first(s);
    draw_title(s, &b);
    if (s->paged)
        browse_page_draw(&s->page, &s->draw, 2, list_height(s), &b);
    else if (!browse_list_waits(&s->list) && s->list.top >= browse_window_first(s->window))
        browse_draw_list(&s->draw, &s->list, 2, &b);
    draw_foot(s, busy, &b);
    s->dirty = busy;
    if (out_backlog(s->ctx->out, BACKLOG_FULL) < BACKLOG_FULL)
        out_take(s->ctx->out, &b);
    else
        s->dirty = true;
    buf_release(&b);
}

/* ---- searches and filters ---- */

static void say_error(struct browse_screen *s, const struct err *e)
{
    buf_clear(&s->message);
    buf_puts(&s->message, e->text);
}

static void search(struct browse_screen *s, bool backward)
{
    if (s->regex)
        browse_list_seek(&s->list, &(struct browse_seek){.what = BROWSE_TEXT, .backward = backward, .regex = s->regex});
    else
        s->list.message = "nothing was searched for; / begins";
}

static void search_typed(struct browse_screen *s, bool backward)
{
    struct err e;

    if (s->typed[0]) {
        struct regex *regex = regex_new((struct str){s->typed, strlen(s->typed)}, &e);
        if (!regex) {
            say_error(s, &e);
            return;
        }
        regex_free(s->regex);
        free(s->pattern);
        s->regex = s->draw.sought = regex;
        s->pattern = strdup(s->typed);
    }
    s->backward = backward;
    search(s, backward);
}

static void filter_typed(struct browse_screen *s)
{
    struct browse_spot near = {s->of->first, 0};
    struct browse_filter before;
    uint64_t number = 0;
    struct err e;

    if (browse_list_has(&s->list)) {
        near = browse_list_chosen(&s->list)->spot;
        number = browse_list_chosen(&s->list)->row.number;
    }
    if (!browse_filter_set(s->filter, s->typed, &s->of->filter, &before, &e)) {
        say_error(s, &e);
        return;
    }
    browse_window_forget(s->window);
    browse_filter_release(&before);
    browse_list_again(&s->list, near, number);
}

static void seek_slow(struct browse_screen *s)
{
    browse_list_seek(&s->list, &(struct browse_seek){.what = BROWSE_SLOW, .slow_ns = s->slow_ns});
}

static void slow_typed(struct browse_screen *s)
{
    int64_t ns;

    if (!opt_duration(s->typed, &ns) || ns <= 0) {
        s->list.message = "not a duration: 10ms, 2s";
        return;
    }
    s->slow_ns = ns;
    seek_slow(s);
}

/* Goes from a call to its result, from a sent message to the event that received it, and back. */
static void seek_partner(struct browse_screen *s)
{
    const struct browse_line *line = browse_list_chosen(&s->list);

    if (line->row.cause)
        browse_list_seek(&s->list,
                         &(struct browse_seek){.what = BROWSE_CAUSE, .backward = true, .number = line->row.cause});
    else if (line->row.tail)
        s->list.message = "its call is not known here";
    else if (line->row.kind == ETW_RECEIVE)
        s->list.message = "the event that sent this message is not known here";
    else if (line->row.kind == ETW_SEND)
        browse_list_seek(&s->list, &(struct browse_seek){.what = BROWSE_RECEIPT, .number = line->row.number});
    else if (line->more)
        s->list.message = "the result is on this line";
    else if (line->row.returns)
        browse_list_seek(&s->list, &(struct browse_seek){.what = BROWSE_RESULT, .number = line->row.number});
    else
        s->list.message = "this event has neither a result nor a receiver";
}

static void seek_process(struct browse_screen *s)
{
    const struct event_row *row = &browse_list_chosen(&s->list)->row;

    if (row->own)
        s->list.message = "no process is known here";
    else
        browse_list_seek(&s->list, &(struct browse_seek){.what = BROWSE_PROCESS, .who = row->who, .node = row->node});
}

static void open_event(struct browse_screen *s)
{
    const struct browse_line *line = browse_list_chosen(&s->list);
    struct err e;

    if (line->row.own) {
        buf_clear(&s->message);
        browse_line_text(line, &s->message);
        buf_char(&s->message, '\n');
        browse_page_text(&s->page, s->o->title, buf_cstr(&s->message));
        buf_clear(&s->message);
    } else if (!browse_page_event(&s->page, s->o->title, s->of, line, &event_page, &e)) {
        say_error(s, &e);
        return;
    } else {
        buf_puts(&s->page.text, "Event ");
        browse_draw_number(&s->page.text, line->row.number);
        buf_puts(&s->page.text, ", ");
        browse_draw_time(&s->draw, &line->row, &s->page.text);
        buf_char(&s->page.text, '\n');
    }
    s->paged = true;
}

/* Shows a page with the commands that trace more events like the chosen one. */
static void open_again(struct browse_screen *s)
{
    const struct browse_line *line = browse_list_chosen(&s->list);
    struct err e;

    if (line->row.own) {
        s->list.message = "this line is no event";
    } else if (!browse_page_event(&s->page, s->o->title, s->of, line, &event_again, &e)) {
        say_error(s, &e);
    } else {
        s->paged = s->again = true;
    }
}

/* Keeps the commands of open_again() without their labels, so that they can be printed when the screen is freed. */
static void keep_commands(struct browse_screen *s)
{
    struct str rest = buf_view(&s->page.text);

    buf_clear(&s->commands);
    for (const char *end; (end = memchr(rest.at, '\n', rest.len));) {
        const struct str line = {rest.at, (size_t)(end + 1 - rest.at)};
        if (line.len > EVENT_AGAIN_LABEL)
            buf_add(&s->commands, line.at + EVENT_AGAIN_LABEL, line.len - EVENT_AGAIN_LABEL);
        rest = (struct str){end + 1, rest.len - line.len};
    }
}

static void close_page(struct browse_screen *s)
{
    if (s->again)
        keep_commands(s);
    browse_page_close(&s->page);
    s->paged = s->again = false;
}

/* ---- keys ---- */

static void prompt_done(struct browse_screen *s)
{
    const int prompt = s->prompt;

    s->prompt = 0;
    switch (prompt) {
    case '/':
    case '?':
        search_typed(s, prompt == '?');
        break;
    case '&':
        filter_typed(s);
        break;
    case '>':
        slow_typed(s);
        break;
    }
}

static void prompt_key(struct browse_screen *s, int key)
{
    size_t len = strlen(s->typed);

    if (key == '\r' || key == '\n') {
        prompt_done(s);
    } else if (key == KEY_ESCAPE || ((key == KEY_DELETE || key == '\b') && !len)) {
        s->prompt = 0;
    } else if (key == KEY_DELETE || key == '\b') {
        while (--len && (s->typed[len] & 0xc0) == 0x80)
            ;
        s->typed[len] = 0;
    } else if (key == CTRL('u')) {
        s->typed[0] = 0;
    } else if (key >= ' ' && key < 0x100 && len < TYPED) {
        s->typed[len] = (char)key;
        s->typed[len + 1] = 0;
    }
}

static void begin_prompt(struct browse_screen *s, int key)
{
    s->prompt = key;
    s->typed[0] = 0;
}

/* Traces the probe with this number on the page of open_again() from now on. */
static void refine(struct browse_screen *s, int number)
{
    const enum again_probe probe = (enum again_probe)(number - 1);
    const char *why = "a recording cannot change; the end prints the commands";

    if (!s->again || !again_has(&s->page.again, probe))
        return;
    s->done = s->o->refine && s->o->refine(s->o->data, &s->page.again, probe, &why);
    s->again = !s->done; /* etrace does not print the commands at its end if it traces one of them now */
    s->list.message = s->done ? NULL : why;
}

/* Traces what was traced before the last refine(). */
static void widen(struct browse_screen *s)
{
    const char *why = "a recording cannot change";

    s->done = s->o->widen && s->o->widen(s->o->data, &why);
    s->list.message = s->done ? NULL : why;
}

static void page_key(struct browse_screen *s, int key)
{
    const int64_t height = list_height(s);

    switch (key) {
    case '1':
    case '2':
    case '3':
        refine(s, key - '0');
        break;
    case 'q':
    case KEY_ESCAPE:
    case KEY_LEFT:
        close_page(s);
        break;
    case 'j':
    case KEY_DOWN:
    case '\r':
    case '\n':
        browse_page_scroll(&s->page, 1);
        break;
    case 'k':
    case KEY_UP:
        browse_page_scroll(&s->page, -1);
        break;
    case ' ':
    case CTRL('f'):
    case KEY_PAGE_DOWN:
        browse_page_scroll(&s->page, height);
        break;
    case 'b':
    case CTRL('b'):
    case KEY_PAGE_UP:
        browse_page_scroll(&s->page, -height);
        break;
    case 'g':
    case KEY_FIRST:
        browse_page_scroll(&s->page, -(int64_t)s->page.top);
        break;
    case 'G':
    case KEY_LAST:
        browse_page_scroll(&s->page, (int64_t)s->page.count);
        break;
    default:
        break;
    }
}

static void next_time_style(struct browse_draw *d)
{
    d->time = d->time == TIME_RELATIVE ? TIME_DELTA : d->time == TIME_DELTA ? d->of_day : TIME_RELATIVE;
}

/* Pauses or resumes following. Returns false if the list neither follows nor is paused. */
static bool pause_key(struct browse_screen *s)
{
    if (is_following(s)) {
        s->paused = true;
        browse_list_pause(&s->list);
        return true;
    }
    if (s->paused && is_growing(s)) {
        browse_list_last(&s->list);
        return true;
    }
    return false;
}

/* Handles a key that moves the cursor. Returns false if the key is another one. */
static bool move_key(struct browse_screen *s, int key)
{
    const int64_t height = s->list.height, half = MAX(height / 2, 1);

    switch (key) {
    case 'j':
    case KEY_DOWN:
        browse_list_move(&s->list, 1, false);
        return true;
    case 'k':
    case KEY_UP:
        browse_list_move(&s->list, -1, false);
        return true;
    case ' ':
        if (!pause_key(s))
            browse_list_move(&s->list, height, true);
        return true;
    case 'f':
    case CTRL('f'):
    case KEY_PAGE_DOWN:
        browse_list_move(&s->list, height, true);
        return true;
    case 'b':
    case CTRL('b'):
    case KEY_PAGE_UP:
        browse_list_move(&s->list, -height, true);
        return true;
    case 'd':
    case CTRL('d'):
        browse_list_move(&s->list, half, true);
        return true;
    case 'u':
    case CTRL('u'):
        browse_list_move(&s->list, -half, true);
        return true;
    case 'g':
    case '<':
    case KEY_FIRST:
        browse_list_home(&s->list);
        return true;
    case 'G':
    case 'F':
    case KEY_LAST:
        browse_list_last(&s->list);
        return true;
    default:
        return false;
    }
}

/* Handles a key that acts on the chosen line. Does nothing if no line is chosen. */
static void line_key(struct browse_screen *s, int key)
{
    if (!browse_list_has(&s->list))
        return;
    switch (key) {
    case '\r':
    case '\n':
    case KEY_RIGHT:
        open_event(s);
        break;
    case 'x':
        open_again(s);
        break;
    case 'n':
        search(s, s->backward);
        break;
    case 'N':
        search(s, !s->backward);
        break;
    case '>':
        if (s->slow_ns)
            seek_slow(s);
        else
            begin_prompt(s, key);
        break;
    case ')':
        seek_partner(s);
        break;
    case '(':
        seek_process(s);
        break;
    default:
        break;
    }
}

static void list_key(struct browse_screen *s, int key)
{
    switch (key) {
    case '/':
    case '?':
    case '&':
        begin_prompt(s, key);
        break;
    case 't':
        next_time_style(&s->draw);
        break;
    case 'h':
        browse_page_text(&s->page, "help", help);
        s->paged = true;
        break;
    case 'X':
        widen(s);
        break;
    case 'q':
        s->done = true;
        break;
    default:
        if (!move_key(s, key))
            line_key(s, key);
    }
}

static void handle_key(struct browse_screen *s, int key)
{
    s->dirty = true;
    if (s->prompt) {
        prompt_key(s, key);
        return;
    }
    buf_clear(&s->message);
    s->list.message = NULL;
    if (s->paged)
        page_key(s, key);
    else
        list_key(s, key);
    s->paused &= !s->list.follows;
}

/*
 * Returns true if the key must wait, because the lines of the screen are not known yet, or because the key acts on the
 * chosen line and that line is not read yet.
 */
static bool key_waits(const struct browse_screen *s, int key)
{
    if (s->prompt || s->paged)
        return false;
    return browse_list_waits(&s->list) ||
           (s->list.goal == BROWSE_REACH && (key == KEY_RIGHT || (key < 128 && strchr("\r\nxnN>()", key))));
}

static void serve_keys(struct browse_screen *s)
{
    size_t n = 0;

    while (n < s->nqueued && !s->done && !key_waits(s, s->queued[n]))
        handle_key(s, s->queued[n++]);
    s->nqueued -= n;
    memmove(s->queued, s->queued + n, s->nqueued * sizeof(*s->queued));
}

static void browse_on_key(void *data, int key)
{
    struct browse_screen *s = data;
    const bool waits = key != KEY_END && key_waits(s, key);

    s->done |= key == KEY_END || (waits && key == 'q');
    if (waits && key == KEY_ESCAPE)
        s->interrupts++;
    else if (key != KEY_END && s->nqueued < QUEUED)
        s->queued[s->nqueued++] = key;
}

static void browse_on_signal(void *data, int signal, bool from_kernel UNUSED)
{
    struct browse_screen *s = data;

    if (signal == SIGINT && s->interrupts++ < 2)
        return;
    s->done = true;
}

/*
 * Handles Ctrl-C: ends the prompt, the page, the search or the reading. If there is none of these, leaves the screen.
 */
static void serve_interrupt(struct browse_screen *s)
{
    s->interrupts += s->ctx->interrupts - s->counted;
    s->counted = s->ctx->interrupts;
    if (!s->interrupts)
        return;
    s->interrupts--;
    s->nqueued = 0;
    s->dirty = true;
    if (s->prompt) {
        s->prompt = 0;
    } else if (s->paged) {
        close_page(s);
    } else if (!browse_list_stop(&s->list)) {
        s->done = true;
    }
}

/* ---- the loop ---- */

static void say_lost(struct browse_screen *s, const char *what)
{
    err_set(&s->lost, ERR_RUN, "%s was %s while it was shown", s->o->title, what);
    s->done = true;
}

/* Extends the recording by the blocks that were added to the file. */
static void look_at_file(struct browse_screen *s)
{
    struct browse_growth *growth = s->o->growth;

    if (!growth || loop_now() < s->look_at)
        return;
    s->look_at = loop_now() + LOOK_MS;
    switch (browse_growth_look(growth)) {
    case RECGROW_SAME:
        return;
    case RECGROW_CUT:
        say_lost(s, "truncated");
        return;
    case RECGROW_REPLACED:
        say_lost(s, "removed or replaced");
        return;
    case RECGROW_MORE:
    case RECGROW_ENDED:
        break;
    }
    browse_growth_copy(growth, &s->page.of);
    browse_list_grown(&s->list);
    s->dirty = true;
}

/* Reads for at most SLICE_MS what the page or the list needs. Returns true if there is more to read. */
static bool read_slice(struct browse_screen *s)
{
    const int64_t until = loop_now() + SLICE_MS;

    while (s->paged ? browse_page_step(&s->page) : browse_list_step(&s->list)) {
        s->dirty = true;
        if (loop_now() >= until)
            return true;
    }
    return false;
}

static bool count_slice(struct browse_screen *s)
{
    const int64_t until = loop_now() + SLICE_MS;

    while (s->o->growth && browse_growth_count(s->o->growth)) {
        s->dirty |= !s->list.follows;
        if (loop_now() >= until)
            return true;
    }
    return false;
}

int64_t browse_screen_turn(struct browse_screen *s)
{
    struct err e;
    bool closed;

    s->done |= out_failed(s->ctx->out, &closed, &e);
    resize_screen(s);
    look_at_file(s);
    serve_interrupt(s);
    serve_keys(s);
    const bool busy = read_slice(s), counts = !busy && count_slice(s);
    draw_screen(s, busy);
    return busy || counts || s->nqueued || s->interrupts ? 0
           : is_growing(s)                               ? MIN(s->look_at, loop_now() + RESIZE_MS)
                                                         : loop_now() + RESIZE_MS;
}

bool browse_screen_done(const struct browse_screen *s)
{
    return s->done;
}

void browse_screen_open(struct browse_screen *s)
{
    struct buf b = {0};

    ctx_pass_signals(s->ctx, browse_on_signal, s);
    screen_open(STDIN_FILENO, STDOUT_FILENO, &b);
    out_take(s->ctx->out, &b);
    buf_release(&b);
    screen_listen(&s->ctx->loop, browse_on_key, s);
}

void browse_screen_close(struct browse_screen *s)
{
    struct buf b = {0};

    screen_ignore();
    screen_close(&b);
    out_take(s->ctx->out, &b);
    buf_release(&b);
    ctx_pass_signals(s->ctx, NULL, NULL);
    /* prints the pending output first: the messages that follow belong after the screen is closed */
    ctx_flush(s->ctx, 0);
}

/* ---- the screen ---- */

struct browse_screen *browse_screen_new(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                                        const struct browse_options *o)
{
    struct browse_screen *s = mem_zalloc(sizeof(*s));

    *s = (struct browse_screen){.ctx = ctx,
                                .of = of,
                                .filter = filter,
                                .o = o,
                                .title = o->title,
                                .dirty = true,
                                .counted = ctx->interrupts};
    s->draw = (struct browse_draw){.color = of->look.colour,
                                   .time = o->time,
                                   .of_day = o->time == TIME_UTC ? TIME_UTC : TIME_LOCAL};
    s->window = browse_window_new(of);
    browse_list_init(&s->list, of, s->window);
    browse_list_begin(&s->list);
    return s;
}

int browse_screen_free(struct browse_screen *s)
{
    const struct err *damage = s->lost.status           ? &s->lost
                               : s->list.trouble.status ? &s->list.trouble
                                                        : browse_window_damage(s->window);
    const int status = damage->status ? ctx_fail(s->ctx, damage) : 0;

    if (s->again)
        keep_commands(s);
    out_take(s->ctx->out, &s->commands);
    buf_release(&s->commands);
    browse_page_release(&s->page);
    browse_list_release(&s->list);
    browse_window_free(s->window);
    regex_free(s->regex);
    free(s->pattern);
    buf_release(&s->message);
    buf_release(&s->note);
    free(s);
    return status;
}

void browse_screen_follow(struct browse_screen *s)
{
    browse_list_last(&s->list);
}

void browse_screen_title(struct browse_screen *s, const char *text)
{
    s->title = text;
    s->dirty = true;
}

void browse_screen_say(struct browse_screen *s, const char *text)
{
    buf_clear(&s->message);
    buf_puts(&s->message, text);
    s->dirty = true;
}

void browse_screen_note(struct browse_screen *s, const char *text)
{
    buf_clear(&s->note);
    buf_puts(&s->note, text);
    s->dirty = true;
}

void browse_screen_last(struct browse_screen *s, struct buf *to)
{
    s->look_at = 0;
    look_at_file(s);
    browse_list_last(&s->list);
    const int64_t until = loop_now() + LAST_MS;
    while (browse_list_step(&s->list) && loop_now() < until)
        ;
    note_first(s);
    if (!browse_list_waits(&s->list))
        browse_draw_plain(&s->draw, &s->list, to);
}

int browse_screen_run(struct ctx *ctx, struct browse_recording *of, struct browse_filter *filter,
                      const struct browse_options *o)
{
    struct browse_screen *s = browse_screen_new(ctx, of, filter, o);

    browse_screen_open(s);
    while (!s->done) {
        const int64_t next = browse_screen_turn(s);
        if (!s->done)
            loop_step(&ctx->loop, next);
    }
    browse_screen_close(s);
    return browse_screen_free(s);
}
