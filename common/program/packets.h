/* What a trainer and a user's program that computes for it say to each other (launch.mode: Elastic).
 *
 * The trainer keeps the ring, the exact sums, what is kept of an update, and all that others ask for; the
 * program computes lanes and updates its own weights. Both are on one machine: packets (SOCK_SEQPACKET) over
 * a Unix socket that the trainer listens at (RINGMASTER_SOCKET in the program's environment), and one shared
 * memory, which the trainer makes and hands over with PROGRAM_WELCOME (SCM_RIGHTS). Everything here is plain
 * C of fixed sizes, little-endian, without pointers, so that the library in the user's process needs nothing
 * else of ours.
 *
 * The program asks, the trainer answers; one question is under way at a time:
 *
 *     program                                   trainer
 *     HELLO {abi, samples, arithmetic}
 *     GRADIENT {name, count} once a tensor, in the order of the areas
 *     READY {image_bytes}                  ->   WELCOME {sizes, places} + the memory; or END {why}
 *     NEXT                                 ->   TASK {kind, ...}; AGAIN after a moment without one
 *     (does it)
 *     NEXT {ok, loss} or {failed, why}     ->   the next one
 *     REPORT {key, value}, at any time, unanswered
 *
 * Tasks. The program has nothing to decide; whatever happens around it, it does the next one:
 *     LANE     forward and backward of one lane: `samples` indices lie at samples_at[area]; the gradient of
 * the lane's mean loss, fp32, into area; its random numbers come from (seed, step, lane) alone. The same lane
 * may be asked for again (pass > 0, or after a loss). While it computes, the trainer may still read the other
 * area. UPDATE   the mean gradient of all lanes of step `step` lies in area: apply it. loss: mean over lanes.
 *              From here on the program's state is that of `step`.
 *     SAVE     write the state's image at image_at, image_bytes long.
 *     LOAD     an image lies at image_at: it is the state from here on, of step `step`.
 *     END      nothing more: why is empty where the job is complete; else a sentence. The connection closes.
 *     AGAIN    nothing to do yet: look at signals, ask again.
 *
 * The image is a safetensors file (header, then tensors): all that decides what the program will do next,
 * weights under "model.*". Its size is told once and stays: numbers that change lie in it as tensors of no
 * dimension, not as text. Programs that hold the same state make the same bytes of it. */
#ifndef RM_PROGRAM_PACKETS_H
#define RM_PROGRAM_PACKETS_H

#include <stdint.h>

enum { PROGRAM_ABI = 1, PROGRAM_AREAS = 2, PROGRAM_TEXT_MAX = 1024, PROGRAM_NAME_MAX = 256 };

enum program_word {
    PROGRAM_HELLO = 1,
    PROGRAM_GRADIENT,
    PROGRAM_READY,
    PROGRAM_NEXT,
    PROGRAM_REPORT,
    PROGRAM_WELCOME = 64,
    PROGRAM_TASK,
};

enum program_task {
    PROGRAM_LANE = 1,
    PROGRAM_UPDATE,
    PROGRAM_SAVE,
    PROGRAM_LOAD,
    PROGRAM_END,
    PROGRAM_AGAIN
};

/* A packet begins with its word and is as long as its struct; another length is refused. Texts end with 0. */

struct program_hello {
    uint32_t word, abi;
    int64_t samples;      /* of the data: indices are below it */
    uint32_t determinate; /* 1: a lane computed twice has the same bits, so that audits may be made */
    uint32_t pid;
    char arithmetic[PROGRAM_TEXT_MAX]; /* all that decides bits, for the fingerprint: "torch 2.9.0, 4 threads"
                                        */
};

struct program_gradient {
    uint32_t word, unused;
    int64_t count;               /* fp32 elements */
    char name[PROGRAM_NAME_MAX]; /* unique */
};

struct program_ready {
    uint32_t word, gradients; /* how many were told */
    int64_t image_bytes;
};

struct program_next {
    uint32_t word, failed;
    double loss;                /* of a lane that was done */
    char why[PROGRAM_TEXT_MAX]; /* where it failed: one line, for the last word */
};

struct program_report {
    uint32_t word, unused;
    double value;
    char key[PROGRAM_NAME_MAX];
};

struct program_welcome {
    uint32_t word, lanes;       /* of a step */
    uint32_t sequences, unused; /* samples of a lane */
    int64_t steps;              /* of the job */
    uint64_t seed;
    int64_t bytes;                     /* of the memory */
    int64_t area_at[PROGRAM_AREAS];    /* (gradients' elements) fp32 each, from the start of the memory on */
    int64_t samples_at[PROGRAM_AREAS]; /* (sequences) int64 each */
    int64_t image_at;
};

struct program_task_packet {
    uint32_t word, kind; /* enum program_task */
    int64_t step; /* LANE: the step that it is for (1 is the first); else the one that is held afterwards */
    uint32_t lane, pass, area, unused;
    uint64_t seed;              /* LANE: of (job's seed, step, lane) */
    double loss;                /* UPDATE: of the step */
    char why[PROGRAM_TEXT_MAX]; /* END */
};

#endif
