/* What both kinds of agent program are started with: the job and its key, from files. */
#ifndef RM_POD_JOB_FILES_H
#define RM_POD_JOB_FILES_H

#include "common/base/str.h"
#include "common/job/spec.h"
#include "common/net/session.h"

struct job_files {
    struct job_spec spec;
    struct str spec_text; /* the canonical JSON as it stands in the file */
    uint8_t key[JOB_KEY_BYTES];
};

struct job_paths {
    const char *spec; /* NULL: the key alone is read */
    /* 64 hex digits, of the bytes that the file must hold: whoever started this program wrote them, and has
     * to be told apart from whoever else may put a file there. NULL: any spec is taken. */
    const char *spec_sha256;
    const char *key;
};

/* A job's key as its Secret's file has it: 64 hex digits, and a line's end. ERR_USAGE where it holds anything
 * else. */
int job_key_read(uint8_t key[JOB_KEY_BYTES], const char *path, struct error *err);
/* Reads and checks both. On failure nothing is left to clear. */
int job_files_read(struct job_files *ret, const struct job_paths *paths, struct error *err);
/* Puts the job in that came without a file. */
int job_files_learn(struct job_files *files, const char *spec_text, struct error *err);
void job_files_clear(struct job_files *files); /* wipes the key */

#endif
