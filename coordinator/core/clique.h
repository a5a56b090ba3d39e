/* Who can train together, where some workers can't reach each other.
 *
 * The largest set of `among` in which no two are apart. Of several that are as large it is the one in which
 * those are missing who are apart from most; of these, who is not dear, who was blamed more often, who has
 * the higher index. Sets of workers are bits by index. Pure; work is bounded: beyond some thousand
 * looks the best set found so far is returned, which holds no two that are apart either. */
#ifndef RM_COORDINATOR_RDZV_CLIQUE_H
#define RM_COORDINATOR_RDZV_CLIQUE_H

#include <stdint.h>

struct clique_question {
    uint64_t among;
    uint64_t dear;         /* rather kept, where it costs nobody else a place */
    const uint64_t *apart; /* (RM_WORKERS_MAX) bit b of a and bit a of b: they can't reach each other */
    const int *blamed;     /* (RM_WORKERS_MAX) */
};

uint64_t clique_find(const struct clique_question *q);
int clique_count(uint64_t workers);

#endif
