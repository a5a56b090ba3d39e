/* Puts the operator together: who leads, what is watched, what is told by HTTP, and what happens when the
 * lease or the API server is lost. */
#include "operator/app.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/kube/lease.h"
#include "common/net/ws.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/crypto.h"
#include "common/os/log.h"
#include "operator/core/claims.h"
#include "operator/core/plan.h"
#include "operator/metrics_jobs.h"
#include "operator/price_file.h"
#include "operator/reconcile.h"
#include "operator/rivals.h"
#include "operator/work.h"

enum { STRANGERS_MAX = 32, WATCHERS_MAX = 32, PAGE_MAX = 2 << 20, SOURCES = 6, HTTPS = 64 };

static const rm_time stop_within = 5 * RM_S; /* for writes under way, at the end */

struct app;

/* One kind of object. */
struct source {
    struct app *app;
    enum op_resource resource; /* OP_RESOURCES: nodes */
    struct reflector *reflector;
    bool denied;
    int troubles; /* in a row */
};

struct app {
    const struct operator_options *options;
    struct loop *loop;
    struct loop_signal *term, *interrupt;
    struct loop_timer *stopping;
    struct kube_config config;
    bool config_read;
    /* To coordinators. curl goes through all connections of one with each request, and ten thousand are too
     * many for that. */
    struct http *http[HTTPS];
    struct kube *kube;
    struct ws *ws;
    struct lease *lease;
    struct rivals *rivals; /* NULL: nobody else is looked for */
    struct recorder *recorder;
    struct reconciler *reconciler;
    struct cache cache;
    bool watch_tells; /* a change of the cache that is under way comes from a watch, not from an answer */
    struct metrics metrics;
    struct price_file *prices; /* NULL: there are none */
    struct source source[SOURCES];
    char identity[128], instance[64];
    bool leading; /* the lease is ours, or there is none */
    bool acting, ready, ending;
    rm_time stop_at;
    struct error end; /* why it can't go on; ERR_NONE: it was told to stop */
};

static bool may_write(void *ctx)
{
    struct app *app = ctx;
    return app->acting && (!app->lease || lease_leading(app->lease));
}

static bool leaves_out(void *ctx, const char *namespace)
{
    struct app *app = ctx;
    return rivals_leave_out(app->rivals, namespace);
}

/* --- the reflectors --- */

static const struct kube_resource *resource_of(const struct source *source)
{
    return source->resource == OP_RESOURCES ? &kube_nodes : work_resource(source->resource);
}

/* The kinds that no decision is made without. Nodes may be denied. What lies around pods is waited for while
 * nothing is wrong with its list: who knows it all has nothing to apply of jobs that run. */
static bool is_complete(const struct app *app)
{
    for (int i = 0; i < SOURCES; i++) {
        const struct source *source = &app->source[i];
        bool needed = source->resource == OP_JOBS || source->resource == OP_PODS ||
                      (source->resource == OP_RESOURCES ? !source->denied : !source->troubles);
        if (needed && (!source->reflector || !reflector_synced(source->reflector)))
            return false;
    }
    return true;
}

static void look_if_complete(struct app *app)
{
    if (app->ready || !is_complete(app))
        return;
    app->ready = true;
    log_info("the caches are complete", "jobs=%zu pods=%zu nodes=%zu", app->cache.jobs.count,
             app->cache.pods.count, app->cache.nodes.count);
    reconciler_start(app->reconciler);
}

static void listing(void *ctx)
{
    struct source *source = ctx;
    source->app->metrics.relists++;
    if (source->resource == OP_RESOURCES)
        cache_nodes_listing(&source->app->cache);
    else
        cache_listing(&source->app->cache, source->resource);
}

/* A list has come, or a watch goes on: what could not be seen (nodes) can be. */
static void is_seen(struct source *source)
{
    struct app *app = source->app;
    source->troubles = 0;
    if (!source->denied)
        return;
    source->denied = app->cache.nodes_denied = false;
    log_info("nodes are to be seen again", "nodes=%zu", app->cache.nodes.count);
    if (app->ready)
        reconciler_look_at_all(app->reconciler);
}

