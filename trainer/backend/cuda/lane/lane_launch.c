#include "trainer/backend/cuda/kernels/attend.h"
#include "trainer/backend/cuda/kernels/classify.h"
#include "trainer/backend/cuda/kernels/columns.h"
#include "trainer/backend/cuda/kernels/embed.h"
#include "trainer/backend/cuda/kernels/gelu.h"
#include "trainer/backend/cuda/kernels/halve.h"
#include "trainer/backend/cuda/kernels/lanes_add.h"
#include "trainer/backend/cuda/kernels/norm.h"
#include "trainer/backend/cuda/lane/lane_parts.h"

#define SHAPE(name, threads) [LANE_##name] = {#name, threads, 0, sizeof(struct name##_args)},

static const struct cuda_kernel_shape shapes[LANE_KERNELS] = {LANE_KERNELS_OF_EXACT(SHAPE)
                                                                  LANE_KERNELS_OF_MODEL(SHAPE)};

enum {
    NARROW = 64, /* the width of the smaller ones of attention's kernels */
    TURNS = 4    /* times as many blocks as fill the GPU: who is done sooner takes another one */
};

static struct cuda_kernel_shape shape_of(const struct cuda_lane *l, int kernel)
{
    static const char *const attention[][2] = {{"attend_64", "attend_128"},
                                               {"attend_keys_64", "attend_keys_128"},
                                               {"attend_queries_64", "attend_queries_128"}};
    if (kernel < LANE_attend)
        return shapes[kernel];
    return (struct cuda_kernel_shape){attention[kernel - LANE_attend][l->head_size > NARROW], ATTEND_THREADS,
                                      0, sizeof(struct attend_args)};
}

int lane_open_kernels(struct cuda_lane *l, const struct cuda_lane_options *options, struct error *err)
{
    for (int i = 0; i < LANE_KERNELS; i++) {
        const struct cuda_kernel_shape shape = shape_of(l, i);
        if (cuda_kernel_open(&l->kernel[i], i == LANE_lanes_add ? options->exact : options->model, &shape,
                             err) < 0 ||
            cuda_kernel_resident(&l->kernel[i], &l->full[i], err) < 0)
            return -1;
        l->full[i] *= l->device->processors;
    }
    return 0;
}

int lane_launch(struct cuda_lane *l, enum lane_kernel kernel, int64_t blocks, const void *args,
                struct error *err)
{
    const int most = TURNS * l->full[kernel];
    return cuda_kernel_launch(&l->kernel[kernel], &l->stream, blocks < most ? (int)blocks : most, args, err);
}

int lane_launch_attention(struct cuda_lane *l, enum lane_kernel kernel, const struct attend_args *args,
                          struct error *err)
{
    const int32_t parts[] = {ATTEND_PARTS(64), ATTEND_KEYS_PARTS(64), ATTEND_QUERIES_PARTS(64)};
    const int32_t rows = ATTEND_ROWS * (l->head_size > NARROW ? 1 : parts[kernel - LANE_attend]);
    const int32_t heads = kernel == LANE_attend_keys ? args->key_heads : args->heads;
    const int32_t blocks = (args->length + rows - 1) / rows * args->sequences * heads;
    return cuda_kernel_launch(&l->kernel[kernel], &l->stream, blocks, args, err);
}
