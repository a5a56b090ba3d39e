/* The trainer's mind: what its threads do next, and what the agent is told.
 *
 * Pure: elastic_step takes one event and fills *out with actions in order; the shell (trainer/train_loop.c)
 * owns the link, the ring, the state and two threads: one computes, and one connects, exchanges and pulls
 * (elastic_thread says whose a command is). One command at a time is under way; its result comes back as
 * ELASTIC_DONE. ELASTIC_ABORT names the command in flight and asks that it be given up soon (sets the abort
 * words of both threads, which the next command that the core starts clears): it still comes back as
 * ELASTIC_DONE, as OUTCOME_ABORTED or, where it completed all the same, as OUTCOME_OK, and the core takes
 * either. ELASTIC_PAUSE does the same of CMD_LANES, but for the lane under way, which is computed to its end:
 * what the lanes of a pass add up to is kept, where who computes can (result.kept), until the step is made by
 * this ring or the next; and of CMD_LISTEN, which leaves an update that has not come whole.
 * ELASTIC_RAISE_STOP sets an atomic flag that the step in flight (and later ones until the next CMD_CONNECT)
 * adds to its header's stop flag.
 *
 * A step is CMD_LANES, CMD_EXCHANGE and CMD_COMMIT. Once the exchange is OUTCOME_OK others may have
 * committed, so that CMD_COMMIT follows whatever was told meanwhile, and can't be given up: its DONE means
 * that the next state is there. Anything else on the way means that state(step) stands as before. A pass that
 * fits no scale comes back from the exchange as OUTCOME_RESCALE, and its lanes are done again. Time is not
 * needed: what hangs is judged elsewhere. */
#ifndef RM_TRAINER_ELASTIC_H
#define RM_TRAINER_ELASTIC_H

#include "common/model/losses.h"
#include "common/wire/message.h"

struct elastic_settings {
    int worker;
    int64_t steps;
    int64_t evaluation_every; /* steps; 0 never */
    int64_t checkpoint_every; /* steps; 0 never */
    bool snapshot_busy;       /* setup's: the agent still reads the snapshot memory */
    bool load_busy;           /* setup's: the agent may still write a checkpoint into the state's memory */
};

enum elastic_command {
    CMD_NONE,
    CMD_INIT,     /* state(0) from the seed or model.init */
    CMD_LOAD,     /* state from what the agent has read (`loaded`) and the other members' shares */
    CMD_RECEIVE,  /* state from form.source, a slice from each; expects form.resume */
    CMD_CATCH_UP, /* the kept update of form.resume.step from form.source[0]; must end in its lineage. Where
                    this rank follows, with the ring, while the others compute the next step's lanes */
    CMD_LISTEN,  /* a state from those who train on (`listen`), with every update of theirs until all of it is
                    there; where it is, further updates, until it is told that this is enough */
    CMD_CONNECT, /* close the old ring, connect the ring of `form` (clears the stop flag first) */
    CMD_LANES,   /* a pass of the own lanes of the next step; no ring is needed */
    CMD_EXCHANGE, /* its header with the others', and where it fits the words */
    CMD_COMMIT,   /* the update of those words */
    CMD_EVALUATE, /* the held-out loss of the state, with the ring */
    CMD_COMPARE,  /* the state's bits, with the ring: where no step of it follows whose header would */
    CMD_SNAPSHOT, /* see to it that slice `part` of `parts` lies in the snapshot memfd, and stays */
    CMD_DIGEST,   /* SHA-256 of the parameters */
    CMD_DROP,     /* the state is not to be trusted: hold nothing */
};

