/* Whom the operator asks, also where it may not have as many connections as there are coordinators. It has no
 * API server here, and may write nothing. */
#include "operator/reconcile.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/file.h"
#include "common/wire/json.h"
#include "operator/core/names.h"
#include "operator/core/read.h"
#include "tests/unit/common/net/stub.h"

enum { JOBS = 60, FILES = 80, PLACES = FILES / 2 };

struct desk {
    struct loop *loop;
    struct http *http;
    struct reconciler *reconciler;
    struct metrics metrics;
    struct cache cache;
    pid_t coordinators;
};

/* In memory that both processes map. */
static struct {
    _Atomic int asked; /* questions of all coordinators */
    char word[256];    /* what they answer; "" : no word of any comes, and who is asked stays asked */
} * shared;

static enum stub_then answer(void *ctx, const struct stub_request *request, struct str *out)
{
    (void)ctx, (void)request;
    shared->asked++;
    if (!*shared->word)
        return STUB_HANG;
    stub_say(out, 200, "", shared->word, strlen(shared->word));
    return STUB_KEEP;
}

/* In a process of their own, with descriptors of their own. */
static pid_t start_coordinators(int *ret_port)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq((void *)shared, MAP_FAILED);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int port = stub_port(stub_open(answer, NULL));
        if (write(ends[1], &port, sizeof port) == sizeof port)
            pause();
        _exit(0);
    }
    cr_assert_eq(read(ends[0], ret_port, sizeof *ret_port), sizeof *ret_port);
    close(ends[0]);
    close(ends[1]);
    return pid;
}

static bool no(void *ctx)
{
    (void)ctx;
    return false;
}

static bool leaves_out(void *ctx, const char *namespace)
{
    (void)ctx, (void)namespace;
    return false;
}

static void changed(void *ctx, struct job_entry *job)
{
    struct desk *d = ctx;
    reconciler_changed(d->reconciler, job);
}

static void removed(void *ctx, struct job_entry *job)
{
    struct desk *d = ctx;
    reconciler_removed(d->reconciler, job);
}

static void desk_open(struct desk *d)
{
    int port;
    struct rlimit limit;
    *d = (struct desk){.cache = {.changed = changed, .removed = removed, .ctx = d}};
    d->coordinators = start_coordinators(&port);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &(struct rlimit){FILES, limit.rlim_max}), 0);
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(http_open(&d->http, d->loop, NULL), 0);
    struct reconciler_options options = {
        .loop = d->loop,
        .http = &d->http,
        .https = 1,
        .cache = &d->cache,
        .metrics = &d->metrics,
        .settings = {.worker_image = "image", .operator_namespace = "system"},
        .coordinator_port = port,
        .may_write = no,
        .leaves_out = leaves_out,
        .ctx = d};
    cr_assert_eq(reconciler_open(&d->reconciler, &options, NULL), 0);
}

static void desk_close(struct desk *d)
{
    reconciler_free(d->reconciler);
    cache_clear(&d->cache);
    http_free(d->http);
    loop_free(d->loop);
    kill(d->coordinators, SIGKILL);
    waitpid(d->coordinators, NULL, 0);
}

static struct js *parse(const char *text)
{
    struct error err = {0};
    struct js *object = js_parse(text, strlen(text), "an object", &err);
    cr_assert(object, "%s", err.text);
    return object;
}

static void put(struct desk *d, enum op_resource resource, enum kube_change change, struct js *object)
{
    struct error err = {0};
    cr_assert(cache_object(&d->cache, resource, change, object, &err), "%s", err.text);
    js_free(object);
}

