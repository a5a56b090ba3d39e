/* Segments seen as one flat run of 4-byte elements, and the sums over them. */
#ifndef RM_COLLECTIVE_SEGMENTS_H
#define RM_COLLECTIVE_SEGMENTS_H

#include <stdint.h>

#include "trainer/collective/collective.h"

/* A contiguous piece of one segment. */
struct segment_run {
    const struct collective_segment *segment;
    enum collective_type type;
    const uint8_t *from; /* NULL: nothing */
    uint8_t *to;
    int64_t bytes;
};

/* Asserts what collective.h asks of segments: all of this process's memory, and no `to` over anything else.
 */
void segments_check(const struct collective_segment *segments, int n);
/* The second half of that, for segments anywhere. */
void segments_check_overlap(const struct collective_segment *segments, int n);

int64_t segments_total(const struct collective_segment *segments, int n); /* elements */
/* A number that differs where types or counts differ. */
uint64_t segments_shape(const struct collective_segment *segments, int n);
/* The longest run from byte `first` of the flat view, `bytes` at most (> 0 and inside the view). */
struct segment_run segments_run(const struct collective_segment *segments, int n, int64_t first,
                                int64_t bytes);
/* Before a reduce: nothing of `to` is final, so that all proofs are 0. */
void segments_unproven(const struct collective_segment *segments, int n);
/* Bytes [first, first + bytes) of the flat view's `to`, whole elements, are final: adds them to the proofs.
 */
void segments_prove(const struct collective_segment *segments, int n, int64_t first, int64_t bytes);
/* The same of one run, whose words can be read at `words`. */
void segments_prove_run(const struct segment_run *run, const void *words);
/* to = from, the sum in a world of 1. */
void segments_copy(const struct collective_segment *segments, int n);
/* to = a + b, element by element; a NULL: to = b. to may be a or b; no alignment is asked for. */
void segments_add(enum collective_type type, void *to, const void *a, const void *b, int64_t count);

#endif
