/* Writes numbers as Prometheus reads them, after having found in an Accept header which of two formats is
 * asked for. Coordinator, agent and operator make their /metrics by it. */
#include "common/wire/exposition.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const kind_names[] = {"gauge", "counter", "info", "stateset", "histogram"};
static const char *const units[] = {"seconds", "bytes", "ratio"};

/* --- which format --- */

/* One part of a header between two separators, blanks around it left out. */
struct part {
    const char *text;
    size_t length;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The part up to the separator or the end; *at is moved behind it. */
static struct part next_part(const char **at, const char *end, char separator)
{
    const char *from = *at, *to = memchr(from, separator, (size_t)(end - from));
    to = to ? to : end;
    *at = to < end ? to + 1 : end;
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    return (struct part){from, (size_t)(to - from)};
}

static bool part_is(struct part part, const char *word)
{
    return part.length == strlen(word) && !strncasecmp(part.text, word, part.length);
}

static bool part_begins(struct part part, const char *word)
{
    return part.length >= strlen(word) && !strncasecmp(part.text, word, strlen(word));
}

/* One media range: how much its sender wants it, 0 not at all. A version of OpenMetrics that this isn't does
 * not count. */
static double weigh(struct part range, bool *ret_openmetrics)
{
    const char *at = range.text, *end = range.text + range.length;
    struct part type = next_part(&at, end, ';');
    double weight = 1;
    bool version = true;
    while (at < end) {
        struct part parameter = next_part(&at, end, ';');
        if (part_begins(parameter, "q="))
            weight = strtod(parameter.text + 2, NULL);
        if (part_begins(parameter, "version="))
            version = part_is(parameter, "version=1.0.0") || part_is(parameter, "version=\"1.0.0\"");
    }
    *ret_openmetrics = part_is(type, "application/openmetrics-text");
    if (*ret_openmetrics)
        return version ? weight : 0;
    return part_is(type, "text/plain") || part_is(type, "text/*") || part_is(type, "*/*") ? weight : 0;
}

static bool wants_openmetrics(const char *accept)
{
    double best[2] = {0, 0};
    if (!accept)
        return false;
    const char *at = accept, *end = accept + strlen(accept);
    while (at < end) {
        bool openmetrics;
        double weight = weigh(next_part(&at, end, ','), &openmetrics);
        if (weight > best[openmetrics])
            best[openmetrics] = weight;
    }
    return best[true] > 0 && best[true] >= best[false];
}

/* --- what is written --- */

struct exposition exposition_begin(struct str *out, const char *prefix, const char *accept)
{
    return (struct exposition){.out = out, .prefix = prefix, .openmetrics = wants_openmetrics(accept)};
}

void exposition_end(struct exposition *page)
{
    if (page->openmetrics)
        str_adds(page->out, "# EOF\n");
}

const char *exposition_type(const struct exposition *page)
{
    return page->openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
}

static const char *suffix_of(enum exposition_kind kind)
{
    return kind == EXPOSITION_COUNTER ? "_total" : kind == EXPOSITION_INFO ? "_info" : "";
}

static const char *unit_of(const char *name)
{
    const char *last = strrchr(name, '_');
    for (size_t i = 0; last && i < sizeof units / sizeof *units; i++)
        if (!strcmp(last + 1, units[i]))
            return units[i];
    return NULL;
}

/* The older format knows neither of the two, and its heads bear the names of the samples. */
static const char *kind_name(const struct exposition *page)
{
    bool newer = page->kind == EXPOSITION_INFO || page->kind == EXPOSITION_STATESET;
    return newer && !page->openmetrics ? "gauge" : kind_names[page->kind];
}

void exposition_family(struct exposition *page, enum exposition_kind kind, const char *name, const char *help)
{
    page->kind = kind;
    page->name = name;
    const char *suffix = page->openmetrics ? "" : suffix_of(kind), *unit = unit_of(name);
    str_addf(page->out, "# TYPE %s%s%s %s\n", page->prefix, name, suffix, kind_name(page));
    if (unit && page->openmetrics)
        str_addf(page->out, "# UNIT %s%s %s\n", page->prefix, name, unit);
    str_addf(page->out, "# HELP %s%s%s %s\n", page->prefix, name, suffix, help);
}

static void add_escaped(struct str *out, const char *value)
{
    for (; *value; value++) {
        if (*value == '\n')
            str_adds(out, "\\n");
        else
            str_addf(out, *value == '"' || *value == '\\' ? "\\%c" : "%c", *value);
    }
}

/* Whole numbers in full; of others no more digits than people write. */
static void add_number(struct str *out, double number)
{
    bool whole = number > -1e15 && number < 1e15 && number == (double)(int64_t)number;
    str_addf(out, whole ? "%.0f" : "%.15g", number);
}

void exposition_sample_of(struct exposition *page, const struct exposition_label *labels, int count,
                          double number)
{
    str_addf(page->out, "%s%s%s", page->prefix, page->name, suffix_of(page->kind));
    for (int i = 0; i < count; i++) {
        str_addf(page->out, "%s%s=\"", i ? "," : "{", labels[i].name);
        add_escaped(page->out, labels[i].value);
        str_adds(page->out, i + 1 < count ? "\"" : "\"}");
    }
    str_adds(page->out, " ");
    add_number(page->out, number);
    str_adds(page->out, "\n");
}

void exposition_sample(struct exposition *page, const char *label, const char *value, double number)
{
    exposition_sample_of(page, &(struct exposition_label){label, value}, 1, number);
}

void exposition_state(struct exposition *page, const char *state, bool on)
{
    str_addf(page->out, "%s%s{%s%s=\"%s\"} %d\n", page->prefix, page->name, page->prefix, page->name, state,
             on);
}

void exposition_gauge(struct exposition *page, const char *name, const char *help, double value)
{
    exposition_family(page, EXPOSITION_GAUGE, name, help);
    exposition_sample_of(page, NULL, 0, value);
}

void exposition_counter(struct exposition *page, const char *name, const char *help, double value)
{
    exposition_family(page, EXPOSITION_COUNTER, name, help);
    exposition_sample_of(page, NULL, 0, value);
}

/* A bound is a label's value, so it has to read the same in both formats: 1.0 and not 1. */
static void add_bound(struct str *out, double bound)
{
    bool whole = bound < 1e6 && bound == (double)(int64_t)bound;
    str_addf(out, whole ? "%.1f" : "%g", bound);
}

void exposition_buckets(struct exposition *page, const struct exposition_histogram *histogram)
{
    int64_t below = 0;
    for (int i = 0; i <= histogram->bounds; i++) {
        below += histogram->bucket[i];
        str_addf(page->out, "%s%s_bucket{le=\"", page->prefix, page->name);
        if (i < histogram->bounds)
            add_bound(page->out, histogram->bound[i]);
        else
            str_adds(page->out, "+Inf");
        str_addf(page->out, "\"} %lld\n", (long long)below);
    }
    str_addf(page->out, "%s%s_count %lld\n", page->prefix, page->name, (long long)below);
    str_addf(page->out, "%s%s_sum ", page->prefix, page->name);
    add_number(page->out, histogram->sum);
    str_adds(page->out, "\n");
}
