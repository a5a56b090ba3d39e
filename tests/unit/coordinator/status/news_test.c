/* What is news for who waits at the status page. */
#include "coordinator/core/rdzv_state.h"
#include "coordinator/status/history.h"
#include "tests/unit/coordinator/core/story.h"

static void look(const struct story *s, struct history *c)
{
    for (int i = 0; i < s->out->count; i++)
        if (s->out->action[i].kind == RDZV_TELL)
            history_note(c, s->out->action[i].tell, 1000 + s->now / RM_MS, s->now);
    history_look(c, s->st);
}

/* Three train, and worker 2 is told that it may go. */
static void one_is_let_go(struct story *s)
{
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    story_begin(s, settings);
    for (int i = 0; i < 3; i++) {
        hello(s, i, -1);
        stopped(s, i, -1, -1);
        listed(s, i, -1, -1);
    }
    for (int i = 0; i < 3; i++)
        ready(s, i, 0);
    leaving(s, 2);
    after(s, RM_S);
    for (int i = 0; i < 3; i++)
        stopped(s, i, 0, -1);
    for (int i = 0; i < 2; i++)
        ready(s, i, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    cr_assert(s->st->worker[2].released, "%s", str_text(&s->log));
}

/* Its leave was told before, and neither the ring nor the state is another one now. */
Test(news, that_one_who_was_let_go_is_gone_is_news_for_who_waits)
{
    struct story s;
    struct history *c = calloc(1, sizeof *c);
    one_is_let_go(&s);
    look(&s, c);
    int64_t revision = c->revision;
    cr_assert(c->listed == 3 && history_lists(s.st, 2));
    after(&s, RM_MS);
    look(&s, c);
    cr_assert_eq(c->revision, revision, "nothing has happened");
    closed(&s, 2);
    look(&s, c);
    cr_assert(c->listed == 2 && !history_lists(s.st, 2));
    cr_assert_gt(c->revision, revision);
    free(c);
    story_end(&s);
}
