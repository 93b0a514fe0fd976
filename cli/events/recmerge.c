/* SPDX-License-Identifier: Apache-2.0 */
#include "recmerge.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "order.h"
#include "recfile.h"

/*
 * Events of a batch are at most this much older than the batch. Batches that are further apart need not wait for each
 * other.
 */
#define APART_NS INT64_C(2000000000)

struct file {
    struct source *source;
    struct source_item item;  /* the next item, if `ready` */
    bool ready, ended, given; /* given: the item that recmerge_next() returned last is from this file */
    int64_t key;              /* the time of the last batch that was read */
};

/* A node of a file. The node's number in the merged stream is its index in recmerge.places. */
struct place {
    size_t file;
    unsigned node;    /* the node's number in the file */
    uint64_t batches; /* number of batches of the node returned so far */
};

struct recmerge {
    struct source source;
    struct file *files;
    size_t nfiles;
    struct place places[EVENT_NODES];
    unsigned nplaces;
    unsigned marked; /* 1 + number of the node whose last batch gets a mark next; 0: none */
    struct etw_note mark;
    struct buf request; /* the request of the first recording */
    bool asked, failed; /* asked: `request` is set */
    struct err why;     /* the first error of a file, if failed */
};

/* Returns the number of the node in the merged stream, or EVENT_NODES if there are too many. */
static unsigned place_of(struct recmerge *m, size_t file, unsigned node)
{
    for (unsigned i = 0; i < m->nplaces; i++)
        if (m->places[i].file == file && m->places[i].node == node)
            return i;
    if (m->nplaces == EVENT_NODES)
        return EVENT_NODES;
    m->places[m->nplaces] = (struct place){.file = file, .node = node};
    return m->nplaces++;
}

static void recmerge_fail(struct recmerge *m, struct file *f, const struct err *e)
{
    if (!m->failed)
        m->why = *e;
    m->failed = f->ended = true;
}

/* Reads the next item of a file. Returns false if nothing has arrived yet. */
static bool read_file(struct recmerge *m, struct file *f, int timeout_ms)
{
    struct etw_batch head;
    struct err e;

    switch (source_next(f->source, &f->item, timeout_ms, &e)) {
    case SOURCE_NOTHING:
        return false;
    case SOURCE_END:
        f->ended = true;
        return true;
    case SOURCE_FAILED:
        recmerge_fail(m, f, &e);
        return true;
    case SOURCE_ITEM:
        break;
    }
    f->ready = true;
    if (f->item.type == SOURCE_BATCH && f->item.bytes.len >= sizeof(head)) {
        memcpy(&head, f->item.bytes.at, sizeof(head));
        f->key = head.wall_ns;
    }
    return true;
}

/* Copies the entries of a request that must be equal in all recordings. Leaves out the entries that may differ. */
static void request_of(struct str bytes, struct buf *to)
{
    struct raw key, text;

    while (recfile_spec_next(&bytes, &key, &text))
        if (!raw_is(key, "node") && !raw_is(key, "option"))
            recfile_spec_add(to,
                             raw_is(key, "expr")   ? "expr"
                             : raw_is(key, "root") ? "root"
                             : raw_is(key, "let")  ? "let"
                                                   : "other",
                             raw_view(text));
}

static bool match_request(struct recmerge *m, struct str bytes)
{
    struct buf request = {0};

    request_of(bytes, &request);
    bool same = !m->asked || (request.len == m->request.len && !memcmp(request.data, m->request.data, request.len));
    if (!m->asked) {
        m->request = request;
        m->asked = true;
        return true;
    }
    buf_release(&request);
    return same;
}

/* Returns true if the batch of `f` need not wait for the other files, because their next batches are all much later. */
static bool is_apart(const struct recmerge *m, const struct file *f)
{
    int64_t until;

    if (__builtin_add_overflow(f->key, APART_NS, &until))
        return false;
    for (size_t i = 0; i < m->nfiles; i++) {
        const struct file *other = &m->files[i];
        if (other != f && !other->ended && (!other->ready || other->item.type != SOURCE_BATCH || other->key < until))
            return false;
    }
    return true;
}

/* Returns a note that tells order.c not to let the last batch of the node m->marked wait for other nodes. */
static enum source_got give_mark(struct recmerge *m, struct source_item *ret)
{
    const unsigned node = m->marked - 1;

