/* What both kinds of agent program are started with: the job and its key, from files. */
#ifndef RM_AGENT_JOB_FILES_H
#define RM_AGENT_JOB_FILES_H

#include "agent/session.h"
#include "common/base/str.h"
#include "common/job/spec.h"

struct job_files {
    struct job_spec spec;
    struct str spec_text; /* the canonical JSON as it stands in the file */
    uint8_t key[JOB_KEY_BYTES];
};

/* Reads and checks both; spec_path NULL: the key alone. On failure nothing is left to clear. */
int job_files_read(struct job_files *ret, const char *spec_path, const char *key_path, struct error *err);
/* Puts the job in that came without a file. */
int job_files_learn(struct job_files *files, const char *spec_text, struct error *err);
void job_files_clear(struct job_files *files); /* wipes the key */

#endif
