#include "operator/cache.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static struct cache cache;
static struct str told; /* "+ns/name" for each job that changed, "-ns/name" for each that went */

static void changed(void *ctx, struct job_entry *job)
{
    (void)ctx;
    str_addf(&told, "+%s ", job->key);
}

static void removed(void *ctx, struct job_entry *job)
{
    (void)ctx;
    str_addf(&told, "-%s ", job->key);
    cache_job_free(job);
}

static void setup(void)
{
    cache = (struct cache){.changed = changed, .removed = removed};
    told = str_init(1 << 16);
}

static void teardown(void)
{
    cache_clear(&cache);
    str_clear(&told);
}

TestSuite(cache, .init = setup, .fini = teardown);

static struct js *parse(const char *text)
{
    struct error err;
    struct js *object = js_parse(text, strlen(text), "object", &err);
    cr_assert_not_null(object, "%s in %s", err.text, text);
    return object;
}

static struct js *job_object(const char *uid, int version)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "{\"metadata\":{\"name\":\"gpt\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%d\"},"
        "\"spec\":{\"workers\":{\"target\":2}}}",
        uid, version);
    return parse(text);
}

static struct js *pod_object(const char *name, const char *job_uid, int version, const char *phase)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u-%s\","
        "\"resourceVersion\":\"%d\",\"labels\":{\"" OP_LABEL_JOB "\":\"gpt\",\"" OP_LABEL_UID
        "\":\"%s\",\"" OP_LABEL_ROLE "\":\"worker\",\"" OP_LABEL_WORKER "\":\"0\",\"" OP_LABEL_ATTEMPT
        "\":\"1\"},\"ownerReferences\":[{"
        "\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":\"TrainingJob\",\"name\":\"gpt\",\"uid\":\"%s\","
        "\"controller\":true}]},\"spec\":{\"nodeName\":\"node-1\"},\"status\":{\"phase\":\"%s\"}}",
        name, name, version, job_uid, job_uid, phase);
    return parse(text);
}

/* One that claims to be a pod of that job, the way the caller says. */
static struct js *claimant(const char *namespace, const char *kind, const char *owner, const char *controller)
{
    static int version = 10;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"evil\",\"namespace\":\"%s\",\"uid\":\"u-evil\","
             "\"resourceVersion\":\"%d\",\"labels\":{\"" OP_LABEL_JOB "\":\"gpt\",\"" OP_LABEL_UID
             "\":\"u1\",\"" OP_LABEL_ROLE "\":\"coordinator\",\"" OP_LABEL_TERM
             "\":\"2\"},\"ownerReferences\":[{\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":\"%s\","
             "\"name\":\"%s\",\"uid\":\"u1\"%s}]},\"spec\":{},\"status\":{\"phase\":\"Succeeded\"}}",
             namespace, version++, kind, owner, controller);
    return parse(text);
}

static bool put(enum op_resource resource, enum kube_change change, struct js *object)
{
    struct error err = {0};
    bool taken = cache_object(&cache, resource, change, object, &err);
    js_free(object);
    return taken;
}

static struct job_entry *the_job(void)
{
    return table_get(&cache.jobs, "ns/gpt");
}

static int count_pods(rm_time now)
{
    int count;
    cache_pods(&cache, the_job(), now, &count);
    return count;
}

Test(cache, pods_and_their_job_find_each_other_whichever_comes_first)
{
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 5, "Pending"));
    cr_assert_str_eq(str_text(&told), "", "nobody to tell yet");
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 6));
    put(OP_PODS, KUBE_ADDED, pod_object("b", "u1", 7, "Pending"));
    cr_assert_str_eq(str_text(&told), "+ns/gpt +ns/gpt ");
    cr_assert_eq(count_pods(0), 2);
}

