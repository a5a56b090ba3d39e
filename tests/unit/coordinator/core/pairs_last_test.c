/* What is tried before a job ends because too few of its workers reach each other. */
#include "tests/unit/coordinator/core/pairs_story.h"

/* Of all three, who are needed, only 0 and 1 are ever seen to fail since 1 and 2 did. */
Test(pairs_last, at_the_end_a_pair_is_tried_once_also_where_another_one_fails_first)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 2; i++)
        break_off(&s, 1, 2, nothing);
    for (int i = 0; i < 64 && s.now < 64 * RM_S && s.ended < 0; i++) {
        after(&s, RM_S);
        if (rdzv_state(s.st) == RDZV_FORMING)
            break_off(&s, 0, 1, nothing);
    }
    if (s.ended < 0)
        after(&s, RM_S);
    cr_assert_eq(s.ended, 4, "%s", str_text(&s.log));
    cr_assert(said(&s, "workers 0 and 1, workers 1 and 2 can't reach each other"), "%s", str_text(&s.log));
    story_end(&s);
}

/* By then 1 and 2 reach each other; in the ring that shows it something else breaks it before the first step.
 */
static void end_by_another_reason(enum msg_fault_kind kind)
{
    struct story s;
    gather(&s, patient(3), 3);
    while (s.now < 60 * RM_S && s.ended < 0) {
        break_off(&s, 1, 2, nothing);
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING && s.ended < 0; second++)
            after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    fault_of(&s, 0, kind, -1, -1);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 0, -1);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(pairs_last, at_the_end_a_ring_that_another_reason_breaks_is_no_try_of_its_pairs)
{
    end_by_another_reason(FAULT_PROOF);
}

Test(pairs_last, at_the_end_a_ring_that_sees_that_its_states_differ_is_no_try_of_its_pairs)
{
    end_by_another_reason(FAULT_LINEAGE);
}

/* Of three pairs that are apart the last tries leave none out, whoever is late with its answer to a stop. */
Test(pairs_last, at_the_end_those_are_tried_too_who_have_not_answered_the_last_stop_yet)
{
    struct story s;
    gather(&s, patient(2), 3);
    for (int i = 0; i < 60 && s.now < 61 * RM_S && s.ended < 0; i++) {
        const struct msg_form *f = &s.form.form;
        break_off(&s, f->member[0].worker, f->member[f->count - 1].worker, nothing);
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING && s.ended < 0; second++)
            after(&s, RM_S);
    }
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "startTimeout is over, and each pair is tried once more: %s",
                 str_text(&s.log));
    int a = s.form.form.member[0].worker, b = s.form.form.member[1].worker, late = 3 - a - b;
    fault_of(&s, a, FAULT_RING, b, -1);
    stopped(&s, a, -1, -1);
    stopped(&s, b, -1, -1);
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    stopped(&s, late, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert(s.form.form.member[0].worker == late || s.form.form.member[1].worker == late, "%s",
              str_text(&s.log));
    story_end(&s);
}

/* Three pairs that are apart, of which any one would be enough. */
static void break_until_all_are_apart(struct story *s)
{
    for (int i = 0; i < 10; i++) {
        const struct msg_form *f = &s->form.form;
        break_off(s, f->member[0].worker, f->member[f->count - 1].worker, nothing);
        if (rdzv_state(s->st) != RDZV_FORMING)
            return;
    }
    cr_assert(false, "%s", str_text(&s->log));
}

Test(pairs_last, all_pairs_that_are_apart_are_tried_one_after_the_other_and_only_then_is_there_a_pause)
{
    struct story s;
    struct rdzv_settings settings = patient(2);
    settings.unsupervised = true;
    gather(&s, settings, 3);
    break_until_all_are_apart(&s);
    for (int round = 0; round < 3; round++) {
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING; second++)
            after(&s, RM_S);
        unsigned tried = 0;
        for (int i = 0; i < 3; i++) {
            const struct msg_form *f = &s.form.form;
            cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "try %d of round %d: %s", i, round,
                         str_text(&s.log));
            tried |= 1u << (f->member[0].worker + f->member[1].worker);
            break_off(&s, f->member[0].worker, f->member[1].worker, nothing);
        }
        cr_assert_eq(tried, 0xe, "each pair once: %s", str_text(&s.log));
        cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", str_text(&s.log));
    }
    story_end(&s);
}

/* All of three are needed, so that each try is of all three pairs. */
Test(pairs_last, a_ring_of_several_pairs_that_are_apart_tries_them_at_once)
{
    struct story s;
    struct rdzv_settings settings = patient(3);
    settings.unsupervised = true;
    gather(&s, settings, 3);
    for (int i = 0; i < 12; i++) {
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING; second++)
            after(&s, RM_S);
        cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
        break_off(&s, i % 3, (i + 1) % 3, nothing);
        cr_assert(i < 8 || rdzv_state(s.st) == RDZV_GATHERING, "try %d is followed by another at once: %s", i,
                  str_text(&s.log));
    }
    story_end(&s);
}

static void breaks_where_two_are_apart(struct story *s, const int (*pairs)[2], int count)
{
    const struct msg_form *f = &s->form.form;
    for (int i = 0; i < count; i++) {
        bool in[2] = {false, false};
        for (int r = 0; r < f->count; r++)
            for (int k = 0; k < 2; k++)
                in[k] = in[k] || f->member[r].worker == pairs[i][k];
        if (in[0] && in[1]) {
            fault_of(s, pairs[i][0], FAULT_RING, pairs[i][1], -1);
            for (int w = 0; w < 5; w++)
                stopped(s, w, -1, -1);
            return;
        }
    }
}

/* Four of five are needed, and 1 and 4, whom 2 and 3 can't reach one each, do reach each other by then. */
Test(pairs_last, at_the_end_a_ring_that_one_pair_breaks_is_no_try_of_the_other_pairs_in_it)
{
    static const int apart[][2] = {{2, 4}, {2, 3}, {1, 4}};
    struct story s;
    gather(&s, patient(4), 5);
    for (int i = 0; i < 400 && s.ended < 0; i++) {
        if (rdzv_state(s.st) != RDZV_FORMING) {
            after(&s, RM_S);
            continue;
        }
        int64_t ring = s.form.generation.n;
        breaks_where_two_are_apart(&s, apart, s.now < 55 * RM_S ? 3 : 2);
        if (s.form.generation.n == ring && rdzv_state(s.st) == RDZV_FORMING)
            break; /* those who reach each other are a ring */
    }
    cr_assert_eq(s.ended, -1, "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    story_end(&s);
}

/* All three are needed. 0 and 2 could not reach each other, and can again; by then 1 can't reach 2 and says
 * so first each time, and that ring's end is seen by 0 as well. */
Test(pairs_last, who_is_named_first_again_and_again_is_believed_although_two_others_were_apart)
{
    struct story s;
    gather(&s, patient(3), 3);
    for (int i = 0; i < 2; i++)
        break_off(&s, 0, 2, nothing);
    for (int i = 0; i < 4; i++) {
        for (int second = 0; second < 40 && rdzv_state(s.st) != RDZV_FORMING; second++)
            after(&s, RM_S);
        cr_assert(!said(&s, "workers 1 and 2"), "%s", str_text(&s.log));
        fault_of(&s, 1, FAULT_RING, 2, -1);
        fault_of(&s, 0, FAULT_RING, 2, -1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, -1, -1);
    }
    cr_assert(said(&s, "workers 1 and 2, workers 0 and 2 can't reach"), "%s", str_text(&s.log));
    story_end(&s);
}
