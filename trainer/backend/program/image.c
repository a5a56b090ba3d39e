#include "trainer/backend/program/image.h"

#include <stdlib.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/image.h"

int image_digest(const void *image, int64_t bytes, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    const char *at = image;
    int64_t length = image_header_length(image, bytes), data = bytes - IMAGE_LENGTH - length;
    struct image_part *part;
    int parts;
    if (length < 0)
        return err_set(err, ERR_DATA,
                       "the program's state is no safetensors file: its header is longer than it");
    if (image_weights(at + IMAGE_LENGTH, (size_t)length, data, &part, &parts, err) < 0)
        return -1;
    struct sha256 *h = sha256_open();
    for (int i = 0; i < parts; i++)
        sha256_add(h, at + IMAGE_LENGTH + length + part[i].begin, (size_t)(part[i].end - part[i].begin));
    sha256_finish(h, out);
    free(part);
    return 0;
}
