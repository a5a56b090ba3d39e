/* A TrainingJob as the operator keeps it: a projection of the API's object.
 *
 * The numbers that a plan looks at are plain members; the rest of `spec` (templates, trainer) stays as one
 * compact JSON text and is parsed again when a pod is made. Ownership: job_project fills memory that
 * job_clear frees; a job is never changed in place, a newer object replaces it. Pure. */
#ifndef RM_OPERATOR_CORE_JOB_H
#define RM_OPERATOR_CORE_JOB_H

#include "common/base/error.h"
#include "operator/core/status.h"

enum op_clean { OP_CLEAN_RUNNING, OP_CLEAN_ALL, OP_CLEAN_NONE };
enum op_rule_action { OP_RULE_FAIL_JOB, OP_RULE_RESTART };

enum { OP_RULES_MAX = 16, OP_RULE_CODES_MAX = 32, OP_SPEC_TEXT_MAX = 256 * 1024, OP_SURGE_MAX = 8 };

struct op_rule {
    enum op_rule_action action;
    int codes_count;
    uint8_t code[OP_RULE_CODES_MAX]; /* exit codes */
};

struct job_view {
    char name[OP_NAME_MAX];
    char namespace_name[OP_NAMESPACE_MAX];
    char uid[OP_UID_MAX];
    char resource_version[OP_VERSION_MAX];
    int64_t generation, created_ms;
    bool deleting; /* has a deletionTimestamp */
    bool managed;  /* spec.managedBy is ours (or absent): else hands off */
    bool suspend;
    bool launched;  /* its workers run a program of the user's (spec.launch) */
    bool stepless;  /* that program is in mode Restart: it knows nothing of steps, states and weights */
    bool freezes;   /* and saves nothing: snapshots are made of its processes (checkpoint.process: CRIU) */
    bool has_store; /* a place for checkpoints: all but programs that name none */
    int workers_min, workers_max, workers_target;
    int lanes; /* of a step; 0: it has none (mode Restart) */
    int64_t start_timeout_ms, scale_up_cooldown_ms, lost_after_ms;
    int max_restarts;
    int64_t restarts_within_ms;
    int rules_count;
    struct op_rule rule[OP_RULES_MAX];
    bool disruption_budget; /* scheduling.disruptionBudget: Auto; false: None */
    bool prefers_spot;
    struct {
        int after;                   /* interruptions of workers on spot machines; 0: never... */
        int64_t within_ms, until_ms; /* ...in so long, until none was for so long */
    } fallback;                      /* of who prefers spot: how it rather takes other machines for a while */
    int on_demand_base;              /* so many workers are on no spot machine */
    int surge; /* how many more workers than the target may run for replacements to come first */
    int64_t active_deadline_s; /* 0: none */
    int64_t ttl_s;             /* -1: none */
    enum op_clean clean;
    /* spec.spot.price, an hour of a machine in millionths, by enum price_capacity; -1: not given */
    int64_t price[PRICE_SPOT + 1];
    char currency[PRICE_CURRENCY_MAX];
    int64_t budget_micros;  /* spec.cost.budget.limit; 0: none */
    int64_t warn_micros;    /* where to warn */
    int64_t end_timeout_ms; /* checkpoint.endTimeout: how long a stop waits for a save that can't end */
    int64_t idle_after_ms;  /* so long with too few nodes, and no pods wait but one; 0: they all do */
    int64_t step_tokens;    /* of the built-in trainer; 0: nobody knows */
    char *spec;             /* compact JSON of `spec` */
    struct job_status status;
};

/* object: a TrainingJob as the API server gives it. ERR_PROTOCOL where metadata or spec is not what a server
 * would give. *ret is untouched on failure. */
int job_project(const struct js *object, struct job_view *ret, struct error *err);
void job_clear(struct job_view *job); /* fine on zeros */

/* The effective spec that programs get (an annotation of the coordinator's pod), from the API's object: the
 * same text as `ringmaster run` makes of the same file. ERR_USAGE with a sentence for status.message, such as
 * a file:// place without a volume in the template. */
int job_effective_spec(const struct job_view *job, struct str *out, struct error *err);

/* Would what is fetched from a store lie on a volume? A root that is read-only keeps nothing, and one that is
 * not fills the node's disk without having asked for it. Beside the effective spec, for jobs that run have
 * been taken without this question. ERR_USAGE with a sentence. */
int job_check_cache(const struct job_view *job, struct error *err);

#endif
