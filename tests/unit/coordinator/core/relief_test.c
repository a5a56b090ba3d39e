/* Workers whose machines may go, as whoever makes workers asks: each goes when another one has come in its
 * place. */
#include "coordinator/core/rdzv_relief.h"
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

/* As a Node says; left: of each of those, by its number, 0 for who stays. */
static void node_says(struct story *s, const rm_time left[RM_WORKERS_MAX], int stay)
{
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = stay}};
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        for (int will = 0; will < 2 && left[w]; will++) {
            e.relief.one[e.relief.count].worker = w;
            e.relief.one[e.relief.count].left = will ? left[w] : 0;
            e.relief.one[e.relief.count].by = will ? EASED_BY_WILL : EASED_BY_MAY;
            e.relief.one[e.relief.count++].attempt = s->attempt[w];
        }
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
    static const rm_time all[RM_WORKERS_MAX] = {5 * RM_S, RM_S, 1};
    for (int will = 0; will < 2; will++) {
        struct story s;
        three_train(&s, pods());
        if (will)
            node_says(&s, all, 0);
        else
            ease(&s, 7, 0);
        passes(&s, 30 * RM_S);
        cr_assert_eq(members(&s), 7, "%s", str_text(&s.log));
        comes(&s, 3);
        cr_assert_eq(s.st->world, 3, "%s", str_text(&s.log));
        story_end(&s);
    }
}

Test(relief, who_will_go_first_by_its_node_goes_first_and_before_one_that_may)
{
    static const rm_time left[RM_WORKERS_MAX] = {100 * RM_S, 60 * RM_S};
    struct story s;
    three_train(&s, pods());
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = 3}};
    for (int w = 0; w < 3; w++) {
        e.relief.one[w].worker = w;
        e.relief.one[w].by = left[w] ? EASED_BY_WILL : EASED_BY_MAY;
        e.relief.one[w].left = left[w];
    }
    e.relief.count = 3;
    play(&s, &e);
    comes(&s, 3);
    cr_assert_eq(members(&s), 1 | 4 | 8, "%x: %s", members(&s), str_text(&s.log));
    cr_assert(said(&s, "its machine will go, as its Node says"), "%s", str_text(&s.log));
    comes(&s, 4);
    cr_assert_eq(members(&s), 4 | 8 | 16, "%x: %s", members(&s), str_text(&s.log));
    comes(&s, 5);
    cr_assert_eq(members(&s), 8 | 16 | 32, "%x: %s", members(&s), str_text(&s.log));
    story_end(&s);
}

static int saves_ahead(const struct story *s)
{
    return times_said(s, " save g=1.1 step=0 parts=0");
}

Test(relief, the_first_word_of_a_node_that_goes_begins_a_save_and_the_same_word_again_does_not)
{
    static const rm_time one[RM_WORKERS_MAX] = {0, 300 * RM_S},
                         two[RM_WORKERS_MAX] = {0, 230 * RM_S, 300 * RM_S};
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    ease(&s, 2, 3);
    cr_assert_eq(saves_ahead(&s), 0, "it only may go: %s", str_text(&s.log));
    node_says(&s, one, 3);
    cr_assert_eq(saves_ahead(&s), 1, "%s", str_text(&s.log));
    for (int i = 0; i < 7; i++) {
        passes(&s, 10 * RM_S);
        node_says(&s, one, 3);
    }
    cr_assert_eq(saves_ahead(&s), 1, "%s", str_text(&s.log));
    node_says(&s, two, 3);
    cr_assert_eq(saves_ahead(&s), 2, "another machine, more than a minute later: %s", str_text(&s.log));
    for (int i = 0; i < 4; i++)
        node_says(&s, i % 2 ? two : one, 3);
    cr_assert_eq(saves_ahead(&s), 2, "one a minute at most: %s", str_text(&s.log));
    cr_assert_eq(members(&s), 7, "%s", str_text(&s.log));
    story_end(&s);
}

