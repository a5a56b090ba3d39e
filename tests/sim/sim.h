/* The seeded simulator: the shipped cores (coordinator, agents, trainers' elastic cores) in virtual time.
 *
 * Everything around them is a model: processes that are started, killed, stopped, let go on and started
 * again; a network that delays, keeps the order within a connection only, falls silent, and cuts connections
 * with what is under way; rings whose ranks see the header, have the words and commit each at a moment of its
 * own; compute threads that get stuck;
 * state transfers; a checkpoint store; and `run` with its drills. One seed decides all chance, so that a
 * failure replays from its seed. sim_check.c holds the invariants, which look at the truth (what the memories
 * contain, who was really stopped), not at what the cores believe.
 *
 * A stopped process (sim_pause.c) does nothing: what comes for it, its own timers too, waits until it goes
 * on, and then finds it at once. What a seed means changes with the simulator and with the cores.
 *
 * Instead of what a seed draws it plays a trace of machines (replay.h), built with RM_SIM_LONG: hours and
 * days, with the heartbeats that a job has by itself. */
#ifndef RM_TESTS_SIM_H
#define RM_TESTS_SIM_H

#include "agent/core/agent.h"
#include "agent/core/heed.h"
#include "coordinator/core/rdzv.h"
#include "tests/sim/replay.h"
#include "tests/sim/sim_lanes.h"
#include "tests/sim/sim_shots.h"
#include "trainer/core/elastic.h"
#include "trainer/core/pace.h"

#ifdef RM_SIM_LONG
enum {
    NODES_MAX = 6000,
    CONNS_MAX = 20000,
    RINGS_MAX = 20000,
    SLICES_MAX = 20000,
    STEPS_MAX = 500000,
    EVENTS_MAX = 1000000000
};
#define HEARTBEAT  RM_S
#define LOST_AFTER (5 * RM_S)
#else
enum {
    NODES_MAX = 400,
    CONNS_MAX = 2000,
    RINGS_MAX = 600,
    SLICES_MAX = 2400,
    STEPS_MAX = 400,
    EVENTS_MAX = 2000000
};
#define HEARTBEAT  (200 * RM_MS)
#define LOST_AFTER RM_S
#endif

enum {
    SHOTS_MAX = 32,
    PARTS_BASE = 1000, /* a piece's offset is how many parts there are times this, and which one it is */
    WALLS_MAX = 3,
    TAIL_MAX = 60, /* lines of the trace that are kept for a failure */
    TAIL_WIDTH = 240,
    TERM = 2, /* of the first coordinator, so that messages of term 1 are a zombie's */
};

