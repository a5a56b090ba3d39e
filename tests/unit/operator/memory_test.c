/* What ten thousand running jobs take of the operator's memory, against the limit that the chart gives it:
 * jobs and pods in the caches, and their coordinators, each asked over a connection of its own. Measured with
 * some, and by what malloc has handed out. */
#include <criterion/criterion.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/file.h"
#include "common/wire/json.h"
#include "operator/cache.h"
#include "operator/core/pod.h"
#include "operator/core/read.h"
#include "operator/poller.h"
#include "tests/unit/common/net/stub.h"

enum { JOBS = 100, WORKERS = 8, MANY = 10000, EMPTY_MIB = 64 };

struct desk {
    struct loop *loop;
    struct http *http;
    struct answers *answers;
    struct poller *poller[JOBS];
    struct coordinator_view *view[JOBS];
    int told;
};

static struct cache cache;

static void nothing(void *ctx, struct job_entry *job)
{
    (void)ctx, (void)job;
}

/* The first answer is as long as a job of hours has it, the next one does not come. */
static enum stub_then answer(void *ctx, const struct stub_request *request, struct str *out)
{
    struct str body = str_init(64 << 10);
    (void)ctx;
    if (strstr(request->target, "after="))
        return STUB_HANG;
    str_adds(&body, "{\"revision\":17,\"job\":\"u1\",\"term\":3,\"state\":\"Training\",\"events\":[");
    for (int i = 0; i < OP_COORDINATOR_EVENTS_MAX; i++)
        str_addf(
            &body,
            "%s{\"sequence\":%d,\"time\":1790000000000,\"event\":\"checkpointSaved\",\"step\":%d,\"uri\":"
            "\"s3://models/gpt/step-00000100\",\"bytes\":1000000000,\"ms\":1234}",
            i ? "," : "", i + 1, i);
    str_adds(&body, "]}");
    stub_say(out, 200, "", body.data, body.length);
    str_clear(&body);
    return STUB_KEEP;
}

/* The coordinators live in a process of their own, so that their memory counts for nothing here. */
static pid_t start_coordinators(int *ret_port)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
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

static struct js *load(const char *path)
{
    struct error err = {0};
    struct str text = str_init(1 << 20);
    cr_assert_eq(file_read(path, &text, &err), 0, "%s", err.text);
    struct js *object = js_parse(str_text(&text), text.length, path, &err);
    cr_assert(object, "%s", err.text);
    str_clear(&text);
    return object;
}

static struct js *at(const struct js *object, const char *path)
{
    return (struct js *)(uintptr_t)read_at(object, path);
}

static void put(enum op_resource resource, const struct js *object)
{
    struct error err = {0};
    cr_assert(cache_object(&cache, resource, KUBE_ADDED, object, &err), "%s", err.text);
}

static void put_pod(const struct job_view *job, int index)
{
    static const struct op_settings settings = {.worker_image = "image", .operator_namespace = "system"};
    static const struct op_spec spec = {.text = "{}"};
    struct error err = {0};
    struct str text = str_init(OP_POD_TEXT_MAX);
    char uid[64];
    int made = index < 0 ? pod_coordinator(job, &settings, &spec, 1, &text, &err)
                         : pod_worker(job, &settings, NULL, index, 1, &text, &err);
    cr_assert_eq(made, 0, "%s", err.text);
    struct js *pod = js_parse(str_text(&text), text.length, "pod", &err), *status = js_object();
    snprintf(uid, sizeof uid, "%s-%d", job->uid, index);
    js_set_string(at(pod, "metadata"), "uid", uid);
    js_set_string(at(pod, "metadata"), "resourceVersion", "100");
    js_set_string(status, "phase", "Running");
    js_set(pod, "status", status);
    put(OP_PODS, pod);
    js_free(pod);
    str_clear(&text);
}

static void put_job(struct js *object, int number)
{
    char text[64];
    snprintf(text, sizeof text, "job-%d", number);
    js_set_string(at(object, "metadata"), "name", text);
    snprintf(text, sizeof text, "12345678-1234-1234-1234-%012d", number);
    js_set_string(at(object, "metadata"), "uid", text);
    js_set_string(at(object, "metadata"), "resourceVersion", "100");
    put(OP_JOBS, object);
    snprintf(text, sizeof text, "ml/job-%d", number);
    const struct job_entry *job = table_get(&cache.jobs, text);
    cr_assert(job, "%s", text);
    for (int i = -1; i < WORKERS; i++)
        put_pod(&job->view, i);
}

