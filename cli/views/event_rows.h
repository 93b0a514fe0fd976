/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The view of `etrace browse`: a record for each event, with its line and what a list needs to move among the lines.
 * Writes records instead of text, so --as does not offer it. The lines are those of the text view, without the time.
 */
#ifndef ETRACE_EVENT_ROWS_H
#define ETRACE_EVENT_ROWS_H

#include "sink.h"

#define EVENT_ROW_TEXT 4096 /* a longer line is cut; as much of a line as --grep reads (REGEX_SUBJECT) */

/* The text of a record follows it. */
struct event_row {
    uint64_t number;            /* event.number; losses and notices have that of the event before */
    uint64_t call;              /* of a result: the number of its call; 0: unknown */
    uint64_t who;               /* the process or port; 0: none */
    int64_t wall_ns, steady_ns; /* for clock_put_at() */
    int64_t dur_ns;             /* -1: none */
    uint16_t len;               /* bytes of the text */
    uint16_t tail;              /* of a result: where the second part of its line begins (line_result_tail()) */
    uint16_t node;
    uint8_t kind;
    bool own;     /* a loss or a notice of etrace */
    bool returns; /* a call that reports its result */
};

extern const struct sink_type event_rows;

/* Takes the next record from the output of the view. Returns false at the end. *ret_text is borrowed from `rest`. */
bool event_rows_next(struct str *rest, struct event_row *ret, struct str *ret_text);

#endif
