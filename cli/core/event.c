#include "cli/core/event.h"

#include <math.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/wire/json.h"
#include "common/wire/status.h"

static int64_t whole(const struct js *o, const char *key, int64_t absent)
{
    int64_t value = absent;
    js_as_int(js_get(o, key), &value);
    return value;
}

static double real(const struct js *o, const char *key, double absent)
{
    double value = absent;
    js_as_real(js_get(o, key), &value);
    return value;
}

static void text(const struct js *o, const char *key, char *out, size_t size)
{
    const char *value = js_as_string(js_get(o, key));
    if (value)
        text_copy(out, size, value);
}

static int worker_index(const struct js *o)
{
    int64_t worker = whole(o, event_key(EVENT_KEY_WORKER), -1);
    return worker >= 0 && worker < RM_WORKERS_MAX ? (int)worker : -1;
}

static void read_members(struct event *e, const struct js *list)
{
    RM_ASSERT(e->members == 0, "%d members before one is read", e->members);
    for (size_t i = 0; list && i < js_size(list) && e->members < RM_WORKERS_MAX; i++) {
        const struct js *m = js_at(list, i);
        if (js_kind(m) != JS_OBJECT)
            continue;
        e->member[e->members++] =
            (struct event_member){.worker = worker_index(m),
                                  .agent_pid = whole(m, event_key(EVENT_KEY_AGENT_PID), 0),
                                  .trainer_pid = whole(m, event_key(EVENT_KEY_TRAINER_PID), 0)};
    }
}

/* All of them or none: at stays 0. */
static void read_spent(struct event *e, const struct js *o)
{
    const struct js *list = js_get(o, event_key(EVENT_KEY_SPENT));
    bool whole_list = list && js_kind(list) == JS_ARRAY && js_size(list) == EVENT_SPENT;
    for (size_t i = 0; whole_list && i < EVENT_SPENT; i++)
        whole_list = js_as_int(js_at(list, i), &e->spent[i]) && e->spent[i] >= 0;
    if (whole_list)
        e->at = whole(o, event_key(EVENT_KEY_AT), 0);
}

/* Likewise: saves[0] stays -1. */
static void read_saves(struct event *e, const struct js *o)
{
    const struct js *list = js_get(o, event_key(EVENT_KEY_SAVES));
    bool whole_list = list && js_kind(list) == JS_ARRAY && js_size(list) == EVENT_SAVES;
    for (size_t i = 0; whole_list && i < EVENT_SAVES; i++)
        whole_list = js_as_int(js_at(list, i), &e->saves[i]) && e->saves[i] >= 0;
    if (!whole_list)
        e->saves[0] = -1;
}

static void read_recovered(struct event *e, const struct js *o)
{
    double *const took[RECOVERY_PARTS] = {[RECOVERY_DETECT] = &e->recovered.detect,
                                          [RECOVERY_AGREE] = &e->recovered.agree,
                                          [RECOVERY_RING] = &e->recovered.ring,
                                          [RECOVERY_STATE] = &e->recovered.state,
                                          [RECOVERY_FIRST_STEP] = &e->recovered.first_step,
                                          [RECOVERY_TOTAL] = &e->recovered.total};
    for (int part = 0; part < RECOVERY_PARTS; part++)
        *took[part] = real(o, recovery_key(part), 0);
    e->recovered.steps_redone = whole(o, event_key(EVENT_KEY_STEPS_REDONE), 0);
}

