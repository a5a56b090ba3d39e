/* Folders of text as a stream of samples. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "common/storage/data/identify.h"

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/corpus-test-XXXXXX");
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

TestSuite(corpus, .init = make_folder, .fini = remove_folder);

static void path_of(char out[512], const char *name)
{
    snprintf(out, 512, "%s/%s", folder, name);
}

static void put_bytes(const char *name, const void *bytes, size_t length)
{
    char path[512];
    path_of(path, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        mkdir(path, 0777);
    }
    FILE *file = fopen(path, "wb");
    cr_assert(file, "%s", path);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static void put(const char *name, const char *text)
{
    put_bytes(name, text, strlen(text));
}

static struct corpus *open_with(int context, double hold_out)
{
    struct corpus *c;
    struct error err = {0};
    struct corpus_options options = {
        .uri = folder, .context = context, .vocabulary = 256, .hold_out = hold_out};
    cr_assert_eq(corpus_open(&c, &options, &err), 0, "%s", err.text);
    return c;
}

/* Sample i as text. */
static void sample_is(struct corpus *c, int64_t i, const char *expected)
{
    int32_t tokens[256];
    struct error err = {0};
    cr_assert_eq(corpus_read(c, i, tokens, &err), 0, "%s", err.text);
    for (size_t t = 0; t < strlen(expected); t++)
        cr_assert_eq(tokens[t], (unsigned char)expected[t], "sample %d, token %zu", (int)i, t);
}

static void refuses(const char *uri, int context, enum error_code code, const char *part)
{
    struct corpus *c = NULL;
    struct error err = {0};
    struct corpus_options options = {.uri = uri, .context = context, .vocabulary = 256};
    cr_assert_eq(corpus_open(&c, &options, &err), -1);
    cr_assert_eq(err.code, code, "%s", err.text);
    cr_assert(strstr(err.text, part), "%s", err.text);
    cr_assert_null(c);
}

Test(corpus, the_order_is_that_of_whole_relative_paths)
{
    put("b", "BBB");
    put("a/x", "ax");
    put("a-b", "--"); /* '-' is less than '/' */
    put("Z", "Z");
    put("empty", "");
    put("\xff", "y");
    struct corpus *c = open_with(8, 0);
    cr_assert_eq(corpus_files(c), 6);
    cr_assert_eq(corpus_tokens(c), 9);
    sample_is(c, 0, "Z--axBBBy");
    corpus_free(c);
}

Test(corpus, hidden_names_links_and_odd_files_are_left_out)
{
    char path[512], target[512];
    put("a", "aaaa");
    put(".hidden", "hhhh");
    put(".git/objects", "gggg");
    put("deep/.cache/x", "cccc");
    put("deep/er/b", "bbbb");
    path_of(path, "link");
    path_of(target, "a");
    cr_assert_eq(symlink(target, path), 0);
    path_of(path, "folderlink");
    cr_assert_eq(symlink(folder, path), 0);
    path_of(path, "pipe");
    cr_assert_eq(mkfifo(path, 0666), 0);
    struct corpus *c = open_with(7, 0);
    cr_assert_eq(corpus_files(c), 2);
    sample_is(c, 0, "aaaabbbb");
    corpus_free(c);
}

Test(corpus, names_with_spaces_newlines_and_quotes_are_fine)
{
    put("a b\n\"c\"/\xc3\xa9 *", "first");
    put("b%20c", "then!");
    struct corpus *c = open_with(9, 0);
    sample_is(c, 0, "firstthen!");
    corpus_free(c);
}

Test(corpus, samples_overlap_by_one_token_and_the_rest_is_unused)
{
    put("a", "0123456789");
    struct corpus *c = open_with(3, 0);
    cr_assert_eq(corpus_samples(c), 3);
    sample_is(c, 0, "0123");
    sample_is(c, 1, "3456");
    sample_is(c, 2, "6789");
    corpus_free(c);
}

Test(corpus, the_last_samples_are_held_out)
{
    char text[1001];
    memset(text, 'x', 1000);
    text[1000] = 0;
    put("a", text);
    const struct {
        double hold_out;
        int64_t held_out;
    } table[] = {{0, 0}, {0.1, 9}, {0.5, 49}, {0.009, 0}, {0.0102, 1}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct corpus *c = open_with(10, table[i].hold_out);
        cr_assert_eq(corpus_samples(c), 99);
        cr_assert_eq(corpus_held_out(c), table[i].held_out, "%g", table[i].hold_out);
        cr_assert_eq(corpus_training(c), 99 - table[i].held_out);
        corpus_free(c);
    }
}

