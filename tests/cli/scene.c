/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes recordings for suites that test views without a node:
 *     scene frames N      calls and results with about N different stacks
 *     scene messages N    N messages between 40 processes, sent and received
 *     scene hostile       names and terms that try to break out of a page
 *     scene processes N   N processes that are inside a call at the same time
 *     scene requests      a request whose wait no callback explains, and one that waits while events are lost
 *     scene losses        lost events, and calls without a result
 *     scene nodes N S C   N steps of C nodes, whose names and events depend on S
 */
#include "framewriter.h"

#include "events/recfile.h"

#define PID(n) ((uint64_t)(n))

static struct fw w;
static uint64_t now = 1000;
static unsigned left;

static void put(uint32_t flags)
{
    struct buf block = {0};

    recfile_block(&block, ETW_BLOCK_BATCH, 0, fw_batch(&w, now, (int64_t)now, now, flags));
    fwrite(block.data, 1, block.len, stdout);
    buf_release(&block);
}

static void footer(void)
{
    struct etw_footer f = {0};
    struct buf block = {0};

    for (unsigned i = 0; i < w.nrings; i++)
        f.seen += w.rings[i].seen;
    recfile_block(&block, ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&f, sizeof(f)});
    fwrite(block.data, 1, block.len, stdout);
    buf_release(&block);
}

static void specs(const char *const *exprs)
{
    struct buf text = {0}, file = {0};

    for (; *exprs; exprs++)
        recfile_spec_add(&text, "expr", (struct str){*exprs, strlen(*exprs)});
    recfile_header(&file);
    recfile_block(&file, ETW_BLOCK_SPECS, 0, buf_view(&text));
    fwrite(file.data, 1, file.len, stdout);
    buf_release(&text);
    buf_release(&file);
    fw_begin(&w);
    fw_hello(&w, 1, "shop@h1");
    fw_ring(&w, 1);
}

static void call(uint64_t pid, const char *m, const char *f)
{
    if (w.r->bytes.len > ETW_MAX_BATCH / 2)
        put(0), fw_ring(&w, 1);
    fw_call(&w, now += 100, pid, m, f, 1);
    fw_int(&w, 1);
    fw_frame_end(&w);
}

static void result(uint64_t pid, const char *m, const char *f, uint64_t after)
{
    fw_return(&w, now += after, pid, m, f, 1);
    fw_int(&w, 2);
    fw_frame_end(&w);
}

static void frames(unsigned depth)
{
    char module[16], name[16];

    for (unsigned i = 0; i < 10 && left; i++) {
        left--;
        snprintf(module, sizeof(module), "level%u", depth);
        snprintf(name, sizeof(name), "work%u", i);
        call(PID(1), module, name);
        if (depth < 6)
            frames(depth + 1);
        result(PID(1), module, name, 1000 + 37 * i);
    }
}

static void message(unsigned kind, uint64_t at, uint64_t who, uint64_t to, int64_t n)
{
    if (w.r->bytes.len > ETW_MAX_BATCH / 2)
        put(0), fw_ring(&w, 1);
    fw_frame(&w, kind, at, who);
    if (kind == ETW_SEND)
        fw_pid(&w, to);
    fw_tuple(&w, 2), fw_atom(&w, "job"), fw_int(&w, n);
    fw_frame_end(&w);
}

static void messages(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        uint64_t from = 1 + i % 40, to = 1 + (i * 7 + i / 40 + 1) % 40;
        message(ETW_SEND, now += 500, PID(from), PID(to), i);
        message(ETW_RECEIVE, now += 400, PID(to), 0, i);
    }
}

static const char evil[] = "</script><script>window.owned=1</script>]]><img src=x onerror=window.owned=1>";

static void hostile(void)
{
    fw_name(&w, 2, PID(1), evil);
    call(PID(1), evil, evil);
    result(PID(1), evil, evil, 5000);
    fw_frame(&w, ETW_SEND, now += 100, PID(1));
    fw_pid(&w, PID(2)), fw_bin(&w, evil);
    fw_frame_end(&w);
    fw_frame(&w, ETW_RECEIVE, now += 100, PID(2));
    fw_bin(&w, evil);
    fw_frame_end(&w);
}

