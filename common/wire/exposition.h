/* Numbers as text for Prometheus: what GET /metrics answers.
 *
 *     struct exposition page = exposition_begin(body, "ringmaster_worker_", get->accept);
 *     exposition_counter(&page, "steps", "Steps that this worker committed.", steps);
 *     exposition_family(&page, EXPOSITION_COUNTER, "ring_changes", "Rings formed again, by cause.");
 *     exposition_sample(&page, "cause", "WorkerLost", 3);
 *     exposition_end(&page);
 *     *type = exposition_type(&page);
 *
 * Who asks for OpenMetrics in its Accept header, as Prometheus does, gets OpenMetrics 1.0.0; everybody else
 * gets the older text format 0.0.4, which people and `promtool check metrics` read. Names are the same in
 * both: a counter is named without "_total" here and ends with it on every line in the older format, but not
 * in the heads of the newer. The unit follows from the name: what ends in "_seconds", "_bytes" or "_ratio" is
 * one. Names and help texts are constants; values of labels are escaped. Pure. */
#ifndef RM_WIRE_EXPOSITION_H
#define RM_WIRE_EXPOSITION_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/str.h"

enum exposition_kind {
    EXPOSITION_GAUGE,
    EXPOSITION_COUNTER,
    EXPOSITION_INFO,     /* "_info" is added to its name; a gauge in the older format */
    EXPOSITION_STATESET, /* one sample for each state, 1 or 0, under a label of the family's name; likewise */
    EXPOSITION_HISTOGRAM,
};

struct exposition {
    struct str *out;    /* borrowed */
    const char *prefix; /* of every name */
    bool openmetrics;
    enum exposition_kind kind; /* of the family under way */
    const char *name;
};

struct exposition_label {
    const char *name, *value;
};

/* A histogram's counts: bucket[i] of values up to bound[i] and above the bound before, bucket[bounds] of the
 * rest. */
struct exposition_histogram {
    const double *bound;
    const int64_t *bucket;
    int bounds;
    double sum;
};

/* accept: the request's header; NULL or "" where there is none. */
struct exposition exposition_begin(struct str *out, const char *prefix, const char *accept);
void exposition_end(struct exposition *page);
const char *exposition_type(const struct exposition *page); /* Content-Type */

/* A family of one sample. */
void exposition_gauge(struct exposition *page, const char *name, const char *help, double value);
void exposition_counter(struct exposition *page, const char *name, const char *help, double value);

/* The head of a family; its samples follow. */
void exposition_family(struct exposition *page, enum exposition_kind kind, const char *name,
                       const char *help);
void exposition_sample(struct exposition *page, const char *label, const char *value, double number);
void exposition_sample_of(struct exposition *page, const struct exposition_label *labels, int count,
                          double number);
void exposition_state(struct exposition *page, const char *state, bool on);
void exposition_buckets(struct exposition *page, const struct exposition_histogram *histogram);

#endif
