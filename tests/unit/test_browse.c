/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the window and the list of `etrace browse` over recordings of several segments: with and without an index,
 * appended, cut, damaged, of several nodes, and still being written. The lines of a window that reads everything must
 * be those of a replay, and every other way to a line must give the same line.
 */
#include "pipetest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/browse_growth.h"
#include "commands/browse_list.h"
#include "events/recfile.h"
#include "events/recpack.h"
#include "lang/lang.h"

#define APART 20000
#define HEIGHT 20

static char path[] = "/tmp/etrace-test-XXXXXX";
static const char *path_items[] = {path};
static uint64_t seed;
static bool large; /* some calls are too large to be kept until their results */
static const char zeros[70000];

static unsigned any(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

/* ---- recordings ---- */

enum { PROCESSES = 6, DEPTH = 8, SLOW = 5 /* a process whose calls last long */, WAITING = 4 };

struct made {
    struct fw w;
    uint64_t now;
    unsigned depth[PROCESSES];
    unsigned stack[PROCESSES][DEPTH];
    /* messages that are not received yet */
    struct {
        unsigned to, text;
    } waiting[WAITING];
    unsigned nwaiting;
};

static const char *const names[] = {"price", "order", "take", "add", "total"};

static void made_message(struct made *m, unsigned from)
{
    const unsigned to = 1 + any(5), text = any(100);

    fw_frame(&m->w, ETW_SEND, m->now, PID(from + 1));
    fw_pid(&m->w, PID(to));
    fw_int(&m->w, text);
    fw_frame_end(&m->w);
    if (m->nwaiting < WAITING) {
        m->waiting[m->nwaiting].to = to;
        m->waiting[m->nwaiting++].text = text;
    }
}

static void made_event(struct made *m)
{
    const unsigned p = any(40) ? any(SLOW) : SLOW;

    m->now += 100 + any(3000);
    if (!any(700)) {
        fw_lost(&m->w, m->now, ETW_LOST_RATE, 1 + any(5));
    } else if (!any(9)) {
        made_message(m, p);
    } else if (m->nwaiting && !any(40)) {
        fw_frame(&m->w, ETW_RECEIVE, m->now, PID(m->waiting[--m->nwaiting].to));
        fw_int(&m->w, m->waiting[m->nwaiting].text);
        fw_frame_end(&m->w);
    } else if (m->depth[p] && (m->depth[p] == DEPTH || !any(p == SLOW ? 60 : 2))) {
        const char *f = names[m->stack[p][--m->depth[p]]];
        fw_return(&m->w, m->now, PID(p + 1), "shop", f, 1);
        fw_int(&m->w, any(1000));
        fw_frame_end(&m->w);
    } else if (m->depth[p] < DEPTH) {
        const unsigned f = any(5);
        m->stack[p][m->depth[p]++] = f;
        fw_call(&m->w, m->now, PID(p + 1), "shop", names[f], 1);
        const bool more = large && !any(30);
        fw_tuple(&m->w, more ? 3 : 2), fw_atom(&m->w, any(50) ? "tea" : "rare"), fw_int(&m->w, any(1000));
        if (more)
            fw_bin_n(&m->w, zeros, sizeof(zeros), sizeof(zeros));
        fw_frame_end(&m->w);
    }
}

static void put_block(struct buf *to, unsigned type, unsigned node, struct str bytes)
{
    recfile_block(to, type, node, bytes);
}

/* Makes a recording of some nodes without checkpoints. */
static void make_plain(struct buf *to, unsigned nodes, unsigned steps)
{
    static struct made all[3];
    struct etw_footer footer = {0};
    char name[16];

    memset(all, 0, sizeof(all));
    for (unsigned i = 0; i < nodes; i++) {
        put_block(to, ETW_BLOCK_SPECS, i, STR("expr 15\n_:_/_ -> return\n"));
        snprintf(name, sizeof(name), "node%u@h", i);
        fw_begin(&all[i].w);
        fw_hello(&all[i].w, 1, name);
        fw_ring(&all[i].w, 1);
        all[i].now = 1000;
    }
    for (unsigned step = 0; step < steps; step++)
        for (unsigned i = 0; i < nodes; i++) {
            const uint64_t until = 1000 + (step + 1) * UINT64_C(100000);
            while (all[i].now < until)
                made_event(&all[i]);
            if (step + 1 == steps) /* the last event has a line of its own */
                made_message(&all[i], SLOW);
            const uint32_t flags = step + 1 == steps ? ETW_BATCH_LAST : 0;
            put_block(to, ETW_BLOCK_BATCH, i, fw_batch(&all[i].w, all[i].now, (int64_t)all[i].now, all[i].now, flags));
            fw_ring(&all[i].w, 1);
        }
    put_block(to, ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&footer, sizeof(footer)});
    for (unsigned i = 0; i < nodes; i++)
        fw_release(&all[i].w);
}

