/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes recordings. If the lowest bit of the first byte is set, the target repairs the checksums first. The other
 * bits select a view and its look. If the input has an odd size, the target begins at a checkpoint. The output must be
 * whole lines of visible text, except that of a recording and of pprof.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "events/crc32c.h"
#include "events/recfile.h"
#include "must.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct look looks[] = {
    {.terms = TERMS_AUTO},
    {.terms = TERMS_ELIXIR, .nodes = true, .file = "x.html"},
    {.terms = TERMS_JSON, .file = "x.svg"},
    {.terms = TERMS_ERLANG, .nodes = true},
};
static const char fields[] =
    "time,node,pid,name,who,type,m,f,a,mfa,call,args,value,class,reason,msg,to,from,caller,message,text";

static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

/* Repairs the place of a checkpoint. */
static void put_place(uint8_t *bytes, size_t run)
{
    struct etw_checkpoint c;

    memcpy(&c, bytes, sizeof(c));
    c.layout = ETW_CHECKPOINT_LAYOUT;
    c.run = run;
    memcpy(bytes, &c, sizeof(c));
}

/* Repairs headers and checksums. Only blocks that begin as a zstd frame stay compressed. */
static void put_right(uint8_t *at, size_t left)
{
    struct etw_file h;
    struct etw_block b;
    const uint8_t *begin = at + sizeof(h);

    if (left < sizeof(h))
        return;
    memcpy(&h, at, sizeof(h));
    memcpy(h.magic, ETW_FILE_MAGIC, sizeof(h.magic));
    h.version = ETW_FILE_VERSION;
    h.bytes = sizeof(h);
    h.crc = 0;
    h.crc = crc32c(0, &h, sizeof(h));
    memcpy(at, &h, sizeof(h));
    at += sizeof(h), left -= sizeof(h);
    while (left >= sizeof(b)) {
        memcpy(&b, at, sizeof(b));
        b.bytes &= 0xfff;
        if (left - sizeof(b) < b.bytes)
            return;
        bool packed = b.bytes >= sizeof(zstd_magic) && !memcmp(at + sizeof(b), zstd_magic, sizeof(zstd_magic));
        b.whole = packed ? b.whole & 0x1fffff : 0;
        if (b.type == ETW_BLOCK_CHECKPOINT && !packed && b.bytes >= sizeof(struct etw_checkpoint))
            put_place(at + sizeof(b), (size_t)(at - begin));
        b.crc = recfile_crc(&b, at + sizeof(b));
        memcpy(at, &b, sizeof(b));
        at += sizeof(b) + b.bytes, left -= sizeof(b) + b.bytes;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view view = {.write = must_be_output};
    struct source_item item;
    struct err e;
    size_t views = 0;

    if (!size)
        return 0;
    while (sink_types[views])
        views++;
    view.type = sink_types[(data[0] >> 1) % views];
    view.output = (void *)view.type;
    view.look = looks[(data[0] >> 1) / views % ARRAY_LEN(looks)];
    if ((data[0] >> 1) / views == ARRAY_LEN(looks) && view.type->flags & SINK_FIELDS)
        view.look.fields = fields;
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
    if (size % 2 && source_next(s, &item, -1, &e) == SOURCE_ITEM) {
        const uint64_t *places;
        int64_t key, ns;
        const size_t n = recfile_places(s, &places);
        recfile_first(s, &key, &ns);
        if (!n || size % 4 == 1 || !recfile_seek_place(s, places[n / 2]))
            recfile_seek(s, INT64_MAX);
    }
    while (source_next(s, &item, -1, &e) == SOURCE_ITEM) {
        struct str rest = item.bytes;
        struct raw key, text;
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
