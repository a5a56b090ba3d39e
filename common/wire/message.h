/* Every message between coordinator, agent and trainer, as one tagged struct with one codec.
 *
 * Control messages (coordinator <-> agent) travel as JSON text frames over WebSocket, link messages (agent
 * <-> trainer) as length-prefixed JSON over a Unix socket; several types are used on both. A struct message
 * owns nothing: it has fixed-size members with the ceilings of limits.h and below. It is as large as the
 * largest type (tens of KiB), so a step's messages lie in an arena (message_place), each with room for its
 * own type alone. Hence a message is copied by message_copy, which touches no more, and never by assignment;
 * a body (`m->form`) may be assigned.
 *
 * message_write adds one line of JSON to out. message_read fills *ret from untrusted text: every member that
 * the type needs must be there, of its kind and within its bounds, else ERR_PROTOCOL with a sentence and *ret
 * is undefined. Members that the type does not know are ignored, so that newer programs may say more.
 * 64-bit identities and hashes are hex strings in JSON; steps and times are integers. Pure but for the memory
 * that JSON takes. docs/protocol.md tells who sends what and when. */
#ifndef RM_WIRE_MESSAGE_H
#define RM_WIRE_MESSAGE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/arena.h"
#include "common/base/error.h"
#include "common/base/fault_class.h"
#include "common/base/lane_set.h"
#include "common/base/limits.h"
#include "common/base/set.h"
#include "common/base/str.h"
#include "common/base/time.h"

enum {
    /* version that hello and setup carry; another one is refused by name. A ring's header has room for each
     * worker, so that programs built for another most of them speak another one. */
    MSG_PROTOCOL = 17 + (RM_WORKERS_MAX == 64 ? 0 : 1000 + RM_WORKERS_MAX),
    MSG_NONCE_BYTES = 32,    /* of challenge and hello */
    MSG_DETAIL_MAX = 400,    /* a fault's sentence, with its NUL */
    MSG_OUTPUT_MAX = 4096,   /* what a program that failed said last, with its NUL */
    MSG_FILE_MAX = 56,       /* a checkpoint's file name inside its folder, with its NUL */
    MSG_FOLDER_MAX = 40,     /* which folder of checkpoints it is, with its NUL */
    MSG_PIECES_PER_PART = 4, /* byte ranges that one worker writes for a checkpoint at most */
    MSG_PIECES_MAX = MSG_PIECES_PER_PART * RM_WORKERS_MAX,
    MSG_SPEC_MAX = 16 * 1024, /* the job's canonical JSON inside setup and welcome, with its NUL */
};

/* What a JSON number holds exactly everywhere: no number of a message is higher. */
#define MSG_NUMBER_MOST (((int64_t)1 << 53) - 1)

enum msg_type {
    /* coordinator -> agent */
    MSG_CHALLENGE,
    MSG_WELCOME,
    MSG_ACK,
    MSG_STOP, /* also agent -> trainer */
    MSG_FORM, /* also agent -> trainer */
    MSG_GO,   /* also agent -> trainer */
    MSG_SAVE, /* also agent -> trainer */
    MSG_LIST, /* name the checkpoints that you can read */
    MSG_PUBLISH,
    MSG_RELEASE, /* also agent -> trainer: exit 0 */
    MSG_ABANDON,
    MSG_PROBE,      /* also agent -> trainer */
    MSG_SAVE_EVERY, /* also agent -> trainer */
    MSG_LISTEN,     /* also agent -> trainer */
    /* agent -> coordinator */
    MSG_HELLO,
    MSG_HEARTBEAT, /* also trainer -> agent */
    MSG_PROGRESS,  /* also trainer -> agent */
    MSG_EVALUATED, /* also trainer -> agent */
    MSG_NOTICED,
    MSG_LEAVING,
    MSG_FAULT,   /* also trainer -> agent */
    MSG_STOPPED, /* also trainer -> agent */
    MSG_READY,   /* also trainer -> agent */
    MSG_CHECKPOINTS,
    MSG_CHECKPOINTED,
    MSG_PUBLISHED,
    MSG_SAVE_WAITS,
    MSG_FINISHED, /* also trainer -> agent */
    MSG_PROBED,   /* also trainer -> agent */
    MSG_REPORTED, /* also trainer -> agent, which is a launcher */
    MSG_HEARD,    /* also trainer -> agent */
    MSG_FROZEN,   /* also trainer -> agent, which is a launcher */
    /* agent -> trainer */
    MSG_SETUP,
    MSG_LOADED,
    MSG_SNAPSHOT_FREE,
    MSG_HOLD, /* to a launcher */
    /* trainer -> agent */
    MSG_UP,
    MSG_SNAPSHOT,
    MSG_SNAPSHOT_WANTED, /* its memory is needed for a newer one */
    MSG_LOAD,
    MSG_TYPES
};

