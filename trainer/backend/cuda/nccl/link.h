/* A communicator of NCCL with the thread that makes and ends it. */
#ifndef RM_TRAINER_CUDA_NCCL_LINK_H
#define RM_TRAINER_CUDA_NCCL_LINK_H

#include <pthread.h>

#include "trainer/backend/cuda/driver/device.h"
#include "trainer/backend/cuda/nccl/nccl.h"
#include "trainer/backend/transport.h"

/* Shared by those who open it and the thread: freed by the last. */
struct nccl_link {
    struct nccl *nccl;
    struct cuda_device *device;
    pthread_mutex_t lock;
    pthread_cond_t turn;
    int holders;
    enum transport_state state;
    bool wanted_id, dropped, ended; /* ended: the thread has done all that it will */
    bool open;                      /* without the job's key */
    bool entered;                   /* the thread's: nccl_enter */
    ncclUniqueId id;
    bool given; /* id, rank and world */
    int rank, world;
    ncclComm_t comm; /* the thread's, but for sums while TRANSPORT_READY and not dropped */
    char why[RM_WHY_MAX];
};

/* NULL: no memory, or no thread. */
struct nccl_link *nccl_link_open(struct nccl *nccl, struct cuda_device *device);
void nccl_link_want_id(struct nccl_link *l, bool open);
/* An id that this link made is used as it was made. */
void nccl_link_connect(struct nccl_link *l, const uint8_t *id, int rank, int world, bool open);
enum transport_state nccl_link_state(struct nccl_link *l, char *why);
/* It is of no use any more: says why, where nothing was said. */
void nccl_link_spoil(struct nccl_link *l, const char *why);
/* Nobody sums by it any more, and the thread aborts it: at once, but when that is done nobody knows. */
void nccl_link_drop(struct nccl_link *l);
bool nccl_link_ended(struct nccl_link *l);
/* After the drop, the caller's last word: waits so many milliseconds at most for the thread's end; false: it
 * has not ended, and still uses what it was opened with. */
bool nccl_link_free(struct nccl_link *l, int ms);

#endif
