/* A ring of two or three, all of whose trainers are killed at once at a named point of a step, wherever each
 * of them then is. Whoever attaches next finds of each the state of some step, whole; an update that is
 * offered leads there from the step before, whole too; and all go on together to the bits of a run that
 * nobody disturbed. What would break it is planted, and found. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/fault.h"
#include "tests/unit/trainer/backend/cpu/sums/exact_case.h"
#include "trainer/state/state_file.h"

enum { LAST = 4, TORN = 3 /* exit code */ };

enum plant {
    NONE,
    HEADER_IN_PLACE, /* the sum of the headers lies behind the kept update's words */
    K_EARLY,         /* a pass writes its exponents into the kept update's record when it begins */
    VALID_STAYS,     /* the kept update still counts as whole while words are written over it */
};

/* Of an undisturbed run, made before anybody is killed: the arrays and the point of each step. */
struct known {
    struct state_point point[LAST + 1];
    float arrays[]; // (LAST + 1, 3, parameters)
};
static struct known *known;

static size_t count(void)
{
    return (size_t)case_layout()->parameters;
}

static float *known_arrays(int64_t step)
{
    return known->arrays + (size_t)step * 3 * count();
}

/* At step 3 a tensor's gradient is far larger: its k changes, and a rescaled pass comes behind the first one.
 */
static void explode(int64_t step, int lane, float *grads, float *loss)
{
    const struct model_tensor *t = &case_layout()->tensor[2];
    (void)loss;
    for (int64_t i = t->first; step == 3 && lane == 1 && i < t->first + t->count; i++)
        grads[i] *= 1e6f;
}

/* ---- a ring that lives in memory of its own, and dies ---- */

static void attach(struct ring *r, const int *fd, int world)
{
    const struct update_rule rule = case_rule();
    const struct state_shape shape = {.layout = case_layout(), .lanes = CASE_LANES, .fast = false};
    *r = (struct ring){.world = world, .meddle = explode};
    for (int rank = 0; rank < world; rank++) {
        r->fd[rank] = fd[rank];
        if (state_open(&r->state[rank], fd[rank], &shape, NULL) < 0 ||
            lanes_open(&r->lanes[rank], r->state[rank], NULL, NULL) < 0)
            _exit(1);
        if (state_pending(r->state[rank]))
            update_apply(r->state[rank], &rule, NULL, NULL);
        if (!state_holds(r->state[rank], NULL))
            case_first_weights(r->state[rank]);
    }
    for (int lane = 0; lane < CASE_LANES; lane++)
        r->owner[lane] = lane * world / CASE_LANES;
}

/* What a pass of all ranks has written when it is cut off before the headers' sum is there. */
static void begin_pass(struct ring *r, const int32_t *k, enum plant plant)
{
    for (int rank = 0; rank < r->world; rank++) {
        struct state *s = r->state[rank];
        int kept = !state_received_buffer(s);
        ring_lanes(r, rank, k);
        if (plant == K_EARLY)
            memcpy(s->header->update[kept].k, k ? k : state_current(s)->k, sizeof s->header->update[kept].k);
        if (plant == HEADER_IN_PLACE)
            memcpy(state_header_words(s, kept), r->sums[rank].header, (size_t)s->header_words * 4);
        memset(r->sums[rank].header_to, 0x55, (size_t)s->header_words * 2); /* half of it has come */
    }
}

static void move_words(struct ring *r, enum plant plant)
{
    size_t half = count() * 2;
    uint32_t *sum = malloc(2 * half), *to[CASE_WORLD_MAX];
    ring_sum(r, sum);
    for (int rank = 0; rank < r->world; rank++) {
        struct state *s = r->state[rank];
        int kept = !state_received_buffer(s);
        bool stays = plant == VALID_STAYS && state_kept(s, &(struct state_update){0});
        to[rank] = lanes_words_to(r->lanes[rank]);
        if (stays)
            s->header->update[kept].valid = 1;
    }
    for (int rank = 0; rank < r->world; rank++)
        memcpy(to[rank], sum, half);
    for (int rank = 0; rank < r->world; rank++) {
        FAULT("words-half");
        memcpy(to[rank] + half / 4, sum + half / 4, half);
    }
    free(sum);
}

