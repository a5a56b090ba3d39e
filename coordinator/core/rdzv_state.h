/* Private to coordinator/core, and read by what prints it (coordinator/status): the coordinator's whole
 * memory. What is done with it stands in a header for each file, in the order of layers.txt. */
#ifndef RM_COORDINATOR_RDZV_STATE_H
#define RM_COORDINATOR_RDZV_STATE_H

#include "coordinator/core/interval.h"
#include "coordinator/core/leave_times.h"
#include "coordinator/core/rdzv_fault.h"
#include "coordinator/core/rdzv_turn.h"
#include "coordinator/core/rdzv_types.h"

enum presence {
    ABSENT,
    PRESENT, /* connected */
    AWAY, /* its connection ended while a ring runs with it, or processes of a program may live there: it may
             come back until lost_after */
};

/* Mode Elastic: the newest failure of the program beside a trainer, until the trainer's end is told. */
struct rdzv_beside {
    bool failed;
    int exit_code;
    bool memory; /* it was killed as memory was short */
    /* Of this process's trainers, as it counts them: up to which one a program's failure was told, and the
     * trainer's end is known. Nothing that is said of them again counts. */
    int64_t told, over;
};

/* What a worker fails at. */
struct rdzv_trouble {
    int times; /* in a row; 0: nothing is known against it */
    enum fault_where where;
    enum fault_class class;
    rm_time since, until;   /* the first of them; till then it is asked nothing and takes no part */
    rm_time before, newest; /* of them; before: the last but one, or the first */
    rm_time alone; /* since when others show that they can what it can't; RM_NEVER: they don't either */
    int said;      /* `why`, by so many processes with no step between: when steps_seen was `step` */
    int64_t step;
    int64_t at_step; /* of the checkpoint that the newest is about, -1: of none */
    int attempt;     /* the newest of them */
    bool exit_told;  /* its trainer ends by it */
    bool stuck;      /* it does not fail: a call does not return */
    bool differs;    /* it lists, and not what others do: over when they agree */
    bool person;     /* somebody has to set it right */
    char why[RM_WHY_MAX];
};

enum { SIGHTINGS_KEPT = 16 };

/* A checkpoint that somebody found damaged. */
struct rdzv_suspect {
    struct msg_checkpoint checkpoint;
    struct worker_set seen_by; /* who saw any damage in it */
    int sightings;             /* kept, the newest SIGHTINGS_KEPT; 0: there is none */
    struct {
        int worker;
        char what[MSG_DETAIL_MAX]; /* which file, what was expected, what was found */
    } sighting[SIGHTINGS_KEPT];
    rm_time since;
    int turn;               /* moves the shares on by so many members */
    rm_time decides_at;     /* until then the others of this ring go on reading; 0: nobody waits for them */
    struct worker_set told; /* who of this ring has told of damage */
};

/* Of one that is no member: rdzv_listen.h. */
enum rdzv_listening {
    LISTENING_NOT,   /* nobody has told it to */
    LISTENING_NOW,   /* it has not said yet that it holds a state */
    LISTENING_HOLDS, /* it has, and goes on with the others */
    LISTENING_OVER,  /* it was told to stop with them, with whatever it had heard */
    LISTENING_CANT,  /* it has tried, and gets it as the ring is formed */
};