static bool add_packed(void *state, struct buf *bytes)
{
    void **both = state;

    recpack.bytes(both[0], buf_view(bytes), both[1]);
    bytes->len = 0;
    return true;
}

static void write_file(const struct buf *b)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    if (write(fd, b->data, b->len) != (ssize_t)b->len)
        ok(false, "the file is written");
    close(fd);
}

/* Makes a recording with checkpoints. */
static void make(struct buf *to, unsigned nodes, unsigned steps)
{
    struct buf plain = {0};
    void *both[] = {recpack.open(), to};
    struct view view = {.type = sink_by_name("record"), .write = add_packed, .output = both};
    struct pipeline_options o = {.views = &view, .nviews = 1, .apart = APART};
    struct source_item item;
    struct err e;

    recfile_header(&plain);
    make_plain(&plain, nodes, steps);
    write_file(&plain);
    struct source *s = recfile_open(path, &e);
    struct pipeline *p = pipeline_new(&o, &e);
    while (source_next(s, &item, -1, &e) == SOURCE_ITEM)
        pipeline_item(p, &item, &e);
    pipeline_end(p);
    pipeline_free(p);
    source_close(s);
    recpack.close(both[0]);
    buf_release(&plain);
    write_file(to);
}

/* ---- what a replay shows ---- */

/* The lines of a replay of the whole recording, without times. */
struct replayed {
    struct buf text;
    struct str *lines; /* of events; line N is of the event with number N + 1 */
    size_t n, cap;
};

static void replay(struct replayed *r, const struct pipeline_options *filter)
{
    struct pipeline_options o = *filter;
    struct view view = {.type = sink_by_name("text"), .look.time = TIME_UTC, .write = pt_write, .output = &r->text};
    struct source_item item;
    struct err e;

    o.views = &view;
    o.nviews = 1;
    struct pipeline *p = pipeline_new(&o, &e);
    struct source *s = recfile_open(path, &e);
    while (source_next(s, &item, -1, &e) == SOURCE_ITEM)
        if (pipeline_item(p, &item, &e) != PIPELINE_MORE)
            break;
    pipeline_end(p);
    pipeline_free(p);
    source_close(s);
    for (char *at = r->text.data, *end = at + r->text.len, *stop; at < end; at = stop + 1) {
        stop = memchr(at, '\n', (size_t)(end - at));
        if (*at == '*')
            continue;
        r->lines = realloc(r->lines, (r->n + 1) * sizeof(*r->lines));
        r->lines[r->n++] =
            (struct str){at + strlen("18:26:50.123456 "), (size_t)(stop - at) - strlen("18:26:50.123456 ")};
    }
}

static void replay_free(struct replayed *r)
{
    buf_release(&r->text);
    free(r->lines);
    *r = (struct replayed){0};
}

/* ---- the reference: a window that reads everything ---- */

struct line {
    struct browse_spot spot;
    char *text;
    uint64_t number;
    bool own, unpaired; /* unpaired: a result whose call is in another segment */
};

static struct line *lines;
static size_t nlines;
static struct browse_recording of;
static struct browse_window *w;

static char *text_of_line(const struct browse_line *l)
{
    struct buf b = {0};

    browse_line_text(l, &b);
    char *text = strdup(buf_cstr(&b));
    buf_release(&b);
    return text;
}

static bool ends_in_duration(const char *longer, const char *text)
{
    const size_t n = strlen(text);

    return !strncmp(longer, text, n) && (!longer[n] || !strncmp(longer + n, "  ", 2));
}

static void forget(void)
{
    for (size_t i = 0; i < nlines; i++)
        free(lines[i].text);
    free(lines);
    lines = NULL;
    nlines = 0;
    browse_window_free(w);
    free(of.places);
    of = (struct browse_recording){0};
    w = NULL;
}

