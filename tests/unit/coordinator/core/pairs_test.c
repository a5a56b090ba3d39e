/* Workers that are well and can't reach each other, one story each. startTimeout is 60 s. */
#include <stdio.h>

#include "tests/unit/coordinator/core/pairs_story.h"

static bool forms_with(const struct story *s, int count, const int *workers)
{
    bool same = rdzv_state(s->st) == RDZV_FORMING && s->form.form.count == count;
    for (int r = 0; same && r < count; r++)
        same = s->form.form.member[r].worker == workers[r];
    return same;
}

Test(pairs, two_that_cant_reach_each_other_twice_are_parted_and_the_job_goes_on)
{
    struct story s;
    gather(&s, patient(1), 3);
    break_off(&s, 1, 2, nothing);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "the first repetition is at once: %s", str_text(&s.log));
    break_off(&s, 2, 1, nothing);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    ready(&s, 0, 0);
    ready(&s, 1, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "\"event\":\"workerLeftOut\""), "%s", str_text(&s.log));
    cr_assert(said(&s, "it and worker 1 can't reach each other (as the story goes)"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "workerFailed"), "neither is to blame: %s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, the_one_that_is_blamed_more_often_is_left_out)
{
    struct story s;
    gather(&s, patient(1), 3);
    break_off(&s, 1, 0, nothing);
    break_off(&s, 1, 0, nothing);
    cr_assert(forms_with(&s, 2, (int[]){1, 2}), "%s", str_text(&s.log));
    story_end(&s);
}

/* It calls 0 and is called by 1; it reaches nobody, and the others are blamed. */
Test(pairs, one_that_is_cut_off_from_two_is_found_where_too_few_would_be_left_without_them)
{
    struct story s;
    gather(&s, patient(2), 3);
    break_off(&s, 2, 0, nothing);
    break_off(&s, 2, 0, nothing);
    cr_assert(forms_with(&s, 2, (int[]){1, 2}), "%s", str_text(&s.log));
    break_off(&s, 2, 1, nothing);
    break_off(&s, 2, 1, nothing);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, a_pair_that_loses_one_of_its_two_meanwhile_is_no_pair)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int round = 0; round < 3; round++) {
        fault_of(&s, 0, FAULT_RING, 1, -1);
        fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
        s.trainer[1]++;
        struct message m;
        hello_message(&s, 1, -1, &m);
        hear(&s, 1, &m);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, -1, -1);
        if (round == 0)
            forget(&s);
        if (rdzv_state(s.st) != RDZV_FORMING)
            after(&s, RM_S);
    }
    cr_assert(!said(&s, "workerLeftOut"), "%s", str_text(&s.log));
    story_end(&s);
}

static const rm_time pauses[] = {0, RM_S, 2 * RM_S, 4 * RM_S, 8 * RM_S, 16 * RM_S, 30 * RM_S, 30 * RM_S};

Test(pairs, where_too_few_would_be_left_all_are_tried_with_growing_pauses_until_start_timeout)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 6; i++) {
        break_off(&s, 0, 2, nothing);
        if (pauses[i]) {
            after(&s, pauses[i] - RM_MS);
            cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "after %d: %s", i, str_text(&s.log));
            after(&s, RM_MS);
        }
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "after %d: %s", i, str_text(&s.log));
    }
    cr_assert(said(&s, "waiting"), "%s", str_text(&s.log));
    break_off(&s, 0, 2, nothing);
    after(&s, 29 * RM_S - RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "startTimeout is not over: %s", str_text(&s.log));
    after(&s, RM_MS);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "a last try: %s", str_text(&s.log));
    break_off(&s, 0, 2, nothing);
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "end 4 workers 0 and 2 can't reach each other (as the story goes)"), "%s",
              str_text(&s.log));
    story_end(&s);
}

