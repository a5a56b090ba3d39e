/* Who says that it is slow is told of once. */
#include "tests/unit/coordinator/core/story.h"

static void paces(struct story *s, int w, int64_t step, int slow, enum msg_slow_by by)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress = (struct msg_progress){.step = step,
                                       .loss = 2.5,
                                       .loss_known = true,
                                       .numbers = msg_numbers_unknown(),
                                       .tokens = 10,
                                       .step_time = 10 * RM_MS,
                                       .pace = {.lanes = 2, .lane_us = 5000, .slow = slow, .by = by}};
    hear(s, w, &m);
}

static void begin(struct story *s)
{
    struct rdzv_settings settings = story_settings(1);
    settings.brought = true;
    story_begin(s, settings);
    train_with(s, 3);
    forget(s);
}

Test(slow, a_worker_that_is_slow_is_told_of_once_until_it_no_longer_is)
{
    struct story s;
    begin(&s);
    for (int64_t step = 52; step < 60; step++)
        paces(&s, 1, step, 0, SLOW_BY_UNKNOWN);
    cr_assert_not(said(&s, "workerSlow"), "%s", str_text(&s.log));
    for (int64_t step = 60; step < 70; step++)
        paces(&s, 1, step, 212, SLOW_BY_CPU_LIMIT);
    cr_assert_eq(times_said(&s, "workerSlow"), 1, "%s", str_text(&s.log));
    cr_assert(said(&s, "a lane takes it 2.1 times as long as most: its CPU limit holds it up"), "%s",
              str_text(&s.log));
    paces(&s, 1, 59, 0, SLOW_BY_UNKNOWN); /* told again: nothing is new of that */
    paces(&s, 1, 70, 212, SLOW_BY_CPU_LIMIT);
    cr_assert_eq(times_said(&s, "workerSlow"), 1, "%s", str_text(&s.log));
    paces(&s, 1, 71, 0, SLOW_BY_UNKNOWN);
    paces(&s, 1, 72, 300, SLOW_BY_STOLEN_TIME);
    cr_assert_eq(times_said(&s, "workerSlow"), 2, "%s", str_text(&s.log));
    cr_assert(said(&s, "3.0 times as long as most: its machine's host"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerFailed") || said(&s, "workerLost"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(slow, of_a_step_that_was_only_taken_over_nothing_is_known)
{
    struct story s;
    struct message m;
    begin(&s);
    paces(&s, 1, 52, 200, SLOW_BY_UNKNOWN);
    message_init(&m, MSG_PROGRESS);
    m.progress = (struct msg_progress){.step = 53, .numbers = msg_numbers_unknown()};
    hear(&s, 1, &m);
    paces(&s, 1, 54, 200, SLOW_BY_UNKNOWN);
    cr_assert_eq(times_said(&s, "workerSlow"), 1, "%s", str_text(&s.log));
    story_end(&s);
}
