#include "trainer/backend/cuda/driver/stream.h"

#include <string.h>

static const struct cuda_calls *calls(const struct cuda_device *d)
{
    return &d->driver->calls;
}

/* 1 done, 0 not yet, -1. */
static int asked(struct cuda_device *d, CUresult code, const char *doing, struct error *err)
{
    if (code == CUDA_ERROR_NOT_READY)
        return 0;
    return cuda_check(d, code, doing, err) < 0 ? -1 : 1;
}

int cuda_stream_open(struct cuda_stream *s, struct cuda_device *device, bool urgent, struct error *err)
{
    int priority = urgent ? device->priority_most : device->priority_least;
    *s = (struct cuda_stream){0};
    if (cuda_check(device,
                   calls(device)->cuStreamCreateWithPriority(&s->handle, CU_STREAM_NON_BLOCKING, priority),
                   "open a stream", err) < 0)
        return -1;
    s->device = device;
    return 0;
}

void cuda_stream_clear(struct cuda_stream *s)
{
    if (s->device)
        calls(s->device)->cuStreamDestroy_v2(s->handle);
    memset(s, 0, sizeof *s);
}

int cuda_stream_wait(struct cuda_stream *s, struct error *err)
{
    return cuda_check(s->device, calls(s->device)->cuStreamSynchronize(s->handle), "finish its work", err);
}

int cuda_stream_done(struct cuda_stream *s, struct error *err)
{
    return asked(s->device, calls(s->device)->cuStreamQuery(s->handle), "do its work", err);
}

int cuda_copy_in(struct cuda_stream *s, CUdeviceptr to, const void *from, size_t bytes, struct error *err)
{
    if (!bytes)
        return 0;
    return cuda_check(s->device, calls(s->device)->cuMemcpyHtoDAsync_v2(to, from, bytes, s->handle),
                      "copy to it", err);
}

int cuda_copy_out(struct cuda_stream *s, void *to, CUdeviceptr from, size_t bytes, struct error *err)
{
    if (!bytes)
        return 0;
    return cuda_check(s->device, calls(s->device)->cuMemcpyDtoHAsync_v2(to, from, bytes, s->handle),
                      "copy from it", err);
}

int cuda_copy(struct cuda_stream *s, CUdeviceptr to, CUdeviceptr from, size_t bytes, struct error *err)
{
    if (!bytes)
        return 0;
    return cuda_check(s->device, calls(s->device)->cuMemcpyDtoDAsync_v2(to, from, bytes, s->handle),
                      "copy on it", err);
}

int cuda_set_words(struct cuda_stream *s, CUdeviceptr at, uint32_t word, size_t words, struct error *err)
{
    if (!words)
        return 0;
    return cuda_check(s->device, calls(s->device)->cuMemsetD32Async(at, word, words, s->handle),
                      "fill its memory", err);
}

/* ---- events ---- */

int cuda_event_open(struct cuda_event *e, struct cuda_device *device, bool timed, struct error *err)
{
    unsigned flags = timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    *e = (struct cuda_event){0};
    if (cuda_check(device, calls(device)->cuEventCreate(&e->handle, flags), "open an event", err) < 0)
        return -1;
    e->device = device;
    return 0;
}

void cuda_event_clear(struct cuda_event *e)
{
    if (e->device)
        calls(e->device)->cuEventDestroy_v2(e->handle);
    memset(e, 0, sizeof *e);
}

int cuda_event_record(struct cuda_event *e, struct cuda_stream *s, struct error *err)
{
    return cuda_check(e->device, calls(e->device)->cuEventRecord(e->handle, s->handle),
                      "mark a place in its work", err);
}

int cuda_event_before(struct cuda_event *e, struct cuda_stream *s, struct error *err)
{
    return cuda_check(e->device, calls(e->device)->cuStreamWaitEvent(s->handle, e->handle, 0),
                      "order its work", err);
}

int cuda_event_wait(struct cuda_event *e, struct error *err)
{
    return cuda_check(e->device, calls(e->device)->cuEventSynchronize(e->handle), "finish a part of its work",
                      err);
}

int cuda_event_done(struct cuda_event *e, struct error *err)
{
    return asked(e->device, calls(e->device)->cuEventQuery(e->handle), "do a part of its work", err);
}

int cuda_event_ms(const struct cuda_event *begin, const struct cuda_event *end, float *ret, struct error *err)
{
    return cuda_check(end->device, calls(end->device)->cuEventElapsedTime_v2(ret, begin->handle, end->handle),
                      "tell the time between two events", err);
}

/* ---- graphs ---- */

/* What is captured is this thread's alone: others may take memory and load code meanwhile. */
int cuda_graph_begin(struct cuda_stream *s, struct error *err)
{
    return cuda_check(
        s->device, calls(s->device)->cuStreamBeginCapture_v2(s->handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "begin a graph", err);
}

int cuda_graph_end(struct cuda_graph *ret, struct cuda_stream *s, struct error *err)
{
    const struct cuda_calls *cu = calls(s->device);
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    if (cuda_check(s->device, cu->cuStreamEndCapture(s->handle, &graph), "end a graph", err) < 0) {
        if (graph)
            cu->cuGraphDestroy(graph);
        return -1;
    }
    int done =
        cuda_check(s->device, cu->cuGraphInstantiateWithFlags(&exec, graph, 0), "make a graph ready", err);
    cu->cuGraphDestroy(graph);
    if (done == 0)
        *ret = (struct cuda_graph){s->device, exec};
    return done;
}

int cuda_graph_launch(struct cuda_graph *g, struct cuda_stream *s, struct error *err)
{
    return cuda_check(g->device, calls(g->device)->cuGraphLaunch(g->handle, s->handle), "start a graph", err);
}

void cuda_graph_clear(struct cuda_graph *g)
{
    if (g->device)
        calls(g->device)->cuGraphExecDestroy(g->handle);
    memset(g, 0, sizeof *g);
}