Test(pairs, in_pods_it_waits_with_the_reason_and_goes_on_when_they_reach_each_other)
{
    struct rdzv_settings settings = patient(3);
    settings.unsupervised = true;
    struct story s;
    gather(&s, settings, 3);
    for (int i = 0; i < 60; i++) {
        break_off(&s, 0, 2, nothing);
        after(&s, pauses[i < 7 ? i : 7]);
        cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d: %s", i, str_text(&s.log));
    }
    cr_assert(said(&s, "\"reason\":\"workers 0 and 2 can't reach each other"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

/* The tries before it were bounded by what is said of pairs, and are not counted against those who are left.
 */
Test(pairs, in_pods_a_trainer_that_dies_in_one_of_many_tries_ends_nothing)
{
    struct rdzv_settings settings = patient(3);
    settings.unsupervised = true;
    settings.max_restarts = 9;
    struct story s;
    gather(&s, settings, 3);
    for (int i = 0; i < 60; i++) {
        break_off(&s, 0, 2, nothing);
        after(&s, pauses[i < 7 ? i : 7]);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    fault_of(&s, 2, FAULT_TRAINER_EXIT, -1, -1);
    stopped(&s, 0, -1, -1);
    stopped(&s, 1, -1, -1);
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* The first of the ring's members that lies on this side. */
static int member_of(const struct story *s, int half, bool upper)
{
    for (int r = 0; r < s->form.form.count; r++) {
        int w = s->form.form.member[r].worker;
        if ((w >= half) == upper)
            return w;
    }
    return -1;
}

Test(pairs, a_network_in_two_halves_is_found_out_pair_by_pair_however_many_they_are)
{
    enum { ALL = 24, HALF = ALL / 2, RINGS_MOST = 2 * HALF * HALF };
    struct rdzv_settings settings = patient(1);
    settings.workers_max = settings.workers_target = settings.lanes = ALL;
    struct story s;
    gather(&s, settings, ALL);
    for (int i = 0; i < RINGS_MOST && s.ended < 0; i++) {
        int by = member_of(&s, HALF, false), peer = member_of(&s, HALF, true);
        if (by < 0 || peer < 0)
            break;
        fault_of(&s, by, FAULT_RING, peer, -1);
        for (int w = 0; w < ALL; w++)
            stopped(&s, w, -1, -1);
        if (rdzv_state(s.st) == RDZV_GATHERING)
            after(&s, 30 * RM_S);
    }
    cr_assert_eq(s.ended, -1, "%s", rdzv_why(s.st));
    cr_assert_eq(s.form.form.count, HALF, "%d of %d", s.form.form.count, (int)rdzv_state(s.st));
    story_end(&s);
}

Test(pairs, another_worker_may_be_what_it_lacked_and_is_not_kept_waiting)
{
    struct story s;
    gather(&s, patient(2), 3);
    for (int i = 0; i < 5; i++) {
        fault_of(&s, 0, FAULT_RING, -1, -1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, -1, -1);
        after(&s, i < 4 ? pauses[i] : 0);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "it pauses: %s", str_text(&s.log));
    leaving(&s, 2);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    story_end(&s);
}

/* A ring of all three shows only that 0 and 1, or 1 and 2, or 2 and 0 are apart, whoever speaks first. */
Test(pairs, that_two_of_several_pairs_reach_each_other_again_is_found_out)
{
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    struct story s;
    gather(&s, settings, 3);
    for (int i = 0; i < 40; i++) {
        const struct msg_form *f = &s.form.form;
        int first = f->member[0].worker, last = f->member[f->count - 1].worker;
        if (i > 12 && f->count == 2 && first == 0 && last == 1)
            break; /* they reach each other again */
        break_off(&s, first, last, nothing);
        for (int second = 0; second < 30 && rdzv_state(s.st) != RDZV_FORMING; second++)
            after(&s, RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "after %d: %s", i, str_text(&s.log));
    }
    ready(&s, 0, 0);
    ready(&s, 1, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

/* ---- walls that let the handshake through ---- */

/* The ring that forms goes, and breaks before its first step. */
static void go_and_break_off(struct story *s, int by, int peer, const int64_t held[3])
{
    for (int r = 0; r < s->form.form.count; r++) {
        int w = s->form.form.member[r].worker;
        ready(s, w, held[w] < 0 ? 0 : held[w]);
    }
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    break_off(s, by, peer, held);
}

static const int64_t seed[3] = {0, 0, 0};

Test(pairs, two_whose_rings_break_between_go_and_the_first_step_are_parted_like_two_that_form_none)
{
    struct story s;
    gather(&s, patient(1), 3);
    go_and_break_off(&s, 1, 2, seed);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "the first repetition is at once: %s", str_text(&s.log));
    go_and_break_off(&s, 2, 1, seed);
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    ready(&s, 0, 0);
    ready(&s, 1, 0);
    cr_assert(said(&s, "it and worker 1 can't reach each other (as the story goes)"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "workerFailed") && !said(&s, "send 2 fault"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, where_all_are_needed_and_no_ring_makes_a_step_the_pauses_grow_and_start_timeout_ends_it)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 6; i++) {
        go_and_break_off(&s, 0, 2, seed);
        if (pauses[i]) {
            after(&s, pauses[i] - RM_MS);
            cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "after %d: %s", i, str_text(&s.log));
            after(&s, RM_MS);
        }
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "after %d: %s", i, str_text(&s.log));
    }
    go_and_break_off(&s, 0, 2, seed);
    after(&s, 29 * RM_S);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "a last try: %s", str_text(&s.log));
    go_and_break_off(&s, 0, 2, seed);
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "end 4 workers 0 and 2 can't reach each other (as the story goes)"), "%s",
              str_text(&s.log));
    story_end(&s);
}

Test(pairs, rings_that_make_no_step_and_name_nobody_are_formed_with_growing_pauses)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int i = 0; i < 8; i++) {
        go_and_break_off(&s, 0, -1, seed);
        if (pauses[i])
            after(&s, pauses[i] - RM_MS);
        cr_assert_eq(rdzv_state(s.st), pauses[i] ? RDZV_GATHERING : RDZV_FORMING, "after %d: %s", i,
                     str_text(&s.log));
        after(&s, RM_MS);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "after %d: %s", i, str_text(&s.log));
    }
    story_end(&s);
}

