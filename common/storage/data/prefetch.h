/* Reads the lanes of coming steps on a thread of its own, so that a step finds its samples in memory.
 *
 * A pass asks for a run of lanes in order, at one step after the other: prefetch_aim says which,
 * prefetch_lane hands them out. While a step is computed the lanes of the next one are read, as far as the
 * room allows; the lanes of the step itself are kept for a second pass where there is room for two steps.
 * Whatever the order and the room, a lane always holds the same samples: reading ahead changes times only.
 *
 * aim, lane, sample and waited are for one caller's thread. The corpus belongs to the reader while it lives.
 */
#ifndef RM_DATA_PREFETCH_H
#define RM_DATA_PREFETCH_H

#include "common/base/time.h"
#include "common/storage/data/corpus.h"

struct prefetch;

struct prefetch_options {
    struct corpus *corpus; /* the caller's; outlives the reader */
    int context, lane_sequences;
    int lanes;      /* most that one pass asks for */
    int64_t steps;  /* nothing is read ahead at or after this step */
    int64_t wanted; /* corpus_want is told of so many samples ahead of the one read; 0: none */
    int64_t room;   /* bytes for samples at most, but two lanes at least */
    /* The sample that is sequence j of a lane at a step; called on the reader's thread. */
    int64_t (*sample)(const void *ctx, int64_t step, int lane, int j);
    const void *ctx;
};

int prefetch_open(struct prefetch **ret, const struct prefetch_options *options, struct error *err);
void prefetch_free(struct prefetch *p);

/* A pass over lanes [first, first + count) of a step begins; at the next step they are wanted again. Lanes
 * already read for it stay. Forgets an error of an earlier pass. */
void prefetch_aim(struct prefetch *p, int64_t step, int first, int count);

/* One of the lanes aimed at, (lane_sequences, context + 1), once it is read; valid until the next call of
 * prefetch_lane or prefetch_aim. Lanes are asked for in order. NULL: the corpus's error. A read that failed
 * in a way that passes (CLASS_PASSING) is tried again for 20 s before it is told, of CLASS_MACHINE then. */
const int32_t *prefetch_lane(struct prefetch *p, int lane, struct error *err);

/* Sample i, besides the lanes: corpus_read between two reads of the thread. */
int prefetch_sample(struct prefetch *p, int64_t i, int32_t *tokens, struct error *err);

/* Time that prefetch_lane has waited since the opening, ns. */
rm_time prefetch_waited(const struct prefetch *p);

#endif
