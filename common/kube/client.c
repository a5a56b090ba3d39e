/* Requests to the API server over HTTP: at most so many at once, the rest in line behind the bucket of
 * tokens; each answer is an outcome to branch on. */
#include "common/kube/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/kube/bucket.h"
#include "common/net/http.h"
#include "common/os/clock.h"

enum {
    ANSWER_MAX = 64 << 20,
    URL_MAX = 8 << 10,
    HEADERS_MAX = 4,
    BUFFER_BYTES = 16 << 10,
    IN_FLIGHT_MAX = 48, /* more would wait inside the server, each with its buffers here */
    LATE_SHARE = 32,    /* of so many requests one may be a late one, however long the other line is */
};

static const rm_time lost_within = 20 * RM_S;
static const rm_time answer_within = 30 * RM_S;

struct kube_call;

/* Calls in the order they came. */
struct line {
    struct kube_call *first, **end;
    int count;
};

struct kube_call {
    struct kube *kube;
    struct kube_call *next, **link; /* in its line of waiting calls, or in the list of those sent */
    struct line *line;              /* that it waits in; NULL: it was sent */
    struct kube_request request;    /* its strings are those below */
    struct str url, body, answer;
    char *texts[8]; /* copies that the request points to */
    int text_count;
    struct http_call *http;
    struct http_run run;
    rm_time begun, retry_after;
    bool rereading; /* a create met what is there and is a GET now */
};

struct kube {
    struct loop *loop;
    struct loop_timer *timer;
    struct kube_options options;
    struct http *requests, *watches;
    struct http_identity identity;
    struct bucket bucket;
    struct line waiting, late;
    struct kube_call *sent;
    int sent_count; /* without watches */
    int since_late; /* requests sent since the last late one */
    bool refused;   /* the last answer was 401: the token is to be read again */
};

static const struct {
    const char *name, *method;
} verbs[] = {
    [KUBE_GET] = {"get", "GET"},       [KUBE_LIST] = {"list", "GET"},
    [KUBE_WATCH] = {"watch", "GET"},   [KUBE_CREATE] = {"create", "POST"},
    [KUBE_APPLY] = {"patch", "PATCH"}, [KUBE_MERGE] = {"patch", "PATCH"},
    [KUBE_UPDATE] = {"update", "PUT"}, [KUBE_DELETE] = {"delete", "DELETE"},
};

const char *kube_verb_name(enum kube_verb verb)
{
    return verbs[verb].name;
}

/* --- the text of a request --- */

static void add_query(struct str *url, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    str_addf(url, "%c%s=", strchr(url->data, '?') ? '&' : '?', key);
    kube_encode(value, url);
}

static void add_number(struct str *url, const char *key, int value)
{
    char text[24];
    snprintf(text, sizeof text, "%d", value);
    add_query(url, key, value ? text : NULL);
}

static void write_url(struct kube_call *call)
{
    const struct kube_request *r = &call->request;
    struct str *url = &call->url;
    enum kube_verb verb = call->rereading ? KUBE_GET : r->verb;
    bool writes = verb == KUBE_CREATE || verb == KUBE_APPLY || verb == KUBE_MERGE || verb == KUBE_UPDATE;
    str_reset(url);
    str_adds(url, call->kube->options.config->server);
    bool to_all = verb == KUBE_CREATE && !r->subresource;
    kube_path(r->resource, r->namespace, to_all ? NULL : r->name, url);
    if (r->subresource)
        str_addf(url, "/%s", r->subresource);
    add_query(url, "labelSelector", r->labels);
    add_number(url, "limit", r->limit);
    add_query(url, "continue", r->from);
    if (verb == KUBE_WATCH) {
        str_adds(url, strchr(url->data, '?') ? "&watch=1" : "?watch=1");
        str_adds(url, "&allowWatchBookmarks=true");
        add_query(url, "resourceVersion", r->version);
        add_number(url, "timeoutSeconds", r->seconds);
    }
    add_query(url, "fieldManager", writes ? call->kube->options.manager : NULL);
    add_query(url, "force", verb == KUBE_APPLY ? "true" : NULL);
    add_query(url, "dryRun", r->dry_run && (writes || verb == KUBE_DELETE) ? "All" : NULL);
}

