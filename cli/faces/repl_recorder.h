/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flight recorder in the interactive mode: makes its settings effective, and takes snapshots. A session gets these
 * settings when it is created, so a change attaches the nodes again; they send what they have recorded before. The
 * events of a snapshot go into the scrollback, where the views read them like all others.
 */
#ifndef ETRACE_REPL_RECORDER_H
#define ETRACE_REPL_RECORDER_H

#include "repl_probes.h"

struct repl_recorder;

struct repl_recorder *repl_recorder_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes);
void repl_recorder_free(struct repl_recorder *r); /* accepts NULL */

/* The settings that the session begins with: open() before nodes are attached, begin() after that. */
bool repl_recorder_open(struct repl_recorder *r, struct err *e);
bool repl_recorder_begin(struct repl_recorder *r, struct err *e);

/* A setting of the recorder has changed. Waits for the nodes. false: it is not possible, and nothing has changed. */
bool repl_recorder_set(struct repl_recorder *r, struct err *e);
/* Whether other settings that have changed are possible while the nodes record. */
bool repl_recorder_allows(const struct repl_recorder *r, struct err *e);
/* Whether this is an option of snapshots that only etrace trace has; if so, e says that. */
bool repl_recorder_refuses(const char *name, struct err *e);

/*
 * Takes a snapshot of all nodes and waits for its events. false: there is none, e says why. *ret_interrupted: Ctrl-C
 * ended the wait, and the rest of the events comes later.
 */
bool repl_recorder_snapshot(struct repl_recorder *r, bool *ret_interrupted, struct err *e);

/* The handler of the nodes. false: the reply answers a request of another file. */
bool repl_recorder_on_answer(struct repl_recorder *r, const struct peer *p, const struct session_reply *reply);
/* The timer calls it: if one node takes a snapshot, asks the others for theirs. */
void repl_recorder_tick(struct repl_recorder *r);

#endif
