/* Workers whose machines will go, and who train on: until their places are taken, or until the time of a
 * leave remains. */
#include "coordinator/core/rdzv_will.h"
#include "tests/unit/coordinator/core/will_story.h"

Test(leave_times, twice_the_longest_of_the_newest_eight_is_kept_and_what_a_moment_may_be_off)
{
    static const struct {
        int count;
        rm_time took[10], step, margin;
    } cases[] = {
        {.margin = 6 * RM_S},
        {.step = 5 * RM_S, .margin = 12 * RM_S},
        {1, {RM_S}, .margin = 4 * RM_S},
        {1, {RM_S}, .step = 3 * RM_S, .margin = 8 * RM_S},
        {3, {RM_S, 3 * RM_S, 2 * RM_S}, .margin = 8 * RM_S},
        {9, {9 * RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S}, .margin = 4 * RM_S},
        {8, {9 * RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S}, .margin = 20 * RM_S},
        {1, {3600 * RM_S}, .margin = 62 * RM_S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leave_times times = {.count = 0};
        for (int j = 0; j < cases[i].count; j++)
            leave_times_add(&times, cases[i].took[j], 0);
        cr_assert_eq(leave_times_margin(&times, cases[i].step), cases[i].margin, "case %zu", i);
    }
}

Test(leave_times, where_somebody_stays_a_quarter_more_is_kept_than_the_longest_or_than_a_step_and_a_rest)
{
    static const struct {
        int count;
        rm_time took[9], rest[9], step, kept;
    } cases[] = {
        {.kept = 4500 * RM_MS},
        {.step = 4 * RM_S, .kept = 9500 * RM_MS},
        {1, {4 * RM_S}, {RM_S}, .kept = 7 * RM_S},
        {1, {4 * RM_S}, {RM_S}, .step = 7 * RM_S, .kept = 12 * RM_S},
        {2, {4 * RM_S, 2 * RM_S}, {0, 2 * RM_S}, .step = 6 * RM_S, .kept = 12 * RM_S},
        {9, {9 * RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, RM_S, 2 * RM_S}, {8 * RM_S}, .kept = 4500 * RM_MS},
        {1, {3600 * RM_S}, {3600 * RM_S}, .step = 2 * RM_S, .kept = 42 * RM_S},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct leave_times times = {.count = 0};
        for (int j = 0; j < cases[i].count; j++)
            leave_times_add(&times, cases[i].took[j], cases[i].rest[j]);
        rm_time kept = leave_times_survived(&times, cases[i].step);
        cr_assert_eq(kept, cases[i].kept, "case %zu: %lld", i, (long long)kept);
    }
}

Test(will, who_goes_trains_on_until_only_the_time_of_a_leave_remains)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    passes(&s, 95 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    cr_assert_not(said(&s, "send 0,1,2 stop"), "%s", str_text(&s.log));
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    three_answer(&s, 0, 1, 2);
    cr_assert(said(&s, "send 1 release") && said(&s, "\"cause\":\"aws-spot\""), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.count, 2);
    story_end(&s);
}

/* A moment that moves by less than two seconds is told to nobody, so all of these are that leave's. Of the
 * 4.5 s that are kept where others stay nothing is waited in. */
Test(will, the_ring_stops_for_a_leave_when_its_time_begins_and_not_a_wait_for_other_leaves_later)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    passes(&s, 95 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    passes(&s, 500 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

/* The first half second is that in which others may come. */
Test(will, who_leaves_somebody_behind_keeps_less_than_the_last_who_hold_a_state)
{
    static const struct {
        int stay;
        bool program;
        rm_time kept;
    } cases[] = {
        {2, false, 4513 * RM_MS}, {1, false, 4513 * RM_MS}, {0, false, 6 * RM_S}, {2, true, 6 * RM_S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct story s;
        three_train(&s, pods());
        s.st->settings.program = cases[i].program;
        for (int w = cases[i].stay; w < 3; w++)
            goes_in(&s, w, 100 * RM_S);
        rm_time due = rdzv_will_at(s.st), until = s.now + 100 * RM_S;
        cr_assert_eq((until - due - 500 * RM_MS + RM_MS - 1) / RM_MS, cases[i].kept / RM_MS,
                     "case %zu: %.4f s", i, (double)(until - due) / RM_S);
        s.st->settings.program = false;
        story_end(&s);
    }
}

/* ---- steps of which nothing is known ---- */

static void first_step_lasts(struct story *s, rm_time time)
{
    for (rm_time end = s->now + time; s->now < end && rdzv_state(s->st) == RDZV_TRAINING;) {
        beats(s);
        after(s, 500 * RM_MS);
    }
}

/* Once it has taken 11 s another one would be made too late. */
Test(will, a_jobs_first_step_takes_as_long_as_it_has_taken_at_least)
{
    static const struct {
        rm_time lasts;
        enum rdzv_state then;
    } cases[] = {{10500 * RM_MS, RDZV_TRAINING}, {13 * RM_S, RDZV_QUIESCING}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct story s;
        story_begin(&s, pods());
        first_come(&s, 3);
        for (int w = 0; w < 3; w++)
            listed(&s, w, -1, -1);
        after(&s, pods().join_window);
        for (int w = 0; w < 3; w++)
            ready(&s, w, 0);
        goes_in(&s, 1, 30 * RM_S);
        first_step_lasts(&s, cases[i].lasts);
        cr_assert_eq(rdzv_state(s.st), cases[i].then, "case %zu: %s", i, rdzv_why(s.st));
        story_end(&s);
    }
}

/* ---- steps of the usual shares ---- */

Test(leave_times, the_usual_shares_take_so_much_longer_than_those_that_follow_paces)
{
    static const struct {
        struct leave_paces paces;
        rm_time longer;
    } cases[] = {
        {{8, 2, {RM_S, RM_S}}, 0},
        {{64, 2, {10 * RM_MS, 100 * RM_MS}}, 3200 * RM_MS - 581818181},
        {{64, 4, {10 * RM_MS, 10 * RM_MS, 20 * RM_MS, 10 * RM_MS}}, 320 * RM_MS - 182857142},
        {{64, 2, {0, 100 * RM_MS}}, 0}, /* of whom nothing is known might be as slow */
        {{4, 1, {RM_S}}, 0},
        {{0, 2, {RM_S, RM_S}}, 0},
        {{8, 0, {0}}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rm_time longer = leave_usual_longer(&cases[i].paces), off = longer - cases[i].longer;
        cr_assert(off >= -2 && off <= 2, "case %zu: %lld", i, (long long)longer);
    }
}

static void paced(struct story *s, int w, int64_t step, rm_time lane)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress = (struct msg_progress){.step = step,
                                       .numbers = msg_numbers_unknown(),
                                       .tokens = 10,
                                       .step_time = 10 * RM_MS,
                                       .pace = {.lanes = 2, .lane_us = lane / RM_US}};
    hear(s, w, &m);
}

/* At step 10. One of them is slow, and steps were short all the same, as others had its lanes. */
static void one_is_slow(struct story *s)
{
    three_train(s, pods());
    paced(s, 0, 10, 100 * RM_MS);
    paced(s, 1, 10, 100 * RM_MS);
    paced(s, 2, 10, 2 * RM_S);
}

Test(will, in_a_rings_first_steps_a_leave_has_the_time_of_steps_of_the_usual_shares)
{
    struct story s;
    one_is_slow(&s);
    goes_in(&s, 1, 13500 * RM_MS);
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    passes(&s, 1500 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "a step may take 6 s: %s", rdzv_why(s.st));
    story_end(&s);
}

Test(will, once_lanes_may_have_moved_the_steps_that_are_made_say_how_long_one_takes)
{
    struct story s;
    one_is_slow(&s);
    passes(&s, 5 * RM_S);
    goes_in(&s, 1, 15 * RM_S);
    passes(&s, 10 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(will, who_has_no_time_for_the_first_steps_of_another_ring_is_not_in_it)
{
    struct story s;
    one_is_slow(&s);
    passes(&s, 5 * RM_S);
    paced(&s, 1, s.st->told, 100 * RM_MS);
    goes_in(&s, 1, 15 * RM_S);
    passes(&s, 6 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    closed(&s, 0);
    fault_of(&s, 1, FAULT_RING, 0, s.st->told);
    answer(&s, 1);
    answer(&s, 2);
    after(&s, RM_S);
    cr_assert(s.form.form.count == 1 && is_member(&s, 2), "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, sums_of_floats_have_the_usual_shares_at_all_times)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.exact = false;
    three_train(&s, settings);
    paced(&s, 0, 10, 100 * RM_MS);
    paced(&s, 2, 10, 2 * RM_S);
    goes_in(&s, 1, 15 * RM_S);
    passes(&s, 5 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    story_end(&s);
}

static void takes(struct story *s, int w, int steps, rm_time step)
{
    for (int i = 0; i < steps; i++) {
        progress_in(s, w, s->st->told + 1, step);
        beats(s);
        after(s, RM_MS);
    }
}

/* Two steps of 20 s, and what a moment may be off: nobody stays. */
Test(will, where_most_have_gone_a_leave_has_the_time_of_the_steps_of_those_who_stay)
{
    struct story s;
    three_train(&s, pods());
    takes(&s, 0, 40, 10 * RM_MS);
    closed(&s, 1);
    closed(&s, 2);
    fault_of(&s, 0, FAULT_RING, 1, s.st->told);
    answer(&s, 0);
    after(&s, RM_S);
    cr_assert(s.form.form.count == 1 && is_member(&s, 0), "%s", str_text(&s.log));
    ready(&s, 0, s.st->told);
    takes(&s, 0, 3, 20 * RM_S);
    goes_in(&s, 0, 200 * RM_S);
    rm_time kept = s.now + 200 * RM_S - rdzv_will_at(s.st);
    cr_assert_eq(kept, 42500 * RM_MS, "%.3f s", (double)kept / RM_S);
    story_end(&s);
}

/* ---- places ---- */

Test(will, who_comes_takes_the_place_and_join_and_leave_are_one_change)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    passes(&s, 10 * RM_S);
    hello(&s, 3, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "at once, as all places are taken: %s", rdzv_why(s.st));
    three_answer(&s, 0, 1, 2);
    cr_assert_not(said(&s, "send 1 release"), "it is there as long as the ring is not");
    answer(&s, 3);
    cr_assert_eq(s.form.form.count, 3, "%s", str_text(&s.log));
    cr_assert_not(is_member(&s, 1));
    ready(&s, 0, s.st->told);
    ready(&s, 2, s.st->told);
    cr_assert_not(said(&s, "send 1 release"));
    ready(&s, 3, s.st->told);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 release") && said(&s, "workerLeft"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, where_that_ring_comes_to_nothing_who_goes_trains_on)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    hello(&s, 3, -1);
    three_answer(&s, 0, 1, 2);
    answer(&s, 3);
    closed(&s, 3);
    three_answer(&s, 0, 1, 2);
    after(&s, RM_S);
    cr_assert_eq(s.form.form.count, 3, "%s", str_text(&s.log));
    cr_assert(is_member(&s, 1));
    cr_assert_not(said(&s, "send 1 release"));
    story_end(&s);
}

Test(will, in_a_ring_that_takes_no_more_who_comes_has_the_place_of_who_goes)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.workers_max = 3;
    three_train(&s, settings);
    hello(&s, 3, -1);
    passes(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "there is no place: %s", rdzv_why(s.st));
    answer(&s, 3);
    goes_in(&s, 1, 100 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    three_answer(&s, 0, 1, 2);
    answer(&s, 3);
    cr_assert(s.form.form.count == 3 && is_member(&s, 3) && !is_member(&s, 1), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, who_goes_first_makes_room_first)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    goes_in(&s, 2, 60 * RM_S);
    hello(&s, 3, -1);
    after(&s, 200 * RM_MS);
    answer(&s, 3);
    three_answer(&s, 0, 1, 2);
    cr_assert_eq(s.form.form.count, 3, "%s", str_text(&s.log));
    cr_assert(is_member(&s, 1) && !is_member(&s, 2), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, who_goes_fills_the_place_of_one_that_is_lost)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    closed(&s, 2);
    fault_of(&s, 0, FAULT_RING, 2, 9);
    answer(&s, 0);
    answer(&s, 1);
    after(&s, RM_S);
    cr_assert_eq(s.form.form.count, 2, "%s", str_text(&s.log));
    cr_assert(is_member(&s, 1));
    story_end(&s);
}

Test(will, those_whose_times_are_a_second_apart_leave_together)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 30 * RM_S);
    goes_in(&s, 2, 30 * RM_S + 800 * RM_MS);
    passes(&s, 26 * RM_S);
    three_answer(&s, 0, 1, 2);
    cr_assert_eq(s.form.form.count, 1, "%s", str_text(&s.log));
    cr_assert(said(&s, "send 1 release") && said(&s, "send 2 release"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, what_is_withdrawn_before_that_costs_nothing)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 20 * RM_S);
    passes(&s, 5 * RM_S);
    word(&s, 1, NOTICED_GONE, -1);
    passes(&s, 20 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    cr_assert_not(said(&s, "stop"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, a_signal_is_a_leave_at_once)
{
    struct story s;
    three_train(&s, pods());
    goes_in(&s, 1, 100 * RM_S);
    passes(&s, 5 * RM_S);
    leaving(&s, 1);
    after(&s, RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(will, who_waits_beside_the_ring_on_such_a_machine_goes_at_once)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.workers_max = 3;
    three_train(&s, settings);
    hello(&s, 3, -1);
    answer(&s, 3);
    goes_in(&s, 3, 100 * RM_S);
    cr_assert(said(&s, "send 3 release"), "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    story_end(&s);
}

Test(will, a_leave_that_was_measured_is_what_the_next_one_is_given_and_a_quarter)
{
    struct story s;
    three_train(&s, pods());
    leaving(&s, 2);
    after(&s, RM_S);
    after(&s, RM_S);
    three_answer(&s, 0, 1, 2);
    ready(&s, 0, 9);
    ready(&s, 1, 9);
    cr_assert_eq(s.st->leave_times.count, 1);
    cr_assert_eq(s.st->leave_times.rest[0], 0, "a rest of %lld ns: nobody waited behind the last answer",
                 (long long)s.st->leave_times.rest[0]);
    rm_time margin = leave_times_survived(&s.st->leave_times, 0);
    cr_assert(margin > 3250 * RM_MS && margin < 4500 * RM_MS, "%.1f s", (double)margin / RM_S);
    closed(&s, 2);
    goes_in(&s, 1, 30 * RM_S);
    cr_assert_eq(rdzv_deadline(s.st) <= s.now + 30 * RM_S, true);
    passes(&s, 30 * RM_S - margin - RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING, "%s", rdzv_why(s.st));
    passes(&s, 2 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    story_end(&s);
}

Test(will, who_waited_to_hand_on_what_is_not_saved_says_nothing_about_leaves)
{
    struct story s;
    three_train(&s, pods());
    for (int w = 0; w < 3; w++)
        goes_in(&s, w, 40 * RM_S);
    passes(&s, 40 * RM_S);
    three_answer(&s, 0, 1, 2);
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "release"), "somebody may come yet: %s", str_text(&s.log));
    they_live_on(&s, 3, 6);
    cr_assert_eq(times_said(&s, "\"released\""), 3, "%s", str_text(&s.log));
    cr_assert_eq(s.st->leave_times.count, 0);
    story_end(&s);
}

/* Whose end none of them outlives. */
static rm_time stops_after(struct rdzv_settings settings, const struct rdzv_save_speed *speed)
{
    struct story s;
    three_train(&s, settings);
    s.st->save_speed = *speed;
    for (int w = 0; w < 3; w++)
        goes_in(&s, w, 100 * RM_S);
    rm_time from = s.now;
    passes(&s, 100 * RM_S);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    rm_time took = (s.now - from) / RM_S;
    story_end(&s);
    return took;
}

/* Of 100: a margin of 6 s is kept, and before it the half second in which other leaves may come. */
enum { WITHOUT_A_SAVE = 93 };

Test(will, the_last_who_hold_a_state_keep_the_time_to_save_it)
{
    struct rdzv_save_speed measured = {.bytes = 3000, .writer = 100, .publisher = 300}, none = {0};
    struct rdzv_settings settings = pods();
    cr_assert_eq(stops_after(settings, &measured), WITHOUT_A_SAVE, "the job does not want it saved");
    settings.leave_unsaved = false;
    cr_assert_eq(stops_after(settings, &measured), WITHOUT_A_SAVE - 25,
                 "10 s to write, 10 s to read it back, and a quarter");
    cr_assert_eq(stops_after(settings, &none), WITHOUT_A_SAVE - 50, "nobody knows");
}

Test(will, a_programs_processes_have_their_time_to_end_beside_that)
{
    struct rdzv_save_speed none = {0};
    struct rdzv_settings settings = pods();
    settings.stop_takes = 20 * RM_S;
    cr_assert_eq(stops_after(settings, &none), WITHOUT_A_SAVE - 20);
}

static const char ahead[] = " save g=1.1 step=0 parts=0";

Test(will, the_first_word_of_a_machine_begins_a_save_while_all_train_and_others_do_not_within_a_minute)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    goes_in(&s, 1, 300 * RM_S);
    cr_assert_eq(times_said(&s, ahead), 1, "%s", str_text(&s.log));
    goes_in(&s, 1, 299 * RM_S);
    goes_in(&s, 2, 300 * RM_S);
    passes(&s, 50 * RM_S);
    cr_assert_eq(times_said(&s, ahead), 1, "%s", str_text(&s.log));
    cr_assert_eq(rdzv_state(s.st), RDZV_TRAINING);
    passes(&s, 11 * RM_S);
    goes_in(&s, 0, 300 * RM_S);
    cr_assert_eq(times_said(&s, ahead), 2, "%s", str_text(&s.log));
    story_end(&s);
}

Test(will, the_first_word_of_another_type_or_zone_begins_one_too_and_of_one_that_is_not_known_it_may_be_any)
{
    static const struct {
        const char *first, *next;
        int saves;
    } cases[] = {{"p3/a", "p3/a", 1}, {"p3/a", "p3/b", 2}, {"p3/a", "g5/a", 2},
                 {"", "p3/a", 1},     {"p3/a", "", 1},     {"", "", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct story s;
        struct rdzv_settings settings = pods();
        settings.leave_unsaved = false;
        three_train(&s, settings);
        word_of(&s, 1, cases[i].first, NOTICED_WILL, 300 * RM_S);
        leaves_later(&s, 1, 300 * RM_S);
        passes(&s, 10 * RM_S);
        word_of(&s, 2, cases[i].next, NOTICED_WILL, 300 * RM_S);
        leaves_later(&s, 2, 300 * RM_S);
        cr_assert_eq(times_said(&s, ahead), cases[i].saves, "case %zu: %s", i, str_text(&s.log));
        passes(&s, 10 * RM_S);
        word_of(&s, 0, cases[i].first, NOTICED_WILL, 300 * RM_S);
        leaves_later(&s, 0, 300 * RM_S);
        cr_assert_eq(times_said(&s, ahead), cases[i].saves, "case %zu: %s", i, str_text(&s.log));
        story_end(&s);
    }
}

Test(will, a_save_that_is_young_enough_or_that_nobody_wants_is_not_begun_by_it)
{
    static const struct {
        bool unwanted, program;
        rm_time age;
        int saves;
    } cases[] = {{.age = 30 * RM_S, .saves = 1},
                 {.age = 3 * RM_S},
                 {.unwanted = true, .age = 30 * RM_S},
                 {.program = true, .age = 30 * RM_S}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct story s;
        struct rdzv_settings settings = pods();
        settings.leave_unsaved = cases[i].unwanted;
        three_train(&s, settings);
        s.st->settings.program = cases[i].program;
        s.st->save_speed = (struct rdzv_save_speed){.bytes = 3000, .writer = 250, .publisher = 500};
        s.st->saved_at = s.now - cases[i].age;
        goes_in(&s, 1, 300 * RM_S);
        cr_assert_eq(times_said(&s, ahead), cases[i].saves, "case %zu: %s", i, str_text(&s.log));
        s.st->settings.program = false;
        story_end(&s);
    }
}

/* The other one that held it was lost, and a save by this one alone would have taken longer than it had. */
Test(will, what_was_given_up_as_too_late_is_saved_after_all_where_its_holder_need_not_go)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.workers_min = settings.workers_target = 2;
    settings.steps = 100000;
    settings.max_restarts = 9;
    story_begin(&s, settings);
    first_come(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, -1, -1);
    for (int w = 0; w < 2; w++)
        ready(&s, w, 0);
    for (int w = 0; w < 2; w++)
        progress(&s, w, 10);
    s.st->saved = 5;
    s.st->saved_at = s.now;
    s.st->save_speed = (struct rdzv_save_speed){.bytes = 80000000000, .writer = 1e9, .publisher = 2e9};
    goes_in(&s, 1, 130 * RM_S);
    closed(&s, 0);
    fault_of(&s, 1, FAULT_RING, 0, -1);
    for (int second = 0; second < 20; second++) {
        they_live_on(&s, 2, 1);
        stopped(&s, 1, 10, 10);
    }
    cr_assert(said(&s, "checkpointSkipped"), "%s", str_text(&s.log));
    forget(&s);
    word(&s, 1, NOTICED_GONE, 0);
    they_live_on(&s, 2, 1);
    cr_assert(said(&s, "send 1 save"), "%s", str_text(&s.log));
    story_end(&s);
}