static void step(struct ring *r, enum plant plant, uint64_t missing)
{
    const struct update_rule rule = case_rule();
    struct verdict v = {.kind = VERDICT_FITS};
    do {
        int32_t k[RM_TENSORS_MAX];
        bool again = v.kind == VERDICT_RESCALE;
        memcpy(k, v.k, sizeof k);
        begin_pass(r, again ? k : NULL, plant);
        ring_decide(r, &v);
    } while (v.kind == VERDICT_RESCALE);
    if (v.kind != VERDICT_FITS)
        _exit(1);
    move_words(r, plant);
    for (int rank = 0; rank < r->world; rank++)
        if (!(missing >> rank & 1))
            update_commit(r->lanes[rank], &rule, NULL);
}

/* The last rank does not get through step `lag` (0: none); the others begin the next one, and wait for it. */
static void live(const int *fd, int world, enum plant plant, int lag)
{
    struct ring r;
    attach(&r, fd, world);
    for (int i = 1; i <= (lag ? lag : LAST); i++)
        step(&r, plant, i == lag ? (uint64_t)1 << (world - 1) : 0);
    if (lag) {
        r.world--;
        for (int lane = 0; lane < CASE_LANES; lane++)
            r.owner[lane] = lane * r.world / CASE_LANES;
        begin_pass(&r, NULL, plant);
    }
    _exit(0);
}

/* ---- who comes after ---- */

static void fill(struct state *s, int64_t step)
{
    state_receive_begin(s);
    struct near_arrays a = near_arrays(s);
    const float *from = known_arrays(step);
    memcpy(a.params, from, count() * sizeof *from);
    memcpy(a.m, from + count(), count() * sizeof *from);
    memcpy(a.v, from + 2 * count(), count() * sizeof *from);
    state_receive_end(s, &known->point[step], NULL);
}

static bool same_as_known(struct state *s, int64_t step)
{
    struct near_arrays a = near_arrays(s);
    const float *at = known_arrays(step);
    size_t bytes = count() * sizeof *at;
    return !memcmp(a.params, at, bytes) && !memcmp(a.m, at + count(), bytes) &&
           !memcmp(a.v, at + 2 * count(), bytes) &&
           !memcmp(state_current(s)->lineage, known->point[step].lineage, RM_HASH_BYTES) &&
           state_current(s)->loss_known == (step > 0);
}

/* Does the update that this state offers lead to it from the step before, on a state that holds that? */
static bool leads_here(const struct state_update *kept)
{
    const struct update_rule rule = case_rule();
    const struct state_shape shape = {.layout = case_layout(), .lanes = CASE_LANES, .fast = false};
    struct state *s;
    struct state_update got;
    int fd = case_memfd();
    if (state_open(&s, fd, &shape, NULL) < 0)
        _exit(1);
    fill(s, kept->step - 1);
    state_update_receive_begin(s, &got);
    memcpy(got.k, kept->k, (size_t)case_layout()->tensors * sizeof *got.k);
    memcpy(near_words(&got), near_words(kept),
           (size_t)(kept->words_count + kept->header_count) * sizeof *kept->header);
    bool leads = update_check_received(s, &rule, NULL, &known->point[kept->step], NULL) == 0;
    state_free(s);
    close(fd);
    return leads;
}

/* Ends with TORN where something is not what it should be. Who is behind receives: the step before and its
 * update, where that is kept, else all of it. */
static void go_on(const int *fd, int world)
{
    struct ring r;
    int64_t newest = 0;
    attach(&r, fd, world);
    for (int rank = 0; rank < world; rank++) {
        struct state_point point;
        struct state_update kept;
        if (!state_holds(r.state[rank], &point) || !same_as_known(r.state[rank], point.step) ||
            (state_kept(r.state[rank], &kept) && !leads_here(&kept)))
            _exit(TORN);
        newest = point.step > newest ? point.step : newest;
    }
    bool behind = false, kept = false;
    for (int rank = 0; rank < world; rank++) {
        bool here = state_current(r.state[rank])->step == newest;
        behind |= !here;
        kept |= here && state_kept(r.state[rank], &(struct state_update){0});
    }
    if (behind && !kept)
        _exit(TORN); /* the others had no right to forget it */
    for (int rank = 0; rank < world; rank++)
        if (state_current(r.state[rank])->step != newest)
            fill(r.state[rank], newest);
    for (int64_t i = newest; i < LAST; i++)
        step(&r, NONE, 0);
    for (int rank = 0; rank < world; rank++)
        if (memcmp(near_arrays(r.state[rank]).params, known_arrays(LAST), count() * sizeof(float)))
            _exit(TORN);
    _exit(0);
}

/* ---- stories ---- */

