/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings made by hand, for suites that look at views without a node:
 *     scene frames N      about N different stacks of calls with their results
 *     scene messages N    N messages between 40 processes, sent and received
 *     scene hostile       names and terms that try to leave the page they are shown in
 *     scene processes N   as many that are within a call at the same time
 *     scene losses        events were lost, and calls have no result
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

int main(int argc, char **argv)
{
    static const char *const calls[] = {"_:_/1 -> return", NULL}, *const both[] = {"_:_/1 -> return", "send(_, _)",
                                                                                   "recv(_)", NULL};
    const char *scene = argc > 1 ? argv[1] : "";
    unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1000;

    specs(!strcmp(scene, "messages") || !strcmp(scene, "hostile") ? both : calls);
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
    else
        return 2;
    put(ETW_BATCH_LAST);
    footer();
    fw_release(&w);
    return 0;
}
