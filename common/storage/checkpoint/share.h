/* How a checkpoint's bytes are cut into shares, and where in a state they belong. Only
 * common/storage/checkpoint uses this.
 *
 * A piece of the manifest is the least that can be verified, so it is the least that can be in a share. Bytes
 * of a file are some runs: of the header, then of the arrays that the file has (common/model/arrays.h). */
#ifndef RM_STORE_SHARE_H
#define RM_STORE_SHARE_H

#include "common/base/set.h"
#include "common/model/arrays.h"
#include "common/storage/checkpoint/manifest.h"

enum {
    SHARE_RUNS_MAX = MODEL_ARRAYS
}; /* of a file of the optimizer: its header, and all arrays but the first */

/* The share that has piece i: contiguous, in the manifest's order, and each piece is in one share. */
int share_of_piece(const struct manifest *manifest, int i, int parts);

struct share_run {
    int64_t offset, bytes; /* in the file */
    int array;             /* -1: not of the state (a header, config.json) */
    int64_t first;         /* element of the array, where it is one */
};

/* The runs of bytes [offset, offset + bytes) of the file that piece i is of, in order; returns how many. The
 * piece is one that manifest_check_pieces has passed. A border that cuts an element in two: ERR_DATA. */
int share_runs(const struct manifest *manifest, const struct model_layout *layout, int i, int64_t offset,
               int64_t bytes, struct share_run run[SHARE_RUNS_MAX], struct error *err);

/* What these shares hold of each array of the layout's: contiguous where `shares` names one. */
int share_ranges(const struct manifest *manifest, const struct model_layout *layout, int parts,
                 struct worker_set shares, struct model_range range[MODEL_ARRAYS_MAX], struct error *err);

/* The bytes in front of the data of the file that piece i is of; empty for what is no safetensors file. */
void share_header(const struct manifest *manifest, const struct model_layout *layout, int i, struct str *out);

/* Reads the shares that are asked for; ERR_DATA where something is not as the manifest says. */
struct checkpoint_share;
int share_read(const struct checkpoint_share *share, const char *checkpoint, const struct manifest *manifest,
               struct error *err);

#endif
