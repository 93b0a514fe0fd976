/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the events of the scrollback to the user: as they arrive in the live view, or all captured events once, or in a
 * view that refreshes in place. All text for the terminal passes through this part, which keeps its order.
 */
#ifndef ETRACE_REPL_VIEWS_H
#define ETRACE_REPL_VIEWS_H

#include "repl_files.h"
#include "repl_probes.h"

struct repl_views;

struct repl_views *repl_views_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes,
                                  struct repl_files *files);
void repl_views_free(struct repl_views *v); /* accepts NULL */

/* ---- the live view ---- */

/*
 * Opens the live view with the current options. If this fails, prints the error, returns false, and keeps the previous
 * live view.
 */
bool repl_views_open(struct repl_views *v, bool from_now);
/* Opens the live view again if it has ended. Must be called before probes start. */
void repl_views_revive(struct repl_views *v);
/* Opens the live view again if events must now be shown with their nodes. */
void repl_views_renode(struct repl_views *v);
/* Call this function after a pause. If too many events have arrived that the live view has not shown, skips them. */
void repl_views_go_on(struct repl_views *v);
/* Waits until the live view has read all events that have arrived, at most CATCH_UP_MS. */
void repl_views_catch_up(struct repl_views *v);
/* Shows the remaining events and ends the live view. At a terminal, takes at most SHOWN_MS. */
void repl_views_end(struct repl_views *v);

/*
 * Writes files, reads events and prints text for a few milliseconds. Returns the loop_now() time until which the loop
 * may wait, which is at most `until`.
 */
int64_t repl_views_serve(struct repl_views *v, int64_t until);

/*
 * repl_views_lend() prints the pending text and gives the terminal to a command. Until repl_views_return(), the views
 * print nothing.
 */
void repl_views_lend(struct repl_views *v);
void repl_views_return(struct repl_views *v);

/* ---- text ---- */

bool repl_views_pending(const struct repl_views *v); /* returns true if some text is not printed yet */
/* Prints messages after the pending events; the value of ctx->talk. */
void repl_views_talk(void *views, struct str lines);
/* Prints the answer of a :command, in a script after the pending events. Releases the text. */
void repl_views_print(struct repl_views *v, struct buf *text);

/* ---- captured events ---- */

/*
 * Shows all captured events in the view. If `file` is not NULL, writes them to this file, in the view view->as or in
 * the view of the extension, and says how many events the file has. Prints an error, and returns the exit status. It is
 * an error if Ctrl-C leaves the file incomplete.
 */
int repl_views_once(struct repl_views *v, const struct view_opts *view, const char *file);
int repl_views_screen(struct repl_views *v,
                      const struct view_opts *view); /* refreshes the view in place until the user types q */

#endif