Test(relief, how_long_a_leave_takes_is_said_of_those_that_a_node_names)
{
    static const rm_time one[RM_WORKERS_MAX] = {0, 300 * RM_S},
                         all[RM_WORKERS_MAX] = {300 * RM_S, 300 * RM_S, 300 * RM_S}, none[RM_WORKERS_MAX];
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    const struct rdzv_worker *w = &s.st->worker[1];
    cr_assert_eq(rdzv_relief_takes(s.st, w), RM_NEVER, "nobody tells of it");
    ease(&s, 2, 3);
    cr_assert_eq(rdzv_relief_takes(s.st, w), RM_NEVER, "it only may go");
    node_says(&s, one, 3);
    rm_time leave = rdzv_relief_takes(s.st, w);
    cr_assert(leave > RM_S && leave < 10 * RM_S, "two others hold what it holds: %lld", (long long)leave);
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = s.st->relief};
    for (int i = 0; i < 3; i += 2)
        e.relief.one[e.relief.count++].worker = i;
    play(&s, &e);
    cr_assert_eq(rdzv_relief_takes(s.st, w), -1, "they may go as well");
    node_says(&s, all, 3);
    cr_assert_eq(rdzv_relief_takes(s.st, w), -1, "all go, and what a save takes is not known");
    s.st->save_speed = (struct rdzv_save_speed){.bytes = 3000, .writer = 100, .publisher = 300};
    rm_time more = rdzv_relief_takes(s.st, w) - leave;
    cr_assert(more > 26 * RM_S && more < 27 * RM_S,
              "10 s to write, 10 s to read it back, a quarter, and of the leave itself twice: %lld",
              (long long)more);
    node_says(&s, none, 3);
    cr_assert_eq(rdzv_relief_takes(s.st, w), RM_NEVER, "it is withdrawn");
    node_says(&s, one, 3);
    passes(&s, 61 * RM_S);
    cr_assert_eq(rdzv_relief_takes(s.st, w), RM_NEVER, "it was not said again for a minute");
    story_end(&s);
}

static void is_ended(struct story *s, int w, rm_time grace)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    m.leaving.deadline = grace;
    hear(s, w, &m);
}

/* As its pod is deleted when that much is left. */
Test(relief, who_is_told_to_end_on_a_machine_that_goes_has_no_more_time_than_that)
{
    static const struct {
        rm_time node, grace, is;
        bool measured;
    } cases[] = {
        {50 * RM_S, 115 * RM_S, 50 * RM_S, true},
        {50 * RM_S, 40 * RM_S, 40 * RM_S, true},
        {50 * RM_S, 115 * RM_S, 115 * RM_S, false},
        {0, 115 * RM_S, 115 * RM_S, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const rm_time left[RM_WORKERS_MAX] = {0, cases[i].node};
        struct story s;
        struct rdzv_settings settings = pods();
        settings.leave_unsaved = false;
        three_train(&s, settings);
        if (cases[i].measured)
            s.st->save_speed = (struct rdzv_save_speed){.bytes = 3000, .writer = 100, .publisher = 300};
        node_says(&s, left, 3);
        is_ended(&s, 1, cases[i].grace);
        cr_assert_eq(s.st->worker[1].leave_until - s.now, cases[i].is, "case %zu: %lld", i,
                     (long long)(s.st->worker[1].leave_until - s.now));
        story_end(&s);
    }
}

/* Its coordinator is new, and was told by the worker before it was by the operator. */
Test(relief, a_sigterm_that_was_told_before_the_question_is_bounded_by_it_as_well)
{
    static const rm_time left[RM_WORKERS_MAX] = {0, 50 * RM_S};
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    s.st->save_speed = (struct rdzv_save_speed){.bytes = 3000, .writer = 100, .publisher = 300};
    is_ended(&s, 1, 115 * RM_S);
    cr_assert_eq(s.st->worker[1].leave_until - s.now, 115 * RM_S);
    node_says(&s, left, 3);
    cr_assert_eq(s.st->worker[1].leave_until - s.now, 50 * RM_S, "%lld",
                 (long long)(s.st->worker[1].leave_until - s.now));
    story_end(&s);
}

/* Nor is what it holds given up by a lie. */
Test(relief, a_lie_leaves_who_is_told_to_end_the_time_to_save)
{
    static const rm_time left[RM_WORKERS_MAX] = {0, RM_S};
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    s.st->save_speed = (struct rdzv_save_speed){.bytes = 3000, .writer = 100, .publisher = 300};
    node_says(&s, left, 3);
    is_ended(&s, 1, 115 * RM_S);
    cr_assert_geq(s.st->worker[1].leave_until - s.now, 25 * RM_S, "%lld",
                  (long long)(s.st->worker[1].leave_until - s.now));
    story_end(&s);
}

/* A number that no worker has, and one beyond the last. */
Test(relief, of_whom_nobody_knows_nothing_comes)
{
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = 3, .count = 2}};
    struct story s;
    struct rdzv_settings settings = pods();
    settings.leave_unsaved = false;
    three_train(&s, settings);
    for (int i = 0; i < 2; i++) {
        e.relief.one[i].worker = i ? 999999999 : 7;
        e.relief.one[i].by = EASED_BY_WILL;
        e.relief.one[i].left = 99999 * RM_S;
    }
    play(&s, &e);
    passes(&s, 10 * RM_S);
    cr_assert_eq(saves_ahead(&s), 0, "%s", str_text(&s.log));
    cr_assert_eq(members(&s), 7, "%s", str_text(&s.log));
    story_end(&s);
}
