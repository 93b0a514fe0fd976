/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses options from tables of rows. The help, the shell completion and the test of the manual read the same rows. A
 * command names its groups, and the struct that the parser fills for each. This file does not know the meaning of any
 * option.
 */
#ifndef ETRACE_OPTS_H
#define ETRACE_OPTS_H

#include "../ground/err.h"
#include "../ground/texts.h"
#include "../views/grid_order.h"

enum opt_type {
    OPT_FLAG,     /* a bool, set to true */
    OPT_OFF,      /* a bool, set to false: --no-redact */
    OPT_COUNT,    /* an int, incremented for each occurrence */
    OPT_TEXT,     /* a const char * */
    OPT_TEXTS,    /* a struct texts; the option may be repeated */
    OPT_SET,      /* like OPT_TEXTS, but drops duplicates */
    OPT_NUMBER,   /* an int64_t, not negative; the help says what 0 means */
    OPT_POSITIVE, /* an int64_t, at least 1 */
    OPT_DURATION, /* an int64_t in nanoseconds: 5s, 300ms, 2m, 1h; a number without a unit is in seconds */
    OPT_SIZE,     /* an int64_t in bytes: 512, 4k, 1MB */
    OPT_PERCENT,  /* an int64_t in hundredths of a percent, from 1 to 10000: 5, 5%, 0.5% */
    OPT_FRACTION, /* an int64_t N, written as 1/N; at least 1 */
    OPT_CHOICE,   /* an int: the index of the word in `arg`, which lists the words as "a|b|c" */
    OPT_CHOSEN,   /* an int, set to `chosen`: --utc is short for --time utc. The last one given counts */
};

struct opt {
    char letter; /* the short name; 0: none */
    const char *name;
    const char *arg; /* the name of the value in the help; NULL: the option takes no value */
    enum opt_type type;
    size_t offset; /* offset of the field in the group's struct */
    const char *help;
    const struct grid_table *table; /* --sort: the table that has the column; NULL: unknown, or another option */
    int chosen;                     /* OPT_CHOSEN: the index of the word in the option that this one is short for */
};

/* clang-format off */
/* The option --sort of a command whose columns are known. `usual` says what the order is without it. */
#define OPT_SORT(opts, field, usual, table) {0, "sort", "COLUMN", OPT_TEXT, offsetof(opts, field), \
    "sort the rows by this column, or by COLUMN:asc or COLUMN:desc (default " usual ")", table, 0}
#define OPT_ROW(opts, letter, name, arg, type, field, help) \
    {letter, name, arg, type, offsetof(opts, field), help, NULL, 0}
#define OPT_SHORT(opts, name, field, chosen, help) \
    {0, name, NULL, OPT_CHOSEN, offsetof(opts, field), help, NULL, chosen}
/* clang-format on */

struct opt_group {
    const char *title;
    const struct opt *rows;
    size_t count;
};

struct opt_use {
    const struct opt_group *group;
    void *target;
};

/*
 * Parses argv into the structs of `uses`. Collects the words that are not options in *ret_words; the arrow of an
 * expression counts as a word. Sets *ret_rest to the part of argv after a lone `--`, or to NULL if there is none.
 * Values point into argv.
 */
bool opts_parse(const struct opt_use *uses, size_t nuses, char **argv, struct texts *ret_words, char ***ret_rest,
                struct err *e);

/*
 * Finds the option in an argument that takes a value: --name, --name=VALUE, -n, -nVALUE, or -qn with other letters
 * before it. Returns NULL if there is none. Sets *ret_value to the value in the argument, or to NULL if the next
 * argument is the value. Does not use the targets.
 */
const struct opt *opts_with_value(const struct opt_use *uses, size_t n, const char *argument, const char **ret_value);

/* Frees the arrays that OPT_TEXTS and OPT_SET options have filled. */
void opts_release(const struct opt_use *uses, size_t n);

/* Sets *ret to the index of `text` in `words`, which has the form "a|b|c". Returns false if it is not in there. */
bool opt_choice(const char *words, const char *text, int *ret);
bool opt_duration(const char *text, int64_t *ret_ns);
bool opt_size(const char *text, int64_t *ret_bytes);
bool opt_percent(const char *text, int64_t *ret_hundredths);

#endif
