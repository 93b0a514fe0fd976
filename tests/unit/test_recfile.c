/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests recordings: the reader reads what the writer wrote, finds damage with its offset, and returns everything
 * before it.
 */
#include "pipetest.h"

#include <fcntl.h>
#include <unistd.h>

#include "events/crc32c.h"
#include "events/recfile.h"
#include "events/recpack.h"
#include "events/recseek.h"
#include "ground/mem.h"
#include "ground/out.h"

static char path[] = "/tmp/etrace-test-XXXXXX";

static void put(const char *bytes, size_t len)
{
    int fd = open(path, O_WRONLY | O_TRUNC);

    if (write(fd, bytes, len) != (ssize_t)len)
        ok(false, "the file is written");
    close(fd);
}

/* Reads all items and returns a letter for each: B batch, S specs, F footer; then . for the end or ! for an error. */
static const char *reading(struct err *e)
{
    static char got[100];
    struct source_item item;
    enum source_got g;
    size_t n = 0;
    struct source *s = recfile_open(path, e);

    while (s && (g = source_next(s, &item, -1, e)) <= SOURCE_NOTHING && n + 3 < sizeof(got))
        if (g == SOURCE_ITEM)
            got[n++] = "BSF"[item.type];
    got[n++] = s && g == SOURCE_END ? '.' : '!';
    got[n] = 0;
    source_close(s);
    return got;
}

static void make(struct buf *f, struct fw *w)
{
    struct etw_footer footer = {.seen = 1};

    recfile_header(f);
    recfile_block(f, ETW_BLOCK_SPECS, 0, STR("expr 5\nm:f/1\n"));
    fw_ring(w, 1);
    fw_call(w, 100, 84, "m", "f", 1);
    fw_atom(w, "x");
    fw_frame_end(w);
    recfile_block(f, ETW_BLOCK_BATCH, 0, fw_batch(w, 1000, 1000, 1000, ETW_BATCH_LAST));
    recfile_block(f, ETW_BLOCK_FOOTER, 0, (struct str){(const char *)&footer, sizeof(footer)});
}

/* Returns the recording with compressed blocks, as an output writes it. */
static struct buf packed(const struct buf *f)
{
    struct buf to = {0};
    void *pack = recpack.open();

    recpack.bytes(pack, buf_view(f), &to);
    recpack.close(pack);
    return to;
}

static void test_crc(void)
{
    char text[300];

    is_number(crc32c(0, "123456789", 9), 0xe3069283, "the check value of CRC-32C");
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(i * 7);
    bool same = true;
    for (size_t i = 0; i < 32; i++)
        for (size_t len = 0; len + i <= sizeof(text); len += 13)
            same &= crc32c(5, text + i, len) == crc32c_portable(5, text + i, len);
    ok(same, "the fast and the portable CRC are equal");
}

/* Cuts and flips every byte of the recording, which consists of specs, a batch and a footer. */
static void test_damaged(struct buf *f)
{
    struct err e;
    unsigned good = 0, placed = 0;

    put(f->data, f->len);
    is_text(reading(&e), "SBF.", "a complete recording is read");
    for (size_t i = 0; i < f->len; i++) {
        put(f->data, i);
        const char *got = reading(&e);
        char want[64];
        snprintf(want, sizeof(want), "at byte %zu", i);
        good += got[strlen(got) - 1] == '!';
        placed += i == 0 || strstr(e.text, want) != NULL;
    }
    is_number(good, (int64_t)f->len, "every truncation is detected");
    is_number(placed, (int64_t)f->len, "the error names the byte of a truncation");
    put(f->data, f->len - 20);
    is_text(reading(&e), "SB!", "complete blocks are returned before the error");
    good = 0;
    for (size_t bit = 0; bit < 8 * f->len; bit++) {
        f->data[bit / 8] = (char)(f->data[bit / 8] ^ 1 << bit % 8);
        put(f->data, f->len);
        const char *got = reading(&e);
        good += got[strlen(got) - 1] == '!';
        f->data[bit / 8] = (char)(f->data[bit / 8] ^ 1 << bit % 8);
    }
    is_number(good, (int64_t)(8 * f->len), "every flipped bit is detected");
}

