/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the answers of a node to commands: its functions, its sessions, the traces of a function, counters, record
 * definitions, and the result of arming. The first byte selects the command. The answers follow, each after two bytes
 * with its length. After the last one the node is gone. The output must be fit for a terminal.
 *
 * The linker replaces attaching. There is one node, without a connection.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/arg_names.h"
#include "trace/request.h"
#include "commands/cmd.h"
#include "trace/record_lookup.h"
#include "commands/top_table.h"
#include "node/arm.h"
#include "node/inject.h"
#include "must.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void warned(void *data UNUSED, struct str text UNUSED)
{
}

/* ---- the node ---- */

static struct str left; /* answers that the node has not sent yet */

/* Copies the next answer into memory of exactly its size. False: there are no more. */
static bool next_answer(struct buf *ret)
{
    if (left.len < 2)
        return false;
    size_t len = (unsigned char)left.at[0] | (size_t)(unsigned char)left.at[1] << 8;
    len = MIN(len, left.len - 2);
    *ret = (struct buf){.data = malloc(len + !len), .len = len, .cap = len + !len};
    memcpy(ret->data, left.at + 2, len);
    left = (struct str){left.at + 2 + len, left.len - 2 - len};
    return true;
}

static const struct session_node node = {.name = "shop@h", .otp = 29, .otp_version = "29.1", .wordsize = 8};
static struct peer peer = {.state = PEER_UP};

const struct session_node *__wrap_session_node(const struct session *s);
bool __wrap_request_open(struct request *a, struct ctx *ctx, const struct node_opts *o, struct err *e);
void __wrap_request_close(struct request *a);
bool __wrap_peer_ask(struct peer *p, struct str request, int timeout_ms, struct buf *into, struct err *e);

const struct session_node *__wrap_session_node(const struct session *s UNUSED)
{
    return &node;
}

bool __wrap_request_open(struct request *a, struct ctx *ctx UNUSED, const struct node_opts *o UNUSED,
                         struct err *e UNUSED)
{
    *a = (struct request){.peers = {.items = &peer, .count = 1}};
    return true;
}

void __wrap_request_close(struct request *a)
{
    buf_release(&a->answer);
}

bool __wrap_peer_ask(struct peer *p UNUSED, struct str request, int timeout_ms UNUSED, struct buf *into, struct err *e)
{
    struct etf r;

    etf_open_version(&r, request.at, request.len);
    must(etf_skip(&r) && etf_done(&r));
    buf_release(into); /* the answer gets memory of exactly its size */
    return next_answer(into) || err_set(e, ERR_NODE, "the node is gone");
}

/* ---- commands ---- */

void __wrap_out_take(struct out *o, struct buf *b);

void __wrap_out_take(struct out *o UNUSED, struct buf *b)
{
    must_be_shown(buf_cstr(b), b->len);
    buf_clear(b);
}

static void command(char **words)
{
    struct ctx ctx = {.talk = hear, .out = out_new(STDOUT_FILENO, false, "standard output")};

    loop_init(&ctx.loop);
    int status = ctx_flush(&ctx, cmd_find(words[0])->run(&ctx, cmd_find(words[0]), words + 1));
    must(status >= 0 && status <= ERR_EMPTY);
    ctx_release(&ctx);
}

/* Reads the start of counting, and then the counters again and again. */
static void top(bool json, unsigned columns)
{
    struct top_node counted = {0};
    const char *name = node.name;
    struct grid_window window = {.room = columns / 4};
    struct top_table table = {.nodes = &counted, .names = &name, .count = 1, .columns = columns, .window = &window};
    struct funs funs;
    struct buf answer, shown = {0};
    struct err e;
    struct etf r;
    uint64_t processes;
    bool begun = false, ok = true;

    funs_init(&funs);
    while (ok && next_answer(&answer)) {
        etf_open(&r, answer.data, answer.len);
        ok = begun ? top_node_read(&counted, 0, r, &funs, &e)
                   : top_node_begun(&counted, r, &processes, warned, NULL, &e);
        if (!ok) {
            must_say(&e);
        } else {
            table.sort.given = grid_column_name(&top_columns.columns[answer.len % top_columns.count]);
            table.by_process = counted.count && counted.rows[0].pid[0];
            if (json) {
                top_table_data(&table, answer.len & 1 ? GRID_JSON : GRID_CSV, &shown);
            } else {
                top_table_title(&table, &shown);
                top_table_text(&table, &shown);
            }
            must_be_shown(buf_cstr(&shown), shown.len);
            buf_clear(&shown);
        }
        begun = true;
        buf_release(&answer);
    }
    buf_release(&shown);
    top_node_release(&counted);
    funs_release(&funs);
}

