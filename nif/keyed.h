/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts events by keys instead of sending frames. A key is a few bytes, which the caller encodes. tally.h does the same
 * by function.
 *
 * All lanes share one table that gives each key a number, its row. Two keys are the same if all their bytes are. Each
 * lane has figures of its own by that number, which only its thread writes. The drain adds the lanes up and reports what
 * each row gained since its last round. A round takes several calls of the owner, and each call does bounded work.
 *
 * The memory is fixed: KEYED_ROWS rows, KEYED_ARENA bytes of keys. The figures of further keys go to the row
 * KEYED_OTHER, so no sum loses an event.
 *
 * A producer brackets the changes of one event with tally_begin() and tally_end(). A drain may run between an event's
 * figures and the end of the event. The last batch therefore checks keyed_is_told().
 *
 * The owner calls keyed_open(), keyed_take() and keyed_is_told(), and the unload keyed_unmap(). Any thread
 * calls the rest.
 */
#ifndef ETRACE_KEYED_H
#define ETRACE_KEYED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lane.h"
#include "tally.h"

#define KEYED_ROWS 4096u
#define KEYED_ARENA (1u << 20)
#define KEYED_KEY_MOST 4096u /* bytes; a longer key is another one */
#define KEYED_COUNTS ETW_ROW_COUNTS
#define KEYED_VALUES ETW_ROW_VALUES
#define KEYED_OTHER 0u
#define KEYED_NONE UINT32_MAX

/* Clears all rows. Each call clears a few megabytes; call it again until it returns something else than TALLY_CLEARING. */
enum tally_opened keyed_open(void);
void keyed_unmap(void);

struct keyed_key {
    const uint8_t *bytes;
    uint32_t length;
    bool cut; /* limits have cut the key, so it may stand for several ones */
};

/* Returns the row of a key. A new key gets a row, or KEYED_OTHER if there is no room. */
uint32_t keyed_row(const struct keyed_key *key);
/* The key of a row that keyed_row() has returned; no bytes for KEYED_OTHER. It stays until keyed_open(). */
struct keyed_key keyed_key_of(uint32_t row);

/* Counts in a row. Which: below KEYED_COUNTS. */
void keyed_count(struct lane *lane, uint32_t row, unsigned which, int64_t by);
/* Adds a value to the sum, the extremes and the histogram of a row. Which: below KEYED_VALUES. */
void keyed_value(struct lane *lane, uint32_t row, unsigned which, int64_t value);
/*
 * Whether the row can take another value: the sum is within the bound on both sides, and buckets are left.
 */
bool keyed_takes(struct lane *lane, uint32_t row, unsigned which, int64_t most);

struct keyed_growth {
    uint32_t row;
    struct etw_row by;
};

/*
 * Returns the next row of this round whose figures grew. Subtracts its work from *work. TALLY_PAUSE: *work is used up.
 * TALLY_END: the round is over, and the next call begins another one. Buckets: KEYED_VALUES times ETW_BUCKETS; those of
 * the first value come first, then those of the next one.
 */
enum tally_took keyed_take(int64_t *work, struct keyed_growth *ret, struct etw_bucket *ret_buckets);

/* Puts the figures as a binary. */
uint8_t *keyed_put(uint8_t *at, const struct keyed_growth *g, const struct etw_bucket *buckets);

/* Begins a round, unless one has begun. A caller that reads more than the rows calls it before it reads that. */
void keyed_begin_round(void);

bool keyed_is_told(void); /* round_is_told() of these rounds */

#endif