/* (term, n), compared in that order; {0, 0} is none. */
struct msg_generation {
    int64_t term, n;
};

static inline int generation_compare(struct msg_generation a, struct msg_generation b)
{
    if (a.term != b.term)
        return a.term < b.term ? -1 : 1;
    return a.n < b.n ? -1 : a.n > b.n;
}

/* A whole state that somebody holds in memory or in a checkpoint. */
struct msg_state {
    bool held; /* false: nothing, the rest is zero */
    int64_t step;
    uint8_t lineage[RM_HASH_BYTES];
};

enum msg_role {
    ROLE_KEEP,     /* holds the resume step already */
    ROLE_CATCH_UP, /* one step behind: fetch the kept update of the resume step from sources[0] */
    ROLE_FOLLOW,   /* one step behind, too, and nobody waits for that: it connects, is ready, has none of the
                      lanes of the ring's first step, and fetches the update of the resume step from a member
                      while the others compute theirs */
    ROLE_RECEIVE,  /* fetch parameters and moments from all sources, a slice from each */
    ROLE_LOAD,     /* all load: each member's agent reads the share of its rank (`loaded`), the others' come
                      from their trainers */
    ROLE_INIT,     /* nothing exists: start from the seed or from model.init, step 0 */
};

enum msg_stop_at {
    STOP_NOW,      /* abort what is in flight and report */
    STOP_BOUNDARY, /* raise the stop flag in the next reduction; all stop after that same step */
};

enum msg_phase {
    PHASE_IDLE,     /* trainer up, never formed; also: no trainer */
    PHASE_STOPPED,  /* out of the ring, state at rest */
    PHASE_FORMING,  /* connecting and receiving */
    PHASE_READY,    /* waiting for go */
    PHASE_TRAINING, /* stepping, evaluating or finished inside a ring */
};

enum msg_fault_kind {
    FAULT_TRAINER_EXIT, /* the agent's trainer died; the agent starts another one */
    FAULT_RING,         /* a ring connection or a transfer broke; peer names the worker or is -1 */
    FAULT_STORAGE,      /* a checkpoint can't be written, read or verified */
    FAULT_NOT_FINITE,   /* NaN or Inf in loss or gradient; detail names step, lane and tensor */
    FAULT_LINEAGE,      /* ranks disagree on the state that they train on */
    FAULT_DATA,         /* the training data are gone or changed */
    FAULT_HANG,         /* format only */
    FAULT_MACHINE,      /* memory, a system call: this worker can't go on */
    FAULT_PROGRAM,      /* a process of the user's program failed; exit_code is its own */
    FAULT_PROOF,        /* a sum of a step is not what its checksums say: this rank commits nothing of it */
};

struct msg_member {
    int worker, attempt;
    uint64_t incarnation;         /* of its agent */
    char address[RM_ADDRESS_MAX]; /* of its trainer's data port */
    enum msg_role role;           /* meaningless in `sources` */
};