enum plant {
    PLANT_NONE,
    PLANT_LOWER_STEP,      /* stopped tells one step less than is held */
    PLANT_TORN_RECEIVE,    /* a transfer that was cut short counts as held */
    PLANT_PUBLISH_EARLY,   /* one worker's piece counts for another's too */
    PLANT_STOP_UNSEEN,     /* one rank overlooks the stop flag */
    PLANT_REPLAY_STOPPED,  /* after a reconnect an old `stopped` counts for the current round */
    PLANT_LOSE_PROGRESS,   /* progress is acknowledged although it was not told */
    PLANT_SKIP_CATCH_UP,   /* who is one step behind claims to have caught up */
    PLANT_STILL_WAITING,   /* a trainer that waits does not count */
    PLANT_MEMORY_FREE,     /* a new trainer is told that the snapshot memory is free, whoever uses it */
    PLANT_READ_IS_DAMAGE,  /* an agent takes what it can't read for damaged */
    PLANT_LIST_IS_EMPTY,   /* an agent that can't list names nothing */
    PLANT_ONE_FOR_ALL,     /* one machine's trouble is told in everybody's name */
    PLANT_UNWRITTEN,       /* a slice that can't be written is not told of */
    PLANT_BLAME_NOBODY,    /* who can't be reached is not named */
    PLANT_BLAME_ANOTHER,   /* somebody else is */
    PLANT_IMPOSSIBLE,      /* the coordinator's state is one that its core must not let stand */
    PLANT_STUCK_UNSAID,    /* that a call does not return is told to nobody */
    PLANT_ANOTHER_FACE,    /* a trainer says each time that it is another one */
    PLANT_LEAST_IS_MOST,   /* who has received least in a ring says that it has received most */
    PLANT_EARLY_WORDS,     /* words are written over the kept update before all are in this step */
    PLANT_VALID_STAYS,     /* a kept update says that it is whole while words are written over it */
    PLANT_EARLY_K,         /* a pass writes its exponents into the record of the kept update */
    PLANT_EARLY_SEAL,      /* an update counts as complete before its words are there */
    PLANT_READY_FOR_ALL,   /* where one is ready for another transport all take it */
    PLANT_STAYS_READY,     /* where one is not any more somebody stays with it */
    PLANT_NOTICE_LATE,     /* who tells of a machine's end tells of a later moment */
    PLANT_NO_TIME,         /* whose machine goes later says that it leaves now */
    PLANT_SAVE_UNSAID,     /* how long to train between two checkpoints is not told to a trainer */
    PLANT_KEEP_NEWER,      /* `keep` counts checkpoints that are newer than what is published */
    PLANT_WORDS_UNPROVEN,  /* nobody looks whether the words are what their checksums say */
    PLANT_HEADER_UNPROVEN, /* nor whether the header is */
    PLANT_STATES_UNPROVEN, /* nor whether all states have the same bits */
    PLANT_PIECES_UNPROVEN, /* nor whether the pieces of a checkpoint are of states with the same bits */
    PLANT_FAILURE_UNSAID,  /* that a program failed is told to no agent */
    PLANT_FAILURE_TWICE,   /* or by it as of two programs */
    PLANT_STALE_LANES,     /* in another ring a rank adds what it had computed for the one before */
    PLANT_LANE_TWICE,      /* a rank computes a lane that another one was dealt */
    PLANT_LANE_NOBODYS,    /* or leaves one out that it was */
    PLANT_LANES_DROPPED,   /* who was told to go on with its lanes computes them again */
    PLANT_LATE_READY,      /* who has filled its memory says so much later, and counts on meanwhile */
    PLANT_MAY_LEAVES,      /* whose machine may go leaves at that word */
    PLANT_GONE_UNSAID,     /* that a machine does not go after all is told to nobody */
    PLANT_SOONER_UNSAID,   /* nor that it goes sooner than was told */
    PLANT_MACHINE_UNSAID,  /* which machine it is that goes is told to nobody */
    PLANT_DEAL_APART,     /* one rank hears another time a lane than the others, and shares lanes out by it */
    PLANT_LISTENER_HOLDS, /* who has heard a part of a state says that it holds it */
    PLANT_SOURCE_IS_PAIR, /* of who gives something else it is said that it can't be reached */
    PLANT_ONE_ENDS_ALL,   /* in a run what one can't read nobody can, as it has put it aside */
    PLANT_ONE_HOLDS_ALL,  /* and in pods, which wait without end */
    PLANT_FIRST_UNREAD,   /* before the first ring nobody names what an earlier run left */
    PLANT_WAITS_UNSAID,   /* that a store does not take what one worker writes is told to nobody */
    PLANTS
};
extern const char *const plant_names[PLANTS];

/* What is wrong with machines or the store, beside the harms. */
enum trouble_kind {
    TROUBLE_NONE,
    TROUBLE_READS_ONE,   /* one worker's agent can't read checkpoints */
    TROUBLE_READS_ALL,   /* nobody's can */
    TROUBLE_MACHINE_ONE, /* one worker's trainer says that its machine won't do */
    TROUBLE_MACHINE_ALL, /* every trainer does */
    TROUBLE_DISK_ONE,    /* one worker's agent can't write slices */
    TROUBLE_VANISH,      /* pieces that were written are not there when they are to be published */
    TROUBLE_STUCK_ONE,   /* one worker's agent calls the store, and the call does not return */
    TROUBLE_SOURCE,      /* one worker gives others something else than it says that it holds */
    TROUBLE_AWAY_ONE,    /* one worker's store takes nothing, gives nothing, or neither; others' work */
    TROUBLES
};
extern const char *const trouble_names[TROUBLES];

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
    EV_COMPUTED, /* the sequences of an evaluation are done: into the reduction */
    EV_HEADER,   /* a rank sees what all have said in it */
    EV_WORDS,    /* a rank has all words */
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
    EV_PULSE,          /* a trainer tells its agent that it moves */
    EV_TERM,           /* SIGTERM reaches an agent */
    EV_REAPED,         /* run learns that a process has ended */
    EV_COORD_REPLACED, /* run kills a coordinator that says nothing; b: which stop */
    EV_DEADLINE,       /* a: node; its time to leave is over */
    EV_RESUME,         /* a: node, or -1: the coordinator; b: which stop */
    EV_WALL,           /* a: which one rises, or falls (b) */
    EV_NOTICE,         /* a: node, which is told of its machine's end; b: enum msg_notice_word */
    EV_LIE, /* a: node whose machine's voice is a liar's; -1: one is drawn; b: how often it has lied to it */
    EV_RELIEVE,  /* who makes pods asks for the leave of those whose machines may go */
    EV_MACHINES, /* a: moment of the trace; b: its machines go or come now, else it is told of those that go
                  */
    EV_KINDS
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
    int64_t update_step;   /* of the kept update, as its record says; -1: there is none */
    bool torn;             /* what lies there is not what led to any step */
    bool loss_known;       /* of the step held, in the state's own record */
    struct losses losses;  /* that this process knows of, up to it */
    uint64_t flaw;         /* which bits are not what the history made: what its sum is off by; 0: none */
    bool spoilt;           /* and are not what its own sums say: it flipped at rest */
    bool sure;             /* it has looked, and they are */
    bool fresh;            /* received since a header agreed last */
    bool doubted;          /* of a ring no majority of which said whose bits are right */
};

