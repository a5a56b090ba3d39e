/* What stories of workers that can't reach each other begin with. startTimeout is 60 s. */
#ifndef RM_TESTS_PAIRS_STORY_H
#define RM_TESTS_PAIRS_STORY_H

#include "tests/unit/coordinator/core/story.h"

PLAYED struct rdzv_settings patient(int min)
{
    struct rdzv_settings settings = story_settings(min);
    settings.lost_after = 3600 * RM_S;
    settings.max_restarts = 0;
    settings.step_timeout = 3600 * RM_S;
    return settings;
}

/* `workers` have come with nothing, and their first ring is being formed. */
PLAYED void gather(struct story *s, struct rdzv_settings settings, int workers)
{
    story_begin(s, settings);
    if (!settings.unsupervised)
        expect_workers(s, (1u << workers) - 1);
    first_come(s, workers);
    for (int w = 0; w < workers; w++)
        listed(s, w, -1, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", str_text(&s->log));
}

/* The ring being formed breaks: `by` can't reach `peer`, and all 3 stop with what they hold. */
PLAYED void break_off(struct story *s, int by, int peer, const int64_t held[3])
{
    fault_of(s, by, FAULT_RING, peer, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", str_text(&s->log));
    for (int w = 0; w < 3; w++)
        stopped(s, w, held[w], -1);
}

static const int64_t nothing[3] = {-1, -1, -1};

#endif
