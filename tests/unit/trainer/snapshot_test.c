/* Periodic snapshots by real trainers: what is announced is the state of that step, it stays so while
 * training goes on and trainers die, and it costs the bits nothing. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "trainer_rig.h"

/* A trainer that never says what is waited for goes on to say that it lives: without an end of its own such a
 * test hangs. */
TestSuite(snapshot, .timeout = 240);

enum { EVERY = 5 };

static const int all[RIG_TRAINERS] = {0, 1, 2, 3, 4, 5, 6, 7};

static struct rig *open_rig(int world)
{
    struct rig *rig = rig_open();
    rig->spec.checkpoint.every_steps = EVERY;
    for (int w = 0; w < world; w++)
        rig_spawn(rig, w, NULL);
    return rig;
}

/* A run without snapshots. */
static const char *reference(void)
{
    static char hex[RM_HASH_HEX];
    if (!hex[0]) {
        struct rig *rig = rig_open();
        rig_spawn(rig, 0, NULL);
        rig_form(rig, all, 1);
        rig_finish(rig, all, 1, hex);
        rig_close(rig);
    }
    return hex;
}

static void expect_digest(struct rig *rig, const int *workers, int n)
{
    char digest[RM_HASH_HEX];
    rig_finish(rig, workers, n, digest);
    cr_assert_str_eq(digest, reference());
}

/* The slice that worker w announced, put where it belongs in whole (NULL: only looked at); its hash. */
static void read_slice(struct rig *rig, int w, const struct msg_snapshot *m, float *whole,
                       uint8_t hash[RM_HASH_BYTES])
{
    size_t bytes;
    float *area = rig_map_area(rig, w, SNAPSHOT_TAKEN, &bytes);
    int64_t n = (int64_t)(bytes / sizeof(float) / 3);
    struct sha256 *h = sha256_open();
    struct model_range weights = model_weights_part(n, m->part, m->parts), moments = {m->first, m->count};
    for (int i = 0; i < 3; i++) {
        struct model_range range = i ? moments : weights;
        const float *from = area + i * n + range.first;
        sha256_add(h, from, (size_t)range.count * sizeof(float));
        if (whole)
            memcpy(whole + i * n + range.first, from, (size_t)range.count * sizeof(float));
    }
    sha256_finish(h, hash);
    munmap(area, bytes);
}

/* As if the agents had put the slices into a checkpoint and somebody else loads it: the end is the same. */
static void expect_whole(const struct msg_snapshot *snapshot, const float *state)
{
    struct rig *rig = rig_open();
    rig_spawn(rig, 0, NULL);
    rig_load(rig, 0, snapshot, state);
    expect_digest(rig, all, 1);
    rig_close(rig);
}

static float *room_for_state(const struct rig *rig)
{
    struct model_layout layout;
    model_layout_init(&layout, &rig->spec.model.shape);
    return calloc(1, (size_t)snapshot_area_bytes(&layout));
}

static void free_snapshot(struct rig *rig, int w)
{
    struct message *m = calloc(1, sizeof *m);
    m->type = MSG_SNAPSHOT_FREE;
    rig_send(rig, w, m);
    free(m);
}

static void let_train_on(struct rig *rig, int world, int64_t step)
{
    for (int w = 0; w < world; w++)
        rig_until(rig, w, step);
}

/* From that step to the end. */
static void let_all_be_written(struct rig *rig, const int *workers, int n, int64_t from)
{
    for (int64_t step = from; step < RIG_STEPS; step += EVERY) {
        for (int i = 0; i < n; i++) {
            cr_assert(rig_expect(rig, workers[i], MSG_SNAPSHOT));
            cr_assert_eq(rig->message.snapshot.state.step, step);
            free_snapshot(rig, workers[i]);
        }
    }
}

