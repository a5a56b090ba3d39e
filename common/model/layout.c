#include "common/model/layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

/* 6 MiB: the least part of a multipart upload is 5 MiB in every store, but for the last one. */
enum { WEIGHTS_LEAST = 6 << 18 };

static void add(struct model_layout *out, int64_t rows, int64_t columns, const char *name)
{
    struct model_tensor *t = &out->tensor[out->tensors++];
    RM_ASSERT(out->tensors <= RM_TENSORS_MAX && rows > 0 && columns >= 0, "tensor %d, %s, is %lld by %lld",
              out->tensors, name, (long long)rows, (long long)columns);
    snprintf(t->name, sizeof t->name, "%s", name);
    t->dims = columns ? 2 : 1;
    t->size[0] = rows;
    t->size[1] = columns ? columns : 1;
    t->count = t->size[0] * t->size[1];
    t->decay = t->dims == 2;
}

static void add_block(struct model_layout *out, int layer)
{
    int64_t c = out->shape.width;
    const struct {
        const char *name;
        int64_t rows, columns; /* columns 0: one-dimensional */
    } parts[] = {
        {"ln_1.weight", c, 0},
        {"ln_1.bias", c, 0},
        {"attn.c_attn.weight", c, 3 * c},
        {"attn.c_attn.bias", 3 * c, 0},
        {"attn.c_proj.weight", c, c},
        {"attn.c_proj.bias", c, 0},
        {"ln_2.weight", c, 0},
        {"ln_2.bias", c, 0},
        {"mlp.c_fc.weight", c, 4 * c},
        {"mlp.c_fc.bias", 4 * c, 0},
        {"mlp.c_proj.weight", 4 * c, c},
        {"mlp.c_proj.bias", c, 0},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[40];
        snprintf(name, sizeof name, "h.%d.%s", layer, parts[i].name);
        add(out, parts[i].rows, parts[i].columns, name);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct model_tensor *)a)->name, ((const struct model_tensor *)b)->name);
}

void model_layout_init(struct model_layout *out, const struct model_shape *shape)
{
    memset(out, 0, sizeof *out);
    out->shape = *shape;
    add(out, shape->vocabulary, shape->width, "wte.weight");
    add(out, shape->context, shape->width, "wpe.weight");
    add(out, shape->width, 0, "ln_f.weight");
    add(out, shape->width, 0, "ln_f.bias");
    for (int layer = 0; layer < shape->layers; layer++)
        add_block(out, layer);
    qsort(out->tensor, (size_t)out->tensors, sizeof *out->tensor, by_name);
    for (int i = 0; i < out->tensors; i++) {
        out->tensor[i].first = out->parameters;
        out->parameters += out->tensor[i].count;
    }
}

int model_layout_find(const struct model_layout *layout, const char *name)
{
    struct model_tensor wanted;
    if (strlen(name) >= sizeof wanted.name)
        return -1;
    memset(&wanted, 0, sizeof wanted);
    memcpy(wanted.name, name, strlen(name));
    const struct model_tensor *found =
        bsearch(&wanted, layout->tensor, (size_t)layout->tensors, sizeof wanted, by_name);
    return found ? (int)(found - layout->tensor) : -1;
}

int model_layout_at(const struct model_layout *layout, int64_t i)
{
    int low = 0, high = layout->tensors - 1;
    RM_ASSERT(i >= 0 && i < layout->parameters, "element %lld of %lld", (long long)i,
              (long long)layout->parameters);
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (layout->tensor[middle].first <= i)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

static int find_in_block(const struct model_layout *layout, int layer, const char *part)
{
    char name[40];
    RM_ASSERT(layer >= 0 && layer < layout->shape.layers, "layer %d of %d", layer, layout->shape.layers);
    snprintf(name, sizeof name, "h.%d.%s", layer, part);
    return model_layout_find(layout, name);
}

void model_index_init(struct model_index *out, const struct model_layout *layout)
{
    memset(out, 0, sizeof *out);
    out->wte = model_layout_find(layout, "wte.weight");
    out->wpe = model_layout_find(layout, "wpe.weight");
    out->lnf_weight = model_layout_find(layout, "ln_f.weight");
    out->lnf_bias = model_layout_find(layout, "ln_f.bias");
    for (int layer = 0; layer < layout->shape.layers; layer++) {
        struct model_block_index *b = &out->block[layer];
        b->ln1_weight = find_in_block(layout, layer, "ln_1.weight");
        b->ln1_bias = find_in_block(layout, layer, "ln_1.bias");
        b->attn_weight = find_in_block(layout, layer, "attn.c_attn.weight");
        b->attn_bias = find_in_block(layout, layer, "attn.c_attn.bias");
        b->proj_weight = find_in_block(layout, layer, "attn.c_proj.weight");
        b->proj_bias = find_in_block(layout, layer, "attn.c_proj.bias");
        b->ln2_weight = find_in_block(layout, layer, "ln_2.weight");
        b->ln2_bias = find_in_block(layout, layer, "ln_2.bias");
        b->fc_weight = find_in_block(layout, layer, "mlp.c_fc.weight");
        b->fc_bias = find_in_block(layout, layer, "mlp.c_fc.bias");
        b->mlp_proj_weight = find_in_block(layout, layer, "mlp.c_proj.weight");
        b->mlp_proj_bias = find_in_block(layout, layer, "mlp.c_proj.bias");
    }
}

struct model_range model_part(int64_t total, int64_t i, int64_t n)
{
    RM_ASSERT(total >= 0 && i >= 0 && i < n, "part %lld of %lld, of %lld", (long long)i, (long long)n,
              (long long)total);
    /* total * n stays far below 2^63: parameters < 2^40, parts <= 2^20. */
    int64_t first = i * total / n, end = (i + 1) * total / n;
    return (struct model_range){first, end - first};
}

static int64_t weights_parts(int64_t parameters, int64_t n)
{
    int64_t most = parameters / WEIGHTS_LEAST;
    RM_ASSERT(n >= 1, "%lld parts", (long long)n);
    return most < 1 ? 1 : most < n ? most : n;
}

struct model_range model_weights_part(int64_t parameters, int64_t i, int64_t n)
{
    int64_t parts = weights_parts(parameters, n);
    return i < parts ? model_part(parameters, i, parts) : (struct model_range){parameters, 0};
}
