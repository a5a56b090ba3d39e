/* Reads the status of a TrainingJob from JSON and writes it back; what it does not know, or what is out of
 * bounds, is as if it were not there. Pure. */
#include <stdio.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/instant.h"
#include "operator/core/read.h"
#include "operator/core/status.h"
#include "operator/core/status_parts.h"

static enum op_truth truth_of(const char *text)
{
    if (!strcmp(text, "True"))
        return OP_TRUE;
    return strcmp(text, "False") == 0 ? OP_FALSE : OP_UNKNOWN;
}

/* A job that was being stopped for good as its operator was upgraded has the condition's name from before. */
static const char *name_of_now(const char *type)
{
    return strcmp(type, "Interrupted") != 0 ? type : condition_name(OP_STOPPING);
}

static void read_condition(const struct js *from, struct job_status *ret)
{
    char text[OP_REASON_MAX] = "", truth[OP_REASON_MAX] = "";
    read_text(from, "type", text, sizeof text);
    read_text(from, "status", truth, sizeof truth);
    const char *type = name_of_now(text);
    for (int i = 0; i < OP_CONDITIONS; i++) {
        struct op_condition *c = &ret->condition[i];
        if (strcmp(type, condition_name(i)) != 0)
            continue;
        c->status = truth_of(truth);
        read_text(from, "reason", c->reason, sizeof c->reason);
        read_text(from, "message", c->message, sizeof c->message);
        read_instant(from, "lastTransitionTime", &c->transition_ms);
        read_int(from, "observedGeneration", 0, INT64_MAX, &c->generation);
    }
}

static enum op_slot_state slot_state_of(const char *text)
{
    for (int i = OP_SLOT_FREE; i <= OP_SLOT_SKIPPED; i++)
        if (!strcmp(text, slot_state_name(i)))
            return i;
    return OP_SLOT_FREE;
}

static void read_quick(const struct js *from, struct op_slot *slot)
{
    read_small(from, "quickEnds", 0, OP_COUNT_MAX, &slot->quick);
    read_instant(from, "quickEndTime", &slot->quick_ms);
}

static void read_slots(const struct js *list, struct job_status *ret)
{
    for (size_t i = 0; i < js_size(list) && i < RM_WORKERS_MAX; i++) {
        int index = -1;
        char state[OP_REASON_MAX] = "";
        const struct js *from = js_at(list, i);
        read_small(from, "index", -1, INT32_MAX, &index);
        if (index < 0 || index >= RM_WORKERS_MAX)
            continue;
        struct op_slot *slot = &ret->workers.slot[index];
        read_small(from, "attempt", 0, OP_COUNT_MAX, &slot->attempt);
        read_text(from, "state", state, sizeof state);
        slot->state = slot_state_of(state);
        read_quick(from, slot);
        read_flag(from, "asked", &slot->asked);
    }
}

/* What only a TrainingJob says of it. */
static void read_ring(const struct js *ring, struct job_status *ret)
{
    char state[OP_REASON_MAX] = "";
    read_text(ring, "coordinator", state, sizeof state);
    ret->ring.coordinator.state = slot_state_of(state);
    read_quick(ring, &ret->ring.coordinator);
    read_text(ring, "keySecret", ret->ring.key, sizeof ret->ring.key);
    read_instant(ring, "heardTime", &ret->ring.heard_ms);
    read_instant(ring, "formedTime", &ret->ring.formed_ms);
}

static void read_names(const struct js *list, struct op_names *ret)
{
    for (size_t i = 0; i < js_size(list) && ret->count < OP_AVOIDED_MAX; i++) {
        const char *name = js_as_string(js_at(list, i));
        if (name && *name && text_copy(ret->name[ret->count], OP_NODE_MAX, name))
            ret->count++;
    }
}

