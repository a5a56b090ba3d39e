/* Workers that hold different states, though they have made the same steps. */
#include "coordinator/core/rdzv_bridge.h"
#include "coordinator/core/rdzv_state.h"
#include "coordinator/core/rdzv_vouch.h"
#include "tests/unit/coordinator/core/story.h"

static void differs(struct story *s, int w)
{
    fault_says(s, w,
               &(struct msg_fault){.kind = FAULT_LINEAGE,
                                   .class = CLASS_MACHINE,
                                   .peer = -1,
                                   .step = 51,
                                   .detail = "its state of step 51 is not that of the others"});
}

static void others_say_so(struct story *s, int w)
{
    fault_says(s, w, &(struct msg_fault){.kind = FAULT_LINEAGE, .peer = -1, .detail = "different states"});
}

static void three_train(struct story *s, int max_restarts)
{
    struct rdzv_settings settings = story_settings(1);
    settings.brought = true;
    settings.max_restarts = max_restarts;
    story_begin(s, settings);
    train_with(s, 3);
}

static void form_again(struct story *s, int64_t step)
{
    stopped(s, 0, step, step);
    stopped(s, 1, -1, -1);
    stopped(s, 2, step, step);
    cr_assert(said(s, "receive"), "%s", str_text(&s->log));
    for (int w = 0; w < 3; w++)
        ready(s, w, step);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", rdzv_why(s->st));
}

static void names(struct story *s, int w, int other)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault = (struct msg_fault){.kind = FAULT_LINEAGE, .peer = other, .step = 51};
    text_copy(m.fault.detail, sizeof m.fault.detail, "its state of step 51 is not that of the others");
    hear(s, w, &m);
}

static int role_of(const struct story *s, int w)
{
    for (int i = 0; i < s->form.form.count; i++)
        if (s->form.form.member[i].worker == w)
            return s->form.form.member[i].role;
    return -1;
}

/* Also who is rank 0, from whom all would receive. */
Test(differ, who_is_told_to_stop_before_it_sees_that_it_differs_is_named_and_gives_its_state_to_nobody)
{
    for (int other = 0; other < 3; other++) {
        struct story s;
        three_train(&s, 0);
        for (int w = 0; w < 3; w++)
            if (w != other)
                names(&s, w, other);
        cr_assert_eq(times_said(&s, "tell {\"event\":\"workerDiffers\""), 1, "%s", str_text(&s.log));
        cr_assert_not(said(&s, "workerFailed"), "nobody's word counts against another: %s", str_text(&s.log));
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 51, 51);
        for (int w = 0; w < 3; w++) {
            cr_assert_eq(role_of(&s, w), w == other ? ROLE_RECEIVE : ROLE_KEEP, "worker %d of %d", w, other);
            ready(&s, w, 51);
        }
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
        cr_assert_not(s.st->exact, "gradients of other weights were in the sums");
        fault_says(&s, other, &(struct msg_fault){.kind = FAULT_RING, .peer = -1, .detail = "a ring breaks"});
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 51, 51);
        they_live_on(&s, 3, 31);
        cr_assert_eq(role_of(&s, other), ROLE_KEEP, "what it holds now came from them: %s", str_text(&s.log));
        story_end(&s);
    }
}