static void listed(void *ctx)
{
    struct source *source = ctx;
    struct app *app = source->app;
    if (source->resource == OP_RESOURCES)
        cache_nodes_listed(&app->cache);
    else
        cache_listed(&app->cache, source->resource);
    is_seen(source);
    look_if_complete(app);
}

static void heard(void *ctx)
{
    is_seen(ctx);
}

static void object_came(void *ctx, enum kube_change change, const struct js *object)
{
    struct source *source = ctx;
    struct error err = {0};
    source->app->watch_tells = true;
    if (source->resource == OP_RESOURCES)
        cache_node(&source->app->cache, change, object);
    else if (!cache_object(&source->app->cache, source->resource, change, object, &err))
        log_warn("an object is passed over", "resource=%s why=\"%s\"", resource_of(source)->plural, err.text);
    source->app->watch_tells = false;
}

/* Said when it begins, and again each time that the number of failures doubles. */
static bool is_said(int failures)
{
    return (failures & (failures - 1)) == 0;
}

static void event_lost(void *ctx, const struct kube_answer *answer, int n)
{
    (void)ctx;
    if (is_said(n))
        log_warn("an event is lost", "code=%d outcome=\"%s\" in_a_row=%d why=\"%s\"", answer->status,
                 kube_outcome_name(answer->outcome), n, answer->message);
}

static void trouble(void *ctx, const struct kube_answer *answer, rm_time again_in)
{
    struct source *source = ctx;
    struct app *app = source->app;
    app->metrics.watch_troubles++;
    if (is_said(++source->troubles))
        log_warn("a list or watch failed", "resource=%s code=%d outcome=\"%s\" again_ms=%.0f why=\"%s\"",
                 resource_of(source)->plural, answer->status, kube_outcome_name(answer->outcome),
                 rm_ms(again_in), answer->message);
    look_if_complete(app);
    if (source->resource != OP_RESOURCES || answer->outcome != KUBE_DENIED || source->denied)
        return;
    source->denied = app->cache.nodes_denied = true;
    log_warn("nodes are not to be seen", "why=\"going on with the conditions of pods and the coordinators' "
                                         "reports\"");
    look_if_complete(app);
}

static int watch_all(struct app *app, struct error *err)
{
    static const enum op_resource kinds[SOURCES] = {OP_JOBS,     OP_PODS,    OP_RESOURCES,
                                                    OP_SERVICES, OP_BUDGETS, OP_POLICIES};
    for (int i = 0; i < SOURCES; i++) {
        struct source *source = &app->source[i];
        *source = (struct source){.app = app, .resource = kinds[i]};
        bool labelled = kinds[i] != OP_JOBS && kinds[i] != OP_RESOURCES;
        struct reflector_options options = {.kube = app->kube,
                                            .resource = resource_of(source),
                                            .namespace = app->options->namespace,
                                            .labels = labelled ? OP_LABEL_JOB : NULL,
                                            .seed = crypto_seed(),
                                            .listing = listing,
                                            .object = object_came,
                                            .listed = listed,
                                            .heard = heard,
                                            .trouble = trouble,
                                            .ctx = source};
        if (reflector_open(&source->reflector, app->loop, &options, err) < 0)
            return -1;
    }
    return 0;
}

/* --- leading --- */

static void give_up(struct app *app, const struct error *why)
{
    app->end = *why;
    app->ending = true;
    reconciler_stop(app->reconciler);
    loop_stop(app->loop);
}

static void act_as_leader(struct app *app, const char *why)
{
    struct error err;
    log_info("leading", "identity=%s why=\"%s\"", app->identity, why);
    app->leading = app->acting = true;
    if (watch_all(app, &err) < 0)
        give_up(app, &err);
}

static void stopping(void *ctx);

/* What was sent is waited for and the lease given back; the next of us to lead finds out that it has to wait.
 */
