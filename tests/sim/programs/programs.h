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

enum plant { PLANT_NONE, PLANT_GONE_EARLY, PLANT_COUNT_ANEW, PLANT_LEFT_BEHIND, PLANTS };

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
    UNCUT, /* a: node */
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
    char violation[256], end_why[200];
};

/* programs_check.c */
__attribute__((format(printf, 2, 3))) void violate(struct sim *sim, const char *format, ...);
void check_start(struct sim *sim, int node, const struct launch_ring *ring); /* its processes start there */
void check_end(struct sim *sim);
void note_failure(struct sim *sim, int node, const struct message *m); /* what a launcher says */
void check_action(struct sim *sim, const struct rdzv_action *a);       /* of the coordinator */

#endif
