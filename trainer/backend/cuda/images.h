/* The GPU's code as it was built in: for each file of kernels one image ("fat binary") that holds code for
 * several kinds of GPU, of which the driver takes its own.
 *
 * Where the program was built without a CUDA compiler there are none: that is no error here. */
#ifndef RM_TRAINER_CUDA_IMAGES_H
#define RM_TRAINER_CUDA_IMAGES_H

#include <stddef.h>
#include <stdint.h>

struct cuda_image {
    const char *name; /* of its file of kernels: "exact" */
    const void *data;
    size_t bytes;
};

int cuda_images_count(void);
struct cuda_image cuda_image(int i);

/* One kind of GPU's code within an image. */
struct cuda_code {
    uint32_t architecture; /* 80, 90, 100: compute capability times ten */
    const void *elf;
    size_t bytes;
};

enum { CUDA_CODES_MAX = 8 };

/* What an image holds, and how many; -1 where it is none, or holds anything but code (text for the driver to
 * compile: that would be a compiler of the user's machine, and other bits). */
int cuda_image_codes(const void *data, size_t bytes, struct cuda_code ret[CUDA_CODES_MAX]);

#endif