static void make_way(struct app *app)
{
    app->acting = false;
    app->ending = true;
    app->stop_at = loop_now(app->loop) + stop_within;
    err_set(&app->end, ERR_PEER, "%s", rivals_why(app->rivals));
    reconciler_stop(app->reconciler);
    stopping(app);
}

static void rivals_changed(void *ctx, bool left)
{
    struct app *app = ctx;
    enum rivals_decision decision = rivals_decision(app->rivals);
    if (app->ending)
        return;
    if (decision == RIVALS_WAIT && app->acting)
        make_way(app);
    else if (decision == RIVALS_ACT && !app->acting)
        act_as_leader(app, "the lease is ours, and no other release acts");
    else if (left && app->ready)
        reconciler_look_at_all(app->reconciler);
}

static const char *lease_namespace(const struct app *app)
{
    return app->options->lease_namespace ? app->options->lease_namespace : app->config.namespace;
}

static const char *lease_label(const struct app *app)
{
    return rivals_label(app->options->namespace, lease_namespace(app));
}

static void lead(struct app *app, const char *why)
{
    struct error err;
    struct rivals_options options = {.kube = app->kube,
                                     .recorder = app->recorder,
                                     .metrics = &app->metrics,
                                     .namespace = app->options->namespace,
                                     .lease_namespace = lease_namespace(app),
                                     .lease_name = app->options->lease_name,
                                     .changed = rivals_changed,
                                     .ctx = app};
    app->leading = true;
    if (!lease_label(app)) {
        log_warn("other releases are not looked for",
                 "why=\"our lease is in the namespace %s and we look after %s "
                 "alone: give --lease-namespace=%s\"",
                 options.lease_namespace, options.namespace, options.namespace);
        act_as_leader(app, why);
    } else if (rivals_open(&app->rivals, app->loop, &options, &err) < 0) {
        give_up(app, &err);
    }
}

static void lease_changed(void *ctx, bool leading, const char *why)
{
    struct app *app = ctx;
    struct error err;
    if (leading) {
        lead(app, why);
        return;
    }
    app->leading = app->acting = false;
    err_set(&err, ERR_PEER, "leading no longer: %s", why);
    give_up(app, &err);
}

static void lease_trouble(void *ctx, const struct kube_answer *answer)
{
    (void)ctx;
    log_warn("the lease", "code=%d outcome=\"%s\" why=\"%s\"", answer->status,
             kube_outcome_name(answer->outcome), answer->message);
}

static int seek_lease(struct app *app, struct error *err)
{
    struct lease_options options = {.kube = app->kube,
                                    .namespace = lease_namespace(app),
                                    .name = app->options->lease_name,
                                    .identity = app->identity,
                                    .label = lease_label(app) ? OP_LABEL_LOOKS_AFTER : NULL,
                                    .value = lease_label(app),
                                    .every = app->options->lease_every,
                                    .changed = lease_changed,
                                    .trouble = lease_trouble,
                                    .ctx = app};
    if (!app->options->lease) {
        act_as_leader(app, "told to, without a lease");
        return 0;
    }
    return lease_open(&app->lease, app->loop, &options, err);
}

/* --- the end --- */

static void stop_now(void *ctx)
{
    struct app *app = ctx;
    loop_stop(app->loop);
}

/* Writes under way are waited for, then the lease is given back. */
static void stopping(void *ctx)
{
    struct app *app = ctx;
    rm_time now = loop_now(app->loop);
    if (reconciler_in_work(app->reconciler) && now < app->stop_at)
        loop_timer_set(app->stopping, now + 20 * RM_MS);
    else if (app->lease)
        lease_release(app->lease, stop_now);
    else
        loop_stop(app->loop);
}

static void told_to_stop(void *ctx, int signo)
{
    struct app *app = ctx;
    if (app->ending)
        return;
    log_info("stopping", "signal=%d", signo);
    app->ending = true;
    app->stop_at = loop_now(app->loop) + stop_within;
    reconciler_stop(app->reconciler);
    stopping(app);
}

/* --- HTTP --- */