static void told(void *ctx, struct coordinator_view *view)
{
    struct desk *d = ctx;
    coordinator_forget_events(&view);
    d->view[d->told++] = view;
}

static void failed(void *ctx, rm_time asked_at, const char *why)
{
    (void)ctx, (void)asked_at;
    cr_assert(false, "a question fails: %s", why);
}

static void wake(void *ctx)
{
    (void)ctx;
}

static void ask_all(struct desk *d, int port)
{
    struct poller_options options = {
        .http = d->http, .answers = d->answers, .port = port, .told = told, .failed = failed, .ctx = d};
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(poller_open(&d->poller[i], d->loop, &options, NULL), 0);
        poller_ask(d->poller[i], "u1", "127.0.0.1", 3);
    }
    while (d->told < JOBS)
        loop_turn(d->loop, true);
    rm_time until = loop_now(d->loop) + RM_S; /* the next questions are under way */
    struct loop_timer *timer = NULL;
    cr_assert_eq(loop_timer_open(&timer, d->loop, wake, NULL, NULL), 0);
    loop_timer_set(timer, until);
    while (loop_now(d->loop) < until)
        loop_turn(d->loop, true);
    loop_timer_free(timer);
}

/* "2Gi" behind `limits: {memory: `. */
static double limit_of_the_chart(void)
{
    struct error err = {0};
    struct str text = str_init(1 << 20);
    static const char key[] =
        "\n  limits: {memory: "; /* of the operator's own resources, which stand outermost */
    cr_assert_eq(file_read(RM_SOURCE "/charts/ringmaster/values.yaml", &text, &err), 0, "%s", err.text);
    const char *found = strstr(str_text(&text), key);
    cr_assert(found);
    char *unit;
    double value = strtod(found + strlen(key), &unit);
    value *= strncmp(unit, "Gi", 2) == 0 ? 1024 : 1;
    str_clear(&text);
    return value;
}

/* A sanitizer's allocator pads what it hands out, and counts it otherwise. */
#ifdef __SANITIZE_ADDRESS__
enum { COUNTS_AS_MALLOC = 0 };
#else
enum { COUNTS_AS_MALLOC = 1 };
#endif

static size_t handed_out(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

Test(memory, ten_thousand_running_jobs_with_their_coordinators_stay_under_the_charts_limit, .timeout = 120)
{
    int port;
    struct desk d = {0};
    pid_t coordinators = start_coordinators(&port);
    struct js *object = load(RM_SOURCE "/tests/unit/operator/core/golden/job.json");
    cache = (struct cache){.changed = nothing, .removed = nothing};
    cr_assert_eq(loop_open(&d.loop, NULL), 0);
    cr_assert_eq(http_open(&d.http, d.loop, NULL), 0);
    cr_assert_eq(answers_open(&d.answers, d.loop, NULL), 0);
    size_t before = handed_out();
    for (int i = 0; i < JOBS; i++)
        put_job(object, i);
    size_t cached = handed_out();
    ask_all(&d, port);
    double kib = (double)(handed_out() - before) / JOBS / 1024, mib = kib * MANY / 1024 + EMPTY_MIB;
    fprintf(stderr, "%.1f KiB a job, %.1f of them for its coordinator; %d jobs: %.0f MiB\n", kib,
            (double)(handed_out() - cached) / JOBS / 1024, MANY, mib);
    if (COUNTS_AS_MALLOC) {
        cr_assert_gt(kib, 10, "it is measured at all");
        cr_assert_lt(mib, limit_of_the_chart(), "%.1f KiB a job", kib);
    }
    for (int i = 0; i < JOBS; i++) {
        poller_free(d.poller[i]);
        free(d.view[i]);
    }
    answers_free(d.answers);
    http_free(d.http);
    loop_free(d.loop);
    cache_clear(&cache);
    js_free(object);
    kill(coordinators, SIGKILL);
    waitpid(coordinators, NULL, 0);
}
