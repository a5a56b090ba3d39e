#include "trainer/backend/program/slack.h"

#include <inttypes.h>

#include "common/base/assert.h"

enum { FIRST_UPDATES = 3, TIMES_THE_LONGEST = 10 };

static const rm_time slack_least = 30 * RM_S, slack_most = 300 * RM_S;

void slack_task_took(struct slack *s, bool update, rm_time took)
{
    RM_ASSERT(took >= 0, "a task took %" PRId64 " ns", took);
    s->updates += update;
    s->longest = rm_later(s->longest, took);
}

rm_time slack_of(const struct slack *s)
{
    if (s->updates < FIRST_UPDATES || s->longest >= slack_most / TIMES_THE_LONGEST)
        return slack_most;
    return rm_later(slack_least, TIMES_THE_LONGEST * s->longest);
}