static void one_snapshot(int world)
{
    struct rig *rig = open_rig(world);
    float *state = room_for_state(rig);
    struct msg_snapshot taken[RIG_TRAINERS];
    uint8_t before[RM_HASH_BYTES], after[RM_HASH_BYTES];
    rig_form(rig, all, world);
    for (int w = 0; w < world; w++) {
        cr_assert(rig_expect(rig, w, MSG_SNAPSHOT));
        taken[w] = rig->message.snapshot;
        cr_assert_eq(taken[w].state.step, EVERY);
    }
    for (int w = 0; w < world; w++)
        read_slice(rig, w, &taken[w], state, before);
    /* The next one is due at 10 and waits for the agent, which still reads. */
    let_train_on(rig, world, 2 * EVERY);
    read_slice(rig, world - 1, &taken[world - 1], NULL, after);
    cr_assert_eq(memcmp(before, after, sizeof before), 0, "five steps later it is another state");
    for (int w = 0; w < world; w++)
        free_snapshot(rig, w);
    expect_whole(&taken[0], state);
    /* That one was copied, for nobody could know that the memory would be free. */
    for (int w = 0; w < world; w++) {
        cr_assert(rig_expect(rig, w, MSG_SNAPSHOT));
        taken[w] = rig->message.snapshot;
        cr_assert_eq(taken[w].state.step, 2 * EVERY);
        read_slice(rig, w, &taken[w], state, after);
        free_snapshot(rig, w);
    }
    expect_whole(&taken[0], state);
    let_all_be_written(rig, all, world, 3 * EVERY);
    expect_digest(rig, all, world);
    free(state);
    rig_close(rig);
}

Test(snapshot, what_one_worker_announces_is_that_state_and_stays_so)
{
    one_snapshot(1);
}

Test(snapshot, the_slices_of_three_workers_make_one_state)
{
    one_snapshot(3);
}

/* The model has 29 pieces: the update to step 5, which leads to the snapshot, is their fifth time. */
Test(snapshot, a_trainer_killed_on_the_way_to_a_snapshot_announces_it_when_it_is_back)
{
    static const char *const points[] = {"words-complete:5",  "update-valid:5",  "piece-half:118",
                                         "piece-stamped:140", "before-commit:5", "after-commit:5"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct rig *rig = open_rig(0);
        float *state = room_for_state(rig);
        uint8_t hash[RM_HASH_BYTES];
        rig_spawn(rig, 0, points[i]);
        rig_form(rig, all, 1);
        while (rig_expect(rig, 0, MSG_PROGRESS))
            cr_assert_neq(rig->message.type, MSG_SNAPSHOT);
        cr_assert_eq(rig_wait(rig, 0), -SIGKILL, "%s", points[i]);
        rig_spawn(rig, 0, NULL);
        cr_assert(rig->t[0].up.state.held, "%s", points[i]);
        struct msg_state held = rig->t[0].state;
        rig_form(rig, all, 1);
        /* Where it holds step 5 already, the coordinator's form would have it saved; this one says it is. */
        int64_t due = held.step < EVERY ? EVERY : 2 * EVERY;
        cr_assert(rig_expect(rig, 0, MSG_SNAPSHOT));
        cr_assert_eq(rig->message.snapshot.state.step, due, "%s", points[i]);
        struct msg_snapshot taken = rig->message.snapshot;
        read_slice(rig, 0, &taken, state, hash);
        expect_whole(&taken, state);
        free(state);
        rig_close(rig);
    }
}

Test(snapshot, a_trainer_killed_while_the_agent_reads_disturbs_nothing)
{
    static const char *const points[] = {"snapshot-taken", "lane-done:45",      "update-valid:6",
                                         "piece-half:147", "piece-stamped:160", "before-commit:6",
                                         "piece-half:180"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct rig *rig = open_rig(0);
        float *state = room_for_state(rig);
        struct msg_snapshot taken = {.state.step = -1};
        uint8_t before[RM_HASH_BYTES], after[RM_HASH_BYTES];
        rig_spawn(rig, 0, points[i]);
        rig_form(rig, all, 1);
        bool announced = rig_expect(rig, 0, MSG_SNAPSHOT);
        cr_assert_eq(announced, i > 0, "before that nothing is announced");
        if (announced) {
            taken = rig->message.snapshot;
            read_slice(rig, 0, &taken, state, before);
            while (rig_expect(rig, 0, MSG_PROGRESS))
                continue;
        }
        cr_assert_eq(rig_wait(rig, 0), -SIGKILL, "%s", points[i]);
        rig->t[0].snapshot_busy = announced;
        rig_spawn(rig, 0, NULL);
        rig_form(rig, all, 1);
        let_train_on(rig, 1, announced ? 2 * EVERY : EVERY + 4); /* 10 is due, too, and has to wait */
        if (announced) {
            read_slice(rig, 0, &taken, NULL, after);
            cr_assert_eq(memcmp(before, after, sizeof before), 0, "%s", points[i]);
            expect_whole(&taken, state);
        }
        free(state);
        rig_close(rig);
    }
}

