/* Opening the stores that a job names. */
#ifndef RM_STORE_PLACE_H
#define RM_STORE_PLACE_H

#include "common/job/spec.h"
#include "common/storage/object/object.h"

/* Where the checkpoints are. cancel may be NULL. */
int place_open_checkpoints(struct object_store **ret, const struct job_spec *spec, const atomic_int *cancel,
                           struct error *err);
/* The same, with the callbacks and the rest as `how` says; where it is stands in the spec. */
int place_open_watched(struct object_store **ret, const struct job_spec *spec,
                       const struct object_options *how, struct error *err);
/* Where the training data is, if in an object store. cancel may be NULL. */
int place_open_data(struct object_store **ret, const struct job_spec *spec, const atomic_int *cancel,
                    struct error *err);
/* Where the weights are that training starts from: at the same endpoint as the checkpoints. */
int place_open_init(struct object_store **ret, const struct job_spec *spec, struct error *err);
/* What a person names on the command line: a relative path is one of the working folder; the endpoint is
 * AWS's, or from the environment. */
int place_open_uri(struct object_store **ret, const char *uri, struct error *err);

#endif