static void open_recording(void)
{
    const uint64_t *places;
    struct source_item item;
    struct stat st;
    struct err e;

    forget();
    of = (struct browse_recording){.paths = {.items = path_items, .count = 1}, .segments = 1};
    stat(path, &st);
    of.bytes = (uint64_t)st.st_size;
    struct source *s = recfile_open(path, &e);
    source_next(s, &item, -1, &e);
    const size_t n = recfile_places(s, &places);
    of.places = malloc((n + 1) * sizeof(*places));
    memcpy(of.places, places, n * sizeof(*places));
    of.segments += n;
    source_close(s);
    w = browse_window_new(&of);
}

/* Reads all lines in one go. */
static void read_lines(void)
{
    struct err e;
    uint64_t at = 0;
    bool over = false;

    browse_window_load(w, (struct browse_spot){0, 0}, &e);
    while (!over) {
        over = browse_window_read(w, at) == BROWSE_OVER;
        for (const uint64_t until = browse_window_settled(w); at < until; at++) {
            const struct browse_line *l = browse_window_line(w, at);
            lines = realloc(lines, (nlines + 1) * sizeof(*lines));
            lines[nlines++] = (struct line){l->spot, text_of_line(l), l->row.number, l->row.own, l->row.tail};
        }
    }
}

/* Compares the lines with those of a replay: each event is on a line of its own, or on that of its call. */
static void same_as_replay(const struct replayed *r, const char *what)
{
    size_t joined = 0, events = 0, bad = 0;

    for (size_t i = 0; i < nlines; i++) {
        if (lines[i].own)
            continue;
        events++;
        const struct str want = lines[i].number - 1 < r->n ? r->lines[lines[i].number - 1] : (struct str){"", 0};
        const char *arrow = lines[i].unpaired ? NULL : strstr(lines[i].text, " -> ");
        const size_t len = arrow ? (size_t)(arrow - lines[i].text) : strlen(lines[i].text);
        joined += arrow != NULL;
        if (lines[i].unpaired) /* a replay has one space before the duration */
            bad += strncmp(lines[i].text, want.at, MIN(len, want.len) - MIN(strlen(" 1.23us"), len)) != 0;
        else
            bad += len != want.len || memcmp(lines[i].text, want.at, len) != 0;
        if (bad == 1)
            printf("# line %zu, event %llu: %s\n# replay: %.*s\n", i, (unsigned long long)lines[i].number,
                   lines[i].text, (int)want.len, want.at);
    }
    is_number((int64_t)bad, 0, what);
    ok(events + joined == r->n, "%s: each event has a place: %zu lines, %zu results on them, %zu events", what, events,
       joined, r->n);
    ok(joined > r->n / 8, "%s: many results are on the line of their call", what);
}

/* ---- other ways to a line ---- */

static size_t line_number(struct browse_spot spot)
{
    size_t i = 0;

    while (i < nlines && (lines[i].spot.segment != spot.segment || lines[i].spot.line != spot.line))
        i++;
    return i;
}

/* Returns true if the line is the same as in the reference. A result may lack its duration if its call is not read. */
static bool is_same(const struct browse_line *l, const struct line *want)
{
    char *text = text_of_line(l);
    const bool same = l->row.number == want->number &&
                      (want->unpaired ? ends_in_duration(want->text, text) : !strcmp(text, want->text));

    if (!same)
        printf("# segment %zu line %llu: %s\n# wanted: %s\n", l->spot.segment, (unsigned long long)l->spot.line, text,
               want->text);
    free(text);
    return same;
}

static void test_random_spots(const char *what)
{
    unsigned bad = 0;
    struct err e;

    for (unsigned i = 0; i < 60 && !bad; i++) {
        const size_t n = any((unsigned)nlines), far = 1 + any(3000), until = MIN(nlines, n + far);
        uint64_t at;
        browse_window_load(w, lines[n].spot, &e);
        while (browse_window_read(w, 0) != BROWSE_OVER && browse_window_settled(w) < until - n)
            ;
        for (size_t k = n; k < until && !bad; k++)
            bad += !browse_window_find(w, lines[k].spot, &at) || !is_same(browse_window_line(w, at), &lines[k]);
    }
    is_number(bad, 0, what);
}