enum elastic_outcome {
    OUTCOME_OK,
    OUTCOME_ABORTED,
    OUTCOME_PEER,       /* a connection or a source broke; peer: worker or -1 */
    OUTCOME_RESCALE,    /* CMD_EXCHANGE: the pass is done once more; the state stands, its kept update too */
    OUTCOME_NOT_FINITE, /* CMD_EXCHANGE; text names step, lane, tensor */
    OUTCOME_DISPUTED,   /* CMD_EXCHANGE: ranks compute differently, and nobody can say who is right; text */
    OUTCOME_LINEAGE,    /* CMD_EXCHANGE, CMD_COMPARE: ranks disagree; minority: this rank's state, or what it
                           computes, is not that of most. CMD_CATCH_UP, CMD_RECEIVE: the result is not of the
                           lineage asked for */
    OUTCOME_PROOF,      /* CMD_EXCHANGE, CMD_COMPARE: header or words are not what their checksums say
                           (CLASS_MACHINE: what this rank added is not), or (minority) this rank's state has not
                           the bits that it should; text. The state stands; others may have committed */
    OUTCOME_MISSING,    /* CMD_LOAD: not all members' shares came: missing */
    OUTCOME_FAILED,     /* anything else (memory, data gone): text, code is an enum error_code */
};

/* The result of a command. `state` is always what the memory holds after it. */
struct elastic_result {
    enum elastic_command command;
    enum elastic_outcome outcome;
    bool followed; /* the command of elastic_follows was begun at once */
    struct msg_state state;
    int64_t update_step;  /* step whose kept update it can serve, -1 none */
    struct lane_set kept; /* lanes of the step behind `state` whose sums are there after it */
    int peer;
    bool minority;
    bool outvoted;             /* of the minority, and most hold another state: theirs counts as right */
    struct worker_set missing; /* shares */
    enum error_code code;      /* OUTCOME_FAILED; class and person as in struct error */
    enum fault_class class;
    bool person;
    char text[MSG_DETAIL_MAX];
    bool stop;   /* CMD_EXCHANGE: the stop flag's sum was not 0: all stop after this step */
    bool save;   /* CMD_EXCHANGE: likewise, all take a snapshot after this step: the time for one has come */
    double loss; /* CMD_COMMIT, CMD_EVALUATE */
    struct losses heard;         /* CMD_LISTEN: of others' steps, up to that of `state` where that is held */
    struct msg_numbers numbers;  /* CMD_COMMIT */
    int64_t tokens;              /* CMD_COMMIT, CMD_LISTEN: of a step */
    int64_t rescaled;            /* passes since the start */
    rm_time data_wait;           /* CMD_LANES: part of it in which the data were waited for, ns */
    rm_time reduce_time;         /* CMD_EXCHANGE: part of it in which the ring summed, or waited for others */
    int64_t reduce_bytes;        /* CMD_EXCHANGE: sent to the next in the ring for that */
    struct msg_transport second; /* CMD_EXCHANGE */
    struct msg_pace pace;        /* CMD_EXCHANGE */
    rm_time took;                /* wall time of the command, ns */
    uint8_t digest[RM_HASH_BYTES]; /* CMD_DIGEST */
    struct msg_snapshot
        snapshot; /* CMD_SNAPSHOT: state, exact, first, count, k filled; part, parts, final by the core */
};

enum elastic_event_kind {
    ELASTIC_OPENED,    /* the state is open and repaired: `up` (borrowed, filled) is told; loss of its step if
                          known */
    ELASTIC_LINK,      /* message from the agent */
    ELASTIC_DONE,      /* result */
    ELASTIC_PEER_GONE, /* a ring socket ended while computing; peer: worker or -1 */
};

struct elastic_event {
    enum elastic_event_kind kind;
    const struct message *message;       /* LINK, or the `up` of OPENED; borrowed for the call */
    const struct elastic_result *result; /* DONE; borrowed */
    int peer;
    int64_t update_step; /* OPENED */
    bool loss_known;     /* OPENED: `loss` is that of state.step (from its own record) */
    double loss;
    int64_t tokens; /* OPENED: of one step, for the progress told again */
};

