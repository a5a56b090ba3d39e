/* A launcher whose program is frozen into snapshots: when one is asked for, and what a stop does instead of
 * SIGTERM.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "agent/launch/core/launch.h"
#include "common/base/prng.h"

static struct launch *core;
static struct launch_out *out;
static rm_time now;

static void happen(struct launch_event event)
{
    launch_step(core, &event, now, out);
}

static const struct launch_action *done(enum launch_action_kind kind)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == kind)
            return &out->action[i];
    return NULL;
}

static const struct message *said(enum msg_type type)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == LAUNCH_SEND && out->action[i].message->type == type)
            return out->action[i].message;
    return NULL;
}

static void arrange_every(rm_time every)
{
    struct launch_settings settings = {.processes = 1,
                                       .pid = 7,
                                       .grace = 30 * RM_S,
                                       .heartbeat = 100 * RM_S,
                                       .freezes = true,
                                       .every = every};
    now = 100 * RM_S;
    core = launch_open(&settings, now);
    out = calloc(1, sizeof *out);
}

static void arrange(void)
{
    arrange_every(10 * RM_S);
}

static void dismiss(void)
{
    launch_free(core);
    free(out);
}

TestSuite(freezing, .init = arrange, .fini = dismiss);

static void agent_says(enum msg_type type, int64_t n)
{
    static struct message m;
    message_init(&m, type);
    m.generation = (struct msg_generation){1, n};
    m.form.count = type == MSG_FORM;
    happen((struct launch_event){.kind = LAUNCH_LINK, .message = &m});
}

static void is_stopped(enum msg_stop_at at, rm_time within)
{
    static struct message m;
    message_init(&m, MSG_STOP);
    m.stop.round = 5;
    m.stop.at = at;
    m.stop.within = within;
    happen((struct launch_event){.kind = LAUNCH_LINK, .message = &m});
}

static void a_port_is_found(void)
{
    happen((struct launch_event){.kind = LAUNCH_GONE});
    happen((struct launch_event){.kind = LAUNCH_PORT, .text = "10.0.0.4:21000"});
}

static void runs(int64_t n)
{
    a_port_is_found();
    agent_says(MSG_FORM, n);
    agent_says(MSG_GO, n);
    cr_assert(done(LAUNCH_START));
}

static void ends(int code)
{
    happen((struct launch_event){.kind = LAUNCH_ENDED, .code = code, .text = "killed by signal 9"});
}

static void is_over(rm_time every)
{
    happen((struct launch_event){.kind = LAUNCH_FROZEN, .every = every});
}

static void ticks_at(rm_time at)
{
    cr_assert_leq(launch_deadline(core), at);
    now = at;
    happen((struct launch_event){.kind = LAUNCH_TICK});
}

Test(freezing, a_snapshot_is_asked_for_once_an_interval_and_the_next_one_that_long_behind_its_end)
{
    runs(1);
    cr_assert_eq(launch_deadline(core), now + 10 * RM_S);
    ticks_at(now + 10 * RM_S);
    cr_assert(done(LAUNCH_DUMP) && !done(LAUNCH_TERM));
    now += 20 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_not(done(LAUNCH_DUMP), "one at a time");
    is_over(0);
    cr_assert_eq(launch_deadline(core), now + 10 * RM_S);
    ticks_at(now + 10 * RM_S);
    cr_assert(done(LAUNCH_DUMP));
    is_over(25 * RM_S);
    cr_assert_eq(launch_deadline(core), now + 25 * RM_S, "as it costs by now");
}

Test(freezing, none_is_asked_for_where_the_job_names_no_time, .init = NULL)
{
    arrange_every(0);
    runs(1);
    now += 50 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_not(done(LAUNCH_DUMP));
    is_stopped(STOP_BOUNDARY, 0);
    cr_assert(done(LAUNCH_FREEZE));
}

Test(freezing, a_stop_that_leaves_time_freezes_and_is_answered_when_that_is_over)
{
    runs(1);
    is_stopped(STOP_BOUNDARY, 12 * RM_S);
    cr_assert(done(LAUNCH_FREEZE) && done(LAUNCH_FREEZE)->within == 12 * RM_S && !done(LAUNCH_TERM));
    ends(137);
    cr_assert(!said(MSG_FAULT) && !done(LAUNCH_KILL), "it goes to the store yet");
    is_over(0);
    cr_assert(done(LAUNCH_KILL));
    a_port_is_found();
    cr_assert_eq(said(MSG_STOPPED)->stopped.round, 5);
}

Test(freezing, what_could_not_be_frozen_is_told_to_go_in_the_time_that_is_left)
{
    runs(1);
    is_stopped(STOP_BOUNDARY, 12 * RM_S);
    now += 2 * RM_S;
    is_over(0);
    cr_assert(done(LAUNCH_TERM) && !done(LAUNCH_KILL));
    ticks_at(now + 10 * RM_S);
    cr_assert(done(LAUNCH_KILL));
}

Test(freezing, a_snapshot_that_does_not_come_to_an_end_holds_nobody_up)
{
    runs(1);
    is_stopped(STOP_BOUNDARY, 0);
    ends(137);
    ticks_at(now + 30 * RM_S);
    cr_assert(done(LAUNCH_KILL));
    is_over(0);
    cr_assert_eq(out->count, 0);
    a_port_is_found();
    cr_assert(said(MSG_STOPPED));
}

Test(freezing, a_nearer_end_makes_it_shorter)
{
    runs(1);
    is_stopped(STOP_BOUNDARY, 20 * RM_S);
    is_stopped(STOP_BOUNDARY, 3 * RM_S);
    cr_assert_eq(out->count, 0);
    ticks_at(now + 3 * RM_S);
    cr_assert(done(LAUNCH_KILL));
}

Test(freezing, a_sudden_stop_freezes_nothing)
{
    runs(1);
    is_stopped(STOP_NOW, RM_S);
    cr_assert(done(LAUNCH_TERM) && !done(LAUNCH_FREEZE));
}

Test(freezing, the_one_under_way_gives_way_to_the_last_one)
{
    runs(1);
    ticks_at(now + 10 * RM_S);
    is_stopped(STOP_BOUNDARY, 0);
    cr_assert(done(LAUNCH_FREEZE));
    ends(137);
    is_over(0);
    cr_assert(done(LAUNCH_KILL));
}

Test(freezing, a_program_that_fails_is_not_frozen_and_its_failure_is_told)
{
    runs(1);
    ends(3);
    cr_assert(said(MSG_FAULT) && done(LAUNCH_KILL) && !done(LAUNCH_FREEZE));
}

Test(freezing, time_in_which_no_coordinator_answered_is_not_held_against_the_program)
{
    runs(1);
    rm_time begun = now;
    happen((struct launch_event){.kind = LAUNCH_TOLD, .progress = {.step = 7}});
    now += 10 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_HELD, .held = true});
    now = begun + 100 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert(said(MSG_HEARTBEAT) && !said(MSG_REPORTED), "it can't say anything");
    now = begun + 110 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_HELD});
    now = begun + 200 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_eq(said(MSG_REPORTED)->reported.still, 100 * RM_S);
}

/* What a shell would answer, sooner or later. */
struct answers {
    int lives, snapshots;
    bool killed, port;
};

