/*
 * A recording written by anybody. The first byte says whether checksums are put right before it is read, so that what
 * stands behind them is reached, and which view is made of it.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events/crc32c.h"
#include "events/recfile.h"
#include "views/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool drop(void *output, struct buf *bytes)
{
    (void)output;
    bytes->len = 0;
    return true;
}

static void put_right(uint8_t *at, size_t left)
{
    struct etw_file h;
    struct etw_block b;

    if (left < sizeof(h))
        return;
    memcpy(&h, at, sizeof(h));
    memcpy(h.magic, ETW_FILE_MAGIC, sizeof(h.magic));
    h.version = ETW_VERSION;
    h.bytes = sizeof(h);
    h.crc = 0;
    h.crc = crc32c(0, &h, sizeof(h));
    memcpy(at, &h, sizeof(h));
    at += sizeof(h), left -= sizeof(h);
    while (left >= sizeof(b)) {
        memcpy(&b, at, sizeof(b));
        b.bytes &= 0xfff;
        b.spare = 0;
        if (left - sizeof(b) < b.bytes)
            return;
        b.crc = crc32c(crc32c(0, &b.type, 4), at + sizeof(b), b.bytes);
        memcpy(at, &b, sizeof(b));
        at += sizeof(b) + b.bytes, left -= sizeof(b) + b.bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view view = {.write = drop};
    struct source_item item;
    struct err e;
    size_t views = 0;

    if (!size)
        return 0;
    while (sink_types[views])
        views++;
    view.type = sink_types[(data[0] >> 1) % views];
    uint8_t *copy = malloc(size);
    memcpy(copy, data + 1, size - 1);
    if (data[0] & 1)
        put_right(copy, size - 1);
    int fd = memfd_create("recording", 0);
    if (write(fd, copy, size - 1) != (ssize_t)(size - 1) || lseek(fd, 0, SEEK_SET))
        abort();
    free(copy);
    struct pipeline *p = pipeline_new(&(struct pipeline_options){.views = &view, .nviews = 1}, &e);
    struct source *s = recfile_open_fd(fd, "a recording", &e);
    while (source_next(s, &item, -1, &e) == SOURCE_ITEM) {
        struct str rest = item.bytes, key, text;
        if (item.type == SOURCE_SPECS)
            while (recfile_spec_next(&rest, &key, &text))
                ;
        pipeline_item(p, &item, &e);
    }
    source_close(s);
    pipeline_end(p);
    pipeline_free(p);
    return 0;
}
