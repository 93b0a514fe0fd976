/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the scrollback to the user: the live view, which prints events as they come, and other views of captured
 * events, once or in place. All text for the terminal passes through here and keeps its order.
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

/* Opens the live view with the current options. false: the error is printed, and an older live view goes on. */
bool repl_views_open(struct repl_views *v, bool from_now);
void repl_views_revive(struct repl_views *v); /* before probes start: opens the live view again if it has ended */
void repl_views_renode(struct repl_views *v); /* opens the live view again if events must name their nodes now */
/* Ends a pause; skips the events of the pause if they are too many to read. */
void repl_views_go_on(struct repl_views *v);
/* Waits until the view shows all events so far, for some seconds at most. */
void repl_views_catch_up(struct repl_views *v);
/* Shows the remaining events (at a terminal, for a moment only) and ends the view. */
void repl_views_end(struct repl_views *v);

/* Writes files, reads events and prints for a few milliseconds. Returns how long the loop may wait: `until` or less. */
int64_t repl_views_serve(struct repl_views *v, int64_t until);

/*
 * Between repl_views_lend() and repl_views_return() the views print nothing, so that a command can use the terminal.
 * repl_views_lend() prints pending text first.
 */
void repl_views_lend(struct repl_views *v);
void repl_views_return(struct repl_views *v);

/* ---- text ---- */

bool repl_views_pending(const struct repl_views *v); /* some text is not printed yet */
void repl_views_talk(void *views, struct str lines); /* for ctx->talk: prints the lines after pending events */
/* Prints the answer of a :command; in a script, after the pending events. Releases the text. */
void repl_views_print(struct repl_views *v, struct buf *text);

/* ---- captured events ---- */

/*
 * Shows all captured events. `file`: writes them there, in the view view->as or in that of the extension; NULL:
 * prints them. Returns the status; an error is printed.
 */
int repl_views_once(struct repl_views *v, const struct view_opts *view, const char *file);
int repl_views_screen(struct repl_views *v,
                      const struct view_opts *view); /* shows them as a screen that refreshes, until the user types q */

#endif
