/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the events of the scrollback to the user: in the live view, which prints events as they arrive, and in other
 * views of captured events, once or in place. All text for the terminal passes through this part and keeps its order.
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
 * Opens the live view with the current options. Returns false, and prints the error, if this fails; an older live view
 * then goes on.
 */
bool repl_views_open(struct repl_views *v, bool from_now);
/* Called before probes start; opens the live view again if the view has ended. */
void repl_views_revive(struct repl_views *v);
/* Opens the live view again if events must name their nodes from now on. */
void repl_views_renode(struct repl_views *v);
/* Continues the live view after a pause. Skips the events of the pause if there are too many. */
void repl_views_go_on(struct repl_views *v);
/* Waits until the live view has read all events so far, but at most CATCH_UP_MS. */
void repl_views_catch_up(struct repl_views *v);
/* Shows the remaining events and ends the live view. At a terminal, shows events for SHOWN_MS at most. */
void repl_views_end(struct repl_views *v);

/*
 * Writes files, reads events and prints text for a few milliseconds. Returns the loop_now() time until which the loop
 * may wait, `until` or earlier.
 */
int64_t repl_views_serve(struct repl_views *v, int64_t until);

/*
 * Lend the terminal to a command: until repl_views_return(), the views print nothing. repl_views_lend() prints pending
 * text first.
 */
void repl_views_lend(struct repl_views *v);
void repl_views_return(struct repl_views *v);

/* ---- text ---- */

bool repl_views_pending(const struct repl_views *v); /* true if some text is not printed yet */
void repl_views_talk(void *views, struct str lines); /* for ctx->talk: prints the lines after pending events */
/* Prints the answer of a :command, in a script after the pending events. Releases the text. */
void repl_views_print(struct repl_views *v, struct buf *text);

/* ---- captured events ---- */

/*
 * Shows all captured events. If `file` is not NULL, writes them into it, in the view view->as or in the view of its
 * extension. Prints an error, and returns the status.
 */
int repl_views_once(struct repl_views *v, const struct view_opts *view, const char *file);
int repl_views_screen(struct repl_views *v,
                      const struct view_opts *view); /* refreshes the view in place until the user types q */

#endif
