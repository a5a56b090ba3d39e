/* The Kubernetes client by hand, for tests against a real API server. KUBECONFIG says where.
 *
 *   kube_tool watch RESOURCE [NAMESPACE]         "listing", "added NS/NAME", "listed", "trouble OUTCOME"...
 *   kube_tool VERB[:SUBRESOURCE] RESOURCE NAMESPACE NAME [UID]
 *                                                VERB: get, create, try, apply, merge, update, delete
 *   kube_tool lease NAMESPACE NAME IDENTITY      "leading", "lost"; SIGTERM gives it back: "released"
 *   kube_tool many N NAMESPACE [RESOURCE]        creates N times the object of standard input (a pod), as
 * fast as it can
 *
 * Bodies come on standard input. A request prints {"outcome":...,"status":...,"reason":...,"message":...,
 * "object":...}. Errors are one sentence, with the documented exit code. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/kube/lease.h"
#include "common/kube/reflector.h"
#include "common/os/clock.h"
#include "common/os/config.h"

enum { BODY_MAX = 4 << 20, AT_ONCE = 32 };

struct tool {
    struct loop *loop;
    struct kube *kube;
    struct kube_config config;
    struct lease *lease;
    struct str body;
    const char *namespace;
    const struct kube_resource *resource;
    int wanted, begun, ended, failed; /* many */
    int result;
};

static void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fflush(stdout);
}

/* --- watch --- */

static void listing(void *ctx)
{
    (void)ctx;
    say("listing\n");
}

static void listed(void *ctx)
{
    (void)ctx;
    say("listed\n");
}

static void object(void *ctx, enum kube_change change, const struct js *found)
{
    static const char *const words[] = {"added", "modified", "deleted"};
    const struct js *metadata = js_get(found, "metadata");
    const char *namespace = js_as_string(js_get(metadata, "namespace"));
    (void)ctx;
    say("%s %s/%s\n", words[change], namespace ? namespace : "", js_as_string(js_get(metadata, "name")));
}

static void trouble(void *ctx, const struct kube_answer *answer, rm_time again_in)
{
    (void)ctx, (void)again_in;
    say("trouble %s: %d %s\n", kube_outcome_name(answer->outcome), answer->status, answer->message);
}

static int watch(struct tool *tool, int argc, char **argv, struct error *err)
{
    struct reflector *reflector;
    struct reflector_options options = {.kube = tool->kube,
                                        .resource = kube_resource_find(argv[2]),
                                        .namespace = argc > 3 ? argv[3] : NULL,
                                        .page = 3,
                                        .seed = 1,
                                        .listing = listing,
                                        .object = object,
                                        .listed = listed,
                                        .trouble = trouble,
                                        .ctx = tool};
    if (!options.resource)
        return err_set(err, ERR_USAGE, "no resource \"%s\"", argv[2]);
    if (reflector_open(&reflector, tool->loop, &options, err) < 0)
        return -1;
    loop_run(tool->loop);
    reflector_free(reflector);
    return 0;
}

/* --- one request --- */

static void print_answer(const struct kube_answer *answer)
{
    struct str line = str_init(BODY_MAX);
    struct js *out = js_object();
    js_set_string(out, "outcome", kube_outcome_name(answer->outcome));
    js_set_int(out, "status", answer->status);
    js_set_string(out, "reason", answer->reason);
    js_set_string(out, "message", answer->message);
    js_set(out, "object", answer->object ? js_copy(answer->object) : js_new_null());
    js_print(out, &line);
    say("%s\n", str_text(&line));
    js_free(out);
    str_clear(&line);
}

static void answered(void *ctx, const struct kube_answer *answer)
{
    struct tool *tool = ctx;
    print_answer(answer);
    loop_stop(tool->loop);
}

static bool verb_of(const char *word, enum kube_verb *ret)
{
    static const char *const words[] = {
        [KUBE_GET] = "get",     [KUBE_LIST] = "",       [KUBE_WATCH] = "",        [KUBE_CREATE] = "create",
        [KUBE_APPLY] = "apply", [KUBE_MERGE] = "merge", [KUBE_UPDATE] = "update", [KUBE_DELETE] = "delete"};
    size_t length = strcspn(word, ":");
    for (int i = 0; i <= KUBE_DELETE; i++)
        if (length && strlen(words[i]) == length && !strncmp(words[i], word, length)) {
            *ret = (enum kube_verb)i;
            return true;
        }
    *ret = KUBE_CREATE;
    return !strcmp(word, "try");
}

static int read_body(struct tool *tool, struct error *err)
{
    char piece[4096];
    for (ssize_t n; (n = read(STDIN_FILENO, piece, sizeof piece)) > 0;)
        str_add(&tool->body, piece, (size_t)n);
    return tool->body.truncated ? err_set(err, ERR_USAGE, "a body over 4 MiB") : 0;
}

