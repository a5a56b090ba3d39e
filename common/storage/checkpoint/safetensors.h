/* The safetensors file format: 8 bytes little-endian length, that many bytes of JSON, then the data.
 *
 * Reading trusts nothing: the header's length, each shape, each offset and the file's size are checked
 * against each other before memory is taken or a value is read; tensors must fill the data section without
 * gaps or overlaps. F32, F16 and BF16 are read; other types are named and refused. Numbers are little-endian,
 * as the machines this runs on are. */
#ifndef RM_STORE_SAFETENSORS_H
#define RM_STORE_SAFETENSORS_H

#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/model/layout.h"
#include "common/storage/object/object.h"

enum {
    SAFETENSORS_NAME_MAX = 128,
    SAFETENSORS_DIMS_MAX = 4,
    SAFETENSORS_TENSORS_MAX = 1 << 16,
    SAFETENSORS_HEADER_MAX = 16 << 20, /* bytes of JSON */
};

struct safetensors_tensor {
    char name[SAFETENSORS_NAME_MAX];
    char dtype[8]; /* "F32" */
    int dims;      /* 0: a scalar */
    int64_t size[SAFETENSORS_DIMS_MAX];
    int64_t elements;
    int64_t begin, end; /* bytes from the start of the data section */
};

struct safetensors {
    struct object_store *store;
    char name[OBJECT_NAME_MAX];
    char tag[OBJECT_TAG_MAX]; /* of the content that the header was read from */
    int64_t data_begin;       /* bytes before the data section */
    int64_t data_bytes;
    int tensors;
    struct safetensors_tensor *tensor; /* in the header's order */
};

/* Reads a file's header and checks it against the file's size; ERR_DATA with a sentence, ERR_NOT_FOUND where
 * there is no such file. The store must live longer; safetensors_free accepts NULL. */
int safetensors_open(struct safetensors **ret, struct object_store *store, const char *name,
                     struct error *err);
void safetensors_free(struct safetensors *file);

/* NULL where there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors *file, const char *name);

/* Where the elements of one tensor are read from and to; out (tensor->elements) has them as floats after
 * safetensors_widen. So that many are read in one call of object_read. ERR_DATA: of no type that is read. */
int safetensors_range(const struct safetensors *file, const struct safetensors_tensor *tensor, float *out,
                      struct object_range *ret, struct error *err);
void safetensors_widen(const struct safetensors_tensor *tensor, float *out);
/* All three for one tensor. */
int safetensors_read(const struct safetensors *file, const struct safetensors_tensor *tensor, float *out,
                     struct error *err);

/* The bytes that stand before the data section of a model.safetensors: a pure function of the layout, so that
 * several writers can each write a part of one file. The data section is the flat parameters. An image is a
 * whole file itself: nothing stands before it. */
void safetensors_model_header(const struct model_layout *layout, struct str *out);

/* The same for the optimizer's state of a flat range: tensors exp_avg and exp_avg_sq of `count` elements,
 * with first, count, part and parts (from 1) in __metadata__. */
struct safetensors_slice {
    struct model_range range;
    int part, parts; /* part counts from 0 */
};
void safetensors_optimizer_header(const struct safetensors_slice *slice, struct str *out);

#endif
