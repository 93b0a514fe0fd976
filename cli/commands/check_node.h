/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a node reports about itself for `etrace check` (nif/tracer_health.hrl). */
#ifndef ETRACE_CHECK_NODE_H
#define ETRACE_CHECK_NODE_H

#include "why_look.h"

#define CHECK_ROWS 8
#define CHECK_NAMED 4
#define CHECK_LOCKS 32

struct check_table {
    char name[100];
    struct look_process owner;
    int64_t memory, size;
};

struct check_port {
    char port[32], name[64], node[300];
    struct look_process owner;
    int64_t queue;
};

struct check_log {
    char name[100], process[140], mode[12];
    bool drops;
};

struct check_lock {
    char type[12], name[200];
    struct look_process owner;
};

struct check_locked {
    char type[12];
    struct look_process process;
};

struct check_start {
    struct look_process owner;
    int64_t count;
    struct look_frame initial;
};

struct check_restart {
    struct look_process owner;
    char name[100], pid[32];
};

/* A process for which other processes wait. */
struct check_wait {
    struct look_process process; /* if `elsewhere`, its name is the name of its node */
    /*
     * elsewhere: the process is on another node. ends: at least one caller waits with a timeout. task: the callers wait
     * for the result of an Elixir task.
     */
    bool elsewhere, ends, task;
    int64_t count, owned;
    /* waiting: some of the callers. owners: some processes that may hold the resource that the callers wait for. */
    struct look_process waiting[CHECK_NAMED], owners[CHECK_NAMED];
    unsigned nwaiting, nowners;
};

struct check_alarm {
    char text[256]; /* the alarm as a term */
    /* type: memory or disk if RabbitMQ has raised the alarm, for its node `node`; otherwise system, process or other */
    char type[24], node[300];
    struct look_process process; /* type process: the process with much memory */
    /* Bytes: the memory that RabbitMQ uses or the disk space that is free in `where`, and its limit; 0: unknown. */
    int64_t used, limit;
    char where[256];
};

/* A pool of DBConnection in which clients wait for a connection. */
struct check_pool {
    struct look_process process;
    int64_t size, taken; /* number of connections that the pool has, and how many of them clients own */
    int64_t count, ms;   /* number of clients that wait, and how long the first of them has waited */
    struct look_process owners[CHECK_NAMED], waiting[CHECK_NAMED]; /* some of these clients */
    unsigned nowners, nwaiting;
};

enum check_figure {
    CHECK_PROCESSES,
    CHECK_PORTS = 2,
    CHECK_ATOMS = 4,
    CHECK_TABLES = 6,
    CHECK_MODULES = 8,
    CHECK_USED,
    CHECK_LEFT,
    CHECK_FIGURES
};

/* The lists of an answer whose rows can become findings. A note says that there are more rows than their array holds.
 */
enum check_list {
    CHECK_LIST_WAITS,
    CHECK_LIST_PORTS,
    CHECK_LIST_POOLS,
    CHECK_LIST_LOCKS,
    CHECK_LIST_LOG,
    CHECK_LIST_ALARMS,
    CHECK_LIST_STARTING,
    CHECK_LISTS
};

/* One answer of the node about itself. A list has only the first rows, at most as many as the array can hold. */
struct check_facts {
    int64_t at;                     /* loop_now() time of the answer */
    int64_t figures[CHECK_FIGURES]; /* by enum check_figure; each of the first four is followed by its limit */
    /* clock: times of the VM and of the system, in us; here: time on this host when the node read them, in us */
    int64_t busy[6], clock[2], here;
    int64_t cpu_ms; /* processor time that the VM has used; -1: unknown */
    struct check_table tables[CHECK_ROWS];
    struct check_port ports[CHECK_ROWS];
    struct check_log log[CHECK_ROWS];
    struct check_lock locks[CHECK_LOCKS];
    struct check_pool pools[CHECK_ROWS];
    struct check_alarm alarms[CHECK_ROWS];
    /* unknown, large: the parts of the answer that are missing, because it was late or because of their size */
    char starting[CHECK_ROWS][100], unknown[CHECK_ROWS][16], large[CHECK_ROWS][16];
    size_t ntables, nports, nlog, nlocks, npools, nalarms, nstarting, nunknown, nlarge;
    struct check_wait waits[CHECK_ROWS];
    struct check_locked locked[CHECK_LOCKS];
    struct check_start starts[CHECK_ROWS];
    struct check_restart restarts[CHECK_LOCKS];
    size_t nwaits, nlocked, nstarts, nrestarts;
    bool more[CHECK_LISTS];       /* the list has more rows */
    bool waits_more, locked_more; /* more processes may wait than `count` of `waits`, or `locked`, has */
    int64_t started;
};

void check_health_request(struct buf *b, bool again, int patience_ms); /* appends the complete request */
/* Reads an answer. Must be called as soon as it arrives. `asked` is the loop_now() time when the request was sent. */
bool check_facts_read(struct etf r, int64_t asked, struct check_facts *ret, struct funs *funs, struct err *e);

#endif
