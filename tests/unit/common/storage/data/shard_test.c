/* Folders of token shards: what they are taken for, what they hold, and what is refused. */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/storage/data/identify.h"

enum { MAGIC_16 = 20240520, MAGIC_32 = 20240801, HEADER = 1024 };

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/shard-test-XXXXXX");
    cr_assert(mkdtemp(folder));
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(shard, .init = make_folder, .fini = remove_folder);

static void put_bytes(const char *name, const void *bytes, size_t length)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    cr_assert(file, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

struct image {
    uint8_t bytes[HEADER + 4096];
    size_t length;
};

static void add_number(struct image *image, uint64_t value, int width)
{
    for (int i = 0; i < width; i++)
        image->bytes[image->length++] = (uint8_t)(value >> (8 * i));
}

static void add_header(struct image *image, uint32_t magic, uint32_t version, uint32_t tokens)
{
    add_number(image, magic, 4);
    add_number(image, version, 4);
    add_number(image, tokens, 4);
    image->length += HEADER - 12;
}

static void add_run(struct image *image, uint32_t from, int count, int width)
{
    for (int i = 0; i < count; i++)
        add_number(image, from + (uint32_t)i, width);
}

static void put(const char *name, const struct image *image)
{
    put_bytes(name, image->bytes, image->length);
}

/* `count` tokens from `from` on; magic 0: without a header. */
static void put_run(const char *name, uint32_t magic, uint32_t from, int count, int width)
{
    static struct image image;
    memset(&image, 0, sizeof image);
    if (magic)
        add_header(&image, magic, magic == MAGIC_16 ? 1 : 7, (uint32_t)count);
    add_run(&image, from, count, width);
    put(name, &image);
}

static int open_as(struct corpus **ret, enum corpus_format format, int vocabulary, struct error *err)
{
    struct corpus_options options = {.uri = folder, .format = format, .context = 4, .vocabulary = vocabulary};
    return corpus_open(ret, &options, err);
}

static struct corpus *opened(enum corpus_format format, int vocabulary)
{
    struct corpus *c;
    struct error err = {0};
    cr_assert_eq(open_as(&c, format, vocabulary, &err), 0, "%s", err.text);
    return c;
}

static void refuses(enum corpus_format format, const char *part)
{
    struct corpus *c = NULL;
    struct error err = {0};
    cr_assert_eq(open_as(&c, format, 1 << 20, &err), -1, "accepted, wanted: %s", part);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, part), "%s", err.text);
}

/* The stream is 100, 101, 102, ...: sample i begins at 100 + 4 * i. */
static void holds_run(struct corpus *c, int64_t tokens, int32_t from)
{
    int32_t sample[5];
    struct error err = {0};
    cr_assert_eq(corpus_tokens(c), tokens);
    cr_assert_eq(corpus_samples(c), (tokens - 1) / 4);
    for (int64_t i = 0; i < corpus_samples(c); i++) {
        cr_assert_eq(corpus_read(c, i, sample, &err), 0, "%s", err.text);
        for (int t = 0; t < 5; t++)
            cr_assert_eq(sample[t], from + 4 * (int32_t)i + t, "sample %d, token %d", (int)i, t);
    }
}

Test(shard, plain_numbers_are_read_as_the_format_says)
{
    put_run("a.bin", 0, 50000, 30, 2);
    put_run("b.bin", 0, 50030, 7, 2);
    struct corpus *c = opened(CORPUS_TOKENS16, 50257);
    cr_assert_eq(corpus_format(c), CORPUS_TOKENS16);
    cr_assert_eq(corpus_bytes(c), 74);
    holds_run(c, 37, 50000);
    corpus_free(c);
    remove_folder();
    mkdir(folder, 0777);
    put_run("a.bin", 0, 100000, 30, 4);
    c = opened(CORPUS_TOKENS32, 128256);
    holds_run(c, 30, 100000);
    corpus_free(c);
}

Test(shard, headers_are_no_tokens_and_samples_cross_the_borders)
{
    put_run("a.bin", MAGIC_16, 100, 3, 2);
    put_run("b.bin", MAGIC_16, 103, 1, 2);
    put_run("c.bin", MAGIC_16, 104, 0, 2);
    put_run("d.bin", MAGIC_16, 104, 33, 2);
    struct corpus *c = opened(CORPUS_AUTO, 256);
    cr_assert_eq(corpus_format(c), CORPUS_TOKENS16);
    cr_assert_eq(corpus_files(c), 4);
    holds_run(c, 37, 100);
    corpus_free(c);
}

