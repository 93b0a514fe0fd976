/*
 * Words for standard error, which never block who says them: a terminal may be stopped (Ctrl-S), a pipe full. What is not taken at once
 * waits, within bounds; lines beyond are counted, and their number is said when there is room again.
 *
 * Whoever owns it watches `fd` for as long as something waits, and calls talk_on() when it can be written to.
 */
#ifndef ETRACE_TALK_H
#define ETRACE_TALK_H

#include "buf.h"

struct talk {
    int fd;
    bool own; /* opened here, so that it could be made non-blocking for us alone */
    struct buf waiting;
    size_t left_out; /* lines */
};

void talk_init(struct talk *t);
void talk_release(struct talk *t); /* drops what waits */

void talk_say(struct talk *t, struct str lines);
void talk_on(struct talk *t);

#endif
