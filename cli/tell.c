#include <string.h>

#include "cli/local_run_state.h"
#include "common/os/clock.h"
#include "common/wire/json.h"

static struct js *event_new(enum event_kind kind)
{
    struct js *event = js_object();
    js_set_string(event, event_key(EVENT_KEY_EVENT), event_name(kind));
    js_set_int(event, event_key(EVENT_KEY_TIME), clock_wall_ms());
    return event;
}

static void event_print(struct console *console, struct js *event)
{
    struct str line = str_init(1 << 20);
    event_assert(event);
    js_print(event, &line);
    str_adds(&line, "\n");
    console_print(console, &line);
    str_clear(&line);
    js_free(event);
}

static void set_uri(struct js *event, const char *key, const char *uri, const char *name)
{
    struct str whole = str_init(2 * RM_URI_MAX);
    str_addf(&whole, "%s%s%s", uri, uri[strlen(uri) - 1] == '/' ? "" : "/", name);
    js_set_string(event, key, str_text(&whole));
    str_clear(&whole);
}

void tell_started(struct local_run *run)
{
    if (!run->console->json) {
        struct str line = str_init(256);
        screen_page(run->address, run->console->style, &line);
        console_print(run->console, &line);
        str_clear(&line);
        return;
    }
    struct js *event = event_new(EVENT_STARTED);
    js_set_int(event, event_key(EVENT_KEY_COORDINATOR_PID), loop_child_pid(run->coordinator));
    js_set_string(event, event_key(EVENT_KEY_ADDRESS), run->address);
    if (job_has_store(run->spec))
        js_set_string(event, event_key(EVENT_KEY_URI), run->spec->checkpoint.uri);
    event_print(run->console, event);
}

void say_skipped(struct local_run *run)
{
    const struct checkpoint_resume *r = &run->options->prepared->resume;
    for (int i = 0; i < r->skipped; i++)
        console_say(run->console, "ringmaster: %s is damaged and was not used: %s", r->skip[i].name,
                    r->skip[i].why);
}

/* Its folder, as far as can be told from its step: final/ only where that was the newest found. */
static void name_of(const struct local_run *run, int64_t step, char name[CHECKPOINT_NAME_MAX])
{
    const struct checkpoint_entry *newest = &run->options->prepared->resume.entry;
    checkpoint_name(name, step, newest->final && newest->step == step);
}

static void note_refused(struct local_run *run, const struct event *event)
{
    if (run->refused == CHECKPOINT_SKIPPED_MAX)
        return;
    struct checkpoint_skipped *skipped = &run->refuse[run->refused++];
    name_of(run, event->step, skipped->name);
    text_copy(skipped->why, sizeof skipped->why, event->text);
}

static void push_skipped(struct js *list, const char *uri, const struct checkpoint_skipped *skipped)
{
    struct js *one = js_object();
    set_uri(one, event_key(EVENT_KEY_URI), uri, skipped->name);
    js_set_string(one, event_key(EVENT_KEY_REASON), skipped->why);
    js_push(list, one);
}

static void print_resumed(struct local_run *run, int64_t step)
{
    const struct checkpoint_resume *r = &run->options->prepared->resume;
    const char *uri = run->spec->checkpoint.uri;
    char name[CHECKPOINT_NAME_MAX];
    struct js *event = event_new(EVENT_RESUMED), *skipped = js_array();
    js_set_int(event, event_key(EVENT_KEY_STEP), step);
    name_of(run, step, name);
    if (step)
        set_uri(event, event_key(EVENT_KEY_URI), uri, name);
    else
        js_set(event, event_key(EVENT_KEY_URI), js_new_null());
    for (int i = 0; i < r->skipped; i++)
        push_skipped(skipped, uri, &r->skip[i]);
    for (int i = 0; i < run->refused; i++)
        push_skipped(skipped, uri, &run->refuse[i]);
    js_set(event, event_key(EVENT_KEY_SKIPPED), skipped);
    event_print(run->console, event);
}

void tell_resumed(struct local_run *run, const struct event *event)
{
    const struct checkpoint_resume *r = &run->options->prepared->resume;
    struct report *report = run->options->report;
    if (run->resumed_told)
        return;
    if (event->kind == EVENT_CHECKPOINT_REFUSED)
        note_refused(run, event);
    if (event->kind != EVENT_RING_FORMED)
        return;
    int64_t step = r->found ? r->entry.step : 0; /* a ring that a successor found may be farther already */
    if (run->refused)
        step = event->step;
    run->resumed_told = true;
    if (step != report->first_step)
        report_init(report, report->steps, step, report->begun);
    if (run->console->json && (r->found || r->skipped))
        print_resumed(run, step);
}

void tell_drill(struct local_run *run, const struct drill *drill, int64_t step)
{
    static const char *const done[] = {[DRILL_KILL] = "killed",
                                       [DRILL_TRAINER] = "its trainer was killed",
                                       [DRILL_STOP] = "stopped",
                                       [DRILL_HANG] = "its trainer was stopped"};
    const char *how = done[drill->kind];
    if (drill->kind == DRILL_HANG && job_restarts(run->spec))
        how = "its program was stopped";
    if (how)
        report_drill(run->options->report, drill->worker, how);
    if (!run->console->json) {
        struct str line = str_init(256);
        screen_drill(run->options->report, drill->spec, step, run->console->style, &line);
        console_print(run->console, &line);
        str_clear(&line);
        return;
    }
    struct js *event = event_new(EVENT_DRILL);
    js_set_string(event, event_key(EVENT_KEY_SPEC), drill->spec);
    js_set_int(event, event_key(EVENT_KEY_STEP), step);
    event_print(run->console, event);
}

void tell_failed(struct local_run *run, const char *reason, int exit_code)
{
    if (!run->console->json)
        return;
    struct js *event = event_new(EVENT_FAILED);
    js_set_string(event, event_key(EVENT_KEY_REASON), reason);
    js_set_int(event, event_key(EVENT_KEY_EXIT_CODE), exit_code);
    event_print(run->console, event);
}

/* The loss and the goodput of a run long ago are not in its checkpoint: null. */
void tell_complete_again(struct console *console, const struct prepared *prepared)
{
    const struct checkpoint_entry *e = &prepared->resume.entry;
    char sha256[RM_HASH_HEX];
    hex_encode(e->weights_sha256, RM_HASH_BYTES, sha256);
    struct js *event = event_new(EVENT_COMPLETE);
    js_set_int(event, event_key(EVENT_KEY_STEP), e->step);
    js_set(event, event_key(EVENT_KEY_LOSS), js_new_null());
    js_set_string(event, event_key(EVENT_KEY_WEIGHTS_SHA256), sha256);
    js_set_bool(event, event_key(EVENT_KEY_EXACT), e->exact);
    js_set(event, event_key(EVENT_KEY_GOODPUT), js_new_null());
    set_uri(event, event_key(EVENT_KEY_URI), prepared->spec.checkpoint.uri, e->name);
    event_print(console, event);
}
