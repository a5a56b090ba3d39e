/* One trainer process after another, on memory that outlives each of them: start, link, end. */
#ifndef RM_AGENT_WORKER_TRAINER_H
#define RM_AGENT_WORKER_TRAINER_H

#include <stdbool.h>

#include "common/loop/loop.h"
#include "common/wire/message.h"

struct worker_trainer;

struct worker_trainer_options {
    int state_fd, snapshot_fd; /* memory files, the caller's; -1 where a launcher alone is up */
    bool launches; /* a launcher of the user's program in the trainer's place (agent/launch), or, with memory
                      files, of both */
    bool alone;    /* no other worker has a share in what this one may use, as in a pod */
    void (*message)(void *ctx, const struct message *message); /* borrowed for the call */
    /* Once per start, after everything that it said was handed over: code is its exit code or -1, text says
     * how it ended ("killed by signal 9"). */
    void (*ended)(void *ctx, int code, const char *text);
    /* At each start: the trainer's end of a socket for data (trainer/io/feed.h), or -1. NULL: never one. */
    int (*data_socket)(void *ctx, int *ret_fd, struct error *err);
    void *ctx;
};

/* Finds the program (RINGMASTER_TRAINER, else beside this one); starts nothing. */
int worker_trainer_open(struct worker_trainer **ret, struct loop *loop,
                        const struct worker_trainer_options *options, struct error *err);
/* Where one is up already, that is an error. */
int worker_trainer_start(struct worker_trainer *trainer, struct error *err);
bool worker_trainer_up(const struct worker_trainer *trainer);
int worker_trainer_pid(const struct worker_trainer *trainer); /* 0: there is no process */
/* Dropped where none is up: its end is on the way to the caller then. */
void worker_trainer_send(struct worker_trainer *trainer, const struct message *message);
void worker_trainer_kill(struct worker_trainer *trainer);
void worker_trainer_free(struct worker_trainer *trainer); /* kills it where it is up, without `ended` */

#endif
