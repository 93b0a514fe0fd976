/*
 * What the VM says of a collection, a heap or a time slice as a list of pairs, in a few words; and what a sequential
 * trace says as a tuple. Anything else is printed as the term it is.
 */
#ifndef ETRACE_LINE_INFO_H
#define ETRACE_LINE_INFO_H

#include "line.h"

/* Words that the collection of this event took back; false: it does not say. */
bool info_reclaimed(const struct event *e, int64_t *ret);

/* The info of a collection's event or a system event. */
void info_line(struct buf *to, const struct event *e, const struct printer *p, const uint8_t *at);

/* {What, {Prev, Cur}, From, To, Message} */
struct seq_info {
    struct raw what;
    int64_t prev, cur;
    const uint8_t *from, *to, *msg;
    bool receives, prints;
};

bool seq_info_read(const struct event *e, const uint8_t *at, struct seq_info *ret);

#endif