static void test_damage(void)
{
    struct fw w = {0};
    struct buf f = {0};
    struct err e;

    fw_begin(&w);
    make(&f, &w);
    struct buf small = packed(&f);
    ok(small.len < f.len - 100, "compressed blocks are smaller");
    test_damaged(&f);
    test_damaged(&small);
    buf_release(&small);
    buf_clear(&f);
    recfile_header(&f);
    struct etw_block large = {.bytes = ETW_MAX_BATCH + 1, .type = ETW_BLOCK_BATCH};
    buf_add(&f, &large, sizeof(large));
    put(f.data, f.len);
    is_text(reading(&e), "!", "a block larger than the maximum is refused");
    ok(strstr(e.text, "invalid block") != NULL, "the error says that the block is invalid");
    put("hello, world, this is no recording", 34);
    is_text(reading(&e), "!", "a file that is not a recording is refused");
    ok(strstr(e.text, "is not a recording of etrace") != NULL, "the error says that the file is not a recording");
    buf_release(&f);
    fw_release(&w);
}

/* Writes a recording of one block with this head, and a checksum that fits. Returns what its reader says. */
static const char *reading_block(struct etw_block b, const char *bytes, struct err *e)
{
    struct buf f = {0};

    b.type = ETW_BLOCK_BATCH;
    b.crc = recfile_crc(&b, bytes);
    recfile_header(&f);
    buf_add(&f, &b, sizeof(b));
    buf_add(&f, bytes, b.bytes);
    put(f.data, f.len);
    buf_release(&f);
    return reading(e);
}

static void test_packed(void)
{
    struct buf zeros = {0}, f = {0};
    struct etw_block b;
    struct err e;

    buf_room(&zeros, ETW_MAX_BLOCK);
    memset(zeros.data, 0, ETW_MAX_BLOCK);
    recfile_block(&f, ETW_BLOCK_BATCH, 0, (struct str){zeros.data, ETW_MAX_BLOCK});
    struct buf small = packed(&f);
    const char *frame = small.data + sizeof(b);
    memcpy(&b, small.data, sizeof(b));
    ok(b.whole == ETW_MAX_BLOCK && small.len < 1000, "a large block of zeros becomes small");
    is_text(reading_block(b, frame, &e), "B!", "and is read");
    b.whole--;
    is_text(reading_block(b, frame, &e), "!", "a frame of more bytes than the block says is refused");
    ok(strstr(e.text, "cannot decompress the block at byte 24") != NULL, "the error names the block: %s", e.text);
    b.whole = 1;
    is_text(reading_block(b, frame, &e), "!", "a frame of many more bytes than the block says is refused");
    b.whole = ETW_MAX_BLOCK + 1;
    is_text(reading_block(b, frame, &e), "!", "a block that says more than the maximum is refused");
    ok(strstr(e.text, "invalid block") != NULL, "before it is decompressed");
    b.whole = ETW_MAX_BLOCK;
    b.bytes--;
    is_text(reading_block(b, frame, &e), "!", "a frame that ends early is refused");
    b.bytes = 0;
    is_text(reading_block(b, frame, &e), "!", "a frame without bytes is refused");
    b.bytes = 20;
    is_text(reading_block(b, zeros.data, &e), "!", "bytes that are no frame are refused");
    buf_release(&small);
    buf_clear(&f);
    buf_add(&f, "hello, world, this is no recording", 34);
    small = packed(&f);
    ok(small.len == 34 && !memcmp(small.data, f.data, 34), "bytes that are no block are written as they are");
    buf_release(&small);
    buf_release(&f);
    buf_release(&zeros);
}

/* Appends a compressed run to a file with a header of version 1. */
/* Appends a run, the bytes of a recording without its header, as a trace does. Closes the descriptor. */
static void append_to(int fd, const struct recfile_before *before, const struct buf *run)
{
    struct out *o = out_new(fd, true, path);
    const size_t header = sizeof(struct etw_file);
    struct buf first = {0};

    if (before->old)
        recfile_header(&first);
    out_continues(o, before->whole, buf_view(&first));
    out_write(o, run->data + header, run->len - header);
    out_begin(o);
    while (out_backlog(o, 0))
        usleep(1000);
    out_free(o);
    buf_release(&first);
}

static void test_append_to_version_1(void)
{
    struct fw w = {0}, v = {0};
    struct buf f = {0}, more = {0};
    struct err e;
    struct recfile_before before;

    fw_begin(&w);
    make(&f, &w);
    struct etw_file h = {.version = 1, .bytes = sizeof(h)};
    memcpy(h.magic, ETW_FILE_MAGIC, sizeof(h.magic));
    h.crc = crc32c(0, &h, sizeof(h));
    memcpy(f.data, &h, sizeof(h));
    put(f.data, f.len);
    is_text(reading(&e), "SBF.", "a recording of version 1 is read");
    int fd = recfile_create(path, true, &before, &e);
    ok(fd >= 0 && before.whole == f.len && before.old, "a recording of version 1 can be appended to");
    fw_begin(&v);
    make(&more, &v);
    struct buf small = packed(&more);
    append_to(fd, &before, &small);
    fd = open(path, O_RDONLY);
    ok(pread(fd, &h, sizeof(h), 0) == sizeof(h) && h.version == 2, "older readers refuse the file by its version");
    close(fd);
    is_text(reading(&e), "SBFSBF.", "both runs are read");
    buf_release(&f);
    buf_release(&more);
    buf_release(&small);
    fw_release(&w);
    fw_release(&v);
}

