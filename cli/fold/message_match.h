/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matches received messages to sent messages.
 *
 * The VM does not number messages, so they are compared by receiver, sender (if collected) and content. If several sent
 * messages match, the oldest one is taken, because signals between two processes keep their order. A message to a name
 * matches the process with that name. A message to an alias, such as a gen_server reply, is matched by its sender. Only
 * the newest MESSAGE_MATCH_MAX unreceived messages are kept. Each sent message is in two lists: one by receiver, and
 * one by sender and receiver. So a search skips equal messages to other processes.
 *
 * Only the beginning of a message is compared, up to the first part that was cut. A sent event also contains the
 * receiver, which leaves less room for the message, so a sent message may be cut earlier than the received one.
 */
#ifndef ETRACE_MESSAGE_MATCH_H
#define ETRACE_MESSAGE_MATCH_H

#include "../events/event.h"

#define MESSAGE_MATCH_MAX 262144
#define MESSAGE_MATCH_BYTES 240 /* number of bytes of a message that are compared */

enum letter_list { LETTERS_TO, LETTERS_FROM, LETTER_LISTS };

/* A sent message. */
struct letter {
    uint64_t from, to; /* the sender; the receiver, or 0 if the message was sent to a name or an alias */
    uint64_t tag;      /* opaque value from the caller */
    uint64_t number;   /* counts the sent messages */
    int64_t shift_ns;  /* event.shift_ns: a message of another run of the node does not match */
    unsigned node;
    uint32_t hash; /* hash of the beginning of the message */
    uint32_t name; /* hash of the name that the message was sent to; valid if `named` */
    bool named, open;
    bool cut; /* the beginning is short because the message was cut */
    struct {
        uint32_t bucket, before, next; /* before, next: as in struct message_match */
    } in[LETTER_LISTS];
};

struct message_match {
    struct letter *items; /* a ring once it has MESSAGE_MATCH_MAX entries */
    size_t used, cap;
    uint64_t sent; /* number of sent messages so far, which letter.number counts */
    /* Hash buckets of each kind of list: 1 + index of the first and last item; 0: empty */
    uint32_t *first[LETTER_LISTS], *last[LETTER_LISTS];
    size_t cuts;      /* number of open items whose message was cut */
    uint64_t dropped; /* number of sent messages that were dropped before they were received */
    /* Number of received messages without a match since the first drop: their sent messages may have been dropped. */
    uint64_t missed;
};

void message_match_release(struct message_match *l);
/* Stores a sent message with a tag. */
void message_match_sent(struct message_match *l, const struct event *e, uint64_t tag);
/* Finds and removes the sent message that the event has received. Sets its tag. Returns false if there is none. */
bool message_match_received(struct message_match *l, const struct event *e, uint64_t *ret_tag);

#endif
