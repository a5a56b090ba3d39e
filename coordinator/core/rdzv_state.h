/* Private to coordinator/core, and read by what prints it (coordinator/status): the coordinator's whole
 * memory, and what its files call of each other. */
#ifndef RM_COORDINATOR_RDZV_STATE_H
#define RM_COORDINATOR_RDZV_STATE_H

#include "coordinator/core/rdzv_fault.h"
#include "coordinator/core/rdzv_types.h"

enum presence {
    ABSENT,
    PRESENT, /* connected */
    AWAY,    /* its connection ended while a ring runs with it: it may come back until lost_after */
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
    char why[RM_WHY_MAX];
};

/* A checkpoint that somebody found damaged. */
struct rdzv_suspect {
    struct msg_checkpoint checkpoint;
    uint64_t seen_by; /* workers, by bit; 0: there is none */
    rm_time since;
    int turn; /* moves the shares on by so many members */
};

struct rdzv_worker {
    int expected; /* attempt that run says is alive or on its way, -1 none */
    int attempt;  /* of the newest hello, -1 none */
    uint64_t incarnation;
    enum presence presence;
    int conn; /* -1 none */
    rm_time heard, away_since, joined;
    int64_t agent_pid, trainer_pid; /* trainer_pid 0: no trainer is up */
    char address[RM_ADDRESS_MAX];
    char fingerprint[RM_FINGERPRINT_MAX];
    struct msg_state state; /* newest that it reported */
    int64_t update_step;
    bool discarded;
    int64_t stopped_round; /* newest round that it answered */
    bool must_stop;        /* this round waits for it */
    rm_time asked;         /* since when it owes the answer to a stop at once, RM_NEVER: it owes none */
    int rank;              /* in the current generation, -1 none */
    int old_rank;          /* in the newest ring that trained; INT32_MAX none */
    bool serving;          /* leaves, but serves its state while the others form */
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
    bool leaving, released;
    bool followed;       /* another process comes under this index once this one, which leaves, has ended */
    rm_time leave_until; /* then it is killed; RM_NEVER: not known */
    char leaving_reason[64];
    enum cause act; /* a drill on it was announced */
    rm_time act_at;
    bool list_asked, listed;
    rm_time listed_at; /* its newest list came */
    int loads;         /* rings that it was to load a checkpoint for, without a word against it */
    struct msg_checkpoints list;
    char quarantine[RM_WHY_MAX]; /* why it is not taken back; "": it is not in quarantine */
    int64_t slowness;            /* times in a row that it was not ready in time */
    int64_t waited;              /* newest step whose waiting for data is counted */
    struct rdzv_trouble trouble;
    rm_time sliced_at; /* when it said last that a slice of its is written, and of which step */
    int64_t sliced;
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

/* rdzv_pairs.c. Sets of workers are bits by index. */
struct rdzv_pairs {
    uint64_t apart[RM_WORKERS_MAX];                /* bit b of a, and a of b: they can't reach each other */
    uint64_t answer_only[RM_WORKERS_MAX];          /* they answer; no step was seen to come of it since */
    uint8_t named[RM_WORKERS_MAX][RM_WORKERS_MAX]; /* by rings since both made a step in one */
    rm_time seen[RM_WORKERS_MAX][RM_WORKERS_MAX];  /* the newest of them */
    int blamed[RM_WORKERS_MAX];                    /* times that somebody could not reach it */
    char why[RM_WHY_MAX];                          /* of the newest */
    bool went, stepped;                            /* the newest ring: was sent `go`, made a step */
    bool broke, in_vain;                           /* by itself; without a step */
    uint64_t words[RM_WORKERS_MAX];                /* whom each of it names since */
    struct rdzv_named newest;                      /* whom to believe */
    bool both;                                     /* those two name each other */
    int formings;                                  /* in vain, of the same, in a row */
    uint64_t formed; /* members of the newest; crew: from whom they were chosen */
    struct {
        uint64_t incarnation;
        int64_t pid; /* 0: was not there */
    } crew[RM_WORKERS_MAX];
    rm_time again_at;                    /* no sooner with the same */
    int last_tries;                      /* since startTimeout is over */
    uint64_t tried_last[RM_WORKERS_MAX]; /* with whom it was in one of those */
    /* as chosen by rdzv_pairs_choose */
    uint64_t members;    /* of the next ring */
    uint64_t stranded;   /* they hold a state that is saved, and those who form can't get it from them */
    bool save_first;     /* the newest state, as it may have to come from the store */
    bool too_few;        /* reach each other: members is a try */
    rm_time stuck_since; /* since when that is so, RM_NEVER: it is not */
};

/* rdzv_probe.c: one under way */
struct rdzv_probe {
    bool on;
    int worker;             /* who was left out */
    int64_t id;             /* of the newest */
    uint64_t with, awaited; /* whom it has to reach; who has not answered */
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
    int publisher; /* worker that was told to, -1 none */
    bool held_up;  /* by the store, which did not take it from its publisher */
    bool digest_known;
    uint8_t digest[RM_HASH_BYTES]; /* of a final one's weights */
};

enum { RDZV_LEAVES_TOGETHER_MS = 500 };

enum { COLLECTIONS = 4, FAILURES_KEPT = 256, REFUSED_KEPT = 64, STEP_TIMES_KEPT = 31 };

struct rdzv_failure {
    rm_time at;
    int worker;
};

struct rdzv_ending {
    bool set;
    bool interrupted;
    bool not_finite; /* what would come out the same if it were tried again */
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

/* How fast checkpoints are written, as measured; 0: not yet. */
struct rdzv_save_speed {
    int64_t bytes;            /* of a whole one */
    double writer, publisher; /* bytes per second of one worker's part; of reading all of it back */
};

struct rdzv_open_recovery {
    bool active, formed; /* formed: go was sent, the first step is awaited */
    struct rdzv_recovery times;
    rm_time start, began, agreed, went;
    int64_t resume_step;
};

struct rdzv {
    struct rdzv_settings settings;
    enum rdzv_state state;
    rm_time state_since, started;
    char why[MSG_DETAIL_MAX];
    struct rdzv_worker worker[RM_WORKERS_MAX];
    bool expect_known;
    int64_t round;
    enum msg_stop_at stop_at;
    struct msg_generation ring; /* of the newest form, or of the ring that a successor found */
    int world;
    int member[RM_WORKERS_MAX]; /* workers in rank order */
    struct message form;        /* the newest, for whom it did not reach */
    struct msg_state resume;    /* of the newest form */
    bool loading;               /* its roles are load */
    bool trained;               /* a ring was formed at least once */
    bool found;                 /* this ring was formed by a predecessor */
    int64_t told, evaluated, saved;
    int64_t known_step; /* highest committed step anybody reported */
    bool saved_lineage_known;
    uint8_t saved_lineage[RM_HASH_BYTES];
    double loss, step_time; /* of the newest step told; smoothed ns */
    int64_t tokens;
    bool exact;
    char fingerprint[RM_FINGERPRINT_MAX], data_sha256[RM_HASH_HEX]; /* rdzv_fit.c says whose */
    bool fits_checkpoint; /* the fingerprint is that of who made the checkpoint to go on from */
    int64_t data_files, data_bytes;
    int forming_failures;                       /* in a row, without a step */
    struct rdzv_failure failure[FAILURES_KEPT]; /* that may still count */
    int failures;
    int64_t failures_total;
    struct msg_checkpoint refused[REFUSED_KEPT];
    int refused_count;
    struct rdzv_suspect suspect;
    int lists_differ;      /* times in a row */
    int64_t steps_seen;    /* by this coordinator, counted */
    rm_time leave_said;    /* the newest */
    rm_time arrived, left; /* newest arrival; newest quiescing that a leave began */
    rm_time leave_asked;   /* the first leave since then */
    rm_time reform_cost;
    rm_time turned, hang_look_at; /* newest sign that the ring, or its forming, moves on; no look before */
    rm_time step_times[STEP_TIMES_KEPT], median_step; /* of the newest steps; 0: none yet */
    rm_time circled;     /* since when all wait, as far as is seen; RM_NEVER: they do not */
    int64_t circle_came; /* bytes to all members, as looked at last */
    int64_t steps_timed;
    char waiting[MSG_DETAIL_MAX];
    struct rdzv_ending ending;
    struct rdzv_open_recovery recovery;
    struct rdzv_recovery last_recovery;
    int64_t recoveries;
    struct msg_save save; /* under way in SAVING */
    struct msg_state save_state;
    rm_time save_since;    /* however often it was cut anew */
    int vanished;          /* times that pieces of it were said to be written, and were not there */
    rm_time save_again_at; /* not before */
    bool save_again;       /* somebody's part of it can't be written: others have to */
    bool final_saved;
    struct rdzv_outage outage;
    struct rdzv_save_speed save_speed;
    int64_t given_up; /* step that those who hold it can't save any more before they go; -1 none */
    rm_time saved_at; /* when the newest was published, or the coordinator began */
    bool digest_known;
    uint8_t digest[RM_HASH_BYTES]; /* weightsSha256 of the last step */
    struct rdzv_collection collection[COLLECTIONS];
    struct rdzv_goodput goodput;
    rm_time accounted; /* the newest step's time */
    rm_time due;       /* when the next one was asked for */
    rm_time data_wait; /* of all trainers together */
    struct rdzv_pairs pairs;
    struct rdzv_probe probe;
};

/* rdzv.c */
void rdzv_move(struct rdzv *st, enum rdzv_state to, rm_time now);
void rdzv_say(struct rdzv *st, const char *format, ...) __attribute__((format(printf, 2, 3)));
void rdzv_quiesce(struct rdzv *st, enum msg_stop_at at, rm_time now, struct rdzv_out *out);
void rdzv_give_up(struct rdzv *st, int exit_code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void rdzv_end(struct rdzv *st, rm_time now, struct rdzv_out *out);
bool rdzv_on_its_way(const struct rdzv *st);

/* rdzv_invariants.c */
void rdzv_check_settings(const struct rdzv_settings *settings); /* what it may be opened with */
void rdzv_check_invariants(const struct rdzv *st);

/* rdzv_waiting.c: a reason is told when it is another one */
void rdzv_describe_missing(const struct rdzv *st, char *out, size_t size);
void rdzv_tell_waiting_for(struct rdzv *st, const char *reason, struct rdzv_out *out);
void rdzv_tell_waiting(struct rdzv *st, struct rdzv_out *out); /* for those who are missing */

/* rdzv_unsupervised.c */
bool rdzv_at_target(const struct rdzv *st, int workers); /* no more are worth waiting for */
bool rdzv_more_may_come(const struct rdzv *st);
rm_time rdzv_leave_at(const struct rdzv *st);         /* when the leaves that were asked for begin */
rm_time rdzv_recovering_until(const struct rdzv *st); /* then a successor goes on without who is missing */

/* rdzv_out.c: filling actions */
struct message *rdzv_send(struct rdzv *st, struct rdzv_out *out, enum msg_type type); /* to nobody yet */
void rdzv_send_to(struct rdzv_out *out, const struct rdzv_worker *w); /* adds to the newest send */
struct message *rdzv_send_one(struct rdzv *st, struct rdzv_out *out, const struct rdzv_worker *w,
                              enum msg_type type);
void rdzv_send_away(struct rdzv *st, struct rdzv_out *out, const struct rdzv_worker *w, int exit_code,
                    const char *why); /* abandon; its connection is the caller's to close */
void rdzv_close_conn(struct rdzv_out *out, int conn);
void rdzv_tell_end(struct rdzv_out *out, int exit_code, const char *why); /* the last action of all */
struct rdzv_tell *rdzv_tell(struct rdzv_out *out, enum rdzv_tell_kind kind);
void rdzv_tell_worker(struct rdzv *st, struct rdzv_out *out, enum rdzv_tell_kind kind, int worker,
                      const char *text);

/* rdzv_workers.c: who comes and goes */
bool rdzv_usable(const struct rdzv *st,
                 const struct rdzv_worker *w); /* at rest, may be formed or saved from */
bool rdzv_candidate(const struct rdzv *st, const struct rdzv_worker *w); /* usable and stays */
int rdzv_candidates(const struct rdzv *st);
int rdzv_members_max(const struct rdzv *st); /* as many as the job and its lanes take */
void rdzv_hello(struct rdzv *st, int conn, const struct msg_hello *hello, rm_time now, struct rdzv_out *out);
void rdzv_closed(struct rdzv *st, int conn, rm_time now, struct rdzv_out *out);
void rdzv_expect(struct rdzv *st, const struct command_expect *expect, rm_time now, struct rdzv_out *out);
void rdzv_lose(struct rdzv *st, struct rdzv_worker *w, const char *why, rm_time now, struct rdzv_out *out);
void rdzv_fault(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                struct rdzv_out *out);
void rdzv_release_leavers(struct rdzv *st, struct rdzv_out *out);
void rdzv_check_silence(struct rdzv *st, rm_time now, struct rdzv_out *out);
int rdzv_index(const struct rdzv *st, const struct rdzv_worker *w);

void rdzv_ring_without(struct rdzv *st, struct rdzv_worker *w, enum cause cause, rm_time now,
                       struct rdzv_out *out);

/* rdzv_fit.c: true where this worker can't take part; *ret then says why. Learns from it what the job is. */
bool rdzv_is_unfit(struct rdzv *st, const struct msg_hello *hello, rm_time now, struct msg_abandon *ret,
                   struct rdzv_out *out);
/* The newest checkpoint of all lists was made in one arithmetic: whoever computes in another one is sent
 * away. False: somebody was. */
bool rdzv_fit_checkpoint(struct rdzv *st, rm_time now, struct rdzv_out *out);
bool rdzv_is_mixed(const struct rdzv *st); /* bits of several kinds of machines came together, as allowed */

/* rdzv_failures.c. May put the worker into quarantine, which loses it. */
void rdzv_count_failure(struct rdzv *st, struct rdzv_worker *w, const char *why, rm_time now,
                        struct rdzv_out *out);

int rdzv_left(const struct rdzv *st); /* workers that train, or may yet */

/* rdzv_trouble.c: who fails at something, by the table of rdzv_fault.h */
struct fault_decision rdzv_trouble(struct rdzv *st, struct rdzv_worker *w, enum fault_where where,
                                   const struct msg_fault *f, bool proven, rm_time now);
void rdzv_act_on_trouble(struct rdzv *st, struct rdzv_worker *w, const struct fault_decision *d, rm_time now,
                         struct rdzv_out *out);
void rdzv_work_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                     struct rdzv_out *out);
void rdzv_trouble_over(struct rdzv_worker *w, enum fault_where where); /* it has worked */
void rdzv_slice_is_in(struct rdzv *st, struct rdzv_worker *w, int64_t step, bool anew);
void rdzv_write_is_over(struct rdzv_worker *w, int64_t step); /* of that step or an older one, well */
void rdzv_slice_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out); /* training goes on, perhaps without it */
bool rdzv_is_stuck(const struct rdzv *st, const struct rdzv_worker *w); /* a write of its does not return */
void rdzv_stuck_in_ring(struct rdzv *st, struct rdzv_worker *w, rm_time now, struct rdzv_out *out);
void rdzv_trouble_step(struct rdzv *st);
bool rdzv_held_back(const struct rdzv *st, const struct rdzv_worker *w);
bool rdzv_waits_for_trouble(const struct rdzv *st);
rm_time rdzv_trouble_at(const struct rdzv *st); /* when the next one is held back no longer */
int rdzv_describe_trouble(const struct rdzv *st, int worker, char *out, size_t size);
void rdzv_leave_out(struct rdzv *st, struct rdzv_worker *w, const char *why, int exit_code, rm_time now,
                    struct rdzv_out *out);

/* rdzv_load.c: checkpoints that do not load, lists that can't be had */
bool rdzv_is_of(const struct msg_checkpoint *c, const struct msg_state *s); /* it holds this state */
void rdzv_listed(struct rdzv_worker *w, const struct msg_checkpoints *list, rm_time now);
bool rdzv_lists_agree(struct rdzv *st, struct rdzv_out *out);
bool rdzv_all_are_damaged(struct rdzv *st, rm_time now, struct rdzv_out *out); /* true: the run has ended */
void rdzv_storage_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                        struct rdzv_out *out);
int rdzv_load_turn(const struct rdzv *st); /* by how many members the shares move on */
void rdzv_load_forgive(struct rdzv *st, int64_t step);

