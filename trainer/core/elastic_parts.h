/* The inside of the elastic core, shared by its files. */
#ifndef RM_TRAINER_ELASTIC_PARTS_H
#define RM_TRAINER_ELASTIC_PARTS_H

#include "trainer/core/elastic.h"
#include "trainer/core/made.h"

enum mode {
    MODE_IDLE,    /* no ring, state at rest: never formed, or stopped */
    MODE_STATE,   /* forming: bringing the state to what the form asks for */
    MODE_CONNECT, /* forming: state fine, ring being connected */
    MODE_READY,   /* waiting for go */
    MODE_TRAIN,
    MODE_FAULTED, /* the ring is of no use any more; waiting for the coordinator's stop */
};

/* How far the step is that is being made. */
enum stage {
    STAGE_NONE,     /* nothing of it is done */
    STAGE_UNFIT,    /* a pass did not fit */
    STAGE_COMPUTED, /* the lanes of a pass are */
    STAGE_DECIDED,  /* all have its words: it is made, whatever comes */
};

struct elastic {
    struct elastic_settings settings;
    struct msg_state state;
    int64_t update_step;
    struct lane_set kept; /* of the step behind state */
    enum mode mode;
    enum elastic_command running; /* CMD_NONE: the compute thread is idle */
    struct msg_generation generation;
    struct message form;                 /* the one being obeyed, valid from MODE_STATE on */
    struct message next;                 /* a newer form that waits for the compute thread to come to rest */
    struct message listen;               /* to whom it listens, valid where it does: */
    bool listens, heard;                 /* heard: all of a state is there since */
    int64_t heard_told, heard_evaluated; /* others' steps and evaluations up to this one, so that who made
                                            them need not live to; -1: none */
    bool next_set;
    struct msg_loaded loaded;
    bool loaded_set;
    struct worker_set shares;              /* of the checkpoint that are there */
    bool load_busy;                        /* the agent reads, maybe into the state's memory */
    struct msg_generation load_generation; /* of the newest form that it reads for */
    enum elastic_command transfer;         /* what MODE_STATE does next; CMD_NONE: nothing (any more) */
    bool follows; /* the others have made a step that it still fetches, before it makes the next one */
    bool stop_pending, stop_seen; /* asked by the agent; seen in a reduction */
    struct msg_stop stop;
    bool discarded;    /* a pass was thrown away in this generation */
    bool save_pending; /* the agent asked for a slice */
    struct msg_save save;
    bool snapshot_busy;   /* the agent still reads the snapshot memory */
    bool snapshot_wanted; /* and was told that it is waited for */
    bool snapshot_final;
    int snapshot_part, snapshot_parts;
    enum stage stage;
    struct made made;
    bool evaluate_due, snapshot_due, finished, compared; /* compared: that all hold the same bits is seen */
    rm_time state_time;
    double last_loss;
    bool loss_known;
};

/* elastic.c */
/* A message to the agent, with the generation filled in. */
struct message *elastic_say(struct elastic *st, struct elastic_out *out, enum msg_type type);
/* Both threads are idle. */
void elastic_begin(struct elastic *st, struct elastic_out *out, enum elastic_command command);

/* elastic_names.c: for sentences of assertions */
const char *elastic_mode_name(const struct elastic *st);
const char *elastic_stage_name(const struct elastic *st);
const char *elastic_running_name(const struct elastic *st);
const char *elastic_outcome_name(enum elastic_outcome outcome);

/* elastic_listen.c */
void elastic_on_listen(struct elastic *st, const struct message *m, struct elastic_out *out);
void elastic_listen_on(struct elastic *st, struct elastic_out *out);
void elastic_after_listen(struct elastic *st, const struct elastic_result *r, struct elastic_out *out);

#endif
