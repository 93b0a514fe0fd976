/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the outputs of a command and the view of each. Standard output has one view. Every -o FILE has the view of its
 * extension; if several views have the extension (.html, .txt), --as decides. Standard output has no view if a file has
 * the same one, and the view is written only at the end of the trace. A terminal also has no view if a file gets a page
 * or a profile and no option names a view. A thread writes each output. This struct reports when an output is full,
 * closed or broken.
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
    struct out *own; /* standard output, owned by the ctx; it is in `outs` only if it has a view */
    struct loop_fd wakes[OUTPUTS_MAX];
    size_t count;
    struct grep *greps;
    size_t ngreps;
    struct loop *loop;
};

/* Returns true if standard output has a view that is written only at the end. */
bool outputs_wait(const struct outputs *s);

/*
 * Returns true if the view of standard output makes items such as exits (sink_type.item), not lines of events. `usual`
 * is the name of the view without --as.
 */
bool outputs_shows(const struct view_opts *o, const char *usual, const char *item);
/*
 * Lets --json and --as select a view of these items. `etrace died --as csv` selects the view diedcsv, whose `brief` is
 * csv.
 */
void outputs_of_items(struct view_opts *o, const char *item);

/* Rejects an option that needs another option, if that one is missing. */
bool outputs_makes_sense(const struct view_opts *o, struct err *e);
/* Rejects a table as the view of standard output if nothing counts by keys. */
bool outputs_fit(const struct view_opts *o, bool counts, struct err *e);

/*
 * Opens standard output and every -o of the options. `default_view` is the view of standard output unless the options
 * name one.
 */
bool outputs_open(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e);
/* Opens one file with the view `as`; NULL: the view of its extension. */
bool outputs_file(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *as, const char *path,
                  struct err *e);
/* Opens standard output and no file, for a caller that opens the files itself. */
bool outputs_here(struct outputs *s, struct ctx *ctx, const struct view_opts *o, const char *default_view,
                  struct err *e);
/* Opens every -o of the options, but not standard output. */
bool outputs_files(struct outputs *s, struct ctx *ctx, const struct view_opts *o, struct err *e);
/* Splits the names of -o: those with %n into *ret_numbered, the others into *ret_plain. */
void outputs_split(const struct texts *names, struct texts *ret_plain, struct texts *ret_numbered);
/* Returns false, with an error, if no view has the extension of the file, or its directory cannot be written. */
bool outputs_require_file(const struct view_opts *o, const char *path, struct err *e);
/*
 * Returns the views and filters of a pipeline, borrowed; the caller adds the other options. Only the first `nwheres`
 * conditions in `exprs` are filters; those of assertions follow.
 */
struct pipeline_options outputs_pipeline(const struct outputs *s, const struct exprs *exprs, size_t nwheres);
void outputs_begin(struct outputs *s); /* discards the old content of the files on the first call */
void outputs_close(struct outputs *s); /* does not wait; accepts a struct that failed to open */

bool outputs_same_file(const struct stat *a, const struct stat *b); /* returns true if both are the same regular file */

bool outputs_all(const struct outputs *s, unsigned flag); /* returns true if every view has the flag (sink_flags) */
/* Returns the PROPERTY_ bits of the properties that --fields and --format name. */
unsigned outputs_properties(const struct outputs *s);

bool outputs_has_senders(const struct outputs *s); /* returns true if a view may show who sent a received message */

/* Returns the largest backlog of an output, in bytes; `enough` as for out_backlog(). */
size_t outputs_backlog(const struct outputs *s, size_t enough);

/* Returns true if the reader of an output went away (*ret_closed), or an output is broken (e is filled). */
bool outputs_ended(const struct outputs *s, bool *ret_closed, struct err *e);

/*
 * Waits until every file is written or has failed, or until ctx_patience(). ctx_flush() does the same for standard
 * output. Returns the exit status.
 */
int outputs_flush(struct outputs *s, struct ctx *ctx, int status);

#endif
