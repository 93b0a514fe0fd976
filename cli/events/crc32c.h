/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32C (Castagnoli), the checksum of recordings. Start with crc 0; to continue, pass the previous result. */
#ifndef ETRACE_CRC32C_H
#define ETRACE_CRC32C_H

#include "../ground/macros.h"

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t len);

#endif
