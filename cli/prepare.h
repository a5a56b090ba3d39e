/* Everything that can be found wrong before a process is started: job file, data, checkpoint folder, drills.
 */
#ifndef RM_CLI_PREPARE_H
#define RM_CLI_PREPARE_H

#include "cli/run.h"
#include "common/job/spec.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/owner.h"

enum { PREPARED_KEY_BYTES = 32 };

struct prepared {
    struct job_spec spec;
    int64_t parameters, data_files, data_bytes;
    int64_t data_tokens, data_samples; /* of all files; that are trained on */
    uint8_t key[PREPARED_KEY_BYTES];   /* of the job, by chance: whoever has it belongs to this run */
    struct object_store *store;        /* of the checkpoints */
    struct owner *owner;               /* of them, while the run lasts; NULL: options.look */
    struct remote_data *remote;        /* NULL: the data is in a folder */
    bool data_checked;                 /* the data is what the checkpoint found was trained on */
    bool looks;                        /* nothing is kept: options.look */
    bool complete;                     /* nothing is left to train: resume.entry is the last step's */
    struct checkpoint_resume resume;   /* found false and nothing skipped: training starts anew */
};

/* ERR_USAGE, ERR_DATA or ERR_MACHINE with a sentence. Notes about the job file go to stderr. Deletes old
 * checkpoints (--overwrite) only after everything else is known to be right. ret is large. */
int prepare(struct prepared *ret, struct run_options *options, struct error *err);
/* After a failure, too. */
void prepared_clear(struct prepared *prepared);

#endif
