/* The safetensors format: what we write is read, and nothing that is wrong is. */
#include "fixture.h"

#include "common/storage/checkpoint/safetensors.h"

TestSuite(safetensors, .init = fixture_make, .fini = fixture_remove);

static void put_file(char path[512], const void *bytes, size_t length)
{
    fixture_path(path, "file");
    FILE *file = fopen(path, "wb");
    cr_assert(file);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

/* A file of this header (not padded) and so many bytes of data, each its own index. */
static void put_parts(char path[512], const char *header, size_t data_bytes)
{
    uint8_t bytes[4096];
    size_t length = strlen(header);
    for (int i = 0; i < 8; i++)
        bytes[i] = (uint8_t)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    for (size_t i = 0; i < data_bytes; i++)
        bytes[8 + length + i] = (uint8_t)i;
    put_file(path, bytes, 8 + length + data_bytes);
}

static void refuses(const char *header, size_t data_bytes, const char *part)
{
    char path[512];
    struct safetensors *f = NULL;
    struct error err = {0};
    put_parts(path, header, data_bytes);
    cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), -1, "%s", header);
    cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
    cr_assert(strstr(err.text, part) && strstr(err.text, "file: "), "%s: %s", header, err.text);
}

Test(safetensors, a_model_header_reads_back_as_the_layout_for_many_shapes)
{
    static const struct model_shape shapes[] = {
        {1, 1, 1, 1, 1}, {2, 2, 8, 5, 11}, {3, 5, 80, 37, 257}, {12, 4, 16, 128, 256}, {96, 1, 4, 2, 3}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct model_layout *layout = fixture_layout(&shapes[s]);
        struct str header = str_init(SAFETENSORS_HEADER_MAX);
        struct error err = {0};
        struct safetensors *f;
        char path[512];
        safetensors_model_header(layout, &header);
        cr_assert_eq(header.length % 8, 0);
        put_file(path, header.data, header.length);
        cr_assert_eq(truncate(path, (off_t)header.length + 4 * layout->parameters), 0);
        cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), 0, "%s", err.text);
        cr_assert_eq(f->tensors, layout->tensors);
        for (int i = 0; i < f->tensors; i++) {
            cr_assert_str_eq(f->tensor[i].name, layout->tensor[i].name);
            cr_assert_eq(f->tensor[i].begin, 4 * layout->tensor[i].first);
            cr_assert_eq(f->tensor[i].elements, layout->tensor[i].count);
            cr_assert_eq(f->tensor[i].dims, layout->tensor[i].dims);
        }
        safetensors_free(f);
        str_clear(&header);
        free(layout);
    }
}

Test(safetensors, tensors_of_foreign_files_are_found_in_any_order)
{
    char path[512];
    struct safetensors *f;
    struct error err = {0};
    float values[2];
    put_parts(path,
              "{\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]},"
              "\"__metadata__\":{\"any\":\"thing\"},"
              "\"a\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[0,4]}}   ",
              12);
    cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), 0, "%s", err.text);
    cr_assert_eq(f->tensors, 2);
    cr_assert_null(safetensors_find(f, "c"));
    const struct safetensors_tensor *b = safetensors_find(f, "b");
    cr_assert_eq(safetensors_read(f, b, values, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(values, "\4\5\6\7\10\11\12\13", 8), 0);
    cr_assert_eq(safetensors_read(f, safetensors_find(f, "a"), values, &err), -1);
    cr_assert(strstr(err.text, "tensor a is of type I32; only F32, F16 and BF16"), "%s", err.text);
    safetensors_free(f);
}

Test(safetensors, impossible_headers_are_refused_before_memory_is_taken)
{
    static const char t[] = "{\"t\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":%s}}";
    static const struct {
        const char *dtype, *shape, *offsets, *part;
    } table[] = {
        {"F32", "[2]", "[0,4]", "don't fit its 4 bytes"},
        {"F32", "[3]", "[0,12]", "outside the 8 bytes"},
        {"F32", "[2]", "[8,0]", "outside"},
        {"F32", "[2]", "[-8,0]", "outside"},
        {"F32", "[2]", "[0]", "not two numbers"},
        {"F32", "[2]", "[0,8.0]", "not two numbers"},
        {"F32", "[1]", "[0,4]", "end at byte 4 of 8"},
        {"F32", "[1]", "[4,8]", "gap or an overlap at byte 0"},
        {"F33", "[2]", "[0,8]", "dtype F33 is unknown"},
        {"F32", "[-2]", "[0,8]", "list of sizes"},
        {"F32", "[\"2\"]", "[0,8]", "list of sizes"},
        {"F32", "[4611686018427387904,4]", "[0,8]", "impossibly large"},
        {"F32", "[4611686018427387904]", "[0,8]", "don't fit"},
        {"F32", "[1,1,1,1,2]", "[0,8]", "5 dimensions"},
        {"F32", "{}", "[0,8]", "shape is an object, not a list"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char header[512];
        snprintf(header, sizeof header, t, table[i].dtype, table[i].shape, table[i].offsets);
        refuses(header, 8, table[i].part);
    }
    refuses("[]", 0, "not an object");
    refuses("{\"a\":1}", 0, "tensor a");
    refuses("{\"a\":", 0, "not valid JSON");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
            2, "not valid JSON");
    refuses("{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
            "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
            3, "overlap at byte 2");
}

