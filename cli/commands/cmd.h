/*
 * Commands as rows: one command a file (cmd_*.c), all of them listed in cmd.c. Help reads the same rows.
 * A command gets the words behind its name and returns the exit status of the program.
 */
#ifndef ETRACE_CMD_H
#define ETRACE_CMD_H

#include "ctx.h"
#include "opts.h"

struct cmd {
    const char *name;
    const char *usage;   /* behind the name */
    const char *summary; /* one line */
    const char *about;   /* some lines for its own help, or NULL */
    int (*run)(struct ctx *ctx, const struct cmd *self, char **argv);
    const struct opt_group *const *groups; /* NULL-terminated */
};

extern const struct cmd cmd_completion, cmd_demo, cmd_doctor, cmd_explain, cmd_help, cmd_info, cmd_ls, cmd_nodes, cmd_recipes, cmd_replay,
    cmd_schema, cmd_sessions, cmd_top, cmd_trace, cmd_version;
extern const struct cmd cmd_complete; /* asked by the completion scripts; in no list */

void cmd_add(const struct cmd *c); /* one that stands above this floor: a face; once */
const struct cmd *cmd_find(const char *name);
const struct cmd *const *cmd_all(void); /* NULL-terminated */

/* Parses argv by the groups; with --help says it and returns false with *ret_status 0, on errors with status 2. */
bool cmd_options(struct ctx *ctx, const struct cmd *self, const struct opt_use *uses, size_t nuses, char **argv,
                 struct texts *ret_words, char ***ret_rest, int *ret_status);

/* Of a command that takes none: says the first of them and sets *ret_status. True: there are none. The hint may be NULL. */
bool cmd_no_words(struct ctx *ctx, const struct cmd *self, const struct texts *words, const char *hint, int *ret_status);

void cmd_print_help(struct buf *b, const struct cmd *c);

#endif