Test(cache, an_older_version_never_replaces_a_newer_one)
{
    int count;
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 100));
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 100, "Running"));
    str_reset(&told);
    put(OP_PODS, KUBE_MODIFIED, pod_object("a", "u1", 99, "Pending"));
    put(OP_JOBS, KUBE_MODIFIED, job_object("u1", 99));
    cr_assert_eq(cache_pods(&cache, the_job(), 0, &count)[0]->phase, OP_RUNNING);
    cr_assert_str_eq(the_job()->view.resource_version, "100");
    cr_assert_str_eq(str_text(&told), "");
    put(OP_PODS, KUBE_MODIFIED, pod_object("a", "u1", 1000, "Failed"));
    cr_assert_eq(cache_pods(&cache, the_job(), 0, &count)[0]->phase, OP_POD_FAILED, "1000 is newer than 100");
}

Test(cache, what_a_new_list_does_not_name_is_gone)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 2, "Running"));
    put(OP_PODS, KUBE_ADDED, pod_object("b", "u1", 3, "Running"));
    str_reset(&told);
    cache_listing(&cache, OP_PODS);
    put(OP_PODS, KUBE_ADDED, pod_object("b", "u1", 3, "Running"));
    cache_listed(&cache, OP_PODS);
    cr_assert_eq(count_pods(0), 1);
    cr_assert_str_eq(str_text(&told), "+ns/gpt ");
    cache_listing(&cache, OP_JOBS);
    cache_listed(&cache, OP_JOBS);
    cr_assert_str_eq(str_text(&told), "+ns/gpt -ns/gpt ");
    cr_assert_null(the_job());
}

Test(cache, what_was_made_while_a_list_was_read_stays)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    cache_listing(&cache, OP_PODS);
    struct js *pod = pod_object("new", "u1", 9, "Pending");
    cache_answer(&cache, OP_PODS, pod, 5 * RM_S);
    js_free(pod);
    cache_listed(&cache, OP_PODS);
    cr_assert_eq(count_pods(6 * RM_S), 1);
}

Test(cache, a_pod_that_an_answer_alone_told_of_is_forgotten)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    struct js *ghost = pod_object("ghost", "u1", 2, "Pending"),
              *real = pod_object("real", "u1", 3, "Pending");
    cache_answer(&cache, OP_PODS, ghost, 5 * RM_S);
    cache_answer(&cache, OP_PODS, real, 5 * RM_S);
    put(OP_PODS, KUBE_ADDED, real); /* the same version, by the watch */
    cr_assert_eq(count_pods(34 * RM_S), 2);
    cr_assert_eq(count_pods(36 * RM_S), 1);
    js_free(ghost);
}

Test(cache, a_pod_whose_end_was_watched_does_not_come_back_by_the_answer_to_its_deletion)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 2, "Pending"));
    put(OP_PODS, KUBE_DELETED, pod_object("a", "u1", 3, "Pending"));
    struct js *late = pod_object("a", "u1", 3, "Pending");
    js_set_string((struct js *)(uintptr_t)js_get(late, "metadata"), "deletionTimestamp",
                  "2026-01-01T00:00:00Z");
    cache_answer(&cache, OP_PODS, late, 5 * RM_S);
    js_free(late);
    cr_assert_eq(count_pods(5 * RM_S), 0);
}

Test(cache, a_namesake_has_nothing_of_the_job_before_it)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 2, "Running"));
    text_copy(the_job()->memo.key, OP_NAME_MAX, "key");
    put(OP_JOBS, KUBE_MODIFIED, job_object("u2", 9));
    cr_assert_eq(count_pods(0), 0);
    cr_assert_str_eq(the_job()->memo.key, "");
    put(OP_JOBS, KUBE_DELETED, job_object("u1", 10)); /* late news of the first */
    cr_assert_not_null(the_job());
    struct js *late = job_object("u1", 11);
    cache_answer(&cache, OP_JOBS, late, 0);
    js_free(late);
    cr_assert_str_eq(the_job()->view.uid, "u2");
}

