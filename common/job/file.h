/* The job file: YAML on a person's disk -> the effective spec, with messages that say where and what to do.
 *
 *     trainingjob.yaml:14: spec.trainer.batch.lanes is 5000; write a whole number from 1 to 1024
 *
 * Everything is refused that would change the training and can't be done; what means nothing without a
 * cluster becomes a note. */
#ifndef RM_JOB_FILE_H
#define RM_JOB_FILE_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/job/spec.h"

struct job_file_source {
    const char *path;        /* as the person gave it, for messages */
    const char *folder;      /* absolute: plain paths in the file are relative to it */
    const char *cwd;         /* absolute: plain paths in --set are relative to it */
    const char *const *sets; /* "spec.trainer.steps=100" */
    int sets_count;
};

enum { JOB_FILE_MAX = 1 << 20 /* bytes of a job file */ };

/* Pure: bytes of the file -> spec. Notes for stderr are added to `notes`, a line each. ERR_USAGE. */
int job_file_parse(struct job_spec *ret, const char *bytes, size_t length,
                   const struct job_file_source *source, struct str *notes, struct error *err);

/* The same with the file read from disk; `source->path` is opened, folder and cwd are worked out here. */
int job_file_read(struct job_spec *ret, const char *path, const char *const *sets, int sets_count,
                  struct str *notes, struct error *err);

/* "runs/a" below folder, "/runs/a" or "file:///runs/a" as file:///... without "." and ".." and trailing
 * slashes; s3://bucket/prefix likewise. ERR_USAGE for other schemes. out: RM_URI_MAX bytes. */
int job_uri_resolve(const char *uri, const char *folder, char *out, struct error *err);

#endif
