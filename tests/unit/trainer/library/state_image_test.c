/* The state's image: the same bytes for the same state, a size that stays, and nothing read that is not
 * there. */
#include "trainer/library/image.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const float weights[6] = {1, 2, 3, 4, 5, 6};
static const int64_t shape[2] = {2, 3};
static struct image_why why;

struct told {
    const char *name;
    enum rm_dtype dtype;
    int dims;
    const void *data;
};

static const double rate = 0.5;
static const int64_t steps = 7;
static const unsigned char flag = 1;

static const struct told all[] = {
    {"model.b", RM_F32, 2, weights},        {"made", RM_BOOL, 0, &flag},
    {"optimizer.lr", RM_F64, 0, &rate},     {"model.a", RM_F32, 2, weights},
    {"scheduler.steps", RM_I64, 0, &steps},
};
enum { ALL = sizeof all / sizeof all[0] };

static struct image declared(int from)
{
    struct image image = {0};
    for (int i = 0; i < ALL; i++) {
        const struct told *t = &all[(from + i) % ALL];
        cr_assert_eq(image_declare(&image, t->name, t->dtype, t->dims, shape, &why), 0, "%s", why.text);
    }
    cr_assert_eq(image_seal(&image, &why), 0, "%s", why.text);
    return image;
}

static char *written(struct image *image, int from)
{
    char *bytes = malloc((size_t)image->bytes);
    memset(bytes, 0x55, (size_t)image->bytes);
    image_begin(image);
    for (int i = 0; i < ALL; i++) {
        const struct told *t = &all[(from + i) % ALL];
        cr_assert_eq(image_put(image, bytes, t->name, t->dtype, t->dims, shape, t->data, &why), 0, "%s",
                     why.text);
    }
    cr_assert_eq(image_finish(image, bytes, &why), 0, "%s", why.text);
    return bytes;
}

Test(image, is_a_safetensors_file_with_the_narrowest_first_and_names_in_order)
{
    struct image image = declared(0);
    char *bytes = written(&image, 0);
    const char *expected = "{\"__metadata__\":{\"format\":\"pt\"}"
                           ",\"made\":{\"dtype\":\"BOOL\",\"shape\":[],\"data_offsets\":[0,1]}"
                           ",\"model.a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[1,25]}"
                           ",\"model.b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[25,49]}"
                           ",\"optimizer.lr\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[49,57]}"
                           ",\"scheduler.steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[57,65]}}";
    uint64_t length;
    memcpy(&length, bytes, 8);
    cr_assert_eq((int64_t)length + 8, image.header_bytes);
    cr_assert_eq(image.bytes, image.header_bytes + 65);
    cr_assert_eq(memcmp(bytes + 8, expected, strlen(expected)), 0, "%.*s", (int)length, bytes + 8);
    cr_assert_lt(length, strlen(expected) + 8);
    for (size_t at = strlen(expected); at < length; at++)
        cr_assert_eq(bytes[8 + at], ' ');
    free(bytes);
    image_clear(&image);
}

Test(image, has_the_same_bytes_whatever_the_order_in_which_it_is_told_and_put)
{
    struct image first = declared(0);
    char *bytes = written(&first, 0);
    for (int from = 1; from < ALL; from++) {
        struct image other = declared(from);
        cr_assert_eq(other.bytes, first.bytes);
        char *same = written(&other, (from * 2) % ALL);
        cr_assert_eq(memcmp(bytes, same, (size_t)first.bytes), 0);
        free(same);
        image_clear(&other);
    }
    free(bytes);
    image_clear(&first);
}

Test(image, gives_back_what_was_put_aligned)
{
    struct image image = declared(0);
    char *bytes = written(&image, 0);
    cr_assert_eq(image_check(&image, bytes, &why), 0, "%s", why.text);
    for (int i = 0; i < ALL; i++) {
        struct rm_tensor found;
        cr_assert_eq(image_find(&image, bytes, all[i].name, &found, &why), 0);
        cr_assert_eq(found.dtype, all[i].dtype);
        cr_assert_eq(found.dims, all[i].dims);
        cr_assert_eq(memcmp(found.data, all[i].data, (size_t)found.bytes), 0);
        cr_assert_eq(((const char *)found.data - bytes) % (found.dtype == RM_BOOL  ? 1
                                                           : found.dtype == RM_F32 ? 4
                                                                                   : 8),
                     0);
    }
    struct rm_tensor found;
    cr_assert_eq(image_find(&image, bytes, "model.c", &found, &why), -1);
    cr_assert_str_eq(why.text, "there is no model.c in the state");
    free(bytes);
    image_clear(&image);
}

/* Any mix of widths and sizes: the whole is a multiple of 8, and each tensor lies at a multiple of its
 * element. */
