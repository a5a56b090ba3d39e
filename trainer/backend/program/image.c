#include "trainer/backend/program/image.h"

#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/wire/json.h"

enum { LENGTH = 8, HEADER_MAX = 16 << 20 };

struct part {
    int64_t begin, end; /* of the data section */
};

static int no_image(struct error *err, const char *why)
{
    return err_set(err, ERR_DATA, "the program's state is no safetensors file: %s", why);
}

static int compare_parts(const void *a, const void *b)
{
    int64_t x = ((const struct part *)a)->begin, y = ((const struct part *)b)->begin;
    return (x > y) - (x < y);
}

static bool read_part(const struct js *tensor, int64_t data, struct part *out)
{
    const struct js *offsets = js_get(tensor, "data_offsets");
    return js_size(offsets) == 2 && js_as_int(js_at(offsets, 0), &out->begin) &&
           js_as_int(js_at(offsets, 1), &out->end) && out->begin >= 0 && out->begin <= out->end &&
           out->end <= data;
}

/* The parts with the weights; all where none is called that. -1: something is wrong with one. */
static int find_parts(struct js *header, int64_t data, struct part *part)
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
    return all;
}

int image_digest(const void *image, int64_t bytes, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    const uint8_t *at = image;
    uint64_t length = 0;
    for (int i = 0; i < LENGTH && bytes >= LENGTH; i++)
        length |= (uint64_t)at[i] << (8 * i);
    if (bytes < LENGTH || length > HEADER_MAX || (int64_t)length > bytes - LENGTH)
        return no_image(err, "its header is longer than it");
    struct error why;
    struct js *header = js_parse((const char *)at + LENGTH, (size_t)length, "header", &why);
    if (!header || js_kind(header) != JS_OBJECT) {
        js_free(header);
        return no_image(err, "its header is no JSON object");
    }
    int64_t data = bytes - LENGTH - (int64_t)length;
    struct part *part = calloc(js_size(header) + 1, sizeof *part);
    int parts = part ? find_parts(header, data, part) : -1;
    struct sha256 *h = sha256_open();
    for (int i = 0; i < parts; i++)
        sha256_add(h, at + LENGTH + length + part[i].begin, (size_t)(part[i].end - part[i].begin));
    sha256_finish(h, out);
    free(part);
    js_free(header);
    return parts < 0 ? no_image(err, "a tensor lies outside of it") : 0;
}
