#include "common/storage/checkpoint/image.h"

#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"

static int no_image(struct error *err, const char *why)
{
    return err_set(err, ERR_DATA, "the program's state is no safetensors file: %s", why);
}

int64_t image_header_length(const void *image, int64_t bytes)
{
    const uint8_t *at = image;
    uint64_t length = 0;
    for (int i = 0; i < IMAGE_LENGTH && bytes >= IMAGE_LENGTH; i++)
        length |= (uint64_t)at[i] << (8 * i);
    bool fits =
        bytes >= IMAGE_LENGTH && length <= IMAGE_HEADER_MAX && (int64_t)length <= bytes - IMAGE_LENGTH;
    return fits ? (int64_t)length : -1;
}

static int compare_parts(const void *a, const void *b)
{
    int64_t x = ((const struct image_part *)a)->begin, y = ((const struct image_part *)b)->begin;
    return (x > y) - (x < y);
}

static bool read_part(const struct js *tensor, int64_t data, struct image_part *out)
{
    const struct js *offsets = js_get(tensor, "data_offsets");
    return js_size(offsets) == 2 && js_as_int(js_at(offsets, 0), &out->begin) &&
           js_as_int(js_at(offsets, 1), &out->end) && out->begin >= 0 && out->begin <= out->end &&
           out->end <= data;
}

/* -1: something is wrong with one. */
static int find_parts(struct js *header, int64_t data, struct image_part *part)
{
    int models = 0, all = 0;
    for (void *it = js_first(header); it; it = js_next(header, it))
        models += !strncmp(js_key(it), "model.", 6);
    for (void *it = js_first(header); it; it = js_next(header, it)) {
        bool wanted = models ? !strncmp(js_key(it), "model.", 6) : strcmp(js_key(it), "__metadata__") != 0;
        if (wanted && !read_part(js_value(it), data, &part[all++]))
            return -1;
    }
    qsort(part, (size_t)all, sizeof *part, compare_parts);
    for (int i = 1; i < all; i++)
        if (part[i].begin < part[i - 1].end)
            return -1;
    return all;
}

int image_weights(const char *text, size_t length, int64_t data, struct image_part **ret, int *ret_parts,
                  struct error *err)
{
    struct error why;
    struct js *header = js_parse(text, length, "header", &why);
    if (!header || js_kind(header) != JS_OBJECT) {
        js_free(header);
        return no_image(err, "its header is no JSON object");
    }
    struct image_part *part = calloc(js_size(header) + 1, sizeof *part);
    int parts = part ? find_parts(header, data, part) : -1;
    js_free(header);
    if (parts < 0) {
        free(part);
        return no_image(err, "a tensor lies outside of it, or over another");
    }
    *ret = part;
    *ret_parts = parts;
    return 0;
}
