/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of `etrace browse`: a record for each event, with the line of the event and the figures that a list needs to
 * move between the lines. Writes records instead of text, so --as does not offer it. The lines are those of the text
 * view, without the time.
 */
#ifndef ETRACE_EVENT_ROWS_H
#define ETRACE_EVENT_ROWS_H

#include "sink.h"

#define EVENT_ROW_TEXT 4096 /* limit for a line in bytes; --grep also reads so much of a line (REGEX_SUBJECT) */

/* One record. Its text follows it in the output. */
struct event_row {
    uint64_t number;            /* event.number; a record with `own` has the number of the event before it */
    uint64_t cause;             /* result: the number of its call; receive: of the event that sent it; 0: unknown */
    uint64_t who;               /* the process or port; 0: none */
    int64_t wall_ns, steady_ns; /* for clock_put_at() */
    int64_t dur_ns;             /* duration of the event; -1: none */
    uint16_t len;               /* bytes of the text */
    uint16_t tail;              /* result: offset of the second part of its line (line_result_tail()) in the text */
    uint16_t node;
    uint8_t kind;
    bool own;     /* a loss, a notice, or a node that was lost or came back; not an event of the VM */
    bool returns; /* a call that reports its result */
};

extern const struct sink_type event_rows;

/* Takes the next record from the output of the view. Returns false at the end. *ret_text is borrowed from `rest`. */
bool event_rows_next(struct str *rest, struct event_row *ret, struct str *ret_text);

#endif
