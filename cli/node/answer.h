/* What the companion says in terms, said in words. */
#ifndef ETRACE_ANSWER_H
#define ETRACE_ANSWER_H

#include "../erlang/etf.h"
#include "../ground/buf.h"
#include "../ground/err.h"

/* Why the owner ended although nobody had asked it to. */
void answer_gone(struct etf reason, const char *node, struct err *e);

#endif
