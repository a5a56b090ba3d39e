#include "trainer/backend/cuda/images.h"

#include <string.h>

/* Begin and end of what the assembler embeds. */
struct embedded {
    const char *name, *begin, *end;
};

#ifdef RM_CUDA_IMAGES

#define EMBED(name)                                                                                          \
    __asm__(".section .rodata\n.balign 64\ncuda_image_" #name ":\n.incbin \"" RM_CUDA_IMAGES "/" #name       \
            ".fatbin\"\ncuda_image_" #name "_end:\n.byte 0\n.previous\n");                                   \
    extern const char cuda_image_##name[], cuda_image_##name##_end[]

EMBED(exact);
EMBED(model);

static const struct embedded images[] = {{"exact", cuda_image_exact, cuda_image_exact_end},
                                         {"model", cuda_image_model, cuda_image_model_end}};
enum { IMAGES = sizeof images / sizeof *images };

#else

static const struct embedded images[1];
enum { IMAGES = 0 };

#endif

int cuda_images_count(void)
{
    return IMAGES;
}

struct cuda_image cuda_image(int i)
{
    const struct embedded *at = &images[i];
    return (struct cuda_image){at->name, at->begin, (size_t)(at->end - at->begin)};
}

/* A fat binary's own form, as nvcc 13 writes it: a head, then entries of a head and a payload each. */
struct fat_head {
    uint32_t magic;
    uint16_t version, head_bytes;
    uint64_t bytes; /* of the entries */
};

struct fat_entry {
    uint16_t kind, version;
    uint32_t head_bytes;
    uint64_t bytes; /* of the payload */
    uint32_t unused[3];
    uint32_t architecture;
};

static const uint32_t fat_magic = 0xba55ed50;
enum { FAT_CODE = 2 };

int cuda_image_codes(const void *data, size_t bytes, struct cuda_code ret[CUDA_CODES_MAX])
{
    const uint8_t *at = data;
    struct fat_head head;
    struct fat_entry entry;
    int count = 0;
    if (bytes < sizeof head)
        return -1;
    memcpy(&head, at, sizeof head);
    if (head.magic != fat_magic || head.head_bytes < sizeof head || head.head_bytes > bytes ||
        head.bytes > bytes - head.head_bytes)
        return -1;
    size_t left = (size_t)head.bytes;
    for (at += head.head_bytes; left; at += entry.head_bytes + entry.bytes) {
        if (left < sizeof entry || count == CUDA_CODES_MAX)
            return -1;
        memcpy(&entry, at, sizeof entry);
        if (entry.kind != FAT_CODE || entry.head_bytes < sizeof entry || entry.head_bytes > left ||
            entry.bytes > left - entry.head_bytes)
            return -1;
        ret[count++] = (struct cuda_code){entry.architecture, at + entry.head_bytes, (size_t)entry.bytes};
        left -= entry.head_bytes + (size_t)entry.bytes;
    }
    return count;
}
