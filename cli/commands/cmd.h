/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the table of commands. Each command is a row in a file of its own (cmd_*.c); cmds.def lists them. Help and
 * completion read the same rows. A command gets the words after its name and returns the exit status of the program.
 */
#ifndef ETRACE_CMD_H
#define ETRACE_CMD_H

#include "../trace/ctx.h"
#include "groups.h"

struct cmd {
    const char *name;
    const char *usage;   /* what follows the name */
    const char *summary; /* one line */
    const char *about;   /* further lines for `etrace help COMMAND`, or NULL */
    bool aside;          /* `etrace help` only names the command */
    /* The long names of the options that its help shows without --all, each with blanks around it; NULL: all. */
    const char *often;
    int (*run)(struct ctx *ctx, const struct cmd *self, char **argv);
    const struct opt_group *const *groups; /* NULL-terminated */
};

#define COMMAND(name) extern const struct cmd cmd_##name;
#include "cmds.def"
#undef COMMAND
extern const struct cmd cmd_complete; /* called by the completion scripts; not in the list */

void cmd_add(const struct cmd *c); /* adds a command of the floor above (faces/); call it once */
const struct cmd *cmd_find(const char *name);
const struct cmd *const *cmd_all(void); /* NULL-terminated */

/* Returns the option of the command with the letter, or with the name if `letter` is 0; NULL: no such option. */
const struct opt *cmd_find_option(const struct cmd *c, const char *name, size_t len, char letter);

bool cmd_takes_expressions(const struct cmd *c); /* returns true if the command takes expressions or selectors */

/* Returns the first argument that is neither an option nor the value of an option; NULL: none before `--`. */
char **cmd_first_word(char **argv);

/*
 * Parses argv by the groups, and starts the demo node if the options name it. Returns false if the command must not
 * run: *ret_status is then 0 after --help, 2 after a mistake.
 */
bool cmd_options(struct ctx *ctx, const struct cmd *self, const struct opt_use *uses, size_t nuses, char **argv,
                 struct texts *ret_words, char ***ret_rest, int *ret_status);

/* Returns true if there are no words. Otherwise rejects the first one and sets *ret_status. The hint may be NULL. */
bool cmd_no_words(struct ctx *ctx, const struct cmd *self, const struct texts *words, const char *hint,
                  int *ret_status);

/* Sets the format of a table for --json. Returns false, with an error, if --as contradicts it. */
bool cmd_format(bool json, int *as, struct err *e);

/* Appends the help of the command. Unless `all`, it may leave out options, and says so. */
void cmd_print_help(struct buf *b, const struct cmd *c, bool all);
/* Appends `left` and, from this column on, the text in lines of at most 80 columns. */
void help_row(struct buf *b, const char *left, const char *text, unsigned column);
/* Appends an option with its help. */
void help_option(struct buf *b, const struct opt *o);

#endif
