/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the recordings of a command as one source, and reads the options that choose a part of them. */
#ifndef ETRACE_RECORDINGS_H
#define ETRACE_RECORDINGS_H

#include "../events/source.h"
#include "../lang/lang.h"
#include "../pipeline/window.h"
#include "opts.h"

struct recordings {
    struct source *source;
    struct source **files; /* owned by `source` */
    size_t nfiles;
};

/* Opens one recording, or several as one source. Returns false if one of them cannot be opened. */
bool recordings_open(struct recordings *r, const struct texts *paths, struct err *e);
void recordings_close(struct recordings *r); /* also after recordings_open() failed */

/*
 * For a reader that skips the events before the window: computes the times of the window from the first event of all
 * recordings, and sets *ret_newest. No event up to that time is in the window. Returns false if nothing can be skipped:
 * the window has no beginning, or a recording has no checkpoint that tells the time of its first event.
 */
bool recordings_begin(const struct recordings *r, struct window *w, int64_t *ret_newest);

struct part_opts {
    const char *from, *to;
    struct texts lets, records;
};
extern const struct opt_group part_group;

/* Reads --from and --to. A time before the end needs the end of the files. */
bool recordings_window(const struct part_opts *o, const struct texts *paths, bool utc, struct window *ret,
                       struct err *e);

/*
 * A find_record callback (struct exprs): finds the records that the recorded expressions used. `data` is a struct str
 * with the request at the beginning of the recording; empty: none.
 */
enum lang_found recordings_find_record(void *data, const struct sel_name *modules, size_t nmodules, struct str name,
                                       struct arena *a, struct lang_lookup *ret);

#endif
