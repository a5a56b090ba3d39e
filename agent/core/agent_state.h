/* Private to agent/core: the agent's whole memory, and what its files call of each other. */
#ifndef RM_AGENT_CORE_STATE_H
#define RM_AGENT_CORE_STATE_H

#include "agent/core/agent.h"
#include "agent/core/fence.h"
#include "common/notice/pool.h"

enum { PROGRESS_KEPT = 64, EVALUATED_KEPT = 64, WRITTEN_KEPT = 2 };

enum connection { DISCONNECTED, CONNECTING, GREETED, WELCOMED };
enum trainer { TRAINER_NONE, TRAINER_STARTING, TRAINER_UP };

/* A progress or an evaluation, without the room that a whole message takes. */
struct kept_step {
    struct msg_generation generation;
    struct msg_progress progress;
    struct msg_evaluated evaluated;
};

/* Calls that one thread makes to the store, one after the other. */
struct agent_calls {
    int under_way;
    rm_time moved; /* the newest sign that they get on, while there are any */
    int64_t signs; /* as the shell counts them */
    bool told;     /* that they do not return; again at tell_at */
    rm_time tell_at;
};

/* What is kept of messages that came in (struct message *) lies behind it, each with room for its own type
 * alone, which it has from the start: message_keep. */
struct agent {
    struct agent_settings settings;
    rm_time now, due; /* of the step under way; when it was to be called at the latest */
    enum connection connection;
    char cut_why[RM_WHY_MAX]; /* how the last connection, or try to make one, ended */
    rm_time lost_at, tried_at, retry_at, retry_delay, beat_at;
    uint64_t chance; /* state of the spread of retries, from the incarnation */
    int64_t term;    /* highest that was obeyed */
    enum trainer trainer;
    int64_t said_trainer; /* pid that the newest hello named, 0 none */
    enum msg_phase said_phase;
    int spawned, tries; /* tries: trainers in a row that never came up */
    rm_time up_by;      /* one that starts and says nothing until then is ended; RM_NEVER: none such */
    bool device_failed; /* under a trainer of this agent's that was up */
    char killed_why[RM_WHY_MAX]; /* "killed: it ...", of one that this agent killed by itself; "" */
    struct msg_up up;
    enum msg_phase phase;
    struct msg_state state;
    struct msg_generation ring;       /* newest form */
    struct msg_form form;             /* that one's */
    int64_t begun;                    /* generations that began to train, or may have, as far as is known */
    struct agent_calls reads, writes; /* lists and loads; slices and manifests */
    bool load_wanted, loading, writing, publishing;
    bool publish_first;                    /* it is under way, and what is to be written comes after it */
    bool load_in_state;                    /* where it goes: see msg_load */
    struct worker_set load_shares;         /* wanted */
    struct msg_generation load_generation; /* newest that wanted one */
    struct message *publish, *publish_next;
    bool publish_next_set;
    /* what the store did not take, and when it is asked again */
    struct message *write;
    bool write_waits, publish_waits;
    rm_time write_since, publish_since, store_delay, store_at; /* store_delay 0: it took the newest */
    char store_why[MSG_DETAIL_MAX];
    bool wanted;       /* the trainer waits for the memory that the slice lies in */
    int64_t save_step; /* that the trainer was told to save, and nothing since; -1 none */
    bool save_final;
    bool leaving, released, over;
    bool noticed;         /* of its machine's end something was told: it is said to each coordinator */
    bool notice_stands;   /* and not withdrawn since */
    struct notice notice; /* where it stands */
    char pool[MACHINE_POOL_NAME_MAX]; /* of its machine; "" not known */
    bool unneeded;       /* released, as the run is over: nothing that is being written is of use */
    bool elsewhere;      /* over, and the same worker may take part on another machine */
    char leave_why[64];  /* who said so last that it is to leave */
    rm_time leave_until; /* the nearest time that anybody named; RM_NEVER: nobody did */
    bool trains_on;      /* leaving, by notices with a time alone: not at once, and it may be withdrawn */
    rm_time ends_at;     /* then it ends, released or not; RM_NEVER: not known */
    /* the newest, oldest first; those that are acknowledged stay for a successor: an acknowledgement of a
     * coordinator that died says nothing about what it could still tell */
    struct kept_step progress[PROGRESS_KEPT], evaluated[EVALUATED_KEPT];
    int progress_count, evaluated_count;
    int64_t progress_known, evaluated_known; /* acknowledged in this term, -1 none */
    /* said again after a reconnect, harmless if known */
    struct message *written[WRITTEN_KEPT], *published, *fault, *ready, *finished;
    rm_time fault_at; /* when the trainer said it */
    /* The newest failure of a program beside its trainer. It outlives both: a coordinator that was away has
     * heard of neither end. */
    struct message *failure;
    rm_time failure_at;
    bool failure_set;
    int written_count;
    uint8_t published_lineage[RM_HASH_BYTES];
    bool published_set, fault_set, ready_set, finished_set;
    struct msg_heartbeat beat;
    rm_time trainer_heard; /* a trainer that runs sends a pulse every heartbeat */
    int64_t busy_beats;    /* heartbeats while the store kept the trainer waiting: that is no hang */
    int unwelcome;         /* connections in a row that ended after our hello, and without an answer */
    struct fence fence;    /* of what the launcher runs */
    rm_time control_heard; /* the newest word on this connection */
    int64_t saved;         /* newest checkpoint that is known to be published, -1 none */
};

