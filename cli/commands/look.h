/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a node what its processes do now, and reads the answer: {ask, {look, …}} of nif/tracer_look.hrl. */
#ifndef ETRACE_LOOK_H
#define ETRACE_LOOK_H

#include "../erlang/etf.h"
#include "../events/names.h"
#include "../ground/err.h"
#include "../trace/ctx.h"

struct look_question {
    const char *what; /* stacks, processes, names */
    struct str who;   /* a list in external format */
    bool anew;        /* begin with the list of processes; false: go on */
    size_t most;      /* processes to look at */
    int share;        /* percent of a core */
    int patience_ms;  /* for processes that do not answer */
    size_t pids;      /* stacks only: processes of each stack and initial call */
    const char *sort; /* the next three: processes only */
    bool growth;
    size_t rows;
};

void look_request(struct buf *b, const struct look_question *q); /* appends the whole request */

/* The same for the names of some processes: look_names_add() appends the pid of one to `pids`. */
void look_names_add(struct buf *pids, const char *pid);
void look_names_request(struct buf *b, const struct buf *pids, size_t n, int patience_ms);

struct look_answer {
    int64_t looked, left, us;
    int64_t since_us; /* the time between two looks; -1: this is the first one */
    int64_t total[5]; /* processes, queue, memory, binaries, reductions */
    struct etf silent, functions, stacks, rows, names, suspects; /* empty if the answer has none */
};

/* Shows how many processes a look that takes long has yet to look at. `begun`: when it began. */
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
void look_frame_json(struct buf *to, const struct look_frame *f);                     /* an object */
bool look_frame_is(const struct look_frame *f, const char *module, const char *name); /* NULL: any function of it */
void look_module_print(struct buf *to, struct raw module);                            /* in its own language */
/*
 * The behaviour of a process that is idle: gen_server, supervisor, … `other` are the loops of OTP's own processes. Its
 * subject tells it from others of the behaviour: the module of the callbacks, or of the loop. look_subject() returns
 * false if there is none. `initial`: the function that the process began with, without a function for a fun.
 */
const char *look_behaviour(const struct look_frame *stack, size_t n, const struct look_frame *initial);
bool look_subject(const struct look_frame *stack, size_t n, const struct look_frame *initial, struct raw *ret);
/* True if the function is the callback `init` of a behaviour; *ret is then its module. */
bool look_is_init(const struct look_frame *initial, struct raw *ret);
/* A module of OTP or Elixir itself that processes have on their stacks or begin with. */
bool look_is_otp(struct raw module);
/* The innermost function that is not of OTP's or Elixir's own modules. NULL: none is in the stack. */
const struct look_frame *look_own(const struct look_frame *stack, size_t n);

/* A process: its pid and its name, both safe to print. */
struct look_process {
    char pid[32], name[256];
};

/* Reads {Pid, Name}. */
bool look_process_read(struct etf *r, struct look_process *ret);

/* Reads a list of {Pid, Name}: look_list_next() until it returns false;
 * `ok` then says whether the list was well-formed. */
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