static void processes(unsigned n)
{
    for (unsigned i = 1; i <= n; i++) {
        call(PID(i), "shop", "outer");
        call(PID(i), "shop", "inner");
        result(PID(i), "shop", "inner", 1000);
    }
    for (unsigned i = 1; i <= n; i++) {
        if (w.r->bytes.len > ETW_MAX_BATCH / 2)
            put(0), fw_ring(&w, 1);
        result(PID(i), "shop", "outer", 10);
    }
}

static void losses(void)
{
    call(PID(1), "shop", "order");
    call(PID(1), "shop", "price");
    result(PID(1), "shop", "price", 5000);
    fw_lost(&w, now += 10, ETW_LOST_GUARD, 4);
    result(PID(1), "shop", "order", 5000);
    call(PID(1), "shop", "order");
    result(PID(1), "shop", "order", 7000);
    call(PID(2), "shop", "never_ends");
}

/* ---- requests ---- */

static void from(uint64_t pid, const char *ref)
{
    fw_tuple(&w, 2), fw_pid(&w, pid), fw_text(&w, ETW_TEXT_REF, ref);
}

/* A request that arrives, and begins and is replied to later; perhaps events are lost while it waits. */
static void request(const char *ref, const char *what, uint64_t waits, bool loses)
{
    fw_frame(&w, ETW_RECEIVE, now += 100, PID(1));
    fw_tuple(&w, 3), fw_atom(&w, "$gen_call"), from(PID(2), ref), fw_atom(&w, what);
    fw_frame_end(&w);
    if (loses)
        fw_lost(&w, now += 10, ETW_LOST_RATE, 4);
    fw_call(&w, now += waits, PID(1), "gen_server", "try_handle_call", 4);
    fw_tuple(&w, 2), fw_tag(&w, ETW_T_ELIDED), fw_atom(&w, "shop");
    fw_atom(&w, what), from(PID(2), ref), fw_tag(&w, ETW_T_ELIDED);
    fw_frame_end(&w);
    fw_frame(&w, ETW_SEND, now += 1000, PID(1));
    fw_pid(&w, PID(2)), fw_tuple(&w, 2), fw_text(&w, ETW_TEXT_REF, ref), fw_atom(&w, "ok");
    fw_frame_end(&w);
}

/* ---- several nodes ---- */

static uint64_t seed;
static unsigned gap = 200000; /* the longest time between two events of a thread */

static unsigned any(unsigned below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % below;
}

static void block(unsigned type, unsigned node, struct str bytes)
{
    struct buf b = {0};

    recfile_block(&b, type, node, bytes);
    fwrite(b.data, 1, b.len, stdout);
    buf_release(&b);
}

static void note(unsigned node, enum etw_note_what what, int64_t value, const char *text)
{
    struct etw_note n = {.what = what, .value = value};
    struct buf b = {0};

    buf_add(&b, &n, sizeof(n));
    buf_puts(&b, text);
    block(ETW_BLOCK_NOTE, node, buf_view(&b));
    buf_release(&b);
}

/* Events of one thread of a node between two times: calls and results, names, processes that begin, and losses. */
static void thread_events(struct fw *n, unsigned ring, uint64_t from, uint64_t to)
{
    char name[32];

    fw_ring(n, ring);
    for (uint64_t at = from + any(2000); at < to; at += 500 + any(gap)) {
        const uint64_t pid = PID(1 + any(3000) * 2 + ring % 2);
        if (!any(300)) {
            fw_lost(n, at, any(2) ? ETW_LOST_RING : ETW_LOST_RATE, 1 + any(9));
        } else if (!any(40)) {
            snprintf(name, sizeof(name), "server_%u", any(5000));
            fw_name(n, at, pid, name);
        } else {
            snprintf(name, sizeof(name), "f%u", any(200));
            fw_frame(n, any(2) ? ETW_CALL : ETW_RETURN_FROM, at, pid);
            fw_fun(n, "mod", name, 1);
            fw_tuple(n, 2);
            snprintf(name, sizeof(name), "atom_%u", any(400));
            fw_atom(n, name);
            fw_int(n, (int64_t)(seed >> 8));
            fw_frame_end(n);
        }
    }
}

