/* data_bench FOLDER [ROUNDS [WAYS]]: what data are, in one hash, by the last so many of the ways, in turns:
 * the best of the rounds counts. Run by hand; the folder's index must be there (`ringmaster data index`). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/os/clock.h"
#include "common/storage/data/identify.h"

enum { WAYS = 4, BYTES = 256 };

struct way {
    const char *name;
    struct identify_options options;
    double seconds, cpu; /* of the best round; of that one */
};

static double cpu_seconds(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
}

/* From nothing known, as a start has it. Bytes of the data; -1: it failed. */
static int64_t go_way(const char *folder, struct way *way)
{
    struct corpus *corpus;
    struct corpus_identity identity;
    struct error err = {0};
    const struct corpus_options open = {
        .uri = folder, .format = CORPUS_TEXT, .bytes_alone = true, .context = 1, .vocabulary = BYTES};
    double cpu = cpu_seconds();
    rm_time begun = clock_now();
    int status = corpus_open(&corpus, &open, &err);
    if (status == 0) {
        status = corpus_identify(corpus, &way->options, &identity, &err);
        corpus_free(corpus);
    }
    double seconds = (double)(clock_now() - begun) / RM_S;
    if (status < 0)
        fprintf(stderr, "data_bench: %s\n", err.text);
    if (!way->seconds || seconds < way->seconds) {
        way->seconds = seconds;
        way->cpu = cpu_seconds() - cpu;
    }
    return status < 0 ? -1 : identity.bytes;
}

int main(int argc, char **argv)
{
    struct way way[WAYS] = {{.name = "chain", .options = {.kind = IDENTITY_CHAIN, .threads = 1}},
                            {.name = "tree, 1 thread", .options = {.threads = 1}},
                            {.name = "tree, 2 threads", .options = {.threads = 2}},
                            {.name = "index", .options = {.threads = 1, .times = true}}};
    int rounds = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3;
    int first = argc > 3 ? WAYS - (int)strtol(argv[3], NULL, 10) : 0;
    int64_t bytes = 0;
    for (int round = 0; round < rounds && argc > 1; round++)
        for (int i = first; i < WAYS; i++)
            if ((bytes = go_way(argv[1], &way[i])) < 0)
                return 1;
    for (int i = first; i < WAYS && bytes; i++)
        printf("| %s | %.6f s | %.6f CPU s | %.6f of the first |\n", way[i].name, way[i].seconds, way[i].cpu,
               way[i].seconds / way[first].seconds);
    return bytes ? 0 : 2;
}
