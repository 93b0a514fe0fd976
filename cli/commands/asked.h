/*
 * The expressions of one command: read from arguments and files, compiled for a node's OTP, turned into the request
 * that arms a session. Owns all memory of the specs; pointers to them stay good until asked_release().
 */
#ifndef ETRACE_ASKED_H
#define ETRACE_ASKED_H

#include "../lang/lang.h"
#include "../node/arm.h"
#include "../node/session.h"
#include "ctx.h"
#include "groups.h"

struct asked {
    struct arena arena;
    const struct spec **specs;
    size_t count, cap;
    const struct where **wheres;
    size_t nwheres;
    unsigned needs; /* of the wheres: lang_where_needs() */
    struct str *headers; /* the texts of the --hrl files */
    size_t nheaders;
    /* Set before compiling, or NULL: where to write what the passes made; where other records than those of headers are. */
    struct buf *dump_tokens, *dump_ast;
    enum lang_found (*find_record)(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                                   struct lang_lookup *ret);
    void *find_data;
    bool may_count; /* the counters of the virtual machine are shown; else asking for them is a mistake */
};

/*
 * Reads the headers that are no regular files, because expressions are compiled again for each node; those that were read are not
 * read again. It waits, and serves the loop meanwhile. The owner of `what` releases its pipes.
 */
bool asked_pipes(struct ctx *ctx, struct what_opts *what, struct arena *a, struct err *e);

void asked_init(struct asked *p);
void asked_release(struct asked *p);

/* Adds the words and the texts of the -f files, which can be read but once, to *ret; its owner releases it and the arena. It may wait. */
bool asked_texts(struct ctx *ctx, const struct what_opts *what, const struct texts *words, struct arena *a, struct texts *ret, struct err *e);

/*
 * Compiles the texts and filters for that OTP release; calls collect what the filters, and those of what->needs, read. 0: none in particular. To be called once. A text that is NULL
 * stands for a spec that is no more: those behind it keep their numbers.
 */
bool asked_compile(struct asked *p, const struct what_opts *what, const struct texts *texts, const struct texts *wheres,
                   int otp, struct err *e);

/* For find_record, with a bool as its data, which it sets: there is no node yet that could be asked. */
enum lang_found asked_later(void *data, const struct sel_name *modules, size_t nmodules, struct str name, struct arena *a,
                            struct lang_lookup *ret);

/* Whether the regular expressions of selectors and filters are well-formed; the node reads those of selectors once more. */
bool asked_regexes(const struct asked *p, struct err *e);

void asked_warn(const struct asked *p, struct ctx *ctx);

/*
 * What the node may spare, because nobody would see it. That is known where the views and filters are, for as long as it is
 * traced: not of a recording, nor of the scrollback of the interactive mode, which have everything that was asked for, so
 * that other views and other filters can be made of it later.
 */
struct asked_how {
    bool figures;  /* nothing but figures of calls is shown, so the node may count instead of sending */
    bool hold;     /* what the filter hides need not come here */
    bool anonymous; /* who sent a message that is received need not come */
    struct str filter; /* for both: what asked_filter() or asked_hold() gave */
    struct arm_mark mark;
    const struct str *unknown; /* of the names that asked_atoms() gave, those that are no atoms of the node */
    size_t nunknown;
    bool *compared; /* one for each, or NULL: set where a pattern or a guard has it */
};

/* Appends the names, as binaries, of the atoms in the expressions; returns how many they are. */
size_t asked_atoms(const struct asked *p, struct buf *ret_names);

/* Appends what arm_request() takes for that node; its name and creation give local pids in expressions their meaning. */
bool asked_arm(const struct asked *p, const struct what_opts *what, const struct session_node *node, struct asked_how how,
               struct buf *ret_asked, struct err *e);

/*
 * Whether the node can decide which calls are counted, by the `where` of the expressions and `extra` ones: it has one filter for
 * all of them, which is put into *ret_filter; nothing: all calls are.
 */
bool asked_filter(const struct asked *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/*
 * Whether calls may wait on the node for their results, and come only where that filter may show both, which is put into *ret_filter:
 * it is a part, or all, of what decides here. Only where every call reports how it ended, come what may.
 */
bool asked_hold(const struct asked *p, const struct where *const *extra, size_t n, struct buf *ret_filter);

/* Whether a filter may look at who sent a message that is received. */
bool asked_reads_sender(const struct asked *p);

struct arm_pattern asked_pattern(const struct sel_name *name);

/*
 * The kinds of events that the expressions need, a bit for each: what they ask for, and what that is paired with (the
 * beginning of a collection, for its duration), which is in *ret_besides and is not shown.
 */
uint64_t asked_kinds(const struct asked *p, uint64_t *ret_besides);

#endif
