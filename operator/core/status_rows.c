/* The members of a TrainingJob's status, and what is written for people alone. */
#include "operator/core/status_rows.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/account.h"
#include "operator/core/read.h"

/* ---- lists ---- */

static int conditions_count(const struct job_status *status)
{
    (void)status;
    return OP_CONDITIONS;
}

static bool has_condition(const struct job_status *status, int place)
{
    RM_ASSERT(place >= 0 && place < OP_CONDITIONS, "condition %d", place);
    return status->condition[place].status != OP_UNSET;
}

/* A job that was being stopped for good as its operator was upgraded has the condition's name from before. */
static const char *condition_name_of_now(const char *type)
{
    return strcmp(type, "Interrupted") != 0 ? type : condition_name(OP_STOPPING);
}

static int condition_place(struct job_status *ret, const struct js *entry)
{
    char text[OP_REASON_MAX] = "";
    (void)ret;
    read_text(entry, "type", text, sizeof text);
    const char *type = condition_name_of_now(text);
    for (int i = 0; i < OP_CONDITIONS; i++)
        if (!strcmp(type, condition_name(i)))
            return i;
    return -1;
}

static const char *condition_of_place(int place)
{
    return condition_name(place);
}

static int slots_count(const struct job_status *status)
{
    (void)status;
    return RM_WORKERS_MAX;
}

static bool has_slot(const struct job_status *status, int place)
{
    RM_ASSERT(place >= 0 && place < RM_WORKERS_MAX, "the slot of worker %d", place);
    return status->workers.slot[place].state != OP_SLOT_FREE;
}

static int slot_place(struct job_status *ret, const struct js *entry)
{
    int index = -1;
    (void)ret;
    read_small(entry, "index", -1, INT32_MAX, &index);
    return index < RM_WORKERS_MAX ? index : -1;
}

static int members_count(const struct job_status *status)
{
    RM_ASSERT(status->ring.size >= 0 && status->ring.size <= RM_WORKERS_MAX, "a ring of %d",
              status->ring.size);
    return status->ring.size;
}

static bool has_member(const struct job_status *status, int place)
{
    RM_ASSERT(place >= 0, "member %d of %d", place, status->ring.size);
    return place < status->ring.size;
}

static int member_place(struct job_status *ret, const struct js *entry)
{
    RM_ASSERT(ret->ring.size >= 0 && ret->ring.size <= RM_WORKERS_MAX, "a ring of %d", ret->ring.size);
    int worker = -1;
    read_small(entry, status_key_at(STATUS_OF_MEMBER, offsetof(struct status_worker, worker)), -1, INT32_MAX,
               &worker);
    bool fits = worker >= 0 && worker < RM_WORKERS_MAX && ret->ring.size < RM_WORKERS_MAX;
    return fits ? ret->ring.size++ : -1;
}

static int spot_ends_count(const struct job_status *status)
{
    RM_ASSERT(status->spot.ends_count >= 0 && status->spot.ends_count <= OP_SPOT_ENDS_MAX,
              "%d ends by spot machines", status->spot.ends_count);
    return status->spot.ends_count;
}

static bool has_spot_end(const struct job_status *status, int place)
{
    RM_ASSERT(place >= 0, "end %d of %d", place, status->spot.ends_count);
    return place < status->spot.ends_count;
}

static int spot_end_place(struct job_status *ret, const struct js *entry)
{
    RM_ASSERT(ret->spot.ends_count >= 0, "%d ends by spot machines", ret->spot.ends_count);
    (void)entry;
    return ret->spot.ends_count < OP_SPOT_ENDS_MAX ? ret->spot.ends_count++ : -1;
}

static const struct status_row_list conditions = {conditions_count, has_condition, condition_place,
                                                  condition_of_place};
static const struct status_row_list slots = {slots_count, has_slot, slot_place, NULL};
static const struct status_row_list members = {members_count, has_member, member_place, NULL};
static const struct status_row_list spot_ends = {spot_ends_count, has_spot_end, spot_end_place, NULL};

/* ---- for people ---- */

int status_percent(const struct op_progress *p)
{
    return p->step < p->steps ? (int)((double)p->step / (double)p->steps * 100) : 100;
}

static void put_percent(struct js *o, const char *key, const struct status_writing *w)
{
    if (w->status->progress.steps)
        js_set_int(o, key, status_percent(&w->status->progress));
}

static void put_selector(struct js *o, const char *key, const struct status_writing *w)
{
    char selector[OP_SELECTOR_MAX];
    name_selector(w->job_name, selector);
    js_set_string(o, key, selector);
}

