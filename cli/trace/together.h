/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says what does not go together: options, expressions, views and the way of recording. together.c has the table, with
 * the reason and what to use instead. The table does not have what depends on one option alone, and what depends on
 * the text of an expression.
 */
#ifndef ETRACE_TOGETHER_H
#define ETRACE_TOGETHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../ground/err.h"

enum fact {
    /* Views, and how they look. */
    FACT_INVERT, /* -v */
    FACT_GREP,   /* -g */
    FACT_APPEND, /* -a */
    FACT_OUTPUT, /* -o */
    FACT_UTC,
    FACT_RELATIVE,
    FACT_DELTA,
    FACT_AS,
    FACT_JSON,
    FACT_SUMMARY, /* -c */
    FACT_ELIXIR,
    FACT_TERMS,
    FACT_TABLE,  /* --as names a view of what `by` counts; text: its name */
    FACT_SELECT, /* a filter of single events; text: its option */
    FACT_BY,     /* --by */
    FACT_FIELDS,
    FACT_FORMAT,
    FACT_FIELDS_VIEW, /* a view that reads --fields */
    FACT_FORMAT_VIEW, /* a view that reads --format */
    FACT_PAIRS,       /* a view of what several events make together; text: the name of one item */
    /* The traced events. */
    FACT_EXPRESSIONS, /* at least one */
    FACT_COUNTS,      /* something counts by keys */
    FACT_INSIDE,      /* a probe has `inside` */
    FACT_DECIDES,     /* a root has a condition on its result */
    FACT_KEYS,
    FACT_SAMPLE,
    FACT_INHERIT, /* an option by which processes inherit flags or are silent */
    /* The flight recorder. */
    FACT_RECORDER,      /* text: the option */
    FACT_NODE_RECORDER, /* the nodes record */
    FACT_LIMIT,         /* --limit */
    FACT_WHEN,          /* --snapshot-when */
    FACT_ROW_WHEN,      /* --snapshot-when is about figures of keys */
    FACT_WITHIN,        /* --snapshot-within */
    FACT_SNAPSHOTS,     /* another option of snapshots; text: its name */
    FACT_NUMBERED,      /* an output with %n; text: its name */
    FACT_THEN_TRACE,    /* --then 'trace ...' */
    /* Nodes. */
    FACT_COOKIE_INPUT, /* --cookie-file - */
    FACT_FILE_INPUT,   /* --file - */
    FACT_COMMAND,      /* -- COMMAND */
    FACT_NODE,         /* an option that says where the node is */
    FACTS
};

/* The knowledge of a caller about one fact. */
struct known {
    enum fact fact;
    bool there;
    const char *text; /* for messages */
};
#define KNOWN(name, there)                                                                                             \
    {                                                                                                                  \
        FACT_##name, there, NULL                                                                                       \
    }
#define KNOWN_TEXT(name, text)                                                                                         \
    {                                                                                                                  \
        FACT_##name, (text) != NULL, text                                                                              \
    } /* a fact with a text; NULL: it is not there */

struct together {
    uint64_t has, lacks; /* the row applies if all of `has` are there, and none of `lacks` */
    /* {0}: the text of the first fact of `has`, {1}: of the second one; {a1}: with the article. */
    const char *why, *instead; /* instead: may be NULL */
};

extern const struct together together_rows[];
extern const size_t together_count;

/*
 * Returns false, with an error, if the facts do not go together. Rows with facts that are not among the `n` do not
 * apply: callers check as soon as they know enough.
 */
bool together_check(const struct known *facts, size_t n, struct err *e);
#define TOGETHER(e, ...)                                                                                               \
    together_check((const struct known[]){__VA_ARGS__},                                                                \
                   sizeof((const struct known[]){__VA_ARGS__}) / sizeof(struct known), e)

#endif
