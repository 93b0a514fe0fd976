/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the recordings of a command as one source, and reads the options that select a part of them. */
#ifndef ETRACE_RECORDINGS_H
#define ETRACE_RECORDINGS_H

#include "../events/source.h"
#include "../lang/lang.h"
#include "../pipeline/window.h"
#include "opts.h"

struct recordings {
    struct source *source;
    struct source **files; /* the source of each file; owned by `source` */
    size_t nfiles;
};

/* Opens the recordings as one source. Returns false, with an error, if one of them cannot be opened. */
bool recordings_open(struct recordings *r, const struct texts *paths, struct err *e);
void recordings_close(struct recordings *r); /* must also be called after recordings_open() has failed */

/*
 * Prepares to skip events before the window. Computes the absolute times of the window from the first event of all
 * recordings. Sets *ret_newest to a time: no event up to this time is in the window. Returns false if nothing can be
 * skipped, because the window has no beginning, or because a recording has no checkpoint with the time of its first
 * event.
 */
bool recordings_begin(const struct recordings *r, struct window *w, int64_t *ret_newest);

struct part_opts {
    const char *from, *to;
    struct texts lets, records;
};
extern const struct opt_group part_group;

/* Reads --from and --to. A time relative to the end makes it read the end of the files. */
bool recordings_window(const struct part_opts *o, const struct texts *paths, bool utc, struct window *ret,
                       struct err *e);

/*
 * Finds the records that the recorded expressions used; a find_record callback for struct exprs. `data` is a struct
 * str: the request at the beginning of the recording, or empty.
 */
enum lang_found recordings_find_record(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                       struct arena *a, struct lang_lookup *ret);

#endif
