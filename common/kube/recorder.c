/* Sends Events on behalf of a program: the same one again becomes a count, and too many are dropped. */
#include "common/kube/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/kube/bucket.h"
#include "common/kube/stamp.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"

enum { SERIES_MAX = 512, OBJECTS_MAX = 256, NAME_BYTES = 320, TEXT_BYTES = 1025, UID_BYTES = 64 };

static const rm_time series_ends = 360 * RM_S, write_each = 60 * RM_S;
static const double burst = 25, per_second = 0.1;

struct series {
    struct recorder *recorder;
    bool made;                  /* the server has taken its event: repeats can be written into that */
    uint8_t key[RM_HASH_BYTES]; /* object, type, reason, words */
    char namespace[64], name[NAME_BYTES];
    int64_t count, written; /* how often it happened, and what the server knows */
    int64_t last_ms;        /* wall clock of the last one */
    rm_time last, wrote;    /* 0: an empty place */
};

struct object {
    char uid[UID_BYTES];
    struct bucket normal, warning; /* what goes well, and goes well often, leaves no less room for trouble */
    rm_time used;
};

struct recorder {
    struct loop *loop;
    struct recorder_options options; /* its texts are those below */
    struct loop_timer *timer;
    char controller[128], instance[128];
    int refused; /* in a row */
    struct series series[SERIES_MAX];
    struct object object[OBJECTS_MAX];
    int64_t lost;
};

/* --- the text of an event --- */

static void set_times(struct js *event, const struct series *series)
{
    char stamp[STAMP_MAX];
    struct js *counted = js_object();
    stamp_print_micro(series->last_ms, stamp);
    js_set_int(counted, "count", series->count);
    js_set_string(counted, "lastObservedTime", stamp);
    js_set(event, "series", counted);
}

static struct js *regarding(const struct kube_note *note)
{
    struct str version = str_init(256);
    struct js *object = js_object();
    kube_api_version(note->resource, &version);
    js_set_string(object, "apiVersion", str_text(&version));
    js_set_string(object, "kind", note->resource->kind);
    if (note->resource->namespaced)
        js_set_string(object, "namespace", note->namespace);
    js_set_string(object, "name", note->name);
    js_set_string(object, "uid", note->uid);
    str_clear(&version);
    return object;
}

/* At most `size` - 1 bytes, and not in the middle of a character: jansson would refuse the rest of it. */
static void cut_text(char *out, size_t size, const char *text)
{
    if (text_copy(out, size, text))
        return;
    size_t end = size - 1;
    while (end && (out[end - 1] & 0xc0) == 0x80)
        end--;
    if (end && (out[end - 1] & 0xc0) == 0xc0)
        out[end - 1] = 0;
}

static void print_event(const struct recorder *recorder, const struct series *series,
                        const struct kube_note *note, struct str *out)
{
    char stamp[STAMP_MAX], text[TEXT_BYTES];
    struct js *event = js_object(), *metadata = js_object();
    stamp_print_micro(series->last_ms, stamp);
    cut_text(text, sizeof text, note->text);
    js_set_string(event, "apiVersion", "events.k8s.io/v1");
    js_set_string(event, "kind", "Event");
    js_set_string(metadata, "namespace", series->namespace);
    js_set_string(metadata, "name", series->name);
    js_set(event, "metadata", metadata);
    js_set_string(event, "eventTime", stamp);
    js_set_string(event, "type", note->warning ? "Warning" : "Normal");
    js_set_string(event, "reason", note->reason);
    js_set_string(event, "action", note->action && *note->action ? note->action : "Reconcile");
    js_set_string(event, "note", text);
    js_set_string(event, "reportingController", recorder->controller);
    js_set_string(event, "reportingInstance", recorder->instance);
    js_set(event, "regarding", regarding(note));
    js_print(event, out);
    js_free(event);
}

/* --- writing --- */

static void write_repeats(struct recorder *recorder, struct series *series);

static bool is_taken(struct recorder *recorder, const struct kube_answer *answer)
{
    if (answer->outcome == KUBE_OK || answer->outcome == KUBE_EXISTS) {
        recorder->refused = 0;
        return true;
    }
    recorder->lost++;
    recorder->refused++;
    if (recorder->options.trouble)
        recorder->options.trouble(recorder->options.ctx, answer, recorder->refused);
    return false;
}

/* Of an event that was not taken the next repeat is a new one. */
static void created(void *ctx, const struct kube_answer *answer)
{
    struct series *series = ctx;
    series->made = is_taken(series->recorder, answer);
    if (!series->made)
        series->last = 0;
    else if (series->count > series->written)
        write_repeats(series->recorder, series);
}

static void repeated(void *ctx, const struct kube_answer *answer)
{
    struct series *series = ctx;
    is_taken(series->recorder, answer);
}

static void send_series(struct recorder *recorder, struct series *series, enum kube_verb verb,
                        const struct str *body)
{
    struct kube_request request = {.verb = verb,
                                   .resource = &kube_events,
                                   .namespace = series->namespace,
                                   .name = verb == KUBE_CREATE ? NULL : series->name,
                                   .body = str_text(body),
                                   .late = true,
                                   .done = verb == KUBE_CREATE ? created : repeated,
                                   .ctx = series};
    if (kube_send(recorder->options.kube, NULL, &request, NULL) == 0)
        return;
    recorder->lost++;
    if (verb == KUBE_CREATE)
        series->last = 0;
}

