/* What goes into the coordinator's mind and comes out of it: settings, events, actions, and what of them is
 * told. Types alone: how they are used says rdzv.h. */
#ifndef RM_COORDINATOR_RDZV_TYPES_H
#define RM_COORDINATOR_RDZV_TYPES_H

#include "common/notice/notice.h"
#include "common/wire/command.h"
#include "common/wire/event.h"
#include "common/wire/message.h"

enum rdzv_state {
    RDZV_RECOVERING, /* a successor collects hellos */
    RDZV_GATHERING,
    RDZV_FORMING,
    RDZV_TRAINING,
    RDZV_QUIESCING,
    RDZV_SAVING,
    RDZV_FINISHED,
    RDZV_FAILED,
    RDZV_STATES
};

/* Where the time went, ns. Their sum is the job's age. Productive is what it takes to do each step once: time
 * in which a ring stood still for one that was lost or hung is recovery, noticed or not. */
struct rdzv_goodput {
    rm_time productive, checkpoint, recovery, waiting, rework;
};

/* What the time between two checkpoints follows from (interval.h), as far as a coordinator hands it on. */
struct rdzv_saves {
    int64_t losses;      /* of all at once who held the state, under all coordinators */
    int64_t reached;     /* the newest step that somebody held; -1: not known */
    rm_time observed;    /* under the coordinators before whose time is in nobody's `spent` */
    rm_time stall, safe; /* 0 and 0: no save was measured */
};

/* What whoever starts a successor knows of its predecessor's work: it starts in RECOVERING. */
struct rdzv_predecessor {
    bool given;
    int64_t told, evaluated, saved; /* newest step, evaluation and checkpoint that were told, -1 none */
    rm_time lost_at;                /* when the predecessor died, or was about to */
    rm_time spent_at;               /* when the predecessor last said `spent`; 0: never */
    struct rdzv_goodput spent;
    struct rdzv_saves saves;
    int64_t begun; /* generations that began to train under all before this one, as far as is known */
};

/* What the failure of a user's program does. */
enum rdzv_rule {
    RULE_COUNTS, /* against max_restarts */
    RULE_FAILS_JOB,
    RULE_SPARES, /* does not count, but where memory was short: another try would need as much */
};

enum { PROGRAM_CODES = 256 };

struct rdzv_settings {
    char job[64];
    int64_t term;
    int workers_min, workers_max, workers_target, lanes;
    int64_t steps;
    bool exact;                /* reduction: exact */
    bool allow_mixed_hardware; /* do not refuse another fingerprint */
    bool resume;               /* false: never load a checkpoint, start from the seed */
    int64_t evaluation_every;  /* steps; 0 never */
    int64_t checkpoint_every;  /* steps; 0 never */
    rm_time
        max_loss; /* checkpoint.maxLoss, where the time between checkpoints is chosen here; 0: it is not */
    rm_time save_least, believed; /* interval.h's; 0: a minute, a day */
    bool listens;                 /* newcomers get a ring's state while it trains (rdzv_listen.h) */
    bool gpus;                    /* workers compute on them, and may have a second way for a step's words */
    bool brought;                 /* the first weights are what each worker's program begins with */
    bool reads_files;             /* each trainer reads the data by itself, from a folder that it sees */
    rm_time join_window, heartbeat, lost_after, form_timeout, start_timeout; /* ns, all above 0 */
    /* in join_window's place before a job's first ring, where workers take long to come up; 0: not another */
    rm_time first_window;
    rm_time step_timeout; /* ns; 0: 10 times the median step, 30 s at least */
    int max_restarts;
    rm_time within;
    rm_time
        save_patience;   /* with a store that is away, where a checkpoint ends the run; 0: it fails at once */
    rm_time end_timeout; /* how long a run waits where nobody can read what it goes on from */
    rm_time stop_takes;  /* that processes of a program may take to end, beside all else; 0: there are none */
    bool leave_unsaved;  /* checkpoint.onPreemption: false */
    /* pauses between tries to take back who was left out; 0: 10 s at first, 5 min at most */
    rm_time probe_first, probe_most;
    bool program;                /* the workers run a user's program: rdzv_program.h */
    uint8_t rule[PROGRAM_CODES]; /* enum rdzv_rule, by the program's exit code */
    bool alone; /* of its program no two trees of processes may run at once, where nobody hears of one either:
                   each heartbeat is answered, and who has no answer for lost_after makes its own stand still
                   (checkpoint.process: CRIU) */
    int attempt_least; /* of worker 0, with `alone`: whoever makes workers gave up all below it; 0: nobody
                          says */
    bool unsupervised; /* RDZV_EXPECT never comes: below min it waits, for workers_target at first */
    struct rdzv_predecessor predecessor;
};