static void write_delete(struct kube_call *call)
{
    const struct kube_request *r = &call->request;
    struct js *options = js_object();
    js_set_string(options, "apiVersion", "v1");
    js_set_string(options, "kind", "DeleteOptions");
    js_set_string(options, "propagationPolicy", "Background");
    if (r->grace_s)
        js_set_int(options, "gracePeriodSeconds", r->grace_s);
    if (r->uid) {
        struct js *only = js_object();
        js_set_string(only, "uid", r->uid);
        js_set(options, "preconditions", only);
    }
    js_print(options, &call->body);
    js_free(options);
}

static const char *content_type(enum kube_verb verb)
{
    return verb == KUBE_APPLY   ? "Content-Type: application/apply-patch+yaml" /* JSON is YAML */
           : verb == KUBE_MERGE ? "Content-Type: application/merge-patch+json"
                                : "Content-Type: application/json";
}

/* --- answers --- */

static void unlink_call(struct kube_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    else if (call->line)
        call->line->end = call->link;
    if (call->line)
        call->line->count--;
    call->line = NULL;
}

static void call_free(struct kube_call *call)
{
    struct kube *kube = call->kube;
    bool waited = call->line;
    http_cancel(call->http);
    unlink_call(call);
    kube->sent_count -= !waited && call->request.verb != KUBE_WATCH;
    if (kube->waiting.first || kube->late.first) /* there is a place now */
        loop_timer_set(kube->timer, loop_now(kube->loop));
    str_clear(&call->url);
    str_clear(&call->body);
    str_clear(&call->answer);
    while (call->text_count)
        free(call->texts[--call->text_count]);
    free(call);
}

static void header_came(void *ctx, int status, const char *name, const char *value)
{
    struct kube_call *call = ctx;
    (void)status;
    if (!strcasecmp(name, "Retry-After")) {
        long seconds = strtol(value, NULL, 10);
        call->retry_after = (seconds < 0 ? 0 : seconds < 300 ? seconds : 300) * RM_S;
    }
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct kube_call *call = ctx;
    if (status == 200 && call->request.bytes)
        return call->request.bytes(call->request.ctx, bytes, count);
    str_add(&call->answer, bytes, count);
    return call->answer.truncated ? -1 : 0;
}

static void read_failure(struct kube_answer *ret, const struct http_answer *answer)
{
    static const enum kube_outcome outcomes[] = {
        [HTTP_NO_CONNECTION] = KUBE_UNREACHABLE, [HTTP_SILENT] = KUBE_UNREACHABLE,
        [HTTP_BROKEN] = KUBE_UNREACHABLE,        [HTTP_UNTRUSTED] = KUBE_UNTRUSTED,
        [HTTP_DECLINED] = KUBE_BROKEN,
    };
    *ret = (struct kube_answer){.outcome = outcomes[answer->outcome]};
    text_copy(ret->message, sizeof ret->message, answer->why);
}

static int transmit(struct kube_call *call, struct error *err);

/* Is this create to be answered with what is there? Then it goes on as a GET. */
static bool read_again(struct kube_call *call, const struct kube_answer *answer)
{
    if (call->rereading || !call->request.read_existing || answer->outcome != KUBE_EXISTS)
        return false;
    call->rereading = true;
    call->answer.length = 0;
    str_reset(&call->body);
    return transmit(call, NULL) == 0;
}

/* Who is refused for what he is, or for there being too many, may be so before all that he sends was read;
 * then the answer can end after its head (one in fifty of an API server under load): its status says enough.
 */
static bool is_answer(const struct http_answer *http)
{
    bool early = http->status == 401 || http->status == 403 || http->status == 429;
    return http->outcome == HTTP_ANSWERED || (http->outcome == HTTP_BROKEN && early);
}

