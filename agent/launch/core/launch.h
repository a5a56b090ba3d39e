/* The launcher's mind: one worker's share of a user's program, from the first `up` to the last process's end.
 *
 * A launcher is what the agent has in place of a trainer where a job has `launch` (mode Restart): it answers
 * the link's messages as a trainer does, but it has no state and no ring. A generation begins with `go` and
 * starts `processes` processes; every stop ends them all, and only when nothing of them lives any more is the
 * stop answered. So no process of an older generation runs beside one of a newer.
 *
 * Where the program is frozen into snapshots, a stop that leaves time for one makes it in place of SIGTERM,
 * and `go` means: from the newest snapshot, if there is one. The shell knows which that is.
 *
 * Pure: launch_step takes one event and the time and fills *out with actions in order; the shell
 * (agent/launch/launcher.c) owns the link, the processes and the ports. After each step arm one timer for
 * launch_deadline and deliver LAUNCH_TICK. */
#ifndef RM_LAUNCH_CORE_H
#define RM_LAUNCH_CORE_H

#include "agent/launch/core/progress.h"
#include "common/base/arena.h"
#include "common/wire/message.h"

/* A program stuck in a collective never runs its handler of SIGTERM, so a failure waits no longer. */
#define LAUNCH_SUDDEN_GRACE RM_S

enum { LAUNCH_BUILD_MAX = 24 };

struct launch_settings {
    int worker, processes;
    bool torchrun; /* which starts the ranks itself: whose end is told is nobody's rank */
    int64_t pid;
    rm_time grace, heartbeat;       /* ns */
    uint8_t lineage[RM_HASH_BYTES]; /* of what every worker of this job "holds": its command's hash */
    char build[LAUNCH_BUILD_MAX];   /* of the bundle that it is of; "": of none. A job takes one alone */
    bool freezes;                   /* snapshots of its processes are made: checkpoint.process: CRIU */
    rm_time every;                  /* with it, ns between the end of one and the next; 0: none as it runs */
};

/* What the processes of one generation are told of it: the environment is made of this (environment.h). */
struct launch_ring {
    struct msg_generation generation;
    int64_t begun;                                /* generations of the job before this one */
    int world, rank;                              /* of workers, not of processes */
    char address[RM_WORKERS_MAX][RM_ADDRESS_MAX]; /* of each worker, in rank order; the first's is the
                                                  program's rendezvous */
};

enum launch_event_kind {
    LAUNCH_LINK,   /* message from the agent */
    LAUNCH_PORT,   /* text: HOST:PORT, free a moment ago */
    LAUNCH_ENDED,  /* a process has ended: local, code (128 + signal by a signal), memory: it was killed as
                      that was short, text: its last word, output: what that was taken from */
    LAUNCH_GONE,   /* after LAUNCH_KILL: nothing that was started lives any more, grandchildren included */
    LAUNCH_TOLD,   /* progress: of a process */
    LAUNCH_FROZEN, /* what LAUNCH_DUMP or LAUNCH_FREEZE asked for is over, well or not; every: the time until
                      the next one, where it is another one than before, else 0 */
    LAUNCH_HELD,   /* held: all processes stand still, as no coordinator answers; else they go on */
    LAUNCH_CLOSED, /* the agent is gone */
    LAUNCH_TICK,
};

struct launch_event {
    enum launch_event_kind kind;
    const struct message *message; /* borrowed for the call */
    int local, code;
    bool memory;
    rm_time every;
    bool held;
    struct launch_progress progress;
    char text[MSG_DETAIL_MAX];
    const char *output; /* borrowed for the call; NULL: nothing */
};

enum launch_action_kind {
    LAUNCH_SEND,        /* message, to the agent */
    LAUNCH_CHOOSE_PORT, /* answered by LAUNCH_PORT */
    LAUNCH_START,  /* all processes, in the environment of launch_ring_of; each is answered by ENDED once */
    LAUNCH_TERM,   /* SIGTERM to all */
    LAUNCH_KILL,   /* SIGKILL to all and to what they left behind; answered by ENDED for each, then GONE */
    LAUNCH_DUMP,   /* a snapshot of all, who run on; answered by FROZEN */
    LAUNCH_FREEZE, /* a snapshot of all, who end with it, within `within`; answered by ENDED for each that it
                      ended, then by FROZEN. Where it is not made they run on */
    LAUNCH_EXIT,
};

struct launch_action {
    enum launch_action_kind kind;
    struct message *message; /* SEND */
    rm_time within;          /* FREEZE */
};

enum { LAUNCH_ACTIONS_MAX = 8, LAUNCH_BODIES_MAX = LAUNCH_ACTIONS_MAX * 640 + (int)sizeof(struct msg_fault) };

/* The actions of one step, in order. The messages that they point to lie in `bodies` and are void when the
 * next step begins. It points into itself: do not copy it. It needs no more than to be there before the first
 * step. */
struct launch_out {
    int count;
    struct launch_action action[LAUNCH_ACTIONS_MAX];
    struct arena arena; /* over bodies, which it aligns by lying before them */
    unsigned char bodies[LAUNCH_BODIES_MAX];
};

struct launch;

struct launch *launch_open(const struct launch_settings *settings,
                           rm_time now); /* heap; the only allocation */
void launch_free(struct launch *st);
void launch_step(struct launch *st, const struct launch_event *event, rm_time now, struct launch_out *out);
rm_time launch_deadline(const struct launch *st);
const struct launch_ring *launch_ring_of(const struct launch *st); /* newest; of LAUNCH_START */

/* What a launcher says that can't begin or go on, before it ends: whoever reads of its end reads why. */
void launch_refuse(struct message *m, const char *why, int exit_code);

#endif
