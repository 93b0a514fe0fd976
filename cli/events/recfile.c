/* SPDX-License-Identifier: Apache-2.0 */
#include "recfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/mem.h"
#include "../ground/out.h"
#include "crc32c.h"
#include "recpack.h"
#include "recseek.h"

#define HEADER_MAX 4096
#define CHUNK ((size_t)256 << 10)

/* ---- writing ---- */

void recfile_header(struct buf *to)
{
    struct etw_file h = {.version = ETW_FILE_VERSION, .bytes = sizeof(h)};

    memcpy(h.magic, ETW_FILE_MAGIC, sizeof(h.magic));
    h.crc = crc32c(0, &h, sizeof(h));
    buf_add(to, &h, sizeof(h));
}

uint32_t recfile_crc(const struct etw_block *b, const void *bytes)
{
    uint32_t crc = crc32c(0, &b->type, sizeof(b->type) + sizeof(b->node));

    if (b->whole)
        crc = crc32c(crc, &b->whole, sizeof(b->whole));
    return crc32c(crc, bytes, b->bytes);
}

void recfile_block(struct buf *to, unsigned type, unsigned node, struct str bytes)
{
    struct etw_block b = {.bytes = (uint32_t)bytes.len, .type = (uint16_t)type, .node = (uint16_t)node};

    b.crc = recfile_crc(&b, bytes.at);
    buf_add(to, &b, sizeof(b));
    buf_str(to, bytes);
}

/* ---- reading ---- */

struct recfile {
    struct source source;
    int fd;
    char *name;
    struct buf in;    /* unparsed input */
    size_t taken;     /* number of bytes of `in` that were returned already */
    uint64_t offset;  /* file offset of in.data + taken */
    uint64_t first;   /* file offset of the first block; valid if `begun` */
    uint64_t bound;   /* the offset set by recfile_bound() */
    bool eof, begun;  /* begun: the header of the file was read */
    bool truncated;   /* the file ends amid a block, or without a footer */
    unsigned version; /* version of the format, from the header */
    bool scans;       /* returns stored bytes without decompressing them */
    struct recunpack unpack;
    unsigned last_type; /* type of the latest returned block; 0: none */
    uint64_t bytes;     /* number of bytes read from the file */

    /* After recfile_seek(). */
    struct recseek seek;
    bool seeks;                  /* `seek` is open */
    struct recseek_place *place; /* the checkpoint at which the reader began; NULL: it began at the first block */
    uint32_t restoring;          /* number of blocks of that checkpoint that are still to be read */
};

static enum source_got fail_damaged(struct recfile *f, uint64_t at, const char *what, struct err *e)
{
    err_set(e, ERR_RUN, "%s: %s at byte %llu", f->name, what, (unsigned long long)at);
    return SOURCE_FAILED;
}

/* Returns SOURCE_ITEM when `want` unparsed bytes are available. Returns SOURCE_END if the file ends before that. */
static enum source_got fill_input(struct recfile *f, size_t want, int timeout_ms, struct err *e)
{
    while (f->in.len - f->taken < want) {
        if (f->eof)
            return SOURCE_END;
        if (want > f->bound - MIN(f->bound, f->offset))
            return SOURCE_NOTHING;
        if (f->taken) {
            memmove(f->in.data, f->in.data + f->taken, f->in.len - f->taken);
            f->in.len -= f->taken;
            f->taken = 0;
        }
        struct pollfd p = {.fd = f->fd, .events = POLLIN};
        int ready = poll(&p, 1, timeout_ms);
        if (ready == 0 || (ready < 0 && errno == EINTR))
            return SOURCE_NOTHING;
        size_t room = (size_t)MIN((uint64_t)MAX(CHUNK, want - f->in.len), f->bound - f->offset - f->in.len);
        ssize_t n = read(f->fd, buf_room(&f->in, room), room);
        if (n < 0 && (errno == EINTR || errno == EAGAIN))
            return SOURCE_NOTHING;
        if (n < 0) {
            err_set(e, ERR_RUN, "cannot read %s: %s", f->name, strerror(errno));
            return SOURCE_FAILED;
        }
        if (n == 0)
            f->eof = true;
        f->in.len += (size_t)n;
        f->bytes += (uint64_t)n;
    }
    return SOURCE_ITEM;
}

