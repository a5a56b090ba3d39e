/* sim [--seeds A..B] [--seed N] [--crowd] [--listen] [--trace] [--without MASK] [--plant BUG]
 * [--expect-found] [--counts]
 *
 * Runs each seed and prints the first violation of those that fail, the end of their trace, and which of the
 * harms are needed for it. --crowd: with up to as many workers as there may be, most of which join at once;
 * each seed is another history then. --listen: newcomers get the state while others train. --counts prints
 * what was really tried. Exit 0: none failed (with
 * --expect-found: at least one did, and failed again in the same way when it was run a second time). */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

enum { SHOWN_MAX = 5 }; /* failures that are shown with their traces */

struct options {
    uint64_t first, last;
    enum plant plant;
    uint32_t without;
    bool crowd, listens, trace, expect_found, counts;
};

struct sums {
    uint64_t failed, not_replayed;
    int64_t events;
    struct tallies tallies;
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
    fprintf(
        stderr,
        "usage: sim [--seeds A..B | --seed N] [--crowd] [--listen] [--trace] [--without MASK] [--plant BUG] "
        "[--expect-found] [--counts]\nbugs:");
    for (int i = 1; i < PLANTS; i++)
        fprintf(stderr, " %s", plant_names[i]);
    fprintf(stderr, "\n");
    return 2;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"seeds", 1, 0, 's'},        {"seed", 1, 0, 's'},
                                          {"crowd", 0, 0, 'r'},        {"trace", 0, 0, 't'},
                                          {"without", 1, 0, 'w'},      {"plant", 1, 0, 'p'},
                                          {"expect-found", 0, 0, 'f'}, {"counts", 0, 0, 'c'},
                                          {"listen", 0, 0, 'l'},       {0}};
    int c;
    *o = (struct options){.first = 1, .last = 300};
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        int plant = c == 'p' ? plant_find(optarg) : 0;
        if (c == '?' || plant < 0 || (c == 's' && !read_seeds(optarg, o)))
            return false;
        if (c == 'p')
            o->plant = (enum plant)plant;
        if (c == 'w')
            o->without = (uint32_t)strtoul(optarg, NULL, 0);
        o->crowd = o->crowd || c == 'r';
        o->listens = o->listens || c == 'l' || o->plant == PLANT_LISTENER_HOLDS;
        o->trace = o->trace || c == 't';
        o->expect_found = o->expect_found || c == 'f';
        o->counts = o->counts || c == 'c';
    }
    return optind == argc;
}

/* ---- a failure ---- */

/* A failure that does not come again from its seed is worth nothing. */
static bool replays(struct sim *sim, uint64_t seed)
{
    char before[sizeof sim->violation];
    text_copy(before, sizeof before, sim->violation);
    sim->trace = false;
    return !sim_run(sim, seed) && !strcmp(before, sim->violation);
}

/* Up to the first number or colon: what is wrong, not where. */
static size_t kind_length(const char *violation)
{
    return strcspn(violation + 3, "0123456789:") + 3;
}

/* Leaves out one harm after the other as long as the same goes wrong. */
static void minimise(struct sim *sim, uint64_t seed)
{
    char before[sizeof sim->violation];
    text_copy(before, sizeof before, sim->violation);
    for (int i = 0; i < sim->scenario.shots; i++) {
        uint32_t bit = (uint32_t)1 << i;
        if (sim->without & bit)
            continue;
        sim->without |= bit;
        bool same = !sim_run(sim, seed) && !strncmp(before, sim->violation, kind_length(before));
        if (!same)
            sim->without &= ~bit;
    }
}

static void show_tail(struct sim *sim, uint64_t seed)
{
    static char tail[TAIL_MAX][TAIL_WIDTH];
    sim->tail = tail;
    sim_run(sim, seed);
    for (int64_t i = sim->tail_lines > TAIL_MAX ? sim->tail_lines - TAIL_MAX : 0; i < sim->tail_lines; i++)
        printf("    %s\n", tail[i % TAIL_MAX]);
    sim->tail = NULL;
}

