/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what events tell about each process of a trace: its name, initial function, parent and links, and the calls of
 * exit and raise that may have ended it.
 *
 * Bounded: beyond LIVES_MAX processes, the process without an event for the longest time is forgotten; `forgotten`
 * counts these processes. Beyond LIVES_LINKS links, no link is added; `unlinked` counts the missing links.
 */
#ifndef ETRACE_LIVES_H
#define ETRACE_LIVES_H

#include "../events/names.h"
#include "exit_reason.h"

#define LIVES_MAX 131072
#define LIVES_LINKS 524288
#define LIFE_NONE UINT32_MAX
#define LIFE_PLACE 256 /* limit for life_exit.place in bytes */

/* The last call that may have ended a process: its own call of exit/1 or raise/3, or exit/2 by any process. */
struct life_exit {
    struct tracee by;
    int64_t mono_ns;
    struct exit_reason reason;
    uint8_t place_len;
    uint8_t place[]; /* {M,F,A,{File,Line}} of the caller, with its atoms spelled out; place_len 0: unknown */
};

/*
 * A port, or a process of another node. Its own node gives the process the same number; only the node that reports the
 * link knows what `channel` stands for.
 */
struct life_away {
    uint64_t id;      /* the same kind of number as in struct tracee; 0: there is no such port or process */
    uint32_t channel; /* the first number of the pid, which stands for its node; 0: a port */
};

struct death;

struct life {
    struct tracee who;
    const struct event_node *node;
    const struct fun *initial;    /* init of the callback module, or the first function; NULL: unknown */
    uint8_t arity;                /* arity of `initial` */
    uint64_t parent;              /* 0: unknown */
    struct life_exit *own, *sent; /* own: its call of exit/1 or raise/3; sent: exit/2 to the process; NULL: none */
    /* The process whose 'DOWN' this process received last, and its node; 0: none. */
    uint64_t down;
    const struct event_node *down_node;
    struct life_away away; /* the last link to something whose exit the node does not report */
    bool gets_name;        /* the process was started with a local name, so the event of its registration follows */
    bool bereaved;         /* the process has survived the exit of a linked process, or has sent an exit signal */
    struct death *death;   /* set by deaths.c; NULL: the process has not ended */
    /* Private to lives.c: */
    uint32_t links, older, newer;
};

struct life_link {
    /* life: the two processes; next[i], prev[i]: the neighbours of the link in the list of life[i] */
    uint32_t life[2], next[2], prev[2];
};

struct lives {
    struct life *items;
    size_t n, cap;
    uint32_t free, oldest, newest;
    struct table by_tracee;
    struct life_link *links;
    size_t nlinks, links_cap;
    uint32_t free_link;
    struct funs funs; /* initial functions */
    uint64_t forgotten, unlinked;
};

void lives_init(struct lives *s);
void lives_release(struct lives *s);

/*
 * Returns the process `id` on the node of the event, and adds it if needed. The pointer is valid until the next
 * lives_get().
 */
struct life *lives_get(struct lives *s, const struct event *e, uint64_t id);
struct life *lives_find(struct lives *s, const struct event_node *node, uint64_t id); /* NULL: unknown */
void lives_forget(struct lives *s, struct life *l);
/* Forgets all processes of a node. */
void lives_forget_node(struct lives *s, const struct event_node *node);

void lives_link(struct lives *s, struct life *a, struct life *b);
void lives_unlink(struct lives *s, struct life *a, struct life *b);
/* Calls each() for the processes linked to `l`, until each() returns true. Returns true in this case. */
bool lives_linked(struct lives *s, const struct life *l, bool (*each)(void *ctx, const struct life *other), void *ctx);

/*
 * Sets the initial function from the {M,F,Args} of a spawn. For a process of proc_lib, sets the function that proc_lib
 * calls; for a behaviour, init/1 of the callback module.
 */
void lives_initial(struct lives *s, struct life *l, const struct event *e, const uint8_t *mfa);
/* Replaces *keep by the call of exit that the event reports. */
void life_exit_keep(struct life_exit **keep, const struct event *e, const uint8_t *reason, const uint8_t *place);

#endif
