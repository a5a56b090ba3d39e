/* What the coordinator tells `run`, a JSON object a line, as a struct (docs/exit-codes-and-events.md). */
#ifndef RM_CLI_EVENT_H
#define RM_CLI_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/wire/event.h"

enum { EVENT_TEXT_MAX = 512, EVENT_SPENT = 5, EVENT_SAVES = 5 };

struct event_member {
    int worker;
    int64_t agent_pid, trainer_pid;
};

struct event {
    enum event_kind kind;
    int64_t step;                                 /* -1 where the event has none */
    int64_t steps;                                /* of PROGRESS; 0 where it is not known */
    int worker, attempt;                          /* -1 where it has none */
    int world;                                    /* of STEP, PROGRESS and RING_FORMED */
    int64_t term, generation;                     /* of RING_FORMED, 0 elsewhere */
    int exit_code;                                /* of FAILED */
    double loss;                                  /* NaN where it is not known */
    double norm, clip, rate;                      /* of STEP; NaN where it is not known */
    double tokens_per_second, samples_per_second; /* of STEP, which has one of them; 0: not known */
    double goodput;                               /* 0..1; NaN where it is not known */
    bool exact;
    char text[EVENT_TEXT_MAX]; /* cause, reason or detail */
    char uri[RM_URI_MAX];
    char address[RM_ADDRESS_MAX];
    char weights_sha256[RM_HASH_HEX];
    struct {
        double detect, agree, ring, state, first_step, total;
        int64_t steps_redone;
    } recovered; /* ms */
    int64_t bytes;
    double ms;
    double age, waited;         /* seconds; of CHECKPOINT_WAITING and CHECKPOINT_SAVED, 0 where it has none */
    int64_t saves[EVENT_SAVES]; /* of ALIVE, as a successor takes them; saves[0] -1: it has none */
    int64_t at,
        spent[EVENT_SPENT]; /* of ALIVE, ns: where the time went until then, as a successor takes it */
    int members;
    struct event_member member[RM_WORKERS_MAX];
};

/* One line. ERR_PROTOCOL with a sentence; ERR_NOT_FOUND: valid, but an event that this program does not know
 * (a newer coordinator's), to be passed over. */
int event_read(struct event *ret, const char *text, size_t length, struct error *err);

#endif
