/* Real trainer processes in the hands of a test, which plays all their agents and the coordinator: it speaks
 * the link protocol over socketpairs. Whatever goes wrong here fails the test with a sentence. */
#ifndef RM_TEST_TRAINER_RIG_H
#define RM_TEST_TRAINER_RIG_H

#include <sys/types.h>

#include "common/job/spec.h"
#include "common/model/snapshot.h"
#include "common/wire/message.h"

enum { RIG_TRAINERS = 8, RIG_STEPS = 24 };

struct rig_trainer {
    int worker;
    pid_t pid; /* 0: none */
    int link, state_fd, snapshot_fd;
    int restarts;
    bool snapshot_busy; /* said in the next setup */
    int beats;          /* heartbeats before it was up */
    struct msg_up up;
    struct msg_state state; /* last heard of */
    int64_t update_step;
    bool finished;
    uint8_t digest[RM_HASH_BYTES];
    double loss; /* of the last step */
};

struct rig {
    struct job_spec spec;
    char folder[64];
    struct msg_generation generation;
    int64_t round;
    int64_t step;      /* highest step that anybody reported */
    rm_time saved_ago; /* said in the next form */
    double evaluated[RIG_STEPS + 1];
    int evaluations;
    enum msg_role role[RIG_TRAINERS]; /* of each worker in the last form */
    bool follows;                     /* said of who is a step behind: nobody waits until it is not */
    struct rig_trainer t[RIG_TRAINERS];
    struct message message; /* the last received */
};

/* A tiny model on text of its own; set what differs in rig->spec before the first spawn. */
struct rig *rig_open(void);
void rig_close(struct rig *rig);

/* A trainer process for worker w on its memory (new memory where there is none); waits for `up`.
 * fault: RINGMASTER_FAULT for it, or NULL. */
void rig_spawn(struct rig *rig, int w, const char *fault);
/* New memory for the worker's state: what it held is forgotten. */
void rig_forget(struct rig *rig, int w);
void rig_kill(struct rig *rig, int w);
/* Waits for its end and returns its exit code, or -signal. */
int rig_wait(struct rig *rig, int w);

void rig_send(struct rig *rig, int w, const struct message *message);
/* Reads from w until a message of that type comes, noting what passes by; false where the link ended. */
bool rig_expect(struct rig *rig, int w, enum msg_type type);

/* form + ready + go for these workers, in rank order, as a coordinator would do it by what they hold. */
void rig_form(struct rig *rig, const int *workers, int n);
/* form alone, with roles worked out; returns how many hold the resume state. */
int rig_send_form(struct rig *rig, const int *workers, int n);
void rig_go(struct rig *rig, const int *workers, int n);
/* The memory that worker w shares with its agent, as the agent maps it: params | m | v. */
float *rig_map_area(struct rig *rig, int w, enum snapshot_area area, size_t *ret_bytes);
/* A snapshot's state loaded by worker w alone, out of params | m | v of these bytes: form, loaded, ready, go.
 */
void rig_load(struct rig *rig, int w, const struct msg_snapshot *snapshot, const void *bytes);
/* Waits until worker w has reported that step. */
void rig_until(struct rig *rig, int w, int64_t step);
/* stop + stopped for these workers. */
void rig_stop(struct rig *rig, const int *workers, int n, enum msg_stop_at at);
void rig_send_stop(struct rig *rig, const int *workers, int n, enum msg_stop_at at);
/* Waits for `finished` of all, and for one digest; hex into out. */
void rig_finish(struct rig *rig, const int *workers, int n, char out[RM_HASH_HEX]);

#endif
