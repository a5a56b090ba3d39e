/* A model in Hugging Face's layout: a folder (or a prefix in a bucket) with config.json and
 * model.safetensors, or with several such files and a model.safetensors.index.json. Our own checkpoints are
 * such folders. */
#ifndef RM_STORE_MODEL_FOLDER_H
#define RM_STORE_MODEL_FOLDER_H

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/model/layout.h"
#include "common/storage/object/object.h"

/* GPT2Config of a shape, as transformers reads it. */
void model_config_write(const struct model_shape *shape, struct str *out);

/* Shape from config.json. What we don't compute (another model type
 * or activation, untied embeddings) is ERR_DATA with a sentence. */
int model_folder_shape(struct object_store *store, struct model_shape *ret, struct error *err);

/* The parameters (flat, layout->parameters) from a folder's tensors. Names may have the prefix
 * `transformer.`; lm_head and the attention masks of old files are passed over. A tensor that is missing,
 * unknown or of another shape, and another number of heads in config.json: ERR_DATA with names and shapes. */
int model_folder_load(struct object_store *store, const struct model_layout *layout, float *params,
                      struct error *err);

#endif
