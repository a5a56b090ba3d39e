/* run.svg beside the checkpoints: the picture of the last run that trained something there. */
#ifndef RM_CLI_RUN_PICTURE_H
#define RM_CLI_RUN_PICTURE_H

#include "cli/core/report.h"
#include "common/storage/object/object.h"

/* Replaces it, whole or not at all. A run without a step leaves the one before. */
int run_picture_write(struct object_store *store, const char *job, int64_t parameters,
                      const struct report *report, struct error *err);
/* Absent is fine. */
void run_picture_remove(struct object_store *store);

#endif