static const char *input_at(const struct recfile *f)
{
    return f->in.data + f->taken;
}

static void recfile_take(struct recfile *f, size_t n)
{
    f->taken += n;
    f->offset += n;
}

static void hint_packed(const struct recfile *f, struct err *e)
{
    static const struct {
        struct str magic;
        const char *reader;
    } packers[] = {{STR("\x1f\x8b"), "gzip -dc"},
                   {STR("\x28\xb5\x2f\xfd"), "zstd -dc"},
                   {STR("\xfd"
                        "7zXZ"),
                    "xz -dc"},
                   {STR("BZh"), "bzip2 -dc"}};

    for (size_t i = 0; i < ARRAY_LEN(packers); i++)
        if (f->in.len >= packers[i].magic.len && !memcmp(f->in.data, packers[i].magic.at, packers[i].magic.len))
            err_hint(e, "it is compressed: %s FILE | etrace replay -", packers[i].reader);
}

static enum source_got recfile_read_header(struct recfile *f, int timeout_ms, struct err *e)
{
    struct etw_file h;
    enum source_got got = fill_input(f, sizeof(h), timeout_ms, e);
    size_t have = MIN(f->in.len - f->taken, sizeof(h.magic));

    if (got == SOURCE_FAILED || got == SOURCE_NOTHING)
        return got;
    if (!have || memcmp(input_at(f), ETW_FILE_MAGIC, have)) {
        err_set(e, ERR_RUN, "%s is not a recording of etrace", f->name);
        hint_packed(f, e);
        return SOURCE_FAILED;
    }
    if (got == SOURCE_END)
        return fail_damaged(f, f->in.len, "the recording is truncated in its header,", e);
    memcpy(&h, input_at(f), sizeof(h));
    if (h.bytes < sizeof(h) || h.bytes > HEADER_MAX)
        return fail_damaged(f, offsetof(struct etw_file, bytes), "the recording's header is damaged", e);
    got = fill_input(f, h.bytes, timeout_ms, e);
    if (got == SOURCE_END)
        return fail_damaged(f, f->in.len, "the recording is truncated in its header,", e);
    if (got != SOURCE_ITEM)
        return got;
    uint32_t zero = 0, crc = crc32c(0, input_at(f), offsetof(struct etw_file, crc));
    crc = crc32c(crc, &zero, sizeof(zero));
    crc = crc32c(crc, input_at(f) + sizeof(h), h.bytes - sizeof(h));
    if (crc != h.crc)
        return fail_damaged(f, 0, "the recording's header is damaged", e);
    if (!h.version || h.version > ETW_FILE_VERSION) {
        err_set(e, ERR_RUN, "%s was recorded in version %u of the format; this etrace reads versions up to %u", f->name,
                h.version, ETW_FILE_VERSION);
        return SOURCE_FAILED;
    }
    f->version = h.version;
    recfile_take(f, h.bytes);
    f->first = f->offset;
    f->begun = true;
    return SOURCE_ITEM;
}

static enum source_got fail_truncated(struct recfile *f, const char *what, struct err *e)
{
    f->truncated = true;
    return fail_damaged(f, f->offset + (f->in.len - f->taken), what, e);
}

/* Reads the next block without decompressing it, and checks its checksum. */
static enum source_got next_block(struct recfile *f, struct etw_block *b, struct str *ret, int timeout_ms,
                                  struct err *e)
{
    enum source_got got = fill_input(f, sizeof(*b), timeout_ms, e);

    if (got == SOURCE_END && f->in.len == f->taken) {
        if (f->last_type == ETW_BLOCK_FOOTER)
            return SOURCE_END;
        return fail_truncated(f, "the recording is truncated: its end is missing", e);
    }
    if (got == SOURCE_END)
        return fail_truncated(f, "the recording is truncated", e);
    if (got != SOURCE_ITEM)
        return got;
    memcpy(b, input_at(f), sizeof(*b));
    if (b->bytes > ETW_MAX_BLOCK || b->whole > ETW_MAX_BLOCK)
        return fail_damaged(f, f->offset, "the recording is damaged: invalid block", e);
    got = fill_input(f, sizeof(*b) + b->bytes, timeout_ms, e);
    if (got == SOURCE_END)
        return fail_truncated(f, "the recording is truncated", e);
    if (got != SOURCE_ITEM)
        return got;
    *ret = (struct str){input_at(f) + sizeof(*b), b->bytes};
    if (recfile_crc(b, ret->at) != b->crc)
        return fail_damaged(f, f->offset, "the recording is damaged: wrong checksum of the block", e);
    if (b->type == ETW_BLOCK_FOOTER && (b->whole ? b->whole : b->bytes) != sizeof(struct etw_footer))
        return fail_damaged(f, f->offset, "the recording is damaged: invalid footer", e);
    return SOURCE_ITEM;
}

