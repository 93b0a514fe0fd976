/*
 * Calls folded by their stacks: a tree of functions, each with how often it was there and the time that was its own.
 * Made from calls and their results; or, where events bring a stack trace, from these, each counted once.
 * Bounded: after STACKS_MAX nodes everything new is counted in the node it would hang below.
 */
#ifndef ETRACE_STACKS_H
#define ETRACE_STACKS_H

#include "sink.h"

#define STACKS_MAX 200000

struct stack_node {
    uint32_t parent, child, sibling; /* 0: none; node 0 is the root of all */
    uint32_t name;                   /* offset into names */
    uint32_t file, line;             /* of the place in the parent that called it; line 0: not known, or not asked for */
    uint64_t count, own_ns;
};

struct stack_process;

struct stacks {
    struct stack_node *nodes;
    size_t n, cap;
    struct buf names;      /* texts, NUL behind each */
    uint32_t *name_slots;  /* hash to 1 + offset */
    size_t nname_slots, nnames;
    struct stack_process *processes;
    size_t nprocesses; /* slots */
    size_t used;
    size_t idle; /* how often one became so since room was last made */
    size_t ndone; /* calls that ended and stand nowhere yet */
    enum terms_style terms;
    bool by_node; /* below a frame for each Erlang node; where there is but one, it is `top` */
    uint32_t top; /* the node that stands for all, once settled: 0, or 1 */
    bool callers; /* calls of one function from different lines are kept apart, and a known caller gets a node */
    bool traces;  /* made from stack traces: count says it all */
    bool full;    /* something hangs elsewhere than it should */
    struct buf text, file;
};

void stacks_init(struct stacks *s, enum terms_style terms);
void stacks_release(struct stacks *s);
void stacks_event(struct stacks *s, const struct event *e);
void stacks_settle(struct stacks *s); /* the tree is complete after it, and before it is looked at */
const char *stacks_name(const struct stacks *s, uint32_t node);
/* What a node has cost itself: nanoseconds, or how often it was seen where that is all that is known. */
uint64_t stacks_own(const struct stacks *s, uint32_t node);
/* The same with everything below it; the caller frees it. */
uint64_t *stacks_totals(const struct stacks *s);
/* What is missing from a view made of them, in lines behind `prefix`. */
void stacks_missing(const struct stacks *s, struct buf *to, const struct totals *t, const char *prefix);

#endif
