/* Graphs: what streams get while they are captured, done in any order that their dependences allow. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_rig/standin_driver/standin.h"

struct nodes {
    int holders, count, room;
    struct op **node;
};

struct CUgraph_st {
    struct nodes *nodes;
};

struct CUgraphExec_st {
    struct nodes *nodes;
};

/* What an event belongs to that was recorded in a capture that is over. */
static struct capture over;

static uint64_t this_thread(void)
{
    return (uint64_t)pthread_self();
}

void nodes_drop(struct nodes *n)
{
    if (!n || --n->holders)
        return;
    for (int i = 0; i < n->count; i++)
        op_drop(n->node[i]);
    free(n->node);
    free(n);
}

static int node_add(struct nodes *n, struct op *op)
{
    if (n->count == n->room) {
        n->room = 2 * n->room + 16;
        n->node = realloc(n->node, (size_t)n->room * sizeof(struct op *));
        if (!n->node)
            abort();
    }
    n->node[n->count] = op;
    return n->count++;
}

/* ---- capturing ---- */

CUresult refuse_while_capturing(const char *what)
{
    for (struct CUstream_st *s = standin.stream; s; s = s->next)
        if (s->capture && s->capture->thread == this_thread()) {
            s->capture->broken = true;
            return answer(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "%s by a thread that captures", what);
        }
    return CUDA_SUCCESS;
}

CUresult capture_op(struct CUstream_st *s, struct op *op)
{
    if (op->kind == OP_GRAPH)
        misuse("a graph in a graph, which the stand-in has not");
    op->after[0] = s->tip;
    s->tip = node_add(s->capture->nodes, op);
    return CUDA_SUCCESS;
}

CUresult capture_record(struct CUstream_st *s, struct CUevent_st *e)
{
    moment_drop(e->moment);
    e->moment = NULL;
    e->capture = s->capture;
    e->node = s->tip;
    return CUDA_SUCCESS;
}

static CUresult break_capture(struct CUstream_st *s, const char *why)
{
    if (s->capture)
        s->capture->broken = true;
    return answer((CUresult)905 /* CUDA_ERROR_STREAM_CAPTURE_ISOLATION */, "%s", why);
}

CUresult capture_wait(struct CUstream_st *s, struct CUevent_st *e)
{
    if (!e->capture && !e->moment)
        return CUDA_SUCCESS;
    if (!e->capture || e->capture == &over)
        return break_capture(
            s, "a captured stream waits for work outside of the graph, or another for work in it");
    if (s->capture && s->capture != e->capture)
        return break_capture(s, "a stream of one graph waits for another");
    if (!s->capture) {
        s->capture = e->capture;
        s->tip = -1;
    }
    struct op *op = op_new(OP_JOIN);
    op->after[0] = s->tip;
    op->after[1] = e->node;
    s->tip = node_add(s->capture->nodes, op);
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    ENTER(cuStreamBeginCapture_v2, NEEDS_CONTEXT);
    if (stream->capture || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return answer(CUDA_ERROR_ILLEGAL_STATE, "a stream is captured already, or not for this thread alone");
    struct capture *c = fresh(sizeof *c);
    *c = (struct capture){stream, fresh(sizeof *c->nodes), this_thread(), false};
    c->nodes->holders = 1;
    stream->capture = c;
    stream->tip = -1;
    return CUDA_SUCCESS;
}

static bool comes_before(const struct nodes *n, int what, int tip)
{
    if (what < 0 || what == tip)
        return true;
    if (tip < what)
        return false;
    for (int i = 0; i < NODE_DEPENDS; i++)
        if (n->node[tip]->after[i] >= what && comes_before(n, what, n->node[tip]->after[i]))
            return true;
    return false;
}

/* Lets all streams out of it; false where one had not come back to the first. */
static bool capture_leave(struct capture *c)
{
    bool joined = true;
    int tip = c->origin->tip;
    for (struct CUstream_st *s = standin.stream; s; s = s->next)
        if (s->capture == c) {
            joined = joined && comes_before(c->nodes, s->tip, tip);
            s->capture = NULL;
        }
    for (struct CUevent_st *e = standin.event; e; e = e->next)
        if (e->capture == c)
            e->capture = &over;
    return joined;
}

static CUresult capture_end(struct capture *c, CUgraph *graph)
{
    if (c->thread != this_thread())
        return answer((CUresult)908 /* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD */,
                      "another thread ends a capture");
    bool joined = capture_leave(c);
    if (c->broken)
        return answer(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "the capture was broken before its end");
    if (!joined)
        return answer(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                      "a stream has not come back to the one that began the capture");
    *graph = fresh(sizeof **graph);
    (*graph)->nodes = c->nodes;
    c->nodes->holders++;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    ENTER(cuStreamEndCapture, NEEDS_CONTEXT);
    struct capture *c = stream->capture;
    *graph = NULL;
    if (!c || c->origin != stream)
        return answer(CUDA_ERROR_ILLEGAL_STATE, "the end of a capture that this stream did not begin");
    CUresult code = capture_end(c, graph);
    if (!stream->capture) {
        nodes_drop(c->nodes);
        free(c);
    }
    return code;
}

/* ---- graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    ENTER(cuGraphInstantiateWithFlags, NEEDS_CONTEXT);
    (void)flags;
    *exec = fresh(sizeof **exec);
    (*exec)->nodes = graph->nodes;
    graph->nodes->holders++;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    ENTER(cuGraphLaunch, NEEDS_CONTEXT);
    struct op *op = op_new(OP_GRAPH);
    op->graph = exec->nodes;
    op->graph->holders++;
    return hand_over(stream, op);
}

static void nodes_free_of(struct nodes **nodes)
{
    nodes_drop(*nodes);
    *nodes = NULL;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER(cuGraphExecDestroy, NEEDS_CONTEXT);
    nodes_free_of(&exec->nodes);
    free(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    ENTER(cuGraphDestroy, NEEDS_CONTEXT);
    nodes_free_of(&graph->nodes);
    free(graph);
    return CUDA_SUCCESS;
}

/* ---- doing ---- */

void each_node(struct nodes *n, void (*visit)(struct op *op, void *with), void *with)
{
    for (int i = 0; i < n->count; i++)
        visit(n->node[i], with);
}

static bool may_be_done(const struct nodes *n, const bool *done, int i)
{
    const int *after = n->node[i]->after;
    return !done[i] && (after[0] < 0 || done[after[0]]) && (after[1] < 0 || done[after[1]]);
}

static int choose(const struct nodes *n, const bool *done)
{
    int chosen = -1, able = 0;
    for (int i = 0; i < n->count; i++)
        if (may_be_done(n, done, i) && draw(++able) == 0)
            chosen = i;
    return chosen;
}

void run_graph(struct nodes *n)
{
    bool *done = fresh((size_t)n->count * sizeof *done);
    for (int i; !standin.hangs && !standin.lost && (i = choose(n, done)) >= 0;) {
        run_op(n->node[i]);
        done[i] = true;
    }
    free(done);
}
