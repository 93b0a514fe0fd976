/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_growth.h"

#include <string.h>

#include "../ground/mem.h"

/*
 * Copies the checkpoints to the recording. If the file has more checkpoints than struct recgrow keeps, the number of
 * segments no longer grows, because the numbers of existing segments must not change.
 */
static void take_places(struct browse_growth *g)
{
    struct browse_recording *of = g->of;
    const size_t n = g->file.seek.count;

    if (n + 1 <= of->segments)
        return;
    of->places = mem_realloc(of->places, n * sizeof(*of->places));
    memcpy(of->places, g->file.seek.places, n * sizeof(*of->places));
    of->segments = n + 1;
}

static void begin_counter(struct browse_growth *g)
{
    struct err ignored;

    if (g->counter || !g->of->grows)
        return;
    g->counter = browse_reader_open(&g->counted, NULL, g->of->segments - 1, &ignored);
    g->counts = g->counter;
    g->known = false;
}

static void end_counter(struct browse_growth *g)
{
    browse_reader_close(g->counter);
    g->counter = NULL;
    g->counts = false;
}

static void take_extent(struct browse_growth *g)
{
    take_places(g);
    g->of->grows = g->file.writes;
    g->of->bytes = g->of->grows ? recgrow_whole(&g->file) : g->file.seek.size;
    browse_growth_copy(g, &g->counted);
    g->counts = g->counter;
}

bool browse_growth_begin(struct browse_growth *g, struct browse_recording *of, struct err *e)
{
    *g = (struct browse_growth){.of = of};
    if (!recgrow_open(&g->file, of->paths.items[0], e))
        return false;
    of->segments = 1;
    g->counted = (struct browse_recording){.paths = of->paths};
    take_extent(g);
    begin_counter(g);
    return true;
}

void browse_growth_end(struct browse_growth *g)
{
    end_counter(g);
    recgrow_close(&g->file);
}

enum recgrow_news browse_growth_look(struct browse_growth *g)
{
    const enum recgrow_news news = recgrow_look(&g->file);

    if (news != RECGROW_MORE && news != RECGROW_ENDED)
        return news;
    take_extent(g);
    if (news == RECGROW_MORE)
        begin_counter(g);
    else
        end_counter(g);
    return news;
}

void browse_growth_copy(const struct browse_growth *g, struct browse_recording *to)
{
    to->places = g->of->places;
    to->first = g->of->first;
    to->segments = g->of->segments;
    to->bytes = g->of->bytes;
    to->grows = g->of->grows;
}

bool browse_growth_count(struct browse_growth *g)
{
    struct err ignored;

    if (!g->counts)
        return false;
    g->counts = browse_reader_next(g->counter, &ignored) <= BROWSE_NOTHING;
    g->events = browse_reader_number(g->counter);
    return g->counts;
}

uint64_t browse_growth_new(struct browse_growth *g, bool seen)
{
    if (seen || (!g->known && !g->counts)) {
        g->seen = g->events;
        g->known = !g->counts;
    }
    return g->known ? g->events - g->seen : 0;
}
