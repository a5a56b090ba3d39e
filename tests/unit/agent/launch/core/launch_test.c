/* One worker's share of a program: what the agent hears, and that nothing of two generations lives at once.
 */
#include "agent/launch/core/launch.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"

enum { WORKER = 4, PROCESSES = 2 };

static struct launch *core;
static struct launch_out *out;
static rm_time now;

static void happen(struct launch_event event)
{
    launch_step(core, &event, now, out);
}

static int count(enum launch_action_kind kind)
{
    int n = 0;
    for (int i = 0; i < out->count; i++)
        n += out->action[i].kind == kind;
    return n;
}

/* The message of that type among the actions; NULL: there is none. */
static const struct message *said(enum msg_type type)
{
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == LAUNCH_SEND && out->action[i].message->type == type)
            return out->action[i].message;
    return NULL;
}

static void arrange(void)
{
    struct launch_settings settings = {.worker = WORKER,
                                       .processes = PROCESSES,
                                       .pid = 77,
                                       .grace = 30 * RM_S,
                                       .heartbeat = RM_S,
                                       .lineage = {1, 2, 3},
                                       .build = "1f00aa11bb22cc33"};
    now = 100 * RM_S;
    core = launch_open(&settings, now);
    out = calloc(1, sizeof *out);
}

static void dismiss(void)
{
    launch_free(core);
    free(out);
}

TestSuite(launch, .init = arrange, .fini = dismiss);

static void all_are_gone(void)
{
    happen((struct launch_event){.kind = LAUNCH_GONE});
}

static void a_port_is_found(const char *address)
{
    struct launch_event event = {.kind = LAUNCH_PORT};
    text_copy(event.text, sizeof event.text, address);
    happen(event);
}

static void comes_up(void)
{
    all_are_gone();
    cr_assert_eq(count(LAUNCH_CHOOSE_PORT), 1);
    a_port_is_found("10.0.0.4:21000");
}

static void agent_says(struct message *m)
{
    happen((struct launch_event){.kind = LAUNCH_LINK, .message = m});
}

static void is_formed(int64_t n)
{
    static struct message m;
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){1, n};
    m.form.count = 2;
    m.form.member[0].worker = 1;
    m.form.member[1].worker = WORKER;
    text_copy(m.form.member[0].address, RM_ADDRESS_MAX, "10.0.0.1:22000");
    text_copy(m.form.member[1].address, RM_ADDRESS_MAX, "10.0.0.4:21000");
    agent_says(&m);
}

static void goes(int64_t n)
{
    static struct message m;
    message_init(&m, MSG_GO);
    m.generation = (struct msg_generation){1, n};
    agent_says(&m);
}

static void is_stopped_within(int64_t round, enum msg_stop_at at, rm_time within)
{
    static struct message m;
    message_init(&m, MSG_STOP);
    m.stop.round = round;
    m.stop.at = at;
    m.stop.within = within;
    agent_says(&m);
}

/* As the coordinator tells it of a loss that nobody announced, or of a change that was. */
static void is_stopped(int64_t round, enum msg_stop_at at)
{
    is_stopped_within(round, at, at == STOP_NOW ? RM_S : 0);
}

static void ends(int local, int code)
{
    struct launch_event event = {.kind = LAUNCH_ENDED, .local = local, .code = code};
    text_copy(event.text, sizeof event.text, code ? "exit code 3: no such thing" : "exit code 0");
    happen(event);
}

static void runs(void)
{
    comes_up();
    is_formed(1);
    goes(1);
    cr_assert_eq(count(LAUNCH_START), 1);
}

Test(launch, it_comes_up_with_a_port_and_the_state_that_every_worker_of_the_job_has)
{
    comes_up();
    const struct message *up = said(MSG_UP);
    cr_assert(up && up->up.pid == 77 && up->up.state.held && up->up.state.step == 0);
    cr_assert_eq(up->up.state.lineage[2], 3);
    cr_assert_str_eq(up->up.address, "10.0.0.4:21000");
}

/* A ring in which this worker is only asked for what it holds. */
Test(launch, a_ring_without_this_worker_leaves_the_one_that_it_is_ready_for_as_it_is)
{
    static struct message other;
    comes_up();
    is_formed(1);
    message_init(&other, MSG_FORM);
    other.generation = (struct msg_generation){1, 2};
    other.form.count = 1;
    other.form.member[0].worker = 1;
    agent_says(&other);
    cr_assert_null(said(MSG_READY));
    goes(2);
    cr_assert_eq(count(LAUNCH_START), 0);
    is_stopped(1, STOP_NOW);
    cr_assert_eq(count(LAUNCH_KILL), 1);
}