static void read_counts(const struct js *object, struct job_status *ret)
{
    const int most = OP_COUNT_MAX;
    read_small(object, "workers.ready", 0, most, &ret->workers.ready);
    read_small(object, "workers.current", 0, most, &ret->workers.current);
    read_small(object, "workers.target", 0, most, &ret->workers.target);
    read_small(object, "workers.surge", 0, most, &ret->workers.surge);
    read_instant(object, "workers.resizeTime", &ret->workers.resize_ms);
    read_instant(object, "workers.retryTime", &ret->workers.retry_ms);
    read_instant(object, "workers.shortTime", &ret->workers.short_ms);
    read_names(read_at(object, "workers.unfitInstanceTypes"), &ret->workers.unfit.types);
    read_names(read_at(object, "workers.unfitNodes"), &ret->workers.unfit.nodes);
    read_names(read_at(object, "workers.leftNodes"), &ret->workers.left);
    read_small(object, "restarts.preemption", 0, most, &ret->restarts.preemption);
    read_small(object, "restarts.failure", 0, most, &ret->restarts.failure);
    read_small(object, "restarts.infrastructure", 0, most, &ret->restarts.infrastructure);
    read_small(object, "restarts.misfit", 0, most, &ret->restarts.misfit);
    read_instant(object, "restarts.misfitTime", &ret->restarts.misfit_ms);
    read_small(object, "restarts.windowFailures", 0, most, &ret->restarts.window_failures);
    read_instant(object, "restarts.failureTime", &ret->restarts.failure_ms);
    read_instant(object, "restarts.windowTime", &ret->restarts.window_ms);
    read_text(object, "restarts.quickNode", ret->restarts.node, sizeof ret->restarts.node);
    read_small(object, "restarts.quickNodeFailures", 0, most, &ret->restarts.node_failures);
    read_small(object, "spot.interruptions", 0, most, &ret->spot.interruptions);
    read_instant(object, "spot.windowTime", &ret->spot.window_ms);
    read_instant(object, "spot.lastTime", &ret->spot.last_ms);
    read_instant(object, "spot.fallbackTime", &ret->spot.fell_ms);
}

static void read_idle(const struct js *object, struct job_status *ret)
{
    read_instant(object, "idle.shortTime", &ret->idle.short_ms);
    read_instant(object, "idle.sinceTime", &ret->idle.since_ms);
    read_flag(object, "idle.onDemandBase", &ret->idle.base);
    read_names(read_at(object, "idle.leftNodes"), &ret->idle.left);
}

/* Of a user's program a TrainingJob keeps the program's own code, and else none. */
static void read_exit_code(const struct js *object, struct op_result *ret)
{
    int code = -1;
    read_small(object, "result.exitCode", 0, 255, &code);
    ret->program = code >= 0;
    ret->exit_code = code >= 0 ? code : 0;
}

/* The members that are of a coordinator's page, and stand here under the same keys. */
static void read_page(const struct js *object, struct job_status *ret)
{
    struct status_page page = {.fenced = true};
    status_read_page(&page, object);
    ret->unfenced = !page.fenced;
    ret->ring.generation = (int)page.ring.generation;
    ret->ring.begun = page.ring.begun < OP_COUNT_MAX ? page.ring.begun : OP_COUNT_MAX;
    ret->ring.coordinator.attempt = page.ring.term < OP_COUNT_MAX ? (int)page.ring.term : OP_COUNT_MAX;
    ret->ring.size = take_members(&page.ring.members, ret->ring.member);
    text_tame(page.state, ret->state, sizeof ret->state);
    text_tame(page.message, ret->message, sizeof ret->message);
    take_progress(&page.progress, &ret->progress);
    take_checkpoint(&page.checkpoint, &ret->checkpoint);
    read_instant(object, "checkpoint.savedTime", &ret->checkpoint.saved_ms);
    take_interval(&page.interval, &ret->interval);
    take_recovery(&page.last_recovery, &ret->last_recovery);
    take_goodput(&page.goodput, &ret->goodput);
    read_small(object, "goodput.term", 0, OP_COUNT_MAX, &ret->goodput.term);
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        read_int(read_at(object, "goodput.earlier"), goodput_key(which), 0, OP_COUNT_MAX,
                 &ret->goodput.earlier[which]);
    take_result(&page.result, &ret->result);
    read_exit_code(object, &ret->result);
}

void status_read(const struct js *object, struct job_status *ret)
{
    *ret = (struct job_status){0};
    const struct js *conditions = js_get(object, "conditions");
    read_int(object, "observedGeneration", 0, INT64_MAX, &ret->observed_generation);
    for (size_t i = 0; i < js_size(conditions) && i < 2 * OP_CONDITIONS; i++)
        read_condition(js_at(conditions, i), ret);
    read_instant(object, "startTime", &ret->start_ms);
    read_instant(object, "completionTime", &ret->completion_ms);
    read_instant(object, "activeTime", &ret->active_ms);
    read_int(object, "activeSeconds", 0, INT64_MAX, &ret->active_seconds);
    read_counts(object, ret);
    read_idle(object, ret);
    read_slots(read_at(object, "workers.slots"), ret);
    read_ring(js_get(object, "ring"), ret);
    read_text(object, "images.trainer", ret->images.trainer, sizeof ret->images.trainer);
    read_text(object, "images.coordinator", ret->images.coordinator, sizeof ret->images.coordinator);
    read_text(object, "images.bundle", ret->images.bundle, sizeof ret->images.bundle);
    read_page(object, ret);
    status_read_cost(js_get(object, "cost"), ret);
}

