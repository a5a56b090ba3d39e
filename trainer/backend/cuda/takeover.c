#include "trainer/backend/cuda/takeover.h"

#include <stdio.h>

static const struct cuda_left_slot *slot_of(const struct cuda_left *left, int64_t piece, int first)
{
    for (int i = first; i < left->slots; i++)
        if (left->slot[i].valid && left->slot[i].piece == piece)
            return &left->slot[i];
    return NULL;
}

bool cuda_takeover_slots(const struct cuda_left *left, char why[RM_WHY_MAX])
{
    for (int i = 0; i < left->slots; i++) {
        const struct cuda_left_slot *slot = &left->slot[i];
        const char *wrong = NULL;
        if (!slot->valid)
            continue;
        if (slot->piece < 0 || slot->piece >= left->pieces)
            wrong = "which there is not";
        else if (!left->pending)
            wrong = "and no update was under way";
        else if (slot_of(left, slot->piece, i + 1))
            wrong = "and so does another";
        if (wrong) {
            snprintf(why, RM_WHY_MAX, "undo slot %d has old values of piece %lld, %s", i,
                     (long long)slot->piece, wrong);
            return false;
        }
    }
    return true;
}

static bool stamp_fits(const struct cuda_left *left, int piece)
{
    const int64_t stamp = left->stamp[piece];
    return stamp == left->step || (left->pending && stamp == left->step + 1);
}

/* Of the sums, for a piece without a slot that counts. */
static bool piece_is_whole(const struct cuda_left *left, int piece, char why[RM_WHY_MAX])
{
    if (left->adds_up_to[piece] != left->noted[piece])
        snprintf(why, RM_WHY_MAX, "piece %d of %d adds up to %016llx, and %016llx was written", piece,
                 left->pieces, (unsigned long long)left->adds_up_to[piece],
                 (unsigned long long)left->noted[piece]);
    else if (!stamp_fits(left, piece))
        snprintf(why, RM_WHY_MAX, "piece %d of %d is of step %lld, the state of step %lld", piece,
                 left->pieces, (long long)left->stamp[piece], (long long)left->step);
    else
        return true;
    return false;
}

bool cuda_takeover_decide(struct cuda_left *left, char why[RM_WHY_MAX])
{
    if (!left->proven) {
        snprintf(why, RM_WHY_MAX, "the pieces of step %lld had not been added up yet", (long long)left->step);
        return false;
    }
    for (int i = 0; i < left->slots; i++) {
        struct cuda_left_slot *slot = &left->slot[i];
        if (slot->valid)
            slot->settled = left->noted[slot->piece] != slot->sum;
    }
    for (int piece = 0; piece < left->pieces; piece++) {
        const struct cuda_left_slot *slot = slot_of(left, piece, 0);
        if ((!slot || slot->settled) && !piece_is_whole(left, piece, why))
            return false;
    }
    return true;
}