/* A byte range of a checkpoint's file and the SHA-256 of its bytes. */
struct msg_piece {
    char file[MSG_FILE_MAX];
    int64_t offset, bytes;
    uint8_t sha256[RM_HASH_BYTES];
};

struct msg_challenge {
    uint8_t nonce[MSG_NONCE_BYTES];
};

struct msg_welcome {
    uint8_t
        proof[RM_HASH_BYTES]; /* over the agent's nonce; filled by the coordinator's shell, and so is spec */
    char spec[MSG_SPEC_MAX];  /* the job's canonical JSON, for an agent that has none */
};

struct msg_ack {
    int64_t step;      /* every progress up to here is known */
    int64_t evaluated; /* and every evaluation up to here; -1 none */
};

struct msg_stop {
    int64_t round; /* grows with every QUIESCING; echoed by `stopped` */
    enum msg_stop_at at;
    rm_time within; /* the processes of a user's program are ended this long after SIGTERM at the latest, ns;
                       0: when the job's gracePeriod is over */
};

struct msg_form {
    int count;
    struct msg_member member[RM_WORKERS_MAX]; /* in rank order; each finds itself and its role by worker */
    struct msg_state resume;                  /* step and lineage; held is false for ROLE_INIT */
    int sources_count;
    struct msg_member source[RM_WORKERS_MAX]; /* who serves the state; may hold one that leaves */
    int64_t evaluated; /* highest step whose evaluation is known, -1 none: it is not evaluated again */
    int64_t saved;     /* highest published checkpoint, -1 none: a periodic one above it is still due */
    rm_time saved_ago; /* since the newest was published, or since the coordinator began, ns */
    int64_t begun;     /* generations of this job that began to train before, in all terms */
    /* Of the step behind `resume`, of which some members have lanes: whose each lane is in this ring, by
     * rank. 0: nobody has any, and all have their usual shares. */
    int lanes_count;
    int lane_rank[RM_LANES_MAX];
};

/* Worker at index i of `worker` saves part i of count: slice model_part(parameters, i, count). */
struct msg_save {
    int64_t step;
    bool final; /* into final/ */
    int count;  /* 0: all take a snapshot after the next step that they make, whichever it is */
    int worker[RM_WORKERS_MAX];
};

/* How long to train between two checkpoints from now on (checkpoint.every: Auto). */
struct msg_save_every {
    rm_time every; /* ns */
};

struct msg_publish {
    int64_t step;
    bool final, exact;
    bool replaces; /* a damaged one of that name: the publisher is not the only one who found it so */
    uint8_t lineage[RM_HASH_BYTES];
    int tensors;
    int8_t k[RM_TENSORS_MAX]; /* exponents per tensor */
    /* what the ring trains with and on, whoever publishes; "": the publisher's own */
    char fingerprint[RM_FINGERPRINT_MAX];
    char data_sha256[RM_HASH_HEX];
    int64_t data_files, data_bytes;
    double loss, held_out; /* of that step, and of step `evaluated`; NaN: not known */
    int64_t evaluated;     /* the newest that was; -1: none */
    int count;
    struct msg_piece piece[MSG_PIECES_MAX];
};

struct msg_release {
    bool over; /* the run is: what an agent is still writing is of no use to anybody */
};

struct msg_abandon {
    int exit_code;  /* the agent's */
    bool elsewhere; /* it is the machine that does not fit: the same worker may take part on another one */
    char why[MSG_DETAIL_MAX];
};