static void put_column_workers(struct js *o, const char *key, const struct status_writing *w)
{
    char text[64];
    snprintf(text, sizeof text, "%d/%d", w->status->workers.ready, w->status->workers.target);
    js_set_string(o, key, text);
}

static void put_column_interruptions(struct js *o, const char *key, const struct status_writing *w)
{
    js_set_int(o, key, account_interruptions(w->status));
}

static void put_column_restarts(struct js *o, const char *key, const struct status_writing *w)
{
    js_set_int(o, key, account_restarts(w->status));
}

static void put_column_cost(struct js *o, const char *key, const struct status_writing *w)
{
    char text[OP_REASON_MAX];
    status_cost_column(&w->status->cost, text);
    if (*text)
        js_set_string(o, key, text);
}

static void put_column_progress(struct js *o, const char *key, const struct status_writing *w)
{
    char text[64];
    snprintf(text, sizeof text, "%d%%", status_percent(&w->status->progress));
    js_set_string(o, key, text);
}

/* 5122 -> "1h25m". */
static void span_text(int64_t seconds, char *out, size_t size)
{
    RM_ASSERT(seconds >= 0, "%lld s are left", (long long)seconds);
    if (seconds < 60)
        snprintf(out, size, "%llds", (long long)seconds);
    else if (seconds < 3600)
        snprintf(out, size, "%lldm%llds", (long long)(seconds / 60), (long long)(seconds % 60));
    else
        snprintf(out, size, "%lldh%lldm", (long long)(seconds / 3600), (long long)(seconds / 60 % 60));
}

static void put_column_eta(struct js *o, const char *key, const struct status_writing *w)
{
    char text[64];
    if (w->status->progress.eta_seconds < 0)
        return;
    span_text(w->status->progress.eta_seconds, text, sizeof text);
    js_set_string(o, key, text);
}

/* ---- what is there ---- */

static bool has_steps(const struct status_writing *w)
{
    return w->status->progress.known && w->status->progress.steps;
}

static bool is_of_trainer(const struct status_writing *w)
{
    return !w->status->result.program;
}

static bool had_terms_before(const struct status_writing *w)
{
    return w->status->goodput.term > 1;
}

static bool has_images(const struct status_writing *w)
{
    const struct op_images *images = &w->status->images;
    return *images->trainer || *images->coordinator || *images->bundle; /* the pods tell it till then */
}

static bool was_interrupted(const struct status_writing *w)
{
    return w->status->spot.last_ms;
}

static bool is_idle(const struct status_writing *w)
{
    bool short_of = w->ticking && w->status->idle.short_ms; /* each start begins short */
    return w->status->idle.since_ms || short_of;
}

static bool is_accounted(const struct status_writing *w)
{
    return w->status->cost.accounted_ms;
}

/* ---- the rows ---- */

#define CONDITION(member) .at = offsetof(struct op_condition, member)

static const struct status_row condition_rows[] = {
    {"type", .kind = ROW_PLACE},
    {"status", .kind = ROW_TRUTH, CONDITION(status)},
    {"reason", .kind = ROW_TEXT, CONDITION(reason), .size = OP_REASON_MAX},
    {"message", .kind = ROW_TEXT, CONDITION(message), .size = OP_MESSAGE_MAX},
    {"lastTransitionTime", .kind = ROW_INSTANT, CONDITION(transition_ms)},
    {"observedGeneration", .kind = ROW_LONG, CONDITION(generation)},
    {0},
};

#define SLOT(member) .at = offsetof(struct op_slot, member)

static const struct status_row slot_rows[] = {
    {"index", .kind = ROW_PLACE},
    {"attempt", .kind = ROW_INT, SLOT(attempt)},
    {"state", .kind = ROW_STATE, SLOT(state)},
    {"quickEnds", .kind = ROW_INT, .when = ROW_SET, SLOT(quick)},
    {"quickEndTime", .kind = ROW_INSTANT, SLOT(quick_ms)},
    {"asked", .kind = ROW_FLAG, .when = ROW_SET, SLOT(asked)},
    {"noticeTime", .kind = ROW_INSTANT, SLOT(told_ms)},
    {"noticeUntil", .kind = ROW_INSTANT, SLOT(until_ms)},
    {0},
};

