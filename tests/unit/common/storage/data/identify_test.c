/* What data are, in one hash: by all bytes, by an index of them, or by what was kept of them. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/data/identify.h"
#include "common/storage/data/index_file.h"
#include "common/storage/data/tree.h"

static char top[64], data[80], cache[80];

static void make_folder(void)
{
    snprintf(top, sizeof top, "/tmp/identify-test-XXXXXX");
    cr_assert(mkdtemp(top));
    snprintf(data, sizeof data, "%s/data", top);
    snprintf(cache, sizeof cache, "%s/cache", top);
    cr_assert_eq(mkdir(data, 0755), 0);
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *place)
{
    (void)st, (void)flag, (void)place;
    return remove(path);
}

static void remove_folder(void)
{
    nftw(top, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

TestSuite(identify, .init = make_folder, .fini = remove_folder);

static void path_of(const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", data, name);
}

/* A file with as many bytes, each its place's. */
static void put(const char *name, int64_t bytes)
{
    char path[256];
    char *text = malloc((size_t)bytes + 1);
    path_of(name, path);
    for (int64_t i = 0; i < bytes; i++)
        text[i] = (char)(i % 251);
    FILE *file = fopen(path, "wb");
    cr_assert(file && fwrite(text, 1, (size_t)bytes, file) == (size_t)bytes);
    fclose(file);
    free(text);
}

/* Another byte there, and the time of the last change as it was. */
static void change_unseen(const char *name, int64_t at)
{
    char path[256], byte;
    struct stat st;
    path_of(name, path);
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= 1;
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    cr_assert(pwrite(fd, &byte, 1, at) == 1 && futimens(fd, times) == 0);
    close(fd);
}

static void count_bytes(void *ctx, int64_t bytes)
{
    *(int64_t *)ctx += bytes;
}

struct told {
    int status;
    int64_t read;
    char root[RM_HASH_HEX];
    struct error err;
};

static struct told told_of(const struct identify_options *like, struct data_index *ret)
{
    struct told told = {0};
    struct corpus *c;
    struct corpus_identity identity;
    struct identify_options options = *like;
    struct corpus_options open = {.uri = data, .context = 2, .vocabulary = 256};
    options.moved = count_bytes;
    options.ctx = &told.read;
    options.ret = ret;
    cr_assert_eq(corpus_open(&c, &open, &told.err), 0, "%s", told.err.text);
    told.status = corpus_identify(c, &options, &identity, &told.err);
    hex_encode(identity.sha256, RM_HASH_BYTES, told.root);
    corpus_free(c);
    return told;
}

static struct told by_content(void)
{
    return told_of(&(struct identify_options){.threads = 2}, NULL);
}

static struct told by_times(void)
{
    return told_of(&(struct identify_options){.threads = 2, .times = true}, NULL);
}

static struct told by_share(int share, int shares)
{
    return told_of(&(struct identify_options){.threads = 2, .times = true, .shares = shares, .share = share},
                   NULL);
}

static void make_index(void)
{
    char path[RM_URI_MAX];
    struct data_index index = {0};
    struct told told = told_of(&(struct identify_options){.threads = 2}, &index);
    cr_assert_eq(told.status, 0, "%s", told.err.text);
    cr_assert_eq(data_index_save(&index, data, path, &told.err), 0, "%s", told.err.text);
    data_index_clear(&index);
}

Test(identify, any_number_of_threads_comes_to_the_root_of_the_chunks)
{
    put("a", 0);
    put("b", 2 * TREE_CHUNK + 7);
    put("c", 5);
    put("d", TREE_CHUNK);
    struct data_index index = {0};
    char root[RM_HASH_HEX];
    uint8_t hash[RM_HASH_BYTES];
    struct told one = told_of(&(struct identify_options){.threads = 1}, &index);
    cr_assert_eq(one.status, 0, "%s", one.err.text);
    cr_assert_eq(one.read, 3 * (int64_t)TREE_CHUNK + 12);
    cr_assert_eq(index.chunks, 5);
    data_index_root(&index, 1, hash);
    hex_encode(hash, sizeof hash, root);
    cr_assert_str_eq(one.root, root);
    for (int threads = 2; threads < 9; threads += 3)
        cr_assert_str_eq(told_of(&(struct identify_options){.threads = threads}, NULL).root, root, "%d",
                         threads);
    data_index_clear(&index);
}

