/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the table of commands. Each command is a row in a file of its own (cmd_*.c), and cmds.def lists them. The
 * help and the shell completion read the same rows. The function of a command gets the arguments after its name, and
 * returns the exit status of the program.
 */
#ifndef ETRACE_CMD_H
#define ETRACE_CMD_H

#include "../trace/ctx.h"
#include "groups.h"

struct cmd {
    const char *name;
    const char *usage;   /* the arguments, as the help shows them after the name */
    const char *summary; /* one line for the list of commands */
    const char *about;   /* more lines for `etrace help COMMAND`; NULL: none */
    bool aside;          /* `etrace help` shows only the name of the command */
    /* Long names of the options that the help shows without --all, each between blanks; NULL: it shows all. */
    const char *often;
    int (*run)(struct ctx *ctx, const struct cmd *self, char **argv);
    const struct opt_group *const *groups; /* NULL-terminated */
};

#define COMMAND(name) extern const struct cmd cmd_##name;
#include "cmds.def"
#undef COMMAND
extern const struct cmd cmd_complete; /* called by the completion scripts; not in the list of commands */

void cmd_add(const struct cmd *c); /* adds a command that is defined in faces/; may be called once */
const struct cmd *cmd_find(const char *name);
const struct cmd *const *cmd_all(void); /* NULL-terminated */

/* Returns the command's option with this letter, or with this name if `letter` is 0. Returns NULL if there is none. */
const struct opt *cmd_find_option(const struct cmd *c, const char *name, size_t len, char letter);

bool cmd_takes_expressions(const struct cmd *c); /* returns true if arguments are expressions or selectors */

/*
 * Returns the first argument that is neither an option nor the value of one. Returns NULL if there is none before `--`.
 */
char **cmd_first_word(char **argv);

/*
 * Parses argv into the options, and starts the demo node if they ask for it. Returns false if the command must not run;
 * *ret_status is then 0 after --help, and 2 after a usage error.
 */
bool cmd_options(struct ctx *ctx, const struct cmd *self, const struct opt_use *uses, size_t nuses, char **argv,
                 struct texts *ret_words, char ***ret_rest, int *ret_status);

/*
 * Returns true if `words` is empty. Otherwise reports the first word as an error, sets *ret_status and returns false.
 * `hint` may be NULL.
 */
bool cmd_no_words(struct ctx *ctx, const struct cmd *self, const struct texts *words, const char *hint,
                  int *ret_status);

/* Sets *as to JSON if --json was given. Returns false, with an error, if --as names another format. */
bool cmd_format(bool json, int *as, struct err *e);

/* Appends the help of the command. Unless `all`, shows only frequent options and says that there are more. */
void cmd_print_help(struct buf *b, const struct cmd *c, bool all);
/* Appends `left`, and beside it, beginning at `column`, the text in lines of at most 80 columns. */
void help_row(struct buf *b, const char *left, const char *text, unsigned column);
/* Appends the row of an option in a help text. */
void help_option(struct buf *b, const struct opt *o);

#endif
