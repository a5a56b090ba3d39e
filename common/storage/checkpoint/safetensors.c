/* Reads and writes the header of a safetensors file, and checks each number of it against the others. */
#include "common/storage/checkpoint/safetensors.h"
#include "common/model/arrays.h"
#include "common/model/image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"

static const struct {
    const char *name;
    int bytes;
} dtypes[] = {
    {"F32", 4}, {"F64", 8}, {"F16", 2}, {"BF16", 2}, {"I64", 8},  {"I32", 4},     {"I16", 2},     {"I8", 1},
    {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1},
};

static int dtype_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(name, dtypes[i].name))
            return dtypes[i].bytes;
    return 0;
}

static int parse_shape(struct safetensors_tensor *t, const struct js *shape, struct error *err)
{
    if (js_size(shape) > SAFETENSORS_DIMS_MAX)
        return err_set(err, ERR_DATA, "shape has %zu dimensions, more than %d", js_size(shape),
                       SAFETENSORS_DIMS_MAX);
    t->dims = (int)js_size(shape);
    t->elements = 1;
    for (int i = 0; i < t->dims; i++) {
        if (!js_as_int(js_at(shape, (size_t)i), &t->size[i]) || t->size[i] < 0)
            return err_set(err, ERR_DATA, "shape is not a list of sizes");
        if (__builtin_mul_overflow(t->elements, t->size[i], &t->elements))
            return err_set(err, ERR_DATA, "shape is impossibly large");
    }
    return 0;
}

static int parse_place(struct safetensors_tensor *t, const struct js *offsets, int64_t data_bytes,
                       struct error *err)
{
    int64_t need;
    int bytes = dtype_bytes(t->dtype);
    if (!bytes)
        return err_set(err, ERR_DATA, "dtype %s is unknown", t->dtype);
    if (js_size(offsets) != 2 || !js_as_int(js_at(offsets, 0), &t->begin) ||
        !js_as_int(js_at(offsets, 1), &t->end))
        return err_set(err, ERR_DATA, "data_offsets are not two numbers");
    if (t->begin < 0 || t->end < t->begin || t->end > data_bytes)
        return err_set(err, ERR_DATA, "data_offsets %lld to %lld lie outside the %lld bytes of data",
                       (long long)t->begin, (long long)t->end, (long long)data_bytes);
    if (__builtin_mul_overflow(t->elements, (int64_t)bytes, &need) || need != t->end - t->begin)
        return err_set(err, ERR_DATA, "its shape and type don't fit its %lld bytes",
                       (long long)(t->end - t->begin));
    return 0;
}

static int parse_tensor(struct safetensors_tensor *t, const char *name, const struct js *value,
                        int64_t data_bytes, struct error *err)
{
    const struct js *shape, *offsets;
    if (!text_copy(t->name, sizeof t->name, name))
        return err_set(err, ERR_DATA, "tensor %.40s...: the name is longer than %d bytes", name,
                       SAFETENSORS_NAME_MAX - 1);
    if (js_kind(value) != JS_OBJECT)
        return err_set(err, ERR_DATA, "tensor %s: not an object", name);
    if (js_need_string(value, "dtype", t->dtype, sizeof t->dtype, err) < 0 ||
        js_need(value, "shape", JS_ARRAY, &shape, err) < 0 || parse_shape(t, shape, err) < 0 ||
        js_need(value, "data_offsets", JS_ARRAY, &offsets, err) < 0 ||
        parse_place(t, offsets, data_bytes, err) < 0)
        return err_wrap(err, "tensor %s", name);
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct safetensors_tensor *x = *(struct safetensors_tensor *const *)a;
    const struct safetensors_tensor *y = *(struct safetensors_tensor *const *)b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end);
}

/* The tensors fill the data section, one behind the other. */
static int check_places(const struct safetensors *f, struct error *err)
{
    struct safetensors_tensor **order = calloc((size_t)f->tensors + 1, sizeof(struct safetensors_tensor *));
    int64_t at = 0;
    int result = 0;
    if (!order)
        return err_set(err, ERR_MACHINE, "out of memory");
    for (int i = 0; i < f->tensors; i++)
        order[i] = &f->tensor[i];
    qsort(order, (size_t)f->tensors, sizeof *order, by_place);
    for (int i = 0; i < f->tensors && result == 0; i++) {
        if (order[i]->begin != at)
            result = err_set(err, ERR_DATA, "tensor %s: the data has a gap or an overlap at byte %lld",
                             order[i]->name, (long long)at);
        at = order[i]->end;
    }
    free(order);
    if (result == 0 && at != f->data_bytes)
        return err_set(err, ERR_DATA, "the tensors end at byte %lld of %lld bytes of data", (long long)at,
                       (long long)f->data_bytes);
    return result;
}