Test(identify, times_read_nothing_of_files_that_look_as_the_index_says)
{
    put("a", 1000);
    put("b", TREE_CHUNK + 1);
    struct told content = by_content();
    make_index();
    struct told times = by_times();
    cr_assert_eq(times.read, 0);
    cr_assert_str_eq(times.root, content.root);
    cr_assert_eq(by_content().read, TREE_CHUNK + 1001, "content is content");
}

Test(identify, content_finds_a_byte_that_times_can_not_see)
{
    put("a", 1000);
    put("b", 2 * TREE_CHUNK);
    make_index();
    struct told before = by_times();
    change_unseen("b", TREE_CHUNK + 5);
    struct told times = by_times(), content = by_content();
    cr_assert_str_eq(times.root, before.root);
    cr_assert_eq(times.status, 0);
    cr_assert_eq(content.status, -1);
    cr_assert_eq(content.err.code, ERR_DATA);
    cr_assert(content.err.person);
    cr_assert(strstr(content.err.text, "/data/b: chunk 1 (from byte 16777216) is not what its index says"),
              "%s", content.err.text);
}

Test(identify, what_does_not_look_as_the_index_says_is_read)
{
    char path[256], moved[256];
    put("a", 1000);
    put("b", 500);
    put("c", 200);
    put("e", 100);
    make_index();
    path_of("b", path);
    path_of("c", moved);
    cr_assert_eq(rename(path, moved), 0); /* c is another inode now, and b is gone */
    put("d", 7);
    put("e", 99);
    struct told times = by_times();
    cr_assert_eq(times.read, 500 + 7 + 99);
    cr_assert_str_eq(times.root, by_content().root);
}

static void spoil_index(int place)
{
    char path[RM_URI_MAX];
    data_index_path(data, place, path);
    cr_assert_eq(truncate(path, 100), 0);
}

Test(identify, a_spoilt_index_is_refused_by_times_and_passed_over_by_content)
{
    put("a", 1000);
    make_index();
    spoil_index(0);
    struct told times = by_times();
    cr_assert_eq(times.status, -1);
    cr_assert(strstr(times.err.text, "/data/.ringmaster-index: byte 100: it is cut short"), "%s",
              times.err.text);
    cr_assert(times.err.person && times.err.code == ERR_DATA);
    cr_assert_eq(by_content().status, 0);
}

Test(identify, an_index_beside_the_folder_serves_as_well)
{
    char within[RM_URI_MAX], beside[RM_URI_MAX];
    put("a", 1000);
    make_index();
    data_index_path(data, 0, within);
    data_index_path(data, 1, beside);
    cr_assert_eq(rename(within, beside), 0);
    cr_assert_eq(by_times().read, 0);
    make_index();
    put("b", 10);
    cr_assert_eq(by_times().read, 10, "an older one in the folder is no harm");
}

/* As in a folder that can't be written to: the index in it stays, and the new one lies beside it. */
static void leave_stale_index(int64_t at)
{
    char within[RM_URI_MAX], beside[RM_URI_MAX], aside[RM_URI_MAX];
    data_index_path(data, 0, within);
    data_index_path(data, 1, beside);
    snprintf(aside, sizeof aside, "%s/aside", top);
    make_index();
    cr_assert_eq(rename(within, aside), 0);
    change_unseen("a", at);
    make_index();
    cr_assert_eq(rename(within, beside), 0);
    cr_assert_eq(rename(aside, within), 0);
}

