/* The other programs: where they are, and the three things that are asked of the trainer by itself. */
#ifndef RM_CLI_PROGRAMS_H
#define RM_CLI_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "common/job/spec.h"

enum program_found {
    PROGRAM_MISSING,
    PROGRAM_NOT_EXECUTABLE, /* a file of that name is there, and may not be run */
    PROGRAM_FOUND
};

/* Can a shell find it? A name with a '/' is looked for as it stands, any other in PATH. */
enum program_found program_find(const char *name);
int program_agent(char *out, size_t size, struct error *err); /* beside the running program */

/* The fingerprint line that the trainer of this job has, without its newline. Blocks. */
int trainer_fingerprint(const struct job_spec *spec, char *out, size_t size, struct error *err);

/* Memory of one worker of this job, in bytes. */
struct trainer_needs {
    int64_t lane;  /* on this machine: what comes and goes with its trainer */
    int64_t state; /* and its training state */
    int64_t gpu;   /* of a GPU; 0: it computes on CPUs */
};

/* Blocks. */
int trainer_memory(const struct job_spec *spec, struct trainer_needs *ret, struct error *err);

/* Becomes `ringmaster-trainer generate arguments...`; returns only on failure. arguments: NULL-terminated,
 * arguments[0] is "generate". */
int trainer_generate(char **arguments, struct error *err);

#endif
