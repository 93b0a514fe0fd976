/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the rules and the answers of `etrace mcp`: which nodes and recordings a pattern allows, and that no answer is
 * too long.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/mcp_answer.h"
#include "ground/json.h"
#include "tap.h"

/* ---- nodes ---- */

static void allows(const char *given, const char *line, const char *name, bool want)
{
    struct node_opts node = NODE_OPTS_INIT;
    char path[] = "/tmp/etrace-rules-XXXXXX";
    struct mcp_rules rules;
    struct err e;
    const int fd = mkstemp(path);

    if (given)
        texts_add(&node.nodes, given);
    const bool written = !line || dprintf(fd, "node %s\n", line) > 0;
    close(fd);
    ok(written && mcp_rules_init(&rules, &node, line ? path : NULL, &e) && mcp_rules_allow_node(&rules, name) == want,
       "with -n %s and the line %s, %s is %s", given ? given : "none", line ? line : "none", name,
       want ? "allowed" : "refused");
    unlink(path);
    mcp_rules_release(&rules);
    texts_release(&node.nodes);
}

/* Checks which name the command gets for the node that a call names; with --ssh, if `ssh` is not NULL. */
static void passes(const char *given, const char *ssh, const char *asked, const char *want)
{
    struct node_opts node = NODE_OPTS_INIT;
    const char *got = NULL;
    struct mcp_rules rules;
    struct err e;

    node.ssh = ssh;
    if (given)
        texts_add(&node.nodes, given);
    const bool allowed =
        mcp_rules_init(&rules, &node, NULL, &e) && mcp_rules_node(&rules, asked, &rules.arena, &got, &e);
    ok(allowed == (want != NULL) && (!want || !strcmp(got, want)), "with -n %s%s, %s is asked for as %s",
       given ? given : "none", ssh ? " and --ssh" : "", asked, want ? want : "nothing");
    mcp_rules_release(&rules);
    texts_release(&node.nodes);
}

/* A node with a full host is on this host if the host's first label is the name of this host. */
static void full_names(void)
{
    char own[256] = "", here[300], elsewhere[300];

    gethostname(own, sizeof(own) - 1);
    own[strcspn(own, ".")] = 0;
    snprintf(here, sizeof(here), "shop@%s.etrace.example", own);
    snprintf(elsewhere, sizeof(elsewhere), "shop@%sx.etrace.example", own);
    allows(NULL, NULL, here, true);
    allows("shop", NULL, here, true);
    allows(NULL, "sh*", here, true);
    allows("other", NULL, here, false);
    allows("shop", NULL, elsewhere, false);
    allows("shop@example.com", NULL, here, false);
    passes("shop", NULL, here, "shop");
    passes(NULL, NULL, here, "shop");
    passes(here, NULL, here, here);
    passes("shop", NULL, elsewhere, NULL);
    passes("shop", NULL, "shop@127.0.0.1", "shop@127.0.0.1");
    passes("shop", NULL, "shop", "shop");
    passes("shop", "box", "shop@example.com", "shop@example.com");
    passes("shop", "box", "other@example.com", NULL);
    passes("shop@box", "box", "shop@example.com", NULL);
    passes(NULL, "box", "shop@example.com", "shop@example.com");
}

static void nodes(void)
{
    allows(NULL, NULL, "shop", true);
    allows(NULL, NULL, "shop@localhost", true);
    allows(NULL, NULL, "shop@127.0.0.1", true);
    allows(NULL, NULL, "shop@192.0.2.1", false);
    allows(NULL, NULL, "shop@example.com", false);
    allows("shop", NULL, "shop@127.0.0.1", true);
    allows("shop", NULL, "shop@192.0.2.1", false);
    allows("shop", NULL, "other", false);
    allows("shop@example.com", NULL, "shop@example.com", true);
    allows("shop@example.com", NULL, "shop", false);
    allows(NULL, "shop*", "shop1", true);
    allows(NULL, "shop*", "shop1@localhost", true);
    allows(NULL, "shop*", "shop1@example.com", false);
    allows(NULL, "shop*", "myshop", false);
    allows(NULL, "*@app?", "shop@app1", false);
    allows(NULL, "*@app*", "shop@app1", true);
    allows(NULL, "*@app*", "shop@1app", false);
    allows(NULL, "shop*", "shop@x@example.com", false);
    allows(NULL, "*s*h*o*p*@*", "a_s_h_o_p_b@c", true);
    allows(NULL, "*s*h*o*p*@*", "a_s_h_o_b@c", false);
    allows("shop", "other", "shop", true);
    allows("shop", "other", "other", true);
    allows("shop", "other", "third", false);
}