static void note(struct answers *a)
{
    for (int i = 0; i < out->count; i++) {
        enum launch_action_kind kind = out->action[i].kind;
        a->lives += kind == LAUNCH_START;
        a->snapshots = kind == LAUNCH_DUMP || kind == LAUNCH_FREEZE ? 1 : a->snapshots;
        a->killed = a->killed || kind == LAUNCH_KILL;
        a->port = a->port || kind == LAUNCH_CHOOSE_PORT;
    }
}

static void answer(struct answers *a, uint64_t *rng)
{
    if (a->lives && prng_below(rng, 2)) {
        a->lives = 0;
        ends((int)prng_below(rng, 2) * 3);
    } else if (a->snapshots && prng_below(rng, 2)) {
        a->snapshots = 0;
        is_over((rm_time)prng_below(rng, 3) * RM_S);
    } else if (a->killed && !a->lives) {
        a->killed = false;
        happen((struct launch_event){.kind = LAUNCH_GONE});
    } else if (a->port) {
        a->port = false;
        happen((struct launch_event){.kind = LAUNCH_PORT, .text = "10.0.0.4:21000"});
    }
}

/* The core asserts what must hold in each state. */
Test(freezing, whatever_comes_in_whatever_order_it_comes_to_rest)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct answers a = {.killed = true};
        uint64_t rng = seed;
        dismiss();
        arrange_every((rm_time)prng_below(&rng, 3) * RM_S);
        for (int i = 0; i < 200; i++) {
            now += (rm_time)prng_below(&rng, 2 * RM_S);
            out->count = 0;
            switch (prng_below(&rng, 8)) {
            case 0:
                agent_says(MSG_FORM, i);
                break;
            case 1:
                agent_says(MSG_GO, i - 1);
                break;
            case 2:
                is_stopped(prng_below(&rng, 2) ? STOP_BOUNDARY : STOP_NOW,
                           (rm_time)prng_below(&rng, 9) * RM_S);
                break;
            case 3:
                happen((struct launch_event){.kind = LAUNCH_TICK});
                break;
            default:
                answer(&a, &rng);
            }
            note(&a);
        }
    }
}