struct rdzv_worker {
    int expected; /* attempt that run says is alive or on its way, -1 none */
    int attempt;  /* of the newest hello, -1 none */
    uint64_t incarnation;
    enum presence presence;
    int conn; /* -1 none */
    rm_time heard, away_since, joined;
    rm_time heard_at; /* when it said that it holds what it listens to, or can't; 0: it has not */
    rm_time came;     /* the first hello of this process */
    int64_t agent_pid, trainer_pid; /* trainer_pid 0: no trainer is up */
    char address[RM_ADDRESS_MAX];
    char fingerprint[RM_FINGERPRINT_MAX], probe[RM_PROBE_MAX];
    char data_sha256[RM_HASH_HEX];
    struct msg_state state; /* newest that it reported */
    int64_t update_step;
    /* ring in which its state was not the others', or what it got as a sum was none */
    struct msg_generation differed;
    struct msg_generation owned_up; /* the ring of which it has itself said so; else others have */
    /* by the word of others of that ring its state of that step is not the one that counts */
    struct {
        struct msg_generation ring;
        int64_t step;
    } outvoted;
    struct msg_generation began; /* the newest ring that it was ready for, with the state of all */
    bool discarded;
    struct lane_set lanes; /* of the step behind `state` that it has computed, as it said with it */
    int64_t stopped_round; /* newest round that it answered */
    bool must_stop;        /* this round waits for it */
    rm_time asked;         /* since when it owes the answer to a stop at once, RM_NEVER: it owes none */
    int rank;              /* in the current generation, -1 none */
    int old_rank;          /* in the newest ring that trained; INT32_MAX none */
    bool serving;          /* leaves, but serves its state while the others form */
    enum rdzv_listening listening;
    bool listen_said; /* it was told to on this connection, */
    rm_time listens_since;
    int listened; /* times that it was left out of a ring as it held too little */
    bool ready, finished;
    rm_time ring_time, state_time, moved; /* moved: last sign of life while forming */
    int64_t bytes;
    int64_t counter; /* of the newest heartbeat, and when it last changed */
    rm_time turned;
    int waiting_for; /* worker, -1: it does not wait, or its trainer is silent */
    bool digest_known;
    uint8_t digest[RM_HASH_BYTES]; /* weightsSha256 that this process finished with */
    struct msg_generation ring;    /* what its newest hello says of itself */
    enum msg_phase phase;
    bool runs; /* it said so, and has not stopped since: of a program, that processes of it may live */
    bool leaving, released;
    bool goes; /* it will leave, by its machine's end, and trains on: rdzv_will.h; then not leaving */
    rm_time goes_since;  /* when that was heard */
    rm_time leave_began; /* when its ring was told to stop for it; 0: it was not */
    bool followed;       /* another process comes under this index once this one, which leaves, has ended */
    rm_time leave_until; /* then it is killed; RM_NEVER: not known */
    char leaving_reason[64];
    bool noticed;            /* it said that its machine goes, or may, and has not withdrawn it: */
    struct notice notice;    /* this word */
    char pool[MSG_POOL_MAX]; /* of its machine, as it said with that (common/notice/pool.h); "" not known */
    char machine[MSG_MACHINE_MAX]; /* likewise */
    enum cause act;                /* a drill on it was announced */
    rm_time act_at;
    bool list_asked, listed;
    bool asked_idly;   /* the newest list asked for is needed by nobody, and has not come */
    bool list_is_old;  /* the one asked for was perhaps made before the newest checkpoint was published */
    rm_time listed_at; /* its newest list came */
    int loads;         /* rings that it was to load a checkpoint for, without a word against it */
    struct msg_checkpoints list;
    char quarantine[RM_WHY_MAX]; /* why it is not taken back; "": it is not in quarantine */
    int64_t slowness;            /* times in a row that it was not ready in time */
    struct msg_pace pace; /* of the newest step that it made in a ring of this coordinator, and as which... */
    uint64_t paced;       /* ...incarnation; another one has made none yet */
    int64_t waited;       /* newest step whose waiting for data is counted */
    struct rdzv_trouble trouble; /* what may keep it from the ring: lists, loads, its work... */
    struct {
        int64_t steps; /* steps_seen then, and one; 0: it named nobody */
        int worker;
    } named_source;              /* whom it named last as one who gave it something else */
    struct rdzv_trouble writing; /* ...and what it writes, which fails beside that, and at times between */
    struct rdzv_beside beside;
    rm_time sliced_at; /* when it said last that a slice of its is written, and of which step */
    int64_t sliced;
    rm_time taken_at;    /* the same, moved on by pauses of the coordinator itself */
    rm_time waits_since; /* since when it says that the store takes nothing of the save under way from it, as
                            it is cut now; RM_NEVER: it does not */
    bool doubts; /* it was to publish, and found fault with what others had written; nobody has published
                    since */
    char left_out[MSG_DETAIL_MAX]; /* why the ring was formed without it; "": it was not */
    rm_time probe_at, probe_pause; /* when it is next seen whether it may come back */
};

/* Two of a ring that broke: the one says that it can't reach the other, or has waited for it in vain. */
struct rdzv_named {
    bool set;
    uint64_t by_incarnation, peer_incarnation;
    int by, peer;
    int64_t by_pid, peer_pid; /* of the trainers that it is about */
    char why[RM_WHY_MAX];
};

/* rdzv_pairs.c */

/* Two who were named first in so many rings, and not believed, as two others were known to be apart */
struct rdzv_overruled {
    int a, b, rings;
};