Test(pairs, a_path_that_goes_bad_in_mid_training_is_found_by_the_next_ring)
{
    static const int64_t five[3] = {5, 5, 5};
    struct story s;
    gather(&s, patient(1), 3);
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    progress(&s, 0, 5);
    break_off(&s, 2, 1, five);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "%s", str_text(&s.log));
    go_and_break_off(&s, 1, 2, five);
    cr_assert_eq(s.form.form.count, 2, "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "at once: %s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, two_that_make_a_step_between_have_shown_that_they_reach_each_other)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int64_t step = 0; step < 12; step += 2) {
        int64_t before[3] = {step, step, step}, then = step + 1, last[3] = {then + 1, then + 1, then + 1};
        go_and_break_off(&s, 1, 2, before);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "at step %" PRId64 ": %s", step, str_text(&s.log));
        for (int w = 0; w < 3; w++)
            ready(&s, w, step);
        fault_of(&s, 1, FAULT_RING, 2, -1);
        progress(&s, 0, then); /* it was made, and is told only now */
        for (int w = 0; w < 3; w++)
            stopped(&s, w, then, -1);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "at step %" PRId64 ": %s", step, str_text(&s.log));
        for (int w = 0; w < 3; w++)
            ready(&s, w, then);
        progress(&s, 0, then + 1);
        break_off(&s, 0, -1, last);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "at step %" PRId64 ": %s", step, str_text(&s.log));
    }
    story_end(&s);
}

