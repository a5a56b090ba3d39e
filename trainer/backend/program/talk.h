/* The trainer's side of the conversation with a user's program (common/program/packets.h): who connects, what
 * it says of itself, and one task after the other.
 *
 * The program asks for the next task when it has done the one before, and one is under way at a time. A task
 * is handed out by talk_task, which waits for the program where it is still at the one before; talk_settle
 * waits until it is done. Any thread, one call at a time (the caller's lock).
 *
 * A program that ends, or says that it failed, says so to its launcher as well, who knows why and ends this
 * process for it. So a conversation that has ended is waited with for a while before it is an error here
 * (ERR_MACHINE). */
#ifndef RM_BACKEND_PROGRAM_TALK_H
#define RM_BACKEND_PROGRAM_TALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/model/layout.h"
#include "common/program/packets.h"

struct talk;

struct talk_options {
    int fd;                 /* listens (SOCK_SEQPACKET); closed as soon as one has come */
    rm_time patience;       /* for the program to connect and say what it has */
    const atomic_int *stop; /* gives that up (ERR_ABORTED) */
    atomic_llong *at_work;  /* grows while a program is waited for that is not too long at its task (slack.h);
                               NULL: nobody looks, or the job says itself how long it may be */
};

/* What a program says of itself. */
struct talk_program {
    struct program_hello hello;
    int64_t image_bytes;
    uint8_t gradients_sha256[RM_HASH_BYTES]; /* of names and sizes, in order */
};

/* Waits for a program and hears it out. layout: filled with its gradients, one tensor each; of a name too
 * long the end. ERR_USAGE: it never came; it has more tensors than RM_TENSORS_MAX, and the like: a sentence
 * for the user, that the program is told, too. */
int talk_open(struct talk **ret, const struct talk_options *options, struct model_layout *layout,
              struct talk_program *ret_program, struct error *err);
/* Says END (why: "" where the job is complete) and closes. NULL is fine. */
void talk_free(struct talk *t, const char *why);
/* Answers READY. memory: goes along. */
int talk_welcome(struct talk *t, const struct program_welcome *welcome, int memory, struct error *err);

/* Hands out a task (word is filled in). stop: while it waits for the one before; NULL: never. */
int talk_task(struct talk *t, const struct program_task_packet *task, const atomic_int *stop,
              struct error *err);
/* Waits until nothing is under way. *ret_loss: what was said of the newest task; NULL: nobody asks. */
int talk_settle(struct talk *t, const atomic_int *stop, double *ret_loss, struct error *err);
/* Where nothing is under way the program is told to ask again, so that it looks at its signals. */
void talk_idle(struct talk *t);

#endif