static void settle(struct browse_list *l)
{
    while (browse_list_step(l))
        ;
}

/* Compares the screen, whose first line is this one. */
static unsigned differs(struct browse_list *l, size_t top)
{
    unsigned bad = browse_window_line(w, l->top)->spot.segment != lines[top].spot.segment;

    for (unsigned i = 0; i < HEIGHT && top + i < nlines; i++)
        bad += l->top + i >= browse_window_end(w) || !is_same(browse_window_line(w, l->top + i), &lines[top + i]);
    return bad;
}

static void test_list(const char *what)
{
    struct browse_list l;
    unsigned bad = 0;
    size_t at = 0;

    browse_list_init(&l, &of, w);
    browse_list_resize(&l, HEIGHT);
    browse_list_begin(&l);
    settle(&l);
    for (; at + HEIGHT < nlines && !bad; at += HEIGHT) {
        bad += differs(&l, at) + (l.cursor != l.top);
        browse_list_move(&l, HEIGHT, true);
        settle(&l);
    }
    is_number(bad, 0, what);
    browse_list_last(&l);
    settle(&l);
    ok(line_number(browse_list_chosen(&l)->spot) == nlines - 1 && !differs(&l, nlines - HEIGHT), "%s: the end", what);
    bad = 0;
    for (at = nlines - HEIGHT; at >= HEIGHT && !bad;) {
        at -= HEIGHT;
        browse_list_move(&l, -HEIGHT, true);
        settle(&l);
        bad += differs(&l, at);
    }
    ok(!bad, "%s: page by page from the end to line %zu", what, at);
    browse_list_home(&l);
    settle(&l);
    ok(!differs(&l, 0) && l.cursor == l.top, "%s: the first line again", what);
    for (unsigned i = 0; i < 200 && !bad; i++) {
        const size_t before = line_number(browse_list_chosen(&l)->spot);
        const int64_t lines_far = (int64_t)any(4000) - 2000;
        browse_list_move(&l, lines_far, any(2));
        settle(&l);
        const int64_t want = MAX(0, MIN((int64_t)before + lines_far, (int64_t)nlines - 1));
        bad += (int64_t)line_number(browse_list_chosen(&l)->spot) != want ||
               !is_same(browse_list_chosen(&l), &lines[want]);
    }
    ok(!bad, "%s: random steps", what);
    browse_list_release(&l);
}

static void test_search(const char *what)
{
    struct err e;
    struct browse_list l;
    struct regex *rare = regex_new(STR("\\{rare,\\d+\\}\\) -> "), &e);
    const struct browse_seek ahead = {.what = BROWSE_TEXT, .regex = rare};
    const struct browse_seek back = {.what = BROWSE_TEXT, .regex = rare, .backward = true};
    size_t matches = 0, found = 0, last = 0, at;
    bool same = true;

    browse_list_init(&l, &of, w);
    browse_list_resize(&l, HEIGHT);
    browse_list_begin(&l);
    settle(&l);
    for (size_t i = 1; i < nlines; i++)
        matches += regex_search(rare, (struct str){lines[i].text, strlen(lines[i].text)}) == REGEX_YES;
    for (;; found++) {
        browse_list_seek(&l, &ahead);
        settle(&l);
        if (l.message)
            break;
        at = line_number(browse_list_chosen(&l)->spot);
        same &= at > last && at < nlines && strstr(lines[at].text, "{rare,");
        last = at;
    }
    ok(matches > 20 && found == matches && same, "%s: forward: %zu of %zu matches", what, found, matches);
    ok(line_number(browse_list_chosen(&l)->spot) == last, "%s: a search without success stays", what);
    l.message = NULL;
    for (found = 1;; found++) {
        browse_list_seek(&l, &back);
        settle(&l);
        if (l.message)
            break;
        at = line_number(browse_list_chosen(&l)->spot);
        same &= at < last && strstr(lines[at].text, "{rare,");
        last = at;
    }
    ok(found == matches + (strstr(lines[0].text, "{rare,") != NULL) && same, "%s: backward: %zu of %zu matches", what,
       found, matches);
    regex_free(rare);
    browse_list_release(&l);
}