static void record(void)
{
    struct sel_name modules[] = {{.how = SEL_ATOM, .text = STR("shop")}};
    struct lang_lookup found = {0};
    struct record_lookup records;
    struct arena a;
    struct buf text = {0}, answer;
    struct etf r;
    struct err e;

    arena_init(&a);
    record_lookup_init(&records);
    must(record_lookup_find(&records, modules, 1, STR("item"), &a, &found) == LANG_LATER);
    if (next_answer(&answer)) {
        etf_open(&r, answer.data, answer.len);
        if (!record_lookup_read(&records, r, &e))
            must_say(&e);
        buf_release(&answer);
    }
    if (record_lookup_find(&records, modules, 1, STR("item"), &a, &found) == LANG_FOUND) {
        record_lookup_text(&records, &text);
        must(text.len);
    }
    buf_release(&text);
    record_lookup_release(&records);
    arena_release(&a);
}

static void arming(void)
{
    struct buf answer;
    struct arm_result armed = {0};
    struct session_node said = {0};
    struct node_pid owner;
    struct err e;
    struct etf r;

    while (next_answer(&answer)) {
        etf_open(&r, answer.data, answer.len);
        if (!arm_result_read(r, &armed, &e))
            must_say(&e);
        arm_result_release(&armed);
        if (inject_hello(r, &said, &owner))
            must(strlen(said.name) < sizeof(said.name) && strlen(said.otp_version) < sizeof(said.otp_version));
        buf_release(&answer);
    }
}

/* Reads the debug information of a module, as `ls` does. */
static void names(void)
{
    struct buf chunk;
    struct arg_names found;

    if (!next_answer(&chunk))
        return;
    arg_names_init(&found);
    arg_names_read(&found, buf_view(&chunk));
    for (int arity = 0; arity < 4; arity++) {
        const struct arg_name *n = arg_names_find(&found, STR("f"), arity);
        if (n)
            must_be_shown(n->text.at, n->text.len);
    }
    arg_names_release(&found);
    buf_release(&chunk);
}

int LLVMFuzzerInitialize(int *argc UNUSED, char ***argv UNUSED)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    must(null >= 0 && dup2(null, STDIN_FILENO) == STDIN_FILENO && dup2(null, STDOUT_FILENO) == STDOUT_FILENO);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *commands[][6] = {
        {"ls", "a:b"},     {"ls", "--args", "a:b"},       {"ls", "--json", "a:b"},
        {"info", "a:b/1"}, {"info", "--json", "<0.1.0>"}, {"info", "send", "x"},
        {"sessions"},      {"sessions", "--json"},        {"sessions", "--destroy", "3", "--yes"},
    };
    unsigned who;

    if (!size)
        return 0;
    left = (struct str){(const char *)data + 1, size - 1};
    who = data[0] % (ARRAY_LEN(commands) + 6);
    if (who < ARRAY_LEN(commands)) {
        command(commands[who]);
        return 0;
    }
    switch (who - ARRAY_LEN(commands)) {
    case 0:
        top(false, 0);
        break;
    case 1:
        top(false, 60);
        break;
    case 2:
        top(true, 0);
        break;
    case 3:
        record();
        break;
    case 4:
        arming();
        break;
    default:
        names();
    }
    return 0;
}