    m->marked = 0;
    m->mark = (struct etw_note){.what = ETW_NOTE_MARK, .value = (int64_t)m->places[node].batches};
    *ret = (struct source_item){.type = SOURCE_NOTE, .node = node, .bytes = {(const char *)&m->mark, sizeof(m->mark)}};
    return SOURCE_ITEM;
}

bool recmerge_too_many(struct err *e)
{
    err_set(e, ERR_RUN, "recordings of more than %d nodes cannot be shown together", EVENT_NODES);
    return err_hint(e, "replay some of them"), false;
}

static enum source_got return_item(struct recmerge *m, struct file *f, struct source_item *ret, struct err *e)
{
    const unsigned node = place_of(m, (size_t)(f - m->files), f->item.node);

    f->ready = false;
    *ret = f->item;
    ret->node = node;
    if (node == EVENT_NODES)
        return recmerge_too_many(e), SOURCE_FAILED;
    if (ret->type == SOURCE_SPECS && !match_request(m, ret->bytes)) {
        err_set(e, ERR_RUN, "the recordings have different expressions, so they cannot be shown together");
        err_hint(e, "replay them one by one");
        return SOURCE_FAILED;
    }
    for (size_t i = 0; i < m->nfiles; i++)
        m->files[i].given = f == &m->files[i];
    if (ret->type == SOURCE_STATE) {
        struct state_in in = {ret->bytes.at, ret->bytes.at + ret->bytes.len, false};
        m->places[node].batches = state_read_number(&in);
    }
    if (ret->type == SOURCE_BATCH) {
        m->places[node].batches++;
        m->marked = is_apart(m, f) ? node + 1 : 0;
    }
    return SOURCE_ITEM;
}

static enum source_got recmerge_next(struct source *s, struct source_item *ret, int timeout_ms, struct err *e)
{
    struct recmerge *m = (struct recmerge *)s;
    struct file *first = NULL;

    if (m->marked)
        return give_mark(m, ret);
    for (size_t i = 0; i < m->nfiles; i++) {
        struct file *f = &m->files[i];
        if (!f->ready && !f->ended && !read_file(m, f, timeout_ms))
            return SOURCE_NOTHING;
        if (!f->ended && (!first || f->key < first->key))
            first = f;
    }
    if (first)
        return return_item(m, first, ret, e);
    if (!m->failed)
        return SOURCE_END;
    *e = m->why;
    return SOURCE_FAILED;
}

static void recmerge_close(struct source *s)
{
    struct recmerge *m = (struct recmerge *)s;

    for (size_t i = 0; i < m->nfiles; i++)
        source_close(m->files[i].source);
    free(m->files);
    buf_release(&m->request);
    free(m);
}

struct source *recmerge_new(struct source *const *files, size_t n)
{
    static const struct source_ops ops = {.next = recmerge_next, .close = recmerge_close};
    struct recmerge *m = mem_zalloc(sizeof(*m));

    m->source.ops = &ops;
    m->files = mem_zalloc(n * sizeof(*m->files));
    m->nfiles = n;
    for (size_t i = 0; i < n; i++)
        m->files[i] = (struct file){.source = files[i], .key = INT64_MIN};
    return &m->source;
}

/*
 * Reads the next item of each file, and compares the requests before recfile_seek() skips them. Returns false if they
 * differ.
 */
static bool match_requests(struct recmerge *m)
{
    for (size_t i = 0; i < m->nfiles; i++) {
        struct file *f = &m->files[i];
        if (!f->ready && !f->ended)
            read_file(m, f, 0);
        if (f->ready && f->item.type == SOURCE_SPECS && !match_request(m, f->item.bytes))
            return false;
    }
    return true;
}

bool recmerge_seek(struct source *merged, int64_t newest, bool *ret_stale)
{
    struct recmerge *m = (struct recmerge *)merged;
    bool moved = false;

    *ret_stale = false;
    if (!match_requests(m))
        return false;
    for (size_t i = 0; i < m->nfiles; i++) {
        struct file *f = &m->files[i];
        if (f->ended || !recfile_seek(f->source, newest))
            continue;
        moved = true;
        *ret_stale |= f->given;
        f->ready = false;
        f->key = INT64_MIN;
    }
    return moved;
}
