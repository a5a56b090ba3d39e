#include "trainer/collective/segments.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "trainer/collective/prove_words.h"

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

static bool overlap(const struct collective_segment *a, const void *a_at, const struct collective_segment *b,
                    const void *b_at)
{
    uintptr_t x = (uintptr_t)a_at, y = (uintptr_t)b_at;
    return a->in == b->in && a->count && b->count && x < y + (uintptr_t)b->count * 4 &&
           y < x + (uintptr_t)a->count * 4;
}

void segments_check_overlap(const struct collective_segment *segments, int n)
{
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            const struct collective_segment *a = &segments[i], *b = &segments[j];
            RM_ASSERT(!b->from || !overlap(a, a->to, b, b->from),
                      "the sum of segment %d would overwrite what segment %d adds", i, j);
            RM_ASSERT(i == j || !overlap(a, a->to, b, b->to), "the sums of segments %d and %d share memory",
                      i, j);
        }
    }
}

void segments_check(const struct collective_segment *segments, int n)
{
    for (int i = 0; i < n; i++)
        RM_ASSERT(!segments[i].in, "segment %d lies in memory that this collective can't reach", i);
    segments_check_overlap(segments, n);
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
        .segment = &segments[i],
        .type = segments[i].type,
        .from = segments[i].from ? (const uint8_t *)segments[i].from + first : NULL,
        .to = (uint8_t *)segments[i].to + first,
        .bytes = bytes < left ? bytes : left,
    };
}

static void add_u32(uint32_t *to, const uint32_t *a, const uint32_t *b, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(u32_vector *)(to + i) = *(const u32_vector *)(a + i) + *(const u32_vector *)(b + i);
    for (; i < count; i++)
        to[i] = a[i] + b[i];
}

static void add_f32(float *to, const float *a, const float *b, int64_t count)
{
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        *(f32_vector *)(to + i) = *(const f32_vector *)(a + i) + *(const f32_vector *)(b + i);
    for (; i < count; i++)
        to[i] = a[i] + b[i];
}

void segments_add(enum collective_type type, void *to, const void *a, const void *b, int64_t count)
{
    if (!a)
        memmove(to, b, (size_t)count * 4);
    else if (type == COLLECTIVE_U32)
        add_u32(to, a, b, count);
    else
        add_f32(to, a, b, count);
}

void segments_unproven(const struct collective_segment *segments, int n)
{
    for (int i = 0; i < n; i++)
        if (segments[i].proof)
            *segments[i].proof = 0;
}

void segments_prove_run(const struct segment_run *run, const void *words)
{
    const struct collective_segment *s = run->segment;
    int64_t first = (const uint32_t *)(const void *)run->to - (const uint32_t *)s->to;
    if (s->proof)
        *s->proof += prove_words((uint64_t)(s->at + first), words, run->bytes / 4);
}

void segments_prove(const struct collective_segment *segments, int n, int64_t first, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        struct segment_run run = segments_run(segments, n, first + done, bytes - done);
        segments_prove_run(&run, run.to);
        done += run.bytes;
    }
}

void segments_copy(const struct collective_segment *segments, int n)
{
    for (int i = 0; i < n; i++) {
        size_t bytes = (size_t)segments[i].count * 4;
        if (segments[i].from)
            memcpy(segments[i].to, segments[i].from, bytes);
        else
            memset(segments[i].to, 0, bytes);
    }
}