static const struct status_row workers_rows[] = {
    {"ready", .kind = ROW_INT, .when = ROW_TICKS, STATUS_AT(workers.ready)},
    {"current", .kind = ROW_INT, STATUS_AT(workers.current)},
    {"target", .kind = ROW_INT, STATUS_AT(workers.target)},
    {"surge", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(workers.surge)},
    {"selector", .kind = ROW_PUT, .put = put_selector},
    {"resizeTime", .kind = ROW_INSTANT, STATUS_AT(workers.resize_ms)},
    {"retryTime", .kind = ROW_INSTANT, STATUS_AT(workers.retry_ms)},
    {"shortTime", .kind = ROW_INSTANT, .when = ROW_TICKS,
     STATUS_AT(workers.short_ms)}, /* each start begins with it */
    {"slots", .kind = ROW_LIST, STATUS_AT(workers.slot), .size = sizeof(struct op_slot), .list = &slots,
     .rows = slot_rows},
    {"unfitInstanceTypes", .kind = ROW_NAMES, STATUS_AT(workers.unfit.types)},
    {"unfitNodes", .kind = ROW_NAMES, STATUS_AT(workers.unfit.nodes)},
    {"leftNodes", .kind = ROW_NAMES, STATUS_AT(workers.left)},
    {"strayAnswered", .kind = ROW_FLAG, .when = ROW_SET, STATUS_AT(workers.stray.answered)},
    {"straySilentTime", .kind = ROW_INSTANT, STATUS_AT(workers.stray.silent_ms)},
    {0},
};

#define MEMBER(member) .at = offsetof(struct op_member, member), STATUS_LIKE(MEMBER, worker, member)

static const struct status_row member_rows[] = {
    {.kind = ROW_INT, MEMBER(worker)},
    {.kind = ROW_INT, MEMBER(attempt)},
    {0},
};

#define RING(member) STATUS_LIKE(RING, ring, member)

static const struct status_row ring_rows[] = {
    {RING(generation), .kind = ROW_INT, STATUS_AT(ring.generation)},
    {RING(begun), .kind = ROW_LONG, .when = ROW_SET, STATUS_AT(ring.begun), .highest = OP_COUNT_MAX},
    {RING(term), .kind = ROW_INT, STATUS_AT(ring.coordinator.attempt)},
    {"coordinator", .kind = ROW_STATE, STATUS_AT(ring.coordinator.state)},
    {"quickEnds", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(ring.coordinator.quick)},
    {"quickEndTime", .kind = ROW_INSTANT, STATUS_AT(ring.coordinator.quick_ms)},
    {"keySecret", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(ring.key)},
    {"heardTime", .kind = ROW_INSTANT, .when = ROW_TICKS, STATUS_AT(ring.heard_ms)},
    {RING(size), .kind = ROW_INT, .when = ROW_TOLD, STATUS_AT(ring.size)},
    {RING(formed), .kind = ROW_INSTANT, STATUS_AT(ring.formed_ms)},
    {RING(members), .kind = ROW_LIST, STATUS_AT(ring.member), .size = sizeof(struct op_member),
     .list = &members, .rows = member_rows},
    {0},
};

static const struct status_row restarts_rows[] = {
    {"preemption", .kind = ROW_INT, STATUS_AT(restarts.preemption)},
    {"failure", .kind = ROW_INT, STATUS_AT(restarts.failure)},
    {"infrastructure", .kind = ROW_INT, STATUS_AT(restarts.infrastructure)},
    {"misfit", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(restarts.misfit)},
    {"misfitTime", .kind = ROW_INSTANT, STATUS_AT(restarts.misfit_ms)},
    {"failureTime", .kind = ROW_INSTANT, STATUS_AT(restarts.failure_ms)},
    {"windowTime", .kind = ROW_INSTANT, STATUS_AT(restarts.window_ms)},
    {"windowFailures", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(restarts.window_failures)},
    {"quickNode", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(restarts.node)},
    {"quickNodeFailures", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(restarts.node_failures)},
    {0},
};

#define SPOT_END(member) .at = offsetof(struct op_spot_end, member)

static const struct status_row spot_end_rows[] = {
    {"time", .kind = ROW_INSTANT, SPOT_END(at_ms)},
    {"count", .kind = ROW_INT, SPOT_END(count)},
    {0},
};

static const struct status_row spot_rows[] = {
    {"interruptions", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(spot.interruptions)},
    {"windowTime", .kind = ROW_INSTANT, STATUS_AT(spot.window_ms)},
    {"lastTime", .kind = ROW_INSTANT, STATUS_AT(spot.last_ms)},
    {"fallbackTime", .kind = ROW_INSTANT, STATUS_AT(spot.fell_ms)},
    {"ends", .kind = ROW_LIST, STATUS_AT(spot.end), .size = sizeof(struct op_spot_end), .list = &spot_ends,
     .rows = spot_end_rows},
    {0},
};

