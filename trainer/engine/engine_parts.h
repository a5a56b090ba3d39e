/* The inside of an engine, shared by the files that carry out its commands. */
#ifndef RM_TRAINER_ENGINE_PARTS_H
#define RM_TRAINER_ENGINE_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/model/snapshot.h"
#include "common/os/held_cpu.h"
#include "common/storage/data/prefetch.h"
#include "common/storage/data/scrub.h"
#include "trainer/backend/backend.h"
#include "trainer/backend/transport.h"
#include "trainer/collective/collective.h"
#include "trainer/core/cursor.h"
#include "trainer/core/pace.h"
#include "trainer/core/second.h"
#include "trainer/engine/engine.h"
#include "trainer/io/data_port.h"
#include "trainer/io/feed.h"
#include "trainer/io/transfer_listen.h"
#include "trainer/state/state.h"

struct engine {
    const struct job_spec *spec;
    bool alone; /* see engine_options */
    void (*refused)(const char *why);
    struct handshake_end self;
    struct handshake_secret secret;
    char isa[sizeof((struct job_spec *)0)->isa];
    struct model_layout layout;
    struct cursor cursor;
    uint8_t data_sha256[RM_HASH_BYTES];
    char probe[RM_PROBE_MAX]; /* "": who computes has none */

    struct feed *feed; /* NULL: the data is in a folder */
    struct corpus *corpus;
    struct scrub *scrub;     /* of the corpus; NULL: nobody looks at it again */
    struct prefetch *reader; /* of the corpus, from its opening on; NULL: a program reads its data itself */
    struct backend *backend; /* who computes */
    struct state *state;
    char *area[SNAPSHOT_AREAS]; // (area_bytes) each: the memory shared with the agent, arrays without gaps
    int64_t area_bytes;
    int32_t *tokens;    // (context + 1) of evaluation
    uint32_t *losses;   // (2, evaluation sequences) bits of fp32: the own ones, and everybody's
    rm_time saved_at;   /* of the newest snapshot or checkpoint that is known of, for checkpoint.every */
    bool snapshot_free; /* of the step being made: the agent does not read the snapshot area */
    bool packed;        /* who computes knows the state's weights as they are */
    bool exact;         /* the state's history */
    struct {
        int number; /* 0: the first of its step */
        struct backend_sums sums;
        struct verdict verdict;    /* of the newest exchange */
        int32_t k[RM_TENSORS_MAX]; /* that the next pass needs where that was VERDICT_RESCALE */
        bool scaled;               /* k is of this step: it had such a pass */
        struct state_point behind; /* the state that its lanes are computed from */
        int world;                 /* of the ring in which it was begun */
        struct lane_set done;      /* whose sums are there; none where they are in doubt */
        int disputed; /* lane + 1 that all computed in this pass, or are to in the next; 0: none */
    } pass;
    struct {
        struct pace ring;        /* of this one */
        struct pace_watch watch; /* of this worker, whatever ring it is in */
        int percent;             /* of the median rank's time a lane, where it is slow; else 0 */
        enum msg_slow_by by;     /* likewise, why */
        struct held_cpu doubted; /* when that began to show */
    } pace;
    int64_t sure;        /* the step whose state was found to have the bits that it wrote; -1: none */
    bool fresh;          /* the state was received since headers agreed last */
    struct losses heard; /* CMD_LISTEN: of others' steps */
    int64_t rescaled;
    rm_time reduce_time; /* of all reductions since the start */
    int64_t reduce_bytes;

    struct data_port *port;
    struct transfer_source *source;
    struct collective *ring;         /* NULL: none */
    pthread_mutex_t ring_lock;       /* over the pointer: any thread may abort it */
    int ring_worker[RM_WORKERS_MAX]; /* worker of each rank */
    struct {
        struct transport *transport; /* NULL: there is none; own.why says why */
        struct second second;
        struct second_own own;    /* as it was looked at last */
        uint32_t *offer, *offers; // (SECOND_WORDS) what this rank says in a header's sum, and the sum
        bool now;                 /* the words of this pass go by it */
        bool told_open;           /* that it does without the job's key */
    } other;                      /* way for the words, beside the ring (engine_transport.c) */

    struct abort_flag abort[ELASTIC_THREADS]; /* of the command under way there */
    struct abort_flag enough;                 /* CMD_LISTEN: no further step is waited for */
    atomic_bool stop, save, corrupt, exchanging;
    atomic_bool pause;        /* no further lane is begun */
    atomic_bool told_apart;   /* that it can't share memory with others on its machine */
    atomic_bool told_without; /* that there is no second way for the words */
    atomic_llong save_every;  /* checkpoint.every, where that is Auto what was told; 0: no timed checkpoint */
    atomic_bool in_memory;    /* at work on our own memory alone, for seconds: that can't wait, so it moves */
    atomic_llong counter, received;
    atomic_llong place;     /* in the ring's stream */
    atomic_int waiting_for; /* worker before us in the ring, while we are inside a reduction; else -1 */
};

/* engine_failed.c: fills ret's outcome, peer and text from a failure */
void engine_failed(struct elastic_result *ret, const struct error *err, int peer_worker);

/* engine_state.c: what makes, moves and reads the state */
/* The state's arrays as they lie in an area, and where the first of them lies: its parameters. */
struct state_arrays engine_area(struct engine *e, enum snapshot_area area);
struct far engine_params(struct engine *e);
/* One array after the other from an area to the state. */
int engine_copy_in(struct engine *e, const struct state_arrays *from, const struct state_arrays *to,
                   struct error *err);
