/* Follows one kind of object: lists, watches, lists anew where that is no longer possible, and tries again
 * after a pause. */
#include "common/kube/reflector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/prng.h"
#include "common/kube/split.h"

enum { WATCH_SECONDS = 300, CONTINUE_MAX = 8 << 10, VERSION_MAX = 64 };

static const rm_time delay_least = 200 * RM_MS, delay_most = 30 * RM_S;
static const rm_time soon = RM_S; /* a watch that ends sooner, with nothing said, is a failure */

struct reflector {
    struct loop *loop;
    struct reflector_options options;
    struct loop_timer *timer;
    struct kube_call *call;
    struct split list, watch;
    char version[VERSION_MAX]; /* to watch from; "": list first */
    struct str from;           /* where the next page begins; empty: the first */
    bool synced, heard, told;  /* heard: this watch has said something; told: an ERROR event was its end */
    struct kube_answer ending; /* told: what it said */
    rm_time begun;
    int failures;
};

static void go_on(struct reflector *r);

static void wait_and_go(struct reflector *r, const struct kube_answer *why)
{
    rm_time delay = rm_backoff(delay_least, delay_most, r->failures++);
    delay -= (rm_time)(prng_unit(&r->options.seed) * (double)delay / 2);
    delay = why->retry_after > delay ? why->retry_after : delay;
    if (r->options.trouble)
        r->options.trouble(r->options.ctx, why, delay);
    loop_timer_set(r->timer, loop_now(r->loop) + delay);
}

static void unreadable(struct reflector *r, const struct error *err)
{
    struct kube_answer answer = {.outcome = KUBE_BROKEN, .status = 200};
    snprintf(answer.message, sizeof answer.message, "an object of %s is skipped: %s",
             r->options.resource->plural, err->text);
    if (r->options.trouble)
        r->options.trouble(r->options.ctx, &answer, 0);
}

static void keep_version(struct reflector *r, const struct js *object)
{
    const char *version = js_as_string(js_get(js_get(object, "metadata"), "resourceVersion"));
    if (version && *version)
        text_copy(r->version, sizeof r->version, version);
}

/* --- the list --- */

static void item_came(void *ctx, char *text, size_t length)
{
    struct reflector *r = ctx;
    struct error err;
    struct js *object = js_parse_foreign(text, length, r->options.resource->plural, &err);
    if (object)
        r->options.object(r->options.ctx, KUBE_ADDED, object);
    else
        unreadable(r, &err);
    js_free(object);
}

static int list_bytes(void *ctx, const char *bytes, size_t count)
{
    struct reflector *r = ctx;
    return split_add(&r->list, bytes, count);
}

/* A page is read: on to the next, or to the watch. */
static int read_page(struct reflector *r, struct error *err)
{
    struct js *rest = js_parse_foreign(r->list.rest.data ? r->list.rest.data : (char[]){""},
                                       r->list.rest.length, "a list", err);
    if (!rest)
        return -1;
    const char *from = js_as_string(js_get(js_get(rest, "metadata"), "continue"));
    str_reset(&r->from);
    str_adds(&r->from, from ? from : "");
    r->version[0] = 0;
    if (!r->from.length)
        keep_version(r, rest);
    js_free(rest);
    return r->from.length || r->version[0] ? 0 : err_set(err, ERR_PROTOCOL, "a list without a version");
}

static void page_came(void *ctx, const struct kube_answer *answer)
{
    struct reflector *r = ctx;
    struct kube_answer broken = {.outcome = KUBE_BROKEN, .status = answer->status};
    struct error err;
    r->call = NULL;
    if (answer->outcome == KUBE_OK && read_page(r, &err) == 0) {
        if (!r->from.length) {
            r->synced = true;
            r->options.listed(r->options.ctx);
        }
        go_on(r);
        return;
    }
    if (answer->outcome == KUBE_OK)
        text_copy(broken.message, sizeof broken.message, err.text);
    /* A server that is busy with a hundred thousand objects would never come to the end of a list that begins
     * anew. One that took too long does, as does one that broke. */
    if (answer->outcome != KUBE_BUSY && answer->outcome != KUBE_UNREACHABLE)
        str_reset(&r->from);
    wait_and_go(r, answer->outcome == KUBE_OK ? &broken : answer);
}

static int list_page(struct reflector *r, struct error *err)
{
    split_reset(&r->list);
    if (!r->from.length)
        r->options.listing(r->options.ctx);
    struct kube_request request = {.verb = KUBE_LIST,
                                   .resource = r->options.resource,
                                   .namespace = r->options.namespace,
                                   .labels = r->options.labels,
                                   .limit = r->options.page,
                                   .from = str_text(&r->from),
                                   .bytes = list_bytes,
                                   .done = page_came,
                                   .ctx = r};
    return kube_send(r->options.kube, &r->call, &request, err);
}

/* --- the watch --- */

