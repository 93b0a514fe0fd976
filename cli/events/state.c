/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

void state_number(struct buf *to, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_char(to, (char)(v | 0x80));
    buf_char(to, (char)v);
}

void state_time(struct buf *to, int64_t v)
{
    buf_add(to, &v, sizeof(v));
}

void state_text(struct buf *to, struct str text)
{
    state_number(to, text.len);
    buf_str(to, text);
}

uint64_t state_read_number(struct state_in *in)
{
    uint64_t v = 0;

    for (unsigned shift = 0; in->at < in->end && shift < 64; shift += 7) {
        const uint8_t byte = (uint8_t)*in->at++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return v;
    }
    in->bad = true;
    return 0;
}

uint64_t state_read_count(struct state_in *in, uint64_t max)
{
    uint64_t v = state_read_number(in);

    if (v <= max)
        return v;
    in->bad = true;
    return 0;
}

int64_t state_read_time(struct state_in *in)
{
    int64_t v;

    if ((size_t)(in->end - in->at) < sizeof(v)) {
        in->bad = true;
        return 0;
    }
    memcpy(&v, in->at, sizeof(v));
    in->at += sizeof(v);
    return v;
}

struct str state_read_text(struct state_in *in, size_t max)
{
    const size_t len = (size_t)state_read_count(in, max);
    const char *at = in->at;

    if ((size_t)(in->end - at) < len) {
        in->bad = true;
        return (struct str){at, 0};
    }
    in->at += len;
    return (struct str){at, len};
}