Test(cache, a_pod_that_only_claims_to_be_of_a_job_is_none_of_its)
{
    static const char controls[] = ",\"controller\":true";
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    str_reset(&told);
    put(OP_PODS, KUBE_ADDED, claimant("elsewhere", "TrainingJob", "gpt", controls));
    put(OP_PODS, KUBE_ADDED, claimant("ns", "TrainingJob", "bert", controls));
    put(OP_PODS, KUBE_ADDED, claimant("ns", "TrainingJob", "gpt", ",\"controller\":false"));
    put(OP_PODS, KUBE_ADDED, claimant("ns", "TrainingJob", "gpt", ""));
    put(OP_PODS, KUBE_ADDED, claimant("ns", "Job", "gpt", controls));
    cr_assert_eq(count_pods(0), 0, "the job's uid alone makes no pod its own");
    cr_assert_str_eq(str_text(&told), "", "and wakes nobody");
    put(OP_PODS, KUBE_ADDED, claimant("ns", "TrainingJob", "gpt", controls));
    cr_assert_eq(count_pods(0), 1);
}

Test(cache, an_answer_brings_no_deleted_job_back)
{
    struct js *late = job_object("u1", 3);
    cache_answer(&cache, OP_JOBS, late, 0);
    js_free(late);
    cr_assert_null(the_job());
}

static struct js *service_object(void)
{
    return parse(
        "{\"metadata\":{\"name\":\"gpt-coordinator\",\"namespace\":\"ns\",\"labels\":{\"" OP_LABEL_JOB
        "\":\"gpt\"}}}");
}

Test(cache, a_service_that_somebody_deletes_is_applied_again)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_SERVICES, KUBE_ADDED, service_object());
    the_job()->memo.applied[OP_APPLIED_SERVICE] = 77;
    the_job()->memo.applied[OP_APPLIED_BUDGET] = 88;
    put(OP_SERVICES, KUBE_DELETED, service_object());
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 0);
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_BUDGET], 88);
    the_job()->memo.applied[OP_APPLIED_SERVICE] = 77;
    put(OP_SERVICES, KUBE_ADDED, service_object());
    cache_listing(&cache, OP_SERVICES); /* deleted while nobody watched */
    cache_listed(&cache, OP_SERVICES);
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 0);
}

static struct js *owned_service(const char *namespace, const char *uid)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"metadata\":{\"name\":\"gpt-coordinator\",\"namespace\":\"%s\",\"labels\":{\"" OP_LABEL_JOB
             "\":\"gpt\"},\"ownerReferences\":[{\"apiVersion\":\"ringmaster.dev/v1alpha1\",\"kind\":"
             "\"TrainingJob\",\"name\":\"gpt\",\"uid\":\"%s\",\"controller\":true}]}}",
             namespace, uid);
    return parse(text);
}

static bool is_own(void)
{
    return cache_has_own(&cache, OP_SERVICES, the_job(), "gpt-coordinator");
}

Test(cache, what_was_applied_and_went_before_it_was_ever_listed_is_applied_again)
{
    static const enum op_resource resources[] = {OP_SERVICES, OP_BUDGETS, OP_POLICIES};
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    for (int i = 0; i < OP_APPLIED; i++)
        the_job()->memo.applied[i] = 77;
    str_reset(&told);
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        cache_listing(&cache, resources[i]);
        if (resources[i] == OP_SERVICES)
            put(OP_SERVICES, KUBE_ADDED, owned_service("ns", "u1"));
        cache_listed(&cache, resources[i]);
    }
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 77, "it is there");
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_BUDGET], 0);
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_WORKERS], 0);
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_COORDINATOR], 0);
    cr_assert_str_eq(str_text(&told), "+ns/gpt +ns/gpt +ns/gpt ");
}

Test(cache, what_lies_around_a_job_is_its_own_where_it_controls_it)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    cr_assert_not(is_own(), "nobody has seen it");
    put(OP_SERVICES, KUBE_ADDED, service_object());
    cr_assert_not(is_own(), "a label is no owner");
    put(OP_SERVICES, KUBE_ADDED, owned_service("elsewhere", "u1"));
    put(OP_SERVICES, KUBE_MODIFIED, owned_service("ns", "u0"));
    cr_assert_not(is_own(), "a namesake's");
    put(OP_SERVICES, KUBE_MODIFIED, owned_service("ns", "u1"));
    cr_assert(is_own());
    put(OP_SERVICES, KUBE_DELETED, owned_service("ns", "u1"));
    cr_assert_not(is_own());
}