/* Opens a regular file for seeking, once. Returns NULL if the source cannot seek. */
static struct recseek *recseek_of(struct recfile *f)
{
    struct stat st;

    if (!f->begun || f->place || f->fd == STDIN_FILENO || fstat(f->fd, &st) || !S_ISREG(st.st_mode))
        return NULL;
    if (!f->seeks)
        recseek_open(&f->seek, f->fd, f->first);
    f->seeks = true;
    return &f->seek;
}

/* Continues to read at another offset. */
static void move_to(struct recfile *f, uint64_t offset)
{
    f->in.len = f->taken = 0;
    f->eof = lseek(f->fd, (off_t)offset, SEEK_SET) < 0;
    f->offset = offset;
}

/*
 * Sets *ret to the type of the item for a block. Returns false for a block that readers skip: an index, a block of a
 * newer etrace, or a checkpoint at which this reader does not begin.
 */
static bool type_of(const struct recfile *f, const struct etw_block *b, enum source_type *ret)
{
    switch ((enum etw_block_type)b->type) {
    case ETW_BLOCK_BATCH:
        *ret = SOURCE_BATCH;
        return true;
    case ETW_BLOCK_FOOTER:
        *ret = SOURCE_FOOTER;
        return true;
    case ETW_BLOCK_SPECS:
        *ret = SOURCE_SPECS;
        return true;
    case ETW_BLOCK_NOTE:
        *ret = SOURCE_NOTE;
        return true;
    case ETW_BLOCK_CHECKPOINT:
        *ret = SOURCE_CHECKPOINT;
        return f->restoring;
    case ETW_BLOCK_STATE:
        *ret = SOURCE_STATE;
        return f->restoring;
    case ETW_BLOCK_INDEX:
        break;
    }
    return false;
}

/* Returns true if the node's restored state already contains this item, and counts the item as skipped. */
static bool skip_covered(struct recfile *f, const struct source_item *item)
{
    struct etw_note note;

    if (!f->place || item->offset > f->place->at)
        return false;
    if (item->type == SOURCE_SPECS)
        return true;
    if (item->type == SOURCE_NOTE && item->bytes.len >= sizeof(note)) {
        memcpy(&note, item->bytes.at, sizeof(note));
        if (note.what == ETW_NOTE_MARK)
            return false;
    }
    for (uint32_t i = 0; i < f->place->head.nodes; i++) {
        struct etw_resume *r = &f->place->nodes[i];
        if (r->node == item->node && r->skip)
            return r->skip--;
    }
    return false;
}

static enum source_got recfile_next(struct source *s, struct source_item *ret, int timeout_ms, struct err *e)
{
    struct recfile *f = (struct recfile *)s;
    struct etw_block b;
    struct str bytes;
    enum source_got got;

    if (!f->begun && (got = recfile_read_header(f, timeout_ms, e)) != SOURCE_ITEM)
        return got;
    if (f->place && !f->restoring && f->offset == f->place->behind && f->place->resume != f->offset) {
        const uint64_t resume = f->place->resume;
        f->place->resume = f->offset; /* move only once: with a bound, a later call may find the same offset */
        move_to(f, resume);
    }
    while ((got = next_block(f, &b, &bytes, timeout_ms, e)) == SOURCE_ITEM) {
        const uint64_t offset = f->offset;
        *ret = (struct source_item){.node = b.node, .bytes = bytes, .offset = offset + sizeof(b)};
        recfile_take(f, sizeof(b) + b.bytes);
        f->last_type = b.type;
        if (!type_of(f, &b, &ret->type) || (ret->type == SOURCE_BATCH && skip_covered(f, ret)))
            continue;
        if (b.whole && !f->scans && !recunpack_block(&f->unpack, &b, bytes.at, &ret->bytes))
            return fail_damaged(f, offset, "the recording is damaged: cannot decompress the block", e);
        if (f->restoring)
            f->restoring--;
        else if (ret->type != SOURCE_BATCH && skip_covered(f, ret))
            continue;
        return SOURCE_ITEM;
    }
    return got;
}

