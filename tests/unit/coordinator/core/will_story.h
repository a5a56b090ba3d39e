/* Three workers in pods that train, and what their machines are told (story.h). */
#ifndef RM_TESTS_WILL_STORY_H
#define RM_TESTS_WILL_STORY_H

#include "coordinator/core/rdzv_state.h"
#include "tests/unit/coordinator/core/story.h"

PLAYED void word_of_one(struct story *s, int w, const char *pool, const char *machine,
                        enum msg_notice_word word, rm_time left)
{
    struct message m;
    message_init(&m, MSG_NOTICED);
    text_copy(m.noticed.machine, sizeof m.noticed.machine, machine);
    m.noticed.word = word;
    m.noticed.left = left;
    text_copy(m.noticed.source, sizeof m.noticed.source,
              word == NOTICED_WILL  ? "aws-spot"
              : word == NOTICED_MAY ? "aws-rebalance"
                                    : "");
    text_copy(m.noticed.cause, sizeof m.noticed.cause, word != NOTICED_GONE ? "reclaim" : "");
    text_copy(m.noticed.pool, sizeof m.noticed.pool, pool);
    hear(s, w, &m);
}

PLAYED void word_of(struct story *s, int w, const char *pool, enum msg_notice_word word, rm_time left)
{
    word_of_one(s, w, pool, "", word, left);
}

PLAYED void word(struct story *s, int w, enum msg_notice_word word, rm_time left)
{
    word_of(s, w, "", word, left);
}

PLAYED void leaves_later(struct story *s, int w, rm_time left)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "aws-spot");
    m.leaving.deadline = left;
    m.leaving.trains_on = true;
    hear(s, w, &m);
}

PLAYED void goes_in(struct story *s, int w, rm_time left)
{
    word(s, w, NOTICED_WILL, left);
    leaves_later(s, w, left);
}

PLAYED struct rdzv_settings pods(void)
{
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.workers_target = 3;
    settings.steps = 1000;
    settings.leave_unsaved = true;
    return settings;
}

PLAYED void beats(struct story *s)
{
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        struct message m;
        message_init(&m, MSG_HEARTBEAT);
        m.heartbeat.counter = s->now / RM_MS;
        m.heartbeat.waiting_for = -1;
        if (s->conn[w] >= 0)
            hear(s, w, &m);
    }
}

/* All who are connected say so, and steps are made. */
PLAYED void passes(struct story *s, rm_time time)
{
    for (rm_time end = s->now + time; s->now < end && rdzv_state(s->st) == RDZV_TRAINING;) {
        beats(s);
        progress(s, s->st->member[0], s->st->told + 1);
        after(s, rm_earlier(500 * RM_MS, end - s->now));
    }
}

/* Workers 0 to 2 train, at step 9. */
PLAYED void three_train(struct story *s, struct rdzv_settings settings)
{
    story_begin(s, settings);
    first_come(s, 3);
    for (int w = 0; w < 3; w++)
        listed(s, w, -1, -1);
    after(s, settings.join_window);
    for (int w = 0; w < 3; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    progress(s, 0, 9);
    forget(s);
}

PLAYED void answer(struct story *s, int w)
{
    bool holds = s->st->worker[w].old_rank != INT32_MAX;
    stopped(s, w, holds ? s->st->told : -1, holds ? s->st->told : -1);
}

PLAYED bool is_member(const struct story *s, int w)
{
    return s->st->worker[w].rank >= 0;
}

PLAYED void three_answer(struct story *s, int a, int b, int c)
{
    answer(s, a);
    answer(s, b);
    answer(s, c);
}

/* Who is there answers, those who came last before the others, and all of the next ring are ready. */
PLAYED void changes(struct story *s)
{
    for (int w = RM_WORKERS_MAX - 1; w >= 0 && rdzv_state(s->st) == RDZV_QUIESCING; w--)
        if (s->conn[w] >= 0)
            answer(s, w);
    after(s, RM_MS);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (s->conn[w] >= 0 && is_member(s, w))
            ready(s, w, s->st->told);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
}

PLAYED void comes(struct story *s, int w)
{
    hello(s, w, -1);
    passes(s, 200 * RM_MS);
    if (rdzv_state(s->st) != RDZV_TRAINING)
        changes(s);
}

#endif
