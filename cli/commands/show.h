/*
 * Holds the outputs of a command and the view of each. Standard output has one view. Every -o FILE has the view of its
 * extension; if several views share the extension (.html), --as decides. If a view appears only at the end of the trace
 * and has a file, standard output stays empty. A thread writes each output; this struct reports when one is full,
 * closed or broken.
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
    struct out *own; /* standard output, owned by the ctx; may be one of outs */
    struct loop_fd wakes[SHOW_MAX];
    size_t count;
    struct grep *greps;
    size_t ngreps;
    struct loop *loop;
};

/* False: an option needs another one that is not there. */
bool show_makes_sense(const struct view_opts *o, struct err *e);

/* `default_view` is the view of standard output unless the options name one. */
bool show_open(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *default_view, struct err *e);
/* Opens one file, in the view `as` or, if that is NULL, in the view of its extension. */
bool show_file(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path, struct err *e);
/* Opens standard output and no file, for a caller that opens the files itself. */
bool show_here(struct show *s, struct ctx *ctx, const struct view_opts *o, const char *default_view, struct err *e);
/* Opens every -o of the options, but not standard output. */
bool show_files(struct show *s, struct ctx *ctx, const struct view_opts *o, struct err *e);
void show_begin(struct show *s); /* discards the old content of the files now, unless it was discarded before */
void show_close(struct show *s); /* does not wait; accepts a struct that failed to open */

bool show_same_file(const struct stat *a, const struct stat *b); /* the same regular file, by whatever name */

/* Every view shows a call and its result independently of the calls around them. */
bool show_is_alone(const struct show *s);
bool show_is_figures(const struct show *s); /* no view shows more of a call than figures */

bool show_has_senders(const struct show *s); /* some view may show who sent a received message */

size_t show_backlog(const struct show *s, size_t enough); /* the backlog of the fullest output; see out_backlog() */

/* True: an output broke (*ret_closed false, e filled) or its reader went away (*ret_closed). */
bool show_ended(const struct show *s, bool *ret_closed, struct err *e);

/*
 * Waits until every file is written or broken, or patience ends; ctx_flush() does the same for standard output. Returns
 * the exit status.
 */
int show_flush(struct show *s, struct ctx *ctx, int status);

#endif