void engine_init_state(struct engine *e, struct elastic_result *ret);
void engine_receive(struct engine *e, const struct message *form, struct elastic_result *ret);
void engine_catch_up(struct engine *e, const struct message *form, struct elastic_result *ret);
void engine_listen(struct engine *e, const struct message *message, struct elastic_result *ret);
void engine_snapshot(struct engine *e, int part, int parts, struct elastic_result *ret);
void engine_digest(struct engine *e, struct elastic_result *ret);
void engine_drop(struct engine *e);
/* Finishes what a predecessor began. */
int engine_repair(struct engine *e, struct error *err);
/* What a command is to receive for a form, from these members. peers: (sources), lives as long as want. */
void engine_want(struct engine *e, enum elastic_command command, const struct message *message,
                 const struct msg_member *source, int sources, struct transfer_want *want,
                 struct transfer_peer *peers);

/* engine_data.c */
int engine_data_open(struct engine *e, const struct engine_options *options, struct error *err);
/* True with ret failed: they are not what they were when this worker started. */
bool engine_data_spoilt(const struct engine *e, struct elastic_result *ret);

/* engine_backend.c: the one file here that knows who can compute */
int engine_threads(const struct engine *e); /* that a trainer may have at work */
int engine_backend_open(struct engine *e, const struct engine_options *options, struct error *err);

/* engine_load.c: a checkpoint, of which each member of the ring reads a share */
void engine_load(struct engine *e, const struct elastic_action *action, struct elastic_result *ret);
/* Whether the command goes on with a load under way, whose share others may be taking. */
bool engine_load_goes_on(const struct elastic_action *action);

/* engine_ring.c */
void engine_connect(struct engine *e, const struct message *form, struct elastic_result *ret);
void engine_disconnect(struct engine *e);
/* Sums over the ring, or fails with the neighbour's worker in *ret_worker. */
int engine_reduce(struct engine *e, const struct collective_segment *segments, int n, int *ret_worker,
                  struct error *err);
/* False with ret failed where there is no ring, or no state. */
bool engine_can_train(const struct engine *e, struct state_point *point, struct elastic_result *ret);

/* engine_transport.c: the second way for a step's words, beside the ring */
int engine_transport_open(struct engine *e, struct error *err);
void engine_transport_free(struct engine *e);
/* There is no ring any more, or another one. */
void engine_transport_drop(struct engine *e);
void engine_transport_ring(struct engine *e, const struct msg_form *form, int rank);
/* LANES_READY, or 0: what this rank says in its next header. */
uint32_t engine_transport_flags(struct engine *e);
/* What else is summed with a header: returns how many segments it fills, 0 or 1. */
int engine_transport_offer(struct engine *e, struct collective_segment *segment);
/* The header has been summed: decides how its words go. leads: the step that they lead to. */
void engine_transport_hear(struct engine *e, uint32_t flags, int64_t leads);
/* Whether these words go by it; then the sum, or fails as engine_reduce does. */
bool engine_transport_takes(const struct engine *e, const struct collective_segment *words);
int engine_transport_reduce(struct engine *e, const struct collective_segment *words, int *ret_worker,
                            struct error *err);

/* For the step that was exchanged. */
void engine_transport_tell(const struct engine *e, struct msg_transport *ret);

/* engine_compare.c */
/* What this rank alone says in each header: LANES_OWN. */
uint32_t engine_own_flags(const struct engine *e);
/* Of a header that all have summed; and what becomes of this rank's state where there are some. */
struct worker_set engine_odd_states(const struct engine *e, const uint32_t *header);
void engine_states_differ(struct engine *e, const uint32_t *header, struct worker_set odd, int64_t step,
                          struct elastic_result *ret);
void engine_compare(struct engine *e, struct elastic_result *ret);

/* engine_kept.c */
/* What a lane learns from, in tokens, or in samples where there are none. */
int64_t engine_lane_tokens(const struct engine *e);
/* Whose lanes they are in this ring, of the step behind that one. */
void engine_own_lanes(const struct engine *e, const struct message *form, int64_t step, struct lane_set *ret);
/* Of the step behind the state held, those whose sums are there, and stand. */
void engine_kept_lanes(const struct engine *e, struct lane_set *ret);
void engine_forget_lanes(struct engine *e);
/* What this rank has added, and what its lanes' checksums say of it. Words that lie far away are not looked
 * at. */
bool engine_words_stand(const struct engine *e);
/* Behind an exchange: forgets them where it ended otherwise than by somebody's going, and this rank's part in
 * it is not known to be sound. */
void engine_keep_sound(struct engine *e, const struct elastic_result *ret);
/* Has each lane been added once, by what all say of theirs? */
bool engine_lanes_are_whole(const struct engine *e);

/* engine_pace.c */
/* There is a new ring. */
void engine_pace_ring(struct engine *e);
/* The header of a step that fits has been summed. */
void engine_pace_hear(struct engine *e);
/* Its words have been, too: what is read of this machine holds nobody up between the two. */
void engine_pace_watch(struct engine *e);
/* For the step that was exchanged. */
void engine_pace_tell(const struct engine *e, struct msg_pace *ret);

/* engine_step.c */
/* Lets the next step's lanes be read already: the ring is there. */
void engine_read_ahead(struct engine *e, const struct message *form);
void engine_lanes(struct engine *e, const struct elastic_action *action, struct elastic_result *ret);
void engine_exchange(struct engine *e, struct elastic_result *ret);
void engine_commit(struct engine *e, struct elastic_result *ret);
void engine_evaluate(struct engine *e, struct elastic_result *ret);

#endif