Test(shard, the_header_of_wide_tokens_is_known_too)
{
    put_run("a.bin", MAGIC_32, 100000, 20, 4);
    struct corpus *c = opened(CORPUS_AUTO, 128256);
    cr_assert_eq(corpus_format(c), CORPUS_TOKENS32);
    holds_run(c, 20, 100000);
    corpus_free(c);
}

Test(shard, with_a_format_shards_with_and_without_headers_go_together)
{
    put_run("a.bin", MAGIC_16, 100, 10, 2);
    put_run("b.bin", 0, 110, 11, 2);
    struct corpus *c = opened(CORPUS_TOKENS16, 256);
    holds_run(c, 21, 100);
    corpus_free(c);
    refuses(CORPUS_AUTO, "b.bin: has no header, but other files do");
}

Test(shard, auto_means_text_where_no_file_is_a_shard)
{
    put_bytes("a.txt", "some words", 10);
    struct corpus *c = opened(CORPUS_AUTO, 256);
    cr_assert_eq(corpus_format(c), CORPUS_TEXT);
    cr_assert_eq(corpus_tokens(c), 10);
    corpus_free(c);
}

Test(shard, text_takes_every_byte_but_never_a_shard_that_says_so)
{
    put_bytes("a.bin", "any bytes", 9);
    struct corpus *c = opened(CORPUS_TEXT, 256);
    cr_assert_eq(corpus_tokens(c), 9);
    corpus_free(c);
    put_run("b.bin", MAGIC_16, 1, 10, 2);
    refuses(CORPUS_TEXT, "b.bin: its header says Tokens16, but spec.trainer.data.format is Text");
}

Test(shard, bytes_do_not_tell_how_wide_a_token_is)
{
    put_run("a.bin", 0, 1, 10, 2);
    refuses(CORPUS_AUTO, "a.bin: has no header that says how wide its tokens are; set "
                         "spec.trainer.data.format to Tokens16 or Tokens32");
}

Test(shard, text_and_shards_do_not_mix)
{
    put_run("a.bin", MAGIC_16, 1, 10, 2);
    put_bytes("notes.txt", "words", 5);
    refuses(CORPUS_AUTO, "mixes token shards (a.bin) with other files (notes.txt)");
    refuses(CORPUS_TOKENS16, "notes.txt: is no .bin file, but spec.trainer.data.format is Tokens16");
}

Test(shard, two_widths_do_not_mix)
{
    put_run("a.bin", MAGIC_16, 1, 10, 2);
    put_run("b.bin", MAGIC_32, 1, 10, 4);
    refuses(CORPUS_AUTO, "b.bin: its header says Tokens32, but that of a.bin says Tokens16");
    refuses(CORPUS_TOKENS32, "a.bin: its header says Tokens16, but spec.trainer.data.format is Tokens32");
}

Test(shard, sizes_that_do_not_fit_are_told)
{
    static struct image image;
    put_bytes("a.bin", "123456789012345", 15);
    refuses(CORPUS_TOKENS16, "a.bin: 15 bytes are no whole number of tokens of 2 bytes");
    refuses(CORPUS_TOKENS32, "a.bin: 15 bytes are no whole number of tokens of 4 bytes");
    add_header(&image, MAGIC_16, 1, 11);
    add_run(&image, 1, 10, 2);
    put("a.bin", &image);
    refuses(CORPUS_AUTO, "a.bin: the header tells of 11 tokens of 2 bytes, but 20 bytes follow");
    put_bytes("a.bin", image.bytes, 500);
    refuses(CORPUS_TOKENS16, "a.bin: llm.c's header takes 1024 bytes, the file has only 500");
    image.bytes[4] = 9;
    put("a.bin", &image);
    refuses(CORPUS_AUTO, "a.bin: llm.c's header has version 9; only 1 is known");
    put_bytes("a.bin", "", 0);
    refuses(CORPUS_TOKENS16, "the folder holds no tokens");
    put_run("a.bin", 0, 1, 4, 2);
    refuses(CORPUS_TOKENS16, "4 tokens are less than one sample of context 4, which takes 5");
}