static const struct status_row idle_rows[] = {
    {"shortTime", .kind = ROW_INSTANT, STATUS_AT(idle.short_ms)},
    {"sinceTime", .kind = ROW_INSTANT, STATUS_AT(idle.since_ms)},
    {"onDemandBase", .kind = ROW_FLAG, .when = ROW_SET, STATUS_AT(idle.base)},
    {"leftNodes", .kind = ROW_NAMES, STATUS_AT(idle.left)},
    {0},
};

static const struct status_row images_rows[] = {
    {"trainer", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(images.trainer)},
    {"coordinator", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(images.coordinator)},
    {"bundle", .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(images.bundle)},
    {0},
};

#define PROGRESS(member) STATUS_LIKE(PROGRESS, progress, member)

static const struct status_row progress_rows[] = {
    {PROGRESS(step), .kind = ROW_LONG, STATUS_AT(progress.step)},
    {PROGRESS(steps), .kind = ROW_LONG, .when = ROW_SET, STATUS_AT(progress.steps)},
    {"percent", .kind = ROW_PUT, .put = put_percent},
    {PROGRESS(loss), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(progress.loss)},
    {PROGRESS(held_out), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(progress.held_out)},
    {PROGRESS(norm), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(progress.norm)},
    {PROGRESS(clip), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(progress.clip)},
    {PROGRESS(rate), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(progress.rate)},
    {PROGRESS(tokens_per_second), .kind = ROW_LONG, .when = ROW_KNOWN, STATUS_AT(progress.tokens_per_second)},
    {PROGRESS(samples_per_second), .kind = ROW_LONG, .when = ROW_KNOWN,
     STATUS_AT(progress.samples_per_second)},
    {PROGRESS(steps_per_second), .kind = ROW_TEXT, .when = ROW_SET,
     STATUS_TEXT_AT(progress.steps_per_second)},
    {PROGRESS(eta_seconds), .kind = ROW_LONG, .when = ROW_KNOWN, STATUS_AT(progress.eta_seconds)},
    {0},
};

#define CHECKPOINT(member) STATUS_LIKE(CHECKPOINT, checkpoint, member)

static const struct status_row checkpoint_rows[] = {
    {CHECKPOINT(step), .kind = ROW_LONG, STATUS_AT(checkpoint.step)},
    {CHECKPOINT(uri), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(checkpoint.uri)},
    {CHECKPOINT(saved), .kind = ROW_INSTANT, STATUS_AT(checkpoint.saved_ms)},
    {CHECKPOINT(bytes), .kind = ROW_LONG, .when = ROW_SET, STATUS_AT(checkpoint.bytes)},
    {0},
};

#define INTERVAL(member) STATUS_LIKE(INTERVAL, interval, member)

static const struct status_row interval_rows[] = {
    {INTERVAL(every_seconds), .kind = ROW_LONG, STATUS_AT(interval.every_seconds)},
    {INTERVAL(reason), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(interval.reason)},
    {INTERVAL(losses), .kind = ROW_LONG, STATUS_AT(interval.losses), .highest = OP_COUNT_MAX},
    {INTERVAL(observed_seconds), .kind = ROW_LONG, STATUS_AT(interval.observed_seconds)},
    {INTERVAL(stall_ms), .kind = ROW_LONG, STATUS_AT(interval.stall_ms)},
    {INTERVAL(safe_ms), .kind = ROW_LONG, STATUS_AT(interval.safe_ms)},
    {0},
};

#define RECOVERY(member) STATUS_LIKE(RECOVERY, recovery, member)

static const struct status_row recovery_rows[] = {
    {RECOVERY(cause), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(last_recovery.cause)},
    {RECOVERY(ms), .kind = ROW_LONGS, STATUS_AT(last_recovery.ms), .count = RECOVERY_PARTS},
    {RECOVERY(steps_redone), .kind = ROW_LONG, STATUS_AT(last_recovery.steps_redone)},
    {0},
};

#define GOODPUT(member) STATUS_LIKE(GOODPUT, goodput, member)

static const struct status_row earlier_rows[] = {
    {GOODPUT(seconds), .kind = ROW_LONGS, STATUS_AT(goodput.earlier), .count = GOODPUT_CLASSES,
     .highest = OP_COUNT_MAX},
    {0},
};

static const struct status_row goodput_rows[] = {
    {GOODPUT(ratio), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(goodput.ratio)},
    {GOODPUT(seconds), .kind = ROW_LONGS, STATUS_AT(goodput.seconds), .count = GOODPUT_CLASSES},
    {"term", .kind = ROW_INT, .when = ROW_SET, STATUS_AT(goodput.term)},
    {"earlier", .kind = ROW_OBJECT, .there = had_terms_before, .rows = earlier_rows},
    {0},
};