/* What waits for a process that is stopped. */
struct inbox {
    struct ev *list;
    int count, room;
};

struct trainer {
    bool alive, opened;
    bool stopped; /* SIGSTOP */
    bool stuck;   /* its compute thread does not come back; the thread of its link does */
    bool abort_missed, connect_missed; /* while it was stuck */
    int64_t counter, bytes;
    struct inbox inbox;
    int epoch;
    struct elastic *elastic;
    rm_time down_last, up_last; /* FIFO of the link */
    enum elastic_command command;
    struct elastic_result results[3]; /* of a command and those that followed it, not told yet */
    int results_count;
    struct content hears; /* CMD_LISTEN: what has come counts as; whole: it has begun */
    int pieces, tries;    /* of it that have come; times that all were lost */
    bool follows;         /* and began with a state */
    bool again, to_snapshot;
    int command_seq;
    const struct message *form;
    const struct msg_loaded *loaded;
    struct worker_set shares;    /* of a checkpoint, that are there */
    struct msg_generation gives; /* the ring that it gives its share of a checkpoint to; {0, 0} none */
    int part, parts;
    bool final, aborted, stop_flag, save_flag;
    int ring, rank; /* -1 none */
    int pass;       /* of the step; 1: rescaled */
    struct lane_sum sum;
    struct lane_keep keep;
    struct pace pace;    /* of its ring, and */
    uint32_t lane_us;    /* what its newest pass says */
    int64_t op;          /* reductions of this ring that are behind it */
    bool arrived;        /* in the next one */
    bool completing;     /* of which the result is on its way to it */
    bool words;          /* it is that of the words: all are in this step, and the kept update is given up */
    bool sealed;         /* all words are there: whatever happens now, the step is made */
    bool wrong;          /* what it is given as the result is not the sum */
    bool finishing;      /* the command's result is on its way */
    rm_time second_at;   /* when it is ready for another transport than this ring's; RM_NEVER: never */
    bool second_said;    /* in the newest header */
    bool second;         /* uses it */
    int second_failures; /* that were its own; after two it is not ready any more */
    rm_time since;       /* when it was up */
    rm_time slow;        /* its next step takes this much longer */
    rm_time save_every,
        saved_at; /* what it was told; of the newest snapshot or checkpoint that it knows of */
};

struct node {
    bool alive, stopped; /* stopped: the agent */
    bool stranger;       /* run knows nothing of it */
    bool odd;            /* its machine computes other bits than most */
    struct inbox inbox;
    int stops[2];                  /* of agent and trainer, counted: a resume is for one */
    rm_time noticed_at, doomed_at; /* told that its machine goes, and when that does; 0: nobody told it */
    int64_t given_wrong;           /* sums that were none, so often */
    rm_time stepped_at;            /* when it made its newest step */
    struct heed heed;              /* what it makes of... */
    struct notices notices;        /* ...what it was told of its machine */
    bool may_go;                   /* and nothing else was told of it, so that another one is made first */
    bool eased;                    /* who makes pods has asked for its leave, and not taken that back */
    bool stays;                    /* it was told that it goes, and that it does not, with time enough */
    bool early;                    /* its machine goes before its moment */
    bool kept;                     /* and after all it does not go: the moments that were told are none */
    int machine;                   /* on which it is: the number of the first worker there */
    bool lied, let_go, termed;     /* of a liar (sim_liar.c); since then released; told by SIGTERM */
    rm_time lied_at;               /* that it goes, for the first time; 0: never */
    int64_t told_then;             /* newest step, as it was told */
    int nodes_then;    /* processes ever started, as it was told and all trained; 0: not all did */
    rm_time ended_at;  /* of the agent; 0: it lives */
    rm_time leaves_by; /* as a coordinator has heard from it: when it is killed; 0: it named no time */
    rm_time disturbed; /* when it was last stopped, stuck or cut off in any way; RM_NEVER: it still is */
    int64_t heard;     /* highest term that spoke to it, 0 none */
    int worker, attempt, exit_code;
    struct agent *agent;
    int conn; /* -1 none */
    rm_time tick_at;
    struct content memory;
    struct content taken, loaded; /* the areas of the memory that it shares with its trainer */
    int store_users;              /* of `taken` */
    int loads;                    /* under way */
    bool load_in_state, load_stop;
    struct trainer trainer;
    bool listens;                 /* it was told to, and nothing has kept it from that */
    int64_t listens_term;         /* of who told it, */
    int listens_conn;             /* and by which connection */
    struct message *last_stopped; /* owned; only where a plant wants it */
};

