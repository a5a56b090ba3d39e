/* Checkpoints that somebody finds damaged: when that is proven, and when one is refused. */
#include "tests/unit/coordinator/core/trouble_story.h"

Test(damage, damage_that_one_worker_sees_is_looked_at_by_another_before_anything_is_refused)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    cr_assert_eq(s.form.form.member[0].worker, 0);
    load_fails(&s, 0, 231, CLASS_OBJECT);
    after(&s, 2 * RM_S); /* the other one finds nothing in its own share meanwhile */
    all_stop(&s, 2);
    cr_assert_not(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 231);
    cr_assert_eq(s.form.form.member[0].worker, 1, "the share is another one's now");
    load_fails(&s, 1, 231, CLASS_OBJECT);
    cr_assert(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    all_stop(&s, 2);
    cr_assert_eq(s.form.form.resume.step, 200);
    story_end(&s);
}

/* Two machines with bad memory each, say. */
Test(damage, two_of_three_workers_that_see_different_damage_prove_none)
{
    struct story s;
    begin(&s, patient(3), 3, 231, 200);
    sees_damage(&s, 0, "part 1: found 0a, expected 1b");
    after(&s, 2 * RM_S);
    all_stop(&s, 3);
    sees_damage(&s, 1, "part 1: found 3c, expected 1b");
    after(&s, 2 * RM_S);
    all_stop(&s, 3);
    cr_assert_not(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    for (int i = 0; i < 40 && rdzv_state(s.st) != RDZV_FORMING; i++)
        list_again(&s, 3);
    cr_assert_eq(s.form.form.resume.step, 231);
    sees_damage(&s, 1, "part 1: found 0a, expected 1b");
    cr_assert(said(&s, "checkpointRefused"), "that is what 0 saw: %s", str_text(&s.log));
    story_end(&s);
}

Test(damage, where_each_share_is_damaged_and_each_worker_sees_its_own_an_older_checkpoint_is_taken)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    sees_damage(&s, 0, "part 0 is 12 bytes long");
    sees_damage(&s, 1, "part 1 is 12 bytes long");
    cr_assert(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    all_stop(&s, 2);
    cr_assert_eq(s.form.form.resume.step, 200);
    story_end(&s);
}

/* One is always the quicker one: were the ring stopped at its word, nobody else would ever tell. */
Test(damage, whoever_finds_damage_first_leaves_the_others_the_time_to_find_theirs)
{
    struct story s;
    begin(&s, patient(3), 3, 231, 200);
    after(&s, RM_S);
    sees_damage(&s, 0, "part 0 is 12 bytes long");
    after(&s, 1900 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    sees_damage(&s, 1, "part 1 is 12 bytes long");
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    sees_damage(&s, 2, "part 2 is 12 bytes long");
    cr_assert(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    all_stop(&s, 3);
    cr_assert_eq(s.form.form.resume.step, 200);
    story_end(&s);
}

/* A member's machine may stand still, and the store with it. */
Test(damage, nobody_is_waited_for_longer_than_the_first_one_took_and_a_second)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    after(&s, RM_S);
    sees_damage(&s, 0, "part 0 is 12 bytes long");
    after(&s, 1900 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    after(&s, 200 * RM_MS);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", str_text(&s.log));
    story_end(&s);
}

Test(damage, what_was_seen_of_a_checkpoint_says_nothing_of_the_one_that_took_its_place)
{
    struct story s;
    begin(&s, patient(2), 2, 231, 200);
    sees_damage(&s, 0, "part 0 is 12 bytes long");
    sees_damage(&s, 1, "part 0 is 12 bytes long");
    cr_assert_eq(times_said(&s, "checkpointRefused"), 1, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++) /* which they had been writing when all died */
        checkpointed(&s, w, 231, w, 2, false);
    published(&s, 0, 231, false);
    all_stop(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 231, 200);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 231, "%s", str_text(&s.log));
    sees_damage(&s, 1, "part 0 is 12 bytes long");
    cr_assert_eq(times_said(&s, "checkpointRefused"), 1, "%s", str_text(&s.log));
    story_end(&s);
}

Test(damage, a_worker_that_alone_sees_damage_again_and_again_is_left_out_and_not_the_checkpoint)
{
    struct story s;
    begin(&s, patient(1), 2, 231, 200);
    for (int i = 0; i < 60 && !said(&s, "workerQuarantined"); i++) {
        bool in = rdzv_state(s.st) == RDZV_FORMING && s.form.form.count == 2;
        if (in) {
            load_fails(&s, 0, 231, CLASS_OBJECT);
            they_live_on(&s, 2, 4); /* the other one finds nothing meanwhile */
            all_stop(&s, 2);
        } else if (rdzv_state(s.st) == RDZV_FORMING) {
            fault_of(&s, 1, FAULT_RING, -1, -1); /* nothing comes of it while 0 is held back */
            all_stop(&s, 2);
        }
        list_again(&s, 2);
    }
    cr_assert(said(&s, "workerQuarantined"), "%s", str_text(&s.log));
    cr_assert_not(said(&s, "checkpointRefused"), "%s", str_text(&s.log));
    cr_assert_eq(s.form.form.resume.step, 231);
    story_end(&s);
}
