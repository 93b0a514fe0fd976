/*
 * The expressions of one command: read from arguments and files, compiled for a node's OTP, turned into the request
 * that arms a session. Owns all memory of the specs; pointers to them stay good until probes_release().
 */
#ifndef ETRACE_PROBES_H
#define ETRACE_PROBES_H

#include "../lang/lang.h"
#include "ctx.h"
#include "groups.h"

struct probes {
    struct arena arena;
    const struct spec **specs;
    size_t count, cap;
    const struct where **wheres;
    size_t nwheres;
    struct str *headers; /* the texts of the --hrl files */
    size_t nheaders;
    struct buf *dump_tokens, *dump_ast; /* set before compiling: where to write what the passes made; or NULL */
};

void probes_init(struct probes *p);
void probes_release(struct probes *p);

/* Compiles words and -f files (and -e filters) for that OTP release; 0: none in particular. To be called once. */
bool probes_compile(struct probes *p, const struct what_opts *what, const struct texts *words,
                    const struct texts *wheres, int otp, struct err *e);

void probes_warn(const struct probes *p, struct ctx *ctx);

/* Appends the request; the node's name and creation give local pids in expressions their meaning. */
bool probes_arm(const struct probes *p, const struct what_opts *what, int otp, struct str node, uint32_t creation,
                struct buf *ret_request, struct err *e);

#endif