static void put_instant(struct js *object, const char *key, int64_t ms)
{
    char text[OP_INSTANT_TEXT];
    if (!ms)
        return;
    instant_text(ms, text);
    js_set_string(object, key, text);
}

static void put_text(struct js *object, const char *key, const char *text)
{
    if (*text)
        js_set_string(object, key, text);
}

static struct js *conditions_json(const struct job_status *status)
{
    static const char *const truths[] = {"", "False", "True", "Unknown"};
    struct js *list = js_array();
    for (int i = 0; i < OP_CONDITIONS; i++) {
        const struct op_condition *c = &status->condition[i];
        if (c->status == OP_UNSET)
            continue;
        struct js *o = js_object();
        js_set_string(o, "type", condition_name(i));
        js_set_string(o, "status", truths[c->status]);
        js_set_string(o, "reason", c->reason);
        js_set_string(o, "message", c->message);
        put_instant(o, "lastTransitionTime", c->transition_ms);
        js_set_int(o, "observedGeneration", c->generation);
        js_push(list, o);
    }
    return list;
}

/* That a wanted pod is there is news that can wait: until it is written the pod would at worst be made again
 * under its own name. */
static enum op_slot_state decided(enum op_slot_state state)
{
    return state == OP_SLOT_PRESENT ? OP_SLOT_WANTED : state;
}

static void put_count(struct js *object, const char *key, int count)
{
    if (count)
        js_set_int(object, key, count);
}

static void put_names(struct js *o, const char *key, const struct op_names *names)
{
    struct js *list = js_array();
    for (int i = 0; i < names->count; i++)
        js_push_string(list, names->name[i]);
    if (names->count)
        js_set(o, key, list);
    else
        js_free(list);
}

static struct js *workers_json(const struct job_status *status, const char *job_name, bool ticking)
{
    char selector[OP_SELECTOR_MAX];
    struct js *o = js_object(), *slots = js_array();
    name_selector(job_name, selector);
    if (ticking)
        js_set_int(o, "ready", status->workers.ready);
    js_set_int(o, "current", status->workers.current);
    js_set_int(o, "target", status->workers.target);
    put_count(o, "surge", status->workers.surge);
    js_set_string(o, "selector", selector);
    put_instant(o, "resizeTime", status->workers.resize_ms);
    put_instant(o, "retryTime", status->workers.retry_ms);
    if (ticking) /* each start begins with it */
        put_instant(o, "shortTime", status->workers.short_ms);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct op_slot *slot = &status->workers.slot[i];
        if (slot->state == OP_SLOT_FREE)
            continue;
        struct js *s = js_object();
        js_set_int(s, "index", i);
        js_set_int(s, "attempt", slot->attempt);
        js_set_string(s, "state", slot_state_name(ticking ? slot->state : decided(slot->state)));
        put_count(s, "quickEnds", slot->quick);
        put_instant(s, "quickEndTime", slot->quick_ms);
        if (slot->asked)
            js_set_bool(s, "asked", true);
        js_push(slots, s);
    }
    js_set(o, "slots", slots);
    put_names(o, "unfitInstanceTypes", &status->workers.unfit.types);
    put_names(o, "unfitNodes", &status->workers.unfit.nodes);
    put_names(o, "leftNodes", &status->workers.left);
    return o;
}

static struct js *ring_json(const struct job_status *status, bool ticking)
{
    struct js *o = js_object(), *members = js_array();
    js_set_int(o, "generation", status->ring.generation);
    if (status->ring.begun)
        js_set_int(o, "begun", status->ring.begun);
    js_set_int(o, "term", status->ring.coordinator.attempt);
    enum op_slot_state state = status->ring.coordinator.state;
    js_set_string(o, "coordinator", slot_state_name(ticking ? state : decided(state)));
    put_count(o, "quickEnds", status->ring.coordinator.quick);
    put_instant(o, "quickEndTime", status->ring.coordinator.quick_ms);
    put_text(o, "keySecret", status->ring.key);
    if (ticking)
        put_instant(o, "heardTime", status->ring.heard_ms);
    js_set_int(o, "size", status->ring.size);
    put_instant(o, "formedTime", status->ring.formed_ms);
    for (int i = 0; i < status->ring.size; i++) {
        struct js *m = js_object();
        js_set_int(m, "worker", status->ring.member[i].worker);
        js_set_int(m, "attempt", status->ring.member[i].attempt);
        js_push(members, m);
    }
    js_set(o, "members", members);
    return o;
}

