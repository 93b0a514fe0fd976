/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks the table of what does not go together: each row can fire, needs every fact that it names, and waits until the
 * caller knows all of them. Checks the messages that have texts of facts.
 */
#include "trace/together.h"

#include <stdio.h>
#include <string.h>

#include "tap.h"

/* Checks the facts whose bits are in `known`; the facts in `there` are there. Each fact has the text "exit". */
static bool check_facts(uint64_t known, uint64_t there, struct err *e)
{
    struct known facts[FACTS];
    size_t n = 0;

    for (unsigned i = 0; i < FACTS; i++)
        if (known >> i & 1)
            facts[n++] = (struct known){.fact = i, .there = there >> i & 1, .text = "exit"};
    *e = (struct err){0};
    return together_check(facts, n, e);
}

/* Returns true if the error is that of the row, as far as the text of the row goes until its first fact. */
static bool is_of_row(const struct err *e, const struct together *row)
{
    const size_t fixed = strcspn(row->why, "{");
    const char *rest = strchr(row->why, '}');

    return e->status == ERR_USAGE && !strncmp(e->text, row->why, fixed) &&
           (!rest || strstr(e->text, "exit") == e->text + fixed + (row->why[fixed + 1] == 'a' ? 3 : 0)) &&
           !e->hint[0] == !row->instead;
}

static void test_row(const struct together *row)
{
    const uint64_t all = (UINT64_C(1) << FACTS) - 1;
    bool fires, needs = true;
    struct err e;

    fires = !check_facts(all, row->has, &e) && is_of_row(&e, row);
    for (unsigned i = 0; i < FACTS; i++) {
        const uint64_t fact = UINT64_C(1) << i;
        if (row->has & fact)
            needs = needs && (check_facts(all, row->has & ~fact, &e) || !is_of_row(&e, row));
        if (row->lacks & fact)
            needs = needs && (check_facts(all, row->has | fact, &e) || !is_of_row(&e, row));
        if ((row->has | row->lacks) & fact)
            needs = needs && (check_facts(all & ~fact, row->has & ~fact, &e) || !is_of_row(&e, row));
    }
    ok(fires, "a row fires: %s", row->why);
    ok(needs, "only with all its facts: %s", row->why);
}

static void test_messages(void)
{
    struct err e;

    ok(TOGETHER(&e, KNOWN(FORMAT, true), KNOWN(FORMAT_VIEW, true), KNOWN(FIELDS, true)),
       "facts that go together, or are not known yet, pass");
    TOGETHER(&e, KNOWN_TEXT(PAIRS, "exit"), KNOWN_TEXT(SELECT, "-g"));
    is_text(e.text, "-g selects single events, but an exit has several", "a text with the article an");
    is_text(e.hint, "the command's own options select processes; each line of --json is one exit, for jq or grep",
            "the hint has the same text");
    TOGETHER(&e, KNOWN_TEXT(PAIRS, "request"), KNOWN_TEXT(SELECT, "-e"));
    is_text(e.text, "-e selects single events, but a request has several", "a text with the article a");
}

int main(void)
{
    uint64_t used = 0;

    for (size_t i = 0; i < together_count; i++) {
        test_row(&together_rows[i]);
        used |= together_rows[i].has | together_rows[i].lacks;
    }
    ok(used == (UINT64_C(1) << FACTS) - 1, "each fact is in a row");
    test_messages();
    return tap_end();
}