/* ---- recordings ---- */

/* Checks which path the command gets for a recording, with the line `recording PATTERN`; NULL: it is refused. */
static void reads(const char *pattern, const char *path, const char *want)
{
    const struct node_opts node = NODE_OPTS_INIT;
    const char *got = NULL;
    struct mcp_rules rules;
    struct err e;

    mcp_rules_init(&rules, &node, NULL, &e);
    texts_add(&rules.recordings, pattern);
    const bool allowed = mcp_rules_recording(&rules, path, &rules.arena, &got, &e);
    ok(allowed == (want != NULL) && (!want || !strcmp(got, want)), "recording %s, %s: reads %s", pattern, path,
       want ? want : "nothing");
    mcp_rules_release(&rules);
}

/* Makes an empty file. */
static bool touch(const char *path)
{
    const int fd = open(path, O_CREAT | O_WRONLY | O_EXCL, 0600);

    return fd >= 0 && !close(fd);
}

/*
 * The tree: x.etr, inx.etr, in/y.etr, out/z.etr, and the links in/link.etr and in/away to x.etr and out. `in` is
 * allowed.
 */
static void recordings(void)
{
    char tree[] = "/tmp/etrace-rules-XXXXXX";

    ok(mkdtemp(tree) && !chdir(tree) && !mkdir("in", 0700) && !mkdir("out", 0700) && touch("x.etr") &&
           touch("inx.etr") && touch("in/y.etr") && touch("out/z.etr") && !symlink("../x.etr", "in/link.etr") &&
           !symlink("../out", "in/away") && !symlink("in", "current"),
       "a tree of recordings and links");
    char *real = realpath(".", NULL), y[300], z[300], absolute[300];
    snprintf(y, sizeof(y), "%s/in/y.etr", real);
    snprintf(z, sizeof(z), "%s/out/z.etr", real);
    snprintf(absolute, sizeof(absolute), "%s/in/*.etr", real);
    reads(absolute, "in/y.etr", y);
    reads(absolute, y, y);
    reads(absolute, "in/../in/./y.etr", y);
    reads(absolute, "in/../x.etr", NULL);
    reads(absolute, "inx.etr", NULL);
    reads(absolute, "in/link.etr", NULL);
    reads(absolute, "in/away/z.etr", NULL);
    reads(absolute, "in/none.etr", NULL);
    reads("in/*.etr", "in/y.etr", y);
    reads("in/y.etr", "in/y.etr", y);
    reads("in/y.etr", "out/z.etr", NULL);
    reads("in*", "in/y.etr", NULL);
    reads("*/y.etr", "in/y.etr", y);
    reads("*/x.etr", "in/../x.etr", NULL);
    reads("*/z.etr", "in/away/../y.etr", NULL);
    reads("current/*.etr", "in/y.etr", y);
    reads("in/away/*.etr", "out/z.etr", z);
    reads("out", "out/z.etr", NULL);
    reads("/*", y, NULL);
    unlink("current"), unlink("in/away"), unlink("in/link.etr");
    unlink("out/z.etr"), unlink("in/y.etr"), unlink("inx.etr"), unlink("x.etr");
    ok(!rmdir("out") && !rmdir("in") && !rmdir(tree), "nothing is left of the tree");
    free(real);
}

/* ---- answers ---- */

#define AROUND 200

