/* Data that change while a training goes on, with nothing to see of it but the bytes. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/storage/data/identify.h"
#include "common/storage/data/scrub.h"
#include "common/storage/data/tree.h"

static char folder[64], first[80], second[80];

static void put(const char *path, int64_t bytes)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    cr_assert(fd >= 0 && ftruncate(fd, bytes) == 0);
    close(fd);
}

static void make_data(void)
{
    snprintf(folder, sizeof folder, "/tmp/scrub-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/a", folder);
    snprintf(second, sizeof second, "%s/b", folder);
    put(first, 1000);
    put(second, TREE_CHUNK + 10);
}

static void remove_data(void)
{
    unlink(first);
    unlink(second);
    rmdir(folder);
}

TestSuite(scrub, .init = make_data, .fini = remove_data);

static void change_unseen(const char *path, int64_t at)
{
    struct stat st;
    int fd = open(path, O_WRONLY);
    cr_assert(fd >= 0 && fstat(fd, &st) == 0);
    const struct timespec times[2] = {st.st_atim, st.st_mtim};
    cr_assert(pwrite(fd, "x", 1, at) == 1 && futimens(fd, times) == 0);
    close(fd);
}

struct scene {
    struct corpus *corpus;
    struct data_index index;
    struct corpus_identity identity;
    struct scrub *scrub;
};

static void open_scene(struct scene *s)
{
    struct error err = {0};
    const struct corpus_options data = {.uri = folder, .context = 4, .vocabulary = 256};
    const struct identify_options by = {.threads = 1, .ret = &s->index};
    *s = (struct scene){0};
    cr_assert_eq(corpus_open(&s->corpus, &data, &err), 0, "%s", err.text);
    cr_assert_eq(corpus_identify(s->corpus, &by, &s->identity, &err), 0, "%s", err.text);
}

static void begin(struct scene *s, double from)
{
    struct error err = {0};
    struct scrub_options options = {.corpus = s->corpus, .index = &s->index, .from = from, .pause = RM_US};
    memcpy(options.root, s->identity.sha256, sizeof options.root);
    cr_assert_eq(scrub_open(&s->scrub, &options, &err), 0, "%s", err.text);
    cr_assert_eq(s->index.count, 0, "taken over");
}

static void end_scene(struct scene *s)
{
    scrub_free(s->scrub);
    data_index_clear(&s->index);
    corpus_free(s->corpus);
}

/* Waits for what must come. */
static struct error finding(const struct scene *s)
{
    struct error err = {0};
    rm_time until = clock_now() + 60 * RM_S;
    while (!scrub_found(s->scrub, &err)) {
        cr_assert_lt(clock_now(), until, "nothing is found");
        sched_yield();
    }
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_eq(err.class, CLASS_MACHINE);
    return err;
}

Test(scrub, a_byte_that_changes_is_found_with_its_file_and_chunk)
{
    static const double from[] = {0, 0.4, 0.99, 1};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        struct scene s;
        open_scene(&s);
        change_unseen(second, TREE_CHUNK + (int64_t)i);
        begin(&s, from[i]);
        struct error err = finding(&s);
        cr_assert(strstr(err.text, "/b: chunk 1 (from byte 16777216) is not what it was"), "%s", err.text);
        end_scene(&s);
        unlink(second);
        put(second, TREE_CHUNK + 10);
    }
}

Test(scrub, who_has_the_root_alone_finds_it_at_the_end_of_a_pass)
{
    struct scene s;
    open_scene(&s);
    data_index_clear(&s.index);
    change_unseen(first, 5);
    begin(&s, 0.5);
    cr_assert(strstr(finding(&s).text, "the content is not what it was when this worker started"));
    end_scene(&s);
}

Test(scrub, a_file_that_is_cut_is_told_and_an_end_is_not_waited_for)
{
    struct scene s;
    open_scene(&s);
    cr_assert_eq(truncate(first, 3), 0);
    begin(&s, 0);
    cr_assert(strstr(finding(&s).text, "/a: the file has changed since training started"));
    end_scene(&s);
}
