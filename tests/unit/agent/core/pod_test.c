/* An agent that knows only its key, and a coordinator that may stay away. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/agent.h"

static struct agent *st;
static struct agent_out *out;
static rm_time now;
static bool known; /* the job is: it is learnt by the first welcome */

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
    known = false;
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
    if (!known)
        agent_learn(st, "job", "file:///c", RM_S, false);
    known = true;
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

/* Each try takes a second: it went where nobody is. */
Test(pod, a_try_that_took_long_was_pause_enough, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    for (int i = 0; i < 20; i++) {
        now += RM_S;
        happen(AGENT_DISCONNECTED, NULL, 0);
        rm_time pause = agent_deadline(st) - now;
        cr_assert(pause >= 50 * RM_MS && pause <= RM_S, "try %d: %lld ns", i, (long long)pause);
        now += pause;
        happen(AGENT_TICK, NULL, 0);
        cr_assert_not_null(did(AGENT_CONNECT));
    }
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

/* What the agent says of its leave in this step; NULL: nothing. */
static const struct msg_leaving *said(void)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_SEND_CONTROL && out->action[i].message->type == MSG_LEAVING)
            return &out->action[i].message->leaving;
    return NULL;
}

static void be_told(const char *who, rm_time deadline)
{
    struct agent_event event = {.kind = AGENT_NOTICE, .deadline = deadline};
    text_copy(event.text, sizeof event.text, who);
    agent_step(st, &event, now, out);
}

Test(pod, of_two_deadlines_the_nearer_one_counts_whatever_came_first, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("aws-spot", 100 * RM_S);
    cr_assert_str_eq(said()->reason, "aws-spot");
    cr_assert_eq(said()->deadline, 100 * RM_S);
    now += RM_S;
    happen(AGENT_TERM, NULL, 10 * RM_S);
    cr_assert_eq(said()->deadline, 10 * RM_S);
    now += RM_S;
    be_told("gce-preempted", 30 * RM_S);
    cr_assert_null(said(), "nothing is nearer than it was");
    happen(AGENT_DISCONNECTED, NULL, 0);
    be_welcome();
    cr_assert_eq(said()->deadline, 9 * RM_S, "a coordinator that is told again hears the nearest");
}

Test(pod, a_notice_without_a_time_leaves_the_deadline_to_who_knows_one, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("aws-rebalance", 0);
    cr_assert_eq(said()->deadline, 0);
    cr_assert(agent_is_leaving(st));
    happen(AGENT_TERM, NULL, 10 * RM_S);
    cr_assert_eq(said()->deadline, 10 * RM_S);
}

/* A machine may outlive what its cloud said; the kubelet's grace is kept to. */
Test(pod, who_was_given_notice_waits_for_its_release_past_that_time, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("aws-spot", 2 * RM_S);
    now += 3 * RM_S;
    happen(AGENT_TICK, NULL, 0);
    cr_assert_null(did(AGENT_EXIT));
    happen(AGENT_TERM, NULL, 10 * RM_S);
    now += 10 * RM_S;
    happen(AGENT_TICK, NULL, 0);
    cr_assert_eq(did(AGENT_EXIT)->exit_code, 4);
}

Test(pod, who_is_given_notice_before_anybody_knows_it_goes_at_once, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_told("azure-scheduled-event", 10 * RM_S);
    cr_assert_eq(did(AGENT_EXIT)->exit_code, 0);
}

Test(pod, by_notices_with_a_time_alone_it_trains_on_and_no_longer_once_a_signal_comes, .init = arrange,
     .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("aws-spot", 100 * RM_S);
    cr_assert(said()->trains_on);
    be_told("gce-preempted", 30 * RM_S);
    cr_assert(said()->trains_on && said()->deadline == 30 * RM_S);
    happen(AGENT_TERM, NULL, 120 * RM_S);
    cr_assert(said() && !said()->trains_on, "although it names no nearer time");
    cr_assert_eq(said()->deadline, 30 * RM_S);
    be_told("aws-spot", 20 * RM_S);
    cr_assert(said()->deadline == 20 * RM_S && !said()->trains_on);
}

Test(pod, without_a_time_a_notice_is_a_leave_at_once, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("aws-spot", 0);
    cr_assert(said() && !said()->trains_on);
    be_told("aws-spot", 100 * RM_S);
    cr_assert(said()->deadline == 100 * RM_S && !said()->trains_on, "it is leaving");
}

/* What the agent says of its notices in this step; NULL: nothing. */
static const struct msg_noticed *noticed(void)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == AGENT_SEND_CONTROL && out->action[i].message->type == MSG_NOTICED)
            return &out->action[i].message->noticed;
    return NULL;
}

static void notice(enum notice_source source, enum notice_certainty certainty, rm_time until)
{
    struct notice n = {
        .source = source, .cause = NOTICE_CAUSE_RECLAIM, .certainty = certainty, .until = until};
    agent_step(st, &(struct agent_event){.kind = AGENT_NOTICED, .notice = &n}, now, out);
}

