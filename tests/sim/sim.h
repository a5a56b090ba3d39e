/* The seeded simulator: the shipped cores (coordinator, agents, trainers' elastic cores) in virtual time.
 *
 * Everything around them is a model: processes that are started, killed and started again; a network that
 * delays, keeps the order within a connection only, and cuts connections with what is under way; rings whose
 * ranks commit at different moments; state transfers; a checkpoint store; and `run` with its drills. One seed
 * decides all chance, so that a failure replays from its seed. sim_check.c holds the invariants, which look
 * at the truth (what the memories contain), not at what the cores believe. */
#ifndef RM_TESTS_SIM_H
#define RM_TESTS_SIM_H

#include "agent/core/agent.h"
#include "agent/rdzv/rdzv.h"
#include "trainer/core/elastic.h"

enum {
    NODES_MAX = 160,
    CONNS_MAX = 2000,
    RINGS_MAX = 600,
    SLICES_MAX = 600,
    SHOTS_MAX = 24,
    STEPS_MAX = 400,
    EVENTS_MAX = 2000000,
    TERM = 2, /* of the first coordinator, so that messages of term 1 are a zombie's */
};

enum plant {
    PLANT_NONE,
    PLANT_LOWER_STEP,     /* stopped tells one step less than is held */
    PLANT_TORN_RECEIVE,   /* a transfer that was cut short counts as held */
    PLANT_PUBLISH_EARLY,  /* one worker's piece counts for another's too */
    PLANT_STOP_UNSEEN,    /* one rank overlooks the stop flag */
    PLANT_REPLAY_STOPPED, /* after a reconnect an old `stopped` counts for the current round */
    PLANT_LOSE_PROGRESS,  /* progress is acknowledged although it was not told */
    PLANT_SKIP_CATCH_UP,  /* who is one step behind claims to have caught up */
    PLANTS
};
extern const char *const plant_names[PLANTS];

enum ev_kind {
    EV_TO_COORD,
    EV_TO_AGENT,
    EV_COORD_CLOSED,
    EV_AGENT_CLOSED,
    EV_CONNECTED,
    EV_CONNECT_FAILED,
    EV_LINK_TO_AGENT,
    EV_LINK_TO_TRAINER,
    EV_OPENED,
    EV_TRAINER_GONE,
    EV_COMPUTED, /* a step's lanes are done: into the reduction */
    EV_DONE,
    EV_PEER_GONE,
    EV_STORED,
    EV_COORD_TICK,
    EV_AGENT_TICK,
    EV_SPAWN,
    EV_EXPECT,
    EV_ACT,
    EV_SHOT,
    EV_COORD_START,
};

struct ev {
    rm_time at;
    uint64_t seq;
    enum ev_kind kind;
    int a, b, c;
    struct message *message; /* owned */
    struct elastic_result *result;
    struct agent_event *stored;
    struct rdzv_event *command;
};

/* What a memory really contains. */
struct content {
    bool whole;
    int64_t step;
    uint64_t hash, parent; /* of the history; parent: before the newest update */
    int64_t update_step;   /* kept update, -1 none */
};

struct trainer {
    bool alive, opened;
    int epoch;
    struct elastic *elastic;
    rm_time down_last, up_last; /* FIFO of the link */
    enum elastic_command command;
    int command_seq;
    const struct message *form;
    const struct msg_loaded *loaded;
    int part, parts;
    bool final, aborted, stop_flag;
    int ring, rank; /* -1 none */
    bool arrived, completing, finishing;
};

struct node {
    bool alive;
    int64_t heard; /* highest term that spoke to it, 0 none */
    int worker, attempt, exit_code;
    struct agent *agent;
    int conn; /* -1 none */
    rm_time tick_at;
    struct content memory;
    struct content snapshot; /* what the snapshot memory holds, and who may touch it */
    int store_users;
    struct trainer trainer;
    struct message last_stopped;
    bool last_stopped_set;
};

struct conn {
    int node;
    bool handed, coord_open, agent_open, coord_told, agent_told;
    rm_time to_coord_last, to_agent_last, cut_coord, cut_agent; /* messages due after cut_* are lost */
};

struct ring {
    struct msg_generation generation;
    int count;
    int worker[RM_WORKERS_MAX], node[RM_WORKERS_MAX], epoch[RM_WORKERS_MAX];
    bool connected[RM_WORKERS_MAX];
    bool broken;
    int64_t ops; /* reductions completed */
};

struct slice {
    bool used;
    int64_t step;
    bool final;
    int part, parts;
    uint64_t hash;
};

struct published {
    int64_t step;
    bool final, damaged, refused;
    uint64_t hash;
};

enum shot_kind {
    SHOT_KILL,
    SHOT_CRASH,
    SHOT_TRAINER,
    SHOT_TRAINER_CRASH,
    SHOT_TERM,
    SHOT_JOIN,
    SHOT_CUT,
    SHOT_INTERRUPT,
    SHOT_ZOMBIE,
    SHOT_COORDINATOR,
    SHOTS
};

