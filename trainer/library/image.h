/* The state's image: a safetensors file (github.com/huggingface/safetensors, "Format") whose size never
 * changes.
 *
 * Which tensors there are is told once; image_seal fixes their places: narrowest elements first, then by
 * name. The header is padded with blanks so that all are aligned and the whole is a multiple of 8 bytes,
 * which the trainer handles by words (safetensors' own writer puts the widest first, and may end with an odd
 * number). The same tensors give the same bytes, whoever writes them. A number (no dimension, 8 bytes) may
 * change between I64 and F64: both have three letters in the header. No I/O. */
#ifndef RM_LIBRARY_IMAGE_H
#define RM_LIBRARY_IMAGE_H

#include "trainer/library/ringmaster.h"

#include <stdbool.h>
#include <stddef.h>

struct image_tensor {
    char *name;
    struct rm_tensor is; /* data: unused */
    int64_t at;          /* of its bytes, from the image's start on */
    int64_t entry_at; /* of what the header says of it, and of its dtype there, from the image's start on */
    int64_t text_at;
    bool put; /* since image_begin */
};

struct image {
    struct image_tensor *tensors;
    struct image_tensor **by_name; /* sorted, once sealed */
    int count, room;
    int64_t header_bytes; /* with the eight of its length */
    int64_t bytes;        /* of all; 0: not sealed yet */
};

/* What is wrong goes to why, a sentence; they return 0 or -1. */
struct image_why {
    char text[512];
};

int image_declare(struct image *image, const char *name, enum rm_dtype dtype, int dims, const int64_t *shape,
                  struct image_why *why);
int image_seal(struct image *image, struct image_why *why);

/* Writing: begin, put each once, finish. `into`: image->bytes of memory. */
void image_begin(struct image *image);
int image_put(struct image *image, void *into, const char *name, enum rm_dtype dtype, int dims,
              const int64_t *shape, const void *data, struct image_why *why);
int image_finish(struct image *image, void *into, struct image_why *why);

/* Reading: whether the bytes at `from` are an image of these very tensors; then they can be found. */
int image_check(struct image *image, const void *from, struct image_why *why);
int image_find(const struct image *image, const void *from, const char *name, struct rm_tensor *tensor,
               struct image_why *why);

void image_clear(struct image *image);

#endif