struct conn {
    int node;
    bool handed, coord_open, agent_open, coord_told, agent_told;
    rm_time to_coord_last, to_agent_last, cut_coord, cut_agent; /* messages due after cut_* are lost */
    int64_t brings; /* step that the coordinator was told is held there; -1: none */
    rm_time brings_said;
    bool introduced; /* the coordinator was told of its trainer there */
};

/* What a reduction of header words has said to all. */
struct header {
    enum { PASS_FITS, PASS_RESCALED, PASS_NOT_FINITE, PASS_ODD } verdict;
    bool stop, save;             /* somebody said so */
    bool second;                 /* all are ready for the other transport */
    int blind;                   /* rank that overlooks the stop, -1 none */
    uint32_t us[RM_WORKERS_MAX]; /* a lane, of each rank */
    bool look; /* PASS_ODD: nobody can tell, and not all have looked at their own sums yet */
    struct worker_set
        odd; /* PASS_ODD: ranks whose states have not the bits of most; all: there are no most */
};

struct ring {
    struct msg_generation generation;
    int count;
    int worker[RM_WORKERS_MAX], node[RM_WORKERS_MAX], epoch[RM_WORKERS_MAX];
    bool connected[RM_WORKERS_MAX];
    bool broken;
    bool hung;               /* a sum by another transport does not end, and nobody has an error */
    struct header header;    /* the newest that all took part in */
    rm_time reduced, untold; /* its newest step; since when rank 0 does not know when to save; 0: neither */
};

/* Of a job that leaves it to the coordinator when to save. */
struct work {
    rm_time cost[STEPS_MAX + 1]; /* of each step, as made last */
    int64_t newest, snapshot,
        before; /* steps: made; of which a snapshot was taken, and the one before that */
};

struct slice {
    bool used;
    int64_t step;
    bool final;
    int part, parts;
    uint64_t hash, flaw; /* flaw: of the state that it is a part of */
    bool gone;           /* said to be written, and not there */
};

struct published {
    int64_t step;
    bool final, damaged;
    bool pending;  /* its manifest stands when the agent says so, unless that one ends before */
    bool gone;     /* it made way for newer ones */
    bool odd;      /* as its manifest says */
    rm_time stood; /* since when */
    uint64_t hash, flaw;
};

struct tallies {
    int64_t of[TALLIES];
    int64_t shot[SHOTS][RDZV_STATES + 1]; /* by the coordinator's state; the last: there was none */
};

enum wall_kind {
    WALL_CLOSED, /* calls from one worker's trainer to another's come to nothing */
    WALL_CUTS,   /* calls and their handshakes are answered; what is sent then ends the connection */
    WALL_STALLS, /* or does not arrive */
};

struct wall {
    enum wall_kind kind;
    bool small; /* what an evaluation sends passes */
    int from, to;
    bool both; /* and the other way round */
    rm_time at, until;
};

struct scenario {
    int walls;
    struct wall wall[WALLS_MAX];
    int target, min;
    int64_t steps, checkpoint_every, evaluation_every;
    bool exact, calm, below_min, damage, storage_fails, interrupts;
    bool slow_transfers, strict; /* strict: failures count */
    bool fills;                  /* the store has a quota */
    bool mixed;                  /* pods come on machines of two kinds */
    bool odd_may_come;           /* such machines may come later: a stranger was one */
    bool notices;                /* pods are told of their machines' ends */
    bool beside;                 /* a user's program runs beside each trainer */
    bool unsupervised; /* pods: nobody tells who is expected or what is about to happen; who dies is replaced
                        */
    enum trouble_kind trouble;
    int trouble_worker;
    rm_time trouble_at, trouble_until; /* RM_NEVER: for good */
    bool away_takes, away_gives;       /* that worker's store still does */
    rm_time away_within, write_within; /* it says so, at most; a part takes longer than usual; 0: not */
    int64_t resumes;                   /* the step of a checkpoint that an earlier run left, 0 none */
    int keep;                          /* checkpoints that stay */
    int64_t nan_step;                  /* the step that is not finite; 0 none */
    int64_t nan_alone;                 /* the step that one worker takes for one; 0 none */
    int nan_worker;                    /* that one */
    int second_breaks;                 /* of a hundred sums by another transport */
    int rescales, saves; /* of a hundred steps, that fit no scale at first; after which a clock wants one */
    int flips;           /* of a hundred steps, whose sum comes out wrong somewhere */
    int flaws;           /* of a hundred updates or received states, in which a bit flips */
    rm_time step_time, delay;
    rm_time max_loss; /* the coordinator says when to save; 0: the job does */
    int shots;
    struct {
        rm_time at;
        enum shot_kind kind;
    } shot[SHOTS_MAX];
};