/* Goes from some lines that contain `of_line` to their partners and back. `timed`: the partners have a duration. */
static void test_jumps(const char *what, const char *of_line, enum browse_sought way, bool timed)
{
    struct browse_list l;
    size_t jumps = 0, good = 0, later = 0;

    browse_list_init(&l, &of, w);
    browse_list_resize(&l, HEIGHT);
    browse_list_begin(&l);
    settle(&l);
    for (size_t i = 0; i < nlines && jumps < 30; i++) {
        if (lines[i].own || strstr(lines[i].text, " -> ") || !strstr(lines[i].text, of_line))
            continue;
        later++;
        browse_list_home(&l);
        settle(&l);
        browse_list_move(&l, (int64_t)i, false);
        settle(&l);
        const uint64_t cause = browse_list_chosen(&l)->row.number;
        browse_list_seek(&l, &(struct browse_seek){.what = way, .number = cause});
        settle(&l);
        if (l.message) {
            l.message = NULL;
            continue;
        }
        jumps++;
        const struct event_row row = browse_list_chosen(&l)->row;
        browse_list_seek(&l, &(struct browse_seek){.what = BROWSE_CAUSE, .backward = true, .number = row.cause});
        settle(&l);
        good += row.cause == cause && browse_list_chosen(&l)->row.number == cause && (row.dur_ns > 0) == timed;
    }
    ok(later > 5 && jumps && good == jumps, "%s: from a%sline to its partner and back: %zu of %zu", what, of_line, good,
       jumps);
    browse_list_release(&l);
}

static void test_all(struct replayed *r, size_t segments, const char *what)
{
    ok(of.segments >= segments, "%s: %zu segments", what, of.segments);
    read_lines();
    same_as_replay(r, what);
    test_random_spots(what);
    test_list(what);
    test_search(what);
}

static void test_whole(void)
{
    struct replayed r = {0};
    struct buf f = {0};

    make(&f, 1, 200);
    replay(&r, &of.filter);
    open_recording();
    test_all(&r, 8, "one node");
    test_jumps("one node", " call ", BROWSE_RESULT, true);
    test_jumps("one node", " send ", BROWSE_RECEIPT, false);
    ok(!browse_window_damage(w)->status, "nothing is damaged");
    f.len -= 200;
    write_file(&f);
    open_recording();
    ok(of.segments >= 8, "without the index the checkpoints are found, too");
    read_lines();
    ok(nlines > 1 && lines[nlines - 1].own && strstr(lines[nlines - 1].text, "truncated"),
       "the last line says that the recording is truncated: %s", lines[nlines - 1].text);
    test_random_spots("a recording without its end");
    test_list("a recording without its end");
    replay_free(&r);
    buf_release(&f);
}

static void test_appended(void)
{
    struct replayed r = {0};
    struct buf f = {0}, more = {0};

    make(&f, 1, 60);
    make(&more, 1, 60);
    buf_add(&f, more.data + sizeof(struct etw_file), more.len - sizeof(struct etw_file));
    write_file(&f);
    replay(&r, &of.filter);
    open_recording();
    test_all(&r, 3, "an appended run");
    replay_free(&r);
    buf_release(&f);
    buf_release(&more);
}

static void test_nodes(void)
{
    struct replayed r = {0};
    struct buf f = {0};

    make(&f, 3, 70);
    replay(&r, &(struct pipeline_options){0});
    open_recording();
    test_all(&r, 5, "three nodes");
    replay_free(&r);
    buf_release(&f);
}

/* Compares the lines with those of a replay with the same filter, whose events keep their numbers of the whole. */
static void same_as_filtered(const struct replayed *all, const struct pipeline_options *filter, const char *what)
{
    struct replayed r = {0};
    unsigned bad = 0;
    size_t events = 0;

    open_recording();
    of.filter = *filter;
    replay(&r, filter);
    read_lines();
    for (size_t i = 0; i < nlines; i++) {
        if (lines[i].own)
            continue;
        const struct str want = all->lines[lines[i].number - 1];
        bad += !lines[i].unpaired && strncmp(lines[i].text, want.at, want.len) != 0;
        events += !lines[i].unpaired && strstr(lines[i].text, " -> ") ? 2 : 1;
    }
    is_number(bad, 0, what);
    ok(events == r.n && events, "%s: the %zu events are those of a replay", what, events);
    test_list(what);
    replay_free(&r);
}

