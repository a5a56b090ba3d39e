/* A process that may open few files says so, and says nothing of the data. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/storage/data/identify.h"
#include "common/storage/data/index_file.h"

enum { NUMBERS = 96, CONTEXT = 4 }; /* of descriptors; those of the test's own frame are among them */

static char folder[64], first[80], below[80], second[96], index_path[RM_URI_MAX];

static void put(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    cr_assert(fd >= 0 && write(fd, "some text of a book", 19) == 19);
    close(fd);
}

static void make_data(void)
{
    snprintf(folder, sizeof folder, "/tmp/few-descriptors-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(first, sizeof first, "%s/a", folder);
    snprintf(below, sizeof below, "%s/below", folder);
    snprintf(second, sizeof second, "%s/b", below);
    cr_assert_eq(mkdir(below, 0755), 0);
    put(first);
    put(second);
    data_index_path(folder, 0, index_path);
}

static void remove_data(void)
{
    unlink(index_path);
    unlink(first);
    unlink(second);
    rmdir(below);
    rmdir(folder);
}

TestSuite(few_descriptors, .init = make_data, .fini = remove_data);

static int open_corpus(struct corpus **ret, struct error *err)
{
    const struct corpus_options data = {.uri = folder, .context = CONTEXT, .vocabulary = 256};
    return corpus_open(ret, &data, err);
}

static int read_all(void *ctx, struct error *err)
{
    struct corpus *corpus;
    int32_t tokens[CONTEXT + 1];
    (void)ctx;
    if (open_corpus(&corpus, err) < 0)
        return -1;
    int status = 0;
    for (int64_t i = 0; i < corpus_samples(corpus) && status == 0; i++)
        status = corpus_read(corpus, i, tokens, err);
    corpus_free(corpus);
    return status;
}

static int identify(void *ctx, struct error *err)
{
    struct corpus *corpus;
    struct corpus_identity identity;
    if (open_corpus(&corpus, err) < 0)
        return -1;
    int status = corpus_identify(corpus, ctx, &identity, err);
    corpus_free(corpus);
    return status;
}

static int make_index(void *ctx, struct error *err)
{
    struct data_index index = {0};
    struct corpus *corpus;
    struct corpus_identity identity;
    char path[RM_URI_MAX];
    const struct identify_options options = {.threads = 1, .anew = true, .ret = &index};
    (void)ctx;
    if (open_corpus(&corpus, err) < 0)
        return -1;
    int status = corpus_identify(corpus, &options, &identity, err);
    corpus_free(corpus);
    if (status == 0)
        status = data_index_save(&index, folder, path, err);
    data_index_clear(&index);
    return status;
}

/* With ever more numbers, until it works; refused at least once. */
static void works_once_there_are_enough(int (*work)(void *ctx, struct error *err), void *ctx)
{
    int refused = 0, result = -1;
    for (int numbers = 3; result < 0; numbers++) {
        const struct rlimit few = {(rlim_t)numbers, 1024};
        struct error err = {0};
        cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
        result = work(ctx, &err);
        cr_assert(result == 0 || (err.code == ERR_MACHINE && err.class == CLASS_MACHINE && !err.person),
                  "%d: code %d, class %d: %s", numbers, (int)err.code, (int)err.class, err.text);
        cr_assert(result == 0 || strstr(err.text, "Too many open files"), "%d: %s", numbers, err.text);
        refused += result < 0;
        cr_assert_lt(numbers, NUMBERS);
    }
    cr_assert_gt(refused, 0);
}

Test(few_descriptors, data_are_read_or_the_machine_is_short_of_them)
{
    works_once_there_are_enough(read_all, NULL);
}

Test(few_descriptors, data_are_identified_or_the_machine_is_short_of_them)
{
    works_once_there_are_enough(identify, &(struct identify_options){.threads = 2});
    works_once_there_are_enough(identify, &(struct identify_options){.kind = IDENTITY_CHAIN, .threads = 1});
}

Test(few_descriptors, an_index_is_written_whole_and_believed_or_the_machine_is_short_of_them)
{
    works_once_there_are_enough(make_index, NULL);
    works_once_there_are_enough(identify, &(struct identify_options){.threads = 1, .times = true});
    works_once_there_are_enough(identify, &(struct identify_options){.threads = 1});
}