struct scenario {
    int target, min;
    int64_t steps, checkpoint_every, evaluation_every;
    bool exact, calm, below_min, damage, storage_fails, interrupts;
    rm_time step_time, delay;
    int shots;
    struct {
        rm_time at;
        enum shot_kind kind;
    } shot[SHOTS_MAX];
};

struct sim {
    uint64_t seed, rng;
    rm_time now;
    bool trace;
    enum plant plant;
    struct scenario scenario;
    struct ev *heap;
    int heap_count, heap_room;
    uint64_t seq;
    int64_t events;
    struct rdzv *rdzv; /* NULL while no coordinator lives */
    struct rdzv_settings settings;
    int64_t term;
    bool doomed; /* dies after `doomed_after` more actions */
    int doomed_after;
    bool interrupted;
    int64_t losses, saved_told, evaluated_told, ring_told;
    int last_word; /* exit code of the final event that was told, -1 none */
    struct rdzv_out *rout;
    struct agent_out *aout;
    struct elastic_out *eout;
    rm_time coord_tick_at, coord_cmd_last;
    int spins;
    bool ended;
    int exit_code;
    char end_why[MSG_DETAIL_MAX];
    rm_time ended_at;
    struct node node[NODES_MAX];
    int nodes;
    struct conn conn[CONNS_MAX];
    int conns;
    struct ring ring[RINGS_MAX];
    int rings;
    struct slice slice[SLICES_MAX];
    int slices;
    struct published published[SLICES_MAX];
    int published_count;
    /* run's view */
    int expected[RM_WORKERS_MAX]; /* attempt, -1 none */
    int node_of[RM_WORKERS_MAX];  /* newest node of a worker, -1 none */
    bool drilled[RM_WORKERS_MAX];
    /* checks */
    char violation[480];
    int64_t told, evaluations, completes;
    bool evaluated[STEPS_MAX + 1];
    int64_t round;     /* newest that was sent */
    bool loaded_since; /* a checkpoint was loaded since the newest recovery */
    int64_t planted;   /* times that the bug was used */
    int64_t forms, forms_at_recovery;
};

/* sim.c */
bool sim_run(struct sim *sim, uint64_t seed, enum plant plant, bool trace);
void sim_fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace_message(struct sim *sim, const char *who, int node, const struct message *m);

/* sim_queue.c */
struct ev *sim_at(struct sim *sim, rm_time at, enum ev_kind kind, int a, int b, int c);
bool sim_next(struct sim *sim, struct ev *ret);
void ev_clear(struct ev *e);
struct message *sim_message(const struct message *m);
uint64_t sim_below(struct sim *sim, uint64_t bound);
bool sim_chance(struct sim *sim, int percent);
rm_time sim_time(struct sim *sim, rm_time low, rm_time high);
uint64_t sim_hash(uint64_t a, uint64_t b, uint64_t c);
void sim_lineage(uint64_t hash, uint8_t out[RM_HASH_BYTES]);
uint64_t sim_lineage_hash(const uint8_t lineage[RM_HASH_BYTES]);

/* sim_coord.c: coordinator, its connections, and run */
void coord_event(struct sim *sim, const struct rdzv_event *event);
void coord_message(struct sim *sim, int conn, const struct message *m);
void run_send_expect(struct sim *sim, rm_time delay);
void run_node_ended(struct sim *sim, int node);
void run_shot(struct sim *sim, int shot);
void conn_cut(struct sim *sim, int conn);
void coord_start(struct sim *sim);
void coord_die(struct sim *sim);

/* sim_node.c: agents and their trainers as processes */
int node_spawn(struct sim *sim, int worker, int attempt);
void node_event(struct sim *sim, int node, struct agent_event *event);
void node_die(struct sim *sim, int node, int exit_code);
void trainer_die(struct sim *sim, int node, int code);
void trainer_event(struct sim *sim, int node, const struct elastic_event *event);
void link_to_trainer(struct sim *sim, int node, const struct message *m);
void trainer_opened(struct sim *sim, int node);
void trainer_setup(struct sim *sim, int node, const struct message *m);

/* sim_ring.c: what the compute threads do */
void compute_start(struct sim *sim, int node, const struct elastic_action *a);
void compute_abort(struct sim *sim, int node);
void compute_arrive(struct sim *sim, int node);
void compute_done(struct sim *sim, int node, struct elastic_result *result);
void ring_left(struct sim *sim, int node); /* its trainer ended or closed the ring */
uint64_t content_after(const struct sim *sim, uint64_t hash, int64_t step, const struct ring *ring);

/* sim_store.c */
void store_action(struct sim *sim, int node, const struct agent_action *a);

/* sim_check.c */
void check_form(struct sim *sim, const struct message *m);
void check_tell(struct sim *sim, const struct rdzv_tell *t);
void check_reduction(struct sim *sim, const struct ring *ring);
void check_publish(struct sim *sim, const struct msg_publish *p);
void check_link_term(struct sim *sim, int node, const struct message *m);
void check_end(struct sim *sim);
struct msg_state content_state(const struct content *c);

#endif
