/*
 * Who asked for a command, and where its words go. stdout carries events and results, stderr carries talk; a command
 * knows neither: it writes results to ctx->out and talks through these functions.
 */
#ifndef ETRACE_CTX_H
#define ETRACE_CTX_H

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/out.h"
#include "../ground/talk.h"

struct ctx {
    struct loop loop;
    struct out *out; /* results */
    struct talk words;
    struct loop_fd words_fd; /* in the loop while some wait */
    bool color_talk;
    void (*talk)(void *data, struct str lines); /* where words go when not to stderr; NULL: there */
    void *talk_data;
    bool begun; /* a line of talk that ctx_begin() began is not complete */
    bool shown; /* what there is of it stands on the screen already */
    struct buf line; /* that */
    bool progress; /* the terminal shows the line of ctx_progress() */
    bool raw_talk; /* the terminal may be in raw mode: see ctx_share_terminal() */
    int quiet; /* 1: no banner and summary, 2: no warnings either; errors are always said */
    int interrupts; /* signals that asked to end */
    int last_signal;
    bool may_die; /* ctx_let_die() */
    bool debug;   /* $ETRACE_DEBUG: ctx_debug() prints */
    bool leaves; /* files, a program of ours or a terminal's modes would stay if a signal were our end */
    int64_t interrupted; /* when the last of them came, by loop_now() */
    void (*on_signal)(void *data, int signal, bool from_kernel); /* see ctx_pass_signals() */
    void *signal_data;
};

void ctx_init(struct ctx *c);
/* While on, nothing is there to put in order: a signal ends the program, unless it `leaves` something. Off when it is off already is fine. */
void ctx_let_die(struct ctx *c, bool on);
/* Gives signals to take(); NULL: they ask to end. A terminal sends its signals to our whole process group. */
void ctx_pass_signals(struct ctx *c, void (*take)(void *data, int signal, bool from_kernel), void *data);
void ctx_release(struct ctx *c); /* waits a moment for what stderr has not taken */

/* From now on somebody else sets the terminal's modes. Before anything is written. */
void ctx_share_terminal(struct ctx *c);

void ctx_say(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);  /* `etrace: …`, unless quiet */
void ctx_begin(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* ctx_say() without the end of the line, which may wait for it */
void ctx_show(struct ctx *c);                  /* it may take longer: what there is of the line is shown now */
void ctx_end(struct ctx *c, const char *more); /* ` · more` ends it; a line of its own when something else was said meanwhile */
void ctx_warn(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the same, unless very quiet */
void ctx_debug(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Shows a line of progress on a terminal. The next words replace it. */
void ctx_progress(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
int ctx_fail(struct ctx *c, const struct err *e); /* says the error and its hint; returns the exit status */

/* How long to wait for who reads the output: a loop_now() time, or -1 for ever. */
int64_t ctx_patience(const struct ctx *c);
bool ctx_waits(const struct ctx *c, int64_t *patience); /* who asked to end meanwhile shortens it */

/* Waits until everything written to ctx->out is out, a reader went away, or patience ends. Returns the exit status. */
int ctx_flush(struct ctx *c, int status);

#endif
