/* When the words of a step leave the ring for a second transport (trainer/backend/transport.h), and when they
 * come back: the same on all ranks, decided by what all have said. Pure.
 *
 * The ring carries everything from its first step on. While there is no second transport, the header's sum
 * has a second part, the offers: each rank's version, rank 0's id, and whether something failed. Once an id
 * is there, and all have one version, all connect, each beside its training. A rank whose connection is made
 * says LANES_READY in its headers; from the step after the first header in which all do, words go by it, and
 * for as long as all say so in each. Where one does not any more, those very words go by the ring, and the
 * next header has offers again: where one says that it failed all drop the connection, and another one is
 * tried, by another id; else all go on with it once all are ready again. After two failures within ten
 * minutes the ring keeps the words until there is another ring.
 *
 * The job's key closes connections to strangers. A rank whose transport makes none with it says so, and then
 * the id is one without: rank 0's says which, and all follow it, so that nobody tries what others know to be
 * of no use. Where one that follows works, the key was why; where it does not, the key is there again. Who
 * may not go without the key ends it for this ring.
 *
 * A sum that breaks off ends the ring, whoever's fault it was: of a rank that dies in its midst the others'
 * transports have errors, too. The next ring tells: where all who were in that sum have come again, with the
 * trainers that they had, and none of them stood still meanwhile, it was the transport's failure.
 *
 *     NONE    nobody offers: alone, or the job has none
 *     OFFERS  until all have spoken, with an id
 *     MAKES   until all are ready (again)
 *     USES    words go by it
 *     OVER    not with this ring; why says what was wrong */
#ifndef RM_TRAINER_SECOND_H
#define RM_TRAINER_SECOND_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"
#include "common/base/time.h"

enum {
    SECOND_ID_WORDS = 32,
    SECOND_RANK_WORDS = 2,
    SECOND_WORDS = SECOND_ID_WORDS + SECOND_RANK_WORDS * RM_WORKERS_MAX,
    SECOND_FAILURES = 2,
};
/* An id, or a connection, that takes longer is given up. And how long a failure counts. */
#define SECOND_PATIENCE  (120 * RM_S)
#define SECOND_REMEMBERS (600 * RM_S)
/* A sum that is broken off after so long without an error of its own hung. Who was stopped for half of that,
 * as a machine that stands still is, keeps others waiting in any transport. */
#define SECOND_HANGS       (10 * RM_S)
#define SECOND_STOOD_STILL (SECOND_HANGS / 2)

enum second_phase { SECOND_NONE, SECOND_OFFERS, SECOND_MAKES, SECOND_USES, SECOND_OVER };

/* What a rank knows of its own transport and the job's key. */
enum second_key {
    SECOND_KEY_FINE,    /* nothing against it */
    SECOND_KEY_DOUBTED, /* none could be made with it; one without will tell whether that was why */
    SECOND_KEY_USELESS, /* it was; or another rank's, of the same version, was of no use with it */
};

/* Who a rank is. trainer: any number, another one for each trainer of a worker. */
struct second_member {
    int worker;
    uint64_t trainer;
};

struct second {
    enum second_phase phase;
    int rank, world;
    struct second_member member[RM_WORKERS_MAX]; // (world)
    rm_time since;                               /* of the phase */
    int failures;                                /* since the start; the newest ones were... */
    rm_time failed_at[SECOND_FAILURES];
    int switches;           /* to it, since the start */
    char why[RM_WHY_MAX];   /* "" or why it failed last, or is over; with what a rank knows of itself */
    bool first_hand;        /* and that is about this rank: it is the one to tell it */
    char broke[RM_WHY_MAX]; /* "" or what a sum ended with that may have been the transport's failure */
    bool stood_still;       /* this rank did, in a sum that broke off */
    enum second_key key;
    bool open;    /* the connection of this ring, made or to be made, is one without the key... */
    int open_for; /* ...because of this worker; -1 none */
};

/* What this rank's own transport says. */
struct second_own {
    int version; /* 0: it has none */
    bool named, ready, failed;
    bool open;                    /* named, and to be used without the key */
    bool key_refused;             /* failed, perhaps because of the key */
    bool needs_key;               /* it may not go without */
    uint32_t id[SECOND_ID_WORDS]; /* where named */
    char why[RM_WHY_MAX];         /* where failed, or without a version */
};

enum second_order {
    SECOND_STAY,
    SECOND_CONNECT, /* with the id in the sum, with the key or, where `open`, without */
    SECOND_RENAME,  /* the id that this rank made is of no use: another one, as `open` says */
    SECOND_SWITCH,  /* from the next step on words go by it */
    SECOND_DROP,    /* whatever there is */
};

/* A new ring; what there was is dropped. offers: the same on all ranks. */
void second_ring(struct second *s, const struct second_member *members, int rank, int world, bool offers,
                 rm_time now);
/* Whether the header's sum has the offers: SECOND_WORDS, zero where this rank has nothing to say. */
bool second_offers(const struct second *s);
/* Whether this rank is to make an id, which it has not begun. */
bool second_wants_id(const struct second *s);
void second_say(const struct second *s, const struct second_own *own, rm_time now,
                uint32_t words[SECOND_WORDS]);
/* Whether this rank says LANES_READY. */
bool second_is_ready(const struct second *s, const struct second_own *own);
/* Whether words go by it, if a header says so once more. */
bool second_uses(const struct second *s);
/* The offers have been summed, and will be heard. True: a sum that broke off in the ring before was the
 * transport's failure, and why says it. */
bool second_judge(struct second *s, const uint32_t *sum, rm_time now);
/* A header has been summed. sum: of the offers, where there are; all_ready: all said LANES_READY. */
enum second_order second_hear(struct second *s, const struct second_own *own, const uint32_t *sum,
                              bool all_ready, rm_time now);
/* A sum by it broke off here, and with it the ring. error: the transport's own; NULL: it has none. still: how
 * long this rank was kept from going on meanwhile, at a stretch. */
void second_broke(struct second *s, const char *error, rm_time lasted, rm_time still, rm_time now);

#endif
