/* The rows themselves: every field of a job, its bounds, its default and its line of help. */
#include "common/job/field.h"

#include <string.h>

/* clang-format off: one row a field, kept as a table. */
#define AT(member) offsetof(struct job_spec, member), sizeof(((struct job_spec *)0)->member)

const struct job_field job_fields[] = {
    {"metadata.name", JOB_FIELD_TEXT, AT(name), .required = true,
     .help = "the job's name: lower-case letters, digits and '-', 40 characters at most"},

    {"workers.target", JOB_FIELD_INT, AT(workers.target), 1, RM_WORKERS_MAX, .required = true,
     .help = "workers that training starts with and comes back to"},
    {"workers.min", JOB_FIELD_INT, AT(workers.min), 1, RM_WORKERS_MAX, "1",
     .help = "with fewer, training saves a checkpoint and stops"},
    {"workers.max", JOB_FIELD_INT, AT(workers.max), 1, RM_WORKERS_MAX,
     .help = "most workers at once; the target by default"},

    {"trainer.model.preset", JOB_FIELD_TEXT, AT(model.preset), .fallback = "null", .zero = "null",
     .help = "sizes by name (gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m); fields beside it override them"},
    {"trainer.model.layers", JOB_FIELD_INT, AT(model.shape.layers), 1, RM_LAYERS_MAX, .compared = true,
     .help = "transformer blocks"},
    {"trainer.model.heads", JOB_FIELD_INT, AT(model.shape.heads), 1, 1024, .compared = true,
     .help = "attention heads; must divide width"},
    {"trainer.model.width", JOB_FIELD_INT, AT(model.shape.width), 1, 65536, .compared = true,
     .help = "size of a token's vector"},
    {"trainer.model.context", JOB_FIELD_INT, AT(model.shape.context), 1, 65536, .compared = true,
     .help = "tokens that the model sees at once"},
    {"trainer.model.vocabulary", JOB_FIELD_INT, AT(model.shape.vocabulary), 1, 1 << 20, .compared = true,
     .help = "kinds of tokens; 256 or more for text, which is its default there"},
    {"trainer.model.init", JOB_FIELD_URI, AT(model.init), .fallback = "null", .zero = "null",
     .compared = true,
     .help = "a folder, or s3://bucket/prefix, in Hugging Face's gpt2 layout to start from instead of random "
             "weights"},

    {"trainer.data.uri", JOB_FIELD_URI, AT(data.uri), .required = true,
     .help = "folder, or s3://bucket/prefix, of text files or of token shards"},
    {"trainer.data.format", JOB_FIELD_CHOICE, AT(data.format), .fallback = "Auto",
     .words = {"Text", "Tokens16", "Tokens32", "Auto"}, .compared = true,
     .help = "Text: each byte is a token. Tokens16, Tokens32: .bin files of such numbers. Auto: see below"},
    {"trainer.data.trust", JOB_FIELD_CHOICE, AT(data.trust), .fallback = "Content",
     .words = {"Content", "Share", "Times"},
     .help = "what is read at a start of files that look as their index says: all by each worker; its share; "
             "nothing"},
    {"trainer.data.hash", JOB_FIELD_CHOICE, AT(data.hash), .fallback = "Tree", .words = {"Tree", "Chain"},
     .help = "Chain: as checkpoints of before the tree have it; run sees it by itself. See the data, below"},
    {"trainer.data.tokenizer", JOB_FIELD_URI, AT(data.tokenizer), .fallback = "null", .zero = "null",
     .file = true,
     .help = "tokenizer.json that made the tokens, a file or s3:// object; is put beside the final weights"},
    {"trainer.data.endpoint", JOB_FIELD_TEXT, AT(data.endpoint), .fallback = "null", .zero = "null",
     .help = "where s3:// is, if not at AWS: http(s)://host[:port]; else AWS_ENDPOINT_URL_S3 says it"},
    {"trainer.data.region", JOB_FIELD_TEXT, AT(data.region), .fallback = "null", .zero = "null",
     .help = "the bucket's region; else AWS_REGION or the profile says it"},
    {"trainer.data.cache", JOB_FIELD_URI, AT(data.cache), .fallback = "null", .zero = "null",
     .help = "folder for what was fetched from s3://; may be shared. null: /var/tmp/ringmaster-UID/data"},
    {"trainer.data.cacheBytes", JOB_FIELD_LONG, AT(data.cache_bytes), 1 << 20, 1e15, "8589934592",
     .help = "bound of that folder; best as large as the data"},
    {"trainer.data.listing", JOB_FIELD_TEXT, AT(data.listing), .fallback = "null", .zero = "null",
     .help = "which files of s3:// they are, by the hash of a listing; run sets it, and takes the job's own"},

    {"trainer.batch.lanes", JOB_FIELD_INT, AT(batch.lanes), 1, RM_LANES_MAX, "64", .compared = true,
     .help = "independent parts of a step's batch; workers share them out, workers.max at least"},
    {"trainer.batch.laneSequences", JOB_FIELD_INT, AT(batch.lane_sequences), 1, 4096, "1", .compared = true,
     .help = "sequences in a lane"},

    {"trainer.optimizer.name", JOB_FIELD_FIXED, .fallback = "adamw", .words = {"adamw"}, .compared = true,
     .help = "AdamW; weight decay on matrices only"},
    {"trainer.optimizer.learningRate", JOB_FIELD_REAL, AT(optimizer.learning_rate), 0, 1e30, "6e-4",
     .compared = true, .help = "highest learning rate, reached after the warm-up"},
    {"trainer.optimizer.minLearningRate", JOB_FIELD_REAL, AT(optimizer.min_learning_rate), 0, 1e30, "0",
     .compared = true, .help = "learning rate at the last step of the cosine"},
    {"trainer.optimizer.warmupSteps", JOB_FIELD_LONG, AT(optimizer.warmup_steps), 0, 1e12, "0",
     .compared = true, .help = "steps over which the learning rate rises from 0"},
    {"trainer.optimizer.schedule", JOB_FIELD_CHOICE, AT(optimizer.schedule), .fallback = "cosine",
     .words = {"cosine", "constant"}, .compared = true,
     .help = "what the learning rate does after the warm-up"},
    {"trainer.optimizer.weightDecay", JOB_FIELD_REAL, AT(optimizer.weight_decay), 0, 1e6, "0.1",
     .compared = true, .help = "decoupled weight decay"},
    {"trainer.optimizer.clipNorm", JOB_FIELD_REAL, AT(optimizer.clip_norm), 0, 1e30, "1.0", .compared = true,
     .help = "a longer gradient is scaled to this norm; 0: never"},
    {"trainer.optimizer.beta1", JOB_FIELD_REAL, AT(optimizer.beta1), 0, 0.9999999, "0.9", .compared = true,
     .help = "decay of the first moment"},
    {"trainer.optimizer.beta2", JOB_FIELD_REAL, AT(optimizer.beta2), 0, 0.9999999, "0.95", .compared = true,
     .help = "decay of the second moment"},
    {"trainer.optimizer.epsilon", JOB_FIELD_REAL, AT(optimizer.epsilon), 1e-30, 1, "1e-8", .compared = true,
     .help = "added to the root of the second moment"},

    {"trainer.steps", JOB_FIELD_LONG, AT(steps), 1, 1e12, .required = true, .compared = true,
     .help = "optimizer steps of the whole training"},
    {"trainer.seed", JOB_FIELD_SEED, AT(seed), 0, 9223372036854774784.0, "1", .compared = true,
     .help = "random weights and the order of the data are functions of it"},
    {"trainer.precision", JOB_FIELD_CHOICE, AT(precision), .fallback = "fp32", .words = {"fp32", "bf16"},
     .compared = true, .help = "numbers that enter matrix products; weights and sums are fp32 always"},
    {"trainer.recompute", JOB_FIELD_BOOL, AT(recompute), .fallback = "false",
     .help =
         "compute activations again on the way back instead of keeping them: same bits, less memory; on a "
         "GPU as many as its memory asks for"},
    {"trainer.reduction", JOB_FIELD_CHOICE, AT(reduction), .fallback = "exact", .words = {"exact", "fast"},
     .compared = true, .help = "exact: the same bits whatever the workers did. fast: plain fp32 sums"},
    {"trainer.allowMixedHardware", JOB_FIELD_BOOL, AT(allow_mixed_hardware), .fallback = "false",
     .help = "train on with workers whose arithmetic differs; the result is then not exact"},
    {"trainer.device", JOB_FIELD_CHOICE, AT(device), .fallback = "auto", .words = {"auto", "cpu", "gpu"},
     .help = "what trainers compute on; auto: CPUs so far. gpu: an NVIDIA GPU each, which must be there"},
    {"trainer.isa", JOB_FIELD_TEXT, AT(isa), .fallback = "Auto",
     .help = "a lower instruction set by force (AVX2, AVX512_CORE, AVX512_CORE_BF16, ...)"},
    {"trainer.threads", JOB_FIELD_INT, AT(threads), 1, 1024, "Auto", "Auto",
     .help = "threads of each trainer; Auto: the cores that it may use, under run divided by workers.target"},
    {"trainer.ringStreams", JOB_FIELD_INT, AT(ring_streams), 1, 8, "Auto", "Auto",
     .help = "TCP connections to each neighbour in the ring; Auto: shared memory on one machine, else 4"},
    {"trainer.evaluation.everySteps", JOB_FIELD_LONG, AT(evaluation.every_steps), 0, 1e12, "0",
     .help = "evaluate on held-out data at these steps; 0: never"},
    {"trainer.evaluation.sequences", JOB_FIELD_INT, AT(evaluation.sequences), 1, 1 << 20, "256",
     .help = "held-out sequences of one evaluation; the held-out data must have as many"},
    {"trainer.evaluation.holdOut", JOB_FIELD_REAL, AT(evaluation.hold_out), 0, 0.5, "0", .compared = true,
     .help = "share of the data, at its end, that is never trained on"},

    {"launch.command", JOB_FIELD_LIST, AT(launch.command), 1, JOB_LIST_MAX, .required = true,
     .help = "the program and its words, as a list; nothing in them is expanded"},
    {"launch.mode", JOB_FIELD_CHOICE, AT(launch.mode), .words = {"Restart", "Elastic"}, .required = true,
     .help = "Restart: the program knows nothing of Ringmaster; its processes are started anew whenever the "
             "members change. Elastic: they stay, and call ringmaster.connect()"},
    {"launch.numProcPerNode", JOB_FIELD_INT, AT(launch.processes), 1, 64, "1", .depends = "auto cpu gpu",
     .help = "processes that each worker starts"},
    {"launch.gracePeriod", JOB_FIELD_TIME, AT(launch.grace_period), 0, 3.6e12, "30s",
     .help = "between SIGTERM and SIGKILL, where a change of members was announced"},
    {"launch.tellOutput", JOB_FIELD_BOOL, AT(launch.tell_output), .fallback = "true",
     .help = "a failure's last word may quote the program's output; false: its exit code alone"},
    {"launch.preload", JOB_FIELD_LIST, AT(launch.preload), 0, 16,
     .help = "modules of Python that the next process has imported before it is needed, as [torch]"},
    {"launch.steps", JOB_FIELD_LONG, AT(steps), 1, 1e12, .required = true, .compared = true,
     .help = "Elastic: steps of the whole training"},
    {"launch.seed", JOB_FIELD_SEED, AT(seed), 0, 9223372036854774784.0, "1", .compared = true,
     .help = "Elastic: the order of the data and each lane's random numbers are functions of it"},
    {"launch.batch.lanes", JOB_FIELD_INT, AT(batch.lanes), 1, RM_LANES_MAX, "64", .compared = true,
     .help = "Elastic: independent parts of a step's batch; workers share them out, workers.max at least"},
    {"launch.batch.laneSequences", JOB_FIELD_INT, AT(batch.lane_sequences), 1, 4096, "1", .compared = true,
     .help = "Elastic: samples in a lane"},

    {"checkpoint.uri", JOB_FIELD_URI, AT(checkpoint.uri), .required = true,
     .help = "folder, or s3://bucket/prefix, that checkpoints and the final weights go to"},
    {"checkpoint.endpoint", JOB_FIELD_TEXT, AT(checkpoint.endpoint), .fallback = "null", .zero = "null",
     .help = "where s3:// is, if not at AWS: http(s)://host[:port]; else AWS_ENDPOINT_URL_S3 says it"},
    {"checkpoint.region", JOB_FIELD_TEXT, AT(checkpoint.region), .fallback = "null", .zero = "null",
     .help = "the bucket's region; else AWS_REGION or the profile says it"},
    {"checkpoint.resume", JOB_FIELD_SWITCH, AT(checkpoint.resume), .fallback = "Auto",
     .words = {"Never", "Auto"}, .help = "Auto: go on from what the folder holds. Never: it must be empty"},
    {"checkpoint.everySteps", JOB_FIELD_LONG, AT(checkpoint.every_steps), 0, 1e12, "0",
     .help = "save at these steps; 0: only at the end and when training must stop"},
    {"checkpoint.every", JOB_FIELD_TIME, AT(checkpoint.every), 1e9, 3.1536e16, "null", "null",
     .own_time = "Auto",
     .help = "save when this much time has passed since the last time, after the step under way; Auto: as "
             "often as it pays, see below"},
    {"checkpoint.maxLoss", JOB_FIELD_TIME, AT(checkpoint.max_loss), 6e10, 3.1536e16, "30m",
     .help = "with every: Auto the longest time between two checkpoints, and so what can be lost at once"},
    {"checkpoint.endTimeout", JOB_FIELD_TIME, AT(checkpoint.end_timeout), 1e9, 8.64e13, "10m",
     .help = "how long a run waits for a store that nobody can read, or that doesn't take its last "
             "checkpoint; in a cluster, how long the workers of a job whose budget is spent stay for a save "
             "that can't be made"},
    {"checkpoint.onPreemption", JOB_FIELD_BOOL, AT(checkpoint.on_preemption), .fallback = "true",
     .help = "save what only workers hold that were told to go, if the time they have left is enough"},
    {"checkpoint.keep", JOB_FIELD_INT, AT(checkpoint.keep), 1, 1000, "3",
     .help = "newest checkpoints that stay; final/ is not counted"},
    {"checkpoint.hash", JOB_FIELD_CHOICE, AT(checkpoint.hash), .fallback = "xxh3",
     .words = {"xxh3", "sha256"},
     .help = "what its bytes are checked by; sha256 costs ten times as much and finds intent, too"},
    {"checkpoint.process", JOB_FIELD_CHOICE, AT(checkpoint.process), .fallback = "None",
     .words = {"None", "CRIU"},
     .help = "CRIU: snapshots of a program that saves nothing: mode Restart, workers.max 1, in a cluster"},
    {"checkpoint.processPaths", JOB_FIELD_LIST, AT(checkpoint.process_paths), 0, 16,
     .help = "with process: CRIU files and folders of the pod that travel with a snapshot, as [/tmp/work]"},

    {"elasticity.joinWindow", JOB_FIELD_TIME, AT(elasticity.join_window), 1e6, 3.6e12, "Auto", "Auto",
     .help = "wait for further newcomers before the ring is re-formed with them; Auto: 500ms under run, 10s "
             "in a cluster, 30s there for a program in mode Restart"},
    {"elasticity.heartbeat", JOB_FIELD_TIME, AT(elasticity.heartbeat), 1e7, 3.6e12, "1s",
     .help = "how often an agent reports"},
    {"elasticity.lostAfter", JOB_FIELD_TIME, AT(elasticity.lost_after), 1e8, 3.6e12, "5s",
     .help = "an agent that is silent for this long is lost"},
    {"elasticity.formTimeout", JOB_FIELD_TIME, AT(elasticity.form_timeout), 1e8, 3.6e12, "10s",
     .help = "a member that has not connected to the new ring by then is left out"},
    {"elasticity.startTimeout", JOB_FIELD_TIME, AT(elasticity.start_timeout), 1e9, 8.64e13, "5m",
     .help = "workers.min workers must be there by then: else a run ends, and pods give their nodes "
             "back and are tried again"},
    {"elasticity.stepTimeout", JOB_FIELD_TIME, AT(elasticity.step_timeout), 1e9, 8.64e13, "Auto", "Auto",
     .help = "a step that takes longer is a hang; Auto: 10 times the median, 30s at least"},

    {"failurePolicy.maxRestarts", JOB_FIELD_INT, AT(failure_policy.max_restarts), 0, 1000, "5",
     .help = "failures within the window below; one more ends the job, or puts the worker into quarantine "
             "that had them all"},
    {"failurePolicy.within", JOB_FIELD_TIME, AT(failure_policy.within), 1e9, 2.592e15, "1h",
     .help = "the window in which restarts are counted"},
    {"failurePolicy.rules", JOB_FIELD_RULES, AT(failure_policy.rules), .fallback = "null", .zero = "null",
     .help = "of a program: [{onExitCodes: [3], action: FailJob}], or Restart, which does not count"},
};
/* clang-format on */

const int job_fields_count = sizeof job_fields / sizeof *job_fields;

const struct job_field *job_field_find(const char *path)
{
    for (int i = 0; i < job_fields_count; i++)
        if (!strcmp(job_fields[i].path, path))
            return &job_fields[i];
    return NULL;
}

static const struct {
    const char *name;
    struct model_shape shape;
} presets[] = {
    {"gpt2-124m", {.layers = 12, .heads = 12, .width = 768, .context = 1024, .vocabulary = 50257}},
    {"gpt2-355m", {.layers = 24, .heads = 16, .width = 1024, .context = 1024, .vocabulary = 50257}},
    {"gpt2-774m", {.layers = 36, .heads = 20, .width = 1280, .context = 1024, .vocabulary = 50257}},
    {"gpt2-1558m", {.layers = 48, .heads = 25, .width = 1600, .context = 1024, .vocabulary = 50257}},
};

bool preset_shape(const char *name, struct model_shape *ret)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(presets[i].name, name)) {
            *ret = presets[i].shape;
            return true;
        }
    return false;
}

const char *preset_names(void)
{
    return "gpt2-124m, gpt2-355m, gpt2-774m, gpt2-1558m";
}
