#include "trainer/backend/cuda/lane/lane_parts.h"

/* Sizes of a product, by name: rows, width and its multiples, the vocabulary in memory. */
enum size { ROWS, WIDTH, THREE, FOUR, WORDS };

/* Forward: rows by `out`, from rows by `in`. turned: the weight lies as (out, in). */
static const struct {
    enum size in, out;
    bool turned;
    enum cuda_epilogue epilogue;
    bool input_half; /* what goes back to the input is bf16, else fp32 */
} forward[LANE_FORWARD] = {
    [LANE_QKV] = {WIDTH, THREE, false, CUDA_BIAS, false},
    [LANE_PROJ] = {WIDTH, WIDTH, false, CUDA_PLAIN, true},
    [LANE_FC] = {WIDTH, FOUR, false, CUDA_PLAIN, false},
    [LANE_MLP] = {FOUR, WIDTH, false, CUDA_PLAIN, true},
    [LANE_HEAD] = {WIDTH, WORDS, true, CUDA_PLAIN, false},
};

static int size_of(const struct cuda_lane *l, enum size size)
{
    const int64_t sizes[] = {l->rows, l->width, 3 * l->width, 4 * l->width, l->vocabulary};
    return (int)sizes[size];
}

static struct cuda_product_shape shape_of(const struct cuda_lane *l, int product)
{
    const int i = product % LANE_FORWARD;
    const int rows = product < LANE_ALONE ? (int)l->rows : l->layout->shape.context;
    const int in = size_of(l, forward[i].in), out = size_of(l, forward[i].out);
    struct cuda_product_shape s = {.half = true, .workspace = LANE_WORKSPACE};
    if (product < LANE_TO_INPUT || product >= LANE_ALONE) { /* rows (rows, in) * weight (in, out) */
        s.m = rows, s.n = out, s.k = in;
        s.b_turned = forward[i].turned;
        s.d_half = true;
        s.epilogue = forward[i].epilogue;
    } else if (product < LANE_TO_WEIGHT) { /* gradient (rows, out) * weight, turned */
        s.m = rows, s.n = in, s.k = out;
        s.b_turned = !forward[i].turned;
        s.d_half = forward[i].input_half;
    } else { /* as the weight lies: input, turned * gradient, or the other way round */
        s.m = forward[i].turned ? out : in, s.n = forward[i].turned ? in : out, s.k = rows;
        s.a_turned = true;
    }
    return s;
}

int lane_open_products(struct cuda_lane *l, struct error *err)
{
    for (int i = 0; i < LANE_PRODUCTS; i++) {
        const struct cuda_product_shape shape = shape_of(l, i);
        if (cuda_product_open(&l->product[i], l->blas, &shape, err) < 0)
            return -1;
    }
    return 0;
}

int lane_multiply(struct cuda_lane *l, int product, CUdeviceptr a, CUdeviceptr b, CUdeviceptr d,
                  CUdeviceptr bias, struct error *err)
{
    const struct cuda_product_operands at = {a, b, d, bias, 0, l->at.workspace};
    const bool alone = product < LANE_FORWARD && l->under_way < l->sequences;
    return cuda_product_run(&l->product[product + (alone ? LANE_ALONE : 0)], &l->stream, &at, err);
}
