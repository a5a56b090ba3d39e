/* Workers whose machines may go, as whoever makes workers asks: each goes when another one has come in its
 * place. */
#include "will_story.h"

/* workers: a mask of those that are to go. */
static void ease(struct story *s, unsigned workers, int stay)
{
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = stay}};
    for (int w = 0; w < 32; w++) {
        if (!(workers & 1u << w))
            continue;
        e.relief.one[e.relief.count].worker = w;
        e.relief.one[e.relief.count++].attempt = s->attempt[w];
    }
    play(s, &e);
}

static void loses(struct story *s, int w)
{
    closed(s, w);
    fault_of(s, w == 0, FAULT_RING, w, s->st->told);
}

static unsigned members(const struct story *s)
{
    unsigned mask = 0;
    for (int r = 0; r < s->st->world; r++)
        mask |= 1u << s->st->member[r];
    return mask;
}

static void three_of_three(struct story *s)
{
    struct rdzv_settings settings = pods();
    settings.workers_min = settings.workers_max = 3;
    three_train(s, settings);
}

Test(relief, who_comes_takes_the_place_and_join_and_leave_are_one_change)
{
    struct story s;
    three_train(&s, pods());
    int64_t ring = s.st->ring.n;
    ease(&s, 2, 3);
    passes(&s, 10 * RM_S);
    cr_assert_eq(members(&s), 7, "nobody goes for nothing: %s", str_text(&s.log));
    hello(&s, 3, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "at once, as all places are taken: %s", rdzv_why(s.st));
    three_answer(&s, 0, 1, 2);
    answer(&s, 3);
    cr_assert_not(said(&s, "send 1 release"), "it is there as long as the ring is not");
    changes(&s);
    cr_assert_eq(members(&s), 1 | 4 | 8, "%s", str_text(&s.log));
    cr_assert_eq(s.st->ring.n, ring + 1);
    cr_assert(said(&s, "send 1 release") && said(&s, "workerLeft"), "%s", str_text(&s.log));
    story_end(&s);
}

/* One worker may go, another one is told that it will; in each order the first who comes takes the place of
 * the latter, and the former goes when the second has come. */
Test(relief, one_who_comes_is_counted_once_whatever_was_told_first)
{
    enum step { MAY, WILL, COMES, JOINS };
    static const enum step orders[][4] = {
        {MAY, WILL, COMES, JOINS}, {WILL, MAY, COMES, JOINS}, {MAY, COMES, WILL, JOINS},
        {WILL, COMES, MAY, JOINS}, {COMES, MAY, WILL, JOINS}, {COMES, WILL, MAY, JOINS},
    };
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct story s;
        three_of_three(&s);
        for (int k = 0; k < 4; k++) {
            if (orders[i][k] == MAY)
                ease(&s, 1, 3);
            else if (orders[i][k] == WILL)
                goes_in(&s, 1, 100 * RM_S);
            else if (orders[i][k] == COMES)
                hello(&s, 3, -1);
            else
                passes(&s, 100 * RM_MS);
        }
        changes(&s);
        cr_assert_eq(members(&s), 1 | 4 | 8, "order %zu: %x\n%s", i, members(&s), str_text(&s.log));
        comes(&s, 4);
        cr_assert_eq(members(&s), 4 | 8 | 16, "order %zu: %x\n%s", i, members(&s), str_text(&s.log));
        story_end(&s);
    }
}

/* Its place is taken by who came for another one, that is lost while the ring stops. */
Test(relief, who_is_lost_meanwhile_leaves_it_its_place)
{
    struct story s;
    three_of_three(&s);
    ease(&s, 1, 3);
    hello(&s, 3, -1);
    cr_assert_eq(rdzv_state(s.st), RDZV_QUIESCING, "%s", rdzv_why(s.st));
    loses(&s, 2);
    changes(&s);
    cr_assert(members(&s) & 1, "%x: %s", members(&s), str_text(&s.log));
    cr_assert_not(said(&s, "send 0 release"), "%s", str_text(&s.log));
    story_end(&s);
}

/* The job was scaled down since: nobody takes the place of who will go, who counts for nothing all the same.
 */
Test(relief, who_will_go_is_none_of_those_who_stay)
{
    struct story s;
    struct rdzv_settings settings = pods();
    settings.workers_target = 5;
    three_train(&s, settings);
    goes_in(&s, 1, 100 * RM_S);
    ease(&s, 1, 3);
    comes(&s, 3);
    cr_assert_eq(members(&s), 15, "%x: %s", members(&s), str_text(&s.log));
    story_end(&s);
}

Test(relief, who_comes_for_a_lost_one_relieves_nobody)
{
    struct story s;
    three_train(&s, pods());
    ease(&s, 1, 3);
    loses(&s, 2);
    changes(&s);
    cr_assert_eq(members(&s), 3, "%s", str_text(&s.log));
    comes(&s, 3);
    cr_assert_eq(members(&s), 1 | 2 | 8, "%s", str_text(&s.log));
    story_end(&s);
}

Test(relief, of_several_as_many_go_as_come_and_who_has_just_come_rather_than_who_was_there)
{
    struct story s;
    three_train(&s, pods());
    ease(&s, 1 | 2 | 8, 3);
    comes(&s, 3);
    cr_assert_eq(members(&s), 7, "that one may go as well: %s", str_text(&s.log));
    cr_assert(said(&s, "send 3 release"), "and nobody needs it: %s", str_text(&s.log));
    comes(&s, 4);
    cr_assert_eq(members(&s), 1 | 4 | 16, "%x: %s", members(&s), str_text(&s.log));
    story_end(&s);
}

Test(relief, where_places_are_free_who_may_go_takes_one)
{
    struct story s;
    three_train(&s, pods());
    loses(&s, 2);
    changes(&s);
    ease(&s, 8, 3);
    comes(&s, 3);
    cr_assert_eq(members(&s), 3 | 8, "%s", str_text(&s.log));
    story_end(&s);
}

Test(relief, what_is_asked_no_more_or_not_again_for_a_minute_is_forgotten)
{
    for (int again = 0; again < 2; again++) {
        struct story s;
        three_train(&s, pods());
        ease(&s, 2, 3);
        if (again)
            ease(&s, 0, 3);
        else
            passes(&s, 61 * RM_S);
        comes(&s, 3);
        cr_assert_eq(members(&s), 15, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(relief, another_process_under_that_number_is_not_meant)
{
    struct story s;
    three_train(&s, pods());
    s.attempt[1] = 1;
    ease(&s, 2, 3);
    s.attempt[1] = 0;
    comes(&s, 3);
    cr_assert_eq(members(&s), 15, "%s", str_text(&s.log));
    story_end(&s);
}

/* Whatever is asked: of one word comes no smaller ring. */
Test(relief, no_word_makes_a_ring_smaller)
{
    struct story s;
    three_train(&s, pods());
    ease(&s, 7, 0);
    passes(&s, 30 * RM_S);
    cr_assert_eq(members(&s), 7, "%s", str_text(&s.log));
    comes(&s, 3);
    cr_assert_eq(s.st->world, 3, "%s", str_text(&s.log));
    story_end(&s);
}
