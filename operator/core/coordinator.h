/* What a coordinator answers to GET /v1/status, and its last word in the pod's termination message.
 *
 * A tenant's pod says all this: everything is bounded, strings are cut and control characters become spaces,
 * unknown fields are passed over, and what is not as documented (docs/coordinator-status.md) is as if it were
 * absent. Plain data, no pointers. Pure. */
#ifndef RM_OPERATOR_CORE_COORDINATOR_H
#define RM_OPERATOR_CORE_COORDINATOR_H

#include "common/base/error.h"
#include "common/wire/event.h"
#include "operator/core/status.h"

enum {
    OP_ANSWER_MAX = 1024 * RM_WORKERS_MAX, /* bytes of an answer, as a coordinator bounds them */
    OP_COORDINATOR_EVENTS_MAX = 64,
};

struct op_gone {
    int worker, attempt;
    int64_t at_ms;
    char cause[OP_CAUSE_MAX];
};

/* Who is connected to a coordinator. */
struct op_present {
    int worker, attempt;
    bool in_ring;     /* and neither leaves it nor is cut off */
    bool waits;       /* beside the ring, for a place in it */
    bool may_go;      /* it was told that its machine may go */
    bool will_go;     /* that it will, at a moment that has not come: it leaves by itself when it is time */
    int64_t leave_ms; /* so long its leave takes, of one that we told of; 0: not known, or we did not */
};

struct op_coordinator_event {
    int64_t sequence, at_ms;
    enum event_kind kind;  /* EVENT_KINDS: one that is not known */
    int worker;            /* whose it is; -1: not told */
    bool will;             /* of a notice: that its machine will go, not may */
    char note[RM_WHY_MAX]; /* a sentence made of its fields; "" where the event is none for people */
};

/* The end of a job as its coordinator tells it. */
struct op_last_word {
    bool known;
    int exit_code;
    int program_code; /* what the user's program ended with, by which the job did; -1: none */
    bool interrupted;
    char reason[OP_MESSAGE_MAX];
    struct op_result result;
    int64_t bytes, saved_ms; /* of the final checkpoint; 0: not known */
};

struct coordinator_view {
    int64_t revision;
    int64_t at_ms;         /* of the answer, by the coordinator's own clock; 0: not told */
    char job[OP_NAME_MAX]; /* name_identity */
    int term;
    enum status_state state;
    char message[RM_WHY_MAX];
    bool mixed; /* several kinds of machines have trained it, as the job allows: no other ones would end so */
    int ring_generation, ring_size;
    int64_t begun; /* generations that began, under all coordinators; 0: not told */
    int64_t formed_ms;
    struct op_member member[RM_WORKERS_MAX]; /* ring_size of them */
    int workers_count, lost_count, quarantined_count;
    struct op_present worker[RM_WORKERS_MAX];
    struct op_gone lost[RM_WORKERS_MAX];
    int quarantined[RM_WORKERS_MAX]; /* worker indices */
    struct op_progress progress;
    struct op_checkpoint checkpoint;
    struct op_interval interval;
    bool preparing; /* it has not looked at all of the checkpoints and the data yet */
    struct {
        char why[RM_WHY_MAX]; /* why a store keeps it preparing; "": none does */
        bool person;          /* somebody has to set something right there */
    } store;
    bool unfenced;           /* the store does not make sure that there is one owner */
    char outage[RM_WHY_MAX]; /* why the store does not take the newest checkpoint; "": it does */
    char slower[RM_WHY_MAX]; /* why the GPUs' sums do not go by the quicker way; "": no reason is known */
    struct op_recovery last_recovery;
    struct op_goodput goodput;
    struct op_last_word last_word;
    int events_count;
    struct op_coordinator_event event[OP_COORDINATOR_EVENTS_MAX]; /* last: see coordinator_forget_events */
};

/* How long a coordinator that is asked again and again has given no answer. It counts from one failed
 * question to the next: between two lie 40 s at most, so that a longer pause was the asker's own and is
 * nobody's silence. Zero: it answers, or nobody asks. */
struct op_silence {
    int64_t since_ms, last_ms; /* wall clock: of the first question without an answer, of the last failure */
    char why[RM_WHY_MAX];
};

/* A question of asked_ms failed now. An answer, or another coordinator, makes it zero again. */
void silence_note(struct op_silence *silence, int64_t asked_ms, int64_t now_ms, const char *why);
int64_t silence_ms(const struct op_silence *silence); /* how long; 0: none. NULL is fine */

/* ERR_PROTOCOL where text is no JSON object. */
int coordinator_read(const char *text, size_t length, struct coordinator_view *ret, struct error *err);

/* The events of a view on the heap were told and are of no more use. They are most of it, and there is one
 * of these for each job: the view is cut off in front of them (and may not be copied as a whole any more). */
void coordinator_forget_events(struct coordinator_view **view);

/* The termination message of a coordinator's pod: the `result` object. known is false where it is none. */
void last_word_read(const char *text, struct op_last_word *ret);

#endif
