/* What stories of workers in trouble begin with. */
#ifndef RM_TESTS_TROUBLE_STORY_H
#define RM_TESTS_TROUBLE_STORY_H

#include "tests/unit/coordinator/core/story.h"

PLAYED struct rdzv_settings patient(int min)
{
    struct rdzv_settings settings = story_settings(min);
    settings.steps = 1000;
    settings.end_timeout = settings.save_patience = 600 * RM_S;
    settings.max_restarts = 0;
    return settings;
}

/* n workers come with nothing and list these. */
PLAYED void begin(struct story *s, struct rdzv_settings settings, int n, int64_t newest, int64_t older)
{
    story_begin(s, settings);
    if (!settings.unsupervised)
        expect_workers(s, (1u << n) - 1);
    first_come(s, n);
    for (int w = 0; w < n; w++)
        listed(s, w, newest, older);
}

/* Whoever is asked lists the same as before. */
PLAYED void list_again(struct story *s, int n)
{
    they_live_on(s, n, 2);
    for (int w = 0; w < n; w++)
        listed(s, w, 231, 200);
}

PLAYED bool is_in(const struct story *s, int worker)
{
    for (int r = 0; r < s->form.form.count; r++)
        if (s->form.form.member[r].worker == worker)
            return true;
    return false;
}

#endif
