/* The inside of a source and of one service, shared by the files of trainer/io that serve. */
#ifndef RM_IO_TRANSFER_PARTS_H
#define RM_IO_TRANSFER_PARTS_H

#include <pthread.h>

#include "common/model/losses.h"
#include "trainer/io/pull_pace.h"
#include "trainer/io/transfer_share.h"
#include "trainer/io/transfer_wire.h"

#define SERVE_PATIENCE (30 * RM_S) /* a receiver that takes nothing for so long is given up */

/* The newest update, copied aside for those who listen: transfer_keep.c. */
struct transfer_keep {
    pthread_mutex_t lock; /* over what follows; may be taken under the gate, and not the other way round */
    pthread_cond_t moved;
    pthread_t thread;
    bool on, quit;
    int64_t wanted, tried; /* steps: to be copied; that it has been tried for */
    int64_t step;          /* to which what lies here leads; -1: none is whole */
    uint32_t *words;       // (words_count + header_count)
    int64_t words_count, header_count;
    int32_t k[RM_TENSORS_MAX];
};

/* How fast those who listen get the state. */
struct transfer_pull {
    pthread_mutex_t lock; /* may be taken under the gate, and not the other way round */
    struct pull_pace pace;
};

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
    struct {
        bool open, kept, exact;
        struct state_point point;
        struct state_arrays arrays;
        struct state_update update;
        struct ear *ears;     /* whom to wake when that is another state */
        struct losses losses; /* up to that point's step, or none */
    } live; /* what those who listen may read: it stands also while a step is made, until that commits */
    struct transfer_keep keep;
    struct transfer_pull pull;
};

/* One who listens: each is woken by itself, as each may wait for another step. */
struct ear {
    struct abort_flag bell; /* set where it should look again */
    struct ear *next;
};

/* One receiver being served. */
struct service {
    struct transfer_source *source;
    int fd;
    const struct abort_flag *closing;
    uint64_t epoch; /* of the gate when the reply was made */
    int64_t live;   /* it gets the update to that step, which stands until it is written over; -1: not so */
    uint8_t *chunk; /* (4 + TRANSFER_CHUNK) */
};

int service_send(const struct service *s, const void *bytes, size_t length);
/* The checksum of some bytes, and these. */
int service_send_checked(const struct service *s, const void *bytes, size_t length);

/* Under the gate: those who listen look again. */
void transfer_ring_ears(struct transfer_source *source);

void transfer_keep_init(struct transfer_source *source);
void transfer_keep_clear(struct transfer_source *source);
/* The update that is live now is copied aside, where somebody listens; under the gate. */
void transfer_keep_want(struct transfer_source *source);
/* Until that was tried. Not under the gate. */
void transfer_keep_wait(struct transfer_source *source);
/* Nobody listens any more: its memory is given back. Not under the gate. */
void transfer_keep_drop(struct transfer_source *source);
/* It is being copied. */
bool transfer_keep_comes(struct transfer_source *source, int64_t step);
/* Copies what is kept of the update to that step: its exponents (tensors) and header words (count), or some
 * words. False where it is not kept. */
bool transfer_keep_head(struct transfer_source *source, int64_t step, int64_t count, int32_t *k,
                        uint32_t *header);
bool transfer_keep_words(struct transfer_source *source, int64_t step, int64_t first, int64_t count,
                         void *to);

/* Whether who listens asks so. */
bool service_is_told(const struct transfer_request *request);
/* Answers one who listens, this request and all that follow on the connection. */
void service_tell(struct service *s, struct transfer_request *request);

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