Test(corpus, any_split_into_files_gives_the_same_samples)
{
    uint8_t text[5000];
    uint64_t seed = 7;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)splitmix64(&seed);
    for (int round = 0; round < 20; round++) {
        size_t at = 0;
        for (int file = 0; at < sizeof text; file++) {
            char name[32];
            size_t length = prng_below(&seed, round * 20 + 40);
            if (at + length > sizeof text || file == 150)
                length = sizeof text - at;
            snprintf(name, sizeof name, "%02d/%03d", file % 100 / 50 + file / 50, file);
            put_bytes(name, text + at, length);
            at += length;
        }
        struct corpus *c = open_with(37, 0.1);
        int32_t tokens[38];
        cr_assert_eq(corpus_samples(c), 4999 / 37);
        for (int64_t i = corpus_samples(c) - 1; i >= 0; i--) {
            cr_assert_eq(corpus_read(c, i, tokens, NULL), 0);
            for (int t = 0; t < 38; t++)
                cr_assert_eq(tokens[t], text[i * 37 + t], "sample %d of round %d", (int)i, round);
        }
        corpus_free(c);
        remove_folder();
        mkdir(folder, 0777);
    }
}

Test(corpus, what_is_not_data_is_refused_with_a_sentence)
{
    char path[512];
    refuses("/nowhere/at/all", 8, ERR_DATA, "there is no such folder");
    refuses("s3://bucket/data", 8, ERR_USAGE, "s3://bucket/data");
    refuses("file://", 8, ERR_USAGE, "empty");
    refuses(folder, 8, ERR_DATA, "holds no text");
    put("a", "12345678");
    refuses(folder, 8, ERR_DATA, "less than one sample of context 8");
    path_of(path, "a");
    refuses(path, 8, ERR_DATA, "not a folder");
    struct corpus *c = open_with(7, 0);
    cr_assert_eq(corpus_samples(c), 1);
    corpus_free(c);
}

/* Root may read everything: it becomes somebody else, until the folder is to be removed. */
static void become_somebody(void)
{
    enum { NOBODY = 65534 };
    if (geteuid() == 0 && (chmod(folder, 0755) < 0 || seteuid(NOBODY) < 0))
        cr_skip_test("root may read everything, and there is nobody else here (a user namespace of one)");
}

Test(corpus, a_file_that_nobody_may_read_is_named)
{
    char path[512];
    put("a", "some text");
    path_of(path, "a");
    chmod(path, 0);
    uid_t before = geteuid();
    become_somebody();
    refuses(folder, 4, ERR_DATA, "a: the file can't be read");
    cr_assert_eq(seteuid(before), 0);
}

Test(corpus, too_little_for_a_batch_or_an_evaluation_is_said)
{
    char text[101];
    struct error err = {0};
    memset(text, 'x', 100);
    text[100] = 0;
    put("a", text);
    struct corpus *c = open_with(9, 0.2); /* 11 samples, 2 held out */
    cr_assert_eq(corpus_check(c, 9, 2, &err), 0);
    cr_assert_eq(corpus_check(c, 10, 2, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "don't fill one batch of 10"), "%s", err.text);
    cr_assert_eq(corpus_check(c, 9, 3, &err), -1);
    cr_assert(strstr(err.text, "2 held-out samples are fewer than the 3"), "%s", err.text);
    corpus_free(c);
}

Test(corpus, a_file_cut_short_under_us_is_an_error_and_no_signal)
{
    int32_t tokens[9];
    struct error err = {0};
    char path[512];
    put("a", "0123456789abcdefghijklmnop");
    struct corpus *c = open_with(8, 0);
    cr_assert_eq(corpus_read(c, 0, tokens, &err), 0);
    path_of(path, "a");
    cr_assert_eq(truncate(path, 10), 0);
    cr_assert_eq(corpus_read(c, 2, tokens, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "/a: the file has changed"), "%s", err.text);
    corpus_free(c);
}

