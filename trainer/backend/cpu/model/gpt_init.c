#include <math.h>
#include <string.h>

#include "common/base/prng.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/model/scalar.h"

static const double spread = 0.02;

enum { NORMALS = 4 }; /* of one Philox block */

/* FNV-1a: the tensors' streams differ by name, so they do not move when layers are added. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++)
        hash = (hash ^ (uint8_t)*name) * 1099511628211u;
    return hash;
}

/* Box-Muller on two pairs of uniform numbers. */
static void normals(uint64_t seed, uint64_t block, uint64_t stream, double out[NORMALS])
{
    struct philox_block random = philox4x32(seed, block, stream);
    for (int pair = 0; pair < NORMALS; pair += 2) {
        double c, s;
        double radius = sqrt(-2 * scalar_log((random.word[pair] + 1.0) * 0x1p-32));
        scalar_circle(random.word[pair + 1] * 0x1p-32, &c, &s);
        out[pair] = radius * c;
        out[pair + 1] = radius * s;
    }
}

static void fill_normal(float *out, int64_t count, uint64_t seed, const char *name, double deviation)
{
    uint64_t stream = hash_of(name);
    for (int64_t i = 0; i < count; i += NORMALS) {
        double random[NORMALS];
        normals(seed, (uint64_t)i / NORMALS, stream, random);
        for (int64_t j = i; j < count && j < i + NORMALS; j++)
            out[j] = (float)(deviation * random[j - i]);
    }
}

static void fill(float *out, int64_t count, float value)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = value;
}

static int ends_with(const char *name, const char *end)
{
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

void gpt_init_weights(const struct model_layout *layout, uint64_t seed, float *params)
{
    for (int i = 0; i < layout->tensors; i++) {
        const struct model_tensor *t = &layout->tensor[i];
        float *out = params + t->first;
        if (t->dims == 1)
            fill(out, t->count, ends_with(t->name, ".weight") ? 1 : 0);
        else if (ends_with(t->name, "c_proj.weight"))
            fill_normal(out, t->count, seed, t->name, spread / sqrt(2.0 * layout->shape.layers));
        else
            fill_normal(out, t->count, seed, t->name, spread);
    }
}