Test(differ, who_is_named_and_then_says_so_itself_is_told_of_once_and_counted)
{
    struct story s;
    three_train(&s, 0);
    names(&s, 0, 1);
    differs(&s, 1);
    names(&s, 2, 1);
    differs(&s, 1);
    cr_assert_eq(times_said(&s, "tell {\"event\":\"workerDiffers\""), 1, "%s", str_text(&s.log));
    cr_assert_eq(times_said(&s, "tell {\"event\":\"workerFailed\""), 1, "%s", str_text(&s.log));
    cr_assert(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Whoever speaks first. */
Test(differ, the_one_whose_state_is_not_the_others_is_named_once_and_receives)
{
    for (int first = 0; first < 3; first++) {
        struct story s;
        three_train(&s, 3);
        for (int i = 0; i < 3; i++) {
            int w = (first + i) % 3;
            if (w == 1)
                differs(&s, w);
            else
                others_say_so(&s, w);
        }
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
        cr_assert(said(&s, "workerDiffers"), "%s", str_text(&s.log));
        cr_assert(said(&s, "its state of step 51"), "%s", str_text(&s.log));
        form_again(&s, 51);
        cr_assert_not(said(&s, "workerLost"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(differ, workers_that_compute_differently_with_nobody_to_decide_end_the_job)
{
    struct story s;
    three_train(&s, 3);
    fault_says(&s, 1,
               &(struct msg_fault){.kind = FAULT_LINEAGE,
                                   .class = CLASS_JOB,
                                   .peer = -1,
                                   .step = 51,
                                   .detail = "workers 0, 1 compute lane 3 of step 51 differently"});
    cr_assert_not(said(&s, "workerDiffers"), "nobody is blamed: %s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 50, 50);
    cr_assert_eq(rdzv_state(s.st), RDZV_FAILED, "%s", rdzv_why(s.st));
    cr_assert_eq(s.ended, EXIT_TRAINING);
    cr_assert_not(said(&s, "snapshot"), "one of both made it: %s", str_text(&s.log));
    cr_assert(said(&s, "workers 0, 1 compute lane 3 of step 51 differently"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(differ, who_differs_again_and_again_is_put_into_quarantine)
{
    struct story s;
    three_train(&s, 1);
    differs(&s, 1);
    form_again(&s, 51);
    cr_assert_not(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    differs(&s, 1);
    cr_assert(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(differ, who_differs_where_no_majority_is_right_is_named_and_not_counted)
{
    struct story s;
    three_train(&s, 0);
    fault_says(&s, 1,
               &(struct msg_fault){.kind = FAULT_LINEAGE,
                                   .class = CLASS_PAIR,
                                   .peer = -1,
                                   .detail = "no majority says whose is right"});
    cr_assert(said(&s, "workerDiffers"), "%s", str_text(&s.log));
    form_again(&s, 51);
    cr_assert_not(said(&s, "workerFailed"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(differ, who_says_so_twice_is_counted_once)
{
    struct story s;
    three_train(&s, 1);
    differs(&s, 1);
    differs(&s, 1);
    cr_assert_not(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    form_again(&s, 51);
    story_end(&s);
}

static void unproven(struct story *s, int w)
{
    fault_says(s, w,
               &(struct msg_fault){
                   .kind = FAULT_PROOF, .step = 51, .detail = "the words of step 52 are not the sum"});
}

/* It is told of whoever saw it, once a ring, and nobody is blamed: not who saw it either. */
Test(differ, a_sum_that_is_none_is_told_of_who_saw_it_and_the_step_is_made_again)
{
    struct story s;
    three_train(&s, 0);
    for (int64_t n = 1; n < 4; n++) {
        unproven(&s, 1);
        unproven(&s, 2);
        unproven(&s, 1);
        cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "ring %d", (int)n);
        cr_assert_eq(times_said(&s, "proofFailed"), 2 * n, "%s", str_text(&s.log));
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 51, 51);
        for (int w = 0; w < 3; w++)
            ready(&s, w, 51);
        cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
        for (int w = 0; w < 3; w++)
            progress(&s, w, 51 + n);
    }
    cr_assert(said(&s, "the words of step 52 are not the sum"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerFailed") || said(&s, "workerLost"), "%s", str_text(&s.log));
    story_end(&s);
}

/* What was ordered is no failure; what was not is one, and the second in the window one too many. */
Test(differ, who_spoiled_what_it_added_counts_a_failure_unless_a_drill_did)
{
    const struct msg_fault spoiled = {.kind = FAULT_PROOF,
                                      .class = CLASS_MACHINE,
                                      .step = 51,
                                      .detail = "its own sums of step 52 are not what its lanes added up to"};
    struct story s;
    three_train(&s, 1);
    for (int times = 0; times < 3; times++) {
        unproven(&s, 2);
        if (times == 0)
            act_on(&s, CAUSE_RING_ERROR, 1);
        fault_says(&s, 1, &spoiled);
        cr_assert(said(&s, "its own sums of step 52"), "%s", str_text(&s.log));
        cr_assert_eq(said(&s, "workerQuarantined"), times == 2, "%s", str_text(&s.log));
        for (int w = 0; w < 3 && times < 2; w++)
            stopped(&s, w, 51, 51);
        for (int w = 0; w < 3 && times < 2; w++)
            ready(&s, w, 51);
        for (int w = 0; w < 3 && times < 2; w++)
            progress(&s, w, 52 + times);
    }
    cr_assert(s.st->exact);
    story_end(&s);
}

/* It is seen before anything of that state is used, so the run stays exact. */
Test(differ, whose_state_has_other_bits_than_most_receives_and_counts_a_failure)
{
    struct story s;
    three_train(&s, 1);
    for (int times = 0; times < 2; times++) {
        others_say_so(&s, 0);
        fault_says(&s, 1,
                   &(struct msg_fault){.kind = FAULT_PROOF,
                                       .class = CLASS_MACHINE,
                                       .step = 51,
                                       .detail = "its state of step 51 has other bits"});
        cr_assert(said(&s, "proofFailed"), "%s", str_text(&s.log));
        cr_assert_eq(said(&s, "workerQuarantined"), times == 1, "%s", str_text(&s.log));
        if (times == 0)
            form_again(&s, 51);
    }
    cr_assert(s.st->exact);
    story_end(&s);
}

/* One was told to stop before it saw so, and holds its state still: it must not be the one all receive. */
Test(differ, where_no_majority_says_whose_bits_are_right_nobodys_state_counts)
{
    struct story s;
    three_train(&s, 0);
    fault_says(&s, 0,
               &(struct msg_fault){
                   .kind = FAULT_PROOF, .class = CLASS_PAIR, .step = 51, .detail = "no majority says whose"});
    stopped(&s, 0, -1, -1);
    stopped(&s, 1, 51, 51);
    stopped(&s, 2, -1, -1);
    cr_assert_not(said(&s, "receive"), "%s", str_text(&s.log));
    cr_assert_lt(s.st->resume.held ? s.st->resume.step : 0, 51, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* What it had made in a ring whose states count no more was counted when that ring was lost. */
Test(differ, steps_that_came_to_nothing_are_not_counted_anew_when_their_holder_is_stopped_once_more)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    struct message late;
    message_init(&late, MSG_STOPPED);
    late.generation = s.st->ring;
    late.stopped.state = state_of(51);
    late.stopped.update_step = -1;
    late.stopped.trainer_pid = s.trainer[1];
    fault_says(&s, 0,
               &(struct msg_fault){
                   .kind = FAULT_PROOF, .class = CLASS_PAIR, .step = 51, .detail = "no majority says whose"});
    stopped(&s, 0, -1, -1);
    stopped(&s, 1, 51, 51);
    stopped(&s, 2, -1, -1);
    for (int w = 0; w < 3; w++)
        listed(&s, w, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    progress(&s, 0, 1);
    forget(&s);
    fault_of(&s, 0, FAULT_RING, 2, -1);
    stopped(&s, 0, 1, 1);
    late.stopped.round = s.round;
    hear(&s, 1, &late);
    stopped(&s, 2, 1, 1);
    for (int w = 0; w < 3; w++)
        ready(&s, w, 1);
    progress(&s, 0, 2);
    cr_assert(said(&s, "\"stepsRedone\":0"), "%s", str_text(&s.log));
    story_end(&s);
}

static void nobody_vouches(struct story *s, int w, int64_t step)
{
    fault_says(
        s, w,
        &(struct msg_fault){
            .kind = FAULT_PROOF, .class = CLASS_PAIR, .step = step, .detail = "no majority says whose"});
}

/* A trainer that was killed before it dropped its state leaves it to the next one, who knows of nothing. */
Test(differ, who_comes_back_later_with_a_state_that_nobody_vouches_for_holds_nothing)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    nobody_vouches(&s, 0, 51);
    closed(&s, 1);
    stopped(&s, 0, -1, -1);
    stopped(&s, 2, -1, -1);
    s.trainer[1]++;
    hello(&s, 1, 51);
    cr_assert_not(s.st->worker[1].state.held);
    cr_assert_not(rdzv_best_state(s.st).held, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(differ, pieces_of_states_that_nobody_vouches_for_are_no_checkpoint)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    checkpointed(&s, 0, 51, 0, 3, false);
    nobody_vouches(&s, 0, 51);
    checkpointed(&s, 1, 51, 1, 3, false);
    checkpointed(&s, 2, 51, 2, 3, false);
    cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

/* It had not heard of it when it was told to stop, was to load a checkpoint in the ring behind that one, and
 * could not: what it holds is what it held. */
Test(differ, a_later_ring_that_did_not_begin_makes_no_state_anew)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    nobody_vouches(&s, 0, 51);
    stopped(&s, 0, -1, -1);
    stopped(&s, 1, 51, 51);
    stopped(&s, 2, -1, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    ready(&s, 0, 0);
    fault_of(&s, 1, FAULT_RING, 2, -1);
    forget(&s);
    stopped(&s, 0, 0, -1);
    stopped(&s, 1, 51, 51);
    stopped(&s, 2, -1, -1);
    cr_assert_not(s.st->worker[1].state.held);
    cr_assert_not(said(&s, "resume=51"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Its progress may not have been heard yet. */
Test(differ, who_was_ready_in_a_later_ring_holds_what_that_one_made)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    nobody_vouches(&s, 0, 51);
    all_stop(&s, 3);
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    fault_of(&s, 1, FAULT_RING, 2, -1);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 51, 51);
    cr_assert(s.st->worker[1].state.held);
    cr_assert(said(&s, "resume=51"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The same steps have the same names, and other bits. */
Test(differ, a_step_that_a_later_ring_has_made_anew_counts_again)
{
    struct story s;
    three_train(&s, 0);
    progress(&s, 0, 51);
    nobody_vouches(&s, 0, 51);
    all_stop(&s, 3);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", rdzv_why(s.st));
    for (int w = 0; w < 3; w++)
        ready(&s, w, 0);
    progress(&s, 0, 50);
    checkpointed(&s, 0, 51, 0, 3, false);
    cr_assert(rdzv_is_unvouched(s.st, 51));
    progress(&s, 0, 51);
    cr_assert_not(rdzv_is_unvouched(s.st, 51));
    for (int w = 0; w < 3; w++)
        checkpointed(&s, w, 51, w, 3, false);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Some machine's adder is broken, and nobody can see whose: with pauses, as of any ring in vain, and not for
 * ever.
 */
Test(differ, sums_that_are_none_without_a_step_between_end_the_job_by_their_sentence)
{
    struct story s;
    three_train(&s, 0);
    for (int ring = 0; ring < 40 && rdzv_state(s.st) != RDZV_SAVING; ring++) {
        unproven(&s, 1);
        for (int w = 0; w < 3; w++)
            stopped(&s, w, 51, 51);
        cr_assert(ring < 2 || rdzv_state(s.st) != RDZV_FORMING, "ring %d is formed at once", ring);
        they_live_on(&s, 3, 31);
        for (int w = 0; w < 3 && rdzv_state(s.st) == RDZV_FORMING; w++)
            ready(&s, w, 51);
    }
    for (int w = 0; w < 3; w++)
        checkpointed(&s, w, 51, w, 3, false);
    published(&s, 0, 51, false);
    cr_assert_eq(rdzv_state(s.st), RDZV_FAILED, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "30 rings in a row came to nothing"), "%s", str_text(&s.log));
    cr_assert(said(&s, "worker 1: the words of step 52 are not the sum"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "workerLost"), "%s", str_text(&s.log));
    story_end(&s);
}

/* As the generations of another term begin at 1 again. */
Test(differ, who_says_so_in_a_ring_of_the_same_number_of_another_term_is_heard)
{
    struct story s;
    three_train(&s, 0);
    s.st->worker[1].differed = (struct msg_generation){7, 1};
    unproven(&s, 1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING);
    story_end(&s);
}

static void finish_with(struct story *s, int w, uint8_t digest, bool exact)
{
    struct message m;
    message_init(&m, MSG_FINISHED);
    m.finished.step = 100;
    m.finished.digest[0] = digest;
    m.finished.exact = exact;
    hear(s, w, &m);
}

/* That they were mixed once is no reason to take any weights for the result. */
Test(differ, weights_that_differ_at_the_end_are_refused_also_after_some_differed)
{
    struct story s;
    three_train(&s, 3);
    differs(&s, 1);
    form_again(&s, 51);
    for (int i = 52; i <= 100; i++)
        for (int w = 0; w < 3; w++)
            progress(&s, w, i);
    finish_with(&s, 0, 7, false);
    finish_with(&s, 1, 9, false);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 100, 100);
    cr_assert_eq(rdzv_state(s.st), RDZV_FAILED, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "workers end with different weights"), "%s", str_text(&s.log));
    story_end(&s);
}

static void piece_of_parts(struct story *s, int w, int64_t step, uint64_t image, int parts)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = step;
    m.checkpointed.part = w;
    m.checkpointed.parts = parts;
    m.checkpointed.exact = true;
    m.checkpointed.image = image;
    hear(s, w, &m);
}

static void piece_of(struct story *s, int w, int64_t step, uint64_t image)
{
    piece_of_parts(s, w, step, image, 3);
}

/* A trainer that has not summed up its state yet does not keep others from saving theirs. */
Test(differ, a_piece_of_a_state_whose_sum_is_not_known_goes_with_any)
{
    struct story s;
    three_train(&s, 3);
    for (int w = 0; w < 3; w++)
        piece_of(&s, w, 25, w == 1 ? 0 : 4);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        piece_of(&s, w, 50, (uint64_t)w);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The step behind it has compared the states that its pieces are of. A ring that stops makes no such step. */
Test(differ, a_checkpoint_stands_once_the_next_step_has_shown_that_its_states_are_one)
{
    for (int stops = 0; stops < 2; stops++) {
        struct story s;
        story_begin(&s, story_settings(1));
        train_with(&s, 3);
        progress(&s, 0, 25);
        for (int w = 0; w < 3; w++)
            piece_of(&s, w, 25, 4);
        cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
        if (stops)
            fault_of(&s, 0, FAULT_RING, 1, 25);
        else
            progress(&s, 0, 26);
        cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
        story_end(&s);
    }
}

/* Too few are left to train, and what they hold is not one state: what is older counts. */
Test(differ, where_the_states_that_all_stand_still_to_save_differ_none_of_them_counts)
{
    struct story s;
    story_begin(&s, story_settings(3));
    train_with(&s, 3);
    progress(&s, 0, 51);
    closed(&s, 2);
    they_live_on(&s, 3, 6);
    stopped(&s, 0, 51, 51);
    stopped(&s, 1, 51, 51);
    cr_assert_eq(rdzv_state(s.st), RDZV_SAVING, "%s", rdzv_why(s.st));
    piece_of_parts(&s, 0, 51, 4, 2);
    piece_of_parts(&s, 1, 51, 5, 2);
    cr_assert_eq(rdzv_state(s.st), RDZV_GATHERING, "%s", rdzv_why(s.st));
    cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
    stopped(&s, 0, 51, 51);
    stopped(&s, 1, 51, 51);
    cr_assert_not(rdzv_best_state(s.st).held, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(differ, pieces_of_two_states_are_no_checkpoint)
{
    struct story s;
    three_train(&s, 3);
    for (int w = 0; w < 3; w++)
        piece_of(&s, w, 25, w == 1 ? 5 : 4);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "publish"), "%s", str_text(&s.log));
    for (int w = 0; w < 3; w++)
        piece_of(&s, w, 50, 6);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

/* However many pieces of both come after the first two; a later ring's are another matter. */
Test(differ, a_step_that_is_no_checkpoint_is_told_once)
{
    struct story s;
    three_train(&s, 3);
    for (int part = 0; part < 6; part++)
        piece_of_parts(&s, part % 3, 25, part % 2 ? 5 : 4, 6);
    cr_assert_eq(times_said(&s, "checkpointSkipped"), 1, "%s", str_text(&s.log));
    differs(&s, 1);
    form_again(&s, 24);
    for (int w = 0; w < 3; w++)
        piece_of(&s, w, 25, 6);
    cr_assert(said(&s, "publish"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Pieces from both would make weights that nobody had, and the next run would take them. */
Test(differ, of_weights_that_differ_at_the_end_nothing_is_saved)
{
    struct story s;
    three_train(&s, 3);
    for (int i = 1; i <= 100; i++)
        for (int w = 0; w < 3; w++)
            progress(&s, w, i);
    finished(&s, 0);
    struct message m;
    message_init(&m, MSG_FINISHED);
    m.finished.step = 100;
    m.finished.digest[0] = 9;
    m.finished.exact = true;
    hear(&s, 1, &m);
    for (int w = 0; w < 3; w++)
        stopped(&s, w, 100, 100);
    cr_assert_eq(rdzv_state(s.st), RDZV_FAILED, "%s", rdzv_why(s.st));
    cr_assert(said(&s, "workers end with different weights"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "snapshot"), "%s", str_text(&s.log));
    story_end(&s);
}
