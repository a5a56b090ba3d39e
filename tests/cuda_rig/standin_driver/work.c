/* Streams: what was handed over, and when it is done. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cuda_rig/standin_driver/standin.h"

enum { SPOILT = 0xa5, STREAMS_MOST = 64 };

static const double MS_A_PIECE = 0.002, MS_A_BYTE = 1e-9;

/* ---- pieces of work ---- */

struct op *op_new(enum op_kind kind)
{
    struct op *op = fresh(sizeof *op);
    op->kind = kind;
    op->after[0] = op->after[1] = -1;
    return op;
}

void moment_drop(struct moment *m)
{
    if (m && --m->holders == 0)
        free(m);
}

void op_drop(struct op *op)
{
    moment_drop(op->moment);
    nodes_drop(op->graph);
    free(op->arguments);
    free(op);
}

/* As when a process is killed while its kernel is under way. */
static _Noreturn void die_in(struct emulation *e, const struct op *op, int64_t moment)
{
    e->stop = moment;
    if (!emulate(e, op->kernel, op->arguments))
        misuse("the kernel %s", e->wrong);
    fprintf(stderr, "the stand-in's process dies in kernel %s, %s at moment %lld\n", op->kernel->name,
            e->stopped ? "which is cut off" : "which had ended", (long long)e->moments);
    kill(getpid(), SIGKILL);
    abort();
}

static void launch(const struct op *op)
{
    struct emulation e = {.blocks = op->blocks, .resident = 1 + draw(4), .seed = (uint64_t)draw(1 << 30)};
    struct rule *rule = script_turn(&standin.script, "kernel"),
                *own = script_turn(&standin.script, op->kernel->name);
    if (own && own->kind == SKIPS)
        return;
    if (own && own->kind == DIES)
        die_in(&e, op, own->moment);
    if (rule && rule->kind == HANGS)
        standin.hangs = true;
    else if (rule)
        standin.lost = rule->code;
    else if (!emulate(&e, op->kernel, op->arguments))
        misuse("the kernel %s", e.wrong);
}

void run_op(struct op *op)
{
    standin.ms += MS_A_PIECE + MS_A_BYTE * (double)op->bytes;
    if (standin.script.empty && (op->kind == OP_LAUNCH || op->kind == OP_OTHER || op->kind == OP_SET))
        return;
    device_memory_opens();
    if (op->kind == OP_COPY_IN || op->kind == OP_COPY_OUT || op->kind == OP_COPY)
        memmove(op->to, op->from, op->bytes);
    else if (op->kind == OP_LAUNCH)
        launch(op);
    else if (op->kind == OP_OTHER)
        op->run(op->arguments);
    for (size_t i = 0; op->kind == OP_SET && i < op->bytes / sizeof op->word; i++)
        memcpy(op->to + i * sizeof op->word, &op->word, sizeof op->word);
    if (op->kind == OP_RECORD) {
        op->moment->done = true;
        op->moment->ms = standin.ms;
    }
    if (op->kind == OP_GRAPH)
        run_graph(op->graph);
}

/* ---- the order ---- */

static bool may_be_done(const struct op *op)
{
    if (!op || (op->kind == OP_WAIT && !op->moment->done))
        return false;
    if (op->kind != OP_OTHER || !op->ready)
        return true;
    device_memory_opens();
    return op->ready(op->arguments);
}

static bool waits_for_others(void)
{
    for (struct CUstream_st *s = standin.stream; s; s = s->next)
        if (s->first && s->first->kind == OP_OTHER && s->first->ready)
            return true;
    return false;
}

bool work_a_step(void)
{
    struct CUstream_st *able[STREAMS_MOST];
    int count = 0;
    if (standin.hangs || standin.lost)
        return false;
    for (struct CUstream_st *s = standin.stream; s && count < STREAMS_MOST; s = s->next)
        if (may_be_done(s->first))
            able[count++] = s;
    if (!count)
        return false;
    struct CUstream_st *s = able[draw(count)];
    struct op *op = s->first;
    run_op(op);
    if (standin.hangs)
        return false; /* it is still the first */
    s->first = op->next;
    if (!s->first)
        s->last = NULL;
    op_drop(op);
    return true;
}

bool work_is_under_way(void)
{
    for (struct CUstream_st *s = standin.stream; s; s = s->next)
        if (s->first)
            return true;
    return false;
}

/* One turn of a wait. A device that hangs is waited for, as long as that takes. */
static CUresult wait_a_turn(void)
{
    if (work_a_step())
        return CUDA_SUCCESS;
    if (standin.lost)
        return standin.lost;
    if (!standin.hangs && !waits_for_others())
        misuse("a wait for what nobody will do");
    wait_a_moment();
    return CUDA_SUCCESS;
}

CUresult work_until_empty(struct CUstream_st *s)
{
    CUresult code = CUDA_SUCCESS;
    while (s->first && code == CUDA_SUCCESS)
        code = wait_a_turn();
    return code ? code : standin.lost;
}