struct rdzv_pairs {
    struct worker_set apart[RM_WORKERS_MAX];       /* whom each can't reach; b has a where a has b */
    struct worker_set answer_only[RM_WORKERS_MAX]; /* they answer; no step was seen to come of it since */
    uint8_t named[RM_WORKERS_MAX][RM_WORKERS_MAX]; /* by rings since both made a step in one */
    int seen[RM_WORKERS_MAX][RM_WORKERS_MAX];      /* which of all namings was the newest of them */
    int namings;
    int blamed[RM_WORKERS_MAX];              /* times that somebody could not reach it */
    char why[RM_WHY_MAX];                    /* of the newest */
    bool went, stepped;                      /* the newest ring: was sent `go`, made a step */
    bool broke, in_vain;                     /* by itself; without a step */
    struct worker_set words[RM_WORKERS_MAX]; /* whom each of it names since */
    struct rdzv_named newest;                /* whom to believe */
    int weight;                              /* of what was said of those two */
    struct rdzv_overruled overruled;
    int formings;             /* in vain, of the same, in a row; a round of tries is one */
    int tries;                /* of the round under way */
    struct worker_set formed; /* members of the newest; roster: from whom they were chosen */
    struct {
        uint64_t incarnation;
        int64_t pid; /* 0: was not there */
    } roster[RM_WORKERS_MAX];
    rm_time again_at;                             /* no sooner with the same */
    int last_tries;                               /* since startTimeout is over */
    struct worker_set tried_last[RM_WORKERS_MAX]; /* of whom one of those showed nothing else */
    /* as chosen by rdzv_pairs_choose */
    struct worker_set members; /* of the next ring */
    struct worker_set
        stranded;        /* they hold a state that is saved, and those who form can't get it from them */
    bool save_first;     /* the newest state, as it may have to come from the store */
    bool too_few;        /* reach each other: members is a try */
    rm_time stuck_since; /* since when that is so, RM_NEVER: it is not */
};

/* rdzv_fit.c: something else than the job's, and who said so, newest word of each */
struct rdzv_doubt {
    char says[RM_HASH_HEX];
    struct worker_set by;
};

/* rdzv_probe.c: one under way */
struct rdzv_probe {
    bool on;
    int worker;                      /* who was left out */
    int64_t id;                      /* of the newest */
    struct worker_set with, awaited; /* whom it has to reach; who has not answered */
    rm_time until;
};

/* The pieces of one checkpoint that come in from the workers. */
struct rdzv_collection {
    bool used;
    struct msg_publish publish; /* without the pieces */
    int parts, have;
    bool in[RM_WORKERS_MAX]; /* by part */
    int pieces[RM_WORKERS_MAX];
    struct msg_piece piece[RM_WORKERS_MAX][MSG_PIECES_PER_PART];
    int publisher;            /* worker that was told to, -1 none */
    bool held_up;             /* by the store, which did not take it from its publisher... */
    rm_time held_since;       /* ...who said so first then */
    struct worker_set told;   /* to publish it, ever */
    struct worker_set damage; /* who wrote a piece, and found what stood there damaged */
    uint64_t image;           /* of a program's whole state, the same for all pieces; else 0 */
    bool digest_known;
    uint8_t digest[RM_HASH_BYTES]; /* of a final one's weights */
};

/* The newest step that was no checkpoint because a ring's states of it differed: its other pieces come late.
 */
struct rdzv_skipped {
    int64_t step; /* 0: none */
    struct msg_generation ring;
};

/* rdzv_program.c: the failure that stopped the newest generation */
struct rdzv_program {
    bool failed; /* and it is not known yet whether it counts */
    rm_time at;  /* when it did */
    int worker, exit_code;
    bool memory;
    bool hangs;   /* it has no exit code, and no rule is about it */
    bool ordered; /* by a drill: it is no failure */
    int64_t lost; /* rdzv.lost when it was told */
    char why[RM_WHY_MAX];
    bool ended;           /* the run ends by it */
    rm_time told_to_stop; /* when the newest ring was, for the first time */
};

/* rdzv_report.c: the newest that a user's program said of its progress */
struct rdzv_report {
    bool known; /* any, in whatever generation */
    struct msg_generation generation;
    int rank;            /* the worker's that speaks for it */
    int64_t step, steps; /* steps 0: not said */
    double loss;         /* NaN: not known */
    rm_time moved;       /* when its step was another one last */
};

enum { FORETOLD_KEPT = 64 };

/* A step that came before others' words of the steps before it; step 0: none did. */
struct rdzv_foretold {
    int64_t step;
    double loss;
};

enum { RDZV_AHEAD_MAX = 4 };

/* When a save was begun as the first machine of its pool was to go; at 0: none was. */
struct rdzv_ahead {
    rm_time at;
    char pool[MSG_POOL_MAX];
};

/* One that somebody left by a notice (rdzv_machine.h); at 0: none. */
struct rdzv_left_machine {
    rm_time at;
    char name[MSG_MACHINE_MAX];
};

