/* The effective TrainingJob: what a job file means after defaults, as plain data.
 *
 * `ringmaster run` reads YAML (yaml.h), checks it (messages with file:line and field path), fills the
 * defaults and hands the same canonical JSON to coordinator, agents and trainers. job_spec_read is that
 * program-side reader; it trusts nothing either. Times are ns, sizes are counts. Field names in the JSON are
 * the API's. Pure but for the reading of files by its callers. */
#ifndef RM_JOB_SPEC_H
#define RM_JOB_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/base/time.h"
#include "common/model/layout.h"

/* `run` puts in what Auto means before it hands the spec on. */
enum job_data_format { JOB_DATA_TEXT, JOB_DATA_TOKENS16, JOB_DATA_TOKENS32, JOB_DATA_AUTO };
/* What makes sure that data are what they were: their content, read at each start by each worker, or by all
 * together; or sizes and times. */
enum job_data_trust { JOB_DATA_CONTENT, JOB_DATA_SHARE, JOB_DATA_TIMES };
/* How the one hash of the data is made (common/storage/data/identify.h). */
enum job_data_hash { JOB_DATA_TREE, JOB_DATA_CHAIN };
enum job_precision { JOB_FP32, JOB_BF16 };
/* Auto is the CPU so far: no GPU has shown yet that it computes as it should (docs/gpu.md). */
enum job_device { JOB_DEVICE_AUTO, JOB_DEVICE_CPU, JOB_DEVICE_GPU };
enum job_reduction { JOB_EXACT, JOB_FAST };
enum job_schedule { JOB_COSINE, JOB_CONSTANT };

/* What becomes of the user's program when the members change: its processes are stopped and started anew in
 * the new generation, or they stay, and a trainer beside each sums for it. */
enum job_launch_mode { JOB_RESTART, JOB_ELASTIC };
enum job_process { JOB_PROCESS_NONE, JOB_PROCESS_CRIU };

enum { JOB_ENDPOINT_MAX = 256, JOB_REGION_MAX = 64, JOB_LIST_MAX = 64, JOB_LIST_BYTES = 4096 };

/* A list of texts (a command's words): one behind the other, each with its zero byte. What lies behind the
 * last is zero. */
struct job_list {
    int count;
    char text[JOB_LIST_BYTES];
};
/* The text behind `at` (NULL: the first), NULL at the end. */
const char *job_list_next(const struct job_list *list, const char *at);
/* False where it is full, by number or by bytes. */
bool job_list_add(struct job_list *list, const char *text);

/* failurePolicy.rules: what the exit code of a user's program means. */
enum { JOB_RULES_MAX = 16, JOB_RULE_CODES_MAX = 32 };
enum job_rule_action { JOB_RULE_NONE, JOB_RULE_FAIL_JOB, JOB_RULE_RESTART };

struct job_rule {
    enum job_rule_action action;
    int codes_count;
    uint8_t code[JOB_RULE_CODES_MAX];
};

struct job_rules {
    int count;
    struct job_rule rule[JOB_RULES_MAX];
};
/* The first that fits counts; JOB_RULE_NONE: none does. */
enum job_rule_action job_rule_of(const struct job_rules *rules, int exit_code);

/* checkpoint.every: Auto. Whoever knows what a save costs and how often it was needed chooses the time. */
#define JOB_AUTO ((rm_time)-1)

/* What a checkpoint's bytes are checked by when they are read (common/storage/checkpoint/piece_hash.h). */
enum job_hash { JOB_HASH_XXH3, JOB_HASH_SHA256 };

struct job_optimizer {
    double learning_rate, min_learning_rate, weight_decay, clip_norm; /* clip_norm 0: no clipping */
    double beta1, beta2, epsilon;
    int64_t warmup_steps;
    enum job_schedule schedule;
};

/* What trainer.isa and RINGMASTER_TRAINER_ISA may say. By name only: whether this machine's processor has it
 * is for the trainer to find out. */
#define JOB_ISA_WORDS "Auto, SSE41, AVX, AVX2, AVX512_CORE, AVX512_CORE_BF16 or AVX512_CORE_AMX"
bool job_isa_is_known(const char *isa);