static void answered(void *ctx, const struct http_answer *http)
{
    struct kube_call *call = ctx;
    struct kube *kube = call->kube;
    struct kube_request request = call->request;
    struct kube_answer answer;
    struct js *tree = NULL;
    call->http = NULL;
    if (!is_answer(http))
        read_failure(&answer, http);
    else if (http->status == 200 && request.bytes)
        answer = (struct kube_answer){.outcome = KUBE_OK, .status = 200};
    else
        kube_answer_read(&answer, &tree, http->status, str_text(&call->answer), call->answer.length);
    if (call->retry_after > answer.retry_after)
        answer.retry_after = call->retry_after;
    answer.sent = call->begun;
    kube->refused = answer.status == 401;
    if (kube->options.answered)
        kube->options.answered(kube->options.ctx, &request, &answer, clock_now() - call->begun);
    if (!read_again(call, &answer)) {
        if (call->rereading && answer.outcome == KUBE_OK)
            answer.outcome = KUBE_EXISTS;
        if (request.done)
            request.done(request.ctx, &answer);
        call_free(call);
    }
    js_free(tree);
}

/* --- sending --- */

static bool is_elsewhere(const char *server)
{
    const char *host = strstr(server, "://");
    return host && !http_is_own_machine(host + 3);
}

static int transmit(struct kube_call *call, struct error *err)
{
    struct kube *kube = call->kube;
    struct kube_request *r = &call->request;
    struct str bearer = str_init(KUBE_TEXT_MAX + 64);
    const char *headers[HEADERS_MAX] = {"Accept: application/json"};
    int count = 1;
    bool watches = r->verb == KUBE_WATCH;
    kube_config_refresh(kube->options.config, kube->refused, loop_now(kube->loop));
    if (kube->options.config->token.length) {
        str_addf(&bearer, "Authorization: Bearer %s", str_text(&kube->options.config->token));
        headers[count++] = str_text(&bearer);
    }
    if (call->body.length)
        headers[count++] = content_type(r->verb);
    write_url(call);
    call->begun = clock_now();
    call->run = (struct http_run){call->body.data, call->body.length};
    struct http_request request = {
        .method = call->rereading ? "GET" : verbs[r->verb].method,
        .url = str_text(&call->url),
        .header = headers,
        .headers = count,
        .body = &call->run,
        .runs = call->body.length ? 1 : 0,
        .silent_within = r->silent_within,
        .within = watches ? 0 : (r->within ? r->within : answer_within),
        .identity = &kube->identity,
        .lost_within = lost_within,
        .buffer = BUFFER_BYTES,
        .http2 = true,
        .proxy = is_elsewhere(kube->options.config->server),
        .header_came = header_came,
        .body_came = body_came,
        .done = answered,
        .ctx = call,
    };
    int result = http_start(watches ? kube->watches : kube->requests, &call->http, &request, err);
    if (bearer.data)
        explicit_bzero(bearer.data, bearer.capacity);
    str_clear(&bearer);
    return result;
}

static void link_call(struct kube_call *call, struct kube_call **link)
{
    call->link = link;
    call->next = *link;
    if (call->next)
        call->next->link = &call->next;
    *link = call;
}

static void fail_later(struct kube_call *call)
{
    struct kube_answer answer = {.outcome = KUBE_UNREACHABLE, .message = "no memory for a request"};
    if (call->request.done)
        call->request.done(call->request.ctx, &answer);
    call_free(call);
}

/* Moves a call that waits to those sent. */
static void send_waiting(struct kube *kube, struct kube_call *call)
{
    unlink_call(call);
    link_call(call, &kube->sent);
    kube->sent_count++;
    if (transmit(call, NULL) < 0)
        fail_later(call);
}

/* Whose turn it is; NULL: nobody waits. */
static struct kube_call *next_waiting(struct kube *kube)
{
    bool late = kube->late.first && (!kube->waiting.first || kube->since_late >= LATE_SHARE);
    kube->since_late = late ? 0 : kube->since_late + 1;
    return late ? kube->late.first : kube->waiting.first;
}

static void tokens_came(void *ctx)
{
    struct kube *kube = ctx;
    rm_time when = RM_NEVER;
    while ((kube->waiting.first || kube->late.first) && kube->sent_count < IN_FLIGHT_MAX &&
           bucket_take(&kube->bucket, loop_now(kube->loop), &when))
        send_waiting(kube, next_waiting(kube));
    loop_timer_set(kube->timer, when); /* RM_NEVER: an answer makes a place */
}