static int parse_header(struct safetensors *f, const struct js *header, struct error *err)
{
    if (js_kind(header) != JS_OBJECT || js_size(header) > SAFETENSORS_TENSORS_MAX)
        return err_set(err, ERR_DATA, "the header is not an object of tensors");
    f->tensor = calloc(js_size(header) + 1, sizeof *f->tensor);
    if (!f->tensor)
        return err_set(err, ERR_MACHINE, "out of memory");
    for (void *it = js_first(header); it; it = js_next(header, it)) {
        if (!strcmp(js_key(it), "__metadata__"))
            continue;
        if (parse_tensor(&f->tensor[f->tensors], js_key(it), js_value(it), f->data_bytes, err) < 0)
            return -1;
        f->tensors++;
    }
    return check_places(f, err);
}

static int read_bytes(const struct safetensors *f, void *out, int64_t offset, int64_t count,
                      struct error *err)
{
    struct object_range range = {
        .name = f->name, .offset = offset, .bytes = count, .into = out, .tag = f->tag};
    return object_read(f->store, &range, 1, err);
}

static int read_header_text(struct safetensors *f, char *text, size_t length, struct error *err)
{
    if (read_bytes(f, text, 8, (int64_t)length, err) < 0)
        return -1;
    struct js *header = js_parse(text, length, "header", err);
    if (!header)
        return -1;
    int result = parse_header(f, header, err);
    js_free(header);
    return result;
}

static int read_header(struct safetensors *f, struct error *err)
{
    uint8_t prefix[8];
    uint64_t length = 0;
    struct object_info info;
    if (object_head(f->store, f->name, &info, err) < 0)
        return -1;
    text_copy(f->tag, sizeof f->tag, info.tag);
    if (info.bytes < 8)
        return err_set(err, ERR_DATA, "the file is too short for a safetensors file");
    if (read_bytes(f, prefix, 0, 8, err) < 0)
        return -1;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | prefix[i];
    if (length > SAFETENSORS_HEADER_MAX || (int64_t)length > info.bytes - 8)
        return err_set(err, ERR_DATA, "not a safetensors file, or cut short: a header of %llu bytes in %lld",
                       (unsigned long long)length, (long long)info.bytes);
    f->data_begin = 8 + (int64_t)length;
    f->data_bytes = info.bytes - f->data_begin;
    char *text = malloc(length + 1);
    if (!text)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = read_header_text(f, text, length, err);
    free(text);
    return result;
}

int safetensors_open(struct safetensors **ret, struct object_store *store, const char *name,
                     struct error *err)
{
    struct safetensors *f = calloc(1, sizeof *f);
    struct error why = {0};
    if (!f)
        return err_set(err, ERR_MACHINE, "%s: out of memory", name);
    f->store = store;
    text_copy(f->name, sizeof f->name, name);
    if (read_header(f, &why) < 0) {
        safetensors_free(f);
        return err_set(err, why.code == ERR_PROTOCOL ? ERR_DATA : why.code, "%s: %s", name, why.text);
    }
    *ret = f;
    return 0;
}

void safetensors_free(struct safetensors *file)
{
    if (!file)
        return;
    free(file->tensor);
    free(file);
}

const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name)
{
    for (int i = 0; i < file->tensors; i++)
        if (!strcmp(file->tensor[i].name, name))
            return &file->tensor[i];
    return NULL;
}

/* IEEE half precision; every value of it is one of single precision. */
static float from_half(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16, exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t single;
    float value;
    if (exponent == 31) {
        single = sign | 0x7f800000 | fraction << 13;
    } else if (exponent) {
        single = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        value = (float)fraction * 0x1p-24f; /* zero and subnormal numbers */
        return sign ? -value : value;
    }
    memcpy(&value, &single, sizeof value);
    return value;
}

static float from_bfloat(uint16_t bits)
{
    uint32_t single = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &single, sizeof value);
    return value;
}

