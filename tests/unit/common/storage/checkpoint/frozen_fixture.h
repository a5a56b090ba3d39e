/* Folders with the files of a snapshot of processes, and publishing them in one call. */
#ifndef RM_TESTS_FROZEN_FIXTURE_H
#define RM_TESTS_FROZEN_FIXTURE_H

#include <fcntl.h>

#include "common/storage/checkpoint/frozen.h"
#include "fixture.h"

static inline void frozen_fixture_key(uint8_t out[RM_HASH_BYTES], const char *job)
{
    frozen_key(job, strlen(job), out);
}

static inline void frozen_fixture_file(int folder, const char *name, uint64_t seed, size_t bytes)
{
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0);
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t[1 << 13])) {
        static uint64_t words[1 << 13];
        size_t left = bytes - i < sizeof words ? bytes - i : sizeof words;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            words[k] = splitmix64(&seed);
        cr_assert_eq(write(fd, words, left), (ssize_t)left);
    }
    close(fd);
}

/* Beside the store's own, so that it goes with the fixture even where its maker was killed. */
static inline int frozen_fixture_empty(void)
{
    char path[512];
    fixture_path(path, ".made-XXXXXX");
    cr_assert(mkdtemp(path));
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* An open folder of its own: a file of `bytes` (0 is fine), an empty one and a small one. Its files follow
 * from the seed. */
static inline int frozen_fixture_folder(uint64_t seed, size_t bytes)
{
    int folder = frozen_fixture_empty();
    frozen_fixture_file(folder, "pages-1.img", seed, bytes);
    frozen_fixture_file(folder, "core-1000.img", seed + 1, 999);
    frozen_fixture_file(folder, "empty", 0, 0);
    return folder;
}

static inline void frozen_fixture_remove(int folder)
{
    char path[64], target[128];
    snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(path, target, sizeof target - 1);
    cr_assert(length > 0);
    target[length] = 0;
    nftw(target, fixture_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    close(folder);
}

struct frozen_fixture {
    int64_t number;
    uint64_t seed, chance;
    size_t bytes;
    const char *job; /* whose key seals it; NULL: "mine" */
};

static inline int frozen_fixture_try(const struct frozen_fixture *f, struct error *err)
{
    uint8_t key[RM_HASH_BYTES];
    struct frozen_manifest *m = calloc(1, sizeof *m);
    cr_assert(m);
    frozen_fixture_key(key, f->job ? f->job : "mine");
    m->number = f->number;
    snprintf(m->job, sizeof m->job, "prog");
    m->ground = (struct frozen_ground){.image = "docker.io/me/prog@sha256:ab",
                                       .machine = "x86_64",
                                       .features = "avx avx2 sse4_1",
                                       .kernel = "6.18.0",
                                       .criu = 40101};
    int folder = frozen_fixture_folder(f->seed, f->bytes);
    struct frozen_publication p = {
        .store = fixture_store, .key = key, .chance = f->chance ? f->chance : f->seed, .folder = folder};
    int result = frozen_publish(&p, m, err);
    frozen_fixture_remove(folder);
    free(m);
    return result;
}

static inline void frozen_fixture_publish(const struct frozen_fixture *f)
{
    struct error err = {0};
    cr_assert_eq(frozen_fixture_try(f, &err), 0, "%s", err.text);
}

/* As the job "mine". older: whose key it has besides, NULL: none. */
static inline int frozen_fixture_settle(int64_t number, int keep, const char *older, struct error *err)
{
    uint8_t own[RM_HASH_BYTES], other[RM_HASH_BYTES];
    frozen_fixture_key(own, "mine");
    frozen_fixture_key(other, older ? older : "");
    return frozen_settle(&(struct frozen_settling){.store = fixture_store,
                                                   .keys = {.own = own, .older = older ? other : NULL},
                                                   .number = number,
                                                   .keep = keep},
                         err);
}

/* The number that "mine" would go on from; 0: none, and no error. */
static inline int64_t frozen_fixture_newest(void)
{
    uint8_t key[RM_HASH_BYTES];
    struct frozen_choice choice;
    struct error err = {0};
    struct frozen_manifest *m = malloc(sizeof *m);
    frozen_fixture_key(key, "mine");
    struct frozen_keys keys = {.own = key};
    cr_assert_eq(frozen_choose(fixture_store, &keys, 0, m, &choice, &err), 0, "%s", err.text);
    int64_t number = choice.found ? m->number : 0;
    free(m);
    return number;
}

#endif
