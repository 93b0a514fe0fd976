/* SPDX-License-Identifier: Apache-2.0 */
#include "together.h"

#include <string.h>

#include "../ground/buf.h"
#include "../ground/macros.h"

#define BIT(fact) (UINT64_C(1) << FACT_##fact)

static const char one_view[] = "standard output shows one view: --as, --json and -c cannot be combined";

/* The first row that applies is reported. */
const struct together together_rows[] = {
    {BIT(INVERT), BIT(GREP), "-v inverts --grep, but no --grep is given", "-v -g REGEX"},
    {BIT(APPEND), BIT(OUTPUT), "-a appends to the files of -o, but no -o is given", NULL},
    {BIT(AS) | BIT(JSON), 0, one_view, NULL},
    {BIT(AS) | BIT(SUMMARY), 0, one_view, NULL},
    {BIT(JSON) | BIT(SUMMARY), 0, one_view, NULL},
    {BIT(BROWSE) | BIT(OTHER_VIEW), 0, "--browse shows events in a list, so it cannot be combined with {1}",
     "-o FILE has any other view of the same trace"},
    {BIT(BROWSE) | BIT(COMMAND), 0, "--browse cannot be combined with -- COMMAND, which uses the terminal itself",
     NULL},
    {BIT(BROWSE) | BIT(RECORDER), 0,
     "--browse cannot be combined with --ring and --snapshot-when; etrace browse shows their recordings", NULL},
    {BIT(TABLE), BIT(COUNTS), "--as {0} shows what 'by' counts, but no expression has 'by'",
     "add it to the expression, as in 'shop:_ by mfa: count', or count all events with --by"},
    {BIT(FIELDS), BIT(FIELDS_VIEW), "--fields only works with the views text, csv and tsv",
     "add --as csv, or -o FILE.csv"},
    {BIT(FORMAT) | BIT(PAIRS), BIT(FORMAT_VIEW), "--format is for the lines of events, not of {1}s", NULL},
    {BIT(FORMAT), BIT(FORMAT_VIEW), "--format only works with the view text", NULL},
    {BIT(SORT), BIT(SORT_VIEW), "--sort only works with tables: -c, 'by', and the views of requests",
     "-c is a table of functions; each line of --json is one event, for jq or sort"},
    {BIT(SELECT) | BIT(PAIRS), 0, "{0} selects single events, but {a1} has several",
     "the command's own options select processes; each line of --json is one {1}, for jq or grep"},
    {BIT(BY) | BIT(PAIRS), 0, "--by counts events, but a view of {1}s is chosen", "--as table counts events"},

    {BIT(SAMPLE) | BIT(EXPRESSIONS), BIT(INSIDE), "--sample needs a probe with inside",
     "it shows one of N roots; --rate shows at most N events a second"},
    {BIT(INHERIT) | BIT(INSIDE), 0, "processes cannot inherit flags, nor be silent, with inside",
     "the calls of roots set the flags of processes"},
    {BIT(KEYS) | BIT(EXPRESSIONS), BIT(COUNTS), "--keys needs a probe with by", "as in mod:fun(K) by K: count"},

    {BIT(SNAPSHOTS), BIT(RECORDER), "{0} needs --ring or --snapshot-when", NULL},
    {BIT(NUMBERED), BIT(RECORDER), "-o {0} needs --ring or --snapshot-when", "%n is the number of a snapshot"},
    {BIT(WITHIN), BIT(WHEN),
     "--snapshot-within needs --snapshot-when with a condition on figures, such as 'count > 100'", NULL},
    {BIT(WITHIN) | BIT(WHEN), BIT(ROW_WHEN),
     "--snapshot-within is for conditions on figures, such as --snapshot-when 'count > 100'", NULL},
    {BIT(RECORDER) | BIT(LIMIT), 0, "{0} and --limit cannot be combined: the node keeps the last events, not the first",
     "--for ends the recording after a time"},
    {BIT(NODE_RECORDER) | BIT(DECIDES), 0, "a recorder on the node does not go with a root whose result decides",
     "leave out the root's condition on its result, and filter when you read the events: --where"},
    {BIT(COOKIE_INPUT) | BIT(THEN_TRACE), 0,
     "--then 'trace ...' needs a cookie that it can read again, not --cookie-file -", NULL},

    {BIT(COOKIE_INPUT) | BIT(FILE_INPUT), 0, "--cookie-file - and --file - both read standard input: use only one",
     NULL},
    {BIT(COMMAND) | BIT(NODE), 0,
     "etrace finds the node of a command itself: -n, -p, --port, --cookie-file, --cluster and --reattach are not "
     "allowed",
     NULL},
};
const size_t together_count = ARRAY_LEN(together_rows);

/* Returns the text of the fact in `has` that has this index, in the order of enum fact. */
static const char *together_text(uint64_t has, unsigned index, const char *const *texts)
{
    for (; index; index--)
        has &= has - 1;
    return texts[__builtin_ctzll(has)];
}

/* Appends a message of a row, with its texts. */
static void together_put(const struct together *row, const char *message, const char *const *texts, struct buf *b)
{
    for (const char *at = message; *at;) {
        const size_t plain = strcspn(at, "{");
        buf_str(b, (struct str){at, plain});
        at += plain;
        if (!*at++)
            break;
        const bool article = *at == 'a';
        at += article;
        const char *text = together_text(row->has, (unsigned)(*at - '0'), texts);
        buf_puts(b, !article ? "" : strchr("aeiou", *text) ? "an " : "a ");
        buf_puts(b, text);
        at += 2;
    }
}

bool together_check(const struct known *facts, size_t n, struct err *e)
{
    const char *texts[FACTS] = {NULL};
    uint64_t known = 0, there = 0;
    size_t i = 0;

    for (; i < n; i++) {
        known |= UINT64_C(1) << facts[i].fact;
        there |= facts[i].there ? UINT64_C(1) << facts[i].fact : 0;
        texts[facts[i].fact] = facts[i].text;
    }
    for (i = 0; i < together_count; i++) {
        const struct together *row = &together_rows[i];
        struct buf why = {0}, instead = {0};
        if ((row->has & ~there) || (row->lacks & (there | ~known)))
            continue;
        together_put(row, row->why, texts, &why);
        together_put(row, row->instead ? row->instead : "", texts, &instead);
        err_set(e, ERR_USAGE, "%s", buf_cstr(&why));
        if (instead.len)
            err_hint(e, "%s", buf_cstr(&instead));
        buf_release(&why);
        buf_release(&instead);
        return false;
    }
    return true;
}