struct msg_hello {
    int protocol;
    char job[64];
    int worker, attempt;
    uint64_t incarnation;
    uint8_t nonce[MSG_NONCE_BYTES]; /* nonce and proof are filled by the agent's shell */
    uint8_t proof[RM_HASH_BYTES];
    int64_t agent_pid, trainer_pid; /* trainer_pid 0: no trainer is up; address and the rest are empty */
    char address[RM_ADDRESS_MAX];   /* of the trainer's data port */
    char fingerprint[RM_FINGERPRINT_MAX]; /* numerics: what the machine is */
    char probe[RM_PROBE_MAX];             /* what it computes; "": nobody measured it */
    char data_sha256[RM_HASH_HEX];        /* content of the training data */
    int64_t data_files, data_bytes;       /* its size */
    struct msg_generation ring;           /* newest generation that it was asked to form; {0,0} none */
    enum msg_phase phase;
    struct msg_state state; /* what the trainer's memory held when last heard of */
    bool finished;
    int64_t begun;     /* generations of this job that are known to have begun to train, in all terms */
    int members_count; /* of that ring, in rank order: a coordinator's successor learns the list from them */
    int member[RM_WORKERS_MAX];
};

struct msg_heartbeat {
    int64_t step, counter; /* counter: grows while the trainer moves, or waits and is alive */
    enum msg_phase phase;
    int waiting_for; /* worker whose data it waits for, -1 none */
    int64_t bytes;   /* received while forming; in a ring how far its incoming stream has come */
};

/* What a step's update was made with, each NaN where nobody knows it: of a state that was taken over, and
 * clip and rate where a program has an optimizer of its own. Never 0 for "unknown". */
struct msg_numbers {
    double norm; /* of the mean gradient, before clipping */
    double clip; /* factor in (0, 1] that clipping took it by */
    double rate; /* learning rate */
};

static inline struct msg_numbers msg_numbers_unknown(void)
{
    return (struct msg_numbers){NAN, NAN, NAN};
}

/* A second way for a step's words, beside the ring (trainer/core/second.h). */
struct msg_transport {
    bool used;                  /* this step's words went by it */
    int64_t switches, failures; /* since the trainer's start: to it, and of it */
    char why[RM_WHY_MAX];       /* "" or why not, from a worker that knows it of itself */
};

enum msg_slow_by { SLOW_BY_UNKNOWN, SLOW_BY_CPU_LIMIT, SLOW_BY_STOLEN_TIME, SLOW_BYS };

/* How fast this worker computes, beside the others of its ring (trainer/core/pace.h). */
struct msg_pace {
    int lanes;       /* of this step that it computed */
    int64_t lane_us; /* which took it so long each, us; 0: not known */
    int slow;        /* percent of the median member's time a lane; 0: it is not slow */
    enum msg_slow_by by;
};

struct msg_progress {
    int64_t step; /* committed just now */
    bool saves;   /* a snapshot of it is taken before training goes on */
    double loss;
    bool loss_known; /* false: taken over from a state whose loss is not known */
    struct msg_numbers numbers;
    int64_t tokens;    /* of the whole step, all workers */
    rm_time step_time; /* wall time of the step here, ns */
    int64_t rescaled;  /* passes run again for scale, counted since the trainer's start */
    rm_time data_wait; /* time in which this step stood still here because its samples were not read yet */
    rm_time
        reduce_time; /* time in which it was summed over the ring here, waiting for slower members included */
    int64_t reduce_bytes; /* sent to the next member for that */
    struct msg_transport second;
    struct msg_pace pace;
};

struct msg_evaluated {
    int64_t step;
    double loss;
};

enum msg_notice_word {
    NOTICED_GONE, /* what was said is withdrawn: nothing else stands */
    NOTICED_MAY,
    NOTICED_WILL,
};

enum { MSG_NOTICE_NAME_MAX = 32, MSG_POOL_MAX = 96, MSG_MACHINE_MAX = 254 }; /* with their NUL */

/* What all notices of the end of a worker's machine come to (common/notice/notice.h): it replaces what this
 * worker said of them before. */
struct msg_noticed {
    enum msg_notice_word word;
    char source[MSG_NOTICE_NAME_MAX], cause[MSG_NOTICE_NAME_MAX]; /* their names; "" for NOTICED_GONE */
    char machine[MSG_MACHINE_MAX]; /* on which this worker is, by its cluster's name; "" not known */
    char pool[MSG_POOL_MAX];       /* with which machines it goes (common/notice/pool.h); "" not known */
    rm_time left;                  /* the machine is there for so long at least, ns; -1: no time was told */
};