enum { RDZV_LEAVES_TOGETHER_MS = 500 };

enum {
    COLLECTIONS = 4,
    FAILURES_KEPT = 1001 /* above failurePolicy.maxRestarts */,
    REFUSED_KEPT = 64,
    STEP_TIMES_KEPT = 31
};

struct rdzv_failure {
    rm_time at;
    int worker;
};

/* Members of the ring that say that a step's numbers are not finite, each by the header that all see. */
struct rdzv_not_finite {
    struct worker_set by;
    int first;
    char why[MSG_DETAIL_MAX];
};

/* rdzv_vouch.h: the newest step of whose states nobody knows which has the right bits */
struct rdzv_unvouched {
    struct msg_generation ring; /* that made them; {0, 0}: there was none */
    int64_t step;               /* -1: made anew since */
};

struct rdzv_ending {
    bool set;
    bool interrupted;
    bool not_finite; /* what would come out the same if it were tried again */
    bool differ;     /* what is held is not one state: nothing is saved of it */
    int exit_code;
    char text[MSG_DETAIL_MAX];
};

/* The newest checkpoint that the store does not take. */
struct rdzv_outage {
    bool on;
    int64_t step;
    rm_time since, taken; /* first told; when that state was to be written */
    char why[MSG_DETAIL_MAX];
};

/* rdzv_progress.c: how the words of the newest step went, where settings.gpus */
struct rdzv_transport {
    struct msg_generation ring; /* in which a step was told; {0, 0}: none was */
    int64_t step;
    bool used;            /* the second way, beside the ring */
    char why[RM_WHY_MAX]; /* why not, as far as a worker said; "" */
};

/* How fast checkpoints are written, as measured; 0: not yet. */
struct rdzv_save_speed {
    int64_t bytes;            /* of a whole one */
    double writer, publisher; /* bytes per second of one worker's part; of reading all of it back */
};

/* rdzv_interval.c: what a save costs, how often all who held the state were lost, and what comes of it */
struct rdzv_interval {
    rm_time every;                /* as told to the ring; 0: nothing yet */
    struct interval_facts reason; /* of it */
    struct rdzv_saves known;
    bool at_risk;               /* a step was made since the state was last read from a checkpoint */
    struct msg_generation ring; /* of the newest step, */
    int64_t step;               /* this one, */
    rm_time at;                 /* heard of at this time */
    double pace,
        evaluating; /* ns from step to step where nothing is saved; over an evaluation; 0: not known */
    struct {
        int64_t step;                 /* 0: nothing is being saved whose cost can be measured */
        rm_time since, made, safe_at; /* the step before it; it; it was published, 0: it is not */
        double usual;                 /* what the steps since then would have taken */
    } saving;
};

struct rdzv_open_recovery {
    bool active, formed; /* formed: go was sent, the first step is awaited */
    struct rdzv_recovery times;
    rm_time start, began, agreed, went;
    int64_t resume_step;
};

