/* CRC-32C (Castagnoli), the checksum of x-amz-checksum-crc32c. */
#ifndef RM_OBJECT_CRC32C_H
#define RM_OBJECT_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `bytes` behind what gave `crc` (0 at the start), by the processor's instruction where it has one. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t count);

/* The same, slow and everywhere. */
uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t count);

#endif
