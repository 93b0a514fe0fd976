/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses options, which are rows. Help, completion and the check of the manual read the same rows. A command names the
 * groups that it takes and the struct that each group fills. This file does not know what an option means.
 */
#ifndef ETRACE_OPTS_H
#define ETRACE_OPTS_H

#include "../ground/err.h"
#include "../ground/texts.h"

enum opt_type {
    OPT_FLAG,     /* bool */
    OPT_OFF,      /* bool, set to false: --no-redact */
    OPT_COUNT,    /* int, incremented each time */
    OPT_TEXT,     /* const char * */
    OPT_TEXTS,    /* struct texts, repeatable */
    OPT_SET,      /* like OPT_TEXTS, without duplicates */
    OPT_NUMBER,   /* int64_t, not negative */
    OPT_DURATION, /* int64_t nanoseconds: 5s, 300ms, 2m, 1h; a number without a unit is seconds */
    OPT_SIZE,     /* int64_t bytes: 512, 4k, 1MB */
    OPT_PERCENT,  /* int64_t hundredths of a percent, 1 to 10000: 5, 5%, 0.5% */
    OPT_FRACTION, /* int64_t N of 1/N, at least 1 */
    OPT_CHOICE,   /* int: index of the word in arg, which is "a|b|c" */
};

struct opt {
    char letter; /* 0: none */
    const char *name;
    const char *arg; /* name of the value in help; NULL for flags */
    enum opt_type type;
    size_t offset; /* offset of the field in the group's struct */
    const char *help;
};

/* clang-format off */
#define OPT_ROW(opts, letter, name, arg, type, field, help) {letter, name, arg, type, offsetof(opts, field), help}
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
 * Fills the targets, and collects the words that are no options in *ret_words; the arrow of an expression is a word.
 * *ret_rest points to the words after a lone `--` (in argv, NULL-terminated); NULL: there is no `--`. Values point into
 * argv.
 */
bool opts_parse(const struct opt_use *uses, size_t nuses, char **argv, struct texts *ret_words, char ***ret_rest,
                struct err *e);

/* Frees the arrays of OPT_TEXTS and OPT_SET rows. */
void opts_release(const struct opt_use *uses, size_t n);

/* Finds a word in "a|b|c" and sets *ret to its index. */
bool opt_choice(const char *words, const char *text, int *ret);
bool opt_duration(const char *text, int64_t *ret_ns);
bool opt_size(const char *text, int64_t *ret_bytes);
bool opt_percent(const char *text, int64_t *ret_hundredths);

#endif