Test(snapshot, a_newcomer_gets_the_state_out_of_the_snapshot_memory)
{
    static const int rest[] = {0, 2};
    struct rig *rig = open_rig(1);
    rig_spawn(rig, 1, "before-reduce:7"); /* step 6, for the first one takes two passes */
    rig_form(rig, all, 2);
    while (rig_expect(rig, 1, MSG_PROGRESS))
        continue;
    cr_assert_eq(rig_wait(rig, 1), -SIGKILL);
    rig_spawn(rig, 2, NULL);
    rig_stop(rig, rest, 1, STOP_NOW);
    cr_assert_eq(rig->t[0].state.step, EVERY, "there its state lies in the snapshot memory");
    rig_form(rig, rest, 2);
    cr_assert_eq(rig->role[2], ROLE_RECEIVE);
    free_snapshot(rig, 0);
    let_all_be_written(rig, rest, 2, 2 * EVERY);
    expect_digest(rig, rest, 2);
    rig_close(rig);
}

/* A rank 0 that is started again and again would begin to count anew each time. Also where the machine has
 * not been up for as long as the interval, as a new spot machine: its clock began after the last checkpoint.
 */
Test(snapshot, the_time_for_a_checkpoint_counts_from_the_last_one_whoever_started_since)
{
    struct rig *rig = rig_open();
    rig->spec.checkpoint.every = clock_now() + 3600 * RM_S;
    rig_spawn(rig, 0, NULL);
    rig->saved_ago = 2 * rig->spec.checkpoint.every;
    rig_form(rig, all, 1);
    cr_assert(rig_expect(rig, 0, MSG_SNAPSHOT));
    cr_assert_eq(rig->message.snapshot.state.step, 1, "it is overdue at the first step");
    free_snapshot(rig, 0);
    expect_digest(rig, all, 1);
    rig_close(rig);
}

static struct rig *auto_rig(void)
{
    struct rig *rig = rig_open();
    rig->spec.checkpoint.every = JOB_AUTO;
    rig->spec.checkpoint.max_loss = 60 * RM_S;
    rig->saved_ago = 3600 * RM_S;
    rig_spawn(rig, 0, NULL);
    return rig;
}

/* Of checkpoint.every: Auto a trainer knows nothing but what it is told. */
Test(snapshot, with_auto_the_time_for_a_checkpoint_comes_once_it_was_told)
{
    struct rig *rig = auto_rig();
    rig_form(rig, all, 1);
    for (int64_t step = 0; step < RIG_STEPS; step = rig->message.progress.step) {
        cr_assert(rig_expect(rig, 0, MSG_PROGRESS));
        cr_assert_not(rig->message.progress.saves, "step %d", (int)rig->message.progress.step);
    }
    expect_digest(rig, all, 1);
    rig_close(rig);

    struct message *m = calloc(1, sizeof *m);
    rig = auto_rig();
    m->type = MSG_SAVE_EVERY;
    m->save_every.every = 1800 * RM_S;
    rig_send(rig, 0, m);
    free(m);
    rig_form(rig, all, 1);
    cr_assert(rig_expect(rig, 0, MSG_SNAPSHOT));
    cr_assert_eq(rig->message.snapshot.state.step, 1, "it is overdue at the first step");
    free_snapshot(rig, 0);
    expect_digest(rig, all, 1);
    rig_close(rig);
}
