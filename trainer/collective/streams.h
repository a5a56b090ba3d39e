/* Several rings side by side, each over connections of its own and with its own part of a large sum: where a
 * network gives each connection only a share of what a machine may send.
 *
 * What is small goes by the first ring alone. Of what is large each ring has a contiguous part, on a thread
 * for as long as it takes. Where one fails the others are ended, too. The sum of integers is the same as over
 * one ring; that of fp32 depends on how many there are. */
#ifndef RM_COLLECTIVE_STREAMS_H
#define RM_COLLECTIVE_STREAMS_H

#include "trainer/collective/abort_flag.h"
#include "trainer/collective/collective.h"

enum {
    STREAMS_MAX = 8,
    STREAMS_LEAST = 256 << 10, /* elements of what is large, where there is no reason for another */
    STREAMS_SEGMENTS = 8       /* of a reduce, at most */
};

struct streams;

/* The flags of `count` rings, before there are any: one each, as the end of one must not be that of all. */
int streams_open(struct streams **ret, int count, struct abort_flag *abort, int64_t least, struct error *err);
struct abort_flag *streams_flag(struct streams *s, int stream);
/* Each ring in turn, `ret` once all are there; owns them from here on, also where it fails. */
void streams_add(struct streams *s, struct collective *ring);
/* Makes a collective of it, which is freed by that one's close. All rings are there. */
struct collective *streams_collective(struct streams *s);
/* What has been added so far, where the rest is not to be had. */
void streams_free(struct streams *s);

#endif
