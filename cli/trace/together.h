/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says what does not go together: options, expressions, views and the way of recording. together.c has the table, with
 * the reason and what to use instead. Rules about a single option, or about the text of an expression, are elsewhere.
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
    FACT_AS,
    FACT_JSON,
    FACT_SUMMARY, /* -c */
    FACT_BROWSE,
    FACT_OTHER_VIEW, /* an option that a list of events cannot have; text: the option */
    FACT_TABLE,      /* --as names a view of the tables of `by`; text: the name of the view */
    FACT_SELECT,     /* a filter of single events is given; text: its option */
    FACT_BY,         /* --by */
    FACT_FIELDS,
    FACT_FORMAT,
    FACT_FIELDS_VIEW, /* a view that reads --fields */
    FACT_FORMAT_VIEW, /* a view that reads --format */
    FACT_SORT,        /* --sort */
    FACT_SORT_VIEW,   /* a view that reads --sort */
    FACT_PAIRS,       /* a view whose items are made of several events; text: the name of an item */
    /* The traced events. */
    FACT_EXPRESSIONS, /* there is at least one expression */
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

/* One fact, as the caller knows it. */
struct known {
    enum fact fact;
    bool there;
    const char *text; /* the text of the fact, which messages may contain */
};
#define KNOWN(name, there)                                                                                             \
    {                                                                                                                  \
        FACT_##name, there, NULL                                                                                       \
    }
#define KNOWN_TEXT(name, text)                                                                                         \
    {                                                                                                                  \
        FACT_##name, (text) != NULL, text                                                                              \
    } /* a fact that has a text; if the text is NULL, the fact does not hold */

struct together {
    uint64_t has, lacks; /* the row applies if all facts of `has` hold, and none of `lacks` */
    /*
     * In both texts, {0} stands for the text of the first fact in `has`, {1} for the text of the second one, and {a1}
     * for that text with its article.
     */
    const char *why, *instead; /* instead: may be NULL */
};

extern const struct together together_rows[];
extern const size_t together_count;

/*
 * Returns false, with an error, if the facts do not go together. A row that needs other facts than these `n` does not
 * apply, so callers can check each rule as soon as they know its facts.
 */
bool together_check(const struct known *facts, size_t n, struct err *e);
#define TOGETHER(e, ...)                                                                                               \
    together_check((const struct known[]){__VA_ARGS__},                                                                \
                   sizeof((const struct known[]){__VA_ARGS__}) / sizeof(struct known), e)

#endif