enum elastic_action_kind {
    ELASTIC_RUN,        /* start `command` on its thread; both are idle */
    ELASTIC_ABORT,      /* give up `command`, the one in flight, or what follows it */
    ELASTIC_PAUSE,      /* `command`, CMD_LANES or CMD_LISTEN: likewise, behind what is to be had at once */
    ELASTIC_RAISE_STOP, /* the next reduction carries the stop flag */
    ELASTIC_SAVE_EVERY, /* so long after the last snapshot the next one is due */
    ELASTIC_RAISE_SAVE, /* it asks for a snapshot after its step, of all, as when the time for one has come */
    ELASTIC_SEND,       /* message, to the agent */
    ELASTIC_PROBE,      /* call those that `message` names, beside whatever is under way; the shell answers
                           with `probed` */
    ELASTIC_EXIT,       /* code */
};

struct elastic_action {
    enum elastic_action_kind kind;
    enum elastic_command command;
    const struct message *form; /* CONNECT, RECEIVE, CATCH_UP, LOAD, LANES: the core's copy; stays until the
                                   command is done. LISTEN: the `listen` */
    const struct msg_loaded *loaded; /* LOAD: likewise, the newest */
    struct worker_set shares;        /* LOAD: all that are there, loaded->shares among them */
    bool again;                      /* LANES: once more, with the exponents that the last exchange named */
    bool snapshot_free;              /* LANES, COMMIT: the agent does not read the snapshot memory */
    bool to_snapshot; /* LANES, COMMIT: a snapshot of the state that it makes is due, and the agent does not
                         read the snapshot memory: the state may be left there */
    int part, parts;  /* SNAPSHOT */
    bool final;       /* SNAPSHOT */
    rm_time every;    /* SAVE_EVERY */
    int exit_code;    /* EXIT */
    struct message *message; /* SEND, PROBE */
};

enum {
    ELASTIC_ACTIONS_MAX = 16 + 2 * LOSSES_KEPT,
    ELASTIC_BODIES_MAX = 48 * 1024 + (int)sizeof(struct msg_probe)
};

/* The actions of one step, in order. The messages that they point to lie in `bodies` and are void when the
 * next step begins; the form and what was loaded are the core's (see there). It points into itself: do not
 * copy it. It needs no more than to be there before the first step. */
struct elastic_out {
    int count;
    struct elastic_action action[ELASTIC_ACTIONS_MAX];
    struct arena arena; /* over bodies, which it aligns by lying before them */
    unsigned char bodies[ELASTIC_BODIES_MAX];
};

struct elastic;

struct elastic *elastic_open(const struct elastic_settings *settings); /* heap; the only allocation */
void elastic_free(struct elastic *st);
void elastic_step(struct elastic *st, const struct elastic_event *event, struct elastic_out *out);

/* Whose a command is. Arithmetic on the state is done by the thread that computes, as that one rounds as it
 * should; so a catch-up and a load, which end in it, are its whole. */
enum elastic_thread { ELASTIC_COMPUTES, ELASTIC_TALKS, ELASTIC_THREADS };
enum elastic_thread elastic_thread(enum elastic_command command);

/* The same of what follows it at once (elastic_follows) in a step of so many words: where they are few, who
 * made the lanes exchanges, too. To wake another thread, twice a step, would take longer than the words do.
 */
enum { ELASTIC_FEW_WORDS = 16 * 1024 };
enum elastic_thread elastic_thread_after(enum elastic_command next, int64_t words);

/* What the shell may begin with the same action as soon as a command is done, without asking first: a step is
 * not slowed down by a third thread. CMD_NONE: nothing. Not after an abort was asked for, but CMD_COMMIT
 * always follows. The results are told afterwards, in order. */
enum elastic_command elastic_follows(const struct elastic_result *result);

/* Whether it waits for others, so that only an abort ends it for sure. */
bool elastic_waits_for_peers(enum elastic_command command);

const char *elastic_command_name(enum elastic_command command); /* "EXCHANGE" */

/* What it does now, for heartbeats. */
enum msg_phase elastic_phase(const struct elastic *st);
int64_t elastic_held_step(const struct elastic *st); /* -1: nothing */

#endif
