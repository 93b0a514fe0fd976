/*
 * Which message that was received is which that was sent. The VM does not say, so they are compared: the receiver, the
 * sender where it was collected, and the message as it prints; of several the oldest, as signals between two processes keep
 * their order. What was sent to a name belongs to whoever has that name; what was sent to an alias, as replies of a
 * gen_server are, is known by its sender. Bounded: the newest LETTERS_MAX that were sent
 * and not yet received are remembered.
 */
#ifndef ETRACE_LETTERS_H
#define ETRACE_LETTERS_H

#include "sink.h"

#define LETTERS_MAX 65536
#define LETTER_TEXT 240 /* bytes of a message that are kept, cut behind a whole character */

struct letter {
    uint64_t from, to; /* to: 0 when it was sent to a name */
    unsigned node;
    uint32_t hash;  /* of the message */
    char name[80];  /* the name it was sent to; empty: to a pid */
    uint64_t tag;   /* the caller's */
    uint32_t next;
    bool open;
};

struct letters {
    struct letter *items; /* a ring, once it has LETTERS_MAX */
    size_t used, cap, at;
    uint32_t *first, *last; /* of each bucket; 0: none, else 1 + index */
    struct buf text;
};

void letters_release(struct letters *l);
/* The message of a send or a receive as it prints, short. Valid until the next call. */
struct str letters_text(struct letters *l, const struct event *e, enum terms_style style);
void letters_shorten(struct buf *text); /* to LETTER_TEXT bytes and a … */
/* A message is sent: remembered with a tag. */
void letters_sent(struct letters *l, const struct event *e, uint64_t tag);
/* A message is received: the tag of the one that was sent. */
bool letters_received(struct letters *l, const struct event *e, uint64_t *ret_tag);

#endif
