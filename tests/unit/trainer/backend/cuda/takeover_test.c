/* Whether what was left is the state, and what becomes of pieces that were being changed. */
#include "trainer/backend/cuda/takeover.h"

#include <criterion/criterion.h>
#include <string.h>

enum { PIECES = 5, SLOTS = 4, STEP = 7, OLD = 100, NEW = 200 /* sums, and the piece's number */ };

struct left_case {
    int64_t stamp[PIECES];
    uint64_t noted[PIECES], adds_up_to[PIECES];
    struct cuda_left_slot slot[SLOTS];
    struct cuda_left left;
};

/* A whole state of STEP. */
static struct left_case *whole(bool pending)
{
    static struct left_case c;
    c = (struct left_case){.left = {.step = STEP,
                                    .pending = pending,
                                    .proven = true,
                                    .pieces = PIECES,
                                    .slots = SLOTS,
                                    .stamp = c.stamp,
                                    .noted = c.noted,
                                    .adds_up_to = c.adds_up_to,
                                    .slot = c.slot}};
    for (int i = 0; i < PIECES; i++) {
        c.stamp[i] = STEP;
        c.noted[i] = c.adds_up_to[i] = (uint64_t)(OLD + i);
    }
    return &c;
}

/* Piece 2 is being changed by the owner of slot 1. */
static struct left_case *cut_off(int64_t stamp, uint64_t noted, uint64_t adds_up_to)
{
    struct left_case *c = whole(true);
    c->stamp[2] = stamp;
    c->noted[2] = noted;
    c->adds_up_to[2] = adds_up_to;
    c->slot[1] = (struct cuda_left_slot){.valid = true, .piece = 2, .sum = OLD + 2};
    return c;
}

static void taken(struct left_case *c)
{
    char why[RM_WHY_MAX] = "";
    cr_assert(cuda_takeover_slots(&c->left, why), "%s", why);
    cr_assert(cuda_takeover_decide(&c->left, why), "%s", why);
    cr_assert_str_eq(why, "");
}

static void left_alone(struct left_case *c, const char *sentence)
{
    char why[RM_WHY_MAX] = "";
    cr_assert_not(cuda_takeover_slots(&c->left, why) && cuda_takeover_decide(&c->left, why), "%s", sentence);
    cr_assert_str_eq(why, sentence);
}

Test(takeover, a_whole_state_is_taken_and_one_whose_update_waits)
{
    taken(whole(false));
    struct left_case *c = whole(true);
    taken(c);
    c->stamp[0] = c->stamp[4] = STEP + 1;
    taken(c);
}

Test(takeover, a_piece_with_other_bits_or_of_another_step_is_found)
{
    struct left_case *c = whole(false);
    c->adds_up_to[3] ^= 1 << 5;
    left_alone(c, "piece 3 of 5 adds up to 0000000000000047, and 0000000000000067 was written");
    c = whole(true);
    c->noted[0]++;
    left_alone(c, "piece 0 of 5 adds up to 0000000000000064, and 0000000000000065 was written");
    c = whole(false);
    c->stamp[4] = STEP + 1;
    left_alone(c, "piece 4 of 5 is of step 8, the state of step 7");
    c = whole(true);
    c->stamp[4] = STEP + 2;
    left_alone(c, "piece 4 of 5 is of step 9, the state of step 7");
    c->stamp[4] = STEP - 1;
    left_alone(c, "piece 4 of 5 is of step 6, the state of step 7");
}

Test(takeover, nothing_is_known_of_a_state_that_nobody_has_added_up)
{
    struct left_case *c = whole(false);
    c->left.proven = false;
    left_alone(c, "the pieces of step 7 had not been added up yet");
}

/* In the order in which an update writes: the slot, values, their sum, the stamp, the slot's end. */
Test(takeover, a_piece_that_was_being_changed_is_put_back_until_its_new_sum_is_noted)
{
    struct left_case *c = cut_off(STEP, OLD + 2, OLD + 2);
    taken(c);
    cr_assert_not(c->slot[1].settled, "nothing was written yet");
    c = cut_off(STEP, OLD + 2, 12345);
    taken(c);
    cr_assert_not(c->slot[1].settled, "some values were");
    c = cut_off(STEP, NEW + 2, NEW + 2);
    taken(c);
    cr_assert(c->slot[1].settled, "the sum was, too");
    c = cut_off(STEP + 1, NEW + 2, NEW + 2);
    taken(c);
    cr_assert(c->slot[1].settled, "and the stamp");
}

Test(takeover, a_piece_of_which_neither_old_nor_new_values_add_up_is_found)
{
    struct left_case *c = cut_off(STEP, NEW + 2, 12345);
    left_alone(c, "piece 2 of 5 adds up to 0000000000003039, and 00000000000000ca was written");
    c = cut_off(STEP, OLD + 2, 12345);
    c->slot[1].sum++; /* the slot's values are not those that were there */
    left_alone(c, "piece 2 of 5 adds up to 0000000000003039, and 0000000000000066 was written");
}

Test(takeover, slots_that_cannot_be_there_are_found)
{
    struct left_case *c = cut_off(STEP, OLD + 2, OLD + 2);
    c->left.pending = false;
    left_alone(c, "undo slot 1 has old values of piece 2, and no update was under way");
    c = cut_off(STEP, OLD + 2, OLD + 2);
    c->slot[3] = c->slot[1];
    left_alone(c, "undo slot 1 has old values of piece 2, and so does another");
    c->slot[3].piece = PIECES;
    left_alone(c, "undo slot 3 has old values of piece 5, which there is not");
    c->slot[3].piece = -1;
    left_alone(c, "undo slot 3 has old values of piece -1, which there is not");
}
