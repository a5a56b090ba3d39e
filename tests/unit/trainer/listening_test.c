/* Real trainers: one listens to others, who train on. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/losses.h"
#include "trainer/state/state.h"
#include "trainer_rig.h"

static const int all[] = {0, 1, 2};

/* More than any of them makes: a test ends once the three have made a few together, however many the joining
 * took. */
enum { STEPS = 100000, FEW = 10 };

static struct rig *two_that_evaluate(const char *fault, int64_t every)
{
    struct rig *rig = rig_open();
    rig->spec.steps = STEPS;
    rig->spec.evaluation.every_steps = every;
    rig->spec.batch.lane_sequences = 16; /* steps longer than a word and its answer take */
    rig_spawn(rig, 0, NULL);
    rig_spawn(rig, 1, NULL);
    rig_spawn(rig, 2, fault);
    rig_form(rig, all, 2);
    rig_until(rig, 0, 3);
    return rig;
}

static struct rig *two_that_train(const char *fault)
{
    return two_that_evaluate(fault, 0);
}

static void listen_to_both(struct rig *rig, int w)
{
    struct message *m = calloc(1, sizeof *m);
    m->type = MSG_LISTEN;
    m->generation = rig->generation;
    for (int i = 0; i < 2; i++) {
        struct msg_member *source = &m->listen.source[m->listen.sources_count++];
        *source = (struct msg_member){.worker = i, .incarnation = 0xabc0 + (uint64_t)i};
        text_copy(source->address, sizeof source->address, rig->t[i].up.address);
    }
    rig_send(rig, w, m);
    free(m);
}

static int64_t hear_all(struct rig *rig, int w)
{
    cr_assert(rig_expect(rig, w, MSG_HEARD));
    cr_assert(rig->message.heard.state.held, "%s", rig->message.heard.why);
    return rig->message.heard.state.step;
}

/* Those who train stop at a boundary, then who listens. It comes too late where it was not given the time of
 * a step; they go on then, and it tries once more. */
static void join(struct rig *rig, int world)
{
    for (int tries = 0; tries < 50; tries++) {
        rig_stop(rig, all, world, STOP_BOUNDARY);
        rig_stop(rig, &all[2], 1, STOP_NOW);
        if (msg_state_equal(&rig->t[2].state, &rig->t[0].state))
            return;
        rig_form(rig, all, world);
        listen_to_both(rig, 2);
        hear_all(rig, 2);
    }
    cr_assert(false, "step %lld, the others' %lld", (long long)rig->t[2].state.step,
              (long long)rig->t[0].state.step);
}

/* What a trainer that was killed between two steps has left in its memory. */
static struct state *left_by(struct rig *rig, int w, const struct model_layout *layout)
{
    const struct state_shape shape = {.layout = layout, .lanes = rig->spec.batch.lanes};
    struct state *s;
    struct error err = {0};
    rig_kill(rig, w);
    cr_assert_eq(state_open(&s, rig->t[w].state_fd, &shape, &err), 0, "%s", err.text);
    cr_assert(state_holds(s, NULL), "worker %d holds nothing", w);
    return s;
}

static void expect_the_same_bits(struct state *s, struct state *t)
{
    const struct state_arrays a = state_arrays(s), b = state_arrays(t);
    for (int i = 0; i < a.arrays; i++) {
        const size_t bytes = (size_t)a.array[i].count * sizeof(float);
        const void *here = memory_near(a.in, a.array[i].at), *there = memory_near(b.in, b.array[i].at);
        cr_assert_eq(memcmp(here, there, bytes), 0, "%s", a.array[i].name);
    }
}

/* What it holds is what they hold: they sum the bits of their states in each header; and in the end all bits
 * lie in the memory of each. */
static void expect_a_ring_of_three(struct rig *rig)
{
    struct model_layout layout;
    struct state *s[3];
    rig_form(rig, all, 3);
    cr_assert_eq(rig->role[2], ROLE_KEEP);
    rig_until(rig, 2, rig->t[2].state.step + FEW);
    rig_stop(rig, all, 3, STOP_BOUNDARY);
    model_layout_init(&layout, &rig->spec.model.shape);
    for (int w = 0; w < 3; w++) {
        cr_assert(msg_state_equal(&rig->t[w].state, &rig->t[0].state));
        s[w] = left_by(rig, w, &layout);
        expect_the_same_bits(s[w], s[0]);
    }
    for (int w = 0; w < 3; w++)
        state_free(s[w]);
}

Test(listening, a_state_comes_in_while_the_others_train_on)
{
    struct rig *rig = two_that_train(NULL);
    listen_to_both(rig, 2);
    int64_t step = hear_all(rig, 2);
    rig_until(rig, 0, step + FEW);
    rig_until(rig, 1, step + FEW);
    join(rig, 2);
    expect_a_ring_of_three(rig);
    rig_close(rig);
}

