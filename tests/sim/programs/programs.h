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

enum plant { PLANT_NONE, PLANT_GONE_EARLY, PLANT_COUNT_ANEW, PLANTS };

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
    bool alive, excused;
    struct msg_generation generation;
    int code, number; /* code: what it is about to end with; number: of its start, counted */
};

struct node {
    bool alive, cut, stubborn;
    int worker, attempt;
    struct agent *agent;
    int conn; /* -1: none */
    rm_time ticks_at, launcher_ticks_at, to_agent_at, to_coordinator_at, link_up_at, link_down_at;
    rm_time known_at; /* since when the coordinator knows what runs here; RM_NEVER: it does not */
    int launcher;     /* number of the newest, 0: none yet */
    bool launcher_alive;
    struct launch *launch; /* NULL: it has not heard `setup` */
    struct process process[PROCESSES];
};

struct sim {
    uint64_t chance, seq;
    rm_time now;
    enum plant plant;
    bool trace;
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
    struct msg_generation sent;          /* the newest that was told to start, and when */
    rm_time sent_at;
    int done[TERMS_MAX][256]; /* processes that ended with 0, by generation */
    int world;
    bool over;
    int exit_code;
    int64_t generations, harms;
    char violation[256], end_why[200];
};

#endif
