/* Who can train together, where some workers can't reach each other.
 *
 * The largest set of `among` in which no two are apart. Of several that are as large it is the one in which
 * those are missing who are apart from most; of these, who is not dear, who was blamed more often, who has
 * the higher index. Pure; work is bounded: beyond some thousand
 * looks the best set found so far is returned, which holds no two that are apart either. */
#ifndef RM_COORDINATOR_RDZV_CLIQUE_H
#define RM_COORDINATOR_RDZV_CLIQUE_H

#include "common/base/set.h"

struct clique_question {
    struct worker_set among;
    struct worker_set dear;         /* rather kept, where it costs nobody else a place */
    const struct worker_set *apart; /* (RM_WORKERS_MAX) whom each can't reach; b has a where a has b */
    const int *blamed;              /* (RM_WORKERS_MAX) */
};

struct worker_set clique_find(const struct clique_question *q);

#endif