/* What somebody has applied, as the API server gives it back. */
static struct js *annotated_service(const char *uid, const char *hash)
{
    struct js *service = owned_service("ns", uid), *annotations = js_object();
    js_set_string(annotations, OP_NOTE_APPLIED, hash);
    js_set((struct js *)(uintptr_t)js_get(service, "metadata"), "annotations", annotations);
    return service;
}

Test(cache, what_an_operator_before_this_one_applied_is_known_by_its_annotation)
{
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_SERVICES, KUBE_ADDED, annotated_service("u0", "4d"));
    cache_recall_applied(&cache, the_job());
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 0, "a namesake's");
    put(OP_SERVICES, KUBE_MODIFIED, annotated_service("u1", "fedcba9876543210"));
    cache_recall_applied(&cache, the_job());
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 0xfedcba9876543210u);
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_BUDGET], 0, "nobody has seen one");
    the_job()->memo.applied[OP_APPLIED_SERVICE] = 77;
    cache_recall_applied(&cache, the_job());
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 77, "what this one did is newer");
    put(OP_SERVICES, KUBE_DELETED, annotated_service("u1", "fedcba9876543210"));
    cache_recall_applied(&cache, the_job());
    cr_assert_eq(the_job()->memo.applied[OP_APPLIED_SERVICE], 0, "it is gone");
}

static void node(const char *text, enum kube_change change)
{
    struct js *object = parse(text);
    cache_node(&cache, change, object);
    js_free(object);
}

Test(cache, a_node_wakes_the_jobs_on_it_when_it_matters_alone)
{
    static const char ready[] =
        "{\"metadata\":{\"name\":\"node-1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\"}]}}";
    static const char lost[] =
        "{\"metadata\":{\"name\":\"node-1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"Unknown\"}]}}";
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_PODS, KUBE_ADDED, pod_object("a", "u1", 2, "Running"));
    node(ready, KUBE_ADDED);
    str_reset(&told);
    node(ready, KUBE_MODIFIED);
    cr_assert_str_eq(str_text(&told), "", "a heartbeat");
    node(lost, KUBE_MODIFIED);
    cr_assert_str_eq(str_text(&told), "+ns/gpt ");
    cr_assert_not(cache_find_node(&cache, "node-1")->ready);
    node(lost, KUBE_DELETED);
    cr_assert_null(cache_find_node(&cache, "node-1"));
    cr_assert_str_eq(str_text(&told), "+ns/gpt +ns/gpt ");
}

/* Where it is put, when it goes, and that another one goes: a node is known by those that are on it now. */
Test(cache, a_node_wakes_the_jobs_whose_pods_are_on_it_now)
{
    static const char ready[] =
        "{\"metadata\":{\"name\":\"node-1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\"}]}}";
    static const char gone[] = "{\"metadata\":{\"name\":\"node-1\"}}";
    struct js *waits = pod_object("a", "u1", 2, "Pending"),
              *spec = (struct js *)(uintptr_t)js_get(waits, "spec");
    js_set_string(spec, "nodeName", "");
    put(OP_JOBS, KUBE_ADDED, job_object("u1", 1));
    put(OP_PODS, KUBE_ADDED, waits);
    str_reset(&told);
    node(ready, KUBE_ADDED);
    cr_assert_str_eq(str_text(&told), "", "it is on none yet");
    put(OP_PODS, KUBE_MODIFIED, pod_object("a", "u1", 3, "Running"));
    put(OP_PODS, KUBE_ADDED, pod_object("b", "u1", 4, "Running"));
    put(OP_PODS, KUBE_ADDED, pod_object("c", "u1", 5, "Running"));
    put(OP_PODS, KUBE_DELETED, pod_object("b", "u1", 6, "Running"));
    str_reset(&told);
    node(gone, KUBE_DELETED);
    cr_assert_str_eq(str_text(&told), "+ns/gpt +ns/gpt ", "two are there");
    put(OP_PODS, KUBE_DELETED, pod_object("c", "u1", 7, "Running"));
    put(OP_PODS, KUBE_DELETED, pod_object("a", "u1", 8, "Running"));
    str_reset(&told);
    node(ready, KUBE_ADDED);
    cr_assert_str_eq(str_text(&told), "", "nobody is there any more");
}