/* Its neighbour names it first; it has another trainer at once. */
Test(pairs, trainers_that_die_before_the_first_step_cost_no_pause)
{
    struct rdzv_settings settings = patient(1);
    settings.max_restarts = 100;
    struct story s;
    gather(&s, settings, 3);
    for (int round = 0; round < 5; round++) {
        for (int w = 0; w < 3; w++)
            ready(&s, w, 0);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "round %d: %s", round, str_text(&s.log));
        fault_of(&s, 0, FAULT_RING, 1, -1);
        fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
        s.trainer[1]++;
        struct message m;
        hello_message(&s, 1, -1, &m);
        hear(&s, 1, &m);
        stopped(&s, 1, -1, -1);
        stopped(&s, 0, 0, -1);
        stopped(&s, 2, 0, -1);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "round %d: %s", round, str_text(&s.log));
    }
    story_end(&s);
}

/* Worker 2's word is the first, and follows from what 0 and 1 did: both of them say so. */
Test(pairs, two_that_name_each_other_are_believed_rather_than_who_speaks_first)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int i = 0; i < 2; i++) {
        for (int w = 0; w < 3; w++)
            ready(&s, w, 0);
        fault_of(&s, 2, FAULT_RING, 0, -1);
        fault_of(&s, 1, FAULT_RING, 0, -1);
        fault_of(&s, 0, FAULT_RING, 1, -1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 0, -1);
    }
    cr_assert(forms_with(&s, 2, (int[]){0, 2}), "%s", str_text(&s.log));
    story_end(&s);
}

/* 1 and 2 are cut off from each other, and all three are needed. What comes of that is seen by 0, too, and
 * told by it first. */
Test(pairs, two_that_are_known_to_be_apart_are_believed_rather_than_who_speaks_first)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 2; i++)
        break_off(&s, 2, 1, nothing);
    for (int i = 1; i < 4; i++) {
        after(&s, pauses[i]);
        for (int w = 0; w < 3; w++)
            ready(&s, w, 0);
        fault_of(&s, 0, FAULT_RING, 1, -1);
        fault_of(&s, 2, FAULT_RING, 1, -1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 0, -1);
    }
    cr_assert(said(&s, "workers 1 and 2 can't reach"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "workers 0 and 1"), "%s", str_text(&s.log));
    story_end(&s);
}

/* ---- who holds the state ---- */

/* Worker 1's trainer has died before the first step, and 0, which leaves, is to give its new one the state.
 * Each time the one that gets none is the first to stop. */
Test(pairs, who_leaves_and_can_not_give_its_state_is_let_go_and_the_other_goes_on)
{
    struct rdzv_settings settings = patient(1);
    settings.max_restarts = 9;
    struct story s;
    gather(&s, settings, 2);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    leaving(&s, 0);
    fault_of(&s, 1, FAULT_TRAINER_EXIT, -1, -1);
    s.trainer[1]++;
    struct message m;
    hello_message(&s, 1, -1, &m);
    hear(&s, 1, &m);
    stopped(&s, 1, -1, -1);
    stopped(&s, 0, 0, -1);
    cr_assert_eq(s.form.form.source[0].worker, 0, "%s", str_text(&s.log));
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(s.form.form.sources_count, 1, "%s", str_text(&s.log));
        fault_of(&s, 1, FAULT_RING, 0, -1);
        stopped(&s, 1, -1, -1);
        stopped(&s, 0, 0, -1);
    }
    after(&s, RM_S);
    cr_assert(said(&s, "send 0 release"), "%s", str_text(&s.log));
    cr_assert(forms_with(&s, 1, (int[]){1}), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.member[0].role, ROLE_INIT, "%s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, a_newcomer_that_cant_get_the_state_is_left_out_and_not_the_one_that_it_blames)
{
    struct story s;
    let_one_join(&s, patient(1), 7);
    for (int i = 0; i < 2; i++)
        break_off(&s, 2, 0, (int64_t[]){7, 7, -1});
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 7);
    story_end(&s);
}

