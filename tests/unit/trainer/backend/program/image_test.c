#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/crypto.h"
#include "trainer/backend/program/image.h"

/* A file of that header and those bytes; its size, for free() in *ret. */
static int64_t make(const char *header, const char *data, uint8_t **ret)
{
    uint64_t length = strlen(header);
    *ret = malloc(8 + length + strlen(data));
    memcpy(*ret, &length, 8);
    memcpy(*ret + 8, header, length);
    memcpy(*ret + 8 + length, data, strlen(data));
    return (int64_t)(8 + length + strlen(data));
}

static void expect_hash_of(const char *header, const char *data, const char *hashed)
{
    uint8_t *image, found[RM_HASH_BYTES], expected[RM_HASH_BYTES];
    struct error err = {0};
    int64_t bytes = make(header, data, &image);
    cr_assert_eq(image_digest(image, bytes, found, &err), 0, "%s", err.text);
    sha256_once(hashed, strlen(hashed), expected);
    cr_assert_eq(memcmp(found, expected, sizeof found), 0, "%s", header);
    free(image);
}

#define TENSOR(name, from, to)                                                                               \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #to "],\"data_offsets\":[" #from "," #to "]}"

Test(image, the_weights_alone_are_hashed_in_the_order_in_which_they_lie)
{
    expect_hash_of(
        "{" TENSOR("model.b", 4, 6) "," TENSOR("optimizer.a", 2, 4) "," TENSOR("model.a", 0, 2) "}", "aaxxbb",
        "aabb");
}

Test(image, without_tensors_called_model_all_count_but_not_what_is_said_of_them)
{
    expect_hash_of("{\"__metadata__\":{\"format\":\"pt\"}," TENSOR("w", 0, 2) "," TENSOR("v", 2, 4) "}  ",
                   "aabb", "aabb");
}

Test(image, what_is_no_image_is_refused)
{
    static const struct {
        const char *header, *data, *why;
    } table[] = {
        {"{" TENSOR("model.a", 0, 9) "}", "aa", "a tensor lies outside of it"},
        {"{\"model.a\":{\"data_offsets\":[-1,2]}}", "aa", "a tensor lies outside of it"},
        {"{\"model.a\":{\"data_offsets\":[2,1]}}", "aa", "a tensor lies outside of it"},
        {"{\"model.a\":3}", "aa", "a tensor lies outside of it"},
        {"[]", "", "its header is no JSON object"},
        {"{", "", "its header is no JSON object"},
    };
    uint8_t *image, found[RM_HASH_BYTES];
    struct error err;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        int64_t bytes = make(table[i].header, table[i].data, &image);
        cr_assert_lt(image_digest(image, bytes, found, &err), 0);
        cr_assert(strstr(err.text, table[i].why), "%s", err.text);
        free(image);
    }
    int64_t bytes = make("{" TENSOR("model.a", 0, 2) "," TENSOR("model.b", 1, 3) "}", "abc", &image);
    cr_assert_lt(image_digest(image, bytes, found, &err), 0, "one lies over the other");
    free(image);
    bytes = make("{}", "", &image);
    cr_assert_lt(image_digest(image, bytes - 1, found, &err), 0);
    cr_assert_lt(image_digest(image, 3, found, &err), 0);
    cr_assert_eq(err.code, ERR_DATA);
    free(image);
}