/* Also the steps before its first one; whoever takes its place tells the newest. */
Test(listening, it_tells_the_steps_that_it_has_heard_with_their_losses)
{
    struct rig *rig = two_that_train(NULL);
    listen_to_both(rig, 2);
    cr_assert(rig_expect(rig, 2, MSG_PROGRESS));
    int64_t first = rig->t[2].state.step, step = hear_all(rig, 2);
    cr_assert_eq(first, step > LOSSES_KEPT ? step - LOSSES_KEPT + 1 : 1, "from step %lld on, of %lld",
                 (long long)first, (long long)step);
    cr_assert_eq(rig->t[2].state.step, step);
    double loss = rig->t[2].loss;
    rig_until(rig, 0, step);
    cr_assert_eq(loss, rig->t[0].loss);
    rig_kill(rig, 2);
    rig_spawn(rig, 2, NULL);
    cr_assert(rig_expect(rig, 2, MSG_PROGRESS));
    loss = rig->t[2].loss;
    rig_until(rig, 0, rig->t[2].state.step);
    cr_assert_eq(loss, rig->t[0].loss);
    rig_close(rig);
}

static double evaluation_by(struct rig *rig, int w, int64_t step)
{
    do
        cr_assert(rig_expect(rig, w, MSG_EVALUATED), "worker %d has gone", w);
    while (rig->message.evaluated.step < step);
    cr_assert_eq(rig->message.evaluated.step, step);
    return rig->message.evaluated.loss;
}

Test(listening, it_tells_the_evaluations_that_it_has_heard)
{
    struct rig *rig = two_that_evaluate(NULL, 1);
    double before[RIG_STEPS + 1];
    const int64_t read = rig->t[0].state.step;
    memcpy(before, rig->evaluated, sizeof before);
    listen_to_both(rig, 2);
    cr_assert(rig_expect(rig, 2, MSG_EVALUATED));
    const struct msg_evaluated told = rig->message.evaluated;
    double loss = told.step < read ? before[told.step] : evaluation_by(rig, 0, told.step);
    cr_assert_eq(loss, told.loss, "step %lld", (long long)told.step);
    rig_close(rig);
}

Test(listening, one_of_those_it_listens_to_may_die)
{
    struct rig *rig = two_that_train(NULL);
    listen_to_both(rig, 2);
    hear_all(rig, 2);
    rig_kill(rig, 1);
    rig_stop(rig, all, 1, STOP_NOW);
    rig_form(rig, all, 1);
    rig_until(rig, 0, rig->t[0].state.step + FEW);
    join(rig, 1);
    rig_spawn(rig, 1, NULL);
    rig->t[1].state = (struct msg_state){0};
    expect_a_ring_of_three(rig);
    rig_close(rig);
}

/* Wherever it dies, what has come in part is not held; and it gets all of it once more. */
Test(listening, who_dies_while_it_listens_holds_nothing_and_may_listen_again)
{
    static const char *const points[] = {"listen-block:1", "listen-block:2", "listen-update:1",
                                         "listen-whole"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct rig *rig = two_that_train(points[i]);
        listen_to_both(rig, 2);
        while (rig_expect(rig, 2, MSG_HEARD))
            continue;
        cr_assert_eq(rig_wait(rig, 2), -SIGKILL, "%s", points[i]);
        rig_spawn(rig, 2, NULL);
        cr_assert_not(rig->t[2].state.held && (i == 0 || i == 3), "%s", points[i]);
        listen_to_both(rig, 2);
        hear_all(rig, 2);
        join(rig, 2);
        expect_a_ring_of_three(rig);
        rig_close(rig);
    }
}

/* Of those that the system watches while nothing is said (the timer of /proc/net/tcp is 02): with that port
 * here, or there. */
static bool a_connection_is_watched(int port, bool here)
{
    FILE *table = fopen("/proc/net/tcp", "r");
    char line[256];
    bool found = false;
    while (table && fgets(line, sizeof line, table)) {
        unsigned int own, other, state, timer;
        int got = sscanf(line, "%*d: %*x:%x %*x:%x %x %*x:%*x %x:", &own, &other, &state, &timer);
        found |= got == 4 && state == 1 && timer == 2 && (int)(here ? own : other) == port;
    }
    if (table)
        fclose(table);
    return found;
}

/* A machine that is lost ends no connection, and nobody waits for one who listens, nor it for anybody in
 * particular. */
Test(listening, both_ends_notice_where_the_other_machine_is_lost)
{
    struct rig *rig = two_that_train(NULL);
    listen_to_both(rig, 2);
    hear_all(rig, 2);
    int port = (int)strtol(strrchr(rig->t[0].up.address, ':') + 1, NULL, 10);
    bool here = false, there = false;
    for (int tries = 0; tries < 200 && !(here && there); tries++) {
        here |= a_connection_is_watched(port, true);
        there |= a_connection_is_watched(port, false);
        rig_until(rig, 0, rig->t[0].state.step + 1);
    }
    cr_assert(here, "by the source");
    cr_assert(there, "by who listens");
    rig_close(rig);
}

Test(listening, who_listens_to_nobody_that_is_there_says_so)
{
    struct rig *rig = two_that_train(NULL);
    rig_kill(rig, 0);
    rig_kill(rig, 1);
    listen_to_both(rig, 2);
    cr_assert(rig_expect(rig, 2, MSG_HEARD));
    cr_assert_not(rig->message.heard.state.held);
    rig_close(rig);
}