/* rdzv_hang.c */
void rdzv_hang_heartbeat(struct rdzv_worker *w, const struct msg_heartbeat *h, rm_time now);
void rdzv_hang_moved(struct rdzv *st, rm_time now);
void rdzv_hang_step_took(struct rdzv *st, rm_time took);
void rdzv_hang_asked(struct rdzv_worker *w, rm_time now); /* a stop at once is sent to it */
bool rdzv_hang_answers(const struct rdzv *st, const struct rdzv_worker *w, rm_time now);
void rdzv_check_hang(struct rdzv *st, rm_time now, struct rdzv_out *out);
rm_time rdzv_hang_at(const struct rdzv *st);

/* rdzv_form.c: from which step, with whom, in which role */
struct msg_state rdzv_best_state(const struct rdzv *st);
bool rdzv_ask_lists(struct rdzv *st, rm_time now,
                    struct rdzv_out *out); /* true: all that are needed are here, and agree */
bool rdzv_lists_are_in(const struct rdzv *st);
void rdzv_form(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                struct rdzv_out *out);
void rdzv_settle_forming(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_tell_formed(struct rdzv *st, struct rdzv_out *out);

void rdzv_fill_member(const struct rdzv *st, struct msg_member *m, int worker);

/* rdzv_pairs.c: workers that can't reach each other */
bool rdzv_pairs_are_apart(const struct rdzv *st, int a, int b);
uint64_t rdzv_pairs_in_ring(const struct rdzv *st, int worker); /* members that it is apart from */
bool rdzv_pairs_bar(const struct rdzv *st, int worker);         /* it may not join: there are such */
bool rdzv_pairs_answer_only(const struct rdzv *st, int worker); /* a handshake with a member proves little */
void rdzv_pairs_another_process(struct rdzv *st, int worker);
void rdzv_pairs_answered(struct rdzv *st, int a, int b); /* each the other's handshake */
/* Also while a ring that broke stops, for whom its other members name. */
void rdzv_pairs_fault(struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f);
void rdzv_pairs_stall(struct rdzv *st, int by, int peer, const char *why); /* by waits for bytes of peer's */
void rdzv_pairs_in_vain(struct rdzv *st);              /* the forming breaks, and nobody is named */
bool rdzv_pairs_stopped(struct rdzv *st, rm_time now); /* all have answered the stop; a pair is apart now */
void rdzv_pairs_choose(struct rdzv *st, rm_time now);  /* who is to form */
bool rdzv_pairs_hold_back(const struct rdzv *st,
                          rm_time now); /* there is something to do or wait for first */
rm_time rdzv_pairs_form_at(const struct rdzv *st);
rm_time rdzv_pairs_give_up_at(const struct rdzv *st);  /* RM_NEVER: it does not */
bool rdzv_pairs_give_up(struct rdzv *st, rm_time now); /* true: an ending is set */
void rdzv_pairs_say_too_few(const struct rdzv *st, char *out, size_t size);
void rdzv_pairs_formed(struct rdzv *st, rm_time now);                     /* `form` is about to be sent */
void rdzv_pairs_went(struct rdzv *st, rm_time now, struct rdzv_out *out); /* `go` is sent */
void rdzv_pairs_stepped(struct rdzv *st);                                 /* a step of this ring is made */

/* rdzv_probe.c: how who was left out for that comes back */
void rdzv_probe_later(struct rdzv *st, int worker, rm_time now);
void rdzv_probe_newcomer(struct rdzv *st, int worker, rm_time now); /* another process under this index */
void rdzv_probed(struct rdzv *st, const struct rdzv_worker *w, const struct msg_probed *m, rm_time now);
void rdzv_settle_probes(struct rdzv *st, rm_time now, struct rdzv_out *out); /* in TRAINING */
rm_time rdzv_probe_at(const struct rdzv *st);

/* rdzv_recover.c: taking over from a coordinator that died */
void rdzv_restore(struct rdzv *st);
void rdzv_recover_hello(struct rdzv *st, const struct msg_hello *hello);
void rdzv_recover_ready(struct rdzv *st, struct rdzv_worker *w, const struct message *ready);
void rdzv_step_down(struct rdzv *st, int64_t term, rm_time now, struct rdzv_out *out);
void rdzv_settle_recovering(struct rdzv *st, rm_time now, struct rdzv_out *out);

/* rdzv_progress.c: steps, evaluations, recoveries, where the time goes */
void rdzv_progress(struct rdzv *st, struct rdzv_worker *w, const struct message *m, rm_time now,
                   struct rdzv_out *out);
void rdzv_evaluated(struct rdzv *st, struct rdzv_worker *w, const struct msg_evaluated *e,
                    struct rdzv_out *out);
void rdzv_told_up_to(struct rdzv *st, int64_t step, struct rdzv_out *out); /* losses not known */
bool rdzv_all_told(struct rdzv *st, struct rdzv_out *out);
void rdzv_recovery_begin(struct rdzv *st, enum cause cause, struct rdzv_worker *w, rm_time now);
void rdzv_recovery_formed(struct rdzv *st, rm_time now);
void rdzv_recovery_done(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_account(struct rdzv *st, rm_time now);

/* rdzv_save.c: checkpoints */
void rdzv_checkpointed(struct rdzv *st, struct rdzv_worker *w, const struct msg_checkpointed *c,
                       struct rdzv_out *out);
void rdzv_published(struct rdzv *st, const struct msg_published *p, rm_time now, struct rdzv_out *out);
bool rdzv_save_begin(struct rdzv *st, const struct msg_state *state, bool final, rm_time now,
                     struct rdzv_out *out); /* false: nobody holds it, or it is saved already */
void rdzv_settle_saving(struct rdzv *st, rm_time now, struct rdzv_out *out);
void rdzv_save_resend(struct rdzv *st, struct rdzv_worker *w, struct rdzv_out *out);
void rdzv_write_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out);
rm_time rdzv_save_anew_at(const struct rdzv *st); /* pieces vanished; RM_NEVER: none, or it has begun */
void rdzv_save_failed(struct rdzv *st, int64_t step, const char *detail, rm_time now, struct rdzv_out *out);
bool rdzv_holds_what_is_saved(const struct rdzv *st, const struct rdzv_worker *w); /* in SAVING */
bool rdzv_save_lacks(const struct rdzv *st, int part); /* the save under way waits for this part */
void rdzv_forget_publisher(struct rdzv *st, const struct rdzv_worker *w);
void rdzv_publishing_waits(struct rdzv *st, const struct rdzv_worker *w, int64_t step);
struct msg_state rdzv_newest_checkpoint(const struct rdzv *st);
bool rdzv_may_load(const struct rdzv *st, const struct msg_checkpoint *c);
void rdzv_name_publishers(struct rdzv *st, struct rdzv_out *out);
bool rdzv_is_refused(const struct rdzv *st, const struct msg_checkpoint *c);

/* rdzv_outage.c: a store that is away */
void rdzv_save_waits(struct rdzv *st, struct rdzv_worker *w, const struct msg_save_waits *m, rm_time now,
                     struct rdzv_out *out);
rm_time rdzv_outage_over(struct rdzv *st, int64_t step,
                         rm_time now);                /* published; how long it lasted, 0: none */
rm_time rdzv_save_gives_up_at(const struct rdzv *st); /* in SAVING; RM_NEVER: not while nothing waits */
bool rdzv_save_gives_up(struct rdzv *st, rm_time now, struct rdzv_out *out); /* true: the run has ended */

/* rdzv_leave.c: an unsaved state whose holders were told to go */
bool rdzv_leaves_unsaved(struct rdzv *st, const struct msg_state *state, rm_time now, struct rdzv_out *out);
void rdzv_measure_slice(struct rdzv *st, const struct msg_checkpointed *c);
void rdzv_measure_publishing(struct rdzv *st, const struct msg_published *p);

#endif
