/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the outputs of a command and the view of each. Standard output has one view. Every -o FILE has the view of its
 * extension; if several views share the extension (.html, .txt), --as decides. If a view appears only at the end of the
 * trace and has a file, standard output stays empty, or at least a terminal does. A thread writes each output; this
 * struct reports when one is full, closed or broken.
 */
#ifndef ETRACE_OUTPUTS_H
#define ETRACE_OUTPUTS_H

#include <sys/stat.h>

#include "../pipeline/pipeline.h"
#include "ctx.h"
#include "exprs.h"
#include "settings.h"

#define OUTPUTS_MAX 16

struct outputs {
    struct view views[OUTPUTS_MAX];
    struct out *outs[OUTPUTS_MAX];
    struct out *own; /* standard output, owned by the ctx; may be one of outs */
    struct loop_fd wakes[OUTPUTS_MAX];
    size_t count;
    struct grep *greps;
    size_t ngreps;
    struct loop *loop;
};

/* Whether standard output gets a view that is written as a whole at the end. */
bool outputs_wait(const struct outputs *s);

/* Rejects an option that needs another one, if the user did not give that. */
bool outputs_makes_sense(const struct view_opts *o, struct err *e);
/* Rejects a table as the view of standard output if nothing counts by keys. */
bool outputs_fit(const struct view_opts *o, bool counts, struct err *e);

/* `default_view` is the view of standard output unless the options name one. */
bool outputs_open(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e);
/* Opens one file, in the view `as` or, if that is NULL, in the view of its extension. */
bool outputs_file(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path,
                  struct err *e);
/* Opens standard output and no file, for a caller that opens the files itself. */
bool outputs_here(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e);
/* Opens every -o of the options, but not standard output. */
bool outputs_files(struct outputs *s, struct ctx *ctx, const struct view_opts *o, struct err *e);
/* The names of -o with %n go to `ret_numbered`, the others to `ret_plain`. */
void outputs_split(const struct texts *names, struct texts *ret_plain, struct texts *ret_numbered);
/* False: no view has the extension of the file, or its directory cannot be written. */
bool outputs_can_create(const struct view_opts *o, const char *path, struct err *e);
/*
 * The views and filters of a pipeline. They are borrowed; the caller adds the rest. The first `nwheres` of the filters
 * in `exprs` count: those of assertions come after them.
 */
struct pipeline_options outputs_pipeline(const struct outputs *s, const struct exprs *exprs, size_t nwheres);
void outputs_begin(struct outputs *s); /* discards the old content of the files now, unless it was discarded before */
void outputs_close(struct outputs *s); /* does not wait; accepts a struct that failed to open */

bool outputs_same_file(const struct stat *a, const struct stat *b); /* whether both are the same regular file */

/* Every view shows a call and its result independently of the calls around them. */
bool outputs_is_alone(const struct outputs *s);
bool outputs_is_rows(const struct outputs *s);    /* no view shows more than the tables of `by` */
bool outputs_folds(const struct outputs *s);      /* each view shows figures and no single event */
bool outputs_is_figures(const struct outputs *s); /* no view shows more of a call than figures */

bool outputs_has_senders(const struct outputs *s); /* whether a view may show who sent a received message */

/* the backlog of the fullest output; see out_backlog() */
size_t outputs_backlog(const struct outputs *s, size_t enough);

/* True: an output broke (*ret_closed false, e filled) or its reader went away (*ret_closed). */
bool outputs_ended(const struct outputs *s, bool *ret_closed, struct err *e);

/*
 * Waits until every file is written or broken, or patience ends; ctx_flush() does the same for standard output. Returns
 * the exit status.
 */
int outputs_flush(struct outputs *s, struct ctx *ctx, int status);

#endif
