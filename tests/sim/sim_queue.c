/* Virtual time: a heap of events ordered by time, then by the order of their making; and the seed's chance.
 */
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "tests/sim/sim.h"

static bool sooner(const struct ev *a, const struct ev *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static int sift_up(struct ev *heap, int i)
{
    struct ev e = heap[i];
    for (; i > 0 && sooner(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = e;
    return i;
}

static void sift_down(struct ev *heap, int n)
{
    struct ev e = heap[0];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= n)
            break;
        if (child + 1 < n && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (!sooner(&heap[child], &e))
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = e;
}

/* The event returned may be given its message until the next call. */
struct ev *sim_at(struct sim *sim, rm_time at, enum ev_kind kind, int a, int b, int c)
{
    if (sim->heap_count == sim->heap_room) {
        sim->heap_room = sim->heap_room ? 2 * sim->heap_room : 256;
        sim->heap = realloc(sim->heap, (size_t)sim->heap_room * sizeof *sim->heap);
        if (!sim->heap)
            abort();
    }
    sim->heap[sim->heap_count++] = (struct ev){
        .at = at < sim->now ? sim->now : at, .seq = sim->seq++, .kind = kind, .a = a, .b = b, .c = c};
    return &sim->heap[sift_up(sim->heap, sim->heap_count - 1)];
}

bool sim_next(struct sim *sim, struct ev *ret)
{
    if (sim->heap_count == 0)
        return false;
    *ret = sim->heap[0];
    sim->heap[0] = sim->heap[--sim->heap_count];
    if (sim->heap_count)
        sift_down(sim->heap, sim->heap_count);
    return true;
}

void ev_clear(struct ev *e)
{
    free(e->message);
    free(e->result);
    free(e->stored);
    free(e->command);
}

struct message *sim_message(const struct message *m)
{
    struct message *copy = malloc(sizeof *copy);
    if (!copy)
        abort();
    message_copy(copy, m);
    return copy;
}

uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return prng_below(&sim->rng, bound);
}

bool sim_chance(struct sim *sim, int percent)
{
    return sim_below(sim, 100) < (uint64_t)percent;
}

rm_time sim_time(struct sim *sim, rm_time low, rm_time high)
{
    return low + (rm_time)sim_below(sim, (uint64_t)(high - low + 1));
}

uint64_t sim_hash(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t s = a * 0x9e3779b97f4a7c15u ^ (b + 0x632be59bd9b4e019u) * 0xd1342543de82ef95u ^ c;
    splitmix64(&s);
    return splitmix64(&s);
}

void sim_lineage(uint64_t hash, uint8_t out[RM_HASH_BYTES])
{
    memset(out, 0, RM_HASH_BYTES);
    memcpy(out, &hash, sizeof hash);
}

uint64_t sim_lineage_hash(const uint8_t lineage[RM_HASH_BYTES])
{
    uint64_t hash;
    memcpy(&hash, lineage, sizeof hash);
    return hash;
}
