/* The tokenizer that made a job's tokens (spec.trainer.data.tokenizer): a file, or an object at the data's
 * endpoint. It is looked at before the first step is trained, and copied into final/ when the last weights
 * are published. */
#ifndef RM_STORE_TOKENIZER_FILE_H
#define RM_STORE_TOKENIZER_FILE_H

#include <stdatomic.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/job/spec.h"

/* Its bytes into *out (of MANIFEST_TOKENIZER_MAX at least); nothing where the job names none. What is not
 * there, is no tokenizer.json, or knows more tokens than the job's model: a sentence with the field's name.
 * cancel may be NULL. */
int tokenizer_file_read(const struct job_spec *spec, struct str *out, const atomic_int *cancel,
                        struct error *err);

/* The same, for whoever wants to know whether it would. */
int tokenizer_file_check(const struct job_spec *spec, const atomic_int *cancel, struct error *err);

#endif