/* Of a program beside a trainer. */
struct beside_failure {
    int node, exit_code;
    rm_time at;
    bool followed; /* by another one of the same agent */
    int64_t term;  /* of the coordinator that told it last; 0: none has */
};

struct sim {
    uint64_t seed, rng;
    rm_time now;
    bool trace;
    uint32_t without;         /* shots that are left out, by bit */
    char (*tail)[TAIL_WIDTH]; /* the newest lines of the trace; NULL: not kept */
    int64_t tail_lines;
    enum plant plant;
    bool crowd;            /* as many workers as a job may have, most of which join at once */
    bool listens;          /* newcomers get the state while others train (--listen) */
    struct replay *replay; /* NULL: the seed draws what happens */
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
    bool coord_stopped;
    int coord_stops;
    rm_time coord_disturbed;
    struct inbox coord_inbox;
    bool interrupted;
    struct {
        rm_time since, looks_at; /* since when no step was made, with nothing that excuses it */
        rm_time slow;            /* by which steps were drawn to take longer, all together */
        int64_t step_ops, term;
        int failed; /* told of by the coordinator of that term */
        int64_t failed_in;
        rm_time failed_at[SHOTS_MAX]; // (failed), the newest of them
        bool too_often;               /* so that it ends the job */
    } still;
    rm_time store_back; /* until then it takes nothing */
    struct {
        int64_t step, term; /* what all stand still for */
        bool final;
        struct worker_set writers; /* who was asked for a part of it */
        rm_time since;
    } awaited;
    int64_t calls; /* to the store, that took a time of their own */
    bool store_full;
    int store_takes; /* slices in a hundred, when full */
    int64_t losses, saved_told, evaluated_told, ring_told;
    int last_word; /* exit code of the final event that was told, -1 none */
    struct rdzv_out *rout;
    struct agent_out *aout;
    struct elastic_out *eout;
    rm_time coord_tick_at;
    int spins;
    bool ended;
    int exit_code;
    char end_why[MSG_DETAIL_MAX];
    rm_time ended_at, quiet_since; /* quiet: after the last disturbance */
    int nodes, conns, rings, slices, published_count;
    /* run's view */
    int expected[RM_WORKERS_MAX]; /* attempt, -1 none */
    int node_of[RM_WORKERS_MAX];  /* newest node of a worker, -1 none */
    bool drilled[RM_WORKERS_MAX];
    bool quarantined[RM_WORKERS_MAX];
    bool replaced[RM_WORKERS_MAX]; /* another one was made in its place before it ended */
    bool stands[RM_WORKERS_MAX];   /* a drill stopped it: given up when it is lost */
    /* checks */
    char violation[480];
    int64_t told, completes;
    int64_t resumed; /* from the step of an earlier run's checkpoint */
    bool odd;        /* what is trained is made on machines that are */
    bool evaluated[STEPS_MAX + 1];
    int64_t round;      /* newest that was sent */
    int64_t flawed_at;  /* step of the state in which a bit flipped last; 0: none did */
    bool undecided;     /* nobody could say whose bits are right, and that was not told yet */
    bool flaw_agreed;   /* all of a ring had the same wrong bits */
    bool loaded_since;  /* a checkpoint was loaded since the newest recovery */
    bool vanished_told; /* that pieces are missing */
    bool stuck_told;    /* that a call does not return */
    bool refused_told;  /* that a machine won't do */
    bool others_well;   /* as the job failed: without the one in trouble enough were */
    bool skipped_since; /* a state was not saved, as told, since then */
    struct work work;
    struct {
        bool on;
        int node; /* the newest on that machine, -1: none was */
        rm_time until;
        rm_time left_at;   /* when the newest that was let go from there was first told that it goes... */
        int64_t left_term; /* ...by the coordinator of this term */
    } liar;
    int failures;
    struct beside_failure failure[SHOTS_MAX];
    int64_t planted; /* times that the bug was used */
    int64_t forms, forms_at_recovery;
    enum msg_stop_at stopped_at; /* of the newest stop that was sent */
    int64_t step_ops;            /* steps that a ring reduced */
    struct {                     /* rings of the same processes, without such a step between */
        uint64_t who;
        int64_t step_ops;
        int times;
        rm_time since;
        uint64_t known[RM_WORKERS_MAX]; /* the process of each that was there then; 0: none */
    } same;
    int64_t left_out[RM_WORKERS_MAX]; /* in this term it was told so, and is not in a ring since; 0: no */
    rm_time left_out_at[RM_WORKERS_MAX];
    char waits_for[MSG_DETAIL_MAX]; /* the newest that was told */
    bool unreachable;               /* the end says that too few reach each other, and so it is */
    struct tallies tallies;
    /* from here on only what the counts above say is in use, so that nothing has to be cleared */
    struct node node[NODES_MAX];
    struct conn conn[CONNS_MAX];
    struct ring ring[RINGS_MAX];
    struct slice slice[SLICES_MAX];
    struct published published[SLICES_MAX];
};

