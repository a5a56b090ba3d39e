/* What a GPU computes of a small model: the CPU's probe (probe_cpu.h) on a lane of its own, with a context
 * that takes attention more than one tile, and with heads as wide as the job's, since those of other widths
 * have other kernels. So it is the same for all workers of a job. It has to be what a CPU computes, but for
 * roundings: code for this kind of GPU may never have run on one, and a GPU that computes something else must
 * not train. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/pool.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"

enum { CONTEXT = 72, VOCABULARY = 256, SEED = 20480, WIDTH_LEAST = 128, WIDTH_UNIT = 8, HEADS_LEAST = 2 };

/* Of a tensor's length, by which its gradient may be off that of fp32: bf16 makes 0.006 (lane_test.c). */
static const double off_most = 0.03;

struct probe {
    struct model_layout layout;
    struct cuda_lane *lane;
    struct cuda_memory memory; /* weights, gradient, what the lane says */
    float *numbers;            // (parameters) weights, then the gradient
};

/* As few heads of that width as make a model on which bf16's roundings even out. */
static struct model_shape shape_of(const struct model_shape *job)
{
    const int size = job->width / job->heads;
    int heads = (WIDTH_LEAST + size - 1) / size;
    heads = heads < HEADS_LEAST ? HEADS_LEAST : heads;
    while (heads * size % WIDTH_UNIT)
        heads++;
    return (struct model_shape){
        .layers = 2, .heads = heads, .width = heads * size, .context = CONTEXT, .vocabulary = VOCABULARY};
}

static void fill_tokens(int32_t tokens[CONTEXT + 1])
{
    for (int i = 0; i <= CONTEXT; i++)
        tokens[i] = (i * 89 + i * i * 7) % VOCABULARY;
}

static int open_lane(struct backend_gpu *g, struct probe *p, struct error *err)
{
    const struct cuda_lane_options options = {
        .layout = &p->layout, .sequences = 1, .exact = &g->exact, .model = &g->model};
    const size_t bytes = 2 * (size_t)p->layout.parameters * sizeof(float) + sizeof(struct gpu_said);
    p->numbers = malloc((size_t)p->layout.parameters * sizeof *p->numbers);
    if (!p->numbers)
        return err_set(err, ERR_MACHINE, "no memory for the probe");
    if (cuda_memory_open(&p->memory, g->device, bytes, "the probe", err) < 0)
        return -1;
    return cuda_lane_open(&p->lane, g->blas, &options, err);
}

static int run(struct backend_gpu *g, struct probe *p, double *loss, struct error *err)
{
    const size_t bytes = (size_t)p->layout.parameters * sizeof(float);
    const CUdeviceptr params = p->memory.at, words = params + bytes, said = words + bytes;
    float scale[RM_TENSORS_MAX];
    int32_t tokens[CONTEXT + 1];
    for (int t = 0; t < p->layout.tensors; t++)
        scale[t] = 1;
    const struct cuda_lane_sums sums = {words, said + offsetof(struct gpu_said, max), said, scale, true,
                                        true};
    fill_tokens(tokens);
    gpt_init_weights(&p->layout, SEED, p->numbers);
    if (memory_write(&g->far.base, (struct far){params}, p->numbers, bytes, err) < 0 ||
        memory_zero(&g->far.base, (struct far){said}, sizeof(struct gpu_said), err) < 0 ||
        cuda_lane_weights(p->lane, params, err) < 0 || cuda_lane_run(p->lane, tokens, &sums, loss, err) < 0)
        return -1;
    return memory_read(&g->far.base, p->numbers, (struct far){words}, bytes, err);
}

/* numbers: weights, then the gradient. */
static int run_on_cpu(const struct model_layout *layout, float *numbers, struct error *err)
{
    const struct gpt_options options = {.sequences = 1, .isa = "Auto", .precision = GPT_FP32};
    int32_t tokens[CONTEXT + 1];
    struct pool *pool;
    struct gpt *gpt = NULL;
    float loss;
    if (pool_open(&pool, 1, err) < 0)
        return -1;
    int result = gpt_open(&gpt, layout, &options, pool, err);
    if (result == 0) {
        fill_tokens(tokens);
        gpt_init_weights(layout, SEED, numbers);
        gpt_weights_changed(gpt, numbers);
        result = gpt_lane(gpt, numbers, tokens, numbers + layout->parameters, &loss, NULL, err);
    }
    gpt_free(gpt);
    pool_free(pool);
    return result;
}

/* How far a is from b, in b's lengths; infinite where that is no number. */
static double distance(const float *a, const float *b, int64_t count)
{
    double off = 0, length = 0;
    for (int64_t i = 0; i < count; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)b[i] * (double)b[i];
    }
    const double far = sqrt(off / length);
    return isfinite(far) ? far : INFINITY;
}

static int compare_to_cpu(const struct backend_gpu *g, const struct probe *p, struct error *err)
{
    const struct model_layout *layout = &p->layout;
    float *numbers = calloc(2 * (size_t)layout->parameters, sizeof *numbers);
    if (!numbers)
        return err_set(err, ERR_MACHINE, "no memory for the probe");
    int result = run_on_cpu(layout, numbers, err);
    for (int t = 0; t < layout->tensors && result == 0; t++) {
        const struct model_tensor *tensor = &layout->tensor[t];
        const double far =
            distance(p->numbers + tensor->first, numbers + layout->parameters + tensor->first, tensor->count);
        if (far > off_most)
            result =
                err_set(err, ERR_MACHINE,
                        "%s computes something else than a CPU (%s of a small model is off by %.0f %%): run "
                        "gpu-check there, train with trainer.device: cpu",
                        g->device->name, tensor->name, 100 * far);
    }
    free(numbers);
    return result;
}

int gpu_probe(struct backend *b, uint8_t *out, struct error *err)
{
    struct backend_gpu *g = gpu_of(b);
    struct probe *p = calloc(1, sizeof *p);
    double loss = 0;
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for the probe");
    const struct model_shape shape = shape_of(&g->layout->shape);
    model_layout_init(&p->layout, &shape);
    int result = cuda_device_use(g->device, err);
    if (result == 0 &&
        (open_lane(g, p, err) < 0 || run(g, p, &loss, err) < 0 || compare_to_cpu(g, p, err) < 0))
        result = -1;
    if (result == 0) {
        struct sha256 *h = sha256_open();
        sha256_add(h, &loss, sizeof loss);
        sha256_add(h, p->numbers, (size_t)p->layout.parameters * sizeof *p->numbers);
        sha256_finish(h, out);
    }
    cuda_lane_free(p->lane);
    cuda_memory_clear(&p->memory);
    free(p->numbers);
    free(p);
    return result;
}
