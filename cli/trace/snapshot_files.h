/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes each snapshot of the flight recorder to files of its own: -o NAME-%n.etr. Every file is complete without the
 * others: the events are stored in self-contained batches (scroll.h) with the greetings of the nodes.
 *
 * All nodes take a snapshot together. A snapshot begins when one node begins, and ends when every node that was asked
 * has ended. The command of --then runs after the files of a snapshot are written, or after a snapshot without files.
 * The stacks and the trace of --then begin with the snapshot. They have files of their own, in the directory of the
 * first file of the snapshot.
 *
 * A file contains what the nodes sent since the previous snapshot ended. If the next snapshot begins before the files
 * of the last one are written, its events wait in memory, up to a limit.
 */
#ifndef ETRACE_SNAPSHOT_FILES_H
#define ETRACE_SNAPSHOT_FILES_H

#include "outputs.h"

struct snapshot_files;

struct snapshot_files_options {
    struct ctx *ctx;
    const struct view_opts *view;   /* `outputs` are the names with %n */
    const struct limit_opts *limit; /* `ring.then` has the actions */
    const struct node_opts *node;
    const struct exprs *exprs;
    size_t nwheres;
    /* Announces the nodes to a pipeline (pipeline_specs()). */
    void (*announce)(void *data, struct pipeline *p);
    void *data;
};

/* Borrows the options. Returns NULL if a file cannot be created. */
struct snapshot_files *snapshot_files_new(const struct snapshot_files_options *o, struct err *e);
void snapshot_files_free(struct snapshot_files *f); /* accepts NULL */

/*
 * Take a batch or a note of a node. batch() and step() return false, with an error, on failure. These functions,
 * asked(), begins(), names_node(), backlog() and end() accept NULL.
 */
bool snapshot_files_batch(struct snapshot_files *f, unsigned node, struct str bytes, struct err *e);
void snapshot_files_note(struct snapshot_files *f, unsigned node, struct str bytes);
/*
 * Opens, fills and closes files. Call it after every event of the loop. `last`: the trace ends, and everything that the
 * nodes still send is one snapshot.
 */
bool snapshot_files_step(struct snapshot_files *f, bool last, struct err *e);
/* Records that the node was asked for a snapshot, or with `begins` false that it takes none. */
void snapshot_files_asked(struct snapshot_files *f, unsigned node, bool begins);
/* Returns true once for each snapshot that has begun. The caller then asks the nodes of snapshot_files_lacks(). */
bool snapshot_files_begins(struct snapshot_files *f);
/* Returns the number of the snapshot that has just begun, or else of the next one. */
uint64_t snapshot_files_number(const struct snapshot_files *f);
/* Returns the name of the file for the stacks of the snapshot; the caller frees it. NULL: snapshots have no files. */
char *snapshot_files_stacks(const struct snapshot_files *f);
void snapshot_files_trace(struct snapshot_files *f); /* starts the trace of --then */
/* Sets the name of a traced node, for the programs of --then. Only the first call has an effect. */
void snapshot_files_names_node(struct snapshot_files *f, const char *node);
bool snapshot_files_lacks(const struct snapshot_files *f, unsigned node);
uint64_t snapshot_files_count(const struct snapshot_files *f); /* returns the number of snapshots that have ended */
size_t snapshot_files_backlog(const struct snapshot_files *f, size_t enough);
/* Completes the files when the trace is over. Waits like outputs_flush(), and returns the exit status. */
int snapshot_files_end(struct snapshot_files *f, int status);

#endif
