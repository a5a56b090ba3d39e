/* The one flat order of a GPT-2's parameters, and the names, shapes and places of its tensors.
 *
 * All tensors stand in strcmp order of their Hugging Face names, one behind the other without gaps. A "flat
 * index" counts fp32 elements in that order: parameters, gradients, moments and reduced words all use it, a
 * range [first, first + count) of it names a piece of the state in checkpoints and transfers, and the data
 * section of a checkpoint's model.safetensors is exactly the flat parameters (so its SHA-256 is
 * weightsSha256). Orientation is that of Hugging Face's gpt2 file: Conv1D weights are (in, out); lm_head is
 * tied to wte. Pure. */
#ifndef RM_MODEL_LAYOUT_H
#define RM_MODEL_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/limits.h"

struct model_shape {
    int layers, heads, width, context, vocabulary; /* width % heads == 0 */
};

struct model_tensor {
    char name[40];   /* "h.0.attn.c_attn.weight" */
    int64_t first;   /* flat index of its first element */
    int64_t count;   /* elements */
    int dims;        /* 1 or 2 */
    int64_t size[2]; /* (rows, columns); (count, 1) for dims == 1 */
    bool decay;      /* weight decay applies: 2-D tensors only */
};

struct model_layout {
    struct model_shape shape;
    int tensors;
    int64_t parameters;                         /* all elements */
    struct model_tensor tensor[RM_TENSORS_MAX]; /* in strcmp order of name, and so in order of first */
};

/* Where each role's tensor stands in model_layout.tensor. */
struct model_block_index {
    int ln1_weight, ln1_bias, attn_weight, attn_bias, proj_weight, proj_bias;
    int ln2_weight, ln2_bias, fc_weight, fc_bias, mlp_proj_weight, mlp_proj_bias;
};

struct model_index {
    int wte, wpe, lnf_weight, lnf_bias;
    struct model_block_index block[RM_LAYERS_MAX];
};

/* Fills the layout; the shape has been checked by the job file's rules. */
void model_layout_init(struct model_layout *out, const struct model_shape *shape);
void model_index_init(struct model_index *out, const struct model_layout *layout);
/* Index of the tensor of that name, -1 where there is none. */
int model_layout_find(const struct model_layout *layout, const char *name);
/* Index of the tensor that holds flat element i. */
int model_layout_at(const struct model_layout *layout, int64_t i);

/* Part i of n of [0, total): [floor(i*total/n), floor((i+1)*total/n)). Lanes, slices and pieces are all
 * dealt out by this rule. */
struct model_range {
    int64_t first, count;
};
struct model_range model_part(int64_t total, int64_t i, int64_t n);

/* The parameters that part i of n of a checkpoint holds: as model_part, but of a small model the first parts
 * hold all (6 MiB each at least, the later ones nothing), because object stores refuse smaller pieces. */
struct model_range model_weights_part(int64_t parameters, int64_t i, int64_t n);

#endif
