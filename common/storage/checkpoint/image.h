/* The image of a user's program's state, a safetensors file: which of its bytes are the weights. Pure. */
#ifndef RM_STORE_IMAGE_H
#define RM_STORE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

/* Bytes from the start of the data section. */
struct image_part {
    int64_t begin, end;
};

enum { IMAGE_LENGTH = 8, IMAGE_HEADER_MAX = 16 << 20 };

/* How long the header is that the first IMAGE_LENGTH bytes of an image of that size tell of; -1: there is
 * none. */
int64_t image_header_length(const void *image, int64_t bytes);

/* Where the tensors lie whose names begin with "model.", by their places; all tensors where none is called
 * so. header: the JSON; data: bytes of the data section. *ret: for free(). ERR_DATA: it is no header of such
 * a file. */
int image_weights(const char *header, size_t length, int64_t data, struct image_part **ret, int *ret_parts,
                  struct error *err);

#endif
