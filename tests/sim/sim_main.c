/* sim [--seeds A..B] [--seed N] [--trace] [--plant BUG] [--expect-found]
 *
 * Runs each seed and prints the first violation of those that fail. Exit 0: none failed (with --expect-found:
 * at least one did, and failed again in the same way when it was run a second time). */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

struct options {
    uint64_t first, last;
    enum plant plant;
    bool trace, expect_found;
};

static int plant_find(const char *name)
{
    for (int i = 0; i < PLANTS; i++) {
        if (!strcmp(plant_names[i], name))
            return i;
    }
    return -1;
}

static bool read_seeds(const char *text, struct options *o)
{
    char *end;
    o->first = o->last = strtoull(text, &end, 10);
    if (!strncmp(end, "..", 2))
        o->last = strtoull(end + 2, &end, 10);
    return end != text && !*end && o->first <= o->last;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--seeds A..B | --seed N] [--trace] [--plant BUG] [--expect-found]\nbugs:");
    for (int i = 1; i < PLANTS; i++)
        fprintf(stderr, " %s", plant_names[i]);
    fprintf(stderr, "\n");
    return 2;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"seeds", 1, 0, 's'},        {"seed", 1, 0, 's'},
                                          {"trace", 0, 0, 't'},        {"plant", 1, 0, 'p'},
                                          {"expect-found", 0, 0, 'f'}, {0}};
    int c;
    *o = (struct options){.first = 1, .last = 300};
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int plant = c == 'p' ? plant_find(optarg) : 0;
        if (c == '?' || plant < 0 || (c == 's' && !read_seeds(optarg, o)))
            return false;
        if (c == 'p')
            o->plant = (enum plant)plant;
        o->trace = o->trace || c == 't';
        o->expect_found = o->expect_found || c == 'f';
    }
    return optind == argc;
}

/* A failure that does not come again from its seed is worth nothing. */
static bool replays(struct sim *sim, uint64_t seed, enum plant plant)
{
    char before[sizeof sim->violation];
    text_copy(before, sizeof before, sim->violation);
    return !sim_run(sim, seed, plant, false) && !strcmp(before, sim->violation);
}

static int run_all(struct sim *sim, const struct options *o)
{
    uint64_t failed = 0, not_replayed = 0;
    int64_t events = 0, forms = 0;
    for (uint64_t seed = o->first; seed <= o->last; seed++) {
        bool fine = sim_run(sim, seed, o->plant, o->trace);
        events += sim->events;
        forms += sim->forms;
        if (fine)
            continue;
        failed++;
        printf("seed %" PRIu64 ": %s\n", seed, sim->violation);
        not_replayed += !replays(sim, seed, o->plant);
        if (o->expect_found)
            break;
    }
    printf("%" PRIu64 " of %" PRIu64 " seeds failed; %" PRId64 " events, %" PRId64 " member lists\n", failed,
           o->last - o->first + 1, events, forms);
    if (not_replayed)
        printf("%" PRIu64 " failures did not replay from their seeds\n", not_replayed);
    return not_replayed || (failed > 0) != o->expect_found;
}

int main(int argc, char **argv)
{
    struct options o;
    if (!read_options(argc, argv, &o))
        return usage();
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return 1;
    sim->rout = calloc(1, sizeof *sim->rout);
    sim->aout = calloc(1, sizeof *sim->aout);
    sim->eout = calloc(1, sizeof *sim->eout);
    int rc = sim->rout && sim->aout && sim->eout ? run_all(sim, &o) : 1;
    free(sim->rout);
    free(sim->aout);
    free(sim->eout);
    free(sim);
    return rc;
}
