/* Lanes read ahead: always the right ones, whatever is asked for in which order and with how much room. */
#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/clock.h"
#include "common/storage/data/prefetch.h"

enum { CONTEXT = 7, SEQUENCES = 3, LANES = 8, STEPS = 40, BYTES = 40000 };
enum { LANE_BYTES = SEQUENCES * (CONTEXT + 1) * 4 };

static char folder[64], file[80];
static uint8_t text[BYTES];

static void make_data(void)
{
    uint64_t seed = 3;
    snprintf(folder, sizeof folder, "/tmp/prefetch-test-XXXXXX");
    cr_assert(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/a", folder);
    for (int i = 0; i < BYTES; i++)
        text[i] = (uint8_t)splitmix64(&seed);
    FILE *out = fopen(file, "wb");
    cr_assert(out);
    cr_assert_eq(fwrite(text, 1, BYTES, out), BYTES);
    fclose(out);
}

static void remove_data(void)
{
    unlink(file);
    rmdir(folder);
}

TestSuite(prefetch, .init = make_data, .fini = remove_data);

static atomic_llong slow_from; /* the disk stands still for 1 ms from this time on; 0: never */

static int64_t sample_of(const void *ctx, int64_t step, int lane, int j)
{
    for (int64_t from = slow_from; from && clock_now() < from + RM_MS;)
        ;
    const int64_t *samples = ctx;
    return (step * LANES * SEQUENCES + lane * SEQUENCES + j) * 131 % *samples;
}

struct desk {
    struct corpus *corpus;
    struct prefetch *reader;
    int64_t samples;
};

static void open_desk(struct desk *d, int64_t room)
{
    struct error err = {0};
    struct corpus_options data = {.uri = folder, .context = CONTEXT, .vocabulary = 256};
    cr_assert_eq(corpus_open(&d->corpus, &data, &err), 0, "%s", err.text);
    d->samples = corpus_samples(d->corpus);
    struct prefetch_options options = {.corpus = d->corpus,
                                       .context = CONTEXT,
                                       .lane_sequences = SEQUENCES,
                                       .lanes = LANES,
                                       .steps = STEPS,
                                       .room = room,
                                       .sample = sample_of,
                                       .ctx = &d->samples};
    cr_assert_eq(prefetch_open(&d->reader, &options, &err), 0, "%s", err.text);
}

static void close_desk(struct desk *d)
{
    prefetch_free(d->reader);
    corpus_free(d->corpus);
}

static void lane_is_right(struct desk *d, int64_t step, int lane)
{
    struct error err = {0};
    const int32_t *tokens = prefetch_lane(d->reader, lane, &err);
    cr_assert(tokens, "%s", err.text);
    for (int j = 0; j < SEQUENCES; j++)
        for (int t = 0; t <= CONTEXT; t++)
            cr_assert_eq(tokens[j * (CONTEXT + 1) + t],
                         text[sample_of(&d->samples, step, lane, j) * CONTEXT + t], "step %d lane %d",
                         (int)step, lane);
}

static void pass_is_right(struct desk *d, int64_t step, int first, int count)
{
    prefetch_aim(d->reader, step, first, count);
    for (int lane = first; lane < first + count; lane++)
        lane_is_right(d, step, lane);
}

static const int64_t rooms[] = {0, 3 * LANE_BYTES, LANES *LANE_BYTES, 1 << 20};
enum { ROOMS = sizeof rooms / sizeof *rooms };

Test(prefetch, steps_in_a_row_get_their_lanes_in_any_room)
{
    for (int r = 0; r < ROOMS; r++) {
        struct desk d;
        open_desk(&d, rooms[r]);
        for (int64_t step = 0; step < STEPS; step++)
            pass_is_right(&d, step, 0, LANES);
        cr_assert_geq(prefetch_waited(d.reader), 0);
        close_desk(&d);
    }
}

/* Rings come and go, passes are given up in the middle and made again, steps are skipped and repeated, and an
 * evaluation reads in between. */
Test(prefetch, whatever_was_foreseen_the_lanes_are_those_asked_for)
{
    uint64_t seed = 11;
    for (int r = 0; r < ROOMS; r++) {
        struct desk d;
        open_desk(&d, rooms[r]);
        int64_t step = 0;
        int first = 0, count = LANES;
        for (int round = 0; round < 400; round++) {
            if (prng_below(&seed, 4) == 0) {
                first = (int)prng_below(&seed, LANES);
                count = 1 + (int)prng_below(&seed, (uint64_t)(LANES - first));
            }
            int stop = (int)prng_below(&seed, 3) ? count : (int)prng_below(&seed, (uint64_t)count);
            prefetch_aim(d.reader, step, first, count);
            for (int lane = first; lane < first + stop; lane++)
                lane_is_right(&d, step, lane);
            if (prng_below(&seed, 3) == 0) {
                int32_t tokens[CONTEXT + 1];
                int64_t i = (int64_t)prng_below(&seed, (uint64_t)d.samples);
                cr_assert_eq(prefetch_sample(d.reader, i, tokens, NULL), 0);
                cr_assert_eq(tokens[CONTEXT], text[i * CONTEXT + CONTEXT]);
            }
            step = prng_below(&seed, 8) ? step + (stop == count) : (int64_t)prng_below(&seed, STEPS);
        }
        close_desk(&d);
    }
}

Test(prefetch, a_step_past_the_last_is_read_when_it_is_asked_for)
{
    struct desk d;
    open_desk(&d, 1 << 20);
    pass_is_right(&d, STEPS + 3, 2, 4);
    close_desk(&d);
}

Test(prefetch, a_second_pass_needs_no_disk_where_there_is_room)
{
    struct desk d;
    open_desk(&d, 1 << 20);
    pass_is_right(&d, 5, 0, LANES);
    cr_assert_eq(truncate(file, 0), 0);
    pass_is_right(&d, 5, 0, LANES);
    close_desk(&d);
}

Test(prefetch, an_error_comes_with_the_lane_that_it_is_about)
{
    struct desk d;
    struct error err = {0};
    open_desk(&d, 0);
    pass_is_right(&d, 0, 0, LANES);
    cr_assert_eq(truncate(file, 0), 0);
    prefetch_aim(d.reader, 20, 0, LANES);
    cr_assert_null(prefetch_lane(d.reader, 0, &err));
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, "/a: the file has changed"), "%s", err.text);
    close_desk(&d);
}

Test(prefetch, a_disk_that_does_not_answer_for_a_moment_is_asked_again)
{
    struct desk d;
    setenv("RINGMASTER_FAULT", "data-read:2/fails-3", 1);
    open_desk(&d, 0);
    for (int64_t step = 0; step < 3; step++)
        pass_is_right(&d, step, 0, LANES);
    close_desk(&d);
}

/* Whether one wait is caught depends on who runs first; that some are, does not. */
Test(prefetch, a_slow_disk_is_told, .timeout = 60)
{
    struct desk d;
    open_desk(&d, 0);
    while (prefetch_waited(d.reader) == 0) {
        prefetch_aim(d.reader, 3, 0, LANES);
        slow_from = clock_now();
        lane_is_right(&d, 3, LANES - 1);
    }
    slow_from = 0;
    close_desk(&d);
}

Test(prefetch, nothing_waits_for_a_reader_that_was_never_aimed)
{
    struct desk d;
    open_desk(&d, 1 << 20);
    cr_assert_eq(prefetch_waited(d.reader), 0);
    close_desk(&d);
}
