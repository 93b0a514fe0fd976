/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The context of a command: the loop, signals, and where output goes. Standard output carries events and results,
 * standard error carries messages. A command uses neither directly: it writes results to ctx->out and messages through
 * these functions.
 */
#ifndef ETRACE_CTX_H
#define ETRACE_CTX_H

#include "../ground/err.h"
#include "../ground/loop.h"
#include "../ground/out.h"
#include "../ground/talk.h"

struct ctx {
    struct loop loop;
    struct out *out;       /* results */
    struct loop_fd reader; /* see ctx_watch_reader() */
    struct talk words;
    struct loop_fd words_fd; /* the loop watches it while `words` has unwritten text */
    bool color_talk;
    void (*talk)(void *data, struct str lines); /* takes the messages; NULL: they go to standard error */
    void *talk_data;
    bool begun;      /* ctx_begin() has begun a line that is not complete */
    bool shown;      /* that line is on the screen already */
    struct buf line; /* the text of that line */
    bool progress;   /* the terminal shows the line of ctx_progress() */
    bool keeps;      /* set by ctx_keep() */
    struct buf kept;
    bool raw_talk;  /* the terminal may be in raw mode: see ctx_share_terminal() */
    int quiet;      /* 1: no banner and no summary, 2: no warnings either; errors are always printed */
    int interrupts; /* the number of signals that asked to end */
    int last_signal;
    bool may_die;         /* set by ctx_let_die() */
    bool debug;           /* $ETRACE_DEBUG is set: ctx_debug() prints */
    bool debug_wire;      /* $ETRACE_DEBUG is "wire": messages are printed, too */
    bool leaves;          /* exiting on a signal would leave files, a child process or a changed terminal mode behind */
    int64_t interrupted;  /* when the last signal that ends the program came, by loop_now() */
    bool takes_snapshots; /* SIGUSR1 asks for a snapshot and does not end the program */
    unsigned snapshots;   /* how often SIGUSR1 has asked for one */
    void (*on_signal)(void *data, int signal, bool from_kernel); /* see ctx_pass_signals() */
    void *signal_data;
};

void ctx_init(struct ctx *c);
/*
 * While on, a signal ends the program at once, because there is nothing to clean up. A no-op if `leaves` is set, or if
 * nothing changes.
 */
void ctx_let_die(struct ctx *c, bool on);
/* Passes signals to take(). NULL: they ask to end. A terminal sends its signals to our whole process group. */
void ctx_pass_signals(struct ctx *c, void (*take)(void *data, int signal, bool from_kernel), void *data);
void ctx_release(struct ctx *c); /* waits a moment until standard error has taken everything */

/* Call it before the first output if another module changes the terminal's mode from now on. */
void ctx_share_terminal(struct ctx *c);

/* while on, keeps all messages, because a table has the screen; then prints them */
void ctx_keep(struct ctx *c, bool on);

void ctx_say(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* prints `etrace: …`, unless quiet */
/* Begins a line like ctx_say(); the line may stay unprinted until ctx_end(). */
void ctx_begin(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ctx_show(struct ctx *c); /* prints the begun line now, because its end may take longer */
/* Ends the line with ` · more`, or prints a new line if another message came between. */
void ctx_end(struct ctx *c, const char *more);
void ctx_warn(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* like ctx_say(), but only -qq silences it */
void ctx_print(struct ctx *c, struct str lines); /* to standard error as they are, whatever -q says */
void ctx_debug(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Shows a line of progress on a terminal. The next message replaces it. */
void ctx_progress(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ctx_progress_end(struct ctx *c);             /* erases it, for example before output to the same terminal */
int ctx_fail(struct ctx *c, const struct err *e); /* prints the error and its hint; returns the exit status */

/* How long to wait for a slow reader of the output: a loop_now() deadline, or -1 for ever. */
int64_t ctx_patience(const struct ctx *c);
/* Whether the caller should wait longer. If there was no deadline, a TERM or HUP signal sets one. */
bool ctx_waits(const struct ctx *c, int64_t *patience);

/*
 * From now on the command also ends when the reader of ctx->out goes away, as if a signal asked for it. For a command
 * that may be silent for long; struct outputs does this by itself.
 */
void ctx_watch_reader(struct ctx *c);

/* Waits until ctx->out is written, its reader has gone or patience ends. Returns the exit status. */
int ctx_flush(struct ctx *c, int status);

#endif
