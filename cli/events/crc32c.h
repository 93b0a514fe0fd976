/* CRC-32C (Castagnoli), as recordings use it. crc32c(0, …) begins; the result of one run goes into the next. */
#ifndef ETRACE_CRC32C_H
#define ETRACE_CRC32C_H

#include "../ground/macros.h"

uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t len);

#endif