/* Only worker 0 still holds step 7, 1 and 2 reach each other and not it, and two are needed. */
Test(pairs, where_those_who_go_on_cant_get_the_state_it_is_saved_first_and_loaded)
{
    struct story s;
    let_one_join(&s, patient(2), 7);
    int64_t held[3] = {7, -1, -1};
    for (int i = 0; i < 2; i++)
        break_off(&s, 1, 0, held);
    cr_assert(forms_with(&s, 2, (int[]){0, 2}), "%s", str_text(&s.log));
    for (int i = 0; i < 2; i++)
        break_off(&s, 2, 0, held);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", str_text(&s.log));
    checkpointed(&s, 0, 7, 0, 1, false);
    published(&s, 0, 7, false);
    for (int w = 0; w < 3; w++)
        listed(&s, w, 7, -1);
    after(&s, RM_S);
    cr_assert(forms_with(&s, 2, (int[]){1, 2}), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 7);
    cr_assert_eq(s.form.form.member[0].role, ROLE_LOAD);
    story_end(&s);
}

/* ---- the way back ---- */

/* Worker 2 was left out because it and worker 1 can't reach each other; 0 and 1 train. */
static void leave_one_out(struct story *s)
{
    gather(s, patient(1), 3);
    for (int i = 0; i < 2; i++)
        break_off(s, 1, 2, nothing);
    ready(s, 0, 0);
    ready(s, 1, 0);
    progress(s, 0, 1);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    forget(s);
}

static void probed(struct story *s, int w, int64_t id, int peer)
{
    struct message m;
    message_init(&m, MSG_PROBED);
    m.probed.id = id;
    m.probed.peer = peer;
    text_copy(m.probed.why, sizeof m.probed.why, "refused");
    hear(s, w, &m);
}

Test(pairs, who_was_left_out_comes_back_once_all_reach_each_other_and_training_goes_on_meanwhile)
{
    struct story s;
    leave_one_out(&s);
    after(&s, 10 * RM_S - RM_MS);
    cr_assert(!said(&s, "probe"), "%s", str_text(&s.log));
    after(&s, RM_MS);
    cr_assert(said(&s, "send 2 probe g=1.3 id=1 members=[0 1]"), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 0,1 probe g=1.3 id=1 members=[2]"), "%s", str_text(&s.log));
    probed(&s, 0, 1, -1);
    probed(&s, 2, 1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "worker 1 has not answered: %s", str_text(&s.log));
    probed(&s, 1, 1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    cr_assert(said(&s, "stop g=1.3 round=4 at=boundary"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, w < 2 ? 1 : -1, -1);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "%s", str_text(&s.log));
    story_end(&s);
}

/* Worker 1 still can't call worker 2. */
static void probe_in_vain(struct story *s, int id)
{
    probed(s, 2, id, -1);
    probed(s, 0, id, -1);
    probed(s, 1, id, 2);
}

Test(pairs, while_one_direction_does_not_answer_it_stays_out_and_is_tried_ever_more_seldom)
{
    static const int seconds[] = {10, 20, 40, 80, 160, 300, 300};
    struct story s;
    leave_one_out(&s);
    for (int i = 0; i < 7; i++) {
        char asked[40];
        snprintf(asked, sizeof asked, "send 2 probe g=1.3 id=%d ", i + 1);
        after(&s, (seconds[i] - 1) * RM_S);
        cr_assert(!said(&s, asked), "%s", str_text(&s.log));
        after(&s, RM_S);
        cr_assert(said(&s, asked), "%s", str_text(&s.log));
        probe_in_vain(&s, i + 1);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    }
    story_end(&s);
}

Test(pairs, a_probe_that_is_never_answered_is_made_again)
{
    struct story s;
    leave_one_out(&s);
    after(&s, 10 * RM_S);
    after(&s, 15 * RM_S);
    forget(&s);
    after(&s, 20 * RM_S);
    cr_assert(said(&s, "send 2 probe g=1.3 id=2 "), "%s", str_text(&s.log));
    probed(&s, 2, 1, -1);
    probed(&s, 0, 1, -1);
    probed(&s, 1, 1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "an answer to an older one: %s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, a_new_process_under_the_index_that_was_left_out_is_probed_at_once)
{
    struct story s;
    leave_one_out(&s);
    s.attempt[2]++;
    s.trainer[2]++;
    hello(&s, 2, -1);
    after(&s, RM_MS);
    cr_assert(said(&s, "send 2 probe g=1.3 id=1 members=[0 1]"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    story_end(&s);
}

/* More is sent to it than a handshake only when it has joined, and then its state does not come. */
Test(pairs, one_that_answers_and_gets_no_state_is_not_tried_again_at_once)
{
    struct story s;
    leave_one_out(&s);
    after(&s, 10 * RM_S);
    for (int w = 0; w < 3; w++)
        probed(&s, w, 1, -1);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, w < 2 ? 1 : -1, -1);
    for (int i = 0; i < 2; i++)
        break_off(&s, 2, 1, (int64_t[]){1, 1, -1});
    cr_assert(forms_with(&s, 2, (int[]){0, 1}), "%s", str_text(&s.log));
    ready(&s, 0, 1);
    ready(&s, 1, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "workerLeftOut"), "%s", str_text(&s.log));
    progress(&s, 0, 2);
    after(&s, 20 * RM_S - RM_MS);
    cr_assert(!said(&s, "id=2"), "%s", str_text(&s.log));
    after(&s, RM_MS);
    cr_assert(said(&s, "id=2"), "%s", str_text(&s.log));
    story_end(&s);
}

/* They answer each other now as they did then. */
Test(pairs, one_that_answers_and_does_not_train_costs_one_ring_each_time_that_it_is_tried)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int i = 0; i < 2; i++)
        go_and_break_off(&s, 1, 2, seed);
    for (int try = 1; try <= 3; try++) {
        const int64_t held[3] = {try, try, try};
        ready(&s, 0, try - 1);
        ready(&s, 1, try - 1);
        progress(&s, 0, try);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "try %d: %s", try, str_text(&s.log));
        after(&s, (10 << (try - 1)) * RM_S);
        probed(&s, 2, try, -1);
        probed(&s, 0, try, -1);
        probed(&s, 1, try, -1);
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "try %d: %s", try, str_text(&s.log));
        for (int w = 0; w < 3; w++)
            stopped(&s, w, w < 2 ? try : -1, -1);
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "try %d: %s", try, str_text(&s.log));
        go_and_break_off(&s, 1, 2, held);
        cr_assert(forms_with(&s, 2, (int[]){0, 1}), "try %d: %s", try, str_text(&s.log));
    }
    story_end(&s);
}