Test(launch, a_generation_starts_with_go_and_knows_its_rank)
{
    comes_up();
    is_formed(3);
    cr_assert(said(MSG_READY));
    cr_assert_eq(count(LAUNCH_START), 0);
    goes(2);
    cr_assert_eq(count(LAUNCH_START), 0, "that is another generation's");
    goes(3);
    cr_assert_eq(count(LAUNCH_START), 1);
    const struct launch_ring *ring = launch_ring_of(core);
    cr_assert(ring->rank == 1 && ring->world == 2 && ring->generation.n == 3);
    cr_assert_str_eq(ring->address[0], "10.0.0.1:22000");
}

Test(launch, a_port_that_was_told_is_not_used_again)
{
    comes_up();
    is_formed(1);
    is_stopped(5, STOP_NOW);
    cr_assert_null(said(MSG_STOPPED), "somebody may have got the word to go, and knows this port");
    cr_assert_eq(count(LAUNCH_KILL), 1);
    all_are_gone();
    a_port_is_found("10.0.0.4:23000");
    cr_assert_eq(said(MSG_STOPPED)->stopped.round, 5);
    cr_assert_str_eq(said(MSG_UP)->up.address, "10.0.0.4:23000");
    cr_assert_str_eq(said(MSG_UP)->up.fingerprint, "launch, bundle 1f00aa11bb22cc33");
}

Test(launch, it_is_finished_when_all_have_ended_with_0)
{
    runs();
    ends(1, 0);
    cr_assert_null(said(MSG_FINISHED));
    ends(0, 0);
    const struct message *m = said(MSG_FINISHED);
    cr_assert(m && m->generation.n == 1);
}

Test(launch, a_stop_is_answered_only_when_nothing_lives_and_another_port_is_there)
{
    runs();
    is_stopped(7, STOP_BOUNDARY);
    cr_assert_eq(count(LAUNCH_TERM), 1);
    ends(0, 143);
    cr_assert_eq(count(LAUNCH_KILL), 0);
    ends(1, 0);
    cr_assert_eq(count(LAUNCH_KILL), 1, "what they left behind goes, too");
    cr_assert_null(said(MSG_STOPPED));
    all_are_gone();
    cr_assert_null(said(MSG_STOPPED));
    a_port_is_found("10.0.0.4:23000");
    const struct message *m = said(MSG_STOPPED);
    cr_assert(m && m->stopped.round == 7 && m->stopped.update_step == -1);
    cr_assert_str_eq(said(MSG_UP)->up.address, "10.0.0.4:23000");
    cr_assert(said(MSG_UP) < m, "hello with the new port comes before the answer");
    cr_assert_null(said(MSG_FAULT), "what was told to go does not fail");
}

Test(launch, who_does_not_go_in_time_is_killed)
{
    runs();
    is_stopped(7, STOP_BOUNDARY);
    now += 29 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_eq(count(LAUNCH_KILL), 0);
    now += RM_S;
    cr_assert_leq(launch_deadline(core), now);
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_eq(count(LAUNCH_KILL), 1);
}

Test(launch, a_sudden_stop_waits_a_second_also_where_an_announced_one_is_under_way)
{
    runs();
    is_stopped(7, STOP_BOUNDARY);
    is_stopped(8, STOP_NOW);
    now += RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_eq(count(LAUNCH_KILL), 1);
    ends(0, 137);
    ends(1, 137);
    all_are_gone();
    a_port_is_found("10.0.0.4:23000");
    cr_assert_eq(said(MSG_STOPPED)->stopped.round, 8, "the newest is answered");
}

/* How long a program that ignores SIGTERM lives on, of 30 s that its job gives it. */
static rm_time lives_for(rm_time within, rm_time then_within)
{
    dismiss();
    arrange();
    runs();
    rm_time begin = now;
    is_stopped_within(7, STOP_BOUNDARY, within);
    if (then_within >= 0)
        is_stopped_within(7, STOP_BOUNDARY, then_within);
    for (; count(LAUNCH_KILL) == 0; happen((struct launch_event){.kind = LAUNCH_TICK}))
        now = launch_deadline(core);
    return now - begin;
}

