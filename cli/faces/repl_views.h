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
void repl_views_revive(struct repl_views *v); /* opens it again if it has ended; before probes are started */
void repl_views_renode(struct repl_views *v); /* opens it again if its events must name their nodes now */
void repl_views_go_on(struct repl_views *v);  /* after a pause: skips the events since, if they are too many to read */
void repl_views_catch_up(struct repl_views *v); /* waits until it shows what came so far, but some seconds at most */
void repl_views_end(struct repl_views *v);      /* shows the rest, at a terminal for a moment only, and ends the view */

/* Writes files, reads events and prints for a few milliseconds. Returns how long the loop may wait: `until` or less. */
int64_t repl_views_serve(struct repl_views *v, int64_t until);

/*
 * Between lend() and return() the views print nothing, so a command can use the terminal. lend() prints pending text
 * first.
 */
void repl_views_lend(struct repl_views *v);
void repl_views_return(struct repl_views *v);

/* ---- text ---- */

bool repl_views_pending(const struct repl_views *v); /* some text is not printed yet */
void repl_views_talk(void *views, struct str lines); /* for ctx->talk: prints the lines behind pending events */
/* Prints the answer of a :command, in a script behind pending events. Releases the text. */
void repl_views_print(struct repl_views *v, struct buf *text);

/* ---- captured events ---- */

/*
 * Shows all captured events. `file`: writes them there, in the view view->as or in that of the extension; NULL:
 * prints them. Returns the status; an error is printed.
 */
int repl_views_once(struct repl_views *v, const struct view_opts *view, const char *file);
int repl_views_screen(struct repl_views *v, const struct view_opts *view); /* draws them in place until q is typed */

#endif
