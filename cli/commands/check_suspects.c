/* SPDX-License-Identifier: Apache-2.0 */
#include "check_suspects.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/etf_fields.h"
#include "../ground/mem.h"

#define WHOLE_MS 1000
#define WHOLE_EACH_MS 100 /* a round trip to a distant node */
#define WHOLE_MOST_MS 4000

static const struct etf_field reasons[CHECK_REASONS] = {
    [CHECK_LONG_QUEUE] = ETF_INT(struct check_chosen, "queue", all[CHECK_LONG_QUEUE]),
    [CHECK_MUCH_MEMORY] = ETF_INT(struct check_chosen, "memory", all[CHECK_MUCH_MEMORY]),
    [CHECK_RUNS] = ETF_INT(struct check_chosen, "running", all[CHECK_RUNS]),
    [CHECK_IS_COLLECTING] = ETF_INT(struct check_chosen, "garbage_collecting", all[CHECK_IS_COLLECTING]),
    [CHECK_IS_SUSPENDED] = ETF_INT(struct check_chosen, "suspended", all[CHECK_IS_SUSPENDED]),
    [CHECK_IS_PAUSED] = ETF_INT(struct check_chosen, "paused", all[CHECK_IS_PAUSED]),
    [CHECK_IS_EXITING] = ETF_INT(struct check_chosen, "exiting", all[CHECK_IS_EXITING]),
};

bool check_chosen_read(struct etf r, struct check_chosen *ret)
{
    return !r.at || etf_get_fields(&r, reasons, CHECK_REASONS, ret);
}

void check_chosen_count(struct check_chosen *c, const char *reason)
{
    for (size_t i = 0; i < CHECK_REASONS; i++)
        c->chosen[i] += !strcmp(reasons[i].key, reason);
}

static bool suspect_is_silent(const struct check_suspect *s)
{
    return s->samples.looks ? why_is_silent(&s->samples) : !strcmp(s->reason, "silent");
}

enum suspect_rank { RANK_WANTED, RANK_OTHER, RANK_SILENT, RANKS };

static enum suspect_rank suspect_rank(const struct check_suspect *s)
{
    return suspect_is_silent(s) ? RANK_SILENT : s->wanted ? RANK_WANTED : RANK_OTHER;
}

void check_suspects_order(struct check_suspect **items, size_t n)
{
    struct check_suspect **ordered = mem_alloc((n + 1) * sizeof(*ordered));
    size_t at = 0;

    for (enum suspect_rank rank = 0; rank < RANKS; rank++)
        for (size_t i = 0; i < n; i++)
            if (suspect_rank(items[i]) == rank)
                ordered[at++] = items[i];
    if (n)
        memcpy(items, ordered, n * sizeof(*ordered));
    free(ordered);
}

int64_t check_suspects_ms(size_t n)
{
    return MIN(WHOLE_MS + WHOLE_EACH_MS * (int64_t)n, WHOLE_MOST_MS);
}

bool check_suspect_is_known(const struct check_suspect *s)
{
    return s->whole || (s->samples.looks && why_is_silent(&s->samples));
}