/* The 16-bit values lie in the upper half of out, so that widening from the front overtakes none of them. */
static void widen(float *out, int64_t count, float (*from)(uint16_t))
{
    const char *bytes = (const char *)out + 2 * count;
    for (int64_t i = 0; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, bytes + 2 * i, sizeof bits);
        out[i] = from(bits);
    }
}

int safetensors_range(const struct safetensors *file, const struct safetensors_tensor *tensor, float *out,
                      struct object_range *ret, struct error *err)
{
    bool single = !strcmp(tensor->dtype, "F32"), half = !strcmp(tensor->dtype, "F16");
    if (!single && !half && strcmp(tensor->dtype, "BF16") != 0)
        return err_set(err, ERR_DATA, "%s: tensor %s is of type %s; only F32, F16 and BF16 can be read",
                       file->name, tensor->name, tensor->dtype);
    int64_t bytes = tensor->end - tensor->begin;
    *ret = (struct object_range){.name = file->name,
                                 .offset = file->data_begin + tensor->begin,
                                 .bytes = bytes,
                                 .into = (char *)out + (single ? 0 : bytes),
                                 .tag = file->tag};
    return 0;
}

void safetensors_widen(const struct safetensors_tensor *tensor, float *out)
{
    if (strcmp(tensor->dtype, "F32") != 0)
        widen(out, tensor->elements, strcmp(tensor->dtype, "F16") ? from_bfloat : from_half);
}

int safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor, float *out,
                     struct error *err)
{
    struct object_range range;
    if (safetensors_range(file, tensor, out, &range, err) < 0)
        return -1;
    if (object_read(file->store, &range, 1, err) < 0)
        return err_wrap(err, "tensor %s", tensor->name);
    safetensors_widen(tensor, out);
    return 0;
}

/* Length, JSON, and spaces up to a multiple of 8, so that the data is aligned. */
static void frame_header(const struct js *header, struct str *out)
{
    struct str text = str_init(SAFETENSORS_HEADER_MAX);
    js_print(header, &text);
    while (text.length % 8)
        str_adds(&text, " ");
    for (int i = 0; i < 8; i++) {
        uint8_t byte = (uint8_t)((uint64_t)text.length >> (8 * i));
        str_add(out, &byte, 1);
    }
    str_add(out, text.data, text.length);
    str_clear(&text);
}

static void add_tensor(struct js *header, const char *name, const int64_t *size, int dims, int64_t first,
                       int64_t count)
{
    struct js *tensor = js_object(), *shape = js_array(), *offsets = js_array();
    for (int i = 0; i < dims; i++)
        js_push_int(shape, size[i]);
    js_push_int(offsets, 4 * first);
    js_push_int(offsets, 4 * (first + count));
    js_set_string(tensor, "dtype", "F32");
    js_set(tensor, "shape", shape);
    js_set(tensor, "data_offsets", offsets);
    js_set(header, name, tensor);
}

void safetensors_model_header(const struct model_layout *layout, struct str *out)
{
    if (image_bytes(&layout->shape))
        return;
    struct js *header = js_object(), *metadata = js_object();
    js_set_string(metadata, "format", "pt");
    js_set(header, "__metadata__", metadata);
    for (int i = 0; i < layout->tensors; i++) {
        const struct model_tensor *t = &layout->tensor[i];
        add_tensor(header, t->name, t->size, t->dims, t->first, t->count);
    }
    frame_header(header, out);
    js_free(header);
}

static void set_number_text(struct js *object, const char *key, int64_t value)
{
    struct str text = str_init(32);
    str_addf(&text, "%lld", (long long)value);
    js_set_string(object, key, str_text(&text));
    str_clear(&text);
}

void safetensors_optimizer_header(const struct safetensors_slice *slice, struct str *out)
{
    int64_t count = slice->range.count;
    struct js *header = js_object(), *metadata = js_object();
    js_set_string(metadata, "format", "pt");
    set_number_text(metadata, "first", slice->range.first);
    set_number_text(metadata, "count", count);
    set_number_text(metadata, "part", slice->part + 1);
    set_number_text(metadata, "parts", slice->parts);
    js_set(header, "__metadata__", metadata);
    for (int i = 1; i < MODEL_ARRAYS; i++)
        add_tensor(header, model_array(i)->stored, &count, 1, (i - 1) * count, count);
    frame_header(header, out);
    js_free(header);
}
