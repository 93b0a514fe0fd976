/* SPDX-License-Identifier: Apache-2.0 */
#include "near.h"

#include <string.h>
#include <strings.h>

#define LONGEST 64
#define BEGINNING 3 /* length in bytes of the shortest word that counts as a prefix of the other */

struct near near_start(const char *word, size_t len)
{
    return (struct near){.word = {word, len}, .accepted = len < 4 ? 1 : len < 8 ? 2 : 3};
}

/*
 * Counts the edits between two words. Insertions, deletions, replacements and swaps of neighbours count one each
 * (optimal string alignment).
 */
static unsigned count_edits(const char *a, size_t la, const char *b, size_t lb)
{
    unsigned rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *now = rows[2];

    for (size_t j = 0; j <= lb; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= la; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned best = last[j - 1] + (a[i - 1] != b[j - 1]);
            best = MIN(best, MIN(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, before[j - 2] + 1);
            now[j] = best;
        }
        unsigned *spare = before;
        before = last;
        last = now;
        now = spare;
    }
    return last[lb];
}

void near_try(struct near *n, const char *candidate)
{
    size_t len = strlen(candidate);

    if (len > LONGEST || n->word.len > LONGEST || !n->word.len)
        return;
    unsigned d = count_edits(n->word.at, n->word.len, candidate, len);
    size_t least = MIN(len, n->word.len);
    if (least >= BEGINNING && !memcmp(candidate, n->word.at, least))
        d = MIN(d, len > least ? 1 : n->accepted);
    if (d && len == n->word.len && !strncasecmp(candidate, n->word.at, len))
        d = 1;
    if (d <= n->accepted && (!n->best || d < n->distance || (d == n->distance && len < strlen(n->best)))) {
        n->distance = d;
        n->best = candidate;
    }
}
