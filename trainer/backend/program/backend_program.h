/* Who computes is a user's program (launch.mode: Elastic): it computes lanes and updates its own weights, and
 * this process sums, decides, keeps what is needed to catch up, and speaks with the others.
 *
 * The program holds the state. What others see of it is its image, one array of bytes in a memory that both
 * map (state_shape.image): read, it is asked for where it is not of the state held (once a step at most);
 * written, the program is told before it does anything else. An update is done when the program asks for the
 * next task after it. All that is known of it is gone with the program, and it with all: when one of the two
 * ends the launcher ends the other. */
#ifndef RM_BACKEND_PROGRAM_H
#define RM_BACKEND_PROGRAM_H

#include "common/base/time.h"
#include "trainer/backend/backend.h"

struct backend_program_options {
    int fd;               /* listens for the program (SOCK_SEQPACKET), taken over */
    int lanes, sequences; /* of a step; samples of a lane */
    int64_t steps;        /* of the job */
    uint64_t seed;
    int threads;                 /* for the sums */
    rm_time patience;            /* for the program to connect */
    const atomic_int *stop;      /* gives that up */
    atomic_llong *pulse;         /* grows while anything moves here; NULL: nobody looks */
    bool patient;                /* and while the program is not too long at a task (slack.h) */
    struct model_layout *layout; /* filled: its gradients; must outlive it */
};

/* Waits for the program. ERR_USAGE with a sentence for its author: it does not connect, or asks for what
 * there is not. */
int backend_program_open(struct backend **ret, const struct backend_program_options *options,
                         struct error *err);

/* What names the program's data, in the place of a hash of them: how many samples there are. */
void backend_program_data(const struct backend *b, uint8_t out[RM_HASH_BYTES]);

#endif