static void show_failure(struct sim *sim, const struct options *o, uint64_t seed)
{
    minimise(sim, seed);
    show_tail(sim, seed);
    printf("  with only");
    for (int i = 0; i < sim->scenario.shots; i++) {
        if (!(sim->without >> i & 1))
            printf(" %s,", shot_names[sim->scenario.shot[i].kind]);
    }
    printf(" it is: %s\n  ringmaster-sim --seed %" PRIu64 "%s --without 0x%x%s%s --trace\n", sim->violation,
           seed, o->crowd ? " --crowd" : "", sim->without, o->plant ? " --plant " : "",
           o->plant ? plant_names[o->plant] : "");
}

static void on_failure(struct sim *sim, const struct options *o, uint64_t seed, struct sums *sums)
{
    sums->failed++;
    printf("seed %" PRIu64 ": %s\n", seed, sim->violation);
    sums->not_replayed += !replays(sim, seed);
    if (!o->expect_found && !o->trace && sums->failed <= SHOWN_MAX)
        show_failure(sim, o, seed);
    fflush(stdout);
}

/* ---- all seeds ---- */

static void add_up(struct sums *sums, const struct sim *sim)
{
    sums->events += sim->events;
    for (int i = 0; i < TALLIES; i++)
        sums->tallies.of[i] += sim->tallies.of[i];
    for (int i = 0; i < SHOTS; i++) {
        for (int j = 0; j <= RDZV_STATES; j++)
            sums->tallies.shot[i][j] += sim->tallies.shot[i][j];
    }
}

static void print_counts(const struct sums *sums)
{
    printf("%-22s %10s", "harm", "times");
    for (int j = 0; j < RDZV_FINISHED; j++)
        printf(" %10s", rdzv_state_name((enum rdzv_state)j));
    printf(" %10s\n", "(none)");
    for (int i = 0; i < SHOTS; i++) {
        int64_t all = 0;
        for (int j = 0; j <= RDZV_STATES; j++)
            all += sums->tallies.shot[i][j];
        printf("%-22s %10" PRId64, shot_names[i], all);
        for (int j = 0; j < RDZV_FINISHED; j++)
            printf(" %10" PRId64, sums->tallies.shot[i][j]);
        printf(" %10" PRId64 "\n", sums->tallies.shot[i][RDZV_STATES]);
    }
    for (int i = 0; i < TALLIES; i++)
        printf("%10" PRId64 " %s\n", sums->tallies.of[i], tally_names[i]);
}

static int run_all(struct sim *sim, const struct options *o)
{
    struct sums sums = {0};
    sim->plant = o->plant;
    sim->crowd = o->crowd;
    sim->listens = o->listens;
    for (uint64_t seed = o->first; seed <= o->last; seed++) {
        sim->trace = o->trace;
        sim->without = o->without;
        bool fine = sim_run(sim, seed);
        add_up(&sums, sim);
        if (!fine)
            on_failure(sim, o, seed, &sums);
        if (!fine && o->expect_found)
            break;
    }
    if (o->counts)
        print_counts(&sums);
    printf("%" PRIu64 " of %" PRIu64 " seeds failed; %" PRId64 " events, %" PRId64 " rings\n", sums.failed,
           o->last - o->first + 1, sums.events, sums.tallies.of[TALLY_RINGS]);
    if (sums.not_replayed)
        printf("%" PRIu64 " failures did not replay from their seeds\n", sums.not_replayed);
    return sums.not_replayed || (sums.failed > 0) != o->expect_found;
}

/* The large pieces that come and go with each seed stay with the process. */
static void keep_memory(void)
{
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
}

int main(int argc, char **argv)
{
    struct options o;
    if (!read_options(argc, argv, &o))
        return usage();
    keep_memory();
    struct sim *sim = sim_new();
    int rc = sim ? run_all(sim, &o) : 1;
    sim_free(sim);
    return rc;
}
