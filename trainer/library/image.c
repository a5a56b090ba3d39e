/* Lays out a program's state as one safetensors file of a size that never changes. */
#include "trainer/library/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char begin_text[] = "{\"__metadata__\":{\"format\":\"pt\"}";

static const struct {
    const char *name;
    int bytes;
} dtypes[RM_DTYPES] = {
    [RM_BOOL] = {"BOOL", 1}, [RM_U8] = {"U8", 1},   [RM_I8] = {"I8", 1},     [RM_I16] = {"I16", 2},
    [RM_U16] = {"U16", 2},   [RM_F16] = {"F16", 2}, [RM_BF16] = {"BF16", 2}, [RM_I32] = {"I32", 4},
    [RM_U32] = {"U32", 4},   [RM_F32] = {"F32", 4}, [RM_I64] = {"I64", 8},   [RM_U64] = {"U64", 8},
    [RM_F64] = {"F64", 8},
};

static int wrong(struct image_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

static int wrong(struct image_why *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return -1;
}

static bool is_number(const struct rm_tensor *is)
{
    return is->dims == 0 && (is->dtype == RM_I64 || is->dtype == RM_F64);
}

/* "float32[3,4]" in safetensors' words: F32[3,4]. */
static const char *described(const struct rm_tensor *is, char text[160])
{
    int used = snprintf(text, 160, "%s[", dtypes[is->dtype].name);
    for (int i = 0; i < is->dims && used < 140; i++)
        used += snprintf(text + used, (size_t)(160 - used), "%s%lld", i ? "," : "", (long long)is->shape[i]);
    snprintf(text + used, (size_t)(160 - used), "]");
    return text;
}

static int describe_tensor(struct rm_tensor *is, const char *name, enum rm_dtype dtype, int dims,
                           const int64_t *shape, struct image_why *why)
{
    *is = (struct rm_tensor){.dtype = dtype, .dims = dims};
    if ((unsigned)dtype >= RM_DTYPES)
        return wrong(why, "%s: there is no dtype %u", name, (unsigned)dtype);
    if (dims < 0 || dims > RM_DIMS_MAX)
        return wrong(why, "%s has %d dimensions; 0 to %d are possible", name, dims, RM_DIMS_MAX);
    is->bytes = dtypes[dtype].bytes;
    for (int i = 0; i < dims; i++) {
        if (shape[i] < 0 || __builtin_mul_overflow(is->bytes, shape[i], &is->bytes))
            return wrong(why, "%s: %lld is no size of a dimension", name, (long long)shape[i]);
        is->shape[i] = shape[i];
    }
    return 0;
}

/* Names stand in JSON as they are. */
static bool can_be_name(const char *name)
{
    for (const char *at = name; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '"' || *at == '\\')
            return false;
    return name[0] && strcmp(name, "__metadata__") != 0;
}

int image_declare(struct image *image, const char *name, enum rm_dtype dtype, int dims, const int64_t *shape,
                  struct image_why *why)
{
    struct rm_tensor is;
    if (!name || !can_be_name(name))
        return wrong(why, "\"%s\" is no name of a tensor: write letters, without quotes and backslashes",
                     name ? name : "");
    if (describe_tensor(&is, name, dtype, dims, shape, why) < 0)
        return -1;
    if (image->count == image->room) {
        int room = image->room ? 2 * image->room : 64;
        struct image_tensor *more = realloc(image->tensors, (size_t)room * sizeof *more);
        if (!more)
            return wrong(why, "there is no memory for the names of the state");
        image->tensors = more;
        image->room = room;
    }
    char *copy = malloc(strlen(name) + 1);
    if (!copy)
        return wrong(why, "there is no memory for the names of the state");
    memcpy(copy, name, strlen(name) + 1);
    image->tensors[image->count++] = (struct image_tensor){.name = copy, .is = is};
    return 0;
}

static int by_place(const void *a, const void *b)
{
    const struct image_tensor *x = a, *y = b;
    int wide_x = dtypes[x->is.dtype].bytes, wide_y = dtypes[y->is.dtype].bytes;
    return wide_x != wide_y ? wide_x - wide_y : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct image_tensor *const *)a)->name, (*(struct image_tensor *const *)b)->name);
}

