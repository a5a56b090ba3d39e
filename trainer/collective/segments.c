#include "trainer/collective/segments.h"

#include <string.h>

#include "common/base/prng.h"

enum { LANES = 8 };
typedef uint32_t u32_vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef float f32_vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

int64_t segments_total(const struct collective_segment *segments, int n)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++)
        total += segments[i].count;
    return total;
}

uint64_t segments_shape(const struct collective_segment *segments, int n)
{
    uint64_t mix = (uint64_t)n;
    for (int i = 0; i < n; i++) {
        mix ^= ((uint64_t)segments[i].count << 1) | (segments[i].type == COLLECTIVE_F32);
        mix = splitmix64(&mix);
    }
    return mix;
}

struct segment_run segments_run(const struct collective_segment *segments, int n, int64_t first,
                                int64_t bytes)
{
    int i = 0;
    while (i + 1 < n && first >= segments[i].count * 4) {
        first -= segments[i].count * 4;
        i++;
    }
    int64_t left = segments[i].count * 4 - first;
    return (struct segment_run){
        .type = segments[i].type,
        .data = (uint8_t *)segments[i].data + first,
        .bytes = bytes < left ? bytes : left,
    };
}

static void add_u32(uint32_t *to, const uint32_t *from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(u32_vector *)(to + i) += *(const u32_vector *)(from + i);
    for (; i < count; i++)
        to[i] += from[i];
}

static void add_f32(float *to, const float *from, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(f32_vector *)(to + i) += *(const f32_vector *)(from + i);
    for (; i < count; i++)
        to[i] += from[i];
}

void segments_add(enum collective_type type, void *to, const void *from, int64_t count)
{
    if (type == COLLECTIVE_U32)
        add_u32(to, from, count);
    else
        add_f32(to, from, count);
}
