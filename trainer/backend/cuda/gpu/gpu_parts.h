/* The inside of the backend on a GPU, shared by the files of this folder. */
#ifndef RM_TRAINER_CUDA_GPU_PARTS_H
#define RM_TRAINER_CUDA_GPU_PARTS_H

#include <pthread.h>

#include "common/os/shelf.h"
#include "trainer/backend/cuda/driver/memory.h"
#include "trainer/backend/cuda/gpu/backend_gpu.h"
#include "trainer/backend/cuda/kernels/sums.h"
#include "trainer/backend/cuda/kernels/update.h"
#include "trainer/backend/cuda/lane/lane.h"
#include "trainer/backend/cuda/needs.h"
#include "trainer/state/state_file.h"

/* The GPU's memory as others see it: read and written by way of a window of this process's that is locked,
 * on a stream of its own. */
struct gpu_far {
    struct memory base;
    struct cuda_device *device;
    struct cuda_stream stream;
    pthread_mutex_t lock; /* over the window: any thread may read and write */
    void *window;         // (GPU_WINDOW)
};

enum { GPU_WINDOW = 4 << 20 /* bytes */ };

/* What a lane says beside its words. */
struct gpu_said {
    uint64_t proof;
    uint32_t max[RM_TENSORS_MAX];
};

enum gpu_kernel { GPU_PROVE, GPU_RESTORE, GPU_SUMS, GPU_UPDATE, GPU_KERNELS };

/* What passes over the state need beside it: on the GPU, and of some of it a copy here, locked. */
struct gpu_tables {
    struct cuda_memory memory;
    CUdeviceptr said, piece, sums, constants;
    void *pinned;
    struct gpu_said *said_here;
    struct sums_of_piece *sums_here;         // (pieces)
    uint64_t *proof_here;                    // (pieces) of the state
    struct update_constants *constants_here; // (tensors)
};

struct gpu_pass {
    struct backend_pass given;
    int32_t k[RM_TENSORS_MAX];
    float scale[RM_TENSORS_MAX]; /* a lane's gradient times this is its share of the sum */
    int from, to;    /* buffers: what this rank adds, and the sum of all; the same where it is alone */
    bool first;      /* no lane has been added yet: the next one is stored, not added */
    bool all_inside; /* every rank has sent its header: none is a step behind */
    bool fits;       /* this pass may become an update */
    uint32_t lane_us;
};

struct backend_gpu {
    struct backend base;
    const struct model_layout *layout;
    int sequences;
    bool graphs, recompute;
    struct backend_rule rule;
    char name[240];
    struct cuda_needs needs;
    struct cuda_driver *driver;
    struct cuda_device *device;
    struct cuda_blas *blas;
    struct cuda_module exact, model;
    struct cuda_lane *lane;
    struct cuda_stream stream;
    struct cuda_kernel kernel[GPU_KERNELS];
    int full[GPU_KERNELS]; /* blocks of it that fill the GPU */
    struct gpu_far far;
    struct cuda_memory bulk; /* the state's arrays, words and slots */
    struct shelf shelf;      /* for a descriptor of that */
    bool shelved;            /* there is one */
    bool left;               /* bulk lay there, and nobody has asked for it yet */
    struct gpu_tables tables;
    struct state *state;    /* NULL until attached */
    uint32_t *header, *sum; // (header_words) what this rank says, and what all do
    struct gpu_pass pass;
};

static inline struct backend_gpu *gpu_of(struct backend *b)
{
    return (struct backend_gpu *)(void *)b;
}

static inline const struct backend_gpu *gpu_seen(const struct backend *b)
{
    return (const struct backend_gpu *)(const void *)b;
}

/* A kernel gets it: nobody here may follow it. */
static inline void *gpu_at(CUdeviceptr at)
{
    return (void *)(uintptr_t)at;
}

static inline CUdeviceptr gpu_address(const void *at)
{
    return (CUdeviceptr)(uintptr_t)at;
}

/* gpu_far.c */
int gpu_far_open(struct gpu_far *far, struct cuda_device *device, struct error *err);
void gpu_far_clear(struct gpu_far *far);

/* gpu_tables.c: kernels over pieces, and their tables. */
int gpu_open_kernels(struct backend_gpu *g, struct error *err);
/* As many blocks as there is work for, or as fill the GPU. */
int gpu_launch(struct backend_gpu *g, enum gpu_kernel kernel, int64_t blocks, const void *args,
               struct error *err);
int gpu_open_tables(struct backend_gpu *g, struct error *err);
void gpu_clear_tables(struct backend_gpu *g);

/* gpu_pass.c: from the table. */
int gpu_begin(struct backend *b, const struct backend_pass *pass, struct error *err);
int gpu_lane(struct backend *b, int lane, const int32_t *tokens, const atomic_int *stop, struct error *err);
int gpu_end(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err);
int gpu_image_sum(struct backend *b, uint64_t *ret, struct error *err);
void gpu_decide(struct backend *b, struct verdict *ret);
bool gpu_words_to(struct backend *b, struct far *ret);
int gpu_losses(struct backend *b, const int32_t *tokens, int n, float *losses, const atomic_int *stop,
               struct error *err);
void gpu_warm_up(struct backend *b, struct far params);

/* gpu_update.c: from the table. */
int gpu_commit(struct backend *b, struct backend_info *ret, struct error *err);
int gpu_check(struct backend *b, const struct state_point *wanted, struct error *err);
int gpu_finish(struct backend *b, struct error *err);
/* Have the words of that buffer the sum that their header says? Those of fp32 have none, and are whole. */
int gpu_words_are_whole(struct backend_gpu *g, int buffer, bool *ret, struct error *err);

/* gpu_takeover.c: a state that a trainer before this one left */
/* Right behind the device: what lies on the shelf is mapped, or taken off. */
void gpu_takeover_open(struct backend_gpu *g);
/* Whether what was mapped is the memory that is asked for; else it is given back. */
bool gpu_takeover_memory(struct backend_gpu *g, size_t bytes);
/* As `attach` of the table, once tables are open: what is not whole is forgotten. Memory that is new goes to
 * the shelf. */
int gpu_takeover_attach(struct backend_gpu *g, struct error *err);

/* gpu_probe.c: from the table. */
int gpu_probe(struct backend *b, uint8_t *out, struct error *err);

#endif