/* Adds a line with a text of `len` bytes. Many of them need escapes in JSON, and longer ones in JSON in JSON. */
static void add_row(struct mcp_answer *x, const char *type, size_t len)
{
    struct buf line = {0};
    static const char alphabet[] = "a\"\\\n\x01\xc3\xa5";

    json_begin_record(&line, type);
    char *text = mem_alloc(len + 1);
    for (size_t i = 0; i < len; i++)
        text[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
    json_put_string(&line, "text", raw_bytes(text, len));
    json_put_text(&line, "node", "a@b");
    json_end_record(&line);
    const size_t half = line.len / 2; /* output arrives in pieces */
    mcp_answer_output(x, (struct str){line.data, half});
    mcp_answer_output(x, (struct str){line.data + half, line.len - half});
    free(text);
    buf_release(&line);
}

static int64_t number_in(const struct json *object, const char *key)
{
    const struct json *n = json_member(object, key);
    int64_t value = 0;

    return n && json_integer(n, &value) ? value : 0;
}

/* Returns true if the answer fits, is JSON inside of JSON, and accounts for all rows; the summary is never left out. */
static bool answers(struct mcp_answer *x, size_t n)
{
    struct arena a;
    struct buf to = {0}, object = {0};
    struct json *result, *text;
    struct err e;
    size_t rows = 0;
    bool summary = false;

    arena_init(&a);
    mcp_answer_put(x, rand() % 2 ? "failed: \"\\\n" : NULL, NULL, AROUND, &to);
    bool good = to.len + AROUND <= MCP_ANSWER_MOST;
    buf_char(&object, '{');
    buf_str(&object, buf_view(&to));
    buf_char(&object, '}');
    good = good && json_read(buf_view(&object), &a, &result, &e) && json_member(result, "content") &&
           json_read(raw_view(json_member(json_member(result, "content")->first, "text")->text), &a, &text, &e);
    for (const struct json *row = good ? json_member(text, "rows")->first : NULL; row; row = row->next) {
        const char *type = json_text_of(json_member(row, "type"));
        summary = type && !strcmp(type, "summary");
        rows++;
    }
    good = good && summary && rows + (size_t)number_in(text, "rows_left_out") == n;
    buf_release(&to);
    buf_release(&object);
    arena_release(&a);
    return good;
}

static void lengths(void)
{
    const struct mcp_tool *trace = mcp_tool_find(raw_of(STR("trace")));
    size_t wrong = 0;

    srand(1);
    for (size_t round = 0; round < 400; round++) {
        struct mcp_answer x;
        const bool wide = round % 10 == 0;
        const size_t n = (size_t)rand() % (wide ? 20 : 300), most = 1 + (size_t)rand() % (wide ? 40000 : 400);
        mcp_answer_init(&x, trace);
        for (size_t i = 0; i < n; i++)
            add_row(&x, "call", (size_t)rand() % most);
        add_row(&x, "summary", 100);
        mcp_answer_message(&x, STR("etrace: \"a\"\nhint: \\\n"));
        mcp_answer_end(&x);
        wrong += !answers(&x, n + 1);
        mcp_answer_release(&x);
    }
    is_number((int64_t)wrong, 0, "400 answers fit, are JSON inside of JSON, and account for their rows");
}

static void lines(void)
{
    const struct mcp_tool *trace = mcp_tool_find(raw_of(STR("trace")));
    struct mcp_answer x;
    struct buf to = {0};

    mcp_answer_init(&x, trace);
    mcp_answer_output(&x, STR("{\"v\":1,\"type\":\"call\",\"mono_ns\":-5,\"node\":\"a@b\",\"a\":[1,\"\\u202e\"]}\n"
                              "no JSON\n[1]\n\n{\"type\":\"x\",\"node\":\"c@d\"}"));
    mcp_answer_end(&x);
    mcp_answer_put(&x, NULL, NULL, AROUND, &to);
    const char *rows = strstr(buf_cstr(&to), "rows");
    is_text(rows ? rows : "",
            "rows\\\":[\\n{\\\"type\\\":\\\"call\\\",\\\"a\\\":[1,\\\"\\\\u202e\\\"]},\\n\\\"no "
            "JSON\\\",\\n\\\"[1]\\\",\\n"
            "{\\\"type\\\":\\\"x\\\",\\\"node\\\":\\\"c@d\\\"}]}\"}],\"isError\":false",
            "rows are lean, and lines that are no objects become strings");
    mcp_answer_release(&x);
    buf_release(&to);
}

int main(void)
{
    unsetenv("ETRACE_NODE");
    unsetenv("RELEASE_NODE");
    nodes();
    full_names();
    recordings();
    lengths();
    lines();
    return tap_end();
}