/* An ERROR event ends a watch; its object is a Status. */
static void read_ending(struct reflector *r, const struct js *status)
{
    int64_t code = 500;
    struct js *tree;
    struct str text = str_init(SPLIT_OBJECT_MAX);
    js_as_int(js_get(status, "code"), &code);
    if (status)
        js_print(status, &text);
    kube_answer_read(&r->ending, &tree, code >= 400 && code < 600 ? (int)code : 500, str_text(&text),
                     text.length);
    r->ending.object = NULL;
    r->told = true;
    str_clear(&text);
}

static void take_event(struct reflector *r, const char *type, const struct js *object)
{
    static const char *const types[] = {
        [KUBE_ADDED] = "ADDED", [KUBE_MODIFIED] = "MODIFIED", [KUBE_DELETED] = "DELETED"};
    if (!strcmp(type, "ERROR")) {
        read_ending(r, object);
        return;
    }
    if (!r->heard && r->options.heard)
        r->options.heard(r->options.ctx);
    r->heard = true;
    keep_version(r, object);
    for (int i = KUBE_ADDED; i <= KUBE_DELETED; i++)
        if (!strcmp(type, types[i]))
            r->options.object(r->options.ctx, (enum kube_change)i, object);
}

static void line_came(void *ctx, char *text, size_t length)
{
    struct reflector *r = ctx;
    struct error err = {0};
    struct js *event = r->told ? NULL : js_parse_foreign(text, length, r->options.resource->plural, &err);
    const char *type = js_as_string(js_get(event, "type"));
    const struct js *object = js_get(event, "object");
    if (type && object)
        take_event(r, type, object);
    else if (!r->told)
        unreadable(r, &err);
    js_free(event);
}

static int watch_bytes(void *ctx, const char *bytes, size_t count)
{
    struct reflector *r = ctx;
    return split_add(&r->watch, bytes, count) < 0 || r->told ? -1 : 0;
}

static void watch_ended(void *ctx, const struct kube_answer *answer)
{
    struct reflector *r = ctx;
    bool calm = answer->outcome == KUBE_OK && !r->told;
    const struct kube_answer *why = r->told ? &r->ending : answer;
    r->call = NULL;
    if (r->heard || (calm && loop_now(r->loop) - r->begun >= soon))
        r->failures = 0;
    if (why->outcome == KUBE_GONE || (r->told && why->outcome != KUBE_BUSY))
        r->version[0] = 0;
    if (r->failures == 0 && (calm || why->outcome == KUBE_GONE)) {
        r->failures = why->outcome == KUBE_GONE; /* a server that has nothing but 410 is not asked at once */
        go_on(r);
        return;
    }
    struct kube_answer early = {.outcome = KUBE_BROKEN, .status = 200, .message = "a watch ended at once"};
    wait_and_go(r, calm ? &early : why);
}

static int watch_list(struct reflector *r, struct error *err)
{
    split_reset(&r->watch);
    r->heard = r->told = false;
    r->begun = loop_now(r->loop);
    /* Spread, so that the watches of all kinds don't end together. */
    int seconds = WATCH_SECONDS + (int)prng_below(&r->options.seed, WATCH_SECONDS);
    struct kube_request request = {.verb = KUBE_WATCH,
                                   .resource = r->options.resource,
                                   .namespace = r->options.namespace,
                                   .labels = r->options.labels,
                                   .version = r->version,
                                   .seconds = seconds,
                                   .silent_within = r->options.silent_within,
                                   .bytes = watch_bytes,
                                   .done = watch_ended,
                                   .ctx = r};
    return kube_send(r->options.kube, &r->call, &request, err);
}

static void go_on(struct reflector *r)
{
    struct kube_answer answer = {.outcome = KUBE_UNREACHABLE};
    struct error err;
    if ((r->version[0] && !r->from.length ? watch_list : list_page)(r, &err) == 0)
        return;
    text_copy(answer.message, sizeof answer.message, err.text);
    wait_and_go(r, &answer);
}

static void timer_fired(void *ctx)
{
    go_on(ctx);
}

int reflector_open(struct reflector **ret, struct loop *loop, const struct reflector_options *options,
                   struct error *err)
{
    struct reflector *r = calloc(1, sizeof *r);
    if (!r)
        return err_set(err, ERR_MACHINE, "no memory for a reflector");
    r->loop = loop;
    r->options = *options;
    r->options.page = options->page ? options->page : 500;
    r->options.silent_within = options->silent_within ? options->silent_within : 150 * RM_S;
    r->list = split_init(false, item_came, r);
    r->watch = split_init(true, line_came, r);
    r->from = str_init(CONTINUE_MAX);
    if (loop_timer_open(&r->timer, loop, timer_fired, r, err) < 0) {
        reflector_free(r);
        return -1;
    }
    loop_timer_set(r->timer, loop_now(loop));
    *ret = r;
    return 0;
}

void reflector_free(struct reflector *reflector)
{
    if (!reflector)
        return;
    kube_cancel(reflector->call);
    loop_timer_free(reflector->timer);
    split_clear(&reflector->list);
    split_clear(&reflector->watch);
    str_clear(&reflector->from);
    free(reflector);
}

bool reflector_synced(const struct reflector *reflector)
{
    return reflector->synced;
}
