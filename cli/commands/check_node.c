/* SPDX-License-Identifier: Apache-2.0 */
#include "check_node.h"

#include <string.h>
#include <time.h>

#include "../erlang/etf_fields.h"
#include "../erlang/etf_write.h"
#include "../erlang/term_print.h"
#include "../trace/request.h"

void check_health_request(struct buf *b, bool again, int patience_ms)
{
    request_begin(b, "health", 1);
    etf_map(b, 2);
    etf_atomz(b, "again");
    etf_atomz(b, again ? "true" : "false");
    etf_atomz(b, "patience");
    etf_int(b, patience_ms);
}

/* Describes an array that is filled from a list of maps. Rows beyond `most` are skipped, and set *more. */
struct check_rows {
    const struct etf_field *fields;
    size_t nfields, size, most;
    bool *more; /* NULL: the reader does not count the rows */
};

/* Reads the header of a list. Counts as empty if the answer does not have the list. */
static bool check_list(struct etf *r, size_t *ret_n)
{
    *ret_n = 0;
    return !r->at || etf_get_list(r, ret_n);
}

static bool check_take_rows(struct etf r, const struct check_rows *rows, void *items, size_t *ret_n)
{
    size_t n = 0, i;
    bool ok = check_list(&r, &n);

    for (i = 0; ok && i < n; i++)
        ok = i < rows->most ? etf_get_fields(&r, rows->fields, rows->nfields, (char *)items + i * rows->size)
                            : etf_skip(&r);
    *ret_n = MIN(n, rows->most);
    if (rows->more && n > rows->most)
        *rows->more = true;
    return ok;
}

/* `more` is as in struct check_rows. */
static bool check_take_texts(struct etf r, void *items, size_t size, size_t most, size_t *ret_n, bool *more)
{
    struct raw text;
    size_t n, i;
    bool ok = check_list(&r, &n);

    for (i = 0; ok && i < n; i++) {
        ok = etf_get_bin(&r, &text);
        if (ok && i < most)
            safe_copy((char *)items + i * size, size, text);
    }
    *ret_n = MIN(n, most);
    if (more && n > most)
        *more = true;
    return ok;
}

static bool check_take_named(struct etf r, struct look_process items[CHECK_NAMED], unsigned *ret_n)
{
    struct look_list list = look_list(r);

    for (*ret_n = 0; *ret_n < CHECK_NAMED && look_list_next(&list, &items[*ret_n]);)
        ++*ret_n;
    return list.ok;
}

#define OWNER(type) ETF_TEXT(type, "owner", owner.pid), ETF_TEXT(type, "owner_name", owner.name)
#define ROWS(fields, type, most) COUNTED_ROWS(fields, type, most, NULL)
#define COUNTED_ROWS(fields, type, most, more)                                                                         \
    &(const struct check_rows)                                                                                         \
    {                                                                                                                  \
        fields, ARRAY_LEN(fields), sizeof(type), most, more                                                            \
    }

static const struct etf_field table_fields[] = {
    ETF_TEXT(struct check_table, "name", name),
    OWNER(struct check_table),
    ETF_INT(struct check_table, "memory", memory),
    ETF_INT(struct check_table, "size", size),
};
static const struct etf_field port_fields[] = {
    ETF_TEXT(struct check_port, "port", port),  ETF_TEXT(struct check_port, "name", name), OWNER(struct check_port),
    ETF_INT(struct check_port, "queue", queue), ETF_TEXT(struct check_port, "node", node),
};
static const struct etf_field log_fields[] = {
    ETF_TEXT(struct check_log, "name", name),
    ETF_TEXT(struct check_log, "process", process),
    ETF_TEXT(struct check_log, "mode", mode),
    ETF_BOOL(struct check_log, "drops", drops),
};
static const struct etf_field lock_fields[] = {
    ETF_TEXT(struct check_lock, "type", type),
    ETF_TEXT(struct check_lock, "name", name),
    OWNER(struct check_lock),
};
static const struct etf_field locked_fields[] = {
    ETF_TEXT(struct check_locked, "type", type),
    ETF_TEXT(struct check_locked, "pid", process.pid),
    ETF_TEXT(struct check_locked, "name", process.name),
};
static const struct etf_field alarm_fields[] = {
    ETF_TEXT(struct check_alarm, "text", text),         ETF_TEXT(struct check_alarm, "type", type),
    ETF_TEXT(struct check_alarm, "node", node),         ETF_TEXT(struct check_alarm, "pid", process.pid),
    ETF_TEXT(struct check_alarm, "name", process.name), ETF_INT(struct check_alarm, "used", used),
    ETF_INT(struct check_alarm, "limit", limit),        ETF_TEXT(struct check_alarm, "where", where),
};
static const struct etf_field restart_fields[] = {
    OWNER(struct check_restart),
    ETF_TEXT(struct check_restart, "name", name),
    ETF_TEXT(struct check_restart, "pid", pid),
};

