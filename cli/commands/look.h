/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a node what its processes are doing, and reads the answer. Such a request, {ask, {look, …}} of
 * nif/tracer_look.hrl, is called a look.
 */
#ifndef ETRACE_LOOK_H
#define ETRACE_LOOK_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"
#include "../node/session.h"
#include "../trace/ctx.h"

struct look_question {
    const char *what; /* the kind of look: stacks, processes, names, check or why */
    struct str who;   /* the processes to look at: a list in the external term format */
    bool anew;        /* list the processes anew; false: continue with the list of the previous request */
    size_t most;      /* limit for the number of processes in this answer */
    int share;        /* limit for the load on the node, in percent of one core */
    int patience_ms;  /* how long the node waits for processes that do not answer */
    size_t pids;      /* for stacks: limit for the pids that are listed for each stack and initial call */
    const char *sort; /* this and the next two members are for processes */
    bool growth;
    size_t rows;
};

void look_request(struct buf *b, const struct look_question *q); /* appends the complete request */

/*
 * Build a request for the names of n processes: look_names_add() appends each pid to `pids`, look_names_request()
 * appends the request to `b`.
 */
void look_names_add(struct buf *pids, const char *pid);
void look_names_request(struct buf *b, const struct buf *pids, size_t n, int patience_ms);

struct look_answer {
    int64_t looked, left, us;
    int64_t since_us; /* time since the previous look; -1: this is the first one */
    int64_t total[5]; /* sums over all processes: number, queue, memory, binaries, reductions */
    /* parts of the answer; empty if the node did not send them */
    struct etf silent, functions, stacks, rows, names, suspects, reasons;
};

/* Shows how many processes a long look has yet to reach. `begun` is the loop_now() time when it began. */
void look_progress(struct ctx *ctx, int64_t begun, int64_t left);

/*
 * Call it for a look that did not end. Returns true, with an error, if a signal has stopped the look: its result must
 * not be shown as if it had all processes. Returns false, without an error, if the reader of the output has left.
 */
bool look_stopped(const struct ctx *ctx, const char *node, struct err *e);

bool look_read(struct etf r, struct look_answer *ret, struct err *e);

/* Interns the functions of looks. Those of nodes that run Elixir print in Elixir, whatever their module is. */
struct look_funs {
    struct funs erlang, elixir;
};
void look_funs_init(struct look_funs *f);
void look_funs_release(struct look_funs *f);
struct funs *look_funs_of(struct look_funs *f, const struct session_node *n);

/* A function of a stack. */
struct look_frame {
    const struct fun *fun;
    int arity;
};

/* Reads {M, F, A}. */
bool look_frame_read(struct etf *r, struct funs *funs, struct look_frame *ret);
void look_frame_print(struct buf *to, const struct look_frame *f);
void look_frame_json(struct buf *to, const struct look_frame *f); /* as an object */
/*
 * Returns true if the first function of the stack prints in Elixir. On a node that runs Elixir, every function does.
 */
static inline bool look_in_elixir(const struct look_frame *stack, size_t n)
{
    return n && stack[0].fun && stack[0].fun->is_elixir;
}
/* Returns true if the frame is the function `name` of the module. `name` NULL accepts any function of the module. */
bool look_frame_is(const struct look_frame *f, const char *module, const char *name);
/* Prints the name of a module. A module of Erlang prints in Elixir if `elixir` is set; one of Elixir always does. */
void look_module_print(struct buf *to, struct raw module, bool elixir);
/*
 * look_behaviour() returns the behaviour of an idle process, such as gen_server or supervisor, or `other` for the loops
 * of OTP's own processes. look_subject() finds the module that distinguishes the process from others with the same
 * behaviour: its callback module or the module of its loop. It returns false if there is none. `initial` is the initial
 * function of the process; its `fun` is NULL if the process was started with a fun.
 */
const char *look_behaviour(const struct look_frame *stack, size_t n, const struct look_frame *initial);
bool look_subject(const struct look_frame *stack, size_t n, const struct look_frame *initial, struct raw *ret);
/* Returns true if the initial function is the init callback of a behaviour, and sets *ret to its module. */
bool look_is_init(const struct look_frame *initial, struct raw *ret);
/* Returns true for the modules of OTP or Elixir that appear in most stacks or initial calls. */
bool look_is_otp(struct raw module);
/* Returns the innermost function that is in no module of OTP or Elixir; NULL: none. */
const struct look_frame *look_own(const struct look_frame *stack, size_t n);

/* A process. Both texts are safe to print. */
struct look_process {
    char pid[32], name[256];
};

/* Reads {Pid, Name}. */
bool look_process_read(struct etf *r, struct look_process *ret);

/*
 * Iterates over a list of {Pid, Name}: look_list_next() returns false at the end. Then `ok` is false if the list was
 * malformed.
 */
struct look_list {
    struct etf rest;
    size_t left;
    bool ok;
};
struct look_list look_list(struct etf term);
bool look_list_next(struct look_list *l, struct look_process *ret);

void look_process_print(struct buf *to, const struct look_process *p);
void look_process_json(struct buf *to, const struct look_process *p); /* as an object */

#endif