/* Only the two whose ring broke are known to answer and to train no better. */
Test(pairs, a_neighbour_that_answers_a_probe_again_and_again_is_no_suspect)
{
    struct story s;
    gather(&s, patient(1), 3);
    for (int i = 0; i < 2; i++)
        go_and_break_off(&s, 1, 2, seed);
    for (int try = 1; try <= 2; try++) {
        const int64_t held[3] = {try, try, try};
        ready(&s, 0, try - 1);
        ready(&s, 1, try - 1);
        progress(&s, 0, try);
        after(&s, (10 << (try - 1)) * RM_S);
        for (int w = 0; w < 3; w++)
            probed(&s, w, try, -1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, w < 2 ? try : -1, -1);
        if (try == 1)
            go_and_break_off(&s, 1, 2, held);
    }
    const int64_t held[3] = {2, 2, 2};
    go_and_break_off(&s, 0, 2, held);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "0 and 2 broke once: %s", str_text(&s.log));
    story_end(&s);
}

/* The ring that forms holds 0 and 2, who lose each other after `go`, or 1 and 3, who do so before it. Nobody
 * is tried meanwhile. */
static void play_ring_that_makes_no_step(struct story *s)
{
    const struct msg_form f = s->form.form;
    bool in[4] = {false};
    for (int r = 0; r < f.count; r++)
        in[f.member[r].worker] = true;
    cr_assert(f.count >= 3, "%s", str_text(&s->log));
    int by = in[1] && in[3] ? 1 : 0;
    for (int w = 0; w < 4 && by == 0; w++)
        if (in[w])
            ready(s, w, 0);
    after(s, RM_S);
    cr_assert(!said(s, "probe"), "%s", str_text(&s->log));
    fault_of(s, by, FAULT_RING, by + 2, -1);
    for (int w = 0; w < 4; w++)
        stopped(s, w, w == 1 ? -1 : 0, -1);
}

