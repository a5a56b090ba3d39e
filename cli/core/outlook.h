/* What a job comes to, told before anything of it is started (`ringmaster check`). Pure. */
#ifndef RM_CLI_OUTLOOK_H
#define RM_CLI_OUTLOOK_H

#include "cli/core/screen.h"
#include "common/wire/json.h"

struct outlook {
    const struct job_spec *spec;
    int64_t parameters, data_files, data_bytes;
    int64_t data_tokens;    /* of all files */
    int64_t data_samples;   /* of context tokens each, that are trained on */
    int64_t memory_lane;    /* bytes of a worker that come and go with its trainer */
    int64_t memory_state;   /* and of its training state */
    int64_t memory_gpu;     /* bytes of its GPU's; 0: it computes on CPUs */
    int64_t memory_data;    /* and of data on its way from a store */
    int64_t machine_free;   /* bytes that this machine has left; 0: not known */
    const char *checkpoint; /* that a run would go on from; NULL: it would begin at step 0 */
    int64_t resume_step;    /* of it */
    bool complete;          /* it is of the last step: nothing is left to train */
};

/* Tokens of a step, and of all steps. */
int64_t outlook_step_tokens(const struct outlook *o);
/* How often each sample is trained on. */
double outlook_passes(const struct outlook *o);
/* Parameters and both moments; what goes to the store, but for a few hundred bytes. */
int64_t outlook_checkpoint_bytes(const struct outlook *o);
/* What one worker's agent and trainer hold: always, and at most, for a moment, while a checkpoint is verified
 * or loaded. It is what a limit of a pod has to leave room for; not the kernel's cache. */
int64_t outlook_memory(const struct outlook *o);
int64_t outlook_memory_most(const struct outlook *o);

/* What stands below screen_head, whole lines. Of a program: what it would go on from, where its steps are
 * known (mode Elastic). */
void outlook_text(const struct outlook *o, struct screen_style style, struct str *out);
/* The same for programs: an object, the caller's. */
struct js *outlook_json(const struct outlook *o);

#endif