/* agent_names.c: "STARTING", "WELCOMED" */
const char *agent_trainer_name(const struct agent *st);
const char *agent_connection_name(const struct agent *st);

/* agent_check.c: what holds between two steps, asserted */
void agent_check_invariants(const struct agent *st);

/* agent_trainer.c: how a trainer or a launcher starts and ends */
void agent_spawn(struct agent *st, struct agent_out *out);
/* Whether its word is to be acted on: one that can't be meant ends it. */
bool agent_hears_trainer(struct agent *st, const struct message *m, struct agent_out *out);
/* What its trainer says, before it is passed on. True: the trainer is of no use any more, and others may be.
 */
bool agent_judge_fault(struct agent *st, struct msg_fault *fault);
/* Ends it: another one starts. why: "killed: ..." */
void agent_replace_trainer(struct agent *st, const char *why, struct agent_out *out);
void agent_trainer_is_still(struct agent *st, struct agent_out *out);
void agent_on_trainer_exit(struct agent *st, const struct agent_event *e, struct agent_out *out);

/* agent_out.c: filling actions */
struct agent_action *agent_act(struct agent_out *out, enum agent_action_kind kind);
/* The first adds an action with a message of that type, to be filled in; the second one with a copy. */
struct message *agent_say(struct agent_out *out, enum agent_action_kind kind, enum msg_type type);
void agent_pass(struct agent_out *out, enum agent_action_kind kind, const struct message *m);
void agent_send_control(struct agent *st, struct agent_out *out, const struct message *m);
/* The end of it; nothing is done after this. */
void agent_quit(struct agent *st, struct agent_out *out, int exit_code, const char *text);

/* agent_save.c: the snapshot memory and the store */
void agent_on_snapshot(struct agent *st, const struct message *m, rm_time now, struct agent_out *out);
void agent_on_snapshot_wanted(struct agent *st, struct agent_out *out);
void agent_on_publish(struct agent *st, const struct message *m, rm_time now, struct agent_out *out);
void agent_on_list(struct agent *st, struct agent_out *out);
void agent_on_listed(struct agent *st, const struct agent_event *e, struct agent_out *out);
void agent_on_written(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out);
void agent_on_published(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out);
void agent_say_what_waits(struct agent *st, rm_time now, struct agent_out *out);
bool agent_waits_for_store(const struct agent *st);
bool agent_asks_store_again(const struct agent *st); /* at st->store_at */
void agent_ask_store_again(struct agent *st, struct agent_out *out);
void agent_storage_fault(struct agent *st, const struct agent_event *e, struct agent_out *out);

/* agent_load.c: shares of a checkpoint, on the way to where the trainer's state lies */
void agent_load_for(struct agent *st, const struct msg_form *form,
                    struct agent_out *out);                    /* if it is our role */
void agent_drop_load(struct agent *st, struct agent_out *out); /* nobody waits for it any more */
void agent_on_load(struct agent *st, const struct message *m, struct agent_out *out);
void agent_on_loaded(struct agent *st, const struct agent_event *e, struct agent_out *out);

/* agent_hold.c: what stands still without an answer, and a connection that brings none */
void agent_hold_hear(struct agent *st, const struct message *m, rm_time now, struct agent_out *out);
void agent_hold_on_time(struct agent *st, rm_time now, struct agent_out *out);
rm_time agent_hold_at(const struct agent *st);

/* agent_calls.c: calls to the store that do not return */
void agent_call_made(const struct agent *st, struct agent_calls *c);
void agent_call_returned(const struct agent *st, struct agent_calls *c);
/* Whether they get on; takes the step's time. */
void agent_calls_hear(struct agent *st, const struct agent_event *e, rm_time now);
bool agent_calls_are_stuck(const struct agent *st, const struct agent_calls *c);
void agent_say_reads_are_stuck(struct agent *st, struct agent_out *out);
void agent_tell_of_calls(struct agent *st, struct agent_out *out); /* what is due */
rm_time agent_calls_at(const struct agent *st);                    /* RM_NEVER: nothing is */

#endif
