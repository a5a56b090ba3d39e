/* A set of a step's lanes: of numbers from 0 to RM_LANES_MAX - 1.
 *
 * A value as a worker_set is (set.h): {0} is empty, and it is copied by assignment. As text it is 16 hex
 * digits, the lowest 64 lanes' bits, the highest first; where there are higher lanes in it, 16 more in front
 * for each 64 of them. Each member in rising order:
 *     for (int lane = lane_set_next(&set, -1); lane >= 0; lane = lane_set_next(&set, lane)) */
#ifndef RM_BASE_LANE_SET_H
#define RM_BASE_LANE_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

enum {
    LANE_SET_WORDS = (RM_LANES_MAX + 63) / 64,
    LANE_SET_DIGITS = 16,
    LANE_SET_TEXT_MAX = LANE_SET_DIGITS * LANE_SET_WORDS + 1
};

struct lane_set {
    uint64_t bits[LANE_SET_WORDS]; /* for lane_set.c alone: lane n is bit n % 64 of word n / 64 */
};

bool lane_set_has(const struct lane_set *set, int lane);
void lane_set_add(struct lane_set *set, int lane);
void lane_set_add_all(struct lane_set *set, const struct lane_set *others);
bool lane_set_is_empty(const struct lane_set *set);
int lane_set_count(const struct lane_set *set);
/* Some lane is in both. */
bool lane_set_meets(const struct lane_set *a, const struct lane_set *b);
/* All of a is in b. */
bool lane_set_within(const struct lane_set *a, const struct lane_set *b);
/* The lowest that is above `after`; -1: there is none. */
int lane_set_next(const struct lane_set *set, int after);

void lane_set_write(const struct lane_set *set, char out[LANE_SET_TEXT_MAX]);
/* False, and *ret as it was: not such a text, or of lanes that no step has. */
bool lane_set_read(const char *text, struct lane_set *ret);

#endif
