/* CRC-32C (Castagnoli), by the CPU's instruction where it has one. Finds what broke on the way; proves
 * nothing about who sent it. */
#ifndef RM_IO_CRC32C_H
#define RM_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t chunk_crc32c(const void *bytes, size_t length);

#endif
