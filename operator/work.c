/* Sends the writes of one plan, hears the answers, and tells cache and memo of each. */
#include "operator/work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"

enum { KEY_BYTES = 32 };

/* One write; the action is the plan's. */
struct write {
    struct work *work;
    const struct op_action *action;
    bool posted; /* an apply that is tried as a create */
};

struct work {
    struct work_options options;
    struct work_result result;
    struct job_view
        planned;   /* the job as the plan saw it, without its texts: the cache may hold a newer one */
    int next;      /* the first action that was not begun */
    int in_flight; /* writes that were sent and not answered */
    const struct op_action *refused; /* the first that was, and what the server said */
    struct kube_answer refusal;
    struct write write[]; /* as many as the plan's actions */
};

const struct kube_resource *work_resource(enum op_resource resource)
{
    return kube_resource_find(op_resource_name(resource));
}

static void go_on(struct work *work);
static void send_action(struct work *work, const struct op_action *action, bool post);

static void note_refusal(const struct work *work, struct work_result *result)
{
    const struct kube_answer *refusal = &work->refusal;
    op_memo_refused(&work->options.job->memo, &work->planned, work->refused, refusal->status, refusal->reason,
                    refusal->message, clock_wall_ms());
    op_status_refusal(work->refused, refusal->status, refusal->message, result->untold);
}

static void finish_work(struct work *work)
{
    struct work_options options = work->options;
    struct work_result result = work->result;
    /* Last, so that no success beside it makes it forgotten. */
    if (work->refused)
        note_refusal(work, &result);
    options.job->work = NULL;
    free(work);
    options.done(options.ctx, options.job, options.plan, &result);
    plan_free(options.plan);
}

/* --- answers --- */

/* What bears the name of something that was to be made: the job's own, made by an operator before this one?
 */
static bool is_own(const struct work *work, const struct kube_answer *answer)
{
    return answer->object && object_is_of(answer->object, &work->planned);
}

static bool is_success(const struct work *work, const struct op_action *action,
                       const struct kube_answer *answer)
{
    enum kube_outcome outcome = answer->outcome;
    switch (action->kind) {
    case OP_CREATE: /* what can't be read (Secrets) is nobody's word for its being ours */
        return outcome == KUBE_OK ||
               (outcome == KUBE_EXISTS && action->resource == OP_PODS && is_own(work, answer));
    case OP_DRY_RUN:
        return outcome == KUBE_OK || outcome == KUBE_EXISTS;
    case OP_DELETE:
        return outcome == KUBE_OK || outcome == KUBE_NOT_FOUND || outcome == KUBE_CONFLICT;
    default:
        return outcome == KUBE_OK;
    }
}

/* What the server showed is known before any watch tells of it. Deleting what had no process to end shows a
 * Status instead of the object. */
static void show_cache(struct work *work, const struct op_action *action, const struct kube_answer *answer)
{
    const char *kind = js_as_string(js_get(answer->object, "kind"));
    if (action->kind != OP_DRY_RUN && kind && !strcmp(kind, work_resource(action->resource)->kind))
        cache_answer(work->options.cache, action->resource, answer->object, loop_now(work->options.loop));
}

static void refuse_action(struct work *work, const struct op_action *action, const struct kube_answer *answer)
{
    struct job_entry *job = work->options.job;
    if (action->kind == OP_STATUS &&
        (answer->outcome == KUBE_CONFLICT || answer->outcome == KUBE_NOT_FOUND)) {
        if (work->result.end == WORK_DONE)
            work->result.end = WORK_CONFLICT;
        return;
    }
    work->result.end = WORK_REFUSED;
    work->result.outcome = answer->outcome;
    work->result.retry_after = answer->retry_after;
    if (!work->refused) {
        work->refused = action;
        work->refusal = *answer;
        work->refusal.object = NULL;
    }
    log_warn("a write was refused", "job=%s what=\"%s\" resource=%s name=%s code=%d why=\"%s\"", job->key,
             op_kind_name(action->kind), op_resource_name(action->resource), action->name, answer->status,
             answer->message);
}

/* The name is taken by something that is not the job's. */
static void refuse_strangers(struct work *work, const struct op_action *action,
                             const struct kube_answer *answer)
{
    struct kube_answer taken = *answer;
    text_copy(taken.reason, sizeof taken.reason, OP_NAME_TAKEN);
    snprintf(taken.message, sizeof taken.message,
             "%s \"%s\" is there and does not belong to this job; delete it, or give the job another name",
             op_resource_name(action->resource), action->name);
    refuse_action(work, action, &taken);
}

/* What was to be made is there, by an operator before this one. */
static void apply_instead(struct work *work, const struct op_action *action)
{
    if (work->options.may_write(work->options.ctx))
        send_action(work, action, false);
    else
        work->result.end = WORK_STOPPED;
}

static void answered(void *ctx, const struct kube_answer *answer)
{
    struct write *write = ctx;
    struct work *work = write->work;
    const struct op_action *action = write->action;
    FAULT("operator-answered");
    if (answer->sent && (!work->result.first_sent || answer->sent < work->result.first_sent))
        work->result.first_sent = answer->sent;
    if (answer->outcome == KUBE_EXISTS && write->posted && is_own(work, answer)) {
        apply_instead(work, action);
    } else if (is_success(work, action, answer)) {
        work->result.healed |= op_memo_done(&work->options.job->memo, &work->planned, action);
        if (action->kind == OP_DRY_RUN)
            op_trials_note(work->options.trials, action->trial, clock_wall_ms());
        work->result.writes++;
        if (answer->object)
            show_cache(work, action, answer);
    } else if (answer->outcome == KUBE_EXISTS && answer->object) {
        refuse_strangers(work, action, answer);
    } else {
        refuse_action(work, action, answer);
    }
    if (--work->in_flight == 0)
        go_on(work);
}