static void test_append(void)
{
    struct fw w = {0}, v = {0};
    struct buf f = {0}, more = {0};
    struct err e;
    struct recfile_before before;

    fw_begin(&w);
    make(&f, &w);
    put(f.data, f.len - 50); /* cut the footer off, as if the run was killed */
    int fd = recfile_create(path, true, &before, &e);
    ok(fd >= 0 && before.whole && before.whole < f.len - 50 && !before.old, "a truncated recording can be appended to");
    is_number(lseek(fd, 0, SEEK_END), (int64_t)f.len - 50, "it is unchanged until the run begins");
    fw_begin(&v);
    make(&more, &v);
    append_to(fd, &before, &more);
    is_text(reading(&e), "SBSBF.", "both runs are read");
    const size_t header = sizeof(struct etw_file);
    const size_t places[] = {header + offsetof(struct etw_block, crc), header + offsetof(struct etw_block, bytes) + 2};
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        f.data[places[i]] ^= 1;
        put(f.data, f.len);
        ok(recfile_create(path, true, &before, &e) < 0 && e.hint[0], "a recording that is damaged is not appended to");
        f.data[places[i]] ^= 1;
    }
    put("hello", 5);
    ok(recfile_create(path, true, &before, &e) < 0, "a file that is not a recording is not appended to");
    fd = recfile_create(path, false, &before, &e);
    ok(fd >= 0 && !before.whole, "a file that is not a recording can be overwritten");
    close(fd);
    char link_path[100];
    snprintf(link_path, sizeof(link_path), "%s.link", path);
    ok(!symlink(path, link_path), "the test makes a symbolic link");
    ok(recfile_create(link_path, false, &before, &e) < 0, "a symbolic link is not followed");
    unlink(link_path);
    buf_release(&f);
    buf_release(&more);
    fw_release(&w);
    fw_release(&v);
}

static void test_pipe(void)
{
    struct fw w = {0};
    struct buf f = {0};
    struct err e;
    struct source_item item;
    int p[2];
    unsigned items = 0;
    enum source_got g;

    fw_begin(&w);
    make(&f, &w);
    ok(!pipe(p), "the test makes a pipe");
    struct source *s = recfile_open_fd(p[0], "standard input", &e);
    is_number(source_next(s, &item, 0, &e), SOURCE_NOTHING, "an empty pipe has no block yet");
    for (size_t i = 0; i < f.len; i += 7) {
        size_t n = f.len - i < 7 ? f.len - i : 7;
        if (write(p[1], f.data + i, n) < 0)
            break;
        while ((g = source_next(s, &item, 0, &e)) == SOURCE_ITEM)
            items++;
    }
    close(p[1]);
    is_number(items, 3, "blocks of a pipe are returned as they arrive");
    is_number(source_next(s, &item, -1, &e), SOURCE_END, "the end of the pipe is the end of the recording");
    source_close(s);
    buf_release(&f);
    fw_release(&w);
}

static void test_specs(void)
{
    struct buf b = {0};
    struct str rest;
    struct raw key, text;

    recfile_spec_add(&b, "expr", STR("m:f/1\n-> return"));
    recfile_spec_add(&b, "let", STR("N=5"));
    rest = buf_view(&b);
    ok(recfile_spec_next(&rest, &key, &text) && text.len == 15 && key.len == 4, "the first entry is read");
    ok(recfile_spec_next(&rest, &key, &text) && text.len == 3 && raw_is(key, "let"), "the second entry is read");
    ok(!recfile_spec_next(&rest, &key, &text), "the entries end");
    bool survived = true;
    for (size_t i = 0; i < b.len; i++) {
        rest = (struct str){b.data, i};
        while (recfile_spec_next(&rest, &key, &text))
            survived &= raw_view(text).at + text.len <= b.data + i;
    }
    ok(survived, "no byte beyond a truncated entry is read");
    buf_release(&b);
}

