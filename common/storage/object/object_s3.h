/* Buckets behind the S3 protocol: AWS and everything that speaks like it. See object.h for what it does and
 * docs/object-store.md for how: signing, credentials, retries, what is sent and when. */
#ifndef RM_OBJECT_OBJECT_S3_H
#define RM_OBJECT_OBJECT_S3_H

#include "common/storage/object/object_ops.h"

/* options->uri starts with s3://. Reads settings and shared files; makes no connection. */
int object_s3_open(struct object_store **ret, const struct object_options *options, struct error *err);

#endif