/* sim.c */
struct sim *sim_new(void); /* NULL: there is no memory for it */
void sim_free(struct sim *sim);
bool sim_run(struct sim *sim, uint64_t seed);
void sim_handle(struct sim *sim, struct ev *e);
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

/* sim_coord.c: the coordinator and its connections */
void coord_event(struct sim *sim, const struct rdzv_event *event);
void coord_message(struct sim *sim, int conn, const struct message *m);
void conn_cut(struct sim *sim, int conn);
void conn_silence(struct sim *sim, int conn, rm_time how_long);
void coord_start(struct sim *sim);
void coord_die(struct sim *sim);

/* sim_shots.c: run, and what it or chance does to the others */
void run_send_expect(struct sim *sim);
void run_forgets_quarantine(struct sim *sim);
bool run_has_too_few_places(const struct sim *sim);
void run_reaps(struct sim *sim, int node);
void run_worker_quarantined(struct sim *sim, int worker);
void run_worker_lost(struct sim *sim, int worker);
void run_ended(struct sim *sim);
void run_shot(struct sim *sim, int shot);
bool run_makes_another(struct sim *sim, rm_time delay); /* false: the job takes no more */

/* sim_pause.c: processes that stand still */
enum pause_part { PAUSE_AGENT = 1, PAUSE_TRAINER = 2, PAUSE_BOTH = 3 };
bool pause_holds(struct sim *sim, struct ev *e); /* true: e was put aside, and is empty now */
void pause_node(struct sim *sim, int node, enum pause_part part);
void pause_coordinator(struct sim *sim);
void pause_stick(struct sim *sim, int node);
/* node -1: the coordinator */
void pause_resume_later(struct sim *sim, int node, enum pause_part part, rm_time delay);
void pause_resume(struct sim *sim, int node, enum pause_part part, int stop);
void pause_forget(struct inbox *inbox);
bool pause_is_disturbed(const struct sim *sim, int node, rm_time within);
void pause_disturb(struct sim *sim, int node, rm_time until);

/* sim_node.c: agents and their trainers as processes */
int node_spawn(struct sim *sim, int worker, int attempt, bool stranger);
void node_event(struct sim *sim, int node, struct agent_event *event);
void node_die(struct sim *sim, int node, int exit_code);
void trainer_die(struct sim *sim, int node, int code);
void trainer_event(struct sim *sim, int node, const struct elastic_event *event);
void link_to_trainer(struct sim *sim, int node, const struct message *m);
void trainer_opened(struct sim *sim, int node);
void trainer_setup(struct sim *sim, int node, const struct message *m);
void trainer_pulse(struct sim *sim, int node);
void link_to_agent(struct sim *sim, int node, const struct message *m);

/* sim_ring.c: what the compute threads do */
void compute_start(struct sim *sim, int node, const struct elastic_action *a);
void compute_abort(struct sim *sim, int node);
void compute_done(struct sim *sim, int node, struct elastic_result *result);
void compute_goes_on(struct sim *sim, int node); /* its trainer was stopped or stuck, and no longer is */
struct elastic_result *compute_result(const struct trainer *t, enum elastic_outcome outcome);
void compute_finish(struct sim *sim, int node, enum elastic_outcome outcome, int peer, rm_time delay);
void ring_left(struct sim *sim, int node);                          /* its trainer ended or closed the ring */
bool source_stands(const struct sim *sim, const struct trainer *t); /* a transfer's: nothing comes from it */
int ring_waits_for(const struct sim *sim, int node);                /* worker; -1: it does not wait */
int64_t ring_place(const struct sim *sim, int node);        /* in the stream of the reduction; -1: in none */
bool ring_is_walled(struct sim *sim, int ring, bool small); /* what is sent now does not come through */
bool ring_member_lives(const struct sim *sim, const struct ring *ring, int rank);
bool ring_member_moves(const struct sim *sim, const struct ring *ring, int rank);
bool ring_at_work(enum elastic_command c);
void ring_gives_up(struct sim *sim, int index, int rank); /* by itself: the others see it */
void ring_cut(struct sim *sim, int from, int to); /* workers; where the one calls the other in a ring */

