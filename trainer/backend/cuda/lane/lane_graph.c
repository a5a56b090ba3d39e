#include <string.h>

#include "trainer/backend/cuda/lane/lane_parts.h"

/* All that a graph has in it of the call that it was noted from. */
static bool is_for(const struct lane_graph *g, const struct cuda_lane *l)
{
    const struct cuda_lane_sums *a = &g->sums, *b = l->sums;
    const size_t scales = (size_t)l->layout->tensors * sizeof(float);
    return g->graph.handle && g->params == l->params && a->words == b->words && a->max == b->max &&
           a->proof == b->proof && a->store == b->store && a->floats == b->floats &&
           !memcmp(g->scale, b->scale, scales);
}

static int note(struct cuda_lane *l, struct lane_graph *g, struct error *err)
{
    struct cuda_graph graph = {0};
    struct error ignored = {0};
    if (cuda_graph_begin(&l->stream, err) < 0)
        return -1;
    const int queued = lane_queue(l, err);
    if (cuda_graph_end(&graph, &l->stream, queued < 0 ? &ignored : err) < 0)
        return -1;
    if (queued < 0) {
        cuda_graph_clear(&graph);
        return -1;
    }
    cuda_graph_clear(&g->graph);
    *g = (struct lane_graph){.graph = graph, .params = l->params, .sums = *l->sums};
    memcpy(g->scale, l->sums->scale, (size_t)l->layout->tensors * sizeof(float));
    l->noted++;
    return 0;
}

int lane_replay(struct cuda_lane *l, struct error *err)
{
    for (int i = 0; i < LANE_GRAPHS; i++)
        if (is_for(&l->graph[i], l))
            return cuda_graph_launch(&l->graph[i].graph, &l->stream, err);
    struct lane_graph *g = &l->graph[l->noted % LANE_GRAPHS];
    return note(l, g, err) < 0 ? -1 : cuda_graph_launch(&g->graph, &l->stream, err);
}
