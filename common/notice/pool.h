/* Which machines a cloud often takes back together: those of one type in one zone, which are a pool there.
 * What to ask a machine's metadata for it, once it is known whose that is (watch.h), and what the answers
 * come to. Pure.
 *
 * Nothing depends on it but which notices are taken for the first of their kind: where no answer comes, or
 * none of the vendor's form, the pool is not known, nobody is told, and it is asked for ever more rarely. */
#ifndef RM_NOTICE_POOL_H
#define RM_NOTICE_POOL_H

#include <stdbool.h>

#include "common/base/time.h"

struct watch;
struct watch_question;
struct watch_answer;

enum { MACHINE_POOL_PART_MAX = 48, MACHINE_POOL_NAME_MAX = 2 * MACHINE_POOL_PART_MAX /* as in a message */ };

/* Part of struct watch. */
struct machine_pool {
    int cloud; /* of which it is asked (enum watch_cloud) */
    int heard; /* parts that are known: the type, then the zone */
    char part[2][MACHINE_POOL_PART_MAX];
    bool asked; /* a question is under way */
    int failures;
    rm_time at; /* of the next one */
};

/* The next question that is due, whose slot is -1; false: there is none. Each has to be answered. */
bool machine_pool_ask(struct watch *w, rm_time now, struct watch_question *ret);
void machine_pool_answer(struct watch *w, const struct watch_answer *answer, rm_time now);
/* When pool_ask is to be called again; RM_NEVER: when something was answered. */
rm_time machine_pool_deadline(const struct watch *w);

/* "p3.2xlarge/us-east-1a"; "" while it is not known. */
void machine_pool_name(const struct machine_pool *pool, char ret[MACHINE_POOL_NAME_MAX]);

/* Whether machines of these two go together: one that is not known may be any. */
bool machine_pool_is_same(const char *a, const char *b);

#endif