/* Rows that are being read. Their lists and terms are decoded after the other members. */
struct check_taken_wait {
    struct check_wait wait;
    struct etf waiting, owners;
};
struct check_taken_pool {
    struct check_pool pool;
    struct etf waiting, owners;
};
struct check_taken_start {
    struct check_start start;
    struct etf initial;
};

static bool check_take_waits(struct etf r, struct check_facts *f)
{
    static const struct etf_field fields[] = {
        ETF_TEXT(struct check_taken_wait, "pid", wait.process.pid),
        ETF_TEXT(struct check_taken_wait, "name", wait.process.name),
        ETF_BOOL(struct check_taken_wait, "elsewhere", wait.elsewhere),
        ETF_BOOL(struct check_taken_wait, "ends", wait.ends),
        ETF_BOOL(struct check_taken_wait, "task", wait.task),
        ETF_INT(struct check_taken_wait, "count", wait.count),
        ETF_INT(struct check_taken_wait, "owned", wait.owned),
        ETF_TERM(struct check_taken_wait, "waiting", waiting),
        ETF_TERM(struct check_taken_wait, "owners", owners),
    };
    struct check_taken_wait items[CHECK_ROWS] = {0};
    bool ok = check_take_rows(r, COUNTED_ROWS(fields, struct check_taken_wait, CHECK_ROWS, &f->more[CHECK_LIST_WAITS]),
                              items, &f->nwaits);

    for (size_t i = 0; ok && i < f->nwaits; i++) {
        f->waits[i] = items[i].wait;
        ok = check_take_named(items[i].waiting, f->waits[i].waiting, &f->waits[i].nwaiting) &&
             check_take_named(items[i].owners, f->waits[i].owners, &f->waits[i].nowners);
    }
    return ok;
}

static bool check_take_pools(struct etf r, struct check_facts *f)
{
    static const struct etf_field fields[] = {
        ETF_TEXT(struct check_taken_pool, "pid", pool.process.pid),
        ETF_TEXT(struct check_taken_pool, "name", pool.process.name),
        ETF_INT(struct check_taken_pool, "size", pool.size),
        ETF_INT(struct check_taken_pool, "taken", pool.taken),
        ETF_INT(struct check_taken_pool, "count", pool.count),
        ETF_INT(struct check_taken_pool, "ms", pool.ms),
        ETF_TERM(struct check_taken_pool, "waiting", waiting),
        ETF_TERM(struct check_taken_pool, "owners", owners),
    };
    struct check_taken_pool items[CHECK_ROWS] = {0};
    bool ok = check_take_rows(r, COUNTED_ROWS(fields, struct check_taken_pool, CHECK_ROWS, &f->more[CHECK_LIST_POOLS]),
                              items, &f->npools);

    for (size_t i = 0; ok && i < f->npools; i++) {
        f->pools[i] = items[i].pool;
        ok = check_take_named(items[i].waiting, f->pools[i].waiting, &f->pools[i].nwaiting) &&
             check_take_named(items[i].owners, f->pools[i].owners, &f->pools[i].nowners);
    }
    return ok;
}

static bool check_take_starts(struct etf r, struct check_facts *f, struct funs *funs)
{
    static const struct etf_field fields[] = {
        ETF_TEXT(struct check_taken_start, "owner", start.owner.pid),
        ETF_TEXT(struct check_taken_start, "owner_name", start.owner.name),
        ETF_INT(struct check_taken_start, "count", start.count),
        ETF_TERM(struct check_taken_start, "initial", initial),
    };
    struct check_taken_start items[CHECK_ROWS] = {0};
    bool ok = check_take_rows(r, ROWS(fields, struct check_taken_start, CHECK_ROWS), items, &f->nstarts);

    for (size_t i = 0; ok && i < f->nstarts; i++) {
        f->starts[i] = items[i].start;
        ok = !items[i].initial.at || look_frame_read(&items[i].initial, funs, &f->starts[i].initial);
    }
    return ok;
}

