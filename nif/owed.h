/*
 * Returns that are owed: for each process how many calls were traced that have not returned. Tracing the return of a
 * function that calls itself last makes the VM keep a frame for each call, for good, so somebody has to notice.
 *
 * A table of fixed size, by the words of processes; a slot whose count is 0 is free. A process runs on one thread at a time,
 * so a count has one writer; that a slot changes hands in that very moment makes a count wrong by one, which does not matter
 * here. Processes that find no slot are not counted. Any thread, no waiting.
 */
#ifndef ETRACE_OWED_H
#define ETRACE_OWED_H

#include <stdbool.h>
#include <stdint.h>

#define OWED_MOST 10000

void owed_clear(void);

/* One more call of this process; false: it owes more than OWED_MOST. */
bool owed_more(uint64_t process);
void owed_less(uint64_t process);

#endif