/* sim_exchange.c: the reductions of rings */
uint64_t content_after(const struct sim *sim, uint64_t hash, int64_t step, const struct ring *ring);
/* Of a pass, or of an evaluation. again: the one before did not fit. */
void exchange_lanes(struct sim *sim, int node, bool again, rm_time takes);
void exchange_arrive(struct sim *sim, int node);                 /* in its ring, to reduce */
void exchange_header(struct sim *sim, int node);                 /* of its ring has come to it */
void exchange_words(struct sim *sim, int node);                  /* likewise */
void exchange_update(struct sim *sim, int node);                 /* begins */
void exchange_commit(struct sim *sim, struct node *n);           /* a sealed update */
void exchange_died(struct sim *sim, int node);                   /* its trainer, wherever it was */
void exchange_flaw(struct sim *sim, struct node *n, int others); /* a bit of its state may flip */
void exchange_try(struct sim *sim, int ring);                    /* once all are there */
void ring_flows(struct sim *sim);                                /* a wall has fallen */

/* sim_listen.c */
void listen_start(struct sim *sim, int node);
/* Its time has come. True: it is not over. */
bool listen_goes_on(struct sim *sim, int node, struct elastic_result *result);
/* R18: nobody waits for the state of one that could listen. */
void listen_check_form(struct sim *sim, const struct msg_form *f);

/* sim_pairs.c: workers that can't reach each other */
void pairs_draw(struct sim *sim);
void pairs_begin(struct sim *sim);
void pairs_wall_rises(struct sim *sim, int wall);
void pairs_wall_falls(struct sim *sim, int wall);
bool pairs_reach(const struct sim *sim, int from, int to); /* calls do, and handshakes */
bool pairs_carry(const struct sim *sim, int from, int to, enum wall_kind *ret_why, bool small); /* bytes do */
void pairs_probe(struct sim *sim, int node, const struct msg_probe *probe);
void pairs_told(struct sim *sim, const struct rdzv_tell *t);
void pairs_check_form(struct sim *sim, const struct msg_form *f);
void pairs_ended(struct sim *sim);
bool pairs_stood(const struct sim *sim, int a, int b, rm_time since); /* a wall, one way or the other */
int pairs_well_since(const struct sim *sim, rm_time since); /* how many, of those that reach each other */
bool pairs_wait_for_ever(const struct sim *sim);            /* and rightly so, with the reason */

/* sim_store.c */
bool published_stands(const struct published *p);
/* Of the state that a piece is of, as its writer told it. */
uint64_t store_named_bits(const uint8_t sha256[RM_HASH_BYTES]);
void store_stands(struct sim *sim, int published);
void store_earlier(struct sim *sim, int64_t step); /* a checkpoint that an earlier run left */
bool store_is_away(const struct sim *sim);
void store_action(struct sim *sim, int node, const struct agent_action *a);

/* sim_notice.c */
void notice_draw(struct sim *sim);
bool notice_will_go(struct sim *sim, int w, rm_time lead); /* false: nobody is there who has not been told */
bool notice_shoot(struct sim *sim, enum shot_kind kind, int w);
void notice_heard(struct sim *sim, const struct ev *e);
/* first: by the first word that it hears at all. */
void notice_tell(struct sim *sim, int node, enum msg_notice_word word, rm_time until, bool first);
void notice_relieve(struct sim *sim);
void notice_deadline(struct sim *sim, int node); /* perhaps another one than it was */
void notice_ends(struct sim *sim, int node, bool by_itself);
void notice_check_skipped(struct sim *sim);

