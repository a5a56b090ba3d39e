/* The inside of a lane: what it launches, what it multiplies, and where everything lies. */
#ifndef RM_TRAINER_CUDA_LANE_PARTS_H
#define RM_TRAINER_CUDA_LANE_PARTS_H

#include "trainer/backend/cuda/driver/memory.h"
#include "trainer/backend/cuda/driver/stream.h"
#include "trainer/backend/cuda/lane/lane.h"

/* C(name, threads): each kernel that a lane launches; those of attention are for one width or the other. */
#define LANE_KERNELS_OF_EXACT(C) C(lanes_add, LANES_ADD_THREADS)
#define LANE_KERNELS_OF_MODEL(C)                                                                             \
    C(classify, CLASSIFY_THREADS)                                                                            \
    C(columns, COLUMNS_THREADS)                                                                              \
    C(embed, EMBED_THREADS)                                                                                  \
    C(embed_places, EMBED_THREADS)                                                                           \
    C(embed_tokens, EMBED_THREADS)                                                                           \
    C(gelu, GELU_THREADS)                                                                                    \
    C(gelu_back, GELU_THREADS)                                                                               \
    C(halve, HALVE_THREADS)                                                                                  \
    C(norm_back, NORM_THREADS)                                                                               \
    C(norm_rows, NORM_THREADS)
#define LANE_KERNEL(name, threads) LANE_##name,

enum lane_kernel {
    LANE_KERNELS_OF_EXACT(LANE_KERNEL) LANE_KERNELS_OF_MODEL(LANE_KERNEL) LANE_attend,
    LANE_attend_keys,
    LANE_attend_queries,
    LANE_KERNELS
};

/* Products of the way forward, for each what it gives back to its input and to its weight, and the way
 * forward of one sequence by itself. */
enum lane_product {
    LANE_QKV,
    LANE_PROJ,
    LANE_FC,
    LANE_MLP,
    LANE_HEAD,
    LANE_FORWARD,
    LANE_TO_INPUT = LANE_FORWARD,
    LANE_TO_WEIGHT = 2 * LANE_FORWARD,
    LANE_ALONE = 3 * LANE_FORWARD,
    LANE_PRODUCTS = 4 * LANE_FORWARD
};

/* Places on the GPU. N rows, C width, V the vocabulary in memory: a multiple of 128. What is not kept
 * (needs.h) lies where the first block has it. */
struct lane_block {
    CUdeviceptr attn, attn_bias, proj, fc, mlp; /* weights in bf16; (3C) of the bias */
    CUdeviceptr stream;                         // (N, C) fp32: what comes into the block
    CUdeviceptr stats1, norm1;                  // (N) pairs, (N, C) bf16
    CUdeviceptr qkv, log_sums, mixed;           // (N, 3C) bf16, (sequences, heads, context) fp32, (N, C) bf16
    CUdeviceptr middle;                         // (N, C) fp32: the stream after attention
    CUdeviceptr stats2, norm2;                  // (N) pairs, (N, C) bf16
    CUdeviceptr wide, gelu;                     // (N, 4C) bf16 each
};

struct lane_places {
    struct lane_block block[RM_LAYERS_MAX];
    CUdeviceptr wte;                   // (V, C) bf16, zeros behind the vocabulary
    CUdeviceptr branch;                // (N, C) bf16: what will be added to the stream
    CUdeviceptr last, stats, norm;     // (N, C) fp32, (N) pairs, (N, C) bf16: after all blocks
    CUdeviceptr logits, losses;        // (N, V) bf16, (N)
    CUdeviceptr dstream, dstream_half; // (N, C) fp32, bf16
    CUdeviceptr dnorm;                 // (N, C) fp32
    CUdeviceptr dmixed, drift;         // (N, C) bf16, (sequences, heads, context)
    CUdeviceptr dwide;                 // (N, 4C) bf16
    CUdeviceptr shares, sums;          /* fp32: of norms' and biases' gradients, and these themselves */
    CUdeviceptr gradient, dwte;        /* fp32: of one weight at a time, (V, C) of the first one */
    CUdeviceptr rows;                  /* struct lane_rows's memory */
    CUdeviceptr workspace;
    size_t bytes;
};

/* What the host works out of a lane's tokens, one behind the other: pinned, and once more on the GPU. */
struct lane_rows {
    int32_t *tokens, *targets, *order; // (N)
    int32_t *first;                    // (N + 1)
    int32_t *groups;                   /* one */
};