CUresult work_until(struct moment *m)
{
    CUresult code = CUDA_SUCCESS;
    while (!m->done && code == CUDA_SUCCESS)
        code = wait_a_turn();
    return code ? code : standin.lost;
}

static void some_early(void)
{
    int most = (int)(standin.script.seed % 4);
    for (int steps = most ? draw(most + 1) : 0; steps > 0; steps--)
        work_a_step();
}

/* ---- what is not there yet ---- */

struct target {
    const char *at;
    size_t bytes;
    bool is_read;
};

static void look_for_reader(struct op *op, void *with)
{
    struct target *t = with;
    if (op->kind == OP_GRAPH)
        each_node(op->graph, look_for_reader, t);
    else if (op->kind == OP_COPY_IN && op->from < t->at + t->bytes && t->at < op->from + op->bytes)
        t->is_read = true;
}

/* A copy's target is nothing until the copy is done, unless work that comes before may still read it. */
static void spoil_target(struct op *op, void *with)
{
    struct target t = {op->to, op->bytes, false};
    if (op->kind == OP_GRAPH) {
        each_node(op->graph, spoil_target, op);
        return;
    }
    if (op->kind != OP_COPY_OUT)
        return;
    for (struct CUstream_st *s = standin.stream; s; s = s->next)
        for (struct op *other = s->first; other; other = other->next)
            look_for_reader(other, &t);
    if (with)
        look_for_reader(with, &t);
    if (!t.is_read)
        memset(op->to, SPOILT, op->bytes);
}

CUresult hand_over(struct CUstream_st *s, struct op *op)
{
    if (s->capture)
        return capture_op(s, op);
    spoil_target(op, NULL);
    if (s->last)
        s->last->next = op;
    else
        s->first = op;
    s->last = op;
    some_early();
    return CUDA_SUCCESS;
}

/* ---- streams ---- */

static struct CUstream_st *stream_of(CUstream stream)
{
    struct CUstream_st *s = standin.stream;
    while (s && s != stream)
        s = s->next;
    if (!s)
        misuse("%p is no stream (the default one is not used)", (void *)stream);
    if (s->context != current_context())
        misuse("a stream of another context than the thread's");
    return s;
}

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    ENTER(cuStreamCreateWithPriority, NEEDS_CONTEXT);
    if (flags != CU_STREAM_NON_BLOCKING)
        misuse("a stream that waits for the default one");
    (void)priority;
    struct CUstream_st *s = fresh(sizeof *s);
    s->context = current_context();
    s->next = standin.stream;
    standin.stream = *stream = s;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    ENTER(cuStreamDestroy_v2, NEEDS_CONTEXT);
    struct CUstream_st *s = stream_of(stream), **link = &standin.stream;
    if (s->first)
        misuse("cuStreamDestroy: a stream goes while its work is under way");
    if (s->capture)
        misuse("cuStreamDestroy: a stream goes while it is captured");
    while (*link != s)
        link = &(*link)->next;
    *link = s->next;
    free(s);
    return CUDA_SUCCESS;
}