static struct js *spot_json(const struct job_status *status)
{
    struct js *o = js_object();
    put_count(o, "interruptions", status->spot.interruptions);
    put_instant(o, "windowTime", status->spot.window_ms);
    put_instant(o, "lastTime", status->spot.last_ms);
    put_instant(o, "fallbackTime", status->spot.fell_ms);
    return o;
}

static struct js *idle_json(const struct job_status *status)
{
    struct js *o = js_object();
    put_instant(o, "shortTime", status->idle.short_ms);
    put_instant(o, "sinceTime", status->idle.since_ms);
    if (status->idle.base)
        js_set_bool(o, "onDemandBase", true);
    put_names(o, "leftNodes", &status->idle.left);
    return o;
}

static struct js *restarts_json(const struct job_status *status)
{
    struct js *o = js_object();
    js_set_int(o, "preemption", status->restarts.preemption);
    js_set_int(o, "failure", status->restarts.failure);
    js_set_int(o, "infrastructure", status->restarts.infrastructure);
    if (status->restarts.misfit)
        js_set_int(o, "misfit", status->restarts.misfit);
    put_instant(o, "misfitTime", status->restarts.misfit_ms);
    put_instant(o, "failureTime", status->restarts.failure_ms);
    put_instant(o, "windowTime", status->restarts.window_ms);
    if (status->restarts.window_failures)
        js_set_int(o, "windowFailures", status->restarts.window_failures);
    put_text(o, "quickNode", status->restarts.node);
    if (status->restarts.node_failures)
        js_set_int(o, "quickNodeFailures", status->restarts.node_failures);
    return o;
}

static struct js *images_json(const struct op_images *images)
{
    struct js *o = js_object();
    put_text(o, "trainer", images->trainer);
    put_text(o, "coordinator", images->coordinator);
    put_text(o, "bundle", images->bundle);
    return o;
}

static int percent_of(const struct op_progress *p)
{
    return p->step < p->steps ? (int)((double)p->step / (double)p->steps * 100) : 100;
}

static struct js *progress_json(const struct op_progress *p)
{
    struct js *o = js_object();
    js_set_int(o, "step", p->step);
    if (p->steps) {
        js_set_int(o, "steps", p->steps);
        js_set_int(o, "percent", percent_of(p));
    }
    put_text(o, "loss", p->loss);
    put_text(o, "heldOutLoss", p->held_out);
    put_text(o, "gradientNorm", p->norm);
    put_text(o, "clipFactor", p->clip);
    put_text(o, "learningRate", p->rate);
    if (p->tokens_per_second >= 0)
        js_set_int(o, "tokensPerSecond", p->tokens_per_second);
    if (p->samples_per_second >= 0)
        js_set_int(o, "samplesPerSecond", p->samples_per_second);
    put_text(o, "stepsPerSecond", p->steps_per_second);
    if (p->eta_seconds >= 0)
        js_set_int(o, "etaSeconds", p->eta_seconds);
    return o;
}

static struct js *checkpoint_json(const struct op_checkpoint *c)
{
    struct js *o = js_object();
    js_set_int(o, "step", c->step);
    put_text(o, "uri", c->uri);
    put_instant(o, "savedTime", c->saved_ms);
    if (c->bytes)
        js_set_int(o, "bytes", c->bytes);
    return o;
}

static struct js *interval_json(const struct op_interval *i)
{
    struct js *o = js_object();
    js_set_int(o, "everySeconds", i->every_seconds);
    put_text(o, "reason", i->reason);
    js_set_int(o, "losses", i->losses);
    js_set_int(o, "observedSeconds", i->observed_seconds);
    js_set_int(o, "stallMs", i->stall_ms);
    js_set_int(o, "safeMs", i->safe_ms);
    return o;
}

static struct js *recovery_json(const struct op_recovery *r)
{
    struct js *o = js_object();
    put_text(o, "cause", r->cause);
    for (int part = 0; part < RECOVERY_PARTS; part++)
        js_set_int(o, recovery_key(part), r->ms[part]);
    js_set_int(o, "stepsRedone", r->steps_redone);
    return o;
}

static struct js *earlier_json(const struct op_goodput *g)
{
    struct js *o = js_object();
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        js_set_int(o, goodput_key(which), g->earlier[which]);
    return o;
}