Test(image, is_aligned_and_even_whatever_is_in_it)
{
    const enum rm_dtype kinds[] = {RM_F64, RM_BF16, RM_U8, RM_F32};
    const int64_t width[] = {8, 2, 1, 4};
    for (int mix = 0; mix < 4096; mix++) {
        struct image image = {0};
        for (int k = 0; k < 4; k++) {
            const int64_t count[1] = {(mix >> (3 * k)) & 7};
            char name[] = {(char)('a' + k), 0};
            cr_assert_eq(image_declare(&image, name, kinds[k], 1, count, &why), 0);
        }
        cr_assert_eq(image_seal(&image, &why), 0);
        cr_assert_eq(image.bytes % 8, 0);
        for (int t = 0; t < image.count; t++)
            cr_assert_eq(image.tensors[t].at % width[image.tensors[t].name[0] - 'a'], 0, "mix %d", mix);
        image_clear(&image);
    }
}

Test(image, lets_a_number_change_its_kind_and_keeps_its_size)
{
    struct image image = declared(0), other = declared(0);
    char *bytes = malloc((size_t)image.bytes);
    int64_t whole = 3;
    image_begin(&image);
    for (int i = 0; i < ALL; i++) {
        bool rates = strcmp(all[i].name, "optimizer.lr") == 0;
        cr_assert_eq(image_put(&image, bytes, all[i].name, rates ? RM_I64 : all[i].dtype, all[i].dims, shape,
                               rates ? (const void *)&whole : all[i].data, &why),
                     0);
    }
    cr_assert_eq(image_finish(&image, bytes, &why), 0);
    cr_assert_eq(image_check(&other, bytes, &why), 0, "%s", why.text);
    struct rm_tensor found;
    cr_assert_eq(image_find(&other, bytes, "optimizer.lr", &found, &why), 0);
    cr_assert_eq(found.dtype, RM_I64);
    cr_assert_eq(*(const int64_t *)found.data, 3);
    free(bytes);
    image_clear(&image);
    image_clear(&other);
}

Test(image, refuses_what_would_change_its_size)
{
    struct image image = declared(0);
    char *bytes = calloc(1, (size_t)image.bytes);
    const int64_t longer[2] = {2, 4};
    image_begin(&image);
    cr_assert_eq(image_put(&image, bytes, "model.a", RM_F32, 2, longer, weights, &why), -1);
    cr_assert_str_eq(why.text, "model.a was F32[2,3] and is F32[2,4] now: the state's size may not change");
    cr_assert_eq(image_put(&image, bytes, "model.a", RM_F16, 2, shape, weights, &why), -1);
    cr_assert_eq(image_put(&image, bytes, "made", RM_I64, 0, NULL, &steps, &why), -1);
    cr_assert_eq(image_put(&image, bytes, "model.c", RM_F32, 2, shape, weights, &why), -1);
    cr_assert_str_eq(why.text,
                     "model.c is new in the state: what it holds is told before the first step, and stays");
    cr_assert_eq(image_put(&image, bytes, "model.a", RM_F32, 2, shape, NULL, &why), -1);
    cr_assert_eq(image_finish(&image, bytes, &why), -1);
    cr_assert_str_eq(why.text, "made was not put: all of the state belongs into what is saved");
    free(bytes);
    image_clear(&image);
}

Test(image, refuses_names_shapes_and_twins)
{
    struct image image = {0};
    const int64_t negative[1] = {-1}, huge[2] = {INT64_MAX / 2, 8};
    cr_assert_eq(image_declare(&image, "", RM_F32, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "a\"b", RM_F32, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "a\\b", RM_F32, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "a\nb", RM_F32, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "__metadata__", RM_F32, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "x", RM_DTYPES, 0, NULL, &why), -1);
    cr_assert_eq(image_declare(&image, "x", RM_F32, RM_DIMS_MAX + 1, shape, &why), -1);
    cr_assert_eq(image_declare(&image, "x", RM_F32, 1, negative, &why), -1);
    cr_assert_eq(image_declare(&image, "x", RM_F32, 2, huge, &why), -1);
    cr_assert_eq(image.count, 0);
    cr_assert_eq(image_seal(&image, &why), -1);
    cr_assert_eq(image_declare(&image, "x", RM_F32, 0, NULL, &why), 0);
    cr_assert_eq(image_declare(&image, "x", RM_I64, 0, NULL, &why), 0);
    cr_assert_eq(image_seal(&image, &why), -1);
    cr_assert_str_eq(why.text, "the state has two tensors that are called x");
    image_clear(&image);
}

/* Every byte of the header decides: an image with another one is refused, and the tensor that differs is
 * named. */
Test(image, is_not_taken_where_any_byte_of_its_header_differs)
{
    struct image image = declared(0);
    char *bytes = written(&image, 0);
    for (int64_t at = 0; at < image.header_bytes; at++) {
        bytes[at] ^= 1;
        cr_assert_eq(image_check(&image, bytes, &why), -1, "byte %lld", (long long)at);
        bytes[at] ^= 1;
    }
    char *at = strstr(bytes + 8, "model.b\":{\"dtype\":\"F32\",\"shape\":[2,3]");
    at[strlen("model.b\":{\"dtype\":\"F32\",\"shape\":[")] = '3';
    cr_assert_eq(image_check(&image, bytes, &why), -1);
    cr_assert_str_eq(why.text,
                     "the state that came is another program's: it does not have model.b as F32[2,3] there");
    free(bytes);
    image_clear(&image);
}
