/* When words leave the ring for another transport and come back: ranks that say what they are told to, and
 * hear each other's sums. */
#include "trainer/core/second.h"

#include <criterion/criterion.h>
#include <string.h>

#include "common/base/str.h"

enum { WORLD_MOST = 4, OLD = 22605, NEW = 23203 };

struct rank {
    struct second s;
    struct second_own own;
    enum second_order order;
    bool counted; /* the failure of a sum, in a header of this ring */
};

struct ring {
    int world;
    rm_time now;
    struct rank rank[WORLD_MOST];
};

static const struct second_member first_members[WORLD_MOST] = {{7, 100}, {3, 101}, {5, 102}, {9, 103}};

static void ring_begin_of(struct ring *ring, const struct second_member *members, int world)
{
    ring->world = world;
    for (int r = 0; r < world; r++) {
        second_ring(&ring->rank[r].s, members, r, world, true, ring->now);
        ring->rank[r].counted = false;
    }
}

static void ring_begin(struct ring *ring, int world)
{
    ring_begin_of(ring, first_members, world);
}

static struct ring *ring_new(int world)
{
    static struct ring ring;
    memset(&ring, 0, sizeof ring);
    ring_begin(&ring, world);
    for (int r = 0; r < world; r++)
        ring.rank[r].own.version = NEW;
    return &ring;
}

static void name(struct ring *ring, uint32_t first)
{
    struct second_own *own = &ring->rank[0].own;
    own->named = true;
    own->open = ring->rank[0].s.open;
    for (uint32_t i = 0; i < SECOND_ID_WORDS; i++)
        own->id[i] = first + i;
}

static void add_offer(struct ring *ring, int r, uint32_t *sum)
{
    uint32_t words[SECOND_WORDS];
    second_say(&ring->rank[r].s, &ring->rank[r].own, ring->now, words);
    for (int i = 0; i < SECOND_WORDS; i++)
        sum[i] += words[i];
}

/* One header: what all say, and what follows. */
static void header(struct ring *ring)
{
    uint32_t sum[SECOND_WORDS] = {0};
    bool offers = second_offers(&ring->rank[0].s), ready = true;
    for (int r = 0; r < ring->world; r++) {
        cr_assert_eq(second_offers(&ring->rank[r].s), offers, "rank %d sums something else", r);
        ready = ready && second_is_ready(&ring->rank[r].s, &ring->rank[r].own);
        if (offers)
            add_offer(ring, r, sum);
    }
    for (int r = 0; r < ring->world; r++) {
        struct rank *it = &ring->rank[r];
        it->counted |= offers && second_judge(&it->s, sum, ring->now);
        it->order = second_hear(&it->s, &it->own, offers ? sum : NULL, ready, ring->now);
        if (it->order == SECOND_DROP || it->order == SECOND_RENAME)
            it->own.named = it->own.ready = it->own.failed = it->own.key_refused = false;
        if (it->order == SECOND_CONNECT)
            cr_assert_eq(sum[0], ring->rank[0].own.id[0]);
    }
    ring->now += RM_S;
}

static void expect(struct ring *ring, enum second_order order, enum second_phase phase)
{
    for (int r = 0; r < ring->world; r++) {
        cr_assert_eq(ring->rank[r].order, order, "rank %d: order %d", r, (int)ring->rank[r].order);
        cr_assert_eq(ring->rank[r].s.phase, phase, "rank %d: phase %d", r, (int)ring->rank[r].s.phase);
    }
}

static void all_ready(struct ring *ring, bool ready)
{
    for (int r = 0; r < ring->world; r++)
        ring->rank[r].own.ready = ready;
}

static void go_to_use(struct ring *ring)
{
    name(ring, 100);
    header(ring);
    expect(ring, SECOND_CONNECT, SECOND_MAKES);
    ring->rank[0].own.named = false;
    all_ready(ring, true);
    header(ring);
    expect(ring, SECOND_SWITCH, SECOND_USES);
}

Test(second, words_move_once_an_id_went_round_and_all_are_ready)
{
    for (int world = 2; world <= WORLD_MOST; world++) {
        struct ring *ring = ring_new(world);
        cr_assert(second_wants_id(&ring->rank[0].s) && !second_wants_id(&ring->rank[1].s));
        header(ring);
        expect(ring, SECOND_STAY, SECOND_OFFERS);
        name(ring, 100);
        header(ring);
        expect(ring, SECOND_CONNECT, SECOND_MAKES);
        ring->rank[0].own.named = false;
        ring->rank[0].own.ready = true;
        header(ring);
        expect(ring, SECOND_STAY, SECOND_MAKES);
        all_ready(ring, true);
        header(ring);
        expect(ring, SECOND_SWITCH, SECOND_USES);
        header(ring);
        expect(ring, SECOND_STAY, SECOND_USES);
        cr_assert_eq(ring->rank[1].s.switches, 1);
    }
}

