/* The members of a coordinator's status page: one row each (status.c), which its writer, its readers, and the
 * test of docs/coordinator-status.md walk.
 *
 * The page is a plain struct on both sides. A coordinator fills it and status_set_page makes the object of
 * it; who asks (an operator, a coordinator that waits for its successor) reads the object into one. The
 * operator writes some parts on into the TrainingJob, under the names that the page has for them. */
#ifndef RM_WIRE_STATUS_H
#define RM_WIRE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/limits.h"

struct js;

/* How long each part of a recovery took, in ms. */
enum recovery_part {
    RECOVERY_DETECT,
    RECOVERY_AGREE,
    RECOVERY_RING,
    RECOVERY_STATE,
    RECOVERY_FIRST_STEP,
    RECOVERY_TOTAL,
    RECOVERY_PARTS
};

/* What the time of a job went into, in s. */
enum goodput_class {
    GOODPUT_PRODUCTIVE,
    GOODPUT_CHECKPOINT,
    GOODPUT_RECOVERY,
    GOODPUT_WAITING,
    GOODPUT_REWORK,
    GOODPUT_CLASSES
};

const char *recovery_key(enum recovery_part part); /* "detectMs" */
const char *goodput_key(enum goodput_class which); /* "productiveSeconds" */

/* What the coordinator is at, as the page says it. */
enum status_state {
    STATUS_UNKNOWN, /* a page says none, or one that this program does not know */
    STATUS_GATHERING,
    STATUS_FORMING,
    STATUS_TRAINING,
    STATUS_QUIESCING,
    STATUS_SAVING,
    STATUS_RECOVERING,
    STATUS_FINISHED,
    STATUS_FAILED,
    STATUS_STATES
};

const char *status_state_name(enum status_state state);   /* "Gathering"; of STATUS_UNKNOWN "" */
enum status_state status_state_of_name(const char *name); /* STATUS_UNKNOWN: nobody's */

/* What a worker is at, as its row says it. */
enum status_phase {
    STATUS_PHASE_UNKNOWN, /* of a newer coordinator */
    STATUS_PHASE_EXPECTED,
    STATUS_PHASE_AWAY,
    STATUS_PHASE_STARTING,
    STATUS_PHASE_WAITING,
    STATUS_PHASE_FORMING,
    STATUS_PHASE_READY,
    STATUS_PHASE_TRAINING,
    STATUS_PHASE_FINISHED,
    STATUS_PHASE_STOPPING,
    STATUS_PHASE_STOPPED,
    STATUS_PHASE_SAVING,
    STATUS_PHASE_LEAVING,
    STATUS_PHASE_RELEASED,
    STATUS_PHASE_LEFT_OUT,
    STATUS_PHASE_QUARANTINED,
    STATUS_PHASES
};

const char *status_phase_name(enum status_phase phase); /* "leftOut"; of STATUS_PHASE_UNKNOWN "" */
enum status_phase status_phase_of_name(const char *name);

/* Texts are borrowed: of whoever fills the page, or of the value that it was read from. `known`: the part is
 * an object, not null. Times are ms since the epoch, 0: not known. */

/* What a worker says of its machine's end. */
struct status_notice {
    bool known;
    const char *source, *cause, *certainty;
    double left_seconds; /* NaN: no time is known */
};

/* What its lanes take a worker. */
struct status_speed {
    bool known;     /* it is in the ring, and has made a step there */
    int lanes;      /* of its newest step */
    double lane_ms; /* each; NaN: not known */
    bool slow;
    double times;   /* slow: as long as most workers' */
    const char *by; /* slow: msg_slow_name */
};

struct status_worker {
    int worker; /* -1: none of the job's */
    int attempt;
    const char *phase;           /* of `workers`: status_phase_name */
    int rank;                    /* of `workers`; -1: not in the ring */
    const char *cause;           /* of `lost` and `quarantined` */
    int64_t time;                /* of `lost` and `left` */
    struct status_notice notice; /* of `workers` */
    struct status_speed pace;    /* likewise */
    bool told;                   /* likewise: who asked said with `will` that its machine goes... */
    double leave_seconds;        /* ...and so long its leave takes; NaN: not known */
};

struct status_workers {
    int count;
    struct status_worker worker[RM_WORKERS_MAX];
};

struct status_ring {
    int64_t generation, term;
    int64_t begun; /* generations that began to train, in all terms as far as is known */
    int size;      /* 0: none is at work */
    int64_t formed;
    struct status_workers members; /* by rank */
};

struct status_progress {
    bool known;
    int64_t step, steps;
    /* steps 0 and NaN: not known */
    double loss, held_out, norm, clip, rate;
    double tokens_per_second, samples_per_second, steps_per_second, eta_seconds;
};

