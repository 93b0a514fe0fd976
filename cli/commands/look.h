/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a node what its processes are doing, and reads the answer: {ask, {look, …}} of nif/tracer_look.hrl. */
#ifndef ETRACE_LOOK_H
#define ETRACE_LOOK_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"
#include "../trace/ctx.h"

struct look_question {
    const char *what; /* stacks, processes, names */
    struct str who;   /* the processes: a list in external format */
    bool anew;        /* begin with the list of processes; false: continue with it */
    size_t most;      /* limit for the processes of this answer */
    int share;        /* percent of a core */
    int patience_ms;  /* how long to wait for processes that do not answer */
    size_t pids;      /* stacks only: number of pids for each stack and initial call */
    const char *sort; /* this and the next two: processes only */
    bool growth;
    size_t rows;
};

void look_request(struct buf *b, const struct look_question *q); /* appends the whole request */

/* A request for the names of some processes: look_names_add() appends each pid to `pids`. */
void look_names_add(struct buf *pids, const char *pid);
void look_names_request(struct buf *b, const struct buf *pids, size_t n, int patience_ms);

struct look_answer {
    int64_t looked, left, us;
    int64_t since_us; /* time between two looks; -1: this is the first look */
    int64_t total[5]; /* processes, queue, memory, binaries, reductions */
    struct etf silent, functions, stacks, rows, names, suspects; /* empty if the answer does not have them */
};

/* Shows how many processes a long look has not reached. `begun`: loop_now() time of its begin. */
void look_progress(struct ctx *ctx, int64_t begun, int64_t left);

bool look_read(struct etf r, struct look_answer *ret, struct err *e);

/* A function of a stack. */
struct look_frame {
    const struct fun *fun;
    int arity;
};

/* Reads {M, F, A}. */
bool look_frame_read(struct etf *r, struct funs *funs, struct look_frame *ret);
void look_frame_print(struct buf *to, const struct look_frame *f);
void look_frame_json(struct buf *to, const struct look_frame *f); /* an object */
/* NULL: any function of the module. */
bool look_frame_is(const struct look_frame *f, const char *module, const char *name);
void look_module_print(struct buf *to, struct raw module); /* in the language of the module */
/*
 * Return the behaviour of an idle process, such as gen_server or supervisor (`other`: the loops of OTP's own
 * processes), and the subject that distinguishes it from other processes with this behaviour: the module of its
 * callbacks, or of its loop. look_subject() returns false if there is no subject. `initial`: the initial function of
 * the process, without `fun` if it is a fun.
 */
const char *look_behaviour(const struct look_frame *stack, size_t n, const struct look_frame *initial);
bool look_subject(const struct look_frame *stack, size_t n, const struct look_frame *initial, struct raw *ret);
/* Returns true if the function is the callback init of a behaviour. *ret is then its module. */
bool look_is_init(const struct look_frame *initial, struct raw *ret);
/* Returns true for a module of OTP or Elixir that often stands on stacks or in initial calls. */
bool look_is_otp(struct raw module);
/* Returns the innermost function that is not in a module of OTP or Elixir; NULL: none. */
const struct look_frame *look_own(const struct look_frame *stack, size_t n);

/* A process: its pid and its name, both safe to print. */
struct look_process {
    char pid[32], name[256];
};

/* Reads {Pid, Name}. */
bool look_process_read(struct etf *r, struct look_process *ret);

/*
 * Reads a list of {Pid, Name}: call look_list_next() until it returns false. `ok` is false if the list was malformed.
 */
struct look_list {
    struct etf rest;
    size_t left;
    bool ok;
};
struct look_list look_list(struct etf term);
bool look_list_next(struct look_list *l, struct look_process *ret);

void look_process_print(struct buf *to, const struct look_process *p);
void look_process_json(struct buf *to, const struct look_process *p); /* an object */

#endif
