/* run.svg in the checkpoint folder: the picture of the last run that trained something there. */
#ifndef RM_CLI_PORTRAIT_H
#define RM_CLI_PORTRAIT_H

#include "cli/core/report.h"
#include "common/job/spec.h"

/* Replaces it, whole or not at all. A run without a step leaves the one before. */
int portrait_write(const struct job_spec *spec, const struct report *report, struct error *err);
/* Absent is fine. */
void portrait_remove(const char *uri);

#endif