struct job_spec {
    char name[64]; /* metadata.name */
    struct {
        int min, max, target;
    } workers;
    struct {
        struct model_shape shape;
        char preset[32];
        char init[RM_URI_MAX]; /* "" or a Hugging Face folder as file://... or s3://... */
    } model;
    struct {
        char uri[RM_URI_MAX]; /* file:///absolute/folder or s3://bucket/prefix */
        enum job_data_format format;
        enum job_data_trust trust;
        enum job_data_hash hash; /* `run` puts in what the checkpoint has that it goes on from */
        char endpoint[JOB_ENDPOINT_MAX], region[JOB_REGION_MAX]; /* "": as AWS's tools find them */
        char cache[RM_URI_MAX]; /* file:///absolute/folder for what comes from s3://; "": Auto */
        int64_t cache_bytes;
        char tokenizer[RM_URI_MAX]; /* the file that says what tokens mean; "": none */
        char listing[RM_HASH_HEX];  /* hash of the listing of an s3:// URI; "": `run` makes it */
    } data;
    struct {
        int lanes, lane_sequences;
    } batch;
    bool launched; /* the job runs the program of `launch`; of `trainer` only what launch has as well (batch,
                      steps, seed) means anything, and that in mode Elastic alone */
    struct {
        struct job_list command; /* 1 to 64 words; nothing in them is expanded */
        enum job_launch_mode mode;
        int processes; /* numProcPerNode: that each worker starts; 1 in mode Elastic */
        rm_time grace_period;
        bool tell_output;        /* the last word of a failure may hold lines of the program's output */
        struct job_list preload; /* modules of Python that the next process imports while this one runs */
    } launch;
    struct job_optimizer optimizer;
    int64_t steps;
    uint64_t seed;
    enum job_precision precision;
    bool recompute; /* activations, on the way back: same bits, less memory, more time */
    enum job_reduction reduction;
    enum job_device device; /* that each trainer computes on */
    bool allow_mixed_hardware;
    char isa[24];     /* one of JOB_ISA_WORDS: "Auto", or an instruction set by force */
    int ring_streams; /* connections to each neighbour; 0 = Auto: shared memory on one machine, else 4 */
    int threads;      /* of each trainer; 0 = Auto: what it may use of the CPUs (trainer/engine/engine.c) */
    struct {
        int64_t every_steps; /* 0: never */
        int sequences;
        double hold_out;
    } evaluation;
    struct {
        char uri[RM_URI_MAX]; /* file:///absolute/folder or s3://bucket/prefix */
        char endpoint[JOB_ENDPOINT_MAX], region[JOB_REGION_MAX]; /* "": as AWS's tools find them */
        bool resume;                                             /* Auto; false: Never */
        int64_t every_steps;                                     /* 0: only final and forced ones */
        rm_time every;       /* 0: no timed checkpoint; JOB_AUTO: see coordinator/core/interval.h */
        rm_time max_loss;    /* with JOB_AUTO: no longer than this */
        rm_time end_timeout; /* for a store that is away when the run ends */
        bool on_preemption;  /* save what only those hold who were told to go */
        int keep;
        enum job_hash hash;       /* that files are checked by */
        enum job_process process; /* CRIU: snapshots of the program's processes (docs/process-snapshots.md) */
        struct job_list process_paths; /* with CRIU: files and folders of the pod that travel along */
    } checkpoint;
    struct {
        rm_time join_window, heartbeat, lost_after, form_timeout, start_timeout, step_timeout; /* 0 = Auto */
    } elasticity;
    struct {
        int max_restarts;
        rm_time within;
        struct job_rules rules; /* of a program of `launch`; the operator applies them to pods itself */
    } failure_policy;
};

bool job_uri_is_bucket(const char *uri); /* s3://bucket/prefix; else a folder */

/* Is it a program that knows nothing of steps, states and sums: `launch` in mode Restart? */
bool job_restarts(const struct job_spec *spec);
/* Is it a program with a trainer beside it: `launch` in mode Elastic? */
bool job_is_elastic(const struct job_spec *spec);

/* Are the program's processes frozen into snapshots: checkpoint.process: CRIU? */
bool job_freezes(const struct job_spec *spec);

/* What a person is told of the result's bits, "yes: ..." or "no: ..." with the reason. */
const char *job_exactness(enum job_reduction reduction, bool exact);

/* Has the job a place for checkpoints? Always but for a program in mode Restart that names none. */
bool job_has_store(const struct job_spec *spec);

/* Does the data lie in an object store? */
bool job_data_is_remote(const struct job_spec *spec);

/* Says which of the two groups the job has, `trainer` or `launch`. ERR_USAGE with the path at fault where it
 * has both. */
int job_spec_choose(struct job_spec *spec, bool trainer, bool launch, const char **ret_path,
                    struct error *err);

/* elasticity.joinWindow, with what Auto means: under `ringmaster run`, or in pods, which come one by one. */
rm_time job_join_window(const struct job_spec *spec, bool pods);

/* How long a job's first ring waits for workers that are on their way, where that is longer: imports take as
 * long as they take, and to start anew for one who was a second late costs more than the second. 0: no
 * longer. */
rm_time job_first_window(const struct job_spec *spec);

/* All fields at their documented defaults; required ones and those taken from others (max, shape) are zero.
 */
void job_spec_defaults(struct job_spec *ret);

/* Puts in what one field takes from others where it is 0: max from target, the shape from the preset, the
 * vocabulary of bytes. */
void job_spec_fill(struct job_spec *spec);

/* The canonical JSON of a spec (keys sorted, all defaults written out), and back. */
void job_spec_write(const struct job_spec *spec, struct str *out);
int job_spec_read(struct job_spec *ret, const char *json, size_t length, struct error *err);

/* The same spec from a TrainingJob as an API server gives it (`object` has metadata and spec; null and absent
 * fields are at their defaults, fields that only a cluster obeys are passed over). URIs say where they are
 * from the root: file:///folder or s3://bucket/prefix. ERR_USAGE with the field's path in front. */
struct js;
int job_spec_from_object(struct job_spec *ret, const struct js *object, struct error *err);

/* The fields that a resume compares (docs/job-file.md), as canonical JSON: hashed into lineage(0) and kept in
 * the manifest. job_spec_compare names the first field that differs: "trainer.batch.lanes is 8 here and 4 in
 * the checkpoint"; returns ERR_USAGE. */
void job_spec_write_compared(const struct job_spec *spec, struct str *out);
int job_spec_compare(const struct job_spec *spec, const char *compared_json, size_t length,
                     struct error *err);

#endif
