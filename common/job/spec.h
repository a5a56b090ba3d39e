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
enum job_precision { JOB_FP32, JOB_BF16 };
enum job_reduction { JOB_EXACT, JOB_FAST };
enum job_schedule { JOB_COSINE, JOB_CONSTANT };

enum { JOB_ENDPOINT_MAX = 256, JOB_REGION_MAX = 64 };

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
        char endpoint[JOB_ENDPOINT_MAX], region[JOB_REGION_MAX]; /* "": as AWS's tools find them */
        char cache[RM_URI_MAX]; /* file:///absolute/folder for what comes from s3://; "": Auto */
        int64_t cache_bytes;
        char listing[RM_HASH_HEX]; /* hash of the listing of an s3:// URI; "": `run` makes it */
    } data;
    struct {
        int lanes, lane_sequences;
    } batch;
    struct job_optimizer optimizer;
    int64_t steps;
    uint64_t seed;
    enum job_precision precision;
    bool recompute; /* activations, on the way back: same bits, less memory, more time */
    enum job_reduction reduction;
    bool allow_mixed_hardware;
    char isa[24]; /* one of JOB_ISA_WORDS: "Auto", or an instruction set by force */
    int threads;  /* of each trainer; 0 = Auto: what it may use of the CPUs (trainer/engine/engine.c) */
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
        rm_time every;                                           /* 0: no timed checkpoint */
        rm_time end_timeout; /* for a store that is away when the run ends */
        bool on_preemption;  /* save what only those hold who were told to go */
        int keep;
    } checkpoint;
    struct {
        rm_time join_window, heartbeat, lost_after, form_timeout, start_timeout, step_timeout; /* 0 = Auto */
    } elasticity;
    struct {
        int max_restarts;
        rm_time within;
    } failure_policy;
};

bool job_uri_is_bucket(const char *uri); /* s3://bucket/prefix; else a folder */

/* Does the data lie in an object store? */
bool job_data_is_remote(const struct job_spec *spec);

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