static void begin_node(struct fw *n, unsigned node, uint64_t at, const char *name)
{
    fw_begin(n);
    n->wall_offset += (int64_t)node * 7000000; /* its clock is wrong; a note tells by how much */
    fw_hello(n, at, name);
    fw_ring(n, 1);
}

static void nodes(unsigned steps, unsigned first, unsigned count)
{
    static struct fw all[8];
    static uint64_t done[8], batches[8];
    char name[8][32], text[] = "expr 16\n_:_/1 -> return \n";
    struct etw_footer f = {0};
    struct buf file = {0};
    uint64_t at = 1000000;
    bool down = false;

    seed = first;
    recfile_header(&file);
    fwrite(file.data, 1, file.len, stdout);
    buf_release(&file);
    for (unsigned i = 0; i < count; i++) {
        snprintf(name[i], sizeof(name[i]), "node%u@h", first + i);
        block(ETW_BLOCK_SPECS, i, (struct str){text, strlen(text)});
        begin_node(&all[i], i, at, name[i]);
        done[i] = at;
    }
    for (unsigned step = 0; step < steps; step++) {
        at += 1000000;
        for (unsigned i = 0; i < count; i++) {
            const bool last = step + 1 == steps, late = i == 1 && step % 9 && !last;
            if (late || (down && i == 2))
                continue;
            thread_events(&all[i], 1, done[i], at - 1000);
            thread_events(&all[i], 2, done[i], at);
            done[i] = at;
            if (step == 3)
                note(i, ETW_NOTE_CLOCK, INT64_C(1763663210000000000), "");
            block(ETW_BLOCK_BATCH, i, fw_batch(&all[i], at, (int64_t)at, at - any(400000), last ? ETW_BATCH_LAST : 0));
            batches[i]++;
            if (count > 1 && !any(10))
                note(i, ETW_NOTE_MARK, (int64_t)batches[i], "");
        }
        if (count > 2 && (step + 1) % 700 == 400) {
            down = true;
            note(2, ETW_NOTE_DOWN, INT64_C(1763663210000000000) + (int64_t)at, "connection lost");
        } else if (down && (step + 1) % 700 == 500) {
            down = false;
            note(2, ETW_NOTE_UP, INT64_C(1763663210000000000) + (int64_t)at, name[2]);
            fw_release(&all[2]);
            all[2] = (struct fw){0};
            begin_node(&all[2], 2, at, name[2]);
            done[2] = at;
        }
    }
    block(ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&f, sizeof(f)});
    for (unsigned i = 0; i < count; i++)
        fw_release(&all[i]);
}

int main(int argc, char **argv)
{
    static const char *const calls[] = {"_:_/1 -> return", NULL}, *const both[] = {"_:_/1 -> return", "send(_, _)",
                                                                                   "recv(_)", NULL};
    const char *scene = argc > 1 ? argv[1] : "";
    unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;

    if (!strcmp(scene, "nodes")) {
        nodes(n, argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1,
              argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : 3);
        return 0;
    }
    specs(!strcmp(scene, "messages") || !strcmp(scene, "hostile") || !strcmp(scene, "requests") ? both : calls);
    if (!strcmp(scene, "frames"))
        left = n, frames(0);
    else if (!strcmp(scene, "messages"))
        messages(n);
    else if (!strcmp(scene, "processes"))
        processes(n);
    else if (!strcmp(scene, "hostile"))
        hostile();
    else if (!strcmp(scene, "losses"))
        losses();
    else if (!strcmp(scene, "requests"))
        request("#Ref<0.1.2.3>", "buy", 5000, false), request("#Ref<0.1.2.4>", "sell", n, true);
    else
        return 2;
    put(ETW_BATCH_LAST);
    footer();
    fw_release(&w);
    return 0;
}