static void test_filtered(void)
{
    struct replayed all = {0};
    struct buf f = {0};
    struct lang_options options = {0};
    const struct grep rare = {.regex = "rare"};
    const struct where *slow = NULL;
    struct arena a;
    struct err e;

    arena_init(&a);
    make(&f, 1, 200);
    replay(&all, &(struct pipeline_options){0});
    same_as_filtered(&all, &(struct pipeline_options){.greps = &rare, .ngreps = 1}, "with a regular expression");
    ok(lang_where(&options, STR("dur > 20us"), &a, &slow, &e), "a condition on the result is compiled");
    same_as_filtered(&all, &(struct pipeline_options){.wheres = &slow, .nwheres = 1}, "with a condition on the result");
    arena_release(&a);
    replay_free(&all);
    buf_release(&f);
}

/*
 * If a condition needs the result of a call that is too large to be kept until then, a replay shows only the result.
 */
static void test_large_calls(void)
{
    struct replayed all = {0};
    struct buf f = {0};
    struct lang_options options = {0};
    const struct where *slow = NULL;
    struct arena a;
    struct err e;

    arena_init(&a);
    large = true;
    make(&f, 1, 100);
    large = false;
    replay(&all, &(struct pipeline_options){0});
    lang_where(&options, STR("dur > 20us"), &a, &slow, &e);
    same_as_filtered(&all, &(struct pipeline_options){.wheres = &slow, .nwheres = 1}, "with large calls");
    size_t alone = 0;
    for (size_t i = 0; i < nlines; i++)
        alone += lines[i].unpaired;
    ok(alone, "%zu results have a line of their own", alone);
    arena_release(&a);
    replay_free(&all);
    buf_release(&f);
}

/* Cuts a recording anywhere: also inside a checkpoint, and right behind one. */
static void test_cut(void)
{
    struct buf f = {0};

    make(&f, 1, 120);
    open_recording();
    const size_t len = f.len;
    const uint64_t behind = of.places[2];
    for (unsigned i = 0; i < 25; i++) {
        f.len = i < 15 ? behind + 100 * i : len / 2 + any((unsigned)len / 2);
        write_file(&f);
        open_recording();
        read_lines();
        ok(browse_window_damage(w)->status && lines[nlines - 1].own, "cut at byte %zu of %zu", f.len, len);
        test_random_spots("the lines before the cut");
        test_list("the list of a recording that is cut");
    }
    buf_release(&f);
}

/* Damages a byte in the middle of a segment, or the checkpoint itself. */
static void test_damaged(bool checkpoint)
{
    const char *what = checkpoint ? "a damaged checkpoint" : "a damaged block";
    struct buf f = {0};

    make(&f, 1, 200);
    open_recording();
    read_lines();
    const size_t whole = nlines, segments = of.segments;
    const uint64_t at = checkpoint ? of.places[3] + 40 : (of.places[3] + of.places[4]) / 2;
    f.data[at] = (char)(f.data[at] ^ 1);
    write_file(&f);
    open_recording();
    is_number((int64_t)of.segments, (int64_t)segments, what);
    read_lines();
    size_t told = 0, behind = 0;
    for (size_t i = 0; i < nlines; i++) {
        told += lines[i].own && strstr(lines[i].text, "the recording is damaged");
        behind += lines[i].spot.segment == segments - 1;
    }
    ok(told == 1 && nlines < whole && behind, "%s: one line says so, and the lines behind it are shown", what);
    ok(browse_window_damage(w)->status, "%s: the window reports it", what);
    test_random_spots(what);
    test_list(what);
    buf_release(&f);
}

/* ---- a recording that is still being written ---- */

/* A writer that has locked the file, and a list that follows it. */
struct written {
    int fd;
    const struct buf *all;
    size_t len; /* bytes written so far */
    struct browse_growth growth;
    struct browse_list list;
};

static void write_until(struct written *g, size_t len)
{
    len = MIN(len, g->all->len);
    if (pwrite(g->fd, g->all->data + g->len, len - g->len, (off_t)g->len) != (ssize_t)(len - g->len))
        ok(false, "the file is written");
    g->len = len;
}

