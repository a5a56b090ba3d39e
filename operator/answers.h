/* Answers that have come and are still to be read, in the order in which they came: a few milliseconds of
 * them in each turn of the loop. Ten thousand coordinators may answer at once, and to read one takes up to a
 * millisecond: whoever asks this program whether it lives would wait for all of them, and the kubelet asks
 * with a patience of a second. */
#ifndef RM_OPERATOR_ANSWERS_H
#define RM_OPERATOR_ANSWERS_H

#include <sys/queue.h>

#include "common/loop/loop.h"

#define ANSWERS_PORTION (5 * RM_MS) /* of one turn */

/* Part of who asks, which owns it; `read` and `ctx` are set by it, all else is zero at first. */
struct answers_place {
    void (*read)(void *ctx); /* may add it again, and free its owner */
    void *ctx;
    TAILQ_ENTRY(answers_place) others;
    bool waits;
};

struct answers;
int answers_open(struct answers **ret, struct loop *loop, struct error *err);
void answers_free(struct answers *answers); /* nobody waits any more */
/* It is read in a later turn; one that waits already keeps its place. */
void answers_add(struct answers *answers, struct answers_place *place);
void answers_remove(struct answers *answers,
                    struct answers_place *place); /* also of one that does not wait */

#endif