/* A disk or a server that does not answer says nothing about the data, and may answer a moment later. */
Test(corpus, a_read_of_data_that_fails_is_not_the_datas_fault)
{
    int32_t tokens[9];
    struct error err = {0};
    put("a", "0123456789abcdefghijklmnop");
    struct corpus *c = open_with(8, 0);
    setenv("RINGMASTER_FAULT", "data-read/fails-1", 1);
    cr_assert_eq(corpus_read(c, 1, tokens, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE, "%s", err.text);
    cr_assert_eq(err.class, CLASS_PASSING);
    cr_assert(strstr(err.text, "/a: reading failed"), "%s", err.text);
    cr_assert_eq(corpus_read(c, 1, tokens, &err), 0, "%s", err.text);
    cr_assert_eq(tokens[0], '8');
    corpus_free(c);
}

Test(corpus, a_file_that_was_replaced_or_removed_is_an_error)
{
    int32_t tokens[9];
    struct error err = {0};
    char path[512];
    put("a", "0123456789abcdefghijklmnop");
    struct corpus *c = open_with(8, 0);
    put("a", "0123456789abcdefghijklmnop and more");
    cr_assert_eq(corpus_read(c, 0, tokens, &err), -1);
    cr_assert(strstr(err.text, "has changed"), "%s", err.text);
    path_of(path, "a");
    unlink(path);
    cr_assert_eq(corpus_read(c, 0, tokens, &err), -1);
    cr_assert(strstr(err.text, "can't be read"), "%s", err.text);
    corpus_free(c);
}

static void identify(enum identity_kind kind, struct corpus_identity *out)
{
    struct identify_options options = {.kind = kind, .threads = 3};
    struct corpus *c = open_with(2, 0);
    struct error err = {0};
    cr_assert_eq(corpus_identify(c, &options, out, &err), 0, "%s", err.text);
    corpus_free(c);
}

static bool same(const struct corpus_identity *a, const struct corpus_identity *b)
{
    return !memcmp(a->sha256, b->sha256, RM_HASH_BYTES);
}

static void any_change_is_seen(enum identity_kind kind)
{
    struct corpus_identity first, other;
    put("a", "12345");
    put("b", "678");
    identify(kind, &first);
    cr_assert_eq(first.files, 2);
    cr_assert_eq(first.bytes, 8);
    put("b", "678");
    identify(kind, &other);
    cr_assert(same(&first, &other), "written again, it is the same data");
    put("b", "679");
    identify(kind, &other);
    cr_assert_not(same(&first, &other));
    put("a", "1234");
    put("b", "5678");
    identify(kind, &other);
    cr_assert_not(same(&first, &other), "the border between the files moved");
    put("a", "12345");
    put("b", "678");
    put("c", "");
    identify(kind, &other);
    cr_assert_not(same(&first, &other), "an empty file more");
}

Test(corpus, the_identity_changes_with_any_name_border_or_byte)
{
    any_change_is_seen(IDENTITY_TREE);
    remove_folder();
    mkdir(folder, 0777);
    any_change_is_seen(IDENTITY_CHAIN);
}

Test(corpus, the_chain_is_the_hash_that_the_docs_describe)
{
    /* length of the name, name, size, content; numbers as 8 little-endian bytes */
    static const char stream[] = "\1\0\0\0\0\0\0\0"
                                 "a"
                                 "\5\0\0\0\0\0\0\0"
                                 "12345"
                                 "\3\0\0\0\0\0\0\0"
                                 "b/c"
                                 "\0\0\0\0\0\0\0\0";
    uint8_t expected[RM_HASH_BYTES];
    struct corpus_identity is;
    put("a", "12345");
    put("b/c", "");
    identify(IDENTITY_CHAIN, &is);
    sha256_once(stream, sizeof stream - 1, expected);
    cr_assert_arr_eq(is.sha256, expected, RM_HASH_BYTES);
}

Test(corpus, more_files_than_descriptors_can_be_read)
{
    char name[32], text[16];
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "%02d/%05d", i / 100, i);
        snprintf(text, sizeof text, "%05d", i);
        put(name, text);
    }
    struct corpus *c = open_with(5, 0);
    struct corpus_identity is;
    struct identify_options tree = {.threads = 2}, chain = {.kind = IDENTITY_CHAIN};
    cr_assert_eq(corpus_identify(c, &tree, &is, NULL), 0);
    cr_assert_eq(corpus_identify(c, &chain, &is, NULL), 0);
    for (int i = 0; i < 2999; i += 7) {
        snprintf(text, sizeof text, "%05d0", i);
        sample_is(c, i, text);
    }
    corpus_free(c);
}

enum { ASIDE_BYTES = 3 << 20, PAGE = 4096 };

/* How many pages of the file the system has in memory. */
static int pages_remembered(int fd)
{
    static unsigned char page[ASIDE_BYTES / PAGE];
    int count = 0;
    void *at = mmap(NULL, ASIDE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    cr_assert(at != MAP_FAILED && mincore(at, ASIDE_BYTES, page) == 0);
    munmap(at, ASIDE_BYTES);
    for (size_t i = 0; i < sizeof page; i++)
        count += page[i] & 1;
    return count;
}

Test(corpus, who_reads_aside_leaves_in_memory_what_was_there_and_nothing_else)
{
    char path[512];
    uint8_t *bytes = malloc(ASIDE_BYTES), *got = malloc(ASIDE_BYTES);
    struct corpus *c;
    struct error err = {0};
    for (size_t i = 0; i < ASIDE_BYTES; i++)
        bytes[i] = (uint8_t)(i * 7 + i / 251);
    path_of(path, "a");
    int fd = open(path, O_RDWR | O_CREAT, 0644);
    cr_assert(fd >= 0 && write(fd, bytes, ASIDE_BYTES) == ASIDE_BYTES && fsync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    if (pages_remembered(fd))
        cr_skip_test("a file system that lets nothing go");
    cr_assert_eq(
        corpus_open(&c, &(struct corpus_options){.uri = folder, .context = 4, .vocabulary = 256}, &err), 0,
        "%s", err.text);
    cr_assert_eq(corpus_read_aside(c, 0, 0, got, ASIDE_BYTES, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(got, bytes, ASIDE_BYTES), 0);
    cr_assert_eq(pages_remembered(fd), 0);
    cr_assert_eq(corpus_read_bytes(c, 0, 0, got, 64 * PAGE, &err), 0, "%s", err.text);
    int before = pages_remembered(fd);
    cr_assert_geq(before, 64);
    memset(got, 0, ASIDE_BYTES);
    cr_assert_eq(corpus_read_aside(c, 0, 0, got, ASIDE_BYTES, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(got, bytes, ASIDE_BYTES), 0);
    cr_assert_eq(pages_remembered(fd), before, "neither more nor fewer");
    corpus_free(c);
    close(fd);
    free(bytes);
    free(got);
}