struct msg_leaving {
    char reason[64];  /* "SIGTERM" */
    rm_time deadline; /* how long it can still wait, ns; 0 unknown */
    /* By notices alone, of which that is the moment: it trains on until its place is taken, or that is near.
     */
    bool trains_on;
};

struct msg_fault {
    enum msg_fault_kind kind;
    enum fault_class class;
    bool person;   /* somebody has to set it right */
    int exit_code; /* of what it would end; 0 unknown */
    /* worker that is blamed, -1 none; FAULT_LINEAGE of no class: whose state is not the one that counts */
    int peer;
    int64_t step; /* of the checkpoint (FAULT_STORAGE; -1: they can't be listed) or of the step that failed */
    /* FAULT_STORAGE: a call has not returned for so long; 0: it failed. FAULT_PROGRAM: it was so long ago,
     * where it is said again on another connection */
    rm_time lasted;
    bool reading; /* FAULT_STORAGE: that call reads */
    bool memory;  /* FAULT_PROGRAM: it was killed as memory was short */
    int rank;     /* FAULT_PROGRAM: of the process, as RANK said it; -1: not known */
    /* FAULT_PROGRAM, FAULT_TRAINER_EXIT: which of its agent's trainers, counted from 1; filled by the agent;
     * 0: not said */
    int64_t trainer;
    bool over; /* FAULT_PROGRAM: the trainer beside it has ended since, and nothing else may tell so */
    char detail[MSG_DETAIL_MAX];
    char output[MSG_OUTPUT_MAX]; /* FAULT_PROGRAM: its traceback, or its last lines; "": not to be told */
};

struct msg_stopped {
    int64_t round; /* on the link: the newest stop's */
    struct msg_state state;
    int64_t update_step;   /* step whose kept update it can serve, -1 none */
    int64_t trainer_pid;   /* filled by the agent */
    bool discarded;        /* a pass of step + 1 was in flight and is thrown away */
    struct lane_set lanes; /* of step + 1 that it has computed, and keeps the sums of */
};

struct msg_ready {
    struct msg_state state;
    int64_t trainer_pid;           /* filled by the agent */
    rm_time ring_time, state_time; /* spent on connections and on the state, ns */
};

struct msg_checkpoint {
    int64_t step;
    bool final;
    uint8_t lineage[RM_HASH_BYTES];
    char fingerprint[RM_FINGERPRINT_MAX];
    char data_sha256[RM_HASH_HEX]; /* identity of the data that it was trained on */
};

struct msg_checkpoints {
    char folder[MSG_FOLDER_MAX]; /* which one it is (folder_id.h); "": not known, or no folder */
    int count;                   /* newest first */
    struct msg_checkpoint checkpoint[RM_CHECKPOINTS_LISTED];
};

struct msg_checkpointed {
    int64_t step;
    bool final, exact;
    bool damaged; /* one of that name stood there, and was damaged as this worker read it */
    uint8_t lineage[RM_HASH_BYTES];
    uint64_t image; /* the snapshot's: parts of one checkpoint have the same, where it is known */
    int tensors;
    int8_t k[RM_TENSORS_MAX];
    int part, parts;
    rm_time took; /* writing it, ns */
    int count;
    struct msg_piece piece[MSG_PIECES_PER_PART];
};

/* The store does not take this checkpoint (a part of it, or its manifest). It is kept, and tried again. */
struct msg_save_waits {
    int64_t step;
    rm_time age; /* since it was to be written, ns */
    char why[MSG_DETAIL_MAX];
};

struct msg_published {
    int64_t step;
    bool final;
    int64_t bytes;
    rm_time took;
};