/* --- writes --- */

/* The key of a new job: made here, seen by nobody, and never made again. */
static void put_key(const struct op_action *action, struct str *out)
{
    uint8_t key[KEY_BYTES];
    char hex[2 * KEY_BYTES + 1];
    const char *body = str_text(&action->body), *place = strstr(body, OP_KEY_PLACE);
    if (!place)
        return;
    crypto_random(key, sizeof key);
    hex_encode(key, sizeof key, hex);
    str_add(out, body, (size_t)(place - body));
    str_adds(out, hex);
    str_adds(out, place + strlen(OP_KEY_PLACE));
    explicit_bzero(key, sizeof key);
    explicit_bzero(hex, sizeof hex);
}

static struct kube_request request_of(const struct op_action *action, const char *namespace, bool post)
{
    static const enum kube_verb verbs[] = {[OP_CREATE] = KUBE_CREATE,
                                           [OP_DRY_RUN] = KUBE_CREATE,
                                           [OP_APPLY] = KUBE_APPLY,
                                           [OP_DELETE] = KUBE_DELETE,
                                           [OP_STATUS] = KUBE_UPDATE};
    return (struct kube_request){
        .verb = post ? KUBE_CREATE : verbs[action->kind],
        .resource = work_resource(action->resource),
        .namespace = namespace,
        .name = action->name,
        .subresource = action->kind == OP_STATUS ? "status" : NULL,
        .body = action->kind == OP_DELETE ? NULL : str_text(&action->body),
        .dry_run = action->kind == OP_DRY_RUN,
        /* Whose it is; Secrets are not to be read. */
        .read_existing = (action->kind == OP_CREATE && action->resource == OP_PODS) || post,
        .uid = action->kind == OP_DELETE ? action->uid : NULL, /* never of another one of that name */
    };
}

static void send_action(struct work *work, const struct op_action *action, bool post)
{
    struct job_entry *job = work->options.job;
    struct kube_request request = request_of(action, job->view.namespace_name, post);
    struct kube_answer failed = {.outcome = KUBE_UNREACHABLE};
    struct str with_key = str_init(64 << 10);
    struct write *write = &work->write[action - work->options.plan->action];
    struct error err;
    *write = (struct write){work, action, post};
    request.done = answered;
    request.ctx = write;
    if (action->wants_key) {
        put_key(action, &with_key);
        request.body = str_text(&with_key);
    }
    log_info(op_kind_name(action->kind), "job=%s resource=%s name=%s why=\"%s\"", job->key,
             op_resource_name(action->resource), action->name, action->why);
    FAULT("operator-write");
    work->in_flight++;
    if (kube_send(work->options.kube, NULL, &request, &err) < 0) {
        text_copy(failed.message, sizeof failed.message, err.text);
        work->in_flight--;
        refuse_action(work, action, &failed);
    }
    if (with_key.data)
        explicit_bzero(with_key.data, with_key.capacity);
    str_clear(&with_key);
}

static bool is_allowed(const struct work *work, const struct op_action *action)
{
    if (action->kind == OP_STATUS)
        return !work->options.without_status;
    return !work->options.quiet || op_memo_goes_on(&work->options.job->memo, action);
}

static bool is_around_pods(const struct op_action *action)
{
    return action->resource != OP_PODS && (action->kind == OP_CREATE || action->kind == OP_APPLY);
}

/* Creates of pods, deletes of pods, and what lies around pods have no order among themselves. */
static bool has_no_order_with(const struct op_action *first, const struct op_action *next)
{
    bool pods = first->resource == OP_PODS && next->resource == OP_PODS && first->kind == next->kind &&
                (first->kind == OP_CREATE || first->kind == OP_DELETE);
    return pods || (is_around_pods(first) && is_around_pods(next));
}

/* An apply is by force and takes over whatever bears the name: so it is one only over what was seen to be the
 * job's. Anything else is tried as a create. */
static bool is_posted(const struct work *work, const struct op_action *action)
{
    return action->kind == OP_APPLY && (action->fresh || !cache_has_own(work->options.cache, action->resource,
                                                                        work->options.job, action->name));
}

static void send_batch(struct work *work)
{
    const struct op_plan *plan = work->options.plan;
    const struct op_action *first = &plan->action[work->next];
    work->in_flight++; /* so that no answer ends the work before all are sent */
    do {
        if (is_allowed(work, &plan->action[work->next]))
            send_action(work, &plan->action[work->next], is_posted(work, &plan->action[work->next]));
        work->next++;
    } while (work->result.end == WORK_DONE && work->next < plan->actions_count &&
             has_no_order_with(first, &plan->action[work->next]));
    work->in_flight--;
}

static void go_on(struct work *work)
{
    while (!work->in_flight && work->result.end == WORK_DONE &&
           work->next < work->options.plan->actions_count) {
        if (work->options.job->gone || !work->options.may_write(work->options.ctx))
            work->result.end = WORK_STOPPED;
        else
            send_batch(work);
    }
    if (!work->in_flight)
        finish_work(work);
}

void work_begin(const struct work_options *options)
{
    size_t writes = (size_t)options->plan->actions_count * sizeof(struct write);
    struct work *work = calloc(1, sizeof *work + writes);
    if (!work)
        abort();
    work->options = *options;
    work->planned = options->job->view;
    work->planned.spec = NULL;
    options->job->work = work;
    go_on(work);
}

void work_abandon(struct work *work)
{
    if (work)
        plan_free(work->options.plan);
    free(work);
}