Test(second, who_is_alone_or_may_not_offers_nothing)
{
    struct second s = {0};
    second_ring(&s, first_members, 0, 1, true, 0);
    cr_assert(!second_offers(&s) && !second_wants_id(&s) && !second_uses(&s));
    second_ring(&s, first_members, 1, 3, false, 0);
    cr_assert(!second_offers(&s));
    cr_assert_eq(second_hear(&s, &(struct second_own){0}, NULL, false, 0), SECOND_STAY);
}

/* What one rank says ends it for all, each with a sentence. */
Test(second, what_not_all_have_is_over_for_this_ring)
{
    struct {
        int rank, version;
        const char *own, *others;
    } cases[] = {
        {1, 0, "worker 3 has none: no NCCL", "worker 3 has none"},
        {2, OLD, "worker 7 has version 2.32.3 and worker 5 has 2.26.5",
         "worker 7 has version 2.32.3 and worker 5 has 2.26.5"},
        {0, OLD, "worker 7 has version 2.26.5 and worker 3 has 2.32.3",
         "worker 7 has version 2.26.5 and worker 3 has 2.32.3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ring *ring = ring_new(3);
        ring->rank[cases[i].rank].own.version = cases[i].version;
        text_copy(ring->rank[cases[i].rank].own.why, RM_WHY_MAX, "no NCCL");
        name(ring, 5);
        header(ring);
        expect(ring, SECOND_DROP, SECOND_OVER);
        for (int r = 0; r < 3; r++)
            cr_assert_str_eq(ring->rank[r].s.why, r == cases[i].rank ? cases[i].own : cases[i].others);
        header(ring);
        expect(ring, SECOND_STAY, SECOND_OVER);
    }
}

Test(second, a_failure_is_every_ranks_and_the_second_one_within_ten_minutes_is_the_last)
{
    struct ring *ring = ring_new(2);
    go_to_use(ring);
    ring->rank[1].own.failed = true;
    text_copy(ring->rank[1].own.why, RM_WHY_MAX, "a cable");
    header(ring);
    expect(ring, SECOND_STAY, SECOND_MAKES);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    cr_assert_str_eq(ring->rank[0].s.why, "it failed at worker 3");
    cr_assert_str_eq(ring->rank[1].s.why, "a cable");
    cr_assert(ring->rank[1].s.first_hand && !ring->rank[0].s.first_hand);
    name(ring, 200);
    header(ring);
    expect(ring, SECOND_CONNECT, SECOND_MAKES);
    ring->rank[0].own.named = false;
    ring->rank[0].own.failed = true;
    text_copy(ring->rank[0].own.why, RM_WHY_MAX, "a switch");
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    cr_assert_str_eq(ring->rank[1].s.why, "it failed at worker 7");
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
    cr_assert_str_eq(ring->rank[0].s.why, "it failed 2 times within ten minutes at worker 7: a switch");
    cr_assert_str_eq(ring->rank[1].s.why, "it failed 2 times within ten minutes at worker 7");
    cr_assert(ring->rank[0].s.first_hand && !ring->rank[1].s.first_hand);
    ring_begin(ring, 2);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
    cr_assert(ring->rank[0].s.first_hand && !ring->rank[1].s.first_hand);
    ring->now += SECOND_REMEMBERS;
    ring_begin(ring, 2);
    go_to_use(ring);
}

Test(second, a_connection_or_an_id_that_is_never_made_is_given_up)
{
    struct ring *ring = ring_new(3);
    ring->now += SECOND_PATIENCE;
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    cr_assert_str_eq(ring->rank[0].s.why, "it was not made in two minutes");
    name(ring, 1);
    header(ring);
    expect(ring, SECOND_CONNECT, SECOND_MAKES);
    ring->rank[0].own.named = false;
    ring->rank[0].own.ready = ring->rank[1].own.ready = true;
    header(ring);
    expect(ring, SECOND_STAY, SECOND_MAKES);
    ring->now += SECOND_PATIENCE;
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    cr_assert_str_eq(ring->rank[0].s.why, "it failed at worker 5");
}

/* Of a communicator that is at something of its own, and has no error. */
Test(second, one_that_is_not_ready_for_a_moment_costs_a_step_by_the_ring_and_no_connection)
{
    struct ring *ring = ring_new(3);
    go_to_use(ring);
    for (int turn = 0; turn < 5; turn++) {
        ring->rank[2].own.ready = false;
        header(ring);
        expect(ring, SECOND_STAY, SECOND_MAKES);
        ring->rank[2].own.ready = true;
        header(ring);
        expect(ring, SECOND_SWITCH, SECOND_USES);
    }
    cr_assert_eq(ring->rank[0].s.failures, 0);
}

/* The first rank's sum ends with an error of its transport, or hangs, while the last one may stand still; and
 * the ring is formed of these. */
static void break_sum_still(struct ring *ring, const char *error, rm_time lasted, rm_time still,
                            const struct second_member *members, int world)
{
    go_to_use(ring);
    for (int r = 0; r < ring->world; r++)
        second_broke(&ring->rank[r].s, r ? NULL : error, lasted, r == ring->world - 1 ? still : 0, ring->now);
    cr_assert(!second_uses(&ring->rank[0].s) && !second_offers(&ring->rank[0].s));
    all_ready(ring, false);
    ring_begin_of(ring, members, world);
    for (int r = 0; r < world; r++)
        ring->rank[r].own.version = NEW;
    header(ring);
}

static void break_sum(struct ring *ring, const char *error, rm_time lasted,
                      const struct second_member *members, int world)
{
    break_sum_still(ring, error, lasted, 0, members, world);
}

Test(second, a_sum_that_failed_is_the_transports_failure_where_all_come_again)
{
    struct ring *ring = ring_new(2);
    break_sum(ring, "a cable", RM_S, first_members, 3); /* and another one */
    cr_assert(ring->rank[0].counted && !ring->rank[1].counted);
    cr_assert_str_eq(ring->rank[0].s.why, "a cable");
    cr_assert(ring->rank[0].s.first_hand);
    break_sum(ring, "a cable", RM_S, first_members, 3);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
    cr_assert_str_eq(ring->rank[0].s.why, "it failed 2 times within ten minutes at worker 7: a cable");
    cr_assert_str_eq(ring->rank[2].s.why, "it failed 2 times within ten minutes at worker 7");
}

/* Its end may show as an error of every other's transport, and before its connections end. */
Test(second, a_sum_in_which_a_worker_died_is_no_failure_of_the_transport)
{
    struct second_member members[] = {{7, 100}, {3, 101}, {5, 102}};
    struct ring *ring = ring_new(3);
    for (uint64_t turn = 0; turn < 6; turn++) {
        members[1 + turn % 2].trainer = 1000 + turn;
        break_sum(ring, "remote process exited", turn % 3 ? RM_S : 2 * SECOND_HANGS, members, 3);
        cr_assert(!ring->rank[0].counted && !ring->rank[2].counted);
        cr_assert_str_empty(ring->rank[0].s.why);
    }
    break_sum(ring, "remote process exited", RM_S, members, 2);
    cr_assert(!ring->rank[0].counted);
    cr_assert_eq(ring->rank[0].s.failures, 0);
    go_to_use(ring);
}

/* Nobody's transport has an error, and all are there. */
Test(second, a_sum_that_hung_until_it_was_broken_off_is_the_transports_failure)
{
    struct ring *ring = ring_new(2);
    break_sum(ring, NULL, SECOND_HANGS - 1, first_members, 2);
    cr_assert(!ring->rank[0].counted && !ring->rank[1].counted);
    break_sum(ring, NULL, 31 * RM_S, first_members, 2);
    cr_assert(ring->rank[0].counted && ring->rank[1].counted);
    cr_assert_str_eq(ring->rank[1].s.why, "a sum by it hung, and was broken off after 31 s");
    break_sum(ring, NULL, SECOND_HANGS, first_members, 2);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
}

/* Others waited for it, as they would in any transport: also where theirs has an error of it. */
Test(second, a_sum_in_which_one_stood_still_is_no_failure_of_the_transport)
{
    struct ring *ring = ring_new(3);
    for (int turn = 0; turn < 4; turn++) {
        break_sum_still(ring, turn % 2 ? "a time-out" : NULL, 12 * RM_S, SECOND_STOOD_STILL, first_members,
                        3);
        for (int r = 0; r < 3; r++)
            cr_assert(!ring->rank[r].counted && !*ring->rank[r].s.why, "rank %d", r);
    }
    cr_assert_eq(ring->rank[0].s.failures, 0);
    break_sum_still(ring, NULL, 12 * RM_S, SECOND_STOOD_STILL - 1, first_members, 3);
    cr_assert(ring->rank[0].counted && ring->rank[2].counted, "a moment is none");
    go_to_use(ring);
}

/* ---- the job's key ---- */

/* As a library without TLS does. */
static void refuse_key(struct ring *ring, int r)
{
    struct second_own *own = &ring->rank[r].own;
    own->failed = own->key_refused = true;
    text_copy(own->why, RM_WHY_MAX, "no key");
}

/* Up to the use of a connection that is made so. */
static void go_to_use_of(struct ring *ring, bool open)
{
    go_to_use(ring);
    for (int r = 0; r < ring->world; r++)
        cr_assert_eq(ring->rank[r].s.open, open, "rank %d", r);
}

static void learn_that_the_key_is_useless(struct ring *ring, int rank)
{
    name(ring, 1);
    header(ring);
    expect(ring, SECOND_CONNECT, SECOND_MAKES);
    cr_assert_not(ring->rank[0].s.open);
    ring->rank[0].own.named = false;
    refuse_key(ring, rank);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    cr_assert_str_eq(ring->rank[rank].s.why, "no key: one is tried without it");
    header(ring);
    expect(ring, SECOND_STAY, SECOND_OFFERS);
}

Test(second, where_one_makes_none_with_the_key_all_go_without_as_rank_0_says)
{
    for (int rank = 0; rank < 3; rank++) {
        struct ring *ring = ring_new(3);
        learn_that_the_key_is_useless(ring, rank);
        go_to_use_of(ring, true);
        for (int r = 0; r < 3; r++) {
            cr_assert_eq(ring->rank[r].s.open_for, first_members[rank].worker);
            cr_assert_eq(ring->rank[r].s.key, SECOND_KEY_USELESS);
        }
    }
}

/* Where the newcomer is rank 0, its id may be made with the key before it hears of it. */
Test(second, a_new_trainer_beside_a_key_of_no_use_is_no_failure)
{
    for (int newcomer = 0; newcomer < 2; newcomer++) {
        struct second_member members[] = {{7, 100}, {3, 101}};
        struct ring *ring = ring_new(2);
        learn_that_the_key_is_useless(ring, 1 - newcomer);
        go_to_use_of(ring, true);
        ring->rank[newcomer] = (struct rank){.own.version = NEW};
        members[newcomer].trainer = 999;
        all_ready(ring, false);
        ring_begin_of(ring, members, 2);
        name(ring, 50);
        cr_assert_eq(ring->rank[0].own.open, newcomer == 1);
        header(ring);
        if (newcomer == 0) {
            cr_assert(ring->rank[0].order == SECOND_RENAME && ring->rank[1].order == SECOND_STAY);
            name(ring, 70);
            header(ring);
        }
        expect(ring, SECOND_CONNECT, SECOND_MAKES);
        cr_assert(ring->rank[0].s.open && ring->rank[1].s.open);
        all_ready(ring, true);
        header(ring);
        expect(ring, SECOND_SWITCH, SECOND_USES);
        cr_assert_eq(ring->rank[newcomer].s.failures, 0);
        cr_assert_eq(ring->rank[1 - newcomer].s.failures, 1, "its own, with the key");
    }
}

/* The same error has other reasons, too. */
Test(second, where_none_is_made_without_it_either_the_key_is_there_again)
{
    struct ring *ring = ring_new(2);
    learn_that_the_key_is_useless(ring, 1);
    name(ring, 9);
    header(ring);
    expect(ring, SECOND_CONNECT, SECOND_MAKES);
    ring->rank[0].own.named = false;
    ring->rank[0].own.failed = true;
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
    ring->now += SECOND_REMEMBERS;
    ring_begin(ring, 2);
    go_to_use_of(ring, false);
}

Test(second, who_may_not_go_without_the_key_says_so_and_the_ring_keeps_the_words)
{
    struct ring *ring = ring_new(3);
    ring->rank[2].own.needs_key = true;
    go_to_use_of(ring, false);
    all_ready(ring, false);
    ring_begin(ring, 3);
    name(ring, 1);
    header(ring);
    ring->rank[0].own.named = false;
    refuse_key(ring, 1);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OFFERS);
    header(ring);
    expect(ring, SECOND_DROP, SECOND_OVER);
    for (int r = 0; r < 3; r++) {
        cr_assert_str_eq(ring->rank[r].s.why,
                         "worker 5 may not go without the job's key (RINGMASTER_NCCL_NEEDS_KEY), and worker "
                         "3's makes no connection with it");
        cr_assert_eq(ring->rank[r].s.first_hand, r == 2);
    }
}