/* Writes the beginning of a recording, and opens it as `etrace browse` does. */
static void written_begin(struct written *g, const struct buf *all, size_t len, bool locks)
{
    struct err e;

    forget();
    *g = (struct written){.fd = open(path, O_RDWR | O_TRUNC), .all = all};
    write_until(g, len);
    if (locks)
        flock(g->fd, LOCK_EX);
    of = (struct browse_recording){.paths = {.items = path_items, .count = 1}};
    ok(browse_growth_begin(&g->growth, &of, &e), "the recording is opened");
    w = browse_window_new(&of);
    browse_list_init(&g->list, &of, w);
    browse_list_resize(&g->list, HEIGHT);
    browse_list_begin(&g->list);
    settle(&g->list);
}

static void written_end(struct written *g)
{
    browse_list_release(&g->list);
    browse_growth_end(&g->growth);
    close(g->fd);
}

static enum recgrow_news written_look(struct written *g)
{
    const enum recgrow_news news = browse_growth_look(&g->growth);

    if (news == RECGROW_MORE || news == RECGROW_ENDED)
        browse_list_grown(&g->list);
    settle(&g->list);
    while (browse_growth_count(&g->growth))
        ;
    return news;
}

/* The writer ends. The file counts as quiet at once, and not only after a second. */
static enum recgrow_news written_quiet(struct written *g)
{
    flock(g->fd, LOCK_UN);
    g->growth.file.grown_at -= 10000;
    return written_look(g);
}

/* Returns true if each line of the screen is one of the reference. A result that is not there yet may be missing. */
static bool shows_lines(const struct written *g)
{
    bool same = true;

    for (uint64_t i = g->list.top; i < browse_window_end(w) && i < g->list.top + HEIGHT && same; i++) {
        const struct browse_line *l = browse_window_line(w, i);
        const size_t n = line_number(l->spot);
        char *text = text_of_line(l);
        same = n < nlines && lines[n].number == l->row.number &&
               (lines[n].unpaired || !strncmp(lines[n].text, text, strlen(text)));
        if (!same)
            printf("# %s\n# wanted: %s\n", text, n < nlines ? lines[n].text : "no line");
        free(text);
    }
    return same;
}

static bool is_at_end(const struct written *g)
{
    return g->list.follows && g->list.cursor + 1 == browse_window_end(w);
}

/* Keeps the lines of the whole recording as the reference while forget() forgets what is open. */
static void read_reference(const struct buf *all, struct line **ret, size_t *ret_n)
{
    write_file(all);
    open_recording();
    read_lines();
    *ret = lines;
    *ret_n = nlines;
    lines = NULL;
    nlines = 0;
}

static void set_reference(struct line *reference, size_t n)
{
    lines = reference;
    nlines = n;
}

static void test_following(const struct buf *all, size_t begin, bool locks, const char *what)
{
    struct written g;
    struct line *reference;
    size_t n;
    unsigned bad = 0, looks = 0;

    read_reference(all, &reference, &n);
    written_begin(&g, all, begin, locks);
    set_reference(reference, n);
    is_number(of.grows, locks, what);
    browse_list_last(&g.list);
    settle(&g.list);
    while (g.len < all->len && !bad) {
        write_until(&g, g.len + 1 + any(9000));
        const enum recgrow_news news = written_look(&g);
        looks += news == RECGROW_MORE;
        bad += news > RECGROW_MORE || !shows_lines(&g) || (looks && !is_at_end(&g));
        bad += looks && browse_growth_new(&g.growth, false) != g.growth.events - g.growth.seen;
        browse_growth_new(&g.growth, true);
    }
    ok(!bad && looks > 4, "%s: the last lines are shown as they come, %u times", what, looks);
    ok(written_quiet(&g) == RECGROW_ENDED && !of.grows, "%s: the writer has gone", what);
    ok(line_number(browse_list_chosen(&g.list)->spot) == n - 1 && !differs(&g.list, n - HEIGHT),
       "%s: the lines at the end are those of the whole recording", what);
    ok(!browse_window_damage(w)->status, "%s: nothing is damaged", what);
    test_random_spots(what);
    written_end(&g);
}