/* The work of a lane for two buffers of words, the first lane of a pass and others: more are not in use at a
 * time, until exponents change. */
enum { LANE_GRAPHS = 4 };

struct lane_graph {
    struct cuda_graph graph;
    CUdeviceptr params;
    struct cuda_lane_sums sums; /* its scale points nowhere: */
    float scale[RM_TENSORS_MAX];
};

struct cuda_lane {
    struct cuda_device *device;
    struct cuda_blas *blas;
    const struct model_layout *layout;
    struct model_index index;
    int sequences, head_size;
    enum cuda_keep keep;
    int under_way;                   /* sequences of what is computed now: all, or one by itself */
    bool forward_only;               /* of what is computed now: logits stay as they are */
    int64_t rows, width, vocabulary; /* of what is computed now; the vocabulary in memory */
    struct cuda_stream stream;
    struct cuda_kernel kernel[LANE_KERNELS];
    int full[LANE_KERNELS]; /* blocks of it that fill the GPU */
    struct cuda_product product[LANE_PRODUCTS];
    struct cuda_memory memory;
    struct lane_places at;
    CUdeviceptr params;
    void *pinned;
    struct lane_rows host;
    float *losses; // (N), pinned
    int32_t *scratch;
    const struct cuda_lane_sums *sums; /* of the lane under way */
    bool graphs;
    struct lane_graph graph[LANE_GRAPHS];
    int noted; /* graphs made so far: the eldest makes room */
};

/* A workspace in which cuBLASLt may split sums (cublaslt.h). */
enum { LANE_WORKSPACE = 32 << 20, LANE_COLUMNS_EACH = 64 /* rows of a bias's gradient that are one share */ };

/* lane_memory.c: sizes, of layout and sequences; every place, from `base` on, for all sequences; base 0 only
 * counts. */
void lane_measure(struct cuda_lane *l);
void lane_place(struct cuda_lane *l, CUdeviceptr base);
/* What so many rows' parts lie in, one behind the other; and where each lies, here or on the GPU. */
size_t lane_rows_bytes(int64_t rows);
struct lane_rows lane_rows_at(int64_t rows, void *base);
size_t lane_host_bytes(const struct cuda_lane *l);
void lane_place_host(struct cuda_lane *l, void *base);

/* lane_products.c */
int lane_open_products(struct cuda_lane *l, struct error *err);
/* product: of the way forward by its name, whoever is under way. */
int lane_multiply(struct cuda_lane *l, int product, CUdeviceptr a, CUdeviceptr b, CUdeviceptr d,
                  CUdeviceptr bias, struct error *err);

/* lane_launch.c: as many blocks as there is work for, or as fill the GPU some times over. */
int lane_open_kernels(struct cuda_lane *l, const struct cuda_lane_options *options, struct error *err);
int lane_launch(struct cuda_lane *l, enum lane_kernel kernel, int64_t blocks, const void *args,
                struct error *err);

/* A block for each of what attention's kernels do by blocks, and the GPU takes the next one as soon as one is
 * done: they are not equally long. */
struct attend_args;
int lane_launch_attention(struct cuda_lane *l, enum lane_kernel kernel, const struct attend_args *args,
                          struct error *err);

/* lane_forward.c: the arguments that both ways of attention have in common. */
struct attend_args lane_attention(const struct cuda_lane *l, const struct lane_block *b);

/* lane_queue.c: all of a lane's work, from its tokens to its losses. */
int lane_queue(struct cuda_lane *l, struct error *err);
/* lane_graph.c: the same as one piece of work, noted where it is not yet. */
int lane_replay(struct cuda_lane *l, struct error *err);

int lane_forward(struct cuda_lane *l, struct error *err);
/* On the way back, from the last block to the first: what that block did not keep, once more, by the same
 * kernels of the same operands. */
int lane_forward_again(struct cuda_lane *l, int layer, struct error *err);
int lane_backward(struct cuda_lane *l, struct error *err);

static inline void *lane_at(CUdeviceptr at)
{
    return (void *)(uintptr_t)at; /* for kernels: nobody here may follow it */
}

/* Where a tensor's weights lie. */
static inline float *lane_param(const struct cuda_lane *l, int tensor)
{
    return lane_at(l->params + (CUdeviceptr)l->layout->tensor[tensor].first * sizeof(float));
}

#endif
