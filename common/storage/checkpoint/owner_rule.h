/* The one rule by which a place in a bucket is taken, by a run that starts and by one that has lost it: what
 * follows from a look at the newest claim (owner.h says what claims are). Pure.
 *
 * What is free is taken: no claim at all, one that says so, one of a process of this machine that is gone.
 * Another run's holder is asked, and followed where it does not answer for a lease; one that answers keeps
 * the place, and is asked again later, after a pause that doubles. So of two runs that live the one that lost
 * the place stays out of it, however often both look: only silence moves it. Among processes of one run the
 * one that starts takes it at once, and the one that was there before leaves it to that one. */
#ifndef RM_STORE_OWNER_RULE_H
#define RM_STORE_OWNER_RULE_H

#include <stdbool.h>

#include "common/base/time.h"
#include "common/storage/object/object.h"

/* The newest claim, as it was seen. */
struct owner_claim {
    int number;  /* 0: there is none */
    bool own;    /* this process's */
    bool of_run; /* of this run, be it another process's */
    bool released;
    bool dead; /* its process was of this machine, and is gone */
    char tag[OBJECT_TAG_MAX];
};

enum owner_step {
    OWNER_HOLDS,     /* it is this process's */
    OWNER_FOLLOWED,  /* a later process of this run has it: nothing is lost, and it answers */
    OWNER_TAKES,     /* owner_rule_next */
    OWNER_ASKS,      /* its holder, whether it lives */
    OWNER_WAITS,     /* for the answer */
    OWNER_STAYS_OUT, /* it has answered */
};

/* What is remembered between looks. Zeroed but for the lease before the first one. */
struct owner_rule {
    rm_time lease;
    int number;               /* of this process's newest claim; 0: it has had none */
    int asked;                /* whose holder was asked; 0: nobody's */
    bool waits;               /* for its answer */
    char tag[OBJECT_TAG_MAX]; /* of that claim when it was asked */
    rm_time asked_at, again_at;
    int lives; /* how often it has answered */
};

/* `now` was read before the look: who stood still since then has seen less than it would believe. */
enum owner_step owner_rule_step(struct owner_rule *rule, const struct owner_claim *seen, rm_time now);
/* The question stands in the store since `now`. */
void owner_rule_asked(struct owner_rule *rule, const struct owner_claim *seen, rm_time now);
/* The number to be created by who takes the place. */
int owner_rule_next(const struct owner_rule *rule, const struct owner_claim *seen);
/* It was created. */
void owner_rule_taken(struct owner_rule *rule, int number);

#endif
