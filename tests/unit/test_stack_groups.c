/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the groups of stacks at their limit, those of a node that is dropped, and how processes get their names. */
#include "commands/stack_groups.h"

#include "erlang/etf_write.h"
#include "tap.h"

#define FUNCTIONS 400u

static struct look_funs funs;
static struct stack_groups groups;

static void put_bin(struct buf *b, const char *text)
{
    etf_bin(b, text, strlen(text));
}

/* Appends a group of one process with the stack [a, b] of two functions. */
static void put_group(struct buf *b, unsigned first, unsigned second, const char *pid)
{
    etf_tuple(b, 7);
    etf_atomz(b, "waiting");
    etf_list(b, 2);
    etf_int(b, first);
    etf_int(b, second);
    etf_nil(b);
    etf_int(b, -1);
    etf_atomz(b, "false");
    etf_int(b, 1);
    etf_list(b, 1);
    put_bin(b, pid);
    etf_nil(b);
    etf_int(b, 0);
}

/* Adds stacks of the functions from `first` to before `end`, each with each of all functions. */
static void add(unsigned node, unsigned first, unsigned end)
{
    struct look_answer a = {0};
    struct buf functions = {0}, stacks = {0};
    struct err e;

    etf_list(&functions, FUNCTIONS);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        char name[20];
        snprintf(name, sizeof(name), "f%u", i);
        etf_tuple(&functions, 3);
        put_bin(&functions, "shop");
        put_bin(&functions, name);
        etf_int(&functions, 0);
    }
    etf_nil(&functions);
    etf_list(&stacks, (size_t)(end - first) * FUNCTIONS);
    for (unsigned i = first; i < end; i++)
        for (unsigned k = 0; k < FUNCTIONS; k++) {
            char pid[20];
            snprintf(pid, sizeof(pid), "<0.%u.%u>", i, k);
            put_group(&stacks, i, k, pid);
        }
    etf_nil(&stacks);
    etf_open(&a.functions, functions.data, functions.len);
    etf_open(&a.stacks, stacks.data, stacks.len);
    if (!stack_groups_add(&groups, node, &a, 0, &funs.erlang, &e))
        ok(false, "%s", e.text);
    buf_release(&functions);
    buf_release(&stacks);
}

static void full(void)
{
    for (unsigned i = 0; i < GROUPS_MAX / FUNCTIONS; i += 50) /* one answer may have a million terms */
        add(0, i, i + 50);
    ok(groups.count == GROUPS_MAX && !groups.left_out, "the groups are full");
    add(0, 0, 1);
    ok(groups.items[0].looks == 2 && !groups.left_out, "a known stack is counted although the groups are full");
    add(0, GROUPS_MAX / FUNCTIONS, GROUPS_MAX / FUNCTIONS + 1);
    ok(groups.count == GROUPS_MAX && groups.left_out == FUNCTIONS && groups.nstacks == GROUPS_MAX,
       "a new stack is left out and counted as such");
    ok(groups.looks == GROUPS_MAX + 2 * FUNCTIONS, "all looks");
}

static void names(void)
{
    static const struct look_process given[] = {{"<0.0.1>", "one"}, {"<0.0.2>", "two"}, {"<0.9.9>", "other"}};
    struct buf b = {0};
    struct etf r;

    add(0, 0, 1);
    add(1, 0, 1);
    etf_list(&b, ARRAY_LEN(given));
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        etf_tuple(&b, 2);
        put_bin(&b, given[i].pid);
        put_bin(&b, given[i].name);
    }
    etf_nil(&b);
    etf_open(&r, b.data, b.len);
    ok(stack_groups_named(&groups, 1, r), "names are read");
    unsigned named = 0;
    for (size_t i = 0; i < groups.count; i++)
        named += groups.items[i].processes[0].name[0] != 0;
    ok(named == 2, "two processes have got a name");
    is_text(groups.items[FUNCTIONS + 1].processes[0].name, "one", "the first one of this node");
    is_text(groups.items[FUNCTIONS + 2].processes[0].name, "two", "the second one of this node");
    buf_release(&b);
}

static void drop(void)
{
    for (unsigned i = 0; i < GROUPS_MAX / FUNCTIONS; i += 50)
        add(i % 100 ? 1 : 2, i, i + 50);
    add(1, 0, 1);
    add(2, 0, 3);
    add(2, 50, 52);
    stack_groups_drop(&groups, 1, FUNCTIONS);
    ok(groups.count == 60000 && groups.nstacks == 60000, "the groups of the other node are left");
    ok(groups.left_out == 2 * FUNCTIONS && groups.looks == 60000 + 5 * FUNCTIONS, "and their looks");
    unsigned others = 0;
    for (size_t i = 0; i < groups.count; i++)
        others += groups.stacks[groups.items[i].stack].node != 2 || groups.items[i].nprocesses != 1;
    ok(!others, "with their processes");
    add(2, 0, 1);
    ok(groups.count == 60000, "a known stack is found again");
    add(1, 0, 1);
    ok(groups.count == 60000 + FUNCTIONS, "the dropped node can have groups again");
}

static void clear(void)
{
    stack_groups_release(&groups);
    groups = (struct stack_groups){0};
}

int main(void)
{
    look_funs_init(&funs);
    full();
    clear();
    drop();
    clear();
    names();
    stack_groups_release(&groups);
    look_funs_release(&funs);
    return tap_end();
}