static bool is_refused(const struct app *app)
{
    return app->rivals && rivals_decision(app->rivals) == RIVALS_WAIT;
}

static void count_now(struct app *app)
{
    struct metrics *m = &app->metrics;
    m->leading = may_write(app);
    m->refused = is_refused(app);
    m->namespaces_left = rivals_left(app->rivals);
    m->jobs = (int)app->cache.jobs.count;
    m->pods = (int)app->cache.pods.count;
    m->nodes = (int)app->cache.nodes.count;
    m->queued = reconciler_queued(app->reconciler);
    m->in_work = reconciler_in_work(app->reconciler);
    m->requests_waiting = kube_waiting(app->kube);
    m->events_lost = recorder_lost(app->recorder);
    m->prices = app->prices ? price_file_prices(app->prices)->count : 0;
    m->prices_refused = price_file_refused(app->prices);
}

/* Ready is who can take its part: a leader with complete caches, or one that has seen who leads. */
static bool is_ready(const struct app *app)
{
    return app->leading ? app->ready : app->lease && *lease_holder(app->lease);
}

static int answer_ready(const struct app *app, struct str *body)
{
    if (is_ready(app)) {
        str_adds(body, "ready\n");
        return 200;
    }
    str_addf(body, "not ready: %s\n",
             is_refused(app) ? rivals_why(app->rivals)
                             : "the caches are not complete, or no leader was seen");
    return 503;
}

static int answer_get(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct app *app = ctx;
    const char *path = get->path;
    *type = "text/plain; charset=utf-8";
    if (!strcmp(path, "/metrics")) {
        count_now(app);
        struct exposition page = exposition_begin(body, metrics_prefix, get->accept);
        metrics_print(&app->metrics, &page);
        metrics_print_jobs(&app->cache, clock_wall_ms(), &page);
        exposition_end(&page);
        *type = exposition_type(&page);
        return 200;
    }
    if (!strcmp(path, "/healthz")) {
        str_adds(body, "ok\n");
        return 200;
    }
    if (strcmp(path, "/readyz") != 0)
        return 404;
    return answer_ready(app, body);
}

static int serve_pages(struct app *app, struct error *err)
{
    struct ws_options options = {.address = app->options->listen,
                                 .port = app->options->port,
                                 .strangers_max = STRANGERS_MAX,
                                 .watchers_max = WATCHERS_MAX,
                                 .queue_max = PAGE_MAX,
                                 .get = answer_get,
                                 .ctx = app};
    if (ws_open(&app->ws, app->loop, &options, err) < 0)
        return -1;
    log_info("listening", "address=%s port=%d", app->options->listen, ws_port(app->ws));
    return 0;
}

/* --- the whole --- */

static void job_changed(void *ctx, struct job_entry *job)
{
    struct app *app = ctx;
    (app->watch_tells ? reconciler_heard : reconciler_changed)(app->reconciler, job);
}

static void job_removed(void *ctx, struct job_entry *job)
{
    reconciler_removed(((struct app *)ctx)->reconciler, job);
}

/* What waits for a price has one now, or costs another one. */
static void prices_changed(void *ctx)
{
    struct app *app = ctx;
    if (app->ready)
        reconciler_look_at_all(app->reconciler);
}

static int open_prices(struct app *app, struct error *err)
{
    if (app->options->prices)
        return price_file_open(&app->prices, app->loop, app->options->prices, prices_changed, app, err);
    log_info("there are no prices", "why=\"no --prices; status.cost has the hours of machines instead\"");
    return 0;
}

static void request_answered(void *ctx, const struct kube_request *request, const struct kube_answer *answer,
                             rm_time took)
{
    metrics_request(&((struct app *)ctx)->metrics, request, answer, took);
}

static int read_config(struct app *app, struct error *err)
{
    const char *path = app->options->kubeconfig ? app->options->kubeconfig : config_get(CONFIG_KUBECONFIG);
    int result = path ? kube_config_read(&app->config, path, app->options->context, clock_now(), err)
                      : kube_config_in_pod(&app->config, NULL, clock_now(), err);
    app->config_read = result == 0;
    return result;
}