static void write_repeats(struct recorder *recorder, struct series *series)
{
    struct str body = str_init(1024);
    struct js *patch = js_object();
    set_times(patch, series);
    js_print(patch, &body);
    js_free(patch);
    send_series(recorder, series, KUBE_MERGE, &body);
    str_clear(&body);
    series->written = series->count;
    series->wrote = loop_now(recorder->loop);
}

/* Repeats that wait for their minute, and series that have ended. */
static void timer_fired(void *ctx)
{
    struct recorder *recorder = ctx;
    rm_time now = loop_now(recorder->loop), next = RM_NEVER;
    for (int i = 0; i < SERIES_MAX; i++) {
        struct series *series = &recorder->series[i];
        if (!series->last || !series->made || series->written == series->count)
            continue;
        if (now - series->wrote >= write_each)
            write_repeats(recorder, series);
        else if (series->wrote + write_each < next)
            next = series->wrote + write_each;
    }
    loop_timer_set(recorder->timer, next);
}

/* --- which series, and how many --- */

static void hash_note(const struct kube_note *note, uint8_t out[RM_HASH_BYTES])
{
    const char *parts[] = {note->uid, note->warning ? "1" : "0", note->reason, note->text};
    struct sha256 *hash = sha256_open();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        sha256_add(hash, parts[i], strlen(parts[i]) + 1);
    sha256_finish(hash, out);
}

/* The series that goes on, or the place of a new one: an empty or the longest silent one. */
static struct series *find_series(struct recorder *recorder, const uint8_t key[RM_HASH_BYTES], rm_time now)
{
    struct series *oldest = &recorder->series[0];
    for (int i = 0; i < SERIES_MAX; i++) {
        struct series *series = &recorder->series[i];
        if (series->last && now - series->last < series_ends && !memcmp(series->key, key, RM_HASH_BYTES))
            return series;
        if (series->last < oldest->last)
            oldest = series;
    }
    oldest->last = 0;
    return oldest;
}

static bool may_tell(struct recorder *recorder, const char *uid, bool warning, rm_time now)
{
    rm_time when;
    struct object *found = &recorder->object[0];
    for (int i = 0; i < OBJECTS_MAX && strcmp(found->uid, uid) != 0; i++)
        if (!strcmp(recorder->object[i].uid, uid) || recorder->object[i].used < found->used)
            found = &recorder->object[i];
    if (strcmp(found->uid, uid) != 0) {
        text_copy(found->uid, sizeof found->uid, uid);
        found->normal = found->warning = bucket_init(per_second, burst, now);
    }
    found->used = now;
    return bucket_take(warning ? &found->warning : &found->normal, now, &when);
}

static void begin_series(struct recorder *recorder, struct series *series, const struct kube_note *note)
{
    uint8_t chance[8];
    char hex[2 * sizeof chance + 1];
    struct str body = str_init(16 << 10);
    crypto_random(chance, sizeof chance);
    hex_encode(chance, sizeof chance, hex);
    series->recorder = recorder;
    series->made = false;
    series->count = series->written = 1;
    series->wrote = series->last;
    /* Events of what lies in no namespace lie in "default". */
    text_copy(series->namespace, sizeof series->namespace,
              note->namespace && *note->namespace ? note->namespace : "default");
    snprintf(series->name, sizeof series->name, "%.200s.%s", note->name, hex);
    print_event(recorder, series, note, &body);
    send_series(recorder, series, KUBE_CREATE, &body);
    str_clear(&body);
}

void recorder_tell(struct recorder *recorder, const struct kube_note *note)
{
    uint8_t key[RM_HASH_BYTES];
    rm_time now = loop_now(recorder->loop);
    hash_note(note, key);
    struct series *series = find_series(recorder, key, now);
    bool fresh = !series->last;
    if (fresh && !may_tell(recorder, note->uid, note->warning, now)) {
        recorder->lost++;
        return;
    }
    memcpy(series->key, key, sizeof key);
    series->last = now;
    series->last_ms = clock_wall_ms();
    if (fresh) {
        begin_series(recorder, series, note);
        return;
    }
    series->count++;
    if (series->made && series->count == 2)
        write_repeats(recorder, series);
    else
        timer_fired(recorder);
}

int64_t recorder_lost(const struct recorder *recorder)
{
    return recorder->lost;
}

int recorder_open(struct recorder **ret, struct loop *loop, const struct recorder_options *options,
                  struct error *err)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    if (!recorder)
        return err_set(err, ERR_MACHINE, "no memory for events");
    recorder->loop = loop;
    recorder->options = *options;
    text_copy(recorder->controller, sizeof recorder->controller, options->controller);
    text_copy(recorder->instance, sizeof recorder->instance, options->instance);
    if (loop_timer_open(&recorder->timer, loop, timer_fired, recorder, err) < 0) {
        recorder_free(recorder);
        return -1;
    }
    *ret = recorder;
    return 0;
}

void recorder_free(struct recorder *recorder)
{
    if (!recorder)
        return;
    loop_timer_free(recorder->timer);
    free(recorder);
}