static int request(struct tool *tool, int argc, char **argv, struct error *err)
{
    struct kube_request request = {.resource = kube_resource_find(argv[2]), .done = answered, .ctx = tool};
    const char *colon = strchr(argv[1], ':');
    if (argc < 5 || !request.resource || !verb_of(argv[1], &request.verb))
        return err_set(err, ERR_USAGE, "kube_tool VERB[:SUBRESOURCE] RESOURCE NAMESPACE NAME [UID]");
    bool has_body = request.verb != KUBE_GET && request.verb != KUBE_DELETE;
    if (has_body && read_body(tool, err) < 0)
        return -1;
    request.namespace = argv[3];
    request.name = argv[4];
    request.subresource = colon ? colon + 1 : NULL;
    request.body = has_body ? str_text(&tool->body) : NULL;
    request.dry_run = !strcmp(argv[1], "try");
    request.read_existing = request.verb == KUBE_CREATE && !colon;
    request.uid = argc > 5 ? argv[5] : NULL;
    if (kube_send(tool->kube, NULL, &request, err) < 0)
        return -1;
    loop_run(tool->loop);
    return 0;
}

/* --- the lease --- */

static void changed(void *ctx, bool leading, const char *why)
{
    struct tool *tool = ctx;
    say(leading ? "leading\n" : "lost: %s\n", why);
    if (!leading)
        loop_stop(tool->loop);
}

static void released(void *ctx)
{
    struct tool *tool = ctx;
    say("released\n");
    loop_stop(tool->loop);
}

static void told_to_stop(void *ctx, int signo)
{
    struct tool *tool = ctx;
    (void)signo;
    lease_release(tool->lease, released);
}

static int lease(struct tool *tool, char **argv, struct error *err)
{
    struct loop_signal *term;
    struct lease_options options = {.kube = tool->kube,
                                    .namespace = argv[2],
                                    .name = argv[3],
                                    .identity = argv[4],
                                    .every = 500 * RM_MS,
                                    .changed = changed,
                                    .ctx = tool};
    if (lease_open(&tool->lease, tool->loop, &options, err) < 0 ||
        loop_signal_open(&term, tool->loop, SIGTERM, told_to_stop, tool, err) < 0)
        return -1;
    loop_run(tool->loop);
    loop_signal_free(term);
    lease_free(tool->lease);
    return 0;
}

/* --- many creates --- */

static void create_next(struct tool *tool);

static void created(void *ctx, const struct kube_answer *answer)
{
    struct tool *tool = ctx;
    tool->ended++;
    tool->failed += answer->outcome != KUBE_OK;
    if (answer->outcome != KUBE_OK && tool->failed == 1)
        print_answer(answer);
    if (tool->begun < tool->wanted)
        create_next(tool);
    else if (tool->ended == tool->wanted)
        loop_stop(tool->loop);
}

static void create_next(struct tool *tool)
{
    struct kube_request request = {.verb = KUBE_CREATE,
                                   .resource = tool->resource,
                                   .namespace = tool->namespace,
                                   .body = str_text(&tool->body),
                                   .done = created,
                                   .ctx = tool};
    tool->begun++;
    if (kube_send(tool->kube, NULL, &request, NULL) < 0)
        abort();
}

static int many(struct tool *tool, int argc, char **argv, struct error *err)
{
    tool->resource = argc > 4 ? kube_resource_find(argv[4]) : &kube_pods;
    if (!tool->resource)
        return err_set(err, ERR_USAGE, "no resource \"%s\"", argv[4]);
    if (read_body(tool, err) < 0)
        return -1;
    tool->wanted = (int)strtol(argv[2], NULL, 10);
    tool->namespace = argv[3];
    rm_time begun = clock_now();
    while (tool->begun < tool->wanted && tool->begun < AT_ONCE)
        create_next(tool);
    loop_run(tool->loop);
    double seconds = (double)(clock_now() - begun) / (double)RM_S;
    say("{\"created\":%d,\"failed\":%d,\"seconds\":%.3f,\"per_second\":%.1f}\n", tool->ended - tool->failed,
        tool->failed, seconds, tool->ended / seconds);
    return 0;
}

static int run(struct tool *tool, int argc, char **argv, struct error *err)
{
    const char *path = config_get(CONFIG_KUBECONFIG);
    struct kube_options options = {
        .config = &tool->config, .manager = "kube_tool", .per_second = 100000, .burst = 100000};
    tool->body = str_init(BODY_MAX);
    if (argc < 3)
        return err_set(err, ERR_USAGE, "kube_tool watch|lease|many|VERB ...; its source tells more");
    if ((path ? kube_config_read(&tool->config, path, NULL, clock_now(), err)
              : kube_config_in_pod(&tool->config, NULL, clock_now(), err)) < 0 ||
        loop_open(&tool->loop, err) < 0 || kube_open(&tool->kube, tool->loop, &options, err) < 0)
        return -1;
    if (!strcmp(argv[1], "watch"))
        return watch(tool, argc, argv, err);
    if (!strcmp(argv[1], "lease") && argc == 5)
        return lease(tool, argv, err);
    if (!strcmp(argv[1], "many") && argc >= 4)
        return many(tool, argc, argv, err);
    return request(tool, argc, argv, err);
}

int main(int argc, char **argv)
{
    struct tool tool = {0};
    struct error err = {0};
    int result = run(&tool, argc, argv, &err);
    if (result < 0)
        fprintf(stderr, "kube_tool: %s\n", err.text);
    kube_free(tool.kube);
    loop_free(tool.loop);
    str_clear(&tool.body);
    return result < 0 ? error_exit_code(err.code) : 0;
}
