/* The text that Prometheus reads. That Prometheus does read it is tests/e2e/metrics_test.py's. */
#include <criterion/criterion.h>
#include <string.h>

#include "common/wire/exposition.h"

static const char openmetrics[] = "application/openmetrics-text;version=1.0.0";

static void print_some(struct exposition *page)
{
    exposition_family(page, EXPOSITION_INFO, "build", "What it is.");
    exposition_sample_of(page, (struct exposition_label[]){{"job", "a\"b\\c\nd"}, {"term", "2"}}, 2, 1);
    exposition_gauge(page, "loss", "Loss.", 2.5);
    exposition_counter(page, "sent_bytes", "Bytes sent.", 123456789012345.0);
}

static void check_page(const char *accept, const char *wanted)
{
    struct str out = str_init(4096);
    struct exposition page = exposition_begin(&out, "x_", accept);
    print_some(&page);
    exposition_end(&page);
    cr_expect_str_eq(str_text(&out), wanted);
    str_clear(&out);
}

Test(exposition, the_older_format_names_counters_in_full_and_knows_neither_units_nor_an_end)
{
    check_page(NULL, "# TYPE x_build_info gauge\n"
                     "# HELP x_build_info What it is.\n"
                     "x_build_info{job=\"a\\\"b\\\\c\\nd\",term=\"2\"} 1\n"
                     "# TYPE x_loss gauge\n"
                     "# HELP x_loss Loss.\n"
                     "x_loss 2.5\n"
                     "# TYPE x_sent_bytes_total counter\n"
                     "# HELP x_sent_bytes_total Bytes sent.\n"
                     "x_sent_bytes_total 123456789012345\n");
}

Test(exposition, openmetrics_names_families_units_and_the_end)
{
    check_page(openmetrics, "# TYPE x_build info\n"
                            "# HELP x_build What it is.\n"
                            "x_build_info{job=\"a\\\"b\\\\c\\nd\",term=\"2\"} 1\n"
                            "# TYPE x_loss gauge\n"
                            "# HELP x_loss Loss.\n"
                            "x_loss 2.5\n"
                            "# TYPE x_sent_bytes counter\n"
                            "# UNIT x_sent_bytes bytes\n"
                            "# HELP x_sent_bytes Bytes sent.\n"
                            "x_sent_bytes_total 123456789012345\n"
                            "# EOF\n");
}

static bool is_openmetrics(const char *accept)
{
    struct str out = str_init(16);
    struct exposition page = exposition_begin(&out, "", accept);
    cr_expect_eq(page.openmetrics, !strncmp(exposition_type(&page), "application/openmetrics-text", 28));
    return page.openmetrics;
}

Test(exposition, openmetrics_goes_to_those_who_prefer_it)
{
    cr_expect(is_openmetrics(openmetrics));
    cr_expect(is_openmetrics("application/openmetrics-text"));
    cr_expect(is_openmetrics(
                  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;"
                  "q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
              "Prometheus 2");
    cr_expect(is_openmetrics(
                  "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,application/"
                  "openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
                  "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"),
              "Prometheus 3");
    cr_expect(is_openmetrics(" text/plain ; q=0.1 , Application/OpenMetrics-Text ; q=0.2 "));
}

Test(exposition, everybody_else_gets_the_older_format)
{
    cr_expect_not(is_openmetrics(NULL));
    cr_expect_not(is_openmetrics(""));
    cr_expect_not(is_openmetrics("*/*"));
    cr_expect_not(is_openmetrics("text/html, application/xhtml+xml, */*;q=0.8"), "a browser");
    cr_expect_not(is_openmetrics("text/plain, application/openmetrics-text;q=0.5"));
    cr_expect_not(is_openmetrics("application/openmetrics-text;q=0"));
    cr_expect_not(is_openmetrics("application/openmetrics-text;version=2.0.0"), "it could not read ours");
    cr_expect_not(is_openmetrics("application/openmetrics-text;version=1.0.0;q="));
    cr_expect_not(is_openmetrics(",;=,;,q=1"));
}

Test(exposition, a_histograms_buckets_grow_and_its_bounds_read_the_same_in_both_formats)
{
    static const double bound[] = {0.005, 1, 2.5};
    static const int64_t bucket[] = {1, 0, 2, 4};
    for (int newer = 0; newer < 2; newer++) {
        struct str out = str_init(4096);
        struct exposition page = exposition_begin(&out, "x_", newer ? openmetrics : NULL);
        page.name = "took_seconds";
        exposition_buckets(&page, &(struct exposition_histogram){bound, bucket, 3, 700.25});
        cr_expect_str_eq(str_text(&out), "x_took_seconds_bucket{le=\"0.005\"} 1\n"
                                         "x_took_seconds_bucket{le=\"1.0\"} 1\n"
                                         "x_took_seconds_bucket{le=\"2.5\"} 3\n"
                                         "x_took_seconds_bucket{le=\"+Inf\"} 7\n"
                                         "x_took_seconds_count 7\n"
                                         "x_took_seconds_sum 700.25\n");
        str_clear(&out);
    }
}

Test(exposition, of_states_one_is_on)
{
    struct str out = str_init(4096);
    struct exposition page = exposition_begin(&out, "x_", openmetrics);
    exposition_family(&page, EXPOSITION_STATESET, "phase", "What it does.");
    exposition_state(&page, "idle", false);
    exposition_state(&page, "training", true);
    cr_expect_str_eq(str_text(&out), "# TYPE x_phase stateset\n"
                                     "# HELP x_phase What it does.\n"
                                     "x_phase{x_phase=\"idle\"} 0\n"
                                     "x_phase{x_phase=\"training\"} 1\n");
    str_clear(&out);
}