/* The host's name is the pod's; what is behind it tells a pod that started again from the one before. */
static void name_self(struct app *app)
{
    uint8_t chance[4];
    char hex[2 * sizeof chance + 1];
    if (gethostname(app->instance, sizeof app->instance - 1) < 0 || !*app->instance)
        text_copy(app->instance, sizeof app->instance, "ringmaster-operator");
    crypto_random(chance, sizeof chance);
    hex_encode(chance, sizeof chance, hex);
    snprintf(app->identity, sizeof app->identity, "%s_%s", app->instance, hex);
}

static int open_client(struct app *app, struct error *err)
{
    struct kube_options options = {.config = &app->config,
                                   .manager = OP_MANAGER,
                                   .per_second = app->options->per_second,
                                   .burst = app->options->burst,
                                   .answered = request_answered,
                                   .ctx = app};
    for (int i = 0; i < HTTPS; i++) {
        if (http_open(&app->http[i], app->loop, err) < 0)
            return -1;
        http_keep_all(app->http[i]);
    }
    if (read_config(app, err) < 0 || kube_open(&app->kube, app->loop, &options, err) < 0)
        return -1;
    struct recorder_options recorder = {.kube = app->kube,
                                        .controller = OP_MANAGER,
                                        .instance = app->instance,
                                        .trouble = event_lost,
                                        .ctx = app};
    return recorder_open(&app->recorder, app->loop, &recorder, err);
}

static int open_all(struct app *app, struct error *err)
{
    if (loop_open(&app->loop, err) < 0 || open_client(app, err) < 0 ||
        loop_timer_open(&app->stopping, app->loop, stopping, app, err) < 0 ||
        loop_signal_open(&app->term, app->loop, SIGTERM, told_to_stop, app, err) < 0 ||
        loop_signal_open(&app->interrupt, app->loop, SIGINT, told_to_stop, app, err) < 0 ||
        open_prices(app, err) < 0)
        return -1;
    struct reconciler_options options = {.loop = app->loop,
                                         .kube = app->kube,
                                         .http = app->http,
                                         .https = HTTPS,
                                         .cache = &app->cache,
                                         .recorder = app->recorder,
                                         .metrics = &app->metrics,
                                         .prices = app->prices,
                                         .settings = app->options->settings,
                                         .coordinator_port = app->options->coordinator_port,
                                         .may_write = may_write,
                                         .leaves_out = leaves_out,
                                         .ctx = app};
    if (!options.settings.operator_namespace)
        options.settings.operator_namespace = app->config.namespace;
    app->cache.changed = job_changed;
    app->cache.removed = job_removed;
    app->cache.ctx = app;
    if (reconciler_open(&app->reconciler, &options, err) < 0 || serve_pages(app, err) < 0)
        return -1;
    return seek_lease(app, err);
}

static void close_all(struct app *app)
{
    for (int i = 0; i < SOURCES; i++)
        reflector_free(app->source[i].reflector);
    rivals_free(app->rivals);
    lease_free(app->lease);
    kube_free(app->kube);
    reconciler_free(app->reconciler);
    recorder_free(app->recorder);
    cache_clear(&app->cache);
    price_file_free(app->prices);
    for (int i = 0; i < HTTPS; i++)
        http_free(app->http[i]);
    ws_free(app->ws);
    loop_timer_free(app->stopping);
    loop_signal_free(app->term);
    loop_signal_free(app->interrupt);
    loop_free(app->loop);
    if (app->config_read)
        kube_config_clear(&app->config);
}

int app_run(const struct operator_options *options, struct error *err)
{
    struct app *app = calloc(1, sizeof *app);
    if (!app)
        return err_set(err, ERR_MACHINE, "no memory for the operator");
    app->options = options;
    name_self(app);
    int result = open_all(app, err);
    if (result == 0 && !app->end.code) {
        loop_run(app->loop);
        if (app->end.code) {
            *err = app->end;
            result = -1;
        }
    }
    close_all(app);
    free(app);
    return result;
}