Test(launch, an_announced_stop_takes_the_grace_period_but_never_longer_than_what_is_left)
{
    static const struct {
        rm_time within, then_within, lives;
    } cases[] = {
        {0, -1, 30 * RM_S},
        {12 * RM_S, -1, 12 * RM_S},
        {100 * RM_S, -1, 30 * RM_S},
        {1, -1, 1},
        {25 * RM_S, 4 * RM_S, 4 * RM_S}, /* another machine has less */
        {4 * RM_S, 25 * RM_S, 4 * RM_S},
        {RM_S, 0, RM_S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(lives_for(cases[i].within, cases[i].then_within), cases[i].lives, "case %zu", i);
}

Test(launch, a_failure_says_whether_memory_was_short)
{
    struct launch_event killed = {.kind = LAUNCH_ENDED, .local = 0, .code = 137, .memory = true};
    runs();
    happen(killed);
    cr_assert(said(MSG_FAULT)->fault.memory && said(MSG_FAULT)->fault.exit_code == 137);
}

Test(launch, the_first_process_that_fails_speaks_for_all)
{
    runs();
    ends(1, 3);
    const struct message *m = said(MSG_FAULT);
    cr_assert(m && m->fault.kind == FAULT_PROGRAM && m->fault.exit_code == 3);
    cr_assert_str_eq(m->fault.detail, "rank 3: exit code 3: no such thing");
    cr_assert_eq(count(LAUNCH_TERM), 1);
    ends(0, 143);
    cr_assert_null(said(MSG_FAULT));
    cr_assert_eq(count(LAUNCH_KILL), 1);
}

Test(launch, a_stop_that_comes_when_all_are_gone_is_answered_at_once)
{
    runs();
    ends(0, 0);
    ends(1, 3);
    cr_assert_eq(count(LAUNCH_KILL), 1);
    all_are_gone();
    a_port_is_found("10.0.0.4:23000");
    cr_assert_null(said(MSG_STOPPED));
    is_stopped(9, STOP_NOW);
    cr_assert_eq(said(MSG_STOPPED)->stopped.round, 9);
}

Test(launch, who_is_done_starts_anew_where_others_are_not)
{
    runs();
    ends(0, 0);
    ends(1, 0);
    is_stopped(4, STOP_NOW);
    cr_assert_eq(count(LAUNCH_KILL), 1, "it may have left something behind");
    all_are_gone();
    a_port_is_found("10.0.0.4:23000");
    cr_assert(said(MSG_STOPPED));
    is_formed(2);
    goes(2);
    cr_assert_eq(count(LAUNCH_START), 1);
}

Test(launch, who_is_released_goes_when_all_are_gone)
{
    static struct message release;
    runs();
    message_init(&release, MSG_RELEASE);
    agent_says(&release);
    cr_assert_eq(count(LAUNCH_TERM), 1);
    ends(0, 143);
    ends(1, 143);
    cr_assert_eq(count(LAUNCH_EXIT), 0);
    all_are_gone();
    cr_assert_eq(count(LAUNCH_EXIT), 1);
}

Test(launch, without_its_agent_it_kills_and_goes)
{
    runs();
    happen((struct launch_event){.kind = LAUNCH_CLOSED});
    cr_assert_eq(count(LAUNCH_KILL), 1);
    ends(0, 137);
    ends(1, 137);
    all_are_gone();
    cr_assert_eq(count(LAUNCH_EXIT), 1);
}

Test(launch, each_heartbeat_says_that_the_launcher_lives)
{
    int64_t before = 0;
    runs();
    for (int i = 0; i < 3; i++) {
        now += RM_S;
        happen((struct launch_event){.kind = LAUNCH_TICK});
        cr_assert_gt(said(MSG_HEARTBEAT)->heartbeat.counter, before);
        before = said(MSG_HEARTBEAT)->heartbeat.counter;
    }
}

/* ---- what a program says of its progress ---- */

static void tells(int64_t rank, int64_t step)
{
    happen((struct launch_event){.kind = LAUNCH_TOLD,
                                 .progress = {.rank = rank, .step = step, .steps = 100, .loss = 2.5}});
}

static void a_beat_passes(void)
{
    now += RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
}

static const struct msg_reported *reported(void)
{
    const struct message *m = said(MSG_REPORTED);
    return m ? &m->reported : NULL;
}

Test(launch, a_program_that_reports_nothing_has_no_progress)
{
    runs();
    a_beat_passes();
    cr_assert(said(MSG_HEARTBEAT) && !reported());
}

Test(launch, progress_goes_with_each_heartbeat_and_says_how_long_the_step_is_the_same)
{
    runs();
    now += RM_S / 2;
    tells(0, 7);
    cr_assert_not(reported(), "not with each of a million");
    a_beat_passes();
    cr_assert(reported() && reported()->step == 7 && reported()->steps == 100 && reported()->loss_known);
    cr_assert_eq(reported()->still, RM_S);
    tells(0, 7);
    a_beat_passes();
    cr_assert_eq(reported()->still, 2 * RM_S, "the same step is no step");
    tells(0, 5);
    a_beat_passes();
    cr_assert(reported()->step == 5 && reported()->still == RM_S, "a step back moves, too");
}

Test(launch, the_lowest_rank_speaks_for_the_program_and_one_without_a_rank_is_any)
{
    runs();
    tells(9, 3);
    tells(8, 2);
    tells(9, 4);
    a_beat_passes();
    cr_assert_eq(reported()->step, 2);
    tells(-1, 6);
    a_beat_passes();
    cr_assert_eq(reported()->step, 6);
}

Test(launch, a_loss_that_is_no_number_is_not_known)
{
    runs();
    happen((struct launch_event){.kind = LAUNCH_TOLD,
                                 .progress = {.rank = 0, .step = 1, .loss = strtod("nan", NULL)}});
    a_beat_passes();
    cr_assert(reported() && !reported()->loss_known && reported()->loss == 0);
}

Test(launch, the_newest_report_goes_before_the_end_and_none_is_of_another_generation)
{
    runs();
    tells(0, 99);
    ends(0, 3);
    cr_assert(reported() && reported()->step == 99);
    cr_assert_eq(out->action[0].message->type, MSG_REPORTED, "it is of before the failure");
    tells(0, 100);
    a_beat_passes();
    cr_assert_not(reported(), "it is stopping");
    ends(1, 137);
    all_are_gone();
    a_port_is_found("10.0.0.4:23000");
    is_formed(2);
    goes(2);
    a_beat_passes();
    cr_assert_not(reported());
}

Test(launch, nobody_is_said_to_stand_still_once_a_process_has_ended_well)
{
    runs();
    tells(0, 99);
    a_beat_passes();
    ends(0, 0);
    a_beat_passes();
    cr_assert_not(reported(), "the one that told may be the one that has ended");
}

Test(launch, time_in_which_the_launcher_was_held_up_is_not_held_against_the_program)
{
    runs();
    tells(0, 7);
    now += 600 * RM_S;
    happen((struct launch_event){.kind = LAUNCH_TICK});
    cr_assert_leq(reported()->still, 2 * RM_S, "still for %lld ns", (long long)reported()->still);
}

/* ---- any order of events ---- */

struct world {
    uint64_t chance;
    int64_t n, round;
    int alive[PROCESSES]; /* generation that a process is of, 0: it does not live */
    bool killing, choosing;
};

static void obey(struct world *w)
{
    for (int i = 0; i < out->count; i++) {
        const struct launch_action *a = &out->action[i];
        for (int p = 0; a->kind == LAUNCH_START && p < PROCESSES; p++) {
            cr_assert_eq(w->alive[p], 0, "process %d of generation %d lives", p, w->alive[p]);
            w->alive[p] = (int)launch_ring_of(core)->generation.n;
        }
        w->killing |= a->kind == LAUNCH_KILL;
        w->choosing |= a->kind == LAUNCH_CHOOSE_PORT;
        bool stopped = a->kind == LAUNCH_SEND && a->message->type == MSG_STOPPED;
        cr_assert(!stopped || (!w->alive[0] && !w->alive[1]), "it says that it has stopped, and it has not");
    }
}

static int a_living_one(const struct world *w)
{
    return w->alive[0] ? 0 : w->alive[1] ? 1 : -1;
}

static void something_happens(struct world *w)
{
    int one = a_living_one(w);
    switch (prng_below(&w->chance, 8)) {
    case 0:
        is_formed(++w->n);
        break;
    case 1:
        goes(w->n);
        break;
    case 2:
        is_stopped(++w->round, prng_below(&w->chance, 2) ? STOP_NOW : STOP_BOUNDARY);
        break;
    case 3:
    case 4:
        if (one < 0)
            return;
        w->alive[one] = 0;
        ends(one, w->killing ? 137 : prng_below(&w->chance, 2) ? 0 : 3);
        break;
    case 5:
        if (!w->killing || one >= 0)
            return;
        w->killing = false;
        all_are_gone();
        break;
    case 6:
        if (!w->choosing)
            return;
        w->choosing = false;
        a_port_is_found("10.0.0.4:23000");
        break;
    default:
        now += (rm_time)prng_below(&w->chance, 3) * RM_S;
        happen((struct launch_event){.kind = LAUNCH_TICK});
    }
    obey(w);
}

Test(launch, no_process_of_one_generation_ever_lives_beside_one_of_another)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w = {.chance = seed, .killing = true};
        launch_free(core);
        free(out);
        arrange();
        for (int i = 0; i < 400; i++)
            something_happens(&w);
    }
}