static struct js *goodput_json(const struct op_goodput *g)
{
    struct js *o = js_object();
    put_text(o, "ratio", g->ratio);
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        js_set_int(o, goodput_key(which), g->seconds[which]);
    if (g->term)
        js_set_int(o, "term", g->term);
    if (g->term > 1)
        js_set(o, "earlier", earlier_json(g));
    return o;
}

static struct js *result_json(const struct op_result *r)
{
    struct js *o = js_object();
    if (r->program) {
        js_set_int(o, "exitCode", r->exit_code);
        return o;
    }
    js_set_int(o, "step", r->step);
    put_text(o, "loss", r->loss);
    put_text(o, "weightsSha256", r->weights_sha256);
    js_set_bool(o, "exact", r->exact);
    put_text(o, "uri", r->uri);
    return o;
}

/* 5122 -> "1h25m". */
static void span_text(int64_t seconds, char *out, size_t size)
{
    if (seconds < 60)
        snprintf(out, size, "%llds", (long long)seconds);
    else if (seconds < 3600)
        snprintf(out, size, "%lldm%llds", (long long)(seconds / 60), (long long)(seconds % 60));
    else
        snprintf(out, size, "%lldh%lldm", (long long)(seconds / 3600), (long long)(seconds / 60 % 60));
}

/* What kubectl's columns show: they can only print a value that stands somewhere. */
static struct js *columns_json(const struct job_status *status)
{
    char text[64];
    struct js *o = js_object();
    snprintf(text, sizeof text, "%d/%d", status->workers.ready, status->workers.target);
    js_set_string(o, "workers", text);
    js_set_int(o, "interruptions", account_interruptions(status));
    js_set_int(o, "restarts", account_restarts(status));
    status_cost_column(&status->cost, text);
    put_text(o, "cost", text);
    if (!status->progress.known || !status->progress.steps)
        return o;
    snprintf(text, sizeof text, "%d%%", percent_of(&status->progress));
    js_set_string(o, "progress", text);
    if (status->progress.eta_seconds < 0)
        return o;
    span_text(status->progress.eta_seconds, text, sizeof text);
    js_set_string(o, "eta", text);
    return o;
}

static void write(const struct job_status *status, const char *job_name, bool ticking, struct str *out)
{
    struct js *o = js_object();
    js_set_int(o, "observedGeneration", status->observed_generation);
    if (status->unfenced)
        js_set_bool(o, "fenced", false);
    put_text(o, "state", status->state);
    if (ticking)
        put_text(o, "message", status->message);
    js_set(o, "conditions", conditions_json(status));
    put_instant(o, "startTime", status->start_ms);
    put_instant(o, "completionTime", status->completion_ms);
    put_instant(o, "activeTime", status->active_ms);
    if (status->active_seconds)
        js_set_int(o, "activeSeconds", status->active_seconds);
    js_set(o, "workers", workers_json(status, job_name, ticking));
    js_set(o, "ring", ring_json(status, ticking));
    js_set(o, "restarts", restarts_json(status));
    if (status->spot.last_ms)
        js_set(o, "spot", spot_json(status));
    if (status->idle.since_ms || (ticking && status->idle.short_ms)) /* each start begins short */
        js_set(o, "idle", idle_json(status));
    if (ticking && (*status->images.trainer || *status->images.coordinator ||
                    *status->images.bundle)) /* the pods tell it till then */
        js_set(o, "images", images_json(&status->images));
    if (ticking && status->progress.known)
        js_set(o, "progress", progress_json(&status->progress));
    if (!ticking && *status->progress.loss)
        js_set_bool(o, "progress", true); /* the first loss is news, all others are numbers that move */
    if (ticking && status->checkpoint.known)
        js_set(o, "checkpoint", checkpoint_json(&status->checkpoint));
    if (ticking && status->interval.known)
        js_set(o, "checkpointInterval", interval_json(&status->interval));
    if (status->last_recovery.known)
        js_set(o, "lastRecovery", recovery_json(&status->last_recovery));
    if (ticking && status->goodput.known)
        js_set(o, "goodput", goodput_json(&status->goodput));
    if (ticking && status->cost.accounted_ms)
        js_set(o, "cost", status_cost_json(status));
    if (status->result.known)
        js_set(o, "result", result_json(&status->result));
    if (ticking)
        js_set(o, "columns", columns_json(status));
    js_print(o, out);
    js_free(o);
}

void status_write(const struct job_status *status, const char *job_name, struct str *out)
{
    write(status, job_name, true, out);
}

void status_write_urgent(const struct job_status *status, const char *job_name, struct str *out)
{
    write(status, job_name, false, out);
}
