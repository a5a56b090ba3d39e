/* A bounded folder of pieces, shared by programs that may die. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/data/cache.h"

enum { PIECE = 1000, FILE_BYTES = PIECE + RM_HASH_BYTES };

static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/cache-test-XXXXXX");
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

TestSuite(cache, .init = make_folder, .fini = remove_folder);

static struct cache *opened(int64_t bytes)
{
    struct cache *c;
    struct error err;
    char path[128];
    snprintf(path, sizeof path, "%s/in/depth", folder);
    cr_assert_eq(cache_open(&c, path, bytes, &err), 0, "%s", err.text);
    return c;
}

static void path_of(char out[256], const char *key)
{
    snprintf(out, 256, "%s/in/depth/%s", folder, key);
}

static void fill(uint8_t bytes[PIECE], const char *key)
{
    for (int i = 0; i < PIECE; i++)
        bytes[i] = (uint8_t)(key[(size_t)i % strlen(key)] + i);
}

static void put(struct cache *c, const char *key)
{
    uint8_t bytes[PIECE];
    struct error err;
    fill(bytes, key);
    int claim = cache_claim(c, key, &err);
    cr_assert(claim >= 0, "%s", err.text);
    cr_assert_eq(cache_put(c, key, claim, bytes, PIECE, &err), 0, "%s", err.text);
    close(claim);
}

static bool holds(struct cache *c, const char *key)
{
    uint8_t bytes[PIECE], wanted[PIECE];
    int fd = cache_take(c, key, PIECE, true);
    if (fd < 0)
        return false;
    fill(wanted, key);
    cr_assert_eq(pread(fd, bytes, PIECE, 0), PIECE);
    cr_assert_arr_eq(bytes, wanted, PIECE);
    close(fd);
    return true;
}

/* Used so many seconds after the epoch: nobody waits for a clock here. */
static void used_at(const char *key, long second)
{
    char path[256];
    path_of(path, key);
    struct timespec times[2] = {{.tv_sec = second}, {.tv_sec = second}};
    cr_assert_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

static int files(void)
{
    char path[256];
    int count = 0;
    path_of(path, "");
    DIR *dir = opendir(path);
    cr_assert(dir);
    for (const struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

Test(cache, a_piece_is_there_for_the_next_program)
{
    struct cache *c = opened(1 << 20);
    cr_assert_not(holds(c, "a"));
    put(c, "a");
    cr_assert(holds(c, "a"));
    cache_free(c);
    c = opened(1 << 20);
    cr_assert(holds(c, "a"));
    cr_assert_eq(files(), 1);
    cache_free(c);
}

Test(cache, a_flipped_byte_anywhere_is_found_and_the_piece_is_gone)
{
    struct cache *c = opened(1 << 20);
    char path[256];
    path_of(path, "a");
    for (int at = 0; at < FILE_BYTES; at += 43) {
        uint8_t byte;
        put(c, "a");
        int fd = open(path, O_RDWR | O_CLOEXEC);
        cr_assert_eq(pread(fd, &byte, 1, at), 1);
        byte ^= 4;
        cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        cr_assert_not(holds(c, "a"), "byte %d", at);
        cr_assert_eq(files(), 0);
    }
    cache_free(c);
}

Test(cache, a_file_of_another_length_is_no_piece_even_unverified)
{
    struct cache *c = opened(1 << 20);
    char path[256];
    path_of(path, "a");
    put(c, "a");
    cr_assert_eq(truncate(path, PIECE), 0);
    cr_assert_eq(cache_take(c, "a", PIECE, false), -1);
    cache_free(c);
}

Test(cache, what_was_used_longest_ago_goes_first)
{
    struct cache *c = opened(8 * FILE_BYTES);
    char key[8];
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "k%d", i);
        put(c, key);
        used_at(key, i == 0 ? 100 : 10 + i);
    }
    put(c, "new");
    cr_assert(holds(c, "new"));
    cr_assert(holds(c, "k0"), "used last");
    cr_assert_not(holds(c, "k1"));
    cr_assert(files() <= 8);
    cache_free(c);
}

Test(cache, who_has_a_piece_open_keeps_it)
{
    struct cache *c = opened(2 * FILE_BYTES);
    uint8_t bytes[PIECE], wanted[PIECE];
    put(c, "a");
    int fd = cache_take(c, "a", PIECE, true);
    cr_assert(fd >= 0);
    used_at("a", 1);
    put(c, "b");
    put(c, "c");
    cr_assert_not(holds(c, "a"));
    fill(wanted, "a");
    cr_assert_eq(pread(fd, bytes, PIECE, 0), PIECE);
    cr_assert_arr_eq(bytes, wanted, PIECE);
    close(fd);
    cache_free(c);
}

Test(cache, a_smaller_bound_holds_from_the_opening_on)
{
    struct cache *c = opened(1 << 20);
    put(c, "a");
    put(c, "b");
    put(c, "c");
    cache_free(c);
    c = opened(2 * FILE_BYTES);
    cr_assert_eq(files(), 1);
    cache_free(c);
}

Test(cache, a_piece_is_claimed_once_and_a_claim_ends_with_its_owner)
{
    struct cache *c = opened(1 << 20), *other = opened(1 << 20);
    struct error err;
    int claim = cache_claim(c, "a", &err);
    cr_assert(claim >= 0, "%s", err.text);
    cr_assert_eq(cache_claim(other, "a", &err), CACHE_BUSY);
    close(claim); /* as the kernel does it when a program is killed */
    claim = cache_claim(other, "a", &err);
    cr_assert(claim >= 0);
    cache_drop(other, "a", claim);
    cr_assert_eq(files(), 0);
    put(c, "a");
    cr_assert(holds(other, "a"));
    cache_free(c);
    cache_free(other);
}

Test(cache, what_a_killed_program_had_begun_is_cleared_away)
{
    struct cache *c = opened(1 << 20);
    struct error err;
    int claim = cache_claim(c, "a", &err), living = cache_claim(c, "b", &err);
    cr_assert_eq(write(claim, "half", 4), 4);
    close(claim);
    cr_assert_eq(files(), 2);
    struct cache *other = opened(1 << 20);
    cr_assert_eq(files(), 1, "only what nobody is at");
    cache_drop(c, "b", living);
    cache_free(c);
    cache_free(other);
}

Test(cache, a_folder_that_others_may_write_to_is_refused)
{
    struct cache *c;
    struct error err = {0};
    cr_assert_eq(chmod(folder, 0777), 0);
    cr_assert_eq(cache_open(&c, folder, 1 << 20, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "others may write"), "%s", err.text);
}
