/*
 * The interactive mode: lines come from a terminal or a pipe, and go to the same rows, compiler, sessions and views as the
 * shell's. What is traced goes into the scrollback, and every view, of what comes and of what came, reads it from there.
 *
 *   repl.c           beginning and end, reading lines, the one place that waits
 *   repl_nodes.c     nodes: attaching to them, and what they say
 *   repl_probes.c    probes: what is traced
 *   repl_show.c      views of the scrollback
 *   repl_words.c     :commands
 *   repl_settings.c  options as settings
 *   repl_complete.c  Tab
 *   repl_base.c      what all of these share
 *   repl_options.c   the values of the settings
 *   repl_history.c   lines of earlier sessions
 *   repl_syntax.c    the text of a line
 */
#ifndef ETRACE_REPL_H
#define ETRACE_REPL_H

#include "../commands/asked.h"
#include "../commands/cmd.h"
#include "../commands/run.h"
#include "../commands/show.h"
#include "../commands/together.h"
#include "repl_base.h"
#include "repl_history.h"
#include "repl_syntax.h"

extern const struct cmd cmd_repl;

struct probe {
    char *label, *text;
    char *records;         /* their definitions, as a node has them; NULL: none */
    size_t number, nspecs; /* its specs are counted from there, as long as it is traced */
    bool stopped;
    bool fresh; /* no node has taken it yet */
    bool told;  /* its events may be on their way */
    bool gone;  /* dropped, and only kept for these */
};

/* A view of the scrollback: a pipeline that reads it. */
struct reel {
    struct asked asked; /* owns the filters */
    struct show show;
    struct pipeline *pipeline;
    struct source *source;
    bool nodes; /* with a column for them */
    bool done;  /* nothing more is shown: the limit, or an output that is closed */
};

enum repl_wish { WISH_TYPED, WISH_DEFAULT /* nobody has named it */, WISH_AGAIN /* by itself */ };

struct repl_node {
    bool met;        /* it was attached once */
    bool lost;       /* it ended by itself */
    enum repl_wish wish;
    unsigned refusals; /* of tries by itself, one after the other */
    int64_t wanted;  /* until then, after a pause of ours, it is attached again whatever :reattach says */
    int64_t retry_at; /* -1: not at all */
    char name[NODE_NAME_MAX + 1];
    bool arm_due;  /* it came later than what is traced: seen to by the next turn of the loop */
    bool alone;    /* it is being armed with what the others trace already: its refusal is its own affair */
    bool detached; /* it is being left, as was wished: how that ends is of no interest */
};

struct repl {
    struct repl_base base;

    struct run run;
    struct together together; /* the order of several nodes */
    bool refused;  /* a node did not take what it was asked for: seen to by the next turn of the loop */
    struct err refusal;
    struct repl_node nodes[PEERS_MAX];
    int current;             /* a peer's index, -1: none; see repl_current() */

    struct probe *probes;
    size_t nprobes, probes_cap, numbers;
    unsigned labels;
    uint64_t mark;
    bool armed;              /* something is traced */
    bool arming;             /* nodes were asked to trace, and it is not said yet that all do */
    bool asking;             /* repl_arm_all() waits for the nodes, and sees to a refusal itself */
    int64_t until;           /* :for, -1: none */
    int64_t stopped;         /* when to say so: behind the events that are on their way; -1: it is said */

    struct reel *live;       /* what is printed as it comes */
    struct reel *files;      /* what goes into the files of -o, whatever is looked at meanwhile; NULL: none */
    struct buf pending;      /* its text that is not printed yet */
    uint64_t missed;         /* told */
    uint64_t waited;         /* events that :wait has waited for */
    bool throttled;
    bool paused, held;       /* nothing is read for `live` now; nothing of it is printed */
    bool screen;             /* something is drawn in place */
    struct buf aside;        /* said meanwhile */
    struct buf counts;       /* of the last node that was armed, for the line that says so */