struct msg_finished {
    int64_t step;
    uint8_t digest[RM_HASH_BYTES]; /* weightsSha256 */
    double loss;                   /* of the last step; see loss_known */
    bool loss_known, exact;
};

/* They train, and hold a state each: pull one while they go on, and every update that they make. */
struct msg_listen {
    int sources_count;
    struct msg_member source[RM_WORKERS_MAX]; /* roles are meaningless */
};

struct msg_heard {
    struct msg_state state; /* that is held now, and goes on with the others'; not held: it can't be had so */
    char why[MSG_DETAIL_MAX];
};

/* See whether the data ports of these answer you. */
struct msg_probe {
    int64_t id;
    int count;
    struct msg_member member[RM_WORKERS_MAX]; /* roles are meaningless */
};

struct msg_probed {
    int64_t id; /* of the probe that it answers */
    int peer;   /* the first one that did not answer, -1: all did */
    char why[MSG_DETAIL_MAX];
};

/* How far a user's program says that it is. Said again and again while its generation runs. */
struct msg_reported {
    int64_t step, steps; /* done; of the whole training, 0: not said */
    double loss;
    bool loss_known;
    rm_time still; /* since when the step is the same, ns */
};

enum msg_frozen_word {
    FROZEN_SAVED,
    FROZEN_NOT_SAVED, /* why, unless it is as it should be; the processes may have stood still all the same */
    FROZEN_RESTORED,  /* they go on from that one */
    FROZEN_HELD,      /* they stood still, as no coordinator was heard for too long; they go on */
};

/* What became of a snapshot of a user's program's processes. */
struct msg_frozen {
    enum msg_frozen_word word;
    int64_t number, bytes;
    rm_time frozen, took; /* the processes stood still; until it was published, or until they lived again */
    char why[MSG_DETAIL_MAX];
};

/* The program's processes are to stand still, or to go on. */
struct msg_hold {
    bool holds;
};

struct msg_setup {
    int protocol;
    int worker, attempt;
    int restarts; /* trainers of this agent before this one; above 0 the trainer keeps clear of fault points
                   */
    bool snapshot_busy; /* the agent still reads the snapshot memory: no snapshot before `snapshotFree` */
    bool load_busy;     /* the agent may still write a checkpoint into the state's memory: not to be touched
                           before     `loaded` */
    uint64_t incarnation;
    char data_sha256[RM_HASH_HEX]; /* known from an earlier trainer of this agent, or "" */
    char key[2 * 32 + 1];          /* the job key in hex; key and spec are filled by the agent's shell */
    char spec[MSG_SPEC_MAX];
    char listen[RM_ADDRESS_MAX]; /* the address, without a port, where its data port is to be */
};

/* To read from a checkpoint. It is cut into `parts` shares (common/storage/checkpoint/checkpoint.h), one for
 * each member of the ring by rank. Trainer -> agent: these shares did not come from the others. */
struct msg_load {
    struct msg_state state; /* of the checkpoint */
    int parts;
    struct worker_set shares;
    bool in_state; /* into the state's own memory, as nothing is held there; else beside it */
};

struct msg_range {
    int64_t first, count; /* elements */
};

enum { MSG_ARRAYS_MAX = 8 }; /* of a state (common/model/arrays.h) */

/* Shares of a checkpoint lie, verified, where `load` wanted them; state.held false: none does, and the agent
 * writes nothing there any more. */
struct msg_loaded {
    struct msg_state state;
    int parts;
    struct worker_set shares;
    bool in_state;
    bool exact;
    int tensors;
    int8_t k[RM_TENSORS_MAX];
    int ranges;
    struct msg_range
        range[MSG_ARRAYS_MAX]; /* where exactly one share was asked for: what it holds of each array */
};