/* sim_trouble.c */
void trouble_draw(struct sim *sim);
void trouble_draw_source(struct sim *sim);
void trouble_draw_away(struct sim *sim);
void trouble_draw_writes(struct sim *sim);
bool trouble_is_wrong_source(const struct sim *sim, int node);
void trouble_source_said(struct sim *sim, struct elastic_result *r, int source);
void trouble_check_told(struct sim *sim, const struct rdzv_tell *t);
rm_time trouble_over(const struct sim *sim);
bool trouble_reads_fail(struct sim *sim, int node);
bool trouble_lists_fail(struct sim *sim, int node);
bool trouble_pieces_vanish(const struct sim *sim);
bool trouble_is_stuck(const struct sim *sim, int node); /* a call of its does not return, or just has */
rm_time trouble_returns_at(const struct sim *sim, int node, bool reads); /* sim->now: soon */
bool trouble_disk_full(const struct sim *sim, int node);
bool trouble_disk_refuses(const struct sim *sim, int node);
bool trouble_takes_nothing(const struct sim *sim, int node);
bool trouble_gives_nothing(const struct sim *sim, int node);
rm_time trouble_longer(struct sim *sim, int node, enum agent_event_kind kind); /* a call to the store takes */
bool trouble_machine_fails(const struct sim *sim, int node);
void trouble_say(struct sim *sim, struct message *m); /* what its trainer says then */
rm_time
trouble_long_known(const struct sim *sim); /* a checkpoint that stands since then is passed over by none */
void trouble_check_form(struct sim *sim, const struct msg_form *form);
void trouble_check_refused(struct sim *sim, const struct rdzv_tell *tell);
bool trouble_all_damaged(const struct sim *sim);
bool trouble_takes_one(const struct sim *sim);
bool trouble_is_own(const struct sim *sim, int node,
                    rm_time since);              /* its worker alone has it, or had since */
bool trouble_holds_alone(const struct sim *sim); /* the newest state, and nobody can be given it */
bool trouble_excuses(const struct sim *sim);     /* nobody can make a step now */
rm_time trouble_takes(const struct sim *sim);    /* until others go on without the one that has it */
bool trouble_ends_it(const struct sim *sim);
bool trouble_may_wait(const struct sim *sim);

/* sim_check.c */
uint64_t check_exact_hash(int64_t step); /* what exact histories hold after `step` steps */
void check_form(struct sim *sim, const struct message *m);
void check_tell(struct sim *sim, const struct rdzv_tell *t);
void check_reduction(struct sim *sim, const struct ring *ring);
void check_update_stands(struct sim *sim, const struct ring *ring);
void check_flawless(struct sim *sim, const struct ring *ring);  /* R15, of those who add up their lanes */
void check_proven(struct sim *sim, int node, const char *what); /* what it takes for a result */
void check_kept(struct sim *sim, int node, const struct message *m);  /* what its trainer tells of it */
uint64_t check_publish(struct sim *sim, const struct msg_publish *p); /* returns which bits flipped in it */
void check_link_term(struct sim *sim, int node, const struct message *m);
void check_blame(struct sim *sim, int node);
void check_end(struct sim *sim);
struct msg_state content_state(const struct content *c);
double content_loss(const struct content *c);
struct content content_new(int64_t step, uint64_t hash); /* whole, from elsewhere: no update led to it here */

extern const char *const sim_fingerprint[2]; /* by `odd` */

/* sim_replay.c, of a trace */
void replay_draw(struct sim *sim);
void replay_settings(struct sim *sim);
void replay_begin(struct sim *sim);
void replay_moment(struct sim *sim, int moment, bool now);
void replay_ends(struct sim *sim, int node, bool by_itself); /* who was told */
void replay_over(struct sim *sim);
rm_time replay_lanes(const struct sim *sim, const struct trainer *t);
rm_time replay_step_of_one(const struct sim *sim); /* the longest there is */

/* ---- sim_saves.c ---- */
void saves_draw(struct sim *sim);
void saves_connect(struct trainer *t, rm_time now);
bool saves_due(const struct sim *sim, const struct trainer *t);
void saves_step(struct sim *sim, struct ring *ring, int64_t step, bool save);
void saves_check_sent(struct sim *sim, rm_time every);
void saves_check_form(struct sim *sim, const struct msg_form *f);

/* sim_liar.c: a machine that says again and again that it goes, and stays */
void liar_draw(struct sim *sim);
int liar_machine(struct sim *sim, int node); /* on which a worker that starts is */
bool liar_is_on(const struct sim *sim, int node);
void liar_speaks(struct sim *sim, const struct ev *e);
void liar_check_release(struct sim *sim, int node);

/* sim_still.c */
void still_look(struct sim *sim);
void still_save(struct sim *sim, const struct msg_save *save); /* is asked for */
void still_told(struct sim *sim, const struct rdzv_tell *t);
bool still_ends(const struct sim *sim); /* its failures were too many: that was decided */

/* sim_settings.c: what the job says of patience, places and lanes */
void settings_vary(const struct sim *sim, struct rdzv_settings *s);

/* sim_beside.c: programs beside trainers, and their failures */
void beside_draw(struct sim *sim);
void beside_settle(const struct sim *sim, struct rdzv_settings *s);
bool beside_fails(struct sim *sim, int node); /* instead of its trainer; false: that one ends by itself */
bool beside_says_twice(struct sim *sim, int node, const struct message *m, struct message *ret);
void beside_check_told(struct sim *sim, const struct rdzv_tell *t);
void beside_check_end(struct sim *sim);

#endif