static bool begin_at(struct recfile *f, const struct recseek_place *place)
{
    f->place = mem_alloc(sizeof(*place));
    *f->place = *place;
    f->restoring = 1 + place->head.nodes;
    move_to(f, place->at);
    return true;
}

bool recfile_seek(struct source *s, int64_t newest)
{
    struct recfile *f = (struct recfile *)s;
    struct recseek_place place;
    struct recseek *k = recseek_of(f);

    return k && recseek_find(k, newest, &place) && begin_at(f, &place);
}

bool recfile_seek_place(struct source *s, uint64_t at)
{
    struct recfile *f = (struct recfile *)s;
    struct recseek_place place;
    struct recseek *k = recseek_of(f);

    return k && recseek_read(k, at, &place) && begin_at(f, &place);
}

size_t recfile_places(struct source *s, const uint64_t **ret)
{
    struct recseek *k = recseek_of((struct recfile *)s);

    return k ? recseek_places(k, ret) : 0;
}

bool recfile_place(struct source *s, int64_t newest, uint64_t *ret)
{
    struct recseek_place place;
    struct recseek *k = recseek_of((struct recfile *)s);

    if (!k || !recseek_find(k, newest, &place))
        return false;
    *ret = place.at;
    return true;
}

bool recfile_first(struct source *s, int64_t *ret_key, int64_t *ret_ns)
{
    struct recseek_place place;
    struct recseek *k = recseek_of((struct recfile *)s);

    if (!k || !recseek_find(k, INT64_MAX, &place))
        return false;
    *ret_key = place.head.first_key;
    *ret_ns = place.head.first_ns;
    return true;
}

void recfile_bound(struct source *s, uint64_t end)
{
    ((struct recfile *)s)->bound = end;
}

struct recfile_effort recfile_effort(const struct source *s)
{
    const struct recfile *f = (const struct recfile *)s;

    return (struct recfile_effort){f->bytes + f->seek.bytes, f->unpack.blocks + f->seek.unpack.blocks};
}

static void close_file(struct source *s)
{
    struct recfile *f = (struct recfile *)s;

    if (f->fd > STDIN_FILENO)
        close(f->fd);
    buf_release(&f->in);
    recunpack_release(&f->unpack);
    recseek_close(&f->seek);
    free(f->place);
    free(f->name);
    free(f);
}

static const struct source_ops ops = {.next = recfile_next, .close = close_file};

struct source *recfile_open_fd(int fd, const char *name, struct err *e)
{
    struct stat st;

    /* main() puts an O_PATH directory in the place of a closed descriptor */
    if (read(fd, NULL, 0) < 0 && errno == EBADF) {
        err_set(e, ERR_RUN, "cannot read %s: it is closed", name);
        return NULL;
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        err_set(e, ERR_RUN, "%s is a directory", name);
        return NULL;
    }
    struct recfile *f = mem_zalloc(sizeof(*f));
    f->source.ops = &ops;
    f->fd = fd;
    f->bound = UINT64_MAX;
    f->name = mem_strndup(name, strlen(name));
    return &f->source;
}

struct source *recfile_open(const char *path, struct err *e)
{
    if (!strcmp(path, "-"))
        return recfile_open_fd(STDIN_FILENO, "standard input", e);
    /* do not block in open() on a pipe without a writer; the read waits where signals are handled */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        err_set(e, ERR_RUN, "cannot read %s: %s", path, strerror(errno));
        return NULL;
    }
    return recfile_open_fd(fd, path, e);
}

/* Returns true if the file ends with a footer, so nothing was cut off. */
static bool ends_with_footer(int fd)
{
    struct {
        struct etw_block head;
        char bytes[sizeof(struct etw_footer)];
    } b;
    const off_t end = lseek(fd, 0, SEEK_END);

    return end >= (off_t)sizeof(b) && pread(fd, &b, sizeof(b), end - (off_t)sizeof(b)) == (ssize_t)sizeof(b) &&
           b.head.type == ETW_BLOCK_FOOTER && b.head.bytes == sizeof(b.bytes) &&
           recfile_crc(&b.head, b.bytes) == b.head.crc;
}

