/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include <string.h>

/* Table for the reflected polynomial 0x82f63b78, four bits at a time. */
static const uint32_t nibbles[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint64_t c = (uint32_t)~crc;

    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof(word));
        c = __builtin_ia32_crc32di(c, word);
    }
    for (; len; len--)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
    return ~(uint32_t)c;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, bytes, len) : crc32c_portable(crc, bytes, len);
}
#else
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    return crc32c_portable(crc, bytes, len);
}
#endif