Test(pairs, nobody_is_tried_before_the_ring_has_made_a_step_and_start_timeout_ends_as_ever)
{
    struct rdzv_settings settings = patient(3);
    struct story s;
    settings.probe_first = settings.probe_most = RM_S;
    gather(&s, settings, 4);
    rm_time most = s.now + 180 * RM_S; /* three times startTimeout */
    while (s.now < most && s.ended < 0) {
        if (rdzv_state(s.st) == RDZV_FORMING)
            play_ring_that_makes_no_step(&s);
        else
            after(&s, RM_S);
    }
    cr_assert_eq(s.ended, 4, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "workers 0 and 2") && said(&s, "workers 1 and 3"), "%s", str_text(&s.log));
    story_end(&s);
}

/* 0 and 2, and 1 and 3, answer each other and train no better: three never do, and two are enough. */
Test(pairs, of_two_pairs_that_only_answer_both_are_parted_and_the_job_goes_on)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.probe_first = settings.probe_most = RM_S;
    gather(&s, settings, 4);
    for (int rings = 0; s.form.form.count > 2; rings++) {
        cr_assert_lt(rings, 6, "%s", str_text(&s.log));
        play_ring_that_makes_no_step(&s);
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING; second++)
            after(&s, RM_S);
    }
    cr_assert_eq(s.form.form.member[0].worker % 2 + s.form.form.member[1].worker % 2, 1,
                 "one of each pair: %s", str_text(&s.log));
    story_end(&s);
}

/* The fourth has come and answers nothing, so that three form without it. */
Test(pairs, who_goes_is_not_what_the_ring_lacked_and_the_pause_stays)
{
    struct story s;
    story_begin(&s, patient(3));
    expect_workers(&s, 0xf);
    first_come(&s, 3);
    hello(&s, 3, -1);
    for (int w = 0; w < 3; w++)
        listed(&s, w, -1, -1);
    after(&s, RM_S);
    for (int i = 0; i < 4; i++) {
        cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "after %d: %s", i, str_text(&s.log));
        break_off(&s, 0, 2, nothing);
        if (i < 3)
            after(&s, pauses[i]);
    }
    closed(&s, 3);
    after(&s, 4 * RM_S - RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    after(&s, RM_MS);
    cr_assert(forms_with(&s, 3, (int[]){0, 1, 2}), "%s", str_text(&s.log));
    story_end(&s);
}

static void break_off_unsaid(struct story *s, int by, int peer)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault.kind = FAULT_RING;
    m.fault.peer = peer;
    m.fault.step = -1;
    hear(s, by, &m);
    for (int w = 0; w < 3; w++)
        stopped(s, w, -1, -1);
}

Test(pairs, who_says_no_reason_is_said_to_have_said_none)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 2; i++)
        break_off_unsaid(&s, 0, 2);
    cr_assert(said(&s, "workers 0 and 2 can't reach each other (no reason was told)"), "%s",
              str_text(&s.log));
    cr_assert(!said(&s, "()") && !said(&s, "worker 0: \n"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(pairs, who_is_still_left_out_at_the_end_is_told_why)
{
    struct story s;
    leave_one_out(&s);
    progress(&s, 0, 100);
    finished(&s, 0);
    finished(&s, 1);
    checkpointed(&s, 0, 100, 0, 2, true);
    checkpointed(&s, 1, 100, 1, 2, true);
    published(&s, 0, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    cr_assert(said(&s, "joinSkipped"), "%s", str_text(&s.log));
    cr_assert(!said(&s, "before it was worth"), "%s", str_text(&s.log));
    story_end(&s);
}