static void read_fields(struct event *e, const struct js *o)
{
    e->step = whole(o, event_key(EVENT_KEY_STEP), -1);
    e->steps = whole(o, event_key(EVENT_KEY_STEPS), 0);
    e->worker = worker_index(o);
    e->attempt = (int)whole(o, event_key(EVENT_KEY_ATTEMPT), -1);
    e->world = (int)whole(o, event_key(EVENT_KEY_WORLD), 0);
    e->term = whole(o, event_key(EVENT_KEY_TERM), 0);
    e->generation = whole(o, event_key(EVENT_KEY_GENERATION), 0);
    e->exit_code = (int)whole(o, event_key(EVENT_KEY_EXIT_CODE), 0);
    e->loss = real(o, event_key(EVENT_KEY_LOSS), NAN);
    e->norm = real(o, event_key(EVENT_KEY_GRADIENT_NORM), NAN);
    e->clip = real(o, event_key(EVENT_KEY_CLIP_FACTOR), NAN);
    e->rate = real(o, event_key(EVENT_KEY_LEARNING_RATE), NAN);
    e->tokens_per_second = real(o, event_key(EVENT_KEY_TOKENS_PER_SECOND), 0);
    e->samples_per_second = real(o, event_key(EVENT_KEY_SAMPLES_PER_SECOND), 0);
    e->goodput = real(o, event_key(EVENT_KEY_GOODPUT), NAN);
    js_as_bool(js_get(o, event_key(EVENT_KEY_EXACT)), &e->exact);
    text(o, event_key(EVENT_KEY_CAUSE), e->text, sizeof e->text);
    text(o, event_key(EVENT_KEY_REASON), e->text, sizeof e->text);
    text(o, event_key(EVENT_KEY_DETAIL), e->text, sizeof e->text);
    text(o, event_key(EVENT_KEY_URI), e->uri, sizeof e->uri);
    text(o, event_key(EVENT_KEY_ADDRESS), e->address, sizeof e->address);
    text(o, event_key(EVENT_KEY_WEIGHTS_SHA256), e->weights_sha256, sizeof e->weights_sha256);
    read_recovered(e, o);
    e->bytes = whole(o, event_key(EVENT_KEY_BYTES), 0);
    e->ms = real(o, event_key(EVENT_KEY_MS), 0);
    e->age = real(o, event_key(EVENT_KEY_AGE_SECONDS), 0);
    e->waited = real(o, event_key(EVENT_KEY_WAITED_SECONDS), 0);
    read_members(e, js_get(o, event_key(EVENT_KEY_MEMBERS)));
    read_spent(e, o);
    read_saves(e, o);
}

/* What each kind can't do without. */
static int check_members(const struct event *e, struct error *err)
{
    RM_ASSERT((unsigned)e->kind < EVENT_OF_RUN, "an event of kind %d", (int)e->kind);
    const struct event_row *row = event_row(e->kind);
    if ((row->has & EVENT_HAS_STEP) && e->step < 0)
        return err_set(err, ERR_PROTOCOL, "%s without a step", row->name);
    if ((row->has & EVENT_HAS_WORKER) && e->worker < 0)
        return err_set(err, ERR_PROTOCOL, "%s without a worker", row->name);
    if ((row->has & EVENT_HAS_EXIT_CODE) && !e->exit_code)
        return err_set(err, ERR_PROTOCOL, "%s without an exit code", row->name);
    if ((row->has & EVENT_HAS_ADDRESS) && !*e->address)
        return err_set(err, ERR_PROTOCOL, "%s without an address", row->name);
    return 0;
}

int event_read(struct event *ret, const char *bytes, size_t length, struct error *err)
{
    struct js *o = js_parse(bytes, length, "event", err);
    if (!o)
        return -1;
    const char *name = js_kind(o) == JS_OBJECT ? js_as_string(js_get(o, event_key(EVENT_KEY_EVENT))) : NULL;
    enum event_kind kind = name ? event_of_name(name) : EVENT_KINDS;
    int status = 0;
    if (!name)
        status = err_set(err, ERR_PROTOCOL, "an event without a name");
    else if (kind >= EVENT_OF_RUN)
        status = err_set(err, ERR_NOT_FOUND, "an event that is not known: %.60s", name);
    else {
        *ret = (struct event){.kind = kind};
        read_fields(ret, o);
        status = check_members(ret, err);
    }
    js_free(o);
    return status;
}