/* Searches a file that consists of headers of this block, which are all listed as checkpoints. */
static void test_forged_places(struct etw_block b, uint64_t most_find, uint64_t most_last, const char *what)
{
    enum { BLOCKS = 100000 };
    const int fd = open(path, O_RDWR | O_TRUNC);
    struct recseek s = {.fd = fd, .size = (uint64_t)BLOCKS * sizeof(b), .found = true};
    struct recseek_place place;
    struct buf f = {0};

    for (size_t i = 0; i < BLOCKS; i++)
        buf_add(&f, &b, sizeof(b));
    bool ready = write(fd, f.data, f.len) == (ssize_t)f.len;
    s.places = mem_grow(NULL, &s.cap, BLOCKS / 2, sizeof(*s.places));
    for (s.count = 0; s.count < BLOCKS / 2; s.count++)
        s.places[s.count] = s.count * sizeof(b);
    ok(ready && !recseek_last_batch(&s) && s.bytes <= most_last, "%s: the last batch is searched once in each block",
       what);
    s.bytes = 0;
    ok(!recseek_find(&s, INT64_MAX, &place) && s.bytes <= most_find, "%s: a search does not read all of them", what);
    recseek_close(&s);
    buf_release(&f);
    close(fd);
}

static bool write_packed(void *state, struct buf *bytes)
{
    void **both = state;

    recpack.bytes(both[0], buf_view(bytes), both[1]);
    bytes->len = 0;
    return true;
}

/* Makes a recording with a checkpoint after every batch. */
static void make_checkpoints(struct buf *f, struct fw *w)
{
    void *both[] = {recpack.open(), f};
    struct view view = {.type = sink_by_name("record"), .write = write_packed, .output = both};
    struct pipeline_options o = {.views = &view, .nviews = 1, .apart = 1};
    struct err e;
    struct pipeline *p = pipeline_new(&o, &e);

    pipeline_specs(p, 0, STR("expr 5\nm:f/1\n"));
    for (uint64_t i = 0; i < 5; i++) {
        fw_ring(w, 1);
        fw_call(w, 100 + 1000 * i, 84, "m", "f", 1);
        fw_atom(w, "x");
        fw_frame_end(w);
        pipeline_batch(p, 0, fw_batch(w, 1000 * (i + 1), (int64_t)(1000 * (i + 1)), 1000 * (i + 1), 0), &e);
    }
    pipeline_end(p);
    pipeline_free(p);
    recpack.close(both[0]);
}

/* Returns the number of batches that are read from a checkpoint on, or -1 if the reader does not begin there. */
static int64_t batches_from(uint64_t place)
{
    struct source_item item;
    struct err e;
    struct source *s = recfile_open(path, &e);
    int64_t n = 0;

    source_next(s, &item, -1, &e);
    bool began =
        recfile_seek_place(s, place) && source_next(s, &item, -1, &e) == SOURCE_ITEM && item.type == SOURCE_CHECKPOINT;
    while (began && source_next(s, &item, -1, &e) == SOURCE_ITEM)
        n += item.type == SOURCE_BATCH;
    source_close(s);
    return began ? n : -1;
}

static void test_places(void)
{
    struct fw w = {0};
    struct buf f = {0};
    struct source_item item;
    struct err e;
    const uint64_t *places;
    uint64_t at[8] = {0}, last;

    fw_begin(&w);
    make_checkpoints(&f, &w);
    put(f.data, f.len);
    struct source *s = recfile_open(path, &e);
    is_number((int64_t)recfile_places(s, &places), 0, "before its header is read a file has no checkpoints");
    source_next(s, &item, -1, &e);
    is_number((int64_t)recfile_places(s, &places), 5, "the checkpoints are found");
    memcpy(at, places, 5 * sizeof(*at));
    ok(recfile_place(s, INT64_MAX, &last) && last == at[4], "the last one is that before the end of time");
    ok(!recfile_place(s, INT64_MIN, &last), "none is before the first event");
    source_close(s);
    unsigned good = 0;
    for (unsigned i = 0; i < 5; i++)
        good += batches_from(at[i]) == 4 - i;
    is_number(good, 5, "a reader begins at each of them");
    is_number(batches_from(at[2] + 1), -1, "but at no other place");
    f.data[at[2] + 40] ^= 1;
    put(f.data, f.len);
    is_number(batches_from(at[2]), -1, "and not at a damaged one");
    is_number(batches_from(at[3]), 1, "which does not matter for the next one");
    buf_release(&f);
    fw_release(&w);
}

int main(void)
{
    close(mkstemp(path));
    test_crc();
    test_damage();
    test_packed();
    test_append();
    test_append_to_version_1();
    test_pipe();
    test_specs();
    test_places();
    test_forged_places((struct etw_block){.type = ETW_BLOCK_CHECKPOINT}, 100000, 2 * 1600000, "empty checkpoints");
    test_forged_places((struct etw_block){.type = ETW_BLOCK_CHECKPOINT, .bytes = 500000}, 20 * 500000, 2 * 1600000,
                       "checkpoints of half a megabyte");
    unlink(path);
    return tap_end();
}
