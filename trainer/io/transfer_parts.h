/* The inside of a source and of one service, shared by the files of trainer/io that serve. */
#ifndef RM_IO_TRANSFER_PARTS_H
#define RM_IO_TRANSFER_PARTS_H

#include <pthread.h>

#include "trainer/io/transfer_share.h"
#include "trainer/io/transfer_wire.h"

struct transfer_source {
    struct state *state;
    int tensors;
    pthread_rwlock_t gate; /* readers: one chunk's copy; writer: allow, forbid, give, move */
    uint64_t epoch;        /* changes with every allow and forbid */
    bool open, exact, kept;
    struct state_point point;
    struct state_arrays arrays;
    struct state_update update;
    bool gives;                  /* share is given */
    uint64_t share_epoch;        /* changes with every give and forbid */
    struct transfer_share share; /* newest that was given */
    struct abort_flag given;     /* set where somebody who waits for a share should look again */
};

/* One receiver being served. */
struct service {
    struct transfer_source *source;
    int fd;
    const struct abort_flag *closing;
    uint64_t epoch; /* of the gate when the reply was made */
    uint8_t *chunk; /* (4 + TRANSFER_CHUNK) */
};

int service_send(const struct service *s, const void *bytes, size_t length);
/* The checksum of some bytes, and these. */
int service_send_checked(const struct service *s, const void *bytes, size_t length);

/* Answers a request for a share of this source, asked for in that generation. */
void service_give(struct service *s, const struct transfer_request *request,
                  struct ring_generation generation);

/* Receives so many bytes to a place in a memory, chunk by chunk, as they were sent. */
int transfer_chunks(const struct transfer_want *want, int fd, struct memory *in, struct far to, int64_t bytes,
                    struct error *err);
/* The same for (count) elements of 4 bytes here. */
int transfer_chunks_here(const struct transfer_want *want, int fd, void *to, int64_t count,
                         struct error *err);

#endif
