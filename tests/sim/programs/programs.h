/* The world of the simulator of programs (programs.c): its machines with what runs on them, the coordinator,
 * and what is under way between them. */
#ifndef RM_TESTS_SIM_PROGRAMS_H
#define RM_TESTS_SIM_PROGRAMS_H

#include "agent/core/agent.h"
#include "agent/launch/core/launch.h"
#include "coordinator/core/rdzv.h"

enum {
    NODES_MAX = 64,
    WORKERS = 3,
    PROCESSES = 2,
    QUEUE_MAX = 4096,
    TERMS_MAX = 64,
    FAILS = 3,   /* exit code */
    SPARED = 42, /* exit code */
};

#define SIM_LOST_AFTER RM_S

enum plant {
    PLANT_NONE,
    PLANT_GONE_EARLY,
    PLANT_COUNT_ANEW,
    PLANT_LEFT_BEHIND,
    PLANT_NOTICE_LATE,       /* who tells of a machine's end tells of a later moment */
    PLANT_WITHDRAWAL_UNSAID, /* that a machine does not go after all is told to nobody */
    PLANT_RUNS_ON,           /* --frozen: an agent that hears nothing lets its program run */
    PLANT_UNFENCED, /* --frozen: the next pod is made at once; the coordinator still keeps the two apart */
    PLANTS
};

enum kind {
    TO_COORDINATOR, /* a: node, b: connection */
    TO_AGENT,
    CONNECTED,
    CLOSED_AT_COORDINATOR,
    CLOSED_AT_AGENT, /* or never made */
    LINK_TO_AGENT,   /* a: node, b: launcher's number */
    LINK_TO_LAUNCHER,
    LAUNCHER_EXIT,
    PROCESS_ENDS, /* c: which; message none */
    PROCESSES_GONE,
    LEFT_GONE,        /* what a launcher left behind when it ended */
    COORDINATOR_TICK, /* a: term */
    AGENT_TICKS,      /* a: node */
    LAUNCHER_TICK,
    COORDINATOR_STARTS,
    NODE_STARTS, /* a: worker, b: attempt */
    HARM,
    UNCUT,        /* a: node */
    NOTICE,       /* the next one is drawn */
    NOTICE_HEARD, /* a: node, b: enum msg_notice_word */
    MACHINE_GOES, /* a: node */
    EASE,         /* a: node: whoever makes pods asks for it, and goes on asking */
    FROZEN_LOOK,  /* whoever makes pods looks at the last one */
    FROZEN_HARM,
    FROZEN_SEEN,    /* a: node: the API server hears of its machine again */
    FROZEN_DUMP,    /* a: node, b: its tree */
    FROZEN_PUBLISH, /* likewise */
};

struct ev {
    rm_time at;
    uint64_t seq;
    enum kind kind;
    int a, b, c;
    struct message *message; /* owned */
};

struct process {
    bool alive;
    struct msg_generation generation;
    int launcher, code, number; /* code: what it is about to end with; number: of its start, counted */
    bool stuck;                 /* in a call that holds it: killed, it dies late */
    rm_time dies_at;            /* 0: it was not killed */
};

struct node {
    bool alive, cut;
    bool excused; /* when the newest generation was told to start nobody had heard of it for so long */
    int worker, attempt;
    struct agent *agent;
    int conn; /* -1: none */
    rm_time ticks_at, launcher_ticks_at, to_agent_at, to_coordinator_at, link_up_at, link_down_at;
    rm_time heard_at;            /* the newest that it heard from here, if only that the connection ended */
    int launcher;                /* number of the newest, 0: none yet */
    bool launcher_alive, frozen; /* frozen: it stands still until it is killed */
    struct launch *launch;       /* NULL: it has not heard `setup` */
    struct process process[PROCESSES];
    struct msg_generation failed; /* the newest of which a launcher here said that it failed */
    rm_time failed_at;
    int failed_launcher;
    rm_time noticed_at, doomed_at; /* its machine's end, as it was told; 0: it was not, or no more */
    int nodes_then;                /* machines that there had been when it was told */
    bool goes;                     /* the coordinator has heard that it will, and trains on */
    bool replaced;                 /* another one is made in its place, or was */
    /* Of a job of which snapshots are made: */
    rm_time unseen_at, patience;
    bool held;           /* its launcher makes its processes stand still */
    bool listed;         /* the coordinator has its connection */
    bool unseen;         /* the API server hears nothing of its machine */
    bool given_up;       /* another one is to be made in its place */
    bool refused;        /* somebody else has published its number */
    int number, follows; /* the snapshot that it is at; of its start, counted */
};