#define RESULT(member) STATUS_LIKE(RESULT, result, member)
#define OF_TRAINER     .there = is_of_trainer

/* Of a user's program a TrainingJob keeps the program's own code, and else none. */
static const struct status_row result_rows[] = {
    {RESULT(exit_code), .kind = ROW_INT, STATUS_AT(result.exit_code), .highest = 255,
     .known = offsetof(struct job_status, result.program)},
    {RESULT(step), .kind = ROW_LONG, STATUS_AT(result.step), OF_TRAINER},
    {RESULT(loss), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(result.loss), OF_TRAINER},
    {RESULT(weights_sha256), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(result.weights_sha256),
     OF_TRAINER},
    {RESULT(exact), .kind = ROW_FLAG, STATUS_AT(result.exact), OF_TRAINER},
    {RESULT(uri), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(result.uri), OF_TRAINER},
    {0},
};

/* kubectl's columns can only print a value that stands somewhere. */
static const struct status_row columns_rows[] = {
    {"workers", .kind = ROW_PUT, .put = put_column_workers},
    {"interruptions", .kind = ROW_PUT, .put = put_column_interruptions},
    {"restarts", .kind = ROW_PUT, .put = put_column_restarts},
    {"cost", .kind = ROW_PUT, .put = put_column_cost},
    {"progress", .kind = ROW_PUT, .there = has_steps, .put = put_column_progress},
    {"eta", .kind = ROW_PUT, .there = has_steps, .put = put_column_eta},
    {0},
};

#define PAGE(member)   STATUS_LIKE(PAGE, page, member)
#define KNOWN_BY(part) .known = offsetof(struct job_status, part.known)

const struct status_row job_status_rows[] = {
    {"observedGeneration", .kind = ROW_LONG, STATUS_AT(observed_generation)},
    {PAGE(fenced), .kind = ROW_DENIED, STATUS_AT(unfenced)},
    {PAGE(state), .kind = ROW_TEXT, .when = ROW_SET, STATUS_TEXT_AT(state)},
    {PAGE(message), .kind = ROW_TEXT, .when = ROW_SET | ROW_TICKS, STATUS_TEXT_AT(message)},
    {"conditions", .kind = ROW_LIST, STATUS_AT(condition), .size = sizeof(struct op_condition),
     .list = &conditions, .rows = condition_rows},
    {"startTime", .kind = ROW_INSTANT, STATUS_AT(start_ms)},
    {"completionTime", .kind = ROW_INSTANT, STATUS_AT(completion_ms)},
    {"activeTime", .kind = ROW_INSTANT, STATUS_AT(active_ms)},
    {"activeSeconds", .kind = ROW_LONG, .when = ROW_SET, STATUS_AT(active_seconds)},
    {"workers", .kind = ROW_OBJECT, .rows = workers_rows},
    {PAGE(ring), .kind = ROW_OBJECT, .rows = ring_rows},
    {"restarts", .kind = ROW_OBJECT, .rows = restarts_rows},
    {"spot", .kind = ROW_OBJECT, .there = was_interrupted, .rows = spot_rows},
    {"idle", .kind = ROW_OBJECT, .there = is_idle, .rows = idle_rows},
    {"images", .kind = ROW_OBJECT, .when = ROW_TICKS, .there = has_images, .rows = images_rows},
    {PAGE(progress), .kind = ROW_OBJECT, .when = ROW_TICKS, KNOWN_BY(progress), .rows = progress_rows},
    {PAGE(checkpoint), .kind = ROW_OBJECT, .when = ROW_TICKS, KNOWN_BY(checkpoint), .rows = checkpoint_rows},
    {PAGE(interval), .kind = ROW_OBJECT, .when = ROW_TICKS, KNOWN_BY(interval), .rows = interval_rows},
    {PAGE(last_recovery), .kind = ROW_OBJECT, KNOWN_BY(last_recovery), .rows = recovery_rows},
    {PAGE(goodput), .kind = ROW_OBJECT, .when = ROW_TICKS, KNOWN_BY(goodput), .rows = goodput_rows},
    {"cost", .kind = ROW_OBJECT, .when = ROW_TICKS, .there = is_accounted, .rows = status_cost_rows},
    {PAGE(result), .kind = ROW_OBJECT, KNOWN_BY(result), .rows = result_rows},
    {"columns", .kind = ROW_OBJECT, .when = ROW_TICKS, .rows = columns_rows},
    {0},
};