enum rdzv_eased_by {
    EASED_BY_MAY,      /* its machine may go */
    EASED_BY_DELETION, /* its pod is deleted: it has been sent a SIGTERM */
    EASED_BY_WILL,     /* its machine will go, as others than the worker were told */
};

enum { RDZV_EASED_MAX = 2 * RM_WORKERS_MAX }; /* a worker may be named for two of them */

/* Who is to go when another one has come in its place. The newest word says all of it, and holds for a
 * minute. */
struct rdzv_relief {
    int stay; /* members that nothing is known against are not to be fewer by it; workers_min at least */
    int count;
    struct {
        int worker, attempt;
        enum rdzv_eased_by by;
        rm_time left; /* EASED_BY_WILL: so long its machine is there; else 0 */
    } one[RDZV_EASED_MAX];
};

enum rdzv_event_kind {
    RDZV_MESSAGE,   /* conn, message: verified */
    RDZV_CLOSED,    /* conn */
    RDZV_EXPECT,    /* expect: who lives or is on the way */
    RDZV_ACT,       /* act: a drill is about to be done */
    RDZV_RELIEVE,   /* relief */
    RDZV_INTERRUPT, /* a person wants it saved and ended */
    RDZV_TICK,      /* time passed */
};

struct rdzv_event {
    enum rdzv_event_kind kind;
    int conn;
    const struct message *message; /* borrowed for the call */
    struct command_expect expect;
    struct command_act act;
    struct rdzv_relief relief;
};

/* What the world is told: those of the events (common/wire/event.h) that this core has to tell. */
enum rdzv_tell_kind {
    TELL_RING_FORMED = EVENT_RING_FORMED,
    TELL_STEP = EVENT_STEP,
    TELL_WORKER_LOST = EVENT_WORKER_LOST,
    TELL_WORKER_LEFT = EVENT_WORKER_LEFT,
    TELL_WORKER_JOINED = EVENT_WORKER_JOINED,
    TELL_WORKER_QUARANTINED = EVENT_WORKER_QUARANTINED,
    TELL_WORKER_LEFT_OUT = EVENT_WORKER_LEFT_OUT,
    TELL_WORKER_DIFFERS = EVENT_WORKER_DIFFERS,
    TELL_PROOF_FAILED = EVENT_PROOF_FAILED,
    TELL_WORKER_SLOW = EVENT_WORKER_SLOW,
    TELL_NOTICE_RECEIVED = EVENT_NOTICE_RECEIVED,
    TELL_NOTICE_WITHDRAWN = EVENT_NOTICE_WITHDRAWN,
    TELL_PROGRAM_FAILED = EVENT_PROGRAM_FAILED,
    TELL_PROGRESS = EVENT_PROGRESS,
    TELL_JOIN_SKIPPED = EVENT_JOIN_SKIPPED,
    TELL_EVALUATED = EVENT_EVALUATED,
    TELL_CHECKPOINT_SAVED = EVENT_CHECKPOINT_SAVED,
    TELL_CHECKPOINT_WAITING = EVENT_CHECKPOINT_WAITING,
    TELL_CHECKPOINT_SKIPPED = EVENT_CHECKPOINT_SKIPPED,
    TELL_CHECKPOINT_INTERVAL = EVENT_CHECKPOINT_INTERVAL,
    TELL_RECOVERED = EVENT_RECOVERED,
    TELL_WAITING = EVENT_WAITING,
    TELL_FAILED = EVENT_FAILED,
    TELL_INTERRUPTED = EVENT_INTERRUPTED,
    TELL_COMPLETE = EVENT_COMPLETE,
    TELL_WORKER_FAILED = EVENT_WORKER_FAILED,
    TELL_WORKER_REFUSED = EVENT_WORKER_REFUSED,
    TELL_RELEASED = EVENT_RELEASED,
    TELL_CHECKPOINT_LOADED = EVENT_CHECKPOINT_LOADED,
    TELL_CHECKPOINT_REFUSED = EVENT_CHECKPOINT_REFUSED,
};