struct msg_up {
    int64_t pid;
    char fingerprint[RM_FINGERPRINT_MAX];
    char probe[RM_PROBE_MAX];
    char address[RM_ADDRESS_MAX];
    struct msg_state state;
    char data_sha256[RM_HASH_HEX];
    int64_t data_files, data_bytes; /* of the training data */
    int64_t parameters;
    int64_t params_at, array_step; /* in the state's memory: where the first array begins; bytes from
                                      each to the next. -1: they lie where the agent can't write */
    int64_t image_bytes;           /* the state is a program's image (common/model/layout.h); 0: it is not */
};

/* The snapshot memory holds of the first array, the weights, what part of parts has of them
 * (model_weights_part), and of each other one the flat range [first, first + count), at its place
 * (common/model/arrays.h). */
struct msg_snapshot {
    struct msg_state state;
    bool final, exact;
    int64_t first, count;
    uint64_t image; /* sum over all of the state of which this is a part; 0: not known */
    int part, parts;
    int tensors;
    int8_t k[RM_TENSORS_MAX];
};

struct message {
    enum msg_type type;
    int64_t term; /* of the coordinator that speaks, or that is answered; 0 on the link */
    struct msg_generation
        generation; /* that form, go, ready, stopped, progress, fault... are about; {0,0} none */
    union {
        struct msg_challenge challenge;
        struct msg_welcome welcome;
        struct msg_ack ack;
        struct msg_stop stop;
        struct msg_form form;
        struct msg_save save;
        struct msg_publish publish;
        struct msg_save_every save_every;
        struct msg_release release;
        struct msg_abandon abandon;
        struct msg_hello hello;
        struct msg_heartbeat heartbeat;
        struct msg_progress progress;
        struct msg_evaluated evaluated;
        struct msg_noticed noticed;
        struct msg_leaving leaving;
        struct msg_fault fault;
        struct msg_stopped stopped;
        struct msg_ready ready;
        struct msg_checkpoints checkpoints;
        struct msg_checkpointed checkpointed;
        struct msg_published published;
        struct msg_save_waits save_waits;
        struct msg_finished finished;
        struct msg_probe probe;
        struct msg_probed probed;
        struct msg_listen listen;
        struct msg_heard heard;
        struct msg_reported reported;
        struct msg_frozen frozen;
        struct msg_hold hold;
        struct msg_setup setup;
        struct msg_load load;
        struct msg_loaded loaded;
        struct msg_up up;
        struct msg_snapshot snapshot;
    }; /* go, list, release, snapshotFree and snapshotWanted carry nothing */
};

const char *msg_type_name(enum msg_type type); /* "stopped" */
const char *msg_role_name(enum msg_role role); /* "catch-up" */
const char *msg_phase_name(enum msg_phase phase);
const char *msg_slow_name(enum msg_slow_by by);       /* "cpuLimit" */
const char *msg_fault_name(enum msg_fault_kind kind); /* "trainer-exit" */

/* A message of that type with everything else zero; only the bytes that the type uses are touched, so that a
 * small message costs little although the struct is large. message_copy copies those bytes only. */
void message_init(struct message *message, enum msg_type type);
void message_copy(struct message *to, const struct message *from);

/* What a message of that type takes of an arena. */
size_t message_room(enum msg_type type);
/* A message of that type, with everything else zero, or a copy. It is the arena's: it goes with the turn, and
 * may become no other type. */
struct message *message_place(struct arena *arena, enum msg_type type);
struct message *message_place_copy(struct arena *arena, const struct message *from);
/* Copies what is to outlive the turn to a place of its type. */
void message_keep(struct message *to, const struct message *from);

void message_write(const struct message *message, struct str *out);
int message_read(struct message *ret, const char *text, size_t length, struct error *err);

/* One short line for logs and traces: "stopped round=3 step=17". */
void message_describe(const struct message *message, char *out, size_t size);

static inline bool msg_state_equal(const struct msg_state *a, const struct msg_state *b)
{
    return a->held == b->held &&
           (!a->held || (a->step == b->step && !__builtin_memcmp(a->lineage, b->lineage, RM_HASH_BYTES)));
}

#endif