/* Returns the time on this host when the node read its clock, estimated as the middle between request and answer. */
static int64_t check_clock_us(int64_t asked)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 - (loop_now() - asked) * 500;
}

bool check_facts_read(struct etf r, int64_t asked, struct check_facts *ret, struct funs *funs, struct err *e)
{
    struct taken {
        struct check_facts f;
        struct etf tables, ports, log, locks, pools, alarms, starting, unknown, large, waits, locked, starts, restarts;
    } t = {.f = {.at = loop_now(), .here = check_clock_us(asked), .cpu_ms = -1}};
#define FIELD(what, key, ...) ETF_##what(struct taken, key, __VA_ARGS__)
    static const struct etf_field fields[] = {
        FIELD(INTS, "figures", f.figures, CHECK_FIGURES),
        FIELD(INTS, "busy", f.busy, 6),
        FIELD(INTS, "clock", f.clock, 2),
        FIELD(INT, "cpu", f.cpu_ms),
        FIELD(INT, "started", f.started),
        FIELD(BOOL, "waits_more", f.waits_more),
        FIELD(BOOL, "locked_more", f.locked_more),
        FIELD(TERM, "tables", tables),
        FIELD(TERM, "ports", ports),
        FIELD(TERM, "log", log),
        FIELD(TERM, "locks", locks),
        FIELD(TERM, "pools", pools),
        FIELD(TERM, "alarms", alarms),
        FIELD(TERM, "starting", starting),
        FIELD(TERM, "unknown", unknown),
        FIELD(TERM, "large", large),
        FIELD(TERM, "waits", waits),
        FIELD(TERM, "locked", locked),
        FIELD(TERM, "starts", starts),
        FIELD(TERM, "restarts", restarts),
    };
#undef FIELD
    struct check_facts *f = ret;
    bool ok = etf_get_fields(&r, fields, ARRAY_LEN(fields), &t);

    *f = t.f;
    ok = ok && check_take_rows(t.tables, ROWS(table_fields, struct check_table, CHECK_ROWS), f->tables, &f->ntables) &&
         check_take_rows(t.ports, COUNTED_ROWS(port_fields, struct check_port, CHECK_ROWS, &f->more[CHECK_LIST_PORTS]),
                         f->ports, &f->nports) &&
         check_take_rows(t.log, COUNTED_ROWS(log_fields, struct check_log, CHECK_ROWS, &f->more[CHECK_LIST_LOG]),
                         f->log, &f->nlog) &&
         check_take_rows(t.locks, COUNTED_ROWS(lock_fields, struct check_lock, CHECK_LOCKS, &f->more[CHECK_LIST_LOCKS]),
                         f->locks, &f->nlocks) &&
         check_take_rows(t.locked, COUNTED_ROWS(locked_fields, struct check_locked, CHECK_LOCKS, &f->locked_more),
                         f->locked, &f->nlocked) &&
         check_take_rows(t.restarts, ROWS(restart_fields, struct check_restart, CHECK_LOCKS), f->restarts,
                         &f->nrestarts) &&
         check_take_rows(t.alarms,
                         COUNTED_ROWS(alarm_fields, struct check_alarm, CHECK_ROWS, &f->more[CHECK_LIST_ALARMS]),
                         f->alarms, &f->nalarms) &&
         check_take_texts(t.starting, f->starting, sizeof(f->starting[0]), CHECK_ROWS, &f->nstarting,
                          &f->more[CHECK_LIST_STARTING]) &&
         check_take_texts(t.unknown, f->unknown, sizeof(f->unknown[0]), CHECK_ROWS, &f->nunknown, NULL) &&
         check_take_texts(t.large, f->large, sizeof(f->large[0]), CHECK_ROWS, &f->nlarge, NULL) &&
         check_take_pools(t.pools, f) && check_take_waits(t.waits, f) && check_take_starts(t.starts, f, funs);
    return ok || err_set(e, ERR_RUN, "the node's answer about itself is malformed");
}