/*
 * Finds the end of the last whole block. Returns false, with an error, if this is no recording, or if something other
 * than a cut follows. A block with a wrong length looks as if the file was cut there.
 */
static bool recfile_whole(int fd, const char *path, struct recfile_before *ret, struct err *e)
{
    const int copy = dup(fd);
    struct recfile *f = copy < 0 ? NULL : (struct recfile *)recfile_open_fd(copy, path, e);
    struct source_item item;
    enum source_got got;

    if (copy < 0)
        err_set(e, ERR_RUN, "cannot read %s: %s", path, strerror(errno));
    if (!f)
        return false;
    f->scans = true;
    while ((got = source_next(&f->source, &item, -1, e)) <= SOURCE_NOTHING)
        ;
    const bool good = got == SOURCE_END || (f->truncated && !ends_with_footer(fd));
    if (good)
        *ret = (struct recfile_before){f->offset, f->version != ETW_FILE_VERSION};
    else if (f->begun)
        err_hint(e, "-a appends nothing to a recording that is damaged; etrace browse also shows what is behind the "
                    "damage");
    source_close(&f->source);
    return good;
}

bool recfile_end(const char *path, int64_t *ret_wall_ns, struct err *e)
{
    struct recfile *f = (struct recfile *)recfile_open(path, e);
    struct source_item item;
    struct etw_batch head;
    bool good = false;
    uint64_t at;

    *ret_wall_ns = INT64_MIN;
    if (!f)
        return false;
    if (f->fd == STDIN_FILENO || lseek(f->fd, 0, SEEK_CUR) < 0) {
        err_set(e, ERR_USAGE, "%s is not a file, so its end is unknown before it is read", f->name);
    } else if (recfile_read_header(f, -1, e) != SOURCE_ITEM) {
        good = false;
    } else {
        recseek_open(&f->seek, f->fd, f->first);
        good = true;
    }
    if (good && (at = recseek_last_batch(&f->seek))) {
        move_to(f, at);
        good = recfile_next(&f->source, &item, -1, e) == SOURCE_ITEM;
        if (good && item.bytes.len >= sizeof(head)) {
            memcpy(&head, item.bytes.at, sizeof(head));
            *ret_wall_ns = head.wall_ns;
        }
    }
    source_close(&f->source);
    return good;
}

int recfile_create(const char *path, bool append, struct recfile_before *ret, struct err *e)
{
    struct stat st;
    /* O_RDWR would make this process the reader of its own pipe; O_WRONLY with O_NONBLOCK fails if there is no
     * reader */
    bool pipe = !lstat(path, &st) && S_ISFIFO(st.st_mode);
    int fd = out_open(path, append && !pipe ? O_RDWR : O_WRONLY, false, e);

    if (fd < 0)
        return -1;
    *ret = (struct recfile_before){0};
    if (!append || fstat(fd, &st) || !S_ISREG(st.st_mode) || !st.st_size || recfile_whole(fd, path, ret, e))
        return fd;
    close(fd);
    return -1;
}

/* ---- the request ---- */

void recfile_spec_add(struct buf *to, const char *key, struct str text)
{
    buf_printf(to, "%s %zu\n", key, text.len);
    buf_str(to, text);
    buf_char(to, '\n');
}

void recfile_spec_needs(struct buf *to, unsigned needs)
{
    char text[12];
    const int len = snprintf(text, sizeof(text), "%u", needs);

    if (needs)
        recfile_spec_add(to, "needs", (struct str){text, (size_t)len});
}

bool recfile_spec_next(struct str *rest, struct raw *ret_key, struct raw *ret_text)
{
    const char *end = rest->at + rest->len, *space, *p;
    size_t len = 0;

    if (!rest->len || !(space = memchr(rest->at, ' ', rest->len)))
        return false;
    for (p = space + 1; p < end && *p >= '0' && *p <= '9' && len <= ETW_MAX_BLOCK; p++)
        len = len * 10 + (size_t)(*p - '0');
    if (p == space + 1 || p == end || *p != '\n' || (size_t)(end - p) < len + 2 || p[1 + len] != '\n')
        return false;
    *ret_key = raw_bytes(rest->at, (size_t)(space - rest->at));
    *ret_text = raw_bytes(p + 1, len);
    p += len + 2;
    *rest = (struct str){p, (size_t)(end - p)};
    return true;
}
