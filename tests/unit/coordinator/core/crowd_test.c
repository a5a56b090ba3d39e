/* As many workers as there can be, in each state, all in trouble at once: what a step has to do must fit. */
#include "tests/unit/coordinator/core/story.h"

enum { ALL = RM_WORKERS_MAX };

static struct rdzv_settings crowded(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.workers_max = settings.workers_target = settings.lanes = ALL;
    settings.step_timeout = 2 * RM_S;
    settings.steps = 1000;
    settings.max_restarts = 0;
    return settings;
}

/* Of all steps so far: what the worst of them takes must fit with room to spare, as one that does not fit
 * ends the coordinator. Here it is half of the actions, and a quarter of what their bodies may take. */
static void check_room(const struct story *s, const char *when)
{
    const char *state = rdzv_state_name(rdzv_state(s->st));
    cr_assert_lt(s->most_actions, RDZV_ACTIONS_MAX * 3 / 4, "%s in %s: %d actions", when, state,
                 s->most_actions);
    cr_assert_lt(s->most_bodies, RDZV_BODIES_MAX / 2, "%s in %s: %zu bytes", when, state, s->most_bodies);
}

static void expect_all(struct story *s, int attempt)
{
    struct rdzv_event e = {.kind = RDZV_EXPECT};
    for (int w = 0; w < ALL; w++)
        e.expect.worker[w].worker = w, e.expect.worker[w].attempt = attempt;
    e.expect.count = attempt < 0 ? 0 : ALL;
    play(s, &e);
}

/* Each stops where its state begins. */
static void gather(struct story *s)
{
    story_begin(s, crowded());
    expect_all(s, 0);
    for (int w = 0; w < ALL; w++)
        hello(s, w, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_GATHERING);
}

static void form(struct story *s)
{
    gather(s);
    for (int w = 0; w < ALL; w++)
        stopped(s, w, -1, -1);
    for (int w = 0; w < ALL; w++)
        listed(s, w, -1, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", rdzv_why(s->st));
}

static void train(struct story *s)
{
    form(s);
    for (int w = 0; w < ALL; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", rdzv_why(s->st));
    progress(s, 0, 3);
}

static void stop(struct story *s)
{
    train(s);
    leaving(s, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", rdzv_why(s->st));
}

static void save(struct story *s)
{
    struct rdzv_event e = {.kind = RDZV_INTERRUPT};
    train(s);
    play(s, &e);
    for (int w = 0; w < ALL; w++)
        stopped(s, w, 3, 3);
    cr_assert_eq(rdzv_state(s->st), RDZV_SAVING, "%s", rdzv_why(s->st));
}

static void (*const reach[])(struct story *) = {gather, form, train, stop, save};

static void all_vanish(struct story *s)
{
    expect_all(s, -1);
    check_room(s, "all processes end");
}

static void all_fail(struct story *s)
{
    expect_all(s, 1);
    check_room(s, "all are started again, once too often");
}

static void all_fall_silent(struct story *s)
{
    after(s, 600 * RM_S);
    check_room(s, "all are silent");
    after(s, 600 * RM_S);
    check_room(s, "and later");
}

static void all_leave(struct story *s)
{
    for (int w = 1; w < ALL; w++) {
        leaving(s, w);
        check_room(s, "one of many leaves");
    }
    after(s, RM_S);
    check_room(s, "all leave");
    for (int w = 0; w < ALL; w++) {
        stopped(s, w, 3, 3);
        check_room(s, "one of many that leave has stopped");
    }
}

static void (*const troubles[])(struct story *) = {all_vanish, all_fail, all_fall_silent, all_leave};

Test(crowd, trouble_with_everybody_at_once_fits_into_a_step_in_each_state)
{
    for (size_t state = 0; state < sizeof reach / sizeof *reach; state++) {
        for (size_t trouble = 0; trouble < sizeof troubles / sizeof *troubles; trouble++) {
            struct story s;
            reach[state](&s);
            troubles[trouble](&s);
            story_end(&s);
        }
    }
}

static int count(const struct story *s, const char *what)
{
    int n = 0;
    for (const char *at = str_text(&s->log); (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The coordinator before this one told nothing since step 3; nobody alive knows the losses. */
Test(crowd, a_late_end_tells_every_step_before_it_says_complete)
{
    struct story s;
    struct message m;
    train(&s);
    message_init(&m, MSG_FINISHED);
    m.finished.step = 1000;
    m.finished.exact = true;
    for (int w = 0; w < ALL; w++) {
        progress(&s, w, 1000);
        hear(&s, w, &m);
    }
    for (int turn = 0; turn < 20 && rdzv_deadline(s.st) <= s.now; turn++)
        after(&s, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    for (int w = 0; w < ALL; w++)
        checkpointed(&s, w, 1000, w, ALL, true);
    published(&s, 0, 1000, true);
    check_room(&s, "the end of all");
    cr_assert_eq(s.ended, 0, "%s", rdzv_why(s.st));
    cr_assert_eq(count(&s, "\"event\":\"step\""), 1000, "%d steps told", count(&s, "\"event\":\"step\""));
    cr_assert_eq(count(&s, "\"event\":\"released\""), ALL);
    story_end(&s);
}
