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

/* A process that others wait for. */
struct check_wait {
    struct look_process process; /* has the node's name as name if `elsewhere` */
    /*
     * elsewhere: the process is on another node. ends: at least one caller waits with a timeout. task: all callers wait
     * for a task of Elixir.
     */
    bool elsewhere, ends, task;
    int64_t count, owned;
    /* owners: processes that may have what the callers wait for. */
    struct look_process waiting[CHECK_NAMED], owners[CHECK_NAMED];
    unsigned nwaiting, nowners;
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

/* The answer to one question. A list has the first rows of the answer; the count of `locked` includes all rows. */
struct check_facts {
    int64_t at;                      /* loop_now() time */
    int64_t figures[CHECK_FIGURES];  /* the first four are followed by their limits */
    int64_t busy[6], clock[2], here; /* here: our own clock when the node read its clocks, in us */
    struct check_table tables[CHECK_ROWS];
    struct check_port ports[CHECK_ROWS];
    struct check_log log[CHECK_ROWS];
    struct check_lock locks[CHECK_LOCKS];
    char alarms[CHECK_ROWS][256], starting[CHECK_ROWS][100], unknown[CHECK_ROWS][16];
    size_t ntables, nports, nlog, nlocks, nalarms, nstarting, nunknown;
    struct check_wait waits[CHECK_ROWS];
    struct check_locked locked[CHECK_LOCKS];
    struct check_start starts[CHECK_ROWS];
    struct check_restart restarts[CHECK_LOCKS];
    size_t nwaits, nlocked, nstarts, nrestarts;
    int64_t started;
};

void check_health_request(struct buf *b, bool again, int patience_ms); /* appends the whole request */
/* Reads an answer that has just come. `asked`: the loop_now() time when the question was sent. */
bool check_facts_read(struct etf r, int64_t asked, struct check_facts *ret, struct funs *funs, struct err *e);

#endif
