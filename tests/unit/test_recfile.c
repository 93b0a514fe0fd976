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

static void test_damage(void)
{
    struct fw w = {0};
    struct buf f = {0};
    struct err e;
    unsigned good = 0, placed = 0;

    fw_begin(&w);
    make(&f, &w);
    put(f.data, f.len);
    is_text(reading(&e), "SBF.", "a complete recording is read");
    for (size_t i = 0; i < f.len; i++) {
        put(f.data, i);
        const char *got = reading(&e);
        char want[64];
        snprintf(want, sizeof(want), "at byte %zu", i);
        good += got[strlen(got) - 1] == '!';
        placed += i == 0 || strstr(e.text, want) != NULL;
    }
    is_number(good, (int64_t)f.len, "every truncation is detected");
    is_number(placed, (int64_t)f.len, "the error names the byte of a truncation");
    put(f.data, f.len - 50);
    is_text(reading(&e), "SB!", "complete blocks are returned before the error");
    good = 0;
    for (size_t bit = 0; bit < 8 * f.len; bit++) {
        f.data[bit / 8] = (char)(f.data[bit / 8] ^ 1 << bit % 8);
        put(f.data, f.len);
        const char *got = reading(&e);
        good += got[strlen(got) - 1] == '!';
        f.data[bit / 8] = (char)(f.data[bit / 8] ^ 1 << bit % 8);
    }
    is_number(good, (int64_t)(8 * f.len), "every flipped bit is detected");
    buf_clear(&f);
    recfile_header(&f);
    struct etw_block large = {.bytes = ETW_MAX_BATCH + 1, .type = ETW_BLOCK_BATCH};
    buf_add(&f, &large, sizeof(large));
    put(f.data, f.len);
    is_text(reading(&e), "!", "a block larger than the maximum is refused");
    ok(strstr(e.text, "a block that cannot be") != NULL, "the error says that the block is invalid");
    put("hello, world, this is no recording", 34);
    is_text(reading(&e), "!", "a file that is not a recording is refused");
    ok(strstr(e.text, "is not a recording of etrace") != NULL, "the error says that the file is not a recording");
    buf_release(&f);
    fw_release(&w);
}

static void test_append(void)
{
    struct fw w = {0}, v = {0};
    struct buf f = {0}, more = {0};
    struct err e;
    bool fresh = false;

    fw_begin(&w);
    make(&f, &w);
    put(f.data, f.len - 50); /* without a footer, as after a killed run */
    int fd = recfile_create(path, true, &fresh, &e);
    ok(fd >= 0 && !fresh, "a truncated recording can be appended to");
    fw_begin(&v);
    make(&more, &v);
    const size_t header = sizeof(struct etw_file);
    ok(write(fd, more.data + header, more.len - header) > 0, "a second run is written");
    close(fd);
    is_text(reading(&e), "SBSBF.", "both runs are read");
    put("hello", 5);
    ok(recfile_create(path, true, &fresh, &e) < 0, "a file that is not a recording is not appended to");
    fd = recfile_create(path, false, &fresh, &e);
    ok(fd >= 0 && fresh, "a file that is not a recording can be overwritten");
    close(fd);
    char link_path[100];
    snprintf(link_path, sizeof(link_path), "%s.link", path);
    ok(!symlink(path, link_path), "the test makes a symbolic link");
    ok(recfile_create(link_path, false, &fresh, &e) < 0, "a symbolic link is not followed");
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

int main(void)
{
    close(mkstemp(path));
    test_crc();
    test_damage();
    test_append();
    test_pipe();
    test_specs();
    unlink(path);
    return tap_end();
}
