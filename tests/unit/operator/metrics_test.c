#include "operator/metrics.h"

#include <criterion/criterion.h>
#include <string.h>

static void count(struct metrics *metrics, enum kube_verb verb, int status)
{
    struct kube_request request = {.verb = verb, .resource = &kube_pods};
    struct kube_answer answer = {.status = status};
    metrics_request(metrics, &request, &answer, 3 * RM_MS);
}

static void check_has(const struct metrics *metrics, const char *line)
{
    struct str out = str_init(1 << 20);
    struct exposition page = exposition_begin(&out, metrics_prefix, NULL);
    metrics_print(metrics, &page);
    cr_expect_not_null(strstr(str_text(&out), line), "no \"%s\" in\n%s", line, str_text(&out));
    str_clear(&out);
}

Test(metrics, requests_are_counted_by_verb_resource_and_code)
{
    struct metrics metrics = {0};
    for (int i = 0; i < 3; i++)
        count(&metrics, KUBE_CREATE, 201);
    count(&metrics, KUBE_CREATE, 409);
    count(&metrics, KUBE_WATCH, 200);
    check_has(&metrics, "api_requests_total{verb=\"create\",resource=\"pods\",code=\"201\"} 3\n");
    check_has(&metrics, "api_requests_total{verb=\"create\",resource=\"pods\",code=\"409\"} 1\n");
    check_has(&metrics, "api_requests_total{verb=\"watch\",resource=\"pods\",code=\"200\"} 1\n");
    check_has(&metrics, "api_request_seconds_count 4\n");
}

Test(metrics, a_histogram_adds_up)
{
    struct metrics metrics = {0};
    timings_add(&metrics.reconciles, RM_MS); /* the bound itself belongs to its bucket */
    timings_add(&metrics.reconciles, 700 * RM_MS);
    timings_add(&metrics.reconciles, 3600 * RM_S);
    check_has(&metrics, "reconcile_seconds_bucket{le=\"0.001\"} 1\n");
    check_has(&metrics, "reconcile_seconds_bucket{le=\"0.25\"} 1\n");
    check_has(&metrics, "reconcile_seconds_bucket{le=\"1.0\"} 2\n");
    check_has(&metrics, "reconcile_seconds_bucket{le=\"30.0\"} 2\n");
    check_has(&metrics, "reconcile_seconds_bucket{le=\"+Inf\"} 3\n");
    check_has(&metrics, "reconcile_seconds_sum 3600.701\n");
}
