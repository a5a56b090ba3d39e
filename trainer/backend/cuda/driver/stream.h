/* Work on a GPU, in order: streams, events between them, copies, and graphs of all that.
 *
 * Everything here but the functions that wait, ask or open only hands work over and returns: what it reads
 * may not be changed, and what it writes not be used, before the work is done (cuda_stream_wait,
 * cuda_event_wait, or an event that another stream waits for). Work of one stream is done in order, of two
 * streams in any. An error of work under way comes out of any later call, and of all calls after it
 * (cuda_device_trouble).
 *
 * Host memory of a copy is cuda_pinned_open's. */
#ifndef RM_TRAINER_CUDA_STREAM_H
#define RM_TRAINER_CUDA_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "trainer/backend/cuda/driver/device.h"

struct cuda_stream {
    struct cuda_device *device;
    CUstream handle;
};

/* urgent: its kernels go before those of others where the GPU has to choose. */
int cuda_stream_open(struct cuda_stream *s, struct cuda_device *device, bool urgent, struct error *err);
/* Also of one that is all zero. Its work is done: who does not know waits first. */
void cuda_stream_clear(struct cuda_stream *s);
/* Until all that was handed over is done. Never with a collective under way in it: ask and look for dead
 * peers. */
int cuda_stream_wait(struct cuda_stream *s, struct error *err);
/* 1 when all is done, 0 while it is under way, -1. */
int cuda_stream_done(struct cuda_stream *s, struct error *err);

int cuda_copy_in(struct cuda_stream *s, CUdeviceptr to, const void *from, size_t bytes, struct error *err);
int cuda_copy_out(struct cuda_stream *s, void *to, CUdeviceptr from, size_t bytes, struct error *err);
int cuda_copy(struct cuda_stream *s, CUdeviceptr to, CUdeviceptr from, size_t bytes, struct error *err);
int cuda_set_words(struct cuda_stream *s, CUdeviceptr at, uint32_t word, size_t words, struct error *err);

/* ---- events: a place in a stream's work ---- */

struct cuda_event {
    struct cuda_device *device;
    CUevent handle;
};

/* timed: cuda_event_ms can tell its time; costs a little. */
int cuda_event_open(struct cuda_event *e, struct cuda_device *device, bool timed, struct error *err);
void cuda_event_clear(struct cuda_event *e);
/* From now on the event is what this stream has got so far. */
int cuda_event_record(struct cuda_event *e, struct cuda_stream *s, struct error *err);
/* What the stream gets from now on comes after what the event is now. */
int cuda_event_before(struct cuda_event *e, struct cuda_stream *s, struct error *err);
int cuda_event_wait(struct cuda_event *e, struct error *err);
int cuda_event_done(struct cuda_event *e, struct error *err); /* 1, 0 or -1, as cuda_stream_done */
int cuda_event_ms(const struct cuda_event *begin, const struct cuda_event *end, float *ret,
                  struct error *err);

/* ---- graphs: work that is handed over often, in one call ---- */

struct cuda_graph {
    struct cuda_device *device;
    CUgraphExec handle;
};

/* What the stream gets until the end, and other streams that wait for events of it, is noted and not done.
 * All of them have come back to it, by events, before the end. Meanwhile nothing is waited for, asked or
 * opened by this thread. */
int cuda_graph_begin(struct cuda_stream *s, struct error *err);
/* Also after an error in between: ret is then not set, and the stream is one for work again. */
int cuda_graph_end(struct cuda_graph *ret, struct cuda_stream *s, struct error *err);
int cuda_graph_launch(struct cuda_graph *g, struct cuda_stream *s, struct error *err);
void cuda_graph_clear(struct cuda_graph *g);

#endif