struct rdzv_recovery {
    enum cause cause;
    rm_time detect, agree, ring, state, first_step, total;
    int64_t steps_redone;
};

struct rdzv_told_member {
    int worker;
    int64_t agent_pid, trainer_pid;
};

struct rdzv_tell {
    enum rdzv_tell_kind kind;
    int64_t step, steps; /* steps: PROGRESS; 0 not known */
    int worker, attempt;
    int exit_code;              /* TELL_FAILED */
    int world;                  /* STEP, PROGRESS, RING_FORMED */
    double loss;                /* STEP, PROGRESS, EVALUATED, COMPLETE; NaN where unknown (printed as null) */
    double pace;                /* STEP: tokens, or samples, a second */
    bool samples;               /* STEP: it has no tokens (settings.brought) */
    struct msg_numbers numbers; /* STEP */
    struct msg_generation generation;
    bool final, exact;
    bool program;     /* COMPLETE, FAILED: by a user's program, which has no weights here; CHECKPOINT_SAVED:
                         of its processes */
    int program_code; /* program, PROGRAM_FAILED: what it ended with; -1: with nothing, it hangs */
    int rank;         /* PROGRAM_FAILED: of its process, -1 not known */
    struct notice notice; /* NOTICE_RECEIVED, NOTICE_WITHDRAWN */
    rm_time left;         /* NOTICE_RECEIVED: until its moment; -1: none is known */
    const char *output;   /* PROGRAM_FAILED: what it said last; NULL: nothing. It goes with the turn */
    int64_t bytes;        /* CHECKPOINT_SAVED; COMPLETE: of the final one where its saving was not told; 0 */
    rm_time every;        /* CHECKPOINT_INTERVAL */
    rm_time took;         /* CHECKPOINT_WAITING: since it was to be written */
    rm_time frozen;       /* CHECKPOINT_SAVED: of a program's processes, which stood still for so long */
    rm_time waited;       /* CHECKPOINT_SAVED: how long the store was away before, 0 it was not */
    double goodput;       /* COMPLETE: 0..1 */
    uint8_t digest[RM_HASH_BYTES];
    struct rdzv_recovery recovery;
    int members;                     /* RING_FORMED */
    struct rdzv_told_member *member; // (members) they go with the turn
    char text[MSG_DETAIL_MAX];       /* cause of a lost, left or joined worker; reason */
};

enum rdzv_action_kind { RDZV_SEND, RDZV_CLOSE, RDZV_TELL, RDZV_END };

struct rdzv_action {
    enum rdzv_action_kind kind;
    union {
        struct {
            int count, most; /* recipients; that there is room for */
            int *conn;       // (most) the same message to each
            struct message *message;
        } send;
        int close; /* conn, after what was sent to it */
        struct rdzv_tell *tell;
        struct {
            int exit_code;
            const char *why; /* "" for exit 0 */
        } end;
    };
};

/* No step makes more, with every worker in the worst state (tests/unit/coordinator/core/crowd_test.c). The
 * room is for an event with each action, and for messages to and about all. */
enum {
    RDZV_ACTIONS_MAX = 8 * RM_WORKERS_MAX,
    RDZV_BODIES_MAX = RDZV_ACTIONS_MAX * (int)(sizeof(struct rdzv_tell) + 64) +
                      RM_WORKERS_MAX * (int)sizeof(struct msg_fault) + 4 * (int)sizeof(struct message),
};

/* The actions of one step, in order. What they point to lies in `bodies` and is void when the next step
 * begins: whoever needs it longer copies it. It is large, and points into itself: allocate it once, and do
 * not copy it. It needs no more than to be there before the first step. */
struct rdzv_out {
    int count;
    struct rdzv_action action[RDZV_ACTIONS_MAX];
    struct arena arena; /* over bodies, which it aligns by lying before them */
    unsigned char bodies[RDZV_BODIES_MAX];
};

struct rdzv;

#endif