struct rdzv {
    struct rdzv_settings settings;
    rm_time alone_at; /* settings.alone: who was replaced may run until then, and nothing is begun before */
    enum rdzv_state state;
    rm_time state_since, started;
    rm_time accused_since; /* when the newest trainer was killed for standing still; 0: none was */
    char why[MSG_DETAIL_MAX];
    struct rdzv_worker worker[RM_WORKERS_MAX];
    bool expect_known;
    int64_t round;
    enum msg_stop_at stop_at;
    bool stop_sudden; /* the newest round was not announced: a program's processes hang, and have no time */
    struct msg_generation ring; /* of the newest form, or of the ring that a successor found */
    int world;
    int member[RM_WORKERS_MAX]; /* workers in rank order */
    struct msg_form form;       /* the newest, for whom it did not reach */
    struct msg_state resume;    /* of the newest form */
    bool loading;               /* its roles are load */
    bool trained;               /* a ring was formed at least once */
    bool found;                 /* this ring was formed by a predecessor */
    int64_t told, evaluated, saved;
    int64_t known_step;                           /* highest committed step anybody reported */
    double loss, step_time;                       /* of the newest step told; smoothed ns */
    struct rdzv_foretold foretold[FORETOLD_KEPT]; /* by step % FORETOLD_KEPT */
    struct {
        int world; /* whose steps step_time is the mean of: a ring's of so many... */
        int steps; /* ...so many of them, as far as it matters */
    } paced;
    struct msg_numbers numbers;
    double held_out;     /* loss of the newest evaluation; NaN: none is known */
    int64_t tokens;      /* of a step, samples where it has none (settings.brought); 0: not known yet */
    int64_t tokens_told; /* of all that this coordinator told */
    bool exact;
    char fingerprint[RM_FINGERPRINT_MAX], data_sha256[RM_HASH_HEX]; /* rdzv_fit.c says whose */
    char job_probe[RM_PROBE_MAX];  /* what the job's machines compute; "": nobody said */
    struct rdzv_doubt other_probe; /* ...of the job's own fingerprint */
    struct rdzv_doubt other_data;
    bool fits_checkpoint;    /* the fingerprint is that of who made the checkpoint to go on from */
    bool data_of_checkpoint; /* data_sha256 is what that was trained on */
    int64_t data_files, data_bytes;
    int forming_failures;                       /* in a row, without a step */
    struct rdzv_failure failure[FAILURES_KEPT]; /* that may still count */
    int failures;
    int64_t failures_total;
    struct rdzv_program program;
    struct rdzv_report report;
    int64_t lost;  /* workers and trainers that were lost, counted */
    int64_t begun; /* generations that began to train, in all terms */
    struct msg_checkpoint refused[REFUSED_KEPT];
    int refused_count;
    bool refused_looked; /* all were asked to list once more since the last refusal */
    struct rdzv_suspect suspect;
    char folder[MSG_FOLDER_MAX]; /* the one of checkpoints that the job uses; "": not known */
    int lists_differ;            /* times in a row */
    int64_t steps_seen;          /* by this coordinator, counted */
    rm_time leave_said;          /* the newest */
    rm_time arrived, left;       /* newest arrival; newest quiescing that a leave began */
    rm_time leave_asked;         /* the first leave since then */
    rm_time stood_still;         /* when all had answered the newest stop */
    struct leave_times leave_times;
    struct rdzv_relief relief; /* who is to go when another one has come in its place: rdzv_relief.h... */
    rm_time relief_until;      /* ...until then */
    struct rdzv_ahead ahead[RDZV_AHEAD_MAX];
    struct rdzv_left_machine left_machine[RM_WORKERS_MAX]; /* the newest, in no order */
    rm_time reform_cost;
    rm_time turned, hang_look_at; /* newest sign that the ring, or its forming, moves on; no look before */
    rm_time blames_from;          /* it has heard nobody for a while, and blames nobody before */
    rm_time step_times[STEP_TIMES_KEPT], median_step; /* of the newest steps; 0: none yet */
    rm_time circled;     /* since when all wait, as far as is seen; RM_NEVER: they do not */
    int64_t circle_came; /* bytes to all members, as looked at last */
    int64_t steps_timed;
    char waiting[MSG_DETAIL_MAX];
    struct rdzv_not_finite not_finite;
    struct rdzv_unvouched unvouched;
    struct rdzv_ending ending;
    struct rdzv_open_recovery recovery;
    struct rdzv_recovery last_recovery;
    int64_t recoveries;
    int64_t lanes_dealt;  /* of passes that a new ring went on with, those that nobody in it had computed */
    struct msg_save save; /* under way in SAVING */
    struct msg_state save_state;
    rm_time save_since;    /* however often it was cut anew */
    int vanished;          /* times that pieces of it were said to be written, and were not there */
    rm_time save_again_at; /* not before */
    bool save_again;       /* somebody's part of it can't be written: others have to */
    bool save_waits;       /* may be for the store; false: nobody has said so of it as it is cut now */
    bool save_held_up;     /* by one who said for 30 s that its store takes nothing, and nobody else can */
    bool save_handed_on;   /* as the patience with it was over: that is done once */
    bool final_saved;
    struct rdzv_outage outage;
    struct rdzv_transport transport;
    struct rdzv_save_speed save_speed;
    int64_t given_up;  /* step that those who hold it can't save any more before they go; -1 none */
    int64_t gave_way;  /* step whose handing over was given up to save it; -1 none */
    rm_time handing;   /* what handing a state over takes, as measured; 0: not known */
    rm_time formed_at; /* when the newest ring was told its members */
    struct rdzv_interval interval;
    rm_time saved_at; /* when the newest was published, or the coordinator began */
    bool digest_known;
    uint8_t digest[RM_HASH_BYTES]; /* weightsSha256 of the last step */
    struct rdzv_collection collection[COLLECTIONS];
    struct rdzv_skipped skipped;
    struct rdzv_goodput goodput;
    rm_time accounted; /* the newest step's time */
    rm_time due;       /* when the next one was asked for */
    rm_time data_wait; /* of all trainers together */
    struct rdzv_pairs pairs;
    struct rdzv_probe probe;
};

#endif