struct sim {
    uint64_t chance, seq;
    rm_time now;
    enum plant plant;
    bool trace, stuck; /* stuck: some of its processes are */
    rm_time grace;
    struct ev queue[QUEUE_MAX];
    int queued;
    struct node node[NODES_MAX];
    int nodes, conns;
    struct rdzv *rdzv; /* NULL: there is none */
    int64_t term;
    rm_time tick_at;
    struct rdzv_settings settings;
    int port, started;
    struct msg_generation first, newest; /* that started */
    struct msg_generation sent;          /* the newest that was told to start */
    rm_time stopped_at;                  /* since then somebody was told to stop, RM_NEVER: nobody */
    bool lost;                           /* since then a worker was lost */
    int failures[RM_WORKERS_MAX];        /* told since then */
    int done[TERMS_MAX][256];            /* processes that ended with 0, by generation */
    int world;
    bool over;
    int exit_code;
    int64_t generations, harms;
    struct notices_drawn {
        uint64_t chance; /* apart from the rest, so that seeds without notices stay what they are */
        bool any, calm;  /* calm: and nothing else happens */
        int count;       /* so far */
        int costly;      /* of them those that may end a generation */
        int changes;     /* and how many generations they may cost at most; -1: any number */
        int wills;
        int owed; /* pods to be made as soon as an index is free */
    } notices;
    struct sim_wall {
        bool stands;
        int from, to; /* workers: the ranks of `from` can't call those of `to` */
        rm_time at, until;
    } wall;
    int64_t parted;          /* generations whose ranks never met */
    bool taken[WORKERS + 1]; /* a worker of that index is there, or on its way */
    int attempt[WORKERS + 1];
    bool barred[WORKERS + 1]; /* in quarantine, with this coordinator */
    struct sim_ring {         /* as the newest form says, and as the newest that was told to start was */
        struct msg_generation generation;
        int world, going;
        bool has[WORKERS + 1]; /* by worker */
    } formed, went;
    struct sim_frozen {
        bool on, coming;   /* coming: a pod is made */
        uint64_t chance;   /* apart from the rest, as above */
        int newest;        /* number of the newest snapshot; 0: none */
        int starts;        /* of the program, from a snapshot or not */
        int pod;           /* the node of the newest pod... */
        rm_time silent_at; /* ...and since when it can have had no answer; 0: it may have */
        int64_t unseen_ends;
    } frozen;
    char violation[256], end_why[200];
};

/* programs.c */
struct ev *add(struct sim *sim, rm_time at, enum kind kind, int a, int b);
void agent_event(struct sim *sim, int node, const struct agent_event *event);
void coordinator_event(struct sim *sim, const struct rdzv_event *event);
void node_dies(struct sim *sim, int node, bool silently);

/* programs_notice.c: what clouds tell of machines' ends, and what must come of it */
void notice_draw(struct sim *sim, uint64_t seed);
void notice_happens(struct sim *sim, const struct ev *e);              /* NOTICE to EASE */
void notice_noted(struct sim *sim, int node, const struct message *m); /* the coordinator hears it */
void notice_form(struct sim *sim, const struct message *form);
void notice_go(struct sim *sim);
void notice_ends(struct sim *sim, int node, bool by_itself); /* a machine that was told so, or who is on it */
void notice_check_end(struct sim *sim);
/* Who makes pods makes none under an index in quarantine, and another one in its place: true, it did. */
bool notice_bars(struct sim *sim, int worker);
void notice_makes_owed(struct sim *sim); /* an index may be free again */
void notice_quarantined(struct sim *sim, int worker);
void notice_forgets(struct sim *sim); /* what its predecessor had in quarantine a coordinator does not know */

/* programs_walls.c: two workers that are well, and whose ranks can't meet */
void wall_draw(struct sim *sim, uint64_t seed);
/* The generation of that node's launcher has both, and the wall stands: nobody gets through the rendezvous.
 */
bool wall_parts(const struct sim *sim, int node);

void coordinator_goes(struct sim *sim, rm_time away);

/* programs_frozen.c: snapshots of the program are made; the others do nothing where it is not drawn */
void frozen_draw(struct sim *sim, uint64_t seed);
void frozen_happens(struct sim *sim, const struct ev *e); /* FROZEN_LOOK to FROZEN_PUBLISH */
void frozen_made(struct sim *sim, int node);
void frozen_starts(struct sim *sim, int node);           /* its processes have */
bool frozen_waits(struct sim *sim, const struct ev *e);  /* PROCESS_ENDS: later, it stands still */
void frozen_held(struct sim *sim, int node, bool holds); /* its agent says so */
void frozen_told(struct sim *sim, int node, const struct message *m);
void frozen_forgets(struct sim *sim, int node); /* the coordinator has its connection no more */
void frozen_lost(struct sim *sim, int attempt); /* it says that it lost it */

/* programs_check.c */
__attribute__((format(printf, 2, 3))) void violate(struct sim *sim, const char *format, ...);
void check_start(struct sim *sim, int node, const struct launch_ring *ring); /* its processes start there */
void check_end(struct sim *sim);
void note_failure(struct sim *sim, int node, const struct message *m); /* what a launcher says */
void check_action(struct sim *sim, const struct rdzv_action *a);       /* of the coordinator */

#endif