static const char *keep_text(struct kube_call *call, const char *text)
{
    if (!text)
        return NULL;
    char *copy = strdup(text);
    if (!copy)
        abort();
    call->texts[call->text_count++] = copy;
    return copy;
}

static struct kube_call *call_new(struct kube *kube, const struct kube_request *request)
{
    struct kube_call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    call->kube = kube;
    call->request = *request;
    call->url = str_init(URL_MAX);
    call->body = str_init(ANSWER_MAX);
    call->answer = str_init(ANSWER_MAX);
    struct kube_request *r = &call->request;
    r->namespace = keep_text(call, r->namespace);
    r->name = keep_text(call, r->name);
    r->subresource = keep_text(call, r->subresource);
    r->labels = keep_text(call, r->labels);
    r->from = keep_text(call, r->from);
    r->version = keep_text(call, r->version);
    r->uid = keep_text(call, r->uid);
    if (r->verb == KUBE_DELETE)
        write_delete(call);
    else if (r->body)
        str_adds(&call->body, r->body);
    r->body = NULL;
    return call;
}

int kube_send(struct kube *kube, struct kube_call **ret, const struct kube_request *request,
              struct error *err)
{
    struct kube_call *call = call_new(kube, request);
    bool at_once = request->verb == KUBE_WATCH || request->urgent;
    struct line *line = request->late ? &kube->late : &kube->waiting;
    if (!call)
        return err_set(err, ERR_MACHINE, "no memory for a request");
    if (ret)
        *ret = call;
    link_call(call, at_once ? &kube->sent : line->end);
    if (!at_once) {
        call->line = line;
        line->end = &call->next;
        line->count++;
        if (kube_waiting(kube) == 1)
            loop_timer_set(kube->timer, loop_now(kube->loop));
        return 0;
    }
    kube->sent_count += request->verb != KUBE_WATCH;
    if (transmit(call, err) == 0)
        return 0;
    call_free(call);
    return -1;
}

void kube_cancel(struct kube_call *call)
{
    if (call)
        call_free(call);
}

int kube_waiting(const struct kube *kube)
{
    return kube->waiting.count + kube->late.count;
}

int kube_in_flight(const struct kube *kube)
{
    return kube->sent_count;
}

static const char *pem(const struct str *text)
{
    return text->length ? text->data : NULL;
}

int kube_open(struct kube **ret, struct loop *loop, const struct kube_options *options, struct error *err)
{
    struct kube *kube = calloc(1, sizeof *kube);
    if (!kube)
        return err_set(err, ERR_MACHINE, "no memory for a Kubernetes client");
    struct kube_config *config = options->config;
    kube->loop = loop;
    kube->options = *options;
    kube->waiting.end = &kube->waiting.first;
    kube->late.end = &kube->late.first;
    kube->identity = (struct http_identity){pem(&config->ca), pem(&config->cert), pem(&config->key)};
    kube->bucket = bucket_init(options->per_second > 0 ? options->per_second : 50,
                               options->burst >= 1 ? options->burst : 100, loop_now(loop));
    if (http_open(&kube->requests, loop, err) < 0 || http_open(&kube->watches, loop, err) < 0 ||
        loop_timer_open(&kube->timer, loop, tokens_came, kube, err) < 0) {
        kube_free(kube);
        return -1;
    }
    *ret = kube;
    return 0;
}

/* Each leaves the list by itself; said here, too, for the analyzer. */
static void free_all(struct kube_call **first)
{
    while (*first) {
        struct kube_call *call = *first;
        *first = call->next;
        call_free(call);
    }
}

void kube_free(struct kube *kube)
{
    if (!kube)
        return;
    free_all(&kube->waiting.first);
    free_all(&kube->late.first);
    free_all(&kube->sent);
    http_free(kube->requests);
    http_free(kube->watches);
    loop_timer_free(kube->timer);
    free(kube);
}