static int exit_code(pid_t child)
{
    int status = 0;
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void learn(void)
{
    size_t bytes = sizeof *known + (LAST + 1) * 3 * count() * sizeof(float);
    int fd = case_memfd();
    known = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(known, MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        struct ring r;
        attach(&r, &fd, 1);
        for (int i = 0; i <= LAST; i++) {
            struct near_arrays a = near_arrays(r.state[0]);
            memcpy(known_arrays(i), a.params, count() * sizeof(float));
            memcpy(known_arrays(i) + count(), a.m, count() * sizeof(float));
            memcpy(known_arrays(i) + 2 * count(), a.v, count() * sizeof(float));
            if (!state_holds(r.state[0], &known->point[i]))
                _exit(1);
            ring_step(&r, 0);
        }
        _exit(0);
    }
    cr_assert_eq(exit_code(child), 0);
    close(fd);
}

struct story {
    int world;
    enum plant plant;
    const char *fault; /* NULL: nobody is killed */
    int lag;
};

enum outcome { SOUND, FOUND, NOT_REACHED };

static enum outcome tell(const struct story *story)
{
    int fd[CASE_WORLD_MAX];
    for (int rank = 0; rank < story->world; rank++)
        fd[rank] = case_memfd();
    pid_t child = fork();
    if (child == 0) {
        if (story->fault)
            setenv("RINGMASTER_FAULT", story->fault, 1);
        live(fd, story->world, story->plant, story->lag);
    }
    int first = exit_code(child);
    cr_assert(first == 0 || (story->fault && first == -SIGKILL), "%d at %s", first, story->fault);
    child = fork();
    if (child == 0)
        go_on(fd, story->world);
    int second = exit_code(child);
    cr_assert(second == 0 || second == TORN, "%d after %s", second, story->fault);
    for (int rank = 0; rank < story->world; rank++)
        close(fd[rank]);
    if (second == TORN)
        return FOUND;
    return story->fault && first == 0 ? NOT_REACHED : SOUND;
}

static const char *const points[] = {"header-done",    "kept-forgotten", "header-copied", "words-half",
                                     "words-complete", "update-record",  "update-valid",  "piece-half",
                                     "before-commit",  "record-written", "after-commit"};
enum { POINTS = sizeof points / sizeof *points };

/* At each point, as often as it comes up to step 3: in the first and the last of them the headers go round
 * twice. Returns how many were found, and says which where none may be. What is planted shows at some of them
 * alone, so that there all are tried, emulated or not. */
static int kills(int world, enum plant plant)
{
    int found = 0;
    for (int i = 0; i < POINTS; i++) {
        enum outcome outcome = SOUND;
        for (int n = 1; outcome != NOT_REACHED && n <= (i ? 3 : 5) * world; n += plant ? 1 : CASE_SHARE) {
            char fault[64];
            bool of_pieces = !strcmp(points[i], "piece-half");
            snprintf(fault, sizeof fault, "%s:%d", points[i], of_pieces ? 17 * n : n);
            outcome = tell(&(struct story){.world = world, .plant = plant, .fault = fault});
            cr_assert(plant || outcome != FOUND, "torn in a world of %d by SIGKILL at %s", world, fault);
            cr_assert(n > 1 || outcome != NOT_REACHED, "%s is reached", fault);
            found += outcome == FOUND;
        }
    }
    return found;
}

static int lags(int world, enum plant plant)
{
    int found = 0;
    for (int lag = 1; lag < LAST; lag++) {
        bool torn = tell(&(struct story){.world = world, .plant = plant, .lag = lag}) == FOUND;
        cr_assert(plant || !torn, "in a world of %d, one that lacks step %d", world, lag);
        found += torn;
    }
    return found;
}

Test(ring_torn, a_kill_at_any_point_of_a_step_of_two_or_three_leaves_states_and_updates_whole, .init = learn)
{
    cr_assert_eq(kills(2, NONE), 0);
    cr_assert_eq(kills(3, NONE), 0);
}

Test(ring_torn, who_lacks_a_step_that_the_others_have_made_finds_its_update_whole_while_they_wait,
     .init = learn)
{
    cr_assert_eq(lags(2, NONE), 0);
    cr_assert_eq(lags(3, NONE), 0);
}

Test(ring_torn, a_header_that_is_reduced_in_place_is_found, .init = learn)
{
    cr_assert_gt(lags(2, HEADER_IN_PLACE), 0);
}

Test(ring_torn, exponents_that_are_written_before_all_are_in_the_step_are_found, .init = learn)
{
    cr_assert_gt(kills(2, K_EARLY), 0);
}

Test(ring_torn, an_update_that_counts_as_whole_while_words_are_written_over_it_is_found, .init = learn)
{
    cr_assert_gt(kills(2, VALID_STAYS), 0);
}