    struct buf so_far;       /* lines of an expression that goes on */
    struct buf typed;        /* the line that is being done, as it was typed */
    const char *typed_at;    /* where it is taken apart */
    struct names *names;     /* repl_complete.c */
    struct repl_history history;
    bool idle_interrupt; /* Ctrl-C was typed, and no key since */
};

/* ---- repl_nodes.c ---- */
void repl_begin(struct repl *r);
bool repl_attach(struct repl *r, const char *name, enum repl_wish wish, struct err *e); /* begins it; false: it cannot be */
void repl_detach(struct repl *r, struct peer *p);
void repl_reopen(struct repl *r); /* sessions anew, for what is given to them once */
struct peer *repl_peer(struct repl *r, const char *name); /* attached, or about to be; a name without @ fits, too. NULL: none */
struct peer *repl_current(struct repl *r); /* the node that :commands ask, where it is attached; NULL: none */
size_t repl_attached(const struct repl *r);
bool repl_attaching(const struct repl *r);
bool repl_has_all(const struct repl *r); /* each node is attached, or will be again */
bool repl_several(const struct repl *r); /* nodes have been met, and are named beside their events */
bool repl_arming(const struct repl *r);             /* some node has not answered yet */

/* ---- repl_probes.c ---- */
bool repl_probe(struct repl *r, const char *line); /* an expression, with its label or without; false: it is wrong, or some node does not take it */
bool repl_drop(struct repl *r, const char *label); /* false: no such label */
size_t repl_running(const struct repl *r);
bool repl_start(struct repl *r, const char *label); /* NULL: all that were stopped; false: no such label */
bool repl_stop(struct repl *r, const char *label);  /* NULL: all; what came is still shown */
void repl_arm(struct repl *r);                      /* what is asked for has changed: what is not taken is said, and left out */
/* The same, all or nothing, and steps until every node was prepared, or for so long (-1: no limit). false: some node does not take it. */
bool repl_arm_all(struct repl *r, int64_t patience_ms, struct err *e);
void repl_list(struct repl *r, struct buf *to);
void repl_release(struct repl *r);
void repl_arm_peer(struct repl *r, struct peer *p); /* one that came later */
void repl_go_without(struct repl *r, const struct err *e); /* what a node does not take: the latest probe, or all of them */
void repl_settle(struct repl *r); /* a refusal that waits for the next turn of the loop */

/* ---- repl_show.c ---- */
void reel_free(struct reel *reel);
bool repl_show_live(struct repl *r, bool from_now); /* opens `live` anew by the settings; false: said why not */
bool repl_files_open(struct repl *r, struct err *e); /* those of the settings, for what comes from now on; the ones before are at their end */
bool repl_files_catch_up(struct repl *r);           /* what came so far is on its way into them; false: Ctrl-C */
void repl_files_end(struct repl *r);                /* what came is written, or Ctrl-C gives it up; the status is the session's */
void repl_catch_up(struct repl *r);                 /* shows what came so far */
bool repl_pump(struct repl *r);                     /* shows some of what came; whether there is more */
void repl_print(struct repl *r);                    /* what is pending, as far as the terminal takes it */
void repl_show_go_on(struct repl *r);               /* after a pause */
void repl_pause(struct repl *r);                    /* nothing of `live` is shown until `paused` is unset */
int repl_show_once(struct repl *r, const struct view_opts *view, const char *file); /* what is captured; into a file: in view->as, or the view of its extension */
int repl_show_screen(struct repl *r, const struct view_opts *view); /* in place, until q */

/* ---- repl_words.c ---- */
int repl_word(struct repl *r, char *line); /* behind the colon */
void repl_words(void (*each)(void *data, const char *word, const char *help), void *data);

/* ---- repl_settings.c ---- */
bool repl_setting(struct repl *r, const char *name, char *rest, int *ret_status); /* false: there is none of that name */

/* ---- repl_complete.c ---- */
void repl_complete(void *repl, struct str before);
void repl_names_answer(struct repl *r, const struct session_reply *reply);
void repl_names_forget(struct repl *r);

#endif
