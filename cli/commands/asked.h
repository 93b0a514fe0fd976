/*
 * The expressions of one command: read from arguments and files, compiled for a node's OTP, turned into the request
 * that arms a session. Owns all memory of the specs; pointers to them stay good until asked_release().
 */
#ifndef ETRACE_ASKED_H
#define ETRACE_ASKED_H

#include "../lang/lang.h"
#include "ctx.h"
#include "groups.h"

struct asked {
    struct arena arena;
    const struct spec **specs;
    size_t count, cap;
    const struct where **wheres;
    size_t nwheres;
    struct str *headers; /* the texts of the --hrl files */
    size_t nheaders;
    bool figures; /* nothing but figures of calls is shown, so the node may count instead of sending */
    struct buf *dump_tokens, *dump_ast; /* set before compiling: where to write what the passes made; or NULL */
    uint64_t mark; /* set before asked_arm(): arm_mark(); 0: none */
};

void asked_init(struct asked *p);
void asked_release(struct asked *p);

/* Compiles words and -f files (and -e filters) for that OTP release; 0: none in particular. To be called once. */
bool asked_compile(struct asked *p, const struct what_opts *what, const struct texts *words,
                    const struct texts *wheres, int otp, struct err *e);

void asked_warn(const struct asked *p, struct ctx *ctx);

/* Appends the request; the node's name and creation give local pids in expressions their meaning. */
bool asked_arm(const struct asked *p, const struct what_opts *what, int otp, struct str node, uint32_t creation,
                struct buf *ret_request, struct err *e);

/*
 * The kinds of events that the expressions need, a bit for each: what they ask for, and what that is paired with (the
 * beginning of a collection, for its duration), which is in *ret_besides and is not shown.
 */
uint64_t asked_kinds(const struct asked *p, uint64_t *ret_besides);

#endif