Test(safetensors, every_truncation_of_a_file_is_refused)
{
    static const char header[] = "{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
    char path[512];
    put_parts(path, header, 8);
    for (off_t size = 8 + (off_t)strlen(header) + 7; size >= 0; size--) {
        struct safetensors *f = NULL;
        struct error err = {0};
        cr_assert_eq(truncate(path, size), 0);
        cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), -1, "cut to %d", (int)size);
        cr_assert_eq(err.code, ERR_DATA);
    }
}

Test(safetensors, a_length_of_garbage_takes_no_memory)
{
    char path[512];
    struct safetensors *f = NULL;
    struct error err = {0};
    put_file(path, "\xff\xff\xff\xff\xff\xff\xff\x7f{}", 10);
    cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), -1);
    cr_assert(strstr(err.text, "not a safetensors file"), "%s", err.text);
    cr_assert_eq(safetensors_open(&f, fixture_store, "nowhere/file", &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
}

Test(safetensors, values_of_sixteen_bits_are_widened_exactly)
{
    static const struct {
        uint16_t bits;
        float half, bfloat;
    } table[] = {{0x0000, 0.0f, 0.0f},
                 {0x8000, -0.0f, -0.0f},
                 {0x3c00, 1.0f, 0x1p-7f},
                 {0xc000, -2.0f, -2.0f},
                 {0x3555, 0x1.554p-2f, 0x1.aap-21f},
                 {0x7bff, 65504.0f, 0x1.fep120f},
                 {0x0001, 0x1p-24f, 0x1p-133f},
                 {0x83ff, -0x1.ff8p-15f, -0x1.fep-120f},
                 {0x3f80, 1.875f, 1.0f}};
    enum { COUNT = sizeof table / sizeof *table };
    static const char *const dtypes[] = {"F16", "BF16"};
    for (int d = 0; d < 2; d++) {
        char path[512], header[256];
        uint8_t bytes[512];
        float values[COUNT];
        struct safetensors *f;
        struct error err = {0};
        snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[%d],\"data_offsets\":[0,%d]}}",
                 dtypes[d], COUNT, 2 * COUNT);
        uint64_t length = strlen(header);
        memcpy(bytes, &length, 8);
        memcpy(bytes + 8, header, length);
        for (int i = 0; i < COUNT; i++)
            memcpy(bytes + 8 + length + 2 * i, &table[i].bits, 2);
        put_file(path, bytes, 8 + length + 2 * COUNT);
        cr_assert_eq(safetensors_open(&f, fixture_store, "file", &err), 0, "%s", err.text);
        cr_assert_eq(safetensors_read(f, &f->tensor[0], values, &err), 0, "%s", err.text);
        for (int i = 0; i < COUNT; i++) {
            float expected = d ? table[i].bfloat : table[i].half;
            cr_assert_eq(memcmp(&values[i], &expected, 4), 0, "%s %04x: %a", dtypes[d], table[i].bits,
                         values[i]);
        }
        safetensors_free(f);
    }
}

Test(safetensors, random_changes_to_a_header_never_do_harm)
{
    static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                                 "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                                 "\"b\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[24,32]}}";
    static const char letters[] = "0123456789-{}[]\":,.eE F\\u\x80";
    uint64_t seed = 11;
    int opened = 0;
    for (int round = 0; round < 4000; round++) {
        char path[512], changed[sizeof header];
        struct safetensors *f;
        float values[64];
        memcpy(changed, header, sizeof header);
        for (uint64_t n = prng_below(&seed, 3) + 1; n; n--)
            changed[prng_below(&seed, sizeof header - 1)] = letters[prng_below(&seed, sizeof letters - 1)];
        put_parts(path, changed, 32);
        if (safetensors_open(&f, fixture_store, "file", NULL) < 0)
            continue;
        opened++;
        for (int i = 0; i < f->tensors; i++)
            if (f->tensor[i].elements <= 8)
                safetensors_read(f, &f->tensor[i], values, NULL);
        safetensors_free(f);
    }
    cr_assert(opened > 0 && opened < 4000, "%d", opened);
}