struct status_checkpoint {
    bool known;
    int64_t step;
    const char *uri;
    bool seen; /* when, and how many bytes */
    int64_t saved, bytes;
};

/* A store that keeps the job from beginning. */
struct status_store {
    bool known;
    const char *reason;
    bool person; /* somebody has to set something right there */
};

/* How long is trained between two checkpoints, where the coordinator chooses it. */
struct status_interval {
    bool known;
    double every_seconds;
    const char *reason;
    int64_t losses;           /* of all workers together, under all coordinators; */
    double observed_seconds;  /* in this time in which somebody held the state */
    double stall_ms, safe_ms; /* of a save; 0 and 0: none was measured */
};

/* A checkpoint that the store does not take. */
struct status_outage {
    bool known;
    int64_t step;
    double age_seconds;
    const char *reason;
};

/* How the words of a step go where the workers' GPUs may have a quicker way for them than the ring. */
struct status_transport {
    bool known;
    bool used;          /* in the newest step */
    const char *reason; /* why not; "": it is, or is being made ready */
};

struct status_recovery {
    bool known;
    const char *cause;
    double ms[RECOVERY_PARTS];
    int64_t steps_redone;
};

struct status_goodput {
    bool known;
    double ratio;
    double seconds[GOODPUT_CLASSES];
};

struct status_redone {
    int64_t announced, sudden;
};

struct status_result {
    bool known;
    int exit_code; /* -1: the object has none, so it is no result */
    const char *reason;
    bool interrupted;
    int64_t step;
    bool program; /* a user's program ended with program_code, and the job by it */
    int program_code;
    bool complete; /* goodput is there */
    bool trained;  /* what follows is there: the built-in trainer made all steps */
    double loss, goodput;
    const char *weights_sha256, *uri;
    bool exact;
    bool weighed, timed; /* bytes is there; saved is */
    int64_t bytes, saved;
};

/* What a program of a worker's pod leaves as its last word. (The coordinator's is its result.) */
struct status_word {
    bool left; /* it was told to go, and went */
    bool over; /* the exit code is there, and the reason */
    int exit_code;
    const char *reason;
    bool elsewhere; /* another machine, or another image, would fit */
};

struct status_page {
    int64_t revision;
    int64_t time; /* of the answer, in ms since the epoch, by the clock of who writes it */
    const char *job, *name;
    int64_t term;
    bool preparing;
    const char *state; /* status_state_name */
    const char *message;
    bool mixed_hardware;
    bool program; /* the workers run a user's, whose progress is not known before it reports any */
    struct status_ring ring;
    struct status_workers workers, lost, left, quarantined;
    struct status_progress progress;
    struct status_checkpoint checkpoint;
    struct status_interval interval;
    struct status_store store;
    bool fenced;
    struct status_outage outage;
    struct status_transport transport;
    int64_t failures, recoveries, lanes_dealt;
    struct status_recovery last_recovery;
    struct status_goodput goodput;
    struct status_redone steps_redone;
    struct status_result result;
    const struct js *events; /* an array of the objects of common/wire/event.h; NULL: none was read */
};

/* Adds the members to an object, in the order of the rows. What `events` is gets copied. */
void status_set_page(struct js *object, const struct status_page *page);
void status_set_recovery(struct js *object, const struct status_recovery *recovery);
void status_set_result(struct js *object, const struct status_result *result);
void status_set_word(struct js *object, const struct status_word *word);

/* Nobody is trusted: what is absent, or of another kind, is 0, false, "", NaN, or what stands beside the
 * member above; an object that is none has nothing; numbers are brought within their bounds; lists are cut
 * off behind RM_WORKERS_MAX entries of which each has the index of a worker. Two things are taken from
 * whoever calls, where they are absent: `preparing` and `fenced`. */
void status_read_page(struct status_page *ret, const struct js *object);
void status_read_result(struct status_result *ret, const struct js *object);
void status_read_word(struct status_word *ret, const struct js *object);

/* The name of the member that lies there in a part's struct, for whoever tells it on. Of several numbers in
 * an array each has its own. */
enum status_part {
    STATUS_OF_NONE,
    STATUS_OF_PAGE,
    STATUS_OF_RING,
    STATUS_OF_MEMBER, /* of a ring; struct status_worker */
    STATUS_OF_PROGRESS,
    STATUS_OF_CHECKPOINT,
    STATUS_OF_INTERVAL,
    STATUS_OF_RECOVERY,
    STATUS_OF_GOODPUT,
    STATUS_OF_RESULT,
    STATUS_PARTS
};
const char *status_key_at(enum status_part part, size_t at);

/* The rows, for whoever lists them. A member's own members follow it; depth says how far it is down. */
struct status_listed {
    const char *key;
    int depth;
};
int status_list(struct status_listed *ret, int most);

#endif
