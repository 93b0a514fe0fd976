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
    struct loop_fd words_fd; /* watched by the loop while `words` has unwritten text */
    bool color_talk;
    void (*talk)(void *data, struct str lines); /* if not NULL, gets the messages instead of standard error */
    void *talk_data;
    bool begun;      /* ctx_begin() has begun a line that is not complete */
    bool shown;      /* the begun line is on the screen already */
    struct buf line; /* text of the begun line */
    bool progress;   /* the terminal shows the line of ctx_progress() */
    bool keeps;      /* ctx_keep() is on: messages go to `kept` */
    struct buf kept;
    bool raw_talk;  /* the terminal may be in raw mode (ctx_share_terminal()), so lines end in \r\n */
    int quiet;      /* 1: no banner and no summary, 2: no warnings either; errors are always printed */
    int interrupts; /* the number of signals that asked to end */
    int last_signal;
    bool may_die;    /* set by ctx_let_die() */
    bool debug;      /* $ETRACE_DEBUG is set: ctx_debug() prints */
    bool debug_wire; /* $ETRACE_DEBUG is "wire": messages are printed, too */
    bool leaves;     /* the program must clean up before a signal ends it: files, a child process or a terminal mode */
    int64_t interrupted;  /* loop_now() time of the last signal that asked to end */
    bool takes_snapshots; /* SIGUSR1 requests a snapshot instead of ending the program */
    unsigned snapshots;   /* number of snapshots that SIGUSR1 has requested */
    void (*on_signal)(void *data, int signal, bool from_kernel); /* see ctx_pass_signals() */
    void *signal_data;
};

void ctx_init(struct ctx *c);
/*
 * With `on`, lets a signal end the program at once, because there is nothing to clean up. A no-op if `on` does not
 * change anything, or if `leaves` is set and `on` is true.
 */
void ctx_let_die(struct ctx *c, bool on);
/*
 * Passes signals to take() instead of counting them in `interrupts`; NULL ends that. `from_kernel` is true for a signal
 * of the terminal, which signals our whole process group.
 */
void ctx_pass_signals(struct ctx *c, void (*take)(void *data, int signal, bool from_kernel), void *data);
void ctx_release(struct ctx *c); /* waits up to WORDS_MS until standard error has taken all messages */

/* Call it before the first output if another module will change the terminal's mode. */
void ctx_share_terminal(struct ctx *c);

/* On: keeps all messages, because a table covers the screen. Off: prints the kept messages. */
void ctx_keep(struct ctx *c, bool on);

void ctx_say(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* prints `etrace: …`, unless quiet */
/* Begins a line like ctx_say(). The line may stay unprinted until ctx_end(). */
void ctx_begin(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ctx_show(struct ctx *c); /* prints the begun line now, because ctx_end() may come late */
/* Completes the line with ` · more`. Prints a new line if another message came in between. */
void ctx_end(struct ctx *c, const char *more);
void ctx_warn(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3); /* like ctx_say(), but only -qq silences it */
void ctx_print(struct ctx *c, struct str lines); /* prints the lines unchanged to standard error, whatever -q says */
void ctx_debug(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Shows a line of progress on a terminal. The next message replaces it. */
void ctx_progress(struct ctx *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
void ctx_progress_end(struct ctx *c); /* erases the line of progress, for example before output to the same terminal */
int ctx_fail(struct ctx *c, const struct err *e); /* prints the error and its hint; returns the exit status */
void ctx_put_error(const struct err *e, bool color, struct buf *to); /* appends the lines that ctx_fail() prints */

/*
 * Returns the loop_now() time until which to wait for a slow reader of the output; -1: no deadline. After TERM or HUP
 * the process should end soon. Ctrl-C sets no deadline, because the user may still read in a pager.
 */
int64_t ctx_patience(const struct ctx *c);
/* Returns true until the deadline *patience. If *patience is -1, sets a deadline once a TERM or HUP signal has come. */
bool ctx_waits(const struct ctx *c, int64_t *patience);

/*
 * Makes the command end when the reader of ctx->out goes away, as if a signal had asked the command to end. For a
 * command that may print nothing for long. struct outputs watches its readers itself.
 */
void ctx_watch_reader(struct ctx *c);

/* Waits until ctx->out is written, its reader has gone or patience ends. Returns the exit status. */
int ctx_flush(struct ctx *c, int status);

#endif
