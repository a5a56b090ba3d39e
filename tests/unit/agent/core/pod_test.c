/* An agent that knows only its key, and a coordinator that may stay away. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"

static struct agent *st;
static struct agent_out *out;
static rm_time now;

static void arrange(void)
{
    struct agent_settings s = {.worker = 1,
                               .incarnation = 77,
                               .heartbeat = RM_S,
                               .lost_after = RM_NEVER,
                               .awaits_job = true,
                               .retry_first = 100 * RM_MS,
                               .retry_most = 2 * RM_S};
    now = RM_S;
    st = agent_open(&s);
    out = calloc(1, sizeof *out);
}

static void dismiss(void)
{
    agent_free(st);
    free(out);
}

static void happen(enum agent_event_kind kind, const struct message *m, rm_time deadline)
{
    agent_step(st, &(struct agent_event){.kind = kind, .message = m, .deadline = deadline}, now, out);
}

static const struct agent_action *did(enum agent_action_kind kind)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == kind)
            return &out->action[i];
    return NULL;
}

static void be_welcome(void)
{
    static struct message welcome;
    happen(AGENT_CONNECTED, NULL, 0);
    message_init(&welcome, MSG_WELCOME);
    welcome.term = 1;
    agent_learn(st, "job", "file:///c", RM_S);
    happen(AGENT_CONTROL, &welcome, 0);
}

Test(pod, the_trainer_starts_only_when_the_job_is_known, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    cr_assert_null(did(AGENT_SPAWN));
    cr_assert_not_null(did(AGENT_CONNECT));
    be_welcome();
    cr_assert_not_null(did(AGENT_SPAWN));
}

Test(pod, a_coordinator_that_is_away_is_called_again_for_ever_with_growing_pauses, .init = arrange,
     .fini = dismiss)
{
    rm_time longest = 0;
    happen(AGENT_START, NULL, 0);
    for (int i = 0; i < 1000; i++) {
        happen(AGENT_DISCONNECTED, NULL, 0);
        rm_time pause = agent_deadline(st) - now;
        cr_assert_geq(pause, 50 * RM_MS);
        cr_assert_leq(pause, 2 * RM_S);
        longest = pause > longest ? pause : longest;
        now += pause;
        happen(AGENT_TICK, NULL, 0);
        cr_assert_not_null(did(AGENT_CONNECT));
        cr_assert_null(did(AGENT_EXIT));
    }
    cr_assert_gt(longest, RM_S);
}

Test(pod, a_leave_that_nobody_grants_ends_with_its_grace, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    happen(AGENT_TERM, NULL, 10 * RM_S);
    happen(AGENT_DISCONNECTED, NULL, 0);
    now += 10 * RM_S;
    happen(AGENT_TICK, NULL, 0);
    cr_assert_not_null(did(AGENT_EXIT));
    cr_assert_eq(did(AGENT_EXIT)->exit_code, 4);
}