Test(identify, of_two_indexes_that_say_other_things_of_a_file_neither_is_trusted)
{
    put("a", TREE_CHUNK + 5);
    put("b", 10);
    leave_stale_index(TREE_CHUNK + 1);
    struct told times = by_times(), content = by_content(), share = by_share(1, 2);
    cr_assert_eq(content.status, 0, "what was read is what the newer one says: %s", content.err.text);
    cr_assert_eq(times.read, TREE_CHUNK + 5, "b is what both say");
    cr_assert_str_eq(times.root, content.root);
    cr_assert_str_eq(share.root, content.root);
    change_unseen("a", 3);
    content = by_content();
    cr_assert_eq(content.status, -1);
    cr_assert(strstr(content.err.text, "/data/a: chunk 0 "), "what neither says: %s", content.err.text);
}

Test(identify, a_spoilt_index_that_can_not_be_replaced_is_healed_by_one_beside_it)
{
    char within[RM_URI_MAX], beside[RM_URI_MAX];
    put("a", 1000);
    make_index();
    data_index_path(data, 0, within);
    data_index_path(data, 1, beside);
    cr_assert_eq(rename(within, beside), 0);
    make_index();
    spoil_index(0);
    struct told times = by_times();
    cr_assert_eq(times.status, 0, "%s", times.err.text);
    cr_assert_eq(times.read, 0);
}

Test(identify, times_keep_what_was_read_where_no_index_has_it)
{
    const struct identify_options options = {
        .threads = 2, .times = true, .cache = cache, .cache_bytes = 1 << 20};
    put("a", 1000);
    put("b", 100);
    struct told first = told_of(&options, NULL), again = told_of(&options, NULL);
    cr_assert_eq(first.read, 1100);
    cr_assert_eq(again.read, 0);
    cr_assert_str_eq(first.root, again.root);
    put("b", 101);
    cr_assert_eq(told_of(&options, NULL).read, 1101);
}

Test(identify, of_files_that_have_changed_the_first_is_told)
{
    put("a", 1000);
    put("b", 1000);
    struct corpus *c;
    struct error err = {0};
    struct corpus_identity identity;
    struct corpus_options open = {.uri = data, .context = 2, .vocabulary = 256};
    struct identify_options options = {.threads = 4};
    char path[256];
    cr_assert_eq(corpus_open(&c, &open, &err), 0, "%s", err.text);
    path_of("a", path);
    cr_assert_eq(truncate(path, 10), 0);
    path_of("b", path);
    cr_assert_eq(truncate(path, 10), 0);
    cr_assert_eq(corpus_identify(c, &options, &identity, &err), -1);
    cr_assert(strstr(err.text, "/data/a: the file has changed since training started"), "%s", err.text);
    corpus_free(c);
}

Test(identify, shares_are_all_of_the_data_together)
{
    put("a", 1000);
    put("b", 3 * TREE_CHUNK + 1);
    put("c", 7);
    put("d", 0);
    make_index();
    struct told content = by_content();
    for (int shares = 1; shares < 9; shares++) {
        int64_t read = 0;
        for (int share = 0; share < shares; share++) {
            struct told told = by_share(share, shares);
            cr_assert_str_eq(told.root, content.root);
            read += told.read;
        }
        cr_assert_eq(read, content.read, "%d shares", shares);
    }
}

Test(identify, a_chunk_that_differs_is_found_by_whose_share_it_is)
{
    put("a", 1000);
    put("b", 3 * TREE_CHUNK);
    make_index();
    change_unseen("b", TREE_CHUNK + 5);
    put("c", 50); /* is nobody's alone, as no index knows it */
    for (int share = 0; share < 4; share++) {
        struct told told = by_share(share, 4);
        cr_assert_eq(told.status, share == 2 ? -1 : 0, "share %d", share);
        cr_assert(share == 2 || told.read == (share ? TREE_CHUNK : 1000) + 50, "share %d", share);
        cr_assert(share != 2 || strstr(told.err.text,
                                       "/data/b: chunk 1 (from byte 16777216) is not what its index says"),
                  "%s", told.err.text);
    }
}