Test(pod, what_is_told_of_the_machines_end_is_said_to_the_coordinator, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    cr_assert_null(noticed(), "nothing was told");
    notice(NOTICE_AWS_REBALANCE, NOTICE_MAY, RM_NEVER);
    cr_assert_eq(noticed()->word, NOTICED_MAY);
    cr_assert_str_eq(noticed()->source, "aws-rebalance");
    cr_assert_str_eq(noticed()->cause, "reclaim");
    cr_assert_eq(noticed()->left, -1);
    cr_assert_not(agent_is_leaving(st));
    notice(NOTICE_AWS_SPOT, NOTICE_WILL, now + 100 * RM_S);
    cr_assert(noticed()->word == NOTICED_WILL && noticed()->left == 100 * RM_S && !*noticed()->pool);
    struct notice n = {.source = NOTICE_AWS_SPOT, .certainty = NOTICE_WILL, .until = now + 90 * RM_S};
    agent_step(st,
               &(struct agent_event){.kind = AGENT_NOTICED, .notice = &n, .text = "p3.2xlarge/us-east-1a"},
               now, out);
    cr_assert_str_eq(noticed()->pool, "p3.2xlarge/us-east-1a");
    agent_step(st, &(struct agent_event){.kind = AGENT_NOTICED}, now, out);
    cr_assert(noticed()->word == NOTICED_GONE && !*noticed()->source && !*noticed()->pool);
}

/* A coordinator may hear of it from nobody else, also of a word that its predecessor was told. */
Test(pod, each_coordinator_is_told_what_stands_and_what_does_not_any_more, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    notice(NOTICE_AWS_SPOT, NOTICE_WILL, now + 100 * RM_S);
    cr_assert_null(noticed(), "nobody is there");
    now += 10 * RM_S;
    be_welcome();
    cr_assert(noticed()->word == NOTICED_WILL && noticed()->left == 90 * RM_S);
    happen(AGENT_DISCONNECTED, NULL, 0);
    agent_step(st, &(struct agent_event){.kind = AGENT_NOTICED}, now, out);
    be_welcome();
    cr_assert_eq(noticed()->word, NOTICED_GONE);
    notice(NOTICE_AWS_SPOT, NOTICE_WILL, now + RM_S);
    happen(AGENT_DISCONNECTED, NULL, 0);
    now += 5 * RM_S;
    be_welcome();
    cr_assert_eq(noticed()->left, 0, "its moment is over, and the machine is there");
}

Test(pod, a_notice_that_is_withdrawn_is_no_leave_any_more_unless_a_signal_came, .init = arrange,
     .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    notice(NOTICE_AZURE, NOTICE_WILL, now + 100 * RM_S);
    be_told("azure-scheduled-event", 100 * RM_S);
    cr_assert(agent_is_leaving(st));
    notice(NOTICE_AZURE, NOTICE_MAY, RM_NEVER);
    cr_assert_not(agent_is_leaving(st));
    be_told("azure-scheduled-event", 200 * RM_S);
    cr_assert(said()->trains_on && said()->deadline == 200 * RM_S, "it is another one");
    happen(AGENT_TERM, NULL, 10 * RM_S);
    agent_step(st, &(struct agent_event){.kind = AGENT_NOTICED}, now, out);
    cr_assert(agent_is_leaving(st));
}

Test(pod, who_is_let_go_as_it_withdraws_has_left, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    notice(NOTICE_AZURE, NOTICE_WILL, now + 100 * RM_S);
    be_told("azure-scheduled-event", 100 * RM_S);
    agent_step(st, &(struct agent_event){.kind = AGENT_NOTICED}, now, out);
    struct message m;
    message_init(&m, MSG_RELEASE);
    m.term = 1;
    happen(AGENT_CONTROL, &m, 0);
    cr_assert_eq(did(AGENT_EXIT)->exit_code, 0);
    cr_assert(agent_is_leaving(st));
}

static void be_let_go(bool over)
{
    static struct message m;
    message_init(&m, MSG_RELEASE);
    m.term = 1;
    m.release.over = over;
    happen(AGENT_CONTROL, &m, 0);
}

/* What a machine's cloud may be told: that nothing of it is needed any more. */
Test(pod, it_has_left_when_it_is_let_go_and_not_before, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    cr_assert_not(agent_has_left(st));
    be_told("azure-scheduled-event", 100 * RM_S);
    cr_assert(agent_is_leaving(st));
    cr_assert_not(agent_has_left(st), "it has only said so");
    be_let_go(false);
    cr_assert(agent_has_left(st));
}

Test(pod, who_is_let_go_as_the_run_is_over_has_not_left, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_welcome();
    be_told("azure-scheduled-event", 100 * RM_S);
    be_let_go(true);
    cr_assert_not(agent_has_left(st));
}

/* Nobody let it go: what becomes of the machine is not its to say. */
Test(pod, who_goes_before_anybody_knows_it_has_not_left, .init = arrange, .fini = dismiss)
{
    happen(AGENT_START, NULL, 0);
    be_told("azure-scheduled-event", 10 * RM_S);
    cr_assert_eq(did(AGENT_EXIT)->exit_code, 0);
    cr_assert_not(agent_has_left(st));
}