static CUresult refuse_captured(struct CUstream_st *s, const char *what)
{
    if (!s->capture)
        return CUDA_SUCCESS;
    s->capture->broken = true;
    return answer(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s of a stream that is captured", what);
}

CUresult cuStreamQuery(CUstream stream)
{
    ENTER(cuStreamQuery, NEEDS_CONTEXT);
    struct CUstream_st *s = stream_of(stream);
    CUresult code = refuse_captured(s, "cuStreamQuery");
    if (code != CUDA_SUCCESS)
        return code;
    work_a_step();
    return standin.lost ? standin.lost : s->first ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream)
{
    ENTER(cuStreamSynchronize, NEEDS_CONTEXT);
    struct CUstream_st *s = stream_of(stream);
    CUresult code = refuse_captured(s, "cuStreamSynchronize");
    return code ? code : work_until_empty(s);
}

static CUresult copy(CUstream stream, enum op_kind kind, void *to, const void *from, size_t bytes)
{
    struct op *op = op_new(kind);
    op->to = to;
    op->from = (char *)(uintptr_t)from;
    op->bytes = bytes;
    return hand_over(stream_of(stream), op);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyHtoDAsync_v2, NEEDS_CONTEXT);
    check_device_memory("cuMemcpyHtoDAsync", to, bytes);
    check_pinned("cuMemcpyHtoDAsync", from, bytes);
    return copy(stream, OP_COPY_IN, (void *)(uintptr_t)to, from, bytes);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoHAsync_v2, NEEDS_CONTEXT);
    check_device_memory("cuMemcpyDtoHAsync", from, bytes);
    check_pinned("cuMemcpyDtoHAsync", to, bytes);
    return copy(stream, OP_COPY_OUT, to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    ENTER(cuMemcpyDtoDAsync_v2, NEEDS_CONTEXT);
    check_device_memory("cuMemcpyDtoDAsync", to, bytes);
    check_device_memory("cuMemcpyDtoDAsync", from, bytes);
    return copy(stream, OP_COPY, (void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
}

CUresult cuMemsetD32Async(CUdeviceptr at, unsigned int word, size_t words, CUstream stream)
{
    ENTER(cuMemsetD32Async, NEEDS_CONTEXT);
    struct op *op = op_new(OP_SET);
    check_device_memory("cuMemsetD32Async", at, words * sizeof op->word);
    if (at % sizeof op->word)
        misuse("cuMemsetD32Async: %llx is not aligned", at);
    op->to = (char *)(uintptr_t)at;
    op->word = word;
    op->bytes = words * sizeof op->word;
    return hand_over(stream_of(stream), op);
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    ENTER(cuStreamWaitEvent, NEEDS_CONTEXT);
    struct CUstream_st *s = stream_of(stream);
    (void)flags;
    if (s->capture || event->capture)
        return capture_wait(s, event);
    if (!event->moment)
        return CUDA_SUCCESS; /* never recorded: nothing comes before it */
    struct op *op = op_new(OP_WAIT);
    op->moment = event->moment;
    op->moment->holders++;
    return hand_over(s, op);
}

int standin_hand_over(CUstream stream, void (*run)(const void *arguments), const void *arguments,
                      size_t bytes)
{
    return standin_hand_over_when(stream, NULL, run, arguments, bytes);
}

int standin_hand_over_when(CUstream stream, bool (*ready)(const void *arguments),
                           void (*run)(const void *arguments), const void *arguments, size_t bytes)
{
    ENTER(standin_hand_over, NEEDS_CONTEXT);
    struct op *op = op_new(OP_OTHER);
    op->ready = ready;
    op->run = run;
    op->arguments = fresh(bytes);
    memcpy(op->arguments, arguments, bytes);
    return (int)hand_over(stream_of(stream), op);
}

void standin_check(const char *what, CUdeviceptr at, size_t bytes)
{
    struct call entered __attribute__((cleanup(leave_call))) = {false};
    enter(&entered, what, NEEDS_NOTHING);
    check_device_memory(what, at, bytes);
}

/* ---- events ---- */

static struct CUevent_st *event_of(CUevent event)
{
    struct CUevent_st *e = standin.event;
    while (e && e != event)
        e = e->next;
    if (!e)
        misuse("%p is no event", (void *)event);
    return e;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    ENTER(cuEventCreate, NEEDS_CONTEXT);
    struct CUevent_st *e = fresh(sizeof *e);
    e->context = current_context();
    e->timed = !(flags & CU_EVENT_DISABLE_TIMING);
    e->next = standin.event;
    standin.event = *event = e;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    ENTER(cuEventDestroy_v2, NEEDS_CONTEXT);
    struct CUevent_st *e = event_of(event), **link = &standin.event;
    while (*link != e)
        link = &(*link)->next;
    *link = e->next;
    moment_drop(e->moment);
    free(e);
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    ENTER(cuEventRecord, NEEDS_CONTEXT);
    struct CUevent_st *e = event_of(event);
    struct CUstream_st *s = stream_of(stream);
    if (s->capture)
        return capture_record(s, e);
    struct op *op = op_new(OP_RECORD);
    moment_drop(e->moment);
    e->capture = NULL;
    e->moment = op->moment = fresh(sizeof *op->moment);
    op->moment->holders = 2;
    return hand_over(s, op);
}

CUresult cuEventQuery(CUevent event)
{
    ENTER(cuEventQuery, NEEDS_CONTEXT);
    struct CUevent_st *e = event_of(event);
    if (e->capture)
        return answer(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "cuEventQuery of an event that is captured");
    work_a_step();
    return standin.lost ? standin.lost : e->moment && !e->moment->done ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event)
{
    ENTER(cuEventSynchronize, NEEDS_CONTEXT);
    struct CUevent_st *e = event_of(event);
    if (e->capture)
        return answer(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                      "cuEventSynchronize of an event that is captured");
    return e->moment ? work_until(e->moment) : CUDA_SUCCESS;
}

CUresult cuEventElapsedTime_v2(float *ms, CUevent begin, CUevent end)
{
    ENTER(cuEventElapsedTime_v2, NEEDS_CONTEXT);
    struct CUevent_st *b = event_of(begin), *e = event_of(end);
    if (!b->timed || !e->timed || !b->moment || !e->moment)
        return answer(CUDA_ERROR_INVALID_HANDLE, "the time between events that have none");
    if (!b->moment->done || !e->moment->done)
        return CUDA_ERROR_NOT_READY;
    *ms = (float)(e->moment->ms - b->moment->ms);
    return CUDA_SUCCESS;
}
