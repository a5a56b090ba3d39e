/* The image of a program's state, a safetensors file: what is read of it here. Pure. */
#ifndef RM_BACKEND_PROGRAM_IMAGE_H
#define RM_BACKEND_PROGRAM_IMAGE_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"

/* SHA-256 of the data of all tensors whose names begin with "model.", in the order in which they lie in the
 * file, without gaps between them (weightsSha256). An image without any: of all data. ERR_DATA: it is no
 * safetensors file of that length. */
int image_digest(const void *image, int64_t bytes, uint8_t out[RM_HASH_BYTES], struct error *err);

#endif