static struct js *running_job(int number)
{
    struct error err = {0};
    char name[32];
    struct job_status status = {.ring = {.coordinator = {.state = OP_SLOT_PRESENT, .attempt = 1}}};
    struct str text = str_init(1 << 20), written = str_init(OP_STATUS_TEXT_MAX);
    static const char golden[] = RM_SOURCE "/tests/unit/operator/core/golden/job.json";
    cr_assert_eq(file_read(golden, &text, &err), 0, "%s", err.text);
    struct js *job = parse(str_text(&text));
    struct js *metadata = (struct js *)(uintptr_t)js_get(job, "metadata");
    snprintf(name, sizeof name, "job-%d", number);
    text_copy(status.ring.key, sizeof status.ring.key, "key");
    status_write(&status, name, &written);
    js_set_string(metadata, "name", name);
    js_set_string(metadata, "uid", name);
    js_set_string(metadata, "resourceVersion", "100");
    js_set(job, "status", parse(str_text(&written)));
    str_clear(&text);
    str_clear(&written);
    return job;
}

static struct js *its_coordinator(int number)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "{\"metadata\":{\"name\":\"coordinator-%d\",\"namespace\":\"ml\",\"uid\":\"c%d\",\"resourceVersion\":"
        "\"100\",\"labels\":{\"" OP_LABEL_ROLE "\":\"coordinator\",\"" OP_LABEL_TERM
        "\":\"1\"},\"ownerReferences\":[{\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":\"TrainingJob\","
        "\"name\":\"job-%d\",\"uid\":\"job-%d\",\"controller\":true}]},\"spec\":{},\"status\":{\"phase\":"
        "\"Running\",\"podIP\":\"127.0.0.1\"}}",
        number, number, number, number);
    return parse(text);
}

static void until_asked(struct desk *d, int wanted)
{
    while (shared->asked < wanted)
        loop_turn(d->loop, true);
}

/* Those for which there is no place are not asked, and so not said to be silent; when others end, they are.
 */
Test(reconcile, coordinators_have_no_descriptors_that_the_operator_needs_itself, .timeout = 120)
{
    struct desk d;
    desk_open(&d);
    for (int i = 0; i < JOBS; i++) {
        put(&d, OP_JOBS, KUBE_ADDED, running_job(i));
        put(&d, OP_PODS, KUBE_ADDED, its_coordinator(i));
    }
    reconciler_start(d.reconciler);
    until_asked(&d, PLACES);
    for (int i = 0; i < 100; i++)
        loop_turn(d.loop, false);
    cr_assert_eq(shared->asked, PLACES);
    cr_assert_eq(d.metrics.polls_failed, 0);
    cr_assert_eq(reconciler_queued(d.reconciler), JOBS - PLACES, "they are looked at again");
    put(&d, OP_JOBS, KUBE_DELETED, running_job(0));
    until_asked(&d, PLACES + 1);
    desk_close(&d);
}

/* What it said would count as its word without end, with nobody to renew it: a job that is to stop would wait
 * for the next one. */
Test(reconcile, a_coordinator_that_is_asked_no_more_leaves_no_word_behind_that_gets_old, .timeout = 60)
{
    struct desk d;
    char identity[OP_NAME_MAX];
    desk_open(&d);
    name_identity("job-0", "job-0", identity);
    snprintf(shared->word, sizeof shared->word, "{\"revision\":1,\"job\":\"%s\",\"term\":1}", identity);
    put(&d, OP_JOBS, KUBE_ADDED, running_job(0));
    put(&d, OP_PODS, KUBE_ADDED, its_coordinator(0));
    reconciler_start(d.reconciler);
    const struct job_entry *job = table_get(&d.cache.jobs, "ml/job-0");
    cr_assert(job);
    while (!job->coordinator)
        loop_turn(d.loop, true);
    cr_assert_gt(job->answered_ms, 0);
    struct js *nowhere = its_coordinator(0);
    js_set_string((struct js *)(uintptr_t)js_get(nowhere, "metadata"), "resourceVersion", "101");
    js_set(nowhere, "status", parse("{\"phase\":\"Pending\"}"));
    put(&d, OP_PODS, KUBE_MODIFIED, nowhere);
    while (job->coordinator)
        loop_turn(d.loop, true);
    cr_assert_eq(job->answered_ms, 0);
    desk_close(&d);
}