/* What is written goes to `into` as far as it has room; `used` counts all of it. */
struct text {
    char *into;
    size_t room, used;
};

static void say_part(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say_part(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t left = text->used < text->room ? text->room - text->used : 0;
    int length = vsnprintf(left ? text->into + text->used : NULL, left, format, arguments);
    text->used += (size_t)length;
    va_end(arguments);
}

/* The header's text without its length and padding; it ends with a NUL where there is room for one. */
static void write_header(struct image *image, struct text *text)
{
    say_part(text, "%s", begin_text);
    int64_t at = 0;
    for (int t = 0; t < image->count; t++) {
        struct image_tensor *tensor = &image->tensors[t];
        tensor->entry_at = 8 + (int64_t)text->used;
        say_part(text, ",\"%s\":{\"dtype\":\"", tensor->name);
        tensor->text_at = 8 + (int64_t)text->used;
        say_part(text, "%s\",\"shape\":[", dtypes[tensor->is.dtype].name);
        for (int i = 0; i < tensor->is.dims; i++)
            say_part(text, "%s%lld", i ? "," : "", (long long)tensor->is.shape[i]);
        say_part(text, "],\"data_offsets\":[%lld,%lld]}", (long long)at, (long long)(at + tensor->is.bytes));
        at += tensor->is.bytes;
    }
    say_part(text, "}");
}

int image_seal(struct image *image, struct image_why *why)
{
    if (!image->count)
        return wrong(why, "the state has no tensor: tell it by rm_put before the first rm_next");
    image->by_name = malloc((size_t)image->count * sizeof(*image->by_name));
    if (!image->by_name)
        return wrong(why, "there is no memory for the names of the state");
    qsort(image->tensors, (size_t)image->count, sizeof *image->tensors, by_place);
    for (int t = 0; t < image->count; t++)
        image->by_name[t] = &image->tensors[t];
    qsort(image->by_name, (size_t)image->count, sizeof(*image->by_name), by_name);
    for (int t = 1; t < image->count; t++)
        if (strcmp(image->by_name[t - 1]->name, image->by_name[t]->name) == 0)
            return wrong(why, "the state has two tensors that are called %s", image->by_name[t]->name);
    struct text text = {0};
    write_header(image, &text);
    int64_t data = 0;
    for (int t = 0; t < image->count; t++)
        if (__builtin_add_overflow(data, image->tensors[t].is.bytes, &data) || data > INT64_MAX / 2)
            return wrong(why, "the state is larger than any memory");
    /* What comes last has the widest elements: where the end is a multiple of 8, all begin at a multiple of
     * theirs. */
    image->header_bytes = 8 + (int64_t)text.used;
    image->header_bytes += 7 - (image->header_bytes + data + 7) % 8;
    image->bytes = image->header_bytes + data;
    int64_t at = image->header_bytes;
    for (int t = 0; t < image->count; at += image->tensors[t++].is.bytes)
        image->tensors[t].at = at;
    return 0;
}

static struct image_tensor *named(const struct image *image, const char *name)
{
    struct image_tensor key = {.name = (char *)name}, *wanted = &key;
    if (!image->by_name || !name)
        return NULL;
    struct image_tensor **found =
        bsearch(&wanted, image->by_name, (size_t)image->count, sizeof(*image->by_name), by_name);
    return found ? *found : NULL;
}

void image_begin(struct image *image)
{
    for (int t = 0; t < image->count; t++)
        image->tensors[t].put = false;
}

static bool same_form(const struct rm_tensor *a, const struct rm_tensor *b)
{
    if (is_number(a) && is_number(b))
        return true;
    return a->dtype == b->dtype && a->dims == b->dims &&
           (a->dims == 0 || memcmp(a->shape, b->shape, (size_t)a->dims * sizeof a->shape[0]) == 0);
}

int image_put(struct image *image, void *into, const char *name, enum rm_dtype dtype, int dims,
              const int64_t *shape, const void *data, struct image_why *why)
{
    struct rm_tensor is;
    struct image_tensor *tensor = named(image, name);
    if (!tensor)
        return wrong(why, "%s is new in the state: what it holds is told before the first step, and stays",
                     name ? name : "(null)");
    if (describe_tensor(&is, name, dtype, dims, shape, why) < 0)
        return -1;
    if (!same_form(&tensor->is, &is)) {
        char was[160], now[160];
        return wrong(why, "%s was %s and is %s now: the state's size may not change", name,
                     described(&tensor->is, was), described(&is, now));
    }
    if (!data && is.bytes)
        return wrong(why, "%s was put without data", name);
    tensor->is.dtype = is.dtype;
    if (is.bytes)
        memcpy((char *)into + tensor->at, data, (size_t)is.bytes);
    tensor->put = true;
    return 0;
}

int image_finish(struct image *image, void *into, struct image_why *why)
{
    for (int t = 0; t < image->count; t++)
        if (!image->tensors[t].put)
            return wrong(why, "%s was not put: all of the state belongs into what is saved",
                         image->tensors[t].name);
    uint64_t length = (uint64_t)image->header_bytes - 8;
    struct text text = {.room = (size_t)length + 1};
    text.into = malloc(text.room);
    if (!text.into)
        return wrong(why, "there is no memory for the header of the state");
    write_header(image, &text);
    memset(text.into + text.used, ' ', (size_t)length - text.used);
    memcpy(into, &length, 8);
    memcpy((char *)into + 8, text.into, (size_t)length);
    free(text.into);
    return 0;
}

/* Which of the tensors the first difference is about. */
static int differs(const struct image *image, const char *from, const char *expected, int64_t length,
                   struct image_why *why)
{
    int64_t at = 8, end = 8 + length;
    while (at < end && from[at] == expected[at - 8])
        at++;
    const struct image_tensor *about = &image->tensors[0];
    for (int t = 1; t < image->count && image->tensors[t].entry_at <= at; t++)
        about = &image->tensors[t];
    char form[160];
    return wrong(why, "the state that came is another program's: it does not have %s as %s there",
                 about->name, described(&about->is, form));
}

int image_check(struct image *image, const void *from, struct image_why *why)
{
    const char *bytes = from;
    uint64_t length = (uint64_t)image->header_bytes - 8, told;
    memcpy(&told, from, 8);
    struct text text = {.room = (size_t)length + 1};
    text.into = malloc(text.room);
    if (!text.into)
        return wrong(why, "there is no memory for the header of the state");
    for (int t = 0; t < image->count; t++) {
        struct image_tensor *tensor = &image->tensors[t];
        if (!is_number(&tensor->is))
            continue;
        if (memcmp(bytes + tensor->text_at, "I64", 3) == 0)
            tensor->is.dtype = RM_I64;
        if (memcmp(bytes + tensor->text_at, "F64", 3) == 0)
            tensor->is.dtype = RM_F64;
    }
    write_header(image, &text);
    memset(text.into + text.used, ' ', (size_t)length - text.used);
    int result = 0;
    if (memcmp(bytes + 8, text.into, (size_t)length) != 0)
        result = differs(image, bytes, text.into, (int64_t)length, why);
    else if (told != length)
        result = wrong(
            why, "the state that came is no image: it says that its header has %llu bytes, and it has %llu",
            (unsigned long long)told, (unsigned long long)length);
    free(text.into);
    return result;
}

int image_find(const struct image *image, const void *from, const char *name, struct rm_tensor *tensor,
               struct image_why *why)
{
    const struct image_tensor *found = named(image, name);
    if (!found)
        return wrong(why, "there is no %s in the state", name ? name : "(null)");
    *tensor = found->is;
    tensor->data = (const char *)from + found->at;
    return 0;
}

void image_clear(struct image *image)
{
    for (int t = 0; t < image->count; t++)
        free(image->tensors[t].name);
    free(image->tensors);
    free(image->by_name);
    *image = (struct image){0};
}
