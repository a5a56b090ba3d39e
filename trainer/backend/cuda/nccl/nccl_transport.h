/* NCCL as the second way for the words of a step (trainer/backend/transport.h), among GPUs.
 *
 * Each connection is a communicator made anew, without blocking (`blocking = 0`), on a thread of its own,
 * which also aborts it: NCCL's calls that make and end a communicator may take seconds, or never return, and
 * then a thread is lost and no step. While it is ready the thread rests, and the sums' caller is alone inside
 * NCCL. A communicator is always aborted, never destroyed: after an abort anywhere a destroy may wait for
 * ever, and before a planned end no sum is under way.
 *
 * Nothing waits for a stream that holds a sum: it is asked, by turns with the communicator, the neighbours
 * and the wish to give up. */
#ifndef RM_TRAINER_CUDA_NCCL_TRANSPORT_H
#define RM_TRAINER_CUDA_NCCL_TRANSPORT_H

#include "trainer/backend/cuda/driver/device.h"
#include "trainer/backend/transport.h"

/* device: of the words, must outlive it. key: the job's, as nccl_open's. Refused, with a sentence: as
 * nccl_open. */
int nccl_transport_open(struct transport **ret, struct cuda_device *device, const char *key,
                        struct error *err);

#endif
