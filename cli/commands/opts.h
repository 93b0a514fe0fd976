/*
 * Options as rows. Parsing, help, completion and the manual's lint read the same rows; a command names the groups it
 * takes and the struct each group fills. Nothing here knows what an option means.
 */
#ifndef ETRACE_OPTS_H
#define ETRACE_OPTS_H

#include "../ground/err.h"

enum opt_type {
    OPT_FLAG,     /* bool */
    OPT_OFF,      /* bool, cleared: --no-redact */
    OPT_COUNT,    /* int, one more each time */
    OPT_TEXT,     /* const char * */
    OPT_TEXTS,    /* struct texts, repeatable */
    OPT_SET,      /* the same, each text once */
    OPT_NUMBER,   /* int64_t, not negative */
    OPT_DURATION, /* int64_t nanoseconds: 5s, 300ms, 2m, 1h; a bare number is seconds */
    OPT_SIZE,     /* int64_t bytes: 512, 4k, 1MB */
    OPT_CHOICE,   /* int: the index of the word in arg, which is "a|b|c" */
};

struct texts {
    const char **items;
    size_t count, cap;
    size_t nfiles; /* of expressions: the last so many are the texts of files (asked_texts) */
};

struct opt {
    char letter; /* 0: none */
    const char *name;
    const char *arg; /* what help calls the value; NULL for flags */
    enum opt_type type;
    size_t offset; /* in the group's struct */
    const char *help;
};

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
 * Fills the targets and collects what is no option in *ret_words; what follows a lone `--` goes to *ret_rest (argv's
 * own memory, NULL-terminated; NULL when there was none). Values point into argv.
 */
bool opts_parse(const struct opt_use *uses, size_t nuses, char **argv, struct texts *ret_words, char ***ret_rest,
                struct err *e);

/* Frees what rows of OPT_TEXTS and OPT_SET have collected. */
void opts_release(const struct opt_use *uses, size_t n);

bool opt_duration(const char *text, int64_t *ret_ns);
bool opt_size(const char *text, int64_t *ret_bytes);

void texts_add(struct texts *t, const char *text);
void texts_release(struct texts *t);

#endif