/* A list whose last line is not chosen stays where it is, and the new events are counted. */
static void test_staying(const struct buf *all)
{
    struct written g;
    struct line *reference;
    size_t n, at = 0;
    unsigned bad = 0;

    read_reference(all, &reference, &n);
    written_begin(&g, all, all->len / 3, true);
    set_reference(reference, n);
    written_look(&g);
    browse_growth_new(&g.growth, false);
    const uint64_t before = g.growth.events;
    browse_list_move(&g.list, 30, false);
    settle(&g.list);
    at = line_number(browse_list_chosen(&g.list)->spot);
    while (g.len < all->len && !bad) {
        write_until(&g, g.len + 1 + any(20000));
        written_look(&g);
        bad += line_number(browse_list_chosen(&g.list)->spot) != at || !shows_lines(&g);
    }
    ok(!bad, "a list in the middle stays there");
    ok(browse_growth_new(&g.growth, false) == lines[n - 1].number - before && before, "%llu new events are counted",
       (unsigned long long)browse_growth_new(&g.growth, false));
    browse_list_last(&g.list);
    settle(&g.list);
    ok(is_at_end(&g) && line_number(browse_list_chosen(&g.list)->spot) == n - 1, "G goes to the new end");
    browse_list_pause(&g.list);
    ok(!g.list.follows, "and a pause stays there");
    written_end(&g);
}

/* Cuts the file in each byte of the last blocks: only whole blocks are shown, and nothing counts as damage. */
static void test_half_blocks(const struct buf *all)
{
    struct written g;
    struct line *reference;
    struct etw_block b;
    size_t n, whole = sizeof(struct etw_file), next = whole;
    unsigned bad = 0, blocks = 0;

    read_reference(all, &reference, &n);
    written_begin(&g, all, all->len - 1500, true);
    set_reference(reference, n);
    browse_list_last(&g.list);
    settle(&g.list);
    while (g.len < all->len && !bad) {
        write_until(&g, g.len + 1);
        while (next <= g.len) {
            whole = next;
            blocks += whole > all->len - 1500;
            if (all->len - whole < sizeof(b))
                break;
            memcpy(&b, all->data + whole, sizeof(b));
            next = whole + sizeof(b) + b.bytes;
        }
        written_look(&g);
        bad += of.bytes != whole || browse_window_damage(w)->status || !shows_lines(&g) || !is_at_end(&g);
    }
    ok(!bad && blocks > 3, "cut in each byte of the last %u blocks", blocks);
    written_end(&g);
}

/* A writer that is killed leaves half a block. A file that gets shorter, and one that is replaced, are noticed. */
static void test_lost_files(const struct buf *all)
{
    char other[sizeof(path) + 2];
    struct written g;

    written_begin(&g, all, all->len - 300, true);
    browse_list_last(&g.list);
    settle(&g.list);
    ok(!browse_window_damage(w)->status, "no damage while the recording is written");
    ok(written_quiet(&g) == RECGROW_ENDED && is_at_end(&g), "the writer is killed");
    const struct browse_line *last = browse_list_chosen(&g.list);
    ok(last->row.own && strstr(last->text, "truncated"), "and the last line says so");
    written_end(&g);

    written_begin(&g, all, all->len / 2, true);
    ok(!ftruncate(g.fd, (off_t)all->len / 3) && written_look(&g) == RECGROW_CUT, "a file that is truncated");
    written_end(&g);

    written_begin(&g, all, all->len / 2, true);
    snprintf(other, sizeof(other), "%s.2", path);
    ok(!rename(path, other) && written_look(&g) == RECGROW_REPLACED, "a file that is renamed");
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ok(written_look(&g) == RECGROW_REPLACED, "and replaced");
    unlink(other);
    written_end(&g);
}

static void test_growing(void)
{
    struct buf f = {0}, more = {0};

    make(&f, 1, 120);
    test_following(&f, f.len / 4, true, "while it is written");
    test_staying(&f);
    test_half_blocks(&f);
    test_lost_files(&f);
    const size_t finished = f.len;
    make(&more, 1, 40);
    buf_add(&f, more.data + sizeof(struct etw_file), more.len - sizeof(struct etw_file));
    test_following(&f, finished, false, "appended by a writer without a lock");
    buf_release(&f);
    buf_release(&more);
    make(&f, 3, 40);
    test_following(&f, f.len / 4, true, "three nodes, while it is written");
    buf_release(&f);
}

int main(void)
{
    seed = 7;
    close(mkstemp(path));
    test_whole();
    test_appended();
    test_nodes();
    test_filtered();
    test_large_calls();
    test_cut();
    test_damaged(false);
    test_damaged(true);
    test_growing();
    forget();
    unlink(path);
    return tap_end();
}
