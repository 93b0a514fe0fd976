/*
 * Where events go: the views a command was asked for, each with its output. Standard output has one view; every -o FILE
 * has the view of its extension, and where several views share one (.html), that of --as. A view that comes at its end
 * and has a file to go to leaves standard output empty. Outputs are writer threads; this struct says when they are full, closed or broken.
 */
#ifndef ETRACE_SHOW_H
#define ETRACE_SHOW_H

#include <sys/stat.h>

#include "../views/pipeline.h"
#include "ctx.h"
#include "groups.h"

#define SHOW_MAX 16

struct show {
    struct view views[SHOW_MAX];
    struct out *outs[SHOW_MAX];
    struct out *own; /* standard output, the ctx's: may be one of them */
    struct loop_fd wakes[SHOW_MAX];
    size_t count;
    struct grep *greps;
    size_t ngreps;
    struct loop *loop;
};

/* Options that mean nothing without another one, which a command line cannot bring later. */
bool show_makes_sense(const struct view_opts *o, struct err *e);

/* `default_view` is what stdout shows unless the options say otherwise. */
bool show_open(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *default_view, struct err *e);
/* Only a file, in the view `as`, or of its extension (NULL). */
bool show_file(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path, struct err *e);
/* Standard output, and no file; who calls has both, each for itself. */
bool show_here(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *default_view, struct err *e);
/* Every -o of the options, and not standard output. */
bool show_files(struct show *s, struct ctx *ctx, const struct view_opts *o, struct err *e);
void show_begin(struct show *s); /* what was in the files is dropped now, if nothing has been written there */
void show_close(struct show *s); /* does not wait; accepts one that failed to open */

bool show_same_file(const struct stat *a, const struct stat *b); /* a regular one, by whatever name */

bool show_is_alone(const struct show *s); /* every view shows a call and its result as if there were no others around them */
bool show_is_figures(const struct show *s); /* no view shows more of a call than figures */

bool show_has_senders(const struct show *s); /* some view may show who sent a message that is received */

size_t show_backlog(const struct show *s, size_t enough); /* of the fullest output; as out_backlog() */

/* true: an output broke (*ret_closed false, e filled) or its reader went away (*ret_closed). */
bool show_ended(const struct show *s, bool *ret_closed, struct err *e);

/* Waits until every file is written, or broke, or patience ends; stdout is ctx_flush()'s. Returns the status. */
int show_flush(struct show *s, struct ctx *ctx, int status);

#endif