Test(shard, a_token_outside_the_vocabulary_is_named_with_its_place)
{
    struct corpus_identity is;
    struct error err = {0};
    int32_t sample[5];
    put_run("a.bin", MAGIC_16, 0, 7, 2);
    put_run("b.bin", MAGIC_16, 250, 10, 2);
    struct corpus *c = opened(CORPUS_AUTO, 256);
    cr_assert_eq(corpus_read(c, 1, sample, &err), 0, "%s", err.text);
    cr_assert_eq(corpus_read(c, 3, sample, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    /* 6 tokens of the file are fine: the seventh lies at 1024 + 12 */
    cr_assert(strstr(err.text, "/b.bin: token 256 at byte 1036 is not in the model's vocabulary of 256"),
              "%s", err.text);
    err = (struct error){0};
    struct identify_options tree = {.threads = 2};
    cr_assert_eq(corpus_identify(c, &tree, &is, &err), -1);
    cr_assert(strstr(err.text, "/b.bin: token 256 at byte 1036"), "%s", err.text);
    corpus_free(c);
}

Test(shard, a_token_that_would_be_negative_is_refused)
{
    int32_t sample[5];
    struct error err = {0};
    static struct image image;
    add_run(&image, 1, 4, 4);
    add_number(&image, UINT32_MAX, 4);
    put("a.bin", &image);
    struct corpus *c = opened(CORPUS_TOKENS32, 1 << 20);
    cr_assert_eq(corpus_read(c, 0, sample, &err), -1);
    cr_assert(strstr(err.text, "token 4294967295 at byte 16"), "%s", err.text);
    corpus_free(c);
}

static void identify(enum corpus_format format, struct corpus_identity *ret)
{
    struct identify_options chain = {.kind = IDENTITY_CHAIN};
    struct corpus *c = opened(format, INT32_MAX);
    struct error err = {0};
    cr_assert_eq(corpus_identify(c, &chain, ret, &err), 0, "%s", err.text);
    corpus_free(c);
}

Test(shard, the_identity_knows_the_format)
{
    struct corpus_identity text, narrow, wide, automatic;
    uint8_t expected[RM_HASH_BYTES];
    static struct image stream;
    put_run("a.bin", 0, 1, 20, 2);
    identify(CORPUS_TEXT, &text);
    identify(CORPUS_TOKENS16, &narrow);
    identify(CORPUS_TOKENS32, &wide);
    cr_assert_neq(memcmp(text.sha256, narrow.sha256, RM_HASH_BYTES), 0);
    cr_assert_neq(memcmp(wide.sha256, narrow.sha256, RM_HASH_BYTES), 0);
    cr_assert_eq(narrow.files, 1);
    cr_assert_eq(narrow.bytes, 40);
    /* as the docs describe it: -1, width, then each file */
    add_number(&stream, UINT64_MAX, 8);
    add_number(&stream, 2, 8);
    add_number(&stream, 5, 8);
    memcpy(stream.bytes + stream.length, "a.bin", 5);
    stream.length += 5;
    add_number(&stream, 40, 8);
    add_run(&stream, 1, 20, 2);
    sha256_once(stream.bytes, stream.length, expected);
    cr_assert_arr_eq(narrow.sha256, expected, RM_HASH_BYTES);
    put_run("a.bin", MAGIC_16, 1, 20, 2);
    identify(CORPUS_TOKENS16, &narrow);
    identify(CORPUS_AUTO, &automatic);
    cr_assert_arr_eq(automatic.sha256, narrow.sha256, RM_HASH_BYTES, "Auto is what it turns out to mean");
    cr_assert_eq(narrow.bytes, 1024 + 40);
}

/* Good shards with bytes of the header changed and ends cut, from a seed: read within bounds, or refused with
 * a sentence that names the folder. */
Test(shard, a_mangled_shard_is_read_or_refused_but_does_no_harm)
{
    static const enum corpus_format formats[] = {CORPUS_AUTO, CORPUS_TEXT, CORPUS_TOKENS16, CORPUS_TOKENS32};
    uint64_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        static struct image image;
        struct corpus *c;
        struct error err = {0};
        bool wide = prng_below(&seed, 2);
        memset(&image, 0, sizeof image);
        add_header(&image, wide ? MAGIC_32 : MAGIC_16, wide ? 7 : 1, 30);
        add_run(&image, 1, 30, wide ? 4 : 2);
        for (uint64_t n = prng_below(&seed, 3); n; n--)
            image.bytes[prng_below(&seed, 12)] = (uint8_t)splitmix64(&seed);
        if (prng_below(&seed, 2))
            image.length -= prng_below(&seed, image.length + 1);
        put("a.bin", &image);
        if (open_as(&c, formats[round % 4], 256, &err) < 0) {
            cr_assert(strstr(err.text, folder), "%s", err.text);
            continue;
        }
        int32_t sample[5];
        for (int64_t i = 0; i < corpus_samples(c); i++)
            if (corpus_read(c, i, sample, &err) == 0)
                for (int t = 0; t < 5; t++)
                    cr_assert(sample[t] >= 0 && sample[t] < 256);
        corpus_free(c);
    }
}
